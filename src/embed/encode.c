/* encode.c - text to vector: the encoder itself, over any number of texts and threads.
 *
 * The tokens of all texts of a chunk are rows of one matrix, one text after the other, without padding. Everything but
 * attention works on rows alone, in blocks that stay in the second-level cache; attention sees the rows of one text.
 *
 * Threads: a call starts its own. With many chunks each thread takes chunks as it comes. With few, all threads work on
 * one chunk, each on its own rows; they meet twice in a layer: before attention, which reads keys and values of other
 * rows, and before those are overwritten. Memory is allocated before threads start: they cannot fail but by `word`.
 */
#include "embed/bert.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
  BLOCK = 96,           /* rows that go through a layer together */
  SLICE = 2 * LODE__DEPTH, /* of the inner layer: made, and used up, at once, for the second-level cache */
  CHUNK_ROWS = 384,     /* rows of a chunk, unless one text has more */
  WAVE_ROWS = 8192,     /* rows that are tokenized before encoding begins, for each thread */
};

/* ---- One chunk ---- */

/* What all threads of a team share. */
typedef struct chunk {
  const lode__bert *bert;
  bool narrow;
  const uint32_t *ids;     /* of all rows */
  const size_t *starts;    /* first row of each text, and the end, counted from row0 */
  size_t row0, n_texts, rows;
  float *x;                /* rows x hidden */
  float *qkv;              /* rows x 3 hidden (padded); attention puts its result where the queries were */
  float *out;              /* n_texts x hidden */
} chunk;

/* What a thread has for itself. */
typedef struct scratch {
  void *memory;
  float *x, *qkv; /* of a chunk that is its own */
  float *tmp, *up, *scores, *keys, *values, *mixed, *quant;
} scratch;

typedef struct team {
  pthread_mutex_t lock;      /* of all below but `failed` */
  pthread_cond_t changed;
  bool go;                   /* size is final */
  size_t size;
  pthread_barrier_t barrier; /* of `size`, where size > 1 */
  lode_error err;            /* of the first failure */
  _Atomic(bool) failed;
} team;

static inline size_t start_of(const chunk *c, size_t text) { return c->starts[text] - c->row0; }
static inline size_t stride_of(size_t n) { return lode__pad(n, LODE__PANEL); }

static void multiply(const chunk *c, lode__part part, const float *a, size_t lda, size_t m, float *out, size_t ldc, scratch *s) {
  if (c->narrow)
    lode__gemm16(c->bert->kernel, &part, a, lda, m, out, ldc, s->quant);
  else
    lode__gemm(c->bert->kernel, &part, a, lda, m, out, ldc);
}

static lode_status embed_rows(const chunk *c, size_t from, size_t to, lode_error *err) {
  const lode__bert *b = c->bert;
  size_t h = b->config.hidden, text = 0;
  for (size_t r = from; r < to; r++) {
    while (start_of(c, text + 1) <= r) text++;
    float *x = c->x + r * h;
    LODE__TRY(b->word(b->word_ctx, c->ids[r], x, err));
    b->kernel->norm(x, b->positions + (r - start_of(c, text)) * h, b->gain, b->shift, h, b->config.epsilon);
  }
  return LODE_OK;
}

/* Floats of a text's n keys, or values, as panels of one head. */
static inline size_t keys_of(const lode__bert_config *c, size_t n) { return stride_of(n) * (c->hidden / c->heads); }
static inline size_t values_of(const lode__bert_config *c, size_t n) { return n * stride_of(c->hidden / c->heads); }

/* Keys and values of a text, as panels, one head after the other. They are read row by row, as they lie in memory. */
static void pack_heads(const chunk *c, size_t first, size_t n, scratch *s) {
  const lode__bert_config *config = &c->bert->config;
  size_t h = config->hidden, d = h / config->heads, stride = stride_of(3 * h), keys = keys_of(config, n), values = values_of(config, n);
  for (size_t j = 0; j < stride_of(n); j++) {
    const float *k = c->qkv + (first + j) * stride + h, *v = k + h;
    for (size_t head = 0; head < config->heads; head++) {
      float *to = s->keys + head * keys + j / LODE__PANEL * LODE__PANEL * d + j % LODE__PANEL;
      if (j >= n) {
        for (size_t i = 0; i < d; i++) to[i * LODE__PANEL] = 0;
        continue;
      }
      for (size_t i = 0; i < d; i++) to[i * LODE__PANEL] = k[head * d + i];
      for (size_t i = 0; i < d; i += LODE__PANEL) {
        size_t columns = d - i < LODE__PANEL ? d - i : LODE__PANEL;
        to = s->values + head * values + i * n + j * LODE__PANEL;
        memcpy(to, v + head * d + i, columns * sizeof(float));
        for (size_t e = columns; e < LODE__PANEL; e++) to[e] = 0;
      }
    }
  }
}

