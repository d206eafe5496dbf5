/* judge.c - is a journal to be believed? Contract in judge.h, the table of decisions in docs/FORMAT.md.
 *
 * What is known of a journal that Lode wrote:
 *   1. Its header sector is written with zeros in place of magic, record count and everything after byte 28. The
 *      records are synced, then the header is filled in by two writes, its first byte last, and synced; only then is
 *      the database touched. A sector is never torn.
 *   2. Hence a header whose first byte, or whose last filled-in field, is zero was never finished, and the database is
 *      untouched; but one of which only the magic is wrong is proven by its checksum, and to roll it back is right
 *      in any case: where nothing was touched, it changes nothing.
 *   3. A journal without commit ids is one of format 1, and belongs to a database whose id is 0.
 * What cannot be proven is judged by its traces. A file that has none of a journal's is not what protected this
 * database. One that has some was a journal: the database is then untouched only if it equals each image.
 */
#include "judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"

const unsigned char lode__journal_magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};

enum {
  COMMIT_OFF = 72,        /* in page 1: reserved by SQLite, which keeps what is there and never reads it */
  RECORD_EXTRA = 8,       /* page number and sum */
  MAGIC_TRACE = 5,        /* this many bytes of the magic are no accident */
};
static const uint32_t count_by_size = 0xffffffff; /* synchronous=OFF: the length of the file says how many */
static const uint32_t ids_seed = 0x6c6f6465;

static bool all_zero(const unsigned char *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (p[i]) return false;
  return true;
}

uint64_t lode__commit_id(const unsigned char *page1) { return sqf_le64(page1 + COMMIT_OFF); }
void lode__commit_id_put(unsigned char *page1, uint64_t id) { sqf_put_le64(page1 + COMMIT_OFF, id); }

static uint32_t ids_crc(const unsigned char *ids) { return crc32c_update(ids_seed, ids, 16); }

void lode__journal_ids_put(unsigned char *head, uint64_t before, uint64_t after) {
  unsigned char *ids = head + LODE__HEADER_IDS_OFF;
  sqf_put_le64(ids, before);
  sqf_put_le64(ids + 8, after);
  sqf_put_le32(ids + 16, ids_crc(ids));
}

/* ---- The two files ---- */

typedef struct judge {
  int fd, db_fd;
  lode__judge_depth depth;
  lode__judged *j;
  unsigned char sector[LODE__SECTOR]; /* the journal's first, with zeros after its end */
  lode__journal_header header;
  uint32_t segments;
  uint64_t before, after;
  bool header_sound;       /* with the right magic, whatever the file has in its place */
  bool ids_known, ids_absent;
  bool image_known;        /* page 1 is in the journal, ... */
  uint64_t image_id;       /* ... with this commit id, */
  bool image_same;         /* and the same first sector as the database's */
  unsigned char db_head[LODE__SECTOR]; /* the first sector of the database */
  uint64_t db_bytes;
  uint32_t db_page_bytes;  /* 0: page 1 is not sound */
  uint64_t db_id;          /* as it stands in the first sector, also if page 1 is torn */
  unsigned char *page, *record; /* scratch, SQF_PAGE_MAX and some */
} judge;

static lode_status read_at(int fd, void *buf, size_t n, uint64_t off, size_t *got) {
  lode_status st = os_read_full(fd, buf, n, off, got, NULL);
  if (st == LODE_OK) memset((char *)buf + *got, 0, n - *got);
  return st;
}

static lode_status file_bytes(int fd, uint64_t *bytes) {
  struct stat sb;
  if (OS_RETRY(os_api->fstat(fd, &sb)) != 0) return LODE_IO;
  *bytes = (uint64_t)sb.st_size;
  return LODE_OK;
}

static lode_status settle(judge *g, lode__verdict verdict, const char *why, uint64_t at) {
  g->j->verdict = verdict;
  g->j->why = why;
  g->j->at = at;
  return LODE_OK;
}

static lode_status damage(judge *g, const char *why, uint64_t at) { return settle(g, LODE__JOURNAL_DAMAGED, why, at); }

