/* SPDX-License-Identifier: Apache-2.0 */
/* remote_collection.c - collections of Lode: their handles, and the Qdrant collections that hold their records. */
#include "remote/remote.h"

#include "os/os.h"

static const char *const qdrant_distances[] = {[LODE_L2] = "Euclid", [LODE_COSINE] = "Cosine", [LODE_IP] = "Dot"};

/* ---- Qdrant collections ---- */

void remote_generation_path(remote_call *call, const lode_store *s, const remote_entry *k, const char *format, ...) {
  char text[400];
  va_list ap;
  va_start(ap, format);
  int n = vsnprintf(text, sizeof text, format, ap);
  va_end(ap);
  if (n < 0 || (size_t)n >= sizeof text)
    call->path.failed = true;
  else
    remote_call_path(call, "/collections/%s-%llx-%u%s", s->prefix, (unsigned long long)k->uid, k->generation, text);
}

static void qdrant_put_collection(strbuf *out, const remote_entry *k) {
  strbuf_addstr(out, "{\"vectors\":{");
  if (k->spec.dim)
    strbuf_addf(out, "\"v\":{\"size\":%u,\"distance\":\"%s\"}", k->spec.dim, qdrant_distances[k->metric]);
  strbuf_addstr(out, "},\"sparse_vectors\":{\"t\":{\"modifier\":\"idf\"}},\"on_disk_payload\":true");
  if (k->spec.dim) strbuf_addstr(out, ",\"quantization_config\":{\"scalar\":{\"type\":\"int8\",\"always_ram\":true}}");
  if (k->shards) strbuf_addf(out, ",\"shard_number\":%u", k->shards);
  if (k->replicas) strbuf_addf(out, ",\"replication_factor\":%u", k->replicas);
  if (k->write_consistency) strbuf_addf(out, ",\"write_consistency_factor\":%u", k->write_consistency);
  strbuf_addch(out, '}');
}

static lode_status qdrant_make_index(lode_store *s, const remote_entry *k, const char *field, const char *schema,
                                     lode_error *err) {
  remote_call call = {0};
  remote_generation_path(&call, s, k, "/index?wait=true");
  strbuf_addf(&call.body, "{\"field_name\":\"%s\",\"field_schema\":\"%s\"}", field, schema);
  lode_status st = remote_call_send(s, "PUT", &call, err);
  remote_call_release(&call);
  return st;
}

lode_status remote_generation_create(lode_store *s, const remote_entry *k, lode_error *err) {
  remote_call call = {0};
  remote_generation_path(&call, s, k, "%s", "");
  qdrant_put_collection(&call.body, k);
  lode_status st = remote_call_send(s, "PUT", &call, err);
  if (st == LODE_REFUSED && call.response.status == 409) st = LODE_OK; /* it exists already: a repeated request */
  remote_call_release(&call);
  if (st == LODE_OK) st = qdrant_make_index(s, k, "n", "integer", err);
  if (st == LODE_OK) st = qdrant_make_index(s, k, "p", "bool", err);
  return st;
}

lode_status remote_generation_drop(lode_store *s, const remote_entry *k, lode_error *err) {
  remote_call call = {0};
  remote_generation_path(&call, s, k, "%s", "");
  lode_status st = remote_call_send(s, "DELETE", &call, err);
  remote_call_release(&call);
  return st == LODE_NOT_FOUND ? LODE_OK : st;
}

lode_status remote_index_field(lode_collection *c, const remote_entry *k, const char *field, const char *schema,
                               lode_error *err) {
  size_t len = strlen(field) + 1;
  bool known = false;
  if (c->store->options->read_only) return LODE_OK;
  pthread_mutex_lock(&c->lock);
  for (size_t at = 0; at < c->indexed.len && !known; at += strlen(c->indexed.data + at) + 1)
    known = strcmp(c->indexed.data + at, field) == 0;
  pthread_mutex_unlock(&c->lock);
  if (known) return LODE_OK;
  TRY(qdrant_make_index(c->store, k, field, schema, err));
  pthread_mutex_lock(&c->lock);
  strbuf_add(&c->indexed, field, len);
  pthread_mutex_unlock(&c->lock);
  return LODE_OK;
}

/* ---- Handles ---- */

