/* SPDX-License-Identifier: Apache-2.0 */
/* meta.c - a record's metadata: see meta.h.
 *
 * Values are compared by meaning: the integer 1 equals the double 1.0, and 2^53 + 1 is greater than
 * 9007199254740992.0 although no double lies between them. Duplicates (keys of an object, elements of an array, values
 * of a filter) are always found in O(n log n): metadata may be a megabyte of hostile keys.
 * Nodes are traversed by `next`, without recursion; the checks allow one level of arrays and nothing deeper.
 */
#include "base/meta.h"

#define META_FEW 16 /* up to this many, comparing all pairs is faster than a table */

/* ---- Values ---- */

static int meta_kind_of(meta_type type) {
  switch (type) {
    case META_BOOL: return 0;
    case META_INT:
    case META_DOUBLE: return 1;
    case META_STRING: break;
  }
  return 2;
}

bool meta_value_comparable(const meta_value *a, const meta_value *b) {
  return meta_kind_of(a->type) == meta_kind_of(b->type);
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

int meta_value_cmp(const meta_value *a, const meta_value *b) {
  int ka = meta_kind_of(a->type), kb = meta_kind_of(b->type);
  if (ka != kb) return cmp_ints(ka, kb);
  if (a->type == META_STRING) return str_cmp(a->s, b->s);
  if (a->type == META_DOUBLE) {
    return b->type == META_DOUBLE ? cmp_doubles(a->d, b->d) : -cmp_int_double(b->i, a->d);
  }
  return b->type == META_DOUBLE ? cmp_int_double(a->i, b->d) : cmp_ints(a->i, b->i);
}

void meta_value_put(strbuf *buf, const meta_value *value) {
  switch (value->type) {
    case META_INT: json_put_int(buf, value->i); break;
    case META_DOUBLE: json_put_double(buf, value->d); break;
    case META_STRING: json_put_string(buf, value->s); break;
    case META_BOOL: strbuf_addstr(buf, value->i ? "true" : "false"); break;
  }
}

bool meta_value_of(const json_doc *json, uint32_t node, meta_value *value) {
  const json_node *n = &json->nodes[node];
  switch (n->type) {
    case JSON_NODE_INT: *value = (meta_value){.type = META_INT, .i = n->u.i}; return true;
    case JSON_NODE_DOUBLE: *value = (meta_value){.type = META_DOUBLE, .d = n->u.d}; return true;
    case JSON_NODE_STRING: *value = (meta_value){.type = META_STRING, .s = n->u.s}; return true;
    case JSON_NODE_FALSE:
    case JSON_NODE_TRUE: *value = (meta_value){.type = META_BOOL, .i = n->type == JSON_NODE_TRUE}; return true;
    default: return false;
  }
}

/* ---- Sorting values ---- */

/* Merges the sorted runs [from, middle) and [middle, to) of `in` to the same range of `out`. Stable: among equal values
 * the left one comes first. */
static void merge_runs(const meta_value *in, meta_value *out, size_t from, size_t middle, size_t to) {
  size_t l = from, r = middle;
  for (size_t i = from; i < to; i++) {
    bool left = l < middle && (r >= to || meta_value_cmp(&in[l], &in[r]) <= 0);
    out[i] = in[left ? l++ : r++];
  }
}

static bool is_sorted(const meta_value *values, size_t n) {
  for (size_t i = 1; i < n; i++) {
    if (meta_value_cmp(&values[i - 1], &values[i]) > 0) return false;
  }
  return true;
}

lode_status meta_values_sort(meta_value *values, size_t *n, lode_error *err) {
  size_t count = *n;
  if (!is_sorted(values, count)) {
    meta_value *spare = mem_calloc(count, sizeof *spare);
    if (!spare) return err_nomem(err);
    meta_value *in = values, *out = spare;
    for (size_t width = 1; width < count; width *= 2) {
      for (size_t from = 0; from < count; from += 2 * width) {
        size_t middle = count - from > width ? from + width : count;
        size_t to = count - from > 2 * width ? from + 2 * width : count;
        merge_runs(in, out, from, middle, to);
      }
      meta_value *swap = in;
      in = out;
      out = swap;
    }
    if (in != values) memcpy(values, in, count * sizeof *values);
    mem_free(spare);
  }
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    if (kept == 0 || meta_value_cmp(&values[kept - 1], &values[i]) != 0) values[kept++] = values[i];
  }
  *n = kept;
  return LODE_OK;
}

/* ---- Keys of an object: a hash table of key nodes, for objects with more than META_FEW ---- */

typedef struct key_table {
  const json_doc *json;
  uint32_t *slots; /* node of a key, or 0; NULL for small objects */
  size_t mask;
} key_table;

