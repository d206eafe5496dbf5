/* SPDX-License-Identifier: Apache-2.0 */
/* remote_filter.c - a selection: the conditions that Qdrant applies, and the evaluation of the whole filter.
 *
 * The probes of a filter (query/filter.h) are conditions that every match fulfils: those are sent. The filter is then
 * evaluated on what comes back, by the same code as in an embedded store, so a condition that Qdrant applies too
 * loosely cannot add a result.
 */
#include "remote/remote_select.h"

#include <math.h>

enum { REMOTE_MAX_VALUES = 100000 };

lode_status remote_select_init(remote_select *s, remote_collection *c, const lode_selection *what, lode_error *err) {
  *s = (remote_select){.c = c, .what = what};
  TRY(iface_check_selection(what, err));
  TRY(filter_parse(what->where, what->where_document, &s->filter, err));
  s->has_filter = !filter_is_true(s->filter);
  return s->has_filter ? filter_eval_new(s->filter, &s->eval, err) : LODE_OK;
}

void remote_select_release(remote_select *s) {
  filter_eval_free(s->eval);
  filter_free(s->filter);
  strbuf_release(&s->prefilter);
  *s = (remote_select){0};
}

bool remote_select_needs_doc(const remote_select *s) { return s->has_filter && filter_needs_document(s->filter); }

static void prefilter_put_values(strbuf *out, const filter_condition *c, const char *field) {
  strbuf word = {0};
  strbuf_addf(out, "{\"key\":\"%s\",\"match\":{\"any\":[", field);
  for (size_t i = 0; i < c->n_values; i++) {
    word.len = 0;
    (void)remote_value_to_word(&word, &c->values[i]);
    if (i) strbuf_addch(out, ',');
    json_put_string(out, (lode_str){word.data, word.len});
  }
  strbuf_addstr(out, "]}}");
  if (word.failed) out->failed = true;
  strbuf_release(&word);
}

static bool prefilter_is_number(const meta_value *v) { return v->type == META_INT || v->type == META_DOUBLE; }

/* Each bound is widened by one step, because an integer may not fit a double; the filter decides anyway. */
static void prefilter_put_range(strbuf *out, const filter_condition *c, const char *field) {
  strbuf_addf(out, "{\"key\":\"%s\",\"range\":{", field);
  if (c->has_low) {
    double low = c->low.type == META_INT ? (double)c->low.i : c->low.d;
    strbuf_addstr(out, "\"gte\":");
    json_put_double(out, nextafter(low, -INFINITY));
  }
  if (c->has_high) {
    double high = c->high.type == META_INT ? (double)c->high.i : c->high.d;
    strbuf_addstr(out, c->has_low ? ",\"lte\":" : "\"lte\":");
    json_put_double(out, nextafter(high, INFINITY));
  }
  strbuf_addstr(out, "}}");
}

static bool prefilter_can_say(const filter_condition *c) {
  if (c->n_values) return c->n_values <= REMOTE_MAX_VALUES;
  return (!c->has_low || prefilter_is_number(&c->low)) && (!c->has_high || prefilter_is_number(&c->high));
}

static lode_status prefilter_put_condition(remote_select *s, const remote_entry *entry, const filter_condition *c,
                                           lode_error *err) {
  char field[REMOTE_FIELD_BYTES];
  bool range = c->n_values == 0;
  remote_point_field(range ? 'x' : 'f', c->key, field);
  TRY(remote_index_field(s->c, entry, field, range ? "float" : "keyword", err));
  if (range)
    prefilter_put_range(&s->prefilter, c, field);
  else
    prefilter_put_values(&s->prefilter, c, field);
  return LODE_OK;
}

static lode_status prefilter_put_probe(remote_select *s, const remote_entry *entry, const filter_probe *p,
                                       lode_error *err) {
  strbuf *out = &s->prefilter;
  for (size_t i = 0; i < p->n; i++)
    if (!prefilter_can_say(&p->any[i])) return LODE_OK;
  if (out->len) strbuf_addch(out, ',');
  if (p->n > 1) strbuf_addstr(out, "{\"should\":[");
  for (size_t i = 0; i < p->n; i++) {
    if (i) strbuf_addch(out, ',');
    TRY(prefilter_put_condition(s, entry, &p->any[i], err));
  }
  if (p->n > 1) strbuf_addstr(out, "]}");
  return LODE_OK;
}

lode_status remote_select_plan(remote_select *s, const remote_entry *entry, lode_error *err) {
  const filter_probe *probes;
  size_t n = s->has_filter ? filter_get_probes(s->filter, &probes) : 0;
  s->prefilter.len = 0;
  if (s->pending_only) strbuf_addstr(&s->prefilter, "{\"key\":\"p\",\"match\":{\"value\":true}}");
  for (size_t i = 0; i < n; i++) TRY(prefilter_put_probe(s, entry, &probes[i], err));
  return s->prefilter.failed ? err_nomem(err) : LODE_OK;
}

lode_status remote_select_match(remote_select *s, const remote_point *p, bool *match, lode_error *err) {
  *match = !s->pending_only || p->pending;
  if (!*match || !s->has_filter) return LODE_OK;
  return filter_eval_match(s->eval, p->metadata, p->document, match, err);
}

void remote_select_put_filter(strbuf *out, const remote_select *s, lode_str more) {
  if (!s->prefilter.len && !more.len) return;
  strbuf_addstr(out, ",\"filter\":{\"must\":[");
  strbuf_add(out, s->prefilter.data, s->prefilter.len);
  if (s->prefilter.len && more.len) strbuf_addch(out, ',');
  strbuf_add(out, more.data, more.len);
  strbuf_addstr(out, "]}");
}
