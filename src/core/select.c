/* select.c - turns a selection into living records. The one mechanism behind get, delete, query, facets and export.
 *
 * Ways to find the records, cheapest first:
 *   ids      each id is looked up, in sorted order
 *   proposed the metadata index is asked for one condition that every match fulfils (a probe of the filter); it knows
 *            the records up to its cursor, so what follows the cursor is scanned
 *   scan     all records, or all pending ones
 * Whatever was found is then read and judged by the filter itself (filter.h): an index makes a selection fast, never
 * wrong. Records come in the order of their keys.
 *
 * A selection that takes longer than a read transaction may last goes on in a new one from the last key, of the same
 * moment unless its reader follows (reader.c). One that follows, and takes all records or asks by ids, sees each
 * record as it is when it is looked at, and every record that existed when it began and still does, once.
 */
#include "core.h"

enum { PHASE_LIST, PHASE_SCAN, PHASE_END };
enum { MOST_PROBES = 8, LEAST_PROPOSALS = 64, LOOK_EVERY = 16,
       MOST_GENEROUS = 200000 /* some 40 ms */ };

/* ---- Lists of keys ---- */

bool lode__rids_add(lode__rids *rids, int64_t rid) {
  if (!mem_grow(&rids->v, &rids->cap, rids->n + 1, sizeof *rids->v)) return false;
  rids->v[rids->n++] = rid;
  return true;
}

void lode__rids_sort(lode__rids *rids) {
  size_t kept = 0;
  bool sorted = true;
  for (size_t i = 1; i < rids->n && sorted; i++) sorted = rids->v[i - 1] < rids->v[i];
  if (sorted) return;
  qsort(rids->v, rids->n, sizeof *rids->v, sort_cmp_i64);
  for (size_t i = 0; i < rids->n; i++)
    if (kept == 0 || rids->v[kept - 1] != rids->v[i]) rids->v[kept++] = rids->v[i];
  rids->n = kept;
}

bool lode__rids_have(const lode__rids *rids, int64_t rid, size_t *hint) {
  size_t low = 0, high = rids->n, at = *hint < high ? *hint : high;
  if (at < high && rids->v[at] < rid) at++; /* keys asked for in rising order are found here */
  if ((at == high || rids->v[at] >= rid) && (at == 0 || rids->v[at - 1] < rid)) low = high = at;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (rids->v[middle] < rid)
      low = middle + 1;
    else
      high = middle;
  }
  *hint = low;
  return low < rids->n && rids->v[low] == rid;
}

/* ---- Begin and end ---- */

lode_status lode__select_init(lode__select *s, lode__reader *reader, const lode_selection *what, lode_error *err) {
  lode_status st;
  *s = (lode__select){.reader = reader, .what = *what};
  TRY_GOTO(lode__check_selection(what, err));
  TRY_GOTO(filter_parse(what->where, what->where_document, &s->filter, err));
  TRY_GOTO(filter_eval_new(s->filter, &s->eval, err));
  s->has_filter = !filter_is_true(s->filter);
done:
  if (st != LODE_OK) lode__select_release(s);
  return st;
}

void lode__select_release(lode__select *s) {
  filter_eval_free(s->eval);
  filter_free(s->filter);
  mem_free(s->list);
  *s = (lode__select){0};
}

void lode__select_after(lode__select *s, int64_t after) { s->last = after; }

/* ---- Plan ---- */

static int compare_ids(const void *a, const void *b, void *ctx) {
  const lode_str *ids = ctx;
  return str_cmp(ids[*(const size_t *)a], ids[*(const size_t *)b]);
}

/* The rid of each id asked for, found in sorted order, kept in the order asked; 0 where there is none. */
static lode_status find_ids(lode__select *s, lode_error *err) {
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
  if (n) qsort_r(order, n, sizeof *order, compare_ids, (void *)(uintptr_t)s->what.ids);
  for (size_t i = 0; i < n; i++) {
    lode_str id = s->what.ids[order[i]];
    if (i % LOOK_EVERY == 0) TRY_GOTO(lode__reader_renew_if_old(s->reader, err));
    if (i && str_eq(id, s->what.ids[order[i - 1]]))
      s->list[order[i]] = s->list[order[i - 1]];
    else if (id.data && id.len && id.len <= LODE_MAX_ID_BYTES)
      TRY_GOTO(store_rec_find(s->reader->tx, s->reader->coll.cid, id, &s->list[order[i]], err));
  }
done:
  mem_free(order);
  return st;
}

typedef struct proposals {
  lode__rids rids;
  const filter_probe *probe;
  int64_t last;   /* the index's cursor: later records are scanned */
} proposals;

