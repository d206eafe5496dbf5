/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_graph.c - walks over callers and callees, breadth first, without recursion; see symbols.h. */
#include "symbols/symbols.h"

#include "symbols/symbol_map.h"
#include "symbols/symbol_tuning.h"

/* What a walk knows besides its edges. */
typedef struct graph_walk {
  symbols_world *w;
  const symbols_walk_options *options;
  symbols_edges *edges;
  symbols_ids seen;     /* definitions whose neighbours were looked for */
  symbols_map *by_ends; /* depth, ends and name of an edge: its number */
} graph_walk;

static lode_status graph_begin(graph_walk *g, lode_error *err) {
  g->by_ends = symbols_map_new();
  return g->by_ends ? LODE_OK : err_nomem(err);
}

static void graph_end(graph_walk *g) {
  symbols_map_free(g->by_ends);
  mem_free(g->seen.v);
}

static lode_status graph_add_edge(graph_walk *g, const symbols_edge *e, lode_error *err) {
  uint32_t ends[] = {e->depth, e->from.file, e->from.def, e->to.file, e->to.def};
  symbols_edges *edges = g->edges;
  char *key = mem_arena_alloc(&g->w->arena, sizeof ends + e->name.len);
  if (!key) return err_nomem(err);
  memcpy(key, ends, sizeof ends);
  memcpy(key + sizeof ends, e->name.data, e->name.len);
  lode_str whole = {key, sizeof ends + e->name.len};
  uint32_t *known = symbols_map_find(g->by_ends, whole);
  if (known) {
    edges->v[*known].times++;
    return LODE_OK;
  }
  if (!mem_grow(&edges->v, &edges->cap, edges->n + 1, sizeof *edges->v) ||
      !symbols_map_put(g->by_ends, whole, (uint32_t)edges->n))
    return err_nomem(err);
  edges->v[edges->n++] = *e;
  return LODE_OK;
}

/* Is the definition, or one around it, among them? A method belongs to its class. */
static bool graph_is_within(const symbols_world *w, symbols_id id, symbols_id around) {
  if (id.file != around.file) return false;
  for (uint32_t d = id.def; d != CHUNK_NO_DEF; d = w->files[id.file].table.defs[d].outer)
    if (d == around.def) return true;
  return false;
}

/* ---- Callers ---- */

static bool graph_is_asked_for(const symbols_walk_options *o, chunk_use use) {
  return use == CHUNK_USE_CALL || (o->all_uses && use != CHUNK_USE_IMPORT);
}

/* Definitions of one name, whose uses are looked at once for all of them. */
typedef struct graph_step {
  graph_walk *g;
  symbols_ids of;
  symbols_map *set; /* the same, by their bytes; NULL: there is one */
  uint32_t depth;
  size_t before;
} graph_step;

/* The edge of a use that resolves to `t`; the caller sets its ends. */
static symbols_edge graph_edge_of(const graph_step *s, const chunk_ref *r, const symbols_target *t) {
  return (symbols_edge){.line = r->line,
                        .depth = s->depth,
                        .use = r->use,
                        .resolved = t->resolved,
                        .candidates = t->total,
                        .name = r->name,
                        .times = 1,
                        .before = s->before};
}

static bool graph_is_meant(const graph_step *s, const symbols_id *id) {
  if (!s->set) return symbols_same(*id, s->of.v[0]);
  return symbols_map_find(s->set, (lode_str){(const char *)id, sizeof *id}) != NULL;
}

static lode_status graph_check_use(graph_step *s, uint32_t file, const chunk_ref *r, lode_error *err) {
  symbols_id from = {file, r->def};
  symbols_target t;
  if (!graph_is_asked_for(s->g->options, r->use)) return LODE_OK;
  TRY(symbols_resolve_among(s->g->w, file, r, s->of.n <= SYMBOLS_FEW_ASKED ? &s->of : NULL, &t, err));
  for (size_t i = 0; i < t.n; i++) {
    if (!graph_is_meant(s, &t.ids[i])) continue;
    /* a use inside of itself says nothing about others */
    if (s->g->options->all_uses && graph_is_within(s->g->w, from, t.ids[i])) continue;
    symbols_edge e = graph_edge_of(s, r, &t);
    e.from = from;
    e.to = t.ids[i];
    TRY(graph_add_edge(s->g, &e, err));
    break;
  }
  return LODE_OK;
}

