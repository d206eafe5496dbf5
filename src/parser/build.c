/* build.c - the second pass: definitions become chunks that cover the text; see tree.h.
 *
 * `at` is the end of what is laid so far. A definition that is kept whole is one chunk. One that holds others, or is too
 * long, stays open while its inside is laid: what lies between its members are parts of it. What lies outside of
 * definitions is a module's. Scraps (a closing brace, the head of a namespace) join their neighbours.
 */
#include "parser/tree.h"

#include "code/chunk_make.h"

#include <ctype.h>

enum {
  SCRAP_BYTES = 48,   /* less than this outside of definitions is no chunk of its own */
  MINOR_LINES = 6,    /* small definitions of at least that many lines are chunks after all */
  DEFINITION_LINES = 3,
};

typedef struct piece { /* beside each chunk */
  uint32_t def;        /* whose part it is, or LODE__TREE_NONE */
  uint32_t inside;     /* the definition around it */
} piece;

typedef struct build {
  const lode__grammar *g;
  const lode__outline *o;
  lode_str text;
  lode__chunk_options options;
  lode__chunk_list *list;
  piece *pieces;
  size_t pieces_cap;
  bool *carved;       /* of each definition: it is a chunk */
  uint32_t *first;    /* its first chunk, or LODE__TREE_NONE */
  uint32_t *open;     /* definitions that are open, from the outside in */
  size_t n_open;
  uint32_t at;
  size_t mark;        /* the first mark that may still matter */
  bool failed;
} build;

/* ---- Which definitions become chunks ---- */

static bool is_class(lode__kind k) {
  return k == LODE__KIND_CLASS || k == LODE__KIND_STRUCT || k == LODE__KIND_UNION || k == LODE__KIND_ENUM || k == LODE__KIND_INTERFACE ||
         k == LODE__KIND_TRAIT || k == LODE__KIND_IMPL;
}

/* A namespace is not a thing to find; it only gives names to what it holds. */
static bool is_transparent(const lode__def *d) { return d->rule->kind == LODE__KIND_NAMESPACE; }

static bool is_whole(const build *b, const lode__def *d) {
  uint32_t size = d->end - d->start;
  if (is_transparent(d)) return false;
  return size <= (d->rule->role == LODE__ROLE_HOLD ? b->options.max_bytes / 6 : b->options.max_bytes);
}

static bool deserves_chunk(const build *b, const lode__def *d) {
  uint32_t size = d->end - d->own;
  switch (d->rule->role) {
    case LODE__ROLE_MINOR:
      return d->lines >= MINOR_LINES || size > b->options.max_bytes;
    default:
      return is_transparent(d) || d->lines >= DEFINITION_LINES || size >= b->options.min_bytes;
  }
}

static void choose(build *b) {
  uint32_t last_end = 0;
  for (size_t i = 0; i < b->o->n_defs; i++) {
    const lode__def *d = &b->o->defs[i];
    bool inside_ok = d->outer == LODE__TREE_NONE || (b->carved[d->outer] && !is_whole(b, &b->o->defs[d->outer]));
    /* what a wrapper of a sibling has swallowed stays with it */
    bool free = d->outer != LODE__TREE_NONE ? d->own > b->o->defs[d->outer].own || is_transparent(&b->o->defs[d->outer]) : true;
    b->carved[i] = inside_ok && free && d->own >= last_end && deserves_chunk(b, d);
    if (b->carved[i] && is_whole(b, d)) last_end = d->end;
  }
}

/* ---- Strings of a definition ---- */

static lode_str slice(const build *b, uint32_t from, uint32_t to) {
  if (to > b->text.len) to = (uint32_t)b->text.len;
  return (lode_str){b->text.data + from, to > from ? to - from : 0};
}

