/* SPDX-License-Identifier: Apache-2.0 */
/* chroma_layout.c - see chroma_layout.h. */
#include "rescue/chroma_layout.h"

#include "base/json.h"

bool rescue_layout_is_default(lode_str tenant, lode_str database) {
  return str_eq(tenant, STR_LIT("default_tenant")) && str_eq(database, STR_LIT("default_database"));
}

/* Percent-encodes / and %. */
static void layout_put_encoded(strbuf *out, lode_str part) {
  for (size_t i = 0; i < part.len; i++) {
    if (part.data[i] == '/' || part.data[i] == '%')
      strbuf_addf(out, "%%%02X", (unsigned)(unsigned char)part.data[i]);
    else
      strbuf_addch(out, part.data[i]);
  }
}

void rescue_layout_prefix(strbuf *out, lode_str tenant, lode_str database) {
  layout_put_encoded(out, tenant);
  strbuf_addch(out, '/');
  layout_put_encoded(out, database);
  strbuf_addch(out, '/');
}

void rescue_layout_tenant_id(strbuf *out, lode_str tenant) {
  strbuf_addstr(out, "t:");
  layout_put_encoded(out, tenant);
}

void rescue_layout_database_id(strbuf *out, lode_str tenant, lode_str database) {
  strbuf_addstr(out, "d:");
  layout_put_encoded(out, tenant);
  strbuf_addch(out, '/');
  layout_put_encoded(out, database);
}

void rescue_layout_tenant(strbuf *out, lode_str tenant) {
  strbuf_addstr(out, "{\"kind\":\"tenant\",\"name\":");
  json_put_string(out, tenant);
  strbuf_addch(out, '}');
}

void rescue_layout_database(strbuf *out, lode_str tenant, lode_str database, lode_str id) {
  strbuf_addstr(out, "{\"kind\":\"database\",\"tenant\":");
  json_put_string(out, tenant);
  strbuf_addstr(out, ",\"name\":");
  json_put_string(out, database);
  strbuf_addstr(out, ",\"id\":");
  json_put_string(out, id);
  strbuf_addch(out, '}');
}
