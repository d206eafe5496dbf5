/* SPDX-License-Identifier: Apache-2.0 */
/* backup.c - backup and restore of the database file.
 *
 * A backup is a copy of the database file's pages, read through SQLite's file handle, which verifies each checksum. It
 * is read in transactions of at most 50 ms. If something was committed between two of them (SQLite's change counter
 * or the commit id differs), the copy starts over; after BACKUP_MAX_RESTARTS restarts it is made in one transaction,
 * which holds up commits meanwhile. The file gets its name when it is complete and synced.
 *
 * A restore verifies the backup first: every page, the format, the number of pages, SQLite's structures. It holds the
 * CREATE lock. A journal that an earlier store left in the folder is quarantined, because it would be rolled back
 * into the restored file.
 */
#include "repair/repair_internal.h"

#include <errno.h>
#include <fcntl.h>

#define BACKUP_MAX_RESTARTS 3

/* ---- Copying ---- */

typedef struct backup_copier {
  store_db *db;
  int fd;
  unsigned char *page;
  lode_progress progress;
  uint32_t next; /* page to copy */
  unsigned restarts;
  vfs_pages pages; /* as the current transaction sees them */
  uint32_t change; /* of the commit that the copied pages are of; see vfs_pages */
  uint64_t commit_id;
  dev_t dev; /* of the database file */
  ino_t ino;
} backup_copier;

/* Are the pages copied so far still those of the file? */
static bool backup_is_same_file(const backup_copier *c, const store_tx *tx) {
  return c->change == c->pages.change && c->commit_id == c->pages.commit_id && c->dev == tx->conn->dev &&
         c->ino == tx->conn->ino;
}

static lode_status backup_copy_pages(backup_copier *c, store_tx *tx, bool to_end, lode_error *err) {
  uint32_t n = c->pages.src.page_bytes, last = c->pages.declared;
  for (; c->next <= last; c->next++) {
    if (c->next % 64 == 0) {
      if (!to_end && store_tx_is_old(tx)) return LODE_OK;
      TRY(err_progress(c->progress, "copying", c->next, last, err));
    }
    if (c->next == sqf_lock_page(n)) continue; /* SQLite never uses this page, and the file may not contain it */
    TRY(store_tx_read_page(tx, &c->pages, c->next, c->page, err));
    if (!vfs_seal_is_valid(c->next, c->page, n)) vfs_seal_page(c->next, c->page, n, c->pages.commit_number);
    TRY(os_write_full(c->fd, c->page, n, (uint64_t)(c->next - 1) * n, err));
  }
  return LODE_OK;
}

/* Copies pages within one transaction; *more: pages are left. */
static lode_status backup_copy_slice(backup_copier *c, bool *more, lode_error *err) {
  store_tx *tx;
  lode_status st;
  *more = true;
  TRY(store_tx_begin(c->db, STORE_TX_READ, &tx, err));
  TRY_GOTO(store_tx_pages(tx, &c->pages, err));
  if (c->next > 1 && !backup_is_same_file(c, tx)) {
    c->next = 1;
    c->restarts++;
  }
  c->change = c->pages.change;
  c->commit_id = c->pages.commit_id;
  c->dev = tx->conn->dev;
  c->ino = tx->conn->ino;
  TRY_GOTO(backup_copy_pages(c, tx, c->restarts > BACKUP_MAX_RESTARTS, err));
  uint32_t last = c->pages.declared;
  *more = c->next <= last;
  if (!*more && OS_RETRY(os_api->ftruncate(c->fd, (off_t)last * c->pages.src.page_bytes)) != 0)
    st = err_errno(err, errno, "the copy of the store");
done:
  store_tx_rollback(tx);
  return st;
}

lode_status backup_copy(store_db *db, const char *file, lode_progress progress, lode_error *err) {
  lode_status st = LODE_OK;
  bool more = true;
  backup_copier c = {
      .db = db, .progress = progress, .next = 1, .pages = VFS_PAGES_NONE, .page = mem_alloc(SQF_PAGE_MAX)};
  if (!c.page) return err_nomem(err);
  c.fd = OS_RETRY(os_api->open(file, O_RDWR | O_CREAT | O_EXCL, 0600));
  if (c.fd < 0) {
    st = err_errno(err, errno, file);
    mem_free(c.page);
    return st;
  }
  while (more) {
    TRY_GOTO(err_progress(progress, "copying", c.next - 1, 0, err));
    TRY_GOTO(backup_copy_slice(&c, &more, err));
  }
  if (OS_RETRY(os_api->fsync(c.fd)) != 0) st = err_errno(err, errno, file);
done:
  (void)os_api->close(c.fd);
  if (st != LODE_OK) (void)os_api->unlink(file);
  vfs_pages_close(&c.pages);
  mem_free(c.page);
  return st;
}

