/* SPDX-License-Identifier: Apache-2.0 */
/* test_filter_limits.c - filters that mean harm: size, depth, patterns without end, no memory, garbage. */
#include "support/filter_kit.h"

/* ---- Size ---- */

/* open x n, middle, close x n */
static lode_str nest(strbuf *b, const char *open, const char *middle, const char *close, int n) {
  b->len = 0;
  for (int i = 0; i < n; i++) strbuf_addstr(b, open);
  strbuf_addstr(b, middle);
  for (int i = 0; i < n; i++) strbuf_addstr(b, close);
  CHECK(!b->failed);
  return (lode_str){b->data, b->len};
}

static bool judge_long(lode_str where, const char *metadata) {
  filter_expr *filter;
  filter_eval *eval;
  bool match;
  OK(filter_parse(where, none, &filter, &err));
  OK(filter_eval_new(filter, &eval, &err));
  OK(filter_eval_match(eval, str_of(metadata), none, &match, &err));
  filter_eval_free(eval);
  filter_free(filter);
  return match;
}

TEST(filter_nests_as_deep_as_the_limit) {
  strbuf b = {0};
  const int most = LODE_MAX_FILTER_DEPTH;
  CHECK(judge_long(nest(&b, "{\"$not\":", "{\"a\":1}", "}", 100000), "{\"a\":1}"));
  CHECK(!judge_long(nest(&b, "{\"$not\":", "{\"a\":1}", "}", 99999), "{\"a\":1}"));
  CHECK(judge_long(nest(&b, "{\"$and\":[", "{\"a\":1}", "]}", most), "{\"a\":1}"));
  CHECK(judge_long(nest(&b, "{\"$or\":[{\"b\":1},", "{\"a\":1}", "]}", most), "{\"a\":1}"));
  /* and, or in turn, none of which can be left out */
  CHECK(judge_long(nest(&b, "{\"$and\":[{\"$or\":[{\"x\":5},", "{\"a\":1}", "]},{\"y\":{\"$ne\":5}}]}", most / 2),
                   "{\"a\":1}"));
  CHECK(!judge_long(nest(&b, "{\"$and\":[{\"$or\":[{\"x\":5},", "{\"a\":1}", "]},{\"y\":{\"$ne\":5}}]}", most / 2),
                    "{\"a\":1,\"y\":5}"));
  CHECK(!judge_long(nest(&b, "{\"$not\":{\"a\":{\"$gt\":5},\"$and\":[", "{\"a\":1}", "]}}", 100000), "{\"a\":6}"));
  CHECK(judge_long(nest(&b, "{\"$not\":{\"a\":{\"$gt\":5},\"$and\":[", "{\"a\":1}", "]}}", 99999), "{\"a\":6}"));
  FAILS(LODE_LIMIT, parse_only(nest(&b, "{\"$not\":", "{}", "}", most + 1), none));
  CHECK(strstr(err.text, "deep"));
  FAILS(LODE_LIMIT, parse_only(nest(&b, "{\"$or\":[", "{}", "]}", most + 1), none));
  FAILS(LODE_LIMIT, parse_only(none, nest(&b, "{\"$and\":[", "{}", "]}", most + 1)));
  FAILS(LODE_LIMIT, parse_only(nest(&b, "[", "", "]", 3 * most), none));
  FAILS(LODE_INVALID, parse_only(nest(&b, "{\"$not\":", "", "", most), none));
  strbuf_release(&b);
}

/* {"$or": [<clause with its number>, ...]} */
static lode_str list_of(strbuf *b, const char *open, const char *format_before, const char *format_after, int n) {
  b->len = 0;
  strbuf_addstr(b, open);
  for (int i = 0; i < n; i++) {
    if (i) strbuf_addch(b, ',');
    strbuf_addstr(b, format_before);
    strbuf_addf(b, "%d", (int)((i * 7919u) % (unsigned)n)); /* not in order */
    strbuf_addstr(b, format_after);
  }
  strbuf_addstr(b, "]}");
  CHECK(!b->failed);
  return (lode_str){b->data, b->len};
}

