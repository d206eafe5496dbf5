/* build.c - makes one segment of the vector index out of the truth.
 *
 *   1. its row is put into the manifest, without bytes: whoever erases a vector of its range notes that from now on
 *   2. the keys of the living vectors of the range are read, and sorted by record
 *   3. a model of the codes is made from some of them, then all are read and go into a file NAME.tmp
 *   4. the graph is made, the file is synced and renamed, the folder synced
 *   5. one transaction completes the row and takes out those of the segments that it replaces; then their files go
 * Reading is done in transactions of at most 50 ms. A failure or a stop at any point leaves what was published as it was.
 * A merge is nothing else: the vectors are read from the truth again, which makes it the same as a first build.
 */
#include "build.h"

#include <fcntl.h>

enum { SAMPLE_ROWS = 4096, LOOK_EVERY = 16, FORGET_ROWS = 1000, BULK_BEAM = 64, BULK_DEGREE = 24 };

typedef struct build {
  lode_store *store;
  const lode__build_request *request;
  lode__plan plan;
  store_manifest_row row;
  store_tx *tx;                /* while reading */
  index_segment_record *keys;  /* rid, vid; by rid */
  size_t n, cap;
  float *vector, *mean;
  index_writer maker;
  int fd;
  char *tmp, *path;
  unsigned threads;
  uint64_t *replaced;
  size_t n_replaced, cap_replaced;
} build;

bool lode__build_stops(const lode__build_request *r) { return r->stop && r->stop(r->stop_ctx); }

static lode_status cancelled(lode_error *err) {
  return err_set(err, LODE_CANCELLED, "cancelled: the index will be made later");
}

static lode_status tell(build *b, const char *phase, uint64_t done, uint64_t total, lode_error *err) {
  const lode_progress *p = &b->request->progress;
  atomic_store(&b->store->progress.total, total);
  atomic_store(&b->store->progress.done, done);
  if (lode__build_stops(b->request) || (p->step && !p->step(p->ctx, phase, done, total))) return cancelled(err);
  return LODE_OK;
}

/* ---- 1: the row ---- */

static lode_status check_collection(build *b, store_tx *tx, lode_error *err) {
  store_coll coll;
  TRY(store_coll_load(tx, b->plan.cid, NULL, &coll, err));
  if (coll.uid == b->plan.uid && coll.dim == b->plan.dim) return LODE_OK;
  return err_set(err, LODE_CANCELLED, "the collection was replaced by another");
}

static lode_status register_row(build *b, lode_error *err) {
  store_tx *tx;
  lode_status st;
  TRY(store_tx_begin(b->store->db, STORE_TX_WRITE, &tx, err));
  TRY_GOTO(check_collection(b, tx, err));
  if (b->plan.last == INT64_MAX) b->plan.last = store_vec_last(tx, b->plan.cid);
  b->row = (store_manifest_row){.id = rand_u64() >> 1, .cid = b->plan.cid, .after = b->plan.after, .last = b->plan.last};
  TRY_GOTO(store_manifest_put(tx, &b->row, err));
done:
  if (st == LODE_OK) return store_tx_commit(tx, err);
  store_tx_rollback(tx);
  return st;
}

/* ---- 2: the keys ---- */

static lode_status renew(build *b, lode_error *err) {
  if (b->tx && !store_tx_is_old(b->tx)) return LODE_OK;
  store_tx_rollback(b->tx);
  b->tx = NULL;
  TRY(store_tx_begin(b->store->db, STORE_TX_READ, &b->tx, err));
  return check_collection(b, b->tx, err);
}

static void end_reading(build *b) {
  store_tx_rollback(b->tx);
  b->tx = NULL;
}

static lode_status add_key(build *b, int64_t rid, int64_t vid, lode_error *err) {
  if (!mem_grow(&b->keys, &b->cap, b->n + 1, sizeof *b->keys)) return err_nomem(err);
  b->keys[b->n++] = (index_segment_record){.key = rid, .cursor = (uint64_t)vid};
  return LODE_OK;
}

/* As many as one segment may have; the range is shortened when there are more. */
static lode_status read_keys(build *b, lode_error *err) {
  int64_t at = b->plan.after, vid, rid;
  bool more = true;
  while (more) {
    TRY(tell(b, "index", 0, 2 * (uint64_t)b->n, err));
    end_reading(b);
    TRY(renew(b, err));
    TRY(store_vec_scan_keys(b->tx, b->plan.cid, at, err));
    for (size_t i = 1; more && (i % LOOK_EVERY != 0 || !store_tx_is_old(b->tx)); i++) {
      TRY(store_vec_next_key(b->tx, &vid, &rid, &more, err));
      more = more && vid <= b->plan.last;
      if (more && b->n == b->plan.most_rows) {
        b->row.last = at;
        more = false;
      }
      if (!more) break;
      TRY(add_key(b, rid, vid, err));
      at = vid;
    }
  }
  end_reading(b);
  return LODE_OK;
}

