/* SPDX-License-Identifier: Apache-2.0 */
/* op_target.c - see op_target.h. */
#include "ops/op_target.h"

#include "ops/suggest.h"

/* Fails with a hint: the nearest name, or how to list and create collections. */
static lode_status op_no_collection(op_context *ctx, lode_store *store, lode_str name, lode_error *err) {
  lode_collection_list *list = NULL;
  op_suggest best;
  char quoted[256];
  str_quote(name, quoted, sizeof quoted);
  op_suggest_init(&best, name);
  if (lode_collections(store, &list, NULL) == LODE_OK)
    for (size_t i = 0; i < lode_collection_list_count(list); i++)
      op_suggest_try(&best, lode_collection_list_at(list, i)->name);
  lode_collection_list_free(list);
  if (best.found)
    return err_set(err, LODE_NOT_FOUND,
                   "there is no collection %s in %.200s; did you mean \"%s\"? `lode db create` makes a new one", quoted,
                   ctx->folder, best.text);
  return err_set(err, LODE_NOT_FOUND,
                 "there is no collection %s in %.200s; `lode db collections` lists them, `lode db create` makes one",
                 quoted, ctx->folder);
}

lode_status op_target_open(op_context *ctx, lode_str name, const op_open_options *how,
                           const lode_collection_options *options, op_target *target, lode_error *err) {
  static const lode_collection_options existing;
  memset(target, 0, sizeof *target);
  TRY(ctx->open(ctx->opener, how, &target->store, err));
  lode_status st = how->write ? op_check_may_change(ctx, target->store, how->folder, name, err) : LODE_OK;
  if (st == LODE_OK)
    st = lode_collection_open(target->store, name, options ? options : &existing, &target->collection, err);
  if (st == LODE_NOT_FOUND) st = op_no_collection(ctx, target->store, name, err);
  if (st != LODE_OK) op_target_close(ctx, target);
  return st;
}

void op_target_close(op_context *ctx, op_target *target) {
  if (target->collection) lode_collection_close(target->collection);
  if (target->store) ctx->release(ctx->opener, target->store);
  memset(target, 0, sizeof *target);
}

lode_selection op_selection_of(const op_arg_list *ids, const op_arg_json *where, const op_arg_json *where_document) {
  static const lode_str none;
  return (lode_selection){
      /* an empty list selects nothing; NULL would select everything */
      .ids = ids && ids->set ? (ids->items ? ids->items : &none) : NULL,
      .n_ids = ids ? ids->n : 0,
      .where = where ? where->text : (lode_str){0},
      .where_document = where_document ? where_document->text : (lode_str){0},
  };
}

/* ---- NAME~reembed ---- */

static const lode_str target_reembed_suffix = STR_LIT("~reembed");

bool op_is_reembed(lode_str full, lode_str *name) {
  lode_str suffix = target_reembed_suffix;
  *name = full;
  if (full.len <= suffix.len || memcmp(full.data + full.len - suffix.len, suffix.data, suffix.len) != 0) return false;
  name->len -= suffix.len;
  return true;
}

lode_status op_drop_reembed(lode_store *store, lode_str name, lode_error *err) {
  strbuf aside = {0};
  strbuf_add(&aside, name.data, name.len);
  strbuf_add(&aside, target_reembed_suffix.data, target_reembed_suffix.len);
  lode_status st = aside.failed ? err_nomem(err) : lode_collection_drop(store, (lode_str){aside.data, aside.len}, err);
  strbuf_release(&aside);
  if (st == LODE_NOT_FOUND) err_clear(err);
  return st == LODE_NOT_FOUND ? LODE_OK : st;
}
