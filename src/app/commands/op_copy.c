/* SPDX-License-Identifier: Apache-2.0 */
/* op_copy.c - push and pull: copies a collection from one store to another, whatever their engines.
 *
 * Records are read a range at a time, in insertion order, and compared with the target's. Only records that differ are
 * written, then read back and compared. So an interrupted copy is completed by starting it again, and a complete one
 * costs only the reading. Both stores may be in use: records added meanwhile are copied too; records deleted after
 * they were copied are reported as extra.
 *
 * A record that differs is replaced: deleted, then added, in one transaction. A cluster has no transactions: there,
 * readers may miss the record for a moment, and a copy that ends in between leaves it out until it is started again.
 */
#include "ops/op_row.h"
#include "table/op_args_db.h"

#include "base/crc32c.h"

enum { COPY_RANGE_ROWS = 500 };

typedef struct copy_state {
  op_context *ctx;
  lode_store *source, *target;
  lode_str name, target_name;
  lode_collection *from, *to;
  const char *phase;
  uint64_t total, records, written, equal;
  uint32_t checksum; /* of all ranges */
  lode_record *records_of;
  lode_str *ids;
} copy_state;

static bool copy_same_text(lode_str a, lode_str b) { return (a.data == NULL) == (b.data == NULL) && str_eq(a, b); }

static bool copy_same_row(const lode_row *a, const lode_row *b) {
  if (!copy_same_text(a->id, b->id) || !copy_same_text(a->document, b->document) ||
      !copy_same_text(a->metadata, b->metadata))
    return false;
  if (!a->vector || !b->vector) return a->vector == b->vector;
  return a->dimension == b->dimension && memcmp(a->vector, b->vector, (size_t)a->dimension * sizeof(float)) == 0;
}

static uint32_t copy_row_crc(uint32_t crc, const lode_row *r) {
  const lode_str parts[] = {r->id, r->document, r->metadata};
  for (size_t i = 0; i < 3; i++) {
    crc = crc32c_update_u64(crc, parts[i].data ? parts[i].len + 1 : 0);
    if (parts[i].data) crc = crc32c_update(crc, parts[i].data, parts[i].len);
  }
  return r->vector ? crc32c_update(crc, r->vector, (size_t)r->dimension * sizeof(float)) : crc;
}

/* The target's records with these ids, in the order of the ids. */
static lode_status copy_read_target(copy_state *c, size_t n, lode_result **target_rows, lode_error *err) {
  lode_get_request get = {.select = {.ids = c->ids, .n_ids = n}, .include = LODE_ALL};
  return lode_get(c->to, &get, target_rows, err);
}

/* Collects the rows of the range that differ in the target into records_of and ids; *stale: how many of them exist
 * there and must be deleted first. */
static size_t copy_list_differing(copy_state *c, const lode_result *here, const lode_result *target_rows,
                                  size_t *stale) {
  size_t n = 0, at = 0;
  *stale = 0;
  for (size_t i = 0; i < lode_result_count(here); i++) {
    const lode_row *row = lode_result_at(here, i), *other = lode_result_at(target_rows, at);
    bool exists = other && str_eq(other->id, row->id);
    at += exists;
    if (exists && copy_same_row(row, other)) continue;
    c->records_of[n] = (lode_record){.id = row->id,
                                     .document = row->document,
                                     .metadata = row->metadata,
                                     .vector = row->vector,
                                     .dimension = row->dimension};
    *stale += exists;
    c->ids[n++] = row->id;
  }
  return n;
}

static lode_status copy_check_written(copy_state *c, size_t n, lode_error *err) {
  lode_result *target_rows;
  char quoted[256];
  TRY(copy_read_target(c, n, &target_rows, err));
  lode_status st = LODE_OK;
  for (size_t i = 0, at = 0; i < n && st == LODE_OK; i++) {
    const lode_record *r = &c->records_of[i];
    const lode_row *row = lode_result_at(target_rows, at);
    lode_row mine = {
        .id = r->id, .document = r->document, .metadata = r->metadata, .vector = r->vector, .dimension = r->dimension};
    at += row && str_eq(row->id, r->id);
    if (!row || !copy_same_row(&mine, row))
      st = err_set(
          err, LODE_CORRUPT,
          "record %s is not there as it was written: does somebody else change it? Start again to finish the copy",
          str_quote(r->id, quoted, sizeof quoted));
  }
  lode_result_free(target_rows);
  return st;
}

