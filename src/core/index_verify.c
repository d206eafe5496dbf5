/* index_verify.c - the vector index, checked against itself and against the truth.
 *
 * Of each segment that the manifest names: every checksum, code, link and ordinal, and that every row can be reached; then that
 * it holds every living vector of its range; then how many of the ten nearest its search finds for some of its own
 * vectors. A missing file is no damage: segments may be removed at any time and are made anew.
 */
#include "build.h"

#include <inttypes.h>

enum { NEAREST = 10, MOST_SAMPLES = 32, LOOK_EVERY = 64 };
#define MOST_READ_BYTES ((uint64_t)4 << 30)
#define LEAST_RECALL 0.7 /* of a sample: well below what chance makes of a good graph */

typedef struct check {
  lode_store *store;
  lode_damage_fn *found;
  void *ctx;
  lode_progress progress;
  uint64_t n_found;
  index_segment_record *keys;
  size_t n, cap;
} check;

static void tell(check *c, const store_manifest_row *row, const char *why) {
  char text[800];
  snprintf(text, sizeof text, "segment %016" PRIx64 " of the vector index: %s; `lode db optimize` makes it anew", row->id, why);
  c->n_found++;
  if (c->found) c->found(c->ctx, &(lode_damage){.what = "index", .detail = text});
}

/* The keys of the living vectors that the segment answers for, by record. */
static lode_status read_keys(check *c, const store_manifest_row *row, lode_error *err) {
  lode_status st = LODE_OK;
  int64_t at = row->after;
  bool more = true;
  c->n = 0;
  while (more && st == LODE_OK) {
    store_tx *tx;
    TRY(store_tx_begin(c->store->db, STORE_TX_READ, &tx, err));
    st = store_vec_scan_keys(tx, row->cid, at, err);
    for (size_t i = 1; st == LODE_OK && more && (i % LOOK_EVERY != 0 || !store_tx_is_old(tx)); i++) {
      int64_t vid, rid;
      st = store_vec_next_key(tx, &vid, &rid, &more, err);
      more = st == LODE_OK && more && vid <= row->last;
      if (!more) break;
      if (!mem_grow(&c->keys, &c->cap, c->n + 1, sizeof *c->keys)) st = err_nomem(err);
      else c->keys[c->n++] = (index_segment_record){.key = rid, .cursor = (uint64_t)vid};
      at = vid;
    }
    store_tx_rollback(tx);
  }
  return st;
}

/* Between two transactions a vector may be replaced by one that lies in the range of another segment: of two with the same
 * record the newer one was there when it was read, the older one before. */
static lode_status check_rows(check *c, lode__seg *seg, lode_error *err) {
  char why[160];
  size_t marked = 0;
  TRY(read_keys(c, &seg->row, err));
  size_t kept = lode__keys_settle(c->keys, c->n);
  lode__slots *slots = lode__slots_new(seg->row.rows, false);
  if (!slots) return err_nomem(err);
  lode_status st = index_segment_mark(seg->segment, c->keys, kept, slots->bits, &marked, err);
  lode__slots_release(slots);
  TRY(st);
  if (marked >= kept) return LODE_OK;
  snprintf(why, sizeof why, "%zu of %zu living vectors of its range are not in it", kept - marked, kept);
  tell(c, &seg->row, why);
  return LODE_OK;
}

typedef struct sampling {
  index_search_scratch room;
  index_hit near[NEAREST], exact[NEAREST];
  float *vector;
} sampling;

static lode_status search_both(index_segment *segment, sampling *s, uint32_t slot, size_t *hits, size_t *total, lode_error *err) {
  size_t n_near, n_exact;
  index_search_request request = {.query = s->vector, .k = NEAREST};
  TRY(index_segment_get_vector(segment, slot, s->vector, err));
  TRY(index_search(segment, &request, &s->room, s->near, &n_near, err));
  request.exact = true;
  TRY(index_search(segment, &request, &s->room, s->exact, &n_exact, err));
  *total += n_exact;
  for (size_t i = 0; i < n_near && n_exact; i++) *hits += s->near[i].distance <= s->exact[n_exact - 1].distance;
  return LODE_OK;
}

