/* SPDX-License-Identifier: Apache-2.0 */
/* verify_rows.c - checks the checksum of every row, and invariants 1 to 3 of store_write.c.
 *
 * Each row is checked within one transaction. If all pages are valid, the tables are scanned by their keys. If some
 * are not, a scan would end at the first of them: then rows are taken from the valid pages one by one, and what they
 * refer to is looked up; what an id refers to and cannot be read is reported with that id. A lookup that meets a
 * damaged page ends the transaction (SQLite rolls back). If parts of the row are left to check, this is done in a new
 * transaction, without the parts that are done, so that each part is tried once.
 */
#include "repair/verify.h"

enum { ROWS_PART_ID = 1, ROWS_PART_DOCUMENT = 2, ROWS_PART_VECTOR = 4, ROWS_PART_CONTENT = 8 };
typedef enum rows_coll_state {
  ROWS_COLL_KNOWN,
  ROWS_COLL_DROPPED,
  ROWS_COLL_ABSENT,
  ROWS_COLL_UNREADABLE
} rows_coll_state;

typedef struct rows_job {
  verify_job *v;
  store_tx *tx;
  bool broken;   /* a lookup met a damaged page: this transaction is over */
  bool again;    /* parts of the current row are left to check */
  unsigned done; /* parts of the current row that were checked: ROWS_PART_* */
  int64_t cid;   /* collection of `state` and `coll`, loaded in this transaction; 0: none */
  rows_coll_state state;
  store_coll coll;
  mem_arena arena;
  int64_t bad_cid;         /* collection whose description cannot be read: not tried again */
  int64_t reported_absent; /* collection that does not exist and was reported already */
  json_doc json;
} rows_job;

static const lode_str rows_no_str = {NULL, 0};

/* ---- Lookups ---- */

/* Turns LODE_CORRUPT into *readable = false, because damage is a finding, not a failure. */
static lode_status rows_absorb_damage(rows_job *r, lode_status st, bool *readable, lode_error *err) {
  *readable = st != LODE_CORRUPT;
  if (*readable) return st;
  /* An invalid checksum of a row does not end the transaction; a damaged page does. */
  if (sqlite3_get_autocommit(r->tx->conn->sql)) r->broken = true;
  err_clear(err);
  return LODE_OK;
}

static lode_status rows_look_up(rows_job *r, int which, int64_t key, sqlite3_stmt **s, bool *row, bool *readable,
                                lode_error *err) {
  *row = false;
  lode_status st = store_stmt_key(r->tx, which, key, s, err);
  if (st == LODE_OK) st = store_stmt_step(r->tx, *s, row, err);
  return rows_absorb_damage(r, st, readable, err);
}

static lode_status rows_load_coll(rows_job *r, int64_t cid, lode_error *err) {
  sqlite3_stmt *s;
  bool row, readable;
  if (r->cid == cid) return LODE_OK;
  r->cid = cid;
  r->state = cid == r->bad_cid ? ROWS_COLL_UNREADABLE : ROWS_COLL_KNOWN;
  r->coll = (store_coll){0};
  mem_arena_reset(&r->arena);
  if (cid == r->bad_cid) return LODE_OK;
  lode_status st = store_coll_load(r->tx, cid, &r->arena, &r->coll, err);
  if (st == LODE_OK) return LODE_OK;
  r->coll = (store_coll){0};
  if (st == LODE_CORRUPT) {
    r->state = ROWS_COLL_UNREADABLE;
    r->bad_cid = cid;
    return rows_absorb_damage(r, st, &readable, err);
  }
  if (st != LODE_NOT_FOUND) return st;
  err_clear(err);
  TRY(rows_look_up(r, STORE_STMT_COLL_DROPPED, cid, &s, &row, &readable, err));
  if (readable) store_stmt_reset(s);
  if (!readable) r->bad_cid = cid;
  r->state = !readable ? ROWS_COLL_UNREADABLE : row ? ROWS_COLL_DROPPED : ROWS_COLL_ABSENT;
  return LODE_OK;
}

