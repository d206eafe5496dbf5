/* SPDX-License-Identifier: Apache-2.0 */
/* oracle.c - records, random content and writes; see oracle.h. */
#include "support/oracle.h"

#include "base/json.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
/* clang-format off */
#define INT(x) {.type = META_INT, .i = (x)}
#define DOUBLE(x) {.type = META_DOUBLE, .d = (x)}
#define TEXT(x) {.type = META_STRING, .s = {x, sizeof(x) - 1}}
#define BOOL(x) {.type = META_BOOL, .i = (x)}
#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static const meta_value values[] = {
    INT(-3), INT(-1), INT(0), INT(1), INT(2), INT(3), INT(7), INT(100), INT(INT64_MAX), INT(INT64_MIN),
    INT(9007199254740992), INT(9007199254740993), INT(9223372036854774784), DOUBLE(-0.0), DOUBLE(0.5), DOUBLE(1.0),
    DOUBLE(2.0), DOUBLE(2.5), DOUBLE(-1.5), DOUBLE(1e300), DOUBLE(5e-324), DOUBLE(9007199254740992.0),
    DOUBLE(9223372036854774784.0), DOUBLE(0x1p63), DOUBLE(-0x1p63), TEXT(""), TEXT("a"), TEXT("b"), TEXT("B"),
    TEXT("ab"), TEXT("src/main.c"), TEXT("it's"), TEXT("\"; DROP TABLE record; --"), TEXT("nul\0here"),
    TEXT("\xC3\xBCn\xC3\xAF \xE2\x98\x83"), TEXT(X64), TEXT(X64 "a"), TEXT(X64 "b"), TEXT(X64 "bb"), BOOL(0), BOOL(1),
};
/* clang-format on */
_Static_assert(COUNT(values) == ORACLE_VALUES, "numbers, then strings, then booleans");

static const lode_str keys[ORACLE_KEYS] = {
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
_Static_assert(COUNT(words) == ORACLE_WORDS, "as oracle.h says");

lode_str oracle_key(int key) { return keys[key]; }
lode_str oracle_word(size_t i) { return words[i]; }
lode_str oracle_id(const oracle_record *r) { return (lode_str){r->id, r->id_len}; }

meta_value oracle_value(int v) {
  return v < ORACLE_VALUES ? values[v] : (meta_value){.type = META_INT, .i = v - ORACLE_VALUES};
}

int oracle_int(unsigned i) {
  CHECK(i < 1000);
  return ORACLE_VALUES + (int)i;
}

static size_t pick(size_t n) { return (size_t)test_below(n); }

/* ---- Collections ---- */

void oracle_release(oracle_collection *c) {
  free(c->r);
  *c = (oracle_collection){0};
}

static void reserve(oracle_collection *c, size_t n) {
  if (n <= c->cap) return;
  c->cap = n * 2;
  c->r = realloc(c->r, c->cap * sizeof *c->r);
  CHECK(c->r);
}

void oracle_copy(oracle_collection *to, const oracle_collection *from) {
  reserve(to, from->n);
  if (from->n) memcpy(to->r, from->r, from->n * sizeof *from->r);
  to->n = from->n;
  to->dim = from->dim;
  to->metric = from->metric;
}

size_t oracle_find(const oracle_collection *c, lode_str id) {
  for (size_t i = 0; i < c->n; i++)
    if (c->r[i].id_len == id.len && memcmp(c->r[i].id, id.data, id.len) == 0) return i;
  return SIZE_MAX;
}

size_t oracle_pending(const oracle_collection *c) {
  size_t n = 0;
  for (size_t i = 0; i < c->n; i++) n += !c->r[i].has_vector;
  return n;
}

size_t oracle_documents(const oracle_collection *c) {
  size_t n = 0;
  for (size_t i = 0; i < c->n; i++) n += c->r[i].has_document;
  return n;
}

/* Kept in a list, and so reachable for the leak checker, until the test ends. */
static const float *keep_vector(const float *v, uint32_t dim) {
  static struct block {
    struct block *older;
    size_t used;
    float v[16 * ORACLE_MAX_DIM];
  } * newest;
  CHECK(dim <= ORACLE_MAX_DIM);
  if (!newest || COUNT(newest->v) - newest->used < dim) {
    struct block *b = malloc(sizeof *b);
    CHECK(b);
    b->older = newest;
    b->used = 0;
    newest = b;
  }
  float *kept = newest->v + newest->used;
  memcpy(kept, v, dim * sizeof *v);
  newest->used += dim;
  return kept;
}

void oracle_set_vector(oracle_record *r, const float *v, uint32_t dim) {
  r->has_vector = true;
  r->vector = keep_vector(v, dim);
  r->dim = dim;
}

void oracle_append(oracle_collection *c, const oracle_record *r) {
  reserve(c, c->n + 1);
  c->r[c->n++] = *r;
  if (r->has_vector) c->dim = r->dim;
}

void oracle_remove(oracle_collection *c, size_t at) {
  memmove(c->r + at, c->r + at + 1, (c->n - at - 1) * sizeof *c->r);
  c->n--;
}

lode_str oracle_meta_text(const oracle_record *r, strbuf *buf) {
  size_t start = buf->len;
  if (!r->has_meta) return (lode_str){NULL, 0};
  strbuf_addch(buf, '{');
  for (int i = 0; i < r->meta.n; i++) {
    const oracle_field *f = &r->meta.f[i];
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
      meta_value v = oracle_value(f->v[e]);
      meta_value_put(buf, &v);
    }
    if (f->array) strbuf_addch(buf, ']');
  }
  strbuf_addch(buf, '}');
  CHECK(!buf->failed);
  return (lode_str){buf->data + start, buf->len - start};
}

