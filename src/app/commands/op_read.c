/* SPDX-License-Identifier: Apache-2.0 */
/* op_read.c - reading records: get, query, export.
 *
 * Records are read in pages: by cursor for filters, by slices of the list for ids, queries in groups. The pages of an
 * answer are of one moment: they are kept until the answer is whole, and read again if a commit came between them. An
 * answer that is too large to be kept is sent as it is read; a note says so if it is of more than one moment.
 */
#include "models/model_embedder.h"
#include "ops/op_row.h"
#include "table/op_args_db.h"
#include "ops/op_target.h"
#include "rescue/chroma_layout.h"

enum {
  GET_DEFAULT_LIMIT = 100,
  GET_PAGE_ROWS = 256,        /* in the first attempt; four times as many in each that follows */
  QUERY_GROUP_ROWS = 16384,   /* results of one call */
  QUERY_GROUP_MAX = 64,       /* queries of one call: the engine answers this many at one moment */
  READ_MAX_ATTEMPTS = 4,      /* to read all pages between two commits */
  READ_KEEP_BYTES = 32 << 20, /* of rows that are not sent before the last page is read */
};

static unsigned get_include_of(const op_arg_set *parts) {
  uint64_t bits = parts->bits;
  return (bits & 1 ? LODE_DOCUMENT : 0) | (bits & 2 ? LODE_METADATA : 0) | (bits & 4 ? LODE_VECTOR : 0);
}

static void get_put_parts(op_context *ctx, const lode_row *row, unsigned include) {
  if (include & LODE_DOCUMENT) op_row_text(ctx, "document", row->document);
  if (include & LODE_METADATA) op_row_json(ctx, "metadata", row->metadata);
  if (include & LODE_VECTOR) op_row_vector(ctx, "embedding", row->vector, row->dimension);
}

/* ---- Pages of one moment ---- */

typedef struct read_pages read_pages;
struct read_pages {
  lode_status (*send)(read_pages *pages, const lode_result *page, lode_error *err);
  void *state; /* of `send` */
  op_context *ctx;
  unsigned attempt; /* from 0 */
  uint64_t moment;  /* of the first page; 0: none yet, or the store has no moments */
  bool again;       /* a page was of another moment, and nothing was sent yet: read all of them again */
  bool sending;     /* pages are sent as they come */
  bool mixed;       /* ... and one was of another moment */
  lode_result **kept;
  size_t n, cap, bytes;
};

static void pages_drop(read_pages *p) {
  while (p->n) lode_result_free(p->kept[--p->n]);
  p->bytes = 0;
}

static size_t pages_bytes_of(const lode_result *page) {
  size_t n = lode_result_count(page), bytes = n * sizeof(lode_row);
  for (size_t i = 0; i < n; i++) {
    const lode_row *row = lode_result_at(page, i);
    bytes += row->id.len + row->document.len + row->metadata.len + (row->vector ? row->dimension * sizeof(float) : 0);
  }
  return bytes;
}

static lode_status pages_send_kept(read_pages *p, lode_error *err) {
  lode_status st = LODE_OK;
  for (size_t i = 0; i < p->n && st == LODE_OK; i++) st = p->send(p, p->kept[i], err);
  pages_drop(p);
  return st;
}

/* Takes the next page, and owns it. */
static lode_status pages_take(read_pages *p, lode_result *page, lode_error *err) {
  uint64_t moment = lode_result_moment(page);
  if (!p->moment) p->moment = moment;
  bool other = moment != p->moment;
  p->again = other && !p->sending;
  p->mixed = p->mixed || (other && p->sending);
  if (p->again || !mem_grow(&p->kept, &p->cap, p->n + 1, sizeof *p->kept)) {
    lode_result_free(page);
    return p->again ? LODE_OK : err_nomem(err);
  }
  p->kept[p->n++] = page;
  p->bytes += pages_bytes_of(page);
  p->sending = p->sending || p->bytes > READ_KEEP_BYTES;
  return p->sending ? pages_send_kept(p, err) : LODE_OK;
}

/* Calls `read` until all of its pages are of one moment. `read` stops when pages->again is set. The pages of the last
 * attempt are sent as they come: others commit all the time. */
