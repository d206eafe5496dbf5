/* SPDX-License-Identifier: Apache-2.0 */
/* tree_symbols.c - the third pass: every definition of a file, and every name that it uses; see tree.h.
 *
 * Unlike the first pass it visits all nodes, without recursion and no deeper than PARSER_MAX_DEPTH. A frame for each
 * depth holds what the nodes below share. A name is the definition's own, local, part of a call or of an import, or a
 * use. Local names are those of parameters and variables in a function: they hide what is elsewhere, and their types,
 * where the text says them, are what a call through them is qualified by.
 */
#include "parser/tree.h"
#include "parser/tree_docs.h"
#include "parser/tree_refs.h"

#include "chunk/chunk_make.h"

#include <ctype.h>

enum { SYMBOLS_CLAIMS = 12, SYMBOLS_MAX_DEFS = 1 << 17, SYMBOLS_TYPE_LEVELS = 6 };

typedef struct symbols_frame {
  TSNode node;
  TSSymbol symbol;
  TSFieldId field;
  uint32_t def;      /* the innermost definition around it */
  uint32_t function; /* the innermost function around it */
  uint32_t left;     /* named children that were not visited yet */
  size_t locals;     /* how many were bound before it */
  bool scope;        /* local names end with it */
  bool in_scope;     /* it is in such a node */
  bool bases;        /* names in it are bases */
} symbols_frame;

typedef struct symbols_walk {
  const parser_grammar *g;
  lode_str text;
  parser_refs *refs;
  chunk_def *defs;
  size_t n_defs, defs_cap;
  symbols_frame frames[PARSER_MAX_DEPTH + 2];
  uint32_t depth;
  uint32_t claims[SYMBOLS_CLAIMS]; /* offsets of names that are accounted for */
  uint32_t next_claim;
  parser_docs docs;
  bool failed;
} symbols_walk;

static lode_str symbols_text(const symbols_walk *w, TSNode node) {
  uint32_t start = ts_node_start_byte(node), end = ts_node_end_byte(node);
  if (start > end || end > w->text.len) return STR_LIT("");
  return (lode_str){w->text.data + start, end - start};
}

static void symbols_claim(symbols_walk *w, const char *name) {
  w->claims[w->next_claim++ % SYMBOLS_CLAIMS] = (uint32_t)(name - w->text.data) + 1;
}

static bool symbols_is_claimed(const symbols_walk *w, uint32_t at) {
  for (size_t i = 0; i < SYMBOLS_CLAIMS; i++)
    if (w->claims[i] == at + 1) return true;
  return false;
}

static const symbols_frame *symbols_parent(const symbols_walk *w) { return w->depth ? &w->frames[w->depth - 1] : NULL; }

static bool symbols_is_function(lang_kind k) {
  return k == LANG_KIND_FUNCTION || k == LANG_KIND_METHOD || k == LANG_KIND_CONSTRUCTOR;
}

static bool symbols_is_self(lode_str s) {
  return str_eq(s, STR_LIT("self")) || str_eq(s, STR_LIT("this")) || str_eq(s, STR_LIT("cls")) ||
         str_eq(s, STR_LIT("Self")) || str_eq(s, STR_LIT("$this")) || str_eq(s, STR_LIT("static"));
}

/* ---- Definitions ---- */

/* The name of the class that the function at `def` belongs to, or that is at `def`; "" when there is none. */
static lode_str symbols_class_of(const symbols_walk *w, uint32_t def) {
  lode_str scope, last;
  for (; def != CHUNK_NO_DEF; def = w->defs[def].outer) {
    const chunk_def *d = &w->defs[def];
    if (parser_is_class(d->kind)) return d->name;
    if (!d->scope.len) continue;
    parser_split_name(d->scope, &scope, &last);
    return last;
  }
  return STR_LIT("");
}

/* Does the word stand in the signature before the name? */
static bool symbols_says(const chunk_def *d, const char *word) {
  size_t n = strlen(word), len = d->signature.len;
  if (d->name.data > d->signature.data && d->name.data < d->signature.data + len)
    len = (size_t)(d->name.data - d->signature.data);
  for (size_t i = 0; i + n < len && i < 200; i++)
    if (memcmp(d->signature.data + i, word, n) == 0 && (i == 0 || !parser_is_word_char(d->signature.data[i - 1])) &&
        !parser_is_word_char(d->signature.data[i + n]))
      return true;
  return false;
}

static bool symbols_is_c(const symbols_walk *w) {
  return strcmp(w->g->language->grammar, "c") == 0 || strcmp(w->g->language->grammar, "cpp") == 0;
}

