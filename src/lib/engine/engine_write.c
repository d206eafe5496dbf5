/* SPDX-License-Identifier: Apache-2.0 */
/* engine_write.c - add, upsert, update, delete, and transactions of several.
 *
 * Everything that can be checked without the store is checked before the write lock is taken (iface_check.c). A call
 * without a txn is a transaction of its own; in a txn it is a savepoint, so that a failed call leaves the txn as it
 * was. Counts of a collection are kept in a store_coll during the transaction and written back before the commit; a txn
 * keeps one for each collection it has touched.
 *
 * Ids are looked up in sorted order, which reads each page of the id index once. Records that exist are changed first;
 * the others are then inserted, in groups, in the order of the batch, which is the order that lode_get() promises.
 */
#include "engine/select.h"
#include "engine/vector_snapshot.h"

/* ---- Transactions ---- */

typedef struct txn_collection {
  struct txn_collection *next;
  store_coll coll;
  mem_arena arena;
} txn_collection;

typedef struct engine_txn {
  lode_txn head;
  engine_store *store;
  store_tx *tx;
  txn_collection *changed_colls;
  int64_t succeeded; /* a collection that is gone after the commit; 0: none */
} engine_txn;
_Static_assert(offsetof(engine_txn, head) == 0, "engine_txn_of() relies on it");
static inline engine_txn *engine_txn_of(lode_txn *head) {
  return INVARIANT(!head || head->engine == &engine_table) ? (engine_txn *)head : NULL;
}

static void txn_forget_counts(engine_txn *txn) {
  for (txn_collection *t = txn->changed_colls, *next; t; t = next) {
    next = t->next;
    mem_arena_release(&t->arena);
    mem_free(t);
  }
  txn->changed_colls = NULL;
}

static void txn_free(engine_txn *txn) {
  txn_forget_counts(txn);
  mem_free(txn);
}

static lode_status txn_save_counts(engine_txn *txn, lode_error *err) {
  for (txn_collection *t = txn->changed_colls; t; t = t->next) TRY(store_coll_save(txn->tx, &t->coll, err));
  return LODE_OK;
}

lode_status engine_begin(lode_store *head, lode_txn **out, lode_error *err) {
  engine_store *store = engine_store_of(head);
  err_clear(err);
  *out = NULL;
  engine_txn *txn = mem_calloc(1, sizeof *txn);
  if (!txn) return err_nomem(err);
  txn->head = (lode_txn){.engine = &engine_table, .store = head};
  txn->store = store;
  lode_status st = engine_begin_write(store, &txn->tx, err);
  if (st == LODE_OK)
    *out = &txn->head;
  else
    mem_free(txn);
  return st;
}

lode_status engine_commit(lode_txn *head, lode_error *err) {
  engine_txn *txn = engine_txn_of(head);
  err_clear(err);
  engine_enter(txn->store);
  lode_status st = txn_save_counts(txn, err);
  if (st == LODE_OK)
    st = engine_commit_write(txn->store, txn->tx, err);
  else
    store_tx_rollback(txn->tx);
  if (st == LODE_OK && txn->succeeded) engine_cache_forget(txn->store, txn->succeeded);
  txn_free(txn);
  return st;
}

void engine_rollback(lode_txn *head) {
  engine_txn *txn = engine_txn_of(head);
  if (!txn) return;
  engine_enter(txn->store);
  store_tx_rollback(txn->tx);
  txn_free(txn);
}

lode_status engine_collection_succeed(lode_txn *head, lode_str name, lode_str successor, lode_error *err) {
  engine_txn *txn = engine_txn_of(head);
  mem_arena arena;
  store_coll old, heir;
  lode_status st;
  err_clear(err);
  engine_enter(txn->store);
  mem_arena_init(&arena, 0);
  TRY_GOTO(txn_save_counts(txn, err));
  txn_forget_counts(txn); /* they were kept under the old identities */
  TRY_GOTO(store_coll_find(txn->tx, name, &arena, &old, err));
  TRY_GOTO(store_coll_find(txn->tx, successor, &arena, &heir, err));
  TRY_GOTO(store_coll_succeed(txn->tx, &old, &heir, err));
  txn->succeeded = old.cid;
done:
  mem_arena_release(&arena);
  return st;
}

