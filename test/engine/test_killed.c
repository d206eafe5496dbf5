/* SPDX-License-Identifier: Apache-2.0 */
/* test_killed.c - kill -9 at any system call of compact, restore and salvage.
 *
 * A child ends at call N, before it is made. What it leaves must be the whole thing or nothing that could be taken for
 * it, and the next try must get through.
 */
#include "support/fault.h"
#include "support/scene.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

enum { PAGE = 512, TRIES = 40 };

typedef struct ground {
  char base[400], work[420], backup[420], to[420];
  uint64_t content;
} ground;

static ground g;

static lode_status do_compact(void *ctx, lode_error *err) {
  (void)ctx;
  lode_store *store;
  lode_open_options o = {.no_background = true};
  lode_status st = lode_open(g.work, &o, &store, err);
  if (st != LODE_OK) return st;
  st = lode_compact(store, (lode_progress){0}, err);
  lode_close(store);
  return st;
}

static lode_status do_restore(void *ctx, lode_error *err) {
  (void)ctx;
  return lode_restore(g.backup, g.to, (lode_progress){0}, err);
}

static lode_status do_salvage(void *ctx, lode_error *err) {
  (void)ctx;
  return lode_salvage(g.base, g.to, NULL, NULL, (lode_progress){0}, NULL, err);
}

static uint64_t run_until(fault_work *operation, uint64_t n) {
  return fault_in_child(operation, NULL, FAULT_ANY, n, FAULT_EXIT);
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
static void killed_while_making(fault_work *operation, const char *name) {
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
    if (st == LODE_OK)
      lode_close(store);
    else
      CHECKF(run_until(operation, 0), "%s: not to be done again", what);
    CHECKF(scene_content(g.to) == g.content, "%s: another content", what);
    scene_verify(g.to, what);
  }
}

TEST_SLOW(killed_in_restore, 600) { killed_while_making(do_restore, "restore"); }
TEST_SLOW(killed_in_salvage, 600) { killed_while_making(do_salvage, "salvage"); }
