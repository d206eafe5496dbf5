/* remote.h - inside src/lib/remote: lode.h on a Qdrant cluster, through its REST interface.
 *
 * Who does what
 *   remote_client.c      addresses, connections, requests that are tried again      remote_registry.c  entries of collections, locks
 *   remote_collection.c  collections and handles                                   remote_widen.c     the first vector of a collection
 *   remote_point.c       a record as a point, and back                             remote_filter.c    what Qdrant may sort out for us
 *   remote_scroll.c      the points of a collection, in order                      remote_write.c     add, upsert, update, delete
 *   remote_read.c        get, count, export                                        remote_query.c     by vector, by words, by both
 *   remote_facet.c       facets and counters                                       remote_maintain.c  statistics, verification, refusals
 *
 * What is where in the cluster (docs/SCALING.md has it for users)
 *   PREFIX-registry    a point for each collection of Lode: its name, kind and number
 *   PREFIX-NUMBER-G    its records. The generation G is another when the first vector comes: Qdrant fixes the dimension when a
 *                      collection is made, Lode when the first vector comes (remote_widen.c)
 *
 * A point's id is a UUID made of the SHA-256 of the record's id. Its payload:
 *   id, doc, meta   the record; meta as JSON text, to the byte
 *   n, seq          places in the order of insertion and of change: microseconds * 8, never the same twice from one
 *                   process. Below 2^53, because Qdrant's ranges are doubles
 *   p               true: without a vector
 *   f.KEY           the values of a metadata key as words, for filters and facets; KEY is a hash
 *   x.KEY           its numbers, for ranges
 *   v               cosine: the vector as base64, because Qdrant keeps it normalised
 *   crc             CRC-32C of id, doc, meta and vector
 * Vectors: "v" dense, "t" sparse: words of the document, weighted as BM25 does but for the frequency in the collection, which is
 * Qdrant's part.
 *
 * Qdrant only proposes: filters are sent as far as it can apply them, and each record that comes back is judged (src/lib/query).
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
  const iface_ops *engine;        /* iface_store_head */
  const lode_open_options *options;
  lode_open_options filled;
  mem_arena arena;                 /* what follows points into it */
  const char *bases[REMOTE_MAX_ADDRESSES]; /* "http://host:port" */
  size_t n_bases;
  const char *headers[2];            /* "api-key: ...", or NULL; NULL */
  const char *prefix;                /* of the names of Qdrant's collections */
  uint32_t shards, replicas, write_consistency; /* of new collections; 0 = Qdrant's defaults */
  _Atomic size_t base;               /* which address answered last */
  _Atomic uint64_t clock;            /* the last number that was given out */
  pthread_mutex_t lock;              /* guards idle */
  http_client *idle[REMOTE_MAX_IDLE_CONNS];
  size_t n_idle;
};

/* ---- Requests ---- */

/* How a request gets its answer: http_send, and in tests a cluster that says what it likes. */
typedef lode_status remote_transport_fn(http_client *http, const http_request *request, http_response *response, lode_error *err);
extern remote_transport_fn *remote_transport;

/* One request and its answer; zeroed is empty, and it may be used again. */
typedef struct remote_call {
  strbuf path, body;      /* body empty: none */
  strbuf url;
  http_client *started;       /* its first attempt is on its way there; NULL: it is not */
  size_t base;               /* the address that it went to */
  http_response response;
  json_doc answer;
  uint32_t result;           /* node of "result" */
  lode_progress progress;    /* asked while it lasts; false: LODE_CANCELLED */
} remote_call;
void remote_call_release(remote_call *call);
/* Begins a path: "/collections/..." */
__attribute__((format(printf, 2, 3))) void remote_call_path(remote_call *call, const char *format, ...);
/* Sends, to another address where one does not answer, and again where the cluster is busy, as long as the store is to wait
 * (busy_ms). All our requests may be repeated. LODE_NOT_FOUND for status 404; LODE_REFUSED, with the server's words, for others
 * of 4xx; LODE_IO, LODE_BUSY or LODE_FULL when it did not work out. */
lode_status remote_call_send(lode_store *store, const char *method, remote_call *call, lode_error *err);
/* A head start: the request goes out, and the caller does something else until remote_call_send, which must follow, and the call is not
 * touched until then. Whatever goes wrong with it is only lost time. push moves it on, now and then. */
void remote_call_start(lode_store *store, const char *method, remote_call *call);
void remote_call_push(remote_call *call);
/* The next number in the order of insertion; n of them are taken. */
uint64_t remote_next_seq(lode_store *store, size_t n);

/* ---- Collections ---- */

