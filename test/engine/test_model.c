/* SPDX-License-Identifier: Apache-2.0 */
/* test_model.c - random operations against the oracle, through lode.h only.
 *
 * A world is a store and what it must hold. Each operation is done on both, and what the library answers is compared:
 * rows with all their parts, in their order, distances to the bit, statuses, counts. Reads go through a second,
 * read-only handle half of the time: it must see every commit at once. Maintenance happens at random moments and must
 * change nothing. In the variant of many processes each one owns its records (a metadata key says whose they are),
 * keeps a model of those, and restricts every filter to them.
 */
#include "segments/segment_build.h"
#include "base/base.h"
#include "base/json.h"
#include "kernel/kernel.h"
#include "lode.h"
#include "store/record_ids.h"
#include "support/fault.h"
#include "support/oracle.h"
#include "support/test.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_COLLECTIONS 3
#define MOST_RECORDS 160
#define BATCH 12
#define COUNTER 2 /* the key whose values are counted */

typedef struct coll {
  bool used;
  char name[40];
  lode_collection *handle;
  oracle_collection model;
} coll;

typedef struct world {
  char folder[512];
  uint32_t page_bytes;
  bool background;
  bool cluster;
  int owner; /* -1: the world is ours alone */
  lode_store *store, *reader;
  lode_txn *txn;
  coll c[MOST_COLLECTIONS];
  unsigned names, copies, step;
} world;

static uint64_t operations;

static size_t pick(size_t n) { return (size_t)test_below(n); }
static lode_str name_of(const coll *c) { return (lode_str){c->name, strlen(c->name)}; }
static lode_str text_of(const oracle_filter *f) {
  return f ? (lode_str){f->text.data, f->text.len} : (lode_str){NULL, 0};
}

