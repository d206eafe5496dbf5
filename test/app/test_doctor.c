/* SPDX-License-Identifier: Apache-2.0 */
/* test_doctor.c - `lode doctor --repair`, killed at each call to the operating system of some kinds: what it leaves is
 * ignored by git, and the next run repairs the store. */
#include "table/op_args_code.h"
#include "support/fault.h"
#include "support/test.h"

#include <dirent.h>
#include <stdlib.h>

static lode_error err;
static char root[400];
static bool damaged; /* what the last run found */

static lode_status open_store(void *opener, const op_open_options *how, lode_store **store, lode_error *e) {
  lode_open_options options = {.create = how->create, .read_only = !how->write, .no_background = true};
  (void)opener;
  return lode_open(how->folder, &options, store, e);
}

static void close_store(void *opener, lode_store *store) {
  (void)opener;
  lode_close(store);
}

static int refused; /* which row the sink refuses; 0: none */

static lode_status take(op_sink *sink, op_row *row, lode_error *e) {
  (void)sink;
  (void)row;
  return refused && --refused == 0 ? err_set(e, LODE_IO, "refused") : LODE_OK;
}

static lode_status examine(bool repairs, lode_error *e) {
  op_sink sink = {.row = take, .summary = take};
  op_context ctx = {.open = open_store, .release = close_store, .sink = &sink};
  op_args args;
  TRY(op_args_init(&args, op_find(NULL, STR_LIT("doctor")), e));
  op_doctor_args *doctor = args.values;
  doctor->project = (op_arg_path){.set = true, .path = root};
  doctor->repair = (op_arg_flag){.set = true, .on = repairs};
  lode_status st = op_run(&ctx, &args, e);
  damaged = ctx.damaged;
  op_args_release(&args);
  return st;
}

static lode_status repair(void *ctx, lode_error *e) {
  (void)ctx;
  return examine(true, e);
}

static void make_damaged_store(const char *folder) {
  lode_open_options options = {.create = true, .no_background = true};
  lode_collection_options create = {.create = true};
  lode_store *store;
  lode_collection *c;
  char path[600], id[20], text[400];
  size_t size;
  OK(lode_open(folder, &options, &store, &err));
  OK(lode_collection_open(store, STR_LIT("notes"), &create, &c, &err));
  memset(text, 'x', sizeof text);
  for (int i = 0; i < 400; i++) {
    snprintf(id, sizeof id, "%d", i);
    lode_record record = {.id = str_of(id), .document = {text, sizeof text}};
    OK(lode_add(c, NULL, &record, 1, LODE_FAIL_EXISTING, NULL, &err));
  }
  lode_collection_close(c);
  lode_close(store);
  snprintf(path, sizeof path, "%s/lode.db", folder);
  char *bytes = test_read_file(path, &size);
  for (size_t at = size / 2; at < size / 2 + 20000 && at < size; at += 500) bytes[at] ^= 1;
  test_write_file(path, bytes, size);
  free(bytes);
}

/* What is in the folder came after its .gitignore. */
static void check_ignored(const char *folder) {
  bool any = false, ignore = false;
  struct dirent *entry;
  DIR *dir = opendir(folder);
  CHECK(dir);
  while ((entry = readdir(dir)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    ignore = ignore || strcmp(entry->d_name, ".gitignore") == 0;
    any = any || strncmp(entry->d_name, ".gitignore", 10) != 0; /* it is written under another name first */
  }
  closedir(dir);
  CHECKF(!any || ignore, "git would list %s", folder);
}

static size_t check_leftovers(void) {
  struct dirent *entry;
  char path[700];
  size_t n = 0;
  DIR *dir = opendir(root);
  CHECK(dir);
  while ((entry = readdir(dir)) != NULL) {
    if (strncmp(entry->d_name, ".lode.new-", 10) != 0) continue;
    snprintf(path, sizeof path, "%s/%s", root, entry->d_name);
    check_ignored(path);
    n++;
  }
  closedir(dir);
  return n;
}

static void fresh_copy(void) {
  char command[2000];
  snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s' && cp -r '%s-damaged' '%s/.lode'", root, root, root,
           root);
  CHECK(system(command) == 0);
}

static void begin(void) {
  char folder[500];
  setenv("HOME", test_folder(), 1);
  setenv("LODE_TRUST", "1", 1);
  snprintf(root, sizeof root, "%s/project", test_folder());
  snprintf(folder, sizeof folder, "%s-damaged", root);
  make_damaged_store(folder);
  fault_no_sync();
}

TEST_SLOW(a_killed_repair_leaves_nothing_for_git, 300) {
  static const fault_call calls[] = {FAULT_MKDIR, FAULT_RENAME, FAULT_FSYNC};
  size_t left = 0;
  begin();
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    for (uint64_t n = 1;; n++) {
      fresh_copy();
      bool through = fault_in_child(repair, NULL, calls[i], n, FAULT_EXIT) != 0;
      left += check_leftovers();
      if (through) break;
      CHECK(n < 1000);
    }
    CHECK(check_leftovers() == 0);
  }
  CHECK(left > 0);
  fresh_copy();
  OK(repair(NULL, &err));
  CHECK(!damaged && check_leftovers() == 0);
}

TEST(a_repair_that_cannot_rename_leaves_the_store_in_place) {
  char path[600];
  struct stat sb;
  begin();
  snprintf(path, sizeof path, "%s/.lode/lode.db", root);
  for (uint64_t n = 1;; n++) {
    fresh_copy();
    fault_install(&os_real);
    fault_set(FAULT_RENAME, n, false, FAULT_EIO);
    (void)!repair(NULL, &err);
    bool hit = fault_hits() != 0;
    fault_uninstall();
    CHECKF(stat(path, &sb) == 0, "rename %llu failed: the store is gone", (unsigned long long)n);
    if (!hit) break;
    CHECK(n < 1000);
  }
}

/* Leaks are found by the sanitizer. */
TEST(a_refused_row_ends_the_examination) {
  lode_open_options options = {.create = true, .no_background = true};
  lode_collection_options create = {.create = true};
  lode_record record = {.id = STR_LIT("a"), .document = STR_LIT("x")};
  char folder[500];
  lode_store *store;
  lode_collection *c;
  setenv("HOME", test_folder(), 1);
  setenv("LODE_TRUST", "1", 1);
  snprintf(root, sizeof root, "%s/pending", test_folder());
  snprintf(folder, sizeof folder, "%s/.lode", root);
  CHECK(mkdir(root, 0700) == 0);
  OK(lode_open(folder, &options, &store, &err));
  OK(lode_collection_open(store, STR_LIT("code"), &create, &c, &err));
  OK(lode_add(c, NULL, &record, 1, LODE_FAIL_EXISTING, NULL, &err));
  lode_collection_close(c);
  lode_close(store);
  for (int n = 1;; n++) {
    refused = n;
    lode_status st = examine(false, &err);
    if (refused) break; /* there are fewer rows */
    CHECK(st == LODE_IO);
  }
  refused = 0;
}
