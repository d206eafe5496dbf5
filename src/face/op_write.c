/* op_write.c - records in and out of existence: add, upsert, update, import, delete.
 *
 * From a command line records come as a stream of JSON lines and are committed batch by batch. From a request they
 * are all there, and are one commit: the request is whole or absent.
 */
#include "model.h"
#include "op.h"
#include "vectors.h"

#include <errno.h>

#define BULK 1000
/* Requests with up to so many records may share a commit with others. */
#define SMALL_WRITE 512

/* Ids that an update did not find: the first ones by name. */
#define SHOWN_MISSING 100
typedef struct unknown {
  strbuf list; /* a JSON array, without its end */
  size_t n;
} unknown;

static void note_unknown(void *ctx, lode_str id) {
  unknown *u = ctx;
  if (u->n++ >= SHOWN_MISSING) return;
  strbuf_addch(&u->list, u->list.len ? ',' : '[');
  json_put_string(&u->list, id);
}

static lode_status report(lode__op_context *ctx, const lode__args *args, const lode_import_report *r, unknown *u,
                          lode_error *err) {
  lode__row_begin(ctx);
  lode__row_text(ctx, "collection", lode__arg_of(args, "collection")->text);
  lode__row_count(ctx, "read", r->lines);
  lode__row_count(ctx, "written", r->written);
  lode__row_count(ctx, "skipped", r->skipped);
  strbuf_addch(&u->list, ']');
  bool failed = u->list.failed;
  if (u->n && !failed) lode__row_json(ctx, "missing", (lode_str){u->list.data, u->list.len});
  strbuf_release(&u->list);
  return failed ? err_nomem(err) : lode__row_summary(ctx, err);
}

static lode_status open_for_write(lode__op_context *ctx, const lode__args *args, lode__target *target, lode_error *err) {
  bool create = lode__arg_of(args, "create")->number != 0;
  lode__open_how how = {.write = true, .create = create};
  lode_collection_options options = {.create = create};
  if (create && !lode_metric_parse(lode__arg_of(args, "metric")->text, &options.metric))
    return err_set(err, LODE_INVALID, "the metric must be l2, cosine or ip");
  return lode__target_open(ctx, args, &how, &options, target, err);
}

/* With --embed, the embedder of the collection, which is opened anew with it; else NULL. */
static lode_status embedder_for_write(lode__op_context *ctx, const lode__args *args, lode__target *target, lode_embedder **embedder,
                                      lode_error *err) {
  *embedder = NULL;
  if (!lode__arg_of(args, "embed")->number) {
    if (!lode__arg_of(args, "model")->set) return LODE_OK;
    lode__target_close(ctx, target);
    return err_set(err, LODE_INVALID, "model goes with embed: say both");
  }
  lode_status st = lode__target_embedder(ctx, args, target, embedder, err);
  if (st != LODE_OK) lode__target_close(ctx, target);
  return st;
}

typedef struct batch_write {
  const lode_import_request *request;
  lode_collection *collection;
  const lode__arg *given;
  bool *missing;
  lode_write_result *result;
} batch_write;

static lode_status write_batch(void *ctx, lode_txn *txn, lode_error *err) {
  batch_write *w = ctx;
  const lode_record *records = w->given->records;
  size_t n = w->given->n;
  if (w->request->mode == LODE_IMPORT_UPSERT) return lode_upsert(w->collection, txn, records, n, w->result, err);
  if (w->request->mode == LODE_IMPORT_UPDATE) return lode_update(w->collection, txn, records, n, w->missing, w->result, err);
  return lode_add(w->collection, txn, records, n, w->request->on_existing, w->result, err);
}

