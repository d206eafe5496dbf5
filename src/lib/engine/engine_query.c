/* SPDX-License-Identifier: Apache-2.0 */
/* engine_query.c - the three kinds of query.
 *
 * A request of many queries is processed in groups, each of one moment (reader.c). For each group:
 *   1. the planner (query_plan.c) decides how the selection is applied; the facts that it needs are fetched here, and
 *      the list of matching records is made if the plan has one
 *   2. nearest.c and engine_text.c find candidates
 *   3. every candidate is read: it must be live, still have the vector that was measured, and match the filter; the
 *      rest is sorted, ties by id, and becomes rows
 * The list of a filter is cached with the snapshot of vectors (filter_cache.c) until something is written. When too few
 * hits are left although there were more candidates, the group is planned and answered again, asking for more; the last
 * attempt reads every vector from the database file.
 */
#include "engine/engine_text.h"
#include "engine/filter_cache.h"
#include "engine/nearest.h"

#include "os/os.h"
#include "query/fuse.h"

#include <math.h>

typedef struct query_run {
  engine_collection *handle;
  const lode_query_request *request;
  double vector_weight, text_weight;
  engine_reader reader;
  engine_select select;
  engine_facts facts;
  engine_plan plan;
  engine_trace trace;      /* of this attempt */
  engine_moment facts_at;  /* the moment of the facts about the selection */
  const engine_rids *list; /* if the plan has one: `only`, or a list of the filter cache */
  engine_rids only;
  engine_snapshot *held; /* referenced while `list` is in use */
  strbuf key;            /* the filter's key in the filter cache; empty: none */
  lode_result *result;
  mem_arena arena;        /* ids of one attempt */
  size_t first, n;        /* the group */
  size_t rows;            /* of the groups before */
  engine_hits near, text; /* of one query */
  iface_explain explain;
  uint64_t lap_ns; /* when the part that is being timed began */
} query_run;

/* Adds the time since the last call to a part. */
static void query_lap(query_run *q, engine_part part) {
  if (!q->explain.on) return;
  uint64_t now = os_api->now_ns();
  q->trace.ns[part] += now - q->lap_ns;
  q->lap_ns = now;
}

/* Absent: the selection has no key in the filter cache. */
static lode_str query_filter_key(const query_run *q) {
  return q->key.len ? (lode_str){q->key.data, q->key.len} : (lode_str){NULL, 0};
}

/* NULL: all records are searched. */
static const engine_rids *query_list(const query_run *q) { return engine_plan_lists(&q->plan) ? q->list : NULL; }

/* ---- Checks ---- */

static lode_status query_check_against(const query_run *q, lode_error *err) {
  const lode_query_request *r = q->request;
  const store_coll *coll = &q->reader.coll;
  if (r->mode == LODE_BY_TEXT) return LODE_OK;
  iface_vector_spec spec = engine_coll_vector_spec(coll);
  TRY(iface_check_embedder(&q->handle->spec, &spec, err));
  uint32_t dim = coll->dim ? coll->dim : coll->embedder_dim;
  if (dim && dim != r->dimension)
    return err_set(err, LODE_MISMATCH,
                   "the query has %u dimensions, and the vectors of the collection have %u: embed it with the model "
                   "that those were made with",
                   r->dimension, dim);
  return LODE_OK;
}

/* ---- Hits ---- */

static int query_compare_distance(const void *a, const void *b) {
  const engine_hit *x = a, *y = b;
  if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
  return str_cmp(x->id, y->id);
}

static int query_compare_score(const void *a, const void *b) {
  const engine_hit *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return str_cmp(x->id, y->id);
}

void engine_hits_sort(engine_hits *hits, bool larger_first) {
  if (hits->n) qsort(hits->v, hits->n, sizeof *hits->v, larger_first ? query_compare_score : query_compare_distance);
}

