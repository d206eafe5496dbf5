/* SPDX-License-Identifier: Apache-2.0 */
/* context.c - see context.h. */
#include "search/context.h"

#include "indexer/code_record.h"
#include "indexer/index_stamp.h"
#include "search/search_internal.h"

#include <stdlib.h>

typedef struct context_state {
  search_context_result *out;
  lode_collection *code, *files;
  indexer_display showing;
  bool unmarked, versioned; /* as in search_ctx */
  search_versions seen;
  const search_versions *before;
  bool moving, last; /* a file was replaced while it was read; this is the last attempt */
  json_doc json;
  strbuf where;
} context_state;

const char *search_relation_name(search_relation relation) {
  static const char *const names[] = {"definition", "before", "behind", "use"};
  return names[relation];
}

static bool context_keep_text(mem_arena *arena, lode_str *text) {
  text->data = mem_arena_copy(arena, text->data ? text->data : "", text->len);
  return text->data != NULL;
}

static lode_status context_add_item(context_state *f, const indexer_chunk_view *v, search_relation relation,
                                    lode_str snippet, uint32_t line, lode_error *err) {
  search_context_result *c = f->out;
  if (!mem_grow(&c->items, &c->cap, c->n + 1, sizeof *c->items)) return err_nomem(err);
  search_context_item i = {.relation = relation,
                           .path = v->path,
                           .language = v->language,
                           .kind = v->kind,
                           .name = v->name,
                           .parents = v->parents,
                           .snippet = snippet,
                           .first = v->first,
                           .last = v->last,
                           .snippet_line = line};
  if (!context_keep_text(&c->arena, &i.path) || !context_keep_text(&c->arena, &i.language) ||
      !context_keep_text(&c->arena, &i.kind) || !context_keep_text(&c->arena, &i.name) ||
      !context_keep_text(&c->arena, &i.parents) || !context_keep_text(&c->arena, &i.snippet))
    return err_nomem(err);
  indexer_mask_for_display(f->showing, (char *)i.snippet.data, i.snippet.len);
  c->items[c->n++] = i;
  return LODE_OK;
}

/* Reads which versions the rows' files have. */
static lode_status context_note_versions(context_state *f, const lode_result *rows, lode_error *err) {
  return f->versioned ? search_versions_load_rows(&f->seen, f->files, rows, err) : LODE_OK;
}

static bool context_is_current(context_state *f, lode_str id) {
  bool settled = true;
  if (!f->versioned) return true;
  search_version_fit fit = search_versions_judge(&f->seen, f->before, id, &settled);
  f->moving = f->moving || !settled;
  return fit == SEARCH_VERSION_FITS || (fit == SEARCH_VERSION_UNSURE && !f->last);
}

/* The chunk's own text, without the head that the text index sees. False: the record is not a chunk, or is outside, or
 * not of its file any more. */
static bool context_view_of(context_state *f, const lode_row *row, indexer_chunk_view *view, lode_str *text) {
  if (!context_is_current(f, row->id) || indexer_chunk_view_parse(row->metadata, &f->json, view, NULL) != LODE_OK ||
      view->offset > row->document.len)
    return false;
  if (!search_path_is_inside(view->path)) {
    f->out->outside++;
    return false;
  }
  *text = (lode_str){row->document.data + view->offset, row->document.len - view->offset};
  while (text->len && (unsigned char)text->data[text->len - 1] <= ' ') text->len--;
  return true;
}

static lode_str context_head_of(lode_str text) {
  if (text.len <= SEARCH_CONTEXT_SHORT_BYTES) return text;
  text.len = SEARCH_CONTEXT_SHORT_BYTES;
  while (text.len && text.data[text.len - 1] != '\n') text.len--;
  if (!text.len) {
    text.len = SEARCH_CONTEXT_SHORT_BYTES;
    while (text.len && ((unsigned char)text.data[text.len] & 0xc0) == 0x80) text.len--;
  }
  return text;
}

/* Chunks that f->where selects. */
static lode_status context_rows(context_state *f, size_t limit, lode_result **rows, lode_error *err) {
  if (f->where.failed) return err_nomem(err);
  lode_get_request get = {
      .select = {.where = {f->where.data, f->where.len}}, .limit = limit, .include = LODE_DOCUMENT | LODE_METADATA};
  TRY(lode_get(f->code, &get, rows, err));
  return context_note_versions(f, *rows, err);
}

