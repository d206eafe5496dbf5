/* SPDX-License-Identifier: Apache-2.0 */
/* test_moments.c - one answer speaks of one moment, whatever is committed while it is made.
 *
 * Whether a read transaction is old, and whether somebody waits, is decided by the seed at every place where the
 * library asks (store_tx_test_hooks), and in each gap between two transactions another handle commits, in the same
 * thread: every race replays from its seed. There are two groups of records. Each commit makes one group the active
 * one, of a new generation, and the other passive: by updates in place, by replacing, or by deleting and adding. At
 * every moment the active records are SET, and all of one generation, so whoever mixes two moments finds too few, too
 * many or two generations. The rest (fill) never changes. LODE_TEST_KIND=NAME asks for one kind of answer alone.
 */
#include "base/base.h"
#include "engine/nearest.h"
#include "segments/segment_build.h"
#include "chroma/chroma.h"
#include "lode.h"
#include "store/store.h"
#include "support/test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})
enum { SET = 12, GROUPS = 2, ALL = SET * GROUPS, MOST_DIM = 4096 };

typedef struct stage {
  char folder[400];
  lode_store *store, *other_store;
  lode_collection *c, *other;
  uint32_t dim;
  unsigned fill;
  bool indexes;        /* the gaps also move the indexes along */
  unsigned generation; /* of the newest commit */
  unsigned active;     /* group */
  bool in_gap;
  unsigned old_in, commit_in; /* one in this many */
  uint64_t commits, answers;
  uint64_t most_commits; /* a walk that follows ends only if less is added than it sees in a transaction */
  bool hold;             /* no commits now */
  unsigned gaps;         /* the last of this many is used */
  const char *kind;      /* what is being asked */
  unsigned asked_at;     /* the generation when it was */
} stage;

static stage g;
static lode_error err;

/* ---- Records ---- */

static char ids[ALL][16], documents[ALL][64], metadata[ALL][64];
static float vectors[ALL][MOST_DIM];
static lode_record records[ALL];

static void make_records(unsigned generation, unsigned active) {
  for (unsigned i = 0; i < ALL; i++) {
    bool is_active = i / SET == active;
    snprintf(ids[i], sizeof ids[i], "%c-%02u", (int)('a' + i / SET), i % SET);
    snprintf(documents[i], sizeof documents[i], is_active ? "the needle of generation g%u" : "passive, once g%u",
             generation);
    if (is_active)
      snprintf(metadata[i], sizeof metadata[i], "{\"in\":\"x\",\"gen\":%u}", generation);
    else
      snprintf(metadata[i], sizeof metadata[i], "{\"in\":\"y\",\"gen\":null}");
    memset(vectors[i], 0, sizeof vectors[i]);
    vectors[i][0] = is_active ? 0 : 50;
    vectors[i][1] = (float)(i % SET) / 100;
    vectors[i][2] = (float)(generation % 1000) / 10000;
    records[i] = (lode_record){.id = str_of(ids[i]),
                               .document = str_of(documents[i]),
                               .metadata = str_of(metadata[i]),
                               .vector = vectors[i],
                               .dimension = g.dim};
  }
}

/* null in metadata removes a key, which an add does not know. */
static void without_nulls(void) {
  for (unsigned i = 0; i < ALL; i++)
    if (strstr(metadata[i], "null")) {
      snprintf(metadata[i], sizeof metadata[i], "{\"in\":\"y\"}");
      records[i].metadata = str_of(metadata[i]);
    }
}

static void delete_some(lode_txn *txn, unsigned first, unsigned n) {
  lode_str gone[ALL];
  for (unsigned i = 0; i < n; i++) gone[i] = records[first + i].id;
  OK(lode_delete(g.other, txn, &(lode_selection){.ids = gone, .n_ids = n}, NULL, &err));
}

