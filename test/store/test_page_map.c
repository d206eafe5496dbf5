/* SPDX-License-Identifier: Apache-2.0 */
/* test_page_map.c - the page map beside a model, its memory, and its file in the hands of others: of another store,
 * under several names, moved away, damaged, on a full disk, and made by several processes at once. */
#include "support/fault.h"
#include "support/scene.h"
#include "support/test.h"
#include "vfs/journal.h"
#include "vfs/vfs_map.h"
#include "vfs/vfs_seal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})

/* ---- The map beside a model ---- */

typedef struct model {
  uint64_t *versions; /* what each page must have */
  uint64_t *seals;    /* what the database's pages say: the same, but for some without content */
  uint32_t pages, cap;
} model;

static lode_status model_seal(void *ctx, uint32_t page, uint64_t *version) {
  *version = ((model *)ctx)->seals[page];
  return LODE_OK;
}

static uint64_t any_version(void) { return test_below(20) ? 1 + test_rand() : 0; }

static void model_make(model *m, uint32_t pages, uint32_t cap) {
  *m = (model){calloc(cap + 1, 8), calloc(cap + 1, 8), pages, cap};
  for (uint32_t i = 2; i <= pages; i++) m->versions[i] = m->seals[i] = any_version();
}

static void model_release(model *m) {
  free(m->versions);
  free(m->seals);
}

static uint64_t model_root(const model *m) {
  uint64_t root = 0;
  for (uint32_t i = 2; i <= m->pages; i++) root += vfs_map_hash(i, m->versions[i]);
  return root;
}

static void check_map(vfs_map *map, const model *m, size_t looks, const char *what) {
  CHECKF(map->commit.pages == m->pages && map->commit.root == model_root(m), "%s: another root", what);
  for (size_t i = 0; i < looks; i++) {
    uint64_t version;
    uint32_t page = 2 + (uint32_t)test_below(m->pages - 1);
    CHECK(vfs_map_get(map, page, &version) == LODE_OK);
    CHECKF(version == m->versions[page], "%s: page %u", what, page);
  }
}

/* One transaction: pages are changed, added and cut off. */
static void change(vfs_map *map, model *m, uint32_t n) {
  vfs_map_begin(map);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t page = 2 + (uint32_t)test_below(m->pages - 1);
    if (m->pages < m->cap && test_below(4) == 0) page = ++m->pages;
    uint64_t version = any_version();
    CHECK(vfs_map_set(map, page, version) == LODE_OK);
    m->versions[page] = m->seals[page] = version;
  }
  uint32_t pages = m->pages - (test_below(3) == 0 ? (uint32_t)test_below(m->pages / 64 + 1) : 0);
  CHECK(vfs_map_resize(map, pages) == LODE_OK); /* the database is truncated later */
  for (uint32_t i = pages + 1; i <= m->pages; i++) m->versions[i] = m->seals[i] = 0;
  m->pages = pages;
  map->commit.id = test_rand();
  map->commit.number++;
}

static size_t map_bytes(const vfs_map *map) {
  size_t n = map->cap_sums * 8 + map->cap_changes * sizeof *map->changes + map->cap_touched * sizeof *map->touched;
  for (size_t i = 0; i < VFS_MAP_CACHED; i++) n += map->cached[i].versions ? VFS_MAP_BLOCK * 8 : 0;
  return n;
}

TEST(a_map_without_a_file_follows_the_seals) {
  model m;
  vfs_map map = VFS_MAP_NONE;
  test_srand(test_seed());
  model_make(&m, 70000, 80000); /* more blocks than are cached */
  CHECK(vfs_map_scan(&map, m.pages, 0, model_seal, &m) == LODE_OK);
  check_map(&map, &m, 1000, "scanned");
  for (int i = 0; i < 100; i++) { /* pages without content that hold something */
    uint32_t page = 2 + (uint32_t)test_below(m.pages - 1);
    CHECK(vfs_map_clear(&map, page) == LODE_OK);
    m.versions[page] = 0;
  }
  check_map(&map, &m, 1000, "cleared");
  for (int i = 0; i < 30; i++) {
    change(&map, &m, 200);
    check_map(&map, &m, 300, "changed");
    CHECK(vfs_map_prove(&map) == LODE_OK);
  }
  CHECKF(map_bytes(&map) < 300000, "%zu bytes", map_bytes(&map));
  size_t noticed = 0;
  for (int i = 0; i < 40; i++) { /* the disk shows another page than before */
    uint32_t page = 2 + (uint32_t)test_below(m.pages - 1);
    uint64_t version;
    m.seals[page] ^= 1;
    lode_status st = vfs_map_get(&map, page, &version);
    CHECK(st == LODE_CORRUPT || (st == LODE_OK && version == m.versions[page])); /* the block is cached */
    noticed += st == LODE_CORRUPT;
  }
  CHECK(noticed > 0);
  vfs_map_release(&map);
  model_release(&m);
}

