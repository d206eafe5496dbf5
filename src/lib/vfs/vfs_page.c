/* SPDX-License-Identifier: Apache-2.0 */
/* vfs_page.c - pages of a database file: checksums are added on writes and verified on reads.
 *
 * Every page of a database file has a valid checksum, or is damaged, or is a leaf of the free list (see below).
 *   1. Every read is of whole pages, whatever SQLite asks for: a part is copied from the page after all of it was
 *      verified. The page size comes from a verified page 1, which is itself verified with the size in its own header,
 *      so a damaged header cannot choose a size that suits it. Partial reads by SQLite: of page 1, 16 bytes at 24 ("has
 *      the file changed?"); of overflow pages, the first bytes, bypassing its cache (3.45.0 to 3.47.0 always; later
 *      versions only if a VFS offers SQLITE_IOCAP_SUBPAGE_READ). One read is not verified: 100 bytes at 0, without a
 *      lock, as a hint for the page size; SQLite compares it with the verified page 1 later.
 *   2. A page is sealed in the buffer that SQLite passes to the write. That buffer is the pager's own image of the
 *      page (or scratch memory), so a page in the cache equals the page in the file.
 *   3. A page in the journal is such an image from before its first change. It is already sealed, except for pages
 *      that were free and never written: their image is zeros. The journal's writer seals those (vfs_journal.c).
 *   4. Pages that a transaction skips (freed before they were ever written) would be holes: they are written as
 *      sealed zeros when the file grows past them.
 *   5. A free-list leaf has no content, so SQLite neither journals it when it is reused nor cares what a crash
 *      leaves there. A page with a bad checksum is looked up in the file's free list before it is reported as damaged;
 *      a free page reads as zeros. That is valid while the file is as the last commit left it, i.e. until this handle
 *      writes.
 *   6. Page 1 gets the transaction's commit id when it is written. A page 1 with a valid checksum has not changed
 *      since it got its id (or comes from the journal, in a rollback), and is written as it is: every commit changes
 *      it, because it contains SQLite's change counter.
 */
#include "vfs/vfs_internal.h"

#include "base/crc32c.h"

uint32_t vfs_page_crc(uint32_t page_number, const unsigned char *page, size_t page_bytes) {
  return crc32c_update(crc32c_update_u32(0, page_number), page, page_bytes - VFS_PAGE_RESERVED);
}

void vfs_page_seal(uint32_t page_number, unsigned char *page, size_t page_bytes) {
  unsigned char *tail = page + page_bytes - VFS_PAGE_RESERVED;
  sqf_put_le32(tail, vfs_page_crc(page_number, page, page_bytes));
  sqf_put_le32(tail + 4, 0);
}

bool vfs_page_is_valid(uint32_t page_number, const unsigned char *page, size_t page_bytes) {
  const unsigned char *tail = page + page_bytes - VFS_PAGE_RESERVED;
  return sqf_le32(tail) == vfs_page_crc(page_number, page, page_bytes) && sqf_le32(tail + 4) == 0;
}

static int vfs_page_damaged(vfs_file *f, uint32_t page_number, const char *why) {
  f->state.damaged_reads++;
  f->state.damaged_page = page_number;
  sqlite3_log(SQLITE_IOERR_DATA, "page %u of %s is damaged: %s", page_number, f->path, why);
  return SQLITE_IOERR_DATA;
}

/* ---- Reading ---- */

static int vfs_page_need_buffer(vfs_file *f) {
  if (!f->page) f->page = mem_alloc(SQF_PAGE_MAX);
  return f->page ? SQLITE_OK : SQLITE_IOERR_NOMEM;
}

