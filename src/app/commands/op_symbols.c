/* SPDX-License-Identifier: Apache-2.0 */
/* op_symbols.c - `lode outline`, `def`, `refs`, `callers`, `callees`, `trace`; see op_symbols.h. */
#include "commands/op_symbols.h"

#include "ops/op_row.h"
#include "table/op_args_symbols.h"

/* ---- What they share ---- */

static op_code_refresh_mode symbols_refresh_mode(const op_context *ctx, const project_info *project) {
  const char *setting = config_text(&project->config, CONFIG_SEARCH_REFRESH);
  if (ctx->remote || strcmp(setting, "off") == 0) return OP_CODE_REFRESH_OFF;
  return strcmp(setting, "auto") == 0 ? OP_CODE_REFRESH_FULL : OP_CODE_REFRESH_QUICK;
}

lode_status op_symbols_open(op_context *ctx, const char *start, op_symbols *s, lode_error *err) {
  memset(s, 0, sizeof *s);
  s->ctx = ctx;
  TRY(op_code_project(ctx, start, &s->project, err));
  TRY(op_code_refresh(ctx, &s->project, symbols_refresh_mode(ctx, &s->project), &s->freshness, err));
  TRY(op_code_open(ctx, &s->project, false, &s->store, err));
  return symbols_open(&s->project, s->store, &s->world, err);
}

void op_symbols_close(op_symbols *s) {
  symbols_close(&s->world);
  if (s->store) s->ctx->release(s->ctx->opener, s->store);
  strbuf_release(&s->scratch);
  project_release(&s->project);
}

void op_symbols_note(op_symbols *s, bool more) {
  if (s->world.damaged)
    op_note(s->ctx, "the symbols of %llu files are damaged and were left out: `lode index --force` rebuilds them",
            (unsigned long long)s->world.damaged);
  if (s->freshness == OP_CODE_BEHIND)
    op_note(s->ctx, "files changed since they were indexed: `lode index` brings them up to date");
  if (more || s->world.more) op_note(s->ctx, "there are more than the rows shown");
}

static lode_str symbols_row_name(op_symbols *s, symbols_id id) {
  s->scratch.len = 0;
  symbols_put_name(&s->world, id, &s->scratch);
  return op_row_copy(s->ctx, (lode_str){s->scratch.data ? s->scratch.data : "", s->scratch.len});
}

/* path:line of a definition. */
static lode_str symbols_row_place(op_symbols *s, symbols_id id) {
  lode_str path = s->world.files[id.file].path;
  s->scratch.len = 0;
  strbuf_add(&s->scratch, path.data, path.len);
  strbuf_addf(&s->scratch, ":%u", symbols_def(&s->world, id)->line);
  return op_row_copy(s->ctx, (lode_str){s->scratch.data, s->scratch.len});
}

lode_status op_symbols_send_def(op_symbols *s, symbols_id id, lode_error *err) {
  op_context *ctx = s->ctx;
  const chunk_def *d = symbols_def(&s->world, id);
  op_row_begin(ctx);
  op_row_text(ctx, "path", s->world.files[id.file].path);
  op_row_count(ctx, "line", d->line);
  op_row_count(ctx, "end_line", d->end_line);
  op_row_text(ctx, "kind", str_of(lang_kind_name(d->kind)));
  op_row_text(ctx, "name", symbols_row_name(s, id));
  if (d->signature.len) op_row_text(ctx, "signature", d->signature);
  if (d->brief.len) op_row_text(ctx, "doc", d->brief);
  if (d->declared) op_row_bool(ctx, "declared", true);
  return op_row_send(ctx, err);
}

lode_status op_symbols_send_edge(op_symbols *s, const symbols_edge *e, lode_error *err) {
  op_context *ctx = s->ctx;
  op_row_begin(ctx);
  op_row_count(ctx, "depth", e->depth);
  op_row_text(ctx, "path", s->world.files[e->from.file].path);
  op_row_count(ctx, "line", e->line);
  op_row_text(ctx, "from", e->from.def == CHUNK_NO_DEF ? (lode_str){0} : symbols_row_name(s, e->from));
  op_row_text(ctx, "use", str_of(chunk_use_name(e->use)));
  op_row_text(ctx, "to", e->candidates ? symbols_row_name(s, e->to) : e->name);
  op_row_text(ctx, "at", e->candidates ? symbols_row_place(s, e->to) : (lode_str){0});
  if (e->times > 1) op_row_count(ctx, "times", e->times);
  if (!e->resolved && e->candidates) op_row_count(ctx, "candidates", e->candidates);
  return op_row_send(ctx, err);
}

lode_status op_symbols_path(op_symbols *s, const op_arg_text *given, strbuf *path, lode_error *err) {
  op_code_place place = {0};
  path->len = 0;
  if (!given->set || !given->text.len) return LODE_OK;
  lode_status st = op_code_place_parse(s->ctx, &s->project, given->text, &place, err);
  lode_str shown = st == LODE_OK ? op_code_place_path(&place) : STR_LIT(".");
  if (!str_eq(shown, STR_LIT("."))) strbuf_add(path, shown.data, shown.len);
  strbuf_release(&place.path);
  return st == LODE_OK && path->failed ? err_nomem(err) : st;
}

