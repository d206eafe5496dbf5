/* write.c - inserting, changing and deleting records, inside a write transaction.
 *
 * Invariants, which verify.c checks
 *   1. every living record has its name, and every name points to a record with that id, alive or in a grave;
 *   2. record.vid is 0 or the key of a vector whose rid is the record's;
 *   3. record.doc is the CRC of the document with that rid, or NULL and there is none;
 *   4. collection.records, pending, documents, document_bytes, graves, untexted and unindexed are what a recount gives;
 *   5. the text index holds the documents, and the metadata index the values, of all records (graves included) up to
 *      the cursors, and nothing past them.
 * Deleting touches no document, no vector and no name: a grave is dug. work.c erases.
 */
#include "db.h"

static lode_status put_vector(lode__tx *tx, lode__coll *coll, int64_t rid, const float *v, uint32_t dim, int64_t *vid,
                              lode_error *err) {
  sqlite3_stmt *s;
  uint64_t seq;
  size_t bytes = (size_t)dim * sizeof *v;
  TRY(lode__tx_next(tx, &seq, err));
  *vid = lode__key_of(coll->cid, seq);
  TRY(lode__stmt(tx, LODE__STMT_VECTOR_PUT, &s, err));
  sqlite3_bind_int64(s, 1, *vid);
  sqlite3_bind_int64(s, 2, rid);
  sqlite3_bind_blob64(s, 3, v, bytes, SQLITE_STATIC);
  sqlite3_bind_int64(s, 4, lode__crc_vector(*vid, rid, v, bytes));
  TRY(lode__run(tx, s, err));
  if (coll->dim == 0) coll->dim = dim;
  return LODE_OK;
}

static lode_status put_document(lode__tx *tx, int which, int64_t rid, lode_str text, uint32_t crc, lode_error *err) {
  sqlite3_stmt *s;
  TRY(lode__stmt(tx, which, &s, err));
  sqlite3_bind_int64(s, 1, rid);
  lode__bind_text(s, 2, text);
  sqlite3_bind_int64(s, 3, crc);
  return lode__run(tx, s, err);
}

static void bind_record(sqlite3_stmt *s, const lode__rec *rec) {
  sqlite3_bind_int64(s, 1, rec->rid);
  lode__bind_blob(s, 2, rec->id);
  sqlite3_bind_int64(s, 3, (int64_t)rec->seq);
  sqlite3_bind_int64(s, 4, rec->vid);
  if (rec->has_document)
    sqlite3_bind_int64(s, 5, rec->doc_crc);
  else
    sqlite3_bind_null(s, 5);
  lode__bind_text(s, 6, rec->metadata);
  sqlite3_bind_int64(s, 7, lode__crc_record(rec, rec->has_document, rec->doc_crc));
}

/* What a name says of its record's document: bytes + 1, or 0 for none. So a deletion knows without reading the document. */
static int64_t name_len(lode_str document) { return document.data ? (int64_t)document.len + 1 : 0; }

/* ---- Inserting ---- */

/* Gives out keys and checksums, and counts. */
static lode_status make_row(lode__tx *tx, lode__coll *coll, const lode__change *c, lode__new *row, lode_error *err) {
  uint64_t seq;
  *row = (lode__new){.rec = {.id = c->id, .metadata = c->metadata, .has_document = c->document.data != NULL},
                     .document = c->document};
  lode__rec *rec = &row->rec;
  TRY(lode__tx_next(tx, &rec->seq, err));
  rec->rid = lode__key_of(coll->cid, rec->seq);
  if (rec->has_document) {
    rec->doc_crc = lode__crc_document(rec->rid, c->document);
    coll->documents++;
    coll->document_bytes += c->document.len;
  }
  if (c->vector) {
    TRY(lode__tx_next(tx, &seq, err));
    rec->vid = lode__key_of(coll->cid, seq);
    row->vector = (lode_str){(const char *)c->vector, (size_t)c->dim * sizeof *c->vector};
    row->vector_crc = lode__crc_vector(rec->vid, rec->rid, row->vector.data, row->vector.len);
    if (coll->dim == 0) coll->dim = c->dim;
  } else {
    coll->pending++;
  }
  row->crc = lode__crc_record(rec, rec->has_document, rec->doc_crc);
  coll->records++;
  coll->untexted++;
  coll->unindexed++;
  return LODE_OK;
}

