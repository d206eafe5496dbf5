/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_safetensors.c - any bytes as the header of a weights file: whatever is accepted lies inside of the file. */
#include <stdlib.h>

#include "embed/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth) {
  if (!truth) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  embed_safetensors file = {.fd = -1};
  uint64_t length = 8 + (uint64_t)size + 4096;
  if (embed_safetensors_parse(&file, (lode_str){(const char *)data, size}, length, NULL) == LODE_OK) {
    for (size_t i = 0; i < file.count; i++) {
      const embed_tensor *t = &file.tensors[i];
      require(t->offset >= 8 + size && t->offset <= length && t->bytes <= length - t->offset);
      if (t->kind != EMBED_TENSOR_OTHER) require(t->count * (t->kind == EMBED_F32 ? 4 : 2) == t->bytes);
    }
  }
  embed_safetensors_close(&file);
  return 0;
}
