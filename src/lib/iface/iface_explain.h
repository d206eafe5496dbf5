/* SPDX-License-Identifier: Apache-2.0 */
/* iface_explain.h - writes the explanation of a query, as JSON:
 *   {"steps": [{"step": "filter", "method": "post-filter", "why": "...", "candidates": 66, ...}, ...]}
 * Engines add a step for each part of the work, then what they know about it. */
#ifndef LODE_IFACE_IFACE_EXPLAIN_H
#define LODE_IFACE_IFACE_EXPLAIN_H

#include "iface/iface.h"

enum { IFACE_EXPLAIN_MAX_STEPS = 256 }; /* further ones are only counted */

typedef struct iface_explain {
  bool on; /* false: nothing is written */
  strbuf json;
  uint64_t steps;
} iface_explain;

/* Begins a step; method and why may be NULL. */
void iface_explain_step(iface_explain *e, const char *step, const char *method, const char *why);
/* These belong to the step that was begun last. */
void iface_explain_count(iface_explain *e, const char *name, uint64_t n);
void iface_explain_real(iface_explain *e, const char *name, double x);
void iface_explain_str(iface_explain *e, const char *name, lode_str text); /* absent: nothing */
void iface_explain_ms(iface_explain *e, uint64_t ns);
/* The first step: what was asked. */
void iface_explain_query(iface_explain *e, const lode_query_request *request);
/* The result takes a copy. */
LODE_MUST lode_status iface_explain_finish(iface_explain *e, lode_result *result, lode_error *err);
void iface_explain_release(iface_explain *e);

#endif