static lode_status put_rows(lode__tx *tx, const lode__coll *coll, const lode__new *rows, const size_t *order, size_t n,
                            lode_error *err) {
  TRY(lode__names_add(tx, coll, rows, order, n, err));
  TRY(lode__feed_run(tx, LODE__STMT_DOCUMENTS_PUT, 0, (lode__feed){.rows = rows, .n = n, .part = LODE__FEED_DOCUMENTS}, err));
  TRY(lode__feed_run(tx, LODE__STMT_VECTORS_PUT, 0, (lode__feed){.rows = rows, .n = n, .part = LODE__FEED_VECTORS}, err));
  return lode__feed_run(tx, LODE__STMT_RECORDS_PUT, 0, (lode__feed){.rows = rows, .n = n}, err);
}

lode_status lode__rec_insert(lode__tx *tx, lode__coll *coll, const lode__change *changes, size_t n, lode_error *err) {
  lode_status st = LODE_OK;
  if (n == 0) return LODE_OK;
  lode__new *rows = mem_calloc(n, sizeof *rows);
  size_t *order = mem_calloc(n, sizeof *order);
  if (!rows || !order) {
    st = err_nomem(err);
    goto done;
  }
  for (size_t i = 0; i < n; i++) {
    TRY_GOTO(make_row(tx, coll, &changes[i], &rows[i], err));
    if (changes[i].dead_rid) TRY_GOTO(lode__name_remove(tx, coll->cid, changes[i].id, changes[i].dead_rid, err));
  }
  TRY_GOTO(sort_strings(&rows->rec.id, sizeof *rows, n, order, err));
  TRY_GOTO(put_rows(tx, coll, rows, order, n, err));
  for (size_t i = 0; i < n && coll->counted; i++)
    if (rows[i].rec.metadata.data) TRY_GOTO(lode__counters_change(tx, coll->cid, rows[i].rec.metadata, +1, err));
done:
  mem_free(rows);
  mem_free(order);
  return st;
}

/* ---- Changing ---- */

static lode_status text_row(lode__tx *tx, int which, int64_t rid, lode_str text, lode_error *err) {
  sqlite3_stmt *s;
  TRY(lode__stmt(tx, which, &s, err));
  sqlite3_bind_int64(s, 1, rid);
  lode__bind_text(s, 2, text);
  return lode__run(tx, s, err);
}

lode_status lode__text_row_add(lode__tx *tx, lode__sizes *sizes, int64_t rid, lode_str text, lode_error *err) {
  TRY(lode__sizes_put(tx, sizes, rid, text.len, err));
  return text_row(tx, LODE__STMT_TEXT_PUT, rid, text, err);
}

lode_status lode__text_row_remove(lode__tx *tx, int64_t rid, lode_str text, lode_error *err) {
  return text_row(tx, LODE__STMT_TEXT_DELETE, rid, text, err);
}

/* The text index must be told the old text to forget it. */
static lode_status change_document(lode__tx *tx, lode__coll *coll, lode__rec *rec, lode_str text, lode_error *err) {
  bool indexed = rec->rid <= coll->text_cursor, had = rec->has_document;
  if (had) {
    lode_str old;
    TRY(lode__rec_document(tx, rec->rid, &old, err));
    coll->documents--;
    coll->document_bytes -= old.len;
    if (indexed) TRY(lode__text_row_remove(tx, rec->rid, old, err));
  }
  sqlite3_stmt *s;
  TRY(lode__name_set_len(tx, coll->cid, rec->id, name_len(text), err));
  rec->has_document = text.data != NULL;
  rec->doc_crc = text.data ? lode__crc_document(rec->rid, text) : 0;
  if (!text.data) {
    if (!had) return LODE_OK;
    TRY(lode__stmt(tx, LODE__STMT_DOCUMENT_DELETE, &s, err));
    sqlite3_bind_int64(s, 1, rec->rid);
    return lode__run(tx, s, err);
  }
  coll->documents++;
  coll->document_bytes += text.len;
  TRY(put_document(tx, had ? LODE__STMT_DOCUMENT_SET : LODE__STMT_DOCUMENT_PUT, rec->rid, text, rec->doc_crc, err));
  if (!indexed) return LODE_OK;
  lode__sizes sizes = {0};
  TRY(lode__text_row_add(tx, &sizes, rec->rid, text, err));
  return lode__sizes_flush(tx, &sizes, err);
}

