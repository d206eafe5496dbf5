/* git.h - what of a git repository concerns ignoring: where its top is, and the patterns outside of .gitignore files.
 *
 * Repositories and their configuration are only read, and what cannot be read is as if it were not there. A .git that is a
 * file (worktrees, submodules) is followed to the folder that it names. A .git of another user ends the search, as if there
 * were no repository: whoever can make a folder above could otherwise choose what is indexed.
 */
#ifndef LODE_SCAN_GIT_H
#define LODE_SCAN_GIT_H

#include "scan/ignore.h"

/* The nearest folder at or above `path` (absolute) that has a .git. *top is its length as a beginning of path; false
 * when there is none. `git` gets the path of the repository's common folder, NUL behind. */
bool git_find_repo(const char *path, size_t *top, strbuf *git);
/* The repository nearest to path[0..len), for its index: a .git that is there and leads nowhere ends the search. */
typedef enum git_repo_found { GIT_REPO_NONE, GIT_REPO_FOUND, GIT_REPO_BROKEN } git_repo_found;
typedef struct git_repo {
  size_t top;     /* its length as a beginning of path */
  strbuf own;  /* folder of the repository, worktree or submodule, NUL behind: its index lies there */
  bool sha256;
} git_repo;
git_repo_found git_repo_find(const char *path, size_t len, git_repo *place);
void git_repo_release(git_repo *place);
/* core.excludesFile and info/exclude; `git` is "" outside of a repository. */
LODE_MUST lode_status git_add_excludes(ignore_rules *ignore, const char *git, lode_error *err);
/* core.excludesFile of a configuration file's text, unquoted; false when it does not say. The last one counts. */
bool git_config_excludes_file(lode_str config, strbuf *value);

#endif
