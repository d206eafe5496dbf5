/* SPDX-License-Identifier: Apache-2.0 */
/* sort.c - see old_musl.h. A comparison may sort something else in turn. */
#include "old_musl.h"

typedef int sort_compare(const void *a, const void *b, void *ctx);

static _Thread_local sort_compare *sort_current;
static _Thread_local void *sort_ctx;

static int sort_forward(const void *a, const void *b) { return sort_current(a, b, sort_ctx); }

void dist_qsort_r(void *first, size_t n, size_t size, sort_compare *compare, void *ctx) {
  sort_compare *outer = sort_current;
  void *outer_ctx = sort_ctx;
  sort_current = compare;
  sort_ctx = ctx;
  qsort(first, n, size, sort_forward);
  sort_current = outer;
  sort_ctx = outer_ctx;
}
