/* result.c - rows handed out: one array of rows, and one arena that holds everything they point to.
 *
 * Both together stay within the store's memory budget; a larger answer is LODE_LIMIT and has to be asked for in pages.
 */
#include "core.h"

#include <math.h>

lode_status lode__result_new(const lode_store *store, lode_result **out, lode_error *err) {
  lode_result *result = lode__alloc_zero(1, sizeof *result);
  *out = result;
  if (!result) return lode__fail_nomem(err);
  uint64_t limit = store->options->memory_bytes;
  result->limit_bytes = limit > SIZE_MAX ? SIZE_MAX : (size_t)limit;
  lode__arena_init(&result->arena, result->limit_bytes);
  return LODE_OK;
}

void lode_result_free(lode_result *result) {
  if (!result) return;
  lode__free(result->rows);
  lode__arena_release(&result->arena);
  lode__free(result);
}

size_t lode_result_count(const lode_result *result) { return result ? result->n : 0; }

const lode_row *lode_result_at(const lode_result *result, size_t i) {
  return result && i < result->n ? &result->rows[i] : NULL;
}

uint64_t lode_result_next(const lode_result *result) { return result ? result->next : 0; }

static lode_status too_large(const lode_result *result, lode_error *err) {
  return lode__fail(err, LODE_LIMIT,
                    "the answer is larger than the store's memory budget (%zu bytes): ask for fewer rows or parts at a time "
                    "(limit and after page through lode_get), or open the store with more memory_bytes",
                    result->limit_bytes);
}

static lode_status get_bytes(lode_result *result, size_t size, void **out, lode_error *err) {
  size_t rows = result->cap * sizeof *result->rows;
  *out = NULL;
  if (size > result->limit_bytes || result->arena.used + rows > result->limit_bytes - size) return too_large(result, err);
  *out = lode__arena_alloc(&result->arena, size);
  if (*out) return LODE_OK;
  bool at_limit = size + 4096 > result->limit_bytes - result->arena.used; /* 4096: more than a block's header */
  return at_limit ? too_large(result, err) : lode__fail_nomem(err);
}

static lode_status copy(lode_result *result, lode_str from, lode_str *to, lode_error *err) {
  void *p;
  *to = (lode_str){NULL, 0};
  if (!from.data) return LODE_OK;
  LODE__TRY(get_bytes(result, from.len + 1, &p, err));
  if (from.len) memcpy(p, from.data, from.len);
  ((char *)p)[from.len] = '\0';
  *to = (lode_str){p, from.len};
  return LODE_OK;
}

lode_status lode__result_add(lode_result *result, lode__reader *reader, const lode__rec *rec, unsigned include,
                             lode_row **out, lode_error *err) {
  if (!lode__grow(&result->rows, &result->cap, result->n + 1, sizeof *result->rows)) return lode__fail_nomem(err);
  lode_row *row = &result->rows[result->n];
  *row = (lode_row){.cursor = rec->seq, .distance = NAN};
  LODE__TRY(copy(result, rec->id, &row->id, err));
  if (include & LODE_METADATA) LODE__TRY(copy(result, rec->metadata, &row->metadata, err));
  if ((include & LODE_VECTOR) && rec->vid) {
    void *v;
    LODE__TRY(get_bytes(result, (size_t)reader->coll.dim * sizeof(float), &v, err));
    LODE__TRY(lode__rec_vector(reader->tx, rec->vid, v, reader->coll.dim, err));
    row->vector = v;
    row->dimension = reader->coll.dim;
  }
  if (include & LODE_DOCUMENT) { /* last: the record's own strings need not outlive it */
    lode_str document;
    LODE__TRY(lode__reader_document(reader, rec, &document, err));
    LODE__TRY(copy(result, document, &row->document, err));
  }
  result->n++;
  *out = row;
  return LODE_OK;
}
