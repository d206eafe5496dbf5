/* SPDX-License-Identifier: Apache-2.0 */
/* test_map_file.c - lode.pages when something goes wrong beside it: it cannot be rewritten, somebody forges it, it
 * is damaged in the middle of a read or a transaction, and the process forks. And two ways in which another history
 * gets into an open database: a commit in place of one that was lost, and an old copy. */
#include "support/fault.h"
#include "support/fixture.h"
#include "support/scene.h"
#include "support/sqlkit.h"
#include "support/test.h"
#include "vfs/journal.h"
#include "vfs/vfs_pages.h"
#include "vfs/vfs_seal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})

enum { PAGE = 512 };

typedef struct ground {
  char folder[400], db[420], journal[440], map[420], other[420];
} ground;

static void ground_init(ground *g) {
  snprintf(g->folder, sizeof g->folder, "%s/s", test_folder());
  snprintf(g->db, sizeof g->db, "%s/lode.db", g->folder);
  snprintf(g->journal, sizeof g->journal, "%s/lode.db-journal", g->folder);
  snprintf(g->map, sizeof g->map, "%s/lode.pages", g->folder);
  snprintf(g->other, sizeof g->other, "%s-other", g->folder);
}

static void ground_make(ground *g) {
  ground_init(g);
  scene_make(g->folder, PAGE);
}

typedef struct handle {
  lode_store *store;
  lode_collection *c;
} handle;

static void handle_open(handle *h, const ground *g, void (*log)(void *, const char *), void *ctx) {
  lode_error err = {0};
  lode_open_options o = {.no_background = true, .log = log, .log_ctx = ctx};
  OK(lode_open(g->folder, &o, &h->store, &err));
  OK(lode_collection_open(h->store, S("more"), &(lode_collection_options){.create = true}, &h->c, &err));
}

static void handle_close(handle *h) {
  lode_collection_close(h->c);
  lode_close(h->store);
}

static void add(handle *h, const char *id, size_t document_bytes) {
  static char document[400 * PAGE];
  lode_error err = {0};
  memset(document, 'x', sizeof document);
  lode_record r = {.id = {id, strlen(id)}, .document = {document, document_bytes}};
  OK(lode_upsert(h->c, NULL, &r, 1, NULL, &err));
}

static uint64_t count(handle *h) {
  lode_error err = {0};
  uint64_t n = 0;
  OK(lode_count(h->c, &n, &err));
  return n;
}

static void open_and_add(const ground *g, const char *id, size_t document_bytes) {
  handle h;
  handle_open(&h, g, NULL, NULL);
  add(&h, id, document_bytes);
  handle_close(&h);
}

static bool ends_with(const oscall *c, const char *end) {
  char path[OSCALL_PATH];
  oscall_path(c, path);
  size_t n = strlen(path), m = strlen(end);
  return n >= m && strcmp(path + n - m, end) == 0;
}

/* ---- Writing the file ---- */

static int refused;

static int64_t refuse_new_map(oscall *c) {
  if (c->kind != OSCALL_OPEN || !(c->flags & O_CREAT) || !ends_with(c, "lode.pages.new")) return oscall_pass(c);
  refused++;
  errno = ENOSPC;
  return -1;
}

/* A file with a second name is somebody else's as well: without room for a new one it is left as it is. */
TEST(nothing_is_appended_to_a_map_that_cannot_be_replaced) {
  ground g;
  size_t len, len2;
  ground_make(&g);
  CHECK(link(g.map, g.other) == 0);
  char *before = test_read_file(g.other, &len);
  oscall_push(refuse_new_map, &os_real);
  open_and_add(&g, "a", 10);
  oscall_pop(refuse_new_map);
  char *after = test_read_file(g.other, &len2);
  CHECK(refused > 0);
  CHECK(len == len2 && memcmp(before, after, len) == 0);
  open_and_add(&g, "b", 10);
  scene_verify(g.folder, "with a new map again");
  free(before);
  free(after);
}

static unsigned mode_of(const char *path) {
  struct stat sb;
  CHECKF(stat(path, &sb) == 0, "%s", path);
  return sb.st_mode & 0777;
}

static void optimize(const ground *g) {
  handle h;
  lode_error err = {0};
  handle_open(&h, g, NULL, NULL);
  OK(lode_optimize(h.store, (lode_progress){0}, &err));
  handle_close(&h);
}

