/* SPDX-License-Identifier: Apache-2.0 */
/* op_args_text.c - arguments from text, as on a command line: numbers, lists, and the files they may name.
 *
 * A JSON argument is the text itself, @FILE, or - for standard input. Only one argument may read standard input.
 */
#include "ops/op_args.h"

#include "ops/suggest.h"
#include "ops/vector_file.h"

#define ARGS_MAX_IDS_BYTES ((size_t)8 << 30)

static lode_status args_refuse_text(const op_args *args, const op_param *param, lode_str text, const char *wanted,
                                    lode_error *err) {
  char label[80], quoted[256];
  op_param_label(args, param, label, sizeof label);
  return err_set(err, LODE_INVALID, "%s must be %s, not %s", label, wanted, str_quote(text, quoted, sizeof quoted));
}

static lode_status args_copy_text(op_args *args, lode_str text, lode_str *out, lode_error *err) {
  out->data = mem_arena_copy(&args->arena, text.data ? text.data : "", text.len);
  out->len = text.len;
  return out->data ? LODE_OK : err_nomem(err);
}

static lode_status args_claim_stdin(op_args *args, const op_param *param, const char *path, lode_error *err) {
  char label[80], other[80];
  if (strcmp(path, "-") != 0) return LODE_OK;
  if (args->stdin_user) {
    const op_param *user = op_param_find(args->op->params, str_of(args->stdin_user));
    return err_set(err, LODE_INVALID, "%s and %s cannot both read standard input: give one of them a file",
                   op_param_label(args, user ? user : param, other, sizeof other),
                   op_param_label(args, param, label, sizeof label));
  }
  args->stdin_user = param->name;
  return LODE_OK;
}

/* The text of a JSON argument: given inline, in a file, or on standard input. */
static lode_status args_load_json(op_args *args, const op_param *param, lode_str text, lode_str *out, lode_error *err) {
  strbuf file = {0};
  lode_str path;
  if (!args->flags || text.len == 0 || (text.data[0] != '@' && !str_eq(text, STR_LIT("-"))))
    return args_copy_text(args, text, out, err);
  if (text.data[0] == '@') text = (lode_str){text.data + 1, text.len - 1};
  TRY(args_copy_text(args, text, &path, err));
  TRY(args_claim_stdin(args, param, path.data, err));
  lode_status st = op_read_file(path.data, LODE_MAX_FILTER_BYTES, &file, err);
  if (st == LODE_NOT_FOUND && err) err->status = LODE_INVALID;
  if (st == LODE_OK) st = args_copy_text(args, (lode_str){file.data, file.len}, out, err);
  strbuf_release(&file);
  return st == LODE_NOT_FOUND ? LODE_INVALID : st;
}

/* ---- Lists ---- */

static lode_status args_list_add(op_arg_list *arg, lode_str item, lode_error *err) {
  if (!mem_grow(&arg->items, &arg->cap, arg->n + 1, sizeof *arg->items)) return err_nomem(err);
  arg->items[arg->n++] = item;
  return LODE_OK;
}

static lode_status args_list_from_json(op_args *args, const op_param *param, op_arg_list *arg, lode_str text,
                                       lode_error *err) {
  json_doc json = {0};
  lode_status st = json_parse(&json, text, NULL, err);
  if (st == LODE_INVALID) st = args_refuse_text(args, param, text, "a JSON array of strings, as it begins with [", err);
  TRY_GOTO(st);
  for (uint32_t i = 1; i < json.nodes[0].next; i = json.nodes[i].next) {
    lode_str item;
    if (json.nodes[i].type != JSON_NODE_STRING) {
      st = args_refuse_text(args, param, text, "a JSON array of strings, as it begins with [", err);
      goto done;
    }
    TRY_GOTO(args_copy_text(args, json.nodes[i].u.s, &item, err));
    TRY_GOTO(args_list_add(arg, item, err));
  }
done:
  json_release(&json);
  return st;
}

static lode_status args_text_list(op_args *args, const op_param *param, lode_str text, lode_error *err) {
  op_arg_list *arg = op_args_at(args, param);
  lode_str copy;
  if (text.len && text.data[0] == '[') return args_list_from_json(args, param, arg, text, err);
  TRY(args_copy_text(args, text, &copy, err));
  while (copy.len) {
    const char *comma = memchr(copy.data, ',', copy.len);
    size_t len = comma ? (size_t)(comma - copy.data) : copy.len;
    if (len == 0) return args_refuse_text(args, param, text, "without empty items", err);
    TRY(args_list_add(arg, (lode_str){copy.data, len}, err));
    copy.data += comma ? len + 1 : len;
    copy.len -= comma ? len + 1 : len;
    if (comma && copy.len == 0) return args_refuse_text(args, param, text, "without empty items", err);
  }
  return LODE_OK;
}

