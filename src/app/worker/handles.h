/* SPDX-License-Identifier: Apache-2.0 */
/* handles.h - open collections by uid, shared by the threads of a worker: opening one per call would cost a
 * transaction.
 *
 * At most WORKER_MAX_HANDLES stay open; the least recently used one is closed. A handle returns LODE_NOT_FOUND after
 * its collection was dropped, by any process: released as stale, it is not handed out again.
 */
#ifndef LODE_WORKER_HANDLES_H
#define LODE_WORKER_HANDLES_H

#include "base/base.h"

#define WORKER_MAX_HANDLES 256

typedef struct worker_handles worker_handles;
typedef struct worker_handle {
  lode_collection *collection;
  uint64_t uid;
  lode_str name, metadata; /* when it was opened */
  /* private to handles.c */
  unsigned users;
  bool stale;
  uint64_t used;
  struct worker_handle *next;
} worker_handle;

worker_handles *worker_handles_new(void);
void worker_handles_free(worker_handles *handles);
LODE_MUST lode_status worker_handles_acquire(worker_handles *handles, lode_store *store, uint64_t uid,
                                             worker_handle **handle, lode_error *err);
void worker_handles_release(worker_handles *handles, worker_handle *handle, bool stale);

#endif
