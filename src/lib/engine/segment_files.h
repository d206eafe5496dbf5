/* SPDX-License-Identifier: Apache-2.0 */
/* segment_files.h - the files of the vector index, opened for reading, and those that cannot be used (suspects):
 * segment_files.c. */
#ifndef LODE_ENGINE_SEGMENT_FILES_H
#define LODE_ENGINE_SEGMENT_FILES_H

#include "base/refcount.h"
#include "index/segment.h"
#include "store/store.h"

#include <pthread.h>

/* Progress of this handle's builder, for statistics. */
typedef struct engine_build_progress {
  _Atomic uint64_t done, total; /* rows; total 0: idle */
  _Atomic uint64_t built;       /* segments built by this handle */
} engine_build_progress;

enum { ENGINE_MAX_SUSPECTS = 64 };

/* The vector index of a store, as one handle sees it. */
typedef struct engine_segments {
  store_db *db;
  const lode_open_options *options;
  void (*wake)(void *ctx); /* there is work for the builder */
  void *wake_ctx;
  engine_build_progress progress;
  _Atomic uint64_t damaged; /* files that this handle has found to be damaged */
  pthread_mutex_t lock;     /* guards the suspects */
  /* Ids of segments that cannot be used: until the builder has checked them, the truth file is read instead. */
  uint64_t suspects[ENGINE_MAX_SUSPECTS];
  /* When to use a suspect again: set after a failed read, which proves no damage. 0: never. */
  uint64_t suspect_expires_ns[ENGINE_MAX_SUSPECTS];
  atomic_size_t n_suspects;
} engine_segments;
void engine_segments_init(engine_segments *segments, store_db *db, void (*wake)(void *ctx), void *wake_ctx);
void engine_segments_release(engine_segments *segments);
/* In a forked child: a thread that does not exist there may have held the lock. */
void engine_segments_after_fork(engine_segments *segments);

/* An open segment file, shared by snapshots. */
typedef struct engine_segment {
  atomic_uint refs;
  engine_segments *segments;
  store_manifest_row row;
  index_segment *segment;
  int fd;
} engine_segment;
/* Opens the file of a manifest row, in the transaction that read the row: a published file exists as long as its row
 * does. *seg is NULL, with LODE_OK, if it is missing, damaged or suspect: its vectors are then read from the truth
 * file, and the builder is woken. */
LODE_MUST lode_status engine_segment_open(engine_segments *segments, const store_manifest_row *row,
                                          engine_segment **seg, lode_error *err);
/* The same, but reports what is wrong. */
LODE_MUST lode_status engine_segment_open_checked(engine_segments *segments, const store_manifest_row *row,
                                                  engine_segment **seg, lode_error *err);
engine_segment *engine_segment_ref(engine_segment *seg);
void engine_segment_release(engine_segment *seg);
#define ENGINE_SEGMENT_NAME_MAX 64
/* relative to the store's folder */
void engine_segment_name(char name[ENGINE_SEGMENT_NAME_MAX], uint64_t id, const char *ending);
char *engine_segment_path(const engine_segments *segments, uint64_t id,
                          const char *ending); /* for messages; freed by the caller */
/* Marks a segment as unusable until the builder has checked it. `st`: after LODE_IO, a failure of the medium or the
 * system, the file is tried again some seconds later; anything else is damage, and this handle does not use it
 * again. */
void engine_segment_suspect(engine_segments *segments, uint64_t id, lode_status st, const char *why);
/* The same for a missing file, which is no damage. */
void engine_segment_missing(engine_segments *segments, uint64_t id);
bool engine_segment_is_missing(const engine_segments *segments, uint64_t id);
bool engine_segment_is_suspect(engine_segments *segments, uint64_t id);
void engine_segment_clear_suspect(engine_segments *segments, uint64_t id);

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
