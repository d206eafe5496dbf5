/* SPDX-License-Identifier: Apache-2.0 */
/* test_threads.c - one handle, many threads; two handles in one process. Meant for TSan, and true without it.
 *
 * Records come in pairs that are only ever written together, by one transaction: whoever reads, by whatever way, sees
 * both or none, and both of one version. A thread's random numbers are its own.
 */
#include "base/base.h"
#include "engine/filter_cache.h"
#include "lode.h"
#include "support/fault.h"
#include "support/fixture.h"
#include "support/test.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIM 8
#define PAIRS 24
#define WRITERS 2

static const lode_str NAME = {"pairs", 5};

typedef struct stage {
  lode_store *store;
  lode_collection *c;
  uint64_t seed;
  unsigned rounds;     /* of each writer */
  atomic_uint writing; /* writers still at work */
  atomic_uint version;
  atomic_uint reads, hits; /* done; those that found something */
} stage;

typedef struct actor {
  stage *s;
  pthread_t thread;
  unsigned number;
  uint64_t random;
  void (*play)(struct actor *a);
} actor;

static uint64_t next(actor *a) {
  uint64_t z = (a->random += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static size_t pick(actor *a, size_t n) { return (size_t)(next(a) % n); }

/* ---- Pairs ---- */

typedef struct pair {
  char id[2][32], document[2][80], metadata[2][64];
  float vector[2][DIM];
  lode_record r[2];
  lode_str ids[2];
} pair;

/* The vector says which pair and version it is, so that no other is at distance 0. */
static void fill_vector(float *v, unsigned number, unsigned half, unsigned version) {
  for (unsigned d = 0; d < DIM; d++) v[d] = 0;
  v[0] = (float)number;
  v[1] = (float)half;
  v[2] = (float)(version % 4096);
  v[3] = (float)(version / 4096);
}

static void make_pair(pair *p, unsigned number, unsigned version) {
  for (unsigned h = 0; h < 2; h++) {
    snprintf(p->id[h], sizeof p->id[h], "pair-%u-%c", number, (int)('a' + h));
    snprintf(p->document[h], sizeof p->document[h], "word%u halves version%u of the pairs", number, version);
    snprintf(p->metadata[h], sizeof p->metadata[h], "{\"pair\":%u,\"version\":%u}", number, version);
    fill_vector(p->vector[h], number, h, version);
    p->ids[h] = str_of(p->id[h]);
    p->r[h] = (lode_record){.id = p->ids[h],
                            .document = str_of(p->document[h]),
                            .metadata = str_of(p->metadata[h]),
                            .vector = p->vector[h],
                            .dimension = DIM};
  }
}

/* Two rows of one pair and one version, or none where that may be. */
static void check_pair(const char *by, stage *s, lode_result *rows, unsigned number, bool must_be) {
  size_t n = lode_result_count(rows);
  CHECKF(n == 2 || (n == 0 && !must_be), "by %s: %zu of pair %u", by, n, number);
  atomic_fetch_add(&s->reads, 1);
  if (n == 2) {
    const lode_row *a = lode_result_at(rows, 0), *b = lode_result_at(rows, 1);
    char start[64];
    int len = snprintf(start, sizeof start, "{\"pair\":%u,\"version\":", number);
    CHECKF(a->metadata.len > (size_t)len && memcmp(a->metadata.data, start, (size_t)len) == 0,
           "by %s: %.*s is not of pair %u", by, (int)a->metadata.len, a->metadata.data, number);
    CHECKF(str_eq(a->metadata, b->metadata), "by %s: versions %.*s and %.*s", by, (int)a->metadata.len,
           a->metadata.data, (int)b->metadata.len, b->metadata.data);
    CHECKF(a->vector && b->vector && a->vector[2] == b->vector[2] && a->vector[3] == b->vector[3],
           "by %s: vectors of two versions", by);
    atomic_fetch_add(&s->hits, 1);
  }
  lode_result_free(rows);
}

/* ---- Writers ---- */

/* Each pair has one writer. The first PAIRS / 2 of a writer's are always there, replaced in one transaction; others
 * come and go. */
static bool stays(unsigned number) { return number % 4 < 2; }

static void write_pair(actor *a, unsigned number, size_t how) {
  stage *s = a->s;
  lode_error err = {0};
  lode_txn *txn;
  pair p;
  make_pair(&p, number, atomic_fetch_add(&s->version, 1));
  lode_selection both = {.ids = p.ids, .n_ids = 2};
  OK(lode_begin(s->store, &txn, &err));
  if (how == 0) { /* one after the other */
    OK(lode_upsert(s->c, txn, &p.r[0], 1, NULL, &err));
    OK(lode_upsert(s->c, txn, &p.r[1], 1, NULL, &err));
  } else {
    OK(lode_delete(s->c, txn, &both, NULL, &err));
    if (how == 1) OK(lode_add(s->c, txn, p.r, 2, LODE_FAIL_EXISTING, NULL, &err));
  }
  if (how == 3)
    lode_rollback(txn);
  else
    OK(lode_commit(txn, &err));
  if (how > 1) return;
  /* acknowledged: found at once */
  lode_result *rows;
  lode_query_request req = {.vectors = p.vector[1], .dimension = DIM, .n = 1, .k = 1};
  OK(lode_query(s->c, &req, &rows, &err));
  CHECK(lode_result_count(rows) == 1);
  const lode_row *row = lode_result_at(rows, 0);
  CHECKF(row->distance == 0 && str_eq(row->id, p.ids[1]), "%s was written and is not found: %.*s at %g", p.id[1],
         (int)row->id.len, row->id.data, row->distance);
  lode_result_free(rows);
}

static void play_writer(actor *a) {
  for (unsigned i = 0; i < a->s->rounds; i++) {
    unsigned number = (unsigned)pick(a, PAIRS / WRITERS) * WRITERS + a->number;
    write_pair(a, number, pick(a, stays(number) ? 2 : 4));
  }
  atomic_fetch_sub(&a->s->writing, 1);
}

/* ---- Readers ---- */

static bool goes_on(const stage *s) { return atomic_load(&s->writing) > 0; }

static void play_getter(actor *a) {
  lode_error err = {0};
  while (goes_on(a->s)) {
    unsigned number = (unsigned)pick(a, PAIRS);
    lode_result *rows;
    pair p;
    make_pair(&p, number, 0);
    lode_get_request req = {.select = {.ids = p.ids, .n_ids = 2}, .include = LODE_ALL};
    OK(lode_get(a->s->c, &req, &rows, &err));
    check_pair("ids", a->s, rows, number, stays(number));
  }
}

static void play_searcher(actor *a) {
  lode_error err = {0};
  while (goes_on(a->s)) {
    unsigned number = (unsigned)pick(a, PAIRS);
    lode_result *rows;
    char where[64], word[32];
    float v[DIM] = {(float)pick(a, 9), 1, (float)pick(a, 500)};
    snprintf(where, sizeof where, "{\"pair\":%u}", number);
    snprintf(word, sizeof word, "Word%u", number);
    lode_str text = str_of(word);
    lode_query_request near = {
        .vectors = v, .dimension = DIM, .n = 1, .k = 9, .select.where = str_of(where), .include = LODE_ALL};
    lode_query_request found = {.mode = LODE_BY_TEXT, .texts = &text, .n = 1, .k = 9, .include = LODE_ALL};
    /* the word is cut into its parts, and others share the first: the filter is what singles the pair out */
    found.select.where = near.select.where;
    bool by_text = pick(a, 2);
    OK(lode_query(a->s->c, by_text ? &found : &near, &rows, &err));
    check_pair(by_text ? "text" : "vector", a->s, rows, number, stays(number));
  }
}

static void play_counter(actor *a) {
  lode_error err = {0};
  while (goes_on(a->s)) {
    uint64_t n;
    lode_stats stats;
    lode_facet_list *list;
    OK(lode_count(a->s->c, &n, &err));
    CHECKF(n % 2 == 0 && n >= PAIRS && n <= 2 * PAIRS, "the count is %llu", (unsigned long long)n);
    OK(lode_collection_stats(a->s->c, &stats, &err));
    CHECK(stats.records % 2 == 0 && stats.pending == 0);
    OK(lode_counters(a->s->c, str_of("pair"), &list, &err));
    for (size_t i = 0; i < lode_facet_list_count(list); i++) CHECK(lode_facet_list_at(list, i)->count == 2);
    lode_facet_list_free(list);
    OK(lode_store_stats(a->s->store, &stats, &err));
    atomic_fetch_add(&a->s->reads, 1);
  }
}

static void play_optimizer(actor *a) {
  lode_error err = {0};
  while (goes_on(a->s)) {
    OK(lode_optimize(a->s->store, (lode_progress){0}, &err));
    usleep(1000);
  }
}

/* Opens, fills, lists and drops collections of its own. */
static void play_opener(actor *a) {
  lode_error err = {0};
  for (unsigned i = 0; goes_on(a->s); i++) {
    char name[40];
    lode_collection *c, *again;
    lode_collection_list *list;
    uint64_t n;
    snprintf(name, sizeof name, "other-%u-%u", a->number, i);
    lode_collection_options o = {.create = true, .must_create = true};
    OK(lode_collection_open(a->s->store, str_of(name), &o, &c, &err));
    float v[2] = {1, 2};
    lode_record r = {.id = {"x", 1}, .vector = v, .dimension = 2};
    OK(lode_add(c, NULL, &r, 1, LODE_FAIL_EXISTING, NULL, &err));
    OK(lode_collection_open(a->s->store, str_of(name), NULL, &again, &err));
    OK(lode_count(again, &n, &err));
    CHECK(n == 1);
    OK(lode_collections(a->s->store, &list, &err));
    CHECK(lode_collection_list_count(list) >= 2);
    lode_collection_list_free(list);
    OK(lode_collection_drop(a->s->store, str_of(name), &err));
    FAILS(LODE_NOT_FOUND, lode_count(again, &n, &err));
    lode_collection_close(c);
    lode_collection_close(again);
  }
}

/* ---- The play ---- */

static void *run_actor(void *ctx) {
  actor *a = ctx;
  a->play(a);
  return NULL;
}

static void set_stage(stage *s, const char *folder, const lode_open_options *o) {
  lode_error err = {0};
  lode_str counter = str_of("pair");
  lode_collection_options co = {.create = true, .metric = LODE_L2, .counters = &counter, .n_counters = 1};
  OK(lode_open(folder, o, &s->store, &err));
  OK(lode_collection_open(s->store, NAME, &co, &s->c, &err));
}

static void clear_stage(stage *s) {
  lode_collection_close(s->c);
  lode_close(s->store);
}

static void add_pairs(stage *s) {
  lode_error err = {0};
  for (unsigned i = 0; i < PAIRS; i++) {
    pair p;
    make_pair(&p, i, 0);
    OK(lode_add(s->c, NULL, p.r, 2, LODE_FAIL_EXISTING, NULL, &err));
  }
}

static void run_actors(actor *actors, size_t n) {
  for (size_t i = 0; i < n; i++) CHECK(pthread_create(&actors[i].thread, NULL, run_actor, &actors[i]) == 0);
  for (size_t i = 0; i < n; i++) CHECK(pthread_join(actors[i].thread, NULL) == 0);
}

TEST_SLOW(readers_see_whole_transactions, 240) {
  static void (*const roles[])(actor *) = {play_writer,   play_writer,  play_getter,    play_searcher,
                                           play_searcher, play_counter, play_optimizer, play_opener};
  enum { ACTORS = sizeof roles / sizeof *roles };
  char folder[512];
  lode_error err = {0};
  stage s = {.seed = test_seed(), .rounds = test_full() ? 5000 : 150, .writing = WRITERS, .version = 1};
  actor actors[ACTORS];
  lode_open_options o = {.create = true, .busy_ms = 120000, .page_bytes = 4096};
  fault_no_sync();
  snprintf(folder, sizeof folder, "%s/store", test_folder());
  set_stage(&s, folder, &o);
  add_pairs(&s);
  for (unsigned i = 0; i < ACTORS; i++)
    actors[i] = (actor){.s = &s, .number = i, .random = s.seed * 100 + i, .play = roles[i]};
  run_actors(actors, ACTORS);
  CHECKF(atomic_load(&s.reads) > 100 && atomic_load(&s.hits) > 50, "the readers were starved: %u reads",
         atomic_load(&s.reads));
  OK(lode_verify(s.store, NULL, NULL, (lode_progress){0}, &err));
  clear_stage(&s);
}

/* The thread is told to stop in the middle of whatever it does; nothing is lost. */
TEST_SLOW(a_store_closes_while_its_maintenance_works, 120) {
  char folder[512];
  lode_error err = {0};
  lode_open_options o = {.create = true, .busy_ms = 60000, .page_bytes = 1024};
  uint64_t n, total = 0;
  stage s;
  fault_no_sync();
  test_srand(test_seed());
  snprintf(folder, sizeof folder, "%s/store", test_folder());
  for (unsigned round = 0; round < (test_full() ? 500u : 40u); round++) {
    set_stage(&s, folder, &o);
    for (unsigned i = 0; i < 60; i++) {
      pair p;
      make_pair(&p, round * 100 + i, 1);
      OK(lode_upsert(s.c, NULL, p.r, 2, NULL, &err));
      total += 2;
    }
    lode_selection some = {.where = str_of("{\"version\":1,\"pair\":{\"$lt\":20}}")};
    size_t deleted;
    OK(lode_delete(s.c, NULL, &some, &deleted, &err));
    total -= deleted;
    usleep((useconds_t)test_below(6000));
    clear_stage(&s);
  }
  set_stage(&s, folder, &o);
  OK(lode_count(s.c, &n, &err));
  CHECKF(n == total, "%llu records, expected %llu", (unsigned long long)n, (unsigned long long)total);
  OK(lode_verify(s.store, NULL, NULL, (lode_progress){0}, &err));
  clear_stage(&s);
}

/* ---- Two handles on one folder ---- */

TEST_SLOW(two_handles_in_one_process, 120) {
  static void (*const roles[])(actor *) = {play_writer, play_writer,  play_getter,
                                           play_getter, play_counter, play_searcher};
  enum { ACTORS = sizeof roles / sizeof *roles };
  char folder[512];
  lode_error err = {0};
  lode_open_options o = {.create = true, .busy_ms = 120000};
  stage s[2] = {{.seed = test_seed()}, {.seed = test_seed()}};
  actor actors[ACTORS];
  fault_no_sync();
  snprintf(folder, sizeof folder, "%s/store", test_folder());
  for (int h = 0; h < 2; h++) {
    set_stage(&s[h], folder, &o);
    s[h].rounds = test_full() ? 3000 : 100;
    atomic_store(&s[h].writing, 1);
    atomic_store(&s[h].version, 1 + 1000000 * (unsigned)h);
  }
  for (unsigned i = 0; i < PAIRS; i++) {
    pair p;
    make_pair(&p, i, 0);
    OK(lode_add(s[i % 2].c, NULL, p.r, 2, LODE_FAIL_EXISTING, NULL, &err));
  }
  for (unsigned i = 0; i < ACTORS; i++)
    actors[i] = (actor){.s = &s[i % 2], .number = i, .random = s[0].seed * 100 + i, .play = roles[i]};
  run_actors(actors, ACTORS);
  CHECK(atomic_load(&s[0].hits) > 0 && atomic_load(&s[1].hits) > 0);
  for (int h = 0; h < 2; h++) clear_stage(&s[h]);
}

/* POSIX locks would be gone with the first close of any descriptor of the file. */
TEST(closing_one_handle_does_not_open_the_locks_of_another) {
  char folder[512];
  lode_error err = {0};
  lode_open_options o = {.create = true, .no_background = true};
  stage a = {0}, b = {0};
  lode_txn *txn;
  pair p;
  int status;
  uint64_t n;
  snprintf(folder, sizeof folder, "%s/store", test_folder());
  set_stage(&a, folder, &o);
  OK(lode_begin(a.store, &txn, &err));
  make_pair(&p, 1, 1);
  OK(lode_add(a.c, txn, p.r, 2, LODE_FAIL_EXISTING, NULL, &err));
  for (int i = 0; i < 3; i++) {
    set_stage(&b, folder, &o);
    OK(lode_count(b.c, &n, &err));
    CHECK(n == 0);
    clear_stage(&b);
  }
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) { /* what another process sees */
    lode_open_options impatient = {.no_background = true, .busy_ms = 100};
    set_stage(&b, folder, &impatient);
    make_pair(&p, 2, 1);
    lode_status st = lode_add(b.c, NULL, p.r, 2, LODE_FAIL_EXISTING, NULL, &err);
    _exit(st == LODE_BUSY ? 0 : 1);
  }
  CHECK(waitpid(pid, &status, 0) == pid);
  CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 0, "another process could write during the transaction");
  OK(lode_commit(txn, &err));
  OK(lode_count(a.c, &n, &err));
  CHECK(n == 2);
  clear_stage(&a);
}

