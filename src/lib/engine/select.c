/* SPDX-License-Identifier: Apache-2.0 */
/* select.c - finds the live records of a selection, for get, delete, query, facets and export.
 *
 * Ways to find the records, cheapest first:
 *   ids        each id is looked up, in sorted order
 *   proposals  the metadata index is asked for conditions of which every match fulfils one (a probe of the filter); it
 *              holds the records up to its cursor; those after it are scanned
 *   scan       all records, or all pending ones
 * Every record found is then read and the filter evaluated on it (filter.h): an index makes a selection fast, never
 * wrong. Records come in key order.
 *
 * A selection that takes longer than a read transaction may last continues in a new one from the last key, of the same
 * moment unless its reader allows later ones (reader.c). In that case a selection of all records or by ids sees each
 * record as it is when it is visited, and every record that exists from beginning to end, once.
 */
#include "engine/select.h"

#include "engine/query_plan.h"

enum { SELECT_PHASE_LIST, SELECT_PHASE_SCAN, SELECT_PHASE_END };
enum { SELECT_CHECK_EVERY = 16 }; /* records between two checks of the transaction's age */

/* ---- Lists of keys ---- */

bool engine_rids_add(engine_rids *rids, int64_t rid) {
  if (!mem_grow(&rids->v, &rids->cap, rids->n + 1, sizeof *rids->v)) return false;
  rids->v[rids->n++] = rid;
  return true;
}

/* And removes duplicates. */
static void select_sort_rids(engine_rids *rids) {
  size_t kept = 0;
  bool sorted = true;
  for (size_t i = 1; i < rids->n && sorted; i++) sorted = rids->v[i - 1] < rids->v[i];
  if (sorted) return;
  qsort(rids->v, rids->n, sizeof *rids->v, sort_cmp_i64);
  for (size_t i = 0; i < rids->n; i++)
    if (kept == 0 || rids->v[kept - 1] != rids->v[i]) rids->v[kept++] = rids->v[i];
  rids->n = kept;
}

bool engine_rids_contain(const engine_rids *rids, int64_t rid, size_t *hint) {
  size_t n = rids->n, at = *hint < n ? *hint : n;
  if (at < n && rids->v[at] < rid) at++; /* hit for lookups in ascending order */
  if ((at < n && rids->v[at] < rid) || (at > 0 && rids->v[at - 1] >= rid)) {
    at = 0;
    SORT_LOWER_BOUND(at, n, rids->v[at] < rid);
  }
  *hint = at;
  return at < n && rids->v[at] == rid;
}

/* ---- Begin and end ---- */

lode_status engine_select_init(engine_select *s, engine_reader *reader, const lode_selection *what, lode_error *err) {
  lode_status st;
  *s = (engine_select){.reader = reader, .what = *what};
  TRY_GOTO(iface_check_selection(what, err));
  TRY_GOTO(filter_parse(what->where, what->where_document, &s->filter, err));
  TRY_GOTO(filter_eval_new(s->filter, &s->eval, err));
  s->has_filter = !filter_is_true(s->filter);
done:
  if (st != LODE_OK) engine_select_release(s);
  return st;
}

void engine_select_release(engine_select *s) {
  filter_eval_free(s->eval);
  filter_free(s->filter);
  mem_free(s->list);
  *s = (engine_select){0};
}

void engine_select_start_after(engine_select *s, int64_t after) { s->last = after; }

/* ---- Lists of records that may match ---- */

static int select_compare_ids(const void *a, const void *b, void *ctx) {
  const lode_str *ids = ctx;
  return str_cmp(ids[*(const size_t *)a], ids[*(const size_t *)b]);
}

/* The rid of each id, looked up in sorted order and stored in the order asked for; 0 if there is none. */
static lode_status select_find_ids(engine_select *s, lode_error *err) {
  size_t n = s->what.n_ids;
  lode_status st = LODE_OK;
  size_t *order = mem_calloc(n, sizeof *order);
  s->list = mem_calloc(n, sizeof *s->list);
  if (!order || !s->list) {
    st = err_nomem(err);
    goto done;
  }
  s->n = n;
  for (size_t i = 0; i < n; i++) order[i] = i;
  if (n) os_sort(order, n, sizeof *order, select_compare_ids, (void *)(uintptr_t)s->what.ids);
  for (size_t i = 0; i < n; i++) {
    lode_str id = s->what.ids[order[i]];
    if (i % SELECT_CHECK_EVERY == 0) TRY_GOTO(engine_reader_renew_if_old(s->reader, err));
    if (i && str_eq(id, s->what.ids[order[i - 1]]))
      s->list[order[i]] = s->list[order[i - 1]];
    else if (id.data && id.len && id.len <= LODE_MAX_ID_BYTES)
      TRY_GOTO(store_rec_find(s->reader->tx, s->reader->coll.cid, id, &s->list[order[i]], err));
  }
done:
  mem_free(order);
  return st;
}

