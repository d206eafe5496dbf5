/* SPDX-License-Identifier: Apache-2.0 */
/* test_trust.c - the list of folders that a user trusts, and git's index as far as it says what is tracked: right
 * answers from real repositories, and no harm from damaged files. test/shell/trust.sh has the rest, from end to end. */
#include "scan/git.h"
#include "scan/git_index.h"
#include "project/trust.h"
#include "project/trust_list.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "support/fault.h"
#include "support/test.h"

static char base[4096];

/* Runs a command in the test's folder. */
__attribute__((format(printf, 1, 2))) static void sh(const char *format, ...) {
  char command[13000], rest[4000];
  va_list list;
  va_start(list, format);
  vsnprintf(rest, sizeof rest, format, list);
  va_end(list);
  snprintf(command, sizeof command,
           "cd '%s' && export HOME='%s' GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b "
           "GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b && { %s; } >/dev/null 2>&1",
           base, base, rest);
  CHECKF(system(command) == 0, "%s", rest);
}

static void begin(void) {
  char *real = realpath(test_folder(), NULL);
  CHECK(real != NULL);
  snprintf(base, sizeof base, "%s", real);
  free(real);
  setenv("XDG_DATA_HOME", base, 1);
  unsetenv("LODE_TRUST");
  unsetenv("SUDO_UID");
}

static const char *at(const char *name) {
  static char path[4][8300];
  static size_t i;
  i = (i + 1) % 4;
  snprintf(path[i], sizeof path[i], "%s/%s", base, name);
  return path[i];
}

static const char *const except[] = {"config.json", ".gitignore", NULL};

static git_tracked tracked(const char *folder) {
  strbuf file = {0};
  git_tracked t = git_tracks(at(folder), ".lode", except, false, &file);
  CHECK((t == GIT_TRACKED_NO) == (file.len == 0));
  git_tracked quick = git_tracks(at(folder), ".lode", except, true, &file);
  CHECKF(quick == t || t == GIT_TRACKED_UNKNOWN, "%s: quickly %d, wholly %d", folder, (int)quick, (int)t);
  strbuf_release(&file);
  return t;
}

/* Opening a device may act on it, and opening a FIFO wakes or waits for another process: neither is done, not even for
 * a moment. */
static int spy_open(const char *path, int flags, unsigned mode) {
  struct stat sb;
  int fd = os_real.open(path, flags, mode);
  if (fd >= 0 && fstat(fd, &sb) == 0 && !S_ISREG(sb.st_mode) && !S_ISDIR(sb.st_mode))
    test_failed(__FILE__, __LINE__, "opened: %s", path);
  return fd;
}

/* ---- Real repositories ---- */

static void make_repository(const char *name, const char *init) {
  sh("git init -q %s %s && cd %s && mkdir -p .lode/segments sub/deep/.lode A z && echo x >.lode/lode.db && echo x "
     ">.lode/config.json && "
     "echo x >A/a && echo x >z/z && echo x >sub/deep/.lode/lode.db && echo x >.lodestar && echo x >.lode-old && "
     "git add A z .lodestar .lode-old .lode/config.json",
     init, name, name);
}

TEST(what_git_tracks_is_known_from_every_kind_of_index) {
  static const struct {
    const char *name, *init, *after;
  } kinds[] = {
      {"v2", "", "git update-index --index-version 2"},
      {"v3", "", "touch i && git add -N i && git update-index --index-version 3"},
      {"v4", "", "git update-index --index-version 4"},
      {"split", "", "git update-index --split-index && echo y >later && git add later"},
      {"split4", "",
       "git update-index --index-version 4 && git update-index --split-index && echo y >A/a && git add A"},
      {"sha256", "--object-format=sha256", "git update-index --index-version 2"},
      {"sha256v4", "--object-format=sha256", "git update-index --index-version 4"},
      {"sha256split", "--object-format=sha256", "git update-index --split-index && echo y >later && git add later"},
  };
  begin();
  CHECK(tracked(".") == GIT_TRACKED_NO); /* no repository */
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const char *name = kinds[i].name;
    char deep[64];
    make_repository(name, kinds[i].init);
    snprintf(deep, sizeof deep, "%s/sub/deep", name);
    sh("cd %s && %s", name, kinds[i].after);
    CHECKF(tracked(name) == GIT_TRACKED_NO && tracked(deep) == GIT_TRACKED_NO, "%s: settings alone", name);
    sh("cd %s && git add -f sub && %s", name, kinds[i].after);
    CHECKF(tracked(name) == GIT_TRACKED_NO && tracked(deep) == GIT_TRACKED_YES, "%s: a store further down", name);
    sh("cd %s && git add -f .lode && git commit -qm all", name);
    CHECKF(tracked(name) == GIT_TRACKED_YES, "%s: the store", name);
    sh("git clone -q %s %s-clone", name, name);
    snprintf(deep, sizeof deep, "%s-clone", name);
    CHECKF(tracked(deep) == GIT_TRACKED_YES, "%s: a clone", name);
  }
  sh("git init -q empty && mkdir empty/.lode");
  CHECK(tracked("empty") == GIT_TRACKED_NO); /* there is no index yet */
}

