/* chroma.c - calls of Chroma's API: dispatch, the body, errors. See chroma.h. */
#include "chroma.h"

enum { MOST_DEPTH = 1000, MOST_NODES = 64 << 20 };

typedef struct handler {
  const char *name;
  bool (*run)(lode__chroma *c);
} handler;

static const handler handlers[] = {
#define ENTRY(verb) {#verb, lode__chroma_##verb},
    LODE__CHROMA_CALLS(ENTRY)
#undef ENTRY
    {0}};

/* ---- Answers ---- */

static bool put_error(lode__chroma *c, unsigned status, const char *name, const char *text) {
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

bool lode__chroma_fail(lode__chroma *c, unsigned status, const char *name, const char *format, ...) {
  char text[700];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return put_error(c, status, name, text);
}

bool lode__chroma_invalid(lode__chroma *c, const char *format, ...) {
  char text[700];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return put_error(c, 400, "InvalidArgumentError", text);
}

bool lode__chroma_shape(lode__chroma *c, const char *format, ...) {
  char text[700];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return put_error(c, 422, "ChromaError", text);
}

bool lode__chroma_failed(lode__chroma *c, lode_status status) {
  const char *text = c->err.text[0] ? c->err.text : lode_status_text(status);
  switch (status) {
    case LODE_INVALID:
    case LODE_REFUSED:
    case LODE_MISMATCH:
    case LODE_LIMIT: return put_error(c, 400, "InvalidArgumentError", text);
    case LODE_NOT_FOUND: return put_error(c, 404, "NotFoundError", text);
    case LODE_EXISTS: return put_error(c, 409, "ChromaError", text);
    case LODE_READONLY: return put_error(c, 403, "AuthError", text);
    case LODE_BUSY:
    case LODE_NOMEM:
    case LODE_GONE: return put_error(c, 503, "UnavailableError", text);
    case LODE_UNSUPPORTED: return put_error(c, 501, "ChromaError", text);
    case LODE_FULL: return put_error(c, 507, "InternalError", text);
    default: return put_error(c, 500, "InternalError", text);
  }
}

bool lode__chroma_text(lode__chroma *c, unsigned status, const char *text) {
  strbuf_addstr(&c->task->out, text);
  c->task->code = status;
  return true;
}

/* ---- The body ---- */

uint32_t lode__chroma_key(const lode__chroma *c, uint32_t object, const char *key) {
  uint32_t node = c->json.count ? json_get(&c->json, object, str_of(key)) : 0;
  return node && c->json.nodes[node].type != JSON_NODE_NULL ? node : 0;
}

lode_str lode__chroma_subtree(lode__chroma *c, uint32_t node) {
  strbuf text = {0};
  lode_str copy = {0};
  json_put_node(&text, &c->json, node);
  if (!text.failed) copy.data = mem_arena_copy(&c->arena, text.data, text.len);
  copy.len = copy.data ? text.len : 0;
  strbuf_release(&text);
  return copy;
}

bool lode__chroma_count_of(lode__chroma *c, const char *key, uint64_t fallback, uint64_t *value) {
  uint32_t node = lode__chroma_key(c, 0, key);
  *value = fallback;
  if (!node) return true;
  if (lode__chroma_node(c, node)->type != JSON_NODE_INT || lode__chroma_node(c, node)->u.i < 0)
    return lode__chroma_shape(c, "%s must be a number that is not negative", key);
  *value = (uint64_t)lode__chroma_node(c, node)->u.i;
  return true;
}

bool lode__chroma_ids(lode__chroma *c, const lode_str **ids, size_t *n) {
  uint32_t node = lode__chroma_key(c, 0, "ids");
  *ids = NULL;
  *n = 0;
  if (!node) return true;
  const json_node *list = lode__chroma_node(c, node);
  if (list->type != JSON_NODE_ARRAY) return lode__chroma_shape(c, "ids must be an array of strings");
  size_t size;
  lode_str *out = mem_mul_overflow(list->u.count + 1, sizeof *out, &size) ? NULL : mem_arena_alloc(&c->arena, size);
  if (!out) return lode__chroma_failed(c, err_nomem(&c->err));
  for (uint32_t i = node + 1; i < list->next; i = lode__chroma_node(c, i)->next) {
    if (lode__chroma_node(c, i)->type != JSON_NODE_STRING) return lode__chroma_shape(c, "ids must be an array of strings");
    out[(*n)++] = lode__chroma_node(c, i)->u.s;
  }
  *ids = out;
  return true;
}

bool lode__chroma_selection(lode__chroma *c, lode_selection *selection) {
  uint32_t where = lode__chroma_key(c, 0, "where"), document = lode__chroma_key(c, 0, "where_document");
  *selection = (lode_selection){0};
  if (!lode__chroma_ids(c, &selection->ids, &selection->n_ids)) return false;
  if (where && !lode__chroma_where(c, where, false, &selection->where)) return false;
  return !document || lode__chroma_where(c, document, true, &selection->where_document);
}

/* ---- Dispatch ---- */

static bool parse_body(lode__chroma *c) {
  static const json_limits limits = {.max_depth = MOST_DEPTH, .max_nodes = MOST_NODES};
  lode_str text = c->task->body;
  if (text.len == 0) text = STR_LIT("{}");
  lode_status st = json_parse(&c->json, text, &limits, &c->err);
  if (st != LODE_OK) return lode__chroma_failed(c, st);
  if (lode__chroma_node(c, 0)->type != JSON_NODE_OBJECT) return lode__chroma_shape(c, "the body must be a JSON object");
  return true;
}

static bool run(lode__chroma *c) {
  static const lode__open_how how = {.write = true};
  const char *name = c->task->name + strlen("chroma.");
  const handler *h = handlers;
  while (h->name && strcmp(h->name, name) != 0) h++;
  if (!h->name) return lode__chroma_fail(c, 404, "NotFoundError", "there is no call %.60s", name);
  if (!parse_body(c)) return false;
  lode_status st = lode__shared_store(c->task->shared, &how, &c->store, &c->err);
  return st == LODE_OK ? h->run(c) : lode__chroma_failed(c, st);
}

void lode__service_chroma(lode__task *task) {
  lode__chroma c = {.task = task, .err = {.record = LODE_NO_RECORD}};
  mem_arena_init(&c.arena, 0);
  task->code = 200;
  (void)run(&c); /* either way the answer is in task->out */
  json_release(&c.json);
  mem_arena_release(&c.arena);
}

/* ---- What a local server does not have ---- */

bool lode__chroma_fork(lode__chroma *c) {
  return lode__chroma_fail(c, 501, "ChromaError", "Collection forking is unsupported for local chroma");
}

bool lode__chroma_fork_count(lode__chroma *c) {
  return lode__chroma_fail(c, 501, "ChromaError", "Count forks is unsupported for local chroma");
}

bool lode__chroma_search(lode__chroma *c) {
  return lode__chroma_fail(c, 501, "ChromaError", "Search is unsupported for local chroma: use query");
}