static lode_status pages_read(read_pages *p, lode_status (*read)(read_pages *p, lode_error *err), lode_error *err) {
  lode_status st = LODE_OK;
  do {
    p->moment = 0;
    p->again = false;
    p->sending = p->attempt + 1 == READ_MAX_ATTEMPTS;
    pages_drop(p);
    st = read(p, err);
    p->attempt++;
  } while (st == LODE_OK && p->again);
  if (st == LODE_OK) st = pages_send_kept(p, err);
  pages_drop(p);
  mem_free(p->kept);
  if (st == LODE_OK && p->mixed)
    op_note(p->ctx, "records were changed while they were read: the results are of more than one moment");
  return st;
}

/* ---- get ---- */

typedef struct get_state {
  op_context *ctx;
  lode_collection *collection;
  lode_get_request request; /* of all pages */
  bool by_ids;
  uint64_t skip; /* by ids: rows to skip first */
  uint64_t left; /* rows that may still be sent */
  uint64_t sent;
  uint64_t next; /* where the next page begins; 0: nowhere */
} get_state;

static lode_status get_send_page(read_pages *pages, const lode_result *page, lode_error *err) {
  get_state *get = pages->state;
  op_context *ctx = get->ctx;
  size_t n = lode_result_count(page);
  for (size_t i = 0; i < n && get->left; i++) {
    const lode_row *row = lode_result_at(page, i);
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

static size_t get_page_rows(const read_pages *pages) { return (size_t)GET_PAGE_ROWS << (2 * pages->attempt); }

static lode_status get_read_by_ids(read_pages *pages, lode_error *err) {
  const get_state *get = pages->state;
  lode_get_request request = get->request;
  size_t n = request.select.n_ids, slice = get_page_rows(pages);
  uint64_t wanted = get->left < UINT64_MAX - get->skip ? get->skip + get->left : UINT64_MAX, found = 0;
  for (size_t at = 0; at < n && found < wanted && !pages->again; at += slice) {
    lode_result *page = NULL;
    request.select.ids = get->request.select.ids + at;
    request.select.n_ids = n - at < slice ? n - at : slice;
    TRY(lode_get(get->collection, &request, &page, err));
    found += lode_result_count(page);
    TRY(pages_take(pages, page, err));
  }
  return LODE_OK;
}

static lode_status get_read_in_order(read_pages *pages, lode_error *err) {
  get_state *get = pages->state;
  lode_get_request request = get->request;
  uint64_t left = get->left;
  do {
    lode_result *page = NULL;
    size_t rows = get_page_rows(pages);
    request.limit = left < rows ? (size_t)left : rows;
    TRY(lode_get(get->collection, &request, &page, err));
    left -= lode_result_count(page);
    get->next = request.after = lode_result_next(page);
    request.offset = 0;
    TRY(pages_take(pages, page, err));
  } while (left && request.after && !pages->again);
  return LODE_OK;
}

static lode_status get_send_summary(const get_state *get, lode_error *err) {
  op_context *ctx = get->ctx;
  op_summary_begin(ctx);
  op_row_count(ctx, "count", get->sent);
  if (get->next)
    op_row_count(ctx, "next", get->next);
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
  get_state get = {.ctx = ctx,
                   .request = {.select = op_selection_of(&args->ids, &args->where, &args->where_document),
                               .pending_only = args->pending.on,
                               .offset = (size_t)args->offset.n,
                               .after = args->after.n,
                               .include = get_include_of(&args->include),
                               .progress = ctx->progress}};
  read_pages pages = {.send = get_send_page, .state = &get, .ctx = ctx};
  get.by_ids = get.request.select.ids != NULL;
  if (get.by_ids && get.request.after)
    return err_set(err, LODE_INVALID, "ids and after cannot be combined: ids are not paged");
  if (get.by_ids) {
    get.skip = get.request.offset;
    get.request.offset = 0;
  }
  get.left = limit->set && limit->n ? limit->n : !limit->set && !get.by_ids ? GET_DEFAULT_LIMIT : UINT64_MAX;
  TRY(op_target_open(ctx, args->collection.text, &how, NULL, &target, err));
  get.collection = target.collection;
  lode_status st = get_admit(ctx, target.collection, get.by_ids ? get.request.select.n_ids : get.left, err);
  if (st == LODE_OK) st = pages_read(&pages, get.by_ids ? get_read_by_ids : get_read_in_order, err);
  op_target_close(ctx, &target);
  if (st != LODE_OK) return st;
  ctx->nothing = get.sent == 0;
  if (get.next && !limit->set)
    op_note(ctx, "these are the first %d, and there may be more: a limit of 0 gives all, after %llu goes on",
            GET_DEFAULT_LIMIT, (unsigned long long)get.next);
  return get_send_summary(&get, err);
}

/* ---- query ---- */

enum { CHROMA_DEFAULT_DIMENSION = 384 }; /* of the vectors of Chroma's default embedding function */

/* The query, from the arguments. */
typedef struct query_input {
  lode_mode mode;
  bool embed;    /* embed the text */
  bool optional; /* ... but if that is not possible, search by words only */
  float *vector; /* of the text, or NULL */
  uint32_t dimension;
} query_input;

static lode_status query_pick_mode(const op_query_args *args, query_input *ask, lode_error *err) {
  static const lode_mode modes[] = {LODE_BY_TEXT, LODE_BY_VECTOR, LODE_HYBRID};
  const op_arg_choice *asked = &args->mode;
  bool one = args->vector.set, many = args->vectors.set;
  bool text = args->text.set, vector = one || many;
  if (one && many) return err_set(err, LODE_INVALID, "vector and vectors cannot be combined: give one of them");
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

/* Did Chroma's default function make the vectors? That is MiniLM, whose vectors Lode's are alike to; a rescued or
 * served collection says so in its metadata and has no stamp. */
static bool query_is_chromas_default(const lode_collection_info *info) {
  json_doc json = {0};
  bool is = false;
  if (info->dimension != CHROMA_DEFAULT_DIMENSION || !info->metadata.data) return false;
  if (json_parse(&json, info->metadata, NULL, NULL) == LODE_OK) {
    static const char *const path[] = {RESCUE_LAYOUT_KEY, "configuration", "embedding_function", "name"};
    uint32_t node = json_get(&json, 0, str_of(path[0]));
    for (size_t i = 1; node && i < sizeof path / sizeof *path; i++)
      node = json.nodes[node].type == JSON_NODE_OBJECT ? json_get(&json, node, str_of(path[i])) : 0;
    is = node && json.nodes[node].type == JSON_NODE_STRING &&
         (str_eq(json.nodes[node].u.s, STR_LIT("default")) ||
          str_eq(json.nodes[node].u.s, STR_LIT("onnx_mini_lm_l6_v2")));
  }
  json_release(&json);
  return is;
}

/* The model that makes vectors like the collection's: its stamp, or what Chroma's configuration says. */
static lode_status query_read_model(const op_target *target, lode_str name, strbuf *model, uint32_t *dimension,
                                    lode_error *err) {
  lode_collection_list *list = NULL;
  TRY(model_read_stamp(target->store, name, model, dimension, err));
  if (model->data[0]) return LODE_OK;
  TRY(lode_collections(target->store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (!str_eq(info->name, name) || !query_is_chromas_default(info)) continue;
    model->len = 0;
    strbuf_add(model, LODE_MODEL_MINILM, sizeof LODE_MODEL_MINILM);
  }
  lode_collection_list_free(list);
  return model->failed ? err_nomem(err) : LODE_OK;
}

/* Embeds the text with the collection's model. The vector stays NULL if only words can be searched. */
static lode_status query_embed_text(op_context *ctx, const op_query_args *args, const op_target *target,
                                    query_input *ask, lode_error *err) {
  model_request request = {0};
  strbuf stamped = {0};
  lode_embedder *embedder = NULL;
  lode_str text = args->text.text;
  lode_status st;
  TRY_GOTO(query_read_model(target, args->collection.text, &stamped, &ask->dimension, err));
  if (ask->dimension == 0 && ask->optional) {
    op_note(ctx, "searching by words alone: the records have no vectors; `lode db embed` makes them");
    goto done;
  }
  if (!stamped.data[0]) {
    if (ask->optional)
      op_note(ctx, "searching by words alone: the collection does not say which model makes its vectors; give a vector "
                   "to search by meaning");
    else
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
  ask->dimension = lode_embedder_info_of(embedder)->dimension;
  ask->vector = mem_calloc(ask->dimension, sizeof *ask->vector);
  if (!ask->vector) TRY_GOTO(err_nomem(err));
  st = lode_embed(embedder, &text, 1, ask->vector, err);
done:
  lode_embedder_close(embedder);
  strbuf_release(&stamped);
  return st;
}

typedef struct query_state {
  op_context *ctx;
  lode_collection *collection;
  lode_query_request *request; /* of all queries */
  size_t group;                /* queries of a page */
  size_t answered;             /* queries whose results were sent */
  bool found;
} query_state;

static lode_status query_send_hits(read_pages *pages, const lode_result *page, lode_error *err) {
  query_state *q = pages->state;
  op_context *ctx = q->ctx;
  for (size_t i = 0; i < lode_result_count(page); i++) {
    const lode_row *row = lode_result_at(page, i);
    op_row_begin(ctx);
    op_row_count(ctx, "query", q->answered + row->query);
    op_row_count(ctx, "rank", row->rank + 1);
    op_row_text(ctx, "id", row->id);
    if (q->request->mode == LODE_BY_TEXT)
      op_row_null(ctx, "distance");
    else
      op_row_real(ctx, "distance", row->distance);
    if (q->request->mode != LODE_BY_VECTOR) op_row_real(ctx, "score", row->score);
    get_put_parts(ctx, row, q->request->include);
    TRY(op_row_send(ctx, err));
  }
  q->found = q->found || lode_result_count(page) > 0;
  q->answered += q->group;
  return LODE_OK;
}

static lode_status query_send_explanation(read_pages *pages, const lode_result *page, lode_error *err) {
  query_state *q = pages->state;
  q->found = true;
  op_summary_begin(q->ctx);
  op_row_count(q->ctx, "results", lode_result_count(page));
  op_row_json(q->ctx, "explain", lode_result_explain(page));
  return op_row_send(q->ctx, err);
}

/* Only the first group is explained. */
static lode_status query_read_groups(read_pages *pages, lode_error *err) {
  const query_state *q = pages->state;
  lode_query_request request = *q->request;
  size_t n = request.explain && request.n > q->group ? q->group : request.n;
  for (size_t at = 0; at < n && !pages->again; at += q->group) {
    lode_result *page = NULL;
    request.n = n - at < q->group ? n - at : q->group;
    request.vectors = q->request->vectors ? q->request->vectors + at * request.dimension : NULL;
    TRY(lode_query(q->collection, &request, &page, err));
    TRY(pages_take(pages, page, err));
  }
  return LODE_OK;
}

static lode_status query_run(op_context *ctx, lode_collection *collection, lode_query_request *request,
                             lode_error *err) {
  size_t group = request->k < QUERY_GROUP_ROWS ? QUERY_GROUP_ROWS / (request->k + !request->k) : 1;
  query_state q = {.ctx = ctx,
                   .collection = collection,
                   .request = request,
                   .group = group < QUERY_GROUP_MAX ? group : QUERY_GROUP_MAX};
  read_pages pages = {.send = request->explain ? query_send_explanation : query_send_hits, .state = &q, .ctx = ctx};
  TRY(pages_read(&pages, query_read_groups, err));
  if (request->explain && request->n > q.group)
    op_note(ctx, "this is the explanation of the first %zu queries of %zu", q.group, request->n);
  ctx->nothing = !q.found;
  return LODE_OK;
}

lode_status op_do_query(op_context *ctx, const op_query_args *args, lode_error *err) {
  op_open_options how = {0};
  const op_arg_vectors *vectors = args->vectors.set ? &args->vectors : &args->vector;
  op_target target = {0};
  lode_str *texts = NULL;
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
    TRY_GOTO(query_embed_text(ctx, args, &target, &ask, err));
    request.vectors = ask.vector;
    request.dimension = ask.vector ? ask.dimension : 0;
    if (!ask.vector) request.mode = LODE_BY_TEXT;
  }
  if (request.mode != LODE_BY_VECTOR) {
    texts = mem_calloc(request.n, sizeof *texts);
    if (!texts) TRY_GOTO(err_nomem(err));
    for (size_t i = 0; i < request.n; i++) texts[i] = args->text.text;
    request.texts = texts;
  }
  TRY_GOTO(query_run(ctx, target.collection, &request, err));
done:
  op_target_close(ctx, &target);
  mem_free(ask.vector);
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
