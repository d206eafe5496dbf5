/* test_filter.c - filters: each rule of the language by example, then random filters against a naive recursive evaluator
 * of the same language, then inputs that mean harm. */
#include "query/filter.h"
#include "test.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

static lode_error err;
static const lode_str none;

/* ---- Helpers ---- */

static bool judge_texts(const char *where, const char *where_document, const char *metadata, const char *document) {
  lode__filter *filter;
  lode__judge *judge;
  bool match;
  OK(lode__filter_parse(lode__str(where), lode__str(where_document), &filter, &err));
  OK(lode__judge_new(filter, &judge, &err));
  OK(lode__judge_match(judge, lode__str(metadata), lode__str(document), &match, &err));
  lode__judge_free(judge);
  lode__filter_free(filter);
  return match;
}
#define MATCHES(where, metadata) CHECK(judge_texts(where, NULL, metadata, NULL))
#define DIFFERS(where, metadata) CHECK(!judge_texts(where, NULL, metadata, NULL))
#define DOC_MATCHES(where, document) CHECK(judge_texts(NULL, where, NULL, document))
#define DOC_DIFFERS(where, document) CHECK(!judge_texts(NULL, where, NULL, document))

static lode_status parse_only(lode_str where, lode_str where_document) {
  lode__filter *filter = NULL;
  lode_status st = lode__filter_parse(where, where_document, &filter, &err);
  CHECK((st == LODE_OK) == (filter != NULL));
  lode__filter_free(filter);
  return st;
}

/* The filter is refused, and the message has the word in it. */
static void check_refused(int line, const char *where, bool document, const char *word) {
  lode_status st = document ? parse_only(none, lode__str(where)) : parse_only(lode__str(where), none);
  if (st != LODE_INVALID) test_failed(__FILE__, line, "%s: %s", where, lode_status_name(st));
  if (!strstr(err.text, word)) test_failed(__FILE__, line, "%s: \"%s\" lacks \"%s\"", where, err.text, word);
}
#define REFUSED(where, word) check_refused(__LINE__, where, false, word)
#define DOC_REFUSED(where, word) check_refused(__LINE__, where, true, word)

/* ---- The language, by example ---- */

TEST(filter_equality) {
  MATCHES("{\"a\": 1}", "{\"a\": 1}");
  MATCHES("{\"a\": {\"$eq\": 1}}", "{\"a\": 1.0}");
  DIFFERS("{\"a\": 1}", "{\"a\": true}");
  DIFFERS("{\"a\": 1}", "{\"a\": \"1\"}");
  DIFFERS("{\"a\": 1}", "{\"b\": 1}");
  DIFFERS("{\"a\": 1}", NULL);
  DIFFERS("{\"a\": 9007199254740993}", "{\"a\": 9007199254740992.0}");
  MATCHES("{\"a\": {\"$ne\": 1}}", "{\"a\": 2}");
  MATCHES("{\"a\": {\"$ne\": 1}}", "{}");
  MATCHES("{\"a\": {\"$ne\": 1}}", NULL);
  DIFFERS("{\"a\": {\"$ne\": 1}}", "{\"a\": 1}");
  MATCHES("{\"a\": \"\"}", "{\"a\": \"\"}");
  MATCHES("{\"\": 1}", "{\"\": 1}");
}

TEST(filter_arrays_are_not_scalars) {
  DIFFERS("{\"a\": 1}", "{\"a\": [1]}");
  MATCHES("{\"a\": {\"$ne\": 1}}", "{\"a\": [1]}");
  DIFFERS("{\"a\": {\"$gt\": 0}}", "{\"a\": [1]}");
  DIFFERS("{\"a\": {\"$in\": [1]}}", "{\"a\": [1]}");
  MATCHES("{\"a\": {\"$contains\": 1}}", "{\"a\": [3, 1.0]}");
  DIFFERS("{\"a\": {\"$contains\": 1}}", "{\"a\": 1}");
  DIFFERS("{\"a\": {\"$contains\": 1}}", "{\"a\": []}");
  MATCHES("{\"a\": {\"$not_contains\": 1}}", "{\"a\": 1}");
  MATCHES("{\"a\": {\"$not_contains\": 1}}", "{\"a\": []}");
  DIFFERS("{\"a\": {\"$not_contains\": \"x\"}}", "{\"a\": [\"y\", \"x\"]}");
}

TEST(filter_order) {
  MATCHES("{\"a\": {\"$gt\": 1}}", "{\"a\": 1.5}");
  DIFFERS("{\"a\": {\"$gt\": 1}}", "{\"a\": 1.0}");
  MATCHES("{\"a\": {\"$gte\": 1.0}}", "{\"a\": 1}");
  MATCHES("{\"a\": {\"$lt\": \"b\"}}", "{\"a\": \"a\"}");
  MATCHES("{\"a\": {\"$lte\": \"b\"}}", "{\"a\": \"b\"}");
  DIFFERS("{\"a\": {\"$lt\": \"b\"}}", "{\"a\": 1}");
  DIFFERS("{\"a\": {\"$gt\": 0}}", "{\"a\": \"x\"}");
  DIFFERS("{\"a\": {\"$gt\": 0}}", "{\"a\": true}");
  DIFFERS("{\"a\": {\"$gte\": 0}}", "{}");
  MATCHES("{\"a\": {\"$gt\": 9007199254740992.0}}", "{\"a\": 9007199254740993}");
  MATCHES("{\"$not\": {\"a\": {\"$gt\": 0}}}", "{}"); /* $not is "does not match", also without the key */
}

