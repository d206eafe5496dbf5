/* sqlite_row.c - trees and rows of an SQLite file. Contract in sqlite_file.h.
 *
 * A page begins with its type (0x0d leaf of a table, 0x05 inner page of one, 0x0a and 0x02 the same of an index), the number
 * of cells and an array of offsets to them. A cell is: length of the payload, key (tables), payload, page where it goes on.
 * A payload is: length of its header, one type a column, then the columns.
 */
#include "sqlite_int.h"

enum { LEAF_TABLE = 0x0d, INNER_TABLE = 0x05, LEAF_INDEX = 0x0a, INNER_INDEX = 0x02 };

typedef struct view {
  const unsigned char *page;
  uint32_t number;
  size_t header;    /* where the page's header begins */
  size_t pointers;  /* where the offsets of the cells begin */
  uint32_t cells;
  unsigned char type;
} view;

static bool look(const lode__sq_file *f, uint32_t number, const unsigned char *page, view *v) {
  size_t header = number == 1 ? 100 : 0;
  unsigned char type = page[header];
  bool inner = type == INNER_TABLE || type == INNER_INDEX;
  *v = (view){page, number, header, header + (inner ? 12 : 8), lode__be16(page + header + 3), type};
  return (inner || type == LEAF_TABLE || type == LEAF_INDEX) && v->cells <= (f->usable - v->pointers) / 2;
}

/* Offset of cell i, 0 when it is impossible. */
static size_t cell_at(const lode__sq_file *f, const view *v, uint32_t i) {
  size_t offset = lode__be16(v->page + v->pointers + 2 * (size_t)i);
  return offset >= v->pointers + 2 * (size_t)v->cells && offset + 4 <= f->usable ? offset : 0;
}