/* extern int n; typedef struct a a; */
static bool symbols_is_only_declared(const symbols_walk *w, TSNode node, const chunk_def *d) {
  if (d->kind == LANG_KIND_VARIABLE) return symbols_says(d, "extern");
  if (!parser_is_class(d->kind) || parser_body_start(w->g, node)) return false;
  lode_str text = symbols_text(w, node);
  if (memchr(text.data, '{', text.len) || d->name.data < text.data) return false;
  return memmem(text.data, (size_t)(d->name.data - text.data), d->name.data, d->name.len) != NULL;
}

static bool symbols_is_hidden(const symbols_walk *w, const chunk_def *d) {
  const char *grammar = w->g->language->grammar;
  char first = d->name.data[0];
  if (strcmp(grammar, "c") == 0) return symbols_says(d, "static");
  if (strcmp(grammar, "go") == 0) return !isupper((unsigned char)first);
  if (strcmp(grammar, "rust") == 0) return !symbols_says(d, "pub");
  if (strcmp(grammar, "cpp") == 0 && d->outer == CHUNK_NO_DEF && !d->scope.len && symbols_says(d, "static"))
    return true;
  return symbols_says(d, "private") || first == '_' || first == '#';
}

static lode_str symbols_join(symbols_walk *w, lode_str a, lode_str b, lode_str c) {
  size_t n = a.len + b.len + c.len;
  char *text = mem_arena_alloc(&w->refs->strings, n + 1);
  if (!text) {
    w->failed = true;
    return STR_LIT("");
  }
  memcpy(text, a.data, a.len);
  memcpy(text + a.len, b.data, b.len);
  memcpy(text + a.len + b.len, c.data, c.len);
  text[n] = '\0';
  return (lode_str){text, n};
}

/* The type of what the text computes: a name, "=f" for what f returns, or "". */
static lode_str symbols_value_type(symbols_walk *w, lode_str text) {
  if (text.len > 2000) return STR_LIT("");
  lode_str type = parser_value_type(text), f = parser_called_name(text);
  if (type.len && type.len < 100) return type;
  return f.len && f.len < 100 ? symbols_join(w, STR_LIT("="), f, STR_LIT("")) : STR_LIT("");
}

/* The name of a type as it is written. Of several results the first counts, which may have a name. */
static lode_str symbols_written_type(lode_str text) {
  if (text.len && text.data[0] == '(') {
    const char *comma = memchr(text.data, ',', text.len);
    text = (lode_str){text.data + 1, comma ? (size_t)(comma - text.data - 1) : text.len - 1};
    const char *space = text.len ? memchr(text.data, ' ', text.len) : NULL;
    if (space) text = (lode_str){space + 1, text.len - (size_t)(space + 1 - text.data)};
  }
  lode_str name = parser_type_name(text);
  return name.len < 100 ? name : STR_LIT("");
}

/* What a node says about the type of the name in it; `result`: of a function's result. */
static lode_str symbols_declared_type(symbols_walk *w, TSNode node, bool result) {
  const parser_grammar *g = w->g;
  lode_str name = STR_LIT("");
  TSNode value = {0};
  for (const TSFieldId *field = result ? g->results : g->types; *field && !name.len; field++) {
    TSNode type = ts_node_child_by_field_id(node, *field);
    if (!ts_node_is_null(type)) name = symbols_written_type(symbols_text(w, type));
  }
  if (!name.len && g->types_by_node) {
    TSNode type = parser_node_at(node, STR_LIT("user_type"));
    if (!ts_node_is_null(type)) name = symbols_written_type(symbols_text(w, type));
  }
  if (name.len || result) return name;
  for (const TSFieldId *field = g->values; *field && ts_node_is_null(value); field++)
    value = ts_node_child_by_field_id(node, *field);
  if (ts_node_is_null(value) && g->types_by_node) value = parser_node_at(node, STR_LIT("call_expression"));
  if (ts_node_is_null(value) && g->types_by_node) value = parser_node_at(node, STR_LIT("object_creation_expression"));
  return ts_node_is_null(value) ? STR_LIT("") : symbols_value_type(w, symbols_text(w, value));
}

static lang_kind symbols_kind_of(const symbols_walk *w, const chunk_def *d) {
  bool member = d->outer != CHUNK_NO_DEF && parser_is_class(w->defs[d->outer].kind);
  if (d->kind != LANG_KIND_FUNCTION || (!member && !d->scope.len)) return d->kind;
  if (str_eq(d->name, symbols_class_of(w, d->outer)) || str_eq(d->name, d->scope)) return LANG_KIND_CONSTRUCTOR;
  return member || d->scope.len ? LANG_KIND_METHOD : LANG_KIND_FUNCTION;
}

