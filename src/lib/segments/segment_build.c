/* SPDX-License-Identifier: Apache-2.0 */
/* segment_build.c - builds one segment of the vector index from the database file.
 *
 *   1. its row is put into the manifest, without bytes: from now on, erased vectors of its range are noted
 *   2. the keys of the live vectors in the range are read and sorted by record
 *   3. a quantisation model is made from a sample, then all vectors are read and go into a file NAME.tmp
 *   4. the graph is built, the file synced and renamed, the directory synced
 *   5. one transaction completes the row and removes those of the segments that it replaces; then their files are
 *      unlinked
 * Transactions for reading last at most 50 ms. A failure or a stop at any point leaves what was published as it was. A
 * merge is no different: the vectors are read from the database file again.
 */
#include "segments/segment_build.h"

#include <fcntl.h>

#include "platform/memory.h"

enum {
  BUILD_SAMPLE_ROWS = 4096,       /* vectors that the quantisation model is made from */
  BUILD_CHECK_EVERY = 16,         /* rows between two checks of the transaction's age */
  BUILD_FORGET_ROWS = 1000,       /* notes of dead vectors removed in a transaction */
  BUILD_MAX_PLACED_BYTES = 16000, /* of a vector: those on a page of 16 KiB */
  BUILD_BULK_BEAM = 64,           /* beam of graph construction in a bulk load */
  BUILD_BULK_DEGREE = 24,         /* degree of graphs made in a bulk load */
};

typedef struct build_job {
  segments_store *segments;
  const segments_build_request *request;
  segments_build_plan plan;
  store_manifest_row row;
  store_tx *tx;               /* open while reading */
  index_segment_record *keys; /* rid, vid; by rid */
  size_t n, cap;
  float *vector, *mean;
  store_places *places; /* NULL: the vectors are written to the segment */
  index_writer writer;
  int fd;
  char *tmp, *path;
  unsigned threads;
  uint64_t *replaced;
  size_t n_replaced, cap_replaced;
} build_job;

bool segments_build_is_stopped(const segments_build_request *r) { return r->stop && r->stop(r->stop_ctx); }

static lode_status build_cancelled(lode_error *err) {
  return err_set(err, LODE_CANCELLED, "cancelled: the index will be made later");
}

static lode_status build_progress(build_job *b, const char *phase, uint64_t done, uint64_t total, lode_error *err) {
  const lode_progress *p = &b->request->progress;
  atomic_store(&b->segments->progress.total, total);
  atomic_store(&b->segments->progress.done, done);
  if (segments_build_is_stopped(b->request) || !err_go_on(*p, phase, done, total)) return build_cancelled(err);
  return LODE_OK;
}

/* ---- 1: the row ---- */

static lode_status build_check_collection(build_job *b, store_tx *tx, lode_error *err) {
  store_coll coll;
  TRY(store_coll_load(tx, b->plan.cid, NULL, &coll, err));
  if (coll.uid == b->plan.uid && coll.dim == b->plan.dim) return LODE_OK;
  return err_set(err, LODE_CANCELLED, "the collection was replaced by another");
}

static lode_status build_register_row(build_job *b, lode_error *err) {
  store_tx *tx;
  lode_status st;
  TRY(store_tx_begin(b->segments->db, STORE_TX_WRITE, &tx, err));
  TRY_GOTO(build_check_collection(b, tx, err));
  if (b->plan.last == INT64_MAX) b->plan.last = store_vec_last(tx, b->plan.cid);
  b->row =
      (store_manifest_row){.id = rand_u64() >> 1, .cid = b->plan.cid, .after = b->plan.after, .last = b->plan.last};
  TRY_GOTO(store_manifest_put(tx, &b->row, err));
done:
  if (st == LODE_OK) return store_tx_commit(tx, err);
  store_tx_rollback(tx);
  return st;
}

/* ---- 2: the keys ---- */

static lode_status build_renew_tx(build_job *b, lode_error *err) {
  if (b->tx && !store_tx_is_old(b->tx)) return LODE_OK;
  store_tx_rollback(b->tx);
  b->tx = NULL;
  TRY(store_tx_begin(b->segments->db, STORE_TX_READ, &b->tx, err));
  return build_check_collection(b, b->tx, err);
}

static void build_end_reading(build_job *b) {
  store_tx_rollback(b->tx);
  b->tx = NULL;
}

