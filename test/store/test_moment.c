/* SPDX-License-Identifier: Apache-2.0 */
/* test_moment.c - pages set back to older versions, copies taken under a writer, killed writers, and a page map that
 * may be anything: each answer is right, or says that the store is damaged, and verify finds every old page. */
#include "base/crc32c.h"
#include "support/fault.h"
#include "support/scene.h"
#include "support/test.h"
#include "vfs/vfs_pages.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})
enum { PAGE = 512, VERSIONS = 11, DIM = 8 };

typedef struct copy {
  unsigned char *bytes;
  size_t len;
} copy;

typedef struct ground {
  char work[400], db[420], map[420], journal[420];
  copy kept[VERSIONS], map_now, journal_now; /* the truth after each step, oldest first */
  int n;
  uint64_t right[SCENE_QUESTIONS];
} ground;

static copy load(const char *path) {
  copy c = {0};
  c.bytes = (unsigned char *)test_read_file(path, &c.len);
  return c;
}

static void store_or_remove(const char *path, copy c) {
  if (c.bytes)
    test_write_file(path, c.bytes, c.len);
  else
    unlink(path);
}

static void init(ground *g) {
  memset(g, 0, sizeof *g);
  test_srand(test_seed());
  snprintf(g->work, sizeof g->work, "%s/s", test_folder());
  snprintf(g->db, sizeof g->db, "%s/lode.db", g->work);
  snprintf(g->map, sizeof g->map, "%s/lode.pages", g->work);
  snprintf(g->journal, sizeof g->journal, "%s/lode.db-journal", g->work);
}

/* The present state: what the questions' right answers are, and what is set back. */
static void keep(ground *g) {
  if (g->n == VERSIONS) {
    free(g->kept[0].bytes);
    memmove(g->kept, g->kept + 1, (VERSIONS - 1) * sizeof *g->kept);
    g->n--;
  }
  g->kept[g->n++] = load(g->db);
}

static void learn_answers(ground *g) {
  for (int q = 0; q < SCENE_QUESTIONS; q++) {
    outcome o = scene_open_and_ask(g->work, q, true);
    CHECKF(o.status == LODE_OK, "%s: %s", scene_question(q), o.text);
    g->right[q] = o.answer;
  }
}

static void learn(ground *g) {
  g->map_now = load(g->map);
  learn_answers(g);
}

static void release(ground *g) {
  for (int i = 0; i < g->n; i++) free(g->kept[i].bytes);
  free(g->map_now.bytes);
  free(g->journal_now.bytes);
}

static lode_status verify(const char *folder, lode_error *err) {
  lode_store *store;
  lode_status st = lode_open(folder, &(lode_open_options){.no_background = true, .read_only = true}, &store, err);
  if (st != LODE_OK) return st;
  st = lode_verify(store, NULL, NULL, (lode_progress){0}, err);
  lode_close(store);
  return st;
}

static size_t damaged_answers, right_answers;

static void answers_are_right_or_damage(ground *g, const char *what) {
  for (int q = 0; q < SCENE_QUESTIONS; q++) {
    outcome o = scene_open_and_ask(g->work, q, true);
    CHECKF(o.status == LODE_CORRUPT || (o.status == LODE_OK && o.answer == g->right[q]), "%s: %s: %s %s", what,
           scene_question(q), lode_status_name(o.status), o.text);
    damaged_answers += o.status == LODE_CORRUPT;
    right_answers += o.status == LODE_OK;
  }
}

/* A page without content is right whatever is there. */
static bool has_content(const copy *c, size_t page) {
  return page * PAGE > c->len || vfs_seal_version(c->bytes + page * PAGE - VFS_SEAL_BYTES) != 0;
}

static bool differs(const copy *now, const copy *old, size_t page) {
  return page * PAGE <= old->len && page * PAGE <= now->len &&
         memcmp(now->bytes + (page - 1) * PAGE, old->bytes + (page - 1) * PAGE, PAGE) != 0;
}

