/* SPDX-License-Identifier: Apache-2.0 */
/* vfs_journal.c - rollback journals with checksums.
 *
 * SQLite writes a journal as segments: a header (28 bytes in a sector of its own, at a multiple of 512), then records:
 * page number, page image, checksum. All integers are big-endian. Magic and record count stay zero until the records
 * are synced; then they are filled in by a write of 12 bytes, and synced, and only then does SQLite modify the
 * database. A transaction has one segment unless its cache spills. We add, little-endian, in the header's unused bytes:
 *   28  CRC-32C of the 28 bytes                                               (each header)
 *   32  number of completed segments; 36  CRC-32C of it, seeded with the CRC at 28           (first header only)
 *   40  commit id of the database before the transaction; 48  after it; 56  CRC-32C of both  (first header only)
 * A header is filled in by two writes to its sector: everything but the first byte, then that byte. If the disk is full
 * half-way, or a power cut preserves only the second write (nothing was synced yet, so the database is unmodified), the
 * first byte or everything after the 28 is zero: such a header was never completed (journal.c). The segment count is
 * incremented and synced after the new segment's header was synced and before SQLite's sync returns; if that write is
 * interrupted, the CRC is still that of the previous count, which is valid. Hence:
 *   1. A database page changed by a transaction is in a segment that the first header counts.
 *   2. What is counted was durable. If any of it cannot be proven, something was lost or changed since: damage.
 *   3. What is not counted may be anything; it is rolled back if it can be proven, and needs no rollback if it
 *      ends before a header with the magic.
 *   4. The database is never shorter than the original size in the journal: a transaction only extends it, until
 *      the journal has been truncated.
 * SQLite takes whatever it cannot read in a journal for its end. That is right for what is not counted. Headers and
 * sums of what is counted are therefore checked when they are read, also by a transaction that rolls itself back.
 * Super-journals (commits over several files) are not supported: their marker is never shown to SQLite.
 */
#include "vfs/vfs_internal.h"

#include <fcntl.h>

#include "base/crc32c.h"

/* ---- Checking ---- */

int vfs_journal_damaged(vfs_file *f, const char *why, uint64_t off) {
  f->db->state.damaged_journal = true;
  sqlite3_log(SQLITE_IOERR_DATA, "journal %s is damaged at %llu: %s", f->path, (unsigned long long)off, why);
  return SQLITE_IOERR_DATA;
}

int vfs_journal_check(vfs_file *f, journal_depth depth, journal_findings *findings) {
  lode_status st = journal_check(f->fd, f->db->fd, depth, findings);
  if (st == LODE_OK) return SQLITE_OK;
  return st == LODE_NOMEM ? SQLITE_IOERR_NOMEM : vfs_file_note_errno(f, SQLITE_IOERR_READ);
}

int vfs_journal_check_empty_db(vfs_file *db) {
  vfs_file f = {.kind = VFS_FILE_JOURNAL, .path = sqlite3_filename_journal(db->path), .db = db, .fd = -1};
  journal_findings findings;
  struct stat st;
  bool exists = false;
  /* SQLite would delete such a journal, and with it all that is left of the database */
  int rc = vfs_stat_path(f.path, &st, &exists);
  if (rc != SQLITE_OK || !exists || !S_ISREG(st.st_mode) || st.st_size == 0) return rc;
  rc = vfs_file_open(&f, O_RDONLY, 0);
  if (rc != SQLITE_OK) return rc;
  rc = vfs_journal_check(&f, JOURNAL_CHECK_HEADER, &findings);
  if (rc == SQLITE_OK && findings.verdict == JOURNAL_DAMAGED)
    rc = vfs_journal_damaged(&f, "the database was emptied", 0);
  vfs_file_close(&f);
  return rc;
}

/* ---- Opening ----
 *
 * Probe: SQLite has found a journal, holds a SHARED lock, and checks whether the first byte is zero.
 * Rollback: it is not, the lock is EXCLUSIVE, and the journal is about to be rolled back.
 * Write: a transaction begins.
 */

