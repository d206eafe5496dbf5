/* SPDX-License-Identifier: Apache-2.0 */
/* test_backup.c - a backup is the whole store at one moment, in one file; a restore makes that store again, or says why
 * not.
 */
#include "support/scene.h"
#include "repair/repair_internal.h"
#include "support/fault.h"
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})

typedef struct ground {
  char root[400], base[420], file[420], to[420];
} ground;

static void prepare(ground *g, uint32_t page_bytes) {
  test_srand(test_seed());
  snprintf(g->root, sizeof g->root, "%s", test_folder());
  snprintf(g->base, sizeof g->base, "%s/base", g->root);
  snprintf(g->file, sizeof g->file, "%s/backup", g->root);
  snprintf(g->to, sizeof g->to, "%s/deep/new", g->root);
  scene_make(g->base, page_bytes);
}

static void back_up(ground *g, bool read_only) {
  lode_store *store;
  lode_error err = {0};
  OK(lode_open(g->base, &(lode_open_options){.no_background = true, .read_only = read_only}, &store, &err));
  OK(lode_backup(store, g->file, (lode_progress){0}, &err));
  lode_close(store);
}

static int count_names(const char *path) {
  os_dir *folder = os_dir_open(path);
  int n = 0;
  CHECK(folder);
  while (os_dir_next(folder)) n++;
  os_dir_close(folder);
  return n;
}

TEST(round_trip) {
  static const uint32_t sizes[] = {512, 4096, 16384, 65536};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    ground g;
    lode_error err = {0};
    struct stat sb;
    prepare(&g, sizes[i]);
    uint64_t was = scene_content(g.base);
    back_up(&g, i % 2);
    CHECK(count_names(g.root) == 2); /* one file, nothing beside it */
    CHECK(stat(g.file, &sb) == 0 && (sb.st_mode & 0777) == 0600);
    OK(lode_restore(g.file, g.to, (lode_progress){0}, &err));
    CHECK(stat(g.to, &sb) == 0 && (sb.st_mode & 0777) == 0700);
    CHECK(scene_content(g.to) == was);
    CHECK(scene_content(g.base) == was);
    scene_verify(g.to, "restored");
    CHECK(count_names(g.to) <= 3); /* lode.db, lode.lock, an empty journal */
    /* a folder that lost its database file can get it back, and is known to have been a store until then */
    char truth[500];
    lode_store *store;
    snprintf(truth, sizeof truth, "%s/lode.db", g.to);
    CHECK(unlink(truth) == 0);
    FAILS(LODE_CORRUPT, lode_open(g.to, &(lode_open_options){.create = true}, &store, &err));
    OK(lode_restore(g.file, g.to, (lode_progress){0}, &err));
    CHECK(scene_content(g.to) == was);
  }
}

TEST(refusals) {
  ground g;
  lode_store *store;
  lode_error err = {0};
  size_t len;
  prepare(&g, 512);
  test_write_file(g.file, "mine", 4);
  OK(lode_open(g.base, &(lode_open_options){.no_background = true}, &store, &err));
  FAILS(LODE_EXISTS, lode_backup(store, g.file, (lode_progress){0}, &err));
  char *kept = test_read_file(g.file, &len);
  CHECK(len == 4 && memcmp(kept, "mine", 4) == 0);
  free(kept);
  FAILS(LODE_IO, lode_backup(store, "/no/such/folder/file", (lode_progress){0}, &err));
  lode_close(store);
  CHECK(count_names(g.root) == 2);
  unlink(g.file);
  FAILS(LODE_NOT_FOUND, lode_restore(g.file, g.to, (lode_progress){0}, &err));
  back_up(&g, false);
  FAILS(LODE_EXISTS, lode_restore(g.file, g.base, (lode_progress){0}, &err));
  CHECK(scene_content(g.base) != 0);
  /* a newer format */
  scene_set_format(g.file, 7);
  FAILS(LODE_TOO_NEW, lode_restore(g.file, g.to, (lode_progress){0}, &err));
  CHECK(access(g.to, F_OK) != 0);
}

