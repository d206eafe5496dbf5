/* verify_rows.c - every row by its checksum, and invariants 1 to 3 of write.c.
 *
 * Each row is judged within one transaction. When all pages are sound the tables are walked by their keys. When some
 * are not, a walk would end at the first of them: then rows are taken from the sound pages one by one, and what they
 * name is looked up; what cannot be reached from a name is reported by that name. A lookup that meets a damaged page ends
 * the transaction (SQLite rolls back). The row is looked at again in a new one if something of it is left to check, without
 * the parts that are done, so that each part is tried once.
 */
#include "verify.h"

enum { PART_NAME = 1, PART_DOCUMENT = 2, PART_VECTOR = 4, PART_CONTENT = 8 };
typedef enum coll_state { COLL_KNOWN, COLL_DROPPED_STATE, COLL_ABSENT, COLL_UNREADABLE } coll_state;

typedef struct rows {
  lode__verify *v;
  lode__tx *tx;
  bool broken;          /* a lookup met damage: this transaction is over */
  bool again;           /* something is left to check of the row at hand */
  unsigned done;        /* parts of it that are not */
  int64_t cid;          /* whose description is below, in this transaction; 0: none */
  coll_state state;
  lode__coll coll;
  mem_arena arena;
  int64_t bad_cid;      /* its description cannot be read: not tried again */
  int64_t told_absent;  /* collections that do not exist are reported once */
  json_doc json;
} rows;

static const lode_str none = {NULL, 0};

/* ---- Lookups ---- */

/* Damage is a finding, not a failure; *readable says which. */
static lode_status judge(rows *r, lode_status st, bool *readable, lode_error *err) {
  *readable = st != LODE_CORRUPT;
  if (*readable) return st;
  if (sqlite3_get_autocommit(r->tx->conn->sql)) r->broken = true; /* a wrong checksum of a row ends nothing */
  err_clear(err);
  return LODE_OK;
}

static lode_status look_up(rows *r, int which, int64_t key, sqlite3_stmt **s, bool *row, bool *readable, lode_error *err) {
  *row = false;
  lode_status st = lode__stmt(r->tx, which, s, err);
  if (st == LODE_OK) {
    sqlite3_bind_int64(*s, 1, key);
    st = lode__step(r->tx, *s, row, err);
  }
  return judge(r, st, readable, err);
}

static lode_status load_coll(rows *r, int64_t cid, lode_error *err) {
  sqlite3_stmt *s;
  bool row, readable;
  if (r->cid == cid) return LODE_OK;
  r->cid = cid;
  r->state = cid == r->bad_cid ? COLL_UNREADABLE : COLL_KNOWN;
  r->coll = (lode__coll){0};
  mem_arena_reset(&r->arena);
  if (cid == r->bad_cid) return LODE_OK;
  lode_status st = lode__coll_load(r->tx, cid, &r->arena, &r->coll, err);
  if (st == LODE_OK) return LODE_OK;
  r->coll = (lode__coll){0};
  if (st == LODE_CORRUPT) {
    r->state = COLL_UNREADABLE;
    r->bad_cid = cid;
    return judge(r, st, &readable, err);
  }
  if (st != LODE_NOT_FOUND) return st;
  err_clear(err);
  TRY(look_up(r, LODE__STMT_COLL_DROPPED, cid, &s, &row, &readable, err));
  if (readable) sqlite3_reset(s);
  if (!readable) r->bad_cid = cid;
  r->state = !readable ? COLL_UNREADABLE : row ? COLL_DROPPED_STATE : COLL_ABSENT;
  return LODE_OK;
}

/* *go = false: rows of this collection are not to be judged. */
static lode_status enter(rows *r, int64_t cid, bool *go, lode_error *err) {
  TRY(load_coll(r, cid, err));
  r->again = r->broken;
  *go = !r->broken && (r->state == COLL_KNOWN || r->state == COLL_UNREADABLE);
  if (r->state != COLL_ABSENT || r->told_absent == cid) return LODE_OK;
  r->told_absent = cid;
  lode__verify_found(r->v, "structure", none, none, "there are rows of collection %lld, which does not exist", (long long)cid);
  return LODE_OK;
}

/* Of a record or a vector. When graves cannot be read everything passes for alive and *known is false. */
static lode_status is_alive(rows *r, int64_t key, bool *alive, bool *known, lode_error *err) {
  lode_status st = lode__rec_alive(r->tx, key, alive, err);
  if (st == LODE_CORRUPT) *alive = true;
  return judge(r, st, known, err);
}

