/* SPDX-License-Identifier: Apache-2.0 */
/* train.c - teaches a table of word vectors to bring descriptions and code together.
 *
 *   train PAIRS.pack VOCAB.tsv TABLE [option=value ...]
 *
 * A text's vector is the sum of its words' rows, a word that stands n times counting n^tf, brought to length 1. In a
 * batch every description should be nearer to its own code than to any other's, and every code to its own description
 * (InfoNCE both ways). Pairs of one file, or of one package, are kept in one batch: they are the hard negatives. Each
 * time a pair comes up it is dressed differently: one sentence or the whole comment, the name or the path as the
 * question, the code with or without its path and its own comment, cut or whole; so that questions and chunks of all
 * kinds are seen.
 *
 * Deterministic: the same files, options and number of threads give the same table. TABLE is written after every
 * epoch; when it is there already, training goes on from it.
 */
#include "lexicon.h"
#include "pack.h"
#include "table.h"

#include <cblas.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TEXT_ROWS = 640, GROUP = 6, PACKAGE_GROUP = 32, BLOCK = 512, MAX_THREADS = 8 };

typedef struct options {
  uint32_t epochs, until, batch, threads; /* until: stop after that epoch, of `epochs` that the rate falls over */
  uint64_t seed, limit;
  float rate, scale, tf;
  float join;      /* how often a neighbour in the file is added to the code */
  bool by_package; /* hard negatives: of the package instead of the file */
} options;

typedef struct corpus {
  char *data;
  size_t len;
  uint64_t *places; /* of the records */
  uint32_t n;
} corpus;

typedef struct bag { /* the different words of a text */
  uint32_t n;
  uint16_t rows[TEXT_ROWS];
  float weights[TEXT_ROWS];
} bag;

typedef struct side {
  bag *bags;
  float *vectors, *grads; /* batch x DIM */
  float *norms;
} side;

typedef struct trainer {
  options opt;
  corpus corpus;
  table table;
  uint32_t *order;
  side query, code;
  float *scores, *cols; /* batch x batch; column sums */
  float *row_loss;
  uint32_t *docs;   /* hash of each description in the batch */
  float *grad;      /* rows x DIM, zero between batches */
  uint8_t *touched; /* rows */
  uint32_t n;       /* pairs in this batch */
  float rate;
  uint64_t epoch_seed;
} trainer;

/* ---- Threads: a phase runs as `threads` slices, then the next phase ---- */

typedef void phase_fn(trainer *t, uint32_t slice, uint32_t slices);
typedef struct job {
  trainer *t;
  phase_fn *fn;
  uint32_t slice;
} job;

static void *run_slice(void *arg) {
  job *j = arg;
  j->fn(j->t, j->slice, j->t->opt.threads);
  return NULL;
}

static void run(trainer *t, phase_fn *fn) {
  pthread_t threads[MAX_THREADS];
  job jobs[MAX_THREADS];
  for (uint32_t i = 0; i < t->opt.threads; i++) {
    jobs[i] = (job){t, fn, i};
    if (i && pthread_create(&threads[i], NULL, run_slice, &jobs[i]) != 0) exit(1);
  }
  run_slice(&jobs[0]);
  for (uint32_t i = 1; i < t->opt.threads; i++) pthread_join(threads[i], NULL);
}

static void bounds(uint32_t n, uint32_t slice, uint32_t slices, uint32_t *from, uint32_t *to) {
  *from = (uint32_t)((uint64_t)n * slice / slices);
  *to = (uint32_t)((uint64_t)n * (slice + 1) / slices);
}

/* ---- Pairs ---- */

/* How often a pair is taken: types and files are what questions about a whole repository ask for; a constant and its
 * comment teach little. */
static int shares_of(const pack_record *r) {
  if (r->kind == KIND_TYPE || r->kind == KIND_MODULE) return 2;
  return r->kind == KIND_DECL && r->rows[CODE] < 10 ? 0 : 1;
}