static int by_key(const void *x, const void *y) {
  const index_segment_record *a = x, *c = y;
  if (a->key != c->key) return a->key < c->key ? -1 : 1;
  return a->cursor < c->cursor ? -1 : a->cursor > c->cursor;
}

size_t lode__keys_settle(index_segment_record *keys, size_t n) {
  size_t kept = 0;
  if (n) qsort(keys, n, sizeof *keys, by_key);
  for (size_t i = 0; i < n; i++)
    if (i + 1 == n || keys[i].key != keys[i + 1].key) keys[kept++] = keys[i];
  return kept;
}

/* ---- 3: the vectors ---- */

/* *found is false when the vector was erased meanwhile. */
static lode_status read_vector(build *b, size_t i, bool *found, lode_error *err) {
  int64_t vid = (int64_t)b->keys[i].cursor, rid = 0;
  if (i % LOOK_EVERY == 0) TRY(renew(b, err));
  lode_status st = store_rec_vector(b->tx, vid, b->vector, b->plan.dim, err);
  *found = st == LODE_OK;
  if (st != LODE_CORRUPT) return st;
  TRY(store_vec_owner(b->tx, vid, &rid, err));
  return rid ? store_rec_vector(b->tx, vid, b->vector, b->plan.dim, err) : LODE_OK;
}

static lode_status fit_model(build *b, quant_model *model, lode_error *err) {
  quant_fit fit;
  lode_status st = LODE_OK;
  bool found;
  size_t every = b->n / SAMPLE_ROWS + 1;
  TRY(quant_fit_begin(&fit, b->plan.metric, b->plan.dim, err));
  for (size_t i = 0; i < b->n; i += every) {
    TRY_GOTO(renew(b, err));
    TRY_GOTO(read_vector(b, i, &found, err));
    if (found) quant_fit_add(&fit, b->vector);
  }
  quant_fit_end(&fit, b->mean, model);
done:
  quant_fit_release(&fit);
  return st;
}

static lode_status write_bytes(void *ctx, uint64_t offset, const void *data, size_t n, lode_error *err) {
  const build *b = ctx;
  return os_write_full(b->fd, data, n, offset, err);
}

static bool graph_step(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  build *b = ctx;
  (void)phase;
  (void)total;
  return tell(b, "index", b->n + done, 2 * (uint64_t)b->n, NULL) == LODE_OK;
}

static lode_status open_file(build *b, lode_error *err) {
  const char *folder = store_db_folder(b->store->db);
  char name[LODE__SEG_NAME];
  b->tmp = lode__seg_path(b->store, b->row.id, ".tmp");
  b->path = lode__seg_path(b->store, b->row.id, ".seg");
  if (!b->tmp || !b->path) return err_nomem(err);
  if (beneath_mkdir(folder, STOREFILE_SEGMENTS_DIR, 0700) == 0) TRY(beneath_sync_dir(folder, STOREFILE_SEGMENTS_DIR, err));
  else if (errno != EEXIST) return err_errno(err, errno, STOREFILE_SEGMENTS_DIR);
  lode__seg_name(name, b->row.id, ".tmp");
  b->fd = beneath_open(folder, name, O_RDWR | O_CREAT | O_EXCL, 0600);
  return b->fd < 0 ? err_errno(err, errno, b->tmp) : LODE_OK;
}

static lode_status add_rows(build *b, lode_error *err) {
  bool found;
  for (size_t i = 0; i < b->n; i++) {
    if (i % 1024 == 0) TRY(tell(b, "index", i, 2 * (uint64_t)b->n, err));
    TRY(read_vector(b, i, &found, err));
    if (found) TRY(index_writer_add(&b->maker, b->vector, b->keys[i].key, b->keys[i].cursor, err));
  }
  end_reading(b);
  return LODE_OK;
}

static lode_status make_file(build *b, lode_error *err) {
  index_writer_options options = {
      .id = b->row.id,
      .kind = b->n >= lode__build_limits_now.graph_rows && !b->request->flat && !b->plan.flat ? INDEX_GRAPH : INDEX_FLAT,
      .rows_hint = (uint32_t)b->n,
      .write = write_bytes,
      .ctx = b,
  };
  b->threads = lode__build_limits_now.threads ? lode__build_limits_now.threads : b->store->options->build_threads;
  options.graph.parallel = lode__threads(&b->threads);
  if (b->request->gentle && !lode__build_limits_now.threads && b->threads > 1) {
    b->threads /= 2;
    options.graph.parallel = lode__threads(&b->threads);
  }
  options.graph.progress = (lode_progress){graph_step, b};
  if (b->store->options->bulk_load) {
    options.graph.beam = BULK_BEAM;
    options.graph.degree = BULK_DEGREE;
  }
  TRY(fit_model(b, &options.model, err));
  TRY(open_file(b, err));
  TRY(index_writer_begin(&b->maker, &options, err));
  TRY(add_rows(b, err));
  if (b->maker.info.n == 0) return LODE_OK; /* all were erased meanwhile */
  return index_writer_finish(&b->maker, err);
}