/* The slot that holds `key`, or the empty one where it belongs. */
static uint32_t *meta_key_slot(const key_table *table, lode_str key) {
  size_t at = hash_bytes(key.data, key.len) & table->mask;
  while (table->slots[at] && !str_eq(table->json->nodes[table->slots[at]].u.s, key)) at = (at + 1) & table->mask;
  return &table->slots[at];
}

/* Fills the table with the keys of the root object. *twice: a key that occurs twice, or 0. */
static lode_status key_table_init(key_table *table, const json_doc *json, uint32_t *twice, lode_error *err) {
  *table = (key_table){.json = json};
  *twice = 0;
  const json_node *nodes = json->nodes;
  size_t pairs = nodes[0].u.count;
  if (pairs <= META_FEW) {
    for (uint32_t a = 1; a < nodes[0].next; a = nodes[a + 1].next) {
      for (uint32_t b = 1; b < a; b = nodes[b + 1].next) {
        if (str_eq(nodes[a].u.s, nodes[b].u.s)) *twice = a;
      }
    }
    return LODE_OK;
  }
  size_t size = 64;
  while (size < pairs * 2) size *= 2;
  table->slots = mem_calloc(size, sizeof *table->slots);
  if (!table->slots) return err_nomem(err);
  table->mask = size - 1;
  for (uint32_t a = 1; a < nodes[0].next; a = nodes[a + 1].next) {
    uint32_t *slot = meta_key_slot(table, nodes[a].u.s);
    if (*slot) *twice = a;
    *slot = a;
  }
  return LODE_OK;
}

static void key_table_release(key_table *table) { mem_free(table->slots); }

/* The node of the value of `key`, or 0. */
static uint32_t key_find(const key_table *table, lode_str key) {
  if (!table->slots) return json_get(table->json, 0, key);
  uint32_t node = *meta_key_slot(table, key);
  return node ? node + 1 : 0;
}

/* ---- Checks ---- */

static lode_status refuse_value(lode_str key, const char *what, lode_error *err) {
  char shown[256];
  return err_set(err, LODE_REFUSED,
                 "the metadata's key %s has %s; values are strings, numbers, booleans, or arrays of one of those",
                 str_quote(key, shown, sizeof shown), what);
}

static lode_status meta_check_array(const json_doc *json, uint32_t array, lode_str key, lode_error *err) {
  meta_value first = {0}, value;
  uint32_t end = json->nodes[array].next;
  for (uint32_t e = array + 1; e < end; e = json->nodes[e].next) {
    if (!meta_value_of(json, e, &value)) return refuse_value(key, "an array with a null, array or object in it", err);
    if (e == array + 1) first = value;
    if (!meta_value_comparable(&first, &value)) return refuse_value(key, "an array of mixed kinds", err);
  }
  return LODE_OK;
}

static lode_status meta_check_value(const json_doc *json, uint32_t node, lode_str key, bool allow_null,
                                    lode_error *err) {
  switch (json->nodes[node].type) {
    case JSON_NODE_NULL:
      if (allow_null) return LODE_OK;
      return refuse_value(key, "the value null (only an update may have one, to remove a key)", err);
    case JSON_NODE_OBJECT: return refuse_value(key, "an object as its value", err);
    case JSON_NODE_ARRAY: return meta_check_array(json, node, key, err);
    default: return LODE_OK;
  }
}

lode_status meta_check(json_doc *parsed, lode_str text, bool allow_null, lode_error *err) {
  if (text.len > LODE_MAX_METADATA_BYTES) {
    return err_set(err, LODE_REFUSED,
                   "the metadata is %zu bytes long, the limit is %u: keep large texts in the document", text.len,
                   LODE_MAX_METADATA_BYTES);
  }
  lode_error why;
  lode_status st = json_parse(parsed, text, NULL, &why);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK) return err_set(err, LODE_REFUSED, "the metadata is not usable: %s", why.text);
  if (parsed->nodes[0].type != JSON_NODE_OBJECT) {
    return err_set(err, LODE_REFUSED, "the metadata is not a JSON object; write {\"key\": value, ...}");
  }
  key_table table;
  uint32_t twice;
  st = key_table_init(&table, parsed, &twice, err);
  key_table_release(&table);
  if (st != LODE_OK) return st;
  if (twice) {
    char shown[256];
    return err_set(err, LODE_REFUSED, "the metadata has the key %s twice; name each key once",
                   str_quote(parsed->nodes[twice].u.s, shown, sizeof shown));
  }
  for (uint32_t k = 1; k < parsed->nodes[0].next; k = parsed->nodes[k + 1].next) {
    TRY(meta_check_value(parsed, k + 1, parsed->nodes[k].u.s, allow_null, err));
  }
  return LODE_OK;
}

/* ---- Values of a record ---- */

static bool seen_before(const json_doc *json, uint32_t array, uint32_t element, const meta_value *value) {
  meta_value other;
  for (uint32_t e = array + 1; e < element; e = json->nodes[e].next) {
    if (meta_value_of(json, e, &other) && meta_value_cmp(&other, value) == 0) return true;
  }
  return false;
}

