/* chroma_config.c - a collection's configuration, as Chroma's clients give it and read it back. Only the space (the metric) and the
 * embedding function mean something to lode and to clients; the figures of the HNSW index are kept and echoed. See chroma.h. */
#include "chroma.h"

typedef struct figure {
  const char *name;
  size_t offset;
} figure;

static const figure figures[] = {{"ef_construction", offsetof(lode__chroma_config, ef_construction)},
                                 {"ef_search", offsetof(lode__chroma_config, ef_search)},
                                 {"max_neighbors", offsetof(lode__chroma_config, max_neighbors)},
                                 {"sync_threshold", offsetof(lode__chroma_config, sync_threshold)},
                                 {0}};

static bool is(lode_str s, const char *name) { return str_eq(s, str_of(name)); }

static bool number_of(const json_node *x, double *value) {
  if (x->type == JSON_NODE_INT) *value = (double)x->u.i;
  else if (x->type == JSON_NODE_DOUBLE) *value = x->u.d;
  else return false;
  return true;
}

/* One field of an hnsw or spann object; NULL when it is fine. */
static const char *set_field(lode__chroma_config *config, lode_str key, const json_node *x, bool strict) {
  double number;
  if (x->type == JSON_NODE_NULL) return NULL;
  if (is(key, "space")) {
    bool known = x->type == JSON_NODE_STRING && lode_metric_parse(x->u.s, &config->metric);
    return known ? NULL : "space must be l2, cosine or ip";
  }
  if (is(key, "resize_factor")) return number_of(x, &config->resize_factor) ? NULL : "resize_factor must be a number";
  for (const figure *f = figures; f->name; f++) {
    if (!is(key, f->name)) continue;
    if (!number_of(x, &number) || number < 0 || number > 1e15) return "the figures of hnsw must be numbers that are not negative";
    *(uint64_t *)(void *)((char *)config + f->offset) = (uint64_t)number;
    return NULL;
  }
  if (!strict || is(key, "num_threads") || is(key, "batch_size")) return NULL;
  return "unknown field in hnsw";
}

static const char *set_fields(lode__chroma_config *config, const json_doc *json, uint32_t node, bool strict) {
  const char *wrong = json->nodes[node].type == JSON_NODE_OBJECT ? NULL : "hnsw must be an object";
  for (uint32_t i = node + 1; !wrong && i < json->nodes[node].next; i = json->nodes[i + 1].next)
    wrong = set_field(config, json->nodes[i].u.s, &json->nodes[i + 1], strict);
  return wrong;
}

static lode__chroma_config usual(lode_metric metric) {
  return (lode__chroma_config){.metric = metric, .ef_construction = 100, .ef_search = 100, .max_neighbors = 16, .sync_threshold = 1000,
                               .resize_factor = 1.2};
}

/* A configuration object of a request over what is there. */
static bool apply(lode__chroma *c, uint32_t node, lode__chroma_config *config) {
  if (lode__chroma_node(c, node)->type != JSON_NODE_OBJECT) return lode__chroma_shape(c, "the configuration must be an object");
  uint32_t hnsw = lode__chroma_key(c, node, "hnsw"), spann = lode__chroma_key(c, node, "spann");
  uint32_t ef = lode__chroma_key(c, node, "embedding_function");
  const char *wrong = hnsw ? set_fields(config, &c->json, hnsw, true) : NULL;
  if (!wrong && spann) wrong = set_fields(config, &c->json, spann, false);
  if (wrong) return lode__chroma_shape(c, "Invalid configuration: %s", wrong);
  if (ef) config->embedding_function = lode__chroma_subtree(c, ef);
  return !ef || config->embedding_function.data || lode__chroma_failed(c, err_nomem(&c->err));
}

