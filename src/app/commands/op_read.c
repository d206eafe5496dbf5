/* SPDX-License-Identifier: Apache-2.0 */
/* op_read.c - reading records: get, query, export.
 *
 * Records are read in pages and sent as they arrive, so that memory does not grow with the result: by cursor for
 * filters, by slices of the list for ids. Queries run in groups with small results.
 */
#include "models/model_embedder.h"
#include "ops/op_row.h"
#include "table/op_args_db.h"
#include "ops/op_target.h"

#include <errno.h>

enum { GET_PAGE_ROWS = 256, GET_SLICE_IDS = 1024, OP_QUERY_GROUP_ROWS = 16384, GET_DEFAULT_LIMIT = 100 };

static unsigned get_include_of(const op_arg_set *parts) {
  uint64_t bits = parts->bits;
  return (bits & 1 ? LODE_DOCUMENT : 0) | (bits & 2 ? LODE_METADATA : 0) | (bits & 4 ? LODE_VECTOR : 0);
}

static void get_put_parts(op_context *ctx, const lode_row *row, unsigned include) {
  if (include & LODE_DOCUMENT) op_row_text(ctx, "document", row->document);
  if (include & LODE_METADATA) op_row_json(ctx, "metadata", row->metadata);
  if (include & LODE_VECTOR) op_row_vector(ctx, "embedding", row->vector, row->dimension);
}

/* ---- get ---- */

typedef struct get_state {
  lode_get_request request;
  uint64_t left; /* rows that may still be sent */
  uint64_t skip; /* by ids: rows to skip first */
  uint64_t sent;
} get_state;

static lode_status get_send_rows(op_context *ctx, get_state *get, const lode_result *result, lode_error *err) {
  size_t n = lode_result_count(result);
  for (size_t i = 0; i < n && get->left; i++) {
    const lode_row *row = lode_result_at(result, i);
    if (get->skip) {
      get->skip--;
      continue;
    }
    op_row_begin(ctx);
    op_row_text(ctx, "id", row->id);
    get_put_parts(ctx, row, get->request.include);
    TRY(op_row_send(ctx, err));
    get->left--;
    get->sent++;
  }
  return LODE_OK;
}

static lode_status get_send_by_ids(op_context *ctx, lode_collection *collection, get_state *get, lode_error *err) {
  const lode_str *ids = get->request.select.ids;
  size_t n = get->request.select.n_ids;
  get->skip = get->request.offset;
  get->request.offset = get->request.limit = 0;
  for (size_t at = 0; at < n && get->left; at += GET_SLICE_IDS) {
    lode_result *result = NULL;
    get->request.select.ids = ids + at;
    get->request.select.n_ids = n - at < GET_SLICE_IDS ? n - at : GET_SLICE_IDS;
    lode_status st = lode_get(collection, &get->request, &result, err);
    if (st == LODE_OK) st = get_send_rows(ctx, get, result, err);
    lode_result_free(result);
    if (st != LODE_OK) return st;
  }
  return LODE_OK;
}

static lode_status get_send_pages(op_context *ctx, lode_collection *collection, get_state *get, lode_error *err) {
  do {
    lode_result *result = NULL;
    get->request.limit = get->left < GET_PAGE_ROWS ? (size_t)get->left : GET_PAGE_ROWS;
    lode_status st = lode_get(collection, &get->request, &result, err);
    if (st == LODE_OK) st = get_send_rows(ctx, get, result, err);
    get->request.after = lode_result_next(result);
    get->request.offset = 0;
    lode_result_free(result);
    if (st != LODE_OK) return st;
  } while (get->left && get->request.after);
  return LODE_OK;
}

static lode_status get_send_summary(op_context *ctx, const get_state *get, bool more, lode_error *err) {
  op_summary_begin(ctx);
  op_row_count(ctx, "count", get->sent);
  if (more)
    op_row_count(ctx, "next", get->request.after);
  else
    op_row_null(ctx, "next");
  return op_row_send(ctx, err);
}

/* Admits a read of all records or up to the limit: even a filter may have to read them. */
static lode_status get_admit(op_context *ctx, lode_collection *collection, uint64_t limit, lode_error *err) {
  uint64_t count = limit;
  if (!ctx->defer_read) return LODE_OK;
  if (limit == UINT64_MAX) TRY(lode_count(collection, &count, err));
  return op_admit_read(ctx, count, err);
}