static lode_status change_metadata(lode__tx *tx, lode__coll *coll, lode__rec *rec, lode_str metadata, lode_error *err) {
  if (rec->rid <= coll->term_cursor) {
    if (rec->metadata.data) TRY(lode__terms_remove(tx, coll->cid, rec->rid, rec->metadata, err));
    if (metadata.data) TRY(lode__terms_add(tx, coll->cid, rec->rid, metadata, err));
  }
  if (coll->counted) {
    if (rec->metadata.data) TRY(lode__counters_change(tx, coll->cid, rec->metadata, -1, err));
    if (metadata.data) TRY(lode__counters_change(tx, coll->cid, metadata, +1, err));
  }
  rec->metadata = metadata;
  return LODE_OK;
}

lode_status lode__rec_update(lode__tx *tx, lode__coll *coll, const lode__rec *old, const lode__change *change,
                             lode_error *err) {
  sqlite3_stmt *s;
  lode_status st;
  lode__rec rec = *old;
  mem_arena arena;
  mem_arena_init(&arena, 0);
  /* The old strings belong to a statement that is about to be used again. */
  rec.id.data = mem_arena_copy(&arena, old->id.data, old->id.len);
  if (old->metadata.data) rec.metadata.data = mem_arena_copy(&arena, old->metadata.data, old->metadata.len);
  if (!rec.id.data || (old->metadata.data && !rec.metadata.data)) {
    st = err_nomem(err);
    goto done;
  }
  TRY_GOTO(lode__tx_next(tx, &rec.seq, err));
  if (change->set_document) TRY_GOTO(change_document(tx, coll, &rec, change->document, err));
  if (change->set_metadata) TRY_GOTO(change_metadata(tx, coll, &rec, change->metadata, err));
  if (change->vector) {
    if (rec.vid)
      TRY_GOTO(lode__grave_dig_vector(tx, coll, rec.vid, err));
    else
      coll->pending--;
    TRY_GOTO(put_vector(tx, coll, rec.rid, change->vector, change->dim, &rec.vid, err));
  }
  TRY_GOTO(lode__stmt(tx, LODE__STMT_RECORD_SET, &s, err));
  bind_record(s, &rec);
  TRY_GOTO(lode__run(tx, s, err));
done:
  mem_arena_release(&arena);
  return st;
}

/* ---- Deleting ---- */

static lode_status was_pending(lode__tx *tx, int64_t rid, bool *pending, lode_error *err) {
  sqlite3_stmt *s;
  TRY(lode__stmt(tx, LODE__STMT_RECORD_IS_PENDING, &s, err));
  sqlite3_bind_int64(s, 1, rid);
  TRY(lode__step(tx, s, pending, err));
  sqlite3_reset(s);
  return LODE_OK;
}

static lode_status uncount(lode__tx *tx, lode__coll *coll, int64_t rid, lode_error *err) {
  lode__rec rec;
  bool found;
  TRY(lode__rec_read_named(tx, rid, &rec, &found, err));
  if (!found || !rec.metadata.data) return LODE_OK;
  return lode__counters_change(tx, coll->cid, rec.metadata, -1, err);
}

/* The counts without this record. */
static lode_status discount(lode__tx *tx, lode__coll *coll, const lode__name *name, lode_error *err) {
  bool pending;
  coll->records--;
  if (name->len > 0) {
    coll->documents--;
    coll->document_bytes -= (uint64_t)name->len - 1;
  }
  if (coll->pending) {
    TRY(was_pending(tx, name->rid, &pending, err));
    coll->pending -= pending;
  }
  return coll->counted ? uncount(tx, coll, name->rid, err) : LODE_OK;
}

typedef struct deletion {
  lode__tx *tx;
  lode__coll *coll;
  int64_t *rids;
  size_t n, cap;
} deletion;

static lode_status on_name(void *ctx, const lode__name *name, lode_error *err) {
  deletion *d = ctx;
  if (!mem_grow(&d->rids, &d->cap, d->n + 1, sizeof *d->rids)) return err_nomem(err);
  d->rids[d->n++] = name->rid;
  return discount(d->tx, d->coll, name, err);
}

lode_status lode__rec_delete(lode__tx *tx, lode__coll *coll, const lode_str *ids, size_t n, size_t *deleted, lode_error *err) {
  lode_status st;
  lode__coll before = *coll; /* its counts change while names are looked up */
  deletion d = {.tx = tx, .coll = coll};
  *deleted = 0;
  TRY_GOTO(lode__names_each(tx, &before, ids, n, on_name, &d, err));
  if (d.n) qsort(d.rids, d.n, sizeof *d.rids, sort_cmp_i64);
  TRY_GOTO(lode__grave_dig_records(tx, coll, d.rids, d.n, err));
  *deleted = d.n;
done:
  mem_free(d.rids);
  return st;
}
