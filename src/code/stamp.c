/* stamp.c - see stamp.h. */
#include "stamp.h"

#include <stdio.h>

static uint64_t number(const json_doc *json, uint32_t object, const char *key) {
  uint32_t node = json_get(json, object, str_of(key));
  return node && json->nodes[node].type == JSON_NODE_INT && json->nodes[node].u.i > 0 ? (uint64_t)json->nodes[node].u.i : 0;
}

static void text(const json_doc *json, const char *key, char *out, size_t size) {
  uint32_t node = json_get(json, 0, str_of(key));
  if (!node || json->nodes[node].type != JSON_NODE_STRING) return;
  lode_str s = json->nodes[node].u.s;
  snprintf(out, size, "%.*s", (int)(s.len < size ? s.len : size - 1), s.data);
}

void lode__stamp_parse(lode_str metadata, lode__stamp *stamp) {
  json_doc json = {0};
  memset(stamp, 0, sizeof *stamp);
  if (metadata.data && json_parse(&json, metadata, NULL, NULL) == LODE_OK && json.nodes[0].type == JSON_NODE_OBJECT) {
    stamp->revision = number(&json, 0, "revision");
    stamp->indexed_ms = number(&json, 0, "indexed_ms");
    stamp->scanned_ms = number(&json, 0, "scanned_ms");
    stamp->took_ms = number(&json, 0, "took_ms");
    stamp->masked = number(&json, 0, "masked");
    text(&json, "secrets", stamp->secrets, sizeof stamp->secrets);
    text(&json, "lode", stamp->lode, sizeof stamp->lode);
    text(&json, "root", stamp->root, sizeof stamp->root);
    uint32_t skipped = json_get(&json, 0, STR_LIT("skipped"));
    for (size_t i = 0; skipped && json.nodes[skipped].type == JSON_NODE_OBJECT && i < LODE__SKIP_COUNT; i++)
      stamp->skipped[i] = number(&json, skipped, lode__skip_name((lode__skip)i));
  }
  json_release(&json);
}

void lode__stamp_put(strbuf *out, const lode__stamp *s) {
  bool first = true;
  strbuf_addf(out, "{\"revision\":%llu,\"indexed_ms\":%llu,\"scanned_ms\":%llu,\"took_ms\":%llu,\"lode\":", (unsigned long long)s->revision,
                 (unsigned long long)s->indexed_ms, (unsigned long long)s->scanned_ms, (unsigned long long)s->took_ms);
  json_put_string(out, str_of(s->lode));
  strbuf_addstr(out, ",\"root\":");
  json_put_string(out, str_of(s->root));
  strbuf_addstr(out, ",\"secrets\":");
  json_put_string(out, str_of(s->secrets));
  strbuf_addf(out, ",\"masked\":%llu,\"skipped\":{", (unsigned long long)s->masked);
  for (size_t i = 1; i < LODE__SKIP_COUNT; i++) {
    if (!s->skipped[i]) continue;
    strbuf_addf(out, "%s\"%s\":%llu", first ? "" : ",", lode__skip_name((lode__skip)i), (unsigned long long)s->skipped[i]);
    first = false;
  }
  strbuf_addstr(out, "}}");
}

void lode__stamp_secrets(const lode__config *config, char out[32]) {
  snprintf(out, 32, "%s@%d", lode__secrets_name(lode__secrets_of(lode__config_text(config, LODE__CONFIG_INDEX_SECRETS))), LODE__MASK_VERSION);
}

lode__showing lode__stamp_showing(const lode__stamp *stamp, const lode__config *config) {
  char secrets[32];
  if (lode__secrets_of(lode__config_text(config, LODE__CONFIG_INDEX_SECRETS)) == LODE__SECRETS_INDEX) return LODE__SHOW_AS_IS;
  lode__stamp_secrets(config, secrets);
  return strcmp(stamp->secrets, secrets) == 0 ? LODE__SHOW_MASKED : LODE__SHOW_DOUBTED;
}

void lode__show(lode__showing how, char *text, size_t len) {
  if (how == LODE__SHOW_MASKED) (void)lode__mask(text, len);
  else if (how == LODE__SHOW_DOUBTED) (void)lode__mask_piece(text, len);
}