/* Renames the journal to make way for a new one. Nothing is synced: syncing the next journal's name covers this. */
static int vfs_journal_quarantine(vfs_file *f, const char *why) {
  char dir[4096];
  const char *name;
  if (!beneath_split(f->path, dir, sizeof dir, &name) || beneath_set_aside(dir, name) != 0)
    return vfs_file_note_errno(f, SQLITE_IOERR_ACCESS);
  sqlite3_log(SQLITE_NOTICE, "journal %s was set aside: %s", f->path, why);
  return SQLITE_OK;
}

/* Whoever may read the database must also be able to roll it back. */
static unsigned vfs_journal_mode(const vfs_file *db) {
  struct stat st;
  return os_api->fstat(db->fd, &st) == 0 ? st.st_mode & 0777 : 0600;
}

int vfs_journal_lstat(vfs_file *f, vfs_name_kind *holds) {
  struct stat st;
  char dir[4096];
  const char *name;
  *holds = VFS_NAME_ABSENT;
  bool seen = beneath_split(f->path, dir, sizeof dir, &name) && beneath_lstat(dir, name, &st) == 0;
  if (!seen) return errno == ENOENT ? SQLITE_OK : vfs_file_note_errno(f, SQLITE_IOERR_ACCESS);
  *holds = S_ISREG(st.st_mode) ? VFS_NAME_FILE : VFS_NAME_NOT_REGULAR;
  return SQLITE_OK;
}

/* Opens the file under the journal's name, or creates it. */
static int vfs_journal_open_or_create(vfs_file *f, bool *made) {
  vfs_name_kind holds;
  *made = false;
  int rc = vfs_file_open(f, O_RDWR, 0);
  if (rc != SQLITE_CANTOPEN) return rc;
  rc = vfs_journal_lstat(f, &holds);
  if (rc == SQLITE_OK && holds == VFS_NAME_NOT_REGULAR) rc = vfs_journal_quarantine(f, "it is no file");
  if (rc != SQLITE_OK) return rc;
  if (holds == VFS_NAME_FILE) return SQLITE_CANTOPEN;
  rc = vfs_file_open(f, O_RDWR | O_CREAT | O_EXCL, vfs_journal_mode(f->db));
  *made = rc == SQLITE_OK;
  return rc == SQLITE_CANTOPEN && errno == EEXIST ? vfs_file_open(f, O_RDWR, 0) : rc;
}

/* Replaces a stray journal with an empty file. */
static int vfs_journal_replace(vfs_file *f, const char *why) {
  bool made;
  int rc = vfs_journal_quarantine(f, why);
  vfs_file_close(f);
  return rc == SQLITE_OK ? vfs_journal_open_or_create(f, &made) : rc;
}

static int vfs_journal_show_byte(vfs_file *f, unsigned char first_byte) {
  f->shown = true;
  f->first_byte = first_byte;
  return SQLITE_OK;
}

int vfs_journal_open_probe(vfs_file *f) {
  journal_findings findings;
  unsigned char first = 0;
  size_t got;
  int rc;
  if (f->db->read_only) {
    rc = vfs_view_open(f->db);
    return rc == SQLITE_OK ? vfs_journal_show_byte(f, 0) : rc;
  }
  rc = vfs_file_open(f, O_RDONLY, 0);
  if (rc == SQLITE_CANTOPEN && errno == ENOENT) return vfs_journal_show_byte(f, 0); /* rolled back in the meantime */
  if (rc == SQLITE_OK) rc = vfs_file_pread(f, &first, 1, 0, &got);
  if (rc != SQLITE_OK || first != 0) return rc;
  /* complete except for this byte, or damaged: finding out requires the lock */
  rc = vfs_journal_check(f, JOURNAL_CHECK_HEADER, &findings);
  return rc == SQLITE_OK ? vfs_journal_show_byte(f, findings.verdict == JOURNAL_NONE ? 0 : sqf_journal_magic[0]) : rc;
}

