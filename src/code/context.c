/* context.c - see context.h. */
#include "context.h"

#include "code/record.h"
#include "code/stamp.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_DEFINITIONS = 4, CANDIDATES = 200, USE_LINES = 3, SHORT_BYTES = 600 };

typedef struct finding {
  lode__context *out;
  lode_collection *code, *files;
  lode__showing showing;
  json_doc json;
  strbuf where;
} finding;

const char *lode__relation_name(lode__relation relation) {
  static const char *const names[] = {"definition", "before", "behind", "use"};
  return names[relation];
}

static bool keep(mem_arena *arena, lode_str *text) {
  text->data = mem_arena_copy(arena, text->data ? text->data : "", text->len);
  return text->data != NULL;
}

static lode_status add_item(finding *f, const lode__chunk_view *v, lode__relation relation, lode_str snippet, uint32_t line, lode_error *err) {
  lode__context *c = f->out;
  if (!mem_grow(&c->items, &c->cap, c->n + 1, sizeof *c->items)) return err_nomem(err);
  lode__context_item i = {.relation = relation, .path = v->path, .language = v->language, .kind = v->kind, .name = v->name, .parents = v->parents,
                          .snippet = snippet, .first = v->first, .last = v->last, .snippet_line = line};
  if (!keep(&c->arena, &i.path) || !keep(&c->arena, &i.language) || !keep(&c->arena, &i.kind) || !keep(&c->arena, &i.name) ||
      !keep(&c->arena, &i.parents) || !keep(&c->arena, &i.snippet))
    return err_nomem(err);
  lode__show(f->showing, (char *)i.snippet.data, i.snippet.len);
  c->items[c->n++] = i;
  return LODE_OK;
}

/* The chunk's own text, without the head that the text index sees. False: this record is no chunk. */
static bool view_of(finding *f, const lode_row *row, lode__chunk_view *view, lode_str *text) {
  if (lode__chunk_view_of(row->metadata, &f->json, view, NULL) != LODE_OK || view->offset > row->document.len) return false;
  if (!lode__place_inside(view->path)) {
    f->out->outside++;
    return false;
  }
  *text = (lode_str){row->document.data + view->offset, row->document.len - view->offset};
  while (text->len && (unsigned char)text->data[text->len - 1] <= ' ') text->len--;
  return true;
}

static lode_str head_of(lode_str text) {
  if (text.len <= SHORT_BYTES) return text;
  text.len = SHORT_BYTES;
  while (text.len && text.data[text.len - 1] != '\n') text.len--;
  if (!text.len) {
    text.len = SHORT_BYTES;
    while (text.len && ((unsigned char)text.data[text.len] & 0xc0) == 0x80) text.len--;
  }
  return text;
}

static lode_status rows_where(finding *f, const char *key, lode_str value, size_t limit, lode_result **rows, lode_error *err) {
  f->where.len = 0;
  strbuf_addf(&f->where, "{\"%s\":", key);
  json_put_string(&f->where, value);
  strbuf_addch(&f->where, '}');
  if (f->where.failed) return err_nomem(err);
  lode_get_request get = {.select = {.where = {f->where.data, f->where.len}}, .limit = limit, .include = LODE_DOCUMENT | LODE_METADATA};
  return lode_get(f->code, &get, rows, err);
}

/* ---- The piece itself ---- */

/* By place: the smallest chunk around the line. */
static lode_status find_place(finding *f, const lode__context_request *r, lode_str *id, lode_str *name, lode_error *err) {
  lode_result *rows = NULL;
  const lode_row *best = NULL;
  uint32_t lines = UINT32_MAX;
  lode__chunk_view view;
  lode_str text;
  char quoted[256];
  lode_status st;
  TRY_GOTO(rows_where(f, "path", r->path, 0, &rows, err));
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    const lode_row *row = lode_result_at(rows, i);
    if (!view_of(f, row, &view, &text)) continue;
    bool here = r->line == 0 || (view.first <= r->line && r->line <= view.last);
    if (!here || view.last - view.first >= lines) continue;
    if (r->line == 0 && best) continue;
    best = row;
    lines = view.last - view.first;
  }
  str_quote(r->path, quoted, sizeof quoted);
  if (!best) TRY_GOTO(err_set(err, LODE_NOT_FOUND, "%s%s is not in the index; `lode index` brings it up to date", quoted,
                                   lode_result_count(rows) ? " at that line" : ""));
  (void)view_of(f, best, &view, &text);
  TRY_GOTO(add_item(f, &view, LODE__RELATION_HERE, text, view.first, err));
  *name = f->out->items[0].name;
  *id = best->id;
  if (!keep(&f->out->arena, id)) TRY_GOTO(err_nomem(err));