static void corpus_load(corpus *c, const char *path, uint64_t limit) {
  FILE *in = fopen(path, "rb");
  if (!in || fseek(in, 0, SEEK_END) != 0) {
    perror(path);
    exit(1);
  }
  c->len = (size_t)ftell(in);
  rewind(in);
  c->data = must_alloc(c->len, 1);
  if (fread(c->data, 1, c->len, in) != c->len || c->len < 8 || memcmp(c->data, PACK_MAGIC, 8) != 0) {
    fprintf(stderr, "%s: not a file of pairs\n", path);
    exit(1);
  }
  fclose(in);
  size_t cap = 0;
  for (size_t at = 8; at + sizeof(pack_record) <= c->len;) {
    pack_record r;
    memcpy(&r, c->data + at, sizeof r);
    if (!mem_grow(&c->places, &cap, (size_t)c->n + 2, sizeof *c->places)) exit(1);
    for (int times = shares_of(&r); times > 0; times--) c->places[c->n++] = at;
    at += sizeof r;
    for (int i = 0; i < SEGMENTS; i++) at += 2 * (size_t)r.rows[i];
  }
  if (c->n <= limit) return;
  for (uint32_t i = 0; i < limit; i++)
    c->places[i] = c->places[(uint64_t)(i / BLOCK) * c->n / (limit / BLOCK + 1) + i % BLOCK]; /* from all packages */
  c->n = (uint32_t)limit;
}

static void record_at(const corpus *c, uint32_t i, pack_record *r, const char *segments[SEGMENTS]) {
  const char *at = c->data + c->places[i];
  memcpy(r, at, sizeof *r);
  at += sizeof *r;
  for (int s = 0; s < SEGMENTS; s++) {
    segments[s] = at;
    at += 2 * (size_t)r->rows[s];
  }
}

static const corpus *sorting;
static int by_file(const void *a, const void *b) {
  pack_record x, y;
  uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
  memcpy(&x, sorting->data + sorting->places[i], sizeof x);
  memcpy(&y, sorting->data + sorting->places[j], sizeof y);
  if (x.file != y.file) return x.file < y.file ? -1 : 1;
  return i < j ? -1 : 1;
}

static void shuffle(uint32_t *items, uint32_t n, uint64_t *random) {
  for (uint32_t i = n; i > 1; i--) {
    uint32_t j = (uint32_t)(random_next(random) % i), swap = items[i - 1];
    items[i - 1] = items[j];
    items[j] = swap;
  }
}

/* An order of all pairs in which up to GROUP of one file follow each other. by_file: pairs sorted by file. */
static void make_order(const corpus *c, const uint32_t *sorted, uint64_t *random, uint32_t *order) {
  uint32_t *starts = must_alloc(c->n, sizeof *starts), *files = must_alloc(c->n, sizeof *files),
           *within = must_alloc(c->n, sizeof *within);
  uint32_t groups = 0;
  memcpy(within, sorted, c->n * sizeof *within);
  for (uint32_t from = 0; from < c->n;) {
    pack_record r, q;
    memcpy(&r, c->data + c->places[sorted[from]], sizeof r);
    uint32_t to = from + 1;
    for (; to < c->n; to++) {
      memcpy(&q, c->data + c->places[sorted[to]], sizeof q);
      if (q.file != r.file) break;
    }
    shuffle(within + from, to - from, random);
    for (uint32_t g = from; g < to; g += GROUP) {
      starts[groups] = g;
      files[groups++] = to - g < GROUP ? to - g : GROUP;
    }
    from = to;
  }
  uint32_t *which = must_alloc(groups, sizeof *which);
  for (uint32_t i = 0; i < groups; i++) which[i] = i;
  shuffle(which, groups, random);
  uint32_t n = 0;
  for (uint32_t i = 0; i < groups; i++) {
    for (uint32_t j = 0; j < files[which[i]]; j++) order[n++] = within[starts[which[i]] + j];
  }
  mem_free(starts);
  mem_free(files);
  mem_free(within);
  mem_free(which);
}

/* An order in which PACKAGE_GROUP pairs of (mostly) one package follow each other: pairs come package by package. */
static void make_package_order(const corpus *c, uint64_t *random, uint32_t *order) {
  uint32_t *within = must_alloc(c->n, sizeof *within), groups = (c->n + PACKAGE_GROUP - 1) / PACKAGE_GROUP;
  uint32_t *which = must_alloc(groups, sizeof *which), n = 0;
  for (uint32_t i = 0; i < c->n; i++) within[i] = i;
  for (uint32_t from = 0; from < c->n; from += BLOCK)
    shuffle(within + from, c->n - from < BLOCK ? c->n - from : BLOCK, random);
  for (uint32_t i = 0; i < groups; i++) which[i] = i;
  shuffle(which, groups, random);
  for (uint32_t i = 0; i < groups; i++) {
    for (uint32_t j = which[i] * PACKAGE_GROUP; j < c->n && j < (which[i] + 1) * PACKAGE_GROUP; j++)
      order[n++] = within[j];
  }
  mem_free(within);
  mem_free(which);
}

