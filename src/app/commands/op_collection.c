/* SPDX-License-Identifier: Apache-2.0 */
/* op_collection.c - operations on whole collections: create, collections, rename, drop, count, facets, stats. */
#include "embed/embed.h"
#include "commands/op_removal.h"
#include "models/model_embedder.h"
#include "ops/op_row.h"
#include "table/op_args_db.h"
#include "ops/op_target.h"

static lode_status collection_open_store(op_context *ctx, bool write, lode_store **store, lode_error *err) {
  op_open_options how = {.write = write};
  *store = NULL;
  return ctx->open(ctx->opener, &how, store, err);
}

/* The entry of a collection, or NULL. */
static const lode_collection_info *collection_info_of(const lode_collection_list *list, lode_str name) {
  for (size_t i = 0; i < lode_collection_list_count(list); i++)
    if (str_eq(lode_collection_list_at(list, i)->name, name)) return lode_collection_list_at(list, i);
  return NULL;
}

/* ---- create ---- */

/* An existing collection keeps its metric, whatever was requested. */
static lode_status collection_existing_metric(lode_store *store, lode_str name, lode_metric *metric, lode_error *err) {
  lode_collection_list *list = NULL;
  TRY(lode_collections(store, &list, err));
  const lode_collection_info *info = collection_info_of(list, name);
  if (info) *metric = info->metric;
  lode_collection_list_free(list);
  return info ? LODE_OK : err_set(err, LODE_NOT_FOUND, "the collection was dropped meanwhile: try again");
}

/* A known model is recorded by its identity; another name is recorded as given. */
static void collection_name_embedder(lode_collection_options *options) {
  const embed_model_kind *known = options->embedder.data ? embed_model_find(options->embedder) : NULL;
  if (!known) return;
  options->embedder = str_of(known->identity);
  if (!options->embedder_dim) options->embedder_dim = known->dimension;
}

lode_status op_do_create(op_context *ctx, const op_create_args *args, lode_error *err) {
  op_open_options how = {.write = true, .create = true, .page_bytes = (uint32_t)args->page_bytes.n};
  lode_str name = args->collection.text;
  lode_collection_options options = {
      .create = true,
      .must_create = true,
      .metadata = args->metadata.text,
      .embedder = args->embedder.text,
      .embedder_dim = (uint32_t)args->embedder_dim.n,
      .counters = args->counters.items,
      .n_counters = args->counters.n,
      .shards = (uint32_t)args->shards.n,
      .replicas = (uint32_t)args->replicas.n,
      .write_consistency = (uint32_t)args->write_consistency.n,
  };
  lode_store *store = NULL;
  lode_collection *collection = NULL;
  lode_status st;
  bool created = true;
  if (!lode_metric_parse(args->metric.text, &options.metric))
    return err_set(err, LODE_INVALID, "the metric must be l2, cosine or ip");
  TRY(model_check_may_stamp(ctx, options.embedder, err));
  collection_name_embedder(&options);
  TRY_GOTO(ctx->open(ctx->opener, &how, &store, err));
  TRY_GOTO(op_check_may_change(ctx, store, NULL, name, err));
  st = lode_collection_open(store, name, &options, &collection, err);
  if (st == LODE_EXISTS && args->if_missing.on) {
    created = false;
    options.must_create = false;
    st = lode_collection_open(store, name, &options, &collection, err);
  }
  TRY_GOTO(st);
  lode_metric wanted = options.metric;
  if (!created) TRY_GOTO(collection_existing_metric(store, name, &options.metric, err));
  if (wanted != options.metric && args->metric.set)
    TRY_GOTO(err_set(err, LODE_MISMATCH,
                     "the collection exists with the metric %s, not %s: name another, or drop it first",
                     lode_metric_name(options.metric), lode_metric_name(wanted)));
  op_summary_begin(ctx);
  op_row_text(ctx, "collection", name);
  op_row_text(ctx, "metric", str_of(lode_metric_name(options.metric)));
  op_row_bool(ctx, "created", created);
  TRY_GOTO(op_row_send(ctx, err));
done:
  if (collection) lode_collection_close(collection);
  if (store) ctx->release(ctx->opener, store);
  return st;
}

