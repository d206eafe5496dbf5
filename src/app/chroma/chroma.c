/* SPDX-License-Identifier: Apache-2.0 */
/* chroma.c - calls of Chroma's API: dispatch, request body, errors. See chroma.h. */
#include "chroma/chroma.h"

enum { CHROMA_MAX_DEPTH = 1000, CHROMA_MAX_NODES = 64 << 20 };

typedef struct chroma_handler {
  const char *name;
  bool (*run)(chroma_request *c);
} chroma_handler;

static const chroma_handler chroma_handlers[] = {
#define CHROMA_HANDLER_ENTRY(verb) {#verb, chroma_do_##verb},
    CHROMA_HANDLERS(CHROMA_HANDLER_ENTRY)
#undef CHROMA_HANDLER_ENTRY
        {0}};

/* ---- Replies ---- */

static bool chroma_put_error(chroma_request *c, unsigned status, const char *name, const char *text) {
  strbuf *out = &c->task->out;
  out->len = 0;
  strbuf_addstr(out, "{\"error\":");
  json_put_string(out, str_of(name));
  strbuf_addstr(out, ",\"message\":");
  json_put_string(out, str_of(text));
  strbuf_addch(out, '}');
  c->task->code = status;
  return false;
}

bool chroma_respond_error(chroma_request *c, unsigned status, const char *name, const char *format, ...) {
  char text[700];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return chroma_put_error(c, status, name, text);
}

bool chroma_invalid(chroma_request *c, const char *format, ...) {
  char text[700];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return chroma_put_error(c, 400, "InvalidArgumentError", text);
}

bool chroma_bad_shape(chroma_request *c, const char *format, ...) {
  char text[700];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return chroma_put_error(c, 422, "ChromaError", text);
}

bool chroma_respond_status(chroma_request *c, lode_status status) {
  const char *text = c->err.text[0] ? c->err.text : lode_status_text(status);
  switch (status) {
    case LODE_INVALID:
    case LODE_REFUSED:
    case LODE_MISMATCH:
    case LODE_LIMIT: return chroma_put_error(c, 400, "InvalidArgumentError", text);
    case LODE_NOT_FOUND: return chroma_put_error(c, 404, "NotFoundError", text);
    case LODE_EXISTS: return chroma_put_error(c, 409, "ChromaError", text);
    case LODE_READONLY: return chroma_put_error(c, 403, "AuthError", text);
    case LODE_BUSY:
    case LODE_NOMEM:
    case LODE_GONE: return chroma_put_error(c, 503, "UnavailableError", text);
    case LODE_UNSUPPORTED: return chroma_put_error(c, 501, "ChromaError", text);
    case LODE_FULL: return chroma_put_error(c, 507, "InternalError", text);
    default: return chroma_put_error(c, 500, "InternalError", text);
  }
}

bool chroma_respond(chroma_request *c, unsigned status, const char *text) {
  strbuf_addstr(&c->task->out, text);
  c->task->code = status;
  return true;
}

/* ---- Request body ---- */

uint32_t chroma_body_key(const chroma_request *c, uint32_t object, const char *key) {
  uint32_t node = c->json.count ? json_get(&c->json, object, str_of(key)) : 0;
  return node && c->json.nodes[node].type != JSON_NODE_NULL ? node : 0;
}

lode_str chroma_body_subtree(chroma_request *c, uint32_t node) {
  strbuf text = {0};
  lode_str copy = {0};
  json_put_node(&text, &c->json, node);
  if (!text.failed) copy.data = mem_arena_copy(&c->arena, text.data, text.len);
  copy.len = copy.data ? text.len : 0;
  strbuf_release(&text);
  return copy;
}

bool chroma_body_count(chroma_request *c, const char *key, uint64_t fallback, uint64_t *value) {
  uint32_t node = chroma_body_key(c, 0, key);
  *value = fallback;
  if (!node) return true;
  const json_node *x = chroma_body_node(c, node);
  if (x->type != JSON_NODE_INT || x->u.i < 0 || x->u.i > UINT32_MAX)
    return chroma_bad_shape(c, "%s must be a number from 0 to %u", key, UINT32_MAX);
  *value = (uint64_t)x->u.i;
  return true;
}

bool chroma_body_ids(chroma_request *c, const lode_str **ids, size_t *n) {
  uint32_t node = chroma_body_key(c, 0, "ids");
  *ids = NULL;
  *n = 0;
  if (!node) return true;
  const json_node *list = chroma_body_node(c, node);
  if (list->type != JSON_NODE_ARRAY) return chroma_bad_shape(c, "ids must be an array of strings");
  size_t size;
  lode_str *out = mem_mul_overflow(list->u.count + 1, sizeof *out, &size) ? NULL : mem_arena_alloc(&c->arena, size);
  if (!out) return chroma_respond_status(c, err_nomem(&c->err));
  for (uint32_t i = node + 1; i < list->next; i = chroma_body_node(c, i)->next) {
    if (chroma_body_node(c, i)->type != JSON_NODE_STRING) return chroma_bad_shape(c, "ids must be an array of strings");
    out[(*n)++] = chroma_body_node(c, i)->u.s;
  }
  *ids = out;
  return true;
}

bool chroma_body_selection(chroma_request *c, lode_selection *selection) {
  uint32_t where = chroma_body_key(c, 0, "where"), document = chroma_body_key(c, 0, "where_document");
  *selection = (lode_selection){0};
  if (!chroma_body_ids(c, &selection->ids, &selection->n_ids)) return false;
  if (where && !chroma_body_where(c, where, false, &selection->where)) return false;
  return !document || chroma_body_where(c, document, true, &selection->where_document);
}

