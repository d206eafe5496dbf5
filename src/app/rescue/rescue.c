/* SPDX-License-Identifier: Apache-2.0 */
/* rescue.c - copies a Chroma directory into a store, collection by collection and batch by batch; see rescue.h.
 *
 * A batch is one transaction. Records that the store already has are compared field by field; one that differs is
 * replaced as a whole (deleted and added in the same transaction), so that a second run leaves what the first would
 * have.
 */
#include "rescue/rescue.h"

#include <stdio.h>

#include "rescue/rescue_record.h"
#include "rescue/rescue_reembed.h"
#include "rescue/rescue_target.h"

enum { RESCUE_BATCH = 1000 };

typedef struct rescue_batch {
  mem_arena arena;
  lode_record records[RESCUE_BATCH];
  uint8_t from[RESCUE_BATCH];
  size_t n;
  float *vectors;
} rescue_batch;

typedef struct rescue_session {
  const rescue_request *q;
  rescue_dir chroma;
  rescue_plan plan;
  rescue_record_builder builder;
  lode_collection *target;
  rescue_reembed re;
  rescue_batch *b;
  rescue_counts count;
  mem_arena names;
  uint64_t done, total;
} rescue_session;

static lode_status rescue_report_doubt(rescue_session *s, lode_str id, const char *what, lode_error *err) {
  return s->q->doubt ? s->q->doubt(s->q->ctx, s->count.name, id, what, err) : LODE_OK;
}

__attribute__((format(printf, 2, 3))) static void rescue_note(rescue_session *s, const char *format, ...) {
  char text[600];
  va_list list;
  if (!s->q->note) return;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  s->q->note(s->q->ctx, text);
}

static lode_status rescue_progress(rescue_session *s, lode_error *err) {
  if (err_go_on(s->q->progress, s->q->to ? "rescuing" : "looking", s->done, s->total)) return LODE_OK;
  return err_set(err, LODE_CANCELLED, "cancelled; what was written stays, and the same command goes on from there");
}

/* ---- Writing a batch ---- */

static bool rescue_same_text(lode_str a, lode_str b) { return (a.data == NULL) == (b.data == NULL) && str_eq(a, b); }

static bool rescue_same_row(const lode_row *row, const lode_record *r) {
  if (!rescue_same_text(row->id, r->id) || !rescue_same_text(row->document, r->document)) return false;
  if ((row->vector == NULL) != (r->vector == NULL)) return false;
  if (r->vector &&
      (row->dimension != r->dimension || memcmp(row->vector, r->vector, r->dimension * sizeof(float)) != 0))
    return false;
  return rescue_same_text(row->metadata, r->metadata);
}

/* Removes from the batch what the store already has, and deletes from the store what differs. */
static lode_status rescue_drop_unchanged(rescue_session *s, lode_txn *txn, lode_error *err) {
  rescue_batch *b = s->b;
  lode_str *ids = mem_alloc(RESCUE_BATCH * sizeof *ids);
  lode_result *rows = NULL;
  lode_status st = LODE_OK;
  size_t n_stale = 0, n = 0, at = 0;
  if (!ids) return err_nomem(err);
  for (size_t i = 0; i < b->n; i++) ids[i] = b->records[i].id;
  lode_get_request get = {.select = {.ids = ids, .n_ids = b->n}, .include = LODE_ALL};
  TRY_GOTO(lode_get(s->target, &get, &rows, err));
  for (size_t i = 0; i < b->n; i++) {
    const lode_row *row = at < lode_result_count(rows) ? lode_result_at(rows, at) : NULL;
    bool there = row && str_eq(row->id, b->records[i].id);
    if (there) at++;
    if (there && rescue_same_row(row, &b->records[i])) {
      s->count.unchanged++;
      continue;
    }
    if (there) ids[n_stale++] = b->records[i].id;
    b->records[n] = b->records[i];
    n++;
  }
  b->n = n;
  if (n_stale) {
    size_t deleted;
    lode_selection stale = {.ids = ids, .n_ids = n_stale};
    TRY_GOTO(lode_delete(s->target, txn, &stale, &deleted, err));
  }
done:
  lode_result_free(rows);
  mem_free(ids);
  return st;
}