static bool same_text(lode_str a, lode_str b) {
  return (a.data == NULL) == (b.data == NULL) && a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* ---- Opening ---- */

static void open_world(world *w) {
  lode_error err = {0};
  lode_open_options o = {
      .create = true, .page_bytes = w->page_bytes, .no_background = !w->background, .busy_ms = 60000};
  lode_open_options r = {.read_only = true, .busy_ms = 60000};
  OK(lode_open(w->folder, &o, &w->store, &err));
  OK(lode_open(w->folder, &r, &w->reader, &err));
  for (int i = 0; i < MOST_COLLECTIONS; i++)
    if (w->c[i].used) OK(lode_collection_open(w->store, name_of(&w->c[i]), NULL, &w->c[i].handle, &err));
}

static void close_world(world *w) {
  for (int i = 0; i < MOST_COLLECTIONS; i++) {
    lode_collection_close(w->c[i].handle);
    w->c[i].handle = NULL;
  }
  lode_close(w->reader);
  lode_close(w->store);
  w->reader = w->store = NULL;
}

/* A handle to read with: the writer's, or a new one of the read-only store. Close it if it is not c->handle. */
static lode_collection *reading(world *w, coll *c) {
  lode_error err = {0};
  lode_collection *handle;
  if (pick(2)) return c->handle;
  OK(lode_collection_open(w->reader, name_of(c), NULL, &handle, &err));
  return handle;
}

static void end_reading(coll *c, lode_collection *handle) {
  if (handle != c->handle) lode_collection_close(handle);
}

/* ---- Comparing ---- */

typedef struct expected {
  const oracle_record *r[4 * MOST_RECORDS];
  size_t n;
} expected;

static void expect(expected *e, const oracle_record *r) {
  CHECK(e->n < sizeof e->r / sizeof *e->r);
  e->r[e->n++] = r;
}

/* Gets in one call or in pages, and compares. */
static void check_get(lode_collection *handle, lode_get_request req, const expected *e) {
  lode_error err = {0};
  lode_result *rows;
  size_t seen = 0, pages = 0;
  bool by_offset = pick(4) == 0;
  if (pick(2)) req.limit = 1 + pick(e->n + 2);
  do {
    OK(lode_get(handle, &req, &rows, &err));
    size_t n = lode_result_count(rows);
    CHECKF(seen + n <= e->n, "%zu rows, expected %zu", seen + n, e->n);
    for (size_t i = 0; i < n; i++) oracle_check_row(lode_result_at(rows, i), e->r[seen + i], req.include);
    CHECK(lode_result_at(rows, n) == NULL);
    CHECKF(!req.limit || n == (e->n - seen < req.limit ? e->n - seen : req.limit),
           "a page of %zu rows: limit %zu, %zu left", n, req.limit, e->n - seen);
    seen += n;
    uint64_t next = lode_result_next(rows);
    lode_result_free(rows);
    CHECKF(++pages <= e->n + 2, "paging does not end");
    if (next == 0) break;
    if (by_offset)
      req.offset = seen;
    else
      req.after = next;
  } while (req.limit && pages < 50);
  CHECKF(seen == e->n || pages == 50, "%zu rows, expected %zu", seen, e->n);
}

static void check_counts(coll *c, lode_collection *handle) {
  lode_error err = {0};
  lode_stats stats;
  uint64_t count;
  OK(lode_count(handle, &count, &err));
  CHECKF(count == c->model.n, "the count is %llu, expected %zu", (unsigned long long)count, c->model.n);
  OK(lode_collection_stats(handle, &stats, &err));
  CHECK(stats.records == c->model.n && stats.pending == oracle_pending(&c->model));
}

static void check_facet_list(const lode_facet_list *list, const oracle_facet *facets, size_t n) {
  strbuf buf = {0};
  CHECKF(lode_facet_list_count(list) == n, "%zu facets, expected %zu", lode_facet_list_count(list), n);
  for (size_t i = 0; i < n; i++) {
    const lode_facet *f = lode_facet_list_at(list, i);
    buf.len = 0;
    oracle_facet_text(&facets[i], &buf);
    CHECKF(same_text(f->value, (lode_str){buf.data, buf.len}) && f->count == facets[i].count,
           "facet %zu: %.*s %llu times, expected %.*s %llu times", i, (int)f->value.len, f->value.data,
           (unsigned long long)f->count, (int)buf.len, buf.data, (unsigned long long)facets[i].count);
  }
  strbuf_release(&buf);
}

/* Everything that a collection holds. */
static void check_collection(const world *w, coll *c, lode_collection *handle) {
  lode_error err = {0};
  oracle_filter mine = {0};
  expected e = {.n = 0};
  oracle_facet facets[64];
  lode_facet_list *list;
  if (w->owner >= 0) oracle_leaf_filter(&mine, ORACLE_OWNER, ORACLE_EQ, w->owner);
  for (size_t i = 0; i < c->model.n; i++) expect(&e, &c->model.r[i]);
  check_get(handle, (lode_get_request){.include = LODE_ALL, .select.where = text_of(mine.n ? &mine : NULL)}, &e);
  if (w->owner < 0) {
    check_counts(c, handle);
    OK(lode_counters(handle, oracle_key(COUNTER), &list, &err));
    check_facet_list(list, facets, oracle_facets(&c->model, COUNTER, NULL, facets));
    lode_facet_list_free(list);
  }
  oracle_filter_release(&mine);
}

static void check_info(const world *w, const lode_collection_info *info) {
  for (int i = 0; i < MOST_COLLECTIONS; i++) {
    const coll *c = &w->c[i];
    if (!c->used || !same_text(info->name, name_of(c))) continue;
    CHECK(info->metric == c->model.metric && info->dimension == c->model.dim);
    CHECK(info->records == c->model.n && info->pending == oracle_pending(&c->model));
    return;
  }
  test_failed(__FILE__, __LINE__, "the store has a collection %.*s", (int)info->name.len, info->name.data);
}

static void check_list(const world *w, lode_store *store) {
  lode_error err = {0};
  lode_collection_list *list;
  lode_stats stats;
  size_t n = 0, records = 0;
  OK(lode_collections(store, &list, &err));
  for (int i = 0; i < MOST_COLLECTIONS; i++) {
    n += w->c[i].used;
    records += w->c[i].used ? w->c[i].model.n : 0;
  }
  CHECK(lode_collection_list_count(list) == n);
  for (size_t i = 0; i < n; i++) check_info(w, lode_collection_list_at(list, i));
  lode_collection_list_free(list);
  OK(lode_store_stats(store, &stats, &err));
  CHECK(stats.collections == n && stats.records == records);
}

static void check_all(world *w) {
  for (int i = 0; i < MOST_COLLECTIONS; i++) {
    if (!w->c[i].used) continue;
    lode_collection *handle = reading(w, &w->c[i]);
    check_collection(w, &w->c[i], handle);
    end_reading(&w->c[i], handle);
  }
  if (w->owner < 0) check_list(w, pick(2) ? w->store : w->reader);
}

/* ---- Writes ---- */

static oracle_content content_of(const world *w, const coll *c) {
  static const uint32_t dims[] = {1, 3, 8, 17};
  return (oracle_content){.owner = w->owner, .dim = c->model.dim ? c->model.dim : dims[pick(4)]};
}

static unsigned number(const world *w) { return (unsigned)pick(2 * MOST_RECORDS) + (unsigned)(w->owner + 1) * 100000; }

/* Something that must be refused. */
static void spoil(oracle_record *r, size_t n) {
  size_t at = pick(n);
  uint32_t dim = r[at].dim ? r[at].dim : 3;
  float v[20] = {0};
  switch (pick(3)) {
    case 0:
      if (n > 1) r[at] = r[(at + 1) % n];
      return;
    case 1: v[pick(dim)] = pick(2) ? NAN : -INFINITY; break;
    default: dim = dim == 5 ? 6 : 5;
  }
  oracle_set_vector(&r[at], v, dim);
}

static lode_status write_library(coll *c, lode_txn *txn, oracle_kind kind, const lode_record *r, size_t n,
                                 lode_write_result *result, bool *missing, lode_error *err) {
  switch (kind) {
    case ORACLE_UPSERT: return lode_upsert(c->handle, txn, r, n, result, err);
    case ORACLE_UPDATE: return lode_update(c->handle, txn, r, n, missing, result, err);
    default:
      return lode_add(c->handle, txn, r, n, kind == ORACLE_ADD ? LODE_FAIL_EXISTING : LODE_KEEP_EXISTING, result, err);
  }
}

static void op_write(world *w, coll *c) {
  lode_error err = {0};
  lode_write_result got = {0}, wanted;
  bool missing[BATCH] = {false}, really[BATCH];
  oracle_record r[BATCH];
  lode_record records[BATCH];
  strbuf json[BATCH] = {{0}};
  oracle_content content = content_of(w, c);
  size_t n = 1 + pick(BATCH);
  oracle_kind kind = (oracle_kind)pick(4);
  if (kind != ORACLE_UPDATE && c->model.n + n > MOST_RECORDS) kind = ORACLE_UPDATE;
  content.nulls = kind == ORACLE_UPSERT || kind == ORACLE_UPDATE ? pick(2) : pick(30) == 0;
  for (size_t i = 0; i < n; i++) {
    bool again;
    do {
      oracle_random_record(&r[i], number(w), &content);
      again = kind == ORACLE_ADD && pick(20) && oracle_find(&c->model, oracle_id(&r[i])) != SIZE_MAX;
      for (size_t j = 0; j < i; j++) again = again || same_text(oracle_id(&r[j]), oracle_id(&r[i]));
    } while (again);
  }
  if (pick(10) == 0) spoil(r, n);
  for (size_t i = 0; i < n; i++) records[i] = oracle_to_write(&r[i], &json[i]);
  lode_status st = write_library(c, w->txn, kind, records, n, &got, missing, &err);
  lode_status right = oracle_write(&c->model, kind, r, n, &wanted, really);
  CHECKF(st == right, "write of kind %d: %s (%s), expected %s", (int)kind, lode_status_name(st), err.text,
         lode_status_name(right));
  CHECK(got.written == wanted.written && got.skipped == wanted.skipped);
  if (kind == ORACLE_UPDATE) CHECK(memcmp(missing, really, n * sizeof *missing) == 0);
  if (st != LODE_OK) CHECKF(err.record < n && err.text[0], "the record at fault is not named: %s", err.text);
  for (size_t i = 0; i < n; i++) strbuf_release(&json[i]);
}

/* A selection of some kind. */
typedef struct chosen {
  oracle_selection select;
  oracle_filter where, document;
  oracle_record names[8];
  lode_str ids[8];
} chosen;

static void choose(const world *w, chosen *s) {
  size_t how = pick(6);
  if (how < 3) { /* some ids, one of them twice perhaps */
    size_t n = pick(9);
    for (size_t i = 0; i < n; i++) {
      oracle_name_record(&s->names[i], number(w));
      if (i && pick(6) == 0) s->names[i] = s->names[i - 1];
      s->ids[i] = oracle_id(&s->names[i]);
    }
    s->select.ids = s->ids;
    s->select.n_ids = n;
  }
  if ((how > 0 && how != 4) || (w->owner >= 0 && !s->select.ids)) {
    oracle_random_filter(&s->where, false, w->owner);
    s->select.where = &s->where;
  }
  if (how == 4 || how == 5 || how == 2) {
    oracle_random_filter(&s->document, true, -1);
    s->select.document = &s->document;
  }
}

static void unchoose(chosen *s) {
  oracle_filter_release(&s->where);
  oracle_filter_release(&s->document);
}

static void op_delete(world *w, coll *c) {
  lode_error err = {0};
  chosen s = {0};
  size_t deleted, right = 0;
  choose(w, &s);
  for (size_t i = 0; i < c->model.n; i++) right += oracle_selected(&s.select, &c->model.r[i]);
  if (right <= 40) { /* worlds that are always empty show nothing */
    lode_selection select = oracle_request(&s.select);
    OK(lode_delete(c->handle, w->txn, &select, &deleted, &err));
    CHECKF(deleted == right, "%zu deleted, expected %zu: where %.*s, document %.*s", deleted, right,
           (int)select.where.len, select.where.data, (int)select.where_document.len, select.where_document.data);
    for (size_t i = c->model.n; i-- > 0;)
      if (oracle_selected(&s.select, &c->model.r[i])) oracle_remove(&c->model, i);
  }
  unchoose(&s);
}

/* Several writes as one; the first of them may fail without harm, and all may be taken back. */
static void op_transaction(world *w, coll *c) {
  lode_error err = {0};
  oracle_collection before[MOST_COLLECTIONS] = {{0}};
  uint64_t count;
  (void)c;
  for (int i = 0; i < MOST_COLLECTIONS; i++) oracle_copy(&before[i], &w->c[i].model);
  OK(lode_begin(w->store, &w->txn, &err));
  for (size_t i = 0, n = 1 + pick(5); i < n; i++) {
    coll *d = &w->c[pick(MOST_COLLECTIONS)];
    if (!d->used) continue;
    if (pick(3))
      op_write(w, d);
    else
      op_delete(w, d);
    if (w->owner < 0) { /* nobody sees it yet */
      OK(lode_count(d->handle, &count, &err));
      CHECK(count == before[d - w->c].n);
    }
  }
  if (pick(2)) {
    OK(lode_commit(w->txn, &err));
  } else {
    lode_rollback(w->txn);
    for (int i = 0; i < MOST_COLLECTIONS; i++) oracle_copy(&w->c[i].model, &before[i]);
  }
  w->txn = NULL;
  for (int i = 0; i < MOST_COLLECTIONS; i++) oracle_release(&before[i]);
}

/* ---- Reads ---- */

static void op_get(world *w, coll *c) {
  chosen s = {0};
  expected e = {.n = 0};
  lode_get_request req = {.include = (unsigned)pick(8), .pending_only = pick(4) == 0};
  lode_collection *handle = reading(w, c);
  choose(w, &s);
  req.select = oracle_request(&s.select);
  for (size_t i = 0; i < (s.select.ids ? s.select.n_ids : c->model.n); i++) {
    size_t at = s.select.ids ? oracle_find(&c->model, s.ids[i]) : i;
    if (at == SIZE_MAX || !oracle_selected(&s.select, &c->model.r[at])) continue;
    if (!req.pending_only || !c->model.r[at].has_vector) expect(&e, &c->model.r[at]);
  }
  check_get(handle, req, &e);
  end_reading(c, handle);
  unchoose(&s);
}

static void op_vector_query(world *w, coll *c) {
  static oracle_hit hits[2 * MOST_RECORDS];
  lode_error err = {0};
  lode_result *rows;
  chosen s = {0};
  float v[3 * 20 + 1] = {0};
  size_t at = 0;
  uint32_t dim = c->model.dim ? c->model.dim : 4;
  lode_query_request req = {.vectors = v,
                            .dimension = dim,
                            .n = 1 + pick(3),
                            .k = pick(4) ? 1 + pick(12) : c->model.n + 5,
                            .include = (unsigned)pick(8)};
  lode_collection *handle = reading(w, c);
  if (pick(3) || w->owner >= 0) choose(w, &s);
  req.select = oracle_request(&s.select);
  for (size_t q = 0; q < req.n; q++) oracle_random_vector(v + q * dim, dim);
  OK(lode_query(handle, &req, &rows, &err));
  for (size_t q = 0; q < req.n; q++) {
    size_t n = oracle_nearest(&c->model, v + q * dim, &s.select, hits);
    oracle_check_nearest(rows, &at, q, hits, n < req.k ? n : req.k, req.include);
  }
  CHECK(lode_result_count(rows) == at);
  lode_result_free(rows);
  if (c->model.dim) { /* one of another dimension is refused */
    req.dimension = dim + 1;
    req.n = 1;
    FAILS(LODE_MISMATCH, lode_query(handle, &req, &rows, &err));
    CHECK(rows == NULL);
  }
  end_reading(c, handle);
  unchoose(&s);
}

static void op_text_query(world *w, coll *c) {
  static oracle_hit hits[2 * MOST_RECORDS];
  lode_error err = {0};
  lode_result *rows;
  chosen s = {0};
  char text[200];
  lode_str query = {text, oracle_random_text(text, sizeof text, 1 + (unsigned)pick(4))};
  lode_query_request req = {
      .mode = LODE_BY_TEXT, .texts = &query, .n = 1, .k = pick(3) ? c->model.n + 1 : 1 + pick(9), .include = LODE_ALL};
  lode_collection *handle = reading(w, c);
  if (pick(3) || w->owner >= 0) choose(w, &s);
  req.select = oracle_request(&s.select);
  OK(lode_query(handle, &req, &rows, &err));
  size_t n = oracle_text(&c->model, query, &s.select, false, hits);
  oracle_check_text(rows, hits, n, req.k, w->owner < 0 && !w->cluster, LODE_ALL);
  lode_result_free(rows);
  end_reading(c, handle);
  unchoose(&s);
}

static void op_hybrid_query(world *w, coll *c) {
  static oracle_hit hits[2 * MOST_RECORDS];
  static const double weights[][2] = {{0, 0}, {1, 0.25}, {0, 1}, {2, 1}};
  lode_error err = {0};
  lode_result *rows;
  chosen s = {0};
  char text[200];
  float v[20] = {0};
  size_t weight = pick(4);
  lode_str query = {text, oracle_random_text(text, sizeof text, 1 + (unsigned)pick(4))};
  lode_query_request req = {.mode = LODE_HYBRID,
                            .vectors = v,
                            .dimension = c->model.dim,
                            .texts = &query,
                            .n = 1,
                            .k = 1 + pick(40),
                            .vector_weight = weights[weight][0],
                            .text_weight = weights[weight][1],
                            .include = (unsigned)pick(8)};
  if (c->model.dim == 0) return;
  lode_collection *handle = reading(w, c);
  if (pick(3)) choose(w, &s);
  req.select = oracle_request(&s.select);
  oracle_random_vector(v, req.dimension);
  OK(lode_query(handle, &req, &rows, &err));
  oracle_check_hybrid(&c->model, rows, &req, hits, oracle_hybrid(&c->model, &req, &s.select, hits));
  lode_result_free(rows);
  end_reading(c, handle);
  unchoose(&s);
}

static void op_facets(world *w, coll *c) {
  lode_error err = {0};
  lode_facet_list *list;
  oracle_facet facets[64];
  oracle_filter where = {0};
  int key = (int)pick(ORACLE_OWNER);
  lode_collection *handle = reading(w, c);
  bool filtered = w->owner >= 0 || pick(2);
  if (filtered) oracle_random_filter(&where, false, w->owner);
  size_t n = oracle_facets(&c->model, key, filtered ? &where : NULL, facets), limit = pick(2) ? 0 : 1 + pick(5);
  OK(lode_facets(handle, oracle_key(key), text_of(filtered ? &where : NULL), limit, &list, &err));
  check_facet_list(list, facets, limit && limit < n ? limit : n);
  lode_facet_list_free(list);
  end_reading(c, handle);
  oracle_filter_release(&where);
}

/* ---- Collections ---- */

static void op_create(world *w, coll *c) {
  lode_error err = {0};
  lode_str counters[1] = {oracle_key(COUNTER)};
  lode_collection_options o = {
      .create = true, .must_create = true, .metric = (lode_metric)pick(3), .counters = counters, .n_counters = 1};
  (void)c;
  for (int i = 0; i < MOST_COLLECTIONS; i++) {
    coll *d = &w->c[i];
    if (d->used) continue;
    snprintf(d->name, sizeof d->name, "collection's no. %u", w->names++);
    OK(lode_collection_open(w->store, name_of(d), &o, &d->handle, &err));
    d->used = true;
    oracle_release(&d->model);
    d->model.metric = o.metric;
    lode_collection *twice;
    FAILS(LODE_EXISTS, lode_collection_open(w->store, name_of(d), &o, &twice, &err));
    return;
  }
}

static void op_rename(world *w, coll *c) {
  lode_error err = {0};
  char name[40];
  for (int i = 0; i < MOST_COLLECTIONS; i++)
    if (w->c[i].used && &w->c[i] != c)
      FAILS(LODE_EXISTS, lode_collection_rename(w->store, name_of(c), name_of(&w->c[i]), &err));
  snprintf(name, sizeof name, "renamed \xC3\xA4 %u", w->names++);
  OK(lode_collection_rename(w->store, name_of(c), str_of(name), &err));
  snprintf(c->name, sizeof c->name, "%s", name); /* handles stay good */
}

static void op_drop(world *w, coll *c) {
  lode_error err = {0};
  uint64_t count;
  OK(lode_collection_drop(w->store, name_of(c), &err));
  FAILS(LODE_NOT_FOUND, lode_count(c->handle, &count, &err));
  lode_collection_close(c->handle);
  oracle_release(&c->model);
  *c = (coll){0};
}

/* ---- Whole stores ---- */

static void op_reopen(world *w, coll *c) {
  (void)c;
  close_world(w);
  open_world(w);
}

static void op_optimize(world *w, coll *c) {
  lode_error err = {0};
  (void)c;
  OK(lode_optimize(w->store, (lode_progress){0}, &err));
}

static void op_compact(world *w, coll *c) {
  lode_error err = {0};
  (void)c;
  OK(lode_compact(w->store, (lode_progress){0}, &err));
}

static void show(void *ctx, const lode_damage *d) {
  (void)ctx;
  fprintf(stderr, "%s: %s\n", d->what, d->detail);
}

static void op_verify(world *w, coll *c) {
  lode_error err = {0};
  (void)c;
  OK(lode_verify(w->store, show, NULL, (lode_progress){0}, &err));
}

static void op_restore(world *w, coll *c) {
  lode_error err = {0};
  world copy = *w;
  char file[600];
  (void)c;
  snprintf(file, sizeof file, "%s-backup-%u", w->folder, w->copies);
  snprintf(copy.folder, sizeof copy.folder, "%.480s-restored-%u", w->folder, w->copies++);
  OK(lode_backup(w->store, file, (lode_progress){0}, &err));
  OK(lode_restore(file, copy.folder, (lode_progress){0}, &err));
  open_world(&copy);
  check_all(&copy);
  if (pick(3) == 0) op_verify(&copy, NULL);
  close_world(&copy);
  test_remove_tree(copy.folder);
  unlink(file);
}

static int64_t to_buffer(void *ctx, const void *data, size_t size) {
  size_t some = size > 100 ? 100 + pick(size - 99) : size; /* a stream may take less than it is given */
  strbuf_add(ctx, data, some);
  return (int64_t)some;
}

typedef struct source {
  const char *data;
  size_t len, at;
} source;

static int64_t from_buffer(void *ctx, void *buffer, size_t size) {
  source *s = ctx;
  size_t n = s->len - s->at < size ? s->len - s->at : size;
  if (n > 10) n = 1 + pick(n);
  if (n) memcpy(buffer, s->data + s->at, n);
  s->at += n;
  return (int64_t)n;
}

static void op_export(world *w, coll *c) {
  lode_error err = {0};
  strbuf lines = {0};
  uint64_t written;
  world copy = {.page_bytes = 1024, .owner = w->owner};
  lode_str counters[1] = {oracle_key(COUNTER)};
  lode_collection_options o = {.create = true, .metric = c->model.metric, .counters = counters, .n_counters = 1};
  lode_import_report report;
  lode_collection *handle = reading(w, c);
  OK(lode_export(handle, NULL, LODE_ALL, to_buffer, &lines, (lode_progress){0}, &written, &err));
  end_reading(c, handle);
  CHECK(written == c->model.n && !lines.failed);
  snprintf(copy.folder, sizeof copy.folder, "%.480s-imported-%u", w->cluster ? test_folder() : w->folder, w->copies++);
  open_world(&copy);
  coll *d = &copy.c[0];
  OK(lode_collection_open(copy.store, str_of("imported"), &o, &d->handle, &err));
  source s = {lines.data, lines.len, 0};
  lode_import_request req = {.mode = (lode_import_mode)pick(2), .batch = 1 + pick(40), .read = from_buffer, .ctx = &s};
  OK(lode_import(d->handle, &req, (lode_progress){0}, &report, &err));
  CHECK(report.lines == written && report.written == written && report.skipped == 0);
  snprintf(d->name, sizeof d->name, "imported");
  d->used = true;
  oracle_copy(&d->model, &c->model);
  check_collection(&copy, d, d->handle);
  close_world(&copy);
  oracle_release(&d->model);
  strbuf_release(&lines);
  test_remove_tree(copy.folder);
}

static void op_check(world *w, coll *c) {
  (void)c;
  check_all(w);
}

/* ---- The walk ---- */

typedef struct operation {
  void (*run)(world *w, coll *c);
  unsigned weight;
  bool alone; /* not where other processes use the store */
  bool local; /* not on a cluster */
  const char *name;
} operation;

static const operation table[] = {
    {op_write, 300, false, false, "write"},
    {op_delete, 90, false, false, "delete"},
    {op_transaction, 60, false, true, "transaction"},
    {op_get, 150, false, false, "get"},
    {op_vector_query, 120, false, false, "vector query"},
    {op_text_query, 80, false, false, "text query"},
    {op_hybrid_query, 60, true, true, "hybrid query"},
    {op_facets, 60, false, false, "facets"},
    {op_create, 10, true, false, "create"},
    {op_rename, 4, true, false, "rename"},
    {op_drop, 3, true, false, "drop"},
    {op_reopen, 10, false, false, "reopen"},
    {op_optimize, 25, false, false, "optimize"},
    {op_compact, 3, false, true, "compact"},
    {op_verify, 3, false, false, "verify"},
    {op_restore, 3, true, true, "backup and restore"},
    {op_export, 4, true, false, "export and import"},
    {op_check, 15, false, false, "check"},
};

static const operation *choose_operation(const world *w) {
  unsigned total = 0;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) total += table[i].weight;
  for (;;) {
    unsigned at = (unsigned)pick(total);
    const operation *o = table;
    while (at >= o->weight) at -= (o++)->weight;
    if ((!o->alone || w->owner < 0) && (!o->local || !w->cluster)) return o;
  }
}

