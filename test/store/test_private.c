/* SPDX-License-Identifier: Apache-2.0 */
/* test_private.c - temporary folders: whose process was killed, those go; all others stay. */
#include "lode.h"
#include "repair/repair_internal.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool exists(const char *path) {
  struct stat sb;
  return lstat(path, &sb) == 0;
}

static unsigned count_folders(const char *tmp) {
  unsigned n = 0;
  os_dir *folder = os_dir_open(tmp);
  CHECK(folder);
  for (const char *name; (name = os_dir_next(folder)) != NULL;) n += strncmp(name, "lode-private-", 13) == 0;
  os_dir_close(folder);
  return n;
}

/* A process that makes a folder with files in it and is killed. */
static void leave_one(bool with_mark) {
  lode_error err = {0};
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    repair_tmpdir p;
    char path[600];
    if (repair_tmpdir_create(&p, &err) != LODE_OK) _exit(1);
    snprintf(path, sizeof path, "%s/lode.db", p.folder);
    test_write_file(path, "rest", 4);
    snprintf(path, sizeof path, "%s/lode.db-journal", p.folder);
    test_write_file(path, "rest", 4);
    snprintf(path, sizeof path, "%s/in-use", p.folder);
    if (!with_mark) unlink(path);
    raise(SIGKILL);
  }
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
}

TEST(folders_of_the_killed_are_swept) {
  lode_error err = {0};
  repair_tmpdir mine, next;
  const char *tmp = test_folder();
  CHECK(setenv("TMPDIR", tmp, 1) == 0);
  leave_one(true);
  leave_one(true); /* sweeps the first */
  CHECK(count_folders(tmp) == 1);
  OK(repair_tmpdir_create(&mine, &err));
  CHECK(count_folders(tmp) == 1 && exists(mine.folder));
  OK(repair_tmpdir_create(&next, &err)); /* mine is in use */
  CHECK(count_folders(tmp) == 2 && exists(mine.folder) && exists(next.folder));
  struct stat sb;
  CHECK(stat(mine.folder, &sb) == 0 && (sb.st_mode & 0777) == 0700);
  repair_tmpdir_remove(&next);
  repair_tmpdir_remove(&mine);
  repair_tmpdir_remove(&mine); /* a second time is nothing */
  CHECK(count_folders(tmp) == 0);
}

TEST(what_is_not_ours_stays) {
  lode_error err = {0};
  char path[800], target[700], file[800];
  const char *tmp = test_folder(), *elsewhere = test_folder();
  CHECK(setenv("TMPDIR", tmp, 1) == 0);
  /* a link to a folder that looks like one of ours, and a file of that name */
  snprintf(target, sizeof target, "%s/data", elsewhere);
  CHECK(mkdir(target, 0700) == 0);
  snprintf(file, sizeof file, "%s/lode.db", target);
  test_write_file(file, "precious", 8);
  snprintf(path, sizeof path, "%s/in-use", target);
  test_write_file(path, "", 0);
  snprintf(path, sizeof path, "%s/lode-private-link00", tmp);
  CHECK(symlink(target, path) == 0);
  snprintf(path, sizeof path, "%s/lode-private-file00", tmp);
  test_write_file(path, "x", 1);
  leave_one(false); /* made this very moment, for all that others can see */
  repair_tmpdir p;
  OK(repair_tmpdir_create(&p, &err));
  CHECK(exists(file) && exists(path) && count_folders(tmp) == 4);
  repair_tmpdir_remove(&p);
  CHECK(exists(file) && count_folders(tmp) == 3);
}

TEST(files_of_others_in_a_swept_folder_stay) {
  lode_error err = {0};
  char file[800] = "";
  const char *tmp = test_folder();
  CHECK(setenv("TMPDIR", tmp, 1) == 0);
  leave_one(true);
  os_dir *folder = os_dir_open(tmp);
  const char *name = os_dir_next(folder);
  snprintf(file, sizeof file, "%s/%s/notes.txt", tmp, name);
  test_write_file(file, "mine", 4);
  os_dir_close(folder);
  repair_tmpdir p;
  OK(repair_tmpdir_create(&p, &err));
  CHECK(exists(file));
  repair_tmpdir_remove(&p);
}
