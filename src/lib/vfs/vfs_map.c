/* SPDX-License-Identifier: Apache-2.0 */
/* vfs_map.c - the page map and its file. See vfs_map.h.
 *
 * The file: a header, the sums of all blocks, the blocks, then records. The header and the sums have checksums, a block
 * is proven by its sum, and the sums by the root in the header. A record is proven by its CRC, which continues that of
 * the record before it (the first that of the header), and by the root that it leads to. The record of a commit that
 * was rolled back is overwritten by the next one; what is left of it after that one is no continuation.
 */
#include "vfs/vfs_map.h"

#include "base/crc32c.h"
#include "os/store_files.h"
#include "sqlite/sqlite_format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

enum {
  MAP_HEADER = 64,
  MAP_RECORD = 32, /* without its changes */
  MAP_CHANGE = 12,
  MAP_BLOCK_BYTES = VFS_MAP_BLOCK * 8,
  MAP_LOG_MIN = 64 << 10, /* the file is rewritten when its records are longer than this and a 16th of it */
  MAP_RECORD_MAX = 1 << 28,
};
static const unsigned char map_magic[12] = {'l', 'o', 'd', 'e', '.', 'p', 'a', 'g', 'e', 's', 0, 1};

static uint64_t map_mix(uint64_t x) {
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* A page without content adds nothing to the root. */
static uint64_t map_hash(uint64_t page, uint64_t version) { return version ? map_mix(map_mix(page) ^ version) : 0; }

static uint64_t map_block_sum(size_t block, const uint64_t *versions) {
  uint64_t sum = 0;
  for (size_t i = 0; i < VFS_MAP_BLOCK; i++) sum += map_hash((uint64_t)block * VFS_MAP_BLOCK + i, versions[i]);
  return sum;
}

void vfs_map_release(vfs_map *map) {
  for (size_t i = 0; i < map->cap; i++) mem_free(map->blocks[i]);
  mem_free(map->blocks);
  mem_free(map->sums);
  if (map->fd >= 0) (void)os_api->close(map->fd);
  *map = (vfs_map)VFS_MAP_NONE;
}

/* ---- Blocks ---- */

static uint64_t map_block_offset(const vfs_map *map, size_t block) {
  return MAP_HEADER + (uint64_t)map->base_blocks * 8 + (uint64_t)block * MAP_BLOCK_BYTES;
}

/* Numbers are little-endian on disk. */
static void map_decode(uint64_t *versions) {
  for (size_t i = 0; i < VFS_MAP_BLOCK; i++) versions[i] = num_le64((const unsigned char *)(versions + i));
}

static lode_status map_read_block(vfs_map *map, size_t block, uint64_t *versions) {
  size_t got = 0;
  memset(versions, 0, MAP_BLOCK_BYTES);
  if (block >= map->base_blocks) return LODE_OK;
  lode_status st = os_read_full(map->fd, versions, MAP_BLOCK_BYTES, map_block_offset(map, block), &got, NULL);
  if (st != LODE_OK || got != MAP_BLOCK_BYTES) return LODE_CORRUPT;
  map_decode(versions);
  return map_block_sum(block, versions) == map->sums[block] ? LODE_OK : LODE_CORRUPT;
}

static lode_status map_need_block(vfs_map *map, size_t block) {
  size_t cap = map->cap;
  if (block < cap && map->blocks[block]) return LODE_OK;
  if (!mem_grow(&map->blocks, &map->cap, block + 1, sizeof *map->blocks)) return LODE_NOMEM;
  if (map->cap > cap) memset(map->blocks + cap, 0, (map->cap - cap) * sizeof *map->blocks);
  uint64_t *versions = mem_alloc(MAP_BLOCK_BYTES);
  if (!versions) return LODE_NOMEM;
  lode_status st = map_read_block(map, block, versions);
  if (st == LODE_OK)
    map->blocks[block] = versions;
  else
    mem_free(versions);
  return st;
}

lode_status vfs_map_get(vfs_map *map, uint32_t page, uint64_t *version) {
  *version = 0;
  TRY(map_need_block(map, page / VFS_MAP_BLOCK));
  *version = map->blocks[page / VFS_MAP_BLOCK][page % VFS_MAP_BLOCK];
  return LODE_OK;
}

lode_status vfs_map_set(vfs_map *map, uint32_t page, uint64_t version) {
  TRY(map_need_block(map, page / VFS_MAP_BLOCK));
  uint64_t *at = &map->blocks[page / VFS_MAP_BLOCK][page % VFS_MAP_BLOCK];
  map->commit.root += map_hash(page, version) - map_hash(page, *at);
  *at = version;
  if (page > map->commit.pages) map->commit.pages = page;
  return LODE_OK;
}

lode_status vfs_map_resize(vfs_map *map, uint32_t pages) {
  for (uint32_t page = map->commit.pages; page > pages; page--) {
    size_t block = page / VFS_MAP_BLOCK;
    if (block >= map->base_blocks && (block >= map->cap || !map->blocks[block]))
      page -= page % VFS_MAP_BLOCK; /* zeros */
    else
      TRY(vfs_map_set(map, page, 0));
    if (page <= pages) break;
  }
  map->commit.pages = pages;
  return LODE_OK;
}

lode_status vfs_map_read_all(vfs_map *map) {
  for (size_t i = 0; i <= map->commit.pages / VFS_MAP_BLOCK; i++) TRY(map_need_block(map, i));
  return LODE_OK;
}

/* ---- Records ---- */

/* Reads the record at log_at. NULL: there is none. The caller frees it. */
static unsigned char *map_read_record(const vfs_map *map, uint32_t *n) {
  unsigned char head[MAP_RECORD];
  struct stat sb;
  size_t got = 0;
  if (os_read_full(map->fd, head, sizeof head, map->log_at, &got, NULL) != LODE_OK || got < sizeof head) return NULL;
  if (OS_RETRY(os_api->fstat(map->fd, &sb)) != 0 || (uint64_t)sb.st_size < map->log_at) return NULL;
  *n = num_le32(head + 4);
  size_t bytes = MAP_RECORD + (size_t)*n * MAP_CHANGE;
  if (bytes > MAP_RECORD_MAX || bytes > (uint64_t)sb.st_size - map->log_at) return NULL;
  unsigned char *record = mem_alloc(bytes);
  if (!record) return NULL;
  if (os_read_full(map->fd, record, bytes, map->log_at, &got, NULL) == LODE_OK && got == bytes &&
      num_le32(record + 4) == *n && num_le32(record) == crc32c_update(map->log_crc, record + 4, bytes - 4))
    return record;
  mem_free(record);
  return NULL;
}

static bool map_apply_record(vfs_map *map, const unsigned char *record, uint32_t n) {
  vfs_commit after = {.id = num_le64(record + 8),
                      .root = num_le64(record + 16),
                      .number = num_le32(record + 24),
                      .pages = num_le32(record + 28)};
  for (const unsigned char *c = record + MAP_RECORD; n > 0; n--, c += MAP_CHANGE) {
    uint32_t page = num_le32(c);
    if (page < 2 || page > after.pages || vfs_map_set(map, page, num_le64(c + 4)) != LODE_OK) return false;
  }
  if (vfs_map_resize(map, after.pages) != LODE_OK || map->commit.root != after.root) return false;
  map->commit = after;
  return true;
}

static bool map_is_at(const vfs_map *map, const vfs_commit *c) {
  return map->commit.id == c->id && map->commit.root == c->root && map->commit.number == c->number &&
         map->commit.pages == c->pages;
}

bool vfs_map_follow(vfs_map *map, const vfs_commit *commit) {
  while (!map_is_at(map, commit)) {
    uint32_t n;
    unsigned char *record = map->fd >= 0 ? map_read_record(map, &n) : NULL;
    bool applied = record && map_apply_record(map, record, n);
    if (applied) {
      map->log_at += MAP_RECORD + (uint64_t)n * MAP_CHANGE;
      map->log_crc = num_le32(record);
    }
    mem_free(record);
    if (!applied) return false;
  }
  return true;
}

static int map_compare_pages(const void *x, const void *y) {
  uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
  return (a > b) - (a < b);
}

bool vfs_map_append(vfs_map *map, uint32_t *pages, size_t n) {
  if (!map->writable || n > (MAP_RECORD_MAX - MAP_RECORD) / MAP_CHANGE) return false;
  unsigned char *record = mem_alloc(MAP_RECORD + n * MAP_CHANGE);
  if (!record) return false;
  if (n) qsort(pages, n, sizeof *pages, map_compare_pages);
  uint32_t changes = 0;
  bool ok = true;
  for (size_t i = 0; i < n && ok; i++) {
    uint64_t version;
    if ((i && pages[i] == pages[i - 1]) || pages[i] > map->commit.pages) continue;
    unsigned char *c = record + MAP_RECORD + (size_t)changes++ * MAP_CHANGE;
    ok = vfs_map_get(map, pages[i], &version) == LODE_OK;
    num_put_le32(c, pages[i]);
    num_put_le64(c + 4, version);
  }
  size_t bytes = MAP_RECORD + (size_t)changes * MAP_CHANGE;
  num_put_le32(record + 4, changes);
  num_put_le64(record + 8, map->commit.id);
  num_put_le64(record + 16, map->commit.root);
  num_put_le32(record + 24, map->commit.number);
  num_put_le32(record + 28, map->commit.pages);
  uint32_t crc = crc32c_update(map->log_crc, record + 4, bytes - 4);
  num_put_le32(record, crc);
  ok = ok && os_write_full(map->fd, record, bytes, map->log_at, NULL) == LODE_OK;
  mem_free(record);
  if (!ok) return false;
  map->log_at += bytes;
  map->log_crc = crc;
  return true;
}

/* ---- The file ---- */

static bool map_read_header(vfs_map *map) {
  unsigned char h[MAP_HEADER];
  struct stat sb;
  size_t got = 0;
  if (os_read_full(map->fd, h, sizeof h, 0, &got, NULL) != LODE_OK || got < sizeof h) return false;
  if (memcmp(h, map_magic, sizeof map_magic) != 0) return false;
  if (num_le32(h + 60) != crc32c_update(0, h, 60)) return false;
  map->commit = (vfs_commit){
      .id = num_le64(h + 16), .root = num_le64(h + 24), .number = num_le32(h + 32), .pages = num_le32(h + 36)};
  map->base_blocks = (size_t)map->commit.pages / VFS_MAP_BLOCK + 1;
  map->log_at = map_block_offset(map, map->base_blocks);
  map->log_crc = num_le32(h + 60);
  if (OS_RETRY(os_api->fstat(map->fd, &sb)) != 0 || (uint64_t)sb.st_size < map->log_at) return false;
  size_t bytes = map->base_blocks * 8;
  map->sums = mem_alloc(bytes);
  if (!map->sums || os_read_full(map->fd, map->sums, bytes, MAP_HEADER, &got, NULL) != LODE_OK || got < bytes)
    return false;
  if (num_le32(h + 40) != crc32c_update(0, map->sums, bytes)) return false;
  uint64_t root = 0;
  for (size_t i = 0; i < map->base_blocks; i++) root += map->sums[i] = num_le64((const unsigned char *)(map->sums + i));
  return root == map->commit.root;
}

bool vfs_map_open(vfs_map *map, const char *folder, const vfs_commit *commit) {
  vfs_map_release(map);
  map->fd = beneath_open(folder, STOREFILE_PAGES, O_RDWR, 0);
  map->writable = map->fd >= 0;
  if (!map->writable) map->fd = beneath_open(folder, STOREFILE_PAGES, O_RDONLY, 0);
  if (map->fd >= 0 && map_read_header(map) && vfs_map_follow(map, commit)) return true;
  vfs_map_release(map);
  return false;
}

static bool map_write_file(const vfs_map *map, int fd, const unsigned char *header, const uint64_t *sums,
                           size_t blocks) {
  uint64_t off = MAP_HEADER + (uint64_t)blocks * 8;
  unsigned char block[MAP_BLOCK_BYTES];
  if (os_write_full(fd, header, MAP_HEADER, 0, NULL) != LODE_OK) return false;
  if (os_write_full(fd, sums, blocks * 8, MAP_HEADER, NULL) != LODE_OK) return false;
  for (size_t i = 0; i < blocks; i++, off += sizeof block) {
    for (size_t v = 0; v < VFS_MAP_BLOCK; v++) num_put_le64(block + v * 8, map->blocks[i][v]);
    if (os_write_full(fd, block, sizeof block, off, NULL) != LODE_OK) return false;
  }
  return true;
}

/* Something else in the file's place was not made by us, and stays. */
static bool map_publish(const vfs_map *map, const char *folder, int fd, const unsigned char *header,
                        const uint64_t *sums, size_t blocks) {
  struct stat sb;
  if (!map_write_file(map, fd, header, sums, blocks)) return false;
  if (beneath_lstat(folder, STOREFILE_PAGES, &sb) == 0 ? !S_ISREG(sb.st_mode) : errno != ENOENT) return false;
  return beneath_rename(folder, STOREFILE_PAGES_NEW, STOREFILE_PAGES) == 0;
}

bool vfs_map_save(vfs_map *map, const char *folder, unsigned mode) {
  size_t blocks = (size_t)map->commit.pages / VFS_MAP_BLOCK + 1;
  unsigned char h[MAP_HEADER] = {0};
  uint64_t *sums = mem_alloc(blocks * 8), *bytes = mem_alloc(blocks * 8);
  int fd = -1;
  bool saved = false;
  if (!sums || !bytes || vfs_map_read_all(map) != LODE_OK) goto done;
  for (size_t i = 0; i < blocks; i++) {
    sums[i] = map_block_sum(i, map->blocks[i]);
    num_put_le64((unsigned char *)(bytes + i), sums[i]);
  }
  memcpy(h, map_magic, sizeof map_magic);
  num_put_le64(h + 16, map->commit.id);
  num_put_le64(h + 24, map->commit.root);
  num_put_le32(h + 32, map->commit.number);
  num_put_le32(h + 36, map->commit.pages);
  num_put_le32(h + 40, crc32c_update(0, bytes, blocks * 8));
  num_put_le32(h + 60, crc32c_update(0, h, 60));
  (void)beneath_unlink(folder, STOREFILE_PAGES_NEW); /* left by a killed process */
  fd = beneath_open(folder, STOREFILE_PAGES_NEW, O_RDWR | O_CREAT | O_EXCL, mode);
  saved = fd >= 0 && map_publish(map, folder, fd, h, bytes, blocks);
  if (fd >= 0 && !saved) {
    (void)os_api->close(fd);
    (void)beneath_unlink(folder, STOREFILE_PAGES_NEW);
  }
done:
  mem_free(bytes);
  if (!saved) {
    mem_free(sums);
    return false;
  }
  if (map->fd >= 0) (void)os_api->close(map->fd);
  mem_free(map->sums);
  map->fd = fd;
  map->writable = true;
  map->sums = sums;
  map->base_blocks = blocks;
  map->log_at = map_block_offset(map, blocks);
  map->log_crc = num_le32(h + 60);
  return true;
}

bool vfs_map_can_append(const vfs_map *map) {
  struct stat sb;
  if (map->fd < 0 || !map->writable) return false;
  uint64_t base = map_block_offset(map, map->base_blocks), records = map->log_at - base;
  if (records > MAP_LOG_MIN && records > base / 16) return false;
  return OS_RETRY(os_api->fstat(map->fd, &sb)) == 0 && sb.st_nlink == 1; /* 0: replaced or removed */
}
