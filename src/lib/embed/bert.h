/* bert.h - a BERT encoder for sentences: its weights in memory, where they come from, and text to vector.
 *
 * Weights live in two blocks, whose layout follows from the configuration and the arithmetic:
 *   vectors  float32: positions (with token type 0 added), the first norm's gain and shift, then for each layer the biases
 *            of qkv, out, up and down and the scales of their integer panels (padded to 16), and two norms
 *   panels   of each layer's qkv, out, up, down (gemm.h)
 * The table of words is asked for row by row.
 */
#ifndef LODE_EMBED_BERT_H
#define LODE_EMBED_BERT_H

#include "gemm/gemm.h"
#include "embed/safetensors.h"
#include "embed/wordpiece.h"

typedef struct embed_bert_config {
  uint32_t hidden, layers, heads, inner, positions, words;
  float epsilon;
  bool first_token; /* the vector is that of [CLS]; else the mean of all */
} embed_bert_config;

typedef struct embed_bert_layer {
  gemm_weights qkv, out, up, down;
  float *gain1, *shift1, *gain2, *shift2;
} embed_bert_layer;

typedef struct embed_bert {
  embed_bert_config config;
  const gemm_kernel *kernel;
  const gemm_arithmetic *weights, *attention; /* of the kernel: products with weights, and with keys and values */
  float *vectors;
  void *panels;
  float *positions, *gain, *shift; /* inside vectors */
  embed_bert_layer *layers;
  /* Word `id` as `hidden` floats. */
  lode_status (*word)(void *ctx, uint32_t id, float *out, lode_error *err);
  void *word_ctx;
  _Atomic(struct embed_encode_scratch *) room; /* what bert_encode.c keeps from one call to the next */
} embed_bert;

/* How many floats the vectors have, and the panels of floats, as the pack keeps them. LODE_CORRUPT when the configuration is impossible, LODE_LIMIT when it is too large. */
typedef struct embed_bert_sizes {
  size_t vectors, panels;
} embed_bert_sizes;
lode_status embed_bert_measure(const embed_bert_config *config, embed_bert_sizes *sizes, lode_error *err);

/* config.json of a BERT-like model, and of its pooling if there is one. */
lode_status embed_bert_read_config(embed_bert_config *config, lode_str json, lode_error *err);
lode_status embed_bert_read_pooling(embed_bert_config *config, lode_str json, lode_error *err);

/* Allocates the blocks and points the layers into them. */
lode_status embed_bert_init(embed_bert *bert, const embed_bert_config *config, const gemm_kernel *kernel, bool narrow,
                            lode_error *err);
void embed_bert_release(embed_bert *bert);

/* Fills the blocks from the tensors of a model with Hugging Face's names (with or without a "bert." before them). */
lode_status embed_bert_load(embed_bert *bert, const embed_safetensors *file, lode_progress progress, lode_error *err);
/* The tensor, with or without "bert.", of that very shape; LODE_CORRUPT when it is not there. columns 0: one dimension. */
lode_status embed_bert_tensor(const embed_safetensors *file, const char *name, uint64_t rows, uint64_t columns,
                              const embed_tensor **tensor, lode_error *err);

/* ---- bert_encode.c ---- */

void embed_encode_scratch_free(struct embed_encode_scratch *room);

enum { EMBED_ENCODE_THREADS = 64 }; /* as many as a crew has at most */

typedef struct embed_encode_options {
  uint32_t max_tokens; /* of a text, [CLS] and [SEP] included */
  uint32_t threads;
} embed_encode_options;

/* n texts to n x hidden floats of length 1. */
lode_status embed_encode(embed_bert *bert, const embed_wordpiece *wp, const embed_encode_options *options,
                         const lode_str *texts, size_t n, float *vectors, lode_error *err);

#endif
