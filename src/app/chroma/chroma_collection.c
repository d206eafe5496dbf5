/* SPDX-License-Identifier: Apache-2.0 */
/* chroma_collection.c - collections of Chroma's API: create, list, get, update, delete. See chroma.h. */
#include "chroma/chroma.h"
#include "indexer/index_owned.h"
#include "ops/op_target.h"

#include <arpa/inet.h>

/* ---- Ids ---- */

/* 48 check bits: a UUID without them is not one of ours. */
static uint64_t uuid_check_bits(uint64_t uid) {
  uint64_t x = uid ^ UINT64_C(0x6c6f64652d756964);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return (x ^ x >> 31) & UINT64_C(0xffffffffffff);
}

void chroma_uuid_format(uint64_t uid, char text[CHROMA_UUID_BYTES]) {
  snprintf(text, CHROMA_UUID_BYTES, "%08x-%04x-8%03x-800%x-%012llx", (unsigned)(uid >> 32),
           (unsigned)(uid >> 16 & 0xffff), (unsigned)(uid >> 4 & 0xfff), (unsigned)(uid & 0xf),
           (unsigned long long)uuid_check_bits(uid));
}

static bool uuid_parse(lode_str text, uint64_t *uid) {
  static const char digits[] = "0123456789abcdef";
  char want[CHROMA_UUID_BYTES], low[CHROMA_UUID_BYTES];
  uint64_t value = 0;
  if (text.len != CHROMA_UUID_BYTES - 1) return false;
  for (size_t i = 0; i < text.len; i++)
    low[i] = (char)(text.data[i] >= 'A' && text.data[i] <= 'F' ? text.data[i] + 32 : text.data[i]);
  for (size_t i = 0; i < 23; i++) {
    if (i == 8 || i == 13 || i == 14 || (i >= 18 && i < 22)) continue; /* dashes, version, variant */
    const char *at = low[i] ? strchr(digits, low[i]) : NULL;
    if (!at) return false;
    value = value << 4 | (uint64_t)(at - digits);
  }
  chroma_uuid_format(value, want);
  *uid = value;
  return memcmp(want, low, CHROMA_UUID_BYTES - 1) == 0;
}

/* ---- Names ---- */

static bool is_default_database(const chroma_request *c) {
  return rescue_layout_is_default(c->task->words[0], c->task->words[1]);
}

/* "TENANT/DATABASE/NAME" or the plain name. */
static lode_str coll_full_name(chroma_request *c, lode_str name) {
  strbuf full = {0};
  lode_str copy = {0};
  if (is_default_database(c)) return name;
  rescue_layout_prefix(&full, c->task->words[0], c->task->words[1]);
  strbuf_add(&full, name.data, name.len);
  if (!full.failed) copy = (lode_str){mem_arena_copy(&c->arena, full.data, full.len), full.len};
  strbuf_release(&full);
  return copy;
}

bool chroma_local_name(const chroma_request *c, lode_str full, lode_str *name) {
  strbuf prefix = {0};
  *name = full;
  if (is_default_database(c))
    return !memchr(full.data, '/', full.len) && !str_eq(full, STR_LIT(RESCUE_LAYOUT_REGISTRY));
  rescue_layout_prefix(&prefix, c->task->words[0], c->task->words[1]);
  bool own = !prefix.failed && full.len > prefix.len && memcmp(full.data, prefix.data, prefix.len) == 0;
  if (own) *name = (lode_str){full.data + prefix.len, full.len - prefix.len};
  strbuf_release(&prefix);
  return own;
}

/* What lode_reembed() makes aside is nothing that clients know. */
static bool coll_is_shown(const chroma_request *c, lode_str full, lode_str *name) {
  lode_str of;
  return chroma_local_name(c, full, name) && !op_is_reembed(full, &of);
}

static bool is_ascii_alnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Chroma refuses names that look like an IPv4 address. */
static bool looks_like_ipv4(lode_str name) {
  char text[INET_ADDRSTRLEN];
  struct in_addr unused;
  if (name.len >= sizeof text) return false;
  memcpy(text, name.data, name.len);
  text[name.len] = '\0';
  return inet_pton(AF_INET, text, &unused) == 1;
}

