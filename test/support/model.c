/* SPDX-License-Identifier: Apache-2.0 */
#include "support/model.h"

#include "base/meta.h"
#include "os/os.h"
#include "base/token.h"
#include "kernel/kernel.h"
#include "support/test.h"

#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define INT(x)                                                                                                         \
  { .type = META_INT, .i = (x) }
#define DOUBLE(x)                                                                                                      \
  { .type = META_DOUBLE, .d = (x) }
#define TEXT(x)                                                                                                        \
  {                                                                                                                    \
    .type = META_STRING, .s = { x, sizeof(x) - 1 }                                                                     \
  }
#define BOOL(x)                                                                                                        \
  { .type = META_BOOL, .i = (x) }
#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static const meta_value values[] = {
    INT(-3),
    INT(-1),
    INT(0),
    INT(1),
    INT(2),
    INT(3),
    INT(7),
    INT(100),
    INT(INT64_MAX),
    INT(INT64_MIN),
    INT(9007199254740992),
    INT(9007199254740993),
    INT(9223372036854774784),
    DOUBLE(-0.0),
    DOUBLE(0.5),
    DOUBLE(1.0),
    DOUBLE(2.0),
    DOUBLE(2.5),
    DOUBLE(-1.5),
    DOUBLE(1e300),
    DOUBLE(5e-324),
    DOUBLE(9007199254740992.0),
    DOUBLE(9223372036854774784.0),
    DOUBLE(0x1p63),
    DOUBLE(-0x1p63),
    TEXT(""),
    TEXT("a"),
    TEXT("b"),
    TEXT("B"),
    TEXT("ab"),
    TEXT("src/main.c"),
    TEXT("it's"),
    TEXT("\"; DROP TABLE record; --"),
    TEXT("nul\0here"),
    TEXT("\xC3\xBCn\xC3\xAF \xE2\x98\x83"),
    TEXT(X64),
    TEXT(X64 "a"),
    TEXT(X64 "b"),
    TEXT(X64 "bb"),
    BOOL(0),
    BOOL(1),
};
enum { N_NUMBERS = 25, N_STRINGS = 14, N_VALUES = COUNT(values) };
_Static_assert(N_NUMBERS + N_STRINGS + 2 == N_VALUES, "numbers, then strings, then booleans");

static const lode_str keys[MODEL_KEYS] = {
    {"n", 1},
    {"x", 1},
    {"path", 4},
    {"tags", 4},
    {"flag", 4},
    {"any key's \"name\"", 16},
    {"\xD0\xBA\xD0\xBB\xD1\x8E\xD1\x87", 8},
    {"", 0},
    {"owner", 5},
};
static const lode_str words[] = {
    {"alpha", 5},
    {"beta", 4},
    {"gamma", 5},
    {"delta", 5},
    {"getUserName", 11},
    {"get_user_name", 13},
    {"src/store/vfs.c", 15},
    {"HTTPServer2", 11},
    {"std::vector.push_back", 21},
    {"na\xC3\xAFve", 6},
    {"\xE6\x90\x9C\xE7\xB4\xA2", 6},
    {"w1", 2},
    {"w22", 3},
    {"x86_64", 6},
    {"TODO", 4},
    {"nul\0byte", 8},
    {"\xF0\x9F\x98\x80", 4},
    {"_", 1},
    {"...", 3},
    {"the", 3},
    {"the", 3},
    {"of", 2},
};
/* mean the same to POSIX and to PCRE2 */
static const char *const patterns[] = {"alpha|beta",        "w[0-9]+", "^alpha",    "[A-Z][a-z]+Name",
                                       "get_(user|group)_", "c$",      "(the )+of", "^$"};

lode_str model_key(int key) { return keys[key]; }
lode_str model_id(const model_record *r) { return (lode_str){r->id, r->id_len}; }

static size_t pick(size_t n) { return (size_t)test_below(n); }

static int no_sync(int fd) {
  (void)fd;
  return 0;
}

void model_no_sync(void) {
  static os_calls table;
  table = os_real;
  table.fsync = table.fdatasync = no_sync;
  os_api = &table;
}

