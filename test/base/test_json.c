/* SPDX-License-Identifier: Apache-2.0 */
/* test_json.c - the JSON parser and writers, the decimal numbers under them, and jansson as an oracle. */
#include "base/json.h"
#include "base/number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__has_include)
#if __has_include(<jansson.h>)
#define HAVE_JANSSON 1
#include <jansson.h>
#endif
#endif

#include "support/test.h"

static int allocations_left;
static bool count_down(void) { return allocations_left-- > 0; }

/* ---- Parsing ---- */

TEST(a_document_is_a_flat_tree) {
  lode_error err;
  json_doc json = {0};
  lode_str text = STR_LIT(" {\"a\": [1, -2.5, \"x\\ny\"], \"b\": {}, \"c\": null, \"a\" : true } \r\n");
  OK(json_parse(&json, text, NULL, &err));
  CHECK(json.count == 12);
  const json_node *n = json.nodes;
  CHECK(n[0].type == JSON_NODE_OBJECT && n[0].u.count == 4 && n[0].next == 12);
  CHECK(n[1].type == JSON_NODE_STRING && str_eq(n[1].u.s, STR_LIT("a")) && n[1].next == 2);
  CHECK(n[2].type == JSON_NODE_ARRAY && n[2].u.count == 3 && n[2].next == 6);
  CHECK(n[3].type == JSON_NODE_INT && n[3].u.i == 1);
  CHECK(n[4].type == JSON_NODE_DOUBLE && n[4].u.d == -2.5);
  CHECK(n[5].type == JSON_NODE_STRING && str_eq(n[5].u.s, STR_LIT("x\ny")));
  CHECK(n[7].type == JSON_NODE_OBJECT && n[7].u.count == 0 && n[7].next == 8);
  CHECK(json_get(&json, 0, STR_LIT("b")) == 7);
  CHECK(json_get(&json, 0, STR_LIT("c")) == 9);
  CHECK(json_get(&json, 0, STR_LIT("a")) == 11); /* the last of two */
  CHECK(json_get(&json, 0, STR_LIT("d")) == 0);
  CHECK(json_get(&json, 2, STR_LIT("a")) == 0); /* no object */
  CHECK(json_get(&json, 99, STR_LIT("a")) == 0);
  OK(json_parse(&json, STR_LIT("7"), NULL, &err)); /* used again */
  CHECK(json.count == 1 && json.nodes[0].u.i == 7);
  json_release(&json);
  CHECK(json.nodes == NULL);
}

static void refuse(lode_str text, const char *byte) {
  lode_error err;
  json_doc json = {0};
  FAILS(LODE_INVALID, json_parse(&json, text, NULL, &err));
  CHECK(json.count == 0);
  CHECKF(strstr(err.text, byte), "%s, wanted %s", err.text, byte);
  json_release(&json);
}

TEST(bad_texts_are_refused_at_the_byte_at_fault) {
  refuse((lode_str){NULL, 0}, "byte 0:");
  refuse(STR_LIT(""), "byte 0:");
  refuse(STR_LIT("  "), "byte 2:");
  refuse(STR_LIT("{"), "byte 1:");
  refuse(STR_LIT("[1,]"), "byte 3:");
  refuse(STR_LIT("[1 2]"), "byte 3:");
  refuse(STR_LIT("[1}"), "byte 2:");
  refuse(STR_LIT("{\"a\" 1}"), "byte 5:");
  refuse(STR_LIT("{\"a\":1,}"), "byte 7:");
  refuse(STR_LIT("{1:1}"), "byte 1:");
  refuse(STR_LIT("{\"a\":1]"), "byte 6:");
  refuse(STR_LIT("nul"), "byte 0:");
  refuse(STR_LIT("True"), "byte 0:");
  refuse(STR_LIT("1 1"), "byte 2:");
  refuse(STR_LIT("[]]"), "byte 2:");
  refuse(STR_LIT("\xEF\xBB\xBF{}"), "byte 0:");
  refuse(STR_LIT("[1]\0"), "byte 3:");
  refuse(STR_LIT("/**/1"), "byte 0:");
  refuse(STR_LIT("'a'"), "byte 0:");
  refuse(STR_LIT("NaN"), "byte 0:");
  refuse(STR_LIT("\v1"), "byte 0:");
}

TEST(bad_strings_are_refused) {
  refuse(STR_LIT("\"abc"), "byte 4:");
  refuse(STR_LIT("\"abc\\"), "byte 5:");
  refuse(STR_LIT("\"a\tb\""), "byte 2:");
  refuse(STR_LIT("\"a\0b\""), "byte 2:");
  refuse(STR_LIT("\"0123456789\x1F\""), "byte 11:");
  refuse(STR_LIT("\"\\x41\""), "byte 2:");
  refuse(STR_LIT("\"\\\0\""), "byte 2:");
  refuse(STR_LIT("\"\\u12G4\""), "byte 3:");
  refuse(STR_LIT("\"\\u123"), "byte 3:");
  refuse(STR_LIT("\"\\uDC00\""), "byte 3:");
  refuse(STR_LIT("\"\\uD800\""), "surrogate");
  refuse(STR_LIT("\"\\uD800x\""), "surrogate");
  refuse(STR_LIT("\"\\uD800\\n\""), "surrogate");
  refuse(STR_LIT("\"\\uD800\\u0041\""), "surrogate");
  refuse(STR_LIT("\"\\uD800\\uD800\""), "surrogate");
  refuse(STR_LIT("\"ok\xC3\xA9\xFF\""), "byte 5:");
  refuse(STR_LIT("\"\xED\xA0\x80\""), "byte 1:");
  refuse(STR_LIT("\"\\n\xC3\""), "byte 3:");
  refuse(STR_LIT("\"\xE2\x82\\n\xAC\""), "byte 1:"); /* an escape inside a character */
  refuse(STR_LIT("\"\xC3"), "byte 1:");
}

