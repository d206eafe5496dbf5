/* SPDX-License-Identifier: Apache-2.0 */
/* op_kit.c - see op_kit.h. */
#include "support/op_kit.h"

#include "base/json.h"
#include "support/test.h"

op_kit op_kit_answer;
op_kit_options op_kit_how;

static const op_field *kit_field_of(const op_field *fields, lode_str name) {
  for (; fields && fields->name; fields++)
    if (str_eq(str_of(fields->name), name)) return fields;
  return NULL;
}

static bool kit_type_fits(json_node_type type, const op_field *f) {
  if (type == JSON_NODE_NULL) return f->flags & OP_FIELD_NULLABLE;
  switch (f->type) {
    case OP_FIELD_TEXT: return type == JSON_NODE_STRING;
    case OP_FIELD_COUNT:
    case OP_FIELD_NUMBER:
    case OP_FIELD_TIME:
    case OP_FIELD_BYTES: return type == JSON_NODE_INT;
    case OP_FIELD_REAL: return type == JSON_NODE_INT || type == JSON_NODE_DOUBLE;
    case OP_FIELD_BOOL: return type == JSON_NODE_TRUE || type == JSON_NODE_FALSE;
    case OP_FIELD_OBJECT: return type == JSON_NODE_OBJECT;
    case OP_FIELD_TEXTS:
    case OP_FIELD_VECTOR: return type == JSON_NODE_ARRAY;
    case OP_FIELD_SCALAR: return type < JSON_NODE_ARRAY;
  }
  return false;
}

/* Every answer of every test is held against the schema of its operation. */
static void kit_check_fields(const op_def *op, const op_field *fields, lode_str text) {
  json_doc json = {0};
  lode_error err;
  lode_status st = json_parse(&json, text, NULL, &err);
  if (st == LODE_NOMEM) goto done; /* a test of failing allocations */
  OK(st);
  CHECK(fields && json.nodes[0].type == JSON_NODE_OBJECT);
  for (uint32_t i = 1; i < json.nodes[0].next; i = json.nodes[i + 1].next) {
    const op_field *f = kit_field_of(fields, json.nodes[i].u.s);
    CHECKF(f && kit_type_fits(json.nodes[i + 1].type, f), "%s answers %.*s", op->name, (int)text.len, text.data);
  }
  for (const op_field *f = fields; f->name; f++)
    CHECKF((f->flags & OP_FIELD_OPTIONAL) || json_get(&json, 0, str_of(f->name)), "%s lacks %s: %.*s", op->name,
           f->name, (int)text.len, text.data);
done:
  json_release(&json);
}

static lode_status kit_take_row(op_sink *sink, op_row *row, lode_error *e) {
  op_kit *c = (op_kit *)sink;
  size_t start = c->rows.len;
  op_row_put_json(&c->rows, row);
  if (c->rows.failed) return err_nomem(e);
  lode_str json = {c->rows.data + start, c->rows.len - start};
  kit_check_fields(c->op, c->op->row, json);
  strbuf_addch(&c->rows, '\n');
  if (c->n_rows++ == 0 && op_kit_how.on_first_row) op_kit_how.on_first_row();
  return LODE_OK;
}

static lode_status kit_take_summary(op_sink *sink, op_row *summary, lode_error *e) {
  op_kit *c = (op_kit *)sink;
  op_row_put_json(&c->summary, summary);
  if (c->summary.failed) return err_nomem(e);
  kit_check_fields(c->op, c->op->summary, (lode_str){c->summary.data, c->summary.len});
  c->n_summaries++;
  return LODE_OK;
}

static lode_status kit_take_bytes(op_sink *sink, const void *data, size_t size, lode_error *e) {
  (void)e;
  strbuf_add(&((op_kit *)sink)->bytes, data, size);
  return LODE_OK;
}

static lode_status kit_open_here(void *opener, const op_open_options *how, lode_store **store, lode_error *e) {
  lode_open_options options = {.create = how->create, .read_only = !how->write, .page_bytes = how->page_bytes};
  return lode_open(opener, &options, store, e);
}

static void kit_close_here(void *opener, lode_store *store) {
  (void)opener;
  lode_close(store);
}

static void kit_take_note(void *ctx, const char *text) {
  (void)text;
  ((op_kit *)ctx)->n_notes++;
}

const char *op_kit_store(void) {
  static char folder[300];
  if (!folder[0]) snprintf(folder, sizeof folder, "%s/store", test_folder());
  return folder;
}

lode_status op_kit_run(const char *verb, const char *json, lode_error *err) {
  op_kit *a = &op_kit_answer;
  op_args args;
  strbuf_release(&a->rows);
  strbuf_release(&a->summary);
  strbuf_release(&a->bytes);
  *a = (op_kit){.sink = {kit_take_row, kit_take_summary, kit_take_bytes, NULL}, .op = op_find("db", str_of(verb))};
  op_context ctx = {.open = kit_open_here,
                    .release = kit_close_here,
                    .opener = (void *)(uintptr_t)op_kit_store(),
                    .folder = op_kit_store(),
                    .sink = &a->sink,
                    .note = kit_take_note,
                    .note_ctx = a,
                    .progress = {op_kit_how.on_step, NULL},
                    .remote = op_kit_how.remote};
  lode_status st = op_args_init(&args, a->op, err);
  if (st == LODE_OK) {
    st = op_args_from_json(&args, str_of(json), err);
    if (st == LODE_OK) st = op_run(&ctx, &args, err);
    op_args_release(&args);
  }
  a->nothing = ctx.nothing;
  strbuf_addch(&a->rows, '\0');
  strbuf_addch(&a->summary, '\0');
  return st;
}