TEST(worktrees_submodules_and_sparse_checkouts_have_their_index_elsewhere) {
  begin();
  make_repository("r", "");
  sh("cd r && git add -f .lode && git commit -qm all && git worktree add -q ../tree");
  CHECK(tracked("tree") == GIT_TRACKED_YES);
  sh("cd tree && git rm -q --cached -r .lode");
  CHECK(tracked("tree") == GIT_TRACKED_NO && tracked("r") == GIT_TRACKED_YES);
  sh("git init -q super && cd super && git -c protocol.file.allow=always submodule add -q ../r part && mkdir .lode && "
     "echo x >.lode/lode.db");
  CHECK(tracked("super/part") == GIT_TRACKED_YES && tracked("super") == GIT_TRACKED_NO);
  sh("cd super && rm -rf .lode && git -c protocol.file.allow=always submodule add -q ../r .lode");
  CHECK(tracked("super") == GIT_TRACKED_YES); /* the folder is a submodule */
  sh("cd r && git add -f sub && git commit -qm sub && cd .. && git clone -q --sparse r sparse && cd sparse && "
     "git sparse-checkout set --cone --sparse-index A && mkdir -p .lode sub/deep/.lode sub/other/.lode");
  CHECK(tracked("sparse") == GIT_TRACKED_YES); /* the store's own folder is closed */
  /* Below a closed folder: the index does not say */
  CHECK(tracked("sparse/sub/deep") == GIT_TRACKED_UNKNOWN && tracked("sparse/sub/other") == GIT_TRACKED_UNKNOWN);
  sh("git init -q sparse/sub/inner && mkdir sparse/sub/inner/.lode");
  CHECK(tracked("sparse/sub/inner") == GIT_TRACKED_UNKNOWN); /* the closed folder is of the repository around */
  CHECK(tracked("sparse/A") == GIT_TRACKED_NO);
  /* A .git that leads nowhere is not "no repository" */
  sh("mkdir -p r/gone && echo 'gitdir: /nowhere' >r/gone/.git");
  CHECK(tracked("r/gone") == GIT_TRACKED_UNKNOWN);
  /* The repository around tracks what a nearer, empty one does not; and one around that is damaged stops nobody */
  sh("cd r && mkdir -p in/.lode && echo x >in/.lode/lode.db && git add -f in && git init -q in");
  CHECK(tracked("r/in") == GIT_TRACKED_YES);
  sh("cd r && echo junk >.git/index");
  CHECK(tracked("r") == GIT_TRACKED_UNKNOWN && tracked("r/in") == GIT_TRACKED_NO);
}

TEST(letters_in_the_other_case_count) {
  begin();
  sh("git init -q r && cd r && mkdir .LODE && echo x >.LODE/Lode.db && git add -f .LODE");
  CHECK(tracked("r") == GIT_TRACKED_YES);
}

/* ---- Damaged ones ---- */

static size_t bytes_read;
static ssize_t count_pread(int fd, void *buf, size_t n, off_t off) {
  ssize_t got = os_real.pread(fd, buf, n, off);
  if (got > 0) bytes_read += (size_t)got;
  return got;
}

TEST(a_quick_answer_is_the_same_and_reads_little) {
  static const char *const names[] = {".LODE/x",
                                      ".Lode/lode.db",
                                      ".lode/config.json",
                                      ".lode/lode.db",
                                      ".lode-old/x",
                                      ".lode",
                                      ".lode0",
                                      ".lod",
                                      ".lodf",
                                      ".lode/.gitignore",
                                      "!",
                                      "+",
                                      ".",
                                      "..x",
                                      "A/a",
                                      "a/.lode/x",
                                      "Sub/.LODE/x",
                                      "sub/.lode/x",
                                      "sub/.lod",
                                      "sub/.lodes/x",
                                      "sub",
                                      "sub/a",
                                      "sub0/.lode/x",
                                      "tub/x",
                                      "\303\274",
                                      ".lode/\303\274",
                                      "SUB/.lode/y",
                                      "sub-/x"};
  enum { NAMES = sizeof names / sizeof *names, ROUNDS = 24 };
  os_calls counting = os_real;
  uint64_t seed = test_seed();
  strbuf file = {0}, lines = {0};
  begin();
  sh("git init -q r && mkdir r/sub && git -C r hash-object -w --stdin </dev/null");
  for (int round = 0; round < ROUNDS; round++) {
    lines.len = 0;
    for (size_t i = 0; i < NAMES; i++) {
      seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      if (seed >> 33 & 3) continue;
      strbuf_addf(&lines, "100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\t\"%s\"\n", names[i]);
    }
    test_write_file(at("lines"), lines.data ? lines.data : "", lines.len);
    sh("cd r && rm -f .git/index && git update-index --index-version %d && git update-index --replace --index-info "
       "<../lines",
       round % 2 ? 4 : 2);
    (void)tracked("r"); /* checks that both agree */
    (void)tracked("r/sub");
  }
  lines.len = 0;
  for (int i = 0; i < 20000; i++) strbuf_addf(&lines, "100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\tsrc/%05d\n", i);
  test_write_file(at("lines"), lines.data, lines.len);
  sh("cd r && rm -f .git/index && git update-index --index-info <../lines && test $(wc -c <.git/index) -gt 1000000");
  counting.pread = count_pread;
  os_api = &counting;
  CHECK(git_tracks(at("r"), ".lode", except, true, &file) == GIT_TRACKED_NO);
  os_api = &os_real;
  CHECKF(bytes_read && bytes_read < 100000, "%zu bytes were read", bytes_read);
  strbuf_release(&file);
  strbuf_release(&lines);
}