static uint32_t symbols_add_def(symbols_walk *w, chunk_def *d) {
  if (!d->name.len || d->name.len > CHUNK_MAX_NAME || w->n_defs >= SYMBOLS_MAX_DEFS) return CHUNK_NO_DEF;
  if (!mem_grow(&w->defs, &w->defs_cap, w->n_defs + 1, sizeof *w->defs)) {
    w->failed = true;
    return CHUNK_NO_DEF;
  }
  d->hidden = symbols_is_hidden(w, d);
  w->defs[w->n_defs++] = *d;
  return (uint32_t)w->n_defs - 1;
}

/* In a function, a variable is local, and a prototype or a type's mention no definition. */
static bool symbols_is_local(const symbols_frame *f, const lang_rule *rule) {
  return f->function != CHUNK_NO_DEF && rule->role == LANG_ROLE_MINOR;
}

/* The name without what the grammar leaves at it. A macro before a type of C, which is taken for the type, leaves the
 * type in the name. */
static lode_str symbols_trim_name(const symbols_walk *w, lode_str name) {
  while (name.len > 1 && strcmp(w->g->language->grammar, "make") == 0 && strchr("?+!:", name.data[name.len - 1]))
    name.len--; /* of an assignment */
  if (!symbols_is_c(w) || (name.len > 8 && memcmp(name.data, "operator", 8) == 0)) return name;
  for (size_t i = name.len; i-- > 0;)
    if (name.data[i] == ' ') return (lode_str){name.data + i + 1, name.len - i - 1};
  return name;
}

/* Adds the definition; the number of it, or that of the one around it. */
static uint32_t symbols_define(symbols_walk *w, TSNode node, const lang_rule *rule, const symbols_frame *f) {
  parser_def p = {.node = node, .rule = rule, .end = ts_node_end_byte(node)};
  TSNode name = parser_name_node(rule, node, false), scope = parser_name_node(rule, node, true);
  p.name = ts_node_is_null(name) ? STR_LIT("") : parser_behind_macro(w->text, symbols_text(w, name));
  p.scope = ts_node_is_null(scope) ? STR_LIT("") : symbols_text(w, scope);
  chunk_def d = {.kind = rule->kind, .outer = f->def, .line = ts_node_start_point(node).row + 1};
  d.end_line = ts_node_end_point(node).row + (ts_node_end_point(node).column > 0);
  if (d.end_line < d.line) d.end_line = d.line;
  parser_names_of(&p, &d.scope, &d.name);
  d.name = symbols_trim_name(w, d.name);
  if (!d.name.len || memchr(d.name.data, '\n', d.name.len)) return f->def;
  /* typedef struct a {..} a: one definition */
  const chunk_def *around = f->def == CHUNK_NO_DEF ? NULL : &w->defs[f->def];
  if (around && around->line == d.line && str_eq(around->name, d.name) && parser_is_class(d.kind)) return f->def;
  bool abstract =
      f->def != CHUNK_NO_DEF && w->defs[f->def].kind == LANG_KIND_INTERFACE && !parser_body_start(w->g, node);
  d.declared = symbols_is_function(rule->kind) && (rule->role == LANG_ROLE_MINOR || abstract);
  d.signature = parser_signature(w->g, w->text, &p);
  if (symbols_is_c(w)) d.declared = d.declared || symbols_is_only_declared(w, node, &d);
  /* in a broken tree, a name from further on */
  if (symbols_is_function(rule->kind) && d.name.data > d.signature.data + d.signature.len) return f->def;
  d.brief = parser_docs_brief(&w->docs, w->g, node);
  d.type = parser_is_class(d.kind) ? STR_LIT("") : symbols_declared_type(w, node, symbols_is_function(d.kind));
  if (d.declared && d.name.data > d.signature.data + 1 && d.name.data[-1] == '*' && d.name.data[-2] == '(') {
    d.kind = LANG_KIND_VARIABLE; /* int (*f)(void): a pointer to a function */
    d.declared = false;
  }
  d.kind = symbols_kind_of(w, &d);
  if (d.name.data >= w->text.data && d.name.data < w->text.data + w->text.len) symbols_claim(w, d.name.data);
  uint32_t index = symbols_add_def(w, &d);
  return index == CHUNK_NO_DEF ? f->def : index;
}