/* "Store::open" and "M.open" are open, in Store or M. */
static void split_name(lode_str name, lode_str *scope, lode_str *last) {
  *scope = STR_LIT("");
  *last = name;
  if (name.len > LODE__CHUNK_NAME_BYTES) return;
  for (size_t i = 0; i < name.len; i++)
    if (!isalnum((unsigned char)name.data[i]) && !strchr("_.:~$", name.data[i]) && !((unsigned char)name.data[i] & 0x80)) return;
  for (size_t i = name.len; i-- > 1;) {
    if (name.data[i] != '.' && name.data[i] != ':') continue;
    if (i + 1 == name.len) return;
    *last = (lode_str){name.data + i + 1, name.len - i - 1};
    *scope = (lode_str){name.data, name.data[i] == ':' && name.data[i - 1] == ':' ? i - 1 : i};
    return;
  }
}

/* Without quotes, the sign of a pointer, arguments of a type: "Point<T>" is Point. */
static lode_str bare(lode_str s) {
  if (s.len >= 2 && (s.data[0] == '"' || s.data[0] == '\'' || s.data[0] == '`') && s.data[s.len - 1] == s.data[0])
    return (lode_str){s.data + 1, s.len - 2};
  while (s.len > 1 && (s.data[0] == '*' || s.data[0] == '&')) s.data++, s.len--;
  bool is_operator = s.len >= 8 && memcmp(s.data, "operator", 8) == 0;
  char last = s.len ? s.data[s.len - 1] : 0;
  const char *args = s.len && (last == '>' || last == ']') && !is_operator ? memchr(s.data, last == '>' ? '<' : '[', s.len) : NULL;
  if (args && args > s.data && isalnum((unsigned char)args[-1])) s.len = (size_t)(args - s.data);
  return s;
}

/* The last part of a definition's name, and what it is said to lie in. */
static void names_of(const lode__def *d, lode_str *scope, lode_str *last) {
  split_name(bare(d->name), scope, last);
  if (scope->len == 0) *scope = bare(d->scope);
}

static lode_str name_of(build *b, const lode__def *d) {
  lode_str scope, last;
  names_of(d, &scope, &last);
  return lode__chunk_string(b->list, last, LODE__CHUNK_NAME_BYTES, LODE__STRING_LINE);
}

static lode_str parents_of(build *b, uint32_t outer, lode_str scope) {
  char text[LODE__CHUNK_PARENTS_BYTES];
  size_t at = sizeof text; /* filled from its end: the innermost first */
  for (bool is_scope = true; is_scope || outer != LODE__TREE_NONE; is_scope = false) {
    lode_str name = scope;
    if (!is_scope) {
      name = bare(b->o->defs[outer].name);
      outer = b->o->defs[outer].outer;
    }
    if (name.len == 0) continue;
    if (name.len + 1 > at) break;
    if (at < sizeof text) text[--at] = ' ';
    at -= name.len;
    memcpy(text + at, name.data, name.len);
  }
  return lode__chunk_string(b->list, (lode_str){text + at, sizeof text - at}, LODE__CHUNK_PARENTS_BYTES, LODE__STRING_LINE);
}

static lode_str signature_of(build *b, const lode__def *d) {
  uint32_t from = ts_node_start_byte(d->node), end = d->body ? d->body : lode__grammar_body(b->g, d->node);
  if (end <= from || end > d->end) { /* no body: the first line, or up to the brace */
    end = from;
    uint32_t most = d->end < from + LODE__CHUNK_SIGNATURE_BYTES ? d->end : from + LODE__CHUNK_SIGNATURE_BYTES;
    while (end < most && b->text.data[end] != '\n' && b->text.data[end] != '{') end++;
  }
  while (end > from && (isspace((unsigned char)b->text.data[end - 1]) || strchr("{:=>", b->text.data[end - 1]))) {
    if (b->text.data[end - 1] == '>' && !(end - 1 > from && b->text.data[end - 2] == '=')) break; /* of a type's arguments */
    end--;
  }
  return lode__chunk_string(b->list, slice(b, from, end), LODE__CHUNK_SIGNATURE_BYTES, LODE__STRING_LINE);
}

static lode_str doc_of(build *b, const lode__def *d) {
  TSNode string = lode__grammar_docstring(b->g, d->node);
  if (!ts_node_is_null(string)) return lode__chunk_comment(b->list, slice(b, ts_node_start_byte(string), ts_node_end_byte(string)));
  return lode__chunk_comment(b->list, slice(b, d->doc_start, d->doc_end));
}

