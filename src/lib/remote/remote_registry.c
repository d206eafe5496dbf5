/* SPDX-License-Identifier: Apache-2.0 */
/* remote_registry.c - the registry: a point for each collection.
 *
 * The id of a registry point is derived from the collection's name, so two processes that create the same collection
 * at the same time write the same point: the first one's stays, and reading it back shows whose it is. A handle keeps
 * the entry that it read last, and reads it again if Qdrant reports that the generation does not exist (the
 * collection was dropped, or its generation changed), or if a vector comes and the dimension is not known.
 *
 * Only one process at a time may change the name or the generation of an entry. Its field `lock` holds the token of
 * that process, set by a conditional change (remote_registry_change()). `beat` grows while the holder is alive; a
 * lock whose beat does not change for REMOTE_LOCK_STALE_MS is taken over. `spare` is a generation that the next
 * holder drops: the new one until it is in use, then the old one. So if a holder dies, no record is lost and no
 * generation is leaked.
 */
#include "remote/remote_point.h"
#include "remote/remote_registry.h"

#include "os/os.h"

/* ---- Registry points ---- */

static void registry_put_text(strbuf *out, const char *name, lode_str s) {
  strbuf_addf(out, ",\"%s\":", name);
  if (s.data)
    json_put_string(out, s);
  else
    strbuf_addstr(out, "null");
}

static void registry_put_entry(strbuf *out, const remote_entry *k) {
  char uuid[REMOTE_UUID_BYTES];
  remote_point_uuid(k->name, uuid);
  strbuf_addf(out,
              "{\"id\":\"%s\",\"vector\":{},\"payload\":{\"uid\":\"%llu\",\"generation\":%u,\"metric\":\"%s\",\"dim\":%"
              "u,\"embedder_dim\":%u",
              uuid, (unsigned long long)k->uid, k->generation, lode_metric_name(k->metric), k->spec.dim,
              k->spec.embedder_dim);
  registry_put_text(out, "name", k->name);
  registry_put_text(out, "metadata", k->metadata);
  registry_put_text(out, "embedder", k->spec.embedder);
  registry_put_text(out, "counters", k->counters);
  strbuf_addf(out, ",\"shards\":%u,\"replicas\":%u,\"write_consistency\":%u}}", k->shards, k->replicas,
              k->write_consistency);
}

static bool registry_take_text(const json_doc *j, uint32_t payload, const char *name, mem_arena *arena, lode_str *out) {
  uint32_t node = json_get(j, payload, str_of(name));
  *out = (lode_str){NULL, 0};
  if (!node || j->nodes[node].type != JSON_NODE_STRING) return true;
  out->data = mem_arena_copy(arena, j->nodes[node].u.s.data, j->nodes[node].u.s.len);
  out->len = j->nodes[node].u.s.len;
  return out->data != NULL;
}

static uint64_t registry_take_count(const json_doc *j, uint32_t payload, const char *name) {
  uint32_t node = json_get(j, payload, str_of(name));
  if (!node || j->nodes[node].type != JSON_NODE_INT || j->nodes[node].u.i < 0) return 0;
  return (uint64_t)j->nodes[node].u.i;
}

static uint32_t registry_take_int(const json_doc *j, uint32_t payload, const char *name) {
  uint64_t n = registry_take_count(j, payload, name);
  return n > UINT32_MAX ? 0 : (uint32_t)n;
}

static lode_status registry_take_entry(const json_doc *j, uint32_t point, mem_arena *arena, remote_entry *k,
                                       lode_error *err) {
  lode_str uid, metric;
  uint32_t payload = j->nodes[point].type == JSON_NODE_OBJECT ? json_get(j, point, STR_LIT("payload")) : 0;
  *k = (remote_entry){0};
  if (!payload || j->nodes[payload].type != JSON_NODE_OBJECT)
    return err_set(err, LODE_CORRUPT, "the cluster's registry has an entry that no lode has written");
  if (!registry_take_text(j, payload, "uid", arena, &uid) ||
      !registry_take_text(j, payload, "metric", arena, &metric) ||
      !registry_take_text(j, payload, "name", arena, &k->name) ||
      !registry_take_text(j, payload, "metadata", arena, &k->metadata) ||
      !registry_take_text(j, payload, "embedder", arena, &k->spec.embedder) ||
      !registry_take_text(j, payload, "counters", arena, &k->counters) ||
      !registry_take_text(j, payload, "lock", arena, &k->lock))
    return err_nomem(err);
  for (size_t i = 0; i < uid.len && uid.data[i] >= '0' && uid.data[i] <= '9'; i++)
    k->uid = k->uid * 10 + (uint64_t)(uid.data[i] - '0');
  k->generation = registry_take_int(j, payload, "generation");
  k->spare = registry_take_int(j, payload, "spare");
  k->beat = registry_take_count(j, payload, "beat");
  k->spec.dim = registry_take_int(j, payload, "dim");
  k->spec.embedder_dim = registry_take_int(j, payload, "embedder_dim");
  k->shards = registry_take_int(j, payload, "shards");
  k->replicas = registry_take_int(j, payload, "replicas");
  k->write_consistency = registry_take_int(j, payload, "write_consistency");
  if (!k->uid || !k->name.data || !metric.data || !lode_metric_parse(metric, &k->metric) ||
      k->spec.dim > LODE_MAX_DIMENSION)
    return err_set(err, LODE_CORRUPT, "the cluster's registry has an entry that no lode has written");
  return LODE_OK;
}

