/* test_killed.c - kill -9 at any system call of compact, restore and salvage.
 *
 * A child ends at call N, before it is made. What it leaves must be the whole thing or nothing that could be taken for it, and
 * the next try must get through.
 */
#include "fault.h"
#include "scene.h"
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 512, TRIES = 40 };

typedef struct ground {
  char base[400], work[420], backup[420], to[420];
  uint64_t content;
} ground;

static ground g;

static lode_status do_compact(lode_error *err) {
  lode_store *store;
  lode_open_options o = {.no_background = true};
  lode_status st = lode_open(g.work, &o, &store, err);
  if (st != LODE_OK) return st;
  st = lode_compact(store, (lode_progress){0}, err);
  lode_close(store);
  return st;
}

static lode_status do_restore(lode_error *err) { return lode_restore(g.backup, g.to, (lode_progress){0}, err); }

static lode_status do_salvage(lode_error *err) {
  return lode_salvage(g.base, g.to, NULL, NULL, (lode_progress){0}, NULL, err);
}

/* Runs it in a child that dies at call n (0: lives); returns the number of calls, or 0 if it died. */
static uint64_t run_until(lode_status (*operation)(lode_error *), uint64_t n) {
  int ends[2];
  uint64_t calls = 0;
  CHECK(pipe(ends) == 0);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    lode_error err = {0};
    fault_install(&lode__os_real);
    fault_set(FAULT_ANY, n, true, FAULT_EXIT);
    lode_status st = operation(&err);
    calls = fault_count(FAULT_ANY);
    fault_uninstall();
    if (st != LODE_OK) fprintf(stderr, "%s\n", err.text);
    if (st == LODE_OK && write(ends[1], &calls, sizeof calls) != sizeof calls) _exit(3);
    _exit(st == LODE_OK ? 0 : 4);
  }
  close(ends[1]);
  if (read(ends[0], &calls, sizeof calls) != sizeof calls) calls = 0;
  close(ends[0]);
  int status;
  CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
  CHECKF(WEXITSTATUS(status) != 4 && WEXITSTATUS(status) != 3, "call %llu: it failed instead of dying", (unsigned long long)n);
  return calls;
}

static uint64_t next_call(uint64_t n, uint64_t total) {
  if (test_full() || total <= TRIES) return n + 1;
  return n + 1 + test_below(2 * total / TRIES);
}

static void prepare(void) {
  lode_error err = {0};
  lode_store *store;
  snprintf(g.base, sizeof g.base, "%s/base", test_folder());
  snprintf(g.work, sizeof g.work, "%s-work", g.base);
  snprintf(g.backup, sizeof g.backup, "%s.backup", g.base);
  snprintf(g.to, sizeof g.to, "%s-to", g.base);
  scene_make(g.base, PAGE);
  g.content = scene_content(g.base);
  OK(lode_open(g.base, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_backup(store, g.backup, (lode_progress){0}, &err));
  lode_close(store);
}

TEST_SLOW(killed_in_compact, 600) {
  char what[100];
  prepare();
  test_copy_tree(g.base, g.work);
  uint64_t total = run_until(do_compact, 0);
  CHECK(total > 100);
  for (uint64_t n = 1; n <= total; n = next_call(n, total)) {
    test_remove_tree(g.work);
    test_copy_tree(g.base, g.work);
    (void)run_until(do_compact, n);
    snprintf(what, sizeof what, "compact killed at call %llu", (unsigned long long)n);
    CHECKF(scene_content(g.work) == g.content, "%s: the content changed", what);
    scene_verify(g.work, what);
    CHECKF(run_until(do_compact, 0), "%s: not to be done again", what);
    CHECKF(scene_content(g.work) == g.content, "%s: the content changed afterwards", what);
  }
}

/* Into g.to: it is whole, or no store is there and the next try makes it. */
static void killed_while_making(lode_status (*operation)(lode_error *), const char *name) {
  char what[100];
  lode_error err = {0};
  lode_store *store;
  prepare();
  uint64_t total = run_until(operation, 0);
  CHECK(total > 50);
  CHECK(scene_content(g.to) == g.content);
  for (uint64_t n = 1; n <= total; n = next_call(n, total)) {
    test_remove_tree(g.to);
    (void)run_until(operation, n);
    snprintf(what, sizeof what, "%s killed at call %llu", name, (unsigned long long)n);
    lode_status st = lode_open(g.to, &(lode_open_options){.no_background = true}, &store, &err);
    CHECKF(st == LODE_OK || st == LODE_NOT_FOUND, "%s: %s %s", what, lode_status_name(st), err.text);
    if (st == LODE_OK) lode_close(store);
    else CHECKF(run_until(operation, 0), "%s: not to be done again", what);
    CHECKF(scene_content(g.to) == g.content, "%s: another content", what);
    scene_verify(g.to, what);
  }
}

TEST_SLOW(killed_in_restore, 600) { killed_while_making(do_restore, "restore"); }
TEST_SLOW(killed_in_salvage, 600) { killed_while_making(do_salvage, "salvage"); }