static void commit(void) {
  lode_txn *txn;
  unsigned how = (unsigned)test_below(5), next = g.generation + 1, active = how == 4 ? g.active : !g.active;
  if (lode_begin(g.other_store, &txn, &err) != LODE_OK) {
    CHECKF(err.status == LODE_BUSY, "%s", err.text);
    return;
  }
  make_records(next, active);
  if (how == 0) { /* in place */
    OK(lode_update(g.other, txn, records, ALL, NULL, NULL, &err));
  } else if (how == 1) {
    OK(lode_upsert(g.other, txn, records, ALL, NULL, &err));
  } else if (how == 2) { /* one group in place, the other new */
    delete_some(txn, 0, SET);
    OK(lode_update(g.other, txn, records + SET, SET, NULL, NULL, &err));
    without_nulls();
    OK(lode_add(g.other, txn, records, SET, LODE_FAIL_EXISTING, NULL, &err));
  } else { /* all new; 4: the same group stays active */
    delete_some(txn, 0, ALL);
    without_nulls();
    OK(lode_add(g.other, txn, records, ALL, LODE_FAIL_EXISTING, NULL, &err));
  }
  lode_status st = lode_commit(txn, &err);
  CHECKF(st == LODE_OK || st == LODE_BUSY, "%s", err.text);
  if (st != LODE_OK) return;
  g.generation = next;
  g.active = active;
  g.commits++;
}

/* ---- What the seed decides ---- */

static bool seed_is_old(void) { return !g.in_gap && test_below(g.old_in) == 0; }
static bool seed_is_wanted(void) { return !g.in_gap && test_below(g.old_in) == 0; }

static void seed_gap(void) {
  if (g.in_gap || g.hold) return;
  g.in_gap = true;
  lode_error kept = err;
  if (g.commits < g.most_commits && test_below(g.commit_in) == 0) commit();
  if (g.indexes && test_below(4) == 0) {
    lode_status st = lode_optimize(g.other_store, (lode_progress){0}, &err);
    CHECKF(st == LODE_OK || st == LODE_BUSY, "%s", err.text);
  }
  err = kept;
  g.in_gap = false;
}

static const store_tx_hooks by_seed = {seed_is_old, seed_is_wanted, NULL, seed_gap};

/* ---- Checks ---- */

#define WRONG(cond, format, ...)                                                                                       \
  CHECKF(cond, "%s (asked at generation %u, now %u): " format, g.kind, g.asked_at, g.generation, __VA_ARGS__)

static void check_generation(long generation) {
  WRONG(generation >= (long)g.asked_at && generation <= (long)g.generation, "generation %ld", generation);
}

static long generation_of(lode_str json) {
  char text[128];
  snprintf(text, sizeof text, "%.*s", (int)json.len, json.data ? json.data : "");
  const char *at = strstr(text, "\"gen\":");
  return at ? strtol(at + 6, NULL, 10) : -1;
}

typedef struct seen {
  size_t rows, active;
  long generation, vectors;
  char group;
} seen;

static void see_active(seen *s, lode_str id, lode_str json, const float *vector) {
  long generation = generation_of(json);
  s->rows++;
  if (generation < 0) return;
  if (s->active++ == 0) {
    s->generation = generation;
    s->group = id.data[0];
    check_generation(generation);
  }
  WRONG(s->generation == generation && s->group == id.data[0], "%.*s of generation %ld beside %c of %ld", (int)id.len,
        id.data, generation, s->group, s->generation);
  if (!vector) return;
  long of_vector = (long)(vector[2] * 10000 + 0.5f);
  WRONG(of_vector == generation % 1000, "%.*s of generation %ld has a vector of %ld", (int)id.len, id.data, generation,
        of_vector);
}

/* All rows of active records are of one generation; how many they are, and how many rows there are in all. */
static void check_rows(lode_result *r, size_t active, size_t rows) {
  seen s = {0};
  WRONG(lode_result_moment(r) > 0, "%s", "of no moment");
  for (size_t i = 0; i < lode_result_count(r); i++) {
    const lode_row *row = lode_result_at(r, i);
    see_active(&s, row->id, row->metadata, row->vector);
  }
  WRONG(s.active == active && s.rows == rows, "%zu active of %zu rows, not %zu of %zu", s.active, s.rows, active, rows);
  lode_result_free(r);
}

/* ---- Kinds of answers ---- */

static const char where_active_text[] = "{\"in\":\"x\"}";
static const lode_str where_active = {where_active_text, sizeof where_active_text - 1};
static const char where_scanned_text[] = "{\"$and\":[{\"in\":{\"$ne\":\"z\"}},{\"in\":{\"$ne\":\"y\"}}]}";
static const lode_str where_scanned = {where_scanned_text, sizeof where_scanned_text - 1};
static const char where_both_text[] = "{\"in\":{\"$in\":[\"x\",\"y\"]}}";
static const lode_str where_both = {where_both_text, sizeof where_both_text - 1};
static const char where_needle_text[] = "{\"$contains\":\"needle\"}";
static const lode_str where_needle = {where_needle_text, sizeof where_needle_text - 1};