/* Records of a few bytes that say that the database grew by half a million pages, and shrank again. */
TEST(records_cannot_ask_for_work_without_end) {
  model m;
  vfs_map writer = VFS_MAP_NONE, reader = VFS_MAP_NONE;
  char folder[500];
  snprintf(folder, sizeof folder, "%s", test_folder());
  test_srand(test_seed());
  model_make(&m, 1000, 1000);
  CHECK(vfs_map_scan(&writer, m.pages, 0, model_seal, &m) == LODE_OK);
  writer.commit.number = 1;
  CHECK(vfs_map_save(&writer, folder));
  for (int i = 1; i <= 6; i++) {
    vfs_map_begin(&writer);
    writer.commit.pages = i % 2 ? 1000 + (1u << 19) : 1000;
    writer.commit.number++;
    writer.commit.id = test_rand();
    CHECK(vfs_map_append(&writer));
    bool opened = vfs_map_open(&reader, folder, &writer.commit);
    CHECKF(opened == (i < 6), "record %d", i);
    vfs_map_release(&reader);
  }
  vfs_map_release(&writer);
  model_release(&m);
}

TEST_SLOW(maps_follow_each_other_through_their_file, 300) {
  model m;
  vfs_map writer = VFS_MAP_NONE, reader = VFS_MAP_NONE;
  char folder[500];
  int rewritten = 0;
  test_srand(test_seed());
  snprintf(folder, sizeof folder, "%s", test_folder());
  model_make(&m, 70000, 80000);
  CHECK(vfs_map_scan(&writer, m.pages, 0, model_seal, &m) == LODE_OK);
  writer.commit.number = 1;
  CHECK(vfs_map_save(&writer, folder));
  vfs_commit before = writer.commit;
  for (int i = 0; i < 300; i++) {
    if (!vfs_map_can_append(&writer, folder)) {
      CHECK(vfs_map_save(&writer, folder));
      rewritten++;
    }
    change(&writer, &m, 1 + (uint32_t)test_below(100));
    if (test_below(5) == 0) { /* appended and rolled back: what comes next takes its place */
      CHECK(vfs_map_append(&writer));
      CHECK(vfs_map_open(&writer, folder, &before) && vfs_map_prove(&writer) == LODE_OK);
      m.pages = before.pages;
      for (uint32_t p = 2; p <= m.pages; p++) {
        CHECK(vfs_map_get(&writer, p, &m.versions[p]) == LODE_OK);
        m.seals[p] = m.versions[p];
      }
      for (uint32_t p = m.pages + 1; p <= m.cap; p++) m.versions[p] = m.seals[p] = 0;
      continue;
    }
    CHECK(vfs_map_append(&writer));
    before = writer.commit;
    check_map(&writer, &m, 50, "the writer");
    if (test_below(3) == 0) continue;
    CHECK(vfs_map_follow(&reader, &writer.commit) || vfs_map_open(&reader, folder, &writer.commit));
    check_map(&reader, &m, 50, "the reader");
    if (test_below(10) == 0) CHECK(vfs_map_prove(&reader) == LODE_OK);
  }
  CHECKF(rewritten > 0 && rewritten < 30, "rewritten %d times", rewritten);
  vfs_map_release(&writer);
  vfs_map_release(&reader);
  model_release(&m);
}

