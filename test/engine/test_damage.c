/* SPDX-License-Identifier: Apache-2.0 */
/* test_damage.c - files damaged at rest and while open: each byte flipped, cut at each length, emptied, replaced by the
 * word "corrupted", deleted, swapped. No signal, no hang, no silent wrong answer: an answer is the right one, or there
 * is a status with a text. verify finds every flipped byte of the database, but for those of free pages, which mean
 * nothing. A sample is tried unless test_full(). */
#include "support/fault.h"
#include "support/scene.h"
#include "vfs/vfs_pages.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 512, MOST_PAGES = 1024 };

typedef struct ground {
  char base[500], work[500], file[600], journal[600], lock[600];
  uint64_t right[SCENE_QUESTIONS];
  char *bytes;
  size_t len;
} ground;

static void prepare(ground *g) {
  test_srand(test_seed());
  const char *folder = test_folder();
  snprintf(g->base, sizeof g->base, "%s/base", folder);
  snprintf(g->work, sizeof g->work, "%s/work", folder);
  snprintf(g->file, sizeof g->file, "%s/lode.db", g->work);
  snprintf(g->journal, sizeof g->journal, "%s/lode.db-journal", g->work);
  snprintf(g->lock, sizeof g->lock, "%s/lode.lock", g->work);
  scene_make(g->base, PAGE);
  test_copy_tree(g->base, g->work);
  g->bytes = test_read_file(g->file, &g->len);
  for (int q = 0; q < SCENE_QUESTIONS; q++) {
    outcome o = scene_open_and_ask(g->work, q, false);
    CHECKF(o.status == LODE_OK, "%s: %s", scene_question(q), o.text);
    g->right[q] = o.answer;
  }
}

static void restore(ground *g) {
  test_remove_tree(g->work);
  test_copy_tree(g->base, g->work);
}

/* How many of the questions were answered. */
static int ask_all(ground *g, const char *what, size_t at) {
  int answered = 0;
  for (int q = 0; q < SCENE_QUESTIONS; q++) {
    outcome o = scene_open_and_ask(g->work, q, q % 2);
    if (o.status == LODE_OK) {
      CHECKF(o.answer == g->right[q], "%s %zu: a wrong answer to %s", what, at, scene_question(q));
      answered++;
    } else {
      CHECKF(o.text[0] && o.status != LODE_INTERNAL && o.status != LODE_NOMEM && o.status != LODE_BUSY,
             "%s %zu: %s to %s: %s", what, at, lode_status_name(o.status), scene_question(q), o.text);
    }
  }
  return answered;
}

static void count_damage(void *ctx, const lode_damage *d) {
  CHECK(d->what && d->detail && d->detail[0]);
  ++*(int *)ctx;
}

static lode_status verify(ground *g, int *found) {
  lode_store *store;
  lode_error err = {0};
  lode_open_options o = {.no_background = true, .read_only = true};
  *found = 0;
  lode_status st = lode_open(g->work, &o, &store, &err);
  if (st != LODE_OK) return st;
  st = lode_verify(store, count_damage, found, (lode_progress){0}, &err);
  lode_close(store);
  return st;
}

/* Which pages of the sound store are zeros, and read as that whatever is there. */
static void look_for_free_pages(const ground *g, bool *is_free, size_t most) {
  vfs_pages pages;
  lode_error err = {0};
  OK(vfs_pages_open(g->file, &pages, &err));
  CHECK(pages.src.page_bytes == PAGE && pages.src.pages <= most);
  for (uint32_t n = 1; n <= pages.src.pages; n++) {
    const char *seal = g->bytes + (size_t)n * PAGE - VFS_SEAL_BYTES;
    is_free[n - 1] = vfs_seal_version((const unsigned char *)seal) == 0;
  }
  vfs_pages_close(&pages);
}

static size_t step_of(size_t n, size_t samples) {
  return test_full() || n < samples ? 1 : 1 + test_below(2 * n / samples);
}

TEST_SLOW(a_flipped_byte_of_the_truth, 1800) {
  static ground g;
  static bool is_free[MOST_PAGES];
  prepare(&g);
  look_for_free_pages(&g, is_free, MOST_PAGES);
  int answered = 0, found;
  size_t tried = 0;
  for (size_t at = test_below(4); at < g.len; at += step_of(g.len, 250), tried++) {
    g.bytes[at] ^= (char)(1 << test_below(8));
    test_write_file(g.file, g.bytes, g.len);
    answered += ask_all(&g, "flipped byte", at);
    lode_status st = verify(&g, &found);
    CHECKF(st == LODE_CORRUPT || st == LODE_TOO_NEW || is_free[at / PAGE],
           "verify does not see the flipped byte %zu: %s", at, lode_status_name(st));
    free(g.bytes);
    restore(&g);
    g.bytes = test_read_file(g.file, &g.len);
  }
  /* most pages matter to few questions: what is whole must be answered */
  CHECKF(answered > (int)tried * SCENE_QUESTIONS / 4, "only %d of %d questions were answered", answered,
         (int)tried * SCENE_QUESTIONS);
}

