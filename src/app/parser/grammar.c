/* SPDX-License-Identifier: Apache-2.0 */
/* grammar.c - loading grammars, and evaluating the rules of lang_table on nodes; see grammar.h.
 *
 * Paths and conditions are parsed each time they are used: they are short, and few nodes are definitions.
 */
#include "parser/grammar.h"

#include "platform/library.h"

static parser_grammar *grammar_cache; /* one per language, loaded on first use */

/* ---- Words of the table ---- */

static bool grammar_next_word(const char **list, const char *separators, lode_str *word) {
  const char *p = *list;
  while (*p && strchr(separators, *p)) p++;
  size_t n = strcspn(p, separators);
  *word = (lode_str){p, n};
  *list = p + n;
  return n > 0;
}

static bool grammar_in_list(lode_str list, lode_str word) {
  for (size_t at = 0; at <= list.len;) {
    const char *bar = memchr(list.data + at, '|', list.len - at);
    size_t n = bar ? (size_t)(bar - list.data) - at : list.len - at;
    if (str_eq((lode_str){list.data + at, n}, word)) return true;
    at += n + 1;
  }
  return false;
}

static TSSymbol grammar_symbol_of(const TSLanguage *ts, lode_str name) {
  return ts_language_symbol_for_name(ts, name.data, (uint32_t)name.len, true);
}

/* A word of the tables, as the grammar knows it. Looking one up compares it with all names of the grammar, and every
 * definition asks for the same few: they are remembered by where the word stands, which is always in a table. */
typedef struct grammar_word {
  const TSLanguage *ts;
  lode_str word;
  TSFieldId field; /* 0: none of that name */
  TSSymbol symbol; /* likewise */
} grammar_word;

static grammar_word grammar_word_of(TSNode node, lode_str word) {
  static grammar_word cache[256];
  const TSLanguage *ts = ts_node_language(node);
  grammar_word *w = &cache[((uintptr_t)word.data ^ (uintptr_t)ts >> 6) % (sizeof cache / sizeof *cache)];
  if (w->ts == ts && w->word.data == word.data && w->word.len == word.len) return *w;
  *w = (grammar_word){.ts = ts,
                      .word = word,
                      .field = ts_language_field_id_for_name(ts, word.data, (uint32_t)word.len),
                      .symbol = grammar_symbol_of(ts, word)};
  return *w;
}

static TSNode grammar_child_by_field(TSNode node, lode_str name) {
  TSFieldId field = grammar_word_of(node, name).field;
  return field ? ts_node_child_by_field_id(node, field) : (TSNode){0};
}

/* The field of that name, else the first named child of that type. */
static TSNode grammar_child_named(TSNode node, lode_str name) {
  grammar_word w = grammar_word_of(node, name);
  TSNode none = {0}, child = w.field ? ts_node_child_by_field_id(node, w.field) : none;
  if (!ts_node_is_null(child)) return child;
  uint32_t n = w.symbol ? ts_node_named_child_count(node) : 0;
  if (n > 64) n = 64; /* a name is near the start */
  for (uint32_t i = 0; i < n; i++) {
    child = ts_node_named_child(node, i);
    if (ts_node_symbol(child) == w.symbol) return child;
  }
  return none;
}

/* ---- Loading ---- */

static lode_status grammar_bind_rules(parser_grammar *g, lode_error *err) {
  const lang_info *l = g->language;
  const char *comments = l->comment ? l->comment : "comment", *bodies = l->body ? l->body : "body";
  lode_str word;
  g->symbols = ts_language_symbol_count(g->ts);
  g->first_rule = mem_calloc(g->symbols, sizeof *g->first_rule);
  g->comment = mem_calloc(g->symbols, sizeof *g->comment);
  g->body = mem_calloc(g->symbols, sizeof *g->body);
  if (!g->first_rule || !g->comment || !g->body) return err_nomem(err);
  for (size_t i = 0; l->rules && l->rules[i].node && i < 250; i++) {
    TSSymbol s = grammar_symbol_of(g->ts, str_of(l->rules[i].node));
    if (s && s < g->symbols && !g->first_rule[s]) g->first_rule[s] = (uint8_t)(i + 1);
  }
  while (grammar_next_word(&comments, " ", &word)) {
    TSSymbol s = grammar_symbol_of(g->ts, word);
    if (s && s < g->symbols) g->comment[s] = true;
  }
  while (grammar_next_word(&bodies, " ", &word) && g->n_bodies < PARSER_MAX_BODIES) {
    TSSymbol s = grammar_symbol_of(g->ts, word);
    if (s && s < g->symbols) g->body[s] = true;
    g->bodies[g->n_bodies++] = word;
  }
  return LODE_OK;
}

