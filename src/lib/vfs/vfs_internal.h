/* SPDX-License-Identifier: Apache-2.0 */
/* vfs_internal.h - shared by the vfs*.c files; nothing else includes it.
 *
 * Functions return SQLite result codes, like the methods they serve.
 */
#ifndef LODE_VFS_VFS_INTERNAL_H
#define LODE_VFS_VFS_INTERNAL_H

#include "vfs/journal.h"
#include "vfs/vfs_map.h"
#include "vfs/vfs_seal.h"

#include <errno.h>
#include <sqlite3.h>

typedef enum vfs_file_kind { VFS_FILE_DB, VFS_FILE_JOURNAL, VFS_FILE_TEMP } vfs_file_kind;

/* What has been read or written through a journal's handle; see vfs_journal.c. */
typedef struct vfs_journal_state {
  uint32_t page_bytes; /* 0: no header seen */
  uint64_t header_off; /* of the latest header written */
  unsigned char header[28];
  uint32_t first_crc;     /* stored CRC of the first header */
  uint64_t before, after; /* commit ids of the transaction */
  uint32_t segments;      /* headers that hold a record count */
  bool count_due;         /* after the next sync, the first header must count one more segment */
  bool in_record;         /* the last read or write was a page number or a page image */
  uint64_t record_off;    /* in_record: where the record starts */
  uint32_t record_page;   /* in_record: its page number */
  uint64_t proven;        /* up to here it was checked, or written and completed: what is wrong there is damage */
  uint64_t seen_off;      /* of the latest header read */
  unsigned char seen[28]; /* that header; zeros: none */
  bool has_image;         /* the last read was a page image */
  uint32_t image_sum;     /* has_image: the sum that must follow */
} vfs_journal_state;

/* Which version each page must have; see vfs_moment.c. */
typedef struct vfs_moment {
  vfs_map map;
  bool ready;           /* the rest is valid under the lock that is held */
  bool checked;         /* the database has a map: pages are compared with it */
  bool proven;          /* all of the map was read, and leads to the root */
  bool rescan;          /* the map's file is damaged: the map must be made again */
  bool dirty;           /* the map has versions of a transaction that is not complete */
  bool broken;          /* dirty, but a version could not be noted: the transaction can only be rolled back */
  bool undoing;         /* a hot journal is being rolled back */
  bool undone;          /* a part of the transaction was rolled back: leaves of the free list may have versions */
  unsigned char *first; /* page 1 as the transaction wrote it, SQF_PAGE_MAX bytes */
  bool first_due;       /* it must be written, with the root */
} vfs_moment;

typedef struct vfs_rollback_view vfs_rollback_view; /* vfs_rollback_view.c */
typedef struct vfs_file vfs_file;
struct vfs_file {
  sqlite3_file base;     /* must be first: SQLite's part */
  vfs_file *prev, *next; /* list of open files, for fork */
  bool listed;
  vfs_file_kind kind;
  int fd;           /* -1: closed, or closed by a fork */
  const char *path; /* SQLite's, valid until close; NULL for temporary files */
  uint64_t size;    /* if the file is shorter than this, it was truncated by others; 0: unknown */
  dev_t dev;
  ino_t ino;

  /* databases */
  int lock;                /* SQLITE_LOCK_* */
  bool read_only;          /* opened read-only, by request or because nothing else was possible */
  vfs_commit commit;       /* of the latest valid page 1 */
  bool commit_known;       /* it is current under the lock that is held */
  uint64_t next_commit_id; /* written to page 1 in this transaction; 0: none chosen yet */
  vfs_rollback_view *view; /* the journal a reader found and its verdict; NULL: none */
  uint32_t page_bytes;     /* from the latest valid page 1; 0: unknown */
  bool wrote;              /* written to since the lock was SHARED */
  bool sync_failed;        /* a sync failed; all later ones fail as well */
  bool journal_named;      /* the directory entry of the journal below is durable */
  dev_t journal_dev;
  ino_t journal_ino;
  unsigned char *page; /* SQF_PAGE_MAX bytes, allocated on demand */
  unsigned char *part; /* the same, for a page of which a part is read */
  uint64_t cached_id;  /* the commit that SQLite's cache is of; see vfs_page.c */
  vfs_moment moment;
  vfs_file_state state;

