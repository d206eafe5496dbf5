/* SPDX-License-Identifier: Apache-2.0 */
/* truth_pages.c - pages, cells and rows of the truth file, read without SQLite. See truth_pages.h.
 *
 * The format is SQLite's (fileformat2.html). A leaf page of a table (0x0d) holds rows with keys; leaf and inner pages
 * of index b-trees (0x0a, 0x02) hold the rows of WITHOUT ROWID tables. All integers except our checksums are
 * big-endian. The page size is that of the header if any page of a sample is valid with it, otherwise the size with
 * which most pages of a sample are valid.
 */
#include "store/truth_pages.h"

#include <errno.h>
#include <fcntl.h>

#include "sqlite/sqlite_pages.h"

enum { PAGES_SAMPLE = 512 };

/* ---- Pages ---- */

/* Bytes that cannot be read are zeros. */
static void pages_read_or_zero(int fd, void *buf, size_t n, uint64_t off) {
  size_t got = 0;
  if (os_read_full(fd, buf, n, off, &got, NULL) != LODE_OK) got = 0;
  memset((char *)buf + got, 0, n - got);
}

static bool pages_read_valid(store_pages *p, uint32_t number, unsigned char *page) {
  if (p->read) return p->read(p->read_ctx, number, page);
  const journal_image *image = journal_image_find(p->images, p->n_images, number);
  if (image && p->journal_whole) {
    pages_read_or_zero(p->journal_fd, page, p->page_bytes, image->offset);
    if (vfs_page_is_valid(number, page, p->page_bytes)) return true;
  }
  pages_read_or_zero(p->fd, page, p->page_bytes, (uint64_t)(number - 1) * p->page_bytes);
  if (vfs_page_is_valid(number, page, p->page_bytes)) return true;
  if (!image || p->journal_whole) return false;
  pages_read_or_zero(p->journal_fd, page, p->page_bytes, image->offset);
  if (vfs_page_is_valid(number, page, p->page_bytes)) return true;
  pages_read_or_zero(p->fd, page, p->page_bytes, (uint64_t)(number - 1) * p->page_bytes);
  return false;
}

bool store_pages_read(store_pages *p, uint32_t number, unsigned char *page) {
  bool sound = pages_read_valid(p, number, page);
  p->damaged_reads += !sound;
  return sound;
}

store_page_use store_pages_use_of(store_pages *p, uint32_t number) {
  if (number == sqf_lock_page(p->page_bytes)) return STORE_PAGE_LOCK;
  if (number == 1) return STORE_PAGE_ROOT;
  if (!p->has_map) return STORE_PAGE_UNKNOWN;
  uint32_t each = p->usable / 5 + 1;
  uint32_t map = (number - 2) / each * each + 2;
  if (map == sqf_lock_page(p->page_bytes)) map++;
  if (number == map) return STORE_PAGE_PTRMAP;
  if (number < map) return STORE_PAGE_UNKNOWN;
  if (p->map_number != map) {
    p->map_sound = map <= p->count && store_pages_read(p, map, p->map);
    p->map_number = map;
  }
  size_t at = (size_t)5 * (number - map - 1);
  if (!p->map_sound || at + 5 > p->usable) return STORE_PAGE_UNKNOWN;
  unsigned kind = p->map[at];
  return kind >= STORE_PAGE_ROOT && kind <= STORE_PAGE_TREE ? (store_page_use)kind : STORE_PAGE_UNKNOWN;
}

/* ---- The page size ---- */

/* How many pages of a sample are valid with this page size, in 1/1000. */
static uint32_t pages_score_size(int fd, uint64_t file_bytes, uint32_t size, unsigned char *page) {
  uint64_t pages = file_bytes / size, step = pages / PAGES_SAMPLE + 1;
  uint32_t sound = 0, tried = 0;
  for (uint64_t i = 0; i < pages && i < UINT32_MAX - 1; i += step, tried++) {
    pages_read_or_zero(fd, page, size, i * size);
    sound += vfs_page_is_valid((uint32_t)i + 1, page, size);
  }
  if (!sound) return 0;
  uint32_t score = (uint32_t)((uint64_t)sound * 1000 / tried);
  return score ? score : 1;
}

static uint32_t pages_header_size(const unsigned char *page1) {
  return sqf_has_magic(page1) ? sqf_page_size(page1) : 0;
}

