/* SPDX-License-Identifier: Apache-2.0 */
/* chroma_config.c - a collection's configuration, as Chroma's clients send it and read it back. Only the space (the
 * metric) and the embedding function have a meaning; the HNSW parameters are stored and echoed. See chroma.h. */
#include "chroma/chroma.h"

typedef struct hnsw_number {
  const char *name;
  size_t offset;
} hnsw_number;

static const hnsw_number hnsw_numbers[] = {{"ef_construction", offsetof(chroma_config, ef_construction)},
                                           {"ef_search", offsetof(chroma_config, ef_search)},
                                           {"max_neighbors", offsetof(chroma_config, max_neighbors)},
                                           {"sync_threshold", offsetof(chroma_config, sync_threshold)},
                                           {0}};

static bool conf_is(lode_str s, const char *name) { return str_eq(s, str_of(name)); }

static bool conf_number(const json_node *x, double *value) {
  if (x->type == JSON_NODE_INT)
    *value = (double)x->u.i;
  else if (x->type == JSON_NODE_DOUBLE)
    *value = x->u.d;
  else
    return false;
  return true;
}

/* Sets one field of an hnsw or spann object; returns what is wrong, or NULL. */
static const char *conf_set_field(chroma_config *config, lode_str key, const json_node *x, bool strict) {
  double number;
  if (x->type == JSON_NODE_NULL) return NULL;
  if (conf_is(key, "space")) {
    bool known = x->type == JSON_NODE_STRING && lode_metric_parse(x->u.s, &config->metric);
    return known ? NULL : "space must be l2, cosine or ip";
  }
  if (conf_is(key, "resize_factor"))
    return conf_number(x, &config->resize_factor) ? NULL : "resize_factor must be a number";
  for (const hnsw_number *f = hnsw_numbers; f->name; f++) {
    if (!conf_is(key, f->name)) continue;
    if (!conf_number(x, &number) || number < 0 || number > 1e15)
      return "the figures of hnsw must be numbers that are not negative";
    *(uint64_t *)(void *)((char *)config + f->offset) = (uint64_t)number;
    return NULL;
  }
  if (!strict || conf_is(key, "num_threads") || conf_is(key, "batch_size")) return NULL;
  return "unknown field in hnsw";
}

static const char *conf_set_fields(chroma_config *config, const json_doc *json, uint32_t node, bool strict) {
  const char *wrong = json->nodes[node].type == JSON_NODE_OBJECT ? NULL : "hnsw must be an object";
  for (uint32_t i = node + 1; !wrong && i < json->nodes[node].next; i = json->nodes[i + 1].next)
    wrong = conf_set_field(config, json->nodes[i].u.s, &json->nodes[i + 1], strict);
  return wrong;
}

static chroma_config conf_defaults(lode_metric metric) {
  return (chroma_config){.metric = metric,
                         .ef_construction = 100,
                         .ef_search = 100,
                         .max_neighbors = 16,
                         .sync_threshold = 1000,
                         .resize_factor = 1.2};
}

/* Applies a configuration object of a request. */
static bool conf_apply(chroma_request *c, uint32_t node, chroma_config *config) {
  if (chroma_body_node(c, node)->type != JSON_NODE_OBJECT)
    return chroma_bad_shape(c, "the configuration must be an object");
  uint32_t hnsw = chroma_body_key(c, node, "hnsw"), spann = chroma_body_key(c, node, "spann");
  uint32_t ef = chroma_body_key(c, node, "embedding_function");
  const char *wrong = hnsw ? conf_set_fields(config, &c->json, hnsw, true) : NULL;
  if (!wrong && spann) wrong = conf_set_fields(config, &c->json, spann, false);
  if (wrong) return chroma_bad_shape(c, "Invalid configuration: %s", wrong);
  if (ef) config->embedding_function = chroma_body_subtree(c, ef);
  return !ef || config->embedding_function.data || chroma_respond_status(c, err_nomem(&c->err));
}