static lode_selection any_selection(void) {
  static lode_str all[ALL];
  static char names[ALL][16];
  for (unsigned i = 0; i < ALL; i++) {
    snprintf(names[i], sizeof names[i], "%c-%02u", (int)('a' + i / SET), i % SET);
    all[i] = str_of(names[i]);
  }
  switch (test_below(5)) {
    case 0: return (lode_selection){.where = where_active};
    case 1: return (lode_selection){.where = where_scanned};
    case 2: return (lode_selection){.where_document = where_needle};
    case 3: return (lode_selection){.ids = all, .n_ids = ALL, .where = where_active};
    default: return (lode_selection){.where = where_active, .where_document = where_needle};
  }
}

static void ask_get(void) {
  lode_result *r;
  lode_get_request get = {.select = any_selection(), .include = LODE_ALL};
  OK(lode_get(g.c, &get, &r, &err));
  check_rows(r, SET, SET);
}

static void ask_get_all(void) {
  lode_result *r;
  OK(lode_get(g.c, &(lode_get_request){.include = LODE_ALL}, &r, &err));
  check_rows(r, SET, g.fill + ALL);
}

static void ask_get_ids(void) {
  lode_result *r;
  lode_selection select = any_selection();
  while (!select.ids) select = any_selection();
  select.where = (lode_str){NULL, 0};
  OK(lode_get(g.c, &(lode_get_request){.select = select, .include = LODE_ALL}, &r, &err));
  check_rows(r, SET, ALL);
}

static void ask_get_page(void) {
  lode_result *r;
  size_t offset = test_below(SET), limit = 1 + test_below(SET), left = SET - offset;
  size_t wanted = left < limit ? left : limit;
  lode_get_request get = {.select = any_selection(), .offset = offset, .limit = limit, .include = LODE_ALL};
  OK(lode_get(g.c, &get, &r, &err));
  check_rows(r, wanted, wanted);
}

static void ask_count(void) {
  uint64_t n;
  OK(lode_count(g.c, &n, &err));
  WRONG(n == g.fill + ALL, "%llu records", (unsigned long long)n);
}

static void check_facets(lode_facet_list *list, const char *key) {
  size_t n = lode_facet_list_count(list);
  const lode_facet *f = n ? lode_facet_list_at(list, 0) : NULL;
  if (strcmp(key, "gen") == 0) {
    WRONG(n == 1 && f->count == SET, "%zu generations, %llu of the first", n, n ? (unsigned long long)f->count : 0);
    check_generation(strtol(f->value.data, NULL, 10));
  } else {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += lode_facet_list_at(list, i)->count;
    WRONG(n == 3 && f->count == g.fill && sum == g.fill + ALL && lode_facet_list_at(list, 1)->count == SET,
          "%zu values, %llu in all", n, (unsigned long long)sum);
  }
  lode_facet_list_free(list);
}

static void ask_facets(void) {
  lode_facet_list *list;
  const char *key = test_below(2) ? "gen" : "in";
  OK(lode_facets(g.c, str_of(key), (lode_str){NULL, 0}, 0, &list, &err));
  check_facets(list, key);
}

static void ask_facets_where(void) {
  lode_facet_list *list;
  lode_str where = test_below(2) ? where_active : where_scanned;
  OK(lode_facets(g.c, S("gen"), where, 0, &list, &err));
  check_facets(list, "gen");
}

static void ask_counters(void) {
  lode_facet_list *list;
  OK(lode_counters(g.c, S("gen"), &list, &err));
  check_facets(list, "gen");
}

static void ask_stats(void) {
  lode_stats stats;
  lode_collection_list *list;
  OK(lode_collection_stats(g.c, &stats, &err));
  WRONG(stats.records == g.fill + ALL, "%llu records", (unsigned long long)stats.records);
  OK(lode_store_stats(g.store, &stats, &err));
  WRONG(stats.records == g.fill + ALL, "%llu records in the store", (unsigned long long)stats.records);
  OK(lode_collections(g.store, &list, &err));
  WRONG(lode_collection_list_at(list, 0)->records == g.fill + ALL, "%s", "another number in the list");
  lode_collection_list_free(list);
}

static float origin[8 * MOST_DIM];