/* ---- One call ---- */

typedef struct write_call {
  engine_collection *handle;
  engine_txn *txn; /* NULL: own transaction */
  store_tx *tx;
  store_coll *coll; /* its counts change with each write */
  store_coll own, before;
  mem_arena arena;
} write_call;

static lode_status txn_touch(engine_txn *txn, engine_collection *handle, store_coll **coll, lode_error *err) {
  for (txn_collection *t = txn->changed_colls; t; t = t->next)
    if (t->coll.uid == handle->uid) {
      *coll = &t->coll;
      return LODE_OK;
    }
  txn_collection *t = mem_calloc(1, sizeof *t);
  if (!t) return err_nomem(err);
  mem_arena_init(&t->arena, 0);
  lode_status st = engine_load_coll(handle, txn->tx, &t->arena, &t->coll, err);
  if (st != LODE_OK) {
    mem_arena_release(&t->arena);
    mem_free(t);
    return st;
  }
  t->next = txn->changed_colls;
  txn->changed_colls = t;
  *coll = &t->coll;
  return LODE_OK;
}

/* `of` may be NULL, and it may belong to another store, even to one of another engine. */
static lode_status write_call_begin(write_call *w, engine_collection *handle, lode_txn *of, lode_error *err) {
  *w = (write_call){.handle = handle};
  mem_arena_init(&w->arena, 0);
  if (of && of->store != handle->head.store)
    return err_set(err, LODE_INVALID, "the transaction belongs to another store than the collection");
  if (of) {
    engine_txn *txn = w->txn = engine_txn_of(of);
    TRY(txn_touch(txn, handle, &w->coll, err));
    TRY(store_tx_savepoint(txn->tx, err));
    w->tx = txn->tx;
    w->before = *w->coll;
    return LODE_OK;
  }
  TRY(engine_begin_write(handle->store, &w->tx, err));
  w->coll = &w->own;
  lode_status st = engine_load_coll(handle, w->tx, &w->arena, &w->own, err);
  if (st != LODE_OK) {
    store_tx_rollback(w->tx);
    w->tx = NULL;
  }
  return st;
}

/* Keeps what was written if st is OK, else undoes it. */
static lode_status write_call_end(write_call *w, lode_status st, lode_error *err) {
  if (w->tx && w->txn) {
    store_tx_savepoint_end(w->tx, st == LODE_OK);
    if (st != LODE_OK) *w->coll = w->before;
  } else if (w->tx) {
    if (st == LODE_OK) st = store_coll_save(w->tx, w->coll, err);
    if (st == LODE_OK)
      st = engine_commit_write(w->handle->store, w->tx, err);
    else
      store_tx_rollback(w->tx);
  }
  mem_arena_release(&w->arena);
  return st;
}

/* ---- Batches ---- */

typedef struct write_batch_job {
  lode_import_mode mode;
  lode_on_existing on_existing; /* of LODE_IMPORT_ADD */
  write_call w;
  iface_batch batch;
  store_id_entry *entries; /* the id index's entry of each record */
  store_change *inserts;   /* the next group to insert */
  size_t n_inserts;
  mem_arena arena; /* metadata of inserts that is not the caller's */
  bool *missing;
  lode_write_result result;
  json_doc old, patch;
  strbuf buf;
} write_batch_job;

enum { WRITE_BATCH_GROUP = 1000 }; /* ids looked up, or records inserted, at a time */

static bool write_batch_rec_exists(const write_batch_job *b, size_t i) {
  return b->entries[i].rid && !b->entries[i].dead;
}

