/* SPDX-License-Identifier: Apache-2.0 */
/* op_symbols_survey.c - `lode impact`, `unused`, `cycles`, `hotspots`; see op_symbols.h. */
#include "commands/op_symbols.h"

#include "ops/op_row.h"
#include "os/proc.h"
#include "table/op_args_symbols.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { SURVEY_MAX_GIT_BYTES = 64 << 20, SURVEY_MAX_ARGS = 16 };

/* ---- git ---- */

/* A child's standard output is closed to it: a shell connects git's to the descriptor that we read. */
/* Runs git in the project's root and reads what it prints, at most `max` bytes. LODE_NOT_FOUND without git. */
static lode_status survey_git(const char *root, const char *const *args, size_t max, strbuf *out, lode_error *err) {
  const char *argv[SURVEY_MAX_ARGS + 6] = {"sh", "-c", "exec git -C \"$0\" \"$@\" >&3", root};
  size_t n = 4;
  proc_child child = PROC_NONE;
  while (*args && n < SURVEY_MAX_ARGS + 4) argv[n++] = *args++;
  proc_options o = {.path = "/bin/sh", .argv = argv, .no_new_privs = true, .quiet = true};
  TRY(proc_spawn(&o, &child, err));
  ssize_t got = 1;
  while (got > 0 && out->len < max) {
    char *space = strbuf_reserve(out, 1 << 16);
    if (!space) break;
    got = read(child.fd, space, 1 << 16);
    if (got > 0) out->len += (size_t)got;
  }
  proc_exit end = proc_close(&child, 2000);
  if (out->failed) return err_nomem(err);
  if (end.signal || end.code)
    return err_set(err, LODE_NOT_FOUND, "git says that there is no such revision here, or it is not installed");
  return LODE_OK;
}

/* ---- impact ---- */

typedef struct survey_diff { /* a unified diff without context, as it is read */
  op_symbols *s;
  symbols_ids *ids;
  uint32_t file; /* UINT32_MAX: the index does not know it */
} survey_diff;

static lode_status survey_add_lines(survey_diff *d, uint32_t first, uint32_t n, lode_error *err) {
  const symbols_world *w = &d->s->world;
  for (uint32_t i = 0; i < (n ? n : 1) && i < 100000; i++) {
    symbols_id id = symbols_at_line(w, d->file, first + i);
    if (id.def != CHUNK_NO_DEF && !symbols_add_id(d->ids, id)) return err_nomem(err);
  }
  return LODE_OK;
}

/* "+++ b/path" and "@@ -1,2 +3,4 @@" */
static lode_status survey_read_line(survey_diff *d, lode_str line, lode_error *err) {
  if (line.len > 6 && memcmp(line.data, "+++ b/", 6) == 0) {
    strbuf shown = {0};
    files_path_escape(&shown, (lode_str){line.data + 6, line.len - 6});
    lode_status st = shown.failed ? err_nomem(err)
                                  : symbols_load_file(&d->s->world, (lode_str){shown.data, shown.len}, &d->file, err);
    strbuf_release(&shown);
    return st;
  }
  if (line.len < 4 || memcmp(line.data, "@@ ", 3) != 0 || d->file == UINT32_MAX) return LODE_OK;
  const char *plus = memchr(line.data, '+', line.len), *end = line.data + line.len;
  uint64_t n[2] = {0, 1};
  int at = 0;
  for (const char *p = plus ? plus + 1 : end; p < end && (*p == ',' || (*p >= '0' && *p <= '9')) && n[at] < INT32_MAX;
       p++) {
    if (*p == ',')
      n[at = 1] = 0;
    else
      n[at] = n[at] * 10 + (uint64_t)(*p - '0');
  }
  return survey_add_lines(d, (uint32_t)n[0], (uint32_t)n[1], err);
}

