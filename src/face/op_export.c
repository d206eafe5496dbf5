/* op_export.c - records for other programs: the lines that Chroma's add() takes, and NumPy arrays. Both are written page by page. */
#include <stdio.h>

#include "base/os.h"
#include "op.h"

enum { PAGE = 1000, NPY_HEADER = 128 };

/* Calls fn for each record of the selection, in the order of insertion. */
typedef lode_status record_fn(void *ctx, const lode_row *row, lode_error *err);

static lode_status each_record(lode__op_context *ctx, const lode__args *args, lode_collection *c, unsigned include, record_fn *fn, void *v,
                               lode_error *err) {
  lode_get_request get = {.select = lode__selection_of(args), .limit = PAGE, .include = include};
  uint64_t done = 0, total = 0;
  (void)!lode_count(c, &total, NULL);
  do {
    lode_result *rows = NULL;
    TRY(lode_get(c, &get, &rows, err));
    lode_status st = LODE_OK;
    for (size_t i = 0; i < lode_result_count(rows) && st == LODE_OK; i++, done++) st = fn(v, lode_result_at(rows, i), err);
    get.after = lode_result_next(rows);
    lode_result_free(rows);
    TRY(st);
    if (ctx->progress.step && !ctx->progress.step(ctx->progress.ctx, "exporting", done, total))
      return err_set(err, LODE_CANCELLED, "cancelled; no file was written");
  } while (get.after);
  return LODE_OK;
}

static lode_status put(lode__out_file *file, const void *data, size_t size, lode_error *err) {
  if (lode__out_file_write(file, data, size) == (int64_t)size) return LODE_OK;
  return err_errno(err, file->errnum ? file->errnum : EIO, "the export");
}

static lode_status summary(lode__op_context *ctx, const lode__args *args, uint64_t written, lode_error *err) {
  ctx->nothing = written == 0 && lode__arg_of(args, "where")->set;
  lode__row_begin(ctx);
  lode__row_text(ctx, "file", lode__arg_of(args, "file")->text);
  lode__row_count(ctx, "written", written);
  return lode__row_summary(ctx, err);
}

/* ---- chroma-jsonl ---- */

typedef struct lines {
  lode__out_file file;
  strbuf line;
  json_doc json;
  uint64_t written;
} lines;

static void put_text(strbuf *line, const char *key, lode_str text) {
  strbuf_addf(line, ",\"%s\":", key);
  if (text.data) json_put_string(line, text);
  else strbuf_addstr(line, "null");
}

/* The uri is an argument of its own for Chroma, and among the metadata here. */
static lode_status put_metadata(lines *l, lode_str metadata, lode_error *err) {
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
  put_text(out, "uri", uri);
  return LODE_OK;
}

static lode_status chroma_line(void *v, const lode_row *row, lode_error *err) {
  lines *l = v;
  l->line.len = 0;
  strbuf_addstr(&l->line, "{\"id\":");
  json_put_string(&l->line, row->id);
  strbuf_addstr(&l->line, ",\"embedding\":");
  if (row->vector) json_put_vector(&l->line, row->vector, row->dimension);
  else strbuf_addstr(&l->line, "null");
  put_text(&l->line, "document", row->document);
  TRY(put_metadata(l, row->metadata, err));
  strbuf_addstr(&l->line, "}\n");
  if (l->line.failed) return err_nomem(err);
  l->written++;
  return put(&l->file, l->line.data, l->line.len, err);
}

lode_status lode__op_export_chroma(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode__open_how how = {0};
  lode__target target;
  lines l = {0};
  TRY(lode__target_open(ctx, args, &how, NULL, &target, err));
  lode_status st = lode__out_file_open(&l.file, lode__arg_of(args, "file")->text.data, err);
  if (st == LODE_OK) {
    st = each_record(ctx, args, target.collection, LODE_ALL, chroma_line, &l, err);
    if (st == LODE_OK) st = lode__out_file_commit(&l.file, err);
    lode__out_file_close(&l.file);
  }
  lode__target_close(ctx, &target);
  strbuf_release(&l.line);
  json_release(&l.json);
  return st == LODE_OK ? summary(ctx, args, l.written, err) : st;
}

/* ---- npy: the vectors; their number stands in the header, so a first pass counts them ---- */

typedef struct arrays {
  lode__out_file vectors, ids;
  strbuf line;
  uint64_t counted, written;
  uint32_t dimension;
} arrays;

static lode_status count_vector(void *v, const lode_row *row, lode_error *err) {
  arrays *a = v;
  (void)err;
  a->counted += row->vector != NULL;
  if (row->vector) a->dimension = row->dimension;
  return LODE_OK;
}

static lode_status put_header(arrays *a, lode_error *err) {
  char h[NPY_HEADER];
  memset(h, ' ', sizeof h);
  memcpy(h, "\x93NUMPY\x01\x00\x76\x00", 10); /* 118 bytes of text follow */
  int n = snprintf(h + 10, sizeof h - 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (%llu, %u), }", (unsigned long long)a->counted, a->dimension);
  h[10 + n] = ' ';
  h[NPY_HEADER - 1] = '\n';
  return put(&a->vectors, h, sizeof h, err);
}

static lode_status put_vector(void *v, const lode_row *row, lode_error *err) {
  arrays *a = v;
  if (!row->vector || a->written == a->counted) return LODE_OK; /* added since they were counted: not part of this export */
  a->line.len = 0;
  json_put_string(&a->line, row->id);
  strbuf_addch(&a->line, '\n');
  if (a->line.failed) return err_nomem(err);
  a->written++;
  TRY(put(&a->vectors, row->vector, row->dimension * sizeof(float), err));
  return put(&a->ids, a->line.data, a->line.len, err);
}

static lode_status write_arrays(lode__op_context *ctx, const lode__args *args, lode_collection *c, arrays *a, lode_error *err) {
  TRY(each_record(ctx, args, c, LODE_VECTOR, count_vector, a, err));
  TRY(put_header(a, err));
  TRY(each_record(ctx, args, c, LODE_VECTOR, put_vector, a, err));
  if (a->written != a->counted) return err_set(err, LODE_BUSY, "records were deleted while they were written; run again");
  TRY(lode__out_file_commit(&a->ids, err));
  return lode__out_file_commit(&a->vectors, err);
}

lode_status lode__op_export_npy(lode__op_context *ctx, const lode__args *args, lode_error *err) {
  lode__open_how how = {0};
  lode__target target;
  strbuf ids = {0};
  arrays a = {0};
  const char *path = lode__arg_of(args, "file")->text.data;
  strbuf_addf(&ids, "%s.ids", path);
  strbuf_addch(&ids, 0);
  if (ids.failed) return err_nomem(err);
  lode_status st = lode__target_open(ctx, args, &how, NULL, &target, err);
  if (st != LODE_OK) goto done;
  st = lode__out_file_open(&a.vectors, path, err);
  if (st == LODE_OK) {
    st = lode__out_file_open(&a.ids, ids.data, err);
    if (st == LODE_OK) {
      st = write_arrays(ctx, args, target.collection, &a, err);
      lode__out_file_close(&a.ids);
    }
    lode__out_file_close(&a.vectors);
  }
  lode__target_close(ctx, &target);
done:
  strbuf_release(&ids);
  strbuf_release(&a.line);
  return st == LODE_OK ? summary(ctx, args, a.written, err) : st;
}
