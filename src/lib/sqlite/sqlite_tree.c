/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_tree.c - the decoder of SQLite's b-tree pages. The contract is in sqlite_tree.h, the format in SQLite's
 * fileformat2.html.
 *
 * A page starts with its type, the number of cells and an array of offsets to them. A cell is: child page (inner
 * pages), payload length, key (tables), payload, first overflow page. A payload is: header length, one type per column,
 * then the columns. All integers are big-endian.
 */
#include "sqlite/sqlite_tree.h"

/* ---- Pages ---- */

bool sqf_view_page(const sqf_source *src, uint32_t number, const unsigned char *page, sqf_view *v) {
  size_t header = number == 1 ? 100 : 0;
  *v = (sqf_view){.page = page, .number = number, .header = header, .type = page[header]};
  v->pointers = header + (sqf_view_is_inner(v) ? 12 : 8);
  v->cells = num_be16(page + header + 3);
  v->content = num_be16(page + header + 5);
  v->lowest = v->pointers + 2 * (size_t)v->cells;
  bool known = sqf_view_is_inner(v) || v->type == SQF_LEAF_TABLE || v->type == SQF_LEAF_INDEX;
  return known && v->lowest <= src->usable;
}

void sqf_view_as_leaf(uint32_t number, const unsigned char *page, sqf_view *v) {
  size_t header = number == 1 ? 100 : 0, pointers = header + 8;
  *v = (sqf_view){page, number, header, pointers, pointers, 0, 0, SQF_LEAF_TABLE};
}

size_t sqf_view_cell(const sqf_source *src, const sqf_view *v, uint32_t i) {
  size_t at = v->pointers + 2 * (size_t)i;
  if (at + 2 > src->usable) return 0;
  size_t offset = num_be16(v->page + at);
  return offset >= v->lowest && offset + 4 <= src->usable ? offset : 0;
}

uint32_t sqf_view_child(const sqf_source *src, const sqf_view *v, uint32_t i) {
  if (i == v->cells) return num_be32(v->page + v->header + 8);
  size_t offset = sqf_view_cell(src, v, i);
  return offset ? num_be32(v->page + offset) : 0;
}

/* ---- Cells ---- */

size_t sqf_get_varint(const unsigned char *p, const unsigned char *end, uint64_t *value) {
  uint64_t v = 0;
  for (size_t i = 0; i < 9 && p + i < end; i++) {
    if (i == 8) {
      *value = v << 8 | p[i];
      return 9;
    }
    v = v << 7 | (p[i] & 0x7f);
    if (!(p[i] & 0x80)) {
      *value = v;
      return i + 1;
    }
  }
  return 0;
}

/* How many bytes of a payload are on the page itself. */
static size_t sqf_local_bytes(size_t usable, bool table, uint64_t bytes) {
  size_t max = table ? usable - 35 : (usable - 12) * 64 / 255 - 23, min = (usable - 12) * 32 / 255 - 23;
  if (bytes <= max) return (size_t)bytes;
  size_t k = min + (size_t)((bytes - min) % (usable - 4));
  return k <= max ? k : min;
}

bool sqf_cell_parse(const sqf_source *src, const sqf_view *v, size_t offset, sqf_cell *c) {
  const unsigned char *at = v->page + offset, *end = v->page + src->usable;
  bool table = v->type == SQF_LEAF_TABLE;
  uint64_t key = 0;
  size_t n;
  *c = (sqf_cell){0};
  if (!sqf_view_has_rows(v) || offset + 4 > src->usable) return false;
  if (v->type == SQF_INNER_INDEX) at += 4;
  if (!(n = sqf_get_varint(at, end, &c->bytes))) return false;
  at += n;
  if (table) {
    if (!(n = sqf_get_varint(at, end, &key))) return false;
    at += n;
  }
  if (c->bytes < 2 || c->bytes > src->bytes || c->bytes > SQF_MAX_ROW_BYTES) return false;
  c->key = (int64_t)key;
  c->local = at;
  c->local_bytes = sqf_local_bytes(src->usable, table, c->bytes);
  bool more = c->local_bytes < c->bytes;
  if (c->local_bytes + (more ? 4 : 0) > (size_t)(end - at)) return false;
  if (more) c->overflow = num_be32(at + c->local_bytes);
  return true;
}

/* ---- Columns ---- */

static sqf_column sqf_column_of(uint64_t serial, size_t at) {
  static const struct {
    sqf_type type;
    uint8_t len;
  } small[] = {{SQF_NULL, 0}, {SQF_INT, 1}, {SQF_INT, 2},  {SQF_INT, 3}, {SQF_INT, 4},
               {SQF_INT, 6},  {SQF_INT, 8}, {SQF_REAL, 8}, {SQF_INT, 0}, {SQF_INT, 0}};
  if (serial < 10) return (sqf_column){small[serial].type, (uint8_t)serial, at, small[serial].len};
  bool text = serial % 2;
  return (sqf_column){text ? SQF_TEXT : SQF_BLOB, (uint8_t)(12 + text), at, (size_t)((serial - 12) / 2)};
}