/* A field of a struct, a value of an enum, a method of an interface. */
static void symbols_define_member(symbols_walk *w, TSNode node, const symbols_frame *f, bool value) {
  const parser_path *path = parser_path_of(w->g->members, w->g->n_members, f->symbol);
  TSNode name = path ? parser_node_at(node, path->name) : (TSNode){0};
  if (ts_node_is_null(name) || f->function != CHUNK_NO_DEF || f->def == CHUNK_NO_DEF) return;
  chunk_def d = {.kind = value ? LANG_KIND_CONSTANT : LANG_KIND_PROPERTY, .outer = f->def};
  d.name = symbols_text(w, name);
  lode_str all = symbols_text(w, node);
  const char *paren = all.len ? memchr(d.name.data, '(', (size_t)(all.data + all.len - d.name.data)) : NULL;
  if (!value && paren == d.name.data + d.name.len) { /* a method that is only declared here */
    d.kind = LANG_KIND_METHOD;
    d.declared = true;
  }
  d.line = ts_node_start_point(node).row + 1;
  d.end_line = ts_node_end_point(node).row + 1;
  d.type = symbols_declared_type(w, node, d.kind == LANG_KIND_METHOD);
  const char *line_end = all.len ? memchr(all.data, '\n', all.len) : NULL;
  d.signature = line_end ? (lode_str){all.data, (size_t)(line_end - all.data)} : all;
  while (d.signature.len > d.name.len && strchr("{ \t\r", d.signature.data[d.signature.len - 1])) d.signature.len--;
  symbols_claim(w, d.name.data);
  (void)symbols_add_def(w, &d);
}

/* self.x = value: a field of the class around the method. */
static void symbols_define_field(symbols_walk *w, TSNode node, const symbols_frame *f) {
  TSNode left = parser_node_at(node, STR_LIT("left"));
  if (ts_node_is_null(left) || f->function == CHUNK_NO_DEF) return;
  lode_str text = symbols_text(w, left), owner, name;
  bool ruby = text.len > 1 && text.data[0] == '@';
  if (ruby) owner = STR_LIT("self"), name = (lode_str){text.data + 1, text.len - 1};
  if (text.len > 100 || (!ruby && !parser_split_callee(text, &owner, &name)) || !symbols_is_self(owner)) return;
  uint32_t outer = w->defs[f->function].outer;
  if (outer == CHUNK_NO_DEF || !parser_is_class(w->defs[outer].kind)) return;
  for (size_t i = w->n_defs; i > outer && i + 64 > w->n_defs; i--) /* most often the constructor sets it first */
    if (w->defs[i - 1].kind == LANG_KIND_PROPERTY && w->defs[i - 1].outer == outer && str_eq(w->defs[i - 1].name, name))
      return;
  chunk_def d = {.kind = LANG_KIND_PROPERTY, .outer = outer, .name = name, .scope = STR_LIT(""), .brief = STR_LIT("")};
  d.line = d.end_line = ts_node_start_point(left).row + 1;
  d.signature = text;
  d.type = symbols_declared_type(w, node, false);
  if (d.type.len && parser_find_local(w->refs, d.type)) d.type = STR_LIT("");
  TSNode right = parser_node_at(node, STR_LIT("right"));
  const parser_local *given = ts_node_is_null(right) ? NULL : parser_find_local(w->refs, symbols_text(w, right));
  if (given) d.type = given->type; /* self.x = x, a parameter of known type */
  symbols_claim(w, name.data);
  (void)symbols_add_def(w, &d);
}

/* ---- Local names ---- */

/* What the declaration around a name says about its type. */
static lode_str symbols_bound_type(symbols_walk *w) {
  for (uint32_t up = 1; up <= SYMBOLS_TYPE_LEVELS && up <= w->depth; up++) {
    const symbols_frame *f = &w->frames[w->depth - up];
    if (f->scope) break;
    lode_str type = symbols_declared_type(w, f->node, false);
    if (type.len) return type;
  }
  return STR_LIT("");
}

/* Is the name at the current frame local, by the place where it stands? Of a list of names, the list's place counts. */
static bool symbols_binds(const symbols_walk *w, TSFieldId field) {
  const symbols_frame *p = symbols_parent(w), *q = w->depth > 1 ? &w->frames[w->depth - 2] : NULL;
  const parser_grammar *g = w->g;
  if (!p || !p->in_scope) return false;
  if (g->traits[p->symbol] & PARSER_BINDS && parser_in_places(g->binds, g->n_binds, p->symbol, field)) return true;
  bool list = g->traits[p->symbol] & (PARSER_LIST | PARSER_VARIABLE);
  return list && q && g->traits[q->symbol] & PARSER_BINDS &&
         parser_in_places(g->binds, g->n_binds, q->symbol, p->field);
}

/* ---- Qualifiers ---- */

