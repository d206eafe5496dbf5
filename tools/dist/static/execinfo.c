/* SPDX-License-Identifier: Apache-2.0 */
/* execinfo.c - see execinfo.h. Frames come from the unwinder, names from the symbol table in the program's own file,
 * which is read with pread: no allocation, no locks, no stdio. */
#include "execinfo.h"

#include <elf.h>
#include <fcntl.h>
#include <libunwind.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* where the program's file begins in memory */

static int program_fd = -1;

/* ---- Frames ---- */

enum { MAX_UNKNOWN_WORDS = 128 }; /* so many words of a stack are looked through: above each stack there is as much */

/* Registers as the kernel has kept them for a signal handler; the instruction comes last, because with it the cursor
 * looks for the function, but for the stack pointer, which that may move. */
#if defined __x86_64__
enum { N_REGISTERS = 16, LINK_REGISTER = -1 };

static void move_to(unw_cursor_t *cursor, const ucontext_t *at) {
  static const unsigned char dwarf_order[N_REGISTERS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                                         REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                                         REG_R12, REG_R13, REG_R14, REG_R15};
  const greg_t *registers = at->uc_mcontext.gregs;
  for (int i = 0; i < N_REGISTERS; i++) (void)unw_set_reg(cursor, i, (unw_word_t)registers[dwarf_order[i]]);
  (void)unw_set_reg(cursor, UNW_REG_IP, (unw_word_t)registers[REG_RIP]);
  (void)unw_set_reg(cursor, UNW_REG_SP, (unw_word_t)registers[REG_RSP]);
}
#elif defined __aarch64__
enum { N_REGISTERS = 31, LINK_REGISTER = UNW_AARCH64_X30 };

static void move_to(unw_cursor_t *cursor, const ucontext_t *at) {
  for (int i = 0; i < N_REGISTERS; i++) (void)unw_set_reg(cursor, i, at->uc_mcontext.regs[i]);
  (void)unw_set_reg(cursor, UNW_REG_IP, at->uc_mcontext.pc);
  (void)unw_set_reg(cursor, UNW_REG_SP, at->uc_mcontext.sp);
}
#else
#error "execinfo.c: say where a signal handler finds the registers of this machine"
#endif

/* Moves the cursor to `pc`, if that is an address to return to in a function with unwind information. It needs a new
 * cursor, which takes the registers of this one: a cursor that has met a function without it never steps again. */
static int return_to(unw_cursor_t *cursor, unw_word_t pc, unw_word_t sp) {
  unw_context_t here;
  unw_cursor_t fresh;
  unw_proc_info_t info;
  if (unw_getcontext(&here) != 0 || unw_init_local(&fresh, &here) != 0) return 0;
  for (int i = 0; i < N_REGISTERS; i++) {
    unw_word_t value = 0;
    if (unw_get_reg(cursor, i, &value) == 0) (void)unw_set_reg(&fresh, i, value);
  }
  if (unw_set_reg(&fresh, UNW_REG_IP, pc) != 0 || unw_set_reg(&fresh, UNW_REG_SP, sp) != 0) return 0;
  if (unw_get_proc_info(&fresh, &info) != 0 || pc <= info.start_ip || pc > info.end_ip) return 0;
  *cursor = fresh;
  return 1;
}

/* Leaves a function without unwind information (assembler, a call of nothing): its caller is in the link register, if
 * it was interrupted itself, or is the first on the stack that looks like one. */
static int leave_unknown(unw_cursor_t *cursor, int interrupted) {
  unw_word_t sp = 0, word = 0;
  if (unw_get_reg(cursor, UNW_REG_SP, &sp) != 0 || sp == 0 || sp % sizeof sp != 0) return 0;
  if (interrupted && LINK_REGISTER >= 0 && unw_get_reg(cursor, LINK_REGISTER, &word) == 0 &&
      return_to(cursor, word, sp))
    return 1;
  for (size_t i = 0; i < MAX_UNKNOWN_WORDS; i++) {
    memcpy(&word, (const char *)(uintptr_t)sp + i * sizeof word, sizeof word);
    if (return_to(cursor, word, sp + (i + 1) * sizeof word)) return 1;
  }
  return 0;
}

int backtrace_from(const void *context, void **frames, int max) {
  unw_context_t here;
  unw_cursor_t cursor;
  unw_word_t pc = 0, next = 0;
  int n = 0;
  if (program_fd < 0) program_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (unw_getcontext(&here) != 0 || unw_init_local(&cursor, &here) != 0) return 0;
  if (context) move_to(&cursor, context);
  while (n < max && unw_get_reg(&cursor, UNW_REG_IP, &pc) == 0) {
    frames[n++] = (void *)(uintptr_t)pc;
    if (unw_step(&cursor) > 0) continue;
    /* The last step may have led to a function that is not known; nothing called the first one of a thread */
    if (unw_get_reg(&cursor, UNW_REG_IP, &next) != 0 || (next == 0 && n > 1)) break;
    if (next != pc && n < max) frames[n++] = (void *)(uintptr_t)next;
    if (!leave_unknown(&cursor, n == 1)) break;
  }
  return n;
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
    /* a function that does not return may be called by the last instruction of another */
    if (named && find_name(&table, i ? at - 1 : at, name, sizeof name, &start)) put(fd, name);
    put(fd, "+");
    put_hex(fd, at - start);
    put(fd, ") [");
    put_hex(fd, (uintptr_t)frames[i]);
    put(fd, "]\n");
  }
}
