/* SPDX-License-Identifier: Apache-2.0 */
/* test_processes.c - rule 7: many processes, one store. No lost write, no failed read, no lock left behind, nobody
 * starves. */
#include "lode.h"
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const lode_str NAME = {"shared", 6};

static void open_all(const char *folder, const lode_open_options *o, lode_store **store, lode_collection **c) {
  lode_error err = {0};
  lode_collection_options co = {.create = !o->read_only};
  OK(lode_open(folder, o, store, &err));
  OK(lode_collection_open(*store, NAME, &co, c, &err));
}

static const char *new_store(char *folder, size_t size) {
  lode_store *store;
  lode_collection *c;
  lode_open_options o = {.create = true, .no_background = true};
  snprintf(folder, size, "%s/store", test_folder());
  open_all(folder, &o, &store, &c);
  lode_collection_close(c);
  lode_close(store);
  return folder;
}

static void add_one(lode_collection *c, int who, int i) {
  char id[40], doc[80];
  lode_error err = {0};
  float v[3] = {(float)who, (float)i, 1};
  snprintf(id, sizeof id, "w%d-%d", who, i);
  snprintf(doc, sizeof doc, "writer %d wrote number %d", who, i);
  lode_record r = {.id = {id, strlen(id)}, .document = {doc, strlen(doc)}, .vector = v, .dimension = 3};
  OK(lode_add(c, NULL, &r, 1, LODE_FAIL_EXISTING, NULL, &err));
}

static void join_all(pid_t *pids, int n) {
  for (int i = 0; i < n; i++) {
    int status;
    CHECK(waitpid(pids[i], &status, 0) == pids[i]);
    CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 0, "process %d ended with status %x", i, (unsigned)status);
  }
}

TEST_SLOW(writers_and_readers_together, 240) {
  enum { WRITERS = 4, READERS = 3, EACH = 150 };
  char folder[512];
  pid_t pids[WRITERS + READERS];
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  uint64_t n;
  new_store(folder, sizeof folder);
  for (int p = 0; p < WRITERS + READERS; p++) {
    pids[p] = fork();
    CHECK(pids[p] >= 0);
    if (pids[p]) continue;
    lode_open_options o = {.read_only = p >= WRITERS, .busy_ms = 60000};
    open_all(folder, &o, &store, &c);
    if (p < WRITERS) {
      for (int i = 0; i < EACH; i++) add_one(c, p, i);
    } else {
      /* counts never go back, and what was counted can be read */
      uint64_t before = 0;
      do {
        OK(lode_count(c, &n, &err));
        CHECK(n >= before);
        before = n;
        lode_get_request req = {.limit = 5, .include = LODE_ALL};
        lode_result *rows;
        OK(lode_get(c, &req, &rows, &err));
        CHECK(lode_result_count(rows) >= (n < 5 ? n : 5));
        lode_result_free(rows);
      } while (n < WRITERS * EACH);
    }
    lode_collection_close(c);
    lode_close(store);
    _exit(0);
  }
  join_all(pids, WRITERS + READERS);
  lode_open_options o = {.no_background = true};
  open_all(folder, &o, &store, &c);
  OK(lode_count(c, &n, &err));
  CHECK(n == WRITERS * EACH);
  for (int p = 0; p < WRITERS; p++)
    for (int i = 0; i < EACH; i++) {
      char id[40];
      snprintf(id, sizeof id, "w%d-%d", p, i);
      lode_str s = {id, strlen(id)};
      lode_get_request req = {.select = {.ids = &s, .n_ids = 1}};
      lode_result *rows;
      OK(lode_get(c, &req, &rows, &err));
      CHECKF(lode_result_count(rows) == 1, "%s is lost", id);
      lode_result_free(rows);
    }
  OK(lode_verify(store, NULL, NULL, (lode_progress){0}, &err));
  lode_collection_close(c);
  lode_close(store);
}

