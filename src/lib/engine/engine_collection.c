/* SPDX-License-Identifier: Apache-2.0 */
/* engine_collection.c - collections: open, list, rename, describe, drop.
 *
 * A handle holds the collection's number and its random uid, not its name: after a drop it returns LODE_NOT_FOUND, even
 * when a new collection has taken the name. A collection that succeeds another one takes its uid (lode_reembed), so
 * that handles go on with it. A handle also holds the embedding model that its user named; each vector write
 * and vector query is checked against it (iface_check.c).
 */
#include "engine/vector_snapshot.h"

static const char *const collection_metric_names[] = {"l2", "cosine", "ip"};

const char *lode_metric_name(lode_metric metric) {
  size_t n = sizeof collection_metric_names / sizeof *collection_metric_names;
  return (size_t)metric < n ? collection_metric_names[metric] : "unknown";
}

bool lode_metric_parse(lode_str text, lode_metric *metric) {
  for (size_t i = 0; i < sizeof collection_metric_names / sizeof *collection_metric_names; i++)
    if (text.data && str_eq(text, str_of(collection_metric_names[i]))) {
      if (metric) *metric = (lode_metric)i;
      return true;
    }
  return false;
}

/* ---- Open ---- */

/* A model is recorded with a collection that has none, unless the dimension of its vectors differs. */
static bool collection_wants_embedder(const lode_collection_options *o, const store_coll *c) {
  return o->embedder.data && !c->embedder.data && !(o->embedder_dim && c->dim && o->embedder_dim != c->dim);
}

typedef struct collection_opening {
  engine_store *store;
  lode_str name;
  const lode_collection_options *options;
  mem_arena arena;
  store_coll coll;
} collection_opening;

/* *done is false when something must be written first. */
static lode_status collection_open_reading(collection_opening *o, bool *done, lode_error *err) {
  store_tx *tx;
  *done = false;
  TRY(store_tx_begin(o->store->db, STORE_TX_READ, &tx, err));
  lode_status st = store_coll_find(tx, o->name, &o->arena, &o->coll, err);
  store_tx_rollback(tx);
  if (st == LODE_NOT_FOUND && o->options->create) return LODE_OK;
  if (st != LODE_OK) return st;
  if (o->options->create && o->options->must_create) {
    char quoted[256];
    return err_set(err, LODE_EXISTS, "the collection %s exists already", str_quote(o->name, quoted, sizeof quoted));
  }
  *done = o->store->head.options->read_only || !collection_wants_embedder(o->options, &o->coll);
  return LODE_OK;
}

static lode_status collection_open_writing(collection_opening *o, lode_error *err) {
  const lode_collection_options *want = o->options;
  store_tx *tx;
  char quoted[256];
  TRY(engine_begin_write(o->store, &tx, err));
  lode_status st = store_coll_find(tx, o->name, &o->arena, &o->coll, err);
  if (st == LODE_NOT_FOUND && want->create) {
    store_coll c = {.name = o->name,
                    .metric = want->metric,
                    .metadata = want->metadata,
                    .embedder = want->embedder,
                    .embedder_dim = want->embedder_dim};
    st = store_coll_create(tx, &c, want->counters, want->n_counters, &o->arena, &o->coll, err);
  } else if (st == LODE_OK && want->create && want->must_create) {
    st = err_set(err, LODE_EXISTS, "the collection %s exists already", str_quote(o->name, quoted, sizeof quoted));
  } else if (st == LODE_OK && collection_wants_embedder(want, &o->coll)) {
    st = store_coll_set_embedder(tx, o->coll.cid, want->embedder, want->embedder_dim, err);
  }
  if (st == LODE_OK) return engine_commit_write(o->store, tx, err);
  store_tx_rollback(tx);
  return st;
}