static lode_status write_batch_look_up(write_batch_job *b, lode_error *err) {
  lode_str ids[WRITE_BATCH_GROUP];
  store_id_entry entries[WRITE_BATCH_GROUP];
  for (size_t first = 0, n; first < b->batch.n; first += n) {
    const size_t *order = b->batch.order + first;
    n = b->batch.n - first < WRITE_BATCH_GROUP ? b->batch.n - first : WRITE_BATCH_GROUP;
    for (size_t i = 0; i < n; i++) ids[i] = b->batch.records[order[i]].id;
    TRY(store_ids_find(b->w.tx, b->w.coll->cid, ids, n, entries, err));
    for (size_t i = 0; i < n; i++) b->entries[order[i]] = entries[i];
  }
  if (b->mode != LODE_IMPORT_ADD || b->on_existing == LODE_KEEP_EXISTING) return LODE_OK;
  for (size_t i = 0; i < b->batch.n; i++) {
    char quoted[256];
    if (write_batch_rec_exists(b, i))
      return err_set_at(err, LODE_EXISTS, i,
                        "the id %s exists already: use upsert or update, or keep it (LODE_KEEP_EXISTING, "
                        "--on-existing keep)",
                        str_quote(b->batch.records[i].id, quoted, sizeof quoted));
  }
  return LODE_OK;
}

/* Merges the metadata of the batch's record over `old` (may be absent); the text is in b->buf. */
static lode_status write_batch_merge_metadata(write_batch_job *b, lode_str old, size_t i, lode_str *merged,
                                              lode_error *err) {
  bool empty;
  *merged = (lode_str){NULL, 0};
  if (old.data) TRY(meta_parse_stored(&b->old, old, err));
  TRY(json_parse(&b->patch, b->batch.metadata[i], NULL, err));
  b->buf.len = 0;
  lode_status st = meta_merge(old.data ? &b->old : NULL, &b->patch, &b->buf, &empty, err);
  if (st == LODE_OK && b->buf.failed) return err_nomem(err);
  if (st != LODE_OK && err) err->record = i;
  if (st == LODE_OK && !empty) *merged = (lode_str){b->buf.data, b->buf.len};
  return st;
}

static lode_status write_batch_insert_gathered(write_batch_job *b, lode_error *err) {
  TRY(store_rec_insert(b->w.tx, b->w.coll, b->inserts, b->n_inserts, err));
  b->n_inserts = 0;
  mem_arena_reset(&b->arena);
  return LODE_OK;
}

static lode_status write_batch_insert(write_batch_job *b, size_t i, lode_error *err) {
  const lode_record *r = &b->batch.records[i];
  store_change c = {.id = r->id,
                    .set_document = true,
                    .set_metadata = true,
                    .document = r->document,
                    .metadata = b->batch.metadata[i],
                    .vector = r->vector,
                    .dim = r->dimension,
                    .dead_rid = b->entries[i].rid};
  if (b->batch.has_null[i]) {
    TRY(write_batch_merge_metadata(b, (lode_str){NULL, 0}, i, &c.metadata, err));
    if (c.metadata.data && !(c.metadata.data = mem_arena_copy(&b->arena, c.metadata.data, c.metadata.len)))
      return err_nomem(err);
  }
  b->inserts[b->n_inserts++] = c;
  return b->n_inserts == WRITE_BATCH_GROUP ? write_batch_insert_gathered(b, err) : LODE_OK;
}

static lode_status write_batch_change(write_batch_job *b, size_t i, lode_error *err) {
  const lode_record *r = &b->batch.records[i];
  store_change c = {.id = r->id,
                    .set_document = r->document.data != NULL,
                    .document = r->document,
                    .set_metadata = b->batch.metadata[i].data != NULL,
                    .vector = r->vector,
                    .dim = r->dimension};
  store_rec rec;
  bool found;
  if (!c.set_document && !c.set_metadata && !c.vector) return LODE_OK;
  TRY(store_rec_read_live(b->w.tx, b->entries[i].rid, &rec, &found, err));
  if (!found)
    return err_set(err, LODE_CORRUPT, "the name table points to a record that is not there: run `lode db verify`");
  if (c.set_metadata) TRY(write_batch_merge_metadata(b, rec.metadata, i, &c.metadata, err));
  return store_rec_update(b->w.tx, b->w.coll, &rec, &c, err);
}

