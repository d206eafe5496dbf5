/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_help.h - Chroma directories for the tests: unpacked fixtures, and what they should give back. */
#ifndef LODE_TEST_RESCUE_HELP_H
#define LODE_TEST_RESCUE_HELP_H

#include "lode.h"
#include "rescue/rescue.h"

extern const char *const rescue_fixtures[]; /* "0.4.3", ...; ends with NULL */

/* Unpacks a fixture into a new folder; "FOLDER/chroma" is the directory. Skips the test where tar or xz is missing. */
const char *rescue_unpack(const char *version);
/* "FOLDER/chroma/SEGMENT" of the collection's index. */
void rescue_segment(const char *folder, const char *collection, char *path, size_t size);
/* Runs statements on "FOLDER/chroma/chroma.sqlite3". */
void rescue_sql(const char *folder, const char *text);

typedef struct rescue_outcome {
  rescue_counts total;
  uint64_t collections;
  uint64_t told; /* doubtful records */
  uint64_t compared;
  uint64_t absent;       /* expected records that are not there */
  uint64_t extra;        /* records that nobody expected */
  uint64_t wrong_text;   /* documents or metadata that differ */
  uint64_t wrong_vector; /* vectors that differ */
  uint64_t no_vector;
  uint64_t wrong_untold; /* of the wrong ones, those that were not reported */
  uint64_t text_untold;
} rescue_outcome;

/* Rescues FOLDER/chroma into the store `to` and compares that with FOLDER/expected.jsonl. */
lode_status rescue_into(const char *folder, const char *to, const char *only, rescue_outcome *outcome, lode_error *err);
/* Rescues FOLDER/chroma into a new store and compares that with FOLDER/expected.jsonl. `only`: NULL, or one collection
 * to look at. */
lode_status rescue_run(const char *folder, const char *only, rescue_outcome *outcome, lode_error *err);
/* Each expected record is there as it was, and no other. */
void rescue_check_whole(const rescue_outcome *outcome);

#endif
