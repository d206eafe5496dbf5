/* SPDX-License-Identifier: Apache-2.0 */
/* op_write.c - writing records: add, upsert, update, import, delete.
 *
 * From a command line, records are a stream of JSON lines and are committed batch by batch. From a request, all
 * records are present and are one commit.
 */
#include "commands/op_removal.h"
#include "models/model_embedder.h"
#include "ops/op_row.h"
#include "table/op_args_db.h"
#include "ops/op_target.h"
#include "ops/vector_file.h"

#include <errno.h>

#define WRITE_BULK_RECORDS 1000
/* Requests with up to this many records may share a commit with others. */
#define WRITE_SMALL_RECORDS 512

/* How many ids that an update did not find are listed. */
#define WRITE_SHOWN_MISSING 100
typedef struct write_missing {
  strbuf list; /* a JSON array without its end */
  size_t n;
} write_missing;

static void write_note_missing(void *ctx, lode_str id) {
  write_missing *u = ctx;
  if (u->n++ >= WRITE_SHOWN_MISSING) return;
  strbuf_addch(&u->list, u->list.len ? ',' : '[');
  json_put_string(&u->list, id);
}

static lode_status write_send_report(op_context *ctx, const op_write_args *args, const lode_import_report *r,
                                     write_missing *u, lode_error *err) {
  op_summary_begin(ctx);
  op_row_text(ctx, "collection", args->collection.text);
  op_row_count(ctx, "read", r->lines);
  op_row_count(ctx, "written", r->written);
  op_row_count(ctx, "skipped", r->skipped);
  strbuf_addch(&u->list, ']');
  if (u->n) op_row_json(ctx, "missing", (lode_str){u->list.data, u->list.len});
  lode_status st = u->list.failed ? err_nomem(err) : op_row_send(ctx, err);
  strbuf_release(&u->list);
  return st;
}

static lode_status write_open_target(op_context *ctx, const op_write_args *args, op_target *target, lode_error *err) {
  bool create = args->create.on;
  op_open_options how = {.write = true, .create = create};
  lode_collection_options options = {.create = create};
  if (create && !lode_metric_parse(args->metric.text, &options.metric))
    return err_set(err, LODE_INVALID, "the metric must be l2, cosine or ip");
  return op_target_open(ctx, args->collection.text, &how, &options, target, err);
}

/* Vectors of a model that only the caller knows. */
static bool write_brings_vectors(const op_arg_records *given) {
  for (size_t i = 0; i < given->n; i++)
    if (given->records[i].vector) return true;
  return false;
}

/* Without --embed: the collection's model, or minilm for one that has no vectors yet, if it is at hand. Else the
 * records stay without vectors, which is said. A collection whose vectors somebody else makes is left alone. */
static lode_status write_embedder_at_hand(op_context *ctx, const op_write_args *args, op_target *target,
                                          lode_embedder **embedder, lode_error *err) {
  model_request request = {0};
  strbuf stamp = {0};
  uint32_t dimension;
  lode_status st = model_read_stamp(target->store, args->collection.text, &stamp, &dimension, err);
  bool strange = st == LODE_OK && !stamp.data[0] && (dimension || write_brings_vectors(&args->records));
  if (st == LODE_OK && !strange)
    st = model_target_embedder(ctx, &request, args->collection.text, target, embedder, err);
  if (strange || (st != LODE_OK && st != LODE_NOMEM && !*embedder)) {
    op_note(ctx, "records without an embedding are found by words alone: %s",
            strange ? "the collection does not say which model makes its vectors"
            : st == LODE_NOT_FOUND
                ? "no model is at hand; after `lode model install minilm`, `lode db embed` makes the "
                  "vectors"
                : err->text);
    err_clear(err);
    st = LODE_OK;
  }
  strbuf_release(&stamp);
  return st;
}

/* With --embed: the collection's embedder, for which the collection is reopened; NULL if nothing is to be embedded. */
static lode_status write_embedder(op_context *ctx, const op_write_args *args, bool wanted, op_target *target,
                                  lode_embedder **embedder, lode_error *err) {
  *embedder = NULL;
  if (!args->embed.on) {
    if (args->model.set) {
      op_target_close(ctx, target);
      return err_set(err, LODE_INVALID, "model goes with embed: say both");
    }
    if (!wanted || args->embed.set) return LODE_OK;
    lode_status held = write_embedder_at_hand(ctx, args, target, embedder, err);
    if (held != LODE_OK) op_target_close(ctx, target);
    return held;
  }
  model_request request = {.model = args->model.text};
  lode_status st = model_target_embedder(ctx, &request, args->collection.text, target, embedder, err);
  if (st != LODE_OK) op_target_close(ctx, target);
  return st;
}

typedef struct write_request_ctx {
  const lode_import_request *request;
  lode_collection *collection;
  const op_arg_records *given;
  bool *missing;
  lode_write_result *result;
} write_request_ctx;

