/* SPDX-License-Identifier: Apache-2.0 */
/* sim_heap.c - see sim_heap.h. Blocks have sizes that are powers of two, and a list of free ones for each size. */
#include "support/sim_heap.h"

#include "support/test.h"

#include <string.h>
#include <sys/mman.h>

enum { CLASSES = 40, SMALLEST = 5 };
#define HEAP_BYTES ((size_t)4 << 30) /* of addresses; memory is used when it is touched */

typedef struct block {
  size_t class;
  struct block *next_free;
} block;

typedef struct heap {
  size_t used;
  block *free[CLASSES];
} heap;

static heap *current;

void *sim_heap_map(size_t size) {
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) test_failed(__FILE__, __LINE__, "no shared memory");
  return p;
}

void sim_heap_start(void) {
  sim_heap_stop();
  current = sim_heap_map(HEAP_BYTES);
  current->used = (sizeof *current + 63) / 64 * 64;
}

void sim_heap_stop(void) {
  if (current) munmap(current, HEAP_BYTES);
  current = NULL;
}

static block *block_of(void *p) { return (block *)((char *)p - sizeof(block)); }

static block *take_block(size_t class) {
  block *b = current->free[class];
  if (b) {
    current->free[class] = b->next_free;
    return b;
  }
  size_t size = (size_t)1 << class;
  if (HEAP_BYTES - current->used < size) test_failed(__FILE__, __LINE__, "the shared heap is full");
  b = (block *)((char *)current + current->used);
  current->used += size;
  b->class = class;
  return b;
}

void *sim_heap_resize(void *p, size_t size) {
  size_t class = SMALLEST, had = p ? ((size_t)1 << block_of(p)->class) - sizeof(block) : 0;
  if (p && size <= had) return p;
  while (((size_t)1 << class) - sizeof(block) < size) class ++;
  void *fresh = (char *)take_block(class) + sizeof(block);
  if (!p) return fresh;
  memcpy(fresh, p, had);
  sim_heap_free(p);
  return fresh;
}

void sim_heap_free(void *p) {
  if (!p) return;
  block *b = block_of(p);
  b->next_free = current->free[b->class];
  current->free[b->class] = b;
}
