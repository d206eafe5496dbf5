/* SPDX-License-Identifier: Apache-2.0 */
/* repair_rows.c - what a row found on a page is. The names of tables may be lost with their schema, so a row is
 * recognized by the types of its columns, and proven by its checksum. */
#include "repair/repair_internal.h"

/* One letter for each column: n null, i integer, t text, b blob; I integer or null, T text or null. */
static bool row_has_shape(const sqf_cell *row, const char *shape) {
  for (size_t i = 0;; i++) {
    if (shape[i] == 0 || i == row->n) return shape[i] == 0 && i == row->n;
    sqf_type t = row->cols[i].type;
    bool fits = false;
    switch (shape[i]) {
      case 'n': fits = t == SQF_NULL; break;
      case 'i': fits = t == SQF_INT; break;
      case 't': fits = t == SQF_TEXT; break;
      case 'b': fits = t == SQF_BLOB; break;
      case 'I': fits = t == SQF_INT || t == SQF_NULL; break;
      case 'T': fits = t == SQF_TEXT || t == SQF_NULL; break;
      default: break;
    }
    if (!fits) return false;
  }
}

repair_row_kind repair_row_kind_of(const sqf_cell *row, const sqf_view *view) {
  static const struct {
    const char *shape;
    repair_row_kind kind;
  } tables[] = {
      {"nbiiITi", REPAIR_ROW_RECORD}, {"nti", REPAIR_ROW_DOCUMENT}, {"nibi", REPAIR_ROW_VECTOR},
      {"nbii", REPAIR_ROW_TOMBSTONE}, {"niti", REPAIR_ROW_METAKEY}, {"niTiiTTiiiiiiiiiiiiii", REPAIR_ROW_COLLECTION},
  };
  if (!sqf_view_is_table(view)) return row_has_shape(row, "ibii") ? REPAIR_ROW_ID : REPAIR_ROW_OTHER;
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    if (row_has_shape(row, tables[i].shape)) return tables[i].kind;
  return REPAIR_ROW_OTHER;
}

bool repair_row_to_rec(const sqf_cell *row, const strbuf *payload, store_rec *rec) {
  *rec = (store_rec){
      .rid = row->key,
      .id = sqf_cell_str(row, 1, payload),
      .seq = (uint64_t)sqf_cell_int(row, 2, payload),
      .vid = sqf_cell_int(row, 3, payload),
      .has_document = row->cols[4].type != SQF_NULL,
      .doc_crc = (uint32_t)sqf_cell_int(row, 4, payload),
      .metadata = sqf_cell_str(row, 5, payload),
  };
  return rec->id.data && rec->id.len > 0 && rec->id.len <= LODE_MAX_ID_BYTES && store_key_cid(rec->rid) > 0 &&
         (uint32_t)sqf_cell_int(row, 6, payload) == store_crc_record(rec);
}

lode_status repair_row_load(vfs_pages *pages, const sqf_cell *row, strbuf *payload, lode_error *err) {
  bool cut;
  TRY(sqf_cell_load(&pages->src, row, payload, &cut, err));
  return cut ? err_set(err, LODE_CORRUPT, "a chain of overflow pages breaks off") : LODE_OK;
}
