/* SPDX-License-Identifier: Apache-2.0 */
/* project_config.c - see project_config.h. */
#include "project/project_config.h"

#include "embed/embed.h"
#include "scan/files.h"

#include <stdio.h>
#include <stdlib.h>

enum { CONFIG_MAX_BYTES = 1 << 20, CONFIG_INT_DIGITS = 15 };

const config_entry config_table[CONFIG_COUNT] = {
#define CONFIG_TABLE_ROW(id, key, kind, choices, fallback, about) {key, CONFIG_KIND_##kind, choices, fallback, about},
    CONFIG_KEYS(CONFIG_TABLE_ROW)
#undef CONFIG_TABLE_ROW
};

void config_release(config_values *config) {
  for (size_t i = 0; i < CONFIG_COUNT; i++) {
    mem_free(config->values[i]);
    mem_free(config->held[i]);
  }
  memset(config, 0, sizeof *config);
}

config_key config_find(lode_str key) {
  size_t i = 0;
  while (i < CONFIG_COUNT && !str_eq(key, str_of(config_table[i].key))) i++;
  return (config_key)i;
}

const char *config_text(const config_values *config, config_key key) {
  return config->values[key] ? config->values[key] : config_table[key].fallback;
}

uint64_t config_int(const config_values *config, config_key key) {
  return strtoull(config_text(config, key), NULL, 10);
}

bool config_bool(const config_values *config, config_key key) { return strcmp(config_text(config, key), "true") == 0; }

bool config_reaches_out(config_key key, lode_str value) {
  switch (key) {
    case CONFIG_MODEL: return embed_model_is_external(value);
    case CONFIG_SEARCH_REFRESH: return str_eq(value, STR_LIT("auto"));
    case CONFIG_INDEX_SECRETS: return str_eq(value, STR_LIT("index"));
    default: return false;
  }
}

void config_suppress(config_values *config, config_key key) {
  mem_free(config->held[key]);
  config->held[key] = config->values[key];
  config->values[key] = NULL;
}

/* ---- Setting ---- */

static bool config_is_choice(const char *choices, lode_str value) {
  for (const char *p = choices; p && *p;) {
    const char *end = strchr(p, '|');
    size_t len = end ? (size_t)(end - p) : strlen(p);
    if (str_eq((lode_str){p, len}, value)) return true;
    p = end ? end + 1 : NULL;
  }
  return false;
}

static bool config_is_int(lode_str value) {
  for (size_t i = 0; i < value.len; i++)
    if (value.data[i] < '0' || value.data[i] > '9') return false;
  return value.len > 0 && value.len <= CONFIG_INT_DIGITS;
}

static bool config_in_range(const char *range, lode_str digits) {
  char *to, text[CONFIG_INT_DIGITS + 1];
  if (!range) return true;
  snprintf(text, sizeof text, "%.*s", (int)digits.len, digits.data);
  unsigned long long v = strtoull(text, NULL, 10), min = strtoull(range, &to, 10);
  return v >= min && v <= strtoull(to + strlen(" to "), NULL, 10);
}

static lode_status config_check_value(const config_entry *e, lode_str value, lode_error *err) {
  char quoted[256];
  str_quote(value, quoted, sizeof quoted);
  switch (e->kind) {
    case CONFIG_KIND_BOOL:
      if (config_is_choice("true|false", value)) return LODE_OK;
      return err_set(err, LODE_INVALID, "%s is true or false, not %s", e->key, quoted);
    case CONFIG_KIND_CHOICE:
      if (config_is_choice(e->choices, value)) return LODE_OK;
      return err_set(err, LODE_INVALID, "%s is one of %s, not %s", e->key, e->choices, quoted);
    case CONFIG_KIND_INT:
      if (config_is_int(value) && config_in_range(e->choices, value)) return LODE_OK;
      return err_set(err, LODE_INVALID, "%s is a number%s%s, not %s", e->key, e->choices ? ", " : "",
                     e->choices ? e->choices : "", quoted);
    case CONFIG_KIND_TEXT:
      if (value.len && !memchr(value.data, 0, value.len)) return LODE_OK;
      return err_set(err, LODE_INVALID, "%s must not be empty", e->key);
  }
  return LODE_OK;
}

/* Earlier versions had true or false for index.secrets. */
static lode_str config_migrate_value(config_key key, lode_str value) {
  if (key != CONFIG_INDEX_SECRETS) return value;
  if (str_eq(value, STR_LIT("true"))) return STR_LIT("index");
  return str_eq(value, STR_LIT("false")) ? STR_LIT("mask") : value;
}