/* ---- Checking a copy ---- */

typedef struct backup_count_ctx {
  store_tx *tx;
  lode_progress progress;
} backup_count_ctx;

static lode_status backup_check_collection(void *ctx, const store_coll *coll, lode_error *err) {
  backup_count_ctx *c = ctx;
  uint64_t n;
  TRY(err_progress(c->progress, "counting", 0, 0, err));
  TRY(store_rec_count(c->tx, coll->cid, &n, err));
  if (n == coll->records) return LODE_OK;
  return err_set(err, LODE_CORRUPT,
                 "collection %.*s has %llu records and %llu were found: run `lode db verify`, then `lode db salvage`",
                 (int)coll->name.len, coll->name.data, (unsigned long long)coll->records, (unsigned long long)n);
}

static lode_status backup_check_counts(const char *file, lode_progress progress, lode_error *err) {
  store_db *db;
  backup_count_ctx c = {.progress = progress};
  TRY(store_db_open_file(file, &db, err));
  lode_status st = store_tx_begin(db, STORE_TX_READ, &c.tx, err);
  if (st == LODE_OK) st = store_coll_each(c.tx, backup_check_collection, &c, err);
  store_tx_rollback(c.tx);
  store_db_close(db);
  return st;
}

/* ---- Backup ---- */

static lode_status backup_refuse_existing(const char *path, const char *advice, lode_error *err) {
  struct stat sb;
  if (OS_RETRY(os_api->lstat_at(AT_FDCWD, path, &sb)) == 0)
    return err_set(err, LODE_EXISTS, "%s exists already: %s", path, advice);
  return errno == ENOENT || errno == ENOTDIR ? LODE_OK : err_errno(err, errno, path);
}

/* Takes the name with an empty file, so that the rename replaces nothing of anybody else's. */
static lode_status backup_take_name(const char *file, const char *advice, lode_error *err) {
  int fd = OS_RETRY(os_api->open(file, O_WRONLY | O_CREAT | O_EXCL, 0600));
  if (fd >= 0) return os_api->close(fd), LODE_OK;
  if (errno == EEXIST) return err_set(err, LODE_EXISTS, "%s exists already: %s", file, advice);
  return err_errno(err, errno, file);
}

lode_status backup_store(store_db *db, const char *file, lode_progress progress, lode_error *err) {
  static const char advice[] = "name another file, or remove it first";
  lode_status st;
  strbuf part = {0};
  if (!file || !*file) return err_set(err, LODE_INVALID, "name the file to write the backup to");
  TRY(backup_refuse_existing(file, advice, err));
  strbuf_addf(&part, "%s.part-%016llx", file, (unsigned long long)rand_u64());
  strbuf_addch(&part, 0);
  if (part.failed) {
    strbuf_release(&part);
    return err_nomem(err);
  }
  TRY_GOTO(backup_copy(db, part.data, progress, err));
  st = backup_check_counts(part.data, progress, err);
  if (st == LODE_OK) st = backup_take_name(file, advice, err);
  if (st == LODE_OK && OS_RETRY(os_api->rename(part.data, file)) != 0) {
    st = err_errno(err, errno, file);
    (void)os_api->unlink(file);
  }
  if (st == LODE_OK)
    st = os_sync_parent_dir(file, err);
  else
    (void)os_api->unlink(part.data);
done:
  strbuf_release(&part);
  return st;
}

/* ---- Restore ---- */

static lode_status backup_not_whole(lode_error *err, const char *file, const char *why) {
  return err_set(err, LODE_CORRUPT, "%s is not a whole backup: %s; use another one, or `lode db salvage` on it", file,
                 why);
}

static lode_status backup_check_header(vfs_pages *p, const char *file, const unsigned char *page1, lode_error *err) {
  if (p->images.n)
    return err_set(err, LODE_INVALID,
                   "%s-journal holds an interrupted transaction: this is a store, open it where it is", file);
  if (!sqf_has_magic(page1) || num_be32(page1 + 68) != STORE_APPLICATION_ID)
    return err_set(err, LODE_INVALID, "%s is not a backup of a Lode store", file);
  TRY(store_schema_check_format(num_be32(page1 + 60), file, err));
  if (p->declared != p->src.pages || p->src.bytes % p->src.page_bytes)
    return backup_not_whole(err, file, "it is cut short, or too long");
  return LODE_OK;
}

