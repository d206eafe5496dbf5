/* SPDX-License-Identifier: Apache-2.0 */
/* bert.c - weights of an encoder in memory; see bert.h. */
#include "embed/bert.h"

#include <math.h>
#include <stdatomic.h>

#include "base/json.h"

/* ---- Configuration ---- */

static lode_status bert_config_number(const json_doc *json, const char *key, uint32_t low, uint32_t high, uint32_t *out,
                                      lode_error *err) {
  uint32_t i = json_get(json, 0, str_of(key));
  if (!i || json->nodes[i].type != JSON_NODE_INT || json->nodes[i].u.i < low || json->nodes[i].u.i > high)
    return err_set(err, LODE_CORRUPT, "config.json: %s is missing, or not between %u and %u", key, low, high);
  *out = (uint32_t)json->nodes[i].u.i;
  return LODE_OK;
}

/* A member that may be absent, but otherwise must be this text. */
static lode_status bert_config_must_be(const json_doc *json, const char *key, const char *want, lode_error *err) {
  uint32_t i = json_get(json, 0, str_of(key));
  if (!i || json->nodes[i].type == JSON_NODE_NULL) return LODE_OK;
  if (json->nodes[i].type == JSON_NODE_STRING && str_eq(json->nodes[i].u.s, str_of(want))) return LODE_OK;
  return err_set(err, LODE_UNSUPPORTED, "config.json: only models whose %s is \"%s\" are supported", key, want);
}

static lode_status bert_parse(json_doc *json, const char *what, lode_str text, lode_error *err) {
  lode_error why = {0};
  json_limits limits = {.max_nodes = 1u << 20, .max_depth = 64};
  lode_status st = json_parse(json, text, &limits, &why);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK) return err_set(err, LODE_CORRUPT, "%s: %s", what, why.text);
  if (json->nodes[0].type != JSON_NODE_OBJECT) return err_set(err, LODE_CORRUPT, "%s is not a JSON object", what);
  return LODE_OK;
}

static lode_status bert_read_config(embed_bert_config *c, const json_doc *json, lode_error *err) {
  TRY(bert_config_must_be(json, "model_type", "bert", err));
  TRY(bert_config_must_be(json, "hidden_act", "gelu", err));
  TRY(bert_config_must_be(json, "position_embedding_type", "absolute", err));
  TRY(bert_config_number(json, "hidden_size", 1, 8192, &c->hidden, err));
  TRY(bert_config_number(json, "num_hidden_layers", 1, 128, &c->layers, err));
  TRY(bert_config_number(json, "num_attention_heads", 1, 256, &c->heads, err));
  TRY(bert_config_number(json, "intermediate_size", 1, 32768, &c->inner, err));
  TRY(bert_config_number(json, "max_position_embeddings", 2, 65536, &c->positions, err));
  TRY(bert_config_number(json, "vocab_size", 1, EMBED_VOCAB_MAX, &c->words, err));
  c->epsilon = 1e-12f;
  uint32_t i = json_get(json, 0, STR_LIT("layer_norm_eps"));
  if (i && json->nodes[i].type == JSON_NODE_DOUBLE) c->epsilon = (float)json->nodes[i].u.d;
  if (!(c->epsilon >= 0 && c->epsilon < 1))
    return err_set(err, LODE_CORRUPT, "config.json: layer_norm_eps is out of range");
  embed_bert_sizes sizes;
  return embed_bert_measure(c, &sizes, err);
}

lode_status embed_bert_read_config(embed_bert_config *config, lode_str text, lode_error *err) {
  *config = (embed_bert_config){0};
  json_doc json = {0};
  lode_status st = bert_parse(&json, "config.json", text, err);
  if (st == LODE_OK) st = bert_read_config(config, &json, err);
  json_release(&json);
  return st;
}

