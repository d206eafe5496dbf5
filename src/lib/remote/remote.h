/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h - lode.h on a Qdrant cluster, through its REST API: the store's handle and its requests.
 *
 * Files
 *   remote_client.c      addresses, connections, requests and their retries; the table of operations (iface/iface.h)
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

#include "iface/iface.h"
#include "os/http.h"
#include "base/json.h"

#include <pthread.h>
#include <stdatomic.h>

enum { REMOTE_MAX_IDLE_CONNS = 16, REMOTE_MAX_ADDRESSES = 64 };

typedef struct remote_store {
  lode_store head;
  lode_open_options filled;
  mem_arena arena;                         /* holds the strings below */
  const char *bases[REMOTE_MAX_ADDRESSES]; /* "http://host:port" */
  size_t n_bases;
  const char *headers[2];                       /* "api-key: ...", or NULL; NULL */
  const char *prefix;                           /* of the names of the Qdrant collections */
  uint32_t shards, replicas, write_consistency; /* for new collections; 0: Qdrant's default */
  uint32_t plain_key;                           /* not 0: the key may be sent without TLS to another machine */
  _Atomic size_t base;                          /* index of the address that answered last */
  _Atomic uint64_t clock;                       /* not less than any number that remote_next_seq() has handed out */
  pthread_mutex_t lock;                         /* guards idle */
  http_client *idle[REMOTE_MAX_IDLE_CONNS];
  size_t n_idle;
} remote_store;
_Static_assert(offsetof(remote_store, head) == 0, "remote_store_of() relies on it");
static inline remote_store *remote_store_of(lode_store *head) {
  return INVARIANT(!head || head->engine == &remote_table) ? (remote_store *)head : NULL;
}

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
LODE_MUST lode_status remote_call_send(remote_store *store, const char *method, remote_call *call, lode_error *err);
/* Begins the request without waiting. remote_call_send() must follow, and the call must not be changed until then. An
 * error here only costs time: remote_call_send() starts over. remote_call_push() drives the transfer; call it now and
 * then. */
void remote_call_start(remote_store *store, const char *method, remote_call *call);
void remote_call_push(remote_call *call);
/* Returns the first of n new numbers in the order of insertion. */
uint64_t remote_next_seq(remote_store *store, size_t n);

/* ---- The engine's functions ---- */

#define REMOTE_DECLARE(name, handle, params, args) LODE_MUST lode_status remote_##name params;
IFACE_OPS(REMOTE_DECLARE)
LODE_MUST lode_status remote_open(const char *address, const lode_open_options *options, lode_store **store,
                                  lode_error *err);
void remote_close(lode_store *store);
void remote_collection_close(lode_collection *collection);
void remote_rollback(lode_txn *txn);

#endif