TEST(strings_are_decoded) {
  lode_error err;
  json_doc json = {0};
  lode_str text =
      STR_LIT("[\"\",\"plain and long enough\",\"\\\"\\\\\\/\\b\\f\\n\\r\\t\",\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00\","
              "\"\\u0000\",\"\xC3\xA9\\n\xF0\x9F\x98\x80\",\"\x7F\",\"\\uFFFF\\uD7FF\\uE000\\uDBFF\\uDFFF\"]");
  static const lode_str want[] = {
      {"", 0},
      {"plain and long enough", 21},
      {"\"\\/\b\f\n\r\t", 8},
      {"A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 10},
      {"\0", 1},
      {"\xC3\xA9\n\xF0\x9F\x98\x80", 7},
      {"\x7F", 1},
      {"\xEF\xBF\xBF\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF", 13},
  };
  OK(json_parse(&json, text, NULL, &err));
  CHECK(json.count == 9);
  for (uint32_t i = 0; i < 8; i++) CHECKF(str_eq(json.nodes[1 + i].u.s, want[i]), "string %u", i);
  CHECK(json.nodes[2].u.s.data > text.data && json.nodes[2].u.s.data < text.data + text.len); /* not copied */
  json_release(&json);
}

TEST(decoded_strings_do_not_move) {
  lode_error err;
  json_doc json = {0};
  strbuf text = {0};
  for (int i = 0; i < 20000; i++) strbuf_addf(&text, "%c\"\\u0061%d\\n\"", i ? ',' : '[', i);
  strbuf_addch(&text, ']');
  for (int round = 0; round < 2; round++) {
    OK(json_parse(&json, (lode_str){text.data, text.len}, NULL, &err));
    for (uint32_t i = 0; i < 20000; i++) {
      char want[32];
      snprintf(want, sizeof want, "a%u\n", i);
      CHECK(str_eq(json.nodes[1 + i].u.s, str_of(want)));
    }
  }
  json_release(&json);
  strbuf_release(&text);
}

static lode_status parse_nested(json_doc *json, size_t depth, const char *open, const char *close,
                                const json_limits *limits, lode_error *err) {
  strbuf text = {0};
  for (size_t i = 0; i < depth; i++) strbuf_addstr(&text, open);
  strbuf_addstr(&text, "1");
  for (size_t i = 0; i < depth; i++) strbuf_addstr(&text, close);
  CHECK(!text.failed);
  lode_status st = json_parse(json, (lode_str){text.data, text.len}, limits, err);
  if (st == LODE_OK) {
    strbuf back = {0};
    json_put_node(&back, json, 0);
    CHECK(back.len == text.len && memcmp(back.data, text.data, text.len) == 0);
    strbuf_release(&back);
  }
  strbuf_release(&text);
  return st;
}

TEST(depth_is_bounded_and_costs_no_stack) {
  lode_error err;
  json_doc json = {0};
  OK(parse_nested(&json, 1000, "[", "]", NULL, &err));
  FAILS(LODE_LIMIT, parse_nested(&json, 1001, "[", "]", NULL, &err));
  CHECK(json.count == 0);
  FAILS(LODE_LIMIT, parse_nested(&json, 100000, "{\"a\":", "}", NULL, &err));
  json_limits deep = {.max_depth = 3000000};
  OK(parse_nested(&json, 3000000, "[", "]", &deep, &err));
  CHECK(json.count == 3000001);
  OK(parse_nested(&json, 1000000, "{\"a\":[", "]}", &deep, &err));
  CHECK(json.count == 3000001);
  json_release(&json);
}

TEST(nodes_are_bounded) {
  lode_error err;
  json_doc json = {0};
  json_limits five = {.max_nodes = 5};
  OK(json_parse(&json, STR_LIT("[1,2,3,4]"), &five, &err));
  FAILS(LODE_LIMIT, json_parse(&json, STR_LIT("[1,2,3,4,5]"), &five, &err));
  OK(json_parse(&json, STR_LIT("{\"a\":1,\"b\":2}"), &five, &err));
  FAILS(LODE_LIMIT, json_parse(&json, STR_LIT("{\"a\":1,\"b\":2,\"c\":3}"), &five, &err));
  FAILS(LODE_LIMIT, json_parse(&json, STR_LIT("{\"a\":1,\"b\":[2]}"), &five, &err));
  json_release(&json);
}

TEST(parsing_and_writing_survive_every_failed_allocation) {
  lode_error err;
  lode_str text =
      STR_LIT("{\"k\\n\":[[[[[[[[[[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]]]]]]]]]],\"\\u0041\":\"x\"}");
  int failures = 0;
  for (int n = 0;; n++) {
    json_doc json = {0};
    strbuf out = {0};
    allocations_left = n;
    mem_alloc_hook = count_down;
    lode_status st = json_parse(&json, text, NULL, &err);
    CHECK(st == LODE_OK || (st == LODE_NOMEM && json.count == 0));
    if (st == LODE_OK) json_put_node(&out, &json, 0);
    mem_alloc_hook = NULL;
    bool ok = st == LODE_OK && !out.failed;
    CHECK(ok == (allocations_left >= 0));
    json_release(&json);
    strbuf_release(&out);
    if (ok) break;
    failures++;
  }
  CHECK(failures > 5);
}

/* ---- Numbers ---- */

static json_node number(const char *text) {
  lode_error err;
  json_doc json = {0};
  OK(json_parse(&json, str_of(text), NULL, &err));
  json_node node = json.nodes[0];
  json_release(&json);
  return node;
}

TEST(integers_stay_exact) {
  CHECK(number("0").type == JSON_NODE_INT && number("-0").type == JSON_NODE_INT && number("-0").u.i == 0);
  CHECK(number("9223372036854775807").u.i == INT64_MAX);
  CHECK(number("-9223372036854775808").u.i == INT64_MIN && number("-9223372036854775808").type == JSON_NODE_INT);
  CHECK(number("9223372036854775808").type == JSON_NODE_DOUBLE && number("9223372036854775808").u.d == 0x1p63);
  CHECK(number("-9223372036854775809").type == JSON_NODE_DOUBLE);
  CHECK(number("9007199254740993").u.i == 9007199254740993);
  CHECK(number("18446744073709551616").u.d == 0x1p64); /* digits would wrap to 0 */
  CHECK(number("100000000000000000000").u.d == 1e20);
  CHECK(number("1.0").type == JSON_NODE_DOUBLE && number("1e0").type == JSON_NODE_DOUBLE);
}

TEST(bad_numbers_are_refused) {
  static const char *const wrong[] = {"01",
                                      "-",
                                      "-a",
                                      "+1",
                                      ".5",
                                      "1.",
                                      "1.e5",
                                      "1e",
                                      "1e+",
                                      "1e-",
                                      "--1",
                                      "0x10",
                                      "1_0",
                                      "00",
                                      "-01",
                                      "1.5.2",
                                      "1e5.5",
                                      "Infinity",
                                      "-Infinity",
                                      "1e400",
                                      "-1e400",
                                      "1e309",
                                      "1e99999999999999999999",
                                      "1.7976931348623159e308",
                                      "1E1E1"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) refuse(str_of(wrong[i]), "byte");
  CHECK(number("1e308").u.d == 1e308 && number("1.7976931348623157e308").u.d == DBL_MAX);
  CHECK(number("0e999999999999999999999").u.d == 0 && number("1e-99999999999999999999").u.d == 0);
  CHECK(signbit(number("-0.0").u.d) && signbit(number("-1e-999").u.d) && !signbit(number("0.0").u.d));
}

TEST(hard_numbers_round_correctly) {
  CHECK(number("9007199254740993.0").u.d == 9007199254740992.0);
  CHECK(number("9007199254740995.0").u.d == 9007199254740996.0);
  CHECK(number("1.00000000000000011102230246251565404236316680908203125").u.d == 1.0); /* half way: to even */
  CHECK(number("1.00000000000000011102230246251565404236316680908203126").u.d == 1.0 + DBL_EPSILON);
  CHECK(number("2.2250738585072011e-308").u.d == 2.2250738585072011e-308);
  CHECK(number("5e-324").u.d == 4.9406564584124654e-324);
  CHECK(number("2.4703282292062327e-324").u.d == 0 && number("2.4703282292062328e-324").u.d == 4.9406564584124654e-324);
  CHECK(number("0.1").u.d == 0.1 && number("123456789012345678e-17").u.d == 1.23456789012345678);
  strbuf text = {0}; /* half way between 1 and its successor, and one digit at the far end that decides */
  strbuf_addstr(&text, "1.00000000000000011102230246251565404236316680908203125");
  for (int i = 0; i < 5000; i++) strbuf_addch(&text, '0');
  strbuf_add(&text, "1", 2);
  CHECK(number(text.data).u.d == 1.0 + DBL_EPSILON);
  text.len = 0;
  strbuf_addstr(&text, "0."); /* many zeros and an exponent that takes them back */
  for (int i = 0; i < 20000; i++) strbuf_addch(&text, '0');
  strbuf_add(&text, "12345e20001", 12);
  CHECK(number(text.data).u.d == 1.2345);
  strbuf_release(&text);
}

/* Decimal texts of all shapes, many of them near the halves where rounding is decided. */
static size_t random_decimal(char *out, size_t size) {
  size_t n = 0;
  if (test_below(2)) out[n++] = '-';
  switch (test_below(4)) {
    case 0: {
      size_t digits = 1 + test_below(30), point = test_below(digits);
      for (size_t i = 0; i < digits; i++) {
        out[n++] = (char)((i == 0 ? '1' : '0') + (char)test_below(i == 0 ? 9 : 10));
        if (i == point && i + 1 < digits) out[n++] = '.';
      }
      break;
    }
    case 1: { /* exactly or nearly between two floats */
      uint64_t m = (1u << 24 | test_below(1u << 24)) * 2 + 1;
      n += (size_t)snprintf(out + n, size - n, "%.*f", (int)test_below(40), ldexp((double)m, -(int)test_below(60)));
      break;
    }
    case 2: { /* exactly or nearly between two doubles */
      uint64_t m = (UINT64_C(1) << 53 | test_below(UINT64_C(1) << 53)) * 2 + 1;
      n += (size_t)snprintf(out + n, size - n, "%.*Le", (int)test_below(40),
                            ldexpl((long double)m, -(int)test_below(120)));
      return n;
    }
    default: {
      uint64_t bits = test_rand();
      double d;
      memcpy(&d, &bits, sizeof d);
      if (!isfinite(d)) d = 0.5;
      return n + (size_t)snprintf(out + n, size - n, "%.*e", (int)test_below(20), fabs(d));
    }
  }
  if (test_below(3) == 0)
    n += (size_t)snprintf(out + n, size - n, "%s%d", test_below(2) ? "e" : "E-", (int)test_below(50));
  return n;
}

TEST(numbers_agree_with_the_c_library) {
  test_srand(test_seed());
  for (int round = 0; round < 400000; round++) {
    char text[256];
    size_t len = random_decimal(text, sizeof text);
    text[len] = '\0';
    num_parsed n;
    CHECKF(num_scan(text, text + len, &n) == text + len, "%s", text);
    double want = strtod(text, NULL), got = 0;
    bool ok = num_to_double(&n, &got);
    CHECKF(ok == !!isfinite(want), "%s", text);
    CHECKF(!ok || memcmp(&want, &got, sizeof got) == 0, "%s: %a, wanted %a", text, got, want);
    float want_f = strtof(text, NULL), got_f = 0;
    ok = num_to_float(&n, &got_f);
    CHECKF(ok == !!isfinite(want_f), "%s", text);
    CHECKF(!ok || memcmp(&want_f, &got_f, sizeof got_f) == 0, "%s: %a, wanted %a", text, (double)got_f, (double)want_f);
  }
}

/* ---- Vectors ---- */

TEST(vectors_are_read) {
  lode_error err;
  float v[4];
  size_t dim = 9;
  OK(json_parse_floats(STR_LIT(" [ 1 , -2.5,1e-3\t,\n-0 ] "), v, 4, &dim, &err));
  CHECK(dim == 4 && v[0] == 1 && v[1] == -2.5f && v[2] == 0.001f && v[3] == 0 && signbit(v[3]));
  OK(json_parse_floats(STR_LIT("[]"), v, 0, &dim, &err));
  CHECK(dim == 0);
  OK(json_parse_floats(STR_LIT("[ ]"), v, 4, &dim, &err));
  OK(json_parse_floats(STR_LIT("[3.4028235e38,1e-50,1e-45,340282346638528859811704183484516925440]"), v, 4, &dim,
                       &err));
  CHECK(v[0] == FLT_MAX && v[1] == 0 && v[2] == 0x1p-149f && v[3] == FLT_MAX);
}

TEST(floats_are_rounded_once) {
  lode_error err;
  float v[2];
  size_t dim;
  /* just above the half between 1 and the next float, by less than a double can tell */
  OK(json_parse_floats(STR_LIT("[1.000000059604644775390625000000001, 1.000000059604644775390625]"), v, 2, &dim, &err));
  CHECK(v[0] == 1.0f + FLT_EPSILON && v[1] == 1.0f);
  OK(json_parse_floats(STR_LIT("[1.0000000596046447754, 1.0000000596046447753]"), v, 2, &dim, &err));
  CHECK(v[0] == 1.0f + FLT_EPSILON && v[1] == 1.0f);
}

TEST(bad_vectors_are_refused) {
  lode_error err;
  float v[4];
  size_t dim = 9;
  static const char *const wrong[] = {
      "",         " ",       "1",     "{}",     "[",     "[1",         "[1,",         "[1,]",   "[,1]",
      "[1 2]",    "[1]x",    "[1]]",  "[null]", "[NaN]", "[Infinity]", "[-Infinity]", "[1e39]", "[3.4028236e38]",
      "[-1e400]", "[\"1\"]", "[[1]]", "[true]", "[0x1]", "[01]",       "[1.]"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    FAILS(LODE_INVALID, json_parse_floats(str_of(wrong[i]), v, 4, &dim, &err));
    CHECK(dim == 0 && strstr(err.text, "byte"));
  }
  FAILS(LODE_INVALID, json_parse_floats((lode_str){NULL, 0}, v, 4, &dim, &err));
  FAILS(LODE_LIMIT, json_parse_floats(STR_LIT("[1,2,3,4,5]"), v, 4, &dim, &err));
  FAILS(LODE_LIMIT, json_parse_floats(STR_LIT("[1]"), NULL, 0, &dim, &err));
}

/* ---- Writing ---- */

static void check_text(strbuf *buf, const char *want) {
  CHECKF(buf->len == strlen(want) && memcmp(buf->data, want, buf->len) == 0, "%.*s, wanted %s", (int)buf->len,
         buf->data, want);
  buf->len = 0;
}

TEST(strings_are_written) {
  strbuf buf = {0};
  json_put_string(&buf, STR_LIT(""));
  check_text(&buf, "\"\"");
  json_put_string(&buf, STR_LIT("a\"\\/\b\f\n\r\t\x01\x1F\x7F"
                                "b"));
  check_text(&buf, "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7F"
                   "b\"");
  json_put_string(&buf, STR_LIT("\xC3\xA9\xF0\x9F\x98\x80"));
  check_text(&buf, "\"\xC3\xA9\xF0\x9F\x98\x80\"");
  json_put_string(&buf, STR_LIT("a\xFF"
                                "b\xC3"));
  check_text(&buf, "\"a\xEF\xBF\xBD"
                   "b\xEF\xBF\xBD\"");
  json_put_string(&buf, STR_LIT("\xED\xA0\x80"));
  check_text(&buf, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
  json_put_string(&buf, STR_LIT("\0"));
  check_text(&buf, "\"\\u0000\"");
  strbuf_release(&buf);
}

TEST(numbers_are_written) {
  static const struct {
    double d;
    const char *text;
  } doubles[] = {
      {0, "0.0"},
      {-0.0, "-0.0"},
      {1, "1.0"},
      {-1, "-1.0"},
      {0.1, "0.1"},
      {1.5, "1.5"},
      {100, "100.0"},
      {123456.789, "123456.789"},
      {1e15, "1000000000000000.0"},
      {1e16, "1e16"},
      {1.5e300, "1.5e300"},
      {1e-5, "0.00001"},
      {1e-6, "1e-6"},
      {1.25e-7, "1.25e-7"},
      {0.1 + 0.2, "0.30000000000000004"},
      {1.0 / 3, "0.3333333333333333"},
      {DBL_MAX, "1.7976931348623157e308"},
      {DBL_MIN, "2.2250738585072014e-308"},
      {4.9406564584124654e-324, "5e-324"},
      {9007199254740993.0, "9007199254740992.0"},
      {INFINITY, "null"},
      {-INFINITY, "null"},
      {NAN, "null"},
  };
  static const struct {
    float f;
    const char *text;
  } floats[] = {
      {0, "0.0"},
      {-0.0f, "-0.0"},
      {0.1f, "0.1"},
      {1.0f / 3, "0.33333334"},
      {16777216, "16777216.0"},
      {FLT_MAX, "3.4028235e38"},
      {FLT_MIN, "1.1754944e-38"},
      {0x1p-149f, "1e-45"},
      {9.999999e-6f, "9.999999e-6"},
      {-2.5f, "-2.5"},
      {INFINITY, "null"},
      {NAN, "null"},
  };
  strbuf buf = {0};
  for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
    json_put_double(&buf, doubles[i].d);
    check_text(&buf, doubles[i].text);
  }
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
    json_put_float(&buf, floats[i].f);
    check_text(&buf, floats[i].text);
  }
  json_put_int(&buf, 0);
  check_text(&buf, "0");
  json_put_int(&buf, INT64_MIN);
  check_text(&buf, "-9223372036854775808");
  json_put_int(&buf, INT64_MAX);
  check_text(&buf, "9223372036854775807");
  strbuf_release(&buf);
}

