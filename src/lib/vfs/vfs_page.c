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
 *      page (or scratch memory), so a page in the cache equals the page in the file (but for the root in page 1,
 *      vfs_moment.c). A page with a valid seal was not changed, or comes from a journal, and keeps it.
 *   3. A page in the journal is such an image from before its first change. It is already sealed, except for pages
 *      that were free and never written, whose image is zeros, and page 1, which may lack the root. The journal's
 *      writer completes those (vfs_journal.c).
 *   4. Pages that a transaction skips (freed before they were ever written) would be holes: they are written as
 *      sealed zeros when the file grows past them.
 *   5. A free-list leaf has no content, so SQLite neither journals it when it is reused nor cares what a crash
 *      leaves there. It reads as zeros. The page map knows such pages; in a database without one, a page with a bad
 *      checksum is looked up in the free list before it is reported as damaged. That is valid while the file is as the
 *      last commit left it, i.e. until this handle writes.
 *   6. Page 1 gets the transaction's commit id when SQLite writes it, and is written to the file with the root, as the
 *      last page of the transaction (vfs_moment.c). A page 1 with a valid checksum comes from the journal, in a
 *      rollback, and is written as it is.
 *   7. SQLite's cache is of the commit that page 1 names. SQLite compares the change counter, which is the same again
 *      after a commit that was lost (by a disk that said otherwise) and another in its place. So it is shown another
 *      counter, once, when the commit id is another one.
 */
#include "vfs/vfs_internal.h"

int vfs_page_damaged(vfs_file *f, uint32_t page_number, vfs_damage damage, const char *why) {
  f->state.damaged_reads++;
  f->state.damaged_page = page_number;
  f->state.damage = damage;
  sqlite3_log(SQLITE_IOERR_DATA, "page %u of %s is damaged: %s", page_number, f->path, why);
  return SQLITE_IOERR_DATA;
}

static int vfs_page_broken(vfs_file *f, uint32_t page_number, const char *why) {
  return vfs_page_damaged(f, page_number, VFS_DAMAGE_PAGE, why);
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
  if (got == 0) f->commit = (vfs_commit){0};
  if (got == 0) return f->size ? vfs_page_broken(f, 1, "the file was emptied") : SQLITE_IOERR_SHORT_READ;
  if (got < SQF_PAGE_MIN) return vfs_page_broken(f, 1, "the file is cut short");
  if (!sqf_has_magic(f->page)) {
    vfs_page_broken(f, 1, "this is not a database");
    return SQLITE_NOTADB;
  }
  uint32_t size = sqf_page_size(f->page);
  if (!size) return vfs_page_broken(f, 1, "its page size is impossible");
  if (got < size) {
    rc = vfs_view_pread(f, f->page, size, 0, &got);
    if (rc != SQLITE_OK) return rc;
    if (got < size) return vfs_page_broken(f, 1, "the file is cut short");
  }
  if (f->page[20] != VFS_SEAL_BYTES) return vfs_page_broken(f, 1, "it has no room for a checksum");
  if (!vfs_seal_is_valid(1, f->page, size)) return vfs_page_broken(f, 1, "its checksum is wrong");
  f->page_bytes = size;
  f->commit = (vfs_commit){.id = journal_commit_id(f->page), .pages = num_be32(f->page + 28)};
  journal_get_root(f->page, &f->commit.root, &f->commit.number);
  f->commit_known = f->lock != SQLITE_LOCK_NONE;
  return SQLITE_OK;
}

int vfs_page_need_commit(vfs_file *f) {
  int rc = f->commit_known ? SQLITE_OK : vfs_page_load_first(f);
  return rc == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : rc; /* a new database */
}

static int vfs_page_read_first(vfs_file *f, unsigned char *buf, size_t n, uint64_t off) {
  memset(buf, 0, n);
  int rc = vfs_page_load_first(f);
  if (rc != SQLITE_OK) return rc;
  bool other = f->cached_id != f->commit.id;
  f->cached_id = f->commit.id;
  if (off + n <= f->page_bytes) {
    memcpy(buf, f->page + off, n);
    if (off == 24 && n == 16 && other) buf[0] ^= 0x80; /* 7. */
    return SQLITE_OK;
  }
  /* The pager does not know the page size yet: it will use only the header, and read again. */
  memcpy(buf, f->page, f->page_bytes);
  return SQLITE_OK;
}