/* ---- Records ---- */

static lode_status check_name_of(rows *r, const lode__rec *rec, lode_error *err) {
  int64_t rid = 0;
  bool alive, known, readable;
  TRY(is_alive(r, rec->rid, &alive, &known, err));
  if (!known) return LODE_OK;
  TRY(judge(r, lode__rec_find(r->tx, lode__key_cid(rec->rid), rec->id, &rid, err), &readable, err));
  if (!readable)
    lode__verify_found(r->v, "name", r->coll.name, rec->id, "the record's name cannot be read");
  else if (alive && rid != rec->rid)
    lode__verify_found(r->v, "name", r->coll.name, rec->id, rid ? "the name leads to another record" : "the record has no name");
  return LODE_OK;
}

/* The name knows how long the document is. */
static lode_status check_length_of(rows *r, const lode__rec *rec, size_t bytes, lode_error *err) {
  sqlite3_stmt *s;
  bool row, readable;
  lode_status st = lode__stmt(r->tx, LODE__STMT_NAME_GET, &s, err);
  if (st == LODE_OK) {
    sqlite3_bind_int64(s, 1, lode__key_cid(rec->rid));
    lode__bind_blob(s, 2, rec->id);
    st = lode__step(r->tx, s, &row, err);
  }
  TRY(judge(r, st, &readable, err));
  if (!readable) return LODE_OK; /* rows_check_id_of tells */
  if (row && sqlite3_column_int64(s, 0) == rec->rid && sqlite3_column_int64(s, 1) != (int64_t)bytes)
    lode__verify_found(r->v, "name", r->coll.name, rec->id, "the name tells another length of the document");
  sqlite3_reset(s);
  return LODE_OK;
}

static lode_status check_document_of(rows *r, const lode__rec *rec, lode_error *err) {
  sqlite3_stmt *s;
  bool row, readable;
  size_t bytes = 0;
  /* that there is none in fact is seen from the side of the documents */
  if (!rec->has_document) return check_length_of(r, rec, 0, err);
  TRY(look_up(r, LODE__STMT_DOCUMENT_GET, rec->rid, &s, &row, &readable, err));
  const char *fault = !readable ? "the document cannot be read" : !row ? "the document is missing" : NULL;
  if (!fault) {
    lode_str text = lode__column(s, 0);
    uint32_t crc = (uint32_t)sqlite3_column_int64(s, 1);
    if (!text.data || crc != lode__crc_document(rec->rid, text) || crc != rec->doc_crc) fault = "the document fails its checksum";
    bytes = text.len + 1;
    sqlite3_reset(s);
  }
  if (!fault) return check_length_of(r, rec, bytes, err);
  lode__verify_found(r->v, "document", r->coll.name, rec->id, "%s", fault);
  return LODE_OK;
}

static lode_status check_vector_of(rows *r, const lode__rec *rec, lode_error *err) {
  sqlite3_stmt *s;
  bool row, readable;
  if (!rec->vid) return LODE_OK;
  TRY(look_up(r, LODE__STMT_VECTOR_GET, rec->vid, &s, &row, &readable, err));
  const char *fault = !readable ? "the vector cannot be read" : !row ? "the vector is missing" : NULL;
  if (!fault) {
    lode_str data = lode__column(s, 2);
    int64_t rid = sqlite3_column_int64(s, 1);
    if (!data.data || (uint32_t)sqlite3_column_int64(s, 3) != lode__crc_vector(rec->vid, rid, data.data, data.len))
      fault = "the vector fails its checksum";
    else if (rid != rec->rid)
      fault = "the vector belongs to another record";
    else if (r->state == COLL_KNOWN && data.len != (size_t)r->coll.dim * sizeof(float))
      fault = "the vector's dimension is not the collection's";
    sqlite3_reset(s);
  }
  if (fault) lode__verify_found(r->v, "vector", r->coll.name, rec->id, "%s", fault);
  return LODE_OK;
}

