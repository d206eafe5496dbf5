/* SPDX-License-Identifier: Apache-2.0 */
/* op_map.c - `lode db map`: projects a sample of a collection's vectors to two dimensions, to be drawn.
 *
 * The sample is the same for the same records: all of them if there are few, else those at positions spread evenly
 * over the insertion order. A position is reached by seeking, so the cost depends on the sample, not on the
 * collection.
 */
#include "ops/op_row.h"
#include "table/op_args_db.h"
#include "ops/op_target.h"
#include "commands/op_sample.h"
#include "commands/projection.h"

#include <math.h>

enum { OP_MAP_PAGE_ROWS = 256, OP_MAP_LABEL_BYTES = 240, OP_MAP_MAX_FLOATS = 8 << 20 };

typedef struct map_point {
  lode_str id, label, group; /* group: no data if there is none */
} map_point;

typedef struct map_sample {
  lode_collection *collection;
  lode_selection select;
  lode_str key; /* metadata key of the groups; no data: none */
  bool unit;
  uint32_t dimension;
  uint64_t records;
  size_t want; /* maximum number of points */
  size_t n;
  map_point *points; /* `want` of them */
  float *vectors;    /* want x dimension */
  mem_arena arena;
  json_doc json;
} map_sample;

/* ---- Points ---- */

static lode_status map_copy_text(map_sample *s, lode_str text, lode_str *out, lode_error *err) {
  char *copy = mem_arena_copy(&s->arena, text.data ? text.data : "", text.len);
  if (!copy) return err_nomem(err);
  *out = (lode_str){copy, text.len};
  return LODE_OK;
}

/* As much of the text as a label shows, in whole characters. */
static lode_str map_label_of(lode_str text) {
  if (text.len <= OP_MAP_LABEL_BYTES) return text;
  text.len = OP_MAP_LABEL_BYTES;
  while (text.len && ((unsigned char)text.data[text.len] & 0xc0) == 0x80) text.len--;
  return text;
}

/* The value of the key: a string as is, another scalar as JSON. */
static lode_status map_group_of(map_sample *s, lode_str metadata, lode_str *group, lode_error *err) {
  strbuf text = {0};
  *group = (lode_str){0};
  if (!s->key.data || !metadata.data) return LODE_OK;
  TRY(json_parse(&s->json, metadata, NULL, err));
  uint32_t at = s->json.nodes[0].type == JSON_NODE_OBJECT ? json_get(&s->json, 0, s->key) : 0;
  if (!at || s->json.nodes[at].type == JSON_NODE_NULL) return LODE_OK;
  if (s->json.nodes[at].type == JSON_NODE_STRING)
    return map_copy_text(s, map_label_of(s->json.nodes[at].u.s), group, err);
  json_put_node(&text, &s->json, at);
  lode_status st =
      text.failed ? err_nomem(err) : map_copy_text(s, map_label_of((lode_str){text.data, text.len}), group, err);
  strbuf_release(&text);
  return st;
}

static lode_status map_add_row(map_sample *s, const lode_row *row, lode_error *err) {
  /* no vector yet, or enough points */
  if (!row->vector || row->dimension != s->dimension || s->n == s->want) return LODE_OK;
  map_point *p = &s->points[s->n];
  TRY(map_copy_text(s, row->id, &p->id, err));
  TRY(map_copy_text(s, map_label_of(row->document), &p->label, err));
  TRY(map_group_of(s, row->metadata, &p->group, err));
  memcpy(s->vectors + s->n * s->dimension, row->vector, s->dimension * sizeof(float));
  s->n++;
  return LODE_OK;
}

/* ---- Reading ---- */

static lode_status map_progress(const map_sample *s, lode_progress progress, size_t done, lode_error *err) {
  if (err_go_on(progress, "reading", done, s->want)) return LODE_OK;
  return err_set(err, LODE_CANCELLED, "the map was not finished");
}

static lode_status map_read_all(map_sample *s, lode_progress progress, lode_error *err) {
  lode_get_request request = {
      .select = s->select, .limit = OP_MAP_PAGE_ROWS, .include = LODE_DOCUMENT | LODE_METADATA | LODE_VECTOR};
  do {
    lode_result *result = NULL;
    TRY(map_progress(s, progress, s->n, err));
    lode_status st = lode_get(s->collection, &request, &result, err);
    for (size_t i = 0; st == LODE_OK && i < lode_result_count(result); i++)
      st = map_add_row(s, lode_result_at(result, i), err);
    request.after = lode_result_next(result);
    lode_result_free(result);
    if (st != LODE_OK) return st;
  } while (request.after && s->n < s->want);
  return LODE_OK;
}

