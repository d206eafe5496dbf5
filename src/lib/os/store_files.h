/* store_files.h - the names of all files that Lode makes in the folder of a store: one table, for whoever removes or moves any.
 *
 * A name that is not in the table, and anything in the place of a file that is not a regular one (a link, a FIFO, a folder), was
 * made by somebody else and stays where it is.
 */
#ifndef LODE_OS_STORE_FILES_H
#define LODE_OS_STORE_FILES_H

#include "os/beneath.h"

#define STOREFILE_DB "lode.db"
#define STOREFILE_JOURNAL STOREFILE_DB "-journal"
#define STOREFILE_NEW STOREFILE_DB ".new"             /* a truth file being made */
#define STOREFILE_NEW_JOURNAL STOREFILE_NEW "-journal"
#define STOREFILE_RESTORE STOREFILE_DB ".restore"     /* one being restored */
#define STOREFILE_LOCK "lode.lock"
#define STOREFILE_SEGMENTS_DIR "segments"
#define STOREFILE_CONFIG "config.json"
#define STOREFILE_INDEX_LOCK "index.lock"
#define STOREFILE_WATCH_LOCK "watch.lock"
#define STOREFILE_IN_USE "in-use"                         /* of a temporary folder */

typedef enum storefile_kind {
  STOREFILE_DATA = 1,     /* the truth, what belongs to it, and what is derived from it */
  STOREFILE_PROJECT = 2,  /* a project's settings, and the locks of those who index and watch it */
  STOREFILE_PRIVATE = 4,  /* in a temporary folder (store/private_copy.c) */
} storefile_kind;

/* Which of the above a name is, 0 for a foreign one. "segments/NAME" for what is in the folder of segments. */
unsigned storefile_kind_of(const char *name);
/* One of those that were set aside: beneath_set_aside. */
bool storefile_is_set_aside(const char *name);
/* "ID.seg" or "ID.tmp" in the folder of segments: its id, and where the ending begins. */
bool storefile_parse_segment(const char *name, uint64_t *id, const char **ending);

/* Removes the files of these kinds; with `to`, moves them into that folder instead, which exists. In the order of the table, so that what
 * is left by a kill is a store, or no store, never one without its journal. Adds the names of foreign files to `foreign` (may be NULL),
 * separated by ", ". The folder itself stays. */
lode_status storefile_clear(const char *folder, unsigned kinds, const char *to, strbuf *foreign, lode_error *err);

#endif
