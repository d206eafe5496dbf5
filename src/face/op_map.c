/* op_map.c - `lode db map`: a sample of a collection's vectors on the plane, for a picture of it.
 *
 * The sample is the same for the same records: all of them while they are few, else those at places that are spread evenly over the
 * order of insertion. A place is found by seeking, so the cost is that of the sample, however large the collection. The end
 * of the order is found by bisection: "is there a record behind this place" can only turn from yes to no.
 */
#include "op.h"
#include "plane.h"

#include <math.h>

enum { PAGE_ROWS = 256, LABEL_BYTES = 240, MOST_FLOATS = 8 << 20 };

typedef struct point {
  lode_str id, label, group; /* group: absent where there is none */
} point;

typedef struct sample {
  lode_collection *collection;
  lode_selection select;
  lode_str key;       /* of the groups; may be absent */
  bool unit;
  uint32_t dimension;
  uint64_t records;
  size_t want;        /* points at most */
  size_t n;
  point *points;      /* want */
  float *vectors;     /* want x dimension */
  mem_arena arena;
  json_doc json;
} sample;

/* ---- Points ---- */

static lode_status copy_text(sample *s, lode_str text, lode_str *out, lode_error *err) {
  char *copy = mem_arena_copy(&s->arena, text.data ? text.data : "", text.len);
  if (!copy) return err_nomem(err);
  *out = (lode_str){copy, text.len};
  return LODE_OK;
}

/* As much of the text as a label may show, whole characters. */
static lode_str beginning(lode_str text) {
  if (text.len <= LABEL_BYTES) return text;
  text.len = LABEL_BYTES;
  while (text.len && ((unsigned char)text.data[text.len] & 0xc0) == 0x80) text.len--;
  return text;
}

/* The value of the key: a string as it is, another scalar as JSON writes it. */
static lode_status group_of(sample *s, lode_str metadata, lode_str *group, lode_error *err) {
  strbuf text = {0};
  *group = (lode_str){0};
  if (!s->key.data || !metadata.data) return LODE_OK;
  TRY(json_parse(&s->json, metadata, NULL, err));
  uint32_t at = s->json.nodes[0].type == JSON_NODE_OBJECT ? json_get(&s->json, 0, s->key) : 0;
  if (!at || s->json.nodes[at].type == JSON_NODE_NULL) return LODE_OK;
  if (s->json.nodes[at].type == JSON_NODE_STRING) return copy_text(s, beginning(s->json.nodes[at].u.s), group, err);
  json_put_node(&text, &s->json, at);
  lode_status st = text.failed ? err_nomem(err) : copy_text(s, beginning((lode_str){text.data, text.len}), group, err);
  strbuf_release(&text);
  return st;
}

static lode_status take(sample *s, const lode_row *row, lode_error *err) {
  if (!row->vector || row->dimension != s->dimension || s->n == s->want) return LODE_OK; /* still pending */
  point *p = &s->points[s->n];
  TRY(copy_text(s, row->id, &p->id, err));
  TRY(copy_text(s, beginning(row->document), &p->label, err));
  TRY(group_of(s, row->metadata, &p->group, err));
  memcpy(s->vectors + s->n * s->dimension, row->vector, s->dimension * sizeof(float));
  s->n++;
  return LODE_OK;
}

/* ---- Reading ---- */

static bool goes_on(lode_progress progress, uint64_t done, uint64_t total) {
  return !progress.step || progress.step(progress.ctx, "reading", done, total);
}

static lode_status cancelled(lode_error *err) { return err_set(err, LODE_CANCELLED, "the map was not finished"); }

static lode_status read_all(sample *s, lode_progress progress, lode_error *err) {
  lode_get_request request = {.select = s->select, .limit = PAGE_ROWS, .include = LODE_DOCUMENT | LODE_METADATA | LODE_VECTOR};
  do {
    lode_result *result = NULL;
    if (!goes_on(progress, s->n, s->want)) return cancelled(err);
    lode_status st = lode_get(s->collection, &request, &result, err);
    for (size_t i = 0; st == LODE_OK && i < lode_result_count(result); i++) st = take(s, lode_result_at(result, i), err);
    request.after = lode_result_next(result);
    lode_result_free(result);
    if (st != LODE_OK) return st;
  } while (request.after && s->n < s->want);
  return LODE_OK;
}

static lode_status any_behind(const sample *s, uint64_t place, bool *any, lode_error *err) {
  lode_get_request request = {.after = place, .limit = 1};
  lode_result *result = NULL;
  lode_status st = lode_get(s->collection, &request, &result, err);
  *any = st == LODE_OK && lode_result_count(result) > 0;
  lode_result_free(result);
  return st;
}