/* *go = false: do not check rows of this collection. */
static lode_status rows_enter_coll(rows_job *r, int64_t cid, bool *go, lode_error *err) {
  TRY(rows_load_coll(r, cid, err));
  r->again = r->broken;
  *go = !r->broken && (r->state == ROWS_COLL_KNOWN || r->state == ROWS_COLL_UNREADABLE);
  if (r->state != ROWS_COLL_ABSENT || r->reported_absent == cid) return LODE_OK;
  r->reported_absent = cid;
  verify_report(r->v, "structure", rows_no_str, rows_no_str, "there are rows of collection %lld, which does not exist",
                (long long)cid);
  return LODE_OK;
}

/* `key` is a rid or a vid. If tombstones cannot be read, *alive is true and *known is false. */
static lode_status rows_is_live(rows_job *r, int64_t key, bool *alive, bool *known, lode_error *err) {
  lode_status st = store_rec_is_live(r->tx, key, alive, err);
  if (st == LODE_CORRUPT) *alive = true;
  return rows_absorb_damage(r, st, known, err);
}

/* ---- Records ---- */

static lode_status rows_check_id_of(rows_job *r, const store_rec *rec, lode_error *err) {
  int64_t rid = 0;
  bool alive, known, readable;
  TRY(rows_is_live(r, rec->rid, &alive, &known, err));
  if (!known) return LODE_OK;
  TRY(rows_absorb_damage(r, store_rec_find(r->tx, store_key_cid(rec->rid), rec->id, &rid, err), &readable, err));
  if (!readable)
    verify_report(r->v, "name", r->coll.name, rec->id, "the record's name cannot be read");
  else if (alive && rid != rec->rid)
    verify_report(r->v, "name", r->coll.name, rec->id,
                  rid ? "the name leads to another record" : "the record has no name");
  return LODE_OK;
}

/* The id row holds the length of the document. */
static lode_status rows_check_length_of(rows_job *r, const store_rec *rec, size_t bytes, lode_error *err) {
  sqlite3_stmt *s;
  bool row, readable;
  lode_status st = store_stmt_key(r->tx, STORE_STMT_NAME_GET, store_key_cid(rec->rid), &s, err);
  if (st == LODE_OK) {
    store_bind_blob(r->tx, s, 2, rec->id);
    st = store_stmt_step(r->tx, s, &row, err);
  }
  TRY(rows_absorb_damage(r, st, &readable, err));
  if (!readable) return LODE_OK; /* reported by rows_check_id_of() */
  if (row && store_column_int(s, 0) == rec->rid && store_column_int(s, 1) != (int64_t)bytes)
    verify_report(r->v, "name", r->coll.name, rec->id, "the name tells another length of the document");
  store_stmt_reset(s);
  return LODE_OK;
}

static lode_status rows_check_document_of(rows_job *r, const store_rec *rec, lode_error *err) {
  sqlite3_stmt *s;
  bool row, readable;
  size_t bytes = 0;
  /* A document that should not exist is found by rows_check_document(). */
  if (!rec->has_document) return rows_check_length_of(r, rec, 0, err);
  TRY(rows_look_up(r, STORE_STMT_DOCUMENT_GET, rec->rid, &s, &row, &readable, err));
  const char *fault = !readable ? "the document cannot be read" : !row ? "the document is missing" : NULL;
  if (!fault) {
    lode_str text = store_column_str(s, 0);
    uint32_t crc = (uint32_t)store_column_int(s, 1);
    if (!text.data || crc != store_crc_document(rec->rid, text) || crc != rec->doc_crc)
      fault = "the document fails its checksum";
    bytes = text.len + 1;
    store_stmt_reset(s);
  }
  if (!fault) return rows_check_length_of(r, rec, bytes, err);
  verify_report(r->v, "document", r->coll.name, rec->id, "%s", fault);
  return LODE_OK;
}

