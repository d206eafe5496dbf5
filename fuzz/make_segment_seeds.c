/* SPDX-License-Identifier: Apache-2.0 */
/* make_segment_seeds.c - writes small real segments of both kinds to fuzz/seeds/segment, in the form that
 * fuzz_segment.c reads. graph_format2 there is the graph of version 0.1.0.
 *
 *   gcc -std=c11 -D_GNU_SOURCE -Iinclude -Isrc/lib -Isrc/app -o /tmp/seeds fuzz/make_segment_seeds.c
 * build/release/inside/lib.a \
 *     $(pkg-config --libs sqlite3 libpcre2-8 libutf8proc) -lpthread -lm && /tmp/seeds fuzz/seeds/segment
 */
#include "index/index_search.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct bytes {
  unsigned char *data;
  size_t n;
} bytes;

static lode_status write_bytes(void *ctx, uint64_t offset, const void *data, size_t n, lode_error *err) {
  bytes *b = ctx;
  if (offset + n > b->n) {
    unsigned char *grown = realloc(b->data, (size_t)offset + n);
    if (!grown) return err_nomem(err);
    memset(grown + b->n, 0, (size_t)offset + n - b->n);
    b->data = grown;
    b->n = (size_t)offset + n;
  }
  memcpy(b->data + offset, data, n);
  return LODE_OK;
}

static uint64_t state;
static uint32_t draw(uint32_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((state >> 33) % below);
}

/* One byte of flags, then a small real segment; of whole numbers, whose rows hold their vectors, or not. */
static void make_seed(bytes *b, index_segment_kind kind, bool whole) {
  enum { N = 30, DIM = 6 };
  float mean[DIM] = {0}, vector[DIM];
  index_writer maker;
  bytes file = {0};
  index_writer_options options = {.id = 42,
                                  .kind = kind,
                                  .graph = {.degree = 4},
                                  .write = write_bytes,
                                  .ctx = &file,
                                  .model = {.metric = LODE_L2, .dim = DIM, .unit = 1, .mean = mean}};
  if (whole) {
    options.model.unit = 1.0f / 256;
    options.model.grid = (quant_grid){.step = 2};
    for (int j = 0; j < DIM; j++) mean[j] = quant_grid_middle(&options.model.grid) * options.model.unit;
  }
  lode_status st = index_writer_begin(&maker, &options, NULL);
  for (int i = 0; i < N && st == LODE_OK; i++) {
    for (int j = 0; j < DIM; j++) vector[j] = whole ? (float)draw(256) : (float)draw(1000) / 500 - 1;
    st = index_writer_add(&maker, vector, i, (uint64_t)i, NULL);
  }
  if (st != LODE_OK || index_writer_finish(&maker, NULL) != LODE_OK) abort();
  index_writer_release(&maker);
  b->data = malloc(file.n + 1);
  if (!b->data) abort();
  b->n = file.n + 1;
  memcpy(b->data + 1, file.data, file.n);
  free(file.data);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    unsigned char flags;
    index_segment_kind kind;
    bool whole;
  } seeds[] = {
      {"flat", 5, INDEX_FLAT, false},
      {"graph", 1, INDEX_GRAPH, false},
      {"graph_filtered", 3, INDEX_GRAPH, false},
      {"graph_as_it_is", 0, INDEX_GRAPH, false},
      {"flat_whole", 5, INDEX_FLAT, true},
      {"graph_whole", 1, INDEX_GRAPH, true},
  };
  if (argc != 2) return 2;
  for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
    char path[4096];
    bytes seed = {0};
    make_seed(&seed, seeds[i].kind, seeds[i].whole);
    seed.data[0] = seeds[i].flags;
    snprintf(path, sizeof path, "%s/%s", argv[1], seeds[i].name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(seed.data, 1, seed.n, f) != seed.n || fclose(f) != 0) return 1;
    printf("%s: %zu bytes\n", path, seed.n);
    free(seed.data);
  }
  return 0;
}
