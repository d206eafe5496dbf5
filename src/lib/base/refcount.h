/* SPDX-License-Identifier: Apache-2.0 */
/* refcount.h - reference counts of what threads share. */
#ifndef LODE_BASE_REFCOUNT_H
#define LODE_BASE_REFCOUNT_H

#include "base/base.h"

#include <stdatomic.h>

static inline void mem_ref(atomic_uint *refs) {
  bool alive = INVARIANT(atomic_fetch_add_explicit(refs, 1, memory_order_relaxed) > 0);
  (void)alive;
}

/* True: that was the last reference. */
LODE_MUST static inline bool mem_unref(atomic_uint *refs) {
  unsigned before = atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel);
  return INVARIANT(before > 0) && before == 1;
}

#endif
