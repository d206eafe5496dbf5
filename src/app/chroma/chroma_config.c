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
                                           {"num_threads", offsetof(chroma_config, num_threads)},
                                           {"batch_size", offsetof(chroma_config, batch_size)},
                                           {"sync_threshold", offsetof(chroma_config, sync_threshold)},
                                           {0}};

#define CONF_UNKNOWN "unknown field in hnsw"

static bool conf_is(lode_str s, const char *name) { return str_eq(s, str_of(name)); }

const char *chroma_config_set(chroma_config *config, lode_str key, const json_node *x) {
  if (x->type == JSON_NODE_NULL) return NULL;
  if (conf_is(key, "space")) {
    bool known = x->type == JSON_NODE_STRING && lode_metric_parse(x->u.s, &config->metric);
    return known ? NULL : "space must be l2, cosine or ip";
  }
  if (conf_is(key, "resize_factor")) {
    if (x->type != JSON_NODE_INT && x->type != JSON_NODE_DOUBLE) return "resize_factor must be a number";
    config->resize_factor = x->type == JSON_NODE_INT ? (double)x->u.i : x->u.d;
    return NULL;
  }
  for (const hnsw_number *f = hnsw_numbers; f->name; f++) {
    if (!conf_is(key, f->name)) continue;
    if (x->type != JSON_NODE_INT || x->u.i < 0) return "the figures of hnsw must be integers that are not negative";
    *(uint64_t *)(void *)((char *)config + f->offset) = (uint64_t)x->u.i;
    return NULL;
  }
  return CONF_UNKNOWN;
}

const char *chroma_config_set_hnsw(chroma_config *config, const json_doc *json, uint32_t node) {
  const char *wrong = json->nodes[node].type == JSON_NODE_OBJECT ? NULL : "hnsw must be an object";
  for (uint32_t i = node + 1; !wrong && i < json->nodes[node].next; i = json->nodes[i + 1].next)
    wrong = chroma_config_set(config, json->nodes[i].u.s, &json->nodes[i + 1]);
  return wrong;
}

bool chroma_config_knows(const json_doc *json, uint32_t node, const char *const *names) {
  for (uint32_t i = node + 1; i < json->nodes[node].next; i = json->nodes[i + 1].next) {
    size_t at = 0;
    while (names[at] && !conf_is(json->nodes[i].u.s, names[at])) at++;
    if (!names[at]) return false;
  }
  return true;
}

const char *chroma_config_check_spann(const json_doc *json, uint32_t node) {
  static const char *const names[] = {"space",
                                      "search_nprobe",
                                      "write_nprobe",
                                      "ef_construction",
                                      "ef_search",
                                      "max_neighbors",
                                      "reassign_neighbor_count",
                                      "split_threshold",
                                      "merge_threshold",
                                      "search_rng_factor",
                                      "search_rng_epsilon",
                                      "nreplica_count",
                                      "write_rng_factor",
                                      "write_rng_epsilon",
                                      "num_samples_kmeans",
                                      "initial_lambda",
                                      "num_centers_to_merge_to",
                                      "center_drift_threshold",
                                      "quantize",
                                      NULL};
  if (json->nodes[node].type != JSON_NODE_OBJECT) return "spann must be an object";
  return chroma_config_knows(json, node, names) ? NULL : "unknown field in spann";
}

const char *chroma_config_check_function(const json_doc *json, uint32_t node) {
  uint32_t type = json->nodes[node].type == JSON_NODE_OBJECT ? json_get(json, node, STR_LIT("type")) : 0;
  if (!type || json->nodes[type].type != JSON_NODE_STRING) return "embedding_function: missing field `type`";
  lode_str kind = json->nodes[type].u.s;
  if (conf_is(kind, "legacy") || conf_is(kind, "unknown")) return NULL;
  if (!conf_is(kind, "known")) return "embedding_function: type must be legacy, known or unknown";
  uint32_t name = json_get(json, node, STR_LIT("name"));
  if (!name || json->nodes[name].type != JSON_NODE_STRING) return "embedding_function: missing field `name`";
  return json_get(json, node, STR_LIT("config")) ? NULL : "embedding_function: missing field `config`";
}

static chroma_config conf_defaults(lode_metric metric) {
  return (chroma_config){.metric = metric,
                         .ef_construction = 100,
                         .ef_search = 100,
                         .max_neighbors = 16,
                         .num_threads = 2,
                         .batch_size = 100,
                         .sync_threshold = 1000,
                         .resize_factor = 1.2};
}

/* No function, an unknown one and the default one count as default. */
static bool conf_function_is_default(lode_str text) {
  json_doc json = {0};
  if (!text.data || json_parse(&json, text, NULL, NULL) != LODE_OK) return !text.data;
  uint32_t type = json_get(&json, 0, STR_LIT("type")), name = json_get(&json, 0, STR_LIT("name"));
  bool is = (type && conf_is(json.nodes[type].u.s, "unknown")) || (name && conf_is(json.nodes[name].u.s, "default"));
  json_release(&json);
  return is;
}

bool chroma_config_is_default(const chroma_config *config) {
  chroma_config other = conf_defaults(LODE_L2);
  return config->metric == other.metric && config->ef_construction == other.ef_construction &&
         config->ef_search == other.ef_search && config->max_neighbors == other.max_neighbors &&
         config->batch_size == other.batch_size && config->sync_threshold == other.sync_threshold &&
         config->resize_factor == other.resize_factor && conf_function_is_default(config->embedding_function);
}

