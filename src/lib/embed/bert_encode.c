/* SPDX-License-Identifier: Apache-2.0 */
/* bert_encode.c - text to vector: the encoder itself, over any number of texts and threads.
 *
 * The tokens of all texts of a chunk are rows of one matrix, one text after the other, without padding. Everything
 * except attention works on rows alone, in blocks whose size depends on the kernel; attention sees the rows of one
 * text.
 *
 * Threads (embed_threads.h): with many chunks, or an equal number for each thread, each thread takes chunks from a
 * queue. With few, all threads work on one chunk, each on its own rows, with two barriers in a layer: before attention,
 * which reads keys and values of other rows, and before those are overwritten. A layer takes less time than the system
 * needs to wake a thread, so they wait by spinning. Memory is allocated before threads start: only `word` can fail in
 * them.
 */
#include "embed/bert.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "embed/embed_threads.h"

enum {
  ENCODE_SLICE = GEMM_STEP, /* outputs of the inner layer computed and consumed at a time, for the second-level cache */
  ENCODE_QUERIES = 32,      /* rows that attend together: their scores stay in the first-level cache */
  ENCODE_CHUNK_ROWS = 256,  /* rows of a chunk, unless one text has more */
  ENCODE_WAVE_ROWS = 8192,  /* rows that are tokenized before encoding starts, for each thread */
};

/* ---- One chunk ---- */

/* Shared by all threads of a team. */
typedef struct encode_chunk {
  const embed_bert *bert;
  const uint32_t *ids;  /* token of each row */
  const size_t *starts; /* first row of each text, and the end; row0 is the first */
  size_t row0, n_texts, rows;
  float *x;   /* rows x hidden */
  float *qkv; /* rows x 3 hidden (padded); attention overwrites the queries with its result */
  float *out; /* n_texts x hidden */
} encode_chunk;

/* Scratch memory of one thread. */
typedef struct thread_scratch {
  float *x, *qkv; /* for a chunk that it processes alone */
  float *tmp, *up, *scores, *mixed, *spare;
  void *keys, *values, *rows;
} thread_scratch;

typedef struct team {
  size_t size;
  _Atomic(uint32_t) arrived, round; /* barrier: threads that have arrived, and rounds completed */
  _Atomic(bool) failed;
  pthread_mutex_t lock; /* guards err, the first failure */
  lode_error err;
} team;

