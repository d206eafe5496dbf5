/* SPDX-License-Identifier: Apache-2.0 */
/* execinfo.c - see execinfo.h. Frames come from the unwinder, names from the symbol table in the program's own file,
 * which is read with pread: no allocation, no locks, no stdio. */
#include "execinfo.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* where the program's file begins in memory */

static int program_fd = -1;

/* ---- Frames ---- */

typedef struct frame_list {
  void **frames;
  int n, max;
} frame_list;

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *ctx) {
  frame_list *list = ctx;
  uintptr_t pc = _Unwind_GetIP(context);
  if (pc == 0 || list->n == list->max) return _URC_END_OF_STACK;
  list->frames[list->n++] = (void *)pc;
  return _URC_NO_REASON;
}

int backtrace(void **frames, int max) {
  frame_list list = {frames, 0, max};
  if (program_fd < 0) program_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  (void)_Unwind_Backtrace(add_frame, &list);
  return list.n;
}

/* ---- Names ---- */

typedef struct symbol_table {
  Elf64_Off symbols, names;
  size_t n;
} symbol_table;

static int read_all(void *into, size_t n, Elf64_Off at) { return pread(program_fd, into, n, (off_t)at) == (ssize_t)n; }

static int find_symbols(symbol_table *t) {
  Elf64_Ehdr head;
  Elf64_Shdr section;
  if (program_fd < 0 || !read_all(&head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  for (unsigned i = 0; i < head.e_shnum; i++) {
    if (!read_all(&section, sizeof section, head.e_shoff + i * sizeof section)) return 0;
    if (section.sh_type != SHT_SYMTAB) continue;
    t->symbols = section.sh_offset;
    t->n = section.sh_size / sizeof(Elf64_Sym);
    if (!read_all(&section, sizeof section, head.e_shoff + section.sh_link * sizeof section)) return 0;
    t->names = section.sh_offset;
    return 1;
  }
  return 0;
}

/* The name of the function that holds `at`, an address of the file, and where that begins. */
static int find_name(const symbol_table *t, uintptr_t at, char *name, size_t size, uintptr_t *start) {
  Elf64_Sym some[64];
  for (size_t i = 0; i < t->n; i += 64) {
    size_t n = t->n - i < 64 ? t->n - i : 64;
    if (!read_all(some, n * sizeof *some, t->symbols + i * sizeof *some)) return 0;
    for (size_t k = 0; k < n; k++) {
      if (ELF64_ST_TYPE(some[k].st_info) != STT_FUNC || at < some[k].st_value ||
          at - some[k].st_value >= some[k].st_size)
        continue;
      ssize_t got = pread(program_fd, name, size - 1, (off_t)(t->names + some[k].st_name));
      if (got <= 0) return 0;
      name[got] = '\0';
      *start = some[k].st_value;
      return 1;
    }
  }
  return 0;
}

static void put(int fd, const char *text) {
  if (write(fd, text, strlen(text)) < 0) return; /* a failure cannot be reported to anybody */
}

static void put_hex(int fd, uintptr_t n) {
  char digits[19] = "0x";
  int at = 2, shift = 60;
  while (shift > 0 && (n >> shift & 15) == 0) shift -= 4;
  for (; shift >= 0; shift -= 4) digits[at++] = "0123456789abcdef"[n >> shift & 15];
  digits[at] = '\0';
  put(fd, digits);
}

void backtrace_symbols_fd(void *const *frames, int n, int fd) {
  symbol_table table = {0};
  int named = find_symbols(&table);
  for (int i = 0; i < n; i++) {
    char name[128];
    uintptr_t at = (uintptr_t)frames[i] - (uintptr_t)__ehdr_start, start = 0;
    put(fd, "lode(");
    if (named && find_name(&table, at, name, sizeof name, &start)) put(fd, name);
    put(fd, "+");
    put_hex(fd, at - start);
    put(fd, ") [");
    put_hex(fd, (uintptr_t)frames[i]);
    put(fd, "]\n");
  }
}