static lode_status rescue_write_batch(rescue_session *s, lode_error *err) {
  rescue_batch *b = s->b;
  lode_txn *txn = NULL;
  lode_error why = {0};
  lode_status st;
  if (b->n == 0 || !s->q->to) return LODE_OK;
  TRY(lode_begin(s->q->to, &txn, err));
  TRY_GOTO(rescue_drop_unchanged(s, txn, err));
  while (b->n) {
    st = lode_add(s->target, txn, b->records, b->n, LODE_KEEP_EXISTING, NULL, &why);
    if (st == LODE_OK || why.record >= b->n || st == LODE_NOMEM) break;
    /* the store rejects this one: report it and continue with the others */
    TRY_GOTO(rescue_report_doubt(s, b->records[why.record].id, why.text, err));
    s->count.refused++;
    s->count.records--;
    if (!b->records[why.record].vector)
      s->count.missing--;
    else if (b->from[why.record] == RESCUE_VEC_LOG)
      s->count.from_log--;
    else
      s->count.exact--;
    b->n--;
    memmove(&b->records[why.record], &b->records[why.record + 1], (b->n - why.record) * sizeof *b->records);
    memmove(&b->from[why.record], &b->from[why.record + 1], b->n - why.record);
  }
  if (st != LODE_OK) {
    if (err) *err = why;
    goto done;
  }
  s->count.written += b->n;
  st = lode_commit(txn, err);
  txn = NULL;
done:
  lode_rollback(txn);
  return st;
}

/* ---- Filling a batch ---- */

static lode_status rescue_add_record(rescue_session *s, const rescue_rec *r, lode_error *err) {
  rescue_batch *b = s->b;
  rescue_plan *p = &s->plan;
  rescue_record made;
  float *vector = b->vectors + b->n * (size_t)p->dimension;
  TRY(rescue_record_build(&s->builder, r, &b->arena, p->dimension ? vector : NULL, &made, err));
  lode_record *out = &b->records[b->n];
  *out = (lode_record){.id = r->id, .document = made.document, .metadata = made.metadata};
  if (made.has_vector) {
    out->vector = vector;
    out->dimension = p->dimension;
  }
  s->count.records++;
  if (!made.has_vector)
    s->count.missing++;
  else if (made.from == RESCUE_VEC_LOG)
    s->count.from_log++;
  else
    s->count.exact++;
  s->count.by_order += made.has_vector && made.from == RESCUE_VEC_INDEX && r->by_order;
  b->from[b->n] = (uint8_t)made.from;
  bool again = !made.has_vector && s->re.embedder && made.document.len;
  const char *doubt = made.doubt        ? made.doubt
                      : made.has_vector ? NULL
                      : again           ? "its vector was made again from the document"
                                        : "its vector is nowhere on the disk";
  if (doubt) {
    s->count.doubtful++;
    TRY(rescue_report_doubt(s, r->id, doubt, err));
  }
  b->n++;
  return LODE_OK;
}

/* Embeds the records of the batch that have no vector. */
static lode_status rescue_embed_batch(rescue_session *s, lode_error *err) {
  rescue_batch *b = s->b;
  uint32_t dim = s->plan.dimension;
  if (!s->re.embedder) return LODE_OK;
  for (size_t i = 0; i < b->n; i++) {
    lode_record *r = &b->records[i];
    if (r->vector || r->document.len == 0) continue;
    TRY(lode_embed(s->re.embedder, &r->document, 1, b->vectors + i * (size_t)dim, err));
    r->vector = b->vectors + i * (size_t)dim;
    r->dimension = dim;
    s->count.missing--;
    s->count.embedded++;
  }
  return LODE_OK;
}

static lode_status rescue_records(rescue_session *s, lode_error *err) {
  rescue_batch *b = s->b;
  lode_status st = LODE_OK;
  size_t bytes;
  if (mem_mul_overflow((size_t)s->plan.dimension * sizeof(float), RESCUE_BATCH, &bytes) ||
      !(b->vectors = mem_alloc(bytes)))
    return err_nomem(err);
  for (size_t i = 0; i < s->plan.n; i++) {
    TRY_GOTO(rescue_add_record(s, &s->plan.recs[i], err));
    if (b->n < RESCUE_BATCH && i + 1 < s->plan.n) continue;
    TRY_GOTO(rescue_embed_batch(s, err));
    TRY_GOTO(rescue_write_batch(s, err));
    b->n = 0;
    mem_arena_reset(&b->arena);
    s->done += i + 1 == s->plan.n ? (i % RESCUE_BATCH) + 1 : RESCUE_BATCH;
    TRY_GOTO(rescue_progress(s, err));
  }
done:
  mem_free(b->vectors);
  b->vectors = NULL;
  return st;
}