/* A reader beside a writer that commits without pause gets its turn within a bounded number of the writer's commits. */
TEST_SLOW(a_reader_does_not_starve, 120) {
  char folder[512];
  int commits[2];
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  new_store(folder, sizeof folder);
  CHECK(pipe2(commits, O_NONBLOCK) == 0);
  pid_t writer = fork();
  CHECK(writer >= 0);
  if (writer == 0) {
    lode_open_options o = {.no_background = true, .busy_ms = 60000};
    open_all(folder, &o, &store, &c);
    for (int i = 0;; i++) {
      add_one(c, 0, i);
      char one = 1;
      if (write(commits[1], &one, 1) != 1) { /* the pipe is full: the reader counts less, never more */
      }
    }
  }
  lode_open_options o = {.read_only = true, .busy_ms = 60000};
  open_all(folder, &o, &store, &c);
  int worst = 0;
  for (int i = 0; i < 300; i++) {
    char buf[4096];
    uint64_t n;
    while (read(commits[0], buf, sizeof buf) > 0) {}
    OK(lode_count(c, &n, &err));
    int during = 0;
    for (ssize_t got; (got = read(commits[0], buf, sizeof buf)) > 0;) during += (int)got;
    if (during > worst) worst = during;
  }
  kill(writer, SIGKILL);
  waitpid(writer, NULL, 0);
  CHECKF(worst <= 50, "a read let %d commits pass", worst);
  lode_collection_close(c);
  lode_close(store);
}

/* Two writers without pause: neither makes more than a bounded number of commits while the other makes none. */
TEST_SLOW(writers_take_turns, 120) {
  enum { WRITERS = 3, TOTAL = 600 };
  char folder[512];
  int fds[2], run[WRITERS] = {0}, worst = 0;
  new_store(folder, sizeof folder);
  CHECK(pipe(fds) == 0);
  pid_t pids[WRITERS];
  for (int p = 0; p < WRITERS; p++) {
    pids[p] = fork();
    CHECK(pids[p] >= 0);
    if (pids[p] == 0) {
      lode_store *store;
      lode_collection *c;
      lode_open_options o = {.no_background = true, .busy_ms = 60000};
      open_all(folder, &o, &store, &c);
      for (int i = 0;; i++) {
        add_one(c, p, i);
        char me = (char)p;
        if (write(fds[1], &me, 1) != 1) _exit(0);
      }
    }
  }
  bool seen[WRITERS] = {false};
  for (int i = 0; i < TOTAL; i++) {
    char who;
    CHECK(read(fds[0], &who, 1) == 1);
    seen[(int)who] = true;
    bool all = true;
    for (int p = 0; p < WRITERS; p++) all &= seen[p];
    for (int p = 0; p < WRITERS; p++) {
      run[p] = p == who ? 0 : run[p] + 1;
      if (all && run[p] > worst) worst = run[p];
    }
  }
  for (int p = 0; p < WRITERS; p++) kill(pids[p], SIGKILL);
  for (int p = 0; p < WRITERS; p++) waitpid(pids[p], NULL, 0);
  CHECKF(worst <= 200, "a writer waited for %d commits of the others", worst);
}

