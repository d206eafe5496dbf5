/* registry.c - collections: a point of the registry for each, and a collection of Qdrant for its records.
 *
 * The registry's point is named after the collection's name, so that two who make the same collection at the same moment
 * write the same point: whoever reads it back sees who won. A handle keeps what it last saw and asks again when Qdrant does not
 * know the collection any more (it was dropped, or its generation changed), and when a vector comes and the dimension is not known.
 */
#include "remote.h"

#include "base/os.h"

static const char *const distances[] = {[LODE_L2] = "Euclid", [LODE_COSINE] = "Cosine", [LODE_IP] = "Dot"};

/* ---- A point of the registry ---- */

static void put_text(lode__buf *out, const char *name, lode_str s) {
  lode__buf_addf(out, ",\"%s\":", name);
  if (s.data) lode__json_put_string(out, s);
  else lode__buf_adds(out, "null");
}

static void put_kind(lode__buf *out, const lode__remote_kind *k) {
  char uuid[LODE__UUID_TEXT];
  lode__point_uuid(k->name, uuid);
  lode__buf_addf(out, "{\"id\":\"%s\",\"vector\":{},\"payload\":{\"uid\":\"%llu\",\"generation\":%u,\"metric\":\"%s\",\"dim\":%u,\"embedder_dim\":%u",
                 uuid, (unsigned long long)k->uid, k->generation, lode_metric_name(k->metric), k->fit.dim, k->fit.embedder_dim);
  put_text(out, "name", k->name);
  put_text(out, "metadata", k->metadata);
  put_text(out, "embedder", k->fit.embedder);
  put_text(out, "counters", k->counters);
  lode__buf_addf(out, ",\"shards\":%u,\"replicas\":%u,\"write_consistency\":%u}}", k->shards, k->replicas, k->write_consistency);
}

static bool take_text(const lode__json *j, uint32_t payload, const char *name, lode__arena *arena, lode_str *out) {
  uint32_t node = lode__json_get(j, payload, lode__str(name));
  *out = (lode_str){NULL, 0};
  if (!node || j->nodes[node].type != LODE__JSON_STRING) return true;
  out->data = lode__arena_copy(arena, j->nodes[node].u.s.data, j->nodes[node].u.s.len);
  out->len = j->nodes[node].u.s.len;
  return out->data != NULL;
}

static uint64_t take_count(const lode__json *j, uint32_t payload, const char *name) {
  uint32_t node = lode__json_get(j, payload, lode__str(name));
  if (!node || j->nodes[node].type != LODE__JSON_INT || j->nodes[node].u.i < 0) return 0;
  return (uint64_t)j->nodes[node].u.i;
}

static uint32_t take_int(const lode__json *j, uint32_t payload, const char *name) {
  uint64_t n = take_count(j, payload, name);
  return n > UINT32_MAX ? 0 : (uint32_t)n;
}

static lode_status take_kind(const lode__json *j, uint32_t point, lode__arena *arena, lode__remote_kind *k, lode_error *err) {
  lode_str uid, metric;
  uint32_t payload = j->nodes[point].type == LODE__JSON_OBJECT ? lode__json_get(j, point, LODE__LIT("payload")) : 0;
  *k = (lode__remote_kind){0};
  if (!payload || j->nodes[payload].type != LODE__JSON_OBJECT)
    return lode__fail(err, LODE_CORRUPT, "the cluster's registry has an entry that no lode has written");
  if (!take_text(j, payload, "uid", arena, &uid) || !take_text(j, payload, "metric", arena, &metric) ||
      !take_text(j, payload, "name", arena, &k->name) || !take_text(j, payload, "metadata", arena, &k->metadata) ||
      !take_text(j, payload, "embedder", arena, &k->fit.embedder) || !take_text(j, payload, "counters", arena, &k->counters))
    return lode__fail_nomem(err);
  for (size_t i = 0; i < uid.len && uid.data[i] >= '0' && uid.data[i] <= '9'; i++) k->uid = k->uid * 10 + (uint64_t)(uid.data[i] - '0');
  k->generation = take_int(j, payload, "generation");
  k->fit.dim = take_int(j, payload, "dim");
  k->fit.embedder_dim = take_int(j, payload, "embedder_dim");
  k->shards = take_int(j, payload, "shards");
  k->replicas = take_int(j, payload, "replicas");
  k->write_consistency = take_int(j, payload, "write_consistency");
  if (!k->uid || !k->name.data || !metric.data || !lode_metric_parse(metric, &k->metric) || k->fit.dim > LODE_MAX_DIMENSION)
    return lode__fail(err, LODE_CORRUPT, "the cluster's registry has an entry that no lode has written");
  return LODE_OK;
}