/* A child has one thread, and locks that others held: whatever they were doing, its handle works. */
TEST_SLOW(a_child_forked_amid_threads_goes_on, 240) {
  static void (*const roles[])(actor *) = {play_writer, play_writer, play_getter, play_searcher};
  enum { ACTORS = sizeof roles / sizeof *roles };
  char folder[512];
  lode_error err = {0};
  stage s = {.seed = test_seed(), .rounds = test_full() ? 2000 : 120, .writing = WRITERS, .version = 1};
  actor actors[ACTORS];
  lode_open_options o = {.create = true, .busy_ms = 120000};
  unsigned children = 0;
  if (BUILD_ASAN) test_skip("ASan's own allocator may be left locked in a child of many threads; it runs under TSan");
  fault_no_sync();
  snprintf(folder, sizeof folder, "%s/store", test_folder());
  set_stage(&s, folder, &o);
  add_pairs(&s);
  for (unsigned i = 0; i < ACTORS; i++) {
    actors[i] = (actor){.s = &s, .number = i, .random = s.seed * 100 + i, .play = roles[i]};
    CHECK(pthread_create(&actors[i].thread, NULL, run_actor, &actors[i]) == 0);
  }
  do {
    int status;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      uint64_t n;
      pair p;
      alarm(60);
      make_pair(&p, 1000 + children, 1); /* beyond the pairs that the threads look at */
      OK(lode_count(s.c, &n, &err));
      OK(lode_upsert(s.c, NULL, p.r, 2, NULL, &err));
      lode_selection both = {.ids = p.ids, .n_ids = 2};
      OK(lode_delete(s.c, NULL, &both, NULL, &err));
      clear_stage(&s);
      _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child %u ended with status %x", children, (unsigned)status);
    children++;
  } while (goes_on(&s));
  for (unsigned i = 0; i < ACTORS; i++) CHECK(pthread_join(actors[i].thread, NULL) == 0);
  CHECKF(children >= 5, "only %u children", children);
  clear_stage(&s);
}

