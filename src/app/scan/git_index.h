/* git_index.h - does git track a file of a folder?
 *
 * Answered from the index file alone (versions 2 to 4, SHA-1 and SHA-256, split and sparse), because to run git in a repository runs
 * what its configuration names (core.fsmonitor, for one). The file is read once from beginning to end in small pieces: a damaged or
 * hostile one costs its own size in time and a few kilobytes of memory.
 *
 * A file that is deleted in a split index counts as tracked, and so does everything below a folder that a sparse index leaves closed:
 * an error in that direction costs the user one command.
 */
#ifndef LODE_SCAN_GIT_INDEX_H
#define LODE_SCAN_GIT_INDEX_H

#include "base/base.h"

typedef enum git_tracked {
  GIT_TRACKED_NO,
  GIT_TRACKED_YES,
  GIT_TRACKED_UNKNOWN, /* there is a repository, and its index cannot be read */
} git_tracked;

/* `quick`: git keeps its entries in order, so the file is read no further than a name could be that matters; damage further
 * on is not noticed.
 *
 * Looks in every repository at or above the folder (absolute, without links) for files of FOLDER/NAME, those listed in `except`
 * (NULL at the end) left out. Letters count in either case, for file systems that do not tell them apart. Of the repositories above the
 * nearest one, those that cannot be read are passed over. `file` gets the index that says so, or what is wrong. */
git_tracked git_tracks(const char *folder, const char *name, const char *const *except, bool quick, strbuf *file);

/* ---- One index file ---- */

typedef struct git_index_query {
  lode_str below;            /* path from the top of the repository, without a slash at its end */
  const char *const *except; /* names directly below it */
  size_t oid_bytes;          /* 20 or 32 */
  bool quick;                /* as above; whether it is split is not told */
} git_index_query;

typedef struct git_index_answer {
  git_tracked tracked;
  bool split;                /* the rest is in sharedindex.OID */
  unsigned char base[32];
} git_index_answer;

/* Of an open file of `size` bytes. */
void git_index_read(int fd, uint64_t size, const git_index_query *query, git_index_answer *answer);

#endif