/* The legacy form: {"hnsw:space":"cosine","hnsw:M":32}. */
static bool conf_apply_metadata(chroma_request *c, uint32_t node, chroma_config *config) {
  static const char *const names[][2] = {
      {"construction_ef", "ef_construction"}, {"search_ef", "ef_search"}, {"M", "max_neighbors"}};
  if (chroma_body_node(c, node)->type != JSON_NODE_OBJECT) return chroma_bad_shape(c, "the metadata must be an object");
  for (uint32_t i = node + 1; i < chroma_body_node(c, node)->next; i = chroma_body_node(c, i + 1)->next) {
    lode_str key = chroma_body_node(c, i)->u.s;
    if (key.len <= 5 || memcmp(key.data, "hnsw:", 5) != 0) continue;
    key = (lode_str){key.data + 5, key.len - 5};
    for (size_t n = 0; n < 3; n++)
      if (conf_is(key, names[n][0])) key = str_of(names[n][1]);
    const char *wrong = conf_set_field(config, key, chroma_body_node(c, i + 1), false);
    if (wrong) return chroma_invalid(c, "Invalid metadata: %s", wrong);
  }
  return true;
}

static uint32_t conf_path(const chroma_request *c, uint32_t node, const char *const *keys, size_t n) {
  for (size_t i = 0; node && i < n; i++) {
    if (chroma_body_node(c, node)->type != JSON_NODE_OBJECT) return 0;
    node = chroma_body_key(c, node, keys[i]);
  }
  return node;
}

/* A schema is stored and echoed; only the space in it is used. */
static bool conf_apply_schema(chroma_request *c, uint32_t node, chroma_config *config) {
  static const char *const all[] = {"defaults", "float_list", "vector_index", "config", "space"};
  static const char *const own[] = {"keys", "#embedding", "float_list", "vector_index", "config", "space"};
  if (chroma_body_node(c, node)->type != JSON_NODE_OBJECT) return chroma_bad_shape(c, "the schema must be an object");
  uint32_t space = conf_path(c, node, own, 6);
  if (!space) space = conf_path(c, node, all, 5);
  const char *wrong = space ? conf_set_field(config, STR_LIT("space"), chroma_body_node(c, space), true) : NULL;
  if (wrong) return chroma_bad_shape(c, "Invalid schema: %s", wrong);
  config->schema = chroma_body_subtree(c, node);
  return config->schema.data || chroma_respond_status(c, err_nomem(&c->err));
}

bool chroma_config_new(chroma_request *c, chroma_config *config) {
  uint32_t given = chroma_body_key(c, 0, "configuration"), metadata = chroma_body_key(c, 0, "metadata"),
           schema = chroma_body_key(c, 0, "schema");
  *config = conf_defaults(LODE_L2);
  if (metadata && !conf_apply_metadata(c, metadata, config)) return false;
  if (schema && !conf_apply_schema(c, schema, config)) return false;
  return !given || conf_apply(c, given, config);
}

bool chroma_config_update(chroma_request *c, chroma_config *config) {
  uint32_t given = chroma_body_key(c, 0, "new_configuration");
  lode_metric metric = config->metric;
  if (!given) return true;
  if (!conf_apply(c, given, config)) return false;
  return config->metric == metric || chroma_invalid(c, "the space of a collection cannot be changed");
}

static lode_str conf_copy_node(chroma_request *c, const json_doc *json, uint32_t node) {
  strbuf text = {0};
  lode_str copy = {0};
  if (!node || json->nodes[node].type == JSON_NODE_NULL) return copy;
  json_put_node(&text, json, node);
  if (!text.failed) copy = (lode_str){mem_arena_copy(&c->arena, text.data, text.len), text.len};
  strbuf_release(&text);
  return copy;
}