static lode_status check_content_of(rows *r, const lode__rec *rec, lode_error *err) {
  uint64_t cursor = r->tx->cursor;
  if (rec->id.len == 0 || rec->id.len > LODE_MAX_ID_BYTES || !utf8_valid(rec->id.data, rec->id.len))
    lode__verify_found(r->v, "record", r->coll.name, rec->id, "the id is not valid");
  if (rec->seq > cursor || ((uint64_t)rec->rid & (uint64_t)LODE__KEY_MAX) > cursor)
    lode__verify_found(r->v, "record", r->coll.name, rec->id, "the record is newer than the store's newest change");
  if (!rec->metadata.data) return LODE_OK;
  lode_status st = meta_check(&r->json, rec->metadata, false, err);
  if (st == LODE_NOMEM) return st;
  if (st != LODE_OK) lode__verify_found(r->v, "record", r->coll.name, rec->id, "the metadata is not valid: %s", err->text);
  err_clear(err);
  return LODE_OK;
}

static lode_status check_record(rows *r, const lode__rec *rec, bool proven, lode_error *err) {
  static const struct {
    unsigned part;
    lode_status (*check)(rows *r, const lode__rec *rec, lode_error *err);
  } parts[] = {{PART_CONTENT, check_content_of}, {PART_NAME, check_name_of}, {PART_DOCUMENT, check_document_of},
               {PART_VECTOR, check_vector_of}};
  bool go;
  TRY(enter(r, lode__key_cid(rec->rid), &go, err));
  if (!go) return LODE_OK;
  if (!proven) {
    lode__verify_found(r->v, "record", r->coll.name, rec->id, "the record fails its checksum");
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

/* ---- What leads to records ---- */

static lode_status check_name(rows *r, int64_t cid, lode_str id, int64_t rid, lode_error *err) {
  sqlite3_stmt *s;
  bool row, readable, go;
  TRY(enter(r, cid, &go, err));
  if (!go) return LODE_OK;
  TRY(look_up(r, LODE__STMT_RECORD_GET, rid, &s, &row, &readable, err));
  if (!readable) {
    lode__verify_found(r->v, "record", r->coll.name, id, "the record cannot be read: it is on a damaged page");
    return LODE_OK;
  }
  bool same = row && lode__key_cid(rid) == cid && str_eq(lode__column(s, 1), id);
  sqlite3_reset(s);
  if (!same)
    lode__verify_found(r->v, "name", r->coll.name, id, row ? "the name leads to another record" : "the record is missing");
  return LODE_OK;
}

static lode_status check_document(rows *r, int64_t rid, lode_error *err) {
  sqlite3_stmt *s;
  bool row, readable, go;
  TRY(enter(r, lode__key_cid(rid), &go, err));
  if (!go) return LODE_OK;
  TRY(look_up(r, LODE__STMT_RECORD_GET, rid, &s, &row, &readable, err));
  if (!readable) return LODE_OK; /* reported from the side of its name */
  bool owned = row && sqlite3_column_type(s, 4) != SQLITE_NULL;
  if (!owned)
    lode__verify_found(r->v, "document", r->coll.name, row ? lode__column(s, 1) : none, "document %lld belongs to no record",
                       (long long)rid);
  sqlite3_reset(s);
  return LODE_OK;
}

static lode_status check_vector(rows *r, int64_t vid, int64_t rid, lode_error *err) {
  sqlite3_stmt *s;
  bool row, readable, go, vector_alive, record_alive, known;
  TRY(enter(r, lode__key_cid(vid), &go, err));
  if (!go) return LODE_OK;
  TRY(look_up(r, LODE__STMT_RECORD_GET, rid, &s, &row, &readable, err));
  if (!readable) return LODE_OK;
  bool owned = row && sqlite3_column_int64(s, 3) == vid;
  sqlite3_reset(s);
  if (owned) return LODE_OK;
  TRY(is_alive(r, vid, &vector_alive, &known, err));
  if (!known || !vector_alive) return LODE_OK;
  TRY(is_alive(r, rid, &record_alive, &known, err));
  if (known && record_alive)
    lode__verify_found(r->v, "vector", r->coll.name, none, "vector %lld belongs to no record", (long long)vid);
  return LODE_OK;
}

static lode_status check_grave(rows *r, int64_t gid, lode_str rids, int64_t vid, uint32_t crc, lode_error *err) {
  sqlite3_stmt *s;
  bool row, readable, go;
  lode__grave tombstone;
  TRY(enter(r, lode__key_cid(gid), &go, err));
  if (!go) return LODE_OK;
  if (crc != lode__crc_grave(gid, rids, vid) || !lode__grave_decode(gid, rids, vid, &tombstone)) {
    lode__verify_found(r->v, "structure", r->coll.name, none, "the note of a deletion (%lld) fails its checksum", (long long)gid);
    return LODE_OK;
  }
  for (size_t i = 0; i < (vid ? 1 : tombstone.n); i++) {
    int64_t key = vid ? vid : tombstone.rids[i];
    TRY(look_up(r, vid ? LODE__STMT_VECTOR_EXISTS : LODE__STMT_RECORD_GET, key, &s, &row, &readable, err));
    if (!readable) return LODE_OK;
    sqlite3_reset(s);
    if (!row)
      lode__verify_found(r->v, "structure", r->coll.name, none, "what was deleted (%lld) is gone, and the note of it is not",
                         (long long)key);
  }
  return LODE_OK;
}

/* ---- Walking by keys ---- */

static lode_status begin(rows *r, lode_error *err) {
  r->broken = r->again = false;
  r->cid = 0;
  return lode__tx_begin(r->v->db, LODE__READ, &r->tx, err);
}

static void end(rows *r) {
  lode__tx_rollback(r->tx);
  r->tx = NULL;
}

typedef lode_status row_fn(rows *r, sqlite3_stmt *s, lode_error *err);

static lode_status on_collection(rows *r, sqlite3_stmt *s, lode_error *err) {
  if (sqlite3_column_type(s, 1) == SQLITE_NULL) return LODE_OK;
  lode_str name = lode__column(s, 1);
  TRY(load_coll(r, sqlite3_column_int64(s, 0), err));
  if (r->state == COLL_UNREADABLE)
    lode__verify_found(r->v, "structure", name, none, "the collection's description fails its checksum");
  return LODE_OK;
}

static lode_status on_record(rows *r, sqlite3_stmt *s, lode_error *err) {
  lode__rec rec = {
      .rid = sqlite3_column_int64(s, 0),
      .id = lode__column(s, 1),
      .seq = (uint64_t)sqlite3_column_int64(s, 2),
      .vid = sqlite3_column_int64(s, 3),
      .has_document = sqlite3_column_type(s, 4) != SQLITE_NULL,
      .doc_crc = (uint32_t)sqlite3_column_int64(s, 4),
      .metadata = lode__column(s, 5),
  };
  bool proven = (uint32_t)sqlite3_column_int64(s, 6) == lode__crc_record(&rec, rec.has_document, rec.doc_crc);
  return check_record(r, &rec, proven, err);
}

static lode_status on_document(rows *r, sqlite3_stmt *s, lode_error *err) {
  return check_document(r, sqlite3_column_int64(s, 0), err);
}

static lode_status on_vector(rows *r, sqlite3_stmt *s, lode_error *err) {
  return check_vector(r, sqlite3_column_int64(s, 0), sqlite3_column_int64(s, 1), err);
}

static lode_status on_grave(rows *r, sqlite3_stmt *s, lode_error *err) {
  return check_grave(r, sqlite3_column_int64(s, 0), lode__column(s, 1), sqlite3_column_int64(s, 2),
                     (uint32_t)sqlite3_column_int64(s, 3), err);
}

/* One transaction; *after moves on. *more = false at the end of the table or where it cannot be read. */
static lode_status walk_slice(rows *r, int which, row_fn *fn, int64_t *after, bool *more, bool *walkable, lode_error *err) {
  sqlite3_stmt *s;
  *more = true;
  TRY(judge(r, lode__stmt(r->tx, which, &s, err), walkable, err));
  if (!*walkable) return LODE_OK;
  sqlite3_bind_int64(s, 1, *after);
  sqlite3_bind_int64(s, 2, INT64_MAX);
  while (!r->broken && !lode__tx_is_old(r->tx)) {
    TRY(judge(r, lode__step(r->tx, s, more, err), walkable, err));
    if (!*walkable || !*more) break;
    int64_t key = sqlite3_column_int64(s, 0);
    TRY(fn(r, s, err));
    if (r->broken && r->again) break;
    r->done = 0;
    *after = key;
  }
  if (*walkable && !r->broken) sqlite3_reset(s);
  return LODE_OK;
}

/* *walkable = false: a page in the way cannot be read. */
static lode_status walk(rows *r, int which, const char *phase, row_fn *fn, bool *walkable, lode_error *err) {
  int64_t after = 0;
  bool more = true;
  *walkable = true;
  r->done = 0;
  while (more && *walkable) {
    TRY(lode__progress(r->v->progress, phase, (uint64_t)after & (uint64_t)LODE__KEY_MAX, 0, err));
    TRY(begin(r, err));
    lode_status st = walk_slice(r, which, fn, &after, &more, walkable, err);
    end(r);
    TRY(st);
  }
  return LODE_OK;
}

/* Where the walk through the names is: (cid, id), and the one at hand. */
typedef struct name_place {
  int64_t cid;
  strbuf id, next;
} name_place;

static void move_on(name_place *at, int64_t cid) {
  strbuf was = at->id;
  at->cid = cid;
  at->id = at->next;
  at->next = was;
}

static lode_status walk_names_slice(rows *r, int which, name_place *at, bool *more, bool *walkable, lode_error *err) {
  sqlite3_stmt *s;
  *more = true;
  TRY(judge(r, lode__stmt(r->tx, which, &s, err), walkable, err));
  if (!*walkable) return LODE_OK;
  /* the statement keeps its own copy, for the buffers change while it runs */
  sqlite3_bind_int64(s, 1, at->cid);
  sqlite3_bind_blob64(s, 2, at->id.len ? at->id.data : "", at->id.len, SQLITE_TRANSIENT);
  while (!r->broken && !lode__tx_is_old(r->tx)) {
    TRY(judge(r, lode__step(r->tx, s, more, err), walkable, err));
    if (!*walkable || !*more) break;
    int64_t cid = sqlite3_column_int64(s, 0), rid = sqlite3_column_int64(s, 2);
    lode_str name = lode__column(s, 1);
    at->next.len = 0;
    strbuf_add(&at->next, name.data, name.len);
    if (at->next.failed) return err_nomem(err);
    TRY(check_name(r, cid, (lode_str){at->next.data ? at->next.data : "", at->next.len}, rid, err));
    if (!(r->broken && r->again)) move_on(at, cid);
  }
  if (*walkable && !r->broken) sqlite3_reset(s);
  return LODE_OK;
}

static lode_status walk_names(rows *r, int which, bool *walkable, lode_error *err) {
  name_place at = {0};
  bool more = true;
  lode_status st = LODE_OK;
  *walkable = true;
  while (more && *walkable) {
    TRY_GOTO(lode__progress(r->v->progress, "names", 0, 0, err));
    TRY_GOTO(begin(r, err));
    st = walk_names_slice(r, which, &at, &more, walkable, err);
    end(r);
    if (st != LODE_OK) goto done;
  }
done:
  strbuf_release(&at.id);
  strbuf_release(&at.next);
  return st;
}

/* ---- Page by page ---- */

typedef struct raw {
  lode__truth truth;     /* as the transaction at hand sees it */
  lode__pages pages;
  unsigned char *page;
  strbuf payload;
  uint32_t number, cell; /* where to go on */
} raw;

/* A row of a collection's description that fails its checksum on a sound page. */
static lode_status check_raw_collection(rows *r, const lode__row *row, lode_error *err) {
  TRY(load_coll(r, row->key, err));
  r->again = false;
  if (r->state == COLL_UNREADABLE)
    lode__verify_found(r->v, "structure", none, none, "the description of collection %lld cannot be read", (long long)row->key);
  return LODE_OK;
}

static lode_status check_raw(rows *r, raw *w, const lode__row *row, lode__row_kind kind, lode_error *err) {
  const strbuf *p = &w->payload;
  lode__rec rec = {.rid = row->key};
  int64_t rid;
  switch (kind) {
    case LODE__ROW_DOCUMENT: return check_document(r, row->key, err);
    case LODE__ROW_VECTOR: return lode__row_local_int(row, 1, &rid) ? check_vector(r, row->key, rid, err) : LODE_OK;
    case LODE__ROW_OTHER:
    case LODE__ROW_KEY: return LODE_OK;
    default: break;
  }
  lode_status st = lode__row_load(&w->pages, row, &w->payload, err);
  if (st != LODE_OK && st != LODE_CORRUPT) return st;
  bool whole = st == LODE_OK;
  err_clear(err);
  if (kind == LODE__ROW_COLLECTION) return check_raw_collection(r, row, err);
  if (kind == LODE__ROW_RECORD) return check_record(r, &rec, whole && lode__row_record(row, p, &rec), err);
  if (!whole) return LODE_OK; /* of a name, or of a note of a deletion; the page in question was reported */
  if (kind == LODE__ROW_GRAVE)
    return check_grave(r, row->key, lode__row_str(row, 1, p), lode__row_int(row, 2, p), (uint32_t)lode__row_int(row, 3, p), err);
  int64_t cid = lode__row_int(row, 0, p);
  rid = lode__row_int(row, 2, p);
  return check_name(r, cid, lode__row_str(row, 1, p), rid, err);
}

static lode_status raw_page(rows *r, raw *w, lode_error *err) {
  lode__page_view view;
  lode__row row;
  lode__page_use use = lode__pages_use(&w->pages, w->number);
  bool holds = use == LODE__USE_UNKNOWN || use == LODE__USE_ROOT || use == LODE__USE_TREE;
  if (!holds || !lode__pages_read(&w->pages, w->number, w->page)) return LODE_OK;
  if (!lode__page_look(&w->pages, w->number, w->page, &view)) return LODE_OK;
  for (; w->cell < view.cells; w->cell++) {
    size_t offset = lode__page_cell(&w->pages, &view, w->cell);
    if (!offset || !lode__row_at(&w->pages, &view, offset, &row)) continue;
    TRY(check_raw(r, w, &row, lode__row_shape(&row, view.table), err));
    if (r->broken && r->again) return LODE_OK;
    r->done = 0;
    if (r->broken) {
      w->cell++;
      return LODE_OK;
    }
  }
  return LODE_OK;
}

/* Pages come through the transaction's own handle: it holds the lock, and knows what a journal beside the file means. */
static lode_status raw_slice(rows *r, raw *w, lode_error *err) {
  TRY(lode__truth_look(r->tx, &w->truth, err)); /* others may have committed since */
  lode__truth_pages(&w->truth, &w->pages);
  while (w->number <= w->pages.count && !lode__tx_is_old(r->tx)) {
    TRY(raw_page(r, w, err));
    if (w->truth.rc != SQLITE_OK && w->truth.rc != SQLITE_IOERR_DATA) return lode__sql_fail(r->tx->conn, w->truth.rc, err);
    if (r->broken) break;
    w->number++;
    w->cell = 0;
  }
  return LODE_OK;
}

static lode_status check_page_by_page(rows *r, lode_error *err) {
  lode_status st = LODE_OK;
  raw w = {.number = 1, .pages = {.fd = -1, .journal_fd = -1, .count = 1}};
  w.page = mem_alloc(SQF_PAGE_MAX);
  w.pages.map = mem_alloc(SQF_PAGE_MAX);
  w.pages.chain = mem_alloc(SQF_PAGE_MAX);
  if (!w.page || !w.pages.map || !w.pages.chain) {
    st = err_nomem(err);
    goto done;
  }
  r->done = 0;
  while (w.number <= w.pages.count) {
    TRY_GOTO(lode__progress(r->v->progress, "rows", w.number, w.pages.count, err));
    TRY_GOTO(begin(r, err));
    st = raw_slice(r, &w, err);
    end(r);
    if (st != LODE_OK) break;
  }
done:
  lode__pages_close(&w.pages);
  mem_free(w.page);
  strbuf_release(&w.payload);
  return st;
}

static lode_status check_by_keys(rows *r, bool *walkable, lode_error *err) {
  static const struct {
    int which;
    const char *phase;
    row_fn *fn;
  } walks[] = {
      {LODE__STMT_COLL_CIDS, "collections", on_collection}, {LODE__STMT_RECORD_SCAN, "records", on_record},
      {LODE__STMT_DOCUMENT_KEYS, "documents", on_document}, {LODE__STMT_VECTOR_KEYS, "vectors", on_vector},
      {LODE__STMT_GRAVE_SCAN, "deletions", on_grave},
  };
  TRY(walk_names(r, LODE__STMT_NAME_SCAN, walkable, err));
  if (*walkable) TRY(walk_names(r, LODE__STMT_FRESH_SCAN, walkable, err));
  for (size_t i = 0; i < sizeof walks / sizeof *walks && *walkable; i++)
    TRY(walk(r, walks[i].which, walks[i].phase, walks[i].fn, walkable, err));
  return LODE_OK;
}

lode_status lode__verify_rows(lode__verify *v, lode_error *err) {
  rows r = {.v = v};
  bool walkable = false;
  lode_status st = LODE_OK;
  mem_arena_init(&r.arena, 0);
  if (!v->damaged_pages) TRY_GOTO(check_by_keys(&r, &walkable, err));
  if (walkable) goto done;
  if (!v->damaged_pages)
    lode__verify_found(v, "structure", none, none, "a table cannot be walked to its end, though all pages carry their checksums");
  st = check_page_by_page(&r, err);
done:
  mem_arena_release(&r.arena);
  json_release(&r.json);
  return st;
}
