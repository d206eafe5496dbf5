/* SPDX-License-Identifier: Apache-2.0 */
/* chroma_schema.c - a collection's schema: which metadata may be filtered by, and the vector index. See chroma.h.
 *
 *   {"defaults": {TYPE: {INDEX: {"enabled": bool, "config": {}}}}, "keys": {KEY: {TYPE: ...}}}
 *
 * A schema is checked when a collection is created. Its vector index becomes the collection's configuration, which
 * stays the only place that says it; the rest is stored as it came. Clients are shown the schema with what it leaves
 * out filled in, as Chroma does. A filter by a key whose index is disabled is refused, also as Chroma does.
 */
#include "chroma/chroma.h"

/* Sections in which an index exists by default, and those in which it is enabled there. */
enum { SECTION_DEFAULTS = 1, SECTION_EMBEDDING = 2, SECTION_DOCUMENT = 4 };

typedef struct schema_index {
  const char *type, *name;
  unsigned exists, enabled;
} schema_index;

static const schema_index schema_indexes[] = {
    {"string", "fts_index", SECTION_DEFAULTS | SECTION_DOCUMENT, SECTION_DOCUMENT},
    {"string", "string_inverted_index", SECTION_DEFAULTS | SECTION_DOCUMENT, SECTION_DEFAULTS},
    {"float_list", "vector_index", SECTION_DEFAULTS | SECTION_EMBEDDING, SECTION_EMBEDDING},
    {"sparse_vector", "sparse_vector_index", SECTION_DEFAULTS, 0},
    {"int", "int_inverted_index", SECTION_DEFAULTS, SECTION_DEFAULTS},
    {"float", "float_inverted_index", SECTION_DEFAULTS, SECTION_DEFAULTS},
    {"bool", "bool_inverted_index", SECTION_DEFAULTS, SECTION_DEFAULTS},
};
enum { SCHEMA_INDEXES = sizeof schema_indexes / sizeof *schema_indexes };

static bool schema_is(const schema_index *index, const char *name) { return strcmp(index->name, name) == 0; }

/* A key of the whole document; 0 if it is missing or null. */
static uint32_t schema_top(const json_doc *json, const char *key) {
  if (json->count == 0 || json->nodes[0].type != JSON_NODE_OBJECT) return 0;
  uint32_t node = json_get(json, 0, str_of(key));
  return node && json->nodes[node].type != JSON_NODE_NULL ? node : 0;
}

/* The same of an object in it, which may be 0 for a missing one. */
static uint32_t schema_get(const json_doc *json, uint32_t object, const char *key) {
  if (!object || json->nodes[object].type != JSON_NODE_OBJECT) return 0;
  uint32_t node = json_get(json, object, str_of(key));
  return node && json->nodes[node].type != JSON_NODE_NULL ? node : 0;
}

/* An index of a section. Old clients write the types with a # in front. */
static uint32_t schema_find(const json_doc *json, uint32_t section, const schema_index *index) {
  char old[32];
  uint32_t type = schema_get(json, section, index->type);
  snprintf(old, sizeof old, "#%s", index->type);
  if (!type) type = schema_get(json, section, old);
  return schema_get(json, type, index->name);
}

/* Are the types of a section objects? */
static bool schema_is_section(const json_doc *json, uint32_t section) {
  bool good = json->nodes[section].type == JSON_NODE_OBJECT;
  for (size_t i = 0; good && i < SCHEMA_INDEXES; i++) {
    uint32_t type = schema_get(json, section, schema_indexes[i].type);
    good = !type || json->nodes[type].type == JSON_NODE_OBJECT;
  }
  return good;
}

static unsigned schema_section_of(lode_str key) {
  return str_eq(key, STR_LIT("#embedding"))  ? SECTION_EMBEDDING
         : str_eq(key, STR_LIT("#document")) ? SECTION_DOCUMENT
                                             : 0;
}

/* ---- Check ---- */

static bool schema_wrong(chroma_request *c, const char *why) {
  return chroma_invalid(c, "Failed to reconcile schema: Invalid schema input: %s", why);
}

