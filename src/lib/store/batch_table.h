/* SPDX-License-Identifier: Apache-2.0 */
/* batch_table.h - the virtual table lode_feed: shows the rows of a batch to one SQL statement. See batch_table.c. */
#ifndef LODE_STORE_BATCH_TABLE_H
#define LODE_STORE_BATCH_TABLE_H

#include "store/statements.h"

/* A record to be inserted. */
typedef struct store_new_rec {
  store_rec rec;
  lode_str document, vector; /* bytes; data NULL: none */
  uint32_t vector_crc, crc;
} store_new_rec;

typedef enum store_batch_part { STORE_BATCH_ALL, STORE_BATCH_DOCUMENTS, STORE_BATCH_VECTORS } store_batch_part;
typedef struct store_batch {
  const store_new_rec *rows;
  const size_t *order; /* permutation of rows; NULL: as they are */
  const lode_str *ids; /* only ids, instead of rows */
  size_t n;
  store_batch_part part; /* only rows that have this part */
} store_batch;

LODE_MUST lode_status store_batch_register(store_conn *conn, lode_error *err); /* for a new connection */
/* Runs a statement that reads the table; `first` is its first parameter, if it has one. */
LODE_MUST lode_status store_batch_run(store_tx *tx, int which, int64_t first, store_batch batch, lode_error *err);

#endif
