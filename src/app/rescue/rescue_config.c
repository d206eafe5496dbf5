/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_config.c - a collection's configuration, as each version stores it; see chroma_tables.h.
 *
 *   0.4 to 0.6   "hnsw:space", "hnsw:M", ... in the metadata of the collection and of its segment; 0.5.4 adds
 *                config_json_str {"hnsw_configuration":{"space","M",...}}, which has the defaults whatever the
 *                metadata says
 *   from 1.0     config_json_str {"vector_index":{"hnsw":{"space","max_neighbors",...}},"embedding_function":{...}},
 *                or without "vector_index"
 *   from 1.3     schema_str {"keys":{"#embedding":{"float_list":{"vector_index":{"config":{"space",
 *                "embedding_function","hnsw":{...}}}}}}}
 */
#include "rescue/chroma_tables.h"

#define VECTOR_CONFIG "keys", "#embedding", "float_list", "vector_index", "config"
#define VECTOR_DEFAULT "defaults", "float_list", "vector_index", "config"
enum { RESCUE_FIELD_MAX_DEPTH = 10 };

/* Finds the node at a path of keys in the JSON text, which is parsed into c->json; 0: none. Damaged text counts as
 * empty. */
static lode_status rescue_field_node_at(rescue_dir *c, lode_str text, const char *const path[RESCUE_FIELD_MAX_DEPTH],
                                        uint32_t *node, lode_error *err) {
  *node = 0;
  if (!text.data) return LODE_OK;
  lode_status st = json_parse(&c->json, text, NULL, NULL);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK) return LODE_OK;
  for (; *path; path++) {
    if (c->json.nodes[*node].type != JSON_NODE_OBJECT || !(*node = json_get(&c->json, *node, str_of(*path)))) {
      *node = 0;
      return LODE_OK;
    }
  }
  return LODE_OK;
}

const rescue_pair *rescue_pair_find(const rescue_raw_tables *p, uint32_t owner, const char *key) {
  const rescue_pair *found = NULL;
  if (owner == RESCUE_NO_NAME) return NULL;
  for (size_t i = 0; i < p->n_pairs; i++)
    if (p->pairs[i].owner == owner && str_eq(p->pairs[i].key, str_of(key)) && (!found || found->stray))
      found = &p->pairs[i];
  return found;
}

/* Where a field may be stored. In a list of sources the most reliable comes first: what the index was built with. */
typedef enum rescue_field_source_kind {
  RESCUE_FIELD_OF_SEGMENT,
  RESCUE_FIELD_OF_COLL,
  RESCUE_FIELD_IN_SCHEMA,
  RESCUE_FIELD_IN_CONFIG,
} rescue_field_source_kind;
typedef struct rescue_field_source {
  rescue_field_source_kind kind;
  const char *path[RESCUE_FIELD_MAX_DEPTH]; /* or one key of the metadata */
} rescue_field_source;
enum { RESCUE_FIELD_MAX_SOURCES = 8 };
typedef struct rescue_field_def {
  const char *name;
  rescue_field_source from[RESCUE_FIELD_MAX_SOURCES]; /* ends with an empty path */
} rescue_field_def;

#define RESCUE_HNSW_FIELD(name, old)                                                                                   \
  {                                                                                                                    \
    name, {                                                                                                            \
      {RESCUE_FIELD_OF_SEGMENT, {"hnsw:" old}}, {RESCUE_FIELD_IN_SCHEMA, {VECTOR_CONFIG, "hnsw", name}},               \
          {RESCUE_FIELD_IN_SCHEMA, {VECTOR_DEFAULT, "hnsw", name}},                                                    \
          {RESCUE_FIELD_IN_CONFIG, {"vector_index", "hnsw", name}}, {RESCUE_FIELD_IN_CONFIG, {"hnsw", name}},          \
          {RESCUE_FIELD_OF_COLL, {"hnsw:" old}}, {                                                                     \
        RESCUE_FIELD_IN_CONFIG, { "hnsw_configuration", old }                                                          \
      }                                                                                                                \
    }                                                                                                                  \
  }

static const rescue_field_def rescue_field_space = {"space",
                                                    {{RESCUE_FIELD_OF_SEGMENT, {"hnsw:space"}},
                                                     {RESCUE_FIELD_IN_SCHEMA, {VECTOR_CONFIG, "space"}},
                                                     {RESCUE_FIELD_IN_SCHEMA, {VECTOR_DEFAULT, "space"}},
                                                     {RESCUE_FIELD_IN_CONFIG, {"vector_index", "hnsw", "space"}},
                                                     {RESCUE_FIELD_IN_CONFIG, {"hnsw", "space"}},
                                                     {RESCUE_FIELD_OF_COLL, {"hnsw:space"}},
                                                     {RESCUE_FIELD_IN_CONFIG, {"hnsw_configuration", "space"}}}};
static const rescue_field_def rescue_field_max_neighbors = RESCUE_HNSW_FIELD("max_neighbors", "M");
static const rescue_field_def rescue_field_hnsw_params[] = {
    RESCUE_HNSW_FIELD("ef_construction", "construction_ef"), RESCUE_HNSW_FIELD("ef_search", "search_ef"),
    RESCUE_HNSW_FIELD("sync_threshold", "sync_threshold"), RESCUE_HNSW_FIELD("resize_factor", "resize_factor")};

