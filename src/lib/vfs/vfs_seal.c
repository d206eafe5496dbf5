/* SPDX-License-Identifier: Apache-2.0 */
/* vfs_seal.c - see vfs_seal.h. */
#include "vfs/vfs_seal.h"

#include "base/base.h"
#include "base/crc32c.h"
#include "sqlite/sqlite_format.h"

/* Without the commit number, which comes last so that one pass over the page serves every number. */
static uint32_t vfs_seal_crc_content(uint32_t page_number, const unsigned char *page, size_t page_bytes) {
  return crc32c_update(crc32c_update_u32(0, page_number), page, page_bytes - VFS_SEAL_BYTES);
}

static uint32_t vfs_seal_crc_number(uint32_t crc, uint32_t commit_number) {
  return commit_number ? crc32c_update_u32(crc, commit_number) : crc;
}

static bool vfs_seal_is_zeros(const unsigned char *page, size_t n) {
  return page[0] == 0 && memcmp(page, page + 1, n - 1) == 0;
}

static void vfs_seal_put(unsigned char *page, size_t page_bytes, uint32_t crc, uint32_t commit_number) {
  unsigned char *seal = page + page_bytes - VFS_SEAL_BYTES;
  if (commit_number && vfs_seal_is_zeros(page, page_bytes - VFS_SEAL_BYTES)) commit_number = VFS_SEAL_EMPTY;
  num_put_le32(seal, vfs_seal_crc_number(crc, commit_number));
  num_put_le32(seal + 4, commit_number);
}

static bool vfs_seal_fits(const unsigned char *page, size_t page_bytes, uint32_t crc) {
  const unsigned char *seal = page + page_bytes - VFS_SEAL_BYTES;
  return num_le32(seal) == vfs_seal_crc_number(crc, num_le32(seal + 4));
}

void vfs_seal_page(uint32_t page_number, unsigned char *page, size_t page_bytes, uint32_t commit_number) {
  if (!INVARIANT(page_number > 0 && sqf_page_size_valid(page_bytes))) return;
  vfs_seal_put(page, page_bytes, vfs_seal_crc_content(page_number, page, page_bytes), commit_number);
}

void vfs_seal_changed_page(uint32_t page_number, unsigned char *page, size_t page_bytes, uint32_t commit_number) {
  uint32_t crc = vfs_seal_crc_content(page_number, page, page_bytes);
  if (!vfs_seal_fits(page, page_bytes, crc)) vfs_seal_put(page, page_bytes, crc, commit_number);
}

bool vfs_seal_is_valid(uint32_t page_number, const unsigned char *page, size_t page_bytes) {
  return vfs_seal_fits(page, page_bytes, vfs_seal_crc_content(page_number, page, page_bytes));
}

uint64_t vfs_seal_version(const unsigned char *seal) {
  uint32_t crc = num_le32(seal), number = num_le32(seal + 4);
  if (number == VFS_SEAL_EMPTY) return 0;
  return crc || number ? (uint64_t)number << 32 | crc : (uint64_t)VFS_SEAL_EMPTY << 32; /* a CRC may be 0 */
}
