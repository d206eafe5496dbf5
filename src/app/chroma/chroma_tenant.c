/* SPDX-License-Identifier: Apache-2.0 */
/* chroma_tenant.c - tenants and databases: records of the collection ".chroma", the registry. See
 * rescue/chroma_layout.h. */
#include "chroma/chroma.h"
#include "indexer/index_owned.h"

static bool tenant_is(lode_str s, const char *name) { return str_eq(s, str_of(name)); }

static lode_str tenant_text(chroma_request *c, strbuf *text) {
  lode_str copy = {0};
  if (!text->failed) copy = (lode_str){mem_arena_copy(&c->arena, text->data, text->len), text->len};
  strbuf_release(text);
  return copy;
}

static lode_str tenant_id(chroma_request *c, lode_str tenant) {
  strbuf id = {0};
  rescue_layout_tenant_id(&id, tenant);
  return tenant_text(c, &id);
}

static lode_str database_id(chroma_request *c, lode_str tenant, lode_str database) {
  strbuf id = {0};
  rescue_layout_database_id(&id, tenant, database);
  return tenant_text(c, &id);
}

/* Records of the registry that match; *result is NULL if there is no registry. */
static lode_status registry_find(chroma_request *c, const lode_selection *select, lode_result **result) {
  lode_collection *registry = NULL;
  lode_get_request request = {.select = *select, .include = LODE_METADATA};
  *result = NULL;
  lode_status st = lode_collection_open(c->store, STR_LIT(RESCUE_LAYOUT_REGISTRY), NULL, &registry, &c->err);
  if (st == LODE_OK) st = lode_get(registry, &request, result, &c->err);
  lode_collection_close(registry);
  return st == LODE_NOT_FOUND ? LODE_OK : st;
}

/* Looks up a record by id; *metadata has no data if it does not exist. */
static bool registry_find_id(chroma_request *c, lode_str id, bool *exists, lode_str *metadata) {
  lode_selection select = {.ids = &id, .n_ids = 1};
  lode_result *result;
  if (!id.data) return chroma_respond_status(c, err_nomem(&c->err));
  lode_status st = registry_find(c, &select, &result);
  if (st != LODE_OK) return chroma_respond_status(c, st);
  *exists = result && lode_result_count(result) > 0;
  *metadata = (lode_str){0};
  if (*exists) {
    lode_str text = lode_result_at(result, 0)->metadata;
    *metadata = (lode_str){mem_arena_copy(&c->arena, text.data, text.len), text.len};
  }
  lode_result_free(result);
  return true;
}

static lode_status registry_add(chroma_request *c, lode_str id, lode_str metadata) {
  lode_collection_options options = {.create = true};
  lode_record record = {.id = id, .metadata = metadata};
  lode_collection *registry = NULL;
  if (!id.data || !metadata.data) return err_nomem(&c->err);
  lode_status st = lode_collection_open(c->store, STR_LIT(RESCUE_LAYOUT_REGISTRY), &options, &registry, &c->err);
  if (st == LODE_OK) st = lode_add(registry, NULL, &record, 1, LODE_FAIL_EXISTING, NULL, &c->err);
  lode_collection_close(registry);
  return st;
}

/* The name in the body: 3 to LODE_MAX_NAME_BYTES bytes. */
static bool tenant_body_name(chroma_request *c, lode_str *name) {
  uint32_t node = chroma_body_key(c, 0, "name");
  char quoted[256];
  if (!node || chroma_body_node(c, node)->type != JSON_NODE_STRING) return chroma_bad_shape(c, "name must be a string");
  *name = chroma_body_node(c, node)->u.s;
  if (name->len >= 3 && name->len <= LODE_MAX_NAME_BYTES && !memchr(name->data, '\0', name->len)) return true;
  return chroma_invalid(c, "Validation error: name: a name of 3 to %d characters is needed, got %s",
                        LODE_MAX_NAME_BYTES, str_quote(*name, quoted, sizeof quoted));
}

/* ---- Tenants ---- */

