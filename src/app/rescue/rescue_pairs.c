/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_pairs.c - matches elements of the index to records: by the pickle or, where that is lost, by order; see
 * rescue_plan.h. */
#include "rescue/rescue_plan.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>

#include "os/os.h"
#include "rescue/pickle.h"

enum { LABEL_MAX_ANCHORS = 16 };
#define LABEL_MAX_PICKLE_BYTES (UINT64_C(4) << 30)

/* What the pickle says about a record. */
typedef struct label_claims {
  uint64_t to_label, to_id; /* labels by id_to_label and by label_to_id; 0: none */
} label_claims;

typedef struct label_matcher {
  rescue_plan *p;
  rescue_index_dir *f;
  size_t folder;
  label_claims *said; /* by record */
  uint32_t *owner;    /* by element of the index: 1 + record; UINT32_MAX: several claim it */
} label_matcher;

/* ---- The pickle ---- */

/* Notes an id whose row a damaged database has lost. False: out of memory. */
static bool label_add_lost(label_matcher *g, lode_str id) {
  rescue_plan *p = g->p;
  if (!p->chroma->damaged || g->f->set_aside || rescue_plan_mentions(p, id)) return true;
  const char *copy = mem_arena_copy(&p->chroma->arena, id.data, id.len);
  if (!copy || !mem_grow(&p->lost, &p->cap_lost, p->n_lost + 1, sizeof *p->lost)) return false;
  p->lost[p->n_lost++] = (lode_str){copy, id.len};
  return true;
}

static bool label_on_pair(void *ctx, rescue_pickle_part part, lode_str id, int64_t number) {
  label_matcher *g = ctx;
  if (part == RESCUE_PICKLE_ID_TO_SEQ) return true;
  rescue_rec *r = rescue_plan_find(g->p, id);
  if (part == RESCUE_PICKLE_ID_TO_LABEL) {
    g->f->pickle_ids++;
    g->f->pickle_extra += r == NULL;
    if (!r && !label_add_lost(g, id)) return false;
  }
  if (!r || number <= 0) return true;
  label_claims *l = &g->said[r - g->p->recs];
  if (part == RESCUE_PICKLE_ID_TO_LABEL)
    l->to_label = (uint64_t)number;
  else
    l->to_id = (uint64_t)number;
  return true;
}

static void label_on_number(void *ctx, lode_str name, int64_t number) {
  label_matcher *g = ctx;
  if (str_eq(name, STR_LIT("max_seq_id"))) g->f->pickle_seq = number;
}

static lode_status label_read_pickle(label_matcher *g, lode_error *err) {
  rescue_index_dir *f = g->f;
  rescue_pickle_sink sink = {label_on_pair, label_on_number, g};
  strbuf path = {0}, bytes = {0};
  struct stat sb;
  lode_status st = LODE_OK;
  size_t got = 0;
  f->pickle = RESCUE_PICKLE_LOST;
  strbuf_addf(&path, "%s/index_metadata.pickle", f->path);
  strbuf_addch(&path, 0);
  int fd = path.failed ? -1 : OS_RETRY(os_api->open(path.data, O_RDONLY | O_NONBLOCK, 0));
  strbuf_release(&path);
  if (fd < 0) return LODE_OK;
  f->has_pickle = true;
  if (OS_RETRY(os_api->fstat(fd, &sb)) == 0 && S_ISREG(sb.st_mode) && sb.st_size > 0 &&
      (uint64_t)sb.st_size <= LABEL_MAX_PICKLE_BYTES) {
    char *buf = strbuf_reserve(&bytes, (size_t)sb.st_size);
    if (!buf)
      st = err_nomem(err);
    else if (os_read_full(fd, buf, (size_t)sb.st_size, 0, &got, NULL) != LODE_OK)
      got = 0;
  }
  (void)os_api->close(fd);
  if (st == LODE_OK) st = rescue_pickle_read((lode_str){bytes.data ? bytes.data : "", got}, &sink, err);
  strbuf_release(&bytes);
  if (st == LODE_OK) f->pickle = RESCUE_PICKLE_WHOLE;
  if (st == LODE_CORRUPT) f->pickle = f->pickle_ids ? RESCUE_PICKLE_TRUNCATED : RESCUE_PICKLE_LOST;
  return st == LODE_CORRUPT ? LODE_OK : st;
}

