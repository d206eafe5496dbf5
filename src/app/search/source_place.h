/* SPDX-License-Identifier: Apache-2.0 */
/* source_place.h - reads files that the records of a store name, beneath the project's root.
 *
 * Anyone may have written the store, so a path in it is not trusted. Paths that lead out of the root are rejected,
 * and files are opened relative to the root's descriptor, without following links: whatever is read is below the
 * root.
 */
#ifndef LODE_SEARCH_SOURCE_PLACE_H
#define LODE_SEARCH_SOURCE_PLACE_H

#include "os/os.h"
#include "indexer/code_record.h"

typedef enum search_freshness {
  SEARCH_FILE_FRESH,   /* the file is as it was indexed */
  SEARCH_FILE_CHANGED, /* it differs, or was never indexed */
  SEARCH_FILE_GONE,
} search_freshness;
/* "changed", "gone"; NULL when it is fresh. */
const char *search_freshness_name(search_freshness freshness);

/* Is it a path below the root, as stored: relative, without an empty name, "." or ".."? */
bool search_path_is_inside(lode_str shown);

typedef struct search_file_reader {
  int fd;       /* of the root; -1: it cannot be opened, so all files are gone */
  bool nowhere; /* the project has no root: no file is read, and none counts as changed or gone */
  strbuf raw, text;
} search_file_reader;

void search_file_reader_open(search_file_reader *reader, const char *root);
void search_file_reader_close(search_file_reader *reader);
/* Are the files as the collection "files" (NULL: none) says? One answer per path. A file that was only touched is
 * fresh. */
LODE_MUST lode_status search_file_reader_check(search_file_reader *reader, lode_collection *files,
                                               const lode_str *paths, size_t n, search_freshness *out, lode_error *err);
/* Reads the whole file into reader->text if it is byte for byte the one that "files" says was indexed; else *found is
 * false. Sizes and times are not enough here: whoever writes a store can claim them, but a digest only of a file they
 * know. */
LODE_MUST lode_status search_file_reader_read(search_file_reader *reader, lode_collection *files, lode_str shown,
                                              bool *found, lode_error *err);

#endif
