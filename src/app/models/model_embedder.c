/* SPDX-License-Identifier: Apache-2.0 */
/* model_embedder.c - see model_embedder.h. */
#include "models/model_embedder.h"

#include "embed/embed.h"
#include "os/os.h"

enum { MODEL_BACKFILL_BATCH = 256 };

static uint32_t model_threads(uint32_t asked) {
  if (asked) return asked;
  unsigned n = os_cpu_count();
  return n > 16 ? 16 : n;
}

/* ---- Which models a request may name ---- */

/* A built-in model, or one in the models folder, which only its owner can fill. */
static bool model_is_installed_kind(lode_str name) {
  lode_str bare = embed_model_bare_name(name);
  if (bare.len == 0 || embed_model_find(bare)) return true; /* an empty name is the default model */
  return bare.len > 5 && memcmp(bare.data, "bert:", 5) == 0 && bare.data[5] != '.' && !memchr(bare.data, '/', bare.len);
}

static bool model_is_own(lode_str name, lode_str own) {
  return own.data && own.len && (str_eq(name, own) || str_eq(name, embed_model_bare_name(own)));
}

static bool model_is_listed(const op_model_policy *policy, lode_str name) {
  for (size_t i = 0; i < policy->n; i++)
    if (str_eq(policy->allowed[i], name) || str_eq(policy->allowed[i], embed_model_bare_name(name))) return true;
  return false;
}

static lode_status model_check_may_name(const op_context *ctx, lode_str name, lode_str own, lode_error *err) {
  char quoted[256];
  if (!ctx->models || model_is_installed_kind(name) || model_is_own(name, own) || model_is_listed(ctx->models, name))
    return LODE_OK;
  return err_set(
      err, LODE_REFUSED,
      "a request may name the models that are installed (minilm, code, bert:NAME), the collection's own, and those "
      "that the server was started with; %s is none of these: --allow-model of lode serve, ui and mcp lets requests "
      "use it",
      str_quote(name, quoted, sizeof quoted));
}

/* A store that was found and adopted must not choose a server or a path. Its user may: on the command line by naming
 * it, for requests by --allow-model. A request that names it is not the user's decision. */
static lode_status model_check_may_follow(const op_context *ctx, bool named, lode_str model, lode_error *err) {
  char quoted[256];
  if (!ctx->adopted || !embed_model_is_external(model)) return LODE_OK;
  if (ctx->models ? model_is_listed(ctx->models, model) : named) return LODE_OK;
  return err_set(err, LODE_REFUSED,
                 "the collection names the model %s, and its store was not made by you: `lode trust` allows it",
                 str_quote(model, quoted, sizeof quoted));
}

lode_status model_policy_of_args(const op_arg_list *given, op_model_policy *policy, lode_error *err) {
  *policy = (op_model_policy){given->items, given->n};
  if (given->n > OP_MAX_ALLOWED_MODELS)
    return err_set(err, LODE_LIMIT, "--allow-model: %zu models are too many; the most is %d", given->n,
                   OP_MAX_ALLOWED_MODELS);
  for (size_t i = 0; i < given->n; i++)
    if (given->items[i].len == 0 || memchr(given->items[i].data, 0, given->items[i].len) ||
        embed_model_check_name(given->items[i], err) != LODE_OK)
      return err_set(
          err, LODE_INVALID,
          "--allow-model: model %zu is no model that lode could open: openai:MODEL, ollama:MODEL, or the path "
          "of a folder with a / in it",
          i + 1);
  return LODE_OK;
}

lode_status model_check_may_stamp(const op_context *ctx, lode_str name, lode_error *err) {
  if (!name.data || embed_model_check_name(name, NULL) != LODE_OK) return LODE_OK;
  return model_check_may_name(ctx, name, (lode_str){0}, err);
}

lode_status model_open_embedder(const op_context *ctx, const model_request *request, lode_str model, lode_str own,
                                lode_embedder **embedder, lode_error *err) {
  *embedder = NULL;
  TRY(model_check_may_name(ctx, model, own, err));
  TRY(model_check_may_follow(ctx, request->model.data != NULL, model, err));
  lode_embedder_options options = request->options;
  options.threads = model_threads(options.threads);
  return lode_embedder_open(model, &options, embedder, err);
}

lode_status model_read_stamp(lode_store *store, lode_str collection, strbuf *out, uint32_t *dimension,
                             lode_error *err) {
  lode_collection_list *list = NULL;
  TRY(lode_collections(store, &list, err));
  *dimension = 0;
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (!str_eq(info->name, collection)) continue;
    *dimension = info->dimension;
    if (info->embedder.data) strbuf_add(out, info->embedder.data, info->embedder.len);
  }
  strbuf_addch(out, 0);
  lode_collection_list_free(list);
  return out->failed ? err_nomem(err) : LODE_OK;
}