static git_tracked ask(const void *data, size_t size, size_t oid) {
  git_index_query q = {.below = {".lode", 5}, .except = except, .oid_bytes = oid};
  git_index_answer a;
  int fd = open(at("index"), O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
  git_index_read(fd, size, &q, &a);
  close(fd);
  return a.tracked;
}

TEST(a_damaged_index_of_git_ends_in_an_answer) {
  static const char *const versions[] = {"--index-version 2", "--index-version 4", "--split-index"};
  begin();
  make_repository("r", "");
  sh("cd r && git add -f .lode");
  for (size_t v = 0; v < 3; v++) {
    size_t size;
    sh("cd r && git update-index %s", versions[v]);
    unsigned char *text = (unsigned char *)test_read_file(at("r/.git/index"), &size);
    CHECK(v == 2 || ask(text, size, 20) == GIT_TRACKED_YES);
    for (size_t i = 0; i < size; i++) {
      static const unsigned char masks[] = {0xff, 0x80, 0x01};
      unsigned char was = text[i];
      text[i] ^= masks[i % 3];
      (void)ask(text, size, i % 2 ? 20 : 32);
      text[i] = was;
    }
    /* Cut in the middle of its entries: never "no". (One that is split ends in an extension.) */
    for (size_t i = 0; v < 2 && i < size; i += 1 + size / 64) CHECK(ask(text, i, 20) == GIT_TRACKED_UNKNOWN);
    free(text);
  }
}

TEST(counts_and_lengths_of_an_index_are_not_believed) {
  unsigned char text[200] = "DIRC\0\0\0\2\xff\xff\xff\xff";
  begin();
  CHECK(ask(text, sizeof text, 20) == GIT_TRACKED_UNKNOWN); /* four thousand million entries */
  memcpy(text, "DIRC\0\0\0\2\0\0\0\0link\xff\xff\xff\xff", 20);
  CHECK(ask(text, sizeof text, 20) == GIT_TRACKED_UNKNOWN);
  memcpy(text, "DIRC\0\0\0\5\0\0\0\0", 12);
  CHECK(ask(text, sizeof text, 20) == GIT_TRACKED_UNKNOWN); /* a version that is not known */
  memset(text, 0, sizeof text);
  memcpy(text, "DIRC\0\0\0\2\0\0\0\0newx\0\0\0\0", 20);
  CHECK(ask(text, 40, 20) == GIT_TRACKED_UNKNOWN); /* an extension that must be understood, and is not */
  memcpy(text + 12, "NEWX", 4);
  CHECK(ask(text, 40, 20) == GIT_TRACKED_NO);
  CHECK(ask("", 0, 20) == GIT_TRACKED_UNKNOWN);
}

TEST(what_lies_in_place_of_gits_files_is_not_opened) {
  static const char *const names[] = {"r/.git/index",
                                      "r/.git/config",
                                      "r/.git/info/exclude",
                                      "tree/.git",
                                      "r/.git/worktrees/tree/index",
                                      "r/.git/worktrees/tree/commondir",
                                      "split/.git/sharedindex"};
  static const char *const kinds[] = {"mkfifo", "mkdir", "ln -s /dev/zero",
                                      "python3 -c 'import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])'",
                                      "ln -s ."};
  os_calls spying = os_real;
  begin();
  make_repository("r", "");
  sh("cd r && git add -f .lode && git commit -qm all && git worktree add -q ../tree");
  make_repository("split", "");
  sh("cd split && git add -f .lode && git update-index --split-index && echo y >later && git add later");
  spying.open = spy_open;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *folder = i < 3 ? "r" : i < 6 ? "tree" : "split";
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
      strbuf git = {0};
      ignore_rules *ignore = NULL;
      lode_error err;
      size_t top;
      sh("rm -rf kept && mkdir kept && for f in %s*; do mv $f kept/ && %s $f; done", names[i], kinds[k]);
      os_api = &spying;
      git_tracked t = tracked(folder);
      bool leads = i == 3 && (k == 1 || k == 4); /* an empty folder as .git is a repository without an index */
      git_tracked want = leads                                ? GIT_TRACKED_NO
                         : i == 3 || strstr(names[i], "ndex") ? GIT_TRACKED_UNKNOWN
                                                              : GIT_TRACKED_YES;
      CHECKF(t == want, "%s by %s: %d", names[i], kinds[k], (int)t);
      (void)git_find_repo(at(folder), &top, &git);
      OK(ignore_new(&ignore, &err));
      OK(git_add_excludes(ignore, git.len ? git.data : "", &err));
      ignore_free(ignore);
      os_api = &os_real;
      strbuf_release(&git);
      int parent = (int)(strrchr(names[i], '/') - names[i]);
      sh("for f in $(ls -A kept); do rm -rf %.*s/$f && mv kept/$f %.*s/; done", parent, names[i], parent, names[i]);
    }
    CHECKF(tracked(folder) == GIT_TRACKED_YES, "%s was not put back", names[i]);
  }
}

/* ---- The list ---- */

static lode_status try_put(const char *path, trust_level level, const char *id, const char *file, const char *settings,
                           lode_error *err) {
  trust_entry e = {.level = level};
  strbuf_add(&e.path, path, strlen(path) + 1);
  snprintf(e.id, sizeof e.id, "%s", id);
  snprintf(e.file, sizeof e.file, "%s", file);
  strbuf_addstr(&e.settings, settings);
  lode_status st = e.path.failed || e.settings.failed ? LODE_NOMEM : trust_list_put(&e, err);
  trust_entry_release(&e);
  return st;
}

static void put(const char *path, trust_level level, const char *id, const char *file, const char *settings) {
  lode_error err;
  OK(try_put(path, level, id, file, settings, &err));
}

static size_t list_size(char *note, size_t size) {
  trust_list list;
  trust_entry e = {0};
  size_t place = 0, n = 0;
  trust_list_read(&list);
  while (trust_list_next(&list, &place, &e)) n++;
  if (note) snprintf(note, size, "%s", list.note);
  CHECK(!list.note[0] || n == 0);
  trust_entry_release(&e);
  trust_list_release(&list);
  return n;
}

TEST(entries_come_back_as_they_were) {
  static const char *const paths[] = {
      "/a/.lode",          "/a/b/.lode",     "/with \"quotes\"\n/.lode", "/not utf-8 \xff\xfe/.lode",
      "/with \\x41/.lode", "/\xc3\xbc/.lode"};
  trust_list list;
  trust_entry e = {0};
  lode_error err;
  bool was;
  begin();
  CHECK(list_size(NULL, 0) == 0);
  for (size_t i = 0; i < 6; i++)
    put(paths[i], (trust_level)(i % 3), "00ff", "8.1-2-3.4", i == 1 ? "{\"model\":\"openai:x\"}" : "");
  put(paths[0], TRUST_LEVEL_TRUSTED, "01", "9", "{\"model\":\"a\"}"); /* replaced, not added */
  trust_list_read(&list);
  CHECK(!list.note[0]);
  for (size_t i = 0; i < 6; i++) {
    CHECKF(trust_list_find(&list, paths[i], &e) && strcmp(e.path.data, paths[i]) == 0, "%s", paths[i]);
    if (i) CHECK(e.level == (trust_level)(i % 3) && strcmp(e.id, "00ff") == 0);
    CHECK(e.settings.len == (i == 0 ? 13 : i == 1 ? 20 : 0));
  }
  CHECK(trust_list_find(&list, paths[0], &e) && e.level == TRUST_LEVEL_TRUSTED && strcmp(e.file, "9") == 0);
  CHECK(!trust_list_find(&list, "/a", &e) && !trust_list_find(&list, "/a/.lod", &e) && !trust_list_find(&list, "", &e));
  CHECK(trust_list_find_file(&list, "9", &e) && strcmp(e.path.data, paths[0]) == 0);
  CHECK(!trust_list_find_file(&list, "", &e) && !trust_list_find_file(&list, "8.1", &e));
  trust_list_release(&list);
  CHECK(list_size(NULL, 0) == 6);
  OK(trust_list_remove(paths[3], &was, &err));
  CHECK(was && list_size(NULL, 0) == 5);
  OK(trust_list_remove(paths[3], &was, &err));
  CHECK(!was);
  trust_entry_release(&e);
}

