/* SPDX-License-Identifier: Apache-2.0 */
/* vfs_map_file.c - the file of the page map, lode.pages. See vfs_map.h.
 *
 * The file: a header, the sums of all blocks, the blocks, then records. The header and the sums have checksums, a block
 * is proven by its sum, and the sums by the root in the header. A record is proven by its CRC, which continues that of
 * the record before it (the first that of the header), and by the commit that it leads to. The record of a commit that
 * was rolled back is overwritten by the next one; what is left of it after that one is no continuation.
 */
#include "vfs/vfs_map.h"

#include "base/crc32c.h"
#include "os/store_files.h"
#include "sqlite/sqlite_format.h"

#include <errno.h>
#include <fcntl.h>

enum {
  MAP_HEADER = 64,
  MAP_RECORD = 32, /* without its changes */
  MAP_CHANGE = 12,
  MAP_CHUNK = 341, /* changes that are read and written at once */
  MAP_FILE_BLOCK = VFS_MAP_BLOCK * 8,
  MAP_LOG_MIN = 64 << 10, /* the file is rewritten when its records are longer than this and a 16th of it */
  MAP_RECORD_MAX = 1 << 28,
  MAP_CUT_MAX = 1 << 20, /* pages that records may take off the end, in all; more: the map is made again */
};
static const unsigned char map_magic[12] = {'l', 'o', 'd', 'e', '.', 'p', 'a', 'g', 'e', 's', 0, 1};

static bool map_read(int fd, void *buf, size_t n, uint64_t off) {
  size_t got = 0;
  return os_read_full(fd, buf, n, off, &got, NULL) == LODE_OK && got == n;
}

/* ---- Blocks ---- */

static uint64_t map_block_offset(const vfs_map *map, size_t block) {
  return MAP_HEADER + (uint64_t)map->base_blocks * 8 + (uint64_t)block * MAP_FILE_BLOCK;
}

/* In place; numbers are little-endian on disk. */
static void map_decode(uint64_t *numbers, size_t n) {
  for (size_t i = 0; i < n; i++) numbers[i] = num_le64((const unsigned char *)(numbers + i));
}

static void map_encode(uint64_t *numbers, size_t n) {
  for (size_t i = 0; i < n; i++) num_put_le64((unsigned char *)(numbers + i), numbers[i]);
}

lode_status vfs_map_file_block(const vfs_map *map, size_t block, uint64_t *versions) {
  if (!map_read(map->fd, versions, MAP_FILE_BLOCK, map_block_offset(map, block))) return LODE_CORRUPT;
  map_decode(versions, VFS_MAP_BLOCK);
  return LODE_OK;
}

/* ---- Records ---- */

static void map_put_commit(unsigned char *to, const vfs_commit *c) {
  num_put_le64(to, c->id);
  num_put_le64(to + 8, c->root);
  num_put_le32(to + 16, c->number);
  num_put_le32(to + 20, c->pages);
}

static vfs_commit map_get_commit(const unsigned char *from) {
  return (vfs_commit){
      .id = num_le64(from), .root = num_le64(from + 8), .number = num_le32(from + 16), .pages = num_le32(from + 20)};
}

/* A part of the file that holds records, so that short ones are not read one by one. */
typedef struct map_window {
  uint64_t off;
  size_t len;
  uint64_t cut; /* pages past the new end, in all records read through it */
  unsigned char bytes[16384];
} map_window;

/* NULL: the file ends before that. */
static const unsigned char *map_look(map_window *w, int fd, uint64_t off, size_t n) {
  if (off < w->off || off + n > w->off + w->len) {
    w->off = off;
    w->len = 0;
    if (os_read_full(fd, w->bytes, sizeof w->bytes, off, &w->len, NULL) != LODE_OK) w->len = 0;
  }
  return n <= w->len ? w->bytes + (off - w->off) : NULL;
}

/* Reads the changes of the record at log_at in chunks: without `map`, to compute their CRC; with it, to take them. */
static bool map_each_chunk(const vfs_map *from, map_window *w, uint32_t n, uint32_t *crc, vfs_map *map) {
  uint64_t off = from->log_at + MAP_RECORD;
  for (uint32_t left = n, k; left > 0; left -= k, off += (uint64_t)k * MAP_CHANGE) {
    k = left < MAP_CHUNK ? left : MAP_CHUNK;
    const unsigned char *chunk = map_look(w, from->fd, off, (size_t)k * MAP_CHANGE);
    if (!chunk) return false;
    *crc = crc32c_update(*crc, chunk, (size_t)k * MAP_CHANGE);
    for (const unsigned char *c = chunk; map && c < chunk + (size_t)k * MAP_CHANGE; c += MAP_CHANGE)
      if (num_le32(c) < 2 || vfs_map_take(map, num_le32(c), num_le64(c + 4)) != LODE_OK) return false;
  }
  return true;
}

/* Pages past the new end have no version. Limited for all records together: short ones could raise and lower the number
 * of pages again and again. */