static lode_status build_add_key(build_job *b, int64_t rid, int64_t vid, lode_error *err) {
  if (!mem_grow(&b->keys, &b->cap, b->n + 1, sizeof *b->keys)) return err_nomem(err);
  b->keys[b->n++] = (index_segment_record){.key = rid, .cursor = (uint64_t)vid};
  return LODE_OK;
}

/* Reads at most as many keys as a segment may have; the range is shortened if there are more. */
static lode_status build_read_keys(build_job *b, lode_error *err) {
  int64_t at = b->plan.after, vid, rid;
  bool more = true;
  while (more) {
    TRY(build_progress(b, "index", 0, 2 * (uint64_t)b->n, err));
    build_end_reading(b);
    TRY(build_renew_tx(b, err));
    TRY(store_vec_scan_keys(b->tx, b->plan.cid, at, err));
    for (size_t i = 1; more && (i % BUILD_CHECK_EVERY != 0 || !store_tx_is_old(b->tx)); i++) {
      TRY(store_vec_next_key(b->tx, &vid, &rid, &more, err));
      more = more && vid <= b->plan.last;
      if (more && b->n == b->plan.max_rows) {
        b->row.last = at;
        more = false;
      }
      if (!more) break;
      TRY(build_add_key(b, rid, vid, err));
      at = vid;
    }
  }
  build_end_reading(b);
  return LODE_OK;
}

static int build_compare_keys(const void *x, const void *y) {
  const index_segment_record *a = x, *c = y;
  if (a->key != c->key) return a->key < c->key ? -1 : 1;
  return a->cursor < c->cursor ? -1 : a->cursor > c->cursor;
}

size_t segments_keys_dedup(index_segment_record *keys, size_t n) {
  size_t kept = 0;
  if (n) qsort(keys, n, sizeof *keys, build_compare_keys);
  for (size_t i = 0; i < n; i++)
    if (i + 1 == n || keys[i].key != keys[i + 1].key) keys[kept++] = keys[i];
  return kept;
}

/* ---- 3: the vectors ---- */

/* *found is false when the vector was erased meanwhile. */
static lode_status build_read_vector(build_job *b, size_t i, bool *found, lode_error *err) {
  int64_t vid = (int64_t)b->keys[i].cursor, rid = 0;
  if (i % BUILD_CHECK_EVERY == 0) TRY(build_renew_tx(b, err));
  lode_status st = store_rec_vector(b->tx, vid, b->vector, b->plan.dim, err);
  *found = st == LODE_OK;
  if (st != LODE_CORRUPT) return st;
  TRY(store_vec_owner(b->tx, vid, &rid, err));
  return rid ? store_rec_vector(b->tx, vid, b->vector, b->plan.dim, err) : LODE_OK;
}

static lode_status build_train_model(build_job *b, quant_model *model, lode_error *err) {
  quant_fit fit;
  lode_status st = LODE_OK;
  bool found;
  size_t every = b->n / BUILD_SAMPLE_ROWS + 1;
  TRY(quant_fit_begin(&fit, b->plan.metric, b->plan.dim, err));
  for (size_t i = 0; i < b->n; i += every) {
    TRY_GOTO(build_renew_tx(b, err));
    TRY_GOTO(build_read_vector(b, i, &found, err));
    if (found) quant_fit_add(&fit, b->vector);
  }
  quant_fit_end(&fit, b->mean, model);
done:
  quant_fit_release(&fit);
  return st;
}

static lode_status build_write_bytes(void *ctx, uint64_t offset, const void *data, size_t n, lode_error *err) {
  const build_job *b = ctx;
  return os_write_full(b->fd, data, n, offset, err);
}

static bool build_graph_progress(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  build_job *b = ctx;
  (void)phase;
  (void)total;
  return build_progress(b, "index", b->n + done, 2 * (uint64_t)b->n, NULL) == LODE_OK;
}

static lode_status build_open_file(build_job *b, lode_error *err) {
  const char *folder = store_db_folder(b->segments->db);
  char name[SEGMENTS_NAME_MAX];
  b->tmp = segments_file_path(b->segments, b->row.id, ".tmp");
  b->path = segments_file_path(b->segments, b->row.id, ".seg");
  if (!b->tmp || !b->path) return err_nomem(err);
  TRY(storefile_make_segments_dir(folder, err));
  segments_file_name(name, b->row.id, ".tmp");
  b->fd = storefile_create(folder, name);
  return b->fd < 0 ? err_errno(err, errno, b->tmp) : LODE_OK;
}

