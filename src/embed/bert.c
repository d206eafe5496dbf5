/* bert.c - weights of an encoder in memory; see bert.h. */
#include "embed/bert.h"

#include <math.h>
#include <stdatomic.h>

#include "base/json.h"

/* ---- Configuration ---- */

static lode_status number(const json_doc *json, const char *key, uint32_t low, uint32_t high, uint32_t *out, lode_error *err) {
  uint32_t i = json_get(json, 0, str_of(key));
  if (!i || json->nodes[i].type != JSON_NODE_INT || json->nodes[i].u.i < low || json->nodes[i].u.i > high)
    return err_set(err, LODE_CORRUPT, "config.json: %s is missing, or not between %u and %u", key, low, high);
  *out = (uint32_t)json->nodes[i].u.i;
  return LODE_OK;
}

/* A member that may be absent, and if it is there must be this text. */
static lode_status must_be(const json_doc *json, const char *key, const char *want, lode_error *err) {
  uint32_t i = json_get(json, 0, str_of(key));
  if (!i || json->nodes[i].type == JSON_NODE_NULL) return LODE_OK;
  if (json->nodes[i].type == JSON_NODE_STRING && str_eq(json->nodes[i].u.s, str_of(want))) return LODE_OK;
  return err_set(err, LODE_UNSUPPORTED, "config.json: only models whose %s is \"%s\" are supported", key, want);
}

static lode_status parse(json_doc *json, const char *what, lode_str text, lode_error *err) {
  lode_error why = {0};
  json_limits limits = {.max_nodes = 1u << 20, .max_depth = 64};
  lode_status st = json_parse(json, text, &limits, &why);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK) return err_set(err, LODE_CORRUPT, "%s: %s", what, why.text);
  if (json->nodes[0].type != JSON_NODE_OBJECT) return err_set(err, LODE_CORRUPT, "%s is not a JSON object", what);
  return LODE_OK;
}

static lode_status read_config(lode__bert_config *c, const json_doc *json, lode_error *err) {
  TRY(must_be(json, "model_type", "bert", err));
  TRY(must_be(json, "hidden_act", "gelu", err));
  TRY(must_be(json, "position_embedding_type", "absolute", err));
  TRY(number(json, "hidden_size", 1, 8192, &c->hidden, err));
  TRY(number(json, "num_hidden_layers", 1, 128, &c->layers, err));
  TRY(number(json, "num_attention_heads", 1, 256, &c->heads, err));
  TRY(number(json, "intermediate_size", 1, 32768, &c->inner, err));
  TRY(number(json, "max_position_embeddings", 2, 65536, &c->positions, err));
  TRY(number(json, "vocab_size", 1, LODE__VOCAB_MAX, &c->words, err));
  c->epsilon = 1e-12f;
  uint32_t i = json_get(json, 0, STR_LIT("layer_norm_eps"));
  if (i && json->nodes[i].type == JSON_NODE_DOUBLE) c->epsilon = (float)json->nodes[i].u.d;
  if (!(c->epsilon >= 0 && c->epsilon < 1)) return err_set(err, LODE_CORRUPT, "config.json: layer_norm_eps is out of range");
  lode__bert_sizes sizes;
  return lode__bert_measure(c, &sizes, err);
}

lode_status lode__bert_config_read(lode__bert_config *config, lode_str text, lode_error *err) {
  *config = (lode__bert_config){0};
  json_doc json = {0};
  lode_status st = parse(&json, "config.json", text, err);
  if (st == LODE_OK) st = read_config(config, &json, err);
  json_release(&json);
  return st;
}

