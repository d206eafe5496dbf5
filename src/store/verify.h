/* verify.h - what verify.c, verify_rows.c and verify_sums.c share. */
#ifndef LODE_VERIFY_H
#define LODE_VERIFY_H

#include "db.h"
#include "pages.h"

typedef struct lode__verify {
  lode__db *db;
  lode_damage_fn *found;
  void *ctx;
  lode_progress progress;
  uint64_t n_found;
  uint64_t damaged_pages;
} lode__verify;

void lode__verify_found(lode__verify *v, const char *what, lode_str collection, lode_str id, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Every row, and what rows say of each other, in short transactions. */
lode_status lode__verify_rows(lode__verify *v, lode_error *err);

/* Guards a long read: it stops as soon as somebody waits for a lock, or the caller cancels. */
typedef struct lode__watch {
  lode__verify *v;
  lode__db *db;
  const char *phase;
  uint64_t told_ns;
  bool is_private;   /* a copy that nobody else uses */
  bool interrupted;  /* for others: try again */
  bool cancelled;
} lode__watch;
void lode__watch_begin(lode__watch *w, sqlite3 *sql);
void lode__watch_end(sqlite3 *sql);

/* Counts, indexes and counters against what the records say, in one transaction on `db` (the store or a copy of it). */
lode_status lode__verify_sums(lode__verify *v, lode__watch *w, lode_error *err);

#endif
