/* meta.c - a record's metadata: see meta.h.
 *
 * Values are compared by what they mean: the integer 1 and the double 1.0 are equal, and 2^53 + 1 is greater than
 * 9007199254740992.0 although no double lies between them. Every duplicate (keys of an object, elements of an array,
 * values of a filter) is found in linearithmic time: metadata may be a megabyte of keys, and hostile.
 * Nodes are walked by `next`, never by recursion; the checks allow one level of arrays and nothing deeper.
 */
#include "meta.h"

#define FEW 16 /* up to so many, comparing all with all is faster than a table */

/* ---- Values ---- */

static int kind_of(lode__value_type type) {
  switch (type) {
    case LODE__VALUE_BOOL: return 0;
    case LODE__VALUE_INT:
    case LODE__VALUE_DOUBLE: return 1;
    case LODE__VALUE_STRING: break;
  }
  return 2;
}

bool lode__value_comparable(const lode__value *a, const lode__value *b) {
  return kind_of(a->type) == kind_of(b->type);
}

static int cmp_ints(int64_t a, int64_t b) { return (a > b) - (a < b); }
static int cmp_doubles(double a, double b) { return (a > b) - (a < b); }

/* Exact: neither side is rounded to the other's type. */
static int cmp_int_double(int64_t i, double d) {
  if (d >= 0x1p63) return -1;
  if (d < -0x1p63) return 1;
  int64_t whole = (int64_t)d; /* towards zero; exact for the whole part */
  if (i != whole) return cmp_ints(i, whole);
  return cmp_doubles(0, d - (double)whole);
}

int lode__value_cmp(const lode__value *a, const lode__value *b) {
  int ka = kind_of(a->type), kb = kind_of(b->type);
  if (ka != kb) return cmp_ints(ka, kb);
  if (a->type == LODE__VALUE_STRING) return lode__str_cmp(a->s, b->s);
  if (a->type == LODE__VALUE_DOUBLE) {
    return b->type == LODE__VALUE_DOUBLE ? cmp_doubles(a->d, b->d) : -cmp_int_double(b->i, a->d);
  }
  return b->type == LODE__VALUE_DOUBLE ? cmp_int_double(a->i, b->d) : cmp_ints(a->i, b->i);
}

void lode__value_put(lode__buf *buf, const lode__value *value) {
  switch (value->type) {
    case LODE__VALUE_INT: lode__json_put_int(buf, value->i); break;
    case LODE__VALUE_DOUBLE: lode__json_put_double(buf, value->d); break;
    case LODE__VALUE_STRING: lode__json_put_string(buf, value->s); break;
    case LODE__VALUE_BOOL: lode__buf_adds(buf, value->i ? "true" : "false"); break;
  }
}

bool lode__value_of(const lode__json *json, uint32_t node, lode__value *value) {
  const lode__json_node *n = &json->nodes[node];
  switch (n->type) {
    case LODE__JSON_INT: *value = (lode__value){.type = LODE__VALUE_INT, .i = n->u.i}; return true;
    case LODE__JSON_DOUBLE: *value = (lode__value){.type = LODE__VALUE_DOUBLE, .d = n->u.d}; return true;
    case LODE__JSON_STRING: *value = (lode__value){.type = LODE__VALUE_STRING, .s = n->u.s}; return true;
    case LODE__JSON_FALSE:
    case LODE__JSON_TRUE:
      *value = (lode__value){.type = LODE__VALUE_BOOL, .i = n->type == LODE__JSON_TRUE};
      return true;
    default: return false;
  }
}

/* ---- Sorting values ---- */

/* Merges the sorted runs [from, middle) and [middle, to) of `in` to the same places of `out`; the left one's value
 * goes first among equals. */
static void merge_runs(const lode__value *in, lode__value *out, size_t from, size_t middle, size_t to) {
  size_t l = from, r = middle;
  for (size_t i = from; i < to; i++) {
    bool left = l < middle && (r >= to || lode__value_cmp(&in[l], &in[r]) <= 0);
    out[i] = in[left ? l++ : r++];
  }
}