TEST(a_damaged_list_is_empty_and_says_so) {
  char note[400];
  size_t size;
  begin();
  put("/a/.lode", TRUST_LEVEL_MADE, "1", "2", "{\"model\":\"openai:x\"}");
  put("/b/.lode", TRUST_LEVEL_ADOPTED, "3", "4", "");
  char *text = test_read_file(at("lode/trusted"), &size);
  for (size_t i = 0; i < size; i++) {
    char was = text[i];
    text[i] ^= (char)(1 << i % 8);
    test_write_file(at("lode/trusted"), text, size);
    size_t n = list_size(note, sizeof note);
    /* A digit of the checksum in the other case is the same number */
    CHECKF(n == 0 ? note[0] != 0 : n == 2 && i >= 15 && i < 23 && i % 8 == 5, "byte %zu: %zu entries, %s", i, n, note);
    text[i] = was;
  }
  for (size_t i = 0; i < size; i++) {
    test_write_file(at("lode/trusted"), text, i);
    CHECKF(list_size(note, sizeof note) == 0 && note[0], "cut to %zu bytes", i);
  }
  /* The next change begins a new list, and keeps what was there */
  put("/c/.lode", TRUST_LEVEL_MADE, "", "", "");
  CHECK(list_size(note, sizeof note) == 1 && !note[0]);
  CHECK(access(at("lode/trusted.damaged"), F_OK) == 0);
  free(text);
}

TEST(a_list_of_others_is_not_used) {
  char note[400];
  begin();
  put("/a/.lode", TRUST_LEVEL_MADE, "", "", "");
  CHECK(chmod(at("lode/trusted"), 0660) == 0);
  CHECK(list_size(note, sizeof note) == 0 && strstr(note, "written by other"));
  CHECK(chmod(at("lode/trusted"), 0600) == 0 && list_size(note, sizeof note) == 1);
  if (geteuid() == 0) {
    CHECK(chown(at("lode/trusted"), 65534, 65534) == 0);
    CHECK(list_size(note, sizeof note) == 0 && strstr(note, "another user"));
  }
  CHECK(unlink(at("lode/trusted")) == 0 && mkfifo(at("lode/trusted"), 0600) == 0);
  CHECK(list_size(note, sizeof note) == 0 && note[0]);
  CHECK(unlink(at("lode/trusted")) == 0 && symlink("/dev/zero", at("lode/trusted")) == 0);
  CHECK(list_size(note, sizeof note) == 0 && note[0]);
}

TEST(the_list_is_bounded) {
  char path[100];
  trust_list list;
  trust_entry e = {0};
  strbuf lines = {0}, all = {0};
  begin();
  put("/a/.lode", TRUST_LEVEL_MADE, "", "", "");
  for (int i = 0; i < TRUST_MAX_ENTRIES; i++) /* at once: each put is synced */
    strbuf_addf(&lines, "{\"path\":\"%s/%d\",\"level\":\"made\",\"id\":\"\",\"file\":\"\",\"settings\":{}}\n",
                i % 2 ? base : "/gone", i);
  strbuf_addf(&all, "lode-trusted 1 %08x\n", crc32c_update(0, lines.data, lines.len));
  strbuf_add(&all, lines.data, lines.len);
  test_write_file(at("lode/trusted"), all.data, all.len);
  CHECK(list_size(NULL, 0) == TRUST_MAX_ENTRIES);
  for (int i = 1; i < 6; i += 2) {
    snprintf(path, sizeof path, "%d", i);
    CHECK(mkdir(at(path), 0700) == 0); /* exist, and are the oldest */
  }
  put("/new/.lode", TRUST_LEVEL_MADE, "", "", "");
  trust_list_read(&list);
  CHECK(trust_list_find(&list, "/new/.lode", &e) && trust_list_find(&list, at("1"), &e));
  CHECK(!trust_list_find(&list, "/gone/0", &e) && list_size(NULL, 0) <= TRUST_MAX_ENTRIES);
  trust_entry_release(&e);
  trust_list_release(&list);
  strbuf_release(&lines);
  strbuf_release(&all);
}

TEST(a_list_that_is_a_link_is_written_through) {
  char note[400], to[PATH_MAX];
  begin();
  put("/a/.lode", TRUST_LEVEL_MADE, "", "", "");
  sh("mkdir elsewhere && mv lode/trusted elsewhere/list && ln -s ../elsewhere/list lode/two && ln -s two lode/trusted");
  CHECK(list_size(note, sizeof note) == 1 && !note[0]);
  put("/b/.lode", TRUST_LEVEL_MADE, "", "", "");
  CHECK(list_size(note, sizeof note) == 2 && !note[0]);
  CHECK(readlink(at("lode/trusted"), to, sizeof to) == 3 && memcmp(to, "two", 3) == 0);
  sh("test $(ls elsewhere) = list && grep -q /b/.lode elsewhere/list && rm elsewhere/list");
  CHECK(list_size(note, sizeof note) == 0 && !note[0]);
  put("/c/.lode", TRUST_LEVEL_MADE, "", "", "");
  sh("test -L lode/trusted && grep -q /c/.lode elsewhere/list && printf x >>elsewhere/list");
  CHECK(list_size(note, sizeof note) == 0 && strstr(note, "damaged"));
  put("/d/.lode", TRUST_LEVEL_MADE, "", "", "");
  sh("test -L lode/trusted && grep -q /c/.lode elsewhere/list.damaged && grep -q /d/.lode elsewhere/list");
  /* What is not a file of this user's is neither moved nor written: the link gives way */
  sh("rm lode/trusted && ln -s ../elsewhere lode/trusted");
  CHECK(list_size(note, sizeof note) == 0 && strstr(note, "not a file"));
  put("/e/.lode", TRUST_LEVEL_MADE, "", "", "");
  CHECK(list_size(note, sizeof note) == 1 && !note[0]);
  sh("test -f lode/trusted && test ! -L lode/trusted && test -d elsewhere && grep -q /d/.lode elsewhere/list");
  if (geteuid() == 0) {
    sh("mv lode/trusted elsewhere/theirs && chown 65534 elsewhere/theirs && ln -s ../elsewhere/theirs lode/trusted");
    CHECK(list_size(note, sizeof note) == 0 && strstr(note, "another user"));
    put("/f/.lode", TRUST_LEVEL_MADE, "", "", "");
    sh("test ! -L lode/trusted && grep -q /e/.lode elsewhere/theirs && ! grep -q /f/.lode elsewhere/theirs");
    /* Each link of a chain counts, not only the first */
    sh("mv lode/trusted elsewhere/mine && ln -s mine elsewhere/three && ln -s three elsewhere/two && ln -s "
       "../elsewhere/two lode/trusted");
    CHECK(list_size(note, sizeof note) == 1 && !note[0]);
    sh("chown -h 65534 elsewhere/three");
    CHECK(list_size(note, sizeof note) == 0 && strstr(note, "another user"));
    put("/g/.lode", TRUST_LEVEL_MADE, "", "", "");
    sh("test ! -L lode/trusted && grep -q /g/.lode lode/trusted && ! grep -q /g/.lode elsewhere/mine && test -L "
       "elsewhere/three");
  }
}

