/* SPDX-License-Identifier: Apache-2.0 */
/* test_segment_vectors.c - the cache of float vectors: a vector is read and checked once while it is held, answers are
 * the same with any size of it, damage is never kept, and threads share it while it comes and goes. */
#include <pthread.h>

#include "index/segment_vectors.h"
#include "support/index_scene.h"
#include "support/test.h"

enum { DIM = 24, QUERIES = 40, K = 10 };

typedef struct asked {
  float queries[QUERIES][DIM];
  index_hit want[QUERIES][K];
} asked;

static void ask(scene *s, index_search_scratch *scratch, const float *query, index_hit *hits) {
  lode_error err;
  size_t n;
  index_search_request request = {.query = query, .k = K, .beam = 32};
  OK(index_search(s->segment, &request, scratch, hits, &n, &err));
  CHECK(n == K);
}

/* A scene, queries, and what is answered without a cache. */
static void prepare(scene *s, asked *a, lode_metric metric) {
  lode_error err;
  index_search_scratch scratch = {0};
  scene_init(s, CLUSTERS, metric, 3000, DIM);
  scene_build(s, INDEX_GRAPH, 1);
  OK(index_segment_preload(s->segment, &err));
  for (size_t q = 0; q < QUERIES; q++) {
    scene_query(s, a->queries[q]);
    ask(s, &scratch, a->queries[q], a->want[q]);
  }
  CHECK(scratch.stats.vectors >= (uint64_t)QUERIES * K && scratch.stats.vectors_read == scratch.stats.vectors);
  index_search_scratch_release(&scratch);
}

/* Asks everything again; returns how many vectors were read. */
static uint64_t ask_all(scene *s, const asked *a) {
  index_search_scratch scratch = {0};
  for (size_t q = 0; q < QUERIES; q++) {
    index_hit hits[K];
    ask(s, &scratch, a->queries[q], hits);
    CHECK(memcmp(hits, a->want[q], sizeof hits) == 0);
  }
  uint64_t read = scratch.stats.vectors_read;
  index_search_scratch_release(&scratch);
  return read;
}

TEST(a_vector_is_read_once_while_it_is_held) {
  test_srand(test_seed());
  for (lode_metric metric = LODE_L2; metric <= LODE_IP; metric++) {
    scene s;
    asked a;
    prepare(&s, &a, metric);
    uint64_t pages = atomic_load(&s.segment->resident), all = index_vectors_wanted(s.segment);
    index_vectors_keep(s.segment, UINT64_MAX);
    index_vectors_keep(s.segment, 1 << 20); /* it has one */
    CHECK(atomic_load(&s.segment->vector_bytes) == all && all < (uint64_t)s.n * 2 * DIM * sizeof(float));
    uint64_t first = ask_all(&s, &a);
    CHECK(first > 0);
    s.bytes_read = 0;
    CHECK(ask_all(&s, &a) == 0 && s.bytes_read == 0);
    index_segment_evict(s.segment, pages); /* the vectors go first */
    CHECK(atomic_load(&s.segment->vector_bytes) == 0 && atomic_load(&s.segment->resident) == pages);
    CHECK(ask_all(&s, &a) >= first);
    scene_release(&s);
  }
}

TEST(a_cache_of_any_size_gives_the_same_answers) {
  scene s;
  asked a;
  test_srand(test_seed());
  prepare(&s, &a, LODE_L2);
  uint64_t all = index_vectors_wanted(s.segment), pages = atomic_load(&s.segment->resident), none = ask_all(&s, &a);
  index_vectors_keep(s.segment, 100); /* not one vector */
  CHECK(atomic_load(&s.segment->vector_bytes) == 0 && ask_all(&s, &a) == none);
  uint64_t before = none;
  for (uint64_t part = 128; part >= 2; part /= 4) {
    index_vectors_keep(s.segment, all / part);
    uint64_t held = atomic_load(&s.segment->vector_bytes);
    CHECK(held > 0 && held <= all / part);
    (void)ask_all(&s, &a);
    uint64_t read = ask_all(&s, &a);
    CHECKF(read <= before, "with one vector in %llu: %llu read, with fewer %llu", (unsigned long long)part,
           (unsigned long long)read, (unsigned long long)before);
    before = read;
    index_segment_evict(s.segment, pages);
  }
  CHECKF(before < none / 4, "%llu of %llu are read with half of the vectors in memory", (unsigned long long)before,
         (unsigned long long)none);
  scene_release(&s);
}

/* What is used again stays when many others come once. */
TEST(what_is_used_again_stays) {
  scene s;
  asked a;
  float query[DIM];
  index_hit hits[K];
  index_search_scratch scratch = {0};
  test_srand(test_seed());
  prepare(&s, &a, LODE_L2);
  index_vectors_keep(s.segment, index_vectors_wanted(s.segment) / 8);
  for (int i = 0; i < 400; i++) {
    ask(&s, &scratch, a.queries[0], hits);
    scene_query(&s, query);
    ask(&s, &scratch, query, hits);
  }
  scratch.stats = (index_search_stats){0};
  for (int i = 0; i < 100; i++) {
    ask(&s, &scratch, a.queries[0], hits);
    uint64_t mine = scratch.stats.vectors_read;
    scene_query(&s, query);
    ask(&s, &scratch, query, hits);
    scratch.stats.vectors_read = mine;
  }
  CHECKF(scratch.stats.vectors_read <= 100, "%llu of 1,000 were read again",
         (unsigned long long)scratch.stats.vectors_read);
  index_search_scratch_release(&scratch);
  scene_release(&s);
}

