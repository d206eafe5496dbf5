/* collect.c - the first pass over a tree: definitions and marks; see tree.h.
 *
 * For each depth a level keeps what its siblings share: the definition around them, the run of comments that ended just
 * now, the wrapper that waits for its definition. Scans of white space are bounded, so that hostile text cannot make
 * the pass quadratic.
 */
#include "parser/tree.h"

enum { SCAN_BYTES = 256 };

typedef struct level {
  uint32_t outer;               /* definition around the siblings */
  uint32_t run_start, run_end;  /* comments that end at the current place; equal: none */
  uint32_t last;                /* the definition before, to which a body may still come */
  bool wraps;                   /* the parent is a wrapper whose definition was not found yet */
  uint32_t wrap_start, wrap_own, wrap_end, wrap_doc_start, wrap_doc_end, wrap_depth;
} level;

typedef struct walk {
  const lode__grammar *g;
  lode_str text;
  lode__chunk_options o;
  lode__outline *out;
  level levels[LODE__TREE_DEPTH + 2];
  uint32_t depth;
} walk;

/* Is there only white space before `at` on its line? *line gets where the line begins. */
static bool begins_line(lode_str text, uint32_t at, uint32_t *line) {
  uint32_t p = at, least = at > SCAN_BYTES ? at - SCAN_BYTES : 0;
  while (p > least && (text.data[p - 1] == ' ' || text.data[p - 1] == '\t')) p--;
  *line = p;
  return p == 0 || text.data[p - 1] == '\n';
}

/* White space alone between two places, with at most one end of line? */
static bool adjoins(lode_str text, uint32_t from, uint32_t to) {
  unsigned newlines = 0;
  if (to < from || to - from > SCAN_BYTES) return false;
  for (uint32_t p = from; p < to; p++) {
    char c = text.data[p];
    if (c == '\n') newlines++;
    else if (c != ' ' && c != '\t' && c != '\r') return false;
  }
  return newlines < 2;
}

static bool add_mark(walk *w, uint32_t at) {
  lode__outline *o = w->out;
  if (o->n_marks && o->marks[o->n_marks - 1].at >= at) return true; /* a node that begins with its first child */
  if (!mem_grow(&o->marks, &o->marks_cap, o->n_marks + 1, sizeof *o->marks)) return false;
  o->marks[o->n_marks++] = (lode__mark){at, w->depth};
  return true;
}

static void note_comment(walk *w, uint32_t start, uint32_t end) {
  level *l = &w->levels[w->depth];
  uint32_t line;
  while (end > start && (w->text.data[end - 1] == '\n' || w->text.data[end - 1] == '\r')) end--;
  if (!begins_line(w->text, start, &line)) {
    l->run_start = l->run_end = 0;
    return;
  }
  if (l->run_end == l->run_start || !adjoins(w->text, l->run_end, start)) l->run_start = start;
  l->run_end = end;
}

static lode_str name_of(const walk *w, const lode__rule *rule, TSNode node, bool scope) {
  TSNode name = lode__grammar_name(rule, node, scope);
  if (ts_node_is_null(name)) return STR_LIT("");
  uint32_t start = ts_node_start_byte(name), end = ts_node_end_byte(name);
  if (start > end || end > w->text.len) return STR_LIT("");
  return (lode_str){w->text.data + start, end - start};
}

/* The next clause of the definition before: f 0 = ..., f n = ... */
static bool is_clause(walk *w, const level *l, const lode__rule *rule, lode_str name) {
  if (!w->g->language->clauses || l->last == LODE__TREE_NONE || name.len == 0) return false;
  const lode__def *before = &w->out->defs[l->last];
  return before->rule == rule && str_eq(before->name, name);
}

