/* SPDX-License-Identifier: Apache-2.0 */
/* vfs_pages.c - the pages of a database file. See vfs_pages.h.
 *
 * Without SQLite the page size is that of the header if any page of a sample is valid with it, otherwise the size with
 * which most pages of a sample are valid.
 *
 * Invariants
 *   1. A page counts as sound only if its seal is valid, from whichever of the two files it was read.
 *   2. The caller asks for pages from 1 on; beyond the end of the file they read as zeros, which is not sound.
 *   3. Nothing here writes, and an I/O error of a connection is kept in `rc`: it is not damage.
 */
#include "vfs/vfs_pages.h"

#include "os/store_files.h"
#include "vfs/vfs_seal.h"

#include <errno.h>
#include <fcntl.h>

enum { PAGES_SAMPLE = 512 };

/* ---- Reading ---- */

/* Bytes that cannot be read are zeros. Returns 0, or the errno of a read that failed. */
static int pages_read_or_zero(int fd, void *buf, size_t n, uint64_t off) {
  size_t got = 0;
  int e = os_read_full(fd, buf, n, off, &got, NULL) == LODE_OK ? 0 : errno;
  if (e) got = 0;
  memset((char *)buf + got, 0, n - got);
  return e;
}

static void pages_read_bytes(vfs_pages *p, int fd, void *buf, size_t n, uint64_t off) {
  int e = pages_read_or_zero(fd, buf, n, off);
  if (!p->read_errno) p->read_errno = e;
}

int vfs_pages_read_rc(vfs_pages *p, uint32_t number, unsigned char *page) {
  return p->file->pMethods->xRead(p->file, page, (int)p->src.page_bytes,
                                  (sqlite3_int64)(number - 1) * (sqlite3_int64)p->src.page_bytes);
}

static bool pages_read_attached(vfs_pages *p, uint32_t number, unsigned char *page) {
  int rc = vfs_pages_read_rc(p, number, page);
  if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ && (p->rc == SQLITE_OK || p->rc == SQLITE_IOERR_DATA))
    p->rc = rc;
  return rc == SQLITE_OK;
}

static bool pages_read_file(vfs_pages *p, uint32_t number, unsigned char *page) {
  const sqf_image *image = sqf_images_find(&p->images, number);
  size_t n = p->src.page_bytes;
  if (image && p->journal_whole) {
    pages_read_bytes(p, p->journal_fd, page, n, image->offset);
    if (vfs_seal_is_valid(number, page, n)) return true;
  }
  pages_read_bytes(p, p->fd, page, n, (uint64_t)(number - 1) * n);
  if (vfs_seal_is_valid(number, page, n)) return true;
  if (!image || p->journal_whole) return false;
  pages_read_bytes(p, p->journal_fd, page, n, image->offset);
  if (vfs_seal_is_valid(number, page, n)) return true;
  pages_read_bytes(p, p->fd, page, n, (uint64_t)(number - 1) * n);
  return false;
}

bool vfs_pages_read(vfs_pages *p, uint32_t number, unsigned char *page) {
  if (!INVARIANT(number > 0 && p->src.page_bytes)) return false;
  bool sound = p->file ? pages_read_attached(p, number, page) : pages_read_file(p, number, page);
  p->damaged_reads += !sound;
  return sound;
}

vfs_damage vfs_pages_damage(const vfs_pages *p) {
  vfs_file_state state = {0};
  (void)p->file->pMethods->xFileControl(p->file, VFS_FCNTL_STATE, &state);
  return state.damage;
}

/* Commit a comes after b; they are numbered in a circle. */
static bool pages_commit_is_after(uint32_t a, uint32_t b) { return a != b && a - b < INT32_MAX; }

/* By a map of another commit, or none: what was written after the map's commit is not known. A commit after that of
 * page 1 shows that page 1 is old, if a map has it, or that the page is one that was to be rolled back. */
static bool pages_is_old_by_number(vfs_pages *p, uint32_t number, uint64_t version) {
  uint64_t wanted;
  uint32_t written = vfs_seal_commit_number(version);
  bool page1_is_old =
      p->proof == VFS_PAGES_OTHER_MAP && pages_commit_is_after(p->versions.commit.number, p->commit_number);
  if (number == 1) return page1_is_old;
  if (version == 0) return false;
  if (!page1_is_old && pages_commit_is_after(written, p->commit_number)) return true;
  if (p->proof == VFS_PAGES_UNPROVEN || pages_commit_is_after(written, p->versions.commit.number)) return false;
  return vfs_map_get(&p->versions, number, &wanted) == LODE_OK && wanted && wanted != version;
}

