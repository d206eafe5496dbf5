/* reader.c - read transactions that are renewed before they grow old, and answers of one moment.
 *
 * A read transaction holds up commits, so none lasts much longer than 50 ms: whoever walks over many records calls
 * lode__reader_renew_if_old and goes on from where it stood; whoever reads a snapshot, for which no transaction is
 * needed, calls lode__reader_pause_if_old and begins another one at the end. Each new transaction loads the collection
 * again: a dropped one is LODE_NOT_FOUND.
 *
 * One answer speaks of one moment. So:
 *   - Every answer is made by lode__reader_answer. Its first transaction sets the moment; a later one that sees
 *     another fails, whoever began it and for whatever reason, and `overtaken` is set. The failure ends the attempt
 *     like any other, and the answer is made again from the start. There is no way to begin a transaction without
 *     this check.
 *   - Under a writer that never pauses an answer that takes several transactions would never be done. So the last of
 *     READER_ATTEMPTS is patient: it keeps its transaction to the end, and commits wait for it, but for half of busy_ms at
 *     most: then it gives way (LODE_BUSY). The attempts before it end at their first renewal after a commit.
 *   - A walk that puts up with commits (vectors are brought into memory, or scanned without a filter; a long export)
 *     says so by lode__reader_follow. What it has found at its end is of the present transaction's moment, and parts
 *     of the answer that were made before it must be of the same: lode__reader_rejoin checks that,
 *     lode__reader_settle that there are none.
 */
#include "core.h"

enum { ATTEMPTS = 4 };

void lode__reader_init(lode__reader *reader, lode_collection *handle) {
  *reader = (lode__reader){.handle = handle};
  mem_arena_init(&reader->arena, 0);
  lode__store_enter(handle->store);
}

void lode__reader_borrow(lode__reader *reader, lode_collection *handle, store_tx *tx, const store_coll *coll) {
  *reader = (lode__reader){.handle = handle, .tx = tx, .coll = *coll, .borrowed = true, .count = 1};
  mem_arena_init(&reader->arena, 0);
}

lode_status lode__coll_of(lode_collection *handle, store_tx *tx, mem_arena *arena, store_coll *coll, lode_error *err) {
  TRY(store_coll_load(tx, handle->cid, arena, coll, err));
  if (coll->uid == handle->uid) return LODE_OK;
  return err_set(err, LODE_NOT_FOUND, "the collection is gone: the store was replaced by another; open it again");
}

/* ---- Moments ---- */

/* What an index held at `a` it holds now. */
bool lode__moment_same(const lode__moment *a, const lode__moment *now) {
  return a->epoch == now->epoch && a->cursor == now->cursor && a->text_cursor <= now->text_cursor &&
         a->term_cursor <= now->term_cursor;
}

static lode_status overtaken(lode__reader *reader, lode_error *err) {
  reader->overtaken = true;
  return err_set(err, LODE_BUSY, "the collection changed while it was being read: try again");
}

/* Compares a transaction that has just begun with those before it. */
static lode_status meet_moment(lode__reader *reader, lode_error *err) {
  unsigned epoch = store_tx_epoch(reader->tx);
  lode__moment now = {epoch, store_tx_cursor(reader->tx), reader->coll.text_cursor, reader->coll.term_cursor};
  bool first = reader->moments == 0, same = !first && lode__moment_same(&reader->moment, &now);
  if (first || !same) reader->moments++;
  if (!first && !same && !reader->follows) return overtaken(reader, err);
  if (!first && reader->epoch != epoch) {
    reader->overtaken = true;
    return err_set(err, LODE_GONE, "the store was replaced by another while it was being read: try again");
  }
  reader->moment = now;
  reader->epoch = epoch;
  return LODE_OK;
}

/* ---- Transactions ---- */

