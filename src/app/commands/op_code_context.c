/* SPDX-License-Identifier: Apache-2.0 */
/* op_code_context.c - `lode context`: what belongs to a piece of code. */
#include "commands/op_code.h"

#include "search/context.h"
#include "indexer/code_record.h"

/* Splits FILE:LINE; returns the length of FILE. *line is 0 if there is none. */
static size_t context_split_place(lode_str given, uint64_t *line) {
  *line = 0;
  for (size_t i = given.len; i-- > 1;) {
    if (given.data[i] != ':') continue;
    if (op_parse_uint((lode_str){given.data + i + 1, given.len - i - 1}, line) && *line && *line < UINT32_MAX) return i;
    break;
  }
  *line = 0;
  return given.len;
}

static lode_status context_parse_place(const op_context *ctx, const project_info *project, lode_str given,
                                       search_context_request *request, strbuf *path, lode_error *err) {
  strbuf file = {0}, raw = {0};
  uint64_t line;
  lode_status st;
  strbuf_add(&file, given.data, context_split_place(given, &line));
  strbuf_addch(&file, '\0');
  if (file.failed) TRY_GOTO(err_nomem(err));
  TRY_GOTO(op_code_relative_path(ctx, project, file.data, &raw, err));
  files_path_escape(path, str_of(raw.data));
  if (path->failed) TRY_GOTO(err_nomem(err));
  request->path = (lode_str){path->data ? path->data : "", path->len};
  request->line = (uint32_t)line;
done:
  strbuf_release(&file);
  strbuf_release(&raw);
  return st;
}

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

lode_status op_do_context(op_context *ctx, const op_args *args, lode_error *err) {
  const op_arg *at = op_arg_get(args, "at"), *name = op_arg_get(args, "name");
  search_context_request request = {.name = name->text, .limit = (size_t)op_arg_get(args, "limit")->number};
  project_info project = {0};
  search_context_result context = {0};
  lode_store *store = NULL;
  strbuf path = {0};
  lode_status st;
  if (at->set == name->set)
    return err_set(err, LODE_INVALID, "name one piece of code: a file and a line, or a \"name\"");
  if (name->set && !name->text.len) return err_set(err, LODE_INVALID, "\"name\" must not be empty");
  TRY(op_code_project(ctx, args, "project", &project, err));
  if (at->set) TRY_GOTO(context_parse_place(ctx, &project, at->text, &request, &path, err));
  TRY_GOTO(op_code_open(ctx, &project, false, &store, err));
  TRY_GOTO(search_context_find(&project, store, &request, &context, err));
  for (size_t i = 0; i < context.n && st == LODE_OK; i++) st = context_send_item(ctx, i + 1, &context.items[i], err);
  if (st == LODE_OK && context.more) op_note(ctx, "there are more uses than the %zu shown", request.limit);
  if (st == LODE_OK) op_code_note_stale(ctx, context.stale, context.outside, context.doubted);
done:
  search_context_result_release(&context);
  if (store) ctx->release(ctx->opener, store);
  strbuf_release(&path);
  project_release(&project);
  return st;
}
