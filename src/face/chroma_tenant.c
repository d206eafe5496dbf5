/* chroma_tenant.c - tenants and databases: records of the collection ".chroma". See rescue/kept.h. */
#include "chroma.h"
#include "code/owned.h"

static bool is(lode_str s, const char *name) { return str_eq(s, str_of(name)); }

static lode_str text_of(lode__chroma *c, strbuf *text) {
  lode_str copy = {0};
  if (!text->failed) copy = (lode_str){mem_arena_copy(&c->arena, text->data, text->len), text->len};
  strbuf_release(text);
  return copy;
}

static lode_str tenant_id(lode__chroma *c, lode_str tenant) {
  strbuf id = {0};
  rescue_layout_tenant_id(&id, tenant);
  return text_of(c, &id);
}

static lode_str database_id(lode__chroma *c, lode_str tenant, lode_str database) {
  strbuf id = {0};
  rescue_layout_database_id(&id, tenant, database);
  return text_of(c, &id);
}

/* Records of the registry that match; *result is NULL when there is no registry. */
static lode_status look_up(lode__chroma *c, const lode_selection *select, lode_result **result) {
  lode_collection *registry = NULL;
  lode_get_request request = {.select = *select, .include = LODE_METADATA};
  *result = NULL;
  lode_status st = lode_collection_open(c->store, STR_LIT(RESCUE_LAYOUT_REGISTRY), NULL, &registry, &c->err);
  if (st == LODE_OK) st = lode_get(registry, &request, result, &c->err);
  lode_collection_close(registry);
  return st == LODE_NOT_FOUND ? LODE_OK : st;
}

/* The record with an id; *metadata is absent when there is none. */
static bool look_up_id(lode__chroma *c, lode_str id, bool *there, lode_str *metadata) {
  lode_selection select = {.ids = &id, .n_ids = 1};
  lode_result *result;
  if (!id.data) return lode__chroma_failed(c, err_nomem(&c->err));
  lode_status st = look_up(c, &select, &result);
  if (st != LODE_OK) return lode__chroma_failed(c, st);
  *there = result && lode_result_count(result) > 0;
  *metadata = (lode_str){0};
  if (*there) {
    lode_str text = lode_result_at(result, 0)->metadata;
    *metadata = (lode_str){mem_arena_copy(&c->arena, text.data, text.len), text.len};
  }
  lode_result_free(result);
  return true;
}

static lode_status add_record(lode__chroma *c, lode_str id, lode_str metadata) {
  lode_collection_options options = {.create = true};
  lode_record record = {.id = id, .metadata = metadata};
  lode_collection *registry = NULL;
  if (!id.data || !metadata.data) return err_nomem(&c->err);
  lode_status st = lode_collection_open(c->store, STR_LIT(RESCUE_LAYOUT_REGISTRY), &options, &registry, &c->err);
  if (st == LODE_OK) st = lode_add(registry, NULL, &record, 1, LODE_FAIL_EXISTING, NULL, &c->err);
  lode_collection_close(registry);
  return st;
}

/* The name in the body: at least three characters. */
static bool name_of(lode__chroma *c, lode_str *name) {
  uint32_t node = lode__chroma_key(c, 0, "name");
  char quoted[256];
  if (!node || lode__chroma_node(c, node)->type != JSON_NODE_STRING) return lode__chroma_shape(c, "name must be a string");
  *name = lode__chroma_node(c, node)->u.s;
  if (name->len >= 3 && name->len <= LODE_MAX_NAME_BYTES && !memchr(name->data, '\0', name->len)) return true;
  return lode__chroma_invalid(c, "Validation error: name: a name of 3 to %d characters is needed, got %s", LODE_MAX_NAME_BYTES,
                              str_quote(*name, quoted, sizeof quoted));
}

/* ---- Tenants ---- */

