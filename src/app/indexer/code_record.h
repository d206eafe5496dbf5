/* code_record.h - how chunks and files are kept in a store: names of collections, ids, metadata, documents, and back again.
 *
 * Collection "code" has a record for each chunk. Its id is PATH#N (the N-th chunk of the file, from 0). Its document is what the text
 * index sees: a head (path, names around it and its own, the signature of a continued definition, members) and behind it the
 * chunk's own text. Its metadata:
 *   path      as shown: bytes that are not UTF-8 are written \xHH
 *   language, kind, name, parents (the latter two where there are any)
 *   span      FIRST-LAST/LINE@OFFSET: its lines, the line of the definition itself, where its own text begins in the document
 *   hash      digest of the text that slow models embed, which has no path in it: equal hashes, equal vectors, wherever the file lies
 * Collection "files" has a record for each file: id is the path; the document is its outline (path, names that it defines), metadata:
 *   language, size, mtime and ctime (ns), inode, hash (digest of its bytes), chunks (how many), at (ms, when it was read)
 *   skip      why it has no chunks, if it has none for a reason that its text tells
 *   masked    how many secrets in it were masked, if any (mask.h); documents and vectors are made of the masked text
 * Collection "quality" has the ids of "code" and a second vector for each.
 */
#ifndef LODE_INDEXER_CODE_RECORD_H
#define LODE_INDEXER_CODE_RECORD_H

#include "scan/files.h"
#include "indexer/digest.h"
#include "base/json.h"
#include "chunk/chunk.h"
#include "scan/scan.h"

#define INDEXER_COLL_CODE "code"
#define INDEXER_COLL_FILES "files"
#define INDEXER_COLL_QUALITY "quality"
/* Built aside by --force, then switched over. */
#define INDEXER_NEW_SUFFIX ".new"

/* Changes whenever the same file would give other chunks, documents or embedded texts: then everything is read again. */
#define INDEXER_REVISION 1

#define INDEXER_MAX_PATH 4000 /* files with longer paths are skipped */

/* ---- Chunks ---- */

/* What goes into the records of one file's chunks. */
typedef struct indexer_chunk_source {
  lode_str path;                 /* as shown */
  const lang_info *language;
  lode_str text;                 /* of the whole file */
  const chunk_list *chunks;
} indexer_chunk_source;

/* One chunk, ready to be stored; strings live in `arena` or the source. */
typedef struct indexer_record {
  lode_str id, document, metadata;
  lode_str embed;                /* for models that are instant: the path, and the text below */
  char hash[INDEXER_DIGEST_HEX + 1];
} indexer_record;

lode_status indexer_record_make(const indexer_chunk_source *source, size_t i, mem_arena *arena, indexer_record *out,
                                    lode_error *err);
/* The outline of a file: its path and the names that it defines. */
lode_status indexer_outline_make(const indexer_chunk_source *source, strbuf *out, lode_error *err);
/* PATH#N into buf (emptied first), NUL behind. */
lode_status indexer_chunk_id(strbuf *buf, lode_str path, size_t i, lode_error *err);

/* A chunk as read back. Strings point into the row (or into `json`'s strings). */
typedef struct indexer_chunk_view {
  lode_str path, language, kind, name, parents, hash;
  uint32_t first, last, line;    /* lines from 1 */
  size_t offset;                 /* of its own text in the document */
} indexer_chunk_view;

/* LODE_CORRUPT when the metadata are not of this form. Strings live in json, which is used again by the next call. */
lode_status indexer_chunk_view_parse(lode_str metadata, json_doc *json, indexer_chunk_view *view, lode_error *err);
/* The text that slow models embed: names and body, made of a stored record. Appends. */
lode_status indexer_embed_text(const indexer_chunk_view *view, lode_str document, strbuf *out, lode_error *err);

/* ---- Files ---- */

typedef struct indexer_file_state {
  uint64_t size, inode, at_ms;
  int64_t mtime_ns, ctime_ns; /* ctime_ns 0: an index of before it was kept */
  uint8_t hash[INDEXER_DIGEST_BYTES];
  uint32_t chunks, masked; /* masked: secrets in it */
  scan_skip skip;         /* why it has no chunks */
} indexer_file_state;

/* Could the file have been written to since? Anybody can set its time of writing back (touch -r), nobody that of its change. */
static inline bool indexer_file_state_fits(const indexer_file_state *s, uint64_t size, uint64_t inode, int64_t mtime_ns, int64_t ctime_ns) {
  bool same_change = s->ctime_ns ? s->ctime_ns == ctime_ns : ctime_ns / 1000000 < (int64_t)s->at_ms;
  return s->size == size && s->inode == inode && s->mtime_ns == mtime_ns && same_change;
}
/* Appends the metadata. */
void indexer_file_state_put(strbuf *out, const indexer_file_state *state, const char *language);
/* False when it is not of this form: then the file counts as not indexed. */
bool indexer_file_state_parse(lode_str metadata, json_doc *json, indexer_file_state *state);

#endif