/* ---- Collections ---- */

void model_release(model_collection *c) {
  free(c->r);
  *c = (model_collection){0};
}

static void reserve(model_collection *c, size_t n) {
  if (n <= c->cap) return;
  c->cap = n * 2;
  c->r = realloc(c->r, c->cap * sizeof *c->r);
  CHECK(c->r);
}

void model_copy(model_collection *to, const model_collection *from) {
  reserve(to, from->n);
  if (from->n) memcpy(to->r, from->r, from->n * sizeof *from->r);
  to->n = from->n;
  to->dim = from->dim;
  to->metric = from->metric;
}

size_t model_find(const model_collection *c, lode_str id) {
  for (size_t i = 0; i < c->n; i++)
    if (c->r[i].id_len == id.len && memcmp(c->r[i].id, id.data, id.len) == 0) return i;
  return SIZE_MAX;
}

size_t model_pending(const model_collection *c) {
  size_t n = 0;
  for (size_t i = 0; i < c->n; i++) n += !c->r[i].has_vector;
  return n;
}

void model_remove(model_collection *c, size_t at) {
  memmove(c->r + at, c->r + at + 1, (c->n - at - 1) * sizeof *c->r);
  c->n--;
}

static void put_value(strbuf *buf, int v) { meta_value_put(buf, &values[v]); }

lode_str model_meta_text(const model_record *r, strbuf *buf) {
  size_t start = buf->len;
  if (!r->has_meta) return (lode_str){NULL, 0};
  strbuf_addch(buf, '{');
  for (int i = 0; i < r->meta.n; i++) {
    const model_field *f = &r->meta.f[i];
    if (i) strbuf_addch(buf, ',');
    json_put_string(buf, keys[f->key]);
    strbuf_addch(buf, ':');
    if (f->null) {
      strbuf_addstr(buf, "null");
      continue;
    }
    if (f->array) strbuf_addch(buf, '[');
    for (int e = 0; e < f->n; e++) {
      if (e) strbuf_addch(buf, ',');
      put_value(buf, f->v[e]);
    }
    if (f->array) strbuf_addch(buf, ']');
  }
  strbuf_addch(buf, '}');
  CHECK(!buf->failed);
  return (lode_str){buf->data + start, buf->len - start};
}

/* ---- Random content ---- */

void model_name_record(model_record *r, unsigned number) {
  static const struct {
    const char *before, *behind;
  } forms[] = {
      {"id-", ""},          {"\xD0\x96-", ""}, {"it's \"", "\""},
      {"dir\\", "/file.c"}, {"", ";x"},        {"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk", ""},
      {" ", "\n"},
  };
  size_t form = number % COUNT(forms);
  int len = snprintf(r->id, sizeof r->id, "%s%u%s", forms[form].before, number, forms[form].behind);
  CHECK(len > 0 && (size_t)len < sizeof r->id);
  r->id_len = (size_t)len;
  for (size_t i = 0; i < r->id_len; i++)
    if (r->id[i] == ';') r->id[i] = '\0'; /* any UTF-8 may be an id */
}

size_t model_random_text(char *text, size_t size, unsigned n) {
  static const char *const between[] = {" ", " ", "\n", ", ", ". ", "(", "->"};
  size_t len = 0;
  for (unsigned i = 0; i < n; i++) {
    lode_str w = words[pick(COUNT(words))];
    const char *gap = i ? between[pick(COUNT(between))] : "";
    if (len + strlen(gap) + w.len > size) break;
    memcpy(text + len, gap, strlen(gap));
    len += strlen(gap);
    memcpy(text + len, w.data, w.len);
    len += w.len;
  }
  return len;
}

/* Mostly small whole numbers: distances are exact, and many are equal. */
void model_random_vector(float *v, uint32_t dim) {
  bool whole = pick(3) != 0;
  for (uint32_t i = 0; i < dim; i++) v[i] = whole ? (float)pick(4) - 1 : (float)pick(2001) / 1000 - 1;
}