lode_status embed_bert_read_pooling(embed_bert_config *config, lode_str text, lode_error *err) {
  json_doc json = {0};
  lode_status st = bert_parse(&json, "1_Pooling/config.json", text, err);
  if (st == LODE_OK) {
    uint32_t first = json_get(&json, 0, STR_LIT("pooling_mode_cls_token"));
    uint32_t mean = json_get(&json, 0, STR_LIT("pooling_mode_mean_tokens"));
    bool is_first = first && json.nodes[first].type == JSON_NODE_TRUE;
    bool is_mean = mean && json.nodes[mean].type == JSON_NODE_TRUE;
    if (is_first == is_mean)
      st = err_set(err, LODE_UNSUPPORTED,
                   "1_Pooling/config.json: either the mean or the first token must be the vector");
    config->first_token = is_first;
  }
  json_release(&json);
  return st;
}

/* ---- Blocks ---- */

typedef struct bert_shape {
  size_t k, n;
} bert_shape;

static void bert_shapes(const embed_bert_config *c, bert_shape out[4]) {
  out[0] = (bert_shape){c->hidden, 3 * (size_t)c->hidden};
  out[1] = (bert_shape){c->hidden, c->hidden};
  out[2] = (bert_shape){c->hidden, c->inner};
  out[3] = (bert_shape){c->inner, c->hidden};
}

lode_status embed_bert_measure(const embed_bert_config *c, embed_bert_sizes *sizes, lode_error *err) {
  *sizes = (embed_bert_sizes){0};
  if (c->heads == 0 || c->hidden % c->heads != 0 || c->hidden / c->heads > 256)
    return err_set(err, LODE_CORRUPT, "a hidden size of %u cannot be shared by %u heads of at most 256", c->hidden,
                   c->heads);
  /* bounded by the limits of bert_read_config(): no product exceeds 64 bits */
  bert_shape s[4];
  bert_shapes(c, s);
  size_t vectors = 4 * (size_t)c->hidden, panels = 0;
  for (int i = 0; i < 4; i++) {
    size_t padded = gemm_pad(s[i].n, GEMM_PANEL);
    vectors += 2 * padded;
    panels += padded * s[i].k;
  }
  sizes->vectors = (size_t)c->positions * c->hidden + 2 * (size_t)c->hidden + c->layers * vectors;
  sizes->panels = c->layers * panels;
  if (sizes->panels > (size_t)1 << 30) return err_set(err, LODE_LIMIT, "the model has more than 2^30 weights");
  return LODE_OK;
}

static size_t bert_panels_bytes(const embed_bert_config *c, const gemm_arithmetic *how) {
  size_t bytes = 0;
  bert_shape s[4];
  bert_shapes(c, s);
  for (int i = 0; i < 4; i++) bytes += gemm_panels(s[i].n) * gemm_panel_bytes(how, s[i].k);
  return c->layers * bytes;
}

static float *bert_carve(float **at, size_t n) {
  float *p = *at;
  *at += n;
  return p;
}

static void bert_bind(embed_bert *bert) {
  const embed_bert_config *c = &bert->config;
  float *at = bert->vectors;
  char *panels = bert->panels;
  bert_shape s[4];
  bert_shapes(c, s);
  bert->positions = bert_carve(&at, (size_t)c->positions * c->hidden);
  bert->gain = bert_carve(&at, c->hidden);
  bert->shift = bert_carve(&at, c->hidden);
  for (uint32_t l = 0; l < c->layers; l++) {
    embed_bert_layer *layer = &bert->layers[l];
    gemm_weights *w[4] = {&layer->qkv, &layer->out, &layer->up, &layer->down};
    for (int i = 0; i < 4; i++) {
      *w[i] = (gemm_weights){.k = s[i].k, .n = s[i].n, .panels = panels};
      w[i]->bias = bert_carve(&at, gemm_pad(s[i].n, GEMM_PANEL));
      w[i]->scales = bert_carve(&at, gemm_pad(s[i].n, GEMM_PANEL));
      panels += gemm_panels(s[i].n) * gemm_panel_bytes(bert->weights, s[i].k);
    }
    layer->gain1 = bert_carve(&at, c->hidden);
    layer->shift1 = bert_carve(&at, c->hidden);
    layer->gain2 = bert_carve(&at, c->hidden);
    layer->shift2 = bert_carve(&at, c->hidden);
  }
}