static bool entry_copy(mem_arena *arena, const remote_entry *from, remote_entry *to) {
  lode_str *strings[] = {&to->name, &to->metadata, &to->counters, &to->spec.embedder, &to->lock};
  *to = *from;
  for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
    if (strings[i]->data && !(strings[i]->data = mem_arena_copy(arena, strings[i]->data, strings[i]->len)))
      return false;
  return true;
}

lode_status remote_handle_update(lode_collection *c, const remote_entry *k, lode_error *err) {
  mem_arena arena;
  remote_entry copy;
  mem_arena_init(&arena, 0);
  if (!entry_copy(&arena, k, &copy)) {
    mem_arena_release(&arena);
    return err_nomem(err);
  }
  pthread_mutex_lock(&c->lock);
  if (c->entry.generation != copy.generation) c->indexed.len = 0;
  mem_arena old = c->arena;
  c->arena = arena;
  c->entry = copy;
  pthread_mutex_unlock(&c->lock);
  mem_arena_release(&old);
  return LODE_OK;
}

static lode_status entry_dropped(lode_error *err) {
  return err_set(err, LODE_NOT_FOUND, "the collection was dropped: open it again, or create it again");
}

/* Finds the entry with this uid, whatever its name is now. */
typedef struct entry_finding {
  uint64_t uid;
  lode_collection *c;
  bool found;
} entry_finding;

static lode_status entry_find_uid(void *ctx, const remote_entry *k, lode_error *err) {
  entry_finding *f = ctx;
  if (k->uid != f->uid) return LODE_OK;
  f->found = true;
  return remote_handle_update(f->c, k, err);
}

lode_status remote_entry_of(lode_collection *c, bool fresh, mem_arena *arena, remote_entry *entry, lode_error *err) {
  if (fresh) {
    entry_finding f = {c->uid, c, false};
    TRY(remote_registry_each(c->store, entry_find_uid, &f, err));
    if (!f.found) return entry_dropped(err);
  }
  pthread_mutex_lock(&c->lock);
  bool copied = entry_copy(arena, &c->entry, entry);
  pthread_mutex_unlock(&c->lock);
  return copied ? LODE_OK : err_nomem(err);
}

static lode_status entry_set_embedder(lode_store *s, const remote_entry *k, lode_error *err) {
  strbuf fields = {0};
  strbuf_addstr(&fields, "\"embedder\":");
  json_put_string(&fields, k->spec.embedder);
  strbuf_addf(&fields, ",\"embedder_dim\":%u", k->spec.embedder_dim);
  lode_status st = fields.failed ? err_nomem(err)
                                 : remote_registry_change(s, k->name, NULL, (lode_str){fields.data, fields.len}, err);
  strbuf_release(&fields);
  return st;
}

