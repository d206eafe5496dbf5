/* query.c - the three kinds of query.
 *
 * A request of many queries is answered in groups, each of which is an answer of one moment (reader.c). For one group:
 *   1. the selection, if there is one, becomes a list of records; a filter that many records match, or that no index
 *      helps with, is first tried the other way round, by judging the nearest records until enough match
 *   2. nearest.c and text.c bring candidates
 *   3. every candidate is read: it must live, still have the vector that was measured, and match the filter; then it
 *      is ordered, ties by id, and becomes a row
 * A selection by filter that was listed stays with the snapshot of vectors (indexed.c) and serves until something is
 * written; one that is judged the other way round is listed as soon as that has cost as much as listing it would have.
 * When too few are left although there were more candidates, the group is done again, asking for more; the last
 * attempt looks at every vector in the truth.
 */
#include "core.h"

#include "query/fuse.h"

#include <math.h>

enum { GROUP_QUERIES = 64, GROUP_ROWS = 8192, ATTEMPTS = 4, LEAST_FUSED = 64, FEW_MORE = 4,
       MOST_JUDGED = 8,         /* times as many as wanted: a filter that needs more is listed when it comes again */
       PROPOSALS_A_RECORD = 16, /* that the metadata index lists while one record is judged */
       TIMES_TO_COME = 4        /* for which a list is made */ };

typedef struct run {
  lode_collection *handle;
  const lode_query_request *request;
  double vector_weight, text_weight;
  lode__reader reader;
  lode__select select;
  bool selects;            /* there is a selection */
  bool listed;             /* `only` holds it */
  lode__moment listed_at;  /* what is known of the selection is of this moment */
  bool proposed;           /* as an index proposed it: some may not match */
  bool reversed;           /* the filter is left to step 3 for now */
  bool new_filter;         /* nothing was known of it before */
  unsigned judged_again;   /* 1: so it was tried twice */
  size_t reversed_more;    /* and so many candidates more are asked for */
  lode__filter_note evaluated; /* what step 3 has shown of the filter */
  lode__rids only;
  const lode__rids *list;  /* `only`, or that of the snapshot */
  lode__vectors *held;     /* which is held for it */
  strbuf key;           /* names the filter among the snapshot's; empty: none */
  lode_result *result;
  mem_arena arena;       /* ids of one attempt */
  size_t first, n;         /* the group */
  size_t rows;             /* of the groups before it */
  unsigned attempt;
  lode__hits near, text;   /* of one query */
} run;

/* ---- Checks ---- */

static lode_status check_against(const run *q, lode_error *err) {
  const lode_query_request *r = q->request;
  const store_coll *coll = &q->reader.coll;
  if (r->mode == LODE_BY_TEXT) return LODE_OK;
  lode__fit fit = lode__coll_fit(coll);
  TRY(lode__check_embedder(&q->handle->fit, &fit, err));
  uint32_t dim = coll->dim ? coll->dim : coll->embedder_dim;
  if (dim && dim != r->dimension)
    return err_set(err, LODE_MISMATCH,
                      "the query has %u dimensions, and the vectors of the collection have %u: embed it with the model that "
                      "those were made with",
                      r->dimension, dim);
  return LODE_OK;
}

/* ---- Hits ---- */

static int by_distance(const void *a, const void *b) {
  const lode__hit *x = a, *y = b;
  if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
  return str_cmp(x->id, y->id);
}

static int by_score(const void *a, const void *b) {
  const lode__hit *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return str_cmp(x->id, y->id);
}

void lode__hits_sort(lode__hits *hits, bool larger_first) {
  if (hits->n) qsort(hits->v, hits->n, sizeof *hits->v, larger_first ? by_score : by_distance);
}