lode_status op_do_get(op_context *ctx, const op_get_args *args, lode_error *err) {
  op_open_options how = {0};
  const op_arg_int *limit = &args->limit;
  op_target target;
  get_state get = {.request = {.select = op_selection_of(&args->ids, &args->where, &args->where_document),
                               .pending_only = args->pending.on,
                               .offset = (size_t)args->offset.n,
                               .after = args->after.n,
                               .include = get_include_of(&args->include)}};
  bool by_ids = get.request.select.ids != NULL;
  if (by_ids && get.request.after)
    return err_set(err, LODE_INVALID, "ids and after do not go together: ids are not paged");
  get.left = limit->set && limit->n ? limit->n : !limit->set && !by_ids ? GET_DEFAULT_LIMIT : UINT64_MAX;
  TRY(op_target_open(ctx, args->collection.text, &how, NULL, &target, err));
  lode_status st = get_admit(ctx, target.collection, by_ids ? get.request.select.n_ids : get.left, err);
  if (st == LODE_OK)
    st =
        by_ids ? get_send_by_ids(ctx, target.collection, &get, err) : get_send_pages(ctx, target.collection, &get, err);
  op_target_close(ctx, &target);
  if (st != LODE_OK) return st;
  ctx->nothing = get.sent == 0;
  bool more = !by_ids && get.request.after != 0;
  if (more && !limit->set)
    op_note(ctx, "these are the first %d, and there may be more: a limit of 0 gives all, after %llu goes on",
            GET_DEFAULT_LIMIT, (unsigned long long)get.request.after);
  return get_send_summary(ctx, &get, more, err);
}

/* ---- query ---- */

/* The query, from the arguments. */
typedef struct query_input {
  lode_mode mode;
  bool embed;    /* embed the text */
  bool optional; /* ... but if that is not possible, search by words only */
} query_input;

static lode_status query_pick_mode(const op_query_args *args, query_input *ask, lode_error *err) {
  static const lode_mode modes[] = {LODE_BY_TEXT, LODE_BY_VECTOR, LODE_HYBRID};
  const op_arg_choice *asked = &args->mode;
  bool one = args->vector.set, many = args->vectors.set;
  bool text = args->text.set, vector = one || many;
  if (one && many) return err_set(err, LODE_INVALID, "vector and vectors do not go together: give one of them");
  if (!vector && !text) return err_set(err, LODE_INVALID, "say what to look for: a vector, vectors, or text");
  ask->mode = asked->set ? modes[asked->index] : text ? LODE_HYBRID : LODE_BY_VECTOR;
  ask->embed = text && !vector && ask->mode != LODE_BY_TEXT;
  ask->optional = ask->embed && !asked->set;
  if (ask->mode == LODE_HYBRID && !text)
    return err_set(err, LODE_INVALID, "mode %.*s needs text", (int)asked->text.len, asked->text.data);
  if (ask->mode == LODE_BY_TEXT && !text) return err_set(err, LODE_INVALID, "mode text needs text");
  if (ask->mode == LODE_BY_TEXT && vector)
    return err_set(err, LODE_INVALID, "mode text takes no vector; hybrid takes both");
  if (ask->mode == LODE_BY_VECTOR && text && vector)
    return err_set(err, LODE_INVALID, "mode vector takes no text beside a vector; hybrid takes both");
  return LODE_OK;
}

