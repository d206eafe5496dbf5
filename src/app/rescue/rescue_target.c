/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_target.c - see rescue_target.h. */
#include "rescue/rescue_target.h"

#include "base/json.h"
#include "rescue/chroma_layout.h"

/* ---- Names ---- */

/* Turns damaged names into valid ones. A / has a meaning in names of collections, and Chroma does not allow it
 * there. */
static void rescue_target_put_clean(strbuf *out, lode_str text, bool slash) {
  for (size_t i = 0; i < text.len && !out->failed;) {
    char ch = text.data[i];
    size_t n = (unsigned char)ch < 0x20 || (ch == '/' && !slash) ? 0 : utf8_width(text.data + i, text.len - i);
    if (n)
      strbuf_add(out, text.data + i, n);
    else
      strbuf_addch(out, '_');
    i += n ? n : 1;
  }
}

static lode_str rescue_target_or_default(lode_str text, const char *fallback) {
  return text.data && text.len ? text : str_of(fallback);
}

/* Truncates at a character boundary. */
static void rescue_target_truncate(strbuf *text, size_t max) {
  if (text->len <= max) return;
  text->len = max;
  while (text->len && !utf8_valid(text->data, text->len)) text->len--;
}

lode_status rescue_target_name(const rescue_coll *coll, mem_arena *arena, lode_str *name, lode_error *err) {
  strbuf tenant = {0}, database = {0}, full = {0};
  rescue_target_put_clean(&tenant, rescue_target_or_default(coll->tenant, "default_tenant"), true);
  rescue_target_put_clean(&database, rescue_target_or_default(coll->database, "default_database"), true);
  lode_str t = {tenant.data, tenant.len}, d = {database.data, database.len};
  bool failed = tenant.failed || database.failed;
  if (!failed && !rescue_layout_is_default(t, d)) rescue_layout_prefix(&full, t, d);
  rescue_target_put_clean(&full, coll->name, false);
  rescue_target_truncate(&full, LODE_MAX_NAME_BYTES);
  *name = (lode_str){mem_arena_copy(arena, full.data, full.len), full.len};
  failed |= full.failed || !name->data;
  strbuf_release(&tenant);
  strbuf_release(&database);
  strbuf_release(&full);
  return failed ? err_nomem(err) : LODE_OK;
}

/* ---- Metadata ---- */

static bool rescue_target_is_object(json_doc *json, lode_str text) {
  return text.data && json_parse(json, text, NULL, NULL) == LODE_OK && json->nodes[0].type == JSON_NODE_OBJECT &&
         json->nodes[0].u.count > 0;
}

/* Appends the collection's metadata as it was, with its configuration under RESCUE_LAYOUT_KEY. */
static lode_status rescue_target_put_metadata(strbuf *out, const rescue_coll *c, lode_error *err) {
  json_doc json = {0};
  strbuf_addch(out, '{');
  if (c->metadata.data) strbuf_add(out, c->metadata.data + 1, c->metadata.len - 2);
  strbuf_addf(out, "%s\"" RESCUE_LAYOUT_KEY "\":{\"configuration\":{\"hnsw\":{\"space\":\"%s\"",
              out->len > 1 ? "," : "", lode_metric_name(c->metric));
  if (c->hnsw_params.data) {
    strbuf_addch(out, ',');
    strbuf_add(out, c->hnsw_params.data, c->hnsw_params.len);
  }
  strbuf_addch(out, '}');
  if (c->function.data) {
    strbuf_addstr(out, ",\"embedding_function\":");
    strbuf_add(out, c->function.data, c->function.len);
  }
  strbuf_addch(out, '}');
  if (rescue_target_is_object(&json, c->schema)) {
    strbuf_addstr(out, ",\"schema\":");
    json_put_node(out, &json, 0);
  }
  strbuf_addstr(out, "}}");
  json_release(&json);
  return out->failed ? err_nomem(err) : LODE_OK;
}