/* Adds the new entry and removes the old one in one request. */
lode_status remote_registry_rename(remote_store *s, const remote_entry *k, lode_str old_name, lode_error *err) {
  remote_call call = {0};
  char uuid[REMOTE_UUID_BYTES];
  remote_point_uuid(old_name, uuid);
  remote_call_path(&call, "/collections/%s-registry/points/batch?wait=true&ordering=strong", s->prefix);
  strbuf_addstr(&call.body, "{\"operations\":[{\"upsert\":{\"points\":[");
  registry_put_entry(&call.body, k);
  strbuf_addf(&call.body, "]}},{\"delete\":{\"points\":[\"%s\"]}}]}", uuid);
  lode_status st = remote_call_send(s, "POST", &call, err);
  remote_call_release(&call);
  return st;
}

/* Does not change an entry that exists already. */
lode_status remote_registry_add(remote_store *s, const remote_entry *k, lode_error *err) {
  remote_call call = {0};
  remote_call_path(&call, "/collections/%s-registry/points?wait=true&ordering=strong", s->prefix);
  strbuf_addstr(&call.body, "{\"points\":[");
  registry_put_entry(&call.body, k);
  strbuf_addstr(&call.body, "],\"update_filter\":{\"must\":[{\"is_empty\":{\"key\":\"uid\"}}]}}");
  lode_status st = remote_call_send(s, "PUT", &call, err);
  remote_call_release(&call);
  return st;
}

lode_status remote_registry_remove(remote_store *s, lode_str name, lode_error *err) {
  remote_call call = {0};
  char uuid[REMOTE_UUID_BYTES];
  remote_point_uuid(name, uuid);
  remote_call_path(&call, "/collections/%s-registry/points/delete?wait=true&ordering=strong", s->prefix);
  strbuf_addf(&call.body, "{\"points\":[\"%s\"]}", uuid);
  lode_status st = remote_call_send(s, "POST", &call, err);
  remote_call_release(&call);
  return st;
}

lode_status remote_registry_load(remote_store *s, lode_str name, mem_arena *arena, remote_entry *k, bool *found,
                                 lode_error *err) {
  remote_call call = {0};
  char uuid[REMOTE_UUID_BYTES];
  remote_point_uuid(name, uuid);
  *found = false;
  remote_call_path(&call, "/collections/%s-registry/points", s->prefix);
  strbuf_addf(&call.body, "{\"ids\":[\"%s\"],\"with_payload\":true,\"with_vector\":false}", uuid);
  lode_status st = remote_call_send(s, "POST", &call, err);
  const json_node *result = st == LODE_OK ? &call.answer.nodes[call.result] : NULL;
  if (st == LODE_OK && result->type == JSON_NODE_ARRAY && result->u.count > 0) {
    st = registry_take_entry(&call.answer, call.result + 1, arena, k, err);
    *found = st == LODE_OK;
  }
  remote_call_release(&call);
  return st;
}

lode_status remote_registry_change(remote_store *s, lode_str name, const lode_str *lock, lode_str fields,
                                   lode_error *err) {
  remote_call call = {0};
  char uuid[REMOTE_UUID_BYTES];
  remote_point_uuid(name, uuid);
  remote_call_path(&call, "/collections/%s-registry/points/payload?wait=true&ordering=strong", s->prefix);
  strbuf_addstr(&call.body, "{\"payload\":{");
  strbuf_add(&call.body, fields.data, fields.len);
  strbuf_addf(&call.body, "},\"filter\":{\"must\":[{\"has_id\":[\"%s\"]}", uuid);
  if (lock && lock->data) {
    strbuf_addstr(&call.body, ",{\"key\":\"lock\",\"match\":{\"value\":");
    json_put_string(&call.body, *lock);
    strbuf_addstr(&call.body, "}}");
  } else if (lock) {
    strbuf_addstr(&call.body, ",{\"is_empty\":{\"key\":\"lock\"}}");
  }
  strbuf_addstr(&call.body, "]}}");
  lode_status st = remote_call_send(s, "POST", &call, err);
  remote_call_release(&call);
  return st;
}