/* Verifies page 1 and leaves it in f->page. SQLITE_IOERR_SHORT_READ: the file is empty. */
static int vfs_page_load_first(vfs_file *f) {
  size_t got = 0, n = f->page_bytes ? f->page_bytes : SQF_PAGE_MIN;
  int rc = vfs_page_need_buffer(f);
  if (rc == SQLITE_OK) rc = vfs_view_pread(f, f->page, n, 0, &got);
  if (rc != SQLITE_OK) return rc;
  if (got == 0) return f->size ? vfs_page_damaged(f, 1, "the file was emptied") : SQLITE_IOERR_SHORT_READ;
  if (got < SQF_PAGE_MIN) return vfs_page_damaged(f, 1, "the file is cut short");
  if (!sqf_has_magic(f->page)) {
    vfs_page_damaged(f, 1, "this is not a database");
    return SQLITE_NOTADB;
  }
  uint32_t size = sqf_page_size(f->page);
  if (!size) return vfs_page_damaged(f, 1, "its page size is impossible");
  if (got < size) {
    rc = vfs_view_pread(f, f->page, size, 0, &got);
    if (rc != SQLITE_OK) return rc;
    if (got < size) return vfs_page_damaged(f, 1, "the file is cut short");
  }
  if (f->page[20] != VFS_PAGE_RESERVED) return vfs_page_damaged(f, 1, "it has no room for a checksum");
  if (!vfs_page_is_valid(1, f->page, size)) return vfs_page_damaged(f, 1, "its checksum is wrong");
  f->page_bytes = size;
  f->commit_id = journal_commit_id(f->page);
  f->commit_known = f->lock != SQLITE_LOCK_NONE;
  return SQLITE_OK;
}

int vfs_page_commit_id(vfs_file *f, uint64_t *id) {
  int rc = f->commit_known ? SQLITE_OK : vfs_page_load_first(f);
  *id = rc == SQLITE_OK ? f->commit_id : 0;
  return rc == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : rc; /* a new database */
}

static int vfs_page_read_first(vfs_file *f, unsigned char *buf, size_t n, uint64_t off) {
  memset(buf, 0, n);
  int rc = vfs_page_load_first(f);
  if (rc != SQLITE_OK) return rc;
  if (off + n <= f->page_bytes) {
    memcpy(buf, f->page + off, n);
    return SQLITE_OK;
  }
  /* The pager does not know the page size yet: it will use only the header, and read again. */
  memcpy(buf, f->page, f->page_bytes);
  return SQLITE_OK;
}

/* Is the page a leaf of the free list, as of the last commit? Trunk pages: next trunk, count, leaves. */
static int vfs_page_is_free_leaf(vfs_file *f, uint32_t page_number, size_t n, bool *is_free) {
  unsigned char *trunk = NULL;
  uint64_t size = 0;
  size_t got = 0;
  *is_free = false;
  if (f->wrote) return SQLITE_OK;
  int rc = vfs_page_load_first(f);
  if (rc != SQLITE_OK || f->page_bytes != n) return rc;
  if (!vfs_view_size(f, &size)) rc = vfs_file_bytes(f, &size);
  if (rc != SQLITE_OK) return rc;
  if (!(trunk = mem_alloc(n))) return SQLITE_IOERR_NOMEM;
  uint32_t at = sqf_be32(f->page + 32);
  /* the number of pages bounds the loop, in case the list is circular */
  for (uint64_t left = size / n; at > 1 && left > 0 && !*is_free; left--) {
    rc = vfs_view_pread(f, trunk, n, (uint64_t)(at - 1) * n, &got);
    if (rc != SQLITE_OK || got < n || !vfs_page_is_valid(at, trunk, n)) break;
    uint32_t leaves = sqf_be32(trunk + 4);
    if (leaves > (n - VFS_PAGE_RESERVED) / 4 - 2) break;
    for (uint32_t i = 0; i < leaves && !*is_free; i++) *is_free = sqf_be32(trunk + 8 + 4 * (size_t)i) == page_number;
    at = sqf_be32(trunk);
  }
  mem_free(trunk);
  return rc;
}

static int vfs_page_read_other(vfs_file *f, unsigned char *buf, size_t n, uint64_t off) {
  uint32_t page_number = (uint32_t)(off / n + 1);
  size_t got = 0;
  bool is_free = false;
  int rc = vfs_view_pread(f, buf, n, off, &got);
  if (rc != SQLITE_OK) return rc;
  if (got == n && vfs_page_is_valid(page_number, buf, n)) return SQLITE_OK;
  memset(buf + got, 0, n - got);
  /* Past the end: a page that this transaction has allocated and not written yet. */
  if (got == 0 && off >= f->size) return SQLITE_IOERR_SHORT_READ;
  if (got < n) return vfs_page_damaged(f, page_number, "the file is cut short");
  rc = vfs_page_is_free_leaf(f, page_number, n, &is_free);
  if (rc == SQLITE_OK && !is_free) rc = vfs_page_damaged(f, page_number, "its checksum is wrong");
  memset(buf, 0, n);
  return rc;
}