TEST(filter_lists) {
  MATCHES("{\"a\": {\"$in\": [1, \"x\", true]}}", "{\"a\": \"x\"}");
  MATCHES("{\"a\": {\"$in\": [1, \"x\", true]}}", "{\"a\": true}");
  MATCHES("{\"a\": {\"$in\": [3, 2, 1, 2.0]}}", "{\"a\": 2}");
  DIFFERS("{\"a\": {\"$in\": [1, \"x\", true]}}", "{\"a\": false}");
  DIFFERS("{\"a\": {\"$in\": [1]}}", "{}");
  MATCHES("{\"a\": {\"$nin\": [1]}}", "{}");
  MATCHES("{\"a\": {\"$nin\": [1, 2]}}", "{\"a\": 3}");
  DIFFERS("{\"a\": {\"$nin\": [1, 2]}}", "{\"a\": 2}");
}

TEST(filter_logic) {
  MATCHES("{}", NULL);
  MATCHES("{\"a\": 1, \"b\": {\"$gt\": 1, \"$lt\": 3}}", "{\"a\": 1, \"b\": 2}");
  DIFFERS("{\"a\": 1, \"b\": {\"$gt\": 1, \"$lt\": 3}}", "{\"a\": 1, \"b\": 3}");
  MATCHES("{\"$or\": [{\"a\": 1}, {\"b\": 1}]}", "{\"b\": 1}");
  DIFFERS("{\"$and\": [{\"a\": 1}, {\"b\": 1}]}", "{\"b\": 1}");
  DIFFERS("{\"$not\": {}}", "{}");
  MATCHES("{\"$not\": {\"$not\": {}}}", "{}");
  MATCHES("{\"$not\": {\"a\": 1, \"b\": 1}}", "{\"a\": 1, \"b\": 2}");
  MATCHES("{\"$or\": [{\"a\": 1}, {}]}", "{}");
  DIFFERS("{\"a\": 1, \"$or\": [{\"b\": 1}]}", "{\"a\": 1}");
  MATCHES("{\"a\": 1, \"a\": {\"$gt\": 0}}", "{\"a\": 1}");
}

TEST(filter_documents) {
  DOC_MATCHES("{\"$contains\": \"lo w\"}", "hello world");
  DOC_DIFFERS("{\"$contains\": \"LO\"}", "hello world");
  DOC_DIFFERS("{\"$contains\": \"\"}", NULL);
  DOC_MATCHES("{\"$contains\": \"\"}", "");
  DOC_MATCHES("{\"$not_contains\": \"x\"}", NULL);
  DOC_MATCHES("{\"$regex\": \"^h.*d$\"}", "hello world");
  DOC_MATCHES("{\"$regex\": \"(?i)WORLD\"}", "hello world");
  DOC_MATCHES("{\"$not_regex\": \"x\"}", NULL);
  DOC_DIFFERS("{\"$not_regex\": \"o+\"}", "foo");
  DOC_MATCHES("{\"$and\": [{\"$contains\": \"a\"}, {\"$not\": {\"$contains\": \"b\"}}]}", "xay");
  DOC_DIFFERS("{\"$contains\": \"a\", \"$not_contains\": \"b\"}", "ab");
  DOC_MATCHES("{}", NULL);
  CHECK(judge_texts("{\"a\": 1, \"#document\": {\"$contains\": \"x\"}}", NULL, "{\"a\": 1}", "xyz"));
  CHECK(!judge_texts("{\"a\": 1}", "{\"$contains\": \"q\"}", "{\"a\": 1}", "xyz"));
  CHECK(judge_texts("{\"$not\": {\"#document\": {\"$contains\": \"x\"}}}", NULL, NULL, NULL));
}

TEST(filter_regular_expressions_know_unicode) {
  DOC_MATCHES("{\"$regex\": \"^\\\\w+$\"}", "stra\xC3\x9F" "e");
  DOC_MATCHES("{\"$regex\": \"^.{3}$\"}", "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E");
  DOC_MATCHES("{\"$regex\": \"(?i)\\u00c4\"}", "\xC3\xA4");
  DOC_MATCHES("{\"$regex\": \"\"}", "");
}

