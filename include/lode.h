/* SPDX-License-Identifier: Apache-2.0 */
/* lode.h - the public API of liblode, and its manual.
 *
 * A store is a folder. The database in it is one SQLite file that holds every record (id, document,
 * metadata, vector); everything else is derived from it, checksummed, and made again when it is lost.
 *
 * Conventions
 *   - What can fail returns lode_status. Results come back through the last pointers before the
 *     error and are zeroed on failure. `err` may be NULL; its text says what to do next.
 *   - Strings are lode_str: bytes and a length, UTF-8, not NUL-terminated unless said otherwise.
 *     data == NULL means absent, which differs from empty.
 *   - What a lode_*open*() function opened is closed by lode_*close(). A transaction ends with lode_commit()
 *     or lode_rollback(). Everything else that the library allocates has a lode_*_free(). Closing or
 *     freeing NULL does nothing.
 *   - Options and requests are structs; zero them (`= {0}`) and set what you need: zero is the default.
 *   - A NULL handle, or NULL where something is required, is LODE_INVALID.
 *   - Structs get new fields at their end, and programs that were compiled with an older or a newer
 *     lode.h still work: functions that take such structs are inline and pass their sizes (see "Sizes" at
 *     the end). lode_str, lode_error, lode_progress and lode_selection never change their size. What is
 *     marked LODE_EXPERIMENTAL may change in any release. docs/COMPATIBILITY.md has the whole policy.
 *   - A lode_store and its lode_collections may be used by many threads at once. A lode_txn, a
 *     lode_result and a lode_error belong to one thread at a time.
 *   - A store may be open in many processes at once. Readers see every commit that was acknowledged
 *     before they began, whoever made it. One answer (a page of lode_get(), the rows of a query, facets) speaks of one
 *     moment; where others commit all the time, and an answer would hold them up for longer than half of busy_ms, it
 *     is LODE_BUSY. A handle used after fork() opens the store again.
 *   - The library never prints, exits, maps a file or installs a signal handler.
 *
 * Distances are those that Chroma's users know: l2 is squared, cosine is 1 - cos (1 for a zero vector),
 * ip is 1 - dot. Smaller is nearer; ties are broken by id.
 */
#ifndef LODE_H
#define LODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header. lode_version() and lode_version_number() are those of the library that runs. */
#define LODE_VERSION_TEXT "0.1.0"
#define LODE_VERSION_NUMBER 1000 /* major * 1000000 + minor * 1000 + patch */
#define LODE_ABI 1               /* the number in liblode.so.1: programs need another library when it changes */

#if defined(__GNUC__)
#define LODE_API __attribute__((visibility("default")))
#define LODE_MUST __attribute__((warn_unused_result))
#else
#define LODE_API
#define LODE_MUST
#endif
#if defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L
#define LODE_MUST_TYPE [[nodiscard]] /* from C23 on: of every function that returns it */
#else
#define LODE_MUST_TYPE
#endif
#define LODE_INLINE static inline /* of this header; the library exports NAME_sized */
#define LODE_EXPERIMENTAL         /* may change in any release */

/* ---- Statuses ------------------------------------------------------------------------------- */

/* X(name, what it means). Each has one meaning; two that are easily mistaken for another:
 *
 * REFUSED: what was given is understood, and a rule forbids it; the same call fails again until that changes. With
 * lode_error.record set it is a record that is not valid, and nothing of the batch was written. Without, it is a file
 * that may not be used (a link, a pipe, somebody else's), a store that is not trusted, or a server that refuses the
 * request. A call that cannot be understood is INVALID, a full disk FULL, a lock BUSY.
 * INTERNAL: the library has found a contradiction in itself. Never caused by arguments, files or the system: those have
 * the other statuses. The handle is of no use any more; what is on disk stays as it is. */
#define LODE_STATUSES(X)                                                                                               \
  X(OK, "done")                                                                                                        \
  X(NOT_FOUND, "no such store, collection or record")                                                                  \
  X(EXISTS, "exists already")                                                                                          \
  X(INVALID, "wrong argument or filter")                                                                               \
  X(REFUSED, "a record that is not valid, or something that may not be used; nothing was written")                     \
  X(MISMATCH, "dimension or embedding model differs from the collection's")                                            \
  X(LIMIT, "a documented limit was exceeded")                                                                          \
  X(CORRUPT, "damaged data on disk")                                                                                   \
  X(TOO_NEW, "the store was written by a newer lode")                                                                  \
  X(BUSY, "another process holds the lock")                                                                            \
  X(READONLY, "the store is open for reading only")                                                                    \
  X(GONE, "the store was removed or replaced while open")                                                              \
  X(IO, "the operating system reported an error")                                                                      \
  X(FULL, "no space left on the device")                                                                               \
  X(NOMEM, "out of memory")                                                                                            \
  X(CANCELLED, "cancelled by the caller")                                                                              \
  X(UNSUPPORTED, "not supported by this store")                                                                        \
  X(INTERNAL, "a bug in lode: CONTRIBUTING.md and `lode help bugs` say where to report it")

typedef enum LODE_MUST_TYPE lode_status {
#define LODE_STATUS_ENUM(name, text) LODE_##name,
  LODE_STATUSES(LODE_STATUS_ENUM)
#undef LODE_STATUS_ENUM
} lode_status;

#define LODE_NO_RECORD SIZE_MAX

typedef struct lode_error {
  lode_status status;
  size_t record;  /* position in the batch of the record at fault, else LODE_NO_RECORD */
  char text[600]; /* one sentence or two, NUL-terminated, no trailing newline */
} lode_error;

LODE_API const char *lode_status_name(lode_status status); /* "NOT_FOUND" */
LODE_API const char *lode_status_text(lode_status status); /* "no such store, ..." */
LODE_API const char *lode_version(void);
LODE_API uint32_t lode_version_number(void);

typedef struct lode_str {
  const char *data;
  size_t len;
} lode_str;

