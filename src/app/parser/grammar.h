/* grammar.h - a language's grammar, loaded, with the table's rules bound to its symbols. */
#ifndef LODE_PARSER_GRAMMAR_H
#define LODE_PARSER_GRAMMAR_H

#include "scan/language.h"

#include <tree_sitter/api.h>

#define PARSER_MAX_BODIES 6

typedef struct parser_grammar {
  const lang_info *language;
  const TSLanguage *ts;
  uint32_t symbols;
  uint8_t *first_rule; /* of each symbol: 1 + the first rule with that node, or 0 */
  bool *comment, *body; /* of each symbol */
  lode_str bodies[PARSER_MAX_BODIES]; /* names of fields and types */
  size_t n_bodies;
} parser_grammar;

/* Loads FOLDER/NAME.so once, and keeps it. LODE_NOT_FOUND when it is not there. */
LODE_MUST lode_status parser_grammar_load(const char *folder, const lang_info *language, const parser_grammar **grammar,
                                         lode_error *err);
/* A node, field or type that the table names and the grammar does not know; adds a line for each. How many. */
size_t parser_grammar_check(const parser_grammar *grammar, strbuf *out);

/* The rule of a node whose condition holds, or NULL. */
const lang_rule *parser_grammar_rule(const parser_grammar *grammar, TSNode node, TSSymbol symbol, const char *text);
/* The node where a rule says that the name (or the scope) is; a null node when there is none. */
TSNode parser_name_node(const lang_rule *rule, TSNode node, bool scope);
/* Where the body of a definition begins; 0 when it has none. */
uint32_t parser_body_start(const parser_grammar *grammar, TSNode node);
/* The string that begins the body; a null node when there is none, or the language has no such documentation. */
TSNode parser_docstring_node(const parser_grammar *grammar, TSNode node);

#endif
