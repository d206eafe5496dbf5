/* SPDX-License-Identifier: Apache-2.0 */
/* bench_index.c - the index alone against hnswlib, on one thread, in the same run.
 *
 *   bench_index FILE [options]        FILE: of make-data.mjs
 *     --rows N      only the first N rows
 *     --queries N   only the first N queries (500)
 *     --k N         nearest to find (10; at most 100)
 *     --rounds N    interleaved rounds, the best of each counts (3)
 *     --cache DIR   keep the exact answers, the segment and hnswlib's index there, to be used again
 *     --no-peer     without hnswlib
 *     --memory      read vectors for re-ranking from memory instead of the segment's file
 *     --keep MB     memory for float vectors that were read (0); it counts as memory of the index
 *     --threads N   for both constructions (1); their time is then that of the clock
 *     --filters     also queries under filters of 1 % and 10 %
 *     --exact       also exact queries
 *
 * Both search the same vectors for the k nearest. The segment is a file that is read as in the product: codes and
 * links are preloaded, vectors are read with pread for re-ranking. Recall counts ties fairly. For each beam: recall,
 * queries a second (by CPU time of the thread, which other load disturbs less), distances a query. At the end: queries
 * a second at recall 0.95 and 0.99, interpolated, and the ratios; time of construction; bytes of memory for each
 * vector.
 */
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hnsw_peer.h"
#include "index/index_search.h"
#include "index/segment_vectors.h"
#include "segments/segment_build.h"

enum { MAX_K = 100, BEAMS = 19 };
static const uint32_t beams[BEAMS] = {6,  8,   10,  12,  14,  16,  20,  24,  32,  48,
                                      64, 100, 150, 200, 300, 400, 600, 800, 1200};

