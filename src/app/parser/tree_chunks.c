/* SPDX-License-Identifier: Apache-2.0 */
/* tree_chunks.c - the second pass: definitions become chunks that cover the text; see tree.h.
 *
 * `at` is the end of what has been emitted. A definition that is kept whole is one chunk. One that contains others,
 * or is too long, stays open while its inside is emitted: the text between its members becomes parts of it. Text
 * outside of definitions becomes module chunks. Scraps (a closing brace, the head of a namespace) are merged into
 * their neighbours.
 */
#include "parser/tree.h"

#include "chunk/chunk_make.h"

#include <ctype.h>

enum {
  TREE_SCRAP_BYTES = 48,    /* text outside of definitions with fewer bytes is not a chunk */
  TREE_MIN_MINOR_LINES = 6, /* minor definitions with this many lines are chunks */
  TREE_MIN_DEF_LINES = 3,   /* other definitions with this many lines are chunks */
  TREE_NAME_WITHIN = 400,   /* bytes of a definition before its name: decorators, modifiers, a type */
};

typedef struct tree_piece { /* parallel to the chunks */
  uint32_t def;             /* the definition it is part of, or PARSER_NO_DEF */
  uint32_t inside;          /* the enclosing definition */
} tree_piece;

typedef struct tree_builder {
  const parser_grammar *g;
  const parser_outline *o;
  lode_str text;
  chunk_options options;
  chunk_list *list;
  tree_piece *pieces;
  size_t pieces_cap;
  bool *carved;    /* by definition: it becomes a chunk */
  uint32_t *first; /* by definition: its first chunk, or PARSER_NO_DEF */
  uint32_t *open;  /* open definitions, outermost first */
  size_t n_open;
  uint32_t at;
  size_t next_break; /* the first break that may still matter */
  bool failed;
} tree_builder;

/* ---- Which definitions become chunks ---- */

/* A namespace is never a chunk; it only gives names to what it contains. */
static bool tree_is_transparent(const parser_def *d) { return d->rule->kind == LANG_KIND_NAMESPACE; }

static bool tree_is_whole(const tree_builder *b, const parser_def *d) {
  uint32_t size = d->end - d->start;
  if (tree_is_transparent(d)) return false;
  return size <= (d->rule->role == LANG_ROLE_CONTAINER ? b->options.max_bytes / 6 : b->options.max_bytes);
}

static bool tree_deserves_chunk(const tree_builder *b, const parser_def *d) {
  uint32_t size = d->end - d->own;
  switch (d->rule->role) {
    case LANG_ROLE_MINOR: return d->lines >= TREE_MIN_MINOR_LINES || size > b->options.max_bytes;
    default: return tree_is_transparent(d) || d->lines >= TREE_MIN_DEF_LINES || size >= b->options.min_bytes;
  }
}

static void tree_choose_chunks(tree_builder *b) {
  uint32_t last_end = 0;
  for (size_t i = 0; i < b->o->n_defs; i++) {
    const parser_def *d = &b->o->defs[i];
    bool inside_ok = d->outer == PARSER_NO_DEF || (b->carved[d->outer] && !tree_is_whole(b, &b->o->defs[d->outer]));
    /* a definition inside a sibling's wrapper stays with that sibling */
    bool free = d->outer != PARSER_NO_DEF
                    ? d->own > b->o->defs[d->outer].own || tree_is_transparent(&b->o->defs[d->outer])
                    : true;
    b->carved[i] = inside_ok && free && d->own >= last_end && tree_deserves_chunk(b, d);
    if (b->carved[i] && tree_is_whole(b, d)) last_end = d->end;
  }
}

/* ---- Strings of a definition ---- */

static lode_str tree_slice(const tree_builder *b, uint32_t from, uint32_t to) {
  if (to > b->text.len) to = (uint32_t)b->text.len;
  return (lode_str){b->text.data + from, to > from ? to - from : 0};
}

static lode_str tree_name_of(tree_builder *b, const parser_def *d) {
  lode_str scope, last;
  parser_names_of(d, &scope, &last);
  return chunk_clean_string(b->list, last, CHUNK_MAX_NAME, CHUNK_STRING_ONE_LINE);
}