static lode_status map_read_spread(map_sample *s, lode_progress progress, lode_error *err) {
  lode_get_request request = {.limit = 1, .include = LODE_DOCUMENT | LODE_METADATA | LODE_VECTOR};
  uint64_t end = 0, next = 0;
  TRY(op_sample_end(s->collection, s->records, &end, err));
  for (size_t i = 0; i < s->want; i++) {
    lode_result *result = NULL;
    uint64_t place = (uint64_t)((double)i * (double)end / (double)s->want);
    if (i % OP_MAP_PAGE_ROWS == 0) TRY(map_progress(s, progress, i, err));
    request.after = place > next ? place : next; /* do not return a record twice after a gap of deleted ones */
    lode_status st = lode_get(s->collection, &request, &result, err);
    if (st == LODE_OK && lode_result_count(result)) st = map_add_row(s, lode_result_at(result, 0), err);
    next = lode_result_next(result);
    bool last = st != LODE_OK || next == 0;
    lode_result_free(result);
    if (last) return st;
  }
  return LODE_OK;
}

/* ---- The operation ---- */

static lode_status map_describe(map_sample *s, lode_store *store, lode_str name, lode_error *err) {
  lode_collection_list *list = NULL;
  TRY(lode_collections(store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (!str_eq(info->name, name)) continue;
    s->unit = info->metric == LODE_COSINE;
    s->dimension = info->dimension;
    s->records = info->records;
  }
  lode_collection_list_free(list);
  return LODE_OK;
}

static lode_status map_send_points(op_context *ctx, const map_sample *s, const double *xy, lode_error *err) {
  for (size_t i = 0; i < s->n; i++) {
    op_row_begin(ctx);
    op_row_text(ctx, "id", s->points[i].id);
    op_row_real(ctx, "x", round(xy[2 * i] * 1e5) / 1e5);
    op_row_real(ctx, "y", round(xy[2 * i + 1] * 1e5) / 1e5);
    op_row_text(ctx, "label", s->points[i].label);
    op_row_text(ctx, "group", s->points[i].group);
    TRY(op_row_send(ctx, err));
  }
  return LODE_OK;
}

static lode_status map_send_summary(op_context *ctx, lode_str collection, const map_sample *s,
                                    const op_projection *projection, lode_error *err) {
  op_summary_begin(ctx);
  op_row_text(ctx, "collection", collection);
  op_row_count(ctx, "records", s->records);
  op_row_count(ctx, "points", s->n);
  op_row_real(ctx, "variance", round(projection->kept * 1e4) / 1e4);
  return op_row_send(ctx, err);
}

lode_status op_do_map(op_context *ctx, const op_map_args *args, lode_error *err) {
  op_open_options how = {0};
  op_target target = {0};
  op_projection projection = {.kept = 1};
  double *xy = NULL;
  map_sample s = {.select = op_selection_of(NULL, &args->where, NULL), .want = (size_t)args->sample.n};
  lode_status st;
  mem_arena_init(&s.arena, 0);
  if (args->key.set) s.key = args->key.text;
  TRY_GOTO(op_target_open(ctx, args->collection.text, &how, NULL, &target, err));
  s.collection = target.collection;
  TRY_GOTO(map_describe(&s, target.store, args->collection.text, err));
  if (s.dimension) {
    bool filtered = s.select.where.data != NULL;
    if (s.want > OP_MAP_MAX_FLOATS / s.dimension) s.want = OP_MAP_MAX_FLOATS / s.dimension;
    s.points = mem_calloc(s.want, sizeof *s.points);
    s.vectors = mem_calloc(s.want * s.dimension, sizeof *s.vectors);
    xy = mem_calloc(2 * s.want, sizeof *xy);
    if (!s.points || !s.vectors || !xy) TRY_GOTO(err_nomem(err));
    TRY_GOTO(filtered || s.records <= s.want ? map_read_all(&s, ctx->progress, err)
                                             : map_read_spread(&s, ctx->progress, err));
    projection =
        (op_projection){.vectors = s.vectors, .n = s.n, .dimension = s.dimension, .unit = s.unit, .xy = xy, .kept = 1};
    TRY_GOTO(op_projection_compute(&projection, ctx->progress, err));
    TRY_GOTO(map_send_points(ctx, &s, xy, err));
  }
  TRY_GOTO(map_send_summary(ctx, args->collection.text, &s, &projection, err));
  ctx->nothing = s.n == 0;
done:
  op_target_close(ctx, &target);
  mem_arena_release(&s.arena);
  json_release(&s.json);
  mem_free(s.points);
  mem_free(s.vectors);
  mem_free(xy);
  return st;
}