/* Writes entries, and takes one away (absent: none), in one request. */
static lode_status save(lode_store *s, const lode__remote_kind *k, lode_str gone, lode_error *err) {
  lode__call call = {0};
  char uuid[LODE__UUID_TEXT];
  lode__call_path(&call, "/collections/%s-registry/points/batch?wait=true&ordering=strong", s->prefix);
  lode__buf_adds(&call.body, "{\"operations\":[");
  if (k) {
    lode__buf_adds(&call.body, "{\"upsert\":{\"points\":[");
    put_kind(&call.body, k);
    lode__buf_adds(&call.body, "]}}");
  }
  if (gone.data) {
    lode__point_uuid(gone, uuid);
    lode__buf_addf(&call.body, "%s{\"delete\":{\"points\":[\"%s\"]}}", k ? "," : "", uuid);
  }
  lode__buf_adds(&call.body, "]}");
  lode_status st = lode__call_send(s, "POST", &call, err);
  lode__call_release(&call);
  return st;
}

/* *found: there is one of that name. */
static lode_status load(lode_store *s, lode_str name, lode__arena *arena, lode__remote_kind *k, bool *found, lode_error *err) {
  lode__call call = {0};
  char uuid[LODE__UUID_TEXT];
  lode__point_uuid(name, uuid);
  *found = false;
  lode__call_path(&call, "/collections/%s-registry/points", s->prefix);
  lode__buf_addf(&call.body, "{\"ids\":[\"%s\"],\"with_payload\":true,\"with_vector\":false}", uuid);
  lode_status st = lode__call_send(s, "POST", &call, err);
  const lode__json_node *result = st == LODE_OK ? &call.answer.nodes[call.result] : NULL;
  if (st == LODE_OK && result->type == LODE__JSON_ARRAY && result->u.count > 0) {
    st = take_kind(&call.answer, call.result + 1, arena, k, err);
    *found = st == LODE_OK;
  }
  lode__call_release(&call);
  return st;
}

typedef lode_status kind_fn(void *ctx, const lode__remote_kind *k, lode_error *err);

static lode_status each(lode_store *s, kind_fn *fn, void *ctx, lode_error *err) {
  lode__call call = {0};
  lode__arena arena;
  lode__buf next = {0};
  lode_status st = LODE_OK;
  lode__arena_init(&arena, 0);
  do {
    lode__call_path(&call, "/collections/%s-registry/points/scroll", s->prefix);
    lode__buf_adds(&call.body, "{\"limit\":1000,\"with_payload\":true,\"with_vector\":false");
    if (next.len) lode__buf_addf(&call.body, ",\"offset\":%.*s", (int)next.len, next.data);
    lode__buf_adds(&call.body, "}");
    LODE__GOTO(lode__call_send(s, "POST", &call, err));
    next.len = 0;
    uint32_t points = call.answer.nodes[call.result].type == LODE__JSON_OBJECT
                          ? lode__json_get(&call.answer, call.result, LODE__LIT("points")) : 0;
    uint32_t offset = points ? lode__json_get(&call.answer, call.result, LODE__LIT("next_page_offset")) : 0;
    if (!points || call.answer.nodes[points].type != LODE__JSON_ARRAY) {
      st = lode__fail(err, LODE_CORRUPT, "the cluster's answer is not one of Qdrant's (no points)");
      goto done;
    }
    for (uint32_t at = points + 1; at < call.answer.nodes[points].next; at = call.answer.nodes[at].next) {
      lode__remote_kind k;
      lode__arena_reset(&arena);
      LODE__GOTO(take_kind(&call.answer, at, &arena, &k, err));
      LODE__GOTO(fn(ctx, &k, err));
    }
    if (offset && call.answer.nodes[offset].type != LODE__JSON_NULL) lode__json_put_node(&next, &call.answer, offset);
  } while (next.len);
done:
  lode__arena_release(&arena);
  lode__call_release(&call);
  lode__buf_release(&next);
  return st;
}

