/* SPDX-License-Identifier: Apache-2.0 */
/* sim_load.h - between the files of what a simulated process does: sim_load.c (acts), sim_ask.c (answers, and whether
 * they are right), sim_copy.c (copies, damage, and the end). Each uses the handle of its own process only. */
#ifndef LODE_SIM_LOAD_H
#define LODE_SIM_LOAD_H

#include "support/sim.h"

typedef enum sim_use { SIM_READS, SIM_WRITES, SIM_MAKES } sim_use;

typedef struct sim_handle {
  lode_store *store;
  lode_collection *c;
  sim_use use;
  bool torn;         /* a copy made without locks: may be damaged */
  bool names;        /* the present call has named damage otherwise than by its error */
  uint64_t errors;   /* when the present call began */
  uint64_t map_lies; /* how often the disk had lied when a write failed because of a damaged page map */
} sim_handle;

typedef struct sim_answer {
  bool known;
  sim_view view;
  uint64_t moment;
} sim_answer;

extern lode_error sim_err; /* of the latest call */

bool sim_open(sim_handle *h, const char *folder, sim_use use);
void sim_close(sim_handle *h);
/* A call follows, of which sim_went_well() judges the status. True if it did what it should. What fails, fails because
 * a system call failed, somebody held a lock for long, or the disk has lied and the status says damage. */
void sim_begin_call(sim_handle *h);
bool sim_went_well(sim_handle *h, const char *what, lode_status st);

/* Reads and judges everything. copied: the store is a copy, and this was known when it was made; else NULL. */
bool sim_read_all(sim_handle *h, sim_answer *a, const sim_asked *copied);
/* Asks something, and judges the answer if its moment is one of which everything was read, just before or after. */
void sim_ask(sim_handle *h, const sim_answer *before);
/* The same of a store that holds just these records. */
void sim_ask_about(sim_handle *h, const oracle_collection *right);

bool sim_optimize(sim_handle *h, bool whole);
bool sim_verify(sim_handle *h);
void sim_copy(sim_handle *h);   /* cp, while others write */
void sim_backup(sim_handle *h); /* a backup, restored and read */

#endif