lode_status remote_collection_open(lode_store *s, lode_str name, const lode_collection_options *options,
                                   lode_collection **out, lode_error *err) {
  static const lode_collection_options none;
  const lode_collection_options *o = options ? options : &none;
  remote_entry k;
  mem_arena arena;
  strbuf counters = {0};
  lode_collection *c = NULL;
  lode_status st;
  bool found;
  err_clear(err);
  *out = NULL;
  mem_arena_init(&arena, 0);
  TRY_GOTO(iface_check_name(name, "the name of the collection", err));
  TRY_GOTO(iface_check_coll_options(o, err));
  TRY_GOTO(remote_registry_load(s, name, &arena, &k, &found, err));
  if (found && k.spec.dim && k.spare && !s->options->read_only) { /* no writes before the old generation is dropped */
    TRY_GOTO(remote_wait_unlocked(s, name, &arena, &k, err));
  }
  if (found && o->create && o->must_create) {
    char quoted[256];
    st = err_set(err, LODE_EXISTS, "there is a collection %s already", str_quote(name, quoted, sizeof quoted));
    goto done;
  }
  if (!found && !o->create) {
    char quoted[256];
    st =
        err_set(err, LODE_NOT_FOUND, "there is no collection %s in this store", str_quote(name, quoted, sizeof quoted));
    goto done;
  }
  if (!found) {
    if (s->options->read_only) {
      st = err_set(err, LODE_READONLY,
                   "the store is open for reading only: open it without read_only to make collections");
      goto done;
    }
    if (o->n_counters) {
      strbuf_addch(&counters, '[');
      for (size_t i = 0; i < o->n_counters; i++) {
        if (i) strbuf_addch(&counters, ',');
        json_put_string(&counters, o->counters[i]);
      }
      strbuf_addch(&counters, ']');
    }
    k = (remote_entry){
        .uid = (rand_u64() >> 2) | 1,
        .generation = 1,
        .metric = o->metric,
        .spec = {.embedder = o->embedder, .embedder_dim = o->embedder_dim, .dim = 0},
        .name = name,
        .metadata = o->metadata,
        .counters = counters.len ? (lode_str){counters.data, counters.len} : (lode_str){0},
        .shards = o->shards ? o->shards : s->shards,
        .replicas = o->replicas ? o->replicas : s->replicas,
        .write_consistency = o->write_consistency ? o->write_consistency : s->write_consistency,
    };
    if (counters.failed) {
      st = err_nomem(err);
      goto done;
    }
    TRY_GOTO(remote_generation_create(s, &k, err));
    TRY_GOTO(remote_registry_add(s, &k, err));
    remote_entry mine = k;
    TRY_GOTO(remote_registry_load(s, name, &arena, &k, &found, err)); /* ours, or that of a concurrent creator? */
    if (!found || k.uid != mine.uid) TRY_GOTO(remote_generation_drop(s, &mine, err));
    if (!found) {
      st = entry_dropped(err);
      goto done;
    }
  } else if (!k.spec.embedder.data && o->embedder.data && !s->options->read_only) {
    k.spec.embedder = o->embedder;
    k.spec.embedder_dim = o->embedder_dim;
    TRY_GOTO(entry_set_embedder(s, &k, err));
  }
  c = mem_calloc(1, sizeof *c + (o->embedder.data ? o->embedder.len : 0));
  if (!c) {
    st = err_nomem(err);
    goto done;
  }
  c->engine = s->engine;
  c->store = s;
  c->uid = k.uid;
  c->spec.embedder_dim = o->embedder_dim;
  if (o->embedder.data) {
    memcpy(c + 1, o->embedder.data, o->embedder.len);
    c->spec.embedder = (lode_str){(const char *)(c + 1), o->embedder.len};
  }
  (void)pthread_mutex_init(&c->lock, NULL);
  mem_arena_init(&c->arena, 0);
  TRY_GOTO(remote_handle_update(c, &k, err));
  *out = c;
  c = NULL;
done:
  remote_collection_close(c);
  mem_arena_release(&arena);
  strbuf_release(&counters);
  return st;
}

void remote_collection_close(lode_collection *c) {
  if (!c) return;
  (void)pthread_mutex_destroy(&c->lock);
  mem_arena_release(&c->arena);
  strbuf_release(&c->indexed);
  mem_free(c);
}

/* ---- Changes ---- */

static lode_status entry_load_existing(lode_store *s, lode_str name, mem_arena *arena, remote_entry *k,
                                       lode_error *err) {
  char quoted[256];
  bool found;
  if (s->options->read_only)
    return err_set(err, LODE_READONLY, "the store is open for reading only: open it without read_only to write");
  TRY(iface_check_name(name, "the name of the collection", err));
  TRY(remote_registry_load(s, name, arena, k, &found, err));
  if (found) return LODE_OK;
  return err_set(err, LODE_NOT_FOUND, "there is no collection %s in this store",
                 str_quote(name, quoted, sizeof quoted));
}

lode_status remote_collection_rename(lode_store *s, lode_str name, lode_str new_name, lode_error *err) {
  remote_entry k, other;
  remote_lock lock = {0};
  mem_arena arena;
  lode_error unused;
  lode_status st;
  bool found, locked = false;
  err_clear(err);
  mem_arena_init(&arena, 0);
  TRY_GOTO(iface_check_name(new_name, "the new name of the collection", err));
  TRY_GOTO(entry_load_existing(s, name, &arena, &k, err));
  if (str_eq(name, new_name)) goto done;
  TRY_GOTO(remote_registry_load(s, new_name, &arena, &other, &found, err));
  if (found) {
    char quoted[256];
    st = err_set(err, LODE_EXISTS, "there is a collection %s already", str_quote(new_name, quoted, sizeof quoted));
    goto done;
  }
  TRY_GOTO(remote_lock_acquire(s, name, &lock, &arena, &k, err));
  locked = true;
  TRY_GOTO(remote_drop_spare(s, &k, err));
  k.name = new_name;
  TRY_GOTO(remote_registry_rename(s, &k, name, err));
  locked = false;
done:
  if (locked) (void)remote_lock_release(s, name, &lock, &unused);
  mem_arena_release(&arena);
  return st;
}

