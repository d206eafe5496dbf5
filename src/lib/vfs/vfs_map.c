/* SPDX-License-Identifier: Apache-2.0 */
/* vfs_map.c - the page map in memory. See vfs_map.h; vfs_map_file.c has its file.
 *
 * Invariants
 *   1. A page's version is that of its change, if it has one, else that of its block in the base. Blocks past the base
 *      are zeros.
 *   2. sums[b] is the sum of the hashes of block b of the base, so a block can be dropped and read again.
 *   3. commit.root is the sum of the hashes of all pages, changes included.
 */
#include "vfs/vfs_map.h"

enum { MAP_BLOCK_BYTES = VFS_MAP_BLOCK * 8, MAP_CHANGES_MIN = 64 };

static uint64_t map_mix(uint64_t x) {
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* A page without content adds nothing to the root. */
uint64_t vfs_map_hash(uint64_t page, uint64_t version) { return version ? map_mix(map_mix(page) ^ version) : 0; }

static uint64_t map_block_sum(size_t block, const uint64_t *versions) {
  uint64_t sum = 0;
  for (size_t i = 0; i < VFS_MAP_BLOCK; i++) sum += vfs_map_hash((uint64_t)block * VFS_MAP_BLOCK + i, versions[i]);
  return sum;
}

void vfs_map_rebase(vfs_map *map) {
  for (size_t i = 0; i < VFS_MAP_CACHED; i++) mem_free(map->cached[i].versions);
  memset(map->cached, 0, sizeof map->cached);
  mem_free(map->changes);
  map->changes = NULL;
  map->n_changes = map->cap_changes = 0;
}

void vfs_map_release(vfs_map *map) {
  vfs_map_rebase(map);
  mem_free(map->sums);
  mem_free(map->touched);
  int fd = map->fd;
  *map = (vfs_map)VFS_MAP_NONE; /* before it is closed: a fork closes the descriptors of all maps */
  if (fd >= 0) (void)os_api->close(fd);
}

/* ---- Changes ---- */

/* The slot of a page, or the free one where it goes. There is always a free slot. */
static vfs_map_change *map_slot(const vfs_map *map, uint32_t page) {
  size_t mask = map->cap_changes - 1, at = (page * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & mask;
  while (map->changes[at].page && map->changes[at].page != page) at = (at + 1) & mask;
  return &map->changes[at];
}

static const vfs_map_change *map_find(const vfs_map *map, uint32_t page) {
  if (!map->n_changes) return NULL;
  const vfs_map_change *c = map_slot(map, page);
  return c->page ? c : NULL;
}

static bool map_grow_changes(vfs_map *map) {
  vfs_map old = *map;
  size_t cap = old.cap_changes ? old.cap_changes * 2 : MAP_CHANGES_MIN;
  vfs_map_change *changes = mem_calloc(cap, sizeof *changes);
  if (!changes) return false;
  map->changes = changes;
  map->cap_changes = cap;
  for (size_t i = 0; i < old.cap_changes; i++)
    if (old.changes[i].page) *map_slot(map, old.changes[i].page) = old.changes[i];
  mem_free(old.changes);
  return true;
}

static lode_status map_change(vfs_map *map, uint32_t page, uint64_t version, uint32_t transaction) {
  if (2 * (map->n_changes + 1) > map->cap_changes && !map_grow_changes(map)) return LODE_NOMEM;
  vfs_map_change *c = map_slot(map, page);
  if (map->fd >= 0 && transaction && (c->page == 0 || c->transaction != transaction)) {
    if (!mem_grow(&map->touched, &map->cap_touched, map->n_touched + 1, sizeof *map->touched)) return LODE_NOMEM;
    map->touched[map->n_touched++] = page;
  }
  map->n_changes += c->page == 0;
  *c = (vfs_map_change){.version = version, .page = page, .transaction = transaction};
  return LODE_OK;
}

lode_status vfs_map_take(vfs_map *map, uint32_t page, uint64_t version) { return map_change(map, page, version, 0); }

void vfs_map_begin(vfs_map *map) {
  if (++map->transaction == 0) map->transaction = 1;
  map->n_touched = 0;
}

/* ---- Blocks of the base ---- */

static lode_status map_read_seals(const vfs_map *map, size_t block, uint64_t *versions) {
  uint64_t first = (uint64_t)block * VFS_MAP_BLOCK;
  if (!map->seal) return LODE_IO;
  for (uint64_t page = first; page < first + VFS_MAP_BLOCK && page <= map->commit.pages; page++)
    if (page > 1 && page != map->lock_page) TRY(map->seal(map->seal_ctx, (uint32_t)page, &versions[page - first]));
  return LODE_OK;
}

static lode_status map_read_base(const vfs_map *map, size_t block, uint64_t *versions) {
  memset(versions, 0, MAP_BLOCK_BYTES);
  if (block >= map->base_blocks) return LODE_OK;
  TRY(map->fd >= 0 ? vfs_map_file_block(map, block, versions) : map_read_seals(map, block, versions));
  return map_block_sum(block, versions) == map->sums[block] ? LODE_OK : LODE_CORRUPT;
}

static lode_status map_need_block(vfs_map *map, size_t block, uint64_t **versions) {
  vfs_map_block *at = &map->cached[block % VFS_MAP_CACHED];
  *versions = at->versions;
  if (at->versions && at->number == block) return LODE_OK;
  uint64_t *own = at->versions ? at->versions : mem_alloc(MAP_BLOCK_BYTES);
  if (!own) return LODE_NOMEM;
  lode_status st = map_read_base(map, block, own);
  if (st != LODE_OK) {
    mem_free(own);
    own = NULL;
  }
  *at = (vfs_map_block){.number = block, .versions = own};
  *versions = own;
  return st;
}

static bool map_need_sums(vfs_map *map, size_t blocks) {
  if (blocks <= map->base_blocks) return true;
  if (!mem_grow(&map->sums, &map->cap_sums, blocks, sizeof *map->sums)) return false;
  memset(map->sums + map->base_blocks, 0, (blocks - map->base_blocks) * sizeof *map->sums);
  map->base_blocks = blocks;
  return true;
}

lode_status vfs_map_read_block(vfs_map *map, size_t block, uint64_t *versions, uint64_t *sum) {
  uint64_t *base;
  TRY(map_need_block(map, block, &base));
  memcpy(versions, base, MAP_BLOCK_BYTES);
  for (size_t i = 0; i < VFS_MAP_BLOCK && map->n_changes; i++) {
    const vfs_map_change *c = map_find(map, (uint32_t)(block * VFS_MAP_BLOCK + i));
    if (c) versions[i] = c->version;
  }
  *sum = map_block_sum(block, versions);
  return LODE_OK;
}

/* ---- Pages ---- */

lode_status vfs_map_get(vfs_map *map, uint32_t page, uint64_t *version) {
  const vfs_map_change *c = map_find(map, page);
  uint64_t *base;
  *version = c ? c->version : 0;
  if (c) return LODE_OK;
  TRY(map_need_block(map, page / VFS_MAP_BLOCK, &base));
  *version = base[page % VFS_MAP_BLOCK];
  return LODE_OK;
}

/* The page's seal in the database becomes `version`. */
static lode_status map_set_base(vfs_map *map, uint32_t page, uint64_t version) {
  size_t block = page / VFS_MAP_BLOCK;
  uint64_t *base;
  if (!map_need_sums(map, block + 1)) return LODE_NOMEM;
  TRY(map_need_block(map, block, &base));
  uint64_t *at = &base[page % VFS_MAP_BLOCK];
  map->sums[block] += vfs_map_hash(page, version) - vfs_map_hash(page, *at);
  *at = version;
  return LODE_OK;
}

lode_status vfs_map_set(vfs_map *map, uint32_t page, uint64_t version) {
  uint64_t before;
  TRY(vfs_map_get(map, page, &before));
  if (map->fd < 0) TRY(map_set_base(map, page, version));
  if (before != version && (map->fd >= 0 || map_find(map, page))) TRY(map_change(map, page, version, map->transaction));
  map->commit.root += vfs_map_hash(page, version) - vfs_map_hash(page, before);
  if (page > map->commit.pages) map->commit.pages = page;
  return LODE_OK;
}

lode_status vfs_map_clear(vfs_map *map, uint32_t page) {
  uint64_t before;
  TRY(vfs_map_get(map, page, &before));
  if (!before) return LODE_OK;
  map->commit.root -= vfs_map_hash(page, before);
  return map_change(map, page, 0, map->transaction);
}

lode_status vfs_map_resize(vfs_map *map, uint32_t pages) {
  while (map->commit.pages > pages) {
    uint32_t page = map->commit.pages;
    TRY(vfs_map_set(map, page, 0));
    map->commit.pages = page - 1;
  }
  map->commit.pages = pages;
  return LODE_OK;
}

/* ---- All pages ---- */

lode_status vfs_map_scan(vfs_map *map, uint32_t pages, uint32_t lock_page, vfs_map_seal_fn *seal, void *ctx) {
  uint64_t versions[VFS_MAP_BLOCK];
  vfs_map_release(map);
  map->seal = seal;
  map->seal_ctx = ctx;
  map->lock_page = lock_page;
  map->commit.pages = pages;
  if (!map_need_sums(map, (size_t)pages / VFS_MAP_BLOCK + 1)) return LODE_NOMEM;
  for (size_t b = 0; b < map->base_blocks; b++) {
    memset(versions, 0, sizeof versions);
    TRY(map_read_seals(map, b, versions));
    map->sums[b] = map_block_sum(b, versions);
    map->commit.root += map->sums[b];
  }
  map->proven = true;
  return LODE_OK;
}

lode_status vfs_map_prove(vfs_map *map) {
  uint64_t versions[VFS_MAP_BLOCK], sum, root = 0;
  for (size_t b = 0; b <= map->commit.pages / VFS_MAP_BLOCK; b++, root += sum)
    TRY(vfs_map_read_block(map, b, versions, &sum));
  map->proven = root == map->commit.root;
  return map->proven ? LODE_OK : LODE_CORRUPT;
}