static lode_status survey_changed_since(op_symbols *s, lode_str rev, symbols_ids *ids, lode_error *err) {
  char revision[200];
  strbuf text = {0};
  survey_diff d = {.s = s, .ids = ids, .file = UINT32_MAX};
  lode_status st = LODE_OK;
  if (!rev.len || rev.data[0] == '-' || rev.len >= sizeof revision || memchr(rev.data, '\0', rev.len))
    return err_set(err, LODE_INVALID, "--diff takes a revision of git: HEAD~1, main, 4fe1a2c");
  snprintf(revision, sizeof revision, "%.*s", (int)rev.len, rev.data);
  const char *args[] = {"diff",       "--unified=0", "--no-color",      "--no-ext-diff",   "--no-textconv",
                        "--relative", "--no-prefix", "--src-prefix=a/", "--dst-prefix=b/", revision,
                        "--",         NULL};
  TRY_GOTO(survey_git(s->project.root, args, SURVEY_MAX_GIT_BYTES, &text, err));
  for (size_t at = 0; at < text.len && st == LODE_OK;) {
    const char *end = memchr(text.data + at, '\n', text.len - at);
    size_t n = end ? (size_t)(end - text.data) - at : text.len - at;
    st = survey_read_line(&d, (lode_str){text.data + at, n}, err);
    at += n + 1;
  }
done:
  strbuf_release(&text);
  return st;
}

/* The definition at FILE:LINE, or all that are outermost in FILE. */
static lode_status survey_defs_at(op_symbols *s, lode_str at, symbols_ids *ids, lode_error *err) {
  op_code_place place = {0};
  uint32_t file;
  char quoted[256];
  lode_status st;
  TRY_GOTO(op_code_place_parse(s->ctx, &s->project, at, &place, err));
  lode_str path = op_code_place_path(&place);
  uint32_t line = place.line;
  str_quote(path, quoted, sizeof quoted);
  TRY_GOTO(symbols_load_file(&s->world, path, &file, err));
  if (file == UINT32_MAX)
    TRY_GOTO(err_set(err, LODE_NOT_FOUND,
                     "the index has no symbols of %s: no such file, or its language has no grammar", quoted));
  for (uint32_t d = 0; !line && d < s->world.files[file].table.n_defs; d++)
    if (s->world.files[file].table.defs[d].outer == CHUNK_NO_DEF && !symbols_add_id(ids, (symbols_id){file, d}))
      TRY_GOTO(err_nomem(err));
  symbols_id id = line ? symbols_at_line(&s->world, file, line) : (symbols_id){file, CHUNK_NO_DEF};
  if (line && id.def == CHUNK_NO_DEF)
    TRY_GOTO(err_set(err, LODE_NOT_FOUND, "line %u of %s is in no definition", line, quoted));
  if (id.def != CHUNK_NO_DEF && !symbols_add_id(ids, id)) st = err_nomem(err);
done:
  strbuf_release(&place.path);
  return st;
}

static lode_status survey_send_impact(op_symbols *s, const symbols_ids *ids, const symbols_edges *edges, size_t limit,
                                      lode_error *err) {
  size_t files = 0;
  bool *seen = mem_calloc(s->world.n_files + 1, sizeof *seen);
  if (!seen) return err_nomem(err);
  for (size_t i = 0; i < edges->n; i++) {
    files += !seen[edges->v[i].from.file];
    seen[edges->v[i].from.file] = true;
  }
  mem_free(seen);
  TRY(op_symbols_send_edges(s, edges, limit, err));
  op_summary_begin(s->ctx);
  op_row_count(s->ctx, "changed", ids->n);
  op_row_count(s->ctx, "reached", edges->n);
  op_row_count(s->ctx, "files", files);
  return op_row_send(s->ctx, err);
}

lode_status op_do_impact(op_context *ctx, const op_impact_args *args, lode_error *err) {
  symbols_walk_options options = {.depth = (uint32_t)args->depth.n, .all_uses = true};
  op_symbols s = {0};
  symbols_ids ids = {0};
  symbols_edges edges = {0};
  lode_status st;
  if (args->at.set + args->name.set + args->diff.set != 1)
    return err_set(err, LODE_INVALID, "name one thing: a file and a line, a \"name\", or a revision");
  TRY_GOTO(op_symbols_open(ctx, args->project.path, &s, err));
  if (args->diff.set)
    TRY_GOTO(survey_changed_since(&s, args->diff.text, &ids, err));
  else if (args->name.set)
    TRY_GOTO(op_symbols_find(&s, args->name.text, &ids, err));
  else
    TRY_GOTO(survey_defs_at(&s, args->at.text, &ids, err));
  TRY_GOTO(symbols_callers(&s.world, &ids, &options, &edges, err));
  TRY_GOTO(survey_send_impact(&s, &ids, &edges, (size_t)args->limit.n, err));
done:
  mem_free(ids.v);
  mem_free(edges.v);
  op_symbols_close(&s);
  return st;
}

/* ---- All files ---- */

