/* SPDX-License-Identifier: Apache-2.0 */
/* sim_load.c - what a simulated process does: it opens the store, and until all is quiet writes, reads, asks, indexes,
 * verifies, compacts and makes backups, as the seed says; see sim.h. Every answer is judged at once. */
#include "support/fixture.h"
#include "support/sim.h"
#include "support/test.h"

#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct handle {
  lode_store *store;
  lode_collection *c;
  bool read_only;
  uint64_t errors; /* when the present call began */
} handle;

typedef struct answer {
  bool known;
  sim_view view;
  uint64_t moment;
} answer;

static const lode_str name = {"c", 1};
static lode_error err;

/* ---- Statuses ---- */

static void begin_call(handle *h) { h->errors = sim_errors(); }

/* Statuses that may follow from a call that failed. Two are not what they should be, and harmless: an error while a
 * store is being made may read as its removal, and restore takes a page that it cannot read for a damaged one. */
static bool is_of_error(const char *what, lode_status st) {
  return st == LODE_IO || st == LODE_FULL || st == LODE_GONE || (st == LODE_CORRUPT && strcmp(what, "restore") == 0);
}

/* True if the call did what it should. What fails, fails because a call failed or somebody held a lock for long. */
static bool went_well(handle *h, const char *what, lode_status st) {
  if (st == LODE_OK) return true;
  if (st == LODE_BUSY) {
    sim->n.busy++;
    return false;
  }
  bool met_error = sim_errors() != h->errors;
  sim->n.failed++;
  CHECKF(met_error && is_of_error(what, st), "%s: %s (%s)%s", what, lode_status_name(st), err.text,
         met_error ? "" : ", and no call has failed");
  return false;
}

/* ---- The handle ---- */

static void close_handle(handle *h) {
  lode_collection_close(h->c);
  lode_close(h->store);
  h->c = NULL;
  h->store = NULL;
}

static bool open_handle(handle *h, const char *folder, bool read_only) {
  lode_open_options o = {.create = !read_only,
                         .read_only = read_only,
                         .no_background = true,
                         .page_bytes = sim->page_bytes,
                         .build_threads = 1,
                         .busy_ms = 120000};
  lode_collection_options co = {.create = !read_only, .metric = sim->metric};
  begin_call(h);
  *h = (handle){.read_only = read_only, .errors = h->errors};
  lode_status st = lode_open(folder, &o, &h->store, &err);
  if (st == LODE_OK) st = lode_collection_open(h->store, name, &co, &h->c, &err);
  /* nobody has made it yet */
  if ((st == LODE_NOT_FOUND && read_only) || !went_well(h, "open", st)) close_handle(h);
  return h->store != NULL;
}

/* ---- Writing ---- */

static void choose_slots(int p, uint16_t versions[SIM_SLOTS], unsigned k) {
  memcpy(versions, sim_model_versions(p), SIM_SLOTS * sizeof *versions);
  unsigned kind = (unsigned)sim_below(4); /* 0: add and replace; 1: delete; else both */
  for (int s = 0; s < SIM_SLOTS; s++) {
    if (!sim_one_in(kind == 1 ? 2 : 3)) continue;
    versions[s] = kind == 1 || (kind > 1 && sim_one_in(2)) ? 0 : (uint16_t)k;
  }
}

typedef struct batch {
  lode_record records[SIM_SLOTS + 1];
  strbuf texts[SIM_SLOTS + 1];
  lode_str gone[SIM_SLOTS];
  size_t n, n_gone;
} batch;

static void make_batch(batch *b, int p, unsigned k, const uint16_t *before, const uint16_t *after) {
  *b = (batch){0};
  for (int s = 0; s <= SIM_SLOTS; s++) {
    const oracle_record *r = sim_model_record(p, s, k);
    if (s == SIM_SLOTS || after[s] == k) {
      b->records[b->n] = oracle_to_write(r, &b->texts[b->n]);
      b->n++;
    } else if (before[s] && !after[s]) {
      b->gone[b->n_gone++] = oracle_id(r);
    }
  }
}

