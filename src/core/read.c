/* read.c - get and count: both read the truth alone.
 *
 * A page of lode_get() ends at a key; `after` continues behind it. Keys are handed out without the collection's part, so
 * that they stay small numbers. By ids the position in the list of ids takes the key's place.
 */
#include "core.h"

static lode_status check_request(const lode_get_request *r, lode_error *err) {
  LODE__TRY(lode__check_include(r->include, err));
  uint64_t most = r->select.ids ? r->select.n_ids : (uint64_t)LODE__KEY_MAX;
  if (r->after > most)
    return lode__fail(err, LODE_INVALID, "after is %llu, which no page of this request has returned: pass lode_result_next()",
                      (unsigned long long)r->after);
  return LODE_OK;
}

static lode_status fill(lode__select *select, const lode_get_request *r, lode_result *result, lode_error *err) {
  lode__rec rec;
  lode_row *row;
  bool more = true;
  size_t skip = r->offset;
  int64_t last = 0;
  while (r->limit == 0 || result->n < r->limit) {
    LODE__TRY(lode__select_next(select, &rec, &more, err));
    if (!more) return LODE_OK;
    if (skip) {
      skip--;
      continue;
    }
    last = rec.rid;
    LODE__TRY(lode__result_add(result, select->reader, &rec, r->include, &row, err));
  }
  if (r->select.ids)
    result->next = select->at < select->n ? select->at : 0;
  else
    result->next = (uint64_t)(last & LODE__KEY_MAX);
  return LODE_OK;
}

lode_status lode__core_get(lode_collection *collection, const lode_get_request *request, lode_result **out, lode_error *err) {
  static const lode_get_request everything;
  const lode_get_request *r = request ? request : &everything;
  lode__reader reader;
  lode__select select = {0};
  lode_result *result = NULL;
  lode_status st;
  lode__error_clear(err);
  *out = NULL;
  lode__reader_init(&reader, collection);
  reader.progress = r->progress;
  LODE__GOTO(check_request(r, err));
  LODE__GOTO(lode__result_new(collection->store->options->memory_bytes, &result, err));
  LODE__GOTO(lode__select_init(&select, &reader, &r->select, err));
  select.as_asked = true;
  select.pending_only = r->pending_only;
  if (r->after) {
    int64_t first = (int64_t)((uint64_t)collection->cid << LODE__KEY_BITS);
    lode__select_after(&select, r->select.ids ? (int64_t)r->after : first + (int64_t)r->after);
  }
  LODE__GOTO(fill(&select, r, result, err));
  *out = result;
done:
  lode__select_release(&select);
  lode__reader_release(&reader);
  if (st != LODE_OK) lode_result_free(result);
  return st;
}

lode_status lode__core_count(lode_collection *collection, uint64_t *count, lode_error *err) {
  lode__reader reader;
  lode__error_clear(err);
  *count = 0;
  lode__reader_init(&reader, collection);
  lode_status st = lode__reader_begin(&reader, err);
  if (st == LODE_OK) *count = reader.coll.records;
  lode__reader_release(&reader);
  return st;
}