int vfs_journal_open_rollback(vfs_file *f) {
  journal_findings findings;
  bool made;
  int rc = vfs_journal_open_or_create(f, &made);
  if (rc == SQLITE_OK) rc = vfs_journal_check(f, JOURNAL_CHECK_RECORDS, &findings);
  if (rc != SQLITE_OK) return rc;
  if (findings.verdict == JOURNAL_DAMAGED) return vfs_journal_damaged(f, findings.why, findings.at);
  if (findings.verdict == JOURNAL_STRAY) return vfs_journal_replace(f, findings.why);
  if (findings.verdict == JOURNAL_NONE) return SQLITE_OK;
  f->db->moment.undoing = true;
  if (findings.head_torn) rc = vfs_file_pwrite(f, sqf_journal_magic, sizeof sqf_journal_magic, 0);
  f->journal.page_bytes = findings.page_bytes;
  f->journal.proven = findings.proven;
  f->size = findings.size;
  return rc;
}

/* What a crashed transaction left unfinished is useless, because the database was not modified, but its tail could be
 * mistaken for ours. A hot journal would have been rolled back before anyone could get the lock that we hold. */
static int vfs_journal_clear_leftovers(vfs_file *f) {
  journal_findings findings;
  uint64_t size = 0;
  int rc = vfs_file_bytes(f, &size);
  if (rc != SQLITE_OK || size == 0) return rc;
  rc = vfs_journal_check(f, JOURNAL_CHECK_HEADER, &findings);
  if (rc != SQLITE_OK) return rc;
  if (findings.verdict == JOURNAL_STRAY) return vfs_journal_replace(f, findings.why);
  if (findings.verdict != JOURNAL_NONE) return vfs_journal_damaged(f, "it came while the database was locked", 0);
  if (OS_RETRY(os_api->ftruncate(f->fd, 0)) != 0) return vfs_file_note_errno(f, SQLITE_IOERR_TRUNCATE);
  return SQLITE_OK;
}

int vfs_journal_open_write(vfs_file *f) {
  vfs_file *db = f->db;
  bool made, moved = false;
  if (!INVARIANT(db->lock >= SQLITE_LOCK_RESERVED)) return SQLITE_MISUSE;
  int rc = vfs_journal_open_or_create(f, &made);
  if (rc == SQLITE_OK) rc = vfs_file_was_moved(db, &moved);
  if (rc != SQLITE_OK) return rc;
  /* SQLite has already checked whether the database was moved, but it may have been moved before the journal was
   * opened, which then belongs to another store. Nothing has been written to it. */
  if (moved) return SQLITE_READONLY_DBMOVED;
  rc = vfs_journal_clear_leftovers(f);
  f->name_due = made || !db->journal_named || db->journal_dev != f->dev || db->journal_ino != f->ino;
  return rc;
}

/* ---- Reading and writing ---- */

static bool vfs_journal_has_magic(const void *buf) {
  return memcmp(buf, sqf_journal_magic, sizeof sqf_journal_magic) == 0;
}

/* SQLite takes a header without the magic for the end of the journal, and believes the rest of it. */
static int vfs_journal_see_header(vfs_file *f, unsigned char *magic, uint64_t off) {
  vfs_journal_state *j = &f->journal;
  unsigned char sector[JOURNAL_SECTOR] = {0};
  journal_header header;
  size_t got = 0;
  int rc = vfs_file_pread(f, sector, JOURNAL_HEADER_BYTES + 4, off, &got);
  if (rc != SQLITE_OK) return rc;
  bool valid = journal_header_is_valid(sector, &header);
  if (!valid && off < j->proven) return vfs_journal_damaged(f, "a header is wrong", off);
  memcpy(magic, sector, sizeof sqf_journal_magic);
  memset(j->seen, 0, sizeof j->seen);
  if (valid) memcpy(j->seen, sector, sizeof j->seen);
  j->seen_off = off;
  return SQLITE_OK;
}