/* All that is in the folder but the database, and all segments. */
static unsigned check_modes(const char *folder, unsigned file_mode, unsigned folder_mode) {
  unsigned files = 0;
  char path[900];
  os_dir *dir = os_dir_open(folder);
  CHECK(dir);
  for (const char *name; (name = os_dir_next(dir));) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bool segments = strcmp(name, "segments") == 0;
    unsigned right = segments ? folder_mode : file_mode;
    CHECKF(mode_of(path) == right, "%s has mode %o, not %o", path, mode_of(path), right);
    files += segments ? check_modes(path, file_mode, folder_mode) : 1;
  }
  os_dir_close(dir);
  return files;
}

/* Whoever may write to the database must be able to roll it back, to lock it, and to use what is derived from it. */
TEST(files_have_the_mode_of_the_database) {
  static const unsigned modes[] = {0660, 0600, 0644, 0666}, folder_modes[] = {0770, 0700, 0755, 0777};
  ground g;
  char path[440];
  ground_make(&g);
  fixture_limits(10, 1000);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    CHECK(chmod(g.db, modes[i]) == 0 && chmod(g.folder, folder_modes[i]) == 0);
    CHECK(unlink(g.map) == 0 && (unlink(g.journal) == 0 || errno == ENOENT));
    snprintf(path, sizeof path, "%s/lode.lock", g.folder);
    CHECK(unlink(path) == 0);
    snprintf(path, sizeof path, "%s/segments", g.folder);
    test_remove_tree(path);
    mode_t was = umask(i % 2 ? 022 : 077);
    open_and_add(&g, "a", 10);
    optimize(&g);
    umask(was);
    unsigned files = check_modes(g.folder, modes[i], folder_modes[i]);
    CHECKF(files > 4, "only %u files: no segments", files);
  }
}

/* A new store is its maker's alone, whatever the umask. */
TEST(a_new_store_is_private) {
  ground g;
  mode_t was = umask(0);
  ground_make(&g);
  open_and_add(&g, "a", 10);
  umask(was);
  (void)check_modes(g.folder, 0600, 0700);
  CHECK(mode_of(g.folder) == 0700);
}

/* ---- Reading the file ---- */

static lode_status other_seal(void *ctx, uint32_t page, uint64_t *version) {
  (void)ctx;
  *version = page * UINT64_C(0x100000001);
  return LODE_OK;
}

/* A file whose checksums are right and whose last record names the newest commit, but whose versions are not those of
 * that commit: whole pages are not called old. */
TEST(a_forged_map_proves_nothing) {
  ground g;
  lode_error err = {0};
  vfs_map map = VFS_MAP_NONE;
  vfs_pages pages;
  unsigned char *page1, page[PAGE];
  size_t len;
  ground_make(&g);
  page1 = (unsigned char *)test_read_file(g.db, &len);
  vfs_commit newest = {.id = journal_commit_id(page1), .pages = num_be32(page1 + 28)};
  journal_get_root(page1, &newest.root, &newest.number);
  CHECK(vfs_map_scan(&map, newest.pages, 0, other_seal, NULL) == LODE_OK);
  map.commit.number = newest.number - 1;
  CHECK(vfs_map_save(&map, g.folder));
  vfs_map_begin(&map);
  map.commit = newest;
  CHECK(vfs_map_append(&map));
  vfs_map_release(&map);
  OK(vfs_pages_open(g.db, &pages, &err));
  CHECK(pages.proof == VFS_PAGES_PROVEN);
  for (uint32_t i = 1; i <= newest.pages; i++)
    if (vfs_pages_read(&pages, i, page)) CHECKF(!vfs_pages_is_old(&pages, i, page), "page %u", i);
  vfs_pages_close(&pages);
  scene_verify(g.folder, "with a forged map");
  free(page1);
}

/* The bytes of a block of the map; docs/FORMAT.md. */
static void damage_block(const char *map, uint32_t pages, uint32_t block) {
  uint32_t blocks = pages / VFS_MAP_BLOCK + 1;
  unsigned char byte = 0;
  off_t at = 64 + (off_t)blocks * 8 + (off_t)block * VFS_MAP_BLOCK * 8 + 100;
  int fd = open(map, O_RDWR | O_CLOEXEC);
  CHECK(fd >= 0 && pread(fd, &byte, 1, at) == 1);
  byte ^= 1;
  CHECK(pwrite(fd, &byte, 1, at) == 1);
  close(fd);
}

