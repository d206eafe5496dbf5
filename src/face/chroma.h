/* chroma.h - Chroma's v2 API over lode: what its routes do. Runs in the worker; server_route.c has the paths.
 *
 * How Chroma's things are kept in a store: rescue/kept.h, as what was rescued is served too. A collection's id is its uid, spelled as a
 * UUID (version 8): nothing needs to be kept, nothing can drift.
 *
 * A handler answers true when it has written its answer to task->out, false after it has failed; then the error is there.
 */
#ifndef LODE_FACE_CHROMA_H
#define LODE_FACE_CHROMA_H

#include "handles.h"
#include "rescue/kept.h"
#include "worker.h"

#define LODE__CHROMA_BATCH 100000 /* records in one write */
#define LODE__CHROMA_HITS 1000000 /* rows of one query's answer: queries times n_results */

typedef struct lode__chroma {
  lode__task *task;
  lode_store *store;
  json_doc json;    /* the body */
  mem_arena arena;
  lode_error err;
} lode__chroma;

void lode__service_chroma(lode__task *task);

/* ---- Answers ---- */

__attribute__((format(printf, 4, 5))) bool lode__chroma_fail(lode__chroma *c, unsigned status, const char *name, const char *format, ...);
/* 400 InvalidArgumentError, and 422 ChromaError for JSON of the wrong shape. */
__attribute__((format(printf, 2, 3))) bool lode__chroma_invalid(lode__chroma *c, const char *format, ...);
__attribute__((format(printf, 2, 3))) bool lode__chroma_shape(lode__chroma *c, const char *format, ...);
/* From a status of the library; the text is c->err's. */
bool lode__chroma_failed(lode__chroma *c, lode_status status);
bool lode__chroma_text(lode__chroma *c, unsigned status, const char *text);

/* ---- The body ---- */

/* The value of a key of the body, or 0; null counts as absent. */
uint32_t lode__chroma_key(const lode__chroma *c, uint32_t object, const char *key);
static inline const json_node *lode__chroma_node(const lode__chroma *c, uint32_t node) { return &c->json.nodes[node]; }
/* A subtree as text in the arena; absent without memory. */
lode_str lode__chroma_subtree(lode__chroma *c, uint32_t node);
/* A number that is not negative; absent: `fallback`. */
bool lode__chroma_count_of(lode__chroma *c, const char *key, uint64_t fallback, uint64_t *value);
/* An array of strings. *ids is NULL when it is absent. */
bool lode__chroma_ids(lode__chroma *c, const lode_str **ids, size_t *n);
/* ids, where and where_document, checked as Chroma does. */
bool lode__chroma_selection(lode__chroma *c, lode_selection *selection);
/* The numbers of an array; there is room for them. */
bool lode__chroma_floats(lode__chroma *c, uint32_t node, float *out);
/* chroma_where.c */
bool lode__chroma_where(lode__chroma *c, uint32_t node, bool on_document, lode_str *text);

/* ---- Collections ---- */

/* A collection by the UUID in word 2; must be let go, with the status of what was done with it. */
bool lode__chroma_hold(lode__chroma *c, lode__handle **handle);
void lode__chroma_let_go(lode__chroma *c, lode__handle *handle, lode_status last);
/* LODE_REFUSED, in c->err, for the collections of a code index. */
LODE_MUST lode_status lode__chroma_may_change(lode__chroma *c, lode_str full);
bool lode__chroma_no_collection(lode__chroma *c);

/* "TENANT/DATABASE/NAME" or the plain name; words 0 and 1 of the task are tenant and database. */
lode_str lode__chroma_full_name(lode__chroma *c, lode_str name);
/* The other way round: false when a collection is not in the task's tenant and database. */
bool lode__chroma_own_name(const lode__chroma *c, lode_str full, lode_str *name);
/* False, and the error is there, when the task's database does not exist. */
bool lode__chroma_database_exists(lode__chroma *c);

/* ---- Configuration (chroma_config.c) ---- */

typedef struct lode__chroma_config {
  lode_metric metric;
  uint64_t ef_construction, ef_search, max_neighbors, sync_threshold;
  double resize_factor;
  lode_str embedding_function, schema; /* JSON, or absent */
} lode__chroma_config;

/* The one that a new collection gets, from its request: configuration, schema, and the old "hnsw:..." keys of metadata. */
bool lode__chroma_config_new(lode__chroma *c, lode__chroma_config *config);
/* From a collection's metadata, parsed; `node` is that of "$chroma", or 0. */
void lode__chroma_config_stored(lode__chroma *c, const json_doc *json, uint32_t node, lode_metric metric, lode__chroma_config *config);
/* new_configuration over it. */
bool lode__chroma_config_change(lode__chroma *c, lode__chroma_config *config);
/* {"hnsw":{..},"spann":null,"embedding_function":..} */
void lode__chroma_config_put(strbuf *out, const lode__chroma_config *config);
/* The schema that came with the collection, or the one that Chroma derives from the configuration: its clients change that. */
void lode__chroma_schema_put(strbuf *out, const lode__chroma_config *config);

enum { LODE__UUID_BYTES = 37 };
void lode__uuid_put(uint64_t uid, char text[LODE__UUID_BYTES]);
bool lode__uuid_parse(lode_str text, uint64_t *uid);

/* ---- Handlers ---- */

#define LODE__CHROMA_CALLS(X)                                                                                                    \
  X(query) X(get) X(add) X(upsert) X(update) X(delete) X(count) X(indexing_status) X(search) X(fork) X(fork_count)               \
  X(get_collection_by_id) X(get_collection) X(update_collection) X(delete_collection) X(list_collections) X(create_collection)    \
  X(count_collections) X(get_database) X(delete_database) X(list_databases) X(create_database) X(get_tenant) X(create_tenant)    \
  X(reset)
#define LODE__CHROMA_DECLARE(verb) bool lode__chroma_##verb(lode__chroma *c);
LODE__CHROMA_CALLS(LODE__CHROMA_DECLARE)
#undef LODE__CHROMA_DECLARE

#endif
