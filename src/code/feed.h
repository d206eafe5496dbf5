/* feed.h - files in, chunks and vectors out: the part of indexing that runs on several threads.
 *
 * Each thread takes the next file, reads it, compares its digest, lets the pool cut it into chunks, makes their records and embeds
 * them. What is done waits in a queue of bounded length and bytes for the one thread that writes. Results come in the order in
 * which they are done. */
#ifndef LODE_CODE_FEED_H
#define LODE_CODE_FEED_H

#include "base/os.h"
#include "code/known.h"
#include "code/pool.h"
#include "code/walk.h"

typedef struct lode__feed_task {
  lode_str path;          /* as shown */
  lode__file_state old;
  bool known;             /* old is set */
  bool recheck;           /* secrets were treated in another way when it was indexed: the same bytes may have to be done again */
  uint64_t size;          /* as the walk saw it */
} lode__feed_task;

typedef struct lode__feed_file {
  const lode__feed_task *task;
  lode__skip skip;        /* NONE, or why it has no chunks; UNREADABLE: nothing is known about it now */
  bool same;              /* its bytes are those that are indexed: only its state changes */
  const lode__language *language;
  lode__file_state state;
  mem_arena arena;      /* of all below */
  lode__chunk_record *records;
  size_t n;
  float *vectors;         /* n x dimension, or NULL */
  lode_str outline;
  lode__parse_outcome outcome;
  char detail[80];
  lode_error error;       /* status LODE_OK, or why the run must end */
  struct lode__feed_file *next;
} lode__feed_file;

typedef struct lode__feed_options {
  const lode__root *root;
  lode__pool *pool;
  lode_embedder *embedder; /* NULL: no vectors in this pass */
  uint32_t threads;
  const lode__feed_task *tasks; /* must outlive the feed */
  size_t n;
} lode__feed_options;

typedef struct lode__feed lode__feed;
LODE_MUST lode_status lode__feed_open(const lode__feed_options *options, lode__feed **feed, lode_error *err);
/* The next file that is done, to be freed with lode__feed_file_free; NULL when there are no more, or when none was done within
 * wait_ms (then *waiting is true). */
lode__feed_file *lode__feed_next(lode__feed *feed, uint32_t wait_ms, bool *waiting);
void lode__feed_file_free(lode__feed_file *file);
/* Stops the threads after their present files. */
void lode__feed_close(lode__feed *feed);

#endif
