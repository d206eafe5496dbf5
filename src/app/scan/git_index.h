/* SPDX-License-Identifier: Apache-2.0 */
/* git_index.h - does git track a file of a folder?
 *
 * Answered from the index file alone (versions 2 to 4, SHA-1 and SHA-256, split and sparse): running git in a
 * repository would run whatever its configuration names (core.fsmonitor, for example). The file is read once, front
 * to back, in small pieces: a damaged or hostile one costs time linear in its size and a few kilobytes of memory.
 *
 * A file that is deleted in a split index counts as tracked: an error in that direction only costs the user one more
 * command. A collapsed folder of a sparse index does not say what is in it: the answer for what lies below is
 * "unknown", and "yes" only if FOLDER/NAME itself is collapsed.
 */
#ifndef LODE_SCAN_GIT_INDEX_H
#define LODE_SCAN_GIT_INDEX_H

#include "base/base.h"

typedef enum git_tracked {
  GIT_TRACKED_NO,
  GIT_TRACKED_YES,
  GIT_TRACKED_UNKNOWN, /* there is a repository, but its index cannot be read, or does not list that folder */
} git_tracked;

/* Looks in every repository at or above `folder` (absolute, without links) for tracked files at or below FOLDER/NAME,
 * except those in `except` (NULL-terminated). Ignores case, because some file systems do. Of the repositories above
 * the nearest one, those that cannot be read are skipped. `file` gets the path of the index that tracks a file or does
 * not say, or of what cannot be read.
 *
 * `quick`: entries are sorted, so reading stops at the first one past all names that matter; damage after that is not
 * noticed. */
git_tracked git_tracks(const char *folder, const char *name, const char *const *except, bool quick, strbuf *file);

/* ---- One index file ---- */

typedef struct git_index_query {
  lode_str below;            /* path from the top of the repository, without a slash at its end */
  const char *const *except; /* names directly below it */
  size_t oid_bytes;          /* 20 or 32 */
  bool quick;                /* as above; answer.split is then not set */
} git_index_query;

typedef struct git_index_answer {
  git_tracked tracked;
  bool collapsed; /* a folder of a sparse index contains it, so `tracked` is not NO */
  bool split;     /* the rest is in sharedindex.OID, OID is `base` */
  unsigned char base[32];
} git_index_answer;

/* Reads an index from an open file of `size` bytes. */
void git_index_read(int fd, uint64_t size, const git_index_query *query, git_index_answer *answer);

#endif
