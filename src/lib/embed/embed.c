/* SPDX-License-Identifier: Apache-2.0 */
/* embed.c - the embedders of lode.h: open by name, embed, close.
 *
 * Threads: an embedder does not change after it was opened, so any number of threads may share it. A model with state
 * of its own has its own locks (embed.h).
 */
#include "embed/embed.h"

#include <math.h>

struct lode_embedder {
  embed_model model;
  lode_embedder_info info;
};

/* ---- Names ---- */

/* Length of NAME when the text is NAME@REVISION/DIMENSION/FAMILY, else the whole length. */
static size_t embed_name_length(lode_str text) {
  size_t at = text.len;
  while (at > 0 && text.data[at - 1] != '@') at--;
  if (at <= 1) return text.len;
  size_t slashes = 0, part = 0;
  for (size_t i = at; i < text.len; i++, part++) {
    char c = text.data[i];
    if (c == '/') {
      if (part == 0 || ++slashes > 2) return text.len;
      part = (size_t)-1;
    } else if (slashes == 1 && (c < '0' || c > '9')) {
      return text.len;
    }
  }
  return slashes == 2 && part > 0 ? at - 1 : text.len;
}

lode_str embed_model_bare_name(lode_str text) { return (lode_str){text.data, embed_name_length(text)}; }

static bool embed_name_begins(lode_str text, const char *with) {
  size_t n = strlen(with);
  return text.len > n && memcmp(text.data, with, n) == 0;
}

static embed_open_fn *embed_open_fn_of(lode_str name) {
  const embed_model_kind *known = embed_model_find(name);
  if (known) return known->open;
  if (embed_name_begins(name, "openai:") || embed_name_begins(name, "ollama:")) return embed_remote_open;
  if (embed_name_begins(name, "bert:") || memchr(name.data, '/', name.len)) return embed_folder_open;
  return NULL;
}

static lode_status embed_unknown_model(lode_str name, lode_error *err) {
  char quoted[256];
  return err_set(err, LODE_NOT_FOUND,
                 "there is no model %s; there are minilm, code, openai:MODEL, ollama:MODEL, and folders with a "
                 "BERT-like model, given as a path with a / in it",
                 str_quote(name, quoted, sizeof quoted));
}

lode_status embed_model_check_name(lode_str name, lode_error *err) {
  return embed_open_fn_of((lode_str){name.data, embed_name_length(name)}) ? LODE_OK : embed_unknown_model(name, err);
}

bool embed_model_is_external(lode_str name) {
  embed_open_fn *open = embed_open_fn_of((lode_str){name.data, embed_name_length(name)});
  return open == embed_remote_open || open == embed_folder_open;
}

/* ---- Opening ---- */

static void embed_describe(lode_embedder *e) {
  e->info = (lode_embedder_info){
      .identity = str_of(e->model.identity),
      .dimension = e->model.dimension,
      .max_tokens = e->model.max_tokens,
      .precision = e->model.precision ? e->model.precision : "",
      .kernel = e->model.kernel ? e->model.kernel : "",
  };
}

static lode_status embed_check_options(const lode_embedder_options *o, lode_error *err) {
  if (o->threads > EMBED_MAX_THREADS)
    return err_set(err, LODE_INVALID, "%u threads are too many for an embedder; the most is %d", o->threads,
                   EMBED_MAX_THREADS);
  if ((unsigned)o->precision > LODE_PRECISION_INT8)
    return err_set(err, LODE_INVALID, "the precision of an embedder is full or int8");
  return LODE_OK;
}

lode_status embed_open(lode_str model, const lode_embedder_options *options, lode_embedder **embedder,
                       lode_error *err) {
  if (!model.data || model.len == 0) model = STR_LIT(LODE_MODEL_MINILM);
  if (model.len >= 4096 || memchr(model.data, 0, model.len))
    return err_set(err, LODE_INVALID, "the name of a model has at most 4,095 bytes, and no NUL");
  TRY(embed_check_options(options, err));

  lode_str name = {model.data, embed_name_length(model)};
  embed_open_fn *open = embed_open_fn_of(name);
  if (!open) return embed_unknown_model(name, err);

  lode_status st = LODE_OK;
  embed_folders folders = {0};
  lode_embedder *e = mem_calloc(1, sizeof *e);
  if (!e) return err_nomem(err);
  TRY_GOTO(embed_folders_init(&folders, options->folder, err));
  embed_setup setup = {
      .model = name,
      .folders = &folders,
      .max_tokens = options->max_tokens,
      .threads = options->threads ? options->threads : 1,
      .precision = options->precision,
      .url = options->url,
      .key = options->key,
      .timeout_ms = options->timeout_ms ? options->timeout_ms : 60000,
  };
  TRY_GOTO(open(&setup, &e->model, err));
  if (name.len < model.len && !str_eq(str_of(e->model.identity), model)) {
    char asked[256];
    st = err_set(err, LODE_MISMATCH,
                 "the model %s is asked for, but the one that is here is %s; install the former, or "
                 "embed the collection again with the latter",
                 str_quote(model, asked, sizeof asked), e->model.identity);
    goto done;
  }
  embed_describe(e);
  *embedder = e;
  e = NULL;
done:
  embed_folders_release(&folders);
  lode_embedder_close(e);
  return st;
}

