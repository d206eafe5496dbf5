/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.h - a store with one collection, and the oracle of what that holds.
 *
 * Whatever is written goes to both, and answers are compared with the oracle's: to the bit where every vector is
 * scanned, as recall where a graph proposes. Records have numbers in the order of their adding. Those of fixture_add()
 * have the number in decimal as their id, a vector of some cluster and the metadata {"n": number % 100}; those of
 * fixture_fill() are random in every part.
 */
#ifndef LODE_FIXTURE_H
#define LODE_FIXTURE_H

#include "engine/engine.h"
#include "segments/segment_build.h"
#include "support/oracle.h"

typedef struct fixture {
  const char *folder;
  lode_store *store;
  lode_collection *c;
  lode_collection *writer;  /* NULL: c; else another handle of the same collection, through which all is written */
  oracle_collection oracle; /* what the collection must hold */
  const float **v;          /* of record number i, the newest, also of one that was deleted; NULL: it never had one */
  size_t n;                 /* numbers that were given out */
  bool no_background, bulk_load;
  uint64_t memory_bytes;
} fixture;

/* Small limits of the builder, so that a few hundred records have several segments. */
void fixture_limits(uint32_t tail_rows, uint32_t graph_rows);
void fixture_open(fixture *f, const char *folder, lode_metric metric, uint32_t dim);
void fixture_reopen(fixture *f);
void fixture_close(fixture *f);
lode_stats fixture_stats(fixture *f);
void fixture_optimize(fixture *f);
void fixture_wait_built(fixture *f); /* until the background has nothing to do */
/* Paths of the files in the segments folder whose names have `part` in them; free each. */
size_t fixture_files(const char *folder, const char *part, char **paths, size_t most);

/* ---- Writing ---- */

/* Fails the test unless the library says what the oracle does. */
void fixture_write(fixture *f, oracle_kind kind, const oracle_record *r, size_t n);
void fixture_fill(fixture *f, size_t n);
void fixture_change(fixture *f);            /* one random record added, given another vector, or deleted */
void fixture_remove(fixture *f, size_t at); /* the record at this place of the oracle */
void fixture_add(fixture *f, size_t n);
void fixture_add_vectors(fixture *f, const float *v, size_t n);
/* Of records of fixture_add(), by number: */
bool fixture_alive(const fixture *f, size_t i);
void fixture_delete(fixture *f, size_t first, size_t n); /* those that are alive */
void fixture_delete_one(fixture *f, size_t i);
void fixture_update(fixture *f, size_t i); /* another vector, if it is alive */

/* ---- Queries with exact answers ---- */

/* Asks for the k nearest of a random vector, and checks them. */
void fixture_check_query(fixture *f, size_t k, const oracle_selection *s);
void fixture_check_query_for(fixture *f, const float *v, size_t queries, size_t k, const oracle_selection *s);

/* ---- Queries with approximate answers, of records of fixture_add() ---- */

typedef struct fixture_answer {
  size_t n;
  size_t id[4096];
  double distance[4096];
} fixture_answer;
void fixture_random(const fixture *f, float *out); /* one more vector of the same kind */
/* knobs: NULL or effort, recall and a selection; where: NULL or a filter instead of theirs. */
void fixture_query(fixture *f, const float *q, size_t k, const lode_query_request *knobs, const oracle_filter *where,
                   fixture_answer *a);
/* Recall of the answer; fails the test when a row does not belong there, comes twice, is out of order, has a wrong
 * distance, or when there are fewer than there should be. */
double fixture_recall(const fixture *f, const float *q, size_t k, const oracle_filter *where, const fixture_answer *a);
/* Mean recall of random queries; *low, if not NULL, is its first percentile. */
double fixture_mean_recall(fixture *f, size_t queries, size_t k, const lode_query_request *knobs,
                           const oracle_filter *where, double *low);

#endif
