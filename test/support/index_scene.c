/* SPDX-License-Identifier: Apache-2.0 */
/* index_scene.c - see index_scene.h. */
#include "support/index_scene.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "support/oracle.h"
#include "support/segment_forge.h"
#include "support/test.h"

/* ---- Vectors ---- */

float scene_normal(void) {
  float sum = 0;
  for (int i = 0; i < 6; i++) sum += (float)test_below(1 << 20) / (1 << 20) - 0.5f;
  return sum;
}

void scene_init(scene *s, shape how, lode_metric metric, uint32_t n, uint32_t dim) {
  *s = (scene){.metric = metric, .n = n, .dim = dim, .id = 0x1234567890ABCDEFu};
  s->vectors = malloc((size_t)n * dim * sizeof *s->vectors);
  CHECK(s->vectors != NULL);
  enum { CENTRES = 20 };
  float *centres = malloc((size_t)CENTRES * dim * sizeof *centres);
  CHECK(centres != NULL);
  for (size_t i = 0; i < (size_t)CENTRES * dim; i++) centres[i] = scene_normal();
  for (uint32_t i = 0; i < n; i++) {
    float *v = s->vectors + (size_t)i * dim, size = how == SKEWED ? expf(3 * scene_normal()) : 1;
    const float *centre = centres + (size_t)(test_below(CENTRES)) * dim;
    for (uint32_t j = 0; j < dim; j++) {
      switch (how) {
        case CLUSTERS:
        case SKEWED: v[j] = size * (centre[j] + 0.4f * scene_normal()); break;
        case UNIFORM: v[j] = scene_normal(); break;
        case EQUAL: v[j] = 0.5f; break;
        case ZEROS: v[j] = i % 3 ? 0 : scene_normal(); break;
        case LINE: v[j] = (float)i; break;
        case DUPLICATES: v[j] = centre[j]; break;
        case BYTES: v[j] = fminf(255, fmaxf(0, truncf(128 + 60 * centre[j] + 40 * scene_normal()))); break;
      }
    }
  }
  free(centres);
}

void scene_query(const scene *s, float *query) {
  const float *a = s->vectors + test_below(s->n) * s->dim, *b = s->vectors + test_below(s->n) * s->dim;
  for (uint32_t j = 0; j < s->dim; j++) query[j] = 0.9f * a[j] + 0.1f * b[j];
}

/* ---- Threads ---- */

typedef struct team {
  index_parallel_body *body;
  void *arg;
  size_t n;
  _Atomic size_t next;
} team;
typedef struct member {
  team *t;
  unsigned worker;
} member;

static void *work(void *arg) {
  member *m = arg;
  for (size_t i; (i = atomic_fetch_add(&m->t->next, 1)) < m->t->n;) m->t->body(m->t->arg, i, m->worker);
  return NULL;
}

static void run_team(void *ctx, size_t n, index_parallel_body *body, void *arg) {
  unsigned workers = *(unsigned *)ctx;
  team t = {.body = body, .arg = arg, .n = n};
  pthread_t threads[16];
  member members[16];
  CHECK(workers <= 16);
  for (unsigned i = 0; i < workers; i++) {
    members[i] = (member){&t, i};
    CHECK(pthread_create(&threads[i], NULL, work, &members[i]) == 0);
  }
  for (unsigned i = 0; i < workers; i++) pthread_join(threads[i], NULL);
}

/* ---- Segments ---- */

static lode_status write_bytes(void *ctx, uint64_t offset, const void *data, size_t n, lode_error *err) {
  scene *s = ctx;
  if (offset + n > s->file_cap) {
    s->file_cap = (size_t)(offset + n) * 2;
    s->file = realloc(s->file, s->file_cap);
    if (!s->file) return err_nomem(err);
  }
  if (offset > s->file_bytes) memset(s->file + s->file_bytes, 0xEE, (size_t)offset - s->file_bytes);
  memcpy(s->file + offset, data, n);
  if (offset + n > s->file_bytes) s->file_bytes = (size_t)(offset + n);
  return LODE_OK;
}

static lode_status read_bytes(void *ctx, uint64_t offset, void *buf, size_t n, lode_error *err) {
  scene *s = ctx;
  size_t have = s->file_bytes - (s->short_by < s->file_bytes ? s->short_by : s->file_bytes);
  __atomic_fetch_add(&s->bytes_read, n, __ATOMIC_RELAXED);
  if (s->on_read) s->on_read(offset);
  if (offset > have || n > have - offset) return err_set(err, LODE_CORRUPT, "the file is too short");
  memcpy(buf, s->file + offset, n);
  return LODE_OK;
}

enum { OTHER_GROUP = 8, OTHER_GAP = 12, OTHER_FIRST = 100 };

size_t scene_place(const scene *s, uint32_t slot) {
  size_t row = s->dim * sizeof(float) + OTHER_GAP, group = slot / OTHER_GROUP;
  return OTHER_FIRST + (group * OTHER_GROUP + OTHER_GROUP - 1 - slot % OTHER_GROUP) * row;
}