lode_status embed_bert_init(embed_bert *bert, const embed_bert_config *config, const gemm_kernel *kernel, bool narrow,
                            lode_error *err) {
  *bert = (embed_bert){.config = *config, .kernel = kernel};
  bert->weights = narrow ? &kernel->narrow : &kernel->full;
  bert->attention = bert->weights->scaled ? &kernel->full : bert->weights; /* keys and values have no scales */
  embed_bert_sizes sizes;
  TRY(embed_bert_measure(config, &sizes, err));
  bert->layers = mem_calloc(config->layers, sizeof *bert->layers);
  bert->vectors = mem_alloc_aligned(64, sizes.vectors * sizeof(float));
  bert->panels = mem_alloc_large(bert_panels_bytes(config, bert->weights));
  if (!bert->layers || !bert->vectors || !bert->panels) {
    embed_bert_release(bert);
    return err_nomem(err);
  }
  bert_bind(bert);
  return LODE_OK;
}

void embed_bert_release(embed_bert *bert) {
  mem_free(bert->vectors);
  mem_free(bert->panels);
  mem_free(bert->layers);
  embed_encode_scratch_free(atomic_load(&bert->scratch));
  *bert = (embed_bert){0};
}

/* ---- From tensors ---- */

lode_status embed_bert_tensor(const embed_safetensors *file, const char *name, uint64_t rows, uint64_t columns,
                              const embed_tensor **tensor, lode_error *err) {
  char prefixed[160];
  snprintf(prefixed, sizeof prefixed, "bert.%s", name);
  const embed_tensor *t = embed_safetensors_find(file, str_of(name));
  if (!t) t = embed_safetensors_find(file, str_of(prefixed));
  if (!t) return err_set(err, LODE_CORRUPT, "the weights have no tensor %s", name);
  if (t->dims != (columns ? 2u : 1u) || t->shape[0] != rows || (columns && t->shape[1] != columns))
    return err_set(err, LODE_CORRUPT, "the tensor %s has not the shape that config.json asks for", name);
  *tensor = t;
  return LODE_OK;
}

static lode_status bert_load_vector(const embed_safetensors *file, const char *name, size_t n, float *out,
                                    lode_error *err) {
  const embed_tensor *t;
  TRY(embed_bert_tensor(file, name, n, 0, &t, err));
  return embed_safetensors_read(file, t, 0, n, out, err);
}

static lode_status bert_load_matrix(const embed_safetensors *file, const char *name, size_t n, size_t k, float *out,
                                    lode_error *err) {
  const embed_tensor *t;
  TRY(embed_bert_tensor(file, name, n, k, &t, err));
  return embed_safetensors_read(file, t, 0, n * k, out, err);
}

/* Loads `parts` linear layers, stacked, as one. `w` has room for all of them, `spare` for a panel of floats. */
static lode_status bert_load_linear(const gemm_arithmetic *how, gemm_weights *to, const embed_safetensors *file,
                                    unsigned layer, const char *const *parts, size_t n_parts, float *w, float *spare,
                                    lode_error *err) {
  size_t n = to->n / n_parts, k = to->k;
  char name[128];
  memset(to->bias, 0, gemm_pad(to->n, GEMM_PANEL) * sizeof(float));
  for (size_t i = 0; i < n_parts; i++) {
    snprintf(name, sizeof name, "encoder.layer.%u.%s.weight", layer, parts[i]);
    TRY(bert_load_matrix(file, name, n, k, w + i * n * k, err));
    snprintf(name, sizeof name, "encoder.layer.%u.%s.bias", layer, parts[i]);
    TRY(bert_load_vector(file, name, n, to->bias + i * n, err));
  }
  for (size_t i = 0; i < to->n * k; i++)
    if (!isfinite(w[i]))
      return err_set(err, LODE_CORRUPT, "the weights of layer %u have a value that is not finite", layer);
  for (size_t o = 0; o < gemm_pad(to->n, GEMM_PANEL); o++)
    to->scales[o] = o < to->n ? gemm_weight_scale(w + o * k, k) : 1;
  for (size_t o = 0; o < to->n; o += GEMM_PANEL) {
    gemm_pack_panel(w + o * k, k, to->n - o < GEMM_PANEL ? to->n - o : GEMM_PANEL, k, spare);
    gemm_weights_put(how, to, o / GEMM_PANEL, spare);
  }
  return LODE_OK;
}