/* ---- Collections of Qdrant ---- */

void lode__remote_path(lode__call *call, const lode_store *s, const lode__remote_kind *k, const char *format, ...) {
  char text[400];
  va_list ap;
  va_start(ap, format);
  int n = vsnprintf(text, sizeof text, format, ap);
  va_end(ap);
  if (n < 0 || (size_t)n >= sizeof text) call->path.failed = true;
  else lode__call_path(call, "/collections/%s-%llx-%u%s", s->prefix, (unsigned long long)k->uid, k->generation, text);
}

static void put_collection(lode__buf *out, const lode__remote_kind *k) {
  lode__buf_adds(out, "{\"vectors\":{");
  if (k->fit.dim) lode__buf_addf(out, "\"v\":{\"size\":%u,\"distance\":\"%s\"}", k->fit.dim, distances[k->metric]);
  lode__buf_adds(out, "},\"sparse_vectors\":{\"t\":{\"modifier\":\"idf\"}},\"on_disk_payload\":true");
  if (k->fit.dim) lode__buf_adds(out, ",\"quantization_config\":{\"scalar\":{\"type\":\"int8\",\"always_ram\":true}}");
  if (k->shards) lode__buf_addf(out, ",\"shard_number\":%u", k->shards);
  if (k->replicas) lode__buf_addf(out, ",\"replication_factor\":%u", k->replicas);
  if (k->write_consistency) lode__buf_addf(out, ",\"write_consistency_factor\":%u", k->write_consistency);
  lode__buf_addc(out, '}');
}

static lode_status make_index(lode_store *s, const lode__remote_kind *k, const char *field, const char *schema, lode_error *err) {
  lode__call call = {0};
  lode__remote_path(&call, s, k, "/index?wait=true");
  lode__buf_addf(&call.body, "{\"field_name\":\"%s\",\"field_schema\":\"%s\"}", field, schema);
  lode_status st = lode__call_send(s, "PUT", &call, err);
  lode__call_release(&call);
  return st;
}

static lode_status make_collection(lode_store *s, const lode__remote_kind *k, lode_error *err) {
  lode__call call = {0};
  lode__remote_path(&call, s, k, "%s", "");
  put_collection(&call.body, k);
  lode_status st = lode__call_send(s, "PUT", &call, err);
  if (st == LODE_REFUSED && call.response.status == 409) st = LODE_OK; /* there already: a repeated request */
  lode__call_release(&call);
  if (st == LODE_OK) st = make_index(s, k, "n", "integer", err);
  if (st == LODE_OK) st = make_index(s, k, "p", "bool", err);
  return st;
}

static lode_status remove_collection(lode_store *s, const lode__remote_kind *k, lode_error *err) {
  lode__call call = {0};
  lode__remote_path(&call, s, k, "%s", "");
  lode_status st = lode__call_send(s, "DELETE", &call, err);
  lode__call_release(&call);
  return st == LODE_NOT_FOUND ? LODE_OK : st;
}

lode_status lode__remote_index(lode_collection *c, const lode__remote_kind *k, const char *field, const char *schema,
                               lode_error *err) {
  size_t len = strlen(field) + 1;
  bool known = false;
  if (c->store->options->read_only) return LODE_OK;
  pthread_mutex_lock(&c->lock);
  for (size_t at = 0; at < c->indexed.len && !known; at += strlen(c->indexed.data + at) + 1)
    known = strcmp(c->indexed.data + at, field) == 0;
  pthread_mutex_unlock(&c->lock);
  if (known) return LODE_OK;
  LODE__TRY(make_index(c->store, k, field, schema, err));
  pthread_mutex_lock(&c->lock);
  lode__buf_add(&c->indexed, field, len);
  pthread_mutex_unlock(&c->lock);
  return LODE_OK;
}

/* ---- Handles ---- */

static bool copy_kind(lode__arena *arena, const lode__remote_kind *from, lode__remote_kind *to) {
  lode_str *strings[] = {&to->name, &to->metadata, &to->counters, &to->fit.embedder};
  *to = *from;
  for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
    if (strings[i]->data && !(strings[i]->data = lode__arena_copy(arena, strings[i]->data, strings[i]->len))) return false;
  return true;
}