/* ---- Assigning elements to records ---- */

static void label_assign(label_matcher *g, size_t rec, const rescue_hnsw_slot *slot, bool by_order) {
  rescue_rec *r = &g->p->recs[rec];
  size_t i = (size_t)(slot - g->f->index.slots);
  if (r->slot) return;
  r->slot = (uint32_t)i + 1;
  r->folder = (uint8_t)g->folder;
  r->by_order = by_order;
}

/* The label that the pickle gives a record; 0 when it has none or its two dictionaries disagree. */
static uint64_t label_from_pickle(label_matcher *g, size_t rec) {
  const label_claims *l = &g->said[rec];
  if (l->to_label && l->to_id && l->to_label != l->to_id) return 0;
  return l->to_label ? l->to_label : l->to_id;
}

static void label_assign_by_pickle(label_matcher *g) {
  rescue_plan *p = g->p;
  for (size_t i = 0; i < p->n; i++) {
    const rescue_hnsw_slot *slot = p->recs[i].alive ? rescue_hnsw_find(&g->f->index, label_from_pickle(g, i)) : NULL;
    if (g->said[i].to_label && g->said[i].to_id && g->said[i].to_label != g->said[i].to_id) g->f->pickle_conflicts++;
    if (!slot) continue;
    uint32_t *owner = &g->owner[slot - g->f->index.slots];
    *owner = *owner ? UINT32_MAX : (uint32_t)i + 1;
  }
  for (size_t s = 0; s < g->f->index.n; s++) {
    if (g->owner[s] == UINT32_MAX)
      g->f->pickle_conflicts++;
    else if (g->owner[s])
      label_assign(g, g->owner[s] - 1, &g->f->index.slots[s], false);
  }
}

/* ---- By order ---- */

/* A record in the index whose vector is also in the log: the element with the same vector is the record's. */
typedef struct label_anchor {
  size_t rec;
  uint32_t slot; /* 1 + element */
  bool several;
} label_anchor;

static bool label_slot_is_live(const rescue_hnsw_slot *s) { return !s->deleted && !s->beyond; }

static bool label_same_vector(const float *a, const float *b, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (fabsf(a[i] - b[i]) > 1e-5f * (1 + fabsf(a[i]))) return false;
  return true;
}

static size_t label_choose_anchors(label_matcher *g, label_anchor *anchors, float *vectors) {
  rescue_plan *p = g->p;
  size_t n = 0, candidates = 0, seen = 0;
  for (int pass = 0; pass < 2; pass++) { /* count them, then choose: spread evenly, with the first and the last */
    for (size_t i = 0; i < p->n; i++) {
      const rescue_rec *r = &p->recs[i];
      if (!r->alive || !r->log_vector || r->late || r->weak) continue;
      if (p->coll->vector_seq >= 0 && p->chroma->logs[p->coll->log + r->log_vector - 1].seq > p->coll->vector_seq)
        continue;
      if (pass == 0) {
        candidates++;
        continue;
      }
      size_t k = seen++;
      size_t step = candidates > LABEL_MAX_ANCHORS ? (candidates - 1) / (LABEL_MAX_ANCHORS - 1) : 1;
      if ((k % step && k != candidates - 1) || n == LABEL_MAX_ANCHORS) continue;
      if (rescue_plan_log_vector(p, r, vectors + n * p->dimension)) anchors[n++] = (label_anchor){.rec = i};
    }
  }
  return n;
}