TEST(filter_tells_what_it_needs) {
  const struct { const char *where, *document; bool is_true, metadata, text; } cases[] = {
      {NULL, NULL, true, false, false},
      {"{}", "{}", true, false, false},
      {"{\"$and\": [{}, {\"$or\": [{}]}, {\"$not\": {\"$not\": {}}}]}", NULL, true, false, false},
      {"{\"$not\": {}}", NULL, false, false, false},
      {"{\"a\": 1}", NULL, false, true, false},
      {NULL, "{\"$contains\": \"a\"}", false, false, true},
      {"{\"a\": 1, \"#document\": {\"$regex\": \"a\"}}", NULL, false, true, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    lode__filter *f;
    OK(lode__filter_parse(lode__str(cases[i].where), lode__str(cases[i].document), &f, &err));
    CHECKF(lode__filter_is_true(f) == cases[i].is_true, "case %zu", i);
    CHECKF(lode__filter_needs_metadata(f) == cases[i].metadata, "case %zu", i);
    CHECKF(lode__filter_needs_document(f) == cases[i].text, "case %zu", i);
    lode__filter_free(f);
  }
}

TEST(filter_mistakes_are_named) {
  REFUSED("", "JSON");
  REFUSED("{\"a\": 1", "JSON");
  REFUSED("[]", "object");
  REFUSED("{\"a\": {\"$like\": 1}}", "$like");
  REFUSED("{\"size\": {\"$like\": 1}}", "size");
  REFUSED("{\"$eq\": 1}", "$eq");
  REFUSED("{\"$nor\": [{}]}", "$nor");
  REFUSED("{\"a\": {}}", "\"a\"");
  REFUSED("{\"a\": null}", "null");
  REFUSED("{\"a\": [1]}", "array");
  REFUSED("{\"a\": {\"$eq\": {}}}", "$eq");
  REFUSED("{\"a\": {\"$gt\": true}}", "$gt");
  REFUSED("{\"a\": {\"$lte\": [1]}}", "$lte");
  REFUSED("{\"a\": {\"$in\": []}}", "$in");
  REFUSED("{\"a\": {\"$nin\": []}}", "$nin");
  REFUSED("{\"a\": {\"$in\": 1}}", "$in");
  REFUSED("{\"a\": {\"$in\": [1, null]}}", "$in");
  REFUSED("{\"a\": {\"$contains\": [1]}}", "$contains");
  REFUSED("{\"a\": {\"$regex\": \"x\"}}", "$regex");
  REFUSED("{\"$and\": []}", "$and");
  REFUSED("{\"$or\": {}}", "$or");
  REFUSED("{\"$or\": [1]}", "$or");
  REFUSED("{\"$not\": []}", "$not");
  REFUSED("{\"#document\": \"x\"}", "#document");
  REFUSED("{\"#document\": {\"a\": 1}}", "\"a\"");
  DOC_REFUSED("{\"a\": 1}", "\"a\"");
  DOC_REFUSED("{\"$eq\": \"x\"}", "$eq");
  DOC_REFUSED("{\"$contains\": 1}", "$contains");
  DOC_REFUSED("{\"#document\": {}}", "#document");
  DOC_REFUSED("{\"$regex\": \"(unclosed\"}", "(unclosed");
  DOC_REFUSED("{\"$regex\": \"a(*SKIP)b\"}", "(*SKIP)");
  DOC_REFUSED("{\"$regex\": \"\\\\Ga\"}", "\\\\G");
  DOC_REFUSED("{\"$regex\": \"\\\\C\"}", "\\\\C");
}

TEST(filter_meets_damaged_records) {
  lode__filter *f;
  lode__judge *j;
  bool match = true;
  OK(lode__filter_parse(LODE__LIT("{\"a\": 1}"), LODE__LIT("{\"$regex\": \"x\"}"), &f, &err));
  OK(lode__judge_new(f, &j, &err));
  FAILS(LODE_CORRUPT, lode__judge_match(j, LODE__LIT("{\"a\""), none, &match, &err));
  CHECK(!match);
  FAILS(LODE_CORRUPT, lode__judge_match(j, LODE__LIT("[1]"), none, &match, &err));
  FAILS(LODE_CORRUPT, lode__judge_match(j, LODE__LIT("{\"a\": 1}"), LODE__LIT("x\xFF"), &match, &err));
  OK(lode__judge_match(j, LODE__LIT("{\"a\": 1}"), LODE__LIT("x"), &match, &err));
  CHECK(match);
  OK(lode__judge_match(j, LODE__LIT("{\"b\": 1}"), LODE__LIT("x"), &match, &err));
  CHECK(!match); /* nothing is left of the record before */
  lode__judge_free(j);
  lode__filter_free(f);
}

/* ---- Probes ---- */

static lode__filter *probes_of(const char *where, size_t n, const lode__probe **probes) {
  lode__filter *f;
  OK(lode__filter_parse(lode__str(where), none, &f, &err));
  size_t got = lode__filter_probes(f, probes);
  CHECKF(got == n, "%s: %zu probes, not %zu", where, got, n);
  return f;
}

TEST(filter_probes_are_equalities) {
  const lode__probe *p;
  const char *texts[] = {
      "{\"k\": {\"$in\": [2, 1, 2.0]}}",
      "{\"$or\": [{\"k\": 1}, {\"k\": 2}]}",
      "{\"$or\": [{\"k\": {\"$contains\": 2}}, {\"k\": 1}, {\"k\": {\"$in\": [2, 1]}}]}",
      "{\"$and\": [{\"$or\": [{\"$and\": [{\"k\": 1}]}, {\"$or\": [{\"k\": 2}]}]}, {\"x\": {\"$ne\": 1}}]}",
      "{\"$not\": {\"k\": {\"$nin\": [1, 2]}}}",
      "{\"$not\": {\"$and\": [{\"k\": {\"$ne\": 1}}, {\"k\": {\"$ne\": 2}}]}}",
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    lode__filter *f = probes_of(texts[i], 1, &p);
    CHECK(lode__str_eq(p->key, LODE__LIT("k")) && p->n_values == 2);
    CHECK(p->values[0].i == 1 && p->values[1].i == 2);
    lode__filter_free(f);
  }
}

TEST(filter_probes_narrow_ranges) {
  const lode__probe *p;
  lode__filter *f = probes_of("{\"k\": {\"$gt\": 1, \"$lte\": 9.5, \"$gte\": 0, \"$lt\": 20}, "
                              "\"$and\": [{\"k\": {\"$gte\": 1}}]}", 1, &p);
  CHECK(p->n_values == 0 && p->has_low && p->has_high);
  CHECK(p->low.i == 1 && p->low_open && p->high.d == 9.5 && !p->high_open);
  lode__filter_free(f);
  f = probes_of("{\"k\": {\"$gt\": \"a\"}, \"j\": {\"$lt\": 3}}", 2, &p);
  for (int i = 0; i < 2; i++) {
    bool k = p[i].key.data[0] == 'k';
    CHECK(p[i].has_low == k && p[i].has_high == !k);
  }
  lode__filter_free(f);
  lode__filter_free(probes_of("{\"k\": {\"$gt\": \"a\", \"$lt\": 3}}", 1, &p)); /* nothing matches: either will do */
}

TEST(filter_probes_are_none_where_a_match_may_lack_the_value) {
  const lode__probe *p;
  const char *texts[] = {
      "{}",
      "{\"k\": {\"$ne\": 1}}",
      "{\"k\": {\"$nin\": [1]}}",
      "{\"k\": {\"$not_contains\": 1}}",
      "{\"$not\": {\"k\": 1}}",
      "{\"$not\": {\"k\": {\"$gt\": 1}}}",
      "{\"$or\": [{\"k\": 1}, {\"j\": 1}]}",
      "{\"$or\": [{\"k\": 1}, {\"k\": {\"$ne\": 2}}]}",
      "{\"$or\": [{\"k\": 1}, {\"k\": {\"$gt\": 2}}]}",
      "{\"$or\": [{\"k\": 1}, {}]}",
      "{\"#document\": {\"$contains\": \"k\"}}",
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) lode__filter_free(probes_of(texts[i], 0, &p));
}

/* ---- Random filters against the naive evaluator ---- */

typedef struct value {
  char kind; /* i, d, s, b */
  int64_t i;
  double d;
  const char *s;
} value;

typedef struct field {
  bool present, array;
  size_t n;
  value v[3];
} field;

enum { KEYS = 3 };
typedef struct record {
  field f[KEYS];
  const char *document;
} record;

typedef enum op { EQ, NE, GT, GTE, LT, LTE, IN, NIN, HAS, HAS_NOT } op;
static const char *const op_names[] = {"$eq",  "$ne", "$gt",  "$gte",      "$lt",
                                       "$lte", "$in", "$nin", "$contains", "$not_contains"};

typedef struct condition {
  op op;
  size_t n;
  value v[3];
} condition;

typedef struct object object;
/* One pair of a filter object. */
typedef struct pair {
  enum { P_KEY, P_AND, P_OR, P_NOT, P_DOCUMENT, P_TEXT, P_REGEX } kind;
  int key;
  size_t n; /* conditions of a key, objects of a list */
  condition c[2];
  object *o[3];
  const char *text;
  bool not;
} pair;
struct object {
  size_t n;
  pair p[3];
};

static object *pool;
static size_t pool_used;
enum { POOL = 20000 };

static value random_value(char kind) {
  static const char *const strings[] = {"", "x", "y", "xy", "\xC3\xA4", "a\\\"b"};
  static const int64_t ints[] = {-1, 0, 1, 2, 9007199254740992, 9007199254740993, INT64_MAX, INT64_MIN};
  static const double doubles[] = {-1, 0.5, 1, 2, 9007199254740992.0, 9223372036854775808.0, -9223372036854775808.0};
  value v = {.kind = kind ? kind : "idsb"[test_below(4)]};
  if (v.kind == 'i') v.i = ints[test_below(8)];
  if (v.kind == 'd') v.d = doubles[test_below(7)];
  if (v.kind == 's') v.s = strings[test_below(6)];
  if (v.kind == 'b') v.i = (int64_t)test_below(2);
  return v;
}

static const char *const documents[] = {NULL, "", "x", "xy", "a xyxy z", "zzz", "\xC3\xA4x"};
static const char *const patterns[] = {"^x", "y$", "x.y", "(xy)+z?", "a|b", "zz*", "^$"};

static record random_record(void) {
  record r = {.document = documents[test_below(7)]};
  for (int k = 0; k < KEYS; k++) {
    field *f = &r.f[k];
    f->present = test_below(4);
    f->array = test_below(3) == 0;
    f->n = f->array ? test_below(4) : 1;
    char kind = "idsb"[test_below(4)];
    for (size_t i = 0; i < f->n; i++) f->v[i] = random_value(kind);
  }
  return r;
}

static object *random_object(int depth, bool document);

static pair random_pair(int depth, bool document) {
  pair p = {.kind = document ? P_TEXT : P_KEY, .key = (int)test_below(KEYS), .n = 1 + test_below(2)};
  uint64_t dice = test_below(10);
  if (depth > 0 && dice < 4) {
    p.kind = dice == 0 ? P_AND : dice < 3 ? P_OR : P_NOT;
    p.n = p.kind == P_NOT ? 1 : 1 + test_below(3);
    for (size_t i = 0; i < p.n; i++) p.o[i] = random_object(depth - 1, document);
  } else if (document || dice == 4) {
    p.kind = document ? (dice < 8 ? P_TEXT : P_REGEX) : P_DOCUMENT;
    p.not = test_below(2);
    p.text = p.kind == P_REGEX ? patterns[test_below(7)] : documents[1 + test_below(6)];
    p.n = 1;
    if (p.kind == P_DOCUMENT) p.o[0] = random_object(depth > 0 ? depth - 1 : 0, true);
  } else {
    for (size_t i = 0; i < p.n; i++) {
      condition *c = &p.c[i];
      c->op = (op)test_below(10);
      c->n = c->op == IN || c->op == NIN ? 1 + test_below(3) : 1;
      for (size_t v = 0; v < c->n; v++) c->v[v] = random_value(c->op >= GT && c->op <= LTE ? "ids"[test_below(3)] : 0);
    }
  }
  return p;
}

static object *random_object(int depth, bool document) {
  CHECK(pool_used < POOL);
  object *o = &pool[pool_used++];
  o->n = test_below(8) == 0 ? 0 : test_below(5) == 0 ? 2 + test_below(2) : 1;
  for (size_t i = 0; i < o->n; i++) o->p[i] = random_pair(depth, document);
  return o;
}

static void put_value(lode__buf *b, const value *v) {
  if (v->kind == 'i') lode__buf_addf(b, "%lld", (long long)v->i);
  if (v->kind == 'd') lode__buf_addf(b, "%.1f", v->d);
  if (v->kind == 's') lode__buf_addf(b, "\"%s\"", v->s);
  if (v->kind == 'b') lode__buf_adds(b, v->i ? "true" : "false");
}

static void put_object(lode__buf *b, const object *o);

static void put_condition(lode__buf *b, const condition *c) {
  bool list = c->op == IN || c->op == NIN;
  lode__buf_addf(b, "\"%s\":%s", op_names[c->op], list ? "[" : "");
  for (size_t v = 0; v < c->n; v++) {
    if (v) lode__buf_addc(b, ',');
    put_value(b, &c->v[v]);
  }
  if (list) lode__buf_addc(b, ']');
}

static void put_pair(lode__buf *b, const pair *p) {
  switch (p->kind) {
    case P_KEY:
      lode__buf_addf(b, "\"key%d\":", p->key);
      if (p->n == 1 && p->c[0].op == EQ) {
        put_value(b, &p->c[0].v[0]);
        break;
      }
      for (size_t i = 0; i < p->n; i++) {
        lode__buf_addc(b, i ? ',' : '{');
        put_condition(b, &p->c[i]);
      }
      lode__buf_addc(b, '}');
      break;
    case P_AND:
    case P_OR:
      lode__buf_adds(b, p->kind == P_AND ? "\"$and\":[" : "\"$or\":[");
      for (size_t i = 0; i < p->n; i++) {
        if (i) lode__buf_addc(b, ',');
        put_object(b, p->o[i]);
      }
      lode__buf_addc(b, ']');
      break;
    case P_NOT:
    case P_DOCUMENT:
      lode__buf_adds(b, p->kind == P_NOT ? "\"$not\":" : "\"#document\":");
      put_object(b, p->o[0]);
      break;
    case P_TEXT:
    case P_REGEX:
      lode__buf_addf(b, "\"$%s%s\":\"%s\"", p->not ? "not_" : "", p->kind == P_TEXT ? "contains" : "regex", p->text);
      break;
  }
}

static void put_object(lode__buf *b, const object *o) {
  lode__buf_addc(b, '{');
  for (size_t i = 0; i < o->n; i++) {
    if (i) lode__buf_addc(b, ',');
    put_pair(b, &o->p[i]);
  }
  lode__buf_addc(b, '}');
}

static void put_record(lode__buf *b, const record *r) {
  bool first = true;
  lode__buf_addc(b, '{');
  for (int k = 0; k < KEYS; k++) {
    const field *f = &r->f[k];
    if (!f->present) continue;
    lode__buf_addf(b, "%s\"key%d\":%s", first ? "" : ",", k, f->array ? "[" : "");
    for (size_t i = 0; i < f->n; i++) {
      if (i) lode__buf_addc(b, ',');
      put_value(b, &f->v[i]);
    }
    if (f->array) lode__buf_addc(b, ']');
    first = false;
  }
  lode__buf_addc(b, '}');
}

/* -2: not comparable. Numbers in a type that holds both exactly. Strings are compared as the escaped text is decoded. */
static int compare(const value *a, const value *b) {
  if (a->kind == 's' && b->kind == 's') {
    int c = strcmp(a->s, b->s); /* the only escapes, of a\"b, do not change the order within the pool */
    return (c > 0) - (c < 0);
  }
  if (a->kind == 'b' && b->kind == 'b') return (a->i > b->i) - (a->i < b->i);
  if (a->kind == 's' || b->kind == 's' || a->kind == 'b' || b->kind == 'b') return -2;
  long double x = a->kind == 'i' ? (long double)a->i : (long double)a->d;
  long double y = b->kind == 'i' ? (long double)b->i : (long double)b->d;
  return (x > y) - (x < y);
}

static bool holds_condition(const condition *c, const field *f) {
  bool equal = false, has = false;
  int order = -2;
  if (f->present && !f->array) {
    order = compare(&f->v[0], &c->v[0]);
    for (size_t i = 0; i < c->n; i++) equal |= compare(&f->v[0], &c->v[i]) == 0;
  }
  if (f->present && f->array) {
    for (size_t i = 0; i < f->n; i++) has |= compare(&f->v[i], &c->v[0]) == 0;
  }
  switch (c->op) {
    case EQ:
    case IN: return equal;
    case NE:
    case NIN: return !equal;
    case GT: return order == 1;
    case GTE: return order == 1 || order == 0;
    case LT: return order == -1;
    case LTE: return order == -1 || order == 0;
    case HAS: return has;
    case HAS_NOT: return !has;
  }
  return false;
}

static bool holds_regex(const char *pattern, const char *document) {
  regex_t re;
  CHECK(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) == 0);
  bool found = regexec(&re, document, 0, NULL, 0) == 0;
  regfree(&re);
  return found;
}

