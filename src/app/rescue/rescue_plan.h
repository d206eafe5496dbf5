/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_plan.h - for one collection: which records there are, and where the vector of each one is.
 *
 * Records are the rows of the metadata segment, with the log entries that it has not applied yet (1.x applies them when
 * somebody reads) on top. A vector is, in this order:
 *   LOG    in the record's newest log entry that has one: exact, as it was given
 *   INDEX  in the vector index, found by the record's label, which comes
 *          - from the pickle, if its two dictionaries agree and an element has that label; or, if the pickle is lost,
 *          - from the order, in databases that 1.x created: labels are assigned in the order of insertion, and so are
 *            row numbers. Between two records whose elements are certain (from the pickle, or because a log entry has
 *            the same vector) there must be as many elements as rows; then they match one to one. Otherwise nothing is
 *            assumed.
 *   NONE   nowhere on the disk
 * Folders of the index that were set aside (SEGMENT.drift-..., SEGMENT.quarantine-...) are used where the index has
 * nothing.
 */
#ifndef LODE_RESCUE_RESCUE_PLAN_H
#define LODE_RESCUE_RESCUE_PLAN_H

#include "rescue/chroma_dir.h"
#include "rescue/hnsw.h"

typedef enum rescue_vec_source { RESCUE_VEC_NONE, RESCUE_VEC_LOG, RESCUE_VEC_INDEX } rescue_vec_source;

typedef struct rescue_rec {
  lode_str id;
  int64_t key; /* of its row; 0: only in the log */
  int64_t seq;
  uint32_t tail, tail_last; /* 1 + log entry: first and last not yet applied to the rows, chained by plan.next */
  uint32_t old, old_last;   /* the same for applied entries: for values that the rows have lost */
  uint32_t log_vector;      /* 1 + log entry; 0: none */
  uint32_t slot;            /* 1 + element of the index; 0: none */
  uint8_t folder;           /* which of plan.folders */
  uint8_t from;             /* rescue_vec_source */
  bool alive;
  bool weak; /* an add that Chroma may have ignored: the index is preferred */
  bool late; /* inserted after the index was last written */
  bool by_order;
  const char *doubt; /* what is doubtful about it; NULL: nothing */
} rescue_rec;

typedef enum rescue_pickle_state {
  RESCUE_PICKLE_WHOLE,
  RESCUE_PICKLE_TRUNCATED,
  RESCUE_PICKLE_LOST
} rescue_pickle_state;

typedef struct rescue_index_dir {
  char *path;
  bool set_aside; /* by rescue_quarantine() or somebody else */
  rescue_hnsw index;
  lode_status status; /* result of opening it */
  char why[200];
  rescue_pickle_state pickle;
  bool has_pickle;
  uint64_t pickle_ids;       /* entries of id_to_label */
  uint64_t pickle_extra;     /* ids that no record has */
  uint64_t pickle_conflicts; /* labels on which the two dictionaries disagree, or that several records claim */
  int64_t pickle_seq;        /* its max_seq_id; -1: none */
} rescue_index_dir;

#define RESCUE_MAX_INDEX_DIRS 8

typedef struct rescue_plan {
  rescue_dir *chroma;
  rescue_coll *coll;
  rescue_rec *recs;
  size_t n, cap;
  uint32_t *map; /* open addressing: 1 + record */
  size_t n_map;
  uint32_t *next; /* by log entry of the collection: 1 + the next entry of the same record */
  rescue_index_dir folders[RESCUE_MAX_INDEX_DIRS];
  size_t n_folders;
  uint32_t dimension;
  uint64_t alive, from_log, from_index, missing, by_order;
  lode_str *lost; /* ids in the index whose rows the damaged database has lost */
  size_t n_lost, cap_lost;
} rescue_plan;

LODE_MUST lode_status rescue_plan_make(rescue_dir *chroma, rescue_coll *coll, rescue_plan *plan, lode_error *err);
void rescue_plan_release(rescue_plan *plan);

/* rescue_pairs.c: matches records that have no label yet with the labels of the folder's index. */
LODE_MUST lode_status rescue_plan_match_labels(rescue_plan *plan, size_t folder, lode_error *err);
/* NULL: no such record, or a deleted one. */
rescue_rec *rescue_plan_find(const rescue_plan *plan, lode_str id);
/* Do the rows or the log mention the id, even if only to delete it? */
bool rescue_plan_mentions(const rescue_plan *plan, lode_str id);
/* Reads the vector of a record's log entry; false: none, not of the collection's dimension, or not finite. */
LODE_MUST bool rescue_plan_log_vector(rescue_plan *plan, const rescue_rec *rec, float *vector);

#endif