TEST_SLOW(a_truth_file_cut_short, 1800) {
  static ground g;
  prepare(&g);
  for (size_t len = 0; len < g.len; len += step_of(g.len, 120)) {
    test_write_file(g.file, g.bytes, len);
    ask_all(&g, "cut to", len);
    int found;
    CHECK(verify(&g, &found) == LODE_CORRUPT);
    restore(&g);
  }
}

TEST(files_replaced_emptied_deleted_swapped) {
  static ground g;
  int found;
  prepare(&g);
  const char *files[3] = {g.file, g.journal, g.lock};
  for (int f = 0; f < 3; f++)
    for (int how = 0; how < 4; how++) {
      if (how == 0) test_write_file(files[f], "corrupted", 9);
      if (how == 1) test_write_file(files[f], "", 0);
      if (how == 2) CHECK(unlink(files[f]) == 0 || errno == ENOENT);
      if (how == 3) test_write_file(files[f], g.bytes, g.len < 3000 ? g.len : 3000);
      int n = ask_all(&g, files[f], (size_t)how);
      if (f == 0) CHECKF(n == 0 && verify(&g, &found) == LODE_CORRUPT, "%s: way %d is not noticed", files[f], how);
      if (f == 1) CHECKF(n == SCENE_QUESTIONS, "there is nothing to undo, but only %d questions were answered", n);
      if (f == 2) CHECKF(n == SCENE_QUESTIONS, "the lock file holds no data, but only %d questions were answered", n);
      /* creating must not paper over a lost database */
      if (f == 0) {
        lode_store *store;
        lode_error err = {0};
        lode_open_options o = {.create = true, .no_background = true};
        FAILS(LODE_CORRUPT, lode_open(g.work, &o, &store, &err));
      }
      restore(&g);
    }
  /* database and lock file gone, the journal left: there was a store */
  CHECK(unlink(g.file) == 0 && unlink(g.lock) == 0 && access(g.journal, F_OK) == 0);
  CHECK(ask_all(&g, "database and lock gone", 0) == 0 && verify(&g, &found) == LODE_CORRUPT);
  restore(&g);
  /* database and lock file swapped */
  char tmp[700];
  snprintf(tmp, sizeof tmp, "%s/x", g.work);
  CHECK(rename(g.file, tmp) == 0 && rename(g.lock, g.file) == 0 && rename(tmp, g.lock) == 0);
  CHECK(ask_all(&g, "swapped", 0) == 0);
}

TEST_SLOW(the_lock_file_flipped, 300) {
  static ground g;
  size_t len;
  prepare(&g);
  static char *lock;
  lock = test_read_file(g.lock, &len);
  for (size_t at = 0; at < len; at++) {
    lock[at] ^= 0x55;
    test_write_file(g.lock, lock, len);
    CHECK(ask_all(&g, "lock file", at) == SCENE_QUESTIONS);
    lock[at] ^= 0x55;
  }
}

/* A store whose process died between writing the database and ending the journal: FAULT_EXIT at the journal's
 * truncation.
 */
static void make_hot(ground *g) {
  for (uint64_t n = 1; n < 200; n++) {
    restore(g);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      fault_install(&os_real);
      fault_set(FAULT_FTRUNCATE, n, true, FAULT_EXIT);
      for (int i = 0; i < scene_n_acts; i++)
        if (strcmp(scene_acts[i].name, "upsert") == 0) (void)scene_acts[i].play(g->work);
      _exit(99);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    struct stat sb;
    if (stat(g->journal, &sb) == 0 && sb.st_size > 1024) return;
    CHECKF(WEXITSTATUS(status) != 99, "no hot journal could be made");
  }
  CHECKF(false, "no hot journal could be made");
}

