/* collection.c - the rows of table collection: identity (name, metric, dimension, embedder, user metadata; under a CRC of
 * their own) and counts, which every transaction keeps right, so that count and status read one row. */
#include "db.h"

/* Columns of table collection, in the order of the schema. */
enum {
  C_CID, C_UID, C_NAME, C_METRIC, C_DIM, C_METADATA, C_EMBEDDER, C_EMBEDDER_DIM, C_COUNTED, C_CREATED, C_RECORDS, C_PENDING,
  C_DOCUMENTS, C_DOCUMENT_BYTES, C_GRAVES, C_TEXT_CURSOR, C_TERM_CURSOR, C_UNTEXTED, C_UNINDEXED, C_HORIZON, C_CRC,
};

static lode_status keep(mem_arena *arena, lode_str *s, lode_error *err) {
  if (!s->data || !arena) return LODE_OK;
  s->data = mem_arena_copy(arena, s->data, s->len);
  return s->data ? LODE_OK : err_nomem(err);
}

/* arena NULL: strings are valid until the statement moves. */
static lode_status load(lode__tx *tx, sqlite3_stmt *s, mem_arena *arena, lode__coll *c, lode_error *err) {
  *c = (lode__coll){
      .cid = sqlite3_column_int64(s, C_CID),
      .uid = (uint64_t)sqlite3_column_int64(s, C_UID),
      .counted = (uint32_t)sqlite3_column_int64(s, C_COUNTED),
      .metric = (lode_metric)sqlite3_column_int(s, C_METRIC),
      .dim = (uint32_t)sqlite3_column_int64(s, C_DIM),
      .embedder_dim = (uint32_t)sqlite3_column_int64(s, C_EMBEDDER_DIM),
      .records = (uint64_t)sqlite3_column_int64(s, C_RECORDS),
      .pending = (uint64_t)sqlite3_column_int64(s, C_PENDING),
      .documents = (uint64_t)sqlite3_column_int64(s, C_DOCUMENTS),
      .document_bytes = (uint64_t)sqlite3_column_int64(s, C_DOCUMENT_BYTES),
      .tombstones = (uint64_t)sqlite3_column_int64(s, C_GRAVES),
      .text_cursor = sqlite3_column_int64(s, C_TEXT_CURSOR),
      .term_cursor = sqlite3_column_int64(s, C_TERM_CURSOR),
      .untexted = (uint64_t)sqlite3_column_int64(s, C_UNTEXTED),
      .unindexed = (uint64_t)sqlite3_column_int64(s, C_UNINDEXED),
      .low_water = sqlite3_column_int64(s, C_HORIZON),
      .name = lode__column(s, C_NAME),
      .metadata = lode__column(s, C_METADATA),
      .embedder = lode__column(s, C_EMBEDDER),
  };
  uint32_t crc = (uint32_t)sqlite3_column_int64(s, C_CRC);
  bool sane = crc == lode__crc_collection(c) && c->metric <= LODE_IP && c->dim <= LODE_MAX_DIMENSION && c->cid > 0;
  if (sane) {
    TRY(keep(arena, &c->name, err));
    TRY(keep(arena, &c->metadata, err));
    return keep(arena, &c->embedder, err);
  }
  lode_status st = err_set(err, LODE_CORRUPT, "the description of collection %lld in %s is damaged; `lode db salvage` can help",
                              (long long)c->cid, tx->db->path);
  *c = (lode__coll){0};
  return st;
}

lode_status lode__coll_find(lode__tx *tx, lode_str name, mem_arena *arena, lode__coll *coll, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  char quoted[256];
  *coll = (lode__coll){0};
  TRY(lode__stmt(tx, LODE__STMT_COLL_BY_NAME, &s, err));
  lode__bind_text(s, 1, name);
  TRY(lode__step(tx, s, &row, err));
  lode_status st = row ? load(tx, s, arena, coll, err)
                       : err_set(err, LODE_NOT_FOUND, "there is no collection %s; `lode db collections` lists them",
                                    str_quote(name, quoted, sizeof quoted));
  sqlite3_reset(s);
  return st;
}

lode_status lode__coll_load(lode__tx *tx, int64_t cid, mem_arena *arena, lode__coll *coll, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  *coll = (lode__coll){0};
  TRY(lode__stmt(tx, LODE__STMT_COLL_BY_CID, &s, err));
  sqlite3_bind_int64(s, 1, cid);
  TRY(lode__step(tx, s, &row, err));
  lode_status st = row ? load(tx, s, arena, coll, err)
                       : err_set(err, LODE_NOT_FOUND, "the collection was dropped");
  sqlite3_reset(s);
  return st;
}

lode_status lode__coll_each(lode__tx *tx, lode__coll_fn *fn, void *ctx, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  lode__coll c;
  TRY(lode__stmt(tx, LODE__STMT_COLL_EACH, &s, err));
  for (;;) {
    TRY(lode__step(tx, s, &row, err));
    if (!row) break;
    lode_status st = load(tx, s, NULL, &c, err);
    if (st == LODE_OK) st = fn(ctx, &c, err);
    if (st != LODE_OK) {
      sqlite3_reset(s);
      return st;
    }
  }
  sqlite3_reset(s);
  return LODE_OK;
}