static lode_query_request query(lode_mode mode) {
  static const lode_str needle = {"needle", 6};
  lode_query_request q = {.mode = mode, .n = 1, .k = SET, .include = LODE_ALL, .exact = test_below(4) == 0};
  if (mode != LODE_BY_TEXT) q.vectors = origin, q.dimension = g.dim;
  if (mode != LODE_BY_VECTOR) q.texts = &needle;
  return q;
}

static void ask_query(lode_query_request q, size_t active, size_t rows) {
  lode_result *r;
  OK(lode_query(g.c, &q, &r, &err));
  check_rows(r, active, rows);
}

static void ask_vector(void) { ask_query(query(LODE_BY_VECTOR), SET, SET); }
static void ask_hybrid(void) { ask_query(query(LODE_HYBRID), SET, SET); }

static void ask_text(void) {
  lode_query_request q = query(LODE_BY_TEXT);
  q.k = SET + test_below(5);
  ask_query(q, SET, SET);
}

static void ask_selected(lode_mode mode) {
  lode_query_request q = query(mode);
  q.select = any_selection();
  q.k = SET + test_below(5);
  ask_query(q, SET, SET);
}
static void ask_vector_where(void) { ask_selected(LODE_BY_VECTOR); }
static void ask_text_where(void) { ask_selected(LODE_BY_TEXT); }
static void ask_hybrid_where(void) { ask_selected(LODE_HYBRID); }

static void ask_vector_both(void) { /* a filter that both groups match */
  lode_query_request q = query(LODE_BY_VECTOR);
  q.select.where = where_both;
  q.k = ALL + 3;
  ask_query(q, SET, ALL);
}

/* Several queries of one request. */
static void ask_many(void) {
  static const lode_str needles[8] = {{"needle", 6},    {"needle", 6}, {"the needle", 10}, {"needle of", 9},
                                      {"of needle", 9}, {"needle", 6}, {"needle", 6},      {"needle", 6}};
  lode_query_request q = query((lode_mode)test_below(3));
  if (q.texts) q.texts = needles;
  if (test_below(2)) q.select = any_selection();
  q.n = 8;
  ask_query(q, 8 * SET, 8 * SET);
}

/* ---- Whole stores ---- */

typedef struct sink {
  char *data;
  size_t len, cap;
} sink;

static int64_t take(void *ctx, const void *data, size_t n) {
  sink *s = ctx;
  if (!mem_grow(&s->data, &s->cap, s->len + n + 1, 1)) return -1;
  memcpy(s->data + s->len, data, n);
  s->len += n;
  s->data[s->len] = 0;
  return (int64_t)n;
}

/* Small ones are of one moment. */
static void ask_export(void) {
  sink out = {0};
  seen s = {0};
  bool some = test_below(2);
  lode_selection what = any_selection();
  uint64_t written;
  OK(lode_export(g.c, some ? &what : NULL, LODE_METADATA, take, &out, (lode_progress){0}, &written, &err));
  for (char *line = out.data, *end; line && *line; line = end + 1) {
    char id[16] = "", *from = strchr(line, ':') + 2;
    end = strchr(line, '\n');
    memcpy(id, from, strcspn(from, "\""));
    see_active(&s, str_of(id), (lode_str){line, (size_t)(end - line)}, NULL);
  }
  size_t rows = some ? SET : g.fill + ALL;
  WRONG(s.active == SET && s.rows == rows && written == rows, "%zu active of %zu lines", s.active, s.rows);
  mem_free(out.data);
}

static void fail_on_damage(void *ctx, const lode_damage *d) {
  (void)ctx;
  WRONG(false, "%s: %s", d->what, d->detail);
}

static void ask_verify(void) { OK(lode_verify(g.store, fail_on_damage, NULL, (lode_progress){0}, &err)); }