TEST_SLOW(a_hot_journal_is_undone_or_refused, 1800) {
  static ground g;
  char hot[600], path[700];
  size_t journal_len, db_len;
  prepare(&g);
  make_hot(&g);
  snprintf(hot, sizeof hot, "%s/hot", test_folder());
  test_copy_tree(g.work, hot);
  static char *journal, *db;
  journal = test_read_file(g.journal, &journal_len);
  db = test_read_file(g.file, &db_len);
  /* a reader must not touch the files, and answers from before the interrupted write */
  struct stat a, b;
  CHECK(stat(g.journal, &a) == 0);
  for (int q = 0; q < SCENE_QUESTIONS; q++) {
    outcome o = scene_open_and_ask(g.work, q, true);
    CHECKF(o.status == LODE_OK && o.answer == g.right[q], "read-only over a hot journal: %s: %s", scene_question(q),
           o.text);
  }
  CHECK(stat(g.journal, &b) == 0 && a.st_size == b.st_size && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec);
  size_t now_len;
  char *now = test_read_file(g.file, &now_len);
  CHECK(now_len == db_len && memcmp(now, db, db_len) == 0);
  free(now);
  /* a writer undoes it */
  outcome o = scene_open_and_ask(g.work, 1, false);
  CHECK(o.status == LODE_OK && o.answer == g.right[1]);
  /* Without the journal the interrupted write is there as a whole: the database adds up to its root. */
  uint64_t after[SCENE_QUESTIONS];
  test_write_file(g.journal, "", 0);
  test_write_file(g.file, db, db_len);
  for (int q = 0; q < SCENE_QUESTIONS; q++) {
    o = scene_open_and_ask(g.work, q, true);
    CHECKF(o.status == LODE_OK, "%s: %s", scene_question(q), o.text);
    after[q] = o.answer;
  }
  /* a damaged journal: before the write, after it, or refused; never a mixture, and never back */
  for (int cut = 0; cut < 2; cut++)
    for (size_t at = 0; at < journal_len; at += step_of(journal_len, 60)) {
      test_remove_tree(g.work);
      test_copy_tree(hot, g.work);
      if (!cut) journal[at] ^= (char)(1 << test_below(8));
      test_write_file(g.journal, journal, cut ? at : journal_len);
      bool written = false;
      for (int q = 0; q < SCENE_QUESTIONS; q++) {
        outcome r = scene_open_and_ask(g.work, q, q % 2);
        written = written || (r.status == LODE_OK && r.answer != g.right[q]);
        CHECKF(r.status != LODE_OK ? r.text[0] != 0 : r.answer == (written ? after[q] : g.right[q]),
               "journal %s %zu: a wrong answer to %s", cut ? "cut to" : "flipped at", at, scene_question(q));
      }
      if (!cut) {
        free(journal);
        snprintf(path, sizeof path, "%s/lode.db-journal", hot);
        journal = test_read_file(path, &journal_len);
      }
    }
}

/* ---- While open ---- */

static void ask_open(lode_store *store, ground *g, const char *what) {
  for (int q = 0; q < SCENE_QUESTIONS; q++) {
    outcome o = scene_ask(store, q);
    if (o.status == LODE_OK)
      CHECKF(o.answer == g->right[q], "%s while open: a wrong answer to %s", what, scene_question(q));
    else
      CHECKF(o.text[0], "%s while open: no text", what);
  }
}

TEST_SLOW(files_truncated_and_replaced_while_open, 600) {
  static ground g;
  prepare(&g);
  for (int how = 0; how < 40; how++) {
    lode_store *store;
    lode_error err = {0};
    char what[64];
    lode_open_options o = {.no_background = how % 2};
    restore(&g);
    OK(lode_open(g.work, &o, &store, &err));
    ask_open(store, &g, "untouched");
    size_t len = test_below(g.len);
    snprintf(what, sizeof what, "way %d, %zu bytes", how % 8, len);
    switch (how % 8) {
      case 0: CHECK(truncate(g.file, (off_t)len) == 0); break;
      case 1: CHECK(truncate(g.file, 0) == 0); break;
      case 2: test_write_file(g.file, "corrupted", 9); break;
      case 3: CHECK(unlink(g.file) == 0); break;
      case 4: CHECK(truncate(g.lock, 0) == 0 && unlink(g.lock) == 0); break;
      case 5: test_remove_tree(g.work); break;
      case 6: {
        char other[700];
        snprintf(other, sizeof other, "%s.other", g.file);
        test_write_file(other, g.bytes, len);
        CHECK(rename(other, g.file) == 0);
        break;
      }
      default: {
        int fd = open(g.file, O_WRONLY);
        char zeros[512] = {0};
        CHECK(fd >= 0 && pwrite(fd, zeros, sizeof zeros, (off_t)(len / 512 * 512)) == 512);
        close(fd);
      }
    }
    ask_open(store, &g, what);
    lode_collection *c;
    if (lode_collection_open(store, (lode_str){"alpha", 5}, NULL, &c, &err) == LODE_OK) {
      float v[8] = {1};
      lode_record r = {.id = {"late", 4}, .vector = v, .dimension = 8};
      lode_status st = lode_upsert(c, NULL, &r, 1, NULL, &err);
      if (st != LODE_OK) CHECK(err.text[0]);
      lode_collection_close(c);
    }
    lode_close(store);
    if (how % 8 == 5) CHECKF(access(g.work, F_OK) != 0, "a removed store came back");
    if (how % 8 == 3) CHECKF(access(g.file, F_OK) != 0, "a removed database came back");
  }
}

TEST(a_newer_format_is_refused_untouched) {
  static ground g;
  lode_store *store;
  lode_error err = {0};
  size_t len;
  prepare(&g);
  /* a real newer file, checksums and all, as a future Lode would write it */
  scene_set_format(g.file, 99);
  char *before = test_read_file(g.file, &len);
  for (int i = 0; i < 3; i++) {
    lode_open_options o = {.create = i == 0, .read_only = i == 1};
    FAILS(LODE_TOO_NEW, lode_open(g.work, &o, &store, &err));
  }
  size_t now_len;
  char *now = test_read_file(g.file, &now_len);
  CHECK(now_len == len && memcmp(now, before, len) == 0);
  free(now);
  free(before);
}
