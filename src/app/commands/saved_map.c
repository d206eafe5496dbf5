/* SPDX-License-Identifier: Apache-2.0 */
/* saved_map.c - see saved_map.h.
 *
 * Format, little-endian: "lodemap1", 4 bytes number of points, 4 bytes for each share (millionths), the digest, for
 * each point 2 bytes x and 2 bytes y (signed), CRC-32C of all before.
 */
#include "commands/saved_map.h"

#include "base/byteorder.h"
#include "base/crc32c.h"
#include "os/store_files.h"
#include "scan/files.h"

#include <math.h>
#include <unistd.h>

#define SAVED_MAGIC "lodemap1"
enum { SAVED_HEAD = 8 + 3 * 4 + SHA256_BYTES, SAVED_MAX_BYTES = 1 << 20 };
#define SAVED_MILLION 1e6

static void saved_name(const op_saved_map *map, char name[24]) {
  snprintf(name, 24, "map-%x.cache", (unsigned)(map->slot % OP_SAVED_MAPS));
}

void op_saved_map_round(op_saved_map *map) {
  for (size_t i = 0; i < 2 * map->n; i++) {
    long v = (long)round(map->xy[i] * OP_SAVED_MAP_UNIT);
    map->xy[i] = v == 0 ? 0 : (double)v / OP_SAVED_MAP_UNIT; /* no negative zero */
  }
  for (int k = 0; k < 2; k++) map->kept[k] = round(map->kept[k] * SAVED_MILLION) / SAVED_MILLION;
}

static bool saved_take(lode_str bytes, op_saved_map *map) {
  const uint8_t *at = (const uint8_t *)bytes.data;
  if (bytes.len != SAVED_HEAD + 4 * map->n + 4) return false;
  if (memcmp(at, SAVED_MAGIC, 8) != 0 || num_le32(at + 8) != map->n) return false;
  if (num_le32(at + bytes.len - 4) != crc32c_update(0, at, bytes.len - 4)) return false;
  if (memcmp(at + 20, map->digest, SHA256_BYTES) != 0) return false;
  for (size_t k = 0; k < 2; k++) {
    if (num_le32(at + 12 + 4 * k) > SAVED_MILLION) return false;
    map->kept[k] = num_le32(at + 12 + 4 * k) / SAVED_MILLION;
  }
  for (size_t i = 0; i < 2 * map->n; i++) {
    int16_t v = (int16_t)num_le16(at + SAVED_HEAD + 2 * i);
    if (v < -OP_SAVED_MAP_UNIT || v > OP_SAVED_MAP_UNIT) return false;
    map->xy[i] = (double)v / OP_SAVED_MAP_UNIT;
  }
  return true;
}

bool op_saved_map_read(const char *folder, op_saved_map *map) {
  char name[24];
  strbuf bytes = {0};
  saved_name(map, name);
  bool found = files_read_beneath(folder, name, SAVED_MAX_BYTES, &bytes, NULL) == LODE_OK &&
               saved_take((lode_str){bytes.data, bytes.len}, map);
  strbuf_release(&bytes);
  return found;
}

/* Complete or not there; with the mode of the database. It is not synced: a torn file fails its checksum. */
static void saved_put(const char *folder, const op_saved_map *map, lode_str bytes) {
  char name[24], tmp[64];
  saved_name(map, name);
  snprintf(tmp, sizeof tmp, "%s.%lx.tmp", name, (unsigned long)getpid());
  (void)beneath_unlink(folder, tmp); /* of a process that was killed */
  int fd = storefile_create(folder, tmp);
  if (fd < 0) return;
  lode_status st = os_write_full(fd, bytes.data, bytes.len, 0, NULL);
  (void)os_api->close(fd);
  if (st != LODE_OK || beneath_rename(folder, tmp, name) != 0) (void)beneath_unlink(folder, tmp);
}

void op_saved_map_write(const char *folder, const op_saved_map *map) {
  struct stat info;
  strbuf bytes = {0};
  /* not into the store of somebody else, where the file could be in the way of its owner */
  if (OS_RETRY(os_api->stat(folder, &info)) != 0 || info.st_uid != geteuid()) return;
  if (strbuf_reserve(&bytes, SAVED_HEAD + 4 * map->n + 4)) {
    uint8_t *at = (uint8_t *)bytes.data;
    bytes.len = SAVED_HEAD + 4 * map->n + 4;
    memcpy(at, SAVED_MAGIC, 8);
    num_put_le32(at + 8, (uint32_t)map->n);
    for (size_t k = 0; k < 2; k++) num_put_le32(at + 12 + 4 * k, (uint32_t)round(map->kept[k] * SAVED_MILLION));
    memcpy(at + 20, map->digest, SHA256_BYTES);
    for (size_t i = 0; i < 2 * map->n; i++) {
      uint16_t v = (uint16_t)(int16_t)round(map->xy[i] * OP_SAVED_MAP_UNIT);
      at[SAVED_HEAD + 2 * i] = (uint8_t)v;
      at[SAVED_HEAD + 2 * i + 1] = (uint8_t)(v >> 8);
    }
    num_put_le32(at + bytes.len - 4, crc32c_update(0, at, bytes.len - 4));
    saved_put(folder, map, (lode_str){bytes.data, bytes.len});
  }
  strbuf_release(&bytes);
}
