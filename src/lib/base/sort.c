/* SPDX-License-Identifier: Apache-2.0 */
/* sort.c - comparison of numbers and strings, and sorting of many strings.
 *
 * The sort keys are the first eight bytes of each string, as a number, and its position: these usually decide, and are
 * contiguous in memory. The strings themselves are compared only if the eight bytes are equal.
 */
#include "base/base.h"
#include "base/byteorder.h"
#include "platform/platform.h"

typedef struct sort_key {
  uint64_t prefix; /* big-endian, a short string is padded with zeros */
  size_t at;
} sort_key;

typedef struct sort_array {
  const char *first;
  size_t stride;
} sort_array;

static const lode_str *string_at(const sort_array *list, size_t at) {
  return (const lode_str *)(const void *)(list->first + at * list->stride);
}

static uint64_t prefix_of(lode_str s) {
  unsigned char bytes[8] = {0};
  if (s.len) memcpy(bytes, s.data, s.len < sizeof bytes ? s.len : sizeof bytes);
  return num_be64(bytes);
}

static int sort_compare_keys(const void *a, const void *b, void *ctx) {
  const sort_array *list = ctx;
  const sort_key *x = a, *y = b;
  if (x->prefix != y->prefix) return x->prefix < y->prefix ? -1 : 1;
  int c = str_cmp(*string_at(list, x->at), *string_at(list, y->at));
  return c ? c : (x->at > y->at) - (x->at < y->at);
}

int sort_cmp_u32(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

int sort_cmp_u64(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

int sort_cmp_i64(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

int sort_cmp_str(const void *a, const void *b) { return str_cmp(*(const lode_str *)a, *(const lode_str *)b); }

lode_status sort_strings(const lode_str *first, size_t stride, size_t n, size_t *order, lode_error *err) {
  sort_array list = {(const char *)first, stride};
  if (n == 0) return LODE_OK;
  sort_key *keys = mem_calloc(n, sizeof *keys);
  if (!keys) return err_nomem(err);
  for (size_t i = 0; i < n; i++) keys[i] = (sort_key){prefix_of(*string_at(&list, i)), i};
  os_sort(keys, n, sizeof *keys, sort_compare_keys, &list);
  for (size_t i = 0; i < n; i++) order[i] = keys[i].at;
  mem_free(keys);
  return LODE_OK;
}
