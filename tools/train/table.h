/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - a model while it is made: one row of floats a word, and how much each number has moved so far. */
#ifndef TRAIN_TABLE_H
#define TRAIN_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum { DIM = 256 };

typedef struct table {
  uint32_t rows;
  uint32_t epoch; /* done so far */
  uint64_t seed;
  float *values; /* rows x DIM */
  float *moved;  /* rows x DIM: sums of squared gradients (Adagrad) */
} table;

void table_init(table *t, uint32_t rows, uint64_t seed);
/* Whole or not at all: written beside and renamed. Exit with a message on failure. */
void table_save(const table *t, const char *path);
/* False: there is no such file. */
bool table_load(table *t, const char *path);
void table_release(table *t);

/* splitmix64 */
static inline uint64_t random_next(uint64_t *state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}
static inline float random_unit(uint64_t *state) { return (float)(random_next(state) >> 40) / 16777216.0f; }

#endif