lode_status op_symbols_find(op_symbols *s, lode_str name, symbols_ids *ids, lode_error *err) {
  char quoted[256];
  if (!name.len) return err_set(err, LODE_INVALID, "\"name\" must not be empty");
  TRY(symbols_find(&s->world, name, ids, err));
  if (ids->n) return LODE_OK;
  return err_set(err, LODE_NOT_FOUND, "nothing in the index defines %s", str_quote(name, quoted, sizeof quoted));
}

/* ---- outline ---- */

static bool symbols_is_below(lode_str path, lode_str folder) {
  if (!folder.len) return true;
  return path.len >= folder.len && memcmp(path.data, folder.data, folder.len) == 0 &&
         (path.len == folder.len || path.data[folder.len] == '/' || folder.data[folder.len - 1] == '/');
}

static int symbols_compare_paths(const void *a, const void *b) {
  const symbols_file *const *x = a, *const *y = b;
  return str_cmp((*x)->path, (*y)->path);
}

static lode_status symbols_send_files(op_symbols *s, lode_str below, size_t limit, lode_error *err) {
  const symbols_file **files = mem_calloc(s->world.n_files + 1, sizeof *files);
  size_t n = 0, sent = 0;
  bool more = false;
  lode_status st = files ? LODE_OK : err_nomem(err);
  for (size_t i = 0; i < s->world.n_files && files; i++)
    if (symbols_is_below(s->world.files[i].path, below)) files[n++] = &s->world.files[i];
  if (n) qsort(files, n, sizeof *files, symbols_compare_paths);
  bool one = n == 1 && str_eq(files[0]->path, below);
  for (size_t i = 0; i < n && st == LODE_OK; i++) {
    uint32_t file = (uint32_t)(files[i] - s->world.files);
    for (uint32_t d = 0; d < files[i]->table.n_defs && st == LODE_OK; d++) {
      if (!one && files[i]->table.defs[d].outer != CHUNK_NO_DEF) continue;
      more = sent == limit;
      if (more) break;
      st = op_symbols_send_def(s, (symbols_id){file, d}, err);
      sent++;
    }
    if (one && files[i]->table.cut) op_note(s->ctx, "the file has more definitions than the index keeps");
  }
  s->ctx->nothing = sent == 0;
  if (st == LODE_OK) op_symbols_note(s, more);
  mem_free(files);
  return st;
}

lode_status op_do_outline(op_context *ctx, const op_outline_args *args, lode_error *err) {
  op_symbols s = {0};
  strbuf path = {0};
  char quoted[256];
  lode_status st;
  TRY_GOTO(op_symbols_open(ctx, args->project.path, &s, err));
  TRY_GOTO(op_symbols_path(&s, &args->path, &path, err));
  lode_str below = {path.data ? path.data : "", path.len};
  TRY_GOTO(symbols_load_below(&s.world, below, err));
  bool any = false;
  for (size_t i = 0; i < s.world.n_files && !any; i++) any = symbols_is_below(s.world.files[i].path, below);
  if (!any && below.len)
    TRY_GOTO(err_set(err, LODE_NOT_FOUND,
                     "the index has no symbols of %s: no such file, or its language has no grammar",
                     str_quote(below, quoted, sizeof quoted)));
  TRY_GOTO(symbols_send_files(&s, below, (size_t)args->limit.n, err));
done:
  strbuf_release(&path);
  op_symbols_close(&s);
  return st;
}

/* ---- def, refs ---- */

lode_status op_do_def(op_context *ctx, const op_symbol_args *args, lode_error *err) {
  op_symbols s = {0};
  symbols_ids ids = {0};
  lode_status st;
  TRY_GOTO(op_symbols_open(ctx, args->project.path, &s, err));
  TRY_GOTO(op_symbols_find(&s, args->name.text, &ids, err));
  size_t sent = 0;
  /* definitions first, then what is only declared */
  for (int declared = 0; declared < 2; declared++)
    for (size_t i = 0; i < ids.n && sent < args->limit.n; i++) {
      if (symbols_def(&s.world, ids.v[i])->declared != declared) continue;
      TRY_GOTO(op_symbols_send_def(&s, ids.v[i], err));
      sent++;
    }
  op_symbols_note(&s, ids.n > args->limit.n);
done:
  mem_free(ids.v);
  op_symbols_close(&s);
  return st;
}