/* *in_doubt: it failed where it may have been done. */
static lode_status write_batch(handle *h, const batch *b, bool *in_doubt) {
  lode_txn *txn = NULL;
  lode_selection gone = {.ids = b->gone, .n_ids = b->n_gone};
  size_t deleted = 0;
  *in_doubt = !b->n_gone;
  if (!b->n_gone) return lode_upsert(h->c, NULL, b->records, b->n, NULL, &err);
  lode_status st = lode_begin(h->store, &txn, &err);
  if (st != LODE_OK) return st;
  st = lode_delete(h->c, txn, &gone, &deleted, &err);
  if (st == LODE_OK) CHECKF(deleted == b->n_gone, "%zu of %zu records were deleted", deleted, b->n_gone);
  if (st == LODE_OK) st = lode_upsert(h->c, txn, b->records, b->n, NULL, &err);
  if (st != LODE_OK) {
    lode_rollback(txn);
    return st;
  }
  *in_doubt = true;
  return lode_commit(txn, &err);
}

static void do_write(handle *h, int p) {
  uint16_t before[SIM_SLOTS], after[SIM_SLOTS];
  bool in_doubt;
  batch b;
  memcpy(before, sim_model_versions(p), sizeof before);
  sim_asked now;
  sim_model_ask(&now);
  unsigned k = now.known.k[p] + 1u;
  if (k > SIM_MAX_OPS) return;
  choose_slots(p, after, k);
  sim_model_begin(p, after);
  make_batch(&b, p, k, before, after);
  begin_call(h);
  lode_status st = write_batch(h, &b, &in_doubt);
  if (st == LODE_OK)
    sim_model_done(p);
  else if (in_doubt && st != LODE_BUSY)
    sim_model_doubt(p);
  else
    sim_model_absent(p);
  if (went_well(h, "write", st)) sim->n.writes++;
  for (size_t i = 0; i < b.n; i++) strbuf_release(&b.texts[i]);
}

/* ---- Reading everything ---- */

static unsigned counter_of(const lode_row *row) {
  char text[40];
  snprintf(text, sizeof text, "%.*s", (int)row->metadata.len, row->metadata.data);
  unsigned k = 0;
  CHECK(sscanf(text, "{\"n\":%u", &k) == 1);
  return k;
}

static sim_view view_of(const lode_result *rows) {
  sim_view view = {0};
  for (int p = 0; p < SIM_PROCS; p++) {
    lode_str id = oracle_id(sim_model_record(p, SIM_SLOTS, 1));
    for (size_t i = 0; i < lode_result_count(rows); i++)
      if (str_cmp(lode_result_at(rows, i)->id, id) == 0) view.k[p] = (uint16_t)counter_of(lode_result_at(rows, i));
  }
  return view;
}

static void check_rows(const lode_result *rows, const sim_view *view) {
  const oracle_collection *right = sim_model_records(view);
  size_t n = lode_result_count(rows);
  for (size_t i = 0; i < n; i++) {
    const lode_row *row = lode_result_at(rows, i);
    size_t at = oracle_find(right, row->id);
    CHECKF(at != SIZE_MAX, "%.*s is there and should not be", (int)row->id.len, row->id.data);
    oracle_check_row(row, &right->r[at], LODE_ALL);
    for (size_t j = 0; j < i; j++) CHECK(str_cmp(lode_result_at(rows, j)->id, row->id) != 0);
  }
  CHECKF(n == right->n, "%zu records, expected %zu", n, right->n);
}

/* copied: the store is a copy, and this was known when it was made; else NULL. */
static bool read_all(handle *h, answer *a, const sim_asked *copied) {
  sim_asked asked;
  lode_result *rows;
  sim_model_ask(&asked);
  begin_call(h);
  lode_status st = lode_get(h->c, &(lode_get_request){.include = LODE_ALL}, &rows, &err);
  if (!went_well(h, "get", st)) return false;
  a->view = view_of(rows);
  a->moment = lode_result_moment(rows);
  a->known = true;
  if (copied)
    sim_model_check_copy(copied, &a->view);
  else
    sim_model_check(&asked, &a->view, a->moment);
  check_rows(rows, &a->view);
  sim->n.reads++;
  lode_result_free(rows);
  return true;
}

