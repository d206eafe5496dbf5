/* SPDX-License-Identifier: Apache-2.0 */
/* remote_select.h - a selection (remote_filter.c), its records in order (remote_scroll.c), records by id
 * (remote_read.c). */
#ifndef LODE_REMOTE_REMOTE_SELECT_H
#define LODE_REMOTE_REMOTE_SELECT_H

#include "query/filter.h"
#include "remote/remote_point.h"
#include "remote/remote_registry.h"

typedef struct remote_select {
  remote_collection *c;
  const lode_selection *what;
  filter_expr *filter;
  filter_eval *eval;
  bool has_filter; /* the filter does not match everything */
  bool pending_only;
  strbuf prefilter; /* conditions for "must", separated by commas; may be empty */
} remote_select;
LODE_MUST lode_status remote_select_init(remote_select *s, remote_collection *c, const lode_selection *what,
                                         lode_error *err);
/* Builds `prefilter`, and the indexes that it needs. */
LODE_MUST lode_status remote_select_plan(remote_select *s, const remote_entry *entry, lode_error *err);
void remote_select_release(remote_select *s);
LODE_MUST lode_status remote_select_match(remote_select *s, const remote_point *p, bool *match, lode_error *err);
/* Appends ,"filter":{"must":[...]} with the prefilter and `more` conditions; nothing if there are none. */
void remote_select_put_filter(strbuf *out, const remote_select *s, lode_str more);
bool remote_select_needs_doc(const remote_select *s);

/* A scan of all matching records, in the order of insertion. */
typedef struct remote_scroll {
  remote_select *select;
  const remote_entry *entry;
  unsigned include;
  size_t page;    /* points per request */
  uint64_t start; /* the next page begins with this n */
  size_t skip;    /* this many points with n == start were returned already */
  remote_call call;
  uint32_t *nodes; /* points of the page, sorted by (n, id) */
  uint64_t *ns;    /* n of each */
  size_t count, at, cap_nodes, cap_ns;
  bool last; /* this is the last page */
  strbuf vector;
} remote_scroll;
void remote_scroll_init(remote_scroll *s, remote_select *select, const remote_entry *entry, unsigned include);
/* The strings and the vector of the point are valid until the next call. */
LODE_MUST lode_status remote_scroll_next(remote_scroll *s, remote_point *p, bool *more, lode_error *err);
void remote_scroll_release(remote_scroll *s);
/* The position after the point that was last returned, for remote_scroll_resume(); 0 if it is one of more than
 * REMOTE_MAX_SAME_PLACE with the same n, which a position cannot tell apart. */
enum { REMOTE_MAX_SAME_PLACE = 2047 };
uint64_t remote_scroll_position(const remote_scroll *s, const remote_point *p);
void remote_scroll_resume(remote_scroll *s, uint64_t position);
/* Is it in the range of positions? */
bool remote_scroll_is_position(uint64_t position);

/* ---- Reads and writes by id ---- */

typedef lode_status remote_point_fn(void *ctx, size_t i, const remote_point *p, lode_error *err);
/* Calls fn for each of the ids that has a record, in any order; i is the index of the id. */
typedef struct remote_find_request {
  remote_collection *c;
  const remote_entry *entry;
  const lode_str *ids;
  size_t n;
  unsigned include;
  bool with_payload; /* else only id and n are read */
  remote_point_fn *fn;
  void *ctx;
} remote_find_request;
LODE_MUST lode_status remote_find(const remote_find_request *request, lode_error *err);
/* Appends a row with these parts of the point. */
LODE_MUST lode_status remote_result_add(lode_result *result, const remote_point *p, unsigned include, lode_row **row,
                                        lode_error *err);

#endif
