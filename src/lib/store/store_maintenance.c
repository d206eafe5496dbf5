/* SPDX-License-Identifier: Apache-2.0 */
/* store_maintenance.c - maintenance in the background: erasing deleted records, backfilling the indexes, vacuum.
 *
 * Work is done in steps. A step is one write transaction of at most a second, and ends as soon as somebody waits for
 * the lock, so that neither readers nor other writers are held up. A crash costs at most one step. During a bulk
 * load, steps do not end for waiters, and backfill steps are limited by rows, bytes and terms, not by the clock:
 * small steps leave small pieces of an index, which are rewritten again and again until they are large. The order
 * within a collection matters: tombstones are erased first, so that an index never takes in a dead record (invariant
 * 5 of store_write.c).
 *
 * A transaction needs disk space for a journal of the pages that it changes. When the disk is full, erasing, which
 * frees space, comes first in all collections. Its steps are so small that little space is enough; they double after
 * each success, and free pages are returned to the file system between them.
 */
#include "store/metadata_index.h"
#include "store/record_ids.h"
#include "store/text_index.h"
#include "store/tombstones.h"

#include "platform/memory.h"

#define MAINT_STEP_NS UINT64_C(1000000000)
#define MAINT_STEP_TEXT_BYTES (8u << 20)
#define MAINT_STEP_TERMS (1u << 20)
#define MAINT_TERM_BYTES 1024     /* memory budget per term of a step; a term needs about a fifth of this */
#define MAINT_LOAD_ROWS 8192      /* documents, or dead records, that are enough work for a step of a bulk load */
#define MAINT_LOAD_BATCHES 8      /* a step of a bulk load reads at most this many times store_load_batch records */
#define MAINT_VACUUM_PAGES 512    /* free pages returned per step */
#define MAINT_RESET_RATIO 8       /* the text index is reset only if this many records are dead for each live one */
#define MAINT_RESET_MIN_DEAD 2000 /* the text index is reset only if at least this many records are dead */
#define MAINT_ERASE_BATCH 128     /* records erased between two checks of the clock */

/* Records with unindexed metadata that are enough work for a step of a bulk load. */
uint64_t store_load_batch = 100000;

typedef struct maint_step {
  store_tx *tx;
  store_coll coll;
  mem_arena *arena; /* strings of coll */
  uint64_t until_ns;
  unsigned ticks;
  unsigned max_rows; /* the disk is full: erase at most this many records, and do not backfill; 0: no limit */
  bool put_off;      /* only backfill is left to do, which has to wait for disk space */
} maint_step;

/* Cheap enough to call for each row. */
static bool maint_is_over(maint_step *w) {
  if (w->max_rows) return true;
  if (++w->ticks % 16 != 0) return false;
  uint64_t now = os_api->now_ns();
  return now > w->until_ns || (!w->tx->db->opt.bulk_load && store_db_has_waiters(w->tx->db));
}

/* Sums over the store: collections, records, pending, tombstones, untexted, unindexed. */
static lode_status maint_store_sums(store_tx *tx, int64_t out[6], lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  TRY(store_stmt(tx, STORE_STMT_COLL_SUMS, &s, err));
  TRY(store_stmt_step(tx, s, &row, err));
  for (int i = 0; i < 6; i++) out[i] = row ? store_column_int(s, i) : 0;
  store_stmt_reset(s);
  return LODE_OK;
}

/* ---- Erasing ---- */

/* Erases all that belongs to a dead record, indexes first. Its id is kept if with_name is false: the caller erases
 * all ids of the collection. */