lode_status engine_collection_open(lode_store *head, lode_str name, const lode_collection_options *options,
                                   lode_collection **out, lode_error *err) {
  engine_store *store = engine_store_of(head);
  static const lode_collection_options none;
  collection_opening o = {.store = store, .name = name, .options = options ? options : &none};
  engine_collection *c = NULL;
  lode_status st;
  bool done = false;
  err_clear(err);
  *out = NULL;
  engine_enter(store);
  mem_arena_init(&o.arena, 0);
  TRY_GOTO(iface_check_name(name, "the name of the collection", err));
  TRY_GOTO(iface_check_coll_options(o.options, err));
  TRY_GOTO(collection_open_reading(&o, &done, err));
  if (!done) TRY_GOTO(collection_open_writing(&o, err));
  err_clear(err);
  size_t embedder_len = o.options->embedder.data ? o.options->embedder.len : 0;
  c = mem_calloc(1, sizeof *c + embedder_len);
  if (!c) {
    st = err_nomem(err);
    goto done;
  }
  *c = (engine_collection){.head = {.engine = &engine_table, .store = head},
                           .store = store,
                           .cid = o.coll.cid,
                           .uid = o.coll.uid,
                           .spec.embedder_dim = o.options->embedder_dim};
  if (embedder_len) {
    memcpy(c + 1, o.options->embedder.data, embedder_len);
    c->spec.embedder = (lode_str){(const char *)(c + 1), embedder_len};
  }
  *out = &c->head;
  if (store->head.options->preload) engine_snapshot_preload(c);
done:
  mem_arena_release(&o.arena);
  return st;
}

void engine_collection_close(lode_collection *head) { mem_free(engine_collection_of(head)); }

/* ---- Changes ---- */

typedef enum collection_change_kind {
  COLLECTION_RENAME,
  COLLECTION_SET_METADATA,
  COLLECTION_DROP
} collection_change_kind;

static lode_status collection_rename_in(store_tx *tx, const store_coll *coll, lode_str name, lode_error *err) {
  store_coll other;
  char quoted[256];
  if (str_eq(coll->name, name)) return LODE_OK;
  lode_status st = store_coll_find(tx, name, NULL, &other, err);
  if (st == LODE_OK)
    return err_set(err, LODE_EXISTS, "there is a collection %s already: choose another name or drop it first",
                   str_quote(name, quoted, sizeof quoted));
  if (st != LODE_NOT_FOUND) return st;
  err_clear(err);
  return store_coll_rename(tx, coll->cid, name, err);
}

static lode_status collection_change(engine_store *store, collection_change_kind kind, lode_str name, lode_str text,
                                     lode_error *err) {
  mem_arena arena;
  store_tx *tx = NULL;
  store_coll coll = {0};
  lode_status st;
  mem_arena_init(&arena, 0);
  TRY_GOTO(iface_check_name(name, "the name of the collection", err));
  TRY_GOTO(engine_begin_write(store, &tx, err));
  TRY_GOTO(store_coll_find(tx, name, &arena, &coll, err));
  switch (kind) {
    case COLLECTION_RENAME: TRY_GOTO(collection_rename_in(tx, &coll, text, err)); break;
    case COLLECTION_SET_METADATA: TRY_GOTO(store_coll_set_metadata(tx, coll.cid, text, err)); break;
    case COLLECTION_DROP: TRY_GOTO(store_coll_drop(tx, coll.cid, err)); break;
  }
  store_tx *ending = tx;
  tx = NULL;
  TRY_GOTO(engine_commit_write(store, ending, err));
  if (kind == COLLECTION_DROP) engine_cache_forget(store, coll.cid);
done:
  store_tx_rollback(tx);
  mem_arena_release(&arena);
  return st;
}

lode_status engine_collection_rename(lode_store *head, lode_str name, lode_str new_name, lode_error *err) {
  engine_store *store = engine_store_of(head);
  err_clear(err);
  TRY(iface_check_name(new_name, "the new name of the collection", err));
  return collection_change(store, COLLECTION_RENAME, name, new_name, err);
}

