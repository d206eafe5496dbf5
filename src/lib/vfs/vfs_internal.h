/* vfs_internal.h - what the vfs*.c files share. Nobody else includes it.
 *
 * Functions here return SQLite result codes, as the methods they serve do.
 */
#ifndef LODE_VFS_VFS_INTERNAL_H
#define LODE_VFS_VFS_INTERNAL_H

#include "vfs/journal.h"

#include <errno.h>
#include <sqlite3.h>

typedef enum vfs_file_kind { VFS_FILE_DB, VFS_FILE_JOURNAL, VFS_FILE_TEMP } vfs_file_kind;

/* What has passed through a journal's handle; see vfs_journal.c. */
typedef struct vfs_journal_state {
  uint32_t page_bytes;       /* 0: no header seen */
  uint64_t header_off;       /* of the newest header written */
  unsigned char header[28];
  uint32_t first_crc;        /* stored CRC of the first header */
  uint64_t before, after;    /* commit ids of the transaction */
  uint32_t segments;         /* headers that hold a record count */
  bool count_due;            /* the first header is to learn of another one after the next sync */
  bool in_record;            /* a page number was the last thing read or written ... */
  uint64_t record_off;       /* ... here, */
  uint32_t record_page;      /* this one */
} vfs_journal_state;

typedef struct vfs_rollback_view vfs_rollback_view; /* vfs_rollback_view.c */
typedef struct vfs_file vfs_file;
struct vfs_file {
  sqlite3_file base;             /* first: SQLite's view of it */
  vfs_file *prev, *next;   /* list of open files, for fork */
  bool listed;
  vfs_file_kind kind;
  int fd;                        /* -1: closed, or orphaned by fork */
  const char *path;              /* SQLite's, good until close; NULL for temporary files */
  uint64_t size;                 /* the file is at least this long, or somebody cut it; 0 when not known */
  dev_t dev;
  ino_t ino;

  /* databases */
  int lock;                      /* SQLITE_LOCK_* */
  bool read_only;                /* opened so, or all that was possible */
  uint64_t commit_id;            /* of the newest proven page 1 */
  bool commit_known;             /* it is that of the moment which the lock keeps */
  uint64_t next_commit_id;       /* what page 1 gets in this transaction; 0: none chosen yet */
  vfs_rollback_view *view;        /* the journal that a reader found, and what it is; NULL: none */
  uint32_t page_bytes;           /* from the newest proven page 1; 0: not known */
  bool wrote;                    /* written to since the lock was SHARED */
  bool sync_failed;              /* and never succeeds again */
  bool journal_named;            /* the folder entry of the journal below is durable */
  dev_t journal_dev;
  ino_t journal_ino;
  unsigned char *page;           /* SQF_PAGE_MAX bytes, allocated when needed */
  vfs_file_state state;

  /* journals */
  vfs_file *db;            /* whose journal; NULL when not known */
  bool name_due;                 /* the folder is to be synced with the first sync */
  bool shown;                    /* its first byte is shown to SQLite as ... */
  unsigned char first_byte;      /* ... this, and nothing else is */
  vfs_journal_state journal;
};

/* ---- vfs.c ---- */

/* Opens f->path (fd, dev, ino) and lists it. Not a regular file, or a link: SQLITE_CANTOPEN. */
int vfs_file_open(vfs_file *f, int flags, unsigned mode);

/* ---- vfs_file.c: plain transfers over EINTR and short counts, and bookkeeping ---- */

extern const sqlite3_io_methods vfs_file_methods;

/* *got < n only at the end of the file. */
int vfs_file_pread(vfs_file *f, void *buf, size_t n, uint64_t off, size_t *got);
int vfs_file_pwrite(vfs_file *f, const void *buf, size_t n, uint64_t off);
int vfs_file_fdatasync(vfs_file *f);
int vfs_file_bytes(vfs_file *f, uint64_t *size);
/* Is the file no longer the one that its path leads to? */
int vfs_file_was_moved(vfs_file *f, bool *moved);
/* *exists = false when there is no such file; other failures are SQLITE_IOERR_ACCESS. */
int vfs_stat_path(const char *path, struct stat *st, bool *exists);
/* Remembers errno for VFS_FCNTL_STATE and returns `rc`. */
int vfs_file_note_errno(vfs_file *f, int rc);

/* The list of open files: whoever holds its lock keeps fork waiting. Closing takes a file off the list. */
void vfs_list_lock(void);
void vfs_list_unlock(void);
void vfs_list_add(vfs_file *f);
void vfs_file_close(vfs_file *f);
void vfs_after_fork_in_child(void);

/* ---- vfs_page.c ---- */

int vfs_page_read(vfs_file *f, void *buf, size_t n, uint64_t off);
int vfs_page_write(vfs_file *f, void *buf, size_t n, uint64_t off);

/* The commit id of the database as the last transaction left it; a lock is held. */
int vfs_page_commit_id(vfs_file *f, uint64_t *id);

/* ---- vfs_journal.c ---- */

/* The three ways in which SQLite opens a journal; see vfs_journal.c. */
int vfs_journal_open_probe(vfs_file *f);
int vfs_journal_open_rollback(vfs_file *f);
int vfs_journal_open_write(vfs_file *f);
/* A database file that is empty: fails with SQLITE_IOERR_DATA when its journal knows that it was not. */
int vfs_journal_check_empty_db(vfs_file *db);
/* Judges the journal `f` of f->db. A verdict is no failure. */
int vfs_journal_check(vfs_file *f, journal_depth depth, journal_findings *findings);
int vfs_journal_damaged(vfs_file *f, const char *why, uint64_t off);
/* What the name of a journal leads to that could not be opened. SQLITE_IOERR_ACCESS: it cannot be told; so it is when the
 * database's folder has become a link. */
typedef enum vfs_name_kind { VFS_NAME_ABSENT, VFS_NAME_FILE, VFS_NAME_NOT_REGULAR /* a link, a folder, a pipe */ } vfs_name_kind;
int vfs_journal_lstat(vfs_file *f, vfs_name_kind *holds);
int vfs_journal_read(vfs_file *f, void *buf, size_t n, uint64_t off);
int vfs_journal_write(vfs_file *f, void *buf, size_t n, uint64_t off);
int vfs_journal_sync(vfs_file *f);

/* ---- vfs_rollback_view.c: for connections that may only read ---- */

/* Looks at the journal, with a SHARED lock. From then on, until the lock is given back, the database reads as it was
 * before the transaction of a hot one. SQLITE_BUSY: it changes all the time; SQLITE_IOERR_DATA: it cannot be undone. */
int vfs_view_open(vfs_file *db);
/* The lock is given back. What was learnt of a journal is kept for the next one. */
void vfs_view_pause(vfs_file *db);
void vfs_view_drop(vfs_file *db);
/* False: there is nothing to read through. */
bool vfs_view_size(const vfs_file *db, uint64_t *bytes);
/* vfs_file_pread() of a database; of a page's bytes (or of some of page 1's) as the transaction is to see them. */
int vfs_view_pread(vfs_file *db, void *buf, size_t n, uint64_t off, size_t *got);

#endif
