/* SPDX-License-Identifier: Apache-2.0 */
/* op.c - what handlers share: running, rows, opening the store and the collection. */
#include "ops/op_text.h"
#include "ops/op.h"
#include "ops/op_stream.h"
#include "ops/suggest.h"

#include "indexer/index_owned.h"

#include <stdio.h>
#include <unistd.h>

lode_status op_run(op_context *ctx, const op_args *args, lode_error *err) {
  ctx->nothing = ctx->damaged = false;
  lode_status st = args->op->run(ctx, args, err);
  strbuf_release(&ctx->scratch);
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

lode_status op_confirm(const op_context *ctx, const op_args *args, const char *what, lode_error *err) {
  strbuf line = {0};
  char answer[16] = "";
  if (ctx->remote || op_arg_get(args, "yes")->number) return LODE_OK;
  if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
    return err_set(err, LODE_REFUSED, "this removes %.300s: say --yes to do it", what);
  strbuf_addstr(&line, "remove ");
  op_put_printable(&line, str_of(what), 0);
  strbuf_addstr(&line, "? [y/N] ");
  bool asked = !line.failed && op_write_fd(STDERR_FILENO, line.data, line.len) == 0;
  strbuf_release(&line);
  ssize_t n = asked ? read(STDIN_FILENO, answer, sizeof answer - 1) : 0;
  if (n > 0 && (answer[0] == 'y' || answer[0] == 'Y')) return LODE_OK;
  return err_set(err, LODE_REFUSED, "nothing was removed");
}

lode_status op_admit_read(const op_context *ctx, uint64_t rows, lode_error *err) {
  if (!ctx->defer_read || !ctx->defer_read(ctx->defer_read_ctx, rows)) return LODE_OK;
  return err_set(err, LODE_BUSY, "other large reads come first");
}

bool op_allowed_over_http(const op_def *op) {
  if (op->flags & (OP_SERVER | OP_NO_HTTP)) return false;
  if (!(op->flags & OP_LOCAL)) return true;
  if (!(op->flags & OP_READ_ONLY) || (!op->row && !op->summary)) return false;
  for (const op_param *p = op->params; p->name; p++)
    if (p->type == OP_ARG_PATH && (p->flags & OP_PARAM_REQUIRED || p->fallback)) return false;
  return true;
}

void op_http_view(const op_def *op, op_def *out, op_param params[OP_MAX_PARAMS + 1]) {
  size_t n = 0;
  for (const op_param *p = op->params; p->name && n < OP_MAX_PARAMS; p++)
    if (p->type != OP_ARG_PATH) params[n++] = *p;
  params[n] = (op_param){0};
  *out = *op;
  out->params = params;
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

/* ---- Rows ---- */

static strbuf *op_row_field(op_context *ctx, const char *name) {
  strbuf *buf = &ctx->scratch;
  if (buf->len > 1) strbuf_addch(buf, ',');
  json_put_string(buf, str_of(name));
  strbuf_addch(buf, ':');
  return buf;
}

void op_row_begin(op_context *ctx) {
  ctx->scratch.len = 0;
  strbuf_addch(&ctx->scratch, '{');
}

void op_row_text(op_context *ctx, const char *name, lode_str text) {
  strbuf *buf = op_row_field(ctx, name);
  if (text.data)
    json_put_string(buf, text);
  else
    strbuf_addstr(buf, "null");
}

void op_row_count(op_context *ctx, const char *name, uint64_t n) {
  strbuf_addf(op_row_field(ctx, name), "%llu", (unsigned long long)n);
}

void op_row_real(op_context *ctx, const char *name, double d) { json_put_double(op_row_field(ctx, name), d); }

void op_row_bool(op_context *ctx, const char *name, bool b) {
  strbuf_addstr(op_row_field(ctx, name), b ? "true" : "false");
}

void op_row_json(op_context *ctx, const char *name, lode_str json) {
  strbuf *buf = op_row_field(ctx, name);
  if (json.data)
    strbuf_add(buf, json.data, json.len);
  else
    strbuf_addstr(buf, "null");
}

void op_row_vector(op_context *ctx, const char *name, const float *vector, uint32_t dimension) {
  strbuf *buf = op_row_field(ctx, name);
  if (vector)
    json_put_vector(buf, vector, dimension);
  else
    strbuf_addstr(buf, "null");
}

lode_status op_row_send(op_context *ctx, lode_error *err) {
  strbuf_addch(&ctx->scratch, '}');
  if (ctx->scratch.failed) return err_nomem(err);
  return ctx->sink->row(ctx->sink, (lode_str){ctx->scratch.data, ctx->scratch.len}, err);
}

lode_status op_row_send_summary(op_context *ctx, lode_error *err) {
  strbuf_addch(&ctx->scratch, '}');
  if (ctx->scratch.failed) return err_nomem(err);
  return ctx->sink->summary(ctx->sink, (lode_str){ctx->scratch.data, ctx->scratch.len}, err);
}

/* ---- Store and collection ---- */

/* Fails with a hint: the nearest name, or how to list and create collections. */
static lode_status op_no_collection(op_context *ctx, lode_store *store, lode_str name, lode_error *err) {
  lode_collection_list *list = NULL;
  op_suggest best;
  char quoted[256];
  str_quote(name, quoted, sizeof quoted);
  op_suggest_init(&best, name);
  if (lode_collections(store, &list, NULL) == LODE_OK)
    for (size_t i = 0; i < lode_collection_list_count(list); i++)
      op_suggest_try(&best, lode_collection_list_at(list, i)->name);
  lode_collection_list_free(list);
  if (best.found)
    return err_set(err, LODE_NOT_FOUND,
                   "there is no collection %s in %.200s; did you mean \"%s\"? `lode db create` makes a new one", quoted,
                   ctx->folder, best.text);
  return err_set(err, LODE_NOT_FOUND,
                 "there is no collection %s in %.200s; `lode db collections` lists them, `lode db create` makes one",
                 quoted, ctx->folder);
}

lode_status op_target_open(op_context *ctx, const op_args *args, const op_open_options *how,
                           const lode_collection_options *options, op_target *target, lode_error *err) {
  static const lode_collection_options existing;
  lode_str name = op_arg_get(args, "collection")->text;
  memset(target, 0, sizeof *target);
  TRY(ctx->open(ctx->opener, how, &target->store, err));
  lode_status st = how->write ? op_check_may_change(ctx, target->store, how->folder, name, err) : LODE_OK;
  if (st == LODE_OK)
    st = lode_collection_open(target->store, name, options ? options : &existing, &target->collection, err);
  if (st == LODE_NOT_FOUND) st = op_no_collection(ctx, target->store, name, err);
  if (st != LODE_OK) op_target_close(ctx, target);
  return st;
}

void op_target_close(op_context *ctx, op_target *target) {
  if (target->collection) lode_collection_close(target->collection);
  if (target->store) ctx->release(ctx->opener, target->store);
  memset(target, 0, sizeof *target);
}

lode_selection op_selection_of(const op_args *args) {
  static const lode_str none;
  const op_arg *ids = op_arg_get(args, "ids");
  return (lode_selection){
      /* an empty list selects nothing; NULL would select everything */
      .ids = ids->set ? (ids->list ? ids->list : &none) : NULL,
      .n_ids = ids->n,
      .where = op_arg_get(args, "where")->text,
      .where_document = op_arg_get(args, "where_document")->text,
  };
}
