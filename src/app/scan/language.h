/* SPDX-License-Identifier: Apache-2.0 */
/* language.h - one table that describes every language: how its files are recognised, and what its grammar calls
 * things.
 *
 * A language is a row of lang_table (language_table.c): file names and extensions, interpreters, the grammar, comment
 * nodes, and rules that say which nodes of the syntax tree are definitions. A language without a grammar is recognised
 * by file name and split into paragraphs and lines. Ids are positions in the table: they are not stable between
 * versions, names are.
 */
#ifndef LODE_SCAN_LANGUAGE_H
#define LODE_SCAN_LANGUAGE_H

#include "base/base.h"

#define LANG_MAX_TEXT (64u << 20) /* longest text that is read, split into chunks and indexed */

/* X(enum, name for users and in the index). Kinds from FUNCTION to MACRO are definitions. */
#define LANG_KINDS(X)                                                                                                  \
  X(TEXT, "text")       /* text without a grammar: paragraphs, lines */                                                \
  X(MODULE, "module")   /* code outside of definitions: imports, globals, statements */                                \
  X(SECTION, "section") /* of a document: a heading and its text */                                                    \
  X(DATA, "data")       /* a part of a configuration or data file */                                                   \
  X(FUNCTION, "function")                                                                                              \
  X(METHOD, "method")                                                                                                  \
  X(CONSTRUCTOR, "constructor")                                                                                        \
  X(CLASS, "class")                                                                                                    \
  X(STRUCT, "struct")                                                                                                  \
  X(UNION, "union")                                                                                                    \
  X(ENUM, "enum")                                                                                                      \
  X(INTERFACE, "interface")                                                                                            \
  X(TRAIT, "trait")                                                                                                    \
  X(IMPL, "impl")                                                                                                      \
  X(NAMESPACE, "namespace")                                                                                            \
  X(TYPE, "type")                                                                                                      \
  X(PROPERTY, "property")                                                                                              \
  X(CONSTANT, "constant")                                                                                              \
  X(VARIABLE, "variable")                                                                                              \
  X(TABLE, "table")                                                                                                    \
  X(RULE, "rule") /* of CSS or a makefile */                                                                           \
  X(MACRO, "macro")

typedef enum lang_kind {
#define LANG_KIND_ENUM(id, name) LANG_KIND_##id,
  LANG_KINDS(LANG_KIND_ENUM)
#undef LANG_KIND_ENUM
      LANG_KIND_COUNT
} lang_kind;

const char *lang_kind_name(lang_kind kind);
/* LANG_KIND_COUNT when no kind has that name. */
lang_kind lang_kind_find(lode_str name);

/* ---- Rules: which nodes are definitions ---- */

typedef enum lang_role {
  LANG_ROLE_LEAF,      /* a definition that stays whole if it fits: a function */
  LANG_ROLE_CONTAINER, /* a definition that contains others: a class. Its members are chunks, it is a skeleton */
  LANG_ROLE_MINOR,     /* a small definition: it shares a chunk with its neighbours, which records its name */
  LANG_ROLE_WRAPPER,   /* encloses a definition and belongs to it: decorators, export, template<> */
} lang_role;

typedef struct lang_rule {
  const char *node; /* type of the node */
  lang_kind kind;
  lang_role role;
  const char *name;  /* path to the name: fields and child types to descend through, "declarator.identifier"; its
                        special characters are explained in language_table.c. NULL: the field "name" */
  const char *given; /* condition: "value=arrow_function|function_expression" (a field, and the types its node may
                        have) or "target:def|defp" (a field, and the texts it may have). NULL: none */
} lang_rule;

typedef enum lang_splitter {
  LANG_SPLIT_LINES,    /* paragraphs and lines */
  LANG_SPLIT_TREE,     /* a grammar, in a worker */
  LANG_SPLIT_MARKDOWN, /* headings with # and underlines, fenced code */
  LANG_SPLIT_RST,      /* headings with underlines */
} lang_splitter;

typedef struct lang_info {
  const char *name;         /* "c++": what --lang takes and what is stored */
  const char *aliases;      /* "cpp cxx"; may be NULL. All lists are separated by spaces */
  const char *extensions;   /* "cc cpp cxx hpp" */
  const char *file_names;   /* "Makefile GNUmakefile" */
  const char *interpreters; /* of a first line with #!: "python python3" */
  lang_splitter split;
  const char *grammar;    /* shared object and symbol: "cpp" is cpp.so with tree_sitter_cpp() */
  const char *body;       /* fields or types of nodes that are bodies; NULL: "body" */
  const char *comment;    /* types of nodes that are comments; NULL: "comment" */
  bool docstring;         /* a string at the start of a body is documentation */
  bool clauses;           /* a function may be several nodes of the same name */
  bool data;              /* text outside of definitions is data, not code */
  const lang_rule *rules; /* ends with node == NULL */
} lang_info;

extern const lang_info lang_table[];
extern const size_t lang_count;

/* By name or alias, ignoring case; NULL when there is none. */
const lang_info *lang_find(lode_str name);
/* By file name, then by the head of the text (a #! line), which may be absent. "text" when nothing matches, never
 * NULL. */
const lang_info *lang_detect(lode_str path, lode_str head);
static inline uint32_t lang_id(const lang_info *language) { return (uint32_t)(language - lang_table); }

#endif