/* A million pages, 16 GB with the usual page size: 8 bytes for each would be 8 MB. */
TEST_SLOW(the_memory_of_a_map_is_bounded, 300) {
  enum { PAGES = 1 << 20 };
  model m;
  vfs_map map = VFS_MAP_NONE;
  char folder[500];
  size_t most = 0;
  test_srand(test_seed());
  snprintf(folder, sizeof folder, "%s", test_folder());
  model_make(&m, PAGES, PAGES);
  CHECK(vfs_map_scan(&map, m.pages, 0, model_seal, &m) == LODE_OK);
  map.commit.number = 1;
  CHECK(vfs_map_save(&map, folder));
  for (int i = 0; i < 1500; i++) {
    if (!vfs_map_can_append(&map, folder)) CHECK(vfs_map_save(&map, folder));
    vfs_map_begin(&map);
    for (int k = 0; k < 40; k++) {
      uint32_t page = 2 + (uint32_t)test_below(PAGES - 1);
      uint64_t version = any_version();
      CHECK(vfs_map_set(&map, page, version) == LODE_OK);
      m.versions[page] = version;
    }
    map.commit.number++;
    CHECK(vfs_map_append(&map));
    if (map_bytes(&map) > most) most = map_bytes(&map);
  }
  check_map(&map, &m, 10000, "at last");
  /* 64 blocks, the sums, and the changes that the longest log has, twice over */
  size_t limit = VFS_MAP_CACHED * VFS_MAP_BLOCK * 8 + (PAGES / VFS_MAP_BLOCK + 1) * 8 + 2 * PAGES + 8192;
  CHECKF(most <= limit, "%zu of %zu bytes", most, limit);
  vfs_map_release(&map);
  model_release(&m);
}

/* ---- The file of a store ---- */

enum { QUESTIONS = SCENE_QUESTIONS - 1 }; /* not the list of collections, to which one is added */

typedef struct ground {
  char work[400], db[420], map[420], fresh[440];
  uint64_t right[QUESTIONS];
} ground;

static void learn(ground *g) {
  for (int q = 0; q < QUESTIONS; q++) {
    outcome o = scene_open_and_ask(g->work, q, true);
    CHECKF(o.status == LODE_OK, "%s: %s", scene_question(q), o.text);
    g->right[q] = o.answer;
  }
}

static void check_answers(const ground *g, const char *what) {
  for (int q = 0; q < QUESTIONS; q++) {
    outcome o = scene_open_and_ask(g->work, q, q % 2 == 0);
    CHECKF(o.status == LODE_OK && o.answer == g->right[q], "%s: %s: %s %s", what, scene_question(q),
           lode_status_name(o.status), o.text);
  }
}

static lode_status write_records(lode_store *store, int from, int n, lode_error *err) {
  lode_collection *c;
  char text[400];
  memset(text, 'x', sizeof text);
  lode_status st = lode_collection_open(store, S("more"), &(lode_collection_options){.create = true}, &c, err);
  for (int i = 0; i < n && st == LODE_OK; i++) {
    char id[40];
    int len = snprintf(id, sizeof id, "more-%d", from + i);
    lode_record r = {.id = {id, (size_t)len}, .document = {text, sizeof text}};
    st = lode_upsert(c, NULL, &r, 1, NULL, err);
  }
  lode_collection_close(c);
  return st;
}

static lode_status open_and_write(const ground *g, int from, int n, lode_error *err) {
  lode_store *store;
  lode_status st = lode_open(g->work, &(lode_open_options){.no_background = true}, &store, err);
  if (st != LODE_OK) return st;
  st = write_records(store, from, n, err);
  lode_close(store);
  return st;
}

static void ground_make(ground *g) {
  test_srand(test_seed());
  snprintf(g->work, sizeof g->work, "%s/s", test_folder());
  snprintf(g->db, sizeof g->db, "%s/lode.db", g->work);
  snprintf(g->map, sizeof g->map, "%s/lode.pages", g->work);
  snprintf(g->fresh, sizeof g->fresh, "%s/lode.pages.new", g->work);
  scene_make(g->work, 512);
  learn(g);
}

