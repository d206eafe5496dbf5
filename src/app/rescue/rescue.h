/* SPDX-License-Identifier: Apache-2.0 */
/* rescue.h - copies Chroma directories into Lode stores, and reports what is wrong with them: the interface of this
 * room.
 *
 * A Chroma directory is only ever read, except by rescue_quarantine(), which renames and never deletes. See
 * chroma_dir.h for what is read and rescue_plan.h for where vectors come from; docs/RESCUE.md explains it all.
 */
#ifndef LODE_RESCUE_RESCUE_H
#define LODE_RESCUE_RESCUE_H

#include "base/base.h"

/* The outcome for a collection. exact + from_log + embedded + missing = records. */
typedef struct rescue_counts {
  lode_str name; /* in the store */
  lode_str chroma_id;
  const char *metric;
  uint32_t dimension;
  uint64_t records;
  uint64_t exact;    /* vectors from the index */
  uint64_t from_log; /* vectors from the log, as they were given */
  uint64_t embedded; /* vectors made again from the document */
  uint64_t missing;  /* records without a vector */
  uint64_t refused;  /* records that the store rejects, each reported to `doubt`: not in `records` */
  uint64_t lost;     /* records in the index whose rows a damaged database has lost, each reported to `doubt`: not in
                        `records` */
  uint64_t doubtful; /* records with something doubtful about them, each reported to `doubt` */
  uint64_t by_order; /* of the exact ones: matched by order, because the pickle is lost */
  uint64_t written, unchanged; /* in the store; 0 when nothing is to be written */
} rescue_counts;

typedef struct rescue_request {
  const char *from; /* the Chroma directory */
  lode_store *to;   /* NULL: nothing is written */
  bool embed;       /* make missing vectors again, if the model is known and installed */
  lode_str model;   /* the model that made the vectors; absent: the one that the directory names */
  lode_progress progress;
  /* May a collection of this name be written? Asked for all of them before anything is written. NULL: yes. */
  lode_status (*may_write)(void *ctx, lode_str name, lode_error *err);
  /* Called once per collection; LODE_OK continues. */
  lode_status (*collection)(void *ctx, const rescue_counts *count, lode_error *err);
  /* Called for each doubtful, refused or lost record. */
  lode_status (*doubt)(void *ctx, lode_str collection, lode_str id, const char *what, lode_error *err);
  void (*note)(void *ctx, const char *text);
  void *ctx;
} rescue_request;

/* Records that are already in the store and equal are not touched: running it again continues where it stopped. */
LODE_MUST lode_status rescue_from_chroma(const rescue_request *request, lode_error *err);

/* ---- What is wrong with a directory ---- */

typedef struct rescue_check_request {
  const char *from;
  lode_progress progress;
  /* Called for each finding; damage = false: worth knowing. collection is absent for the whole directory. */
  lode_status (*found)(void *ctx, const char *what, bool damage, lode_str collection, const char *detail,
                       lode_error *err);
  void *ctx;
} rescue_check_request;

typedef struct rescue_check_report {
  uint64_t collections, records;
  uint64_t exact, from_log, missing; /* what a rescue would find */
  uint64_t damages, notes;
} rescue_check_report;

LODE_MUST lode_status rescue_check(const rescue_check_request *request, rescue_check_report *report, lode_error *err);

/* ---- The other files of a palace ---- */

typedef struct rescue_palace_request {
  const char *from; /* the palace */
  const char *to;   /* the folder of the new one; it exists, unless dry_run */
  const char *only; /* NULL, or: only files of the folder itself whose names begin so */
  bool dry_run;     /* counts only */
  /* Called for each file that is copied or left out, with the reason. */
  lode_status (*file)(void *ctx, const char *path, const char *what, lode_error *err);
  void *ctx;
} rescue_palace_request;

typedef struct rescue_palace_report {
  uint64_t files, bytes; /* copied; of a dry run: to be copied or there already */
  uint64_t kept;         /* there already, and not replaced */
  uint64_t left_out;     /* links, devices, ... */
} rescue_palace_report;

/* Copies all files of a palace but Chroma's and the store's folder, `lode`, and adds to the report. LODE_BUSY: they are
 * being written. */
LODE_MUST lode_status rescue_palace_files(const rescue_palace_request *request, rescue_palace_report *report,
                                          lode_error *err);
/* Records in the store which model made the vectors of each collection, as the palace says (mempalace_embedder.json)
 * and as the Python package's backend reads it. *named is how many. */
LODE_MUST lode_status rescue_palace_identity(const char *from, lode_store *store, uint64_t *named, lode_error *err);

/* ---- Quarantining indexes, fixing sequence ids ---- */

typedef struct rescue_quarantine_request {
  const char *from;
  uint64_t stale_seconds; /* an index that is older than the database by this much is renamed */
  bool fix_seq_ids;
  bool dry_run;
  /* Called for each thing done, or to be done. */
  lode_status (*done)(void *ctx, const char *what, const char *path, const char *became, lode_error *err);
  void *ctx;
} rescue_quarantine_request;

typedef struct rescue_quarantine_report {
  uint64_t set_aside, kept, seq_ids;
} rescue_quarantine_report;

/* Renames SEGMENT to SEGMENT.drift-TIME, and chroma.sqlite3 to chroma.sqlite3.before-TIME (when ids were fixed);
 * deletes nothing. The caller must have rescued everything first. LODE_BUSY: the database is in use. */
LODE_MUST lode_status rescue_quarantine(const rescue_quarantine_request *request, rescue_quarantine_report *report,
                                        lode_error *err);

#endif
