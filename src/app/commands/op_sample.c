/* SPDX-License-Identifier: Apache-2.0 */
/* op_sample.c - see op_sample.h. */
#include "commands/op_sample.h"

#include <math.h>

enum { OP_SAMPLE_RECORDS = 100, OP_SAMPLE_NEAREST = 10 };

static lode_status sample_any_after(lode_collection *collection, uint64_t place, bool *any, lode_error *err) {
  lode_get_request request = {.after = place, .limit = 1};
  lode_result *result = NULL;
  lode_status st = lode_get(collection, &request, &result, err);
  *any = st == LODE_OK && lode_result_count(result) > 0;
  lode_result_free(result);
  return st;
}

lode_status op_sample_end(lode_collection *collection, uint64_t records, uint64_t *end, lode_error *err) {
  uint64_t low = 0, high = records;
  bool any = true;
  for (;;) {
    TRY(sample_any_after(collection, high, &any, err));
    if (!any) break;
    low = high;
    high *= 2;
  }
  while (low + 1 < high) {
    uint64_t middle = low + (high - low) / 2;
    TRY(sample_any_after(collection, middle, &any, err));
    if (any)
      low = middle;
    else
      high = middle;
  }
  *end = high;
  return LODE_OK;
}

/* ---- Recall ---- */

typedef struct recall_job {
  lode_collection *collection;
  uint32_t dimension;
  uint64_t records;
  float *vectors; /* of the sample */
  size_t n;
  double sum, sum2; /* of the recall of each query, and of its square */
  size_t queries;
} recall_job;

static lode_status recall_read_sample(recall_job *j, lode_error *err) {
  lode_get_request request = {.limit = 1, .include = LODE_VECTOR};
  uint64_t end = 0, next = 0;
  TRY(op_sample_end(j->collection, j->records, &end, err));
  for (size_t i = 0; i < OP_SAMPLE_RECORDS; i++) {
    lode_result *result = NULL;
    uint64_t place = (uint64_t)((double)i * (double)end / OP_SAMPLE_RECORDS);
    request.after = place > next ? place : next;
    TRY(lode_get(j->collection, &request, &result, err));
    const lode_row *row = lode_result_count(result) ? lode_result_at(result, 0) : NULL;
    if (row && row->vector && row->dimension == j->dimension)
      memcpy(j->vectors + j->n++ * j->dimension, row->vector, j->dimension * sizeof(float));
    next = lode_result_next(result);
    lode_result_free(result);
    if (!next) break;
  }
  return LODE_OK;
}

/* Asks twice, by the index and exactly. Rows as near as the last are as good. */
static lode_status recall_ask(recall_job *j, const float *query, lode_error *err) {
  lode_query_request request = {.vectors = query, .dimension = j->dimension, .n = 1, .k = OP_SAMPLE_NEAREST};
  lode_result *found = NULL, *exact = NULL;
  lode_status st = lode_query(j->collection, &request, &found, err);
  request.exact = true;
  if (st == LODE_OK) st = lode_query(j->collection, &request, &exact, err);
  size_t n = st == LODE_OK ? lode_result_count(exact) : 0, hits = 0;
  for (size_t i = 0; n && i < lode_result_count(found) && i < n; i++)
    hits += lode_result_at(found, i)->distance <= lode_result_at(exact, n - 1)->distance;
  if (n) {
    double recall = (double)hits / (double)n;
    j->sum += recall;
    j->sum2 += recall * recall;
    j->queries++;
  }
  lode_result_free(found);
  lode_result_free(exact);
  return st;
}

static lode_status recall_ask_all(recall_job *j, lode_progress progress, lode_error *err) {
  lode_status st = LODE_OK;
  float *query = mem_calloc(j->dimension, sizeof *query);
  if (!query) return err_nomem(err);
  for (size_t i = 0; i < j->n && st == LODE_OK; i++) {
    const float *near = j->vectors + i * j->dimension, *far = j->vectors + (i + j->n / 2) % j->n * j->dimension;
    for (uint32_t d = 0; d < j->dimension; d++) query[d] = i % 2 ? 0.75f * near[d] + 0.25f * far[d] : near[d];
    st = recall_ask(j, query, err);
    if (st == LODE_OK && !err_go_on(progress, "measuring recall", i + 1, j->n))
      st = err_set(err, LODE_CANCELLED, "recall was not measured to the end");
  }
  mem_free(query);
  return st;
}

/* The margin of a mean of few misses is not below that of none: 3 / n ("rule of three"). */
static void recall_note(const recall_job *j, lode_str name, op_recall *worst) {
  if (!j->queries) return;
  double n = (double)j->queries, mean = j->sum / n, variance = fmax(0, j->sum2 / n - mean * mean);
  if (worst->queries && mean >= worst->mean) return;
  *worst = (op_recall){
      .queries = j->queries, .mean = mean, .margin = fmax(1.96 * sqrt(variance / n), 3 / (n * OP_SAMPLE_NEAREST))};
  snprintf(worst->collection, sizeof worst->collection, "%.*s", (int)name.len, name.data);
}

static lode_status recall_measure(lode_store *store, const lode_collection_info *info, lode_progress progress,
                                  op_recall *worst, lode_error *err) {
  recall_job j = {.dimension = info->dimension, .records = info->records};
  lode_collection_options options = {0};
  lode_status st = LODE_OK;
  if (!info->dimension || !info->records) return LODE_OK;
  TRY(lode_collection_open(store, info->name, &options, &j.collection, err));
  j.vectors = mem_calloc((size_t)OP_SAMPLE_RECORDS * j.dimension, sizeof *j.vectors);
  if (!j.vectors) st = err_nomem(err);
  if (st == LODE_OK) st = recall_read_sample(&j, err);
  if (st == LODE_OK) st = recall_ask_all(&j, progress, err);
  if (st == LODE_OK) recall_note(&j, info->name, worst);
  mem_free(j.vectors);
  lode_collection_close(j.collection);
  return st;
}

lode_status op_sample_recall(lode_store *store, lode_progress progress, op_recall *worst, lode_error *err) {
  lode_collection_list *list = NULL;
  lode_status st = LODE_OK;
  *worst = (op_recall){0};
  TRY(lode_collections(store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list) && st == LODE_OK; i++)
    st = recall_measure(store, lode_collection_list_at(list, i), progress, worst, err);
  lode_collection_list_free(list);
  return st;
}
