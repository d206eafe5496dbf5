/* SPDX-License-Identifier: Apache-2.0 */
/* test_statements.c - a parameter that could not be set is an error of the next step, and of the transaction. */
#include "store/tx.h"
#include "support/test.h"

#include <stdio.h>

static lode_error err;
static store_db *db;

static store_tx *begin(store_tx_kind kind) {
  store_tx *tx;
  OK(store_tx_begin(db, kind, &tx, &err));
  return tx;
}

static void open_new(void) {
  char folder[400];
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  OK(store_db_open(folder, &(lode_open_options){.create = true}, &db, &err));
}

static int64_t next_cid(void) {
  store_tx *tx = begin(STORE_TX_READ);
  int64_t value;
  OK(store_state_get(tx, STORE_STATE_NEXT_CID, &value, &err));
  store_tx_rollback(tx);
  return value;
}

TEST(a_failed_bind_fails_the_step_and_the_commit) {
  sqlite3_stmt *s;
  bool row;
  open_new();
  int64_t before = next_cid();
  store_tx *tx = begin(STORE_TX_WRITE);
  OK(store_state_put(tx, STORE_STATE_NEXT_CID, before + 1, &err));
  OK(store_stmt_key(tx, STORE_STMT_STATE_PUT, STORE_STATE_NEXT_CID, &s, &err));
  store_bind_int(tx, s, 3, 1); /* there are two parameters */
  store_bind_int(tx, s, 2, 1); /* that this one can be set does not help */
  CHECK(store_stmt_step(tx, s, &row, &err) == LODE_INTERNAL && !row);
  CHECK(store_tx_commit(tx, &err) == LODE_INTERNAL);
  CHECK(next_cid() == before);
  store_db_close(db);
}

TEST(a_bind_to_a_statement_with_a_row_is_refused) {
  sqlite3_stmt *s;
  bool row;
  open_new();
  store_tx *tx = begin(STORE_TX_READ);
  OK(store_stmt_key(tx, STORE_STMT_STATE_GET, STORE_STATE_UID, &s, &err));
  OK(store_stmt_step(tx, s, &row, &err));
  CHECK(row);
  store_bind_int(tx, s, 1, STORE_STATE_CREATED); /* SQLite takes no parameters between two rows */
  CHECK(store_stmt_step(tx, s, &row, &err) != LODE_OK);
  store_tx_rollback(tx);
  store_db_close(db);
}

TEST(a_failed_bind_ends_with_its_savepoint) {
  sqlite3_stmt *s;
  open_new();
  int64_t before = next_cid();
  store_tx *tx = begin(STORE_TX_WRITE);
  OK(store_tx_savepoint(tx, &err));
  OK(store_stmt(tx, STORE_STMT_STATE_PUT, &s, &err));
  store_bind_text(tx, s, 7, (lode_str){"x", 1});
  CHECK(store_stmt_run(tx, s, &err) == LODE_INTERNAL);
  store_tx_savepoint_end(tx, false);
  OK(store_state_put(tx, STORE_STATE_NEXT_CID, before + 5, &err));
  OK(store_tx_commit(tx, &err));
  CHECK(next_cid() == before + 5);
  store_db_close(db);
}
