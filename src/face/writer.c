/* writer.c - an operation's answer to a descriptor, as JSON lines or as text (text.c). Output is gathered and written in
 * large pieces. When the reader of our output goes away (head), the work is cancelled and `closed` says why. */
#include "cli.h"

#include <errno.h>

enum { FLUSH_BYTES = 64 * 1024, PLAIN_WIDTH = 100 };

lode_status lode__writer_flush(lode__writer *w, lode_error *err) {
  if (w->out.failed) return err_nomem(err);
  if (w->out.len == 0) return LODE_OK;
  if (w->bar) lode__progress_clear(w->bar);
  int errnum = w->closed ? EPIPE : lode__write_fd(w->fd, w->out.data, w->out.len);
  w->out.len = 0;
  if (errnum == 0) return LODE_OK;
  if (errnum == EPIPE) {
    w->closed = true;
    return err_set(err, LODE_CANCELLED, "the reader of the output has gone away");
  }
  return err_errno(err, errnum, "the output cannot be written");
}

static lode_status flush_if_full(lode__writer *w, lode_error *err) {
  if (lode__interrupted) return err_set(err, LODE_CANCELLED, "interrupted");
  if (w->out.failed) return err_nomem(err);
  return w->out.len >= FLUSH_BYTES ? lode__writer_flush(w, err) : LODE_OK;
}

static lode_status put_line(lode__writer *w, lode_str json, lode_error *err) {
  strbuf_add(&w->out, json.data, json.len);
  strbuf_addch(&w->out, '\n');
  return flush_if_full(w, err);
}

static lode_status row(lode__sink *sink, lode_str json, lode_error *err) {
  lode__writer *w = (lode__writer *)sink;
  if (w->json) return put_line(w, json, err);
  TRY(json_parse(&w->parsed, json, NULL, err));
  TRY(lode__text_row(w, err));
  w->rows++;
  return flush_if_full(w, err);
}

static lode_status summary(lode__sink *sink, lode_str json, lode_error *err) {
  lode__writer *w = (lode__writer *)sink;
  if (w->json && (w->op->flags & LODE__OP_HIDE_SUMMARY)) return LODE_OK;
  if (w->json) return put_line(w, json, err);
  TRY(json_parse(&w->parsed, json, NULL, err));
  return lode__text_summary(w, err);
}

static lode_status bytes(lode__sink *sink, const void *data, size_t size, lode_error *err) {
  lode__writer *w = (lode__writer *)sink;
  strbuf_add(&w->out, data, size);
  return flush_if_full(w, err);
}

static lode_status flush(lode__sink *sink, lode_error *err) {
  lode__writer *w = (lode__writer *)sink;
  lode__text_layout(w);
  return lode__writer_flush(w, err);
}

void lode__writer_init(lode__writer *w, const lode__op *op, int fd) {
  memset(w, 0, sizeof *w);
  w->sink = (lode__sink){row, summary, bytes, flush};
  w->op = op;
  w->fd = fd;
  w->style.width = PLAIN_WIDTH;
}

lode_status lode__writer_finish(lode__writer *w, lode_error *err) {
  lode__text_layout(w);
  return lode__writer_flush(w, err);
}

void lode__writer_release(lode__writer *w) {
  strbuf_release(&w->out);
  strbuf_release(&w->cells);
  json_release(&w->parsed);
}
