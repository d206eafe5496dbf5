/* SPDX-License-Identifier: Apache-2.0 */
/* oracle.h - the reference implementation: what a collection holds and must answer, in plain arrays, evaluated naively.
 * Every test that compares answers with the right ones takes them from here.
 *
 *   oracle.c         records, random content, writes
 *   oracle_filter.c  filters: written as JSON, and evaluated by recursion with comparisons of their own
 *   oracle_rank.c    nearest vectors, recall, BM25, rank fusion, facets
 *   oracle_check.c   rows of the library against all of these
 *
 * Records are flat structs, so that a copy is an assignment and a transaction's undo is a copy. Their vectors are never
 * changed and live until the test ends. Values of metadata are numbers of a fixed list that has the awkward ones in it
 * (equal integers and doubles, 2^53 + 1, strings that the index cuts, quotes, NUL bytes); after these come the integers
 * from 0 on. Of the library the oracle uses the writers of JSON scalars (for texts to compare with), the tokenizer
 * (what a word is) and kernel_distance, whose bits are its contract and which is compared with the definition at each
 * use; each has tests of its own.
 */
#ifndef LODE_ORACLE_H
#define LODE_ORACLE_H

#include "base/base.h"
#include "base/meta.h"
#include "lode.h"

#define ORACLE_KEYS 9 /* the last one is ORACLE_OWNER */
#define ORACLE_OWNER (ORACLE_KEYS - 1)
#define ORACLE_ELEMENTS 4
#define ORACLE_MAX_DIM 1024

enum {
  ORACLE_NUMBERS = 25,
  ORACLE_STRINGS = 14,
  ORACLE_VALUES = ORACLE_NUMBERS + ORACLE_STRINGS + 2,
  ORACLE_WORDS = 22
};

typedef struct oracle_field {
  uint8_t key;
  bool array, null;
  uint8_t n;
  uint16_t v[ORACLE_ELEMENTS]; /* numbers of values */
} oracle_field;

typedef struct oracle_meta {
  uint8_t n;
  oracle_field f[ORACLE_KEYS];
} oracle_meta;

/* A record, or a change of one: what is not there stays as it is. */
typedef struct oracle_record {
  char id[72];
  size_t id_len;
  bool has_document, has_meta, has_vector;
  char document[640];
  size_t document_len;
  oracle_meta meta;
  const float *vector; /* of oracle_set_vector() */
  uint32_t dim;
} oracle_record;

typedef struct oracle_collection {
  lode_metric metric;
  uint32_t dim;
  oracle_record *r; /* in the order of insertion */
  size_t n, cap;
} oracle_collection;

lode_str oracle_key(int key);
meta_value oracle_value(int v);
int oracle_int(unsigned i); /* the number of the value i, for i below 1000 */
lode_str oracle_word(size_t i);
lode_str oracle_id(const oracle_record *r);
void oracle_release(oracle_collection *c);
void oracle_copy(oracle_collection *to, const oracle_collection *from);
size_t oracle_find(const oracle_collection *c, lode_str id); /* SIZE_MAX: none */
size_t oracle_pending(const oracle_collection *c);           /* records without a vector */
size_t oracle_documents(const oracle_collection *c);
void oracle_set_vector(oracle_record *r, const float *v, uint32_t dim);
/* The metadata as JSON, as the library gives it back; absent when there is none. Appends to buf. */
lode_str oracle_meta_text(const oracle_record *r, strbuf *buf);
/* For the library to write; its metadata is put into buf, which was empty or used for this before. */
lode_record oracle_to_write(const oracle_record *r, strbuf *buf);

/* ---- Random content ---- */

typedef struct oracle_content {
  int owner;    /* a number that each record carries under ORACLE_OWNER; -1: none */
  uint32_t dim; /* of vectors */
  bool nulls;   /* metadata may remove keys */
} oracle_content;

void oracle_name_record(oracle_record *r, unsigned number);
void oracle_random_record(oracle_record *r, unsigned number, const oracle_content *content);
void oracle_random_vector(float *v, uint32_t dim);
size_t oracle_random_text(char *text, size_t size, unsigned words);

/* ---- Writes ---- */

typedef enum oracle_kind { ORACLE_ADD, ORACLE_ADD_KEEP, ORACLE_UPSERT, ORACLE_UPDATE } oracle_kind;
/* What the library must answer; the collection changes when that is LODE_OK. */
lode_status oracle_write(oracle_collection *c, oracle_kind kind, const oracle_record *r, size_t n,
                         lode_write_result *result, bool *missing);
void oracle_append(oracle_collection *c, const oracle_record *r); /* one whose id is new */
void oracle_remove(oracle_collection *c, size_t at);