/* How many digits printf needs until the text reads back. */
static int digits_needed(double d, bool single) {
  char text[64];
  for (int n = 1;; n++) {
    snprintf(text, sizeof text, "%.*e", n - 1, d);
    if (single ? strtof(text, NULL) == (float)d : strtod(text, NULL) == d) return n;
  }
}

/* Digits from the first to the last that is not 0. */
static int digits_written(const char *text, size_t len) {
  int n = 0, zeros = 0;
  for (size_t i = 0; i < len && text[i] != 'e'; i++) {
    if (text[i] < '0' || text[i] > '9' || (n == 0 && text[i] == '0')) continue;
    n++;
    zeros = text[i] == '0' ? zeros + 1 : 0;
  }
  return n - zeros;
}

static void check_shape(const char *text, size_t len) {
  num_parsed n;
  CHECKF(num_scan(text, text + len, &n) == text + len && !n.integer, "%.*s", (int)len, text);
}

/* The float with these bits reads back; thorough: with as few digits as that takes, the nearest of those. */
static void check_float(uint32_t image, bool thorough) {
  float f, back;
  char text[NUM_MAX_BYTES + 1], printed[64];
  memcpy(&f, &image, sizeof f);
  if (!isfinite(f)) return;
  size_t len = num_put_float(f, text);
  text[len] = '\0';
  back = strtof(text, NULL);
  CHECKF(memcmp(&f, &back, sizeof f) == 0, "%s: %a, wanted %a", text, (double)back, (double)f);
  if (!thorough || f == 0) return;
  check_shape(text, len);
  int least = digits_needed((double)f, true);
  CHECKF(digits_written(text, len) <= least, "%s", text);
  snprintf(printed, sizeof printed, "%.*e", least - 1, (double)f);
  double off = fabs(strtod(text, NULL) - (double)f), by_printf = fabs(strtod(printed, NULL) - (double)f);
  CHECKF(off <= by_printf * (1 + 1e-6), "%s is not as near as %s", text, printed);
}