lode_status lode__bert_pooling_read(lode__bert_config *config, lode_str text, lode_error *err) {
  json_doc json = {0};
  lode_status st = parse(&json, "1_Pooling/config.json", text, err);
  if (st == LODE_OK) {
    uint32_t first = json_get(&json, 0, STR_LIT("pooling_mode_cls_token"));
    uint32_t mean = json_get(&json, 0, STR_LIT("pooling_mode_mean_tokens"));
    bool is_first = first && json.nodes[first].type == JSON_NODE_TRUE, is_mean = mean && json.nodes[mean].type == JSON_NODE_TRUE;
    if (is_first == is_mean)
      st = err_set(err, LODE_UNSUPPORTED, "1_Pooling/config.json: either the mean or the first token must be the vector");
    config->first_token = is_first;
  }
  json_release(&json);
  return st;
}

/* ---- Blocks ---- */

typedef struct shape {
  size_t k, n;
} shape;

static void shapes(const lode__bert_config *c, shape out[4]) {
  out[0] = (shape){c->hidden, 3 * (size_t)c->hidden};
  out[1] = (shape){c->hidden, c->hidden};
  out[2] = (shape){c->hidden, c->inner};
  out[3] = (shape){c->inner, c->hidden};
}

lode_status lode__bert_measure(const lode__bert_config *c, lode__bert_sizes *sizes, lode_error *err) {
  *sizes = (lode__bert_sizes){0};
  if (c->heads == 0 || c->hidden % c->heads != 0 || c->hidden / c->heads > 256)
    return err_set(err, LODE_CORRUPT, "a hidden size of %u cannot be shared by %u heads of at most 256", c->hidden, c->heads);
  /* bounded by the limits of read_config: no product leaves 64 bits */
  shape s[4];
  shapes(c, s);
  size_t vectors = 4 * (size_t)c->hidden, panels = 0;
  for (int i = 0; i < 4; i++) {
    size_t padded = lode__pad(s[i].n, LODE__PANEL);
    vectors += 2 * padded;
    panels += padded * s[i].k;
  }
  sizes->vectors = (size_t)c->positions * c->hidden + 2 * (size_t)c->hidden + c->layers * vectors;
  sizes->panels = c->layers * panels;
  if (sizes->panels > (size_t)1 << 30) return err_set(err, LODE_LIMIT, "the model has more than 2^30 weights");
  return LODE_OK;
}

static size_t block_bytes(const lode__bert_config *c, const lode__arithmetic *how) {
  size_t bytes = 0;
  shape s[4];
  shapes(c, s);
  for (int i = 0; i < 4; i++) bytes += lode__panels(s[i].n) * lode__panel_bytes(how, s[i].k);
  return c->layers * bytes;
}

static float *take(float **at, size_t n) {
  float *p = *at;
  *at += n;
  return p;
}

static void bind(lode__bert *bert) {
  const lode__bert_config *c = &bert->config;
  float *at = bert->vectors;
  char *panels = bert->panels;
  shape s[4];
  shapes(c, s);
  bert->positions = take(&at, (size_t)c->positions * c->hidden);
  bert->gain = take(&at, c->hidden);
  bert->shift = take(&at, c->hidden);
  for (uint32_t l = 0; l < c->layers; l++) {
    lode__bert_layer *layer = &bert->layers[l];
    lode__weights *w[4] = {&layer->qkv, &layer->out, &layer->up, &layer->down};
    for (int i = 0; i < 4; i++) {
      *w[i] = (lode__weights){.k = s[i].k, .n = s[i].n, .panels = panels};
      w[i]->bias = take(&at, lode__pad(s[i].n, LODE__PANEL));
      w[i]->scales = take(&at, lode__pad(s[i].n, LODE__PANEL));
      panels += lode__panels(s[i].n) * lode__panel_bytes(bert->weights, s[i].k);
    }
    layer->gain1 = take(&at, c->hidden);
    layer->shift1 = take(&at, c->hidden);
    layer->gain2 = take(&at, c->hidden);
    layer->shift2 = take(&at, c->hidden);
  }
}

