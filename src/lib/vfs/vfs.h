/* SPDX-License-Identifier: Apache-2.0 */
/* vfs.h - SQLite's interface to the operating system: the VFS "lode".
 *
 * It uses only os_api (os/os.h), so tests can inject every fault. Its files have no shared memory and no memory mapping
 * (iVersion 1), so WAL and mmap cannot be enabled by mistake.
 *
 * Page checksums. Each page of a main database file ends in a seal (vfs_seal.h), which is set on every page write and
 * verified on every page read. A mismatch, a page that is only partly in the file, or one that is an older version than
 * the newest commit left (vfs_moment.c), is SQLITE_IOERR_DATA (SQLITE_NOTADB if page 1 is not a database's) and is
 * counted in the file's state. One exception: a leaf of the free list has no content, and a crash may leave it torn; it
 * reads as zeros.
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
 * The caller sets secure_delete=ON, so that free pages are zeros, SQLITE_FCNTL_RESERVE_BYTES to VFS_SEAL_BYTES before a
 * new database gets its first page (page 1 is refused otherwise), and synchronous=FULL: with less, records are not
 * synced before the header that counts them. The page size of a database cannot change. After a failed sync every later
 * sync of that connection fails too: close it and open another.
 */
#ifndef LODE_VFS_VFS_H
#define LODE_VFS_VFS_H

#include "os/beneath.h"
#include "vfs/vfs_seal.h"

#define VFS_NAME "lode"

/* Registers the VFS. May be called any number of times, from any thread. */
LODE_MUST lode_status vfs_register(lode_error *err);

/* sqlite3_file_control(db, "main", VFS_FCNTL_STATE, &state) copies the file's state to a vfs_file_state. */
#define VFS_FCNTL_STATE 0x10de0001
/* After ROLLBACK TO: pages that were free, and are again, may keep what was written to them. Argument: NULL. */
#define VFS_FCNTL_UNDONE 0x10de0002
typedef enum vfs_damage {
  VFS_DAMAGE_PAGE,  /* the page is not intact */
  VFS_DAMAGE_OLD,   /* it is intact, but another version than the newest commit left */
  VFS_DAMAGE_MIXED, /* some pages are of another moment; which ones is not known */
} vfs_damage;
typedef struct vfs_file_state {
  uint64_t damaged_reads; /* damaged pages read so far */
  uint32_t damaged_page;  /* the latest damaged page */
  vfs_damage damage;      /* what is wrong with it */
  uint32_t commit_number; /* of the newest commit; 0: unknown, or format 1 */
  uint64_t commit_id;     /* of that commit */
  bool damaged_journal;   /* a journal failed its checks */
  int last_errno;         /* of the latest failed system call, 0 if none */
  uint64_t failed_calls;  /* system calls that failed so far */
  int fd;                 /* of the database file; for fstat only */
  bool lock_stuck;        /* a lock could not be given back: close the connection */
  bool linked;            /* the file has several names, so it is not written to */
  uint32_t journal_pages; /* read-only connections: pages read from the journal in this transaction */
} vfs_file_state;

/* Incremented in every forked child. A connection opened in another generation must not be used: fork handlers have
 * closed its descriptors in the child, and every call on it fails with SQLITE_IOERR. */
unsigned vfs_generation(void);

#endif