static void check_writes(const ground *g, int from, const char *what) {
  lode_error err = {0};
  lode_status st = open_and_write(g, from, 3, &err);
  CHECKF(st == LODE_OK, "%s: %s", what, err.text);
  check_answers(g, what);
  scene_verify(g->work, what);
}

static char *file_and_stat(const char *path, size_t *len, struct stat *sb) {
  CHECK(lstat(path, sb) == 0);
  return S_ISREG(sb->st_mode) ? test_read_file(path, len) : NULL;
}

TEST(the_map_of_another_store_of_the_same_size_is_not_used) {
  ground a, b;
  struct stat sa, sb;
  size_t len;
  ground_make(&a);
  ground_make(&b);
  CHECK(stat(a.db, &sa) == 0 && stat(b.db, &sb) == 0 && sa.st_size == sb.st_size);
  char *other = test_read_file(b.map, &len);
  for (int i = 0; i < 2; i++) {
    test_write_file(a.map, other, len);
    check_answers(&a, "with another's map");
    test_write_file(a.map, other, len);
    check_writes(&a, i * 10, "written with another's map");
  }
  free(other);
}

TEST(a_second_name_of_the_map_is_left_alone) {
  ground g;
  struct stat before, after;
  size_t len, len2;
  char other[450];
  ground_make(&g);
  snprintf(other, sizeof other, "%s-other", g.work);
  CHECK(link(g.map, other) == 0);
  char *bytes = file_and_stat(other, &len, &before);
  check_writes(&g, 0, "with a second name");
  char *now = file_and_stat(other, &len2, &after);
  CHECK(len == len2 && memcmp(bytes, now, len) == 0 && before.st_ino == after.st_ino);
  CHECK(stat(g.map, &after) == 0 && after.st_ino != before.st_ino && after.st_nlink == 1);
  free(bytes);
  free(now);
}

TEST(a_map_that_was_moved_away_is_made_again) {
  ground g;
  lode_store *store;
  lode_error err = {0};
  struct stat moved, now;
  size_t len, len2;
  char other[450];
  ground_make(&g);
  snprintf(other, sizeof other, "%s-other", g.work);
  OK(lode_open(g.work, &(lode_open_options){.no_background = true}, &store, &err));
  OK(write_records(store, 0, 2, &err));
  CHECK(rename(g.map, other) == 0);
  char *bytes = test_read_file(other, &len);
  OK(write_records(store, 2, 2, &err));
  char *same = file_and_stat(other, &len2, &moved);
  CHECK(len == len2 && memcmp(bytes, same, len) == 0);
  CHECK(stat(g.map, &now) == 0 && now.st_ino != moved.st_ino);
  lode_close(store);
  check_writes(&g, 4, "moved away");
  free(bytes);
  free(same);
}

TEST(what_is_under_the_new_file_s_name_does_no_harm) {
  ground g;
  struct stat sb;
  size_t len;
  char victim[450];
  ground_make(&g);
  snprintf(victim, sizeof victim, "%s-victim", g.work);
  test_write_file(victim, "precious", 8);
  for (int i = 0; i < 5; i++) {
    unlink(g.map);
    if (i == 0) test_write_file(g.fresh, "half a file", 11); /* a killed process left it */
    if (i == 1) CHECK(symlink(victim, g.fresh) == 0);
    if (i == 2) CHECK(link(victim, g.fresh) == 0);
    if (i == 3) CHECK(mkfifo(g.fresh, 0600) == 0);
    if (i == 4) CHECK(mkdir(g.fresh, 0700) == 0);
    check_answers(&g, "something under the new name");
    check_writes(&g, i * 10, "something under the new name");
    bool replaced = i == 0 || i == 2; /* links and the like are not ours, and stay */
    CHECKF((stat(g.map, &sb) == 0) == replaced && (lstat(g.fresh, &sb) == 0) == !replaced, "case %d", i);
    if (i == 1 || i == 3) CHECK(unlink(g.fresh) == 0);
  }
  char *text = test_read_file(victim, &len);
  CHECK(len == 8 && memcmp(text, "precious", 8) == 0);
  free(text);
}

