/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - the path of the running program where /proc does not tell it: by _NSGetExecutablePath, or by the name
 * that it was started with and PATH, as a shell looks for it. */
#include "platform/platform_internal.h"

#if !OS_LINUX

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if OS_DARWIN
#include <mach-o/dyld.h>
#endif

static char program_path[PATH_MAX]; /* written once, before there are threads */

static bool program_resolve(const char *candidate) {
  if (access(candidate, X_OK) == 0 && realpath(candidate, program_path)) return true;
  program_path[0] = '\0';
  return false;
}

static void program_search(const char *name) {
  const char *at = getenv("PATH");
  char candidate[PATH_MAX];
  while (at && *at) {
    size_t len = strcspn(at, ":");
    int n = snprintf(candidate, sizeof candidate, "%.*s/%s", len ? (int)len : 1, len ? at : ".", name);
    if (n > 0 && (size_t)n < sizeof candidate && program_resolve(candidate)) return;
    at += len + (at[len] == ':');
  }
}

void os_program_started_as(const char *argv0) {
#if OS_DARWIN
  char given[PATH_MAX];
  uint32_t size = sizeof given;
  if (_NSGetExecutablePath(given, &size) == 0 && program_resolve(given)) return;
#endif
  if (argv0 && strchr(argv0, '/'))
    (void)program_resolve(argv0);
  else if (argv0 && *argv0)
    program_search(argv0);
}

bool os_program_path(char *path, size_t size) {
  size_t len = strlen(program_path);
#if OS_DARWIN
  if (len == 0) os_program_started_as(NULL); /* a library in a program of others */
  len = strlen(program_path);
#endif
  if (len == 0 || len >= size) return false;
  memcpy(path, program_path, len + 1);
  return true;
}

const char *os_program_again(void) { return program_path; }

void os_program_name(char *name, size_t size) {
  const char *slash = strrchr(program_path, '/');
  snprintf(name, size, "%s", slash ? slash + 1 : "");
}

#endif
