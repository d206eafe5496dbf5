/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_palace_identity.c - which model made the vectors of a palace's collections.
 *
 * MemPalace keeps it in mempalace_embedder.json: {"COLLECTION": {"model_name": .., "dimension": ..}}. Lode's backend
 * keeps it in the collection's metadata, under PALACE_IDENTITY_KEY (bindings/python/lode/mempalace.py).
 */
#include "base/json.h"
#include "os/beneath.h"
#include "os/os.h"
#include "rescue/rescue.h"

#define PALACE_IDENTITY_KEY "palace:embedder"

enum { PALACE_MAX_IDENTITY_BYTES = 1 << 20 };

/* A palace without the file has none: *text stays empty. */
static lode_status identity_read(const char *from, strbuf *text, lode_error *err) {
  struct stat st;
  size_t got = 0;
  int fd = os_keep_regular(beneath_open(from, "mempalace_embedder.json", O_RDONLY | O_NONBLOCK, 0));
  if (fd < 0) return errno == ENOENT ? LODE_OK : err_errno(err, errno, "mempalace_embedder.json");
  lode_status status = LODE_OK;
  if (os_api->fstat(fd, &st) != 0)
    status = err_errno(err, errno, "mempalace_embedder.json");
  else if (st.st_size > PALACE_MAX_IDENTITY_BYTES)
    status = err_set(err, LODE_REFUSED, "mempalace_embedder.json is too large to be what its name says");
  else if (!strbuf_reserve(text, (size_t)st.st_size + 1))
    status = err_nomem(err);
  else
    status = os_read_full(fd, text->data, (size_t)st.st_size, 0, &got, err);
  text->len = got;
  (void)os_api->close(fd);
  return status;
}

/* The collection's metadata with the identity; nothing if it has one. */
static lode_status identity_put(const json_doc *all, uint32_t entry, const lode_collection_info *info, strbuf *out,
                                lode_error *err) {
  json_doc old = {0};
  lode_status st = info->metadata.data ? json_parse(&old, info->metadata, NULL, err) : LODE_OK;
  out->len = 0;
  bool known = st == LODE_OK && old.count && json_get(&old, 0, STR_LIT(PALACE_IDENTITY_KEY));
  if (st == LODE_OK && !known) {
    strbuf_addstr(out, "{\"" PALACE_IDENTITY_KEY "\":");
    json_put_node(out, all, entry);
    if (old.count && old.nodes[0].u.count) {
      strbuf_addch(out, ',');
      strbuf_add(out, info->metadata.data + 1, info->metadata.len - 1);
    } else {
      strbuf_addch(out, '}');
    }
    if (out->failed) st = err_nomem(err);
  }
  json_release(&old);
  return st;
}

static lode_status identity_set_all(const json_doc *all, lode_store *store, uint64_t *named, lode_error *err) {
  lode_collection_list *list;
  strbuf metadata = {0};
  TRY(lode_collections(store, &list, err));
  lode_status st = LODE_OK;
  for (size_t i = 0; i < lode_collection_list_count(list) && st == LODE_OK; i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    uint32_t entry = json_get(all, 0, info->name);
    uint32_t model =
        entry && all->nodes[entry].type == JSON_NODE_OBJECT ? json_get(all, entry, STR_LIT("model_name")) : 0;
    if (!model || all->nodes[model].type != JSON_NODE_STRING) continue;
    st = identity_put(all, entry, info, &metadata, err);
    if (st == LODE_OK && metadata.len)
      st = lode_collection_set_metadata(store, info->name, (lode_str){metadata.data, metadata.len}, err);
    *named += st == LODE_OK;
  }
  strbuf_release(&metadata);
  lode_collection_list_free(list);
  return st;
}

lode_status rescue_palace_identity(const char *from, lode_store *store, uint64_t *named, lode_error *err) {
  strbuf text = {0};
  json_doc all = {0};
  *named = 0;
  lode_status st = identity_read(from, &text, err);
  if (st == LODE_OK && text.len) {
    /* A damaged file says nothing; MemPalace treats it the same way. */
    st = json_parse(&all, (lode_str){text.data, text.len}, NULL, NULL);
    if (st == LODE_OK && all.nodes[0].type == JSON_NODE_OBJECT) st = identity_set_all(&all, store, named, err);
    if (st == LODE_INVALID || st == LODE_LIMIT) st = LODE_OK;
  }
  json_release(&all);
  strbuf_release(&text);
  return st;
}
