/* SPDX-License-Identifier: Apache-2.0 */
/* salvage_find.c - scans the pages of a damaged store for rows with valid checksums.
 *
 * First pass: rows of records, tombstones and collections must have a valid checksum and are taken from any page;
 * documents and vectors are recognized by their column types, and verified when they are fetched. A damaged page is
 * also searched byte by byte, because its cell pointers may be what is damaged; the space before its cells is
 * skipped, since it may hold old copies of moved rows. What only an older version of a page has is taken, too, but
 * refers to nothing.
 *
 * Second pass: ids, documents and vectors on valid pages refer to records. Such a record is lost if it was not found
 * and has no tombstone. If the ids of all live records of a collection were found, a record without one was deleted,
 * even if its tombstone is lost. If more records were found than the collection has, tombstones are lost.
 *
 * Free pages, pointer maps and overflow pages hold no rows, whatever they look like. Memory holds 16 bytes for each
 * row, not its content.
 */
#include "repair/salvage.h"

/* ---- Lists ---- */

static lode_status salvage_found_add(salvage_found_list *l, int64_t key, uint32_t page, size_t offset, uint8_t trust,
                                     lode_error *err) {
  if (!mem_grow(&l->items, &l->cap, l->n + 1, sizeof *l->items)) return err_nomem(err);
  l->items[l->n++] = (salvage_found){key, page, (uint16_t)offset, trust, 0};
  return LODE_OK;
}

static lode_status salvage_key_add(salvage_key_list *l, int64_t key, lode_error *err) {
  if (!mem_grow(&l->items, &l->cap, l->n + 1, sizeof *l->items)) return err_nomem(err);
  l->items[l->n++] = key;
  return LODE_OK;
}

static void salvage_keys_sort(salvage_key_list *l) {
  size_t n = 0;
  if (l->n) qsort(l->items, l->n, sizeof *l->items, sort_cmp_i64);
  for (size_t i = 0; i < l->n; i++)
    if (n == 0 || l->items[i] != l->items[n - 1]) l->items[n++] = l->items[i];
  l->n = n;
}

static bool salvage_has_key(const salvage_key_list *l, int64_t key) {
  return l->n && bsearch(&key, l->items, l->n, sizeof key, sort_cmp_i64);
}

static int salvage_found_compare(const void *x, const void *y) {
  const salvage_found *a = x, *b = y;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  if (a->trust != b->trust) return a->trust > b->trust ? -1 : 1;
  if (a->page != b->page) return a->page < b->page ? -1 : 1;
  return (a->offset > b->offset) - (a->offset < b->offset);
}

static void salvage_found_sort(salvage_found_list *l) {
  if (l->n) qsort(l->items, l->n, sizeof *l->items, salvage_found_compare);
}

salvage_found *salvage_found_first(const salvage_found_list *l, int64_t key) {
  size_t at = 0;
  SORT_LOWER_BOUND(at, l->n, l->items[at].key < key);
  return at < l->n && l->items[at].key == key ? &l->items[at] : NULL;
}

static int salvage_colls_compare(const void *x, const void *y) {
  const salvage_coll *a = x, *b = y;
  if (a->coll.cid != b->coll.cid) return a->coll.cid < b->coll.cid ? -1 : 1;
  return (int)b->trust - (int)a->trust;
}

static void salvage_colls_sort(salvage_job *s) {
  size_t n = 0;
  if (s->n_colls) qsort(s->colls, s->n_colls, sizeof *s->colls, salvage_colls_compare);
  for (size_t i = 0; i < s->n_colls; i++)
    if (n == 0 || s->colls[i].coll.cid != s->colls[n - 1].coll.cid) s->colls[n++] = s->colls[i];
  s->n_colls = n;
}

static int salvage_counter_keys_compare(const void *x, const void *y) {
  const salvage_counter_key *a = x, *b = y;
  if (a->cid != b->cid) return a->cid < b->cid ? -1 : 1;
  return str_cmp(a->name, b->name);
}

static void salvage_counter_keys_sort(salvage_job *s) {
  size_t n = 0;
  if (s->n_keys) qsort(s->keys, s->n_keys, sizeof *s->keys, salvage_counter_keys_compare);
  for (size_t i = 0; i < s->n_keys; i++)
    if (n == 0 || salvage_counter_keys_compare(&s->keys[i], &s->keys[n - 1]) != 0) s->keys[n++] = s->keys[i];
  s->n_keys = n;
}