/* Reads a part of a page other than the first. If the page is not valid, vfs_page_read_other() searches the free list,
 * which loads page 1 into f->page; it zeroes the buffer afterwards. */
static int vfs_page_read_part(vfs_file *f, unsigned char *buf, size_t n, uint64_t off) {
  uint64_t start = off - off % f->page_bytes;
  int rc = vfs_page_need_buffer(f);
  if (rc != SQLITE_OK) return rc;
  rc = vfs_page_read_other(f, f->page, f->page_bytes, start);
  if (rc == SQLITE_OK || rc == SQLITE_IOERR_SHORT_READ) memcpy(buf, f->page + (off - start), n);
  return rc;
}

int vfs_page_read(vfs_file *f, void *buf, size_t n, uint64_t off) {
  size_t got = 0, page = f->page_bytes;
  if (off == 0 && n == 100) { /* the hint: no lock is held, so neither the bytes nor damage to them prove anything */
    int rc = vfs_file_pread(f, buf, n, off, &got);
    if (rc != SQLITE_OK) return rc;
    memset((char *)buf + got, 0, n - got);
    return got < n ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
  }
  if (off / SQF_PAGE_MAX > UINT32_MAX) return SQLITE_IOERR_READ;
  if (page && off >= page && n != page) { /* a range over two pages has no checksum */
    return off % page + n <= page ? vfs_page_read_part(f, buf, n, off) : SQLITE_IOERR_READ;
  }
  bool whole = sqf_page_size_valid(n) && off % n == 0;
  if (whole && off > 0) return vfs_page_read_other(f, buf, n, off);
  if (whole || off + n <= SQF_PAGE_MIN) return vfs_page_read_first(f, buf, n, off);
  return SQLITE_IOERR_READ; /* cannot be verified */
}

/* ---- Writing ---- */

/* Writes sealed zeros to the pages between the end of the file and `off`. */
static int vfs_page_fill_gap(vfs_file *f, size_t n, uint64_t off) {
  uint64_t size = 0;
  if (off <= f->size) return SQLITE_OK;
  int rc = vfs_file_bytes(f, &size);
  if (rc != SQLITE_OK) return rc;
  if (size < f->size) return vfs_page_damaged(f, (uint32_t)(size / n + 1), "the file was cut short while in use");
  f->size = size;
  if (off <= size) return SQLITE_OK;
  unsigned char *blank = mem_calloc(1, n);
  if (!blank) return SQLITE_IOERR_NOMEM;
  for (uint64_t at = (size + n - 1) / n * n; at < off && rc == SQLITE_OK; at += n) {
    vfs_page_seal((uint32_t)(at / n + 1), blank, n);
    rc = vfs_file_pwrite(f, blank, n, at);
  }
  mem_free(blank);
  return rc;
}

int vfs_page_write(vfs_file *f, void *buf, size_t n, uint64_t off) {
  unsigned char *page = buf;
  if (!sqf_page_size_valid(n) || off % n != 0 || off / n >= UINT32_MAX || (f->page_bytes && f->page_bytes != n)) {
    sqlite3_log(SQLITE_IOERR_WRITE, "%s: refused to write other than a whole page", f->path);
    return SQLITE_IOERR_WRITE;
  }
  if (off == 0 && (sqf_page_size(page) != n || page[20] != VFS_PAGE_RESERVED)) {
    sqlite3_log(SQLITE_IOERR_WRITE, "%s: page 1 has no room for a checksum (SQLITE_FCNTL_RESERVE_BYTES must be %d)",
                f->path, VFS_PAGE_RESERVED);
    return SQLITE_IOERR_WRITE;
  }
  int rc = vfs_page_fill_gap(f, n, off);
  if (rc != SQLITE_OK) return rc;
  if (off == 0 && !vfs_page_is_valid(1, page, n)) {
    while (f->next_commit_id == 0) f->next_commit_id = rand_u64();
    journal_put_commit_id(page, f->next_commit_id);
  }
  vfs_page_seal((uint32_t)(off / n + 1), page, n);
  f->wrote = true;
  rc = vfs_file_pwrite(f, page, n, off);
  if (rc != SQLITE_OK) return rc;
  if (off + n > f->size) f->size = off + n;
  if (off == 0) {
    f->page_bytes = (uint32_t)n;
    f->commit_known = false;
  }
  return SQLITE_OK;
}