/* Sets pages back, with the page map and without, and asks. */
static void set_back(ground *g, const size_t *pages, const int *versions, size_t n, bool with_map) {
  char what[200];
  lode_error err = {0};
  const copy *now = &g->kept[g->n - 1];
  copy c = {malloc(now->len), now->len};
  bool matters = false;
  memcpy(c.bytes, now->bytes, now->len);
  for (size_t i = 0; i < n; i++) {
    memcpy(c.bytes + (pages[i] - 1) * PAGE, g->kept[versions[i]].bytes + (pages[i] - 1) * PAGE, PAGE);
    matters |= has_content(now, pages[i]);
  }
  snprintf(what, sizeof what, "page %zu (and %zu) as of %d of %d, %s map", pages[0], n > 1 ? pages[1] : 0, versions[0],
           g->n - 1, with_map ? "with the" : "without a");
  test_write_file(g->db, c.bytes, c.len);
  store_or_remove(g->map, with_map ? g->map_now : (copy){0});
  store_or_remove(g->journal, g->journal_now);
  answers_are_right_or_damage(g, what);
  lode_status st = verify(g->work, &err);
  CHECKF(st == LODE_CORRUPT || (st == LODE_OK && !matters), "%s: verify: %s %s", what, lode_status_name(st), err.text);
  free(c.bytes);
}

/* Every page to each of its older versions (or one of them, by chance), and pairs. */
static void set_all_back(ground *g, int pairs) {
  const copy *now = &g->kept[g->n - 1];
  size_t last = now->len / PAGE, tried = 0;
  damaged_answers = right_answers = 0;
  learn(g);
  for (size_t page = 1; page <= last; page++)
    for (int v = g->n - 2, left = test_full() ? VERSIONS : 1; v >= 0 && left > 0; v--) {
      if (!differs(now, &g->kept[v], page) || (!test_full() && test_below(2))) continue;
      set_back(g, &page, &v, 1, test_below(3) > 0);
      if (test_full()) set_back(g, &page, &v, 1, false);
      left--;
      tried++;
    }
  for (int i = 0; i < (test_full() ? 20 * pairs : pairs); i++) {
    size_t pages[2];
    int versions[2];
    for (int k = 0; k < 2; k++) do {
        pages[k] = 1 + test_below(last);
        versions[k] = (int)test_below((uint64_t)g->n - 1);
      } while (!differs(now, &g->kept[versions[k]], pages[k]));
    if (pages[0] != pages[1]) set_back(g, pages, versions, 2, test_below(2));
  }
  CHECKF(tried > 10 && damaged_answers > tried, "%zu pages, %zu damaged answers, %zu right ones", tried,
         damaged_answers, right_answers);
  test_write_file(g->db, now->bytes, now->len);
  store_or_remove(g->map, g->map_now);
  store_or_remove(g->journal, g->journal_now);
}

/* ---- Steps ---- */

static lode_status put(lode_collection *c, int from, int n, lode_error *err) {
  char ids[16][24], docs[16][120], metas[16][80];
  float v[16][DIM];
  lode_record r[16];
  for (int i = 0; i < n; i++) {
    int k = from + i;
    snprintf(ids[i], sizeof ids[i], "step-%03d", k);
    snprintf(docs[i], sizeof docs[i], "document %d about getUserName in step %d", k, from);
    snprintf(metas[i], sizeof metas[i], "{\"n\":%d,\"path\":\"src/step%d.c\"}", k, k % 5);
    for (int d = 0; d < DIM; d++) v[i][d] = (float)((k * 31 + d * 7) % 83) / 83.0f;
    r[i] = (lode_record){.id = {ids[i], strlen(ids[i])},
                         .document = {docs[i], strlen(docs[i])},
                         .metadata = {metas[i], strlen(metas[i])},
                         .vector = v[i],
                         .dimension = DIM};
  }
  return lode_upsert(c, NULL, r, (size_t)n, NULL, err);
}

