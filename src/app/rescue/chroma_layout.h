/* SPDX-License-Identifier: Apache-2.0 */
/* chroma_layout.h - how Chroma's objects are stored in a store: the same whether they were rescued or made through
 * `lode serve`.
 *
 *   collection    a lode collection. In default_tenant/default_database it has the same name, and collections made by
 *                 `lode db` are among them; elsewhere it is called TENANT/DATABASE/NAME, with / and % in the first two
 *                 percent-encoded.
 *   configuration, schema   under the key "$chroma" of the collection's metadata, committed with it (Chroma rejects
 *                 keys that begin with $): {"configuration":{"hnsw":{...},"embedding_function":{...}},"schema":{...}}
 *   tenants, databases      records of the collection ".chroma" (a name that Chroma rejects); the default ones always
 *                 exist.
 *                 id "t:TENANT"           metadata {"kind":"tenant","name"}
 *                 id "d:TENANT/DATABASE"  metadata {"kind":"database","tenant","name","id"}; / and % in the id are
 *                                         percent-encoded
 *   uri           the record's metadata key "chroma:uri", as in Chroma itself.
 */
#ifndef LODE_RESCUE_CHROMA_LAYOUT_H
#define LODE_RESCUE_CHROMA_LAYOUT_H

#include "base/base.h"

#define RESCUE_LAYOUT_REGISTRY ".chroma"
#define RESCUE_LAYOUT_KEY "$chroma"
#define RESCUE_LAYOUT_URI "chroma:uri"

/* Are they default_tenant and default_database? */
bool rescue_layout_is_default(lode_str tenant, lode_str database);
/* "TENANT/DATABASE/", the prefix of collection names outside of the default database. */
void rescue_layout_prefix(strbuf *out, lode_str tenant, lode_str database);

void rescue_layout_tenant_id(strbuf *out, lode_str tenant);
void rescue_layout_database_id(strbuf *out, lode_str tenant, lode_str database);
/* Metadata of a tenant and of a database. */
void rescue_layout_tenant(strbuf *out, lode_str tenant);
void rescue_layout_database(strbuf *out, lode_str tenant, lode_str database, lode_str id);

#endif
