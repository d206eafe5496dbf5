/* salvage_find.c - looking through the pages of a damaged store for rows that prove themselves.
 *
 * First look: rows of records, graves and collections must carry their checksum and are taken from any page; documents
 * and vectors are noted by shape and proven when they are fetched. A damaged page is searched byte by byte as well,
 * because its list of rows may be what is damaged; the space before its rows is left out, since old copies of moved rows
 * may lie there. Second look: names, documents and vectors on sound pages speak of records; such a record is
 * lost if it was not found and lies in no grave. When the names of all living records of a collection were found, a record
 * without one was deleted, even if its grave is lost; where more were found than live, graves are lost. Free pages, pointer maps and overflow pages hold no rows, whatever they
 * look like. Kept in memory are 16 bytes for each row, not its content.
 */
#include "salvage.h"

/* ---- Lists ---- */

static lode_status add_found(lode__found_list *l, int64_t key, uint32_t page, size_t offset, uint8_t trust, lode_error *err) {
  if (!mem_grow(&l->items, &l->cap, l->n + 1, sizeof *l->items)) return err_nomem(err);
  l->items[l->n++] = (lode__found){key, page, (uint16_t)offset, trust, 0};
  return LODE_OK;
}

static lode_status add_key(lode__key_list *l, int64_t key, lode_error *err) {
  if (!mem_grow(&l->items, &l->cap, l->n + 1, sizeof *l->items)) return err_nomem(err);
  l->items[l->n++] = key;
  return LODE_OK;
}

static void sort_keys(lode__key_list *l) {
  size_t n = 0;
  if (l->n) qsort(l->items, l->n, sizeof *l->items, sort_cmp_i64);
  for (size_t i = 0; i < l->n; i++)
    if (n == 0 || l->items[i] != l->items[n - 1]) l->items[n++] = l->items[i];
  l->n = n;
}

static bool has_key(const lode__key_list *l, int64_t key) {
  return l->n && bsearch(&key, l->items, l->n, sizeof key, sort_cmp_i64);
}

static int compare_found(const void *x, const void *y) {
  const lode__found *a = x, *b = y;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  if (a->trust != b->trust) return a->trust > b->trust ? -1 : 1;
  if (a->page != b->page) return a->page < b->page ? -1 : 1;
  return (a->offset > b->offset) - (a->offset < b->offset);
}

static void sort_found(lode__found_list *l) {
  if (l->n) qsort(l->items, l->n, sizeof *l->items, compare_found);
}

lode__found *lode__found_first(const lode__found_list *l, int64_t key) {
  size_t low = 0, high = l->n;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (l->items[mid].key < key) low = mid + 1;
    else high = mid;
  }
  return low < l->n && l->items[low].key == key ? &l->items[low] : NULL;
}

static int compare_colls(const void *x, const void *y) {
  const lode__found_coll *a = x, *b = y;
  if (a->coll.cid != b->coll.cid) return a->coll.cid < b->coll.cid ? -1 : 1;
  return (int)b->trust - (int)a->trust;
}

static void sort_colls(lode__salvage *s) {
  size_t n = 0;
  if (s->n_colls) qsort(s->colls, s->n_colls, sizeof *s->colls, compare_colls);
  for (size_t i = 0; i < s->n_colls; i++)
    if (n == 0 || s->colls[i].coll.cid != s->colls[n - 1].coll.cid) s->colls[n++] = s->colls[i];
  s->n_colls = n;
}

static int compare_counter_keys(const void *x, const void *y) {
  const lode__found_key *a = x, *b = y;
  if (a->cid != b->cid) return a->cid < b->cid ? -1 : 1;
  return str_cmp(a->name, b->name);
}

static void sort_counter_keys(lode__salvage *s) {
  size_t n = 0;
  if (s->n_keys) qsort(s->keys, s->n_keys, sizeof *s->keys, compare_counter_keys);
  for (size_t i = 0; i < s->n_keys; i++)
    if (n == 0 || compare_counter_keys(&s->keys[i], &s->keys[n - 1]) != 0) s->keys[n++] = s->keys[i];
  s->n_keys = n;
}