TEST(floats_read_back_and_are_short) {
  uint32_t step = test_full() ? 257 : 2003; /* some two million, spread over all of them */
  for (uint64_t bits = test_below(step), i = 0; bits < UINT64_C(1) << 32; bits += step, i++)
    check_float((uint32_t)bits, i % 64 == 0);
}

/* Powers of two and of ten, and what is beside them; numbers that people write. */
TEST(floats_at_the_edges_read_back) {
  for (uint32_t exponent = 0; exponent < 255; exponent++)
    for (uint32_t beside = 0; beside < 7; beside++) check_float((exponent << 23) + beside - 3, true);
  for (int power = -45; power < 39; power++) {
    char text[16];
    uint32_t image;
    snprintf(text, sizeof text, "1e%d", power);
    float f = strtof(text, NULL);
    memcpy(&image, &f, sizeof image);
    for (uint32_t beside = 0; beside < 7; beside++) check_float(image + beside - 3, true);
  }
  test_srand(test_seed());
  for (int i = 0; i < 100000; i++) {
    static const float scales[] = {1e-9f, 1e-6f, 1e-3f, 0.01f, 0.1f, 1, 10, 1e6f};
    float f = (float)test_below(100000) * scales[test_below(8)] * (i % 2 ? 1.0f : -1.0f);
    uint32_t image;
    memcpy(&image, &f, sizeof image);
    check_float(image, i % 8 == 0);
  }
}

