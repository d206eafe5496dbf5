/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_map.c - see symbol_map.h. Open addressing, at most half full. */
#include "symbols/symbol_map.h"

typedef struct symbols_map_slot {
  lode_str key; /* no data: free */
  uint32_t value;
} symbols_map_slot;

struct symbols_map {
  symbols_map_slot *slots;
  size_t size, n; /* size: a power of two */
};

symbols_map *symbols_map_new(void) {
  symbols_map *m = mem_calloc(1, sizeof *m);
  if (!m) return NULL;
  m->size = 256;
  m->slots = mem_calloc(m->size, sizeof *m->slots);
  if (m->slots) return m;
  mem_free(m);
  return NULL;
}

void symbols_map_free(symbols_map *m) {
  if (!m) return;
  mem_free(m->slots);
  mem_free(m);
}

void symbols_map_clear(symbols_map *m) {
  if (m->n) memset(m->slots, 0, m->size * sizeof *m->slots);
  m->n = 0;
}

static symbols_map_slot *map_slot(symbols_map_slot *slots, size_t size, lode_str key) {
  size_t at = hash_bytes(key.data, key.len) & (size - 1);
  while (slots[at].key.data && !str_eq(slots[at].key, key)) at = (at + 1) & (size - 1);
  return &slots[at];
}

uint32_t *symbols_map_find(const symbols_map *m, lode_str key) {
  symbols_map_slot *slot = map_slot(m->slots, m->size, key);
  return slot->key.data ? &slot->value : NULL;
}

static bool map_grow(symbols_map *m) {
  size_t size = 2 * m->size;
  symbols_map_slot *slots = mem_calloc(size, sizeof *slots);
  if (!slots) return false;
  for (size_t i = 0; i < m->size; i++)
    if (m->slots[i].key.data) *map_slot(slots, size, m->slots[i].key) = m->slots[i];
  mem_free(m->slots);
  m->slots = slots;
  m->size = size;
  return true;
}

bool symbols_map_put(symbols_map *m, lode_str key, uint32_t value) {
  if (2 * (m->n + 1) > m->size && !map_grow(m)) return false;
  symbols_map_slot *slot = map_slot(m->slots, m->size, key);
  m->n += slot->key.data == NULL;
  *slot = (symbols_map_slot){{key.data ? key.data : "", key.len}, value};
  return true;
}
