/* SPDX-License-Identifier: Apache-2.0 */
/* remote_query.c - queries by vector, by text, and hybrid.
 *
 * Qdrant is asked for a few more records than requested, with their vectors: distances are computed here, so that
 * they equal those of an embedded store to the bit. The filter is evaluated on each record. If too few match, or if
 * the last requested record is about as far as the last one returned (there may be more at that distance, and ties
 * are broken by id), twice as many are requested, until there are enough or no more. Fusion is done here
 * (query/fuse.h): it has weights, and is the same as in an embedded store.
 */
#include "remote/remote_select.h"

#include "iface/iface_explain.h"
#include "kernel/kernel.h"
#include "os/os.h"
#include "query/fuse.h"

#include <math.h>

#define REMOTE_QUERY_ROUNDING 1e-5 /* Qdrant sums floats in another order, so its ranking may differ within this */

enum {
  REMOTE_QUERY_GROUP = 32,          /* vector queries per request */
  REMOTE_QUERY_SLACK = 4,           /* records requested beyond those wanted */
  REMOTE_QUERY_MAX_LIMIT = 1 << 30, /* records requested at most */
  REMOTE_QUERY_MAX_IDS = 20000,     /* ids per request */
};

typedef struct remote_hit {
  remote_point p; /* strings in the arena */
  double distance, score;
  size_t order; /* not used */
} remote_hit;

typedef struct remote_hits {
  remote_hit *v;
  size_t n, cap;
} remote_hits;

typedef struct remote_query_run {
  remote_collection *c;
  const lode_query_request *request;
  remote_select select;
  remote_entry entry;
  mem_arena arena;
  remote_call call;
  strbuf vector;
  strbuf only; /* the has_id condition */
  lode_result *result;
  double vector_weight, text_weight;
  iface_explain explain;
  uint64_t sent_ns; /* when the request was sent */
} remote_query_run;

/* One search of Qdrant for one of the queries, and its hits. */
typedef struct remote_search {
  size_t query; /* its index in the request */
  bool words;   /* by text; else by vector */
  size_t want;  /* hits */
  size_t limit; /* points to ask for: more, because some may not match */
  remote_hits hits;
  size_t given; /* points in the response */
  double last;  /* distance or score of the last of them */
} remote_search;

/* ---- Requests ---- */

static lode_status remote_query_put_search(remote_query_run *q, const remote_search *s, lode_error *err) {
  const lode_query_request *r = q->request;
  strbuf *out = &q->call.body;
  bool any;
  strbuf_addstr(out, "{\"query\":");
  if (s->words) {
    TRY(remote_sparse_vector(out, r->texts[s->query], true, &any, err));
    strbuf_addstr(out, ",\"using\":\"t\"");
  } else {
    json_put_vector(out, r->vectors + s->query * r->dimension, r->dimension);
    strbuf_addstr(out, ",\"using\":\"v\",\"params\":{");
    if (r->exact || r->target_recall >= 1)
      strbuf_addstr(out, "\"exact\":true}");
    else {
      if (r->effort) strbuf_addf(out, "\"hnsw_ef\":%u,", r->effort);
      strbuf_addstr(out, "\"quantization\":{\"rescore\":true,\"oversampling\":2.0}}");
    }
  }
  strbuf_addf(out, ",\"limit\":%zu,", s->limit);
  remote_point_put_wanted(out, r->include | (s->words ? 0u : LODE_VECTOR), remote_select_needs_doc(&q->select),
                          q->entry.metric, q->entry.spec.dim != 0);
  remote_select_put_filter(out, &q->select, (lode_str){q->only.data, q->only.len});
  strbuf_addch(out, '}');
  return LODE_OK;
}

/* The distance of a point to a query; one that overflows is infinite. */
static lode_status remote_query_distance(const remote_query_run *q, size_t query, const remote_point *p,
                                         double *distance, lode_error *err) {
  const float *v = q->request->vectors + query * q->request->dimension;
  if (!p->vector || p->dim != q->request->dimension)
    return err_set(err, LODE_CORRUPT,
                   "the cluster found a point without the vector that it was found by: run `lode db verify`");
  float d = kernel_distance(q->entry.metric, v, kernel_dot(v, v, p->dim), p->vector, p->dim);
  *distance = isnan(d) ? INFINITY : d;
  return LODE_OK;
}