/* Arrays hold one kind of values. */
static void random_field(model_field *f, int key, bool nulls) {
  static const struct {
    uint8_t from, n;
  } kinds[] = {{0, N_NUMBERS}, {N_NUMBERS, N_STRINGS}, {N_NUMBERS + N_STRINGS, 2}};
  size_t kind = pick(8) ? (size_t)key % 3 : pick(3); /* mostly one kind for a key */
  *f = (model_field){.key = (uint8_t)key, .null = nulls && pick(4) == 0, .array = pick(4) == 0 || key == 3, .n = 1};
  if (f->array) f->n = (uint8_t)pick(MODEL_ELEMENTS + 1);
  for (int i = 0; i < f->n; i++)
    f->v[i] = (uint8_t)(kinds[kind].from + pick(pick(3) ? kinds[kind].n : (kinds[kind].n + 1) / 2));
}

static void random_meta(model_meta *m, const model_taste *taste) {
  m->n = 0;
  for (int k = 0; k < MODEL_OWNER; k++)
    if (pick(3) == 0) random_field(&m->f[m->n++], k, taste->nulls);
  for (int i = m->n - 1; i > 0; i--) { /* keys in any order */
    size_t j = pick((size_t)i + 1);
    model_field swap = m->f[i];
    m->f[i] = m->f[j];
    m->f[j] = swap;
  }
  if (taste->owner >= 0) m->f[m->n++] = (model_field){.key = MODEL_OWNER, .n = 1, .v = {(uint8_t)taste->owner}};
}

void model_random_record(model_record *r, unsigned number, const model_taste *taste) {
  *r = (model_record){0};
  model_name_record(r, number);
  r->has_document = pick(4) != 0;
  if (r->has_document)
    r->document_len = model_random_text(r->document, sizeof r->document, (unsigned)pick(pick(8) ? 12 : 90));
  r->has_meta = taste->owner >= 0 || pick(5) != 0;
  if (r->has_meta) random_meta(&r->meta, taste);
  r->has_vector = pick(4) != 0;
  if (r->has_vector) {
    r->dim = taste->dim;
    model_random_vector(r->vector, r->dim);
  }
}

/* ---- Writes ---- */

static void merge_field(model_meta *m, const model_field *f) {
  int at = 0;
  while (at < m->n && m->f[at].key != f->key) at++;
  if (!f->null) {
    m->f[at] = *f;
    if (at == m->n) m->n++;
  } else if (at < m->n) {
    memmove(&m->f[at], &m->f[at + 1], (size_t)(m->n - at - 1) * sizeof *m->f);
    m->n--;
  }
}

static void merge_meta(model_record *r, const model_record *change) {
  if (!r->has_meta) r->meta.n = 0;
  for (int i = 0; i < change->meta.n; i++) merge_field(&r->meta, &change->meta.f[i]);
  r->has_meta = r->meta.n > 0;
}

static void apply(model_record *r, const model_record *change) {
  if (change->has_document) {
    r->has_document = true;
    memcpy(r->document, change->document, sizeof r->document);
    r->document_len = change->document_len;
  }
  if (change->has_meta) merge_meta(r, change);
  if (change->has_vector) {
    r->has_vector = true;
    memcpy(r->vector, change->vector, sizeof r->vector);
    r->dim = change->dim;
  }
}

static lode_status check_batch(const model_collection *c, model_kind kind, const model_record *r, size_t n) {
  uint32_t dim = c->dim;
  bool mismatch = false, exists = false;
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < i; j++)
      if (r[j].id_len == r[i].id_len && memcmp(r[j].id, r[i].id, r[i].id_len) == 0) return LODE_REFUSED;
    for (int k = 0; r[i].has_meta && k < r[i].meta.n; k++)
      if (r[i].meta.f[k].null && (kind == MODEL_ADD || kind == MODEL_ADD_KEEP)) return LODE_REFUSED;
    for (uint32_t d = 0; r[i].has_vector && d < r[i].dim; d++)
      if (!isfinite(r[i].vector[d])) return LODE_REFUSED;
    if (r[i].has_vector && dim == 0) dim = r[i].dim;
    mismatch = mismatch || (r[i].has_vector && r[i].dim != dim);
    exists = exists || (kind == MODEL_ADD && model_find(c, model_id(&r[i])) != SIZE_MAX);
  }
  return mismatch ? LODE_MISMATCH : exists ? LODE_EXISTS : LODE_OK;
}

