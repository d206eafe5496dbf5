/* SPDX-License-Identifier: Apache-2.0 */
/* vfs_moment.c - is each page of the version that the newest commit left?
 *
 * A page checksum proves that a page is intact, not that it is the newest: a disk that lost a write, or a copy made
 * while somebody wrote, leaves intact pages of different moments. So page 1 holds, beside the commit id, the number of
 * the commit and the root of the page map (vfs_map.h), and a page is compared with the map when it is read.
 *   1. The root in page 1 is the sum over pages 2 to N, N being the number of pages that page 1 declares.
 *   2. A page of zeros adds nothing, and a page without a version reads as zeros, whatever the file holds. A leaf of
 *      the free list is such a page (secure_delete=ON zeroes what is freed): SQLite does not journal it when it is
 *      reused, so a crash may leave anything there. For the same reason ROLLBACK TO leaves what was written to a leaf
 *      that the undone part had used: leaves lose their versions then, before the root is written.
 *   3. While a transaction writes, its connection's map has the versions that are in the file. Versions of a
 *      transaction that was rolled back are dropped with the map.
 *   4. SQLite writes page 1 before most other pages. It is kept, and written with the root when SQLite announces the
 *      sync. SQLite's own image of page 1 lacks root and seal; the journal gets them (vfs_journal.c).
 *   5. A map that cannot be proven is made from the seals of all pages, and the free list. If that does not lead to
 *      the root either, the pages are not of one moment.
 * The map's file is beside a database that is called lode.db; others have their map in memory alone. It is written
 * before the first page of a transaction, when it is missing or its records are long, and by a connection that had to
 * make the map and may write. A record is appended before the database is synced, under the EXCLUSIVE lock; if the
 * transaction does not come about, nobody looks for it.
 */
#include "vfs/vfs_internal.h"

#include "os/store_files.h"

/* LODE_IO: a system call has failed, and errno says how. LODE_CORRUPT: the map's file is not what it was. */
static int vfs_moment_status(vfs_file *f, lode_status st) {
  if (st == LODE_CORRUPT) errno = EIO;
  return st == LODE_OK ? SQLITE_OK : st == LODE_NOMEM ? SQLITE_IOERR_NOMEM : vfs_file_note_errno(f, SQLITE_IOERR_READ);
}

/* The folder of the map's file; false: this database has none. */
static bool vfs_moment_folder(const vfs_file *f, char *folder, size_t size) {
  const char *name;
  return beneath_split(f->path, folder, size, &name) && strcmp(name, STOREFILE_DB) == 0;
}

static bool vfs_moment_save(vfs_file *f) {
  char folder[4096];
  return !f->read_only && vfs_moment_folder(f, folder, sizeof folder) && vfs_map_save(&f->moment.map, folder);
}

/* ---- Making the map from the seals ---- */

static lode_status vfs_moment_seal(void *ctx, uint32_t page, uint64_t *version) {
  vfs_file *f = ctx;
  unsigned char seal[VFS_SEAL_BYTES];
  size_t got = 0;
  if (vfs_view_pread_seal(f, page, seal, &got) != SQLITE_OK) return LODE_IO;
  *version = got == sizeof seal ? vfs_seal_version(seal) : 0;
  if (got == sizeof seal) return LODE_OK;
  (void)!vfs_page_damaged(f, page, VFS_DAMAGE_PAGE, "the file is cut short");
  return LODE_CORRUPT;
}

static int vfs_moment_on_leaf(void *ctx, uint32_t page_number) {
  vfs_file *f = ctx;
  uint64_t version;
  if (page_number < 2 || page_number > f->commit.pages) return SQLITE_OK;
  lode_status st = vfs_moment_seal(f, page_number, &version);
  if (st == LODE_OK && version) st = vfs_map_clear(&f->moment.map, page_number);
  return vfs_moment_status(f, st);
}