/* ---- Other answers ---- */

typedef struct question {
  lode_query_request q;
  oracle_filter where;
  bool filtered;
  float vector[SIM_DIM];
  char text[100];
  lode_str words;
} question;

static void make_question(question *w) {
  *w = (question){0};
  test_srand(sim_random());
  w->q = (lode_query_request){.mode = (lode_mode)test_below(3), .n = 1, .k = 1 + test_below(12), .include = LODE_ALL};
  if (sim->graph_rows < SIM_PROCS * SIM_SLOTS) w->q.target_recall = 1;
  oracle_random_vector(w->vector, SIM_DIM);
  w->words = (lode_str){w->text, oracle_random_text(w->text, sizeof w->text, 2)};
  if (w->q.mode != LODE_BY_TEXT) w->q.vectors = w->vector, w->q.dimension = SIM_DIM;
  if (w->q.mode != LODE_BY_VECTOR) w->q.texts = &w->words;
  w->filtered = test_below(3) == 0;
  if (!w->filtered) return;
  if (test_below(2))
    oracle_leaf_filter(&w->where, 1, ORACLE_LT, oracle_int((unsigned)test_below(5)));
  else
    oracle_leaf_filter(&w->where, ORACLE_OWNER, ORACLE_EQ, oracle_int((unsigned)test_below(SIM_PROCS)));
}

static void check_answer(const question *w, const lode_result *rows, const sim_view *view) {
  const oracle_collection *right = sim_model_records(view);
  oracle_hit *hits = calloc(2 * right->n + 1, sizeof *hits);
  oracle_selection s = {.where = w->filtered ? &w->where : NULL};
  size_t n, at = 0;
  CHECK(hits);
  if (w->q.mode == LODE_BY_VECTOR) {
    n = oracle_nearest(right, w->vector, &s, hits);
    oracle_check_nearest(rows, &at, 0, hits, n < w->q.k ? n : w->q.k, LODE_ALL);
    CHECK(lode_result_count(rows) == at);
  } else if (w->q.mode == LODE_BY_TEXT) {
    n = oracle_text(right, w->words, &s, false, hits);
    oracle_check_text(rows, hits, n, w->q.k, true, LODE_ALL);
  } else {
    n = oracle_hybrid(right, &w->q, &s, hits);
    oracle_check_hybrid(right, rows, &w->q, hits, n);
  }
  free(hits);
}

/* Checked if its moment is one of which everything was read, just before or just after. */
static void do_ask(handle *h, const answer *before) {
  question w;
  lode_result *rows;
  answer a = *before;
  make_question(&w);
  if (w.filtered) w.q.select = oracle_request(&(oracle_selection){.where = &w.where});
  begin_call(h);
  if (went_well(h, "query", lode_query(h->c, &w.q, &rows, &err))) {
    uint64_t moment = lode_result_moment(rows);
    if (!a.known || a.moment != moment) a.known = read_all(h, &a, NULL);
    if (a.known && a.moment == moment)
      check_answer(&w, rows, &a.view);
    else
      sim->n.unplaced++;
    sim->n.answers++;
    lode_result_free(rows);
  }
  oracle_filter_release(&w.where);
}

/* ---- Upkeep ---- */

static bool seed_goes_on(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)phase, (void)done, (void)total;
  return !ctx || !sim_one_in(20);
}

static void do_index(handle *h) {
  bool whole = sim_one_in(2) || sim_is_quiet();
  begin_call(h);
  lode_status st = lode_optimize(h->store, (lode_progress){seed_goes_on, whole ? NULL : h}, &err);
  if (st == LODE_CANCELLED) return;
  if (went_well(h, "optimize", st)) sim->n.indexed++;
}