lode__found_coll *lode__salvage_coll(const lode__salvage *s, int64_t cid) {
  size_t low = 0, high = s->n_colls;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (s->colls[mid].coll.cid < cid) low = mid + 1;
    else high = mid;
  }
  return low < s->n_colls && s->colls[low].coll.cid == cid ? &s->colls[low] : NULL;
}

void lode__salvage_loss(lode__salvage *s, const char *what, int64_t cid, lode_str id, const char *format, ...) {
  char detail[400];
  va_list args;
  if (!s->on_loss) return;
  va_start(args, format);
  vsnprintf(detail, sizeof detail, format, args);
  va_end(args);
  const lode__found_coll *c = lode__salvage_coll(s, cid);
  lode_damage damage = {.what = what, .collection = c ? c->coll.name : (lode_str){NULL, 0}, .id = id, .detail = detail};
  s->on_loss(s->ctx, &damage);
}

/* ---- Rows ---- */

bool lode__row_record(const lode__row *row, const strbuf *payload, lode__rec *rec) {
  *rec = (lode__rec){
      .rid = row->key,
      .id = lode__row_str(row, 1, payload),
      .seq = (uint64_t)lode__row_int(row, 2, payload),
      .vid = lode__row_int(row, 3, payload),
      .has_document = row->cols[4].type != LODE__COL_NULL,
      .doc_crc = (uint32_t)lode__row_int(row, 4, payload),
      .metadata = lode__row_str(row, 5, payload),
  };
  return rec->id.data && rec->id.len > 0 && rec->id.len <= LODE_MAX_ID_BYTES && lode__key_cid(rec->rid) > 0 &&
         (uint32_t)lode__row_int(row, 6, payload) == lode__crc_record(rec, rec->has_document, rec->doc_crc);
}

lode_status lode__salvage_row(lode__salvage *s, const lode__found *f, lode__row *row, strbuf *payload, lode_error *err) {
  lode__page_view view;
  (void)lode__pages_read(&s->pages, f->page, s->page);
  lode__page_assume_leaf(f->page, s->page, &view);
  if (!lode__row_at(&s->pages, &view, f->offset, row)) return err_set(err, LODE_CORRUPT, "a row is gone");
  return lode__row_load(&s->pages, row, payload, err);
}

static lode_status keep(lode__salvage *s, lode_str *str, lode_error *err) {
  if (!str->data) return LODE_OK;
  str->data = mem_arena_copy(&s->arena, str->data, str->len);
  return str->data ? LODE_OK : err_nomem(err);
}

/* A collection without a name was dropped. */
static lode_status take_collection(lode__salvage *s, const lode__row *row, uint8_t trust, lode_error *err) {
  const strbuf *p = &s->payload;
  lode__coll c = {
      .cid = row->key,
      .uid = (uint64_t)lode__row_int(row, 1, p),
      .name = lode__row_str(row, 2, p),
      .metric = (lode_metric)lode__row_int(row, 3, p),
      .dim = (uint32_t)lode__row_int(row, 4, p),
      .metadata = lode__row_str(row, 5, p),
      .embedder = lode__row_str(row, 6, p),
      .embedder_dim = (uint32_t)lode__row_int(row, 7, p),
      .counted = (uint32_t)lode__row_int(row, 8, p),
      .records = trust == LODE__TRUST_SOUND ? (uint64_t)lode__row_int(row, 10, p) : UINT64_MAX,
  };
  bool proven = (uint32_t)lode__row_int(row, 20, p) == lode__crc_collection(&c);
  bool dropped = !c.name.data;
  if (!proven || c.cid < 1 || c.cid >= INT64_C(1) << 22 || c.metric > LODE_IP || c.dim > LODE_MAX_DIMENSION)
    return LODE_OK;
  if (!mem_grow(&s->colls, &s->cap_colls, s->n_colls + 1, sizeof *s->colls)) return err_nomem(err);
  TRY(keep(s, &c.name, err));
  TRY(keep(s, &c.metadata, err));
  TRY(keep(s, &c.embedder, err));
  s->colls[s->n_colls++] = (lode__found_coll){c, trust, dropped, 0};
  return LODE_OK;
}

