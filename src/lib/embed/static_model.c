/* SPDX-License-Identifier: Apache-2.0 */
/* static_model.c - the static model for code: a table of word vectors, summed.
 *
 * Opening reads the header and the lexicon (about a megabyte) and checks both. Rows are read by pages when a text first
 * needs them, and each page is checked by its CRC; after many texts all of them are read at once. So a single query in
 * a new process costs a few page reads, and a whole source tree one pass over the file.
 *
 * Threads: after opening only `rows` and `ready` change, and only under `lock`. A page's bytes are written before its
 * flag is set (release) and read after the flag was seen (acquire); a flag is never cleared. Scratch memory belongs to
 * the call.
 *
 * The same text gives the same bits on every CPU: sums run in the order in which words first occur, with one
 * multiplication and one addition for each number, never fused.
 */
#include "embed/embed.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/crc32c.h"
#include "os/os.h"
#include "embed/static_file.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
  STATIC_DIM = EMBED_STATIC_DIM,
  MAX_WORDS_OF_TEXT = 2048,
  STATIC_MAX_COUNT = 64,    /* a word that occurs more often counts as if it occurred this often */
  MANY_TEXTS = 16,          /* after this many texts all rows are read at once */
  MAX_WORD_BYTES = 1 << 22, /* bytes of all words, at most */
};

typedef void static_sum_fn(const int8_t *rows, const uint16_t *which, const float *weights, size_t n, float *sum);

typedef struct static_model {
  int fd;
  char *path;
  embed_static_header header;
  embed_static_layout layout;
  char *lexicon;
  embed_words words;
  const uint32_t *crcs;
  const float *scales;
  int8_t *rows;        /* header.pages pages */
  atomic_uchar *ready; /* header.pages flags */
  atomic_bool all_ready;
  atomic_uint texts_seen;
  pthread_mutex_t lock;
  bool has_lock;
  float count_weight[STATIC_MAX_COUNT + 1];
  uint32_t max_words;
  static_sum_fn *sum;
} static_model;

/* ---- Summing ---- */

static void static_sum_portable(const int8_t *rows, const uint16_t *which, const float *weights, size_t n, float *sum) {
  for (int d = 0; d < STATIC_DIM; d++) sum[d] = 0;
  for (size_t i = 0; i < n; i++) {
    const int8_t *row = rows + (size_t)which[i] * STATIC_DIM;
    for (int d = 0; d < STATIC_DIM; d++) sum[d] += weights[i] * (float)row[d];
  }
}

#if defined(__x86_64__)
/* 64 dimensions at a time, to keep their sums in registers. */
__attribute__((target("avx2"))) static void static_sum_avx2(const int8_t *rows, const uint16_t *which,
                                                            const float *weights, size_t n, float *sum) {
  for (int first = 0; first < STATIC_DIM; first += 64) {
    __m256 s[8];
    for (int k = 0; k < 8; k++) s[k] = _mm256_setzero_ps();
    for (size_t i = 0; i < n; i++) {
      const int8_t *row = rows + (size_t)which[i] * STATIC_DIM + first;
      __m256 w = _mm256_set1_ps(weights[i]);
      for (int k = 0; k < 8; k++) {
        __m256 v = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(row + 8 * k))));
        s[k] = _mm256_add_ps(s[k], _mm256_mul_ps(w, v));
      }
    }
    for (int k = 0; k < 8; k++) _mm256_storeu_ps(sum + first + 8 * k, s[k]);
  }
}
#endif

static static_sum_fn *static_pick_sum(const char **name) {
#if defined(__x86_64__)
  const char *wish = getenv("LODE_SIMD");
  if (!(wish && strcmp(wish, "portable") == 0) && __builtin_cpu_supports("avx2")) {
    *name = "avx2";
    return static_sum_avx2;
  }
#endif
  *name = "portable";
  return static_sum_portable;
}

/* ---- Rows ---- */

static lode_status static_damaged(const static_model *m, lode_error *err, const char *what) {
  return err_set(err, LODE_CORRUPT, "the model file %s is damaged (%s): put back the one that came with lode", m->path,
                 what);
}

