/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c - can a journal be trusted? The contract is in journal.h, the decision table in docs/FORMAT.md.
 *
 * What is known about a journal that Lode wrote:
 *   1. Its header sector is first written with zeros in the magic, the record count and everything after byte 28. The
 *      records are synced, then the header is filled in by two writes, its first byte last, and synced; only then is
 *      the database modified. A sector is never torn.
 *   2. Hence a header whose first byte or whose last field is zero was never completed, and the database is
 *      unmodified. A header with nothing wrong but its magic is proven by its checksum; rolling it back is always
 *      correct, because it changes nothing if the database is unmodified.
 *   3. A journal without commit ids is of format 1, and belongs to a database whose id is 0.
 * A journal whose header cannot be proven is judged by its traces. A file without any trace of a journal did not
 * protect this database. A file with some was a journal: then the database is unmodified only if it equals each page
 * image. Whatever is wrong with a journal, a database whose pages are all valid and add up to its root needs none.
 */
#include "vfs/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "vfs/vfs_map.h"

enum {
  JOURNAL_COMMIT_ID_OFF = 72, /* in page 1: reserved by SQLite, which preserves these bytes and never reads them */
  JOURNAL_ROOT_OFF = 80,      /* the same */
  JOURNAL_MAGIC_TRACE = 5,    /* this many matching bytes of the magic are no coincidence */
};
static const uint32_t journal_count_by_size = 0xffffffff; /* synchronous=OFF: the file's length gives the count */
static const uint32_t journal_ids_seed = 0x6c6f6465;

static bool journal_all_zero(const unsigned char *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (p[i]) return false;
  return true;
}

uint64_t journal_commit_id(const unsigned char *page1) { return num_le64(page1 + JOURNAL_COMMIT_ID_OFF); }
void journal_put_commit_id(unsigned char *page1, uint64_t id) { num_put_le64(page1 + JOURNAL_COMMIT_ID_OFF, id); }

void journal_get_root(const unsigned char *page1, uint64_t *root, uint32_t *number) {
  *root = num_le64(page1 + JOURNAL_ROOT_OFF);
  *number = num_le32(page1 + JOURNAL_ROOT_OFF + 8);
}

void journal_put_root(unsigned char *page1, uint64_t root, uint32_t number) {
  num_put_le64(page1 + JOURNAL_ROOT_OFF, root);
  num_put_le32(page1 + JOURNAL_ROOT_OFF + 8, number);
}

static uint32_t journal_ids_crc(const unsigned char *ids) { return crc32c_update(journal_ids_seed, ids, 16); }

void journal_put_ids(unsigned char *head, uint64_t before, uint64_t after) {
  unsigned char *ids = head + JOURNAL_HEADER_IDS_OFF;
  num_put_le64(ids, before);
  num_put_le64(ids + 8, after);
  num_put_le32(ids + 16, journal_ids_crc(ids));
}

/* ---- The two files ---- */

typedef struct journal_checker {
  int fd, db_fd;
  journal_depth depth;
  journal_findings *j;
  unsigned char sector[JOURNAL_SECTOR]; /* the journal's first sector, padded with zeros */
  journal_header header;
  uint32_t segments;
  uint64_t before, after;
  bool header_valid; /* valid once the magic is replaced by the right one */
  bool ids_known, ids_absent;
  bool image_known;                      /* the journal has an image of page 1 */
  uint64_t image_id;                     /* the commit id in that image */
  bool image_same;                       /* the image's first sector equals the database's */
  unsigned char db_head[JOURNAL_SECTOR]; /* the first sector of the database */
  uint64_t db_bytes;
  uint32_t db_page_bytes;       /* 0: page 1 is not valid */
  uint64_t db_id;               /* as found in the first sector, even if page 1 is torn */
  unsigned char *page, *record; /* scratch: SQF_PAGE_MAX bytes, and SQF_JOURNAL_RECORD_EXTRA more for a record */
} journal_checker;

static lode_status journal_read_at(int fd, void *buf, size_t n, uint64_t off, size_t *got) {
  lode_status st = os_read_full(fd, buf, n, off, got, NULL);
  if (st == LODE_OK) memset((char *)buf + *got, 0, n - *got);
  return st;
}

