/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - advice about memory, and features of the CPU that only the system can tell. */
#ifndef LODE_PLATFORM_MEMORY_H
#define LODE_PLATFORM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

typedef enum os_memory_use {
  OS_MEMORY_LARGE_PAGES, /* a hint */
  OS_MEMORY_SMALL_PAGES, /* a hint */
  OS_MEMORY_DROP, /* the content is not needed: the pages are given back; what is read there later is undefined */
} os_memory_use;

/* Whole pages. Does what it can: failure does not matter. Keeps errno. */
void os_memory_advise(void *p, size_t n, os_memory_use use);

/* What was freed goes back to the system, as far as the allocator can do that. After work that needed much memory in
 * small pieces: allocators keep it for the next time, and most of it counts as ours until then. */
void os_memory_trim(void);

/* Asks for AMX tiles, which a process must be granted. */
bool os_cpu_grant_tiles(void);
typedef enum os_cpu_feature { OS_CPU_ARM_CRC32, OS_CPU_ARM_DOTPROD } os_cpu_feature;
bool os_cpu_has(os_cpu_feature feature);

#endif
