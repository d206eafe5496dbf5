/* SPDX-License-Identifier: Apache-2.0 */
/* bert_folder.c - a BERT-like model in a folder, as it is published: config.json, tokenizer.json (or vocab.txt),
 * model.safetensors, and 1_Pooling/config.json if the vector is not the mean of its tokens.
 *
 * "bert:NAME" is the folder NAME of the models folder; anything with a / in it is a path. The revision in the identity
 * is the CRC-32C of the weights.
 */

#include "base/crc32c.h"
#include "os/os.h"
#include "embed/bert.h"
#include "embed/embed.h"
#include "embed/vocab.h"

enum { DEFAULT_TOKENS = 256, BERT_CONFIG_BYTES = 1 << 20 };

typedef struct bert_folder {
  embed_bert bert;
  embed_wordpiece wp;
  embed_encode_options options;
  bool narrow; /* as requested */
  float *words;
} bert_folder;

static lode_status bert_folder_read_text(const char *path, const char *file, size_t max, char **text, size_t *len,
                                         lode_error *err) {
  char *name = embed_join_path(path, file);
  if (!name) return err_nomem(err);
  lode_status st = embed_read_file(name, max, text, len, err);
  mem_free(name);
  return st;
}

/* ---- Parts ---- */

static lode_status bert_folder_read_config(const char *path, embed_bert_config *config, lode_error *err) {
  char *text = NULL;
  size_t len;
  lode_status st = bert_folder_read_text(path, "config.json", BERT_CONFIG_BYTES, &text, &len, err);
  if (st == LODE_OK) st = embed_bert_read_config(config, (lode_str){text, len}, err);
  mem_free(text);
  text = NULL;
  if (st != LODE_OK) return st;
  st = bert_folder_read_text(path, "1_Pooling/config.json", BERT_CONFIG_BYTES, &text, &len, err);
  if (st == LODE_NOT_FOUND) {
    err_clear(err);
    return LODE_OK;
  }
  if (st == LODE_OK) st = embed_bert_read_pooling(config, (lode_str){text, len}, err);
  mem_free(text);
  return st;
}

static lode_status bert_folder_read_vocab(bert_folder *f, const char *path, lode_error *err) {
  char *text = NULL;
  size_t len;
  embed_vocab vocab = {0};
  lode_status st = bert_folder_read_text(path, "tokenizer.json", EMBED_TOKENIZER_MAX_BYTES, &text, &len, err);
  if (st == LODE_OK) {
    st = embed_vocab_from_json(&vocab, (lode_str){text, len}, err);
  } else if (st == LODE_NOT_FOUND) {
    st = bert_folder_read_text(path, "vocab.txt", EMBED_TOKENIZER_MAX_BYTES, &text, &len, err);
    if (st == LODE_OK) st = embed_vocab_from_lines(&vocab, (lode_str){text, len}, true, err);
  }
  if (st == LODE_OK)
    st =
        embed_wordpiece_init(&f->wp, &vocab.settings, vocab.tokens, vocab.count, vocab.specials, vocab.n_specials, err);
  embed_vocab_release(&vocab);
  mem_free(text);
  return st;
}

static lode_status bert_folder_word(void *ctx, uint32_t id, float *out, lode_error *err) {
  const bert_folder *f = ctx;
  (void)err;
  memcpy(out, f->words + (size_t)id * f->bert.config.hidden, f->bert.config.hidden * sizeof(float));
  return LODE_OK;
}

static lode_status bert_folder_read_words(bert_folder *f, const embed_safetensors *file, lode_error *err) {
  const embed_tensor *t;
  size_t n = f->bert.config.words, h = f->bert.config.hidden;
  TRY(embed_bert_tensor(file, "embeddings.word_embeddings.weight", n, h, &t, err));
  f->words = mem_calloc(n, h * sizeof(float));
  if (!f->words) return err_nomem(err);
  TRY(embed_safetensors_read(file, t, 0, n * h, f->words, err));
  f->bert.word = bert_folder_word;
  f->bert.word_ctx = f;
  return LODE_OK;
}

static lode_status bert_folder_crc(const embed_safetensors *file, uint32_t *crc, lode_error *err) {
  enum { BERT_READ_BYTES = 1 << 18 };
  char *buf = mem_alloc(BERT_READ_BYTES);
  if (!buf) return err_nomem(err);
  lode_status st = LODE_OK;
  size_t got = BERT_READ_BYTES;
  *crc = 0;
  for (uint64_t at = 0; st == LODE_OK && got == BERT_READ_BYTES; at += got) {
    st = os_read_full(file->fd, buf, BERT_READ_BYTES, at, &got, err);
    if (st == LODE_OK) *crc = crc32c_update(*crc, buf, got);
  }
  mem_free(buf);
  return st;
}

