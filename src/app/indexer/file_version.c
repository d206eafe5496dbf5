/* SPDX-License-Identifier: Apache-2.0 */
/* file_version.c - see file_version.h. */
#include "indexer/file_version.h"

#include "os/os.h"

#include <stdio.h>
#include <stdlib.h>

enum { VERSION_TIME_BYTES = 11 };

lode_status indexer_version_make(indexer_version *version, lode_error *err) {
  uint32_t random;
  memset(version, 0, sizeof *version);
  if (os_random(&random, sizeof random, true) < 0) return err_errno(err, errno, "random numbers");
  snprintf(version->text, sizeof version->text, "%011llx-%08x",
           (unsigned long long)(os_wall_ms() & ((UINT64_C(1) << (4 * VERSION_TIME_BYTES)) - 1)), random);
  return LODE_OK;
}

static bool version_is_valid(lode_str text) {
  if (text.len != INDEXER_VERSION_BYTES || text.data[VERSION_TIME_BYTES] != '-') return false;
  for (size_t i = 0; i < text.len; i++) {
    char c = text.data[i];
    if (i != VERSION_TIME_BYTES && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) return false;
  }
  return true;
}

void indexer_version_parse(indexer_version *version, lode_str text) {
  memset(version, 0, sizeof *version);
  if (version_is_valid(text)) memcpy(version->text, text.data, text.len);
}

uint64_t indexer_version_age_ms(const indexer_version *version) {
  uint64_t now = os_wall_ms(), made = 0;
  if (!version->text[0]) return UINT64_MAX;
  made = strtoull(version->text, NULL, 16); /* ends at the sign */
  return now > made ? now - made : 0;
}

lode_status indexer_chunk_id(strbuf *buf, lode_str path, const indexer_version *version, size_t i, lode_error *err) {
  buf->len = 0;
  strbuf_add(buf, path.data, path.len);
  if (version && version->text[0]) strbuf_addf(buf, "@%s", version->text);
  strbuf_addf(buf, "#%zu", i);
  strbuf_addch(buf, '\0');
  return buf->failed ? err_nomem(err) : LODE_OK;
}

/* The length of what stands before #N; 0: it has not that form. */
static size_t version_base_of(lode_str id) {
  size_t at = id.len;
  while (at && id.data[at - 1] >= '0' && id.data[at - 1] <= '9') at--;
  return at == id.len || at < 2 || id.data[at - 1] != '#' ? 0 : at - 1;
}

bool indexer_chunk_id_parse(lode_str id, lode_str *path, indexer_version *version) {
  size_t base = version_base_of(id), mark = base > INDEXER_VERSION_BYTES + 1 ? base - INDEXER_VERSION_BYTES - 1 : 0;
  lode_str text = {id.data + mark + 1, INDEXER_VERSION_BYTES};
  bool has = mark && id.data[mark] == '@' && version_is_valid(text);
  *path = (lode_str){id.data, has ? mark : base};
  if (version) indexer_version_parse(version, has ? text : (lode_str){"", 0});
  return base > 0;
}

bool indexer_chunk_id_beside(strbuf *buf, lode_str id, int by) {
  size_t base = version_base_of(id);
  long long at = base && id.len - base < 12 ? strtoll(id.data + base + 1, NULL, 10) + by : -1;
  buf->len = 0;
  if (at < 0) return false;
  strbuf_add(buf, id.data, base);
  strbuf_addf(buf, "#%lld", at);
  return !buf->failed;
}
