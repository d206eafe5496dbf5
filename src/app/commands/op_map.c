/* SPDX-License-Identifier: Apache-2.0 */
/* op_map.c - `lode db map`: places a sample of a collection's vectors on the plane, to be drawn: by their neighbours
 * (layout.h, from a projection on) or by the projection alone, and names the clusters that are seen there.
 *
 * The sample is the same for the same records: all of them if there are few, else those at positions spread evenly
 * over the insertion order. A position is reached by seeking, so the cost depends on the sample, not on the
 * collection.
 */
#include "ops/op_row.h"
#include "table/op_args_db.h"
#include "ops/op_target.h"
#include "commands/op_sample.h"
#include "commands/clusters.h"
#include "commands/layout.h"
#include "commands/neighbours.h"
#include "commands/projection.h"
#include "commands/saved_map.h"

#include "base/crc32c.h"

#include <math.h>

enum {
  OP_MAP_PAGE_ROWS = 256,
  OP_MAP_LABEL_BYTES = 240,
  OP_MAP_MAX_FLOATS = 8 << 20,
  MAP_NEIGHBOURS = 15, /* of each point, that attract it */
  MAP_NEAR = 10,       /* how many neighbours on the map are looked at, to say how good it is */
  MAP_FAR = 50,        /* ... among how many in space */
  MAP_VERSION = 1,     /* of the layout: of another one nothing that was saved is used */
};