TEST(a_list_that_names_devices_is_understood) {
  trust_list list;
  trust_entry e = {0};
  begin();
  put("/a/.lode", TRUST_LEVEL_MADE, "1", "fe.1-2a-65.7", "");
  put("/b/.lode", TRUST_LEVEL_MADE, "1", "fe01-2a", ""); /* no time of birth */
  put("/c/.lode", TRUST_LEVEL_MADE, "1", "2b-65.7", "");
  trust_list_read(&list);
  CHECK(trust_list_find(&list, "/a/.lode", &e) && strcmp(e.file, "2a-65.7") == 0);
  CHECK(trust_list_find_file(&list, "2a-65.7", &e) && strcmp(e.path.data, "/a/.lode") == 0);
  CHECK(trust_list_find_file(&list, "fe01-2a", &e) && strcmp(e.path.data, "/b/.lode") == 0);
  CHECK(trust_list_find_file(&list, "2b-65.7", &e) && strcmp(e.path.data, "/c/.lode") == 0);
  CHECK(!trust_list_find_file(&list, "a-65.7", &e) && !trust_list_find_file(&list, "65.7", &e));
  CHECK(!trust_list_find_file(&list, "2a", &e));
  trust_entry_release(&e);
  trust_list_release(&list);
}

TEST(many_processes_change_it_at_once) {
  enum { PROCESSES = 8, EACH = 6 };
  begin();
  for (int p = 0; p < PROCESSES; p++) {
    if (fork() != 0) continue;
    for (int i = 0; i < EACH; i++) {
      char path[64];
      snprintf(path, sizeof path, "/p%d/%d/.lode", p, i);
      put(path, TRUST_LEVEL_ADOPTED, "1", "", "");
    }
    _exit(0);
  }
  for (int p = 0, status; p < PROCESSES; p++) CHECK(wait(&status) > 0 && status == 0);
  CHECKF(list_size(NULL, 0) == PROCESSES * EACH, "%zu entries", list_size(NULL, 0));
}

/* ---- Faults: whatever fails, the list is as it was or as it should be ---- */

static void check_after(const char *what, uint64_t n, lode_status st) {
  char note[400];
  size_t now = list_size(note, sizeof note);
  /* A folder that cannot be synced is reported, and the new list is there */
  CHECKF(!note[0] && (now == 2 || (st != LODE_OK && now == 1)), "%s %llu: %s, %zu entries, %s", what,
         (unsigned long long)n, lode_status_name(st), now, note);
}

TEST(a_change_that_fails_leaves_the_list_whole) {
  static const fault_effect effects[] = {FAULT_EIO, FAULT_ENOSPC, FAULT_EINTR};
  lode_error err;
  bool was;
  begin();
  fault_alloc_install();
  put("/a/.lode", TRUST_LEVEL_MADE, "1", "2", "");
  for (uint64_t n = 1;; n++) {
    fault_alloc_set(n, false);
    lode_status st = try_put("/b/.lode", TRUST_LEVEL_TRUSTED, "", "", "{\"model\":\"x\"}", &err);
    bool hit = fault_alloc_hits();
    fault_alloc_set(0, false);
    check_after("allocation", n, st);
    OK(trust_list_remove("/b/.lode", &was, &err));
    if (!hit) break;
    CHECK(n < 1000);
  }
  for (size_t k = 0; k < 3; k++) {
    for (uint64_t n = 1;; n++) {
      fault_install(&os_real);
      fault_set(FAULT_ANY, n, false, effects[k]);
      lode_status st = try_put("/b/.lode", TRUST_LEVEL_TRUSTED, "", "", "", &err);
      bool hit = fault_hits();
      fault_uninstall();
      if (effects[k] == FAULT_EINTR) CHECKF(st == LODE_OK, "EINTR at call %llu: %s", (unsigned long long)n, err.text);
      check_after("call", n, st);
      OK(trust_list_remove("/b/.lode", &was, &err));
      if (!hit) break;
      CHECK(n < 1000);
    }
  }
}

static lode_status put_b(void *ctx, lode_error *err) {
  (void)ctx;
  return try_put("/b/.lode", TRUST_LEVEL_TRUSTED, "", "", "", err);
}

TEST(a_change_that_is_killed_leaves_the_list_whole) {
  lode_error err;
  bool was;
  begin();
  put("/a/.lode", TRUST_LEVEL_MADE, "1", "2", "");
  for (uint64_t n = 1;; n++) {
    bool through = fault_in_child(put_b, NULL, FAULT_ANY, n, FAULT_EXIT) != 0;
    check_after("killed at call", n, through ? LODE_OK : LODE_IO);
    OK(trust_list_remove("/b/.lode", &was, &err)); /* and the lock has died with its holder */
    if (through) break;
    CHECK(n < 1000);
  }
}