/* Applies a configuration object of a request. Of spann only the space means something here. */
static bool conf_apply(chroma_request *c, uint32_t node, chroma_config *config) {
  if (chroma_body_node(c, node)->type != JSON_NODE_OBJECT)
    return chroma_bad_shape(c, "the configuration must be an object");
  uint32_t hnsw = chroma_body_key(c, node, "hnsw"), spann = chroma_body_key(c, node, "spann");
  uint32_t ef = chroma_body_key(c, node, "embedding_function");
  const char *wrong = hnsw ? chroma_config_set_hnsw(config, &c->json, hnsw) : NULL;
  if (!wrong && spann) wrong = chroma_config_check_spann(&c->json, spann);
  if (!wrong && ef) wrong = chroma_config_check_function(&c->json, ef);
  uint32_t space = !wrong && spann ? chroma_body_key(c, spann, "space") : 0;
  if (space) wrong = chroma_config_set(config, STR_LIT("space"), chroma_body_node(c, space));
  if (wrong) return chroma_bad_shape(c, "Invalid configuration: %s", wrong);
  if (hnsw && spann) return chroma_invalid(c, "Multiple vector index configurations provided");
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
    const char *wrong = chroma_config_set(config, key, chroma_body_node(c, i + 1));
    if (wrong && !str_eq(str_of(wrong), STR_LIT(CONF_UNKNOWN)))
      return chroma_invalid(c, "Failed to parse hnsw parameters from segment metadata: %s", wrong);
  }
  return true;
}

bool chroma_config_new(chroma_request *c, chroma_config *config) {
  uint32_t given = chroma_body_key(c, 0, "configuration"), metadata = chroma_body_key(c, 0, "metadata"),
           schema = chroma_body_key(c, 0, "schema");
  chroma_config of_schema = conf_defaults(LODE_L2);
  bool differs;
  *config = conf_defaults(LODE_L2);
  if (metadata && !conf_apply_metadata(c, metadata, config)) return false;
  if (given && !conf_apply(c, given, config)) return false;
  if (!schema) return true;
  if (!chroma_schema_read(c, schema, &of_schema, &differs)) return false;
  if (!differs) return true; /* it says nothing that the configuration does not say */
  if (!chroma_config_is_default(config))
    return chroma_invalid(c, "Failed to reconcile schema: Cannot set both collection config and schema simultaneously");
  *config = of_schema;
  return true;
}

bool chroma_config_check_update(chroma_request *c) {
  chroma_config scratch = conf_defaults(LODE_L2);
  uint32_t given = chroma_body_key(c, 0, "new_configuration");
  if (!given) return true;
  if (!conf_apply(c, given, &scratch)) return false;
  uint32_t hnsw = chroma_body_key(c, given, "hnsw"), spann = chroma_body_key(c, given, "spann");
  return !((hnsw && chroma_body_key(c, hnsw, "space")) || (spann && chroma_body_key(c, spann, "space"))) ||
         chroma_bad_shape(c, "Invalid configuration: the space of a collection cannot be changed");
}

bool chroma_config_update(chroma_request *c, chroma_config *config) {
  uint32_t given = chroma_body_key(c, 0, "new_configuration");
  return !given || conf_apply(c, given, config);
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
  if (hnsw && json->nodes[hnsw].type == JSON_NODE_OBJECT)
    for (uint32_t i = hnsw + 1; i < json->nodes[hnsw].next; i = json->nodes[i + 1].next)
      (void)chroma_config_set(config, json->nodes[i].u.s, &json->nodes[i + 1]); /* a wrong one keeps its default */
  config->metric = metric;
  config->embedding_function = conf_copy_node(c, json, json_get(json, own, STR_LIT("embedding_function")));
}

/* `whole`: also what Chroma shows in the schema only. */
static void conf_put(strbuf *out, const chroma_config *config, bool whole) {
  strbuf_addf(out,
              "{\"hnsw\":{\"space\":\"%s\",\"ef_construction\":%llu,\"ef_search\":%llu,\"max_neighbors\":%llu,"
              "\"resize_factor\":",
              lode_metric_name(config->metric), (unsigned long long)config->ef_construction,
              (unsigned long long)config->ef_search, (unsigned long long)config->max_neighbors);
  json_put_double(out, config->resize_factor);
  strbuf_addf(out, ",\"sync_threshold\":%llu", (unsigned long long)config->sync_threshold);
  if (whole)
    strbuf_addf(out, ",\"num_threads\":%llu,\"batch_size\":%llu", (unsigned long long)config->num_threads,
                (unsigned long long)config->batch_size);
  strbuf_addstr(out, "},\"spann\":null,\"embedding_function\":");
  if (config->embedding_function.data)
    strbuf_add(out, config->embedding_function.data, config->embedding_function.len);
  else
    strbuf_addstr(out, "null");
  strbuf_addch(out, '}');
}

void chroma_config_put(strbuf *out, const chroma_config *config) { conf_put(out, config, false); }

void chroma_config_store(strbuf *out, const chroma_config *config) {
  strbuf_addstr(out, "{\"configuration\":");
  conf_put(out, config, true);
  if (config->schema.data) {
    strbuf_addstr(out, ",\"schema\":");
    strbuf_add(out, config->schema.data, config->schema.len);
  }
  strbuf_addch(out, '}');
}