/* Long operations report their progress, and stop with LODE_CANCELLED when the callback says false.
 * total is 0 when it is not known. */
typedef struct lode_progress {
  bool (*step)(void *ctx, const char *phase, uint64_t done, uint64_t total);
  void *ctx;
} lode_progress;

/* ---- Limits --------------------------------------------------------------------------------- */

#define LODE_MAX_ID_BYTES 4096
#define LODE_MAX_NAME_BYTES 512
#define LODE_MAX_DIMENSION 65535
#define LODE_MAX_METADATA_BYTES (1u << 20)   /* one record's metadata, as JSON */
#define LODE_MAX_DOCUMENT_BYTES (256u << 20) /* the cap that max_document_bytes may not exceed */
#define LODE_MAX_FILTER_CLAUSES 1000000      /* values in lists of $in and $nin count as clauses */
#define LODE_MAX_FILTER_DEPTH 200000         /* of $and, $or and $not; deeper nesting is refused */
#define LODE_MAX_EFFORT 65536
#define LODE_MAX_FILTER_BYTES (256u << 20)

/* ---- Store ---------------------------------------------------------------------------------- */

/* A store is a folder, or has the address of a Qdrant cluster: qdrant://HOST:PORT, several with commas between them
 * (any node answers for all), then perhaps /NAME for one of several stores in a cluster, and
 * ?shards=N&replicas=N&write_consistency=N for new collections; qdrants:// speaks TLS. The key is LODE_QDRANT_API_KEY
 * of the environment; without TLS it is sent to another machine only with ?plain_key=1. What a cluster cannot promise
 * is LODE_UNSUPPORTED there: docs/SCALING.md has the table. Clusters are experimental. */
typedef struct lode_store lode_store;

typedef struct lode_open_options {
  bool create;            /* make the store (folder mode 0700) if there is none */
  bool read_only;         /* never write anything, not even a recovery */
  bool no_background;     /* no maintenance thread: lode_optimize() does that work */
  uint32_t busy_ms;       /* how long to wait for a lock; 0 = 10,000; 1 is the least */
  uint32_t page_bytes;    /* of a new store: 512 to 65,536, a power of two; 0 = 16,384 */
  bool preload;           /* a server: bring the vector index into memory when a collection is opened */
  uint32_t build_threads; /* for the vector index; 0 = as many as there are processors, at most 8; in the background
                             half of them */
  uint64_t memory_bytes;  /* budget for caches, transactions and building; 0 = 256 MiB; the least is 16 MiB */
  uint64_t max_document_bytes; /* 0 = 64 MiB */
  bool bulk_load; /* much is about to be written, and lode_optimize() ends it: until then the vector index stays flat,
                     and its graphs are made in half of the time, a little coarser: the same recall takes a tenth more
                     work of a query */
  void (*log)(void *ctx, const char *line); /* notices: damage found, network file system, ...; may be NULL */
  void *log_ctx;
} lode_open_options;

LODE_MUST LODE_INLINE lode_status lode_open(const char *address, const lode_open_options *options, lode_store **store,
                                            lode_error *err);
/* Waits for the maintenance thread's current step (milliseconds; of a bulk load, seconds). Close collections first. */
LODE_API void lode_close(lode_store *store);

/* ---- Collections ---------------------------------------------------------------------------- */

typedef enum lode_metric { LODE_L2, LODE_COSINE, LODE_IP } lode_metric;

LODE_API const char *lode_metric_name(lode_metric metric); /* "l2", "cosine", "ip" */
LODE_MUST LODE_API bool lode_metric_parse(lode_str text, lode_metric *metric);

typedef struct lode_collection lode_collection;

typedef struct lode_collection_options {
  bool create;              /* make it if it does not exist */
  bool must_create;         /* with create: LODE_EXISTS if it does */
  lode_metric metric;       /* of a new collection */
  lode_str metadata;        /* of a new collection: any JSON object, kept as it is */
  const lode_str *counters; /* of a new collection: metadata keys whose values are counted (see lode_counters) */
  size_t n_counters;
  lode_str embedder;     /* name of the model that makes the vectors; stamped on the first open that names one */
  uint32_t embedder_dim; /* its dimension; 0 = unknown */
  /* Of a new collection on a cluster; on one machine they mean nothing. Experimental. */
  uint32_t shards;            /* parts that it is cut into */
  uint32_t replicas;          /* copies of each part */
  uint32_t write_consistency; /* copies that must have acknowledged a write; 0 = as the store's address says, else the
                                 cluster's default */
} lode_collection_options;

/* Opening with another embedder than the stamped one succeeds: reading and text search go on. Vector
 * writes and vector queries through that handle answer LODE_MISMATCH and say what to do. */
LODE_MUST LODE_INLINE lode_status lode_collection_open(lode_store *store, lode_str name,
                                                       const lode_collection_options *options,
                                                       lode_collection **collection, lode_error *err);
LODE_API void lode_collection_close(lode_collection *collection);
LODE_MUST LODE_API lode_status lode_collection_rename(lode_store *store, lode_str name, lode_str new_name,
                                                      lode_error *err);
/* Several at once, all or none: each collection `name` takes the name `new_name`; one that had that name is dropped.
 * What was built aside so takes the place of the old in one moment, for every reader. */
typedef struct lode_replacement {
  lode_str name, new_name;
} lode_replacement;
LODE_MUST LODE_INLINE lode_status lode_collections_replace(lode_store *store, const lode_replacement *pairs, size_t n,
                                                           lode_error *err);
/* Replaces the user metadata (a JSON object). */
LODE_MUST LODE_API lode_status lode_collection_set_metadata(lode_store *store, lode_str name, lode_str metadata,
                                                            lode_error *err);
/* Gone at once for every reader; its bytes are erased by maintenance, and surely by lode_compact(). */
LODE_MUST LODE_API lode_status lode_collection_drop(lode_store *store, lode_str name, lode_error *err);