static lode_status play_step(ground *g, int step, lode_error *err) {
  lode_store *store;
  lode_collection *c = NULL;
  lode_status st = lode_open(g->work, &(lode_open_options){.no_background = true}, &store, err);
  if (st != LODE_OK) return st;
  st = lode_collection_open(store, S("alpha"), NULL, &c, err);
  lode_str gone[2] = {S("item-001"), S("step-002")};
  lode_selection sel = {.ids = gone + step % 2, .n_ids = 1};
  if (st == LODE_OK) st = step % 4 == 3 ? lode_delete(c, NULL, &sel, NULL, err) : put(c, step * 3, 3 + step % 5, err);
  if (st == LODE_OK && step % 5 == 4) st = lode_optimize(store, (lode_progress){0}, err);
  lode_collection_close(c);
  lode_close(store);
  return st;
}

static void play(ground *g, int steps) {
  lode_error err = {0};
  keep(g);
  for (int i = 0; i < steps; i++) {
    OK(play_step(g, i, &err));
    keep(g);
  }
}

/* ---- Old pages ---- */

TEST_SLOW(old_pages_of_a_store, 900) {
  ground g;
  init(&g);
  scene_make(g.work, PAGE);
  play(&g, 10);
  set_all_back(&g, 30);
  scene_verify(g.work, "afterwards");
  release(&g);
}

