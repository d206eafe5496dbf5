/* SPDX-License-Identifier: Apache-2.0 */
/* test_beneath.c - a store whose folder somebody else filled: links, FIFOs, sockets, devices and folders in place of
 * its files.
 *
 * With openat2 and with the walk for systems without it: nothing outside changes, nothing but files is opened, every
 * call returns.
 */
#include "os/store_files.h"
#include "support/fault.h"
#include "lode.h"
#include "support/test.h"
#include "support/fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

static const char *join(const char *folder, const char *name) {
  static char paths[8][4200];
  static unsigned next;
  char *path = paths[next++ % 8];
  int n = snprintf(path, sizeof *paths, "%s/%s", folder, name);
  CHECK(n > 0 && (size_t)n < sizeof *paths);
  return path;
}

static bool exists(const char *folder, const char *name) {
  struct stat sb;
  return lstat(join(folder, name), &sb) == 0;
}

static void put_text(const char *folder, const char *name, const char *text) {
  test_write_file(join(folder, name), text, strlen(text));
}

/* ---- The operating system's part, in both variants ---- */

static void check_below(const os_calls *os) {
  const char *top = test_folder(), *outside = test_folder();
  struct stat sb;
  CHECK(mkdir(join(top, "sub"), 0700) == 0 && symlink("sub", join(top, "linked")) == 0 &&
        symlink(outside, join(top, "away")) == 0);
  CHECK(symlink("sub/file", join(top, "link")) == 0 && symlink(join(outside, "new"), join(top, "nowhere")) == 0);
  int folder = os->open(top, OS_OPEN_DIR, 0);
  int fd = os->open_below(folder, "sub/file", O_RDWR | O_CREAT | O_EXCL, 0640);
  CHECK(fd > 2 && fstat(fd, &sb) == 0 && (sb.st_mode & 0777) == 0640 && os->pwrite(fd, "x", 1, 0) == 1);
  os->close(fd);
  static const struct {
    const char *path;
    int flags, why;
  } refused[] = {
      {"link", O_RDONLY, ELOOP},
      {"linked", O_RDONLY | O_DIRECTORY, ELOOP},
      {"linked/file", O_RDWR, ELOOP},
      {"away/new", O_RDWR | O_CREAT, ELOOP},
      {"nowhere", O_RDWR | O_CREAT, ELOOP},
      {"../x", O_RDWR | O_CREAT, EXDEV},
      {"sub/../../x", O_RDWR | O_CREAT, EXDEV},
      {"sub/none", O_RDONLY, ENOENT},
      {"sub/file/x", O_RDONLY, ENOTDIR},
  };
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    errno = 0;
    fd = os->open_below(folder, refused[i].path, refused[i].flags, 0600);
    CHECKF(fd < 0 && errno == refused[i].why, "%s: %d, %s", refused[i].path, fd, strerror(errno));
  }
  CHECK(os->mkdir_at(folder, "made", 0700) == 0 && os->rename_at(folder, "made", folder, "moved") == 0 &&
        os->rmdir_at(folder, "moved") == 0);
  CHECK(os->unlink_at(folder, "sub/file") < 0 && errno == EXDEV && exists(top, "sub/file")); /* names only */
  CHECK(os->mkdir_at(folder, "away/made", 0700) < 0 && os->rename_at(folder, "away/x", folder, "x") < 0 &&
        os->rmdir_at(folder, "sub/x") < 0);
  CHECK(os->unlink_at(folder, "away") == 0 && !exists(top, "away")); /* the link itself */
  CHECK(!exists(outside, "new") && !exists(outside, "made"));
  os->close(folder);
}

TEST(below_a_folder_no_link_is_followed) { check_below(&os_real); }
TEST(below_a_folder_no_link_is_followed_without_openat2) { check_below(&os_portable); }

/* The kernel says EAGAIN for as long as somebody holds a lease on the file and does not give it up, most of a minute:
 * it is an answer. */