TEST(a_killed_writer_leaves_no_lock) {
  char folder[512], one;
  int fds[2];
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  new_store(folder, sizeof folder);
  for (int round = 0; round < 5; round++) {
    CHECK(pipe(fds) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      lode_txn *txn;
      lode_open_options o = {.no_background = true};
      open_all(folder, &o, &store, &c);
      OK(lode_begin(store, &txn, &err));
      float v[3] = {1, 2, 3};
      lode_record r = {.id = {"half", 4}, .vector = v, .dimension = 3};
      OK(lode_add(c, txn, &r, 1, LODE_FAIL_EXISTING, NULL, &err));
      if (write(fds[1], "x", 1) != 1) _exit(1);
      pause();
    }
    CHECK(read(fds[0], &one, 1) == 1);
    lode_open_options o = {.no_background = true, .busy_ms = 50};
    open_all(folder, &o, &store, &c);
    uint64_t n;
    OK(lode_count(c, &n, &err)); /* a reader is not held up by an open write */
    CHECK(n == 0);
    float v[3] = {1, 2, 3};
    lode_record r = {.id = {"mine", 4}, .vector = v, .dimension = 3};
    FAILS(LODE_BUSY, lode_upsert(c, NULL, &r, 1, NULL, &err));
    char pid_text[32];
    snprintf(pid_text, sizeof pid_text, "process %ld", (long)pid);
    CHECKF(strstr(err.text, pid_text), "the text does not say who: %s", err.text);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    lode_selection all = {.where = {"{}", 2}};
    OK(lode_upsert(c, NULL, &r, 1, NULL, &err));
    OK(lode_delete(c, NULL, &all, NULL, &err));
    lode_collection_close(c);
    lode_close(store);
  }
}

TEST(a_handle_works_after_fork) {
  char folder[512];
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  /* without a thread: ASan's allocator may be left locked in a child of several (test_threads forks under TSan) */
  lode_open_options o = {.busy_ms = 20000, .no_background = true};
  new_store(folder, sizeof folder);
  open_all(folder, &o, &store, &c);
  add_one(c, 0, 0);
  pid_t pid = fork();
  CHECK(pid >= 0);
  for (int i = 1; i <= 20; i++) add_one(c, pid ? 1 : 2, i);
  if (pid == 0) {
    lode_close(store);
    _exit(0);
  }
  join_all(&pid, 1);
  uint64_t n;
  OK(lode_count(c, &n, &err));
  CHECK(n == 41);
  lode_collection_close(c);
  lode_close(store);
}

TEST(two_processes_make_one_store) {
  for (int round = 0; round < 10; round++) {
    char folder[512];
    pid_t pids[4];
    snprintf(folder, sizeof folder, "%s/new%d/deep/store", test_folder(), round);
    for (int p = 0; p < 4; p++) {
      pids[p] = fork();
      CHECK(pids[p] >= 0);
      if (pids[p] == 0) {
        lode_store *store;
        lode_collection *c;
        lode_open_options o = {.create = true, .busy_ms = 60000};
        open_all(folder, &o, &store, &c);
        add_one(c, p, 1);
        lode_close(store);
        _exit(0);
      }
    }
    join_all(pids, 4);
    lode_store *store;
    lode_collection *c;
    lode_error err = {0};
    uint64_t n;
    lode_open_options o = {.no_background = true};
    open_all(folder, &o, &store, &c);
    OK(lode_count(c, &n, &err));
    CHECKF(n == 4, "%llu of 4 first writes are there", (unsigned long long)n);
    lode_collection_close(c);
    lode_close(store);
  }
}

TEST(a_removed_store_is_gone_and_stays_gone) {
  char folder[512];
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  uint64_t n;
  new_store(folder, sizeof folder);
  lode_open_options o = {0};
  open_all(folder, &o, &store, &c);
  add_one(c, 0, 0);
  test_remove_tree(folder);
  FAILS(LODE_GONE, lode_count(c, &n, &err));
  float v[3] = {1, 2, 3};
  lode_record r = {.id = {"x", 1}, .vector = v, .dimension = 3};
  FAILS(LODE_GONE, lode_upsert(c, NULL, &r, 1, NULL, &err));
  CHECK(access(folder, F_OK) != 0);
  /* another store in its place is seen as what it is */
  lode_store *other;
  lode_collection *d;
  lode_open_options create = {.create = true, .no_background = true};
  open_all(folder, &create, &other, &d);
  FAILS(LODE_NOT_FOUND, lode_count(c, &n, &err));
  OK(lode_count(d, &n, &err));
  CHECK(n == 0);
  lode_collection_close(d);
  lode_close(other);
  lode_collection_close(c);
  lode_close(store);
}
