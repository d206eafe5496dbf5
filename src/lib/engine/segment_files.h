/* SPDX-License-Identifier: Apache-2.0 */
/* segment_files.h - the files of the vector index, opened for reading, and those that cannot be used (suspects):
 * segment_files.c. */
#ifndef LODE_ENGINE_SEGMENT_FILES_H
#define LODE_ENGINE_SEGMENT_FILES_H

#include "engine/engine.h"
#include "index/segment.h"

/* An open segment file, shared by snapshots. */
typedef struct engine_segment {
  atomic_uint refs;
  engine_store *store;
  store_manifest_row row;
  index_segment *segment;
  int fd;
} engine_segment;
/* Opens the file of a manifest row, in the transaction that read the row: a published file exists as long as its row
 * does. *seg is NULL, with LODE_OK, if it is missing, damaged or suspect: its vectors are then read from the truth
 * file, and the builder is woken. */
LODE_MUST lode_status engine_segment_open(engine_store *store, const store_manifest_row *row, engine_segment **seg,
                                          lode_error *err);
/* The same, but reports what is wrong. */
LODE_MUST lode_status engine_segment_open_checked(engine_store *store, const store_manifest_row *row,
                                                  engine_segment **seg, lode_error *err);
engine_segment *engine_segment_ref(engine_segment *seg);
void engine_segment_release(engine_segment *seg);
#define ENGINE_SEGMENT_NAME_MAX 64
/* relative to the store's folder */
void engine_segment_name(char name[ENGINE_SEGMENT_NAME_MAX], uint64_t id, const char *ending);
char *engine_segment_path(const engine_store *store, uint64_t id,
                          const char *ending); /* for messages; freed by the caller */
/* Marks a segment as unusable until the builder has checked it. `st`: after LODE_IO, a failure of the medium or the
 * system, the file is tried again some seconds later; anything else is damage, and this handle does not use it
 * again. */
void engine_segment_suspect(engine_store *store, uint64_t id, lode_status st, const char *why);
/* The same for a missing file, which is no damage. */
void engine_segment_missing(engine_store *store, uint64_t id);
bool engine_segment_is_missing(const engine_store *store, uint64_t id);
bool engine_segment_is_suspect(engine_store *store, uint64_t id);
void engine_segment_clear_suspect(engine_store *store, uint64_t id);

/* A bitmap of a segment's slots; shared by snapshots and immutable once it is. */
typedef struct engine_slot_set {
  atomic_uint refs;
  size_t n; /* number of bits set */
  size_t words;
  uint64_t bits[];
} engine_slot_set;
engine_slot_set *engine_slot_set_new(uint32_t rows, bool set);
engine_slot_set *engine_slot_set_ref(engine_slot_set *slots); /* NULL is allowed, here and below */
void engine_slot_set_release(engine_slot_set *slots);

#endif