  /* journals */
  vfs_file *db;             /* its database; NULL if unknown */
  bool name_due;            /* the directory must be synced with the first sync */
  bool shown;               /* SQLite reads first_byte and nothing else */
  unsigned char first_byte; /* what SQLite sees as the first byte if `shown` */
  vfs_journal_state journal;
};

/* ---- vfs.c ---- */

/* Opens f->path (fd, dev, ino) and adds it to the list. SQLITE_CANTOPEN for a link or anything but a regular file. */
LODE_MUST int vfs_file_open(vfs_file *f, int flags, unsigned mode);

/* ---- vfs_file.c: reads and writes that handle EINTR and short counts, and bookkeeping ---- */

extern const sqlite3_io_methods vfs_file_methods;

/* *got < n only at the end of the file. */
LODE_MUST int vfs_file_pread(vfs_file *f, void *buf, size_t n, uint64_t off, size_t *got);
LODE_MUST int vfs_file_pwrite(vfs_file *f, const void *buf, size_t n, uint64_t off);
LODE_MUST int vfs_file_fdatasync(vfs_file *f);
LODE_MUST int vfs_file_bytes(vfs_file *f, uint64_t *size);
/* Does the path no longer lead to this file? */
LODE_MUST int vfs_file_was_moved(vfs_file *f, bool *moved);
/* *exists is false if there is no such file; other failures are SQLITE_IOERR_ACCESS. */
LODE_MUST int vfs_stat_path(const char *path, struct stat *st, bool *exists);
/* Stores errno for VFS_FCNTL_STATE and returns `rc`. */
LODE_MUST int vfs_file_note_errno(vfs_file *f, int rc);
/* The one that this thread stored last, for SQLite: calls that succeeded since may have changed errno. */
int vfs_file_last_errno(void);

/* The list of open files. Holding its lock blocks fork. Closing a file removes it from the list. */
void vfs_list_lock(void);
void vfs_list_unlock(void);
void vfs_list_add(vfs_file *f);
void vfs_file_close(vfs_file *f);
void vfs_after_fork_in_child(void);

/* ---- vfs_page.c ---- */

LODE_MUST int vfs_page_read(vfs_file *f, void *buf, size_t n, uint64_t off);
LODE_MUST int vfs_page_write(vfs_file *f, void *buf, size_t n, uint64_t off);

/* Loads f->commit, the database's newest commit. A lock must be held. All zero: a new database. */
LODE_MUST int vfs_page_need_commit(vfs_file *f);
/* Notes the damage for VFS_FCNTL_STATE and returns SQLITE_IOERR_DATA. */
LODE_MUST int vfs_page_damaged(vfs_file *f, uint32_t page_number, vfs_damage damage, const char *why);
/* Calls leaf() for each leaf of the free list, as of the last commit; stops when it returns anything but SQLITE_OK. */
typedef int vfs_leaf_fn(void *ctx, uint32_t page_number);
LODE_MUST int vfs_page_each_free_leaf(vfs_file *f, vfs_leaf_fn *leaf, void *ctx);
/* The same for a list that begins with that trunk. */
LODE_MUST int vfs_page_each_leaf_from(vfs_file *f, uint32_t trunk, vfs_leaf_fn *leaf, void *ctx);

/* ---- vfs_moment.c ---- */

