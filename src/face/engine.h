/* engine.h - what the threads of a worker share: the store, opened once and when it is first needed, and the group commit.
 *
 * Group commit: small writes of many callers become one transaction. Whoever comes while nobody commits leads: it
 * runs the writes that wait, each on its own savepoint (a refused write harms no other), commits once, and wakes the others.
 * A write is acknowledged only after the commit that holds it.
 */
#ifndef LODE_FACE_ENGINE_H
#define LODE_FACE_ENGINE_H

#include "base/base.h"
#include "op.h"

#include <pthread.h>

typedef struct lode__engine lode__engine;

lode_status lode__engine_make(const char *folder, const lode_open_options *options, lode__engine **engine, lode_error *err);
void lode__engine_free(lode__engine *engine);
const char *lode__engine_folder(const lode__engine *engine);

/* The store, opened if it is not. It belongs to the engine and is never closed before it. */
lode_status lode__engine_store(lode__engine *engine, const lode__open_how *how, lode_store **store, lode_error *err);
/* The same as functions of a lode__op_context; the opener is the engine. */
lode_status lode__engine_open(void *engine, const lode__open_how *how, lode_store **store, lode_error *err);
void lode__engine_release(void *engine, lode_store *store);

/* Runs `write` in a transaction that other callers' writes may share. It may be called on another thread; when it fails, the
 * transaction is as it was before. Answers LODE_OK when it and the commit did. */
typedef lode_status lode__engine_write_fn(void *ctx, lode_txn *txn, lode_error *err);
lode_status lode__engine_write(lode__engine *engine, lode__engine_write_fn *write, void *ctx, lode_error *err);

#endif
