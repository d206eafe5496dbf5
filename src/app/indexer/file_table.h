/* file_table.h - what is known of each indexed file, in memory while an index run lasts: the collection "files" as a table by path.
 *
 * About 100 bytes and the path for each file. A walk marks the entries that it meets; what lies in its scope and was not met is gone. */
#ifndef LODE_INDEXER_FILE_TABLE_H
#define LODE_INDEXER_FILE_TABLE_H

#include "indexer/code_record.h"

typedef struct indexer_file_entry {
  lode_str path;          /* as shown; NUL behind */
  indexer_file_state file;
  uint32_t mark;          /* the walk that met it last */
  bool gone;              /* removed: the slot is left over */
} indexer_file_entry;

typedef struct indexer_file_table {
  indexer_file_entry *items;
  size_t n, cap;
  uint32_t *table;        /* positions + 1 in items by hash of the path; 0 = free */
  size_t table_size;      /* a power of two, or 0 */
  mem_arena paths;
  uint64_t cursor;        /* of the collection when it was read */
  uint32_t mark;          /* of the present walk */
} indexer_file_table;

void indexer_file_table_release(indexer_file_table *state);
/* Reads the collection anew. */
lode_status indexer_file_table_load(indexer_file_table *state, lode_collection *files, lode_progress progress, lode_error *err);
/* NULL when it is not known. Valid until the next put. */
indexer_file_entry *indexer_file_table_find(indexer_file_table *state, lode_str path);
lode_status indexer_file_table_put(indexer_file_table *state, lode_str path, const indexer_file_state *file, lode_error *err);
void indexer_file_table_remove(indexer_file_table *state, indexer_file_entry *known);

#endif
