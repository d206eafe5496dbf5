/* SPDX-License-Identifier: Apache-2.0 */
/* old_musl.h - what musl got after 1.1, which the library for musl runs on; included before every source. */
#ifndef LODE_DIST_OLD_MUSL_H
#define LODE_DIST_OLD_MUSL_H

#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* statx() came with 1.2.5. An old kernel says ENOSYS, and the callers have other ways. */
static inline int dist_statx(int dir, const char *path, int flags, unsigned mask, struct statx *out) {
  return (int)syscall(SYS_statx, dir, path, flags, mask, out);
}
#define statx(...) dist_statx(__VA_ARGS__)

/* qsort_r() came with 1.2.3. */
__attribute__((visibility("hidden"))) void dist_qsort_r(void *first, size_t n, size_t size,
                                                        int (*compare)(const void *, const void *, void *), void *ctx);
#define qsort_r dist_qsort_r

#endif
