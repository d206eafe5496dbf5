/* SPDX-License-Identifier: Apache-2.0 */
/* iface_check.h - all checks of user input, the same for every engine. A bad record is LODE_REFUSED and its position in
 * the batch is named; a vector that does not fit the collection is LODE_MISMATCH; a bad request is LODE_INVALID. Each
 * text says what to do. */
#ifndef LODE_IFACE_IFACE_CHECK_H
#define LODE_IFACE_IFACE_CHECK_H

#include "base/json.h"

LODE_MUST lode_status iface_check_name(lode_str name, const char *what, lode_error *err);
LODE_MUST lode_status iface_check_object(lode_str json, const char *what,
                                         lode_error *err); /* any JSON object, or absent */
LODE_MUST lode_status iface_check_selection(const lode_selection *selection, lode_error *err);
LODE_MUST lode_status iface_check_include(unsigned include, lode_error *err);
LODE_MUST lode_status iface_check_open_options(const lode_open_options *options, lode_error *err);
LODE_MUST lode_status iface_check_coll_options(const lode_collection_options *options, lode_error *err);
LODE_MUST lode_status iface_check_query(const lode_query_request *request, lode_error *err);
/* The weights of a hybrid query: 1 and 1 if neither is given. */
void iface_query_weights(const lode_query_request *request, double *vector, double *text);

/* The vectors that a handle makes or a collection has. */
typedef struct iface_vector_spec {
  lode_str embedder;     /* absent: not named */
  uint32_t embedder_dim; /* 0 = unknown */
  uint32_t dim;          /* of a collection's vectors; 0 until the first one */
} iface_vector_spec;
/* Does a handle's embedding model fit the collection? If not, LODE_MISMATCH with a text that says what to do. */
LODE_MUST lode_status iface_check_embedder(const iface_vector_spec *handle, const iface_vector_spec *coll,
                                           lode_error *err);

/* A batch of records, checked before anything is written. */
typedef struct iface_batch {
  const lode_record *records;
  size_t n;
  size_t *order;      /* positions, sorted by id */
  lode_str *metadata; /* per record: compact JSON; absent also for {} */
  bool *has_null;     /* per record: its metadata removes keys */
  mem_arena arena;
} iface_batch;
LODE_MUST lode_status iface_batch_init(iface_batch *batch, uint64_t max_document_bytes, const lode_record *records,
                                       size_t n, bool allow_null, lode_error *err);
void iface_batch_release(iface_batch *batch);
/* Checks the vectors of the batch against the collection; sets *dim, also if they are the collection's first. */
LODE_MUST lode_status iface_batch_check_vectors(const iface_batch *batch, const iface_vector_spec *handle,
                                                const iface_vector_spec *coll, uint32_t *dim, lode_error *err);

#endif