/* Also for a database without a root (format 1), whose seals are taken as they are. */
static int vfs_moment_scan(vfs_file *f) {
  vfs_map *map = &f->moment.map;
  vfs_map_release(map);
  f->moment.proven = f->moment.rescan = false;
  if (f->commit.pages == 0) return SQLITE_OK; /* new */
  lode_status st = vfs_map_scan(map, f->commit.pages, sqf_lock_page(f->page_bytes), vfs_moment_seal, f);
  int rc = st == LODE_CORRUPT ? SQLITE_IOERR_DATA : vfs_moment_status(f, st);
  if (rc == SQLITE_OK) rc = vfs_page_each_free_leaf(f, vfs_moment_on_leaf, f);
  if (rc == SQLITE_OK && f->commit.number && map->commit.root != f->commit.root)
    rc = vfs_page_damaged(f, 0, VFS_DAMAGE_MIXED, "its pages are not of one moment");
  if (rc == SQLITE_OK)
    map->commit = (vfs_commit){f->commit.id, map->commit.root, f->commit.number, f->commit.pages};
  else
    vfs_map_release(map);
  return rc;
}

static int vfs_moment_scan_and_save(vfs_file *f) {
  int rc = vfs_moment_scan(f);
  if (rc == SQLITE_OK) (void)vfs_moment_save(f);
  return rc;
}

/* ---- Reading ---- */

static int vfs_moment_load(vfs_file *f) {
  char folder[4096];
  vfs_moment *m = &f->moment;
  m->proven = false;
  if (!m->rescan) {
    if (vfs_map_follow(&m->map, &f->commit)) return SQLITE_OK;
    if (vfs_moment_folder(f, folder, sizeof folder) && vfs_map_open(&m->map, folder, &f->commit)) return SQLITE_OK;
  }
  return vfs_moment_scan_and_save(f);
}

int vfs_moment_ready(vfs_file *f) {
  if (f->moment.ready) return SQLITE_OK;
  int rc = vfs_page_need_commit(f);
  if (rc != SQLITE_OK) return rc;
  f->moment.checked = f->commit.number != 0;
  if (f->moment.checked) rc = vfs_moment_load(f);
  f->moment.ready = rc == SQLITE_OK && f->lock != SQLITE_LOCK_NONE;
  return rc;
}

/* The base of the map is not what it was. */
static int vfs_moment_again(vfs_file *f) {
  f->moment.rescan = true;
  return f->moment.dirty ? vfs_moment_status(f, LODE_CORRUPT) : vfs_moment_scan_and_save(f);
}

int vfs_moment_version(vfs_file *f, uint32_t page_number, uint64_t *version) {
  vfs_map *map = &f->moment.map;
  lode_status st = vfs_map_get(map, page_number, version);
  if (st != LODE_CORRUPT) return vfs_moment_status(f, st);
  int rc = vfs_moment_again(f);
  return rc == SQLITE_OK ? vfs_moment_status(f, vfs_map_get(map, page_number, version)) : rc;
}

int vfs_moment_confirm(vfs_file *f, uint32_t page_number, uint64_t *version) {
  vfs_moment *m = &f->moment;
  lode_status st = m->proven ? LODE_OK : vfs_map_prove(&m->map);
  int rc = st == LODE_CORRUPT ? vfs_moment_again(f) : vfs_moment_status(f, st);
  if (rc == SQLITE_OK) rc = vfs_moment_status(f, vfs_map_get(&m->map, page_number, version));
  m->proven = rc == SQLITE_OK;
  return rc;
}

/* ---- Writing ---- */

/* The new root is computed from the map, so that is proven first, once for each time it was opened. */
static int vfs_moment_prepare(vfs_file *f) {
  vfs_moment *m = &f->moment;
  int rc = vfs_moment_ready(f);
  if (rc != SQLITE_OK) return rc;
  if (!m->checked) return vfs_moment_scan(f);
  lode_status st = m->map.proven ? LODE_OK : vfs_map_prove(&m->map);
  return st == LODE_CORRUPT ? vfs_moment_again(f) : vfs_moment_status(f, st);
}

int vfs_moment_begin(vfs_file *f) {
  vfs_moment *m = &f->moment;
  char folder[4096];
  if (m->dirty || m->undoing) return SQLITE_OK;
  int rc = vfs_moment_prepare(f);
  if (rc != SQLITE_OK) return rc;
  if (f->commit.number && vfs_moment_folder(f, folder, sizeof folder) && !vfs_map_can_append(&m->map, folder) &&
      !vfs_moment_save(f))
    m->map.writable = false; /* the next transaction tries again */
  m->dirty = m->checked = true;
  m->broken = false;
  vfs_map_begin(&m->map);
  return SQLITE_OK;
}