static bool holds_object(const object *o, const record *r);

static bool holds_pair(const pair *p, const record *r) {
  bool all = true, any = false;
  switch (p->kind) {
    case P_KEY:
      for (size_t i = 0; i < p->n; i++) all &= holds_condition(&p->c[i], &r->f[p->key]);
      return all;
    case P_AND:
    case P_OR:
      for (size_t i = 0; i < p->n; i++) {
        bool h = holds_object(p->o[i], r);
        all &= h;
        any |= h;
      }
      return p->kind == P_AND ? all : any;
    case P_NOT: return !holds_object(p->o[0], r);
    case P_DOCUMENT: return holds_object(p->o[0], r);
    case P_TEXT: return (r->document && strstr(r->document, p->text)) != p->not;
    case P_REGEX: return (r->document && holds_regex(p->text, r->document)) != p->not;
  }
  return false;
}

static bool holds_object(const object *o, const record *r) {
  for (size_t i = 0; i < o->n; i++) {
    if (!holds_pair(&o->p[i], r)) return false;
  }
  return true;
}

static value value_from(const lode__value *v, char *text) {
  value out = {.kind = "idsb"[v->type], .i = v->i, .d = v->d, .s = text};
  if (v->type == LODE__VALUE_STRING) {
    memcpy(text, v->s.data, v->s.len);
    text[v->s.len] = '\0';
    if (strcmp(text, "a\"b") == 0) out.s = "a\\\"b";
  }
  return out;
}