static lode_status context_rows_of_file(context_state *f, lode_str path, lode_result **rows, lode_error *err) {
  f->where.len = 0;
  strbuf_addstr(&f->where, "{\"path\":");
  json_put_string(&f->where, path);
  strbuf_addch(&f->where, '}');
  return context_rows(f, 0, rows, err);
}

/* ---- The definition ---- */

/* By position: the smallest chunk around the line. */
static lode_status context_find_place(context_state *f, const search_context_request *r, lode_str *id, lode_str *name,
                                      lode_error *err) {
  lode_result *rows = NULL;
  const lode_row *best = NULL;
  uint32_t lines = UINT32_MAX;
  indexer_chunk_view view;
  lode_str text;
  char quoted[256];
  lode_status st;
  TRY_GOTO(context_rows_of_file(f, r->path, &rows, err));
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    const lode_row *row = lode_result_at(rows, i);
    if (!context_view_of(f, row, &view, &text)) continue;
    bool here = r->line == 0 || (view.first <= r->line && r->line <= view.last);
    if (!here || view.last - view.first >= lines) continue;
    if (r->line == 0 && best) continue;
    best = row;
    lines = view.last - view.first;
  }
  str_quote(r->path, quoted, sizeof quoted);
  if (!best)
    TRY_GOTO(err_set(err, LODE_NOT_FOUND, "%s%s is not in the index; `lode index` brings it up to date", quoted,
                     lode_result_count(rows) ? " at that line" : ""));
  (void)context_view_of(f, best, &view, &text);
  TRY_GOTO(context_add_item(f, &view, SEARCH_RELATION_DEFINITION, text, view.first, err));
  *name = f->out->items[0].name;
  *id = best->id;
  if (!context_keep_text(&f->out->arena, id)) TRY_GOTO(err_nomem(err));
done:
  lode_result_free(rows);
  return st;
}

/* Does the definition of a name begin in the chunk? If it shares the chunk, the view becomes that of the definition. */
static bool context_is_defined_in(context_state *f, indexer_chunk_view *view, lode_str name) {
  const char *at = NULL;
  indexer_def def;
  if (str_eq(view->name, name)) return view->head.len != 0 || f->unmarked;
  for (size_t i = 0; indexer_chunk_view_def(view, &f->json, i, &at, &def); i++) {
    if (!str_eq(def.name, name)) continue;
    view->name = def.name;
    view->kind = def.kind;
    view->line = def.line;
    return true;
  }
  return false;
}

static lode_status context_find_name(context_state *f, lode_str name, lode_str *id, lode_error *err) {
  lode_result *rows = NULL;
  indexer_chunk_view view;
  lode_str text;
  lode_status st;
  f->where.len = 0;
  strbuf_addstr(&f->where, "{\"$or\":[");
  search_put_name_clause(&f->where, name);
  strbuf_addstr(&f->where, "]}");
  TRY_GOTO(context_rows(f, SEARCH_CONTEXT_CANDIDATES, &rows, err));
  for (size_t i = 0; i < lode_result_count(rows) && f->out->n < SEARCH_CONTEXT_DEFINITIONS; i++) {
    const lode_row *row = lode_result_at(rows, i);
    if (!context_view_of(f, row, &view, &text) || !context_is_defined_in(f, &view, name)) continue;
    TRY_GOTO(context_add_item(f, &view, SEARCH_RELATION_DEFINITION, text, view.first, err));
    if (id->data) continue;
    *id = row->id;
    if (!context_keep_text(&f->out->arena, id)) TRY_GOTO(err_nomem(err));
  }
done:
  lode_result_free(rows);
  return st;
}

/* ---- Neighbours ---- */

/* The chunks before and after PATH#N. */
static lode_status context_find_neighbours(context_state *f, lode_str id, lode_error *err) {
  lode_result *rows = NULL;
  indexer_chunk_view view;
  lode_str ids[2], text;
  strbuf names[2] = {{0}, {0}};
  size_t n = 0;
  lode_status st = LODE_OK;
  bool first = !indexer_chunk_id_beside(&names[0], id, -1), last = !indexer_chunk_id_beside(&names[1], id, 1);
  if (names[0].failed || names[1].failed) TRY_GOTO(err_nomem(err));
  if (!first) ids[n++] = (lode_str){names[0].data, names[0].len};
  if (!last) ids[n++] = (lode_str){names[1].data, names[1].len};
  if (!n) goto done;
  lode_get_request get = {.select = {.ids = ids, .n_ids = n}, .include = LODE_DOCUMENT | LODE_METADATA};
  TRY_GOTO(lode_get(f->code, &get, &rows, err));
  TRY_GOTO(context_note_versions(f, rows, err));
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    const lode_row *row = lode_result_at(rows, i);
    bool before = !first && str_eq(row->id, ids[0]);
    if (!context_view_of(f, row, &view, &text)) continue;
    TRY_GOTO(context_add_item(f, &view, before ? SEARCH_RELATION_BEFORE : SEARCH_RELATION_AFTER, context_head_of(text),
                              view.first, err));
  }