TEST(damage_is_noticed_and_not_kept) {
  scene s;
  asked a;
  lode_error err;
  index_hit hits[K];
  index_search_scratch scratch = {0};
  size_t n;
  test_srand(test_seed());
  prepare(&s, &a, LODE_L2);
  index_vectors_keep(s.segment, UINT64_MAX);
  unsigned char *vector =
      s.file + s.segment->layout.at[INDEX_SEG_VECTORS] + (size_t)a.want[0][K - 1].slot * DIM * sizeof(float);
  index_search_request request = {.query = a.queries[0], .k = K, .beam = 32};
  for (int i = 0; i < 3; i++) {
    vector[i] ^= 4;
    FAILS(LODE_CORRUPT, index_search(s.segment, &request, &scratch, hits, &n, &err));
    FAILS(LODE_CORRUPT, index_search(s.segment, &request, &scratch, hits, &n, &err));
    vector[i] ^= 4;
  }
  s.short_by = s.file_bytes - 5000; /* cut short */
  FAILS(LODE_CORRUPT, index_search(s.segment, &request, &scratch, hits, &n, &err));
  s.short_by = 0;
  CHECK(ask_all(&s, &a) > 0);
  index_search_scratch_release(&scratch);
  scene_release(&s);
}

/* Rows that codes prove to be farther than a bound are not read; all others are found as without it. */
TEST(a_bound_saves_reads) {
  test_srand(test_seed());
  for (lode_metric metric = LODE_L2; metric <= LODE_IP; metric++) {
    scene s;
    asked a;
    lode_error err;
    index_search_scratch scratch = {0};
    index_hit hits[K];
    size_t n;
    prepare(&s, &a, metric);
    for (int exact = 0; exact < 2; exact++) {
      for (size_t q = 0; q < QUERIES; q++) {
        index_search_request request = {.query = a.queries[q], .k = K, .beam = 32, .exact = exact, .bounded = true};
        for (size_t i = 0; i < K; i += 3) {
          scratch.stats = (index_search_stats){0};
          request.bound = a.want[q][i].distance;
          OK(index_search(s.segment, &request, &scratch, hits, &n, &err));
          CHECK(n > i && n <= K && (exact || memcmp(hits, a.want[q], (i + 1) * sizeof *hits) == 0));
        }
        CHECK(scratch.stats.vectors >= n);
        scratch.stats = (index_search_stats){0};
        request.bound = a.want[q][0].distance - 1000;
        OK(index_search(s.segment, &request, &scratch, hits, &n, &err));
        CHECKF(n == 0 && scratch.stats.vectors == 0, "%llu vectors", (unsigned long long)scratch.stats.vectors);
      }
    }
    index_search_scratch_release(&scratch);
    scene_release(&s);
  }
}

static unsigned allocations_left;
static bool allow_some(void) { return allocations_left > 0 && allocations_left--; }

TEST(without_memory_there_is_no_cache) {
  scene s;
  asked a;
  test_srand(test_seed());
  prepare(&s, &a, LODE_COSINE);
  for (unsigned allowed = 0; allowed < 3; allowed++) {
    allocations_left = allowed;
    mem_alloc_hook = allow_some;
    index_vectors_keep(s.segment, UINT64_MAX);
    mem_alloc_hook = NULL;
    CHECK(atomic_load(&s.segment->vector_bytes) == 0 && ask_all(&s, &a) > 0);
  }
  scene_release(&s);
}

/* ---- Threads ---- */

typedef struct crowd {
  scene *s;
  const asked *a;
  atomic_bool stop;
} crowd;

static void *search_on(void *arg) {
  crowd *c = arg;
  for (int i = 0; i < 4; i++) (void)ask_all(c->s, c->a);
  return NULL;
}

static void *come_and_go(void *arg) {
  crowd *c = arg;
  uint64_t all = index_vectors_wanted(c->s->segment);
  for (unsigned i = 0; !atomic_load(&c->stop); i++) {
    index_vectors_keep(c->s->segment, i % 3 ? all / 200 : all);
    (void)ask_all(c->s, c->a);
    index_segment_evict(c->s->segment, i % 2 ? 0 : atomic_load(&c->s->segment->resident));
  }
  return NULL;
}

/* A cache with few sets makes threads replace what others use. */
TEST_SLOW(threads_share_it_while_it_comes_and_goes, 120) {
  scene s;
  asked a;
  pthread_t threads[5];
  crowd c = {.s = &s, .a = &a};
  test_srand(test_seed());
  prepare(&s, &a, LODE_L2);
  for (int i = 0; i < 5; i++) CHECK(pthread_create(&threads[i], NULL, i ? search_on : come_and_go, &c) == 0);
  for (int i = 1; i < 5; i++) pthread_join(threads[i], NULL);
  atomic_store(&c.stop, true);
  pthread_join(threads[0], NULL);
  index_segment_evict(s.segment, 0);
  CHECK(atomic_load(&s.segment->vector_bytes) == 0 && atomic_load(&s.segment->resident) == 0);
  scene_release(&s);
}