static lode_status look_at_database(judge *g) {
  size_t got;
  TRY(file_bytes(g->db_fd, &g->db_bytes));
  TRY(read_at(g->db_fd, g->page, SQF_PAGE_MIN, 0, &got));
  memcpy(g->db_head, g->page, sizeof g->db_head);
  memcpy(g->j->db_head, g->page, sizeof g->j->db_head);
  g->db_id = lode__commit_id(g->page);
  uint32_t size = sqf_page_size(g->page);
  if (!sqf_has_magic(g->page) || !size) return LODE_OK;
  if (g->page[20] != LODE__PAGE_RESERVED) return LODE_OK;
  TRY(read_at(g->db_fd, g->page, size, 0, &got));
  if (got == size && lode__page_is_sound(1, g->page, size)) g->db_page_bytes = size;
  return LODE_OK;
}

bool lode__journal_header_sound(const unsigned char *sector, lode__journal_header *h) {
  *h = (lode__journal_header){sqf_be32(sector + 8), sqf_be32(sector + 12), sqf_be32(sector + 16), sqf_be32(sector + 24)};
  return memcmp(sector, lode__journal_magic, sizeof lode__journal_magic) == 0 &&
         sqf_le32(sector + LODE__HEADER_BYTES) == crc32c_update(0, sector, LODE__HEADER_BYTES) &&
         sqf_be32(sector + 20) == LODE__SECTOR && sqf_page_size_valid(h->page_bytes);
}

/* A count whose checksum is that of the number before was being raised, and the number before holds. */
static bool count_sound(const unsigned char *sector, uint32_t *count) {
  uint32_t seed = sqf_le32(sector + LODE__HEADER_BYTES), crc = sqf_le32(sector + LODE__HEADER_COUNT_OFF + 4);
  *count = sqf_le32(sector + LODE__HEADER_COUNT_OFF);
  if (*count > 1 && crc == crc32c_update_u32(seed, *count - 1)) --*count;
  return *count > 0 && crc == crc32c_update_u32(seed, *count);
}

static lode_status look_at_header(judge *g) {
  unsigned char proper[LODE__SECTOR];
  size_t got;
  TRY(read_at(g->fd, g->sector, LODE__SECTOR, 0, &got));
  const unsigned char *ids = g->sector + LODE__HEADER_IDS_OFF;
  g->ids_absent = got == LODE__SECTOR && all_zero(ids, 20);
  g->ids_known = !g->ids_absent && sqf_le32(ids + 16) == ids_crc(ids);
  g->before = sqf_le64(ids);
  g->after = sqf_le64(ids + 8);
  memcpy(proper, g->sector, sizeof proper);
  memcpy(proper, lode__journal_magic, sizeof lode__journal_magic);
  g->header_sound = lode__journal_header_sound(proper, &g->header) && count_sound(proper, &g->segments) &&
                    (g->ids_known || g->ids_absent);
  memcpy(g->j->head, g->sector, sizeof g->j->head);
  return LODE_OK;
}

/* Does the journal name the commit that the database holds, or the one that it was to hold? */
static bool names_database(const judge *g) {
  if (g->ids_known) return g->db_id == g->before || g->db_id == g->after;
  return g->ids_absent && g->db_id == 0;
}

/* Begun and not finished. The last field of format 1 lies at 36, that of format 2 at 56. */
static bool never_filled_in(const judge *g) {
  const unsigned char *s = g->sector;
  if (!all_zero(s + LODE__HEADER_FULL, LODE__SECTOR - LODE__HEADER_FULL)) return false; /* nobody writes there */
  if (s[0] == lode__journal_magic[0] && g->j->size >= LODE__SECTOR)
    return all_zero(s + 1, 11) && all_zero(s + LODE__HEADER_BYTES, LODE__HEADER_FULL - LODE__HEADER_BYTES);
  return s[0] == 0 && sqf_le32(s + LODE__HEADER_IDS_OFF + 16) == 0 && !(g->header_sound && g->ids_absent && g->db_id == 0);
}

/* ---- Records ---- */

/* SQLite's own sum: the nonce and every 200th byte from the end. */
static uint32_t record_sum(uint32_t nonce, const unsigned char *page, uint32_t page_bytes) {
  for (uint32_t i = page_bytes - 200; (int32_t)i > 0; i -= 200) nonce += page[i];
  return nonce;
}

static lode_status add_image(judge *g, uint32_t number, uint64_t offset) {
  lode__judged *j = g->j;
  if (g->depth != LODE__JUDGE_IMAGES) return LODE_OK;
  if (!mem_grow(&j->images, &j->cap_images, j->n_images + 1, sizeof *j->images)) return LODE_NOMEM;
  j->images[j->n_images++] = (lode__page_image){number, offset};
  return LODE_OK;
}