bool chroma_check_name(chroma_request *c, const char *field, lode_str name) {
  bool good =
      name.len >= 3 && name.len <= 512 && is_ascii_alnum(name.data[0]) && is_ascii_alnum(name.data[name.len - 1]);
  for (size_t i = 0; good && i < name.len; i++)
    good = is_ascii_alnum(name.data[i]) ||
           (strchr("._-", name.data[i]) && !(name.data[i] == '.' && name.data[i - 1] == '.'));
  good = good && !looks_like_ipv4(name);
  char quoted[256];
  return good ||
         chroma_invalid(c,
                        "%sExpected a name containing 3-512 characters from [a-zA-Z0-9._-], starting and ending with a "
                        "character in [a-zA-Z0-9], without two periods in a row, and no IP address. Got: %s",
                        field, str_quote(name, quoted, sizeof quoted));
}

/* ---- Lookup ---- */

/* Result of coll_find, which searches by uid, or by name if uid is 0. */
typedef struct coll_lookup {
  lode_collection_list *list;
  const lode_collection_info *info;
} coll_lookup;

static bool coll_find(chroma_request *c, lode_str full, uint64_t uid, coll_lookup *f) {
  *f = (coll_lookup){0};
  lode_status st = lode_collections(c->store, &f->list, &c->err);
  if (st != LODE_OK) return chroma_respond_status(c, st);
  for (size_t i = 0; !f->info && i < lode_collection_list_count(f->list); i++) {
    const lode_collection_info *info = lode_collection_list_at(f->list, i);
    if (uid ? info->uid == uid : str_eq(info->name, full)) f->info = info;
  }
  return true;
}

static void coll_lookup_release(coll_lookup *f) { lode_collection_list_free(f->list); }

bool chroma_no_collection(chroma_request *c) {
  char quoted[256];
  lode_str name = c->task->words[2];
  str_quote(name, quoted, sizeof quoted);
  size_t n = strlen(quoted);
  return chroma_respond_error(c, 404, "NotFoundError", "Collection [%.*s] does not exist", (int)(n > 2 ? n - 2 : 0),
                              quoted + 1);
}

static bool coll_looks_like_uuid(lode_str text) {
  size_t digits = 0;
  for (size_t i = 0; i < text.len; i++) {
    char x = text.data[i];
    bool dash = text.len == 36 && (i == 8 || i == 13 || i == 18 || i == 23);
    if (dash ? x != '-' : !((x >= '0' && x <= '9') || (x >= 'a' && x <= 'f') || (x >= 'A' && x <= 'F'))) return false;
    digits += !dash;
  }
  return digits == 32;
}

bool chroma_coll_uid(chroma_request *c, uint64_t *uid) {
  if (!chroma_check_database(c)) return false;
  if (uuid_parse(c->task->words[2], uid)) return true;
  return coll_looks_like_uuid(c->task->words[2]) ? chroma_no_collection(c)
                                                 : chroma_invalid(c, "Collection ID is not a valid UUIDv4");
}

/* As with Chroma, the id alone says which collection it is: tenant and database of the path are not looked at. */
bool chroma_coll_acquire(chroma_request *c, worker_handle **handle) {
  uint64_t uid;
  *handle = NULL;
  if (!chroma_coll_uid(c, &uid)) return false;
  lode_status st = worker_handles_acquire(worker_stores_handles(c->task->shared), c->store, uid, handle, &c->err);
  if (st == LODE_NOT_FOUND) return chroma_no_collection(c);
  if (st != LODE_OK) return chroma_respond_status(c, st);
  bool ok = !str_eq((*handle)->name, STR_LIT(RESCUE_LAYOUT_REGISTRY)) ? chroma_schema_allows(c, (*handle)->metadata)
                                                                      : chroma_no_collection(c);
  if (ok) return true;
  chroma_coll_release(c, *handle, LODE_OK);
  *handle = NULL;
  return false;
}

lode_status chroma_check_may_change(chroma_request *c, lode_str full) {
  return indexer_guard_request(c->store, worker_stores_folder(c->task->shared), full, &c->err);
}

void chroma_coll_release(chroma_request *c, worker_handle *handle, lode_status last) {
  worker_handles_release(worker_stores_handles(c->task->shared), handle, last == LODE_NOT_FOUND);
}

/* ---- JSON of a collection ---- */

/* Writes the members of an object except `but`; false if there are none. */
static bool coll_put_members(strbuf *out, const json_doc *json, uint32_t node, const char *but) {
  bool any = false;
  for (uint32_t i = node + 1; i < json->nodes[node].next; i = json->nodes[i + 1].next) {
    if (but && str_eq(json->nodes[i].u.s, str_of(but))) continue;
    if (any) strbuf_addch(out, ',');
    json_put_node(out, json, i);
    strbuf_addch(out, ':');
    json_put_node(out, json, i + 1);
    any = true;
  }
  return any;
}

