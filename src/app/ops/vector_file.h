/* SPDX-License-Identifier: Apache-2.0 */
/* vector_file.h - reads the vectors of a file: .npy (float32 or float64, one or two axes), .fvecs, or JSON lines of
 * arrays. */
#ifndef LODE_OPS_VECTOR_FILE_H
#define LODE_OPS_VECTOR_FILE_H

#include "base/base.h"

/* The format is chosen by extension; "-" and others are JSON lines. *vectors is freed with mem_free. */
LODE_MUST lode_status op_vectors_load(const char *path, float **vectors, size_t *n, uint32_t *dimension,
                                      lode_error *err);
/* The same from memory; format is LODE_JSONL, LODE_NPY or LODE_FVECS. */
LODE_MUST lode_status op_vectors_parse(lode_str bytes, lode_format format, float **vectors, size_t *n,
                                       uint32_t *dimension, lode_error *err);
/* By the extension of a path. */
lode_format op_format_of_path(const char *path);

#endif