static lode_status rescue_target_check_metric(lode_store *store, const rescue_coll *coll, lode_str name,
                                              lode_error *err) {
  lode_collection_list *list = NULL;
  lode_status st = lode_collections(store, &list, err);
  for (size_t i = 0; st == LODE_OK && i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (str_eq(info->name, name) && info->metric != coll->metric)
      st = err_set(err, LODE_MISMATCH,
                   "the store has a collection %.200s with metric %s, and Chroma's has %s; "
                   "rename or drop the one in the store",
                   name.data, lode_metric_name(info->metric), lode_metric_name(coll->metric));
  }
  lode_collection_list_free(list);
  return st;
}

lode_status rescue_target_open(lode_store *store, const rescue_coll *coll, lode_str name, lode_collection **target,
                               lode_error *err) {
  strbuf metadata = {0};
  lode_status st = LODE_OK;
  TRY_GOTO(rescue_target_check_metric(store, coll, name, err));
  TRY_GOTO(rescue_target_put_metadata(&metadata, coll, err));
  lode_collection_options how = {.create = true, .metric = coll->metric, .metadata = {metadata.data, metadata.len}};
  st = lode_collection_open(store, name, &how, target, err);
done:
  strbuf_release(&metadata);
  return st;
}

/* ---- Tenants and databases ---- */

static lode_status rescue_target_add_database(lode_collection *registry, const rescue_database *it, bool tenant_only,
                                              lode_error *err) {
  strbuf tenant = {0}, name = {0}, id = {0}, metadata = {0};
  rescue_target_put_clean(&tenant, rescue_target_or_default(it->tenant, "default_tenant"), true);
  rescue_target_put_clean(&name, rescue_target_or_default(it->name, "default_database"), true);
  lode_str t = {tenant.data, tenant.len}, d = {name.data, name.len};
  bool skip = tenant.failed || name.failed ||
              (tenant_only ? str_eq(t, STR_LIT("default_tenant")) : rescue_layout_is_default(t, d));
  lode_status st = tenant.failed || name.failed ? err_nomem(err) : LODE_OK;
  if (skip) goto done;
  if (tenant_only) {
    rescue_layout_tenant_id(&id, t);
    rescue_layout_tenant(&metadata, t);
  } else {
    rescue_layout_database_id(&id, t, d);
    rescue_layout_database(&metadata, t, d, it->id);
  }
  if (id.failed || metadata.failed) st = err_nomem(err);
  lode_record record = {.id = {id.data, id.len}, .metadata = {metadata.data, metadata.len}};
  if (st == LODE_OK && id.len <= LODE_MAX_ID_BYTES)
    st = lode_add(registry, NULL, &record, 1, LODE_KEEP_EXISTING, NULL, err);
done:
  strbuf_release(&tenant);
  strbuf_release(&name);
  strbuf_release(&id);
  strbuf_release(&metadata);
  return st;
}

lode_status rescue_target_databases(lode_store *store, const rescue_dir *c, lode_error *err) {
  lode_collection *registry = NULL;
  lode_status st = LODE_OK;
  for (size_t i = 0; i < c->n_databases; i++) {
    const rescue_database *it = &c->databases[i];
    lode_str name = rescue_target_or_default(it->name, "default_database");
    lode_str tenant = rescue_target_or_default(it->tenant, "default_tenant");
    if (rescue_layout_is_default(tenant, name)) continue;
    if (!registry) {
      lode_collection_options how = {.create = true};
      TRY_GOTO(lode_collection_open(store, STR_LIT(RESCUE_LAYOUT_REGISTRY), &how, &registry, err));
    }
    TRY_GOTO(rescue_target_add_database(registry, it, true, err));
    if (it->id.data) TRY_GOTO(rescue_target_add_database(registry, it, false, err));
  }
done:
  lode_collection_close(registry);
  return st;
}