/* A function in a class is a method. */
static lode__kind kind_of(const build *b, const lode__def *d) {
  if (d->rule->kind != LODE__KIND_FUNCTION || d->outer == LODE__TREE_NONE) return d->rule->kind;
  return is_class(b->o->defs[d->outer].rule->kind) ? LODE__KIND_METHOD : LODE__KIND_FUNCTION;
}

static uint32_t chunk_around(const build *b, uint32_t outer) {
  while (outer != LODE__TREE_NONE && (!b->carved[outer] || is_transparent(&b->o->defs[outer]) || b->first[outer] == LODE__TREE_NONE))
    outer = b->o->defs[outer].outer;
  return outer == LODE__TREE_NONE ? LODE__CHUNK_NO_PARENT : b->first[outer];
}

static void describe(build *b, uint32_t def, lode__chunk *c) {
  const lode__def *d = &b->o->defs[def];
  lode_str scope, last;
  names_of(d, &scope, &last);
  c->kind = kind_of(b, d);
  c->name = name_of(b, d);
  c->parents = parents_of(b, d->outer, scope);
  c->signature = signature_of(b, d);
  c->parent = chunk_around(b, d->outer);
  c->line = d->own;
  if (b->first[def] == LODE__TREE_NONE) c->doc = doc_of(b, d);
}

/* ---- Laying chunks ---- */

static bool add(build *b, const lode__chunk *c, piece p) {
  if (!mem_grow(&b->pieces, &b->pieces_cap, b->list->n + 1, sizeof *b->pieces) || !lode__chunk_add(b->list, c)) {
    b->failed = true;
    return false;
  }
  b->pieces[b->list->n - 1] = p;
  return true;
}

/* Where to cut [start, end), which is too long: at the shallowest mark of its later part, else as text is cut. */
static uint32_t cut(build *b, uint32_t start, uint32_t end) {
  uint32_t max = b->options.max_bytes, from = start + max / 3, last = start + max, best = 0, depth = UINT32_MAX;
  if (end - start <= max) return end;
  while (b->mark < b->o->n_marks && b->o->marks[b->mark].at <= from) b->mark++;
  for (size_t i = b->mark; i < b->o->n_marks && b->o->marks[i].at <= last && b->o->marks[i].at < end; i++) {
    if (b->o->marks[i].depth > depth) continue;
    best = b->o->marks[i].at;
    depth = b->o->marks[i].depth;
  }
  return best ? best : lode__chunk_cut(b->text, start, end, max);
}

/* Lays [at, end) as part of a definition, or of the module. */
static void lay(build *b, uint32_t end, uint32_t def, uint32_t inside) {
  lode__chunk c = {.kind = b->g->language->data ? LODE__KIND_DATA : LODE__KIND_MODULE, .parent = LODE__CHUNK_NO_PARENT, .parts = 1};
  if (end <= b->at || b->failed) return;
  if (def != LODE__TREE_NONE) {
    describe(b, def, &c);
  } else {
    c.parents = parents_of(b, inside, STR_LIT(""));
    c.parent = chunk_around(b, inside);
    c.line = b->at;
  }
  while (b->at < end && !b->failed) {
    c.start = b->at;
    c.end = cut(b, b->at, end);
    if (!add(b, &c, (piece){def, inside})) return;
    if (def != LODE__TREE_NONE && b->first[def] == LODE__TREE_NONE) b->first[def] = (uint32_t)b->list->n - 1;
    b->at = c.end;
    c.line = b->at;
    c.doc = STR_LIT("");
  }
}

/* White space and signs alone, or a word that ends a block: it belongs to what stands before it. */
static bool is_rest(const build *b, uint32_t from, uint32_t to) {
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
    bool known = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) known |= str_eq(slice(b, w, p), str_of(words[i]));
    if (!known) return false;
  }
  return true;
}

static uint32_t solid_bytes(const build *b, uint32_t from, uint32_t to) {
  uint32_t n = 0;
  for (uint32_t p = from; p < to && n < SCRAP_BYTES; p++) n += !isspace((unsigned char)b->text.data[p]);
  return n;
}