/* Reads pages first to last - 1 into place. The lock is held. */
static lode_status static_read_pages(static_model *m, uint32_t first, uint32_t last, lode_error *err) {
  char *to = (char *)m->rows + (size_t)first * EMBED_STATIC_PAGE_BYTES, what[64];
  size_t want = (size_t)(last - first) * EMBED_STATIC_PAGE_BYTES, got;
  TRY(os_read_full(m->fd, to, want, m->layout.rows + (uint64_t)first * EMBED_STATIC_PAGE_BYTES, &got, err));
  if (got != want) return static_damaged(m, err, "it is shorter than it was");
  for (uint32_t p = first; p < last; p++, to += EMBED_STATIC_PAGE_BYTES) {
    if (crc32c_update(crc32c_update_u32(0, p), to, EMBED_STATIC_PAGE_BYTES) != m->crcs[p]) {
      snprintf(what, sizeof what, "page %u of its rows", p);
      return static_damaged(m, err, what);
    }
    atomic_store_explicit(&m->ready[p], 1, memory_order_release);
  }
  return LODE_OK;
}

/* Pages that are loaded are in use: they are never written again. */
static lode_status static_read_all(static_model *m, lode_error *err) {
  lode_status st = LODE_OK;
  pthread_mutex_lock(&m->lock);
  for (uint32_t p = 0; p < m->header.pages && st == LODE_OK;) {
    uint32_t end = p;
    while (end < m->header.pages && !atomic_load_explicit(&m->ready[end], memory_order_relaxed)) end++;
    if (end > p) st = static_read_pages(m, p, end, err);
    p = end + 1;
  }
  if (st == LODE_OK) atomic_store_explicit(&m->all_ready, true, memory_order_release);
  pthread_mutex_unlock(&m->lock);
  return st;
}

static lode_status static_need_rows(static_model *m, const uint16_t *which, size_t n, lode_error *err) {
  if (atomic_load_explicit(&m->all_ready, memory_order_acquire)) return LODE_OK;
  for (size_t i = 0; i < n; i++) {
    uint32_t page = which[i] / EMBED_STATIC_PAGE_ROWS;
    if (atomic_load_explicit(&m->ready[page], memory_order_acquire)) continue;
    lode_status st = LODE_OK;
    pthread_mutex_lock(&m->lock);
    if (!atomic_load_explicit(&m->ready[page], memory_order_relaxed)) st = static_read_pages(m, page, page + 1, err);
    pthread_mutex_unlock(&m->lock);
    TRY(st);
  }
  return LODE_OK;
}

/* ---- Texts ---- */

typedef struct static_scratch {
  uint16_t *counts; /* for every word; zero between texts */
  uint16_t *which;  /* distinct words, in order of first occurrence */
  float *weights;
  size_t n, left;
} static_scratch;

static int static_count_word(void *ctx, uint32_t row) {
  static_scratch *s = ctx;
  if (s->counts[row]++ == 0) s->which[s->n++] = (uint16_t)row;
  return --s->left == 0;
}

/* A text without a known word still needs a vector of length 1. */
static void static_put_unknown(float *vector) {
  for (int d = 0; d < STATIC_DIM; d++) vector[d] = 1.0f / 16.0f;
}

static lode_status static_embed_text(static_model *m, lode_str text, static_scratch *s, float *vector,
                                     lode_error *err) {
  s->n = 0;
  s->left = m->max_words;
  (void)embed_words_split(&m->words, text.data, text.len, static_count_word, s);
  for (size_t i = 0; i < s->n; i++) {
    uint16_t row = s->which[i], count = s->counts[row];
    s->counts[row] = 0;
    s->weights[i] = m->scales[row] * m->count_weight[count < STATIC_MAX_COUNT ? count : STATIC_MAX_COUNT];
  }
  TRY(static_need_rows(m, s->which, s->n, err));
  float sum[STATIC_DIM];
  double square = 0;
  m->sum(m->rows, s->which, s->weights, s->n, sum);
  for (int d = 0; d < STATIC_DIM; d++) square += (double)sum[d] * sum[d];
  if (!(square > 1e-20)) {
    static_put_unknown(vector);
    return LODE_OK;
  }
  float inverse = (float)(1.0 / sqrt(square));
  for (int d = 0; d < STATIC_DIM; d++) vector[d] = sum[d] * inverse;
  return LODE_OK;
}

