/* rescue_target.h - where a rescue writes: a collection's name, its metadata, and the tenants and databases, as chroma_layout.h says. */
#ifndef LODE_RESCUE_RESCUE_TARGET_H
#define LODE_RESCUE_RESCUE_TARGET_H

#include "rescue/chroma_dir.h"

/* The collection's name in the store, in the arena. */
lode_status rescue_target_name(const rescue_coll *coll, mem_arena *arena, lode_str *name, lode_error *err);
/* Makes the collection, or opens it. LODE_MISMATCH: there is one of that name with another metric. */
lode_status rescue_target_open(lode_store *store, const rescue_coll *coll, lode_str name, lode_collection **target, lode_error *err);
/* Makes known the tenants and databases that the directory has besides the usual ones. */
lode_status rescue_target_databases(lode_store *store, const rescue_dir *chroma, lode_error *err);

#endif
