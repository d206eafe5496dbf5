/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h - internals of src/lib/remote: lode.h on a Qdrant cluster, through its REST API.
 *
 * Files
 *   remote_client.c      addresses, connections, requests and their retries
 *   remote_registry.c    registry entries of collections, and their locks
 *   remote_collection.c  collections and handles
 *   remote_widen.c       the first vector of a collection
 *   remote_point.c       a record as a point, and back
 *   remote_filter.c      the part of a filter that Qdrant applies
 *   remote_scroll.c      the points of a collection, in order
 *   remote_write.c       add, upsert, update, delete
 *   remote_read.c        get, count, export
 *   remote_query.c       queries by vector, by text, and hybrid
 *   remote_facet.c       facets and counters
 *   remote_maintain.c    statistics, verification, unsupported operations
 *
 * Qdrant collections (docs/SCALING.md describes them for users)
 *   PREFIX-registry    a point for each collection of Lode: its name, uid, metric, dimension and so on
 *   PREFIX-UID-G       the records of a collection; UID in hexadecimal. The generation G changes with the first
 *                      vector: Qdrant fixes the dimension when a collection is created, Lode with the first vector
 *                      (remote_widen.c)
 *
 * The id of a point is a UUID derived from the SHA-256 of the record's id. Its payload:
 *   id, doc, meta   the record; meta is the exact JSON text
 *   n, seq          numbers in the order of insertion and of change: microseconds * 8, never the same twice from one
 *                   store handle; below 2^53, because Qdrant's ranges are doubles
 *   p               true: the record has no vector
 *   f.KEY           the values of a metadata key as words, for filters and facets; KEY is a hash
 *   x.KEY           its numbers, for ranges
 *   v               cosine: the vector as base64, because Qdrant stores it normalized
 *   crc             CRC-32C of id, doc, meta and vector
 * Vectors: "v" dense; "t" sparse: the words of the document with BM25 weights, except for the inverse document
 * frequency, which Qdrant adds.
 *
 * Qdrant only proposes: filters are sent as far as it can apply them, and the whole filter is evaluated on each
 * record that comes back (src/lib/query).
 */
#ifndef LODE_REMOTE_REMOTE_H
#define LODE_REMOTE_REMOTE_H

#include "iface/iface_check.h"
#include "iface/iface.h"
#include "os/http.h"
#include "base/json.h"
#include "query/filter.h"

#include <pthread.h>
#include <stdatomic.h>

enum { REMOTE_MAX_IDLE_CONNS = 16, REMOTE_MAX_ADDRESSES = 64 };

struct lode_store {
  const iface_ops *engine; /* iface_store_head */
  const lode_open_options *options;
  lode_open_options filled;
  mem_arena arena;                         /* holds the strings below */
  const char *bases[REMOTE_MAX_ADDRESSES]; /* "http://host:port" */
  size_t n_bases;
  const char *headers[2];                       /* "api-key: ...", or NULL; NULL */
  const char *prefix;                           /* of the names of the Qdrant collections */
  uint32_t shards, replicas, write_consistency; /* for new collections; 0: Qdrant's default */
  _Atomic size_t base;                          /* index of the address that answered last */
  _Atomic uint64_t clock;                       /* not less than any number that remote_next_seq() has handed out */
  pthread_mutex_t lock;                         /* guards idle */
  http_client *idle[REMOTE_MAX_IDLE_CONNS];
  size_t n_idle;
};

/* ---- Requests ---- */

/* Performs a request: http_send(), or a simulated cluster in tests. */
typedef lode_status remote_transport_fn(http_client *http, const http_request *request, http_response *response,
                                        lode_error *err);
extern remote_transport_fn *remote_transport;