static lode_status static_embed(void *self, const lode_str *texts, size_t n, float *vectors, lode_error *err) {
  static_model *m = self;
  lode_status st = LODE_OK;
  static_scratch s = {
      .counts = mem_calloc(m->words.count, sizeof *s.counts),
      .which = mem_alloc(m->max_words * sizeof *s.which),
      .weights = mem_alloc(m->max_words * sizeof *s.weights),
  };
  if (!s.counts || !s.which || !s.weights) {
    st = err_nomem(err);
    goto done;
  }
  unsigned more = n < MANY_TEXTS ? (unsigned)n : MANY_TEXTS;
  bool many = atomic_load_explicit(&m->texts_seen, memory_order_relaxed) >= MANY_TEXTS ||
              atomic_fetch_add_explicit(&m->texts_seen, more, memory_order_relaxed) + more >= MANY_TEXTS;
  if (many && !atomic_load_explicit(&m->all_ready, memory_order_acquire)) TRY_GOTO(static_read_all(m, err));
  for (size_t i = 0; i < n; i++) TRY_GOTO(static_embed_text(m, texts[i], &s, vectors + i * STATIC_DIM, err));
done:
  mem_free(s.counts);
  mem_free(s.which);
  mem_free(s.weights);
  return st;
}

/* ---- Opening ---- */

static void static_close(void *self) {
  static_model *m = self;
  if (!m) return;
  if (m->fd >= 0) os_api->close(m->fd);
  if (m->has_lock) pthread_mutex_destroy(&m->lock);
  mem_free(m->path);
  mem_free(m->lexicon);
  mem_free(m->rows);
  mem_free(m->ready);
  mem_free(m);
}

static bool static_is_revision(const char *text) {
  size_t n = 0;
  while (n < EMBED_STATIC_REVISION_BYTES && text[n] > ' ' && text[n] < 127 && text[n] != '/' && text[n] != '@') n++;
  if (n == 0 || n == EMBED_STATIC_REVISION_BYTES) return false;
  for (size_t i = n; i < EMBED_STATIC_REVISION_BYTES; i++) {
    if (text[i]) return false;
  }
  return true;
}

static lode_status static_read_header(static_model *m, lode_error *err) {
  embed_static_header *h = &m->header;
  struct stat file;
  size_t got;
  if (OS_RETRY(os_api->fstat(m->fd, &file)) != 0) return err_errno(err, errno, m->path);
  TRY(os_read_full(m->fd, h, sizeof *h, 0, &got, err));
  if (got != sizeof *h || memcmp(h->magic, EMBED_STATIC_MAGIC, sizeof h->magic) != 0)
    return static_damaged(m, err, "it is no model");
  if (crc32c_update(0, h, offsetof(embed_static_header, crc)) != h->crc) return static_damaged(m, err, "its header");
  if (h->version != EMBED_STATIC_VERSION || h->dimension != STATIC_DIM)
    return err_set(err, LODE_UNSUPPORTED,
                   "the model file %s is of version %u with %u dimensions; this lode knows version %d with %d", m->path,
                   h->version, h->dimension, EMBED_STATIC_VERSION, STATIC_DIM);
  bool sizes = h->words >= 1 && h->words <= EMBED_WORDS_MAX && h->slots > h->words && h->slots <= 1u << 20 &&
               h->word_bytes >= h->words && h->word_bytes <= MAX_WORD_BYTES && h->exponent_milli <= 1000 &&
               h->pages == (h->words + EMBED_STATIC_PAGE_ROWS - 1) / EMBED_STATIC_PAGE_ROWS &&
               static_is_revision(h->revision);
  if (!sizes) return static_damaged(m, err, "the sizes in its header");
  m->layout = embed_static_layout_of(h);
  if (h->file_size != m->layout.file_size || (uint64_t)file.st_size != h->file_size)
    return static_damaged(m, err, "its size");
  return LODE_OK;
}