static bool map_cut(vfs_map *map, map_window *w, uint32_t pages) {
  if (map->commit.pages > pages) w->cut += map->commit.pages - pages;
  if (w->cut > MAP_CUT_MAX) return false;
  for (uint32_t page = map->commit.pages; page > pages; page--)
    if (vfs_map_take(map, page, 0) != LODE_OK) return false;
  return true;
}

/* Reads the record at log_at and moves past it. False: there is none. */
static bool map_next_record(vfs_map *map, map_window *w) {
  const unsigned char *head = map_look(w, map->fd, map->log_at, MAP_RECORD);
  if (!head) return false;
  uint32_t n = num_le32(head + 4), wanted = num_le32(head);
  uint32_t crc = crc32c_update(map->log_crc, head + 4, MAP_RECORD - 4), again = crc;
  uint64_t bytes = MAP_RECORD + (uint64_t)n * MAP_CHANGE;
  vfs_commit after = map_get_commit(head + 8);
  if (bytes > MAP_RECORD_MAX || !map_each_chunk(map, w, n, &crc, NULL) || crc != wanted) return false;
  if (!map_each_chunk(map, w, n, &again, map) || again != crc || !map_cut(map, w, after.pages)) return false;
  map->commit = after;
  map->log_at += bytes;
  map->log_crc = crc;
  return true;
}

static bool map_is_at(const vfs_map *map, const vfs_commit *c) {
  return map->commit.id == c->id && map->commit.root == c->root && map->commit.number == c->number &&
         map->commit.pages == c->pages;
}

bool vfs_map_follow(vfs_map *map, const vfs_commit *commit) {
  if (map_is_at(map, commit)) return true;
  map_window w;
  w.off = w.len = w.cut = 0;
  while (!map_is_at(map, commit))
    if (map->fd < 0 || !map_next_record(map, &w)) return false;
  return true;
}

/* The record without its CRC; pages past the end are not in it. */
static size_t map_fill_record(vfs_map *map, unsigned char *record) {
  unsigned char *c = record + MAP_RECORD;
  for (size_t i = 0; i < map->n_touched; i++) {
    uint64_t version;
    if (map->touched[i] > map->commit.pages) continue;
    /* a page that was touched has a change, so this reads no block */
    if (vfs_map_get(map, map->touched[i], &version) != LODE_OK) return 0;
    num_put_le32(c, map->touched[i]);
    num_put_le64(c + 4, version);
    c += MAP_CHANGE;
  }
  num_put_le32(record + 4, (uint32_t)((size_t)(c - record - MAP_RECORD) / MAP_CHANGE));
  map_put_commit(record + 8, &map->commit);
  return (size_t)(c - record);
}

bool vfs_map_append(vfs_map *map) {
  if (!map->writable || map->n_touched > (MAP_RECORD_MAX - MAP_RECORD) / MAP_CHANGE) return false;
  unsigned char *record = mem_alloc(MAP_RECORD + map->n_touched * MAP_CHANGE);
  if (!record) return false;
  size_t bytes = map_fill_record(map, record);
  uint32_t crc = bytes ? crc32c_update(map->log_crc, record + 4, bytes - 4) : 0;
  num_put_le32(record, crc);
  bool ok = bytes && os_write_full(map->fd, record, bytes, map->log_at, NULL) == LODE_OK;
  mem_free(record);
  if (!ok) return false;
  map->log_at += bytes;
  map->log_crc = crc;
  return true;
}

/* ---- Opening ---- */

static bool map_read_sums(vfs_map *map, uint32_t crc) {
  size_t bytes = map->base_blocks * 8;
  uint64_t root = 0;
  map->sums = mem_alloc(bytes);
  if (!map->sums || !map_read(map->fd, map->sums, bytes, MAP_HEADER) || crc32c_update(0, map->sums, bytes) != crc)
    return false;
  map->cap_sums = map->base_blocks;
  map_decode(map->sums, map->base_blocks);
  for (size_t i = 0; i < map->base_blocks; i++) root += map->sums[i];
  return root == map->commit.root;
}

static bool map_read_header(vfs_map *map) {
  unsigned char h[MAP_HEADER];
  struct stat sb;
  if (!map_read(map->fd, h, sizeof h, 0) || memcmp(h, map_magic, sizeof map_magic) != 0) return false;
  if (num_le32(h + 60) != crc32c_update(0, h, 60)) return false;
  map->commit = map_get_commit(h + 16);
  map->base_blocks = (size_t)map->commit.pages / VFS_MAP_BLOCK + 1;
  map->log_at = map_block_offset(map, map->base_blocks);
  map->log_crc = num_le32(h + 60);
  if (OS_RETRY(os_api->fstat(map->fd, &sb)) != 0 || (uint64_t)sb.st_size < map->log_at) return false;
  map->dev = sb.st_dev;
  map->ino = sb.st_ino;
  return map_read_sums(map, num_le32(h + 40));
}

