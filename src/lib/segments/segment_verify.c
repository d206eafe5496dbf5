/* SPDX-License-Identifier: Apache-2.0 */
/* segment_verify.c - checks the vector index against itself and the database file.
 *
 * For each segment of the manifest: every checksum, quantised row, link and ordinal; that every row can be reached;
 * that it holds every live vector of its range; and how many of the ten nearest its search finds for a sample of its
 * own vectors. A missing file is no damage: segments may be removed at any time and are rebuilt.
 */
#include "segments/segment_build.h"
#include "index/index_search.h"

#include <inttypes.h>

enum { RECHECK_NEAREST = 10, RECHECK_MAX_SAMPLES = 32, RECHECK_CHECK_EVERY = 64 };
#define RECHECK_MAX_READ_BYTES ((uint64_t)4 << 30)
#define RECHECK_MIN_RECALL 0.7 /* of a sample; a good graph is well above that */

typedef struct recheck_job {
  segments_store *segments;
  lode_damage_fn *found;
  void *ctx;
  lode_progress progress;
  uint64_t n_found;
  index_segment_record *keys;
  size_t n, cap;
} recheck_job;

static void recheck_report(recheck_job *c, const store_manifest_row *row, const char *why) {
  char text[800];
  snprintf(text, sizeof text, "segment %016" PRIx64 " of the vector index: %s; `lode db optimize` rebuilds it", row->id,
           why);
  c->n_found++;
  if (c->found) c->found(c->ctx, &(lode_damage){.what = "index", .detail = text});
}

/* The keys of the live vectors in the segment's range, by record. */
static lode_status recheck_read_keys(recheck_job *c, const store_manifest_row *row, lode_error *err) {
  lode_status st = LODE_OK;
  int64_t at = row->after;
  bool more = true;
  c->n = 0;
  while (more && st == LODE_OK) {
    store_tx *tx;
    TRY(store_tx_begin(c->segments->db, STORE_TX_READ, &tx, err));
    st = store_vec_scan_keys(tx, row->cid, at, err);
    for (size_t i = 1; st == LODE_OK && more && (i % RECHECK_CHECK_EVERY != 0 || !store_tx_is_old(tx)); i++) {
      int64_t vid, rid;
      st = store_vec_next_key(tx, &vid, &rid, &more, err);
      more = st == LODE_OK && more && vid <= row->last;
      if (!more) break;
      if (!mem_grow(&c->keys, &c->cap, c->n + 1, sizeof *c->keys))
        st = err_nomem(err);
      else
        c->keys[c->n++] = (index_segment_record){.key = rid, .cursor = (uint64_t)vid};
      at = vid;
    }
    store_tx_rollback(tx);
  }
  return st;
}

/* Between two transactions a vector may be replaced by one in the range of another segment. Of two with the same
 * record, the newer one is current and the older one is ignored. */
static lode_status recheck_rows(recheck_job *c, segments_file *seg, lode_error *err) {
  char why[160];
  size_t marked = 0;
  TRY(recheck_read_keys(c, &seg->row, err));
  size_t kept = segments_keys_dedup(c->keys, c->n);
  segments_slots *slots = segments_slots_new(seg->row.rows, false);
  if (!slots) return err_nomem(err);
  lode_status st = index_segment_mark(seg->segment, c->keys, kept, slots->bits, &marked, err);
  segments_slots_release(slots);
  TRY(st);
  if (marked >= kept) return LODE_OK;
  snprintf(why, sizeof why, "%zu of %zu living vectors of its range are not in it", kept - marked, kept);
  recheck_report(c, &seg->row, why);
  return LODE_OK;
}

typedef struct recheck_sampling {
  index_search_scratch scratch;
  index_hit near[RECHECK_NEAREST], exact[RECHECK_NEAREST];
  float *vector;
} recheck_sampling;

static lode_status recheck_search_both(index_segment *segment, recheck_sampling *s, uint32_t slot, size_t *hits,
                                       size_t *total, lode_error *err) {
  size_t n_near, n_exact;
  index_search_request request = {.query = s->vector, .k = RECHECK_NEAREST};
  TRY(index_segment_get_vector(segment, slot, s->vector, NULL, err));
  if (index_vector_is_gone(s->vector)) return LODE_OK; /* not at its place any more */
  TRY(index_search(segment, &request, &s->scratch, s->near, &n_near, err));
  request.exact = true;
  TRY(index_search(segment, &request, &s->scratch, s->exact, &n_exact, err));
  *total += n_exact;
  for (size_t i = 0; i < n_near && n_exact; i++) *hits += s->near[i].distance <= s->exact[n_exact - 1].distance;
  return LODE_OK;
}

