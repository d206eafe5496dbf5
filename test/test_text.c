/* test_text.c - a search by words that does not fit into one read transaction.
 *
 * The clock is the test's own: it jumps at every look, so that each transaction is old at once and a search takes as many
 * as it can. Before the next one begins, when no lock is held, another handle may change the store: at each moment
 * exactly one record holds the word.
 */
#include "base/os.h"
#include "lode.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define S(text) ((lode_str){(text), sizeof(text) - 1})
enum { RECORDS = 200 };

static lode__os_table table;
static uint64_t now, step, looks;
static uint64_t change_at;            /* the look at which the word moves; 0: never */
static lode_collection *other;
static bool changing, moved;

static lode_record record(char id[16], unsigned i, const char *text) {
  snprintf(id, 16, "item-%03u", i);
  return (lode_record){.id = {id, strlen(id)}, .document = {text, strlen(text)}};
}

static void move_word(void) {
  char a[16], b[16];
  lode_error err = {0};
  lode_record r[2] = {record(a, 2, "common and the needle, among many more words"), record(b, RECORDS - 3, "common and nothing else")};
  lode_status st = lode_update(other, NULL, r, 2, NULL, NULL, &err);
  CHECKF(st == LODE_OK || st == LODE_BUSY, "%s", err.text); /* the search has a transaction open */
  moved = st == LODE_OK;
}

static uint64_t look_at_clock(void) {
  if (!changing && change_at && ++looks == change_at) {
    changing = true;
    move_word();
    changing = false;
  }
  if (!changing) now += step;
  return now;
}

static void no_sleep(uint64_t us) { now += us * 1000; }

static void fill(lode_collection *c) {
  lode_error err = {0};
  static char ids[RECORDS][16];
  static lode_record r[RECORDS];
  for (unsigned i = 0; i < RECORDS; i++)
    r[i] = record(ids[i], i, i == RECORDS - 3 ? "common and the needle, among many more words" : "common and nothing else");
  OK(lode_add(c, NULL, r, RECORDS, LODE_FAIL_EXISTING, NULL, &err));
}

static void ask(lode_collection *c, lode_str text, const char *what, uint64_t at) {
  lode_error err = {0};
  lode_result *found;
  lode_query_request q = {.mode = LODE_BY_TEXT, .texts = &text, .n = 1, .k = 1};
  OK(lode_query(c, &q, &found, &err));
  CHECKF(lode_result_count(found) == 1, "%s: nothing was found, the word moved at look %llu", what, (unsigned long long)at);
  lode_str id = lode_result_at(found, 0)->id;
  char old[16], young[16];
  (void)record(old, RECORDS - 3, "");
  (void)record(young, 2, "");
  const char *wanted = moved ? young : old;
  CHECKF(strlen(wanted) == id.len && memcmp(wanted, id.data, id.len) == 0, "%s: %.*s was found, the word moved at look %llu", what,
         (int)id.len, id.data, (unsigned long long)at);
  lode_result_free(found);
}

static void one_word_moves(bool indexed) {
  lode_error err = {0};
  lode_str words = indexed ? S("common needle") : S("needle");
  uint64_t total = UINT64_MAX, moves = 0;
  table = lode__os_real;
  table.now_ns = look_at_clock;
  table.sleep_us = no_sleep;
  lode__os = &table;
  for (uint64_t at = 0; at <= total; at++) {
    char folder[400];
    lode_store *store, *second;
    lode_collection *c;
    lode_open_options o = {.create = true, .page_bytes = 1024, .no_background = true};
    snprintf(folder, sizeof folder, "%s/s", test_folder());
    change_at = 0;
    step = 0;
    OK(lode_open(folder, &o, &store, &err));
    OK(lode_collection_open(store, S("c"), &(lode_collection_options){.create = true}, &c, &err));
    fill(c);
    if (indexed) OK(lode_optimize(store, (lode_progress){0}, &err));
    o.busy_ms = 1;
    OK(lode_open(folder, &o, &second, &err));
    OK(lode_collection_open(second, S("c"), NULL, &other, &err));
    step = UINT64_C(60000000);
    looks = 0;
    moved = false;
    change_at = at ? at : UINT64_MAX; /* the first time they are counted */
    ask(c, words, indexed ? "in the index" : "in the tail", at);
    if (at == 0) total = looks;
    moves += moved;
    lode_collection_close(other);
    lode_collection_close(c);
    lode_close(second);
    lode_close(store);
    test_remove_tree(folder);
  }
  CHECKF(moves > 5, "of %llu looks at the clock %llu let the word move", (unsigned long long)total, (unsigned long long)moves);
}

TEST(word_moves_while_the_tail_is_read) { one_word_moves(false); }
TEST(word_moves_while_the_index_is_read) { one_word_moves(true); }

/* A bound on what is read one by one, which what is in the index does not count for. */
TEST(only_some_of_the_tail) {
  lode_error err = {0};
  lode_store *store;
  lode_collection *c;
  lode_open_options o = {.create = true, .no_background = true};
  lode_str needle = S("needle");
  OK(lode_open(test_folder(), &o, &store, &err));
  OK(lode_collection_open(store, S("c"), &(lode_collection_options){.create = true}, &c, &err));
  fill(c);
  for (int indexed = 0; indexed < 2; indexed++) {
    static const uint64_t most[] = {0, 1, RECORDS - 3, RECORDS - 2, RECORDS};
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
      lode_result *found;
      lode_query_request q = {.mode = LODE_BY_TEXT, .texts = &needle, .n = 1, .k = 5, .most_unindexed = most[i]};
      OK(lode_query(c, &q, &found, &err));
      size_t wanted = indexed || most[i] == 0 || most[i] >= RECORDS - 2 ? 1 : 0;
      CHECKF(lode_result_count(found) == wanted, "%zu found with at most %llu", lode_result_count(found), (unsigned long long)most[i]);
      lode_result_free(found);
    }
    OK(lode_optimize(store, (lode_progress){0}, &err));
  }
  lode_collection_close(c);
  lode_close(store);
}