static void walk(world *w, unsigned steps) {
  bool loud = getenv("LODE_TEST_TRACE") != NULL;
  for (w->step = 0; w->step < steps; w->step++) {
    coll *c = &w->c[pick(MOST_COLLECTIONS)];
    const operation *o = choose_operation(w);
    if (!c->used && o->run != op_create) continue;
    if (loud) fprintf(stderr, "%u: %s on %s\n", w->step, o->name, c->name);
    o->run(w, c);
    operations++;
  }
  check_all(w);
  op_verify(w, NULL);
}

static void end_world(world *w) {
  close_world(w);
  for (int i = 0; i < MOST_COLLECTIONS; i++) oracle_release(&w->c[i].model);
}

static void play(uint64_t seed, unsigned steps, bool background) {
  world w = {.owner = -1, .page_bytes = seed % 2 ? 4096 : 512, .background = background};
  test_srand(seed);
  /* In most runs a few vectors make a segment of the index, without a graph, so that answers are exact to the bit. */
  segments_limits = (segments_build_limits){
      .tail_rows = seed % 3 ? 4 + (uint32_t)(seed % 17) : 4096, .graph_rows = UINT32_MAX, .dead_percent = 20};
  printf("seed %llu: %u steps, pages of %u bytes%s\n", (unsigned long long)seed, steps, w.page_bytes,
         background ? ", with maintenance" : "");
  fflush(stdout);
  snprintf(w.folder, sizeof w.folder, "%s/store", test_folder());
  open_world(&w);
  op_create(&w, NULL);
  walk(&w, steps);
  end_world(&w);
}