lode_status lode__reader_begin(lode__reader *reader, lode_error *err) {
  if (reader->tx) return LODE_OK;
  if (reader->progress.step && !reader->progress.step(reader->progress.ctx, "read", 0, 0))
    return err_set(err, LODE_CANCELLED, "cancelled by the caller");
  TRY(store_tx_begin(reader->handle->store->db, STORE_TX_READ, &reader->tx, err));
  mem_arena_reset(&reader->arena);
  lode_status st = lode__coll_of(reader->handle, reader->tx, &reader->arena, &reader->coll, err);
  if (st == LODE_OK) st = meet_moment(reader, err);
  reader->count++;
  if (st != LODE_OK) {
    store_tx_rollback(reader->tx);
    reader->tx = NULL;
  }
  return st;
}

void lode__reader_pause(lode__reader *reader) {
  if (reader->borrowed || reader->pinned) return;
  store_tx_rollback(reader->tx);
  reader->tx = NULL;
}

/* A patient reader that was once found to be in the way gives way, even if the writer has stopped waiting meanwhile. */
bool lode__reader_is_old(lode__reader *reader) {
  if (!reader->tx || reader->borrowed) return false;
  if (!reader->pinned) return store_tx_is_old(reader->tx);
  reader->gave_way = reader->gave_way || store_tx_must_yield(reader->tx);
  return reader->gave_way;
}

lode_status lode__reader_pause_if_old(lode__reader *reader, lode_error *err) {
  if (!lode__reader_is_old(reader)) return LODE_OK;
  if (reader->pinned)
    return err_set(err, LODE_BUSY, "the store is written to all the time, and this takes too long to be answered "
                                      "between two commits: narrow it, or try again later");
  lode__reader_pause(reader);
  return LODE_OK;
}

lode_status lode__reader_renew_if_old(lode__reader *reader, lode_error *err) {
  TRY(lode__reader_pause_if_old(reader, err));
  return lode__reader_begin(reader, err);
}

void lode__reader_release(lode__reader *reader) {
  reader->pinned = false;
  lode__reader_pause(reader);
  mem_arena_release(&reader->arena);
}

/* ---- Answers ---- */

/* What was known of the moment is forgotten; a transaction that is still young is gone on with. */
static lode_status begin_attempt(lode__reader *reader, bool again, lode_error *err) {
  if (again || lode__reader_is_old(reader)) lode__reader_pause(reader);
  reader->taken = reader->overtaken = reader->gave_way = false;
  reader->follows = 0;
  reader->moments = reader->tx ? 1 : 0;
  return lode__reader_begin(reader, err);
}

lode_status lode__reader_answer(lode__reader *reader, lode__answer_fn *make, void *ctx, lode_error *err) {
  if (reader->borrowed) return make(ctx, err);
  for (unsigned attempt = 1;; attempt++) {
    lode_status st = begin_attempt(reader, attempt > 1, err);
    reader->pinned = attempt == ATTEMPTS;
    if (st == LODE_OK) st = make(ctx, err);
    reader->pinned = false;
    ENSURE(!(st == LODE_OK && reader->overtaken), err); /* somebody did not hand the failure on */
    if (!reader->overtaken || attempt == ATTEMPTS) return st;
    err_clear(err);
  }
}

lode__moment lode__reader_follow(lode__reader *reader) {
  reader->follows++;
  return reader->moment;
}

lode_status lode__reader_rejoin(lode__reader *reader, const lode__moment *before, lode_error *err) {
  reader->follows--;
  if (reader->follows || reader->borrowed || lode__moment_same(before, &reader->moment)) return LODE_OK;
  return overtaken(reader, err);
}

lode_status lode__reader_settle(lode__reader *reader, lode_error *err) {
  reader->follows--;
  ENSURE(!reader->taken, err);
  return LODE_OK;
}

lode_status lode__reader_document(lode__reader *reader, const store_rec *rec, lode_str *document, lode_error *err) {
  *document = (lode_str){NULL, 0};
  return rec->has_document ? store_rec_document(reader->tx, rec->rid, document, err) : LODE_OK;
}