done:
  lode_result_free(rows);
  strbuf_release(&names[0]);
  strbuf_release(&names[1]);
  return st;
}

/* ---- Uses ---- */

static bool context_is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         (unsigned char)c >= 0x80;
}

static bool context_holds_word(lode_str line, lode_str name) {
  for (size_t i = 0; i + name.len <= line.len; i++) {
    if (memcmp(line.data + i, name.data, name.len) != 0) continue;
    bool left = i == 0 || !context_is_word_char(line.data[i - 1]) || !context_is_word_char(name.data[0]);
    bool right = i + name.len == line.len || !context_is_word_char(line.data[i + name.len]) ||
                 !context_is_word_char(name.data[name.len - 1]);
    if (left && right) return true;
  }
  return false;
}

/* The first lines of a chunk that use the name, as one text; *first is the number of the first one, 0 when there is
 * none. */
static void context_lines_with(lode_str text, lode_str name, uint32_t line, strbuf *out, uint32_t *first) {
  size_t found = 0;
  out->len = 0;
  *first = 0;
  for (size_t at = 0; at < text.len && found < SEARCH_CONTEXT_USE_LINES; line++) {
    const char *end = memchr(text.data + at, '\n', text.len - at);
    lode_str one = {text.data + at, end ? (size_t)(end - text.data) - at : text.len - at};
    at += one.len + 1;
    /* A snippet is consecutive lines of the file */
    if (*first && line != *first + found) break;
    if (!context_holds_word(one, name)) continue;
    if (found++ == 0) *first = line;
    strbuf_add(out, one.data, one.len);
    strbuf_addch(out, '\n');
  }
}

static bool context_is_listed(const search_context_result *c, const indexer_chunk_view *v) {
  for (size_t i = 0; i < c->n; i++)
    if (c->items[i].relation == SEARCH_RELATION_DEFINITION && c->items[i].first == v->first &&
        str_eq(c->items[i].path, v->path))
      return true;
  return false;
}

static lode_status context_find_uses(context_state *f, lode_str name, size_t limit, lode_error *err) {
  strbuf contains = {0}, lines = {0};
  lode_result *rows = NULL;
  indexer_chunk_view view;
  lode_str text;
  uint32_t first;
  size_t n = 0;
  lode_status st = LODE_OK;
  strbuf_addstr(&contains, "{\"$contains\":");
  json_put_string(&contains, name);
  strbuf_addch(&contains, '}');
  if (contains.failed) TRY_GOTO(err_nomem(err));
  lode_query_request q = {.mode = LODE_BY_TEXT,
                          .texts = &name,
                          .n = 1,
                          .k = SEARCH_CONTEXT_CANDIDATES,
                          .include = LODE_DOCUMENT | LODE_METADATA,
                          .select = {.where_document = {contains.data, contains.len}}};
  TRY_GOTO(lode_query(f->code, &q, &rows, err));
  TRY_GOTO(context_note_versions(f, rows, err));
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    if (!context_view_of(f, lode_result_at(rows, i), &view, &text)) continue;
    if (str_eq(view.name, name) || context_is_listed(f->out, &view)) continue;
    context_lines_with(text, name, view.first, &lines, &first);
    if (lines.failed) TRY_GOTO(err_nomem(err));
    if (!first) continue;
    if (n == limit) {
      f->out->more = true;
      break;
    }
    n++;
    TRY_GOTO(context_add_item(f, &view, SEARCH_RELATION_USE, context_head_of((lode_str){lines.data, lines.len - 1}),
                              first, err));
  }
done:
  lode_result_free(rows);
  strbuf_release(&contains);
  strbuf_release(&lines);
  return st;
}

/* ---- Entry point ---- */

