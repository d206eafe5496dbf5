/* vfs.h - SQLite's door to the operating system: the VFS "lode".
 *
 * It stands on os_api (os/os.h) alone, which is how tests inject every fault. It has no shared memory and no
 * mapping (iVersion 1), so WAL and mmap cannot be switched on by mistake.
 *
 * Page checksums. Each page of a main database file ends in VFS_PAGE_RESERVED reserved bytes, of which the first
 * four hold, little-endian, the CRC-32C of the page number (u32) and of the page up to there; the other four are zero.
 * They are set on every write of a page and verified on every read of one. A mismatch, and a page that the file
 * holds only in part, is SQLITE_IOERR_DATA (SQLITE_NOTADB when page 1 is not a database's), counted in the file's state.
 * One exception: a leaf of the free list has no content, and a crash may leave it torn; it reads as zeros.
 *
 * Commit ids. Page 1 holds, in bytes that SQLite reserves and never reads, a random number that is new with every
 * transaction; 0 in a database that has not been written to since format 1.
 *
 * Journals. A rollback journal is trusted only as far as it proves itself (journal.h): its header gets a CRC-32C of its
 * 28 bytes at offset 28 and, in the first header, the number of synced segments at 32 with its CRC-32C at 36, and from
 * 40 on the commit ids before and after its transaction with their CRC-32C (SQLite leaves the rest of the sector
 * unused). In a journal whose header says that it holds N synced pages, each page image must carry its page checksum
 * and SQLite's own, and none may be missing; nor may the database be shorter than it was. Otherwise the rollback fails
 * with SQLITE_IOERR_DATA instead of quietly stopping half-way, and changes nothing. A journal that names other commits,
 * or that is none, is renamed (STOREFILE_QUARANTINE_INFIX and a time are appended), and the database is used as it is.
 *
 * A connection that may only read does not roll back: it reads through the journal (vfs_rollback_view.c). It leaves alone what
 * a writer would set aside.
 *
 * A database file with several names (hard links) is opened for reading only: a journal lies beside one of them, where
 * those who come by another do not look.
 *
 * The caller sets SQLITE_FCNTL_RESERVE_BYTES to VFS_PAGE_RESERVED before a new database gets its first page (page 1
 * is refused otherwise), and synchronous=FULL: with less, what a header says was not synced before it. The page size of
 * a database stays. After a failed sync every later one of that connection fails too: close it and open another.
 */
#ifndef LODE_VFS_VFS_H
#define LODE_VFS_VFS_H

#include "os/beneath.h"

#define VFS_NAME "lode"
#define VFS_PAGE_RESERVED 8

/* Registers the VFS; safe to call many times, from many threads. */
lode_status vfs_register(lode_error *err);

/* sqlite3_file_control(db, "main", VFS_FCNTL_STATE, &state) with a vfs_file_state*: copies the file's state. */
#define VFS_FCNTL_STATE 0x10de0001
typedef struct vfs_file_state {
  uint64_t damaged_reads;    /* page checksum mismatches so far */
  uint32_t damaged_page;     /* the newest of them */
  bool damaged_journal;      /* a journal failed its checks */
  int last_errno;            /* of the newest failed system call, 0 if none */
  int fd;                    /* of the database file; for fstat only */
  bool linked;               /* the file has several names, so it is not written to */
  uint32_t journal_pages;    /* read-only connections: pages that are read from the journal in this transaction */
} vfs_file_state;

/* CRC of a page as stored in its reserved bytes; `page` has page_bytes bytes. For salvage, verify and tests. */
uint32_t vfs_page_crc(uint32_t page_number, const unsigned char *page, size_t page_bytes);
bool vfs_page_is_valid(uint32_t page_number, const unsigned char *page, size_t page_bytes);
void vfs_page_seal(uint32_t page_number, unsigned char *page, size_t page_bytes);

/* Grows by one in every forked child. A connection opened under another generation must not be used: its
 * descriptors are closed in the child (fork handlers do that), and every call on it fails with SQLITE_IOERR. */
unsigned vfs_generation(void);

#endif