lode_status model_write(model_collection *c, model_kind kind, const model_record *r, size_t n,
                        lode_write_result *result, bool *missing) {
  lode_status st = check_batch(c, kind, r, n);
  *result = (lode_write_result){0};
  for (size_t i = 0; i < n; i++) {
    size_t at = model_find(c, model_id(&r[i]));
    missing[i] = st == LODE_OK && at == SIZE_MAX;
    if (st != LODE_OK) continue;
    if (at == SIZE_MAX ? kind == MODEL_UPDATE : kind == MODEL_ADD_KEEP) {
      result->skipped++;
      continue;
    }
    if (at == SIZE_MAX) {
      reserve(c, c->n + 1);
      at = c->n++;
      c->r[at] = (model_record){.id_len = r[i].id_len};
      memcpy(c->r[at].id, r[i].id, sizeof r[i].id);
    }
    apply(&c->r[at], &r[i]);
    if (r[i].has_vector) c->dim = r[i].dim;
    result->written++;
  }
  return st;
}

/* ---- Values ---- */

static int kind_of(int v) {
  return v < N_NUMBERS ? 1 : v < N_NUMBERS + N_STRINGS ? 2 : 0;
} /* boolean, number, string */

/* long double holds every int64 and every double as it is, on each CPU that we know. */
static long double number(int v) {
  return values[v].type == META_INT ? (long double)values[v].i : (long double)values[v].d;
}

static int compare(int a, int b) {
  if (kind_of(a) != kind_of(b)) return kind_of(a) - kind_of(b);
  if (kind_of(a) == 0) return (int)(values[a].i - values[b].i);
  if (kind_of(a) == 1) return (number(a) > number(b)) - (number(a) < number(b));
  size_t la = values[a].s.len, lb = values[b].s.len, l = la < lb ? la : lb;
  int c = l ? memcmp(values[a].s.data, values[b].s.data, l) : 0;
  return c ? c : (la > lb) - (la < lb);
}

/* ---- Filters ---- */

static int16_t new_node(model_filter *f, model_op op) {
  CHECK((size_t)f->n < COUNT(f->node));
  f->node[f->n] = (model_node){.op = op, .kid = {-1, -1, -1}};
  return f->n++;
}

static int16_t random_leaf(model_filter *f) {
  static const model_op ops[] = {MODEL_EQ, MODEL_EQ,  MODEL_NE,  MODEL_GT,      MODEL_GTE,     MODEL_LT,  MODEL_LTE,
                                 MODEL_IN, MODEL_NIN, MODEL_HAS, MODEL_HAS_NOT, MODEL_BETWEEN, MODEL_TRUE};
  int16_t at = new_node(f, ops[pick(COUNT(ops))]);
  model_node *node = &f->node[at];
  bool ordered = (node->op >= MODEL_GT && node->op <= MODEL_LTE) || node->op == MODEL_BETWEEN;
  node->key = (uint8_t)pick(MODEL_OWNER);
  node->flat = pick(2);
  node->n = node->op == MODEL_BETWEEN
                ? 2
                : (uint8_t)(node->op == MODEL_IN || node->op == MODEL_NIN ? 1 + pick(COUNT(node->v)) : 1);
  for (int i = 0; i < node->n; i++) {
    static const uint8_t from[] = {0, N_NUMBERS, N_NUMBERS + N_STRINGS}, n[] = {N_NUMBERS, N_STRINGS, 2};
    size_t kind = pick(6) ? node->key % 3u : pick(3);
    if (ordered && kind == 2) kind = pick(2);
    node->v[i] = (uint8_t)(from[kind] + pick(n[kind]));
  }
  return at;
}