static lode_status context_check_files(context_state *f, const char *root, lode_error *err) {
  search_context_result *c = f->out;
  lode_str *paths = mem_calloc(c->n, sizeof *paths);
  search_freshness *fresh = mem_calloc(c->n, sizeof *fresh);
  search_file_reader reader;
  lode_status st = paths && fresh ? LODE_OK : err_nomem(err);
  search_file_reader_open(&reader, root);
  for (size_t i = 0; i < c->n && st == LODE_OK; i++) paths[i] = c->items[i].path;
  if (st == LODE_OK) st = search_file_reader_check(&reader, f->files, paths, c->n, fresh, err);
  for (size_t i = 0; i < c->n && st == LODE_OK; i++) {
    c->items[i].freshness = fresh[i];
    c->stale += fresh[i] != SEARCH_FILE_FRESH;
  }
  search_file_reader_close(&reader);
  mem_free(paths);
  mem_free(fresh);
  return st;
}

static lode_status find_showing(context_state *f, const project_info *project, lode_store *store, lode_error *err) {
  lode_collection_list *list = NULL;
  indexer_stamp stamp = {0};
  TRY(lode_collections(store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (str_eq(info->name, STR_LIT(INDEXER_COLL_FILES))) indexer_stamp_parse(info->metadata, &stamp);
  }
  lode_collection_list_free(list);
  f->unmarked = stamp.revision < INDEXER_REVISION_HEADS;
  f->versioned = stamp.versions;
  f->showing = indexer_stamp_display(&stamp, &project->config);
  f->out->doubted = f->showing == INDEXER_DISPLAY_UNSURE;
  return LODE_OK;
}

static lode_status context_find_once(context_state *state, const project_info *project, lode_store *store,
                                     const search_context_request *request, lode_error *err) {
  context_state f = *state;
  search_context_result *context = f.out;
  lode_collection_options plain = {0};
  lode_str id = {0}, name = request->name;
  char quoted[256];
  lode_status st;
  memset(context, 0, sizeof *context);
  mem_arena_init(&context->arena, 0);
  TRY_GOTO(find_showing(&f, project, store, err));
  st = lode_collection_open(store, STR_LIT(INDEXER_COLL_CODE), &plain, &f.code, err);
  if (st == LODE_NOT_FOUND)
    st = err_set(err, LODE_NOT_FOUND, "%.300s is not indexed yet: run `lode index`", project_display_name(project));
  if (st != LODE_OK) goto done;
  st = lode_collection_open(store, STR_LIT(INDEXER_COLL_FILES), &plain, &f.files, err);
  if (st == LODE_NOT_FOUND)
    err_clear(err);
  else if (st != LODE_OK)
    goto done;
  f.versioned = f.versioned && f.files;
  if (request->path.data)
    TRY_GOTO(context_find_place(&f, request, &id, &name, err));
  else
    TRY_GOTO(context_find_name(&f, name, &id, err));
  if (id.data) TRY_GOTO(context_find_neighbours(&f, id, err));
  if (name.len) TRY_GOTO(context_find_uses(&f, name, request->limit, err));
  if (!context->n)
    TRY_GOTO(err_set(err, LODE_NOT_FOUND, "nothing in the index defines or uses %s",
                     str_quote(name, quoted, sizeof quoted)));
  TRY_GOTO(context_check_files(&f, project->root, err));
done:
  if (st != LODE_OK) search_context_result_release(context);
  if (f.files) lode_collection_close(f.files);
  if (f.code) lode_collection_close(f.code);
  json_release(&f.json);
  strbuf_release(&f.where);
  *state = f;
  return st;
}

/* A file that is replaced while it is looked at is looked at again. */
lode_status search_context_find(const project_info *project, lode_store *store, const search_context_request *request,
                                search_context_result *context, lode_error *err) {
  search_versions before;
  search_versions_init(&before);
  for (int attempt = 1;; attempt++) {
    context_state f = {.out = context, .before = attempt > 1 ? &before : NULL, .last = attempt >= SEARCH_ATTEMPTS};
    search_versions_init(&f.seen);
    lode_status st = context_find_once(&f, project, store, request, err);
    search_versions_release(&before);
    before = f.seen;
    bool again = f.moving && !f.last && (st == LODE_OK || st == LODE_NOT_FOUND);
    if (again && st == LODE_OK) search_context_result_release(context);
    if (again) continue;
    search_versions_release(&before);
    return st;
  }
}

void search_context_result_release(search_context_result *context) {
  mem_free(context->items);
  mem_arena_release(&context->arena);
  memset(context, 0, sizeof *context);
}