static lode_status take_counter_key(lode__salvage *s, const lode__row *row, lode_error *err) {
  lode__found_key k = {lode__row_int(row, 1, &s->payload), lode__row_str(row, 2, &s->payload)};
  if (lode__row_int(row, 3, &s->payload) != 1 || !k.name.data || !utf8_valid(k.name.data, k.name.len)) return LODE_OK;
  if (!mem_grow(&s->keys, &s->cap_keys, s->n_keys + 1, sizeof *s->keys)) return err_nomem(err);
  TRY(keep(s, &k.name, err));
  s->keys[s->n_keys++] = k;
  return LODE_OK;
}

static lode_status take_row(lode__salvage *s, lode__row_kind kind, const lode__row *row, uint32_t page, size_t offset,
                            uint8_t trust, lode_error *err) {
  lode__rec rec;
  switch (kind) {
    case LODE__ROW_RECORD:
      return lode__row_record(row, &s->payload, &rec) ? add_found(&s->records, row->key, page, offset, trust, err) : LODE_OK;
    case LODE__ROW_GRAVE: {
      lode__grave tombstone;
      lode_str rids = lode__row_str(row, 1, &s->payload);
      int64_t vid = lode__row_int(row, 2, &s->payload);
      bool proven = (uint32_t)lode__row_int(row, 3, &s->payload) == lode__crc_grave(row->key, rids, vid);
      if (!proven || !lode__grave_decode(row->key, rids, vid, &tombstone)) return LODE_OK;
      for (size_t i = 0; i < tombstone.n; i++) TRY(add_key(&s->dead, tombstone.rids[i], err));
      return LODE_OK;
    }
    case LODE__ROW_COLLECTION: return take_collection(s, row, trust, err);
    case LODE__ROW_KEY: return trust == LODE__TRUST_SOUND ? take_counter_key(s, row, err) : LODE_OK;
    default: return LODE_OK;
  }
}

/* What the row at that place is to the first look. */
static lode_status look_at(lode__salvage *s, const lode__page_view *view, uint32_t number, size_t offset, uint8_t trust,
                           lode_error *err) {
  lode__row row;
  if (!lode__row_at(&s->pages, view, offset, &row)) return LODE_OK;
  lode__row_kind kind = lode__row_shape(&row, view->table);
  if (kind == LODE__ROW_DOCUMENT) return add_found(&s->documents, row.key, number, offset, trust, err);
  if (kind == LODE__ROW_VECTOR) return add_found(&s->vectors, row.key, number, offset, trust, err);
  if (kind == LODE__ROW_OTHER || kind == LODE__ROW_NAME) return LODE_OK;
  if (row.bytes > LODE_MAX_METADATA_BYTES + (64u << 10)) return LODE_OK; /* longer than any of ours */
  lode_status st = lode__row_load(&s->pages, &row, &s->payload, err);
  if (st == LODE_CORRUPT) return LODE_OK;
  TRY(st);
  return take_row(s, kind, &row, number, offset, trust, err);
}

/* ---- First look ---- */

static lode_status look_listed(lode__salvage *s, uint32_t number, uint8_t trust, size_t *lowest, lode_error *err) {
  lode__page_view view;
  *lowest = s->pages.usable;
  if (!lode__page_look(&s->pages, number, s->page, &view) || !view.table) return LODE_OK;
  for (uint32_t i = 0; i < view.cells; i++) {
    size_t offset = lode__page_cell(&s->pages, &view, i);
    if (!offset) continue;
    if (offset < *lowest) *lowest = offset;
    TRY(look_at(s, &view, number, offset, trust, err));
  }
  if (view.content >= view.pointers && view.content < *lowest) *lowest = view.content;
  return LODE_OK;
}

static bool is_listed(const lode__pages *p, const lode__page_view *view, size_t offset) {
  for (uint32_t i = 0; i < view->cells; i++)
    if (lode__page_cell(p, view, i) == offset) return true;
  return false;
}

