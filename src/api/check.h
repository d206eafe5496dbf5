/* check.h - every check of what the user brings, the same for every engine. What is wrong with a record is LODE_REFUSED and
 * names its position in the batch; a vector that does not fit the collection is LODE_MISMATCH; what is wrong with a request is
 * LODE_INVALID. Each text says what to do. */
#ifndef LODE_API_CHECK_H
#define LODE_API_CHECK_H

#include "base/json.h"

lode_status lode__check_name(lode_str name, const char *what, lode_error *err);
lode_status lode__check_object(lode_str json, const char *what, lode_error *err); /* any JSON object; absent is fine */
lode_status lode__check_selection(const lode_selection *selection, lode_error *err);
lode_status lode__check_include(unsigned include, lode_error *err);
lode_status lode__check_open_options(const lode_open_options *options, lode_error *err);
lode_status lode__check_collection_options(const lode_collection_options *options, lode_error *err);
lode_status lode__check_query(const lode_query_request *request, lode_error *err);
/* First element that is not finite, or n. */
size_t lode__first_not_finite(const float *v, size_t n);

/* Which vectors a handle makes, or a collection has. */
typedef struct lode__fit {
  lode_str embedder;      /* absent: none was named */
  uint32_t embedder_dim;  /* 0 = unknown */
  uint32_t dim;           /* of a collection's vectors; 0 until the first */
} lode__fit;
/* Does a handle's embedding model fit the collection? LODE_MISMATCH says what to do. */
lode_status lode__check_embedder(const lode__fit *handle, const lode__fit *coll, lode_error *err);

/* A batch of records, checked before anything is written. */
typedef struct lode__batch {
  const lode_record *records;
  size_t n;
  size_t *order;       /* positions, by id */
  lode_str *metadata;  /* of each: compact JSON; absent also for {} */
  bool *has_null;      /* of each: its metadata removes keys */
  mem_arena arena;
} lode__batch;
lode_status lode__batch_init(lode__batch *batch, uint64_t max_document_bytes, const lode_record *records, size_t n,
                             bool allow_null, lode_error *err);
void lode__batch_release(lode__batch *batch);
/* The vectors of the batch against the collection; fixes *dim when they are the first. */
lode_status lode__batch_check_vectors(const lode__batch *batch, const lode__fit *handle, const lode__fit *coll, uint32_t *dim,
                                      lode_error *err);

#endif
