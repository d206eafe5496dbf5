/* SPDX-License-Identifier: Apache-2.0 */
/* iface.h - the interface between lode.h and the engines, and the results that every engine returns.
 *
 * A store's address selects its engine: a folder is the embedded store (src/lib/engine), qdrant://HOST:PORT a cluster
 * (src/lib/remote). api.c dispatches each call of lode.h to the engine of its handle; nothing above lode.h knows which
 * engine it is. The handles of lode.h are defined here, and hold only what both engines share; the first member of each
 * engine's own handle is one of them.
 *
 * An engine clears *err, zeroes its results on failure, and returns LODE_UNSUPPORTED, with a text, if it cannot keep a
 * promise of lode.h.
 */
#ifndef LODE_IFACE_IFACE_H
#define LODE_IFACE_IFACE_H

#include "base/base.h"

/* X(name, handle, parameters, arguments): operations whose first argument is the handle that has the engine. api.c
 * checks that the handle is not NULL. These return a status only: */
#define IFACE_STATUS_OPS(X)                                                                                            \
  X(collection_rename, store, (lode_store * store, lode_str name, lode_str new_name, lode_error * err),                \
    (store, name, new_name, err))                                                                                      \
  X(collection_set_metadata, store, (lode_store * store, lode_str name, lode_str metadata, lode_error * err),          \
    (store, name, metadata, err))                                                                                      \
  X(collection_drop, store, (lode_store * store, lode_str name, lode_error * err), (store, name, err))                 \
  X(commit, txn, (lode_txn * txn, lode_error * err), (txn, err))                                                       \
  X(optimize, store, (lode_store * store, lode_progress progress, lode_error * err), (store, progress, err))           \
  X(rebuild_unreadable, store, (lode_store * store, lode_progress progress, lode_error * err), (store, progress, err)) \
  X(compact, store, (lode_store * store, lode_progress progress, lode_error * err), (store, progress, err))            \
  X(verify, store, (lode_store * store, lode_damage_fn * found, void *ctx, lode_progress progress, lode_error *err),   \
    (store, found, ctx, progress, err))                                                                                \
  X(backup, store, (lode_store * store, const char *file, lode_progress progress, lode_error *err),                    \
    (store, file, progress, err))
/* These have one result, which is required and zeroed on failure: */
#define IFACE_RESULT_OPS(X)                                                                                            \
  X(collections, store, (lode_store * store, lode_collection_list * *result, lode_error * err), (store, result, err))  \
  X(begin, store, (lode_store * store, lode_txn * *result, lode_error * err), (store, result, err))                    \
  X(count, collection, (lode_collection * collection, uint64_t * result, lode_error * err), (collection, result, err)) \
  X(facets, collection,                                                                                                \
    (lode_collection * collection, lode_str key, lode_str where, size_t limit, lode_facet_list * *result,              \
     lode_error * err),                                                                                                \
    (collection, key, where, limit, result, err))                                                                      \
  X(counters, collection, (lode_collection * collection, lode_str key, lode_facet_list * *result, lode_error * err),   \
    (collection, key, result, err))                                                                                    \
  X(store_id, store, (lode_store * store, uint64_t * result, lode_error * err), (store, result, err))
/* These have structs that may grow, or optional results, and functions of their own in api.c: */
#define IFACE_STRUCT_OPS(X)                                                                                            \
  X(collection_open, store,                                                                                            \
    (lode_store * store, lode_str name, const lode_collection_options *options, lode_collection **collection,          \
     lode_error *err),                                                                                                 \
    (store, name, options, collection, err))                                                                           \
  X(collections_replace, store, (lode_store * store, const lode_replacement *pairs, size_t n, lode_error *err),        \
    (store, pairs, n, err))                                                                                            \
  X(add, collection,                                                                                                   \
    (lode_collection * collection, lode_txn * txn, const lode_record *records, size_t n, lode_on_existing on_existing, \
     lode_write_result *result, lode_error *err),                                                                      \
    (collection, txn, records, n, on_existing, result, err))                                                           \
  X(upsert, collection,                                                                                                \
    (lode_collection * collection, lode_txn * txn, const lode_record *records, size_t n, lode_write_result *result,    \
     lode_error *err),                                                                                                 \
    (collection, txn, records, n, result, err))                                                                        \
  X(update, collection,                                                                                                \
    (lode_collection * collection, lode_txn * txn, const lode_record *records, size_t n, bool *missing,                \
     lode_write_result *result, lode_error *err),                                                                      \
    (collection, txn, records, n, missing, result, err))                                                               \
  X(delete, collection,                                                                                                \
    (lode_collection * collection, lode_txn * txn, const lode_selection *selection, size_t *deleted, lode_error *err), \
    (collection, txn, selection, deleted, err))                                                                        \
  X(get, collection,                                                                                                   \
    (lode_collection * collection, const lode_get_request *request, lode_result **result, lode_error *err),            \
    (collection, request, result, err))                                                                                \
  X(query, collection,                                                                                                 \
    (lode_collection * collection, const lode_query_request *request, lode_result **result, lode_error *err),          \
    (collection, request, result, err))                                                                                \
  X(store_stats, store, (lode_store * store, lode_stats * stats, lode_error * err), (store, stats, err))               \
  X(collection_stats, collection, (lode_collection * collection, lode_stats * stats, lode_error * err),                \
    (collection, stats, err))                                                                                          \
  X(export, collection,                                                                                                \
    (lode_collection * collection, const lode_selection *selection, unsigned include, lode_write_fn *write, void *ctx, \
     lode_progress progress, uint64_t *written, lode_error *err),                                                      \
    (collection, selection, include, write, ctx, progress, written, err))