typedef struct lode_collection_info {
  uint64_t uid; /* never used again, also after a drop */
  lode_str name;
  lode_metric metric;
  uint32_t dimension; /* 0 until the first vector */
  lode_str metadata;  /* JSON object or absent */
  lode_str embedder;  /* absent if none was ever named */
  uint32_t embedder_dim;
  uint64_t records; /* all records */
  uint64_t pending; /* those without a vector */
} lode_collection_info;

typedef struct lode_collection_list lode_collection_list;
LODE_MUST LODE_API lode_status lode_collections(lode_store *store, lode_collection_list **list, lode_error *err);
LODE_API size_t lode_collection_list_count(const lode_collection_list *list);
LODE_API const lode_collection_info *lode_collection_list_at(const lode_collection_list *list, size_t i);
LODE_API void lode_collection_list_free(lode_collection_list *list);

/* ---- Records -------------------------------------------------------------------------------- */

typedef struct lode_record {
  lode_str id;         /* 1 to LODE_MAX_ID_BYTES bytes of UTF-8 */
  lode_str document;   /* absent, or UTF-8 */
  lode_str metadata;   /* absent, or a JSON object whose values are strings, 64-bit integers, doubles,
                          booleans, or arrays of one of those kinds */
  const float *vector; /* NULL: the record is pending until an update brings one */
  uint32_t dimension;
  uint32_t reserved; /* 0 */
} lode_record;

/* ---- Writes --------------------------------------------------------------------------------- */

/* Several operations as one: all of them or none. Holds the store's write lock from begin to commit or
 * rollback, so keep it short. Every write below takes a txn, or NULL to be a transaction of its own.
 *
 * A txn ends with lode_commit() or lode_rollback(), before its store is closed. It is used by one thread at a time,
 * with collections of the store that it was begun on. Until it ends, other writes of the process wait for it, up to
 * busy_ms: a write with NULL on the thread that has the txn waits in vain (LODE_BUSY). Reads do not see what it has
 * written. In a forked child it cannot be used any more; lode_rollback() frees it there.
 *
 * Where this is LODE_UNSUPPORTED (on a cluster), each record of a write is whole or absent, a write that failed may
 * have been done in part and may be repeated, and others may see a part of it before the call returns. */
typedef struct lode_txn lode_txn;
LODE_MUST LODE_API lode_status lode_begin(lode_store *store, lode_txn **txn, lode_error *err);
/* When it returns LODE_OK, the writes survive kill -9 and power loss. The txn is freed either way. */
LODE_MUST LODE_API lode_status lode_commit(lode_txn *txn, lode_error *err);
LODE_API void lode_rollback(lode_txn *txn);

typedef struct lode_write_result {
  size_t written; /* records added or changed */
  size_t skipped; /* add: ids that existed and were kept; update: ids that do not exist */
} lode_write_result;

typedef enum lode_on_existing { LODE_FAIL_EXISTING, LODE_KEEP_EXISTING } lode_on_existing;

/* The same id twice in one batch is refused in each of these. `result` may be NULL.
 * A failed write inside a txn leaves the txn as it was before that write. */
LODE_MUST LODE_INLINE lode_status lode_add(lode_collection *collection, lode_txn *txn, const lode_record *records,
                                           size_t n, lode_on_existing on_existing, lode_write_result *result,
                                           lode_error *err);
/* Adds, or replaces what is given of an existing record (document, vector) and merges its metadata. */
LODE_MUST LODE_INLINE lode_status lode_upsert(lode_collection *collection, lode_txn *txn, const lode_record *records,
                                              size_t n, lode_write_result *result, lode_error *err);
/* Changes existing records: what is absent stays; metadata merges key by key, null removes a key. Ids that do
 * not exist are skipped and counted; `missing`, if given, is an array of n bools that says which. */
LODE_MUST LODE_INLINE lode_status lode_update(lode_collection *collection, lode_txn *txn, const lode_record *records,
                                              size_t n, bool *missing, lode_write_result *result, lode_error *err);

/* What to act on. ids and filters together mean: those of the ids that match. Filters are JSON texts (see
 * "Filters" below). */
typedef struct lode_selection {
  const lode_str *ids; /* NULL: not restricted by id */
  size_t n_ids;
  lode_str where;          /* on metadata */
  lode_str where_document; /* on documents */
  uint64_t reserved[4];    /* 0: room to grow, because requests contain a selection */
} lode_selection;

/* Refused (LODE_INVALID) when the selection is empty, i.e. would mean everything: say where = {} for that. */
LODE_MUST LODE_API lode_status lode_delete(lode_collection *collection, lode_txn *txn, const lode_selection *selection,
                                           size_t *deleted, lode_error *err);

/* ---- Reads ---------------------------------------------------------------------------------- */

enum {
  LODE_DOCUMENT = 1,
  LODE_METADATA = 2,
  LODE_VECTOR = 4,
  LODE_ALL = 7,
};

typedef struct lode_row {
  lode_str id;
  lode_str document;   /* absent unless included and present */
  lode_str metadata;   /* JSON object; absent unless included and present */
  const float *vector; /* NULL unless included and present */
  uint32_t dimension;
  uint64_t cursor;   /* commit-ordered position of the record's last change */
  uint64_t position; /* of the record in the order of insertion; 0 where the store has no such order */
  size_t query;      /* queries: which of them, from 0 */
  size_t rank;       /* queries: from 0 */
  double distance;   /* queries with a vector: exact; NaN where the record has no vector */
  double score;      /* text: BM25, larger is better; hybrid: fused score */
} lode_row;

/* Rows, in order. Owns everything that its rows point to. Each row lies equally far after the one before it, which may
 * be farther than sizeof(lode_row). */
typedef struct lode_result lode_result;
LODE_API size_t lode_result_count(const lode_result *result);
LODE_API const lode_row *lode_result_at(const lode_result *result, size_t i);
/* After lode_get(): what to pass as `after` for the next page; 0 when there is none. A page that is exactly full may be
 * the last one although this is not 0: the next one is empty then. */
