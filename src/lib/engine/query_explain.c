/* SPDX-License-Identifier: Apache-2.0 */
/* query_explain.c - the plan of a query and what was done, for lode_result_explain(). */
#include "engine/query_explain.h"

static void explain_filter(iface_explain *e, const engine_facts *f, const engine_plan *p, const engine_select *s,
                           const engine_trace *t) {
  iface_explain_step(e, "filter", engine_matches_name(p->matches), p->matches_why);
  iface_explain_count(e, "attempt", f->attempt + 1);
  if (p->share > 0) iface_explain_real(e, "expected_share", p->share);
  if (p->matches == ENGINE_MATCHES_POST && f->snapshot) {
    iface_explain_count(e, "spent", f->spent);
    iface_explain_count(e, "charge", p->charge);
  }
  if (s->probe) iface_explain_str(e, "probe", s->probe->any[0].key);
  if (s->probe && s->probe->n > 1) iface_explain_count(e, "conditions", s->probe->n);
  if (s->probes) iface_explain_count(e, "probes", s->probes);
  if (f->proposes) iface_explain_count(e, "proposals", f->proposals);
  if (f->proposes) iface_explain_count(e, "unindexed", f->unindexed);
  if (engine_plan_lists(p)) {
    iface_explain_count(e, "evaluated", t->listed ? s->evaluated : 0);
    iface_explain_count(e, "listed", f->listed);
  }
  iface_explain_ms(e, t->ns[ENGINE_PART_FILTER]);
}

static void explain_ways(iface_explain *e, unsigned ways) {
  static const struct {
    unsigned way;
    const char *name;
  } names[] = {{INDEX_BY_WALK, "walk"},
               {INDEX_BY_WALK_ALLOWED, "walk over matches"},
               {INDEX_BY_SCAN, "scan of codes"},
               {INDEX_BY_EXACT, "exact scan"},
               {INDEX_BY_FILTERED, "graph of the filter"}};
  char text[96] = "";
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t len = strlen(text);
    if (ways & names[i].way) snprintf(text + len, sizeof text - len, "%s%s", len ? ", " : "", names[i].name);
  }
  if (text[0]) iface_explain_str(e, "ways", str_of(text));
}

static void explain_vectors(iface_explain *e, const engine_facts *f, const engine_plan *p, const engine_trace *t) {
  iface_explain_step(e, "vectors", engine_vectors_name(p->vectors), p->vectors_why);
  iface_explain_count(e, "candidates", p->candidates);
  if (p->vectors == ENGINE_VECTORS_INDEX || p->vectors == ENGINE_VECTORS_CODES)
    iface_explain_count(e, "per_segment", p->per_segment);
  if (f->known & ENGINE_FACT_SNAPSHOT) iface_explain_count(e, "indexed", f->indexed);
  if (t->segments) {
    iface_explain_count(e, "segments", t->segments);
    explain_ways(e, t->index.ways);
    iface_explain_count(e, "hops", t->index.hops);
    iface_explain_count(e, "distances", t->index.distances);
    iface_explain_count(e, "reranked", t->index.vectors);
    iface_explain_count(e, "vectors_read", t->index.vectors_read);
  }
  iface_explain_count(e, "scanned", t->scanned);
  iface_explain_count(e, "read", t->by_key);
  if (t->damaged) iface_explain_count(e, "damaged", t->damaged);
  iface_explain_ms(e, t->ns[ENGINE_PART_VECTORS]);
}

void engine_explain_attempt(iface_explain *e, const engine_facts *f, const engine_plan *p, const engine_select *s,
                            const engine_trace *t, bool again) {
  if (!e->on) return;
  if (f->selects) explain_filter(e, f, p, s, t);
  if (f->mode != LODE_BY_TEXT) explain_vectors(e, f, p, t);
  if (p->text) {
    iface_explain_step(e, "text", "BM25", NULL);
    iface_explain_count(e, "words", t->words);
    iface_explain_count(e, "with_a_word", t->with_word);
    iface_explain_count(e, "not_indexed", t->tail);
    iface_explain_count(e, "scored", t->scored);
    iface_explain_ms(e, t->ns[ENGINE_PART_TEXT]);
  }
  if (p->fuse) {
    iface_explain_step(e, "fusion", "reciprocal ranks", NULL);
    iface_explain_count(e, "of_each", f->want);
  }
  iface_explain_step(e, "rows", again ? "incomplete" : "complete",
                     again ? "too few candidates are live and match, or one changed meanwhile: the next attempt asks "
                             "for more"
                           : NULL);
  iface_explain_count(e, "attempt", f->attempt + 1);
  iface_explain_count(e, "queries", f->queries);
  iface_explain_count(e, "records", f->records);
  iface_explain_count(e, "confirmed", t->confirmed);
  iface_explain_count(e, "matched", t->matched);
  iface_explain_count(e, "rows", t->rows);
  iface_explain_ms(e, t->ns[ENGINE_PART_ROWS]);
}