lode_status model_target_embedder(const op_context *ctx, const model_request *request, lode_str name, op_target *target,
                                  lode_embedder **embedder, lode_error *err) {
  lode_str asked = request->model;
  strbuf stamped = {0};
  lode_collection *reopened = NULL;
  uint32_t dimension;
  lode_status st;
  *embedder = NULL;
  TRY_GOTO(model_read_stamp(target->store, name, &stamped, &dimension, err));
  if (!asked.data) asked = stamped.data[0] ? str_of(stamped.data) : STR_LIT(LODE_MODEL_MINILM);
  TRY_GOTO(model_open_embedder(ctx, request, asked, str_of(stamped.data), embedder, err));
  const lode_embedder_info *info = lode_embedder_info_of(*embedder);
  if (stamped.data[0] && !str_eq(info->identity, str_of(stamped.data))) {
    st = err_set(err, LODE_MISMATCH,
                 "the collection's vectors are made by %s, and %.*s is asked for: leave --model out, or "
                 "give the collection the other model with `lode db reembed`",
                 stamped.data, (int)info->identity.len, info->identity.data);
    goto done;
  }
  if (!stamped.data[0] && dimension && dimension != info->dimension) {
    st = err_set(err, LODE_MISMATCH,
                 "the collection's vectors have %u dimensions, and those of %.*s have %u: name the model that made "
                 "them with --model",
                 dimension, (int)info->identity.len, info->identity.data, info->dimension);
    goto done;
  }
  lode_collection_options options = {.embedder = info->identity, .embedder_dim = info->dimension};
  TRY_GOTO(lode_collection_open(target->store, name, &options, &reopened, err));
  lode_collection_close(target->collection);
  target->collection = reopened;
done:
  strbuf_release(&stamped);
  if (st != LODE_OK) {
    lode_embedder_close(*embedder);
    *embedder = NULL;
  }
  return st;
}

/* ---- Pending records ---- */

typedef struct model_backfill_batch {
  const lode_result *read; /* the records as they were */
  lode_record records[MODEL_BACKFILL_BATCH];
  lode_str ids[MODEL_BACKFILL_BATCH];
  size_t n;
} model_backfill_batch;

/* Writes the vectors of records that have not changed since they were read; the transaction makes sure of that. */
static lode_status model_backfill_write(op_target *target, model_backfill_batch *b, model_backfill_stats *filled,
                                        lode_error *err) {
  lode_record *records = b->records;
  lode_txn *txn = NULL;
  lode_result *now = NULL;
  lode_write_result written = {0};
  lode_status st;
  size_t kept = 0, at = 0;
  TRY_GOTO(lode_begin(target->store, &txn, err));
  lode_get_request again = {.select = {.ids = b->ids, .n_ids = b->n}, .pending_only = true};
  TRY_GOTO(lode_get(target->collection, &again, &now, err));
  for (size_t i = 0; i < lode_result_count(now); i++) { /* in the order of ids, without deleted ones */
    const lode_row *row = lode_result_at(now, i);
    while (at < b->n && !str_eq(records[at].id, row->id)) at++;
    if (at == b->n) break;
    const lode_row *was = NULL;
    for (size_t j = at; j < lode_result_count(b->read) && !was; j++)
      if (str_eq(lode_result_at(b->read, j)->id, row->id)) was = lode_result_at(b->read, j);
    if (was && was->cursor == row->cursor) {
      records[kept] = records[at];
      records[kept++].document = (lode_str){0}; /* keeps the document */
    }
    at++;
  }
  filled->changed += b->n - kept;
  if (kept) TRY_GOTO(lode_update(target->collection, txn, records, kept, NULL, &written, err));
  filled->embedded += written.written;
  st = lode_commit(txn, err);
  txn = NULL;
done:
  lode_rollback(txn);
  lode_result_free(now);
  return st;
}

static lode_status model_backfill_page(op_target *target, lode_embedder *embedder, const lode_result *page,
                                       model_backfill_stats *filled, lode_error *err) {
  model_backfill_batch b = {.read = page};
  float *vectors = NULL;
  for (size_t i = 0; i < lode_result_count(page); i++) {
    const lode_row *row = lode_result_at(page, i);
    if (!row->document.data) {
      filled->without_document++;
      continue;
    }
    b.ids[b.n] = row->id;
    b.records[b.n++] = (lode_record){.id = row->id, .document = row->document};
  }
  if (b.n == 0) return LODE_OK;
  lode_status st = lode_embed_records(embedder, b.records, b.n, &vectors, err);
  if (st == LODE_OK) st = model_backfill_write(target, &b, filled, err);
  lode_vectors_free(vectors);
  return st;
}

lode_status model_backfill(op_context *ctx, op_target *target, lode_embedder *embedder, model_backfill_stats *filled,
                           lode_error *err) {
  lode_get_request request = {.pending_only = true, .limit = MODEL_BACKFILL_BATCH, .include = LODE_DOCUMENT};
  lode_stats stats = {0};
  *filled = (model_backfill_stats){0};
  TRY(lode_collection_stats(target->collection, &stats, err));
  do {
    lode_result *page = NULL;
    lode_status st = lode_get(target->collection, &request, &page, err);
    if (st == LODE_OK) st = model_backfill_page(target, embedder, page, filled, err);
    request.after = lode_result_next(page);
    lode_result_free(page);
    if (st != LODE_OK) return st;
    if (!err_go_on(ctx->progress, "embedding", filled->embedded, stats.pending))
      return err_set(err, LODE_CANCELLED,
                     "interrupted; %llu records have their vector, and the next run goes on from there",
                     (unsigned long long)filled->embedded);
  } while (request.after);
  return LODE_OK;
}