/* A database with a map of several blocks; the map's file has no records. */
static uint32_t make_large(const ground *g, unsigned blob_bytes) {
  char sql[100];
  size_t len;
  CHECK(mkdir(g->folder, 0700) == 0);
  sqlite3 *db = kit_open(g->db, PAGE);
  KIT_OK(db, KIT_TABLE);
  snprintf(sql, sizeof sql, "INSERT INTO t VALUES(1, 'a', zeroblob(%u))", blob_bytes);
  KIT_OK(db, sql);
  sqlite3_close(db);
  CHECK(unlink(g->map) == 0);
  db = kit_open(g->db, PAGE);
  KIT_OK(db, "SELECT count(*) FROM t"); /* makes the map again */
  sqlite3_close(db);
  free(test_read_file(g->db, &len));
  return (uint32_t)(len / PAGE);
}

/* SQLite 3.45 to 3.47 read parts of pages. When the map turns out to be damaged meanwhile it is made again, for which
 * page 1 is read: into another buffer than that of the page. */
TEST(a_part_of_a_page_beside_a_damaged_map) {
  ground g;
  size_t len;
  unsigned char buf[60];
  ground_init(&g);
  uint32_t pages = make_large(&g, 700 * PAGE), page = 600;
  unsigned char *data = (unsigned char *)test_read_file(g.db, &len);
  sqlite3 *db = kit_open(g.db, PAGE);
  sqlite3_file *f = NULL;
  KIT_OK(db, "BEGIN; SELECT count(*) FROM sqlite_schema");
  CHECK(sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &f) == SQLITE_OK && f);
  damage_block(g.map, pages, page / VFS_MAP_BLOCK);
  int rc = f->pMethods->xRead(f, buf, sizeof buf, (sqlite3_int64)(page - 1) * PAGE);
  CHECKF(rc == SQLITE_OK && memcmp(buf, data + (size_t)(page - 1) * PAGE, sizeof buf) == 0, "%d", rc);
  CHECK(kit_state(db).damaged_reads == 0);
  sqlite3_close(db);
  free(data);
}

static struct {
  const char *map;
  uint32_t pages;
  bool done;
} spoiler;

/* Damages the map at the first write to the database; calls that succeed leave something in errno, as they may. */
static int64_t spoil_layer(oscall *c) {
  if (!spoiler.done && c->kind == OSCALL_PWRITE && ends_with(c, "lode.db")) {
    spoiler.done = true;
    damage_block(spoiler.map, spoiler.pages, 1);
  }
  int64_t rc = oscall_pass(c);
  if (rc >= 0) errno = EDOM;
  return rc;
}

/* There is no errno of that: the error does not show one that some earlier call left. */
TEST_SLOW(a_map_damaged_in_the_middle_of_a_transaction_ends_it, 120) {
  ground g;
  ground_init(&g);
  uint64_t before, after;
  uint32_t pages = make_large(&g, (VFS_MAP_CACHED + 4) * VFS_MAP_BLOCK * (PAGE - 12)); /* more than is cached */
  CHECK(kit_sum_file(g.db, &before) == SQLITE_OK);
  spoiler.map = g.map;
  spoiler.pages = pages;
  oscall_push(spoil_layer, &os_real);
  sqlite3 *db = kit_open(g.db, PAGE);
  char sql[200];
  snprintf(sql, sizeof sql, "UPDATE t SET v = CAST(zeroblob(%u) || x'01' AS BLOB)", 40 * VFS_MAP_BLOCK * PAGE);
  int rc = kit_exec(db, sql);
  CHECKF((rc & 0xff) == SQLITE_IOERR, "%d", rc);
  CHECKF(kit_state(db).last_errno == EIO, "%s", strerror(kit_state(db).last_errno));
  oscall_pop(spoil_layer);
  sqlite3_close(db);
  CHECK(spoiler.done);
  CHECK(kit_sum_file(g.db, &after) == SQLITE_OK && before == after);
}

/* ---- Fork ---- */

static int forks, lost_descriptors;

