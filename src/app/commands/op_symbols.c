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

void op_symbols_note(op_symbols *s, size_t left, bool more) {
  if (s->world.damaged)
    op_note(s->ctx, "the symbols of %llu files are damaged and were left out: `lode index --force` rebuilds them",
            (unsigned long long)s->world.damaged);
  if (left)
    op_note(s->ctx, "%zu more %s not shown: a higher limit shows them", left, left == 1 ? "is" : "are");
  else if (more || s->world.more)
    op_note(s->ctx, "there are more than the rows shown: not everything was looked at");
}

bool op_symbols_is_below(lode_str path, lode_str folder) {
  if (!folder.len) return true;
  return path.len >= folder.len && memcmp(path.data, folder.data, folder.len) == 0 &&
         (path.len == folder.len || path.data[folder.len] == '/' || folder.data[folder.len - 1] == '/');
}

static int symbols_compare_paths(const void *a, const void *b) {
  return str_cmp(((const op_symbols_file *)a)->path, ((const op_symbols_file *)b)->path);
}

lode_status op_symbols_files(const op_symbols *s, lode_str below, op_symbols_file **files, size_t *n, lode_error *err) {
  op_symbols_file *v = mem_calloc(s->world.n_files + 1, sizeof *v);
  *files = v;
  *n = 0;
  if (!v) return err_nomem(err);
  for (size_t i = 0; i < s->world.n_files; i++)
    if (op_symbols_is_below(s->world.files[i].path, below))
      v[(*n)++] = (op_symbols_file){s->world.files[i].path, (uint32_t)i};
  if (*n) qsort(v, *n, sizeof *v, symbols_compare_paths);
  return LODE_OK;
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

static void symbols_begin_def(op_symbols *s, symbols_id id) {
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
}

lode_status op_symbols_send_def(op_symbols *s, symbols_id id, lode_error *err) {
  symbols_begin_def(s, id);
  return op_row_send(s->ctx, err);
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

/* Of a folder, what is outermost, and no variables: a map, not an index. */
static bool symbols_is_shown(const chunk_def *d, bool one) {
  return one || (d->outer == CHUNK_NO_DEF && d->kind != LANG_KIND_VARIABLE && d->kind != LANG_KIND_CONSTANT);
}

static size_t symbols_count_shown(const op_symbols *s, uint32_t file, bool one) {
  const symbols_file *f = &s->world.files[file];
  size_t n = 0;
  for (size_t d = 0; d < f->table.n_defs; d++) n += symbols_is_shown(&f->table.defs[d], one);
  return n;
}

/* How many definitions each file may show so that all files have their share of the limit. */
static size_t symbols_share(const size_t *shown, size_t n, size_t limit) {
  size_t low = 1, high = limit;
  while (low < high) {
    size_t share = low + (high - low + 1) / 2, sum = 0;
    for (size_t i = 0; i < n && sum <= limit; i++) sum += shown[i] < share ? shown[i] : share;
    if (sum <= limit)
      low = share;
    else
      high = share - 1;
  }
  return low;
}

typedef struct symbols_quota {
  size_t shown, most; /* definitions that are to be shown, and how many at most */
  bool one;           /* the only file */
} symbols_quota;

/* The last row of a file says how many are left. */
static lode_status symbols_send_file(op_symbols *s, uint32_t file, const symbols_quota *q, lode_error *err) {
  const symbols_file *f = &s->world.files[file];
  size_t sent = 0;
  for (uint32_t d = 0; d < f->table.n_defs && sent < q->most; d++) {
    uint64_t level = 0;
    if (!symbols_is_shown(&f->table.defs[d], q->one)) continue;
    for (uint32_t o = f->table.defs[d].outer; o != CHUNK_NO_DEF; o = f->table.defs[o].outer) level++;
    sent++;
    symbols_begin_def(s, (symbols_id){file, d});
    op_row_count(s->ctx, "level", level);
    if (sent == q->most && q->shown > sent && !q->one) op_row_count(s->ctx, "more", q->shown - sent);
    TRY(op_row_send(s->ctx, err));
  }
  return LODE_OK;
}

static lode_status symbols_send_files(op_symbols *s, lode_str below, size_t limit, lode_error *err) {
  op_symbols_file *files = NULL;
  size_t n = 0, left = 0, unseen = 0, room = limit, *shown = NULL;
  lode_status st;
  TRY_GOTO(op_symbols_files(s, below, &files, &n, err));
  bool one = n == 1 && str_eq(files[0].path, below);
  shown = mem_calloc(n + 1, sizeof *shown);
  if (!shown) TRY_GOTO(err_nomem(err));
  for (size_t i = 0; i < n; i++) shown[i] = symbols_count_shown(s, files[i].file, one);
  size_t share = symbols_share(shown, n, limit);
  for (size_t i = 0; i < n; i++) {
    symbols_quota q = {.shown = shown[i], .most = shown[i] < share ? shown[i] : share, .one = one};
    if (q.most > room) q.most = room;
    TRY_GOTO(symbols_send_file(s, files[i].file, &q, err));
    room -= q.most;
    left += q.shown - q.most;
    unseen += q.shown && !q.most;
    if (one && s->world.files[files[i].file].table.cut)
      op_note(s->ctx, "the file has more definitions than the index keeps");
  }
  s->ctx->nothing = room == limit;
  op_symbols_note(s, one ? left : 0, false);
  if (unseen) op_note(s->ctx, "%zu more files are not shown: name a folder, or a higher limit", unseen);
done:
  mem_free(shown);
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
  for (size_t i = 0; i < s.world.n_files && !any; i++) any = op_symbols_is_below(s.world.files[i].path, below);
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
  size_t sent = ids.n < args->limit.n ? ids.n : (size_t)args->limit.n;
  for (size_t i = 0; i < sent; i++) TRY_GOTO(op_symbols_send_def(&s, ids.v[i], err));
  op_symbols_note(&s, ids.n - sent, false);
done:
  mem_free(ids.v);
  op_symbols_close(&s);
  return st;
}

typedef struct symbols_ref { /* a use, and what it means */
  uint32_t file;
  const chunk_ref *r;
  symbols_target target;
} symbols_ref;

static lode_status symbols_send_ref(op_symbols *s, const symbols_ref *use, op_source *source, lode_error *err) {
  op_context *ctx = s->ctx;
  const chunk_ref *r = use->r;
  const symbols_target *t = &use->target;
  uint32_t file = use->file;
  op_row_begin(ctx);
  op_row_text(ctx, "path", s->world.files[file].path);
  op_row_count(ctx, "line", r->line);
  op_row_text(ctx, "use", str_of(chunk_use_name(r->use)));
  op_row_text(ctx, "in", r->def == CHUNK_NO_DEF ? (lode_str){0} : symbols_row_name(s, (symbols_id){file, r->def}));
  op_row_text(ctx, "to", t->resolved ? symbols_row_place(s, t->ids[0]) : (lode_str){0});
  if (!t->resolved && t->total) op_row_count(ctx, "candidates", t->total);
  lode_str text = op_source_line(source, s->world.files[file].path, r->line, r->name);
  if (text.len) op_row_text(ctx, "text", text);
  return op_row_send(ctx, err);
}

/* May the use mean one of these definitions? NULL: all uses of the name are shown. */
static bool symbols_may_mean(const symbols_ids *ids, const symbols_target *t) {
  if (!ids) return true;
  for (size_t i = 0; i < t->n; i++)
    if (symbols_has_id(ids, t->ids[i])) return true;
  return false;
}

/* The uses of a name in the files that were read, by path; counts those beyond the limit. */
static lode_status symbols_send_refs(op_symbols *s, lode_str name, const symbols_ids *narrow, size_t limit,
                                     lode_error *err) {
  op_symbols_file *files = NULL;
  op_source source = {.project = s->ctx->remote ? NULL : &s->project};
  size_t n = 0, sent = 0, left = 0;
  lode_status st;
  TRY_GOTO(op_symbols_files(s, STR_LIT(""), &files, &n, err));
  for (size_t k = 0; k < n; k++) {
    symbols_ref use = {.file = files[k].file};
    for (size_t i = 0; i < s->world.files[use.file].table.n_refs; i++) {
      use.r = &s->world.files[use.file].table.refs[i];
      if (!str_eq(use.r->name, name)) continue;
      TRY_GOTO(symbols_resolve(&s->world, use.file, use.r, &use.target, err));
      if (!symbols_may_mean(narrow, &use.target)) continue;
      left += sent == limit;
      if (sent == limit) continue;
      TRY_GOTO(symbols_send_ref(s, &use, &source, err));
      sent++;
    }
  }
  s->ctx->nothing = sent == 0;
  op_symbols_note(s, left, false);
done:
  op_source_close(&source);
  mem_free(files);
  return st;
}

lode_status op_do_refs(op_context *ctx, const op_symbol_args *args, lode_error *err) {
  op_symbols s = {0};
  symbols_ids ids = {0};
  char quoted[256];
  lode_status st;
  TRY_GOTO(op_symbols_open(ctx, args->project.path, &s, err));
  lode_str name = args->name.text;
  TRY_GOTO(symbols_find(&s.world, name, &ids, err));
  if (ids.n) name = symbols_def(&s.world, ids.v[0])->name;
  bool narrow = !str_eq(name, args->name.text);
  TRY_GOTO(symbols_load_users(&s.world, name, err));
  TRY_GOTO(symbols_send_refs(&s, name, narrow ? &ids : NULL, (size_t)args->limit.n, err));
  if (!ids.n && ctx->nothing)
    TRY_GOTO(err_set(err, LODE_NOT_FOUND, "nothing in the index defines or uses %s",
                     str_quote(args->name.text, quoted, sizeof quoted)));
done:
  mem_free(ids.v);
  op_symbols_close(&s);
  return st;
}

/* ---- callers, callees, trace ---- */

static lode_status symbols_send_edge(op_symbols *s, const symbols_edge *e, lode_error *err) {
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

/* The first `limit` edges, which are the nearest, each before those that it led to. */
lode_status op_symbols_send_edges(op_symbols *s, const symbols_edges *edges, size_t limit, lode_error *err) {
  size_t n = edges->n < limit ? edges->n : limit;
  uint32_t *child = mem_calloc(3 * (n + 1), sizeof *child); /* first child, next sibling, last child; 1 + number */
  lode_status st = child ? LODE_OK : err_nomem(err);
  uint32_t *next = child + n + 1, *last = next + n + 1;
  for (size_t i = 0; i < n && st == LODE_OK; i++) {
    size_t parent = edges->v[i].before;
    if (last[parent])
      next[last[parent]] = (uint32_t)i + 1;
    else
      child[parent] = (uint32_t)i + 1;
    last[parent] = (uint32_t)i + 1;
  }
  for (size_t at = n && st == LODE_OK ? child[0] : 0; at && st == LODE_OK;) {
    st = symbols_send_edge(s, &edges->v[at - 1], err);
    size_t down = child[at];
    while (!down && at) {
      down = next[at];
      at = edges->v[at - 1].before;
    }
    at = down;
  }
  mem_free(child);
  s->ctx->nothing = edges->n == 0;
  op_symbols_note(s, edges->n - n, edges->more);
  return st;
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
  TRY_GOTO(op_symbols_send_edges(&s, &edges, (size_t)args->limit.n, err));
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
  TRY_GOTO(op_symbols_send_edges(&s, &path, SIZE_MAX, err));
done:
  mem_free(from.v);
  mem_free(to.v);
  mem_free(path.v);
  op_symbols_close(&s);
  return st;
}