/* The records of one segment, which begin at *off; moves *off past them. */
static lode_status prove_records(judge *g, const lode__journal_header *h, uint64_t *off) {
  uint64_t each = (uint64_t)h->page_bytes + RECORD_EXTRA, room = g->j->size > *off ? (g->j->size - *off) / each : 0;
  uint64_t records = h->records == count_by_size ? room : h->records;
  uint32_t lock_page = sqf_lock_page(h->page_bytes);
  size_t got;
  if (records > room) return damage(g, "records are missing", g->j->size);
  for (uint64_t i = 0; i < records; i++, *off += each) {
    TRY(read_at(g->fd, g->record, (size_t)each, *off, &got));
    uint32_t page = sqf_be32(g->record);
    const unsigned char *image = g->record + 4;
    if (got < each) return damage(g, "it is cut short", *off + got);
    if (page == 0 || page == lock_page || page > h->first_pages)
      return damage(g, "a page number is impossible", *off);
    if (!lode__page_is_sound(page, image, h->page_bytes)) return damage(g, "a page image is wrong", *off);
    if (sqf_be32(image + h->page_bytes) != record_sum(h->nonce, image, h->page_bytes))
      return damage(g, "a record's sum is wrong", *off);
    if (page == 1 && !g->image_known) {
      g->image_known = true;
      g->image_id = lode__commit_id(image);
      g->image_same = memcmp(image, g->db_head, sizeof g->db_head) == 0;
    }
    TRY(add_image(g, page, *off + 4));
  }
  return LODE_OK;
}

/* A header at `off`, where a segment ended; *end: there is none, and none is needed. What is not counted may be anything,
 * and is rolled back if it proves itself. */
static lode_status next_segment(judge *g, uint64_t off, bool counted, lode__journal_header *h, bool *end) {
  unsigned char sector[LODE__SECTOR];
  size_t got;
  *end = true;
  TRY(read_at(g->fd, sector, sizeof sector, off, &got));
  if (got < sizeof sector) return counted ? damage(g, "a segment is missing", off + got) : LODE_OK;
  bool begun = memcmp(sector, lode__journal_magic, sizeof lode__journal_magic) == 0 &&
               !all_zero(sector + LODE__HEADER_BYTES, 4);
  if (!counted && !begun) return LODE_OK;
  *end = false;
  if (!lode__journal_header_sound(sector, h)) return damage(g, "a header is wrong", off);
  if (h->page_bytes != g->header.page_bytes || h->first_pages != g->header.first_pages)
    return damage(g, "headers disagree", off);
  return LODE_OK;
}

static lode_status prove_segments(judge *g) {
  lode__journal_header h = g->header;
  uint64_t off = LODE__SECTOR;
  bool end = false;
  for (uint32_t seen = 1; g->j->verdict == LODE__JOURNAL_HOT; seen++) {
    TRY(prove_records(g, &h, &off));
    if (g->j->verdict != LODE__JOURNAL_HOT) break;
    off = (off + LODE__SECTOR - 1) / LODE__SECTOR * LODE__SECTOR;
    TRY(next_segment(g, off, seen < g->segments, &h, &end));
    if (end) break;
    off += LODE__SECTOR;
  }
  return LODE_OK;
}

/* ---- Traces ---- */

/* Where records of the database's own page size end at the latest: a transaction journals a page once, and only pages
 * that the database has. A longer file, of whatever length, is not looked at any further. */
static uint64_t records_end(const judge *g) {
  uint64_t pages = g->db_bytes / g->db_page_bytes, end = LODE__SECTOR + pages * (g->db_page_bytes + (uint64_t)RECORD_EXTRA);
  return end < g->j->size ? end : g->j->size;
}

/* The record at `off`, by the database's own page size; false: no sound image of one of its pages is there. */
static lode_status record_at(judge *g, uint64_t off, uint32_t *number, bool *sound) {
  size_t got, each = (size_t)g->db_page_bytes + RECORD_EXTRA;
  TRY(read_at(g->fd, g->record, each, off, &got));
  *number = sqf_be32(g->record);
  *sound = got == each && *number > 0 && *number <= g->db_bytes / g->db_page_bytes &&
           lode__page_is_sound(*number, g->record + 4, g->db_page_bytes);
  return LODE_OK;
}

