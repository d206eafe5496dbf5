/* record.h - one record of a Chroma collection, put together from where its parts lie. */
#ifndef LODE_RESCUE_RECORD_H
#define LODE_RESCUE_RECORD_H

#include "plan.h"

/* Re-used from record to record. */
typedef struct lode__record_maker {
  lode__plan *plan;
  json_doc json;
  strbuf text;      /* JSON of the values, one behind the other */
  struct lode__record_entry *entries;
  size_t n, cap;
} lode__record_maker;

typedef struct lode__record_made {
  lode_str document;   /* absent when there is none */
  lode_str metadata;   /* JSON object, absent when there is none */
  bool has_vector;
  lode__vec_from from; /* where it was found */
  const char *doubt;   /* NULL: nothing is doubtful */
} lode__record_made;

/* Strings are put into the arena; `vector` has room for the plan's dimension. */
lode_status lode__record_make(lode__record_maker *maker, const lode__rec *rec, mem_arena *arena, float *vector, lode__record_made *made,
                              lode_error *err);
void lode__record_maker_release(lode__record_maker *maker);

#endif