/* Reads and checks every page, and writes it to fd unless fd is -1. */
static lode_status backup_read_pages(vfs_pages *p, const char *file, int fd, lode_progress progress, lode_error *err) {
  char why[64];
  lode_status st = LODE_OK;
  unsigned char *page = mem_alloc(p->src.page_bytes);
  if (!page) return err_nomem(err);
  for (uint32_t n = 1; n <= p->src.pages; n++) {
    if (n % 64 == 1) TRY_GOTO(err_progress(progress, fd < 0 ? "checking" : "copying", n, p->src.pages, err));
    sqf_page_use use = vfs_pages_use_of(p, n);
    if (use == SQF_PAGE_LOCK) continue;
    bool sound = vfs_pages_read(p, n, page);
    if (!sound && use == SQF_PAGE_FREE) {
      memset(page, 0, p->src.page_bytes);
      vfs_seal_page(n, page, p->src.page_bytes, p->commit_number);
    } else if (!sound) {
      snprintf(why, sizeof why, "page %u is damaged", n);
      st = backup_not_whole(err, file, why);
      goto done;
    }
    if (n == 1) TRY_GOTO(backup_check_header(p, file, page, err));
    if (fd >= 0) TRY_GOTO(os_write_full(fd, page, p->src.page_bytes, (uint64_t)(n - 1) * p->src.page_bytes, err));
  }
done:
  mem_free(page);
  return st;
}

typedef struct backup_faults {
  lode_progress progress;
  bool cancelled;
  char first[160];
} backup_faults;

static void backup_on_fault(void *ctx, const char *line) {
  backup_faults *f = ctx;
  if (!f->first[0]) snprintf(f->first, sizeof f->first, "%s", line);
}

static int backup_on_tick(void *ctx) {
  backup_faults *f = ctx;
  f->cancelled = !err_go_on(f->progress, "checking", 0, 0);
  return f->cancelled;
}

/* SQLite's integrity check of a file that nobody else uses yet. */
static lode_status backup_check_structure(const char *path, const char *file, lode_progress progress, lode_error *err) {
  sqlite3 *sql = NULL;
  backup_faults f = {.progress = progress};
  TRY(vfs_register(err));
  int rc = sqlite3_open_v2(path, &sql, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, VFS_NAME);
  if (rc == SQLITE_OK) (void)sqlite3_extended_result_codes(sql, 1);
  if (rc == SQLITE_OK) store_conn_harden(sql);
  if (rc == SQLITE_OK) sqlite3_progress_handler(sql, 100000, backup_on_tick, &f);
  if (rc == SQLITE_OK) rc = store_text_register(sql);
  if (rc == SQLITE_OK) rc = repair_integrity_check(sql, backup_on_fault, &f);
  (void)sqlite3_close(sql);
  if (rc == SQLITE_NOTFOUND) return store_err_no_fts5(err);
  if (f.cancelled) return err_set(err, LODE_CANCELLED, "cancelled by the caller");
  if (f.first[0]) return backup_not_whole(err, file, f.first);
  if (rc == SQLITE_NOMEM || rc == SQLITE_IOERR_NOMEM) return err_nomem(err);
  bool damaged = rc == SQLITE_IOERR_DATA || rc == SQLITE_IOERR_CORRUPTFS;
  if (!damaged && ((rc & 0xFF) == SQLITE_IOERR || (rc & 0xFF) == SQLITE_CANTOPEN))
    return err_set(err, LODE_IO, "%s: %s", path, sqlite3_errstr(rc));
  return rc == SQLITE_OK ? LODE_OK : backup_not_whole(err, file, sqlite3_errstr(rc));
}

/* `path` is that of STOREFILE_RESTORE in the folder. */
static lode_status restore_write_copy(vfs_pages *p, const char *file, const char *folder, const char *path,
                                      lode_progress progress, lode_error *err) {
  /* A file left by a killed restore may have another hard link: replace it, do not write to it. */
  int fd = beneath_unlink(folder, STOREFILE_RESTORE);
  if (fd == 0 || errno == ENOENT) fd = storefile_create(folder, STOREFILE_RESTORE);
  if (fd < 0) return err_errno(err, errno, path);
  lode_status st = backup_read_pages(p, file, fd, progress, err);
  if (st == LODE_OK && OS_RETRY(os_api->ftruncate(fd, (off_t)p->src.pages * p->src.page_bytes)) != 0)
    st = err_errno(err, errno, path);
  if (st == LODE_OK && OS_RETRY(os_api->fsync(fd)) != 0) st = err_errno(err, errno, path);
  (void)os_api->close(fd);
  return st;
}