/* Is a page of this database anywhere in the journal where a record of its first segment would be? */
static lode_status has_image(judge *g, bool *found) {
  uint64_t each = (uint64_t)g->db_page_bytes + RECORD_EXTRA;
  uint32_t number;
  *found = false;
  for (uint64_t off = LODE__SECTOR; off < records_end(g) && !*found; off += each) TRY(record_at(g, off, &number, found));
  return LODE_OK;
}

static lode_status has_traces(judge *g, bool *traces) {
  size_t right = 0;
  for (size_t i = 0; i < sizeof lode__journal_magic; i++) right += g->sector[i] == lode__journal_magic[i];
  *traces = right >= MAGIC_TRACE || (g->ids_known && names_database(g)) ||
            (sqf_be32(g->sector + 20) == LODE__SECTOR && sqf_page_size_valid(sqf_be32(g->sector + 24)));
  return *traces ? LODE_OK : has_image(g, traces);
}

/* Is the number of records that the header holds this one, or was it this one? */
static bool counts_records(const judge *g, uint32_t records) {
  unsigned char proper[LODE__HEADER_BYTES];
  if (sqf_be32(g->sector + 8) == records) return true;
  memcpy(proper, g->sector, sizeof proper);
  memcpy(proper, lode__journal_magic, sizeof lode__journal_magic);
  for (int i = 0; i < 4; i++) proper[8 + i] = (unsigned char)(records >> (24 - 8 * i));
  return sqf_le32(g->sector + LODE__HEADER_BYTES) == crc32c_update(0, proper, sizeof proper);
}

/* The database equals each image of a journal that has one segment and ends with its last record. */
static lode_status equals_images(judge *g, bool *equal) {
  uint64_t off = LODE__SECTOR, each = (uint64_t)g->db_page_bytes + RECORD_EXTRA;
  uint32_t number, records = 0;
  bool sound, first = false;
  size_t got;
  *equal = false;
  for (; off < records_end(g); off += each, records++) {
    TRY(record_at(g, off, &number, &sound));
    if (!sound) return LODE_OK;
    TRY(read_at(g->db_fd, g->page, g->db_page_bytes, (uint64_t)(number - 1) * g->db_page_bytes, &got));
    if (memcmp(g->page, g->record + 4, g->db_page_bytes) != 0) return LODE_OK;
    if (number != 1) continue;
    first = (uint64_t)sqf_be32(g->page + 28) * g->db_page_bytes == g->db_bytes; /* nor was it made longer */
  }
  *equal = first && off == g->j->size && counts_records(g, records);
  return LODE_OK;
}

/* A first sector that was lost altogether: so it may be after a power cut, while the database is untouched. Then each
 * image equals its page; where a page differs, the database was touched, and the way back is lost. */
static lode_status judge_lost_header(judge *g) {
  if (!g->db_page_bytes) return LODE_OK;
  size_t got, n = g->db_page_bytes;
  for (uint64_t off = LODE__SECTOR; off < records_end(g); off += n + RECORD_EXTRA) {
    uint32_t number;
    bool sound;
    TRY(record_at(g, off, &number, &sound));
    if (!sound) continue;
    TRY(read_at(g->db_fd, g->page, n, (uint64_t)(number - 1) * n, &got));
    if (lode__page_is_sound(number, g->page, n) && memcmp(g->page, g->record + 4, n) != 0)
      return damage(g, "its first header is lost", 0);
  }
  return LODE_OK;
}

/* ---- The verdict ---- */

static const char another_moment[] = "it belongs to another moment of the store";

/* No ids, beside a database that has one: a journal of format 1 holds a page 1 of format 1, else its ids were lost. */
static lode_status judge_without_ids(judge *g) {
  settle(g, LODE__JOURNAL_HOT, "", 0);
  TRY(prove_segments(g));
  if (g->image_known && g->image_id == 0) return settle(g, LODE__JOURNAL_STRAY, another_moment, 0);
  return damage(g, "its commit ids are lost", LODE__HEADER_IDS_OFF);
}

/* Id 0 is that of every database of format 1. The journal of the transaction that brings one to format 2 names its own
 * by the first sector of page 1, which keeps its id until it is written. */
