/* names.c - from an id to its record.
 *
 * An id has at most one row, in `name` or in `fresh`; both have the same columns. New names go to `fresh`, which is small: ids
 * come in no order, and each would touch another page of a large table, to be journaled and written at every commit. When
 * `fresh` holds more than a certain part of all, the transaction that made it so moves everything to `name`, in order. How
 * many rows `fresh` has is kept in table state.
 *
 * A deletion leaves the name where it is (graves.c): a name leads to a record that is alive, or lies in a grave and is
 * passed over here. It goes when the record is erased, or when its id is used again.
 */
#include "db.h"

int64_t lode__fresh_least = 16384; /* rows that `fresh` may hold, */
#define FRESH_PART 32              /* and as many more as this part of the collection that is written to */

/* ---- How many are fresh ---- */

static lode_status know_fresh(lode__tx *tx, lode_error *err) {
  if (tx->fresh_known) return LODE_OK;
  TRY(lode__state_get(tx, LODE__STATE_FRESH, &tx->fresh, err));
  tx->fresh_saved = tx->fresh;
  tx->fresh_known = true;
  return LODE_OK;
}

lode_status lode__names_save(lode__tx *tx, lode_error *err) {
  if (!tx->fresh_known || tx->fresh == tx->fresh_saved) return LODE_OK;
  TRY(lode__state_put(tx, LODE__STATE_FRESH, tx->fresh, err));
  tx->fresh_saved = tx->fresh;
  return LODE_OK;
}

/* ---- Looking up ---- */

static lode_status outside(lode__tx *tx, lode_error *err) {
  return err_set(err, LODE_CORRUPT, "the name table of %s points outside of its collection", tx->db->path);
}

lode_status lode__rec_find(lode__tx *tx, int64_t cid, lode_str id, int64_t *rid, lode_error *err) {
  sqlite3_stmt *s;
  bool row, alive;
  *rid = 0;
  TRY(lode__stmt(tx, LODE__STMT_NAME_GET, &s, err));
  sqlite3_bind_int64(s, 1, cid);
  lode__bind_blob(s, 2, id);
  TRY(lode__step(tx, s, &row, err));
  int64_t found = row ? sqlite3_column_int64(s, 0) : 0;
  sqlite3_reset(s);
  if (!row) return LODE_OK;
  if (lode__key_cid(found) != cid) return outside(tx, err);
  TRY(lode__rec_alive(tx, found, &alive, err));
  if (alive) *rid = found;
  return LODE_OK;
}

/* One of the two tables. */
static lode_status find_in(lode__tx *tx, int which, int64_t cid, lode__name *names, size_t n, lode_error *err) {
  sqlite3_stmt *s;
  bool row;
  TRY(lode__stmt(tx, which, &s, err));
  sqlite3_bind_int64(s, 1, cid);
  for (;;) {
    TRY(lode__step(tx, s, &row, err));
    if (!row) break;
    int64_t at = sqlite3_column_int64(s, 0), rid = sqlite3_column_int64(s, 1);
    if (at < 0 || (uint64_t)at >= n || lode__key_cid(rid) != cid) {
      sqlite3_reset(s);
      return outside(tx, err);
    }
    names[at] = (lode__name){.rid = rid, .len = sqlite3_column_int64(s, 2)};
  }
  sqlite3_reset(s);
  return LODE_OK;
}

lode_status lode__names_find(lode__tx *tx, int64_t cid, const lode_str *ids, size_t n, lode__name *names, lode_error *err) {
  memset(names, 0, n * sizeof *names);
  if (n == 0) return LODE_OK;
  TRY(know_fresh(tx, err));
  tx->conn->batch = (lode__feed){.ids = ids, .n = n};
  lode_status st = find_in(tx, LODE__STMT_NAMES_FIND, cid, names, n, err);
  if (st == LODE_OK && tx->fresh) st = find_in(tx, LODE__STMT_FRESH_FIND, cid, names, n, err);
  tx->conn->batch = (lode__feed){0};
  for (size_t i = 0; i < n && st == LODE_OK; i++) {
    bool alive = true;
    if (names[i].rid) st = lode__rec_alive(tx, names[i].rid, &alive, err);
    names[i].dead = !alive;
  }
  return st;
}

/* ---- Many at once ---- */

enum { LOOK_UP = 1024 };
#define WALK_PART 8 /* for more ids than this part of the collection a walk through all names is cheaper than looking each up */

static lode_status each_found(lode__tx *tx, int64_t cid, const lode_str *ids, size_t n, lode__name_fn *fn, void *ctx,
                              lode_error *err) {
  lode__name names[LOOK_UP];
  for (size_t at = 0, some; at < n; at += some) {
    some = n - at < LOOK_UP ? n - at : LOOK_UP;
    TRY(lode__names_find(tx, cid, ids + at, some, names, err));
    for (size_t i = 0; i < some; i++) {
      bool repeated = at + i > 0 && str_eq(ids[at + i], ids[at + i - 1]);
      if (names[i].rid && !names[i].dead && !repeated) TRY(fn(ctx, &names[i], err));
    }
  }
  return LODE_OK;
}