static lode_status pages_find_size(store_pages *p, const char *file, lode_error *err) {
  unsigned char *page = mem_alloc(SQF_PAGE_MAX);
  if (!page) return err_nomem(err);
  pages_read_or_zero(p->fd, page, SQF_PAGE_MIN, 0);
  uint32_t declared = pages_header_size(page), best = 0, best_score = 0;
  if (declared && pages_score_size(p->fd, p->file_bytes, declared, page) > 0) best = declared;
  for (uint32_t size = SQF_PAGE_MIN; !best && size <= SQF_PAGE_MAX; size *= 2) {
    uint32_t score = pages_score_size(p->fd, p->file_bytes, size, page);
    if (score > best_score) {
      best_score = score;
      p->page_bytes = size;
    }
  }
  if (best)
    p->page_bytes = best;
  else if (!best_score)
    p->page_bytes = declared; /* every page is damaged, but rows may still be valid */
  if (p->page_bytes) {
    p->usable = p->page_bytes - VFS_PAGE_RESERVED;
    uint64_t pages = (p->file_bytes + p->page_bytes - 1) / p->page_bytes;
    p->count = pages < UINT32_MAX - 1 ? (uint32_t)pages : UINT32_MAX - 2;
  }
  mem_free(page);
  return p->page_bytes ? LODE_OK
                       : err_set(err, LODE_CORRUPT,
                                 "%s holds no page of a Lode store: it is another file, or nothing is left of it; "
                                 "restore a backup",
                                 file);
}

/* ---- The journal ---- */

/* Collects the valid page images of one segment of the journal. */
static void pages_collect_images(store_pages *p, const journal_header *h, uint64_t size, uint64_t *off, bool *nomem) {
  uint64_t each = (uint64_t)p->page_bytes + 8, available = size > *off ? (size - *off) / each : 0;
  uint64_t records = h->records == UINT32_MAX ? available : h->records;
  for (uint64_t i = 0; i < records && i < available; i++, *off += each) {
    unsigned char number[4];
    pages_read_or_zero(p->journal_fd, number, 4, *off);
    pages_read_or_zero(p->journal_fd, p->chain, p->page_bytes, *off + 4);
    uint32_t page = sqf_be32(number);
    if (page == 0 || page > h->first_pages || !vfs_page_is_valid(page, p->chain, p->page_bytes)) continue;
    if (!mem_grow(&p->images, &p->cap_images, p->n_images + 1, sizeof *p->images)) {
      *nomem = true;
      return;
    }
    p->images[p->n_images++] = (journal_image){page, *off + 4};
  }
}

static bool pages_header_at(const store_pages *p, uint64_t off, journal_header *h) {
  unsigned char sector[JOURNAL_SECTOR];
  pages_read_or_zero(p->journal_fd, sector, sizeof sector, off);
  return journal_header_is_valid(sector, h) && h->page_bytes == p->page_bytes;
}

/* Collects the valid page images of a damaged journal. */
static lode_status pages_salvage_journal(store_pages *p, uint64_t size, lode_error *err) {
  journal_header h;
  bool nomem = false;
  for (uint64_t off = 0; off + JOURNAL_SECTOR <= size && pages_header_at(p, off, &h);) {
    off += JOURNAL_SECTOR;
    pages_collect_images(p, &h, size, &off, &nomem);
    if (nomem) return err_nomem(err);
    off = (off + JOURNAL_SECTOR - 1) / JOURNAL_SECTOR * JOURNAL_SECTOR;
  }
  p->n_images = journal_images_sort(p->images, p->n_images);
  return LODE_OK;
}

static lode_status pages_read_journal(store_pages *p, lode_error *err) {
  journal_findings j;
  lode_status st = journal_check(p->journal_fd, p->fd, JOURNAL_CHECK_IMAGES, &j);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK) return LODE_OK; /* the journal cannot be read */
  if (j.verdict == JOURNAL_DAMAGED) return pages_salvage_journal(p, j.size, err);
  if (j.verdict != JOURNAL_HOT || j.page_bytes != p->page_bytes) {
    journal_findings_release(&j);
    return LODE_OK;
  }
  p->images = j.images;
  p->n_images = j.n_images;
  p->cap_images = j.cap_images;
  p->journal_whole = true;
  if (j.first_pages && j.first_pages < p->count) p->count = j.first_pages; /* ignore pages appended since */
  return LODE_OK;
}

/* ---- Opening ---- */

static lode_status pages_open_journal(store_pages *p, const char *folder, const char *name, lode_error *err) {
  strbuf journal = {0};
  strbuf_addf(&journal, "%s-journal", name);
  strbuf_addch(&journal, 0);
  if (journal.failed) return err_nomem(err);
  p->journal_fd = beneath_open(folder, journal.data, O_RDONLY, 0);
  strbuf_release(&journal);
  return p->journal_fd >= 0 ? pages_read_journal(p, err) : LODE_OK;
}

