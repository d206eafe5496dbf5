/* SPDX-License-Identifier: Apache-2.0 */
/* sim_load.c - what a simulated process does: it opens the store, and until all is quiet writes, reads, asks, indexes,
 * verifies, compacts, copies and removes derived files, as the seed says; see sim.h. Every answer is judged at once. */
#include "support/sim_load.h"

#include "support/fixture.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static const lode_str name = {"c", 1};
lode_error sim_err;

/* ---- Statuses ---- */

void sim_begin_call(sim_handle *h) { h->errors = sim_errors(); }

/* Statuses that may follow from a call that failed. Two are not what they should be, and harmless: an error while a
 * store is being made may read as its removal, and restore takes a page that it cannot read for a damaged one. */
static bool is_of_error(const char *what, lode_status st) {
  return st == LODE_IO || st == LODE_FULL || st == LODE_GONE || (st == LODE_CORRUPT && strcmp(what, "restore") == 0);
}

/* Lies about derived files cost nothing: only verify mentions them. */
static bool is_of_lie(sim_handle *h, const char *what, lode_status st) {
  /* what is not there was made later, and a handle may see that the store went back */
  if (st == LODE_NOT_FOUND || st == LODE_GONE) return sim->may_be_older;
  if (st != LODE_CORRUPT && st != LODE_IO) return false;
  /* a page map whose file turns out to be damaged in the middle of a transaction ends that, once */
  bool writes = strcmp(what, "write") == 0 || strcmp(what, "optimize") == 0 || strcmp(what, "compact") == 0;
  if (st == LODE_IO && writes && (sim->lied & SIM_MAP) && h->map_lies != sim->n.lies) {
    h->map_lies = sim->n.lies;
    return true;
  }
  return sim->truth_lied || h->torn || (sim->lied && strcmp(what, "verify") == 0);
}

bool sim_went_well(sim_handle *h, const char *what, lode_status st) {
  if (st == LODE_OK) return true;
  if (st == LODE_BUSY) {
    sim->n.busy++;
    return false;
  }
  bool met_error = sim_errors() != h->errors;
  CHECKF(!strstr(sim_err.text, strerror(SIM_STALE_ERRNO)), "%s: the errno of a call that succeeded: %s", what,
         sim_err.text);
  if (met_error && is_of_error(what, st)) {
    sim->n.failed++;
    return false;
  }
  CHECKF(is_of_lie(h, what, st), "%s: %s (%s)%s", what, lode_status_name(st), sim_err.text,
         met_error ? "" : ", and no call has failed");
  /* a commit, or another call, says that its transaction had failed, not of what */
  bool named = h->names || strstr(sim_err.text, sim->folder) || strstr(sim_err.text, "the transaction ");
  CHECKF(st != LODE_CORRUPT || named, "%s: the damage has no name: %s", what, sim_err.text);
  sim->n.damaged++;
  return false;
}

/* ---- The handle ---- */

void sim_close(sim_handle *h) {
  lode_collection_close(h->c);
  lode_close(h->store);
  h->c = NULL;
  h->store = NULL;
}

bool sim_open(sim_handle *h, const char *folder, sim_use use) {
  lode_open_options o = {.create = use == SIM_MAKES,
                         .read_only = use == SIM_READS,
                         .no_background = true,
                         .page_bytes = sim->page_bytes,
                         .build_threads = 1,
                         .busy_ms = 120000};
  lode_collection_options co = {.create = use == SIM_MAKES, .metric = sim->metric};
  *h = (sim_handle){.use = use, .torn = h->torn};
  sim_begin_call(h);
  lode_status st = lode_open(folder, &o, &h->store, &sim_err);
  if (st == LODE_OK) st = lode_collection_open(h->store, name, &co, &h->c, &sim_err);
  /* nobody has made it yet */
  if ((st == LODE_NOT_FOUND && use != SIM_MAKES) || !sim_went_well(h, "open", st)) sim_close(h);
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
  bool whole;
} batch;

/* Whole: of all slots, so that it does not matter which operations are there. For disks that may lose some. */
static void make_batch(batch *b, int p, unsigned k, const uint16_t *before, const uint16_t *after) {
  *b = (batch){.whole = sim->lie_parts & (SIM_TRUTH | SIM_JOURNAL)};
  for (int s = 0; s <= SIM_SLOTS; s++) {
    unsigned version = s == SIM_SLOTS ? k : after[s];
    if (version == k || (b->whole && version)) {
      b->records[b->n] = oracle_to_write(sim_model_record(p, s, version), &b->texts[b->n]);
      b->n++;
    } else if (!version && (b->whole || before[s])) {
      b->gone[b->n_gone++] = oracle_id(sim_model_record(p, s, k));
    }
  }
}

static lode_status delete_gone(sim_handle *h, lode_txn *txn, const batch *b) {
  lode_selection gone = {.ids = b->gone, .n_ids = b->n_gone};
  size_t deleted = 0;
  lode_status st = b->n_gone ? lode_delete(h->c, txn, &gone, &deleted, &sim_err) : LODE_OK;
  if (st == LODE_OK && !b->whole) CHECKF(deleted == b->n_gone, "%zu of %zu records deleted", deleted, b->n_gone);
  return st;
}