/* The uses of a name that a file imports under another one. */
static lode_status graph_add_aliased(graph_step *s, uint32_t file, lode_str local, lode_error *err) {
  for (size_t i = 0; i < s->g->w->files[file].table.n_refs; i++) {
    const chunk_ref *r = &s->g->w->files[file].table.refs[i];
    if (str_eq(r->name, local) && !r->qualifier.len) TRY(graph_check_use(s, file, r, err));
  }
  return LODE_OK;
}

static lode_status graph_add_callers(graph_step *s, lode_error *err) {
  symbols_world *w = s->g->w;
  lode_str name = symbols_def(w, s->of.v[0])->name;
  symbols_id use;
  TRY(symbols_load_users(w, name, err));
  TRY(symbols_index_uses(w, err));
  for (uint32_t at = 0; symbols_next_use(w, name, &at, &use);) {
    const chunk_ref *r = &w->files[use.file].table.refs[use.def];
    if (r->use == CHUNK_USE_IMPORT && r->local.len && !str_eq(r->local, name))
      TRY(graph_add_aliased(s, use.file, r->local, err));
    TRY(graph_check_use(s, use.file, r, err));
  }
  return LODE_OK;
}

static lode_status graph_add_seen(graph_walk *g, symbols_id id, bool *is_new, lode_error *err) {
  *is_new = !symbols_has_id(&g->seen, id);
  if (*is_new && g->seen.n >= SYMBOLS_MAX_VISITS) {
    g->edges->more = true;
    *is_new = false;
    return LODE_OK;
  }
  return !*is_new || symbols_add_id(&g->seen, id) ? LODE_OK : err_nomem(err);
}

/* The callers of all definitions that have the name of the first in the list, which become the first `n`. */
static lode_status graph_add_first_callers(graph_walk *g, symbols_id *ids, size_t n, lode_error *err) {
  graph_step s = {.g = g, .of = {.v = ids, .n = n}, .set = symbols_map_new(), .depth = 1};
  lode_status st = s.set ? LODE_OK : err_nomem(err);
  for (size_t i = 0; i < n && st == LODE_OK; i++)
    if (!symbols_map_put(s.set, (lode_str){(const char *)&ids[i], sizeof ids[i]}, 1)) st = err_nomem(err);
  if (st == LODE_OK) st = graph_add_callers(&s, err);
  symbols_map_free(s.set);
  return st;
}

/* Those that are asked about, name by name. */
static lode_status graph_begin_callers(graph_walk *g, const symbols_ids *of, lode_error *err) {
  symbols_id *ids = mem_calloc(of->n + 1, sizeof *ids);
  lode_status st = ids ? LODE_OK : err_nomem(err);
  bool is_new;
  for (size_t i = 0; i < of->n && st == LODE_OK; i++) {
    ids[i] = of->v[i];
    st = graph_add_seen(g, of->v[i], &is_new, err);
  }
  for (size_t at = 0, n; at < of->n && st == LODE_OK; at += n) {
    lode_str name = symbols_def(g->w, ids[at])->name;
    n = 1;
    for (size_t i = at + 1; i < of->n; i++) {
      if (!str_eq(symbols_def(g->w, ids[i])->name, name)) continue;
      symbols_id other = ids[at + n];
      ids[at + n++] = ids[i];
      ids[i] = other;
    }
    st = graph_add_first_callers(g, ids + at, n, err);
  }
  mem_free(ids);
  return st;
}

lode_status symbols_callers(symbols_world *w, const symbols_ids *of, const symbols_walk_options *options,
                            symbols_edges *edges, lode_error *err) {
  graph_walk g = {.w = w, .options = options, .edges = edges};
  lode_status st;
  bool is_new;
  TRY_GOTO(graph_begin(&g, err));
  TRY_GOTO(graph_begin_callers(&g, of, err));
  /* what was found at one depth is asked about at the next */
  for (size_t next = 0; next < edges->n; next++) {
    symbols_edge e = edges->v[next];
    if (e.depth >= options->depth || e.from.def == CHUNK_NO_DEF || !e.resolved) continue;
    TRY_GOTO(graph_add_seen(&g, e.from, &is_new, err));
    if (!is_new) continue;
    graph_step s = {.g = &g, .of = {.v = &e.from, .n = 1}, .depth = e.depth + 1, .before = next + 1};
    TRY_GOTO(graph_add_callers(&s, err));
  }
  edges->more = edges->more || w->more;
done:
  graph_end(&g);
  return st;
}

