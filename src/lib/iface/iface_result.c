/* SPDX-License-Identifier: Apache-2.0 */
/* iface_result.c - what calls return: rows, facets, lists of collections, each of which owns everything that it points
 * to; and lines of exports. */
#include "iface/iface.h"
#include "base/json.h"

#include <math.h>

/* ---- Rows ---- */

lode_status iface_result_new(uint64_t limit_bytes, lode_result **out, lode_error *err) {
  lode_result *result = mem_calloc(1, sizeof *result);
  *out = result;
  if (!result) return err_nomem(err);
  result->limit_bytes = limit_bytes > SIZE_MAX ? SIZE_MAX : (size_t)limit_bytes;
  mem_arena_init(&result->arena, result->limit_bytes);
  return LODE_OK;
}

void lode_result_free(lode_result *result) {
  if (!result) return;
  mem_free(result->rows);
  mem_arena_release(&result->arena);
  mem_free(result);
}

size_t lode_result_count(const lode_result *result) { return result ? result->n : 0; }

const lode_row *lode_result_at(const lode_result *result, size_t i) {
  return result && i < result->n ? &result->rows[i] : NULL;
}

uint64_t lode_result_next(const lode_result *result) { return result ? result->next : 0; }
uint64_t lode_result_moment(const lode_result *result) { return result ? result->moment : 0; }
lode_str lode_result_explain(const lode_result *result) { return result ? result->explanation : (lode_str){NULL, 0}; }

lode_status iface_result_row(lode_result *result, lode_row **row, lode_error *err) {
  if (!mem_grow(&result->rows, &result->cap, result->n + 1, sizeof *result->rows)) return err_nomem(err);
  *row = &result->rows[result->n];
  **row = (lode_row){.distance = NAN};
  return LODE_OK;
}

void iface_result_keep(lode_result *result) { result->n++; }

static lode_status result_too_large(const lode_result *result, lode_error *err) {
  return err_set(err, LODE_LIMIT,
                 "the answer is larger than the store's memory budget (%zu bytes): ask for fewer rows or parts at a "
                 "time (limit and after page through lode_get), or open the store with more memory_bytes",
                 result->limit_bytes);
}

lode_status iface_result_alloc(lode_result *result, size_t size, void **out, lode_error *err) {
  size_t rows = result->cap * sizeof *result->rows;
  *out = NULL;
  if (size > result->limit_bytes || result->arena.used + rows > result->limit_bytes - size)
    return result_too_large(result, err);
  *out = mem_arena_alloc(&result->arena, size);
  if (*out) return LODE_OK;
  bool at_limit = size + 4096 > result->limit_bytes - result->arena.used; /* 4096: more than a block's header */
  return at_limit ? result_too_large(result, err) : err_nomem(err);
}

lode_status iface_result_copy(lode_result *result, lode_str from, lode_str *to, lode_error *err) {
  void *p;
  *to = (lode_str){NULL, 0};
  if (!from.data) return LODE_OK;
  TRY(iface_result_alloc(result, from.len + 1, &p, err));
  if (from.len) memcpy(p, from.data, from.len);
  ((char *)p)[from.len] = '\0';
  *to = (lode_str){p, from.len};
  return LODE_OK;
}

/* ---- Facets ---- */

size_t lode_facet_list_count(const lode_facet_list *list) { return list ? list->n : 0; }

const lode_facet *lode_facet_list_at(const lode_facet_list *list, size_t i) {
  return list && i < list->n ? &list->facets[i] : NULL;
}

void lode_facet_list_free(lode_facet_list *list) {
  if (!list) return;
  mem_free(list->facets);
  mem_arena_release(&list->arena);
  mem_free(list);
}

/* ---- Collections ---- */

lode_status iface_coll_list_new(lode_collection_list **out, lode_error *err) {
  lode_collection_list *list = mem_calloc(1, sizeof *list);
  *out = list;
  if (!list) return err_nomem(err);
  mem_arena_init(&list->arena, 0);
  return LODE_OK;
}

static bool coll_list_copy_str(mem_arena *arena, lode_str *s) {
  if (!s->data) return true;
  s->data = mem_arena_copy(arena, s->data, s->len);
  return s->data != NULL;
}

lode_status iface_coll_list_add(lode_collection_list *list, const lode_collection_info *from, lode_error *err) {
  if (!mem_grow(&list->infos, &list->cap, list->n + 1, sizeof *list->infos)) return err_nomem(err);
  lode_collection_info *info = &list->infos[list->n];
  *info = *from;
  if (!coll_list_copy_str(&list->arena, &info->name) || !coll_list_copy_str(&list->arena, &info->metadata) ||
      !coll_list_copy_str(&list->arena, &info->embedder))
    return err_nomem(err);
  list->n++;
  return LODE_OK;
}

size_t lode_collection_list_count(const lode_collection_list *list) { return list ? list->n : 0; }

const lode_collection_info *lode_collection_list_at(const lode_collection_list *list, size_t i) {
  return list && i < list->n ? &list->infos[i] : NULL;
}

void lode_collection_list_free(lode_collection_list *list) {
  if (!list) return;
  mem_free(list->infos);
  mem_arena_release(&list->arena);
  mem_free(list);
}

/* ---- Exports ---- */

void iface_export_put(strbuf *lines, const lode_row *row) {
  strbuf_addstr(lines, "{\"id\":");
  json_put_string(lines, row->id);
  if (row->document.data) {
    strbuf_addstr(lines, ",\"document\":");
    json_put_string(lines, row->document);
  }
  if (row->metadata.data) {
    strbuf_addstr(lines, ",\"metadata\":");
    strbuf_add(lines, row->metadata.data, row->metadata.len);
  }
  if (row->vector) {
    strbuf_addstr(lines, ",\"embedding\":");
    json_put_vector(lines, row->vector, row->dimension);
  }
  strbuf_addstr(lines, "}\n");
}

lode_status iface_export_flush(strbuf *lines, lode_write_fn *write, void *ctx, lode_error *err) {
  if (lines->failed) return err_nomem(err);
  for (size_t at = 0; at < lines->len;) {
    int64_t n = write(ctx, lines->data + at, lines->len - at);
    if (n <= 0 || (uint64_t)n > lines->len - at)
      return err_set(err, LODE_IO, "writing the export failed: is the disk full, or the reader of the pipe gone?");
    at += (size_t)n;
  }
  lines->len = 0;
  return LODE_OK;
}