/* ---- Readers alone ---- */

enum { QUESTIONS = 20, ASKERS = 6 };
static float questions[QUESTIONS][DIM];
static char first_answers[QUESTIONS][2000];

static void answer(stage *s, unsigned q, char *text, size_t size) {
  lode_error err = {0};
  lode_result *rows;
  char where[64];
  size_t len = 0;
  snprintf(where, sizeof where, "{\"pair\":{\"$gte\":%u}}", q % 7 * 10);
  lode_query_request req = {.vectors = questions[q], .dimension = DIM, .n = 1, .k = 20, .include = LODE_METADATA};
  if (q % 2) req.select.where = str_of(where);
  OK(lode_query(s->c, &req, &rows, &err));
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    const lode_row *row = lode_result_at(rows, i);
    len += (size_t)snprintf(text + len, size - len, "%.*s %a;", (int)row->id.len, row->id.data, row->distance);
  }
  CHECK(lode_result_count(rows) == 20 && len < size);
  lode_result_free(rows);
}

static void play_asker(actor *a) {
  for (unsigned i = 0; i < 60; i++) {
    unsigned q = (unsigned)pick(a, QUESTIONS);
    char text[2000];
    answer(a->s, q, text, sizeof text);
    CHECKF(strcmp(text, first_answers[q]) == 0, "question %u:\n%s\n%s", q, first_answers[q], text);
  }
}

