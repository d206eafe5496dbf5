/* context.h - what belongs to a piece of code: its definition, its neighbours in the file, and who uses its name. Reads the
 * index only; of the files it looks whether they are as they were.
 *
 * "Uses" are places where the name stands as a word of its own, in chunks other than its definitions: by words, not by types, so a
 * name that several things share shows the users of all of them.
 */
#ifndef LODE_SEARCH_CONTEXT_H
#define LODE_SEARCH_CONTEXT_H

#include "search/source_place.h"
#include "project/project.h"

typedef enum search_relation { SEARCH_RELATION_DEFINITION, SEARCH_RELATION_BEFORE, SEARCH_RELATION_AFTER, SEARCH_RELATION_USE } search_relation;
const char *search_relation_name(search_relation relation); /* "definition", "before", "behind", "use" */

typedef struct search_context_request {
  lode_str path;      /* as shown; absent: by name */
  uint32_t line;      /* 0: the file's first chunk */
  lode_str name;
  size_t limit;       /* uses, at most */
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
  uint64_t stale;     /* items whose files changed since they were indexed, or are gone */
  uint64_t outside;   /* records that were left out because their paths lead out of the project */
  bool doubted;       /* the index was made under other rules for secrets: indexer_stamp_display */
  bool more;          /* there are more uses than were asked for */
  mem_arena arena;
} search_context_result;

LODE_MUST lode_status search_context_find(const project_info *project, lode_store *store, const search_context_request *request,
                                         search_context_result *context, lode_error *err);
void search_context_result_release(search_context_result *context);

#endif
