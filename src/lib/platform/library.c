/* SPDX-License-Identifier: Apache-2.0 */
/* library.c - see library.h. */
#include "platform/library.h"

#include "platform/platform_internal.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

void *os_library_open(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }
void *os_library_symbol(void *library, const char *name) { return dlsym(library, name); }

const char *os_library_error(void) {
  const char *text = dlerror();
  return text ? text : "";
}

bool os_program_dir(char *dir, size_t size) {
  Dl_info self;
  char *slash;
  if (size < 2) return false;
  /* A shared library is identified by the path it was loaded from. A program may have only a bare name here, or, in a
   * worker, which is this program started again, /proc/self/exe. */
  if (dladdr((const void *)&os_real, &self) && self.dli_fname && self.dli_fname[0] == '/' &&
      strlen(self.dli_fname) < size && strcmp(self.dli_fname, "/proc/self/exe") != 0) {
    memcpy(dir, self.dli_fname, strlen(self.dli_fname) + 1);
  } else if (!os_program_path(dir, size)) {
    return false;
  }
  slash = strrchr(dir, '/');
  if (!slash) return false;
  *slash = 0;
  return true;
}

/* ---- Stack traces ---- */

#if defined(__GLIBC__) || defined(__APPLE__) || defined(LODE_EXECINFO) /* mk/dist.mk brings one */

#include <execinfo.h>

#ifdef LODE_EXECINFO
int os_trace_take(void *context, void **frames, int max) { return backtrace_from(context, frames, max); }
#else
int os_trace_take(void *context, void **frames, int max) {
  (void)context;
  return backtrace(frames, max);
}
#endif
void os_trace_put(void *const *frames, int n, int fd) { backtrace_symbols_fd(frames, n, fd); }

#else

#include <unwind.h>

typedef struct trace_walk {
  void **frames;
  int n, max;
} trace_walk;

static _Unwind_Reason_Code trace_step(struct _Unwind_Context *context, void *ctx) {
  trace_walk *walk = ctx;
  if (walk->n == walk->max) return _URC_END_OF_STACK;
  walk->frames[walk->n++] = (void *)(uintptr_t)_Unwind_GetIP(context);
  return _URC_NO_REASON;
}

int os_trace_take(void *context, void **frames, int max) {
  (void)context;
  trace_walk walk = {frames, 0, max};
  (void)_Unwind_Backtrace(trace_step, &walk);
  return walk.n;
}

static void trace_put_text(int fd, const char *text) {
  ssize_t put = write(fd, text, strlen(text));
  (void)put;
}

void os_trace_put(void *const *frames, int n, int fd) {
  for (int i = 0; i < n; i++) {
    char digits[20] = "0x";
    uintptr_t address = (uintptr_t)frames[i];
    for (int d = 0; d < 16; d++) digits[2 + d] = "0123456789abcdef"[address >> (60 - 4 * d) & 15];
    digits[18] = '\n';
    digits[19] = '\0';
    trace_put_text(fd, digits);
  }
}

#endif

void os_trace_prepare(void) {
  void *frames[4];
  (void)os_trace_take(NULL, frames, 4); /* the first trace may load a library, which a signal handler must not do */
}