TEST_SLOW(threads_get_the_answers_that_one_gets, 120) {
  char folder[512];
  lode_error err = {0};
  stage s = {.seed = test_seed()};
  actor actors[ASKERS];
  lode_open_options o = {.create = true, .no_background = true};
  fault_no_sync();
  test_srand(s.seed);
  snprintf(folder, sizeof folder, "%s/store", test_folder());
  set_stage(&s, folder, &o);
  for (unsigned i = 0; i < 200; i++) {
    pair p;
    make_pair(&p, i, 1);
    OK(lode_add(s.c, NULL, p.r, 2, LODE_FAIL_EXISTING, NULL, &err));
    if (i == 120) OK(lode_optimize(s.store, (lode_progress){0}, &err));
  }
  for (unsigned q = 0; q < QUESTIONS; q++) {
    for (unsigned d = 0; d < DIM; d++) questions[q][d] = (float)test_below(d ? 3 : 200);
    answer(&s, q, first_answers[q], sizeof first_answers[q]);
  }
  /* a new handle: all threads find its caches empty at once */
  clear_stage(&s);
  set_stage(&s, folder, &(lode_open_options){.no_background = true});
  for (unsigned i = 0; i < ASKERS; i++)
    actors[i] = (actor){.s = &s, .number = i, .random = s.seed + i, .play = play_asker};
  run_actors(actors, ASKERS);
  clear_stage(&s);
}

