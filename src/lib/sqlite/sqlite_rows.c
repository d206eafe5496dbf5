/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_rows.c - trees and rows of an SQLite file. The contract is in sqlite_pages.h.
 *
 * A page starts with its type (0x0d table leaf, 0x05 table inner page, 0x0a index leaf, 0x02 index inner page), the
 * number of cells and an array of offsets to them. A cell is: payload length, key (tables), payload, first overflow
 * page. A payload is: header length, one type per column, then the columns.
 */
#include "sqlite/sqlite_internal.h"

enum { SQF_LEAF_TABLE = 0x0d, SQF_INNER_TABLE = 0x05, SQF_LEAF_INDEX = 0x0a, SQF_INNER_INDEX = 0x02 };

typedef struct sqf_page_view {
  const unsigned char *page;
  uint32_t number;
  size_t header;   /* where the page's header starts */
  size_t pointers; /* where the cell offsets start */
  uint32_t cells;
  unsigned char type;
} sqf_page_view;

static bool sqf_view_page(const sqf_file *f, uint32_t number, const unsigned char *page, sqf_page_view *v) {
  size_t header = number == 1 ? 100 : 0;
  unsigned char type = page[header];
  bool inner = type == SQF_INNER_TABLE || type == SQF_INNER_INDEX;
  *v = (sqf_page_view){page, number, header, header + (inner ? 12 : 8), sqf_be16(page + header + 3), type};
  return (inner || type == SQF_LEAF_TABLE || type == SQF_LEAF_INDEX) && v->cells <= (f->usable - v->pointers) / 2;
}

/* Offset of cell i, 0 if it is invalid. */
static size_t sqf_cell_at(const sqf_file *f, const sqf_page_view *v, uint32_t i) {
  size_t offset = sqf_be16(v->page + v->pointers + 2 * (size_t)i);
  return offset >= v->pointers + 2 * (size_t)v->cells && offset + 4 <= f->usable ? offset : 0;
}

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
static size_t sqf_local_bytes(const sqf_file *f, bool table, uint64_t bytes) {
  size_t u = f->usable, max = table ? u - 35 : (u - 12) * 64 / 255 - 23, min = (u - 12) * 32 / 255 - 23;
  if (bytes <= max) return (size_t)bytes;
  size_t k = min + (size_t)((bytes - min) % (u - 4));
  return k <= max ? k : min;
}

/* ---- Values ---- */