/* ---- Filters ---- */

typedef enum oracle_op {
  ORACLE_TRUE,
  ORACLE_AND,
  ORACLE_OR,
  ORACLE_NOT,
  ORACLE_EQ,
  ORACLE_NE,
  ORACLE_GT,
  ORACLE_GTE,
  ORACLE_LT,
  ORACLE_LTE,
  ORACLE_IN,
  ORACLE_NIN,
  ORACLE_HAS,
  ORACLE_HAS_NOT,
  ORACLE_BOTH, /* two conditions of one key */
  ORACLE_DOCUMENT,
  ORACLE_TEXT,
  ORACLE_NO_TEXT,
  ORACLE_REGEX,
  ORACLE_NO_REGEX,
} oracle_op;

typedef struct oracle_node {
  oracle_op op;
  bool flat; /* ORACLE_AND as one object; ORACLE_EQ without the operator */
  uint8_t key, n;
  uint16_t v[5];
  int16_t kid[3];
} oracle_node;

typedef struct oracle_filter {
  oracle_node node[96];
  int16_t n, root;
  strbuf text;
} oracle_filter;

/* On metadata, or on documents. With an owner only that owner's records match. */
void oracle_random_filter(oracle_filter *f, bool document, int owner);
void oracle_leaf_filter(oracle_filter *f, int key, oracle_op op, int value); /* one comparison */
void oracle_filter_release(oracle_filter *f);
bool oracle_match(const oracle_filter *f, const oracle_record *r); /* f may be NULL: all */
/* Order of two values of metadata: below, at or above 0; ORACLE_UNORDERED where their types differ. */
enum { ORACLE_UNORDERED = -2 };
int oracle_compare(const meta_value *a, const meta_value *b);

/* Which records a request means: of the ids, if there are any, those that match both filters. */
typedef struct oracle_selection {
  const lode_str *ids;
  size_t n_ids;
  const oracle_filter *where, *document; /* may be NULL */
} oracle_selection;
bool oracle_selected(const oracle_selection *s, const oracle_record *r); /* s may be NULL: all */
lode_selection oracle_request(const oracle_selection *s);

/* ---- Answers. hits has room for all records of the collection; what is returned is how many there are ---- */

typedef struct oracle_hit {
  size_t at;    /* in the collection */
  double score; /* of vectors: the distance */
  const oracle_record *r;
} oracle_hit;

/* The definition of lode.h, in double. */
double oracle_definition(lode_metric metric, const float *a, const float *b, uint32_t dim);
/* The distance as the library must give it, to the bit. */
double oracle_distance(lode_metric metric, const float *query, const float *v, uint32_t dim);
/* Records with a vector, nearest first, those of the same distance by id. */
size_t oracle_nearest(const oracle_collection *c, const float *query, const oracle_selection *s, oracle_hit *hits);
/* Records that hold a word of the text, by BM25. As a hybrid query ranks them, words that most documents hold weigh
 * nothing. */
size_t oracle_text(const oracle_collection *c, lode_str text, const oracle_selection *s, bool hybrid, oracle_hit *hits);
/* Reciprocal rank fusion of both; hits has room for twice the records. */
size_t oracle_hybrid(const oracle_collection *c, const lode_query_request *q, const oracle_selection *s,
                     oracle_hit *hits);
/* The share of an approximate answer that is as near as the k-th nearest. `all`: distances of all candidates, which are
 * sorted; `got`: those of the answer, which must be in order and as many as there should be. */
double oracle_recall(double *all, size_t n, size_t k, const double *got, size_t n_got);

typedef struct oracle_facet {
  int value;
  uint64_t count;
} oracle_facet;
size_t oracle_facets(const oracle_collection *c, int key, const oracle_filter *where,
                     oracle_facet *facets); /* room for 64 */
void oracle_facet_text(const oracle_facet *facet, strbuf *buf);

/* ---- Checks of the library's answers ---- */

void oracle_check_row(const lode_row *row, const oracle_record *r, unsigned include);
/* Rows from *at on are the first n hits of query number `query`, distances to the bit; moves *at past them. */
void oracle_check_nearest(const lode_result *rows, size_t *at, size_t query, const oracle_hit *hits, size_t n,
                          unsigned include);
/* The right records in their order, which may be another one among equals; scores too, unless the store counts words of
 * others' records as well. */
void oracle_check_text(const lode_result *rows, const oracle_hit *hits, size_t n, size_t k, bool scores,
                       unsigned include);
void oracle_check_hybrid(const oracle_collection *c, const lode_result *rows, const lode_query_request *q,
                         const oracle_hit *hits, size_t n);

#endif