static int16_t random_document_leaf(model_filter *f) {
  static const model_op ops[] = {MODEL_TEXT, MODEL_TEXT, MODEL_NO_TEXT, MODEL_REGEX, MODEL_NO_REGEX};
  int16_t at = new_node(f, ops[pick(COUNT(ops))]);
  model_node *node = &f->node[at];
  node->v[0] = (uint8_t)pick(node->op >= MODEL_REGEX ? COUNT(patterns) : COUNT(words));
  return at;
}

static int16_t random_tree(model_filter *f, bool document, unsigned depth) {
  size_t what = depth == 0 ? 9 : pick(10);
  if (what == 0 && !document) {
    int16_t at = new_node(f, MODEL_DOCUMENT), kid = random_tree(f, true, depth - 1);
    f->node[at].kid[0] = kid;
    return at;
  }
  if (what > 5 || f->n > 40) return document ? random_document_leaf(f) : random_leaf(f);
  int16_t at = new_node(f, what == 1 ? MODEL_NOT : what < 4 ? MODEL_AND : MODEL_OR);
  f->node[at].flat = pick(2);
  for (size_t i = 0, n = what == 1 ? 1 : 1 + pick(3); i < n; i++) {
    int16_t kid = random_tree(f, document, depth - 1);
    f->node[at].kid[i] = kid;
  }
  return at;
}

static void put_node(strbuf *buf, const model_filter *f, int16_t at, bool braces);

static void put_list(strbuf *buf, const model_filter *f, const model_node *node) {
  strbuf_addstr(buf, node->op == MODEL_AND ? "\"$and\":[" : "\"$or\":[");
  for (int i = 0; i < 3 && node->kid[i] >= 0; i++) {
    if (i) strbuf_addch(buf, ',');
    put_node(buf, f, node->kid[i], true);
  }
  strbuf_addch(buf, ']');
}

/* "key":{"$op":operand} */
static void put_leaf(strbuf *buf, const model_node *node) {
  static const char *const names[] = {[MODEL_EQ] = "$eq",        [MODEL_NE] = "$ne",
                                      [MODEL_GT] = "$gt",        [MODEL_GTE] = "$gte",
                                      [MODEL_LT] = "$lt",        [MODEL_LTE] = "$lte",
                                      [MODEL_IN] = "$in",        [MODEL_NIN] = "$nin",
                                      [MODEL_HAS] = "$contains", [MODEL_HAS_NOT] = "$not_contains"};
  bool list = node->op == MODEL_IN || node->op == MODEL_NIN;
  json_put_string(buf, keys[node->key]);
  strbuf_addch(buf, ':');
  if (node->op == MODEL_EQ && node->flat) {
    put_value(buf, node->v[0]);
    return;
  }
  if (node->op == MODEL_BETWEEN) {
    strbuf_addstr(buf, "{\"$gte\":");
    put_value(buf, node->v[0]);
    strbuf_addstr(buf, ",\"$lt\":");
    put_value(buf, node->v[1]);
    strbuf_addch(buf, '}');
    return;
  }
  strbuf_addf(buf, "{\"%s\":%s", names[node->op], list ? "[" : "");
  for (int i = 0; i < node->n; i++) {
    if (i) strbuf_addch(buf, ',');
    put_value(buf, node->v[i]);
  }
  strbuf_addstr(buf, list ? "]}" : "}");
}

static void put_document_leaf(strbuf *buf, const model_node *node) {
  static const char *const names[] = {[MODEL_TEXT] = "$contains",
                                      [MODEL_NO_TEXT] = "$not_contains",
                                      [MODEL_REGEX] = "$regex",
                                      [MODEL_NO_REGEX] = "$not_regex"};
  strbuf_addf(buf, "\"%s\":", names[node->op]);
  json_put_string(buf, node->op >= MODEL_REGEX ? str_of(patterns[node->v[0]]) : words[node->v[0]]);
}

