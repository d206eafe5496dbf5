/* SPDX-License-Identifier: Apache-2.0 */
/* oracle_check.c - what the library answers, compared with what it must; see oracle.h. */
#include "support/oracle.h"

#include "support/test.h"

#include <math.h>

static bool same_text(lode_str a, lode_str b) {
  return (a.data == NULL) == (b.data == NULL) && a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

void oracle_check_row(const lode_row *row, const oracle_record *r, unsigned include) {
  strbuf buf = {0};
  CHECKF(same_text(row->id, oracle_id(r)), "the id is %.*s, expected %.*s", (int)row->id.len, row->id.data,
         (int)r->id_len, r->id);
  lode_str meta = include & LODE_METADATA ? oracle_meta_text(r, &buf) : (lode_str){NULL, 0};
  CHECKF(same_text(row->metadata, meta), "%s has the metadata %.*s, expected %.*s", r->id, (int)row->metadata.len,
         row->metadata.data, (int)meta.len, meta.data);
  lode_str document =
      (include & LODE_DOCUMENT) && r->has_document ? (lode_str){r->document, r->document_len} : (lode_str){NULL, 0};
  CHECKF(same_text(row->document, document), "%s has the document %.*s", r->id, (int)row->document.len,
         row->document.data);
  bool vector = (include & LODE_VECTOR) && r->has_vector;
  CHECKF((row->vector != NULL) == vector, "%s: a vector is %s", r->id, vector ? "missing" : "there");
  if (vector) CHECK(row->dimension == r->dim && memcmp(row->vector, r->vector, r->dim * sizeof(float)) == 0);
  CHECK(row->cursor > 0);
  strbuf_release(&buf);
}

void oracle_check_nearest(const lode_result *rows, size_t *at, size_t query, const oracle_hit *hits, size_t n,
                          unsigned include) {
  for (size_t i = 0; i < n; i++) {
    const lode_row *row = lode_result_at(rows, (*at)++);
    CHECKF(row && row->query == query && row->rank == i, "query %zu: %zu hits, expected %zu", query, i, n);
    oracle_check_row(row, hits[i].r, include);
    CHECKF(row->distance == hits[i].score, "%s is at %.9g, expected %.9g", hits[i].r->id, row->distance, hits[i].score);
  }
}

static const oracle_hit *find_hit(const oracle_hit *hits, size_t n, lode_str id) {
  for (size_t i = 0; i < n; i++)
    if (same_text(oracle_id(hits[i].r), id)) return &hits[i];
  return NULL;
}

void oracle_check_text(const lode_result *rows, const oracle_hit *hits, size_t n, size_t k, bool scores,
                       unsigned include) {
  size_t wanted = n < k ? n : k;
  CHECKF(lode_result_count(rows) == wanted, "%zu hits, expected %zu", lode_result_count(rows), wanted);
  for (size_t i = 0; i < wanted; i++) {
    const lode_row *row = lode_result_at(rows, i), *before = i ? lode_result_at(rows, i - 1) : NULL;
    const oracle_hit *hit = find_hit(hits, n, row->id);
    CHECKF(hit, "%.*s does not hold the words", (int)row->id.len, row->id.data);
    CHECK(row->rank == i && isnan(row->distance));
    if (before) CHECK(before->score > row->score || (before->score == row->score && str_cmp(before->id, row->id) < 0));
    oracle_check_row(row, hit->r, include);
    if (!scores) continue;
    CHECKF(fabs(row->score - hit->score) < 1e-9, "%s scores %.17g, expected %.17g", hit->r->id, row->score, hit->score);
    CHECKF(fabs(row->score - hits[i].score) < 1e-9, "rank %zu: %s scores %.17g, expected %s with %.17g", i, hit->r->id,
           row->score, hits[i].r->id, hits[i].score);
  }
}

void oracle_check_hybrid(const oracle_collection *c, const lode_result *rows, const lode_query_request *q,
                         const oracle_hit *hits, size_t n) {
  size_t wanted = n < q->k ? n : q->k;
  CHECKF(lode_result_count(rows) == wanted, "%zu hits, expected %zu", lode_result_count(rows), wanted);
  for (size_t i = 0; i < wanted; i++) {
    const lode_row *row = lode_result_at(rows, i);
    const oracle_record *r = hits[i].r;
    CHECKF(fabs(row->score - hits[i].score) < 1e-12, "rank %zu: score %.12g, expected %.12g", i, row->score,
           hits[i].score);
    CHECK(row->rank == i);
    oracle_check_row(row, r, q->include);
    CHECK(r->has_vector ? row->distance == oracle_distance(c->metric, q->vectors, r->vector, c->dim)
                        : isnan(row->distance));
  }
}