/* Writes the n records, `stale` of which replace older ones. */
static lode_status copy_write(copy_state *c, size_t n, size_t stale, lode_error *err) {
  lode_selection old = {.ids = c->ids, .n_ids = n};
  lode_txn *txn = NULL;
  lode_status st = stale ? lode_begin(c->target, &txn, err) : LODE_OK;
  if (st == LODE_UNSUPPORTED) st = LODE_OK; /* a cluster */
  if (st == LODE_OK && stale) st = lode_delete(c->to, txn, &old, NULL, err);
  if (st == LODE_OK) st = lode_add(c->to, txn, c->records_of, n, LODE_KEEP_EXISTING, NULL, err);
  if (st == LODE_OK && txn) return lode_commit(txn, err);
  if (txn) lode_rollback(txn);
  return st;
}

static lode_status copy_range(copy_state *c, const lode_result *here, lode_error *err) {
  size_t n = lode_result_count(here), stale;
  lode_result *target_rows;
  uint32_t crc = 0;
  for (size_t i = 0; i < n; i++) {
    c->ids[i] = lode_result_at(here, i)->id;
    crc = copy_row_crc(crc, lode_result_at(here, i));
  }
  c->checksum = crc32c_update_u32(c->checksum, crc);
  TRY(copy_read_target(c, n, &target_rows, err));
  size_t differ = copy_list_differing(c, here, target_rows, &stale);
  lode_result_free(target_rows);
  c->records += n;
  c->equal += n - differ;
  if (differ == 0) return LODE_OK;
  TRY(copy_write(c, differ, stale, err));
  TRY(copy_check_written(c, differ, err));
  c->written += differ;
  return LODE_OK;
}

static lode_status copy_all(copy_state *c, lode_error *err) {
  lode_get_request get = {.limit = COPY_RANGE_ROWS, .include = LODE_ALL};
  TRY(lode_count(c->from, &c->total, err));
  do {
    lode_result *here;
    TRY(lode_get(c->from, &get, &here, err));
    lode_status st = copy_range(c, here, err);
    get.after = lode_result_next(here);
    lode_result_free(here);
    TRY(st);
    if (c->records > c->total) c->total = c->records;
    if (!err_go_on(c->ctx->progress, c->phase, c->records, c->total))
      return err_set(err, LODE_CANCELLED, "cancelled after %llu records: start again to continue",
                     (unsigned long long)c->records);
  } while (get.after);
  return LODE_OK;
}

/* The keys of the declared counters. */
static lode_status copy_counters_of(lode_collection *c, mem_arena *arena, lode_str **keys, size_t *n, lode_error *err) {
  lode_facet_list *list;
  json_doc json = {0};
  TRY(lode_counters(c, (lode_str){0}, &list, err));
  lode_status st = LODE_OK;
  *n = lode_facet_list_count(list);
  *keys = mem_arena_alloc(arena, (*n + 1) * sizeof **keys);
  if (!*keys) st = err_nomem(err);
  for (size_t i = 0; i < *n && st == LODE_OK; i++) {
    st = json_parse(&json, lode_facet_list_at(list, i)->value, NULL, err);
    if (st != LODE_OK) break;
    lode_str key = json.nodes[0].type == JSON_NODE_STRING ? json.nodes[0].u.s : lode_facet_list_at(list, i)->value;
    (*keys)[i] = (lode_str){mem_arena_copy(arena, key.data, key.len), key.len};
    if (!(*keys)[i].data) st = err_nomem(err);
  }
  json_release(&json);
  lode_facet_list_free(list);
  return st;
}