/* What the handle knows from now on. */
static lode_status remember(lode_collection *c, const lode__remote_kind *k, lode_error *err) {
  lode__arena arena;
  lode__remote_kind copy;
  lode__arena_init(&arena, 0);
  if (!copy_kind(&arena, k, &copy)) {
    lode__arena_release(&arena);
    return lode__fail_nomem(err);
  }
  pthread_mutex_lock(&c->lock);
  if (c->kind.generation != copy.generation) c->indexed.len = 0;
  lode__arena old = c->arena;
  c->arena = arena;
  c->kind = copy;
  pthread_mutex_unlock(&c->lock);
  lode__arena_release(&old);
  return LODE_OK;
}

static lode_status dropped(lode_error *err) {
  return lode__fail(err, LODE_NOT_FOUND, "the collection was dropped: open it again, or make it anew");
}

/* Finds the entry with this number, whatever its name is now. */
typedef struct finding {
  uint64_t uid;
  lode_collection *c;
  bool found;
} finding;

static lode_status find_uid(void *ctx, const lode__remote_kind *k, lode_error *err) {
  finding *f = ctx;
  if (k->uid != f->uid) return LODE_OK;
  f->found = true;
  return remember(f->c, k, err);
}

lode_status lode__remote_kind_of(lode_collection *c, bool fresh, lode__arena *arena, lode__remote_kind *kind, lode_error *err) {
  if (fresh) {
    finding f = {c->uid, c, false};
    LODE__TRY(each(c->store, find_uid, &f, err));
    if (!f.found) return dropped(err);
  }
  pthread_mutex_lock(&c->lock);
  bool copied = copy_kind(arena, &c->kind, kind);
  pthread_mutex_unlock(&c->lock);
  return copied ? LODE_OK : lode__fail_nomem(err);
}

lode_status lode__remote_collection_open(lode_store *s, lode_str name, const lode_collection_options *options,
                                         lode_collection **out, lode_error *err) {
  static const lode_collection_options none;
  const lode_collection_options *o = options ? options : &none;
  lode__remote_kind k;
  lode__arena arena;
  lode__buf counters = {0};
  lode_collection *c = NULL;
  lode_status st;
  bool found;
  lode__error_clear(err);
  *out = NULL;
  lode__arena_init(&arena, 0);
  LODE__GOTO(lode__check_name(name, "the name of the collection", err));
  LODE__GOTO(lode__check_collection_options(o, err));
  LODE__GOTO(load(s, name, &arena, &k, &found, err));
  if (found && o->create && o->must_create) {
    char quoted[256];
    st = lode__fail(err, LODE_EXISTS, "there is a collection %s already", lode__quote(name, quoted, sizeof quoted));
    goto done;
  }
  if (!found && !o->create) {
    char quoted[256];
    st = lode__fail(err, LODE_NOT_FOUND, "there is no collection %s in this store", lode__quote(name, quoted, sizeof quoted));
    goto done;
  }
  if (!found) {
    if (s->options->read_only) {
      st = lode__fail(err, LODE_READONLY, "the store is open for reading only: open it without read_only to make collections");
      goto done;
    }
    if (o->n_counters) {
      lode__buf_addc(&counters, '[');
      for (size_t i = 0; i < o->n_counters; i++) {
        if (i) lode__buf_addc(&counters, ',');
        lode__json_put_string(&counters, o->counters[i]);
      }
      lode__buf_addc(&counters, ']');
    }
    k = (lode__remote_kind){
        .uid = (lode__random() >> 2) | 1,
        .generation = 1,
        .metric = o->metric,
        .fit = {.embedder = o->embedder, .embedder_dim = o->embedder_dim, .dim = 0},
        .name = name,
        .metadata = o->metadata,
        .counters = counters.len ? (lode_str){counters.data, counters.len} : (lode_str){0},
        .shards = o->shards ? o->shards : s->shards,
        .replicas = o->replicas ? o->replicas : s->replicas,
        .write_consistency = o->write_consistency ? o->write_consistency : s->write_consistency,
    };
    if (counters.failed) {
      st = lode__fail_nomem(err);
      goto done;
    }
    LODE__GOTO(make_collection(s, &k, err));
    LODE__GOTO(save(s, &k, (lode_str){0}, err));
    lode__remote_kind mine = k;
    LODE__GOTO(load(s, name, &arena, &k, &found, err)); /* who won? */
    if (!found || k.uid != mine.uid) LODE__GOTO(remove_collection(s, &mine, err));
    if (!found) {
      st = dropped(err);
      goto done;
    }
  } else if (!k.fit.embedder.data && o->embedder.data && !s->options->read_only) {
    k.fit.embedder = o->embedder;
    k.fit.embedder_dim = o->embedder_dim;
    LODE__GOTO(save(s, &k, (lode_str){0}, err));
  }
  c = lode__alloc_zero(1, sizeof *c + (o->embedder.data ? o->embedder.len : 0));
  if (!c) {
    st = lode__fail_nomem(err);
    goto done;
  }
  c->engine = s->engine;
  c->store = s;
  c->uid = k.uid;
  c->fit.embedder_dim = o->embedder_dim;
  if (o->embedder.data) {
    memcpy(c + 1, o->embedder.data, o->embedder.len);
    c->fit.embedder = (lode_str){(const char *)(c + 1), o->embedder.len};
  }
  (void)pthread_mutex_init(&c->lock, NULL);
  lode__arena_init(&c->arena, 0);
  LODE__GOTO(remember(c, &k, err));
  *out = c;
  c = NULL;
done:
  lode__remote_collection_close(c);
  lode__arena_release(&arena);
  lode__buf_release(&counters);
  return st;
}

