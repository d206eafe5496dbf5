/* kept.h - how Chroma's things are kept in a store: the same whether they were rescued, or made through `lode serve`.
 *
 *   collection    a lode collection. In default_tenant/default_database it has the same name, and those made by `lode db` are
 *                 among them; elsewhere it is called TENANT/DATABASE/NAME, with / and % of the first two in percent encoding.
 *   configuration, schema   under the key "$chroma" of the collection's metadata (Chroma refuses keys that begin with $), committed
 *                 with it: {"configuration":{"hnsw":{...},"embedding_function":{...}},"schema":{...}}
 *   tenants, databases      records of the collection ".chroma" (a name that Chroma refuses); the default ones always exist.
 *                 id "t:TENANT"           metadata {"kind":"tenant","name"}
 *                 id "d:TENANT/DATABASE"  metadata {"kind":"database","tenant","name","id"}; in the id / and % in percent encoding
 *   uri           the record's metadata key "chroma:uri", as Chroma itself does.
 */
#ifndef LODE_RESCUE_KEPT_H
#define LODE_RESCUE_KEPT_H

#include "base/base.h"

#define LODE__CHROMA_REGISTRY ".chroma"
#define LODE__CHROMA_KEY "$chroma"
#define LODE__CHROMA_URI "chroma:uri"

/* default_tenant and default_database. */
bool lode__kept_usual(lode_str tenant, lode_str database);
/* "TENANT/DATABASE/", which names of collections elsewhere begin with. */
void lode__kept_prefix(strbuf *out, lode_str tenant, lode_str database);

void lode__kept_tenant_id(strbuf *out, lode_str tenant);
void lode__kept_database_id(strbuf *out, lode_str tenant, lode_str database);
/* Their metadata. */
void lode__kept_tenant(strbuf *out, lode_str tenant);
void lode__kept_database(strbuf *out, lode_str tenant, lode_str database, lode_str id);

#endif
