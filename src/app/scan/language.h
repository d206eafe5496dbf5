/* language.h - one table that describes every language: how its files are known, and what its syntax calls things.
 *
 * A language is a row of lang_table (language_table.c): names and endings of files, interpreters, the grammar, how
 * comments look, and rules that say which nodes of the syntax tree are definitions. A language without a grammar is
 * known by its name and chunked by paragraphs and lines. Ids are positions in the table: they are not stable between
 * versions, names are.
 */
#ifndef LODE_SCAN_LANGUAGE_H
#define LODE_SCAN_LANGUAGE_H

#include "base/base.h"

#define LANG_MAX_TEXT (64u << 20) /* longest text of a file that is read, cut into chunks and indexed */

/* X(enum, name as users write it and as it is stored). Kinds from FUNCTION to MACRO are definitions. */
#define LANG_KINDS(X)                                                                          \
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

typedef enum lang_kind {
#define LANG_KIND_ENUM(id, name) LANG_KIND_##id,
  LANG_KINDS(LANG_KIND_ENUM)
#undef LANG_KIND_ENUM
  LANG_KIND_COUNT
} lang_kind;

const char *lang_kind_name(lang_kind kind);
/* LANG_KIND_COUNT when there is none of that name. */
lang_kind lang_kind_find(lode_str name);

/* ---- Rules: which nodes are definitions ---- */

typedef enum lang_role {
  LANG_ROLE_LEAF,  /* a definition that is kept whole if it fits: a function */
  LANG_ROLE_CONTAINER,  /* a definition that holds others: a class. Its members become chunks, it becomes a skeleton */
  LANG_ROLE_MINOR, /* a small definition: it stays with its neighbours, which know its name */
  LANG_ROLE_WRAPPER,  /* stands around a definition and belongs to it: decorators, export, template<> */
} lang_role;

typedef struct lang_rule {
  const char *node;   /* type of the node */
  lang_kind kind;
  lang_role role;
  const char *name;   /* where the name is: fields and child types to go down through, "declarator.identifier"; see
                         language_table.c for the few signs. NULL: the field "name" */
  const char *given;  /* only if: "value=arrow_function|function_expression", a field and the types of its node, or
                         "target:def|defp", a field and its text */
} lang_rule;

typedef enum lang_splitter {
  LANG_SPLIT_LINES,    /* paragraphs and lines */
  LANG_SPLIT_TREE,     /* a grammar, in a worker */
  LANG_SPLIT_MARKDOWN, /* headings with # and underlines, fenced code */
  LANG_SPLIT_RST,      /* headings with underlines */
} lang_splitter;

typedef struct lang_info {
  const char *name;         /* "c++": what --lang takes and what is stored */
  const char *aliases;      /* "cpp cxx", may be NULL. All lists are separated by spaces */
  const char *extensions;   /* "cc cpp cxx hpp" */
  const char *file_names;   /* "Makefile GNUmakefile" */
  const char *interpreters; /* of a first line with #!: "python python3" */
  lang_splitter reader;
  const char *grammar;      /* its shared object and its symbol: "cpp" is cpp.so with tree_sitter_cpp() */
  const char *body;         /* fields or types of nodes that are bodies; NULL: "body" */
  const char *comment;      /* types of nodes that are comments; NULL: "comment" */
  bool docstring;           /* a string that begins a body is its documentation */
  bool clauses;             /* a function may be several nodes of one name */
  bool data;                /* what is outside of definitions is data, not code */
  const lang_rule *rules;  /* ends with node == NULL */
} lang_info;

extern const lang_info lang_table[];
extern const size_t lang_count;

/* By name or alias, in any case; NULL when there is none. */
const lang_info *lang_find(lode_str name);
/* By the name of a file, then by the head of its text (a #! line; may be absent: then one is not looked for). What
 * nothing is known about is "text". Never NULL. */
const lang_info *lang_detect(lode_str path, lode_str head);
static inline uint32_t lang_id(const lang_info *language) { return (uint32_t)(language - lang_table); }

#endif