LODE_API uint64_t lode_result_next(const lode_result *result);
/* The position of the newest commit that the answer knows of: two answers with the same one speak of one moment, so
 * who needs several can tell whether to ask again. 0 where a store has no such order. */
LODE_EXPERIMENTAL LODE_API uint64_t lode_result_moment(const lode_result *result);
/* After lode_query() with `explain`: a JSON object that tells how the answer was planned, why, and what was done, with
 * numbers and times: {"steps": [{"step": "filter", "method": .., "why": .., "ms": ..}, ..]} (docs/INDEX.md). For
 * people; which steps and numbers there are may change. Absent otherwise. */
LODE_EXPERIMENTAL LODE_API lode_str lode_result_explain(const lode_result *result);
LODE_API void lode_result_free(lode_result *result);

typedef struct lode_get_request {
  lode_selection select;
  bool pending_only;      /* only records without a vector */
  size_t limit;           /* 0 = no limit */
  size_t offset;          /* skips rows; prefer `after`, which pages in linear time */
  uint64_t after;         /* a lode_result_next() of an earlier page, 0 = from the start */
  unsigned include;       /* LODE_DOCUMENT | LODE_METADATA | LODE_VECTOR; 0 = ids only */
  lode_progress progress; /* asked at the start and some times a second ("read", 0, 0): false ends it with
                           * LODE_CANCELLED. It must neither wait nor call the library */
} lode_get_request;

/* By ids: in the order asked, absent ones left out. Otherwise in the order of insertion. A NULL request means all. */
LODE_MUST LODE_INLINE lode_status lode_get(lode_collection *collection, const lode_get_request *request,
                                           lode_result **result, lode_error *err);

/* O(1), from the database. */
LODE_MUST LODE_API lode_status lode_count(lode_collection *collection, uint64_t *count, lode_error *err);

/* How many records have each value of a metadata key, largest count first, then by value. Array values count
 * once for each of their distinct elements. */
typedef struct lode_facet {
  lode_str value; /* JSON scalar */
  uint64_t count;
} lode_facet;
typedef struct lode_facet_list lode_facet_list;
LODE_MUST LODE_API lode_status lode_facets(lode_collection *collection, lode_str key, lode_str where, size_t limit,
                                           lode_facet_list **list, lode_error *err);
/* The same for a key that was declared as a counter: kept by each write, read without touching records. An absent key
 * (data NULL) lists the declared keys themselves, with how many values each has. */
LODE_EXPERIMENTAL LODE_MUST LODE_API lode_status lode_counters(lode_collection *collection, lode_str key,
                                                               lode_facet_list **list, lode_error *err);
LODE_API size_t lode_facet_list_count(const lode_facet_list *list);
LODE_API const lode_facet *lode_facet_list_at(const lode_facet_list *list, size_t i);
LODE_API void lode_facet_list_free(lode_facet_list *list);

/* ---- Query ---------------------------------------------------------------------------------- */

typedef enum lode_mode { LODE_BY_VECTOR, LODE_BY_TEXT, LODE_HYBRID } lode_mode;

typedef struct lode_query_request {
  lode_mode mode;
  const float *vectors; /* n queries x dimension, row after row; not for LODE_BY_TEXT */
  uint32_t dimension;
  const lode_str *texts;   /* n texts; not for LODE_BY_VECTOR */
  size_t n;                /* how many queries */
  size_t k;                /* results for each; all that exist if fewer do */
  lode_selection select;   /* only these records take part */
  unsigned include;        /* parts of the rows, as for lode_get_request */
  bool exact;              /* look at every vector instead of asking the index */
  uint32_t effort;         /* of the index: how many of the nearest rows a search goes on from; 0 = as the data need */
  double target_recall;    /* the share of the true nearest to aim at: 0 = about 0.98 (all of them if the index holds at
                              most 20,000 vectors), 1 = exact; effort comes first */
  uint64_t most_unindexed; /* experimental. By words: of the records that the text index does not hold yet, this many
                              are looked at, the oldest first; 0 = all */
  double vector_weight;    /* hybrid: weights of the two rankings (reciprocal ranks; words of most documents count for
                              nothing); both 0 = 1 and 1 */
  double text_weight;
  lode_progress progress; /* as for lode_get_request */
  uint64_t explain;       /* experimental. 1 = lode_result_explain() tells how the queries were answered; 0 = no */
} lode_query_request;

/* Rows of query 0 by rank, then of query 1, ... The rows of a query are of one moment; queries of a large request are
 * answered in groups (of 64 at most), each at a later moment than the one before.
 *
 * Large collections have an index of their vectors, made in the background: a query finds nearly all of the true
 * nearest (see target_recall), with exact distances, among all records of the newest commit. Never fewer rows come back
 * than exist. */
LODE_MUST LODE_INLINE lode_status lode_query(lode_collection *collection, const lode_query_request *request,
                                             lode_result **result, lode_error *err);

/* Filters
 *
 * On metadata: {"key": value} or {"key": {"$op": operand}}, several keys or operators in one object meaning
 * all of them; {"$and": [..]}, {"$or": [..]}, {"$not": filter}; {} is true.
 *   $eq $ne                     with a string, number or boolean
 *   $gt $gte $lt $lte           with a string or number
 *   $in $nin                    with an array of strings, numbers and booleans, not empty
 *   $contains $not_contains     with a scalar: the value is an array that has it
 * $ne, $nin and $not_contains match records without the key. Integers and doubles compare by value; values
 * of different kinds are never equal and never ordered; an array is never equal to a scalar.
 * On documents: {"$contains": text}, $not_contains, {"$regex": pattern}, $not_regex, $and, $or, $not. Text is
 * compared as bytes, case included. A record without a document matches the $not_ forms only. Patterns are PCRE2's,
 * found anywhere in the document; at most 256 of 64 KiB in a filter. One that would backtrack without end is
 * LODE_LIMIT. The key "#document" in a metadata filter takes a document filter.
 */