/* One item per line; empty lines are skipped, a CR at the end of a line is dropped. */
static lode_status args_text_lines(op_args *args, const op_param *param, lode_str path, lode_error *err) {
  const op_param *list = op_param_find(args->op->params, str_of(param->into));
  op_arg_list *arg = op_args_at(args, list);
  strbuf file = {0};
  lode_str text;
  TRY(args_copy_text(args, path, &path, err));
  TRY(args_claim_stdin(args, param, path.data, err));
  lode_status st = op_read_file(path.data, ARGS_MAX_IDS_BYTES, &file, err);
  if (st == LODE_NOT_FOUND && err) err->status = LODE_INVALID;
  if (st == LODE_NOT_FOUND) st = LODE_INVALID;
  TRY_GOTO(st);
  TRY_GOTO(args_copy_text(args, (lode_str){file.data, file.len}, &text, err));
  while (text.len) {
    const char *end = memchr(text.data, '\n', text.len);
    size_t len = end ? (size_t)(end - text.data) : text.len;
    lode_str line = {text.data, len};
    if (line.len && line.data[line.len - 1] == '\r') line.len--;
    if (line.len) TRY_GOTO(args_list_add(arg, line, err));
    text.data += end ? len + 1 : len;
    text.len -= end ? len + 1 : len;
  }
  arg->set = true;
done:
  strbuf_release(&file);
  return st;
}

/* ---- Choices ---- */

struct guess {
  op_suggest best;
};

static bool guess_try(void *ctx, size_t i, lode_str choice) {
  struct guess *guess = ctx;
  (void)i;
  op_suggest_try(&guess->best, choice);
  return true;
}

static lode_status args_wrong_choice(const op_args *args, const op_param *param, lode_str text, lode_error *err) {
  struct guess guess;
  char wanted[300];
  op_suggest_init(&guess.best, text);
  op_choices_each(param->choices, guess_try, &guess);
  int n = snprintf(wanted, sizeof wanted, "one of %s", param->choices);
  if (guess.best.found && n > 0 && (size_t)n < sizeof wanted)
    snprintf(wanted + n, sizeof wanted - (size_t)n, " (did you mean %s?)", guess.best.text);
  return args_refuse_text(args, param, text, wanted, err);
}

static lode_status args_text_set(op_args *args, const op_param *param, lode_str text, lode_error *err) {
  op_arg_set *arg = op_args_at(args, param);
  arg->bits = 0;
  if (str_eq(text, STR_LIT("none")) || text.len == 0) return LODE_OK;
  while (text.len) {
    const char *comma = memchr(text.data, ',', text.len);
    size_t len = comma ? (size_t)(comma - text.data) : text.len;
    lode_str item = {text.data, len};
    int at = op_choice_index(param->choices, item);
    if (str_eq(item, STR_LIT("all")))
      arg->bits = UINT64_MAX;
    else if (at < 0)
      return args_wrong_choice(args, param, item, err);
    else
      arg->bits |= UINT64_C(1) << at;
    text.data += comma ? len + 1 : len;
    text.len -= comma ? len + 1 : len;
  }
  return LODE_OK;
}

/* ---- Numbers and vectors ---- */

static lode_status args_text_real(op_args *args, const op_param *param, lode_str text, lode_error *err) {
  op_arg_real *arg = op_args_at(args, param);
  json_doc json = {0};
  lode_status st = json_parse(&json, text, NULL, err);
  if (st == LODE_OK && json.nodes[0].type == JSON_NODE_INT)
    arg->x = (double)json.nodes[0].u.i;
  else if (st == LODE_OK && json.nodes[0].type == JSON_NODE_DOUBLE)
    arg->x = json.nodes[0].u.d;
  else if (st != LODE_NOMEM)
    st = args_refuse_text(args, param, text, "a number", err);
  json_release(&json);
  return st;
}

static bool args_is_digits(lode_str text) {
  size_t i = 0;
  while (i < text.len && text.data[i] >= '0' && text.data[i] <= '9') i++;
  return i > 0 && i == text.len;
}

static lode_status args_text_vector(op_args *args, const op_param *param, lode_str text, lode_error *err) {
  op_arg_vectors *arg = op_args_at(args, param);
  lode_str json;
  size_t dimension = 0;
  char label[80];
  lode_error why;
  TRY(args_load_json(args, param, text, &json, err));
  arg->values = mem_alloc(LODE_MAX_DIMENSION * sizeof(float));
  if (!arg->values) return err_nomem(err);
  lode_status st = json_parse_floats(json, arg->values, LODE_MAX_DIMENSION, &dimension, &why);
  if (st != LODE_OK || dimension == 0)
    return err_set(
        err, st == LODE_NOMEM ? st : LODE_INVALID, "%s must be a JSON array of 1 to 65,535 finite numbers%s%.300s",
        op_param_label(args, param, label, sizeof label), st != LODE_OK ? ": " : "", st != LODE_OK ? why.text : "");
  arg->n = 1;
  arg->dimension = (uint32_t)dimension;
  return LODE_OK;
}

static lode_status args_text_stream(op_args *args, const op_param *param, lode_str text, op_stream **stream,
                                    lode_error *err) {
  TRY(args_copy_text(args, text, &text, err));
  TRY(args_claim_stdin(args, param, text.data, err));
  *stream = mem_calloc(1, sizeof **stream);
  if (!*stream) return err_nomem(err);
  lode_status st = op_stream_open(*stream, text.data, err);
  if (st == LODE_NOT_FOUND && err) err->status = LODE_INVALID;
  return st == LODE_NOT_FOUND ? LODE_INVALID : st;
}

