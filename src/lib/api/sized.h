/* SPDX-License-Identifier: Apache-2.0 */
/* sized.h - structs of callers that were compiled with another lode.h (docs/COMPATIBILITY.md).
 *
 * A struct grows at its end only, so a smaller one is the beginning of ours. What the caller's lacks is zero, which is
 * always the default. What ours lacks must be zero: a field that is set and ignored would be a wrong answer.
 */
#ifndef LODE_API_SIZED_H
#define LODE_API_SIZED_H

#include "base/base.h"

/* For pointer arguments that are required. */
#define API_REQUIRE(pointer, err)                                                                                      \
  do {                                                                                                                 \
    if (!(pointer)) return err_set((err), LODE_INVALID, #pointer " is NULL: it is required");                          \
  } while (0)

/* LODE_INVALID for a size that no struct of lode.h can have. */
LODE_MUST lode_status api_check_size(size_t size, const char *type, lode_error *err);

/* Copies a caller's struct of `size` bytes to *own; NULL is all zero. */
#define API_TAKE(own, theirs, size, type, err) api_take((own), sizeof(type), (theirs), (size), #type, (err))
LODE_MUST lode_status api_take(void *own, size_t own_size, const void *theirs, size_t size, const char *type,
                               lode_error *err);

/* Copies a result to the caller's struct of `size` bytes, which api_check_size() has seen; NULL is allowed. */
void api_give(void *theirs, size_t size, const void *own, size_t own_size);

/* An array of n structs of `size` bytes each: *copy is NULL if theirs can be used as it is, because the sizes agree;
 * otherwise free it with mem_free(). */
#define API_TAKE_ARRAY(copy, theirs, size, n, type, err)                                                               \
  api_take_array((copy), sizeof(type), (theirs), (size), (n), #type, (err))
LODE_MUST lode_status api_take_array(void **copy, size_t own_size, const void *theirs, size_t size, size_t n,
                                     const char *type, lode_error *err);

#endif
