/* SPDX-License-Identifier: Apache-2.0 */
/* test_crash.c - rule 5: an acknowledged write survives kill -9, an unacknowledged one is wholly there or wholly
 * absent. A child writes batches and says before and after each what it does; the parent kills it at a random moment,
 * opens the store and compares. The maintenance thread runs in the child, so kills hit its steps too. */
#include "lode.h"
#include "support/simdisk.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BATCH 7
#define BATCHES 400
#define DIM 24

typedef enum action { ADD, CHANGE, DELETE } action;
typedef struct note {
  int batch;
  int version; /* what the documents of the batch say afterwards; 0: the batch is gone */
  bool done;
} note;

static void make_record(int batch, int i, int version, char *id, char *doc, char *meta, float *vector, lode_record *r) {
  snprintf(id, 32, "b%d-%d", batch, i);
  snprintf(doc, 96, "batch %d record %d version %d of the crash test", batch, i, version);
  snprintf(meta, 64, "{\"batch\":%d,\"version\":%d}", batch, version);
  for (int d = 0; d < DIM; d++) vector[d] = (float)(batch * 31 + i * 7 + version + d);
  *r = (lode_record){.id = {id, strlen(id)},
                     .document = {doc, strlen(doc)},
                     .metadata = {meta, strlen(meta)},
                     .vector = vector,
                     .dimension = DIM};
}

static lode_status write_batch(lode_collection *c, int batch, int version, lode_error *err) {
  char ids[BATCH][32], docs[BATCH][96], metas[BATCH][64];
  float vectors[BATCH][DIM];
  lode_record records[BATCH];
  for (int i = 0; i < BATCH; i++) make_record(batch, i, version, ids[i], docs[i], metas[i], vectors[i], &records[i]);
  return lode_upsert(c, NULL, records, BATCH, NULL, err);
}

static lode_status delete_batch(lode_collection *c, int batch, lode_error *err) {
  char where[64];
  size_t n;
  snprintf(where, sizeof where, "{\"batch\":%d}", batch);
  lode_selection sel = {.where = {where, strlen(where)}};
  return lode_delete(c, NULL, &sel, &n, err);
}

static void tell(int fd, note n) {
  if (write(fd, &n, sizeof n) != sizeof n) _exit(2);
}

/* Writes for ever. versions[] is this process's own copy of what the store holds. */
static void writer(const char *folder, int fd, int *versions) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  lode_open_options o = {0};
  lode_collection_options co = {.create = true};
  if (lode_open(folder, &o, &store, &err) != LODE_OK ||
      lode_collection_open(store, (lode_str){"crash", 5}, &co, &c, &err) != LODE_OK) {
    fprintf(stderr, "child: %s\n", err.text);
    _exit(3);
  }
  for (;;) {
    int batch = (int)test_below(BATCHES);
    int version = versions[batch] && test_below(4) == 0 ? 0 : versions[batch] + 1;
    tell(fd, (note){batch, version, false});
    lode_status st = version ? write_batch(c, batch, version, &err) : delete_batch(c, batch, &err);
    if (st != LODE_OK) {
      fprintf(stderr, "child: %s\n", err.text);
      _exit(4);
    }
    tell(fd, (note){batch, version, true});
    versions[batch] = version;
  }
}

/* What the store holds of a batch: its version, 0 for none; anything in between fails the test. */
static int version_of(lode_collection *c, int batch, int round) {
  char where[64];
  int version = 0, n = 0;
  lode_result *rows;
  lode_error err = {0};
  snprintf(where, sizeof where, "{\"batch\":%d}", batch);
  lode_get_request req = {.select.where = {where, strlen(where)}, .include = LODE_ALL};
  OK(lode_get(c, &req, &rows, &err));
  for (size_t i = 0; i < lode_result_count(rows); i++, n++) {
    const lode_row *row = lode_result_at(rows, i);
    char doc[96], wanted[96], id[32], meta[64];
    float vector[DIM];
    lode_record r;
    int b, k, v;
    snprintf(doc, sizeof doc, "%.*s", (int)row->document.len, row->document.data);
    CHECK(sscanf(doc, "batch %d record %d version %d", &b, &k, &v) == 3 && b == batch);
    make_record(b, k, v, id, wanted, meta, vector, &r);
    CHECKF(strcmp(doc, wanted) == 0 && row->vector && memcmp(row->vector, vector, sizeof vector) == 0,
           "round %d: record %s is a mix of versions", round, id);
    if (n == 0) version = v;
    CHECKF(v == version, "round %d: batch %d has versions %d and %d", round, batch, version, v);
  }
  lode_result_free(rows);
  CHECKF(n == 0 || n == BATCH, "round %d: batch %d has %d of %d records", round, batch, n, BATCH);
  return version;
}