lode_status config_set(config_values *config, config_key key, lode_str value, lode_error *err) {
  char *copy = NULL;
  if (value.data) {
    value = config_migrate_value(key, value);
    TRY(config_check_value(&config_table[key], value, err));
    copy = str_dup(value.data, value.len);
    if (!copy) return err_nomem(err);
  }
  mem_free(config->values[key]);
  mem_free(config->held[key]);
  config->held[key] = NULL;
  config->values[key] = copy;
  return LODE_OK;
}

/* ---- The file ---- */

static lode_status config_take_node(config_values *config, config_key key, const json_doc *json, uint32_t node,
                                    lode_error *err) {
  strbuf text = {0};
  if (json->nodes[node].type == JSON_NODE_STRING)
    strbuf_add(&text, json->nodes[node].u.s.data, json->nodes[node].u.s.len);
  else
    json_put_node(&text, json, node);
  lode_status st =
      text.failed ? err_nomem(err) : config_set(config, key, (lode_str){text.data ? text.data : "", text.len}, err);
  strbuf_release(&text);
  return st;
}

static lode_status config_parse_file(const char *folder, const char *path, json_doc *json, strbuf *text,
                                     lode_error *err) {
  lode_error inner = {.record = LODE_NO_RECORD};
  lode_status st = files_read_beneath(folder, STOREFILE_CONFIG, CONFIG_MAX_BYTES, text, err);
  if (st != LODE_OK) return st;
  st = json_parse(json, (lode_str){text->data, text->len}, NULL, &inner);
  if (st == LODE_OK && json->nodes[0].type != JSON_NODE_OBJECT)
    st = err_set(&inner, LODE_INVALID, "it is not an object");
  if (st != LODE_OK)
    return err_set(err, LODE_INVALID, "%.300s is not a JSON object (%.150s): correct it, or move it away", path,
                   inner.text);
  return LODE_OK;
}

lode_status config_load(config_values *config, const char *folder, lode_error *err) {
  strbuf path = {0}, text = {0};
  json_doc json = {0};
  lode_error inner = {.record = LODE_NO_RECORD};
  lode_status st;
  memset(config, 0, sizeof *config);
  TRY_GOTO(files_join(&path, folder, STOREFILE_CONFIG, err));
  st = config_parse_file(folder, path.data, &json, &text, err);
  if (st == LODE_NOT_FOUND) st = LODE_OK;
  for (uint32_t i = 1; st == LODE_OK && json.count && i < json.nodes[0].next; i = json.nodes[i + 1].next) {
    config_key key = config_find(json.nodes[i].u.s);
    if (key == CONFIG_COUNT) continue;
    st = config_take_node(config, key, &json, i + 1, &inner);
    if (st != LODE_OK) st = err_set(err, st, "%.300s: %.200s", path.data, inner.text);
  }
done:
  if (st != LODE_OK) config_release(config);
  json_release(&json);
  strbuf_release(&text);
  strbuf_release(&path);
  return st;
}

static void config_put_value(strbuf *out, config_key key, const char *value) {
  config_kind kind = config_table[key].kind;
  if (kind == CONFIG_KIND_BOOL || kind == CONFIG_KIND_INT)
    strbuf_addstr(out, value);
  else
    json_put_string(out, str_of(value));
}

lode_status config_save(const config_values *config, const char *folder, lode_error *err) {
  strbuf path = {0}, text = {0}, out = {0};
  json_doc json = {0};
  lode_status st;
  bool first = true;
  TRY_GOTO(files_join(&path, folder, STOREFILE_CONFIG, err));
  st = config_parse_file(folder, path.data, &json, &text, err);
  if (st == LODE_NOT_FOUND) st = LODE_OK;
  if (st != LODE_OK) goto done;
  strbuf_addstr(&out, "{");
  for (uint32_t i = 1; json.count && i < json.nodes[0].next; i = json.nodes[i + 1].next) {
    if (config_find(json.nodes[i].u.s) != CONFIG_COUNT) continue;
    strbuf_addstr(&out, first ? "\n  " : ",\n  ");
    first = false;
    json_put_string(&out, json.nodes[i].u.s);
    strbuf_addstr(&out, ": ");
    json_put_node(&out, &json, i + 1);
  }
  for (size_t k = 0; k < CONFIG_COUNT; k++) {
    const char *value = config->values[k] ? config->values[k] : config->held[k];
    if (!value) continue;
    strbuf_addstr(&out, first ? "\n  " : ",\n  ");
    first = false;
    json_put_string(&out, str_of(config_table[k].key));
    strbuf_addstr(&out, ": ");
    config_put_value(&out, (config_key)k, value);
  }
  strbuf_addstr(&out, first ? "}\n" : "\n}\n");
  st = out.failed ? err_nomem(err) : files_write_beneath(folder, STOREFILE_CONFIG, (lode_str){out.data, out.len}, err);
done:
  json_release(&json);
  strbuf_release(&text);
  strbuf_release(&path);
  strbuf_release(&out);
  return st;
}
