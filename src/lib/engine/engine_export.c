/* SPDX-License-Identifier: Apache-2.0 */
/* engine_export.c - records as lines of JSON.
 *
 * Lines are gathered in memory while a read transaction is open, and passed to the caller's function when none is: a
 * slow consumer must not block commits.
 *
 * The first EXPORT_FLUSH_BYTES are of one moment (reader.c), so a small export is, unless even that takes longer than
 * commits can wait. Lines that were written cannot be taken back: a longer export continues with later moments. It goes
 * by keys, in insertion order, so every record that exists throughout is exported once, as it was when it was read; one
 * that is deleted and added again meanwhile has a new key, and may be exported twice. A backup is of one moment
 * whatever its size.
 */
#include "engine/engine.h"

enum { EXPORT_FLUSH_BYTES = 1 << 20 };

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

static lode_status export_put_vector(export_job *e, const store_rec *rec, lode_error *err) {
  uint32_t dim = e->reader.coll.dim;
  if (!e->vector) e->vector = mem_alloc((size_t)LODE_MAX_DIMENSION * sizeof *e->vector);
  if (!e->vector) return err_nomem(err);
  TRY(store_rec_vector(e->reader.tx, rec->vid, e->vector, dim, err));
  strbuf_addstr(&e->lines, ",\"embedding\":");
  json_put_vector(&e->lines, e->vector, dim);
  return LODE_OK;
}

static lode_status export_put_line(export_job *e, const store_rec *rec, lode_error *err) {
  lode_str document;
  strbuf_addstr(&e->lines, "{\"id\":");
  json_put_string(&e->lines, rec->id);
  if ((e->include & LODE_DOCUMENT) && rec->has_document) {
    TRY(engine_reader_document(&e->reader, rec, &document, err));
    strbuf_addstr(&e->lines, ",\"document\":");
    json_put_string(&e->lines, document);
  }
  if ((e->include & LODE_METADATA) && rec->metadata.data) {
    strbuf_addstr(&e->lines, ",\"metadata\":");
    strbuf_add(&e->lines, rec->metadata.data, rec->metadata.len);
  }
  if ((e->include & LODE_VECTOR) && rec->vid) TRY(export_put_vector(e, rec, err));
  strbuf_addstr(&e->lines, "}\n");
  e->written++;
  return e->lines.failed ? err_nomem(err) : LODE_OK;
}

/* Must be called without a transaction. */
static lode_status export_flush(export_job *e, lode_error *err) {
  size_t at = 0;
  while (at < e->lines.len) {
    int64_t n = e->write(e->ctx, e->lines.data + at, e->lines.len - at);
    if (n <= 0 || (uint64_t)n > e->lines.len - at)
      return err_set(err, LODE_IO, "writing the export failed: is the disk full, or the reader of the pipe gone?");
    at += (size_t)n;
  }
  e->lines.len = 0;
  if (e->total && e->total < e->written) e->total = e->written; /* records were added meanwhile */
  if (e->progress.step && !e->progress.step(e->progress.ctx, "export", e->written, e->total))
    return err_set(err, LODE_CANCELLED, "cancelled after %llu records", (unsigned long long)e->written);
  return LODE_OK;
}

/* Gathers as many lines as fit in one flush. */
static lode_status export_gather(export_job *e, lode_error *err) {
  e->more = true;
  while (e->lines.len < EXPORT_FLUSH_BYTES && !(e->allows_later && engine_reader_is_old(&e->reader))) {
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

lode_status engine_export(lode_collection *collection, const lode_selection *selection, unsigned include,
                          lode_write_fn *write, void *ctx, lode_progress progress, uint64_t *written, lode_error *err) {
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
