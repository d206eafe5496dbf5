/* SPDX-License-Identifier: Apache-2.0 */
/* verify.h - shared by verify.c, verify_rows.c and verify_sums.c. */
#ifndef LODE_REPAIR_VERIFY_H
#define LODE_REPAIR_VERIFY_H

#include "repair/repair_internal.h"

typedef struct verify_job {
  store_db *db;
  lode_damage_fn *found;
  void *ctx;
  lode_progress progress;
  uint64_t n_found;
  uint64_t damaged_pages;
} verify_job;

void verify_report(verify_job *v, const char *what, lode_str collection, lode_str id, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Checks every row and the references between rows, in short transactions. */
LODE_MUST lode_status verify_rows(verify_job *v, lode_error *err);

/* Interrupts a long read as soon as somebody waits for a lock, or the caller cancels. */
typedef struct verify_watch {
  verify_job *v;
  store_db *db;
  const char *phase;
  uint64_t reported_ns;
  bool is_private;  /* db is a copy that nobody else uses: never interrupted */
  bool interrupted; /* somebody waited for a lock: try again */
  bool cancelled;
} verify_watch;
void verify_watch_begin(verify_watch *w, sqlite3 *sql);
void verify_watch_end(sqlite3 *sql);

/* Compares counts, indexes and counters with the records, in one transaction on w->db (the store or a copy of it). */
LODE_MUST lode_status verify_sums(verify_job *v, verify_watch *w, lode_error *err);

#endif