typedef struct remote_entry {
  uint64_t uid;
  uint32_t generation;
  lode_metric metric;
  iface_vector_spec fit;             /* dimension, embedder */
  lode_str name, metadata;
  lode_str counters;         /* JSON array of keys, or absent */
  uint32_t shards, replicas, write_consistency;
  lode_str lock;             /* of who changes the entry; absent: nobody */
  uint64_t beat;
  uint32_t spare;            /* a generation to be removed; 0: none */
} remote_entry;

struct lode_collection {
  const iface_ops *engine; /* iface_collection_head */
  lode_store *store;
  iface_vector_spec fit;              /* of this handle: embedder */
  uint64_t uid;
  pthread_mutex_t lock;       /* guards what follows */
  remote_entry kind;     /* as last seen; strings in `arena` */
  mem_arena arena;
  strbuf indexed;          /* fields that have an index, each followed by NUL */
};

/* ---- Entries of the registry ---- */

enum { REMOTE_LOCK_TOKEN_BYTES = 17, REMOTE_LOCK_STALE_MS = 5000 };
typedef struct remote_lock {
  char token[REMOTE_LOCK_TOKEN_BYTES];
  uint64_t beat, reported_ns;
} remote_lock;
typedef lode_status remote_entry_fn(void *ctx, const remote_entry *k, lode_error *err);

/* Strings are copied to `arena`. *found: there is one of that name. */
lode_status remote_registry_load(lode_store *s, lode_str name, mem_arena *arena, remote_entry *k, bool *found, lode_error *err);
lode_status remote_registry_each(lode_store *s, remote_entry_fn *fn, void *ctx, lode_error *err);
lode_status remote_registry_add(lode_store *s, const remote_entry *k, lode_error *err);
lode_status remote_registry_remove(lode_store *s, lode_str name, lode_error *err);
lode_status remote_registry_rename(lode_store *s, const remote_entry *k, lode_str old_name, lode_error *err);
/* Sets fields of an entry, `fields` being their JSON, if its lock is this one (absent: if it has none; NULL: whatever it has). In one
 * step of the cluster: of two who try, the second finds another lock and changes nothing. */
lode_status remote_registry_change(lode_store *s, lode_str name, const lode_str *lock, lode_str fields, lode_error *err);
/* Waits for others; takes over from those who died. *k: the entry, under the lock. */
lode_status remote_lock_acquire(lode_store *s, lode_str name, remote_lock *lock, mem_arena *arena, remote_entry *k,
                                     lode_error *err);
/* To be called at least every second while the lock is held. */
lode_status remote_lock_heartbeat(lode_store *s, lode_str name, remote_lock *lock, lode_error *err);
lode_status remote_lock_release(lode_store *s, lode_str name, const remote_lock *lock, lode_error *err);

/* Makes and removes the collection of Qdrant for a generation; one that is there, or is not, is fine. */
lode_status remote_generation_create(lode_store *s, const remote_entry *k, lode_error *err);
lode_status remote_generation_drop(lode_store *s, const remote_entry *k, lode_error *err);
/* Removes the spare generation, under the lock. */
lode_status remote_drop_spare(lode_store *s, const remote_entry *k, lode_error *err);
/* Waits until nobody is changing the entry. */
lode_status remote_wait_unlocked(lode_store *s, lode_str name, mem_arena *arena, remote_entry *k, lode_error *err);
/* After a write to what *k says: does it stand, or must it be done again where the records are now? */
lode_status remote_write_stands(lode_collection *c, const remote_entry *k, mem_arena *arena, bool *stands, lode_error *err);
/* What the handle knows from now on. */
lode_status remote_handle_update(lode_collection *c, const remote_entry *k, lode_error *err);

/* The collection as it was last seen; `fresh`: asks the registry. Strings are copied to `arena`. LODE_NOT_FOUND when it was
 * dropped. */
lode_status remote_entry_of(lode_collection *c, bool fresh, mem_arena *arena, remote_entry *kind, lode_error *err);
/* Makes room for vectors of a dimension: the first ones fix it. */
lode_status remote_fix_dimension(lode_collection *c, uint32_t dim, mem_arena *arena, remote_entry *kind,
                                       lode_error *err);
/* "/collections/PREFIX-NUMBER-G" into the call's path, and more behind it. */
__attribute__((format(printf, 4, 5))) void remote_generation_path(remote_call *call, const lode_store *store,
                                                             const remote_entry *kind, const char *format, ...);
/* Has Qdrant index a field of the payload, once; a read-only handle does without. */
lode_status remote_index_field(lode_collection *c, const remote_entry *kind, const char *field, const char *schema,
                               lode_error *err);
/* How many points there are; pending may be NULL. */
lode_status remote_count_points(lode_store *store, const remote_entry *kind, uint64_t *records, uint64_t *pending,
                                lode_error *err);


/* ---- Points ---- */

enum { REMOTE_UUID_BYTES = 37, REMOTE_FIELD_BYTES = 24 };

