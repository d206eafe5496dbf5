/* context.h - what belongs to a piece of code: its definition, its neighbours in the file, and who uses its name. Reads the
 * index only; of the files it looks whether they are as they were.
 *
 * "Uses" are places where the name stands as a word of its own, in chunks other than its definitions: by words, not by types, so a
 * name that several things share shows the users of all of them.
 */
#ifndef LODE_CODE_CONTEXT_H
#define LODE_CODE_CONTEXT_H

#include "code/place.h"
#include "code/project.h"

typedef enum lode__relation { LODE__RELATION_HERE, LODE__RELATION_BEFORE, LODE__RELATION_BEHIND, LODE__RELATION_USE } lode__relation;
const char *lode__relation_name(lode__relation relation); /* "definition", "before", "behind", "use" */

typedef struct lode__context_request {
  lode_str path;      /* as shown; absent: by name */
  uint32_t line;      /* 0: the file's first chunk */
  lode_str name;
  size_t limit;       /* uses, at most */
} lode__context_request;

typedef struct lode__context_item {
  lode__relation relation;
  lode_str path, language, kind, name, parents, snippet;
  uint32_t first, last, snippet_line;
  lode__freshness freshness; /* of its file */
} lode__context_item;

typedef struct lode__context {
  lode__context_item *items;
  size_t n, cap;
  uint64_t stale;     /* items whose files changed since they were indexed, or are gone */
  uint64_t outside;   /* records that were left out because their paths lead out of the project */
  bool doubted;       /* the index was made under other rules for secrets: lode__stamp_showing */
  bool more;          /* there are more uses than were asked for */
  mem_arena arena;
} lode__context;

LODE_MUST lode_status lode__context_find(const lode__project *project, lode_store *store, const lode__context_request *request,
                                         lode__context *context, lode_error *err);
void lode__context_release(lode__context *context);

#endif
