/* language.h - one table that describes every language: how its files are known, and what its syntax calls things.
 *
 * A language is a row of lode__languages (language_table.c): names and endings of files, interpreters, the grammar, how
 * comments look, and rules that say which nodes of the syntax tree are definitions. A language without a grammar is
 * known by its name and chunked by paragraphs and lines. Ids are positions in the table: they are not stable between
 * versions, names are.
 */
#ifndef LODE_CODE_LANGUAGE_H
#define LODE_CODE_LANGUAGE_H

#include "base/base.h"

/* X(enum, name as users write it and as it is stored). Kinds from FUNCTION to MACRO are definitions. */
#define LODE__KINDS(X)                                                                          \
  X(TEXT, "text")           /* paragraphs and lines of what has no grammar */                   \
  X(MODULE, "module")       /* code outside of definitions: imports, globals, statements */     \
  X(SECTION, "section")     /* of a document: heading and text */                               \
  X(DATA, "data")           /* a part of a configuration or data file */                        \
  X(FUNCTION, "function")                                                                       \
  X(METHOD, "method")                                                                           \
  X(CONSTRUCTOR, "constructor")                                                                 \
  X(CLASS, "class")                                                                             \
  X(STRUCT, "struct")                                                                           \
  X(UNION, "union")                                                                             \
  X(ENUM, "enum")                                                                               \
  X(INTERFACE, "interface")                                                                     \
  X(TRAIT, "trait")                                                                             \
  X(IMPL, "impl")                                                                               \
  X(NAMESPACE, "namespace")                                                                     \
  X(TYPE, "type")                                                                               \
  X(PROPERTY, "property")                                                                       \
  X(CONSTANT, "constant")                                                                       \
  X(VARIABLE, "variable")                                                                       \
  X(TABLE, "table")                                                                             \
  X(RULE, "rule")           /* of CSS or a makefile */                                          \
  X(MACRO, "macro")

typedef enum lode__kind {
#define LODE__KIND_ENUM(id, name) LODE__KIND_##id,
  LODE__KINDS(LODE__KIND_ENUM)
#undef LODE__KIND_ENUM
  LODE__KIND_COUNT
} lode__kind;

const char *lode__kind_name(lode__kind kind);
/* LODE__KIND_COUNT when there is none of that name. */
lode__kind lode__kind_find(lode_str name);

/* ---- Rules: which nodes are definitions ---- */

typedef enum lode__role {
  LODE__ROLE_LEAF,  /* a definition that is kept whole if it fits: a function */
  LODE__ROLE_HOLD,  /* a definition that holds others: a class. Its members become chunks, it becomes a skeleton */
  LODE__ROLE_MINOR, /* a small definition: it stays with its neighbours, which know its name */
  LODE__ROLE_WRAP,  /* stands around a definition and belongs to it: decorators, export, template<> */
} lode__role;

typedef struct lode__rule {
  const char *node;   /* type of the node */
  lode__kind kind;
  lode__role role;
  const char *name;   /* where the name is: fields and child types to go down through, "declarator.identifier"; see
                         language_table.c for the few signs. NULL: the field "name" */
  const char *given;  /* only if: "value=arrow_function|function_expression", a field and the types of its node, or
                         "target:def|defp", a field and its text */
} lode__rule;

typedef enum lode__reader {
  LODE__READ_LINES,    /* paragraphs and lines */
  LODE__READ_TREE,     /* a grammar, in a worker */
  LODE__READ_MARKDOWN, /* headings with # and underlines, fenced code */
  LODE__READ_RST,      /* headings with underlines */
} lode__reader;

typedef struct lode__language {
  const char *name;         /* "c++": what --lang takes and what is stored */
  const char *aliases;      /* "cpp cxx", may be NULL. All lists are separated by spaces */
  const char *extensions;   /* "cc cpp cxx hpp" */
  const char *file_names;   /* "Makefile GNUmakefile" */
  const char *interpreters; /* of a first line with #!: "python python3" */
  lode__reader reader;
  const char *grammar;      /* its shared object and its symbol: "cpp" is cpp.so with tree_sitter_cpp() */
  const char *body;         /* fields or types of nodes that are bodies; NULL: "body" */
  const char *comment;      /* types of nodes that are comments; NULL: "comment" */
  bool docstring;           /* a string that begins a body is its documentation */
  bool clauses;             /* a function may be several nodes of one name */
  bool data;                /* what is outside of definitions is data, not code */
  const lode__rule *rules;  /* ends with node == NULL */
} lode__language;

extern const lode__language lode__languages[];
extern const size_t lode__language_count;

/* By name or alias, in any case; NULL when there is none. */
const lode__language *lode__language_find(lode_str name);
/* By the name of a file, then by the head of its text (a #! line; may be absent: then one is not looked for). What
 * nothing is known about is "text". Never NULL. */
const lode__language *lode__language_of(lode_str path, lode_str head);
static inline uint32_t lode__language_id(const lode__language *language) { return (uint32_t)(language - lode__languages); }

#endif