/* Reads a candidate in the present transaction: *found if it lives, has this vector and matches. */
static lode_status read_hit(run *q, int64_t rid, int64_t vid, bool *found, bool *changed, lode__hit *hit, lode_error *err) {
  store_rec rec;
  *changed = false;
  TRY(store_rec_read(q->reader.tx, rid, &rec, found, err));
  if (*found && rec.vid != vid) {
    *changed = true;
    *found = false;
  }
  if (*found && q->selects) TRY(lode__select_judge(&q->select, &rec, found, err));
  if (!*found) return LODE_OK;
  bool metadata = rec.metadata.data && (q->request->include & LODE_METADATA);
  char *id = mem_arena_copy(&q->arena, rec.id.data, rec.id.len);
  char *meta = metadata ? mem_arena_copy(&q->arena, rec.metadata.data, rec.metadata.len) : NULL;
  if (!id || (metadata && !meta)) return err_nomem(err);
  rec.id.data = id;
  rec.metadata = (lode_str){meta, meta ? rec.metadata.len : 0};
  *hit = (lode__hit){.rid = rid, .vid = vid, .id = rec.id, .rec = rec, .seen = q->reader.count};
  return LODE_OK;
}

/* The candidates of one query that stand the test, best first, until there are enough. *again when more might have been
 * found than were. */
static lode_status settle(run *q, const lode__nearest *near, lode__best *best, size_t want, lode__hits *hits, bool *again,
                          lode_error *err) {
  hits->n = 0;
  q->reader.taken = true;
  kernel_topk_sort(&best->top);
  for (size_t i = 0; i < best->top.n + best->n_ties; i++) {
    const kernel_neighbour *c = i < best->top.n ? &best->top.heap[i] : &best->ties[i - best->top.n];
    lode__hit hit;
    bool found, changed;
    if (hits->n >= want && c->distance > hits->v[hits->n - 1].distance) break;
    TRY(read_hit(q, c->key, c->aux, &found, &changed, &hit, err));
    q->evaluated.evaluated++;
    q->evaluated.matched += found;
    if (changed && near->by_record) *again = true;
    if (!found) continue;
    hit.distance = c->distance;
    if (!mem_grow(&hits->v, &hits->cap, hits->n + 1, sizeof *hits->v)) return err_nomem(err);
    hits->v[hits->n++] = hit;
  }
  if (hits->n < want && best->full) *again = true;
  lode__hits_sort(hits, false);
  if (hits->n > want) hits->n = want;
  return LODE_OK;
}

/* ---- Rows ---- */

static lode_status add_row(run *q, size_t query, size_t rank, const lode__hit *hit, bool *again, lode_error *err) {
  store_rec rec = hit->rec;
  lode_row *row;
  bool found = true;
  if (hit->seen != q->reader.count) TRY(store_rec_read(q->reader.tx, hit->rid, &rec, &found, err));
  if (!found || rec.vid != hit->vid) {
    *again = true; /* a later transaction than the one that it was found in */
    return LODE_OK;
  }
  TRY(lode__result_add(q->result, &q->reader, &rec, q->request->include, &row, err));
  row->query = query;
  row->rank = rank;
  row->distance = hit->distance;
  row->score = hit->score;
  return LODE_OK;
}

static lode_status add_rows(run *q, size_t query, const lode__hits *hits, bool *again, lode_error *err) {
  for (size_t i = 0; i < hits->n && !*again; i++) TRY(add_row(q, query, i, &hits->v[i], again, err));
  return LODE_OK;
}

/* ---- Text and hybrid ---- */

static lode_status search_text(run *q, size_t query, size_t want, bool telling, lode_error *err) {
  lode__text_query t = {
      .text = q->request->texts[query],
      .want = want,
      .select = q->selects ? &q->select : NULL,
      .only = q->listed ? q->list : NULL,
      .most_tail = q->request->most_unindexed,
      .arena = &q->arena,
      .skip_common = telling,
  };
  return lode__text_search(&q->reader, &t, &q->text, err);
}