/* ---- What is looked at ---- */

static void make_store(const char *folder) {
  lode_error err;
  lode_store *store;
  lode_open_options options = {.create = true, .no_background = true};
  OK(lode_open(at(folder), &options, &store, &err));
  lode_close(store);
}

static trust_state look(const char *folder, bool remember, bool *said) {
  trust_info trust;
  trust_examine(at(folder), remember, &trust);
  if (said) *said = trust.note[0] != 0;
  trust_state state = trust.state;
  trust_release(&trust);
  return state;
}

TEST(a_store_is_known_by_its_file_or_by_its_place_and_id) {
  lode_error err;
  bool said;
  begin();
  sh("mkdir p q");
  CHECK(look("p/.lode", true, NULL) == TRUST_NONE);
  make_store("p/.lode");
  CHECK(look("p/.lode", false, &said) == TRUST_ADOPTED && said);
  CHECK(look("p/.lode", true, &said) == TRUST_ADOPTED && said); /* it was not to be remembered before */
  CHECK(look("p/.lode", true, &said) == TRUST_ADOPTED && !said);
  OK(trust_add_created(at("p/.lode"), NULL, &err)); /* by a process that cannot write the list */
  CHECK(look("p/.lode", true, &said) == TRUST_OURS && !said);
  sh("mv p/.lode q/.lode");
  CHECK(look("q/.lode", true, &said) == TRUST_OURS && !said); /* moved */
  sh("cp -a q/.lode p/.lode");
  CHECK(look("p/.lode", true, &said) == TRUST_OURS && !said); /* the same id at a place that is known */
  sh("mkdir r && cp -a q/.lode r/.lode");
  CHECK(look("r/.lode", true, &said) == TRUST_ADOPTED && said); /* the same id elsewhere proves nothing */
  sh("rm -rf q/.lode && cp -a r/.lode q/other && rm q/other/lode.db");
  make_store("q/.lode");
  CHECK(look("q/.lode", true, &said) == TRUST_ADOPTED && said); /* another store at a place that is known */
  setenv("LODE_TRUST", "1", 1);
  CHECK(look("q/.lode", true, &said) == TRUST_NAMED && !said);
}

TEST(an_identity_has_no_device_where_there_are_times_of_birth) {
  char file[TRUST_FILE_CHARS], want[64];
  struct stat st;
  bool exact;
  begin();
  test_write_file(at("f"), "x", 1);
  os_file_identity(at("f"), file, sizeof file, &exact);
  CHECK(stat(at("f"), &st) == 0);
  snprintf(want, sizeof want, "%llx-", (unsigned long long)st.st_ino);
  if (exact) CHECKF(strncmp(file, want, strlen(want)) == 0 && !strchr(file + strlen(want), '-'), "%s", file);
}

TEST(trust_is_of_a_store_and_not_of_a_place) {
  lode_error err;
  strbuf settings = {0};
  bool said;
  begin();
  sh("mkdir -p p/.lode");
  CHECK(trust_grant(at("p/.lode"), &settings, &err) == LODE_NOT_FOUND && strstr(err.text, "no store"));
  OK(trust_set_value(at("p/.lode"), CONFIG_MODEL, STR_LIT("openai:x"), &err)); /* knows the place, and no store */
  make_store("p/.lode");
  CHECK(look("p/.lode", true, &said) == TRUST_ADOPTED && said);
  OK(trust_grant(at("p/.lode"), &settings, &err));
  CHECK(look("p/.lode", true, &said) == TRUST_OURS && !said);
  strbuf_release(&settings);
}

/* A team that commits its settings, and no store. */
TEST(settings_are_trusted_without_a_store) {
  static const char text[] = "{\"model\":\"openai:x\",\"search.limit\":3}", safe[] = "{\"search.limit\":3}";
  lode_error err;
  trust_info trust;
  strbuf settings = {0};
  lode_store *store;
  bool said;
  begin();
  sh("mkdir -p p/.lode q/.lode");
  test_write_file(at("p/.lode/config.json"), safe, sizeof safe - 1);
  CHECK(trust_grant(at("p/.lode"), &settings, &err) == LODE_NOT_FOUND && list_size(NULL, 0) == 0);
  for (int i = 0; i < 2; i++) {
    const char *folder = i ? "q/.lode" : "p/.lode", *config = i ? "q/.lode/config.json" : "p/.lode/config.json";
    test_write_file(at(config), text, sizeof text - 1);
    OK(trust_grant(at(folder), &settings, &err));
    CHECK(settings.len && memmem(settings.data, settings.len, "openai:x", 8));
    trust_examine(at(folder), true, &trust);
    CHECK(trust.state == TRUST_NONE && trust.settings.len);
    trust_release(&trust);
  }
  /* A store that this user makes there has them */
  OK(lode_open(at("p/.lode"), &(lode_open_options){.create = true, .no_background = true}, &store, &err));
  OK(trust_add_created(at("p/.lode"), store, &err));
  lode_close(store);
  trust_examine(at("p/.lode"), true, &trust);
  CHECK(trust.state == TRUST_OURS && !trust.note[0] && trust.settings.len);
  trust_release(&trust);
  /* One that appears there does not */
  make_store("q/.lode");
  trust_examine(at("q/.lode"), true, &trust);
  CHECK(trust.state == TRUST_ADOPTED && trust.note[0] && !trust.settings.len);
  trust_release(&trust);
  CHECK(look("q/.lode", true, &said) == TRUST_ADOPTED && !said);
  strbuf_release(&settings);
}