uint32_t vfs_moment_number(const vfs_file *f) {
  uint32_t next = f->commit.number + 1;
  return next == VFS_SEAL_EMPTY || next == 0 ? 1 : next;
}

/* The first page 1 of a database is written at once, so that the file has no hole, and again with the root. */
int vfs_moment_keep_first(vfs_file *f, const unsigned char *page, size_t n, bool *later) {
  vfs_moment *m = &f->moment;
  *later = false;
  if (!m->dirty) return SQLITE_OK;
  m->first_due = f->next_commit_id != 0 && journal_commit_id(page) == f->next_commit_id;
  if (!m->first_due) return SQLITE_OK;
  if (!m->first) m->first = mem_alloc(SQF_PAGE_MAX);
  if (!m->first) return SQLITE_IOERR_NOMEM;
  memcpy(m->first, page, n);
  *later = f->page_bytes == n && f->size >= n;
  return SQLITE_OK;
}

int vfs_moment_note(vfs_file *f, uint32_t page_number, const unsigned char *page, size_t n) {
  vfs_moment *m = &f->moment;
  if (!m->dirty || m->broken) return SQLITE_OK;
  lode_status st = vfs_map_set(&m->map, page_number, vfs_seal_version(page + n - VFS_SEAL_BYTES));
  if (st == LODE_CORRUPT) m->rescan = true;
  m->broken = st != LODE_OK;
  return vfs_moment_status(f, st);
}

static void vfs_moment_drop(vfs_moment *m) {
  vfs_map_release(&m->map);
  m->dirty = m->ready = m->first_due = m->undone = false;
}

static int vfs_moment_forget_leaf(void *ctx, uint32_t page_number) {
  vfs_file *f = ctx;
  vfs_map *map = &f->moment.map;
  if (page_number < 2 || page_number > map->commit.pages) return SQLITE_OK;
  return vfs_moment_status(f, vfs_map_clear(map, page_number)); /* its seal stays in the file */
}

/* Page 1 with the root. */
static int vfs_moment_write_first(vfs_file *f) {
  vfs_moment *m = &f->moment;
  size_t n = f->page_bytes;
  int rc = vfs_moment_status(f, m->broken ? LODE_CORRUPT : vfs_map_resize(&m->map, num_be32(m->first + 28)));
  if (rc == SQLITE_OK && m->undone) rc = vfs_page_each_leaf_from(f, num_be32(m->first + 32), vfs_moment_forget_leaf, f);
  if (rc != SQLITE_OK) return rc;
  m->map.commit.id = f->next_commit_id;
  m->map.commit.number = vfs_moment_number(f);
  journal_put_root(m->first, m->map.commit.root, m->map.commit.number);
  vfs_seal_page(1, m->first, n, 0);
  return vfs_file_pwrite(f, m->first, n, 0);
}

int vfs_moment_complete(vfs_file *f) {
  vfs_moment *m = &f->moment;
  if (!m->dirty) return SQLITE_OK;
  /* A rollback: what was not journaled has unknown versions. That of a new database has left no page. */
  if (!m->first_due || !f->page_bytes) {
    vfs_moment_drop(m);
    return SQLITE_OK;
  }
  int rc = vfs_moment_write_first(f);
  if (rc != SQLITE_OK) return rc;
  f->commit = m->map.commit;
  f->commit_known = true;
  f->cached_id = f->commit.id;
  m->dirty = m->first_due = m->undone = false;
  if (m->map.fd >= 0 && !vfs_map_append(&m->map)) m->map.writable = false; /* the next transaction writes a new file */
  return SQLITE_OK;
}

void vfs_moment_end(vfs_file *f) {
  if (f->moment.dirty) vfs_moment_drop(&f->moment);
  f->moment.ready = f->moment.undoing = f->moment.undone = f->moment.first_due = false;
}

void vfs_moment_release(vfs_file *f) {
  vfs_map_release(&f->moment.map);
  mem_free(f->moment.first);
  f->moment = (vfs_moment){.map = VFS_MAP_NONE};
}