/* Goes through one table from the first id on, both sides in order. */
static lode_status each_walked(lode__tx *tx, int which, int64_t cid, const lode_str *ids, size_t n, lode__name_fn *fn, void *ctx,
                               lode_error *err) {
  sqlite3_stmt *s;
  bool row, alive;
  lode_status st;
  TRY(lode__stmt(tx, which, &s, err));
  sqlite3_bind_int64(s, 1, cid);
  lode__bind_blob(s, 2, ids[0]);
  for (size_t i = 0; i < n;) {
    TRY(lode__step(tx, s, &row, err));
    if (!row) break;
    lode_str id = lode__column(s, 0);
    int order = -1;
    while (i < n && (order = str_cmp(ids[i], id)) < 0) i++;
    if (i == n || order != 0) continue;
    lode__name name = {.rid = sqlite3_column_int64(s, 1), .len = sqlite3_column_int64(s, 2)};
    TRY_GOTO(lode__key_cid(name.rid) == cid ? LODE_OK : outside(tx, err));
    TRY_GOTO(lode__rec_alive(tx, name.rid, &alive, err));
    if (alive) TRY_GOTO(fn(ctx, &name, err));
    i++;
  }
  st = LODE_OK;
done:
  sqlite3_reset(s);
  return st;
}

lode_status lode__names_each(lode__tx *tx, const lode__coll *coll, const lode_str *ids, size_t n, lode__name_fn *fn, void *ctx,
                             lode_error *err) {
  if (n == 0) return LODE_OK;
  if (n < LOOK_UP || n < (coll->records + coll->tombstones) / WALK_PART) return each_found(tx, coll->cid, ids, n, fn, ctx, err);
  TRY(know_fresh(tx, err));
  TRY(each_walked(tx, LODE__STMT_NAMES_WALK, coll->cid, ids, n, fn, ctx, err));
  return tx->fresh ? each_walked(tx, LODE__STMT_FRESH_WALK, coll->cid, ids, n, fn, ctx, err) : LODE_OK;
}

/* ---- Changing ---- */

/* Runs the statement for `fresh`, and if that has no such row the one for `name`. */
static lode_status change_one(lode__tx *tx, int in_fresh, int in_name, int64_t cid, lode_str id, int64_t value, bool *was_fresh,
                              lode_error *err) {
  TRY(know_fresh(tx, err));
  *was_fresh = false;
  for (int pass = tx->fresh ? 0 : 1; pass < 2; pass++) {
    sqlite3_stmt *s;
    TRY(lode__stmt(tx, pass ? in_name : in_fresh, &s, err));
    sqlite3_bind_int64(s, 1, cid);
    lode__bind_blob(s, 2, id);
    sqlite3_bind_int64(s, 3, value);
    TRY(lode__run(tx, s, err));
    *was_fresh = pass == 0;
    if (sqlite3_changes(tx->conn->sql)) return LODE_OK;
  }
  *was_fresh = false;
  return LODE_OK;
}

lode_status lode__name_set_len(lode__tx *tx, int64_t cid, lode_str id, int64_t len, lode_error *err) {
  bool was_fresh;
  return change_one(tx, LODE__STMT_FRESH_SET, LODE__STMT_NAME_SET, cid, id, len, &was_fresh, err);
}

lode_status lode__name_remove(lode__tx *tx, int64_t cid, lode_str id, int64_t rid, lode_error *err) {
  bool was_fresh;
  TRY(change_one(tx, LODE__STMT_FRESH_DELETE, LODE__STMT_NAME_DELETE, cid, id, rid, &was_fresh, err));
  tx->fresh -= was_fresh;
  return LODE_OK;
}

lode_status lode__names_erase_some(lode__tx *tx, int64_t cid, bool *more, lode_error *err) {
  static const int statements[2] = {LODE__STMT_FRESH_ERASE, LODE__STMT_NAME_ERASE};
  *more = true;
  TRY(know_fresh(tx, err));
  for (int i = 0; i < 2; i++) {
    sqlite3_stmt *s;
    TRY(lode__stmt(tx, statements[i], &s, err));
    sqlite3_bind_int64(s, 1, cid);
    TRY(lode__run(tx, s, err));
    int gone = sqlite3_changes(tx->conn->sql);
    if (i == 0) tx->fresh -= gone;
    if (gone) return LODE_OK;
  }
  *more = false;
  return LODE_OK;
}

/* ---- Adding ---- */

lode_status lode__names_move(lode__tx *tx, lode_error *err) {
  sqlite3_stmt *s;
  TRY(know_fresh(tx, err));
  TRY(lode__stmt(tx, LODE__STMT_FRESH_MOVE, &s, err));
  TRY(lode__run(tx, s, err));
  TRY(lode__stmt(tx, LODE__STMT_FRESH_CLEAR, &s, err));
  TRY(lode__run(tx, s, err));
  tx->fresh = 0;
  return LODE_OK;
}

lode_status lode__names_add(lode__tx *tx, const lode__coll *coll, const lode__new *rows, const size_t *order, size_t n,
                            lode_error *err) {
  TRY(know_fresh(tx, err));
  TRY(lode__feed_run(tx, LODE__STMT_FRESH_PUT, coll->cid, (lode__feed){.rows = rows, .order = order, .n = n}, err));
  tx->fresh += (int64_t)n;
  return tx->fresh > lode__fresh_least + (int64_t)(coll->records / FRESH_PART) ? lode__names_move(tx, err) : LODE_OK;
}
