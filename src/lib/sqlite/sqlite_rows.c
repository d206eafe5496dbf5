/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_rows.c - walks through the trees of an SQLite file, and rows that no tree leads to. The contract is in
 * sqlite_pages.h; pages and cells are decoded by sqlite_tree.c. */
#include "sqlite/sqlite_internal.h"

/* ---- Rows ---- */

/* *is_row is false if there is no row. */
static lode_status sqf_read_cell(sqf_file *f, const sqf_view *v, size_t offset, sqf_row *row, bool *is_row,
                                 lode_error *err) {
  sqf_cell c;
  *is_row = false;
  row->n = 0;
  if (!sqf_cell_parse(&f->src, v, offset, &c)) return LODE_OK;
  TRY(sqf_cell_load(&f->src, &c, &f->payload, &row->cut, err));
  row->key = c.key;
  row->table = v->type == SQF_LEAF_TABLE;
  row->place = (sqf_place){v->number, (uint32_t)offset};
  *is_row = sqf_cell_columns(&c, f->payload.data, f->payload.len);
  for (row->n = 0; row->n < c.n; row->n++) sqf_cell_value(&c, row->n, &f->payload, &row->values[row->n]);
  if (row->cut || !*is_row) f->info.damaged_rows++;
  return LODE_OK;
}

lode_status sqf_read_row(sqf_file *f, sqf_place place, sqf_row *row, lode_error *err) {
  bool is_row = false;
  sqf_view v;
  if (place.page == 0 || place.page > f->src.pages) return err_set(err, LODE_CORRUPT, "there is no such page");
  /* Needs a buffer of its own, because the payload's pages go through the cache. */
  unsigned char **own = &f->level[SQF_MAX_DEPTH - 1];
  if (!*own && !(*own = mem_alloc(f->src.page_bytes))) return err_nomem(err);
  if (f->own_page != place.page) memcpy(*own, sqf_get_page(f, place.page), f->src.page_bytes);
  f->own_page = place.page;
  if (!sqf_view_page(&f->src, place.page, *own, &v) || place.offset + 4 > f->src.usable)
    return err_set(err, LODE_CORRUPT, "a row is gone");
  TRY(sqf_read_cell(f, &v, place.offset, row, &is_row, err));
  return is_row ? LODE_OK : err_set(err, LODE_CORRUPT, "a row is gone");
}

bool sqf_type_offset(sqf_file *f, sqf_place place, size_t column, uint64_t *offset) {
  sqf_view v;
  sqf_cell c;
  uint64_t header, serial;
  size_t n;
  if (place.page == 0 || place.page > f->src.pages || f->images.n) return false;
  const unsigned char *page = sqf_get_page(f, place.page);
  if (!sqf_view_page(&f->src, place.page, page, &v) || place.offset + 4 > f->src.usable) return false;
  if (!sqf_cell_parse(&f->src, &v, place.offset, &c)) return false;
  const unsigned char *h = c.local, *end = c.local + c.local_bytes;
  if (!(n = sqf_get_varint(h, end, &header)) || header > c.local_bytes) return false;
  for (end = h + header, h += n; h < end; h += n, column--) {
    if (!(n = sqf_get_varint(h, end, &serial))) return false;
    if (column > 0) continue;
    *offset = (uint64_t)(place.page - 1) * f->src.page_bytes + (uint64_t)(h - page);
    return n == 1;
  }
  return false;
}

static lode_status sqf_rows_of_page(sqf_file *f, const sqf_view *v, sqf_row_fn *fn, void *ctx, bool orphan,
                                    lode_error *err) {
  sqf_row row;
  for (uint32_t i = 0; i < v->cells; i++) {
    size_t offset = sqf_view_cell(&f->src, v, i);
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
  if (number == 0 || number > f->src.pages) return false;
  unsigned char bit = (unsigned char)(1u << number % 8);
  if (f->seen[number / 8] & bit) return false;
  f->seen[number / 8] |= bit;
  return true;
}

typedef struct sqf_level {
  sqf_view v;
  uint32_t next; /* child to visit */
} sqf_level;

/* Loads page `number` as level `depth`. *entered is false if it is not a page of this tree. */
static lode_status sqf_enter_page(sqf_file *f, sqf_level *l, size_t depth, uint32_t number, bool table, bool *entered,
                                  lode_error *err) {
  *entered = false;
  if (!f->level[depth] && !(f->level[depth] = mem_alloc(f->src.page_bytes))) return err_nomem(err);
  if (!sqf_mark_seen(f, number)) {
    sqf_note_damage(f, number);
    return LODE_OK;
  }
  sqf_load_page(f, number, f->level[depth]);
  l->next = 0;
  *entered = sqf_view_page(&f->src, number, f->level[depth], &l->v) && sqf_view_is_table(&l->v) == table;
  if (!*entered) {
    sqf_note_damage(f, number);
    f->seen[number / 8] &= (unsigned char)~(1u << number % 8); /* sqf_walk_orphans() may still find rows in it */
  }
  return LODE_OK;
}

static lode_status sqf_walk_tree(sqf_file *f, uint32_t root, bool table, sqf_row_fn *fn, void *ctx, lode_error *err) {
  sqf_level levels[SQF_MAX_DEPTH];
  size_t depth = 0;
  bool entered;
  TRY(sqf_enter_page(f, &levels[0], 0, root, table, &entered, err));
  if (!entered) return LODE_OK;
  for (;;) {
    sqf_level *l = &levels[depth];
    if (l->next == 0 && sqf_view_has_rows(&l->v)) TRY(sqf_rows_of_page(f, &l->v, fn, ctx, false, err));
    if (sqf_view_is_inner(&l->v) && l->next <= l->v.cells) {
      uint32_t child = sqf_view_child(&f->src, &l->v, l->next++);
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
  uint32_t trunk = num_be32(sqf_get_page(f, 1) + 32);
  for (uint32_t steps = 0; trunk && steps < f->src.pages && sqf_mark_seen(f, trunk); steps++) {
    const unsigned char *page = sqf_get_page(f, trunk);
    uint32_t n = sqf_trunk_leaves(page, f->src.usable);
    for (uint32_t i = 0; i < n; i++) (void)sqf_mark_seen(f, num_be32(page + 8 + 4 * (size_t)i));
    trunk = num_be32(page);
  }
}

lode_status sqf_walk_orphans(sqf_file *f, sqf_row_fn *fn, void *ctx, lode_error *err) {
  unsigned char **own = &f->level[0];
  if (!*own && !(*own = mem_alloc(f->src.page_bytes))) return err_nomem(err);
  sqf_mark_free(f);
  for (uint32_t number = 1; number <= f->src.pages; number++) {
    sqf_view v;
    if (f->seen[number / 8] & 1u << number % 8) continue;
    sqf_load_page(f, number, *own);
    if (sqf_view_page(&f->src, number, *own, &v) && sqf_view_has_rows(&v))
      TRY(sqf_rows_of_page(f, &v, fn, ctx, true, err));
  }
  return LODE_OK;
}