/* A backup that is not whole makes no store. */
TEST_SLOW(damaged_backups, 300) {
  ground g;
  lode_error err = {0};
  size_t len;
  prepare(&g, 512);
  back_up(&g, false);
  char *bytes = test_read_file(g.file, &len);
  vfs_pages pages;
  OK(vfs_pages_open(g.file, &pages, &err));
  size_t tries = test_full() ? len : 150;
  for (size_t i = 0; i < tries; i++) {
    size_t at = test_full() ? i : test_below(len);
    if (vfs_pages_use_of(&pages, (uint32_t)(at / 512) + 1) == SQF_PAGE_FREE) continue;
    bytes[at] ^= 16;
    test_write_file(g.file, bytes, len);
    bytes[at] ^= 16;
    lode_status st = lode_restore(g.file, g.to, (lode_progress){0}, &err);
    CHECKF(st == LODE_CORRUPT && err.text[0], "byte %zu: %s", at, lode_status_name(st));
    CHECKF(access(g.to, F_OK) != 0, "byte %zu: something was made", at);
  }
  vfs_pages_close(&pages);
  for (int i = 0; i < 40; i++) {
    size_t cut = i == 0 ? len - 512 : i == 1 ? 0 : test_below(len);
    test_write_file(g.file, bytes, cut);
    lode_status st = lode_restore(g.file, g.to, (lode_progress){0}, &err);
    CHECKF(st == LODE_CORRUPT, "cut at %zu: %s", cut, lode_status_name(st));
    CHECK(access(g.to, F_OK) != 0);
  }
  test_write_file(g.file, "corrupted", 9);
  FAILS(LODE_CORRUPT, lode_restore(g.file, g.to, (lode_progress){0}, &err));

  /* every page whole, and the b-trees not: two pages of leaves in each other's place, resealed */
  uint32_t leaves[2] = {0, 0};
  for (uint32_t n = 3; n <= len / 512; n++)
    if (bytes[(size_t)(n - 1) * 512] == 0x0d) leaves[leaves[0] != 0] = n;
  CHECK(leaves[0] && leaves[1] && leaves[0] != leaves[1]);
  unsigned char a[512], *pa = (unsigned char *)bytes + (size_t)(leaves[0] - 1) * 512,
                        *pb = (unsigned char *)bytes + (size_t)(leaves[1] - 1) * 512;
  memcpy(a, pa, 512);
  memcpy(pa, pb, 512);
  memcpy(pb, a, 512);
  scene_reseal(bytes, len, 512);
  test_write_file(g.file, bytes, len);
  FAILS(LODE_CORRUPT, lode_restore(g.file, g.to, (lode_progress){0}, &err));
  char truth[500];
  snprintf(truth, sizeof truth, "%s/lode.db", g.to);
  CHECK(access(truth, F_OK) != 0);
  free(bytes);
}

static size_t count_aside(const char *path) {
  size_t n = 0;
  os_dir *folder = os_dir_open(path);
  for (const char *name; (name = os_dir_next(folder)) != NULL;) n += strstr(name, "-journal.quarantine-") != NULL;
  os_dir_close(folder);
  return n;
}

/* What an earlier store left in the folder must not be rolled back into the restored one, nor be deleted. */
/* A read that fails says nothing about the backup: it may succeed tomorrow. */
TEST_SLOW(reads_that_fail_are_no_damage, 300) {
  ground g;
  lode_error err = {0};
  prepare(&g, 4096);
  back_up(&g, false);
  for (int for_good = 0; for_good < 2; for_good++)
    for (uint64_t n = 1, hits = 1; hits; n += test_full() ? 1 : 1 + test_below(20)) {
      fault_install(&os_real);
      fault_set(FAULT_PREAD, n, for_good, FAULT_EIO);
      lode_status st = lode_restore(g.file, g.to, (lode_progress){0}, &err);
      hits = fault_hits();
      fault_uninstall();
      CHECKF(st == LODE_OK || (hits && st == LODE_IO), "read %llu: %s %s", (unsigned long long)n, lode_status_name(st),
             err.text);
      if (access(g.to, F_OK) == 0) test_remove_tree(g.to); /* the store is there if only its marking failed */
    }
}

