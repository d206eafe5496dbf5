/* export.c - records as lines of JSON.
 *
 * Lines are gathered in memory while a read transaction is open, and handed to the caller's function when it is not: a
 * slow consumer must not hold up commits.
 *
 * The first EXPORT_FLUSH_BYTES are an answer of one moment (reader.c), so a small export is, unless even that takes longer
 * than commits can wait. What was handed out cannot be taken back: a longer one follows later moments from there on.
 * It goes by keys, which are in the order of insertion, so every record that is there from beginning to end is in it
 * once, as it was when it was read; one that is deleted and added again meanwhile has a new key, and may be in it
 * twice. A backup is of one moment whatever its size.
 */
#include "core.h"

enum { FLUSH_BYTES = 1 << 20 };

typedef struct export {
  lode__reader reader;
  lode__select select;
  unsigned include;
  strbuf lines;
  float *vector;
  lode_write_fn *write;
  void *ctx;
  lode_progress progress;
  uint64_t total, written;
  bool more, flows;
} export;

static lode_status put_vector(export *e, const store_rec *rec, lode_error *err) {
  uint32_t dim = e->reader.coll.dim;
  if (!e->vector) e->vector = mem_alloc((size_t)LODE_MAX_DIMENSION * sizeof *e->vector);
  if (!e->vector) return err_nomem(err);
  TRY(store_rec_vector(e->reader.tx, rec->vid, e->vector, dim, err));
  strbuf_addstr(&e->lines, ",\"embedding\":");
  json_put_vector(&e->lines, e->vector, dim);
  return LODE_OK;
}

static lode_status put_line(export *e, const store_rec *rec, lode_error *err) {
  lode_str document;
  strbuf_addstr(&e->lines, "{\"id\":");
  json_put_string(&e->lines, rec->id);
  if ((e->include & LODE_DOCUMENT) && rec->has_document) {
    TRY(lode__reader_document(&e->reader, rec, &document, err));
    strbuf_addstr(&e->lines, ",\"document\":");
    json_put_string(&e->lines, document);
  }
  if ((e->include & LODE_METADATA) && rec->metadata.data) {
    strbuf_addstr(&e->lines, ",\"metadata\":");
    strbuf_add(&e->lines, rec->metadata.data, rec->metadata.len);
  }
  if ((e->include & LODE_VECTOR) && rec->vid) TRY(put_vector(e, rec, err));
  strbuf_addstr(&e->lines, "}\n");
  e->written++;
  return e->lines.failed ? err_nomem(err) : LODE_OK;
}

/* Without a transaction. */
static lode_status flush(export *e, lode_error *err) {
  size_t at = 0;
  while (at < e->lines.len) {
    int64_t n = e->write(e->ctx, e->lines.data + at, e->lines.len - at);
    if (n <= 0 || (uint64_t)n > e->lines.len - at)
      return err_set(err, LODE_IO, "writing the export failed: is the disk full, or the reader of the pipe gone?");
    at += (size_t)n;
  }
  e->lines.len = 0;
  if (e->total && e->total < e->written) e->total = e->written; /* somebody added some meanwhile */
  if (e->progress.step && !e->progress.step(e->progress.ctx, "export", e->written, e->total))
    return err_set(err, LODE_CANCELLED, "cancelled after %llu records", (unsigned long long)e->written);
  return LODE_OK;
}

/* As many as fit in one flush. */
static lode_status gather(export *e, lode_error *err) {
  e->more = true;
  while (e->lines.len < FLUSH_BYTES && !(e->flows && lode__reader_is_old(&e->reader))) {
    store_rec rec;
    TRY(lode__select_next(&e->select, &rec, &e->more, err));
    if (!e->more) break;
    TRY(put_line(e, &rec, err));
  }
  return LODE_OK;
}

static lode_status gather_first(void *ctx, lode_error *err) {
  export *e = ctx;
  lode__select_again(&e->select);
  e->lines.len = 0;
  e->written = 0;
  if (!e->select.what.ids && !e->select.has_filter) e->total = e->reader.coll.records;
  return gather(e, err);
}

static lode_status export_all(export *e, lode_error *err) {
  lode_status st = lode__reader_answer(&e->reader, gather_first, e, err);
  if (st != LODE_OK && !e->reader.gave_way) return st;
  err_clear(err);
  (void)lode__reader_follow(&e->reader);
  e->flows = true;
  if (st != LODE_OK) TRY(gather_first(e, err));
  for (;;) {
    lode__reader_pause(&e->reader);
    TRY(flush(e, err));
    if (!e->more) return LODE_OK;
    TRY(gather(e, err));
  }
}

lode_status lode__core_export(lode_collection *collection, const lode_selection *selection, unsigned include, lode_write_fn *write,
                              void *ctx, lode_progress progress, uint64_t *written, lode_error *err) {
  static const lode_selection everything;
  const lode_selection *what = selection ? selection : &everything;
  export e = {.include = include, .write = write, .ctx = ctx, .progress = progress};
  lode_status st;
  err_clear(err);
  if (written) *written = 0;
  lode__reader_init(&e.reader, collection);
  TRY_GOTO(lode__check_include(include, err));
  TRY_GOTO(lode__select_init(&e.select, &e.reader, what, err));
  TRY_GOTO(export_all(&e, err));
  if (written) *written = e.written;
done:
  lode__select_release(&e.select);
  lode__reader_release(&e.reader);
  strbuf_release(&e.lines);
  mem_free(e.vector);
  return st;
}