/* What comes before a name, as chunk_ref says. */
static lode_str symbols_qualifier(symbols_walk *w, lode_str owner, uint32_t def) {
  lode_str first = owner, rest = STR_LIT("");
  const parser_local *local;
  if (!owner.len) return STR_LIT("");
  if (owner.data[owner.len - 1] == ')' || owner.data[owner.len - 1] == '?') {
    lode_str type = symbols_value_type(w, owner);
    return type.len ? symbols_join(w, STR_LIT(":"), type, STR_LIT("")) : STR_LIT("?");
  }
  if (owner.len > CHUNK_MAX_QUALIFIER - 8) return STR_LIT("?");
  for (size_t i = 0; i < owner.len; i++)
    if (!parser_is_word_char(owner.data[i]) && !strchr(".:->?\\@", owner.data[i])) return STR_LIT("?");
  size_t n = 0;
  if (owner.data[0] == '@') { /* a field of Ruby */
    rest = (lode_str){owner.data + 1, owner.len - 1};
    return symbols_join(w, STR_LIT(":"), symbols_class_of(w, def), symbols_join(w, STR_LIT("."), rest, STR_LIT("")));
  }
  while (n < owner.len && parser_is_word_char(owner.data[n])) n++;
  first.len = n;
  while (n < owner.len && !parser_is_word_char(owner.data[n])) n++;
  rest = (lode_str){owner.data + n, owner.len - n};
  bool deep = rest.len && (memchr(rest.data, '.', rest.len) || memchr(rest.data, '>', rest.len));
  lode_str type = STR_LIT("");
  if (symbols_is_self(first)) {
    type = symbols_class_of(w, def);
    if (!type.len && !rest.len) return STR_LIT("this"); /* in a method of an object without a name */
  } else if (str_eq(first, STR_LIT("super")) || str_eq(first, STR_LIT("base")) || str_eq(first, STR_LIT("parent"))) {
    type = symbols_join(w, STR_LIT("^"), symbols_class_of(w, def), STR_LIT(""));
  } else if ((local = parser_find_local(w->refs, first)) != NULL) {
    type = local->type;
  } else {
    return symbols_join(w, owner, STR_LIT(""), STR_LIT(""));
  }
  if (!type.len || deep) return STR_LIT("?");
  if (!rest.len) return symbols_join(w, STR_LIT(":"), type, STR_LIT(""));
  return symbols_join(w, STR_LIT(":"), type, symbols_join(w, STR_LIT("."), rest, STR_LIT("")));
}

/* ---- Uses ---- */

static void symbols_use(symbols_walk *w, chunk_use use, lode_str name, lode_str qualifier, uint32_t line) {
  chunk_ref_group g = {.use = use, .name = name, .qualifier = qualifier, .local = STR_LIT("")};
  parser_refs_add(w->refs, &g, line);
}

/* const {a, b: c} = require('./x'): what is taken out of the module, and its names here. */
static void symbols_require_parts(symbols_walk *w, lode_str pattern, lode_str module, uint32_t line) {
  size_t at = 1;
  while (at < pattern.len && pattern.data[0] == '{') {
    lode_str words[2] = {STR_LIT(""), STR_LIT("")};
    for (size_t n = 0; at < pattern.len && !strchr(",}", pattern.data[at]); at++) {
      if (pattern.data[at] == '=') n = 2; /* a default value */
      if (n < 2 && pattern.data[at] == ':') n++;
      if (n >= 2 || !parser_is_word_char(pattern.data[at])) continue;
      if (!words[n].len) words[n].data = pattern.data + at;
      words[n].len = (size_t)(pattern.data + at + 1 - words[n].data);
    }
    at++;
    chunk_ref_group g = {.use = CHUNK_USE_IMPORT, .name = words[0], .qualifier = module};
    g.local = words[1].len ? words[1] : words[0];
    if (g.name.len) parser_refs_add(w->refs, &g, line);
  }
}

/* The module between quotes in the arguments of require('./x'). */
static lode_str symbols_required(const symbols_walk *w, TSNode node) {
  lode_str text = symbols_text(w, node);
  const char *open = text.len && text.len <= 300 ? memchr(text.data, '\'', text.len) : NULL;
  if (!open && text.len && text.len <= 300) open = memchr(text.data, '"', text.len);
  const char *end = open ? memchr(open + 1, *open, (size_t)(text.data + text.len - open - 1)) : NULL;
  return end ? (lode_str){open + 1, (size_t)(end - open - 1)} : STR_LIT("");
}

/* require('./x'), require('./x').f, import('./x'), require_relative 'x': the module, as it is written, what of it, and
 * the name here. */
