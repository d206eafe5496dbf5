/* SPDX-License-Identifier: Apache-2.0 */
/* op_context.c - see op_context.h. */
#include "ops/op_context.h"

#include "indexer/index_owned.h"
#include "ops/op_text.h"

#include <stdio.h>
#include <unistd.h>

bool op_is_address(const char *store) { return strstr(store, "://") != NULL; }

lode_status op_run(op_context *ctx, const op_args *args, lode_error *err) {
  ctx->nothing = ctx->damaged = ctx->unindexed = false;
  ctx->command_line = args->flags;
  ctx->op = args->op;
  mem_arena_init(&ctx->row.arena, 0);
  lode_status st = args->op->run(ctx, args->values, err);
  mem_arena_release(&ctx->row.arena);
  return st;
}

lode_status op_check_may_write(const op_context *ctx, lode_error *err) {
  if (!ctx->settings || !ctx->settings->read_only) return LODE_OK;
  return err_set(err, LODE_READONLY, "this writes: leave out --read-only");
}

lode_status op_check_trust(const op_context *ctx, lode_error *err) {
  return ctx->may_use ? ctx->may_use(ctx->opener, err) : LODE_OK;
}

lode_status op_check_may_change(const op_context *ctx, lode_store *store, const char *folder, lode_str name,
                                lode_error *err) {
  if (!folder) folder = ctx->folder;
  return ctx->remote ? indexer_guard_request(store, folder, name, err) : indexer_guard_index(store, folder, name, err);
}

bool op_can_ask(const op_context *ctx) {
  return ctx->command_line && !ctx->remote && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

bool op_ask(const char *question, bool yes) {
  strbuf line = {0};
  char answer[16] = "";
  op_put_printable(&line, str_of(question), 0);
  strbuf_addstr(&line, yes ? " [Y/n] " : " [y/N] ");
  bool asked = !line.failed && op_write_fd(STDERR_FILENO, line.data, line.len) == 0;
  strbuf_release(&line);
  ssize_t n = asked ? read(STDIN_FILENO, answer, sizeof answer - 1) : 0;
  return n > 0 && (answer[0] == 'y' || answer[0] == 'Y' || (yes && answer[0] == '\n'));
}

lode_status op_confirm(const op_context *ctx, bool yes, const char *what, lode_error *err) {
  char question[700];
  if (ctx->remote || yes) return LODE_OK;
  if (!op_can_ask(ctx)) return err_set(err, LODE_REFUSED, "this removes %.300s: give --yes to do it", what);
  snprintf(question, sizeof question, "remove %.600s?", what);
  return op_ask(question, false) ? LODE_OK : err_set(err, LODE_REFUSED, "nothing was removed");
}

lode_status op_admit_read(const op_context *ctx, uint64_t rows, lode_error *err) {
  if (!ctx->defer_read || !ctx->defer_read(ctx->defer_read_ctx, rows)) return LODE_OK;
  return err_set(err, LODE_BUSY, "other large reads come first");
}

void op_note(op_context *ctx, const char *format, ...) {
  char text[600];
  va_list list;
  if (!ctx->note) return;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  ctx->note(ctx->note_ctx, text);
}
