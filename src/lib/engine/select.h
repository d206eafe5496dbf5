/* SPDX-License-Identifier: Apache-2.0 */
/* select.h - a selection (ids and filters) as live records, or as a list of their keys: select.c. */
#ifndef LODE_ENGINE_SELECT_H
#define LODE_ENGINE_SELECT_H

#include "engine/reader.h"
#include "query/filter.h"

/* Keys of records. */
typedef struct engine_rids {
  int64_t *v;
  size_t n, cap;
} engine_rids;
LODE_MUST bool engine_rids_add(engine_rids *rids, int64_t rid);
/* Is it among them? *hint makes lookups in ascending order fast. */
bool engine_rids_contain(const engine_rids *rids, int64_t rid, size_t *hint);

typedef struct engine_select {
  engine_reader *reader;
  lode_selection what;
  filter_expr *filter;
  filter_eval *eval;
  bool has_filter; /* the filter does not match everything */
  bool pending_only;
  bool will_reuse; /* the list will be cached: a long one is worth making */
  bool as_asked;   /* ids: keep their order and duplicates */
  bool planned;
  int phase;
  int64_t *list; /* rids found by id or proposed by an index; 0: no such id */
  size_t n, cap, at;
  int64_t last;                  /* scans: everything up to here was visited */
  uint64_t scan_tx;              /* the reader's transaction that the scan belongs to; 0: none */
  bool scan_whole;               /* the scan began with the first record, and all its transactions saw the same ones */
  uint64_t scan_cursor, scanned; /* the scan's commit; records visited */
  const filter_probe *probe;     /* the one whose proposals are the list; NULL: none */
  size_t probes;                 /* probes that were asked */
  uint64_t evaluated;            /* records read and evaluated */
} engine_select;

/* The selection's memory must outlive `select`. */
LODE_MUST lode_status engine_select_init(engine_select *select, engine_reader *reader, const lode_selection *what,
                                         lode_error *err);
void engine_select_release(engine_select *select);
/* Starts after this rid (or, with as_asked, after this many ids). */
void engine_select_start_after(engine_select *select, int64_t after);
/* The next live record that matches, in rid order. Its strings are valid until the next call. */
LODE_MUST lode_status engine_select_next(engine_select *select, store_rec *rec, bool *more, lode_error *err);
/* Looks up the ids, or asks the metadata index. *proposes: `list` has all records that may match and are not newer than
 * the index; else it takes a full scan to find them. */
LODE_MUST lode_status engine_select_ask(engine_select *select, bool *proposes, lode_error *err);
/* Does a record, as read in the reader's transaction, match the filter? Ids are not checked. */
LODE_MUST lode_status engine_select_eval(engine_select *select, const store_rec *rec, bool *match, lode_error *err);

/* All matching rids, sorted, without duplicates. */
LODE_MUST lode_status engine_select_all(engine_select *select, engine_rids *rids, lode_error *err);
/* The same, but what the metadata index proposes is taken as it is: some may not match or be dead. */
LODE_MUST lode_status engine_select_proposed(engine_select *select, engine_rids *rids, lode_error *err);
/* Restarts the selection from the beginning. */
void engine_select_rewind(engine_select *select);

#endif