/* Trunk pages: next trunk, count, leaves. */
static int vfs_page_each_leaf_of(const unsigned char *trunk, size_t n, vfs_leaf_fn *leaf, void *ctx) {
  uint32_t leaves = sqf_trunk_leaves(trunk, (uint32_t)n - VFS_SEAL_BYTES);
  int rc = SQLITE_OK;
  for (uint32_t i = 0; i < leaves && rc == SQLITE_OK; i++) rc = leaf(ctx, num_be32(trunk + 8 + 4 * (size_t)i));
  return rc;
}

int vfs_page_each_leaf_from(vfs_file *f, uint32_t at, vfs_leaf_fn *leaf, void *ctx) {
  uint64_t size = 0;
  size_t got = 0, n = f->page_bytes;
  int rc = vfs_view_size(f, &size) ? SQLITE_OK : vfs_file_bytes(f, &size);
  if (rc != SQLITE_OK) return rc;
  unsigned char *trunk = mem_alloc(n);
  if (!trunk) return SQLITE_IOERR_NOMEM;
  /* the number of pages bounds the loop, in case the list is circular */
  for (uint64_t left = size / n; at > 1 && left > 0 && rc == SQLITE_OK; left--) {
    rc = vfs_view_pread(f, trunk, n, (uint64_t)(at - 1) * n, &got);
    if (rc != SQLITE_OK || got < n || !vfs_seal_is_valid(at, trunk, n)) break;
    rc = vfs_page_each_leaf_of(trunk, n, leaf, ctx);
    at = num_be32(trunk);
  }
  mem_free(trunk);
  return rc;
}

int vfs_page_each_free_leaf(vfs_file *f, vfs_leaf_fn *leaf, void *ctx) {
  int rc = vfs_page_load_first(f);
  return rc == SQLITE_OK ? vfs_page_each_leaf_from(f, num_be32(f->page + 32), leaf, ctx) : rc;
}

static int vfs_page_is_wanted_leaf(void *ctx, uint32_t page_number) {
  return page_number == *(uint32_t *)ctx ? SQLITE_DONE : SQLITE_OK;
}

/* Is the page a leaf of the free list, as of the last commit? */
static int vfs_page_is_free_leaf(vfs_file *f, uint32_t page_number, bool *is_free) {
  *is_free = false;
  if (f->wrote) return SQLITE_OK;
  int rc = vfs_page_each_free_leaf(f, vfs_page_is_wanted_leaf, &page_number);
  *is_free = rc == SQLITE_DONE;
  return *is_free ? SQLITE_OK : rc;
}

/* A page of a database with a map. */
static int vfs_page_check_version(vfs_file *f, uint32_t page_number, unsigned char *buf, size_t n) {
  uint64_t version, found = vfs_seal_version(buf + n - VFS_SEAL_BYTES);
  int rc = vfs_moment_version(f, page_number, &version);
  bool sound = rc == SQLITE_OK && vfs_seal_is_valid(page_number, buf, n);
  if (sound && found == version) return SQLITE_OK;
  if (rc == SQLITE_OK) rc = vfs_moment_confirm(f, page_number, &version);
  if (rc == SQLITE_OK && sound && found == version) return SQLITE_OK;
  memset(buf, 0, n);
  if (rc != SQLITE_OK || version == 0) return rc; /* without a version: no content */
  return sound ? vfs_page_damaged(f, page_number, VFS_DAMAGE_OLD, "it is of another moment")
               : vfs_page_broken(f, page_number, "its checksum is wrong");
}

static int vfs_page_read_other(vfs_file *f, unsigned char *buf, size_t n, uint64_t off) {
  uint32_t page_number = (uint32_t)(off / n + 1);
  size_t got = 0;
  bool is_free = false;
  int rc = vfs_moment_ready(f);
  if (rc == SQLITE_OK && f->page_bytes && f->page_bytes != n) rc = SQLITE_IOERR_READ;
  if (rc == SQLITE_OK) rc = vfs_view_pread(f, buf, n, off, &got);
  if (rc != SQLITE_OK) return rc;
  if (got == n && f->moment.checked) return vfs_page_check_version(f, page_number, buf, n);
  if (got == n && num_le32(buf + n - 4) == 0 && vfs_seal_is_valid(page_number, buf, n)) return SQLITE_OK;
  memset(buf + got, 0, n - got);
  /* Past the end: a page that this transaction has allocated and not written yet. */
  if (got == 0 && off >= f->size) return SQLITE_IOERR_SHORT_READ;
  if (got < n) return vfs_page_broken(f, page_number, "the file is cut short");
  rc = vfs_page_is_free_leaf(f, page_number, &is_free);
  if (rc == SQLITE_OK && !is_free) rc = vfs_page_broken(f, page_number, "its checksum is wrong");
  memset(buf, 0, n);
  return rc;
}