TEST_SLOW(old_pages_after_deletes_and_compaction, 900) {
  ground g;
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  init(&g);
  scene_make(g.work, PAGE);
  play(&g, 6);
  OK(lode_open(g.work, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_collection_open(store, S("alpha"), NULL, &c, &err));
  OK(lode_delete(c, NULL, &(lode_selection){.where = S("{\"odd\":true}")}, NULL, &err));
  keep(&g);
  OK(lode_optimize(store, (lode_progress){0}, &err));
  keep(&g);
  lode_collection_close(c);
  OK(lode_compact(store, (lode_progress){0}, &err));
  lode_close(store);
  keep(&g);
  OK(play_step(&g, 0, &err));
  keep(&g);
  set_all_back(&g, 30);
  scene_verify(g.work, "afterwards");
  release(&g);
}

/* Pages that were written before the upgrade and since. */
TEST_SLOW(old_pages_after_an_upgrade, 900) {
  ground g;
  init(&g);
  scene_make(g.work, PAGE);
  scene_sql(g.work, SCENE_FORMAT_1);
  copy c = load(g.db);
  scene_drop_root(c.bytes, c.len, PAGE);
  test_write_file(g.db, c.bytes, c.len);
  free(c.bytes);
  play(&g, 8);
  set_all_back(&g, 30);
  release(&g);
}

static lode_status step_in_child(void *ctx, lode_error *err) { return play_step(ctx, 0, err); }

/* A transaction that was killed: the answers are those before it, from the journal for readers. */
TEST_SLOW(old_pages_beside_a_hot_journal, 900) {
  ground g;
  struct stat sb;
  int met = 0;
  init(&g);
  scene_make(g.work, PAGE);
  play(&g, 5);
  for (int i = 0; i < 200 && met < 3; i++) {
    copy before = load(g.db);
    fault_in_child(step_in_child, &g, FAULT_PWRITE, 1 + test_below(200), FAULT_EXIT);
    copy after = load(g.db);
    bool hot = stat(g.journal, &sb) == 0 && sb.st_size > 0 &&
               (before.len != after.len || memcmp(before.bytes, after.bytes, before.len) != 0);
    free(before.bytes);
    free(after.bytes);
    if (hot) {
      keep(&g);
      free(g.map_now.bytes);
      free(g.journal_now.bytes);
      g.journal_now = load(g.journal);
      learn(&g);
      for (int k = 0; k < 25; k++) {
        size_t page = 1 + test_below(g.kept[g.n - 1].len / PAGE);
        int v = (int)test_below((uint64_t)g.n - 1);
        if (!differs(&g.kept[g.n - 1], &g.kept[v], page)) continue;
        /* in the journal, it does not matter what the file holds */
        test_write_file(g.db, g.kept[g.n - 1].bytes, g.kept[g.n - 1].len);
        int fd = open(g.db, O_WRONLY);
        CHECK(pwrite(fd, g.kept[v].bytes + (page - 1) * PAGE, PAGE, (off_t)(page - 1) * PAGE) == PAGE &&
              close(fd) == 0);
        store_or_remove(g.journal, g.journal_now);
        store_or_remove(g.map, test_below(2) ? g.map_now : (copy){0});
        answers_are_right_or_damage(&g, "beside a hot journal");
      }
      test_write_file(g.db, g.kept[g.n - 1].bytes, g.kept[g.n - 1].len);
      store_or_remove(g.journal, g.journal_now);
      unlink(g.journal); /* lost: nothing can be undone, unless all was written */
      if (verify(g.work, &(lode_error){0}) != LODE_OK) answers_are_right_or_damage(&g, "without its journal");
      store_or_remove(g.journal, g.journal_now);
      store_or_remove(g.map, g.map_now);
      met++;
    }
    scene_verify(g.work, "through the journal");
    lode_store *store;
    lode_error err = {0};
    OK(lode_open(g.work, &(lode_open_options){.no_background = true}, &store, &err));
    lode_close(store);
    scene_verify(g.work, "rolled back");
  }
  CHECK(met == 3);
  release(&g);
}

TEST(an_older_copy_of_the_whole_store_is_accepted) {
  ground g;
  init(&g);
  scene_make(g.work, PAGE);
  play(&g, 10);
  g.map_now = load(g.map);
  for (int i = 0; i < 2 * g.n; i++) {
    test_write_file(g.db, g.kept[i / 2].bytes, g.kept[i / 2].len);
    store_or_remove(g.map, i % 2 ? g.map_now : (copy){0});
    scene_verify(g.work, "an older copy");
  }
  /* and goes on */
  lode_error err = {0};
  OK(play_step(&g, 1, &err));
  scene_verify(g.work, "an older copy that was written to");
  release(&g);
}

/* ---- The page map ---- */

static void check_answers(ground *g, const char *what, size_t at) {
  for (int q = 0; q < SCENE_QUESTIONS; q++) {
    outcome o = scene_open_and_ask(g->work, q, q % 2 == 0);
    CHECKF(o.status == LODE_OK && o.answer == g->right[q], "%s %zu: %s: %s %s", what, at, scene_question(q),
           lode_status_name(o.status), o.text);
  }
}

static void check_writes(ground *g, int step, const char *what) {
  lode_error err = {0};
  OK(play_step(g, step, &err));
  scene_verify(g->work, what);
  unlink(g->map);
  scene_verify(g->work, what);
}

TEST_SLOW(the_page_map_may_hold_anything, 600) {
  ground g;
  init(&g);
  scene_make(g.work, PAGE);
  copy before = load(g.map);
  play(&g, 4);
  learn(&g);
  copy bad = {malloc(g.map_now.len + 100), g.map_now.len};
  for (size_t i = 0; i < bad.len; i += test_full() ? 1 : 1 + test_below(bad.len / 60)) {
    memcpy(bad.bytes, g.map_now.bytes, bad.len);
    bad.bytes[i] ^= (unsigned char)(1 + test_below(255));
    test_write_file(g.map, bad.bytes, bad.len);
    check_answers(&g, "byte", i);
    test_write_file(g.map, g.map_now.bytes, i);
    check_answers(&g, "cut at", i);
  }
  for (int i = 0; i < 40; i++) { /* the header's numbers, with a right checksum */
    memcpy(bad.bytes, g.map_now.bytes, bad.len);
    for (size_t k = 0; k < 4; k++) bad.bytes[32 + 4 * test_below(3) + k] = (unsigned char)test_below(256);
    num_put_le32(bad.bytes + 60, crc32c_update(0, bad.bytes, 60));
    test_write_file(g.map, bad.bytes, bad.len);
    check_answers(&g, "header", (size_t)i);
  }
  test_write_file(g.map, before.bytes, before.len);
  check_answers(&g, "older", 0);
  for (int v = 0; v < g.n; v++) {
    test_write_file(g.db, g.kept[v].bytes, g.kept[v].len);
    store_or_remove(g.map, v % 2 ? before : g.map_now);
    scene_verify(g.work, "a map of another moment");
  }
  check_writes(&g, 2, "written to");
  free(before.bytes);
  free(bad.bytes);
  release(&g);
}

TEST(something_else_in_the_map_s_place_stays) {
  ground g;
  struct stat sb;
  init(&g);
  scene_make(g.work, PAGE);
  learn_answers(&g);
  char victim[450];
  snprintf(victim, sizeof victim, "%s-victim", g.work);
  test_write_file(victim, "precious", 8);
  for (int i = 0; i < 3; i++) {
    unlink(g.map);
    CHECK(i == 0 ? mkfifo(g.map, 0600) == 0 : i == 1 ? symlink(victim, g.map) == 0 : mkdir(g.map, 0700) == 0);
    check_answers(&g, "not a file", (size_t)i);
    lode_error err = {0};
    OK(play_step(&g, i, &err));
    scene_verify(g.work, "not a file");
    CHECK(lstat(g.map, &sb) == 0 && !S_ISREG(sb.st_mode));
    learn_answers(&g);
    if (i == 2) CHECK(rmdir(g.map) == 0);
  }
  size_t len;
  char *text = test_read_file(victim, &len);
  CHECK(len == 8 && memcmp(text, "precious", 8) == 0);
  free(text);
  release(&g);
}

/* Each system call fails once, through opening, committing, making the map and reading with it. */
TEST_SLOW(faults_do_not_make_damage, 600) {
  ground g;
  lode_error err = {0};
  init(&g);
  scene_make(g.work, PAGE);
  static const fault_effect effects[] = {FAULT_EIO, FAULT_ENOSPC, FAULT_SHORT, FAULT_EXIT};
  for (int e = 0; e < 4; e++) {
    fault_call call = effects[e] == FAULT_SHORT ? FAULT_PWRITE : FAULT_ANY;
    for (uint64_t n = 1; n < 400; n += test_full() ? 1 : 1 + test_below(40)) {
      if (n % 3 == 0) unlink(g.map);
      pid_t pid = fork();
      if (pid == 0) {
        fault_install(&os_real);
        fault_set(call, n, false, effects[e]);
        lode_status st = play_step(&g, (int)(n % 7), &err);
        _exit(st == LODE_CORRUPT ? 77 : 0);
      }
      int status = 0;
      CHECK(waitpid(pid, &status, 0) == pid);
      CHECKF(!(WIFEXITED(status) && WEXITSTATUS(status) == 77), "call %llu: damage", (unsigned long long)n);
      scene_verify(g.work, "after a fault");
      if (n % 2) unlink(g.map);
      scene_verify(g.work, "after a fault, without the map");
    }
  }
  release(&g);
}

/* ---- Other processes ---- */

enum { BATCH = 5 };

/* Adds batches, deletes whole ones, and compacts, until it is killed. */
static void write_for_ever(const char *folder, uint64_t seed) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  test_srand(seed);
  OK(lode_open(folder, &(lode_open_options){.no_background = test_below(2)}, &store, &err));
  OK(lode_collection_open(store, S("batches"), NULL, &c, &err));
  for (uint64_t i = 0;; i++) {
    char ids[BATCH][40], metas[40];
    float v[BATCH][DIM] = {{0}};
    lode_record r[BATCH];
    uint64_t batch = test_below(40);
    snprintf(metas, sizeof metas, "{\"batch\":%u}", (unsigned)batch);
    for (int k = 0; k < BATCH; k++) {
      snprintf(ids[k], sizeof ids[k], "%u-%d", (unsigned)batch, k);
      for (int d = 0; d < DIM; d++) v[k][d] = (float)test_below(100);
      r[k] = (lode_record){.id = {ids[k], strlen(ids[k])},
                           .metadata = {metas, strlen(metas)},
                           .document = {ids[k], strlen(ids[k])},
                           .vector = v[k],
                           .dimension = DIM};
    }
    char where[60];
    snprintf(where, sizeof where, "{\"batch\":%u}", (unsigned)batch);
    if (test_below(4) == 0)
      OK(lode_delete(c, NULL, &(lode_selection){.where = {where, strlen(where)}}, NULL, &err));
    else
      OK(lode_upsert(c, NULL, r, BATCH, NULL, &err));
    if (i % 30 == 29) OK(lode_compact(store, (lode_progress){0}, &err));
  }
}

