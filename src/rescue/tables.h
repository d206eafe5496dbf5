/* tables.h - what tables.c (rows) hands to catalog.c (collections). */
#ifndef LODE_RESCUE_TABLES_H
#define LODE_RESCUE_TABLES_H

#include "chroma.h"

typedef struct lode__chroma_database {
  lode_str id, name, tenant;
  bool stray;
} lode__chroma_database;

typedef struct lode__chroma_collection {
  uint32_t id;
  uint32_t dimension;
  lode_str name, database, config, schema;
  bool stray;
} lode__chroma_collection;

/* A value of a collection's or a segment's metadata. */
typedef struct lode__chroma_pair {
  uint32_t owner;
  lode_str key;
  lode__sq_value value;
  bool is_bool, is_real, stray;
} lode__chroma_pair;

typedef struct lode__chroma_segment {
  uint32_t id, collection;
  bool is_vector, is_metadata, stray;
} lode__chroma_segment;

typedef struct lode__chroma_parts {
  lode__chroma_database *databases;
  size_t n_databases, cap_databases;
  lode__chroma_collection *collections;
  size_t n_collections, cap_collections;
  lode__chroma_pair *pairs;
  size_t n_pairs, cap_pairs;
  lode__chroma_segment *segments;
  size_t n_segments, cap_segments;
} lode__chroma_parts;


/* Reads all tables into the chroma and its parts. */
lode_status lode__chroma_tables(lode__chroma *chroma, lode_error *err);
lode_status lode__chroma_intern(lode__chroma *chroma, lode_str text, uint32_t *name, lode_error *err);

/* A value as JSON. */
void lode__chroma_put_value(lode__buf *buf, const lode__sq_value *value, bool is_bool);

#endif