/* A call that fails is undone, and its transaction may go on. */
static bool tries_again(lode_status st) {
  if (st == LODE_OK || sim_one_in(3)) return false;
  sim->n.retried++;
  return true;
}

/* All of it, or a status: what could not be deleted must not be committed with the rest. */
static lode_status write_in_txn(sim_handle *h, lode_txn *txn, const batch *b) {
  lode_status st = delete_gone(h, txn, b);
  if (tries_again(st)) st = delete_gone(h, txn, b);
  if (st != LODE_OK) return st;
  st = lode_upsert(h->c, txn, b->records, b->n, NULL, &sim_err);
  if (tries_again(st)) st = lode_upsert(h->c, txn, b->records, b->n, NULL, &sim_err);
  return st;
}

/* *in_doubt: it failed where it may have been done. */
static lode_status write_batch(sim_handle *h, const batch *b, bool *in_doubt) {
  lode_txn *txn = NULL;
  *in_doubt = !b->n_gone && !sim_one_in(3);
  if (*in_doubt) return lode_upsert(h->c, NULL, b->records, b->n, NULL, &sim_err);
  lode_status st = lode_begin(h->store, &txn, &sim_err);
  if (st != LODE_OK) return st;
  st = write_in_txn(h, txn, b);
  if (st != LODE_OK) {
    lode_rollback(txn);
    return st;
  }
  *in_doubt = true;
  return lode_commit(txn, &sim_err);
}

static void do_write(sim_handle *h, int p) {
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
  sim_begin_call(h);
  lode_status st = write_batch(h, &b, &in_doubt);
  if (st == LODE_OK)
    sim_model_done(p);
  else if (in_doubt && st != LODE_BUSY)
    sim_model_doubt(p);
  else
    sim_model_absent(p);
  if (sim_went_well(h, "write", st)) sim->n.writes++;
  for (size_t i = 0; i < b.n; i++) strbuf_release(&b.texts[i]);
}

/* ---- Upkeep ---- */

static bool seed_goes_on(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)phase, (void)done, (void)total;
  return !ctx || !sim_one_in(20);
}

bool sim_optimize(sim_handle *h, bool whole) {
  sim_begin_call(h);
  lode_status st = lode_optimize(h->store, (lode_progress){seed_goes_on, whole ? NULL : h}, &sim_err);
  if (st == LODE_CANCELLED || !sim_went_well(h, "optimize", st)) return false;
  sim->n.indexed++;
  return true;
}

static void tell_damage(void *ctx, const lode_damage *d) {
  ++*(unsigned *)ctx;
  if (!sim->lied) fprintf(stderr, "damage: %s: %s\n", d->what, d->detail);
}

bool sim_verify(sim_handle *h) {
  unsigned found = 0;
  sim_begin_call(h);
  lode_status st = lode_verify(h->store, tell_damage, &found, (lode_progress){0}, &sim_err);
  CHECKF(st != LODE_OK || !found, "verify finds nothing, and names %u damages", found);
  h->names = found > 0;
  bool whole = sim_went_well(h, "verify", st);
  h->names = false;
  if (!whole) return false;
  sim->n.verified++;
  return true;
}

static void do_compact(sim_handle *h) {
  sim_begin_call(h);
  (void)sim_went_well(h, "compact", lode_compact(h->store, (lode_progress){0}, &sim_err));
}

/* Anyone may remove what is derived, at any time. */
static void remove_map(void) {
  char path[460];
  snprintf(path, sizeof path, "%s/lode.pages", sim->store);
  (void)os_api->unlink(path);
}

static void act(sim_handle *h, int p) {
  sim_answer a = {0};
  uint64_t r = sim_below(100);
  bool writes = h->use == SIM_MAKES;
  if (sim_model_in_doubt(p) || r < 20) {
    if (sim_read_all(h, &a, NULL) && sim_one_in(2)) sim_ask(h, &a);
  } else if (r < 66 && writes) {
    do_write(h, p);
  } else if (r < 76) {
    sim_ask(h, &a);
  } else if (r < 87 && writes) {
    (void)sim_optimize(h, sim_one_in(2) || sim_is_quiet());
  } else if (r < 91) {
    (void)sim_verify(h);
  } else if (r < 92 && writes) {
    do_compact(h);
  } else if (r < 93) {
    sim_backup(h);
  } else if (r < 95) {
    sim_copy(h);
  } else if (r < 96) {
    remove_map();
  } else {
    sim_close(h);
  }
}

void sim_load_main(int p) {
  sim_handle h = {0};
  fixture_limits(sim->tail_rows, sim->graph_rows);
  while (!sim_is_quiet())
    if (h.store || sim_open(&h, sim->store, sim_one_in(4) ? SIM_READS : SIM_MAKES)) act(&h, p);
  if (h.store) sim_close(&h);
}