static lode_status journal_file_bytes(int fd, uint64_t *bytes) {
  struct stat sb;
  if (OS_RETRY(os_api->fstat(fd, &sb)) != 0) return LODE_IO;
  *bytes = (uint64_t)sb.st_size;
  return LODE_OK;
}

static lode_status journal_conclude(journal_checker *g, journal_verdict verdict, const char *why, uint64_t at) {
  g->j->verdict = verdict;
  g->j->why = why;
  g->j->at = at;
  return LODE_OK;
}

static lode_status journal_conclude_damaged(journal_checker *g, const char *why, uint64_t at) {
  return journal_conclude(g, JOURNAL_DAMAGED, why, at);
}

static lode_status journal_read_db_head(journal_checker *g) {
  size_t got;
  TRY(journal_file_bytes(g->db_fd, &g->db_bytes));
  TRY(journal_read_at(g->db_fd, g->page, SQF_PAGE_MIN, 0, &got));
  memcpy(g->db_head, g->page, sizeof g->db_head);
  memcpy(g->j->db_head, g->page, sizeof g->j->db_head);
  g->db_id = journal_commit_id(g->page);
  uint32_t size = sqf_page_size(g->page);
  if (!sqf_has_magic(g->page) || !size) return LODE_OK;
  if (g->page[20] != VFS_SEAL_BYTES) return LODE_OK;
  TRY(journal_read_at(g->db_fd, g->page, size, 0, &got));
  if (got == size && vfs_seal_is_valid(1, g->page, size)) g->db_page_bytes = size;
  return LODE_OK;
}

bool journal_header_is_valid(const unsigned char *sector, journal_header *h) {
  *h = (journal_header){num_be32(sector + 8), num_be32(sector + 12), num_be32(sector + 16), num_be32(sector + 24)};
  return memcmp(sector, sqf_journal_magic, sizeof sqf_journal_magic) == 0 &&
         num_le32(sector + JOURNAL_HEADER_BYTES) == crc32c_update(0, sector, JOURNAL_HEADER_BYTES) &&
         num_be32(sector + 20) == JOURNAL_SECTOR && sqf_page_size_valid(h->page_bytes);
}

/* A count whose checksum is that of the previous number was being incremented: the previous number is valid. */
static bool journal_count_is_valid(const unsigned char *sector, uint32_t *count) {
  uint32_t seed = num_le32(sector + JOURNAL_HEADER_BYTES), crc = num_le32(sector + JOURNAL_HEADER_COUNT_OFF + 4);
  *count = num_le32(sector + JOURNAL_HEADER_COUNT_OFF);
  if (*count > 1 && crc == crc32c_update_u32(seed, *count - 1)) --*count;
  return *count > 0 && crc == crc32c_update_u32(seed, *count);
}

static lode_status journal_read_header(journal_checker *g) {
  unsigned char proper[JOURNAL_SECTOR];
  size_t got;
  TRY(journal_read_at(g->fd, g->sector, JOURNAL_SECTOR, 0, &got));
  const unsigned char *ids = g->sector + JOURNAL_HEADER_IDS_OFF;
  g->ids_absent = got == JOURNAL_SECTOR && journal_all_zero(ids, 20);
  g->ids_known = !g->ids_absent && num_le32(ids + 16) == journal_ids_crc(ids);
  g->before = num_le64(ids);
  g->after = num_le64(ids + 8);
  memcpy(proper, g->sector, sizeof proper);
  memcpy(proper, sqf_journal_magic, sizeof sqf_journal_magic);
  g->header_valid = journal_header_is_valid(proper, &g->header) && journal_count_is_valid(proper, &g->segments) &&
                    (g->ids_known || g->ids_absent);
  memcpy(g->j->head, g->sector, sizeof g->j->head);
  return LODE_OK;
}

/* Does the journal name the commit that the database holds, or the one that its transaction was making? */
static bool journal_names_db(const journal_checker *g) {
  if (g->ids_known) return g->db_id == g->before || g->db_id == g->after;
  return g->ids_absent && g->db_id == 0;
}