static bool coll_parse_metadata(chroma_request *c, const lode_collection_info *info, json_doc *json) {
  if (!info->metadata.data) return true;
  lode_status st = json_parse(json, info->metadata, NULL, &c->err);
  return st == LODE_OK || chroma_respond_status(c, st);
}

static bool coll_put_json(chroma_request *c, const lode_collection_info *info, lode_str name) {
  strbuf *out = &c->task->out;
  json_doc json = {0};
  chroma_config config;
  char id[CHROMA_UUID_BYTES];
  if (!coll_parse_metadata(c, info, &json)) return false;
  uint32_t own = json.count ? json_get(&json, 0, STR_LIT(RESCUE_LAYOUT_KEY)) : 0;
  chroma_config_load(c, &json, own, info->metric, &config);
  chroma_uuid_format(info->uid, id);
  strbuf_addf(out, "{\"id\":\"%s\",\"name\":", id);
  json_put_string(out, name);
  strbuf_addstr(out, ",\"configuration_json\":");
  chroma_config_put(out, &config);
  strbuf_addstr(out, ",\"schema\":");
  chroma_schema_put(out, &config);
  strbuf_addstr(out, ",\"metadata\":");
  size_t at = out->len;
  strbuf_addch(out, '{');
  if (json.count && coll_put_members(out, &json, 0, RESCUE_LAYOUT_KEY)) {
    strbuf_addch(out, '}');
  } else {
    out->len = at;
    strbuf_addstr(out, "null");
  }
  if (info->dimension)
    strbuf_addf(out, ",\"dimension\":%u", info->dimension);
  else
    strbuf_addstr(out, ",\"dimension\":null");
  strbuf_addstr(out, ",\"tenant\":");
  json_put_string(out, c->task->words[0]);
  strbuf_addstr(out, ",\"database\":");
  json_put_string(out, c->task->words[1]);
  strbuf_addstr(out, ",\"log_position\":0,\"version\":0}");
  json_release(&json);
  return true;
}

static bool coll_respond(chroma_request *c, lode_str full, uint64_t uid) {
  coll_lookup f;
  lode_str name;
  if (!coll_find(c, full, uid, &f)) return false;
  bool ok = f.info && coll_is_shown(c, f.info->name, &name) ? coll_put_json(c, f.info, name) : chroma_no_collection(c);
  coll_lookup_release(&f);
  return ok;
}

bool chroma_do_get_collection(chroma_request *c) {
  lode_str full = coll_full_name(c, c->task->words[2]);
  return full.data ? coll_respond(c, full, 0) : chroma_respond_status(c, err_nomem(&c->err));
}

bool chroma_do_get_collection_by_id(chroma_request *c) {
  uint64_t uid;
  return chroma_coll_uid(c, &uid) && coll_respond(c, (lode_str){0}, uid);
}

/* ---- Listing ---- */

/* limit and offset of the query string. */
static bool coll_page_params(chroma_request *c, size_t first, uint64_t *limit, uint64_t *offset) {
  lode_str l = c->task->words[first], o = c->task->words[first + 1];
  *limit = UINT64_MAX;
  *offset = 0;
  if (l.len && !op_parse_uint(l, limit)) return chroma_invalid(c, "limit must be a number");
  if (o.len && !op_parse_uint(o, offset)) return chroma_invalid(c, "offset must be a number");
  return true;
}

bool chroma_do_list_collections(chroma_request *c) {
  uint64_t limit, offset, shown = 0;
  lode_collection_list *list = NULL;
  bool ok = true;
  if (!coll_page_params(c, 2, &limit, &offset)) return false;
  lode_status st = lode_collections(c->store, &list, &c->err);
  if (st != LODE_OK) return chroma_respond_status(c, st);
  strbuf_addch(&c->task->out, '[');
  for (size_t i = 0; ok && shown < limit && i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    lode_str name;
    if (!coll_is_shown(c, info->name, &name)) continue;
    if (offset) {
      offset--;
      continue;
    }
    if (shown++) strbuf_addch(&c->task->out, ',');
    ok = coll_put_json(c, info, name);
  }
  if (ok) strbuf_addch(&c->task->out, ']');
  lode_collection_list_free(list);
  return ok;
}

