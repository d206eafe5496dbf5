/* SPDX-License-Identifier: Apache-2.0 */
/* glibc.c - the C23 names that glibc 2.38 gave to old functions, for a C library that lacks them. See glibc.mjs. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int __isoc23_sscanf(const char *text, const char *format, ...);
long __isoc23_strtol(const char *text, char **end, int base);

int __isoc23_sscanf(const char *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int got = vsscanf(text, format, args);
  va_end(args);
  return got;
}

long __isoc23_strtol(const char *text, char **end, int base) { return strtol(text, end, base); }
