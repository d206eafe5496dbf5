/* SPDX-License-Identifier: Apache-2.0 */
/* test_meta.c - metadata: order of values, checks, values of a record, merging. */
#include "base/meta.h"
#include "support/test.h"

#include <float.h>
#include <stdlib.h>

static lode_error err;

static meta_value v_int(int64_t i) { return (meta_value){.type = META_INT, .i = i}; }
static meta_value v_double(double d) { return (meta_value){.type = META_DOUBLE, .d = d}; }
static meta_value v_bool(bool b) { return (meta_value){.type = META_BOOL, .i = b}; }
static meta_value v_str(const char *s) { return (meta_value){.type = META_STRING, .s = str_of(s)}; }

static int sign(int c) { return (c > 0) - (c < 0); }
static int cmp(meta_value a, meta_value b) {
  int c = sign(meta_value_cmp(&a, &b));
  CHECK(sign(meta_value_cmp(&b, &a)) == -c);
  return c;
}

TEST(meta_compares_integers_and_doubles_exactly) {
  CHECK(cmp(v_int(1), v_double(1.0)) == 0);
  CHECK(cmp(v_int(9007199254740993), v_double(9007199254740992.0)) == 1);
  CHECK(cmp(v_int(9007199254740992), v_double(9007199254740992.0)) == 0);
  CHECK(cmp(v_int(9007199254740991), v_double(9007199254740992.0)) == -1);
  CHECK(cmp(v_int(INT64_MAX), v_double(0x1p63)) == -1);
  CHECK(cmp(v_int(INT64_MIN), v_double(-0x1p63)) == 0);
  CHECK(cmp(v_int(INT64_MIN), v_double(-0x1.0000000000001p63)) == 1);
  CHECK(cmp(v_int(-2), v_double(-2.5)) == 1);
  CHECK(cmp(v_int(-3), v_double(-2.5)) == -1);
  CHECK(cmp(v_int(0), v_double(-0.0)) == 0);
  CHECK(cmp(v_int(0), v_double(DBL_TRUE_MIN)) == -1);
  CHECK(cmp(v_int(0), v_double(-DBL_TRUE_MIN)) == 1);
  CHECK(cmp(v_int(INT64_MAX), v_double(DBL_MAX)) == -1);
  CHECK(cmp(v_int(INT64_MIN), v_double(-DBL_MAX)) == 1);
}

TEST(meta_orders_kinds) {
  CHECK(cmp(v_bool(true), v_int(-5)) == -1);
  CHECK(cmp(v_double(1e300), v_str("")) == -1);
  CHECK(cmp(v_bool(false), v_bool(true)) == -1);
  CHECK(cmp(v_str("a"), v_str("ab")) == -1);
  CHECK(cmp(v_str("a\xC3\xA4"), v_str("ab")) == 1);
  meta_value one = v_int(1), real = v_double(0.5), yes = v_bool(true), text = v_str("1");
  CHECK(meta_value_comparable(&one, &real));
  CHECK(!meta_value_comparable(&one, &yes) && !meta_value_comparable(&text, &one));
}

/* A number that is likely to meet the other type's borders. */
static meta_value random_number(void) {
  static const double edges[] = {0, 0x1p53, 0x1p62, 0x1p63, -0x1p53, -0x1p63, 1e18, 0.5, -1e300, 1e300};
  double edge = edges[test_below(10)];
  if (test_below(2)) {
    double d = edge + (double)test_below(5) - 2;
    return v_double(test_below(4) ? d : d / 4);
  }
  int64_t base = edge >= 0x1p63 ? INT64_MAX : edge <= -0x1p63 ? INT64_MIN : (int64_t)edge, i;
  if (__builtin_add_overflow(base, (int64_t)test_below(5) - 2, &i)) i = base;
  return v_int(i);
}

static long double exact(meta_value v) { return v.type == META_INT ? (long double)v.i : (long double)v.d; }