bool vfs_pages_is_old(vfs_pages *p, uint32_t number, const unsigned char *page) {
  uint64_t wanted, version = vfs_seal_version(page + p->src.page_bytes - VFS_SEAL_BYTES);
  if (!p->commit_number || number > p->declared) return false;
  if (p->proof != VFS_PAGES_PROVEN) return pages_is_old_by_number(p, number, version);
  return number > 1 && vfs_map_get(&p->versions, number, &wanted) == LODE_OK && wanted && wanted != version;
}

/* A damaged page is used as it is: the checksum of the row decides. */
static const unsigned char *pages_overflow_page(void *ctx, uint32_t number) {
  vfs_pages *p = ctx;
  bool sound = vfs_pages_read(p, number, p->chain);
  (void)sound;
  return p->chain;
}

sqf_page_use vfs_pages_use_of(vfs_pages *p, uint32_t number) {
  if (number == sqf_lock_page(p->src.page_bytes)) return SQF_PAGE_LOCK;
  if (number == 1) return SQF_PAGE_ROOT;
  if (!p->has_map) return SQF_PAGE_UNKNOWN;
  uint32_t map = sqf_map_page_of(&p->src, number);
  if (number > map && p->map_number != map) {
    p->map_sound = map <= p->src.pages && vfs_pages_read(p, map, p->map) && !vfs_pages_is_old(p, map, p->map);
    p->map_number = map;
  }
  if (number > map && !p->map_sound) return SQF_PAGE_UNKNOWN;
  return sqf_map_entry(&p->src, p->map, map, number);
}

/* ---- The page size ---- */

/* How many pages of a sample are valid with this page size, in 1/1000. */
static uint32_t pages_score_size(int fd, uint64_t file_bytes, uint32_t size, unsigned char *page) {
  uint64_t pages = file_bytes / size, step = pages / PAGES_SAMPLE + 1;
  uint32_t sound = 0, tried = 0;
  for (uint64_t i = 0; i < pages && i < UINT32_MAX - 1; i += step, tried++) {
    (void)pages_read_or_zero(fd, page, size, i * size);
    sound += vfs_seal_is_valid((uint32_t)i + 1, page, size);
  }
  if (!sound) return 0;
  uint32_t score = (uint32_t)((uint64_t)sound * 1000 / tried);
  return score ? score : 1;
}

/* 0: nothing looks like a page. `page` is scratch. */
static uint32_t pages_find_size(vfs_pages *p, uint64_t file_bytes, unsigned char *page) {
  int fd = p->fd;
  pages_read_bytes(p, fd, page, SQF_PAGE_MIN, 0);
  uint32_t declared = sqf_has_magic(page) ? sqf_page_size(page) : 0, best = 0, best_score = 0;
  if (declared && pages_score_size(fd, file_bytes, declared, page) > 0) return declared;
  for (uint32_t size = SQF_PAGE_MIN; size <= SQF_PAGE_MAX; size *= 2) {
    uint32_t score = pages_score_size(fd, file_bytes, size, page);
    if (score <= best_score) continue;
    best_score = score;
    best = size;
  }
  return best ? best : declared; /* every page is damaged, but rows may still be valid */
}

/* ---- The journal ---- */

/* Collects the valid page images of one segment of the journal. */
static lode_status pages_collect_images(vfs_pages *p, const journal_header *h, uint64_t size, uint64_t *off,
                                        lode_error *err) {
  uint32_t n = p->src.page_bytes;
  uint64_t each = (uint64_t)n + SQF_JOURNAL_RECORD_EXTRA, available = size > *off ? (size - *off) / each : 0;
  uint64_t records = h->records == UINT32_MAX ? available : h->records;
  for (uint64_t i = 0; i < records && i < available; i++, *off += each) {
    unsigned char number[4];
    (void)pages_read_or_zero(p->journal_fd, number, 4, *off);
    (void)pages_read_or_zero(p->journal_fd, p->chain, n, *off + 4);
    uint32_t page = num_be32(number);
    if (page == 0 || page > h->first_pages || !vfs_seal_is_valid(page, p->chain, n)) continue;
    if (!sqf_images_add(&p->images, page, *off + 4)) return err_nomem(err);
  }
  return LODE_OK;
}

static bool pages_header_at(const vfs_pages *p, uint64_t off, journal_header *h) {
  unsigned char sector[JOURNAL_SECTOR];
  (void)pages_read_or_zero(p->journal_fd, sector, sizeof sector, off);
  return journal_header_is_valid(sector, h) && h->page_bytes == p->src.page_bytes;
}