static bool is_sorted(const lode__value *values, size_t n) {
  for (size_t i = 1; i < n; i++) {
    if (lode__value_cmp(&values[i - 1], &values[i]) > 0) return false;
  }
  return true;
}

lode_status lode__values_sort(lode__value *values, size_t *n, lode_error *err) {
  size_t count = *n;
  if (!is_sorted(values, count)) {
    lode__value *spare = lode__alloc_zero(count, sizeof *spare);
    if (!spare) return lode__fail_nomem(err);
    lode__value *in = values, *out = spare;
    for (size_t width = 1; width < count; width *= 2) {
      for (size_t from = 0; from < count; from += 2 * width) {
        size_t middle = count - from > width ? from + width : count;
        size_t to = count - from > 2 * width ? from + 2 * width : count;
        merge_runs(in, out, from, middle, to);
      }
      lode__value *swap = in;
      in = out;
      out = swap;
    }
    if (in != values) memcpy(values, in, count * sizeof *values);
    lode__free(spare);
  }
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    if (kept == 0 || lode__value_cmp(&values[kept - 1], &values[i]) != 0) values[kept++] = values[i];
  }
  *n = kept;
  return LODE_OK;
}

/* ---- Keys of an object: a table of key nodes, for objects with more than a few ---- */

typedef struct key_table {
  const lode__json *json;
  uint32_t *slots; /* node of a key, or 0; NULL for small objects */
  size_t mask;
} key_table;

/* The slot that holds `key`, or the empty one where it belongs. */
static uint32_t *key_slot(const key_table *table, lode_str key) {
  size_t at = lode__hash(key.data, key.len) & table->mask;
  while (table->slots[at] && !lode__str_eq(table->json->nodes[table->slots[at]].u.s, key)) at = (at + 1) & table->mask;
  return &table->slots[at];
}

/* Fills the table with the keys of the object at the root. *twice: a key that occurs twice, or 0. */
static lode_status key_table_init(key_table *table, const lode__json *json, uint32_t *twice, lode_error *err) {
  *table = (key_table){.json = json};
  *twice = 0;
  const lode__json_node *nodes = json->nodes;
  size_t pairs = nodes[0].u.count;
  if (pairs <= FEW) {
    for (uint32_t a = 1; a < nodes[0].next; a = nodes[a + 1].next) {
      for (uint32_t b = 1; b < a; b = nodes[b + 1].next) {
        if (lode__str_eq(nodes[a].u.s, nodes[b].u.s)) *twice = a;
      }
    }
    return LODE_OK;
  }
  size_t size = 64;
  while (size < pairs * 2) size *= 2;
  table->slots = lode__alloc_zero(size, sizeof *table->slots);
  if (!table->slots) return lode__fail_nomem(err);
  table->mask = size - 1;
  for (uint32_t a = 1; a < nodes[0].next; a = nodes[a + 1].next) {
    uint32_t *slot = key_slot(table, nodes[a].u.s);
    if (*slot) *twice = a;
    *slot = a;
  }
  return LODE_OK;
}

static void key_table_release(key_table *table) { lode__free(table->slots); }

/* Node of the value of `key`, or 0. */
static uint32_t key_find(const key_table *table, lode_str key) {
  if (!table->slots) return lode__json_get(table->json, 0, key);
  uint32_t node = *key_slot(table, key);
  return node ? node + 1 : 0;
}

/* ---- Checks ---- */

static lode_status refuse_value(lode_str key, const char *what, lode_error *err) {
  char shown[256];
  return lode__fail(err, LODE_REFUSED,
                    "the metadata's key %s has %s; values are strings, numbers, booleans, or arrays of one of those",
                    lode__quote(key, shown, sizeof shown), what);
}