static lode_status write_request(lode__op_context *ctx, const lode__args *args, const lode_import_request *request,
                                 lode_error *err) {
  const lode__arg *given = lode__arg_of(args, "records");
  lode_write_result result = {0};
  lode__target target;
  lode_status st;
  unknown u = {0};
  bool *missing = mem_calloc(given->n, sizeof *missing);
  if (!missing) return err_nomem(err);
  lode_embedder *embedder = NULL;
  float *vectors = NULL;
  st = open_for_write(ctx, args, &target, err);
  if (st == LODE_OK) st = embedder_for_write(ctx, args, &target, &embedder, err);
  if (st != LODE_OK) {
    mem_free(missing);
    return st;
  }
  if (embedder) st = lode_embed_records(embedder, given->records, given->n, &vectors, err);
  if (st != LODE_OK) goto done;
  batch_write write = {request, target.collection, given, missing, &result};
  if (ctx->write && given->n <= SMALL_WRITE) st = ctx->write(ctx->opener, write_batch, &write, err);
  else st = write_batch(&write, NULL, err);
done:
  lode_vectors_free(vectors);
  lode_embedder_close(embedder);
  lode__target_close(ctx, &target);
  for (size_t i = 0; st == LODE_OK && i < given->n; i++)
    if (missing[i]) note_unknown(&u, given->records[i].id);
  mem_free(missing);
  if (st != LODE_OK) return st;
  ctx->nothing = request->mode == LODE_IMPORT_UPDATE && result.written == 0 && result.skipped > 0;
  lode_import_report done = {given->n, result.written, result.skipped};
  return report(ctx, args, &done, &u, err);
}

static lode_status write_stream(lode__op_context *ctx, const lode__args *args, lode_import_request *request,
                                lode_error *err) {
  lode__stream *stream = request->ctx;
  lode_import_report done = {0};
  lode__target target;
  unknown u = {0};
  TRY(open_for_write(ctx, args, &target, err));
  TRY(embedder_for_write(ctx, args, &target, &request->embedder, err));
  request->missing = note_unknown;
  request->missing_ctx = &u;
  request->read = lode__stream_read;
  request->batch = (size_t)lode__arg_of(args, "batch")->number;
  ctx->input = stream;
  lode_status st = lode_import(target.collection, request, ctx->progress, &done, err);
  ctx->input = NULL;
  lode_embedder_close(request->embedder);
  /* A bulk load leaves the indexes behind; a short-lived process brings them along before it goes. The records are safe
   * either way, so a lock or an interruption here is no failure of the load. */
  if (st == LODE_OK && done.written >= BULK) (void)!lode_optimize(target.store, ctx->progress, NULL);
  lode__target_close(ctx, &target);
  if (st != LODE_OK) strbuf_release(&u.list);
  if (stream->errnum && st != LODE_OK && stream->errnum != EINTR)
    return err_errno(err, stream->errnum, "the records cannot be read");
  if (st != LODE_OK && lode__interrupted)
    return err_set(err, LODE_CANCELLED, "interrupted; %llu records are written", (unsigned long long)done.written);
  if (st != LODE_OK && done.written)
    return err_set_at(err, st, err->record, "%s; %llu records of earlier batches are written", err->text,
                         (unsigned long long)done.written);
  if (st != LODE_OK) return st;
  ctx->nothing = request->mode == LODE_IMPORT_UPDATE && done.written == 0 && done.skipped > 0;
  return report(ctx, args, &done, &u, err);
}

static lode_status write_records(lode__op_context *ctx, const lode__args *args, lode_import_request *request,
                                 lode_error *err) {
  request->ctx = lode__arg_of(args, "records")->stream;
  return request->ctx ? write_stream(ctx, args, request, err) : write_request(ctx, args, request, err);
}

lode_status lode__op_add(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode_import_request request = {
      .mode = LODE_IMPORT_ADD,
      .on_existing = lode__arg_of(args, "on_existing")->number ? LODE_KEEP_EXISTING : LODE_FAIL_EXISTING,
  };
  return write_records(ctx, args, &request, err);
}

lode_status lode__op_upsert(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode_import_request request = {.mode = LODE_IMPORT_UPSERT};
  return write_records(ctx, args, &request, err);
}

lode_status lode__op_update(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode_import_request request = {.mode = LODE_IMPORT_UPDATE};
  return write_records(ctx, args, &request, err);
}