/* A field of a header that is known. */
static bool vfs_journal_read_field(const vfs_journal_state *j, void *buf, uint64_t off) {
  const unsigned char *header = vfs_journal_has_magic(j->seen) ? j->seen : NULL;
  uint64_t at = j->seen_off;
  if (!header && j->page_bytes && j->proven == 0) { /* of a transaction that has not synced its journal */
    header = j->header;
    at = j->header_off;
  }
  if (!header || off < at + 8 || off > at + JOURNAL_HEADER_BYTES - 4) return false;
  memcpy(buf, header + (off - at), 4);
  return true;
}

/* A page image, or the sum after it: SQLite takes a wrong sum for the end of the journal. */
static int vfs_journal_check_part(vfs_file *f, const void *buf, size_t n, uint64_t off) {
  vfs_journal_state *j = &f->journal;
  bool image = j->in_record && n == j->page_bytes && off == j->record_off + 4;
  bool sum = j->has_image && n == 4 && off == j->record_off + 4 + j->page_bytes;
  j->has_image = image;
  if (image && !vfs_seal_is_valid(j->record_page, buf, n)) return vfs_journal_damaged(f, "a page image is wrong", off);
  if (image) j->image_sum = sqf_journal_sum(num_be32(j->seen + 12), buf, (uint32_t)n);
  if (sum && off < j->proven && vfs_journal_has_magic(j->seen) && num_be32(buf) != j->image_sum)
    return vfs_journal_damaged(f, "a record's sum is wrong", off);
  if (image || sum) return SQLITE_OK;
  j->in_record = n == 4;
  if (!j->in_record) return SQLITE_OK;
  j->record_off = off;
  j->record_page = num_be32(buf);
  return SQLITE_OK;
}

int vfs_journal_read(vfs_file *f, void *buf, size_t n, uint64_t off) {
  size_t got = 0;
  if (n == 4 && vfs_journal_read_field(&f->journal, buf, off)) return SQLITE_OK;
  int rc = vfs_file_pread(f, buf, n, off, &got);
  if (rc != SQLITE_OK) return rc;
  memset((char *)buf + got, 0, n - got);
  if (got < n && off + got < f->size) return vfs_journal_damaged(f, "it was cut short", off + got);
  if (got < n) return SQLITE_IOERR_SHORT_READ;
  if (n != sizeof sqf_journal_magic) return vfs_journal_check_part(f, buf, n, off);
  /* Eight bytes at the very end: SQLite looks for the marker of a super-journal, which only page content could fake. */
  if (off + n == f->size) memset(buf, 0, n);
  if (off + n < f->size && off % JOURNAL_SECTOR == 0) return vfs_journal_see_header(f, buf, off);
  return SQLITE_OK;
}

/* Writes the first byte last. */
static int vfs_journal_fill_header(vfs_file *f, const unsigned char *bytes, size_t n, uint64_t off) {
  int rc = vfs_file_pwrite(f, bytes + 1, n - 1, off + 1);
  return rc == SQLITE_OK ? vfs_file_pwrite(f, bytes, 1, off) : rc;
}

/* Writes a header, its CRC and, for the first one, the segment count and the commit ids. */
static int vfs_journal_write_header(vfs_file *f, uint64_t off) {
  vfs_journal_state *j = &f->journal;
  unsigned char out[JOURNAL_HEADER_FULL] = {0};
  uint32_t crc = crc32c_update(0, j->header, JOURNAL_HEADER_BYTES);
  j->proven = f->size; /* its records are written, and synced by now */
  memcpy(out, j->header, JOURNAL_HEADER_BYTES);
  num_put_le32(out + JOURNAL_HEADER_BYTES, crc);
  if (off > 0) {
    j->count_due = true;
    return vfs_journal_fill_header(f, out, JOURNAL_HEADER_COUNT_OFF, off);
  }
  j->first_crc = crc;
  j->segments = 1;
  num_put_le32(out + JOURNAL_HEADER_COUNT_OFF, 1);
  num_put_le32(out + JOURNAL_HEADER_COUNT_OFF + 4, crc32c_update_u32(crc, 1));
  journal_put_ids(out, j->before, j->after);
  return vfs_journal_fill_header(f, out, JOURNAL_HEADER_FULL, 0);
}