static bool symbols_is_require(symbols_walk *w, lode_str name, TSNode node, uint32_t line) {
  static const char *const words[] = {"require", "require_relative", "import"};
  bool is = false;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) is = is || str_eq(name, str_of(words[i]));
  chunk_ref_group g = {.use = CHUNK_USE_IMPORT, .name = STR_LIT(""), .local = STR_LIT("")};
  if (is) g.qualifier = symbols_required(w, node);
  if (!is || !g.qualifier.len) return false;
  const symbols_frame *p = symbols_parent(w);
  TSNode member = p ? parser_node_at(p->node, STR_LIT("property")) : (TSNode){0}, bound = {0};
  if (!ts_node_is_null(member)) g.name = symbols_text(w, member);
  if (!ts_node_is_null(member)) p = w->depth > 1 ? &w->frames[w->depth - 2] : NULL;
  if (p) bound = parser_node_at(p->node, STR_LIT("name"));
  if (!ts_node_is_null(bound)) g.local = symbols_text(w, bound);
  if (str_eq(name, STR_LIT("require_relative"))) g.qualifier = symbols_join(w, STR_LIT("./"), g.qualifier, STR_LIT(""));
  if (g.local.len && g.local.data[0] == '{') symbols_require_parts(w, g.local, g.qualifier, line);
  for (size_t i = 0; i < g.local.len; i++)
    if (!parser_is_word_char(g.local.data[i])) g.local.len = 0;
  parser_refs_add(w->refs, &g, line);
  return true;
}

static void symbols_call(symbols_walk *w, TSNode node, const symbols_frame *f) {
  const parser_path *path = parser_path_of(w->g->calls, w->g->n_calls, f->symbol);
  TSNode callee = path ? parser_node_at(node, path->name) : (TSNode){0};
  lode_str owner = STR_LIT(""), name;
  if (ts_node_is_null(callee)) return;
  lode_str text = symbols_text(w, callee);
  if (text.len > 4096) return;
  if (path->owner.data) {
    TSNode of = parser_node_at(node, path->owner);
    name = text;
    if (!ts_node_is_null(of)) owner = symbols_text(w, of);
  } else if (!parser_split_callee(text, &owner, &name)) {
    return;
  }
  if (!name.len || !parser_is_word_char(name.data[0])) return;
  uint32_t line = ts_node_end_point(callee).row + 1;
  if (symbols_is_require(w, name, node, line)) return;
  symbols_claim(w, name.data);
  /* a parameter or a variable that holds a function */
  if (!owner.len && parser_find_local(w->refs, name)) return;
  symbols_use(w, CHUNK_USE_CALL, name, symbols_qualifier(w, owner, f->def), line);
}

/* In the arguments of a macro there are tokens only: NAME( is a call. */
static void symbols_token(symbols_walk *w, lode_str name, const symbols_frame *f, uint32_t line) {
  const char *end = w->text.data + w->text.len, *p = name.data + name.len;
  bool called = p < end && *p == '(';
  const char *start = name.data;
  while (start > w->text.data && name.data - start < 100 &&
         (parser_is_word_char(start[-1]) || start[-1] == '.' || start[-1] == ':'))
    start--;
  lode_str owner = STR_LIT(""), last;
  if (!parser_split_callee((lode_str){start, (size_t)(p - start)}, &owner, &last)) return;
  if (!owner.len && parser_find_local(w->refs, name)) return;
  symbols_use(w, called ? CHUNK_USE_CALL : CHUNK_USE_VALUE, name, symbols_qualifier(w, owner, f->def), line);
}

/* A member that is not called: its owner ends before the dot. */
static lode_str symbols_owner_before(const symbols_walk *w, lode_str name) {
  const char *end = name.data;
  while (end > w->text.data && strchr(".>-:?", end[-1])) end--;
  const char *start = end;
  while (start > w->text.data && end - start < 100 && (parser_is_word_char(start[-1]) || start[-1] == '.')) start--;
  return end == name.data ? STR_LIT("") : (lode_str){start, (size_t)(end - start)};
}

static void symbols_name(symbols_walk *w, TSNode node, const symbols_frame *f) {
  const symbols_frame *p = symbols_parent(w);
  uint16_t traits = w->g->traits[f->symbol], around = p ? w->g->traits[p->symbol] : 0;
  uint32_t at = ts_node_start_byte(node), line = ts_node_start_point(node).row + 1;
  lode_str name = symbols_text(w, node);
  if (!name.len || symbols_is_claimed(w, at)) return;
  if (!(traits & PARSER_TYPE_NAME) && symbols_binds(w, f->field)) {
    parser_bind_local(w->refs, name, symbols_bound_type(w));
    return;
  }
  if (around & PARSER_VARIABLE || symbols_is_self(name)) return;
  if (around & PARSER_TOKENS) {
    symbols_token(w, name, f, line);
    return;
  }
  if (f->bases) {
    symbols_use(w, CHUNK_USE_BASE, name, STR_LIT(""), line);
    return;
  }
  lode_str owner = symbols_owner_before(w, name);
  if (!owner.len && !(traits & (PARSER_FIELD_NAME | PARSER_TYPE_NAME)) && parser_find_local(w->refs, name)) return;
  chunk_use use = traits & PARSER_TYPE_NAME                      ? CHUNK_USE_TYPE
                  : traits & PARSER_FIELD_NAME || owner.len != 0 ? CHUNK_USE_MEMBER
                                                                 : CHUNK_USE_VALUE;
  symbols_use(w, use, name, symbols_qualifier(w, owner, f->def), line);
}

