/* SPDX-License-Identifier: Apache-2.0 */
/* engine_read.c - get and count, which read only the truth file.
 *
 * A page is of one moment (reader.c); the next page may be of a later one. A page of lode_get() ends at a key; `after`
 * continues after it. Keys are returned without the collection's part, so that they stay small numbers. For a selection
 * by ids, the position in the list of ids takes the place of the key.
 */
#include "engine/engine.h"

static lode_status get_check_request(const lode_get_request *r, lode_error *err) {
  TRY(iface_check_include(r->include, err));
  uint64_t max = r->select.ids ? r->select.n_ids : (uint64_t)STORE_KEY_SEQ_MAX;
  if (r->after > max)
    return err_set(err, LODE_INVALID,
                   "after is %llu, which no page of this request has returned: pass lode_result_next()",
                   (unsigned long long)r->after);
  return LODE_OK;
}

typedef struct get_page {
  const lode_get_request *request;
  engine_reader reader;
  engine_select select;
  lode_result *result;
} get_page;

static lode_status get_fill_page(get_page *p, lode_error *err) {
  const lode_get_request *r = p->request;
  store_rec rec;
  lode_row *row;
  bool more = true;
  size_t skip = r->offset;
  int64_t last = 0;
  while (r->limit == 0 || p->result->n < r->limit) {
    TRY(engine_select_next(&p->select, &rec, &more, err));
    if (!more) return LODE_OK;
    if (skip) {
      skip--;
      continue;
    }
    last = rec.rid;
    TRY(engine_result_add(p->result, &p->reader, &rec, r->include, &row, err));
  }
  if (r->select.ids)
    p->result->next = p->select.at < p->select.n ? p->select.at : 0;
  else
    p->result->next = (uint64_t)(last & STORE_KEY_SEQ_MAX);
  return LODE_OK;
}

static lode_status get_make_page(void *ctx, lode_error *err) {
  get_page *p = ctx;
  lode_collection *collection = p->reader.handle;
  lode_result_free(p->result);
  p->result = NULL;
  TRY(iface_result_new(collection->store->options->memory_bytes, &p->result, err));
  engine_select_rewind(&p->select);
  if (p->request->after) {
    int64_t first = (int64_t)((uint64_t)collection->cid << STORE_KEY_SEQ_BITS);
    int64_t after = (int64_t)p->request->after;
    engine_select_start_after(&p->select, p->request->select.ids ? after : first + after);
  }
  return get_fill_page(p, err);
}

lode_status engine_get(lode_collection *collection, const lode_get_request *request, lode_result **out,
                       lode_error *err) {
  static const lode_get_request everything;
  get_page p = {.request = request ? request : &everything};
  lode_status st;
  err_clear(err);
  *out = NULL;
  engine_reader_init(&p.reader, collection);
  p.reader.progress = p.request->progress;
  TRY_GOTO(get_check_request(p.request, err));
  TRY_GOTO(engine_select_init(&p.select, &p.reader, &p.request->select, err));
  p.select.as_asked = true;
  p.select.pending_only = p.request->pending_only;
  TRY_GOTO(engine_reader_run(&p.reader, get_make_page, &p, err));
  p.result->moment = p.reader.moment.cursor;
  *out = p.result;
done:
  engine_select_release(&p.select);
  engine_reader_release(&p.reader);
  if (st != LODE_OK) lode_result_free(p.result);
  return st;
}

lode_status engine_count(lode_collection *collection, uint64_t *count, lode_error *err) {
  engine_reader reader;
  err_clear(err);
  *count = 0;
  engine_reader_init(&reader, collection);
  lode_status st = engine_reader_begin(&reader, err);
  if (st == LODE_OK) *count = reader.coll.records;
  engine_reader_release(&reader);
  return st;
}
