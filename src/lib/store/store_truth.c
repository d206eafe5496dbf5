/* SPDX-License-Identifier: Apache-2.0 */
/* store_truth.c - the pages of the truth file as a transaction sees them. They are read through SQLite's own file
 * handle, whose lock the transaction holds: checksums are verified, and an interrupted transaction has been rolled
 * back, or is hidden by the rollback view of the VFS. */
#include "store/db.h"

int store_truth_open(store_conn *conn, store_truth *t) {
  unsigned char head[96]; /* not 100 bytes: the VFS does not verify that read, which SQLite uses as a hint */
  sqlite3_int64 size = 0;
  *t = (store_truth){0};
  int rc = sqlite3_file_control(conn->sql, "main", SQLITE_FCNTL_FILE_POINTER, &t->file);
  if (rc == SQLITE_OK) rc = t->file->pMethods->xRead(t->file, head, sizeof head, 0);
  if (rc == SQLITE_OK) rc = t->file->pMethods->xFileSize(t->file, &size);
  if (rc != SQLITE_OK) return rc;
  t->page_bytes = sqf_page_size(head);
  t->change = sqf_be32(head + 24);
  t->pages = sqf_be32(head + 28);
  t->has_map = sqf_be32(head + 52) != 0;
  if (t->page_bytes) t->file_pages = (uint32_t)((uint64_t)size / t->page_bytes);
  return SQLITE_OK;
}

lode_status store_truth_begin(store_tx *tx, store_truth *t, lode_error *err) {
  int rc = store_truth_open(tx->conn, t);
  if (rc != SQLITE_OK) return store_err_sql(tx->conn, rc, err);
  return t->page_bytes ? LODE_OK : err_set(err, LODE_CORRUPT, "%s has no valid page size", tx->db->path);
}

static int read_page(const store_truth *t, uint32_t number, unsigned char *page) {
  return t->file->pMethods->xRead(t->file, page, (int)t->page_bytes,
                                  (sqlite3_int64)(number - 1) * (sqlite3_int64)t->page_bytes);
}

lode_status store_truth_read_page(store_tx *tx, const store_truth *t, uint32_t number, unsigned char *page,
                                  lode_error *err) {
  int rc = read_page(t, number, page);
  if (rc == SQLITE_IOERR_SHORT_READ)
    return err_set(err, LODE_CORRUPT, "page %u of %s is missing", number, tx->db->path);
  return rc == SQLITE_OK ? LODE_OK : store_err_sql(tx->conn, rc, err);
}

static bool read_for_pages(void *ctx, uint32_t number, unsigned char *page) {
  store_truth *t = ctx;
  int rc = read_page(t, number, page);
  if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ && (t->rc == SQLITE_OK || t->rc == SQLITE_IOERR_DATA))
    t->rc = rc;
  return rc == SQLITE_OK;
}

void store_truth_pages(store_truth *t, store_pages *p) {
  p->fd = p->journal_fd = -1;
  p->read = read_for_pages;
  p->read_ctx = t;
  p->page_bytes = t->page_bytes;
  p->usable = t->page_bytes - VFS_PAGE_RESERVED;
  p->file_bytes = (uint64_t)t->file_pages * t->page_bytes;
  p->count = t->file_pages;
  p->declared = t->pages;
  p->has_map = t->has_map;
  p->map_number = 0;
}
