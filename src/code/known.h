/* known.h - what is known of each indexed file, in memory while an index run lasts: the collection "files" as a table by path.
 *
 * About 100 bytes and the path for each file. A walk marks the entries that it meets; what lies in its scope and was not met is gone. */
#ifndef LODE_CODE_KNOWN_H
#define LODE_CODE_KNOWN_H

#include "code/record.h"

typedef struct lode__known {
  lode_str path;          /* as shown; NUL behind */
  lode__file_state file;
  uint32_t mark;          /* the walk that met it last */
  bool gone;              /* removed: the slot is left over */
} lode__known;

typedef struct lode__known_files {
  lode__known *items;
  size_t n, cap;
  uint32_t *table;        /* positions + 1 in items by hash of the path; 0 = free */
  size_t table_size;      /* a power of two, or 0 */
  mem_arena paths;
  uint64_t cursor;        /* of the collection when it was read */
  uint32_t mark;          /* of the present walk */
} lode__known_files;

void lode__known_release(lode__known_files *state);
/* Reads the collection anew. */
lode_status lode__known_load(lode__known_files *state, lode_collection *files, lode_progress progress, lode_error *err);
/* NULL when it is not known. Valid until the next put. */
lode__known *lode__known_find(lode__known_files *state, lode_str path);
lode_status lode__known_put(lode__known_files *state, lode_str path, const lode__file_state *file, lode_error *err);
void lode__known_remove(lode__known_files *state, lode__known *known);

#endif