/* Reads a part of a page other than the first. The buffer is not f->page, which page 1 may be loaded into meanwhile. */
static int vfs_page_read_part(vfs_file *f, unsigned char *buf, size_t n, uint64_t off) {
  uint64_t start = off - off % f->page_bytes;
  if (!f->part) f->part = mem_alloc(SQF_PAGE_MAX);
  if (!f->part) return SQLITE_IOERR_NOMEM;
  int rc = vfs_page_read_other(f, f->part, f->page_bytes, start);
  if (rc == SQLITE_OK || rc == SQLITE_IOERR_SHORT_READ) memcpy(buf, f->part + (off - start), n);
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
  if (size < f->size) return vfs_page_broken(f, (uint32_t)(size / n + 1), "the file was cut short while in use");
  f->size = size;
  if (off <= size) return SQLITE_OK;
  unsigned char *blank = mem_calloc(1, n);
  if (!blank) return SQLITE_IOERR_NOMEM;
  for (uint64_t at = (size + n - 1) / n * n; at < off && rc == SQLITE_OK; at += n) {
    uint32_t page_number = (uint32_t)(at / n + 1);
    vfs_seal_page(page_number, blank, n, VFS_SEAL_EMPTY);
    rc = vfs_moment_note(f, page_number, blank, n);
    if (rc == SQLITE_OK) rc = vfs_file_pwrite(f, blank, n, at);
  }
  mem_free(blank);
  return rc;
}

int vfs_page_write(vfs_file *f, void *buf, size_t n, uint64_t off) {
  unsigned char *page = buf;
  if (!INVARIANT(f->lock == SQLITE_LOCK_EXCLUSIVE)) return SQLITE_MISUSE;
  if (!sqf_page_size_valid(n) || off % n != 0 || off / n >= UINT32_MAX || (f->page_bytes && f->page_bytes != n)) {
    sqlite3_log(SQLITE_IOERR_WRITE, "%s: refused to write other than a whole page", f->path);
    return SQLITE_IOERR_WRITE;
  }
  if (off == 0 && (sqf_page_size(page) != n || page[20] != VFS_SEAL_BYTES)) {
    sqlite3_log(SQLITE_IOERR_WRITE, "%s: page 1 has no room for a checksum (SQLITE_FCNTL_RESERVE_BYTES must be %d)",
                f->path, VFS_SEAL_BYTES);
    return SQLITE_IOERR_WRITE;
  }
  uint32_t page_number = (uint32_t)(off / n + 1);
  int rc = vfs_moment_begin(f);
  if (rc == SQLITE_OK) rc = vfs_page_fill_gap(f, n, off);
  if (rc != SQLITE_OK) return rc;
  if (off == 0 && !vfs_seal_is_valid(1, page, n)) {
    while (f->next_commit_id == 0) f->next_commit_id = rand_u64();
    journal_put_commit_id(page, f->next_commit_id);
  }
  f->wrote = true;
  if (off == 0) {
    bool later = false;
    rc = vfs_moment_keep_first(f, page, n, &later);
    if (rc != SQLITE_OK || later) return rc;
  }
  vfs_seal_changed_page(page_number, page, n, off ? vfs_moment_number(f) : 0);
  if (off > 0) rc = vfs_moment_note(f, page_number, page, n);
  if (rc == SQLITE_OK) rc = vfs_file_pwrite(f, page, n, off);
  if (rc != SQLITE_OK) return rc;
  if (off + n > f->size) f->size = off + n;
  if (off == 0) {
    f->page_bytes = (uint32_t)n;
    f->commit_known = false;
  }
  return SQLITE_OK;
}