/* Opens or creates a collection of the same kind in the other store. */
static lode_status copy_open_target(copy_state *c, lode_error *err) {
  lode_collection_list *list;
  lode_collection_options o = {.create = true};
  mem_arena arena;
  lode_str *keys = NULL;
  TRY(lode_collections(c->source, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (!str_eq(info->name, c->name)) continue;
    o.metric = info->metric;
    o.metadata = info->metadata;
    o.embedder = info->embedder;
    o.embedder_dim = info->embedder_dim;
  }
  mem_arena_init(&arena, 0);
  lode_status st = copy_counters_of(c->from, &arena, &keys, &o.n_counters, err);
  o.counters = keys;
  if (st == LODE_OK) st = lode_collection_open(c->target, c->target_name, &o, &c->to, err);
  mem_arena_release(&arena);
  lode_collection_list_free(list);
  return st;
}

static lode_status copy_send_summary(copy_state *c, const char *other, lode_error *err) {
  uint64_t target_count;
  char checksum[16];
  TRY(lode_count(c->to, &target_count, err));
  snprintf(checksum, sizeof checksum, "%08x", c->checksum);
  op_summary_begin(c->ctx);
  op_row_text(c->ctx, "collection", c->target_name);
  op_row_text(c->ctx, "other", str_of(other));
  op_row_count(c->ctx, "records", c->records);
  op_row_count(c->ctx, "written", c->written);
  op_row_count(c->ctx, "equal", c->equal);
  op_row_count(c->ctx, "extra", target_count > c->records ? target_count - c->records : 0);
  op_row_text(c->ctx, "checksum", str_of(checksum));
  return op_row_send(c->ctx, err);
}

/* The code index of a project is not written to; a copy of one is, or no copy could be updated. */
static lode_status copy_check_target(op_context *ctx, lode_store *target, const char *other, lode_str name,
                                     lode_error *err) {
  char quoted[256];
  lode_status st = op_check_may_change(ctx, target, other, name, err);
  if (st != LODE_REFUSED || !other) return st;
  return err_set(err, st,
                 "%s belongs to the code index that `lode index` keeps in %.300s: give the copy another name "
                 "there with --as NAME, or push it to another store",
                 str_quote(name, quoted, sizeof quoted), other);
}

static lode_status copy_run(op_context *ctx, const op_copy_args *args, bool push, lode_error *err) {
  const char *other = push ? args->to.path : args->from.path;
  lode_str name = args->collection.text;
  copy_state c = {
      .ctx = ctx, .phase = push ? "push" : "pull", .name = name, .target_name = args->as.set ? args->as.text : name};
  lode_open_options options = {.create = push, .read_only = !push};
  lode_store *mine = NULL, *others = NULL;
  lode_status st;
  c.records_of = mem_calloc(COPY_RANGE_ROWS, sizeof *c.records_of);
  c.ids = mem_calloc(COPY_RANGE_ROWS, sizeof *c.ids);
  if (!c.records_of || !c.ids) {
    st = err_nomem(err);
    goto done;
  }
  TRY_GOTO(ctx->open(ctx->opener, &(op_open_options){.write = !push, .create = !push}, &mine, err));
  TRY_GOTO(lode_open(other, &options, &others, err));
  c.source = push ? mine : others;
  c.target = push ? others : mine;
  TRY_GOTO(lode_collection_open(c.source, name, NULL, &c.from, err));
  TRY_GOTO(copy_check_target(ctx, c.target, push ? other : NULL, c.target_name, err));
  TRY_GOTO(copy_open_target(&c, err));
  TRY_GOTO(copy_all(&c, err));
  st = copy_send_summary(&c, other, err);
done:
  lode_collection_close(c.from);
  lode_collection_close(c.to);
  lode_close(others);
  if (mine) ctx->release(ctx->opener, mine);
  mem_free(c.records_of);
  mem_free(c.ids);
  return st;
}

lode_status op_do_push(op_context *ctx, const op_copy_args *args, lode_error *err) {
  return copy_run(ctx, args, true, err);
}

lode_status op_do_pull(op_context *ctx, const op_copy_args *args, lode_error *err) {
  return copy_run(ctx, args, false, err);
}