void remote_point_uuid(lode_str id, char text[REMOTE_UUID_BYTES]);
/* "f.0123456789abcdef": the payload's field of a metadata key; kind 'f' or 'x'. */
void remote_point_field(char kind, lode_str key, char text[REMOTE_FIELD_BYTES]);
/* A value as a word; false for strings that are too long to be one whole: those are words of their hash. */
bool remote_value_to_word(strbuf *out, const meta_value *value);
/* A word back to a JSON scalar; false when it was a hash. */
bool remote_value_from_word(lode_str word, strbuf *out);

typedef struct remote_point {
  lode_str id, document, metadata; /* absent where it has none, or was not asked for */
  const float *vector;             /* NULL: likewise */
  uint32_t dim;
  bool pending;
  uint64_t n, seq;
  uint32_t crc;
  double score;                    /* of searches */
} remote_point;

uint32_t remote_point_crc(const remote_point *p);
/* As JSON. metric decides how the vector is kept. */
lode_status remote_point_encode(strbuf *out, const remote_point *p, lode_metric metric, lode_error *err);
/* From a node of an answer. Strings point into the answer; the vector, if there is one, is in *vector (grown as needed).
 * LODE_CORRUPT for what no Lode has written. */
lode_status remote_point_decode(const json_doc *json, uint32_t node, lode_metric metric, strbuf *vector, remote_point *p,
                             lode_error *err);
/* The words of a text: "indices":[...],"values":[...]. False when it has none. */
bool remote_sparse_vector(strbuf *out, lode_str text, bool query, lode_error *err, lode_status *st);
/* "with_payload": {...}, "with_vector": ... for these parts and, if asked, what judging needs */
void remote_point_put_wanted(strbuf *out, unsigned include, bool eval_document, lode_metric metric, bool has_vectors);

/* ---- Selections ---- */

typedef struct remote_select {
  lode_collection *c;
  const lode_selection *what;
  filter_expr *filter;
  filter_eval *eval;
  bool has_filter;          /* the filter does not match everything */
  bool pending_only;
  strbuf prefilter;  /* "must" conditions, with commas between them; may be empty */
} remote_select;
lode_status remote_select_init(remote_select *s, lode_collection *c, const lode_selection *what, lode_error *err);
/* The conditions for Qdrant, once the collection is known. */
lode_status remote_select_plan(remote_select *s, const remote_entry *kind, lode_error *err);
void remote_select_release(remote_select *s);
lode_status remote_select_match(remote_select *s, const remote_point *p, bool *match, lode_error *err);
/* "filter":{"must":[...]}, with `more` conditions (each with a comma before it, or NULL); nothing when there are none. */
void remote_select_put_filter(strbuf *out, const remote_select *s, lode_str more);
bool remote_select_needs_doc(const remote_select *s);

/* All that match, in the order of insertion. */
typedef struct remote_scroll {
  remote_select *select;
  const remote_entry *kind;
  unsigned include;
  size_t page;          /* points a request */
  uint64_t start;       /* from this n on */
  size_t skip;          /* so many of those with n == start were seen */
  remote_call call;
  uint32_t *nodes;      /* of the page, by (n, id) */
  uint64_t *ns;
  size_t count, at, cap_nodes, cap_ns;
  bool last;            /* no further page */
  strbuf vector;
} remote_scroll;
void remote_scroll_init(remote_scroll *s, remote_select *select, const remote_entry *kind, unsigned include);
/* What the point refers to lives until the next call. */
lode_status remote_scroll_next(remote_scroll *s, remote_point *p, bool *more, lode_error *err);
void remote_scroll_release(remote_scroll *s);
/* A place to go on from: of the point that was last given. */
uint64_t remote_scroll_position(const remote_scroll *s, const remote_point *p);
void remote_scroll_resume(remote_scroll *s, uint64_t place);
/* Can it be one? */
bool remote_scroll_is_position(uint64_t place);

/* ---- Reads and writes by id ---- */

/* Calls fn for each of the ids that exists, in any order. */
typedef lode_status remote_point_fn(void *ctx, size_t i, const remote_point *p, lode_error *err);
lode_status remote_find(lode_collection *c, const remote_entry *kind, const lode_str *ids, size_t n, unsigned include,
                              bool with_payload, remote_point_fn *fn, void *ctx, lode_error *err);
/* Appends a row with these parts of the point. */
lode_status remote_result_add(lode_result *result, const remote_point *p, unsigned include, lode_row **row, lode_error *err);

/* ---- The engine's functions ---- */

#define REMOTE_DECLARE(name, handle, params, args) lode_status remote_##name params;
IFACE_OPS(REMOTE_DECLARE)
lode_status remote_open(const char *address, const lode_open_options *options, lode_store **store, lode_error *err);
void remote_close(lode_store *store);
void remote_collection_close(lode_collection *collection);
void remote_rollback(lode_txn *txn);

#endif