static lode_str tree_parents_of(tree_builder *b, uint32_t outer, lode_str scope) {
  char text[CHUNK_MAX_PARENTS];
  size_t at = sizeof text; /* filled from the end, innermost first */
  for (bool is_scope = true; is_scope || outer != PARSER_NO_DEF; is_scope = false) {
    lode_str name = scope;
    if (!is_scope) {
      name = parser_bare_name(b->o->defs[outer].name);
      outer = b->o->defs[outer].outer;
    }
    if (name.len == 0) continue;
    if (name.len + 1 > at) break;
    if (at < sizeof text) text[--at] = ' ';
    at -= name.len;
    memcpy(text + at, name.data, name.len);
  }
  return chunk_clean_string(b->list, (lode_str){text + at, sizeof text - at}, CHUNK_MAX_PARENTS, CHUNK_STRING_ONE_LINE);
}

static lode_str tree_signature_of(tree_builder *b, const parser_def *d) {
  return chunk_clean_string(b->list, parser_signature(b->g, b->text, d), CHUNK_MAX_SIGNATURE, CHUNK_STRING_ONE_LINE);
}

static lode_str tree_doc_of(tree_builder *b, const parser_def *d) {
  TSNode string = parser_docstring_node(b->g, d->node);
  if (!ts_node_is_null(string))
    return chunk_clean_comment(b->list, tree_slice(b, ts_node_start_byte(string), ts_node_end_byte(string)));
  return chunk_clean_comment(b->list, tree_slice(b, d->doc_start, d->doc_end));
}

/* A function in a class is a method; one with the name of the class around it, or of its scope, is a constructor. */
static lang_kind tree_kind_of(const tree_builder *b, const parser_def *d) {
  lode_str scope, last, class_scope, class_name = STR_LIT("");
  if (d->rule->kind != LANG_KIND_FUNCTION) return d->rule->kind;
  bool is_member = d->outer != PARSER_NO_DEF && parser_is_class(b->o->defs[d->outer].rule->kind);
  parser_names_of(d, &scope, &last);
  if (scope.len)
    parser_split_name(scope, &class_scope, &class_name);
  else if (is_member)
    parser_names_of(&b->o->defs[d->outer], &class_scope, &class_name);
  if (last.len && str_eq(last, class_name)) return LANG_KIND_CONSTRUCTOR;
  return is_member ? LANG_KIND_METHOD : LANG_KIND_FUNCTION;
}

static uint32_t tree_parent_chunk(const tree_builder *b, uint32_t outer) {
  while (outer != PARSER_NO_DEF &&
         (!b->carved[outer] || tree_is_transparent(&b->o->defs[outer]) || b->first[outer] == PARSER_NO_DEF))
    outer = b->o->defs[outer].outer;
  return outer == PARSER_NO_DEF ? CHUNK_NO_PARENT : b->first[outer];
}

static void tree_describe_def(tree_builder *b, uint32_t def, chunk_item *c) {
  const parser_def *d = &b->o->defs[def];
  lode_str scope, last;
  parser_names_of(d, &scope, &last);
  c->kind = tree_kind_of(b, d);
  c->name = tree_name_of(b, d);
  c->parents = tree_parents_of(b, d->outer, scope);
  c->signature = tree_signature_of(b, d);
  c->parent = tree_parent_chunk(b, d->outer);
  c->line = d->own;
  if (b->first[def] == PARSER_NO_DEF) c->doc = tree_doc_of(b, d);
}

/* ---- Emitting chunks ---- */

static bool tree_add_chunk(tree_builder *b, const chunk_item *c, tree_piece p) {
  if (!mem_grow(&b->pieces, &b->pieces_cap, b->list->n + 1, sizeof *b->pieces) || !chunk_list_add(b->list, c)) {
    b->failed = true;
    return false;
  }
  b->pieces[b->list->n - 1] = p;
  return true;
}

/* Where to split [start, end), if too long: at the shallowest break in its later part, else as plain text is split. */
static uint32_t tree_split_point(tree_builder *b, uint32_t start, uint32_t end) {
  uint32_t max = chunk_part_bytes(end - start, b->options.max_bytes), from = start + max / 3, last = start + max,
           best = 0, depth = UINT32_MAX;
  if (end - start <= b->options.max_bytes) return end;
  while (b->next_break < b->o->n_breaks && b->o->breaks[b->next_break].at <= from) b->next_break++;
  for (size_t i = b->next_break; i < b->o->n_breaks && b->o->breaks[i].at <= last && b->o->breaks[i].at < end; i++) {
    if (b->o->breaks[i].depth > depth) continue;
    best = b->o->breaks[i].at;
    depth = b->o->breaks[i].depth;
  }
  return best ? best : chunk_split_point(b->text, start, end, max);
}