/* ---- The walk ---- */

/* Braces that only one branch of an #if has leave the grammar inside a function until the end of the file. C has no
 * functions in functions: what begins in the first column there is outermost, and the one before it has ended. */
static void symbols_leave_function(symbols_walk *w, TSNode node, symbols_frame *f, const lang_rule *rule) {
  bool c = strcmp(w->g->language->grammar, "c") == 0 || strcmp(w->g->language->grammar, "cpp") == 0;
  TSPoint at = ts_node_start_point(node);
  if (!c || f->function == CHUNK_NO_DEF || at.column > 0 || rule->role == LANG_ROLE_WRAPPER) return;
  if (rule->kind != LANG_KIND_FUNCTION && !parser_is_class(rule->kind)) return;
  if (w->defs[f->function].end_line > at.row && w->defs[f->function].line <= at.row)
    w->defs[f->function].end_line = at.row;
  f->def = f->function = CHUNK_NO_DEF;
}

/* There, the head of a function may pass for a declaration: its body follows. */
static void symbols_take_body(symbols_walk *w, TSNode node, chunk_def *d) {
  uint32_t p = ts_node_end_byte(node), line = ts_node_end_point(node).row + 1, limit = p + (1u << 18);
  if (limit > w->text.len) limit = (uint32_t)w->text.len;
  while (p < limit && isspace((unsigned char)w->text.data[p])) line += w->text.data[p++] == '\n';
  if (p >= limit || w->text.data[p] != '{') return;
  d->declared = false;
  for (; p + 1 < limit; p++) {
    if (w->text.data[p] != '\n') continue;
    line++;
    if (w->text.data[p + 1] != '}') continue;
    d->end_line = line;
    return;
  }
}

static void symbols_visit_inner(symbols_walk *w, TSNode node, symbols_frame *f, const lang_rule *rule) {
  uint16_t traits = w->g->traits[f->symbol];
  bool was_inside = f->function != CHUNK_NO_DEF;
  if (rule) symbols_leave_function(w, node, f, rule);
  if (rule && rule->role == LANG_ROLE_WRAPPER) {
    parser_docs_wrapper(&w->docs, node);
  } else if (rule && !symbols_is_local(f, rule)) {
    f->def = symbols_define(w, node, rule, f);
    if (f->def != CHUNK_NO_DEF && symbols_is_function(w->defs[f->def].kind)) f->function = f->def;
    if (f->def != CHUNK_NO_DEF && w->defs[f->def].declared && was_inside) symbols_take_body(w, node, &w->defs[f->def]);
  } else if (traits & (PARSER_MEMBER | PARSER_VALUE)) {
    symbols_define_member(w, node, f, traits & PARSER_VALUE);
  }
  if (traits & PARSER_ASSIGN) symbols_define_field(w, node, f);
  if (traits & PARSER_CALL) symbols_call(w, node, f);
  if (traits & PARSER_BRANCH && f->def != CHUNK_NO_DEF) w->defs[f->def].branches++;
  f->scope = traits & PARSER_SCOPE || (rule && symbols_is_function(rule->kind) && rule->role != LANG_ROLE_MINOR);
  f->in_scope = f->in_scope || f->scope;
}

/* The field of the current node; asked for only where something depends on it. */
static TSFieldId symbols_field(const symbols_walk *w, const TSTreeCursor *cursor) {
  const symbols_frame *p = symbols_parent(w);
  bool matters = p && w->g->traits[p->symbol] & (PARSER_BINDS | PARSER_BASES);
  return matters ? ts_tree_cursor_current_field_id(cursor) : 0;
}