/* Reads a candidate in the current transaction: *found if it is live, has this vector and matches. */
static lode_status query_read_hit(query_run *q, int64_t rid, int64_t vid, bool *found, bool *changed, engine_hit *hit,
                                  lode_error *err) {
  store_rec rec;
  *changed = false;
  TRY(store_rec_read(q->reader.tx, rid, &rec, found, err));
  if (*found && rec.vid != vid) {
    *changed = true;
    *found = false;
  }
  if (*found && q->facts.selects) TRY(engine_select_eval(&q->select, &rec, found, err));
  if (!*found) return LODE_OK;
  bool metadata = rec.metadata.data && (q->request->include & LODE_METADATA);
  char *id = mem_arena_copy(&q->arena, rec.id.data, rec.id.len);
  char *meta = metadata ? mem_arena_copy(&q->arena, rec.metadata.data, rec.metadata.len) : NULL;
  if (!id || (metadata && !meta)) return err_nomem(err);
  rec.id.data = id;
  rec.metadata = (lode_str){meta, meta ? rec.metadata.len : 0};
  *hit = (engine_hit){.rid = rid, .vid = vid, .id = rec.id, .rec = rec, .seen = q->reader.count};
  return LODE_OK;
}

/* The candidates of one query that are confirmed, best first, until there are enough. *again: too few, although more
 * could have been found. */
static lode_status query_confirm_hits(query_run *q, engine_best *best, size_t want, engine_hits *hits, bool *again,
                                      lode_error *err) {
  hits->n = 0;
  q->reader.taken = true;
  kernel_topk_sort(&best->top);
  for (size_t i = 0; i < best->top.n + best->n_ties; i++) {
    const kernel_neighbour *c = i < best->top.n ? &best->top.heap[i] : &best->ties[i - best->top.n];
    engine_hit hit;
    bool found, changed;
    if (c->distance > best->reach || (hits->n >= want && c->distance > hits->v[hits->n - 1].distance)) break;
    TRY(query_read_hit(q, c->key, c->aux, &found, &changed, &hit, err));
    q->trace.confirmed++;
    q->trace.matched += found;
    if (changed && q->plan.vectors == ENGINE_VECTORS_BY_RECORD) *again = true; /* it may be nearer now */
    if (!found) continue;
    hit.distance = c->distance;
    if (!mem_grow(&hits->v, &hits->cap, hits->n + 1, sizeof *hits->v)) return err_nomem(err);
    hits->v[hits->n++] = hit;
  }
  if (hits->n < want && best->full) *again = true;
  engine_hits_sort(hits, false);
  if (hits->n > want) hits->n = want;
  return LODE_OK;
}

/* ---- Rows ---- */

static lode_status query_add_row(query_run *q, size_t query, size_t rank, const engine_hit *hit, bool *again,
                                 lode_error *err) {
  store_rec rec = hit->rec;
  lode_row *row;
  bool found = true;
  if (hit->seen != q->reader.count) TRY(store_rec_read(q->reader.tx, hit->rid, &rec, &found, err));
  if (!found || rec.vid != hit->vid) {
    *again = true; /* changed since the transaction that found it */
    return LODE_OK;
  }
  TRY(engine_result_add(q->result, &q->reader, &rec, q->request->include, &row, err));
  row->query = query;
  row->rank = rank;
  row->distance = hit->distance;
  row->score = hit->score;
  return LODE_OK;
}

static lode_status query_add_rows(query_run *q, size_t query, const engine_hits *hits, bool *again, lode_error *err) {
  for (size_t i = 0; i < hits->n && !*again; i++) TRY(query_add_row(q, query, i, &hits->v[i], again, err));
  return LODE_OK;
}

/* ---- Text and hybrid ---- */

static lode_status query_search_text(query_run *q, size_t query, size_t want, bool skip_common, lode_error *err) {
  engine_text_query t = {
      .text = q->request->texts[query],
      .want = want,
      .select = q->facts.selects ? &q->select : NULL,
      .only = query_list(q),
      .max_tail = q->request->most_unindexed,
      .arena = &q->arena,
      .skip_common = skip_common,
      .trace = &q->trace,
  };
  query_lap(q, ENGINE_PART_ROWS);
  TRY(engine_text_search(&q->reader, &t, &q->text, err));
  query_lap(q, ENGINE_PART_TEXT);
  return LODE_OK;
}

