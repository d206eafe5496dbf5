/* chroma_layout.h - how Chroma's things are kept in a store: the same whether they were rescued, or made through `lode serve`.
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
#ifndef LODE_RESCUE_CHROMA_LAYOUT_H
#define LODE_RESCUE_CHROMA_LAYOUT_H

#include "base/base.h"

#define RESCUE_LAYOUT_REGISTRY ".chroma"
#define RESCUE_LAYOUT_KEY "$chroma"
#define RESCUE_LAYOUT_URI "chroma:uri"

/* default_tenant and default_database. */
bool rescue_layout_is_default(lode_str tenant, lode_str database);
/* "TENANT/DATABASE/", which names of collections elsewhere begin with. */
void rescue_layout_prefix(strbuf *out, lode_str tenant, lode_str database);

void rescue_layout_tenant_id(strbuf *out, lode_str tenant);
void rescue_layout_database_id(strbuf *out, lode_str tenant, lode_str database);
/* Their metadata. */
void rescue_layout_tenant(strbuf *out, lode_str tenant);
void rescue_layout_database(strbuf *out, lode_str tenant, lode_str database, lode_str id);

#endif
