/* tables.h - what tables.c (rows) hands to catalog.c (collections). */
#ifndef LODE_RESCUE_TABLES_H
#define LODE_RESCUE_TABLES_H

#include "chroma.h"

typedef struct lode__chroma_collection {
  int64_t key;
  uint32_t id;
  uint32_t dimension;
  lode_str name, database, config, schema;
  bool stray;
} lode__chroma_collection;

/* A value of a collection's or a segment's metadata. */
typedef struct lode__chroma_pair {
  uint32_t owner;
  lode_str key;
  sqf_value value;
  bool is_bool, is_real, stray;
} lode__chroma_pair;

typedef struct lode__chroma_segment {
  uint32_t id, collection;
  bool is_vector, is_metadata, stray;
} lode__chroma_segment;

typedef struct lode__chroma_keys {
  int64_t *items;
  size_t n, cap;
} lode__chroma_keys;

/* A row that a table has lost, as an index tells it. */
typedef struct lode__chroma_owner {
  int64_t key, id;        /* of the lost row; whose it is */
  sqf_place place;
  bool told;              /* its value was found */
} lode__chroma_owner;
typedef struct lode__chroma_owners {
  lode__chroma_owner *items; /* by key */
  size_t n, cap;
  bool sound;             /* the index was read without meeting damage */
} lode__chroma_owners;

typedef struct lode__chroma_parts {
  lode__chroma_database *databases;
  size_t n_databases, cap_databases;
  lode__chroma_collection *collections;
  size_t n_collections, cap_collections;
  lode__chroma_pair *pairs;
  size_t n_pairs, cap_pairs;
  lode__chroma_segment *segments;
  size_t n_segments, cap_segments;
  lode__chroma_owners owners[2];
  lode__chroma_keys met[2];   /* keys of the rows of embedding_metadata and embedding_metadata_array that were read */
} lode__chroma_parts;


/* Reads all tables into the chroma and its parts. */
lode_status lode__chroma_tables(lode__chroma *chroma, lode_error *err);
lode_status lode__chroma_intern(lode__chroma *chroma, lode_str text, uint32_t *name, lode_error *err);

lode_status lode__chroma_add_meta(lode__chroma *chroma, int64_t key, int64_t order, sqf_place place, lode__meta_kind kind, bool array,
                                  lode_error *err);

/* indexes.c: what the indexes still know of rows that the tables have lost. */
void lode__chroma_index_found(lode__chroma *chroma, lode_str name, int64_t root);
lode_status lode__chroma_indexes(lode__chroma *chroma, lode_error *err);
/* Then, for the rows that the tables have lost and that strays did not bring either. */
lode_status lode__chroma_index_values(lode__chroma *chroma, lode_error *err);
/* Whether a stray row of key `row` that belongs to `id` is one that a table has lost (else it is what was deleted once), and of which. */
bool lode__chroma_index_knows(lode__chroma *chroma, int64_t row, int64_t id, bool *array);
void lode__chroma_index_value(const lode__chroma_meta *meta, sqf_row *row, lode__chroma_value *value);

/* Calls fn with the place of each sequence id that is a blob, in embeddings and max_seq_id. */
lode_status lode__chroma_blob_seqs(lode__chroma *chroma, lode_status (*fn)(void *ctx, uint64_t offset, lode_error *err), void *ctx, lode_error *err);

/* The value of a key of a collection or of a segment; NULL: none. */
const lode__chroma_pair *lode__chroma_pair_of(const lode__chroma_parts *parts, uint32_t owner, const char *key);
/* config.c: metric, M, embedding function and the figures of the index, as each era says them. */
lode_status lode__chroma_configuration(lode__chroma *chroma, lode__chroma_coll *coll, lode_error *err);

/* A value as JSON. */
void lode__chroma_put_value(strbuf *buf, const sqf_value *value, bool is_bool);

#endif