static lode_status check_recall(check *c, lode__seg *seg, lode_error *err) {
  sampling s = {0};
  char why[160];
  size_t hits = 0, total = 0;
  uint32_t n = seg->row.rows;
  uint64_t samples = MOST_READ_BYTES / ((uint64_t)n * seg->segment->info.dim * sizeof(float) + 1) + 1;
  if (samples > MOST_SAMPLES) samples = MOST_SAMPLES;
  if (samples > n) samples = n;
  s.vector = mem_calloc(seg->segment->info.dim, sizeof *s.vector);
  lode_status st = s.vector ? LODE_OK : err_nomem(err);
  for (uint64_t i = 0; i < samples && st == LODE_OK; i++)
    st = search_both(seg->segment, &s, (uint32_t)(i * n / samples), &hits, &total, err);
  index_search_scratch_release(&s.room);
  mem_free(s.vector);
  if (st != LODE_OK || (double)hits >= LEAST_RECALL * (double)total) return st;
  snprintf(why, sizeof why, "its search finds %zu of %zu nearest vectors only", hits, total);
  tell(c, &seg->row, why);
  return LODE_OK;
}

static lode_status check_file(check *c, const store_manifest_row *row, lode_error *err) {
  lode__seg *seg = NULL;
  lode_error why;
  index_graph_report report;
  if (lode__seg_is_missing(c->store, row->id)) return LODE_OK;
  err_clear(&why);
  lode_status st = lode__seg_open_checked(c->store, row, &seg, &why);
  if (st == LODE_OK) st = index_segment_verify(seg->segment, &report, &why);
  if (st == LODE_OK) st = check_rows(c, seg, &why);
  if (st == LODE_OK) st = check_recall(c, seg, &why);
  lode__seg_release(seg);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st == LODE_IO)
    return err_set(err, st, "segment %016" PRIx64 " of the vector index cannot be read: %.400s; if that stays so, `lode db optimize "
                      "--rebuild-unreadable` builds it again from the records", row->id, why.text);
  if (st == LODE_BUSY || st == LODE_GONE || st == LODE_CANCELLED) return err_set(err, st, "%s", why.text);
  if (st == LODE_OK) return LODE_OK;
  tell(c, row, why.text);
  lode__seg_suspect(c->store, row->id, st, why.text);
  return LODE_OK;
}

/* A segment that was replaced meanwhile, and whose file is gone or being unlinked, is not looked at. */
static lode_status still_there(check *c, uint64_t id, bool *there, lode_error *err) {
  lode__seg_rows rows;
  *there = false;
  TRY(lode__seg_list(c->store, 0, &rows, err));
  for (size_t i = 0; i < rows.n; i++) *there = *there || rows.v[i].id == id;
  mem_free(rows.v);
  return LODE_OK;
}

lode_status lode__build_verify(lode_store *store, lode_damage_fn *found, void *ctx, lode_progress progress,
                               uint64_t *n_found, lode_error *err) {
  check c = {.store = store, .found = found, .ctx = ctx, .progress = progress};
  lode__seg_rows rows = {0};
  bool there;
  lode_status st = lode__seg_list(store, 0, &rows, err);
  for (size_t i = 0; i < rows.n && st == LODE_OK; i++) {
    const store_manifest_row *row = &rows.v[i];
    if (progress.step && !progress.step(progress.ctx, "vector index", i, rows.n))
      st = err_set(err, LODE_CANCELLED, "cancelled");
    if (st == LODE_OK) st = still_there(&c, row->id, &there, err);
    if (st != LODE_OK || !there) continue;
    if (!row->proven) tell(&c, row, "its row in the manifest is damaged");
    else if (row->bytes) st = check_file(&c, row, err);
  }
  if (st == LODE_CORRUPT && c.n_found++ == 0 && found) found(ctx, &(lode_damage){.what = "index", .detail = err->text}); /* the manifest */
  *n_found = c.n_found;
  mem_free(c.keys);
  mem_free(rows.v);
  return st;
}
