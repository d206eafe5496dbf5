/* SPDX-License-Identifier: Apache-2.0 */
/* vfs.h - SQLite's interface to the operating system: the VFS "lode".
 *
 * It uses only os_api (os/os.h), so tests can inject every fault. Its files have no shared memory and no memory mapping
 * (iVersion 1), so WAL and mmap cannot be enabled by mistake.
 *
 * Page checksums. Each page of a main database file ends in VFS_PAGE_RESERVED reserved bytes. The first four hold,
 * little-endian, the CRC-32C of the page number (u32) followed by the page up to there; the other four are zero.
 * They are set on every page write and verified on every page read. A mismatch, or a page that is only partly in the
 * file, is SQLITE_IOERR_DATA (SQLITE_NOTADB if page 1 is not a database's) and is counted in the file's state.
 * One exception: a leaf of the free list has no content, and a crash may leave it torn; it reads as zeros.
 *
 * Commit ids. Page 1 holds, in bytes that SQLite reserves and never reads, a random number that changes with every
 * transaction; it is 0 in a database that has not been written to since format 1.
 *
 * Journals. A rollback journal is trusted only as far as it can be proven (journal.h): each header has a CRC-32C of its
 * 28 bytes at offset 28; the first header also has the number of synced segments at 32 with its CRC-32C at 36, and at
 * 40 the commit ids before and after its transaction with their CRC-32C (SQLite leaves the rest of the sector unused).
 * In a journal whose header says that it holds N synced pages, each page image must have a valid page checksum and
 * SQLite's own, and none may be missing; nor may the database be shorter than it was. Otherwise the rollback fails with
 * SQLITE_IOERR_DATA instead of silently stopping half-way, and changes nothing. A journal that names other commits, or
 * a file that is not a journal, is renamed (STOREFILE_QUARANTINE_INFIX and a time are appended), and the database is
 * used as it is.
 *
 * A read-only connection does not roll back: it reads through the journal (vfs_rollback_view.c), and it does not
 * quarantine anything.
 *
 * A database file with several names (hard links) is opened read-only: a journal is beside one of the names, and
 * processes that use another name would not find it.
 *
 * The caller sets SQLITE_FCNTL_RESERVE_BYTES to VFS_PAGE_RESERVED before a new database gets its first page (page 1 is
 * refused otherwise), and synchronous=FULL: with less, records are not synced before the header that counts them. The
 * page size of a database cannot change. After a failed sync every later sync of that connection fails too: close it
 * and open another.
 */
#ifndef LODE_VFS_VFS_H
#define LODE_VFS_VFS_H

#include "os/beneath.h"

#define VFS_NAME "lode"
#define VFS_PAGE_RESERVED 8

/* Registers the VFS. May be called any number of times, from any thread. */
lode_status vfs_register(lode_error *err);

/* sqlite3_file_control(db, "main", VFS_FCNTL_STATE, &state) copies the file's state to a vfs_file_state. */
#define VFS_FCNTL_STATE 0x10de0001
typedef struct vfs_file_state {
  uint64_t damaged_reads; /* page checksum mismatches so far */
  uint32_t damaged_page;  /* the latest damaged page */
  bool damaged_journal;   /* a journal failed its checks */
  int last_errno;         /* of the latest failed system call, 0 if none */
  int fd;                 /* of the database file; for fstat only */
  bool linked;            /* the file has several names, so it is not written to */
  uint32_t journal_pages; /* read-only connections: pages read from the journal in this transaction */
} vfs_file_state;

/* The CRC of a page as stored in its reserved bytes; `page` has page_bytes bytes. For salvage, verify and tests. */
uint32_t vfs_page_crc(uint32_t page_number, const unsigned char *page, size_t page_bytes);
bool vfs_page_is_valid(uint32_t page_number, const unsigned char *page, size_t page_bytes);
void vfs_page_seal(uint32_t page_number, unsigned char *page, size_t page_bytes);

/* Incremented in every forked child. A connection opened in another generation must not be used: fork handlers have
 * closed its descriptors in the child, and every call on it fails with SQLITE_IOERR. */
unsigned vfs_generation(void);

#endif
