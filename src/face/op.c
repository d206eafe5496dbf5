/* op.c - what handlers share: running, rows, opening the store and the collection. */
#include "cli.h"
#include "op.h"
#include "stream.h"
#include "suggest.h"

#include "code/owned.h"

#include <stdio.h>
#include <unistd.h>

lode_status lode__op_run(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  ctx->nothing = ctx->damaged = false;
  lode_status st = args->op->run(ctx, args, err);
  strbuf_release(&ctx->scratch);
  return st;
}

lode_status lode__op_may_write(const lode__op_context *ctx, lode_error *err) {
  if (!ctx->settings || !ctx->settings->read_only) return LODE_OK;
  return err_set(err, LODE_READONLY, "this writes: leave out --read-only");
}

lode_status lode__op_may_use(const lode__op_context *ctx, lode_error *err) {
  return ctx->may_use ? ctx->may_use(ctx->opener, err) : LODE_OK;
}

lode_status lode__op_may_change(const lode__op_context *ctx, lode_store *store, lode_str name, lode_error *err) {
  return ctx->far && ctx->folder ? project_guard_request(store, ctx->folder, name, err) : project_guard_index(store, name, err);
}

lode_status lode__op_confirm(const lode__op_context *ctx, const lode__args *args, const char *what, lode_error *err) {
  strbuf line = {0};
  char answer[16] = "";
  if (ctx->far || lode__arg_of(args, "yes")->number) return LODE_OK;
  if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
    return err_set(err, LODE_REFUSED, "this removes %.300s: say --yes to do it", what);
  strbuf_addstr(&line, "remove ");
  lode__put_clean(&line, str_of(what), 0);
  strbuf_addstr(&line, "? [y/N] ");
  bool asked = !line.failed && lode__write_fd(STDERR_FILENO, line.data, line.len) == 0;
  strbuf_release(&line);
  ssize_t n = asked ? read(STDIN_FILENO, answer, sizeof answer - 1) : 0;
  if (n > 0 && (answer[0] == 'y' || answer[0] == 'Y')) return LODE_OK;
  return err_set(err, LODE_REFUSED, "nothing was removed");
}

lode_status lode__op_before_reading(const lode__op_context *ctx, uint64_t rows, lode_error *err) {
  if (!ctx->put_back || !ctx->put_back(ctx->put_back_ctx, rows)) return LODE_OK;
  return err_set(err, LODE_BUSY, "other large reads come first");
}

bool lode__op_for_requests(const lode__op *op) {
  if (op->flags & (LODE__OP_SERVES | LODE__OP_HERE)) return false;
  if (!(op->flags & LODE__OP_LOCAL)) return true;
  if (!(op->flags & LODE__OP_READS) || (!op->row && !op->summary)) return false;
  for (const lode__param *p = op->params; p->name; p++)
    if (p->type == LODE__ARG_PATH && (p->flags & LODE__PARAM_REQUIRED || p->fallback)) return false;
  return true;
}

void lode__op_as_request(const lode__op *op, lode__op *out, lode__param params[LODE__OP_MAX_PARAMS + 1]) {
  size_t n = 0;
  for (const lode__param *p = op->params; p->name && n < LODE__OP_MAX_PARAMS; p++)
    if (p->type != LODE__ARG_PATH) params[n++] = *p;
  params[n] = (lode__param){0};
  *out = *op;
  out->params = params;
}

void lode__op_note(lode__op_context *ctx, const char *format, ...) {
  char text[600];
  va_list list;
  if (!ctx->note) return;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  ctx->note(ctx->note_ctx, text);
}

/* ---- Rows ---- */

static strbuf *field(lode__op_context *ctx, const char *name) {
  strbuf *buf = &ctx->scratch;
  if (buf->len > 1) strbuf_addch(buf, ',');
  json_put_string(buf, str_of(name));
  strbuf_addch(buf, ':');
  return buf;
}

void lode__row_begin(lode__op_context *ctx) {
  ctx->scratch.len = 0;
  strbuf_addch(&ctx->scratch, '{');
}

void lode__row_text(lode__op_context *ctx, const char *name, lode_str text) {
  strbuf *buf = field(ctx, name);
  if (text.data) json_put_string(buf, text);
  else strbuf_addstr(buf, "null");
}

