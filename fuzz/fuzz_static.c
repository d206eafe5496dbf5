/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_static.c - hostile files of static models: any bytes, with and without right checksums.
 *
 * The first byte says whether checksums, sizes and the file's length are made right before the file is opened, so that
 * the fuzzer gets past them; the rest is the file. Any status is right; a signal, a sanitizer's report, or a vector
 * that is not of length 1 is not.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/crc32c.h"
#include "embed/embed.h"
#include "embed/static_file.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILE_MAX = 1 << 18 };

/* Makes right what the header allows to be made right; returns the length that the file then has. */
static size_t repair(char *file, size_t size) {
  embed_static_header h;
  if (size < sizeof h) return size;
  memcpy(&h, file, sizeof h);
  memcpy(h.magic, EMBED_STATIC_MAGIC, sizeof h.magic);
  h.version = EMBED_STATIC_VERSION;
  h.dimension = EMBED_STATIC_DIM;
  h.words %= 512;
  h.slots %= 2048;
  h.word_bytes %= 8192;
  h.pages = (h.words + EMBED_STATIC_PAGE_ROWS - 1) / EMBED_STATIC_PAGE_ROWS;
  embed_static_layout l = embed_static_layout_of(&h);
  if (l.file_size > FILE_MAX) return size;
  if (l.file_size > size) memset(file + size, 0, (size_t)l.file_size - size);
  h.file_size = l.file_size;
  for (uint32_t p = 0; p < h.pages; p++) {
    uint32_t crc = crc32c_update(crc32c_update_u32(0, p), file + l.rows + (size_t)p * EMBED_STATIC_PAGE_BYTES,
                                 EMBED_STATIC_PAGE_BYTES);
    memcpy(file + EMBED_STATIC_HEADER_BYTES + l.crcs + 4 * (size_t)p, &crc, sizeof crc);
  }
  h.lexicon_crc = crc32c_update(0, file + EMBED_STATIC_HEADER_BYTES, (size_t)l.rows - EMBED_STATIC_HEADER_BYTES);
  h.crc = crc32c_update(0, &h, offsetof(embed_static_header, crc));
  memcpy(file, &h, sizeof h);
  return (size_t)l.file_size;
}

static void use(lode_embedder *e, const uint8_t *data, size_t size) {
  static float v[3 * EMBED_STATIC_DIM];
  lode_error err;
  lode_str texts[3] = {
      STR_LIT("read the file of getaddrinfo"), {(const char *)data, size < 2000 ? size : 2000}, {NULL, 0}};
  if (lode_embed(e, texts, 3, v, &err) != LODE_OK) return;
  for (int i = 0; i < 3; i++) {
    double square = 0;
    for (int d = 0; d < EMBED_STATIC_DIM; d++)
      square += (double)v[i * EMBED_STATIC_DIM + d] * v[i * EMBED_STATIC_DIM + d];
    REQUIRE(fabs(square - 1) < 1e-3);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char file[FILE_MAX], path[320];
  if (!scratch[0]) {
    scratch_begin();
    snprintf(path, sizeof path, "%s/%s", scratch, EMBED_STATIC_PACK);
  }
  if (size < 1 || size > FILE_MAX) return 0;
  size_t n = size - 1;
  memcpy(file, data + 1, n);
  if (data[0] & 1) n = repair(file, n);
  FILE *out = fopen(path, "wb");
  REQUIRE(out && fwrite(file, 1, n, out) == n && fclose(out) == 0);
  lode_embedder *e;
  lode_error err;
  lode_embedder_options options = {.folder = scratch};
  if (lode_embedder_open(STR_LIT(LODE_MODEL_CODE), &options, &e, &err) == LODE_OK) {
    use(e, data, size);
    lode_embedder_close(e);
  }
  unlink(path);
  return 0;
}