static void ask_backup(void) {
  char file[500], to[500];
  lode_store *store;
  stage before = g;
  snprintf(file, sizeof file, "%s/../backup", g.folder);
  snprintf(to, sizeof to, "%s/../restored", g.folder);
  OK(lode_backup(g.store, file, (lode_progress){0}, &err));
  g.hold = true;
  OK(lode_restore(file, to, (lode_progress){0}, &err));
  OK(lode_open(to, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_collection_open(store, S("c"), NULL, &g.c, &err));
  ask_get_all();
  ask_facets();
  OK(lode_verify(store, fail_on_damage, NULL, (lode_progress){0}, &err));
  lode_collection_close(g.c);
  lode_close(store);
  test_remove_tree(to);
  (void)remove(file);
  g.c = before.c;
  g.hold = false;
}

/* ---- The run ---- */

typedef struct kind {
  const char *name;
  void (*ask)(void);
  unsigned every; /* rounds: the long ones are not asked in each */
} kind;

static const kind kinds[] = {
    {"get", ask_get, 1},
    {"get all", ask_get_all, 1},
    {"get by ids", ask_get_ids, 1},
    {"get a page", ask_get_page, 1},
    {"count", ask_count, 1},
    {"facets", ask_facets, 1},
    {"facets where", ask_facets_where, 1},
    {"counters", ask_counters, 1},
    {"stats", ask_stats, 4},
    {"vector", ask_vector, 1},
    {"vector where", ask_vector_where, 1},
    {"vector both", ask_vector_both, 1},
    {"text", ask_text, 1},
    {"text where", ask_text_where, 1},
    {"hybrid", ask_hybrid, 1},
    {"hybrid where", ask_hybrid_where, 1},
    {"many", ask_many, 1},
    {"verify", ask_verify, 8},
    {"backup", ask_backup, 8},
    {"export", ask_export, 1},
};

static void fill_store(void) {
  static float far[MOST_DIM];
  for (unsigned i = 0; i < g.fill; i++) {
    char id[16], document[64];
    far[0] = 100 + (float)i;
    snprintf(id, sizeof id, "fill-%04u", i);
    snprintf(document, sizeof document, "fill number %u, of no interest", i);
    lode_record r = {.id = str_of(id),
                     .document = str_of(document),
                     .metadata = S("{\"in\":\"z\"}"),
                     .vector = far,
                     .dimension = g.dim};
    OK(lode_add(g.other, NULL, &r, 1, LODE_FAIL_EXISTING, NULL, &err));
  }
  make_records(1, 0);
  without_nulls();
  OK(lode_add(g.other, NULL, records, ALL, LODE_FAIL_EXISTING, NULL, &err));
  g.generation = 1;
}

static void stage_open(uint32_t dim, unsigned fill, bool indexes) {
  static const lode_str counters[] = {{"gen", 3}};
  lode_open_options o = {.create = true, .page_bytes = 1024, .no_background = true, .memory_bytes = 16 << 20};
  lode_collection_options co = {.create = true, .counters = counters, .n_counters = 1};
  g = (stage){.dim = dim, .fill = fill, .indexes = indexes, .old_in = 1, .commit_in = 1};
  snprintf(g.folder, sizeof g.folder, "%s/s", test_folder());
  test_srand(test_seed());
  OK(lode_open(g.folder, &o, &g.store, &err));
  OK(lode_collection_open(g.store, S("c"), &co, &g.c, &err));
  o.busy_ms = 1; /* where a transaction is open after all, nothing is committed */
  OK(lode_open(g.folder, &o, &g.other_store, &err));
  OK(lode_collection_open(g.other_store, S("c"), NULL, &g.other, &err));
  fill_store();
  if (indexes) OK(lode_optimize(g.other_store, (lode_progress){0}, &err));
}

static void stage_close(void) {
  lode_collection_close(g.c);
  lode_collection_close(g.other);
  lode_close(g.store);
  lode_close(g.other_store);
}

static void run_kinds(unsigned rounds) {
  if (test_full()) rounds *= 20;
  const char *only = getenv("LODE_TEST_KIND");
  store_tx_test_hooks = &by_seed;
  for (unsigned round = 0; round < rounds; round++) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
      if (round % kinds[i].every || (only && strcmp(only, kinds[i].name) != 0)) continue;
      g.old_in = 1u << test_below(5);
      g.commit_in = 1u << test_below(3);
      g.kind = kinds[i].name;
      g.asked_at = g.generation;
      g.most_commits = g.commits + 10;
      kinds[i].ask();
      g.answers++;
    }
  }
  store_tx_test_hooks = NULL;
  CHECKF(g.commits > g.answers / 2, "%llu commits in %llu answers", (unsigned long long)g.commits,
         (unsigned long long)g.answers);
}

TEST_SLOW(answers_are_of_one_moment, 120) {
  stage_open(4, 70, false);
  run_kinds(6);
  stage_close();
}

TEST_SLOW(answers_are_of_one_moment_beside_moving_indexes, 120) {
  segments_limits = (segments_build_limits){.tail_rows = 16, .graph_rows = 64, .dead_percent = 20, .threads = 1};
  stage_open(8, 70, true);
  run_kinds(5);
  stage_close();
}