/* Started but not completed. The last field of format 1 is at 36, that of format 2 at 56. */
static bool journal_never_filled_in(const journal_checker *g) {
  const unsigned char *s = g->sector;
  if (!journal_all_zero(s + JOURNAL_HEADER_FULL, JOURNAL_SECTOR - JOURNAL_HEADER_FULL))
    return false; /* never written */
  if (s[0] == sqf_journal_magic[0] && g->j->size >= JOURNAL_SECTOR)
    return journal_all_zero(s + 1, 11) &&
           journal_all_zero(s + JOURNAL_HEADER_BYTES, JOURNAL_HEADER_FULL - JOURNAL_HEADER_BYTES);
  return s[0] == 0 && num_le32(s + JOURNAL_HEADER_IDS_OFF + 16) == 0 &&
         !(g->header_valid && g->ids_absent && g->db_id == 0);
}

/* ---- Records ---- */

static lode_status journal_add_image(journal_checker *g, uint32_t number, uint64_t offset) {
  if (g->depth != JOURNAL_CHECK_IMAGES) return LODE_OK;
  return sqf_images_add(&g->j->images, number, offset) ? LODE_OK : LODE_NOMEM;
}

/* Checks the records of one segment, which start at *off; moves *off past them. */
static lode_status journal_prove_records(journal_checker *g, const journal_header *h, uint64_t *off) {
  uint64_t each = (uint64_t)h->page_bytes + SQF_JOURNAL_RECORD_EXTRA;
  uint64_t fit = g->j->size > *off ? (g->j->size - *off) / each : 0;
  uint64_t records = h->records == journal_count_by_size ? fit : h->records;
  uint32_t lock_page = sqf_lock_page(h->page_bytes);
  size_t got;
  if (records > fit) return journal_conclude_damaged(g, "records are missing", g->j->size);
  for (uint64_t i = 0; i < records; i++, *off += each) {
    TRY(journal_read_at(g->fd, g->record, (size_t)each, *off, &got));
    uint32_t page = num_be32(g->record);
    const unsigned char *image = g->record + 4;
    if (got < each) return journal_conclude_damaged(g, "it is cut short", *off + got);
    if (page == 0 || page == lock_page || page > h->first_pages)
      return journal_conclude_damaged(g, "a page number is impossible", *off);
    if (!vfs_seal_is_valid(page, image, h->page_bytes))
      return journal_conclude_damaged(g, "a page image is wrong", *off);
    if (num_be32(image + h->page_bytes) != sqf_journal_sum(h->nonce, image, h->page_bytes))
      return journal_conclude_damaged(g, "a record's sum is wrong", *off);
    if (page == 1 && !g->image_known) {
      g->image_known = true;
      g->image_id = journal_commit_id(image);
      g->image_same = memcmp(image, g->db_head, sizeof g->db_head) == 0;
    }
    TRY(journal_add_image(g, page, *off + 4));
  }
  return LODE_OK;
}

/* Reads the header at `off`, where a segment ended. *end: there is none, and none is required. What is not counted may
 * be anything; it is rolled back if it can be proven. */
static lode_status journal_next_segment(journal_checker *g, uint64_t off, bool counted, journal_header *h, bool *end) {
  unsigned char sector[JOURNAL_SECTOR];
  size_t got;
  *end = true;
  TRY(journal_read_at(g->fd, sector, sizeof sector, off, &got));
  if (got < sizeof sector) return counted ? journal_conclude_damaged(g, "a segment is missing", off + got) : LODE_OK;
  bool begun = memcmp(sector, sqf_journal_magic, sizeof sqf_journal_magic) == 0 &&
               !journal_all_zero(sector + JOURNAL_HEADER_BYTES, 4);
  if (!counted && !begun) return LODE_OK;
  *end = false;
  if (!journal_header_is_valid(sector, h)) return journal_conclude_damaged(g, "a header is wrong", off);
  if (h->page_bytes != g->header.page_bytes || h->first_pages != g->header.first_pages)
    return journal_conclude_damaged(g, "headers disagree", off);
  return LODE_OK;
}

static lode_status journal_prove_segments(journal_checker *g) {
  journal_header h = g->header;
  uint64_t off = JOURNAL_SECTOR;
  bool end = false;
  for (uint32_t seen = 1; g->j->verdict == JOURNAL_HOT; seen++) {
    TRY(journal_prove_records(g, &h, &off));
    if (g->j->verdict != JOURNAL_HOT) break;
    off = (off + JOURNAL_SECTOR - 1) / JOURNAL_SECTOR * JOURNAL_SECTOR;
    TRY(journal_next_segment(g, off, seen < g->segments, &h, &end));
    g->j->proven = off;
    if (end) break;
    off += JOURNAL_SECTOR;
  }
  return LODE_OK;
}