static bool map_open_file(vfs_map *map, const char *folder) {
  vfs_map_release(map);
  map->fd = beneath_open(folder, STOREFILE_PAGES, O_RDWR, 0);
  map->writable = map->fd >= 0;
  if (!map->writable) map->fd = beneath_open(folder, STOREFILE_PAGES, O_RDONLY, 0);
  return map->fd >= 0 && map_read_header(map);
}

bool vfs_map_open(vfs_map *map, const char *folder, const vfs_commit *commit) {
  if (map_open_file(map, folder) && vfs_map_follow(map, commit)) return true;
  vfs_map_release(map);
  return false;
}

bool vfs_map_open_newest(vfs_map *map, const char *folder) {
  map_window w;
  w.off = w.len = w.cut = 0;
  bool opened = map_open_file(map, folder);
  while (opened && map_next_record(map, &w)) {}
  if (opened && vfs_map_prove(map) == LODE_OK) return true;
  vfs_map_release(map);
  return false;
}

/* ---- Saving ---- */

/* Fills `sums` in the order of the disk; *crc is the header's. */
static bool map_write_file(vfs_map *map, int fd, uint64_t *sums, size_t blocks, uint32_t *crc) {
  uint64_t versions[VFS_MAP_BLOCK], off = MAP_HEADER + (uint64_t)blocks * 8;
  unsigned char h[MAP_HEADER] = {0};
  for (size_t b = 0; b < blocks; b++, off += sizeof versions) {
    if (vfs_map_read_block(map, b, versions, &sums[b]) != LODE_OK) return false;
    map_encode(versions, VFS_MAP_BLOCK);
    if (os_write_full(fd, versions, sizeof versions, off, NULL) != LODE_OK) return false;
  }
  map_encode(sums, blocks);
  memcpy(h, map_magic, sizeof map_magic);
  map_put_commit(h + 16, &map->commit);
  num_put_le32(h + 40, crc32c_update(0, sums, blocks * 8));
  *crc = crc32c_update(0, h, 60);
  num_put_le32(h + 60, *crc);
  return os_write_full(fd, sums, blocks * 8, MAP_HEADER, NULL) == LODE_OK &&
         os_write_full(fd, h, MAP_HEADER, 0, NULL) == LODE_OK;
}

/* Something else in the file's place was not made by us, and stays. */
static bool map_publish(const char *folder) {
  struct stat sb;
  if (beneath_lstat(folder, STOREFILE_PAGES, &sb) == 0 ? !S_ISREG(sb.st_mode) : errno != ENOENT) return false;
  return beneath_rename(folder, STOREFILE_PAGES_NEW, STOREFILE_PAGES) == 0;
}

bool vfs_map_save(vfs_map *map, const char *folder) {
  size_t blocks = (size_t)map->commit.pages / VFS_MAP_BLOCK + 1;
  uint64_t *sums = mem_alloc(blocks * 8);
  uint32_t crc = 0;
  struct stat sb = {0};
  if (!sums) return false;
  (void)beneath_unlink(folder, STOREFILE_PAGES_NEW); /* left by a killed process */
  int fd = storefile_create(folder, STOREFILE_PAGES_NEW);
  bool saved = fd >= 0 && OS_RETRY(os_api->fstat(fd, &sb)) == 0 && map_write_file(map, fd, sums, blocks, &crc) &&
               map_publish(folder);
  if (!saved) {
    if (fd >= 0) (void)os_api->close(fd);
    if (fd >= 0) (void)beneath_unlink(folder, STOREFILE_PAGES_NEW);
    mem_free(sums);
    return false;
  }
  vfs_map_rebase(map);
  int old = map->fd;
  map->fd = -1; /* before it is closed, as in vfs_map_release() */
  if (old >= 0) (void)os_api->close(old);
  mem_free(map->sums);
  map_decode(sums, blocks);
  map->sums = sums;
  map->base_blocks = map->cap_sums = blocks;
  map->fd = fd;
  map->writable = true;
  map->dev = sb.st_dev;
  map->ino = sb.st_ino;
  map->log_at = map_block_offset(map, blocks);
  map->log_crc = crc;
  map->proven = true;
  return true;
}

bool vfs_map_can_append(const vfs_map *map, const char *folder) {
  struct stat sb;
  if (map->fd < 0 || !map->writable) return false;
  uint64_t base = map_block_offset(map, map->base_blocks), records = map->log_at - base;
  if (records > MAP_LOG_MIN && records > base / 16) return false;
  char path[4096];
  int n = snprintf(path, sizeof path, "%s/" STOREFILE_PAGES, folder);
  if (n < 0 || (size_t)n >= sizeof path || OS_RETRY(os_api->lstat_at(AT_FDCWD, path, &sb)) != 0) return false;
  return sb.st_dev == map->dev && sb.st_ino == map->ino && sb.st_nlink == 1;
}
