/* SPDX-License-Identifier: Apache-2.0 */
/* tree_collect.c - the first pass over a tree: collects definitions and breaks; see tree.h.
 *
 * A level for each depth holds what siblings share: the enclosing definition, the run of comments that just ended, the
 * wrapper that waits for its definition. Scans of white space are bounded, so that hostile text cannot make the pass
 * quadratic.
 */
#include "parser/tree.h"

enum { COLLECT_MAX_GAP = 256 };

typedef struct collect_level {
  uint32_t outer;              /* the definition around the siblings */
  uint32_t run_start, run_end; /* comments that end at the current position; equal: none */
  uint32_t last;               /* the previous definition, whose body may still follow */
  bool wraps;                  /* the parent is a wrapper whose definition was not found yet */
  uint32_t wrap_start, wrap_own, wrap_end, wrap_doc_start, wrap_doc_end, wrap_depth;
} collect_level;

typedef struct collect_state {
  const parser_grammar *g;
  lode_str text;
  chunk_options o;
  parser_outline *out;
  collect_level levels[PARSER_MAX_DEPTH + 2];
  uint32_t depth;
} collect_state;

/* Is there only white space before `at` on its line? *line gets the start of the line. */
static bool collect_begins_line(lode_str text, uint32_t at, uint32_t *line) {
  uint32_t p = at, min = at > COLLECT_MAX_GAP ? at - COLLECT_MAX_GAP : 0;
  while (p > min && (text.data[p - 1] == ' ' || text.data[p - 1] == '\t')) p--;
  *line = p;
  return p == 0 || text.data[p - 1] == '\n';
}

/* Is there only white space between two offsets, with at most one line end? */
static bool collect_adjoins(lode_str text, uint32_t from, uint32_t to) {
  unsigned newlines = 0;
  if (to < from || to - from > COLLECT_MAX_GAP) return false;
  for (uint32_t p = from; p < to; p++) {
    char c = text.data[p];
    if (c == '\n')
      newlines++;
    else if (c != ' ' && c != '\t' && c != '\r')
      return false;
  }
  return newlines < 2;
}

static bool collect_add_break(collect_state *w, uint32_t at) {
  parser_outline *o = w->out;
  if (o->n_breaks && o->breaks[o->n_breaks - 1].at >= at) return true; /* same start as its parent */
  if (!mem_grow(&o->breaks, &o->breaks_cap, o->n_breaks + 1, sizeof *o->breaks)) return false;
  o->breaks[o->n_breaks++] = (parser_break){at, w->depth};
  return true;
}

static void collect_comment(collect_state *w, uint32_t start, uint32_t end) {
  collect_level *l = &w->levels[w->depth];
  uint32_t line;
  while (end > start && (w->text.data[end - 1] == '\n' || w->text.data[end - 1] == '\r')) end--;
  if (!collect_begins_line(w->text, start, &line)) {
    l->run_start = l->run_end = 0;
    return;
  }
  if (l->run_end == l->run_start || !collect_adjoins(w->text, l->run_end, start)) l->run_start = start;
  l->run_end = end;
}

static lode_str collect_name_of(const collect_state *w, const lang_rule *rule, TSNode node, bool scope) {
  TSNode name = parser_name_node(rule, node, scope);
  if (ts_node_is_null(name)) return STR_LIT("");
  uint32_t start = ts_node_start_byte(name), end = ts_node_end_byte(name);
  if (start > end || end > w->text.len) return STR_LIT("");
  lode_str text = {w->text.data + start, end - start};
  return scope ? text : parser_behind_macro(w->text, text);
}

/* Is it the next clause of the previous definition: f 0 = ..., f n = ...? */
static bool collect_is_clause(collect_state *w, const collect_level *l, const lang_rule *rule, lode_str name) {
  if (!w->g->language->clauses || l->last == PARSER_NO_DEF || name.len == 0) return false;
  const parser_def *before = &w->out->defs[l->last];
  return before->rule == rule && str_eq(before->name, name);
}

static bool collect_definition(collect_state *w, TSNode node, const lang_rule *rule, uint32_t start, uint32_t end,
                               uint32_t *index) {
  collect_level *l = &w->levels[w->depth];
  parser_outline *o = w->out;
  parser_def d = {.node = node, .rule = rule, .start = start, .own = start, .end = end, .outer = l->outer};
  uint32_t line;
  d.name = collect_name_of(w, rule, node, false);
  d.scope = collect_name_of(w, rule, node, true);
  d.lines = ts_node_end_point(node).row - ts_node_start_point(node).row + 1;
  if (collect_is_clause(w, l, rule, d.name)) {
    *index = l->last;
    o->defs[l->last].end = end;
    o->defs[l->last].lines += d.lines;
    return true;
  }
  if (l->run_end > l->run_start && collect_adjoins(w->text, l->run_end, start)) {
    d.doc_start = d.start = l->run_start;
    d.doc_end = l->run_end;
  }
  if (l->wraps) {
    d.start = l->wrap_start;
    d.own = l->wrap_own;
    if (l->wrap_end > d.end) d.end = l->wrap_end;
    if (l->wrap_doc_end > l->wrap_doc_start) {
      d.doc_start = l->wrap_doc_start;
      d.doc_end = l->wrap_doc_end;
    }
    w->levels[l->wrap_depth].last = (uint32_t)o->n_defs;
    for (uint32_t i = l->wrap_depth + 1; i <= w->depth; i++) w->levels[i].wraps = false;
  }
  if (collect_begins_line(w->text, d.start, &line)) d.start = line;
  if (!mem_grow(&o->defs, &o->defs_cap, o->n_defs + 1, sizeof *o->defs)) return false;
  *index = (uint32_t)o->n_defs;
  o->defs[o->n_defs++] = d;
  return true;
}