static bool remote_query_copy_point(mem_arena *arena, const remote_point *from, remote_point *to) {
  lode_str *strings[] = {&to->id, &to->document, &to->metadata};
  *to = *from;
  for (size_t i = 0; i < 3; i++)
    if (strings[i]->data && !(strings[i]->data = mem_arena_copy(arena, strings[i]->data, strings[i]->len)))
      return false;
  if (from->vector) to->vector = mem_arena_copy(arena, from->vector, (size_t)from->dim * sizeof(float));
  return !from->vector || to->vector;
}

/* The points of one response that match. */
static lode_status remote_query_take_points(remote_query_run *q, uint32_t node, remote_search *s, lode_error *err) {
  const json_doc *j = &q->call.answer;
  remote_hits *h = &s->hits;
  uint32_t points = j->nodes[node].type == JSON_NODE_OBJECT ? json_get(j, node, STR_LIT("points")) : 0;
  bool with_vector = !s->words || (q->request->include & LODE_VECTOR);
  h->n = s->given = 0;
  s->last = NAN;
  if (!points || j->nodes[points].type != JSON_NODE_ARRAY)
    return err_set(err, LODE_CORRUPT, "the cluster's answer is not one of Qdrant's (no points)");
  for (uint32_t at = points + 1; at < j->nodes[points].next; at = j->nodes[at].next) {
    remote_hit x = {0};
    bool match;
    remote_point p;
    TRY(remote_point_decode(j, at, q->entry.metric, with_vector ? &q->vector : NULL, &p, err));
    x.score = s->words ? p.score : 0;
    x.distance = NAN;
    if (!s->words) TRY(remote_query_distance(q, s->query, &p, &x.distance, err));
    s->last = s->words ? p.score : x.distance;
    s->given++;
    TRY(remote_select_match(&q->select, &p, &match, err));
    if (!match) continue;
    if (!remote_query_copy_point(&q->arena, &p, &x.p) || !mem_grow(&h->v, &h->cap, h->n + 1, sizeof *h->v))
      return err_nomem(err);
    h->v[h->n++] = x;
  }
  return LODE_OK;
}

static int remote_compare_distance(const void *a, const void *b) {
  const remote_hit *x = a, *y = b;
  if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
  return str_cmp(x->p.id, y->p.id);
}

static int remote_compare_score(const void *a, const void *b) {
  const remote_hit *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return str_cmp(x->p.id, y->p.id);
}

/* Sorts the hits. Are there enough to be sure of the first `want`? If so, drops the others. */
static bool remote_query_has_enough(remote_search *s) {
  remote_hits *h = &s->hits;
  bool all = s->given < s->limit;
  if (h->n) qsort(h->v, h->n, sizeof *h->v, s->words ? remote_compare_score : remote_compare_distance);
  if (!all && h->n < s->want) return false;
  if (!all && s->want) {
    double edge = s->words ? h->v[s->want - 1].score : h->v[s->want - 1].distance;
    if (!isfinite(edge) || fabs(edge - s->last) <= REMOTE_QUERY_ROUNDING * (1 + fabs(edge))) return false;
  }
  if (h->n > s->want) h->n = s->want;
  return true;
}

static lode_status remote_query_send(remote_query_run *q, lode_error *err) {
  if (q->explain.on) q->sent_ns = os_api->now_ns();
  return remote_call_send(q->c->store, "POST", &q->call, err);
}

/* Sorts the hits, as remote_query_has_enough(), and explains the search. */
static bool remote_query_settle(remote_query_run *q, remote_search *s) {
  size_t matched = s->hits.n;
  bool enough = remote_query_has_enough(s);
  if (!q->explain.on) return enough;
  iface_explain_step(&q->explain, "search", s->words ? "words, by Qdrant" : "vectors, by Qdrant",
                     enough ? NULL : "too few match, or others may be as near as the last: more are asked for");
  iface_explain_str(&q->explain, "filter", (lode_str){q->select.prefilter.data, q->select.prefilter.len});
  if (q->select.what->ids) iface_explain_count(&q->explain, "ids", q->select.what->n_ids);
  iface_explain_count(&q->explain, "query", s->query);
  iface_explain_count(&q->explain, "limit", s->limit);
  iface_explain_count(&q->explain, "returned", s->given);
  iface_explain_count(&q->explain, "matched", matched); /* evaluated here */
  iface_explain_ms(&q->explain, os_api->now_ns() - q->sent_ns);
  return enough;
}

