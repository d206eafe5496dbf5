/* vfs_journal.c - rollback journals that prove themselves.
 *
 * SQLite writes a journal as segments: a header (28 bytes in a sector of its own, at a multiple of 512), then records:
 * page number, page image, sum. All integers are big-endian. Magic and record count stay zero until the records are
 * synced; then they are filled in by a write of 12 bytes, and synced, and only then does SQLite touch the database. A
 * transaction has one segment unless its cache spills. We add, little-endian, in the header's unused bytes:
 *   28  CRC-32C of the 28 bytes                                           (each header)
 *   32  how many segments are filled in; 36  CRC-32C of that, seeded with the CRC at 28    (the first header)
 * A header is filled in by two writes to its sector: everything but the first byte, then that one. If the disk is full
 * half-way, or a power cut keeps the second alone (nothing of this was synced, so the database is untouched), the first
 * byte or everything behind the 28 is zero: such a header was never filled in. The count of segments is raised, and synced, after the new segment's header was synced and
 * before SQLite hears that it was; if that is cut, the CRC is still that of the count before, which holds. Hence:
 *   1. A database page changed by a transaction is in a segment that the first header counts.
 *   2. What is counted was durable. If any of it cannot be proven now, something was lost or changed since: damage.
 *   3. What is not counted may be anything; it is rolled back if it proves itself, and needs no rolling back if it
 *      ends before a header with the magic.
 *   4. The database is never shorter than the journal's note of its first size: a transaction only makes it longer,
 *      until the journal has been emptied.
 * An empty journal, or one that begins with a zero byte, was never filled in: nothing is to be rolled back.
 * Super-journals (commits over several files) do not exist here: their mark is never shown to SQLite.
 */
#include "vfs_internal.h"

#include <fcntl.h>

#include "base/crc32c.h"

static const unsigned char magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};

enum {
  HEADER_BYTES = 28,
  HEADER_COUNT_OFF = 32,
  HEADER_FULL = 40,
  RECORD_EXTRA = 8,          /* page number and sum */
  LOCK_BYTE = 0x40000000,    /* the page that holds it is never used */
};
static const uint32_t count_by_size = 0xffffffff; /* synchronous=OFF: the length of the file says how many */

typedef struct header {
  uint32_t records, nonce, first_pages, sector, page_bytes;
} header;

static void parse(const unsigned char *p, header *h) {
  h->records = lode__be32(p + 8);
  h->nonce = lode__be32(p + 12);
  h->first_pages = lode__be32(p + 16);
  h->sector = lode__be32(p + 20);
  h->page_bytes = lode__be32(p + 24);
}

/* ---- Proving ---- */

static int damaged(lode__vfs_file *f, const char *why, uint64_t off) {
  lode__vfs_file *db = f->kind == LODE__VFS_DB ? f : f->db;
  if (db) db->state.damaged_journal = true;
  sqlite3_log(SQLITE_IOERR_DATA, "journal %s is damaged at %llu: %s", f->path, (unsigned long long)off, why);
  return SQLITE_IOERR_DATA;
}

static bool header_sound(const unsigned char *sector, header *h) {
  parse(sector, h);
  return memcmp(sector, magic, sizeof magic) == 0 &&
         lode__le32(sector + HEADER_BYTES) == lode__crc32c(0, sector, HEADER_BYTES) && h->sector == LODE__SECTOR &&
         lode__page_size_valid(h->page_bytes);
}

/* Begun and not ended. */
static bool never_filled_in(const unsigned char *sector) {
  static const unsigned char zeros[HEADER_FULL - HEADER_BYTES];
  return sector[0] == 0 || memcmp(sector + HEADER_BYTES, zeros, sizeof zeros) == 0;
}

/* SQLite's own sum: the nonce and every 200th byte from the end. */
static uint32_t record_sum(uint32_t nonce, const unsigned char *page, uint32_t page_bytes) {
  for (uint32_t i = page_bytes - 200; (int32_t)i > 0; i -= 200) nonce += page[i];
  return nonce;
}

static int read_whole(lode__vfs_file *f, void *buf, size_t n, uint64_t off) {
  size_t got = 0;
  int rc = lode__vfs_pread(f, buf, n, off, &got);
  if (rc == SQLITE_OK && got < n) rc = damaged(f, "it is cut short", off + got);
  return rc;
}