/* Rows from..to, all of a text of n rows whose keys and values are packed, attend to it with one head. */
static void attend(const chunk *c, size_t n, size_t from, size_t to, size_t head, scratch *s) {
  const lode__gemm_kernel *kernel = c->bert->kernel;
  size_t h = c->bert->config.hidden, d = h / c->bert->config.heads, stride = stride_of(3 * h), wide = stride_of(n);
  size_t mixed = stride_of(d);
  const float *keys = s->keys + head * keys_of(&c->bert->config, n), *values = s->values + head * values_of(&c->bert->config, n);
  float scale = 1.0f / sqrtf((float)d);
  for (size_t r = from; r < to; r += BLOCK) {
    size_t m = to - r < BLOCK ? to - r : BLOCK;
    float *q = c->qkv + r * stride + head * d;
    lode__product scores = {.a = q, .lda = stride, .m = m, .k = d, .ldc = wide}, mix = {.a = s->scores, .lda = wide, .m = m, .k = n, .ldc = mixed};
    for (size_t p = 0; p < lode__panels(n); p++) {
      scores.panel = keys + p * LODE__PANEL * d;
      scores.c = s->scores + p * LODE__PANEL;
      kernel->panel(&scores);
    }
    for (size_t i = 0; i < m; i++) kernel->softmax(s->scores + i * wide, n, wide, scale);
    for (size_t p = 0; p < lode__panels(d); p++) {
      mix.panel = values + p * n * LODE__PANEL;
      mix.c = s->mixed + p * LODE__PANEL;
      kernel->panel(&mix);
    }
    for (size_t i = 0; i < m; i++) memcpy(q + i * stride, s->mixed + i * mixed, d * sizeof(float));
  }
}

static void attention(const chunk *c, size_t from, size_t to, scratch *s) {
  for (size_t t = 0; t < c->n_texts; t++) {
    size_t first = start_of(c, t), end = start_of(c, t + 1);
    size_t a = first > from ? first : from, b = end < to ? end : to;
    if (a >= b) continue;
    pack_heads(c, first, end - first, s);
    for (size_t head = 0; head < c->bert->config.heads; head++) attend(c, end - first, a, b, head, s);
  }
}

/* m rows of x through the inner layer: tmp = down(gelu(up(x))). */
static void inner_layer(const chunk *c, const lode__bert_layer *layer, const float *x, size_t m, scratch *s) {
  size_t h = c->bert->config.hidden, inner = c->bert->config.inner;
  for (size_t i = 0; i < inner; i += SLICE) {
    size_t end = inner - i < SLICE ? inner : i + SLICE, stride = stride_of(end - i);
    multiply(c, (lode__part){&layer->up, 0, h, i, end}, x, h, m, s->up, stride, s);
    c->bert->kernel->gelu(s->up, m * stride);
    multiply(c, (lode__part){&layer->down, i, end, 0, h}, s->up, stride, m, s->tmp, stride_of(h), s);
  }
}

/* What follows attention: three products, two norms. */
static void rest_of_layer(const chunk *c, const lode__bert_layer *layer, size_t from, size_t to, scratch *s) {
  const lode__bert *b = c->bert;
  size_t h = b->config.hidden, hs = stride_of(h), qs = stride_of(3 * h);
  for (size_t r = from; r < to; r += BLOCK) {
    size_t m = to - r < BLOCK ? to - r : BLOCK;
    float *x = c->x + r * h;
    multiply(c, lode__part_all(&layer->out), c->qkv + r * qs, qs, m, s->tmp, hs, s);
    for (size_t i = 0; i < m; i++) b->kernel->norm(x + i * h, s->tmp + i * hs, layer->gain1, layer->shift1, h, b->config.epsilon);
    inner_layer(c, layer, x, m, s);
    for (size_t i = 0; i < m; i++) b->kernel->norm(x + i * h, s->tmp + i * hs, layer->gain2, layer->shift2, h, b->config.epsilon);
  }
}