#define IFACE_OPS(X) IFACE_STATUS_OPS(X) IFACE_RESULT_OPS(X) IFACE_STRUCT_OPS(X)

typedef struct iface_ops {
  LODE_MUST lode_status (*open)(const char *address, const lode_open_options *options, lode_store **store,
                                lode_error *err);
  void (*close)(lode_store *store);
  void (*collection_close)(lode_collection *collection);
  void (*rollback)(lode_txn *txn);
  /* Part of a txn: `successor` takes the place of collection `name`, which is dropped; handles of `name` go on with it.
   * NULL where there are no transactions. */
  LODE_MUST lode_status (*collection_succeed)(lode_txn *txn, lode_str name, lode_str successor, lode_error *err);
  /* Called after an import of this many records, for work that is best done at the end. May be NULL. */
  void (*loaded)(lode_store *store, uint64_t records, lode_progress progress);
#define IFACE_OPS_MEMBER(name, handle, params, args) LODE_MUST lode_status(*name) params;
  IFACE_OPS(IFACE_OPS_MEMBER)
#undef IFACE_OPS_MEMBER
} iface_ops;

extern const iface_ops engine_table, remote_table;

/* Without a handle, of the embedded engine alone. */
LODE_MUST lode_status engine_salvage(const char *from, const char *to, lode_damage_fn *lost, void *ctx,
                                     lode_progress progress, lode_salvage_report *report, lode_error *err);
LODE_MUST lode_status engine_verify_folder(const char *folder, lode_damage_fn *found, void *ctx, lode_progress progress,
                                           lode_error *err);
LODE_MUST lode_status engine_restore(const char *file, const char *folder, lode_progress progress, lode_error *err);

/* Declares the functions of the embedded engine: IFACE_OPS(ENGINE_DECLARE) */
#define ENGINE_DECLARE(name, handle, params, args) LODE_MUST lode_status engine_##name params;

/* ---- Handles ----
 *
 * Embedded as `head`, the first member, in the engines' own handles. Each of those has a function that goes back from
 * the public handle (engine_store_of() and so on), and checks the engine: api.c dispatches by `engine`, so that only a
 * bug can pass the handle of another one. */

struct lode_store {
  const iface_ops *engine;
  const lode_open_options *options; /* with the defaults filled in */
};

struct lode_collection {
  const iface_ops *engine;
  lode_store *store;
};

struct lode_txn {
  const iface_ops *engine;
  lode_store *store;
};

/* ---- Results ---- */

/* Rows and everything that they point to, within a limit of bytes: a larger result is LODE_LIMIT. */
struct lode_result {
  lode_row *rows;
  size_t n, cap;
  uint64_t next;
  uint64_t moment;
  lode_str explanation; /* JSON; absent unless the request wants it */
  size_t limit_bytes;
  mem_arena arena;
};
LODE_MUST lode_status iface_result_new(uint64_t limit_bytes, lode_result **result, lode_error *err);
/* Adds a row at the end, with all fields absent. It counts only after iface_result_keep(). */
LODE_MUST lode_status iface_result_row(lode_result *result, lode_row **row, lode_error *err);
void iface_result_keep(lode_result *result);
/* Memory that belongs to the result. A copy of an absent string is absent; others are NUL-terminated. */
LODE_MUST lode_status iface_result_alloc(lode_result *result, size_t size, void **bytes, lode_error *err);
LODE_MUST lode_status iface_result_copy(lode_result *result, lode_str from, lode_str *to, lode_error *err);

/* ---- Exports ---- */

enum { IFACE_EXPORT_FLUSH_BYTES = 1 << 20 }; /* lines are written when they are this long */
/* Appends a record as a line of JSON, without the parts that are absent. */
void iface_export_put(strbuf *lines, const lode_row *row);
/* Writes all lines and empties the buffer. */
LODE_MUST lode_status iface_export_flush(strbuf *lines, lode_write_fn *write, void *ctx, lode_error *err);

/* ---- Lists ---- */

struct lode_facet_list {
  lode_facet *facets;
  size_t n;
  mem_arena arena;
};

struct lode_collection_list {
  lode_collection_info *infos;
  size_t n, cap;
  mem_arena arena;
};
LODE_MUST lode_status iface_coll_list_new(lode_collection_list **list, lode_error *err);
/* Adds a copy. */
LODE_MUST lode_status iface_coll_list_add(lode_collection_list *list, const lode_collection_info *info,
                                          lode_error *err);

#endif
