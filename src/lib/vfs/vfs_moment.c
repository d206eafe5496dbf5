/* SPDX-License-Identifier: Apache-2.0 */
/* vfs_moment.c - is each page of the version that the newest commit left?
 *
 * A page checksum proves that a page is intact, not that it is the newest: a disk that lost a write, or a copy made
 * while somebody wrote, leaves intact pages of different moments. So page 1 holds, beside the commit id, the number of
 * the commit and the root of the page map (vfs_map.h), and a page is compared with the map when it is read.
 *   1. The root in page 1 is the sum over pages 2 to N, N being the number of pages that page 1 declares.
 *   2. A page of zeros adds nothing, and a page without a version reads as zeros, whatever the file holds. A leaf of
 *      the free list is such a page (secure_delete=ON zeroes what is freed): SQLite does not journal it when it is
 *      reused, so a crash may leave anything there.
 *   3. While a transaction writes, its connection's map has the versions that are in the file. Versions of a
 *      transaction that was rolled back are dropped with the map.
 *   4. Page 1 is written before most other pages, so it is written again, with the root, when SQLite announces the
 *      sync. SQLite's own image of page 1 lacks that; the journal gets it (vfs_journal.c).
 *   5. A map that cannot be proven is made from the seals of all pages, and the free list. If that does not lead to
 *      the root either, the pages are not of one moment.
 * The map's file is beside a database that is called lode.db; others have their map in memory alone. It is written
 * before the first page of a transaction, when it is missing or its records are long, and by a connection that had to
 * make the map and may write. A record is appended before the database is synced, under the EXCLUSIVE lock; if the
 * transaction does not come about, nobody looks for it.
 */
#include "vfs/vfs_internal.h"

#include "os/store_files.h"

static int vfs_moment_status(vfs_file *f, lode_status st) {
  return st == LODE_OK ? SQLITE_OK : st == LODE_NOMEM ? SQLITE_IOERR_NOMEM : vfs_file_note_errno(f, SQLITE_IOERR_READ);
}

/* The folder of the map's file; false: this database has none. */
static bool vfs_moment_folder(const vfs_file *f, char *folder, size_t size) {
  const char *name;
  return beneath_split(f->path, folder, size, &name) && strcmp(name, STOREFILE_DB) == 0;
}

static void vfs_moment_save(vfs_file *f) {
  char folder[4096];
  struct stat sb;
  if (f->read_only || !vfs_moment_folder(f, folder, sizeof folder)) return;
  if (OS_RETRY(os_api->fstat(f->fd, &sb)) == 0) (void)vfs_map_save(&f->moment.map, folder, sb.st_mode & 0777);
}

/* ---- Making the map from the seals ---- */

static int vfs_moment_on_leaf(void *ctx, uint32_t page_number) {
  vfs_file *f = ctx;
  if (page_number > f->commit.pages) return SQLITE_OK;
  return vfs_moment_status(f, vfs_map_set(&f->moment.map, page_number, 0));
}

static int vfs_moment_read_seals(vfs_file *f) {
  uint32_t lock_page = sqf_lock_page(f->page_bytes);
  for (uint32_t page = 2; page <= f->commit.pages && page > 1; page++) {
    unsigned char seal[VFS_SEAL_BYTES];
    size_t got = 0;
    if (page == lock_page) continue;
    int rc = vfs_view_pread_seal(f, page, seal, &got);
    if (rc != SQLITE_OK) return rc;
    if (got < sizeof seal) return vfs_page_damaged(f, page, VFS_DAMAGE_PAGE, "the file is cut short");
    rc = vfs_moment_status(f, vfs_map_set(&f->moment.map, page, vfs_seal_version(seal)));
    if (rc != SQLITE_OK) return rc;
  }
  return SQLITE_OK;
}

/* Also for a database without a root (format 1), whose seals are taken as they are. */
static int vfs_moment_scan(vfs_file *f) {
  vfs_map *map = &f->moment.map;
  vfs_map_release(map);
  if (f->commit.pages == 0) return SQLITE_OK; /* new */
  int rc = vfs_moment_read_seals(f);
  if (rc == SQLITE_OK) rc = vfs_page_each_free_leaf(f, vfs_moment_on_leaf, f);
  if (rc == SQLITE_OK) rc = vfs_moment_status(f, vfs_map_resize(map, f->commit.pages));
  if (rc == SQLITE_OK && f->commit.number && map->commit.root != f->commit.root)
    rc = vfs_page_damaged(f, 0, VFS_DAMAGE_MIXED, "its pages are not of one moment");
  if (rc == SQLITE_OK)
    map->commit = (vfs_commit){f->commit.id, map->commit.root, f->commit.number, f->commit.pages};
  else
    vfs_map_release(map);
  return rc;
}

/* ---- Reading ---- */