static lode_status grammar_load_library(const char *folder, parser_grammar *g, lode_error *err) {
  char path[4200], symbol[100];
  const char *name = g->language->grammar;
  union {
    void *object;
    const TSLanguage *(*function)(void);
  } entry;
  snprintf(path, sizeof path, "%.4000s/%.80s.so", folder, name);
  snprintf(symbol, sizeof symbol, "tree_sitter_%.80s", name);
  void *so = os_library_open(path);
  if (!so) return err_set(err, LODE_NOT_FOUND, "the grammar %s.so cannot be loaded", name);
  entry.object = os_library_symbol(so, symbol);
  const TSLanguage *ts = entry.object ? entry.function() : NULL;
  if (!ts) return err_set(err, LODE_INVALID, "%s.so has no %s", name, symbol);
  uint32_t abi = ts_language_abi_version(ts);
  if (abi < TREE_SITTER_MIN_COMPATIBLE_LANGUAGE_VERSION || abi > TREE_SITTER_LANGUAGE_VERSION)
    return err_set(err, LODE_TOO_NEW, "%s.so is of version %u", name, abi);
  g->ts = ts;
  lode_status st = grammar_bind_rules(g, err);
  if (st == LODE_OK) st = parser_grammar_bind_uses(g, err);
  if (st != LODE_OK) g->ts = NULL;
  return st;
}

lode_status parser_grammar_load(const char *folder, const lang_info *language, const parser_grammar **grammar,
                                lode_error *err) {
  *grammar = NULL;
  if (!language->grammar) return err_set(err, LODE_NOT_FOUND, "the language has no grammar");
  if (!grammar_cache) grammar_cache = mem_calloc(lang_count, sizeof *grammar_cache);
  if (!grammar_cache) return err_nomem(err);
  parser_grammar *g = &grammar_cache[lang_id(language)];
  if (!g->ts) {
    g->language = language;
    g->n_bodies = 0;
    TRY(grammar_load_library(folder, g, err));
  }
  *grammar = g;
  return LODE_OK;
}

/* ---- Evaluating rules ---- */

/* "field*=a|b": following that field repeatedly, is one of the nodes of such a type? */
static bool grammar_chain_has(lode_str field, lode_str types, TSNode node) {
  for (int i = 0; i < 32; i++) {
    node = grammar_child_by_field(node, field);
    if (ts_node_is_null(node)) return false;
    if (grammar_in_list(types, str_of(ts_node_type(node)))) return true;
  }
  return false;
}

/* "field": it exists. "field=a|b": its type is one of these; "a.b=c": of a deeper node. "field:x|y": its text is. */
static bool grammar_condition_holds(const char *given, TSNode node, const char *text) {
  size_t n = strcspn(given, "=:");
  const char *values = given[n] ? given + n + 1 : NULL;
  if (n > 1 && given[n - 1] == '*') return values && grammar_chain_has((lode_str){given, n - 1}, str_of(values), node);
  for (size_t at = 0; at < n;) {
    size_t len = 0;
    while (at + len < n && given[at + len] != '.') len++;
    node = grammar_child_named(node, (lode_str){given + at, len});
    if (ts_node_is_null(node)) return false;
    at += len + 1;
  }
  if (!values) return true;
  uint32_t start = ts_node_start_byte(node), end = ts_node_end_byte(node);
  lode_str is = given[n] == '=' ? str_of(ts_node_type(node)) : (lode_str){text + start, end - start};
  return grammar_in_list(str_of(values), is);
}

const lang_rule *parser_grammar_rule(const parser_grammar *g, TSNode node, TSSymbol symbol, const char *text) {
  if (symbol >= g->symbols || !g->first_rule[symbol]) return NULL;
  const lang_rule *first = &g->language->rules[g->first_rule[symbol] - 1];
  for (const lang_rule *r = first; r->node; r++) {
    if (r != first && strcmp(r->node, first->node) != 0) continue;
    if (!r->given || grammar_condition_holds(r->given, node, text)) return r;
  }
  return NULL;
}

/* Repeats one step as often as possible. A declarator without the field (a reference, parentheses) continues in its
 * last child. */
static TSNode grammar_repeat_step(TSNode node, lode_str step) {
  for (int i = 0; i < 32; i++) {
    TSNode next = grammar_child_by_field(node, step);
    uint32_t n = ts_node_named_child_count(node);
    if (ts_node_is_null(next) && n > 0 && strstr(ts_node_type(node), "declarator"))
      next = ts_node_named_child(node, n - 1);
    if (ts_node_is_null(next)) break;
    node = next;
  }
  return node;
}