lode_record oracle_to_write(const oracle_record *r, strbuf *buf) {
  buf->len = 0;
  lode_record w = {.id = oracle_id(r), .metadata = oracle_meta_text(r, buf), .dimension = r->dim};
  if (r->has_document) w.document = (lode_str){r->document, r->document_len};
  if (r->has_vector) w.vector = r->vector;
  return w;
}

/* ---- Random content ---- */

void oracle_name_record(oracle_record *r, unsigned number) {
  static const struct {
    const char *before, *after;
  } forms[] = {
      {"id-", ""},          {"\xD0\x96-", ""}, {"it's \"", "\""},
      {"dir\\", "/file.c"}, {"", ";x"},        {"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk", ""},
      {" ", "\n"},
  };
  size_t form = number % COUNT(forms);
  int len = snprintf(r->id, sizeof r->id, "%s%u%s", forms[form].before, number, forms[form].after);
  CHECK(len > 0 && (size_t)len < sizeof r->id);
  r->id_len = (size_t)len;
  for (size_t i = 0; i < r->id_len; i++)
    if (r->id[i] == ';') r->id[i] = '\0'; /* any UTF-8 may be an id */
}

size_t oracle_random_text(char *text, size_t size, unsigned n) {
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
void oracle_random_vector(float *v, uint32_t dim) {
  bool whole = pick(3) != 0;
  for (uint32_t i = 0; i < dim; i++) v[i] = whole ? (float)pick(4) - 1 : (float)pick(2001) / 1000 - 1;
}

/* Arrays hold one kind of values. */
static void random_field(oracle_field *f, int key, bool nulls) {
  static const struct {
    uint8_t from, n;
  } kinds[] = {{0, ORACLE_NUMBERS}, {ORACLE_NUMBERS, ORACLE_STRINGS}, {ORACLE_NUMBERS + ORACLE_STRINGS, 2}};
  size_t kind = pick(8) ? (size_t)key % 3 : pick(3); /* mostly one kind for a key */
  *f = (oracle_field){.key = (uint8_t)key, .null = nulls && pick(4) == 0, .array = pick(4) == 0 || key == 3, .n = 1};
  if (f->array) f->n = (uint8_t)pick(ORACLE_ELEMENTS + 1);
  for (int i = 0; i < f->n; i++)
    f->v[i] = (uint16_t)(kinds[kind].from + pick(pick(3) ? kinds[kind].n : (kinds[kind].n + 1) / 2));
}

static void random_meta(oracle_meta *m, const oracle_content *content) {
  m->n = 0;
  for (int k = 0; k < ORACLE_OWNER; k++)
    if (pick(3) == 0) random_field(&m->f[m->n++], k, content->nulls);
  for (int i = m->n - 1; i > 0; i--) { /* keys in any order */
    size_t j = pick((size_t)i + 1);
    oracle_field swap = m->f[i];
    m->f[i] = m->f[j];
    m->f[j] = swap;
  }
  if (content->owner >= 0) m->f[m->n++] = (oracle_field){.key = ORACLE_OWNER, .n = 1, .v = {(uint16_t)content->owner}};
}

void oracle_random_record(oracle_record *r, unsigned number, const oracle_content *content) {
  *r = (oracle_record){0};
  oracle_name_record(r, number);
  r->has_document = pick(4) != 0;
  if (r->has_document)
    r->document_len = oracle_random_text(r->document, sizeof r->document, (unsigned)pick(pick(8) ? 12 : 90));
  r->has_meta = content->owner >= 0 || pick(5) != 0;
  if (r->has_meta) random_meta(&r->meta, content);
  if (pick(4) == 0) return;
  float v[ORACLE_MAX_DIM];
  oracle_random_vector(v, content->dim);
  oracle_set_vector(r, v, content->dim);
}

/* ---- Writes ---- */

static void merge_field(oracle_meta *m, const oracle_field *f) {
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

static void merge_meta(oracle_record *r, const oracle_record *change) {
  if (!r->has_meta) r->meta.n = 0;
  for (int i = 0; i < change->meta.n; i++) merge_field(&r->meta, &change->meta.f[i]);
  r->has_meta = r->meta.n > 0;
}

static void apply(oracle_record *r, const oracle_record *change) {
  if (change->has_document) {
    r->has_document = true;
    memcpy(r->document, change->document, sizeof r->document);
    r->document_len = change->document_len;
  }
  if (change->has_meta) merge_meta(r, change);
  if (change->has_vector) {
    r->has_vector = true;
    r->vector = change->vector;
    r->dim = change->dim;
  }
}

static lode_status check_batch(const oracle_collection *c, oracle_kind kind, const oracle_record *r, size_t n) {
  uint32_t dim = c->dim;
  bool mismatch = false, exists = false;
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < i; j++)
      if (r[j].id_len == r[i].id_len && memcmp(r[j].id, r[i].id, r[i].id_len) == 0) return LODE_REFUSED;
    for (int k = 0; r[i].has_meta && k < r[i].meta.n; k++)
      if (r[i].meta.f[k].null && (kind == ORACLE_ADD || kind == ORACLE_ADD_KEEP)) return LODE_REFUSED;
    for (uint32_t d = 0; r[i].has_vector && d < r[i].dim; d++)
      if (!isfinite(r[i].vector[d])) return LODE_REFUSED;
    if (r[i].has_vector && dim == 0) dim = r[i].dim;
    mismatch = mismatch || (r[i].has_vector && r[i].dim != dim);
    exists = exists || (kind == ORACLE_ADD && oracle_find(c, oracle_id(&r[i])) != SIZE_MAX);
  }
  return mismatch ? LODE_MISMATCH : exists ? LODE_EXISTS : LODE_OK;
}

lode_status oracle_write(oracle_collection *c, oracle_kind kind, const oracle_record *r, size_t n,
                         lode_write_result *result, bool *missing) {
  lode_status st = check_batch(c, kind, r, n);
  *result = (lode_write_result){0};
  for (size_t i = 0; i < n; i++) {
    size_t at = oracle_find(c, oracle_id(&r[i]));
    missing[i] = st == LODE_OK && at == SIZE_MAX;
    if (st != LODE_OK) continue;
    if (at == SIZE_MAX ? kind == ORACLE_UPDATE : kind == ORACLE_ADD_KEEP) {
      result->skipped++;
      continue;
    }
    if (at == SIZE_MAX) {
      oracle_record added = {.id_len = r[i].id_len};
      memcpy(added.id, r[i].id, sizeof added.id);
      at = c->n;
      oracle_append(c, &added);
    }
    apply(&c->r[at], &r[i]);
    if (r[i].has_vector) c->dim = r[i].dim;
    result->written++;
  }
  return st;
}