static lode_status rows_check_vector_of(rows_job *r, const store_rec *rec, lode_error *err) {
  sqlite3_stmt *s;
  bool row, readable;
  if (!rec->vid) return LODE_OK;
  TRY(rows_look_up(r, STORE_STMT_VECTOR_GET, rec->vid, &s, &row, &readable, err));
  const char *fault = !readable ? "the vector cannot be read" : !row ? "the vector is missing" : NULL;
  if (!fault) {
    lode_str data = store_column_str(s, 2);
    int64_t rid = store_column_int(s, 1);
    if (!data.data || (uint32_t)store_column_int(s, 3) != store_crc_vector(rec->vid, rid, data.data, data.len))
      fault = "the vector fails its checksum";
    else if (rid != rec->rid)
      fault = "the vector belongs to another record";
    else if (r->state == ROWS_COLL_KNOWN && data.len != (size_t)r->coll.dim * sizeof(float))
      fault = "the vector's dimension is not the collection's";
    store_stmt_reset(s);
  }
  if (fault) verify_report(r->v, "vector", r->coll.name, rec->id, "%s", fault);
  return LODE_OK;
}

static lode_status rows_check_content_of(rows_job *r, const store_rec *rec, lode_error *err) {
  uint64_t cursor = r->tx->cursor;
  if (rec->id.len == 0 || rec->id.len > LODE_MAX_ID_BYTES || !utf8_valid(rec->id.data, rec->id.len))
    verify_report(r->v, "record", r->coll.name, rec->id, "the id is not valid");
  if (rec->seq > cursor || ((uint64_t)rec->rid & (uint64_t)STORE_KEY_SEQ_MAX) > cursor)
    verify_report(r->v, "record", r->coll.name, rec->id, "the record is newer than the store's newest change");
  if (!rec->metadata.data) return LODE_OK;
  lode_status st = meta_check(&r->json, rec->metadata, false, err);
  if (st == LODE_NOMEM) return st;
  if (st != LODE_OK) verify_report(r->v, "record", r->coll.name, rec->id, "the metadata is not valid: %s", err->text);
  err_clear(err);
  return LODE_OK;
}

static lode_status rows_check_record(rows_job *r, const store_rec *rec, bool proven, lode_error *err) {
  static const struct {
    unsigned part;
    lode_status (*check)(rows_job *r, const store_rec *rec, lode_error *err);
  } parts[] = {{ROWS_PART_CONTENT, rows_check_content_of},
               {ROWS_PART_ID, rows_check_id_of},
               {ROWS_PART_DOCUMENT, rows_check_document_of},
               {ROWS_PART_VECTOR, rows_check_vector_of}};
  bool go;
  TRY(rows_enter_coll(r, store_key_cid(rec->rid), &go, err));
  if (!go) return LODE_OK;
  if (!proven) {
    verify_report(r->v, "record", r->coll.name, rec->id, "the record fails its checksum");
    return LODE_OK;
  }
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (r->done & parts[i].part) continue;
    if (r->broken) {
      r->again = true;
      break;
    }
    r->done |= parts[i].part;
    TRY(parts[i].check(r, rec, err));
  }
  return LODE_OK;
}

/* ---- What refers to records ---- */

static lode_status rows_check_id(rows_job *r, int64_t cid, lode_str id, int64_t rid, lode_error *err) {
  sqlite3_stmt *s;
  bool row, readable, go;
  TRY(rows_enter_coll(r, cid, &go, err));
  if (!go) return LODE_OK;
  TRY(rows_look_up(r, STORE_STMT_RECORD_GET, rid, &s, &row, &readable, err));
  if (!readable) {
    verify_report(r->v, "record", r->coll.name, id, "the record cannot be read: it is on a damaged page");
    return LODE_OK;
  }
  bool same = row && store_key_cid(rid) == cid && str_eq(store_column_str(s, 1), id);
  store_stmt_reset(s);
  if (!same)
    verify_report(r->v, "name", r->coll.name, id, row ? "the name leads to another record" : "the record is missing");
  return LODE_OK;
}