static lode_status propose(void *ctx, const meta_value *value, bool exact, int64_t rid, lode_error *err) {
  proposals *p = ctx;
  const filter_probe *probe = p->probe;
  if (rid > p->last) return LODE_OK;
  if (exact && probe->low_open && probe->has_low && meta_value_cmp(value, &probe->low) == 0) return LODE_OK;
  if (exact && probe->high_open && probe->has_high && meta_value_cmp(value, &probe->high) == 0) return LODE_OK;
  return lode__rids_add(&p->rids, rid) ? LODE_OK : err_nomem(err);
}

/* Asks the index for a probe. *cut: it proposes more than `most`. */
static lode_status gather(lode__select *s, const filter_probe *probe, size_t most, proposals *p, bool *cut, lode_error *err) {
  store_term_range range = {.key = probe->key, .low_open = probe->low_open, .high_open = probe->high_open};
  size_t rounds = probe->n_values ? probe->n_values : 1;
  *cut = rounds > most;
  p->rids.n = 0;
  p->probe = probe;
  for (size_t i = 0; i < rounds && !*cut; i++) {
    if (probe->n_values) {
      range.low = range.high = &probe->values[i];
    } else {
      range.low = probe->has_low ? &probe->low : NULL;
      range.high = probe->has_high ? &probe->high : NULL;
    }
    TRY(lode__reader_renew_if_old(s->reader, err));
    TRY(store_term_each(s->reader->tx, s->reader->coll.cid, &range, most - p->rids.n + 1, cut, propose, p, err));
    if (p->rids.n > most) *cut = true;
  }
  return LODE_OK;
}

/* Keeps the proposals of the probe with the fewest, if that is a small part of the collection. */
static lode_status ask_index(lode__select *s, bool *usable, lode_error *err) {
  const filter_probe *probes;
  proposals best = {0}, other = {.last = s->reader->coll.term_cursor};
  lode_status st = LODE_OK;
  size_t n = filter_get_probes(s->filter, &probes);
  size_t records = (size_t)s->reader->coll.records, most = records / 5 + LEAST_PROPOSALS;
  if (s->will_reuse && filter_is_probe(s->filter) && most < MOST_GENEROUS) most = records < MOST_GENEROUS ? records : MOST_GENEROUS;
  bool cut;
  *usable = false;
  for (size_t i = 0; i < n && i < MOST_PROBES && (!*usable || most > LEAST_PROPOSALS); i++) {
    TRY_GOTO(gather(s, &probes[i], most, &other, &cut, err));
    if (cut) continue;
    proposals swap = best;
    best = other;
    other = (proposals){.rids = swap.rids, .last = best.last};
    most = best.rids.n;
    *usable = true;
  }
  if (!*usable) goto done;
  lode__rids_sort(&best.rids);
  s->list = best.rids.v;
  s->n = best.rids.n;
  s->cap = best.rids.cap;
  best.rids = (lode__rids){0};
  while (s->at < s->n && s->list[s->at] <= s->last) s->at++; /* a later page */
  if (s->last < other.last) s->last = other.last;
done:
  mem_free(best.rids.v);
  mem_free(other.rids.v);
  return st;
}

static void sort_list(lode__select *s) {
  lode__rids rids = {s->list, s->n, s->cap};
  lode__rids_sort(&rids);
  s->n = rids.n;
  while (s->at < s->n && s->list[s->at] == 0) s->at++;
}

static lode_status plan(lode__select *s, lode_error *err) {
  bool usable = false;
  if (s->planned) return LODE_OK;
  TRY(lode__reader_renew_if_old(s->reader, err));
  s->reader->taken = true;
  s->phase = PHASE_SCAN;
  if (s->what.ids) {
    TRY(find_ids(s, err));
    if (s->as_asked)
      s->at = (uint64_t)s->last < s->n ? (size_t)s->last : s->n;
    else
      sort_list(s);
    s->phase = PHASE_LIST;
  } else if (s->has_filter && !s->pending_only) {
    TRY(ask_index(s, &usable, err));
    if (usable) s->phase = PHASE_LIST;
  }
  s->planned = true;
  return LODE_OK;
}

lode_status lode__select_plan(lode__select *s, bool *cheap, lode_error *err) {
  *cheap = false;
  TRY(plan(s, err));
  *cheap = s->phase == PHASE_LIST;
  return LODE_OK;
}

/* ---- Walk ---- */

