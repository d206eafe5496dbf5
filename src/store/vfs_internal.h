/* vfs_internal.h - what the vfs*.c files share. Nobody else includes it.
 *
 * Functions here return SQLite result codes, as the methods they serve do.
 */
#ifndef LODE_VFS_INTERNAL_H
#define LODE_VFS_INTERNAL_H

#include "judge.h"

#include <errno.h>
#include <sqlite3.h>

typedef enum lode__vfs_kind { LODE__VFS_DB, LODE__VFS_JOURNAL, LODE__VFS_TEMP } lode__vfs_kind;

/* What has passed through a journal's handle; see vfs_journal.c. */
typedef struct lode__journal {
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
} lode__journal;

typedef struct lode__through lode__through; /* vfs_through.c */
typedef struct lode__vfs_file lode__vfs_file;
struct lode__vfs_file {
  sqlite3_file base;             /* first: SQLite's view of it */
  lode__vfs_file *prev, *next;   /* list of open files, for fork */
  bool listed;
  lode__vfs_kind kind;
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
  lode__through *view;        /* the journal that a reader found, and what it is; NULL: none */
  uint32_t page_bytes;           /* from the newest proven page 1; 0: not known */
  bool wrote;                    /* written to since the lock was SHARED */
  bool sync_failed;              /* and never succeeds again */
  bool journal_named;            /* the folder entry of the journal below is durable */
  dev_t journal_dev;
  ino_t journal_ino;
  unsigned char *page;           /* LODE__PAGE_MAX bytes, allocated when needed */
  lode__vfs_state state;

  /* journals */
  lode__vfs_file *db;            /* whose journal; NULL when not known */
  bool name_due;                 /* the folder is to be synced with the first sync */
  bool shown;                    /* its first byte is shown to SQLite as ... */
  unsigned char first_byte;      /* ... this, and nothing else is */
  lode__journal journal;
};

/* ---- vfs.c ---- */

/* Opens f->path (fd, dev, ino) and lists it. Not a regular file, or a link: SQLITE_CANTOPEN. */
int lode__vfs_open(lode__vfs_file *f, int flags, unsigned mode);

/* ---- vfs_file.c: plain transfers over EINTR and short counts, and bookkeeping ---- */

extern const sqlite3_io_methods lode__vfs_methods;

/* *got < n only at the end of the file. */
int lode__vfs_pread(lode__vfs_file *f, void *buf, size_t n, uint64_t off, size_t *got);
int lode__vfs_pwrite(lode__vfs_file *f, const void *buf, size_t n, uint64_t off);
int lode__vfs_fdatasync(lode__vfs_file *f);
int lode__vfs_fsize(lode__vfs_file *f, uint64_t *size);
/* Is the file no longer the one that its path leads to? */
int lode__vfs_moved(lode__vfs_file *f, bool *moved);
/* *exists = false when there is no such file; other failures are SQLITE_IOERR_ACCESS. */
int lode__vfs_stat(const char *path, struct stat *st, bool *exists);
/* Remembers errno for LODE__FCNTL_STATE and returns `rc`. */
int lode__vfs_errno(lode__vfs_file *f, int rc);

/* The list of open files: whoever holds its lock keeps fork waiting. Closing takes a file off the list. */
void lode__vfs_list_lock(void);
void lode__vfs_list_unlock(void);
void lode__vfs_list_add(lode__vfs_file *f);
void lode__vfs_close(lode__vfs_file *f);
void lode__vfs_fork_child(void);

/* ---- vfs_page.c ---- */

int lode__page_read(lode__vfs_file *f, void *buf, size_t n, uint64_t off);
int lode__page_write(lode__vfs_file *f, void *buf, size_t n, uint64_t off);

/* The commit id of the database as the last transaction left it; a lock is held. */
int lode__page_commit_id(lode__vfs_file *f, uint64_t *id);

/* ---- vfs_journal.c ---- */

/* The three ways in which SQLite opens a journal; see vfs_journal.c. */
int lode__journal_open_to_look(lode__vfs_file *f);
int lode__journal_open_to_undo(lode__vfs_file *f);
int lode__journal_open_to_write(lode__vfs_file *f);
/* A database file that is empty: fails with SQLITE_IOERR_DATA when its journal knows that it was not. */
int lode__journal_check_empty(lode__vfs_file *db);
/* Judges the journal `f` of f->db. A verdict is no failure. */
int lode__journal_judge_file(lode__vfs_file *f, lode__judge_depth depth, lode__judged *findings);
int lode__journal_damaged(lode__vfs_file *f, const char *why, uint64_t off);
/* What the name of a journal leads to that could not be opened. SQLITE_IOERR_ACCESS: it cannot be told; so it is when the
 * database's folder has become a link. */
typedef enum lode__name_holds { LODE__NAME_NOTHING, LODE__NAME_FILE, LODE__NAME_NO_FILE /* a link, a folder, a pipe */ } lode__name_holds;
int lode__journal_look_at_name(lode__vfs_file *f, lode__name_holds *holds);
int lode__journal_read(lode__vfs_file *f, void *buf, size_t n, uint64_t off);
int lode__journal_write(lode__vfs_file *f, void *buf, size_t n, uint64_t off);
int lode__journal_sync(lode__vfs_file *f);

/* ---- vfs_through.c: for connections that may only read ---- */

/* Looks at the journal, with a SHARED lock. From then on, until the lock is given back, the database reads as it was
 * before the transaction of a hot one. SQLITE_BUSY: it changes all the time; SQLITE_IOERR_DATA: it cannot be undone. */
int lode__through_look(lode__vfs_file *db);
/* The lock is given back. What was learnt of a journal is kept for the next one. */
void lode__through_pause(lode__vfs_file *db);
void lode__through_drop(lode__vfs_file *db);
/* False: there is nothing to read through. */
bool lode__through_size(const lode__vfs_file *db, uint64_t *bytes);
/* lode__vfs_pread() of a database; of a page's bytes (or of some of page 1's) as the transaction is to see them. */
int lode__through_pread(lode__vfs_file *db, void *buf, size_t n, uint64_t off, size_t *got);

#endif