/* Distances of the hits that came by text alone. */
static lode_status measure(run *q, size_t query, lode__hits *hits, bool *again, lode_error *err) {
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

static int by_rid(const void *a, const void *b) {
  const lode__hit *x = a, *y = b;
  return (x->rid > y->rid) - (x->rid < y->rid);
}

/* Joins both lists into `joined`, ordered by fused score. Fusion goes by ranks, and a rank says nothing where the score does not:
 * records that were found by words without weight are in the answer, and their words bring them nothing. */
static lode_status fuse(run *q, lode__hits *joined, lode_error *err) {
  size_t na = q->near.n, nb = q->text.n, n = 0, telling = 0;
  lode_status st = LODE_OK;
  uint64_t *keys = mem_calloc(na + nb, sizeof *keys);
  fuse_ranked *ranked = mem_calloc(na + nb, sizeof *ranked);
  if (!keys || !ranked || !mem_grow(&joined->v, &joined->cap, na + nb, sizeof *joined->v)) {
    st = err_nomem(err);
    goto done;
  }
  for (size_t i = 0; i < na; i++) keys[i] = (uint64_t)q->near.v[i].rid;
  while (telling < nb && q->text.v[telling].score > 0) telling++;
  for (size_t i = 0; i < nb; i++) keys[na + i] = (uint64_t)q->text.v[i].rid;
  TRY_GOTO(fuse_rankings(keys, na, q->vector_weight, keys + na, telling, q->text_weight, ranked, &n, err));
  if (q->near.n) qsort(q->near.v, q->near.n, sizeof *q->near.v, by_rid);
  for (size_t i = telling; i < nb; i++) {
    lode__hit key = {.rid = (int64_t)keys[na + i]};
    if (!na || !bsearch(&key, q->near.v, na, sizeof key, by_rid)) ranked[n++] = (fuse_ranked){.key = keys[na + i]};
  }
  if (q->text.n) qsort(q->text.v, q->text.n, sizeof *q->text.v, by_rid);
  joined->n = 0;
  for (size_t i = 0; i < n; i++) {
    lode__hit key = {.rid = (int64_t)ranked[i].key};
    const lode__hit *hit = na ? bsearch(&key, q->near.v, na, sizeof key, by_rid) : NULL;
    if (!hit && nb) hit = bsearch(&key, q->text.v, nb, sizeof key, by_rid);
    if (!hit) continue;
    joined->v[joined->n] = *hit;
    joined->v[joined->n++].score = ranked[i].score;
  }
  lode__hits_sort(joined, true);
done:
  mem_free(keys);
  mem_free(ranked);
  return st;
}

static size_t fused_want(const run *q) {
  size_t want;
  if (mem_mul_overflow(q->request->k, 4, &want)) want = SIZE_MAX;
  return want > LEAST_FUSED ? want : LEAST_FUSED;
}

static lode_status answer_hybrid(run *q, lode__nearest *near, size_t query, size_t at, bool *again, lode_error *err) {
  lode__hits joined = {0};
  lode_status st = LODE_OK;
  q->near.n = 0;
  if (near) TRY_GOTO(settle(q, near, &near->best[at], fused_want(q), &q->near, again, err));
  if (*again) goto done;
  TRY_GOTO(search_text(q, query, fused_want(q), q->near.n > 0, err));
  TRY_GOTO(fuse(q, &joined, err));
  if (joined.n > q->request->k) joined.n = q->request->k;
  TRY_GOTO(measure(q, query, &joined, again, err));
  TRY_GOTO(add_rows(q, query, &joined, again, err));
done:
  mem_free(joined.v);
  return st;
}

/* ---- A group ---- */

static size_t wanted(const run *q) { return q->request->mode == LODE_HYBRID ? fused_want(q) : q->request->k; }

static size_t plus(size_t a, size_t b) { return a > SIZE_MAX - b ? SIZE_MAX : a + b; }

/* How many candidates to ask for: more than wanted where some may be refused in the end. */
static size_t candidates_wanted(const run *q) {
  size_t want = wanted(q), more = 16;
  if (q->reversed) return plus(want, q->reversed_more);
  for (unsigned i = 0; i < q->attempt; i++) more = more > SIZE_MAX / 8 ? SIZE_MAX : more * 8;
  return plus(want, more);
}

static lode_status answer_group(run *q, bool *again, lode_error *err) {
  const lode_query_request *r = q->request;
  lode__nearest near = {0};
  lode_status st = LODE_OK;
  q->evaluated = (lode__filter_note){0};
  bool by_vector = r->mode != LODE_BY_TEXT && q->reader.coll.dim != 0;
  if (by_vector) {
    TRY_GOTO(lode__nearest_init(&near, &q->reader, r->vectors + q->first * r->dimension, q->n, candidates_wanted(q),
                                  q->listed ? q->list : NULL, err));
    if (q->attempt == 0 && !q->reversed) near.k = wanted(q);
    near.exact = r->exact || r->target_recall == 1;
    near.from_truth = q->attempt + 1 == ATTEMPTS;
    near.effort = r->effort;
    near.target_recall = r->target_recall;
    near.filter = q->listed && q->key.len ? q->key.data : NULL;
    near.filter_len = q->key.len;
    TRY_GOTO(lode__nearest_run(&near, again, err));
  }
  for (size_t i = 0; i < q->n && !*again; i++) {
    size_t query = q->first + i;
    if (r->mode == LODE_HYBRID) {
      TRY_GOTO(answer_hybrid(q, by_vector ? &near : NULL, query, i, again, err));
    } else if (r->mode == LODE_BY_TEXT) {
      TRY_GOTO(search_text(q, query, r->k, false, err));
      TRY_GOTO(add_rows(q, query, &q->text, again, err));
    } else if (by_vector) {
      TRY_GOTO(settle(q, &near, &near.best[i], r->k, &q->near, again, err));
      TRY_GOTO(add_rows(q, query, &q->near, again, err));
    }
  }
  if (q->reversed && q->held && q->key.len)
    lode__marked_note(q->handle->store, q->held, q->key.data, q->key.len, q->evaluated);
done:
  lode__nearest_release(&near);
  return st;
}

/* Where an index brings the nearest, a filter is first tried on them, before its matches are listed: of one that most records match
 * that is all there is to do. How many match is learned on the way; when judging has cost a part of what listing would, it is
 * time for the list. One that is new, and of which too few matched, is tried once more, on as many as that has shown to be needed, where
 * this is cheaper than the list: it may never come again. */
static bool can_judge_first(run *q) {
  size_t want = wanted(q);
  if (!q->held || !q->key.len || q->attempt > 1 || q->select.what.ids || want > GROUP_ROWS) return false;
  lode__filter_note note = lode__marked_noted(q->held, q->key.data, q->key.len);
  if (q->attempt == 0) q->new_filter = !note.evaluated, q->judged_again = 0;
  else if (!q->new_filter || !note.evaluated) return false;
  double share = ((double)note.matched + 1) / ((double)note.evaluated + 1), records = (double)q->reader.coll.records;
  double more = q->attempt    ? 3 * (double)want / share
                : note.evaluated ? 2 * (double)want * (1 / share - 1) + FEW_MORE
                              : 4 * (double)(want + FEW_MORE);
  if (q->attempt == 0 && note.evaluated && more > MOST_JUDGED * (double)want) return false;
  bool probe = filter_is_probe(q->select.filter) && !note.scans;
  double list = probe ? share * records / PROPOSALS_A_RECORD : records;
  if (q->attempt && (more * (double)q->n > list || (probe && !note.matched))) return false; /* a short list may be all there is */
  q->reversed_more = (size_t)more;
  q->judged_again = q->attempt;
  return (double)lode__vectors_spend(q->held, q->reversed_more * q->n) <= (probe ? list / TIMES_TO_COME : list) || q->new_filter;
}

/* To judge the nearest is cheaper than to list all that match, if that is likely to find enough: when many match. Where an index
 * of vectors brings the nearest, few are asked for at first, and more if too few of them match. */
static bool can_reverse(run *q, bool cheap) {
  uint64_t records = q->reader.coll.records, matches = q->select.n + q->reader.coll.unindexed;
  size_t want = wanted(q), factor = 8, more = 32;
  if (q->attempt > (q->held ? 1 : 0) || q->select.what.ids || want > GROUP_ROWS) return false;
  if (q->held) factor = 4, more = 4;
  if (cheap) factor = matches ? (q->held ? 2 : 4) * (size_t)(records / matches + 1) : SIZE_MAX;
  q->reversed_more = factor > SIZE_MAX / (want + more) ? SIZE_MAX : factor * (want + more);
  if (q->attempt) q->reversed_more = q->reversed_more > SIZE_MAX / 8 ? SIZE_MAX : q->reversed_more * 8;
  return !cheap || q->reversed_more < matches / 2;
}

/* ---- Filters that were used before ---- */

static void add_part(strbuf *key, lode_str part) {
  strbuf_add(key, &part.len, sizeof part.len);
  strbuf_addch(key, part.data ? 1 : 0);
  strbuf_add(key, part.data, part.len);
}

/* Holds the snapshot, and takes the list that it has, if it has one. */
static lode_status find_listed(run *q, lode_error *err) {
  if (q->attempt > 0) return LODE_OK;
  if (q->request->mode == LODE_BY_TEXT || q->select.what.ids || q->reader.coll.dim == 0) return LODE_OK;
  q->key.len = 0;
  add_part(&q->key, q->select.what.where);
  add_part(&q->key, q->select.what.where_document);
  if (q->key.failed) return err_nomem(err);
  lode__vectors_release(q->held);
  q->held = NULL;
  if (q->reader.taken) {
    TRY(lode__vectors_peek(&q->reader, &q->held, err));
  } else { /* nothing depends on the moment yet: it may be a later one */
    (void)lode__reader_follow(&q->reader);
    lode_status st = lode__vectors_peek(&q->reader, &q->held, err);
    lode_status settled = lode__reader_settle(&q->reader, st == LODE_OK ? err : NULL);
    TRY(st);
    TRY(settled);
  }
  if (!q->held) return lode__reader_begin(&q->reader, err);
  q->list = lode__marked_find(q->held, q->key.data, q->key.len);
  q->listed = q->list != NULL;
  q->reader.taken = q->reader.taken || q->listed;
  q->proposed = q->listed && filter_is_probe(q->select.filter);
  return LODE_OK;
}

/* Leaves the list with the snapshot, if that shows the moment at which listing began, and nothing was written since. */
static void keep_listed(run *q, uint64_t cursor) {
  if (!q->held || q->held->cursor != cursor || !q->reader.tx || store_tx_cursor(q->reader.tx) != cursor) return;
  const lode__rids *kept = lode__marked_add(q->handle->store, q->held, q->key.data, q->key.len, &q->only);
  if (kept) q->list = kept;
}

/* Decides how the selection takes part; lists it when that is due. */
static lode_status prepare_selection(run *q, lode_error *err) {
  bool cheap = false;
  if (!q->selects || q->listed) return LODE_OK;
  TRY(lode__reader_begin(&q->reader, err));
  TRY(find_listed(q, err));
  if (q->listed) return LODE_OK;
  q->reversed = can_judge_first(q);
  if (q->reversed) return LODE_OK;
  uint64_t cursor = store_tx_cursor(q->reader.tx);
  q->select.will_reuse = q->held != NULL;
  bool known = q->held && q->key.len, scans = known && lode__marked_noted(q->held, q->key.data, q->key.len).scans;
  if (!scans) TRY(lode__select_plan(&q->select, &cheap, err));
  if (!scans && !cheap && known && q->held->cursor == cursor)
    lode__marked_note(q->handle->store, q->held, q->key.data, q->key.len, (lode__filter_note){.scans = true});
  q->reversed = can_reverse(q, cheap);
  uint64_t price = cheap ? q->select.n + q->reader.coll.unindexed : q->reader.coll.records;
  if (q->reversed && q->held && lode__vectors_spend(q->held, q->reversed_more) > price) q->reversed = false;
  bool by_index = q->held && cheap && q->attempt <= 1 + q->judged_again && filter_is_probe(q->select.filter); /* the list is there */
  if (!by_index && (q->reversed || (!cheap && q->request->mode == LODE_BY_TEXT))) return LODE_OK;
  q->reversed = false;
  q->only.n = 0;
  if (by_index) TRY(lode__select_propose(&q->select, &q->only, &q->proposed, err));
  else TRY(lode__select_all(&q->select, &q->only, err));
  q->list = &q->only;
  q->listed = true;
  keep_listed(q, cursor);
  return LODE_OK;
}

static void forget_selection(run *q) {
  q->listed = q->proposed = false;
  q->key.len = 0;
  lode__select_again(&q->select);
}

static lode_status run_group(void *ctx, lode_error *err) {
  run *q = ctx;
  if (!lode__moment_same(&q->listed_at, &q->reader.moment)) forget_selection(q);
  else if (q->listed || q->select.planned) q->reader.taken = true;
  for (q->attempt = 0; q->attempt < ATTEMPTS; q->attempt++) {
    bool again = false;
    q->result->n = q->rows;
    q->reversed = false;
    if (q->attempt > 1 && q->proposed) forget_selection(q); /* what was proposed did not match: it is judged now */
    mem_arena_reset(&q->arena);
    TRY(lode__reader_renew_if_old(&q->reader, err));
    TRY(prepare_selection(q, err));
    q->listed_at = q->reader.moment;
    TRY(lode__reader_begin(&q->reader, err));
    TRY(check_against(q, err));
    TRY(answer_group(q, &again, err));
    if (!again) return LODE_OK;
  }
  return err_set(err, LODE_BUSY, "the collection changed faster than the query could be answered: try again");
}

static lode_status run_all(run *q, lode_error *err) {
  const lode_query_request *r = q->request;
  size_t group = r->k ? GROUP_ROWS / r->k : GROUP_QUERIES;
  if (group > GROUP_QUERIES) group = GROUP_QUERIES;
  if (group < 1) group = 1;
  if (r->k == 0) {
    TRY(lode__reader_begin(&q->reader, err));
    return check_against(q, err);
  }
  for (q->first = 0; q->first < r->n; q->first += q->n) {
    q->n = r->n - q->first < group ? r->n - q->first : group;
    q->rows = q->result->n;
    TRY(lode__reader_answer(&q->reader, run_group, q, err));
  }
  return LODE_OK;
}

lode_status lode__core_query(lode_collection *collection, const lode_query_request *request, lode_result **out, lode_error *err) {
  run q = {.handle = collection, .request = request};
  lode_status st;
  err_clear(err);
  *out = NULL;
  lode__reader_init(&q.reader, collection);
  q.reader.progress = request->progress;
  mem_arena_init(&q.arena, 0);
  TRY_GOTO(lode__check_query(request, err));
  bool weighted = request->vector_weight > 0 || request->text_weight > 0;
  q.vector_weight = weighted ? request->vector_weight : 1;
  q.text_weight = weighted ? request->text_weight : 1;
  q.selects = request->select.ids || request->select.where.data || request->select.where_document.data;
  TRY_GOTO(lode__select_init(&q.select, &q.reader, &request->select, err));
  TRY_GOTO(lode__result_new(collection->store->options->memory_bytes, &q.result, err));
  TRY_GOTO(run_all(&q, err));
  q.result->moment = q.reader.moment.cursor;
  *out = q.result;
  q.result = NULL;
done:
  lode__select_release(&q.select);
  lode__reader_release(&q.reader);
  mem_arena_release(&q.arena);
  lode_result_free(q.result);
  lode__vectors_release(q.held);
  strbuf_release(&q.key);
  mem_free(q.only.v);
  mem_free(q.near.v);
  mem_free(q.text.v);
  return st;
}