static pid_t start_writer(const char *folder) {
  uint64_t seed = test_rand();
  pid_t pid = fork();
  if (pid == 0) {
    write_for_ever(folder, seed);
    _exit(1);
  }
  CHECK(pid > 0);
  return pid;
}

static void stop_writer(pid_t pid) {
  int status = 0;
  CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
  CHECKF(WIFSIGNALED(status), "the writer failed");
}

static void make_batches(const char *folder) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  OK(lode_open(folder, &(lode_open_options){.create = true, .page_bytes = PAGE, .no_background = true}, &store, &err));
  OK(lode_collection_open(store, S("batches"), &(lode_collection_options){.create = true, .metric = LODE_L2}, &c,
                          &err));
  lode_collection_close(c);
  lode_close(store);
}

/* All batches are whole. */
static lode_status check_batches(const char *folder, bool read_only, lode_error *err) {
  lode_store *store;
  lode_collection *c = NULL;
  lode_result *rows = NULL;
  uint64_t n = 0;
  lode_status st = lode_open(folder, &(lode_open_options){.no_background = true, .read_only = read_only}, &store, err);
  if (st != LODE_OK) return st;
  st = lode_collection_open(store, S("batches"), NULL, &c, err);
  if (st == LODE_OK) st = lode_count(c, &n, err);
  if (st == LODE_OK) st = lode_get(c, &(lode_get_request){.include = LODE_ALL}, &rows, err);
  if (st == LODE_OK) CHECKF(n % BATCH == 0 && lode_result_count(rows) == n, "%llu records", (unsigned long long)n);
  lode_result_free(rows);
  if (st == LODE_OK) st = lode_verify(store, NULL, NULL, (lode_progress){0}, err);
  lode_collection_close(c);
  lode_close(store);
  return st;
}