static lode_status rescue_report_lost(rescue_session *s, lode_error *err) {
  const rescue_plan *p = &s->plan;
  for (size_t i = 0; i < p->n_lost; i++)
    TRY(rescue_report_doubt(s, p->lost[i],
                            "its row is lost: the index knows it, and the database, which is damaged, "
                            "does not",
                            err));
  s->count.lost = p->n_lost;
  return LODE_OK;
}

/* ---- Collections ---- */

static lode_status rescue_collection(rescue_session *s, rescue_coll *coll, lode_error *err) {
  lode_status st = rescue_plan_make(&s->chroma, coll, &s->plan, err);
  if (st != LODE_OK) return st;
  if (s->q->embed) TRY_GOTO(rescue_reembed_begin(&s->re, &s->plan, s->q->model, err));
  if (s->re.why[0])
    rescue_note(s, "%.*s: lost vectors are not made again: %s", (int)coll->name.len, coll->name.data, s->re.why);
  if (coll->metric_unknown)
    rescue_note(s, "%.*s: its metric is lost with its row; l2 is assumed", (int)coll->name.len, coll->name.data);
  s->count =
      (rescue_counts){.chroma_id = coll->id, .metric = lode_metric_name(coll->metric), .dimension = s->plan.dimension};
  s->builder = (rescue_record_builder){.plan = &s->plan};
  TRY_GOTO(rescue_target_name(coll, &s->names, &s->count.name, err));
  if (s->q->to) TRY_GOTO(rescue_target_open(s->q->to, coll, s->count.name, &s->target, err));
  TRY_GOTO(rescue_records(s, err));
  TRY_GOTO(rescue_report_lost(s, err));
  TRY_GOTO(s->q->collection(s->q->ctx, &s->count, err));
done:
  lode_collection_close(s->target);
  s->target = NULL;
  rescue_reembed_end(&s->re);
  rescue_record_builder_release(&s->builder);
  rescue_plan_release(&s->plan);
  return st;
}

static lode_status check_names(rescue_session *s, lode_error *err) {
  lode_str name;
  for (size_t i = 0; s->q->may_write && i < s->chroma.n_colls; i++) {
    TRY(rescue_target_name(&s->chroma.colls[i], &s->names, &name, err));
    TRY(s->q->may_write(s->q->ctx, name, err));
  }
  return LODE_OK;
}

lode_status rescue_from_chroma(const rescue_request *q, lode_error *err) {
  lode_status st;
  rescue_session *s = mem_calloc(1, sizeof *s);
  err_clear(err);
  if (!s || !(s->b = mem_calloc(1, sizeof *s->b))) {
    mem_free(s);
    return err_nomem(err);
  }
  s->q = q;
  mem_arena_init(&s->b->arena, 0);
  mem_arena_init(&s->names, 0);
  TRY_GOTO(rescue_dir_open(q->from, q->progress, &s->chroma, err));
  s->total = s->chroma.n_rows;
  if (s->chroma.damaged)
    rescue_note(s, "chroma.sqlite3 is damaged: rows on pages that no table reaches are taken too (%llu of them)",
                (unsigned long long)s->chroma.stray_rows);
  if (q->to) TRY_GOTO(check_names(s, err));
  if (q->to) TRY_GOTO(rescue_target_databases(q->to, &s->chroma, err));
  for (size_t i = 0; i < s->chroma.n_colls; i++) TRY_GOTO(rescue_collection(s, &s->chroma.colls[i], err));
  st = sqf_check_unchanged(s->chroma.file, err);
done:
  rescue_dir_close(&s->chroma);
  mem_arena_release(&s->b->arena);
  mem_arena_release(&s->names);
  mem_free(s->b);
  mem_free(s);
  return st;
}
