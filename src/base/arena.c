/* arena.c - memory of one request, freed at once.
 *
 * Blocks form a list; the newest is `head` and the only one that is cut from. A block's size grows with the arena,
 * and shrinks to what the limit still allows, so that a small limit is usable to its last byte. `used` is the sum
 * of what the blocks took from the allocator, headers included; used <= limit always. A reset keeps the largest
 * block of at most KEEP_BYTES. Under AddressSanitizer what is not handed out is poisoned, so that a read past an
 * object or after a reset is seen. An arena belongs to one thread at a time.
 */
#include "base.h"
#include "sanitized.h"

#if LODE__ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

enum { ALIGN = 16, FIRST_BYTES = 4096, MOST_BYTES = 1 << 20, KEEP_BYTES = 1 << 20 };

struct lode__arena_block {
  lode__arena_block *older;
  size_t size; /* of the whole block, header included */
  size_t at;   /* where the next object begins, from the block's begin */
};

#define HEADER_BYTES ((sizeof(lode__arena_block) + ALIGN - 1) / ALIGN * ALIGN)

void lode__arena_init(lode__arena *arena, size_t limit_bytes) {
  *arena = (lode__arena){.limit = limit_bytes};
}

static void poison(lode__arena_block *block) {
  ASAN_POISON_MEMORY_REGION((char *)block + HEADER_BYTES, block->size - HEADER_BYTES);
}

static void block_free(lode__arena_block *block) {
  ASAN_UNPOISON_MEMORY_REGION((char *)block, block->size);
  lode__free(block);
}

/* A new head with room for `size` bytes. */
static bool add_block(lode__arena *arena, size_t size) {
  size_t need, want = arena->used < FIRST_BYTES ? FIRST_BYTES : arena->used;
  if (lode__add_over(size, HEADER_BYTES, &need)) return false;
  if (want > MOST_BYTES) want = MOST_BYTES;
  if (want < need) want = need;
  if (arena->limit) {
    size_t left = arena->limit - arena->used;
    if (need > left) return false;
    if (want > left) want = left;
  }
  lode__arena_block *block = lode__alloc_aligned(ALIGN, want);
  if (!block) return false;
  *block = (lode__arena_block){.older = arena->head, .size = want, .at = HEADER_BYTES};
  poison(block);
  arena->head = block;
  arena->used += want;
  return true;
}

void *lode__arena_alloc(lode__arena *arena, size_t size) {
  size_t padded;
  if (lode__add_over(size, ALIGN - 1, &padded)) return NULL;
  padded = padded / ALIGN * ALIGN;
  if (padded == 0) padded = ALIGN; /* two objects never share an address */
  lode__arena_block *block = arena->head;
  if (!block || block->size - block->at < padded) {
    if (!add_block(arena, padded)) return NULL;
    block = arena->head;
  }
  void *p = (char *)block + block->at;
  block->at += padded;
  ASAN_UNPOISON_MEMORY_REGION(p, size);
  return p;
}

void *lode__arena_copy(lode__arena *arena, const void *data, size_t size) {
  size_t with_nul;
  if (lode__add_over(size, 1, &with_nul)) return NULL;
  char *p = lode__arena_alloc(arena, with_nul);
  if (!p) return NULL;
  if (size) memcpy(p, data, size);
  p[size] = '\0';
  return p;
}

void lode__arena_reset(lode__arena *arena) {
  lode__arena_block *keep = NULL;
  for (lode__arena_block *b = arena->head, *older; b; b = older) {
    older = b->older;
    if (b->size > KEEP_BYTES || (keep && keep->size >= b->size)) {
      block_free(b);
      continue;
    }
    if (keep) block_free(keep);
    keep = b;
  }
  arena->head = keep;
  arena->used = 0;
  if (!keep) return;
  keep->older = NULL;
  keep->at = HEADER_BYTES;
  arena->used = keep->size;
  poison(keep);
}

void lode__arena_release(lode__arena *arena) {
  for (lode__arena_block *b = arena->head, *older; b; b = older) {
    older = b->older;
    block_free(b);
  }
  arena->head = NULL;
  arena->used = 0;
}