/* Whether the value is what the probe asks for. */
static bool fulfils_value(const lode__probe *probe, const value *v) {
  char text[64];
  for (size_t i = 0; i < probe->n_values; i++) {
    value want = value_from(&probe->values[i], text);
    if (compare(v, &want) == 0) return true;
  }
  if (probe->n_values) return false;
  value low = value_from(&probe->low, text);
  int c = probe->has_low ? compare(v, &low) : 1;
  if (c == -2 || c < 0 || (c == 0 && probe->low_open)) return false;
  value high = value_from(&probe->high, text);
  c = probe->has_high ? compare(v, &high) : -1;
  return c != -2 && (c < 0 || (c == 0 && !probe->high_open));
}

static bool fulfils(const lode__probe *probe, const record *r) {
  int key = probe->key.data[3] - '0';
  const field *f = &r->f[key];
  for (size_t i = 0; f->present && i < f->n; i++) {
    if (fulfils_value(probe, &f->v[i])) return true;
  }
  return false;
}

TEST_SLOW(filter_agrees_with_the_naive_evaluator, 300) {
  lode__buf where = {0}, where_document = {0}, metadata = {0};
  int matches = 0, probes_seen = 0, rounds = test_full() ? 100000 : 10000;
  test_srand(test_seed());
  pool = calloc(POOL, sizeof *pool);
  CHECK(pool);
  for (int round = 0; round < rounds; round++) {
    lode__filter *filter;
    lode__judge *judge;
    const lode__probe *probes;
    pool_used = 0;
    where.len = where_document.len = 0;
    object *o = random_object(4, false), *d = test_below(3) ? NULL : random_object(2, true);
    put_object(&where, o);
    if (d) put_object(&where_document, d);
    OK(lode__filter_parse((lode_str){where.data, where.len}, d ? (lode_str){where_document.data, where_document.len} : none,
                          &filter, &err));
    OK(lode__judge_new(filter, &judge, &err));
    size_t n_probes = lode__filter_probes(filter, &probes);
    probes_seen += n_probes > 0;
    for (int i = 0; i < 20; i++) {
      record r = random_record();
      metadata.len = 0;
      put_record(&metadata, &r);
      bool got, want = holds_object(o, &r) && (!d || holds_object(d, &r));
      OK(lode__judge_match(judge, (lode_str){metadata.data, metadata.len}, lode__str(r.document), &got, &err));
      CHECKF(got == want, "%.*s on %.*s, document %s: %d, not %d", (int)where.len, where.data, (int)metadata.len,
             metadata.data, r.document ? r.document : "-", got, want);
      CHECK(want || !lode__filter_is_true(filter));
      matches += want;
      for (size_t p = 0; want && p < n_probes; p++) {
        CHECKF(fulfils(&probes[p], &r), "probe %zu of %.*s misses %.*s", p, (int)where.len, where.data, (int)metadata.len,
               metadata.data);
      }
    }
    lode__judge_free(judge);
    lode__filter_free(filter);
  }
  CHECKF(matches > rounds && matches < rounds * 19 && probes_seen > rounds / 20, "dull filters: %d matches, %d with probes",
         matches, probes_seen);
  free(pool);
  lode__buf_release(&where), lode__buf_release(&where_document), lode__buf_release(&metadata);
}

