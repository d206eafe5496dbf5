/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - see memory.h. */
#include "platform/memory.h"

#include "platform/platform_internal.h"

#include <stdint.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/mman.h>
#include <unistd.h>

void os_memory_trim(void) {
#ifdef __GLIBC__
  int saved = errno;
  (void)malloc_trim(0);
  errno = saved;
#endif
}

#if OS_LINUX

#include <sys/auxv.h>
#include <sys/syscall.h>

void os_memory_advise(void *p, size_t n, os_memory_use use) {
  int saved = errno, advice = MADV_DONTNEED;
  if (use == OS_MEMORY_LARGE_PAGES) advice = MADV_HUGEPAGE;
  if (use == OS_MEMORY_SMALL_PAGES) advice = MADV_NOHUGEPAGE;
  (void)madvise(p, n, advice);
  errno = saved;
}

/* The system refuses if it does not support tiles, if a system call filter forbids it, or if a thread has a signal
 * stack too small for them. */
bool os_cpu_grant_tiles(void) {
#ifdef __x86_64__
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
  int saved = errno;
  bool granted = syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
  errno = saved;
  return granted;
#else
  return false;
#endif
}

bool os_cpu_has(os_cpu_feature feature) {
#ifdef __aarch64__
  static const unsigned bits[] = {[OS_CPU_ARM_CRC32] = 1u << 7, [OS_CPU_ARM_DOTPROD] = 1u << 20}; /* HWCAP_* */
  return (getauxval(AT_HWCAP) & bits[feature]) != 0;
#else
  (void)feature;
  return false;
#endif
}

#else /* not Linux */

/* Anonymous pages in the place of those that are not needed: only whole ones, which belong to this allocation alone. */
static void memory_replace(void *p, size_t n) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = ((uintptr_t)p + page - 1) & ~(page - 1),
            to = ((uintptr_t)p + n) & ~(page - 1);
  if (from < to) (void)mmap((void *)from, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0);
}

void os_memory_advise(void *p, size_t n, os_memory_use use) {
  int saved = errno;
#if OS_DARWIN
  (void)memory_replace;
  if (use == OS_MEMORY_DROP) (void)madvise(p, n, MADV_FREE);
#else
  if (use == OS_MEMORY_DROP) memory_replace(p, n);
#endif
  errno = saved;
}

bool os_cpu_grant_tiles(void) { return false; }

/* Every Mac with an ARM processor has both. */
bool os_cpu_has(os_cpu_feature feature) {
  (void)feature;
#if OS_DARWIN && defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

#endif