/* ---- A filter's graph ---- */

static struct {
  fixture k;
  float query[8];
  atomic_uint graphs; /* begun so far */
  sem_t begun, go_on;
} filtering;

static const lode_query_request FILTERED = {.select.where = {"{\"n\":{\"$lt\":10}}", 16}};

static void stop_at_graph(void) {
  atomic_fetch_add(&filtering.graphs, 1);
  sem_post(&filtering.begun);
  while (sem_wait(&filtering.go_on) != 0) {}
}

static size_t query_filtered(void) {
  fixture_answer *a = malloc(sizeof *a);
  fixture_query(&filtering.k, filtering.query, 10, &FILTERED, NULL, a);
  size_t n = a->n;
  free(a);
  return n;
}

static void *query_until_graph(void *unused) {
  (void)unused;
  for (int i = 0; i < 10 && atomic_load(&filtering.graphs) == 0; i++) CHECK(query_filtered() == 10);
  return NULL;
}

/* If a lock were held over the construction, the queries in the middle would wait for it without end. */
TEST(a_query_does_not_wait_for_the_graph_of_its_filter) {
  pthread_t thread;
  fixture *k = &filtering.k;
  fixture_answer *a = malloc(sizeof *a);
  k->no_background = true;
  CHECK(sem_init(&filtering.begun, 0, 0) == 0 && sem_init(&filtering.go_on, 0, 0) == 0);
  fixture_limits(1000, 800);
  fixture_open(k, test_folder(), LODE_L2, 8);
  fixture_add(k, 2000);
  fixture_optimize(k);
  fixture_random(k, filtering.query);
  fixture_query(k, filtering.query, 10, NULL, NULL, a); /* the snapshot is there from now on */
  engine_filter_graph_hook = stop_at_graph;
  CHECK(pthread_create(&thread, NULL, query_until_graph, NULL) == 0);
  while (sem_wait(&filtering.begun) != 0) {}
  for (int i = 0; i < 3; i++) CHECK(query_filtered() == 10);
  CHECK(atomic_load(&filtering.graphs) == 1); /* and nobody builds it a second time */
  CHECK(sem_post(&filtering.go_on) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(query_filtered() == 10);
  CHECK(atomic_load(&filtering.graphs) == 1);
  free(a);
  fixture_close(k);
}