static lode_status look_between(lode__salvage *s, uint32_t number, size_t lowest, lode_error *err) {
  lode__page_view listed, view;
  bool has_list = lode__page_look(&s->pages, number, s->page, &listed) && listed.table;
  lode__page_assume_leaf(number, s->page, &view);
  size_t from = has_list ? lowest : view.pointers;
  for (size_t offset = from; offset + 4 <= s->pages.usable; offset++) {
    if (s->page[offset] == 0) continue; /* no row is empty */
    lode__row row;
    if (!lode__row_at(&s->pages, &view, offset, &row) || lode__row_shape(&row, true) == LODE__ROW_OTHER) continue;
    if (has_list && is_listed(&s->pages, &listed, offset)) continue;
    TRY(look_at(s, &view, number, offset, LODE__TRUST_LOOSE, err));
  }
  return LODE_OK;
}

static bool holds_rows(lode__page_use use) {
  return use == LODE__USE_UNKNOWN || use == LODE__USE_ROOT || use == LODE__USE_TREE;
}

static lode_status first_look(lode__salvage *s, lode_error *err) {
  size_t lowest;
  for (uint32_t n = 1; n <= s->pages.count; n++) {
    if (n % 64 == 1) TRY(lode__progress(s->progress, "reading pages", n, s->pages.count, err));
    lode__page_use use = lode__pages_use(&s->pages, n);
    if (use == LODE__USE_LOCK) continue;
    bool sound = lode__pages_read(&s->pages, n, s->page);
    if (!sound && use != LODE__USE_FREE) s->report->damaged_pages++;
    if (!holds_rows(use)) continue;
    TRY(look_listed(s, n, sound ? LODE__TRUST_SOUND : LODE__TRUST_LISTED, &lowest, err));
    if (!sound) TRY(look_between(s, n, lowest, err));
  }
  sort_found(&s->records);
  sort_found(&s->documents);
  sort_found(&s->vectors);
  sort_keys(&s->dead);
  sort_colls(s);
  sort_counter_keys(s);
  return LODE_OK;
}

/* ---- Second look ---- */

/* Something on a sound page belongs to a record; its name has the id. */
static lode_status mention(lode__salvage *s, int64_t rid, lode_str id, lode_error *err) {
  int64_t cid = lode__key_cid(rid);
  lode__found *f = lode__found_first(&s->records, rid);
  lode__found_coll *c = lode__salvage_coll(s, cid);
  if (c && id.data && !has_key(&s->dead, rid)) c->names++;
  if (f) {
    f->spoken |= id.data ? LODE__MENTIONED | LODE__NAMED : LODE__MENTIONED;
    return LODE_OK;
  }
  if (cid < 1 || (c && c->dropped) || has_key(&s->dead, rid)) return LODE_OK;
  if (id.data) {
    lode__salvage_loss(s, "record", cid, id, "the record was on a damaged page");
    TRY(add_key(&s->named, rid, err));
  }
  return add_key(&s->lost, rid, err);
}

static lode_status look_for_mentions(lode__salvage *s, const lode__page_view *view, size_t offset, lode_error *err) {
  lode__row row;
  int64_t rid, cid;
  lode_str none = {NULL, 0};
  if (!lode__row_at(&s->pages, view, offset, &row)) return LODE_OK;
  switch (lode__row_shape(&row, view->table)) {
    case LODE__ROW_DOCUMENT: return mention(s, row.key, none, err);
    case LODE__ROW_VECTOR: return lode__row_local_int(&row, 1, &rid) ? mention(s, rid, none, err) : LODE_OK;
    case LODE__ROW_NAME: break;
    default: return LODE_OK;
  }
  if (row.bytes > LODE_MAX_ID_BYTES + 64) return LODE_OK;
  lode_status st = lode__row_load(&s->pages, &row, &s->payload, err);
  if (st == LODE_CORRUPT) return LODE_OK;
  TRY(st);
  cid = lode__row_int(&row, 0, &s->payload);
  rid = lode__row_int(&row, 2, &s->payload);
  return lode__key_cid(rid) == cid ? mention(s, rid, lode__row_str(&row, 1, &s->payload), err) : LODE_OK;
}

