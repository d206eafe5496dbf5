/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_survey.c - questions about all files at once; see symbols.h. */
#include "symbols/symbols.h"

#include "scan/scan.h"
#include "symbols/symbol_map.h"

/* ---- Unused ---- */

/* How often a name is used, over all files; uses inside of a definition of that name do not count. */
static lode_status survey_count_uses(const symbols_world *w, symbols_map *counts, lode_error *err) {
  for (size_t f = 0; f < w->n_files; f++) {
    const chunk_symbols *t = &w->files[f].table;
    for (size_t i = 0; i < t->n_refs; i++) {
      const chunk_ref *r = &t->refs[i];
      if (!r->name.len || (r->def != CHUNK_NO_DEF && str_eq(t->defs[r->def].name, r->name))) continue;
      uint32_t *n = symbols_map_find(counts, r->name);
      if (n)
        *n += *n < UINT32_MAX;
      else if (!symbols_map_put(counts, r->name, 1))
        return err_nomem(err);
    }
  }
  return LODE_OK;
}

/* Called by what is not in the text: a runtime, a test runner, a framework. */
static bool survey_is_entry(const symbols_file *f, const chunk_def *d) {
  static const char *const names[] = {"main",     "init",        "setup", "teardown",   "setUp",
                                      "tearDown", "constructor", "new",   "initialize", "Main"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (str_eq(d->name, str_of(names[i]))) return true;
  if (d->name.len > 4 && (memcmp(d->name.data, "test", 4) == 0 || memcmp(d->name.data, "Test", 4) == 0)) return true;
  if (d->name.len > 2 && d->name.data[0] == '_' && d->name.data[1] == '_') return true;
  bool operator_name = !((d->name.data[0] >= 'a' && d->name.data[0] <= 'z') ||
                         (d->name.data[0] >= 'A' && d->name.data[0] <= 'Z') || d->name.data[0] == '_');
  /* an attribute or annotation may register it */
  bool marked =
      d->signature.len && (d->signature.data[0] == '@' || d->signature.data[0] == '#' || d->signature.data[0] == '[');
  return operator_name || marked || (f->uses && f->uses->import == LANG_IMPORT_NONE && !f->uses->calls);
}

/* Test runners find tests by themselves: what only they call is not unused. */
static bool survey_is_test(const symbols_file *f, const chunk_def *d) {
  if (scan_path_flags(f->path) & SCAN_PATH_TEST) return true;
  for (uint32_t o = d->outer; o != CHUNK_NO_DEF; o = f->table.defs[o].outer)
    if (str_eq(f->table.defs[o].name, STR_LIT("tests")) || str_eq(f->table.defs[o].name, STR_LIT("test"))) return true;
  return false;
}

lode_status symbols_unused(symbols_world *w, symbols_ids *unused, lode_error *err) {
  symbols_map *counts = symbols_map_new();
  lode_status st = counts ? survey_count_uses(w, counts, err) : err_nomem(err);
  for (uint32_t f = 0; f < w->n_files && st == LODE_OK; f++) {
    const symbols_file *file = &w->files[f];
    for (uint32_t i = 0; i < file->table.n_defs && st == LODE_OK && file->uses; i++) {
      const chunk_def *d = &file->table.defs[i];
      bool asked = (symbols_is_function(d->kind) || symbols_is_type(d->kind)) && d->kind != LANG_KIND_CONSTRUCTOR;
      if (!asked || d->declared || symbols_map_find(counts, d->name) || survey_is_entry(file, d) ||
          survey_is_test(file, d))
        continue;
      if (!mem_grow(&unused->v, &unused->cap, unused->n + 1, sizeof *unused->v)) st = err_nomem(err);
      if (st == LODE_OK) unused->v[unused->n++] = (symbols_id){f, i};
    }
  }
  symbols_map_free(counts);
  return st;
}

/* ---- Cycles ---- */

typedef struct survey_graph {
  uint32_t *start, *edges; /* edges of file i: edges[start[i]] .. edges[start[i + 1]] */
  size_t n_edges, cap;
} survey_graph;

static lode_str survey_stem(lode_str path) {
  size_t start = path.len, end = path.len;
  while (start && path.data[start - 1] != '/') start--;
  for (size_t i = path.len; i-- > start;)
    if (path.data[i] == '.') end = i;
  return (lode_str){path.data + start, end - start};
}

static lode_str survey_last_part(lode_str s) {
  lode_str stem = survey_stem(s);
  for (size_t i = stem.len; i-- > 0;)
    if (stem.data[i] == ':' || stem.data[i] == '\\') return (lode_str){stem.data + i + 1, stem.len - i - 1};
  size_t n = s.len;
  if (stem.len < s.len && memchr(s.data, '/', s.len)) return stem;
  while (n && s.data[n - 1] != '.' && s.data[n - 1] != ':' && s.data[n - 1] != '/') n--;
  return n ? (lode_str){s.data + n, s.len - n} : stem;
}

static bool survey_ends_with(lode_str path, lode_str end) {
  while (end.len > 3 && (memcmp(end.data, "../", 3) == 0 || memcmp(end.data, "./", 2) == 0)) {
    size_t n = end.data[1] == '/' ? 2 : 3;
    end = (lode_str){end.data + n, end.len - n};
  }
  return path.len >= end.len && memcmp(path.data + path.len - end.len, end.data, end.len) == 0;
}

/* The file that an import means, by the last part of its name; UINT32_MAX: none, or more than one. */
static uint32_t survey_file_of(const symbols_world *w, const symbols_map *stems, const uint32_t *next,
                               const symbols_file *f, const chunk_ref *m) {
  uint32_t best = UINT32_MAX;
  int best_fit = 79;
  lode_str keys[] = {survey_stem(m->qualifier), survey_last_part(m->qualifier), m->name};
  for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
    const uint32_t *head = keys[k].len ? symbols_map_find(stems, keys[k]) : NULL;
    for (uint32_t at = head ? *head : 0, steps = 0; at && steps < 1000; at = next[at - 1], steps++) {
      int fit = symbols_module_fits(f, m->qualifier, m->name, w->files[at - 1].path);
      if (fit <= best_fit || strcmp(w->files[at - 1].family, f->family) != 0) continue;
      if (f->uses->import == LANG_IMPORT_C && !survey_ends_with(w->files[at - 1].path, m->qualifier)) continue;
      best_fit = fit;
      best = at - 1;
    }
  }
  return best;
}

