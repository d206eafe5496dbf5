/* SPDX-License-Identifier: Apache-2.0 */
/* sim_ask.c - reading everything and asking questions, and whether the answers are right; see sim.h. */
#include "support/sim_load.h"

#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading everything ---- */

static unsigned counter_of(const lode_row *row) {
  char text[40];
  snprintf(text, sizeof text, "%.*s", (int)row->metadata.len, row->metadata.data);
  unsigned k = 0;
  CHECK(sscanf(text, "{\"n\":%u", &k) == 1);
  return k;
}

static sim_view view_of(const lode_result *rows) {
  sim_view view = {0};
  for (int p = 0; p < SIM_PROCS; p++) {
    lode_str id = oracle_id(sim_model_record(p, SIM_SLOTS, 1));
    for (size_t i = 0; i < lode_result_count(rows); i++)
      if (str_cmp(lode_result_at(rows, i)->id, id) == 0) view.k[p] = (uint16_t)counter_of(lode_result_at(rows, i));
  }
  return view;
}

static void check_rows(const lode_result *rows, const sim_view *view) {
  const oracle_collection *right = sim_model_records(view);
  size_t n = lode_result_count(rows);
  for (size_t i = 0; i < n; i++) {
    const lode_row *row = lode_result_at(rows, i);
    size_t at = oracle_find(right, row->id);
    CHECKF(at != SIZE_MAX, "%.*s is there and should not be: %.*s; the counters are %u %u %u %u %u", (int)row->id.len,
           row->id.data, (int)row->metadata.len, row->metadata.data, view->k[0], view->k[1], view->k[2], view->k[3],
           view->k[4]);
    oracle_check_row(row, &right->r[at], LODE_ALL);
    for (size_t j = 0; j < i; j++) CHECK(str_cmp(lode_result_at(rows, j)->id, row->id) != 0);
  }
  CHECKF(n == right->n, "%zu records, expected %zu", n, right->n);
}

bool sim_read_all(sim_handle *h, sim_answer *a, const sim_asked *copied) {
  sim_asked asked;
  lode_result *rows;
  sim_model_ask(&asked);
  sim_begin_call(h);
  lode_status st = lode_get(h->c, &(lode_get_request){.include = LODE_ALL}, &rows, &sim_err);
  if (!sim_went_well(h, "get", st)) return false;
  a->view = view_of(rows);
  a->moment = lode_result_moment(rows);
  a->known = true;
  if (copied)
    sim_model_check_copy(copied, &a->view);
  else
    sim_model_check(&asked, &a->view, a->moment);
  check_rows(rows, &a->view);
  sim->n.reads++;
  lode_result_free(rows);
  return true;
}

/* ---- Other answers ---- */

typedef struct question {
  lode_query_request q;
  oracle_filter where;
  bool filtered;
  float vector[SIM_DIM];
  char text[100];
  lode_str words;
} question;

static void make_question(question *w) {
  *w = (question){0};
  test_srand(sim_random());
  w->q = (lode_query_request){.mode = (lode_mode)test_below(3), .n = 1, .k = 1 + test_below(12), .include = LODE_ALL};
  if (sim->graph_rows < SIM_PROCS * SIM_SLOTS) w->q.target_recall = 1;
  oracle_random_vector(w->vector, SIM_DIM);
  w->words = (lode_str){w->text, oracle_random_text(w->text, sizeof w->text, 2)};
  if (w->q.mode != LODE_BY_TEXT) w->q.vectors = w->vector, w->q.dimension = SIM_DIM;
  if (w->q.mode != LODE_BY_VECTOR) w->q.texts = &w->words;
  w->filtered = test_below(3) == 0;
  if (!w->filtered) return;
  if (test_below(2))
    oracle_leaf_filter(&w->where, 1, ORACLE_LT, oracle_int((unsigned)test_below(5)));
  else
    oracle_leaf_filter(&w->where, ORACLE_OWNER, ORACLE_EQ, oracle_int((unsigned)test_below(SIM_PROCS)));
}

/* Equal scores are ranked by the order of insertion, which the model does not have; a fused score depends on ranks. */
static bool has_ties(const oracle_hit *hits, size_t n) {
  for (size_t i = 1; i < n; i++)
    if (fabs(hits[i].score - hits[i - 1].score) < 1e-9) return true;
  return false;
}

static void check_answer(const question *w, const lode_result *rows, const oracle_collection *right) {
  oracle_hit *hits = calloc(2 * right->n + 1, sizeof *hits);
  oracle_selection s = {.where = w->filtered ? &w->where : NULL};
  size_t n, at = 0;
  CHECK(hits);
  if (w->q.mode == LODE_BY_VECTOR) {
    n = oracle_nearest(right, w->vector, &s, hits);
    oracle_check_nearest(rows, &at, 0, hits, n < w->q.k ? n : w->q.k, LODE_ALL);
    CHECK(lode_result_count(rows) == at);
  } else if (w->q.mode == LODE_BY_TEXT) {
    n = oracle_text(right, w->words, &s, false, hits);
    oracle_check_text(rows, hits, n, w->q.k, true, LODE_ALL);
  } else if (!has_ties(hits, oracle_text(right, w->words, &s, true, hits))) {
    n = oracle_hybrid(right, &w->q, &s, hits);
    oracle_check_hybrid(right, rows, &w->q, hits, n);
  }
  free(hits);
}

static bool ask(sim_handle *h, question *w, lode_result **rows) {
  make_question(w);
  if (w->filtered) w->q.select = oracle_request(&(oracle_selection){.where = &w->where});
  sim_begin_call(h);
  return sim_went_well(h, "query", lode_query(h->c, &w->q, rows, &sim_err));
}

/* After some lies the number of a moment may come back. */
static bool is_of_moment(const sim_answer *a, uint64_t moment) {
  return a->known && a->moment == moment && !sim->may_be_older;
}

void sim_ask(sim_handle *h, const sim_answer *before) {
  question w;
  lode_result *rows;
  sim_answer a = *before;
  if (ask(h, &w, &rows)) {
    uint64_t moment = lode_result_moment(rows);
    if (!is_of_moment(&a, moment)) a.known = sim_read_all(h, &a, NULL);
    if (is_of_moment(&a, moment))
      check_answer(&w, rows, sim_model_records(&a.view));
    else
      sim->n.unplaced++;
    sim->n.answers++;
    lode_result_free(rows);
  }
  oracle_filter_release(&w.where);
}

void sim_ask_about(sim_handle *h, const oracle_collection *right) {
  question w;
  lode_result *rows;
  if (ask(h, &w, &rows)) {
    check_answer(&w, rows, right);
    sim->n.answers++;
    lode_result_free(rows);
  }
  oracle_filter_release(&w.where);
}
