/* SPDX-License-Identifier: Apache-2.0 */
/* file_version.h - which chunks are a file's, in a store without transactions (a cluster).
 *
 * There, each writing of a file gives it a version of its own, never used again: its chunks are added under ids of that
 * version, PATH@VERSION#N, then the file's record names it, then the chunks of the version before are deleted. The
 * record is one record, whole or absent, so the file changes in one moment; chunks of other versions than the
 * record's are not the file's. They are on their way in or out, or were left by a writer that died, and readers pass
 * over them (search/search_versions.h).
 *
 * A version begins with the time at which it was made, by the clock of the machine that made it. What relies on that:
 *   - a writer whose chunks took longer than INDEXER_VERSION_WRITE_MS adds them again under another version
 *   - an audit deletes chunks of no file if their version is older than INDEXER_VERSION_ORPHAN_MS
 *   - a reader does not trust that all chunks of a version younger than INDEXER_VERSION_YOUNG_MS were there when it
 *     asked: it asks again
 * so clocks may differ by minutes. In other stores there are no versions: an empty string. */
#ifndef LODE_INDEXER_FILE_VERSION_H
#define LODE_INDEXER_FILE_VERSION_H

#include "base/base.h"

#define INDEXER_VERSION_BYTES 20 /* milliseconds and a random number: 0199c2a4b7e-1f0e93aa */

typedef struct indexer_version {
  char text[INDEXER_VERSION_BYTES + 1]; /* empty: none */
} indexer_version;

LODE_MUST lode_status indexer_version_make(indexer_version *version, lode_error *err);
/* Sets it to none if the text is no version. */
void indexer_version_parse(indexer_version *version, lode_str text);
/* 0 also when it was made by a clock that is ahead; UINT64_MAX for none. */
uint64_t indexer_version_age_ms(const indexer_version *version);
static inline bool indexer_version_eq(const indexer_version *a, const indexer_version *b) {
  return strcmp(a->text, b->text) == 0;
}

/* Sets buf to PATH#N or PATH@VERSION#N, NUL-terminated; version may be NULL. */
LODE_MUST lode_status indexer_chunk_id(strbuf *buf, lode_str path, const indexer_version *version, size_t i,
                                       lode_error *err);
/* Takes an id apart; the version may be NULL. False when it has not that form. */
bool indexer_chunk_id_parse(lode_str id, lode_str *path, indexer_version *version);
/* The id of the chunk that is `by` places after this one in its file; false when there is none before. */
LODE_MUST bool indexer_chunk_id_beside(strbuf *buf, lode_str id, int by);

#endif
