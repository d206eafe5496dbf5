/* SPDX-License-Identifier: Apache-2.0 */
/* remote_collection.c - collections of Lode: their handles, and the Qdrant collections that hold their records. */
#include "remote/remote_registry.h"

#include "os/os.h"

static const char *const qdrant_distances[] = {[LODE_L2] = "Euclid", [LODE_COSINE] = "Cosine", [LODE_IP] = "Dot"};

/* ---- Qdrant collections ---- */

void remote_generation_path(remote_call *call, const remote_store *s, const remote_entry *k, const char *format, ...) {
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

static lode_status qdrant_make_index(remote_store *s, const remote_entry *k, const char *field, const char *schema,
                                     lode_error *err) {
  remote_call call = {0};
  remote_generation_path(&call, s, k, "/index?wait=true");
  strbuf_addf(&call.body, "{\"field_name\":\"%s\",\"field_schema\":\"%s\"}", field, schema);
  lode_status st = remote_call_send(s, "PUT", &call, err);
  remote_call_release(&call);
  return st;
}

lode_status remote_generation_create(remote_store *s, const remote_entry *k, lode_error *err) {
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

lode_status remote_generation_drop(remote_store *s, const remote_entry *k, lode_error *err) {
  remote_call call = {0};
  remote_generation_path(&call, s, k, "%s", "");
  lode_status st = remote_call_send(s, "DELETE", &call, err);
  remote_call_release(&call);
  return st == LODE_NOT_FOUND ? LODE_OK : st;
}

lode_status remote_index_field(remote_collection *c, const remote_entry *k, const char *field, const char *schema,
                               lode_error *err) {
  size_t len = strlen(field) + 1;
  bool known = false;
  if (c->store->head.options->read_only) return LODE_OK;
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

/* Stores a copy of the entry in the handle. */
static lode_status remote_update_handle(remote_collection *c, const remote_entry *k, lode_error *err) {
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
  remote_collection *c;
  bool found;
} entry_finding;

static lode_status entry_find_uid(void *ctx, const remote_entry *k, lode_error *err) {
  entry_finding *f = ctx;
  if (k->uid != f->uid) return LODE_OK;
  f->found = true;
  return remote_update_handle(f->c, k, err);
}

lode_status remote_entry_of(remote_collection *c, bool fresh, mem_arena *arena, remote_entry *entry, lode_error *err) {
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

static lode_status entry_set_embedder(remote_store *s, const remote_entry *k, lode_error *err) {
  strbuf fields = {0};
  strbuf_addstr(&fields, "\"embedder\":");
  json_put_string(&fields, k->spec.embedder);
  strbuf_addf(&fields, ",\"embedder_dim\":%u", k->spec.embedder_dim);
  lode_status st = fields.failed ? err_nomem(err)
                                 : remote_registry_change(s, k->name, NULL, (lode_str){fields.data, fields.len}, err);
  strbuf_release(&fields);
  return st;
}

/* ---- Opening ---- */

typedef struct handle_opening {
  remote_store *store;
  lode_str name;
  const lode_collection_options *options;
  mem_arena arena; /* strings of the entry */
  remote_entry entry;
} handle_opening;

static lode_status handle_use_existing(handle_opening *o, lode_error *err) {
  const lode_collection_options *want = o->options;
  remote_entry *k = &o->entry;
  char quoted[256];
  bool read_only = o->store->head.options->read_only;
  if (k->spec.dim && k->spare && !read_only) /* no writes before the old generation is dropped */
    TRY(remote_wait_unlocked(o->store, o->name, &o->arena, k, err));
  if (want->create && want->must_create)
    return err_set(err, LODE_EXISTS, "there is a collection %s already", str_quote(o->name, quoted, sizeof quoted));
  if (k->spec.embedder.data || !want->embedder.data || read_only) return LODE_OK;
  k->spec.embedder = want->embedder;
  k->spec.embedder_dim = want->embedder_dim;
  return entry_set_embedder(o->store, k, err);
}

/* The names of the counters as a JSON array, or absent. */
static lode_status handle_put_counters(handle_opening *o, strbuf *out, lode_str *text, lode_error *err) {
  for (size_t i = 0; i < o->options->n_counters; i++) {
    strbuf_addch(out, i ? ',' : '[');
    json_put_string(out, o->options->counters[i]);
  }
  if (o->options->n_counters) strbuf_addch(out, ']');
  *text = out->len ? (lode_str){out->data, out->len} : (lode_str){0};
  return out->failed ? err_nomem(err) : LODE_OK;
}

/* Creates `mine`. Another process may do the same: the entry of the registry decides. */
static lode_status handle_register(handle_opening *o, const remote_entry *mine, lode_error *err) {
  bool found;
  TRY(remote_generation_create(o->store, mine, err));
  TRY(remote_registry_add(o->store, mine, err));
  TRY(remote_registry_load(o->store, o->name, &o->arena, &o->entry, &found, err));
  if (!found || o->entry.uid != mine->uid) TRY(remote_generation_drop(o->store, mine, err));
  return found ? LODE_OK : entry_dropped(err);
}

static lode_status handle_create(handle_opening *o, lode_error *err) {
  const lode_collection_options *want = o->options;
  const remote_store *s = o->store;
  strbuf counters = {0};
  char quoted[256];
  if (!want->create)
    return err_set(err, LODE_NOT_FOUND, "there is no collection %s in this store",
                   str_quote(o->name, quoted, sizeof quoted));
  if (s->head.options->read_only)
    return err_set(err, LODE_READONLY,
                   "the store is open for reading only: open it without read_only to make collections");
  remote_entry mine = {
      .uid = (rand_u64() >> 2) | 1,
      .generation = 1,
      .metric = want->metric,
      .spec = {.embedder = want->embedder, .embedder_dim = want->embedder_dim, .dim = 0},
      .name = o->name,
      .metadata = want->metadata,
      .shards = want->shards ? want->shards : s->shards,
      .replicas = want->replicas ? want->replicas : s->replicas,
      .write_consistency = want->write_consistency ? want->write_consistency : s->write_consistency,
  };
  lode_status st = handle_put_counters(o, &counters, &mine.counters, err);
  if (st == LODE_OK) st = handle_register(o, &mine, err);
  strbuf_release(&counters);
  return st;
}

static lode_status handle_new(const handle_opening *o, remote_collection **out, lode_error *err) {
  lode_str embedder = o->options->embedder;
  remote_collection *c = mem_calloc(1, sizeof *c + (embedder.data ? embedder.len : 0));
  if (!c) return err_nomem(err);
  c->head = (lode_collection){.engine = &remote_table, .store = &o->store->head};
  c->store = o->store;
  c->uid = o->entry.uid;
  c->spec.embedder_dim = o->options->embedder_dim;
  if (embedder.data) {
    memcpy(c + 1, embedder.data, embedder.len);
    c->spec.embedder = (lode_str){(const char *)(c + 1), embedder.len};
  }
  (void)pthread_mutex_init(&c->lock, NULL);
  mem_arena_init(&c->arena, 0);
  lode_status st = remote_update_handle(c, &o->entry, err);
  if (st == LODE_OK)
    *out = c;
  else
    remote_handle_close(c);
  return st;
}

lode_status remote_handle_open(remote_store *s, lode_str name, const lode_collection_options *options,
                               remote_collection **out, lode_error *err) {
  static const lode_collection_options none;
  handle_opening o = {.store = s, .name = name, .options = options ? options : &none};
  lode_status st;
  bool found;
  *out = NULL;
  mem_arena_init(&o.arena, 0);
  TRY_GOTO(iface_check_name(name, "the name of the collection", err));
  TRY_GOTO(iface_check_coll_options(o.options, err));
  TRY_GOTO(remote_registry_load(s, name, &o.arena, &o.entry, &found, err));
  TRY_GOTO(found ? handle_use_existing(&o, err) : handle_create(&o, err));
  st = handle_new(&o, out, err);
done:
  mem_arena_release(&o.arena);
  return st;
}

void remote_handle_close(remote_collection *c) {
  if (!c) return;
  (void)pthread_mutex_destroy(&c->lock);
  mem_arena_release(&c->arena);
  strbuf_release(&c->indexed);
  mem_free(c);
}

lode_status remote_collection_open(lode_store *head, lode_str name, const lode_collection_options *options,
                                   lode_collection **out, lode_error *err) {
  remote_collection *c;
  err_clear(err);
  *out = NULL;
  TRY(remote_handle_open(remote_store_of(head), name, options, &c, err));
  *out = &c->head;
  return LODE_OK;
}

void remote_collection_close(lode_collection *head) { remote_handle_close(remote_collection_of(head)); }

/* ---- Changes ---- */

static lode_status entry_load_existing(remote_store *s, lode_str name, mem_arena *arena, remote_entry *k,
                                       lode_error *err) {
  char quoted[256];
  bool found;
  if (s->head.options->read_only)
    return err_set(err, LODE_READONLY, "the store is open for reading only: open it without read_only to write");
  TRY(iface_check_name(name, "the name of the collection", err));
  TRY(remote_registry_load(s, name, arena, k, &found, err));
  if (found) return LODE_OK;
  return err_set(err, LODE_NOT_FOUND, "there is no collection %s in this store",
                 str_quote(name, quoted, sizeof quoted));
}

lode_status remote_collection_rename(lode_store *head, lode_str name, lode_str new_name, lode_error *err) {
  remote_store *s = remote_store_of(head);
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
  if (locked) err_ignore(remote_lock_release(s, name, &lock, &unused)); /* if it fails, the lock goes stale */
  mem_arena_release(&arena);
  return st;
}

lode_status remote_collection_set_metadata(lode_store *head, lode_str name, lode_str metadata, lode_error *err) {
  remote_store *s = remote_store_of(head);
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

lode_status remote_collection_drop(lode_store *head, lode_str name, lode_error *err) {
  remote_store *s = remote_store_of(head);
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
  remote_store *store;
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

static lode_status qdrant_count_points(remote_store *s, const remote_entry *k, bool pending, uint64_t *count,
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

lode_status remote_count_points(remote_store *s, const remote_entry *k, uint64_t *records, uint64_t *pending,
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

lode_status remote_collections(lode_store *head, lode_collection_list **out, lode_error *err) {
  remote_store *s = remote_store_of(head);
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