static lode_status maint_erase_record(maint_step *w, int64_t rid, bool with_name, store_term_batch *terms,
                                      lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  lode_str text;
  store_tx *tx = w->tx;
  TRY(store_stmt_key(tx, STORE_STMT_RECORD_GET, rid, &s, err));
  TRY(store_stmt_step(tx, s, &row, err));
  if (!row) return LODE_OK;
  int64_t vid = store_column_int(s, 3);
  bool has_document = !store_column_is_null(s, 4);
  lode_str metadata = store_column_str(s, 5);
  if (metadata.data && rid <= w->coll.term_cursor)
    TRY(store_term_batch_add(terms, tx, w->coll.cid, rid, metadata, false, err));
  if (with_name) TRY(store_id_remove(tx, w->coll.cid, store_column_str(s, 1), rid, err));
  store_stmt_reset(s);
  if (has_document) {
    bool indexed = rid <= w->coll.text_cursor;
    if (indexed) TRY(store_rec_document(tx, rid, &text, err));
    if (indexed) TRY(store_text_remove(tx, rid, text, err));
    TRY(store_run_key(tx, STORE_STMT_DOCUMENT_DELETE, rid, err));
  }
  if (vid) TRY(store_dead_add(tx, vid, rid, err));
  if (vid) TRY(store_run_key(tx, STORE_STMT_VECTOR_DELETE, vid, err));
  TRY(store_run_key(tx, STORE_STMT_RECORD_DELETE, rid, err));
  if (rid > w->coll.text_cursor) w->coll.untexted--;
  if (rid > w->coll.term_cursor) w->coll.unindexed--;
  return LODE_OK;
}

/* Dead records and vectors whose tombstones were removed, the oldest first. */
typedef struct maint_dead_batch {
  int64_t rids[MAINT_ERASE_BATCH], vids[MAINT_ERASE_BATCH];
  size_t n_rids, n_vids;
} maint_dead_batch;

static lode_status maint_take_dead(maint_step *w, maint_dead_batch *d, lode_error *err) {
  store_tx *tx = w->tx;
  sqlite3_stmt *s;
  bool row;
  store_tombstone tombstone;
  size_t max = w->max_rows ? w->max_rows : MAINT_ERASE_BATCH;
  *d = (maint_dead_batch){0};
  for (size_t took = 0; took < max;) {
    TRY(store_stmt_range(tx, STORE_STMT_TOMBSTONE_SCAN, store_key_before_first(w->coll.cid),
                         store_key_last(w->coll.cid), &s, err));
    TRY(store_stmt_step(tx, s, &row, err));
    lode_status st = row ? store_tombstone_read(tx, s, &tombstone, err) : LODE_OK;
    store_stmt_reset(s);
    if (!row) {
      w->coll.tombstones = took;
      return LODE_OK;
    }
    TRY(st);
    size_t n = tombstone.vid ? 1 : tombstone.n;
    if (n > max - took) n = max - took;
    if (tombstone.vid) d->vids[d->n_vids++] = tombstone.vid;
    for (size_t i = 0; i < n && !tombstone.vid; i++) d->rids[d->n_rids++] = tombstone.rids[i];
    TRY(store_tombstone_trim(tx, &tombstone, n, err));
    w->coll.low_water = tombstone.vid ? tombstone.gid : tombstone.gid - (int64_t)(tombstone.n - n);
    took += n;
  }
  return LODE_OK;
}

/* Erases in key order: FTS5 starts a new segment whenever a rowid is smaller than the previous one. */
static lode_status maint_erase_dead(maint_step *w, maint_dead_batch *d, lode_error *err) {
  lode_status st = LODE_OK;
  store_term_batch terms = {0};
  if (d->n_rids) qsort(d->rids, d->n_rids, sizeof *d->rids, sort_cmp_i64);
  for (size_t i = 0; i < d->n_rids; i++) TRY_GOTO(maint_erase_record(w, d->rids[i], true, &terms, err));
  for (size_t i = 0; i < d->n_vids; i++) {
    TRY_GOTO(store_dead_add(w->tx, d->vids[i], 0, err));
    TRY_GOTO(store_run_key(w->tx, STORE_STMT_VECTOR_DELETE, d->vids[i], err));
  }
  st = store_term_batch_write(&terms, STORE_STMT_TERM_DELETE, err);
done:
  store_term_batch_release(&terms);
  return st;
}