/* The records of one segment that begin at *off; moves *off behind them. */
static int check_records(lode__vfs_file *f, const header *h, uint64_t size, uint64_t *off) {
  size_t each = (size_t)h->page_bytes + RECORD_EXTRA;
  uint32_t records = h->records, lock_page = LOCK_BYTE / h->page_bytes + 1;
  if (records == count_by_size) records = (uint32_t)((size - *off) / each);
  if (records > (size - *off) / each) return damaged(f, "records are missing", size);
  unsigned char *record = lode__alloc(each);
  int rc = record ? SQLITE_OK : SQLITE_IOERR_NOMEM;
  for (uint32_t i = 0; i < records && rc == SQLITE_OK; i++, *off += each) {
    rc = read_whole(f, record, each, *off);
    if (rc != SQLITE_OK) break;
    uint32_t page = lode__be32(record);
    if (page == 0 || page == lock_page || page > h->first_pages) rc = damaged(f, "a page number is impossible", *off);
    else if (!lode__page_sound(page, record + 4, h->page_bytes)) rc = damaged(f, "a page image is wrong", *off);
    else if (lode__be32(record + 4 + h->page_bytes) != record_sum(h->nonce, record + 4, h->page_bytes))
      rc = damaged(f, "a record's sum is wrong", *off);
  }
  lode__free(record);
  return rc;
}

/* Looks for a header at `off`, where a segment ended; *end says that there is none and need not be one. */
static int next_header(lode__vfs_file *f, uint64_t size, uint64_t off, bool counted, header *h, bool *end) {
  unsigned char sector[LODE__SECTOR];
  *end = !counted;
  if (off + LODE__SECTOR > size) return counted ? damaged(f, "a segment is missing", size) : SQLITE_OK;
  int rc = read_whole(f, sector, sizeof sector, off);
  if (rc != SQLITE_OK) return rc;
  if (!counted && (memcmp(sector, magic, sizeof magic) != 0 || never_filled_in(sector))) return SQLITE_OK;
  *end = false;
  return header_sound(sector, h) ? SQLITE_OK : damaged(f, "a header is wrong", off);
}

static int check_segments(lode__vfs_file *f, const header *first, uint32_t count, uint64_t size) {
  header h = *first;
  uint64_t off = LODE__SECTOR;
  bool end = false;
  for (uint32_t seen = 1;; seen++) {
    int rc = check_records(f, &h, size, &off);
    if (rc != SQLITE_OK) return rc;
    off = (off + LODE__SECTOR - 1) / LODE__SECTOR * LODE__SECTOR;
    rc = next_header(f, size, off, seen < count, &h, &end);
    if (rc != SQLITE_OK || end) return rc;
    if (h.page_bytes != first->page_bytes || h.first_pages != first->first_pages)
      return damaged(f, "headers disagree", off);
    off += LODE__SECTOR;
  }
}

/* *found = false: never filled in. */
static int read_first(lode__vfs_file *f, uint64_t size, header *h, uint32_t *count, bool *found) {
  unsigned char sector[LODE__SECTOR] = {0};
  size_t got = 0;
  *found = false;
  int rc = lode__vfs_pread(f, sector, sizeof sector, 0, &got);
  if (rc != SQLITE_OK || size == 0 || sector[0] == 0) return rc;
  if (got < sizeof sector) return damaged(f, "it is cut short", got);
  if (never_filled_in(sector)) return SQLITE_OK;
  if (!header_sound(sector, h)) return damaged(f, "the first header is wrong", 0);
  *count = lode__le32(sector + HEADER_COUNT_OFF);
  uint32_t seed = lode__le32(sector + HEADER_BYTES), crc = lode__le32(sector + HEADER_COUNT_OFF + 4);
  if (*count > 1 && crc == lode__crc32c_u32(seed, *count - 1)) --*count; /* it was being raised */
  if (crc != lode__crc32c_u32(seed, *count) || *count == 0)
    return damaged(f, "the count of segments is wrong", HEADER_COUNT_OFF);
  *found = true;
  return SQLITE_OK;
}

int lode__journal_check(lode__vfs_file *f) {
  header h = {0};
  uint64_t size = 0, db_size = 0;
  uint32_t count = 0;
  bool found = false;
  int rc = lode__vfs_fsize(f, &size);
  if (rc == SQLITE_OK) rc = read_first(f, size, &h, &count, &found);
  if (rc != SQLITE_OK || !found) return rc;
  if (f->db) {
    rc = lode__vfs_fsize(f->db, &db_size);
    if (rc != SQLITE_OK) return rc;
    if (db_size / h.page_bytes < h.first_pages) return damaged(f, "the database is shorter than it was", 0);
  }
  rc = check_segments(f, &h, count, size);
  f->journal.page_bytes = h.page_bytes;
  f->size = size;
  return rc;
}

int lode__journal_check_empty(lode__vfs_file *db) {
  const char *path = sqlite3_filename_journal(db->path);
  lode__vfs_file f = {.kind = LODE__VFS_JOURNAL, .path = path, .db = db, .fd = -1};
  header h = {0};
  uint64_t size = 0;
  uint32_t count = 0;
  bool found = false;
  struct stat st;
  bool exists = false;
  /* SQLite would remove such a journal, and with it all that is left of the database */
  int rc = lode__vfs_stat(path, &st, &exists);
  if (rc != SQLITE_OK || !exists || st.st_size == 0) return rc;
  rc = lode__vfs_open(&f, O_RDONLY, 0);
  if (rc != SQLITE_OK) return rc;
  rc = lode__vfs_fsize(&f, &size);
  if (rc == SQLITE_OK) rc = read_first(&f, size, &h, &count, &found);
  if (rc == SQLITE_OK && found && h.first_pages > 0) rc = damaged(&f, "the database was emptied", 0);
  lode__vfs_close(&f);
  return rc;
}