lode_status remote_registry_each(remote_store *s, remote_entry_fn *fn, void *ctx, lode_error *err) {
  remote_call call = {0};
  mem_arena arena;
  strbuf next = {0};
  lode_status st = LODE_OK;
  mem_arena_init(&arena, 0);
  do {
    remote_call_path(&call, "/collections/%s-registry/points/scroll", s->prefix);
    strbuf_addstr(&call.body, "{\"limit\":1000,\"with_payload\":true,\"with_vector\":false");
    if (next.len) strbuf_addf(&call.body, ",\"offset\":%.*s", (int)next.len, next.data);
    strbuf_addstr(&call.body, "}");
    TRY_GOTO(remote_call_send(s, "POST", &call, err));
    next.len = 0;
    uint32_t points = call.answer.nodes[call.result].type == JSON_NODE_OBJECT
                          ? json_get(&call.answer, call.result, STR_LIT("points"))
                          : 0;
    uint32_t offset = points ? json_get(&call.answer, call.result, STR_LIT("next_page_offset")) : 0;
    if (!points || call.answer.nodes[points].type != JSON_NODE_ARRAY) {
      st = err_set(err, LODE_CORRUPT, "the cluster's answer is not one of Qdrant's (no points)");
      goto done;
    }
    for (uint32_t at = points + 1; at < call.answer.nodes[points].next; at = call.answer.nodes[at].next) {
      remote_entry k;
      mem_arena_reset(&arena);
      TRY_GOTO(registry_take_entry(&call.answer, at, &arena, &k, err));
      TRY_GOTO(fn(ctx, &k, err));
    }
    if (offset && call.answer.nodes[offset].type != JSON_NODE_NULL) json_put_node(&next, &call.answer, offset);
    if (next.failed) TRY_GOTO(err_nomem(err)); /* an empty one would mean that this was the last page */
  } while (next.len);
done:
  mem_arena_release(&arena);
  remote_call_release(&call);
  strbuf_release(&next);
  return st;
}

/* ---- Locks ---- */

static lode_status registry_try_lock(remote_store *s, const remote_entry *seen, remote_lock *lock, bool *mine,
                                     lode_error *err) {
  mem_arena arena;
  remote_entry now;
  strbuf fields = {0};
  bool found = false;
  mem_arena_init(&arena, 0);
  strbuf_addf(&fields, "\"lock\":\"%s\",\"beat\":0", lock->token);
  lode_status st = remote_registry_change(s, seen->name, &seen->lock, (lode_str){fields.data, fields.len}, err);
  if (st == LODE_OK) st = remote_registry_load(s, seen->name, &arena, &now, &found, err);
  *mine = st == LODE_OK && found && now.uid == seen->uid && str_eq(now.lock, str_of(lock->token));
  mem_arena_release(&arena);
  strbuf_release(&fields);
  return st;
}

lode_status remote_lock_acquire(remote_store *s, lode_str name, remote_lock *lock, mem_arena *arena, remote_entry *k,
                                lode_error *err) {
  char seen[REMOTE_LOCK_TOKEN_BYTES] = "", quoted[256];
  uint64_t begin = os_api->now_ns(), since = begin, beat = 0;
  bool found, mine;
  *lock = (remote_lock){0};
  snprintf(lock->token, sizeof lock->token, "%016llx", (unsigned long long)rand_u64());
  for (;;) {
    TRY(remote_registry_load(s, name, arena, k, &found, err));
    if (!found)
      return err_set(err, LODE_NOT_FOUND, "there is no collection %s in this store",
                     str_quote(name, quoted, sizeof quoted));
    uint64_t now = os_api->now_ns();
    if (k->lock.data && (!str_eq(k->lock, str_of(seen)) || k->beat != beat)) { /* the holder is alive */
      snprintf(seen, sizeof seen, "%.*s", (int)k->lock.len, k->lock.data);
      beat = k->beat;
      since = now;
    }
    if (!k->lock.data || now - since > (uint64_t)REMOTE_LOCK_STALE_MS * 1000000) {
      TRY(registry_try_lock(s, k, lock, &mine, err));
      if (mine) return remote_registry_load(s, name, arena, k, &found, err);
    }
    if (now - begin > (uint64_t)(s->head.options->busy_ms + REMOTE_LOCK_STALE_MS) * 1000000)
      return err_set(err, LODE_BUSY, "another process has been changing the collection %s for %u s: try again",
                     str_quote(name, quoted, sizeof quoted), (s->head.options->busy_ms + REMOTE_LOCK_STALE_MS) / 1000);
    os_api->sleep_us(50000);
  }
}

lode_status remote_lock_heartbeat(remote_store *s, lode_str name, remote_lock *lock, lode_error *err) {
  uint64_t now = os_api->now_ns();
  char fields[64];
  if (now - lock->reported_ns < (uint64_t)REMOTE_LOCK_STALE_MS * 1000000 / 10) return LODE_OK;
  lock->reported_ns = now;
  lode_str token = str_of(lock->token);
  snprintf(fields, sizeof fields, "\"beat\":%llu", (unsigned long long)++lock->beat);
  return remote_registry_change(s, name, &token, str_of(fields), err);
}

lode_status remote_lock_release(remote_store *s, lode_str name, const remote_lock *lock, lode_error *err) {
  lode_str token = str_of(lock->token);
  return remote_registry_change(s, name, &token, STR_LIT("\"lock\":null,\"beat\":null,\"spare\":null"), err);
}