TEST(meta_compares_numbers_as_wider_arithmetic_does) {
  if (LDBL_MANT_DIG < 64) test_skip("long double does not hold every int64");
  test_srand(test_seed());
  for (int i = 0; i < 200000; i++) {
    meta_value a = random_number(), b = random_number();
    int want = (exact(a) > exact(b)) - (exact(a) < exact(b));
    CHECKF(cmp(a, b) == want, "%.20Lg against %.20Lg", exact(a), exact(b));
  }
}

TEST(meta_sorts_values_and_drops_equal_ones) {
  test_srand(test_seed());
  for (int round = 0; round < 300; round++) {
    meta_value values[200];
    bool seen[40] = {0};
    size_t n = test_below(200), want = 0;
    for (size_t i = 0; i < n; i++) {
      size_t k = test_below(40);
      values[i] = test_below(2) ? v_int((int64_t)k) : v_double((double)k);
      want += !seen[k];
      seen[k] = true;
    }
    OK(meta_values_sort(values, &n, &err));
    CHECK(n == want);
    for (size_t i = 1; i < n; i++) CHECK(meta_value_cmp(&values[i - 1], &values[i]) < 0);
  }
}

TEST(meta_sorting_keeps_the_first_of_equals) {
  meta_value values[] = {v_int(3), v_double(1), v_int(1), v_double(3)};
  size_t n = 4;
  OK(meta_values_sort(values, &n, &err));
  CHECK(n == 2 && values[0].type == META_DOUBLE && values[1].type == META_INT);
}

TEST(meta_values_are_json_scalars) {
  json_doc json = {0};
  strbuf buf = {0};
  OK(json_parse(&json, STR_LIT("[1, 1.0, \"a\\\"b\", true, null, []]"), NULL, &err));
  for (uint32_t e = 1; e < json.count; e = json.nodes[e].next) {
    meta_value value;
    if (meta_value_of(&json, e, &value)) meta_value_put(&buf, &value);
    strbuf_addch(&buf, ';');
  }
  CHECKF(str_eq((lode_str){buf.data, buf.len}, STR_LIT("1;1.0;\"a\\\"b\";true;;;")), "%.*s", (int)buf.len, buf.data);
  strbuf_release(&buf);
  json_release(&json);
}

/* ---- Checks ---- */

static lode_status check(const char *text, bool allow_null) {
  json_doc json = {0};
  lode_status st = meta_check(&json, str_of(text), allow_null, &err);
  json_release(&json);
  return st;
}

TEST(meta_check_accepts_what_metadata_may_be) {
  OK(check("{}", false));
  OK(check("{\"s\": \"x\", \"i\": 9007199254740993, \"d\": 0.5, \"b\": true}", false));
  OK(check("{\"a\": [], \"n\": [1, 2.5], \"s\": [\"x\", \"y\"], \"b\": [true, false]}", false));
  OK(check("{\"gone\": null}", true));
}

TEST(meta_check_refuses_the_rest_and_names_it) {
  FAILS(LODE_REFUSED, check("[1]", false));
  FAILS(LODE_REFUSED, check("{\"k\": 1", false));
  FAILS(LODE_REFUSED, check("", false));
  FAILS(LODE_REFUSED, check("{\"k\": null}", false));
  CHECK(strstr(err.text, "\"k\"") && strstr(err.text, "null"));
  FAILS(LODE_REFUSED, check("{\"k\": {\"a\": 1}}", true));
  CHECK(strstr(err.text, "\"k\"") && strstr(err.text, "object"));
  FAILS(LODE_REFUSED, check("{\"k\": [1, \"a\"]}", false));
  CHECK(strstr(err.text, "mixed"));
  FAILS(LODE_REFUSED, check("{\"k\": [1, true]}", false));
  FAILS(LODE_REFUSED, check("{\"k\": [[1]]}", false));
  FAILS(LODE_REFUSED, check("{\"k\": [null]}", true));
  FAILS(LODE_REFUSED, check("{\"twice\": 1, \"b\": 2, \"twice\": 3}", false));
  CHECK(strstr(err.text, "\"twice\""));
}

/* {"k0":1,"k1":1,...} with key `again` once more at the end, if it is one of them. */
static void put_keys(strbuf *buf, int n, int again) {
  for (int i = 0; i < n; i++) strbuf_addf(buf, "%s\"k%d\":%d", i ? "," : "{", i, i);
  if (again >= 0) strbuf_addf(buf, ",\"k%d\":0", again);
  strbuf_addch(buf, '}');
  CHECK(!buf->failed);
}