salvage_coll *salvage_find_coll(const salvage_job *s, int64_t cid) {
  size_t at = 0;
  SORT_LOWER_BOUND(at, s->n_colls, s->colls[at].coll.cid < cid);
  return at < s->n_colls && s->colls[at].coll.cid == cid ? &s->colls[at] : NULL;
}

void salvage_report_loss(salvage_job *s, const char *what, int64_t cid, lode_str id, const char *format, ...) {
  char detail[400];
  va_list args;
  if (!s->on_loss) return;
  va_start(args, format);
  vsnprintf(detail, sizeof detail, format, args);
  va_end(args);
  const salvage_coll *c = salvage_find_coll(s, cid);
  lode_damage damage = {.what = what, .collection = c ? c->coll.name : (lode_str){NULL, 0}, .id = id, .detail = detail};
  s->on_loss(s->ctx, &damage);
}

/* ---- Rows ---- */

/* A page may be damaged, and so may its number of cells: their pointers are taken from anywhere after the header. */
static bool salvage_view_page(const salvage_job *s, uint32_t number, sqf_view *view) {
  if (!sqf_view_page(&s->pages.src, number, s->page, view) || !sqf_view_has_rows(view)) return false;
  view->lowest = view->pointers;
  return true;
}

lode_status salvage_read_row(salvage_job *s, const salvage_found *f, sqf_cell *row, strbuf *payload, lode_error *err) {
  sqf_view view;
  (void)!vfs_pages_read(&s->pages, f->page, s->page); /* the checksum of the row decides */
  sqf_view_as_leaf(f->page, s->page, &view);
  if (!sqf_cell_parse_row(&s->pages.src, &view, f->offset, row)) return err_set(err, LODE_CORRUPT, "a row is gone");
  return repair_row_load(&s->pages, row, payload, err);
}

static lode_status salvage_copy_str(salvage_job *s, lode_str *str, lode_error *err) {
  if (!str->data) return LODE_OK;
  str->data = mem_arena_copy(&s->arena, str->data, str->len);
  return str->data ? LODE_OK : err_nomem(err);
}

/* A collection without a name was dropped. */
static lode_status salvage_add_collection(salvage_job *s, const sqf_cell *row, uint8_t trust, lode_error *err) {
  const strbuf *p = &s->payload;
  store_coll c = {
      .cid = row->key,
      .uid = (uint64_t)sqf_cell_int(row, 1, p),
      .name = sqf_cell_str(row, 2, p),
      .metric = (lode_metric)sqf_cell_int(row, 3, p),
      .dim = (uint32_t)sqf_cell_int(row, 4, p),
      .metadata = sqf_cell_str(row, 5, p),
      .embedder = sqf_cell_str(row, 6, p),
      .embedder_dim = (uint32_t)sqf_cell_int(row, 7, p),
      .counted = (uint32_t)sqf_cell_int(row, 8, p),
      .records = trust == SALVAGE_TRUST_SOUND ? (uint64_t)sqf_cell_int(row, 10, p) : UINT64_MAX,
  };
  bool proven = (uint32_t)sqf_cell_int(row, 20, p) == store_crc_collection(&c);
  bool dropped = !c.name.data;
  if (!proven || c.cid < 1 || c.cid >= INT64_C(1) << 22 || c.metric > LODE_IP || c.dim > LODE_MAX_DIMENSION)
    return LODE_OK;
  if (!mem_grow(&s->colls, &s->cap_colls, s->n_colls + 1, sizeof *s->colls)) return err_nomem(err);
  TRY(salvage_copy_str(s, &c.name, err));
  TRY(salvage_copy_str(s, &c.metadata, err));
  TRY(salvage_copy_str(s, &c.embedder, err));
  s->colls[s->n_colls++] = (salvage_coll){c, trust, dropped, 0};
  return LODE_OK;
}

