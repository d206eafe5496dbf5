/* chunk_make.h - what the chunkers share: adding to a list, cleaning strings, cutting long runs, counting lines. */
#ifndef LODE_CODE_CHUNK_MAKE_H
#define LODE_CODE_CHUNK_MAKE_H

#include "code/chunk.h"

/* The options with their defaults and bounds. */
lode__chunk_options lode__chunk_bounds(const lode__chunk_options *options);

/* Appends; strings that are NULL become empty. NULL when out of memory. */
lode__chunk *lode__chunk_add(lode__chunk_list *list, const lode__chunk *chunk);

enum { LODE__STRING_LINE = 1 }; /* white space of any length becomes one space */
/* A copy in the list's memory: valid UTF-8 without NUL, at most max bytes, cut at a character, without white space at
 * either end. When memory is short it is empty, and the list has failed. */
lode_str lode__chunk_string(lode__chunk_list *list, lode_str bytes, size_t max, unsigned flags);
/* The text of comments without their signs. */
lode_str lode__chunk_comment(lode__chunk_list *list, lode_str bytes);

/* Where to cut text[start..end), which is longer than max: behind start, at most max bytes on; at an empty line before
 * a line that is not indented if possible, else an empty line, the least indented line, any line, a space, a character. */
uint32_t lode__chunk_cut(lode_str text, uint32_t start, uint32_t end, uint32_t max);
/* Adds text[start..end) as one chunk like `shape`, or as several parts. */
LODE_MUST bool lode__chunk_add_cut(lode__chunk_list *list, lode_str text, const lode__chunk *shape, uint32_t start, uint32_t end,
                                   uint32_t max);

/* Before it `line` of a chunk is a byte's position; sets start_line, end_line and line of all. */
void lode__chunk_number_lines(lode__chunk_list *list, lode_str text);

#endif
