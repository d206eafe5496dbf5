/* shared.h - what the threads of a worker share: the store, opened once and when it is first needed, and the group commit.
 *
 * Group commit: small writes of many callers become one transaction. Whoever comes while nobody commits leads: it
 * runs the writes that wait, each on its own savepoint (a refused write harms no other), commits once, and wakes the others.
 * A write is acknowledged only after the commit that holds it.
 */
#ifndef LODE_FACE_SHARED_H
#define LODE_FACE_SHARED_H

#include "base/base.h"
#include "handles.h"
#include "op.h"

#include <pthread.h>

typedef struct lode__shared lode__shared;

lode_status lode__shared_make(const char *folder, const lode_open_options *options, lode__shared **shared, lode_error *err);
void lode__shared_free(lode__shared *shared);
const char *lode__shared_folder(const lode__shared *shared);
const lode_open_options *lode__shared_settings(const lode__shared *shared);
/* Which models requests may name; `allowed` must stay as long as the rest. */
void lode__shared_allow_models(lode__shared *shared, lode__model_policy policy);
const lode__model_policy *lode__shared_models(const lode__shared *shared);
/* Whether the folder was found, and adopted: as in lode__op_context, for those that are made with this. */
void lode__shared_mark(lode__shared *shared, bool found, bool adopted);
bool lode__shared_found(const lode__shared *shared);
bool lode__shared_adopted(const lode__shared *shared);
lode__handles *lode__shared_handles(lode__shared *shared);

/* The store, opened if it is not. It is closed with the rest. */
lode_status lode__shared_store(lode__shared *shared, const lode__open_how *how, lode_store **store, lode_error *err);
/* As functions of a lode__op_context, whose opener this is: also stores that an operation names itself, a few of which stay open. */
lode_status lode__shared_open(void *shared, const lode__open_how *how, lode_store **store, lode_error *err);
void lode__shared_release(void *shared, lode_store *store);

/* Runs `write` in a transaction that other callers' writes may share. It may be called on another thread; when it fails, the
 * transaction is as it was before. Answers LODE_OK when it and the commit did. */
lode_status lode__shared_write(void *shared, lode__write_fn *write, void *ctx, lode_error *err);

#endif