/* Collects the valid page images of a damaged journal. */
static lode_status pages_salvage_journal(vfs_pages *p, uint64_t size, lode_error *err) {
  journal_header h;
  for (uint64_t off = 0; off + JOURNAL_SECTOR <= size && pages_header_at(p, off, &h);) {
    off += JOURNAL_SECTOR;
    TRY(pages_collect_images(p, &h, size, &off, err));
    off = (off + JOURNAL_SECTOR - 1) / JOURNAL_SECTOR * JOURNAL_SECTOR;
  }
  sqf_images_sort(&p->images, false);
  return LODE_OK;
}

static lode_status pages_read_journal(vfs_pages *p, lode_error *err) {
  journal_findings j;
  lode_status st = journal_check(p->journal_fd, p->fd, JOURNAL_CHECK_IMAGES, &j);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK) return LODE_OK; /* the journal cannot be read */
  if (j.verdict == JOURNAL_DAMAGED) return pages_salvage_journal(p, j.size, err);
  if (j.verdict != JOURNAL_HOT || j.page_bytes != p->src.page_bytes) {
    journal_findings_release(&j);
    return LODE_OK;
  }
  p->images = j.images;
  p->journal_whole = true;
  if (j.first_pages && j.first_pages < p->src.pages) p->src.pages = j.first_pages; /* ignore pages appended since */
  return LODE_OK;
}

static lode_status pages_open_journal(vfs_pages *p, const char *folder, const char *name, lode_error *err) {
  strbuf journal = {0};
  strbuf_addf(&journal, "%s-journal", name);
  strbuf_addch(&journal, 0);
  if (journal.failed) {
    strbuf_release(&journal);
    return err_nomem(err);
  }
  p->journal_fd = beneath_open(folder, journal.data, O_RDONLY, 0);
  strbuf_release(&journal);
  return p->journal_fd >= 0 ? pages_read_journal(p, err) : LODE_OK;
}

/* ---- Opening ---- */

/* One block for both buffers, large enough for every page size: a file that replaces another may have a different one.
 */
static bool pages_need_buffers(vfs_pages *p) {
  if (!p->map) p->map = mem_alloc(2 * (size_t)SQF_PAGE_MAX);
  if (p->map) p->chain = p->map + SQF_PAGE_MAX;
  return p->map != NULL;
}

static void pages_set_source(vfs_pages *p, uint32_t page_bytes, uint64_t bytes, uint64_t pages) {
  p->src = (sqf_source){.page_bytes = page_bytes,
                        .usable = page_bytes - VFS_SEAL_BYTES,
                        .pages = pages < UINT32_MAX - 1 ? (uint32_t)pages : UINT32_MAX - 2,
                        .bytes = bytes,
                        .overflow_page = pages_overflow_page,
                        .ctx = p};
}

static void pages_read_first(vfs_pages *p, const unsigned char *page1) {
  uint64_t root;
  journal_get_root(page1, &root, &p->commit_number);
  p->change = num_be32(page1 + 24);
  p->commit_id = journal_commit_id(page1);
  p->declared = num_be32(page1 + 28);
  p->has_map = num_be32(page1 + 52) != 0;
  p->format = num_be32(page1 + 60);
}

/* ---- Versions ---- */

static lode_status pages_seal(void *ctx, uint32_t number, uint64_t *version) {
  vfs_pages *p = ctx;
  const sqf_image *image = p->journal_whole ? sqf_images_find(&p->images, number) : NULL;
  uint64_t n = p->src.page_bytes, at = image ? image->offset : (uint64_t)(number - 1) * n;
  unsigned char seal[VFS_SEAL_BYTES];
  pages_read_or_zero(image ? p->journal_fd : p->fd, seal, sizeof seal, at + n - sizeof seal);
  *version = vfs_seal_version(seal);
  return LODE_OK;
}

/* Leaves of the free list have no version. The number of pages bounds the loop, in case the list is circular. */
static lode_status pages_clear_leaves(vfs_pages *p, uint32_t trunk) {
  for (uint32_t left = p->declared; trunk > 1 && trunk <= p->declared && left > 0; left--) {
    if (!pages_read_file(p, trunk, p->chain)) return LODE_CORRUPT;
    uint32_t leaves = sqf_trunk_leaves(p->chain, p->src.usable);
    for (uint32_t i = 0; i < leaves; i++) {
      uint32_t leaf = num_be32(p->chain + 8 + 4 * (size_t)i);
      if (leaf > 1 && leaf <= p->declared) TRY(vfs_map_clear(&p->versions, leaf));
    }
    trunk = num_be32(p->chain);
  }
  return LODE_OK;
}

