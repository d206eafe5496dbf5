/* SPDX-License-Identifier: Apache-2.0 */
/* dlfcn.c - dlopen() and its companions for a program that has its libraries linked in: what is asked for is looked up
 * in a table, by the last part of the path. Nothing is ever loaded from a file. */
#include "dist_static.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static char dlfcn_message[] = "it is not part of this program, which loads nothing";

void *dlopen(const char *path, int mode) {
  const char *slash = path ? strrchr(path, '/') : NULL;
  const char *name = slash ? slash + 1 : path;
  (void)mode;
  for (const dist_symbol *s = dist_symbols; name && s->library; s++)
    if (strcmp(s->library, name) == 0) return (void *)(size_t)s;
  return NULL;
}

void *dlsym(void *restrict library, const char *restrict name) {
  const dist_symbol *first = library;
  union {
    void (*function)(void);
    void *object;
  } found = {0};
  for (const dist_symbol *s = first; s && s->library; s++)
    if (strcmp(s->library, first->library) == 0 && strcmp(s->name, name) == 0) found.function = s->function;
  return found.object;
}

char *dlerror(void) { return dlfcn_message; }

int dlclose(void *library) {
  (void)library;
  return 0;
}
