/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - an oracle: what a collection holds and must answer, in plain arrays, evaluated naively.
 *
 * Records are flat structs, so that a copy is an assignment and a transaction's undo is a copy. Values of metadata are
 * numbers of a fixed list that has the awkward ones in it (equal integers and doubles, 2^53 + 1, strings that the index
 * cuts, quotes, NUL bytes). Filters are trees that are both written as JSON and evaluated here, by recursion and with
 * comparisons of its own. Of the library it uses: the writers of JSON scalars (for texts to compare with), the
 * tokenizer (what a word is) and kernel_distance (whose bits are its own contract); each has tests of its own.
 */
#ifndef LODE_MODEL_H
#define LODE_MODEL_H

#include "base/base.h"
#include "lode.h"

#define MODEL_DIM 20
#define MODEL_KEYS 9 /* the last one is MODEL_OWNER */
#define MODEL_OWNER (MODEL_KEYS - 1)
#define MODEL_ELEMENTS 4

typedef struct model_field {
  uint8_t key;
  bool array, null;
  uint8_t n, v[MODEL_ELEMENTS]; /* which of the fixed values */
} model_field;

typedef struct model_meta {
  uint8_t n;
  model_field f[MODEL_KEYS];
} model_meta;

/* A record, or a change of one: what is not there stays as it is. */
typedef struct model_record {
  char id[72];
  size_t id_len;
  bool has_document, has_meta, has_vector;
  char document[640];
  size_t document_len;
  model_meta meta;
  float vector[MODEL_DIM];
  uint32_t dim;
} model_record;

typedef struct model_collection {
  lode_metric metric;
  uint32_t dim;
  model_record *r; /* in the order of insertion */
  size_t n, cap;
} model_collection;

lode_str model_key(int key);
lode_str model_id(const model_record *r);
void model_release(model_collection *c);
void model_copy(model_collection *to, const model_collection *from);
size_t model_find(const model_collection *c, lode_str id); /* SIZE_MAX: none */
size_t model_pending(const model_collection *c);
/* The metadata as JSON, as the library gives it back; absent when there is none. Appends to buf. */
lode_str model_meta_text(const model_record *r, strbuf *buf);

/* Syncs do nothing from now on: power cuts are other tests' matter, and these get through a hundred times more. */
void model_no_sync(void);

/* ---- Random content ---- */

typedef struct model_taste {
  int owner;    /* a number that each record carries under MODEL_OWNER; -1: none */
  uint32_t dim; /* of vectors */
  bool nulls;   /* metadata may remove keys */
} model_taste;

void model_name_record(model_record *r, unsigned number);
void model_random_record(model_record *r, unsigned number, const model_taste *taste);
void model_random_vector(float *v, uint32_t dim);
size_t model_random_text(char *text, size_t size, unsigned words);

/* ---- Writes ---- */

typedef enum model_kind { MODEL_ADD, MODEL_ADD_KEEP, MODEL_UPSERT, MODEL_UPDATE } model_kind;
/* What the library must answer; the collection changes when that is LODE_OK. */
lode_status model_write(model_collection *c, model_kind kind, const model_record *r, size_t n,
                        lode_write_result *result, bool *missing);
void model_remove(model_collection *c, size_t at);

/* ---- Filters ---- */

typedef enum model_op {
  MODEL_TRUE,
  MODEL_AND,
  MODEL_OR,
  MODEL_NOT,
  MODEL_EQ,
  MODEL_NE,
  MODEL_GT,
  MODEL_GTE,
  MODEL_LT,
  MODEL_LTE,
  MODEL_IN,
  MODEL_NIN,
  MODEL_HAS,
  MODEL_HAS_NOT,
  MODEL_BETWEEN,
  MODEL_DOCUMENT,
  MODEL_TEXT,
  MODEL_NO_TEXT,
  MODEL_REGEX,
  MODEL_NO_REGEX,
} model_op;

typedef struct model_node {
  model_op op;
  bool flat; /* MODEL_AND as one object; MODEL_EQ without the operator */
  uint8_t key, n, v[5];
  int16_t kid[3];
} model_node;

typedef struct model_filter {
  model_node node[64];
  int16_t n, root;
  strbuf text;
} model_filter;

/* On metadata, or on documents. With an owner only that owner's records match. */
void model_random_filter(model_filter *f, bool document, int owner);
void model_owner_filter(model_filter *f, int owner); /* nothing but that */
void model_filter_release(model_filter *f);
bool model_match(const model_filter *f, const model_record *r);

/* ---- Answers ---- */

typedef struct model_hit {
  size_t at; /* in the collection */
  double score;
  const model_record *r;
} model_hit;
/* Records with a vector (and matching both filters, where given), nearest first; `score` is the distance. Returns how
 * many; hits has room for all records. */
size_t model_nearest(const model_collection *c, const float *query, const model_filter *where,
                     const model_filter *where_document, model_hit *hits);
/* Records that hold a word of the text, by BM25. */
size_t model_text(const model_collection *c, lode_str text, const model_filter *where,
                  const model_filter *where_document, model_hit *hits);

typedef struct model_facet {
  int value;
  uint64_t count;
} model_facet;
size_t model_facets(const model_collection *c, int key, const model_filter *where,
                    model_facet *facets); /* room for 64 */
void model_facet_text(const model_facet *facet, strbuf *buf);

#endif