/* Another thread may open a file as soon as the descriptor is closed. A child that is forked then must not close it. */
static int64_t fork_at_close(oscall *c) {
  bool map = c->kind == OSCALL_CLOSE && ends_with(c, "lode.pages");
  int64_t rc = oscall_pass(c);
  if (!map) return rc;
  int any = open("/dev/null", O_RDONLY | O_CLOEXEC), fd = fcntl(any, F_DUPFD_CLOEXEC, c->fd), status = 0;
  CHECK(fd == c->fd);
  forks++;
  pid_t child = fork();
  if (child == 0) _exit(fcntl(fd, F_GETFD) < 0);
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  lost_descriptors += status != 0;
  close(fd);
  close(any);
  return rc;
}

TEST(a_fork_closes_no_descriptor_that_the_map_no_longer_has) {
  ground g;
  handle h;
  ground_make(&g);
  oscall_push(fork_at_close, &os_real);
  handle_open(&h, &g, NULL, NULL);
  add(&h, "a", 10);
  CHECK(link(g.map, g.other) == 0); /* the next transaction writes a new file, and closes this one */
  add(&h, "b", 10);
  unlink(g.map);
  count(&h);
  add(&h, "c", 10);
  handle_close(&h);
  oscall_pop(fork_at_close);
  CHECKF(forks > 0 && lost_descriptors == 0, "%d of %d", lost_descriptors, forks);
}

enum { MAX_CHILDREN = 40 };
static pid_t children[MAX_CHILDREN];
static int n_children;
static const ground *forked_ground;

/* Children that keep what they have inherited, and children that use the store by handles of their own. */
static int64_t fork_while_saving(oscall *c) {
  int64_t rc = oscall_pass(c);
  if (n_children == MAX_CHILDREN || c->kind == OSCALL_STAT || !ends_with(c, "lode.pages.new")) return rc;
  int saved = errno;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    oscall_pop(fork_while_saving);
    while (n_children % 2) pause();
    open_and_add(forked_ground, "child", 10);
    _exit(0);
  }
  children[n_children++] = child;
  errno = saved;
  return rc;
}

/* No child holds a lock of the parent's, and none changes what the parent is writing. */
TEST_SLOW(a_fork_while_the_map_is_saved, 120) {
  ground g;
  handle h;
  ground_make(&g);
  forked_ground = &g;
  oscall_push(fork_while_saving, &os_real);
  handle_open(&h, &g, NULL, NULL);
  for (unsigned i = 0; i < 4; i++) {
    char id[20];
    CHECK(unlink(g.map) == 0);
    snprintf(id, sizeof id, "r%u", i);
    add(&h, id, 5000);
  }
  oscall_pop(fork_while_saving);
  CHECKF(n_children > 8, "%d children", n_children);
  open_and_add(&g, "last", 10);
  for (int i = 0, status; i < n_children; i++) {
    if (i % 2) CHECK(kill(children[i], SIGKILL) == 0);
    CHECK(waitpid(children[i], &status, 0) == children[i]);
    if (i % 2 == 0) CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child %d: %x", i, (unsigned)status);
  }
  CHECK(count(&h) == 6);
  handle_close(&h);
  scene_verify(g.folder, "after forks");
}

/* ---- Other histories ---- */

static void note_line(void *ctx, const char *line) {
  if (strstr(line, "went back")) ++*(unsigned *)ctx;
}

static struct {
  handle *h;
  int to_child, from_child;
  bool armed, wrote, raced;
} race;

static void *count_in_thread(void *arg) {
  CHECK(count(arg) > 0);
  return NULL;
}

/* When the writer has given its lock back and before it goes on: another process commits, and another thread sees it.
 */
static int64_t race_layer(oscall *c) {
  int64_t rc = oscall_pass(c);
  char byte = 1;
  pthread_t thread;
  if (!race.armed) return rc;
  if (c->kind == OSCALL_PWRITE && ends_with(c, "lode.db")) race.wrote = true;
  if (!race.wrote || c->kind != OSCALL_LOCK || c->lock != F_UNLCK || c->len != 0 || !ends_with(c, "lode.db")) return rc;
  race.armed = false;
  race.raced = true;
  CHECK(write(race.to_child, &byte, 1) == 1 && read(race.from_child, &byte, 1) == 1);
  CHECK(pthread_create(&thread, NULL, count_in_thread, race.h) == 0 && pthread_join(thread, NULL) == 0);
  return rc;
}