/* Of many blocks, so that not each is read at once. */
TEST_SLOW(a_damaged_block_of_the_map_is_no_damage_of_the_store, 300) {
  ground g;
  lode_error err = {0};
  size_t len, len2;
  ground_make(&g);
  OK(open_and_write(&g, 0, 800, &err));
  unlink(g.map);
  check_answers(&g, "large");
  char *db = test_read_file(g.db, &len2), *map = test_read_file(g.map, &len);
  CHECKF(len > 3 * 4096, "%zu bytes are too few blocks", len);
  for (int i = 0; i < (test_full() ? 400 : 25); i++) {
    test_write_file(g.db, db, len2);
    test_write_file(g.map, map, len);
    int fd = open(g.map, O_RDWR);
    size_t at = 64 + test_below(len - 64);
    char wrong = (char)(map[at] ^ (1 + (int)test_below(255)));
    CHECK(pwrite(fd, &wrong, 1, (off_t)at) == 1);
    close(fd);
    if (i % 2) check_answers(&g, "a damaged block");
    check_writes(&g, (int)test_below(800), "written with a damaged block");
  }
  free(db);
  free(map);
}

/* ---- Commit numbers ---- */

static uint32_t commit_number(const ground *g) {
  lode_store *store;
  lode_error err = {0};
  lode_stats stats = {0};
  OK(lode_open(g->work, &(lode_open_options){.no_background = true, .read_only = true}, &store, &err));
  OK(lode_store_stats(store, &stats, &err));
  lode_close(store);
  return stats.commit_number;
}

static void set_commit_number(const ground *g, uint32_t number) {
  size_t len;
  uint64_t root;
  uint32_t was;
  unsigned char *db = (unsigned char *)test_read_file(g->db, &len);
  journal_get_root(db, &root, &was);
  journal_put_root(db, root, number);
  vfs_seal_page(1, db, 512, 0);
  test_write_file(g->db, db, len);
  free(db);
}

TEST(commit_numbers_begin_again_after_the_last) {
  ground g;
  ground_make(&g);
  set_commit_number(&g, VFS_SEAL_EMPTY - 4);
  for (int i = 0; i < 4; i++) {
    check_writes(&g, i * 5, "around the last number");
    if (i % 2) unlink(g.map);
    scene_verify(g.work, "around the last number");
  }
  uint32_t number = commit_number(&g);
  CHECKF(number > 0 && number < 40, "%u", number);
}

/* ---- Full disks, and several processes ---- */

static char full_path[420];
static int full_after, full_hits;

/* Is this the map, or the file that is to become it? */
static bool is_map_file(int fd) {
  struct stat a, b;
  char fresh[440];
  snprintf(fresh, sizeof fresh, "%s.new", full_path);
  return fstat(fd, &a) == 0 &&
         ((stat(full_path, &b) == 0 && a.st_ino == b.st_ino) || (stat(fresh, &b) == 0 && a.st_ino == b.st_ino));
}

static ssize_t pwrite_full(int fd, const void *buf, size_t n, off_t off) {
  if (!is_map_file(fd) || full_after-- > 0) return os_real.pwrite(fd, buf, n, off);
  full_hits++;
  if (n > 1 && full_hits % 2) return os_real.pwrite(fd, buf, n / 2, off);
  errno = ENOSPC;
  return -1;
}

TEST_SLOW(no_room_for_the_map_fails_no_write, 300) {
  ground g;
  lode_error err = {0};
  os_calls calls = os_real;
  calls.pwrite = pwrite_full;
  ground_make(&g);
  snprintf(full_path, sizeof full_path, "%s", g.map);
  for (int i = 0; i < 20; i++) {
    if (i % 4 == 3) unlink(g.map);
    full_after = (int)test_below(4);
    os_api = &calls;
    OK(open_and_write(&g, i * 3, 3, &err));
    check_answers(&g, "no room for the map");
    os_api = &os_real;
    check_writes(&g, i * 3, "room again");
  }
  CHECKF(full_hits > 20, "%d", full_hits);
}