static void make_other(scene *s) {
  free(s->other);
  s->other_bytes = OTHER_FIRST + (s->n / OTHER_GROUP + 1) * OTHER_GROUP * (s->dim * sizeof(float) + OTHER_GAP);
  s->other = malloc(s->other_bytes);
  CHECK(s->other != NULL);
  memset(s->other, 0xDD, s->other_bytes);
  for (uint32_t i = 0; i < s->n; i++)
    memcpy(s->other + scene_place(s, i), s->vectors + (size_t)i * s->dim, s->dim * sizeof(float));
}

static lode_status read_other(void *ctx, uint64_t offset, void *buf, size_t n, lode_error *err) {
  scene *s = ctx;
  __atomic_fetch_add(&s->bytes_read, n, __ATOMIC_RELAXED);
  __atomic_fetch_add(&s->other_reads, 1, __ATOMIC_RELAXED);
  if (offset > s->other_bytes || n > s->other_bytes - offset) return err_set(err, LODE_CORRUPT, "too short");
  memcpy(buf, s->other + offset, n);
  return LODE_OK;
}

lode_status scene_fetch(void *ctx, int64_t key, uint64_t cursor, float *vector, bool *found, lode_error *err) {
  scene *s = ctx;
  (void)err;
  uint32_t slot = (uint32_t)(key - 1000);
  *found = !s->lost && slot < s->n && cursor == (uint64_t)slot * 7; /* a forged segment may ask for anything */
  s->fetched++;
  if (*found) memcpy(vector, s->vectors + (size_t)slot * s->dim, s->dim * sizeof *vector);
  return LODE_OK;
}

void scene_build_with(scene *s, index_segment_kind kind, unsigned workers, index_graph_options graph) {
  lode_error err;
  quant_fit fit;
  index_writer maker;
  float *mean = malloc(s->dim * sizeof *mean);
  CHECK(mean != NULL);
  OK(quant_fit_begin(&fit, s->metric, s->dim, &err));
  for (uint32_t i = 0; i < s->n; i++) quant_fit_add(&fit, s->vectors + (size_t)i * s->dim);
  index_writer_options options = {
      .id = s->id, .kind = kind, .graph = graph, .placed = s->placed, .write = write_bytes, .ctx = s};
  if (s->placed) make_other(s);
  quant_fit_end(&fit, mean, &options.model);
  quant_fit_release(&fit);
  if (workers > 1) options.graph.parallel = (index_parallel){.run = run_team, .ctx = &workers, .workers = workers};
  s->file_bytes = 0;
  OK(index_writer_begin(&maker, &options, &err));
  for (uint32_t i = 0; i < s->n; i++)
    OK(index_writer_add_placed(&maker, s->vectors + (size_t)i * s->dim, 1000 + (int64_t)i, i * 7,
                               s->placed ? scene_place(s, i) : 0, &err));
  OK(index_writer_finish(&maker, &err));
  CHECK(maker.info.bytes == s->file_bytes);
  s->table_crc = maker.table_crc;
  index_writer_release(&maker);
  free(mean);
  OK(scene_open(s, &err));
}

void scene_build(scene *s, index_segment_kind kind, unsigned workers) {
  scene_build_with(s, kind, workers, (index_graph_options){0});
}

lode_status scene_open(scene *s, lode_error *err) {
  scene_close(s);
  index_segment_source source = {.id = s->id,
                                 .bytes = s->file_bytes,
                                 .table_crc = s->table_crc,
                                 .read = read_bytes,
                                 .read_place = read_other,
                                 .ctx = s};
  return index_segment_open(&source, &s->segment, err);
}

void scene_close(scene *s) {
  index_segment_close(s->segment);
  s->segment = NULL;
}

void scene_release(scene *s) {
  scene_close(s);
  free(s->vectors);
  free(s->file);
  free(s->other);
  *s = (scene){0};
}

void scene_repair(scene *s) { (void)segment_forge(s->file, s->file_bytes, &s->id, &s->table_crc); }

/* ---- The exact answer ---- */

double scene_distance(const scene *s, const float *query, uint32_t slot) {
  return oracle_distance(s->metric, query, s->vectors + (size_t)slot * s->dim, s->dim);
}

double scene_recall(const scene *s, const float *query, const uint64_t *allowed, size_t k, const index_hit *hits,
                    size_t n_hits) {
  double *all = malloc((s->n + n_hits + 1) * sizeof *all), *got = all + s->n;
  CHECK(all != NULL);
  size_t n = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    if (!allowed || (allowed[i / 64] >> (i % 64) & 1)) all[n++] = scene_distance(s, query, i);
  }
  for (size_t i = 0; i < n_hits; i++) {
    CHECK(hits[i].slot < s->n);
    if (allowed) CHECKF(allowed[hits[i].slot / 64] >> (hits[i].slot % 64) & 1, "slot %u is not allowed", hits[i].slot);
    for (size_t j = 0; j < i; j++) CHECKF(hits[j].slot != hits[i].slot, "slot %u twice", hits[i].slot);
    got[i] = scene_distance(s, query, hits[i].slot);
    CHECKF(got[i] == (double)hits[i].distance, "distance %.9g, not %.9g", (double)hits[i].distance, got[i]);
  }
  double recall = oracle_recall(all, n, k, got, n_hits);
  free(all);
  return recall;
}
