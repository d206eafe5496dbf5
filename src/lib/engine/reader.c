/* SPDX-License-Identifier: Apache-2.0 */
/* reader.c - read transactions that are renewed before they grow old, and results of one moment.
 *
 * A read transaction blocks commits, so none lasts much longer than 50 ms: code that visits many records calls
 * engine_reader_renew_if_old() and resumes at its position; code that reads a snapshot, which needs no transaction,
 * calls engine_reader_yield_if_old() and begins a new one at the end. Each new transaction loads the collection again:
 * a dropped one is LODE_NOT_FOUND.
 *
 * A result is of one moment. So:
 *   - Every result is made by engine_reader_run(). Its first transaction sets the moment; a later one that sees
 *     another fails, whoever began it, and `overtaken` is set. The failure ends the attempt like any other, and the
 *     result is made again from scratch. There is no way to begin a transaction without this check.
 *   - Under a writer that never pauses, a result that takes several transactions would never be finished. So the last
 *     of READER_ATTEMPTS is pinned: it keeps its transaction to the end, and commits wait for it, but for at most half
 *     of busy_ms: then it gives way (LODE_BUSY). The attempts before it end at their first renewal after a commit.
 *   - A scan that is correct under commits (loading vectors, scanning them without a filter, a long export) calls
 *     engine_reader_allow_later(). What it has found in the end is of the current transaction's moment, and parts of
 *     the result that were made before must be of the same one: engine_reader_require_same() checks that;
 *     engine_reader_adopt_current() checks that there are none.
 */
#include "engine/reader.h"

enum { READER_ATTEMPTS = 4 };

void engine_reader_init(engine_reader *reader, engine_collection *handle) {
  *reader = (engine_reader){.handle = handle};
  mem_arena_init(&reader->arena, 0);
  engine_enter(handle->store);
}

void engine_reader_borrow(engine_reader *reader, engine_collection *handle, store_tx *tx, const store_coll *coll) {
  *reader = (engine_reader){.handle = handle, .tx = tx, .coll = *coll, .borrowed = true, .count = 1};
  mem_arena_init(&reader->arena, 0);
}

lode_status engine_load_coll(engine_collection *handle, store_tx *tx, mem_arena *arena, store_coll *coll,
                             lode_error *err) {
  lode_status st = store_coll_load(tx, atomic_load(&handle->cid), arena, coll, err);
  if (st == LODE_OK && coll->uid == handle->uid) return LODE_OK;
  if (st != LODE_OK && st != LODE_NOT_FOUND) return st;
  bool taken = st == LODE_OK; /* the number, by another collection */
  st = store_coll_load_uid(tx, handle->uid, arena, coll, err);
  if (st == LODE_OK) atomic_store(&handle->cid, coll->cid);
  if (st != LODE_NOT_FOUND || !taken) return st;
  return err_set(err, LODE_NOT_FOUND, "the collection is gone: the store was replaced by another; open it again");
}

/* ---- Moments ---- */

/* Cursors of indexes may have advanced: what an index held at `a` it still holds. */
bool engine_moment_is_same(const engine_moment *a, const engine_moment *now) {
  return a->epoch == now->epoch && a->cid == now->cid && a->cursor == now->cursor &&
         a->text_cursor <= now->text_cursor && a->term_cursor <= now->term_cursor;
}

static lode_status reader_overtaken(engine_reader *reader, lode_error *err) {
  reader->overtaken = true;
  return err_set(err, LODE_BUSY, "the collection changed while it was being read: try again");
}

/* Compares a transaction that has just begun with those before it. */
static lode_status reader_meet_moment(engine_reader *reader, lode_error *err) {
  unsigned epoch = store_tx_epoch(reader->tx);
  engine_moment now = {epoch, reader->coll.cid, store_tx_cursor(reader->tx), reader->coll.text_cursor,
                       reader->coll.term_cursor};
  bool first = reader->moments == 0, same = !first && engine_moment_is_same(&reader->moment, &now);
  bool succeeded = !first && reader->moment.cid != now.cid; /* nothing read of the other collection holds here */
  if (first || !same) reader->moments++;
  if (!first && !same && (!reader->allow_later || succeeded)) return reader_overtaken(reader, err);
  if (!first && reader->epoch != epoch) {
    reader->overtaken = true;
    return err_set(err, LODE_GONE, "the store was replaced by another while it was being read: try again");
  }
  reader->moment = now;
  reader->epoch = epoch;
  return LODE_OK;
}

/* ---- Transactions ---- */

lode_status engine_reader_begin(engine_reader *reader, lode_error *err) {
  if (reader->tx) return LODE_OK;
  TRY(err_progress(reader->progress, "reading", 0, 0, err));
  TRY(store_tx_begin(reader->handle->store->db, STORE_TX_READ, &reader->tx, err));
  mem_arena_reset(&reader->arena);
  lode_status st = engine_load_coll(reader->handle, reader->tx, &reader->arena, &reader->coll, err);
  if (st == LODE_OK) st = reader_meet_moment(reader, err);
  reader->count++;
  if (st != LODE_OK) {
    store_tx_rollback(reader->tx);
    reader->tx = NULL;
  }
  return st;
}

