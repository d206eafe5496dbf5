/* indexing.h - an indexer, shared by the files that make it up:
 *   index.c        life, one run from walk to switch
 *   index_open.c   models and collections; whether everything has to be made anew
 *   index_walk.c   which files are to be read
 */
#ifndef LODE_CODE_INDEXING_H
#define LODE_CODE_INDEXING_H

#include "code/batch.h"
#include "code/index.h"
#include "code/stamp.h"

enum { LODE__FILE_COST = 2048 }; /* what a file costs beside its bytes, for the time left */

typedef struct tasks {
  lode__feed_task *v;
  size_t n, cap;
  uint64_t cost;         /* bytes, and something for each file */
  mem_arena arena;
} tasks;

typedef struct prefixes {
  lode_str *v;
  size_t n, cap;
} prefixes;

struct lode__indexer {
  const lode__project *project;
  lode_store *store;
  lode__index_options options;
  lode__root *root;
  struct stat root_stat;
  lode__pool *pool;
  lode_embedder *embedder, *second;
  bool own_embedder, instant; /* instant: the model is fast enough to embed in the first pass */
  lode__shelf shelf;
  lode_collection *old_code, *old_quality; /* while building aside: donors of vectors */
  bool recheck;             /* secrets were treated in another way when the index was made: all files are read again, once */
  bool aside, donate;       /* donate: vectors of old_code are of the same model */
  lode__known_files known;
  lode__stamp stamp;
  /* of one run */
  lode__index_report *report;
  tasks todo;
  prefixes scope, unreadable;
  size_t notes;
};

/* For the user to read; the first few of a run. */
void lode__indexing_note(lode__indexer *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Progress; false: stop. */
bool lode__indexing_step(void *ctx, const char *phase, uint64_t done, uint64_t total);
lode_progress lode__indexing_progress(lode__indexer *x);

LODE_MUST lode_status lode__indexing_open_models(lode__indexer *x, lode_error *err);
LODE_MUST lode_status lode__indexing_open(lode__indexer *x, lode_error *err);
void lode__indexing_close(lode__indexer *x);
LODE_MUST lode_status lode__indexing_keep_stamp(lode__indexer *x, lode_error *err);

/* Fills x->todo with what differs from what is known, marks what was met, and notes folders that could not be read. */
LODE_MUST lode_status lode__indexing_walk(lode__indexer *x, const lode_str *paths, size_t n, lode_error *err);
LODE_MUST lode_status lode__indexing_load_known(lode__indexer *x, lode_error *err);
LODE_MUST lode_status lode__indexing_check_root(const lode__indexer *x, lode_error *err);
LODE_MUST lode_status lode__indexing_add_prefix(lode__indexer *x, prefixes *p, lode_str path, lode_error *err);
bool lode__indexing_is_under(const prefixes *p, lode_str path);

#endif