bool chroma_do_count_collections(chroma_request *c) {
  lode_collection_list *list = NULL;
  size_t n = 0;
  lode_str name;
  lode_status st = lode_collections(c->store, &list, &c->err);
  if (st != LODE_OK) return chroma_respond_status(c, st);
  for (size_t i = 0; i < lode_collection_list_count(list); i++)
    n += coll_is_shown(c, lode_collection_list_at(list, i)->name, &name);
  lode_collection_list_free(list);
  strbuf_addf(&c->task->out, "%zu", n);
  return true;
}

/* ---- Create, update, delete ---- */

/* The metadata to store: the user's and ours. `users` is an object of `json`, ignored unless has_users. */
static lode_str coll_stored_metadata(chroma_request *c, const json_doc *json, uint32_t users, bool has_users,
                                     const chroma_config *config) {
  strbuf out = {0};
  lode_str copy = {0};
  strbuf_addch(&out, '{');
  if (has_users && coll_put_members(&out, json, users, RESCUE_LAYOUT_KEY)) strbuf_addch(&out, ',');
  strbuf_addstr(&out, "\"" RESCUE_LAYOUT_KEY "\":");
  chroma_config_store(&out, config);
  strbuf_addch(&out, '}');
  if (!out.failed) copy = (lode_str){mem_arena_copy(&c->arena, out.data, out.len), out.len};
  strbuf_release(&out);
  return copy;
}

/* Allows scalars and lists under keys that are not reserved. */
static bool coll_check_metadata(chroma_request *c, uint32_t node) {
  if (chroma_body_node(c, node)->type != JSON_NODE_OBJECT) return chroma_bad_shape(c, "the metadata must be an object");
  if (chroma_body_node(c, node)->u.count == 0)
    return chroma_invalid(c, "Validation error: metadata: Metadata cannot be empty");
  for (uint32_t i = node + 1; i < chroma_body_node(c, node)->next; i = chroma_body_node(c, i + 1)->next) {
    lode_str key = chroma_body_node(c, i)->u.s;
    if (!chroma_check_value(c, i + 1, false)) return false;
    if (key.len == 0 || key.data[0] == '$' || key.data[0] == '#')
      return chroma_invalid(c, "a metadata key may not be empty or begin with $ or #");
  }
  return true;
}

/* Creates or opens it and responds with what there is. Somebody may drop it in between: then it is done again. */
static bool coll_create(chroma_request *c, lode_str full, const lode_collection_options *options) {
  enum { ATTEMPTS = 100 };
  lode_str name = c->task->words[2];
  lode_status st = chroma_check_may_change(c, full);
  for (int i = 0; st == LODE_OK && i < ATTEMPTS; i++) {
    lode_collection *made = NULL;
    coll_lookup f;
    st = lode_collection_open(c->store, full, options, &made, &c->err);
    lode_collection_close(made);
    if (st == LODE_NOT_FOUND) st = LODE_OK; /* dropped while it was opened */
    if (st != LODE_OK) break;
    if (!coll_find(c, full, 0, &f)) return false;
    bool found = f.info != NULL, ok = found && coll_put_json(c, f.info, name);
    coll_lookup_release(&f);
    if (found) return ok;
  }
  if (st == LODE_EXISTS)
    return chroma_respond_error(c, 409, "ChromaError", "Collection [%.*s] already exists", (int)name.len, name.data);
  return st == LODE_OK ? chroma_no_collection(c) : chroma_respond_status(c, st);
}

bool chroma_do_create_collection(chroma_request *c) {
  uint32_t name_node = chroma_body_key(c, 0, "name"), metadata = chroma_body_key(c, 0, "metadata"),
           again = json_get(&c->json, 0, STR_LIT("get_or_create")); /* null is none of the two */
  chroma_config config;
  bool exists;
  if (!name_node || chroma_body_node(c, name_node)->type != JSON_NODE_STRING)
    return chroma_bad_shape(c, "name must be a string");
  lode_str name = chroma_body_node(c, name_node)->u.s, full = coll_full_name(c, name);
  bool reuse = again && chroma_body_node(c, again)->type == JSON_NODE_TRUE;
  if (again && !reuse && chroma_body_node(c, again)->type != JSON_NODE_FALSE)
    return chroma_bad_shape(c, "get_or_create must be true or false");
  if ((metadata && !coll_check_metadata(c, metadata)) || !chroma_config_new(c, &config) ||
      !chroma_check_name(c, "Validation error: name: ", name) || !chroma_check_database(c) ||
      !chroma_database_exists(c, &exists))
    return false;
  if (!exists)
    return chroma_invalid(c, "Database [%.*s] does not exist", (int)c->task->words[1].len, c->task->words[1].data);
  lode_collection_options options = {.create = true,
                                     .must_create = !reuse,
                                     .metric = config.metric,
                                     .metadata = coll_stored_metadata(c, &c->json, metadata, metadata != 0, &config)};
  if (!full.data || !options.metadata.data) return chroma_respond_status(c, err_nomem(&c->err));
  c->task->words[2] = name;
  return coll_create(c, full, &options);
}

