/* SPDX-License-Identifier: Apache-2.0 */
/* sim_model.c - what the simulated processes wrote, and which answers are right; see sim.h.
 *
 * Operation k of process p leads from state k-1 of its records to state k. States are kept as the version of each slot:
 * the number of the operation that wrote it last, 0 for none. The content of a record is a function of the seed, its
 * process, slot and version. All of this is in shared memory, and written by whoever has the turn.
 */
#include "support/sim.h"
#include "support/sim_heap.h"
#include "support/test.h"

#include <string.h>

enum { SEEN = 64, NUMBERS = 100 };

typedef struct history {
  unsigned n;     /* operations that are there */
  bool pending;   /* operation n + 1 has begun */
  unsigned begun; /* the highest number of an operation that ever began */
  uint64_t doubt; /* since this step nobody works on it, and it may be there; 0: none */
  uint64_t seen;  /* operation n was never acknowledged, but seen at this step; 0: it was acknowledged */
  uint64_t began[SIM_MAX_OPS + 2], acked[SIM_MAX_OPS + 2];
  uint16_t versions[SIM_MAX_OPS + 2][SIM_SLOTS];
} history;

typedef struct model {
  history p[SIM_PROCS];
  uint64_t doubts; /* a number for each, so that they can be told apart */
  uint64_t doubt_id[SIM_PROCS];
  struct {
    uint64_t moment;
    sim_view view;
  } seen[SEEN];
  unsigned n_seen;
} model;

static model *m;

void sim_model_start(void) {
  static model *shared;
  if (!shared) shared = sim_heap_map(sizeof *shared);
  m = shared;
  memset(m, 0, sizeof *m);
}

/* ---- Operations ---- */

unsigned sim_model_begin(int p, const uint16_t versions[SIM_SLOTS]) {
  history *h = &m->p[p];
  unsigned k = h->n + 1;
  CHECK(!h->pending && k <= SIM_MAX_OPS);
  h->pending = true;
  h->begun = k > h->begun ? k : h->begun;
  h->doubt = 0;
  h->began[k] = sim->n.steps;
  h->acked[k] = 0;
  memcpy(h->versions[k], versions, sizeof h->versions[k]);
  return k;
}

const uint16_t *sim_model_versions(int p) { return m->p[p].versions[m->p[p].n]; }

void sim_model_done(int p) {
  history *h = &m->p[p];
  h->n++;
  h->acked[h->n] = sim->n.steps;
  h->pending = false;
  h->seen = 0;
}

void sim_model_absent(int p) { m->p[p].pending = false; }

void sim_model_doubt(int p) {
  history *h = &m->p[p];
  if (!h->pending || h->doubt) return;
  h->doubt = sim->n.steps;
  m->doubt_id[p] = ++m->doubts;
}

bool sim_model_in_doubt(int p) { return m->p[p].pending; }

static bool acked_after(uint64_t step) {
  for (int p = 0; p < SIM_PROCS; p++) {
    const history *h = &m->p[p];
    for (unsigned k = h->n; k > 0; k--)
      if (h->acked[k] && h->began[k] > step) return true;
  }
  return false;
}

/* What was seen and not acknowledged may not have been durable, unless somebody committed after it. */
void sim_model_cut(void) {
  for (int p = 0; p < SIM_PROCS; p++) {
    history *h = &m->p[p];
    if (!h->pending && h->seen && !acked_after(h->seen) && !sim->may_be_older) {
      h->n--;
      h->pending = true;
      h->doubt = 0;
    }
    h->seen = 0;
    sim_model_doubt(p);
  }
  m->n_seen = 0;
}

bool sim_model_wrote(int p, int slot, unsigned version) {
  const history *h = &m->p[p];
  if (version == 0 || version > h->n + (h->begun > h->n)) return false;
  return slot == SIM_SLOTS || h->versions[version][slot] == version;
}

/* ---- Answers ---- */

void sim_model_ask(sim_asked *asked) {
  for (int p = 0; p < SIM_PROCS; p++) {
    asked->known.k[p] = (uint16_t)m->p[p].n;
    asked->doubt[p] = m->p[p].pending && m->p[p].doubt ? m->doubt_id[p] : 0;
  }
}

static void check_order(const sim_view *view) {
  for (int p = 0; p < SIM_PROCS; p++)
    for (int q = 0; q < SIM_PROCS; q++) {
      const history *missed = &m->p[p], *had = &m->p[q];
      unsigned first = view->k[p] + 1u, last = view->k[q];
      if (first > missed->n || !missed->acked[first] || last == 0) continue;
      CHECKF(had->began[last] <= missed->acked[first],
             "operation %u of process %d is seen without operation %u of process %d, acknowledged before it began",
             last, q, first, p);
    }
}

