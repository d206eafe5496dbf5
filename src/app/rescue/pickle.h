/* pickle.h - a strict reader of Chroma's index_metadata.pickle, which says which id has which label in the vector index.
 *
 * A pickle is a program for a small machine. This reader knows the opcodes that the two known writers use and
 * no others, keeps numbers, strings and empty dictionaries only, and never makes or calls anything: the one class that it lets
 * pass by name is Chroma's own, whose fields are a dictionary like that of the newer format.
 *   1.x      a dictionary
 *   to 0.6   an object PersistentData with the same dictionary
 * {"dimensionality", "total_elements_added", "max_seq_id": numbers or None, "id_to_label": {id: label},
 * "label_to_id": {label: id}, "id_to_seq_id": {id: number}}
 */
#ifndef LODE_RESCUE_PICKLE_H
#define LODE_RESCUE_PICKLE_H

#include "base/base.h"

typedef enum rescue_pickle_part { RESCUE_PICKLE_ID_TO_LABEL, RESCUE_PICKLE_LABEL_TO_ID, RESCUE_PICKLE_ID_TO_SEQ } rescue_pickle_part;

typedef struct rescue_pickle_sink {
  /* One entry of one of the dictionaries; the id lives in the source bytes. False: out of memory. */
  bool (*pair)(void *ctx, rescue_pickle_part part, lode_str id, int64_t number);
  /* One of the numbers. */
  void (*number)(void *ctx, lode_str name, int64_t number);
  void *ctx;
} rescue_pickle_sink;

/* LODE_CORRUPT: the bytes are no such pickle, or not from some byte on; what came before was handed out. */
lode_status rescue_pickle_read(lode_str bytes, const rescue_pickle_sink *sink, lode_error *err);

#endif
