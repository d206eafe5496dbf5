/* SPDX-License-Identifier: Apache-2.0 */
/* grammar.h - the grammar of a language, loaded, with the rules of lang_table bound to its symbols. */
#ifndef LODE_PARSER_GRAMMAR_H
#define LODE_PARSER_GRAMMAR_H

#include "scan/language.h"

#include <tree_sitter/api.h>

#define PARSER_MAX_BODIES 6

typedef struct parser_grammar {
  const lang_info *language;
  const TSLanguage *ts;
  uint32_t symbols;
  uint8_t *first_rule;                /* by symbol: 1 + the first rule for that node, or 0 */
  bool *comment, *body;               /* by symbol */
  lode_str bodies[PARSER_MAX_BODIES]; /* names of fields and types */
  size_t n_bodies;
} parser_grammar;

/* Loads FOLDER/NAME.so once, and keeps it. LODE_NOT_FOUND when it cannot be loaded. */
LODE_MUST lode_status parser_grammar_load(const char *folder, const lang_info *language, const parser_grammar **grammar,
                                          lode_error *err);
/* Adds a line for each node, field or type that the table names and the grammar does not have. Returns how many. */
size_t parser_grammar_check(const parser_grammar *grammar, strbuf *out);

/* The first rule for a node whose condition holds, or NULL. */
const lang_rule *parser_grammar_rule(const parser_grammar *grammar, TSNode node, TSSymbol symbol, const char *text);
/* The node that holds the name (or the scope) according to the rule; a null node when there is none. */
TSNode parser_name_node(const lang_rule *rule, TSNode node, bool scope);
/* The offset of the body of a definition; 0 when it has none. */
uint32_t parser_body_start(const parser_grammar *grammar, TSNode node);
/* The string at the start of the body; a null node when there is none, or the language has no docstrings. */
TSNode parser_docstring_node(const parser_grammar *grammar, TSNode node);

#endif