void lode__row_count(lode__op_context *ctx, const char *name, uint64_t n) {
  strbuf_addf(field(ctx, name), "%llu", (unsigned long long)n);
}

void lode__row_real(lode__op_context *ctx, const char *name, double d) { json_put_double(field(ctx, name), d); }

void lode__row_bool(lode__op_context *ctx, const char *name, bool b) {
  strbuf_addstr(field(ctx, name), b ? "true" : "false");
}

void lode__row_json(lode__op_context *ctx, const char *name, lode_str json) {
  strbuf *buf = field(ctx, name);
  if (json.data) strbuf_add(buf, json.data, json.len);
  else strbuf_addstr(buf, "null");
}

void lode__row_vector(lode__op_context *ctx, const char *name, const float *vector, uint32_t dimension) {
  strbuf *buf = field(ctx, name);
  if (vector) json_put_vector(buf, vector, dimension);
  else strbuf_addstr(buf, "null");
}

lode_status lode__row_send(lode__op_context *ctx, lode_error *err) {
  strbuf_addch(&ctx->scratch, '}');
  if (ctx->scratch.failed) return err_nomem(err);
  return ctx->sink->row(ctx->sink, (lode_str){ctx->scratch.data, ctx->scratch.len}, err);
}

lode_status lode__row_summary(lode__op_context *ctx, lode_error *err) {
  strbuf_addch(&ctx->scratch, '}');
  if (ctx->scratch.failed) return err_nomem(err);
  return ctx->sink->summary(ctx->sink, (lode_str){ctx->scratch.data, ctx->scratch.len}, err);
}

/* ---- Store and collection ---- */

/* Says how to make the collection, or which one was meant. */
static lode_status no_collection(lode__op_context *ctx, lode_store *store, lode_str name, lode_error *err) {
  lode_collection_list *list = NULL;
  lode__suggest best;
  char quoted[256];
  str_quote(name, quoted, sizeof quoted);
  lode__suggest_init(&best, name);
  if (lode_collections(store, &list, NULL) == LODE_OK)
    for (size_t i = 0; i < lode_collection_list_count(list); i++)
      lode__suggest_try(&best, lode_collection_list_at(list, i)->name);
  lode_collection_list_free(list);
  if (best.found)
    return err_set(err, LODE_NOT_FOUND,
                      "there is no collection %s in %.200s; did you mean \"%s\"? `lode db create` makes a new one",
                      quoted, ctx->folder, best.text);
  return err_set(err, LODE_NOT_FOUND, "there is no collection %s in %.200s; `lode db collections` lists them, `lode db create` makes one",
                    quoted, ctx->folder);
}

lode_status lode__target_open(lode__op_context *ctx, const lode__args *args, const lode__open_how *how,
                              const lode_collection_options *options, lode__target *target, lode_error *err) {
  static const lode_collection_options existing;
  lode_str name = lode__arg_of(args, "collection")->text;
  memset(target, 0, sizeof *target);
  TRY(ctx->open(ctx->opener, how, &target->store, err));
  lode_status st = how->write ? lode__op_may_change(ctx, target->store, name, err) : LODE_OK;
  if (st == LODE_OK) st = lode_collection_open(target->store, name, options ? options : &existing, &target->collection, err);
  if (st == LODE_NOT_FOUND) st = no_collection(ctx, target->store, name, err);
  if (st != LODE_OK) lode__target_close(ctx, target);
  return st;
}

void lode__target_close(lode__op_context *ctx, lode__target *target) {
  if (target->collection) lode_collection_close(target->collection);
  if (target->store) ctx->release(ctx->opener, target->store);
  memset(target, 0, sizeof *target);
}

lode_selection lode__selection_of(const lode__args *args) {
  static const lode_str none;
  const lode__arg *ids = lode__arg_of(args, "ids");
  return (lode_selection){
      /* An empty list restricts to nothing; NULL would mean everything */
      .ids = ids->set ? (ids->list ? ids->list : &none) : NULL,
      .n_ids = ids->n,
      .where = lode__arg_of(args, "where")->text,
      .where_document = lode__arg_of(args, "where_document")->text,
  };
}