static lode_status salvage_add_counter_key(salvage_job *s, const sqf_cell *row, lode_error *err) {
  salvage_counter_key k = {sqf_cell_int(row, 1, &s->payload), sqf_cell_str(row, 2, &s->payload)};
  if (sqf_cell_int(row, 3, &s->payload) != 1 || !k.name.data || !utf8_valid(k.name.data, k.name.len)) return LODE_OK;
  if (!mem_grow(&s->keys, &s->cap_keys, s->n_keys + 1, sizeof *s->keys)) return err_nomem(err);
  TRY(salvage_copy_str(s, &k.name, err));
  s->keys[s->n_keys++] = k;
  return LODE_OK;
}

static lode_status salvage_add_row(salvage_job *s, repair_row_kind kind, const sqf_cell *row, uint32_t page,
                                   size_t offset, uint8_t trust, lode_error *err) {
  store_rec rec;
  switch (kind) {
    case REPAIR_ROW_RECORD:
      return repair_row_to_rec(row, &s->payload, &rec)
                 ? salvage_found_add(&s->records, row->key, page, offset, trust, err)
                 : LODE_OK;
    case REPAIR_ROW_TOMBSTONE: {
      store_tombstone tombstone;
      lode_str rids = sqf_cell_str(row, 1, &s->payload);
      int64_t vid = sqf_cell_int(row, 2, &s->payload);
      bool proven = (uint32_t)sqf_cell_int(row, 3, &s->payload) == store_crc_tombstone(row->key, rids, vid);
      if (!proven || !store_tombstone_decode(row->key, rids, vid, &tombstone)) return LODE_OK;
      for (size_t i = 0; i < tombstone.n; i++) TRY(salvage_key_add(&s->dead, tombstone.rids[i], err));
      return LODE_OK;
    }
    case REPAIR_ROW_COLLECTION: return salvage_add_collection(s, row, trust, err);
    case REPAIR_ROW_METAKEY: return trust == SALVAGE_TRUST_SOUND ? salvage_add_counter_key(s, row, err) : LODE_OK;
    default: return LODE_OK;
  }
}

/* First pass: adds the row at `offset`, if there is one, to the list of its kind. */
static lode_status salvage_examine_cell(salvage_job *s, const sqf_view *view, uint32_t number, size_t offset,
                                        uint8_t trust, lode_error *err) {
  sqf_cell row;
  if (!sqf_cell_parse_row(&s->pages.src, view, offset, &row)) return LODE_OK;
  repair_row_kind kind = repair_row_kind_of(&row, view);
  if (kind == REPAIR_ROW_DOCUMENT) return salvage_found_add(&s->documents, row.key, number, offset, trust, err);
  if (kind == REPAIR_ROW_VECTOR) return salvage_found_add(&s->vectors, row.key, number, offset, trust, err);
  if (kind == REPAIR_ROW_OTHER || kind == REPAIR_ROW_ID) return LODE_OK;
  if (row.bytes > LODE_MAX_METADATA_BYTES + (64u << 10)) return LODE_OK; /* longer than any row of ours */
  lode_status st = repair_row_load(&s->pages, &row, &s->payload, err);
  if (st == LODE_CORRUPT) return LODE_OK;
  TRY(st);
  return salvage_add_row(s, kind, &row, number, offset, trust, err);
}

/* ---- First pass ---- */

static lode_status salvage_scan_cells(salvage_job *s, uint32_t number, uint8_t trust, size_t *lowest, lode_error *err) {
  sqf_view view;
  *lowest = s->pages.src.usable;
  if (!salvage_view_page(s, number, &view) || view.type != SQF_LEAF_TABLE) return LODE_OK;
  for (uint32_t i = 0; i < view.cells; i++) {
    size_t offset = sqf_view_cell(&s->pages.src, &view, i);
    if (!offset) continue;
    if (offset < *lowest) *lowest = offset;
    TRY(salvage_examine_cell(s, &view, number, offset, trust, err));
  }
  if (view.content >= view.pointers && view.content < *lowest) *lowest = view.content;
  return LODE_OK;
}

static bool salvage_is_listed(const vfs_pages *p, const sqf_view *view, size_t offset) {
  for (uint32_t i = 0; i < view->cells; i++)
    if (sqf_view_cell(&p->src, view, i) == offset) return true;
  return false;
}

