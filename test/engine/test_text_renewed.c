/* SPDX-License-Identifier: Apache-2.0 */
/* test_text_renewed.c - a search by words that does not fit into one read transaction.
 *
 * Each transaction is old as soon as it may be (store_tx_test_hooks), so that a search takes as many as it can. In a
 * gap between two, when no lock is held, another handle changes the store: at each moment exactly one record holds
 * the word.
 */
#include "os/os.h"
#include "lode.h"
#include "store/text_index.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define S(text) ((lode_str){(text), sizeof(text) - 1})
enum { RECORDS = 200 };

static os_calls table;

static uint64_t gaps;
static uint64_t change_at; /* the gap in which the word moves */
static lode_collection *other;
static bool changing, moved;

static lode_record record(char id[16], unsigned i, const char *text) {
  snprintf(id, 16, "item-%03u", i);
  return (lode_record){.id = {id, strlen(id)}, .document = {text, strlen(text)}};
}

static void move_word(void) {
  char a[16], b[16];
  lode_error err = {0};
  lode_record r[2] = {record(a, 2, "common and the needle, among many more words"),
                      record(b, RECORDS - 3, "common and nothing else")};
  lode_status st = lode_update(other, NULL, r, 2, NULL, NULL, &err);
  CHECKF(st == LODE_OK, "%s", err.text);
  moved = true;
}

static bool is_old(void) { return !changing; }

static void move_in_gap(void) {
  if (changing || ++gaps != change_at) return;
  changing = true;
  move_word();
  changing = false;
}

static const store_tx_hooks hasty = {.is_old = is_old, .gap = move_in_gap};

static void fill(lode_collection *c) {
  lode_error err = {0};
  static char ids[RECORDS][16];
  static lode_record r[RECORDS];
  for (unsigned i = 0; i < RECORDS; i++)
    r[i] = record(ids[i], i,
                  i == RECORDS - 3 ? "common and the needle, among many more words" : "common and nothing else");
  OK(lode_add(c, NULL, r, RECORDS, LODE_FAIL_EXISTING, NULL, &err));
}

static void ask(lode_collection *c, lode_str text, const char *what, uint64_t at) {
  lode_error err = {0};
  lode_result *found;
  lode_query_request q = {.mode = LODE_BY_TEXT, .texts = &text, .n = 1, .k = 1};
  OK(lode_query(c, &q, &found, &err));
  CHECKF(lode_result_count(found) == 1, "%s: nothing was found, the word moved in gap %llu", what,
         (unsigned long long)at);
  lode_str id = lode_result_at(found, 0)->id;
  char old[16], young[16];
  (void)record(old, RECORDS - 3, "");
  (void)record(young, 2, "");
  const char *wanted = moved ? young : old;
  CHECKF(strlen(wanted) == id.len && memcmp(wanted, id.data, id.len) == 0,
         "%s: %.*s was found, the word moved in gap %llu", what, (int)id.len, id.data, (unsigned long long)at);
  lode_result_free(found);
}

static void one_word_moves(bool indexed) {
  lode_error err = {0};
  lode_str words = indexed ? S("common needle") : S("needle");
  uint64_t total = UINT64_MAX, moves = 0;
  for (uint64_t at = 0; at <= total; at++) {
    char folder[400];
    lode_store *store, *second;
    lode_collection *c;
    lode_open_options o = {.create = true, .page_bytes = 1024, .no_background = true};
    snprintf(folder, sizeof folder, "%s/s", test_folder());
    OK(lode_open(folder, &o, &store, &err));
    OK(lode_collection_open(store, S("c"), &(lode_collection_options){.create = true}, &c, &err));
    fill(c);
    if (indexed) OK(lode_optimize(store, (lode_progress){0}, &err));
    OK(lode_open(folder, &o, &second, &err));
    OK(lode_collection_open(second, S("c"), NULL, &other, &err));
    gaps = 0;
    moved = false;
    change_at = at ? at : UINT64_MAX; /* the first time they are counted */
    store_tx_test_hooks = &hasty;
    ask(c, words, indexed ? "in the index" : "in the tail", at);
    store_tx_test_hooks = NULL;
    if (at == 0) total = gaps;
    moves += moved;
    lode_collection_close(other);
    lode_collection_close(c);
    lode_close(second);
    lode_close(store);
    test_remove_tree(folder);
  }
  CHECKF(moves > 5, "in %llu gaps the word moved %llu times", (unsigned long long)total, (unsigned long long)moves);
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
      CHECKF(lode_result_count(found) == wanted, "%zu found with at most %llu", lode_result_count(found),
             (unsigned long long)most[i]);
      lode_result_free(found);
    }
    OK(lode_optimize(store, (lode_progress){0}, &err));
  }
  lode_collection_close(c);
  lode_close(store);
}

/* ---- About how long documents are ---- */