typedef struct survey_spot {
  symbols_id id;
  lode_str path;
  uint64_t changes, uses;
  double score;
} survey_spot;

static bool survey_is_below(lode_str path, const strbuf *below) {
  return op_symbols_is_below(path, (lode_str){below->data ? below->data : "", below->len});
}

static lode_status survey_open(op_context *ctx, const op_survey_args *args, op_symbols *s, strbuf *below,
                               lode_error *err) {
  TRY(op_symbols_open(ctx, args->project.path, s, err));
  TRY(op_symbols_path(s, &args->path, below, err));
  return symbols_load_all(&s->world, ctx->progress, err);
}

/* By path, and in the order of the file. */
static int survey_compare_ids(const void *a, const void *b) {
  const survey_spot *x = a, *y = b;
  int order = str_cmp(x->path, y->path);
  return order ? order : x->id.def < y->id.def ? -1 : 1;
}

lode_status op_do_unused(op_context *ctx, const op_survey_args *args, lode_error *err) {
  op_symbols s = {0};
  strbuf below = {0};
  symbols_ids ids = {0};
  survey_spot *found = NULL;
  size_t n = 0;
  lode_status st;
  TRY_GOTO(survey_open(ctx, args, &s, &below, err));
  TRY_GOTO(symbols_unused(&s.world, &ids, err));
  found = mem_calloc(ids.n + 1, sizeof *found);
  if (!found) TRY_GOTO(err_nomem(err));
  for (size_t i = 0; i < ids.n; i++) {
    lode_str path = s.world.files[ids.v[i].file].path;
    if (survey_is_below(path, &below)) found[n++] = (survey_spot){.id = ids.v[i], .path = path};
  }
  if (n) qsort(found, n, sizeof *found, survey_compare_ids);
  size_t sent = n < args->limit.n ? n : (size_t)args->limit.n;
  for (size_t i = 0; i < sent; i++) TRY_GOTO(op_symbols_send_def(&s, found[i].id, err));
  ctx->nothing = n == 0;
  op_symbols_note(&s, n - sent, false);
done:
  mem_free(found);
  mem_free(ids.v);
  strbuf_release(&below);
  op_symbols_close(&s);
  return st;
}

static lode_status survey_send_cycle(op_symbols *s, const symbols_cycle *c, lode_error *err) {
  strbuf list = {0};
  strbuf_addch(&list, '[');
  for (size_t i = 0; i < c->n; i++) {
    if (i) strbuf_addch(&list, ',');
    json_put_string(&list, s->world.files[c->files[i]].path);
  }
  strbuf_addch(&list, ']');
  op_row_begin(s->ctx);
  op_row_count(s->ctx, "size", c->n);
  op_row_json(s->ctx, "files", (lode_str){list.data ? list.data : "", list.len});
  lode_status st = list.failed ? err_nomem(err) : op_row_send(s->ctx, err);
  strbuf_release(&list);
  return st;
}

lode_status op_do_cycles(op_context *ctx, const op_survey_args *args, lode_error *err) {
  op_symbols s = {0};
  strbuf below = {0};
  symbols_cycle *cycles = NULL;
  size_t n = 0, sent = 0;
  lode_status st;
  TRY_GOTO(survey_open(ctx, args, &s, &below, err));
  TRY_GOTO(symbols_cycles(&s.world, &cycles, &n, err));
  for (size_t i = 0; i < n && sent < args->limit.n; i++) {
    bool inside = false;
    for (size_t k = 0; k < cycles[i].n && !inside; k++)
      inside = survey_is_below(s.world.files[cycles[i].files[k]].path, &below);
    if (!inside) continue;
    TRY_GOTO(survey_send_cycle(&s, &cycles[i], err));
    sent++;
  }
  ctx->nothing = sent == 0;
  op_symbols_note(&s, 0, n > args->limit.n && sent == args->limit.n);
done:
  symbols_cycles_free(cycles, n);
  strbuf_release(&below);
  op_symbols_close(&s);
  return st;
}

/* ---- hotspots ---- */

static int survey_compare_spots(const void *a, const void *b) {
  const survey_spot *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return x->id.file != y->id.file ? (x->id.file < y->id.file ? -1 : 1) : (x->id.def < y->id.def ? -1 : 1);
}