/* One request and its response. Zero it before the first use; it may be reused. */
typedef struct remote_call {
  strbuf path, body; /* body empty: none */
  strbuf url;
  http_client *started; /* connection of a request begun by remote_call_start(); NULL: none */
  size_t base;          /* index of the address that it was sent to */
  http_response response;
  json_doc answer;        /* the parsed body of the response */
  uint32_t result;        /* node of "result" in the answer */
  lode_progress progress; /* called while the request lasts; false: LODE_CANCELLED */
} remote_call;
void remote_call_release(remote_call *call);
/* Sets the path ("/collections/...") and empties the body. */
__attribute__((format(printf, 2, 3))) void remote_call_path(remote_call *call, const char *format, ...);
/* Sends the request; tries the next address if one does not answer, and all again if the cluster is busy, for up to
 * busy_ms. All our requests are idempotent. LODE_NOT_FOUND: status 404. LODE_REFUSED: another 4xx, with the server's
 * message. LODE_FULL: a disk of the cluster is full. LODE_IO: no answer, or a transient status until the end. */
lode_status remote_call_send(lode_store *store, const char *method, remote_call *call, lode_error *err);
/* Begins the request without waiting. remote_call_send() must follow, and the call must not be changed until then. An
 * error here only costs time: remote_call_send() starts over. remote_call_push() drives the transfer; call it now and
 * then. */
void remote_call_start(lode_store *store, const char *method, remote_call *call);
void remote_call_push(remote_call *call);
/* Returns the first of n new numbers in the order of insertion. */
uint64_t remote_next_seq(lode_store *store, size_t n);

/* ---- Collections ---- */

/* A collection's entry in the registry. */
typedef struct remote_entry {
  uint64_t uid;
  uint32_t generation;
  lode_metric metric;
  iface_vector_spec spec; /* dimension, embedder */
  lode_str name, metadata;
  lode_str counters; /* JSON array of keys, or absent */
  uint32_t shards, replicas, write_consistency;
  lode_str lock;  /* token of the lock's holder; absent: not locked */
  uint64_t beat;  /* heartbeat of the holder */
  uint32_t spare; /* a generation to be removed; 0: none */
} remote_entry;

struct lode_collection {
  const iface_ops *engine; /* iface_collection_head */
  lode_store *store;
  iface_vector_spec spec; /* the embedder of this handle */
  uint64_t uid;
  pthread_mutex_t lock; /* guards the members below */
  remote_entry entry;   /* as last read; strings in `arena` */
  mem_arena arena;
  strbuf indexed; /* payload fields known to have an index, each followed by NUL */
};

/* ---- Entries of the registry ---- */

enum { REMOTE_LOCK_TOKEN_BYTES = 17, REMOTE_LOCK_STALE_MS = 5000 };
typedef struct remote_lock {
  char token[REMOTE_LOCK_TOKEN_BYTES];
  uint64_t beat, reported_ns;
} remote_lock;
typedef lode_status remote_entry_fn(void *ctx, const remote_entry *k, lode_error *err);

/* Strings are copied to `arena`. *found: there is an entry with this name. */
lode_status remote_registry_load(lode_store *s, lode_str name, mem_arena *arena, remote_entry *k, bool *found,
                                 lode_error *err);
lode_status remote_registry_each(lode_store *s, remote_entry_fn *fn, void *ctx, lode_error *err);
lode_status remote_registry_add(lode_store *s, const remote_entry *k, lode_error *err);
lode_status remote_registry_remove(lode_store *s, lode_str name, lode_error *err);
lode_status remote_registry_rename(lode_store *s, const remote_entry *k, lode_str old_name, lode_error *err);
/* Sets fields of an entry (`fields` is their JSON) if its lock is this one (absent: if it is not locked; NULL: in any
 * case). This is atomic: of two callers, the second finds another lock and changes nothing. */
lode_status remote_registry_change(lode_store *s, lode_str name, const lode_str *lock, lode_str fields,
                                   lode_error *err);