static bool note_definition(walk *w, TSNode node, const lode__rule *rule, uint32_t start, uint32_t end, uint32_t *index) {
  level *l = &w->levels[w->depth];
  lode__outline *o = w->out;
  lode__def d = {.node = node, .rule = rule, .start = start, .own = start, .end = end, .outer = l->outer};
  uint32_t line;
  d.name = name_of(w, rule, node, false);
  d.scope = name_of(w, rule, node, true);
  d.lines = ts_node_end_point(node).row - ts_node_start_point(node).row + 1;
  if (is_clause(w, l, rule, d.name)) {
    *index = l->last;
    o->defs[l->last].end = end;
    o->defs[l->last].lines += d.lines;
    return true;
  }
  if (l->run_end > l->run_start && adjoins(w->text, l->run_end, start)) {
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
  if (begins_line(w->text, d.start, &line)) d.start = line;
  if (!mem_grow(&o->defs, &o->defs_cap, o->n_defs + 1, sizeof *o->defs)) return false;
  *index = (uint32_t)o->n_defs;
  o->defs[o->n_defs++] = d;
  return true;
}

/* A body that stands beside the head of its definition. */
static bool joins_body(walk *w, TSSymbol symbol, uint32_t start, uint32_t end, uint32_t lines) {
  level *l = &w->levels[w->depth];
  if (symbol >= w->g->symbols || !w->g->body[symbol] || l->last == LODE__TREE_NONE) return false;
  lode__def *d = &w->out->defs[l->last];
  if (d->body || start < d->end || !adjoins(w->text, d->end, start)) return false;
  d->body = start;
  d->end = end;
  d->lines += lines - 1;
  return true;
}

static void open_level(walk *w, uint32_t outer) {
  w->levels[w->depth + 1] = (level){.outer = outer, .last = LODE__TREE_NONE};
}

/* The level below a wrapper: the wrapper's beginning and comments go to the definition in it. */
static void open_wrapper(walk *w, uint32_t start, uint32_t end) {
  const level *up = &w->levels[w->depth];
  level *l = &w->levels[w->depth + 1];
  if (up->wraps) { /* a wrapper in a wrapper: the outer one counts */
    *l = *up;
    l->last = LODE__TREE_NONE;
    l->run_start = l->run_end = 0;
    return;
  }
  open_level(w, up->outer);
  l->wraps = true;
  l->wrap_start = l->wrap_own = start;
  l->wrap_end = end;
  l->wrap_depth = w->depth;
  if (up->run_end > up->run_start && adjoins(w->text, up->run_end, start)) {
    l->wrap_start = l->wrap_doc_start = up->run_start;
    l->wrap_doc_end = up->run_end;
  }
}

/* One node; *down: its children are to be looked at, and their level is ready. */
static bool visit(walk *w, TSNode node, bool *down) {
  level *l = &w->levels[w->depth];
  uint32_t start = ts_node_start_byte(node), end = ts_node_end_byte(node), line, index;
  TSSymbol symbol = ts_node_symbol(node);
  *down = false;
  if (end > w->text.len || start >= end) return true;
  if (symbol < w->g->symbols && w->g->comment[symbol]) {
    if (!(l->run_end > l->run_start && adjoins(w->text, l->run_end, start)) && begins_line(w->text, start, &line) && !add_mark(w, line))
      return false;
    note_comment(w, start, end);
    return true;
  }
  bool commented = l->run_end > l->run_start && adjoins(w->text, l->run_end, start);
  if (!commented && begins_line(w->text, start, &line) && !add_mark(w, line)) return false;
  uint32_t lines = ts_node_end_point(node).row - ts_node_start_point(node).row + 1, size = end - start;
  const lode__rule *rule = lode__grammar_rule(w->g, node, symbol, w->text.data);
  bool deeper = w->depth < LODE__TREE_DEPTH;
  if (joins_body(w, symbol, start, end, lines)) {
    *down = deeper && size > w->o.max_bytes;
    if (*down) open_level(w, l->last);
  } else if (rule && rule->role == LODE__ROLE_WRAP) {
    *down = deeper;
    if (deeper) open_wrapper(w, start, end);
  } else if (rule) {
    if (!note_definition(w, node, rule, start, end, &index)) return false;
    l->last = index;
    *down = deeper && (rule->role == LODE__ROLE_HOLD || size > w->o.max_bytes);
    if (*down) open_level(w, index);
  } else {
    *down = deeper && (lines >= 3 || size > w->o.min_bytes);
    if (*down) open_level(w, l->outer);
  }
  l->run_start = l->run_end = 0;
  return true;
}

lode_status lode__tree_collect(const lode__grammar *grammar, TSTree *tree, lode_str text, const lode__chunk_options *options,
                               lode__outline *outline, lode_error *err) {
  TSTreeCursor cursor = ts_tree_cursor_new(ts_tree_root_node(tree));
  walk *w = mem_calloc(1, sizeof *w);
  lode_status st = LODE_OK;
  bool going;
  outline->n_defs = outline->n_marks = 0;
  if (!w) st = err_nomem(err);
  if (w) {
    w->g = grammar;
    w->text = text;
    w->o = *options;
    w->out = outline;
    w->levels[0] = (level){.outer = LODE__TREE_NONE, .last = LODE__TREE_NONE};
  }
  /* the root itself is no definition: its children are what the file is made of */
  going = w && ts_tree_cursor_goto_first_child(&cursor);
  while (going) {
    bool down;
    if (!visit(w, ts_tree_cursor_current_node(&cursor), &down)) {
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

void lode__outline_release(lode__outline *outline) {
  mem_free(outline->defs);
  mem_free(outline->marks);
  *outline = (lode__outline){0};
}
