/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_segment.c - hostile segment files: any bytes, with and without right checksums.
 *
 * The first byte of the input says what is done: bit 0, whether the checksums are made right before the file is opened
 * (so that the fuzzer gets past them); bit 1, whether a filter is used; bit 2, exact search. The rest is the file. Any
 * status is right; a signal, a sanitizer's report or an answer with slots that do not exist is not. Built with
 * LODE_FUZZ_MAIN it is a program that runs the files it is given, or, without any, mutations of a real segment.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/crc32c.h"
#include "index/index_search.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct bytes {
  unsigned char *data;
  size_t n;
} bytes;

static lode_status read_bytes(void *ctx, uint64_t offset, void *buf, size_t n, lode_error *err) {
  const bytes *b = ctx;
  if (offset > b->n || n > b->n - offset) return err_set(err, LODE_CORRUPT, "too short");
  memcpy(buf, b->data + offset, n);
  return LODE_OK;
}

static void put32(unsigned char *p, uint32_t v) { memcpy(p, &v, sizeof v); }

/* Makes the checksums right where the header makes sense; returns that of the table. */
static uint32_t repair(bytes *b, uint64_t *id) {
  index_segment_info info;
  index_segment_layout layout;
  if (b->n < INDEX_PAGE_BYTES) return 0;
  put32(b->data + INDEX_SEG_HEADER_CRC_AT, crc32c_update(0, b->data, INDEX_SEG_HEADER_CRC_AT));
  if (index_segment_get_header(b->data, b->n, &info, NULL) != LODE_OK) return 0;
  if (!index_segment_layout_of(&info, &layout)) abort();
  *id = info.id;
  size_t row = info.dim * sizeof(float);
  for (uint32_t i = 0; i < info.n; i++) {
    put32(b->data + layout.at[INDEX_SEG_RECORDS] + (size_t)i * INDEX_SEG_RECORD_BYTES + 16,
          index_segment_vector_crc(info.id, i, b->data + layout.at[INDEX_SEG_VECTORS] + i * row, row));
  }
  unsigned char *table = b->data + layout.at[INDEX_SEG_CHECKSUMS];
  put32(table, index_segment_page_crc(info.id, 0, b->data));
  for (uint64_t at = layout.at[INDEX_SEG_MEAN]; at < layout.at[INDEX_SEG_CHECKSUMS]; at += INDEX_PAGE_BYTES) {
    uint64_t page = at / INDEX_PAGE_BYTES;
    put32(table + index_segment_crc_slot(&layout, page) * 4, index_segment_page_crc(info.id, page, b->data + at));
  }
  return index_segment_table_crc(info.id, table, (size_t)layout.bytes[INDEX_SEG_CHECKSUMS]);
}

static void use(index_segment *segment, uint8_t flags) {
  index_hit hits[8];
  index_search_scratch room = {0};
  index_graph_report report;
  size_t n = 0;
  uint32_t slots = segment->info.n;
  float *query = calloc(segment->info.dim, sizeof *query);
  uint64_t *allowed = calloc((size_t)slots / 64 + 1, sizeof *allowed);
  if (!query || !allowed) abort();
  for (uint32_t i = 0; i < segment->info.dim; i++) query[i] = (float)(i % 7) - 3;
  for (uint32_t i = 0; i < slots; i += 3) allowed[i / 64] |= (uint64_t)1 << (i % 64);
  index_search_request request = {
      .query = query, .k = 8, .beam = 8, .allowed = flags & 2 ? allowed : NULL, .exact = (flags & 4) != 0};
  if (index_search(segment, &request, &room, hits, &n, NULL) != LODE_OK && n != 0) abort();
  for (size_t i = 0; i < n; i++) {
    if (hits[i].slot >= slots) abort();
  }
  request = (index_search_request){.query = query, .k = 2, .beam = 1}; /* walks, where there are so few rows */
  if (index_search(segment, &request, &room, hits, &n, NULL) != LODE_OK && n != 0) abort();
  for (size_t i = 0; i < n; i++) {
    if (hits[i].slot >= slots) abort();
  }
  if (index_segment_verify(segment, &report, NULL) == LODE_OK && report.unreachable) abort();
  index_segment_evict(segment, 0);
  index_search_scratch_release(&room);
  free(query);
  free(allowed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  index_segment *segment;
  if (size < 1) return 0;
  bytes b = {.data = malloc(size), .n = size - 1};
  if (!b.data) return 0;
  memcpy(b.data, data + 1, b.n);
  index_segment_source source = {.bytes = b.n, .read = read_bytes, .ctx = &b};
  if (b.n >= 48) memcpy(&source.id, b.data + 40, sizeof source.id);
  if (data[0] & 1) source.table_crc = repair(&b, &source.id);
  if (index_segment_open(&source, &segment, NULL) == LODE_OK) {
    use(segment, data[0]);
    index_segment_close(segment);
  }
  free(b.data);
  return 0;
}

#ifdef LODE_FUZZ_MAIN

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

/* A small real segment behind one byte of flags. */
static void make_seed(bytes *b, index_segment_kind kind) {
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
  lode_status st = index_writer_begin(&maker, &options, NULL);
  for (int i = 0; i < N && st == LODE_OK; i++) {
    for (int j = 0; j < DIM; j++) vector[j] = (float)draw(1000) / 500 - 1;
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

static void mutate(bytes *b) {
  for (uint32_t i = draw(6); i-- > 0;) {
    size_t at = 1 + (draw(2) ? draw(108) : draw((uint32_t)b->n - 1));
    switch (draw(4)) {
      case 0: b->data[at] ^= (unsigned char)(1u << draw(8)); break;
      case 1: b->data[at] = (unsigned char)draw(256); break;
      case 2: memset(b->data + at, draw(2) ? 0xFF : 0, at + 4 <= b->n ? 4 : 1); break;
      default: { /* bytes of another place */
        size_t len = 1 + draw(64), from = 1 + draw((uint32_t)b->n - 1);
        if (at + len <= b->n && from + len <= b->n) memmove(b->data + at, b->data + from, len);
      }
    }
  }
}

static int run_file(const char *path) {
  FILE *f = fopen(path, "rb");
  static uint8_t data[1 << 22];
  if (!f) return 1;
  size_t n = fread(data, 1, sizeof data, f);
  fclose(f);
  return LLVMFuzzerTestOneInput(data, n);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (run_file(argv[i]) != 0) return 1;
  }
  if (argc > 1) return 0;
  const char *rounds_text = getenv("LODE_FUZZ_ROUNDS");
  unsigned long rounds = rounds_text ? strtoul(rounds_text, NULL, 10) : 20000;
  for (index_segment_kind kind = INDEX_FLAT; kind <= INDEX_GRAPH; kind++) {
    bytes seed = {0};
    make_seed(&seed, kind);
    for (unsigned long i = 0; i < rounds; i++) {
      bytes b = {.data = malloc(seed.n), .n = seed.n};
      if (!b.data) abort();
      memcpy(b.data, seed.data, seed.n);
      b.data[0] = (unsigned char)draw(8);
      mutate(&b);
      LLVMFuzzerTestOneInput(b.data, draw(50) ? b.n : draw((uint32_t)b.n));
      free(b.data);
    }
    free(seed.data);
  }
  printf("fuzz_segment: %lu mutations of each kind survived\n", rounds);
  return 0;
}

#endif
