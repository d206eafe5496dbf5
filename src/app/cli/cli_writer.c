/* SPDX-License-Identifier: Apache-2.0 */
/* cli_writer.c - writes an operation's result to a descriptor, as JSON lines or as text (cli_text.c). Output is
 * buffered and written in large pieces. If nobody reads our output any more (head), the operation is cancelled and
 * `closed` is set. */
#include "cli/cli.h"

#include <errno.h>

enum { WRITER_FLUSH_BYTES = 64 * 1024, WRITER_PLAIN_WIDTH = 100 };

lode_status cli_writer_flush(cli_writer *w, lode_error *err) {
  if (w->out.failed) return err_nomem(err);
  if (w->out.len == 0) return LODE_OK;
  if (w->bar) cli_progress_clear(w->bar);
  int errnum = w->closed ? EPIPE : op_write_fd(w->fd, w->out.data, w->out.len);
  w->out.len = 0;
  if (errnum == 0) return LODE_OK;
  if (errnum == EPIPE) {
    w->closed = true;
    return err_set(err, LODE_CANCELLED, "the reader of the output has gone away");
  }
  return err_errno(err, errnum, "the output cannot be written");
}

static lode_status writer_flush_if_full(cli_writer *w, lode_error *err) {
  if (op_interrupted) return err_set(err, LODE_CANCELLED, "interrupted");
  if (w->out.failed) return err_nomem(err);
  return w->out.len >= WRITER_FLUSH_BYTES ? cli_writer_flush(w, err) : LODE_OK;
}

static lode_status writer_put_line(cli_writer *w, lode_str json, lode_error *err) {
  strbuf_add(&w->out, json.data, json.len);
  strbuf_addch(&w->out, '\n');
  return writer_flush_if_full(w, err);
}

static lode_status writer_row(op_sink *sink, lode_str json, lode_error *err) {
  cli_writer *w = (cli_writer *)sink;
  if (w->json) return writer_put_line(w, json, err);
  TRY(json_parse(&w->parsed, json, NULL, err));
  TRY(cli_text_row(w, err));
  w->rows++;
  return writer_flush_if_full(w, err);
}

static lode_status writer_summary(op_sink *sink, lode_str json, lode_error *err) {
  cli_writer *w = (cli_writer *)sink;
  if (w->json && (w->op->flags & OP_HIDE_SUMMARY)) return LODE_OK;
  if (w->json) return writer_put_line(w, json, err);
  TRY(json_parse(&w->parsed, json, NULL, err));
  return cli_text_summary(w, err);
}

static lode_status writer_bytes(op_sink *sink, const void *data, size_t size, lode_error *err) {
  cli_writer *w = (cli_writer *)sink;
  strbuf_add(&w->out, data, size);
  return writer_flush_if_full(w, err);
}

static lode_status writer_flush(op_sink *sink, lode_error *err) {
  cli_writer *w = (cli_writer *)sink;
  cli_text_layout(w);
  return cli_writer_flush(w, err);
}

void cli_writer_init(cli_writer *w, const op_def *op, int fd) {
  memset(w, 0, sizeof *w);
  w->sink = (op_sink){writer_row, writer_summary, writer_bytes, writer_flush};
  w->op = op;
  w->fd = fd;
  w->style.width = WRITER_PLAIN_WIDTH;
}

lode_status cli_writer_finish(cli_writer *w, lode_error *err) {
  cli_text_layout(w);
  return cli_writer_flush(w, err);
}

void cli_writer_release(cli_writer *w) {
  strbuf_release(&w->out);
  strbuf_release(&w->cells);
  json_release(&w->parsed);
}