/* Which of these texts a filter on documents matches, without a store: matches[i] is about texts[i]. */
LODE_EXPERIMENTAL LODE_MUST LODE_API lode_status lode_match_texts(lode_str where_document, const lode_str *texts,
                                                                  size_t n, bool *matches, lode_error *err);

/* ---- Statistics ----------------------------------------------------------------------------- */

/* O(1) in the number of records. Bytes are of files, as they are on disk. */
typedef struct lode_stats {
  uint64_t collections;
  uint64_t records;
  uint64_t pending;       /* records without a vector */
  uint64_t cursor;        /* position of the newest commit */
  uint64_t bytes;         /* all files of the store; this and what follows is 0 where a store has no files of its own */
  uint64_t free_bytes;    /* inside them, to be given back by maintenance or lode_compact() */
  uint64_t unerased;      /* deleted records and vectors whose bytes wait for maintenance */
  uint64_t untexted;      /* records that the text index does not hold yet (they are scanned) */
  uint64_t unindexed;     /* records that the metadata index does not hold yet (they are scanned) */
  uint64_t segments;      /* files of the vector index */
  uint64_t segment_bytes; /* in them */
  uint64_t indexed;       /* living vectors that they hold */
  uint64_t tail;          /* living vectors that they do not hold (they are scanned) */
  uint64_t dead;          /* deleted or replaced vectors in them */
  uint64_t building;      /* segments being made now, by any process */
  uint64_t build_done;    /* by this handle: how far the one being made is, ... */
  uint64_t build_total;   /* ... of this many steps; 0 when none is */
  uint64_t damaged_segments; /* found by this handle since it was opened */
  uint64_t damaged_pages;    /* seen by this handle since it was opened */
  uint64_t quarantined;      /* files set aside in the folder */
  uint32_t page_bytes;
  uint32_t format;
  uint32_t files;
  uint32_t commit_number; /* counts the commits of a store, to tell an older copy from a newer one; 0: unknown */
  uint64_t committed_ms;  /* when the newest record was written, deleted or changed: ms since 1970; 0: unknown */
} lode_stats;
LODE_MUST LODE_INLINE lode_status lode_store_stats(lode_store *store, lode_stats *stats, lode_error *err);
/* The same for one collection; fields about files are 0. */
LODE_MUST LODE_INLINE lode_status lode_collection_stats(lode_collection *collection, lode_stats *stats,
                                                        lode_error *err);

/* The random number that a store gets when it is made. Copies and backups share it: it tells a store from another one
 * in its place, and proves nothing. LODE_UNSUPPORTED on a cluster. */
LODE_MUST LODE_API lode_status lode_store_id(lode_store *store, uint64_t *id, lode_error *err);

/* ---- Maintenance ---------------------------------------------------------------------------- */

/* Does the pending maintenance now: text, metadata and vector index, erasure of deleted data, giving pages back. */
LODE_MUST LODE_API lode_status lode_optimize(lode_store *store, lode_progress progress, lode_error *err);
/* The same, and files of the vector index that cannot be read are set aside and built again from the records: for a
 * disk with bad sectors. lode_optimize() leaves them alone, because a read that fails proves no damage.
 * LODE_UNSUPPORTED on a cluster. */
LODE_EXPERIMENTAL LODE_MUST LODE_API lode_status lode_rebuild_unreadable(lode_store *store, lode_progress progress,
                                                                         lode_error *err);
/* Erases what was deleted, for good, and rewrites the files as small as they can be: a store never grows by it. Indexes
 * that lag are left to lode_optimize() and the background. */
LODE_MUST LODE_API lode_status lode_compact(lode_store *store, lode_progress progress, lode_error *err);

typedef struct lode_damage {
  const char *what;    /* "page", "record", "vector", "document", "index", "counter", "file", ... */
  lode_str collection; /* absent where unknown */
  lode_str id;         /* of the record, absent where unknown */
  const char *detail;  /* a sentence */
} lode_damage;
typedef void lode_damage_fn(void *ctx, const lode_damage *damage);

/* Checks everything, calls `found` for each damage, and returns LODE_CORRUPT if there was any. */
LODE_MUST LODE_API lode_status lode_verify(lode_store *store, lode_damage_fn *found, void *ctx, lode_progress progress,
                                           lode_error *err);
/* For a store in a folder that lode_open() refuses as damaged: checks each page, without opening it, and calls `found`
 * for each that fails its checksum or is known to be of another moment. LODE_CORRUPT if there was any.
 * LODE_UNSUPPORTED for an address. */
LODE_EXPERIMENTAL LODE_MUST LODE_API lode_status lode_verify_folder(const char *folder, lode_damage_fn *found,
                                                                    void *ctx, lode_progress progress, lode_error *err);

typedef struct lode_salvage_report {
  uint64_t pages; /* of the damaged file */
  uint64_t damaged_pages;
  uint64_t records;          /* brought over, proven by their checksums */
  uint64_t without_document; /* of those: lost their document */
  uint64_t without_vector;   /* of those: lost their vector (now pending) */
  uint64_t lost;             /* known to have existed, and not brought over */
} lode_salvage_report;
/* Reads what can be read of a damaged store (its folder, or its file) with a page reader of its own, never
 * writing to it, into a new store at `to`; `lost` is called for each loss. */
LODE_MUST LODE_INLINE lode_status lode_salvage(const char *from, const char *to, lode_damage_fn *lost, void *ctx,
                                               lode_progress progress, lode_salvage_report *report, lode_error *err);

/* One file that holds the whole database at one moment; other processes may go on writing. `file` must not exist. */
LODE_MUST LODE_API lode_status lode_backup(lode_store *store, const char *file, lode_progress progress,
                                           lode_error *err);