/* ---- Resetting the text index ---- */

static lode_status maint_count_dead(void *ctx, int64_t gid, int64_t rid, int64_t vid, lode_error *err) {
  int64_t *n = ctx;
  (void)gid;
  (void)vid;
  (void)err;
  *n += rid != 0;
  return LODE_OK;
}

/* Removing documents from the text index takes as long as adding them did. If few records are alive compared to the
 * dead, the whole index is emptied instead and the live records are backfilled, those of all collections: they share
 * one index. */
static lode_status maint_reset_text(maint_step *w, lode_error *err) {
  store_tx *tx = w->tx;
  sqlite3_stmt *s;
  int64_t n[6], cid = 0, dead;
  bool row;
  TRY(maint_store_sums(tx, n, err));
  bool indexed = w->coll.text_cursor > store_key_before_first(w->coll.cid);
  if (!indexed || n[3] < MAINT_RESET_MIN_DEAD || n[3] / MAINT_RESET_RATIO < n[1]) return LODE_OK;
  TRY(store_run(tx, STORE_STMT_TEXT_FORGET, err));
  for (;;) {
    TRY(store_stmt_range(tx, STORE_STMT_COLL_CIDS, cid, INT64_MAX, &s, err));
    TRY(store_stmt_int(tx, s, &cid, &row, err));
    if (!row) break;
    dead = 0;
    TRY(store_tombstone_each(tx, cid, 0, maint_count_dead, &dead, err));
    TRY(store_stmt_key(tx, STORE_STMT_COLL_FORGET, cid, &s, err));
    store_bind_int(tx, s, 2, store_key_before_first(cid));
    store_bind_int(tx, s, 3, dead);
    TRY(store_stmt_run(tx, s, err));
  }
  return store_coll_load(tx, w->coll.cid, w->arena, &w->coll, err);
}

static lode_status maint_erase_tombstones(maint_step *w, lode_error *err) {
  maint_dead_batch d;
  if (!w->max_rows) TRY(maint_reset_text(w, err));
  do {
    TRY(maint_take_dead(w, &d, err));
    TRY(maint_erase_dead(w, &d, err));
    w->coll.tombstones -= d.n_rids + d.n_vids;
    w->ticks |= 15; /* makes maint_is_over() check the clock */
  } while (w->coll.tombstones && !maint_is_over(w));
  return LODE_OK;
}

/* The first key of a table within the dropped collection; 0: none is left. */
static lode_status maint_first_key(store_tx *tx, int which, int64_t cid, int64_t *key, lode_error *err) {
  sqlite3_stmt *s;
  TRY(store_stmt_range(tx, which, store_key_before_first(cid), store_key_last(cid), &s, err));
  return store_stmt_int(tx, s, key, NULL, err);
}

/* Erases some records of a dropped collection; *more: there were any. */
static lode_status maint_erase_dropped_recs(maint_step *w, bool *more, lode_error *err) {
  lode_status st = LODE_OK;
  store_term_batch terms = {0};
  int64_t rid = 0;
  *more = false;
  for (size_t i = 0; i < (w->max_rows ? w->max_rows : MAINT_ERASE_BATCH); i++) {
    TRY_GOTO(maint_first_key(w->tx, STORE_STMT_RECORD_SCAN, w->coll.cid, &rid, err));
    if (!rid) break;
    *more = true;
    TRY_GOTO(maint_erase_record(w, rid, false, &terms, err));
  }
  w->ticks |= 15;
  st = store_term_batch_write(&terms, STORE_STMT_TERM_DELETE, err);
done:
  store_term_batch_release(&terms);
  return st;
}

