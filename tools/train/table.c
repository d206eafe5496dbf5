/* SPDX-License-Identifier: Apache-2.0 */
/* op_table.c - see table.h. */
#include "table.h"

#include "lexicon.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MAGIC "LODETAB1"

void table_init(table *t, uint32_t rows, uint64_t seed) {
  size_t n = (size_t)rows * DIM;
  *t = (table){.rows = rows, .seed = seed};
  t->values = must_alloc(n, sizeof *t->values);
  t->moved = must_alloc(n, sizeof *t->moved);
}

static void check(bool ok, const char *path) {
  if (ok) return;
  perror(path);
  exit(1);
}

void table_save(const table *t, const char *path) {
  char beside[4096];
  size_t n = (size_t)t->rows * DIM;
  snprintf(beside, sizeof beside, "%s.tmp", path);
  FILE *out = fopen(beside, "wb");
  check(out != NULL, beside);
  uint64_t head[3] = {t->rows, t->epoch, t->seed};
  check(fwrite(MAGIC, 1, 8, out) == 8 && fwrite(head, sizeof *head, 3, out) == 3 &&
            fwrite(t->values, sizeof(float), n, out) == n && fwrite(t->moved, sizeof(float), n, out) == n &&
            fclose(out) == 0 && rename(beside, path) == 0,
        path);
}

bool table_load(table *t, const char *path) {
  char magic[8];
  uint64_t head[3];
  FILE *in = fopen(path, "rb");
  if (!in) return false;
  check(fread(magic, 1, 8, in) == 8 && memcmp(magic, MAGIC, 8) == 0 && fread(head, sizeof *head, 3, in) == 3 &&
            head[0] <= EMBED_WORDS_MAX,
        path);
  table_init(t, (uint32_t)head[0], head[2]);
  t->epoch = (uint32_t)head[1];
  size_t n = (size_t)t->rows * DIM;
  check(fread(t->values, sizeof(float), n, in) == n && fread(t->moved, sizeof(float), n, in) == n, path);
  fclose(in);
  return true;
}

void table_release(table *t) {
  mem_free(t->values);
  mem_free(t->moved);
  *t = (table){.rows = 0};
}
