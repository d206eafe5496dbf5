/* SPDX-License-Identifier: Apache-2.0 */
/* sim_copy.c - copies of the store, what is left of a damaged one, and the end of an episode; see sim.h. */
#include "support/sim_load.h"

#include "support/fixture.h"
#include "support/test.h"

#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NAMES = 100, PATH = 460 };

static int by_entry(const FTSENT **a, const FTSENT **b) { return strcmp((*a)->fts_name, (*b)->fts_name); }

/* Through the simulated disk, which must know what is gone. */
static void remove_folder(char *path) {
  char *roots[] = {path, NULL};
  FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, by_entry);
  for (FTSENT *e; tree && (e = fts_read(tree));) {
    if (e->fts_info == FTS_DP)
      (void)os_api->rmdir(e->fts_path);
    else if (e->fts_info != FTS_D)
      (void)os_api->unlink(e->fts_path);
  }
  if (tree) fts_close(tree);
}

static void new_path(char path[PATH], const char *what) {
  snprintf(path, PATH, "%s/%s-%llx", sim->folder, what, (unsigned long long)sim_random());
}

/* ---- What a salvage brings over ---- */

typedef struct saved {
  oracle_collection records;
  bool partial;    /* some lost their document or vector */
  unsigned losses; /* that were reported */
} saved;

/* The record that the row is a version of, as it was written; fails the test if it never was. */
static const oracle_record *written_as(const lode_row *row) {
  unsigned version = 0;
  char text[40];
  snprintf(text, sizeof text, "%.*s", (int)row->metadata.len, row->metadata.data ? row->metadata.data : "");
  CHECKF(sscanf(text, "{\"n\":%u", &version) == 1, "%.*s has no metadata", (int)row->id.len, row->id.data);
  for (int p = 0; p < SIM_PROCS; p++)
    for (int s = 0; s <= SIM_SLOTS; s++) {
      const oracle_record *r = sim_model_record(p, s, version);
      if (str_cmp(row->id, oracle_id(r)) != 0) continue;
      CHECKF(sim_model_wrote(p, s, version), "%s was never written as version %u", r->id, version);
      return r;
    }
  test_failed(__FILE__, __LINE__, "%.*s was never written", (int)row->id.len, row->id.data);
  return NULL;
}

static void check_saved_row(saved *s, const lode_row *row) {
  const oracle_record *r = written_as(row);
  unsigned include = LODE_METADATA | (row->document.data ? LODE_DOCUMENT : 0) | (row->vector ? LODE_VECTOR : 0);
  oracle_check_row(row, r, include);
  s->partial |= include != LODE_ALL;
  CHECKF(oracle_find(&s->records, row->id) == SIZE_MAX, "%s is there twice", r->id);
  oracle_append(&s->records, r);
}

static bool read_saved(sim_handle *h, saved *s) {
  lode_result *rows;
  sim_begin_call(h);
  if (!sim_went_well(h, "get", lode_get(h->c, &(lode_get_request){.include = LODE_ALL}, &rows, &sim_err))) return false;
  s->records.metric = sim->metric;
  for (size_t i = 0; i < lode_result_count(rows); i++) check_saved_row(s, lode_result_at(rows, i));
  lode_result_free(rows);
  return true;
}

/* How much of what should be there was brought over as it should be. What is missing was reported. */
static void count_saved(const saved *s) {
  sim_asked now;
  sim_model_ask(&now);
  const oracle_collection *right = sim_model_records(&now.known);
  for (size_t i = 0; i < right->n; i++) {
    size_t at = oracle_find(&s->records, oracle_id(&right->r[i]));
    sim->n.expected++;
    if (at != SIZE_MAX && memcmp(&s->records.r[at].meta, &right->r[i].meta, sizeof right->r[i].meta) == 0)
      sim->n.salvaged++;
  }
  CHECKF(s->losses || s->records.n >= right->n || sim->may_be_older,
         "%zu of %zu records are left, and no loss was reported", s->records.n, right->n);
}

static void note_loss(void *ctx, const lode_damage *d) {
  (void)d;
  ++*(unsigned *)ctx;
}