TEST(filter_or_of_many_equalities_is_one_set) {
  strbuf b = {0};
  filter_expr *f;
  filter_eval *j;
  const filter_probe *p;
  bool match;
  const int n = 31985;
  lode_str text = list_of(&b, "{\"$or\":[", "{\"file_path\":{\"$eq\":\"src/file", ".c\"}}", n);
  OK(filter_parse(text, none, &f, &err));
  CHECK(filter_get_probes(f, &p) == 1 && p->n == 1 && p->any->n_values == (size_t)n);
  for (size_t i = 1; i < p->any->n_values; i++) CHECK(meta_value_cmp(&p->any->values[i - 1], &p->any->values[i]) < 0);
  OK(filter_eval_new(f, &j, &err));
  for (int i = 0; i < n + 1000; i++) { /* a test of each clause on each record would end in the timeout */
    char metadata[100];
    snprintf(metadata, sizeof metadata, "{\"file_path\":\"src/file%d.c\",\"size\":%d}", i, i);
    for (int again = 0; again < 20; again++) OK(filter_eval_match(j, str_of(metadata), none, &match, &err));
    CHECK(match == (i < n));
  }
  filter_eval_free(j);
  filter_free(f);
  text = list_of(&b, "{\"$and\":[", "{\"n\":{\"$ne\":", "}}", n);
  OK(filter_parse(text, none, &f, &err));
  OK(filter_eval_new(f, &j, &err));
  for (int i = 0; i < 2 * n; i++) {
    char metadata[100];
    snprintf(metadata, sizeof metadata, "{\"n\":%d.0}", i);
    for (int again = 0; again < 10; again++) OK(filter_eval_match(j, str_of(metadata), none, &match, &err));
    CHECK(match == (i >= n));
  }
  filter_eval_free(j);
  filter_free(f);
  strbuf_release(&b);
}

TEST(filter_takes_as_many_clauses_as_the_limit) {
  strbuf b = {0};
  const int most = LODE_MAX_FILTER_CLAUSES;
  CHECK(judge_long(list_of(&b, "{\"$or\":[", "{\"k", "\":1}", 100000), "{\"k99999\":1}"));
  CHECK(!judge_long(list_of(&b, "{\"$or\":[", "{\"k", "\":{\"$gt\":1}}", 100000), "{\"k99999\":1}"));
  CHECK(judge_long(list_of(&b, "{\"$or\":[", "{\"k\":", "}", most), "{\"k\":999999}"));
  CHECK(!judge_long(list_of(&b, "{\"$and\":[", "{\"k", "\":{\"$ne\":1}}", most), "{\"k7\":1}"));
  FAILS(LODE_LIMIT, parse_only(list_of(&b, "{\"$or\":[", "{\"k\":", "}", most + 1), none));
  CHECK(strstr(err.text, "clauses"));
  list_of(&b, "{\"k\":{\"$in\":[", "", "", most + 1);
  strbuf_addch(&b, '}');
  FAILS(LODE_LIMIT, parse_only((lode_str){b.data, b.len}, none));
  strbuf_release(&b);
}

TEST(filter_takes_regular_expressions_up_to_a_limit) {
  strbuf b = {0};
  OK(parse_only(none, list_of(&b, "{\"$or\":[", "{\"$regex\":\"", "\"}", 256)));
  FAILS(LODE_LIMIT, parse_only(none, list_of(&b, "{\"$or\":[", "{\"$regex\":\"", "\"}", 257)));
  b.len = 0;
  strbuf_addstr(&b, "{\"$regex\":\"");
  for (int i = 0; i < (64 << 10) + 1; i++) strbuf_addch(&b, 'x');
  strbuf_addstr(&b, "\"}");
  FAILS(LODE_LIMIT, parse_only(none, (lode_str){b.data, b.len}));
  FAILS(LODE_INVALID, parse_only(none, nest(&b, "(", "{\"$regex\":\"x", ")", 10)));
  nest(&b, "(", "x", ")", 10000);
  strbuf quoted = {0};
  strbuf_addf(&quoted, "{\"$regex\":\"%.*s\"}", (int)b.len, b.data);
  FAILS(LODE_INVALID, parse_only(none, (lode_str){quoted.data, quoted.len}));
  strbuf_release(&b), strbuf_release(&quoted);
}

/* ---- Regular expressions that would never end ---- */