done:
  lode_result_free(rows);
  return st;
}

static lode_status find_name(finding *f, lode_str name, lode_str *id, lode_error *err) {
  lode_result *rows = NULL;
  lode__chunk_view view;
  lode_str text;
  lode_status st;
  TRY_GOTO(rows_where(f, "name", name, CANDIDATES, &rows, err));
  for (size_t i = 0; i < lode_result_count(rows) && f->out->n < MOST_DEFINITIONS; i++) {
    const lode_row *row = lode_result_at(rows, i);
    if (!view_of(f, row, &view, &text)) continue;
    TRY_GOTO(add_item(f, &view, LODE__RELATION_HERE, text, view.first, err));
    if (id->data) continue;
    *id = row->id;
    if (!keep(&f->out->arena, id)) TRY_GOTO(err_nomem(err));
  }
done:
  lode_result_free(rows);
  return st;
}

/* ---- Neighbours ---- */

/* The chunks before and behind PATH#N. */
static lode_status find_neighbours(finding *f, lode_str id, lode_error *err) {
  const char *mark = memrchr(id.data, '#', id.len);
  lode_result *rows = NULL;
  lode__chunk_view view;
  lode_str ids[2], text, path;
  strbuf names[2] = {{0}, {0}};
  size_t n = 0;
  lode_status st = LODE_OK;
  if (!mark) return LODE_OK;
  unsigned long at = strtoul(mark + 1, NULL, 10);
  path = (lode_str){id.data, (size_t)(mark - id.data)};
  if (at > 0) TRY_GOTO(lode__chunk_id(&names[n++], path, at - 1, err));
  TRY_GOTO(lode__chunk_id(&names[n++], path, at + 1, err));
  for (size_t i = 0; i < n; i++) ids[i] = str_of(names[i].data);
  lode_get_request get = {.select = {.ids = ids, .n_ids = n}, .include = LODE_DOCUMENT | LODE_METADATA};
  TRY_GOTO(lode_get(f->code, &get, &rows, err));
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    const lode_row *row = lode_result_at(rows, i);
    bool before = at > 0 && str_eq(row->id, ids[0]);
    if (!view_of(f, row, &view, &text)) continue;
    TRY_GOTO(add_item(f, &view, before ? LODE__RELATION_BEFORE : LODE__RELATION_BEHIND, head_of(text), view.first, err));
  }
done:
  lode_result_free(rows);
  strbuf_release(&names[0]);
  strbuf_release(&names[1]);
  return st;
}

/* ---- Uses ---- */

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (unsigned char)c >= 0x80;
}

static bool holds_word(lode_str line, lode_str name) {
  for (size_t i = 0; i + name.len <= line.len; i++) {
    if (memcmp(line.data + i, name.data, name.len) != 0) continue;
    bool left = i == 0 || !is_word(line.data[i - 1]) || !is_word(name.data[0]);
    bool right = i + name.len == line.len || !is_word(line.data[i + name.len]) || !is_word(name.data[name.len - 1]);
    if (left && right) return true;
  }
  return false;
}

/* The first lines of a chunk that use the name, as one text; *first is the number of the first of them, 0 when there is none. */
static void lines_with(lode_str text, lode_str name, uint32_t line, strbuf *out, uint32_t *first) {
  size_t found = 0;
  out->len = 0;
  *first = 0;
  for (size_t at = 0; at < text.len && found < USE_LINES; line++) {
    const char *end = memchr(text.data + at, '\n', text.len - at);
    lode_str one = {text.data + at, end ? (size_t)(end - text.data) - at : text.len - at};
    at += one.len + 1;
    /* A snippet is whole lines of the file: one without a break */
    if (*first && line != *first + found) break;
    if (!holds_word(one, name)) continue;
    if (found++ == 0) *first = line;
    strbuf_add(out, one.data, one.len);
    strbuf_addch(out, '\n');
  }
}

static bool is_listed(const lode__context *c, const lode__chunk_view *v) {
  for (size_t i = 0; i < c->n; i++)
    if (c->items[i].relation == LODE__RELATION_HERE && c->items[i].first == v->first && str_eq(c->items[i].path, v->path)) return true;
  return false;
}

