/* SPDX-License-Identifier: Apache-2.0 */
/* chroma_tables.h - what chroma_tables.c (rows) passes to rescue_catalog.c (collections). */
#ifndef LODE_RESCUE_CHROMA_TABLES_H
#define LODE_RESCUE_CHROMA_TABLES_H

#include "rescue/chroma_dir.h"

typedef struct rescue_coll_row {
  int64_t key;
  uint32_t id;
  uint32_t dimension;
  lode_str name, database, config, schema;
  bool stray;
} rescue_coll_row;

/* A value of a collection's or a segment's metadata. */
typedef struct rescue_pair {
  uint32_t owner;
  lode_str key;
  sqf_value value;
  bool is_bool, is_real, stray;
} rescue_pair;

typedef struct rescue_segment_row {
  uint32_t id, collection;
  bool is_vector, is_metadata, stray;
} rescue_segment_row;

typedef struct rescue_keys {
  int64_t *items;
  size_t n, cap;
} rescue_keys;

/* A row that a table has lost, as known from an index. */
typedef struct rescue_lost_row {
  int64_t key, id; /* key of the lost row; the record it belongs to */
  sqf_place place;
  bool found; /* its value was found */
} rescue_lost_row;
typedef struct rescue_lost_rows {
  rescue_lost_row *items; /* by key */
  size_t n, cap;
  bool sound; /* the index was read without damage */
} rescue_lost_rows;

typedef struct rescue_raw_tables {
  rescue_database *databases;
  size_t n_databases, cap_databases;
  rescue_coll_row *collections;
  size_t n_collections, cap_collections;
  rescue_pair *pairs;
  size_t n_pairs, cap_pairs;
  rescue_segment_row *segments;
  size_t n_segments, cap_segments;
  rescue_lost_rows lost[2]; /* of embedding_metadata and embedding_metadata_array */
  rescue_keys seen[2];      /* keys of the rows of these tables that were read */
} rescue_raw_tables;

/* Reads all tables into chroma and chroma->parts. */
LODE_MUST lode_status rescue_read_tables(rescue_dir *chroma, lode_error *err);
LODE_MUST lode_status rescue_intern(rescue_dir *chroma, lode_str text, uint32_t *name, lode_error *err);

/* Adds a copy; `stray` is filled in. */
LODE_MUST lode_status rescue_add_meta(rescue_dir *chroma, rescue_meta meta, lode_error *err);

/* rescue_indexes.c: recovers from indexes what the tables have lost. */
void rescue_set_index_root(rescue_dir *chroma, lode_str name, int64_t root);
LODE_MUST lode_status rescue_read_indexes(rescue_dir *chroma, lode_error *err);
/* To be called after the strays: for rows that are lost and were not found among them either. */
LODE_MUST lode_status rescue_read_index_values(rescue_dir *chroma, lode_error *err);
/* Is a stray row of key `row` that belongs to `id` one that a table has lost, and which one (*array)? Else it was
 * deleted. */
bool rescue_is_lost_row(rescue_dir *chroma, int64_t row, int64_t id, bool *array);
void rescue_index_value(const rescue_meta *meta, sqf_row *row, rescue_value *value);

/* Calls fn with the file offset of the type of each sequence id that is a blob, in embeddings and max_seq_id. */
LODE_MUST lode_status rescue_each_blob_seq(rescue_dir *chroma,
                                           lode_status (*fn)(void *ctx, uint64_t offset, lode_error *err), void *ctx,
                                           lode_error *err);

/* The metadata value of a key, of a collection or segment; NULL: none. */
const rescue_pair *rescue_pair_find(const rescue_raw_tables *parts, uint32_t owner, const char *key);
/* rescue_config.c: metric, M, embedding function and HNSW parameters, from wherever each version stores them. */
LODE_MUST lode_status rescue_read_config(rescue_dir *chroma, rescue_coll *coll, lode_error *err);

/* A value as JSON. */
void rescue_put_value(strbuf *buf, const sqf_value *value, bool is_bool);

#endif
