/* index_owned.h - which collections of a store are the code index of a project.
 *
 * "code", "files" and "quality" (and their ".new" versions during a rebuild) belong to the project if the store has
 * an index, that is, if the metadata of "files" are a stamp. In other stores these are ordinary names. */
#ifndef LODE_INDEXER_INDEX_OWNED_H
#define LODE_INDEXER_INDEX_OWNED_H

#include "base/base.h"

/* Judges by the name alone. */
bool indexer_is_index_name(lode_str name);
/* LODE_REFUSED, with what to do instead, when the collection belongs to the code index in this store. */
LODE_MUST lode_status indexer_guard_index(lode_store *store, lode_str name, lode_error *err);
/* For requests: in the store of a project (ROOT/.lode; `folder`) these names are reserved even before there is an
 * index. */
LODE_MUST lode_status indexer_guard_request(lode_store *store, const char *folder, lode_str name, lode_error *err);
/* Does the collection belong to the code index in this store? */
LODE_MUST lode_status indexer_owns_coll(lode_store *store, lode_str name, bool *owned, lode_error *err);

#endif
