/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_target.h - where a rescue writes: collection names, metadata, tenants and databases, in the layout of
 * chroma_layout.h. */
#ifndef LODE_RESCUE_RESCUE_TARGET_H
#define LODE_RESCUE_RESCUE_TARGET_H

#include "rescue/chroma_dir.h"

/* The collection's name in the store, in the arena. */
LODE_MUST lode_status rescue_target_name(const rescue_coll *coll, mem_arena *arena, lode_str *name, lode_error *err);
/* Creates or opens the collection. LODE_MISMATCH: there is one of that name with another metric. */
LODE_MUST lode_status rescue_target_open(lode_store *store, const rescue_coll *coll, lode_str name,
                                         lode_collection **target, lode_error *err);
/* Registers the tenants and databases that the directory has besides the default ones. */
LODE_MUST lode_status rescue_target_databases(lode_store *store, const rescue_dir *chroma, lode_error *err);

#endif
