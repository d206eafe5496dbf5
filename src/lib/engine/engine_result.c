/* SPDX-License-Identifier: Apache-2.0 */
/* engine_result.c - records as rows of a result (iface/iface_result.c). */
#include "engine/engine.h"

lode_status engine_result_add(lode_result *result, engine_reader *reader, const store_rec *rec, unsigned include,
                              lode_row **out, lode_error *err) {
  lode_row *row;
  reader->taken = true;
  TRY(iface_result_row(result, &row, err));
  row->cursor = rec->seq;
  row->position = (uint64_t)rec->rid;
  TRY(iface_result_copy(result, rec->id, &row->id, err));
  if (include & LODE_METADATA) TRY(iface_result_copy(result, rec->metadata, &row->metadata, err));
  if ((include & LODE_VECTOR) && rec->vid) {
    void *v;
    TRY(iface_result_alloc(result, (size_t)reader->coll.dim * sizeof(float), &v, err));
    TRY(store_rec_vector(reader->tx, rec->vid, v, reader->coll.dim, err));
    row->vector = v;
    row->dimension = reader->coll.dim;
  }
  if (include & LODE_DOCUMENT) { /* last: it may invalidate the record's strings */
    lode_str document;
    TRY(engine_reader_document(reader, rec, &document, err));
    TRY(iface_result_copy(result, document, &row->document, err));
  }
  iface_result_keep(result);
  *out = row;
  return LODE_OK;
}
