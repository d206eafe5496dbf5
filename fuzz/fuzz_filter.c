/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_filter.c - any filter on any record: no crash, and two truths about whatever comes out. A filter and its $not
 * never agree; a record that matches fulfils every probe. The input is four texts with NULs between them: filter,
 * document filter, metadata, document. */
#include "query/filter.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth) {
  if (!truth) abort();
}

/* Cuts the next text off the input; an empty one is absent. */
static lode_str next_text(const uint8_t **data, size_t *size) {
  const uint8_t *end = *size ? memchr(*data, 0, *size) : NULL;
  size_t len = end ? (size_t)(end - *data) : *size;
  lode_str text = {len ? (const char *)*data : NULL, len};
  size_t skip = end ? len + 1 : len;
  *data += skip;
  *size -= skip;
  return text;
}

static lode_status evaluate(lode_str where, lode_str where_document, lode_str metadata, lode_str document,
                            filter_expr **filter, bool *match) {
  filter_eval *j = NULL;
  lode_error err;
  lode_status st = filter_parse(where, where_document, filter, &err);
  if (st == LODE_OK) st = filter_eval_new(*filter, &j, &err);
  if (st == LODE_OK) st = filter_eval_match(j, metadata, document, match, &err);
  if (st != LODE_OK) require(err.text[0] != '\0' && memchr(err.text, '\0', sizeof err.text));
  filter_eval_free(j);
  return st;
}

static void check_negation(lode_str where, lode_str metadata, lode_str document, bool match) {
  strbuf text = {0};
  filter_expr *filter = NULL;
  bool opposite;
  strbuf_addstr(&text, "{\"$not\":");
  strbuf_add(&text, where.data, where.len);
  strbuf_addstr(&text, "}");
  lode_status st = evaluate((lode_str){text.data, text.len}, (lode_str){0}, metadata, document, &filter, &opposite);
  require(st == LODE_LIMIT || (st == LODE_OK && opposite == !match));
  filter_free(filter);
  strbuf_release(&text);
}

typedef struct search {
  const filter_condition *condition;
  bool fulfilled;
} search;

static lode_status look(void *ctx, lode_str key, const meta_value *value, lode_error *err) {
  search *s = ctx;
  const filter_condition *p = s->condition;
  (void)err;
  if (!str_eq(key, p->key)) return LODE_OK;
  bool inside = p->n_values == 0;
  if (p->has_low) {
    int c = meta_value_comparable(value, &p->low) ? meta_value_cmp(value, &p->low) : -1;
    if (c < 0 || (c == 0 && p->low_open)) inside = false;
  }
  if (p->has_high) {
    int c = meta_value_comparable(value, &p->high) ? meta_value_cmp(value, &p->high) : 1;
    if (c > 0 || (c == 0 && p->high_open)) inside = false;
  }
  for (size_t i = 0; i < p->n_values; i++) inside |= meta_value_cmp(value, &p->values[i]) == 0;
  s->fulfilled |= inside;
  return LODE_OK;
}

static void check_probes(const filter_expr *filter, lode_str metadata) {
  const filter_probe *probes;
  json_doc json = {0};
  size_t n = filter_get_probes(filter, &probes);
  if (meta_check(&json, metadata, false, NULL) == LODE_OK) {
    for (size_t i = 0; i < n; i++) {
      bool fulfilled = false;
      for (size_t c = 0; c < probes[i].n; c++) {
        search s = {.condition = &probes[i].any[c]};
        require(meta_each_value(&json, look, &s, NULL) == LODE_OK);
        fulfilled = fulfilled || s.fulfilled;
      }
      require(fulfilled);
    }
  }
  json_release(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lode_str where = next_text(&data, &size), where_document = next_text(&data, &size);
  lode_str metadata = next_text(&data, &size), document = next_text(&data, &size);
  filter_expr *filter = NULL;
  bool match = false;
  if (evaluate(where, where_document, metadata, document, &filter, &match) == LODE_OK) {
    require(match || !filter_is_true(filter));
    if (where.data && !where_document.data) check_negation(where, metadata, document, match);
    if (match && metadata.data) check_probes(filter, metadata);
    if (match && !metadata.data) {
      const filter_probe *probes;
      require(filter_get_probes(filter, &probes) == 0);
    }
  }
  filter_free(filter);
  return 0;
}
