/* chunk.h - a file's text in, chunks out.
 *
 * The chunks of a file are a partition: in order, without gap or overlap, from byte 0 to its end. A chunk is a
 * definition (with the comments before it), a piece of a long one, or a run of what lies between definitions. A class
 * whose members are chunks of their own keeps its head and its fields, and its skeleton lists the members. A definition
 * of more than max_bytes is cut at boundaries of its syntax: each piece has the name and signature of the whole, and
 * says which part it is. Blank lines belong to what stands before them.
 *
 * Strings are valid UTF-8 without NUL (other bytes became U+FFFD); they live in the chunk list. The text itself may be any bytes.
 */
#ifndef LODE_CHUNK_CHUNK_H
#define LODE_CHUNK_CHUNK_H

#include "scan/language.h"

#define CHUNK_MAX_NAME 256       /* longest name */
#define CHUNK_MAX_SIGNATURE 512
#define CHUNK_MAX_DOC 1024
#define CHUNK_MAX_SKELETON 2048
#define CHUNK_MAX_SYMBOLS 2048
#define CHUNK_MAX_PARENTS 512
#define CHUNK_NO_PARENT UINT32_MAX

typedef struct chunk_item {
  lang_kind kind;
  uint32_t start, end;           /* bytes of the file */
  uint32_t start_line, end_line; /* from 1, inclusive; end_line is that of the last byte which is not white space */
  uint32_t line;                 /* where the definition itself begins, behind its comments; else start_line */
  uint32_t parent;               /* the chunk of the class, section, ... around it, or CHUNK_NO_PARENT */
  uint32_t part, parts;          /* 0 of 1; pieces of a long definition are 0..parts-1. Only part 0 has doc and skeleton */
  lode_str name;                 /* absent strings are empty, never NULL */
  lode_str signature;            /* one line: "static int walk_step(walk *w)"; of a section its heading */
  lode_str doc;                  /* comments before it, or its docstring, without their signs */
  lode_str parents;              /* names around it from the outside in: "store Connection"; sections: "Guide > Use" */
  lode_str skeleton;             /* one line for each member that is a chunk of its own */
  lode_str symbols;              /* names defined inside that are no chunks: one a line */
} chunk_item;

typedef struct chunk_list {
  chunk_item *items;
  size_t n, cap;
  mem_arena strings;
  bool failed; /* while it is made: memory was short for a string */
} chunk_list; /* zeroed is empty */

typedef struct chunk_options {
  uint32_t max_bytes;  /* longer chunks are cut; 0 = 2,400; 256 to 65,536 */
  uint32_t min_bytes;  /* shorter definitions stay with their neighbours if they have less than 3 lines; 0 = 160 */
} chunk_options;

void chunk_list_release(chunk_list *list);
void chunk_list_clear(chunk_list *list); /* keeps memory */

/* Without a grammar, in this process: documents by their headings, everything else by paragraphs and lines. Never fails on
 * any bytes but for memory, or a text of more than LANG_MAX_TEXT (LODE_LIMIT). */
LODE_MUST lode_status chunk_plain(const lang_info *language, lode_str text, const chunk_options *options,
                                        chunk_list *list, lode_error *err);

/* The invariants above, of a list that is said to belong to a text of that many bytes. NULL when they hold, else which does not. */
const char *chunk_list_problem(const chunk_list *list, size_t text_bytes);

/* As bytes between processes. Decoding trusts nothing: LODE_CORRUPT. */
void chunk_list_encode(const chunk_list *list, strbuf *out);
LODE_MUST lode_status chunk_list_decode(lode_str bytes, size_t text_bytes, chunk_list *list, lode_error *err);

#endif