lode_status remote_collection_set_metadata(lode_store *s, lode_str name, lode_str metadata, lode_error *err) {
  remote_entry k;
  mem_arena arena;
  strbuf fields = {0};
  lode_status st;
  err_clear(err);
  mem_arena_init(&arena, 0);
  TRY_GOTO(iface_check_object(metadata, "the collection's metadata", err));
  TRY_GOTO(entry_load_existing(s, name, &arena, &k, err));
  strbuf_addstr(&fields, "\"metadata\":");
  if (metadata.data)
    json_put_string(&fields, metadata);
  else
    strbuf_addstr(&fields, "null");
  st = fields.failed ? err_nomem(err) : remote_registry_change(s, name, NULL, (lode_str){fields.data, fields.len}, err);
done:
  strbuf_release(&fields);
  mem_arena_release(&arena);
  return st;
}

lode_status remote_collection_drop(lode_store *s, lode_str name, lode_error *err) {
  remote_entry k;
  remote_lock lock;
  mem_arena arena;
  lode_status st;
  err_clear(err);
  mem_arena_init(&arena, 0);
  TRY_GOTO(entry_load_existing(s, name, &arena, &k, err));
  TRY_GOTO(remote_lock_acquire(s, name, &lock, &arena, &k, err));
  TRY_GOTO(remote_registry_remove(s, name, err));
  TRY_GOTO(remote_drop_spare(s, &k, err));
  st = remote_generation_drop(s, &k, err);
done:
  mem_arena_release(&arena);
  return st;
}

/* ---- List ---- */

typedef struct entry_listing {
  lode_store *store;
  lode_collection_list *list;
} entry_listing;

static uint64_t qdrant_count_in(const remote_call *call) {
  uint32_t node = call->answer.nodes[call->result].type == JSON_NODE_OBJECT
                      ? json_get(&call->answer, call->result, STR_LIT("count"))
                      : 0;
  return node && call->answer.nodes[node].type == JSON_NODE_INT && call->answer.nodes[node].u.i > 0
             ? (uint64_t)call->answer.nodes[node].u.i
             : 0;
}

static lode_status qdrant_count_points(lode_store *s, const remote_entry *k, bool pending, uint64_t *count,
                                       lode_error *err) {
  remote_call call = {0};
  remote_generation_path(&call, s, k, "/points/count");
  strbuf_addf(&call.body, "{\"exact\":true%s}",
              pending ? ",\"filter\":{\"must\":[{\"key\":\"p\",\"match\":{\"value\":true}}]}" : "");
  lode_status st = remote_call_send(s, "POST", &call, err);
  *count = st == LODE_OK ? qdrant_count_in(&call) : 0;
  remote_call_release(&call);
  return st;
}

lode_status remote_count_points(lode_store *s, const remote_entry *k, uint64_t *records, uint64_t *pending,
                                lode_error *err) {
  TRY(qdrant_count_points(s, k, false, records, err));
  return pending ? qdrant_count_points(s, k, true, pending, err) : LODE_OK;
}

static lode_status entry_add_info(void *ctx, const remote_entry *k, lode_error *err) {
  entry_listing *l = ctx;
  lode_collection_info info = {
      .uid = k->uid,
      .name = k->name,
      .metric = k->metric,
      .dimension = k->spec.dim,
      .metadata = k->metadata,
      .embedder = k->spec.embedder,
      .embedder_dim = k->spec.embedder_dim,
  };
  lode_status st = remote_count_points(l->store, k, &info.records, &info.pending, err);
  if (st == LODE_NOT_FOUND) return LODE_OK; /* dropped meanwhile */
  return st == LODE_OK ? iface_coll_list_add(l->list, &info, err) : st;
}

static int entry_compare_names(const void *a, const void *b) {
  return str_cmp(((const lode_collection_info *)a)->name, ((const lode_collection_info *)b)->name);
}

lode_status remote_collections(lode_store *s, lode_collection_list **out, lode_error *err) {
  entry_listing l = {.store = s};
  err_clear(err);
  *out = NULL;
  TRY(iface_coll_list_new(&l.list, err));
  lode_status st = remote_registry_each(s, entry_add_info, &l, err);
  if (st == LODE_OK) {
    if (l.list->n) qsort(l.list->infos, l.list->n, sizeof *l.list->infos, entry_compare_names);
    *out = l.list;
  } else {
    lode_collection_list_free(l.list);
  }
  return st;
}