static lode_status find_uses(finding *f, lode_str name, size_t limit, lode_error *err) {
  strbuf contains = {0}, lines = {0};
  lode_result *rows = NULL;
  lode__chunk_view view;
  lode_str text;
  uint32_t first;
  size_t n = 0;
  lode_status st = LODE_OK;
  strbuf_addstr(&contains, "{\"$contains\":");
  json_put_string(&contains, name);
  strbuf_addch(&contains, '}');
  if (contains.failed) TRY_GOTO(err_nomem(err));
  lode_query_request q = {.mode = LODE_BY_TEXT, .texts = &name, .n = 1, .k = CANDIDATES, .include = LODE_DOCUMENT | LODE_METADATA,
                          .select = {.where_document = {contains.data, contains.len}}};
  TRY_GOTO(lode_query(f->code, &q, &rows, err));
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    if (!view_of(f, lode_result_at(rows, i), &view, &text)) continue;
    if (str_eq(view.name, name) || is_listed(f->out, &view)) continue;
    lines_with(text, name, view.first, &lines, &first);
    if (lines.failed) TRY_GOTO(err_nomem(err));
    if (!first) continue;
    if (n == limit) {
      f->out->more = true;
      break;
    }
    n++;
    TRY_GOTO(add_item(f, &view, LODE__RELATION_USE, head_of((lode_str){lines.data, lines.len - 1}), first, err));
  }
done:
  lode_result_free(rows);
  strbuf_release(&contains);
  strbuf_release(&lines);
  return st;
}

/* ---- All of it ---- */

static lode_status check_files(finding *f, const char *root, lode_error *err) {
  lode__context *c = f->out;
  lode_str *paths = mem_calloc(c->n, sizeof *paths);
  lode__freshness *fresh = mem_calloc(c->n, sizeof *fresh);
  lode__place place;
  lode_status st = paths && fresh ? LODE_OK : err_nomem(err);
  lode__place_open(&place, root);
  for (size_t i = 0; i < c->n && st == LODE_OK; i++) paths[i] = c->items[i].path;
  if (st == LODE_OK) st = lode__place_check(&place, f->files, paths, c->n, fresh, err);
  for (size_t i = 0; i < c->n && st == LODE_OK; i++) {
    c->items[i].freshness = fresh[i];
    c->stale += fresh[i] != LODE__FRESH;
  }
  lode__place_close(&place);
  mem_free(paths);
  mem_free(fresh);
  return st;
}

static lode_status find_showing(finding *f, const lode__project *project, lode_store *store, lode_error *err) {
  lode_collection_list *list = NULL;
  lode__stamp stamp = {0};
  TRY(lode_collections(store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (str_eq(info->name, STR_LIT(LODE__CODE_FILES))) lode__stamp_parse(info->metadata, &stamp);
  }
  lode_collection_list_free(list);
  f->showing = lode__stamp_showing(&stamp, &project->config);
  f->out->doubted = f->showing == LODE__SHOW_DOUBTED;
  return LODE_OK;
}

lode_status lode__context_find(const lode__project *project, lode_store *store, const lode__context_request *request,
                               lode__context *context, lode_error *err) {
  finding f = {.out = context};
  lode_collection_options plain = {0};
  lode_str id = {0}, name = request->name;
  char quoted[256];
  lode_status st;
  memset(context, 0, sizeof *context);
  mem_arena_init(&context->arena, 0);
  TRY_GOTO(find_showing(&f, project, store, err));
  st = lode_collection_open(store, STR_LIT(LODE__CODE), &plain, &f.code, err);
  if (st == LODE_NOT_FOUND) st = err_set(err, LODE_NOT_FOUND, "%.300s is not indexed yet: run `lode index`", lode__project_name(project));
  if (st != LODE_OK) goto done;
  st = lode_collection_open(store, STR_LIT(LODE__CODE_FILES), &plain, &f.files, err);
  if (st == LODE_NOT_FOUND) err_clear(err);
  else if (st != LODE_OK) goto done;
  if (request->path.data) TRY_GOTO(find_place(&f, request, &id, &name, err));
  else TRY_GOTO(find_name(&f, name, &id, err));
  if (id.data) TRY_GOTO(find_neighbours(&f, id, err));
  if (name.len) TRY_GOTO(find_uses(&f, name, request->limit, err));
  if (!context->n)
    TRY_GOTO(err_set(err, LODE_NOT_FOUND, "nothing in the index defines or uses %s", str_quote(name, quoted, sizeof quoted)));
  TRY_GOTO(check_files(&f, project->root, err));
done:
  if (st != LODE_OK) lode__context_release(context);
  if (f.files) lode_collection_close(f.files);
  if (f.code) lode_collection_close(f.code);
  json_release(&f.json);
  strbuf_release(&f.where);
  return st;
}

void lode__context_release(lode__context *context) {
  mem_free(context->items);
  mem_arena_release(&context->arena);
  memset(context, 0, sizeof *context);
}
