/* kept.c - see kept.h. */
#include "kept.h"

#include "base/json.h"

bool lode__kept_usual(lode_str tenant, lode_str database) {
  return lode__str_eq(tenant, LODE__LIT("default_tenant")) && lode__str_eq(database, LODE__LIT("default_database"));
}

/* / and % in percent encoding. */
static void put_part(lode__buf *out, lode_str part) {
  for (size_t i = 0; i < part.len; i++) {
    if (part.data[i] == '/' || part.data[i] == '%') lode__buf_addf(out, "%%%02X", (unsigned)(unsigned char)part.data[i]);
    else lode__buf_addc(out, part.data[i]);
  }
}

void lode__kept_prefix(lode__buf *out, lode_str tenant, lode_str database) {
  put_part(out, tenant);
  lode__buf_addc(out, '/');
  put_part(out, database);
  lode__buf_addc(out, '/');
}

void lode__kept_tenant_id(lode__buf *out, lode_str tenant) {
  lode__buf_adds(out, "t:");
  put_part(out, tenant);
}

void lode__kept_database_id(lode__buf *out, lode_str tenant, lode_str database) {
  lode__buf_adds(out, "d:");
  put_part(out, tenant);
  lode__buf_addc(out, '/');
  put_part(out, database);
}

void lode__kept_tenant(lode__buf *out, lode_str tenant) {
  lode__buf_adds(out, "{\"kind\":\"tenant\",\"name\":");
  lode__json_put_string(out, tenant);
  lode__buf_addc(out, '}');
}

void lode__kept_database(lode__buf *out, lode_str tenant, lode_str database, lode_str id) {
  lode__buf_adds(out, "{\"kind\":\"database\",\"tenant\":");
  lode__json_put_string(out, tenant);
  lode__buf_adds(out, ",\"name\":");
  lode__json_put_string(out, database);
  lode__buf_adds(out, ",\"id\":");
  lode__json_put_string(out, id);
  lode__buf_addc(out, '}');
}
