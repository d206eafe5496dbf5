/* SPDX-License-Identifier: Apache-2.0 */
/* common.h - what the benchmark programs share: rows, clock, memory, figures.
 *
 * Row i is a pure function of i, the same here and in peers/data.mjs (32-bit integer arithmetic only), so that each
 * database gets the same bytes; data_sum() proves it. Programs print figures as lines "name value" on stdout,
 * which run.sh collects. Anything that goes wrong ends the program with a sentence on stderr and code 1; a slow
 * figure never does.
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include "lode.h"

#define BATCH 1000u
#define DIM 384u
#define DOCUMENT_BYTES 500u
#define ROWS_PER_FILE 8u /* records that share a path */
#define COLLECTION "bench"

typedef struct row {
  char id[32], path[80], metadata[200], document[DOCUMENT_BYTES + 1];
  float vector[DIM];
} row;

typedef struct batch {
  row rows[BATCH];
  lode_record records[BATCH]; /* point into rows */
} batch;

batch *batch_new(void);
/* Rows first .. first + n, n <= BATCH. */
void batch_fill(batch *b, uint32_t first, size_t n);
size_t row_id(char *out, size_t size, uint32_t i);
size_t row_path(char *out, size_t size, uint32_t file);
void row_vector(float *out, uint32_t i);
uint32_t data_sum(void); /* FNV-1a of the first batch */
uint32_t random_next(uint32_t *state);

double now_s(void);
double percentile(double *values, size_t n, double part); /* sorts; part 0.5 is the median */
/* MiB of this process: resident now, and the most since the last reset (since the start where the kernel refuses). */
double memory_now_mib(void);
double memory_peak_mib(void);
void memory_reset_peak(void);

void say(const char *name, const char *what, double value); /* prints "name.what value" */
void need(lode_status status, const lode_error *err, const char *doing);
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void *room(size_t bytes);
/* A whole number within bounds, or a usage error that names it. */
uint32_t number(const char *text, uint32_t least, uint32_t most, const char *what);

typedef struct opened {
  lode_store *store;
  lode_collection *collection;
} opened;
opened open_store(const char *folder, const lode_open_options *options);
void close_store(opened *o);
void optimize(opened *o);
/* A new store of rows 0 .. n; indexed: no row is left that no segment of the vector index holds, else none is in one.
 */
void fill_store(const char *folder, uint32_t n, bool indexed);
/* The same, indexed, made by a process of its own that has ended when this returns. */
void make_store(const char *folder, uint32_t n);
/* Files of a store and their bytes, segments of the vector index among them. */
void folder_size(const char *folder, double *files, double *bytes);

#endif
