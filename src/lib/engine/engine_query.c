/* SPDX-License-Identifier: Apache-2.0 */
/* engine_query.c - the three kinds of query.
 *
 * A request of many queries is processed in groups, each of one moment (reader.c). For each group:
 *   1. the selection, if there is one, becomes a list of records (pre-filter); a filter that many records match, or
 *      that no index supports, is first tried as a post-filter: the nearest records are evaluated until enough match
 *   2. nearest.c and engine_text.c find candidates
 *   3. every candidate is read: it must be live, still have the vector that was measured, and match the filter; the
 *      rest is sorted, ties by id, and becomes rows
 * The list of a filter is cached with the snapshot of vectors (segment_search.c) until something is written; a filter
 * used as a post-filter is listed as soon as evaluating it has cost as much as listing it would have. When too few hits
 * are left although there were more candidates, the group is repeated, asking for more; the last attempt reads every
 * vector from the truth file.
 */
#include "engine/engine.h"

#include "query/fuse.h"

#include <math.h>

enum {
  QUERY_GROUP_QUERIES = 64,      /* queries of a group, at most */
  QUERY_GROUP_ROWS = 8192,       /* rows of a group's result, at most, unless one query has more */
  QUERY_ATTEMPTS = 4,            /* at a group, each with more candidates */
  QUERY_MIN_FUSED = 64,          /* hits of each ranking that go into a fusion, at least */
  QUERY_FEW_MORE = 4,            /* candidates added to those that a post-filter is expected to need */
  QUERY_MAX_EVALS_FACTOR = 8,    /* a filter that needs more evaluations per hit is listed when it is used again */
  QUERY_PROPOSALS_PER_EVAL = 16, /* the metadata index lists this many records in the time of one evaluation */
  QUERY_EXPECTED_REUSES = 4,     /* how often a cached list is expected to be used */
};