/* ---- Size ---- */

/* open x n, middle, close x n */
static lode_str nest(lode__buf *b, const char *open, const char *middle, const char *close, int n) {
  b->len = 0;
  for (int i = 0; i < n; i++) lode__buf_adds(b, open);
  lode__buf_adds(b, middle);
  for (int i = 0; i < n; i++) lode__buf_adds(b, close);
  CHECK(!b->failed);
  return (lode_str){b->data, b->len};
}

static bool judge_long(lode_str where, const char *metadata) {
  lode__filter *filter;
  lode__judge *judge;
  bool match;
  OK(lode__filter_parse(where, none, &filter, &err));
  OK(lode__judge_new(filter, &judge, &err));
  OK(lode__judge_match(judge, lode__str(metadata), none, &match, &err));
  lode__judge_free(judge);
  lode__filter_free(filter);
  return match;
}

TEST(filter_nests_as_deep_as_the_limit) {
  lode__buf b = {0};
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
  lode__buf_release(&b);
}

/* {"$or": [<clause with its number>, ...]} */
static lode_str list_of(lode__buf *b, const char *open, const char *format_before, const char *format_after, int n) {
  b->len = 0;
  lode__buf_adds(b, open);
  for (int i = 0; i < n; i++) {
    if (i) lode__buf_addc(b, ',');
    lode__buf_adds(b, format_before);
    lode__buf_addf(b, "%d", (int)((i * 7919u) % (unsigned)n)); /* not in order */
    lode__buf_adds(b, format_after);
  }
  lode__buf_adds(b, "]}");
  CHECK(!b->failed);
  return (lode_str){b->data, b->len};
}