bool chroma_do_create_tenant(chroma_request *c) {
  lode_str name;
  strbuf metadata = {0};
  if (!tenant_body_name(c, &name)) return false;
  rescue_layout_tenant(&metadata, name);
  lode_status st =
      tenant_is(name, "default_tenant") ? LODE_EXISTS : registry_add(c, tenant_id(c, name), tenant_text(c, &metadata));
  strbuf_release(&metadata);
  if (st == LODE_EXISTS)
    return chroma_respond_error(c, 409, "ChromaError", "Tenant [%.*s] already exists", (int)name.len, name.data);
  return st == LODE_OK ? chroma_respond(c, 200, "{}") : chroma_respond_status(c, st);
}

bool chroma_do_get_tenant(chroma_request *c) {
  lode_str tenant = c->task->words[0], metadata;
  bool exists = tenant_is(tenant, "default_tenant");
  if (!exists && !registry_find_id(c, tenant_id(c, tenant), &exists, &metadata)) return false;
  if (!exists)
    return chroma_respond_error(c, 404, "NotFoundError", "Tenant [%.*s] not found", (int)tenant.len, tenant.data);
  strbuf_addstr(&c->task->out, "{\"name\":");
  json_put_string(&c->task->out, tenant);
  strbuf_addstr(&c->task->out, ",\"resource_name\":null}");
  return true;
}

/* A resource name means something to Chroma's cloud only: its local server takes and forgets it. */
bool chroma_do_update_tenant(chroma_request *c) {
  uint32_t node = chroma_body_key(c, 0, "resource_name");
  if (!node || chroma_body_node(c, node)->type != JSON_NODE_STRING)
    return chroma_bad_shape(c, "missing field `resource_name`");
  return chroma_respond(c, 200, "{}");
}

/* ---- Databases ---- */

static void tenant_put_database(chroma_request *c, lode_str id, lode_str name) {
  strbuf *out = &c->task->out;
  strbuf_addstr(out, "{\"id\":");
  json_put_string(out, id);
  strbuf_addstr(out, ",\"name\":");
  json_put_string(out, name);
  strbuf_addstr(out, ",\"tenant\":");
  json_put_string(out, c->task->words[0]);
  strbuf_addch(out, '}');
}

#define TENANT_NIL_UUID STR_LIT("00000000-0000-0000-0000-000000000000")

/* Writes id and name from a record's metadata. */
static bool registry_put_record(chroma_request *c, lode_str metadata) {
  json_doc json = {0};
  bool parsed = metadata.data && json_parse(&json, metadata, NULL, NULL) == LODE_OK;
  uint32_t id = parsed ? json_get(&json, 0, STR_LIT("id")) : 0, name = parsed ? json_get(&json, 0, STR_LIT("name")) : 0;
  bool good = id && name && json.nodes[id].type == JSON_NODE_STRING && json.nodes[name].type == JSON_NODE_STRING;
  if (good) tenant_put_database(c, json.nodes[id].u.s, json.nodes[name].u.s);
  json_release(&json);
  return good;
}

static bool tenant_no_database(chroma_request *c) {
  lode_str name = c->task->words[1];
  return chroma_respond_error(c, 404, "NotFoundError", "Database [%.*s] not found. Are you sure it exists?",
                              (int)name.len, name.data);
}

bool chroma_database_exists(chroma_request *c, bool *exists) {
  lode_str metadata;
  *exists = rescue_layout_is_default(c->task->words[0], c->task->words[1]);
  return *exists || registry_find_id(c, database_id(c, c->task->words[0], c->task->words[1]), exists, &metadata);
}

bool chroma_do_create_database(chroma_request *c) {
  lode_str tenant = c->task->words[0], name;
  strbuf metadata = {0};
  char id[CHROMA_UUID_BYTES];
  if (!tenant_body_name(c, &name) || !chroma_check_name(c, "", name)) return false;
  chroma_uuid_format(rand_u64(), id);
  rescue_layout_database(&metadata, tenant, name, str_of(id));
  lode_status st = rescue_layout_is_default(tenant, name)
                       ? LODE_EXISTS
                       : registry_add(c, database_id(c, tenant, name), tenant_text(c, &metadata));
  strbuf_release(&metadata);
  if (st == LODE_EXISTS)
    return chroma_respond_error(c, 409, "ChromaError", "Database [%.*s] already exists", (int)name.len, name.data);
  return st == LODE_OK ? chroma_respond(c, 200, "{}") : chroma_respond_status(c, st);
}