bool sqf_cell_columns(sqf_cell *c, const void *payload, size_t have) {
  const unsigned char *p = payload;
  uint64_t header = 0, serial = 0;
  size_t n;
  c->n = 0;
  if (have > c->bytes || !(n = sqf_get_varint(p, p + have, &header)) || header < n || header > have) return false;
  size_t at = (size_t)header;
  for (const unsigned char *h = p + n, *end = p + header; h < end; h += n) {
    if (c->n == SQF_MAX_COLUMNS || !(n = sqf_get_varint(h, end, &serial))) return false;
    if (serial == 10 || serial == 11) return false;
    sqf_column col = sqf_column_of(serial, at);
    if (col.len > c->bytes - at) return false;
    c->cols[c->n++] = col;
    at += col.len;
  }
  return at == c->bytes;
}

bool sqf_cell_parse_row(const sqf_source *src, const sqf_view *v, size_t offset, sqf_cell *c) {
  return sqf_cell_parse(src, v, offset, c) && sqf_cell_columns(c, c->local, c->local_bytes);
}

lode_status sqf_cell_load(const sqf_source *src, const sqf_cell *c, strbuf *payload, bool *cut, lode_error *err) {
  uint64_t left = c->bytes - c->local_bytes;
  uint32_t next = c->overflow;
  *cut = false;
  payload->len = 0;
  strbuf_add(payload, c->local, c->local_bytes); /* grows with what is read, not with the declared length */
  while (left > 0 && !payload->failed) {
    size_t take = left < src->usable - 4 ? (size_t)left : src->usable - 4;
    *cut = next < 2 || next > src->pages;
    if (*cut) break;
    const unsigned char *page = src->overflow_page(src->ctx, next);
    strbuf_add(payload, page + 4, take);
    next = num_be32(page);
    left -= take;
  }
  if (!payload->failed) return LODE_OK;
  strbuf_release(payload);
  return err_nomem(err);
}

static int64_t sqf_column_int(const sqf_column *c, const unsigned char *b) {
  if (c->type != SQF_INT) return 0;
  if (c->serial >= 8) return c->serial - 8;
  uint64_t v = b[0] & 0x80 ? UINT64_MAX : 0;
  for (size_t i = 0; i < c->len; i++) v = v << 8 | b[i];
  return (int64_t)v;
}

static double sqf_column_real(const unsigned char *b) {
  uint64_t v = (uint64_t)num_be32(b) << 32 | num_be32(b + 4);
  double d;
  memcpy(&d, &v, sizeof d);
  return d;
}

void sqf_cell_value(const sqf_cell *cell, size_t column, const strbuf *payload, sqf_value *value) {
  const sqf_column *c = &cell->cols[column];
  *value = (sqf_value){.type = SQF_NULL};
  if (c->at + c->len > payload->len) return;
  const char *b = payload->data + c->at;
  value->type = c->type;
  switch (c->type) {
    case SQF_NULL: return;
    case SQF_INT: value->i = sqf_column_int(c, (const unsigned char *)b); return;
    case SQF_REAL: value->d = sqf_column_real((const unsigned char *)b); return;
    case SQF_TEXT:
    case SQF_BLOB: value->s = (lode_str){b, c->len};
  }
}

int64_t sqf_cell_int(const sqf_cell *cell, size_t column, const strbuf *payload) {
  sqf_value v;
  sqf_cell_value(cell, column, payload, &v);
  return v.i;
}

lode_str sqf_cell_str(const sqf_cell *cell, size_t column, const strbuf *payload) {
  sqf_value v;
  sqf_cell_value(cell, column, payload, &v);
  return v.s;
}

bool sqf_cell_local_int(const sqf_cell *cell, size_t column, int64_t *value) {
  const sqf_column *c = &cell->cols[column];
  if (c->at + c->len > cell->local_bytes) return false;
  *value = sqf_column_int(c, cell->local + c->at);
  return true;
}

/* ---- The pointer map ---- */

uint32_t sqf_map_page_of(const sqf_source *src, uint32_t number) {
  uint32_t each = src->usable / 5 + 1;
  uint32_t map = (number - 2) / each * each + 2;
  return map == sqf_lock_page(src->page_bytes) ? map + 1 : map;
}

sqf_page_use sqf_map_entry(const sqf_source *src, const unsigned char *map_page, uint32_t map_number, uint32_t number) {
  if (number <= map_number) return number == map_number ? SQF_PAGE_PTRMAP : SQF_PAGE_UNKNOWN;
  size_t at = (size_t)5 * (number - map_number - 1);
  if (at + 5 > src->usable) return SQF_PAGE_UNKNOWN;
  unsigned kind = map_page[at];
  return kind >= SQF_PAGE_ROOT && kind <= SQF_PAGE_TREE ? (sqf_page_use)kind : SQF_PAGE_UNKNOWN;
}
