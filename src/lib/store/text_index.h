/* SPDX-License-Identifier: Apache-2.0 */
/* text_index.h - the text index and the lengths of its documents, for writers; queries are in store.h. See
 * text_index.c. */
#ifndef LODE_STORE_TEXT_INDEX_H
#define LODE_STORE_TEXT_INDEX_H

#include "store/tx.h"

/* Registers the FTS5 tokenizer and lode_visit() for a new connection. Returns SQLite's code; SQLITE_NOTFOUND: SQLite
 * has no FTS5 (then report store_err_no_fts5()). */
LODE_MUST int store_text_register(sqlite3 *sql);
LODE_MUST lode_status store_err_no_fts5(lode_error *err);

/* FTS5 needs the text to remove it again. */
LODE_MUST lode_status store_text_add(store_tx *tx, store_doc_sizes *sizes, int64_t rid, lode_str text, lode_error *err);
LODE_MUST lode_status store_text_remove(store_tx *tx, int64_t rid, lode_str text, lode_error *err);

/* Approximate lengths of documents. A writer flushes the last block when it is done. */
unsigned store_doc_size_code(uint64_t bytes); /* 1 to 255 */
uint64_t store_doc_size_min(unsigned code);   /* least length of a document with this code; 0: not known */
LODE_MUST lode_status store_doc_sizes_put(store_tx *tx, store_doc_sizes *sizes, int64_t rid, uint64_t bytes,
                                          lode_error *err);
LODE_MUST lode_status store_doc_sizes_flush(store_tx *tx, store_doc_sizes *sizes, lode_error *err);
LODE_MUST lode_status store_doc_sizes_erase(store_tx *tx, int64_t cid, lode_error *err); /* of a dropped collection */

#endif