typedef struct select_proposals {
  engine_rids rids;
  const filter_probe *probe;
  const filter_condition *condition; /* of the probe: the one that is asked */
  int64_t last;                      /* cursor of the index; later records are scanned */
} select_proposals;

static lode_status select_add_proposal(void *ctx, const meta_value *value, bool exact, int64_t rid, lode_error *err) {
  select_proposals *p = ctx;
  const filter_condition *c = p->condition;
  if (rid > p->last) return LODE_OK;
  if (exact && c->low_open && c->has_low && meta_value_cmp(value, &c->low) == 0) return LODE_OK;
  if (exact && c->high_open && c->has_high && meta_value_cmp(value, &c->high) == 0) return LODE_OK;
  return engine_rids_add(&p->rids, rid) ? LODE_OK : err_nomem(err);
}

/* Asks the index for a condition. *cut: there are more than `max` proposals, with those that were there before. */
static lode_status select_gather_condition(engine_select *s, const filter_condition *c, size_t max, select_proposals *p,
                                           bool *cut, lode_error *err) {
  store_term_range range = {.key = c->key};
  size_t rounds = c->n_values ? c->n_values : 1;
  *cut = rounds > max;
  p->condition = c;
  for (size_t i = 0; i < rounds && !*cut; i++) {
    if (c->n_values) {
      range.low = range.high = &c->values[i];
    } else {
      range.low = c->has_low ? &c->low : NULL;
      range.high = c->has_high ? &c->high : NULL;
    }
    TRY(engine_reader_renew_if_old(s->reader, err));
    TRY(store_term_each(s->reader->tx, s->reader->coll.cid, &range, max - p->rids.n + 1, cut, select_add_proposal, p,
                        err));
    if (p->rids.n > max) *cut = true;
  }
  return LODE_OK;
}

/* Asks the index for a probe. *cut: it proposes more than `max`. */
static lode_status select_gather(engine_select *s, const filter_probe *probe, size_t max, select_proposals *p,
                                 bool *cut, lode_error *err) {
  *cut = false;
  p->rids.n = 0;
  p->probe = probe;
  for (size_t i = 0; i < probe->n && !*cut; i++) TRY(select_gather_condition(s, &probe->any[i], max, p, cut, err));
  return LODE_OK;
}

/* Keeps the proposals of the most selective probe, if that is a small part of the collection. */
static lode_status select_ask_index(engine_select *s, lode_error *err) {
  const filter_probe *probes;
  select_proposals best = {0}, other = {.last = s->reader->coll.term_cursor};
  lode_status st = LODE_OK;
  size_t n = engine_plan_probes(filter_get_probes(s->filter, &probes));
  size_t max = engine_plan_max_proposals(s->reader->coll.records, filter_is_probe(s->filter), s->will_reuse);
  bool cut;
  s->probe = NULL;
  s->probes = 0;
  for (size_t i = 0; i < n && (!s->probe || engine_plan_wants_fewer(max)); i++) {
    TRY_GOTO(select_gather(s, &probes[i], max, &other, &cut, err));
    s->probes++;
    if (cut) continue;
    select_proposals swap = best;
    best = other;
    other = (select_proposals){.rids = swap.rids, .last = best.last};
    max = best.rids.n;
    s->probe = best.probe;
  }
  if (!s->probe) goto done;
  select_sort_rids(&best.rids);
  s->list = best.rids.v;
  s->n = best.rids.n;
  s->cap = best.rids.cap;
  best.rids = (engine_rids){0};
  while (s->at < s->n && s->list[s->at] <= s->last) s->at++; /* a later page */
  if (s->last < other.last) s->last = other.last;
done:
  mem_free(best.rids.v);
  mem_free(other.rids.v);
  return st;
}

static void select_sort_list(engine_select *s) {
  engine_rids rids = {s->list, s->n, s->cap};
  select_sort_rids(&rids);
  s->n = rids.n;
  while (s->at < s->n && s->list[s->at] == 0) s->at++;
}

static lode_status select_find_list(engine_select *s, lode_error *err) {
  if (s->planned) return LODE_OK;
  TRY(engine_reader_renew_if_old(s->reader, err));
  s->reader->taken = true;
  s->phase = SELECT_PHASE_SCAN;
  if (s->what.ids) {
    TRY(select_find_ids(s, err));
    if (s->as_asked)
      s->at = (uint64_t)s->last < s->n ? (size_t)s->last : s->n;
    else
      select_sort_list(s);
    s->phase = SELECT_PHASE_LIST;
  } else if (s->has_filter && !s->pending_only) {
    TRY(select_ask_index(s, err));
    if (s->probe) s->phase = SELECT_PHASE_LIST;
  }
  s->planned = true;
  return LODE_OK;
}

lode_status engine_select_ask(engine_select *s, bool *proposes, lode_error *err) {
  *proposes = false;
  TRY(select_find_list(s, err));
  *proposes = s->phase == SELECT_PHASE_LIST;
  return LODE_OK;
}