static void pool(const chunk *c, size_t text) {
  size_t h = c->bert->config.hidden, first = start_of(c, text), n = start_of(c, text + 1) - first;
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

static void note_failure(team *t, const lode_error *why) {
  pthread_mutex_lock(&t->lock);
  if (!atomic_load(&t->failed)) t->err = *why;
  atomic_store(&t->failed, true);
  pthread_mutex_unlock(&t->lock);
}

/* Member `me` of `size` that all call this for the same chunk. */
static void encode_chunk(const chunk *c, team *t, size_t me, size_t size, scratch *s) {
  const lode__bert *b = c->bert;
  size_t from = c->rows * me / size, to = c->rows * (me + 1) / size, h = b->config.hidden, stride = stride_of(3 * h);
  lode_error why = {0};
  if (embed_rows(c, from, to, &why) != LODE_OK) note_failure(t, &why);
  if (size > 1) pthread_barrier_wait(&t->barrier);
  if (atomic_load(&t->failed)) return; /* a team sees the same, having met */
  for (uint32_t l = 0; l < b->config.layers; l++) {
    const lode__bert_layer *layer = &b->layers[l];
    for (size_t r = from; r < to; r += BLOCK)
      multiply(c, lode__part_all(&layer->qkv), c->x + r * h, h, to - r < BLOCK ? to - r : BLOCK, c->qkv + r * stride, stride, s);
    if (size > 1) pthread_barrier_wait(&t->barrier);
    attention(c, from, to, s);
    rest_of_layer(c, layer, from, to, s);
    if (size > 1) pthread_barrier_wait(&t->barrier);
  }
  for (size_t i = me; i < c->n_texts; i += size) pool(c, i);
  if (size > 1) pthread_barrier_wait(&t->barrier); /* before x is used again */
}

/* ---- Many chunks ---- */

/* What a call of lode__encode works with. */
typedef struct call {
  const lode__bert *bert;
  const lode__encode_options *options;
  size_t max_rows;         /* of a chunk */
  /* a wave: texts that were tokenized together */
  uint32_t *ids;
  size_t *starts, *chunks; /* first row of each text, first text of each chunk; and the ends */
  size_t ids_cap, starts_cap, chunks_cap, n_texts, n_chunks;
  float *out;
  bool together;           /* all threads on each chunk, in turn */
  _Atomic(size_t) next;    /* else: the chunk to be taken */
  team team;
  /* of each thread */
  scratch *scratches;
  size_t n_scratches;
} call;

typedef struct member {
  call *call;
  size_t me;
  pthread_t thread;
} member;

static chunk chunk_at(const call *k, size_t i, const scratch *owner) {
  size_t first = k->chunks[i], end = k->chunks[i + 1], row = k->starts[first];
  return (chunk){.bert = k->bert, .narrow = k->options->narrow, .ids = k->ids + row, .starts = k->starts + first, .row0 = row,
                 .n_texts = end - first, .rows = k->starts[end] - row, .x = owner->x, .qkv = owner->qkv,
                 .out = k->out + first * k->bert->config.hidden};
}

static void work(call *k, size_t me) {
  if (k->together) {
    for (size_t i = 0; i < k->n_chunks && !atomic_load(&k->team.failed); i++) {
      chunk c = chunk_at(k, i, &k->scratches[0]);
      encode_chunk(&c, &k->team, me, k->team.size, &k->scratches[me]);
    }
    return;
  }
  size_t i;
  while (!atomic_load(&k->team.failed) && (i = atomic_fetch_add(&k->next, 1)) < k->n_chunks) {
    chunk c = chunk_at(k, i, &k->scratches[me]);
    encode_chunk(&c, &k->team, 0, 1, &k->scratches[me]);
  }
}

static void *run_member(void *arg) {
  member *m = arg;
  team *t = &m->call->team;
  pthread_mutex_lock(&t->lock);
  while (!t->go) pthread_cond_wait(&t->changed, &t->lock);
  pthread_mutex_unlock(&t->lock);
  work(m->call, m->me);
  return NULL;
}

/* With fewer threads than asked for where the system gives no more. */
static lode_status run_wave(call *k, lode_error *err) {
  member members[LODE__ENCODE_THREADS];
  team *t = &k->team;
  size_t want = k->options->threads, n = 1;
  if (!k->together && want > k->n_chunks) want = k->n_chunks;
  t->go = false;
  atomic_store(&k->next, 0);
  for (; n < want; n++) {
    members[n] = (member){.call = k, .me = n};
    if (pthread_create(&members[n].thread, NULL, run_member, &members[n]) != 0) break;
  }
  bool barrier = k->together && n > 1 && pthread_barrier_init(&t->barrier, NULL, (unsigned)n) == 0;
  if (!barrier) k->together = false; /* nobody has begun */
  pthread_mutex_lock(&t->lock);
  t->size = n;
  t->go = true;
  pthread_cond_broadcast(&t->changed);
  pthread_mutex_unlock(&t->lock);
  work(k, 0);
  for (size_t i = 1; i < n; i++) pthread_join(members[i].thread, NULL);
  if (barrier) pthread_barrier_destroy(&t->barrier);
  if (!atomic_load(&t->failed)) return LODE_OK;
  if (err) *err = t->err;
  return t->err.status;
}

/* ---- Memory ---- */

static bool scratch_init(scratch *s, const call *k) {
  const lode__bert_config *c = &k->bert->config;
  size_t h = c->hidden, d = h / c->heads, rows = k->max_rows, text = stride_of(k->options->max_tokens);
  size_t deepest = c->inner > c->hidden ? c->inner : c->hidden; /* a step of it at once */
  size_t sizes[] = {rows * h, rows * stride_of(3 * h), BLOCK * stride_of(h), BLOCK * stride_of(c->inner < SLICE ? c->inner : SLICE), BLOCK * text,
                    c->heads * keys_of(c, text), c->heads * values_of(c, text), BLOCK * stride_of(d),
                    k->options->narrow ? lode__gemm16_scratch(BLOCK, deepest) / sizeof(float) + 16 : 0};
  float **parts[] = {&s->x, &s->qkv, &s->tmp, &s->up, &s->scores, &s->keys, &s->values, &s->mixed, &s->quant};
  size_t total = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) total += lode__pad(sizes[i], 16);
  s->memory = lode__alloc_aligned(64, total * sizeof(float));
  if (!s->memory) return false;
  float *at = s->memory;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    *parts[i] = at;
    at += lode__pad(sizes[i], 16);
  }
  return true;
}