/* ---- Traces ---- */

/* The last offset at which records of the database's page size can end: a transaction journals a page once, and only
 * pages that the database has. Anything after that is not read. */
static uint64_t journal_records_end(const journal_checker *g) {
  uint64_t pages = g->db_bytes / g->db_page_bytes;
  uint64_t end = JOURNAL_SECTOR + pages * (g->db_page_bytes + (uint64_t)SQF_JOURNAL_RECORD_EXTRA);
  return end < g->j->size ? end : g->j->size;
}

/* Reads the record at `off`, assuming the database's page size. *valid: it is a valid image of one of its pages. */
static lode_status journal_record_at(journal_checker *g, uint64_t off, uint32_t *number, bool *valid) {
  size_t got, each = (size_t)g->db_page_bytes + SQF_JOURNAL_RECORD_EXTRA;
  TRY(journal_read_at(g->fd, g->record, each, off, &got));
  *number = num_be32(g->record);
  *valid = got == each && *number > 0 && *number <= g->db_bytes / g->db_page_bytes &&
           vfs_seal_is_valid(*number, g->record + 4, g->db_page_bytes);
  return LODE_OK;
}

/* Does the journal contain a page of this database at any place where a record of its first segment would be? */
static lode_status journal_has_image(journal_checker *g, bool *found) {
  uint64_t each = (uint64_t)g->db_page_bytes + SQF_JOURNAL_RECORD_EXTRA;
  uint32_t number;
  *found = false;
  for (uint64_t off = JOURNAL_SECTOR; off < journal_records_end(g) && !*found; off += each)
    TRY(journal_record_at(g, off, &number, found));
  return LODE_OK;
}

static lode_status journal_has_traces(journal_checker *g, bool *traces) {
  size_t right = 0;
  for (size_t i = 0; i < sizeof sqf_journal_magic; i++) right += g->sector[i] == sqf_journal_magic[i];
  *traces = right >= JOURNAL_MAGIC_TRACE || (g->ids_known && journal_names_db(g)) ||
            (num_be32(g->sector + 20) == JOURNAL_SECTOR && sqf_page_size_valid(num_be32(g->sector + 24)));
  return *traces ? LODE_OK : journal_has_image(g, traces);
}

/* Does the header hold this number of records, or does its checksum say that it did? */
static bool journal_counts_records(const journal_checker *g, uint32_t records) {
  unsigned char proper[JOURNAL_HEADER_BYTES];
  if (num_be32(g->sector + 8) == records) return true;
  memcpy(proper, g->sector, sizeof proper);
  memcpy(proper, sqf_journal_magic, sizeof sqf_journal_magic);
  num_put_be32(proper + 8, records);
  return num_le32(g->sector + JOURNAL_HEADER_BYTES) == crc32c_update(0, proper, sizeof proper);
}

/* Does the database equal each image of a journal that has one segment and ends with its last record? */
static lode_status journal_db_equals_images(journal_checker *g, bool *equal) {
  uint64_t off = JOURNAL_SECTOR, each = (uint64_t)g->db_page_bytes + SQF_JOURNAL_RECORD_EXTRA;
  uint32_t number, records = 0;
  bool valid, first = false;
  size_t got;
  *equal = false;
  for (; off < journal_records_end(g); off += each, records++) {
    TRY(journal_record_at(g, off, &number, &valid));
    if (!valid) return LODE_OK;
    TRY(journal_read_at(g->db_fd, g->page, g->db_page_bytes, (uint64_t)(number - 1) * g->db_page_bytes, &got));
    if (memcmp(g->page, g->record + 4, g->db_page_bytes) != 0) return LODE_OK;
    if (number != 1) continue;
    first = (uint64_t)num_be32(g->page + 28) * g->db_page_bytes == g->db_bytes; /* the file was not extended either */
  }
  *equal = first && off == g->j->size && journal_counts_records(g, records);
  return LODE_OK;
}

/* The first sector reads as zeros. A power cut can do that while the database is still unmodified: then each image
 * equals its page. If a page differs, the database was modified and cannot be rolled back. */