/* The new store is whole, and holds nothing that was not written. */
static bool salvage(const char *folder, saved *s) {
  char to[PATH];
  sim_handle h = {0};
  lode_salvage_report report;
  new_path(to, "saved");
  sim_begin_call(&h);
  lode_status st = lode_salvage(folder, to, note_loss, &s->losses, (lode_progress){0}, &report, &sim_err);
  bool done = sim_went_well(&h, "salvage", st), has_any = done && sim_open(&h, to, SIM_WRITES);
  if (has_any) {
    done = read_saved(&h, s) && sim_optimize(&h, true);
    if (done && !s->partial) sim_ask_about(&h, &s->records);
    if (done) done = sim_verify(&h);
    sim_close(&h);
  }
  if (done) sim->n.salvages++;
  remove_folder(to);
  return done;
}

static saved *new_saved(void) {
  saved *s = calloc(1, sizeof *s);
  CHECK(s);
  return s;
}

/* ---- Copies ---- */

void sim_backup(sim_handle *h) {
  char file[PATH], folder[PATH];
  sim_asked asked;
  sim_handle copy = {0};
  sim_answer a;
  new_path(file, "backup");
  new_path(folder, "restored");
  sim_begin_call(h);
  sim_model_ask(&asked);
  if (sim_went_well(h, "backup", lode_backup(h->store, file, (lode_progress){0}, &sim_err)) &&
      sim_went_well(h, "restore", lode_restore(file, folder, (lode_progress){0}, &sim_err)) &&
      sim_open(&copy, folder, SIM_READS)) {
    if (sim_read_all(&copy, &a, &asked)) sim->n.backups++;
    sim_close(&copy);
  }
  (void)os_api->unlink(file);
  remove_folder(folder);
}

static bool copy_bytes(int from, int to, size_t step) {
  char buf[1 << 15];
  for (off_t off = 0;;) {
    ssize_t n = OS_RETRY(os_api->pread(from, buf, step, off));
    if (n <= 0) return n == 0;
    if (os_write_full(to, buf, (size_t)n, (uint64_t)off, NULL) != LODE_OK) return false;
    off += n;
  }
}

static bool copy_file(const char *from, const char *to) {
  int in = OS_RETRY(os_api->open(from, O_RDONLY | O_CLOEXEC, 0)), out = -1;
  if (in < 0) return false;
  out = OS_RETRY(os_api->open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  bool done = out >= 0 && copy_bytes(in, out, (size_t)512 << sim_below(7));
  if (out >= 0) (void)os_api->close(out);
  (void)os_api->close(in);
  return done;
}

/* The files of a store, in any order. */
static size_t list_files(char names[MAX_NAMES][64]) {
  static const char *const fixed[] = {"lode.lock", "lode.db", "lode.db-journal", "lode.pages"};
  char folder[PATH];
  size_t n = 0;
  snprintf(folder, sizeof folder, "%s/segments", sim->store);
  os_dir *dir = os_dir_open(folder);
  for (const char *e; dir && n < MAX_NAMES - 4 && (e = os_dir_next(dir));)
    snprintf(names[n++], sizeof names[0], "segments/%.50s", e);
  if (dir) os_dir_close(dir);
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) snprintf(names[n++], sizeof names[0], "%s", fixed[i]);
  for (size_t i = n; i > 1; i--) {
    char last[64];
    size_t at = (size_t)sim_below(i);
    memcpy(last, names[i - 1], sizeof last);
    memcpy(names[i - 1], names[at], sizeof last);
    memcpy(names[at], last, sizeof last);
  }
  return n;
}

/* True if there is a database in the copy. */
static bool copy_store(const char *to) {
  char names[MAX_NAMES][64], from_path[PATH + 64], to_path[PATH + 64];
  bool has_db = false;
  snprintf(to_path, sizeof to_path, "%s/segments", to);
  if (os_api->mkdir(to, 0700) < 0 || os_api->mkdir(to_path, 0700) < 0) return false;
  for (size_t i = 0, n = list_files(names); i < n; i++) {
    snprintf(from_path, sizeof from_path, "%s/%.63s", sim->store, names[i]);
    snprintf(to_path, sizeof to_path, "%s/%.63s", to, names[i]);
    bool done = copy_file(from_path, to_path);
    if (strcmp(names[i], "lode.db") == 0) has_db = done;
  }
  return has_db;
}

