/* SPDX-License-Identifier: Apache-2.0 */
/* vector_search.c - see vector_search.h. */
#include "setup/vector_search.h"

#include "base/json.h"
#include "scan/files.h"

enum { VECTOR_SEARCH_MAX_BYTES = 1 << 20, VECTOR_SEARCH_ALL_EXTENSIONS = 40, VECTOR_SEARCH_MAX_WORDS = 1000 };

void setup_vector_search_release(setup_vector_search *found) {
  strbuf_release(&found->extensions);
  strbuf_release(&found->include);
  strbuf_release(&found->embedding_model);
}

/* Words of a list without what would end them in our settings; others are left out. */
static void vector_search_put_words(strbuf *out, const json_doc *json, uint32_t list, const char *before) {
  size_t n = 0;
  if (!list || json->nodes[list].type != JSON_NODE_ARRAY) return;
  for (uint32_t i = list + 1; i < json->nodes[list].next && n < VECTOR_SEARCH_MAX_WORDS; i = json->nodes[i].next) {
    lode_str word = json->nodes[i].type == JSON_NODE_STRING ? json->nodes[i].u.s : (lode_str){0};
    bool plain = word.len > 0;
    for (size_t k = 0; k < word.len && plain; k++)
      plain = (unsigned char)word.data[k] > ' ' && word.data[k] != ',' && word.data[k] != 0x7f;
    if (!plain) continue;
    strbuf_addf(out, "%s%s%.*s", out->len ? ", " : "", before, (int)word.len, word.data);
    n++;
  }
}

static bool vector_search_flag(const json_doc *json, const char *key, bool fallback) {
  uint32_t node = json_get(json, 0, str_of(key));
  json_node_type type = node ? json->nodes[node].type : JSON_NODE_NULL;
  return type == JSON_NODE_TRUE || (type != JSON_NODE_FALSE && fallback);
}

static lode_status vector_search_take(setup_vector_search *found, const json_doc *json, lode_error *err) {
  uint32_t list = json_get(json, 0, STR_LIT("file_extensions")), model = json_get(json, 0, STR_LIT("embedding_model"));
  /* a long list is the one that it writes when nobody chose */
  if (list && json->nodes[list].type == JSON_NODE_ARRAY && json->nodes[list].u.count < VECTOR_SEARCH_ALL_EXTENSIONS)
    vector_search_put_words(&found->extensions, json, list, "");
  vector_search_put_words(&found->include, json, json_get(json, 0, STR_LIT("force_include_paths")), "!");
  vector_search_put_words(&found->include, json, json_get(json, 0, STR_LIT("force_include_patterns")), "!");
  found->hidden = !vector_search_flag(json, "skip_dotfiles", true);
  found->without_git = !vector_search_flag(json, "respect_gitignore", true);
  if (model && json->nodes[model].type == JSON_NODE_STRING)
    strbuf_add(&found->embedding_model, json->nodes[model].u.s.data, json->nodes[model].u.s.len);
  strbuf_addch(&found->embedding_model, '\0');
  found->found = true;
  bool failed = found->extensions.failed || found->include.failed || found->embedding_model.failed;
  return failed ? err_nomem(err) : LODE_OK;
}

lode_status setup_vector_search_read(const char *root, setup_vector_search *found, lode_error *err) {
  static const char path[] = ".mcp-vector-search/config.json";
  strbuf text = {0};
  json_doc json = {0};
  memset(found, 0, sizeof *found);
  lode_status st = files_read_beneath(root, path, VECTOR_SEARCH_MAX_BYTES, &text, err);
  if (st == LODE_NOT_FOUND) {
    err_clear(err);
    st = LODE_OK;
    goto done;
  }
  if (st == LODE_OK) st = json_parse(&json, (lode_str){text.data ? text.data : "", text.len}, NULL, err);
  if (st == LODE_OK && json.nodes[0].type != JSON_NODE_OBJECT) st = err_set(err, LODE_INVALID, "it is not an object");
  if (st == LODE_OK) st = vector_search_take(found, &json, err);
done:
  json_release(&json);
  strbuf_release(&text);
  return st;
}