TEST(sizes_are_rounded_down_a_little) {
  CHECK(store_doc_size_min(0) == 0);
  uint64_t before = 0;
  for (uint64_t bytes = 0; bytes < LODE_MAX_DOCUMENT_BYTES; bytes += bytes / 50 + 1) {
    unsigned code = store_doc_size_code(bytes);
    uint64_t least = store_doc_size_min(code);
    CHECKF(code >= 1 && code <= 255 && least <= bytes && least >= before && 9 * (bytes + 1) <= 10 * (least + 1) + bytes,
           "%llu bytes: code %u, %llu at least", (unsigned long long)bytes, code, (unsigned long long)least);
    before = least;
  }
}

static uint64_t preads;
static ssize_t count_pread(int fd, void *to, size_t n, off_t at) {
  preads++;
  return os_real.pread(fd, to, n, at);
}

/* The word is in every document once, so that the shortest are best: what is longer is not read to find that out, also
 * after a long one has become the shortest. */
TEST(few_of_many_candidates_are_read) {
  enum { N = 1000 };
  static char text[N * 8 + 300], ids[N][16];
  const char *folder = test_folder();
  lode_error err = {0};
  lode_store *store;
  lode_collection *c;
  lode_open_options o = {.create = true, .page_bytes = 1024, .no_background = true};
  lode_str needle = S("needle");
  static lode_record r[N];
  memset(text, 'x', sizeof text);
  memcpy(text, "needle ", 7);
  for (unsigned i = 0; i < N; i++) {
    r[i] = record(ids[i], i, "");
    r[i].document = (lode_str){text, 200 + 8 * (i * 7 % N)};
  }
  OK(lode_open(folder, &o, &store, &err));
  OK(lode_collection_open(store, S("c"), &(lode_collection_options){.create = true}, &c, &err));
  OK(lode_add(c, NULL, r, N, LODE_FAIL_EXISTING, NULL, &err));
  OK(lode_optimize(store, (lode_progress){0}, &err));
  lode_record shorter = record(ids[500], 500, "needle");
  OK(lode_update(c, NULL, &shorter, 1, NULL, NULL, &err));
  lode_collection_close(c);
  lode_close(store);
  OK(lode_open(folder, &o, &store, &err)); /* with nothing in memory */
  OK(lode_collection_open(store, S("c"), NULL, &c, &err));
  table = os_real;
  table.pread = count_pread;
  os_api = &table;
  lode_query_request q = {.mode = LODE_BY_TEXT, .texts = &needle, .n = 1, .k = 5};
  lode_result *found;
  preads = 0;
  OK(lode_query(c, &q, &found, &err));
  os_api = &os_real;
  CHECKF(preads < N / 5, "%llu reads", (unsigned long long)preads);
  CHECK(lode_result_count(found) == 5);
  static const unsigned wanted[5] = {500, 0, 143, 286, 429}; /* 7 i = 0, 1, 2, 3 modulo N */
  for (size_t i = 0; i < 5; i++) {
    lode_str id = lode_result_at(found, i)->id;
    CHECKF(str_eq(id, str_of(ids[wanted[i]])), "%zu: %.*s", i, (int)id.len, id.data);
  }
  lode_result_free(found);
  lode_collection_close(c);
  lode_close(store);
}

static size_t count_found(lode_collection *c, lode_str text) {
  lode_error err = {0};
  lode_result *rows;
  OK(lode_query(c, &(lode_query_request){.mode = LODE_BY_TEXT, .texts = &text, .n = 1, .k = 10}, &rows, &err));
  size_t n = lode_result_count(rows);
  lode_result_free(rows);
  return n;
}

/* One letter or digit is a word where it stands alone, and not where it is a part of a longer one. */
TEST(single_characters_of_longer_words_are_not_asked_for) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  static const char *const texts[] = {"int tcp_v4_rcv(void)", "the rcv side", "version 4 of the letter v", "vitamin c"};
  char ids[4][16];
  lode_record r[4];
  for (unsigned i = 0; i < 4; i++) r[i] = record(ids[i], i, texts[i]);
  OK(lode_open(test_folder(), &(lode_open_options){.create = true, .no_background = true}, &store, &err));
  OK(lode_collection_open(store, S("c"), &(lode_collection_options){.create = true}, &c, &err));
  OK(lode_add(c, NULL, r, 4, LODE_FAIL_EXISTING, NULL, &err));
  for (int indexed = 0; indexed < 2; indexed++) {
    CHECK(count_found(c, S("tcp_v4_rcv")) == 2);
    CHECK(count_found(c, S("4")) == 2 && count_found(c, S("v 4")) == 2);
    CHECK(count_found(c, S("c")) == 1 && count_found(c, S("vitamin c, c++")) == 1);
    OK(lode_optimize(store, (lode_progress){0}, &err));
  }
  lode_collection_close(c);
  lode_close(store);
}