static lode_status maint_erase_dropped(maint_step *w, lode_error *err) {
  static const struct {
    int scan, erase;
  } tables[] = {
      {STORE_STMT_VECTOR_SCAN, STORE_STMT_VECTOR_DELETE},
      {STORE_STMT_TOMBSTONE_SCAN, STORE_STMT_TOMBSTONE_DELETE},
  };
  int64_t cid = w->coll.cid, key;
  bool more;
  do {
    TRY(maint_erase_dropped_recs(w, &more, err));
    if (more && maint_is_over(w)) return LODE_OK;
  } while (more);
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
    for (;;) {
      TRY(maint_first_key(w->tx, tables[t].scan, cid, &key, err));
      if (!key) break;
      TRY(store_run_key(w->tx, tables[t].erase, key, err));
      if (maint_is_over(w)) return LODE_OK;
    }
  for (;;) {
    TRY(store_ids_erase_some(w->tx, cid, &more, err));
    if (!more) break;
    if (maint_is_over(w)) return LODE_OK;
  }
  TRY(store_run_key(w->tx, STORE_STMT_COUNTER_ERASE, cid, err));
  TRY(store_run_key(w->tx, STORE_STMT_KEY_ERASE, cid, err));
  TRY(store_dead_drop_all(w->tx, cid, err));
  TRY(store_doc_sizes_erase(w->tx, cid, err));
  return store_run_key(w->tx, STORE_STMT_COLL_ERASE, cid, err);
}

/* ---- Backfill of the indexes ---- */

static lode_status maint_backfill_text(maint_step *w, lode_error *err) {
  store_tx *tx = w->tx;
  store_rec rec;
  bool more;
  lode_str text;
  size_t bytes = 0;
  uint64_t rows = 0;
  bool load = tx->db->opt.bulk_load;
  store_doc_sizes sizes = {0};
  TRY(store_rec_scan(tx, w->coll.cid, w->coll.text_cursor, err));
  for (;;) {
    TRY(store_rec_next(tx, &rec, &more, err));
    if (!more) {
      w->coll.untexted = 0;
      break;
    }
    if (rec.has_document) {
      TRY(store_rec_document(tx, rec.rid, &text, err));
      TRY(store_text_add(tx, &sizes, rec.rid, text, err));
      bytes += text.len;
    }
    w->coll.text_cursor = rec.rid;
    w->coll.untexted--;
    if (bytes > MAINT_STEP_TEXT_BYTES || (load ? ++rows >= MAINT_LOAD_BATCHES * store_load_batch : maint_is_over(w)))
      break;
  }
  return store_doc_sizes_flush(tx, &sizes, err);
}

/* Values come in no order: a batch of terms, small or large, changes pages all over the index. So a bulk load writes
 * few large batches: whenever many records wait, and at its end. */
static bool maint_terms_are_due(const maint_step *w) {
  if (!w->tx->db->opt.bulk_load) return w->coll.unindexed > 0;
  return w->coll.unindexed >= store_load_batch || (w->coll.unindexed && !w->coll.untexted);
}

static lode_status maint_backfill_terms(maint_step *w, lode_error *err) {
  store_tx *tx = w->tx;
  store_rec rec;
  bool more, load = tx->db->opt.bulk_load;
  lode_status st;
  store_term_batch batch = {0};
  uint64_t rows = 0, max_terms = tx->db->opt.memory_bytes / MAINT_TERM_BYTES;
  if (max_terms > MAINT_STEP_TERMS) max_terms = MAINT_STEP_TERMS;
  TRY_GOTO(store_rec_scan(tx, w->coll.cid, w->coll.term_cursor, err));
  /* Half of the time is for collecting terms, the rest for writing them. */
  uint64_t until = w->until_ns;
  w->until_ns = until - MAINT_STEP_NS / 2;
  for (;;) {
    TRY_GOTO(store_rec_next(tx, &rec, &more, err));
    if (!more) {
      w->coll.unindexed = 0;
      break;
    }
    if (rec.metadata.data) TRY_GOTO(store_term_batch_add(&batch, tx, w->coll.cid, rec.rid, rec.metadata, true, err));
    w->coll.term_cursor = rec.rid;
    w->coll.unindexed--;
    if (batch.n >= max_terms || (load ? ++rows >= MAINT_LOAD_BATCHES * store_load_batch : maint_is_over(w))) break;
  }
  st = store_term_batch_write(&batch, STORE_STMT_TERM_PUT, err);
done:
  store_term_batch_release(&batch);
  return st;
}

