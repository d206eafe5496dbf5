/* SPDX-License-Identifier: Apache-2.0 */
/* engine_text.c - text search, ranked by BM25.
 *
 * score = sum over words of idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average)), k1 = 1.2, b = 0.75, idf =
 * ln(1 + (N - df + 0.5) / (df + 0.5)). Lengths are bytes of the document, so that no word counts need be stored. tf
 * comes from the text index for records up to its cursor, and from the documents themselves after it: both use the same
 * tokenizer, so the score does not depend on where a record was found. df counts live records only.
 *
 * A common word is in a million documents, and a transaction lasts 50 ms: index and tail are read in as many
 * transactions as needed, all of one moment (reader.c).
 *
 * Candidates are visited in order of an upper bound of their score: the score with the document length from the text
 * index, which is rounded down (store/text_index.c). Once `want` hits have scores that the rest cannot reach, the
 * rest is not read.
 */
#include "engine/engine_text.h"

#include "base/token.h"

#include <math.h>

enum { BM25_CHECK_EVERY = 16 };
#define BM25_K1 1.2
#define BM25_B 0.75

typedef struct bm25_tally { /* how often a candidate contains a word */
  uint16_t count;
  uint8_t word;
} bm25_tally;

typedef struct bm25_candidate {
  int64_t rid;
  uint64_t bytes; /* lower bound of its document's length */
  size_t first;   /* index of its first tally */
  uint32_t n;
  double bound; /* upper bound of its score */
} bm25_candidate;

typedef struct bm25_search {
  engine_reader *reader;
  const engine_text_query *query;
  mem_arena arena;
  lode_str words[STORE_TEXT_MAX_WORDS];
  size_t n_words;
  uint64_t df[STORE_TEXT_MAX_WORDS];
  double idf[STORE_TEXT_MAX_WORDS];
  double average;
  bm25_candidate *all;
  size_t n, cap;
  bm25_tally *tallies;
  size_t n_tallies, cap_tallies;
  int64_t cursor; /* of the index; later records are scanned */
  int64_t last;   /* records up to here were read from the index */
  unsigned looks;
  store_doc_sizes sizes;
  bool cut; /* the transaction grew old before the end of the index */
  size_t hint;
  double *kept; /* heap of the best scores so far, at most `want`, smallest first */
  size_t n_kept, cap_kept;
} bm25_search;

/* ---- Words ---- */

static size_t bm25_find_word(const bm25_search *s, const char *text, size_t len) {
  for (size_t w = 0; w < s->n_words; w++)
    if (s->words[w].len == len && memcmp(s->words[w].data, text, len) == 0) return w;
  return SIZE_MAX;
}

static int bm25_add_word(void *ctx, const token_item *t) {
  bm25_search *s = ctx;
  if (bm25_find_word(s, t->text, t->len) != SIZE_MAX) return 0;
  char *copy = mem_arena_copy(&s->arena, t->text, t->len);
  if (!copy) return -1;
  s->words[s->n_words++] = (lode_str){copy, t->len};
  return s->n_words == STORE_TEXT_MAX_WORDS; /* further words are ignored */
}

typedef struct bm25_counting {
  const bm25_search *s;
  uint32_t counts[STORE_TEXT_MAX_WORDS];
} bm25_counting;

static int bm25_count_word(void *ctx, const token_item *t) {
  bm25_counting *c = ctx;
  size_t w = bm25_find_word(c->s, t->text, t->len);
  if (w != SIZE_MAX && c->counts[w] < UINT16_MAX) c->counts[w]++;
  return 0;
}

/* ---- Candidates ---- */

static lode_status bm25_add_candidate(bm25_search *s, int64_t rid, uint64_t bytes, const uint16_t *counts,
                                      lode_error *err) {
  uint64_t limit = s->reader->handle->store->head.options->memory_bytes;
  if (s->n * sizeof *s->all + s->n_tallies * sizeof *s->tallies > limit)
    return err_set(err, LODE_LIMIT,
                   "too many records hold these words for the store's memory budget: use rarer words, or "
                   "open the store with more memory_bytes");
  if (!mem_grow(&s->all, &s->cap, s->n + 1, sizeof *s->all) ||
      !mem_grow(&s->tallies, &s->cap_tallies, s->n_tallies + s->n_words, sizeof *s->tallies))
    return err_nomem(err);
  bm25_candidate c = {.rid = rid, .bytes = bytes, .first = s->n_tallies};
  for (size_t w = 0; w < s->n_words; w++) {
    if (!counts[w]) continue;
    s->tallies[s->n_tallies++] = (bm25_tally){counts[w], (uint8_t)w};
    s->df[w]++;
    c.n++;
  }
  /* Counted in df in any case: scores do not depend on the selection. */
  if (c.n && (!s->query->only || engine_rids_contain(s->query->only, rid, &s->hint)))
    s->all[s->n++] = c;
  else
    s->n_tallies = c.first;
  return LODE_OK;
}

