/* SPDX-License-Identifier: Apache-2.0 */
/* test_moment.c - pages set back to older versions, and a page map that may be anything: each answer is right, or says
 * that the store is damaged, and verify finds every old page. */
#include "base/crc32c.h"
#include "segments/segment_build.h"
#include "support/fault.h"
#include "support/scene.h"
#include "support/test.h"
#include "vfs/vfs_pages.h"

#include <fcntl.h>
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
  copy kept[VERSIONS], map_now, journal_now; /* the database after each step, oldest first */
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

static struct tally { size_t pages, alone, pairs, named, damaged, right; } tally;

typedef struct old_page {
  size_t page;
  int version;
} old_page;

static bool is_named(const char *text, const old_page *old, size_t n) {
  char name[40];
  for (size_t i = 0; i < n; i++) {
    snprintf(name, sizeof name, "page %zu of ", old[i].page);
    if (strstr(text, name) || old[i].page == 1) return true;
  }
  return false;
}

/* `named`: an error must name one of these pages. */
static void answers_are_right_or_damage(ground *g, const char *what, const old_page *named, size_t n) {
  for (int q = 0; q < SCENE_QUESTIONS; q++) {
    outcome o = scene_open_and_ask(g->work, q, true);
    CHECKF(o.status == LODE_CORRUPT || (o.status == LODE_OK && o.answer == g->right[q]), "%s: %s: %s %s", what,
           scene_question(q), lode_status_name(o.status), o.text);
    CHECKF(o.status == LODE_OK || !n || is_named(o.text, named, n), "%s: %s: %s", what, scene_question(q), o.text);
    tally.damaged += o.status == LODE_CORRUPT;
    tally.right += o.status == LODE_OK;
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

/* Is version v of the page another one than the newest and than those between? */
static bool is_another(const ground *g, size_t page, int v) {
  for (int later = v + 1; later < g->n; later++)
    if (page * PAGE <= g->kept[later].len && !differs(&g->kept[later], &g->kept[v], page)) return false;
  return differs(&g->kept[g->n - 1], &g->kept[v], page);
}

typedef struct findings {
  const old_page *old;
  size_t n, seen; /* bits */
  bool closed;    /* the store could not be opened: the error names one page */
} findings;

static void on_finding(void *ctx, const lode_damage *d) {
  findings *f = ctx;
  for (size_t i = 0; i < f->n; i++)
    if (f->old[i].page != 1 && is_named(d->detail, &f->old[i], 1)) f->seen |= (size_t)1 << i;
}

static lode_status verify(const char *folder, findings *f, lode_error *err) {
  lode_store *store;
  lode_status st = lode_open(folder, &(lode_open_options){.no_background = true, .read_only = true}, &store, err);
  f->closed = st != LODE_OK;
  if (st != LODE_OK) return st;
  st = lode_verify(store, on_finding, f, (lode_progress){0}, err);
  lode_close(store);
  return st;
}

/* With its map, verify names each page that has content; without one, it finds that some are old. Page 1 has the root:
 * when that is old, so is the map. */
static void verify_sees(ground *g, const char *what, const old_page *old, size_t n, bool with_map) {
  lode_error err = {0};
  findings f = {.old = old, .n = n};
  bool matters = false, first = false;
  lode_status st = verify(g->work, &f, &err);
  for (size_t i = 0; i < n; i++) {
    matters |= has_content(&g->kept[g->n - 1], old[i].page);
    first |= old[i].page == 1;
  }
  CHECKF(st == LODE_CORRUPT || (st == LODE_OK && !matters), "%s: verify: %s %s", what, lode_status_name(st), err.text);
  if (f.closed && with_map) CHECKF(is_named(err.text, old, n), "%s: verify: %s", what, err.text);
  for (size_t i = 0; i < n && with_map && !first && !f.closed; i++) {
    bool seen = f.seen >> i & 1;
    CHECKF(seen || !has_content(&g->kept[g->n - 1], old[i].page), "%s: verify does not name it", what);
    tally.named += seen;
  }
}

/* Sets pages back, with the page map or without, and asks. */
static void set_back(ground *g, const old_page *old, size_t n, bool with_map) {
  char what[200];
  const copy *now = &g->kept[g->n - 1];
  copy c = {malloc(now->len), now->len};
  memcpy(c.bytes, now->bytes, now->len);
  for (size_t i = 0; i < n; i++) {
    size_t at = (old[i].page - 1) * PAGE;
    memcpy(c.bytes + at, g->kept[old[i].version].bytes + at, PAGE);
  }
  snprintf(what, sizeof what, "page %zu (and %zu) as of %d of %d, %s map", old[0].page, n > 1 ? old[1].page : 0,
           old[0].version, g->n - 1, with_map ? "with the" : "without a");
  test_write_file(g->db, c.bytes, c.len);
  store_or_remove(g->map, with_map ? g->map_now : (copy){0});
  store_or_remove(g->journal, g->journal_now);
  answers_are_right_or_damage(g, what, old, with_map && !g->journal_now.bytes ? n : 0);
  if (!g->journal_now.bytes) verify_sees(g, what, old, n, with_map);
  free(c.bytes);
}

static old_page any_old_page(const ground *g) {
  for (;;) {
    old_page o = {1 + test_below(g->kept[g->n - 1].len / PAGE), (int)test_below((uint64_t)g->n - 1)};
    if (is_another(g, o.page, o.version)) return o;
  }
}

static void set_back_with_another(ground *g, old_page first, bool with_map) {
  old_page both[2] = {first, any_old_page(g)};
  if (both[0].page == both[1].page) return;
  set_back(g, both, 2, with_map);
  tally.pairs++;
}

/* LODE_TEST_FULL: every page to each of its older versions, with the map and without, alone and with another one. Else
 * about half of the pages, to one version. */
static void set_all_back(ground *g, const char *shape, int pairs) {
  const copy *now = &g->kept[g->n - 1];
  tally = (struct tally){.pages = now->len / PAGE};
  learn(g);
  for (old_page o = {.page = 1}; o.page <= tally.pages; o.page++) {
    int left = test_full() ? VERSIONS : 1;
    for (o.version = g->n - 2; o.version >= 0 && left > 0; o.version--) {
      if (!is_another(g, o.page, o.version) || (!test_full() && test_below(2))) continue;
      bool with_map = test_below(3) > 0;
      set_back(g, &o, 1, test_full() || with_map);
      if (test_full()) set_back(g, &o, 1, false);
      if (test_full()) set_back_with_another(g, o, with_map);
      left--;
      tally.alone++;
    }
  }
  for (int i = 0; i < pairs; i++) set_back_with_another(g, any_old_page(g), test_below(2));
  CHECKF(tally.alone > 10 && tally.damaged > tally.alone && tally.right > 0 && tally.named > 0,
         "%s: %zu versions, %zu damaged answers, %zu right ones", shape, tally.alone, tally.damaged, tally.right);
  if (test_full())
    fprintf(stderr, "%s: %zu pages, %zu older versions alone, %zu pairs; %zu answers said damage, %zu were right\n",
            shape, tally.pages, tally.alone, tally.pairs, tally.damaged, tally.right);
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

TEST_SLOW(old_pages_of_a_store, 3600) {
  ground g;
  init(&g);
  scene_make(g.work, PAGE);
  play(&g, 10);
  set_all_back(&g, "text index, metadata index, tombstones", 15);
  scene_verify(g.work, "afterwards");
  release(&g);
}

TEST_SLOW(old_pages_after_deletes_and_compaction, 3600) {
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
  set_all_back(&g, "after deletes, merges and compaction", 15);
  scene_verify(g.work, "afterwards");
  release(&g);
}

/* Vectors in segment files, which are built, merged and rebuilt while the steps are played. */
TEST_SLOW(old_pages_of_a_store_with_segments, 3600) {
  ground g;
  lode_error err = {0};
  lode_store *store;
  lode_stats stats;
  init(&g);
  segments_limits.tail_rows = 8;
  segments_limits.graph_rows = 16;
  segments_limits.place_bytes = 0; /* vectors are read from the pages that are set back */
  scene_make(g.work, PAGE);
  play(&g, 10);
  OK(lode_open(g.work, &(lode_open_options){.no_background = true, .read_only = true}, &store, &err));
  OK(lode_store_stats(store, &stats, &err));
  CHECK(stats.segments > 0);
  lode_close(store);
  set_all_back(&g, "segments", 15);
  scene_verify(g.work, "afterwards");
  release(&g);
}

/* Pages that were written before the upgrade and since. */
TEST_SLOW(old_pages_after_an_upgrade, 3600) {
  ground g;
  init(&g);
  scene_make(g.work, PAGE);
  scene_sql(g.work, SCENE_FORMAT_1);
  copy c = load(g.db);
  scene_drop_root(c.bytes, c.len, PAGE);
  test_write_file(g.db, c.bytes, c.len);
  free(c.bytes);
  play(&g, 8);
  set_all_back(&g, "brought up from format 1", 15);
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
        answers_are_right_or_damage(&g, "beside a hot journal", NULL, 0);
      }
      test_write_file(g.db, g.kept[g.n - 1].bytes, g.kept[g.n - 1].len);
      store_or_remove(g.journal, g.journal_now);
      unlink(g.journal); /* lost: nothing can be undone, unless all was written */
      if (verify(g.work, &(findings){0}, &(lode_error){0}) != LODE_OK)
        answers_are_right_or_damage(&g, "without its journal", NULL, 0);
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
