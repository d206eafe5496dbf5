/* SPDX-License-Identifier: Apache-2.0 */
/* remote_point.h - a record as a point of Qdrant, and back: remote_point.c. remote.h describes the payload. */
#ifndef LODE_REMOTE_REMOTE_POINT_H
#define LODE_REMOTE_REMOTE_POINT_H

#include "base/json.h"
#include "base/meta.h"

enum { REMOTE_UUID_BYTES = 37, REMOTE_FIELD_BYTES = 24 };

void remote_point_uuid(lode_str id, char text[REMOTE_UUID_BYTES]);
/* The payload field of a metadata key, as "f.0123456789abcdef"; kind is 'f' or 'x'. */
void remote_point_field(char kind, lode_str key, char text[REMOTE_FIELD_BYTES]);
/* A value as a word. False: the string is too long, and the word is its hash. */
bool remote_value_to_word(strbuf *out, const meta_value *value);
/* A word back to a JSON scalar. False: the word is a hash. */
bool remote_value_from_word(lode_str word, strbuf *out);

typedef struct remote_point {
  lode_str id, document, metadata; /* absent: the record has none, or it was not requested */
  const float *vector;             /* NULL: the record has none, or it was not requested */
  uint32_t dim;
  bool pending;
  uint64_t n, seq;
  uint32_t crc;
  double score; /* of searches */
} remote_point;

uint32_t remote_point_crc(const remote_point *p);
/* Appends the point as JSON. The metric determines how the vector is stored. */
LODE_MUST lode_status remote_point_encode(strbuf *out, const remote_point *p, lode_metric metric, lode_error *err);
/* Decodes a node of a response. Strings point into the response; the vector, if there is one, is stored in *vector
 * (NULL: ignored). LODE_CORRUPT: the point was not written by Lode. */
LODE_MUST lode_status remote_point_decode(const json_doc *json, uint32_t node, lode_metric metric, strbuf *vector,
                                          remote_point *p, lode_error *err);
/* Appends the words of a text as {"indices":[...],"values":[...]}. *any: it has words. */
LODE_MUST lode_status remote_sparse_vector(strbuf *out, lode_str text, bool query, bool *any, lode_error *err);
/* Appends "with_payload":[...],"with_vector":... for these parts; eval_document: the filter needs the document. */
void remote_point_put_wanted(strbuf *out, unsigned include, bool eval_document, lode_metric metric, bool has_vectors);

#endif