typedef struct bench {
  const char *file, *cache;
  uint32_t n, n_queries, dim, k;
  lode_metric metric;
  float *rows, *queries, *bounds; /* bounds: the distance of the k-th nearest */
  bool peer, memory, filters, exact;
  unsigned rounds, threads;
  uint64_t keep_bytes;
  hnsw_peer *hnsw;
  double hnsw_build, build, hnsw_bytes, bytes;
  int fd;
  index_segment *segment;
  index_search_scratch room;
} bench;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Of constructions: by the clock when several threads work. */
static double build_now(const bench *b) {
  struct timespec t;
  if (b->threads <= 1) return now();
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void stop(const char *what) {
  perror(what);
  exit(1);
}

static void check(lode_status st, const lode_error *err) {
  if (st == LODE_OK) return;
  fprintf(stderr, "%s\n", err->text);
  exit(1);
}

static void *memory(size_t bytes) {
  void *p = malloc(bytes);
  if (!p) stop("malloc");
  return p;
}

static double heap_bytes(void) {
  struct mallinfo2 m = mallinfo2();
  return (double)m.uordblks + (double)m.hblkhd;
}

/* ---- Data ---- */

static void normalise(float *v, size_t dim) {
  double sum = 0;
  for (size_t j = 0; j < dim; j++) sum += (double)v[j] * v[j];
  for (size_t j = 0; j < dim; j++) v[j] = (float)(v[j] / sqrt(sum > 0 ? sum : 1));
}

static void load(bench *b, uint32_t rows, uint32_t queries) {
  uint32_t head[4];
  FILE *f = fopen(b->file, "rb");
  if (!f || fread(head, sizeof head, 1, f) != 1) stop(b->file);
  b->n = rows && rows < head[0] ? rows : head[0];
  b->n_queries = queries < head[1] ? queries : head[1];
  b->dim = head[2];
  b->metric = head[3] ? LODE_COSINE : LODE_L2;
  size_t bytes = b->dim * sizeof(float);
  b->rows = memory(b->n * bytes);
  b->queries = memory(b->n_queries * bytes);
  if (fread(b->rows, bytes, b->n, f) != b->n) stop(b->file);
  if (fseek(f, (long)(sizeof head + head[0] * bytes), SEEK_SET) != 0) stop(b->file);
  if (fread(b->queries, bytes, b->n_queries, f) != b->n_queries) stop(b->file);
  fclose(f);
  if (b->metric != LODE_COSINE) return;
  for (uint32_t i = 0; i < b->n; i++) normalise(b->rows + (size_t)i * b->dim, b->dim);
  for (uint32_t i = 0; i < b->n_queries; i++) normalise(b->queries + (size_t)i * b->dim, b->dim);
}

static const char *cached(const bench *b, const char *kind, char *path, size_t size) {
  const char *name = strrchr(b->file, '/');
  name = name ? name + 1 : b->file;
  if (!b->cache) return NULL;
  if (strcmp(kind, "truth") == 0 && b->k != 10)
    snprintf(path, size, "%s/%s.%u.%s%u", b->cache, name, b->n, kind, b->k);
  else
    snprintf(path, size, "%s/%s.%u.%s", b->cache, name, b->n, kind);
  return path;
}

/* The distance of the k-th nearest of each query; allowed: a filter, or NULL. */
static void exact(const bench *b, const uint64_t *allowed, float *bounds) {
  enum { BATCH = 16 };
  float *out = memory((size_t)BATCH * b->n * sizeof *out);
  for (uint32_t q = 0; q < b->n_queries; q += BATCH) {
    uint32_t m = b->n_queries - q < BATCH ? b->n_queries - q : BATCH;
    kernel_rows queries = {.data = b->queries + (size_t)q * b->dim, .n = m, .dim = b->dim, .stride = b->dim};
    kernel_rows rows = {.data = b->rows, .n = b->n, .dim = b->dim, .stride = b->dim};
    kernel_distances_many(b->metric, &queries, &rows, out, b->n);
    for (uint32_t i = 0; i < m; i++) {
      kernel_neighbour near[MAX_K];
      kernel_topk top = {.heap = near, .k = b->k};
      for (uint32_t r = 0; r < b->n; r++) {
        float d = out[(size_t)i * b->n + r];
        if (allowed && !(allowed[r / 64] >> (r % 64) & 1)) continue;
        if (kernel_topk_wants(&top, d)) kernel_topk_push(&top, d, r, 0);
      }
      bounds[q + i] = kernel_topk_bound(&top);
    }
  }
  free(out);
}

static void load_bounds(bench *b) {
  char path[4096];
  size_t bytes = b->n_queries * sizeof(float);
  b->bounds = memory(bytes);
  const char *name = cached(b, "truth", path, sizeof path);
  FILE *f = name ? fopen(name, "rb") : NULL;
  bool got = f && fread(b->bounds, 1, bytes, f) == bytes;
  if (f) fclose(f);
  if (got) return;
  exact(b, NULL, b->bounds);
  f = name ? fopen(name, "wb") : NULL;
  if (f) {
    fwrite(b->bounds, 1, bytes, f);
    fclose(f);
  }
}

static double recall(const bench *b, const uint32_t *found, const float *bounds) {
  size_t hits = 0;
  for (uint32_t q = 0; q < b->n_queries; q++) {
    const float *query = b->queries + (size_t)q * b->dim;
    float norm2 = kernel_dot(query, query, b->dim);
    for (size_t i = 0; i < b->k; i++) {
      uint32_t r = found[q * b->k + i];
      if (r >= b->n) continue;
      float d = kernel_distance(b->metric, query, norm2, b->rows + (size_t)r * b->dim, b->dim);
      hits += d <= bounds[q] + 1e-6f * (1 + fabsf(bounds[q]));
    }
  }
  return (double)hits / ((double)b->n_queries * b->k);
}

/* ---- The segment ---- */

static lode_status write_file(void *ctx, uint64_t offset, const void *data, size_t n, lode_error *err) {
  const bench *b = ctx;
  for (size_t put = 0; put < n;) {
    ssize_t m = pwrite(b->fd, (const char *)data + put, n - put, (off_t)(offset + put));
    if (m <= 0) return err_set(err, LODE_IO, "cannot write the segment");
    put += (size_t)m;
  }
  return LODE_OK;
}

static lode_status read_file(void *ctx, uint64_t offset, void *buf, size_t n, lode_error *err) {
  const bench *b = ctx;
  size_t bytes = b->dim * sizeof(float);
  if (b->memory && offset >= INDEX_PAGE_BYTES && n == bytes && offset + n <= INDEX_PAGE_BYTES + b->n * bytes) {
    memcpy(buf, (const char *)b->rows + (offset - INDEX_PAGE_BYTES), n);
    return LODE_OK;
  }
  for (size_t got = 0; got < n;) {
    ssize_t m = pread(b->fd, (char *)buf + got, n - got, (off_t)(offset + got));
    if (m <= 0) return err_set(err, LODE_IO, "cannot read the segment");
    got += (size_t)m;
  }
  return LODE_OK;
}

static void make_segment(bench *b, index_segment_source *source) {
  lode_error err;
  quant_fit fit;
  index_writer maker;
  float *mean = memory(b->dim * sizeof *mean);
  double begin = build_now(b);
  check(quant_fit_begin(&fit, b->metric, b->dim, &err), &err);
  for (uint32_t i = 0; i < b->n; i += b->n / 16384 + 1) quant_fit_add(&fit, b->rows + (size_t)i * b->dim);
  index_writer_options options = {.id = 1, .kind = INDEX_GRAPH, .rows_hint = b->n, .write = write_file, .ctx = b};
  const char *beam = getenv("BENCH_BUILD_BEAM"), *degree = getenv("BENCH_DEGREE"), *alpha = getenv("BENCH_ALPHA");
  if (beam) options.graph.beam = (uint32_t)strtoul(beam, NULL, 10);
  if (degree) options.graph.degree = (uint32_t)strtoul(degree, NULL, 10);
  if (alpha) options.graph.alpha = strtof(alpha, NULL);
  if (b->threads > 1) options.graph.parallel = segments_parallel(&b->threads);
  quant_fit_end(&fit, mean, &options.model);
  quant_fit_release(&fit);
  check(index_writer_begin(&maker, &options, &err), &err);
  for (uint32_t i = 0; i < b->n; i++) check(index_writer_add(&maker, b->rows + (size_t)i * b->dim, i, i, &err), &err);
  check(index_writer_finish(&maker, &err), &err);
  b->build = build_now(b) - begin;
  *source = (index_segment_source){
      .id = 1, .bytes = maker.info.bytes, .table_crc = maker.table_crc, .read = read_file, .ctx = b};
  index_writer_release(&maker);
  free(mean);
}

/* A segment that an earlier run left whole: what the manifest would say of it is read from the file itself. */
static bool find_segment(bench *b, index_segment_source *source) {
  lode_error err;
  struct stat sb;
  unsigned char page[INDEX_PAGE_BYTES];
  index_segment_info info;
  index_segment_layout layout;
  if (fstat(b->fd, &sb) != 0 || sb.st_size < (off_t)sizeof page || read_file(b, 0, page, sizeof page, &err) != LODE_OK)
    return false;
  if (index_segment_get_header(page, (uint64_t)sb.st_size, &info, &err) != LODE_OK ||
      !index_segment_layout_of(&info, &layout))
    return false;
  size_t bytes = (size_t)layout.bytes[INDEX_SEG_CHECKSUMS];
  unsigned char *table = memory(bytes);
  bool whole = read_file(b, layout.at[INDEX_SEG_CHECKSUMS], table, bytes, &err) == LODE_OK;
  *source = (index_segment_source){
      .id = 1, .bytes = info.bytes, .table_crc = index_segment_table_crc(1, table, bytes), .read = read_file, .ctx = b};
  free(table);
  return whole;
}

static void build(bench *b) {
  lode_error err;
  index_segment_source source;
  const char *folder = getenv("TMPDIR");
  char path[4096], tmp[4096];
  const char *name = cached(b, "segment", path, sizeof path);
  if (snprintf(tmp, sizeof tmp, "%s/lode-bench-XXXXXX", folder ? folder : P_tmpdir) >= (int)sizeof tmp)
    stop("TMPDIR is too long");
  b->fd = name ? open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : mkstemp(tmp);
  if (b->fd < 0) stop("segment");
  if (!name) unlink(tmp);
  if (!name || !find_segment(b, &source)) make_segment(b, &source);
  double before = heap_bytes();
  check(index_segment_open(&source, &b->segment, &err), &err);
  check(index_segment_preload(b->segment, &err), &err);
  index_vectors_keep(b->segment, b->keep_bytes);
  b->bytes = (heap_bytes() - before) / b->n;
}

static void add_to_peer(void *ctx, size_t i, unsigned worker) {
  const bench *b = ctx;
  (void)worker;
  if (i) hnsw_peer_add(b->hnsw, b->rows + i * b->dim, (uint32_t)i);
}

static void build_peer(bench *b) {
  char path[4096];
  const char *name = cached(b, "hnsw", path, sizeof path);
  double before = heap_bytes(), begin = build_now(b);
  b->hnsw = name && access(name, R_OK) == 0 ? hnsw_peer_load(name, b->n, b->dim, b->metric == LODE_COSINE) : NULL;
  if (!b->hnsw) {
    b->hnsw = hnsw_peer_new(b->n, b->dim, b->metric == LODE_COSINE);
    hnsw_peer_add(b->hnsw, b->rows, 0); /* the first alone */
    index_parallel p = segments_parallel(&b->threads);
    if (p.run) p.run(p.ctx, b->n, add_to_peer, b);
    for (size_t i = 1; i < b->n && !p.run; i++) add_to_peer(b, i, 0);
    b->hnsw_build = build_now(b) - begin;
    if (name && !hnsw_peer_save(b->hnsw, name)) fprintf(stderr, "%s: not saved\n", name);
  }
  b->hnsw_bytes = (heap_bytes() - before) / b->n;
}

/* ---- Queries ---- */

static uint32_t count_bits(const uint64_t *bits, uint32_t n) {
  uint32_t count = 0;
  for (uint32_t w = 0; w < n / 64 + 1; w++) count += (uint32_t)__builtin_popcountll(bits[w]);
  return count;
}

/* allowed: a filter, or NULL. As for the engine, it is known how many it allows. */
static double run(bench *b, uint32_t beam, const uint64_t *allowed, index_filtered *match, uint32_t *found) {
  lode_error err;
  index_hit hits[MAX_K];
  uint32_t n_allowed = allowed ? count_bits(allowed, b->n) : 0;
  double begin = now();
  b->room.stats = (index_search_stats){0};
  for (uint32_t q = 0; q < b->n_queries; q++) {
    size_t n;
    index_search_request request = {.query = b->queries + (size_t)q * b->dim,
                                    .k = b->k,
                                    .beam = beam,
                                    .allowed = allowed,
                                    .n_allowed = n_allowed,
                                    .match = match};
    check(index_search(b->segment, &request, &b->room, hits, &n, &err), &err);
    for (size_t i = 0; i < b->k; i++) found[q * b->k + i] = i < n ? hits[i].slot : UINT32_MAX;
  }
  return b->n_queries / (now() - begin);
}

static double run_peer(bench *b, uint32_t beam, uint32_t *found) {
  double begin = now();
  for (uint32_t q = 0; q < b->n_queries; q++) {
    hnsw_peer_search(b->hnsw, b->queries + (size_t)q * b->dim, b->k, beam, found + q * b->k);
  }
  return b->n_queries / (now() - begin);
}

typedef struct curve {
  double recall[BEAMS], speed[BEAMS]; /* speed: the best of the rounds */
  index_search_stats stats[BEAMS];
  size_t first, n; /* beams [first, n) were tried */
} curve;

/* Queries a second at a recall, between the two nearest points (linear in time per query); 0: not reached. */
static double at(const curve *c, double wanted) {
  for (size_t i = c->first; i < c->n; i++) {
    if (c->recall[i] < wanted) continue;
    if (i == c->first || c->recall[i] <= c->recall[i - 1]) return c->speed[i];
    double part = (wanted - c->recall[i - 1]) / (c->recall[i] - c->recall[i - 1]);
    return 1 / (part / c->speed[i] + (1 - part) / c->speed[i - 1]);
  }
  return 0;
}

static void try_beam(bench *b, curve *c, size_t i, bool peer, uint32_t *found) {
  double speed = peer ? run_peer(b, beams[i], found) : run(b, beams[i], NULL, NULL, found);
  c->recall[i] = recall(b, found, b->bounds);
  c->speed[i] = fmax(c->speed[i], speed);
  c->stats[i] = b->room.stats;
}

/* Round after round over all beams, so that each is measured at many moments: what else the machine does changes within
 * seconds. */
static void try_all(bench *b, curve *ours, curve *theirs) {
  uint32_t *found = memory((size_t)b->n_queries * b->k * sizeof *found);
  while (b->peer && beams[theirs->first] < b->k) theirs->first++;
  theirs->n = theirs->first;
  for (; ours->n < BEAMS && (ours->n == 0 || ours->recall[ours->n - 1] < 0.99); ours->n++)
    try_beam(b, ours, ours->n, false, found);
  for (; b->peer && theirs->n < BEAMS && (theirs->n == theirs->first || theirs->recall[theirs->n - 1] < 0.99);
       theirs->n++)
    try_beam(b, theirs, theirs->n, true, found);
  for (unsigned round = 0; round < b->rounds; round++) {
    for (size_t i = 0; i < ours->n || i < theirs->n; i++) {
      if (i >= theirs->first && i < theirs->n) try_beam(b, theirs, i, true, found);
      if (i < ours->n) try_beam(b, ours, i, false, found);
    }
  }
  free(found);
}

static void compare(bench *b) {
  curve ours = {0}, theirs = {0};
  try_all(b, &ours, &theirs);
  for (size_t i = 0; i < ours.n || i < theirs.n; i++) {
    printf("beam %4u", beams[i]);
    if (i >= theirs.first && i < theirs.n) printf("   hnswlib %.4f %8.0f/s", theirs.recall[i], theirs.speed[i]);
    if (i < ours.n) {
      const index_search_stats *st = &ours.stats[i];
      printf("   lode %.4f %8.0f/s %6.0f distances %4.0f hops %4.1f vectors %4.1f read", ours.recall[i], ours.speed[i],
             (double)st->distances / b->n_queries, (double)st->hops / b->n_queries, (double)st->vectors / b->n_queries,
             (double)st->vectors_read / b->n_queries);
    }
    printf("\n");
  }
  for (double wanted = 0.95; wanted < 1; wanted += 0.04) {
    double a = at(&ours, wanted), p = at(&theirs, wanted);
    printf("recall %.2f: lode %.0f/s", wanted, a);
    if (b->peer) printf(", hnswlib %.0f/s, ratio %.2f", p, p > 0 ? a / p : 0);
    printf("\n");
  }
}

/* Exact searches, by codes. */
static void try_exact(bench *b) {
  lode_error err;
  index_hit hits[MAX_K];
  uint32_t *found = memory((size_t)b->n_queries * b->k * sizeof *found);
  double best = 0;
  for (unsigned round = 0; round < b->rounds; round++) {
    double begin = now();
    b->room.stats = (index_search_stats){0};
    for (uint32_t q = 0; q < b->n_queries; q++) {
      size_t n;
      index_search_request request = {.query = b->queries + (size_t)q * b->dim, .k = b->k, .exact = true};
      check(index_search(b->segment, &request, &b->room, hits, &n, &err), &err);
      for (size_t i = 0; i < b->k; i++) found[q * b->k + i] = i < n ? hits[i].slot : UINT32_MAX;
    }
    best = fmax(best, b->n_queries / (now() - begin));
  }
  printf("exact: recall %.4f %.3f ms, %.0f distances, %.1f vectors\n", recall(b, found, b->bounds), 1e3 / best,
         (double)b->room.stats.distances / b->n_queries, (double)b->room.stats.vectors / b->n_queries);
  free(found);
}

static void compare_filters(bench *b) {
  static const unsigned percents[] = {1, 2, 5, 10, 20, 50};
  uint64_t *allowed = memory((b->n / 64 + 1) * sizeof *allowed);
  uint32_t *found = memory((size_t)b->n_queries * b->k * sizeof *found);
  float *bounds = memory(b->n_queries * sizeof *bounds);
  for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
    uint64_t x = 88172645463325252u;
    memset(allowed, 0, (b->n / 64 + 1) * sizeof *allowed);
    for (uint32_t r = 0; r < b->n; r++) {
      x ^= x << 13, x ^= x >> 7, x ^= x << 17;
      if (x % 100 < percents[i]) allowed[r / 64] |= (uint64_t)1 << (r % 64);
    }
    exact(b, allowed, bounds);
    run(b, 0, NULL, NULL, found); /* the exact answers have emptied the caches */
    double speed = run(b, 0, allowed, NULL, found);
    printf("filter %2u %% used once: recall %.4f %.0f/s, %.0f distances, ways %u\n", percents[i],
           recall(b, found, bounds), speed, (double)b->room.stats.distances / b->n_queries, b->room.stats.ways);
    lode_error err;
    index_filtered *match;
    double begin = now();
    check(index_filtered_new(b->segment, allowed, count_bits(allowed, b->n), &match, &err), &err);
    double made = now() - begin;
    run(b, 0, allowed, match, found);
    double first = now() - begin - made;
    speed = run(b, 0, allowed, match, found);
    printf("filter %2u %%: recall %.4f %.0f/s, %.0f distances, ways %u, made in %.1f ms, first round %.0f/s\n",
           percents[i], recall(b, found, bounds), speed, (double)b->room.stats.distances / b->n_queries,
           b->room.stats.ways, made * 1e3, b->n_queries / first);
    index_filtered_free(match);
  }
  double speed = run(b, 0, NULL, NULL, found);
  printf("no filter, default effort: recall %.4f %.0f/s, %.0f distances, %.1f vectors\n", recall(b, found, b->bounds),
         speed, (double)b->room.stats.distances / b->n_queries, (double)b->room.stats.vectors / b->n_queries);
  free(allowed);
  free(found);
  free(bounds);
}