static lode_status rows_check_document(rows_job *r, int64_t rid, lode_error *err) {
  sqlite3_stmt *s;
  bool row, readable, go;
  TRY(rows_enter_coll(r, store_key_cid(rid), &go, err));
  if (!go) return LODE_OK;
  TRY(rows_look_up(r, STORE_STMT_RECORD_GET, rid, &s, &row, &readable, err));
  if (!readable) return LODE_OK; /* reported by rows_check_id() */
  bool owned = row && !store_column_is_null(s, 4);
  if (!owned)
    verify_report(r->v, "document", r->coll.name, row ? store_column_str(s, 1) : rows_no_str,
                  "document %lld belongs to no record", (long long)rid);
  store_stmt_reset(s);
  return LODE_OK;
}

static lode_status rows_check_vector(rows_job *r, int64_t vid, int64_t rid, lode_error *err) {
  sqlite3_stmt *s;
  bool row, readable, go, vector_alive, record_alive, known;
  TRY(rows_enter_coll(r, store_key_cid(vid), &go, err));
  if (!go) return LODE_OK;
  TRY(rows_look_up(r, STORE_STMT_RECORD_GET, rid, &s, &row, &readable, err));
  if (!readable) return LODE_OK;
  bool owned = row && store_column_int(s, 3) == vid;
  store_stmt_reset(s);
  if (owned) return LODE_OK;
  TRY(rows_is_live(r, vid, &vector_alive, &known, err));
  if (!known || !vector_alive) return LODE_OK;
  TRY(rows_is_live(r, rid, &record_alive, &known, err));
  if (known && record_alive)
    verify_report(r->v, "vector", r->coll.name, rows_no_str, "vector %lld belongs to no record", (long long)vid);
  return LODE_OK;
}

static lode_status rows_check_tombstone(rows_job *r, int64_t gid, lode_str rids, int64_t vid, uint32_t crc,
                                        lode_error *err) {
  sqlite3_stmt *s;
  bool row, readable, go;
  store_tombstone tombstone;
  TRY(rows_enter_coll(r, store_key_cid(gid), &go, err));
  if (!go) return LODE_OK;
  if (crc != store_crc_tombstone(gid, rids, vid) || !store_tombstone_decode(gid, rids, vid, &tombstone)) {
    verify_report(r->v, "structure", r->coll.name, rows_no_str, "tombstone %lld fails its checksum", (long long)gid);
    return LODE_OK;
  }
  for (size_t i = 0; i < (vid ? 1 : tombstone.n); i++) {
    int64_t key = vid ? vid : tombstone.rids[i];
    TRY(rows_look_up(r, vid ? STORE_STMT_VECTOR_EXISTS : STORE_STMT_RECORD_GET, key, &s, &row, &readable, err));
    if (!readable) return LODE_OK;
    store_stmt_reset(s);
    if (!row)
      verify_report(r->v, "structure", r->coll.name, rows_no_str,
                    "what was deleted (%lld) is gone, and the note of it is not", (long long)key);
  }
  return LODE_OK;
}

/* ---- Scans by key ---- */

static lode_status rows_begin(rows_job *r, lode_error *err) {
  r->broken = r->again = false;
  r->cid = 0;
  return store_tx_begin(r->v->db, STORE_TX_READ, &r->tx, err);
}

static void rows_end(rows_job *r) {
  store_tx_rollback(r->tx);
  r->tx = NULL;
}

typedef lode_status rows_row_fn(rows_job *r, sqlite3_stmt *s, lode_error *err);

static lode_status rows_on_collection(rows_job *r, sqlite3_stmt *s, lode_error *err) {
  if (store_column_is_null(s, 1)) return LODE_OK;
  lode_str name = store_column_str(s, 1);
  TRY(rows_load_coll(r, store_column_int(s, 0), err));
  if (r->state == ROWS_COLL_UNREADABLE)
    verify_report(r->v, "structure", name, rows_no_str, "the collection's description fails its checksum");
  return LODE_OK;
}

