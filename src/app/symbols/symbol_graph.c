/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_graph.c - walks over callers and callees, breadth first, without recursion; see symbols.h. */
#include "symbols/symbols.h"

#include "symbols/symbol_tuning.h"

static bool graph_add_edge(symbols_edges *edges, const symbols_edge *e) {
  for (size_t i = edges->n; i-- > 0 && edges->v[i].depth == e->depth;) {
    symbols_edge *old = &edges->v[i];
    if (!symbols_same(old->from, e->from) || !symbols_same(old->to, e->to) || !str_eq(old->name, e->name)) continue;
    old->times++;
    return true;
  }
  if (!mem_grow(&edges->v, &edges->cap, edges->n + 1, sizeof *edges->v)) return false;
  edges->v[edges->n++] = *e;
  return true;
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

typedef struct graph_step { /* the uses of one definition */
  symbols_world *w;
  symbols_id of;
  uint32_t depth;
  size_t before;
  const symbols_walk_options *options;
  symbols_edges *edges;
} graph_step;

/* The edge of a use that resolves to `t`; the caller sets its ends. */
static symbols_edge graph_edge_of(const graph_step *g, const chunk_ref *r, const symbols_target *t) {
  return (symbols_edge){.line = r->line,
                        .depth = g->depth,
                        .use = r->use,
                        .resolved = t->resolved,
                        .candidates = t->total,
                        .name = r->name,
                        .times = 1,
                        .before = g->before};
}

static lode_status graph_check_use(graph_step *g, uint32_t file, const chunk_ref *r, lode_error *err) {
  symbols_target t;
  TRY(symbols_resolve(g->w, file, r, &t, err));
  for (size_t i = 0; i < t.n; i++) {
    if (!symbols_same(t.ids[i], g->of)) continue;
    symbols_edge e = graph_edge_of(g, r, &t);
    e.from = (symbols_id){file, r->def};
    e.to = g->of;
    return graph_add_edge(g->edges, &e) ? LODE_OK : err_nomem(err);
  }
  return LODE_OK;
}

static lode_status graph_check_one(graph_step *g, uint32_t file, const chunk_ref *r, lode_error *err) {
  if (!graph_is_asked_for(g->options, r->use)) return LODE_OK;
  /* a use inside of itself says nothing about others */
  if (graph_is_within(g->w, (symbols_id){file, r->def}, g->of) && g->options->all_uses) return LODE_OK;
  return graph_check_use(g, file, r, err);
}

/* The uses of a name that a file imports under another one. */
static lode_status graph_add_aliased(graph_step *g, uint32_t file, lode_str local, lode_error *err) {
  for (size_t i = 0; i < g->w->files[file].table.n_refs; i++) {
    const chunk_ref *r = &g->w->files[file].table.refs[i];
    if (str_eq(r->name, local) && !r->qualifier.len) TRY(graph_check_one(g, file, r, err));
  }
  return LODE_OK;
}

static lode_status graph_add_callers(graph_step *g, lode_error *err) {
  lode_str name = symbols_def(g->w, g->of)->name;
  symbols_id use;
  TRY(symbols_load_users(g->w, name, err));
  TRY(symbols_index_uses(g->w, err));
  for (uint32_t at = 0; symbols_next_use(g->w, name, &at, &use);) {
    const chunk_ref *r = &g->w->files[use.file].table.refs[use.def];
    if (r->use == CHUNK_USE_IMPORT && r->local.len && !str_eq(r->local, name))
      TRY(graph_add_aliased(g, use.file, r->local, err));
    TRY(graph_check_one(g, use.file, r, err));
  }
  return LODE_OK;
}

static lode_status graph_add_seen(symbols_ids *seen, symbols_id id, bool *is_new, lode_error *err) {
  *is_new = !symbols_has_id(seen, id);
  return !*is_new || symbols_add_id(seen, id) ? LODE_OK : err_nomem(err);
}

lode_status symbols_callers(symbols_world *w, const symbols_ids *of, const symbols_walk_options *options,
                            symbols_edges *edges, lode_error *err) {
  symbols_ids seen = {0};
  size_t next = 0;
  lode_status st = LODE_OK;
  bool is_new;
  for (size_t i = 0; i < of->n; i++) TRY_GOTO(graph_add_seen(&seen, of->v[i], &is_new, err));
  for (size_t i = 0; i < of->n; i++) {
    graph_step g = {.w = w, .of = of->v[i], .depth = 1, .options = options, .edges = edges};
    TRY_GOTO(graph_add_callers(&g, err));
  }
  /* what was found at one depth is asked about at the next */
  for (; next < edges->n; next++) {
    symbols_edge e = edges->v[next];
    if (e.depth >= options->depth || e.from.def == CHUNK_NO_DEF || !e.resolved) continue;
    TRY_GOTO(graph_add_seen(&seen, e.from, &is_new, err));
    if (!is_new) continue;
    if (seen.n > SYMBOLS_MAX_VISITS) {
      edges->more = true;
      break;
    }
    graph_step g = {.w = w, .of = e.from, .depth = e.depth + 1, .before = next + 1, .options = options, .edges = edges};
    TRY_GOTO(graph_add_callers(&g, err));
  }
  edges->more = edges->more || w->more;
done:
  mem_free(seen.v);
  return st;
}

/* ---- Callees ---- */

static lode_status graph_add_callees(graph_step *g, lode_error *err) {
  const chunk_def *d = symbols_def(g->w, g->of);
  uint32_t first = d->line, last = d->end_line;
  for (size_t i = 0; i < g->w->files[g->of.file].table.n_refs; i++) {
    const chunk_ref *r = &g->w->files[g->of.file].table.refs[i];
    if (r->line < first || !graph_is_asked_for(g->options, r->use)) continue;
    if (r->line > last) break;
    if (!graph_is_within(g->w, (symbols_id){g->of.file, r->def}, g->of)) continue;
    symbols_target t;
    TRY(symbols_resolve(g->w, g->of.file, r, &t, err));
    if (!t.n && !g->options->open) continue;
    symbols_edge e = graph_edge_of(g, r, &t);
    e.from = g->of;
    e.to = t.n ? t.ids[0] : (symbols_id){UINT32_MAX, CHUNK_NO_DEF};
    if (!graph_add_edge(g->edges, &e)) return err_nomem(err);
  }
  return LODE_OK;
}

/* `to`: stop when one of these is reached; *hit is 1 + the number of the edge. */
static lode_status graph_walk_callees(symbols_world *w, const symbols_ids *of, const symbols_walk_options *options,
                                      const symbols_ids *to, symbols_edges *edges, size_t *hit, lode_error *err) {
  symbols_ids seen = {0};
  lode_status st = LODE_OK;
  bool is_new;
  for (size_t i = 0; i < of->n; i++) {
    graph_step g = {.w = w, .of = of->v[i], .depth = 1, .options = options, .edges = edges};
    TRY_GOTO(graph_add_seen(&seen, of->v[i], &is_new, err));
    TRY_GOTO(graph_add_callees(&g, err));
  }
  for (size_t next = 0; next < edges->n; next++) {
    symbols_edge e = edges->v[next];
    if (to && e.candidates && symbols_has_id(to, e.to)) {
      *hit = next + 1;
      break;
    }
    if (e.depth >= options->depth || !e.resolved || e.to.def == CHUNK_NO_DEF) continue;
    TRY_GOTO(graph_add_seen(&seen, e.to, &is_new, err));
    if (!is_new) continue;
    if (seen.n > SYMBOLS_MAX_VISITS) {
      edges->more = true;
      break;
    }
    graph_step g = {.w = w, .of = e.to, .depth = e.depth + 1, .before = next + 1, .options = options, .edges = edges};
    TRY_GOTO(graph_add_callees(&g, err));
  }
done:
  mem_free(seen.v);
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