static const char *wanted_name;
static bool name_was_free;

static int rename_after_somebody_else(const char *from, const char *to) {
  if (wanted_name && strcmp(to, wanted_name) == 0) {
    int fd = open(to, O_CREAT | O_EXCL | O_WRONLY, 0600);
    name_was_free = fd >= 0;
    if (fd >= 0) close(fd);
  }
  return os_real.rename(from, to);
}

/* Somebody makes a file of that name just before the backup is renamed. */
TEST(a_backup_replaces_nothing) {
  ground g;
  os_calls table = os_real;
  prepare(&g, 4096);
  wanted_name = g.file;
  table.rename = rename_after_somebody_else;
  os_api = &table;
  back_up(&g, false);
  os_api = &os_real;
  CHECK(!name_was_free);
  CHECK(count_names(g.root) == 2);
}

TEST(stale_journal) {
  ground g;
  lode_error err = {0};
  char path[500];
  prepare(&g, 512);
  uint64_t was = scene_content(g.base);
  back_up(&g, false);
  snprintf(path, sizeof path, "%s/deep", g.root);
  CHECK(mkdir(path, 0700) == 0 && mkdir(g.to, 0700) == 0);
  snprintf(path, sizeof path, "%s/lode.db-journal", g.to);
  test_write_file(path, "the journal of another store, which it was never rolled back into", 64);
  OK(lode_restore(g.file, g.to, (lode_progress){0}, &err));
  CHECK(scene_content(g.to) == was);
  CHECK(count_aside(g.to) == 1);
}

/* The names of this and the next half second are taken. Nothing else in the test depends on how long it takes. */
TEST(a_journal_is_set_aside_under_a_free_name) {
  enum { TAKEN = 500 };
  ground g;
  lode_error err = {0};
  char path[600];
  size_t len;
  prepare(&g, 512);
  back_up(&g, false);
  snprintf(path, sizeof path, "%s/deep", g.root);
  CHECK(mkdir(path, 0700) == 0 && mkdir(g.to, 0700) == 0);
  snprintf(path, sizeof path, "%s/lode.db-journal", g.to);
  test_write_file(path, "the newest", 10);
  uint64_t now = os_wall_ms();
  for (unsigned i = 0; i < TAKEN; i++) {
    snprintf(path, sizeof path, "%s/lode.db-journal.quarantine-%llu", g.to, (unsigned long long)now + i);
    test_write_file(path, "an earlier one", 14);
  }
  OK(lode_restore(g.file, g.to, (lode_progress){0}, &err));
  for (unsigned i = 0; i < TAKEN; i++) {
    snprintf(path, sizeof path, "%s/lode.db-journal.quarantine-%llu", g.to, (unsigned long long)now + i);
    char *bytes = test_read_file(path, &len);
    CHECKF(len == 14 && memcmp(bytes, "an earlier one", 14) == 0, "%s was overwritten", path);
    free(bytes);
  }
  CHECK(count_aside(g.to) == TAKEN + 1);
}

/* A copy that a killed restore left is replaced, not written to: it may have another name. What is no file is left
 * alone. */