/* A copy that was made without locks is whole or says that it is damaged, and what is whole of it can be salvaged. */
void sim_copy(sim_handle *h) {
  char folder[PATH];
  sim_asked asked;
  sim_handle copy = {.torn = true};
  sim_answer a = {0};
  (void)h;
  new_path(folder, "copy");
  sim_model_ask(&asked);
  if (copy_store(folder)) {
    sim->n.copies++;
    if (sim_open(&copy, folder, sim_one_in(2) ? SIM_READS : SIM_WRITES)) {
      if (sim_read_all(&copy, &a, &asked)) sim_ask_about(&copy, sim_model_records(&a.view));
      sim_close(&copy);
    }
    if (!a.known) {
      saved *s = new_saved();
      sim->n.torn++;
      if (sim_one_in(4)) (void)salvage(folder, s);
      free(s);
    }
  }
  remove_folder(folder);
}

/* ---- The end ---- */

/* Segments are set aside because they are damaged, which needs a disk that lies. */
static void check_nothing_aside(void) {
  char folder[PATH];
  snprintf(folder, sizeof folder, "%s/segments", sim->store);
  os_dir *dir = os_dir_open(folder);
  for (const char *e; dir && !(sim->lied & SIM_SEGMENT) && (e = os_dir_next(dir));)
    CHECKF(!strstr(e, "quarantine"), "%s was set aside, and the disk has not lied about it", e);
  if (dir) os_dir_close(dir);
}

/* The store is there with all its records, everything is indexed, and verify finds nothing. False: it says damage. */
static bool is_whole(sim_handle *h) {
  sim_answer a = {0};
  lode_stats stats;
  if (!sim_open(h, sim->store, SIM_MAKES) || !sim_read_all(h, &a, NULL) || !sim_optimize(h, true)) return false;
  sim_begin_call(h);
  if (!sim_went_well(h, "stats", lode_collection_stats(h->c, &stats, &sim_err))) return false;
  CHECKF(stats.untexted == 0 && stats.unindexed == 0 && stats.unerased == 0 && stats.building == 0,
         "after the last fault %llu records have no text index, %llu no index, %llu are not erased",
         (unsigned long long)stats.untexted, (unsigned long long)stats.unindexed, (unsigned long long)stats.unerased);
  for (int i = 0; i < 5; i++) sim_ask_about(h, sim_model_records(&a.view));
  /* what is derived and damaged is found by now, and rebuilt */
  if (!sim_verify(h) && (!sim_optimize(h, true) || !sim_verify(h))) return false;
  sim_close(h);
  if (!sim_open(h, sim->store, SIM_READS)) return false;
  return sim_read_all(h, &a, NULL);
}

/* Reads of records elsewhere go on: each one is there as it was written, or its read says damage. */
static void read_one_by_one(void) {
  sim_handle h = {0};
  if (!sim_open(&h, sim->store, SIM_READS)) return;
  for (int p = 0; p < SIM_PROCS; p++)
    for (int s = 0; s <= SIM_SLOTS; s++) {
      lode_str id = oracle_id(sim_model_record(p, s, 1));
      lode_get_request get = {.select = {.ids = &id, .n_ids = 1}, .include = LODE_ALL};
      lode_result *rows;
      sim_begin_call(&h);
      sim->n.tried++;
      if (!sim_went_well(&h, "get", lode_get(h.c, &get, &rows, &sim_err))) continue;
      sim->n.elsewhere++;
      if (lode_result_count(rows)) {
        const lode_row *row = lode_result_at(rows, 0);
        oracle_check_row(row, written_as(row), LODE_ALL);
      }
      lode_result_free(rows);
    }
  sim_close(&h);
}

/* With damage to the database the damage is reported, and the rest salvaged. */
void sim_load_final(int p) {
  sim_handle h = {0};
  (void)p;
  fixture_limits(sim->tail_rows, sim->graph_rows);
  bool whole = is_whole(&h);
  sim_close(&h);
  check_nothing_aside();
  if (whole) return;
  CHECKF(sim->truth_lied, "the store is damaged, and the disk has not lied about it");
  read_one_by_one();
  saved *s = new_saved();
  CHECKF(salvage(sim->store, s), "salvage: %s", sim_err.text);
  count_saved(s);
  free(s);
}