static lode_status call_init(call *k, lode_error *err) {
  pthread_mutex_init(&k->team.lock, NULL);
  pthread_cond_init(&k->team.changed, NULL);
  k->max_rows = k->options->max_tokens > CHUNK_ROWS ? k->options->max_tokens : CHUNK_ROWS;
  k->scratches = lode__alloc_zero(k->options->threads, sizeof *k->scratches);
  if (!k->scratches) return lode__fail_nomem(err);
  for (; k->n_scratches < k->options->threads; k->n_scratches++)
    if (!scratch_init(&k->scratches[k->n_scratches], k)) return lode__fail_nomem(err);
  return LODE_OK;
}

static void call_release(call *k) {
  for (size_t i = 0; i < k->n_scratches; i++) lode__free(k->scratches[i].memory);
  lode__free(k->scratches);
  lode__free(k->ids);
  lode__free(k->starts);
  lode__free(k->chunks);
  pthread_cond_destroy(&k->team.changed);
  pthread_mutex_destroy(&k->team.lock);
}

/* ---- Waves ---- */

/* Takes texts until there is work for every thread; *taken is how many. */
static lode_status tokenize(call *k, const lode__wordpiece *wp, const lode_str *texts, size_t n, size_t *taken, lode_error *err) {
  size_t rows = 0, limit = (size_t)WAVE_ROWS * k->options->threads;
  k->n_texts = k->n_chunks = 0;
  while (k->n_texts < n && rows < limit) {
    size_t i = k->n_texts;
    if (!lode__grow(&k->ids, &k->ids_cap, rows + k->options->max_tokens, sizeof *k->ids) ||
        !lode__grow(&k->starts, &k->starts_cap, i + 2, sizeof *k->starts) ||
        !lode__grow(&k->chunks, &k->chunks_cap, k->n_chunks + 2, sizeof *k->chunks))
      return lode__fail_nomem(err);
    size_t count = lode__wordpiece_encode(wp, texts[i], k->ids + rows, k->options->max_tokens);
    if (i == 0 || rows + count - k->starts[k->chunks[k->n_chunks - 1]] > CHUNK_ROWS) k->chunks[k->n_chunks++] = i;
    k->starts[i] = rows;
    rows += count;
    k->starts[i + 1] = rows;
    k->n_texts++;
  }
  k->chunks[k->n_chunks] = k->n_texts;
  k->together = k->options->threads > 1 && k->n_chunks < 4 * (size_t)k->options->threads;
  *taken = k->n_texts;
  return LODE_OK;
}

lode_status lode__encode(const lode__bert *bert, const lode__wordpiece *wp, const lode__encode_options *options,
                         const lode_str *texts, size_t n, float *vectors, lode_error *err) {
  if (!LODE__INVARIANT(options->threads >= 1 && options->threads <= LODE__ENCODE_THREADS && options->max_tokens >= 2 &&
                       options->max_tokens <= bert->config.positions && wp->count <= bert->config.words &&
                       (options->narrow ? (void *)bert->narrow : (void *)bert->full)))
    return lode__fail_internal(err, "encode: options");
  call k = {.bert = bert, .options = options};
  lode_status st = call_init(&k, err);
  for (size_t at = 0, taken = 0; at < n && st == LODE_OK; at += taken) {
    k.out = vectors + at * bert->config.hidden;
    st = tokenize(&k, wp, texts + at, n - at, &taken, err);
    if (st == LODE_OK) st = run_wave(&k, err);
  }
  call_release(&k);
  return st;
}