static lode_status write_request_txn(void *ctx, lode_txn *txn, lode_error *err) {
  write_request_ctx *w = ctx;
  const lode_record *records = w->given->records;
  size_t n = w->given->n;
  if (w->request->mode == LODE_IMPORT_UPSERT) return lode_upsert(w->collection, txn, records, n, w->result, err);
  if (w->request->mode == LODE_IMPORT_UPDATE)
    return lode_update(w->collection, txn, records, n, w->missing, w->result, err);
  return lode_add(w->collection, txn, records, n, w->request->on_existing, w->result, err);
}

/* Is there a record with a document and no vector? */
static bool write_has_bare_text(const op_arg_records *given) {
  for (size_t i = 0; i < given->n; i++)
    if (given->records[i].document.data && !given->records[i].vector) return true;
  return false;
}

static lode_status write_request(op_context *ctx, const op_write_args *args, const lode_import_request *request,
                                 lode_error *err) {
  const op_arg_records *given = &args->records;
  lode_write_result result = {0};
  op_target target;
  lode_status st;
  write_missing u = {0};
  bool *missing = mem_calloc(given->n, sizeof *missing);
  if (!missing) return err_nomem(err);
  lode_embedder *embedder = NULL;
  float *vectors = NULL;
  st = write_open_target(ctx, args, &target, err);
  if (st == LODE_OK) st = write_embedder(ctx, args, write_has_bare_text(given), &target, &embedder, err);
  if (st != LODE_OK) {
    mem_free(missing);
    return st;
  }
  if (embedder) st = lode_embed_records(embedder, given->records, given->n, &vectors, err);
  if (st != LODE_OK) goto done;
  write_request_ctx write = {request, target.collection, given, missing, &result};
  if (ctx->write && given->n <= WRITE_SMALL_RECORDS)
    st = ctx->write(ctx->opener, write_request_txn, &write, err);
  else
    st = write_request_txn(&write, NULL, err);
done:
  lode_vectors_free(vectors);
  lode_embedder_close(embedder);
  op_target_close(ctx, &target);
  for (size_t i = 0; st == LODE_OK && i < given->n; i++)
    if (missing[i]) write_note_missing(&u, given->records[i].id);
  mem_free(missing);
  if (st != LODE_OK) return st;
  ctx->nothing = request->mode == LODE_IMPORT_UPDATE && result.written == 0 && result.skipped > 0;
  lode_import_report done = {given->n, result.written, result.skipped};
  return write_send_report(ctx, args, &done, &u, err);
}

/* After a stream: some records without vectors get them; of many it is said how to make them. */
static lode_status write_embed_pending(op_context *ctx, const op_write_args *args, op_target *target, lode_error *err) {
  lode_stats stats = {0};
  lode_embedder *embedder = NULL;
  model_backfill_stats filled;
  TRY(lode_collection_stats(target->collection, &stats, err));
  if (stats.pending == 0) return LODE_OK;
  if (stats.pending > WRITE_SMALL_RECORDS) {
    op_note(ctx, "%llu records without an embedding are found by words alone: `lode db embed` makes their vectors",
            (unsigned long long)stats.pending);
    return LODE_OK;
  }
  lode_status st = write_embedder_at_hand(ctx, args, target, &embedder, err);
  if (st == LODE_OK && embedder) st = model_backfill(ctx, target, embedder, &filled, err);
  lode_embedder_close(embedder);
  return st;
}

static lode_status write_stream(op_context *ctx, const op_write_args *args, lode_import_request *request,
                                lode_error *err) {
  op_stream *stream = request->ctx;
  lode_import_report done = {0};
  op_target target;
  write_missing u = {0};
  TRY(write_open_target(ctx, args, &target, err));
  TRY(write_embedder(ctx, args, false, &target, &request->embedder, err));
  request->missing = write_note_missing;
  request->missing_ctx = &u;
  request->read = op_stream_read;
  request->batch = (size_t)args->batch.n;
  ctx->input = stream;
  lode_status st = lode_import(target.collection, request, ctx->progress, &done, err);
  ctx->input = NULL;
  lode_embedder_close(request->embedder);
  if (st == LODE_OK && done.written && !args->embed.set) st = write_embed_pending(ctx, args, &target, err);
  /* A bulk load leaves index work to do; a short-lived process does it before it exits. The records are safe either
   * way, so a lock or an interruption here does not fail the load. */
  if (st == LODE_OK && done.written >= WRITE_BULK_RECORDS) (void)!lode_optimize(target.store, ctx->progress, NULL);
  op_target_close(ctx, &target);
  if (st != LODE_OK) strbuf_release(&u.list);
  if (stream->errnum && st != LODE_OK && stream->errnum != EINTR)
    return err_errno(err, stream->errnum, "the records cannot be read");
  if (st != LODE_OK && op_interrupted)
    return err_set(err, LODE_CANCELLED, "interrupted; %llu records are written", (unsigned long long)done.written);
  if (st != LODE_OK && done.written)
    return err_set_at(err, st, err->record, "%s; %llu records of earlier batches are written", err->text,
                      (unsigned long long)done.written);
  if (st != LODE_OK) return st;
  ctx->nothing = request->mode == LODE_IMPORT_UPDATE && done.written == 0 && done.skipped > 0;
  return write_send_report(ctx, args, &done, &u, err);
}