static lode_status search(const char *where_document, lode_str document, bool *match) {
  filter_expr *filter;
  filter_eval *eval;
  OK(filter_parse(none, str_of(where_document), &filter, &err));
  OK(filter_eval_new(filter, &eval, &err));
  lode_status st = filter_eval_match(eval, none, document, match, &err);
  filter_eval_free(eval);
  filter_free(filter);
  return st;
}

static lode_str filled(char fill, size_t n, const char *end) {
  size_t tail = strlen(end);
  char *text = malloc(n + tail + 1);
  CHECK(text);
  memset(text, fill, n);
  memcpy(text + n, end, tail);
  return (lode_str){text, n + tail};
}

TEST(filter_hostile_patterns_are_a_limit) {
  const char *patterns_[] = {
      "{\"$regex\": \"(a+)+$\"}",           "{\"$regex\": \"^(a+)+$\"}",
      "{\"$regex\": \"(a|aa)+$\"}",         "{\"$regex\": \"(?:a?){40}a{40}b\"}",
      "{\"$regex\": \"(a*)*(a*)*(a*)*c\"}", "{\"$regex\": \"(?s)(.*)(.*)(.*)(.*)(.*)x(?=y)z\"}",
  };
  for (size_t i = 0; i < sizeof patterns_ / sizeof patterns_[0]; i++) {
    bool match;
    lode_str text = filled('a', 4000, "!xbcyz!");
    FAILS(LODE_LIMIT, search(patterns_[i], text, &match));
    CHECK(!match && strstr(err.text, "regular expression"));
    free((char *)text.data);
  }
}

/* Below the limit of steps at every start, and there are many starts. */
TEST(filter_slow_patterns_run_out_of_time) {
  bool match;
  lode_str text = filled('a', 1 << 20, "!");
  FAILS(LODE_LIMIT, search("{\"$regex\": \"(?:a?){11}(?:a|aa){4}b|a{500}(?:a?){12}c\"}", text, &match));
  free((char *)text.data);
}

TEST(filter_searches_long_documents) {
  bool match;
  const char *places[] = {"needle42", " needle42 "};
  const size_t sizes[] = {0, 1, 1023, 1024, 1025, 17000, 17408, 300000, 3 << 20};
  for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
    lode_str text = filled('n', sizes[i / 2], places[i % 2]);
    OK(search("{\"$regex\": \"needle\\\\d+\"}", text, &match));
    CHECK(match);
    OK(search("{\"$regex\": \"needle\\\\d+x\"}", text, &match));
    CHECK(!match);
    OK(search("{\"$regex\": \"(?<=n)eedle42\\\\s?$\"}", text, &match));
    CHECK(match);
    OK(search("{\"$regex\": \"^needle\"}", text, &match));
    CHECK(match == (sizes[i / 2] == 0 && i % 2 == 0));
    OK(search("{\"$regex\": \"\\\\z\"}", text, &match));
    CHECK(match);
    free((char *)text.data);
  }
}

/* Starts never fall inside a character, wherever windows end. */
TEST(filter_searches_long_documents_of_wide_characters) {
  bool match;
  strbuf b = {0};
  for (int shift = 0; shift < 3; shift++) {
    b.len = 0;
    for (int i = 0; i < shift; i++) strbuf_addch(&b, 'x');
    for (int i = 0; i < 20000; i++) strbuf_addstr(&b, "\xE6\x97\xA5");
    strbuf_addstr(&b, "\xE6\x9C\xAC");
    OK(search("{\"$regex\": \"\\u65e5\\u672c$\"}", (lode_str){b.data, b.len}, &match));
    CHECK(match);
    OK(search("{\"$regex\": \"(?!\\u65e5|\\u672c|x).\"}", (lode_str){b.data, b.len}, &match));
    CHECK(!match);
  }
  strbuf_release(&b);
}

/* The machine code's stack is too small for this; the interpreter's is not. */
TEST(filter_searches_deeply) {
  bool match;
  lode_str text = filled('a', 100000, "b");
  OK(search("{\"$regex\": \"^(?:(a)|x)+b$\"}", text, &match));
  CHECK(match);
  free((char *)text.data);
}