/* Changes those that exist, or inserts those that do not. */
static lode_status write_batch_write_group(write_batch_job *b, bool existing, uint32_t dim, lode_error *err) {
  for (size_t i = 0; i < b->batch.n; i++) {
    if (write_batch_rec_exists(b, i) != existing) continue;
    bool skip = b->mode == (existing ? LODE_IMPORT_ADD : LODE_IMPORT_UPDATE);
    if (b->missing) b->missing[i] = !existing;
    if (skip) {
      b->result.skipped++;
      continue;
    }
    if (b->batch.records[i].vector) b->w.coll->dim = dim;
    TRY(existing ? write_batch_change(b, i, err) : write_batch_insert(b, i, err));
    b->result.written++;
  }
  return LODE_OK;
}

static lode_status write_batch_write_all(write_batch_job *b, lode_error *err) {
  uint32_t dim;
  iface_vector_spec spec = engine_coll_vector_spec(b->w.coll);
  TRY(iface_batch_check_vectors(&b->batch, &b->w.handle->spec, &spec, &dim, err));
  TRY(write_batch_look_up(b, err));
  TRY(write_batch_write_group(b, true, dim, err));
  TRY(write_batch_write_group(b, false, dim, err));
  return write_batch_insert_gathered(b, err);
}

static lode_status write_batch_run(write_batch_job *b, engine_collection *handle, lode_txn *txn,
                                   const lode_record *records, size_t n, lode_write_result *result, lode_error *err) {
  lode_status st;
  err_clear(err);
  if (result) *result = (lode_write_result){0};
  TRY(iface_batch_init(&b->batch, handle->store->head.options->max_document_bytes, records, n,
                       b->mode != LODE_IMPORT_ADD, err));
  if (b->missing) memset(b->missing, 0, n * sizeof *b->missing);
  mem_arena_init(&b->arena, 0);
  b->entries = mem_calloc(n, sizeof *b->entries);
  b->inserts = mem_calloc(n < WRITE_BATCH_GROUP ? n : WRITE_BATCH_GROUP, sizeof *b->inserts);
  st = b->entries && b->inserts ? LODE_OK : err_nomem(err);
  if (st == LODE_OK && n > 0) {
    st = write_call_begin(&b->w, handle, txn, err);
    if (st == LODE_OK) st = write_batch_write_all(b, err);
    st = write_call_end(&b->w, st, err);
  }
  if (st == LODE_OK && result) *result = b->result;
  if (st != LODE_OK && b->missing) memset(b->missing, 0, n * sizeof *b->missing);
  mem_free(b->entries);
  mem_free(b->inserts);
  mem_arena_release(&b->arena);
  iface_batch_release(&b->batch);
  json_release(&b->old);
  json_release(&b->patch);
  strbuf_release(&b->buf);
  return st;
}

lode_status engine_add(lode_collection *head, lode_txn *txn, const lode_record *records, size_t n,
                       lode_on_existing on_existing, lode_write_result *result, lode_error *err) {
  write_batch_job b = {.mode = LODE_IMPORT_ADD, .on_existing = on_existing};
  return write_batch_run(&b, engine_collection_of(head), txn, records, n, result, err);
}

lode_status engine_upsert(lode_collection *head, lode_txn *txn, const lode_record *records, size_t n,
                          lode_write_result *result, lode_error *err) {
  write_batch_job b = {.mode = LODE_IMPORT_UPSERT};
  return write_batch_run(&b, engine_collection_of(head), txn, records, n, result, err);
}

