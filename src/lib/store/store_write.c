/* SPDX-License-Identifier: Apache-2.0 */
/* store_write.c - inserting, changing and deleting records within a write transaction.
 *
 * Invariants (checked by verify_rows.c and verify_sums.c)
 *   1. every live record has an id row, and every id row points to a record with that id, alive or with a tombstone;
 *   2. record.vid is 0 or the key of a vector whose rid is the record's;
 *   3. record.doc is the CRC of the document with that rid, or NULL and there is none;
 *   4. collection.records, pending, documents, document_bytes, graves, untexted and unindexed are what a recount gives;
 *   5. the text index holds the documents, and the metadata index the values, of all records (those with tombstones
 *      included) up to the cursors, and nothing past them.
 * A deletion touches no document, vector or id row: it adds a tombstone. store_maintenance.c erases.
 */
#include "store/metadata_index.h"
#include "store/record_ids.h"
#include "store/row_checksums.h"
#include "store/text_index.h"
#include "store/tombstones.h"

static lode_status write_put_vector(store_tx *tx, store_coll *coll, int64_t rid, const float *v, uint32_t dim,
                                    int64_t *vid, lode_error *err) {
  sqlite3_stmt *s;
  uint64_t seq;
  size_t bytes = (size_t)dim * sizeof *v;
  TRY(store_tx_next_seq(tx, &seq, err));
  *vid = store_key_make(coll->cid, seq);
  TRY(store_stmt_key(tx, STORE_STMT_VECTOR_PUT, *vid, &s, err));
  store_bind_int(tx, s, 2, rid);
  store_bind_blob(tx, s, 3, (lode_str){(const char *)v, bytes});
  store_bind_int(tx, s, 4, store_crc_vector(*vid, rid, v, bytes));
  TRY(store_stmt_run(tx, s, err));
  if (coll->dim == 0) coll->dim = dim;
  return LODE_OK;
}

static lode_status write_put_document(store_tx *tx, int which, int64_t rid, lode_str text, uint32_t crc,
                                      lode_error *err) {
  sqlite3_stmt *s;
  TRY(store_stmt_key(tx, which, rid, &s, err));
  store_bind_text(tx, s, 2, text);
  store_bind_int(tx, s, 3, crc);
  return store_stmt_run(tx, s, err);
}

static void write_bind_record(store_tx *tx, sqlite3_stmt *s, const store_rec *rec) {
  store_bind_int(tx, s, 1, rec->rid);
  store_bind_blob(tx, s, 2, rec->id);
  store_bind_int(tx, s, 3, (int64_t)rec->seq);
  store_bind_int(tx, s, 4, rec->vid);
  if (rec->has_document)
    store_bind_int(tx, s, 5, rec->doc_crc);
  else
    store_bind_null(tx, s, 5);
  store_bind_text(tx, s, 6, rec->metadata);
  store_bind_int(tx, s, 7, store_crc_record(rec));
}

/* Column len of an id row: bytes of the document + 1, or 0 for none. A deletion needs it, and so reads no document. */
static int64_t write_id_len(lode_str document) { return document.data ? (int64_t)document.len + 1 : 0; }

/* ---- Inserting ---- */

/* Assigns keys and checksums, and updates the counts. */
static lode_status write_make_row(store_tx *tx, store_coll *coll, const store_change *c, store_new_rec *row,
                                  lode_error *err) {
  uint64_t seq;
  *row = (store_new_rec){.rec = {.id = c->id, .metadata = c->metadata, .has_document = c->document.data != NULL},
                         .document = c->document};
  store_rec *rec = &row->rec;
  TRY(store_tx_next_seq(tx, &rec->seq, err));
  rec->rid = store_key_make(coll->cid, rec->seq);
  if (rec->has_document) {
    rec->doc_crc = store_crc_document(rec->rid, c->document);
    coll->documents++;
    coll->document_bytes += c->document.len;
  }
  if (c->vector) {
    TRY(store_tx_next_seq(tx, &seq, err));
    rec->vid = store_key_make(coll->cid, seq);
    row->vector = (lode_str){(const char *)c->vector, (size_t)c->dim * sizeof *c->vector};
    row->vector_crc = store_crc_vector(rec->vid, rec->rid, row->vector.data, row->vector.len);
    if (coll->dim == 0) coll->dim = c->dim;
  } else {
    coll->pending++;
  }
  row->crc = store_crc_record(rec);
  coll->records++;
  coll->untexted++;
  coll->unindexed++;
  return LODE_OK;
}