/* One search, repeated with a larger limit until there are enough hits. */
static lode_status remote_query_search_one(remote_query_run *q, remote_search *s, lode_error *err) {
  for (;;) {
    remote_generation_path(&q->call, q->c->store, &q->entry, "/points/query");
    TRY(remote_query_put_search(q, s, err));
    TRY(remote_query_send(q, err));
    TRY(remote_query_take_points(q, q->call.result, s, err));
    if (remote_query_settle(q, s) || s->limit >= REMOTE_QUERY_MAX_LIMIT) return LODE_OK;
    s->limit = s->limit > REMOTE_QUERY_MAX_LIMIT / 2 ? REMOTE_QUERY_MAX_LIMIT : s->limit * 2;
  }
}

static size_t remote_query_first_limit(const remote_query_run *q, size_t want) {
  size_t factor = q->select.has_filter ? 2 : 1;
  return want > (REMOTE_QUERY_MAX_LIMIT - REMOTE_QUERY_SLACK) / factor ? REMOTE_QUERY_MAX_LIMIT
                                                                       : want * factor + REMOTE_QUERY_SLACK;
}

static lode_status remote_query_has_words(remote_query_run *q, size_t query, bool *any, lode_error *err) {
  size_t before = q->vector.len;
  TRY(remote_sparse_vector(&q->vector, q->request->texts[query], true, any, err));
  q->vector.len = before;
  return LODE_OK;
}

/* Restricts the search to n of the selection's ids. */
static void remote_query_put_only(remote_query_run *q, const lode_str *ids, size_t n) {
  q->only.len = 0;
  strbuf_addstr(&q->only, "{\"has_id\":[");
  for (size_t i = 0; i < n; i++) {
    char uuid[REMOTE_UUID_BYTES];
    remote_point_uuid(ids[i], uuid);
    strbuf_addf(&q->only, i ? ",\"%s\"" : "\"%s\"", uuid);
  }
  strbuf_addstr(&q->only, "]}");
}

/* Sets s->hits. A long list of ids is searched in parts, and the best hits of all parts are taken. */
static lode_status remote_query_search(remote_query_run *q, remote_search *s, lode_error *err) {
  const lode_selection *what = q->select.what;
  remote_search part = {.query = s->query, .words = s->words, .want = s->want};
  remote_hits *h = &s->hits;
  lode_status st = LODE_OK;
  bool any = true;
  h->n = 0;
  if (s->words) TRY(remote_query_has_words(q, s->query, &any, err));
  if (!any) return LODE_OK;
  s->limit = remote_query_first_limit(q, s->want);
  if (!what->ids) return remote_query_search_one(q, s, err);
  for (size_t at = 0; at < what->n_ids; at += REMOTE_QUERY_MAX_IDS) {
    size_t n = what->n_ids - at < REMOTE_QUERY_MAX_IDS ? what->n_ids - at : REMOTE_QUERY_MAX_IDS;
    remote_query_put_only(q, what->ids + at, n);
    part.limit = s->limit < n + 1 ? s->limit : n + 1;
    TRY_GOTO(remote_query_search_one(q, &part, err));
    if (!mem_grow(&h->v, &h->cap, h->n + part.hits.n, sizeof *h->v)) TRY_GOTO(err_nomem(err));
    if (part.hits.n) memcpy(h->v + h->n, part.hits.v, part.hits.n * sizeof *h->v);
    h->n += part.hits.n;
  }
  if (h->n) qsort(h->v, h->n, sizeof *h->v, s->words ? remote_compare_score : remote_compare_distance);
  size_t n = 0;
  for (size_t i = 0; i < h->n && n < s->want; i++) /* skips an id that was in two parts */
    if (n == 0 || !str_eq(h->v[n - 1].p.id, h->v[i].p.id)) h->v[n++] = h->v[i];
  h->n = n;
done:
  mem_free(part.hits.v);
  return st;
}

/* ---- Many vectors at once ---- */

static lode_status remote_query_add_hits(remote_query_run *q, size_t query, const remote_hits *h, lode_error *err) {
  for (size_t i = 0; i < h->n; i++) {
    lode_row *row;
    TRY(remote_result_add(q->result, &h->v[i].p, q->request->include, &row, err));
    row->query = query;
    row->rank = i;
    row->distance = h->v[i].distance;
    row->score = h->v[i].score;
  }
  return LODE_OK;
}