static void check_lease(const os_calls *os) {
  const char *top = test_folder();
  put_text(top, "file", "text");
  int held = open(join(top, "file"), O_RDWR | O_CLOEXEC), folder = os->open(top, OS_OPEN_DIR, 0);
  CHECK(signal(SIGIO, SIG_IGN) != SIG_ERR && held >= 0 && folder >= 0);
  if (fcntl(held, F_SETLEASE, F_WRLCK) != 0) test_skip("no leases on this file system");
  int fd = os->open_below(folder, "file", O_RDONLY | O_NONBLOCK, 0);
  CHECKF(fd < 0 && errno == EAGAIN, "%d, %s", fd, strerror(errno));
  CHECK(fcntl(held, F_SETLEASE, F_UNLCK) == 0);
  fd = os->open_below(folder, "file", O_RDONLY | O_NONBLOCK, 0);
  CHECK(fd >= 0);
  os->close(fd);
  os->close(folder);
  close(held);
}

TEST(a_file_under_a_lease_is_not_waited_for) { check_lease(&os_real); }
TEST(a_file_under_a_lease_is_not_waited_for_without_openat2) { check_lease(&os_portable); }

TEST(a_folder_that_is_a_link_is_not_entered) {
  lode_error err;
  const char *top = test_folder(), *real = join(top, "real");
  struct stat sb;
  char *resolved = NULL;
  CHECK(mkdir(real, 0700) == 0 && symlink("real", join(top, "link")) == 0 && symlink(top, join(top, "up")) == 0);
  put_text(real, "file", "text");
  CHECK(beneath_open(join(top, "link"), "file", O_RDONLY, 0) < 0 && errno == ELOOP);
  CHECK(beneath_lstat(join(top, "link"), "file", &sb) < 0 && errno == ELOOP);
  CHECK(beneath_unlink(join(top, "link"), "file") < 0 && exists(top, "real/file"));
  CHECK(beneath_unlink(top, "link") < 0 && errno == ELOOP && exists(top, "link"));
  CHECK(beneath_unlink(top, "real") < 0 && errno == EISDIR && beneath_unlink(top, "none") < 0 && errno == ENOENT);
  CHECK(beneath_rename(join(top, "link"), "file", "f") < 0 && beneath_mkdir(join(top, "link"), "m", 0700) < 0);
  CHECK(!beneath_list(join(top, "link"), ".") && errno == ELOOP);
  int fd = beneath_open(join(top, "up/real"), "file", O_RDONLY, 0); /* a link above is the user's own */
  CHECK(fd >= 0);
  os_api->close(fd);
  OK(beneath_resolve(join(top, "link"), &resolved, &err));
  fd = beneath_open(resolved, "file", O_RDONLY, 0);
  CHECK(fd >= 0);
  os_api->close(fd);
  mem_free(resolved);
}

/* Without a current directory, a relative path has no absolute one. */
TEST(a_relative_path_in_a_removed_folder) {
  lode_error err = {0};
  const char *gone = join(test_folder(), "gone");
  char *resolved = NULL;
  int back = open(".", O_RDONLY | O_DIRECTORY);
  CHECK(back >= 0 && mkdir(gone, 0700) == 0 && chdir(gone) == 0 && rmdir(gone) == 0);
  FAILS(LODE_IO, beneath_resolve("store", &resolved, &err));
  CHECK(!resolved && strstr(err.text, "the current directory"));
  OK(beneath_resolve("/store", &resolved, &err));
  mem_free(resolved);
  CHECK(fchdir(back) == 0);
  close(back);
}

/* ---- What may lie in the place of a file ---- */

enum { LINK_FILE, LINK_FOLDER, LINK_NOWHERE, FIFO, SOCKET, FOLDER, DEVICE, KINDS };
static const char *const kind_names[KINDS] = {"a link to a file", "a link to a folder", "a link to nothing", "a FIFO",
                                              "a socket",         "a folder",           "a device"};

/* False: not allowed here. */
static bool put(const char *store, const char *name, int kind, const char *outside) {
  const char *path = join(store, name);
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  if (unlink(path) < 0 && errno == EISDIR) test_remove_tree(path);
  switch (kind) {
    case LINK_FILE: return symlink(join(outside, "file"), path) == 0;
    case LINK_FOLDER: return symlink(outside, path) == 0;
    case LINK_NOWHERE: return symlink(join(outside, "nothing"), path) == 0;
    case FIFO: return mkfifo(path, 0600) == 0;
    case SOCKET: {
      int fd = socket(AF_UNIX, SOCK_STREAM, 0);
      if (strlen(path) >= sizeof at.sun_path) return close(fd), false;
      memcpy(at.sun_path, path, strlen(path) + 1);
      bool bound = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
      close(fd);
      return bound;
    }
    case FOLDER: return mkdir(path, 0700) == 0;
    case DEVICE: return mknod(path, S_IFCHR | 0600, makedev(1, 5)) == 0;
    default: return false;
  }
}