/* The address of a cluster, qdrant://HOST:PORT: the same operations there, in a store of their own. */
TEST_SLOW(a_cluster_agrees_with_the_oracle, 600) {
  const char *address = getenv("LODE_TEST_CLUSTER"), *options = getenv("LODE_TEST_CLUSTER_OPTIONS"); /* "?replicas=2" */
  world w = {.owner = -1, .cluster = true};
  if (!address) test_skip("LODE_TEST_CLUSTER names no cluster (make test-cluster starts one)");
  uint64_t seed = test_seed();
  test_srand(seed);
  printf("seed %llu\n", (unsigned long long)seed);
  snprintf(w.folder, sizeof w.folder, "%s/m%llx%s", address, (unsigned long long)rand_u64(), options ? options : "");
  open_world(&w);
  op_create(&w, NULL);
  walk(&w, test_full() ? 2000 : 200);
  end_world(&w);
}

TEST_SLOW(random_operations_agree_with_the_oracle, 600) {
  uint64_t seed = test_seed();
  fault_no_sync();
  for (unsigned i = 0; i < (test_full() ? 200u : 8u); i++) {
    store_fresh_min_rows = i % 2 ? (int64_t)(seed + i) % 30 : 16384; /* names move often, or never */
    play(seed + i, 800, false);
  }
  CHECKF(operations > 1000, "only %llu operations were done", (unsigned long long)operations);
}