/* Embeds the text with the collection's model. *vector stays NULL if only words can be searched. */
static lode_status query_embed_text(op_context *ctx, const op_query_args *args, const op_target *target,
                                    const query_input *ask, float **vector, uint32_t *dimension, lode_error *err) {
  model_request request = {0};
  strbuf stamped = {0};
  lode_embedder *embedder = NULL;
  lode_str text = args->text.text;
  lode_status st;
  TRY_GOTO(model_read_stamp(target->store, args->collection.text, &stamped, dimension, err));
  if (*dimension == 0 && ask->optional) goto done; /* no vectors to compare with */
  if (!stamped.data[0]) {
    if (!ask->optional)
      st = err_set(err, LODE_INVALID,
                   "the collection does not say which model makes its vectors, so none can be made of the text: give a "
                   "vector, use mode text, or make vectors with `lode db embed`");
    goto done;
  }
  st = model_open_embedder(ctx, &request, str_of(stamped.data), str_of(stamped.data), &embedder, err);
  if (st != LODE_OK && ask->optional) { /* not installed, no server, or a name unknown to Lode */
    if (err && st != LODE_NOT_FOUND)
      op_note(ctx, "searching by words alone: %s", err->text);
    else
      op_note(ctx, "searching by words alone: the collection's model %s is not at hand", stamped.data);
    err_clear(err);
    st = LODE_OK;
    goto done;
  }
  TRY_GOTO(st);
  *dimension = lode_embedder_info_of(embedder)->dimension;
  *vector = mem_calloc(*dimension, sizeof **vector);
  if (!*vector) TRY_GOTO(err_nomem(err));
  st = lode_embed(embedder, &text, 1, *vector, err);
done:
  lode_embedder_close(embedder);
  strbuf_release(&stamped);
  return st;
}

static lode_status query_send_hits(op_context *ctx, const lode_query_request *request, const lode_result *result,
                                   size_t first, lode_error *err) {
  for (size_t i = 0; i < lode_result_count(result); i++) {
    const lode_row *row = lode_result_at(result, i);
    op_row_begin(ctx);
    op_row_count(ctx, "query", first + row->query);
    op_row_count(ctx, "rank", row->rank + 1);
    op_row_text(ctx, "id", row->id);
    if (request->mode == LODE_BY_TEXT)
      op_row_null(ctx, "distance");
    else
      op_row_real(ctx, "distance", row->distance);
    if (request->mode != LODE_BY_VECTOR) op_row_real(ctx, "score", row->score);
    get_put_parts(ctx, row, request->include);
    TRY(op_row_send(ctx, err));
  }
  return LODE_OK;
}

static lode_status query_send_explanation(op_context *ctx, const lode_result *result, lode_error *err) {
  op_summary_begin(ctx);
  op_row_count(ctx, "results", lode_result_count(result));
  op_row_json(ctx, "explain", lode_result_explain(result));
  return op_row_send(ctx, err);
}

/* Runs the queries in groups, to bound the rows in memory. Only the first group is explained. */
static lode_status query_run_groups(op_context *ctx, lode_collection *collection, lode_query_request *request,
                                    lode_error *err) {
  const float *vectors = request->vectors;
  size_t n = request->n, group = request->k < OP_QUERY_GROUP_ROWS ? OP_QUERY_GROUP_ROWS / request->k : 1;
  bool found = false;
  for (size_t at = 0; at < n; at += group) {
    lode_result *result = NULL;
    request->n = n - at < group ? n - at : group;
    request->vectors = vectors ? vectors + at * request->dimension : NULL;
    lode_status st = lode_query(collection, request, &result, err);
    if (st == LODE_OK)
      st = request->explain ? query_send_explanation(ctx, result, err) : query_send_hits(ctx, request, result, at, err);
    found = found || lode_result_count(result) > 0 || request->explain;
    lode_result_free(result);
    if (st != LODE_OK) return st;
    if (!request->explain || n <= group) continue;
    op_note(ctx, "this is the explanation of the first %zu queries of %zu", request->n, n);
    break;
  }
  ctx->nothing = !found;
  return LODE_OK;
}