static lode_status survey_make_graph(const symbols_world *w, survey_graph *g, lode_error *err) {
  symbols_map *stems = symbols_map_new();
  uint32_t *next = mem_calloc(w->n_files + 1, sizeof *next);
  lode_status st = LODE_OK;
  g->start = mem_calloc(w->n_files + 2, sizeof *g->start);
  if (!stems || !next || !g->start) st = err_nomem(err);
  for (uint32_t f = 0; f < w->n_files && st == LODE_OK; f++) {
    lode_str stem = survey_stem(w->files[f].path);
    uint32_t *head = symbols_map_find(stems, stem);
    next[f] = head ? *head : 0;
    if (!symbols_map_put(stems, stem, f + 1)) st = err_nomem(err);
  }
  for (uint32_t f = 0; f < w->n_files && st == LODE_OK; f++) {
    const symbols_file *file = &w->files[f];
    for (size_t i = 0; i < file->table.n_refs && st == LODE_OK; i++) {
      if (file->table.refs[i].use != CHUNK_USE_IMPORT || !file->uses) continue;
      uint32_t to = survey_file_of(w, stems, next, file, &file->table.refs[i]);
      if (to == UINT32_MAX || to == f) continue;
      if (!mem_grow(&g->edges, &g->cap, g->n_edges + 1, sizeof *g->edges)) st = err_nomem(err);
      if (st == LODE_OK) g->edges[g->n_edges++] = to;
    }
    if (st == LODE_OK) g->start[f + 1] = (uint32_t)g->n_edges;
  }
  symbols_map_free(stems);
  mem_free(next);
  return st;
}