/* A place behind which there is nothing, at most one too far. */
static lode_status find_end(const sample *s, uint64_t *end, lode_error *err) {
  uint64_t low = 0, high = s->records;
  bool any = true;
  for (;;) {
    TRY(any_behind(s, high, &any, err));
    if (!any) break;
    low = high;
    high *= 2;
  }
  while (low + 1 < high) {
    uint64_t middle = low + (high - low) / 2;
    TRY(any_behind(s, middle, &any, err));
    if (any) low = middle;
    else high = middle;
  }
  *end = high;
  return LODE_OK;
}

static lode_status read_spread(sample *s, lode_progress progress, lode_error *err) {
  lode_get_request request = {.limit = 1, .include = LODE_DOCUMENT | LODE_METADATA | LODE_VECTOR};
  uint64_t end = 0, behind = 0;
  TRY(find_end(s, &end, err));
  for (size_t i = 0; i < s->want; i++) {
    lode_result *result = NULL;
    uint64_t place = (uint64_t)((double)i * (double)end / (double)s->want);
    if (i % PAGE_ROWS == 0 && !goes_on(progress, i, s->want)) return cancelled(err);
    request.after = place > behind ? place : behind; /* a gap of deleted records was jumped: no record twice */
    lode_status st = lode_get(s->collection, &request, &result, err);
    if (st == LODE_OK && lode_result_count(result)) st = take(s, lode_result_at(result, 0), err);
    behind = lode_result_next(result);
    bool last = st != LODE_OK || behind == 0;
    lode_result_free(result);
    if (last) return st;
  }
  return LODE_OK;
}

/* ---- The operation ---- */

static lode_status describe(sample *s, lode_store *store, lode_str name, lode_error *err) {
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

static lode_status send_points(lode__op_context *ctx, const sample *s, const double *xy, lode_error *err) {
  for (size_t i = 0; i < s->n; i++) {
    lode__row_begin(ctx);
    lode__row_text(ctx, "id", s->points[i].id);
    lode__row_real(ctx, "x", round(xy[2 * i] * 1e5) / 1e5);
    lode__row_real(ctx, "y", round(xy[2 * i + 1] * 1e5) / 1e5);
    lode__row_text(ctx, "label", s->points[i].label);
    lode__row_text(ctx, "group", s->points[i].group);
    TRY(lode__row_send(ctx, err));
  }
  return LODE_OK;
}

static lode_status send_summary(lode__op_context *ctx, const lode__args *args, const sample *s, const lode__plane *plane, lode_error *err) {
  lode__row_begin(ctx);
  lode__row_text(ctx, "collection", lode__arg_of(args, "collection")->text);
  lode__row_count(ctx, "records", s->records);
  lode__row_count(ctx, "points", s->n);
  lode__row_real(ctx, "variance", round(plane->kept * 1e4) / 1e4);
  return lode__row_summary(ctx, err);
}

lode_status lode__op_map(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  const lode__arg *key = lode__arg_of(args, "key");
  lode__open_how how = {0};
  lode__target target = {0};
  lode__plane plane = {.kept = 1};
  double *xy = NULL;
  sample s = {.select = lode__selection_of(args), .want = (size_t)lode__arg_of(args, "sample")->number};
  lode_status st;
  mem_arena_init(&s.arena, 0);
  if (key->set) s.key = key->text;
  TRY_GOTO(lode__target_open(ctx, args, &how, NULL, &target, err));
  s.collection = target.collection;
  TRY_GOTO(describe(&s, target.store, lode__arg_of(args, "collection")->text, err));
  if (s.dimension) {
    bool filtered = s.select.where.data != NULL;
    if (s.want > MOST_FLOATS / s.dimension) s.want = MOST_FLOATS / s.dimension;
    s.points = mem_calloc(s.want, sizeof *s.points);
    s.vectors = mem_calloc(s.want * s.dimension, sizeof *s.vectors);
    xy = mem_calloc(2 * s.want, sizeof *xy);
    if (!s.points || !s.vectors || !xy) TRY_GOTO(err_nomem(err));
    TRY_GOTO(filtered || s.records <= s.want ? read_all(&s, ctx->progress, err) : read_spread(&s, ctx->progress, err));
    TRY_GOTO(lode__plane_of(s.vectors, s.n, s.dimension, s.unit, ctx->progress, xy, &plane, err));
    TRY_GOTO(send_points(ctx, &s, xy, err));
  }
  TRY_GOTO(send_summary(ctx, args, &s, &plane, err));
  ctx->nothing = s.n == 0;
done:
  lode__target_close(ctx, &target);
  mem_arena_release(&s.arena);
  json_release(&s.json);
  mem_free(s.points);
  mem_free(s.vectors);
  mem_free(xy);
  return st;
}