/* Waits for other holders, and takes over the lock of one that died. *k: the entry, read under the lock. */
lode_status remote_lock_acquire(lode_store *s, lode_str name, remote_lock *lock, mem_arena *arena, remote_entry *k,
                                lode_error *err);
/* Call this at least every second while the lock is held. */
lode_status remote_lock_heartbeat(lode_store *s, lode_str name, remote_lock *lock, lode_error *err);
lode_status remote_lock_release(lode_store *s, lode_str name, const remote_lock *lock, lode_error *err);

/* Create and drop the Qdrant collection of a generation. It is no error if it exists, or does not exist, already. */
lode_status remote_generation_create(lode_store *s, const remote_entry *k, lode_error *err);
lode_status remote_generation_drop(lode_store *s, const remote_entry *k, lode_error *err);
/* Drops the spare generation. The caller holds the lock. */
lode_status remote_drop_spare(lode_store *s, const remote_entry *k, lode_error *err);
/* Waits until nobody holds the entry's lock. */
lode_status remote_wait_unlocked(lode_store *s, lode_str name, mem_arena *arena, remote_entry *k, lode_error *err);
/* After a write to the generation of *k: is that still the current one, or must the write be repeated in a new one? */
lode_status remote_write_stands(lode_collection *c, const remote_entry *k, mem_arena *arena, bool *stands,
                                lode_error *err);
/* Stores a copy of the entry in the handle. */
lode_status remote_handle_update(lode_collection *c, const remote_entry *k, lode_error *err);

/* The entry as the handle last read it; `fresh`: reads the registry first. Strings are copied to `arena`.
 * LODE_NOT_FOUND: the collection was dropped. */
lode_status remote_entry_of(lode_collection *c, bool fresh, mem_arena *arena, remote_entry *entry, lode_error *err);
/* Gives the collection this dimension, unless it has one already. */
lode_status remote_fix_dimension(lode_collection *c, uint32_t dim, mem_arena *arena, remote_entry *entry,
                                 lode_error *err);
/* Sets the call's path to "/collections/PREFIX-UID-G" followed by the formatted text. */
__attribute__((format(printf, 4, 5))) void remote_generation_path(remote_call *call, const lode_store *store,
                                                                  const remote_entry *entry, const char *format, ...);
/* Makes Qdrant index a payload field, once per handle; does nothing for a read-only handle. */
lode_status remote_index_field(lode_collection *c, const remote_entry *entry, const char *field, const char *schema,
                               lode_error *err);
/* Counts the points; pending may be NULL. */
lode_status remote_count_points(lode_store *store, const remote_entry *entry, uint64_t *records, uint64_t *pending,
                                lode_error *err);

/* ---- Points ---- */

enum { REMOTE_UUID_BYTES = 37, REMOTE_FIELD_BYTES = 24 };

void remote_point_uuid(lode_str id, char text[REMOTE_UUID_BYTES]);
/* The payload field of a metadata key, as "f.0123456789abcdef"; kind is 'f' or 'x'. */
void remote_point_field(char kind, lode_str key, char text[REMOTE_FIELD_BYTES]);
/* A value as a word. False: the string is too long, and the word is its hash. */
bool remote_value_to_word(strbuf *out, const meta_value *value);
/* A word back to a JSON scalar. False: the word is a hash. */
bool remote_value_from_word(lode_str word, strbuf *out);

typedef struct remote_point {
  lode_str id, document, metadata; /* absent: the record has none, or it was not requested */
  const float *vector;             /* NULL: the record has none, or it was not requested */
  uint32_t dim;
  bool pending;
  uint64_t n, seq;
  uint32_t crc;
  double score; /* of searches */
} remote_point;

uint32_t remote_point_crc(const remote_point *p);
/* Appends the point as JSON. The metric determines how the vector is stored. */
lode_status remote_point_encode(strbuf *out, const remote_point *p, lode_metric metric, lode_error *err);
/* Decodes a node of a response. Strings point into the response; the vector, if there is one, is stored in *vector
 * (NULL: ignored). LODE_CORRUPT: the point was not written by Lode. */
