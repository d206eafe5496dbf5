/* SPDX-License-Identifier: Apache-2.0 */
/* test_palace_files.c - the files of a palace that are not Chroma's: a copy killed at every rename, a graph that is
 * written all the time, pipes and links where the copies go. */
#include "base/base.h"
#include "os/os.h"
#include "rescue/rescue.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static lode_error err;
static char from[600], to[600];

static void put(const char *folder, const char *name, const char *text) {
  char path[1300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static bool holds(const char *folder, const char *name, const char *text) {
  char path[1300], got[100] = "";
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "r");
  if (!f) return false;
  size_t n = fread(got, 1, sizeof got - 1, f);
  got[n] = '\0';
  fclose(f);
  return strcmp(got, text) == 0;
}

static bool is_there(const char *folder, const char *name) {
  char path[1300];
  struct stat st;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return lstat(path, &st) == 0;
}

static void make_palace(const char *name) {
  const char *base = test_folder();
  snprintf(from, sizeof from, "%s/%s-from", base, name);
  snprintf(to, sizeof to, "%s/%s-to", base, name);
  char sub[700];
  snprintf(sub, sizeof sub, "%s/notes", from);
  CHECK(mkdir(from, 0755) == 0 && mkdir(to, 0700) == 0 && mkdir(sub, 0755) == 0);
  put(from, "knowledge_graph.sqlite3", "graph");
  put(from, "knowledge_graph.sqlite3-wal", "log");
  put(from, "config.json", "{}");
  put(sub, "a.md", "note");
}

static lode_status copy(rescue_palace_report *report) {
  rescue_palace_request request = {.from = from, .to = to};
  *report = (rescue_palace_report){0};
  return rescue_palace_files(&request, report, &err);
}

/* ---- Killed ---- */

static int renames_left;
static int killing_rename(int from_dir, const char *a, int to_dir, const char *b) {
  if (renames_left-- == 0) _exit(99);
  return os_real.rename_at(from_dir, a, to_dir, b);
}

TEST(a_copy_killed_before_any_rename_is_completed_by_the_next) {
  int died = 1;
  for (int n = 0; died; n++) {
    char name[20];
    int status;
    rescue_palace_report report;
    snprintf(name, sizeof name, "kill%d", n);
    make_palace(name);
    pid_t child = fork();
    if (child == 0) {
      os_calls table = os_real;
      table.rename_at = killing_rename;
      renames_left = n;
      os_api = &table;
      _exit(copy(&report) == LODE_OK ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    died = WEXITSTATUS(status) == 99;
    CHECK(died || WEXITSTATUS(status) == 0);
    CHECK(n < 20);
    /* a database never stands beside a log of another moment: meanwhile the palace went on */
    put(from, "knowledge_graph.sqlite3-wal", "newer log");
    bool database = is_there(to, "knowledge_graph.sqlite3");
    OK(copy(&report));
    CHECK(holds(to, "knowledge_graph.sqlite3", "graph") && holds(to, "config.json", "{}") &&
          holds(to, "notes/a.md", "note"));
    CHECKF(holds(to, "knowledge_graph.sqlite3-wal", database ? "log" : "newer log"), "killed at rename %d", n);
    CHECK(!is_there(to, "knowledge_graph.sqlite3.lode-part") && !is_there(to, "config.json.lode-part"));
  }
}

/* ---- Written all the time ---- */

static unsigned closes, quiet_after;
static int writing_close(int fd) {
  static const char log[] = "a log that is longer after each write, for two writes may be in one tick of the clock";
  int rc = os_real.close(fd);
  closes++;
  if (closes < quiet_after) put(from, "knowledge_graph.sqlite3-wal", log + sizeof log - 1 - closes % (sizeof log - 1));
  return rc;
}

TEST(a_graph_that_is_written_all_the_time_is_busy_and_one_that_rests_is_copied) {
  rescue_palace_report report;
  os_calls table = os_real;
  table.close = writing_close;
  make_palace("busy");
  os_api = &table;
  quiet_after = UINT32_MAX;
  closes = 0;
  lode_status st = copy(&report);
  os_api = &os_real;
  CHECKF(st == LODE_BUSY && strstr(err.text, "stop MemPalace"), "%d %s", st, err.text);
  CHECK(!is_there(to, "knowledge_graph.sqlite3") && !is_there(to, "knowledge_graph.sqlite3-wal"));
  CHECK(!is_there(to, "knowledge_graph.sqlite3.lode-part") && !is_there(to, "knowledge_graph.sqlite3-wal.lode-part"));
  os_api = &table;
  quiet_after = 5; /* during the first attempt */
  closes = 0;
  st = copy(&report);
  os_api = &os_real;
  CHECKF(st == LODE_OK, "%s", err.text);
  CHECK(holds(to, "knowledge_graph.sqlite3", "graph") && is_there(to, "knowledge_graph.sqlite3-wal"));
}

/* ---- Written twice in one tick of the clock ---- */

/* The log is replaced, with the same size and time, after it was copied and before the copies are compared. */
static int tick_close(int fd) {
  char path[1300];
  struct stat st;
  int rc = os_real.close(fd);
  snprintf(path, sizeof path, "%s/knowledge_graph.sqlite3-wal", from);
  char part[1300];
  snprintf(part, sizeof part, "%s/knowledge_graph.sqlite3-wal.lode-part", to);
  if (closes == 0 && lstat(part, &st) == 0 && st.st_size == 3 && lstat(path, &st) == 0) {
    struct timespec times[2] = {st.st_atim, st.st_mtim};
    closes++;
    put(from, "knowledge_graph.sqlite3-wal", "LOG");
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
  }
  return rc;
}

TEST(a_file_that_is_written_twice_in_one_tick_with_the_same_size_has_changed) {
  rescue_palace_report report;
  os_calls table = os_real;
  table.close = tick_close;
  make_palace("tick");
  closes = 0;
  os_api = &table;
  lode_status st = copy(&report);
  os_api = &os_real;
  CHECKF(st == LODE_OK && closes == 1, "%d %s", st, err.text);
  CHECK(holds(to, "knowledge_graph.sqlite3-wal", "LOG") && holds(to, "knowledge_graph.sqlite3", "graph"));
}

/* ---- Pipes and links where the copies go ---- */

TEST(pipes_and_links_in_the_new_palace_are_not_written_through) {
  rescue_palace_report report;
  char path[1300], outside[700];
  make_palace("odd");
  snprintf(outside, sizeof outside, "%s-outside", to);
  CHECK(mkdir(outside, 0700) == 0);
  put(outside, "victim", "mine");
  snprintf(path, sizeof path, "%s/config.json", to);
  CHECK(mkfifo(path, 0600) == 0); /* of the name of a file */
  OK(copy(&report));
  CHECK(holds(to, "knowledge_graph.sqlite3", "graph") && holds(to, "knowledge_graph.sqlite3-wal", "log"));
  CHECK(report.kept == 1);
  /* one in the place of a part is refused: nothing of ours made it */
  make_palace("pipe");
  snprintf(path, sizeof path, "%s/config.json.lode-part", to);
  CHECK(mkfifo(path, 0600) == 0);
  FAILS(LODE_REFUSED, copy(&report));
  make_palace("part");
  char victim[800];
  snprintf(victim, sizeof victim, "%s/victim", outside);
  snprintf(path, sizeof path, "%s/config.json.lode-part", to);
  CHECK(symlink(victim, path) == 0);
  FAILS(LODE_REFUSED, copy(&report));
  CHECK(holds(outside, "victim", "mine"));
  /* a folder that is a link elsewhere */
  make_palace("linked");
  snprintf(path, sizeof path, "%s/notes", to);
  CHECK(symlink(outside, path) == 0);
  CHECK(copy(&report) != LODE_OK && err.text[0]);
  CHECK(!is_there(outside, "a.md"));
}