lode_status lode__op_import(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  static const lode_import_mode modes[] = {LODE_IMPORT_ADD, LODE_IMPORT_UPSERT, LODE_IMPORT_UPDATE};
  static const lode_format formats[] = {LODE_JSONL, LODE_NPY, LODE_FVECS};
  const lode__arg *format = lode__arg_of(args, "format");
  const char *path = lode__arg_of(args, "file")->text.data;
  lode__stream stream;
  lode_import_request request = {
      .mode = modes[lode__arg_of(args, "mode")->number],
      .on_existing = lode__arg_of(args, "on_existing")->number ? LODE_KEEP_EXISTING : LODE_FAIL_EXISTING,
      .format = format->set ? formats[format->number] : lode__format_of(path),
      .first_id = lode__arg_of(args, "first_id")->number,
      .ctx = &stream,
  };
  lode_status st = lode__stream_open(&stream, path, err);
  if (st == LODE_NOT_FOUND) {
    if (err) err->status = LODE_INVALID;
    return LODE_INVALID;
  }
  if (st != LODE_OK) return st;
  st = write_stream(ctx, args, &request, err);
  lode__stream_close(&stream);
  return st;
}

#define IDS_BYTES (3072u << 10) /* of a file of ids that are deleted at once */
#define IDS_MOST_BYTES ((size_t)1 << 30) /* of a pipe, which is read to its end first */

/* The ids of the argument and those of a file, in one transaction. What may keep us waiting for the next line is read before that
 * begins; a file is read while it is open, so that there may be any number of ids. */
static lode_status delete_listed(lode__target *target, lode_selection *selection, lode__lines *lines, size_t *deleted,
                                 lode_error *err) {
  lode_txn *txn = NULL;
  lode_status st;
  size_t n;
  bool file = lines->stream->size > 0;
  TRY_GOTO(lode__lines_next(lines, file ? IDS_BYTES : IDS_MOST_BYTES, err));
  if (!file && !lines->ended) {
    st = err_set(err, LODE_LIMIT, "more than %zu bytes of ids: put them into a file", IDS_MOST_BYTES);
    goto done;
  }
  TRY_GOTO(lode_begin(target->store, &txn, err));
  if (selection->ids) TRY_GOTO(lode_delete(target->collection, txn, selection, deleted, err));
  for (;;) {
    selection->ids = lines->list;
    selection->n_ids = lines->n;
    if (lines->n) TRY_GOTO(lode_delete(target->collection, txn, selection, &n, err));
    if (lines->n) *deleted += n;
    if (lines->ended) break;
    TRY_GOTO(lode__lines_next(lines, IDS_BYTES, err));
  }
  st = lode_commit(txn, err);
  txn = NULL;
done:
  lode_rollback(txn);
  if (st != LODE_OK) *deleted = 0;
  return st;
}

lode_status lode__op_delete(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode__open_how how = {.write = true, .brief = true};
  lode_selection selection = lode__selection_of(args);
  lode__lines lines = {.stream = lode__arg_of(args, "ids_file")->stream};
  lode__target target;
  size_t deleted = 0;
  if (!lines.stream && !selection.ids && !selection.where.data && !selection.where_document.data)
    return err_set(err, LODE_INVALID, "say what to delete: ids, where or where_document; a where of {} means all records");
  TRY(lode__target_open(ctx, args, &how, NULL, &target, err));
  lode_status st = lines.stream ? delete_listed(&target, &selection, &lines, &deleted, err)
                                : lode_delete(target.collection, NULL, &selection, &deleted, err);
  lode__lines_release(&lines);
  lode__target_close(ctx, &target);
  if (st != LODE_OK) return st;
  ctx->nothing = deleted == 0;
  lode__row_begin(ctx);
  lode__row_text(ctx, "collection", lode__arg_of(args, "collection")->text);
  lode__row_count(ctx, "deleted", deleted);
  return lode__row_summary(ctx, err);
}