lode_status lode__bert_init(lode__bert *bert, const lode__bert_config *config, const lode__gemm_kernel *kernel, bool narrow,
                            lode_error *err) {
  *bert = (lode__bert){.config = *config, .kernel = kernel};
  bert->weights = narrow ? &kernel->narrow : &kernel->full;
  bert->attention = bert->weights->scaled ? &kernel->full : bert->weights; /* keys and values have no scales made for them */
  lode__bert_sizes sizes;
  TRY(lode__bert_measure(config, &sizes, err));
  bert->layers = mem_calloc(config->layers, sizeof *bert->layers);
  bert->vectors = mem_alloc_aligned(64, sizes.vectors * sizeof(float));
  bert->panels = mem_alloc_large(block_bytes(config, bert->weights));
  if (!bert->layers || !bert->vectors || !bert->panels) {
    lode__bert_release(bert);
    return err_nomem(err);
  }
  bind(bert);
  return LODE_OK;
}

void lode__bert_release(lode__bert *bert) {
  mem_free(bert->vectors);
  mem_free(bert->panels);
  mem_free(bert->layers);
  lode__encode_room_free(atomic_load(&bert->room));
  *bert = (lode__bert){0};
}

/* ---- From tensors ---- */

lode_status lode__bert_tensor(const lode__safetensors *file, const char *name, uint64_t rows, uint64_t columns,
                              const lode__tensor **tensor, lode_error *err) {
  char prefixed[160];
  snprintf(prefixed, sizeof prefixed, "bert.%s", name);
  const lode__tensor *t = lode__safetensors_find(file, str_of(name));
  if (!t) t = lode__safetensors_find(file, str_of(prefixed));
  if (!t) return err_set(err, LODE_CORRUPT, "the weights have no tensor %s", name);
  if (t->dims != (columns ? 2u : 1u) || t->shape[0] != rows || (columns && t->shape[1] != columns))
    return err_set(err, LODE_CORRUPT, "the tensor %s has not the shape that config.json asks for", name);
  *tensor = t;
  return LODE_OK;
}

static lode_status vector(const lode__safetensors *file, const char *name, size_t n, float *out, lode_error *err) {
  const lode__tensor *t;
  TRY(lode__bert_tensor(file, name, n, 0, &t, err));
  return lode__safetensors_read(file, t, 0, n, out, err);
}

static lode_status matrix(const lode__safetensors *file, const char *name, size_t n, size_t k, float *out, lode_error *err) {
  const lode__tensor *t;
  TRY(lode__bert_tensor(file, name, n, k, &t, err));
  return lode__safetensors_read(file, t, 0, n * k, out, err);
}

/* `parts` linear layers, one below the other, as one. `w` has room for all of them, `spare` for a panel of floats. */
static lode_status linear(const lode__arithmetic *how, lode__weights *to, const lode__safetensors *file, unsigned layer,
                          const char *const *parts, size_t n_parts, float *w, float *spare, lode_error *err) {
  size_t n = to->n / n_parts, k = to->k;
  char name[128];
  memset(to->bias, 0, lode__pad(to->n, LODE__PANEL) * sizeof(float));
  for (size_t i = 0; i < n_parts; i++) {
    snprintf(name, sizeof name, "encoder.layer.%u.%s.weight", layer, parts[i]);
    TRY(matrix(file, name, n, k, w + i * n * k, err));
    snprintf(name, sizeof name, "encoder.layer.%u.%s.bias", layer, parts[i]);
    TRY(vector(file, name, n, to->bias + i * n, err));
  }
  for (size_t i = 0; i < to->n * k; i++)
    if (!isfinite(w[i])) return err_set(err, LODE_CORRUPT, "the weights of layer %u have a value that is not finite", layer);
  for (size_t o = 0; o < lode__pad(to->n, LODE__PANEL); o++) to->scales[o] = o < to->n ? lode__weight_scale(w + o * k, k) : 1;
  for (size_t o = 0; o < to->n; o += LODE__PANEL) {
    lode__panel_pack(w + o * k, k, to->n - o < LODE__PANEL ? to->n - o : LODE__PANEL, k, spare);
    lode__weights_put(how, to, o / LODE__PANEL, spare);
  }
  return LODE_OK;
}

