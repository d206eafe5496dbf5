/* SPDX-License-Identifier: Apache-2.0 */
/* indexer_compare.c - counts the files that differ from the index; see indexer.h. */
#include "indexer/indexer.h"

#include "indexer/file_table.h"
#include "indexer/indexer_tuning.h"

typedef struct indexer_compare_state {
  indexer_file_table file_table;
  indexer_changes *changes;
  const scan_root *root;
  strbuf shown, text;
} indexer_compare_state;

/* A file that is new, or whose size, times or inode are others than those that are known. One that cannot be read does
 * not count: a run could not bring it up to date, and would be tried again for ever. */
static lode_status indexer_compare_read(indexer_compare_state *c, const scan_entry *e, const indexer_file_entry *known,
                                        lode_error *err) {
  indexer_changes *n = c->changes;
  uint8_t digest[INDEXER_DIGEST_BYTES];
  scan_entry read = {.skip = SCAN_SKIP_NONE};
  bool reads = n->added + n->changed + n->touched < INDEXER_COMPARE_READ;
  if (reads) TRY(scan_root_read(c->root, e->path, &c->text, &read, err));
  if (read.skip == SCAN_SKIP_UNREADABLE) return LODE_OK;
  if (known && reads) indexer_digest_of(c->text.data ? c->text.data : "", c->text.len, digest);
  bool same = known && reads && memcmp(digest, known->file.hash, sizeof digest) == 0;
  ++*(!known ? &n->added : same ? &n->touched : &n->changed);
  return LODE_OK;
}

/* What cannot be read is kept, and everything below it: a run does not take it for removed. */
static void indexer_compare_keep(indexer_compare_state *c, lode_str path) {
  for (size_t i = 0; i < c->file_table.n; i++) {
    lode_str known = c->file_table.items[i].path;
    if (known.len >= path.len && memcmp(known.data, path.data, path.len) == 0 &&
        (known.len == path.len || path.len == 0 || known.data[path.len] == '/'))
      c->file_table.items[i].mark = 1;
  }
}

static lode_status indexer_compare_entry(indexer_compare_state *c, const scan_entry *e, lode_error *err) {
  if (e->skip != SCAN_SKIP_NONE && e->skip != SCAN_SKIP_UNREADABLE) return LODE_OK;
  c->shown.len = 0;
  files_path_escape(&c->shown, e->path);
  if (c->shown.failed) return err_nomem(err);
  lode_str path = {c->shown.data ? c->shown.data : "", c->shown.len};
  if (e->skip == SCAN_SKIP_UNREADABLE) {
    indexer_compare_keep(c, path);
    return LODE_OK;
  }
  indexer_file_entry *known = indexer_file_table_find(&c->file_table, path);
  c->changes->files++;
  if (known) known->mark = 1;
  if (known && indexer_file_state_fits(&known->file, e->size, e->inode, e->mtime_ns, e->ctime_ns)) return LODE_OK;
  return indexer_compare_read(c, e, known, err);
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
  c.root = root;
  TRY_GOTO(scan_walker_open(root, STR_LIT(""), &walker, err));
  while (more) {
    TRY_GOTO(scan_walker_next(walker, &entry, &more, err));
    if (more) TRY_GOTO(indexer_compare_entry(&c, &entry, err));
    TRY_GOTO(err_progress(progress, "looking at files", changes->files, 0, err));
  }
  for (size_t i = 0; i < c.file_table.n; i++) changes->removed += c.file_table.items[i].mark == 0;
done:
  strbuf_release(&c.shown);
  strbuf_release(&c.text);
  indexer_file_table_release(&c.file_table);
  scan_walker_close(walker);
  scan_root_close(root);
  if (files) lode_collection_close(files);
  return st;
}