static lode_status journal_check_lost_header(journal_checker *g) {
  if (!g->db_page_bytes) return LODE_OK;
  size_t got, n = g->db_page_bytes;
  for (uint64_t off = JOURNAL_SECTOR; off < journal_records_end(g); off += n + SQF_JOURNAL_RECORD_EXTRA) {
    uint32_t number;
    bool valid;
    TRY(journal_record_at(g, off, &number, &valid));
    if (!valid) continue;
    TRY(journal_read_at(g->db_fd, g->page, n, (uint64_t)(number - 1) * n, &got));
    if (vfs_seal_is_valid(number, g->page, n) && memcmp(g->page, g->record + 4, n) != 0)
      return journal_conclude_damaged(g, "its first header is lost", 0);
  }
  return LODE_OK;
}

/* ---- A database that needs no journal ---- */

/* Sets the bits of the leaves of the free list, which have no content. *valid: all trunks can be read. */
static lode_status journal_mark_free(journal_checker *g, uint32_t trunk, uint32_t pages, unsigned char *free_pages,
                                     bool *valid) {
  size_t got, n = g->db_page_bytes;
  *valid = true;
  for (uint32_t left = pages; trunk && *valid; left--) {
    *valid = left > 0 && trunk <= pages;
    if (!*valid) return LODE_OK;
    TRY(journal_read_at(g->db_fd, g->page, n, (uint64_t)(trunk - 1) * n, &got));
    *valid = vfs_seal_is_valid(trunk, g->page, n);
    uint32_t leaves = sqf_trunk_leaves(g->page, (uint32_t)n - VFS_SEAL_BYTES);
    for (uint32_t i = 0; i < leaves; i++) {
      uint32_t leaf = num_be32(g->page + 8 + 4 * (size_t)i);
      if (leaf <= pages) free_pages[leaf / 8] |= (unsigned char)(1u << leaf % 8);
    }
    trunk = num_be32(g->page);
  }
  return LODE_OK;
}

static lode_status journal_sum_pages(journal_checker *g, uint32_t pages, const unsigned char *free_pages,
                                     uint64_t *root, bool *valid) {
  size_t got, n = g->db_page_bytes;
  *root = 0;
  for (uint32_t page = 2; page <= pages && *valid; page++) {
    if (page == sqf_lock_page((uint32_t)n) || (free_pages[page / 8] >> page % 8 & 1)) continue;
    TRY(journal_read_at(g->db_fd, g->page, n, (uint64_t)(page - 1) * n, &got));
    *valid = got == n && vfs_seal_is_valid(page, g->page, n);
    *root += vfs_map_hash(page, vfs_seal_version(g->page + n - VFS_SEAL_BYTES));
  }
  return LODE_OK;
}

/* Is the database of one moment without the journal: are all of its pages valid, and do they add up to the root in
 * page 1? It is so before the first page of a transaction is written, and again after the last; and a journal that was
 * emptied may come back in a power cut, overwritten in part by the next transaction. */
static lode_status journal_db_is_whole(journal_checker *g, bool *whole) {
  uint64_t root, sum = 0;
  uint32_t number;
  size_t got, n = g->db_page_bytes;
  *whole = false;
  if (!n) return LODE_OK;
  TRY(journal_read_at(g->db_fd, g->page, n, 0, &got));
  journal_get_root(g->page, &root, &number);
  uint32_t pages = num_be32(g->page + 28), trunk = num_be32(g->page + 32);
  if (number == 0 || (uint64_t)pages * n > g->db_bytes) return LODE_OK;
  unsigned char *free_pages = mem_calloc(1, (size_t)pages / 8 + 1);
  if (!free_pages) return LODE_NOMEM;
  lode_status st = journal_mark_free(g, trunk, pages, free_pages, whole);
  if (st == LODE_OK && *whole) st = journal_sum_pages(g, pages, free_pages, &sum, whole);
  mem_free(free_pages);
  *whole = *whole && sum == root;
  return st;
}

/* ---- The verdict ---- */

static const char journal_not_of_this_commit[] = "it belongs to another moment of the store";

/* No ids, but the database has one. A journal of format 1 has a page 1 of format 1; otherwise its ids were lost. */
static lode_status journal_check_without_ids(journal_checker *g) {
  (void)journal_conclude(g, JOURNAL_HOT, "", 0);
  TRY(journal_prove_segments(g));
  if (g->image_known && g->image_id == 0) return journal_conclude(g, JOURNAL_STRAY, journal_not_of_this_commit, 0);
  return journal_conclude_damaged(g, "its commit ids are lost", JOURNAL_HEADER_IDS_OFF);
}