/* Do the seals lead to the root? */
static bool pages_scan_versions(vfs_pages *p, uint32_t trunk, const vfs_commit *commit) {
  uint32_t lock_page = sqf_lock_page(p->src.page_bytes);
  if (p->declared > p->src.pages) return false;
  return vfs_map_scan(&p->versions, p->declared, lock_page, pages_seal, p) == LODE_OK &&
         pages_clear_leaves(p, trunk) == LODE_OK && p->versions.commit.root == commit->root;
}

static void pages_open_versions(vfs_pages *p, const unsigned char *page1, const char *folder, const char *name) {
  vfs_commit commit = {.id = journal_commit_id(page1), .pages = p->declared};
  bool has_file = strcmp(name, STOREFILE_DB) == 0;
  uint32_t trunk = num_be32(page1 + 32);
  journal_get_root(page1, &commit.root, &commit.number);
  if (!commit.number) return;
  bool by_file = has_file && vfs_map_open(&p->versions, folder, &commit) && vfs_map_prove(&p->versions) == LODE_OK;
  if (by_file || pages_scan_versions(p, trunk, &commit))
    p->proof = VFS_PAGES_PROVEN;
  else if (has_file && vfs_map_open_newest(&p->versions, folder))
    p->proof = VFS_PAGES_OTHER_MAP;
  else
    vfs_map_release(&p->versions);
}

lode_status vfs_pages_open(const char *file, vfs_pages *p, lode_error *err) {
  lode_status st = LODE_OK;
  struct stat sb;
  char folder[4096];
  const char *name;
  *p = (vfs_pages){.fd = -1, .journal_fd = -1, .has_map = true, .versions = VFS_MAP_NONE};
  if (!beneath_split(file, folder, sizeof folder, &name)) return err_errno(err, errno, file);
  p->fd = beneath_open(folder, name, O_RDONLY, 0);
  if (p->fd < 0 || OS_RETRY(os_api->fstat(p->fd, &sb)) != 0) {
    st = errno == ENOENT || errno == ENOTDIR ? err_set(err, LODE_NOT_FOUND, "there is no file %s", file)
                                             : err_errno(err, errno, file);
    goto done;
  }
  if (!pages_need_buffers(p)) {
    st = err_nomem(err);
    goto done;
  }
  uint64_t bytes = (uint64_t)sb.st_size;
  uint32_t page_bytes = pages_find_size(p, bytes, p->map);
  if (!page_bytes && p->read_errno) {
    st = err_errno(err, p->read_errno, file);
    goto done;
  }
  if (!page_bytes) {
    st = err_set(err, LODE_CORRUPT,
                 "%s holds no page of a Lode store: it is another file, or nothing is left of it; restore a backup",
                 file);
    goto done;
  }
  pages_set_source(p, page_bytes, bytes, (bytes + page_bytes - 1) / page_bytes);
  TRY_GOTO(pages_open_journal(p, folder, name, err));
  if (vfs_pages_read(p, 1, p->map)) {
    pages_read_first(p, p->map);
    pages_open_versions(p, p->map, folder, name);
  }
done:
  if (st != LODE_OK) vfs_pages_close(p);
  return st;
}

int vfs_pages_attach(vfs_pages *p, sqlite3 *sql) {
  unsigned char head[96]; /* not 100 bytes: the VFS does not verify that read, which SQLite uses as a hint */
  sqlite3_int64 size = 0;
  p->fd = p->journal_fd = p->versions.fd = -1;
  p->src.page_bytes = p->map_number = 0;
  p->rc = SQLITE_OK;
  if (!pages_need_buffers(p)) return SQLITE_NOMEM;
  int rc = sqlite3_file_control(sql, "main", SQLITE_FCNTL_FILE_POINTER, &p->file);
  if (rc == SQLITE_OK) rc = p->file->pMethods->xRead(p->file, head, sizeof head, 0);
  if (rc == SQLITE_OK) rc = p->file->pMethods->xFileSize(p->file, &size);
  if (rc != SQLITE_OK) return rc;
  uint32_t page_bytes = sqf_page_size(head);
  if (!page_bytes) return SQLITE_NOTADB;
  uint64_t whole = (uint64_t)size / page_bytes;
  pages_set_source(p, page_bytes, whole * page_bytes, whole);
  pages_read_first(p, head);
  return SQLITE_OK;
}

void vfs_pages_close(vfs_pages *p) {
  if (p->fd >= 0) (void)os_api->close(p->fd);
  if (p->journal_fd >= 0) (void)os_api->close(p->journal_fd);
  sqf_images_release(&p->images);
  vfs_map_release(&p->versions);
  mem_free(p->map);
  *p = (vfs_pages)VFS_PAGES_NONE;
}