/* ---- A pair's two texts ---- */

typedef struct words {
  uint16_t rows[TEXT_ROWS];
  uint32_t n;
} words;

static void add_words(words *w, const char *segment, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to && w->n < TEXT_ROWS; i++) memcpy(&w->rows[w->n++], segment + 2 * (size_t)i, 2);
}

/* Two passes by byte. */
static void sort_rows(words *w) {
  uint16_t other[TEXT_ROWS], *from = w->rows, *to = other;
  for (int shift = 0; shift < 16; shift += 8) {
    uint32_t at[257] = {0};
    for (uint32_t i = 0; i < w->n; i++) at[(from[i] >> shift & 255) + 1]++;
    for (int k = 0; k < 256; k++) at[k + 1] += at[k];
    for (uint32_t i = 0; i < w->n; i++) to[at[from[i] >> shift & 255]++] = from[i];
    uint16_t *swap = from;
    from = to;
    to = swap;
  }
}

static void make_bag(words *w, float tf, bag *b) {
  b->n = 0;
  sort_rows(w);
  for (uint32_t i = 0; i < w->n;) {
    uint32_t j = i;
    while (j < w->n && w->rows[j] == w->rows[i]) j++;
    b->rows[b->n] = w->rows[i];
    b->weights[b->n++] = j - i == 1 ? 1.0f : powf((float)(j - i < 64 ? j - i : 64), tf);
    i = j;
  }
}

/* A chunk rarely ends where a function does: what stands next to it in the file comes along, with its comment. */
static void add_neighbour(const trainer *t, uint32_t i, const pack_record *own, uint64_t *random, words *w) {
  pack_record r;
  const char *s[SEGMENTS];
  uint32_t other = random_next(random) & 1 ? i + 1 : i - 1;
  if (other >= t->corpus.n || t->corpus.places[other] == t->corpus.places[i]) return;
  record_at(&t->corpus, other, &r, s);
  if (r.file != own->file) return;
  if (random_next(random) & 1) add_words(w, s[SENTENCE], 0, r.rows[SENTENCE]);
  add_words(w, s[CODE], 0, r.rows[CODE]);
}

static void dress(const trainer *t, uint32_t i, uint64_t *random, bag *query, bag *code) {
  pack_record r;
  const char *s[SEGMENTS];
  words q = {.n = 0}, c = {.n = 0};
  record_at(&t->corpus, i, &r, s);
  float roll = random_unit(random), path = random_unit(random), own = random_unit(random), crop = random_unit(random);
  bool as_path = false;
  if (roll < 0.08f && r.rows[NAME] >= 2) {
    add_words(&q, s[NAME], 0, r.rows[NAME]);
  } else if (roll < 0.14f && r.rows[PATH] >= 3) {
    uint32_t from = r.rows[PATH] > 6 ? r.rows[PATH] - 6u : 0;
    add_words(&q, s[PATH], from, r.rows[PATH] - 1u); /* without the extension */
    as_path = true;
  } else {
    add_words(&q, s[SENTENCE], 0, r.rows[SENTENCE]);
    if (roll < 0.35f)
      add_words(&q, s[REST], 0, r.rows[REST]);
    else if (roll < 0.42f)
      add_words(&q, s[NAME], 0, r.rows[NAME]);
  }
  if (path < 0.5f && !as_path) add_words(&c, s[PATH], 0, r.rows[PATH]);
  if (own < 0.25f) {
    if (roll >= 0.35f || own < 0.1f) add_words(&c, s[SENTENCE], 0, r.rows[SENTENCE]);
    add_words(&c, s[REST], 0, r.rows[REST]);
  }
  uint32_t from = 0, to = r.rows[CODE];
  if (crop < 0.25f && to > 60) {
    uint32_t keep = 40 + (uint32_t)(random_next(random) % (to - 40));
    from = (uint32_t)(random_next(random) % (to - keep + 1));
    to = from + keep;
  }
  add_words(&c, s[CODE], from, to);
  if (random_unit(random) < t->opt.join) add_neighbour(t, i, &r, random, &c);
  make_bag(&q, t->opt.tf, query);
  make_bag(&c, t->opt.tf, code);
}