/* ---- Vacuum ---- */

/* A sixteenth of the file may stay free, to be filled by new data. */
static lode_status maint_vacuum_is_due(store_tx *tx, bool *due, lode_error *err) {
  int64_t pages, free_pages;
  TRY(store_get_int(tx, STORE_STMT_PAGE_COUNT, &pages, err));
  TRY(store_get_int(tx, STORE_STMT_FREE_PAGES, &free_pages, err));
  *due = free_pages > 64 && free_pages > pages / 16;
  return LODE_OK;
}

static lode_status maint_vacuum_some(store_tx *tx, unsigned max_pages, lode_error *err) {
  return store_vacuum(tx, max_pages ? max_pages : MAINT_VACUUM_PAGES, err);
}

/* ---- Steps ---- */

/* `which`: STORE_STMT_COLL_NEXT_WORK for all work, or STORE_STMT_COLL_NEXT_DEAD for erasing only. */
static lode_status maint_next_collection(store_tx *tx, int which, int64_t after, int64_t *cid, lode_error *err) {
  sqlite3_stmt *s;
  TRY(store_stmt_key(tx, which, after, &s, err));
  return store_stmt_int(tx, s, cid, NULL, err);
}

static lode_status maint_load_dropped(maint_step *w, int64_t cid, bool *dropped, lode_error *err) {
  sqlite3_stmt *s;
  TRY(store_stmt_key(w->tx, STORE_STMT_COLL_DROPPED, cid, &s, err));
  TRY(store_stmt_step(w->tx, s, dropped, err));
  if (*dropped)
    w->coll = (store_coll){.cid = cid, .text_cursor = store_column_int(s, 0), .term_cursor = store_column_int(s, 1)};
  store_stmt_reset(s);
  return LODE_OK;
}

static lode_status maint_step_collection(maint_step *w, int64_t cid, lode_error *err) {
  bool dropped;
  lode_status st;
  mem_arena arena;
  TRY(maint_load_dropped(w, cid, &dropped, err));
  if (dropped) return maint_erase_dropped(w, err);
  mem_arena_init(&arena, 0);
  w->arena = &arena;
  TRY_GOTO(store_coll_load(w->tx, cid, &arena, &w->coll, err));
  w->put_off = w->max_rows && !w->coll.tombstones;
  if (w->put_off) goto done;
  if (w->coll.tombstones)
    st = maint_erase_tombstones(w, err);
  else if (maint_terms_are_due(w))
    st = maint_backfill_terms(w, err);
  else if (w->coll.untexted)
    st = maint_backfill_text(w, err);
  if (st == LODE_OK) st = store_coll_save(w->tx, &w->coll, err);
done:
  mem_arena_release(&arena);
  return st;
}

static lode_status maint_find_work(store_db *db, int which, bool *found, lode_error *err) {
  store_tx *tx;
  int64_t cid;
  *found = false;
  TRY(store_tx_begin(db, STORE_TX_READ, &tx, err));
  lode_status st = maint_next_collection(tx, which, 0, &cid, err);
  if (st == LODE_OK) *found = cid != 0;
  if (st == LODE_OK && !cid) st = maint_vacuum_is_due(tx, found, err);
  store_tx_rollback(tx);
  return st;
}