/* Emits [at, end) as part of a definition, or of the module. */
static void tree_emit_range(tree_builder *b, uint32_t end, uint32_t def, uint32_t inside) {
  chunk_item c = {
      .kind = b->g->language->data ? LANG_KIND_DATA : LANG_KIND_MODULE, .parent = CHUNK_NO_PARENT, .parts = 1};
  if (end <= b->at || b->failed) return;
  if (def != PARSER_NO_DEF) {
    tree_describe_def(b, def, &c);
  } else {
    c.parents = tree_parents_of(b, inside, STR_LIT(""));
    c.parent = tree_parent_chunk(b, inside);
    c.line = b->at;
  }
  while (b->at < end && !b->failed) {
    c.start = b->at;
    c.end = tree_split_point(b, b->at, end);
    if (!tree_add_chunk(b, &c, (tree_piece){def, inside})) return;
    if (def != PARSER_NO_DEF && b->first[def] == PARSER_NO_DEF) b->first[def] = (uint32_t)b->list->n - 1;
    b->at = c.end;
    c.line = b->at;
    c.doc = STR_LIT("");
  }
}

/* Only white space, punctuation and words that end a block? Then it belongs to the chunk before it. */
static bool tree_is_rest(const tree_builder *b, uint32_t from, uint32_t to) {
  static const char *const words[] = {"end", "endif", "fi", "done", "else", "esac"};
  if (to - from > 400) return false;
  uint32_t p = from;
  while (p < to) {
    if (!isalnum((unsigned char)b->text.data[p])) {
      p++;
      continue;
    }
    uint32_t w = p;
    while (p < to && isalnum((unsigned char)b->text.data[p])) p++;
    bool ends_block = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
      ends_block |= str_eq(tree_slice(b, w, p), str_of(words[i]));
    if (!ends_block) return false;
  }
  return true;
}

static uint32_t tree_solid_bytes(const tree_builder *b, uint32_t from, uint32_t to) {
  uint32_t n = 0;
  for (uint32_t p = from; p < to && n < TREE_SCRAP_BYTES; p++) n += !isspace((unsigned char)b->text.data[p]);
  return n;
}

/* Emits the text between `at` and `to`; `ends`: nothing follows it that a scrap could be merged into. */
static void tree_emit_gap(tree_builder *b, uint32_t to, bool ends) {
  uint32_t inside = b->n_open ? b->open[b->n_open - 1] : PARSER_NO_DEF;
  bool of_def = inside != PARSER_NO_DEF && !tree_is_transparent(&b->o->defs[inside]);
  /* the head of an implementation is one line that says nothing alone: it goes with its first member */
  bool is_impl = of_def && b->o->defs[inside].rule->kind == LANG_KIND_IMPL;
  bool head = of_def && !is_impl && b->first[inside] == PARSER_NO_DEF;
  if (to > b->text.len) to = (uint32_t)b->text.len;
  if (to <= b->at || b->failed) return;
  if (!head && b->list->n > 0 && tree_is_rest(b, b->at, to)) {
    b->list->items[b->list->n - 1].end = b->at = to;
    return;
  }
  /* a scrap is merged into what follows it, if anything does */
  if (!head && tree_solid_bytes(b, b->at, to) < TREE_SCRAP_BYTES) {
    if (!ends) return;
    if (b->list->n > 0) {
      b->list->items[b->list->n - 1].end = b->at = to;
      return;
    }
  }
  /* the text after the head of a namespace is its head, as that of a class; later text in it is nobody's */
  if (of_def || (inside != PARSER_NO_DEF && b->first[inside] == PARSER_NO_DEF && b->o->defs[inside].own >= b->at))
    tree_emit_range(b, to, inside, b->o->defs[inside].outer);
  else
    tree_emit_range(b, to, PARSER_NO_DEF, inside);
}

/* The end of the line after a comment at p that ends its line; else p. */
static uint32_t tree_skip_comment(const tree_builder *b, uint32_t p, size_t limit) {
  static const char *const signs[] = {"//", "/*", "#", "--"};
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
    size_t n = strlen(signs[i]);
    if (p + n > limit || memcmp(b->text.data + p, signs[i], n) != 0) continue;
    const char *eol = memchr(b->text.data + p, '\n', limit - p);
    if (!eol) return p;
    if (i == 1 && !(eol - 2 > b->text.data + p && eol[-1] == '/' && eol[-2] == '*')) return p;
    return (uint32_t)(eol - b->text.data);
  }
  return p;
}