lode_status lode__select_judge(lode__select *s, const store_rec *rec, bool *match, lode_error *err) {
  lode_str document = {NULL, 0};
  *match = !(s->pending_only && rec->vid != 0);
  if (!*match || !s->has_filter) return LODE_OK;
  if (filter_needs_document(s->filter)) TRY(lode__reader_document(s->reader, rec, &document, err));
  return filter_eval_match(s->eval, rec->metadata, document, match, err);
}

/* The next record of the list that lives; *more is false behind its end. */
static lode_status next_listed(lode__select *s, store_rec *rec, bool *more, lode_error *err) {
  *more = false;
  while (s->at < s->n && !*more) {
    int64_t rid = s->list[s->at++];
    if (s->at % LOOK_EVERY == 0 || !s->reader->tx) TRY(lode__reader_renew_if_old(s->reader, err));
    if (rid) TRY(store_rec_read(s->reader->tx, rid, rec, more, err));
  }
  if (!*more) s->phase = s->what.ids ? PHASE_END : PHASE_SCAN;
  return LODE_OK;
}

static lode_status begin_scan(lode__select *s, lode_error *err) {
  lode__reader *r = s->reader;
  uint64_t cursor = store_tx_cursor(r->tx);
  if (s->scan_tx == 0) s->scan_whole = !r->borrowed && (s->last & STORE_KEY_SEQ_MAX) == 0;
  else s->scan_whole &= cursor == s->scan_cursor; /* no record was written in between */
  if (s->scan_tx == 0) s->scanned = 0;
  s->scan_cursor = cursor;
  s->scan_tx = r->count;
  return (s->pending_only ? store_rec_scan_pending : store_rec_scan)(r->tx, r->coll.cid, s->last, err);
}

/* A scan of everything at one moment has met as many records as the truth says there are. */
static lode_status end_scan(lode__select *s, lode_error *err) {
  const store_coll *c = &s->reader->coll;
  uint64_t said = s->pending_only ? c->pending : c->records;
  s->phase = PHASE_END;
  if (!s->scan_whole || s->scanned == said) return LODE_OK;
  return err_set(err, LODE_CORRUPT,
                    "collection %.*s has %llu records%s and %llu were found: run `lode db verify`, then `lode db salvage`",
                    (int)c->name.len, c->name.data, (unsigned long long)said, s->pending_only ? " without a vector" : "",
                    (unsigned long long)s->scanned);
}

static lode_status next_scanned(lode__select *s, store_rec *rec, bool *more, lode_error *err) {
  lode__reader *r = s->reader;
  TRY(lode__reader_renew_if_old(r, err));
  if (s->scan_tx != r->count) TRY(begin_scan(s, err));
  TRY(store_rec_next(r->tx, rec, more, err));
  if (!*more) return end_scan(s, err);
  s->last = rec->rid;
  s->scanned++;
  return LODE_OK;
}

lode_status lode__select_next(lode__select *s, store_rec *rec, bool *more, lode_error *err) {
  *more = false;
  TRY(plan(s, err));
  while (s->phase != PHASE_END) {
    bool found, match;
    TRY(s->phase == PHASE_LIST ? next_listed(s, rec, &found, err) : next_scanned(s, rec, &found, err));
    if (!found) continue;
    TRY(lode__select_judge(s, rec, &match, err));
    if (!match) continue;
    *more = true;
    return LODE_OK;
  }
  *rec = (store_rec){0};
  return LODE_OK;
}

lode_status lode__select_all(lode__select *s, lode__rids *rids, lode_error *err) {
  store_rec rec;
  bool more = true;
  for (;;) {
    TRY(lode__select_next(s, &rec, &more, err));
    if (!more) break;
    if (!lode__rids_add(rids, rec.rid)) return err_nomem(err);
  }
  return LODE_OK;
}

lode_status lode__select_propose(lode__select *s, lode__rids *rids, bool *proposed, lode_error *err) {
  TRY(plan(s, err));
  *proposed = s->phase == PHASE_LIST && !s->what.ids && !s->pending_only && filter_is_probe(s->filter);
  if (*proposed) {
    if (!mem_grow(&rids->v, &rids->cap, rids->n + s->n + 1, sizeof *rids->v)) return err_nomem(err);
    if (s->n) memcpy(rids->v + rids->n, s->list, s->n * sizeof *rids->v);
    rids->n += s->n;
    s->at = s->n;
  }
  return lode__select_all(s, rids, err);
}

void lode__select_again(lode__select *s) {
  mem_free(s->list);
  s->list = NULL;
  s->n = s->cap = s->at = 0;
  s->last = 0;
  s->scan_tx = 0;
  s->phase = 0;
  s->planned = false;
}