/* ---- Forward ---- */

static void pool(const trainer *t, const bag *b, float *vector, float *norm) {
  float sum[DIM] = {0};
  for (uint32_t i = 0; i < b->n; i++) {
    const float *row = t->table.values + (size_t)b->rows[i] * DIM;
    float w = b->weights[i];
    for (int d = 0; d < DIM; d++) sum[d] += w * row[d];
  }
  float square = 1e-12f;
  for (int d = 0; d < DIM; d++) square += sum[d] * sum[d];
  *norm = sqrtf(square);
  for (int d = 0; d < DIM; d++) vector[d] = sum[d] / *norm;
}

static uint32_t batch_at; /* of the batch in t->order */

static void phase_forward(trainer *t, uint32_t slice, uint32_t slices) {
  uint32_t from, to;
  bounds(t->n, slice, slices, &from, &to);
  for (uint32_t i = from; i < to; i++) {
    uint32_t pair = t->order[batch_at + i];
    uint64_t random = t->epoch_seed ^ (uint64_t)pair * 0xD1342543DE82EF95u;
    pack_record r;
    memcpy(&r, t->corpus.data + t->corpus.places[pair], sizeof r);
    t->docs[i] = r.doc;
    dress(t, pair, &random, &t->query.bags[i], &t->code.bags[i]);
    pool(t, &t->query.bags[i], t->query.vectors + (size_t)i * DIM, &t->query.norms[i]);
    pool(t, &t->code.bags[i], t->code.vectors + (size_t)i * DIM, &t->code.norms[i]);
  }
}

/* Scores to exponentials (no score is above `scale`, so that is what is taken off), and the sum of each row. */
static void phase_exp(trainer *t, uint32_t slice, uint32_t slices) {
  uint32_t from, to;
  bounds(t->n, slice, slices, &from, &to);
  for (uint32_t i = from; i < to; i++) {
    float *row = t->scores + (size_t)i * t->n, sum = 0;
    for (uint32_t j = 0; j < t->n; j++) {
      bool same = j != i && t->docs[j] == t->docs[i];
      row[j] = same ? 0.0f : expf(row[j] - t->opt.scale);
    }
    for (uint32_t j = 0; j < t->n; j++) sum += row[j];
    t->row_loss[i] = sum;
  }
}

static void phase_columns(trainer *t, uint32_t slice, uint32_t slices) {
  uint32_t from, to;
  bounds(t->n, slice, slices, &from, &to);
  for (uint32_t j = from; j < to; j++) t->cols[j] = 0;
  for (uint32_t i = 0; i < t->n; i++) {
    const float *row = t->scores + (size_t)i * t->n;
    for (uint32_t j = from; j < to; j++) t->cols[j] += row[j];
  }
}

/* ---- Backward ---- */

static void phase_gradient(trainer *t, uint32_t slice, uint32_t slices) {
  uint32_t from, to;
  bounds(t->n, slice, slices, &from, &to);
  float share = t->opt.scale / (2.0f * (float)t->n);
  for (uint32_t i = from; i < to; i++) {
    float *row = t->scores + (size_t)i * t->n, inverse = 1.0f / t->row_loss[i], own = row[i];
    t->row_loss[i] = -0.5f * (logf(own * inverse + 1e-30f) + logf(own / t->cols[i] + 1e-30f));
    for (uint32_t j = 0; j < t->n; j++) row[j] = row[j] * (inverse + 1.0f / t->cols[j]) * share;
    row[i] -= 2.0f * share;
  }
}

/* Through the length, then onto the words: each thread has its own dimensions. */
static void phase_normal(trainer *t, uint32_t slice, uint32_t slices) {
  side *sides[2] = {&t->query, &t->code};
  uint32_t from, to;
  bounds(t->n, slice, slices, &from, &to);
  for (int s = 0; s < 2; s++) {
    for (uint32_t i = from; i < to; i++) {
      float *g = sides[s]->grads + (size_t)i * DIM, along = 0;
      const float *v = sides[s]->vectors + (size_t)i * DIM;
      for (int d = 0; d < DIM; d++) along += g[d] * v[d];
      for (int d = 0; d < DIM; d++) g[d] = (g[d] - along * v[d]) / sides[s]->norms[i];
    }
  }
}