TEST(meta_check_finds_duplicates_among_many_keys) {
  json_doc json = {0};
  for (int n = 1; n < 70000; n = n < 40 ? n + 1 : n * 3) {
    strbuf buf = {0};
    put_keys(&buf, n, -1);
    OK(meta_check(&json, (lode_str){buf.data, buf.len}, false, &err));
    buf.len = 0;
    put_keys(&buf, n, n / 2);
    FAILS(LODE_REFUSED, meta_check(&json, (lode_str){buf.data, buf.len}, false, &err));
    strbuf_release(&buf);
  }
  json_release(&json);
}

TEST(meta_check_has_a_limit) {
  json_doc json = {0};
  size_t len = LODE_MAX_METADATA_BYTES;
  char *text = malloc(len + 1);
  CHECK(text);
  memset(text, ' ', len + 1);
  text[0] = '{', text[1] = '}';
  OK(meta_check(&json, (lode_str){text, len}, false, &err));
  FAILS(LODE_REFUSED, meta_check(&json, (lode_str){text, len + 1}, false, &err));
  memset(text, '[', len);
  FAILS(LODE_REFUSED, meta_check(&json, (lode_str){text, len}, false, &err));
  free(text);
  json_release(&json);
}

/* ---- Values of a record ---- */

static lode_status note(void *ctx, lode_str key, const meta_value *value, lode_error *e) {
  strbuf *buf = ctx;
  if (value->type == META_INT && value->i == 666) return err_set(e, LODE_CANCELLED, "enough");
  strbuf_add(buf, key.data, key.len);
  strbuf_addch(buf, '=');
  meta_value_put(buf, value);
  strbuf_addch(buf, ' ');
  return LODE_OK;
}

static lode_status values_of(const char *text, strbuf *buf) {
  json_doc json = {0};
  buf->len = 0;
  OK(json_parse(&json, str_of(text), NULL, &err));
  lode_status st = meta_each_value(&json, note, buf, &err);
  strbuf_addch(buf, '\0');
  json_release(&json);
  return st;
}

TEST(meta_values_gives_scalars_and_distinct_elements) {
  strbuf buf = {0};
  OK(values_of("{\"a\": 1, \"b\": [2, 2.0, 3, 2], \"c\": [], \"n\": null, \"d\": [\"x\", \"x\"], \"e\": true}", &buf));
  CHECKF(strcmp(buf.data, "a=1 b=2 b=3 d=\"x\" e=true ") == 0, "%s", buf.data);
  FAILS(LODE_CANCELLED, values_of("{\"a\": 1, \"b\": [666], \"c\": 2}", &buf));
  CHECK(strcmp(buf.data, "a=1 ") == 0);
  OK(values_of("{\"b\": [5,4,3,2,1,5,4,3,2,1,5,4,3,2,1,5,4,3,2,1.0]}", &buf));
  CHECKF(strcmp(buf.data, "b=1 b=2 b=3 b=4 b=5 ") == 0, "%s", buf.data);
  strbuf_release(&buf);
}

/* ---- Merging ---- */

static void check_merge(const char *old, const char *change, const char *want) {
  json_doc a = {0}, b = {0};
  strbuf out = {0};
  bool empty;
  if (old) OK(json_parse(&a, str_of(old), NULL, &err));
  OK(json_parse(&b, str_of(change), NULL, &err));
  strbuf_addstr(&out, "before");
  OK(meta_merge(old ? &a : NULL, &b, &out, &empty, &err));
  CHECK(empty == (*want == '\0'));
  strbuf_addch(&out, '\0');
  CHECKF(memcmp(out.data, "before", 6) == 0 && strcmp(out.data + 6, want) == 0, "%s", out.data);
  strbuf_release(&out);
  json_release(&a);
  json_release(&b);
}