static lode_status build_add_rows(build_job *b, lode_error *err) {
  bool found;
  for (size_t i = 0; i < b->n; i++) {
    if (i % 1024 == 0) TRY(build_progress(b, "index", i, 2 * (uint64_t)b->n, err));
    TRY(build_read_vector(b, i, &found, err));
    STORE_ENSURE(b->segments->db, i == 0 || b->keys[i - 1].key < b->keys[i].key, err);
    if (!found) continue;
    int64_t vid = (int64_t)b->keys[i].cursor;
    uint64_t place = b->places ? store_places_find(b->places, vid, b->vector, b->plan.dim) : 0;
    TRY(index_writer_add_placed(&b->writer, b->vector, b->keys[i].key, b->keys[i].cursor, place, err));
  }
  build_end_reading(b);
  return LODE_OK;
}

/* Large segments do not hold their vectors once more (docs/INDEX.md). Of many dimensions a row does not fit on a page
 * of the database file, and has no place. */
static lode_status build_open_places(build_job *b, lode_error *err) {
  uint64_t row = b->plan.dim * sizeof(float);
  if (row * b->n < segments_limits.place_bytes || row > BUILD_MAX_PLACED_BYTES) return LODE_OK;
  TRY(build_renew_tx(b, err));
  return store_places_open(b->tx, &b->places, err);
}

static lode_status build_make_file(build_job *b, lode_error *err) {
  index_writer_options options = {
      .id = b->row.id,
      .kind = b->n >= segments_limits.graph_rows && !b->request->flat && !b->plan.flat ? INDEX_GRAPH : INDEX_FLAT,
      .rows_hint = (uint32_t)b->n,
      .write = build_write_bytes,
      .ctx = b,
  };
  b->threads = segments_limits.threads ? segments_limits.threads : b->segments->options->build_threads;
  options.graph.parallel = segments_parallel(&b->threads);
  if (b->request->gentle && !segments_limits.threads && b->threads > 1) {
    b->threads /= 2;
    options.graph.parallel = segments_parallel(&b->threads);
  }
  options.graph.progress = (lode_progress){build_graph_progress, b};
  if (b->segments->options->bulk_load) {
    options.graph.beam = BUILD_BULK_BEAM;
    options.graph.degree = BUILD_BULK_DEGREE;
  }
  TRY(build_train_model(b, &options.model, err));
  TRY(build_open_places(b, err));
  options.placed = b->places != NULL;
  TRY(build_open_file(b, err));
  TRY(index_writer_begin(&b->writer, &options, err));
  TRY(build_add_rows(b, err));
  if (b->writer.info.n == 0) return LODE_OK; /* all were erased meanwhile */
  return index_writer_finish(&b->writer, err);
}

/* ---- 4 and 5: publication ---- */

static lode_status build_finish_file(build_job *b, lode_error *err) {
  if (OS_RETRY(os_api->fsync(b->fd)) != 0) return err_errno(err, errno, b->tmp);
  char from[SEGMENTS_NAME_MAX], to[SEGMENTS_NAME_MAX];
  segments_file_name(from, b->row.id, ".tmp");
  segments_file_name(to, b->row.id, ".seg");
  if (beneath_rename(store_db_folder(b->segments->db), from, to) != 0) return err_errno(err, errno, b->path);
  return beneath_sync_dir(store_db_folder(b->segments->db), to, err);
}

/* Notes the segments within the new one's range. */
static lode_status build_note_replaced(void *ctx, const store_manifest_row *row, lode_error *err) {
  build_job *b = ctx;
  if (row->id == b->row.id || row->after < b->row.after || row->last > b->row.last) return LODE_OK;
  if (!mem_grow(&b->replaced, &b->cap_replaced, b->n_replaced + 1, sizeof *b->replaced)) return err_nomem(err);
  b->replaced[b->n_replaced++] = row->id;
  return LODE_OK;
}

typedef struct build_successor {
  int64_t at;
  store_manifest_row row;
  bool found;
} build_successor;

