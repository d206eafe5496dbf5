/* ignore.h - which paths a .gitignore leaves out, as git decides it; and globs for --path.
 *
 * Paths are bytes, relative to the root of the rules, with / between names and none at either end. Rules are kept in
 * layers: the most specific layer that has a matching pattern decides, in it the last pattern that matches. From the
 * most specific: .lodeignore files from the deepest folder up, .gitignore files from the deepest up, .git/info/exclude,
 * core.excludesFile. A pattern never re-includes what lies in an ignored folder: who walks does not enter one, and
 * lode__ignore_path asks from the outside in.
 *
 * Matching is iterative and takes time linear in the path for each pattern and wildcard.
 */
#ifndef LODE_CODE_IGNORE_H
#define LODE_CODE_IGNORE_H

#include "base/base.h"

#define LODE__IGNORE_FILE_BYTES (4u << 20) /* of one file of patterns; the rest is not read */

typedef enum lode__ignore_source {
  LODE__IGNORE_GLOBAL,  /* core.excludesFile */
  LODE__IGNORE_EXCLUDE, /* .git/info/exclude */
  LODE__IGNORE_GIT,     /* .gitignore of a folder */
  LODE__IGNORE_LODE,    /* .lodeignore of a folder */
} lode__ignore_source;

typedef struct lode__ignore lode__ignore;

LODE_MUST lode_status lode__ignore_new(lode__ignore **ignore, lode_error *err);
void lode__ignore_free(lode__ignore *ignore);
/* Adds the patterns of a file that lies in `folder` ("" for the root). */
LODE_MUST lode_status lode__ignore_add(lode__ignore *ignore, lode__ignore_source source, lode_str folder, lode_str patterns,
                                       lode_error *err);
/* Forgets the layers of all folders that do not lead to `folder`: a walk that comes out of one calls it. */
void lode__ignore_leave(lode__ignore *ignore, lode_str folder);

typedef enum lode__ignore_verdict {
  LODE__IGNORE_UNDECIDED,
  LODE__IGNORE_YES,
  LODE__IGNORE_NO, /* a pattern with ! says so */
} lode__ignore_verdict;

/* The path alone, not the folders above it. *source says who decided, if anybody; it may be NULL. */
lode__ignore_verdict lode__ignore_match(const lode__ignore *ignore, lode_str path, bool is_folder, lode__ignore_source *source);
/* Folders above first, as git does. */
bool lode__ignore_path(const lode__ignore *ignore, lode_str path, bool is_folder);

/* One glob of --path, with the rules of a line of .gitignore: "*.c" at any depth, "src/x" and "/x" from the root, "src" and
 * all below it, "src/ **" ... A leading ! has no meaning. */
bool lode__glob_path(lode_str glob, lode_str path);
/* wildmatch with WM_PATHNAME: * and ? and [...] stop at /, ** between slashes does not. */
bool lode__glob_match(lode_str glob, lode_str text);

#endif