/* ---- collections ---- */

static void collection_put_dimension(op_context *ctx, uint32_t dimension) {
  if (dimension)
    op_row_count(ctx, "dimension", dimension);
  else
    op_row_null(ctx, "dimension");
}

/* The collection in which other vectors are being made for this one, or NULL. */
static const lode_collection_info *collection_reembed_of(const lode_collection_list *list, lode_str name) {
  lode_str of;
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (op_is_reembed(info->name, &of) && str_eq(of, name)) return info;
  }
  return NULL;
}

/* Beside the collection whose place it is to take, it is a part of that one. */
static bool collection_is_hidden(const lode_collection_list *list, lode_str name) {
  lode_str of;
  return op_is_reembed(name, &of) && collection_info_of(list, of);
}

lode_status op_do_collections(op_context *ctx, const op_collections_args *args, lode_error *err) {
  lode_collection_list *list = NULL;
  lode_store *store;
  lode_status st = collection_open_store(ctx, false, &store, err);
  if (st != LODE_OK) return st;
  TRY_GOTO(lode_collections(store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (!args->all.on && collection_is_hidden(list, info->name)) continue;
    const lode_collection_info *next = collection_reembed_of(list, info->name);
    op_row_begin(ctx);
    op_row_text(ctx, "name", info->name);
    op_row_count(ctx, "records", info->records);
    op_row_count(ctx, "pending", info->pending);
    op_row_text(ctx, "metric", str_of(lode_metric_name(info->metric)));
    collection_put_dimension(ctx, info->dimension);
    op_row_text(ctx, "embedder", info->embedder);
    op_row_json(ctx, "metadata", info->metadata);
    TRY_GOTO(op_row_send(ctx, err));
    if (next)
      op_note(ctx, "%.*s gets the model %.*s (db reembed): %llu of %llu records have its vectors", (int)info->name.len,
              info->name.data, (int)next->embedder.len, next->embedder.data,
              (unsigned long long)(next->records - next->pending), (unsigned long long)info->records);
  }
done:
  lode_collection_list_free(list);
  ctx->release(ctx->opener, store);
  return st;
}

/* ---- rename, drop ---- */

lode_status op_do_rename(op_context *ctx, const op_rename_args *args, lode_error *err) {
  op_open_options how = {.write = true};
  lode_str name = args->collection.text, new_name = args->new_name.text;
  op_target target;
  TRY(op_target_open(ctx, args->collection.text, &how, NULL, &target, err));
  lode_status st = op_check_may_change(ctx, target.store, NULL, new_name, err);
  if (st == LODE_OK) st = lode_collection_rename(target.store, name, new_name, err);
  if (st == LODE_OK) {
    op_summary_begin(ctx);
    op_row_text(ctx, "collection", name);
    op_row_text(ctx, "new_name", new_name);
    st = op_row_send(ctx, err);
  }
  op_target_close(ctx, &target);
  return st;
}

lode_status op_do_drop(op_context *ctx, const op_drop_args *args, lode_error *err) {
  op_open_options how = {.write = true};
  lode_str name = args->collection.text;
  op_removal removal = {.name = name.data, .yes = args->yes.on, .no_backup = args->no_backup.on};
  op_target target;
  uint64_t count = 0;
  TRY(op_target_open(ctx, args->collection.text, &how, NULL, &target, err));
  lode_status st;
  TRY_GOTO(op_removal_ask(ctx, target.collection, &removal, err));
  TRY_GOTO(lode_count(target.collection, &count, err));
  TRY_GOTO(lode_collection_drop(target.store, name, err));
  TRY_GOTO(op_drop_reembed(target.store, name, err));
  op_summary_begin(ctx);
  op_row_text(ctx, "collection", name);
  op_row_count(ctx, "dropped", count);
  op_removal_put(ctx, &removal);
  TRY_GOTO(op_row_send(ctx, err));
done:
  strbuf_release(&removal.copy);
  op_target_close(ctx, &target);
  return st;
}

/* ---- count, facets ---- */

lode_status op_do_count(op_context *ctx, const op_count_args *args, lode_error *err) {
  op_open_options how = {0};
  op_target target;
  uint64_t count = 0;
  TRY(op_target_open(ctx, args->collection.text, &how, NULL, &target, err));
  lode_status st = lode_count(target.collection, &count, err);
  if (st == LODE_OK) {
    op_summary_begin(ctx);
    op_row_text(ctx, "collection", args->collection.text);
    op_row_count(ctx, "count", count);
    st = op_row_send(ctx, err);
  }
  op_target_close(ctx, &target);
  return st;
}

lode_status op_do_facets(op_context *ctx, const op_facets_args *args, lode_error *err) {
  op_open_options how = {0};
  lode_str key = args->key.text, where = args->where.text;
  size_t limit = (size_t)args->limit.n;
  lode_facet_list *list = NULL;
  op_target target;
  TRY(op_target_open(ctx, args->collection.text, &how, NULL, &target, err));
  /* a declared counter needs no records; other keys are counted */
  lode_status st = where.data ? LODE_NOT_FOUND : lode_counters(target.collection, key, &list, err);
  if (st == LODE_NOT_FOUND || st == LODE_INVALID || st == LODE_UNSUPPORTED)
    st = lode_facets(target.collection, key, where, limit, &list, err);
  TRY_GOTO(st);
  size_t n = lode_facet_list_count(list);
  if (limit && n > limit) n = limit;
  for (size_t i = 0; i < n; i++) {
    const lode_facet *facet = lode_facet_list_at(list, i);
    op_row_begin(ctx);
    op_row_json(ctx, "value", facet->value);
    op_row_count(ctx, "count", facet->count);
    TRY_GOTO(op_row_send(ctx, err));
  }
  ctx->nothing = n == 0;
done:
  lode_facet_list_free(list);
  op_target_close(ctx, &target);
  return st;
}

/* ---- stats ---- */

static void collection_put_stats(op_context *ctx, const lode_stats *stats) {
  op_row_count(ctx, "records", stats->records);
  op_row_count(ctx, "pending", stats->pending);
  op_row_count(ctx, "cursor", stats->cursor);
  op_row_count(ctx, "untexted", stats->untexted);
  op_row_count(ctx, "unindexed", stats->unindexed);
  op_row_count(ctx, "segments", stats->segments);
  op_row_count(ctx, "segment_bytes", stats->segment_bytes);
  op_row_count(ctx, "indexed", stats->indexed);
  op_row_count(ctx, "tail", stats->tail);
  op_row_count(ctx, "dead", stats->dead);
  op_row_count(ctx, "building", stats->building);
  op_row_count(ctx, "build_done", stats->build_done);
  op_row_count(ctx, "build_total", stats->build_total);
  op_row_count(ctx, "damaged_segments", stats->damaged_segments);
  op_row_count(ctx, "unerased", stats->unerased);
}

static lode_status collection_store_stats(op_context *ctx, lode_error *err) {
  lode_stats stats = {0};
  lode_store *store;
  TRY(collection_open_store(ctx, false, &store, err));
  lode_status st = lode_store_stats(store, &stats, err);
  ctx->release(ctx->opener, store);
  if (st != LODE_OK) return st;
  op_summary_begin(ctx);
  op_row_text(ctx, "store", str_of(ctx->folder));
  op_row_count(ctx, "collections", stats.collections);
  collection_put_stats(ctx, &stats);
  op_row_count(ctx, "bytes", stats.bytes);
  op_row_count(ctx, "free_bytes", stats.free_bytes);
  op_row_count(ctx, "files", stats.files);
  op_row_count(ctx, "page_bytes", stats.page_bytes);
  op_row_count(ctx, "format", stats.format);
  op_row_count(ctx, "commit_number", stats.commit_number);
  op_row_count(ctx, "committed_ms", stats.committed_ms);
  op_row_count(ctx, "damaged_pages", stats.damaged_pages);
  op_row_count(ctx, "quarantined", stats.quarantined);
  return op_row_send(ctx, err);
}

static void collection_put_info(op_context *ctx, const lode_collection_info *info) {
  op_row_text(ctx, "metric", str_of(lode_metric_name(info->metric)));
  collection_put_dimension(ctx, info->dimension);
  op_row_text(ctx, "embedder", info->embedder);
  op_row_json(ctx, "metadata", info->metadata);
}

#define COLLECTION_SHOWN_VALUES 20

/* {"key": {value: count, ...}, ...} for the declared counters, the largest counts of each; nothing if there are
 * none. */
static lode_status collection_put_counters(op_context *ctx, lode_collection *collection, lode_error *err) {
  lode_facet_list *keys = NULL, *values = NULL;
  json_doc parsed = {0};
  strbuf out = {0};
  lode_status st;
  TRY_GOTO(lode_counters(collection, (lode_str){NULL, 0}, &keys, err));
  for (size_t k = 0; k < lode_facet_list_count(keys); k++) {
    lode_str key = lode_facet_list_at(keys, k)->value; /* a JSON string */
    TRY_GOTO(json_parse(&parsed, key, NULL, err));
    TRY_GOTO(lode_counters(collection, parsed.nodes[0].u.s, &values, err));
    strbuf_addch(&out, k ? ',' : '{');
    strbuf_add(&out, key.data, key.len);
    strbuf_addstr(&out, ":{");
    for (size_t v = 0; v < lode_facet_list_count(values) && v < COLLECTION_SHOWN_VALUES; v++) {
      const lode_facet *f = lode_facet_list_at(values, v);
      if (v) strbuf_addch(&out, ',');
      if (f->value.data[0] == '"')
        strbuf_add(&out, f->value.data, f->value.len);
      else
        json_put_string(&out, f->value); /* keys of JSON objects are strings */
      strbuf_addf(&out, ":%llu", (unsigned long long)f->count);
    }
    strbuf_addch(&out, '}');
    lode_facet_list_free(values);
    values = NULL;
  }
  if (out.len) strbuf_addch(&out, '}');
  if (out.failed)
    st = err_nomem(err);
  else if (out.len)
    op_row_json(ctx, "counters", op_row_copy(ctx, (lode_str){out.data, out.len}));
done:
  lode_facet_list_free(keys);
  lode_facet_list_free(values);
  json_release(&parsed);
  strbuf_release(&out);
  return st;
}

lode_status op_do_stats(op_context *ctx, const op_stats_args *args, lode_error *err) {
  op_open_options how = {0};
  lode_collection_list *list = NULL;
  lode_stats stats = {0};
  op_target target;
  if (!args->collection.set) return collection_store_stats(ctx, err);
  TRY(op_target_open(ctx, args->collection.text, &how, NULL, &target, err));
  lode_status st;
  TRY_GOTO(lode_collection_stats(target.collection, &stats, err));
  TRY_GOTO(lode_collections(target.store, &list, err));
  op_summary_begin(ctx);
  op_row_text(ctx, "store", str_of(ctx->folder));
  op_row_text(ctx, "collection", args->collection.text);
  const lode_collection_info *info = collection_info_of(list, args->collection.text);
  if (info) collection_put_info(ctx, info);
  collection_put_stats(ctx, &stats);
  TRY_GOTO(collection_put_counters(ctx, target.collection, err));
  TRY_GOTO(op_row_send(ctx, err));
done:
  lode_collection_list_free(list);
  op_target_close(ctx, &target);
  return st;
}
