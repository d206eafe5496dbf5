/* shared_stores.h - what the threads of a worker share: the store, opened once and when it is first needed, and the group commit.
 *
 * Group commit: small writes of many callers become one transaction. Whoever comes while nobody commits leads: it
 * runs the writes that wait, each on its own savepoint (a refused write harms no other), commits once, and wakes the others.
 * A write is acknowledged only after the commit that holds it.
 */
#ifndef LODE_WORKER_SHARED_STORES_H
#define LODE_WORKER_SHARED_STORES_H

#include "base/base.h"
#include "worker/handles.h"
#include "ops/op.h"

#include <pthread.h>

typedef struct worker_stores worker_stores;

lode_status worker_stores_new(const char *folder, const lode_open_options *options, worker_stores **shared, lode_error *err);
void worker_stores_free(worker_stores *shared);
const char *worker_stores_folder(const worker_stores *shared);
const lode_open_options *worker_stores_settings(const worker_stores *shared);
/* Which models requests may name; `allowed` must stay as long as the rest. */
void worker_stores_allow_models(worker_stores *shared, op_model_policy policy);
const op_model_policy *worker_stores_models(const worker_stores *shared);
/* Whether the folder was found, and adopted: as in op_context, for those that are made with this. */
void worker_stores_set_origin(worker_stores *shared, bool found, bool adopted);
bool worker_stores_found(const worker_stores *shared);
bool worker_stores_adopted(const worker_stores *shared);
worker_handles *worker_stores_handles(worker_stores *shared);

/* The store, opened if it is not. It is closed with the rest. */
lode_status worker_stores_main(worker_stores *shared, const op_open_options *how, lode_store **store, lode_error *err);
/* As functions of a op_context, whose opener this is: also stores that an operation names itself, a few of which stay open. */
lode_status worker_stores_open(void *shared, const op_open_options *how, lode_store **store, lode_error *err);
void worker_stores_release(void *shared, lode_store *store);

/* Runs `write` in a transaction that other callers' writes may share. It may be called on another thread; when it fails, the
 * transaction is as it was before. Answers LODE_OK when it and the commit did. */
lode_status worker_stores_write(void *shared, op_write_fn *write, void *ctx, lode_error *err);

#endif