/* Reads a field from one source: a text or a number; type SQF_NULL: nothing. A text is valid until the next call. */
static lode_status rescue_field_read_source(rescue_dir *c, const rescue_coll *coll, const rescue_field_source *s,
                                            sqf_value *said, lode_error *err) {
  uint32_t node;
  *said = (sqf_value){.type = SQF_NULL};
  if (s->kind == RESCUE_FIELD_OF_SEGMENT || s->kind == RESCUE_FIELD_OF_COLL) {
    const rescue_pair *pair = rescue_pair_find(
        c->parts, s->kind == RESCUE_FIELD_OF_SEGMENT ? coll->vector_segment : coll->id_name, s->path[0]);
    if (pair && !pair->is_bool) *said = pair->value;
    return LODE_OK;
  }
  TRY(rescue_field_node_at(c, s->kind == RESCUE_FIELD_IN_SCHEMA ? coll->schema : coll->config, s->path, &node, err));
  if (!node) return LODE_OK;
  const json_node *n = &c->json.nodes[node];
  if (n->type == JSON_NODE_STRING) *said = (sqf_value){.type = SQF_TEXT, .s = n->u.s};
  if (n->type == JSON_NODE_INT) *said = (sqf_value){.type = SQF_INT, .i = n->u.i};
  if (n->type == JSON_NODE_DOUBLE) *said = (sqf_value){.type = SQF_REAL, .d = n->u.d};
  return LODE_OK;
}

static lode_status rescue_field_find_metric(rescue_dir *c, rescue_coll *coll, lode_error *err) {
  sqf_value said;
  for (const rescue_field_source *s = rescue_field_space.from; s->path[0]; s++) {
    TRY(rescue_field_read_source(c, coll, s, &said, err));
    if (said.type == SQF_TEXT && lode_metric_parse(said.s, &coll->metric)) return LODE_OK;
  }
  coll->metric = LODE_L2;
  coll->metric_unknown = c->damaged && !coll->config.data && !coll->schema.data && !coll->metadata.data;
  return LODE_OK;
}

/* Finds an HNSW parameter with a plausible value; type SQF_NULL: none. */
static lode_status rescue_field_find_param(rescue_dir *c, const rescue_coll *coll, const rescue_field_def *f,
                                           sqf_value *found, lode_error *err) {
  for (const rescue_field_source *s = f->from; s->path[0]; s++) {
    TRY(rescue_field_read_source(c, coll, s, found, err));
    if (found->type == SQF_INT && found->i > 0 && found->i <= INT32_MAX) return LODE_OK;
    if (found->type == SQF_REAL && found->d > 0 && found->d < 1e9) return LODE_OK;
  }
  *found = (sqf_value){.type = SQF_NULL};
  return LODE_OK;
}

static lode_status rescue_field_keep_text(rescue_dir *c, const strbuf *text, lode_str *out, lode_error *err) {
  if (text->failed) return err_nomem(err);
  if (text->len == 0) return LODE_OK;
  *out = (lode_str){mem_arena_copy(&c->arena, text->data, text->len), text->len};
  return out->data ? LODE_OK : err_nomem(err);
}

static lode_status rescue_field_find_params(rescue_dir *c, rescue_coll *coll, lode_error *err) {
  strbuf text = {0};
  sqf_value said;
  lode_status st = LODE_OK;
  TRY_GOTO(rescue_field_find_param(c, coll, &rescue_field_max_neighbors, &said, err));
  if (said.type == SQF_INT && said.i < 4096) coll->m = (uint32_t)said.i;
  if (coll->m) strbuf_addf(&text, "\"max_neighbors\":%u", coll->m);
  for (size_t i = 0; i < sizeof rescue_field_hnsw_params / sizeof *rescue_field_hnsw_params; i++) {
    TRY_GOTO(rescue_field_find_param(c, coll, &rescue_field_hnsw_params[i], &said, err));
    if (said.type == SQF_NULL) continue;
    strbuf_addf(&text, "%s\"%s\":", text.len ? "," : "", rescue_field_hnsw_params[i].name);
    rescue_put_value(&text, &said, false);
  }
  st = rescue_field_keep_text(c, &text, &coll->hnsw_params, err);
done:
  strbuf_release(&text);
  return st;
}

/* {"type":"known","name":"default","config":{}}, and the name in it. */
static lode_status rescue_field_find_function(rescue_dir *c, rescue_coll *coll, lode_error *err) {
  static const rescue_field_source from[] = {{RESCUE_FIELD_IN_SCHEMA, {VECTOR_CONFIG, "embedding_function"}},
                                             {RESCUE_FIELD_IN_CONFIG, {"embedding_function"}}};
  strbuf text = {0};
  lode_status st = LODE_OK;
  uint32_t node = 0;
  for (size_t i = 0; i < 2 && !node; i++) {
    TRY(rescue_field_node_at(c, from[i].kind == RESCUE_FIELD_IN_SCHEMA ? coll->schema : coll->config, from[i].path,
                             &node, err));
    if (c->json.count && c->json.nodes[node].type != JSON_NODE_OBJECT) node = 0;
  }
  if (!node) return LODE_OK;
  uint32_t name = json_get(&c->json, node, STR_LIT("name"));
  json_put_node(&text, &c->json, node);
  TRY_GOTO(rescue_field_keep_text(c, &text, &coll->function, err));
  if (!name || c->json.nodes[name].type != JSON_NODE_STRING || c->json.nodes[name].u.s.len == 0) goto done;
  lode_str s = c->json.nodes[name].u.s;
  coll->embedder = (lode_str){mem_arena_copy(&c->arena, s.data, s.len), s.len};
  if (!coll->embedder.data) st = err_nomem(err);
done:
  strbuf_release(&text);
  return st;
}

lode_status rescue_read_config(rescue_dir *c, rescue_coll *coll, lode_error *err) {
  TRY(rescue_field_find_metric(c, coll, err));
  TRY(rescue_field_find_params(c, coll, err));
  return rescue_field_find_function(c, coll, err);
}
