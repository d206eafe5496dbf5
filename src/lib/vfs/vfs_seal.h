/* SPDX-License-Identifier: Apache-2.0 */
/* vfs_seal.h - the seal at the end of each page of a database file: VFS_SEAL_BYTES bytes that SQLite leaves to us (its
 * "reserved space"). All pages are sealed and checked here. Little-endian:
 *   0  CRC-32C of the page number (u32), of the page up to the seal, and of the commit number unless that is 0
 *   4  commit number: which commit wrote this version of the page. 0: page 1, or a page of format 1;
 *      VFS_SEAL_EMPTY: the page is zeros
 */
#ifndef LODE_VFS_VFS_SEAL_H
#define LODE_VFS_VFS_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VFS_SEAL_BYTES 8
#define VFS_SEAL_EMPTY UINT32_MAX /* not a commit number */

/* `page` has page_bytes bytes. A page of zeros gets VFS_SEAL_EMPTY, unless the commit number is 0. */
void vfs_seal_page(uint32_t page_number, unsigned char *page, size_t page_bytes, uint32_t commit_number);
/* The same, but a page that has a valid seal is left as it is: it was not changed since, or was read from a journal. */
void vfs_seal_changed_page(uint32_t page_number, unsigned char *page, size_t page_bytes, uint32_t commit_number);
bool vfs_seal_is_valid(uint32_t page_number, const unsigned char *page, size_t page_bytes);

/* A seal as one number, which identifies the version of a page: 0 for a page of zeros, never 0 for another. */
uint64_t vfs_seal_version(const unsigned char *seal);
/* The commit number in a version. */
static inline uint32_t vfs_seal_commit_number(uint64_t version) { return (uint32_t)(version >> 32); }

#endif