lode_status engine_update(lode_collection *head, lode_txn *txn, const lode_record *records, size_t n, bool *missing,
                          lode_write_result *result, lode_error *err) {
  write_batch_job b = {.mode = LODE_IMPORT_UPDATE, .missing = missing};
  return write_batch_run(&b, engine_collection_of(head), txn, records, n, result, err);
}

/* ---- Delete ---- */

enum { DELETE_GROUP = 250000 };

/* By ids alone: no record is read. In groups, so that the sorted copy stays small. */
static lode_status delete_by_ids(write_call *w, const lode_str *ids, size_t n, size_t *deleted, lode_error *err) {
  size_t group = n < DELETE_GROUP ? n : DELETE_GROUP, some, gone;
  lode_status st = LODE_OK;
  size_t *order = mem_calloc(group, sizeof *order);
  lode_str *sorted = mem_calloc(group, sizeof *sorted);
  if (!order || !sorted) {
    st = err_nomem(err);
    goto done;
  }
  for (size_t at = 0; at < n; at += some) {
    some = n - at < group ? n - at : group;
    TRY_GOTO(sort_strings(ids + at, sizeof *ids, some, order, err));
    for (size_t i = 0; i < some; i++) sorted[i] = ids[at + order[i]];
    TRY_GOTO(store_rec_delete(w->tx, w->coll, sorted, some, &gone, err));
    *deleted += gone;
  }
done:
  mem_free(order);
  mem_free(sorted);
  return st;
}

/* The ids of a selection, copied. */
typedef struct delete_id_list {
  lode_str *v;
  size_t n, cap;
  mem_arena arena;
} delete_id_list;

static lode_status delete_gather_ids(engine_select *select, delete_id_list *ids, lode_error *err) {
  store_rec rec;
  bool more;
  for (;;) {
    TRY(engine_select_next(select, &rec, &more, err));
    if (!more) return LODE_OK;
    const char *copy = mem_arena_copy(&ids->arena, rec.id.data, rec.id.len);
    if (!copy || !mem_grow(&ids->v, &ids->cap, ids->n + 1, sizeof *ids->v)) return err_nomem(err);
    ids->v[ids->n++] = (lode_str){copy, rec.id.len};
  }
}

static lode_status delete_selected(write_call *w, const lode_selection *selection, size_t *deleted, lode_error *err) {
  engine_reader reader;
  engine_select select = {0};
  delete_id_list ids = {0};
  lode_status st;
  if (selection->ids && !selection->where.data && !selection->where_document.data)
    return delete_by_ids(w, selection->ids, selection->n_ids, deleted, err);
  mem_arena_init(&ids.arena, 0);
  engine_reader_borrow(&reader, w->handle, w->tx, w->coll);
  TRY_GOTO(engine_select_init(&select, &reader, selection, err));
  TRY_GOTO(delete_gather_ids(&select, &ids, err));
  st = delete_by_ids(w, ids.v, ids.n, deleted, err);
done:
  engine_select_release(&select);
  engine_reader_release(&reader);
  mem_free(ids.v);
  mem_arena_release(&ids.arena);
  return st;
}

lode_status engine_delete(lode_collection *head, lode_txn *txn, const lode_selection *selection, size_t *deleted,
                          lode_error *err) {
  write_call w;
  size_t n = 0;
  err_clear(err);
  if (deleted) *deleted = 0;
  TRY(iface_check_selection(selection, err));
  if (!selection->ids && !selection->where.data && !selection->where_document.data)
    return err_set(err, LODE_INVALID,
                   "the selection is empty and would delete everything: say where = {} if you mean it");
  lode_status st = write_call_begin(&w, engine_collection_of(head), txn, err);
  if (st == LODE_OK) st = delete_selected(&w, selection, &n, err);
  st = write_call_end(&w, st, err);
  if (st == LODE_OK && deleted) *deleted = n;
  return st;
}
