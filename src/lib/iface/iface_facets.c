/* SPDX-License-Identifier: Apache-2.0 */
/* iface_facets.c - counts of values: a hash table of values, sorted into a list at the end. */
#include "iface/iface_facets.h"

struct iface_facet_count {
  meta_value value;
  uint64_t hash;
  uint64_t n;
};

void iface_facets_init(iface_facets *t, uint64_t limit_bytes) {
  *t = (iface_facets){.limit_bytes = limit_bytes > SIZE_MAX ? SIZE_MAX : (size_t)limit_bytes};
  mem_arena_init(&t->arena, 0);
}

void iface_facets_release(iface_facets *t) {
  mem_free(t->counts);
  mem_free(t->slots);
  mem_arena_release(&t->arena);
}

void iface_facets_clear(iface_facets *t) {
  size_t limit = t->limit_bytes;
  iface_facets_release(t);
  iface_facets_init(t, limit);
}

/* ---- Counting ---- */

static meta_value facets_normalize(meta_value v) {
  if (v.type == META_DOUBLE && v.d >= -0x1p63 && v.d < 0x1p63 && v.d == (double)(int64_t)v.d)
    return (meta_value){.type = META_INT, .i = (int64_t)v.d};
  return v;
}

static uint64_t facets_hash(const meta_value *v) {
  switch (v->type) {
    case META_STRING: return hash_bytes(v->s.data, v->s.len);
    case META_DOUBLE: return hash_bytes(&v->d, sizeof v->d);
    default: return hash_bytes(&v->i, sizeof v->i) + (v->type == META_BOOL);
  }
}

static bool facets_values_equal(const meta_value *a, const meta_value *b) {
  return a->type == b->type && meta_value_cmp(a, b) == 0;
}

static lode_status facets_rehash(iface_facets *t, lode_error *err) {
  size_t n = t->n_slots ? t->n_slots * 2 : 256;
  size_t *slots = mem_calloc(n, sizeof *slots);
  if (!slots) return err_nomem(err);
  for (size_t i = 0; i < t->n; i++) {
    size_t at = t->counts[i].hash & (n - 1);
    while (slots[at]) at = (at + 1) & (n - 1);
    slots[at] = i + 1;
  }
  mem_free(t->slots);
  t->slots = slots;
  t->n_slots = n;
  return LODE_OK;
}

static lode_status facets_add_value(iface_facets *t, iface_facet_count count, size_t slot, lode_error *err) {
  size_t bytes = t->arena.used + t->n * sizeof *t->counts + t->n_slots * sizeof *t->slots;
  if (bytes > t->limit_bytes)
    return err_set(err, LODE_LIMIT,
                   "the key has more different values than fit in the store's memory budget: narrow them "
                   "by a filter, or open the store with more memory_bytes");
  if (count.value.type == META_STRING) {
    lode_str *s = &count.value.s;
    s->data = mem_arena_copy(&t->arena, s->data, s->len);
    if (!s->data) return err_nomem(err);
  }
  if (!mem_grow(&t->counts, &t->cap, t->n + 1, sizeof *t->counts)) return err_nomem(err);
  t->counts[t->n] = count;
  t->last = t->n++;
  t->slots[slot] = t->n;
  return LODE_OK;
}

lode_status iface_facets_add(iface_facets *t, const meta_value *value, uint64_t n, lode_error *err) {
  meta_value v = facets_normalize(*value);
  if (t->n && facets_values_equal(&t->counts[t->last].value, &v)) {
    t->counts[t->last].n += n;
    return LODE_OK;
  }
  if (t->n * 4 >= t->n_slots * 3) TRY(facets_rehash(t, err));
  uint64_t hash = facets_hash(&v);
  size_t at = hash & (t->n_slots - 1);
  for (; t->slots[at]; at = (at + 1) & (t->n_slots - 1)) {
    iface_facet_count *c = &t->counts[t->slots[at] - 1];
    if (c->hash != hash || !facets_values_equal(&c->value, &v)) continue;
    c->n += n;
    t->last = t->slots[at] - 1;
    return LODE_OK;
  }
  return facets_add_value(t, (iface_facet_count){.value = v, .hash = hash, .n = n}, at, err);
}

/* ---- The list ---- */

static int facets_compare_counts(const void *a, const void *b) {
  const iface_facet_count *x = a, *y = b;
  if (x->n != y->n) return x->n > y->n ? -1 : 1;
  return meta_value_cmp(&x->value, &y->value);
}

lode_status iface_facets_list(iface_facets *t, size_t limit, lode_facet_list **out, lode_error *err) {
  strbuf buf = {0};
  lode_status st = LODE_OK;
  lode_facet_list *list = mem_calloc(1, sizeof *list);
  size_t n = limit && limit < t->n ? limit : t->n;
  if (!list) return err_nomem(err);
  mem_arena_init(&list->arena, 0);
  if (t->n) qsort(t->counts, t->n, sizeof *t->counts, facets_compare_counts);
  list->facets = mem_calloc(n, sizeof *list->facets);
  if (!list->facets) st = err_nomem(err);
  for (size_t i = 0; i < n && st == LODE_OK; i++) {
    buf.len = 0;
    meta_value_put(&buf, &t->counts[i].value);
    char *text = buf.failed ? NULL : mem_arena_copy(&list->arena, buf.data, buf.len);
    if (!text) st = err_nomem(err);
    list->facets[list->n++] = (lode_facet){{text, buf.len}, t->counts[i].n};
  }
  strbuf_release(&buf);
  if (st == LODE_OK)
    *out = list;
  else
    lode_facet_list_free(list);
  return st;
}
