/* SPDX-License-Identifier: Apache-2.0 */
/* store_collection.c - the rows of table collection: identity (name, metric, dimension, embedder, user metadata,
 * covered by a CRC) and counts, which every transaction keeps exact, so that count and status read only one row. */
#include "store/metadata_index.h"
#include "store/row_checksums.h"
#include "store/tombstones.h"

/* Columns of table collection, in the order of the schema. */
enum {
  COLL_COL_CID,
  COLL_COL_UID,
  COLL_COL_NAME,
  COLL_COL_METRIC,
  COLL_COL_DIM,
  COLL_COL_METADATA,
  COLL_COL_EMBEDDER,
  COLL_COL_EMBEDDER_DIM,
  COLL_COL_COUNTED,
  COLL_COL_CREATED,
  COLL_COL_RECORDS,
  COLL_COL_PENDING,
  COLL_COL_DOCUMENTS,
  COLL_COL_DOCUMENT_BYTES,
  COLL_COL_TOMBSTONES,
  COLL_COL_TEXT_CURSOR,
  COLL_COL_TERM_CURSOR,
  COLL_COL_UNTEXTED,
  COLL_COL_UNINDEXED,
  COLL_COL_LOW_WATER,
  COLL_COL_CRC,
};

static lode_status coll_copy_str(mem_arena *arena, lode_str *s, lode_error *err) {
  if (!s->data || !arena) return LODE_OK;
  s->data = mem_arena_copy(arena, s->data, s->len);
  return s->data ? LODE_OK : err_nomem(err);
}

/* Without an arena, the strings are valid until the next step of the statement. */
static lode_status coll_from_row(store_tx *tx, sqlite3_stmt *s, mem_arena *arena, store_coll *c, lode_error *err) {
  *c = (store_coll){
      .cid = store_column_int(s, COLL_COL_CID),
      .uid = (uint64_t)store_column_int(s, COLL_COL_UID),
      .counted = (uint32_t)store_column_int(s, COLL_COL_COUNTED),
      .metric = (lode_metric)store_column_int(s, COLL_COL_METRIC),
      .dim = (uint32_t)store_column_int(s, COLL_COL_DIM),
      .embedder_dim = (uint32_t)store_column_int(s, COLL_COL_EMBEDDER_DIM),
      .records = (uint64_t)store_column_int(s, COLL_COL_RECORDS),
      .pending = (uint64_t)store_column_int(s, COLL_COL_PENDING),
      .documents = (uint64_t)store_column_int(s, COLL_COL_DOCUMENTS),
      .document_bytes = (uint64_t)store_column_int(s, COLL_COL_DOCUMENT_BYTES),
      .tombstones = (uint64_t)store_column_int(s, COLL_COL_TOMBSTONES),
      .text_cursor = store_column_int(s, COLL_COL_TEXT_CURSOR),
      .term_cursor = store_column_int(s, COLL_COL_TERM_CURSOR),
      .untexted = (uint64_t)store_column_int(s, COLL_COL_UNTEXTED),
      .unindexed = (uint64_t)store_column_int(s, COLL_COL_UNINDEXED),
      .low_water = store_column_int(s, COLL_COL_LOW_WATER),
      .name = store_column_str(s, COLL_COL_NAME),
      .metadata = store_column_str(s, COLL_COL_METADATA),
      .embedder = store_column_str(s, COLL_COL_EMBEDDER),
  };
  uint32_t crc = (uint32_t)store_column_int(s, COLL_COL_CRC);
  bool sane = crc == store_crc_collection(c) && c->metric <= LODE_IP && c->dim <= LODE_MAX_DIMENSION && c->cid > 0;
  if (sane) {
    TRY(coll_copy_str(arena, &c->name, err));
    TRY(coll_copy_str(arena, &c->metadata, err));
    return coll_copy_str(arena, &c->embedder, err);
  }
  lode_status st =
      err_set(err, LODE_CORRUPT, "the description of collection %lld in %s is damaged; `lode db salvage` can help",
              (long long)c->cid, tx->db->path);
  *c = (store_coll){0};
  return st;
}