/* Computes the distances of hits found by text alone. */
static lode_status query_measure_hits(query_run *q, size_t query, engine_hits *hits, bool *again, lode_error *err) {
  const store_coll *coll = &q->reader.coll;
  const float *v = coll->dim ? q->request->vectors + query * coll->dim : NULL;
  lode_status st = LODE_OK;
  float *row = mem_alloc((size_t)coll->dim * sizeof *row);
  if (!row) return err_nomem(err);
  float norm = v ? kernel_dot(v, v, coll->dim) : 0;
  for (size_t i = 0; i < hits->n && v; i++) {
    store_rec rec;
    bool found;
    if (!isnan(hits->v[i].distance) || !hits->v[i].vid) continue;
    TRY_GOTO(store_rec_read(q->reader.tx, hits->v[i].rid, &rec, &found, err));
    if (!found || rec.vid != hits->v[i].vid) {
      *again = true;
      goto done;
    }
    TRY_GOTO(store_rec_vector(q->reader.tx, hits->v[i].vid, row, coll->dim, err));
    float d = kernel_distance(coll->metric, v, norm, row, coll->dim);
    hits->v[i].distance = isnan(d) ? INFINITY : d;
  }
done:
  mem_free(row);
  return st;
}

static int query_compare_rid(const void *a, const void *b) {
  const engine_hit *x = a, *y = b;
  return (x->rid > y->rid) - (x->rid < y->rid);
}

/* Joins both lists into `joined`, ordered by fused score. Fusion goes by rank, and a rank means nothing if the score
 * does not: records found only by words without weight are in the result, but gain nothing from their rank. */
static lode_status query_fuse(query_run *q, engine_hits *joined, lode_error *err) {
  size_t na = q->near.n, nb = q->text.n, n = 0, n_scored = 0;
  lode_status st = LODE_OK;
  uint64_t *keys = mem_calloc(na + nb, sizeof *keys);
  fuse_ranked *ranked = mem_calloc(na + nb, sizeof *ranked);
  if (!keys || !ranked || !mem_grow(&joined->v, &joined->cap, na + nb, sizeof *joined->v)) {
    st = err_nomem(err);
    goto done;
  }
  for (size_t i = 0; i < na; i++) keys[i] = (uint64_t)q->near.v[i].rid;
  while (n_scored < nb && q->text.v[n_scored].score > 0) n_scored++;
  for (size_t i = 0; i < nb; i++) keys[na + i] = (uint64_t)q->text.v[i].rid;
  n = fuse_rankings((fuse_ranking){keys, na, q->vector_weight}, (fuse_ranking){keys + na, n_scored, q->text_weight},
                    ranked);
  if (q->near.n) qsort(q->near.v, q->near.n, sizeof *q->near.v, query_compare_rid);
  for (size_t i = n_scored; i < nb; i++) {
    engine_hit key = {.rid = (int64_t)keys[na + i]};
    if (!na || !bsearch(&key, q->near.v, na, sizeof key, query_compare_rid))
      ranked[n++] = (fuse_ranked){.key = keys[na + i]};
  }
  if (q->text.n) qsort(q->text.v, q->text.n, sizeof *q->text.v, query_compare_rid);
  joined->n = 0;
  for (size_t i = 0; i < n; i++) {
    engine_hit key = {.rid = (int64_t)ranked[i].key};
    const engine_hit *hit = na ? bsearch(&key, q->near.v, na, sizeof key, query_compare_rid) : NULL;
    if (!hit && nb) hit = bsearch(&key, q->text.v, nb, sizeof key, query_compare_rid);
    if (!hit) continue;
    joined->v[joined->n] = *hit;
    joined->v[joined->n++].score = ranked[i].score;
  }
  engine_hits_sort(joined, true);
done:
  mem_free(keys);
  mem_free(ranked);
  return st;
}

static lode_status query_answer_hybrid(query_run *q, engine_best *best, size_t query, bool *again, lode_error *err) {
  engine_hits joined = {0};
  lode_status st = LODE_OK;
  q->near.n = 0;
  if (best) TRY_GOTO(query_confirm_hits(q, best, q->facts.want, &q->near, again, err));
  if (*again) goto done;
  TRY_GOTO(query_search_text(q, query, q->facts.want, q->near.n > 0, err));
  TRY_GOTO(query_fuse(q, &joined, err));
  if (joined.n > q->request->k) joined.n = q->request->k;
  TRY_GOTO(query_measure_hits(q, query, &joined, again, err));
  TRY_GOTO(query_add_rows(q, query, &joined, again, err));
done:
  mem_free(joined.v);
  return st;
}