/* {"hnsw:space":"cosine","hnsw:M":32}: how older clients say it. */
static bool apply_metadata(lode__chroma *c, uint32_t node, lode__chroma_config *config) {
  static const char *const names[][2] = {{"construction_ef", "ef_construction"}, {"search_ef", "ef_search"}, {"M", "max_neighbors"}};
  if (lode__chroma_node(c, node)->type != JSON_NODE_OBJECT) return lode__chroma_shape(c, "the metadata must be an object");
  for (uint32_t i = node + 1; i < lode__chroma_node(c, node)->next; i = lode__chroma_node(c, i + 1)->next) {
    lode_str key = lode__chroma_node(c, i)->u.s;
    if (key.len <= 5 || memcmp(key.data, "hnsw:", 5) != 0) continue;
    key = (lode_str){key.data + 5, key.len - 5};
    for (size_t n = 0; n < 3; n++)
      if (is(key, names[n][0])) key = str_of(names[n][1]);
    const char *wrong = set_field(config, key, lode__chroma_node(c, i + 1), false);
    if (wrong) return lode__chroma_invalid(c, "Invalid metadata: %s", wrong);
  }
  return true;
}

static uint32_t walk(const lode__chroma *c, uint32_t node, const char *const *keys, size_t n) {
  for (size_t i = 0; node && i < n; i++) {
    if (lode__chroma_node(c, node)->type != JSON_NODE_OBJECT) return 0;
    node = lode__chroma_key(c, node, keys[i]);
  }
  return node;
}

/* A schema is kept and echoed; the space in it counts. */
static bool apply_schema(lode__chroma *c, uint32_t node, lode__chroma_config *config) {
  static const char *const all[] = {"defaults", "float_list", "vector_index", "config", "space"};
  static const char *const own[] = {"keys", "#embedding", "float_list", "vector_index", "config", "space"};
  if (lode__chroma_node(c, node)->type != JSON_NODE_OBJECT) return lode__chroma_shape(c, "the schema must be an object");
  uint32_t space = walk(c, node, own, 6);
  if (!space) space = walk(c, node, all, 5);
  const char *wrong = space ? set_field(config, STR_LIT("space"), lode__chroma_node(c, space), true) : NULL;
  if (wrong) return lode__chroma_shape(c, "Invalid schema: %s", wrong);
  config->schema = lode__chroma_subtree(c, node);
  return config->schema.data || lode__chroma_failed(c, err_nomem(&c->err));
}

bool lode__chroma_config_new(lode__chroma *c, lode__chroma_config *config) {
  uint32_t given = lode__chroma_key(c, 0, "configuration"), metadata = lode__chroma_key(c, 0, "metadata"), schema = lode__chroma_key(c, 0, "schema");
  *config = usual(LODE_L2);
  if (metadata && !apply_metadata(c, metadata, config)) return false;
  if (schema && !apply_schema(c, schema, config)) return false;
  return !given || apply(c, given, config);
}

bool lode__chroma_config_change(lode__chroma *c, lode__chroma_config *config) {
  uint32_t given = lode__chroma_key(c, 0, "new_configuration");
  lode_metric metric = config->metric;
  if (!given) return true;
  if (!apply(c, given, config)) return false;
  return config->metric == metric || lode__chroma_invalid(c, "the space of a collection cannot be changed");
}

static lode_str copy_node(lode__chroma *c, const json_doc *json, uint32_t node) {
  strbuf text = {0};
  lode_str copy = {0};
  if (!node || json->nodes[node].type == JSON_NODE_NULL) return copy;
  json_put_node(&text, json, node);
  if (!text.failed) copy = (lode_str){mem_arena_copy(&c->arena, text.data, text.len), text.len};
  strbuf_release(&text);
  return copy;
}

