/* SPDX-License-Identifier: Apache-2.0 */
/* engine_read.c - get, count and export, which read only the database file.
 *
 * A page is of one moment (reader.c); the next page may be of a later one. A page of lode_get() ends at a key; `after`
 * continues after it. Keys are returned without the collection's part, so that they stay small numbers. For a selection
 * by ids, the position in the list of ids takes the place of the key.
 *
 * Export: lines are gathered in memory while a read transaction is open, and passed to the caller's function when none
 * is: a slow consumer must not block commits.
 *
 * The first IFACE_EXPORT_FLUSH_BYTES are of one moment (reader.c), so a small export is, unless even that takes longer
 * than commits can wait. Lines that were written cannot be taken back: a longer export continues with later moments. It
 * goes by keys, in insertion order, so every record that exists throughout is exported once, as it was when it was
 * read; one that is deleted and added again meanwhile has a new key, and may be exported twice. A backup is of one
 * moment whatever its size.
 */
#include "engine/select.h"

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
  engine_collection *collection = p->reader.handle;
  lode_result_free(p->result);
  p->result = NULL;
  TRY(iface_result_new(collection->store->head.options->memory_bytes, &p->result, err));
  engine_select_rewind(&p->select);
  if (p->request->after) {
    int64_t first = (int64_t)((uint64_t)p->reader.coll.cid << STORE_KEY_SEQ_BITS);
    int64_t after = (int64_t)p->request->after;
    engine_select_start_after(&p->select, p->request->select.ids ? after : first + after);
  }
  return get_fill_page(p, err);
}

lode_status engine_get(lode_collection *head, const lode_get_request *request, lode_result **out, lode_error *err) {
  engine_collection *collection = engine_collection_of(head);
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

lode_status engine_count(lode_collection *head, uint64_t *count, lode_error *err) {
  engine_collection *collection = engine_collection_of(head);
  engine_reader reader;
  err_clear(err);
  *count = 0;
  engine_reader_init(&reader, collection);
  lode_status st = engine_reader_begin(&reader, err);
  if (st == LODE_OK) *count = reader.coll.records;
  engine_reader_release(&reader);
  return st;
}

/* ---- Export ---- */

typedef struct export_job {
  engine_reader reader;
  engine_select select;
  unsigned include;
  strbuf lines;
  float *vector;
  lode_write_fn *write;
  void *ctx;
  lode_progress progress;
  uint64_t total, written;
  bool more, allows_later;
} export_job;

static lode_status export_read_vector(export_job *e, const store_rec *rec, lode_row *row, lode_error *err) {
  if (!e->vector) e->vector = mem_alloc((size_t)LODE_MAX_DIMENSION * sizeof *e->vector);
  if (!e->vector) return err_nomem(err);
  row->vector = e->vector;
  row->dimension = e->reader.coll.dim;
  return store_rec_vector(e->reader.tx, rec->vid, e->vector, row->dimension, err);
}

static lode_status export_put_line(export_job *e, const store_rec *rec, lode_error *err) {
  lode_row row = {.id = rec->id};
  if (e->include & LODE_DOCUMENT) TRY(engine_reader_document(&e->reader, rec, &row.document, err));
  if (e->include & LODE_METADATA) row.metadata = rec->metadata;
  if ((e->include & LODE_VECTOR) && rec->vid) TRY(export_read_vector(e, rec, &row, err));
  iface_export_put(&e->lines, &row);
  e->written++;
  return e->lines.failed ? err_nomem(err) : LODE_OK;
}

/* Must be called without a transaction. */
static lode_status export_flush(export_job *e, lode_error *err) {
  TRY(iface_export_flush(&e->lines, e->write, e->ctx, err));
  if (e->total && e->total < e->written) e->total = e->written; /* records were added meanwhile */
  if (!err_go_on(e->progress, "exporting", e->written, e->total))
    return err_set(err, LODE_CANCELLED, "cancelled after %llu records", (unsigned long long)e->written);
  return LODE_OK;
}

/* Gathers as many lines as fit in one flush. */
static lode_status export_gather(export_job *e, lode_error *err) {
  e->more = true;
  while (e->lines.len < IFACE_EXPORT_FLUSH_BYTES && !(e->allows_later && engine_reader_is_old(&e->reader))) {
    store_rec rec;
    TRY(engine_select_next(&e->select, &rec, &e->more, err));
    if (!e->more) break;
    TRY(export_put_line(e, &rec, err));
  }
  return LODE_OK;
}

static lode_status export_gather_first(void *ctx, lode_error *err) {
  export_job *e = ctx;
  engine_select_rewind(&e->select);
  e->lines.len = 0;
  e->written = 0;
  if (!e->select.what.ids && !e->select.has_filter) e->total = e->reader.coll.records;
  return export_gather(e, err);
}

static lode_status export_run(export_job *e, lode_error *err) {
  lode_status st = engine_reader_run(&e->reader, export_gather_first, e, err);
  if (st != LODE_OK && !e->reader.gave_way) return st;
  err_clear(err);
  (void)engine_reader_allow_later(&e->reader);
  e->allows_later = true;
  if (st != LODE_OK) TRY(export_gather_first(e, err));
  for (;;) {
    engine_reader_pause(&e->reader);
    TRY(export_flush(e, err));
    if (!e->more) return LODE_OK;
    TRY(export_gather(e, err));
  }
}

lode_status engine_export(lode_collection *head, const lode_selection *selection, unsigned include,
                          lode_write_fn *write, void *ctx, lode_progress progress, uint64_t *written, lode_error *err) {
  engine_collection *collection = engine_collection_of(head);
  static const lode_selection everything;
  const lode_selection *what = selection ? selection : &everything;
  export_job e = {.include = include, .write = write, .ctx = ctx, .progress = progress};
  lode_status st;
  err_clear(err);
  if (written) *written = 0;
  engine_reader_init(&e.reader, collection);
  TRY_GOTO(iface_check_include(include, err));
  TRY_GOTO(engine_select_init(&e.select, &e.reader, what, err));
  TRY_GOTO(export_run(&e, err));
  if (written) *written = e.written;
done:
  engine_select_release(&e.select);
  engine_reader_release(&e.reader);
  strbuf_release(&e.lines);
  mem_free(e.vector);
  return st;
}