static lode_status bert_load_norm(const embed_safetensors *file, unsigned layer, const char *which, size_t n,
                                  float *gain, float *shift, lode_error *err) {
  char name[128];
  snprintf(name, sizeof name, "encoder.layer.%u.%s.weight", layer, which);
  TRY(bert_load_vector(file, name, n, gain, err));
  snprintf(name, sizeof name, "encoder.layer.%u.%s.bias", layer, which);
  return bert_load_vector(file, name, n, shift, err);
}

static lode_status bert_load_layer(embed_bert *bert, const embed_safetensors *file, unsigned l, float *w, float *spare,
                                   lode_error *err) {
  static const char *const qkv[] = {"attention.self.query", "attention.self.key", "attention.self.value"};
  static const char *const out[] = {"attention.output.dense"}, *const up[] = {"intermediate.dense"},
                           *const down[] = {"output.dense"};
  embed_bert_layer *layer = &bert->layers[l];
  TRY(bert_load_linear(bert->weights, &layer->qkv, file, l, qkv, 3, w, spare, err));
  TRY(bert_load_linear(bert->weights, &layer->out, file, l, out, 1, w, spare, err));
  TRY(bert_load_linear(bert->weights, &layer->up, file, l, up, 1, w, spare, err));
  TRY(bert_load_linear(bert->weights, &layer->down, file, l, down, 1, w, spare, err));
  TRY(bert_load_norm(file, l, "attention.output.LayerNorm", bert->config.hidden, layer->gain1, layer->shift1, err));
  return bert_load_norm(file, l, "output.LayerNorm", bert->config.hidden, layer->gain2, layer->shift2, err);
}

static lode_status bert_load_embeddings(embed_bert *bert, const embed_safetensors *file, lode_error *err) {
  const embed_bert_config *c = &bert->config;
  TRY(bert_load_matrix(file, "embeddings.position_embeddings.weight", c->positions, c->hidden, bert->positions, err));
  const embed_tensor *types = embed_safetensors_find(file, STR_LIT("embeddings.token_type_embeddings.weight"));
  if (!types) types = embed_safetensors_find(file, STR_LIT("bert.embeddings.token_type_embeddings.weight"));
  if (!types || types->dims != 2 || types->shape[0] < 1 || types->shape[1] != c->hidden)
    return err_set(err, LODE_CORRUPT, "the weights have no token types of the right shape");
  TRY(embed_safetensors_read(file, types, 0, c->hidden, bert->gain, err)); /* gain is not loaded yet: used as scratch */
  for (size_t p = 0; p < c->positions; p++)
    for (size_t i = 0; i < c->hidden; i++) bert->positions[p * c->hidden + i] += bert->gain[i];
  TRY(bert_load_vector(file, "embeddings.LayerNorm.weight", c->hidden, bert->gain, err));
  return bert_load_vector(file, "embeddings.LayerNorm.bias", c->hidden, bert->shift, err);
}

lode_status embed_bert_load(embed_bert *bert, const embed_safetensors *file, lode_progress progress, lode_error *err) {
  const embed_bert_config *c = &bert->config;
  TRY(bert_load_embeddings(bert, file, err));
  size_t deepest = c->inner > c->hidden ? c->inner : c->hidden;
  size_t largest =
      gemm_pad((size_t)c->hidden * (3 * (size_t)c->hidden > c->inner ? 3 * (size_t)c->hidden : c->inner), 16);
  float *w = mem_alloc_aligned(64, (largest + deepest * GEMM_PANEL) * sizeof *w);
  if (!w) return err_nomem(err);
  lode_status st = LODE_OK;
  for (uint32_t l = 0; l < c->layers && st == LODE_OK; l++) {
    st = err_progress(progress, "packing weights", l, c->layers, err);
    if (st == LODE_OK) st = bert_load_layer(bert, file, l, w, w + largest, err);
  }
  mem_free(w);
  return st;
}