static lode_status rows_on_record(rows_job *r, sqlite3_stmt *s, lode_error *err) {
  store_rec rec = {
      .rid = store_column_int(s, 0),
      .id = store_column_str(s, 1),
      .seq = (uint64_t)store_column_int(s, 2),
      .vid = store_column_int(s, 3),
      .has_document = !store_column_is_null(s, 4),
      .doc_crc = (uint32_t)store_column_int(s, 4),
      .metadata = store_column_str(s, 5),
  };
  bool proven = (uint32_t)store_column_int(s, 6) == store_crc_record(&rec);
  return rows_check_record(r, &rec, proven, err);
}

static lode_status rows_on_document(rows_job *r, sqlite3_stmt *s, lode_error *err) {
  return rows_check_document(r, store_column_int(s, 0), err);
}

static lode_status rows_on_vector(rows_job *r, sqlite3_stmt *s, lode_error *err) {
  return rows_check_vector(r, store_column_int(s, 0), store_column_int(s, 1), err);
}

static lode_status rows_on_tombstone(rows_job *r, sqlite3_stmt *s, lode_error *err) {
  return rows_check_tombstone(r, store_column_int(s, 0), store_column_str(s, 1), store_column_int(s, 2),
                              (uint32_t)store_column_int(s, 3), err);
}

/* Scans within one transaction and advances *after. *more = false: end of the table, or it cannot be read. */
static lode_status rows_walk_slice(rows_job *r, int which, rows_row_fn *fn, int64_t *after, bool *more, bool *walkable,
                                   lode_error *err) {
  sqlite3_stmt *s;
  *more = true;
  TRY(rows_absorb_damage(r, store_stmt_range(r->tx, which, *after, INT64_MAX, &s, err), walkable, err));
  if (!*walkable) return LODE_OK;
  while (!r->broken && !store_tx_is_old(r->tx)) {
    TRY(rows_absorb_damage(r, store_stmt_step(r->tx, s, more, err), walkable, err));
    if (!*walkable || !*more) break;
    int64_t key = store_column_int(s, 0);
    TRY(fn(r, s, err));
    if (r->broken && r->again) break;
    r->done = 0;
    *after = key;
  }
  if (*walkable && !r->broken) store_stmt_reset(s);
  return LODE_OK;
}

/* *walkable = false: the scan met a page that cannot be read. */
static lode_status rows_walk(rows_job *r, int which, const char *phase, rows_row_fn *fn, bool *walkable,
                             lode_error *err) {
  int64_t after = 0;
  bool more = true;
  *walkable = true;
  r->done = 0;
  while (more && *walkable) {
    TRY(err_progress(r->v->progress, phase, (uint64_t)after & (uint64_t)STORE_KEY_SEQ_MAX, 0, err));
    TRY(rows_begin(r, err));
    lode_status st = rows_walk_slice(r, which, fn, &after, &more, walkable, err);
    rows_end(r);
    TRY(st);
  }
  return LODE_OK;
}

/* Position of the scan of ids. */
typedef struct rows_id_position {
  int64_t cid;
  strbuf id;   /* the last id that was checked */
  strbuf next; /* the current id */
} rows_id_position;

static void rows_id_advance(rows_id_position *at, int64_t cid) {
  strbuf was = at->id;
  at->cid = cid;
  at->id = at->next;
  at->next = was;
}

static lode_status rows_walk_ids_slice(rows_job *r, int which, rows_id_position *at, bool *more, bool *walkable,
                                       lode_error *err) {
  sqlite3_stmt *s;
  *more = true;
  TRY(rows_absorb_damage(r, store_stmt_key(r->tx, which, at->cid, &s, err), walkable, err));
  if (!*walkable) return LODE_OK;
  store_bind_copy(r->tx, s, 2, (lode_str){at->id.data, at->id.len}); /* the buffers change while it runs */
  while (!r->broken && !store_tx_is_old(r->tx)) {
    TRY(rows_absorb_damage(r, store_stmt_step(r->tx, s, more, err), walkable, err));
    if (!*walkable || !*more) break;
    int64_t cid = store_column_int(s, 0), rid = store_column_int(s, 2);
    lode_str name = store_column_str(s, 1);
    at->next.len = 0;
    strbuf_add(&at->next, name.data, name.len);
    if (at->next.failed) return err_nomem(err);
    TRY(rows_check_id(r, cid, (lode_str){at->next.data ? at->next.data : "", at->next.len}, rid, err));
    if (!(r->broken && r->again)) rows_id_advance(at, cid);
  }
  if (*walkable && !r->broken) store_stmt_reset(s);
  return LODE_OK;
}

