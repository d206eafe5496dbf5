/* SPDX-License-Identifier: Apache-2.0 */
/* chunk_make.h - what the splitters share: adding to a list, cleaning strings, splitting long runs, numbering lines. */
#ifndef LODE_CHUNK_CHUNK_MAKE_H
#define LODE_CHUNK_CHUNK_MAKE_H

#include "chunk/chunk.h"

/* Options with defaults filled in and limits applied. */
chunk_options chunk_options_resolve(const chunk_options *options);

/* Appends a chunk; NULL strings become empty. NULL when out of memory. */
chunk_item *chunk_list_add(chunk_list *list, const chunk_item *chunk);

enum { CHUNK_STRING_ONE_LINE = 1 }; /* collapse each run of white space to one space */
/* A copy owned by the list: valid UTF-8 without NUL, truncated to max bytes at a character boundary, without white
 * space at either end. When out of memory: "", and list->failed is set. */
lode_str chunk_clean_string(chunk_list *list, lode_str bytes, size_t max, unsigned flags);
/* The text of comments without comment markers. */
lode_str chunk_clean_comment(chunk_list *list, lode_str bytes);

/* The most bytes of the next part of a text that is longer than max: not all of max if that would leave a remnant. */
uint32_t chunk_part_bytes(uint32_t size, uint32_t max);
/* Where to split text[start..end), which is longer than max: after start, at most max bytes on. Prefers a line that
 * is not indented after an empty line; then any line after an empty one, the least indented line, any line, a space,
 * a character. */
uint32_t chunk_split_point(lode_str text, uint32_t start, uint32_t end, uint32_t max);
/* Adds text[start..end) as one chunk like `shape`, or as several parts. */
LODE_MUST bool chunk_list_add_split(chunk_list *list, lode_str text, const chunk_item *shape, uint32_t start,
                                    uint32_t end, uint32_t max);

/* Sets start_line, end_line and line of all chunks. Before the call, `line` holds a byte offset. */
void chunk_number_lines(chunk_list *list, lode_str text);

#endif