/* Checks the backup, then makes a store of it at `folder`, which must not hold one. */
LODE_MUST LODE_API lode_status lode_restore(const char *file, const char *folder, lode_progress progress,
                                            lode_error *err);

/* Streams: return bytes moved, 0 at the end of a read, or -1 for an error. */
typedef int64_t lode_read_fn(void *ctx, void *buffer, size_t size);
typedef int64_t lode_write_fn(void *ctx, const void *data, size_t size);

/* One JSON object a line: {"id","document","metadata","embedding"}, in the order of insertion. A NULL selection means
 * all. Up to 1 MiB are of one moment. Of more, a record that is there from beginning to end is in it once, as it was
 * when it was read; one that is deleted and added again meanwhile may be in it twice. lode_backup() is of one moment.
 */
LODE_MUST LODE_API lode_status lode_export(lode_collection *collection, const lode_selection *selection,
                                           unsigned include, lode_write_fn *write, void *ctx, lode_progress progress,
                                           uint64_t *written, lode_error *err);

typedef struct lode_embedder lode_embedder; /* see "Embedders" below */

typedef enum lode_import_mode { LODE_IMPORT_ADD, LODE_IMPORT_UPSERT, LODE_IMPORT_UPDATE } lode_import_mode;
typedef enum lode_format { LODE_JSONL, LODE_NPY, LODE_FVECS } lode_format;
typedef struct lode_import_request {
  lode_import_mode mode;
  lode_on_existing on_existing; /* for LODE_IMPORT_ADD */
  lode_format format;
  size_t batch;            /* records in one commit; 0 = 1,000 */
  lode_embedder *embedder; /* makes vectors for records that have a document and no embedding; may be NULL. Open the
                              collection with its identity */
  uint64_t first_id;       /* .npy and .fvecs: ids are decimal numbers from here */
  lode_read_fn *read;
  void *ctx;
  void (*missing)(void *ctx, lode_str id); /* LODE_IMPORT_UPDATE: told each id that does not exist; may be NULL */
  void *missing_ctx;
} lode_import_request;
typedef struct lode_import_report {
  uint64_t lines; /* or vectors, read */
  uint64_t written;
  uint64_t skipped;
} lode_import_report;
/* Committed batch by batch: on failure err->record is the line (from 0), and earlier batches stay. */
LODE_MUST LODE_INLINE lode_status lode_import(lode_collection *collection, const lode_import_request *request,
                                              lode_progress progress, lode_import_report *report, lode_error *err);

/* ---- Embedders: text to vector -------------------------------------------------------------- */

/* Models by name:
 *   "minilm"         all-MiniLM-L6-v2, 384 dimensions, the default of collections; `lode model install minilm` once
 *   "code"           the static model for code, hundreds of times faster, the default of code search
 *   a path           a folder with a BERT-like model: config.json, model.safetensors, tokenizer.json (or vocab.txt)
 *   "openai:MODEL"   an OpenAI-compatible server ($OPENAI_BASE_URL, $OPENAI_API_KEY)
 *   "ollama:MODEL"   an Ollama server ($OLLAMA_HOST)
 * A name may also be an identity, as it is stamped into collections: then the model must be that very one. */
#define LODE_MODEL_MINILM "minilm"
#define LODE_MODEL_CODE "code"

/* Both give vectors of one family: they may share a collection. */
typedef enum lode_precision { LODE_PRECISION_DEFAULT, LODE_PRECISION_FULL, LODE_PRECISION_INT8 } lode_precision;

typedef struct lode_embedder_options {
  const char *folder;  /* where installed models lie; NULL = $LODE_MODELS, else $XDG_DATA_HOME/lode/models, else
                          ~/.local/share/lode/models; what is not there is looked for in PREFIX/share/lode/models */
  uint32_t max_tokens; /* longer texts are cut; 0 = the model's own setting (minilm: 256) */
  uint32_t threads;    /* for one lode_embed() call; 0 = 1. Those of built-in models stay, asleep, until the embedder is
                          closed */
  lode_precision precision; /* default: int8 where the model has it */
  uint32_t timeout_ms;      /* servers: for one request; 0 = 60,000 */
  const char *url;          /* servers: base address; NULL = from the environment */
  const char *key;          /* servers: API key; NULL = from the environment */
} lode_embedder_options;

/* LODE_NOT_FOUND: no such model, or it is not installed; the text says what to run. */
LODE_MUST LODE_INLINE lode_status lode_embedder_open(lode_str model, const lode_embedder_options *options,
                                                     lode_embedder **embedder, lode_error *err);

/* A host's own: fills n x dimension floats. Called by as many threads at once as call lode_embed(). */
typedef lode_status lode_embed_fn(void *ctx, const lode_str *texts, size_t n, float *vectors, lode_error *err);
/* `identity` names model and revision; it is what collections are stamped with. */
LODE_MUST LODE_API lode_status lode_embedder_open_custom(lode_str identity, uint32_t dimension, lode_embed_fn *embed,
                                                         void *ctx, lode_embedder **embedder, lode_error *err);

typedef struct lode_embedder_info {
  lode_str identity; /* "NAME@REVISION/DIMENSION/FAMILY": for lode_collection_options.embedder */
  uint32_t dimension;
  uint32_t max_tokens;   /* 0 = unknown */
  const char *precision; /* "full", "int8", or "" where it is not ours to know */
  const char *kernel;    /* the instruction set in use, "" where there is none of ours */
} lode_embedder_info;
/* Valid until lode_embedder_close(). */
LODE_API const lode_embedder_info *lode_embedder_info_of(const lode_embedder *embedder);

/* n texts (any bytes) to n x dimension floats, of length 1 for the built-in models. Many threads may share one
 * embedder. The same text gives the same vector, whatever stands beside it in the batch. */
LODE_MUST LODE_API lode_status lode_embed(lode_embedder *embedder, const lode_str *texts, size_t n, float *vectors,
                                          lode_error *err);
LODE_API void lode_embedder_close(lode_embedder *embedder);