static lode_status bm25_on_posting(void *ctx, int64_t rid, const uint16_t *counts, lode_error *err) {
  bm25_search *s = ctx;
  bool alive;
  if (++s->looks % BM25_CHECK_EVERY == 0 && engine_reader_is_old(s->reader)) {
    s->cut = true;
    return LODE_CANCELLED; /* this posting comes again */
  }
  s->last = rid;
  if (rid > s->cursor) return LODE_OK;
  TRY(store_rec_is_live(s->reader->tx, rid, &alive, err));
  if (!alive) return LODE_OK;
  uint64_t bytes;
  TRY(store_doc_sizes_get(s->reader->tx, &s->sizes, rid, &bytes, err));
  return bm25_add_candidate(s, rid, bytes, counts, err);
}

static lode_status bm25_scan_index(bm25_search *s, lode_error *err) {
  engine_reader *r = s->reader;
  s->hint = 0;
  do {
    TRY(engine_reader_renew_if_old(r, err));
    s->cut = false;
    lode_status st = store_text_each(r->tx, r->coll.cid, s->last, s->words, s->n_words, bm25_on_posting, s, err);
    if (st != LODE_OK && !s->cut) return st;
  } while (s->cut);
  return LODE_OK;
}

/* Records that the index does not hold yet. */
static lode_status bm25_scan_tail(bm25_search *s, lode_error *err) {
  engine_reader *r = s->reader;
  int64_t last = s->cursor;
  uint64_t scan_tx = 0;
  for (uint64_t i = 0; !s->query->max_tail || i < s->query->max_tail; i++) {
    store_rec rec;
    bool more;
    lode_str document;
    bm25_counting c = {.s = s};
    uint16_t counts[STORE_TEXT_MAX_WORDS] = {0};
    if (i % BM25_CHECK_EVERY == 0) TRY(engine_reader_renew_if_old(r, err));
    if (scan_tx != r->count) TRY(store_rec_scan(r->tx, r->coll.cid, last, err));
    scan_tx = r->count;
    TRY(store_rec_next(r->tx, &rec, &more, err));
    if (!more) return LODE_OK;
    last = rec.rid;
    s->query->trace->tail++;
    if (!rec.has_document) continue;
    TRY(engine_reader_document(r, &rec, &document, err));
    (void)token_split(document.data, document.len, bm25_count_word, &c);
    bool any = false;
    for (size_t w = 0; w < s->n_words; w++) {
      counts[w] = (uint16_t)c.counts[w];
      any = any || counts[w];
    }
    if (any) TRY(bm25_add_candidate(s, rec.rid, document.len, counts, err));
  }
  return LODE_OK;
}

/* ---- Scores ---- */

static double bm25_score(const bm25_search *s, const bm25_candidate *c, double length) {
  double norm = BM25_K1 * (1 - BM25_B + BM25_B * (s->average > 0 ? length / s->average : 0)), sum = 0;
  for (size_t i = 0; i < c->n; i++) {
    bm25_tally t = s->tallies[c->first + i];
    sum += s->idf[t.word] * t.count * (BM25_K1 + 1) / (t.count + norm);
  }
  return sum;
}

static void bm25_set_weights(bm25_search *s) {
  double documents = (double)s->reader->coll.documents;
  s->average = documents > 0 ? (double)s->reader->coll.document_bytes / documents : 0;
  for (size_t w = 0; w < s->n_words; w++) {
    double df = (double)s->df[w], n = documents > df ? documents : df;
    s->idf[w] = s->query->skip_common && 2 * df > n ? 0 : log(1 + (n - df + 0.5) / (df + 0.5));
  }
  for (size_t i = 0; i < s->n; i++) s->all[i].bound = bm25_score(s, &s->all[i], (double)s->all[i].bytes);
}

/* all[0 .. n) is a heap, the largest bound on top. */
static void bm25_sink_candidate(bm25_candidate *all, size_t at, size_t n) {
  bm25_candidate c = all[at];
  for (size_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && all[child + 1].bound > all[child].bound) child++;
    if (all[child].bound <= c.bound) break;
    all[at] = all[child];
  }
  all[at] = c;
}