/* Each makes the map again and again, because another removes it. */
TEST_SLOW(processes_that_make_the_map_at_once_do_not_mislead_each_other, 300) {
  enum { CHILDREN = 4 };
  ground g;
  pid_t children[CHILDREN];
  ground_make(&g);
  for (int k = 0; k < CHILDREN; k++) {
    children[k] = fork();
    if (children[k] != 0) continue;
    lode_error err = {0};
    test_srand(test_seed() + (uint64_t)k);
    for (int i = 0; i < (test_full() ? 400 : 25); i++) {
      if (test_below(3) == 0) unlink(g.map);
      if (test_below(6) == 0) unlink(g.fresh);
      if (k == 0 || test_below(8) == 0) OK(open_and_write(&g, k * 1000 + i, 1, &err));
      check_answers(&g, "beside others");
    }
    _exit(0);
  }
  for (int k = 0; k < CHILDREN; k++) {
    int status = -1;
    CHECK(waitpid(children[k], &status, 0) == children[k] && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  check_writes(&g, 0, "afterwards");
}

/* ---- Free pages ---- */

/* Replaces the document of `id` by one that needs pages, and the metadata of another record by too much: the call is
 * undone as a whole, after it has written. */
static void update_in_vain(lode_collection *c, lode_txn *txn) {
  static char document[40000], metadata[(1u << 20) - 100];
  lode_error err;
  memset(document, 'd', sizeof document);
  int n = snprintf(metadata, sizeof metadata, "{\"b\":\"%0*d\"}", 600000, 7);
  lode_record r[] = {{.id = S("0"), .document = {document, sizeof document}},
                     {.id = S("large"), .metadata = {metadata, (size_t)n}}};
  FAILS(LODE_REFUSED, lode_update(c, txn, r, 2, NULL, NULL, &err));
}

/* SQLite neither journals nor undoes a free page that a call used: it is free again, with the content that it got. */
TEST(a_page_that_an_undone_call_used_is_free_again) {
  static char document[40000], metadata[1u << 20];
  char folder[400], pages[420], copy[400];
  lode_error err;
  lode_store *store;
  lode_collection *c;
  lode_txn *txn;
  lode_stats stats;
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  snprintf(pages, sizeof pages, "%s/lode.pages", folder);
  snprintf(copy, sizeof copy, "%s/copy", test_folder());
  memset(document, 'a', sizeof document);
  int n = snprintf(metadata, sizeof metadata, "{\"a\":\"%0*d\"}", 600000, 7);
  OK(lode_open(folder, &(lode_open_options){.create = true, .no_background = true, .page_bytes = 4096}, &store, &err));
  OK(lode_collection_open(store, S("c"), &(lode_collection_options){.create = true}, &c, &err));
  lode_record large = {.id = S("large"), .metadata = {metadata, (size_t)n}};
  OK(lode_add(c, NULL, &large, 1, LODE_FAIL_EXISTING, NULL, &err));
  for (int i = 0; i < 8; i++) {
    char id[8];
    lode_record r = {.id = {id, (size_t)snprintf(id, sizeof id, "%d", i)}, .document = {document, sizeof document}};
    OK(lode_add(c, NULL, &r, 1, LODE_FAIL_EXISTING, NULL, &err));
  }
  for (int i = 0; i < 6; i++) { /* shorter documents free pages at once */
    char id[8];
    lode_record r = {.id = {id, (size_t)snprintf(id, sizeof id, "%d", i)}, .document = S("short")};
    OK(lode_update(c, NULL, &r, 1, NULL, NULL, &err));
  }
  OK(lode_store_stats(store, &stats, &err));
  CHECKF(stats.free_bytes > 10 * 4096, "%llu free bytes", (unsigned long long)stats.free_bytes);
  OK(lode_begin(store, &txn, &err));
  update_in_vain(c, txn);
  lode_record small = {.id = S("7"), .document = S("small")};
  OK(lode_update(c, txn, &small, 1, NULL, NULL, &err));
  OK(lode_commit(txn, &err));
  OK(lode_backup(store, copy, (lode_progress){0}, &err));
  OK(lode_verify(store, NULL, NULL, (lode_progress){0}, &err));
  lode_collection_close(c);
  lode_close(store);
  CHECK(unlink(pages) == 0);
  OK(lode_open(folder, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_verify(store, NULL, NULL, (lode_progress){0}, &err));
  lode_close(store);
}