/* Chooses the transaction's commit ids, for its first header. Page 1 gets the second one when it is written. */
static int vfs_journal_choose_ids(vfs_file *f) {
  vfs_journal_state *j = &f->journal;
  int rc = vfs_page_need_commit(f->db);
  j->before = f->db->commit.id;
  do j->after = rand_u64();
  while (j->after == 0 || j->after == j->before);
  f->db->next_commit_id = j->after;
  return rc;
}

/* The image of a page is what the file holds. SQLite's page 1 may lack the root (vfs_moment.c); a page that was free
 * has no seal. */
static void vfs_journal_seal_image(const vfs_file *db, uint32_t page_number, unsigned char *page, size_t n) {
  if (page_number == 1) journal_put_root(page, db->commit.root, db->commit.number);
  vfs_seal_changed_page(page_number, page, n, page_number == 1 ? 0 : db->commit.number);
}

/* A write is recognized by its length and offset: headers are at multiples of 512, and a page image never is, because
 * records are 8 bytes longer than a multiple of 512 and the image starts 4 bytes into its record. */
static int vfs_journal_write_part(vfs_file *f, void *buf, size_t n, uint64_t off) {
  vfs_journal_state *j = &f->journal;
  bool in_record = j->in_record;
  j->in_record = false;
  if (n == JOURNAL_SECTOR && off % JOURNAL_SECTOR == 0) {
    memcpy(j->header, buf, JOURNAL_HEADER_BYTES);
    j->header_off = off;
    j->page_bytes = num_be32(j->header + 24);
    int rc = off == 0 ? vfs_journal_choose_ids(f) : SQLITE_OK;
    if (rc == SQLITE_OK) rc = vfs_file_pwrite(f, buf, n, off);
    if (rc == SQLITE_OK && vfs_journal_has_magic(buf)) rc = vfs_journal_write_header(f, off);
    return rc;
  }
  if (n == 12 && off == j->header_off && j->page_bytes && vfs_journal_has_magic(buf)) {
    memcpy(j->header, buf, n);
    return vfs_journal_write_header(f, off);
  }
  if (n == 4 && !(in_record && off == j->record_off + 4 + j->page_bytes)) {
    j->in_record = true;
    j->record_off = off;
    j->record_page = num_be32(buf);
  } else if (in_record && n == j->page_bytes && off == j->record_off + 4) {
    j->in_record = true; /* its checksum follows */
    if (sqf_page_size_valid(n)) vfs_journal_seal_image(f->db, j->record_page, buf, n);
  }
  return vfs_file_pwrite(f, buf, n, off);
}

int vfs_journal_write(vfs_file *f, void *buf, size_t n, uint64_t off) {
  int rc = vfs_journal_write_part(f, buf, n, off);
  if (rc == SQLITE_OK && off + n > f->size) f->size = off + n;
  memset(f->journal.seen, 0, sizeof f->journal.seen);
  return rc;
}

int vfs_journal_sync(vfs_file *f) {
  vfs_journal_state *j = &f->journal;
  unsigned char out[8];
  int rc = vfs_file_fdatasync(f);
  if (rc != SQLITE_OK || !j->count_due) return rc;
  num_put_le32(out, j->segments + 1);
  num_put_le32(out + 4, crc32c_update_u32(j->first_crc, j->segments + 1));
  rc = vfs_file_pwrite(f, out, sizeof out, JOURNAL_HEADER_COUNT_OFF);
  if (rc == SQLITE_OK) rc = vfs_file_fdatasync(f);
  if (rc != SQLITE_OK) return rc;
  j->segments++;
  j->count_due = false;
  return SQLITE_OK;
}
