/* source_place.h - files that the records of a store name, seen from the project's root.
 *
 * A store may have been written by anybody: a path in it is a claim. Paths that lead out of the root are no paths of the project, and
 * files are opened from the root's descriptor, without following links: what is read lies below the root.
 */
#ifndef LODE_SEARCH_SOURCE_PLACE_H
#define LODE_SEARCH_SOURCE_PLACE_H

#include "os/os.h"
#include "indexer/code_record.h"

typedef enum search_freshness {
  SEARCH_FILE_FRESH,   /* the file is as it was indexed */
  SEARCH_FILE_CHANGED, /* it is another one now, or was never indexed */
  SEARCH_FILE_GONE,
} search_freshness;
/* "changed", "gone"; NULL when it is fresh. */
const char *search_freshness_name(search_freshness freshness);

/* Is it a path below the root, as shown: relative, with no empty name, "." or ".." in it? */
bool search_path_is_inside(lode_str shown);

typedef struct search_file_reader {
  int fd;         /* the root; -1: it cannot be opened, so all files are gone */
  bool nowhere;   /* the project has no root: no file is looked at, and none counts as changed or gone */
  strbuf raw, text;
} search_file_reader;

void search_file_reader_open(search_file_reader *place, const char *root);
void search_file_reader_close(search_file_reader *place);
/* Are the files as the collection "files" says (NULL: nothing is known)? One for each path. A file that was only touched is fresh. */
LODE_MUST lode_status search_file_reader_check(search_file_reader *place, lode_collection *files, const lode_str *paths, size_t n, search_freshness *out,
                                        lode_error *err);
/* The whole file into place->text, when it is byte for byte the one that "files" says was indexed; else *found is false. Sizes and times
 * do not count here: whoever writes a store can claim them, but the digest only of a file that they know. */
LODE_MUST lode_status search_file_reader_read(search_file_reader *place, lode_collection *files, lode_str shown, bool *found, lode_error *err);

#endif