static lode_status rows_walk_ids(rows_job *r, int which, bool *walkable, lode_error *err) {
  rows_id_position at = {0};
  bool more = true;
  lode_status st = LODE_OK;
  *walkable = true;
  while (more && *walkable) {
    TRY_GOTO(err_progress(r->v->progress, "checking names", 0, 0, err));
    TRY_GOTO(rows_begin(r, err));
    st = rows_walk_ids_slice(r, which, &at, &more, walkable, err);
    rows_end(r);
    if (st != LODE_OK) goto done;
  }
done:
  strbuf_release(&at.id);
  strbuf_release(&at.next);
  return st;
}

/* ---- Page by page ---- */

typedef struct rows_page_walk {
  vfs_pages pages; /* as the current transaction sees them */
  unsigned char *page;
  strbuf payload;
  uint32_t number, cell; /* where to continue */
} rows_page_walk;

/* Reports a collection row on a valid page that fails its checksum. */
static lode_status rows_check_page_coll(rows_job *r, const sqf_cell *row, lode_error *err) {
  TRY(rows_load_coll(r, row->key, err));
  r->again = false;
  if (r->state == ROWS_COLL_UNREADABLE)
    verify_report(r->v, "structure", rows_no_str, rows_no_str, "the description of collection %lld cannot be read",
                  (long long)row->key);
  return LODE_OK;
}

static lode_status rows_check_page_row(rows_job *r, rows_page_walk *w, const sqf_cell *row, repair_row_kind kind,
                                       lode_error *err) {
  const strbuf *p = &w->payload;
  store_rec rec = {.rid = row->key};
  int64_t rid;
  switch (kind) {
    case REPAIR_ROW_DOCUMENT: return rows_check_document(r, row->key, err);
    case REPAIR_ROW_VECTOR:
      return sqf_cell_local_int(row, 1, &rid) ? rows_check_vector(r, row->key, rid, err) : LODE_OK;
    case REPAIR_ROW_OTHER:
    case REPAIR_ROW_METAKEY: return LODE_OK;
    default: break;
  }
  lode_status st = repair_row_load(&w->pages, row, &w->payload, err);
  if (st != LODE_OK && st != LODE_CORRUPT) return st;
  bool whole = st == LODE_OK;
  err_clear(err);
  if (kind == REPAIR_ROW_COLLECTION) return rows_check_page_coll(r, row, err);
  if (kind == REPAIR_ROW_RECORD) return rows_check_record(r, &rec, whole && repair_row_to_rec(row, p, &rec), err);
  if (!whole) return LODE_OK; /* an id row or a tombstone; the damaged overflow page was reported */
  if (kind == REPAIR_ROW_TOMBSTONE)
    return rows_check_tombstone(r, row->key, sqf_cell_str(row, 1, p), sqf_cell_int(row, 2, p),
                                (uint32_t)sqf_cell_int(row, 3, p), err);
  int64_t cid = sqf_cell_int(row, 0, p);
  rid = sqf_cell_int(row, 2, p);
  return rows_check_id(r, cid, sqf_cell_str(row, 1, p), rid, err);
}

