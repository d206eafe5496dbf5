/* index_owned.c - see index_owned.h. */
#include "indexer/index_owned.h"

#include "project/project.h"
#include "indexer/code_record.h"
#include "indexer/index_stamp.h"

bool indexer_is_index_name(lode_str name) {
  static const lode_str suffix = STR_LIT(INDEXER_NEW_SUFFIX);
  if (name.len > suffix.len && memcmp(name.data + name.len - suffix.len, suffix.data, suffix.len) == 0)
    name.len -= suffix.len;
  return str_eq(name, STR_LIT(INDEXER_COLL_CODE)) || str_eq(name, STR_LIT(INDEXER_COLL_FILES)) ||
         str_eq(name, STR_LIT(INDEXER_COLL_QUALITY));
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

static lode_status project_refuse_name(lode_str name, lode_error *err) {
  char quoted[256];
  return err_set(err, LODE_REFUSED,
                 "%s belongs to the code index of this project: use another name; `lode index` keeps it up to date, "
                 "`lode index --force` rebuilds it, `lode reset index` removes it",
                 str_quote(name, quoted, sizeof quoted));
}

lode_status indexer_guard_index(lode_store *store, lode_str name, lode_error *err) {
  bool owned;
  TRY(indexer_owns_coll(store, name, &owned, err));
  return owned ? project_refuse_name(name, err) : LODE_OK;
}

lode_status indexer_guard_request(lode_store *store, const char *folder, lode_str name, lode_error *err) {
  project_info project;
  if (!indexer_is_index_name(name)) return LODE_OK;
  TRY(project_of_store(&project, folder, err));
  bool in_project = project.root[0] != '\0';
  project_release(&project);
  return in_project ? project_refuse_name(name, err) : indexer_guard_index(store, name, err);
}
