/* git.h - what of a git repository concerns ignoring: where its top is, and the patterns outside of .gitignore files.
 *
 * Repositories and their configuration are only read, and what cannot be read is as if it were not there. A .git that is a
 * file (worktrees, submodules) is followed to the folder that it names.
 */
#ifndef LODE_CODE_GIT_H
#define LODE_CODE_GIT_H

#include "code/ignore.h"

/* The nearest folder at or above `path` (absolute) that has a .git. *top is its length as a beginning of path; false
 * when there is none. `git` gets the path of the repository's common folder, NUL behind. */
bool lode__git_find(const char *path, size_t *top, lode__buf *git);
/* core.excludesFile and info/exclude; `git` is "" outside of a repository. */
LODE_MUST lode_status lode__git_excludes(lode__ignore *ignore, const char *git, lode_error *err);
/* core.excludesFile of a configuration file's text, unquoted; false when it does not say. The last one counts. */
bool lode__git_excludes_file(lode_str config, lode__buf *value);

#endif