/* Adds a body that is a sibling of its definition's head to that definition. */
static bool collect_joins_body(collect_state *w, TSSymbol symbol, uint32_t start, uint32_t end, uint32_t lines) {
  collect_level *l = &w->levels[w->depth];
  if (symbol >= w->g->symbols || !w->g->body[symbol] || l->last == PARSER_NO_DEF) return false;
  parser_def *d = &w->out->defs[l->last];
  if (d->body || start < d->end || !collect_adjoins(w->text, d->end, start)) return false;
  d->body = start;
  d->end = end;
  d->lines += lines - 1;
  return true;
}

static void collect_open_level(collect_state *w, uint32_t outer) {
  w->levels[w->depth + 1] = (collect_level){.outer = outer, .last = PARSER_NO_DEF};
}

/* Opens the level below a wrapper, whose start and comments go to the definition in it. */
static void collect_open_wrapper(collect_state *w, uint32_t start, uint32_t end) {
  const collect_level *up = &w->levels[w->depth];
  collect_level *l = &w->levels[w->depth + 1];
  if (up->wraps) { /* nested wrappers: the outermost counts */
    *l = *up;
    l->last = PARSER_NO_DEF;
    l->run_start = l->run_end = 0;
    return;
  }
  collect_open_level(w, up->outer);
  l->wraps = true;
  l->wrap_start = l->wrap_own = start;
  l->wrap_end = end;
  l->wrap_depth = w->depth;
  if (up->run_end > up->run_start && collect_adjoins(w->text, up->run_end, start)) {
    l->wrap_start = l->wrap_doc_start = up->run_start;
    l->wrap_doc_end = up->run_end;
  }
}

/* Visits one node; *down: visit its children too, their level is ready. */
static bool collect_visit(collect_state *w, TSNode node, bool *down) {
  collect_level *l = &w->levels[w->depth];
  uint32_t start = ts_node_start_byte(node), end = ts_node_end_byte(node), line, index;
  TSSymbol symbol = ts_node_symbol(node);
  *down = false;
  if (end > w->text.len || start >= end) return true;
  const lang_rule *rule = parser_grammar_rule(w->g, node, symbol, w->text.data);
  if (!rule && symbol < w->g->symbols && w->g->comment[symbol]) {
    if (!(l->run_end > l->run_start && collect_adjoins(w->text, l->run_end, start)) &&
        collect_begins_line(w->text, start, &line) && !collect_add_break(w, line))
      return false;
    collect_comment(w, start, end);
    return true;
  }
  bool commented = l->run_end > l->run_start && collect_adjoins(w->text, l->run_end, start);
  if (!commented && collect_begins_line(w->text, start, &line) && !collect_add_break(w, line)) return false;
  uint32_t lines = ts_node_end_point(node).row - ts_node_start_point(node).row + 1, size = end - start;
  bool deeper = w->depth < PARSER_MAX_DEPTH;
  if (collect_joins_body(w, symbol, start, end, lines)) {
    *down = deeper && size > w->o.max_bytes;
    if (*down) collect_open_level(w, l->last);
  } else if (rule && rule->role == LANG_ROLE_WRAPPER) {
    *down = deeper;
    if (deeper) collect_open_wrapper(w, start, end);
  } else if (rule) {
    if (!collect_definition(w, node, rule, start, end, &index)) return false;
    l->last = index;
    *down = deeper && (rule->role == LANG_ROLE_CONTAINER || size > w->o.max_bytes);
    if (*down) collect_open_level(w, index);
  } else {
    *down = deeper && (lines >= 3 || size > w->o.min_bytes);
    if (*down) collect_open_level(w, l->outer);
  }
  l->run_start = l->run_end = 0;
  return true;
}

lode_status parser_collect(const parser_grammar *grammar, TSTree *tree, lode_str text, const chunk_options *options,
                           parser_outline *outline, lode_error *err) {
  TSTreeCursor cursor = ts_tree_cursor_new(ts_tree_root_node(tree));
  collect_state *w = mem_calloc(1, sizeof *w);
  lode_status st = LODE_OK;
  bool going;
  outline->n_defs = outline->n_breaks = 0;
  if (!w) st = err_nomem(err);
  if (w) {
    w->g = grammar;
    w->text = text;
    w->o = *options;
    w->out = outline;
    w->levels[0] = (collect_level){.outer = PARSER_NO_DEF, .last = PARSER_NO_DEF};
  }
  /* the root is not a definition: start with its children */
  going = w && ts_tree_cursor_goto_first_child(&cursor);
  while (going) {
    bool down;
    if (!collect_visit(w, ts_tree_cursor_current_node(&cursor), &down)) {
      st = err_nomem(err);
      break;
    }
    if (down && ts_tree_cursor_goto_first_child(&cursor)) {
      w->depth++;
      continue;
    }
    while (going && !ts_tree_cursor_goto_next_sibling(&cursor)) {
      going = w->depth > 0 && ts_tree_cursor_goto_parent(&cursor);
      if (going) w->depth--;
    }
  }
  ts_tree_cursor_delete(&cursor);
  mem_free(w);
  return st;
}

void parser_outline_release(parser_outline *outline) {
  mem_free(outline->defs);
  mem_free(outline->breaks);
  *outline = (parser_outline){0};
}
