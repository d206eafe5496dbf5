/* SPDX-License-Identifier: Apache-2.0 */
/* segment_files.h - the files of the vector index, opened for reading, and those that cannot be used (suspects):
 * segment_files.c. */
#ifndef LODE_SEGMENTS_SEGMENT_FILES_H
#define LODE_SEGMENTS_SEGMENT_FILES_H

#include "base/refcount.h"
#include "index/segment.h"
#include "store/store.h"

#include <pthread.h>

/* Progress of this handle's builder, for statistics. */
typedef struct segments_build_progress {
  _Atomic uint64_t done, total; /* rows; total 0: idle */
  _Atomic uint64_t built;       /* segments built by this handle */
} segments_build_progress;

enum { SEGMENTS_MAX_SUSPECTS = 64 };

/* The vector index of a store, as one handle sees it. */
typedef struct segments_store {
  store_db *db;
  const lode_open_options *options;
  void (*wake)(void *ctx); /* there is work for the builder */
  void *wake_ctx;
  segments_build_progress progress;
  _Atomic uint64_t moved;   /* a segment most of whose vectors are not at their places any more; 0: none is known */
  _Atomic uint64_t damaged; /* files that this handle has found to be damaged */
  pthread_mutex_t lock;     /* guards the suspects */
  /* Ids of segments that cannot be used: until the builder has checked them, the database file is read instead. */
  uint64_t suspects[SEGMENTS_MAX_SUSPECTS];
  /* When to use a suspect again: set after a failed read, which proves no damage. 0: never. */
  uint64_t suspect_expires_ns[SEGMENTS_MAX_SUSPECTS];
  atomic_size_t n_suspects;
} segments_store;
void segments_init(segments_store *segments, store_db *db, void (*wake)(void *ctx), void *wake_ctx);
void segments_release(segments_store *segments);
/* In a forked child: a thread that does not exist there may have held the lock. */
void segments_after_fork(segments_store *segments);

/* An open segment file, shared by snapshots. */
typedef struct segments_file {
  atomic_uint refs;
  segments_store *segments;
  store_manifest_row row;
  index_segment *segment;
  int fd;
  int db_fd; /* the database file, where a placed segment's vectors are; -1: not needed, or not open */
} segments_file;
/* Opens the file of a manifest row, in the transaction that read the row: a published file exists as long as its row
 * does. *seg is NULL, with LODE_OK, if it is missing, damaged or suspect: its vectors are then read from the database
 * file, and the builder is woken. */
LODE_MUST lode_status segments_open(segments_store *segments, const store_manifest_row *row, segments_file **seg,
                                    lode_error *err);
/* The same, but reports what is wrong. */
LODE_MUST lode_status segments_open_checked(segments_store *segments, const store_manifest_row *row,
                                            segments_file **seg, lode_error *err);
segments_file *segments_file_ref(segments_file *seg);
void segments_file_release(segments_file *seg);
#define SEGMENTS_NAME_MAX 64
/* relative to the store's folder */
void segments_file_name(char name[SEGMENTS_NAME_MAX], uint64_t id, const char *ending);
char *segments_file_path(const segments_store *segments, uint64_t id,
                         const char *ending); /* for messages; freed by the caller */
/* Marks a segment as unusable until the builder has checked it. `st`: if the bytes are wrong, or it is not a
 * regular file, this handle does not use it again. Anything else is a failure of the medium or the system (LODE_IO,
 * LODE_LIMIT): the file is tried again some seconds later. */
void segments_suspect(segments_store *segments, uint64_t id, lode_status st, const char *why);
/* The same for a missing file, which is no damage. */
void segments_mark_missing(segments_store *segments, uint64_t id);
bool segments_is_missing(const segments_store *segments, uint64_t id);
bool segments_is_suspect(segments_store *segments, uint64_t id);
/* If vectors of a placed segment were missed at their places at least this often, the builder rebuilds it. */
void segments_note_moved(const segments_file *seg, uint64_t times);
void segments_clear_suspect(segments_store *segments, uint64_t id);

/* A bitmap of a segment's slots; shared by snapshots and immutable once it is. */
typedef struct segments_slots {
  atomic_uint refs;
  size_t n; /* number of bits set */
  size_t words;
  uint64_t bits[];
} segments_slots;
segments_slots *segments_slots_new(uint32_t rows, bool set);
segments_slots *segments_slots_ref(segments_slots *slots); /* NULL is allowed, here and below */
void segments_slots_release(segments_slots *slots);

#endif