TEST(filter_or_of_many_equalities_is_one_set) {
  lode__buf b = {0};
  lode__filter *f;
  lode__judge *j;
  const lode__probe *p;
  bool match;
  const int n = 31985;
  lode_str text = list_of(&b, "{\"$or\":[", "{\"file_path\":{\"$eq\":\"src/file", ".c\"}}", n);
  OK(lode__filter_parse(text, none, &f, &err));
  CHECK(lode__filter_probes(f, &p) == 1 && p->n_values == (size_t)n);
  for (size_t i = 1; i < p->n_values; i++) CHECK(lode__value_cmp(&p->values[i - 1], &p->values[i]) < 0);
  OK(lode__judge_new(f, &j, &err));
  for (int i = 0; i < n + 1000; i++) { /* a test of each clause on each record would end in the timeout */
    char metadata[100];
    snprintf(metadata, sizeof metadata, "{\"file_path\":\"src/file%d.c\",\"size\":%d}", i, i);
    for (int again = 0; again < 20; again++) OK(lode__judge_match(j, lode__str(metadata), none, &match, &err));
    CHECK(match == (i < n));
  }
  lode__judge_free(j);
  lode__filter_free(f);
  text = list_of(&b, "{\"$and\":[", "{\"n\":{\"$ne\":", "}}", n);
  OK(lode__filter_parse(text, none, &f, &err));
  OK(lode__judge_new(f, &j, &err));
  for (int i = 0; i < 2 * n; i++) {
    char metadata[100];
    snprintf(metadata, sizeof metadata, "{\"n\":%d.0}", i);
    for (int again = 0; again < 10; again++) OK(lode__judge_match(j, lode__str(metadata), none, &match, &err));
    CHECK(match == (i >= n));
  }
  lode__judge_free(j);
  lode__filter_free(f);
  lode__buf_release(&b);
}

TEST(filter_takes_as_many_clauses_as_the_limit) {
  lode__buf b = {0};
  const int most = LODE_MAX_FILTER_CLAUSES;
  CHECK(judge_long(list_of(&b, "{\"$or\":[", "{\"k", "\":1}", 100000), "{\"k99999\":1}"));
  CHECK(!judge_long(list_of(&b, "{\"$or\":[", "{\"k", "\":{\"$gt\":1}}", 100000), "{\"k99999\":1}"));
  CHECK(judge_long(list_of(&b, "{\"$or\":[", "{\"k\":", "}", most), "{\"k\":999999}"));
  CHECK(!judge_long(list_of(&b, "{\"$and\":[", "{\"k", "\":{\"$ne\":1}}", most), "{\"k7\":1}"));
  FAILS(LODE_LIMIT, parse_only(list_of(&b, "{\"$or\":[", "{\"k\":", "}", most + 1), none));
  CHECK(strstr(err.text, "clauses"));
  list_of(&b, "{\"k\":{\"$in\":[", "", "", most + 1);
  lode__buf_addc(&b, '}');
  FAILS(LODE_LIMIT, parse_only((lode_str){b.data, b.len}, none));
  lode__buf_release(&b);
}

TEST(filter_takes_regular_expressions_up_to_a_limit) {
  lode__buf b = {0};
  OK(parse_only(none, list_of(&b, "{\"$or\":[", "{\"$regex\":\"", "\"}", 256)));
  FAILS(LODE_LIMIT, parse_only(none, list_of(&b, "{\"$or\":[", "{\"$regex\":\"", "\"}", 257)));
  b.len = 0;
  lode__buf_adds(&b, "{\"$regex\":\"");
  for (int i = 0; i < (64 << 10) + 1; i++) lode__buf_addc(&b, 'x');
  lode__buf_adds(&b, "\"}");
  FAILS(LODE_LIMIT, parse_only(none, (lode_str){b.data, b.len}));
  FAILS(LODE_INVALID, parse_only(none, nest(&b, "(", "{\"$regex\":\"x", ")", 10)));
  nest(&b, "(", "x", ")", 10000);
  lode__buf quoted = {0};
  lode__buf_addf(&quoted, "{\"$regex\":\"%.*s\"}", (int)b.len, b.data);
  FAILS(LODE_INVALID, parse_only(none, (lode_str){quoted.data, quoted.len}));
  lode__buf_release(&b), lode__buf_release(&quoted);
}

/* ---- Regular expressions that would never end ---- */

