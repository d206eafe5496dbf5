/* SPDX-License-Identifier: Apache-2.0 */
/* op_code_context.c - `lode context`: what belongs to a piece of code. */
#include "commands/op_code.h"
#include "ops/op_row.h"
#include "table/op_args_code.h"

#include "search/context.h"
#include "indexer/code_record.h"

static lode_status context_send_item(op_context *ctx, size_t rank, const search_context_item *i, lode_error *err) {
  op_row_begin(ctx);
  op_row_count(ctx, "rank", rank);
  op_row_text(ctx, "relation", str_of(search_relation_name(i->relation)));
  op_row_text(ctx, "path", i->path);
  op_row_count(ctx, "start_line", i->first);
  op_row_count(ctx, "end_line", i->last);
  op_row_text(ctx, "kind", i->kind);
  op_row_text(ctx, "name", i->name.len ? i->name : (lode_str){0});
  op_row_text(ctx, "parents", i->parents.len ? i->parents : (lode_str){0});
  op_row_text(ctx, "language", i->language);
  op_row_text(ctx, "snippet", i->snippet);
  if (i->snippet_line != i->first) op_row_count(ctx, "snippet_line", i->snippet_line);
  if (i->freshness != SEARCH_FILE_FRESH) op_row_text(ctx, "stale", str_of(search_freshness_name(i->freshness)));
  return op_row_send(ctx, err);
}

/* Is it the name of a definition rather than a place? Names of files have a dot, a slash or a line. */
static bool context_names(lode_str text) {
  for (size_t i = 0; i < text.len; i++)
    if (text.data[i] == '.' || text.data[i] == '/') return false;
  const char *colon = text.len ? memchr(text.data, ':', text.len) : NULL;
  return !colon || (colon + 1 < text.data + text.len && colon[1] == ':'); /* Name::of */
}

lode_status op_do_context(op_context *ctx, const op_context_args *args, lode_error *err) {
  const op_arg_text *at = &args->at, *name = &args->name;
  search_context_request request = {.name = name->text, .limit = (size_t)args->limit.n};
  project_info project = {0};
  search_context_result context = {0};
  lode_store *store = NULL;
  op_code_place place = {0};
  lode_status st;
  if (at->set == name->set) return err_set(err, LODE_INVALID, "name one piece of code: a file and a line, or a name");
  if (name->set && !name->text.len) return err_set(err, LODE_INVALID, "\"name\" must not be empty");
  TRY(op_code_project(ctx, args->project.path, &project, err));
  if (at->set && context_names(at->text)) {
    request.name = at->text;
  } else if (at->set) {
    TRY_GOTO(op_code_place_parse(ctx, &project, at->text, &place, err));
    request.path = op_code_place_path(&place);
    request.line = place.line;
  }
  TRY_GOTO(op_code_open(ctx, &project, false, &store, err));
  TRY_GOTO(search_context_find(&project, store, &request, &context, err));
  for (size_t i = 0; i < context.n && st == LODE_OK; i++) st = context_send_item(ctx, i + 1, &context.items[i], err);
  if (st == LODE_OK && context.more) op_note(ctx, "there are more uses than the %zu shown", request.limit);
  if (st == LODE_OK) op_code_note_stale(ctx, context.stale, context.outside, context.doubted);
done:
  search_context_result_release(&context);
  if (store) ctx->release(ctx->opener, store);
  strbuf_release(&place.path);
  project_release(&project);
  return st;
}