/* ---- The plan ---- */

static void query_key_add(strbuf *key, lode_str part) {
  strbuf_add(key, &part.len, sizeof part.len);
  strbuf_addch(key, part.data ? 1 : 0);
  strbuf_add(key, part.data, part.len);
}

/* Takes a reference to the snapshot if one is loaded. */
static lode_status query_hold_snapshot(query_run *q, lode_error *err) {
  engine_snapshot_release(q->held);
  q->held = NULL;
  q->key.len = 0;
  if (q->request->mode == LODE_BY_TEXT || q->facts.by_ids || q->reader.coll.dim == 0) return LODE_OK;
  query_key_add(&q->key, q->select.what.where);
  query_key_add(&q->key, q->select.what.where_document);
  if (q->key.failed) return err_nomem(err);
  if (q->reader.taken) {
    TRY(engine_snapshot_peek(&q->reader, &q->held, err));
  } else { /* nothing depends on the moment yet: a later one will do */
    (void)engine_reader_allow_later(&q->reader);
    lode_status st = engine_snapshot_peek(&q->reader, &q->held, err);
    lode_status settled = engine_reader_adopt_current(&q->reader, st == LODE_OK ? err : NULL);
    TRY(st);
    TRY(settled);
  }
  return engine_reader_begin(&q->reader, err);
}

static void query_learn_collection(query_run *q) {
  const store_coll *coll = &q->reader.coll;
  q->facts.has_vectors = coll->dim != 0;
  q->facts.records = coll->records;
  q->facts.unindexed = coll->unindexed;
}

static void query_set_list(query_run *q, const engine_rids *list) {
  q->list = list;
  q->facts.known |= ENGINE_FACT_LIST;
  q->facts.listed_by = q->plan.matches;
  q->facts.listed_why = q->plan.matches_why;
  q->facts.listed = list->n;
}

/* Only the first attempt looks for a snapshot and a cached list; later ones look what has been learned about the filter
 * since. */
static lode_status query_learn_cache(query_run *q, lode_error *err) {
  engine_facts *f = &q->facts;
  if (f->attempt == 0) TRY(query_hold_snapshot(q, err));
  query_learn_collection(q);
  f->known |= ENGINE_FACT_CACHE;
  f->snapshot = q->held != NULL;
  f->stats = q->held && q->key.len ? engine_filter_cache_stats(q->held, query_filter_key(q)) : (engine_filter_stats){0};
  f->spent = q->held ? atomic_load(&q->held->spent) : 0;
  if (f->attempt > 0) return LODE_OK;
  f->new_filter = !f->stats.evaluated;
  q->list = q->held ? engine_filter_cache_find(q->held, query_filter_key(q)) : NULL;
  f->cached = q->list != NULL;
  q->reader.taken = q->reader.taken || f->cached;
  return LODE_OK;
}

static lode_status query_learn_proposals(query_run *q, lode_error *err) {
  uint64_t cursor = store_tx_cursor(q->reader.tx);
  q->select.will_reuse = q->held != NULL;
  TRY(engine_select_ask(&q->select, &q->facts.proposes, err));
  q->facts.proposals = q->facts.proposes ? q->select.n : 0;
  q->facts.known |= ENGINE_FACT_PROPOSALS;
  if (!q->facts.proposes && q->held && q->key.len && q->held->cursor == cursor)
    engine_filter_cache_note(q->handle->store, q->held, query_filter_key(q), (engine_filter_stats){.scans = true});
  return LODE_OK;
}

/* Makes the list that the plan has, and caches it with the snapshot, if that is of the moment at which listing began,
 * and nothing was written since. */
