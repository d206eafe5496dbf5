/* SPDX-License-Identifier: Apache-2.0 */
/* repair_internal.h - shared by the files of this folder. */
#ifndef LODE_REPAIR_REPAIR_INTERNAL_H
#define LODE_REPAIR_REPAIR_INTERNAL_H

#include "repair/repair.h"
#include "store/row_checksums.h"
#include "store/schema.h"
#include "store/text_index.h"
#include "store/tombstones.h"
#include "vfs/vfs_pages.h"

/* A temporary folder (private_copy.c). */
typedef struct repair_tmpdir {
  char *folder;        /* NULL: none */
  int fd;              /* holds the lock that marks it as in use */
  unsigned generation; /* of the process that created it; only that process removes it */
} repair_tmpdir;
LODE_MUST lode_status repair_tmpdir_create(repair_tmpdir *p,
                                           lode_error *err); /* also removes what killed processes left */
void repair_tmpdir_remove(repair_tmpdir *p);                 /* with the files in it */
/* Sets the error text for LODE_FULL in such a folder; other statuses are returned unchanged. */
LODE_MUST lode_status repair_tmpdir_explain(lode_status st, lode_error *err);

/* backup.c: a consistent copy of the database file as a new file, synced. */
LODE_MUST lode_status backup_copy(store_db *db, const char *file, lode_progress progress, lode_error *err);

/* verify.c: SQLite's integrity check; calls line() for each fault and returns SQLite's result. */
typedef void repair_integrity_fn(void *ctx, const char *line);
LODE_MUST int repair_integrity_check(sqlite3 *sql, repair_integrity_fn *line, void *ctx);

/* repair_rows.c: rows of our tables on pages, recognized by the types of their columns. */
typedef enum repair_row_kind {
  REPAIR_ROW_OTHER,
  REPAIR_ROW_RECORD,
  REPAIR_ROW_DOCUMENT,
  REPAIR_ROW_VECTOR,
  REPAIR_ROW_TOMBSTONE,
  REPAIR_ROW_COLLECTION,
  REPAIR_ROW_METAKEY,
  REPAIR_ROW_ID,
} repair_row_kind;
repair_row_kind repair_row_kind_of(const sqf_cell *row, const sqf_view *view);
/* Decodes the row of a record and verifies its checksum; its strings point into the payload. */
bool repair_row_to_rec(const sqf_cell *row, const strbuf *payload, store_rec *rec);
/* Loads the whole payload, including overflow pages. LODE_CORRUPT: the chain is broken. */
LODE_MUST lode_status repair_row_load(vfs_pages *pages, const sqf_cell *row, strbuf *payload, lode_error *err);

#endif