static lode_status label_find_anchors(label_matcher *g, lode_error *err) {
  rescue_plan *p = g->p;
  rescue_hnsw *x = &g->f->index;
  bool cosine = p->coll->metric == LODE_COSINE;
  label_anchor anchors[LABEL_MAX_ANCHORS];
  if (x->shape.dimension != p->dimension) return LODE_OK;
  float *vectors = mem_alloc((LABEL_MAX_ANCHORS + 1) * (size_t)p->dimension * sizeof *vectors);
  if (!vectors) return err_nomem(err);
  float *it = vectors + LABEL_MAX_ANCHORS * (size_t)p->dimension;
  size_t n = label_choose_anchors(g, anchors, vectors);
  for (size_t s = 0; s < x->n && n; s++) {
    if (!label_slot_is_live(&x->slots[s]) || rescue_hnsw_vector(x, &x->slots[s], cosine, it) != RESCUE_HNSW_EXACT)
      continue;
    for (size_t a = 0; a < n; a++) {
      if (!label_same_vector(vectors + a * p->dimension, it, p->dimension)) continue;
      anchors[a].several |= anchors[a].slot != 0;
      anchors[a].slot = (uint32_t)s + 1;
    }
  }
  for (size_t a = 0; a < n; a++)
    if (anchors[a].slot && !anchors[a].several && g->owner[anchors[a].slot - 1] == 0) {
      g->owner[anchors[a].slot - 1] = (uint32_t)anchors[a].rec + 1;
      label_assign(g, anchors[a].rec, &x->slots[anchors[a].slot - 1], true);
    }
  mem_free(vectors);
  return LODE_OK;
}

typedef struct label_row_order {
  int64_t key;
  uint32_t rec;
} label_row_order;

static int label_compare_order(const void *a, const void *b) {
  const label_row_order *x = a, *y = b;
  return x->key < y->key ? -1 : x->key > y->key;
}

/* Matches the rows and elements between two certain pairs, if there are equally many. */
static void label_assign_gap(label_matcher *g, const label_row_order *rows, size_t n_rows, size_t first_slot,
                             size_t end_slot) {
  const rescue_hnsw *x = &g->f->index;
  size_t live = 0, r = 0;
  for (size_t s = first_slot; s < end_slot; s++) live += label_slot_is_live(&x->slots[s]);
  if (live != n_rows) return;
  for (size_t s = first_slot; s < end_slot; s++) {
    if (!label_slot_is_live(&x->slots[s])) continue;
    g->owner[s] = rows[r].rec + 1;
    label_assign(g, rows[r++].rec, &x->slots[s], true);
  }
}

static lode_status label_assign_by_order(label_matcher *g, lode_error *err) {
  rescue_plan *p = g->p;
  const rescue_hnsw *x = &g->f->index;
  size_t n = 0, from_row = 0, from_slot = 0, certain = 0;
  TRY(label_find_anchors(g, err));
  label_row_order *rows = mem_alloc((p->n + 1) * sizeof *rows);
  if (!rows) return err_nomem(err);
  for (size_t i = 0; i < p->n; i++)
    if (p->recs[i].alive && p->recs[i].key > 0 && !p->recs[i].late)
      rows[n++] = (label_row_order){p->recs[i].key, (uint32_t)i};
  if (n > 1) qsort(rows, n, sizeof *rows, label_compare_order);
  for (size_t i = 0; i < n; i++) {
    const rescue_rec *r = &p->recs[rows[i].rec];
    if (!r->slot || r->folder != g->folder) continue;
    if (r->slot - 1 < from_slot) { /* out of order: what is between cannot be matched */
      certain = 0;
      break;
    }
    label_assign_gap(g, rows + from_row, i - from_row, from_slot, r->slot - 1);
    from_row = i + 1;
    from_slot = r->slot;
    certain++;
  }
  /* without a certain pair, order proves nothing */
  if (certain) label_assign_gap(g, rows + from_row, n - from_row, from_slot, x->n);
  mem_free(rows);
  return LODE_OK;
}

lode_status rescue_plan_match_labels(rescue_plan *p, size_t folder, lode_error *err) {
  rescue_index_dir *f = &p->folders[folder];
  label_matcher g = {.p = p, .f = f, .folder = folder};
  lode_status st = LODE_OK;
  g.said = mem_calloc(p->n + 1, sizeof *g.said);
  g.owner = mem_calloc(f->index.n + 1, sizeof *g.owner);
  if (!g.said || !g.owner) {
    st = err_nomem(err);
    goto done;
  }
  TRY_GOTO(label_read_pickle(&g, err));
  label_assign_by_pickle(&g);
  if (p->chroma->ordered && f->index.n && (f->pickle != RESCUE_PICKLE_WHOLE || f->pickle_conflicts))
    TRY_GOTO(label_assign_by_order(&g, err));
done:
  mem_free(g.said);
  mem_free(g.owner);
  return st;
}