static lode_status salvage_scan_between_cells(salvage_job *s, uint32_t number, size_t lowest, lode_error *err) {
  sqf_view listed, view;
  bool has_list = salvage_view_page(s, number, &listed) && listed.type == SQF_LEAF_TABLE;
  sqf_view_as_leaf(number, s->page, &view);
  size_t from = has_list ? lowest : view.pointers;
  for (size_t offset = from; offset + 4 <= s->pages.src.usable; offset++) {
    if (s->page[offset] == 0) continue; /* no row is empty */
    sqf_cell row;
    if (!sqf_cell_parse_row(&s->pages.src, &view, offset, &row) || repair_row_kind_of(&row, &view) == REPAIR_ROW_OTHER)
      continue;
    if (has_list && salvage_is_listed(&s->pages, &listed, offset)) continue;
    TRY(salvage_examine_cell(s, &view, number, offset, SALVAGE_TRUST_LOOSE, err));
  }
  return LODE_OK;
}

static lode_status salvage_first_pass(salvage_job *s, lode_error *err) {
  size_t lowest;
  for (uint32_t n = 1; n <= s->pages.src.pages; n++) {
    if (n % 64 == 1) TRY(err_progress(s->progress, "reading pages", n, s->pages.src.pages, err));
    sqf_page_use use = vfs_pages_use_of(&s->pages, n);
    if (use == SQF_PAGE_LOCK) continue;
    bool sound = vfs_pages_read(&s->pages, n, s->page), old = sound && vfs_pages_is_old(&s->pages, n, s->page);
    if ((!sound || old) && use != SQF_PAGE_FREE) s->report->damaged_pages++;
    if (!vfs_pages_may_hold_rows(use)) continue;
    uint8_t trust = old ? SALVAGE_TRUST_OLD : sound ? SALVAGE_TRUST_SOUND : SALVAGE_TRUST_LISTED;
    TRY(salvage_scan_cells(s, n, trust, &lowest, err));
    if (!sound) TRY(salvage_scan_between_cells(s, n, lowest, err));
  }
  salvage_found_sort(&s->records);
  salvage_found_sort(&s->documents);
  salvage_found_sort(&s->vectors);
  salvage_keys_sort(&s->dead);
  salvage_colls_sort(s);
  salvage_counter_keys_sort(s);
  return LODE_OK;
}

/* ---- Second pass ---- */

/* Something on a valid page refers to the record; `id` is set if that was an id row. */
static lode_status salvage_mention(salvage_job *s, int64_t rid, lode_str id, lode_error *err) {
  int64_t cid = store_key_cid(rid);
  salvage_found *f = salvage_found_first(&s->records, rid);
  salvage_coll *c = salvage_find_coll(s, cid);
  if (c && id.data && !salvage_has_key(&s->dead, rid)) c->names++;
  if (f) {
    f->mentions |= id.data ? SALVAGE_MENTIONED | SALVAGE_NAMED : SALVAGE_MENTIONED;
    return LODE_OK;
  }
  if (cid < 1 || (c && c->dropped) || salvage_has_key(&s->dead, rid)) return LODE_OK;
  if (id.data) {
    salvage_report_loss(s, "record", cid, id, "the record was on a damaged page");
    TRY(salvage_key_add(&s->named, rid, err));
  }
  return salvage_key_add(&s->lost, rid, err);
}

static lode_status salvage_find_mentions(salvage_job *s, const sqf_view *view, size_t offset, lode_error *err) {
  sqf_cell row;
  int64_t rid, cid;
  lode_str none = {NULL, 0};
  if (!sqf_cell_parse_row(&s->pages.src, view, offset, &row)) return LODE_OK;
  switch (repair_row_kind_of(&row, view)) {
    case REPAIR_ROW_DOCUMENT: return salvage_mention(s, row.key, none, err);
    case REPAIR_ROW_VECTOR: return sqf_cell_local_int(&row, 1, &rid) ? salvage_mention(s, rid, none, err) : LODE_OK;
    case REPAIR_ROW_ID: break;
    default: return LODE_OK;
  }
  if (row.bytes > LODE_MAX_ID_BYTES + 64) return LODE_OK;
  lode_status st = repair_row_load(&s->pages, &row, &s->payload, err);
  if (st == LODE_CORRUPT) return LODE_OK;
  TRY(st);
  cid = sqf_cell_int(&row, 0, &s->payload);
  rid = sqf_cell_int(&row, 2, &s->payload);
  return store_key_cid(rid) == cid ? salvage_mention(s, rid, sqf_cell_str(&row, 1, &s->payload), err) : LODE_OK;
}