static bool coll_apply_changes(chroma_request *c, const lode_collection_info *info, lode_str own) {
  uint32_t name_node = chroma_body_key(c, 0, "new_name"), given = chroma_body_key(c, 0, "new_metadata");
  lode_str name = own, text, full = info->name;
  chroma_config config;
  json_doc old = {0};
  bool ok = false;
  lode_status st = LODE_OK;
  if (name_node) name = chroma_body_node(c, name_node)->u.s;
  if ((name_node && !chroma_check_name(c, "Validation error: new_name: ", name)) ||
      (given && !coll_check_metadata(c, given)) || !coll_parse_metadata(c, info, &old))
    return false;
  uint32_t kept = old.count ? json_get(&old, 0, STR_LIT(RESCUE_LAYOUT_KEY)) : 0;
  chroma_config_load(c, &old, kept, info->metric, &config);
  if (!chroma_config_update(c, &config)) goto done;
  text = given ? coll_stored_metadata(c, &c->json, given, true, &config)
               : coll_stored_metadata(c, &old, 0, old.count != 0, &config);
  if (name_node) full = coll_full_name(c, name);
  if (!text.data || !full.data) {
    chroma_respond_status(c, err_nomem(&c->err));
    goto done;
  }
  st = chroma_check_may_change(c, info->name); /* the index is found by its name and metadata */
  if (st == LODE_OK) st = chroma_check_may_change(c, full);
  if (st == LODE_OK && !str_eq(full, info->name)) st = lode_collection_rename(c->store, info->name, full, &c->err);
  if (st == LODE_OK) st = lode_collection_set_metadata(c->store, full, text, &c->err);
  if (st == LODE_EXISTS)
    chroma_respond_error(c, 409, "ChromaError", "Collection [%.*s] already exists", (int)name.len, name.data);
  else if (st != LODE_OK)
    chroma_respond_status(c, st);
  else
    ok = chroma_respond(c, 200, "{}");
done:
  json_release(&old);
  return ok;
}

/* What Chroma refuses before it looks for the collection. */
static bool coll_check_changes(chroma_request *c) {
  uint32_t name = chroma_body_key(c, 0, "new_name"), metadata = chroma_body_key(c, 0, "new_metadata");
  if (name && chroma_body_node(c, name)->type != JSON_NODE_STRING)
    return chroma_bad_shape(c, "new_name must be a string");
  if (metadata && chroma_body_node(c, metadata)->type != JSON_NODE_OBJECT)
    return chroma_bad_shape(c, "new_metadata must be an object");
  return chroma_config_check_update(c);
}

bool chroma_do_update_collection(chroma_request *c) {
  uint64_t uid;
  coll_lookup f;
  lode_str name;
  if (!coll_check_changes(c) || !chroma_coll_uid(c, &uid) || !coll_find(c, (lode_str){0}, uid, &f)) return false;
  bool ok =
      f.info && coll_is_shown(c, f.info->name, &name) ? coll_apply_changes(c, f.info, name) : chroma_no_collection(c);
  coll_lookup_release(&f);
  return ok;
}

bool chroma_do_delete_collection(chroma_request *c) {
  lode_str full = coll_full_name(c, c->task->words[2]);
  if (!full.data) return chroma_respond_status(c, err_nomem(&c->err));
  if (str_eq(full, STR_LIT(RESCUE_LAYOUT_REGISTRY))) return chroma_no_collection(c);
  lode_status st = chroma_check_may_change(c, full);
  if (st == LODE_OK) st = lode_collection_drop(c->store, full, &c->err);
  if (st == LODE_OK) st = op_drop_reembed(c->store, full, &c->err);
  if (st == LODE_NOT_FOUND) return chroma_no_collection(c);
  return st == LODE_OK ? chroma_respond(c, 200, "{}") : chroma_respond_status(c, st);
}