static void tell_damage(void *ctx, const lode_damage *d) {
  (void)ctx;
  fprintf(stderr, "damage: %s: %s\n", d->what, d->detail);
}

static void do_verify(handle *h) {
  begin_call(h);
  if (went_well(h, "verify", lode_verify(h->store, tell_damage, NULL, (lode_progress){0}, &err))) sim->n.verified++;
}

static void do_compact(handle *h) {
  begin_call(h);
  (void)went_well(h, "compact", lode_compact(h->store, (lode_progress){0}, &err));
}

/* Through the simulated disk, which must know what is gone. */
static void remove_folder(char *path) {
  char *roots[] = {path, NULL};
  FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, NULL);
  for (FTSENT *e; tree && (e = fts_read(tree));) {
    if (e->fts_info == FTS_DP)
      (void)os_api->rmdir(e->fts_path);
    else if (e->fts_info != FTS_D)
      (void)os_api->unlink(e->fts_path);
  }
  if (tree) fts_close(tree);
}

/* A backup, restored and read. */
static void do_backup(handle *h) {
  char file[460], folder[460];
  unsigned long long number = sim_random();
  sim_asked asked;
  handle copy = {0};
  answer a;
  snprintf(file, sizeof file, "%s/backup-%llx", sim->folder, number);
  snprintf(folder, sizeof folder, "%s/copy-%llx", sim->folder, number);
  begin_call(h);
  sim_model_ask(&asked);
  if (went_well(h, "backup", lode_backup(h->store, file, (lode_progress){0}, &err)) &&
      went_well(h, "restore", lode_restore(file, folder, (lode_progress){0}, &err)) &&
      open_handle(&copy, folder, true)) {
    if (read_all(&copy, &a, &asked)) sim->n.copies++;
    close_handle(&copy);
  }
  (void)os_api->unlink(file);
  remove_folder(folder);
}

static void act(handle *h, int p) {
  answer a = {0};
  uint64_t r = sim_below(100);
  bool writes = !h->read_only;
  if (sim_model_in_doubt(p) || r < 20) {
    if (read_all(h, &a, NULL) && sim_one_in(2)) do_ask(h, &a);
  } else if (r < 70 && writes) {
    do_write(h, p);
  } else if (r < 80) {
    do_ask(h, &a);
  } else if (r < 90 && writes) {
    do_index(h);
  } else if (r < 94) {
    do_verify(h);
  } else if (r < 95 && writes) {
    do_compact(h);
  } else if (r < 96) {
    do_backup(h);
  } else {
    close_handle(h);
  }
}

void sim_load_main(int p) {
  handle h = {0};
  fixture_limits(sim->tail_rows, sim->graph_rows);
  while (!sim_is_quiet())
    if (h.store || open_handle(&h, sim->store, sim_one_in(4))) act(&h, p);
  if (h.store) close_handle(&h);
}

void sim_load_final(int p) {
  handle h = {0};
  answer a = {0};
  lode_stats stats;
  (void)p;
  fixture_limits(sim->tail_rows, sim->graph_rows);
  CHECK(open_handle(&h, sim->store, false));
  CHECK(read_all(&h, &a, NULL));
  OK(lode_optimize(h.store, (lode_progress){0}, &err));
  OK(lode_collection_stats(h.c, &stats, &err));
  CHECKF(stats.untexted == 0 && stats.unindexed == 0 && stats.unerased == 0 && stats.building == 0,
         "after the last fault %llu records have no text index, %llu no index, %llu are not erased",
         (unsigned long long)stats.untexted, (unsigned long long)stats.unindexed, (unsigned long long)stats.unerased);
  for (int i = 0; i < 5; i++) do_ask(&h, &a);
  do_verify(&h);
  close_handle(&h);
  CHECK(open_handle(&h, sim->store, true));
  CHECK(read_all(&h, &a, NULL));
  close_handle(&h);
}
