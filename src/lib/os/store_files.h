/* SPDX-License-Identifier: Apache-2.0 */
/* store_files.h - the names of all files that Lode creates in a store's directory: one table, for removing or moving
 * them.
 *
 * A name that is not in the table, and anything that is not a regular file (a link, a FIFO, a directory) under a name
 * of the table, was made by somebody else and is left alone.
 */
#ifndef LODE_OS_STORE_FILES_H
#define LODE_OS_STORE_FILES_H

#include "os/beneath.h"

#define STOREFILE_DB "lode.db"
#define STOREFILE_JOURNAL STOREFILE_DB "-journal"
#define STOREFILE_NEW STOREFILE_DB ".new" /* a database being created */
#define STOREFILE_NEW_JOURNAL STOREFILE_NEW "-journal"
#define STOREFILE_RESTORE STOREFILE_DB ".restore" /* a database being restored */
#define STOREFILE_PAGES "lode.pages"              /* the page map (vfs/vfs_map.h) */
#define STOREFILE_PAGES_NEW STOREFILE_PAGES ".new"
#define STOREFILE_MAP "map-%.cache" /* a pattern: places of points for `lode db map`, derived */
#define STOREFILE_LOCK "lode.lock"
#define STOREFILE_SEGMENTS_DIR "segments"
#define STOREFILE_CONFIG "config.json"
#define STOREFILE_INDEX_LOCK "index.lock"
#define STOREFILE_WATCH_LOCK "watch.lock"
#define STOREFILE_IN_USE "in-use" /* in a temporary directory */

typedef enum storefile_kind {
  STOREFILE_DATA = 1,    /* the database, what belongs to it, and what is derived from it */
  STOREFILE_PROJECT = 2, /* a project's settings, and the locks of its indexer and watcher */
  STOREFILE_PRIVATE = 4, /* in a temporary directory (repair/private_copy.c) */
} storefile_kind;

/* The kind of a name, 0 for a foreign one. "segments/NAME" for a file in the segments directory. */
unsigned storefile_kind_of(const char *name);
/* Is it a quarantined file (beneath_set_aside())? */
bool storefile_is_set_aside(const char *name);
/* "ID.seg" or "ID.tmp" in the segments directory: its id, and where the ending starts. */
LODE_MUST bool storefile_parse_segment(const char *name, uint64_t *id, const char **ending);

/* Makes a file of a store, for reading and writing; EEXIST if there is one. Whatever the umask, it has the mode of the
 * database beside it, or 0600 where there is none: whoever may write to the database may use all that belongs to it. */
int storefile_create(const char *dir, const char *name);
/* Opens a file for reading and writing, or makes it like this. */
int storefile_open_or_create(const char *dir, const char *name);
/* Makes the segments directory, with the mode of the store's own. */
LODE_MUST lode_status storefile_make_segments_dir(const char *dir, lode_error *err);

/* Removes the files of these kinds, or moves them into the existing directory `to`, if given. They are processed in the
 * order of the table, so that an interrupted call leaves a store or no store, but never one without its journal.
 * Appends the names of foreign files to `foreign` (may be NULL), separated by ", ". The directory itself stays. */
LODE_MUST lode_status storefile_clear(const char *dir, unsigned kinds, const char *to, strbuf *foreign,
                                      lode_error *err);

#endif