/* ---- Walk ---- */

lode_status engine_select_eval(engine_select *s, const store_rec *rec, bool *match, lode_error *err) {
  lode_str document = {NULL, 0};
  *match = !(s->pending_only && rec->vid != 0);
  if (!*match || !s->has_filter) return LODE_OK;
  if (filter_needs_document(s->filter)) TRY(engine_reader_document(s->reader, rec, &document, err));
  return filter_eval_match(s->eval, rec->metadata, document, match, err);
}

/* The next live record of the list; *more is false at its end. */
static lode_status select_next_listed(engine_select *s, store_rec *rec, bool *more, lode_error *err) {
  *more = false;
  while (s->at < s->n && !*more) {
    int64_t rid = s->list[s->at++];
    if (s->at % SELECT_CHECK_EVERY == 0 || !s->reader->tx) TRY(engine_reader_renew_if_old(s->reader, err));
    if (rid) TRY(store_rec_read(s->reader->tx, rid, rec, more, err));
  }
  if (!*more) s->phase = s->what.ids ? SELECT_PHASE_END : SELECT_PHASE_SCAN;
  return LODE_OK;
}

static lode_status select_begin_scan(engine_select *s, lode_error *err) {
  engine_reader *r = s->reader;
  uint64_t cursor = store_tx_cursor(r->tx);
  if (s->scan_tx == 0)
    s->scan_whole = !r->borrowed && (s->last & STORE_KEY_SEQ_MAX) == 0;
  else
    s->scan_whole &= cursor == s->scan_cursor; /* nothing was written in between */
  if (s->scan_tx == 0) s->scanned = 0;
  s->scan_cursor = cursor;
  s->scan_tx = r->count;
  return (s->pending_only ? store_rec_scan_pending : store_rec_scan)(r->tx, r->coll.cid, s->last, err);
}

/* A full scan of one moment must have seen as many records as the collection's count says. */
static lode_status select_end_scan(engine_select *s, lode_error *err) {
  const store_coll *c = &s->reader->coll;
  uint64_t expected = s->pending_only ? c->pending : c->records;
  s->phase = SELECT_PHASE_END;
  if (!s->scan_whole || s->scanned == expected) return LODE_OK;
  return err_set(err, LODE_CORRUPT,
                 "collection %.*s has %llu records%s and %llu were found: run `lode db verify`, then `lode db salvage`",
                 (int)c->name.len, c->name.data, (unsigned long long)expected,
                 s->pending_only ? " without a vector" : "", (unsigned long long)s->scanned);
}

static lode_status select_next_scanned(engine_select *s, store_rec *rec, bool *more, lode_error *err) {
  engine_reader *r = s->reader;
  TRY(engine_reader_renew_if_old(r, err));
  if (s->scan_tx != r->count) TRY(select_begin_scan(s, err));
  TRY(store_rec_next(r->tx, rec, more, err));
  if (!*more) return select_end_scan(s, err);
  s->last = rec->rid;
  s->scanned++;
  return LODE_OK;
}

lode_status engine_select_next(engine_select *s, store_rec *rec, bool *more, lode_error *err) {
  *more = false;
  TRY(select_find_list(s, err));
  while (s->phase != SELECT_PHASE_END) {
    bool found, match;
    TRY(s->phase == SELECT_PHASE_LIST ? select_next_listed(s, rec, &found, err)
                                      : select_next_scanned(s, rec, &found, err));
    if (!found) continue;
    TRY(engine_select_eval(s, rec, &match, err));
    s->evaluated++;
    if (!match) continue;
    *more = true;
    return LODE_OK;
  }
  *rec = (store_rec){0};
  return LODE_OK;
}

lode_status engine_select_all(engine_select *s, engine_rids *rids, lode_error *err) {
  store_rec rec;
  bool more = true;
  for (;;) {
    TRY(engine_select_next(s, &rec, &more, err));
    if (!more) break;
    if (!engine_rids_add(rids, rec.rid)) return err_nomem(err);
  }
  return LODE_OK;
}

lode_status engine_select_proposed(engine_select *s, engine_rids *rids, lode_error *err) {
  TRY(select_find_list(s, err));
  STORE_ENSURE(s->reader->handle->store->db, s->probe && s->phase == SELECT_PHASE_LIST, err);
  if (!mem_grow(&rids->v, &rids->cap, rids->n + s->n + 1, sizeof *rids->v)) return err_nomem(err);
  if (s->n) memcpy(rids->v + rids->n, s->list, s->n * sizeof *rids->v);
  rids->n += s->n;
  s->at = s->n;
  return engine_select_all(s, rids, err);
}

void engine_select_rewind(engine_select *s) {
  mem_free(s->list);
  s->list = NULL;
  s->n = s->cap = s->at = 0;
  s->last = 0;
  s->scan_tx = 0;
  s->phase = 0;
  s->planned = false;
  s->probe = NULL;
  s->probes = 0;
  s->evaluated = 0;
}