static lode_status recheck_recall(recheck_job *c, segments_file *seg, lode_error *err) {
  recheck_sampling s = {0};
  char why[160];
  size_t hits = 0, total = 0;
  uint32_t n = seg->row.rows;
  uint64_t samples = RECHECK_MAX_READ_BYTES / ((uint64_t)n * seg->segment->info.dim * sizeof(float) + 1) + 1;
  if (samples > RECHECK_MAX_SAMPLES) samples = RECHECK_MAX_SAMPLES;
  if (samples > n) samples = n;
  s.vector = mem_calloc(seg->segment->info.dim, sizeof *s.vector);
  lode_status st = s.vector ? LODE_OK : err_nomem(err);
  for (uint64_t i = 0; i < samples && st == LODE_OK; i++)
    st = recheck_search_both(seg->segment, &s, (uint32_t)(i * n / samples), &hits, &total, err);
  index_search_scratch_release(&s.scratch);
  mem_free(s.vector);
  if (st != LODE_OK || (double)hits >= RECHECK_MIN_RECALL * (double)total) return st;
  snprintf(why, sizeof why, "its search finds %zu of %zu nearest vectors only", hits, total);
  recheck_report(c, &seg->row, why);
  return LODE_OK;
}

static lode_status recheck_file(recheck_job *c, const store_manifest_row *row, lode_error *err) {
  segments_file *seg = NULL;
  lode_error why;
  index_graph_report report;
  if (segments_is_missing(c->segments, row->id)) return LODE_OK;
  err_clear(&why);
  lode_status st = segments_open_checked(c->segments, row, &seg, &why);
  if (st == LODE_OK) st = index_segment_verify(seg->segment, &report, &why);
  if (st == LODE_OK) st = recheck_rows(c, seg, &why);
  if (st == LODE_OK) st = recheck_recall(c, seg, &why);
  segments_file_release(seg);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st == LODE_IO)
    return err_set(err, st,
                   "segment %016" PRIx64 " of the vector index cannot be read: %.400s; if that stays so, `lode db "
                   "optimize --rebuild-unreadable` builds it again from the records",
                   row->id, why.text);
  if (st == LODE_BUSY || st == LODE_GONE || st == LODE_CANCELLED) return err_set(err, st, "%s", why.text);
  if (st == LODE_OK) return LODE_OK;
  recheck_report(c, row, why.text);
  segments_suspect(c->segments, row->id, st, why.text);
  return LODE_OK;
}

/* A segment that was replaced meanwhile is skipped: its file may be gone. */
static lode_status recheck_still_listed(recheck_job *c, uint64_t id, bool *there, lode_error *err) {
  segments_manifest rows;
  *there = false;
  TRY(segments_manifest_load(c->segments, 0, &rows, err));
  for (size_t i = 0; i < rows.n; i++) *there = *there || rows.v[i].id == id;
  mem_free(rows.v);
  return LODE_OK;
}

lode_status segments_verify(segments_store *segments, lode_damage_fn *found, void *ctx, lode_progress progress,
                            uint64_t *n_found, lode_error *err) {
  recheck_job c = {.segments = segments, .found = found, .ctx = ctx, .progress = progress};
  segments_manifest rows = {0};
  bool there;
  lode_status st = segments_manifest_load(segments, 0, &rows, err);
  for (size_t i = 0; i < rows.n && st == LODE_OK; i++) {
    const store_manifest_row *row = &rows.v[i];
    st = err_progress(progress, "checking the vector index", i, rows.n, err);
    if (st == LODE_OK) st = recheck_still_listed(&c, row->id, &there, err);
    if (st != LODE_OK || !there) continue;
    if (!row->proven)
      recheck_report(&c, row, "its row in the manifest is damaged");
    else if (row->bytes)
      st = recheck_file(&c, row, err);
  }
  if (st == LODE_CORRUPT && c.n_found++ == 0 && found) /* the manifest */
    found(ctx, &(lode_damage){.what = "index", .detail = err->text});
  *n_found = c.n_found;
  mem_free(c.keys);
  mem_free(rows.v);
  return st;
}