TEST(vectors_are_written) {
  strbuf buf = {0};
  float v[200];
  json_put_vector(&buf, NULL, 0);
  check_text(&buf, "[]");
  json_put_vector(&buf, (const float[]){0.5f, -1, NAN, 1e-7f}, 4);
  check_text(&buf, "[0.5,-1.0,null,1e-7]");
  for (size_t i = 0; i < 200; i++) v[i] = (float)i / 7;
  for (size_t n = 0; n <= 200; n++) {
    float back[200];
    size_t dim;
    lode_error err;
    buf.len = 0;
    json_put_vector(&buf, v, n);
    OK(json_parse_floats((lode_str){buf.data, buf.len}, back, 200, &dim, &err));
    CHECK(dim == n && memcmp(v, back, n * sizeof *v) == 0);
  }
  strbuf_release(&buf);
}

TEST(doubles_read_back_and_are_short) {
  test_srand(test_seed());
  for (int i = 0; i < 200000; i++) {
    uint64_t bits = test_rand();
    double d, back;
    char text[NUM_MAX_BYTES + 1];
    memcpy(&d, &bits, sizeof d);
    if (i % 4 == 1) d = (double)(int64_t)test_rand() / 1e9;
    if (i % 4 == 2) d = (double)test_below(1000000) / 1000;
    if (i % 4 == 3) d = ldexp(1, (int)test_below(2100) - 1074);
    if (!isfinite(d)) continue;
    size_t len = num_put_double(d, text);
    text[len] = '\0';
    back = strtod(text, NULL);
    CHECKF(memcmp(&d, &back, sizeof d) == 0, "%s: %a, wanted %a", text, back, d);
    check_shape(text, len);
    if (d != 0) CHECKF(digits_written(text, len) <= digits_needed(d, false), "%s", text);
  }
}

