/* safetensors.h - weights in a .safetensors file: u64 length of a JSON header, the header, the bytes of the tensors.
 *
 * The header is data: each tensor's kind, shape and place are checked against each other and against the file's length
 * before anything is read.
 */
#ifndef LODE_SAFETENSORS_H
#define LODE_SAFETENSORS_H

#include "base/json.h"

enum { LODE__TENSOR_DIMS = 4, LODE__TENSORS_MAX = 100000, LODE__TENSORS_HEADER_BYTES = 32u << 20 };

typedef enum lode__tensor_kind { LODE__F32, LODE__F16, LODE__BF16, LODE__TENSOR_OTHER } lode__tensor_kind;

typedef struct lode__tensor {
  lode_str name;
  lode__tensor_kind kind;
  size_t dims;
  uint64_t shape[LODE__TENSOR_DIMS];
  uint64_t count;  /* elements */
  uint64_t offset; /* in the file */
  uint64_t bytes;
} lode__tensor;

typedef struct lode__safetensors {
  int fd;
  uint64_t length;
  char *header;
  json_doc json;
  lode__tensor *tensors;
  size_t count;
} lode__safetensors;

/* LODE_CORRUPT: it is no safetensors file, or its header lies. */
lode_status lode__safetensors_open(lode__safetensors *file, const char *path, lode_error *err);
void lode__safetensors_close(lode__safetensors *file);
/* The same checks on a header alone, for a file of `length` bytes. */
lode_status lode__safetensors_parse(lode__safetensors *file, lode_str header, uint64_t length, lode_error *err);
/* NULL when there is none. */
const lode__tensor *lode__safetensors_find(const lode__safetensors *file, lode_str name);
/* `n` elements from element `first` on, as floats. The tensor must be F32, F16 or BF16. */
lode_status lode__safetensors_read(const lode__safetensors *file, const lode__tensor *tensor, uint64_t first, size_t n,
                                   float *out, lode_error *err);

float lode__half_to_float(uint16_t half);
uint16_t lode__float_to_half(float value); /* nearest, ties to even; beyond its range: infinity */

#endif
