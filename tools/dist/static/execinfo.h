/* SPDX-License-Identifier: Apache-2.0 */
/* execinfo.h - what Lode uses of glibc's <execinfo.h>, for C libraries without one. */
#ifndef LODE_DIST_EXECINFO_H
#define LODE_DIST_EXECINFO_H

/* Both are called in signal handlers. `context` is the third argument of the handler: the trace begins at what was
 * interrupted, because the unwinder does not pass the frame of a signal in musl; NULL: at the caller. The first call
 * opens the program's own file, for its names. */
int backtrace_from(const void *context, void **frames, int max);
void backtrace_symbols_fd(void *const *frames, int n, int fd);

#endif