/* Opening a device may act on it, and opening a FIFO wakes or waits for another process: neither is done, not even for
 * a moment. */
static const os_calls *spied;
static int spy(int fd) {
  struct stat sb;
  if (fd >= 0 && fstat(fd, &sb) == 0 && !S_ISREG(sb.st_mode) && !S_ISDIR(sb.st_mode))
    test_failed(__FILE__, __LINE__, "opened: %o", sb.st_mode);
  return fd;
}
static int spy_open(const char *path, int flags, unsigned mode) { return spy(spied->open(path, flags, mode)); }
static int spy_open_below(int folder, const char *path, int flags, unsigned mode) {
  return spy(spied->open_below(folder, path, flags, mode));
}

static os_calls spying(const os_calls *under) {
  os_calls table = *under;
  spied = under;
  table.open = spy_open;
  table.open_below = spy_open_below;
  return table;
}

/* Names, sizes and content of what lies outside. */
static char *look_outside(const char *outside) {
  static const char *const names[] = {"file", "0123456789abcdef.seg", "0123456789abcdef.tmp", "lode.db.new"};
  strbuf seen = {0};
  unsigned n = 0;
  os_dir *folder = os_dir_open(outside);
  for (const char *name; (name = os_dir_next(folder)) != NULL;) n++;
  os_dir_close(folder);
  strbuf_addf(&seen, "%u:", n);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t len = 0;
    char *data = exists(outside, names[i]) ? test_read_file(join(outside, names[i]), &len) : NULL;
    strbuf_addf(&seen, " %s %zu ", names[i], len);
    strbuf_add(&seen, data, len);
    free(data);
  }
  strbuf_addch(&seen, '\0');
  return seen.data;
}

static void fill_outside(const char *outside) {
  put_text(outside, "file", "precious");
  put_text(outside, "0123456789abcdef.seg", "precious");
  put_text(outside, "0123456789abcdef.tmp", "precious");
  put_text(outside, "lode.db.new", "precious");
}

/* Everything that a program does with a store; each call may fail, none may do harm. */
static void use(const char *folder, const char *scratch) {
  lode_error err;
  lode_store *store = NULL;
  lode_collection *c = NULL;
  lode_stats stats;
  float v[4] = {1, 2, 3, 4};
  lode_record r = {.id = STR_LIT("one more"), .vector = v, .dimension = 4};
  lode_open_options write = {.create = true, .no_background = true, .busy_ms = 50},
                    read = {.read_only = true, .busy_ms = 50};
  if (lode_open(folder, &read, &store, &err) == LODE_OK) {
    (void)!lode_store_stats(store, &stats, &err);
    (void)!lode_backup(store, join(scratch, "backup"), (lode_progress){0}, &err);
  }
  lode_close(store);
  store = NULL;
  if (lode_open(folder, &write, &store, &err) == LODE_OK) {
    if (lode_collection_open(store, STR_LIT("c"), NULL, &c, &err) == LODE_OK)
      (void)!lode_upsert(c, NULL, &r, 1, NULL, &err);
    (void)!lode_optimize(store, (lode_progress){0}, &err);
    (void)!lode_verify(store, NULL, NULL, (lode_progress){0}, &err);
    (void)!lode_compact(store, (lode_progress){0}, &err);
    lode_collection_close(c);
  }
  lode_close(store);
  (void)!lode_salvage(folder, join(scratch, "salvaged"), NULL, NULL, (lode_progress){0}, NULL, &err);
  (void)!lode_restore(join(scratch, "kept"), folder, (lode_progress){0}, &err);
  (void)!storefile_clear(folder, STOREFILE_DATA | STOREFILE_PROJECT, NULL, NULL, &err);
}

