/* SPDX-License-Identifier: Apache-2.0 */
/* bert.h - a BERT encoder for sentences: loading its weights, and text to vector.
 *
 * Weights are in two blocks, whose layout follows from the configuration and the arithmetic:
 *   vectors  float32: positions (with token type 0 added), the first norm's gain and shift, then for each layer the
 *            biases of qkv, out, up and down and the scales of their integer panels (padded to 16), and two norms
 *   panels   of each layer's qkv, out, up, down (gemm.h)
 * The rows of the table of words are read one by one.
 */
#ifndef LODE_EMBED_BERT_H
#define LODE_EMBED_BERT_H

#include "gemm/gemm.h"
#include "embed/safetensors.h"
#include "embed/wordpiece.h"

typedef struct embed_bert_config {
  uint32_t hidden, layers, heads, inner, positions, words;
  float epsilon;
  bool first_token; /* the vector is that of [CLS]; otherwise the mean of all tokens */
} embed_bert_config;

typedef struct embed_bert_layer {
  gemm_weights qkv, out, up, down;
  float *gain1, *shift1, *gain2, *shift2;
} embed_bert_layer;

typedef struct embed_bert {
  embed_bert_config config;
  const gemm_kernel *kernel;
  /* arithmetics of the kernel: for products with weights, and with keys and values */
  const gemm_arithmetic *weights, *attention;
  float *vectors;
  void *panels;
  float *positions, *gain, *shift; /* point into vectors */
  embed_bert_layer *layers;
  /* Reads word `id` as `hidden` floats. */
  lode_status (*word)(void *ctx, uint32_t id, float *out, lode_error *err);
  void *word_ctx;
  _Atomic(struct embed_encode_scratch *) scratch; /* scratch memory that bert_encode.c keeps between calls */
} embed_bert;

/* How many floats the vectors have, and the panels, as the pack stores them. LODE_CORRUPT if the configuration is
 * impossible, LODE_LIMIT if it is too large. */
typedef struct embed_bert_sizes {
  size_t vectors, panels;
} embed_bert_sizes;
LODE_MUST lode_status embed_bert_measure(const embed_bert_config *config, embed_bert_sizes *sizes, lode_error *err);

/* Parses config.json of a BERT-like model, and that of its pooling if there is one. */
LODE_MUST lode_status embed_bert_read_config(embed_bert_config *config, lode_str json, lode_error *err);
LODE_MUST lode_status embed_bert_read_pooling(embed_bert_config *config, lode_str json, lode_error *err);

/* Allocates the blocks and points the layers into them. */
LODE_MUST lode_status embed_bert_init(embed_bert *bert, const embed_bert_config *config, const gemm_kernel *kernel,
                                      bool narrow, lode_error *err);
void embed_bert_release(embed_bert *bert);

/* Fills the blocks from the tensors of a model with Hugging Face's names (with or without the prefix "bert."). */
LODE_MUST lode_status embed_bert_load(embed_bert *bert, const embed_safetensors *file, lode_progress progress,
                                      lode_error *err);
/* Finds the tensor, with or without "bert.", of exactly that shape; LODE_CORRUPT if there is none. columns 0: one
 * dimension. */
LODE_MUST lode_status embed_bert_tensor(const embed_safetensors *file, const char *name, uint64_t rows,
                                        uint64_t columns, const embed_tensor **tensor, lode_error *err);

/* ---- bert_encode.c ---- */

void embed_encode_scratch_free(struct embed_encode_scratch *scratch);

enum { EMBED_ENCODE_THREADS = 64 }; /* as in EMBED_THREADPOOL_MAX */

typedef struct embed_encode_options {
  uint32_t max_tokens; /* of a text, including [CLS] and [SEP] */
  uint32_t threads;
} embed_encode_options;

/* Encodes n texts as n x hidden floats, each vector of length 1. */
LODE_MUST lode_status embed_encode(embed_bert *bert, const embed_wordpiece *wp, const embed_encode_options *options,
                                   const lode_str *texts, size_t n, float *vectors, lode_error *err);

#endif