size_t lode__sq_varint(const unsigned char *p, const unsigned char *end, uint64_t *value) {
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

/* How much of a payload is on the page itself. */
static size_t local_part(const lode__sq_file *f, bool table, uint64_t bytes) {
  size_t u = f->usable, max = table ? u - 35 : (u - 12) * 64 / 255 - 23, min = (u - 12) * 32 / 255 - 23;
  if (bytes <= max) return (size_t)bytes;
  size_t k = min + (size_t)((bytes - min) % (u - 4));
  return k <= max ? k : min;
}

/* ---- Values ---- */

static size_t serial_bytes(uint64_t serial) {
  static const uint8_t small[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
  return serial < 12 ? small[serial] : (size_t)((serial - 12) / 2);
}

static void decode(uint64_t serial, const char *at, lode__sq_value *v) {
  const unsigned char *b = (const unsigned char *)at;
  size_t n = serial_bytes(serial);
  *v = (lode__sq_value){.type = LODE__SQ_NULL};
  if (serial >= 12) {
    v->type = serial % 2 ? LODE__SQ_TEXT : LODE__SQ_BLOB;
    v->s = (lode_str){at, n};
  } else if (serial == 8 || serial == 9) {
    v->type = LODE__SQ_INT;
    v->i = (int64_t)serial - 8;
  } else if (serial >= 1 && serial <= 7) {
    uint64_t u = (b[0] & 0x80) && serial != 7 ? UINT64_MAX : 0;
    for (size_t i = 0; i < n; i++) u = u << 8 | b[i];
    v->type = serial == 7 ? LODE__SQ_REAL : LODE__SQ_INT;
    if (serial == 7) memcpy(&v->d, &u, sizeof v->d);
    else v->i = (int64_t)u;
  }
}

/* The columns of the payload in the file's buffer, of which `have` bytes are there. */
static bool decode_payload(lode__sq_file *f, uint64_t bytes, lode__sq_row *row) {
  const unsigned char *p = (const unsigned char *)f->payload.data;
  size_t have = f->payload.len, n;
  uint64_t header = 0, serial = 0;
  if (!(n = lode__sq_varint(p, p + have, &header)) || header < n || header > have) return false;
  uint64_t body = header;
  for (const unsigned char *h = p + n, *end = p + header; h < end; h += n) {
    if (row->n == LODE__SQ_COLUMNS || !(n = lode__sq_varint(h, end, &serial)) || serial == 10 || serial == 11) return false;
    uint64_t size = serial >= 12 ? (serial - 12) / 2 : serial_bytes(serial);
    if (size > bytes - body) return false;
    lode__sq_value *v = &row->values[row->n++];
    if (body + size <= have) decode(serial, f->payload.data + body, v);
    else *v = (lode__sq_value){.type = LODE__SQ_NULL};
    body += size;
  }
  return body == bytes;
}

/* ---- Rows ---- */

typedef struct cell {
  int64_t key;
  uint64_t bytes;
  const unsigned char *local;
  size_t local_bytes;
  uint32_t overflow;
} cell;

static bool parse_cell(const lode__sq_file *f, const view *v, size_t offset, cell *c) {
  const unsigned char *at = v->page + offset, *end = v->page + f->usable;
  bool table = v->type == LEAF_TABLE;
  uint64_t key = 0;
  size_t n;
  *c = (cell){0};
  if (v->type == INNER_INDEX) at += 4;
  if (at >= end || !(n = lode__sq_varint(at, end, &c->bytes))) return false;
  at += n;
  if (table) {
    if (!(n = lode__sq_varint(at, end, &key))) return false;
    at += n;
  }
  if (c->bytes < 2 || c->bytes > f->bytes || c->bytes > LODE__SQ_CELL_BYTES) return false;
  c->key = (int64_t)key;
  c->local = at;
  c->local_bytes = local_part(f, table, c->bytes);
  bool more = c->local_bytes < c->bytes;
  if (c->local_bytes + (more ? 4 : 0) > (size_t)(end - at)) return false;
  if (more) c->overflow = lode__be32(at + c->local_bytes);
  return true;
}

/* Brings the payload into the file's buffer. *cut: the chain breaks off. */
static lode_status load_payload(lode__sq_file *f, const cell *c, bool *cut, lode_error *err) {
  uint64_t left = c->bytes - c->local_bytes;
  uint32_t next = c->overflow;
  *cut = false;
  f->payload.len = 0;
  lode__buf_add(&f->payload, c->local, c->local_bytes); /* grows with what is there, whatever the length says */
  while (left > 0) { /* each page brings usable - 4 bytes, so the length bounds the chain, should it be a ring */
    size_t take = left < f->usable - 4 ? (size_t)left : f->usable - 4;
    *cut = next < 2 || next > f->info.pages;
    if (*cut || f->payload.failed) break;
    const unsigned char *page = lode__sq_page(f, next);
    f->seen[next / 8] |= (unsigned char)(1u << next % 8);
    lode__buf_add(&f->payload, page + 4, take);
    next = lode__be32(page);
    left -= take;
  }
  if (!f->payload.failed) return LODE_OK;
  lode__buf_release(&f->payload);
  return lode__fail_nomem(err);
}

/* False: there is no row. */
static lode_status read_cell(lode__sq_file *f, const view *v, size_t offset, lode__sq_row *row, bool *is_row, lode_error *err) {
  cell c;
  *is_row = false;
  row->n = 0;
  if (!parse_cell(f, v, offset, &c)) return LODE_OK;
  LODE__TRY(load_payload(f, &c, &row->cut, err));
  row->key = c.key;
  row->table = v->type == LEAF_TABLE;
  row->place = (lode__sq_place){v->number, (uint32_t)offset};
  *is_row = decode_payload(f, c.bytes, row);
  if (row->cut || !*is_row) f->info.damaged_rows++;
  return LODE_OK;
}

lode_status lode__sq_read(lode__sq_file *f, lode__sq_place place, lode__sq_row *row, lode_error *err) {
  bool is_row = false;
  view v;
  if (place.page == 0 || place.page > f->info.pages) return lode__fail(err, LODE_CORRUPT, "there is no such page");
  /* A buffer of its own, for the payload's pages pass through the cache */
  unsigned char **own = &f->level[LODE__SQ_DEPTH - 1];
  if (!*own && !(*own = lode__alloc(f->page_bytes))) return lode__fail_nomem(err);
  if (f->own_page != place.page) memcpy(*own, lode__sq_page(f, place.page), f->page_bytes);
  f->own_page = place.page;
  if (!look(f, place.page, *own, &v) || place.offset + 4 > f->usable) return lode__fail(err, LODE_CORRUPT, "a row is gone");
  LODE__TRY(read_cell(f, &v, place.offset, row, &is_row, err));
  return is_row ? LODE_OK : lode__fail(err, LODE_CORRUPT, "a row is gone");
}

bool lode__sq_type_at(lode__sq_file *f, lode__sq_place place, size_t column, uint64_t *offset) {
  view v;
  cell c;
  uint64_t header, serial;
  size_t n;
  if (place.page == 0 || place.page > f->info.pages || f->n_images) return false;
  const unsigned char *page = lode__sq_page(f, place.page);
  if (!look(f, place.page, page, &v) || place.offset + 4 > f->usable || !parse_cell(f, &v, place.offset, &c)) return false;
  const unsigned char *h = c.local, *end = c.local + c.local_bytes;
  if (!(n = lode__sq_varint(h, end, &header)) || header > c.local_bytes) return false;
  for (end = h + header, h += n; h < end; h += n, column--) {
    if (!(n = lode__sq_varint(h, end, &serial))) return false;
    if (column > 0) continue;
    *offset = (uint64_t)(place.page - 1) * f->page_bytes + (uint64_t)(h - page);
    return n == 1;
  }
  return false;
}

static lode_status rows_of_page(lode__sq_file *f, const view *v, lode__sq_row_fn *fn, void *ctx, bool stray, lode_error *err) {
  lode__sq_row row;
  for (uint32_t i = 0; i < v->cells; i++) {
    size_t offset = cell_at(f, v, i);
    bool is_row = false;
    if (offset) LODE__TRY(read_cell(f, v, offset, &row, &is_row, err));
    else if (!stray) f->info.damaged_rows++;
    if (is_row) LODE__TRY(fn(ctx, &row, err));
  }
  return LODE_OK;
}

/* ---- Trees ---- */

static bool mark_seen(lode__sq_file *f, uint32_t number) {
  if (number == 0 || number > f->info.pages) return false;
  unsigned char bit = (unsigned char)(1u << number % 8);
  if (f->seen[number / 8] & bit) return false;
  f->seen[number / 8] |= bit;
  return true;
}

typedef struct level {
  view v;
  uint32_t next; /* child */
} level;

static bool is_table(unsigned char type) { return type == LEAF_TABLE || type == INNER_TABLE; }

/* Brings the page at `number` to level `depth`; false: it is not a page of this tree. */
static lode_status enter(lode__sq_file *f, level *l, size_t depth, uint32_t number, bool table, bool *entered, lode_error *err) {
  *entered = false;
  if (!f->level[depth] && !(f->level[depth] = lode__alloc(f->page_bytes))) return lode__fail_nomem(err);
  if (!mark_seen(f, number)) {
    lode__sq_damaged(f, number);
    return LODE_OK;
  }
  lode__sq_load(f, number, f->level[depth]);
  l->next = 0;
  *entered = look(f, number, f->level[depth], &l->v) && is_table(l->v.type) == table;
  if (!*entered) {
    lode__sq_damaged(f, number);
    f->seen[number / 8] &= (unsigned char)~(1u << number % 8); /* strays may still make something of it */
  }
  return LODE_OK;
}

static uint32_t child_of(const lode__sq_file *f, const view *v, uint32_t i) {
  if (i == v->cells) return lode__be32(v->page + v->header + 8);
  size_t offset = cell_at(f, v, i);
  return offset ? lode__be32(v->page + offset) : 0;
}

static lode_status walk(lode__sq_file *f, uint32_t root, bool table, lode__sq_row_fn *fn, void *ctx, lode_error *err) {
  level levels[LODE__SQ_DEPTH];
  size_t depth = 0;
  bool entered;
  LODE__TRY(enter(f, &levels[0], 0, root, table, &entered, err));
  if (!entered) return LODE_OK;
  for (;;) {
    level *l = &levels[depth];
    bool inner = l->v.type == INNER_TABLE || l->v.type == INNER_INDEX;
    if (l->next == 0 && l->v.type != INNER_TABLE) LODE__TRY(rows_of_page(f, &l->v, fn, ctx, false, err));
    if (inner && l->next <= l->v.cells) {
      uint32_t child = child_of(f, &l->v, l->next++);
      if (depth + 2 >= LODE__SQ_DEPTH) {
        lode__sq_damaged(f, child);
        continue;
      }
      LODE__TRY(enter(f, &levels[depth + 1], depth + 1, child, table, &entered, err));
      if (entered) depth++;
      continue;
    }
    if (depth == 0) return LODE_OK;
    depth--;
  }
}

lode_status lode__sq_walk(lode__sq_file *f, uint32_t root, lode__sq_row_fn *fn, void *ctx, lode_error *err) {
  return walk(f, root, true, fn, ctx, err);
}

lode_status lode__sq_walk_index(lode__sq_file *f, uint32_t root, lode__sq_row_fn *fn, void *ctx, lode_error *err) {
  return walk(f, root, false, fn, ctx, err);
}

/* ---- Strays ---- */

/* Free pages hold what was deleted. */
static void mark_free(lode__sq_file *f) {
  if (f->info.header_lost) return;
  uint32_t trunk = lode__be32(lode__sq_page(f, 1) + 32);
  for (uint32_t steps = 0; trunk && steps < f->info.pages && mark_seen(f, trunk); steps++) {
    const unsigned char *page = lode__sq_page(f, trunk);
    uint32_t n = lode__be32(page + 4);
    if (n > f->usable / 4 - 2) n = 0;
    for (uint32_t i = 0; i < n; i++) (void)mark_seen(f, lode__be32(page + 8 + 4 * (size_t)i));
    trunk = lode__be32(page);
  }
}

lode_status lode__sq_strays(lode__sq_file *f, lode__sq_row_fn *fn, void *ctx, lode_error *err) {
  unsigned char **own = &f->level[0];
  if (!*own && !(*own = lode__alloc(f->page_bytes))) return lode__fail_nomem(err);
  mark_free(f);
  for (uint32_t number = 1; number <= f->info.pages; number++) {
    view v;
    if (f->seen[number / 8] & 1u << number % 8) continue;
    lode__sq_load(f, number, *own);
    if (look(f, number, *own, &v) && v.type != INNER_TABLE) LODE__TRY(rows_of_page(f, &v, fn, ctx, true, err));
  }
  return LODE_OK;
}