/* A locale with a decimal comma, made if the system has none. */
static bool comma_locale(void) {
  if (setlocale(LC_ALL, "de_DE.UTF-8")) return true;
  const char *folder = test_folder();
  char target[4200];
  snprintf(target, sizeof target, "%s/de_DE.UTF-8", folder);
  pid_t child = fork();
  if (child == 0) {
    if (!freopen("/dev/null", "w", stderr) || !freopen("/dev/null", "w", stdout)) _exit(1);
    execlp("localedef", "localedef", "-i", "de_DE", "-f", "UTF-8", target, (char *)NULL);
    _exit(1);
  }
  waitpid(child, NULL, 0);
  return setenv("LOCPATH", folder, 1) == 0 && setlocale(LC_ALL, "de_DE.UTF-8");
}

TEST(numbers_do_not_depend_on_the_locale) {
  if (!comma_locale()) test_skip("no locale with a decimal comma here, and none can be made");
  char text[16];
  snprintf(text, sizeof text, "%.1f", 1.5);
  CHECK(strcmp(text, "1,5") == 0); /* else nothing is tested */
  strbuf buf = {0};
  json_put_double(&buf, 1.5);
  check_text(&buf, "1.5");
  json_put_double(&buf, 1.2345e300);
  check_text(&buf, "1.2345e300");
  json_put_float(&buf, 1.5e-40f);
  check_text(&buf, "1.5e-40");
  CHECK(number("1.5").u.d == 1.5 && number("1.2345e300").u.d == 1.2345e300);
  CHECK(number("1.00000000000000000000000000001").u.d == 1.0);
  strbuf_release(&buf);
}

