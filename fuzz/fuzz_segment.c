/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_segment.c - hostile segment files: any bytes, with and without right checksums.
 *
 * The first byte of the input says what is done: bit 0, whether the checksums are made right before the file is opened
 * (so that the fuzzer gets past them); bit 1, whether a filter is used; bit 2, exact search. The rest is the file. Any
 * status is right; a signal, a sanitizer's report or an answer with slots that do not exist is not.
 */
#include <stdint.h>
#include <stdlib.h>

#include "support/segment_forge.h"

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

static void use(index_segment *segment, uint8_t flags) {
  index_hit hits[8];
  index_search_scratch scratch = {0};
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
  if (index_search(segment, &request, &scratch, hits, &n, NULL) != LODE_OK && n != 0) abort();
  for (size_t i = 0; i < n; i++) {
    if (hits[i].slot >= slots) abort();
  }
  request = (index_search_request){.query = query, .k = 2, .beam = 1}; /* walks, where there are so few rows */
  if (index_search(segment, &request, &scratch, hits, &n, NULL) != LODE_OK && n != 0) abort();
  for (size_t i = 0; i < n; i++) {
    if (hits[i].slot >= slots) abort();
  }
  if (index_segment_verify(segment, &report, NULL) == LODE_OK && report.unreachable) abort();
  index_segment_evict(segment, 0);
  index_search_scratch_release(&scratch);
  free(query);
  free(allowed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  index_segment *segment;
  if (size < 1) return 0;
  bytes b = {.data = malloc(size), .n = size - 1};
  if (!b.data) return 0;
  memcpy(b.data, data + 1, b.n);
  index_segment_source source = {.bytes = b.n, .read = read_bytes, .read_place = read_bytes, .ctx = &b};
  if (b.n >= 48) memcpy(&source.id, b.data + 40, sizeof source.id);
  if (data[0] & 1) (void)segment_forge(b.data, b.n, &source.id, &source.table_crc);
  if (index_segment_open(&source, &segment, NULL) == LODE_OK) {
    use(segment, data[0]);
    index_segment_close(segment);
  }
  free(b.data);
  return 0;
}