static lode_status check_array(const lode__json *json, uint32_t array, lode_str key, lode_error *err) {
  lode__value first = {0}, value;
  uint32_t end = json->nodes[array].next;
  for (uint32_t e = array + 1; e < end; e = json->nodes[e].next) {
    if (!lode__value_of(json, e, &value)) return refuse_value(key, "an array with a null, array or object in it", err);
    if (e == array + 1) first = value;
    if (!lode__value_comparable(&first, &value)) return refuse_value(key, "an array of mixed kinds", err);
  }
  return LODE_OK;
}

static lode_status check_value(const lode__json *json, uint32_t node, lode_str key, bool allow_null, lode_error *err) {
  switch (json->nodes[node].type) {
    case LODE__JSON_NULL:
      return allow_null ? LODE_OK : refuse_value(key, "the value null (only an update may have one, to remove a key)", err);
    case LODE__JSON_OBJECT: return refuse_value(key, "an object as its value", err);
    case LODE__JSON_ARRAY: return check_array(json, node, key, err);
    default: return LODE_OK;
  }
}

lode_status lode__meta_check(lode__json *parsed, lode_str text, bool allow_null, lode_error *err) {
  if (text.len > LODE_MAX_METADATA_BYTES) {
    return lode__fail(err, LODE_REFUSED, "the metadata is %zu bytes long, the limit is %u: keep large texts in the document",
                      text.len, LODE_MAX_METADATA_BYTES);
  }
  lode_error why;
  lode_status st = lode__json_parse(parsed, text, NULL, &why);
  if (st == LODE_NOMEM) return lode__fail_nomem(err);
  if (st != LODE_OK) return lode__fail(err, LODE_REFUSED, "the metadata is not usable: %s", why.text);
  if (parsed->nodes[0].type != LODE__JSON_OBJECT) {
    return lode__fail(err, LODE_REFUSED, "the metadata is not a JSON object; write {\"key\": value, ...}");
  }
  key_table table;
  uint32_t twice;
  st = key_table_init(&table, parsed, &twice, err);
  key_table_release(&table);
  if (st != LODE_OK) return st;
  if (twice) {
    char shown[256];
    return lode__fail(err, LODE_REFUSED, "the metadata has the key %s twice; name each key once",
                      lode__quote(parsed->nodes[twice].u.s, shown, sizeof shown));
  }
  for (uint32_t k = 1; k < parsed->nodes[0].next; k = parsed->nodes[k + 1].next) {
    LODE__TRY(check_value(parsed, k + 1, parsed->nodes[k].u.s, allow_null, err));
  }
  return LODE_OK;
}

/* ---- Values of a record ---- */

static bool seen_before(const lode__json *json, uint32_t array, uint32_t element, const lode__value *value) {
  lode__value other;
  for (uint32_t e = array + 1; e < element; e = json->nodes[e].next) {
    if (lode__value_of(json, e, &other) && lode__value_cmp(&other, value) == 0) return true;
  }
  return false;
}

static lode_status few_elements(const lode__json *json, uint32_t array, lode_str key, lode__value_fn *fn, void *ctx,
                                lode_error *err) {
  lode__value value;
  for (uint32_t e = array + 1; e < json->nodes[array].next; e = json->nodes[e].next) {
    if (!lode__value_of(json, e, &value) || seen_before(json, array, e, &value)) continue;
    LODE__TRY(fn(ctx, key, &value, err));
  }
  return LODE_OK;
}

static lode_status many_elements(const lode__json *json, uint32_t array, lode_str key, lode__value_fn *fn, void *ctx,
                                 lode_error *err) {
  lode_status st = LODE_OK;
  size_t n = 0;
  lode__value *values = lode__alloc_zero(json->nodes[array].u.count, sizeof *values);
  if (!values) return lode__fail_nomem(err);
  for (uint32_t e = array + 1; e < json->nodes[array].next; e = json->nodes[e].next) {
    if (lode__value_of(json, e, &values[n])) n++;
  }
  LODE__GOTO(lode__values_sort(values, &n, err));
  for (size_t i = 0; i < n; i++) LODE__GOTO(fn(ctx, key, &values[i], err));
done:
  lode__free(values);
  return st;
}