TEST(restore_writes_to_a_file_of_its_own) {
  ground g;
  lode_error err = {0};
  char path[600], other[600];
  struct stat st;
  size_t len;
  prepare(&g, 512);
  uint64_t was = scene_content(g.base);
  back_up(&g, false);
  snprintf(path, sizeof path, "%s/deep", g.root);
  CHECK(mkdir(path, 0700) == 0 && mkdir(g.to, 0700) == 0);
  snprintf(path, sizeof path, "%s/lode.db.restore", g.to);
  snprintf(other, sizeof other, "%s/precious", g.root);
  test_write_file(other, "precious", 8);
  CHECK(mkfifo(path, 0600) == 0);
  CHECK(lode_restore(g.file, g.to, (lode_progress){0}, &err) != LODE_OK);
  CHECK(lstat(path, &st) == 0 && S_ISFIFO(st.st_mode) && unlink(path) == 0);
  CHECK(symlink(other, path) == 0);
  CHECK(lode_restore(g.file, g.to, (lode_progress){0}, &err) != LODE_OK);
  CHECK(lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && unlink(path) == 0);
  CHECK(link(other, path) == 0);
  OK(lode_restore(g.file, g.to, (lode_progress){0}, &err));
  CHECK(scene_content(g.to) == was);
  char *bytes = test_read_file(other, &len);
  CHECK(len == 8 && memcmp(bytes, "precious", 8) == 0);
  free(bytes);
}

static bool stop_at(void *ctx, const char *phase, uint64_t at, uint64_t total) {
  int *left = ctx;
  (void)phase, (void)at, (void)total;
  return --*left > 0;
}

TEST(cancelled) {
  ground g;
  lode_store *store;
  lode_error err = {0};
  int backups = 0, restores = 0;
  char truth[500];
  prepare(&g, 512);
  snprintf(truth, sizeof truth, "%s/lode.db", g.to);
  OK(lode_open(g.base, &(lode_open_options){.no_background = true}, &store, &err));
  for (int at = 1;; at++) {
    int left = at;
    lode_status st = lode_backup(store, g.file, (lode_progress){stop_at, &left}, &err);
    if (st == LODE_OK) break;
    CHECK(st == LODE_CANCELLED && count_names(g.root) == 1);
    backups++;
  }
  lode_close(store);
  for (int at = 1;; at++) {
    int left = at;
    lode_status st = lode_restore(g.file, g.to, (lode_progress){stop_at, &left}, &err);
    if (st == LODE_OK) break;
    CHECK(st == LODE_CANCELLED && access(truth, F_OK) != 0);
    restores++;
  }
  CHECK(backups > 1 && restores > 2);
  scene_verify(g.to, "restored after cancellations");
}

/* ---- Others at work ---- */

/* Pairs of records, each pair in one transaction; some are deleted together again. */
static void write_pairs(const char *folder) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  char filler[3000];
  memset(filler, 'x', sizeof filler);
  if (lode_open(folder, &(lode_open_options){0}, &store, &err) != LODE_OK) _exit(1);
  if (lode_collection_open(store, S("pairs"), &(lode_collection_options){.create = true}, &c, &err) != LODE_OK)
    _exit(2);
  for (unsigned i = 0;; i++) {
    char left[24], right[24], number[24];
    snprintf(left, sizeof left, "left-%u", i % 200);
    snprintf(right, sizeof right, "right-%u", i % 200);
    snprintf(number, sizeof number, "{\"n\":%u}", i);
    lode_record r[2] = {
        {.id = {left, strlen(left)}, .metadata = {number, strlen(number)}, .document = {filler, i % 3000}},
        {.id = {right, strlen(right)}, .metadata = {number, strlen(number)}, .document = {filler, 3000 - i % 3000}}};
    if (lode_upsert(c, NULL, r, 2, NULL, &err) != LODE_OK) _exit(3);
    lode_str ids[2] = {r[0].id, r[1].id};
    if (i % 5 == 0 && lode_delete(c, NULL, &(lode_selection){.ids = ids, .n_ids = 2}, NULL, &err) != LODE_OK) _exit(4);
  }
}