/* ---- Dispatch ---- */

static bool chroma_parse_body(chroma_request *c) {
  static const json_limits limits = {.max_depth = CHROMA_MAX_DEPTH, .max_nodes = CHROMA_MAX_NODES};
  lode_str text = c->task->body;
  if (text.len == 0) text = STR_LIT("{}");
  lode_status st = json_parse(&c->json, text, &limits, &c->err);
  if (st != LODE_OK) return chroma_respond_status(c, st);
  if (chroma_body_node(c, 0)->type != JSON_NODE_OBJECT) return chroma_bad_shape(c, "the body must be a JSON object");
  return true;
}

/* Calls whose second word is no database. */
static bool chroma_has_database(const char *name) {
  static const char *const others[] = {"get_tenant",      "create_tenant", "update_tenant",   "list_databases",
                                       "create_database", "reset",         "delete_database", NULL};
  size_t i = 0;
  while (others[i] && strcmp(others[i], name) != 0) i++;
  return !others[i];
}

bool chroma_check_database(chroma_request *c) {
  return c->task->words[1].len >= 3 || chroma_invalid(c, "database name must be at least 3 characters");
}

static bool chroma_run(chroma_request *c) {
  static const op_open_options how = {.write = true};
  const char *name = c->task->name + strlen("chroma.");
  const chroma_handler *h = chroma_handlers;
  while (h->name && strcmp(h->name, name) != 0) h++;
  if (!h->name) return chroma_respond_error(c, 404, "NotFoundError", "there is no call %.60s", name);
  /* of a request with a body, Chroma looks at that first */
  if (chroma_has_database(h->name) && !c->task->body.len && !chroma_check_database(c)) return false;
  if (!chroma_parse_body(c)) return false;
  lode_status st = worker_stores_main(c->task->shared, &how, &c->store, &c->err);
  return st == LODE_OK ? h->run(c) : chroma_respond_status(c, st);
}

void chroma_service(worker_task *task) {
  chroma_request c = {.task = task, .err = {.record = LODE_NO_RECORD}};
  mem_arena_init(&c.arena, 0);
  task->code = 200;
  (void)chroma_run(&c); /* in both cases the reply is in task->out */
  json_release(&c.json);
  mem_arena_release(&c.arena);
}

/* ---- Not supported by a local server ---- */

/* The checks that Chroma makes before it says so. */
static bool chroma_needs(chroma_request *c, const char *key, json_node_type type) {
  uint32_t node = chroma_body_key(c, 0, key);
  return (node && chroma_body_node(c, node)->type == type) ||
         chroma_bad_shape(c, "missing field `%s`, or it is of another type", key);
}

bool chroma_do_fork(chroma_request *c) {
  uint64_t uid;
  if (!chroma_needs(c, "new_name", JSON_NODE_STRING) || !chroma_coll_uid(c, &uid)) return false;
  return chroma_respond_error(c, 501, "ChromaError", "Collection forking is unsupported for local chroma");
}

bool chroma_do_fork_count(chroma_request *c) {
  return chroma_respond_error(c, 501, "ChromaError", "Count forks is unsupported for local chroma");
}

bool chroma_is_read_level(lode_str level) {
  return str_eq(level, STR_LIT("index_and_wal")) || str_eq(level, STR_LIT("index_only")) ||
         str_eq(level, STR_LIT("index_and_bounded_wal"));
}

bool chroma_do_search(chroma_request *c) {
  uint64_t uid;
  uint32_t level = json_get(&c->json, 0, STR_LIT("read_level"));
  const json_node *of = level ? chroma_body_node(c, level) : NULL;
  if (of && of->type != JSON_NODE_STRING && of->type != JSON_NODE_OBJECT)
    return chroma_invalid(c, "read_level must be a string");
  if (of && (of->type == JSON_NODE_OBJECT || !chroma_is_read_level(of->u.s)))
    return chroma_bad_shape(c, "read_level must be " CHROMA_READ_LEVELS);
  if (!chroma_needs(c, "searches", JSON_NODE_ARRAY)) return false;
  uint32_t list = chroma_body_key(c, 0, "searches");
  for (uint32_t i = list + 1; i < chroma_body_node(c, list)->next; i = chroma_body_node(c, i)->next)
    if (chroma_body_node(c, i)->type != JSON_NODE_OBJECT) return chroma_bad_shape(c, "searches must hold objects");
  if (!chroma_coll_uid(c, &uid)) return false;
  return chroma_respond_error(c, 501, "ChromaError", "Search is unsupported for local chroma: use query");
}

static bool chroma_no_functions(chroma_request *c) {
  if (!chroma_check_database(c)) return false;
  return chroma_respond_error(c, 501, "ChromaError", "Attached functions are unsupported for local chroma");
}

bool chroma_do_attach_function(chroma_request *c) {
  return chroma_needs(c, "name", JSON_NODE_STRING) && chroma_needs(c, "function_id", JSON_NODE_STRING) &&
         chroma_needs(c, "output_collection", JSON_NODE_STRING) && chroma_no_functions(c);
}

bool chroma_do_get_function(chroma_request *c) {
  return chroma_respond_error(c, 404, "NotFoundError", "Attached function not found");
}

bool chroma_do_detach_function(chroma_request *c) {
  uint32_t node = chroma_body_key(c, 0, "delete_output");
  json_node_type type = node ? chroma_body_node(c, node)->type : JSON_NODE_FALSE;
  if (type != JSON_NODE_TRUE && type != JSON_NODE_FALSE) return chroma_bad_shape(c, "delete_output must be a boolean");
  return chroma_no_functions(c);
}
