/* SPDX-License-Identifier: Apache-2.0 */
/* op_removal.c - see op_removal.h. */
#include "commands/op_removal.h"

#include "ops/op_row.h"
#include "ops/op_stream.h"
#include "os/os.h"

/* STORE.removed-MS.jsonl: never a file that exists, and never inside the store's folder. */
static lode_status removal_name_copy(const op_context *ctx, op_removal *r, lode_error *err) {
  size_t len = strlen(ctx->folder);
  while (len > 1 && ctx->folder[len - 1] == '/') len--;
  if (op_is_address(ctx->folder))
    strbuf_addstr(&r->copy, "lode");
  else
    strbuf_add(&r->copy, ctx->folder, len);
  strbuf_addf(&r->copy, ".removed-%llu.jsonl", (unsigned long long)os_wall_ms());
  strbuf_addch(&r->copy, '\0');
  return r->copy.failed ? err_nomem(err) : LODE_OK;
}

static lode_status removal_confirm(const op_context *ctx, const op_removal *r, uint64_t records, lode_error *err) {
  strbuf what = {0};
  char quoted[256];
  str_quote(str_of(r->name), quoted, sizeof quoted);
  if (r->vectors) strbuf_addstr(&what, "the vectors of ");
  if (!r->selection) strbuf_addf(&what, "the collection %s with ", quoted);
  strbuf_addf(&what, "%llu record%s", (unsigned long long)records, records == 1 ? "" : "s");
  if (r->selection) strbuf_addf(&what, " of %s", quoted);
  strbuf_addch(&what, '\0');
  lode_status st = what.failed ? err_nomem(err) : op_confirm(ctx, r->yes, what.data, err);
  strbuf_release(&what);
  return st;
}

static lode_status removal_count(lode_collection *collection, const op_removal *r, uint64_t *records, lode_error *err) {
  if (!r->selection) return lode_count(collection, records, err);
  if (r->selection->ids) {
    *records = r->selection->n_ids;
    return LODE_OK;
  }
  lode_get_request request = {.select = *r->selection, .limit = SIZE_MAX};
  lode_result *rows = NULL;
  TRY(lode_get(collection, &request, &rows, err));
  *records = lode_result_count(rows);
  lode_result_free(rows);
  return LODE_OK;
}

static lode_status removal_ask_with_copy(op_context *ctx, lode_collection *collection, op_removal *r, lode_error *err) {
  static const lode_selection all;
  uint64_t records = 0;
  op_out_file file;
  TRY(removal_name_copy(ctx, r, err));
  TRY(op_out_file_open(&file, r->copy.data, err));
  lode_status st = lode_export(collection, r->selection ? r->selection : &all, LODE_ALL, op_out_file_write, &file,
                               ctx->progress, &records, err);
  if (st != LODE_OK && file.errnum) st = err_errno(err, file.errnum, r->copy.data);
  if (st == LODE_OK) st = removal_confirm(ctx, r, records, err);
  if (st == LODE_OK && records) st = op_out_file_commit(&file, err);
  op_out_file_close(&file);
  if (st != LODE_OK || !records) strbuf_release(&r->copy);
  return st;
}

lode_status op_removal_ask(op_context *ctx, lode_collection *collection, op_removal *r, lode_error *err) {
  bool asks = op_can_ask(ctx) && !r->yes;
  uint64_t records = 0;
  if (asks && !r->no_backup) return removal_ask_with_copy(ctx, collection, r, err);
  if (ctx->remote || r->yes || (!asks && r->unasked)) return LODE_OK;
  TRY(removal_count(collection, r, &records, err));
  return removal_confirm(ctx, r, records, err);
}

void op_removal_put(op_context *ctx, const op_removal *r) {
  if (r->copy.len) op_row_text(ctx, "backup", str_of(r->copy.data));
}
