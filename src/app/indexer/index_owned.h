/* index_owned.h - which collections of a store are the code index of a project.
 *
 * "code", "files" and "quality" (and the same with ".new", while they are built aside) belong to the project when the store has an index:
 * when the metadata of "files" are a stamp. In a store without one these are names like any other. */
#ifndef LODE_INDEXER_INDEX_OWNED_H
#define LODE_INDEXER_INDEX_OWNED_H

#include "base/base.h"

/* By its name alone. */
bool indexer_is_index_name(lode_str name);
/* LODE_REFUSED, with what to do instead, when the collection belongs to the code index in this store. */
LODE_MUST lode_status indexer_guard_index(lode_store *store, lode_str name, lode_error *err);
/* For requests: in the store of a project (ROOT/.lode; `folder`) these names are the index's even before there is one. */
LODE_MUST lode_status indexer_guard_request(lode_store *store, const char *folder, lode_str name, lode_error *err);
/* The same as an answer: *owned. */
LODE_MUST lode_status indexer_owns_coll(lode_store *store, lode_str name, bool *owned, lode_error *err);

#endif