/* Several queries in one request; those without enough hits are repeated one by one. */
static lode_status remote_query_search_group(remote_query_run *q, size_t first, size_t n, lode_error *err) {
  size_t want = q->request->k, limit = remote_query_first_limit(q, want);
  remote_search searches[REMOTE_QUERY_GROUP] = {{.query = first}};
  lode_status st = LODE_OK;
  remote_generation_path(&q->call, q->c->store, &q->entry, "/points/query/batch");
  strbuf_addstr(&q->call.body, "{\"searches\":[");
  for (size_t i = 0; i < n; i++) {
    searches[i] = (remote_search){.query = first + i, .want = want, .limit = limit};
    if (i) strbuf_addch(&q->call.body, ',');
    TRY_GOTO(remote_query_put_search(q, &searches[i], err));
  }
  strbuf_addstr(&q->call.body, "]}");
  TRY_GOTO(remote_query_send(q, err));
  const json_doc *j = &q->call.answer;
  uint32_t at = q->call.result + 1;
  if (j->nodes[q->call.result].type != JSON_NODE_ARRAY || j->nodes[q->call.result].u.count != n)
    TRY_GOTO(err_set(err, LODE_CORRUPT, "the cluster's answer is not one of Qdrant's (%zu results were asked for)", n));
  for (size_t i = 0; i < n; i++, at = j->nodes[at].next) TRY_GOTO(remote_query_take_points(q, at, &searches[i], err));
  for (size_t i = 0; i < n; i++) {
    if (!remote_query_settle(q, &searches[i])) {
      searches[i].limit *= 2;
      TRY_GOTO(remote_query_search_one(q, &searches[i], err));
    }
    TRY_GOTO(remote_query_add_hits(q, first + i, &searches[i].hits, err));
  }
done:
  for (size_t i = 0; i < n; i++) mem_free(searches[i].hits.v);
  return st;
}

/* ---- Hybrid ---- */

/* Computes the distances of hits that were found by text only. */
static lode_status remote_query_measure(remote_query_run *q, size_t query, remote_hits *h, lode_error *err) {
  lode_selection what = *q->select.what;
  lode_str *ids = mem_calloc(h->n, sizeof *ids);
  const lode_selection *before = q->select.what;
  remote_search near = {.query = query};
  lode_status st = LODE_OK;
  size_t n = 0;
  if (!ids) return err_nomem(err);
  for (size_t i = 0; i < h->n; i++)
    if (isnan(h->v[i].distance) && !h->v[i].p.pending) ids[n++] = h->v[i].p.id;
  if (n == 0) goto done;
  what.ids = ids;
  what.n_ids = n;
  q->select.what = &what;
  near.want = n;
  st = remote_query_search(q, &near, err);
  q->select.what = before;
  for (size_t i = 0; i < near.hits.n && st == LODE_OK; i++)
    for (size_t k = 0; k < h->n; k++)
      if (str_eq(h->v[k].p.id, near.hits.v[i].p.id)) h->v[k].distance = near.hits.v[i].distance;
done:
  mem_free(ids);
  mem_free(near.hits.v);
  return st;
}

/* Fusion needs a key for each record: its index in `near`, or na + its index in `text` if it is only there. */
static lode_status remote_query_fuse(remote_query_run *q, remote_hits *near, remote_hits *text, remote_hits *joined,
                                     lode_error *err) {
  size_t na = near->n, nb = text->n, n = 0;
  lode_status st = LODE_OK;
  uint64_t *keys = mem_calloc(na + nb, sizeof *keys);
  fuse_ranked *ranked = mem_calloc(na + nb, sizeof *ranked);
  if (!keys || !ranked || !mem_grow(&joined->v, &joined->cap, na + nb, sizeof *joined->v)) {
    st = err_nomem(err);
    goto done;
  }
  for (size_t i = 0; i < na; i++) keys[i] = i;
  for (size_t i = 0; i < nb; i++) {
    size_t same = 0;
    while (same < na && !str_eq(near->v[same].p.id, text->v[i].p.id)) same++;
    keys[na + i] = same < na ? same : na + i;
  }
  n = fuse_rankings((fuse_ranking){keys, na, q->vector_weight}, (fuse_ranking){keys + na, nb, q->text_weight}, ranked);
  joined->n = 0;
  for (size_t i = 0; i < n; i++) {
    joined->v[joined->n] = ranked[i].key < na ? near->v[ranked[i].key] : text->v[ranked[i].key - na];
    joined->v[joined->n++].score = ranked[i].score;
  }
  if (joined->n) qsort(joined->v, joined->n, sizeof *joined->v, remote_compare_score);
done:
  mem_free(keys);
  mem_free(ranked);
  return st;
}