TEST(what_git_tracks_takes_the_users_word) {
  lode_error err;
  trust_info trust;
  strbuf settings = {0};
  bool said;
  begin();
  sh("git init -q r && cd r && mkdir -p .lode/segments && echo x >.lode/segments/a && git add -f .lode");
  CHECK(look("r/.lode", true, NULL) == TRUST_TRACKED); /* there is no store */
  sh("cd r && git rm -rq --cached .lode && echo {} >.lode/config.json && touch .lode/.gitignore && git add -f "
     ".lode/config.json .lode/.gitignore");
  CHECK(look("r/.lode", true, NULL) == TRUST_NONE);
  make_store("r/.lode");
  OK(trust_add_created(at("r/.lode"), NULL, &err));
  CHECK(look("r/.lode", true, &said) == TRUST_OURS && !said);
  OK(trust_grant(at("r/.lode"), &settings, &err)); /* of what git does not track */
  sh("cd r && git add -f .lode/segments");
  CHECK(look("r/.lode", true, NULL) == TRUST_TRACKED);
  trust_examine(at("r/.lode"), true, &trust);
  CHECKF(strstr(trust.why, "git rm -r --cached .lode") && strstr(trust.why, "lode trust "), "%s", trust.why);
  trust_release(&trust);
  OK(trust_grant(at("r/.lode"), &settings, &err));
  for (int i = 0; i < 2; i++) CHECK(look("r/.lode", true, &said) == TRUST_OURS && said); /* each time */
  /* What is not known about git takes nothing away from a store that is known */
  sh("cp r/.git/index index && printf junk >r/.git/index");
  CHECK(look("r/.lode", true, &said) == TRUST_OURS && !said);
  sh("mv index r/.git/index && cd r && git rm -rq --cached .lode");
  CHECK(look("r/.lode", true, &said) == TRUST_OURS && !said);
  /* That word was about that store, not about the next one */
  sh("rm r/.lode/lode.*");
  lode_store *store;
  OK(lode_open(at("r/.lode"), &(lode_open_options){.create = true, .no_background = true}, &store, &err));
  OK(trust_add_created(at("r/.lode"), store, &err));
  lode_close(store);
  CHECK(look("r/.lode", true, &said) == TRUST_OURS && !said);
  sh("cd r && git add -f .lode/segments");
  CHECK(look("r/.lode", true, NULL) == TRUST_TRACKED);
  strbuf_release(&settings);
}

TEST(the_users_word_about_a_tracked_store_ends_with_its_reason) {
  lode_error err;
  strbuf settings = {0};
  bool said;
  begin();
  sh("git init -q r && mkdir r/.lode");
  make_store("r/.lode");
  sh("cd r && git add -f .lode && git commit -qm one");
  CHECK(look("r/.lode", true, NULL) == TRUST_TRACKED);
  OK(trust_grant(at("r/.lode"), &settings, &err));
  CHECK(look("r/.lode", true, &said) == TRUST_OURS && said);
  sh("cd r && git rm -rq --cached .lode && git commit -qm two");
  CHECK(look("r/.lode", false, &said) == TRUST_OURS && !said); /* the list must not be written */
  sh("cd r && mkdir -p .lode/segments && echo x >.lode/segments/0123456789abcdef.seg && git add -f .lode/segments");
  CHECK(look("r/.lode", true, &said) == TRUST_OURS && said); /* so nothing is known to have changed */
  sh("cd r && git rm -rq --cached .lode && cp .git/index ../index && printf junk >.git/index");
  CHECK(look("r/.lode", true, &said) == TRUST_OURS && !said);
  sh("mv index r/.git/index && cd r && git add -f .lode/segments");
  CHECK(look("r/.lode", true, &said) == TRUST_OURS && said); /* an index that cannot be read says nothing */
  sh("cd r && git rm -rq --cached .lode");
  CHECK(look("r/.lode", true, &said) == TRUST_OURS && !said);
  sh("cd r && git add -f .lode/segments");
  CHECK(look("r/.lode", true, NULL) == TRUST_TRACKED);
  strbuf_release(&settings);
}

TEST(a_known_store_below_a_closed_folder_is_used) {
  lode_error err;
  bool said;
  begin();
  sh("git init -q r && cd r && mkdir a b && echo x >a/a && echo x >b/b && git add a b && git commit -qm one && "
     "git sparse-checkout set --cone --sparse-index a && mkdir -p b/known b/unknown");
  CHECK(look("r/b/known/.lode", true, NULL) == TRUST_NONE);
  make_store("r/b/known/.lode");
  OK(trust_add_created(at("r/b/known/.lode"), NULL, &err));
  CHECK(look("r/b/known/.lode", true, NULL) == TRUST_TRACKED); /* not known by its file yet */
  lode_store *store;
  OK(lode_open(at("r/b/known/.lode"), &(lode_open_options){.no_background = true}, &store, &err));
  OK(trust_add_created(at("r/b/known/.lode"), store, &err));
  lode_close(store);
  CHECK(look("r/b/known/.lode", true, &said) == TRUST_OURS && !said);
  make_store("r/b/unknown/.lode");
  trust_info trust;
  trust_examine(at("r/b/unknown/.lode"), true, &trust);
  CHECKF(trust.state == TRUST_TRACKED && strstr(trust.why, "sparse"), "%s", trust.why);
  trust_release(&trust);
}

/* Appends /NAME to `path` until it has `len` bytes. */
static void lengthen(char *path, size_t len) {
  size_t n = strlen(path);
  while (n < len) {
    size_t part = len - n > 101 ? 100 : len - n - 1;
    path[n++] = '/';
    memset(path + n, 'n', part);
    path[n += part] = '\0';
    if (len - n == 1) path[n++] = 'n', path[n] = '\0';
  }
}

