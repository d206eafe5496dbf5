/* SPDX-License-Identifier: Apache-2.0 */
/* index_stamp.c - see index_stamp.h. */
#include "indexer/index_stamp.h"

#include <stdio.h>

static uint64_t stamp_get_number(const json_doc *json, uint32_t object, const char *key) {
  uint32_t node = json_get(json, object, str_of(key));
  return node && json->nodes[node].type == JSON_NODE_INT && json->nodes[node].u.i > 0 ? (uint64_t)json->nodes[node].u.i
                                                                                      : 0;
}

static void stamp_get_text(const json_doc *json, const char *key, char *out, size_t size) {
  uint32_t node = json_get(json, 0, str_of(key));
  if (!node || json->nodes[node].type != JSON_NODE_STRING) return;
  lode_str s = json->nodes[node].u.s;
  snprintf(out, size, "%.*s", (int)(s.len < size ? s.len : size - 1), s.data);
}

void indexer_stamp_parse(lode_str metadata, indexer_stamp *stamp) {
  json_doc json = {0};
  memset(stamp, 0, sizeof *stamp);
  if (metadata.data && json_parse(&json, metadata, NULL, NULL) == LODE_OK && json.nodes[0].type == JSON_NODE_OBJECT) {
    stamp->revision = stamp_get_number(&json, 0, "revision");
    stamp->indexed_ms = stamp_get_number(&json, 0, "indexed_ms");
    stamp->scanned_ms = stamp_get_number(&json, 0, "scanned_ms");
    stamp->took_ms = stamp_get_number(&json, 0, "took_ms");
    stamp->masked = stamp_get_number(&json, 0, "masked");
    stamp->versions = stamp_get_number(&json, 0, "versions") != 0;
    stamp_get_text(&json, "secrets", stamp->secrets, sizeof stamp->secrets);
    stamp_get_text(&json, "lode", stamp->lode, sizeof stamp->lode);
    stamp_get_text(&json, "root", stamp->root, sizeof stamp->root);
    uint32_t skipped = json_get(&json, 0, STR_LIT("skipped"));
    for (size_t i = 0; skipped && json.nodes[skipped].type == JSON_NODE_OBJECT && i < SCAN_SKIP_COUNT; i++)
      stamp->skipped[i] = stamp_get_number(&json, skipped, scan_skip_name((scan_skip)i));
  }
  json_release(&json);
}

void indexer_stamp_put(strbuf *out, const indexer_stamp *s) {
  bool first = true;
  strbuf_addf(out, "{\"revision\":%llu,\"indexed_ms\":%llu,\"scanned_ms\":%llu,\"took_ms\":%llu,\"lode\":",
              (unsigned long long)s->revision, (unsigned long long)s->indexed_ms, (unsigned long long)s->scanned_ms,
              (unsigned long long)s->took_ms);
  json_put_string(out, str_of(s->lode));
  strbuf_addstr(out, ",\"root\":");
  json_put_string(out, str_of(s->root));
  strbuf_addstr(out, ",\"secrets\":");
  json_put_string(out, str_of(s->secrets));
  strbuf_addf(out, ",\"masked\":%llu%s,\"skipped\":{", (unsigned long long)s->masked,
              s->versions ? ",\"versions\":1" : "");
  for (size_t i = 1; i < SCAN_SKIP_COUNT; i++) {
    if (!s->skipped[i]) continue;
    strbuf_addf(out, "%s\"%s\":%llu", first ? "" : ",", scan_skip_name((scan_skip)i),
                (unsigned long long)s->skipped[i]);
    first = false;
  }
  strbuf_addstr(out, "}}");
}

void indexer_stamp_secrets(const config_values *config, char out[32]) {
  snprintf(out, 32, "%s@%d", mask_policy_name(mask_policy_parse(config_text(config, CONFIG_INDEX_SECRETS))),
           MASK_VERSION);
}

indexer_display indexer_stamp_display(const indexer_stamp *stamp, const config_values *config) {
  char secrets[32];
  if (mask_policy_parse(config_text(config, CONFIG_INDEX_SECRETS)) == MASK_POLICY_INDEX) return INDEXER_DISPLAY_RAW;
  indexer_stamp_secrets(config, secrets);
  return strcmp(stamp->secrets, secrets) == 0 ? INDEXER_DISPLAY_MASKED : INDEXER_DISPLAY_UNSURE;
}

void indexer_mask_for_display(indexer_display how, char *text, size_t len) {
  if (how == INDEXER_DISPLAY_MASKED)
    (void)mask_secrets(text, len);
  else if (how == INDEXER_DISPLAY_UNSURE)
    (void)mask_fragment(text, len);
}