/* ---- Callees ---- */

static lode_status graph_add_callees(graph_step *s, lode_error *err) {
  symbols_world *w = s->g->w;
  symbols_id of = s->of.v[0];
  const chunk_def *d = symbols_def(w, of);
  uint32_t last = d->end_line;
  for (size_t i = symbols_first_ref(&w->files[of.file].table, d->line); i < w->files[of.file].table.n_refs; i++) {
    const chunk_ref *r = &w->files[of.file].table.refs[i];
    if (r->line > last) break;
    if (!graph_is_asked_for(s->g->options, r->use)) continue;
    if (!graph_is_within(w, (symbols_id){of.file, r->def}, of)) continue;
    symbols_target t;
    TRY(symbols_resolve(w, of.file, r, &t, err));
    if (!t.n && !s->g->options->open) continue;
    symbols_edge e = graph_edge_of(s, r, &t);
    e.from = of;
    e.to = t.n ? t.ids[0] : (symbols_id){UINT32_MAX, CHUNK_NO_DEF};
    TRY(graph_add_edge(s->g, &e, err));
  }
  return LODE_OK;
}

/* `to`: stop when one of these is reached; *hit is 1 + the number of the edge. */
static lode_status graph_walk_callees(symbols_world *w, const symbols_ids *of, const symbols_walk_options *options,
                                      const symbols_ids *to, symbols_edges *edges, size_t *hit, lode_error *err) {
  graph_walk g = {.w = w, .options = options, .edges = edges};
  lode_status st;
  bool is_new;
  TRY_GOTO(graph_begin(&g, err));
  for (size_t i = 0; i < of->n; i++) {
    graph_step s = {.g = &g, .of = {.v = &of->v[i], .n = 1}, .depth = 1};
    TRY_GOTO(graph_add_seen(&g, of->v[i], &is_new, err));
    TRY_GOTO(graph_add_callees(&s, err));
  }
  for (size_t next = 0; next < edges->n; next++) {
    symbols_edge e = edges->v[next];
    if (to && e.candidates && symbols_has_id(to, e.to)) {
      *hit = next + 1;
      break;
    }
    if (e.depth >= options->depth || !e.resolved || e.to.def == CHUNK_NO_DEF) continue;
    TRY_GOTO(graph_add_seen(&g, e.to, &is_new, err));
    if (!is_new) continue;
    graph_step s = {.g = &g, .of = {.v = &e.to, .n = 1}, .depth = e.depth + 1, .before = next + 1};
    TRY_GOTO(graph_add_callees(&s, err));
  }
  edges->more = edges->more || w->more;
done:
  graph_end(&g);
  return st;
}

lode_status symbols_callees(symbols_world *w, const symbols_ids *of, const symbols_walk_options *options,
                            symbols_edges *edges, lode_error *err) {
  return graph_walk_callees(w, of, options, NULL, edges, NULL, err);
}

lode_status symbols_trace(symbols_world *w, const symbols_ids *from, const symbols_ids *to, symbols_edges *path,
                          lode_error *err) {
  symbols_walk_options options = {.depth = 64};
  symbols_edges all = {0};
  size_t hit = 0, n = 0;
  lode_status st = graph_walk_callees(w, from, &options, to, &all, &hit, err);
  path->more = all.more;
  for (size_t at = hit; at; at = all.v[at - 1].before) n++;
  if (st == LODE_OK && n && !mem_grow(&path->v, &path->cap, n, sizeof *path->v)) st = err_nomem(err);
  if (st == LODE_OK) path->n = n;
  for (size_t at = hit; at && st == LODE_OK; at = all.v[at - 1].before) {
    path->v[--n] = all.v[at - 1];
    path->v[n].before = n; /* in the path, the one before it */
  }
  mem_free(all.v);
  return st;
}
