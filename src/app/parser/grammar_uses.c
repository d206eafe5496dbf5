/* SPDX-License-Identifier: Apache-2.0 */
/* grammar_uses.c - the rows of lang_uses_table, bound to the symbols of a grammar; see grammar.h. */
#include "parser/grammar.h"

static bool uses_next_word(const char **list, lode_str *word) {
  const char *p = *list ? *list : "";
  while (*p == ' ') p++;
  size_t n = strcspn(p, " ");
  *word = (lode_str){p, n};
  *list = p + n;
  return n > 0;
}

static TSSymbol uses_symbol(const parser_grammar *g, lode_str name) {
  TSSymbol s = ts_language_symbol_for_name(g->ts, name.data, (uint32_t)name.len, true);
  return s < g->symbols ? s : 0;
}

static bool uses_ends_with(const char *s, const char *end) {
  size_t n = strlen(s), m = strlen(end);
  return n >= m && strcmp(s + n - m, end) == 0;
}

/* ---- What the names of nodes say by themselves ---- */

static bool uses_is_branch(const char *name) {
  static const char *const starts[] = {"if_",
                                       "elif",
                                       "elsif",
                                       "for_",
                                       "foreach_",
                                       "while_",
                                       "do_stat",
                                       "case_",
                                       "catch",
                                       "except",
                                       "rescue",
                                       "ternary",
                                       "when_",
                                       "match_arm",
                                       "conditional_expression",
                                       "unless",
                                       "until",
                                       "guard_",
                                       "loop_expression",
                                       "switch_label",
                                       "expression_case",
                                       "communication_case",
                                       "enhanced_for"};
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
    if (strncmp(name, starts[i], strlen(starts[i])) == 0) return true;
  return strcmp(name, "if") == 0 || strcmp(name, "for") == 0 || strcmp(name, "while") == 0 || strcmp(name, "when") == 0;
}

static uint16_t uses_name_trait(const parser_grammar *g, const char *name) {
  const char *grammar = g->language->grammar;
  if (uses_ends_with(name, "statement_identifier")) return 0;
  if (strcmp(name, "type_identifier") == 0) return PARSER_TYPE_NAME;
  if (strcmp(name, "field_identifier") == 0 || strcmp(name, "property_identifier") == 0 ||
      strcmp(name, "private_property_identifier") == 0)
    return PARSER_FIELD_NAME;
  if (uses_ends_with(name, "identifier") || uses_ends_with(name, "identifier_pattern")) return PARSER_NAME;
  if (strcmp(name, "name") == 0 && strcmp(grammar, "php") == 0) return PARSER_NAME;
  if (strcmp(name, "constant") == 0 && strcmp(grammar, "ruby") == 0) return PARSER_NAME;
  return 0;
}

static bool uses_is_scope(const parser_grammar *g, const char *name) {
  static const char *const parts[] = {"function", "lambda",        "closure",      "func_literal",
                                      "method_d", "constructor_d", "comprehension"};
  static const char *const not_those[] = {"declarator", "parameters", "_type", "signature", "body", "modifier", "call"};
  for (size_t i = 0; i < sizeof not_those / sizeof *not_those; i++)
    if (strstr(name, not_those[i])) return false;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (strstr(name, parts[i])) return true;
  /* a name that is bound in a block of Python lives until the function ends */
  bool blocks = strcmp(g->language->grammar, "python") != 0;
  return strcmp(name, "method") == 0 || strcmp(name, "do_block") == 0 || (blocks && strcmp(name, "block") == 0);
}

static uint16_t uses_traits_of(const parser_grammar *g, const char *name) {
  uint16_t traits = uses_name_trait(g, name);
  if (uses_is_branch(name)) traits |= PARSER_BRANCH;
  if (strcmp(name, "token_tree") == 0) traits |= PARSER_TOKENS;
  if (strcmp(name, "variable_name") == 0 && strcmp(g->language->grammar, "php") == 0) traits |= PARSER_VARIABLE;
  if (strcmp(name, "assignment") == 0 || strcmp(name, "assignment_expression") == 0) traits |= PARSER_ASSIGN;
  if (strstr(name, "list") || strstr(name, "pattern")) traits |= PARSER_LIST;
  if (uses_is_scope(g, name)) traits |= PARSER_SCOPE;
  return traits;
}

/* ---- The table ---- */

static void uses_bind_places(parser_grammar *g, const char *list, uint16_t trait, parser_place *places, size_t *n) {
  lode_str word;
  while (uses_next_word(&list, &word)) {
    const char *colon = memchr(word.data, ':', word.len);
    lode_str node = {word.data, colon ? (size_t)(colon - word.data) : word.len};
    lode_str field = colon ? (lode_str){colon + 1, word.len - node.len - 1} : (lode_str){"", 0};
    TSSymbol s = uses_symbol(g, node);
    if (!s) continue;
    g->traits[s] |= trait;
    if (colon && *n < PARSER_MAX_PLACES)
      places[(*n)++] =
          (parser_place){s, field.len ? ts_language_field_id_for_name(g->ts, field.data, (uint32_t)field.len) : 0};
  }
}