/* Tarjan's algorithm with a stack of its own. */
typedef struct survey_tarjan {
  const survey_graph *g;
  uint32_t *order, *low, *edge, *path, *open;
  bool *is_open;
  size_t n_path, n_open;
  uint32_t counter;
  symbols_cycle *cycles;
  size_t n, cap;
} survey_tarjan;

static bool survey_close(survey_tarjan *t, uint32_t root) {
  size_t first = t->n_open;
  while (t->open[first - 1] != root) first--;
  first--;
  size_t n = t->n_open - first;
  for (size_t i = first; i < t->n_open; i++) t->is_open[t->open[i]] = false;
  t->n_open = first;
  if (n < 2) return true;
  uint32_t *files = mem_calloc(n, sizeof *files);
  if (!files || !mem_grow(&t->cycles, &t->cap, t->n + 1, sizeof *t->cycles)) {
    mem_free(files);
    return false;
  }
  memcpy(files, t->open + first, n * sizeof *files);
  t->cycles[t->n++] = (symbols_cycle){files, n};
  return true;
}

static void survey_enter(survey_tarjan *t, uint32_t v) {
  t->order[v] = t->low[v] = ++t->counter;
  t->edge[v] = t->g->start[v];
  t->path[t->n_path++] = v;
  t->open[t->n_open++] = v;
  t->is_open[v] = true;
}

static bool survey_visit(survey_tarjan *t, uint32_t root) {
  survey_enter(t, root);
  while (t->n_path) {
    uint32_t v = t->path[t->n_path - 1];
    if (t->edge[v] < t->g->start[v + 1]) {
      uint32_t to = t->g->edges[t->edge[v]++];
      if (!t->order[to])
        survey_enter(t, to);
      else if (t->is_open[to] && t->order[to] < t->low[v])
        t->low[v] = t->order[to];
      continue;
    }
    t->n_path--;
    if (t->n_path && t->low[v] < t->low[t->path[t->n_path - 1]]) t->low[t->path[t->n_path - 1]] = t->low[v];
    if (t->low[v] == t->order[v] && !survey_close(t, v)) return false;
  }
  return true;
}

lode_status symbols_cycles(symbols_world *w, symbols_cycle **cycles, size_t *n, lode_error *err) {
  survey_graph g = {0};
  size_t files = w->n_files + 1;
  lode_status st = survey_make_graph(w, &g, err);
  survey_tarjan t = {.g = &g,
                     .order = mem_calloc(files, sizeof *t.order),
                     .low = mem_calloc(files, sizeof *t.low),
                     .edge = mem_calloc(files, sizeof *t.edge),
                     .path = mem_calloc(files, sizeof *t.path),
                     .open = mem_calloc(files, sizeof *t.open),
                     .is_open = mem_calloc(files, sizeof *t.is_open)};
  if (st == LODE_OK && (!t.order || !t.low || !t.edge || !t.path || !t.open || !t.is_open)) st = err_nomem(err);
  for (uint32_t f = 0; f < w->n_files && st == LODE_OK; f++)
    if (!t.order[f] && !survey_visit(&t, f)) st = err_nomem(err);
  *cycles = t.cycles;
  *n = t.n;
  if (st != LODE_OK) {
    symbols_cycles_free(t.cycles, t.n);
    *cycles = NULL;
    *n = 0;
  }
  mem_free(t.order);
  mem_free(t.low);
  mem_free(t.edge);
  mem_free(t.path);
  mem_free(t.open);
  mem_free(t.is_open);
  mem_free(g.start);
  mem_free(g.edges);
  return st;
}

void symbols_cycles_free(symbols_cycle *cycles, size_t n) {
  for (size_t i = 0; i < n; i++) mem_free(cycles[i].files);
  mem_free(cycles);
}