static lode_status write_from_args(op_context *ctx, const op_write_args *args, lode_import_request *request,
                                   lode_error *err) {
  request->ctx = args->records.stream;
  return request->ctx ? write_stream(ctx, args, request, err) : write_request(ctx, args, request, err);
}

lode_status op_do_add(op_context *ctx, const op_write_args *args, lode_error *err) {
  lode_import_request request = {
      .mode = LODE_IMPORT_ADD,
      .on_existing = args->on_existing.index ? LODE_KEEP_EXISTING : LODE_FAIL_EXISTING,
  };
  return write_from_args(ctx, args, &request, err);
}

lode_status op_do_upsert(op_context *ctx, const op_write_args *args, lode_error *err) {
  lode_import_request request = {.mode = LODE_IMPORT_UPSERT};
  return write_from_args(ctx, args, &request, err);
}

lode_status op_do_update(op_context *ctx, const op_write_args *args, lode_error *err) {
  lode_import_request request = {.mode = LODE_IMPORT_UPDATE};
  return write_from_args(ctx, args, &request, err);
}

lode_status op_do_import(op_context *ctx, const op_write_args *args, lode_error *err) {
  static const lode_import_mode modes[] = {LODE_IMPORT_ADD, LODE_IMPORT_UPSERT, LODE_IMPORT_UPDATE};
  static const lode_format formats[] = {LODE_JSONL, LODE_NPY, LODE_FVECS};
  const char *path = args->file.path;
  op_stream stream;
  lode_import_request request = {
      .mode = modes[args->mode.index],
      .on_existing = args->on_existing.index ? LODE_KEEP_EXISTING : LODE_FAIL_EXISTING,
      .format = args->format.set ? formats[args->format.index] : op_format_of_path(path),
      .first_id = args->first_id.n,
      .ctx = &stream,
  };
  lode_status st = op_stream_open(&stream, path, err);
  if (st == LODE_NOT_FOUND) {
    if (err) err->status = LODE_INVALID;
    return LODE_INVALID;
  }
  if (st != LODE_OK) return st;
  st = write_stream(ctx, args, &request, err);
  op_stream_close(&stream);
  return st;
}

#define DELETE_IDS_BYTES (3072u << 10)         /* bytes of an id file deleted at a time */
#define DELETE_MAX_IDS_BYTES ((size_t)1 << 30) /* maximum for a pipe, which is read completely first */

/* Deletes the ids of the argument and those of a file, in one transaction. A pipe, which may block, is read before
 * the transaction begins; a file is read during it, so the number of ids is not limited. */
static lode_status delete_listed(op_target *target, lode_selection *selection, op_lines *lines, size_t *deleted,
                                 lode_error *err) {
  lode_txn *txn = NULL;
  lode_status st;
  size_t n;
  bool file = lines->stream->size > 0;
  TRY_GOTO(op_lines_next(lines, file ? DELETE_IDS_BYTES : DELETE_MAX_IDS_BYTES, err));
  if (!file && !lines->ended) {
    st = err_set(err, LODE_LIMIT, "more than %zu bytes of ids: put them into a file", DELETE_MAX_IDS_BYTES);
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
    TRY_GOTO(op_lines_next(lines, DELETE_IDS_BYTES, err));
  }
  st = lode_commit(txn, err);
  txn = NULL;
done:
  lode_rollback(txn);
  if (st != LODE_OK) *deleted = 0;
  return st;
}

lode_status op_do_delete(op_context *ctx, const op_delete_args *args, lode_error *err) {
  op_open_options how = {.write = true, .brief = true};
  lode_selection selection = op_selection_of(&args->ids, &args->where, &args->where_document);
  op_lines lines = {.stream = args->ids_file.stream};
  op_target target;
  size_t deleted = 0;
  if (!lines.stream && !selection.ids && !selection.where.data && !selection.where_document.data)
    return err_set(err, LODE_INVALID,
                   "say what to delete: ids, where or where_document; a where of {} means all records");
  TRY(op_target_open(ctx, args->collection.text, &how, NULL, &target, err));
  op_removal removal = {.name = args->collection.text.data,
                        .selection = &selection,
                        .yes = args->yes.on || lines.stream, /* whoever has made a list has decided */
                        .no_backup = args->no_backup.on,
                        .unasked = true};
  lode_status st;
  TRY_GOTO(op_removal_ask(ctx, target.collection, &removal, err));
  TRY_GOTO(lines.stream ? delete_listed(&target, &selection, &lines, &deleted, err)
                        : lode_delete(target.collection, NULL, &selection, &deleted, err));
  ctx->nothing = deleted == 0;
  op_summary_begin(ctx);
  op_row_text(ctx, "collection", args->collection.text);
  op_row_count(ctx, "deleted", deleted);
  op_removal_put(ctx, &removal);
  TRY_GOTO(op_row_send(ctx, err));
done:
  strbuf_release(&removal.copy);
  op_lines_release(&lines);
  op_target_close(ctx, &target);
  return st;
}
