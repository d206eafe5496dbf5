/* rescue_plan.h - for one collection: which records there are, and where each one's vector is.
 *
 * Records are the rows of the metadata segment, with the log entries that it has not taken in yet (1.x takes them in when
 * somebody reads) applied on top. A vector is, in this order:
 *   LOG    in the record's newest log entry that has one: exact, as it was given
 *   INDEX  in the vector index, found by the record's label. The label is
 *          - what the pickle says, where its two dictionaries agree and the element bears that label; or, where the pickle is lost,
 *          - by order, in databases that 1.x made: labels are given in the order of insertion, and so are row numbers. Between two records whose
 *            elements are certain (by the pickle, or because a log entry holds the same vector) there must be as many elements
 *            as rows; then they belong to each other. Otherwise nothing is assumed.
 *   NONE   nowhere on the disk
 * Folders of the index that somebody set aside (SEGMENT.drift-..., SEGMENT.quarantine-...) are asked when the index itself has nothing.
 */
#ifndef LODE_RESCUE_RESCUE_PLAN_H
#define LODE_RESCUE_RESCUE_PLAN_H

#include "rescue/chroma_dir.h"
#include "rescue/hnsw.h"

typedef enum rescue_vec_source { RESCUE_VEC_NONE, RESCUE_VEC_LOG, RESCUE_VEC_INDEX } rescue_vec_source;

typedef struct rescue_rec {
  lode_str id;
  int64_t key;          /* of its row; 0: only in the log */
  int64_t seq;
  uint32_t tail, tail_last; /* 1 + log entry: not taken in by the rows yet, chained by plan.next */
  uint32_t old, old_last;   /* the same for those that the rows hold: for values that the rows have lost */
  uint32_t log_vector;  /* 1 + log entry */
  uint32_t slot;        /* 1 + element of the index */
  uint8_t folder;       /* which of plan.folders */
  uint8_t from;         /* rescue_vec_source */
  bool alive;
  bool weak;            /* an add that Chroma may have ignored: the index knows better */
  bool late;            /* inserted after the index was last written */
  bool by_order;
  const char *doubt;    /* what is doubtful about it, NULL: nothing */
} rescue_rec;

typedef enum rescue_pickle_state { RESCUE_PICKLE_WHOLE, RESCUE_PICKLE_TRUNCATED, RESCUE_PICKLE_LOST } rescue_pickle_state;

typedef struct rescue_index_dir {
  char *path;
  bool aside;           /* set aside by somebody */
  rescue_hnsw index;
  lode_status status;   /* of opening it */
  char why[200];
  rescue_pickle_state pickle;
  bool has_pickle;
  uint64_t pickle_ids;  /* entries */
  uint64_t pickle_extra;   /* ids that no record has */
  uint64_t pickle_conflicts; /* labels that the two dictionaries do not agree on */
  int64_t pickle_seq;   /* its max_seq_id; -1: none */
} rescue_index_dir;

#define RESCUE_MAX_INDEX_DIRS 8

typedef struct rescue_plan {
  rescue_dir *chroma;
  rescue_coll *coll;
  rescue_rec *recs;
  size_t n, cap;
  uint32_t *map;        /* open addressing: 1 + record */
  size_t n_map;
  uint32_t *next;       /* of the collection's log entries: the next one of the same record + 1 */
  rescue_index_dir folders[RESCUE_MAX_INDEX_DIRS];
  size_t n_folders;
  uint32_t dimension;
  uint64_t alive, from_log, from_index, missing, by_order;
  lode_str *lost;       /* ids that the index knows and the database, which is damaged, does not */
  size_t n_lost, cap_lost;
} rescue_plan;

lode_status rescue_plan_make(rescue_dir *chroma, rescue_coll *coll, rescue_plan *plan, lode_error *err);
void rescue_plan_release(rescue_plan *plan);

/* rescue_pairs.c: labels for the records that have none yet, from the folder. */
lode_status rescue_plan_match_labels(rescue_plan *plan, size_t folder, lode_error *err);
/* NULL: no such record, dead ones too. */
rescue_rec *rescue_plan_find(const rescue_plan *plan, lode_str id);
/* Whether the rows or the log speak of the id, be it of its deletion. */
bool rescue_plan_mentions(const rescue_plan *plan, lode_str id);
/* The floats of a record's log entry; false: none, or not of the collection's dimension, or not finite. */
bool rescue_plan_log_vector(rescue_plan *plan, const rescue_rec *rec, float *vector);

#endif
