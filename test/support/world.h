/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - records of a collection and what queries must answer: an oracle that is too simple to be wrong. All records
 * are in an array, each distance is computed anew in double, everything is sorted. Data are random; a failure prints
 * its seed. */
#ifndef LODE_WORLD_H
#define LODE_WORLD_H

#include "lode.h"

/* ---- Records ---- */

enum { WORLD_MOST = 3000, WORLD_MOST_DIM = 128, WORLD_MOST_TEXT = 200 };

typedef struct world_record {
  char id[12];
  bool alive, has_vector, has_document;
  float v[WORLD_MOST_DIM];
  int n;   /* metadata n: -1 = absent */
  int tag; /* metadata tag: "t<tag>", one of 4; also in the array tags with t<tag+1> */
  char text[WORLD_MOST_TEXT];
} world_record;

typedef struct world {
  lode_store *store;
  lode_collection *c;
  lode_metric metric;
  uint32_t dim;
  bool whole; /* coordinates are small integers: distances are exact, and often equal */
  world_record *r;
  size_t n;
} world;

/* A new store with n records in a collection. Its vectors: as `whole` says. */
world world_make(lode_metric metric, uint32_t dim, bool whole, size_t n, lode_open_options o);
void world_end(world *w);
void world_vector(const world *w, float *v);           /* a random one */
void world_randomize(const world *w, world_record *r); /* all but id and alive */
/* To be written; metadata goes into meta. */
lode_record world_record_of(const world *w, const world_record *r, char *meta, size_t size);
const world_record *world_find(const world *w, lode_str id); /* NULL: none that is alive */

/* ---- Filters ---- */

typedef bool world_keep(const world_record *r); /* what a filter says, in C */
typedef struct world_filter {
  const char *where, *where_document;
  world_keep *keep;
} world_filter;
extern const world_filter world_filters[];
extern const size_t world_n_filters;
lode_selection world_selection(size_t filter);

/* ---- Answers; keep: NULL for all ---- */

typedef struct world_answer {
  const world_record *r;
  double distance, score;
} world_answer;

double world_distance(const world *w, const float *q, const float *v);
size_t world_count(const world *w, world_keep *keep); /* records with a vector */
/* All of them, nearest first; returns how many. */
size_t world_nearest(const world *w, const float *q, world_keep *keep, world_answer *out);
/* Rows [from, from + k) of the result must be the k nearest. Where distances are inexact, neighbours of (almost) the
 * same distance may have changed places. */
void world_check_nearest(const world *w, const lode_result *r, size_t from, size_t query, const float *q,
                         world_keep *keep, size_t k);
/* Asks for the k nearest of a random vector, and checks them. */
void world_query(const world *w, size_t k, lode_selection select, world_keep *keep);

static inline size_t least(size_t a, size_t b) { return a < b ? a : b; }

#endif