static lode_status restore_quarantine_journal(const char *folder, lode_error *err) {
  struct stat sb;
  if (beneath_lstat(folder, STOREFILE_JOURNAL, &sb) != 0 || (S_ISREG(sb.st_mode) && sb.st_size == 0)) return LODE_OK;
  return beneath_set_aside(folder, STOREFILE_JOURNAL) == 0 ? LODE_OK : err_errno(err, errno, STOREFILE_JOURNAL);
}

/* The caller holds the CREATE lock. */
static lode_status restore_publish(vfs_pages *p, const char *file, const char *folder, lode_progress progress,
                                   lode_error *err) {
  lode_status st;
  char *truth = store_path_join(folder, STOREFILE_DB), *copy = store_path_join(folder, STOREFILE_RESTORE);
  if (!truth || !copy) {
    st = err_nomem(err);
    goto done;
  }
  TRY_GOTO(backup_refuse_existing(truth, "restore into another folder, or move that store away", err));
  st = restore_write_copy(p, file, folder, copy, progress, err);
  if (st == LODE_OK) st = backup_check_structure(copy, file, progress, err);
  if (st == LODE_OK) st = backup_check_counts(copy, progress, err);
  if (st == LODE_OK) st = restore_quarantine_journal(folder, err);
  if (st == LODE_OK && beneath_rename(folder, STOREFILE_RESTORE, STOREFILE_DB) != 0) st = err_errno(err, errno, truth);
  if (st == LODE_OK)
    st = beneath_sync_dir(folder, STOREFILE_DB, err);
  else
    (void)beneath_unlink(folder, STOREFILE_RESTORE);
done:
  mem_free(truth);
  mem_free(copy);
  return st;
}

static lode_status restore_into(vfs_pages *p, const char *file, const char *folder, lode_progress progress,
                                lode_error *err) {
  lode_status st;
  int lock = -1;
  char *lock_path = store_path_join(folder, STOREFILE_LOCK);
  if (!lock_path) return err_nomem(err);
  TRY_GOTO(store_make_folders(folder, err));
  TRY_GOTO(store_sync_folders(folder, err));
  lock = storefile_open_or_create(folder, STOREFILE_LOCK);
  if (lock < 0) {
    st = err_errno(err, errno, lock_path);
    goto done;
  }
  if (OS_RETRY(os_api->lock(lock, F_WRLCK, STORE_LOCK_CREATE, 1)) != 0) {
    st = errno == EAGAIN || errno == EACCES ? err_set(err, LODE_BUSY, "another process is making a store at %s", folder)
                                            : err_errno(err, errno, lock_path);
    goto done;
  }
  st = restore_publish(p, file, folder, progress, err);
done:
  if (lock >= 0) (void)os_api->close(lock); /* releases the lock */
  mem_free(lock_path);
  return st;
}

static lode_status restore_pages(const char *file, const char *folder, lode_progress progress, lode_error *err) {
  lode_status st;
  vfs_pages pages;
  TRY(vfs_pages_open(file, &pages, err));
  TRY_GOTO(backup_read_pages(&pages, file, -1, progress, err));
  TRY_GOTO(store_schema_check_pages(&pages, file, err)); /* before SQLite parses it */
  TRY_GOTO(restore_into(&pages, file, folder, progress, err));
done:
  if (st == LODE_CORRUPT && pages.read_errno) st = err_errno(err, pages.read_errno, file); /* which proves no damage */
  vfs_pages_close(&pages);
  return st;
}

/* Both paths are given by the user, and may be links. */
lode_status backup_restore(const char *file, const char *folder, lode_progress progress, lode_error *err) {
  lode_status st;
  store_db *db = NULL;
  lode_open_options options = {.create = true};
  char *from = NULL, *to = NULL, *truth = NULL;
  if (!file || !*file || !folder || !*folder)
    return err_set(err, LODE_INVALID, "name the backup and the store's folder");
  TRY_GOTO(beneath_resolve(file, &from, err));
  TRY_GOTO(beneath_resolve(folder, &to, err));
  truth = store_path_join(to, STOREFILE_DB);
  if (!truth) {
    st = err_nomem(err);
    goto done;
  }
  TRY_GOTO(backup_refuse_existing(truth, "restore into another folder, or move that store away", err));
  TRY_GOTO(restore_pages(from, to, progress, err));
  TRY_GOTO(store_db_open(to, &options, &db, err)); /* marks the folder as a complete store */
done:
  store_db_close(db);
  mem_free(from);
  mem_free(to);
  mem_free(truth);
  return st;
}
