/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - memory of one request, freed at once.
 *
 * Blocks form a list; objects are allocated only from the newest, `head`. A block's size grows with the arena and
 * shrinks to what the limit still allows, so that a small limit can be used to its last byte. `used` is the total size
 * of the blocks, headers included; used <= limit always. A reset keeps the largest block of at most ARENA_KEEP_BYTES.
 * Under AddressSanitizer, memory that is not handed out is poisoned, so that a read past an object or after a reset is
 * detected. An arena belongs to one thread at a time.
 */
#include "base/base.h"
#include "platform/sanitized.h"

#if BUILD_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

enum { ARENA_ALIGN = 16, ARENA_FIRST_BYTES = 4096, ARENA_MAX_BLOCK = 1 << 20, ARENA_KEEP_BYTES = 1 << 20 };

struct mem_arena_block {
  mem_arena_block *older;
  size_t size; /* of the whole block, header included */
  size_t at;   /* offset of the next object in the block */
};

#define ARENA_HEADER_BYTES ((sizeof(mem_arena_block) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN)

void mem_arena_init(mem_arena *arena, size_t limit_bytes) { *arena = (mem_arena){.limit = limit_bytes}; }

static void arena_poison(mem_arena_block *block) {
  ASAN_POISON_MEMORY_REGION((char *)block + ARENA_HEADER_BYTES, block->size - ARENA_HEADER_BYTES);
}

static void arena_free_block(mem_arena_block *block) {
  ASAN_UNPOISON_MEMORY_REGION((char *)block, block->size);
  mem_free(block);
}

/* Adds a new head with space for `size` bytes. */
static bool arena_add_block(mem_arena *arena, size_t size) {
  size_t need, want = arena->used < ARENA_FIRST_BYTES ? ARENA_FIRST_BYTES : arena->used;
  if (mem_add_overflow(size, ARENA_HEADER_BYTES, &need)) return false;
  if (want > ARENA_MAX_BLOCK) want = ARENA_MAX_BLOCK;
  if (want < need) want = need;
  if (arena->limit) {
    size_t left = arena->limit - arena->used;
    if (need > left) return false;
    if (want > left) want = left;
  }
  mem_arena_block *block = mem_alloc_aligned(ARENA_ALIGN, want);
  if (!block) return false;
  *block = (mem_arena_block){.older = arena->head, .size = want, .at = ARENA_HEADER_BYTES};
  arena_poison(block);
  arena->head = block;
  arena->used += want;
  return true;
}

void *mem_arena_alloc(mem_arena *arena, size_t size) {
  size_t padded;
  if (mem_add_overflow(size, ARENA_ALIGN - 1, &padded)) return NULL;
  padded = padded / ARENA_ALIGN * ARENA_ALIGN;
  if (padded == 0) padded = ARENA_ALIGN; /* two objects never share an address */
  mem_arena_block *block = arena->head;
  if (!block || block->size - block->at < padded) {
    if (!arena_add_block(arena, padded)) return NULL;
    block = arena->head;
  }
  void *p = (char *)block + block->at;
  block->at += padded;
  ASAN_UNPOISON_MEMORY_REGION(p, size);
  return p;
}

void *mem_arena_copy(mem_arena *arena, const void *data, size_t size) {
  size_t with_nul;
  if (mem_add_overflow(size, 1, &with_nul)) return NULL;
  char *p = mem_arena_alloc(arena, with_nul);
  if (!p) return NULL;
  if (size) memcpy(p, data, size);
  p[size] = '\0';
  return p;
}

void mem_arena_reset(mem_arena *arena) {
  mem_arena_block *keep = NULL;
  for (mem_arena_block *b = arena->head, *older; b; b = older) {
    older = b->older;
    if (b->size > ARENA_KEEP_BYTES || (keep && keep->size >= b->size)) {
      arena_free_block(b);
      continue;
    }
    if (keep) arena_free_block(keep);
    keep = b;
  }
  arena->head = keep;
  arena->used = 0;
  if (!keep) return;
  keep->older = NULL;
  keep->at = ARENA_HEADER_BYTES;
  arena->used = keep->size;
  arena_poison(keep);
}

void mem_arena_release(mem_arena *arena) {
  for (mem_arena_block *b = arena->head, *older; b; b = older) {
    older = b->older;
    arena_free_block(b);
  }
  arena->head = NULL;
  arena->used = 0;
}
