/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - the functions of lode.h that have a store, a collection or a transaction: each checks its arguments, takes
 * the caller's structs by their sizes, and calls the engine of its handle. */
#include "api/sized.h"
#include "iface/iface_check.h"
#include "iface/iface.h"

/* ---- Stores ---- */

static bool starts_with(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

/* Length of the scheme of an address with "://"; 0 for a path. */
static size_t address_scheme_len(const char *address) {
  size_t len = strspn(address, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
  return len && starts_with(address + len, "://") ? len : 0;
}

lode_status lode_open_sized(const char *address, const lode_open_options *options, size_t options_size,
                            lode_store **store, lode_error *err) {
  lode_open_options own;
  err_clear(err);
  API_REQUIRE(store, err);
  *store = NULL;
  if (!address || !*address)
    return err_set(err, LODE_INVALID, "name the folder of the store, or the address of a cluster");
  TRY(API_TAKE(&own, options, options_size, lode_open_options, err));
  TRY(iface_check_open_options(&own, err));
  bool cluster = (starts_with(address, "qdrant://") || starts_with(address, "qdrants://"));
  if (!cluster && address_scheme_len(address))
    return err_set(err, LODE_INVALID,
                   "%.*s:// is no store that Lode knows: qdrant:// and qdrants:// are; a folder of that name is "
                   "./%.300s",
                   (int)(address_scheme_len(address) < 40 ? address_scheme_len(address) : 40), address, address);
  return (cluster ? &remote_table : &engine_table)->open(address, &own, store, err);
}

void lode_close(lode_store *store) {
  if (store) store->engine->close(store);
}

lode_status lode_salvage_sized(const char *from, const char *to, lode_damage_fn *lost, void *ctx,
                               lode_progress progress, lode_salvage_report *report, size_t report_size,
                               lode_error *err) {
  lode_salvage_report own = {0};
  err_clear(err);
  if (report) TRY(api_check_size(report_size, "lode_salvage_report", err));
  lode_status st = engine_salvage(from, to, lost, ctx, progress, &own, err);
  api_give(report, report_size, &own, sizeof own);
  return st;
}

lode_status lode_verify_folder(const char *folder, lode_damage_fn *found, void *ctx, lode_progress progress,
                               lode_error *err) {
  if (folder && address_scheme_len(folder))
    return err_set(err, LODE_UNSUPPORTED, "%.200s is not a folder: only a store in a folder has pages", folder);
  return engine_verify_folder(folder, found, ctx, progress, err);
}

lode_status lode_restore(const char *file, const char *folder, lode_progress progress, lode_error *err) {
  return engine_restore(file, folder, progress, err);
}

/* ---- Collections ---- */

lode_status lode_collection_open_sized(lode_store *store, lode_str name, const lode_collection_options *options,
                                       size_t options_size, lode_collection **collection, lode_error *err) {
  lode_collection_options own;
  err_clear(err);
  API_REQUIRE(collection, err);
  *collection = NULL;
  API_REQUIRE(store, err);
  TRY(API_TAKE(&own, options, options_size, lode_collection_options, err));
  return store->engine->collection_open(store, name, &own, collection, err);
}

void lode_collection_close(lode_collection *collection) {
  if (collection) collection->engine->collection_close(collection);
}

lode_status lode_collections_replace_sized(lode_store *store, const lode_replacement *pairs, size_t pair_size, size_t n,
                                           lode_error *err) {
  void *copy;
  err_clear(err);
  API_REQUIRE(store, err);
  TRY(API_TAKE_ARRAY(&copy, pairs, pair_size, n, lode_replacement, err));
  lode_status st = store->engine->collections_replace(store, copy ? copy : pairs, n, err);
  mem_free(copy);
  return st;
}

/* ---- Statistics ---- */

static lode_status api_begin_stats(lode_stats *stats, size_t size, lode_error *err) {
  static const lode_stats none;
  err_clear(err);
  API_REQUIRE(stats, err);
  TRY(api_check_size(size, "lode_stats", err));
  api_give(stats, size, &none, sizeof none);
  return LODE_OK;
}

lode_status lode_store_stats_sized(lode_store *store, lode_stats *stats, size_t stats_size, lode_error *err) {
  lode_stats own;
  TRY(api_begin_stats(stats, stats_size, err));
  API_REQUIRE(store, err);
  TRY(store->engine->store_stats(store, &own, err));
  api_give(stats, stats_size, &own, sizeof own);
  return LODE_OK;
}

lode_status lode_collection_stats_sized(lode_collection *collection, lode_stats *stats, size_t stats_size,
                                        lode_error *err) {
  lode_stats own;
  TRY(api_begin_stats(stats, stats_size, err));
  API_REQUIRE(collection, err);
  TRY(collection->engine->collection_stats(collection, &own, err));
  api_give(stats, stats_size, &own, sizeof own);
  return LODE_OK;
}

/* ---- Writes ---- */

typedef struct api_batch {
  const lode_record *records;
  void *copy; /* of the records, if theirs have another size */
  lode_write_result result;
} api_batch;

static lode_status api_batch_begin(api_batch *b, const lode_collection *collection, const lode_record *records,
                                   size_t record_size, size_t n, lode_write_result *result, size_t result_size,
                                   lode_error *err) {
  *b = (api_batch){0};
  err_clear(err);
  if (result) TRY(api_check_size(result_size, "lode_write_result", err));
  api_give(result, result_size, &b->result, sizeof b->result);
  API_REQUIRE(collection, err);
  TRY(API_TAKE_ARRAY(&b->copy, records, record_size, n, lode_record, err));
  b->records = b->copy ? b->copy : records;
  return LODE_OK;
}

static lode_status api_batch_end(api_batch *b, lode_status st, lode_write_result *result, size_t result_size) {
  if (st == LODE_OK) api_give(result, result_size, &b->result, sizeof b->result);
  mem_free(b->copy);
  return st;
}

lode_status lode_add_sized(lode_collection *collection, lode_txn *txn, const lode_record *records, size_t record_size,
                           size_t n, lode_on_existing on_existing, lode_write_result *result, size_t result_size,
                           lode_error *err) {
  api_batch b;
  TRY(api_batch_begin(&b, collection, records, record_size, n, result, result_size, err));
  lode_status st = collection->engine->add(collection, txn, b.records, n, on_existing, &b.result, err);
  return api_batch_end(&b, st, result, result_size);
}

lode_status lode_upsert_sized(lode_collection *collection, lode_txn *txn, const lode_record *records,
                              size_t record_size, size_t n, lode_write_result *result, size_t result_size,
                              lode_error *err) {
  api_batch b;
  TRY(api_batch_begin(&b, collection, records, record_size, n, result, result_size, err));
  lode_status st = collection->engine->upsert(collection, txn, b.records, n, &b.result, err);
  return api_batch_end(&b, st, result, result_size);
}

lode_status lode_update_sized(lode_collection *collection, lode_txn *txn, const lode_record *records,
                              size_t record_size, size_t n, bool *missing, lode_write_result *result,
                              size_t result_size, lode_error *err) {
  api_batch b;
  TRY(api_batch_begin(&b, collection, records, record_size, n, result, result_size, err));
  lode_status st = collection->engine->update(collection, txn, b.records, n, missing, &b.result, err);
  return api_batch_end(&b, st, result, result_size);
}

lode_status lode_delete(lode_collection *collection, lode_txn *txn, const lode_selection *selection, size_t *deleted,
                        lode_error *err) {
  err_clear(err);
  if (deleted) *deleted = 0;
  API_REQUIRE(collection, err);
  API_REQUIRE(selection, err);
  return collection->engine->delete (collection, txn, selection, deleted, err);
}

void lode_rollback(lode_txn *txn) {
  if (txn) txn->engine->rollback(txn);
}

/* ---- Reads ---- */

lode_status lode_get_sized(lode_collection *collection, const lode_get_request *request, size_t request_size,
                           lode_result **result, lode_error *err) {
  lode_get_request own;
  err_clear(err);
  API_REQUIRE(result, err);
  *result = NULL;
  API_REQUIRE(collection, err);
  TRY(API_TAKE(&own, request, request_size, lode_get_request, err));
  return collection->engine->get(collection, &own, result, err);
}

lode_status lode_query_sized(lode_collection *collection, const lode_query_request *request, size_t request_size,
                             lode_result **result, lode_error *err) {
  lode_query_request own;
  err_clear(err);
  API_REQUIRE(result, err);
  *result = NULL;
  API_REQUIRE(collection, err);
  API_REQUIRE(request, err);
  TRY(API_TAKE(&own, request, request_size, lode_query_request, err));
  return collection->engine->query(collection, &own, result, err);
}

lode_status lode_export(lode_collection *collection, const lode_selection *selection, unsigned include,
                        lode_write_fn *write, void *ctx, lode_progress progress, uint64_t *written, lode_error *err) {
  err_clear(err);
  if (written) *written = 0;
  API_REQUIRE(collection, err);
  API_REQUIRE(write, err);
  return collection->engine->export(collection, selection, include, write, ctx, progress, written, err);
}

/* ---- All others ---- */

#define API_DISPATCH_STATUS(name, handle, params, args)                                                                \
  lode_status lode_##name params {                                                                                     \
    err_clear(err);                                                                                                    \
    API_REQUIRE(handle, err);                                                                                          \
    return handle->engine->name args;                                                                                  \
  }
IFACE_STATUS_OPS(API_DISPATCH_STATUS)

#define API_DISPATCH_RESULT(name, handle, params, args)                                                                \
  lode_status lode_##name params {                                                                                     \
    err_clear(err);                                                                                                    \
    API_REQUIRE(result, err);                                                                                          \
    *result = 0;                                                                                                       \
    API_REQUIRE(handle, err);                                                                                          \
    return handle->engine->name args;                                                                                  \
  }
IFACE_RESULT_OPS(API_DISPATCH_RESULT)