/* Vectors that do not fit in memory are streamed. */
TEST_SLOW(streamed_answers_are_of_one_moment, 120) {
  stage_open(4096, 500, false);
  run_kinds(1);
  stage_close();
}

/* Several blocks of rows: a scan may end its transaction at each. */
TEST_SLOW(answers_of_several_blocks_are_of_one_moment, 120) {
  stage_open(4, 600, false);
  run_kinds(1);
  stage_close();
}

/* Long scans of memory are made without a transaction. */
TEST_SLOW(answers_of_long_scans_are_of_one_moment, 120) {
  engine_scan_in_tx_bytes = 0;
  stage_open(4, 70, false);
  run_kinds(3);
  stage_close();
}

/* ---- Patience ---- */

static bool yes(void) { return !g.in_gap; }
static const store_tx_hooks impatient = {yes, yes, yes, seed_gap};

/* What cannot be answered between two commits gives way to them and says so; an export goes on at a later moment. */
TEST(a_long_answer_gives_way_to_writers) {
  lode_result *r = NULL;
  lode_facet_list *list = NULL;
  sink out = {0};
  uint64_t written;
  stage_open(4, 70, false);
  store_tx_test_hooks = &impatient;
  g.most_commits = UINT64_MAX;
  FAILS(LODE_BUSY, lode_get(g.c, &(lode_get_request){.select.where = where_scanned}, &r, &err));
  CHECK(!r && strstr(err.text, "narrow it"));
  FAILS(LODE_BUSY, lode_facets(g.c, S("gen"), where_active, 0, &list, &err));
  CHECK(!list);
  g.most_commits = g.commits + 5;
  OK(lode_export(g.c, NULL, 0, take, &out, (lode_progress){0}, &written, &err));
  CHECK(written >= g.fill + ALL);
  mem_free(out.data);
  store_tx_test_hooks = NULL;
  stage_close();
}

/* The transaction of a pinned reader has lasted too long from the n-th time on that this is asked. */
static unsigned asked, too_long_at;
static bool too_long(void) { return !g.in_gap && ++asked >= too_long_at; }
static const store_tx_hooks pinned = {yes, yes, too_long, seed_gap};

/* Ids of the groups, and enough others that the records are not read one by one. */
static lode_selection many_ids(void) {
  enum { LISTED = 200 };
  static char names[LISTED][16];
  static lode_str listed[LISTED];
  for (unsigned i = 0; i < LISTED; i++) {
    if (i < ALL)
      snprintf(names[i], sizeof names[i], "%c-%02u", (int)('a' + i / SET), i % SET);
    else
      snprintf(names[i], sizeof names[i], "fill-%04u", i);
    listed[i] = str_of(names[i]);
  }
  return (lode_selection){.ids = listed, .n_ids = LISTED};
}

/* Commits in every gap leave a search among listed records to its pinned reader. It gives way wherever it learns that
 * it is in the way. Returns how often it asked. */
static unsigned check_patient_search(bool exact, size_t queries) {
  lode_result *r = NULL;
  lode_query_request q = {.mode = LODE_BY_VECTOR,
                          .n = queries,
                          .k = SET,
                          .include = LODE_ALL,
                          .exact = exact,
                          .vectors = origin,
                          .dimension = g.dim,
                          .select = many_ids()};
  g.kind = "pinned";
  g.asked_at = g.generation;
  ask_vector(); /* loads the vectors */
  g.most_commits = UINT64_MAX;
  store_tx_test_hooks = &pinned;
  asked = 0;
  too_long_at = UINT_MAX;
  ask_query(q, SET * queries, SET * queries);
  unsigned all = asked;
  for (too_long_at = 1; too_long_at <= all; too_long_at += 1 + too_long_at / 4) {
    asked = 0;
    FAILS(LODE_BUSY, lode_query(g.c, &q, &r, &err));
    CHECKF(!r && strstr(err.text, "narrow it"), "%s", err.text);
    CHECKF(asked == too_long_at, "asked %u times, but was to give way after %u", asked, too_long_at);
  }
  store_tx_test_hooks = NULL;
  return all;
}

static void add_blocks(unsigned blocks) {
  enum { BLOCK = 256 }; /* BLOCK_ROWS of nearest.c */
  for (unsigned i = 0; i < blocks * BLOCK; i++) {
    char id[16];
    float far[4] = {300 + (float)(i % 100), (float)(i % 7)};
    snprintf(id, sizeof id, "more-%04u", i);
    lode_record r = {.id = str_of(id), .vector = far, .dimension = g.dim};
    OK(lode_add(g.other, NULL, &r, 1, LODE_FAIL_EXISTING, NULL, &err));
  }
}