static lode_status args_text_vector_file(op_args *args, const op_param *param, lode_str text, lode_error *err) {
  op_arg_vectors *arg = op_args_at(args, param);
  TRY(args_copy_text(args, text, &text, err));
  TRY(args_claim_stdin(args, param, text.data, err));
  return op_vectors_load(text.data, &arg->values, &arg->n, &arg->dimension, err);
}

static lode_status args_text_int(op_args *args, const op_param *param, lode_str text, lode_error *err) {
  if (op_parse_uint(text, &((op_arg_int *)op_args_at(args, param))->n)) return LODE_OK;
  return args_refuse_text(args, param, text, args_is_digits(text) ? "a smaller number" : "a non-negative whole number",
                          err);
}

static lode_status args_text_size(op_args *args, const op_param *param, lode_str text, lode_error *err) {
  if (op_parse_size(text, &((op_arg_size *)op_args_at(args, param))->bytes)) return LODE_OK;
  return args_refuse_text(args, param, text, "a size such as 64M or 1G", err);
}

static lode_status args_text_path(op_args *args, const op_param *param, lode_str text, lode_error *err) {
  if (memchr(text.data ? text.data : "", '\0', text.len))
    return args_refuse_text(args, param, text, "a path without NUL bytes", err);
  if (text.len == 0) return args_refuse_text(args, param, text, "a path", err);
  TRY(args_copy_text(args, text, &text, err));
  ((op_arg_path *)op_args_at(args, param))->path = text.data;
  return LODE_OK;
}

static lode_status args_text_choice(op_args *args, const op_param *param, lode_str text, lode_error *err) {
  op_arg_choice *arg = op_args_at(args, param);
  int at = op_choice_index(param->choices, text);
  if (at < 0) return args_wrong_choice(args, param, text, err);
  arg->index = (uint32_t)at;
  return args_copy_text(args, text, &arg->text, err);
}

static lode_status args_text_value(op_args *args, const op_param *param, lode_str text, lode_error *err) {
  void *arg = op_args_at(args, param);
  switch (param->type) {
    case OP_ARG_TEXT: return args_copy_text(args, text, &((op_arg_text *)arg)->text, err);
    case OP_ARG_PATH: return args_text_path(args, param, text, err);
    case OP_ARG_CHOICE: return args_text_choice(args, param, text, err);
    case OP_ARG_SET: return args_text_set(args, param, text, err);
    case OP_ARG_FLAG: ((op_arg_flag *)arg)->on = true; return LODE_OK;
    case OP_ARG_INT: return args_text_int(args, param, text, err);
    case OP_ARG_SIZE: return args_text_size(args, param, text, err);
    case OP_ARG_REAL: return args_text_real(args, param, text, err);
    case OP_ARG_JSON: return args_load_json(args, param, text, &((op_arg_json *)arg)->text, err);
    case OP_ARG_LIST: return args_text_list(args, param, text, err);
    case OP_ARG_LINES:
      if (param->into) return args_text_lines(args, param, text, err);
      return args_text_stream(args, param, text, &((op_arg_lines *)arg)->stream, err);
    case OP_ARG_VECTOR: return args_text_vector(args, param, text, err);
    case OP_ARG_VECTORS: return args_text_vector_file(args, param, text, err);
    case OP_ARG_RECORDS: return args_text_stream(args, param, text, &((op_arg_records *)arg)->stream, err);
  }
  return err_internal(err, "parameter %s has an unknown type", param->name);
}

lode_status op_args_set_text(op_args *args, const op_param *param, lode_str text, lode_error *err) {
  bool repeats =
      param->type == OP_ARG_LIST || (param->type == OP_ARG_LINES && param->into) || param->type == OP_ARG_FLAG;
  bool *set = op_args_at(args, param);
  char label[80];
  if (args->flags && *set && !repeats)
    return err_set(err, LODE_INVALID, "%s is given twice", op_param_label(args, param, label, sizeof label));
  *set = true;
  return args_text_value(args, param, text, err);
}

/* An item of a list: the shell has split them. */
static lode_status args_add_item(op_args *args, const op_param *param, lode_str word, lode_error *err) {
  lode_str copy;
  TRY(args_copy_text(args, word, &copy, err));
  op_args_mark_set(args, param, true);
  return args_list_add(op_args_at(args, param), copy, err);
}

lode_status op_args_add_word(op_args *args, const op_param *param, lode_str word, lode_error *err) {
  if (param->type == OP_ARG_LIST) return args_add_item(args, param, word, err);
  op_arg_text *arg = op_args_at(args, param);
  strbuf joined = {0};
  strbuf_add(&joined, arg->text.data, arg->text.len);
  strbuf_addch(&joined, ' ');
  strbuf_add(&joined, word.data, word.len);
  lode_status st =
      joined.failed ? err_nomem(err) : args_copy_text(args, (lode_str){joined.data, joined.len}, &arg->text, err);
  strbuf_release(&joined);
  return st;
}
