/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - the functions of lode.h: dispatches each call to the engine of its handle. */
#include "iface/iface_check.h"
#include "iface/iface.h"

/* Every handle starts with its engine. */
static const iface_ops *ops_of_handle(const void *handle) { return *(const iface_ops *const *)handle; }

static bool starts_with(const char *text, const char *prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

/* Length of the scheme of an address with "://"; 0 for a path. */
static size_t address_scheme_len(const char *address) {
  size_t len = strspn(address, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
  return len && starts_with(address + len, "://") ? len : 0;
}

lode_status lode_open(const char *address, const lode_open_options *options, lode_store **store, lode_error *err) {
  err_clear(err);
  *store = NULL;
  if (!address || !*address)
    return err_set(err, LODE_INVALID, "name the folder of the store, or the address of a cluster");
  if (options) TRY(iface_check_open_options(options, err));
  bool cluster = (starts_with(address, "qdrant://") || starts_with(address, "qdrants://"));
  if (!cluster && address_scheme_len(address))
    return err_set(err, LODE_INVALID,
                   "%.*s:// is no store that Lode knows: qdrant:// and qdrants:// are; a folder of that name is "
                   "./%.300s",
                   (int)(address_scheme_len(address) < 40 ? address_scheme_len(address) : 40), address, address);
  return (cluster ? &remote_table : &engine_table)->open(address, options, store, err);
}

void lode_close(lode_store *store) {
  if (store) ops_of_handle(store)->close(store);
}

void lode_collection_close(lode_collection *collection) {
  if (collection) ops_of_handle(collection)->collection_close(collection);
}

void lode_rollback(lode_txn *txn) {
  if (txn) ops_of_handle(txn)->rollback(txn);
}

#define API_DISPATCH(name, handle, params, args)                                                                       \
  lode_status lode_##name params { return ops_of_handle(handle)->name args; }
IFACE_OPS(API_DISPATCH)
