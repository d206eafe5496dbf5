/* SPDX-License-Identifier: Apache-2.0 */
/* indexed_file.h - lines of a file as it was indexed, put together from its chunks, which are a partition of its text.
 * Only the store is read. The cost depends on the lines asked for, not on the size of the file.
 */
#ifndef LODE_SEARCH_INDEXED_FILE_H
#define LODE_SEARCH_INDEXED_FILE_H

#include "project/project.h"

#define SEARCH_INDEXED_MAX_BYTES (4u << 20) /* of the text; what does not fit is left out at its end */

typedef struct search_indexed_file {
  lode_str language, text; /* text: the lines, with their ends */
  uint32_t first, last;    /* of the text, from 1 */
  uint32_t lines;          /* of the file: the last that is not blank */
  lode_str before;         /* what comes before the first line in the same chunk: for lexers */
  strbuf bytes, name;      /* owner of the above */
} search_indexed_file;

/* LODE_NOT_FOUND: the file, or the line `first`, is not in the index. `path` is escaped. */
LODE_MUST lode_status search_indexed_file_read(const project_info *project, lode_store *store, lode_str path,
                                               uint32_t first, uint32_t last, search_indexed_file *file,
                                               lode_error *err);
void search_indexed_file_release(search_indexed_file *file);

#endif