static void check_round(const char *folder, int *versions, const note *open_note, int round) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  uint64_t count, wanted = 0;
  lode_open_options o = {.no_background = true, .read_only = round % 3 == 0};
  OK(lode_open(folder, &o, &store, &err));
  OK(lode_collection_open(store, (lode_str){"crash", 5}, NULL, &c, &err));
  /* in two rounds of three the filters below ask the index, in the third they scan */
  if (!o.read_only) OK(lode_optimize(store, (lode_progress){0}, &err));
  for (int b = 0; b < BATCHES; b++) {
    int v = version_of(c, b, round);
    bool open = open_note && open_note->batch == b && v == open_note->version;
    CHECKF(v == versions[b] || open, "round %d: batch %d has version %d, acknowledged was %d", round, b, v,
           versions[b]);
    versions[b] = v;
    wanted += v ? BATCH : 0;
  }
  OK(lode_count(c, &count, &err));
  CHECKF(count == wanted, "round %d: count says %llu, there are %llu", round, (unsigned long long)count,
         (unsigned long long)wanted);
  if (round % 10 == 0) OK(lode_verify(store, NULL, NULL, (lode_progress){0}, &err));
  lode_collection_close(c);
  lode_close(store);
}

TEST_SLOW(kill_at_any_moment, 600) {
  char folder[512];
  int rounds = test_full() ? 1500 : 160;
  int versions[BATCHES] = {0};
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  lode_open_options o = {.create = true, .page_bytes = 1024, .no_background = true};
  lode_collection_options co = {.create = true, .metric = LODE_L2};
  test_srand(test_seed());
  snprintf(folder, sizeof folder, "%s/store", test_folder());
  OK(lode_open(folder, &o, &store, &err));
  OK(lode_collection_open(store, (lode_str){"crash", 5}, &co, &c, &err));
  lode_collection_close(c);
  lode_close(store);
  int acknowledged = 0;
  for (int round = 0; round < rounds; round++) {
    int fds[2];
    CHECK(pipe(fds) == 0);
    uint64_t delay = test_below(round % 4 == 0 ? 3000 : 80000), child_seed = test_rand();
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      close(fds[0]);
      test_srand(child_seed);
      writer(folder, fds[1], versions);
    }
    close(fds[1]);
    note n, open_note = {0};
    bool open = false;
    /* the clock starts with the first write, or the kill would mostly hit the opening */
    if (round % 8 && read(fds[0], &n, sizeof n) == sizeof n) {
      open_note = n;
      open = true;
    }
    usleep((useconds_t)delay);
    kill(pid, SIGKILL);
    int status;
    waitpid(pid, &status, 0);
    CHECKF(WIFSIGNALED(status), "round %d: the child ended by itself with %d", round, WEXITSTATUS(status));
    while (read(fds[0], &n, sizeof n) == sizeof n) {
      open = !n.done;
      open_note = n;
      if (n.done) {
        versions[n.batch] = n.version;
        acknowledged++;
      }
    }
    close(fds[0]);
    check_round(folder, versions, open ? &open_note : NULL, round);
  }
  CHECKF(acknowledged > rounds / 4, "only %d writes were acknowledged in %d rounds", acknowledged, rounds);
}

TEST(what_a_killed_creation_left_is_no_obstacle) {
  static const unsigned char magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
  lode_open_options create = {.create = true, .no_background = true};
  const char *folder = test_folder();
  unsigned char journal[2000];
  char path[500];
  lode_store *store;
  lode_error err;
  memset(journal, 0x55, sizeof journal);
  memcpy(journal, magic, sizeof magic);
  snprintf(path, sizeof path, "%s/lode.db.new-journal", folder);
  test_write_file(path, journal, sizeof journal);
  snprintf(path, sizeof path, "%s/lode.db.new", folder);
  test_write_file(path, journal, 100);
  OK(lode_open(folder, &create, &store, &err));
  lode_close(store);
}

/* Whoever made the folders was killed before their names were durable; who makes the store in them sees to it. */
TEST(a_store_outlives_the_power_in_folders_that_others_made) {
  const char *folder = test_folder();
  char disk[500], above[520], store_folder[540], world[560], in_world[600];
  lode_open_options create = {.create = true, .no_background = true};
  lode_store *store;
  lode_error err;
  snprintf(disk, sizeof disk, "%s/disk", folder);
  snprintf(above, sizeof above, "%s/above", disk);
  snprintf(store_folder, sizeof store_folder, "%s/store", above);
  CHECK(mkdir(disk, 0700) == 0);
  simdisk_start(disk);
  CHECK(os_api->mkdir(above, 0700) == 0 && os_api->mkdir(store_folder, 0700) == 0);
  OK(lode_open(store_folder, &create, &store, &err));
  for (uint64_t seed = 0; seed < 40; seed++) {
    snprintf(world, sizeof world, "%s/world-%d", folder, (int)seed);
    snprintf(in_world, sizeof in_world, "%s/above/store/lode.db", world);
    simdisk_cut(seed, world);
    CHECKF(access(in_world, F_OK) == 0, "world %d: the store is gone", (int)seed);
  }
  lode_close(store);
  simdisk_stop();
}
