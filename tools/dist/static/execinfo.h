/* SPDX-License-Identifier: Apache-2.0 */
/* execinfo.h - the part of glibc's <execinfo.h> that Lode uses, for C libraries without one. */
#ifndef LODE_DIST_EXECINFO_H
#define LODE_DIST_EXECINFO_H

/* Both are called in signal handlers. The first call of backtrace() opens the program's own file, for its names. */
int backtrace(void **frames, int max);
void backtrace_symbols_fd(void *const *frames, int n, int fd);

#endif
