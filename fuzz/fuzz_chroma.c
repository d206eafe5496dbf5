/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_chroma.c - any bytes as chroma.sqlite3, with a journal or a write-ahead log beside it: every place that was kept
 * can be read again or is damage, every record is some collection's, and the check ends. */
#include "rescue/chroma_dir.h"

#include "rescue/rescue.h"
#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static lode_status found(void *ctx, const char *what, bool damage, lode_str collection, const char *detail,
                         lode_error *err) {
  (void)ctx, (void)damage, (void)collection, (void)err;
  REQUIRE(what && detail && *detail);
  return LODE_OK;
}

static lode_status count(void *ctx, const rescue_counts *n, lode_error *err) {
  uint64_t *records = ctx;
  (void)err;
  REQUIRE(n->exact + n->from_log + n->embedded + n->missing == n->records);
  *records += n->records;
  return LODE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char folder[600];
  rescue_dir c;
  lode_error err;
  rescue_check_report report;
  uint64_t records = 0;
  if (size < 2) return 0;
  if (!scratch[0]) scratch_begin();
  scratch_store(folder, sizeof folder);
  scratch_clear();
  size_t side = (size_t)data[0] | (size_t)(data[1] & 0x7f) << 8;
  if (side > size - 2) side = size - 2;
  if (side) scratch_put(data[1] & 0x80 ? "chroma.sqlite3-wal" : "chroma.sqlite3-journal", data + 2, side);
  scratch_put("chroma.sqlite3", data + 2 + side, size - 2 - side);
  lode_status st = rescue_dir_open(folder, (lode_progress){0}, &c, &err);
  if (st != LODE_OK) {
    REQUIRE(st == LODE_CORRUPT || st == LODE_NOMEM);
    return 0;
  }
  for (size_t i = 0; i < c.n_rows; i++) REQUIRE(c.rows[i].coll < c.n_colls && c.rows[i].id.len > 0);
  for (size_t i = 0; i < c.n_metas; i++) {
    sqf_row row;
    rescue_value v;
    st = rescue_meta_read(&c, &c.metas[i], &row, &v, &err);
    REQUIRE(st == LODE_OK || st == LODE_CORRUPT || st == LODE_NOMEM);
  }
  rescue_dir_close(&c);
  rescue_check_request check = {.from = folder, .found = found};
  st = rescue_check(&check, &report, &err);
  REQUIRE(st == LODE_OK || st == LODE_NOMEM);
  rescue_request rescue = {.from = folder, .collection = count, .ctx = &records};
  if (rescue_from_chroma(&rescue, &err) == LODE_OK) REQUIRE(records == report.records);
  return 0;
}