/* ---- Embedders of the host program ---- */

typedef struct embed_host {
  lode_embed_fn *embed;
  void *ctx;
} embed_host;

static lode_status embed_host_embed(void *self, const lode_str *texts, size_t n, float *vectors, lode_error *err) {
  embed_host *h = self;
  return h->embed(h->ctx, texts, n, vectors, err);
}

lode_status lode_embedder_open_custom(lode_str identity, uint32_t dimension, lode_embed_fn *embed, void *ctx,
                                      lode_embedder **embedder, lode_error *err) {
  err_clear(err);
  if (!embedder) return err_set(err, LODE_INVALID, "embedder is NULL: it is required");
  *embedder = NULL;
  if (!identity.data || identity.len == 0 || identity.len >= EMBED_IDENTITY_BYTES ||
      memchr(identity.data, 0, identity.len) || !utf8_valid(identity.data, identity.len))
    return err_set(err, LODE_INVALID, "the identity of an embedder has 1 to %d bytes of UTF-8 without NUL",
                   EMBED_IDENTITY_BYTES - 1);
  if (dimension == 0 || dimension > LODE_MAX_DIMENSION)
    return err_set(err, LODE_INVALID, "the dimension of an embedder is 1 to %d", LODE_MAX_DIMENSION);
  if (!embed) return err_set(err, LODE_INVALID, "an embedder needs a function");
  lode_embedder *e = mem_calloc(1, sizeof *e);
  embed_host *h = mem_calloc(1, sizeof *h);
  if (!e || !h) {
    mem_free(e);
    mem_free(h);
    return err_nomem(err);
  }
  *h = (embed_host){embed, ctx};
  e->model = (embed_model){.embed = embed_host_embed, .close = mem_free, .self = h, .dimension = dimension};
  memcpy(e->model.identity, identity.data, identity.len);
  embed_describe(e);
  *embedder = e;
  return LODE_OK;
}

/* ---- Use ---- */

const lode_embedder_info *lode_embedder_info_of(const lode_embedder *embedder) {
  return embedder ? &embedder->info : NULL;
}

/* NaN or infinity, from a model that overflows, a server or a host, must not reach a store. */
static lode_status embed_check_finite(const float *vectors, size_t n, uint32_t dimension, lode_error *err) {
  for (size_t i = 0; i < n; i++)
    for (uint32_t d = 0; d < dimension; d++)
      if (!isfinite(vectors[i * dimension + d]))
        return err_set_at(err, LODE_REFUSED, i, "the embedder's vector of text %zu has a value that is not finite", i);
  return LODE_OK;
}

lode_status lode_embed(lode_embedder *embedder, const lode_str *texts, size_t n, float *vectors, lode_error *err) {
  err_clear(err);
  size_t floats;
  if (!embedder || (n && (!texts || !vectors)))
    return err_set(err, LODE_INVALID, "an embedder, texts, and an array for their vectors are required");
  if (mem_mul_overflow(n, embedder->model.dimension, &floats) || floats > SIZE_MAX / sizeof(float))
    return err_set(err, LODE_LIMIT, "%zu texts are too many for one call", n);
  if (n == 0) return LODE_OK;
  lode_status st = embedder->model.embed(embedder->model.self, texts, n, vectors, err);
  if (st == LODE_OK) st = embed_check_finite(vectors, n, embedder->model.dimension, err);
  if (st != LODE_OK) memset(vectors, 0, floats * sizeof(float));
  return st;
}

lode_status embed_records(lode_embedder *embedder, lode_record *records, size_t n, float **vectors, lode_error *err) {
  uint32_t dimension = embedder->model.dimension;
  size_t want = 0, at = 0;
  for (size_t i = 0; i < n; i++) want += records[i].document.data && !records[i].vector;
  if (want == 0) return LODE_OK;
  lode_str *texts = mem_calloc(want, sizeof *texts);
  float *made = mem_calloc(want, dimension * sizeof *made);
  lode_status st = texts && made ? LODE_OK : err_nomem(err);
  for (size_t i = 0; st == LODE_OK && i < n; i++)
    if (records[i].document.data && !records[i].vector) texts[at++] = records[i].document;
  if (st == LODE_OK) st = lode_embed(embedder, texts, want, made, err);
  mem_free(texts);
  if (st != LODE_OK) {
    mem_free(made);
    if (err) err->record = LODE_NO_RECORD;
    return st;
  }
  at = 0;
  for (size_t i = 0; i < n; i++) {
    if (!records[i].document.data || records[i].vector) continue;
    records[i].vector = made + at++ * dimension;
    records[i].dimension = dimension;
  }
  *vectors = made;
  return LODE_OK;
}

void lode_vectors_free(float *vectors) { mem_free(vectors); }

void lode_embedder_close(lode_embedder *embedder) {
  if (!embedder) return;
  if (embedder->model.close) embedder->model.close(embedder->model.self);
  mem_free(embedder);
}