bool lode__chroma_create_tenant(lode__chroma *c) {
  lode_str name;
  strbuf metadata = {0};
  if (!name_of(c, &name)) return false;
  rescue_layout_tenant(&metadata, name);
  lode_status st = is(name, "default_tenant") ? LODE_EXISTS : add_record(c, tenant_id(c, name), text_of(c, &metadata));
  strbuf_release(&metadata);
  if (st == LODE_EXISTS) return lode__chroma_fail(c, 409, "ChromaError", "Tenant [%.*s] already exists", (int)name.len, name.data);
  return st == LODE_OK ? lode__chroma_text(c, 200, "{}") : lode__chroma_failed(c, st);
}

bool lode__chroma_get_tenant(lode__chroma *c) {
  lode_str tenant = c->task->words[0], metadata;
  bool there = is(tenant, "default_tenant");
  if (!there && !look_up_id(c, tenant_id(c, tenant), &there, &metadata)) return false;
  if (!there) return lode__chroma_fail(c, 404, "NotFoundError", "Tenant [%.*s] not found", (int)tenant.len, tenant.data);
  strbuf_addstr(&c->task->out, "{\"name\":");
  json_put_string(&c->task->out, tenant);
  strbuf_addstr(&c->task->out, ",\"resource_name\":null}");
  return true;
}

/* ---- Databases ---- */

static void put_database(lode__chroma *c, lode_str id, lode_str name) {
  strbuf *out = &c->task->out;
  strbuf_addstr(out, "{\"id\":");
  json_put_string(out, id);
  strbuf_addstr(out, ",\"name\":");
  json_put_string(out, name);
  strbuf_addstr(out, ",\"tenant\":");
  json_put_string(out, c->task->words[0]);
  strbuf_addch(out, '}');
}

#define NO_ID STR_LIT("00000000-0000-0000-0000-000000000000")

/* id and name from a record's metadata. */
static bool put_record(lode__chroma *c, lode_str metadata) {
  json_doc json = {0};
  if (json_parse(&json, metadata, NULL, &c->err) != LODE_OK) return false;
  uint32_t id = json_get(&json, 0, STR_LIT("id")), name = json_get(&json, 0, STR_LIT("name"));
  bool good = id && name && json.nodes[id].type == JSON_NODE_STRING && json.nodes[name].type == JSON_NODE_STRING;
  if (good) put_database(c, json.nodes[id].u.s, json.nodes[name].u.s);
  json_release(&json);
  return good;
}

static bool no_database(lode__chroma *c) {
  lode_str name = c->task->words[1];
  return lode__chroma_fail(c, 404, "NotFoundError", "Database [%.*s] not found. Are you sure it exists?", (int)name.len, name.data);
}

bool lode__chroma_database_exists(lode__chroma *c) {
  bool there = rescue_layout_is_default(c->task->words[0], c->task->words[1]);
  lode_str metadata;
  if (!there && !look_up_id(c, database_id(c, c->task->words[0], c->task->words[1]), &there, &metadata)) return false;
  return there || no_database(c);
}

bool lode__chroma_create_database(lode__chroma *c) {
  lode_str tenant = c->task->words[0], name;
  strbuf metadata = {0};
  char id[LODE__UUID_BYTES];
  if (!name_of(c, &name)) return false;
  lode__uuid_put(rand_u64(), id);
  rescue_layout_database(&metadata, tenant, name, str_of(id));
  lode_status st = rescue_layout_is_default(tenant, name) ? LODE_EXISTS : add_record(c, database_id(c, tenant, name), text_of(c, &metadata));
  strbuf_release(&metadata);
  if (st == LODE_EXISTS) return lode__chroma_fail(c, 409, "ChromaError", "Database [%.*s] already exists", (int)name.len, name.data);
  return st == LODE_OK ? lode__chroma_text(c, 200, "{}") : lode__chroma_failed(c, st);
}

