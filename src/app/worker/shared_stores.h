/* SPDX-License-Identifier: Apache-2.0 */
/* shared_stores.h - what the threads of a worker share: the store, opened once when first needed, and the group
 * commit.
 *
 * Group commit: small writes of many callers become one transaction. A caller that arrives while nobody commits
 * becomes the leader: it runs the pending writes, each in its own savepoint (a refused write does not affect the
 * others), commits once, and wakes the others. A write is acknowledged only after the commit that contains it.
 */
#ifndef LODE_WORKER_SHARED_STORES_H
#define LODE_WORKER_SHARED_STORES_H

#include "base/base.h"
#include "worker/handles.h"
#include "ops/op_context.h"

#include <pthread.h>

typedef struct worker_stores worker_stores;

LODE_MUST lode_status worker_stores_new(const char *folder, const lode_open_options *options, worker_stores **shared,
                                        lode_error *err);
void worker_stores_free(worker_stores *shared);
const char *worker_stores_folder(const worker_stores *shared);
const lode_open_options *worker_stores_settings(const worker_stores *shared);
/* Which models requests may name; `allowed` must outlive the stores. */
void worker_stores_allow_models(worker_stores *shared, op_model_policy policy);
const op_model_policy *worker_stores_models(const worker_stores *shared);
/* Was the folder found, and was it adopted? See op_context. */
void worker_stores_set_origin(worker_stores *shared, bool found, bool adopted);
bool worker_stores_found(const worker_stores *shared);
bool worker_stores_adopted(const worker_stores *shared);
worker_handles *worker_stores_handles(worker_stores *shared);

/* The worker's own store, opened if necessary. It stays open until worker_stores_free. */
LODE_MUST lode_status worker_stores_main(worker_stores *shared, const op_open_options *how, lode_store **store,
                                         lode_error *err);
/* Callbacks of an op_context whose opener this is. They also open stores that an operation names; a few of those
 * stay open. */
LODE_MUST lode_status worker_stores_open(void *shared, const op_open_options *how, lode_store **store, lode_error *err);
void worker_stores_release(void *shared, lode_store *store);

/* Runs `write` in a transaction that may be shared with other callers' writes. It may run on another thread; if it
 * fails, the transaction is as it was before. LODE_OK if both the write and the commit succeeded. */
LODE_MUST lode_status worker_stores_write(void *shared, op_write_fn *write, void *ctx, lode_error *err);

#endif