static inline size_t encode_min(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t encode_text_start(const encode_chunk *c, size_t text) { return c->starts[text] - c->row0; }
static inline size_t encode_stride(size_t n) { return gemm_pad(n, GEMM_PANEL); }

static void encode_multiply(const encode_chunk *c, gemm_part part, const float *a, size_t lda, size_t m, float *out,
                            size_t ldc, thread_scratch *s) {
  gemm_multiply(c->bert->weights, &part, a, lda, m, out, ldc, s->rows);
}

static lode_status encode_embed_rows(const encode_chunk *c, size_t from, size_t to, lode_error *err) {
  const embed_bert *b = c->bert;
  size_t h = b->config.hidden, text = 0;
  for (size_t r = from; r < to; r++) {
    while (encode_text_start(c, text + 1) <= r) text++;
    float *x = c->x + r * h;
    TRY(b->word(b->word_ctx, c->ids[r], x, err));
    b->kernel->norm(x, b->positions + (r - encode_text_start(c, text)) * h, b->gain, b->shift, h, b->config.epsilon);
  }
  return LODE_OK;
}

/* Bytes of the n keys, or values, of a text as panels of one head. */
static inline size_t encode_keys_bytes(const embed_bert *b, size_t n) {
  return gemm_panels(n) * gemm_panel_bytes(b->attention, b->config.hidden / b->config.heads);
}
static inline size_t encode_values_bytes(const embed_bert *b, size_t n) {
  return gemm_panels(b->config.hidden / b->config.heads) * gemm_panel_bytes(b->attention, n);
}

/* Packs n keys of one head, or its values, d numbers each, into panels. */
static void pack_keys(const gemm_arithmetic *how, const float *k, size_t stride, size_t n, size_t d, char *keys,
                      float *spare) {
  for (size_t j = 0; j < n; j += GEMM_PANEL, keys += gemm_panel_bytes(how, d)) {
    if (how->panel_of_rows) {
      how->panel_of_rows(k + j * stride, stride, encode_min(n - j, GEMM_PANEL), d, keys);
      continue;
    }
    gemm_pack_panel(k + j * stride, stride, encode_min(n - j, GEMM_PANEL), d, spare);
    how->panel(spare, GEMM_PANEL, d, NULL, keys);
  }
}
static void pack_values(const gemm_arithmetic *how, const float *v, size_t stride, size_t n, size_t d, char *values,
                        float *spare) {
  for (size_t i = 0; i < d; i += GEMM_PANEL, values += gemm_panel_bytes(how, n)) {
    if (d - i >= GEMM_PANEL) {
      how->panel(v + i, stride, n, NULL, values);
      continue;
    }
    memset(spare, 0, n * GEMM_PANEL * sizeof(float));
    for (size_t j = 0; j < n; j++) memcpy(spare + j * GEMM_PANEL, v + j * stride + i, (d - i) * sizeof(float));
    how->panel(spare, GEMM_PANEL, n, NULL, values);
  }
}

/* Attention of rows from..to, all of a text of n rows that starts at row `first`, with one head. */
static void encode_attend(const encode_chunk *c, size_t first, size_t n, size_t from, size_t to, size_t head,
                          thread_scratch *s) {
  const embed_bert *b = c->bert;
  const gemm_arithmetic *how = b->attention;
  size_t h = b->config.hidden, d = h / b->config.heads;
  size_t stride = encode_stride(3 * h), wide = encode_stride(n), mixed = encode_stride(d);
  const float *k = c->qkv + first * stride + h + head * d;
  float scale = 1.0f / sqrtf((float)d);
  pack_keys(how, k, stride, n, d, s->keys, s->spare);
  pack_values(how, k + h, stride, n, d, s->values, s->spare);
  for (size_t r = from; r < to; r += ENCODE_QUERIES) {
    size_t m = encode_min(to - r, ENCODE_QUERIES);
    float *q = c->qkv + r * stride + head * d;
    gemm_product scores = {.panels = s->keys,
                           .panel_bytes = gemm_panel_bytes(how, d),
                           .n_panels = gemm_panels(n),
                           .m = m,
                           .k = d,
                           .c = s->scores,
                           .ldc = wide};
    gemm_product_rows(how, q, stride, s->rows, &scores);
    how->multiply(&scores);
    float factors[ENCODE_QUERIES];
    how->softmax(s->scores, m, n, wide, scale, factors);
    gemm_product mix = {.panels = s->values,
                        .panel_bytes = gemm_panel_bytes(how, n),
                        .n_panels = gemm_panels(d),
                        .m = m,
                        .k = n,
                        .c = s->mixed,
                        .ldc = mixed};
    gemm_product_rows(how, s->scores, wide, s->rows, &mix);
    how->multiply(&mix);
    for (size_t i = 0; i < m; i++) b->kernel->scale(s->mixed + i * mixed, factors[i], d, q + i * stride);
  }
}

static void attention(const encode_chunk *c, size_t from, size_t to, thread_scratch *s) {
  for (size_t t = 0; t < c->n_texts; t++) {
    size_t first = encode_text_start(c, t), end = encode_text_start(c, t + 1);
    size_t a = first > from ? first : from, b = end < to ? end : to;
    if (a >= b) continue;
    for (size_t head = 0; head < c->bert->config.heads; head++) encode_attend(c, first, end - first, a, b, head, s);
  }
}

/* The inner layer on m rows of x: tmp = down(gelu(up(x))). */
static void encode_inner_layer(const encode_chunk *c, const embed_bert_layer *layer, const float *x, size_t m,
                               thread_scratch *s) {
  size_t h = c->bert->config.hidden, inner = c->bert->config.inner;
  for (size_t i = 0; i < inner; i += ENCODE_SLICE) {
    size_t end = encode_min(inner, i + ENCODE_SLICE), stride = encode_stride(end - i);
    encode_multiply(c, (gemm_part){&layer->up, 0, h, i, end}, x, h, m, s->up, stride, s);
    c->bert->weights->gelu(s->up, m * stride);
    encode_multiply(c, (gemm_part){&layer->down, i, end, 0, h}, s->up, stride, m, s->tmp, encode_stride(h), s);
  }
}

/* The rest of a layer after attention: three products, two norms. */
static void encode_rest_of_layer(const encode_chunk *c, const embed_bert_layer *layer, size_t from, size_t to,
                                 thread_scratch *s) {
  const embed_bert *b = c->bert;
  size_t h = b->config.hidden, hs = encode_stride(h), qs = encode_stride(3 * h), block = b->kernel->block;
  for (size_t r = from; r < to; r += block) {
    size_t m = encode_min(to - r, block);
    float *x = c->x + r * h;
    encode_multiply(c, gemm_part_all(&layer->out), c->qkv + r * qs, qs, m, s->tmp, hs, s);
    for (size_t i = 0; i < m; i++)
      b->kernel->norm(x + i * h, s->tmp + i * hs, layer->gain1, layer->shift1, h, b->config.epsilon);
    encode_inner_layer(c, layer, x, m, s);
    for (size_t i = 0; i < m; i++)
      b->kernel->norm(x + i * h, s->tmp + i * hs, layer->gain2, layer->shift2, h, b->config.epsilon);
  }
}

static void encode_pool(const encode_chunk *c, size_t text) {
  size_t h = c->bert->config.hidden, first = encode_text_start(c, text), n = encode_text_start(c, text + 1) - first;
  float *out = c->out + text * h;
  memcpy(out, c->x + first * h, h * sizeof(float));
  if (!c->bert->config.first_token) {
    for (size_t r = 1; r < n; r++)
      for (size_t i = 0; i < h; i++) out[i] += c->x[(first + r) * h + i];
    for (size_t i = 0; i < h; i++) out[i] /= (float)n;
  }
  double squares = 0;
  for (size_t i = 0; i < h; i++) squares += (double)out[i] * out[i];
  float scale = squares > 1e-24 ? (float)(1 / sqrt(squares)) : 0;
  for (size_t i = 0; i < h; i++) out[i] *= scale;
}

/* Barrier: none of `size` threads continues before all have arrived. */
static void team_barrier(team *t, size_t size) {
  if (size == 1) return;
  uint32_t round = atomic_load_explicit(&t->round, memory_order_relaxed);
  if (atomic_fetch_add_explicit(&t->arrived, 1, memory_order_acq_rel) + 1 < size) {
    for (unsigned turns = 0; atomic_load_explicit(&t->round, memory_order_acquire) == round;) embed_spin_wait(&turns);
    return;
  }
  atomic_store_explicit(&t->arrived, 0, memory_order_relaxed);
  atomic_store_explicit(&t->round, round + 1, memory_order_release);
}

static void team_note_failure(team *t, const lode_error *why) {
  pthread_mutex_lock(&t->lock);
  if (!atomic_load(&t->failed)) t->err = *why;
  atomic_store(&t->failed, true);
  pthread_mutex_unlock(&t->lock);
}

/* Called by all `size` members of a team for the same chunk. False: a word could not be read. All members return the
 * same: one that only checked `failed` later might see a failure of the next chunk and miss a barrier there. */
static bool encode_chunk_run(const encode_chunk *c, team *t, size_t me, size_t size, thread_scratch *s) {
  const embed_bert *b = c->bert;
  size_t from = c->rows * me / size, to = c->rows * (me + 1) / size;
  size_t h = b->config.hidden, stride = encode_stride(3 * h);
  size_t block = b->kernel->block;
  lode_error why = {0};
  if (encode_embed_rows(c, from, to, &why) != LODE_OK) team_note_failure(t, &why);
  team_barrier(t, size);
  if (atomic_load(&t->failed)) return false; /* all see the same value after the barrier */
  for (uint32_t l = 0; l < b->config.layers; l++) {
    const embed_bert_layer *layer = &b->layers[l];
    for (size_t r = from; r < to; r += block)
      encode_multiply(c, gemm_part_all(&layer->qkv), c->x + r * h, h, encode_min(to - r, block), c->qkv + r * stride,
                      stride, s);
    team_barrier(t, size);
    attention(c, from, to, s);
    encode_rest_of_layer(c, layer, from, to, s);
    team_barrier(t, size);
  }
  for (size_t i = me; i < c->n_texts; i += size) encode_pool(c, i);
  team_barrier(t, size); /* before x is reused */
  return true;
}

/* ---- Many chunks ---- */

/* Threads and their scratch memory, for chunks and texts of at most some rows. One is kept with the encoder between
 * calls: allocating and freeing all that costs more than encoding a short text. */
struct embed_encode_scratch {
  size_t rows, text, threads;
  embed_threadpool *pool;
  void *memory;
  thread_scratch each[];
};

/* The state of one call of embed_encode(). */
typedef struct encode_call {
  embed_bert *bert;
  const embed_encode_options *options;
  /* A wave: texts that are tokenized together. */
  uint32_t *ids;
  size_t *starts, *chunks; /* first row of each text, first text of each chunk; with an end marker each */
  size_t ids_cap, starts_cap, chunks_cap, n_texts, n_chunks;
  float *out;
  bool together;        /* all threads work on each chunk, one chunk after the other */
  _Atomic(size_t) next; /* otherwise: the next chunk to take */
  team team;
  struct embed_encode_scratch *scratch;
} encode_call;

static encode_chunk encode_chunk_at(const encode_call *k, size_t i, const thread_scratch *owner) {
  size_t first = k->chunks[i], end = k->chunks[i + 1], row = k->starts[first];
  return (encode_chunk){.bert = k->bert,
                        .ids = k->ids + row,
                        .starts = k->starts + first,
                        .row0 = row,
                        .n_texts = end - first,
                        .rows = k->starts[end] - row,
                        .x = owner->x,
                        .qkv = owner->qkv,
                        .out = k->out + first * k->bert->config.hidden};
}

static void encode_work(void *ctx, size_t me) {
  encode_call *k = ctx;
  if (k->together) {
    bool well = true;
    for (size_t i = 0; i < k->n_chunks && well; i++) {
      encode_chunk c = encode_chunk_at(k, i, &k->scratch->each[0]);
      well = encode_chunk_run(&c, &k->team, me, k->team.size, &k->scratch->each[me]);
    }
    return;
  }
  size_t i;
  while (!atomic_load(&k->team.failed) && (i = atomic_fetch_add(&k->next, 1)) < k->n_chunks) {
    encode_chunk c = encode_chunk_at(k, i, &k->scratch->each[me]);
    (void)encode_chunk_run(&c, &k->team, 0, 1, &k->scratch->each[me]);
  }
}

/* Uses fewer threads if the system gives no more. */
static lode_status encode_run_wave(encode_call *k, lode_error *err) {
  team *t = &k->team;
  size_t want = k->options->threads;
  if (!k->together && want > k->n_chunks) want = k->n_chunks;
  atomic_store(&k->next, 0);
  t->size = embed_threadpool_grow(k->scratch->pool, want);
  embed_threadpool_run(k->scratch->pool, t->size, encode_work, k);
  if (!atomic_load(&t->failed)) return LODE_OK;
  if (err) *err = t->err;
  return t->err.status;
}

/* ---- Memory ---- */

static size_t encode_rows_bytes(const embed_bert *b, size_t rows, size_t text) {
  const embed_bert_config *c = &b->config;
  size_t deepest = c->inner > c->hidden ? c->inner : c->hidden, head = c->hidden / c->heads;
  size_t weights =
      gemm_rows_scratch(b->weights, encode_min(rows, b->kernel->block), encode_min(deepest, b->weights->depth));
  size_t attention = gemm_rows_scratch(b->attention, encode_min(rows, ENCODE_QUERIES), text > head ? text : head);
  return weights > attention ? weights : attention;
}

enum { SCRATCH_PARTS = 10 }; /* arrays of a thread_scratch */

static void encode_sizes_of(const embed_bert *b, size_t rows, size_t text, size_t sizes[SCRATCH_PARTS]) {
  const embed_bert_config *c = &b->config;
  size_t h = c->hidden, d = h / c->heads, f = sizeof(float);
  size_t block = encode_min(rows, b->kernel->block), queries = encode_min(rows, ENCODE_QUERIES);
  text = encode_stride(text);
  const size_t list[SCRATCH_PARTS] = {
      rows * h * f,
      rows * encode_stride(3 * h) * f,
      block * encode_stride(h) * f,
      block * encode_stride(encode_min(c->inner, ENCODE_SLICE)) * f,
      queries * text * f,
      queries * encode_stride(d) * f,
      (d > text ? d : text) * GEMM_PANEL * f,
      encode_keys_bytes(b, text),
      encode_values_bytes(b, text),
      encode_rows_bytes(b, rows, text),
  };
  for (size_t i = 0; i < SCRATCH_PARTS; i++) sizes[i] = gemm_pad(list[i], 64);
}

static char *thread_scratch_bind(thread_scratch *s, char *at, const size_t sizes[SCRATCH_PARTS]) {
  void *parts[SCRATCH_PARTS];
  for (size_t i = 0; i < SCRATCH_PARTS; at += sizes[i++]) parts[i] = at;
  s->x = parts[0], s->qkv = parts[1], s->tmp = parts[2], s->up = parts[3], s->scores = parts[4];
  s->mixed = parts[5], s->spare = parts[6], s->keys = parts[7], s->values = parts[8], s->rows = parts[9];
  return at;
}

void embed_encode_scratch_free(struct embed_encode_scratch *scratch) {
  if (!scratch) return;
  embed_threadpool_free(scratch->pool);
  mem_free(scratch->memory);
  mem_free(scratch);
}

static struct embed_encode_scratch *encode_scratch_new(const embed_bert *b, size_t rows, size_t text, size_t threads) {
  size_t sizes[SCRATCH_PARTS], each = 0;
  encode_sizes_of(b, rows, text, sizes);
  for (size_t i = 0; i < SCRATCH_PARTS; i++) each += sizes[i];
  struct embed_encode_scratch *scratch = mem_alloc(sizeof *scratch + threads * sizeof *scratch->each);
  if (!scratch) return NULL;
  *scratch = (struct embed_encode_scratch){.rows = rows,
                                           .text = text,
                                           .threads = threads,
                                           .pool = embed_threadpool_new(),
                                           .memory = mem_alloc_large(threads * each)};
  if (!scratch->memory || !scratch->pool) {
    embed_encode_scratch_free(scratch);
    return NULL;
  }
  char *at = scratch->memory;
  for (size_t i = 0; i < threads; i++) at = thread_scratch_bind(&scratch->each[i], at, sizes);
  return scratch;
}

/* Allocates memory for the largest chunk of this wave: a short query should not pay for a book. */
static lode_status encode_reserve(encode_call *k, lode_error *err) {
  size_t rows = 0, threads = k->options->threads;
  for (size_t i = 0; i < k->n_chunks; i++) {
    size_t some = k->starts[k->chunks[i + 1]] - k->starts[k->chunks[i]];
    rows = some > rows ? some : rows;
  }
  size_t text = encode_min(k->options->max_tokens, rows);
  if (!k->scratch) k->scratch = atomic_exchange(&k->bert->scratch, NULL);
  if (k->scratch && k->scratch->rows >= rows && k->scratch->text >= text && k->scratch->threads >= threads)
    return LODE_OK;
  embed_encode_scratch_free(k->scratch);
  k->scratch = encode_scratch_new(k->bert, rows, text, threads);
  return k->scratch ? LODE_OK : err_nomem(err);
}

static void encode_call_release(encode_call *k) {
  embed_encode_scratch_free(atomic_exchange(&k->bert->scratch, k->scratch));
  mem_free(k->ids);
  mem_free(k->starts);
  mem_free(k->chunks);
  pthread_mutex_destroy(&k->team.lock);
}

/* ---- Waves ---- */

/* Tokenizes texts until there is work for every thread; *taken is how many. */
static lode_status encode_tokenize(encode_call *k, const embed_wordpiece *wp, const lode_str *texts, size_t n,
                                   size_t *taken, lode_error *err) {
  size_t rows = 0, limit = (size_t)ENCODE_WAVE_ROWS * k->options->threads;
  k->n_texts = k->n_chunks = 0;
  while (k->n_texts < n && rows < limit) {
    size_t i = k->n_texts;
    if (!mem_grow(&k->ids, &k->ids_cap, rows + k->options->max_tokens, sizeof *k->ids) ||
        !mem_grow(&k->starts, &k->starts_cap, i + 2, sizeof *k->starts) ||
        !mem_grow(&k->chunks, &k->chunks_cap, k->n_chunks + 2, sizeof *k->chunks))
      return err_nomem(err);
    size_t count = embed_wordpiece_encode(wp, texts[i], k->ids + rows, k->options->max_tokens);
    ENSURE(count >= 1 && count <= k->options->max_tokens, err);
    for (size_t j = 0; j < count; j++) INVARIANT_CHECKED(k->ids[rows + j] < k->bert->config.words);
    if (i == 0 || rows + count - k->starts[k->chunks[k->n_chunks - 1]] > ENCODE_CHUNK_ROWS)
      k->chunks[k->n_chunks++] = i;
    k->starts[i] = rows;
    rows += count;
    k->starts[i + 1] = rows;
    k->n_texts++;
  }
  k->chunks[k->n_chunks] = k->n_texts;
  size_t threads = k->options->threads;
  /* otherwise each thread has equal work */
  k->together = threads > 1 && k->n_chunks < 4 * threads && k->n_chunks % threads != 0;
  *taken = k->n_texts;
  return LODE_OK;
}

lode_status embed_encode(embed_bert *bert, const embed_wordpiece *wp, const embed_encode_options *options,
                         const lode_str *texts, size_t n, float *vectors, lode_error *err) {
  if (!INVARIANT(options->threads >= 1 && options->threads <= EMBED_ENCODE_THREADS && options->max_tokens >= 2 &&
                 options->max_tokens <= bert->config.positions && wp->count <= bert->config.words))
    return err_internal(err, "encode: options");
  encode_call k = {.bert = bert, .options = options};
  lode_status st = LODE_OK;
  pthread_mutex_init(&k.team.lock, NULL);
  for (size_t at = 0, taken = 0; at < n && st == LODE_OK; at += taken) {
    k.out = vectors + at * bert->config.hidden;
    st = encode_tokenize(&k, wp, texts + at, n - at, &taken, err);
    if (st == LODE_OK) st = encode_reserve(&k, err);
    if (st == LODE_OK) st = encode_run_wave(&k, err);
  }
  encode_call_release(&k);
  return st;
}