/* How many of the last commits name the file: lines of `log`, in the order of files. */
static uint64_t *survey_count_changes(op_symbols *s) {
  static const char *const args[] = {
      "log", "-n", "1000", "--format=", "--name-only", "--relative", "--no-renames", NULL};
  strbuf log = {0}, shown = {0};
  uint64_t *changes = mem_calloc(s->world.n_files + 1, sizeof *changes);
  lode_error why = {.record = LODE_NO_RECORD};
  if (s->ctx->remote || !changes || survey_git(s->project.root, args, SURVEY_MAX_GIT_BYTES, &log, &why) != LODE_OK) {
    mem_free(changes);
    strbuf_release(&log);
    return NULL;
  }
  for (size_t at = 0; at < log.len;) {
    const char *end = memchr(log.data + at, '\n', log.len - at);
    size_t n = end ? (size_t)(end - log.data) - at : log.len - at;
    uint32_t file = UINT32_MAX;
    shown.len = 0;
    files_path_escape(&shown, (lode_str){log.data + at, n});
    if (n && symbols_load_file(&s->world, (lode_str){shown.data, shown.len}, &file, NULL) == LODE_OK &&
        file != UINT32_MAX)
      changes[file]++;
    at += n + 1;
  }
  strbuf_release(&log);
  strbuf_release(&shown);
  return changes;
}

static lode_status survey_send_spot(op_symbols *s, const survey_spot *p, bool churn, lode_error *err) {
  op_context *ctx = s->ctx;
  const chunk_def *d = symbols_def(&s->world, p->id);
  s->scratch.len = 0;
  symbols_put_name(&s->world, p->id, &s->scratch);
  op_row_begin(ctx);
  op_row_text(ctx, "path", s->world.files[p->id.file].path);
  op_row_count(ctx, "line", d->line);
  op_row_text(ctx, "kind", str_of(lang_kind_name(d->kind)));
  op_row_text(ctx, "name", op_row_copy(ctx, (lode_str){s->scratch.data ? s->scratch.data : "", s->scratch.len}));
  op_row_count(ctx, "lines", d->end_line - d->line + 1);
  op_row_count(ctx, "branches", d->branches);
  op_row_count(ctx, "uses", p->uses);
  if (churn) op_row_count(ctx, "changes", p->changes);
  op_row_real(ctx, "score", round(p->score * 10) / 10);
  return op_row_send(ctx, err);
}

static uint64_t survey_uses_of(const symbols_world *w, lode_str name) {
  uint64_t n = 0;
  symbols_id use;
  for (uint32_t at = 0; symbols_next_use(w, name, &at, &use);) n++;
  return n;
}

lode_status op_do_hotspots(op_context *ctx, const op_survey_args *args, lode_error *err) {
  op_symbols s = {0};
  strbuf below = {0};
  survey_spot *spots = NULL;
  uint64_t *changes = NULL;
  size_t n = 0, cap = 0;
  lode_status st;
  TRY_GOTO(survey_open(ctx, args, &s, &below, err));
  TRY_GOTO(symbols_index_uses(&s.world, err));
  changes = survey_count_changes(&s);
  for (uint32_t f = 0; f < s.world.n_files; f++) {
    const chunk_symbols *t = &s.world.files[f].table;
    if (!survey_is_below(s.world.files[f].path, &below)) continue;
    for (uint32_t i = 0; i < t->n_defs; i++) {
      const chunk_def *d = &t->defs[i];
      if (!symbols_is_function(d->kind) || d->declared) continue;
      double size = d->branches + (d->end_line - d->line + 1) / 10.0;
      if (!mem_grow(&spots, &cap, n + 1, sizeof *spots)) TRY_GOTO(err_nomem(err));
      spots[n++] = (survey_spot){.id = {f, i},
                                 .changes = changes ? changes[f] : 0,
                                 .score = size * (changes ? 1 + log2(1 + (double)changes[f]) : 1)};
    }
  }
  if (n) qsort(spots, n, sizeof *spots, survey_compare_spots);
  for (size_t i = 0; i < n && i < args->limit.n; i++) {
    spots[i].uses = survey_uses_of(&s.world, symbols_def(&s.world, spots[i].id)->name);
    TRY_GOTO(survey_send_spot(&s, &spots[i], changes != NULL, err));
  }
  ctx->nothing = n == 0;
  op_symbols_note(&s, 0, false);
done:
  mem_free(spots);
  mem_free(changes);
  strbuf_release(&below);
  op_symbols_close(&s);
  return st;
}
