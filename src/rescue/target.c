/* target.c - see target.h. */
#include "target.h"

#include "base/json.h"
#include "kept.h"

/* ---- Names ---- */

/* Damaged names become names. A / means something, and Chroma allows none. */
static void put_clean(lode__buf *out, lode_str text, bool slash) {
  for (size_t i = 0; i < text.len && !out->failed;) {
    char ch = text.data[i];
    size_t n = (unsigned char)ch < 0x20 || (ch == '/' && !slash) ? 0 : lode__utf8_width(text.data + i, text.len - i);
    if (n) lode__buf_add(out, text.data + i, n);
    else lode__buf_addc(out, '_');
    i += n ? n : 1;
  }
}

static lode_str or_usual(lode_str text, const char *usual) { return text.data && text.len ? text : lode__str(usual); }

/* Ended at a whole character. */
static void cut(lode__buf *text, size_t most) {
  if (text->len <= most) return;
  text->len = most;
  while (text->len && !lode__utf8_valid(text->data, text->len)) text->len--;
}

lode_status lode__rescue_name(const lode__chroma_coll *coll, lode__arena *arena, lode_str *name, lode_error *err) {
  lode__buf tenant = {0}, database = {0}, full = {0};
  put_clean(&tenant, or_usual(coll->tenant, "default_tenant"), true);
  put_clean(&database, or_usual(coll->database, "default_database"), true);
  lode_str t = {tenant.data, tenant.len}, d = {database.data, database.len};
  bool failed = tenant.failed || database.failed;
  if (!failed && !lode__kept_usual(t, d)) lode__kept_prefix(&full, t, d);
  put_clean(&full, coll->name, false);
  cut(&full, LODE_MAX_NAME_BYTES);
  *name = (lode_str){lode__arena_copy(arena, full.data, full.len), full.len};
  failed |= full.failed || !name->data;
  lode__buf_release(&tenant);
  lode__buf_release(&database);
  lode__buf_release(&full);
  return failed ? lode__fail_nomem(err) : LODE_OK;
}

/* ---- Metadata ---- */

static bool is_object(lode__json *json, lode_str text) {
  return text.data && lode__json_parse(json, text, NULL, NULL) == LODE_OK && json->nodes[0].type == LODE__JSON_OBJECT && json->nodes[0].u.count > 0;
}

/* The collection's metadata as it was, and its configuration under a key of its own. */
static lode_status put_metadata(lode__buf *out, const lode__chroma_coll *c, lode_error *err) {
  lode__json json = {0};
  lode__buf_addc(out, '{');
  if (c->metadata.data) lode__buf_add(out, c->metadata.data + 1, c->metadata.len - 2);
  lode__buf_addf(out, "%s\"" LODE__CHROMA_KEY "\":{\"configuration\":{\"hnsw\":{\"space\":\"%s\"", out->len > 1 ? "," : "", lode_metric_name(c->metric));
  if (c->figures.data) {
    lode__buf_addc(out, ',');
    lode__buf_add(out, c->figures.data, c->figures.len);
  }
  lode__buf_addc(out, '}');
  if (c->function.data) {
    lode__buf_adds(out, ",\"embedding_function\":");
    lode__buf_add(out, c->function.data, c->function.len);
  }
  lode__buf_addc(out, '}');
  if (is_object(&json, c->schema)) {
    lode__buf_adds(out, ",\"schema\":");
    lode__json_put_node(out, &json, 0);
  }
  lode__buf_adds(out, "}}");
  lode__json_release(&json);
  return out->failed ? lode__fail_nomem(err) : LODE_OK;
}

static lode_status check_metric(lode_store *store, const lode__chroma_coll *coll, lode_str name, lode_error *err) {
  lode_collection_list *list = NULL;
  lode_status st = lode_collections(store, &list, err);
  for (size_t i = 0; st == LODE_OK && i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (lode__str_eq(info->name, name) && info->metric != coll->metric)
      st = lode__fail(err, LODE_MISMATCH, "the store has a collection %.200s with metric %s, and Chroma's has %s; rename or drop the one in the store",
                      name.data, lode_metric_name(info->metric), lode_metric_name(coll->metric));
  }
  lode_collection_list_free(list);
  return st;
}

lode_status lode__rescue_target(lode_store *store, const lode__chroma_coll *coll, lode_str name, lode_collection **target, lode_error *err) {
  lode__buf metadata = {0};
  lode_status st = LODE_OK;
  LODE__GOTO(check_metric(store, coll, name, err));
  LODE__GOTO(put_metadata(&metadata, coll, err));
  lode_collection_options how = {.create = true, .metric = coll->metric, .metadata = {metadata.data, metadata.len}};
  st = lode_collection_open(store, name, &how, target, err);
done:
  lode__buf_release(&metadata);
  return st;
}

/* ---- Tenants and databases ---- */

static lode_status add_place(lode_collection *registry, const lode__chroma_database *it, bool tenant_only, lode_error *err) {
  lode__buf tenant = {0}, name = {0}, id = {0}, metadata = {0};
  put_clean(&tenant, or_usual(it->tenant, "default_tenant"), true);
  put_clean(&name, or_usual(it->name, "default_database"), true);
  lode_str t = {tenant.data, tenant.len}, d = {name.data, name.len};
  bool known = tenant.failed || name.failed || (tenant_only ? lode__str_eq(t, LODE__LIT("default_tenant")) : lode__kept_usual(t, d));
  lode_status st = tenant.failed || name.failed ? lode__fail_nomem(err) : LODE_OK;
  if (known) goto done;
  if (tenant_only) {
    lode__kept_tenant_id(&id, t);
    lode__kept_tenant(&metadata, t);
  } else {
    lode__kept_database_id(&id, t, d);
    lode__kept_database(&metadata, t, d, it->id);
  }
  if (id.failed || metadata.failed) st = lode__fail_nomem(err);
  lode_record record = {.id = {id.data, id.len}, .metadata = {metadata.data, metadata.len}};
  if (st == LODE_OK && id.len <= LODE_MAX_ID_BYTES) st = lode_add(registry, NULL, &record, 1, LODE_KEEP_EXISTING, NULL, err);
done:
  lode__buf_release(&tenant);
  lode__buf_release(&name);
  lode__buf_release(&id);
  lode__buf_release(&metadata);
  return st;
}

lode_status lode__rescue_databases(lode_store *store, const lode__chroma *c, lode_error *err) {
  lode_collection *registry = NULL;
  lode_status st = LODE_OK;
  for (size_t i = 0; i < c->n_databases; i++) {
    const lode__chroma_database *it = &c->databases[i];
    lode_str name = or_usual(it->name, "default_database"), tenant = or_usual(it->tenant, "default_tenant");
    if (lode__kept_usual(tenant, name)) continue;
    if (!registry) {
      lode_collection_options how = {.create = true};
      LODE__GOTO(lode_collection_open(store, LODE__LIT(LODE__CHROMA_REGISTRY), &how, &registry, err));
    }
    LODE__GOTO(add_place(registry, it, true, err));
    if (it->id.data) LODE__GOTO(add_place(registry, it, false, err));
  }
done:
  lode_collection_close(registry);
  return st;
}