static lode_status bert_folder_read_weights(bert_folder *f, const char *path, const embed_bert_config *config,
                                            uint32_t *crc, lode_error *err) {
  static const char *const names[] = {"model.safetensors", "model.fp16.safetensors"};
  embed_safetensors file = {.fd = -1};
  lode_status st = LODE_NOT_FOUND;
  struct stat info;
  for (size_t i = 0; i < 2 && st == LODE_NOT_FOUND; i++) {
    char *name = embed_join_path(path, names[i]);
    if (!name) return err_nomem(err);
    st = os_api->stat(name, &info) == 0 ? embed_safetensors_open(&file, name, err) : LODE_NOT_FOUND;
    mem_free(name);
  }
  if (st == LODE_NOT_FOUND) return err_set(err, LODE_NOT_FOUND, "there is no model.safetensors in %.300s", path);
  if (st != LODE_OK) return st;
  TRY_GOTO(embed_bert_init(&f->bert, config, gemm_kernel_get(), f->narrow, err));
  TRY_GOTO(embed_bert_load(&f->bert, &file, (lode_progress){0}, err));
  TRY_GOTO(bert_folder_read_words(f, &file, err));
  st = bert_folder_crc(&file, crc, err);
done:
  embed_safetensors_close(&file);
  return st;
}

/* ---- The embedder ---- */

static void bert_folder_close(void *self) {
  bert_folder *f = self;
  if (!f) return;
  embed_bert_release(&f->bert);
  embed_wordpiece_release(&f->wp);
  mem_free(f->words);
  mem_free(f);
}

static lode_status bert_folder_embed(void *self, const lode_str *texts, size_t n, float *vectors, lode_error *err) {
  bert_folder *f = self;
  return embed_encode(&f->bert, &f->wp, &f->options, texts, n, vectors, err);
}

/* The folder's path, without trailing slashes, and its last component. */
static lode_status bert_folder_locate(const embed_setup *setup, char **path, lode_error *err) {
  lode_str name = setup->model;
  *path = NULL;
  if (name.len > 5 && memcmp(name.data, "bert:", 5) == 0) {
    char inside[512];
    if (name.len - 5 >= sizeof inside || memchr(name.data, '/', name.len))
      return err_set(err, LODE_INVALID, "bert:NAME names a folder of the models folder");
    memcpy(inside, name.data + 5, name.len - 5);
    inside[name.len - 5] = 0;
    return embed_locate(setup->folders, inside, path, err);
  }
  while (name.len > 1 && name.data[name.len - 1] == '/') name.len--;
  *path = mem_calloc(name.len + 1, 1);
  if (!*path) return err_nomem(err);
  memcpy(*path, name.data, name.len);
  return LODE_OK;
}

lode_status embed_folder_open(const embed_setup *setup, embed_model *model, lode_error *err) {
  bert_folder *f = mem_calloc(1, sizeof *f);
  if (!f) return err_nomem(err);
  char *path = NULL;
  uint32_t crc = 0;
  embed_bert_config config;
  lode_status st;
  f->options = (embed_encode_options){.threads = setup->threads};
  f->narrow = setup->precision == LODE_PRECISION_INT8;
  TRY_GOTO(bert_folder_locate(setup, &path, err));
  TRY_GOTO(bert_folder_read_config(path, &config, err));
  TRY_GOTO(bert_folder_read_vocab(f, path, err));
  if (f->wp.count > config.words) {
    st = err_set(err, LODE_CORRUPT, "the tokenizer in %.300s has %u tokens, and the model knows %u", path, f->wp.count,
                 config.words);
    goto done;
  }
  TRY_GOTO(bert_folder_read_weights(f, path, &config, &crc, err));
  uint32_t max = setup->max_tokens ? setup->max_tokens : DEFAULT_TOKENS;
  f->options.max_tokens = max < 2 ? 2 : max > config.positions ? config.positions : max;
  *model = (embed_model){.embed = bert_folder_embed,
                         .close = bert_folder_close,
                         .self = f,
                         .dimension = config.hidden,
                         .max_tokens = f->options.max_tokens,
                         .precision = f->narrow ? "int8" : "full",
                         .kernel = f->bert.kernel->name};
  const char *slash = strrchr(path, '/');
  snprintf(model->identity, sizeof model->identity, "bert:%.200s@%08x/%u/float", slash && slash[1] ? slash + 1 : path,
           crc, config.hidden);
  f = NULL;
done:
  mem_free(path);
  bert_folder_close(f);
  return st;
}