static bm25_candidate bm25_pop_candidate(bm25_search *s) {
  bm25_candidate c = s->all[0];
  s->all[0] = s->all[--s->n];
  if (s->n) bm25_sink_candidate(s->all, 0, s->n);
  return c;
}

static bool bm25_is_full(const bm25_search *s) { return s->n_kept >= s->query->want; }

/* Remembers a score among the best `want`. */
static bool bm25_keep_score(bm25_search *s, double score) {
  double *h = s->kept;
  size_t at;
  if (!bm25_is_full(s)) {
    if (!mem_grow(&s->kept, &s->cap_kept, s->n_kept + 1, sizeof *s->kept)) return false;
    h = s->kept;
    for (at = s->n_kept++; at > 0 && h[(at - 1) / 2] > score; at = (at - 1) / 2) h[at] = h[(at - 1) / 2];
    h[at] = score;
    return true;
  }
  if (score <= h[0]) return true;
  at = 0;
  for (size_t child; (child = 2 * at + 1) < s->n_kept; at = child) {
    if (child + 1 < s->n_kept && h[child + 1] < h[child]) child++;
    if (h[child] >= score) break;
    h[at] = h[child];
  }
  h[at] = score;
  return true;
}

/* ---- The search ---- */

/* Adds the candidate to hits if it is still live and matches. */
static lode_status bm25_consider(bm25_search *s, bm25_candidate *c, engine_hits *hits, lode_error *err) {
  store_rec rec;
  bool found, match = true;
  TRY(store_rec_is_live(s->reader->tx, c->rid, &found, err));
  if (!found) return LODE_OK;
  TRY(store_rec_document_bytes(s->reader->tx, c->rid, &c->bytes, err));
  double score = bm25_score(s, c, (double)c->bytes);
  if (bm25_is_full(s) && score < s->kept[0]) return LODE_OK;
  TRY(store_rec_read(s->reader->tx, c->rid, &rec, &found, err));
  if (!found || !rec.has_document) return LODE_OK;
  if (s->query->select) TRY(engine_select_eval(s->query->select, &rec, &match, err));
  if (!match) return LODE_OK;
  char *id = mem_arena_copy(s->query->arena, rec.id.data, rec.id.len);
  if (!id || !bm25_keep_score(s, score) || !mem_grow(&hits->v, &hits->cap, hits->n + 1, sizeof *hits->v))
    return err_nomem(err);
  hits->v[hits->n++] =
      (engine_hit){.rid = rec.rid, .vid = rec.vid, .id = {id, rec.id.len}, .distance = NAN, .score = score};
  return LODE_OK;
}

static lode_status bm25_gather(bm25_search *s, lode_error *err) {
  s->cursor = s->reader->coll.text_cursor;
  TRY(bm25_scan_tail(s, err));
  return bm25_scan_index(s, err);
}

lode_status engine_text_search(engine_reader *reader, const engine_text_query *query, engine_hits *hits,
                               lode_error *err) {
  bm25_search s = {.reader = reader, .query = query};
  lode_status st = LODE_OK;
  hits->n = 0;
  if (query->want == 0) return LODE_OK;
  mem_arena_init(&s.arena, 0);
  if (token_split_query(query->text.data ? query->text.data : "", query->text.len, bm25_add_word, &s) < 0) {
    st = err_nomem(err);
    goto done;
  }
  if (s.n_words == 0) goto done;
  TRY_GOTO(engine_reader_renew_if_old(reader, err));
  reader->taken = true;
  TRY_GOTO(bm25_gather(&s, err));
  bm25_set_weights(&s);
  query->trace->words += s.n_words;
  query->trace->with_word += s.n;
  for (size_t i = s.n / 2; i-- > 0;) bm25_sink_candidate(s.all, i, s.n);
  for (size_t i = 1; s.n && !(bm25_is_full(&s) && s.all[0].bound < s.kept[0]); i++) {
    bm25_candidate c = bm25_pop_candidate(&s);
    query->trace->scored++;
    TRY_GOTO(bm25_consider(&s, &c, hits, err));
    if (i % BM25_CHECK_EVERY == 0) TRY_GOTO(engine_reader_renew_if_old(reader, err));
  }
  engine_hits_sort(hits, true);
  if (hits->n > query->want) hits->n = query->want;
done:
  mem_arena_release(&s.arena);
  mem_free(s.all);
  mem_free(s.tallies);
  mem_free(s.kept);
  return st;
}
