/* ring.c - a ring buffer of bytes for one writer and one reader. */
#include "ring.h"

#include <stdlib.h>
#include <string.h>

#define RING_MIN 16
#define RING_WRAP(r, i) ((i) & ((r)->size - 1))

typedef unsigned char byte;

/* How a ring is filled. */
typedef enum ring_mode {
  RING_BLOCK,
  RING_DROP,
  RING_OVERWRITE
} ring_mode;

struct ring {
  byte *data;
  size_t size;  /* a power of two */
  size_t head, tail;
  ring_mode mode;
};

static const struct ring_ops default_ops = {
  .read = ring_read,
  .write = ring_write,
  .close = ring_close,
  .name = "default",
};

static size_t round_up(size_t n) { size_t p = RING_MIN; while (p < n) p *= 2; return p; }

/*
 * Makes a ring of at least `size` bytes.
 * Returns NULL when out of memory.
 */
struct ring *ring_new(size_t size, ring_mode mode)
{
  struct ring *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->size = round_up(size);
  r->data = malloc(r->size);
  r->mode = mode;
  return r;
}

#ifdef RING_DEBUG
static void ring_dump(const struct ring *r)
{
  printf("%zu %zu\n", r->head, r->tail);
  fflush(stdout);
}
#endif

int ring_write(struct ring *r, const byte *p, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (r->head - r->tail == r->size) return -1;
    r->data[RING_WRAP(r, r->head++)] = p[i];
  }
  return 0;
}