TEST_SLOW(a_long_scan_of_vectors_gives_way_to_writers, 60) {
  stage_open(4, 200, false);
  unsigned before = check_patient_search(false, 1);
  add_blocks(6);
  unsigned after = check_patient_search(false, 1);
  CHECKF(after >= before + 6, "asked %u times, and %u times with 6 blocks more", before, after);
  stage_close();
}

TEST_SLOW(a_long_search_of_segments_gives_way_to_writers, 60) {
  segments_limits = (segments_build_limits){.tail_rows = 16, .graph_rows = 64, .dead_percent = 20, .threads = 1};
  stage_open(4, 200, true);
  g.indexes = false; /* so that they stay as they are */
  unsigned one = check_patient_search(false, 1), eight = check_patient_search(false, 8);
  CHECKF(eight >= one + 7, "asked %u times for a query, and %u times for 8", one, eight);
  unsigned before = check_patient_search(true, 1);
  add_blocks(6);
  OK(lode_optimize(g.other_store, (lode_progress){0}, &err));
  unsigned after = check_patient_search(true, 1);
  /* those in memory have become part of the same files */
  CHECKF(after >= before + 4, "asked %u times, and %u times with 6 blocks more", before, after);
  stage_close();
}

/* ---- A long export ---- */

static size_t count_lines(const sink *out, const char *id) {
  char start[40];
  size_t n = 0;
  snprintf(start, sizeof start, "{\"id\":\"%s\"", id);
  for (const char *at = out->data; (at = strstr(at, start)); at++) n++;
  return n;
}

/* It follows commits: what is there all the time is in it once; what is deleted and added again, at least once. */
TEST(a_long_export_misses_nothing) {
  static char document[40000];
  sink out = {0};
  uint64_t written;
  stage_open(4, 60, false);
  memset(document, 'x', sizeof document - 1);
  for (unsigned i = 0; i < g.fill; i++) {
    char id[16];
    snprintf(id, sizeof id, "fill-%04u", i);
    lode_record r = {.id = str_of(id), .document = str_of(document)};
    OK(lode_update(g.c, NULL, &r, 1, NULL, NULL, &err));
  }
  store_tx_test_hooks = &by_seed;
  g.old_in = 4;
  g.most_commits = 20;
  OK(lode_export(g.c, NULL, LODE_DOCUMENT, take, &out, (lode_progress){0}, &written, &err));
  store_tx_test_hooks = NULL;
  CHECKF(g.commits > 3 && out.len > 2 << 20, "%llu commits, %zu bytes", (unsigned long long)g.commits, out.len);
  for (unsigned i = 0; i < g.fill; i++) {
    char id[16];
    snprintf(id, sizeof id, "fill-%04u", i);
    CHECKF(count_lines(&out, id) == 1, "%s is in it %zu times", id, count_lines(&out, id));
  }
  make_records(0, 0);
  for (unsigned i = 0; i < ALL; i++) CHECKF(count_lines(&out, ids[i]) >= 1, "%s is not in it", ids[i]);
  mem_free(out.data);
  stage_close();
}

/* ---- An index that is rebuilt ---- */

static void do_step(void) {
  bool more;
  if (g.in_gap || g.gaps == 0 || --g.gaps) return;
  g.in_gap = true;
  OK(store_maintain_step(engine_store_of(g.other_store)->db, &more, &err));
  CHECK(more);
  g.in_gap = false;
}
static const store_tx_hooks one_step = {yes, yes, NULL, do_step};

