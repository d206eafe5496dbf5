/* store_files.h - the names of all files that Lode makes in the folder of a store: one table, for whoever removes or moves any.
 *
 * A name that is not in the table, and anything in the place of a file that is not a regular one (a link, a FIFO, a folder), was
 * made by somebody else and stays where it is.
 */
#ifndef LODE_STORE_FILES_H
#define LODE_STORE_FILES_H

#include "inside.h"

#define LODE__TRUTH_FILE "lode.db"
#define LODE__JOURNAL_FILE LODE__TRUTH_FILE "-journal"
#define LODE__NEW_FILE LODE__TRUTH_FILE ".new"             /* a truth file being made */
#define LODE__NEW_JOURNAL_FILE LODE__NEW_FILE "-journal"
#define LODE__RESTORE_FILE LODE__TRUTH_FILE ".restore"     /* one being restored */
#define LODE__LOCK_FILE "lode.lock"
#define LODE__SEGMENTS_FOLDER "segments"
#define LODE__CONFIG_FILE "config.json"
#define LODE__INDEX_LOCK_FILE "index.lock"
#define LODE__WATCH_LOCK_FILE "watch.lock"
#define LODE__IN_USE_FILE "in-use"                         /* of a temporary folder */

typedef enum lode__store_files {
  LODE__FILES_DATA = 1,     /* the truth, what belongs to it, and what is derived from it */
  LODE__FILES_PROJECT = 2,  /* a project's settings, and the locks of those who index and watch it */
  LODE__FILES_PRIVATE = 4,  /* in a temporary folder (store/private.c) */
} lode__store_files;

/* Which of the above a name is, 0 for a foreign one. "segments/NAME" for what is in the folder of segments. */
unsigned lode__store_files_kind(const char *name);
/* One of those that were set aside: lode__inside_set_aside. */
bool lode__store_files_is_aside(const char *name);
/* "ID.seg" or "ID.tmp" in the folder of segments: its id, and where the ending begins. */
bool lode__store_files_segment(const char *name, uint64_t *id, const char **ending);

/* Removes the files of these kinds; with `to`, moves them into that folder instead, which exists. In the order of the table, so that what
 * is left by a kill is a store, or no store, never one without its journal. Adds the names of foreign files to `foreign` (may be NULL),
 * separated by ", ". The folder itself stays. */
lode_status lode__store_files_clear(const char *folder, unsigned kinds, const char *to, lode__buf *foreign, lode_error *err);

#endif
