/* SPDX-License-Identifier: Apache-2.0 */
/* cli_writer.c - writes an operation's result to a descriptor, as JSON lines or as text (cli_text.c). Output is
 * buffered and written in large pieces. If nobody reads our output any more (head), the operation is cancelled and
 * `closed` is set. */
#include "cli/cli_writer.h"

#include <errno.h>

enum { WRITER_FLUSH_BYTES = 64 * 1024, WRITER_PLAIN_WIDTH = 100 };

static lode_status writer_write_pending(cli_writer *w, lode_error *err) {
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
  return w->out.len >= WRITER_FLUSH_BYTES ? writer_write_pending(w, err) : LODE_OK;
}

static lode_status writer_put_line(cli_writer *w, const op_row *row, lode_error *err) {
  op_row_put_json(&w->out, row);
  strbuf_addch(&w->out, '\n');
  return writer_flush_if_full(w, err);
}

static lode_status writer_row(op_sink *sink, op_row *row, lode_error *err) {
  cli_writer *w = (cli_writer *)sink;
  if (w->json) return writer_put_line(w, row, err);
  TRY(cli_text_row(w, row, err));
  w->rows++;
  return writer_flush_if_full(w, err);
}

static lode_status writer_summary(op_sink *sink, op_row *summary, lode_error *err) {
  cli_writer *w = (cli_writer *)sink;
  if (w->json && (w->op->flags & OP_HIDE_SUMMARY)) return LODE_OK;
  if (w->json) return writer_put_line(w, summary, err);
  return cli_text_summary(w, summary, err);
}

static lode_status writer_bytes(op_sink *sink, const void *data, size_t size, lode_error *err) {
  cli_writer *w = (cli_writer *)sink;
  strbuf_add(&w->out, data, size);
  return writer_flush_if_full(w, err);
}

static lode_status writer_flush(op_sink *sink, lode_error *err) {
  cli_writer *w = (cli_writer *)sink;
  cli_text_layout(w);
  return writer_write_pending(w, err);
}

void cli_writer_init(cli_writer *w, const op_def *op, int fd) {
  memset(w, 0, sizeof *w);
  w->sink = (op_sink){writer_row, writer_summary, writer_bytes, writer_flush};
  w->op = op;
  w->fd = fd;
  w->style.width = WRITER_PLAIN_WIDTH;
}

void cli_writer_set_args(cli_writer *w, const op_args *args) {
  if (args->op->layout != OP_LAYOUT_HITS) return;
  const op_arg_path *project = op_args_find(args, "project", OP_ARG_PATH);
  const op_arg_text *query = op_args_find(args, "query", OP_ARG_TEXT);
  const op_arg_int *context = op_args_find(args, "context", OP_ARG_INT);
  const op_arg_flag *files_only = op_args_find(args, "files_only", OP_ARG_FLAG);
  const op_arg_flag *oneline = op_args_find(args, "oneline", OP_ARG_FLAG);
  if (project) w->project = project->path;
  if (query) w->searched = query->text;
  w->whole_snippets = context && context->set;
  w->files_only = files_only && files_only->on;
  w->oneline = oneline && oneline->on;
}

lode_status cli_writer_finish(cli_writer *w, lode_error *err) {
  cli_text_layout(w);
  return writer_write_pending(w, err);
}

void cli_writer_release(cli_writer *w) {
  strbuf_release(&w->out);
  strbuf_release(&w->cells);
  strbuf_release(&w->heading);
}