/* Clients always send the same vector index in the defaults and for #embedding; the latter counts. */
static bool schema_read_vector_index(chroma_request *c, uint32_t node, chroma_config *config) {
  static const char *const names[] = {"space", "embedding_function", "source_key", "hnsw", "spann", NULL};
  const json_doc *json = &c->json;
  uint32_t settings = schema_get(json, node, "config"), space = schema_get(json, settings, "space"),
           hnsw = schema_get(json, settings, "hnsw"), spann = schema_get(json, settings, "spann"),
           ef = schema_get(json, settings, "embedding_function"), source = schema_get(json, settings, "source_key");
  const char *wrong = space ? chroma_config_set(config, STR_LIT("space"), chroma_body_node(c, space)) : NULL;
  if (!chroma_config_knows(json, settings, names)) wrong = "unknown field in the config of vector_index";
  if (!wrong && hnsw) wrong = chroma_config_set_hnsw(config, json, hnsw);
  if (!wrong && spann) wrong = chroma_config_check_spann(json, spann);
  if (!wrong && ef) wrong = chroma_config_check_function(json, ef);
  if (wrong) return chroma_bad_shape(c, "Invalid schema: %s", wrong);
  if (config->sync_threshold < 2 || config->batch_size < 2)
    return chroma_invalid(c, "Failed to reconcile schema: Invalid HNSW configuration: sync_threshold and batch_size "
                             "must be 2 or more");
  if (source && !(chroma_body_node(c, source)->type == JSON_NODE_STRING &&
                  str_eq(chroma_body_node(c, source)->u.s, STR_LIT("#document"))))
    return chroma_invalid(c, "Validation error: schema: Vector index can only source from #document");
  if (ef) config->embedding_function = chroma_body_subtree(c, ef);
  return !ef || config->embedding_function.data || chroma_respond_status(c, err_nomem(&c->err));
}

/* One index of a section: sets *differs if it is not as it would be without a schema. */
static bool schema_check_index(chroma_request *c, uint32_t node, const schema_index *index, unsigned section,
                               bool *differs) {
  uint32_t enabled = schema_get(&c->json, node, "enabled"), settings = schema_get(&c->json, node, "config");
  json_node_type type = enabled ? chroma_body_node(c, enabled)->type : JSON_NODE_NULL;
  if (type != JSON_NODE_TRUE && type != JSON_NODE_FALSE)
    return chroma_bad_shape(c, "Invalid schema: %s: missing field `enabled`", index->name);
  if (!settings || chroma_body_node(c, settings)->type != JSON_NODE_OBJECT)
    return chroma_bad_shape(c, "Invalid schema: %s: missing field `config`", index->name);
  *differs |= !section || (type == JSON_NODE_TRUE) != ((index->enabled & section) != 0);
  if (schema_is(index, "sparse_vector_index"))
    return type == JSON_NODE_FALSE || schema_wrong(c, "Sparse vector indexing is not enabled in local");
  if (schema_is(index, "fts_index"))
    return type == JSON_NODE_FALSE || section == SECTION_DOCUMENT ||
           chroma_invalid(c, "Validation error: schema: FTS index can only be enabled on #document field");
  if (schema_is(index, "vector_index"))
    return type == JSON_NODE_FALSE || section == SECTION_EMBEDDING ||
           chroma_invalid(c, "Validation error: schema: Vector index can only be enabled on #embedding field");
  return chroma_body_node(c, settings)->u.count == 0 ||
         chroma_bad_shape(c, "Invalid schema: %s: unknown field in its config", index->name);
}

static bool schema_check_section(chroma_request *c, uint32_t node, unsigned section, bool *differs) {
  if (!schema_is_section(&c->json, node))
    return chroma_bad_shape(c, "Invalid schema: a section or a type in it is not an object");
  for (size_t i = 0; i < SCHEMA_INDEXES; i++) {
    uint32_t at = schema_find(&c->json, node, &schema_indexes[i]);
    if (at && !schema_check_index(c, at, &schema_indexes[i], section, differs)) return false;
  }
  return true;
}

bool chroma_schema_read(chroma_request *c, uint32_t node, chroma_config *config, bool *differs) {
  static const schema_index vector = {"float_list", "vector_index", 0, 0};
  uint32_t defaults = schema_get(&c->json, node, "defaults"), keys = schema_get(&c->json, node, "keys");
  *differs = false;
  if (!defaults || !keys || chroma_body_node(c, keys)->type != JSON_NODE_OBJECT)
    return chroma_bad_shape(c, "Invalid schema: it must be an object with `defaults` and `keys`");
  if (schema_get(&c->json, node, "cmek")) return schema_wrong(c, "encryption with a key of one's own is not possible");
  if (!schema_check_section(c, defaults, SECTION_DEFAULTS, differs)) return false;
  for (uint32_t i = keys + 1; i < chroma_body_node(c, keys)->next; i = chroma_body_node(c, i + 1)->next)
    if (!schema_check_section(c, i + 1, schema_section_of(chroma_body_node(c, i)->u.s), differs)) return false;
  uint32_t of_defaults = schema_find(&c->json, defaults, &vector),
           of_embedding = schema_find(&c->json, schema_get(&c->json, keys, "#embedding"), &vector);
  if (of_defaults && !schema_read_vector_index(c, of_defaults, config)) return false;
  if (of_embedding && !schema_read_vector_index(c, of_embedding, config)) return false;
  *differs |= !chroma_config_is_default(config);
  config->schema = chroma_body_subtree(c, node);
  return config->schema.data || chroma_respond_status(c, err_nomem(&c->err));
}

