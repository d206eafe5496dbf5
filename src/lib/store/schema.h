/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - creating and upgrading a database file (schema.c), and refusing one that Lode did not create
 * (schema_check.c). */
#ifndef LODE_STORE_SCHEMA_H
#define LODE_STORE_SCHEMA_H

#include "store/tx.h"

#define STORE_APPLICATION_ID 0x6c6f6465 /* "lode" */

typedef struct store_schema_object {
  const char *type, *name, *table;
  const char *sql; /* NULL: an index that SQLite creates with its table */
  bool own;        /* created by its SQL; false: created along with another object */
} store_schema_object;
extern const store_schema_object store_schema_objects[STORE_SCHEMA_OBJECTS];

/* ---- schema.c ---- */

LODE_MUST lode_status store_db_create(store_db *db, lode_error *err);
/* Reads the store once, and upgrades the format of an older Lode. A handle that is read-only, or cannot write at the
 * moment, uses format 1 as it is. */
LODE_MUST lode_status store_db_upgrade(store_db *db, lode_error *err);
/* Upgrades format 1 to STORE_FORMAT, within a write transaction. */
LODE_MUST lode_status store_tx_raise_format(store_tx *tx, lode_error *err);
/* Is this format one we can read? LODE_TOO_NEW: it was written by a newer Lode. */
LODE_MUST lode_status store_schema_check_format(uint32_t format, const char *path, lode_error *err);

/* ---- schema_check.c ---- */

/* Is the schema one of ours? Called with a lock of the database file held, before anything else runs in a transaction.
 * Checks again whenever SQLite would parse the schema again. */
LODE_MUST lode_status store_schema_check(store_conn *conn, lode_error *err);
/* The same for a file that is read as pages: a backup. */
LODE_MUST lode_status store_schema_check_pages(vfs_pages *pages, const char *path, lode_error *err);
/* Does the schema hold anything that Lode did not create? False if damaged pages make it impossible to know. */
bool store_schema_is_foreign(vfs_pages *pages, const char *path, lode_error *why);

#endif