lode_status store_coll_find(store_tx *tx, lode_str name, mem_arena *arena, store_coll *coll, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  char quoted[256];
  *coll = (store_coll){0};
  TRY(store_stmt(tx, STORE_STMT_COLL_BY_NAME, &s, err));
  store_bind_text(tx, s, 1, name);
  TRY(store_stmt_step(tx, s, &row, err));
  lode_status st = row ? coll_from_row(tx, s, arena, coll, err)
                       : err_set(err, LODE_NOT_FOUND, "there is no collection %s; `lode db collections` lists them",
                                 str_quote(name, quoted, sizeof quoted));
  store_stmt_reset(s);
  return st;
}

static lode_status coll_load_by(store_tx *tx, int by, int64_t key, mem_arena *arena, store_coll *coll,
                                lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  *coll = (store_coll){0};
  TRY(store_stmt_key(tx, by, key, &s, err));
  TRY(store_stmt_step(tx, s, &row, err));
  lode_status st =
      row ? coll_from_row(tx, s, arena, coll, err) : err_set(err, LODE_NOT_FOUND, "the collection was dropped");
  store_stmt_reset(s);
  return st;
}

lode_status store_coll_load(store_tx *tx, int64_t cid, mem_arena *arena, store_coll *coll, lode_error *err) {
  return coll_load_by(tx, STORE_STMT_COLL_BY_CID, cid, arena, coll, err);
}

lode_status store_coll_load_uid(store_tx *tx, uint64_t uid, mem_arena *arena, store_coll *coll, lode_error *err) {
  return coll_load_by(tx, STORE_STMT_COLL_BY_UID, (int64_t)uid, arena, coll, err);
}

lode_status store_coll_each(store_tx *tx, store_coll_fn *fn, void *ctx, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  store_coll c;
  TRY(store_stmt(tx, STORE_STMT_COLL_EACH, &s, err));
  for (;;) {
    TRY(store_stmt_step(tx, s, &row, err));
    if (!row) break;
    lode_status st = coll_from_row(tx, s, NULL, &c, err);
    if (st == LODE_OK) st = fn(ctx, &c, err);
    if (st != LODE_OK) {
      store_stmt_reset(s);
      return st;
    }
  }
  store_stmt_reset(s);
  return LODE_OK;
}

lode_status store_coll_create(store_tx *tx, const store_coll *wanted, const lode_str *counters, size_t n_counters,
                              mem_arena *arena, store_coll *coll, lode_error *err) {
  sqlite3_stmt *s;
  store_coll c = *wanted;
  int64_t kid;
  *coll = (store_coll){0};
  TRY(store_state_get(tx, STORE_STATE_NEXT_CID, &c.cid, err));
  if (c.cid < 1 || c.cid >= INT64_C(1) << 22)
    return err_set(err, LODE_LIMIT, "the store has used up its 4,194,303 collections: export it into a new one");
  TRY(store_state_put(tx, STORE_STATE_NEXT_CID, c.cid + 1, err));
  c.uid = rand_u64() >> 1;
  c.counted = (uint32_t)n_counters;
  TRY(store_stmt_key(tx, STORE_STMT_COLL_INSERT, c.cid, &s, err));
  store_bind_int(tx, s, 2, (int64_t)c.uid);
  store_bind_text(tx, s, 3, c.name);
  store_bind_int(tx, s, 4, (int)c.metric);
  store_bind_int(tx, s, 5, c.dim);
  store_bind_text(tx, s, 6, c.metadata);
  store_bind_text(tx, s, 7, c.embedder);
  store_bind_int(tx, s, 8, c.embedder_dim);
  store_bind_int(tx, s, 9, c.counted);
  store_bind_int(tx, s, 10, (int64_t)os_wall_ms());
  store_bind_int(tx, s, 11, store_key_before_first(c.cid));
  store_bind_int(tx, s, 12, store_crc_collection(&c));
  TRY(store_stmt_run(tx, s, err));
  for (size_t i = 0; i < n_counters; i++) TRY(store_metakey_id(tx, c.cid, counters[i], true, true, &kid, err));
  return store_coll_load(tx, c.cid, arena, coll, err);
}

static lode_status coll_save_identity(store_tx *tx, const store_coll *c, lode_error *err) {
  sqlite3_stmt *s;
  TRY(store_stmt_key(tx, STORE_STMT_COLL_IDENTITY, c->cid, &s, err));
  store_bind_text(tx, s, 2, c->name);
  store_bind_int(tx, s, 3, (int)c->metric);
  store_bind_int(tx, s, 4, c->dim);
  store_bind_text(tx, s, 5, c->metadata);
  store_bind_text(tx, s, 6, c->embedder);
  store_bind_int(tx, s, 7, c->embedder_dim);
  store_bind_int(tx, s, 8, store_crc_collection(c));
  store_bind_int(tx, s, 9, (int64_t)c->uid);
  return store_stmt_run(tx, s, err);
}