/* ---- Write ---- */

static void schema_put_vector_config(strbuf *out, const chroma_config *config, bool source) {
  strbuf_addf(out, "{\"space\":\"%s\"", lode_metric_name(config->metric));
  if (config->embedding_function.data) {
    strbuf_addstr(out, ",\"embedding_function\":");
    strbuf_add(out, config->embedding_function.data, config->embedding_function.len);
  }
  if (source) strbuf_addstr(out, ",\"source_key\":\"#document\"");
  strbuf_addf(out,
              ",\"hnsw\":{\"ef_construction\":%llu,\"max_neighbors\":%llu,\"ef_search\":%llu,\"num_threads\":%llu,"
              "\"batch_size\":%llu,\"sync_threshold\":%llu,\"resize_factor\":",
              (unsigned long long)config->ef_construction, (unsigned long long)config->max_neighbors,
              (unsigned long long)config->ef_search, (unsigned long long)config->num_threads,
              (unsigned long long)config->batch_size, (unsigned long long)config->sync_threshold);
  json_put_double(out, config->resize_factor);
  strbuf_addstr(out, "}}");
}

/* `given`: the index in the stored schema, or 0. */
static void schema_put_index(strbuf *out, const chroma_config *config, const json_doc *json, uint32_t given,
                             const schema_index *index, unsigned section) {
  uint32_t own = given ? schema_get(json, given, "enabled") : 0;
  bool enabled = own ? json->nodes[own].type == JSON_NODE_TRUE : (index->enabled & section) != 0;
  strbuf_addf(out, "\"%s\":{\"enabled\":%s,\"config\":", index->name, enabled ? "true" : "false");
  if (schema_is(index, "vector_index"))
    schema_put_vector_config(out, config, section == SECTION_EMBEDDING);
  else
    strbuf_addstr(out, schema_is(index, "sparse_vector_index")
                           ? "{\"embedding_function\":{\"type\":\"unknown\"},\"bm25\":false}"
                           : "{}");
  strbuf_addch(out, '}');
}

/* The section with what it leaves out. Indexes of one type follow each other in the table. */
static void schema_put_section(strbuf *out, const chroma_config *config, const json_doc *json, uint32_t node,
                               unsigned section) {
  const char *type = NULL;
  strbuf_addch(out, '{');
  for (size_t i = 0; i < SCHEMA_INDEXES; i++) {
    const schema_index *index = &schema_indexes[i];
    uint32_t given = schema_find(json, node, index);
    if (!given && !(index->exists & section)) continue;
    if (type && strcmp(type, index->type) == 0)
      strbuf_addch(out, ',');
    else
      strbuf_addf(out, "%s\"%s\":{", type ? "}," : "", index->type);
    schema_put_index(out, config, json, given, index, section);
    type = index->type;
  }
  strbuf_addstr(out, type ? "}}" : "}");
}

void chroma_schema_put(strbuf *out, const chroma_config *config) {
  json_doc json = {0};
  if (config->schema.data && json_parse(&json, config->schema, NULL, NULL) != LODE_OK)
    json.count = 0; /* not a schema: as if there was none */
  uint32_t keys = schema_top(&json, "keys");
  strbuf_addstr(out, "{\"defaults\":");
  schema_put_section(out, config, &json, schema_top(&json, "defaults"), SECTION_DEFAULTS);
  strbuf_addstr(out, ",\"keys\":{\"#embedding\":");
  schema_put_section(out, config, &json, schema_get(&json, keys, "#embedding"), SECTION_EMBEDDING);
  strbuf_addstr(out, ",\"#document\":");
  schema_put_section(out, config, &json, schema_get(&json, keys, "#document"), SECTION_DOCUMENT);
  for (uint32_t i = keys + 1; keys && i < json.nodes[keys].next; i = json.nodes[i + 1].next) {
    if (schema_section_of(json.nodes[i].u.s)) continue;
    strbuf_addch(out, ',');
    json_put_node(out, &json, i);
    strbuf_addch(out, ':');
    schema_put_section(out, config, &json, i + 1, 0);
  }
  strbuf_addstr(out, "}}");
  json_release(&json);
}

