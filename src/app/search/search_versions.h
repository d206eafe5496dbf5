/* SPDX-License-Identifier: Apache-2.0 */
/* search_versions.h - which of the chunks that were found are their files', in a store whose files have versions
 * (indexer/file_version.h). A file is seen as it was or as it is, never half of it.
 *
 * After the chunks were found, the records of their files are read. A chunk of another version is passed over. Were all
 * chunks of the version there when they were looked for? Surely if it is not young; or if the record named the same
 * version before they were looked for. Else the question is asked again: that is for the caller, who keeps what this
 * attempt saw for the next one. */
#ifndef LODE_SEARCH_SEARCH_VERSIONS_H
#define LODE_SEARCH_SEARCH_VERSIONS_H

#include "indexer/code_record.h"

typedef struct search_file_version {
  lode_str path;
  indexer_version version;
  bool there; /* the file has a record */
} search_file_version;

typedef struct search_versions {
  search_file_version *v; /* ordered by path */
  size_t n, cap;
  mem_arena arena;
} search_versions;

void search_versions_init(search_versions *seen);
void search_versions_release(search_versions *seen);
/* Reads the records of the chunks' files, those that are not known yet. */
LODE_MUST lode_status search_versions_load(search_versions *seen, lode_collection *files, const lode_str *ids, size_t n,
                                           lode_error *err);
LODE_MUST lode_status search_versions_load_rows(search_versions *seen, lode_collection *files, const lode_result *rows,
                                                lode_error *err);

typedef enum search_version_fit {
  SEARCH_VERSION_OTHER,  /* the chunk is not its file's */
  SEARCH_VERSION_UNSURE, /* it is, and others may not have been there yet when they were looked for */
  SEARCH_VERSION_FITS,
} search_version_fit;
/* `before` is what the attempt before saw, or NULL. *settled becomes false if another attempt may say more. */
search_version_fit search_versions_judge(const search_versions *seen, const search_versions *before, lode_str id,
                                         bool *settled);

#endif