/* Every command of a refusal is whole, or without a path. */
TEST(no_refusal_shows_a_part_of_a_path_to_copy) {
  static const size_t lengths[] = {150, 190, 200, 210, 215, 220, 230, 260, 300, 500};
  begin();
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    char root[600] = "r", whole[5000];
    trust_info trust;
    lode_error err;
    bool exact = true;
    if (strlen(base) + 3 > lengths[i]) continue;
    lengthen(root, lengths[i] - strlen(base) - 1);
    sh("mkdir -p %s/.lode && git init -q %s && touch %s/.lode/a && cd %s && git add -f .lode", root, root, root, root);
    for (int kind = 0; kind < 4; kind++) {
      const char *command = kind == 3 ? "`chmod -R go-w " : kind ? "`lode trust" : "`git rm -r .lode` in ";
      if (kind == 1) sh("touch %s/.lode/lode.db", root);
      if (kind == 2) { /* known, and git tracks more by now */
        trust_entry e = {.level = TRUST_LEVEL_MADE};
        sh("cd %s && git rm -rq --cached .lode && rm .lode/lode.db", root);
        snprintf(whole, sizeof whole, "%s/.lode", root);
        make_store(whole);
        strbuf_addf(&e.path, "%s/.lode%c", at(root), 0);
        snprintf(whole, sizeof whole, "%s/.lode/lode.db", root);
        os_file_identity(at(whole), e.file, sizeof e.file, &exact);
        OK(trust_list_put(&e, &err));
        trust_entry_release(&e);
        sh("cd %s && git add -f .lode/a", root);
      }
      if (kind == 3) sh("chmod o+w %s/.lode", root);
      snprintf(whole, sizeof whole, "%s/.lode", root);
      trust_examine(at(whole), true, &trust);
      CHECK(trust_check(&trust, &err) == LODE_REFUSED);
      if (kind == 0)
        snprintf(whole, sizeof whole, "`git rm -r .lode` in %s/%s to remove", base, root);
      else if (kind == 3)
        snprintf(whole, sizeof whole, "`chmod -R go-w %s/%s/.lode`", base, root);
      else
        snprintf(whole, sizeof whole, "`lode trust %s/%s`", base, root);
      bool is_whole = strstr(err.text, whole) != NULL,
           is_short = strstr(err.text, "the folder that contains it") != NULL;
      CHECKF(strstr(err.text, command) && is_whole != is_short && (is_whole || lengths[i] > 150), "%zu: %s", lengths[i],
             err.text);
      CHECKF(strstr(err.text, kind == 3            ? "--store"
                              : kind == 2 && exact ? "take it out of git"
                                                   : "LODE_TRUST=1"),
             "%zu: cut: %s", lengths[i], err.text);
      trust_release(&trust);
    }
    sh("rm -rf r*");
  }
}

/* One process makes the store and lists it; another has seen it before that, and adopts it late. */
TEST(who_adopts_late_does_not_replace_who_made_it) {
  trust_list list;
  trust_entry e = {0};
  begin();
  put("/p/.lode", TRUST_LEVEL_MADE, "00000000000000aa", "1-2", "");
  put("/p/.lode", TRUST_LEVEL_ADOPTED, "00000000000000aa", "1-2", "");
  trust_list_read(&list);
  CHECK(trust_list_find(&list, "/p/.lode", &e) && e.level == TRUST_LEVEL_MADE);
  trust_list_release(&list);
  /* another store in its place is another matter */
  put("/p/.lode", TRUST_LEVEL_ADOPTED, "00000000000000bb", "1-3", "");
  trust_list_read(&list);
  CHECK(trust_list_find(&list, "/p/.lode", &e) && e.level == TRUST_LEVEL_ADOPTED);
  trust_list_release(&list);
  trust_entry_release(&e);
}

TEST(many_processes_adopt_one_store_at_once) {
  enum { PROCESSES = 8 };
  begin();
  sh("mkdir p");
  make_store("p/.lode");
  for (int p = 0; p < PROCESSES; p++) {
    if (fork() != 0) continue;
    for (int i = 0; i < 4; i++) CHECK(look("p/.lode", true, NULL) == TRUST_ADOPTED);
    _exit(0);
  }
  for (int p = 0, status; p < PROCESSES; p++) CHECK(wait(&status) > 0 && status == 0);
  CHECKF(list_size(NULL, 0) == 1, "%zu entries", list_size(NULL, 0));
}

TEST(values_count_that_the_user_has_set) {
  lode_error err;
  trust_info trust;
  config_values config;
  strbuf held = {0}, settings = {0};
  static const char text[] = "{\"model\":\"openai:x\",\"search.limit\":3,\"search.refresh\":\"auto\",\"quality\":true}";
  begin();
  sh("mkdir -p p/.lode");
  make_store("p/.lode");
  OK(trust_add_created(at("p/.lode"), NULL, &err));
  test_write_file(at("p/.lode/config.json"), text, sizeof text - 1);
  for (int step = 0; step < 4; step++) {
    if (step == 1) OK(trust_set_value(at("p/.lode"), CONFIG_MODEL, STR_LIT("openai:x"), &err));
    if (step == 2) OK(trust_grant(at("p/.lode"), &settings, &err));
    if (step == 3) OK(trust_set_value(at("p/.lode"), CONFIG_MODEL, STR_LIT("minilm"), &err)); /* reaches nowhere */
    trust_examine(at("p/.lode"), true, &trust);
    OK(config_load(&config, at("p/.lode"), &err));
    trust_suppress_config(&trust, &config, &held);
    bool model = step == 1 || step == 2, refresh = step >= 2;
    CHECK(strcmp(config_text(&config, CONFIG_MODEL), model ? "openai:x" : "code") == 0);
    CHECK(strcmp(config_text(&config, CONFIG_SEARCH_REFRESH), refresh ? "auto" : "quick") == 0);
    CHECK(config_int(&config, CONFIG_SEARCH_LIMIT) == 3 && config_bool(&config, CONFIG_QUALITY));
    CHECK((held.len != 0) == (!model || !refresh));
    /* What has no effect is not lost when something else is saved */
    OK(config_save(&config, at("p/.lode"), &err));
    config_release(&config);
    OK(config_load(&config, at("p/.lode"), &err));
    CHECK(strcmp(config_text(&config, CONFIG_MODEL), "openai:x") == 0);
    config_release(&config);
    trust_release(&trust);
  }
  strbuf_release(&held);
  strbuf_release(&settings);
}

TEST(models_that_reach_beyond_the_machine) {
  static const char *const near[] = {"code", "minilm", "none", "code@1/256/static", "minilm@l6-v2/384/float",
                                     "",     "bogus"};
  static const char *const far[] = {"openai:x",  "ollama:x", "openai:x@server/4/float", "/a/path", "./path",
                                    "bert:name", "~/x"};
  for (size_t i = 0; i < 7; i++) {
    CHECKF(!config_reaches_out(CONFIG_MODEL, str_of(near[i])), "%s", near[i]);
    CHECKF(config_reaches_out(CONFIG_MODEL, str_of(far[i])), "%s", far[i]);
  }
}