static lode_status write_insert_rows(store_tx *tx, const store_coll *coll, const store_new_rec *rows,
                                     const size_t *order, size_t n, lode_error *err) {
  for (size_t i = 0; i < n; i++) { /* appended in the order of keys, so that pages are filled one after the other */
    ENSURE(store_key_cid(rows[i].rec.rid) == coll->cid, err);
    ENSURE(i == 0 || rows[i].rec.rid > rows[i - 1].rec.rid, err);
  }
  TRY(store_ids_add(tx, coll, rows, order, n, err));
  TRY(store_batch_run(tx, STORE_STMT_DOCUMENTS_PUT, 0,
                      (store_batch){.rows = rows, .n = n, .part = STORE_BATCH_DOCUMENTS}, err));
  TRY(store_batch_run(tx, STORE_STMT_VECTORS_PUT, 0, (store_batch){.rows = rows, .n = n, .part = STORE_BATCH_VECTORS},
                      err));
  return store_batch_run(tx, STORE_STMT_RECORDS_PUT, 0, (store_batch){.rows = rows, .n = n}, err);
}

lode_status store_rec_insert(store_tx *tx, store_coll *coll, const store_change *changes, size_t n, lode_error *err) {
  lode_status st = LODE_OK;
  if (n == 0) return LODE_OK;
  store_new_rec *rows = mem_calloc(n, sizeof *rows);
  size_t *order = mem_calloc(n, sizeof *order);
  if (!rows || !order) {
    st = err_nomem(err);
    goto done;
  }
  for (size_t i = 0; i < n; i++) {
    TRY_GOTO(write_make_row(tx, coll, &changes[i], &rows[i], err));
    if (changes[i].dead_rid) TRY_GOTO(store_id_remove(tx, coll->cid, changes[i].id, changes[i].dead_rid, err));
  }
  TRY_GOTO(sort_strings(&rows->rec.id, sizeof *rows, n, order, err));
  TRY_GOTO(write_insert_rows(tx, coll, rows, order, n, err));
  for (size_t i = 0; i < n && coll->counted; i++)
    if (rows[i].rec.metadata.data) TRY_GOTO(store_counters_change(tx, coll->cid, rows[i].rec.metadata, +1, err));
done:
  mem_free(rows);
  mem_free(order);
  return st;
}

/* ---- Changing ---- */

static lode_status write_change_document(store_tx *tx, store_coll *coll, store_rec *rec, lode_str text,
                                         lode_error *err) {
  bool indexed = rec->rid <= coll->text_cursor, had = rec->has_document;
  if (had) {
    lode_str old;
    TRY(store_rec_document(tx, rec->rid, &old, err));
    coll->documents--;
    coll->document_bytes -= old.len;
    if (indexed) TRY(store_text_remove(tx, rec->rid, old, err));
  }
  TRY(store_id_set_len(tx, coll->cid, rec->id, write_id_len(text), err));
  rec->has_document = text.data != NULL;
  rec->doc_crc = text.data ? store_crc_document(rec->rid, text) : 0;
  if (!text.data) {
    return had ? store_run_key(tx, STORE_STMT_DOCUMENT_DELETE, rec->rid, err) : LODE_OK;
  }
  coll->documents++;
  coll->document_bytes += text.len;
  TRY(write_put_document(tx, had ? STORE_STMT_DOCUMENT_SET : STORE_STMT_DOCUMENT_PUT, rec->rid, text, rec->doc_crc,
                         err));
  if (!indexed) return LODE_OK;
  store_doc_sizes sizes = {0};
  TRY(store_text_add(tx, &sizes, rec->rid, text, err));
  return store_doc_sizes_flush(tx, &sizes, err);
}

static lode_status write_change_metadata(store_tx *tx, store_coll *coll, store_rec *rec, lode_str metadata,
                                         lode_error *err) {
  if (rec->rid <= coll->term_cursor) {
    if (rec->metadata.data) TRY(store_terms_remove(tx, coll->cid, rec->rid, rec->metadata, err));
    if (metadata.data) TRY(store_terms_add(tx, coll->cid, rec->rid, metadata, err));
  }
  if (coll->counted) {
    if (rec->metadata.data) TRY(store_counters_change(tx, coll->cid, rec->metadata, -1, err));
    if (metadata.data) TRY(store_counters_change(tx, coll->cid, metadata, +1, err));
  }
  rec->metadata = metadata;
  return LODE_OK;
}