/* When nearly all of a store is dead, the text index is emptied and filled again, and no record changes by that. */
static void begin_anew_in_gap(unsigned gap) {
  enum { DEAD = 4000 };
  static char dead_ids[DEAD][16];
  static lode_record dead[DEAD];
  static lode_str names[DEAD];
  lode_result *r;
  lode_str word = S("needle");
  stage_open(4, 4, false);
  for (unsigned i = 0; i < DEAD; i++) {
    snprintf(dead_ids[i], sizeof dead_ids[i], "dead-%04u", i);
    names[i] = str_of(dead_ids[i]);
    dead[i] = (lode_record){.id = names[i], .document = S("a needle that is gone")};
  }
  OK(lode_add(g.c, NULL, dead, DEAD, LODE_FAIL_EXISTING, NULL, &err));
  OK(lode_optimize(g.store, (lode_progress){0}, &err));
  OK(lode_delete(g.c, NULL, &(lode_selection){.ids = names, .n_ids = DEAD}, NULL, &err));
  store_tx_test_hooks = &one_step;
  g.gaps = gap;
  OK(lode_query(g.c, &(lode_query_request){.mode = LODE_BY_TEXT, .texts = &word, .n = 1, .k = 3 * SET}, &r, &err));
  store_tx_test_hooks = NULL;
  CHECKF(lode_result_count(r) == SET && g.gaps == 0, "%zu of %d found", lode_result_count(r), SET);
  lode_result_free(r);
  stage_close();
}

TEST(the_text_index_is_rebuilt_during_a_search) {
  for (unsigned gap = 2; gap < 6; gap++) begin_anew_in_gap(gap); /* the first one is before the first transaction */
}

/* ---- Answers of several calls ---- */

enum { MANY = 2200 };

static void add_many(void) {
  static char many_ids[MANY][16];
  static lode_record many[MANY];
  for (unsigned i = 0; i < MANY; i++) {
    snprintf(many_ids[i], sizeof many_ids[i], "many-%04u", i);
    many[i] = (lode_record){.id = str_of(many_ids[i])};
  }
  OK(lode_add(g.other, NULL, many, MANY, LODE_FAIL_EXISTING, NULL, &err));
}

static worker_stores *chroma_open(char id[CHROMA_UUID_BYTES]) {
  static const lode_open_options options = {.no_background = true};
  worker_stores *shared;
  lode_collection_list *list;
  OK(worker_stores_new(g.folder, &options, &shared, &err));
  OK(lode_collections(g.other_store, &list, &err));
  chroma_uuid_format(lode_collection_list_at(list, 0)->uid, id);
  lode_collection_list_free(list);
  return shared;
}

/* Pages of an answer over HTTP: by filter, or by ids. */
static void check_chroma(worker_stores *shared, const char *id, const char *body, size_t many) {
  worker_task task = {.name = "chroma.get",
                      .n_words = 4,
                      .words = {S("default_tenant"), S("default_database"), str_of(id), S("")},
                      .body = str_of(body),
                      .shared = shared};
  size_t active = 0, found = 0;
  long generation = -1;
  chroma_service(&task);
  strbuf_addch(&task.out, 0);
  WRONG(task.code == 200, "%d: %.300s", task.code, task.out.data);
  for (const char *at = task.out.data; (at = strstr(at, "\"gen\":")); at++, active++) {
    long this = strtol(at + 6, NULL, 10);
    WRONG(generation < 0 || generation == this, "generations %ld and %ld", generation, this);
    generation = this;
  }
  for (const char *at = task.out.data; (at = strstr(at, "\"many-")); at++) found++;
  WRONG(active == SET && found == many, "%zu active, %zu others", active, found);
  check_generation(generation);
  strbuf_release(&task.out);
}

TEST_SLOW(pages_over_http_are_of_one_moment, 120) {
  char id[CHROMA_UUID_BYTES];
  strbuf body = {0};
  stage_open(4, 4, false);
  add_many();
  worker_stores *shared = chroma_open(id);
  strbuf_addstr(&body, "{\"include\":[\"metadatas\"],\"ids\":[\"a-00\"");
  for (unsigned i = 1; i < ALL; i++) strbuf_addf(&body, ",\"%c-%02u\"", (int)('a' + i / SET), i % SET);
  for (unsigned i = 0; i < 1500; i++) strbuf_addf(&body, ",\"many-%04u\"", i);
  strbuf_addstr(&body, "]}");
  strbuf_addch(&body, 0);
  store_tx_test_hooks = &by_seed;
  for (unsigned round = 0; round < 6; round++) {
    g.old_in = 1u << 20; /* so that the gaps are those between pages */
    g.commit_in = 1u << test_below(3);
    g.most_commits = g.commits + 12;
    g.asked_at = g.generation;
    g.kind = round % 2 ? "get over HTTP, by ids" : "get over HTTP";
    check_chroma(shared, id, round % 2 ? body.data : "{\"include\":[\"metadatas\"]}", round % 2 ? 1500 : MANY);
  }
  store_tx_test_hooks = NULL;
  strbuf_release(&body);
  worker_stores_free(shared);
  stage_close();
}