lode_status engine_collection_set_metadata(lode_store *head, lode_str name, lode_str metadata, lode_error *err) {
  engine_store *store = engine_store_of(head);
  err_clear(err);
  TRY(iface_check_object(metadata, "the collection's metadata", err));
  return collection_change(store, COLLECTION_SET_METADATA, name, metadata, err);
}

lode_status engine_collection_drop(lode_store *head, lode_str name, lode_error *err) {
  engine_store *store = engine_store_of(head);
  err_clear(err);
  return collection_change(store, COLLECTION_DROP, name, (lode_str){NULL, 0}, err);
}

/* *dropped is the collection that had the name, or 0. */
static lode_status collection_replace_in(store_tx *tx, const lode_replacement *pair, mem_arena *arena, int64_t *dropped,
                                         lode_error *err) {
  store_coll coll, old;
  *dropped = 0;
  TRY(store_coll_find(tx, pair->name, arena, &coll, err));
  if (str_eq(pair->name, pair->new_name)) return LODE_OK;
  lode_status st = store_coll_find(tx, pair->new_name, arena, &old, err);
  if (st != LODE_OK && st != LODE_NOT_FOUND) return st;
  err_clear(err);
  if (st == LODE_OK) {
    TRY(store_coll_drop(tx, old.cid, err));
    *dropped = old.cid;
  }
  return store_coll_rename(tx, coll.cid, pair->new_name, err);
}

lode_status engine_collections_replace(lode_store *head, const lode_replacement *pairs, size_t n, lode_error *err) {
  engine_store *store = engine_store_of(head);
  mem_arena arena;
  store_tx *tx = NULL;
  int64_t *dropped = NULL;
  lode_status st = LODE_OK;
  err_clear(err);
  mem_arena_init(&arena, 0);
  if (n == 0) return LODE_OK;
  for (size_t i = 0; i < n; i++) {
    TRY_GOTO(iface_check_name(pairs[i].name, "the name of the collection", err));
    TRY_GOTO(iface_check_name(pairs[i].new_name, "the new name of the collection", err));
  }
  dropped = mem_calloc(n, sizeof *dropped);
  if (!dropped) TRY_GOTO(err_nomem(err));
  TRY_GOTO(engine_begin_write(store, &tx, err));
  for (size_t i = 0; i < n; i++) TRY_GOTO(collection_replace_in(tx, &pairs[i], &arena, &dropped[i], err));
  store_tx *ending = tx;
  tx = NULL;
  TRY_GOTO(engine_commit_write(store, ending, err));
  for (size_t i = 0; i < n; i++)
    if (dropped[i]) engine_cache_forget(store, dropped[i]);
done:
  store_tx_rollback(tx);
  mem_free(dropped);
  mem_arena_release(&arena);
  return st;
}

/* ---- List ---- */

static lode_status collection_add_info(void *list, const store_coll *c, lode_error *err) {
  return iface_coll_list_add(list,
                             &(lode_collection_info){
                                 .uid = c->uid,
                                 .name = c->name,
                                 .metric = c->metric,
                                 .dimension = c->dim,
                                 .metadata = c->metadata,
                                 .embedder = c->embedder,
                                 .embedder_dim = c->embedder_dim,
                                 .records = c->records,
                                 .pending = c->pending,
                             },
                             err);
}

lode_status engine_collections(lode_store *head, lode_collection_list **out, lode_error *err) {
  engine_store *store = engine_store_of(head);
  store_tx *tx = NULL;
  lode_status st;
  err_clear(err);
  *out = NULL;
  engine_enter(store);
  lode_collection_list *list;
  TRY(iface_coll_list_new(&list, err));
  TRY_GOTO(store_tx_begin(store->db, STORE_TX_READ, &tx, err));
  TRY_GOTO(store_coll_each(tx, collection_add_info, list, err));
  *out = list;
done:
  store_tx_rollback(tx);
  if (st != LODE_OK) lode_collection_list_free(list);
  return st;
}