lode_status store_rec_update(store_tx *tx, store_coll *coll, const store_rec *old, const store_change *change,
                             lode_error *err) {
  sqlite3_stmt *s;
  lode_status st;
  store_rec rec = *old;
  mem_arena arena;
  mem_arena_init(&arena, 0);
  /* The old strings belong to a statement that will be used again here. */
  rec.id.data = mem_arena_copy(&arena, old->id.data, old->id.len);
  if (old->metadata.data) rec.metadata.data = mem_arena_copy(&arena, old->metadata.data, old->metadata.len);
  if (!rec.id.data || (old->metadata.data && !rec.metadata.data)) {
    st = err_nomem(err);
    goto done;
  }
  TRY_GOTO(store_tx_next_seq(tx, &rec.seq, err));
  if (change->set_document) TRY_GOTO(write_change_document(tx, coll, &rec, change->document, err));
  if (change->set_metadata) TRY_GOTO(write_change_metadata(tx, coll, &rec, change->metadata, err));
  if (change->vector) {
    if (rec.vid)
      TRY_GOTO(store_tombstone_add_vector(tx, coll, rec.vid, err));
    else
      coll->pending--;
    TRY_GOTO(write_put_vector(tx, coll, rec.rid, change->vector, change->dim, &rec.vid, err));
  }
  TRY_GOTO(store_stmt(tx, STORE_STMT_RECORD_SET, &s, err));
  write_bind_record(tx, s, &rec);
  TRY_GOTO(store_stmt_run(tx, s, err));
done:
  mem_arena_release(&arena);
  return st;
}

/* ---- Deleting ---- */

static lode_status write_was_pending(store_tx *tx, int64_t rid, bool *pending, lode_error *err) {
  sqlite3_stmt *s;
  TRY(store_stmt_key(tx, STORE_STMT_RECORD_IS_PENDING, rid, &s, err));
  TRY(store_stmt_step(tx, s, pending, err));
  store_stmt_reset(s);
  return LODE_OK;
}

static lode_status write_uncount_metadata(store_tx *tx, store_coll *coll, int64_t rid, lode_error *err) {
  store_rec rec;
  bool found;
  TRY(store_rec_read_live(tx, rid, &rec, &found, err));
  if (!found || !rec.metadata.data) return LODE_OK;
  return store_counters_change(tx, coll->cid, rec.metadata, -1, err);
}

static lode_status write_uncount_record(store_tx *tx, store_coll *coll, const store_id_entry *entry, lode_error *err) {
  bool pending;
  coll->records--;
  if (entry->len > 0) {
    coll->documents--;
    coll->document_bytes -= (uint64_t)entry->len - 1;
  }
  if (coll->pending) {
    TRY(write_was_pending(tx, entry->rid, &pending, err));
    coll->pending -= pending;
  }
  return coll->counted ? write_uncount_metadata(tx, coll, entry->rid, err) : LODE_OK;
}

typedef struct write_deletion {
  store_tx *tx;
  store_coll *coll;
  int64_t *rids;
  size_t n, cap;
} write_deletion;

static lode_status write_delete_id(void *ctx, const store_id_entry *entry, lode_error *err) {
  write_deletion *d = ctx;
  if (!mem_grow(&d->rids, &d->cap, d->n + 1, sizeof *d->rids)) return err_nomem(err);
  d->rids[d->n++] = entry->rid;
  return write_uncount_record(d->tx, d->coll, entry, err);
}

lode_status store_rec_delete(store_tx *tx, store_coll *coll, const lode_str *ids, size_t n, size_t *deleted,
                             lode_error *err) {
  lode_status st;
  store_coll before = *coll; /* the counts of coll change while ids are looked up */
  write_deletion d = {.tx = tx, .coll = coll};
  *deleted = 0;
  TRY_GOTO(store_ids_each(tx, &before, ids, n, write_delete_id, &d, err));
  if (d.n) qsort(d.rids, d.n, sizeof *d.rids, sort_cmp_i64);
  for (size_t i = 1; i < d.n; i++)
    if (d.rids[i] == d.rids[i - 1]) {
      st = err_set(err, LODE_CORRUPT, "two ids lead to record %lld in %s; run `lode db verify`, then `lode db salvage`",
                   (long long)d.rids[i], tx->db->path);
      goto done;
    }
  TRY_GOTO(store_tombstone_add_records(tx, coll, d.rids, d.n, err));
  *deleted = d.n;
done:
  mem_free(d.rids);
  return st;
}
