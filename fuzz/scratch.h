/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.h - a folder in memory for the fuzz targets that need a store. Removed when the process ends; syncs do
 * nothing. */
#ifndef LODE_FUZZ_SCRATCH_H
#define LODE_FUZZ_SCRATCH_H

#include "os/os.h"
#include "lode.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static inline void require(bool truth, const char *what) {
  if (truth) return;
  fprintf(stderr, "not true: %s\n", what);
  abort();
}
#define REQUIRE(cond) require((cond), #cond)

static char scratch[256]; /* the folder; the store is "store" in it */

static inline void scratch_store(char *path, size_t size) { snprintf(path, size, "%s/store", scratch); }

/* Removes the files of a folder in it, and the folder. */
static inline void scratch_remove(const char *name) {
  char folder[300], path[600];
  snprintf(folder, sizeof folder, "%s/%s", scratch, name);
  DIR *d = opendir(folder);
  for (struct dirent *e; d && (e = readdir(d));) {
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    unlink(path);
  }
  if (d) closedir(d);
  rmdir(folder);
}

static inline void scratch_clear(void) { scratch_remove("store"); }

/* Writes a file into the folder "store", which is made where there is none. */
static inline void scratch_put(const char *name, const uint8_t *data, size_t size) {
  char path[600];
  scratch_store(path, sizeof path);
  (void)mkdir(path, 0700);
  snprintf(path, sizeof path, "%s/store/%s", scratch, name);
  FILE *f = fopen(path, "wb");
  REQUIRE(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
}

static inline void scratch_end(void) {
  scratch_clear();
  scratch_remove("copy");
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
