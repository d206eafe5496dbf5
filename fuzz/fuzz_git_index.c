/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_git_index.c - any bytes as git's index file, with ids of either length: an answer, and one that does not depend
 * on how often it is asked; a folder that is tracked keeps being so when nothing is left out. */
#include "scan/git_index.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth) {
  if (!truth) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const except[] = {"config.json", ".gitignore", NULL};
  int fd = memfd_create("index", MFD_CLOEXEC);
  require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
  for (size_t oid = 20; oid <= 32; oid += 12) {
    git_index_query q = {.below = {".lode", 5}, .except = except, .oid_bytes = oid},
                    all = {.below = {".lode", 5}, .oid_bytes = oid};
    git_index_query quick = {.below = {".lode", 5}, .except = except, .oid_bytes = oid, .quick = true};
    git_index_answer a, b, c, d;
    git_index_read(fd, size, &q, &a);
    git_index_read(fd, size, &q, &b);
    git_index_read(fd, size, &all, &c);
    git_index_read(fd, size, &quick, &d);
    require(a.tracked == b.tracked && a.split == b.split);
    require(a.tracked != GIT_TRACKED_YES || c.tracked == GIT_TRACKED_YES);
    require(a.tracked != GIT_TRACKED_NO || d.tracked == GIT_TRACKED_NO); /* what is quickly found is there */
    require((a.tracked == GIT_TRACKED_UNKNOWN) == (c.tracked == GIT_TRACKED_UNKNOWN));
  }
  close(fd);
  return 0;
}