/* A step for the first collection after `after` that has work; *cid: this collection, 0 for none. */
static lode_status maint_try_step(store_db *db, int which, int64_t after, int64_t *cid, bool *put_off,
                                  lode_error *err) {
  lode_status st;
  maint_step w = {.max_rows = db->step_rows};
  *cid = 0;
  *put_off = false;
  TRY(store_tx_begin(db, STORE_TX_WRITE, &w.tx, err));
  w.until_ns = os_api->now_ns() + MAINT_STEP_NS;
  TRY_GOTO(maint_next_collection(w.tx, which, after, cid, err));
  if (*cid)
    st = maint_step_collection(&w, *cid, err);
  else if (after == 0)
    st = maint_vacuum_some(w.tx, w.max_rows, err);
done:
  *put_off = w.put_off;
  if (st == LODE_OK && !w.put_off) return store_tx_commit(w.tx, err);
  store_tx_rollback(w.tx);
  return st;
}

/* Frees disk space for the next step. A failure is not reported: the next step finds out how much space there is. */
static void maint_free_some_pages(store_db *db) {
  store_tx *tx;
  if (store_tx_begin(db, STORE_TX_WRITE, &tx, NULL) != LODE_OK) return;
  if (maint_vacuum_some(tx, db->step_rows, NULL) == LODE_OK)
    (void)!store_tx_commit(tx, NULL);
  else
    store_tx_rollback(tx);
}

/* The caller holds the maintenance lock. *put_off: nothing was done, because the disk is full. */
static lode_status maint_do_step(store_db *db, int which, int64_t after, int64_t *cid, bool *put_off, lode_error *err) {
  lode_status st = maint_try_step(db, which, after, cid, put_off, err);
  if (st == LODE_FULL && db->step_rows != 1) {
    db->step_rows = 1;
    maint_free_some_pages(db);
    st = maint_try_step(db, which, after, cid, put_off, err);
    if (*put_off) return err_set(err, LODE_FULL, "no space left for %s; what is to be erased comes first", db->path);
  }
  if (st != LODE_OK || *put_off || !db->step_rows) return st;
  if (*cid) maint_free_some_pages(db);
  if (db->step_rows < MAINT_ERASE_BATCH)
    db->step_rows *= 2;
  else if (!*cid)
    db->step_rows = 0;
  return LODE_OK;
}

/* A collection that is damaged, or needs more disk space than there is, does not hold up those after it. */
static lode_status maint_do_work(store_db *db, int which, lode_error *err) {
  lode_error first = {.status = LODE_OK};
  bool put_off, any = false;
  for (int64_t after = 0, cid;; after = cid) {
    lode_status st = maint_do_step(db, which, after, &cid, &put_off, err);
    any = any || put_off;
    if ((st == LODE_CORRUPT || st == LODE_FULL) && cid) {
      if (first.status == LODE_OK && err) first = *err;
      if (first.status == LODE_OK) first.status = st;
      continue;
    }
    if (st == LODE_OK && put_off) continue;
    if (st != LODE_OK || cid) return st;
    db->step_rows = any ? 0 : db->step_rows; /* nothing is left to erase */
    if (first.status == LODE_OK && !any) return LODE_OK;
    if (first.status == LODE_OK) {
      any = false;
      cid = 0;
      continue;
    }
    if (err) *err = first;
    return first.status;
  }
}

static lode_status maint_lock_and_work(store_db *db, int which, bool *more, lode_error *err) {
  *more = false;
  TRY(maint_find_work(db, which, more, err));
  if (!*more) return LODE_OK;
  TRY(store_lease_take(db, STORE_LEASE_WORK, err));
  lode_status st = maint_do_work(db, which, err);
  store_lease_end(db, STORE_LEASE_WORK);
  os_memory_trim(); /* SQLite has freed the pages of a large transaction one by one */
  return st;
}

lode_status store_maintain_step(store_db *db, bool *more, lode_error *err) {
  return maint_lock_and_work(db, STORE_STMT_COLL_NEXT_WORK, more, err);
}

lode_status store_maintain_erase(store_db *db, bool *more, lode_error *err) {
  return maint_lock_and_work(db, STORE_STMT_COLL_NEXT_DEAD, more, err);
}