static lode_status rows_check_page(rows_job *r, rows_page_walk *w, lode_error *err) {
  sqf_view view;
  sqf_cell row;
  sqf_page_use use = vfs_pages_use_of(&w->pages, w->number);
  if (!vfs_pages_may_hold_rows(use) || !vfs_pages_read(&w->pages, w->number, w->page)) return LODE_OK;
  if (!sqf_view_page(&w->pages.src, w->number, w->page, &view) || !sqf_view_has_rows(&view)) return LODE_OK;
  for (; w->cell < view.cells; w->cell++) {
    size_t offset = sqf_view_cell(&w->pages.src, &view, w->cell);
    if (!offset || !sqf_cell_parse_row(&w->pages.src, &view, offset, &row)) continue;
    TRY(rows_check_page_row(r, w, &row, repair_row_kind_of(&row, &view), err));
    if (r->broken && r->again) return LODE_OK;
    r->done = 0;
    if (r->broken) {
      w->cell++;
      return LODE_OK;
    }
  }
  return LODE_OK;
}

/* Pages are read through the transaction's own handle, which holds the lock and takes a journal into account. */
static lode_status rows_check_page_slice(rows_job *r, rows_page_walk *w, lode_error *err) {
  TRY(store_tx_pages(r->tx, &w->pages, err)); /* others may have committed meanwhile */
  while (w->number <= w->pages.src.pages && !store_tx_is_old(r->tx)) {
    TRY(rows_check_page(r, w, err));
    if (w->pages.rc != SQLITE_OK && w->pages.rc != SQLITE_IOERR_DATA)
      return store_err_sql(r->tx->conn, w->pages.rc, err);
    if (r->broken) break;
    w->number++;
    w->cell = 0;
  }
  return LODE_OK;
}

static lode_status rows_check_all_pages(rows_job *r, lode_error *err) {
  lode_status st = LODE_OK;
  rows_page_walk w = {.number = 1, .pages = {.src.pages = 1, .fd = -1, .journal_fd = -1}};
  w.page = mem_alloc(SQF_PAGE_MAX);
  if (!w.page) return err_nomem(err);
  r->done = 0;
  while (w.number <= w.pages.src.pages) {
    TRY_GOTO(err_progress(r->v->progress, "checking records", w.number, w.pages.src.pages, err));
    TRY_GOTO(rows_begin(r, err));
    st = rows_check_page_slice(r, &w, err);
    rows_end(r);
    if (st != LODE_OK) break;
  }
done:
  vfs_pages_close(&w.pages);
  mem_free(w.page);
  strbuf_release(&w.payload);
  return st;
}

static lode_status rows_check_by_keys(rows_job *r, bool *walkable, lode_error *err) {
  static const struct {
    int which;
    const char *phase;
    rows_row_fn *fn;
  } walks[] = {
      {STORE_STMT_COLL_CIDS, "collections", rows_on_collection},   {STORE_STMT_RECORD_SCAN, "records", rows_on_record},
      {STORE_STMT_DOCUMENT_KEYS, "documents", rows_on_document},   {STORE_STMT_VECTOR_KEYS, "vectors", rows_on_vector},
      {STORE_STMT_TOMBSTONE_SCAN, "deletions", rows_on_tombstone},
  };
  TRY(rows_walk_ids(r, STORE_STMT_NAME_SCAN, walkable, err));
  if (*walkable) TRY(rows_walk_ids(r, STORE_STMT_FRESH_SCAN, walkable, err));
  for (size_t i = 0; i < sizeof walks / sizeof *walks && *walkable; i++)
    TRY(rows_walk(r, walks[i].which, walks[i].phase, walks[i].fn, walkable, err));
  return LODE_OK;
}

lode_status verify_rows(verify_job *v, lode_error *err) {
  rows_job r = {.v = v};
  bool walkable = false;
  lode_status st = LODE_OK;
  mem_arena_init(&r.arena, 0);
  if (!v->damaged_pages) TRY_GOTO(rows_check_by_keys(&r, &walkable, err));
  if (walkable) goto done;
  if (!v->damaged_pages)
    verify_report(v, "structure", rows_no_str, rows_no_str,
                  "a table cannot be walked to its end, though all pages carry their checksums");
  st = rows_check_all_pages(&r, err);
done:
  mem_arena_release(&r.arena);
  json_release(&r.json);
  return st;
}