TEST_SLOW(random_operations_agree_beside_background_maintenance, 600) {
  uint64_t seed = test_seed() + 1000;
  fault_no_sync();
  for (unsigned i = 0; i < (test_full() ? 60u : 3u); i++) play(seed + i, 500, true);
}

/* ---- Many processes ---- */

enum { PROCESSES = 3, READERS = 2 };

static void write_in_child(const char *folder, int owner, uint64_t seed, unsigned steps) {
  world w = {.owner = owner, .background = owner == 0};
  test_srand(seed + (uint64_t)owner);
  snprintf(w.folder, sizeof w.folder, "%s", folder);
  w.c[0] = (coll){.used = true, .name = "shared", .model = {.metric = LODE_COSINE, .dim = 8}};
  open_world(&w);
  walk(&w, steps);
  end_world(&w);
  _exit(0);
}

/* Whatever others write: no version of a record twice, all have owners, hits are in order and their distances those of
 * their vectors. */
static void read_once(lode_collection *c) {
  lode_error err = {0};
  lode_result *rows;
  lode_get_request get = {.limit = 7, .include = LODE_METADATA};
  strbuf ids = {0};
  float v[8];
  do {
    OK(lode_get(c, &get, &rows, &err));
    get.after = lode_result_next(rows);
    for (size_t i = 0; i < lode_result_count(rows); i++) {
      const lode_row *row = lode_result_at(rows, i);
      CHECKF(row->metadata.data && memmem(row->metadata.data, row->metadata.len, "\"owner\":", 8),
             "a record without an owner");
      strbuf quoted = {0};
      json_put_string(&quoted, row->id);
      strbuf_addf(&quoted, "%llu;",
                  (unsigned long long)row->cursor); /* it may have gone and come back between two pages */
      CHECKF(!ids.len || !memmem(ids.data, ids.len, quoted.data, quoted.len), "%.*s comes twice", (int)quoted.len,
             quoted.data);
      strbuf_add(&ids, quoted.data, quoted.len);
      strbuf_release(&quoted);
    }
    lode_result_free(rows);
  } while (get.after);
  strbuf_release(&ids);
  oracle_random_vector(v, 8);
  lode_query_request query = {.vectors = v, .dimension = 8, .n = 1, .k = 10, .include = LODE_VECTOR};
  OK(lode_query(c, &query, &rows, &err));
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    const lode_row *row = lode_result_at(rows, i), *before = i ? lode_result_at(rows, i - 1) : NULL;
    CHECK(row->vector && row->dimension == 8);
    CHECK(row->distance == (double)kernel_distance(LODE_COSINE, v, kernel_dot(v, v, 8), row->vector, 8));
    if (before)
      CHECK(before->distance < row->distance ||
            (before->distance == row->distance && str_cmp(before->id, row->id) < 0));
  }
  lode_result_free(rows);
}