static size_t sqf_serial_bytes(uint64_t serial) {
  static const uint8_t small[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
  return serial < 12 ? small[serial] : (size_t)((serial - 12) / 2);
}

static void sqf_decode_value(uint64_t serial, const char *at, sqf_value *v) {
  const unsigned char *b = (const unsigned char *)at;
  size_t n = sqf_serial_bytes(serial);
  *v = (sqf_value){.type = SQF_NULL};
  if (serial >= 12) {
    v->type = serial % 2 ? SQF_TEXT : SQF_BLOB;
    v->s = (lode_str){at, n};
  } else if (serial == 8 || serial == 9) {
    v->type = SQF_INT;
    v->i = (int64_t)serial - 8;
  } else if (serial >= 1 && serial <= 7) {
    uint64_t u = (b[0] & 0x80) && serial != 7 ? UINT64_MAX : 0;
    for (size_t i = 0; i < n; i++) u = u << 8 | b[i];
    v->type = serial == 7 ? SQF_REAL : SQF_INT;
    if (serial == 7)
      memcpy(&v->d, &u, sizeof v->d);
    else
      v->i = (int64_t)u;
  }
}

/* Decodes the columns of the payload in the file's buffer, which may hold fewer than `bytes` bytes. */
static bool sqf_decode_payload(sqf_file *f, uint64_t bytes, sqf_row *row) {
  const unsigned char *p = (const unsigned char *)f->payload.data;
  size_t have = f->payload.len, n;
  uint64_t header = 0, serial = 0;
  if (!(n = sqf_get_varint(p, p + have, &header)) || header < n || header > have) return false;
  uint64_t body = header;
  for (const unsigned char *h = p + n, *end = p + header; h < end; h += n) {
    if (row->n == SQF_MAX_COLUMNS || !(n = sqf_get_varint(h, end, &serial))) return false;
    if (serial == 10 || serial == 11) return false;
    uint64_t size = serial >= 12 ? (serial - 12) / 2 : sqf_serial_bytes(serial);
    if (size > bytes - body) return false;
    sqf_value *v = &row->values[row->n++];
    if (body + size <= have)
      sqf_decode_value(serial, f->payload.data + body, v);
    else
      *v = (sqf_value){.type = SQF_NULL};
    body += size;
  }
  return body == bytes;
}

/* ---- Rows ---- */

typedef struct sqf_cell {
  int64_t key;
  uint64_t bytes;
  const unsigned char *local;
  size_t local_bytes;
  uint32_t overflow;
} sqf_cell;

static bool sqf_parse_cell(const sqf_file *f, const sqf_page_view *v, size_t offset, sqf_cell *c) {
  const unsigned char *at = v->page + offset, *end = v->page + f->usable;
  bool table = v->type == SQF_LEAF_TABLE;
  uint64_t key = 0;
  size_t n;
  *c = (sqf_cell){0};
  if (v->type == SQF_INNER_INDEX) at += 4;
  if (at >= end || !(n = sqf_get_varint(at, end, &c->bytes))) return false;
  at += n;
  if (table) {
    if (!(n = sqf_get_varint(at, end, &key))) return false;
    at += n;
  }
  if (c->bytes < 2 || c->bytes > f->bytes || c->bytes > SQF_MAX_ROW_BYTES) return false;
  c->key = (int64_t)key;
  c->local = at;
  c->local_bytes = sqf_local_bytes(f, table, c->bytes);
  bool more = c->local_bytes < c->bytes;
  if (c->local_bytes + (more ? 4 : 0) > (size_t)(end - at)) return false;
  if (more) c->overflow = sqf_be32(at + c->local_bytes);
  return true;
}

/* Loads the payload into the file's buffer. *cut: the overflow chain is broken. */
static lode_status sqf_load_payload(sqf_file *f, const sqf_cell *c, bool *cut, lode_error *err) {
  uint64_t left = c->bytes - c->local_bytes;
  uint32_t next = c->overflow;
  *cut = false;
  f->payload.len = 0;
  strbuf_add(&f->payload, c->local, c->local_bytes); /* grows with what is read, not with the declared length */
  while (left > 0) { /* each page adds usable - 4 bytes, so the length bounds the chain even if it is circular */
    size_t take = left < f->usable - 4 ? (size_t)left : f->usable - 4;
    *cut = next < 2 || next > f->info.pages;
    if (*cut || f->payload.failed) break;
    const unsigned char *page = sqf_get_page(f, next);
    f->seen[next / 8] |= (unsigned char)(1u << next % 8);
    strbuf_add(&f->payload, page + 4, take);
    next = sqf_be32(page);
    left -= take;
  }
  if (!f->payload.failed) return LODE_OK;
  strbuf_release(&f->payload);
  return err_nomem(err);
}

/* *is_row is false if there is no row. */
static lode_status sqf_read_cell(sqf_file *f, const sqf_page_view *v, size_t offset, sqf_row *row, bool *is_row,
                                 lode_error *err) {
  sqf_cell c;
  *is_row = false;
  row->n = 0;
  if (!sqf_parse_cell(f, v, offset, &c)) return LODE_OK;
  TRY(sqf_load_payload(f, &c, &row->cut, err));
  row->key = c.key;
  row->table = v->type == SQF_LEAF_TABLE;
  row->place = (sqf_place){v->number, (uint32_t)offset};
  *is_row = sqf_decode_payload(f, c.bytes, row);
  if (row->cut || !*is_row) f->info.damaged_rows++;
  return LODE_OK;
}

lode_status sqf_read_row(sqf_file *f, sqf_place place, sqf_row *row, lode_error *err) {
  bool is_row = false;
  sqf_page_view v;
  if (place.page == 0 || place.page > f->info.pages) return err_set(err, LODE_CORRUPT, "there is no such page");
  /* Needs a buffer of its own, because the payload's pages go through the cache. */
  unsigned char **own = &f->level[SQF_MAX_DEPTH - 1];
  if (!*own && !(*own = mem_alloc(f->page_bytes))) return err_nomem(err);
  if (f->own_page != place.page) memcpy(*own, sqf_get_page(f, place.page), f->page_bytes);
  f->own_page = place.page;
  if (!sqf_view_page(f, place.page, *own, &v) || place.offset + 4 > f->usable)
    return err_set(err, LODE_CORRUPT, "a row is gone");
  TRY(sqf_read_cell(f, &v, place.offset, row, &is_row, err));
  return is_row ? LODE_OK : err_set(err, LODE_CORRUPT, "a row is gone");
}

bool sqf_type_offset(sqf_file *f, sqf_place place, size_t column, uint64_t *offset) {
  sqf_page_view v;
  sqf_cell c;
  uint64_t header, serial;
  size_t n;
  if (place.page == 0 || place.page > f->info.pages || f->n_images) return false;
  const unsigned char *page = sqf_get_page(f, place.page);
  if (!sqf_view_page(f, place.page, page, &v) || place.offset + 4 > f->usable) return false;
  if (!sqf_parse_cell(f, &v, place.offset, &c)) return false;
  const unsigned char *h = c.local, *end = c.local + c.local_bytes;
  if (!(n = sqf_get_varint(h, end, &header)) || header > c.local_bytes) return false;
  for (end = h + header, h += n; h < end; h += n, column--) {
    if (!(n = sqf_get_varint(h, end, &serial))) return false;
    if (column > 0) continue;
    *offset = (uint64_t)(place.page - 1) * f->page_bytes + (uint64_t)(h - page);
    return n == 1;
  }
  return false;
}

static lode_status sqf_rows_of_page(sqf_file *f, const sqf_page_view *v, sqf_row_fn *fn, void *ctx, bool orphan,
                                    lode_error *err) {
  sqf_row row;
  for (uint32_t i = 0; i < v->cells; i++) {
    size_t offset = sqf_cell_at(f, v, i);
    bool is_row = false;
    if (offset)
      TRY(sqf_read_cell(f, v, offset, &row, &is_row, err));
    else if (!orphan)
      f->info.damaged_rows++;
    if (is_row) TRY(fn(ctx, &row, err));
  }
  return LODE_OK;
}

/* ---- Trees ---- */

static bool sqf_mark_seen(sqf_file *f, uint32_t number) {
  if (number == 0 || number > f->info.pages) return false;
  unsigned char bit = (unsigned char)(1u << number % 8);
  if (f->seen[number / 8] & bit) return false;
  f->seen[number / 8] |= bit;
  return true;
}

typedef struct sqf_level {
  sqf_page_view v;
  uint32_t next; /* child to visit */
} sqf_level;

static bool sqf_is_table(unsigned char type) { return type == SQF_LEAF_TABLE || type == SQF_INNER_TABLE; }

/* Loads page `number` as level `depth`. *entered is false if it is not a page of this tree. */
static lode_status sqf_enter_page(sqf_file *f, sqf_level *l, size_t depth, uint32_t number, bool table, bool *entered,
                                  lode_error *err) {
  *entered = false;
  if (!f->level[depth] && !(f->level[depth] = mem_alloc(f->page_bytes))) return err_nomem(err);
  if (!sqf_mark_seen(f, number)) {
    sqf_note_damage(f, number);
    return LODE_OK;
  }
  sqf_load_page(f, number, f->level[depth]);
  l->next = 0;
  *entered = sqf_view_page(f, number, f->level[depth], &l->v) && sqf_is_table(l->v.type) == table;
  if (!*entered) {
    sqf_note_damage(f, number);
    f->seen[number / 8] &= (unsigned char)~(1u << number % 8); /* sqf_walk_orphans() may still find rows in it */
  }
  return LODE_OK;
}

static uint32_t sqf_child_of(const sqf_file *f, const sqf_page_view *v, uint32_t i) {
  if (i == v->cells) return sqf_be32(v->page + v->header + 8);
  size_t offset = sqf_cell_at(f, v, i);
  return offset ? sqf_be32(v->page + offset) : 0;
}

static lode_status sqf_walk_tree(sqf_file *f, uint32_t root, bool table, sqf_row_fn *fn, void *ctx, lode_error *err) {
  sqf_level levels[SQF_MAX_DEPTH];
  size_t depth = 0;
  bool entered;
  TRY(sqf_enter_page(f, &levels[0], 0, root, table, &entered, err));
  if (!entered) return LODE_OK;
  for (;;) {
    sqf_level *l = &levels[depth];
    bool inner = l->v.type == SQF_INNER_TABLE || l->v.type == SQF_INNER_INDEX;
    if (l->next == 0 && l->v.type != SQF_INNER_TABLE) TRY(sqf_rows_of_page(f, &l->v, fn, ctx, false, err));
    if (inner && l->next <= l->v.cells) {
      uint32_t child = sqf_child_of(f, &l->v, l->next++);
      if (depth + 2 >= SQF_MAX_DEPTH) {
        sqf_note_damage(f, child);
        continue;
      }
      TRY(sqf_enter_page(f, &levels[depth + 1], depth + 1, child, table, &entered, err));
      if (entered) depth++;
      continue;
    }
    if (depth == 0) return LODE_OK;
    depth--;
  }
}

lode_status sqf_walk_table(sqf_file *f, uint32_t root, sqf_row_fn *fn, void *ctx, lode_error *err) {
  return sqf_walk_tree(f, root, true, fn, ctx, err);
}

lode_status sqf_walk_index(sqf_file *f, uint32_t root, sqf_row_fn *fn, void *ctx, lode_error *err) {
  return sqf_walk_tree(f, root, false, fn, ctx, err);
}

/* ---- Orphans ---- */

/* Marks free pages as seen: they hold deleted rows. */
static void sqf_mark_free(sqf_file *f) {
  if (f->info.header_lost) return;
  uint32_t trunk = sqf_be32(sqf_get_page(f, 1) + 32);
  for (uint32_t steps = 0; trunk && steps < f->info.pages && sqf_mark_seen(f, trunk); steps++) {
    const unsigned char *page = sqf_get_page(f, trunk);
    uint32_t n = sqf_be32(page + 4);
    if (n > f->usable / 4 - 2) n = 0;
    for (uint32_t i = 0; i < n; i++) (void)sqf_mark_seen(f, sqf_be32(page + 8 + 4 * (size_t)i));
    trunk = sqf_be32(page);
  }
}

lode_status sqf_walk_orphans(sqf_file *f, sqf_row_fn *fn, void *ctx, lode_error *err) {
  unsigned char **own = &f->level[0];
  if (!*own && !(*own = mem_alloc(f->page_bytes))) return err_nomem(err);
  sqf_mark_free(f);
  for (uint32_t number = 1; number <= f->info.pages; number++) {
    sqf_page_view v;
    if (f->seen[number / 8] & 1u << number % 8) continue;
    sqf_load_page(f, number, *own);
    if (sqf_view_page(f, number, *own, &v) && v.type != SQF_INNER_TABLE)
      TRY(sqf_rows_of_page(f, &v, fn, ctx, true, err));
  }
  return LODE_OK;
}