/* ---- 4 and 5: publication ---- */

static lode_status settle_file(build *b, lode_error *err) {
  if (OS_RETRY(os_api->fsync(b->fd)) != 0) return err_errno(err, errno, b->tmp);
  char from[LODE__SEG_NAME], to[LODE__SEG_NAME];
  lode__seg_name(from, b->row.id, ".tmp");
  lode__seg_name(to, b->row.id, ".seg");
  if (beneath_rename(store_db_folder(b->store->db), from, to) != 0) return err_errno(err, errno, b->path);
  return beneath_sync_dir(store_db_folder(b->store->db), to, err);
}

/* Those that lie within the new one's range; the one behind an empty gap takes the gap over. */
static lode_status see_row(void *ctx, const store_manifest_row *row, lode_error *err) {
  build *b = ctx;
  if (row->id == b->row.id || row->after < b->row.after || row->last > b->row.last) return LODE_OK;
  if (!mem_grow(&b->replaced, &b->cap_replaced, b->n_replaced + 1, sizeof *b->replaced)) return err_nomem(err);
  b->replaced[b->n_replaced++] = row->id;
  return LODE_OK;
}

typedef struct behind { int64_t at; store_manifest_row row; bool found; } behind;

static lode_status find_behind(void *ctx, const store_manifest_row *row, lode_error *err) {
  behind *f = ctx;
  (void)err;
  if (!f->found && row->proven && row->bytes && row->after == f->at) {
    f->row = *row;
    f->found = true;
  }
  return LODE_OK;
}

static lode_status change_rows(build *b, store_tx *tx, bool empty, lode_error *err) {
  behind next = {.at = b->row.last};
  TRY(check_collection(b, tx, err));
  b->n_replaced = 0;
  TRY(store_manifest_each(tx, b->plan.cid, see_row, b, err));
  if (empty) TRY(store_manifest_remove(tx, b->row.id, err));
  else TRY(store_manifest_put(tx, &b->row, err));
  for (size_t i = 0; i < b->n_replaced; i++) TRY(store_manifest_remove(tx, b->replaced[i], err));
  if (!empty) return LODE_OK;
  TRY(store_manifest_each(tx, b->plan.cid, find_behind, &next, err));
  if (!next.found) return LODE_OK;
  next.row.after = b->row.after;
  return store_manifest_put(tx, &next.row, err);
}

static lode_status publish(build *b, bool empty, lode_error *err) {
  store_tx *tx;
  TRY(store_tx_begin(b->store->db, STORE_TX_WRITE, &tx, err));
  lode_status st = change_rows(b, tx, empty, err);
  if (st == LODE_OK) return store_tx_commit(tx, err);
  store_tx_rollback(tx);
  return st;
}

/* ---- Afterwards: notes of dead vectors that are in no file any more ---- */

static int by_cursor(const void *x, const void *y) {
  const index_segment_record *a = x, *c = y;
  return a->cursor < c->cursor ? -1 : a->cursor > c->cursor;
}

typedef struct leftovers {
  const build *b;
  lode__rids vids;
  int64_t last;
} leftovers;

static lode_status see_dead(void *ctx, int64_t vid, int64_t rid, lode_error *err) {
  leftovers *l = ctx;
  index_segment_record key = {.cursor = (uint64_t)vid};
  (void)rid;
  l->last = vid;
  if (l->b->n && bsearch(&key, l->b->keys, l->b->n, sizeof key, by_cursor)) return LODE_OK;
  if (!lode__rids_add(&l->vids, vid)) return err_nomem(err);
  return l->vids.n < FORGET_ROWS ? LODE_OK : LODE_CANCELLED;
}

static lode_status forget_some(build *b, leftovers *l, bool *more, lode_error *err) {
  store_tx *tx;
  TRY(store_tx_begin(b->store->db, STORE_TX_WRITE, &tx, err));
  l->vids.n = 0;
  lode_status st = store_dead_each(tx, l->last, b->row.last, see_dead, l, err);
  *more = st == LODE_CANCELLED;
  if (st == LODE_OK || *more) st = store_dead_remove(tx, l->vids.v, l->vids.n, err);
  if (st == LODE_OK) return store_tx_commit(tx, err);
  store_tx_rollback(tx);
  return st;
}