static lode_status build_find_successor(void *ctx, const store_manifest_row *row, lode_error *err) {
  build_successor *f = ctx;
  (void)err;
  if (!f->found && row->proven && row->bytes && row->after == f->at) {
    f->row = *row;
    f->found = true;
  }
  return LODE_OK;
}

/* If the new segment is empty, the one after it takes over its range. */
static lode_status build_change_rows(build_job *b, store_tx *tx, bool empty, lode_error *err) {
  build_successor next = {.at = b->row.last};
  TRY(build_check_collection(b, tx, err));
  b->n_replaced = 0;
  TRY(store_manifest_each(tx, b->plan.cid, build_note_replaced, b, err));
  if (empty)
    TRY(store_manifest_remove(tx, b->row.id, err));
  else
    TRY(store_manifest_put(tx, &b->row, err));
  for (size_t i = 0; i < b->n_replaced; i++) TRY(store_manifest_remove(tx, b->replaced[i], err));
  if (!empty) return LODE_OK;
  TRY(store_manifest_each(tx, b->plan.cid, build_find_successor, &next, err));
  if (!next.found) return LODE_OK;
  next.row.after = b->row.after;
  return store_manifest_put(tx, &next.row, err);
}

static lode_status build_publish(build_job *b, bool empty, lode_error *err) {
  store_tx *tx;
  TRY(store_tx_begin(b->segments->db, STORE_TX_WRITE, &tx, err));
  lode_status st = build_change_rows(b, tx, empty, err);
  if (st == LODE_OK) return store_tx_commit(tx, err);
  store_tx_rollback(tx);
  return st;
}

/* ---- Afterwards: removing notes of dead vectors that no file holds any more ---- */

static int build_compare_vids(const void *x, const void *y) {
  const index_segment_record *a = x, *c = y;
  return a->cursor < c->cursor ? -1 : a->cursor > c->cursor;
}

typedef struct build_dead_notes {
  const build_job *b;
  int64_t *vids;
  size_t n, cap;
  int64_t last;
} build_dead_notes;

static lode_status build_collect_dead(void *ctx, int64_t vid, int64_t rid, lode_error *err) {
  build_dead_notes *l = ctx;
  index_segment_record key = {.cursor = (uint64_t)vid};
  (void)rid;
  l->last = vid;
  if (l->b->n && bsearch(&key, l->b->keys, l->b->n, sizeof key, build_compare_vids)) return LODE_OK;
  if (!mem_grow(&l->vids, &l->cap, l->n + 1, sizeof *l->vids)) return err_nomem(err);
  l->vids[l->n++] = vid;
  return l->n < BUILD_FORGET_ROWS ? LODE_OK : LODE_CANCELLED;
}

static lode_status build_forget_some(build_job *b, build_dead_notes *l, bool *more, lode_error *err) {
  store_tx *tx;
  TRY(store_tx_begin(b->segments->db, STORE_TX_WRITE, &tx, err));
  l->n = 0;
  lode_status st = store_dead_each(tx, l->last, b->row.last, build_collect_dead, l, err);
  *more = st == LODE_CANCELLED;
  if (st == LODE_OK || *more) st = store_dead_remove(tx, l->vids, l->n, err);
  if (st == LODE_OK) return store_tx_commit(tx, err);
  store_tx_rollback(tx);
  return st;
}

/* Not needed for correct results: what is left is removed by the next build of the range. */
static void build_forget_dead(build_job *b) {
  build_dead_notes l = {.b = b, .last = b->row.after};
  bool more = true;
  uint64_t n = 0;
  store_tx *tx;
  if (store_tx_begin(b->segments->db, STORE_TX_READ, &tx, NULL) != LODE_OK) return;
  lode_status st = store_dead_count(tx, b->row.after, b->row.last, &n, NULL);
  store_tx_rollback(tx);
  if (st != LODE_OK || n == 0) return;
  if (b->n) qsort(b->keys, b->n, sizeof *b->keys, build_compare_vids);
  while (more && !segments_build_is_stopped(b->request) && build_forget_some(b, &l, &more, NULL) == LODE_OK) {}
  mem_free(l.vids);
}

/* ---- One segment ---- */