static lode_status few_elements(const json_doc *json, uint32_t array, lode_str key, meta_value_fn *fn, void *ctx,
                                lode_error *err) {
  meta_value value;
  for (uint32_t e = array + 1; e < json->nodes[array].next; e = json->nodes[e].next) {
    if (!meta_value_of(json, e, &value) || seen_before(json, array, e, &value)) continue;
    TRY(fn(ctx, key, &value, err));
  }
  return LODE_OK;
}

static lode_status many_elements(const json_doc *json, uint32_t array, lode_str key, meta_value_fn *fn, void *ctx,
                                 lode_error *err) {
  lode_status st = LODE_OK;
  size_t n = 0;
  meta_value *values = mem_calloc(json->nodes[array].u.count, sizeof *values);
  if (!values) return err_nomem(err);
  for (uint32_t e = array + 1; e < json->nodes[array].next; e = json->nodes[e].next) {
    if (meta_value_of(json, e, &values[n])) n++;
  }
  TRY_GOTO(meta_values_sort(values, &n, err));
  for (size_t i = 0; i < n; i++) TRY_GOTO(fn(ctx, key, &values[i], err));
done:
  mem_free(values);
  return st;
}

lode_status meta_each_value(const json_doc *parsed, meta_value_fn *fn, void *ctx, lode_error *err) {
  const json_node *nodes = parsed->nodes;
  for (uint32_t k = 1; k < nodes[0].next; k = nodes[k + 1].next) {
    lode_str key = nodes[k].u.s;
    uint32_t at = k + 1;
    meta_value value;
    if (meta_value_of(parsed, at, &value)) {
      TRY(fn(ctx, key, &value, err));
    } else if (nodes[at].type == JSON_NODE_ARRAY) {
      TRY((nodes[at].u.count <= META_FEW ? few_elements : many_elements)(parsed, at, key, fn, ctx, err));
    }
  }
  return LODE_OK;
}

/* ---- Merging ---- */

static void put_pair(strbuf *out, size_t start, const json_doc *json, uint32_t key, uint32_t value_node,
                     const json_doc *value_json) {
  strbuf_addch(out, out->len == start ? '{' : ',');
  json_put_string(out, json->nodes[key].u.s);
  strbuf_addch(out, ':');
  json_put_node(out, value_json, value_node);
}

static void put_kept(strbuf *out, size_t start, const json_doc *old, const key_table *changes) {
  const json_doc *change = changes->json;
  for (uint32_t k = 1; k < old->nodes[0].next; k = old->nodes[k + 1].next) {
    uint32_t now = key_find(changes, old->nodes[k].u.s);
    if (!now) {
      put_pair(out, start, old, k, k + 1, old);
    } else if (change->nodes[now].type != JSON_NODE_NULL) {
      put_pair(out, start, old, k, now, change);
    }
  }
}

static void put_new(strbuf *out, size_t start, const json_doc *change, const key_table *olds) {
  for (uint32_t k = 1; k < change->nodes[0].next; k = change->nodes[k + 1].next) {
    if (change->nodes[k + 1].type == JSON_NODE_NULL) continue;
    if (olds && key_find(olds, change->nodes[k].u.s)) continue;
    put_pair(out, start, change, k, k + 1, change);
  }
}

lode_status meta_merge(const json_doc *old, const json_doc *change, strbuf *out, bool *empty, lode_error *err) {
  lode_status st = LODE_OK;
  key_table olds = {0}, changes = {0};
  uint32_t twice;
  size_t start = out->len;
  *empty = false;
  if (old) {
    TRY_GOTO(key_table_init(&olds, old, &twice, err));
    TRY_GOTO(key_table_init(&changes, change, &twice, err));
    put_kept(out, start, old, &changes);
  }
  put_new(out, start, change, old ? &olds : NULL);
  *empty = out->len == start;
  if (!*empty) strbuf_addch(out, '}');
  if (out->failed) st = err_nomem(err);
  if (st == LODE_OK && out->len - start > LODE_MAX_METADATA_BYTES) {
    st = err_set(err, LODE_REFUSED, "the merged metadata is %zu bytes long, the limit is %u: remove keys with null",
                 out->len - start, LODE_MAX_METADATA_BYTES);
    out->len = start;
  }
done:
  key_table_release(&olds);
  key_table_release(&changes);
  if (st != LODE_OK) *empty = false;
  return st;
}

lode_status meta_parse_stored(json_doc *parsed, lode_str text, lode_error *err) {
  lode_status st = json_parse(parsed, text, NULL, NULL);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st == LODE_OK && parsed->nodes[0].type == JSON_NODE_OBJECT) return LODE_OK;
  return err_set(err, LODE_CORRUPT, "stored metadata is not a JSON object: run `lode db verify`");
}