/* After the punctuation, comment and line end that follow a definition, and the empty lines after that. */
static uint32_t tree_end_of_line(const tree_builder *b, uint32_t end) {
  uint32_t p = end, line = end;
  size_t limit = b->text.len < (size_t)end + 4096 ? b->text.len : (size_t)end + 4096;
  while (p < limit && strchr(" \t\r;,)", b->text.data[p]) && b->text.data[p]) p++;
  p = tree_skip_comment(b, p, limit);
  if (p >= b->text.len) return (uint32_t)b->text.len;
  if (b->text.data[p] != '\n') return end;
  line = ++p;
  while (p < limit && isspace((unsigned char)b->text.data[p]))
    if (b->text.data[p++] == '\n') line = p;
  return p >= b->text.len ? (uint32_t)b->text.len : line;
}

static void tree_close_until(tree_builder *b, uint32_t start) {
  while (b->n_open > 0) {
    const parser_def *d = &b->o->defs[b->open[b->n_open - 1]];
    if (d->end > start) break;
    tree_emit_gap(b, tree_end_of_line(b, d->end) > start ? d->end : tree_end_of_line(b, d->end),
                  b->first[b->open[b->n_open - 1]] != PARSER_NO_DEF);
    b->n_open--;
  }
}

static void tree_emit_def(tree_builder *b, uint32_t def) {
  const parser_def *d = &b->o->defs[def];
  tree_close_until(b, d->own);
  uint32_t start = d->start > b->at ? d->start : b->at;
  tree_emit_gap(b, start, false);
  if (!tree_is_whole(b, d)) {
    b->open[b->n_open++] = def;
    return;
  }
  uint32_t end = tree_end_of_line(b, d->end);
  if (b->n_open > 0 && end > b->o->defs[b->open[b->n_open - 1]].end) end = d->end; /* not past the brace of its class */
  tree_emit_range(b, end, def, d->outer);
}

/* ---- After all chunks are emitted ---- */

static void tree_number_parts(tree_builder *b) {
  uint32_t *count = b->open; /* reuses the memory: no definition is open any more */
  memset(count, 0, b->o->n_defs * sizeof *count);
  for (size_t i = 0; i < b->list->n; i++) {
    uint32_t def = b->pieces[i].def;
    b->list->items[i].part = def == PARSER_NO_DEF ? 0 : count[def]++;
  }
  for (size_t i = 0; i < b->list->n; i++)
    b->list->items[i].parts = b->pieces[i].def == PARSER_NO_DEF ? 1 : count[b->pieces[i].def];
}

static void tree_add_line(strbuf *out, lode_str line, size_t max) {
  if (line.len == 0 || out->len + line.len + 1 > max) return;
  if (out->len) strbuf_addch(out, '\n');
  strbuf_add(out, line.data, line.len);
}

static void tree_list_members(tree_builder *b, strbuf *scratch) {
  for (size_t i = 0; i < b->list->n && !b->failed; i++) {
    chunk_item *c = &b->list->items[i];
    uint32_t def = b->pieces[i].def;
    if (def == PARSER_NO_DEF || c->part != 0 || !parser_is_class(c->kind)) continue;
    scratch->len = 0;
    for (size_t k = i + 1; k < b->list->n && b->list->items[k].start < b->o->defs[def].end; k++) {
      const chunk_item *m = &b->list->items[k];
      if (m->parent == i && m->part == 0)
        tree_add_line(scratch, m->signature.len ? m->signature : m->name, CHUNK_MAX_SKELETON);
      if (scratch->len + 16 > CHUNK_MAX_SKELETON) break;
    }
    if (scratch->len)
      c->skeleton = chunk_clean_string(b->list, (lode_str){scratch->data, scratch->len}, CHUNK_MAX_SKELETON, 0);
    b->failed = scratch->failed;
  }
}

/* A module chunk that is mostly one small definition takes its name. */
static void tree_take_name(tree_builder *b, size_t chunk, uint32_t def) {
  chunk_item *c = &b->list->items[chunk];
  const parser_def *d = &b->o->defs[def];
  if (b->pieces[chunk].def != PARSER_NO_DEF || d->own < c->start || d->end > c->end ||
      (d->end - d->start) * 2 < c->end - c->start)
    return;
  chunk_item named = *c;
  tree_describe_def(b, def, &named);
  named.doc = tree_doc_of(b, d);
  *c = named;
}

/* Where the name of a definition stands; where the definition begins, if it has none or it comes late, as in
 * a long typedef. */