/* ---- Passing through ---- */

int lode__journal_read(lode__vfs_file *f, void *buf, size_t n, uint64_t off) {
  lode__journal *j = &f->journal;
  size_t got = 0;
  int rc = lode__vfs_pread(f, buf, n, off, &got);
  if (rc != SQLITE_OK) return rc;
  memset((char *)buf + got, 0, n - got);
  if (got < n) return off + got < f->size ? damaged(f, "it was cut short", off + got) : SQLITE_IOERR_SHORT_READ;
  /* Eight bytes at the very end: SQLite looks for the mark of a super-journal, which only page content could fake. */
  if (n == sizeof magic && off + n == f->size) memset(buf, 0, n);
  if (j->in_record && n == j->page_bytes && off == j->record_off + 4 && !lode__page_sound(j->record_page, buf, n))
    return damaged(f, "a page image is wrong", off);
  j->in_record = n == 4;
  if (n == 4) {
    j->record_off = off;
    j->record_page = lode__be32(buf);
  }
  return SQLITE_OK;
}

/* Its first byte comes last. */
static int fill_in(lode__vfs_file *f, const unsigned char *bytes, size_t n, uint64_t off) {
  int rc = lode__vfs_pwrite(f, bytes + 1, n - 1, off + 1);
  return rc == SQLITE_OK ? lode__vfs_pwrite(f, bytes, 1, off) : rc;
}

/* Header, its CRC and, for the first, the count of segments. */
static int write_header(lode__vfs_file *f, uint64_t off) {
  lode__journal *j = &f->journal;
  unsigned char out[HEADER_FULL] = {0};
  uint32_t crc = lode__crc32c(0, j->header, HEADER_BYTES);
  memcpy(out, j->header, HEADER_BYTES);
  lode__put_le32(out + HEADER_BYTES, crc);
  if (off > 0) {
    j->count_due = true;
    return fill_in(f, out, HEADER_COUNT_OFF, off);
  }
  j->first_crc = crc;
  j->segments = 1;
  lode__put_le32(out + HEADER_COUNT_OFF, 1);
  lode__put_le32(out + HEADER_COUNT_OFF + 4, lode__crc32c_u32(crc, 1));
  return fill_in(f, out, HEADER_FULL, 0);
}

/* A write is known by its length and place: headers lie at multiples of 512, and a page image never does, because
 * records are 8 bytes longer than a multiple of 512 and the image begins 4 bytes into its record. */
static int write_any(lode__vfs_file *f, void *buf, size_t n, uint64_t off) {
  lode__journal *j = &f->journal;
  bool in_record = j->in_record;
  j->in_record = false;
  if (n == LODE__SECTOR && off % LODE__SECTOR == 0) {
    memcpy(j->header, buf, HEADER_BYTES);
    j->header_off = off;
    j->page_bytes = lode__be32(j->header + 24);
    int rc = lode__vfs_pwrite(f, buf, n, off);
    if (rc == SQLITE_OK && memcmp(buf, magic, sizeof magic) == 0) rc = write_header(f, off);
    return rc;
  }
  if (n == 12 && off == j->header_off && j->page_bytes && memcmp(buf, magic, sizeof magic) == 0) {
    memcpy(j->header, buf, n);
    return write_header(f, off);
  }
  if (n == 4 && !(in_record && off == j->record_off + 4 + j->page_bytes)) {
    j->in_record = true;
    j->record_off = off;
    j->record_page = lode__be32(buf);
  } else if (in_record && n == j->page_bytes && off == j->record_off + 4) {
    j->in_record = true; /* its sum follows */
    if (lode__page_size_valid(n)) lode__page_seal(j->record_page, buf, n);
  }
  return lode__vfs_pwrite(f, buf, n, off);
}

int lode__journal_write(lode__vfs_file *f, void *buf, size_t n, uint64_t off) {
  int rc = write_any(f, buf, n, off);
  if (rc == SQLITE_OK && off + n > f->size) f->size = off + n;
  return rc;
}

int lode__journal_sync(lode__vfs_file *f) {
  lode__journal *j = &f->journal;
  unsigned char out[8];
  int rc = lode__vfs_fdatasync(f);
  if (rc != SQLITE_OK || !j->count_due) return rc;
  lode__put_le32(out, j->segments + 1);
  lode__put_le32(out + 4, lode__crc32c_u32(j->first_crc, j->segments + 1));
  rc = lode__vfs_pwrite(f, out, sizeof out, HEADER_COUNT_OFF);
  if (rc == SQLITE_OK) rc = lode__vfs_fdatasync(f);
  if (rc != SQLITE_OK) return rc;
  j->segments++;
  j->count_due = false;
  return SQLITE_OK;
}
