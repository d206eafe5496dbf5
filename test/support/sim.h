/* SPDX-License-Identifier: Apache-2.0 */
/* sim.h - a deterministic simulator: several processes, one disk, one scheduler, one seed.
 *
 * A simulated process is a real, forked process that runs Lode with a handle of its own, but only one of them runs at a
 * time. Every call of os_api is a step. At each step the seed decides whether another process goes on, whether the
 * call fails, whether the process is killed before it, and whether the power goes. So a seed decides everything, and
 * replays: the clock is a count of steps, sleeping lets others run, and random numbers, process ids, inode numbers, the
 * order in which folders are listed and the names of temporary files come from the seed too. What lies outside of the
 * simulated disk makes no steps. A replay needs the same program and the same SQLite.
 *
 * The disk is simdisk.h below the table of this file: it knows what is durable. A kill closes descriptors, and with
 * them go the locks; what was written stays. A power cut kills all and leaves, of what was not synced, any sectors.
 * Then all processes are started again.
 *
 * An episode (sim_run) makes a store, lets processes write, read, index, verify, compact and back up beside each other
 * under faults for some number of steps, then stops the faults: all must end within a bounded number of steps, and one
 * process finds everything indexed, verified and right.
 *
 * Judgement (sim_model.c). Each process owns some records. It logs an operation before it begins and after it was
 * acknowledged; each one also sets the process's own counter record to the number of the operation. A read of
 * everything shows one counter for each process, and its rows must be exactly the records after those operations, as
 * oracle.h has them; further
 *   - no counter is less than what was acknowledged when the read began, or more than what was begun when it ended;
 *   - answers of the same moment have the same counters, and of a later moment none that is less;
 *   - an operation that began after another one was acknowledged is not seen without it;
 *   - an operation that failed or whose process died is there or not, and the first answer decides it.
 * Other answers are compared with the oracle of the counters of their moment. Without faults that damage, no status
 * says damage, and nothing fails to which no call failed.
 *
 * A disk that lies (sim_lies.c) tells the judge what it did. Lies about page map, segments and lode.lock must not show;
 * after lies about the database or its journal an answer is right, or a status names the damage. After some of them a
 * whole commit may be missing (may_be_older): a lost end of a journal or a lost sync is a store that is older, not a
 * damaged one. From then on every operation writes all records of its process, and a view is right if it is one that
 * these operations lead to.
 *
 * A call that fails is undone; its transaction is rolled back or goes on, as the seed says. Calls that succeed leave a
 * wrong errno, which no error may show.
 *
 * Threads: a simulated process has one (no_background).
 *
 *   sim_heap.c   shared memory              sim_sched.c  scheduler, errors, kills, power cuts, trace
 *   sim_lies.c   the disk's lies            sim_bugs.c   bugs that are planted
 *   sim_model.c  the judge                  sim_load.c   what processes do
 *   sim_ask.c    answers, compared          sim_copy.c   copies, salvage, the end
 *   sim_world.c  pids, random numbers, lists
 * The layers of calls, from the top (oscall.h): sim_sched.c, sim_bugs.c, sim_lies.c, simdisk.c.
 */
#ifndef LODE_SIM_H
#define LODE_SIM_H

#include "support/oracle.h"
#include "support/oscall.h"

/* What calls that succeed leave in errno. */
#define SIM_STALE_ERRNO EDOM

enum { SIM_PROCS = 5, SIM_SLOTS = 10, SIM_MAX_OPS = 999, SIM_DIM = 6 };

/* Bugs planted for tests of the simulator itself; sim_bug_name() says what each is. */
typedef enum sim_bug {
  SIM_NO_BUG,
  SIM_NO_JOURNAL_SYNC,
  SIM_NO_DATABASE_SYNC,
  SIM_NO_COMMIT_SYNC,
  SIM_NO_NAME_SYNC,
  SIM_NO_SHARED_LOCK,
  SIM_NO_RESERVED_LOCK,
  SIM_NO_EXCLUSIVE_LOCK,
  SIM_STALE_MAP,
  SIM_OLD_PAGES,
  SIM_UNBOUND_JOURNAL,
  SIM_BUGS
} sim_bug;
const char *sim_bug_name(sim_bug bug);

/* What the disk lies about, and how. A part is a bit of a set. */
typedef enum sim_part { SIM_TRUTH = 1, SIM_JOURNAL = 2, SIM_MAP = 4, SIM_SEGMENT = 8, SIM_LOCKS = 16 } sim_part;
typedef enum sim_lie {
  SIM_LOST_WRITE,
  SIM_SHORN_WRITE, /* its first half is written */
  SIM_MISDIRECTED_WRITE,
  SIM_FLIPPED_WRITE, /* one bit */
  SIM_FLIPPED_READ,
  SIM_STALE_READ,
  SIM_LOST_TRUNCATION,
  SIM_LOST_SYNC,
  SIM_LOST_RENAME,
  SIM_LIES
} sim_lie;