static void phase_words(trainer *t, uint32_t slice, uint32_t slices) {
  side *sides[2] = {&t->query, &t->code};
  uint32_t first, last;
  bounds(DIM, slice, slices, &first, &last);
  for (int s = 0; s < 2; s++) {
    for (uint32_t i = 0; i < t->n; i++) {
      const bag *b = &sides[s]->bags[i];
      const float *g = sides[s]->grads + (size_t)i * DIM;
      for (uint32_t k = 0; k < b->n; k++) {
        float *to = t->grad + (size_t)b->rows[k] * DIM, w = b->weights[k];
        for (uint32_t d = first; d < last; d++) to[d] += w * g[d];
        if (slice == 0) t->touched[b->rows[k]] = 1;
      }
    }
  }
}

static void phase_step(trainer *t, uint32_t slice, uint32_t slices) {
  uint32_t from, to;
  bounds(t->table.rows, slice, slices, &from, &to);
  for (uint32_t r = from; r < to; r++) {
    if (!t->touched[r]) continue;
    t->touched[r] = 0;
    float *g = t->grad + (size_t)r * DIM, *v = t->table.values + (size_t)r * DIM, *m = t->table.moved + (size_t)r * DIM;
    for (int d = 0; d < DIM; d++) {
      m[d] += g[d] * g[d];
      v[d] -= t->rate * g[d] / (sqrtf(m[d]) + 1e-8f);
      g[d] = 0;
    }
  }
}

static double train_batch(trainer *t, uint32_t at, uint32_t n) {
  t->n = n;
  batch_at = at;
  int size = (int)n;
  run(t, phase_forward);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, size, size, DIM, t->opt.scale, t->query.vectors, DIM,
              t->code.vectors, DIM, 0, t->scores, size);
  run(t, phase_exp);
  run(t, phase_columns);
  run(t, phase_gradient);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, size, DIM, size, 1, t->scores, size, t->code.vectors, DIM, 0,
              t->query.grads, DIM);
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, size, DIM, size, 1, t->scores, size, t->query.vectors, DIM, 0,
              t->code.grads, DIM);
  run(t, phase_normal);
  run(t, phase_words);
  run(t, phase_step);
  double loss = 0;
  for (uint32_t i = 0; i < n; i++) loss += t->row_loss[i];
  return loss / n;
}

/* ---- The whole ---- */

static void side_init(side *s, uint32_t batch) {
  s->bags = must_alloc(batch, sizeof *s->bags);
  s->vectors = must_alloc((size_t)batch * DIM, sizeof(float));
  s->grads = must_alloc((size_t)batch * DIM, sizeof(float));
  s->norms = must_alloc(batch, sizeof(float));
}

static double number(const char *arg, const char *name) {
  size_t n = strlen(name);
  return strncmp(arg, name, n) == 0 && arg[n] == '=' ? strtod(arg + n + 1, NULL) : -1;
}

static void read_options(options *o, int argc, char **argv) {
  *o = (options){.epochs = 4,
                 .until = UINT32_MAX,
                 .batch = 2048,
                 .threads = 2,
                 .seed = 1,
                 .limit = UINT32_MAX,
                 .rate = 0.03f,
                 .scale = 20,
                 .tf = 0.5f};
  for (int i = 4; i < argc; i++) {
    double v;
    if ((v = number(argv[i], "epochs")) >= 0)
      o->epochs = (uint32_t)v;
    else if ((v = number(argv[i], "until")) >= 0)
      o->until = (uint32_t)v;
    else if ((v = number(argv[i], "batch")) >= 16)
      o->batch = (uint32_t)v;
    else if ((v = number(argv[i], "threads")) >= 1 && v <= MAX_THREADS)
      o->threads = (uint32_t)v;
    else if ((v = number(argv[i], "seed")) >= 0)
      o->seed = (uint64_t)v;
    else if ((v = number(argv[i], "limit")) >= 0)
      o->limit = (uint64_t)v;
    else if ((v = number(argv[i], "rate")) >= 0)
      o->rate = (float)v;
    else if ((v = number(argv[i], "scale")) >= 0)
      o->scale = (float)v;
    else if ((v = number(argv[i], "tf")) >= 0)
      o->tf = (float)v;
    else if ((v = number(argv[i], "join")) >= 0)
      o->join = (float)v;
    else if ((v = number(argv[i], "package")) >= 0)
      o->by_package = v > 0;
    else {
      fprintf(stderr, "train: I do not know %s\n", argv[i]);
      exit(2);
    }
  }
}

