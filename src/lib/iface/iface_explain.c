/* SPDX-License-Identifier: Apache-2.0 */
/* iface_explain.c - writes the explanation of a query. */
#include "iface/iface_explain.h"

#include "base/json.h"

static bool explain_writes(const iface_explain *e) { return e->on && e->steps <= IFACE_EXPLAIN_MAX_STEPS; }

static void explain_name(iface_explain *e, const char *name) {
  if (e->json.data[e->json.len - 1] != '{') strbuf_addch(&e->json, ',');
  json_put_string(&e->json, str_of(name));
  strbuf_addch(&e->json, ':');
}

void iface_explain_step(iface_explain *e, const char *step, const char *method, const char *why) {
  e->steps++;
  if (!explain_writes(e)) return;
  strbuf_addstr(&e->json, e->steps == 1 ? "{\"steps\":[{" : "},{");
  if (e->json.failed) return;
  iface_explain_str(e, "step", str_of(step));
  if (method) iface_explain_str(e, "method", str_of(method));
  if (why) iface_explain_str(e, "why", str_of(why));
}

void iface_explain_str(iface_explain *e, const char *name, lode_str text) {
  if (!explain_writes(e) || e->json.failed || !text.data) return;
  explain_name(e, name);
  json_put_string(&e->json, text);
}

void iface_explain_count(iface_explain *e, const char *name, uint64_t n) {
  if (!explain_writes(e) || e->json.failed) return;
  explain_name(e, name);
  strbuf_addf(&e->json, "%llu", (unsigned long long)n);
}

void iface_explain_real(iface_explain *e, const char *name, double x) {
  if (!explain_writes(e) || e->json.failed) return;
  explain_name(e, name);
  json_put_double(&e->json, x);
}

void iface_explain_ms(iface_explain *e, uint64_t ns) { iface_explain_real(e, "ms", (double)(ns / 1000) / 1000); }

void iface_explain_query(iface_explain *e, const lode_query_request *r) {
  iface_explain_step(e, "query",
                     r->mode == LODE_BY_VECTOR ? "by vector"
                     : r->mode == LODE_BY_TEXT ? "by text"
                                               : "hybrid",
                     NULL);
  iface_explain_count(e, "queries", r->n);
  iface_explain_count(e, "k", r->k);
}

lode_status iface_explain_finish(iface_explain *e, lode_result *result, lode_error *err) {
  if (!e->on) return LODE_OK;
  strbuf_addstr(&e->json, e->steps ? "}]" : "{\"steps\":[]");
  if (e->steps > IFACE_EXPLAIN_MAX_STEPS)
    strbuf_addf(&e->json, ",\"left_out\":%llu", (unsigned long long)(e->steps - IFACE_EXPLAIN_MAX_STEPS));
  strbuf_addch(&e->json, '}');
  if (e->json.failed) return err_nomem(err);
  return iface_result_copy(result, (lode_str){e->json.data, e->json.len}, &result->explanation, err);
}

void iface_explain_release(iface_explain *e) { strbuf_release(&e->json); }
