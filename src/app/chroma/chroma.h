/* SPDX-License-Identifier: Apache-2.0 */
/* chroma.h - the handlers of Chroma's v2 API. They run in the worker; server_route.c has the paths.
 *
 * rescue/chroma_layout.h says how tenants, databases and collections are stored: rescued data is served in the same
 * way. A collection's id is its uid written as a UUID (version 8), so no mapping is stored.
 *
 * A handler returns true after it has written its reply to task->out, and false after a failure; then task->out holds
 * the error.
 */
#ifndef LODE_CHROMA_CHROMA_H
#define LODE_CHROMA_CHROMA_H

#include "worker/handles.h"
#include "rescue/chroma_layout.h"
#include "worker/worker.h"

#define CHROMA_MAX_BATCH 100000 /* records in one write */
/* Clients are told to send as many records at a time as fit into a body if each takes this much: a vector of 1,536
 * numbers in base64 and 16 KiB of text. With the default body that is Chroma's own figure, 5,461. */
#define CHROMA_RECORD_BYTES (24 << 10)
#define CHROMA_MAX_HITS 1000000 /* rows of one reply: queries times n_results */

typedef struct chroma_request {
  worker_task *task;
  lode_store *store;
  json_doc json; /* the request body */
  mem_arena arena;
  lode_error err;
} chroma_request;

void chroma_service(worker_task *task);

/* ---- Replies ---- */

__attribute__((format(printf, 4, 5))) bool chroma_respond_error(chroma_request *c, unsigned status, const char *name,
                                                                const char *format, ...);
/* 400 InvalidArgumentError, and 422 ChromaError for JSON of the wrong shape. */
__attribute__((format(printf, 2, 3))) bool chroma_invalid(chroma_request *c, const char *format, ...);
__attribute__((format(printf, 2, 3))) bool chroma_bad_shape(chroma_request *c, const char *format, ...);
/* How much of the log an answer counts; Chroma's cloud knows the difference. */
#define CHROMA_READ_LEVELS "index_and_wal, index_only or index_and_bounded_wal"
bool chroma_is_read_level(lode_str level);
/* The error for a status of the library; the text is that of c->err. */
bool chroma_respond_status(chroma_request *c, lode_status status);
bool chroma_respond(chroma_request *c, unsigned status, const char *text);

/* ---- Request body ---- */

/* The value of a key of the body, or 0; null counts as missing. */
uint32_t chroma_body_key(const chroma_request *c, uint32_t object, const char *key);
static inline const json_node *chroma_body_node(const chroma_request *c, uint32_t node) { return &c->json.nodes[node]; }
/* A subtree as text in the arena; no data if out of memory. */
lode_str chroma_body_subtree(chroma_request *c, uint32_t node);
/* A number that is not negative; `fallback` if missing. */
bool chroma_body_count(chroma_request *c, const char *key, uint64_t fallback, uint64_t *value);
/* An array of strings. *ids is NULL if it is missing. */
bool chroma_body_ids(chroma_request *c, const lode_str **ids, size_t *n);
/* ids, where and where_document, checked as Chroma does. */
bool chroma_body_selection(chroma_request *c, lode_selection *selection);
/* The numbers of an array; `out` must have space for them. */
bool chroma_body_floats(chroma_request *c, uint32_t node, float *out);
/* A value of metadata: a scalar or a list of one kind; null only in an update. */
bool chroma_check_value(chroma_request *c, uint32_t node, bool update);
/* Checks a filter (chroma_where.c). */
bool chroma_body_where(chroma_request *c, uint32_t node, bool on_document, lode_str *text);

/* ---- Collections ---- */

/* The collection with the UUID in word 2. It must be released with the status of the last operation on it. */
bool chroma_coll_acquire(chroma_request *c, worker_handle **handle);
void chroma_coll_release(chroma_request *c, worker_handle *handle, lode_status last);
/* LODE_REFUSED, in c->err, for collections of a code index. */
LODE_MUST lode_status chroma_check_may_change(chroma_request *c, lode_str full);
bool chroma_no_collection(chroma_request *c);
/* The uid in word 2. A text that is no UUID is 400, a UUID that is none of ours 404. */
bool chroma_coll_uid(chroma_request *c, uint64_t *uid);
/* Does the name keep to Chroma's rules? Those of collections and databases are the same; `field` begins the error. */
bool chroma_check_name(chroma_request *c, const char *field, lode_str name);

