/* SPDX-License-Identifier: Apache-2.0 */
/* library.h - libraries that are loaded when they are needed. They stay loaded until the process ends. */
#ifndef LODE_PLATFORM_LIBRARY_H
#define LODE_PLATFORM_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __APPLE__
#define OS_LIBRARY_NAME(name, version) "lib" name "." version ".dylib"
#else
#define OS_LIBRARY_NAME(name, version) "lib" name ".so." version
#endif

void *os_library_open(const char *name); /* a path, or a name of OS_LIBRARY_NAME; NULL: os_library_error() says why */
void *os_library_symbol(void *library, const char *name);
const char *os_library_error(void);
/* The directory of the program or shared library that contains this code, to find what is installed beside it. False if
 * it is unknown or does not fit. */
__attribute__((warn_unused_result)) bool os_program_dir(char *dir, size_t size);

/* ---- Stack traces ---- */

/* The return addresses of the callers; usable in a signal handler once os_trace_prepare() was called. `context` is the
 * third argument of that handler, or NULL: where the unwinder cannot pass the frame of a signal, the trace begins at
 * the instruction that was interrupted. */
void os_trace_prepare(void);
int os_trace_take(void *context, void **frames, int max);
/* One line for each, with the name of the function where it is known; async-signal-safe. */
void os_trace_put(void *const *frames, int n, int fd);

#endif
