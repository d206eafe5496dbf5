/* SPDX-License-Identifier: Apache-2.0 */
/* code_record.h - how chunks and files are stored: names of collections, ids, metadata, documents; writing and
 * parsing them.
 *
 * Collection "code" has a record for each chunk. Its id is PATH#N (the N-th chunk of the file, from 0), on a cluster
 * PATH@VERSION#N (file_version.h). Its document
 * is what the text index sees: a head (path; enclosing names and its own; the signature of a continued definition;
 * members) followed by the chunk's own text. Its metadata:
 *   path      bytes that are not UTF-8 are escaped as \xHH
 *   language, kind, name, parents (the latter two if there are any)
 *   head      "defined" if the definition of that name begins in the chunk, "declared" if it is only declared there; a
 *             later part of a long definition has none
 *   defs, at  definitions in the chunk besides its own, which share it: an array of their names, and for each of them
 *             "LINE KIND" or "LINE -KIND" (declared only), joined by commas
 *   kinds     an array of the kinds of these
 *   span      FIRST-LAST/LINE@OFFSET: its lines, the line of the definition, and where its own text begins in the
 *             document
 *   hash      digest of the text that slow models embed, without the path: equal hashes, equal vectors, in any file
 * Collection "files" has a record for each file. Its id is the path, its document the outline (path and defined names).
 * Its metadata:
 *   language, size, mtime and ctime (ns), inode, hash (digest of its bytes), chunks (how many), at (ms, when it was
 *             read)
 *   skip      why it has no chunks, if the reason is in its text
 *   version   which chunks are its own, in a store without transactions (file_version.h); symbols, true: it has a table
 *   masked    how many secrets were masked, if any (mask.h); documents and vectors are made from the masked text
 * Collection "quality" has the ids of "code", with a second vector for each.
 * Collection "code.symbols" has a record for each file that was parsed by a grammar. Its id is the path. Its metadata:
 *   language
 *   table     its symbols (chunk/symbol_table.h)
 */
#ifndef LODE_INDEXER_CODE_RECORD_H
#define LODE_INDEXER_CODE_RECORD_H

#include "scan/files.h"
#include "indexer/digest.h"
#include "indexer/file_version.h"
#include "base/json.h"
#include "chunk/chunk.h"
#include "scan/scan.h"

#define INDEXER_COLL_CODE "code"
#define INDEXER_COLL_FILES "files"
#define INDEXER_COLL_QUALITY "quality"
#define INDEXER_COLL_SYMBOLS "code.symbols"
#define INDEXER_NEW_SUFFIX ".new" /* collections that --force builds and then switches over to */
/* the chunks of a rebuild that was interrupted, whose vectors the next one uses */
#define INDEXER_COLL_KEPT INDEXER_COLL_CODE ".kept"

/* Incremented whenever the same file would give other chunks, documents or embedded texts: then everything is read
 * again. */
#define INDEXER_REVISION 5
#define INDEXER_REVISION_HEADS 2   /* since this one, chunks say which definitions begin in them */
#define INDEXER_REVISION_SYMBOLS 5 /* since this one, there are tables of symbols as they are now */

#define INDEXER_MAX_PATH 4000 /* files with longer paths are skipped */

/* ---- Chunks ---- */

/* What goes into the records of one file's chunks. */
typedef struct indexer_chunk_source {
  lode_str path; /* escaped */
  const lang_info *language;
  lode_str text; /* of the whole file */
  const chunk_list *chunks;
} indexer_chunk_source;

/* One chunk, ready to be stored; strings are in `arena` or the source. */
typedef struct indexer_record {
  lode_str id, document, metadata;
  lode_str embed; /* for instant models: the path, then the text that slow models embed */
  char hash[INDEXER_DIGEST_HEX + 1];
} indexer_record;

LODE_MUST lode_status indexer_record_make(const indexer_chunk_source *source, size_t i, mem_arena *arena,
                                          indexer_record *out, lode_error *err);
/* The outline of a file: its path and the names that it defines. */
LODE_MUST lode_status indexer_outline_make(const indexer_chunk_source *source, strbuf *out, lode_error *err);
/* Appends the metadata of a file's table of symbols. */
void indexer_symbols_put(strbuf *out, const lang_info *language, lode_str table);
/* The table and the language of such a record; strings are in json. LODE_CORRUPT: it has another form; LODE_NOMEM. */
LODE_MUST lode_status indexer_symbols_parse(lode_str metadata, json_doc *json, lode_str *table,
                                            const lang_info **language);

/* A parsed chunk record. Strings point into `json`. */
typedef struct indexer_chunk_view {
  lode_str path, language, kind, name, parents, hash;
  lode_str head, at;          /* see above; empty: none */
  uint32_t defs;              /* node of the array in `json`; 0: none */
  uint32_t first, last, line; /* lines from 1 */
  size_t offset;              /* of its own text in the document */
} indexer_chunk_view;

/* A definition in a chunk. */
typedef struct indexer_def {
  lode_str name, kind;
  uint32_t line;
  bool declared; /* a prototype, a signature: defined elsewhere */
} indexer_def;
/* The i-th of the definitions that share the chunk, from 0; false: there are no more. Call it in order, with *at NULL
 * first. */
bool indexer_chunk_view_def(const indexer_chunk_view *view, const json_doc *json, size_t i, const char **at,
                            indexer_def *def);

/* LODE_CORRUPT when the metadata do not have this form. Strings are in json, which the next call reuses. */
LODE_MUST lode_status indexer_chunk_view_parse(lode_str metadata, json_doc *json, indexer_chunk_view *view,
                                               lode_error *err);
/* Appends the text that slow models embed, names and body, from a stored record. */
LODE_MUST lode_status indexer_embed_text(const indexer_chunk_view *view, lode_str document, strbuf *out,
                                         lode_error *err);

/* ---- Files ---- */

typedef struct indexer_file_state {
  uint64_t size, inode, at_ms;
  int64_t mtime_ns, ctime_ns; /* ctime_ns 0: indexed before ctime was recorded */
  uint8_t hash[INDEXER_DIGEST_BYTES];
  uint32_t chunks, masked; /* masked: number of secrets in it */
  scan_skip skip;          /* why it has no chunks */
  indexer_version version; /* of its chunks; none in a store with transactions */
  bool symbols;            /* with a version: it has a table of symbols */
} indexer_file_state;

/* Is the file unchanged since, judging by stat? mtime can be set back by anyone (touch -r), ctime cannot. */
static inline bool indexer_file_state_fits(const indexer_file_state *s, uint64_t size, uint64_t inode, int64_t mtime_ns,
                                           int64_t ctime_ns) {
  bool same_change = s->ctime_ns ? s->ctime_ns == ctime_ns : ctime_ns / 1000000 < (int64_t)s->at_ms;
  return s->size == size && s->inode == inode && s->mtime_ns == mtime_ns && same_change;
}
/* Appends the metadata. */
void indexer_file_state_put(strbuf *out, const indexer_file_state *state, const char *language);
/* False when the metadata do not have this form: then the file counts as not indexed. */
LODE_MUST bool indexer_file_state_parse(lode_str metadata, json_doc *json, indexer_file_state *state);

#endif
