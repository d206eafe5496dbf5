/* SPDX-License-Identifier: Apache-2.0 */
/* repair.h - operations on a whole store: verify, salvage, backup, restore. Used by src/lib/engine. */
#ifndef LODE_REPAIR_REPAIR_H
#define LODE_REPAIR_REPAIR_H

#include "store/store.h"

/* Checks everything while others use the store. LODE_CORRUPT: damage was found, and reported to `found`. */
LODE_MUST lode_status verify_store(store_db *db, lode_damage_fn *found, void *ctx, lode_progress progress,
                                   lode_error *err);
/* The pages of a store that cannot be opened. */
LODE_MUST lode_status verify_folder(const char *folder, lode_damage_fn *found, void *ctx, lode_progress progress,
                                    lode_error *err);
/* Copies what is intact in the store (or database file) `from` to a new store. */
LODE_MUST lode_status salvage_store(const char *from, const char *to, lode_damage_fn *lost, void *ctx,
                                    lode_progress progress, lode_salvage_report *report, lode_error *err);
/* Writes a consistent copy of the database file to a new file. */
LODE_MUST lode_status backup_store(store_db *db, const char *file, lode_progress progress, lode_error *err);
/* Makes a store of a backup, which is verified first. */
LODE_MUST lode_status backup_restore(const char *file, const char *folder, lode_progress progress, lode_error *err);

#endif
