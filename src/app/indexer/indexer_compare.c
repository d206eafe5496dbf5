/* SPDX-License-Identifier: Apache-2.0 */
/* indexer_compare.c - counts the files that differ from the index; see indexer.h. */
#include "indexer/indexer.h"

#include "indexer/file_table.h"

typedef struct indexer_compare_state {
  indexer_file_table file_table;
  indexer_changes *changes;
  strbuf shown;
} indexer_compare_state;

static lode_status indexer_compare_entry(indexer_compare_state *c, const scan_entry *e, lode_error *err) {
  if (e->skip != SCAN_SKIP_NONE) return LODE_OK;
  c->shown.len = 0;
  files_path_escape(&c->shown, e->path);
  if (c->shown.failed) return err_nomem(err);
  indexer_file_entry *known = indexer_file_table_find(&c->file_table, (lode_str){c->shown.data, c->shown.len});
  c->changes->files++;
  if (!known) {
    c->changes->added++;
    return LODE_OK;
  }
  known->mark = 1;
  if (!indexer_file_state_fits(&known->file, e->size, e->inode, e->mtime_ns, e->ctime_ns)) c->changes->changed++;
  return LODE_OK;
}

lode_status indexer_compare(const project_info *project, lode_store *store, lode_progress progress,
                            indexer_changes *changes, lode_error *err) {
  scan_options options = indexer_scan_options(&project->config);
  lode_collection_options plain = {0};
  lode_collection *files = NULL;
  scan_root *root = NULL;
  scan_walker *walker = NULL;
  indexer_compare_state c = {.changes = changes};
  scan_entry entry;
  lode_status st;
  bool more = true;
  memset(changes, 0, sizeof *changes);
  TRY_GOTO(lode_collection_open(store, STR_LIT(INDEXER_COLL_FILES), &plain, &files, err));
  TRY_GOTO(indexer_file_table_load(&c.file_table, files, progress, err));
  TRY_GOTO(scan_root_open(project->root, &options, &root, err));
  TRY_GOTO(scan_walker_open(root, STR_LIT(""), &walker, err));
  while (more) {
    TRY_GOTO(scan_walker_next(walker, &entry, &more, err));
    if (more) TRY_GOTO(indexer_compare_entry(&c, &entry, err));
    TRY_GOTO(err_progress(progress, "looking at files", changes->files, 0, err));
  }
  for (size_t i = 0; i < c.file_table.n; i++) changes->removed += c.file_table.items[i].mark == 0;
done:
  strbuf_release(&c.shown);
  indexer_file_table_release(&c.file_table);
  scan_walker_close(walker);
  scan_root_close(root);
  if (files) lode_collection_close(files);
  return st;
}
