/* SPDX-License-Identifier: Apache-2.0 */
/* ignore.h - which paths .gitignore files exclude, by git's rules; and globs for --path.
 *
 * Paths are bytes, relative to the root of the rules, with / between names and none at either end. Rules are kept in
 * layers. The most specific layer with a matching pattern decides, and in it the last matching pattern. From the most
 * specific: .lodeignore files from the deepest folder up, .gitignore files from the deepest folder up,
 * .git/info/exclude, core.excludesFile. A pattern never re-includes anything in an ignored folder: a walk does not
 * enter one, and ignore_match_path() tests from the outermost folder in.
 *
 * Matching is iterative and takes time linear in the path for each pattern and wildcard.
 */
#ifndef LODE_SCAN_IGNORE_H
#define LODE_SCAN_IGNORE_H

#include "base/base.h"

#define IGNORE_MAX_FILE_BYTES (4u << 20) /* only this much of a file of patterns is read */

typedef enum ignore_source {
  IGNORE_GLOBAL,  /* core.excludesFile */
  IGNORE_EXCLUDE, /* .git/info/exclude */
  IGNORE_GIT,     /* .gitignore of a folder */
  IGNORE_LODE,    /* .lodeignore of a folder */
} ignore_source;

typedef struct ignore_rules ignore_rules;

LODE_MUST lode_status ignore_new(ignore_rules **ignore, lode_error *err);
void ignore_free(ignore_rules *ignore);
/* Adds the patterns of a file in `folder` ("" for the root). */
LODE_MUST lode_status ignore_add(ignore_rules *ignore, ignore_source source, lode_str folder, lode_str patterns,
                                 lode_error *err);
/* Drops the layers of all folders that are neither `folder` nor above it. A walk calls it when it leaves a folder. */
void ignore_leave(ignore_rules *ignore, lode_str folder);

typedef enum ignore_verdict {
  IGNORE_UNDECIDED,
  IGNORE_YES,
  IGNORE_NO, /* re-included by a pattern with ! */
} ignore_verdict;

/* Tests the path alone, not the folders above it. *source gets the layer's source if one decided; it may be NULL. */
ignore_verdict ignore_match(const ignore_rules *ignore, lode_str path, bool is_folder, ignore_source *source);
/* Tests the folders above it first, as git does. */
bool ignore_match_path(const ignore_rules *ignore, lode_str path, bool is_folder);

/* Tests one glob of --path, with the rules of a .gitignore line: "*.c" matches at any depth, "src/x" and "/x" from
 * the root, "src" matches the folder and everything below it, as "src/ **" does. A leading ! has no special
 * meaning. */
bool ignore_glob_path(lode_str glob, lode_str path);
/* wildmatch with WM_PATHNAME: *, ? and [...] do not match /, ** between slashes does. */
bool ignore_glob_match(lode_str glob, lode_str text);

#endif