static lode_status salvage_second_pass(salvage_job *s, lode_error *err) {
  sqf_view view;
  for (uint32_t n = 1; n <= s->pages.src.pages; n++) {
    if (n % 64 == 1) TRY(err_progress(s->progress, "reading names", n, s->pages.src.pages, err));
    sqf_page_use use = vfs_pages_use_of(&s->pages, n);
    if (!vfs_pages_may_hold_rows(use) || !vfs_pages_read(&s->pages, n, s->page)) continue;
    if (vfs_pages_is_old(&s->pages, n, s->page)) continue;
    if (!salvage_view_page(s, n, &view)) continue;
    for (uint32_t i = 0; i < view.cells; i++) {
      size_t offset = sqf_view_cell(&s->pages.src, &view, i);
      if (offset) TRY(salvage_find_mentions(s, &view, offset, err));
    }
  }
  salvage_keys_sort(&s->lost);
  salvage_keys_sort(&s->named);
  for (size_t i = 0; i < s->lost.n; i++) {
    int64_t rid = s->lost.items[i];
    if (!salvage_has_key(&s->named, rid))
      salvage_report_loss(s, "record", store_key_cid(rid), (lode_str){NULL, 0},
                          "record %lld was on a damaged page, and so was its name", (long long)rid);
  }
  s->report->lost = s->lost.n;
  return LODE_OK;
}

/* ---- Several rows with one key ---- */

static bool salvage_is_live(const salvage_job *s, const salvage_found *f) {
  const salvage_coll *c = salvage_find_coll(s, store_key_cid(f->key));
  if (f->trust == SALVAGE_TRUST_LOOSE && !(f->mentions & SALVAGE_MENTIONED)) return false;
  if (c && c->names == c->coll.records && !(f->mentions & SALVAGE_NAMED)) return false;
  return !salvage_has_key(&s->dead, f->key);
}

/* More records than the collection has: their tombstones were on damaged pages. Which records are dead is not known. */
static void salvage_report_undeleted(salvage_job *s) {
  for (size_t c = 0, i = 0; c < s->n_colls; c++) {
    const store_coll *coll = &s->colls[c].coll;
    uint64_t n = 0;
    for (; i < s->records.n && store_key_cid(s->records.items[i].key) <= coll->cid; i++)
      n += store_key_cid(s->records.items[i].key) == coll->cid;
    if (!s->colls[c].dropped && n > coll->records)
      salvage_report_loss(s, "deletion", coll->cid, (lode_str){NULL, 0},
                          "tombstones were on a damaged page: %llu records that had been deleted are back",
                          (unsigned long long)(n - coll->records));
  }
}

/* Chooses one row for each key: the most trusted, and among equals the newest. Drops loose rows that nothing refers
 * to, and dead records. */
static lode_status salvage_choose_records(salvage_job *s, lode_error *err) {
  salvage_found_list *l = &s->records;
  size_t n = 0;
  for (size_t i = 0, end; i < l->n; i = end) {
    salvage_found best = l->items[i];
    uint64_t best_seq = 0;
    for (end = i; end < l->n && l->items[end].key == best.key; end++) {
      sqf_cell row;
      store_rec rec;
      if (l->items[end].trust != best.trust || (end == i && (end + 1 == l->n || l->items[end + 1].key != best.key)))
        continue;
      lode_status st = salvage_read_row(s, &l->items[end], &row, &s->payload, err);
      if (st != LODE_OK && st != LODE_CORRUPT) return st;
      if (st != LODE_OK || !repair_row_to_rec(&row, &s->payload, &rec) || rec.seq < best_seq) continue;
      uint8_t mentions = best.mentions;
      best = l->items[end];
      best.mentions = mentions;
      best_seq = rec.seq;
    }
    if (salvage_is_live(s, &best)) l->items[n++] = best;
  }
  l->n = n;
  salvage_report_undeleted(s);
  return LODE_OK;
}

lode_status salvage_scan(salvage_job *s, lode_error *err) {
  s->report->pages = s->pages.src.pages;
  TRY(salvage_first_pass(s, err));
  TRY(salvage_second_pass(s, err));
  return salvage_choose_records(s, err);
}
