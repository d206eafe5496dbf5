/* SPDX-License-Identifier: Apache-2.0 */
/* op_export.c - exports for other programs: JSON lines for Chroma's add(), and NumPy arrays. Both are written page by
 * page. */
#include <stdio.h>

#include "os/os.h"
#include "ops/op_row.h"
#include "table/op_args_rescue.h"
#include "ops/op_target.h"

enum { EXPORT_PAGE_ROWS = 1000, EXPORT_NPY_HEADER_BYTES = 128 };

/* Called by export_each_record for each record of the selection, in insertion order. */
typedef lode_status export_record_fn(void *ctx, const lode_row *row, lode_error *err);

typedef struct export_source {
  op_context *ctx;
  const op_export_file_args *args;
  lode_collection *collection;
  unsigned include;
} export_source;

static lode_status export_each_record(const export_source *from, export_record_fn *fn, void *v, lode_error *err) {
  lode_get_request get = {
      .select = op_selection_of(NULL, &from->args->where, NULL), .limit = EXPORT_PAGE_ROWS, .include = from->include};
  uint64_t done = 0, total = 0;
  (void)!lode_count(from->collection, &total, NULL);
  do {
    lode_result *rows = NULL;
    TRY(lode_get(from->collection, &get, &rows, err));
    lode_status st = LODE_OK;
    for (size_t i = 0; i < lode_result_count(rows) && st == LODE_OK; i++, done++)
      st = fn(v, lode_result_at(rows, i), err);
    get.after = lode_result_next(rows);
    lode_result_free(rows);
    TRY(st);
    if (!err_go_on(from->ctx->progress, "exporting", done, total))
      return err_set(err, LODE_CANCELLED, "cancelled; no file was written");
  } while (get.after);
  return LODE_OK;
}

static lode_status export_write(op_out_file *file, const void *data, size_t size, lode_error *err) {
  if (op_out_file_write(file, data, size) == (int64_t)size) return LODE_OK;
  return err_errno(err, file->errnum ? file->errnum : EIO, "the export");
}

static lode_status export_send_summary(op_context *ctx, const op_export_file_args *args, uint64_t written,
                                       lode_error *err) {
  ctx->nothing = written == 0 && args->where.set;
  op_summary_begin(ctx);
  op_row_text(ctx, "file", str_of(args->file.path));
  op_row_count(ctx, "written", written);
  return op_row_send(ctx, err);
}

/* ---- chroma-jsonl ---- */

typedef struct export_lines {
  op_out_file file;
  strbuf line;
  json_doc json;
  uint64_t written;
} export_lines;

static void export_put_text(strbuf *line, const char *key, lode_str text) {
  strbuf_addf(line, ",\"%s\":", key);
  if (text.data)
    json_put_string(line, text);
  else
    strbuf_addstr(line, "null");
}

/* Chroma takes the uri as an argument of its own; here it is part of the metadata. */
static lode_status export_put_metadata(export_lines *l, lode_str metadata, lode_error *err) {
  strbuf *out = &l->line;
  lode_str uri = {0};
  size_t n = 0;
  strbuf_addstr(out, ",\"metadata\":");
  if (metadata.data) {
    TRY(json_parse(&l->json, metadata, NULL, err));
    uint32_t at = 1;
    for (size_t i = 0; i < l->json.nodes[0].u.count; i++) {
      uint32_t key = at, value = l->json.nodes[key].next;
      at = l->json.nodes[value].next;
      if (str_eq(l->json.nodes[key].u.s, STR_LIT("chroma:uri")) && l->json.nodes[value].type == JSON_NODE_STRING) {
        uri = l->json.nodes[value].u.s;
        continue;
      }
      strbuf_addch(out, n++ ? ',' : '{');
      json_put_string(out, l->json.nodes[key].u.s);
      strbuf_addch(out, ':');
      json_put_node(out, &l->json, value);
    }
  }
  strbuf_addstr(out, n ? "}" : "null");
  export_put_text(out, "uri", uri);
  return LODE_OK;
}

static lode_status export_chroma_line(void *v, const lode_row *row, lode_error *err) {
  export_lines *l = v;
  l->line.len = 0;
  strbuf_addstr(&l->line, "{\"id\":");
  json_put_string(&l->line, row->id);
  strbuf_addstr(&l->line, ",\"embedding\":");
  if (row->vector)
    json_put_vector(&l->line, row->vector, row->dimension);
  else
    strbuf_addstr(&l->line, "null");
  export_put_text(&l->line, "document", row->document);
  TRY(export_put_metadata(l, row->metadata, err));
  strbuf_addstr(&l->line, "}\n");
  if (l->line.failed) return err_nomem(err);
  l->written++;
  return export_write(&l->file, l->line.data, l->line.len, err);
}

