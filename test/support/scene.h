/* SPDX-License-Identifier: Apache-2.0 */
/* scene.h - a small store with everything in it, what can be done to it, and what it then holds.
 * The fault, power-cut and damage tests play these scenes and compare fingerprints. */
#ifndef LODE_SCENE_H
#define LODE_SCENE_H

#include "lode.h"

/* Makes a store: two collections, records with and without documents, metadata and vectors, deleted and changed ones;
 * partly indexed. Always the same content. */
void scene_make(const char *folder, uint32_t page_bytes);

/* What an act came to: its status, and a hash of what it answered (0 for writes). */
typedef struct outcome {
  lode_status status;
  uint64_t answer;
  char text[600];
} outcome;

typedef struct act {
  const char *name;
  outcome (*play)(const char *folder); /* opens the store, does it, closes the store */
  bool writes;
} act;
extern const act scene_acts[];
extern const int scene_n_acts;

/* Hash of all that a store holds as a user sees it. Fails the test if it cannot be read. */
uint64_t scene_content(const char *folder);
/* Fails the test, with `what` in its text, unless verify finds nothing. */
void scene_verify(const char *folder, const char *what);

/* Single questions, for damage tests: count, get of everything, vector query, filtered query, text query, facets. */
#define SCENE_QUESTIONS 7
outcome scene_ask(lode_store *store, int question);
const char *scene_question(int question);
/* The same after opening the store read-only or not; a failed open is the outcome. */
outcome scene_open_and_ask(const char *folder, int question, bool read_only);

/* Runs SQL on a store's database file as somebody who knows its page checksums could: nothing is switched off. */
void scene_sql(const char *folder, const char *sql);
#define SCENE_FORMAT_1                                                                                                 \
  "PRAGMA user_version=1; UPDATE state SET k=3 WHERE k=7;" /* makes a store one of format 1 again */

/* Rewrites the format number of a database file, with a right page checksum. */
void scene_set_format(const char *file, unsigned format);
/* Seals all pages of a database file and sets the root that fits them: for damage that only the content shows. */
void scene_reseal(void *bytes, size_t len, size_t page_bytes);
/* Makes it a database without a root, as those of format 1. */
void scene_drop_root(void *bytes, size_t len, size_t page_bytes);

#endif