static lode_status query_make_list(query_run *q, lode_error *err) {
  uint64_t cursor = store_tx_cursor(q->reader.tx);
  const engine_rids *kept = NULL;
  if (q->facts.cached) {
    query_set_list(q, q->list);
    return LODE_OK;
  }
  q->only.n = 0;
  if (q->plan.matches == ENGINE_MATCHES_PROPOSED)
    TRY(engine_select_proposed(&q->select, &q->only, err));
  else
    TRY(engine_select_all(&q->select, &q->only, err));
  q->trace.listed = true;
  if (q->held && q->key.len && q->held->cursor == cursor && q->reader.tx && store_tx_cursor(q->reader.tx) == cursor)
    kept = engine_filter_cache_add(q->handle->store, q->held, query_filter_key(q), &q->only);
  query_set_list(q, kept ? kept : &q->only);
  return LODE_OK;
}

/* Plans as far as the selection is concerned; nearest.c goes on. */
static lode_status query_make_plan(query_run *q, lode_error *err) {
  engine_facts *f = &q->facts;
  f->known &= ENGINE_FACT_PROPOSALS | ENGINE_FACT_LIST;
  query_learn_collection(q);
  for (;;) {
    q->plan = engine_plan_make(f);
    if (q->plan.need == ENGINE_FACT_CACHE)
      TRY(query_learn_cache(q, err));
    else if (q->plan.need == ENGINE_FACT_PROPOSALS)
      TRY(query_learn_proposals(q, err));
    else
      break;
  }
  f->second_look = f->second_look || q->plan.second_look;
  if (q->held) atomic_fetch_add(&q->held->spent, q->plan.charge);
  if (q->plan.need != ENGINE_FACT_LIST) return LODE_OK;
  TRY(query_make_list(q, err));
  q->plan = engine_plan_make(f);
  return LODE_OK;
}

static void query_forget_selection(query_run *q) {
  q->facts.known = 0;
  q->facts.cached = q->facts.proposes = false;
  q->facts.proposals = 0;
  q->key.len = 0;
  engine_select_rewind(&q->select);
}

/* ---- A group ---- */

static lode_status query_find_nearest(query_run *q, engine_nearest *near, bool *again, lode_error *err) {
  const lode_query_request *r = q->request;
  TRY(engine_nearest_init(near, &q->reader, r->vectors + q->first * r->dimension, q->n, &q->plan, err));
  near->only = query_list(q);
  near->filter = near->only ? query_filter_key(q) : (lode_str){NULL, 0};
  near->effort = r->effort;
  near->target_recall = r->target_recall;
  near->facts = &q->facts;
  near->trace = &q->trace;
  TRY(engine_nearest_run(near, again, err));
  query_lap(q, ENGINE_PART_VECTORS);
  return LODE_OK;
}

static lode_status query_answer_group(query_run *q, bool *again, lode_error *err) {
  const lode_query_request *r = q->request;
  engine_nearest near = {0};
  lode_status st = LODE_OK;
  bool by_vector = r->mode != LODE_BY_TEXT && q->facts.has_vectors;
  if (by_vector) TRY_GOTO(query_find_nearest(q, &near, again, err));
  for (size_t i = 0; i < q->n && !*again; i++) {
    size_t query = q->first + i;
    if (r->mode == LODE_HYBRID) {
      TRY_GOTO(query_answer_hybrid(q, by_vector ? &near.best[i] : NULL, query, again, err));
    } else if (r->mode == LODE_BY_TEXT) {
      TRY_GOTO(query_search_text(q, query, r->k, false, err));
      TRY_GOTO(query_add_rows(q, query, &q->text, again, err));
    } else if (by_vector) {
      TRY_GOTO(query_confirm_hits(q, &near.best[i], r->k, &q->near, again, err));
      TRY_GOTO(query_add_rows(q, query, &q->near, again, err));
    }
  }
  if (q->plan.matches == ENGINE_MATCHES_POST && q->held && q->key.len)
    engine_filter_cache_note(q->handle->store, q->held, query_filter_key(q),
                             (engine_filter_stats){.evaluated = q->trace.confirmed, .matched = q->trace.matched});
done:
  engine_nearest_release(&near);
  return st;
}