static lode_status symbols_send_ref(op_symbols *s, uint32_t file, const chunk_ref *r, const symbols_target *t,
                                    lode_error *err) {
  op_context *ctx = s->ctx;
  op_row_begin(ctx);
  op_row_text(ctx, "path", s->world.files[file].path);
  op_row_count(ctx, "line", r->line);
  op_row_text(ctx, "use", str_of(chunk_use_name(r->use)));
  op_row_text(ctx, "in", r->def == CHUNK_NO_DEF ? (lode_str){0} : symbols_row_name(s, (symbols_id){file, r->def}));
  op_row_text(ctx, "to", t->resolved ? symbols_row_place(s, t->ids[0]) : (lode_str){0});
  if (!t->resolved && t->total) op_row_count(ctx, "candidates", t->total);
  return op_row_send(ctx, err);
}

/* May the use mean one of these definitions? Of a bare name, all uses are shown. */
static bool symbols_may_mean(const symbols_ids *ids, const symbols_target *t, bool narrow) {
  if (!narrow) return true;
  for (size_t i = 0; i < t->n; i++)
    if (symbols_has_id(ids, t->ids[i])) return true;
  return false;
}

lode_status op_do_refs(op_context *ctx, const op_symbol_args *args, lode_error *err) {
  op_symbols s = {0};
  symbols_ids ids = {0};
  size_t sent = 0;
  char quoted[256];
  bool more = false;
  lode_status st;
  TRY_GOTO(op_symbols_open(ctx, args->project.path, &s, err));
  lode_str name = args->name.text;
  TRY_GOTO(symbols_find(&s.world, name, &ids, err));
  if (ids.n) name = symbols_def(&s.world, ids.v[0])->name;
  bool narrow = !str_eq(name, args->name.text);
  TRY_GOTO(symbols_load_users(&s.world, name, err));
  for (uint32_t f = 0; f < s.world.n_files && !more; f++)
    for (size_t i = 0; i < s.world.files[f].table.n_refs && !more; i++) {
      const chunk_ref *r = &s.world.files[f].table.refs[i];
      symbols_target t;
      if (!str_eq(r->name, name)) continue;
      TRY_GOTO(symbols_resolve(&s.world, f, r, &t, err));
      if (!symbols_may_mean(&ids, &t, narrow)) continue;
      more = sent == args->limit.n;
      if (more) break;
      TRY_GOTO(symbols_send_ref(&s, f, r, &t, err));
      sent++;
    }
  if (!ids.n && !sent)
    TRY_GOTO(err_set(err, LODE_NOT_FOUND, "nothing in the index defines or uses %s",
                     str_quote(args->name.text, quoted, sizeof quoted)));
  ctx->nothing = sent == 0;
  op_symbols_note(&s, more);
done:
  mem_free(ids.v);
  op_symbols_close(&s);
  return st;
}

/* ---- callers, callees, trace ---- */

static lode_status symbols_send_edges(op_symbols *s, const symbols_edges *edges, size_t limit, lode_error *err) {
  for (size_t i = 0; i < edges->n && i < limit; i++) TRY(op_symbols_send_edge(s, &edges->v[i], err));
  s->ctx->nothing = edges->n == 0;
  op_symbols_note(s, edges->more || edges->n > limit);
  return LODE_OK;
}

static lode_status symbols_run_walk(op_context *ctx, const op_symbol_args *args, bool callers, lode_error *err) {
  symbols_walk_options options = {.depth = (uint32_t)args->depth.n, .open = !callers && args->depth.n == 1};
  op_symbols s = {0};
  symbols_ids ids = {0};
  symbols_edges edges = {0};
  lode_status st;
  TRY_GOTO(op_symbols_open(ctx, args->project.path, &s, err));
  TRY_GOTO(op_symbols_find(&s, args->name.text, &ids, err));
  TRY_GOTO(callers ? symbols_callers(&s.world, &ids, &options, &edges, err)
                   : symbols_callees(&s.world, &ids, &options, &edges, err));
  TRY_GOTO(symbols_send_edges(&s, &edges, (size_t)args->limit.n, err));
done:
  mem_free(ids.v);
  mem_free(edges.v);
  op_symbols_close(&s);
  return st;
}

lode_status op_do_callers(op_context *ctx, const op_symbol_args *args, lode_error *err) {
  return symbols_run_walk(ctx, args, true, err);
}
lode_status op_do_callees(op_context *ctx, const op_symbol_args *args, lode_error *err) {
  return symbols_run_walk(ctx, args, false, err);
}

lode_status op_do_trace(op_context *ctx, const op_trace_args *args, lode_error *err) {
  op_symbols s = {0};
  symbols_ids from = {0}, to = {0};
  symbols_edges path = {0};
  lode_status st;
  TRY_GOTO(op_symbols_open(ctx, args->project.path, &s, err));
  TRY_GOTO(op_symbols_find(&s, args->from.text, &from, err));
  TRY_GOTO(op_symbols_find(&s, args->to.text, &to, err));
  TRY_GOTO(symbols_trace(&s.world, &from, &to, &path, err));
  TRY_GOTO(symbols_send_edges(&s, &path, SIZE_MAX, err));
done:
  mem_free(from.v);
  mem_free(to.v);
  mem_free(path.v);
  op_symbols_close(&s);
  return st;
}
