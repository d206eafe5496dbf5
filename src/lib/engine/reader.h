/* SPDX-License-Identifier: Apache-2.0 */
/* reader.h - reading a collection in short transactions, and results of one moment: reader.c has the rules. */
#ifndef LODE_ENGINE_READER_H
#define LODE_ENGINE_READER_H

#include "engine/engine.h"

/* The state after one commit. Two transactions of the same moment see the same records. */
typedef struct engine_moment {
  unsigned epoch;                   /* which database file */
  int64_t cid;                      /* of the collection: another one may have succeeded it */
  uint64_t cursor;                  /* of the newest commit */
  int64_t text_cursor, term_cursor; /* may advance within a moment; a rebuilt index is another moment */
} engine_moment;

/* A renewable read transaction on one collection. A borrowed one (a write's) or a pinned one is never renewed. */
typedef struct engine_reader {
  engine_collection *handle;
  store_tx *tx;    /* NULL between transactions */
  store_coll coll; /* as this transaction sees it */
  mem_arena arena; /* its strings */
  bool borrowed, pinned;
  uint64_t count;         /* transactions so far */
  unsigned epoch;         /* of all of them */
  engine_moment moment;   /* what all transactions since engine_reader_run() must see */
  uint64_t moments;       /* different ones seen since then: more than 1 only with allow_later */
  unsigned allow_later;   /* nesting of engine_reader_allow_later(); > 0: later moments are accepted */
  bool taken;             /* part of the result exists: it is bound to the moment */
  bool overtaken;         /* another moment was seen: the result is void */
  bool gave_way;          /* the pinned attempt took too long: LODE_BUSY */
  lode_progress progress; /* called before each transaction; false: LODE_CANCELLED */
} engine_reader;

/* The collection of a handle in a transaction, or the one that has succeeded it: LODE_NOT_FOUND when it was dropped. */
LODE_MUST lode_status engine_load_coll(engine_collection *handle, store_tx *tx, mem_arena *arena, store_coll *coll,
                                       lode_error *err);
void engine_reader_init(engine_reader *reader, engine_collection *handle);
void engine_reader_borrow(engine_reader *reader, engine_collection *handle, store_tx *tx, const store_coll *coll);
/* Does nothing when a transaction is open. */
LODE_MUST lode_status engine_reader_begin(engine_reader *reader, lode_error *err);
void engine_reader_pause(engine_reader *reader); /* ends the transaction, unless borrowed or pinned */
/* Is it time to renew? Of a pinned reader: have writers waited too long, so that renewing fails? */
bool engine_reader_is_old(engine_reader *reader);
/* Ends an old transaction. A pinned reader that blocks a writer fails instead: LODE_BUSY, and `gave_way` is set. */
LODE_MUST lode_status engine_reader_yield_if_old(engine_reader *reader, lode_error *err);
/* Fails, like engine_reader_begin(), when the new transaction sees another moment; engine_reader_run() then retries. */
LODE_MUST lode_status engine_reader_renew_if_old(engine_reader *reader, lode_error *err);
void engine_reader_release(engine_reader *reader);

/* Makes a result of one moment: calls `make`, which starts from scratch each time, until no commit has come in between.
 * The last attempt keeps its transaction to the end. */
typedef lode_status engine_reader_fn(void *ctx, lode_error *err);
LODE_MUST lode_status engine_reader_run(engine_reader *reader, engine_reader_fn *make, void *ctx, lode_error *err);

/* From here on, transactions may see later moments. For scans that are provably correct under concurrent commits. */
engine_moment engine_reader_allow_later(engine_reader *reader);
/* Ends that when parts of the result were made before: fails like a renewal if the moment is not `before`. */
LODE_MUST lode_status engine_reader_require_same(engine_reader *reader, const engine_moment *before, lode_error *err);
/* Ends that when no part of the result was made before: the result is of the current transaction's moment. */
LODE_MUST lode_status engine_reader_adopt_current(engine_reader *reader, lode_error *err);
bool engine_moment_is_same(const engine_moment *a, const engine_moment *now);

/* A record's document, absent if it has none. Valid until the next call. */
LODE_MUST lode_status engine_reader_document(engine_reader *reader, const store_rec *rec, lode_str *document,
                                             lode_error *err);

/* Appends a copy of the record's parts. */
LODE_MUST lode_status engine_result_add(lode_result *result, engine_reader *reader, const store_rec *rec,
                                        unsigned include, lode_row **row, lode_error *err);

#endif