static lode_status second_look(lode__salvage *s, lode_error *err) {
  lode__page_view view;
  for (uint32_t n = 1; n <= s->pages.count; n++) {
    if (n % 64 == 1) TRY(lode__progress(s->progress, "reading names", n, s->pages.count, err));
    lode__page_use use = lode__pages_use(&s->pages, n);
    if (!holds_rows(use) || !lode__pages_read(&s->pages, n, s->page)) continue;
    if (!lode__page_look(&s->pages, n, s->page, &view)) continue;
    for (uint32_t i = 0; i < view.cells; i++) {
      size_t offset = lode__page_cell(&s->pages, &view, i);
      if (offset) TRY(look_for_mentions(s, &view, offset, err));
    }
  }
  sort_keys(&s->lost);
  sort_keys(&s->named);
  for (size_t i = 0; i < s->lost.n; i++) {
    int64_t rid = s->lost.items[i];
    if (!has_key(&s->named, rid))
      lode__salvage_loss(s, "record", lode__key_cid(rid), (lode_str){NULL, 0},
                         "record %lld was on a damaged page, and so was its name", (long long)rid);
  }
  s->report->lost = s->lost.n;
  return LODE_OK;
}

/* ---- Several rows with one key ---- */

static bool is_alive(const lode__salvage *s, const lode__found *f) {
  const lode__found_coll *c = lode__salvage_coll(s, lode__key_cid(f->key));
  if (f->trust == LODE__TRUST_LOOSE && !(f->spoken & LODE__MENTIONED)) return false;
  if (c && c->names == c->coll.records && !(f->spoken & LODE__NAMED)) return false;
  return !has_key(&s->dead, f->key);
}

/* More records than the collection says it has: their graves were on damaged pages. Which ones died is not known. */
static void tell_undone(lode__salvage *s) {
  for (size_t c = 0, i = 0; c < s->n_colls; c++) {
    const lode__coll *coll = &s->colls[c].coll;
    uint64_t n = 0;
    for (; i < s->records.n && lode__key_cid(s->records.items[i].key) <= coll->cid; i++)
      n += lode__key_cid(s->records.items[i].key) == coll->cid;
    if (!s->colls[c].dropped && n > coll->records)
      lode__salvage_loss(s, "deletion", coll->cid, (lode_str){NULL, 0},
                         "the notes of deletions were on a damaged page: %llu records that had been deleted are back",
                         (unsigned long long)(n - coll->records));
  }
}

/* The most trusted comes first; among equals the newest. Loose rows that nothing speaks of, and the dead, go. */
static lode_status choose_records(lode__salvage *s, lode_error *err) {
  lode__found_list *l = &s->records;
  size_t n = 0;
  for (size_t i = 0, end; i < l->n; i = end) {
    lode__found best = l->items[i];
    uint64_t best_seq = 0;
    for (end = i; end < l->n && l->items[end].key == best.key; end++) {
      lode__row row;
      lode__rec rec;
      if (l->items[end].trust != best.trust || (end == i && (end + 1 == l->n || l->items[end + 1].key != best.key))) continue;
      lode_status st = lode__salvage_row(s, &l->items[end], &row, &s->payload, err);
      if (st != LODE_OK && st != LODE_CORRUPT) return st;
      if (st != LODE_OK || !lode__row_record(&row, &s->payload, &rec) || rec.seq < best_seq) continue;
      uint8_t spoken = best.spoken;
      best = l->items[end];
      best.spoken = spoken;
      best_seq = rec.seq;
    }
    if (is_alive(s, &best)) l->items[n++] = best;
  }
  l->n = n;
  tell_undone(s);
  return LODE_OK;
}

lode_status lode__salvage_look(lode__salvage *s, lode_error *err) {
  s->report->pages = s->pages.count;
  TRY(first_look(s, err));
  TRY(second_look(s, err));
  return choose_records(s, err);
}