static size_t check_pairs(const char *folder) {
  lode_store *store;
  lode_collection *c;
  lode_result *rows;
  lode_error err = {0};
  OK(lode_open(folder, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_collection_open(store, S("pairs"), NULL, &c, &err));
  OK(lode_get(c, &(lode_get_request){.include = LODE_METADATA}, &rows, &err));
  size_t n = lode_result_count(rows), lefts = 0;
  for (size_t i = 0; i < n; i++) {
    const lode_row *l = lode_result_at(rows, i);
    if (l->id.data[0] != 'l') continue;
    lefts++;
    bool found = false;
    for (size_t k = 0; k < n && !found; k++) {
      const lode_row *r = lode_result_at(rows, k);
      if (r->id.data[0] != 'r' ||
          !str_eq((lode_str){r->id.data + 6, r->id.len - 6}, (lode_str){l->id.data + 5, l->id.len - 5}))
        continue;
      found = true;
      CHECKF(str_eq(l->metadata, r->metadata), "half of a transaction: %.*s", (int)l->id.len, l->id.data);
    }
    CHECKF(found, "%.*s is alone", (int)l->id.len, l->id.data);
  }
  CHECK(lefts * 2 == n);
  lode_result_free(rows);
  lode_collection_close(c);
  lode_close(store);
  return n;
}

TEST_SLOW(while_others_write, 120) {
  ground g;
  lode_store *store;
  lode_error err = {0};
  size_t most = 0;
  prepare(&g, 512);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) write_pairs(g.base);
  for (int i = 0; i < 8; i++) {
    lode_stats before, after;
    OK(lode_open(g.base, &(lode_open_options){.no_background = true, .read_only = i % 2}, &store, &err));
    do {
      usleep(20000);
      OK(lode_store_stats(store, &before, &err));
    } while (before.collections < 3);
    OK(lode_backup(store, g.file, (lode_progress){0}, &err));
    OK(lode_store_stats(store, &after, &err));
    lode_close(store);
    OK(lode_restore(g.file, g.to, (lode_progress){0}, &err));
    size_t n = check_pairs(g.to);
    if (n > most) most = n;
    scene_verify(g.to, "a backup made while others wrote");
    test_remove_tree(g.to);
    unlink(g.file);
  }
  CHECK(most > 20);
  int status;
  CHECK(waitpid(child, &status, WNOHANG) == 0);
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
}

/* The copy starts over when something was committed meanwhile, and ends all the same. */
typedef struct meddler {
  lode_collection *c;
  unsigned n;
} meddler;

static bool write_at_each_step(void *ctx, const char *phase, uint64_t at, uint64_t total) {
  meddler *m = ctx;
  lode_error err = {0};
  char id[24];
  (void)phase, (void)total;
  if (at == 0 || total != 0) return true; /* inside of a transaction of the backup nobody can commit */
  snprintf(id, sizeof id, "meddled-%u", m->n++);
  lode_record r = {.id = {id, strlen(id)}};
  OK(lode_add(m->c, NULL, &r, 1, LODE_FAIL_EXISTING, NULL, &err));
  return true;
}

/* A clock that ages every transaction at once, so that a copy is made of many. */
static uint64_t fast_clock_ns;
static uint64_t fast_now(void) { return fast_clock_ns += UINT64_C(60000000); }

TEST(a_copy_starts_over_after_a_commit) {
  ground g;
  lode_store *store;
  lode_error err = {0};
  meddler m = {0};
  os_calls table = os_real;
  static char document[400 * 512];
  prepare(&g, 512);
  memset(document, 'x', sizeof document - 1);
  OK(lode_open(g.base, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_collection_open(store, S("alpha"), NULL, &m.c, &err));
  lode_record r = {.id = S("long"), .document = {document, sizeof document - 1}};
  OK(lode_upsert(m.c, NULL, &r, 1, NULL, &err));
  lode_collection_close(m.c);
  lode_close(store);
  table.now_ns = fast_now;
  os_api = &table;
  OK(lode_open(g.base, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_collection_open(store, S("alpha"), NULL, &m.c, &err));
  OK(lode_backup(store, g.file, (lode_progress){write_at_each_step, &m}, &err));
  os_api = &os_real;
  CHECKF(m.n >= 4, "%u commits came in between", m.n);
  lode_collection_close(m.c);
  lode_close(store);
  OK(lode_restore(g.file, g.to, (lode_progress){0}, &err));
  scene_verify(g.to, "copied again");
  CHECK(scene_content(g.to) == scene_content(g.base));
}
