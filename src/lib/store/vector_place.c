/* SPDX-License-Identifier: Apache-2.0 */
/* vector_place.c - where in the database file the bytes of a vector are.
 *
 * SQLite does not say where a row is. So the tree of `vector` is walked in the file, past SQLite: within a read
 * transaction the file holds what was committed, because no writer may change it meanwhile. Nothing depends on that,
 * though. A place is given only if the file has the vector's bytes there, and whoever uses it later, when a commit may
 * have moved the row, checks what he reads (index/segment.h).
 *
 * The pages on the way to the last leaf are kept: keys are mostly asked for in order. They may be of an earlier
 * transaction; if the vector is not found with them, they are read again.
 */
#include "store/statements.h"

#include <fcntl.h>

#include "os/os.h"
#include "sqlite/sqlite_tree.h"
#include "store/tx.h"

enum { PLACE_MAX_DEPTH = 12, PLACE_HEADER_BYTES = 100, PLACE_DATA_COLUMN = 2 };

struct store_places {
  int fd;
  uint32_t root;
  sqf_source source;
  unsigned char *pages; /* PLACE_MAX_DEPTH of them, from the root on */
  uint32_t numbers[PLACE_MAX_DEPTH];
};

static bool place_read(const store_places *p, uint64_t offset, void *buf, size_t n) {
  size_t got = 0;
  lode_error ignored;
  return os_read_full(p->fd, buf, n, offset, &got, &ignored) == LODE_OK && got == n;
}

static lode_status place_open_file(store_places *p, store_tx *tx, lode_error *err) {
  unsigned char header[PLACE_HEADER_BYTES];
  int64_t root = 0;
  p->fd = beneath_open(store_db_folder(tx->conn->db), STOREFILE_DB, O_RDONLY, 0);
  if (p->fd < 0 || !place_read(p, 0, header, sizeof header)) return LODE_OK; /* then no place is known */
  TRY(store_get_int(tx, STORE_STMT_VECTOR_ROOT, &root, err));
  uint32_t bytes = num_be16(header + 16) == 1 ? 65536 : num_be16(header + 16);
  if (bytes < 512 || header[20] > 32 || root < 2 || root > UINT32_MAX) return LODE_OK;
  p->source = (sqf_source){.page_bytes = bytes, .usable = bytes - header[20], .pages = UINT32_MAX, .bytes = UINT64_MAX};
  p->pages = mem_alloc((size_t)bytes * PLACE_MAX_DEPTH);
  if (!p->pages) return err_nomem(err);
  p->root = (uint32_t)root;
  return LODE_OK;
}

lode_status store_places_open(store_tx *tx, store_places **places, lode_error *err) {
  *places = NULL;
  store_places *p = mem_calloc(1, sizeof *p);
  if (!p) return err_nomem(err);
  lode_status st = place_open_file(p, tx, err);
  if (st == LODE_OK)
    *places = p;
  else
    store_places_close(p);
  return st;
}

void store_places_close(store_places *p) {
  if (!p) return;
  if (p->fd >= 0) (void)os_api->close(p->fd);
  mem_free(p->pages);
  mem_free(p);
}

/* The page of a level, kept from the last time if it is the same one. */
static const unsigned char *place_page(store_places *p, unsigned level, uint32_t number) {
  unsigned char *page = p->pages + (size_t)level * p->source.page_bytes;
  if (p->numbers[level] == number) return page;
  p->numbers[level] = 0;
  if (!place_read(p, (uint64_t)(number - 1) * p->source.page_bytes, page, p->source.page_bytes)) return NULL;
  p->numbers[level] = number;
  return page;
}

/* Key of a cell, of an inner page or a leaf of a table. */
static bool place_key(const sqf_source *src, const sqf_view *v, uint32_t i, int64_t *key) {
  uint64_t value, skipped;
  size_t at = sqf_view_cell(src, v, i), n;
  const unsigned char *end = v->page + src->usable;
  if (!at) return false;
  const unsigned char *from = v->page + at + (sqf_view_is_inner(v) ? 4 : 0);
  n = sqf_view_is_inner(v) ? 0 : sqf_get_varint(from, end, &skipped);
  if (!sqf_view_is_inner(v) && !n) return false;
  if (!sqf_get_varint(from + n, end, &value)) return false;
  *key = (int64_t)value;
  return true;
}

/* The first cell whose key is not less than `key`; v->cells if there is none, or the page is not in order. */
static uint32_t place_seek(const sqf_source *src, const sqf_view *v, int64_t key) {
  uint32_t low = 0, high = v->cells;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int64_t found = 0;
    if (!place_key(src, v, middle, &found)) return v->cells;
    if (found < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Offset in the file of the data of a row of this leaf; 0: it is not there, or not in one piece. */
static uint64_t place_in_leaf(const store_places *p, const sqf_view *v, int64_t vid, const void *data, size_t bytes) {
  sqf_cell cell;
  uint32_t i = place_seek(&p->source, v, vid);
  size_t at = i < v->cells ? sqf_view_cell(&p->source, v, i) : 0;
  if (!at || !sqf_cell_parse_row(&p->source, v, at, &cell) || cell.key != vid || cell.n <= PLACE_DATA_COLUMN) return 0;
  const sqf_column *c = &cell.cols[PLACE_DATA_COLUMN];
  if (c->type != SQF_BLOB || c->len != bytes || c->at + c->len > cell.local_bytes) return 0;
  if (memcmp(cell.local + c->at, data, bytes) != 0) return 0;
  return (uint64_t)(v->number - 1) * p->source.page_bytes + (uint64_t)(cell.local + c->at - v->page);
}

static uint64_t place_walk(store_places *p, int64_t vid, const void *data, size_t bytes) {
  uint32_t number = p->root;
  for (unsigned level = 0; level < PLACE_MAX_DEPTH && number >= 2; level++) {
    sqf_view v;
    const unsigned char *page = place_page(p, level, number);
    if (!page || !sqf_view_page(&p->source, number, page, &v) || !sqf_view_is_table(&v)) return 0;
    if (!sqf_view_is_inner(&v)) return place_in_leaf(p, &v, vid, data, bytes);
    number = sqf_view_child(&p->source, &v, place_seek(&p->source, &v, vid));
  }
  return 0;
}

uint64_t store_places_find(store_places *p, int64_t vid, const float *vector, uint32_t dim) {
  if (!p->root) return 0;
  uint64_t place = place_walk(p, vid, vector, dim * sizeof *vector);
  if (place) return place;
  memset(p->numbers, 0, sizeof p->numbers);
  return place_walk(p, vid, vector, dim * sizeof *vector);
}
