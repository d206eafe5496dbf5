/* SPDX-License-Identifier: Apache-2.0 */
/* regex.h - regular expressions (PCRE2) that cannot hang: every search is bounded in time, stack and memory. */
#ifndef LODE_QUERY_REGEX_H
#define LODE_QUERY_REGEX_H

#include "base/base.h"

#define REGEX_MAX_PATTERN_BYTES (64u << 10)

/* A compiled pattern; immutable, may be used by many threads. Characters are Unicode's, also for \w, \d and \b.
 * Backtracking verbs such as (*SKIP) and \G are refused: they are meaningless for a yes-or-no question. */
typedef struct regex_pattern regex_pattern;
LODE_MUST lode_status regex_new(lode_str pattern, regex_pattern **regex, lode_error *err);
void regex_free(regex_pattern *regex);

/* Scratch memory of one thread, and its time budget: all searches of a runner together may take two seconds plus 10 us
 * per search and 200 ns per byte searched. */
typedef struct regex_runner regex_runner;
LODE_MUST lode_status regex_runner_new(regex_runner **runner, lode_error *err);
void regex_runner_free(regex_runner *runner);

/* Does the pattern match anywhere in the text, which must be valid UTF-8? LODE_LIMIT if finding out takes too many
 * steps, too much time or too much memory. */
LODE_MUST lode_status regex_search(regex_runner *runner, const regex_pattern *regex, lode_str text, bool *found,
                                   lode_error *err);

#endif