static void start_random(table *t, const lexicon *lex) {
  uint64_t random = t->seed;
  for (uint32_t r = 0; r < t->rows; r++) {
    float weight = word_weight(lex, r);
    for (int d = 0; d < DIM; d++) {
      float sum = 0;
      for (int k = 0; k < 4; k++) sum += random_unit(&random) - 0.5f;
      t->values[(size_t)r * DIM + (size_t)d] = sum * weight / 16 * 1.73f;
    }
  }
}

int main(int argc, char **argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: train PAIRS.pack VOCAB.tsv TABLE [epochs=4 until=N batch=2048 rate=0.03 scale=20 tf=0.5 "
                    "seed=1 threads=2 join=0 package=0 limit=N]\n");
    return 2;
  }
  static trainer t;
  lexicon lex;
  read_options(&t.opt, argc, argv);
  lexicon_load(&lex, argv[2]);
  corpus_load(&t.corpus, argv[1], t.opt.limit);
  if (!table_load(&t.table, argv[3])) {
    table_init(&t.table, lex.words.count, t.opt.seed);
    start_random(&t.table, &lex);
  }
  if (t.table.rows != lex.words.count) {
    fprintf(stderr, "train: %s has %u rows, the vocabulary %u words\n", argv[3], t.table.rows, lex.words.count);
    return 1;
  }
  uint32_t batch = t.opt.batch < t.corpus.n ? t.opt.batch : t.corpus.n;
  side_init(&t.query, batch);
  side_init(&t.code, batch);
  t.scores = must_alloc((size_t)batch * batch, sizeof(float));
  t.cols = must_alloc(batch, sizeof(float));
  t.row_loss = must_alloc(batch, sizeof(float));
  t.docs = must_alloc(batch, sizeof *t.docs);
  t.grad = must_alloc((size_t)t.table.rows * DIM, sizeof(float));
  t.touched = must_alloc(t.table.rows, 1);
  t.order = must_alloc(t.corpus.n, sizeof *t.order);
  uint32_t *sorted = must_alloc(t.corpus.n, sizeof *sorted);
  for (uint32_t i = 0; i < t.corpus.n; i++) sorted[i] = i;
  sorting = &t.corpus;
  qsort(sorted, t.corpus.n, sizeof *sorted, by_file);
  uint32_t per_epoch = t.corpus.n / batch;
  fprintf(stderr, "train: %u pairs, %u words, %u batches of %u an epoch\n", t.corpus.n, t.table.rows, per_epoch, batch);
  for (uint32_t epoch = t.table.epoch; epoch < t.opt.epochs && epoch < t.opt.until; epoch++) {
    uint64_t random = t.opt.seed * 1000003u + epoch;
    t.epoch_seed = random_next(&random);
    if (t.opt.by_package)
      make_package_order(&t.corpus, &random, t.order);
    else
      make_order(&t.corpus, sorted, &random, t.order);
    double loss = 0;
    time_t began = time(NULL);
    for (uint32_t b = 0; b < per_epoch; b++) {
      float done = (float)(epoch * per_epoch + b) / (float)(t.opt.epochs * per_epoch);
      t.rate = t.opt.rate * (1.0f - 0.95f * done);
      double one = train_batch(&t, b * batch, batch);
      loss += one;
      if (b % 50 == 0) fprintf(stderr, "  epoch %u batch %u loss %.4f\n", epoch + 1, b, one);
    }
    t.table.epoch = epoch + 1;
    table_save(&t.table, argv[3]);
    fprintf(stderr, "epoch %u: mean loss %.4f, %ld s\n", epoch + 1, loss / per_epoch, (long)(time(NULL) - began));
  }
  return 0;
}