typedef void coll_change_fn(store_coll *c, lode_str text, uint32_t number);

static lode_status coll_change(store_tx *tx, int64_t cid, coll_change_fn *fn, lode_str text, uint32_t number,
                               lode_error *err) {
  mem_arena arena;
  store_coll c;
  mem_arena_init(&arena, 0);
  lode_status st = store_coll_load(tx, cid, &arena, &c, err);
  if (st == LODE_OK) {
    fn(&c, text, number);
    st = coll_save_identity(tx, &c, err);
  }
  mem_arena_release(&arena);
  return st;
}

static void coll_apply_name(store_coll *c, lode_str text, uint32_t number) {
  (void)number;
  c->name = text;
}
static void coll_apply_metadata(store_coll *c, lode_str text, uint32_t number) {
  (void)number;
  c->metadata = text;
}
static void coll_apply_embedder(store_coll *c, lode_str text, uint32_t number) {
  c->embedder = text;
  c->embedder_dim = number;
}

lode_status store_coll_rename(store_tx *tx, int64_t cid, lode_str new_name, lode_error *err) {
  return coll_change(tx, cid, coll_apply_name, new_name, 0, err);
}
lode_status store_coll_set_metadata(store_tx *tx, int64_t cid, lode_str metadata, lode_error *err) {
  return coll_change(tx, cid, coll_apply_metadata, metadata, 0, err);
}
lode_status store_coll_set_embedder(store_tx *tx, int64_t cid, lode_str embedder, uint32_t dim, lode_error *err) {
  return coll_change(tx, cid, coll_apply_embedder, embedder, dim, err);
}

/* A collection without a name does not exist for readers. The checksum is updated, so the row proves that it was
 * dropped. */
lode_status store_coll_drop(store_tx *tx, int64_t cid, lode_error *err) {
  TRY(store_manifest_drop_all(tx, cid, err)); /* builders remove the files later */
  return coll_change(tx, cid, coll_apply_name, (lode_str){NULL, 0}, 0, err);
}

lode_status store_coll_succeed(store_tx *tx, const store_coll *old, const store_coll *successor, lode_error *err) {
  store_coll dropped = *old, heir = *successor;
  TRY(store_manifest_drop_all(tx, old->cid, err));
  dropped.name = (lode_str){NULL, 0};
  dropped.uid = successor->uid;
  heir.name = old->name;
  heir.uid = old->uid;
  TRY(coll_save_identity(tx, &dropped, err));
  return coll_save_identity(tx, &heir, err);
}

lode_status store_coll_save(store_tx *tx, const store_coll *c, lode_error *err) {
  sqlite3_stmt *s;
  store_coll was;
  TRY(store_coll_load(tx, c->cid, NULL, &was, err));
  /* Indexes only move on (a reset loads the collection again), and a dimension is for good. */
  ENSURE(c->uid == was.uid && c->text_cursor >= was.text_cursor && c->term_cursor >= was.term_cursor, err);
  ENSURE(was.dim == 0 || was.dim == c->dim, err);
  if (was.dim != c->dim) TRY(coll_save_identity(tx, c, err));
  TRY(store_stmt_key(tx, STORE_STMT_COLL_COUNTS, c->cid, &s, err));
  store_bind_int(tx, s, 2, (int64_t)c->records);
  store_bind_int(tx, s, 3, (int64_t)c->pending);
  store_bind_int(tx, s, 4, (int64_t)c->documents);
  store_bind_int(tx, s, 5, (int64_t)c->document_bytes);
  store_bind_int(tx, s, 6, (int64_t)c->tombstones);
  store_bind_int(tx, s, 7, c->text_cursor);
  store_bind_int(tx, s, 8, c->term_cursor);
  store_bind_int(tx, s, 9, (int64_t)c->untexted);
  store_bind_int(tx, s, 10, (int64_t)c->unindexed);
  store_bind_int(tx, s, 11, c->low_water);
  return store_stmt_run(tx, s, err);
}
