/* chunk_make.h - what the chunkers share: adding to a list, cleaning strings, cutting long runs, counting lines. */
#ifndef LODE_CHUNK_CHUNK_MAKE_H
#define LODE_CHUNK_CHUNK_MAKE_H

#include "chunk/chunk.h"

/* The options with their defaults and bounds. */
chunk_options chunk_options_resolve(const chunk_options *options);

/* Appends; strings that are NULL become empty. NULL when out of memory. */
chunk_item *chunk_list_add(chunk_list *list, const chunk_item *chunk);

enum { CHUNK_STRING_ONE_LINE = 1 }; /* white space of any length becomes one space */
/* A copy in the list's memory: valid UTF-8 without NUL, at most max bytes, cut at a character, without white space at
 * either end. When memory is short it is empty, and the list has failed. */
lode_str chunk_clean_string(chunk_list *list, lode_str bytes, size_t max, unsigned flags);
/* The text of comments without their signs. */
lode_str chunk_clean_comment(chunk_list *list, lode_str bytes);

/* Where to cut text[start..end), which is longer than max: behind start, at most max bytes on; at an empty line before
 * a line that is not indented if possible, else an empty line, the least indented line, any line, a space, a character. */
uint32_t chunk_split_point(lode_str text, uint32_t start, uint32_t end, uint32_t max);
/* Adds text[start..end) as one chunk like `shape`, or as several parts. */
LODE_MUST bool chunk_list_add_split(chunk_list *list, lode_str text, const chunk_item *shape, uint32_t start, uint32_t end,
                                   uint32_t max);

/* Before it `line` of a chunk is a byte's position; sets start_line, end_line and line of all. */
void chunk_number_lines(chunk_list *list, lode_str text);

#endif
