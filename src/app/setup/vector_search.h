/* SPDX-License-Identifier: Apache-2.0 */
/* vector_search.h - what mcp-vector-search was told about a project: ROOT/.mcp-vector-search/config.json, as Lode's
 * settings. The file may have come with a clone: no link is followed, and nothing in it reaches beyond the project. */
#ifndef LODE_SETUP_VECTOR_SEARCH_H
#define LODE_SETUP_VECTOR_SEARCH_H

#include "base/base.h"

#define SETUP_VECTOR_SEARCH_ENTRY "mcp-vector-search" /* its name in the settings of AI tools */

typedef struct setup_vector_search {
  bool found;
  strbuf extensions;      /* for index.extensions; empty: as many as its default list has, so no limit */
  strbuf include;         /* for index.exclude, "!docs, !*.log": what it takes although git ignores it */
  bool hidden;            /* for index.hidden */
  bool without_git;       /* it disregards .gitignore, which Lode does not */
  strbuf embedding_model; /* as it is called there */
} setup_vector_search;

/* LODE_INVALID: there is one, and it cannot be parsed. After a failure too, release it. */
LODE_MUST lode_status setup_vector_search_read(const char *root, setup_vector_search *found, lode_error *err);
void setup_vector_search_release(setup_vector_search *found);

#endif