static bool is_of_upgrade(const judge *g) { return g->ids_known && g->before == 0 && g->db_id == 0 && g->db_bytes > 0; }

static lode_status judge_sound(judge *g) {
  lode__judged *j = g->j;
  if (!names_database(g) && g->db_bytes > 0) {
    if (!g->db_page_bytes) return damage(g, "it names another database, whose first page is damaged", 0);
    return g->ids_known ? settle(g, LODE__JOURNAL_STRAY, another_moment, 0) : judge_without_ids(g);
  }
  if (g->db_bytes / g->header.page_bytes < g->header.first_pages)
    return damage(g, "the database is shorter than it was", 0);
  settle(g, LODE__JOURNAL_HOT, "", 0);
  j->head_torn = memcmp(j->head, lode__journal_magic, sizeof lode__journal_magic) != 0;
  memcpy(j->head, lode__journal_magic, sizeof lode__journal_magic);
  j->page_bytes = g->header.page_bytes;
  j->first_pages = g->header.first_pages;
  if (g->depth != LODE__JUDGE_HEADER || is_of_upgrade(g)) TRY(prove_segments(g));
  if (is_of_upgrade(g) && g->image_known && !g->image_same) return settle(g, LODE__JOURNAL_STRAY, another_moment, 0);
  j->n_images = lode__images_sort(j->images, j->n_images);
  return LODE_OK;
}

static lode_status judge_unsound(judge *g) {
  bool traces, equal;
  if (!g->db_page_bytes) return damage(g, "its first header is wrong, and so is the database's first page", 0);
  if (g->ids_known && !names_database(g)) return settle(g, LODE__JOURNAL_STRAY, another_moment, 0);
  TRY(has_traces(g, &traces));
  if (!traces) return settle(g, LODE__JOURNAL_STRAY, "it is no journal", 0);
  TRY(equals_images(g, &equal));
  if (equal) return settle(g, LODE__JOURNAL_STRAY, "it is damaged, and the database is as it was before", 0);
  return damage(g, "the first header is wrong", 0);
}

static lode_status judge_any(judge *g) {
  TRY(look_at_database(g));
  TRY(look_at_header(g));
  if (never_filled_in(g)) return all_zero(g->sector, LODE__SECTOR) ? judge_lost_header(g) : LODE_OK;
  return g->header_sound ? judge_sound(g) : judge_unsound(g);
}

lode_status lode__journal_judge(int journal_fd, int db_fd, lode__judge_depth depth, lode__judged *j) {
  judge g = {.fd = journal_fd, .db_fd = db_fd, .depth = depth, .j = j};
  *j = (lode__judged){.verdict = LODE__JOURNAL_NONE, .why = ""};
  TRY(file_bytes(journal_fd, &j->size));
  if (j->size == 0) return LODE_OK;
  g.page = mem_alloc(SQF_PAGE_MAX);
  g.record = mem_alloc(SQF_PAGE_MAX + RECORD_EXTRA);
  lode_status st = g.page && g.record ? judge_any(&g) : LODE_NOMEM;
  int saved = errno;
  mem_free(g.page);
  mem_free(g.record);
  if (st != LODE_OK || j->verdict != LODE__JOURNAL_HOT) lode__judged_release(j);
  errno = saved;
  return st;
}

void lode__judged_release(lode__judged *j) {
  mem_free(j->images);
  j->images = NULL;
  j->n_images = j->cap_images = 0;
}

/* ---- Images ---- */

static int compare_images(const void *x, const void *y) {
  const lode__page_image *a = x, *b = y;
  if (a->number != b->number) return a->number < b->number ? -1 : 1;
  return (a->offset > b->offset) - (a->offset < b->offset);
}

size_t lode__images_sort(lode__page_image *images, size_t n) {
  if (n == 0) return 0;
  qsort(images, n, sizeof *images, compare_images);
  size_t kept = 1;
  for (size_t i = 1; i < n; i++)
    if (images[i].number != images[kept - 1].number) images[kept++] = images[i];
  return kept;
}

const lode__page_image *lode__image_find(const lode__page_image *images, size_t n, uint32_t number) {
  size_t low = 0, high = n;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (images[mid].number < number) low = mid + 1;
    else high = mid;
  }
  return low < n && images[low].number == number ? &images[low] : NULL;
}
