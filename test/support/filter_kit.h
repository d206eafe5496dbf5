/* SPDX-License-Identifier: Apache-2.0 */
/* filter_kit.h - what the test_filter programs share: short forms for parsing and evaluating. */
#ifndef LODE_FILTER_KIT_H
#define LODE_FILTER_KIT_H

#include "query/filter.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

static lode_error err __attribute__((unused));
static const lode_str none __attribute__((unused));

static inline bool evaluate_texts(const char *where, const char *where_document, const char *metadata,
                                  const char *document) {
  filter_expr *filter;
  filter_eval *eval;
  bool match;
  OK(filter_parse(str_of(where), str_of(where_document), &filter, &err));
  OK(filter_eval_new(filter, &eval, &err));
  OK(filter_eval_match(eval, str_of(metadata), str_of(document), &match, &err));
  filter_eval_free(eval);
  filter_free(filter);
  return match;
}
#define MATCHES(where, metadata) CHECK(evaluate_texts(where, NULL, metadata, NULL))
#define DIFFERS(where, metadata) CHECK(!evaluate_texts(where, NULL, metadata, NULL))
#define DOC_MATCHES(where, document) CHECK(evaluate_texts(NULL, where, NULL, document))
#define DOC_DIFFERS(where, document) CHECK(!evaluate_texts(NULL, where, NULL, document))

static inline lode_status parse_only(lode_str where, lode_str where_document) {
  filter_expr *filter = NULL;
  lode_status st = filter_parse(where, where_document, &filter, &err);
  CHECK((st == LODE_OK) == (filter != NULL));
  filter_free(filter);
  return st;
}

/* The filter is refused, and the message has the word in it. */
static inline void check_refused(int line, const char *where, bool document, const char *word) {
  lode_status st = document ? parse_only(none, str_of(where)) : parse_only(str_of(where), none);
  if (st != LODE_INVALID) test_failed(__FILE__, line, "%s: %s", where, lode_status_name(st));
  if (!strstr(err.text, word)) test_failed(__FILE__, line, "%s: \"%s\" lacks \"%s\"", where, err.text, word);
}
#define REFUSED(where, word) check_refused(__LINE__, where, false, word)
#define DOC_REFUSED(where, word) check_refused(__LINE__, where, true, word)

#endif