/* Makes the vectors of those of the n records that have a document and none yet, and points the records to them. Free
 * *vectors with lode_vectors_free() when the records are written. */
LODE_MUST LODE_INLINE lode_status lode_embed_records(lode_embedder *embedder, lode_record *records, size_t n,
                                                     float **vectors, lode_error *err);
LODE_API void lode_vectors_free(float *vectors);

typedef struct lode_reembed_request {
  lode_embedder *embedder; /* makes the new vectors */
  bool drop_vectors;       /* records that have a vector and no document lose it; without this they are refused */
  lode_progress progress;  /* "embed", records done, all records */
} lode_reembed_request;
typedef struct lode_reembed_report {
  uint64_t records;        /* of the collection */
  uint64_t embedded;       /* vectors made by this call */
  uint64_t reused;         /* made by an earlier call that did not end */
  uint64_t without_vector; /* records without a document */
} lode_reembed_report;
/* Gives the collection's documents vectors of another model, in place of all vectors that it has. The new vectors are
 * made aside, in a collection called NAME~reembed; reads and writes of the old one go on meanwhile, and what they
 * change is made good. Then one transaction puts the new one in its place: no answer mixes two models, and handles of
 * the collection stay valid, unless they were opened with the old model's name, which is LODE_MISMATCH from then on. A
 * call that failed, was cancelled or killed leaves the collection as it was; the next one with the same model resumes
 * the work, one with another model begins again. Calls with the same model at
 * once share the work. LODE_UNSUPPORTED on a cluster. */
LODE_EXPERIMENTAL LODE_MUST LODE_INLINE lode_status lode_reembed(lode_store *store, lode_str name,
                                                                 const lode_reembed_request *request,
                                                                 lode_reembed_report *report, lode_error *err);

/* Models with a name. */
typedef struct lode_model_info {
  const char *name;  /* "minilm" */
  const char *title; /* "all-MiniLM-L6-v2, ..." */
  const char *identity;
  const char *source; /* the package that carries it, as PACKAGE@VERSION; "" when it is part of lode */
  const char *file;   /* its pack; "" when it is not installed or is part of lode */
  uint32_t dimension;
  uint32_t max_tokens;
  uint64_t bytes; /* of the pack */
  bool installed;
} lode_model_info;
typedef struct lode_model_list lode_model_list;
/* All models with a name, installed or not. Only `folder` of the options is used. */
LODE_EXPERIMENTAL LODE_MUST LODE_INLINE lode_status lode_models(const lode_embedder_options *options,
                                                                lode_model_list **list, lode_error *err);
LODE_API size_t lode_model_list_count(const lode_model_list *list);
LODE_API const lode_model_info *lode_model_list_at(const lode_model_list *list, size_t i);
LODE_API void lode_model_list_free(lode_model_list *list);
/* Packs the model whose files lie in `from` (of the source package) into the models folder. Their SHA-256 must be the
 * known ones. An existing pack is replaced. */
LODE_EXPERIMENTAL LODE_MUST LODE_INLINE lode_status lode_model_install(lode_str model, const char *from,
                                                                       const lode_embedder_options *options,
                                                                       lode_progress progress, lode_error *err);
/* Reads the whole pack and checks every checksum: LODE_CORRUPT says what is damaged. */
LODE_EXPERIMENTAL LODE_MUST LODE_INLINE lode_status lode_model_verify(lode_str model,
                                                                      const lode_embedder_options *options,
                                                                      lode_error *err);

/* ---- Sizes ---------------------------------------------------------------------------------- */

/* The functions above that take structs which may grow, as the library exports them: each such pointer is followed by
 * the size of one struct as the caller was compiled. Other languages call these. What a smaller struct lacks is zero.
 * Of a larger one, what this library does not know must be zero (else LODE_INVALID), and is set to zero in results. */

LODE_MUST LODE_API lode_status lode_open_sized(const char *address, const lode_open_options *options,
                                               size_t options_size, lode_store **store, lode_error *err);
LODE_INLINE lode_status lode_open(const char *address, const lode_open_options *options, lode_store **store,
                                  lode_error *err) {
  return lode_open_sized(address, options, sizeof *options, store, err);
}
LODE_MUST LODE_API lode_status lode_collection_open_sized(lode_store *store, lode_str name,
                                                          const lode_collection_options *options, size_t options_size,
                                                          lode_collection **collection, lode_error *err);
LODE_INLINE lode_status lode_collection_open(lode_store *store, lode_str name, const lode_collection_options *options,
                                             lode_collection **collection, lode_error *err) {
  return lode_collection_open_sized(store, name, options, sizeof *options, collection, err);
}
LODE_MUST LODE_API lode_status lode_collections_replace_sized(lode_store *store, const lode_replacement *pairs,
                                                              size_t pair_size, size_t n, lode_error *err);
LODE_INLINE lode_status lode_collections_replace(lode_store *store, const lode_replacement *pairs, size_t n,
                                                 lode_error *err) {
  return lode_collections_replace_sized(store, pairs, sizeof *pairs, n, err);
}
LODE_MUST LODE_API lode_status lode_add_sized(lode_collection *collection, lode_txn *txn, const lode_record *records,
                                              size_t record_size, size_t n, lode_on_existing on_existing,
                                              lode_write_result *result, size_t result_size, lode_error *err);
LODE_INLINE lode_status lode_add(lode_collection *collection, lode_txn *txn, const lode_record *records, size_t n,
                                 lode_on_existing on_existing, lode_write_result *result, lode_error *err) {
  return lode_add_sized(collection, txn, records, sizeof *records, n, on_existing, result, sizeof *result, err);
}
LODE_MUST LODE_API lode_status lode_upsert_sized(lode_collection *collection, lode_txn *txn, const lode_record *records,
                                                 size_t record_size, size_t n, lode_write_result *result,
                                                 size_t result_size, lode_error *err);
