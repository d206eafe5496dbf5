/* SPDX-License-Identifier: Apache-2.0 */
/* git.h - what ignore rules and trust need of a git repository: its top folder, its index, and the exclude patterns
 * that are not in .gitignore files.
 *
 * Repositories and their configuration are only read; what cannot be read is treated as absent. A .git that is a file
 * (worktrees, submodules) is followed to the folder it names. A .git of another user ends the search, as if there were
 * no repository: otherwise whoever can create a folder further up could choose what is indexed.
 */
#ifndef LODE_SCAN_GIT_H
#define LODE_SCAN_GIT_H

#include "scan/ignore.h"

/* The nearest folder at or above `path` (absolute) that has a .git. *top is the length of its path, a prefix of `path`.
 * False when there is none. `git` gets the path of the repository's common folder, NUL-terminated. */
bool git_find_repo(const char *path, size_t *top, strbuf *git);
/* The repository nearest to path[0..len), for its index. A .git that exists but leads nowhere ends the search
 * (BROKEN). */
typedef enum git_repo_found { GIT_REPO_NONE, GIT_REPO_FOUND, GIT_REPO_BROKEN } git_repo_found;
typedef struct git_repo {
  size_t top; /* length of the path of its top folder, a prefix of `path` */
  strbuf own; /* folder of the repository, worktree or submodule that holds its index; NUL-terminated */
  bool sha256;
} git_repo;
git_repo_found git_repo_find(const char *path, size_t len, git_repo *repo);
void git_repo_release(git_repo *repo);
/* Adds the patterns of core.excludesFile and info/exclude; `git` is "" outside of a repository. */
LODE_MUST lode_status git_add_excludes(ignore_rules *ignore, const char *git, lode_error *err);
/* core.excludesFile from the text of a configuration file, unquoted; the last one counts. False when it is not set. */
bool git_config_excludes_file(lode_str config, strbuf *value);

#endif