lode_status op_do_query(op_context *ctx, const op_query_args *args, lode_error *err) {
  op_open_options how = {0};
  const op_arg_vectors *vectors = args->vectors.set ? &args->vectors : &args->vector;
  op_target target = {0};
  lode_str *texts = NULL;
  float *made = NULL;
  query_input ask = {0};
  size_t rows;
  lode_query_request request = {
      .vectors = vectors->values,
      .dimension = vectors->dimension,
      .n = vectors->values ? vectors->n : 1,
      .k = (size_t)args->k.n,
      .select = op_selection_of(&args->ids, &args->where, &args->where_document),
      .include = get_include_of(&args->include),
      .exact = args->exact.on,
      .effort = (uint32_t)args->effort.n,
      .target_recall = args->recall.x,
      .vector_weight = args->vector_weight.x,
      .text_weight = args->text_weight.x,
      .progress = ctx->progress,
      .explain = args->explain.on,
  };
  lode_status st;
  TRY_GOTO(query_pick_mode(args, &ask, err));
  if (request.vector_weight < 0 || request.text_weight < 0 || request.vector_weight + request.text_weight <= 0)
    TRY_GOTO(err_set(err, LODE_INVALID, "weights must not be negative, nor both be 0"));
  if (mem_mul_overflow(request.n, request.k, &rows)) rows = SIZE_MAX;
  TRY_GOTO(op_admit_read(ctx, rows, err));
  TRY_GOTO(op_target_open(ctx, args->collection.text, &how, NULL, &target, err));
  request.mode = ask.mode;
  if (ask.embed) {
    TRY_GOTO(query_embed_text(ctx, args, &target, &ask, &made, &request.dimension, err));
    request.vectors = made;
    if (!made) request.mode = LODE_BY_TEXT;
    if (!made) request.dimension = 0;
  }
  if (request.mode != LODE_BY_VECTOR) {
    texts = mem_calloc(request.n, sizeof *texts);
    if (!texts) TRY_GOTO(err_nomem(err));
    for (size_t i = 0; i < request.n; i++) texts[i] = args->text.text;
    request.texts = texts;
  }
  TRY_GOTO(query_run_groups(ctx, target.collection, &request, err));
done:
  op_target_close(ctx, &target);
  mem_free(made);
  mem_free(texts);
  return st;
}

/* ---- export ---- */

typedef struct export_state {
  op_sink *sink;
  lode_error error;
} export_state;

/* Exporting an empty collection is a success; a selection that matches nothing has found nothing. */
static bool export_selects(const lode_selection *s) { return s->ids || s->where.data || s->where_document.data; }

static int64_t export_write_sink(void *ctx, const void *data, size_t size) {
  export_state *e = ctx;
  return e->sink->bytes(e->sink, data, size, &e->error) == LODE_OK ? (int64_t)size : -1;
}

static lode_status export_to_sink(op_context *ctx, lode_collection *collection, const op_export_args *args,
                                  lode_error *err) {
  export_state e = {.sink = ctx->sink};
  lode_selection selection = op_selection_of(&args->ids, &args->where, &args->where_document);
  uint64_t written = 0;
  if (!ctx->sink->bytes) return err_set(err, LODE_UNSUPPORTED, "export needs a file here");
  lode_status st = lode_export(collection, &selection, get_include_of(&args->include), export_write_sink, &e,
                               ctx->progress, &written, err);
  ctx->nothing = st == LODE_OK && written == 0 && export_selects(&selection);
  if (st == LODE_OK || e.error.status == LODE_OK) return st;
  if (err) *err = e.error;
  return e.error.status;
}

static lode_status export_to_file(op_context *ctx, lode_collection *collection, const op_export_args *args,
                                  lode_error *err) {
  const char *path = args->file.path;
  lode_selection selection = op_selection_of(&args->ids, &args->where, &args->where_document);
  uint64_t written = 0;
  op_out_file file;
  TRY(op_out_file_open(&file, path, err));
  lode_status st = lode_export(collection, &selection, get_include_of(&args->include), op_out_file_write, &file,
                               ctx->progress, &written, err);
  if (st != LODE_OK && file.errnum) st = err_errno(err, file.errnum, path);
  if (st == LODE_OK) st = op_out_file_commit(&file, err);
  op_out_file_close(&file);
  if (st != LODE_OK) return st;
  ctx->nothing = written == 0 && export_selects(&selection);
  op_summary_begin(ctx);
  op_row_text(ctx, "file", str_of(path));
  op_row_count(ctx, "written", written);
  return op_row_send(ctx, err);
}

lode_status op_do_export(op_context *ctx, const op_export_args *args, lode_error *err) {
  op_open_options how = {0};
  bool to_sink = strcmp(args->file.path, "-") == 0;
  op_target target;
  TRY(op_target_open(ctx, args->collection.text, &how, NULL, &target, err));
  lode_status st =
      to_sink ? export_to_sink(ctx, target.collection, args, err) : export_to_file(ctx, target.collection, args, err);
  op_target_close(ctx, &target);
  return st;
}
