/* op_code_context.c - what belongs to a piece of code. */
#include "op_code.h"

#include "code/context.h"
#include "code/record.h"

/* FILE:LINE or FILE; *line 0 when there is none. */
static size_t split_place(lode_str given, uint64_t *line) {
  *line = 0;
  for (size_t i = given.len; i-- > 1;) {
    if (given.data[i] != ':') continue;
    if (lode__parse_uint((lode_str){given.data + i + 1, given.len - i - 1}, line) && *line && *line < UINT32_MAX) return i;
    break;
  }
  *line = 0;
  return given.len;
}

static lode_status take_place(const lode__op_context *ctx, const project_info *project, lode_str given, search_context_request *request,
                              strbuf *path, lode_error *err) {
  strbuf file = {0}, raw = {0};
  uint64_t line;
  lode_status st;
  strbuf_add(&file, given.data, split_place(given, &line));
  strbuf_addch(&file, '\0');
  if (file.failed) TRY_GOTO(err_nomem(err));
  TRY_GOTO(lode__code_relative(ctx, project, file.data, &raw, err));
  files_path_escape(path, str_of(raw.data));
  if (path->failed) TRY_GOTO(err_nomem(err));
  request->path = (lode_str){path->data ? path->data : "", path->len};
  request->line = (uint32_t)line;
done:
  strbuf_release(&file);
  strbuf_release(&raw);
  return st;
}

static lode_status send_item(lode__op_context *ctx, size_t rank, const search_context_item *i, lode_error *err) {
  lode__row_begin(ctx);
  lode__row_count(ctx, "rank", rank);
  lode__row_text(ctx, "relation", str_of(search_relation_name(i->relation)));
  lode__row_text(ctx, "path", i->path);
  lode__row_count(ctx, "start_line", i->first);
  lode__row_count(ctx, "end_line", i->last);
  lode__row_text(ctx, "kind", i->kind);
  lode__row_text(ctx, "name", i->name.len ? i->name : (lode_str){0});
  lode__row_text(ctx, "parents", i->parents.len ? i->parents : (lode_str){0});
  lode__row_text(ctx, "language", i->language);
  lode__row_text(ctx, "snippet", i->snippet);
  if (i->snippet_line != i->first) lode__row_count(ctx, "snippet_line", i->snippet_line);
  if (i->freshness != PROJECT_FILE_FRESH) lode__row_text(ctx, "stale", str_of(project_freshness_name(i->freshness)));
  return lode__row_send(ctx, err);
}

lode_status lode__op_around(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  const lode__arg *at = lode__arg_of(args, "at"), *name = lode__arg_of(args, "name");
  search_context_request request = {.name = name->text, .limit = (size_t)lode__arg_of(args, "limit")->number};
  project_info project = {0};
  search_context_result context = {0};
  lode_store *store = NULL;
  strbuf path = {0};
  lode_status st;
  if (at->set == name->set) return err_set(err, LODE_INVALID, "name one piece of code: a file and a line, or a \"name\"");
  if (name->set && !name->text.len) return err_set(err, LODE_INVALID, "\"name\" must not be empty");
  TRY(lode__code_project(ctx, args, "project", &project, err));
  if (at->set) TRY_GOTO(take_place(ctx, &project, at->text, &request, &path, err));
  TRY_GOTO(lode__code_open(ctx, &project, false, &store, err));
  TRY_GOTO(search_context_find(&project, store, &request, &context, err));
  for (size_t i = 0; i < context.n && st == LODE_OK; i++) st = send_item(ctx, i + 1, &context.items[i], err);
  if (st == LODE_OK && context.more) lode__op_note(ctx, "there are more uses than the %zu shown", request.limit);
  if (st == LODE_OK) lode__code_notes(ctx, context.stale, context.outside, context.doubted);
done:
  search_context_result_release(&context);
  if (store) ctx->release(ctx->opener, store);
  strbuf_release(&path);
  project_release(&project);
  return st;
}
