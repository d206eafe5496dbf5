/* reader.c - read transactions that are renewed before they grow old.
 *
 * A read transaction holds up commits, so none lasts much longer than 50 ms: whoever walks over many records calls
 * lode__reader_renew_if_old and goes on from where it stood (keys are in the order of insertion, so nothing is missed
 * and nothing comes twice). Each new transaction loads the collection anew: a dropped one is LODE_NOT_FOUND.
 */
#include "core.h"

void lode__reader_init(lode__reader *reader, lode_collection *handle) {
  *reader = (lode__reader){.handle = handle};
  lode__arena_init(&reader->arena, 0);
  lode__store_enter(handle->store);
}

void lode__reader_borrow(lode__reader *reader, lode_collection *handle, lode__tx *tx, const lode__coll *coll) {
  *reader = (lode__reader){.handle = handle, .tx = tx, .coll = *coll, .borrowed = true, .count = 1};
  lode__arena_init(&reader->arena, 0);
}

lode_status lode__coll_of(lode_collection *handle, lode__tx *tx, lode__arena *arena, lode__coll *coll, lode_error *err) {
  LODE__TRY(lode__coll_load(tx, handle->cid, arena, coll, err));
  if (coll->uid == handle->uid) return LODE_OK;
  return lode__fail(err, LODE_NOT_FOUND, "the collection is gone: the store was replaced by another; open it again");
}

lode_status lode__reader_begin(lode__reader *reader, lode_error *err) {
  if (reader->tx) return LODE_OK;
  if (reader->progress.step && !reader->progress.step(reader->progress.ctx, "read", 0, 0))
    return lode__fail(err, LODE_CANCELLED, "cancelled by the caller");
  LODE__TRY(lode__tx_begin(reader->handle->store->db, LODE__READ, &reader->tx, err));
  lode__arena_reset(&reader->arena);
  lode_status st = lode__coll_of(reader->handle, reader->tx, &reader->arena, &reader->coll, err);
  unsigned epoch = lode__tx_epoch(reader->tx);
  if (st == LODE_OK && reader->count && reader->epoch != epoch)
    st = lode__fail(err, LODE_GONE, "the store was replaced by another while it was being read: try again");
  reader->epoch = epoch;
  reader->count++;
  if (st != LODE_OK) lode__reader_pause(reader);
  return st;
}

void lode__reader_pause(lode__reader *reader) {
  if (reader->borrowed) return;
  lode__tx_rollback(reader->tx);
  reader->tx = NULL;
}

bool lode__reader_is_old(const lode__reader *reader) {
  return reader->tx && !reader->borrowed && !reader->patient && lode__tx_is_old(reader->tx);
}

lode_status lode__reader_renew_if_old(lode__reader *reader, lode_error *err) {
  if (lode__reader_is_old(reader)) lode__reader_pause(reader);
  return lode__reader_begin(reader, err);
}

void lode__reader_release(lode__reader *reader) {
  lode__reader_pause(reader);
  lode__arena_release(&reader->arena);
}

lode_status lode__reader_document(lode__reader *reader, const lode__rec *rec, lode_str *document, lode_error *err) {
  *document = (lode_str){NULL, 0};
  return rec->has_document ? lode__rec_document(reader->tx, rec->rid, document, err) : LODE_OK;
}
