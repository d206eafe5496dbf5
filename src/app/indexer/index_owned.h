/* SPDX-License-Identifier: Apache-2.0 */
/* index_owned.h - which collections of a store are a code index, and who may change them.
 *
 * "code", "files" and "quality" (and their ".new" versions during a rebuild) are a code index if the metadata of
 * "files" are a stamp. It is a project's if the store is one that `lode index` keeps: ROOT/.lode, or a folder with the
 * lock file of `lode index`. Only `lode index` changes it. Elsewhere it is a copy (`lode db push`), as on every
 * cluster: commands may update, complete and remove it, requests may not. In other stores these are ordinary names. */
#ifndef LODE_INDEXER_INDEX_OWNED_H
#define LODE_INDEXER_INDEX_OWNED_H

#include "base/base.h"

/* Judges by the name alone. */
bool indexer_is_index_name(lode_str name);
/* Does the collection belong to a code index in this store, a project's or a copy? */
LODE_MUST lode_status indexer_owns_coll(lode_store *store, lode_str name, bool *owned, lode_error *err);
/* For commands: LODE_REFUSED, with what to do instead, when the collection belongs to the code index of a project.
 * `folder` is the store's, or its address. */
LODE_MUST lode_status indexer_guard_index(lode_store *store, const char *folder, lode_str name, lode_error *err);
/* For requests: copies are refused too, and in ROOT/.lode these names are reserved even before there is an index. */
LODE_MUST lode_status indexer_guard_request(lode_store *store, const char *folder, lode_str name, lode_error *err);

#endif