static void put_node(strbuf *buf, const model_filter *f, int16_t at, bool braces) {
  const model_node *node = &f->node[at];
  if (braces) strbuf_addch(buf, '{');
  if (node->op == MODEL_AND && node->flat) {
    for (int i = 0; i < 3 && node->kid[i] >= 0; i++) {
      if (i) strbuf_addch(buf, ',');
      put_node(buf, f, node->kid[i], false);
    }
  } else if (node->op == MODEL_AND || node->op == MODEL_OR) {
    put_list(buf, f, node);
  } else if (node->op == MODEL_NOT || node->op == MODEL_DOCUMENT) {
    strbuf_addstr(buf, node->op == MODEL_NOT ? "\"$not\":" : "\"#document\":");
    put_node(buf, f, node->kid[0], true);
  } else if (node->op > MODEL_DOCUMENT) {
    put_document_leaf(buf, node);
  } else if (node->op != MODEL_TRUE) {
    put_leaf(buf, node);
  }
  if (braces) strbuf_addch(buf, '}');
}

/* Members of one object must not be empty, nor objects themselves. */
static void tidy(model_filter *f) {
  for (int i = 0; i < f->n; i++) {
    model_node *node = &f->node[i];
    if (node->op != MODEL_AND || !node->flat) continue;
    for (int k = 0; k < 3 && node->kid[k] >= 0; k++) {
      model_op op = f->node[node->kid[k]].op;
      if (op == MODEL_TRUE || op == MODEL_AND) node->flat = false;
    }
  }
}

static void write_filter(model_filter *f) {
  tidy(f);
  f->text.len = 0;
  put_node(&f->text, f, f->root, true);
  CHECK(!f->text.failed);
}

static int16_t owner_node(model_filter *f, int owner) {
  int16_t at = new_node(f, MODEL_EQ);
  f->node[at].key = MODEL_OWNER;
  f->node[at].n = 1;
  f->node[at].v[0] = (uint8_t)owner;
  return at;
}

void model_owner_filter(model_filter *f, int owner) {
  f->n = 0;
  f->root = owner_node(f, owner);
  write_filter(f);
}

void model_random_filter(model_filter *f, bool document, int owner) {
  f->n = 0;
  f->root = random_tree(f, document, (unsigned)pick(4));
  if (owner >= 0 && !document) {
    int16_t both = new_node(f, MODEL_AND), mine = owner_node(f, owner);
    bool first = pick(2);
    f->node[both].kid[0] = first ? mine : f->root;
    f->node[both].kid[1] = first ? f->root : mine;
    f->root = both;
  }
  write_filter(f);
}

void model_filter_release(model_filter *f) {
  strbuf_release(&f->text);
  f->n = 0;
}

/* ---- Evaluation ---- */

static const model_field *field_of(const model_record *r, int key) {
  for (int i = 0; r->has_meta && i < r->meta.n; i++)
    if (r->meta.f[i].key == key) return &r->meta.f[i];
  return NULL;
}

static bool is_one_of(const model_node *node, int v) {
  for (int i = 0; i < node->n; i++)
    if (compare(v, node->v[i]) == 0) return true;
  return false;
}

static bool has_one_of(const model_node *node, const model_field *f) {
  for (int e = 0; f && f->array && e < f->n; e++)
    if (is_one_of(node, f->v[e])) return true;
  return false;
}

static bool is_in_order(model_op op, int v, int bound) {
  if (kind_of(v) != kind_of(bound)) return false;
  int c = compare(v, bound);
  return op == MODEL_GT ? c > 0 : op == MODEL_GTE ? c >= 0 : op == MODEL_LT ? c < 0 : c <= 0;
}

static bool has_text(const model_record *r, lode_str text) {
  if (!r->has_document) return false;
  return memmem(r->document, r->document_len, text.data, text.len) != NULL;
}

static bool has_pattern(const model_record *r, int which) {
  static regex_t compiled[COUNT(patterns)];
  static bool ready[COUNT(patterns)];
  if (!r->has_document) return false;
  if (!ready[which]) CHECK(regcomp(&compiled[which], patterns[which], REG_EXTENDED) == 0);
  ready[which] = true;
  regmatch_t m = {.rm_so = 0, .rm_eo = (regoff_t)r->document_len};
  return regexec(&compiled[which], r->document, 1, &m, REG_STARTEND) == 0;
}