lode_status lode__meta_values(const lode__json *parsed, lode__value_fn *fn, void *ctx, lode_error *err) {
  const lode__json_node *nodes = parsed->nodes;
  for (uint32_t k = 1; k < nodes[0].next; k = nodes[k + 1].next) {
    lode_str key = nodes[k].u.s;
    uint32_t at = k + 1;
    lode__value value;
    if (lode__value_of(parsed, at, &value)) {
      LODE__TRY(fn(ctx, key, &value, err));
    } else if (nodes[at].type == LODE__JSON_ARRAY) {
      LODE__TRY((nodes[at].u.count <= FEW ? few_elements : many_elements)(parsed, at, key, fn, ctx, err));
    }
  }
  return LODE_OK;
}

/* ---- Merging ---- */

static void put_pair(lode__buf *out, size_t start, const lode__json *json, uint32_t key, uint32_t value_node,
                     const lode__json *value_json) {
  lode__buf_addc(out, out->len == start ? '{' : ',');
  lode__json_put_string(out, json->nodes[key].u.s);
  lode__buf_addc(out, ':');
  lode__json_put_node(out, value_json, value_node);
}

static void put_kept(lode__buf *out, size_t start, const lode__json *old, const key_table *changes) {
  const lode__json *change = changes->json;
  for (uint32_t k = 1; k < old->nodes[0].next; k = old->nodes[k + 1].next) {
    uint32_t now = key_find(changes, old->nodes[k].u.s);
    if (!now) {
      put_pair(out, start, old, k, k + 1, old);
    } else if (change->nodes[now].type != LODE__JSON_NULL) {
      put_pair(out, start, old, k, now, change);
    }
  }
}

static void put_new(lode__buf *out, size_t start, const lode__json *change, const key_table *olds) {
  for (uint32_t k = 1; k < change->nodes[0].next; k = change->nodes[k + 1].next) {
    if (change->nodes[k + 1].type == LODE__JSON_NULL) continue;
    if (olds && key_find(olds, change->nodes[k].u.s)) continue;
    put_pair(out, start, change, k, k + 1, change);
  }
}

lode_status lode__meta_merge(const lode__json *old, const lode__json *change, lode__buf *out, bool *empty,
                             lode_error *err) {
  lode_status st = LODE_OK;
  key_table olds = {0}, changes = {0};
  uint32_t twice;
  size_t start = out->len;
  *empty = false;
  if (old) {
    LODE__GOTO(key_table_init(&olds, old, &twice, err));
    LODE__GOTO(key_table_init(&changes, change, &twice, err));
    put_kept(out, start, old, &changes);
  }
  put_new(out, start, change, old ? &olds : NULL);
  *empty = out->len == start;
  if (!*empty) lode__buf_addc(out, '}');
  if (out->failed) st = lode__fail_nomem(err);
  if (st == LODE_OK && out->len - start > LODE_MAX_METADATA_BYTES) {
    st = lode__fail(err, LODE_REFUSED, "the merged metadata is %zu bytes long, the limit is %u: remove keys with null",
                    out->len - start, LODE_MAX_METADATA_BYTES);
    out->len = start;
  }
done:
  key_table_release(&olds);
  key_table_release(&changes);
  if (st != LODE_OK) *empty = false;
  return st;
}

lode_status lode__meta_parse_stored(lode__json *parsed, lode_str text, lode_error *err) {
  lode_status st = lode__json_parse(parsed, text, NULL, NULL);
  if (st == LODE_NOMEM) return lode__fail_nomem(err);
  if (st == LODE_OK && parsed->nodes[0].type == LODE__JSON_OBJECT) return LODE_OK;
  return lode__fail(err, LODE_CORRUPT, "stored metadata is not a JSON object: run `lode db verify`");
}