lode_status remote_point_decode(const json_doc *json, uint32_t node, lode_metric metric, strbuf *vector,
                                remote_point *p, lode_error *err);
/* Appends the words of a text as {"indices":[...],"values":[...]}. False: it has no words. */
bool remote_sparse_vector(strbuf *out, lode_str text, bool query, lode_error *err, lode_status *st);
/* Appends "with_payload":[...],"with_vector":... for these parts; eval_document: the filter needs the document. */
void remote_point_put_wanted(strbuf *out, unsigned include, bool eval_document, lode_metric metric, bool has_vectors);

/* ---- Selections ---- */

typedef struct remote_select {
  lode_collection *c;
  const lode_selection *what;
  filter_expr *filter;
  filter_eval *eval;
  bool has_filter; /* the filter does not match everything */
  bool pending_only;
  strbuf prefilter; /* conditions for "must", separated by commas; may be empty */
} remote_select;
lode_status remote_select_init(remote_select *s, lode_collection *c, const lode_selection *what, lode_error *err);
/* Builds `prefilter`, and the indexes that it needs. */
lode_status remote_select_plan(remote_select *s, const remote_entry *entry, lode_error *err);
void remote_select_release(remote_select *s);
lode_status remote_select_match(remote_select *s, const remote_point *p, bool *match, lode_error *err);
/* Appends ,"filter":{"must":[...]} with the prefilter and `more` conditions; nothing if there are none. */
void remote_select_put_filter(strbuf *out, const remote_select *s, lode_str more);
bool remote_select_needs_doc(const remote_select *s);

/* A scan of all matching records, in the order of insertion. */
typedef struct remote_scroll {
  remote_select *select;
  const remote_entry *entry;
  unsigned include;
  size_t page;    /* points per request */
  uint64_t start; /* the next page begins with this n */
  size_t skip;    /* this many points with n == start were returned already */
  remote_call call;
  uint32_t *nodes; /* points of the page, sorted by (n, id) */
  uint64_t *ns;    /* n of each */
  size_t count, at, cap_nodes, cap_ns;
  bool last; /* this is the last page */
  strbuf vector;
} remote_scroll;
void remote_scroll_init(remote_scroll *s, remote_select *select, const remote_entry *entry, unsigned include);
/* The strings and the vector of the point are valid until the next call. */
lode_status remote_scroll_next(remote_scroll *s, remote_point *p, bool *more, lode_error *err);
void remote_scroll_release(remote_scroll *s);
/* The position after the point that was last returned, for remote_scroll_resume(). */
uint64_t remote_scroll_position(const remote_scroll *s, const remote_point *p);
void remote_scroll_resume(remote_scroll *s, uint64_t position);
/* Is it in the range of positions? */
bool remote_scroll_is_position(uint64_t position);

/* ---- Reads and writes by id ---- */

/* Calls fn for each of the ids that has a record, in any order; i is the index of the id. */
typedef lode_status remote_point_fn(void *ctx, size_t i, const remote_point *p, lode_error *err);
lode_status remote_find(lode_collection *c, const remote_entry *entry, const lode_str *ids, size_t n, unsigned include,
                        bool with_payload, remote_point_fn *fn, void *ctx, lode_error *err);
/* Appends a row with these parts of the point. */
lode_status remote_result_add(lode_result *result, const remote_point *p, unsigned include, lode_row **row,
                              lode_error *err);

/* ---- The engine's functions ---- */

#define REMOTE_DECLARE(name, handle, params, args) lode_status remote_##name params;
IFACE_OPS(REMOTE_DECLARE)
lode_status remote_open(const char *address, const lode_open_options *options, lode_store **store, lode_error *err);
void remote_close(lode_store *store);
void remote_collection_close(lode_collection *collection);
void remote_rollback(lode_txn *txn);

#endif