/* ---- Filters ---- */

/* Is an index enabled for a key? The schema may say so for the key, else for all keys. */
static bool schema_enables(const json_doc *json, uint32_t schema, lode_str key, const schema_index *index) {
  uint32_t keys = schema_get(json, schema, "keys"), own = keys ? json_get(json, keys, key) : 0;
  unsigned section = schema_section_of(key);
  uint32_t given = schema_find(json, own, index);
  if (!given && !(index->exists & section)) {
    given = schema_find(json, schema_get(json, schema, "defaults"), index);
    section = SECTION_DEFAULTS;
  }
  uint32_t enabled = given ? schema_get(json, given, "enabled") : 0;
  return enabled ? json->nodes[enabled].type == JSON_NODE_TRUE : (index->enabled & section) != 0;
}

static const schema_index *schema_index_of(json_node_type type) {
  switch (type) {
    case JSON_NODE_STRING: return &schema_indexes[1];
    case JSON_NODE_INT: return &schema_indexes[4];
    case JSON_NODE_DOUBLE: return &schema_indexes[5];
    default: return &schema_indexes[6];
  }
}

/* One comparison of a filter that chroma_where.c has found well formed. */
static bool schema_check_term(chroma_request *c, const json_doc *json, uint32_t schema, uint32_t key_node) {
  static const char *const names[SCHEMA_INDEXES] = {"", "Str", "", "", "Int", "Float", "Bool"};
  lode_str key = chroma_body_node(c, key_node)->u.s;
  uint32_t value = key_node + 1;
  if (schema_section_of(key) == SECTION_DOCUMENT || (key.len && key.data[0] == '$'))
    return schema_enables(json, schema, STR_LIT("#document"), &schema_indexes[0]) ||
           chroma_invalid(c, "Cannot filter using full-text search because FTS indexing is disabled");
  if (chroma_body_node(c, value)->type == JSON_NODE_OBJECT) value += 2; /* the operand of its operator */
  if (chroma_body_node(c, value)->type == JSON_NODE_ARRAY) value += 1;
  const schema_index *index = schema_index_of(chroma_body_node(c, value)->type);
  return schema_enables(json, schema, key, index) ||
         chroma_invalid(c, "Cannot filter using metadata key '%.*s' with type '%s' because indexing is disabled",
                        (int)(key.len < 256 ? key.len : 256), key.data, names[index - schema_indexes]);
}

/* Walks the nodes of a filter in order: an operand is skipped as a whole, so every object met holds one pair. */
static bool schema_check_filter(chroma_request *c, const json_doc *json, uint32_t schema, uint32_t node) {
  uint32_t end = node ? chroma_body_node(c, node)->next : 0;
  for (uint32_t i = node; node && i < end;) {
    if (chroma_body_node(c, i)->type != JSON_NODE_OBJECT) { /* the list of $and, $or */
      i++;
      continue;
    }
    lode_str key = chroma_body_node(c, i + 1)->u.s;
    if (str_eq(key, STR_LIT("$and")) || str_eq(key, STR_LIT("$or"))) {
      i += 2;
      continue;
    }
    if (!schema_check_term(c, json, schema, i + 1)) return false;
    i = chroma_body_node(c, i)->next;
  }
  return true;
}

bool chroma_schema_allows(chroma_request *c, lode_str metadata) {
  uint32_t where = chroma_body_key(c, 0, "where"), document = chroma_body_key(c, 0, "where_document");
  json_doc json = {0};
  if ((!where && !document) || !metadata.data || !memmem(metadata.data, metadata.len, "\"schema\"", 8)) return true;
  lode_status st = json_parse(&json, metadata, NULL, &c->err);
  uint32_t schema = st == LODE_OK ? schema_get(&json, schema_top(&json, RESCUE_LAYOUT_KEY), "schema") : 0;
  bool ok = st == LODE_OK || chroma_respond_status(c, st);
  if (ok && schema)
    ok = schema_check_filter(c, &json, schema, where) && schema_check_filter(c, &json, schema, document);
  json_release(&json);
  return ok;
}
