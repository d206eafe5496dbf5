/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors.h - weights in a .safetensors file: u64 length of a JSON header, the header, the bytes of the tensors.
 *
 * The header is not trusted: each tensor's kind, shape and offset are checked against each other and against the file's
 * length before anything is read.
 */
#ifndef LODE_EMBED_SAFETENSORS_H
#define LODE_EMBED_SAFETENSORS_H

#include "base/json.h"

enum { EMBED_TENSOR_MAX_DIMS = 4, EMBED_TENSORS_MAX = 100000, EMBED_TENSORS_MAX_HEADER = 32u << 20 };

typedef enum embed_tensor_kind { EMBED_F32, EMBED_F16, EMBED_BF16, EMBED_TENSOR_OTHER } embed_tensor_kind;

typedef struct embed_tensor {
  lode_str name;
  embed_tensor_kind kind;
  size_t dims;
  uint64_t shape[EMBED_TENSOR_MAX_DIMS];
  uint64_t count;  /* elements */
  uint64_t offset; /* in the file */
  uint64_t bytes;
} embed_tensor;

typedef struct embed_safetensors {
  int fd;
  uint64_t length;
  char *header;
  json_doc json;
  embed_tensor *tensors;
  size_t count;
} embed_safetensors;

/* LODE_CORRUPT: not a safetensors file, or an invalid header. */
LODE_MUST lode_status embed_safetensors_open(embed_safetensors *file, const char *path, lode_error *err);
void embed_safetensors_close(embed_safetensors *file);
/* The same checks on a header alone, for a file of `length` bytes. */
LODE_MUST lode_status embed_safetensors_parse(embed_safetensors *file, lode_str header, uint64_t length,
                                              lode_error *err);
/* NULL when there is none. */
const embed_tensor *embed_safetensors_find(const embed_safetensors *file, lode_str name);
/* Reads `n` elements from element `first` on, as floats. The tensor must be F32, F16 or BF16. */
LODE_MUST lode_status embed_safetensors_read(const embed_safetensors *file, const embed_tensor *tensor, uint64_t first,
                                             size_t n, float *out, lode_error *err);

#endif