bool chroma_do_get_database(chroma_request *c) {
  lode_str tenant = c->task->words[0], name = c->task->words[1], metadata;
  bool exists;
  if (rescue_layout_is_default(tenant, name)) {
    tenant_put_database(c, TENANT_NIL_UUID, name);
    return true;
  }
  if (!registry_find_id(c, database_id(c, tenant, name), &exists, &metadata)) return false;
  if (!exists || !metadata.data) return tenant_no_database(c);
  return registry_put_record(c, metadata) ||
         chroma_respond_error(c, 500, "InternalError", "the record of the database is damaged");
}

bool chroma_do_list_databases(chroma_request *c) {
  lode_str tenant = c->task->words[0], l = c->task->words[1], o = c->task->words[2];
  uint64_t limit = UINT64_MAX, offset = 0, shown = 0;
  strbuf where = {0};
  lode_result *result = NULL;
  if ((l.len && !op_parse_uint(l, &limit)) || (o.len && !op_parse_uint(o, &offset)))
    return chroma_invalid(c, "limit and offset must be numbers");
  strbuf_addstr(&where, "{\"kind\":\"database\",\"tenant\":");
  json_put_string(&where, tenant);
  strbuf_addch(&where, '}');
  lode_selection select = {.where = tenant_text(c, &where)};
  lode_status st = select.where.data ? registry_find(c, &select, &result) : err_nomem(&c->err);
  if (st != LODE_OK) return chroma_respond_status(c, st);
  strbuf_addch(&c->task->out, '[');
  if (tenant_is(tenant, "default_tenant") && limit) {
    if (offset)
      offset--;
    else {
      tenant_put_database(c, TENANT_NIL_UUID, STR_LIT("default_database"));
      shown++;
    }
  }
  for (size_t i = 0; result && i < lode_result_count(result) && shown < limit; i++) {
    size_t before = c->task->out.len;
    if (i < offset) continue;
    if (shown) strbuf_addch(&c->task->out, ',');
    if (registry_put_record(c, lode_result_at(result, i)->metadata))
      shown++;
    else
      c->task->out.len = before; /* a damaged record is left out */
  }
  strbuf_addch(&c->task->out, ']');
  lode_result_free(result);
  return true;
}

/* Drops the collections of this database, or all; those of a project's code index are kept. */
static lode_status tenant_drop_collections(chroma_request *c, bool everything) {
  lode_collection_list *list = NULL;
  lode_str name;
  TRY(lode_collections(c->store, &list, &c->err));
  lode_status st = LODE_OK;
  for (size_t i = 0; st == LODE_OK && i < lode_collection_list_count(list); i++) {
    lode_str full = lode_collection_list_at(list, i)->name;
    bool owned;
    if (!everything && !chroma_local_name(c, full, &name)) continue;
    st = indexer_owns_coll(c->store, full, &owned, &c->err);
    if (st == LODE_OK && !owned) st = lode_collection_drop(c->store, full, &c->err);
    if (st == LODE_NOT_FOUND) st = LODE_OK; /* already dropped by somebody else */
  }
  lode_collection_list_free(list);
  return st;
}

/* Drops the collections first: if this fails halfway, the database still exists and can be deleted again. */
bool chroma_do_delete_database(chroma_request *c) {
  lode_str id = database_id(c, c->task->words[0], c->task->words[1]);
  lode_selection select = {.ids = &id, .n_ids = 1};
  lode_collection *registry = NULL;
  bool exists;
  if (!chroma_database_exists(c, &exists)) return false;
  if (!exists) return tenant_no_database(c);
  lode_status st = tenant_drop_collections(c, false);
  if (st == LODE_OK && !rescue_layout_is_default(c->task->words[0], c->task->words[1])) {
    st = lode_collection_open(c->store, STR_LIT(RESCUE_LAYOUT_REGISTRY), NULL, &registry, &c->err);
    if (st == LODE_OK) st = lode_delete(registry, NULL, &select, NULL, &c->err);
    lode_collection_close(registry);
  }
  return st == LODE_OK ? chroma_respond(c, 200, "{}") : chroma_respond_status(c, st);
}

/* The server has checked that it is allowed. */
bool chroma_do_reset(chroma_request *c) {
  lode_status st = tenant_drop_collections(c, true);
  return st == LODE_OK ? chroma_respond(c, 200, "true") : chroma_respond_status(c, st);
}