/* The folder of a closed store of 40 vectors; a backup of it is in scratch. */
static const char *make_store(const char *scratch) {
  lode_error err;
  const char *folder = test_folder();
  fixture k = {.no_background = true};
  fixture_limits(16, 16);
  fixture_open(&k, folder, LODE_L2, 4);
  fixture_add(&k, 40);
  fixture_optimize(&k);
  OK(lode_backup(k.store, join(scratch, "kept"), (lode_progress){0}, &err));
  fixture_close(&k);
  return folder;
}

static void check_places(const os_calls *under) {
  static const char *const names[] = {STOREFILE_DB,           STOREFILE_JOURNAL,           STOREFILE_LOCK,
                                      STOREFILE_NEW,          STOREFILE_NEW_JOURNAL,       STOREFILE_RESTORE,
                                      STOREFILE_SEGMENTS_DIR, STOREFILE_SEGMENTS_DIR "/ID"};
  const char *scratch = test_folder(), *work = test_folder();
  const char *made = make_store(scratch);
  char *segment = NULL;
  CHECK(fixture_files(made, ".seg", &segment, 1) == 1);
  os_calls table = spying(under);
  unsigned done = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    for (int kind = 0; kind < KINDS; kind++) {
      char folder[4200], outside[4200], own[4200], name[64];
      snprintf(folder, sizeof folder, "%s/s%zu-%d", work, i, kind);
      snprintf(outside, sizeof outside, "%s/o%zu-%d", work, i, kind);
      snprintf(own, sizeof own, "%s/t%zu-%d", work, i, kind);
      snprintf(name, sizeof name, "%s", names[i]);
      if (strstr(name, "/ID")) snprintf(name, sizeof name, STOREFILE_SEGMENTS_DIR "%s", strrchr(segment, '/'));
      CHECK(mkdir(outside, 0700) == 0 && mkdir(own, 0700) == 0);
      test_copy_tree(made, folder);
      test_copy_tree(scratch, own);
      fill_outside(outside);
      char *before = look_outside(outside);
      if (kind == FOLDER && strcmp(name, STOREFILE_SEGMENTS_DIR) == 0) kind++;
      if (put(folder, name, kind, outside)) {
        os_api = &table;
        use(folder, own);
        os_api = &os_real;
        char *after = look_outside(outside);
        CHECKF(strcmp(before, after) == 0, "%s is %s: %s became %s", name, kind_names[kind], before, after);
        free(after);
        done++;
      }
      mem_free(before);
    }
  }
  CHECKF(done >= 40, "%u", done);
  free(segment);
}

TEST_SLOW(anything_may_lie_in_the_place_of_a_file, 300) { check_places(&os_real); }
TEST_SLOW(anything_may_lie_in_the_place_of_a_file_without_openat2, 300) { check_places(&os_portable); }

/* ---- The folder itself ---- */

TEST(a_link_that_the_user_names_is_followed_once) {
  lode_error err;
  lode_store *store;
  lode_stats stats;
  const char *top = test_folder(), *link = join(top, "link");
  lode_open_options o = {.create = true, .no_background = true};
  CHECK(mkdir(join(top, "a"), 0700) == 0 && mkdir(join(top, "b"), 0700) == 0 && symlink("a", link) == 0);
  OK(lode_open(link, &o, &store, &err));
  CHECK(exists(top, "a/lode.db"));
  CHECK(unlink(link) == 0 && symlink("b", link) == 0);
  OK(lode_store_stats(store, &stats, &err)); /* the store stays where it was opened */
  CHECK(!exists(top, "b/lode.db") && !exists(top, "b/lode.lock"));
  CHECK(rename(join(top, "a"), join(top, "c")) == 0 && symlink("c", join(top, "a")) == 0);
  lode_collection *c = NULL;
  lode_status st = lode_collection_open(store, STR_LIT("x"), &(lode_collection_options){.create = true}, &c, &err);
  CHECKF(st != LODE_OK, "written through a link that took the folder's place");
  lode_close(store);
}

/* ---- The table of names ---- */