TEST(subtrees_are_written_compactly) {
  lode_error err;
  json_doc json = {0};
  strbuf buf = {0};
  lode_str text =
      STR_LIT("{ \"a\" : [ 1 , 2.50 , [ ] , { } , null ] , \"b\\n\" : { \"c\" : { \"d\" : true } } , \"e\" : false }");
  OK(json_parse(&json, text, NULL, &err));
  json_put_node(&buf, &json, 0);
  check_text(&buf, "{\"a\":[1,2.5,[],{},null],\"b\\n\":{\"c\":{\"d\":true}},\"e\":false}");
  json_put_node(&buf, &json, json_get(&json, 0, STR_LIT("a")));
  check_text(&buf, "[1,2.5,[],{},null]");
  json_put_node(&buf, &json, json_get(&json, 0, STR_LIT("b\n")));
  check_text(&buf, "{\"c\":{\"d\":true}}");
  json_put_node(&buf, &json, json_get(&json, 0, STR_LIT("e")));
  check_text(&buf, "false");
  json_release(&json);
  strbuf_release(&buf);
}

/* ---- Random texts, and jansson's opinion of them ---- */

static const char *const pieces[] = {"\\n", "\\u0041",  "\\u00e9",      "\\uD83D\\uDE00",   "\\\"", "\\\\", "plain",
                                     "key", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\x7F", "\\/",  "\\u0001"};

static void random_string(strbuf *buf) {
  strbuf_addch(buf, '"');
  for (uint64_t n = test_below(4); n; n--) strbuf_addstr(buf, pieces[test_below(sizeof pieces / sizeof *pieces)]);
  strbuf_addch(buf, '"');
}

static void random_scalar(strbuf *buf) {
  char text[256];
  size_t len;
  switch (test_below(6)) {
    case 0: strbuf_addstr(buf, "null"); break;
    case 1: strbuf_addstr(buf, test_below(2) ? "true" : "false"); break;
    case 2: json_put_int(buf, (int64_t)(test_rand() >> test_below(64))); break;
    case 3:
      do { /* a text with a number beyond all doubles would not be valid */
        len = random_decimal(text, sizeof text);
        text[len] = '\0';
      } while (!isfinite(strtod(text, NULL)));
      strbuf_add(buf, text, len);
      break;
    default: random_string(buf); break;
  }
}

static void random_space(strbuf *buf) {
  if (test_below(4) == 0) strbuf_addch(buf, " \t\r\n"[test_below(4)]);
}

/* A valid text: opens and closes containers at random, closing all in the end. */
static void random_text(strbuf *buf) {
  char open[32];
  size_t depth = 0, budget = 1 + test_below(25);
  bool first = true;
  buf->len = 0;
  for (;;) {
    random_space(buf);
    if (depth > 0 && (budget == 0 || test_below(5) == 0)) {
      strbuf_addch(buf, open[--depth] == '{' ? '}' : ']');
    } else {
      if (!first) strbuf_addch(buf, ',');
      random_space(buf);
      if (depth > 0 && open[depth - 1] == '{') {
        random_string(buf);
        random_space(buf);
        strbuf_addch(buf, ':');
        random_space(buf);
      }
      if (budget) budget--;
      if (depth < sizeof open && test_below(3) != 0) {
        open[depth] = "[{"[test_below(2)];
        strbuf_addch(buf, open[depth++]);
        first = true;
        continue;
      }
      random_scalar(buf);
    }
    first = false;
    if (depth == 0) break;
  }
  random_space(buf);
}

static void mutate(strbuf *buf) {
  static const char bytes[] = "{}[]:,\"\\u0019+-.eEtfn \x01\xC3\xA9\xFF\xED\xF0\xD8/";
  for (uint64_t n = 1 + test_below(3); n && buf->len; n--) {
    size_t at = test_below(buf->len);
    switch (test_below(4)) {
      case 0: buf->data[at] = bytes[test_below(sizeof bytes - 1)]; break; /* no NUL: jansson takes it for the end */
      case 1: memmove(buf->data + at, buf->data + at + 1, --buf->len - at); break;
      case 2: buf->len = at; break;
      default: { /* double a stretch */
        size_t stretch = 1 + test_below(buf->len - at < 8 ? buf->len - at : 8);
        char copy[8];
        memcpy(copy, buf->data + at, stretch);
        if (!strbuf_reserve(buf, stretch)) break;
        memmove(buf->data + at + stretch, buf->data + at, buf->len - at);
        memcpy(buf->data + at, copy, stretch);
        buf->len += stretch;
      }
    }
  }
}

/* Next pointers and counts are those of a tree. */
static void check_structure(const json_doc *json) {
  for (uint32_t i = 0; i < json->count; i++) {
    const json_node *n = &json->nodes[i];
    bool object = n->type == JSON_NODE_OBJECT;
    if (n->type != JSON_NODE_ARRAY && !object) {
      CHECK(n->next == i + 1);
      continue;
    }
    size_t children = 0;
    uint32_t c = i + 1;
    for (; c < n->next; c = json->nodes[c].next) {
      if (object && children % 2 == 0) CHECK(json->nodes[c].type == JSON_NODE_STRING);
      children++;
    }
    CHECK(c == n->next && c <= json->count && children == n->u.count * (object ? 2 : 1));
  }
  CHECK(json->count > 0 && json->nodes[0].next == json->count);
}

TEST(random_texts_survive_a_round_trip) {
  lode_error err;
  json_doc json = {0}, again = {0};
  strbuf text = {0}, once = {0}, twice = {0};
  test_srand(test_seed());
  for (int round = 0; round < 20000; round++) {
    random_text(&text);
    OK(json_parse(&json, (lode_str){text.data, text.len}, NULL, &err));
    check_structure(&json);
    once.len = twice.len = 0;
    json_put_node(&once, &json, 0);
    OK(json_parse(&again, (lode_str){once.data, once.len}, NULL, &err));
    CHECK(again.count == json.count);
    for (uint32_t i = 0; i < json.count; i++)
      CHECK(json.nodes[i].type == again.nodes[i].type && json.nodes[i].next == again.nodes[i].next);
    json_put_node(&twice, &again, 0);
    CHECKF(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0, "%.*s", (int)text.len, text.data);
  }
  json_release(&json), json_release(&again);
  strbuf_release(&text), strbuf_release(&once), strbuf_release(&twice);
}

#ifdef HAVE_JANSSON
/* Whether both parsers mean the same; at most as deep as the texts above are. */
static bool same(const json_doc *json, uint32_t at, json_t *theirs) {
  const json_node *n = &json->nodes[at];
  switch (n->type) {
    case JSON_NODE_NULL: return json_is_null(theirs);
    case JSON_NODE_TRUE: return json_is_true(theirs);
    case JSON_NODE_FALSE: return json_is_false(theirs);
    case JSON_NODE_INT: /* all numbers are reals where a text has an integer too large for jansson */
      return json_is_integer(theirs) ? json_integer_value(theirs) == n->u.i
                                     : json_is_real(theirs) && json_real_value(theirs) == (double)n->u.i;
    case JSON_NODE_DOUBLE: return json_is_real(theirs) && json_real_value(theirs) == n->u.d;
    case JSON_NODE_STRING:
      return json_is_string(theirs) &&
             str_eq(n->u.s, (lode_str){json_string_value(theirs), json_string_length(theirs)});
    case JSON_NODE_ARRAY: {
      if (!json_is_array(theirs) || json_array_size(theirs) != n->u.count) return false;
      size_t i = 0;
      for (uint32_t c = at + 1; c < n->next; c = json->nodes[c].next) {
        if (!same(json, c, json_array_get(theirs, i++))) return false;
      }
      return true;
    }
    default: break;
  }
  if (!json_is_object(theirs)) return false;
  size_t distinct = 0;
  for (uint32_t c = at + 1; c < n->next; c = json->nodes[c + 1].next) {
    lode_str key = json->nodes[c].u.s;
    if (json_get(json, at, key) != c + 1) continue; /* a later one counts */
    distinct++;
    json_t *value = json_object_getn(theirs, key.data, key.len);
    if (!value || !same(json, c + 1, value)) return false;
  }
  return distinct == json_object_size(theirs);
}

TEST(jansson_agrees) {
  lode_error err;
  json_doc json = {0};
  strbuf text = {0};
  unsigned accepted = 0, refused = 0;
  test_srand(test_seed());
  for (int round = 0; round < (test_full() ? 2000000 : 100000); round++) {
    json_error_t why;
    random_text(&text);
    if (round % 4) mutate(&text);
    size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL;
    json_t *theirs = json_loadb(text.data, text.len, flags, &why);
    if (!theirs && json_error_code(&why) == json_error_numeric_overflow) {
      theirs = json_loadb(text.data, text.len, flags | JSON_DECODE_INT_AS_REAL, &why);
    }
    if (!theirs && json_error_code(&why) == json_error_null_byte_in_key) continue; /* a limit of jansson's own */
    lode_status st = json_parse(&json, (lode_str){text.data, text.len}, NULL, &err);
    CHECKF((st == LODE_OK) == (theirs != NULL), "%.*s: %s, jansson: %s", (int)text.len, text.data, lode_status_name(st),
           theirs ? "OK" : why.text);
    CHECKF(st == LODE_OK || st == LODE_INVALID, "%s", err.text);
    if (st == LODE_OK) {
      check_structure(&json);
      CHECKF(same(&json, 0, theirs), "%.*s", (int)text.len, text.data);
      accepted++;
    } else {
      refused++;
    }
    json_decref(theirs);
  }
  CHECKF(accepted > 20000 && refused > 20000, "%u accepted, %u refused", accepted, refused);
  json_release(&json);
  strbuf_release(&text);
}
#else
TEST(jansson_agrees) {
  test_skip("jansson.h was not there when this was compiled");
  (void)mutate;
}
#endif