/* Visits one named node; true: visit its children too. */
static bool symbols_visit(symbols_walk *w, TSNode node, const TSTreeCursor *cursor) {
  const symbols_frame *p = symbols_parent(w);
  symbols_frame *f = &w->frames[w->depth];
  TSFieldId field = symbols_field(w, cursor);
  *f = (symbols_frame){.node = node,
                       .symbol = ts_node_symbol(node),
                       .field = field,
                       .def = p ? p->def : CHUNK_NO_DEF,
                       .function = p ? p->function : CHUNK_NO_DEF,
                       .locals = w->refs->n_locals,
                       .in_scope = p && p->in_scope,
                       .bases = p && p->bases};
  if (f->symbol >= w->g->symbols || ts_node_end_byte(node) > w->text.len) return false;
  uint16_t traits = w->g->traits[f->symbol];
  if (w->g->comment[f->symbol]) {
    parser_docs_comment(&w->docs, node);
    return false;
  }
  if (traits & PARSER_IMPORT) {
    parser_add_imports(w->refs, w->g->uses->import, symbols_text(w, node), ts_node_start_point(node).row + 1);
    return false;
  }
  bool by_field =
      p && w->g->traits[p->symbol] & PARSER_BASES && parser_in_places(w->g->bases, w->g->n_bases, p->symbol, field);
  bool by_node = traits & PARSER_BASES;
  for (size_t i = 0; by_node && i < w->g->n_bases; i++) by_node = w->g->bases[i].node != f->symbol;
  /* of a field of Go, the type is a base only where the field has no name */
  if (by_field && strcmp(w->g->language->grammar, "go") == 0)
    by_field = ts_node_is_null(parser_node_at(p->node, STR_LIT("name")));
  f->bases = f->bases || by_field || by_node;
  if (traits & (PARSER_NAME | PARSER_TYPE_NAME | PARSER_FIELD_NAME) && ts_node_child_count(node) == 0) {
    symbols_name(w, node, f);
    return false;
  }
  symbols_visit_inner(w, node, f, parser_grammar_rule(w->g, node, f->symbol, w->text.data));
  f->left = ts_node_named_child_count(node);
  return w->depth < PARSER_MAX_DEPTH && f->left;
}

/* export {a} from './m' is an import too. */
static void symbols_reexport(symbols_walk *w, TSNode node) {
  if (!w->g->uses || w->g->uses->import != LANG_IMPORT_JS || strcmp(ts_node_type(node), "export_statement") != 0 ||
      ts_node_is_null(parser_node_at(node, STR_LIT("source"))))
    return;
  parser_add_imports(w->refs, LANG_IMPORT_JS, symbols_text(w, node), ts_node_start_point(node).row + 1);
}

/* Goes on to the next node that may have something to say; false at the end. Steps from child to child are what the
 * pass costs most: a node is left when its last named child was visited, whatever stands behind it. */
static bool symbols_go_on(symbols_walk *w, TSTreeCursor *cursor, uint32_t *left) {
  for (;;) {
    if (w->depth ? w->frames[w->depth - 1].left : *left)
      if (ts_tree_cursor_goto_next_sibling(cursor)) return true;
    if (w->depth == 0 || !ts_tree_cursor_goto_parent(cursor)) return false;
    w->depth--;
    if (w->frames[w->depth].scope) parser_forget_locals(w->refs, w->frames[w->depth].locals);
  }
}

static void symbols_walk_tree(symbols_walk *w, TSTree *tree) {
  TSNode root = ts_tree_root_node(tree);
  TSTreeCursor cursor = ts_tree_cursor_new(root);
  uint32_t left = ts_node_named_child_count(root); /* of the root */
  bool going = ts_tree_cursor_goto_first_child(&cursor);
  while (going && !w->failed && !w->refs->failed) {
    TSNode node = ts_tree_cursor_current_node(&cursor);
    if (ts_node_is_named(node)) {
      uint32_t *of_parent = w->depth ? &w->frames[w->depth - 1].left : &left;
      *of_parent -= *of_parent > 0;
      if (w->depth == 0) symbols_reexport(w, node);
      if (symbols_visit(w, node, &cursor) && ts_tree_cursor_goto_first_child(&cursor)) {
        w->depth++;
        continue;
      }
      if (w->frames[w->depth].scope) parser_forget_locals(w->refs, w->frames[w->depth].locals);
    }
    going = symbols_go_on(w, &cursor, &left);
  }
  ts_tree_cursor_delete(&cursor);
}

lode_status parser_make_symbols(const parser_grammar *grammar, TSTree *tree, lode_str text, parser_refs *refs,
                                strbuf *out, lode_error *err) {
  symbols_walk *w = mem_calloc(1, sizeof *w);
  if (!w) return err_nomem(err);
  w->g = grammar;
  w->text = w->docs.text = text;
  w->refs = refs;
  parser_refs_clear(refs);
  chunk_list_clear(&w->docs.clean);
  symbols_walk_tree(w, tree);
  for (size_t i = 0; i < w->n_defs; i++) chunk_symbols_put_def(out, &w->defs[i]);
  parser_refs_encode(refs, out);
  bool failed = w->failed || refs->failed || w->docs.clean.failed || out->failed;
  mem_free(w->defs);
  chunk_list_release(&w->docs.clean);
  mem_free(w);
  return failed ? err_nomem(err) : LODE_OK;
}
