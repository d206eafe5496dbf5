/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_table.h - the symbols of one file: what it defines, and which names it uses where.
 *
 * lode-parser makes it together with the chunks. It passes between processes and is stored as one text (see
 * symbol_table.c), which trusts nothing when it is read. Names that are local to a function are left out: they
 * mean nothing elsewhere.
 */
#ifndef LODE_CHUNK_SYMBOL_TABLE_H
#define LODE_CHUNK_SYMBOL_TABLE_H

#include "scan/language.h"

#define CHUNK_NO_DEF UINT32_MAX
/* Longest table, as text: as JSON, with escapes, it fits into the metadata of a record. What is beyond is left out,
 * and the table says so. */
#define CHUNK_MAX_TABLE (480u << 10)
#define CHUNK_MAX_QUALIFIER 160
#define CHUNK_MAX_BRIEF 160 /* first sentence of a definition's documentation */

/* X(enum, letter in the table, text for people) */
#define CHUNK_USES(X)                                                                                                  \
  X(CALL, 'c', "call")     /* of a function, a method, a constructor, a macro */                                       \
  X(TYPE, 't', "type")     /* a name in the place of a type */                                                         \
  X(VALUE, 'v', "use")     /* any other name that is not local */                                                      \
  X(MEMBER, 'm', "member") /* of a value: its field, a method that is not called */                                    \
  X(BASE, 'b', "base")     /* a class, interface or trait that a type extends or implements */                         \
  X(IMPORT, 'i', "import") /* see chunk_ref */

typedef enum chunk_use {
#define CHUNK_USE_ENUM(id, letter, text) CHUNK_USE_##id,
  CHUNK_USES(CHUNK_USE_ENUM)
#undef CHUNK_USE_ENUM
      CHUNK_USE_COUNT
} chunk_use;

const char *chunk_use_name(chunk_use use);

typedef struct chunk_def {
  lang_kind kind;
  bool declared;           /* a prototype, a signature in an interface: defined elsewhere */
  bool hidden;             /* private, static, not exported: according to the language's own words */
  uint32_t line, end_line; /* from 1, inclusive, without the comments before it */
  uint32_t outer;          /* the definition around it, which comes before it, or CHUNK_NO_DEF */
  uint32_t branches;       /* ifs, loops, cases: a measure of complexity */
  lode_str name;
  lode_str scope;     /* what the definition itself says it belongs to: the receiver of a Go method; often empty */
  lode_str type;      /* name of the type of a variable or field, or of a function's result; "=f": what f returns */
  lode_str signature; /* one line */
  lode_str brief;     /* of its documentation */
} chunk_def;

/* A place where a name is used. The qualifier is what comes before the name: "" nothing; ":T" a value of type T, or
 * the class around it, T being "=f" for what f returns and "^T" for a base of T; ":T.f" the field f of such a value;
 * "?" a value of which nothing is known; "this" one outside of any class; else a name that is
 * not local, with dots: a module, a class, a global variable.
 * Of an import, name is what is imported ("" or "*": the whole), qualifier the module as it is written, and local the
 * name that it gets here ("": none). */
typedef struct chunk_ref {
  chunk_use use;
  uint32_t line;
  uint32_t def; /* the innermost function, class, ... around it, or CHUNK_NO_DEF */
  lode_str name, qualifier, local;
} chunk_ref;

typedef struct chunk_symbols {
  chunk_def *defs;
  size_t n_defs, defs_cap;
  chunk_ref *refs; /* in the order of lines */
  size_t n_refs, refs_cap;
  bool cut; /* the file has more than the table holds */
} chunk_symbols;

void chunk_symbols_release(chunk_symbols *symbols);
/* Strings point into the text. LODE_CORRUPT when it is not a table. */
LODE_MUST lode_status chunk_symbols_decode(lode_str text, chunk_symbols *symbols, lode_error *err);

/* ---- Writing ---- */

/* The same name, used in the same way, at several lines. */
typedef struct chunk_ref_group {
  chunk_use use;
  lode_str name, qualifier, local;
  const uint32_t *lines; /* ascending */
  size_t n_lines;
} chunk_ref_group;

/* Each adds a line to the table; nothing is added any more when it is full. Strings may hold any bytes. */
void chunk_symbols_put_def(strbuf *out, const chunk_def *def);
void chunk_symbols_put_refs(strbuf *out, const chunk_ref_group *group);

#endif