/* Every database of format 1 has id 0, so the id does not identify the journal of the transaction that upgrades one to
 * format 2. The first sector of page 1 does: it is unchanged until page 1 is written. */
static bool journal_is_of_upgrade(const journal_checker *g) {
  return g->ids_known && g->before == 0 && g->db_id == 0 && g->db_bytes > 0;
}

static lode_status journal_check_valid_header(journal_checker *g) {
  journal_findings *j = g->j;
  if (!journal_names_db(g) && g->db_bytes > 0) {
    if (!g->db_page_bytes)
      return journal_conclude_damaged(g, "it names another database, whose first page is damaged", 0);
    return g->ids_known ? journal_conclude(g, JOURNAL_STRAY, journal_not_of_this_commit, 0)
                        : journal_check_without_ids(g);
  }
  if (g->db_bytes / g->header.page_bytes < g->header.first_pages)
    return journal_conclude_damaged(g, "the database is shorter than it was", 0);
  (void)journal_conclude(g, JOURNAL_HOT, "", 0);
  j->head_torn = memcmp(j->head, sqf_journal_magic, sizeof sqf_journal_magic) != 0;
  memcpy(j->head, sqf_journal_magic, sizeof sqf_journal_magic);
  j->page_bytes = g->header.page_bytes;
  j->first_pages = g->header.first_pages;
  if (g->depth != JOURNAL_CHECK_HEADER || journal_is_of_upgrade(g)) TRY(journal_prove_segments(g));
  if (journal_is_of_upgrade(g) && g->image_known && !g->image_same)
    return journal_conclude(g, JOURNAL_STRAY, journal_not_of_this_commit, 0);
  sqf_images_sort(&j->images, false);
  return LODE_OK;
}

static lode_status journal_check_bad_header(journal_checker *g) {
  bool traces, equal;
  if (!g->db_page_bytes)
    return journal_conclude_damaged(g, "its first header is wrong, and so is the database's first page", 0);
  if (g->ids_known && !journal_names_db(g)) return journal_conclude(g, JOURNAL_STRAY, journal_not_of_this_commit, 0);
  TRY(journal_has_traces(g, &traces));
  if (!traces) return journal_conclude(g, JOURNAL_STRAY, "it is no journal", 0);
  TRY(journal_db_equals_images(g, &equal));
  if (equal) return journal_conclude(g, JOURNAL_STRAY, "it is damaged, and the database is as it was before", 0);
  return journal_conclude_damaged(g, "the first header is wrong", 0);
}

static lode_status journal_check_any(journal_checker *g) {
  bool whole;
  TRY(journal_read_db_head(g));
  TRY(journal_read_header(g));
  if (!journal_never_filled_in(g))
    TRY(g->header_valid ? journal_check_valid_header(g) : journal_check_bad_header(g));
  else if (journal_all_zero(g->sector, JOURNAL_SECTOR))
    TRY(journal_check_lost_header(g));
  if (g->j->verdict != JOURNAL_DAMAGED) return LODE_OK;
  TRY(journal_db_is_whole(g, &whole));
  return whole ? journal_conclude(g, JOURNAL_STRAY, "it is damaged, and the database is whole without it", 0) : LODE_OK;
}

lode_status journal_check(int journal_fd, int db_fd, journal_depth depth, journal_findings *j) {
  journal_checker g = {.fd = journal_fd, .db_fd = db_fd, .depth = depth, .j = j};
  *j = (journal_findings){.verdict = JOURNAL_NONE, .why = ""};
  TRY(journal_file_bytes(journal_fd, &j->size));
  if (j->size == 0) return LODE_OK;
  g.page = mem_alloc(SQF_PAGE_MAX);
  g.record = mem_alloc(SQF_PAGE_MAX + SQF_JOURNAL_RECORD_EXTRA);
  lode_status st = g.page && g.record ? journal_check_any(&g) : LODE_NOMEM;
  int saved = errno;
  mem_free(g.page);
  mem_free(g.record);
  if (st != LODE_OK || j->verdict != JOURNAL_HOT) journal_findings_release(j);
  errno = saved;
  return st;
}

void journal_findings_release(journal_findings *j) { sqf_images_release(&j->images); }