static int vfs_moment_load(vfs_file *f) {
  char folder[4096];
  if (vfs_map_follow(&f->moment.map, &f->commit)) return SQLITE_OK;
  if (vfs_moment_folder(f, folder, sizeof folder) && vfs_map_open(&f->moment.map, folder, &f->commit)) return SQLITE_OK;
  int rc = vfs_moment_scan(f);
  if (rc == SQLITE_OK) vfs_moment_save(f);
  return rc;
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

int vfs_moment_version(vfs_file *f, uint32_t page_number, uint64_t *version) {
  lode_status st = vfs_map_get(&f->moment.map, page_number, version);
  if (st != LODE_CORRUPT || f->moment.dirty) return vfs_moment_status(f, st);
  int rc = vfs_moment_scan(f); /* the map's file is damaged */
  if (rc != SQLITE_OK) return rc;
  vfs_moment_save(f);
  return vfs_moment_status(f, vfs_map_get(&f->moment.map, page_number, version));
}

/* ---- Writing ---- */

int vfs_moment_begin(vfs_file *f) {
  vfs_moment *m = &f->moment;
  if (m->dirty || m->undoing) return SQLITE_OK;
  int rc = vfs_moment_ready(f);
  if (rc == SQLITE_OK && !m->checked) rc = vfs_moment_scan(f);
  if (rc != SQLITE_OK) return rc;
  lode_status st = vfs_map_read_all(&m->map);
  rc = st == LODE_CORRUPT ? vfs_moment_scan(f) : vfs_moment_status(f, st);
  if (rc != SQLITE_OK) return rc;
  if (f->commit.number && !vfs_map_can_append(&m->map)) vfs_moment_save(f);
  m->dirty = m->checked = true;
  m->n_changed = 0;
  return SQLITE_OK;
}

uint32_t vfs_moment_number(const vfs_file *f) {
  uint32_t next = f->commit.number + 1;
  return next == VFS_SEAL_EMPTY || next == 0 ? 1 : next;
}

static int vfs_moment_keep_first(vfs_file *f, const unsigned char *page, size_t n) {
  vfs_moment *m = &f->moment;
  m->first_due = f->next_commit_id != 0 && journal_commit_id(page) == f->next_commit_id;
  if (!m->first_due) return SQLITE_OK;
  if (!m->first) m->first = mem_alloc(SQF_PAGE_MAX);
  if (!m->first) return SQLITE_IOERR_NOMEM;
  memcpy(m->first, page, n);
  return SQLITE_OK;
}

int vfs_moment_wrote(vfs_file *f, uint32_t page_number, const unsigned char *page, size_t n) {
  vfs_moment *m = &f->moment;
  if (!m->dirty) return SQLITE_OK;
  if (page_number == 1) return vfs_moment_keep_first(f, page, n);
  if (!mem_grow(&m->changed, &m->cap_changed, m->n_changed + 1, sizeof *m->changed)) return SQLITE_IOERR_NOMEM;
  m->changed[m->n_changed++] = page_number;
  return vfs_moment_status(f, vfs_map_set(&m->map, page_number, vfs_seal_version(page + n - VFS_SEAL_BYTES)));
}

static void vfs_moment_drop(vfs_moment *m) {
  vfs_map_release(&m->map);
  m->dirty = m->ready = m->first_due = false;
}

int vfs_moment_complete(vfs_file *f) {
  vfs_moment *m = &f->moment;
  if (!m->dirty) return SQLITE_OK;
  if (!m->first_due) { /* a rollback: what was not journaled has unknown versions */
    vfs_moment_drop(m);
    return SQLITE_OK;
  }
  size_t n = f->page_bytes;
  int rc = vfs_moment_status(f, vfs_map_resize(&m->map, num_be32(m->first + 28)));
  if (rc != SQLITE_OK) return rc;
  m->map.commit.id = f->next_commit_id;
  m->map.commit.number = vfs_moment_number(f);
  journal_put_root(m->first, m->map.commit.root, m->map.commit.number);
  vfs_seal_page(1, m->first, n, 0);
  rc = vfs_file_pwrite(f, m->first, n, 0);
  if (rc != SQLITE_OK) return rc;
  f->commit = m->map.commit;
  f->commit_known = true;
  m->dirty = m->first_due = false;
  if (m->map.fd >= 0 && !vfs_map_append(&m->map, m->changed, m->n_changed)) {
    (void)os_api->close(m->map.fd); /* the next transaction writes a new file */
    m->map.fd = -1;
  }
  return SQLITE_OK;
}

void vfs_moment_end(vfs_file *f) {
  if (f->moment.dirty) vfs_moment_drop(&f->moment);
  f->moment.ready = f->moment.undoing = f->moment.first_due = false;
}

void vfs_moment_release(vfs_file *f) {
  vfs_map_release(&f->moment.map);
  mem_free(f->moment.changed);
  mem_free(f->moment.first);
  f->moment = (vfs_moment){.map = VFS_MAP_NONE};
}
