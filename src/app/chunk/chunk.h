/* SPDX-License-Identifier: Apache-2.0 */
/* chunk.h - splits the text of a file into chunks.
 *
 * The chunks of a file are a partition: in order, without gaps or overlap, from byte 0 to the end. A chunk is a
 * definition with the comments before it, a part of a long definition, or a run of text between definitions. A class
 * whose members are chunks keeps its head and its fields, and its skeleton lists the members. A definition of more
 * than max_bytes is split at boundaries of its syntax: each part has the name and signature of the whole, and its
 * part number. Blank lines belong to the chunk before them.
 *
 * Strings are valid UTF-8 without NUL (other bytes become U+FFFD) and are owned by the chunk list. The text may be
 * any bytes.
 */
#ifndef LODE_CHUNK_CHUNK_H
#define LODE_CHUNK_CHUNK_H

#include "scan/language.h"

/* Longest strings of a chunk, in bytes. */
#define CHUNK_MAX_NAME 256
#define CHUNK_MAX_SIGNATURE 512
#define CHUNK_MAX_DOC 1024
#define CHUNK_MAX_SKELETON 2048
#define CHUNK_MAX_SYMBOLS 4096
#define CHUNK_MAX_PARENTS 512
#define CHUNK_NO_PARENT UINT32_MAX

typedef struct chunk_item {
  lang_kind kind;
  uint32_t start, end;           /* byte offsets in the file */
  uint32_t start_line, end_line; /* from 1, inclusive; end_line is the line of the last byte that is not white space */
  uint32_t line;                 /* where the definition itself begins, after its comments; else start_line */
  uint32_t parent;               /* the chunk of the enclosing class, section, ..., or CHUNK_NO_PARENT */
  uint32_t part, parts;          /* part is 0..parts-1; not split: 0 of 1. Only part 0 has doc and skeleton */
  lode_str name;                 /* absent strings are empty, never NULL */
  lode_str signature;            /* one line: "static int walk_step(walk *w)"; the heading of a section */
  lode_str doc;                  /* the comments before it, or its docstring, without comment markers */
  lode_str parents;              /* enclosing names, outermost first: "store Connection"; sections: "Guide > Use" */
  lode_str skeleton;             /* one line for each member that is a chunk itself */
  lode_str symbols; /* definitions that begin in the chunk, its own included, one per line: "LINE KIND NAME";
                       the kind has a - before it where the name is only declared (a prototype) */
} chunk_item;

typedef struct chunk_list {
  chunk_item *items;
  size_t n, cap;
  mem_arena strings;
  bool failed; /* while it is built: out of memory for a string */
} chunk_list;  /* all zero: empty */

typedef struct chunk_options {
  uint32_t max_bytes; /* longer chunks are split; 256 to 65,536; 0: 2,400 */
  uint32_t min_bytes; /* shorter definitions of less than 3 lines share a chunk with their neighbours; 0: 160 */
} chunk_options;

void chunk_list_release(chunk_list *list);
void chunk_list_clear(chunk_list *list); /* keeps its memory */

/* Splits without a grammar, in this process: documents by their headings, everything else by paragraphs and lines.
 * Accepts any bytes; fails only when out of memory, or with LODE_LIMIT for a text of more than LANG_MAX_TEXT
 * bytes. */
LODE_MUST lode_status chunk_plain(const lang_info *language, lode_str text, const chunk_options *options,
                                  chunk_list *list, lode_error *err);

/* Checks the invariants above for a text of text_bytes. NULL when they hold, else a text that says which one does
 * not. */
const char *chunk_list_problem(const chunk_list *list, size_t text_bytes);

/* The format in which lists pass between processes. Decoding trusts nothing: LODE_CORRUPT. */
void chunk_list_encode(const chunk_list *list, strbuf *out);
LODE_MUST lode_status chunk_list_decode(lode_str bytes, size_t text_bytes, chunk_list *list, lode_error *err);

#endif