static lode_status static_read_lexicon(static_model *m, lode_error *err) {
  const embed_static_header *h = &m->header;
  const embed_static_layout *l = &m->layout;
  size_t size = (size_t)l->rows - EMBED_STATIC_HEADER_BYTES, got;
  m->lexicon = mem_alloc(size);
  if (!m->lexicon) return err_nomem(err);
  TRY(os_read_full(m->fd, m->lexicon, size, EMBED_STATIC_HEADER_BYTES, &got, err));
  if (got != size || crc32c_update(0, m->lexicon, size) != h->lexicon_crc)
    return static_damaged(m, err, "its vocabulary");
  m->crcs = (const uint32_t *)(m->lexicon + l->crcs);
  m->scales = (const float *)(m->lexicon + l->scales);
  m->words = (embed_words){
      .count = h->words,
      .n_slots = h->slots,
      .starts = (const uint32_t *)(m->lexicon + l->starts),
      .bytes = m->lexicon + l->bytes,
      .n_bytes = h->word_bytes,
      .costs = (const uint8_t *)(m->lexicon + l->costs),
      .slots = (const uint16_t *)(m->lexicon + l->slots),
  };
  TRY(embed_words_check(&m->words, err));
  for (uint32_t i = 0; i < h->words; i++) {
    if (!(m->scales[i] >= 0 && m->scales[i] < 1e6f)) return static_damaged(m, err, "the scale of a row");
  }
  return LODE_OK;
}

static lode_status static_open_file(const char *path, static_model **model, lode_error *err) {
  lode_status st = LODE_OK;
  *model = NULL;
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
  return err_set(err, LODE_UNSUPPORTED, "static models are for little-endian machines");
#endif
  static_model *m = mem_calloc(1, sizeof *m);
  if (!m) return err_nomem(err);
  m->fd = -1;
  size_t len = strlen(path) + 1;
  m->path = mem_alloc(len);
  if (!m->path) {
    st = err_nomem(err);
    goto done;
  }
  memcpy(m->path, path, len);
  m->fd = os_open_regular(path);
  if (m->fd < 0) {
    st = err_errno(err, errno, path);
    goto done;
  }
  TRY_GOTO(static_read_header(m, err));
  TRY_GOTO(static_read_lexicon(m, err));
  m->rows = mem_alloc_aligned(64, (size_t)m->header.pages * EMBED_STATIC_PAGE_BYTES);
  m->ready = mem_calloc(m->header.pages, sizeof *m->ready);
  if (!m->rows || !m->ready) {
    st = err_nomem(err);
    goto done;
  }
  if (pthread_mutex_init(&m->lock, NULL) != 0) {
    st = err_nomem(err);
    goto done;
  }
  m->has_lock = true;
  for (int i = 1; i <= STATIC_MAX_COUNT; i++) m->count_weight[i] = (float)pow(i, m->header.exponent_milli / 1000.0);
  *model = m;
  m = NULL;
done:
  static_close(m);
  return st;
}

lode_status embed_static_open(const embed_setup *setup, embed_model *model, lode_error *err) {
  static_model *m = NULL;
  char *path = NULL;
  TRY(embed_locate_model(setup->folders, embed_model_find(STR_LIT(LODE_MODEL_CODE)), &path, err));
  lode_status st = static_open_file(path, &m, err);
  mem_free(path);
  TRY(st);
  m->max_words = setup->max_tokens && setup->max_tokens < MAX_WORDS_OF_TEXT ? setup->max_tokens : MAX_WORDS_OF_TEXT;
  m->sum = static_pick_sum(&model->kernel);
  model->embed = static_embed;
  model->close = static_close;
  model->self = m;
  model->dimension = STATIC_DIM;
  model->max_tokens = m->max_words;
  model->precision = "int8";
  snprintf(model->identity, sizeof model->identity, "%s@%.*s/%d/static", LODE_MODEL_CODE, EMBED_STATIC_REVISION_BYTES,
           m->header.revision, STATIC_DIM);
  return LODE_OK;
}

lode_status embed_static_verify(const char *file, lode_error *err) {
  static_model *m;
  TRY(static_open_file(file, &m, err));
  lode_status st = static_read_all(m, err);
  static_close(m);
  return st;
}