/* Not needed for right answers: what is left is left to the next build of the range. */
static void forget_dead(build *b) {
  leftovers l = {.b = b, .last = b->row.after};
  bool more = true;
  uint64_t n = 0;
  store_tx *tx;
  if (store_tx_begin(b->store->db, STORE_TX_READ, &tx, NULL) != LODE_OK) return;
  lode_status st = store_dead_count(tx, b->row.after, b->row.last, &n, NULL);
  store_tx_rollback(tx);
  if (st != LODE_OK || n == 0) return;
  if (b->n) qsort(b->keys, b->n, sizeof *b->keys, by_cursor);
  while (more && !lode__build_stops(b->request) && forget_some(b, &l, &more, NULL) == LODE_OK) {}
  mem_free(l.vids.v);
}

/* ---- One segment ---- */

static lode_status build_one(build *b, lode_error *err) {
  bool empty = b->plan.empty;
  if (!empty) TRY(read_keys(b, err));
  b->n = lode__keys_settle(b->keys, b->n);
  empty = b->n == 0;
  if (!empty) TRY(make_file(b, err));
  empty = empty || b->maker.info.n == 0;
  if (!empty) {
    b->row.bytes = b->maker.info.bytes;
    b->row.rows = b->maker.info.n;
    b->row.kind = (uint32_t)b->maker.info.kind;
    b->row.table_crc = b->maker.table_crc;
    TRY(settle_file(b, err));
  }
  TRY(publish(b, empty, err));
  for (size_t i = 0; i < b->n_replaced; i++) (void)lode__seg_unlink(b->store, b->replaced[i], ".seg");
  if (empty) b->row.bytes = 0;
  else atomic_fetch_add(&b->store->progress.built, 1);
  forget_dead(b);
  return LODE_OK;
}

static lode_status run(lode_store *store, const lode__build_request *request, const lode__plan *plan, lode_error *err) {
  build b = {.store = store, .request = request, .plan = *plan, .fd = -1};
  lode_status st = LODE_OK;
  b.vector = mem_calloc(plan->dim, sizeof *b.vector);
  b.mean = mem_calloc(plan->dim, sizeof *b.mean);
  if (!b.vector || !b.mean) TRY_GOTO(err_nomem(err));
  TRY_GOTO(register_row(&b, err));
  st = build_one(&b, err);
  end_reading(&b);
  if (b.tmp && (st != LODE_OK || b.row.bytes == 0)) (void)lode__seg_unlink(store, b.row.id, ".tmp");
  if (st != LODE_OK) { /* whether or not the commit came through: the row and the file go together */
    lode_error ignored;
    if (lode__seg_remove_alone(store, b.row.id, &ignored) == LODE_OK) (void)lode__seg_unlink(store, b.row.id, ".seg");
  }
done:
  if (b.fd >= 0) (void)os_api->close(b.fd);
  index_writer_release(&b.maker);
  mem_free(b.keys);
  mem_free(b.replaced);
  mem_free(b.vector);
  mem_free(b.mean);
  mem_free(b.tmp);
  mem_free(b.path);
  atomic_store(&store->progress.total, 0);
  return st;
}

static lode_status step_locked(lode_store *store, const lode__build_request *request, bool *more, lode_error *err) {
  lode__plan plan;
  TRY(lode__sweep(store, err));
  lode__sweep_missing(store);
  if (request->thorough) TRY(lode__sweep_check(store, request, err));
  TRY(lode__sweep_suspects(store, request->unreadable, err));
  TRY(lode__plan_next(store, request, &plan, err));
  *more = plan.cid != 0;
  return plan.cid ? run(store, request, &plan, err) : LODE_OK;
}

lode_status lode__build_step(lode_store *store, const lode__build_request *request, bool *more, lode_error *err) {
  *more = false;
  TRY(store_build_lock(store->db, err));
  lode_status st = step_locked(store, request, more, err);
  store_build_unlock(store->db);
  return st;
}

lode_status lode__build_all(lode_store *store, const lode__build_request *request, lode_error *err) {
  uint64_t until = os_api->now_ns() + (uint64_t)store->options->busy_ms * 1000000;
  lode__build_request r = *request;
  bool more = true;
  while (more) {
    lode_status st = lode__build_step(store, &r, &more, err);
    if (st == LODE_BUSY) {
      /* a thread of ours gets as long as it needs, another process does not need our help */
      if (lode__build_stops(&r)) return cancelled(err);
      if (atomic_load(&store->progress.total) > 0) until = os_api->now_ns() + (uint64_t)store->options->busy_ms * 1000000;
      if (os_api->now_ns() >= until && r.unreadable) return st; /* what was asked for was not done */
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