TSNode parser_node_at(TSNode node, lode_str path) {
  const char *at = path.data, *stop = at + path.len;
  TSNode none = {0};
  lode_str step;
  while (at < stop && grammar_next_word(&at, ".< ", &step)) {
    if (step.data[step.len - 1] == '*') {
      node = grammar_repeat_step(node, (lode_str){step.data, step.len - 1});
    } else if (step.data[0] == '^') {
      if (ts_node_named_child_count(node) == 0) return none;
      node = ts_node_named_child(node, 0);
    } else {
      node = grammar_child_named(node, step);
    }
    if (ts_node_is_null(node)) return none;
  }
  return node;
}

TSNode parser_name_node(const lang_rule *rule, TSNode node, bool scope) {
  const char *path = rule->name ? rule->name : "name", *angle = strchr(path, '<');
  TSNode none = {0};
  lode_str name = {path, angle ? (size_t)(angle - path) : strlen(path)};
  if (scope) name = str_of(angle ? angle + 1 : "");
  return name.len ? parser_node_at(node, name) : none;
}

static TSNode grammar_body_node(const parser_grammar *g, TSNode node) {
  static const char *const inside[] = {NULL, "value", "right", "type", "rhs", "definition"};
  TSNode none = {0};
  for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
    TSNode at = inside[i] ? grammar_child_by_field(node, str_of(inside[i])) : node;
    if (ts_node_is_null(at)) continue;
    for (size_t b = 0; b < g->n_bodies; b++) {
      TSNode body = grammar_child_named(at, g->bodies[b]);
      if (!ts_node_is_null(body)) return body;
    }
  }
  return none;
}

uint32_t parser_body_start(const parser_grammar *g, TSNode node) {
  TSNode body = grammar_body_node(g, node);
  return ts_node_is_null(body) ? 0 : ts_node_start_byte(body);
}

TSNode parser_docstring_node(const parser_grammar *g, TSNode node) {
  TSNode none = {0};
  if (!g->language->docstring) return none;
  TSNode body = grammar_body_node(g, node);
  if (ts_node_is_null(body) || ts_node_named_child_count(body) == 0) return none;
  TSNode first = ts_node_named_child(body, 0);
  if (strcmp(ts_node_type(first), "expression_statement") == 0 && ts_node_named_child_count(first) > 0)
    first = ts_node_named_child(first, 0);
  return strcmp(ts_node_type(first), "string") == 0 ? first : none;
}

/* ---- Checking the table ---- */

static size_t grammar_check_step(const parser_grammar *g, lode_str step, const char *node, strbuf *out) {
  if (step.len && step.data[step.len - 1] == '*') step.len--;
  if (step.len == 0 || step.data[0] == '^') return 0;
  if (ts_language_field_id_for_name(g->ts, step.data, (uint32_t)step.len) || grammar_symbol_of(g->ts, step)) return 0;
  strbuf_addf(out, "%s: %s: no field or node %.*s\n", g->language->name, node, (int)step.len, step.data);
  return 1;
}

static size_t grammar_check_types(const parser_grammar *g, const char *types, const char *node, strbuf *out) {
  lode_str type;
  size_t wrong = 0;
  while (grammar_next_word(&types, "| ", &type)) {
    if (grammar_symbol_of(g->ts, type)) continue;
    strbuf_addf(out, "%s: %s: no node %.*s\n", g->language->name, node, (int)type.len, type.data);
    wrong++;
  }
  return wrong;
}

size_t parser_grammar_check(const parser_grammar *g, strbuf *out) {
  size_t wrong = 0;
  lode_str step;
  for (const lang_rule *r = g->language->rules; r && r->node; r++) {
    const char *path = r->name ? r->name : "name";
    wrong += grammar_check_types(g, r->node, r->node, out);
    while (r->role != LANG_ROLE_WRAPPER && grammar_next_word(&path, ".<", &step))
      wrong += grammar_check_step(g, step, r->node, out);
    if (!r->given) continue;
    char fields[80];
    snprintf(fields, sizeof fields, "%.*s", (int)strcspn(r->given, "=:"), r->given);
    path = fields;
    while (grammar_next_word(&path, ".", &step)) wrong += grammar_check_step(g, step, r->node, out);
    const char *types = strchr(r->given, '=');
    if (types) wrong += grammar_check_types(g, types + 1, r->node, out);
  }
  if (g->language->comment) wrong += grammar_check_types(g, g->language->comment, "comment", out);
  const char *bodies = g->language->body ? g->language->body : "";
  while (grammar_next_word(&bodies, " ", &step)) wrong += grammar_check_step(g, step, "body", out);
  return wrong + parser_grammar_check_uses(g, out);
}
