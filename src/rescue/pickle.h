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

typedef enum lode__pickle_part { LODE__PICKLE_ID_TO_LABEL, LODE__PICKLE_LABEL_TO_ID, LODE__PICKLE_ID_TO_SEQ } lode__pickle_part;

typedef struct lode__pickle_sink {
  /* One entry of one of the dictionaries; the id lives in the source bytes. False: out of memory. */
  bool (*pair)(void *ctx, lode__pickle_part part, lode_str id, int64_t number);
  /* One of the numbers. */
  void (*number)(void *ctx, lode_str name, int64_t number);
  void *ctx;
} lode__pickle_sink;

/* LODE_CORRUPT: the bytes are no such pickle, or not from some byte on; what came before was handed out. */
lode_status lode__pickle_read(lode_str bytes, const lode__pickle_sink *sink, lode_error *err);

#endif