static lode_status search(const char *where_document, lode_str document, bool *match) {
  lode__filter *filter;
  lode__judge *judge;
  OK(lode__filter_parse(none, lode__str(where_document), &filter, &err));
  OK(lode__judge_new(filter, &judge, &err));
  lode_status st = lode__judge_match(judge, none, document, match, &err);
  lode__judge_free(judge);
  lode__filter_free(filter);
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
      "{\"$regex\": \"(a+)+$\"}",
      "{\"$regex\": \"^(a+)+$\"}",
      "{\"$regex\": \"(a|aa)+$\"}",
      "{\"$regex\": \"(?:a?){40}a{40}b\"}",
      "{\"$regex\": \"(a*)*(a*)*(a*)*c\"}",
      "{\"$regex\": \"(?s)(.*)(.*)(.*)(.*)(.*)x(?=y)z\"}",
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
  lode__buf b = {0};
  for (int shift = 0; shift < 3; shift++) {
    b.len = 0;
    for (int i = 0; i < shift; i++) lode__buf_addc(&b, 'x');
    for (int i = 0; i < 20000; i++) lode__buf_adds(&b, "\xE6\x97\xA5");
    lode__buf_adds(&b, "\xE6\x9C\xAC");
    OK(search("{\"$regex\": \"\\u65e5\\u672c$\"}", (lode_str){b.data, b.len}, &match));
    CHECK(match);
    OK(search("{\"$regex\": \"(?!\\u65e5|\\u672c|x).\"}", (lode_str){b.data, b.len}, &match));
    CHECK(!match);
  }
  lode__buf_release(&b);
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

static lode_status whole_life(lode_str where, lode_str where_document, lode_str metadata, lode_str document, bool *match) {
  lode__filter *filter = NULL;
  lode__judge *judge = NULL;
  lode_status st = LODE_OK;
  LODE__GOTO(lode__filter_parse(where, where_document, &filter, &err));
  LODE__GOTO(lode__judge_new(filter, &judge, &err));
  LODE__GOTO(lode__judge_match(judge, metadata, document, match, &err));
done:
  lode__judge_free(judge);
  lode__filter_free(filter);
  return st;
}

TEST(filter_survives_every_failed_allocation) {
  lode__buf b = {0};
  list_of(&b, "{\"$or\":[", "{\"$and\":[{\"k", "\":\"esc\\u0061ped\"},{\"z\":{\"$in\":[3,2,1]}}]}", 50);
  b.len -= 2;
  lode__buf_adds(&b, ",{\"s\":3},{\"s\":{\"$contains\":2}},{\"s\":{\"$contains\":1}},{\"s\":1},{\"$not\":{\"a\":5}}],"
                     "\"t\":{\"$gt\":1}}");
  lode_str where = {b.data, b.len}, metadata = LODE__LIT("{\"s\":[1,2,\"\\n\"],\"t\":2}");
  lode_status st = LODE_NOMEM;
  int n = 0;
  for (; st != LODE_OK && n < 100000; n++) {
    bool match = false;
    allocations_left = n;
    lode__alloc_hook = count_down;
    st = whole_life(where, LODE__LIT("{\"$regex\":\"(a|b)+c\",\"$contains\":\"c\"}"), metadata, LODE__LIT("ababc"), &match);
    lode__alloc_hook = NULL;
    CHECKF(st == LODE_OK || st == LODE_NOMEM, "call %d: %s %s", n, lode_status_name(st), err.text);
    CHECK(match == (st == LODE_OK));
  }
  CHECK(st == LODE_OK && n > 50);
  lode__buf_release(&b);
}

TEST(filter_judging_allocates_nothing_after_the_first_records) {
  lode__filter *f;
  lode__judge *j;
  bool match;
  OK(lode__filter_parse(LODE__LIT("{\"a\":{\"$in\":[1,2]},\"b\":\"x\"}"), LODE__LIT("{\"$regex\":\"a+b\"}"), &f, &err));
  OK(lode__judge_new(f, &j, &err));
  OK(lode__judge_match(j, LODE__LIT("{\"a\":1,\"b\":\"\\u0078\"}"), LODE__LIT("aab"), &match, &err));
  allocations_left = 0;
  lode__alloc_hook = count_down;
  for (int i = 0; i < 100; i++) {
    OK(lode__judge_match(j, LODE__LIT("{\"a\":2,\"b\":\"\\u0078\"}"), LODE__LIT("xxaab"), &match, &err));
    CHECK(match);
  }
  lode__alloc_hook = NULL;
  lode__judge_free(j);
  lode__filter_free(f);
}

TEST(filter_survives_damaged_texts) {
  static const char text[] =
      "{\"$or\":[{\"a\":{\"$in\":[1,\"x\"]}},{\"$not\":{\"#document\":{\"$regex\":\"a+\"}}}],\"b\":{\"$gt\":1.5,\"$lt\":9}}";
  char copy[sizeof text];
  test_srand(test_seed());
  for (int round = 0; round < 50000; round++) {
    memcpy(copy, text, sizeof text);
    size_t n = sizeof text - 1;
    for (uint64_t hits = 1 + test_below(3); hits; hits--) {
      size_t at = test_below(n);
      uint64_t how = test_below(3);
      if (how == 0) copy[at] = "{}[]\",:$01"[test_below(10)];
      else if (how == 1) copy[at] = text[test_below(n)];
      else memmove(copy + at, copy + at + 1, --n - at);
    }
    bool match;
    lode_status st = whole_life((lode_str){copy, n}, none, LODE__LIT("{\"a\":1,\"b\":2}"), LODE__LIT("aa"), &match);
    CHECK(st == LODE_OK || st == LODE_INVALID);
  }
}