/* What lies between the end of what is laid and `to`. */
static void fill(build *b, uint32_t to, bool ends) {
  uint32_t inside = b->n_open ? b->open[b->n_open - 1] : LODE__TREE_NONE;
  bool of_def = inside != LODE__TREE_NONE && !is_transparent(&b->o->defs[inside]);
  bool head = of_def && b->first[inside] == LODE__TREE_NONE;
  if (to > b->text.len) to = (uint32_t)b->text.len;
  if (to <= b->at || b->failed) return;
  if (!head && b->list->n > 0 && is_rest(b, b->at, to)) {
    b->list->items[b->list->n - 1].end = b->at = to;
    return;
  }
  /* a scrap begins what follows it, if anything does */
  if (!head && solid_bytes(b, b->at, to) < SCRAP_BYTES) {
    if (!ends) return;
    if (b->list->n > 0) {
      b->list->items[b->list->n - 1].end = b->at = to;
      return;
    }
  }
  if (of_def) lay(b, to, inside, b->o->defs[inside].outer);
  else lay(b, to, LODE__TREE_NONE, inside);
}

/* Behind a comment at p that ends its line; else p. */
static uint32_t over_comment(const build *b, uint32_t p, size_t limit) {
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

/* Behind signs, a comment and the end of the line that follow a definition, and empty lines. */
static uint32_t with_rest_of_line(const build *b, uint32_t end) {
  uint32_t p = end, line = end;
  size_t limit = b->text.len < (size_t)end + 4096 ? b->text.len : (size_t)end + 4096;
  while (p < limit && strchr(" \t\r;,)", b->text.data[p]) && b->text.data[p]) p++;
  p = over_comment(b, p, limit);
  if (p >= b->text.len) return (uint32_t)b->text.len;
  if (b->text.data[p] != '\n') return end;
  line = ++p;
  while (p < limit && isspace((unsigned char)b->text.data[p]))
    if (b->text.data[p++] == '\n') line = p;
  return p >= b->text.len ? (uint32_t)b->text.len : line;
}

static void close_until(build *b, uint32_t start) {
  while (b->n_open > 0) {
    const lode__def *d = &b->o->defs[b->open[b->n_open - 1]];
    if (d->end > start) break;
    fill(b, with_rest_of_line(b, d->end) > start ? d->end : with_rest_of_line(b, d->end), b->first[b->open[b->n_open - 1]] != LODE__TREE_NONE);
    b->n_open--;
  }
}

static void place(build *b, uint32_t def) {
  const lode__def *d = &b->o->defs[def];
  close_until(b, d->own);
  uint32_t start = d->start > b->at ? d->start : b->at;
  fill(b, start, false);
  if (!is_whole(b, d)) {
    b->open[b->n_open++] = def;
    return;
  }
  uint32_t end = with_rest_of_line(b, d->end);
  if (b->n_open > 0 && end > b->o->defs[b->open[b->n_open - 1]].end) end = d->end; /* not past the brace of its class */
  lay(b, end, def, d->outer);
}

/* ---- What is known at the end ---- */

static void number_parts(build *b) {
  uint32_t *count = b->open; /* no longer needed for what is open; as long as there are definitions */
  memset(count, 0, b->o->n_defs * sizeof *count);
  for (size_t i = 0; i < b->list->n; i++) {
    uint32_t def = b->pieces[i].def;
    b->list->items[i].part = def == LODE__TREE_NONE ? 0 : count[def]++;
  }
  for (size_t i = 0; i < b->list->n; i++)
    b->list->items[i].parts = b->pieces[i].def == LODE__TREE_NONE ? 1 : count[b->pieces[i].def];
}

static void add_line(strbuf *out, lode_str line, size_t max) {
  if (line.len == 0 || out->len + line.len + 1 > max) return;
  if (out->len) strbuf_addch(out, '\n');
  strbuf_add(out, line.data, line.len);
}

static void list_members(build *b, strbuf *room) {
  for (size_t i = 0; i < b->list->n && !b->failed; i++) {
    lode__chunk *c = &b->list->items[i];
    uint32_t def = b->pieces[i].def;
    if (def == LODE__TREE_NONE || c->part != 0 || !is_class(c->kind)) continue;
    room->len = 0;
    for (size_t k = i + 1; k < b->list->n && b->list->items[k].start < b->o->defs[def].end; k++) {
      const lode__chunk *m = &b->list->items[k];
      if (m->parent == i && m->part == 0) add_line(room, m->signature.len ? m->signature : m->name, LODE__CHUNK_SKELETON_BYTES);
      if (room->len + 16 > LODE__CHUNK_SKELETON_BYTES) break;
    }
    if (room->len) c->skeleton = lode__chunk_string(b->list, (lode_str){room->data, room->len}, LODE__CHUNK_SKELETON_BYTES, 0);
    b->failed = room->failed;
  }
}

/* A module's chunk that is mostly one small definition goes by its name. */
static void take_name(build *b, size_t chunk, uint32_t def, strbuf *room) {
  lode__chunk *c = &b->list->items[chunk];
  const lode__def *d = &b->o->defs[def];
  if (b->pieces[chunk].def != LODE__TREE_NONE || d->own < c->start || d->end > c->end || (d->end - d->start) * 2 < c->end - c->start) return;
  lode__chunk named = *c;
  describe(b, def, &named);
  named.doc = doc_of(b, d);
  *c = named;
  room->len = 0;
}

static void list_symbols(build *b, strbuf *room) {
  size_t chunk = 0, n = 0;
  uint32_t only = 0;
  room->len = 0;
  for (size_t i = 0; i <= b->o->n_defs && b->list->n > 0 && !b->failed; i++) {
    bool last = i == b->o->n_defs;
    uint32_t at = last ? UINT32_MAX : b->o->defs[i].own;
    while (chunk < b->list->n && b->list->items[chunk].end <= at) {
      if (n == 1) take_name(b, chunk, only, room);
      if (room->len) b->list->items[chunk].symbols = lode__chunk_string(b->list, (lode_str){room->data, room->len}, LODE__CHUNK_SYMBOLS_BYTES, 0);
      room->len = n = 0;
      chunk++;
    }
    if (last || b->carved[i]) continue;
    lode_str scope, name;
    names_of(&b->o->defs[i], &scope, &name);
    if (name.len == 0 || name.len > LODE__CHUNK_NAME_BYTES || memchr(name.data, '\n', name.len)) continue;
    add_line(room, name, LODE__CHUNK_SYMBOLS_BYTES);
    only = (uint32_t)i;
    n++;
    b->failed = room->failed;
  }
}

lode_status lode__tree_build(const lode__grammar *grammar, const lode__outline *outline, lode_str text,
                             const lode__chunk_options *options, lode__chunk_list *list, lode_error *err) {
  strbuf room = {0};
  build b = {.g = grammar, .o = outline, .text = text, .options = *options, .list = list};
  b.carved = mem_calloc(outline->n_defs + 1, sizeof *b.carved);
  b.first = mem_calloc(outline->n_defs + 1, sizeof *b.first);
  b.open = mem_calloc(outline->n_defs + 1, sizeof *b.open);
  lode__chunk_list_clear(list);
  b.failed = !b.carved || !b.first || !b.open;
  if (!b.failed) {
    memset(b.first, 0xFF, outline->n_defs * sizeof *b.first);
    choose(&b);
    for (uint32_t i = 0; i < outline->n_defs && !b.failed; i++)
      if (b.carved[i]) place(&b, i);
    close_until(&b, UINT32_MAX);
    fill(&b, (uint32_t)text.len, true);
  }
  if (!b.failed) {
    number_parts(&b);
    list_members(&b, &room);
    list_symbols(&b, &room);
  }
  if (!b.failed) lode__chunk_number_lines(list, text);
  bool failed = b.failed || list->failed;
  mem_free(b.carved);
  mem_free(b.first);
  mem_free(b.open);
  mem_free(b.pieces);
  strbuf_release(&room);
  if (failed) lode__chunk_list_clear(list);
  return failed ? err_nomem(err) : LODE_OK;
}
