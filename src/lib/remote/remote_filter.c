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

static void prefilter_put_values(strbuf *out, const filter_probe *probe, const char *field) {
  strbuf word = {0};
  strbuf_addf(out, "{\"key\":\"%s\",\"match\":{\"any\":[", field);
  for (size_t i = 0; i < probe->n_values; i++) {
    word.len = 0;
    (void)remote_value_to_word(&word, &probe->values[i]);
    if (i) strbuf_addch(out, ',');
    json_put_string(out, (lode_str){word.data, word.len});
  }
  strbuf_addstr(out, "]}}");
  if (word.failed) out->failed = true;
  strbuf_release(&word);
}

static bool prefilter_is_number(const meta_value *v) { return v->type == META_INT || v->type == META_DOUBLE; }

/* Each bound is widened by one step, because an integer may not fit a double; the filter decides anyway. */
static void prefilter_put_range(strbuf *out, const filter_probe *probe, const char *field) {
  strbuf_addf(out, "{\"key\":\"%s\",\"range\":{", field);
  if (probe->has_low) {
    double low = probe->low.type == META_INT ? (double)probe->low.i : probe->low.d;
    strbuf_addstr(out, "\"gte\":");
    json_put_double(out, nextafter(low, -INFINITY));
  }
  if (probe->has_high) {
    double high = probe->high.type == META_INT ? (double)probe->high.i : probe->high.d;
    strbuf_addstr(out, probe->has_low ? ",\"lte\":" : "\"lte\":");
    json_put_double(out, nextafter(high, INFINITY));
  }
  strbuf_addstr(out, "}}");
}

lode_status remote_select_plan(remote_select *s, const remote_entry *entry, lode_error *err) {
  const filter_probe *probes;
  size_t n = s->has_filter ? filter_get_probes(s->filter, &probes) : 0;
  strbuf *out = &s->prefilter;
  out->len = 0;
  if (s->pending_only) strbuf_addstr(out, "{\"key\":\"p\",\"match\":{\"value\":true}}");
  for (size_t i = 0; i < n; i++) {
    const filter_probe *p = &probes[i];
    char field[REMOTE_FIELD_BYTES];
    bool range = p->n_values == 0;
    if (!range && p->n_values > REMOTE_MAX_VALUES) continue;
    if (range && ((p->has_low && !prefilter_is_number(&p->low)) || (p->has_high && !prefilter_is_number(&p->high))))
      continue;
    remote_point_field(range ? 'x' : 'f', p->key, field);
    TRY(remote_index_field(s->c, entry, field, range ? "float" : "keyword", err));
    if (out->len) strbuf_addch(out, ',');
    if (range)
      prefilter_put_range(out, p, field);
    else
      prefilter_put_values(out, p, field);
  }
  return out->failed ? err_nomem(err) : LODE_OK;
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
