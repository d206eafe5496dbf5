/* SPDX-License-Identifier: Apache-2.0 */
/* sort_context.c - qsort with a context: qsort_r exists everywhere with different arguments, or not at all. */
#include "platform/platform.h"

#if !OS_LINUX

#include <stdlib.h>

typedef int sort_compare(const void *a, const void *b, void *ctx);

#if OS_DARWIN

typedef struct sort_call {
  sort_compare *compare;
  void *ctx;
} sort_call;

static int sort_forward(void *call, const void *a, const void *b) {
  const sort_call *c = call;
  return c->compare(a, b, c->ctx);
}

void os_sort(void *first, size_t n, size_t size, sort_compare *compare, void *ctx) {
  sort_call call = {compare, ctx};
  qsort_r(first, n, size, &call, sort_forward);
}

#else

static _Thread_local sort_compare *sort_current;
static _Thread_local void *sort_ctx;

static int sort_forward(const void *a, const void *b) { return sort_current(a, b, sort_ctx); }

void os_sort(void *first, size_t n, size_t size, sort_compare *compare, void *ctx) {
  sort_compare *outer = sort_current;
  void *outer_ctx = sort_ctx;
  sort_current = compare;
  sort_ctx = ctx;
  qsort(first, n, size, sort_forward);
  sort_current = outer;
  sort_ctx = outer_ctx;
}

#endif

const void *os_memrchr(const void *s, int c, size_t n) {
  const unsigned char *p = s;
  while (n > 0)
    if (p[--n] == (unsigned char)c) return p + n;
  return NULL;
}

#endif
