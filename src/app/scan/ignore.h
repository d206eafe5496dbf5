/* ignore.h - which paths a .gitignore leaves out, as git decides it; and globs for --path.
 *
 * Paths are bytes, relative to the root of the rules, with / between names and none at either end. Rules are kept in
 * layers: the most specific layer that has a matching pattern decides, in it the last pattern that matches. From the
 * most specific: .lodeignore files from the deepest folder up, .gitignore files from the deepest up, .git/info/exclude,
 * core.excludesFile. A pattern never re-includes what lies in an ignored folder: who walks does not enter one, and
 * ignore_match_path asks from the outside in.
 *
 * Matching is iterative and takes time linear in the path for each pattern and wildcard.
 */
#ifndef LODE_SCAN_IGNORE_H
#define LODE_SCAN_IGNORE_H

#include "base/base.h"

#define IGNORE_MAX_FILE_BYTES (4u << 20) /* of one file of patterns; the rest is not read */

typedef enum ignore_source {
  IGNORE_GLOBAL,  /* core.excludesFile */
  IGNORE_EXCLUDE, /* .git/info/exclude */
  IGNORE_GIT,     /* .gitignore of a folder */
  IGNORE_LODE,    /* .lodeignore of a folder */
} ignore_source;

typedef struct ignore_rules ignore_rules;

LODE_MUST lode_status ignore_new(ignore_rules **ignore, lode_error *err);
void ignore_free(ignore_rules *ignore);
/* Adds the patterns of a file that lies in `folder` ("" for the root). */
LODE_MUST lode_status ignore_add(ignore_rules *ignore, ignore_source source, lode_str folder, lode_str patterns,
                                       lode_error *err);
/* Forgets the layers of all folders that do not lead to `folder`: a walk that comes out of one calls it. */
void ignore_leave(ignore_rules *ignore, lode_str folder);

typedef enum ignore_verdict {
  IGNORE_UNDECIDED,
  IGNORE_YES,
  IGNORE_NO, /* a pattern with ! says so */
} ignore_verdict;

/* The path alone, not the folders above it. *source says who decided, if anybody; it may be NULL. */
ignore_verdict ignore_match(const ignore_rules *ignore, lode_str path, bool is_folder, ignore_source *source);
/* Folders above first, as git does. */
bool ignore_match_path(const ignore_rules *ignore, lode_str path, bool is_folder);

/* One glob of --path, with the rules of a line of .gitignore: "*.c" at any depth, "src/x" and "/x" from the root, "src" and
 * all below it, "src/ **" ... A leading ! has no meaning. */
bool ignore_glob_path(lode_str glob, lode_str path);
/* wildmatch with WM_PATHNAME: * and ? and [...] stop at /, ** between slashes does not. */
bool ignore_glob_match(lode_str glob, lode_str text);

#endif
