/* reader.c - read transactions that are renewed before they grow old, and answers of one moment.
 *
 * A read transaction holds up commits, so none lasts much longer than 50 ms: whoever walks over many records calls
 * engine_reader_renew_if_old and goes on from where it stood; whoever reads a snapshot, for which no transaction is
 * needed, calls engine_reader_yield_if_old and begins another one at the end. Each new transaction loads the collection
 * again: a dropped one is LODE_NOT_FOUND.
 *
 * One answer speaks of one moment. So:
 *   - Every answer is made by engine_reader_run. Its first transaction sets the moment; a later one that sees
 *     another fails, whoever began it and for whatever reason, and `overtaken` is set. The failure ends the attempt
 *     like any other, and the answer is made again from the start. There is no way to begin a transaction without
 *     this check.
 *   - Under a writer that never pauses an answer that takes several transactions would never be done. So the last of
 *     READER_ATTEMPTS is patient: it keeps its transaction to the end, and commits wait for it, but for half of busy_ms at
 *     most: then it gives way (LODE_BUSY). The attempts before it end at their first renewal after a commit.
 *   - A walk that puts up with commits (vectors are brought into memory, or scanned without a filter; a long export)
 *     says so by engine_reader_allow_later. What it has found at its end is of the present transaction's moment, and parts
 *     of the answer that were made before it must be of the same: engine_reader_require_same checks that,
 *     engine_reader_adopt_current that there are none.
 */
#include "engine/engine.h"

enum { READER_ATTEMPTS = 4 };

void engine_reader_init(engine_reader *reader, lode_collection *handle) {
  *reader = (engine_reader){.handle = handle};
  mem_arena_init(&reader->arena, 0);
  engine_enter(handle->store);
}

void engine_reader_borrow(engine_reader *reader, lode_collection *handle, store_tx *tx, const store_coll *coll) {
  *reader = (engine_reader){.handle = handle, .tx = tx, .coll = *coll, .borrowed = true, .count = 1};
  mem_arena_init(&reader->arena, 0);
}

lode_status engine_load_coll(lode_collection *handle, store_tx *tx, mem_arena *arena, store_coll *coll, lode_error *err) {
  TRY(store_coll_load(tx, handle->cid, arena, coll, err));
  if (coll->uid == handle->uid) return LODE_OK;
  return err_set(err, LODE_NOT_FOUND, "the collection is gone: the store was replaced by another; open it again");
}

/* ---- Moments ---- */

/* What an index held at `a` it holds now. */
bool engine_moment_is_same(const engine_moment *a, const engine_moment *now) {
  return a->epoch == now->epoch && a->cursor == now->cursor && a->text_cursor <= now->text_cursor &&
         a->term_cursor <= now->term_cursor;
}

static lode_status reader_overtaken(engine_reader *reader, lode_error *err) {
  reader->overtaken = true;
  return err_set(err, LODE_BUSY, "the collection changed while it was being read: try again");
}

/* Compares a transaction that has just begun with those before it. */
static lode_status reader_meet_moment(engine_reader *reader, lode_error *err) {
  unsigned epoch = store_tx_epoch(reader->tx);
  engine_moment now = {epoch, store_tx_cursor(reader->tx), reader->coll.text_cursor, reader->coll.term_cursor};
  bool first = reader->moments == 0, same = !first && engine_moment_is_same(&reader->moment, &now);
  if (first || !same) reader->moments++;
  if (!first && !same && !reader->follows) return reader_overtaken(reader, err);
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
  if (reader->progress.step && !reader->progress.step(reader->progress.ctx, "read", 0, 0))
    return err_set(err, LODE_CANCELLED, "cancelled by the caller");
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

/* A patient reader that was once found to be in the way gives way, even if the writer has stopped waiting meanwhile. */
bool engine_reader_is_old(engine_reader *reader) {
  if (!reader->tx || reader->borrowed) return false;
  if (!reader->pinned) return store_tx_is_old(reader->tx);
  reader->gave_way = reader->gave_way || store_tx_must_yield(reader->tx);
  return reader->gave_way;
}

lode_status engine_reader_yield_if_old(engine_reader *reader, lode_error *err) {
  if (!engine_reader_is_old(reader)) return LODE_OK;
  if (reader->pinned)
    return err_set(err, LODE_BUSY, "the store is written to all the time, and this takes too long to be answered "
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

/* ---- Answers ---- */

/* What was known of the moment is forgotten; a transaction that is still young is gone on with. */
static lode_status reader_begin_attempt(engine_reader *reader, bool again, lode_error *err) {
  if (again || engine_reader_is_old(reader)) engine_reader_pause(reader);
  reader->taken = reader->overtaken = reader->gave_way = false;
  reader->follows = 0;
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
    ENSURE(!(st == LODE_OK && reader->overtaken), err); /* somebody did not hand the failure on */
    if (!reader->overtaken || attempt == READER_ATTEMPTS) return st;
    err_clear(err);
  }
}

engine_moment engine_reader_allow_later(engine_reader *reader) {
  reader->follows++;
  return reader->moment;
}

lode_status engine_reader_require_same(engine_reader *reader, const engine_moment *before, lode_error *err) {
  reader->follows--;
  if (reader->follows || reader->borrowed || engine_moment_is_same(before, &reader->moment)) return LODE_OK;
  return reader_overtaken(reader, err);
}

lode_status engine_reader_adopt_current(engine_reader *reader, lode_error *err) {
  reader->follows--;
  ENSURE(!reader->taken, err);
  return LODE_OK;
}

lode_status engine_reader_document(engine_reader *reader, const store_rec *rec, lode_str *document, lode_error *err) {
  *document = (lode_str){NULL, 0};
  return rec->has_document ? store_rec_document(reader->tx, rec->rid, document, err) : LODE_OK;
}