typedef struct query_run {
  lode_collection *handle;
  const lode_query_request *request;
  double vector_weight, text_weight;
  engine_reader reader;
  engine_select select;
  bool selects;                  /* there is a selection */
  bool listed;                   /* `only` holds it */
  engine_moment listed_at;       /* the moment that the selection's state is of */
  bool proposed;                 /* `only` is as an index proposed it: some may not match */
  bool postfilter;               /* the filter is only evaluated in step 3 */
  bool new_filter;               /* there were no statistics of the filter before */
  unsigned eval_attempt;         /* 1: the post-filter was tried twice */
  size_t postfilter_extra;       /* a post-filter asks for this many more candidates */
  engine_filter_stats evaluated; /* what step 3 found out about the filter */
  engine_rids only;
  const engine_rids *list; /* `only`, or a list of the filter cache */
  engine_snapshot *held;   /* referenced while `list` is in use */
  strbuf key;              /* the filter's key in the filter cache; empty: none */
  lode_result *result;
  mem_arena arena; /* ids of one attempt */
  size_t first, n; /* the group */
  size_t rows;     /* of the groups before */
  unsigned attempt;
  engine_hits near, text; /* of one query */
} query_run;

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
  if (*found && q->selects) TRY(engine_select_eval(&q->select, &rec, found, err));
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
static lode_status query_confirm_hits(query_run *q, const engine_nearest *near, engine_best *best, size_t want,
                                      engine_hits *hits, bool *again, lode_error *err) {
  hits->n = 0;
  q->reader.taken = true;
  kernel_topk_sort(&best->top);
  for (size_t i = 0; i < best->top.n + best->n_ties; i++) {
    const kernel_neighbour *c = i < best->top.n ? &best->top.heap[i] : &best->ties[i - best->top.n];
    engine_hit hit;
    bool found, changed;
    if (hits->n >= want && c->distance > hits->v[hits->n - 1].distance) break;
    TRY(query_read_hit(q, c->key, c->aux, &found, &changed, &hit, err));
    q->evaluated.evaluated++;
    q->evaluated.matched += found;
    if (changed && near->by_record) *again = true;
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
      .select = q->selects ? &q->select : NULL,
      .only = q->listed ? q->list : NULL,
      .max_tail = q->request->most_unindexed,
      .arena = &q->arena,
      .skip_common = skip_common,
  };
  return engine_text_search(&q->reader, &t, &q->text, err);
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
  TRY_GOTO(fuse_rankings(keys, na, q->vector_weight, keys + na, n_scored, q->text_weight, ranked, &n, err));
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

static size_t query_fused_want(const query_run *q) {
  size_t want;
  if (mem_mul_overflow(q->request->k, 4, &want)) want = SIZE_MAX;
  return want > QUERY_MIN_FUSED ? want : QUERY_MIN_FUSED;
}

static lode_status query_answer_hybrid(query_run *q, engine_nearest *near, size_t query, size_t at, bool *again,
                                       lode_error *err) {
  engine_hits joined = {0};
  lode_status st = LODE_OK;
  q->near.n = 0;
  if (near) TRY_GOTO(query_confirm_hits(q, near, &near->best[at], query_fused_want(q), &q->near, again, err));
  if (*again) goto done;
  TRY_GOTO(query_search_text(q, query, query_fused_want(q), q->near.n > 0, err));
  TRY_GOTO(query_fuse(q, &joined, err));
  if (joined.n > q->request->k) joined.n = q->request->k;
  TRY_GOTO(query_measure_hits(q, query, &joined, again, err));
  TRY_GOTO(query_add_rows(q, query, &joined, again, err));
done:
  mem_free(joined.v);
  return st;
}

/* ---- A group ---- */

static size_t query_hits_wanted(const query_run *q) {
  return q->request->mode == LODE_HYBRID ? query_fused_want(q) : q->request->k;
}

static size_t query_add_saturating(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

/* How many candidates to ask for: more than wanted, because some may be rejected in step 3. */
static size_t query_candidates_wanted(const query_run *q) {
  size_t want = query_hits_wanted(q), more = 16;
  if (q->postfilter) return query_add_saturating(want, q->postfilter_extra);
  for (unsigned i = 0; i < q->attempt; i++) more = more > SIZE_MAX / 8 ? SIZE_MAX : more * 8;
  return query_add_saturating(want, more);
}

static lode_status query_answer_group(query_run *q, bool *again, lode_error *err) {
  const lode_query_request *r = q->request;
  engine_nearest near = {0};
  lode_status st = LODE_OK;
  q->evaluated = (engine_filter_stats){0};
  bool by_vector = r->mode != LODE_BY_TEXT && q->reader.coll.dim != 0;
  if (by_vector) {
    TRY_GOTO(engine_nearest_init(&near, &q->reader, r->vectors + q->first * r->dimension, q->n,
                                 query_candidates_wanted(q), q->listed ? q->list : NULL, err));
    if (q->attempt == 0 && !q->postfilter) near.k = query_hits_wanted(q);
    near.exact = r->exact || r->target_recall == 1;
    near.from_truth = q->attempt + 1 == QUERY_ATTEMPTS;
    near.effort = r->effort;
    near.target_recall = r->target_recall;
    near.filter = q->listed && q->key.len ? q->key.data : NULL;
    near.filter_len = q->key.len;
    TRY_GOTO(engine_nearest_run(&near, again, err));
  }
  for (size_t i = 0; i < q->n && !*again; i++) {
    size_t query = q->first + i;
    if (r->mode == LODE_HYBRID) {
      TRY_GOTO(query_answer_hybrid(q, by_vector ? &near : NULL, query, i, again, err));
    } else if (r->mode == LODE_BY_TEXT) {
      TRY_GOTO(query_search_text(q, query, r->k, false, err));
      TRY_GOTO(query_add_rows(q, query, &q->text, again, err));
    } else if (by_vector) {
      TRY_GOTO(query_confirm_hits(q, &near, &near.best[i], r->k, &q->near, again, err));
      TRY_GOTO(query_add_rows(q, query, &q->near, again, err));
    }
  }
  if (q->postfilter && q->held && q->key.len)
    engine_filter_cache_note(q->handle->store, q->held, q->key.data, q->key.len, q->evaluated);
done:
  engine_nearest_release(&near);
  return st;
}

/* With a vector index, a filter is first tried as a post-filter, before its matches are listed: if most records match,
 * that is enough. The share of matches is learned on the way; once evaluating has cost a part of what listing would,
 * the list is made. A new filter that matched too few is tried once more, with as many candidates as the share
 * suggests, if that is cheaper than the list: it may never be used again. */
static bool query_try_postfilter(query_run *q) {
  size_t want = query_hits_wanted(q);
  if (!q->held || !q->key.len || q->attempt > 1 || q->select.what.ids || want > QUERY_GROUP_ROWS) return false;
  engine_filter_stats stats = engine_filter_cache_stats(q->held, q->key.data, q->key.len);
  if (q->attempt == 0)
    q->new_filter = !stats.evaluated, q->eval_attempt = 0;
  else if (!q->new_filter || !stats.evaluated)
    return false;
  double share = ((double)stats.matched + 1) / ((double)stats.evaluated + 1), records = (double)q->reader.coll.records;
  double more = q->attempt        ? 3 * (double)want / share
                : stats.evaluated ? 2 * (double)want * (1 / share - 1) + QUERY_FEW_MORE
                                  : 4 * (double)(want + QUERY_FEW_MORE);
  if (q->attempt == 0 && stats.evaluated && more > QUERY_MAX_EVALS_FACTOR * (double)want) return false;
  bool probe = filter_is_probe(q->select.filter) && !stats.scans;
  double list = probe ? share * records / QUERY_PROPOSALS_PER_EVAL : records;
  /* a short list may hold all matches */
  if (q->attempt && (more * (double)q->n > list || (probe && !stats.matched))) return false;
  q->postfilter_extra = (size_t)more;
  q->eval_attempt = q->attempt;
  return (double)engine_snapshot_charge(q->held, q->postfilter_extra * q->n) <=
             (probe ? list / QUERY_EXPECTED_REUSES : list) ||
         q->new_filter;
}

/* Post-filtering is cheaper than listing all matches if it is likely to find enough, that is, if many match. With a
 * vector index, few candidates are asked for at first, and more if too few match. */
static bool query_can_postfilter(query_run *q, bool cheap) {
  uint64_t records = q->reader.coll.records, matches = q->select.n + q->reader.coll.unindexed;
  size_t want = query_hits_wanted(q), factor = 8, more = 32;
  if (q->attempt > (q->held ? 1 : 0) || q->select.what.ids || want > QUERY_GROUP_ROWS) return false;
  if (q->held) factor = 4, more = 4;
  if (cheap) factor = matches ? (q->held ? 2 : 4) * (size_t)(records / matches + 1) : SIZE_MAX;
  q->postfilter_extra = factor > SIZE_MAX / (want + more) ? SIZE_MAX : factor * (want + more);
  if (q->attempt) q->postfilter_extra = q->postfilter_extra > SIZE_MAX / 8 ? SIZE_MAX : q->postfilter_extra * 8;
  return !cheap || q->postfilter_extra < matches / 2;
}

/* ---- Filters that were used before ---- */

static void query_key_add(strbuf *key, lode_str part) {
  strbuf_add(key, &part.len, sizeof part.len);
  strbuf_addch(key, part.data ? 1 : 0);
  strbuf_add(key, part.data, part.len);
}

/* Takes a reference to the snapshot, and uses its cached list if there is one. */
static lode_status query_find_listed(query_run *q, lode_error *err) {
  if (q->attempt > 0) return LODE_OK;
  if (q->request->mode == LODE_BY_TEXT || q->select.what.ids || q->reader.coll.dim == 0) return LODE_OK;
  q->key.len = 0;
  query_key_add(&q->key, q->select.what.where);
  query_key_add(&q->key, q->select.what.where_document);
  if (q->key.failed) return err_nomem(err);
  engine_snapshot_release(q->held);
  q->held = NULL;
  if (q->reader.taken) {
    TRY(engine_snapshot_peek(&q->reader, &q->held, err));
  } else { /* nothing depends on the moment yet: a later one will do */
    (void)engine_reader_allow_later(&q->reader);
    lode_status st = engine_snapshot_peek(&q->reader, &q->held, err);
    lode_status settled = engine_reader_adopt_current(&q->reader, st == LODE_OK ? err : NULL);
    TRY(st);
    TRY(settled);
  }
  if (!q->held) return engine_reader_begin(&q->reader, err);
  q->list = engine_filter_cache_find(q->held, q->key.data, q->key.len);
  q->listed = q->list != NULL;
  q->reader.taken = q->reader.taken || q->listed;
  q->proposed = q->listed && filter_is_probe(q->select.filter);
  return LODE_OK;
}

/* Caches the list with the snapshot, if that is of the moment at which listing began, and nothing was written since. */
static void query_keep_listed(query_run *q, uint64_t cursor) {
  if (!q->held || q->held->cursor != cursor || !q->reader.tx || store_tx_cursor(q->reader.tx) != cursor) return;
  const engine_rids *kept = engine_filter_cache_add(q->handle->store, q->held, q->key.data, q->key.len, &q->only);
  if (kept) q->list = kept;
}

/* Decides how the selection is applied; lists it if needed. */
static lode_status query_plan_selection(query_run *q, lode_error *err) {
  bool cheap = false;
  if (!q->selects || q->listed) return LODE_OK;
  TRY(engine_reader_begin(&q->reader, err));
  TRY(query_find_listed(q, err));
  if (q->listed) return LODE_OK;
  q->postfilter = query_try_postfilter(q);
  if (q->postfilter) return LODE_OK;
  uint64_t cursor = store_tx_cursor(q->reader.tx);
  q->select.will_reuse = q->held != NULL;
  bool has_key = q->held && q->key.len;
  bool scans = has_key && engine_filter_cache_stats(q->held, q->key.data, q->key.len).scans;
  if (!scans) TRY(engine_select_plan(&q->select, &cheap, err));
  if (!scans && !cheap && has_key && q->held->cursor == cursor)
    engine_filter_cache_note(q->handle->store, q->held, q->key.data, q->key.len, (engine_filter_stats){.scans = true});
  q->postfilter = query_can_postfilter(q, cheap);
  uint64_t price = cheap ? q->select.n + q->reader.coll.unindexed : q->reader.coll.records;
  if (q->postfilter && q->held && engine_snapshot_charge(q->held, q->postfilter_extra) > price) q->postfilter = false;
  /* the index has already listed it */
  bool by_index = q->held && cheap && q->attempt <= 1 + q->eval_attempt && filter_is_probe(q->select.filter);
  if (!by_index && (q->postfilter || (!cheap && q->request->mode == LODE_BY_TEXT))) return LODE_OK;
  q->postfilter = false;
  q->only.n = 0;
  if (by_index)
    TRY(engine_select_propose(&q->select, &q->only, &q->proposed, err));
  else
    TRY(engine_select_all(&q->select, &q->only, err));
  q->list = &q->only;
  q->listed = true;
  query_keep_listed(q, cursor);
  return LODE_OK;
}

static void query_forget_selection(query_run *q) {
  q->listed = q->proposed = false;
  q->key.len = 0;
  engine_select_rewind(&q->select);
}

static lode_status query_run_group(void *ctx, lode_error *err) {
  query_run *q = ctx;
  if (!engine_moment_is_same(&q->listed_at, &q->reader.moment))
    query_forget_selection(q);
  else if (q->listed || q->select.planned)
    q->reader.taken = true;
  for (q->attempt = 0; q->attempt < QUERY_ATTEMPTS; q->attempt++) {
    bool again = false;
    q->result->n = q->rows;
    q->postfilter = false;
    if (q->attempt > 1 && q->proposed) query_forget_selection(q); /* the proposals did not match: evaluate them */
    mem_arena_reset(&q->arena);
    TRY(engine_reader_renew_if_old(&q->reader, err));
    TRY(query_plan_selection(q, err));
    q->listed_at = q->reader.moment;
    TRY(engine_reader_begin(&q->reader, err));
    TRY(query_check_against(q, err));
    TRY(query_answer_group(q, &again, err));
    if (!again) return LODE_OK;
  }
  return err_set(err, LODE_BUSY, "the collection changed faster than the query could be answered: try again");
}

static lode_status query_run_all(query_run *q, lode_error *err) {
  const lode_query_request *r = q->request;
  size_t group = r->k ? QUERY_GROUP_ROWS / r->k : QUERY_GROUP_QUERIES;
  if (group > QUERY_GROUP_QUERIES) group = QUERY_GROUP_QUERIES;
  if (group < 1) group = 1;
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

lode_status engine_query(lode_collection *collection, const lode_query_request *request, lode_result **out,
                         lode_error *err) {
  query_run q = {.handle = collection, .request = request};
  lode_status st;
  err_clear(err);
  *out = NULL;
  engine_reader_init(&q.reader, collection);
  q.reader.progress = request->progress;
  mem_arena_init(&q.arena, 0);
  TRY_GOTO(iface_check_query(request, err));
  bool weighted = request->vector_weight > 0 || request->text_weight > 0;
  q.vector_weight = weighted ? request->vector_weight : 1;
  q.text_weight = weighted ? request->text_weight : 1;
  q.selects = request->select.ids || request->select.where.data || request->select.where_document.data;
  TRY_GOTO(engine_select_init(&q.select, &q.reader, &request->select, err));
  TRY_GOTO(iface_result_new(collection->store->options->memory_bytes, &q.result, err));
  TRY_GOTO(query_run_all(&q, err));
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
  mem_free(q.only.v);
  mem_free(q.near.v);
  mem_free(q.text.v);
  return st;
}
