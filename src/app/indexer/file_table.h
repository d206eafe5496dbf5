/* SPDX-License-Identifier: Apache-2.0 */
/* file_table.h - the state of each indexed file during an index run: the collection "files" in memory, as a table by
 * path.
 *
 * Takes about 100 bytes and the path per file. A walk marks the entries that it visits; those in its scope without
 * the mark are gone from the tree. */
#ifndef LODE_INDEXER_FILE_TABLE_H
#define LODE_INDEXER_FILE_TABLE_H

#include "indexer/code_record.h"

typedef struct indexer_file_entry {
  lode_str path; /* escaped; NUL-terminated */
  indexer_file_state file;
  uint32_t mark; /* the walk that visited it last */
  bool gone;     /* removed; the slot stays in use */
} indexer_file_entry;

typedef struct indexer_file_table {
  indexer_file_entry *items;
  size_t n, cap;
  uint32_t *table;   /* 1 + position in items, by hash of the path; 0: free */
  size_t table_size; /* a power of two, or 0 */
  mem_arena paths;
  uint64_t cursor; /* of the collection when it was read */
  uint32_t mark;   /* of the current walk */
} indexer_file_table;

void indexer_file_table_release(indexer_file_table *state);
/* Reads the collection again. */
LODE_MUST lode_status indexer_file_table_load(indexer_file_table *state, lode_collection *files, lode_progress progress,
                                              lode_error *err);
/* NULL when there is none. Valid until the next put. */
indexer_file_entry *indexer_file_table_find(indexer_file_table *state, lode_str path);
LODE_MUST lode_status indexer_file_table_put(indexer_file_table *state, lode_str path, const indexer_file_state *file,
                                             lode_error *err);
void indexer_file_table_remove(indexer_file_table *state, indexer_file_entry *entry);

#endif