static void read_in_child(const char *folder, int done, uint64_t seed) {
  lode_error err = {0};
  lode_store *store;
  lode_collection *c;
  lode_open_options o = {.read_only = true, .busy_ms = 60000};
  char byte;
  test_srand(seed);
  OK(lode_open(folder, &o, &store, &err));
  OK(lode_collection_open(store, str_of("shared"), NULL, &c, &err));
  do read_once(c);
  while (read(done, &byte, 1) != 0); /* until the last writer has closed its end */
  lode_collection_close(c);
  lode_close(store);
  _exit(0);
}

TEST_SLOW(processes_agree_with_their_oracles, 600) {
  segments_limits = (segments_build_limits){.tail_rows = 12, .graph_rows = UINT32_MAX, .dead_percent = 20};
  char folder[512];
  int done[2];
  pid_t pids[PROCESSES + READERS];
  lode_error err = {0};
  lode_store *store;
  lode_collection *c;
  uint64_t seed = test_seed() + 2000;
  lode_open_options o = {.create = true, .page_bytes = seed % 2 ? 512 : 4096, .no_background = true};
  lode_collection_options co = {.create = true, .metric = LODE_COSINE, .embedder = {"a model", 7}, .embedder_dim = 8};
  fault_no_sync();
  snprintf(folder, sizeof folder, "%s/store", test_folder());
  OK(lode_open(folder, &o, &store, &err));
  OK(lode_collection_open(store, str_of("shared"), &co, &c, &err));
  lode_collection_close(c);
  lode_close(store);
  store_fresh_min_rows = 20; /* names move while others read */
  CHECK(pipe2(done, O_NONBLOCK) == 0);
  for (int p = 0; p < PROCESSES + READERS; p++) {
    pids[p] = fork();
    CHECK(pids[p] >= 0);
    if (pids[p]) continue;
    if (p < PROCESSES) write_in_child(folder, p, seed, test_full() ? 4000 : 250);
    close(done[1]);
    read_in_child(folder, done[0], seed + 100 + (uint64_t)p);
  }
  close(done[1]);
  for (int p = 0; p < PROCESSES + READERS; p++) {
    int status;
    CHECK(waitpid(pids[p], &status, 0) == pids[p]);
    CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 0, "process %d ended with status %x", p, (unsigned)status);
  }
  OK(lode_open(folder, &o, &store, &err));
  OK(lode_verify(store, show, NULL, (lode_progress){0}, &err));
  lode_close(store);
}