void lode__remote_collection_close(lode_collection *c) {
  if (!c) return;
  (void)pthread_mutex_destroy(&c->lock);
  lode__arena_release(&c->arena);
  lode__buf_release(&c->indexed);
  lode__free(c);
}

/* ---- Changes ---- */

static lode_status load_known(lode_store *s, lode_str name, lode__arena *arena, lode__remote_kind *k, lode_error *err) {
  char quoted[256];
  bool found;
  if (s->options->read_only) return lode__fail(err, LODE_READONLY, "the store is open for reading only: open it without read_only to write");
  LODE__TRY(lode__check_name(name, "the name of the collection", err));
  LODE__TRY(load(s, name, arena, k, &found, err));
  if (found) return LODE_OK;
  return lode__fail(err, LODE_NOT_FOUND, "there is no collection %s in this store", lode__quote(name, quoted, sizeof quoted));
}

lode_status lode__remote_collection_rename(lode_store *s, lode_str name, lode_str new_name, lode_error *err) {
  lode__remote_kind k, other;
  lode__arena arena;
  lode_status st;
  bool found;
  lode__error_clear(err);
  lode__arena_init(&arena, 0);
  LODE__GOTO(lode__check_name(new_name, "the new name of the collection", err));
  LODE__GOTO(load_known(s, name, &arena, &k, err));
  if (lode__str_eq(name, new_name)) goto done;
  LODE__GOTO(load(s, new_name, &arena, &other, &found, err));
  if (found) {
    char quoted[256];
    st = lode__fail(err, LODE_EXISTS, "there is a collection %s already", lode__quote(new_name, quoted, sizeof quoted));
    goto done;
  }
  k.name = new_name;
  st = save(s, &k, name, err);
done:
  lode__arena_release(&arena);
  return st;
}

lode_status lode__remote_collection_set_metadata(lode_store *s, lode_str name, lode_str metadata, lode_error *err) {
  lode__remote_kind k;
  lode__arena arena;
  lode_status st;
  lode__error_clear(err);
  lode__arena_init(&arena, 0);
  LODE__GOTO(lode__check_object(metadata, "the collection's metadata", err));
  LODE__GOTO(load_known(s, name, &arena, &k, err));
  k.metadata = metadata;
  st = save(s, &k, (lode_str){0}, err);
done:
  lode__arena_release(&arena);
  return st;
}

lode_status lode__remote_collection_drop(lode_store *s, lode_str name, lode_error *err) {
  lode__remote_kind k;
  lode__arena arena;
  lode_status st;
  lode__error_clear(err);
  lode__arena_init(&arena, 0);
  LODE__GOTO(load_known(s, name, &arena, &k, err));
  LODE__GOTO(save(s, NULL, name, err));
  st = remove_collection(s, &k, err);
done:
  lode__arena_release(&arena);
  return st;
}

/* ---- The first vector ---- */