LODE_INLINE lode_status lode_upsert(lode_collection *collection, lode_txn *txn, const lode_record *records, size_t n,
                                    lode_write_result *result, lode_error *err) {
  return lode_upsert_sized(collection, txn, records, sizeof *records, n, result, sizeof *result, err);
}
LODE_MUST LODE_API lode_status lode_update_sized(lode_collection *collection, lode_txn *txn, const lode_record *records,
                                                 size_t record_size, size_t n, bool *missing, lode_write_result *result,
                                                 size_t result_size, lode_error *err);
LODE_INLINE lode_status lode_update(lode_collection *collection, lode_txn *txn, const lode_record *records, size_t n,
                                    bool *missing, lode_write_result *result, lode_error *err) {
  return lode_update_sized(collection, txn, records, sizeof *records, n, missing, result, sizeof *result, err);
}
LODE_MUST LODE_API lode_status lode_get_sized(lode_collection *collection, const lode_get_request *request,
                                              size_t request_size, lode_result **result, lode_error *err);
LODE_INLINE lode_status lode_get(lode_collection *collection, const lode_get_request *request, lode_result **result,
                                 lode_error *err) {
  return lode_get_sized(collection, request, sizeof *request, result, err);
}
LODE_MUST LODE_API lode_status lode_query_sized(lode_collection *collection, const lode_query_request *request,
                                                size_t request_size, lode_result **result, lode_error *err);
LODE_INLINE lode_status lode_query(lode_collection *collection, const lode_query_request *request, lode_result **result,
                                   lode_error *err) {
  return lode_query_sized(collection, request, sizeof *request, result, err);
}
LODE_MUST LODE_API lode_status lode_store_stats_sized(lode_store *store, lode_stats *stats, size_t stats_size,
                                                      lode_error *err);
LODE_INLINE lode_status lode_store_stats(lode_store *store, lode_stats *stats, lode_error *err) {
  return lode_store_stats_sized(store, stats, sizeof *stats, err);
}
LODE_MUST LODE_API lode_status lode_collection_stats_sized(lode_collection *collection, lode_stats *stats,
                                                           size_t stats_size, lode_error *err);
LODE_INLINE lode_status lode_collection_stats(lode_collection *collection, lode_stats *stats, lode_error *err) {
  return lode_collection_stats_sized(collection, stats, sizeof *stats, err);
}
LODE_MUST LODE_API lode_status lode_salvage_sized(const char *from, const char *to, lode_damage_fn *lost, void *ctx,
                                                  lode_progress progress, lode_salvage_report *report,
                                                  size_t report_size, lode_error *err);
LODE_INLINE lode_status lode_salvage(const char *from, const char *to, lode_damage_fn *lost, void *ctx,
                                     lode_progress progress, lode_salvage_report *report, lode_error *err) {
  return lode_salvage_sized(from, to, lost, ctx, progress, report, sizeof *report, err);
}
LODE_MUST LODE_API lode_status lode_import_sized(lode_collection *collection, const lode_import_request *request,
                                                 size_t request_size, lode_progress progress,
                                                 lode_import_report *report, size_t report_size, lode_error *err);
LODE_INLINE lode_status lode_import(lode_collection *collection, const lode_import_request *request,
                                    lode_progress progress, lode_import_report *report, lode_error *err) {
  return lode_import_sized(collection, request, sizeof *request, progress, report, sizeof *report, err);
}
LODE_MUST LODE_API lode_status lode_embedder_open_sized(lode_str model, const lode_embedder_options *options,
                                                        size_t options_size, lode_embedder **embedder, lode_error *err);
LODE_INLINE lode_status lode_embedder_open(lode_str model, const lode_embedder_options *options,
                                           lode_embedder **embedder, lode_error *err) {
  return lode_embedder_open_sized(model, options, sizeof *options, embedder, err);
}
LODE_MUST LODE_API lode_status lode_embed_records_sized(lode_embedder *embedder, lode_record *records,
                                                        size_t record_size, size_t n, float **vectors, lode_error *err);
LODE_INLINE lode_status lode_embed_records(lode_embedder *embedder, lode_record *records, size_t n, float **vectors,
                                           lode_error *err) {
  return lode_embed_records_sized(embedder, records, sizeof *records, n, vectors, err);
}
LODE_MUST LODE_API lode_status lode_reembed_sized(lode_store *store, lode_str name, const lode_reembed_request *request,
                                                  size_t request_size, lode_reembed_report *report, size_t report_size,
                                                  lode_error *err);
LODE_INLINE lode_status lode_reembed(lode_store *store, lode_str name, const lode_reembed_request *request,
                                     lode_reembed_report *report, lode_error *err) {
  return lode_reembed_sized(store, name, request, sizeof *request, report, sizeof *report, err);
}
LODE_MUST LODE_API lode_status lode_models_sized(const lode_embedder_options *options, size_t options_size,
                                                 lode_model_list **list, lode_error *err);
LODE_INLINE lode_status lode_models(const lode_embedder_options *options, lode_model_list **list, lode_error *err) {
  return lode_models_sized(options, sizeof *options, list, err);
}
LODE_MUST LODE_API lode_status lode_model_install_sized(lode_str model, const char *from,
                                                        const lode_embedder_options *options, size_t options_size,
                                                        lode_progress progress, lode_error *err);
LODE_INLINE lode_status lode_model_install(lode_str model, const char *from, const lode_embedder_options *options,
                                           lode_progress progress, lode_error *err) {
  return lode_model_install_sized(model, from, options, sizeof *options, progress, err);
}
LODE_MUST LODE_API lode_status lode_model_verify_sized(lode_str model, const lode_embedder_options *options,
                                                       size_t options_size, lode_error *err);
LODE_INLINE lode_status lode_model_verify(lode_str model, const lode_embedder_options *options, lode_error *err) {
  return lode_model_verify_sized(model, options, sizeof *options, err);
}

#ifdef __cplusplus
}
#endif
#endif