/* What an episode is full of; SIM_MIXED: of what its seed says. */
typedef enum sim_stress { SIM_MIXED, SIM_CUTS, SIM_RACES, SIM_DAMAGE } sim_stress;
sim_stress sim_bug_stress(sim_bug bug); /* where it shows soonest */

typedef struct sim_options {
  uint64_t seed;
  uint64_t steps; /* with faults; the quiet end comes after them */
  sim_stress stress;
  sim_bug bug;
  const char *folder; /* for the disk; NULL: a new one */
} sim_options;

typedef struct sim_counts {
  uint64_t steps, trace; /* of the episode; a hash of all its calls and their results */
  uint64_t switches, kills, cuts, errors;
  uint64_t writes, reads, answers, unplaced; /* acknowledged; of everything; others; of these, of an unknown moment */
  uint64_t busy, failed, indexed, verified, backups, copies, torn; /* torn: copies that are damaged */
  uint64_t retried;                                                /* calls, in a transaction that goes on */
  uint64_t lies, damaged;                                          /* answers that say so */
  uint64_t salvages, expected, salvaged;                           /* of records */
  uint64_t tried, elsewhere; /* reads of one record of a damaged store; those that were answered */
} sim_counts;

/* Runs one episode in a new folder; a failure ends the test after the last steps were printed. */
void sim_run(const sim_options *options, sim_counts *counts);

/* ---- Scheduler: for processes ---- */

typedef struct sim_machine {
  uint64_t seed, rng, clock_ns, quiet_from; /* 0: faults go on */
  uint64_t limit;                           /* steps with faults */
  sim_bug bug;
  uint32_t tick_ns, mtime_ns, switch_in, kill_in, cut_in, error_in, short_in; /* one in this many; 0: never */
  uint32_t page_bytes, tail_rows, graph_rows;                                 /* see fixture_limits() */
  uint64_t full_until;                                                        /* the disk is full until this step */
  unsigned lie_parts;                                                         /* the disk lies about these */
  uint32_t truth_lies; /* how often it may still lie about the database or its journal */
  unsigned lied;       /* about these it did */
  uint32_t truth_lied; /* so often about the database or its journal */
  bool may_be_older;   /* after these lies the store may be an older one, whole */
  lode_metric metric;
  char store[400], folder[380];
  sim_counts n;
} sim_machine;

extern sim_machine *sim;
extern int sim_me; /* the number of this process; -1: the parent */
uint64_t sim_random(void);
uint64_t sim_below(uint64_t n);
bool sim_one_in(uint64_t n); /* false for 0 */
/* How many calls of this process failed on purpose. */
uint64_t sim_errors(void);
bool sim_is_quiet(void);

/* ---- World ---- */

void sim_world_enter(uint64_t starts); /* a process begins, the one with this number */
int64_t sim_world_list(oscall *c);     /* OSCALL_DIR_NEXT, in order */

/* ---- Layers ---- */

oscall_layer sim_lies_layer, sim_bugs_layer;
void sim_lies_start(void);
void sim_lies_cut(void); /* the power was cut */
void sim_lies_print(void);

/* ---- Work ---- */

void sim_load_main(int p);  /* until the simulator is quiet */
void sim_load_final(int p); /* everything is right, and indexed */

/* ---- Model ---- */

typedef struct sim_view {
  uint16_t k[SIM_PROCS]; /* counters */
} sim_view;

/* What was known when an answer was asked for. */
typedef struct sim_asked {
  sim_view known;
  uint64_t doubt[SIM_PROCS];
} sim_asked;

void sim_model_start(void);
/* A new operation of process p: fills the state after it. versions[s]: the operation that wrote slot s last, 0: none.
 */
unsigned sim_model_begin(int p, const uint16_t versions[SIM_SLOTS]);
const uint16_t *sim_model_versions(int p); /* after the last operation that is known to be there */
void sim_model_done(int p);
void sim_model_absent(int p);
void sim_model_doubt(int p);    /* it may be there */
bool sim_model_in_doubt(int p); /* then it may not write: it must read first */
void sim_model_cut(void);       /* the power was cut: all processes are dead */
/* Has operation `version` of the process written this slot, or may it have? */
bool sim_model_wrote(int p, int slot, unsigned version);
void sim_model_ask(sim_asked *asked);
/* Is this what a read may show, at this moment? Fails the test otherwise. */
void sim_model_check(const sim_asked *asked, const sim_view *view, uint64_t moment);
/* The same for a copy: it speaks of some moment between, and decides nothing. */
void sim_model_check_copy(const sim_asked *asked, const sim_view *view);
/* The records of a view; valid until the next call. */
const oracle_collection *sim_model_records(const sim_view *view);
/* The record of process p in a slot, as operation `version` wrote it; slot SIM_SLOTS is its counter. */
const oracle_record *sim_model_record(int p, int slot, unsigned version);

#endif