bool lode__chroma_get_database(lode__chroma *c) {
  lode_str tenant = c->task->words[0], name = c->task->words[1], metadata;
  bool there;
  if (rescue_layout_is_default(tenant, name)) {
    put_database(c, NO_ID, name);
    return true;
  }
  if (!look_up_id(c, database_id(c, tenant, name), &there, &metadata)) return false;
  if (!there || !metadata.data) return no_database(c);
  return put_record(c, metadata) || lode__chroma_fail(c, 500, "InternalError", "the record of the database is damaged");
}

bool lode__chroma_list_databases(lode__chroma *c) {
  lode_str tenant = c->task->words[0], l = c->task->words[1], o = c->task->words[2];
  uint64_t limit = UINT64_MAX, offset = 0, shown = 0;
  strbuf where = {0};
  lode_result *result = NULL;
  if ((l.len && !lode__parse_uint(l, &limit)) || (o.len && !lode__parse_uint(o, &offset)))
    return lode__chroma_invalid(c, "limit and offset must be numbers");
  strbuf_addstr(&where, "{\"kind\":\"database\",\"tenant\":");
  json_put_string(&where, tenant);
  strbuf_addch(&where, '}');
  lode_selection select = {.where = text_of(c, &where)};
  lode_status st = select.where.data ? look_up(c, &select, &result) : err_nomem(&c->err);
  if (st != LODE_OK) return lode__chroma_failed(c, st);
  strbuf_addch(&c->task->out, '[');
  if (is(tenant, "default_tenant") && limit) {
    if (offset) offset--;
    else {
      put_database(c, NO_ID, STR_LIT("default_database"));
      shown++;
    }
  }
  for (size_t i = 0; result && i < lode_result_count(result) && shown < limit; i++) {
    if (i < offset) continue;
    if (shown++) strbuf_addch(&c->task->out, ',');
    (void)put_record(c, lode_result_at(result, i)->metadata);
  }
  strbuf_addch(&c->task->out, ']');
  lode_result_free(result);
  return true;
}

/* The collections of this database, or all; those of a project's code index stay. */
static lode_status drop_all(lode__chroma *c, bool everything) {
  lode_collection_list *list = NULL;
  lode_str name;
  TRY(lode_collections(c->store, &list, &c->err));
  lode_status st = LODE_OK;
  for (size_t i = 0; st == LODE_OK && i < lode_collection_list_count(list); i++) {
    lode_str full = lode_collection_list_at(list, i)->name;
    bool owned;
    if (!everything && !lode__chroma_own_name(c, full, &name)) continue;
    st = project_owns_coll(c->store, full, &owned, &c->err);
    if (st == LODE_OK && !owned) st = lode_collection_drop(c->store, full, &c->err);
    if (st == LODE_NOT_FOUND) st = LODE_OK; /* somebody else was quicker */
  }
  lode_collection_list_free(list);
  return st;
}

/* The collections first: a database that is gone has none, and one that is half gone can be deleted again. */
bool lode__chroma_delete_database(lode__chroma *c) {
  lode_str id = database_id(c, c->task->words[0], c->task->words[1]);
  lode_selection select = {.ids = &id, .n_ids = 1};
  lode_collection *registry = NULL;
  if (!lode__chroma_database_exists(c)) return false;
  lode_status st = drop_all(c, false);
  if (st == LODE_OK && !rescue_layout_is_default(c->task->words[0], c->task->words[1])) {
    st = lode_collection_open(c->store, STR_LIT(RESCUE_LAYOUT_REGISTRY), NULL, &registry, &c->err);
    if (st == LODE_OK) st = lode_delete(registry, NULL, &select, NULL, &c->err);
    lode_collection_close(registry);
  }
  return st == LODE_OK ? lode__chroma_text(c, 200, "{}") : lode__chroma_failed(c, st);
}

/* The front has asked whether it is allowed. */
bool lode__chroma_reset(lode__chroma *c) {
  lode_status st = drop_all(c, true);
  return st == LODE_OK ? lode__chroma_text(c, 200, "true") : lode__chroma_failed(c, st);
}