typedef struct map_point {
  lode_str id, label, group, path; /* group, path: no data if there is none */
  uint64_t line;                   /* of code: where it begins; 0: unknown */
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

/* The value of a key of the parsed metadata: a string as is, another scalar as JSON; no data if there is none. */
static lode_status map_value_of(map_sample *s, lode_str key, lode_str *value, lode_error *err) {
  strbuf text = {0};
  uint32_t at = key.data && s->json.nodes[0].type == JSON_NODE_OBJECT ? json_get(&s->json, 0, key) : 0;
  *value = (lode_str){0};
  if (!at || s->json.nodes[at].type == JSON_NODE_NULL) return LODE_OK;
  if (s->json.nodes[at].type == JSON_NODE_STRING)
    return map_copy_text(s, map_label_of(s->json.nodes[at].u.s), value, err);
  json_put_node(&text, &s->json, at);
  lode_status st =
      text.failed ? err_nomem(err) : map_copy_text(s, map_label_of((lode_str){text.data, text.len}), value, err);
  strbuf_release(&text);
  return st;
}

/* Group, and the place of a chunk of code: its path, and the first line of its span (FIRST-LAST/...). */
static lode_status map_read_metadata(map_sample *s, lode_str metadata, map_point *p, lode_error *err) {
  lode_str span = {0};
  if (!metadata.data) return LODE_OK;
  TRY(json_parse(&s->json, metadata, NULL, err));
  TRY(map_value_of(s, s->key, &p->group, err));
  TRY(map_value_of(s, STR_LIT("path"), &p->path, err));
  TRY(map_value_of(s, STR_LIT("span"), &span, err));
  for (size_t i = 0; i < span.len && i < 10 && span.data[i] >= '0' && span.data[i] <= '9'; i++)
    p->line = 10 * p->line + (uint64_t)(span.data[i] - '0');
  return LODE_OK;
}

static lode_status map_add_row(map_sample *s, const lode_row *row, lode_error *err) {
  /* no vector yet, or enough points */
  if (!row->vector || row->dimension != s->dimension || s->n == s->want) return LODE_OK;
  map_point *p = &s->points[s->n];
  TRY(map_copy_text(s, row->id, &p->id, err));
  TRY(map_copy_text(s, map_label_of(row->document), &p->label, err));
  TRY(map_read_metadata(s, row->metadata, p, err));
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

/* ---- Places ---- */

typedef struct map_places {
  op_projection projection;
  op_saved_map saved; /* xy: the places */
  op_clusters clusters;
  const char *folder; /* where places are kept; NULL: nowhere */
} map_places;

/* Everything that the places depend on; the slot by what the user asked for. */
static void map_set_key(map_places *p, const map_sample *s, lode_str collection) {
  uint32_t head[] = {MAP_VERSION, MAP_NEIGHBOURS, (uint32_t)s->n, s->dimension, s->unit};
  sha256_ctx sha;
  sha256_init(&sha);
  sha256_update(&sha, head, sizeof head);
  sha256_update(&sha, s->vectors, s->n * s->dimension * sizeof *s->vectors);
  sha256_final(&sha, p->saved.digest);
  p->saved.slot = crc32c_update_u64(crc32c_update(0, collection.data, collection.len), s->want);
}

/* How many of the nearest on the map are near in space: `nearest` has the real ones. */
static lode_status map_measure(map_places *p, const uint32_t *nearest, uint32_t far, lode_progress progress,
                               lode_error *err) {
  size_t n = p->saved.n;
  uint32_t near = far < MAP_NEAR ? far : MAP_NEAR;
  float *plane = mem_calloc(2 * n, sizeof *plane);
  uint32_t *shown = mem_calloc(n * near, sizeof *shown);
  lode_status st = plane && shown ? LODE_OK : err_nomem(err);
  for (size_t i = 0; st == LODE_OK && i < 2 * n; i++) plane[i] = (float)p->saved.xy[i];
  if (st == LODE_OK) st = op_neighbours_find(plane, n, 2, near, shown, progress, err);
  if (st == LODE_OK) {
    p->saved.kept[0] = op_neighbours_share(shown, near, near, nearest, far, near, n);
    p->saved.kept[1] = op_neighbours_share(shown, near, near, nearest, far, far, n);
  }
  mem_free(plane);
  mem_free(shown);
  return st;
}

/* The projection is where the layout starts from; it also leaves the vectors centred. */
static lode_status map_compute(map_places *p, bool by_neighbours, lode_progress progress, lode_error *err) {
  size_t n = p->saved.n;
  uint32_t far = n > MAP_FAR ? MAP_FAR : (uint32_t)n - 1;
  uint32_t *nearest = NULL;
  lode_status st;
  TRY(op_projection_compute(&p->projection, progress, err));
  p->saved.kept[0] = p->saved.kept[1] = 1;
  if (n < 3) return LODE_OK;
  nearest = mem_calloc(n * far, sizeof *nearest);
  if (!nearest) return err_nomem(err);
  TRY_GOTO(op_neighbours_find(p->projection.vectors, n, p->projection.dimension, far, nearest, progress, err));
  op_layout_points layout = {
      .n = n, .nearest = nearest, .k = far < MAP_NEIGHBOURS ? far : MAP_NEIGHBOURS, .stride = far, .xy = p->saved.xy};
  if (by_neighbours) TRY_GOTO(op_layout_compute(&layout, progress, err));
  TRY_GOTO(map_measure(p, nearest, far, progress, err));
done:
  mem_free(nearest);
  return st;
}

static lode_status map_place(map_places *p, map_sample *s, bool by_neighbours, lode_str collection,
                             lode_progress progress, lode_error *err) {
  lode_status st = LODE_OK;
  p->saved.n = s->n;
  p->projection = (op_projection){
      .vectors = s->vectors, .n = s->n, .dimension = s->dimension, .unit = s->unit, .xy = p->saved.xy, .kept = 1};
  map_set_key(p, s, collection);
  if (!by_neighbours || !p->folder || !op_saved_map_read(p->folder, &p->saved)) {
    TRY(map_compute(p, by_neighbours, progress, err));
    op_saved_map_round(&p->saved);
    if (by_neighbours && p->folder && s->n) op_saved_map_write(p->folder, &p->saved);
  }
  op_cluster_point *points = mem_calloc(s->n ? s->n : 1, sizeof *points);
  p->clusters.of = mem_calloc(s->n ? s->n : 1, 1);
  if (!points || !p->clusters.of) TRY_GOTO(err_nomem(err));
  for (size_t i = 0; i < s->n; i++) {
    lode_str text = s->points[i].label, path = s->points[i].path;
    const char *line = path.data ? memchr(text.data, '\n', text.len) : NULL; /* the first line of code is its path */
    points[i] = (op_cluster_point){line ? (lode_str){line, text.len - (size_t)(line - text.data)} : text, path};
  }
  TRY_GOTO(op_clusters_find(p->saved.xy, points, s->n, &p->clusters, err));
done:
  mem_free(points);
  return st;
}

/* ---- The operation ---- */

static lode_status map_send_points(op_context *ctx, const map_sample *s, const map_places *p, lode_error *err) {
  for (size_t i = 0; i < s->n; i++) {
    const map_point *point = &s->points[i];
    uint8_t cluster = p->clusters.of[i];
    op_row_begin(ctx);
    op_row_text(ctx, "id", point->id);
    op_row_real(ctx, "x", p->saved.xy[2 * i]);
    op_row_real(ctx, "y", p->saved.xy[2 * i + 1]);
    op_row_text(ctx, "label", point->label);
    op_row_text(ctx, "group", point->group);
    op_row_text(ctx, "cluster", cluster < p->clusters.n ? str_of(p->clusters.names[cluster]) : (lode_str){0});
    if (point->path.data) op_row_text(ctx, "path", point->path);
    if (point->path.data && point->line) op_row_count(ctx, "line", point->line);
    TRY(op_row_send(ctx, err));
  }
  return LODE_OK;
}

static lode_status map_send_summary(op_context *ctx, lode_str collection, const map_sample *s, const map_places *p,
                                    bool by_neighbours, lode_error *err) {
  op_summary_begin(ctx);
  op_row_text(ctx, "collection", collection);
  op_row_count(ctx, "records", s->records);
  op_row_count(ctx, "points", s->n);
  if (by_neighbours)
    op_row_null(ctx, "variance");
  else
    op_row_real(ctx, "variance", round(p->projection.kept * 1e4) / 1e4);
  op_row_count(ctx, "clusters", p->clusters.n);
  op_row_real(ctx, "kept", round(p->saved.kept[0] * 1e4) / 1e4);
  op_row_real(ctx, "kept_wide", round(p->saved.kept[1] * 1e4) / 1e4);
  return op_row_send(ctx, err);
}

lode_status op_do_map(op_context *ctx, const op_map_args *args, lode_error *err) {
  op_open_options how = {0};
  op_target target = {0};
  map_places places = {.saved = {.kept = {1, 1}}};
  map_sample s = {.select = op_selection_of(NULL, &args->where, NULL), .want = (size_t)args->sample.n};
  bool filtered = s.select.where.data != NULL, read_only = ctx->settings && ctx->settings->read_only;
  lode_status st;
  mem_arena_init(&s.arena, 0);
  if (args->key.set) s.key = args->key.text;
  TRY_GOTO(op_target_open(ctx, args->collection.text, &how, NULL, &target, err));
  s.collection = target.collection;
  TRY_GOTO(map_describe(&s, target.store, args->collection.text, err));
  /* a filter is any of many: its map would push out that of the collection */
  if (ctx->folder && !op_is_address(ctx->folder) && !read_only && !filtered) places.folder = ctx->folder;
  if (s.dimension) {
    if (s.want > OP_MAP_MAX_FLOATS / s.dimension) s.want = OP_MAP_MAX_FLOATS / s.dimension;
    s.points = mem_calloc(s.want, sizeof *s.points);
    s.vectors = mem_calloc(s.want * s.dimension, sizeof *s.vectors);
    places.saved.xy = mem_calloc(2 * s.want, sizeof *places.saved.xy);
    if (!s.points || !s.vectors || !places.saved.xy) TRY_GOTO(err_nomem(err));
    TRY_GOTO(filtered || s.records <= s.want ? map_read_all(&s, ctx->progress, err)
                                             : map_read_spread(&s, ctx->progress, err));
    TRY_GOTO(map_place(&places, &s, args->by.index == 0, args->collection.text, ctx->progress, err));
    TRY_GOTO(map_send_points(ctx, &s, &places, err));
  }
  TRY_GOTO(map_send_summary(ctx, args->collection.text, &s, &places, args->by.index == 0, err));
  if (!ctx->remote && s.n > 2) /* over HTTP the summary says it */
    op_note(ctx,
            "%zu of %llu records are on the map; of the %d nearest of each there, %.1f %% are among its %d nearest and "
            "%.1f %% among its %d nearest in space",
            s.n, (unsigned long long)s.records, MAP_NEAR, 100 * places.saved.kept[0], MAP_NEAR,
            100 * places.saved.kept[1], MAP_FAR);
  ctx->nothing = s.n == 0;
done:
  op_target_close(ctx, &target);
  mem_arena_release(&s.arena);
  json_release(&s.json);
  mem_free(s.points);
  mem_free(s.vectors);
  mem_free(places.saved.xy);
  mem_free(places.clusters.of);
  return st;
}