static bool match_node(const model_filter *f, int16_t at, const model_record *r) {
  const model_node *node = &f->node[at];
  const model_field *field = field_of(r, node->key);
  int scalar = field && !field->array ? field->v[0] : -1;
  switch (node->op) {
    case MODEL_TRUE: return true;
    case MODEL_AND:
    case MODEL_OR:
      for (int i = 0; i < 3 && node->kid[i] >= 0; i++)
        if (match_node(f, node->kid[i], r) == (node->op == MODEL_OR)) return node->op == MODEL_OR;
      return node->op == MODEL_AND;
    case MODEL_NOT: return !match_node(f, node->kid[0], r);
    case MODEL_DOCUMENT: return match_node(f, node->kid[0], r);
    case MODEL_EQ:
    case MODEL_IN: return scalar >= 0 && is_one_of(node, scalar);
    case MODEL_NE:
    case MODEL_NIN: return scalar < 0 || !is_one_of(node, scalar);
    case MODEL_GT:
    case MODEL_GTE:
    case MODEL_LT:
    case MODEL_LTE: return scalar >= 0 && is_in_order(node->op, scalar, node->v[0]);
    case MODEL_BETWEEN:
      return scalar >= 0 && is_in_order(MODEL_GTE, scalar, node->v[0]) && is_in_order(MODEL_LT, scalar, node->v[1]);
    case MODEL_HAS: return has_one_of(node, field);
    case MODEL_HAS_NOT: return !has_one_of(node, field);
    case MODEL_TEXT: return has_text(r, words[node->v[0]]);
    case MODEL_NO_TEXT: return !has_text(r, words[node->v[0]]);
    case MODEL_REGEX: return has_pattern(r, node->v[0]);
    case MODEL_NO_REGEX: return !has_pattern(r, node->v[0]);
  }
  return false;
}

bool model_match(const model_filter *f, const model_record *r) { return !f || match_node(f, f->root, r); }

/* ---- Vectors ---- */

static int compare_ids(const model_record *a, const model_record *b) {
  size_t n = a->id_len < b->id_len ? a->id_len : b->id_len;
  int c = memcmp(a->id, b->id, n);
  return c ? c : (a->id_len > b->id_len) - (a->id_len < b->id_len);
}

static int smaller_first(const void *a, const void *b) {
  const model_hit *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? -1 : 1;
  return compare_ids(x->r, y->r);
}

static int larger_first(const void *a, const void *b) {
  const model_hit *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return compare_ids(x->r, y->r);
}

/* The definition of lode.h in double, to see that kernel_distance is near it. */
static double plain_distance(lode_metric metric, const float *a, const float *b, uint32_t dim) {
  double dot = 0, l2 = 0, na = 0, nb = 0;
  for (uint32_t i = 0; i < dim; i++) {
    double x = a[i], y = b[i];
    dot += x * y;
    l2 += (x - y) * (x - y);
    na += x * x;
    nb += y * y;
  }
  if (metric == LODE_L2) return l2;
  if (metric == LODE_IP) return 1 - dot;
  return na == 0 || nb == 0 ? 1 : 1 - dot / sqrt(na * nb);
}

size_t model_nearest(const model_collection *c, const float *query, const model_filter *where,
                     const model_filter *where_document, model_hit *hits) {
  size_t n = 0;
  for (size_t i = 0; i < c->n; i++) {
    const model_record *r = &c->r[i];
    if (!r->has_vector || !model_match(where, r) || !model_match(where_document, r)) continue;
    float d = kernel_distance(c->metric, query, kernel_dot(query, query, c->dim), r->vector, c->dim);
    CHECKF(fabs(d - plain_distance(c->metric, query, r->vector, c->dim)) < 1e-4,
           "a distance is far from its definition: %g", (double)d);
    hits[n++] = (model_hit){.at = i, .score = d, .r = r};
  }
  if (n) qsort(hits, n, sizeof *hits, smaller_first);
  return n;
}

/* ---- Text ---- */

enum { MOST_WORDS = 64 };
typedef struct bag {
  char word[MOST_WORDS][TOKEN_MAX_BYTES];
  size_t len[MOST_WORDS], n, count[MOST_WORDS];
  bool fixed; /* only counts words that are in it */
} bag;