TEST(only_names_that_lode_makes_are_known) {
  static const char *const ours[] = {"lode.db",
                                     "lode.db-journal",
                                     "lode.lock",
                                     "lode.db.new",
                                     "lode.db.new-journal",
                                     "lode.db.restore",
                                     "lode.db-journal.quarantine-1700000000000",
                                     "segments/0123456789abcdef.seg",
                                     "segments/0123456789abcdef.tmp",
                                     "segments/0123456789abcdef.seg.quarantine-1700000000000"};
  static const char *const project[] = {
      "config.json", "config.json.1f.tmp", ".gitignore", ".gitignore.0123456789abcdef.tmp", "index.lock", "watch.lock"};
  static const char *const foreign[] = {"",
                                        "lode.db2",
                                        "Lode.db",
                                        "lode.db.bak",
                                        "lode.db-journal.quarantine-",
                                        "lode.db-journal.quarantine-1x",
                                        "segments/0123456789abcde.seg",
                                        "segments/0123456789abcdef0.seg",
                                        "segments/0123456789ABCDEF.seg",
                                        "0123456789abcdef.seg",
                                        "segments/0123456789abcdef.seg.bak",
                                        "segments",
                                        "segments/",
                                        "config.json.tmp",
                                        "config.json.xyz.tmp",
                                        "config.jso",
                                        "a.txt",
                                        ".git",
                                        "segments/../lode.db"};
  for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
    CHECKF(storefile_kind_of(ours[i]) == STOREFILE_DATA, "%s", ours[i]);
  for (size_t i = 0; i < sizeof project / sizeof *project; i++)
    CHECKF(storefile_kind_of(project[i]) == STOREFILE_PROJECT, "%s", project[i]);
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
    CHECKF(storefile_kind_of(foreign[i]) == 0, "%s", foreign[i]);
  uint64_t id;
  const char *ending;
  CHECK(storefile_parse_segment("00000000000000ff.tmp", &id, &ending) && id == 255 && strcmp(ending, ".tmp") == 0);
  CHECK(!storefile_parse_segment("00000000000000ff.seg.quarantine-1", &id, &ending));
}

TEST(foreign_files_stay_and_are_named) {
  lode_error err;
  strbuf foreign = {0};
  const char *folder = test_folder(), *to = test_folder();
  CHECK(mkdir(join(folder, "segments"), 0700) == 0 && mkdir(join(folder, "photos"), 0700) == 0);
  put_text(folder, "lode.db", "1");
  put_text(folder, "config.json", "{}");
  put_text(folder, "thesis.txt", "mine");
  put_text(folder, "photos/a.jpg", "mine");
  put_text(folder, "segments/0123456789abcdef.seg", "2");
  put_text(folder, "segments/notes.md", "mine");
  CHECK(symlink("thesis.txt", join(folder, "lode.lock")) == 0); /* not what Lode makes */
  OK(storefile_clear(folder, STOREFILE_DATA, to, &foreign, &err));
  strbuf_addch(&foreign, '\0');
  CHECK(exists(to, "lode.db") && exists(to, "segments/0123456789abcdef.seg") && !exists(to, "config.json") &&
        !exists(to, "thesis.txt"));
  CHECK(!exists(folder, "lode.db") && exists(folder, "config.json") && exists(folder, "thesis.txt") &&
        exists(folder, "photos/a.jpg"));
  CHECK(exists(folder, "segments/notes.md") && !exists(folder, "segments/0123456789abcdef.seg") &&
        exists(folder, "lode.lock"));
  CHECK(strstr(foreign.data, "thesis.txt") && strstr(foreign.data, "photos") &&
        strstr(foreign.data, "segments/notes.md") && strstr(foreign.data, "lode.lock") &&
        !strstr(foreign.data, "config.json"));
  strbuf_release(&foreign);
  CHECK(unlink(join(folder, "segments/notes.md")) == 0);
  OK(storefile_clear(folder, STOREFILE_DATA | STOREFILE_PROJECT, NULL, NULL, &err));
  CHECK(!exists(folder, "segments") && !exists(folder, "config.json") && exists(folder, "thesis.txt"));
}