lode_status store_pages_open(const char *file, store_pages *p, lode_error *err) {
  lode_status st = LODE_OK;
  struct stat sb;
  char folder[4096];
  const char *name;
  *p = (store_pages){.fd = -1, .journal_fd = -1, .has_map = true};
  if (!beneath_split(file, folder, sizeof folder, &name)) return err_errno(err, errno, file);
  p->fd = beneath_open(folder, name, O_RDONLY, 0);
  if (p->fd < 0 || OS_RETRY(os_api->fstat(p->fd, &sb)) != 0) {
    st = errno == ENOENT || errno == ENOTDIR ? err_set(err, LODE_NOT_FOUND, "there is no file %s", file)
                                             : err_errno(err, errno, file);
    goto done;
  }
  p->file_bytes = (uint64_t)sb.st_size;
  TRY_GOTO(pages_find_size(p, file, err));
  p->map = mem_alloc(p->page_bytes);
  p->chain = mem_alloc(p->page_bytes);
  if (!p->map || !p->chain) {
    st = err_nomem(err);
    goto done;
  }
  TRY_GOTO(pages_open_journal(p, folder, name, err));
  if (store_pages_read(p, 1, p->map)) {
    p->has_map = sqf_be32(p->map + 52) != 0;
    p->declared = sqf_be32(p->map + 28);
    p->format = sqf_be32(p->map + 60);
  }
done:
  if (st != LODE_OK) store_pages_close(p);
  return st;
}

void store_pages_close(store_pages *p) {
  if (p->fd >= 0) (void)os_api->close(p->fd);
  if (p->journal_fd >= 0) (void)os_api->close(p->journal_fd);
  mem_free(p->images);
  mem_free(p->map);
  mem_free(p->chain);
  *p = (store_pages){.fd = -1, .journal_fd = -1};
}

/* ---- Cells ---- */

bool store_page_parse(const store_pages *p, uint32_t number, const unsigned char *page, store_page_view *v) {
  size_t header = number == 1 ? 100 : 0;
  unsigned char type = page[header];
  *v = (store_page_view){.page = page};
  if (type != 0x0d && type != 0x0a && type != 0x02) return false;
  v->table = type == 0x0d;
  v->child = type == 0x02 ? 4 : 0;
  v->pointers = header + (type == 0x02 ? 12 : 8);
  v->cells = sqf_be16(page + header + 3);
  v->content = sqf_be16(page + header + 5);
  return v->cells <= (p->usable - v->pointers) / 2;
}

void store_page_assume_leaf(uint32_t number, const unsigned char *page, store_page_view *v) {
  *v = (store_page_view){.page = page, .table = true, .pointers = (number == 1 ? 100 : 0) + 8};
}

size_t store_page_cell(const store_pages *p, const store_page_view *v, uint32_t i) {
  size_t at = v->pointers + 2 * (size_t)i;
  if (at + 2 > p->usable) return 0;
  size_t offset = sqf_be16(v->page + at);
  return offset >= v->pointers && offset + 4 <= p->usable ? offset : 0;
}

/* How many bytes of a payload are on the page itself. */
static size_t pages_local_bytes(const store_pages *p, bool table, uint64_t bytes) {
  size_t u = p->usable, max = table ? u - 35 : (u - 12) * 64 / 255 - 23, min = (u - 12) * 32 / 255 - 23;
  if (bytes <= max) return (size_t)bytes;
  size_t k = min + (size_t)((bytes - min) % (u - 4));
  return k <= max ? k : min;
}

static bool pages_parse_column(uint64_t serial, size_t *at, store_col *c) {
  static const uint8_t int_bytes[] = {0, 1, 2, 3, 4, 6, 8};
  *c = (store_col){.at = *at};
  if (serial == 10 || serial == 11) return false;
  if (serial == 0)
    c->type = STORE_COL_NULL;
  else if (serial == 8 || serial == 9)
    *c = (store_col){STORE_COL_INT, (uint8_t)(serial - 7), *at, 0};
  else if (serial == 7)
    *c = (store_col){STORE_COL_REAL, 0, *at, 8};
  else if (serial < 7)
    *c = (store_col){STORE_COL_INT, 0, *at, int_bytes[serial]};
  else
    *c = (store_col){serial % 2 ? STORE_COL_TEXT : STORE_COL_BLOB, 0, *at, (size_t)((serial - 12) / 2)};
  return !mem_add_overflow(*at, c->len, at);
}