static lode_status remote_query_hybrid(remote_query_run *q, size_t query, lode_error *err) {
  size_t want = fuse_depth(q->request->k);
  remote_search near = {.query = query, .want = want}, text = {.query = query, .words = true, .want = want};
  remote_hits joined = {0};
  lode_status st = LODE_OK;
  if (q->entry.spec.dim) TRY_GOTO(remote_query_search(q, &near, err));
  TRY_GOTO(remote_query_search(q, &text, err));
  TRY_GOTO(remote_query_fuse(q, &near.hits, &text.hits, &joined, err));
  iface_explain_step(&q->explain, "fusion", "reciprocal ranks", NULL);
  iface_explain_count(&q->explain, "of_each", want);
  if (joined.n > q->request->k) joined.n = q->request->k;
  if (q->entry.spec.dim) TRY_GOTO(remote_query_measure(q, query, &joined, err));
  st = remote_query_add_hits(q, query, &joined, err);
done:
  mem_free(near.hits.v);
  mem_free(text.hits.v);
  mem_free(joined.v);
  return st;
}

/* ---- The public function ---- */

static lode_status remote_query_check(const remote_query_run *q, lode_error *err) {
  const lode_query_request *r = q->request;
  uint32_t dim = q->entry.spec.dim;
  if (r->mode == LODE_BY_TEXT) return LODE_OK;
  TRY(iface_check_embedder(&q->c->spec, &q->entry.spec, err));
  if (dim && r->dimension != dim)
    return err_set(
        err, LODE_MISMATCH,
        "the query has %u dimensions, and the collection's vectors have %u: use the model that they were made with",
        r->dimension, dim);
  return LODE_OK;
}

static lode_status remote_query_execute(remote_query_run *q, bool fresh, lode_error *err) {
  const lode_query_request *r = q->request;
  TRY(remote_entry_of(q->c, fresh, &q->arena, &q->entry, err));
  if (!q->entry.spec.dim && r->mode != LODE_BY_TEXT && !fresh)
    TRY(remote_entry_of(q->c, true, &q->arena, &q->entry, err));
  TRY(remote_query_check(q, err));
  if (r->k == 0) return LODE_OK;
  TRY(remote_select_plan(&q->select, &q->entry, err));
  for (size_t at = 0; at < r->n;) {
    size_t n = r->n - at < REMOTE_QUERY_GROUP ? r->n - at : REMOTE_QUERY_GROUP;
    remote_search s = {.query = at, .words = r->mode == LODE_BY_TEXT, .want = r->k};
    lode_status st = LODE_OK;
    if (r->mode == LODE_BY_VECTOR && !r->select.ids) {
      if (q->entry.spec.dim) TRY(remote_query_search_group(q, at, n, err));
      at += n;
      continue;
    }
    if (r->mode == LODE_HYBRID) {
      st = remote_query_hybrid(q, at, err);
    } else if (r->mode == LODE_BY_TEXT || q->entry.spec.dim) {
      st = remote_query_search(q, &s, err);
      if (st == LODE_OK) st = remote_query_add_hits(q, at, &s.hits, err);
    }
    mem_free(s.hits.v);
    TRY(st);
    at++;
  }
  return LODE_OK;
}

lode_status remote_query(lode_collection *head, const lode_query_request *request, lode_result **out, lode_error *err) {
  remote_collection *c = remote_collection_of(head);
  remote_query_run q = {.c = c, .request = request};
  lode_status st;
  err_clear(err);
  *out = NULL;
  mem_arena_init(&q.arena, 0);
  q.call.progress = request->progress;
  TRY_GOTO(iface_check_query(request, err));
  iface_query_weights(request, &q.vector_weight, &q.text_weight);
  TRY_GOTO(remote_select_init(&q.select, c, &request->select, err));
  q.explain.on = request->explain != 0;
  iface_explain_query(&q.explain, request);
  for (int attempt = 0;; attempt++) {
    TRY_GOTO(iface_result_new(c->store->head.options->memory_bytes, &q.result, err));
    st = remote_query_execute(&q, attempt > 0, err);
    if (st != LODE_NOT_FOUND || attempt > 0) break;
    lode_result_free(q.result); /* the generation has changed, or the collection was dropped */
    q.result = NULL;
  }
  TRY_GOTO(st);
  err_clear(err);
  TRY_GOTO(iface_explain_finish(&q.explain, q.result, err));
  *out = q.result;
  q.result = NULL;
done:
  lode_result_free(q.result);
  iface_explain_release(&q.explain);
  remote_select_release(&q.select);
  remote_call_release(&q.call);
  strbuf_release(&q.vector);
  strbuf_release(&q.only);
  mem_arena_release(&q.arena);
  return st;
}
