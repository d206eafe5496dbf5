/* regex.h - regular expressions (PCRE2) that cannot hang: every search is bounded in time, stack and memory. */
#ifndef LODE_QUERY_REGEX_H
#define LODE_QUERY_REGEX_H

#include "base/base.h"

#define REGEX_MAX_PATTERN_BYTES (64u << 10)

/* A compiled pattern; immutable, may be used by many threads. Characters are Unicode's, \w, \d and \b too. The
 * backtracking verbs, (*SKIP) and its like, and \G are refused: they make no sense for a question of yes or no. */
typedef struct regex_pattern regex_pattern;
lode_status regex_new(lode_str pattern, regex_pattern **regex, lode_error *err);
void regex_free(regex_pattern *regex);

/* Scratch of one thread, and its account: all searches of a runner may together take two seconds, 10 us for each search
 * and 200 ns for each byte searched. */
typedef struct regex_runner regex_runner;
lode_status regex_runner_new(regex_runner **runner, lode_error *err);
void regex_runner_free(regex_runner *runner);

/* Whether the pattern matches somewhere in the text, which must be valid UTF-8. LODE_LIMIT when finding that out takes
 * too many steps, too much time or too much memory. */
lode_status regex_search(regex_runner *runner, const regex_pattern *regex, lode_str text, bool *found,
                               lode_error *err);

#endif
