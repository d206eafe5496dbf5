/* SPDX-License-Identifier: Apache-2.0 */
/* grammar.h - the grammar of a language, loaded, with the rules of lang_table bound to its symbols. */
#ifndef LODE_PARSER_GRAMMAR_H
#define LODE_PARSER_GRAMMAR_H

#include "scan/language_uses.h"

#include <tree_sitter/api.h>

#define PARSER_MAX_BODIES 6

/* What a node means for the names in it, by its symbol (grammar_uses.c). */
enum {
  PARSER_NAME = 1,       /* a name */
  PARSER_TYPE_NAME = 2,  /* a name in the place of a type */
  PARSER_FIELD_NAME = 4, /* the name of a member */
  PARSER_CALL = 8,
  PARSER_IMPORT = 16,
  PARSER_BASES = 32,      /* names in it are bases of a type; or some of its children's */
  PARSER_MEMBER = 64,     /* defines a member of the type around it */
  PARSER_VALUE = 128,     /* defines a value of the enum around it */
  PARSER_BINDS = 256,     /* some of the names in it are local */
  PARSER_SCOPE = 512,     /* local names end with it */
  PARSER_BRANCH = 1024,   /* an if, a loop, a case */
  PARSER_TOKENS = 2048,   /* tokens without structure: the arguments of a macro */
  PARSER_VARIABLE = 4096, /* $x: never the name of something elsewhere */
  PARSER_ASSIGN = 8192,
  PARSER_LIST = 16384, /* of names, or a pattern of them */
};
#define PARSER_MAX_PLACES 64
#define PARSER_MAX_PATHS 12

/* NODE:FIELD of the table; field 0: a child without a field. */
typedef struct parser_place {
  TSSymbol node;
  TSFieldId field;
} parser_place;

/* NODE.NAME<OWNER of the table. */
typedef struct parser_path {
  TSSymbol node;
  lode_str name, owner; /* owner.data is NULL when there is none */
} parser_path;

typedef struct parser_grammar {
  const lang_info *language;
  const TSLanguage *ts;
  uint32_t symbols;
  uint8_t *first_rule;                /* by symbol: 1 + the first rule for that node, or 0 */
  bool *comment, *body;               /* by symbol */
  lode_str bodies[PARSER_MAX_BODIES]; /* names of fields and types */
  size_t n_bodies;
  const lang_uses *uses; /* or NULL */
  uint16_t *traits;      /* by symbol */
  parser_place binds[PARSER_MAX_PLACES], bases[PARSER_MAX_PLACES];
  size_t n_binds, n_bases;
  parser_path calls[PARSER_MAX_PATHS], members[PARSER_MAX_PATHS]; /* members: values of enums too */
  size_t n_calls, n_members;
  TSFieldId types[2], results[5], values[3]; /* fields that say what type something has; end with 0 */
  bool types_by_node;                        /* the grammar has nodes in place of such fields */
} parser_grammar;

/* Loads FOLDER/NAME.so once, and keeps it. LODE_NOT_FOUND when it cannot be loaded. */
LODE_MUST lode_status parser_grammar_load(const char *folder, const lang_info *language, const parser_grammar **grammar,
                                          lode_error *err);
/* Adds a line for each node, field or type that the table names and the grammar does not have. Returns how many. */
size_t parser_grammar_check(const parser_grammar *grammar, strbuf *out);

/* Binds the row of lang_uses_table to the grammar's symbols; part of loading. */
LODE_MUST lode_status parser_grammar_bind_uses(parser_grammar *grammar, lode_error *err);
size_t parser_grammar_check_uses(const parser_grammar *grammar, strbuf *out);
/* Is a name in `field` of such a node in one of the places? */
bool parser_in_places(const parser_place *places, size_t n, TSSymbol node, TSFieldId field);
const parser_path *parser_path_of(const parser_path *paths, size_t n, TSSymbol node);
/* The node at the end of a path of fields and child types, as in language_table.c; a null node when there is none. */
TSNode parser_node_at(TSNode node, lode_str path);

/* The first rule for a node whose condition holds, or NULL. */
const lang_rule *parser_grammar_rule(const parser_grammar *grammar, TSNode node, TSSymbol symbol, const char *text);
/* The node that holds the name (or the scope) according to the rule; a null node when there is none. */
TSNode parser_name_node(const lang_rule *rule, TSNode node, bool scope);
/* The offset of the body of a definition; 0 when it has none. */
uint32_t parser_body_start(const parser_grammar *grammar, TSNode node);
/* The string at the start of the body; a null node when there is none, or the language has no docstrings. */
TSNode parser_docstring_node(const parser_grammar *grammar, TSNode node);

#endif