TEST(a_list_that_breaks_off_removes_nothing) {
  static const fault_call calls[] = {FAULT_DIR_NEXT, FAULT_STAT};
  lode_error err;
  const char *folder = test_folder();
  CHECK(mkdir(join(folder, "segments"), 0700) == 0);
  put_text(folder, "lode.db", "1");
  put_text(folder, "thesis.txt", "mine");
  put_text(folder, "segments/0123456789abcdef.seg", "2");
  fault_install(&os_real);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    for (uint64_t n = 1;; n++) {
      fault_set(calls[i], n, false, FAULT_EIO);
      lode_status st = storefile_clear(folder, STOREFILE_DATA, NULL, NULL, &err);
      if (!fault_hits()) break;
      fault_clear();
      CHECKF(st == LODE_IO, "%s %llu: %s", fault_call_name(calls[i]), (unsigned long long)n, lode_status_name(st));
      CHECK(exists(folder, "lode.db") && exists(folder, "segments/0123456789abcdef.seg"));
    }
    CHECK(!exists(folder, "lode.db") && exists(folder, "thesis.txt"));
    put_text(folder, "lode.db", "1");
    CHECK(mkdir(join(folder, "segments"), 0700) == 0);
    put_text(folder, "segments/0123456789abcdef.seg", "2");
  }
  fault_uninstall();
}

TEST(remains_that_cannot_be_listed_are_remains) {
  lode_error err;
  lode_store *store;
  const char *folder = test_folder();
  CHECK(mkdir(join(folder, "segments"), 0700) == 0);
  FAILS(LODE_NOT_FOUND, lode_open(folder, NULL, &store, &err));
  fault_install(&os_real);
  fault_set(FAULT_DIR_NEXT, 1, true, FAULT_EIO);
  FAILS(LODE_CORRUPT, lode_open(folder, NULL, &store, &err));
  CHECK(fault_hits());
  fault_uninstall();
}

/* ---- Killed and failing on the way ---- */

typedef struct clear_work {
  const char *folder, *to;
} clear_work;

static lode_status clear_in_child(void *ctx, lode_error *err) {
  const clear_work *w = ctx;
  return storefile_clear(w->folder, STOREFILE_DATA, w->to, NULL, err);
}

static void check_killed(bool moves) {
  const char *scratch = test_folder(), *work = test_folder();
  lode_error err;
  const char *made = make_store(scratch);
  for (uint64_t n = 1;; n++) {
    char folder[4200], to[4200];
    snprintf(folder, sizeof folder, "%s/s%llu", work, (unsigned long long)n);
    snprintf(to, sizeof to, "%s/t%llu", work, (unsigned long long)n);
    test_copy_tree(made, folder);
    CHECK(mkdir(to, 0700) == 0);
    clear_work w = {folder, moves ? to : NULL};
    bool through = fault_in_child(clear_in_child, &w, FAULT_ANY, n, FAULT_EXIT) != 0;
    /* a store with all its records, or a place for a new one */
    lode_open_options o = {.create = true, .no_background = true};
    lode_store *store = NULL;
    lode_stats stats;
    bool whole = exists(folder, "lode.db");
    OK(lode_open(folder, &o, &store, &err));
    OK(lode_store_stats(store, &stats, &err));
    OK(lode_verify(store, NULL, NULL, (lode_progress){0}, &err));
    CHECKF(stats.records == (whole ? 40u : 0u), "killed at %llu: %llu records", (unsigned long long)n,
           (unsigned long long)stats.records);
    lode_close(store);
    if (moves) CHECK(whole != exists(to, "lode.db"));
    if (through) break;
    CHECK(n < 500);
  }
}

TEST_SLOW(a_kill_while_files_are_removed_leaves_a_store_or_none, 120) { check_killed(false); }
TEST_SLOW(a_kill_while_files_are_moved_loses_none, 120) { check_killed(true); }

TEST(memory_may_run_out_while_files_are_listed) {
  lode_error err;
  fault_alloc_install();
  const char *folder = test_folder();
  put_text(folder, "thesis.txt", "mine");
  for (uint64_t n = 1;; n++) {
    strbuf foreign = {0};
    put_text(folder, "lode.db", "1");
    put_text(folder, "config.json", "1");
    fault_alloc_set(n, false);
    lode_status st = storefile_clear(folder, STOREFILE_DATA, NULL, &foreign, &err);
    bool hit = fault_alloc_hits() > 0;
    fault_alloc_set(0, false);
    strbuf_release(&foreign);
    CHECKF(st == (hit ? LODE_NOMEM : LODE_OK) || (hit && st == LODE_IO), "%llu: %s", (unsigned long long)n,
           lode_status_name(st));
    CHECK(exists(folder, "config.json") && exists(folder, "thesis.txt"));
    if (!hit) break;
  }
}