/* After some lies, operations may be missing that were acknowledged; none is there by half. */
void sim_model_check_copy(const sim_asked *asked, const sim_view *view) {
  for (int p = 0; p < SIM_PROCS; p++) {
    unsigned k = view->k[p], most = m->p[p].n + (m->p[p].pending ? 1 : 0);
    if (sim->may_be_older) most = m->p[p].begun;
    CHECKF(sim->may_be_older || k >= asked->known.k[p], "operation %u of process %d was acknowledged, and %u are there",
           asked->known.k[p], p, k);
    CHECKF(k <= most, "process %d has begun %u operations, and %u are there", p, most, k);
  }
  if (!sim->may_be_older) check_order(view);
}

static void compare_seen(const sim_view *view, uint64_t moment) {
  for (unsigned i = 0; i < m->n_seen && i < SEEN; i++) {
    uint64_t other = m->seen[i].moment;
    for (int p = 0; p < SIM_PROCS; p++) {
      unsigned k = view->k[p], was = m->seen[i].view.k[p];
      CHECKF(moment == other  ? k == was
             : moment > other ? k >= was
                              : k <= was,
             "process %d: %u operations at moment %llu, and %u at moment %llu", p, k, (unsigned long long)moment, was,
             (unsigned long long)other);
    }
  }
}

/* The first answer that was asked for after the process had died decides. */
static void settle(int p, unsigned k) {
  history *h = &m->p[p];
  if (k > h->n) {
    h->n++;
    h->seen = sim->n.steps;
  } else if (sim->may_be_older) {
    h->n++; /* it may come back: its number is not used again */
  }
  h->pending = false;
}

void sim_model_check(const sim_asked *asked, const sim_view *view, uint64_t moment) {
  sim_model_check_copy(asked, view);
  if (!sim->may_be_older) compare_seen(view, moment);
  m->seen[m->n_seen % SEEN].moment = moment;
  m->seen[m->n_seen++ % SEEN].view = *view;
  for (int p = 0; p < SIM_PROCS; p++)
    if (asked->doubt[p] && m->p[p].pending && m->p[p].doubt && asked->doubt[p] == m->doubt_id[p]) settle(p, view->k[p]);
}

/* ---- Records ---- */

static void set_number(oracle_record *r, int key, unsigned value) {
  r->meta.f[r->meta.n++] = (oracle_field){.key = (uint8_t)key, .n = 1, .v = {(uint16_t)oracle_int(value)}};
}

/* All parts are there and all keys of the metadata, so that an upsert replaces all. */
static void make_record(oracle_record *r, int p, int slot, unsigned version) {
  float v[SIM_DIM];
  uint64_t next = sim_random();
  *r = (oracle_record){.has_document = true, .has_meta = true};
  test_srand(sim->seed ^ (uint64_t)p << 32 ^ (uint64_t)slot << 40 ^ version);
  oracle_name_record(r, (unsigned)(p * NUMBERS + slot));
  r->document_len =
      oracle_random_text(r->document, sizeof r->document, 1 + (unsigned)test_below(test_below(6) ? 8 : 90));
  set_number(r, 0, version);
  set_number(r, 1, (unsigned)test_below(5));
  set_number(r, ORACLE_OWNER, (unsigned)p);
  oracle_random_vector(v, SIM_DIM);
  oracle_set_vector(r, v, SIM_DIM);
  test_srand(next);
}

const oracle_record *sim_model_record(int p, int slot, unsigned version) {
  static struct {
    unsigned version;
    oracle_record r;
  } cache[SIM_PROCS][SIM_SLOTS + 1];
  if (cache[p][slot].version != version) make_record(&cache[p][slot].r, p, slot, version);
  cache[p][slot].version = version;
  return &cache[p][slot].r;
}

const oracle_collection *sim_model_records(const sim_view *view) {
  static oracle_collection c;
  c.n = 0;
  c.metric = sim->metric;
  for (int p = 0; p < SIM_PROCS; p++) {
    const uint16_t *versions = m->p[p].versions[view->k[p]];
    for (int s = 0; s < SIM_SLOTS; s++)
      if (versions[s]) oracle_append(&c, sim_model_record(p, s, versions[s]));
    if (view->k[p]) oracle_append(&c, sim_model_record(p, SIM_SLOTS, view->k[p]));
  }
  return &c;
}