void engine_reader_pause(engine_reader *reader) {
  if (reader->borrowed || reader->pinned) return;
  store_tx_rollback(reader->tx);
  reader->tx = NULL;
}

/* A pinned reader that once blocked a writer gives way even if the writer has stopped waiting since. */
bool engine_reader_is_old(engine_reader *reader) {
  if (!reader->tx || reader->borrowed) return false;
  if (!reader->pinned) return store_tx_is_old(reader->tx);
  reader->gave_way = reader->gave_way || store_tx_must_yield(reader->tx);
  return reader->gave_way;
}

lode_status engine_reader_yield_if_old(engine_reader *reader, lode_error *err) {
  if (!engine_reader_is_old(reader)) return LODE_OK;
  if (reader->pinned)
    return err_set(err, LODE_BUSY,
                   "the store is written to all the time, and this takes too long to be answered "
                   "between two commits: narrow it, or try again later");
  engine_reader_pause(reader);
  return LODE_OK;
}

lode_status engine_reader_renew_if_old(engine_reader *reader, lode_error *err) {
  TRY(engine_reader_yield_if_old(reader, err));
  return engine_reader_begin(reader, err);
}

void engine_reader_release(engine_reader *reader) {
  reader->pinned = false;
  engine_reader_pause(reader);
  mem_arena_release(&reader->arena);
}

/* ---- Results ---- */

/* Forgets the moment of the last attempt; a transaction that is still young is reused. */
static lode_status reader_begin_attempt(engine_reader *reader, bool again, lode_error *err) {
  if (again || engine_reader_is_old(reader)) engine_reader_pause(reader);
  reader->taken = reader->overtaken = reader->gave_way = false;
  reader->allow_later = 0;
  reader->moments = reader->tx ? 1 : 0;
  return engine_reader_begin(reader, err);
}

lode_status engine_reader_run(engine_reader *reader, engine_reader_fn *make, void *ctx, lode_error *err) {
  if (reader->borrowed) return make(ctx, err);
  for (unsigned attempt = 1;; attempt++) {
    lode_status st = reader_begin_attempt(reader, attempt > 1, err);
    reader->pinned = attempt == READER_ATTEMPTS;
    if (st == LODE_OK) st = make(ctx, err);
    reader->pinned = false;
    /* else a caller ignored the failure */
    STORE_ENSURE(reader->handle->store->db, st != LODE_OK || !reader->overtaken, err);
    if (!reader->overtaken || attempt == READER_ATTEMPTS) return st;
    err_clear(err);
  }
}

engine_moment engine_reader_allow_later(engine_reader *reader) {
  reader->allow_later++;
  return reader->moment;
}

lode_status engine_reader_require_same(engine_reader *reader, const engine_moment *before, lode_error *err) {
  STORE_ENSURE(reader->handle->store->db, reader->allow_later > 0, err);
  reader->allow_later--;
  if (reader->allow_later || reader->borrowed || engine_moment_is_same(before, &reader->moment)) return LODE_OK;
  return reader_overtaken(reader, err);
}

lode_status engine_reader_adopt_current(engine_reader *reader, lode_error *err) {
  STORE_ENSURE(reader->handle->store->db, reader->allow_later > 0 && !reader->taken, err);
  reader->allow_later--;
  return LODE_OK;
}

lode_status engine_reader_document(engine_reader *reader, const store_rec *rec, lode_str *document, lode_error *err) {
  *document = (lode_str){NULL, 0};
  return rec->has_document ? store_rec_document(reader->tx, rec->rid, document, err) : LODE_OK;
}

lode_status engine_result_add(lode_result *result, engine_reader *reader, const store_rec *rec, unsigned include,
                              lode_row **out, lode_error *err) {
  lode_row *row;
  STORE_ENSURE(reader->handle->store->db, reader->tx != NULL, err); /* the record is of that transaction */
  reader->taken = true;
  TRY(iface_result_row(result, &row, err));
  row->cursor = rec->seq;
  row->position = (uint64_t)rec->rid;
  TRY(iface_result_copy(result, rec->id, &row->id, err));
  if (include & LODE_METADATA) TRY(iface_result_copy(result, rec->metadata, &row->metadata, err));
  if ((include & LODE_VECTOR) && rec->vid) {
    void *v;
    TRY(iface_result_alloc(result, (size_t)reader->coll.dim * sizeof(float), &v, err));
    TRY(store_rec_vector(reader->tx, rec->vid, v, reader->coll.dim, err));
    row->vector = v;
    row->dimension = reader->coll.dim;
  }
  if (include & LODE_DOCUMENT) { /* last: it may invalidate the record's strings */
    lode_str document;
    TRY(engine_reader_document(reader, rec, &document, err));
    TRY(iface_result_copy(result, document, &row->document, err));
  }
  iface_result_keep(result);
  *out = row;
  return LODE_OK;
}
