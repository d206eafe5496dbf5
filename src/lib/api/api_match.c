/* SPDX-License-Identifier: Apache-2.0 */
/* api_match.c - lode_match_texts() of lode.h: a filter on documents, asked about texts of the caller. */
#include "api/sized.h"
#include "query/filter.h"

lode_status lode_match_texts(lode_str where_document, const lode_str *texts, size_t n, bool *matches, lode_error *err) {
  filter_expr *filter = NULL;
  filter_eval *eval = NULL;
  lode_status st;
  err_clear(err);
  if (n) API_REQUIRE(texts, err);
  if (n) API_REQUIRE(matches, err);
  for (size_t i = 0; i < n; i++) matches[i] = false;
  TRY_GOTO(filter_parse((lode_str){0}, where_document, &filter, err));
  TRY_GOTO(filter_eval_new(filter, &eval, err));
  for (size_t i = 0; i < n; i++) {
    st = filter_eval_match(eval, (lode_str){0}, texts[i], &matches[i], err);
    if (st == LODE_CORRUPT) st = err_set(err, LODE_INVALID, "text %zu is not valid UTF-8", i);
    if (st != LODE_OK) break;
  }
done:
  for (size_t i = 0; i < n && st != LODE_OK; i++) matches[i] = false;
  filter_eval_free(eval);
  filter_free(filter);
  return st;
}
