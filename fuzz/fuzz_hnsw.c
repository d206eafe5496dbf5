/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_hnsw.c - any bytes as header.bin and data_level0.bin: labels come in order and once, every vector is of the
 * shape and finite. */
#include "rescue/hnsw.h"

#include <math.h>

#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static float vector[LODE_MAX_DIMENSION];
  char folder[600];
  rescue_hnsw x;
  lode_error err;
  if (size < 102) return 0;
  if (!scratch[0]) scratch_begin();
  scratch_store(folder, sizeof folder);
  scratch_put("header.bin", data + 2, 100);
  scratch_put("data_level0.bin", data + 102, size - 102);
  scratch_put("length.bin", data, size / 9);
  lode_status st = rescue_hnsw_open(folder, data[0], data[1], &x, &err);
  if (st != LODE_OK) {
    REQUIRE(st == LODE_CORRUPT || st == LODE_NOMEM);
    return 0;
  }
  REQUIRE(x.live <= x.n && (data[0] == 0 || x.shape.dimension == data[0]));
  for (size_t i = 0; i < x.n; i++) {
    REQUIRE(x.slots[i].label > 0 && (i == 0 || x.slots[i - 1].label < x.slots[i].label));
    REQUIRE(rescue_hnsw_find(&x, x.slots[i].label) == &x.slots[i]);
    if (rescue_hnsw_vector(&x, &x.slots[i], i % 2, vector) != RESCUE_HNSW_EXACT || i % 2) continue;
    for (uint32_t k = 0; k < x.shape.dimension; k++) REQUIRE(isfinite(vector[k]));
  }
  REQUIRE(rescue_hnsw_find(&x, 0) == NULL);
  rescue_hnsw_close(&x);
  return 0;
}