lode_status store_maintain_left(store_db *db, uint64_t *left, lode_error *err) {
  store_tx *tx;
  int64_t n[6], cid;
  bool due = false;
  *left = 0;
  TRY(store_tx_begin(db, STORE_TX_READ, &tx, err));
  lode_status st = maint_store_sums(tx, n, err);
  if (st == LODE_OK) *left = (uint64_t)(n[3] + n[4] + n[5]);
  if (st == LODE_OK && *left == 0) st = maint_next_collection(tx, STORE_STMT_COLL_NEXT_WORK, 0, &cid, err);
  if (st == LODE_OK && *left == 0) *left = cid != 0;
  if (st == LODE_OK && *left == 0) st = maint_vacuum_is_due(tx, &due, err);
  if (due) *left = 1;
  store_tx_rollback(tx);
  return st;
}

lode_status store_maintain_fills_step(store_db *db, bool *enough, lode_error *err) {
  store_tx *tx;
  int64_t n[6] = {0};
  TRY(store_tx_begin(db, STORE_TX_READ, &tx, err));
  lode_status st = maint_store_sums(tx, n, err);
  store_tx_rollback(tx);
  *enough = st == LODE_OK && (n[3] >= MAINT_LOAD_ROWS || n[4] >= MAINT_LOAD_ROWS || n[5] >= (int64_t)store_load_batch);
  return st;
}

/* ---- Statistics ---- */

/* A quarantined entry counts whatever its type: a link or a FIFO in the place of a file is quarantined too. */
static void maint_count_files(const char *store, const char *within, lode_stats *stats) {
  os_dir *folder = beneath_list(store, within);
  const char *name;
  char below[300];
  if (!folder) return;
  while ((name = os_dir_next(folder)) != NULL) {
    struct stat sb;
    if (OS_RETRY(os_api->lstat_at(os_dir_fd(folder), name, &sb)) != 0) continue; /* removed meanwhile */
    snprintf(below, sizeof below, "%s%s%s", *within == '.' ? "" : within, *within == '.' ? "" : "/", name);
    stats->quarantined += storefile_is_set_aside(below);
    if (!S_ISREG(sb.st_mode)) continue;
    stats->files++;
    stats->bytes += (uint64_t)sb.st_size;
  }
  os_dir_close(folder);
}

lode_status store_stats(store_tx *tx, lode_stats *stats, lode_error *err) {
  store_db *db = tx->db;
  int64_t n[6], free_pages, page_bytes, committed_ms;
  bool found;
  vfs_file_state vs = {0};
  *stats = (lode_stats){0};
  TRY(maint_store_sums(tx, n, err));
  TRY(store_get_int(tx, STORE_STMT_PAGE_BYTES, &page_bytes, err));
  TRY(store_get_int(tx, STORE_STMT_FREE_PAGES, &free_pages, err));
  TRY(store_state_find(tx, STORE_STATE_COMMITTED, &committed_ms, &found, err));
  (void)sqlite3_file_control(tx->conn->sql, "main", VFS_FCNTL_STATE, &vs);
  *stats = (lode_stats){
      .collections = (uint64_t)n[0],
      .records = (uint64_t)n[1],
      .pending = (uint64_t)n[2],
      .unerased = (uint64_t)n[3],
      .untexted = (uint64_t)n[4],
      .unindexed = (uint64_t)n[5],
      .cursor = tx->cursor,
      .free_bytes = (uint64_t)free_pages * (uint64_t)page_bytes,
      .page_bytes = (uint32_t)page_bytes,
      .format = tx->format_1 ? 1 : STORE_FORMAT,
      .commit_number = vs.commit_number,
      .committed_ms = (uint64_t)committed_ms,
  };
  maint_count_files(db->folder, ".", stats);
  maint_count_files(db->folder, STOREFILE_SEGMENTS_DIR, stats);
  pthread_mutex_lock(&db->mutex);
  stats->damaged_pages = db->damaged_pages;
  pthread_mutex_unlock(&db->mutex);
  return LODE_OK;
}