/* Is the name of the database in the path long enough? */
bool chroma_check_database(chroma_request *c);
/* The name within the tenant and database of the task (words 0 and 1); false if the collection is not in them. */
bool chroma_local_name(const chroma_request *c, lode_str full, lode_str *name);
/* Sets *exists; false, with the error set, if that cannot be known. */
bool chroma_database_exists(chroma_request *c, bool *exists);

/* ---- Configuration (chroma_config.c) ---- */

typedef struct chroma_config {
  lode_metric metric;
  uint64_t ef_construction, ef_search, max_neighbors, num_threads, batch_size, sync_threshold;
  double resize_factor;
  lode_str embedding_function, schema; /* JSON, or no data */
} chroma_config;

/* For a new collection, from its request: configuration, schema, and the legacy "hnsw:..." keys of metadata. */
bool chroma_config_new(chroma_request *c, chroma_config *config);
/* From a collection's parsed metadata; `node` is the value of "$chroma", or 0. */
void chroma_config_load(chroma_request *c, const json_doc *json, uint32_t node, lode_metric metric,
                        chroma_config *config);
/* Is the request's new_configuration well formed? */
bool chroma_config_check_update(chroma_request *c);
/* Applies it. */
bool chroma_config_update(chroma_request *c, chroma_config *config);
bool chroma_config_is_default(const chroma_config *config);
/* {"hnsw":{..},"spann":null,"embedding_function":..}, as clients see it, and the value of "$chroma". */
void chroma_config_put(strbuf *out, const chroma_config *config);
void chroma_config_store(strbuf *out, const chroma_config *config);

/* Parts of a configuration; they return what is wrong, or NULL. */
const char *chroma_config_set(chroma_config *config, lode_str key, const json_node *x);
const char *chroma_config_set_hnsw(chroma_config *config, const json_doc *json, uint32_t node);
const char *chroma_config_check_spann(const json_doc *json, uint32_t node);
const char *chroma_config_check_function(const json_doc *json, uint32_t node);
/* Are all keys of an object among `names`, a list that ends with NULL? */
bool chroma_config_knows(const json_doc *json, uint32_t node, const char *const *names);

/* ---- Schema (chroma_schema.c) ---- */

/* Checks the schema of a request and applies it to `config`. *differs: it says more than a collection has anyway. */
bool chroma_schema_read(chroma_request *c, uint32_t node, chroma_config *config, bool *differs);
/* The collection's schema with all that it leaves out, as Chroma's clients expect it. */
void chroma_schema_put(strbuf *out, const chroma_config *config);
/* Are the indexes enabled that the request's where and where_document need? `metadata` is the collection's. */
bool chroma_schema_allows(chroma_request *c, lode_str metadata);

enum { CHROMA_UUID_BYTES = 37 };
void chroma_uuid_format(uint64_t uid, char text[CHROMA_UUID_BYTES]);

/* ---- Handlers ---- */

/* clang-format off */
#define CHROMA_HANDLERS(X)                                                                                          \
  X(query) X(get) X(add) X(upsert) X(update) X(delete) X(count) X(indexing_status) X(search) X(fork) X(fork_count)  \
  X(attach_function) X(get_function) X(detach_function) X(update_tenant)                                            \
  X(get_collection_by_id) X(get_collection) X(update_collection) X(delete_collection) X(list_collections)           \
  X(create_collection) X(count_collections) X(get_database) X(delete_database) X(list_databases) X(create_database) \
  X(get_tenant) X(create_tenant) X(reset)
/* clang-format on */
#define CHROMA_DECLARE_HANDLER(verb) bool chroma_do_##verb(chroma_request *c);
CHROMA_HANDLERS(CHROMA_DECLARE_HANDLER)
#undef CHROMA_DECLARE_HANDLER

#endif