lode_status op_do_export_chroma(op_context *ctx, const op_export_file_args *args, lode_error *err) {
  op_open_options how = {0};
  op_target target;
  export_lines l = {0};
  TRY(op_target_open(ctx, args->collection.text, &how, NULL, &target, err));
  lode_status st = op_out_file_open(&l.file, args->file.path, err);
  if (st == LODE_OK) {
    export_source from = {ctx, args, target.collection, LODE_ALL};
    st = export_each_record(&from, export_chroma_line, &l, err);
    if (st == LODE_OK) st = op_out_file_commit(&l.file, err);
    op_out_file_close(&l.file);
  }
  op_target_close(ctx, &target);
  strbuf_release(&l.line);
  json_release(&l.json);
  return st == LODE_OK ? export_send_summary(ctx, args, l.written, err) : st;
}

/* ---- npy: vectors; the header holds their number, so a first pass counts them ---- */

typedef struct export_arrays {
  op_out_file vectors, ids;
  strbuf line;
  uint64_t counted, written;
  uint32_t dimension;
} export_arrays;

static lode_status export_count_vector(void *v, const lode_row *row, lode_error *err) {
  export_arrays *a = v;
  (void)err;
  a->counted += row->vector != NULL;
  if (row->vector) a->dimension = row->dimension;
  return LODE_OK;
}

static lode_status export_put_npy_header(export_arrays *a, lode_error *err) {
  char h[EXPORT_NPY_HEADER_BYTES];
  memset(h, ' ', sizeof h);
  memcpy(h, "\x93NUMPY\x01\x00\x76\x00", 10); /* 118 bytes of text follow */
  int n = snprintf(h + 10, sizeof h - 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (%llu, %u), }",
                   (unsigned long long)a->counted, a->dimension);
  h[10 + n] = ' ';
  h[EXPORT_NPY_HEADER_BYTES - 1] = '\n';
  return export_write(&a->vectors, h, sizeof h, err);
}

static lode_status export_put_npy_vector(void *v, const lode_row *row, lode_error *err) {
  export_arrays *a = v;
  if (!row->vector || a->written == a->counted) return LODE_OK; /* added after counting: not exported */
  a->line.len = 0;
  json_put_string(&a->line, row->id);
  strbuf_addch(&a->line, '\n');
  if (a->line.failed) return err_nomem(err);
  a->written++;
  TRY(export_write(&a->vectors, row->vector, row->dimension * sizeof(float), err));
  return export_write(&a->ids, a->line.data, a->line.len, err);
}

static lode_status export_write_arrays(const export_source *from, export_arrays *a, lode_error *err) {
  TRY(export_each_record(from, export_count_vector, a, err));
  TRY(export_put_npy_header(a, err));
  TRY(export_each_record(from, export_put_npy_vector, a, err));
  if (a->written != a->counted)
    return err_set(err, LODE_BUSY, "records were deleted while they were written; run again");
  TRY(op_out_file_commit(&a->ids, err));
  return op_out_file_commit(&a->vectors, err);
}

lode_status op_do_export_npy(op_context *ctx, const op_export_file_args *args, lode_error *err) {
  op_open_options how = {0};
  op_target target;
  strbuf ids = {0};
  export_arrays a = {0};
  const char *path = args->file.path;
  strbuf_addf(&ids, "%s.ids", path);
  strbuf_addch(&ids, 0);
  if (ids.failed) {
    strbuf_release(&ids);
    return err_nomem(err);
  }
  lode_status st = op_target_open(ctx, args->collection.text, &how, NULL, &target, err);
  if (st != LODE_OK) goto done;
  st = op_out_file_open(&a.vectors, path, err);
  if (st == LODE_OK) {
    st = op_out_file_open(&a.ids, ids.data, err);
    if (st == LODE_OK) {
      st = export_write_arrays(&(export_source){ctx, args, target.collection, LODE_VECTOR}, &a, err);
      op_out_file_close(&a.ids);
    }
    op_out_file_close(&a.vectors);
  }
  op_target_close(ctx, &target);
done:
  strbuf_release(&ids);
  strbuf_release(&a.line);
  return st == LODE_OK ? export_send_summary(ctx, args, a.written, err) : st;
}