TEST(meta_merge_replaces_removes_and_adds) {
  check_merge("{\"a\": 1, \"b\": 2, \"c\": [1]}", "{\"d\": 4, \"b\": \"x\", \"a\": null}",
              "{\"b\":\"x\",\"c\":[1],\"d\":4}");
  check_merge("{\"a\": 1}", "{}", "{\"a\":1}");
  check_merge("{\"a\": 1}", "{\"a\": null, \"z\": null}", "");
  check_merge(NULL, "{\"a\": [1, 2], \"b\": null}", "{\"a\":[1,2]}");
  check_merge(NULL, "{\"b\": null}", "");
  check_merge("{}", "{}", "");
}

TEST(meta_merge_is_fast_and_right_for_many_keys) {
  json_doc a = {0}, b = {0};
  strbuf old = {0}, change = {0}, out = {0}, want = {0};
  bool empty;
  enum { KEYS = 50000 };
  put_keys(&old, KEYS, -1);
  for (int i = 0; i < KEYS; i++) {
    strbuf_addf(&change, i % 2 ? "%s\"k%d\":null" : "%s\"k%d\":true", i ? "," : "{", i);
    if (i % 2 == 0) strbuf_addf(&want, "%s\"k%d\":true", i ? "," : "{", i);
  }
  strbuf_addstr(&change, "}");
  strbuf_addstr(&want, "}");
  OK(json_parse(&a, (lode_str){old.data, old.len}, NULL, &err));
  OK(json_parse(&b, (lode_str){change.data, change.len}, NULL, &err));
  OK(meta_merge(&a, &b, &out, &empty, &err));
  CHECK(!empty && str_eq((lode_str){out.data, out.len}, (lode_str){want.data, want.len}));
  strbuf_release(&old), strbuf_release(&change), strbuf_release(&out), strbuf_release(&want);
  json_release(&a), json_release(&b);
}

TEST(meta_merge_keeps_the_limit) {
  json_doc a = {0}, b = {0};
  strbuf old = {0}, change = {0}, out = {0};
  bool empty;
  for (int i = 0; i < 2; i++) {
    strbuf *buf = i ? &change : &old;
    strbuf_addf(buf, "{\"k%d\":\"", i);
    for (int j = 0; j < 600000; j++) strbuf_addch(buf, 'x');
    strbuf_addstr(buf, "\"}");
  }
  OK(json_parse(&a, (lode_str){old.data, old.len}, NULL, &err));
  OK(json_parse(&b, (lode_str){change.data, change.len}, NULL, &err));
  FAILS(LODE_REFUSED, meta_merge(&a, &b, &out, &empty, &err));
  CHECK(out.len == 0);
  strbuf_release(&old), strbuf_release(&change), strbuf_release(&out);
  json_release(&a), json_release(&b);
}

/* ---- Out of memory ---- */

static int allocations_left;
static bool count_down(void) { return allocations_left-- > 0; }

static lode_status whole_life(lode_str text, lode_str change) {
  lode_status st;
  json_doc a = {0}, b = {0};
  strbuf out = {0}, values = {0};
  bool empty;
  TRY_GOTO(meta_check(&a, text, false, &err));
  TRY_GOTO(meta_check(&b, change, true, &err));
  TRY_GOTO(meta_each_value(&a, note, &values, &err));
  TRY_GOTO(meta_merge(&a, &b, &out, &empty, &err));
done:
  strbuf_release(&out), strbuf_release(&values);
  json_release(&a), json_release(&b);
  return st;
}

TEST(meta_survives_every_failed_allocation) {
  strbuf text = {0};
  put_keys(&text, 40, -1);
  text.len--;
  strbuf_addstr(&text, ",\"list\":[9,8,7,6,5,4,3,2,1,9,8,7,6,5,4,3,2,1,0]}");
  lode_str all = {text.data, text.len};
  lode_status st = LODE_NOMEM;
  int n = 0;
  for (; st != LODE_OK && n < 10000; n++) {
    allocations_left = n;
    mem_alloc_hook = count_down;
    st = whole_life(all, STR_LIT("{\"k3\":null,\"new\":1}"));
    mem_alloc_hook = NULL;
    CHECK(st == LODE_OK || st == LODE_NOMEM);
  }
  CHECK(st == LODE_OK && n > 10);
  strbuf_release(&text);
}