void chroma_config_load(chroma_request *c, const json_doc *json, uint32_t node, lode_metric metric,
                        chroma_config *config) {
  *config = conf_defaults(metric);
  if (!node || json->nodes[node].type != JSON_NODE_OBJECT) return;
  uint32_t own = json_get(json, node, STR_LIT("configuration"));
  config->schema = conf_copy_node(c, json, json_get(json, node, STR_LIT("schema")));
  if (!own || json->nodes[own].type != JSON_NODE_OBJECT) return;
  uint32_t hnsw = json_get(json, own, STR_LIT("hnsw"));
  if (hnsw) (void)conf_set_fields(config, json, hnsw, false); /* invalid fields keep their defaults */
  config->metric = metric;
  config->embedding_function = conf_copy_node(c, json, json_get(json, own, STR_LIT("embedding_function")));
}

void chroma_config_put(strbuf *out, const chroma_config *config) {
  strbuf_addf(out,
              "{\"hnsw\":{\"space\":\"%s\",\"ef_construction\":%llu,\"ef_search\":%llu,\"max_neighbors\":%llu,\"resize_"
              "factor\":",
              lode_metric_name(config->metric), (unsigned long long)config->ef_construction,
              (unsigned long long)config->ef_search, (unsigned long long)config->max_neighbors);
  json_put_double(out, config->resize_factor);
  strbuf_addf(out, ",\"sync_threshold\":%llu},\"spann\":null,\"embedding_function\":",
              (unsigned long long)config->sync_threshold);
  if (config->embedding_function.data)
    strbuf_add(out, config->embedding_function.data, config->embedding_function.len);
  else
    strbuf_addstr(out, "null");
  strbuf_addch(out, '}');
}

static void conf_put_vector_index(strbuf *out, const chroma_config *config, bool enabled) {
  strbuf_addf(out, "{\"float_list\":{\"vector_index\":{\"enabled\":%s,\"config\":{\"space\":\"%s\"",
              enabled ? "true" : "false", lode_metric_name(config->metric));
  if (config->embedding_function.data) {
    strbuf_addstr(out, ",\"embedding_function\":");
    strbuf_add(out, config->embedding_function.data, config->embedding_function.len);
  }
  if (enabled) strbuf_addstr(out, ",\"source_key\":\"#document\"");
  strbuf_addf(out,
              ",\"hnsw\":{\"ef_construction\":%llu,\"max_neighbors\":%llu,\"ef_search\":%llu,\"num_threads\":2,\"batch_"
              "size\":100,"
              "\"sync_threshold\":%llu,\"resize_factor\":",
              (unsigned long long)config->ef_construction, (unsigned long long)config->max_neighbors,
              (unsigned long long)config->ef_search, (unsigned long long)config->sync_threshold);
  json_put_double(out, config->resize_factor);
  strbuf_addstr(out, "}}}}}");
}

void chroma_schema_put(strbuf *out, const chroma_config *config) {
  if (config->schema.data) {
    strbuf_add(out, config->schema.data, config->schema.len);
    return;
  }
  strbuf_addstr(out, "{\"defaults\":");
  conf_put_vector_index(out, config, false);
  out->len -= out->len > 0; /* more members follow */
  strbuf_addstr(out, ",\"string\":{\"fts_index\":{\"enabled\":false,\"config\":{}},\"string_inverted_index\":{"
                     "\"enabled\":true,\"config\":{}}},"
                     "\"sparse_vector\":{\"sparse_vector_index\":{\"enabled\":false,\"config\":{\"embedding_function\":"
                     "{\"type\":\"unknown\"},\"bm25\":false}}},"
                     "\"int\":{\"int_inverted_index\":{\"enabled\":true,\"config\":{}}},\"float\":{\"float_inverted_"
                     "index\":{\"enabled\":true,\"config\":{}}},"
                     "\"bool\":{\"bool_inverted_index\":{\"enabled\":true,\"config\":{}}}},\"keys\":{\"#embedding\":");
  conf_put_vector_index(out, config, true);
  strbuf_addstr(out, ",\"#document\":{\"string\":{\"fts_index\":{\"enabled\":true,\"config\":{}},\"string_inverted_"
                     "index\":{\"enabled\":false,\"config\":{}}}}}}");
}
