/* op_maint.c - care of the store: verify, salvage, backup, restore, compact, optimize. */
#include "op.h"

#include "base/os.h"

/* Damages become rows; a failure to send one is kept until the library returns. */
typedef struct damages {
  lode__op_context *ctx;
  uint64_t count;
  lode_status status;
  lode_error error;
} damages;

static void send_damage(void *ctx, const lode_damage *damage) {
  damages *d = ctx;
  d->count++;
  if (d->status != LODE_OK) return;
  lode__row_begin(d->ctx);
  lode__row_text(d->ctx, "what", str_of(damage->what ? damage->what : "damage"));
  lode__row_text(d->ctx, "collection", damage->collection);
  lode__row_text(d->ctx, "id", damage->id);
  lode__row_text(d->ctx, "detail", str_of(damage->detail ? damage->detail : ""));
  d->status = lode__row_send(d->ctx, &d->error);
}

static lode_status damages_status(const damages *d, lode_error *err) {
  if (d->status != LODE_OK && err) *err = d->error;
  return d->status;
}

static lode_status verify_summary(lode__op_context *ctx, bool ok, uint64_t count, const lode_stats *stats,
                                  lode_error *err) {
  lode__row_begin(ctx);
  lode__row_text(ctx, "store", str_of(ctx->folder));
  lode__row_bool(ctx, "ok", ok);
  lode__row_count(ctx, "damages", count);
  if (stats) lode__row_count(ctx, "records", stats->records);
  else lode__row_json(ctx, "records", (lode_str){0});
  if (stats && stats->quarantined) lode__row_count(ctx, "quarantined", stats->quarantined);
  return lode__row_summary(ctx, err);
}

/* A store that cannot even be opened is a damage like others. */
static lode_status verify_unopened(lode__op_context *ctx, lode_error *err) {
  lode_error why = *err;
  damages found = {.ctx = ctx};
  send_damage(&found, &(lode_damage){.what = "store", .detail = why.text});
  TRY(damages_status(&found, err));
  TRY(verify_summary(ctx, false, found.count, NULL, err));
  *err = why;
  return LODE_CORRUPT;
}

lode_status lode__op_verify(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode__open_how how = {0};
  damages found = {.ctx = ctx};
  lode_stats stats = {0};
  lode_store *store = NULL;
  lode_error why = {.record = LODE_NO_RECORD};
  (void)args;
  lode_status st = ctx->open(ctx->opener, &how, &store, &why);
  if (st == LODE_OK) {
    st = lode_verify(store, send_damage, &found, ctx->progress, &why);
    bool counted = lode_store_stats(store, &stats, NULL) == LODE_OK;
    ctx->release(ctx->opener, store);
    TRY(damages_status(&found, err));
    if (st == LODE_OK || st == LODE_CORRUPT)
      TRY(verify_summary(ctx, st == LODE_OK, found.count, counted ? &stats : NULL, err));
  } else if (st == LODE_CORRUPT) {
    st = verify_unopened(ctx, &why);
  }
  if (err) *err = why;
  return st;
}

lode_status lode__op_salvage(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  const lode__arg *from = lode__arg_of(args, "from");
  const char *source = from->set ? from->text.data : ctx->folder;
  lode_str to = lode__arg_of(args, "to")->text;
  damages lost = {.ctx = ctx};
  lode_salvage_report report = {0};
  if (!from->set) TRY(lode__op_may_use(ctx, err));
  TRY(lode_salvage(source, to.data, send_damage, &lost, ctx->progress, &report, err));
  TRY(damages_status(&lost, err));
  lode__row_begin(ctx);
  lode__row_text(ctx, "from", str_of(source));
  lode__row_text(ctx, "to", to);
  lode__row_count(ctx, "records", report.records);
  lode__row_count(ctx, "lost", report.lost);
  lode__row_count(ctx, "without_document", report.without_document);
  lode__row_count(ctx, "without_vector", report.without_vector);
  lode__row_count(ctx, "pages", report.pages);
  lode__row_count(ctx, "damaged_pages", report.damaged_pages);
  return lode__row_summary(ctx, err);
}

lode_status lode__op_backup(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode__open_how how = {0};
  lode_str file = lode__arg_of(args, "file")->text;
  struct stat info = {0};
  lode_store *store = NULL;
  TRY(ctx->open(ctx->opener, &how, &store, err));
  lode_status st = lode_backup(store, file.data, ctx->progress, err);
  ctx->release(ctx->opener, store);
  if (st != LODE_OK) return st;
  bool sized = os_api->stat(file.data, &info) == 0;
  lode__row_begin(ctx);
  lode__row_text(ctx, "file", file);
  lode__row_count(ctx, "bytes", sized ? (uint64_t)info.st_size : 0);
  return lode__row_summary(ctx, err);
}

lode_status lode__op_restore(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode_str file = lode__arg_of(args, "file")->text;
  const lode__arg *to = lode__arg_of(args, "to");
  const char *folder = to->set ? to->text.data : ctx->folder;
  TRY(lode__op_may_write(ctx, err));
  if (!to->set) TRY(lode__op_may_use(ctx, err));
  TRY(lode_restore(file.data, folder, ctx->progress, err));
  lode__row_begin(ctx);
  lode__row_text(ctx, "file", file);
  lode__row_text(ctx, "store", str_of(folder));
  return lode__row_summary(ctx, err);
}

static lode_status shrink(lode__op_context *ctx, lode_status (*work)(lode_store *, lode_progress, lode_error *),
                          lode_error *err) {
  lode__open_how how = {.write = true, .brief = true}; /* what is measured is what `work` did */
  lode_stats before = {0}, after = {0};
  lode_store *store = NULL;
  TRY(ctx->open(ctx->opener, &how, &store, err));
  lode_status st;
  TRY_GOTO(lode_store_stats(store, &before, err));
  TRY_GOTO(work(store, ctx->progress, err));
  TRY_GOTO(lode_store_stats(store, &after, err));
  lode__row_begin(ctx);
  lode__row_text(ctx, "store", str_of(ctx->folder));
  lode__row_count(ctx, "bytes_before", before.bytes);
  lode__row_count(ctx, "bytes", after.bytes);
  TRY_GOTO(lode__row_summary(ctx, err));
done:
  ctx->release(ctx->opener, store);
  return st;
}

lode_status lode__op_compact(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  (void)args;
  return shrink(ctx, lode_compact, err);
}

lode_status lode__op_optimize(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  return shrink(ctx, lode__arg_of(args, "rebuild_unreadable")->number ? lode_rebuild_unreadable : lode_optimize, err);
}
