/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_record.h - builds one record of a Chroma collection from its parts. */
#ifndef LODE_RESCUE_RESCUE_RECORD_H
#define LODE_RESCUE_RESCUE_RECORD_H

#include "rescue/rescue_plan.h"

/* Reused from record to record. */
typedef struct rescue_record_builder {
  rescue_plan *plan;
  json_doc json;
  strbuf text; /* JSON of the values, one after the other */
  struct rescue_record_entry *entries;
  size_t n, cap;
} rescue_record_builder;

typedef struct rescue_record {
  lode_str document; /* absent when there is none */
  lode_str metadata; /* JSON object, absent when there is none */
  bool has_vector;
  rescue_vec_source from; /* where it was found */
  const char *doubt;      /* NULL: nothing is doubtful */
} rescue_record;

/* Strings are in the arena; `vector` has space for the plan's dimension (NULL: not wanted). */
LODE_MUST lode_status rescue_record_build(rescue_record_builder *builder, const rescue_rec *rec, mem_arena *arena,
                                          float *vector, rescue_record *made, lode_error *err);
void rescue_record_builder_release(rescue_record_builder *builder);

#endif