static lode_status norm(const lode__safetensors *file, unsigned layer, const char *which, size_t n, float *gain, float *shift,
                        lode_error *err) {
  char name[128];
  snprintf(name, sizeof name, "encoder.layer.%u.%s.weight", layer, which);
  TRY(vector(file, name, n, gain, err));
  snprintf(name, sizeof name, "encoder.layer.%u.%s.bias", layer, which);
  return vector(file, name, n, shift, err);
}

static lode_status fill_layer(lode__bert *bert, const lode__safetensors *file, unsigned l, float *w, float *spare, lode_error *err) {
  static const char *const qkv[] = {"attention.self.query", "attention.self.key", "attention.self.value"};
  static const char *const out[] = {"attention.output.dense"}, *const up[] = {"intermediate.dense"}, *const down[] = {"output.dense"};
  lode__bert_layer *layer = &bert->layers[l];
  TRY(linear(bert->weights, &layer->qkv, file, l, qkv, 3, w, spare, err));
  TRY(linear(bert->weights, &layer->out, file, l, out, 1, w, spare, err));
  TRY(linear(bert->weights, &layer->up, file, l, up, 1, w, spare, err));
  TRY(linear(bert->weights, &layer->down, file, l, down, 1, w, spare, err));
  TRY(norm(file, l, "attention.output.LayerNorm", bert->config.hidden, layer->gain1, layer->shift1, err));
  return norm(file, l, "output.LayerNorm", bert->config.hidden, layer->gain2, layer->shift2, err);
}

static lode_status fill_embeddings(lode__bert *bert, const lode__safetensors *file, lode_error *err) {
  const lode__bert_config *c = &bert->config;
  TRY(matrix(file, "embeddings.position_embeddings.weight", c->positions, c->hidden, bert->positions, err));
  const lode__tensor *types = lode__safetensors_find(file, STR_LIT("embeddings.token_type_embeddings.weight"));
  if (!types) types = lode__safetensors_find(file, STR_LIT("bert.embeddings.token_type_embeddings.weight"));
  if (!types || types->dims != 2 || types->shape[0] < 1 || types->shape[1] != c->hidden)
    return err_set(err, LODE_CORRUPT, "the weights have no token types of the right shape");
  TRY(lode__safetensors_read(file, types, 0, c->hidden, bert->gain, err)); /* gain: free as yet */
  for (size_t p = 0; p < c->positions; p++)
    for (size_t i = 0; i < c->hidden; i++) bert->positions[p * c->hidden + i] += bert->gain[i];
  TRY(vector(file, "embeddings.LayerNorm.weight", c->hidden, bert->gain, err));
  return vector(file, "embeddings.LayerNorm.bias", c->hidden, bert->shift, err);
}

lode_status lode__bert_fill(lode__bert *bert, const lode__safetensors *file, lode_progress progress, lode_error *err) {
  const lode__bert_config *c = &bert->config;
  TRY(fill_embeddings(bert, file, err));
  size_t deepest = c->inner > c->hidden ? c->inner : c->hidden;
  size_t most = lode__pad((size_t)c->hidden * (3 * (size_t)c->hidden > c->inner ? 3 * (size_t)c->hidden : c->inner), 16);
  float *w = mem_alloc_aligned(64, (most + deepest * LODE__PANEL) * sizeof *w);
  if (!w) return err_nomem(err);
  lode_status st = LODE_OK;
  for (uint32_t l = 0; l < c->layers && st == LODE_OK; l++) {
    if (progress.step && !progress.step(progress.ctx, "packing weights", l, c->layers))
      st = err_set(err, LODE_CANCELLED, "cancelled");
    else
      st = fill_layer(bert, file, l, w, w + most, err);
  }
  mem_free(w);
  return st;
}
