/* SPDX-License-Identifier: Apache-2.0 */
/* index_owned.c - see index_owned.h. */
#include "indexer/index_owned.h"

#include "project/project.h"
#include "indexer/code_record.h"
#include "indexer/index_stamp.h"

bool indexer_is_index_name(lode_str name) {
  static const lode_str suffix = STR_LIT(INDEXER_NEW_SUFFIX);
  if (name.len > suffix.len && memcmp(name.data + name.len - suffix.len, suffix.data, suffix.len) == 0)
    name.len -= suffix.len;
  return str_eq(name, STR_LIT(INDEXER_COLL_CODE)) || str_eq(name, STR_LIT(INDEXER_COLL_KEPT)) ||
         str_eq(name, STR_LIT(INDEXER_COLL_FILES)) || str_eq(name, STR_LIT(INDEXER_COLL_QUALITY)) ||
         str_eq(name, STR_LIT(INDEXER_COLL_SYMBOLS));
}

lode_status indexer_owns_coll(lode_store *store, lode_str name, bool *owned, lode_error *err) {
  lode_collection_list *list = NULL;
  indexer_stamp stamp = {0};
  *owned = false;
  if (!indexer_is_index_name(name)) return LODE_OK;
  TRY(lode_collections(store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (str_eq(info->name, STR_LIT(INDEXER_COLL_FILES))) indexer_stamp_parse(info->metadata, &stamp);
  }
  lode_collection_list_free(list);
  *owned = stamp.revision > 0;
  return LODE_OK;
}

/* Is the folder ROOT/.lode? */
static lode_status owned_in_root(const char *folder, bool *in_root, lode_error *err) {
  project_info project;
  TRY(project_of_store(&project, folder, err));
  *in_root = project.root[0] != '\0';
  project_release(&project);
  return LODE_OK;
}

static lode_status owned_refuse(lode_str name, lode_error *err) {
  char quoted[256];
  return err_set(err, LODE_REFUSED,
                 "%s belongs to the code index of this project: use another name; `lode index` keeps it up to date, "
                 "`lode index --force` rebuilds it, --model MODEL with another model, `lode reset index` removes it",
                 str_quote(name, quoted, sizeof quoted));
}

lode_status indexer_guard_index(lode_store *store, const char *folder, lode_str name, lode_error *err) {
  bool owned, in_root;
  TRY(indexer_owns_coll(store, name, &owned, err));
  if (!owned) return LODE_OK;
  TRY(owned_in_root(folder, &in_root, err));
  return in_root || project_was_indexed(folder) ? owned_refuse(name, err) : LODE_OK;
}

lode_status indexer_guard_request(lode_store *store, const char *folder, lode_str name, lode_error *err) {
  bool owned, in_root;
  char quoted[256];
  if (!indexer_is_index_name(name)) return LODE_OK;
  TRY(owned_in_root(folder, &in_root, err));
  if (in_root) return owned_refuse(name, err);
  TRY(indexer_owns_coll(store, name, &owned, err));
  if (!owned) return LODE_OK;
  return err_set(err, LODE_REFUSED,
                 "%s belongs to the code index in this store, which only `lode index` or a command on the server's "
                 "machine changes: use another name",
                 str_quote(name, quoted, sizeof quoted));
}