/* Before a page other than the first is read. SQLITE_IOERR_DATA: the pages are not of one moment. */
LODE_MUST int vfs_moment_ready(vfs_file *f);
/* The version that the page must have; f->moment.checked is true. */
LODE_MUST int vfs_moment_version(vfs_file *f, uint32_t page_number, uint64_t *version);
/* The same for a page that has another one: the whole map is proven first. */
LODE_MUST int vfs_moment_confirm(vfs_file *f, uint32_t page_number, uint64_t *version);
/* Before a page is written. */
LODE_MUST int vfs_moment_begin(vfs_file *f);
/* The number of the transaction that is being written. */
uint32_t vfs_moment_number(const vfs_file *f);
/* SQLite writes page 1. *later: it is written to the file by vfs_moment_complete(). */
LODE_MUST int vfs_moment_keep_first(vfs_file *f, const unsigned char *page, size_t n, bool *later);
/* Before another page, which is sealed, is written to the file. */
LODE_MUST int vfs_moment_note(vfs_file *f, uint32_t page_number, const unsigned char *page, size_t n);
/* All pages of a transaction or a rollback are written and will be synced. */
LODE_MUST int vfs_moment_complete(vfs_file *f);
/* The lock is reduced: an incomplete transaction is over. */
void vfs_moment_end(vfs_file *f);
void vfs_moment_release(vfs_file *f);

/* ---- vfs_journal.c ---- */

/* The three ways in which SQLite opens a journal; see vfs_journal.c. */
LODE_MUST int vfs_journal_open_probe(vfs_file *f);
LODE_MUST int vfs_journal_open_rollback(vfs_file *f);
LODE_MUST int vfs_journal_open_write(vfs_file *f);
/* For an empty database file: SQLITE_IOERR_DATA if its journal shows that it was not empty. */
LODE_MUST int vfs_journal_check_empty_db(vfs_file *db);
/* Checks the journal `f` of f->db. Returns SQLITE_OK whatever the verdict. */
LODE_MUST int vfs_journal_check(vfs_file *f, journal_depth depth, journal_findings *findings);
LODE_MUST int vfs_journal_damaged(vfs_file *f, const char *why, uint64_t off);
/* What a journal's name refers to, if it could not be opened. SQLITE_IOERR_ACCESS if that cannot be determined, for
 * example because the database's directory was replaced by a link. */
typedef enum vfs_name_kind {
  VFS_NAME_ABSENT,
  VFS_NAME_FILE,
  VFS_NAME_NOT_REGULAR, /* a link, a directory, a pipe */
} vfs_name_kind;
LODE_MUST int vfs_journal_lstat(vfs_file *f, vfs_name_kind *holds);
LODE_MUST int vfs_journal_read(vfs_file *f, void *buf, size_t n, uint64_t off);
LODE_MUST int vfs_journal_write(vfs_file *f, void *buf, size_t n, uint64_t off);
LODE_MUST int vfs_journal_sync(vfs_file *f);

/* ---- vfs_rollback_view.c: for read-only connections ---- */

/* Checks the journal, under a SHARED lock. If it is hot, the database reads as it was before the journal's transaction
 * until the lock is released. SQLITE_BUSY: the journal keeps changing; SQLITE_IOERR_DATA: it cannot be rolled back. */
LODE_MUST int vfs_view_open(vfs_file *db);
/* Called when the lock is released. The verdict is kept for the next transaction. */
void vfs_view_pause(vfs_file *db);
void vfs_view_drop(vfs_file *db);
/* Size of the database as the transaction sees it; false if it does not read through a journal. */
bool vfs_view_size(const vfs_file *db, uint64_t *bytes);
/* vfs_file_pread() of a database, as the transaction sees it: one page, or a part of page 1. */
LODE_MUST int vfs_view_pread(vfs_file *db, void *buf, size_t n, uint64_t off, size_t *got);
/* Reads the seal of a page alone. */
LODE_MUST int vfs_view_pread_seal(vfs_file *db, uint32_t page_number, unsigned char *seal, size_t *got);

#endif
