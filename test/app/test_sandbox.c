/* SPDX-License-Identifier: Apache-2.0 */
/* test_sandbox.c - what a sandboxed process may still write: the store, and where crash reports go, but nothing that a
 * link there leads to. */
#include "worker/sandbox.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path_of(const char *folder, const char *name) {
  static char paths[8][700];
  static unsigned next;
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static const char *make_folder(const char *parent, const char *name) {
  const char *path = path_of(parent, name);
  CHECK(mkdir(path, 0700) == 0);
  return path;
}

static bool can_write(const char *folder, const char *name) {
  int fd = open(path_of(folder, name), O_WRONLY | O_CREAT, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

/* Applies to the rest of this process, which is the test's own. */
static void enter(const char *store, const char *crashes, const char *tmp) {
  char said[400];
  CHECK(setenv("TMPDIR", tmp, 1) == 0 && setenv("XDG_CACHE_HOME", tmp, 1) == 0);
  worker_sandbox_frontend(store, crashes, said, sizeof said);
  if (!strstr(said, "Landlock on")) test_skip("the kernel has no Landlock");
}

TEST(a_linked_folder_of_crash_reports_gives_no_rights_to_its_target) {
  const char *top = test_folder(), *store = make_folder(top, "store"), *outside = make_folder(top, "outside"),
             *tmp = make_folder(top, "tmp");
  const char *crashes = path_of(store, "crashes");
  CHECK(symlink(outside, crashes) == 0 && can_write(outside, "before"));
  enter(store, crashes, tmp);
  CHECK(can_write(store, "inside"));
  CHECKF(!can_write(outside, "after") && !can_write(crashes, "after"),
         "the target of a link in the store can be written to");
  CHECKF(unlink(path_of(outside, "before")) != 0, "a file behind a link in the store can be removed");
}

TEST(a_folder_of_crash_reports_elsewhere_can_be_written_to) {
  const char *top = test_folder(), *store = make_folder(top, "store"), *state = make_folder(top, "state"),
             *tmp = make_folder(top, "tmp");
  enter(store, state, tmp);
  CHECK(can_write(store, "a") && can_write(state, "a") && can_write(tmp, "a") && !can_write(top, "a"));
}