/* Records without vectors move to the collection that has room for them. */
static lode_status move_points(lode_collection *c, const lode__remote_kind *from, const lode__remote_kind *to, lode_error *err) {
  static const lode_selection everything;
  enum { BATCH = 200 };
  lode__remote_select select = {0};
  lode__scroll scroll = {0};
  lode__call call = {0};
  lode_status st;
  size_t n = 0;
  bool more = true;
  LODE__GOTO(lode__remote_select_init(&select, c, &everything, err));
  lode__scroll_init(&scroll, &select, from, LODE_DOCUMENT | LODE_METADATA);
  while (more) {
    lode__point p;
    LODE__GOTO(lode__scroll_next(&scroll, &p, &more, err));
    if (more) {
      if (n == 0) {
        lode__remote_path(&call, c->store, to, "/points?wait=true");
        lode__buf_adds(&call.body, "{\"points\":[");
      }
      if (n) lode__buf_addc(&call.body, ',');
      LODE__GOTO(lode__point_put(&call.body, &p, to->metric, err));
      n++;
    }
    if (n == 0 || (more && n < BATCH)) continue;
    lode__buf_adds(&call.body, "]}");
    LODE__GOTO(lode__call_send(c->store, "PUT", &call, err));
    n = 0;
  }
done:
  lode__scroll_release(&scroll);
  lode__remote_select_release(&select);
  lode__call_release(&call);
  return st;
}

lode_status lode__remote_fix_dimension(lode_collection *c, uint32_t dim, lode__arena *arena, lode__remote_kind *k, lode_error *err) {
  LODE__TRY(lode__remote_kind_of(c, true, arena, k, err));
  if (k->fit.dim) return LODE_OK; /* somebody else was first */
  lode__remote_kind wide = *k;
  wide.fit.dim = dim;
  wide.generation++;
  LODE__TRY(make_collection(c->store, &wide, err));
  LODE__TRY(move_points(c, k, &wide, err));
  LODE__TRY(save(c->store, &wide, (lode_str){0}, err));
  LODE__TRY(remove_collection(c->store, k, err));
  LODE__TRY(remember(c, &wide, err));
  *k = wide;
  return LODE_OK;
}

/* ---- List ---- */

typedef struct listing {
  lode_store *store;
  lode_collection_list *list;
} listing;

static lode_status count_points(lode_store *s, const lode__remote_kind *k, bool pending, uint64_t *count, lode_error *err) {
  lode__call call = {0};
  lode__remote_path(&call, s, k, "/points/count");
  lode__buf_addf(&call.body, "{\"exact\":true%s}", pending ? ",\"filter\":{\"must\":[{\"key\":\"p\",\"match\":{\"value\":true}}]}" : "");
  lode_status st = lode__call_send(s, "POST", &call, err);
  *count = st == LODE_OK ? take_count(&call.answer, call.result, "count") : 0;
  lode__call_release(&call);
  return st;
}

lode_status lode__remote_counts(lode_store *s, const lode__remote_kind *k, uint64_t *records, uint64_t *pending, lode_error *err) {
  LODE__TRY(count_points(s, k, false, records, err));
  return pending ? count_points(s, k, true, pending, err) : LODE_OK;
}

static lode_status add_info(void *ctx, const lode__remote_kind *k, lode_error *err) {
  listing *l = ctx;
  lode_collection_info info = {
      .uid = k->uid,
      .name = k->name,
      .metric = k->metric,
      .dimension = k->fit.dim,
      .metadata = k->metadata,
      .embedder = k->fit.embedder,
      .embedder_dim = k->fit.embedder_dim,
  };
  lode_status st = lode__remote_counts(l->store, k, &info.records, &info.pending, err);
  if (st == LODE_NOT_FOUND) return LODE_OK; /* dropped meanwhile */
  return st == LODE_OK ? lode__collection_list_add(l->list, &info, err) : st;
}

static int by_name(const void *a, const void *b) {
  return lode__str_cmp(((const lode_collection_info *)a)->name, ((const lode_collection_info *)b)->name);
}

lode_status lode__remote_collections(lode_store *s, lode_collection_list **out, lode_error *err) {
  listing l = {.store = s};
  lode__error_clear(err);
  *out = NULL;
  LODE__TRY(lode__collection_list_new(&l.list, err));
  lode_status st = each(s, add_info, &l, err);
  if (st == LODE_OK) {
    if (l.list->n) qsort(l.list->infos, l.list->n, sizeof *l.list->infos, by_name);
    *out = l.list;
  } else {
    lode_collection_list_free(l.list);
  }
  return st;
}