static int add_word(void *ctx, const token_item *t) {
  bag *b = ctx;
  size_t i = 0;
  while (i < b->n && (b->len[i] != t->len || memcmp(b->word[i], t->text, t->len) != 0)) i++;
  if (i == b->n && b->fixed) return 0;
  if (i == b->n) {
    CHECK(b->n < MOST_WORDS);
    memcpy(b->word[i], t->text, t->len);
    b->len[i] = t->len;
    b->n++;
  }
  b->count[i]++;
  return 0;
}

static bool count_words(bag *b, const model_record *r) {
  bool any = false;
  memset(b->count, 0, sizeof b->count);
  if (r->has_document) (void)token_split(r->document, r->document_len, add_word, b);
  for (size_t i = 0; i < b->n; i++) any = any || b->count[i];
  return any;
}

static double bm25(const bag *b, const double *idf, double length, double average) {
  double sum = 0, norm = 1.2 * (1 - 0.75 + 0.75 * length / average);
  for (size_t i = 0; i < b->n; i++) {
    double tf = (double)b->count[i];
    if (tf > 0) sum += idf[i] * tf * 2.2 / (tf + norm);
  }
  return sum;
}

size_t model_text(const model_collection *c, lode_str text, const model_filter *where,
                  const model_filter *where_document, model_hit *hits) {
  static bag b;
  double df[MOST_WORDS] = {0}, idf[MOST_WORDS], documents = 0, bytes = 0;
  size_t n = 0;
  b = (bag){0};
  (void)token_split_query(text.data, text.len, add_word, &b);
  b.fixed = true;
  for (size_t i = 0; i < c->n; i++) {
    documents += c->r[i].has_document;
    bytes += c->r[i].has_document ? (double)c->r[i].document_len : 0;
    if (!count_words(&b, &c->r[i])) continue;
    for (size_t w = 0; w < b.n; w++) df[w] += b.count[w] > 0;
  }
  for (size_t w = 0; w < b.n; w++) idf[w] = log(1 + (documents - df[w] + 0.5) / (df[w] + 0.5));
  for (size_t i = 0; i < c->n; i++) {
    const model_record *r = &c->r[i];
    if (!count_words(&b, r) || !model_match(where, r) || !model_match(where_document, r)) continue;
    hits[n++] = (model_hit){.at = i, .r = r, .score = bm25(&b, idf, (double)r->document_len, bytes / documents)};
  }
  if (n) qsort(hits, n, sizeof *hits, larger_first);
  return n;
}

/* ---- Facets ---- */

static void count_facet(model_facet *facets, size_t *n, int v) {
  size_t i = 0;
  while (i < *n && compare(facets[i].value, v) != 0) i++;
  if (i == *n) facets[(*n)++] = (model_facet){.value = v};
  facets[i].count++;
}

static int most_first(const void *a, const void *b) {
  const model_facet *x = a, *y = b;
  if (x->count != y->count) return x->count > y->count ? -1 : 1;
  return compare(x->value, y->value);
}

size_t model_facets(const model_collection *c, int key, const model_filter *where, model_facet *facets) {
  size_t n = 0;
  for (size_t i = 0; i < c->n; i++) {
    const model_field *f = field_of(&c->r[i], key);
    if (!f || !model_match(where, &c->r[i])) continue;
    for (int e = 0; e < f->n; e++) {
      bool again = false;
      for (int before = 0; before < e; before++) again = again || compare(f->v[before], f->v[e]) == 0;
      if (!again) count_facet(facets, &n, f->v[e]);
    }
  }
  if (n) qsort(facets, n, sizeof *facets, most_first);
  return n;
}

/* Equal numbers are one value, written as an integer where they are one. */
void model_facet_text(const model_facet *facet, strbuf *buf) {
  const meta_value *v = &values[facet->value];
  if (v->type == META_DOUBLE && v->d >= -0x1p63 && v->d < 0x1p63 && v->d == floor(v->d))
    json_put_int(buf, (int64_t)v->d);
  else
    meta_value_put(buf, v);
}
