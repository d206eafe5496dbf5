/* SPDX-License-Identifier: Apache-2.0 */
/* pickle.h - a strict reader of Chroma's index_metadata.pickle, which maps ids to labels of the vector index.
 *
 * A pickle is a program for a small stack machine. This reader implements only the opcodes that the two known writers
 * use. It keeps numbers, strings and empty dictionaries, and never creates or calls anything: the only class that it
 * accepts by name is Chroma's own, whose fields are a dictionary like that of the newer format.
 *   1.x      a dictionary
 *   to 0.6   an object PersistentData with the same dictionary
 * {"dimensionality", "total_elements_added", "max_seq_id": numbers or None, "id_to_label": {id: label},
 * "label_to_id": {label: id}, "id_to_seq_id": {id: number}}
 */
#ifndef LODE_RESCUE_PICKLE_H
#define LODE_RESCUE_PICKLE_H

#include "base/base.h"

typedef enum rescue_pickle_part {
  RESCUE_PICKLE_ID_TO_LABEL,
  RESCUE_PICKLE_LABEL_TO_ID,
  RESCUE_PICKLE_ID_TO_SEQ,
} rescue_pickle_part;

typedef struct rescue_pickle_sink {
  /* Called for each entry of these dictionaries; the id points into the input. False: out of memory. */
  bool (*pair)(void *ctx, rescue_pickle_part part, lode_str id, int64_t number);
  /* Called for each number of the outer dictionary. */
  void (*number)(void *ctx, lode_str name, int64_t number);
  void *ctx;
} rescue_pickle_sink;

/* LODE_CORRUPT: not such a pickle, or damaged from some byte on; the entries before that were passed to the sink. */
LODE_MUST lode_status rescue_pickle_read(lode_str bytes, const rescue_pickle_sink *sink, lode_error *err);

#endif