static uint32_t tree_name_offset(const tree_builder *b, const parser_def *d) {
  bool inside = d->name.len && d->name.data >= b->text.data + d->own && d->name.data < b->text.data + b->text.len;
  uint32_t at = inside ? (uint32_t)(d->name.data - b->text.data) : d->own;
  return at - d->own <= TREE_NAME_WITHIN ? at : d->own;
}

/* Says that something exists which is defined elsewhere: a prototype, a signature in an interface. */
static bool tree_is_declaration(const parser_def *d) {
  lang_kind k = d->rule->kind;
  return d->rule->role == LANG_ROLE_MINOR &&
         (k == LANG_KIND_FUNCTION || k == LANG_KIND_METHOD || k == LANG_KIND_CONSTRUCTOR);
}

static bool tree_put_symbol(tree_builder *b, const parser_def *d, uint32_t line, strbuf *out) {
  lode_str scope, name;
  parser_names_of(d, &scope, &name);
  if (name.len == 0 || name.len > CHUNK_MAX_NAME || memchr(name.data, '\n', name.len)) return false;
  if (out->len + name.len + 32 > CHUNK_MAX_SYMBOLS) return false;
  strbuf_addf(out, "%s%u %s%s ", out->len ? "\n" : "", line, tree_is_declaration(d) ? "-" : "",
              lang_kind_name(tree_kind_of(b, d)));
  strbuf_add(out, name.data, name.len);
  b->failed = b->failed || out->failed;
  return true;
}

/* Lists the definitions that begin in each chunk. */
static void tree_list_symbols(tree_builder *b, strbuf *scratch) {
  size_t chunk = 0, n = 0; /* n: definitions in the chunk that are not chunks themselves */
  uint32_t only = 0, line = 1, at = 0;
  scratch->len = 0;
  for (size_t i = 0; i <= b->o->n_defs && b->list->n > 0 && !b->failed; i++) {
    bool last = i == b->o->n_defs;
    uint32_t here = last ? UINT32_MAX : tree_name_offset(b, &b->o->defs[i]);
    while (chunk < b->list->n && b->list->items[chunk].end <= here) {
      if (n == 1) tree_take_name(b, chunk, only);
      if (scratch->len)
        b->list->items[chunk].symbols =
            chunk_clean_string(b->list, (lode_str){scratch->data, scratch->len}, CHUNK_MAX_SYMBOLS, 0);
      scratch->len = n = 0;
      chunk++;
    }
    if (last) break;
    if (here < b->list->items[chunk].start) here = b->list->items[chunk].start; /* its chunk is done: names overlap */
    for (; at < here; at++) line += b->text.data[at] == '\n';
    for (; at > here; at--) line -= b->text.data[at - 1] == '\n';
    if (!tree_put_symbol(b, &b->o->defs[i], line, scratch) || b->carved[i]) continue;
    only = (uint32_t)i;
    n++;
  }
}

lode_status parser_make_chunks(const parser_grammar *grammar, const parser_outline *outline, lode_str text,
                               const chunk_options *options, chunk_list *list, lode_error *err) {
  strbuf scratch = {0};
  tree_builder b = {.g = grammar, .o = outline, .text = text, .options = *options, .list = list};
  b.carved = mem_calloc(outline->n_defs + 1, sizeof *b.carved);
  b.first = mem_calloc(outline->n_defs + 1, sizeof *b.first);
  b.open = mem_calloc(outline->n_defs + 1, sizeof *b.open);
  chunk_list_clear(list);
  b.failed = !b.carved || !b.first || !b.open;
  if (!b.failed) {
    memset(b.first, 0xFF, outline->n_defs * sizeof *b.first);
    tree_choose_chunks(&b);
    for (uint32_t i = 0; i < outline->n_defs && !b.failed; i++)
      if (b.carved[i]) tree_emit_def(&b, i);
    tree_close_until(&b, UINT32_MAX);
    tree_emit_gap(&b, (uint32_t)text.len, true);
  }
  if (!b.failed) {
    tree_number_parts(&b);
    tree_list_members(&b, &scratch);
    tree_list_symbols(&b, &scratch);
  }
  if (!b.failed) chunk_number_lines(list, text);
  bool failed = b.failed || list->failed;
  mem_free(b.carved);
  mem_free(b.first);
  mem_free(b.open);
  mem_free(b.pieces);
  strbuf_release(&scratch);
  if (failed) chunk_list_clear(list);
  return failed ? err_nomem(err) : LODE_OK;
}
