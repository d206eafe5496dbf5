/* SPDX-License-Identifier: Apache-2.0 */
/* dist_static.h - the libraries that are linked into a self-contained program, by the names it would load them by. */
#ifndef LODE_DIST_STATIC_H
#define LODE_DIST_STATIC_H

typedef struct dist_symbol {
  const char *library, *name; /* NULL: the end of the table */
  void (*function)(void);
} dist_symbol;

/* One table in each program: libraries.c for lode and liblode, a generated one for lode-parser. */
extern const dist_symbol dist_symbols[];

#endif
