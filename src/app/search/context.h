/* SPDX-License-Identifier: Apache-2.0 */
/* context.h - what belongs to a piece of code: its definition, its neighbours in the file, and the uses of its name.
 * Reads only the index, and checks whether the files are unchanged.
 *
 * A "use" is a place where the name appears as a separate word, in a chunk that does not define it. Uses are found by
 * words, not by types: a name that several things share shows the uses of all of them.
 */
#ifndef LODE_SEARCH_CONTEXT_H
#define LODE_SEARCH_CONTEXT_H

#include "search/source_place.h"
#include "project/project.h"

typedef enum search_relation {
  SEARCH_RELATION_DEFINITION,
  SEARCH_RELATION_BEFORE,
  SEARCH_RELATION_AFTER,
  SEARCH_RELATION_USE,
} search_relation;
const char *search_relation_name(search_relation relation); /* "definition", "before", "behind", "use" */

typedef struct search_context_request {
  lode_str path; /* escaped; absent: by name */
  uint32_t line; /* 0: the file's first chunk */
  lode_str name;
  size_t limit; /* of uses */
} search_context_request;

typedef struct search_context_item {
  search_relation relation;
  lode_str path, language, kind, name, parents, snippet;
  uint32_t first, last, snippet_line;
  search_freshness freshness; /* of its file */
} search_context_item;

typedef struct search_context_result {
  search_context_item *items;
  size_t n, cap;
  uint64_t stale;   /* items whose files changed since they were indexed, or are gone */
  uint64_t outside; /* records left out because their paths lead out of the project */
  bool doubted;     /* the index was made with another mask policy or version: see indexer_stamp_display() */
  bool more;        /* there are more uses than the limit */
  mem_arena arena;
} search_context_result;

LODE_MUST lode_status search_context_find(const project_info *project, lode_store *store,
                                          const search_context_request *request, search_context_result *context,
                                          lode_error *err);
void search_context_result_release(search_context_result *context);

#endif