static lode_status build_segment(build_job *b, lode_error *err) {
  TRY(build_read_keys(b, err)); /* also where all seems to be dead: counts of the dead may be too high */
  b->n = segments_keys_dedup(b->keys, b->n);
  bool empty = b->n == 0;
  if (!empty) TRY(build_make_file(b, err));
  empty = empty || b->writer.info.n == 0;
  STORE_ENSURE(b->segments->db, b->writer.info.n <= b->n && b->row.after <= b->row.last, err);
  if (!empty) {
    b->row.bytes = b->writer.info.bytes;
    b->row.rows = b->writer.info.n;
    b->row.kind = (uint32_t)b->writer.info.kind;
    b->row.table_crc = b->writer.table_crc;
    TRY(build_finish_file(b, err));
  }
  TRY(build_publish(b, empty, err));
  for (size_t i = 0; i < b->n_replaced; i++) segments_file_unlink(b->segments, b->replaced[i], ".seg");
  if (empty)
    b->row.bytes = 0;
  else
    atomic_fetch_add(&b->segments->progress.built, 1);
  build_forget_dead(b);
  return LODE_OK;
}

static lode_status build_run(segments_store *segments, const segments_build_request *request,
                             const segments_build_plan *plan, lode_error *err) {
  build_job b = {.segments = segments, .request = request, .plan = *plan, .fd = -1};
  lode_status st = LODE_OK;
  b.vector = mem_calloc(plan->dim, sizeof *b.vector);
  b.mean = mem_calloc(plan->dim, sizeof *b.mean);
  if (!b.vector || !b.mean) TRY_GOTO(err_nomem(err));
  os_memory_trim(); /* a build may take half of the budget */
  TRY_GOTO(build_register_row(&b, err));
  st = build_segment(&b, err);
  build_end_reading(&b);
  if (b.tmp && (st != LODE_OK || b.row.bytes == 0)) segments_file_unlink(segments, b.row.id, ".tmp");
  if (st != LODE_OK) { /* whether or not the commit succeeded: the row and the file go together */
    lode_error ignored;
    if (segments_manifest_remove(segments, b.row.id, &ignored) == LODE_OK)
      segments_file_unlink(segments, b.row.id, ".seg");
  }
done:
  if (b.fd >= 0) (void)os_api->close(b.fd);
  index_writer_release(&b.writer);
  store_places_close(b.places);
  mem_free(b.keys);
  mem_free(b.replaced);
  mem_free(b.vector);
  mem_free(b.mean);
  mem_free(b.tmp);
  mem_free(b.path);
  atomic_store(&segments->progress.total, 0);
  os_memory_trim();
  return st;
}

static lode_status build_step_locked(segments_store *segments, const segments_build_request *request, bool *more,
                                     lode_error *err) {
  segments_build_plan plan;
  TRY(segments_sweep(segments, err));
  segments_sweep_missing(segments);
  if (request->thorough) TRY(segments_sweep_check_files(segments, request, err));
  TRY(segments_sweep_suspects(segments, request->unreadable, err));
  TRY(segments_build_plan_next(segments, request, &plan, err));
  *more = plan.cid != 0;
  return plan.cid ? build_run(segments, request, &plan, err) : LODE_OK;
}

lode_status segments_build_step(segments_store *segments, const segments_build_request *request, bool *more,
                                lode_error *err) {
  *more = false;
  TRY(store_build_lock(segments->db, err));
  lode_status st = build_step_locked(segments, request, more, err);
  store_build_unlock(segments->db);
  return st;
}

lode_status segments_build_all(segments_store *segments, const segments_build_request *request, lode_error *err) {
  uint64_t until = os_api->now_ns() + (uint64_t)segments->options->busy_ms * 1000000;
  segments_build_request r = *request;
  bool more = true;
  while (more) {
    lode_status st = segments_build_step(segments, &r, &more, err);
    if (st == LODE_BUSY) {
      /* wait for a thread of this handle as long as it takes; another process does the work without us */
      if (segments_build_is_stopped(&r)) return build_cancelled(err);
      if (atomic_load(&segments->progress.total) > 0)
        until = os_api->now_ns() + (uint64_t)segments->options->busy_ms * 1000000;
      if (os_api->now_ns() >= until && r.unreadable) return st; /* the request was not carried out */
      if (os_api->now_ns() >= until) break;
      os_api->sleep_us(2000);
      more = true;
      continue;
    }
    TRY(st);
    r.thorough = r.unreadable = false; /* once is enough */
  }
  err_clear(err);
  return LODE_OK;
}
