/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.h - a folder in memory for the fuzz targets that need a store. Removed when the process ends; syncs do
 * nothing. */
#ifndef LODE_FUZZ_SCRATCH_H
#define LODE_FUZZ_SCRATCH_H

#include "os/os.h"
#include "lode.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void require(bool truth, const char *what) {
  if (truth) return;
  fprintf(stderr, "not true: %s\n", what);
  abort();
}
#define REQUIRE(cond) require((cond), #cond)

static char scratch[256]; /* the folder; the store is "store" in it */

static inline void scratch_store(char *path, size_t size) { snprintf(path, size, "%s/store", scratch); }

static inline void scratch_clear(void) {
  static const char *const names[] = {"lode.db", "lode.db-journal", "lode.lock"};
  char path[600];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/store/%s", scratch, names[i]);
    unlink(path);
  }
  scratch_store(path, sizeof path);
  rmdir(path);
}

static inline void scratch_end(void) {
  scratch_clear();
  rmdir(scratch);
}

static inline int scratch_no_sync(int fd) {
  (void)fd;
  return 0;
}

static inline void scratch_begin(void) {
  static os_calls table;
  const char *tmp = getenv("TMPDIR");
  if (!tmp || !*tmp) tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  table = os_real;
  table.fsync = table.fdatasync = scratch_no_sync;
  os_api = &table;
  snprintf(scratch, sizeof scratch, "%.200s/lode-fuzz-XXXXXX", tmp);
  REQUIRE(mkdtemp(scratch) != NULL);
  atexit(scratch_end);
}

#endif