TEST_SLOW(copies_taken_under_a_writer_are_whole_or_damaged, 900) {
  ground g;
  lode_error err = {0};
  char to[420], command[1400];
  int whole = 0, damaged = 0;
  init(&g);
  make_batches(g.work);
  pid_t writer = start_writer(g.work);
  snprintf(to, sizeof to, "%s-copy", g.work);
  for (int i = 0; i < (test_full() ? 1000 : 40); i++) {
    snprintf(command, sizeof command, "rm -rf '%s'; cp -r '%s' '%s' 2>/dev/null", to, g.work, to);
    (void)!system(command);
    lode_status st = check_batches(to, test_below(2), &err);
    CHECKF(st == LODE_OK || st == LODE_CORRUPT || st == LODE_NOT_FOUND, "%s %s", lode_status_name(st), err.text);
    whole += st == LODE_OK;
    damaged += st == LODE_CORRUPT;
  }
  stop_writer(writer);
  CHECKF(whole + damaged > 20, "%d whole, %d damaged", whole, damaged);
  OK(check_batches(g.work, false, &err));
  release(&g);
}

TEST_SLOW(killed_writers_leave_no_damage, 900) {
  ground g;
  lode_error err = {0};
  init(&g);
  make_batches(g.work);
  for (int i = 0; i < (test_full() ? 2000 : 60); i++) {
    pid_t a = start_writer(g.work), b = test_below(2) ? start_writer(g.work) : 0;
    usleep((useconds_t)test_below(60000));
    stop_writer(a);
    if (test_below(3) == 0) unlink(g.map);
    if (!b && test_below(2)) OK(check_batches(g.work, true, &err));
    if (b) stop_writer(b);
    OK(check_batches(g.work, test_below(2), &err));
  }
  release(&g);
}