int main(int argc, char **argv) {
  bench b = {.peer = true, .rounds = 3, .threads = 1, .k = 10};
  uint32_t rows = 0, queries = 500;
  for (int i = 1; i < argc; i++) {
    bool value = i + 1 < argc;
    if (strcmp(argv[i], "--rows") == 0 && value)
      rows = (uint32_t)strtoul(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--queries") == 0 && value)
      queries = (uint32_t)strtoul(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--k") == 0 && value)
      b.k = (uint32_t)strtoul(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--rounds") == 0 && value)
      b.rounds = (unsigned)strtoul(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--threads") == 0 && value)
      b.threads = (unsigned)strtoul(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--keep") == 0 && value)
      b.keep_bytes = (uint64_t)strtoul(argv[++i], NULL, 10) << 20;
    else if (strcmp(argv[i], "--cache") == 0 && value)
      b.cache = argv[++i];
    else if (strcmp(argv[i], "--no-peer") == 0)
      b.peer = false;
    else if (strcmp(argv[i], "--memory") == 0)
      b.memory = true;
    else if (strcmp(argv[i], "--filters") == 0)
      b.filters = true;
    else if (strcmp(argv[i], "--exact") == 0)
      b.exact = true;
    else
      b.file = argv[i];
  }
  if (!b.file || b.k < 1 || b.k > MAX_K) {
    fprintf(stderr, "usage: bench_index FILE [--rows N] [--queries N] [--k N] [--rounds N] [--cache DIR] [--no-peer] "
                    "[--keep MB] [--memory] [--filters] [--exact]\n");
    return 2;
  }
  load(&b, rows, queries);
  load_bounds(&b);
  build(&b);
  if (b.peer) build_peer(&b);
  printf("%s: %u x %u, kernel %s\n", b.file, b.n, b.dim, quant_name());
  printf("build: lode %.1f s", b.build);
  if (b.hnsw_build > 0) printf(", hnswlib %.1f s, ratio %.2f", b.hnsw_build, b.hnsw_build / b.build);
  printf("\nmemory: lode %.0f bytes a vector", b.bytes);
  if (b.peer) printf(", hnswlib %.0f, %.0f %%", b.hnsw_bytes, 100 * b.bytes / b.hnsw_bytes);
  printf("\n");
  compare(&b);
  if (b.exact) try_exact(&b);
  if (b.filters) compare_filters(&b);
  index_search_scratch_release(&b.room);
  index_segment_close(b.segment);
  if (b.hnsw) hnsw_peer_free(b.hnsw);
  free(b.rows);
  free(b.queries);
  free(b.bounds);
  close(b.fd);
  return 0;
}