/* ---- Out of memory, and garbage ---- */

static int allocations_left;
static bool count_down(void) { return allocations_left-- > 0; }

static lode_status whole_life(lode_str where, lode_str where_document, lode_str metadata, lode_str document,
                              bool *match) {
  filter_expr *filter = NULL;
  filter_eval *eval = NULL;
  lode_status st = LODE_OK;
  TRY_GOTO(filter_parse(where, where_document, &filter, &err));
  TRY_GOTO(filter_eval_new(filter, &eval, &err));
  TRY_GOTO(filter_eval_match(eval, metadata, document, match, &err));
done:
  filter_eval_free(eval);
  filter_free(filter);
  return st;
}

TEST(filter_survives_every_failed_allocation) {
  strbuf b = {0};
  list_of(&b, "{\"$or\":[", "{\"$and\":[{\"k", "\":\"esc\\u0061ped\"},{\"z\":{\"$in\":[3,2,1]}}]}", 50);
  b.len -= 2;
  strbuf_addstr(&b, ",{\"s\":3},{\"s\":{\"$contains\":2}},{\"s\":{\"$contains\":1}},{\"s\":1},{\"$not\":{\"a\":5}}],"
                    "\"t\":{\"$gt\":1}}");
  lode_str where = {b.data, b.len}, metadata = STR_LIT("{\"s\":[1,2,\"\\n\"],\"t\":2}");
  lode_status st = LODE_NOMEM;
  int n = 0;
  for (; st != LODE_OK && n < 100000; n++) {
    bool match = false;
    allocations_left = n;
    mem_alloc_hook = count_down;
    st = whole_life(where, STR_LIT("{\"$regex\":\"(a|b)+c\",\"$contains\":\"c\"}"), metadata, STR_LIT("ababc"), &match);
    mem_alloc_hook = NULL;
    CHECKF(st == LODE_OK || st == LODE_NOMEM, "call %d: %s %s", n, lode_status_name(st), err.text);
    CHECK(match == (st == LODE_OK));
  }
  CHECK(st == LODE_OK && n > 50);
  strbuf_release(&b);
}

TEST(filter_evaluation_allocates_nothing_after_the_first_records) {
  filter_expr *f;
  filter_eval *j;
  bool match;
  OK(filter_parse(STR_LIT("{\"a\":{\"$in\":[1,2]},\"b\":\"x\"}"), STR_LIT("{\"$regex\":\"a+b\"}"), &f, &err));
  OK(filter_eval_new(f, &j, &err));
  OK(filter_eval_match(j, STR_LIT("{\"a\":1,\"b\":\"\\u0078\"}"), STR_LIT("aab"), &match, &err));
  allocations_left = 0;
  mem_alloc_hook = count_down;
  for (int i = 0; i < 100; i++) {
    OK(filter_eval_match(j, STR_LIT("{\"a\":2,\"b\":\"\\u0078\"}"), STR_LIT("xxaab"), &match, &err));
    CHECK(match);
  }
  mem_alloc_hook = NULL;
  filter_eval_free(j);
  filter_free(f);
}

TEST(filter_survives_damaged_texts) {
  static const char text[] = "{\"$or\":[{\"a\":{\"$in\":[1,\"x\"]}},{\"$not\":{\"#document\":{\"$regex\":\"a+\"}}}],"
                             "\"b\":{\"$gt\":1.5,\"$lt\":9}}";
  char copy[sizeof text];
  test_srand(test_seed());
  for (int round = 0; round < 50000; round++) {
    memcpy(copy, text, sizeof text);
    size_t n = sizeof text - 1;
    for (uint64_t hits = 1 + test_below(3); hits; hits--) {
      size_t at = test_below(n);
      uint64_t how = test_below(3);
      if (how == 0)
        copy[at] = "{}[]\",:$01"[test_below(10)];
      else if (how == 1)
        copy[at] = text[test_below(n)];
      else
        memmove(copy + at, copy + at + 1, --n - at);
    }
    bool match;
    lode_status st = whole_life((lode_str){copy, n}, none, STR_LIT("{\"a\":1,\"b\":2}"), STR_LIT("aa"), &match);
    CHECK(st == LODE_OK || st == LODE_INVALID);
  }
}