void lode__chroma_config_stored(lode__chroma *c, const json_doc *json, uint32_t node, lode_metric metric, lode__chroma_config *config) {
  *config = usual(metric);
  if (!node || json->nodes[node].type != JSON_NODE_OBJECT) return;
  uint32_t own = json_get(json, node, STR_LIT("configuration"));
  config->schema = copy_node(c, json, json_get(json, node, STR_LIT("schema")));
  if (!own || json->nodes[own].type != JSON_NODE_OBJECT) return;
  uint32_t hnsw = json_get(json, own, STR_LIT("hnsw"));
  if (hnsw) (void)set_fields(config, json, hnsw, false); /* whatever is odd in it stays at its default */
  config->metric = metric;
  config->embedding_function = copy_node(c, json, json_get(json, own, STR_LIT("embedding_function")));
}

void lode__chroma_config_put(strbuf *out, const lode__chroma_config *config) {
  strbuf_addf(out, "{\"hnsw\":{\"space\":\"%s\",\"ef_construction\":%llu,\"ef_search\":%llu,\"max_neighbors\":%llu,\"resize_factor\":",
                 lode_metric_name(config->metric), (unsigned long long)config->ef_construction, (unsigned long long)config->ef_search,
                 (unsigned long long)config->max_neighbors);
  json_put_double(out, config->resize_factor);
  strbuf_addf(out, ",\"sync_threshold\":%llu},\"spann\":null,\"embedding_function\":", (unsigned long long)config->sync_threshold);
  if (config->embedding_function.data) strbuf_add(out, config->embedding_function.data, config->embedding_function.len);
  else strbuf_addstr(out, "null");
  strbuf_addch(out, '}');
}

static void put_vector_index(strbuf *out, const lode__chroma_config *config, bool enabled) {
  strbuf_addf(out, "{\"float_list\":{\"vector_index\":{\"enabled\":%s,\"config\":{\"space\":\"%s\"", enabled ? "true" : "false", lode_metric_name(config->metric));
  if (config->embedding_function.data) {
    strbuf_addstr(out, ",\"embedding_function\":");
    strbuf_add(out, config->embedding_function.data, config->embedding_function.len);
  }
  if (enabled) strbuf_addstr(out, ",\"source_key\":\"#document\"");
  strbuf_addf(out, ",\"hnsw\":{\"ef_construction\":%llu,\"max_neighbors\":%llu,\"ef_search\":%llu,\"num_threads\":2,\"batch_size\":100,"
                 "\"sync_threshold\":%llu,\"resize_factor\":",
                 (unsigned long long)config->ef_construction, (unsigned long long)config->max_neighbors, (unsigned long long)config->ef_search,
                 (unsigned long long)config->sync_threshold);
  json_put_double(out, config->resize_factor);
  strbuf_addstr(out, "}}}}}");
}

void lode__chroma_schema_put(strbuf *out, const lode__chroma_config *config) {
  if (config->schema.data) {
    strbuf_add(out, config->schema.data, config->schema.len);
    return;
  }
  strbuf_addstr(out, "{\"defaults\":");
  put_vector_index(out, config, false);
  out->len -= out->len > 0; /* more members follow */
  strbuf_addstr(out, ",\"string\":{\"fts_index\":{\"enabled\":false,\"config\":{}},\"string_inverted_index\":{\"enabled\":true,\"config\":{}}},"
                      "\"sparse_vector\":{\"sparse_vector_index\":{\"enabled\":false,\"config\":{\"embedding_function\":{\"type\":\"unknown\"},\"bm25\":false}}},"
                      "\"int\":{\"int_inverted_index\":{\"enabled\":true,\"config\":{}}},\"float\":{\"float_inverted_index\":{\"enabled\":true,\"config\":{}}},"
                      "\"bool\":{\"bool_inverted_index\":{\"enabled\":true,\"config\":{}}}},\"keys\":{\"#embedding\":");
  put_vector_index(out, config, true);
  strbuf_addstr(out, ",\"#document\":{\"string\":{\"fts_index\":{\"enabled\":true,\"config\":{}},\"string_inverted_index\":{\"enabled\":false,\"config\":{}}}}}}");
}