static lode_status query_attempt(query_run *q, bool *again, lode_error *err) {
  q->trace = (engine_trace){0};
  q->lap_ns = q->explain.on ? os_api->now_ns() : 0;
  q->result->n = q->rows;
  mem_arena_reset(&q->arena);
  if (engine_plan_rejects_list(&q->facts)) query_forget_selection(q);
  TRY(engine_reader_renew_if_old(&q->reader, err));
  TRY(query_make_plan(q, err));
  q->facts_at = q->reader.moment;
  TRY(engine_reader_begin(&q->reader, err));
  TRY(query_check_against(q, err));
  query_lap(q, ENGINE_PART_FILTER);
  TRY(query_answer_group(q, again, err));
  q->trace.rows = q->result->n - q->rows;
  query_lap(q, ENGINE_PART_ROWS);
  engine_explain_attempt(&q->explain, &q->facts, &q->plan, &q->select, &q->trace, *again);
  return LODE_OK;
}

static lode_status query_run_group(void *ctx, lode_error *err) {
  query_run *q = ctx;
  if (!engine_moment_is_same(&q->facts_at, &q->reader.moment))
    query_forget_selection(q);
  else if (q->facts.known & (ENGINE_FACT_LIST | ENGINE_FACT_PROPOSALS))
    q->reader.taken = true;
  q->facts.second_look = false;
  q->facts.queries = q->n;
  for (q->facts.attempt = 0; q->facts.attempt < ENGINE_PLAN_ATTEMPTS; q->facts.attempt++) {
    bool again = false;
    TRY(query_attempt(q, &again, err));
    if (!again) return LODE_OK;
  }
  return err_set(err, LODE_BUSY, "the collection changed faster than the query could be answered: try again");
}

static lode_status query_run_all(query_run *q, lode_error *err) {
  const lode_query_request *r = q->request;
  size_t group = engine_plan_group(r->k);
  iface_explain_query(&q->explain, r);
  if (r->k == 0) {
    TRY(engine_reader_begin(&q->reader, err));
    return query_check_against(q, err);
  }
  for (q->first = 0; q->first < r->n; q->first += q->n) {
    q->n = r->n - q->first < group ? r->n - q->first : group;
    q->rows = q->result->n;
    TRY(engine_reader_run(&q->reader, query_run_group, q, err));
  }
  return LODE_OK;
}

lode_status engine_query(lode_collection *head, const lode_query_request *request, lode_result **out, lode_error *err) {
  engine_collection *collection = engine_collection_of(head);
  query_run q = {.handle = collection, .request = request};
  lode_status st;
  err_clear(err);
  *out = NULL;
  engine_reader_init(&q.reader, collection);
  q.reader.progress = request->progress;
  mem_arena_init(&q.arena, 0);
  TRY_GOTO(iface_check_query(request, err));
  iface_query_weights(request, &q.vector_weight, &q.text_weight);
  q.explain.on = request->explain != 0;
  TRY_GOTO(engine_select_init(&q.select, &q.reader, &request->select, err));
  q.facts = (engine_facts){
      .mode = request->mode,
      .want = request->mode == LODE_HYBRID ? fuse_depth(request->k) : request->k,
      .exact = request->exact || request->target_recall == 1,
      .tuned = request->effort || request->target_recall > 0,
      .selects = request->select.ids || request->select.where.data || request->select.where_document.data,
      .by_ids = request->select.ids != NULL,
      .is_probe = filter_is_probe(q.select.filter),
  };
  TRY_GOTO(iface_result_new(collection->store->head.options->memory_bytes, &q.result, err));
  TRY_GOTO(query_run_all(&q, err));
  TRY_GOTO(iface_explain_finish(&q.explain, q.result, err));
  q.result->moment = q.reader.moment.cursor;
  *out = q.result;
  q.result = NULL;
done:
  engine_select_release(&q.select);
  engine_reader_release(&q.reader);
  mem_arena_release(&q.arena);
  lode_result_free(q.result);
  engine_snapshot_release(q.held);
  strbuf_release(&q.key);
  iface_explain_release(&q.explain);
  mem_free(q.only.v);
  mem_free(q.near.v);
  mem_free(q.text.v);
  return st;
}
