/* index_compare.c - how many files differ from the index. See index.h. */
#include "index.h"

#include "code/known.h"

typedef struct comparing {
  lode__known_files known;
  lode__index_changes *changes;
  strbuf shown;
} comparing;

static lode_status compare_entry(comparing *c, const lode__entry *e, lode_error *err) {
  if (e->skip != LODE__SKIP_NONE) return LODE_OK;
  c->shown.len = 0;
  lode__path_show(&c->shown, e->path);
  if (c->shown.failed) return err_nomem(err);
  lode__known *known = lode__known_find(&c->known, (lode_str){c->shown.data, c->shown.len});
  c->changes->files++;
  if (!known) {
    c->changes->added++;
    return LODE_OK;
  }
  known->mark = 1;
  if (!lode__file_state_fits(&known->file, e->size, e->inode, e->mtime_ns, e->ctime_ns)) c->changes->changed++;
  return LODE_OK;
}

lode_status lode__index_compare(const lode__project *project, lode_store *store, lode_progress progress,
                                lode__index_changes *changes, lode_error *err) {
  lode__walk_options options = lode__index_walk_options(&project->config);
  lode_collection_options plain = {0};
  lode_collection *files = NULL;
  lode__root *root = NULL;
  lode__walker *walker = NULL;
  comparing c = {.changes = changes};
  lode__entry entry;
  lode_status st;
  bool more = true;
  memset(changes, 0, sizeof *changes);
  TRY_GOTO(lode_collection_open(store, STR_LIT(LODE__CODE_FILES), &plain, &files, err));
  TRY_GOTO(lode__known_load(&c.known, files, progress, err));
  TRY_GOTO(lode__root_open(project->root, &options, &root, err));
  TRY_GOTO(lode__walker_open(root, STR_LIT(""), &walker, err));
  while (more) {
    TRY_GOTO(lode__walker_next(walker, &entry, &more, err));
    if (more) TRY_GOTO(compare_entry(&c, &entry, err));
    if (progress.step && !progress.step(progress.ctx, "looking at files", changes->files, 0))
      TRY_GOTO(err_set(err, LODE_CANCELLED, "interrupted"));
  }
  for (size_t i = 0; i < c.known.n; i++) changes->removed += c.known.items[i].mark == 0;
done:
  strbuf_release(&c.shown);
  lode__known_release(&c.known);
  lode__walker_close(walker);
  lode__root_close(root);
  if (files) lode_collection_close(files);
  return st;
}