static _Noreturn void commit_when_told(const ground *g, int from, int to) {
  char byte;
  CHECK(read(from, &byte, 1) == 1);
  open_and_add(g, "other", 10);
  CHECK(write(to, &byte, 1) == 1);
  _exit(0);
}

TEST(an_own_commit_is_noted_after_a_later_one_was_seen) {
  ground g;
  handle h;
  unsigned went_back = 0;
  int there[2], back[2], status;
  ground_make(&g);
  CHECK(pipe(there) == 0 && pipe(back) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) commit_when_told(&g, there[0], back[1]);
  oscall_push(race_layer, &os_real);
  handle_open(&h, &g, note_line, &went_back);
  add(&h, "a", 10);
  race.h = &h;
  race.to_child = there[1];
  race.from_child = back[0];
  race.armed = true;
  add(&h, "b", 10);
  CHECK(race.raced && count(&h) == 3);
  CHECKF(went_back == 0, "the handle says that the store went back");
  handle_close(&h);
  oscall_pop(race_layer);
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* A store of format 1 in place of the bytes of an open one: what was cached is of another history. */
TEST(an_old_copy_of_format_1_in_the_same_file) {
  ground g;
  handle h;
  unsigned went_back = 0;
  size_t len;
  char old[420], old_db[440];
  ground_make(&g);
  open_and_add(&g, "a", 10);
  snprintf(old, sizeof old, "%s/old", test_folder());
  snprintf(old_db, sizeof old_db, "%s/lode.db", old);
  test_copy_tree(g.folder, old);
  scene_sql(old, SCENE_FORMAT_1);
  unsigned char *bytes = (unsigned char *)test_read_file(old_db, &len);
  scene_drop_root(bytes, len, PAGE);
  handle_open(&h, &g, note_line, &went_back);
  add(&h, "b", 10);
  add(&h, "c", 10);
  CHECK(count(&h) == 3);
  test_write_file(g.db, bytes, len);
  CHECK(count(&h) == 1);
  CHECKF(went_back == 1, "noticed %u times", went_back);
  add(&h, "d", 10); /* which makes it format 2 again */
  CHECK(count(&h) == 2);
  handle_close(&h);
  scene_verify(g.folder, "brought up from format 1");
  free(bytes);
}

/* A clock that ages every transaction at once, so that a copy is made of many. */
static uint64_t fast_clock_ns;
static uint64_t fast_now(void) { return fast_clock_ns += UINT64_C(60000000); }

typedef struct replacement {
  const char *path;
  char *bytes;
  size_t len;
  unsigned done;
} replacement;

static bool replace_once(void *ctx, const char *phase, uint64_t at, uint64_t total) {
  replacement *r = ctx;
  (void)phase;
  if (at == 0 || total != 0 || r->done) return true;
  test_write_file(r->path, r->bytes, r->len);
  r->done++;
  return true;
}

/* SQLite's change counter is the same in both: a backup that began with one commit does not go on with the other. */
TEST(a_backup_beside_a_commit_in_place_of_another) {
  ground g;
  handle h;
  lode_error err = {0};
  char file[420], to[420];
  size_t len, first_len;
  replacement r = {0};
  os_calls table = os_real;
  ground_make(&g);
  open_and_add(&g, "long", 300 * PAGE);
  char *base = test_read_file(g.db, &len);
  open_and_add(&g, "x", 60 * PAGE);
  char *first = test_read_file(g.db, &first_len);
  test_write_file(g.db, base, len);
  open_and_add(&g, "y", 60 * PAGE);
  r.path = g.db;
  r.bytes = test_read_file(g.db, &r.len);
  CHECK(first_len == r.len && memcmp(first + 24, r.bytes + 24, 4) == 0); /* the change counter */
  uint64_t right = scene_content(g.folder);
  test_write_file(g.db, first, first_len);
  snprintf(file, sizeof file, "%s/backup", test_folder());
  snprintf(to, sizeof to, "%s/restored", test_folder());
  table.now_ns = fast_now;
  os_api = &table;
  handle_open(&h, &g, NULL, NULL);
  OK(lode_backup(h.store, file, (lode_progress){replace_once, &r}, &err));
  handle_close(&h);
  os_api = &os_real;
  CHECK(r.done == 1);
  OK(lode_restore(file, to, (lode_progress){0}, &err));
  CHECK(scene_content(to) == right);
  free(base);
  free(first);
  free(r.bytes);
}