lode_status lode__coll_create(lode__tx *tx, const lode__coll *wanted, const lode_str *counters, size_t n_counters,
                              mem_arena *arena, lode__coll *coll, lode_error *err) {
  sqlite3_stmt *s;
  lode__coll c = *wanted;
  int64_t kid;
  *coll = (lode__coll){0};
  TRY(lode__state_get(tx, LODE__STATE_NEXT_CID, &c.cid, err));
  if (c.cid < 1 || c.cid >= INT64_C(1) << 22)
    return err_set(err, LODE_LIMIT, "the store has used up its 4,194,303 collections: export it into a new one");
  TRY(lode__state_put(tx, LODE__STATE_NEXT_CID, c.cid + 1, err));
  c.uid = rand_u64() >> 1;
  c.counted = (uint32_t)n_counters;
  TRY(lode__stmt(tx, LODE__STMT_COLL_INSERT, &s, err));
  sqlite3_bind_int64(s, 1, c.cid);
  sqlite3_bind_int64(s, 2, (int64_t)c.uid);
  lode__bind_text(s, 3, c.name);
  sqlite3_bind_int(s, 4, (int)c.metric);
  sqlite3_bind_int64(s, 5, c.dim);
  lode__bind_text(s, 6, c.metadata);
  lode__bind_text(s, 7, c.embedder);
  sqlite3_bind_int64(s, 8, c.embedder_dim);
  sqlite3_bind_int64(s, 9, c.counted);
  sqlite3_bind_int64(s, 10, (int64_t)os_wall_ms());
  sqlite3_bind_int64(s, 11, lode__key_first(c.cid));
  sqlite3_bind_int64(s, 12, lode__crc_collection(&c));
  TRY(lode__run(tx, s, err));
  for (size_t i = 0; i < n_counters; i++) TRY(lode__key_id(tx, c.cid, counters[i], true, true, &kid, err));
  return lode__coll_load(tx, c.cid, arena, coll, err);
}

/* Writes name, metric, dimension, metadata and embedder, and their checksum. */
static lode_status save_identity(lode__tx *tx, const lode__coll *c, lode_error *err) {
  sqlite3_stmt *s;
  TRY(lode__stmt(tx, LODE__STMT_COLL_IDENTITY, &s, err));
  sqlite3_bind_int64(s, 1, c->cid);
  lode__bind_text(s, 2, c->name);
  sqlite3_bind_int(s, 3, (int)c->metric);
  sqlite3_bind_int64(s, 4, c->dim);
  lode__bind_text(s, 5, c->metadata);
  lode__bind_text(s, 6, c->embedder);
  sqlite3_bind_int64(s, 7, c->embedder_dim);
  sqlite3_bind_int64(s, 8, lode__crc_collection(c));
  return lode__run(tx, s, err);
}

typedef void change_fn(lode__coll *c, lode_str text, uint32_t number);

static lode_status change(lode__tx *tx, int64_t cid, change_fn *fn, lode_str text, uint32_t number, lode_error *err) {
  mem_arena arena;
  lode__coll c;
  mem_arena_init(&arena, 0);
  lode_status st = lode__coll_load(tx, cid, &arena, &c, err);
  if (st == LODE_OK) {
    fn(&c, text, number);
    st = save_identity(tx, &c, err);
  }
  mem_arena_release(&arena);
  return st;
}

static void set_name(lode__coll *c, lode_str text, uint32_t number) {
  (void)number;
  c->name = text;
}
static void set_metadata(lode__coll *c, lode_str text, uint32_t number) {
  (void)number;
  c->metadata = text;
}
static void set_embedder(lode__coll *c, lode_str text, uint32_t number) {
  c->embedder = text;
  c->embedder_dim = number;
}

lode_status lode__coll_rename(lode__tx *tx, int64_t cid, lode_str new_name, lode_error *err) {
  return change(tx, cid, set_name, new_name, 0, err);
}
lode_status lode__coll_set_metadata(lode__tx *tx, int64_t cid, lode_str metadata, lode_error *err) {
  return change(tx, cid, set_metadata, metadata, 0, err);
}
lode_status lode__coll_set_embedder(lode__tx *tx, int64_t cid, lode_str embedder, uint32_t dim, lode_error *err) {
  return change(tx, cid, set_embedder, embedder, dim, err);
}

/* Without its name it is gone for every reader; the checksum goes along, so that the row proves that it was dropped. */
lode_status lode__coll_drop(lode__tx *tx, int64_t cid, lode_error *err) {
  TRY(lode__seg_drop_all(tx, cid, err)); /* builders remove the files */
  return change(tx, cid, set_name, (lode_str){NULL, 0}, 0, err);
}

lode_status lode__coll_save(lode__tx *tx, const lode__coll *c, lode_error *err) {
  sqlite3_stmt *s;
  lode__coll was;
  TRY(lode__coll_load(tx, c->cid, NULL, &was, err));
  if (was.dim != c->dim) TRY(save_identity(tx, c, err));
  TRY(lode__stmt(tx, LODE__STMT_COLL_COUNTS, &s, err));
  sqlite3_bind_int64(s, 1, c->cid);
  sqlite3_bind_int64(s, 2, (int64_t)c->records);
  sqlite3_bind_int64(s, 3, (int64_t)c->pending);
  sqlite3_bind_int64(s, 4, (int64_t)c->documents);
  sqlite3_bind_int64(s, 5, (int64_t)c->document_bytes);
  sqlite3_bind_int64(s, 6, (int64_t)c->tombstones);
  sqlite3_bind_int64(s, 7, c->text_cursor);
  sqlite3_bind_int64(s, 8, c->term_cursor);
  sqlite3_bind_int64(s, 9, (int64_t)c->untexted);
  sqlite3_bind_int64(s, 10, (int64_t)c->unindexed);
  sqlite3_bind_int64(s, 11, c->low_water);
  return lode__run(tx, s, err);
}