bool store_row_parse(const store_pages *p, const store_page_view *v, size_t offset, store_row *row) {
  const unsigned char *at = v->page + offset, *end = v->page + p->usable;
  uint64_t key = 0, header = 0, serial;
  size_t n;
  *row = (store_row){0};
  if (offset + v->child + 4 > p->usable) return false;
  at += v->child;
  if (!(n = sqf_get_varint(at, end, &row->bytes))) return false;
  at += n;
  if (v->table) {
    if (!(n = sqf_get_varint(at, end, &key))) return false;
    at += n;
  }
  if (row->bytes < 2 || row->bytes > p->file_bytes) return false;
  row->key = (int64_t)key;
  row->local = at;
  row->local_bytes = pages_local_bytes(p, v->table, row->bytes);
  size_t left = (size_t)(end - at), need = row->local_bytes + (row->local_bytes < row->bytes ? 4 : 0);
  if (need > left) return false;
  if (row->local_bytes < row->bytes) row->overflow = sqf_be32(at + row->local_bytes);
  if (!(n = sqf_get_varint(at, at + row->local_bytes, &header)) || header < n || header > row->local_bytes)
    return false;
  size_t body = (size_t)header;
  for (const unsigned char *h = at + n, *h_end = at + header; h < h_end; h += n) {
    if (row->n == STORE_ROW_MAX_COLUMNS || !(n = sqf_get_varint(h, h_end, &serial))) return false;
    if (!pages_parse_column(serial, &body, &row->cols[row->n++])) return false;
  }
  return body == row->bytes;
}

lode_status store_row_load(store_pages *p, const store_row *row, strbuf *payload, lode_error *err) {
  payload->len = 0;
  uint64_t left = row->bytes - row->local_bytes;
  if (!strbuf_reserve(payload, (size_t)row->bytes)) {
    strbuf_release(payload);
    return err_nomem(err);
  }
  strbuf_add(payload, row->local, row->local_bytes);
  /* Each page adds usable - 4 bytes, so the length bounds the loop even if the chain is a cycle. Pages are used even
   * if their checksums fail: the checksum of the row decides. */
  for (uint32_t next = row->overflow; left > 0;) {
    size_t take = left < p->usable - 4 ? (size_t)left : p->usable - 4;
    if (next < 2 || next > p->count) return err_set(err, LODE_CORRUPT, "a chain of overflow pages breaks off");
    (void)store_pages_read(p, next, p->chain);
    strbuf_add(payload, p->chain + 4, take);
    next = sqf_be32(p->chain);
    left -= take;
  }
  return LODE_OK;
}

static int64_t pages_column_int(const store_col *c, const unsigned char *bytes) {
  if (c->type != STORE_COL_INT) return 0;
  if (c->constant) return c->constant - 1;
  uint64_t v = c->len && (bytes[0] & 0x80) ? UINT64_MAX : 0;
  for (size_t i = 0; i < c->len; i++) v = v << 8 | bytes[i];
  return (int64_t)v;
}

int64_t store_row_int(const store_row *row, size_t column, const strbuf *payload) {
  const store_col *c = &row->cols[column];
  return c->at + c->len <= payload->len ? pages_column_int(c, (const unsigned char *)payload->data + c->at) : 0;
}

lode_str store_row_str(const store_row *row, size_t column, const strbuf *payload) {
  const store_col *c = &row->cols[column];
  if ((c->type != STORE_COL_TEXT && c->type != STORE_COL_BLOB) || c->at + c->len > payload->len)
    return (lode_str){NULL, 0};
  return (lode_str){payload->data + c->at, c->len};
}

bool store_row_local_int(const store_row *row, size_t column, int64_t *value) {
  const store_col *c = &row->cols[column];
  if (c->at + c->len > row->local_bytes) return false;
  *value = pages_column_int(c, row->local + c->at);
  return true;
}

/* ---- Kinds of rows ---- */

/* One letter for each column: n null, i integer, t text, b blob; I integer or null, T text or null. */
static bool row_has_shape(const store_row *row, const char *shape) {
  for (size_t i = 0;; i++) {
    if (shape[i] == 0 || i == row->n) return shape[i] == 0 && i == row->n;
    store_col_type t = row->cols[i].type;
    bool fits = false;
    switch (shape[i]) {
      case 'n': fits = t == STORE_COL_NULL; break;
      case 'i': fits = t == STORE_COL_INT; break;
      case 't': fits = t == STORE_COL_TEXT; break;
      case 'b': fits = t == STORE_COL_BLOB; break;
      case 'I': fits = t == STORE_COL_INT || t == STORE_COL_NULL; break;
      case 'T': fits = t == STORE_COL_TEXT || t == STORE_COL_NULL; break;
      default: break;
    }
    if (!fits) return false;
  }
}

store_row_kind store_row_kind_of(const store_row *row, bool table) {
  static const struct {
    const char *shape;
    store_row_kind kind;
  } tables[] = {
      {"nbiiITi", STORE_ROW_RECORD}, {"nti", STORE_ROW_DOCUMENT}, {"nibi", STORE_ROW_VECTOR},
      {"nbii", STORE_ROW_TOMBSTONE}, {"niti", STORE_ROW_METAKEY}, {"niTiiTTiiiiiiiiiiiiii", STORE_ROW_COLLECTION},
  };
  if (!table) return row_has_shape(row, "ibii") ? STORE_ROW_ID : STORE_ROW_OTHER;
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    if (row_has_shape(row, tables[i].shape)) return tables[i].kind;
  return STORE_ROW_OTHER;
}