static void uses_bind_paths(parser_grammar *g, const char *list, uint16_t trait, parser_path *paths, size_t *n) {
  lode_str word;
  while (uses_next_word(&list, &word) && *n < PARSER_MAX_PATHS) {
    const char *dot = memchr(word.data, '.', word.len), *angle = memchr(word.data, '<', word.len);
    if (!dot) continue;
    TSSymbol s = uses_symbol(g, (lode_str){word.data, (size_t)(dot - word.data)});
    if (!s) continue;
    const char *end = word.data + word.len, *stop = angle ? angle : end;
    g->traits[s] |= trait;
    paths[(*n)++] = (parser_path){.node = s,
                                  .name = {dot + 1, (size_t)(stop - dot - 1)},
                                  .owner = {angle ? angle + 1 : NULL, angle ? (size_t)(end - angle - 1) : 0}};
  }
}

static void uses_bind_fields(const parser_grammar *g, const char *list, TSFieldId *fields) {
  lode_str word;
  while (uses_next_word(&list, &word)) {
    *fields = ts_language_field_id_for_name(g->ts, word.data, (uint32_t)word.len);
    fields += *fields != 0;
  }
  *fields = 0;
}

lode_status parser_grammar_bind_uses(parser_grammar *g, lode_error *err) {
  const lang_uses *u = lang_uses_of(g->language);
  lode_str word;
  g->uses = u;
  g->n_binds = g->n_bases = g->n_calls = g->n_members = 0;
  g->traits = mem_calloc(g->symbols, sizeof *g->traits);
  if (!g->traits) return err_nomem(err);
  for (uint32_t s = 0; s < g->symbols; s++)
    if (ts_language_symbol_type(g->ts, (TSSymbol)s) == TSSymbolTypeRegular)
      g->traits[s] = uses_traits_of(g, ts_language_symbol_name(g->ts, (TSSymbol)s));
  uses_bind_fields(g, "type", g->types);
  uses_bind_fields(g, "return_type result returns type", g->results);
  uses_bind_fields(g, "value right", g->values);
  g->types_by_node = strcmp(g->language->grammar, "kotlin") == 0 || strcmp(g->language->grammar, "c_sharp") == 0;
  if (!u) return LODE_OK;
  for (const char *list = u->imports; uses_next_word(&list, &word);)
    if (uses_symbol(g, word)) g->traits[uses_symbol(g, word)] |= PARSER_IMPORT;
  uses_bind_places(g, u->binds, PARSER_BINDS, g->binds, &g->n_binds);
  uses_bind_places(g, u->bases, PARSER_BASES, g->bases, &g->n_bases);
  uses_bind_paths(g, u->calls, PARSER_CALL, g->calls, &g->n_calls);
  uses_bind_paths(g, u->members, PARSER_MEMBER, g->members, &g->n_members);
  uses_bind_paths(g, u->values, PARSER_VALUE, g->members, &g->n_members);
  return LODE_OK;
}

bool parser_in_places(const parser_place *places, size_t n, TSSymbol node, TSFieldId field) {
  for (size_t i = 0; i < n; i++)
    if (places[i].node == node && places[i].field == field) return true;
  return false;
}

const parser_path *parser_path_of(const parser_path *paths, size_t n, TSSymbol node) {
  for (size_t i = 0; i < n; i++)
    if (paths[i].node == node) return &paths[i];
  return NULL;
}

/* ---- Checking the table ---- */

static size_t uses_check_list(const parser_grammar *g, const char *list, strbuf *out) {
  size_t wrong = 0;
  lode_str word;
  while (uses_next_word(&list, &word)) {
    lode_str node = {word.data, strcspn(word.data, " .:<")};
    const char *rest = node.data + node.len, *end = word.data + word.len;
    if (!uses_symbol(g, node)) {
      strbuf_addf(out, "%s: no node %.*s\n", g->language->name, (int)node.len, node.data);
      wrong++;
    }
    while (rest < end) {
      lode_str step = {++rest, 0};
      while (rest < end && !strchr(".:<", *rest)) rest++;
      step.len = (size_t)(rest - step.data);
      if (step.len && step.data[step.len - 1] == '*') step.len--;
      if (!step.len || step.data[0] == '^' || uses_symbol(g, step) ||
          ts_language_field_id_for_name(g->ts, step.data, (uint32_t)step.len))
        continue;
      strbuf_addf(out, "%s: %.*s: no field %.*s\n", g->language->name, (int)node.len, node.data, (int)step.len,
                  step.data);
      wrong++;
    }
  }
  return wrong;
}

size_t parser_grammar_check_uses(const parser_grammar *g, strbuf *out) {
  const lang_uses *u = g->uses;
  if (!u) return 0;
  return uses_check_list(g, u->calls, out) + uses_check_list(g, u->imports, out) + uses_check_list(g, u->binds, out) +
         uses_check_list(g, u->bases, out) + uses_check_list(g, u->members, out) + uses_check_list(g, u->values, out);
}
