/* SPDX-License-Identifier: Apache-2.0 */
/* op_maint.c - maintenance of the store: verify, salvage, backup, restore, compact, optimize. */
#include "ops/op_row.h"
#include "table/op_args_db.h"
#include "commands/op_sample.h"

#include "os/os.h"

/* Sends each damage as a row; a failure to send is kept until the library returns. */
typedef struct maint_damages {
  op_context *ctx;
  uint64_t count;
  lode_status status;
  lode_error error;
} maint_damages;

static void maint_send_damage(void *ctx, const lode_damage *damage) {
  maint_damages *d = ctx;
  d->count++;
  if (d->status != LODE_OK) return;
  op_row_begin(d->ctx);
  op_row_text(d->ctx, "what", str_of(damage->what ? damage->what : "damage"));
  op_row_text(d->ctx, "collection", damage->collection);
  op_row_text(d->ctx, "id", damage->id);
  op_row_text(d->ctx, "detail", str_of(damage->detail ? damage->detail : ""));
  d->status = op_row_send(d->ctx, &d->error);
}

static lode_status maint_damages_status(const maint_damages *d, lode_error *err) {
  if (d->status != LODE_OK && err) *err = d->error;
  return d->status;
}

static lode_status maint_verify_summary(op_context *ctx, bool ok, uint64_t count, const lode_stats *stats,
                                        const op_recall *recall, lode_error *err) {
  op_summary_begin(ctx);
  op_row_text(ctx, "store", str_of(ctx->folder));
  op_row_bool(ctx, "ok", ok);
  op_row_count(ctx, "damages", count);
  if (stats)
    op_row_count(ctx, "records", stats->records);
  else
    op_row_null(ctx, "records");
  if (stats && stats->quarantined) op_row_count(ctx, "quarantined", stats->quarantined);
  if (recall && recall->queries) {
    op_row_real(ctx, "recall", recall->mean);
    op_row_real(ctx, "recall_margin", recall->margin);
    op_row_count(ctx, "recall_queries", recall->queries);
    op_row_text(ctx, "recall_collection", str_of(recall->collection));
  }
  return op_row_send(ctx, err);
}

/* A store that cannot be opened is reported as a damage, and then each page that is damaged. */
static lode_status maint_verify_unopened(op_context *ctx, lode_error *err) {
  lode_error why = *err, ignored;
  maint_damages found = {.ctx = ctx};
  maint_send_damage(&found, &(lode_damage){.what = "store", .detail = why.text});
  if (lode_verify_folder(ctx->folder, maint_send_damage, &found, ctx->progress, &ignored) == LODE_CANCELLED) {
    *err = ignored;
    return LODE_CANCELLED;
  }
  TRY(maint_damages_status(&found, err));
  TRY(maint_verify_summary(ctx, false, found.count, NULL, NULL, err));
  *err = why;
  return LODE_CORRUPT;
}

lode_status op_do_verify(op_context *ctx, const op_verify_args *args, lode_error *err) {
  op_open_options how = {0};
  maint_damages found = {.ctx = ctx};
  lode_stats stats = {0};
  lode_store *store = NULL;
  op_recall recall = {0};
  lode_error why = {.record = LODE_NO_RECORD};
  lode_status st = ctx->open(ctx->opener, &how, &store, &why);
  if (st == LODE_OK) {
    st = lode_verify(store, maint_send_damage, &found, ctx->progress, &why);
    if (st == LODE_OK && args->recall.on) st = op_sample_recall(store, ctx->progress, &recall, &why);
    bool counted = lode_store_stats(store, &stats, NULL) == LODE_OK;
    ctx->release(ctx->opener, store);
    TRY(maint_damages_status(&found, err));
    if (st == LODE_OK || st == LODE_CORRUPT)
      TRY(maint_verify_summary(ctx, st == LODE_OK, found.count, counted ? &stats : NULL, &recall, err));
  } else if (st == LODE_CORRUPT) {
    st = maint_verify_unopened(ctx, &why);
  }
  if (err) *err = why;
  return st;
}

lode_status op_do_salvage(op_context *ctx, const op_salvage_args *args, lode_error *err) {
  const char *source = args->from.set ? args->from.path : ctx->folder;
  maint_damages lost = {.ctx = ctx};
  lode_salvage_report report = {0};
  if (!args->from.set) TRY(op_check_trust(ctx, err));
  TRY(lode_salvage(source, args->to.path, maint_send_damage, &lost, ctx->progress, &report, err));
  TRY(maint_damages_status(&lost, err));
  op_summary_begin(ctx);
  op_row_text(ctx, "from", str_of(source));
  op_row_text(ctx, "to", str_of(args->to.path));
  op_row_count(ctx, "records", report.records);
  op_row_count(ctx, "lost", report.lost);
  op_row_count(ctx, "without_document", report.without_document);
  op_row_count(ctx, "without_vector", report.without_vector);
  op_row_count(ctx, "pages", report.pages);
  op_row_count(ctx, "damaged_pages", report.damaged_pages);
  return op_row_send(ctx, err);
}

lode_status op_do_backup(op_context *ctx, const op_backup_args *args, lode_error *err) {
  op_open_options how = {0};
  const char *file = args->file.path;
  struct stat info = {0};
  lode_store *store = NULL;
  TRY(ctx->open(ctx->opener, &how, &store, err));
  lode_status st = lode_backup(store, file, ctx->progress, err);
  ctx->release(ctx->opener, store);
  if (st != LODE_OK) return st;
  bool sized = os_api->stat(file, &info) == 0;
  op_summary_begin(ctx);
  op_row_text(ctx, "file", str_of(args->file.path));
  op_row_count(ctx, "bytes", sized ? (uint64_t)info.st_size : 0);
  return op_row_send(ctx, err);
}

lode_status op_do_restore(op_context *ctx, const op_restore_args *args, lode_error *err) {
  const char *folder = args->to.set ? args->to.path : ctx->folder;
  TRY(op_check_may_write(ctx, err));
  if (!args->to.set) TRY(op_check_trust(ctx, err));
  TRY(lode_restore(args->file.path, folder, ctx->progress, err));
  op_summary_begin(ctx);
  op_row_text(ctx, "file", str_of(args->file.path));
  op_row_text(ctx, "store", str_of(folder));
  return op_row_send(ctx, err);
}

static lode_status maint_shrink(op_context *ctx, lode_status (*work)(lode_store *, lode_progress, lode_error *),
                                lode_error *err) {
  op_open_options how = {.write = true, .brief = true}; /* no background work: measure only `work` */
  lode_stats before = {0}, after = {0};
  lode_store *store = NULL;
  TRY(ctx->open(ctx->opener, &how, &store, err));
  lode_status st;
  TRY_GOTO(lode_store_stats(store, &before, err));
  TRY_GOTO(work(store, ctx->progress, err));
  TRY_GOTO(lode_store_stats(store, &after, err));
  op_summary_begin(ctx);
  op_row_text(ctx, "store", str_of(ctx->folder));
  op_row_count(ctx, "bytes_before", before.bytes);
  op_row_count(ctx, "bytes", after.bytes);
  TRY_GOTO(op_row_send(ctx, err));
done:
  ctx->release(ctx->opener, store);
  return st;
}

lode_status op_do_compact(op_context *ctx, const op_no_args *args, lode_error *err) {
  (void)args;
  return maint_shrink(ctx, lode_compact, err);
}

lode_status op_do_optimize(op_context *ctx, const op_optimize_args *args, lode_error *err) {
  return maint_shrink(ctx, args->rebuild_unreadable.on ? lode_rebuild_unreadable : lode_optimize, err);
}
