/* SPDX-License-Identifier: Apache-2.0 */
/* test_filter_random.c - random filters against a naive recursive evaluator of the same language. */
#include "support/filter_kit.h"

#include <regex.h>

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
  bool not ;
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

static void put_value(strbuf *b, const value *v) {
  if (v->kind == 'i') strbuf_addf(b, "%lld", (long long)v->i);
  if (v->kind == 'd') strbuf_addf(b, "%.1f", v->d);
  if (v->kind == 's') strbuf_addf(b, "\"%s\"", v->s);
  if (v->kind == 'b') strbuf_addstr(b, v->i ? "true" : "false");
}

static void put_object(strbuf *b, const object *o);

static void put_condition(strbuf *b, const condition *c) {
  bool list = c->op == IN || c->op == NIN;
  strbuf_addf(b, "\"%s\":%s", op_names[c->op], list ? "[" : "");
  for (size_t v = 0; v < c->n; v++) {
    if (v) strbuf_addch(b, ',');
    put_value(b, &c->v[v]);
  }
  if (list) strbuf_addch(b, ']');
}

static void put_pair(strbuf *b, const pair *p) {
  switch (p->kind) {
    case P_KEY:
      strbuf_addf(b, "\"key%d\":", p->key);
      if (p->n == 1 && p->c[0].op == EQ) {
        put_value(b, &p->c[0].v[0]);
        break;
      }
      for (size_t i = 0; i < p->n; i++) {
        strbuf_addch(b, i ? ',' : '{');
        put_condition(b, &p->c[i]);
      }
      strbuf_addch(b, '}');
      break;
    case P_AND:
    case P_OR:
      strbuf_addstr(b, p->kind == P_AND ? "\"$and\":[" : "\"$or\":[");
      for (size_t i = 0; i < p->n; i++) {
        if (i) strbuf_addch(b, ',');
        put_object(b, p->o[i]);
      }
      strbuf_addch(b, ']');
      break;
    case P_NOT:
    case P_DOCUMENT:
      strbuf_addstr(b, p->kind == P_NOT ? "\"$not\":" : "\"#document\":");
      put_object(b, p->o[0]);
      break;
    case P_TEXT:
    case P_REGEX:
      strbuf_addf(b, "\"$%s%s\":\"%s\"", p->not ? "not_" : "", p->kind == P_TEXT ? "contains" : "regex", p->text);
      break;
  }
}

static void put_object(strbuf *b, const object *o) {
  strbuf_addch(b, '{');
  for (size_t i = 0; i < o->n; i++) {
    if (i) strbuf_addch(b, ',');
    put_pair(b, &o->p[i]);
  }
  strbuf_addch(b, '}');
}

static void put_record(strbuf *b, const record *r) {
  bool first = true;
  strbuf_addch(b, '{');
  for (int k = 0; k < KEYS; k++) {
    const field *f = &r->f[k];
    if (!f->present) continue;
    strbuf_addf(b, "%s\"key%d\":%s", first ? "" : ",", k, f->array ? "[" : "");
    for (size_t i = 0; i < f->n; i++) {
      if (i) strbuf_addch(b, ',');
      put_value(b, &f->v[i]);
    }
    if (f->array) strbuf_addch(b, ']');
    first = false;
  }
  strbuf_addch(b, '}');
}

/* -2: not comparable. Numbers in a type that holds both exactly. Strings are compared as the escaped text is decoded.
 */
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
    case P_TEXT: return (r->document && strstr(r->document, p->text)) != p->not ;
    case P_REGEX: return (r->document && holds_regex(p->text, r->document)) != p->not ;
  }
  return false;
}

static bool holds_object(const object *o, const record *r) {
  for (size_t i = 0; i < o->n; i++) {
    if (!holds_pair(&o->p[i], r)) return false;
  }
  return true;
}

static value value_from(const meta_value *v, char *text) {
  value out = {.kind = "idsb"[v->type], .i = v->i, .d = v->d, .s = text};
  if (v->type == META_STRING) {
    memcpy(text, v->s.data, v->s.len);
    text[v->s.len] = '\0';
    if (strcmp(text, "a\"b") == 0) out.s = "a\\\"b";
  }
  return out;
}

/* Whether the value is what the probe asks for. */
static bool fulfils_value(const filter_probe *probe, const value *v) {
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

static bool fulfils(const filter_probe *probe, const record *r) {
  int key = probe->key.data[3] - '0';
  const field *f = &r->f[key];
  for (size_t i = 0; f->present && i < f->n; i++) {
    if (fulfils_value(probe, &f->v[i])) return true;
  }
  return false;
}

TEST_SLOW(filter_agrees_with_the_naive_evaluator, 300) {
  strbuf where = {0}, where_document = {0}, metadata = {0};
  int matches = 0, probes_seen = 0, rounds = test_full() ? 100000 : 10000;
  test_srand(test_seed());
  pool = calloc(POOL, sizeof *pool);
  CHECK(pool);
  for (int round = 0; round < rounds; round++) {
    filter_expr *filter;
    filter_eval *judge;
    const filter_probe *probes;
    pool_used = 0;
    where.len = where_document.len = 0;
    object *o = random_object(4, false), *d = test_below(3) ? NULL : random_object(2, true);
    put_object(&where, o);
    if (d) put_object(&where_document, d);
    OK(filter_parse((lode_str){where.data, where.len}, d ? (lode_str){where_document.data, where_document.len} : none,
                    &filter, &err));
    OK(filter_eval_new(filter, &judge, &err));
    size_t n_probes = filter_get_probes(filter, &probes);
    probes_seen += n_probes > 0;
    for (int i = 0; i < 20; i++) {
      record r = random_record();
      metadata.len = 0;
      put_record(&metadata, &r);
      bool got, want = holds_object(o, &r) && (!d || holds_object(d, &r));
      OK(filter_eval_match(judge, (lode_str){metadata.data, metadata.len}, str_of(r.document), &got, &err));
      CHECKF(got == want, "%.*s on %.*s, document %s: %d, not %d", (int)where.len, where.data, (int)metadata.len,
             metadata.data, r.document ? r.document : "-", got, want);
      CHECK(want || !filter_is_true(filter));
      matches += want;
      for (size_t p = 0; want && p < n_probes; p++) {
        CHECKF(fulfils(&probes[p], &r), "probe %zu of %.*s misses %.*s", p, (int)where.len, where.data,
               (int)metadata.len, metadata.data);
      }
    }
    filter_eval_free(judge);
    filter_free(filter);
  }
  CHECKF(matches > rounds && matches < rounds * 19 && probes_seen > rounds / 20,
         "dull filters: %d matches, %d with probes", matches, probes_seen);
  free(pool);
  strbuf_release(&where), strbuf_release(&where_document), strbuf_release(&metadata);
}
