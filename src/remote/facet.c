/* facet.c - facets: by Qdrant's own count where it can be exact, else by looking at the records.
 *
 * Its count knows the words of a key (point.c). It cannot judge filters that are more than words, and a long string is a
 * word of its hash: in both cases the records are counted here.
 */
#include "remote.h"

enum { MOST_FACETS = 100000 };

typedef struct count {
  lode__value value;   /* strings in the arena */
  uint64_t n;
} count;

typedef struct counts {
  count *v;
  size_t n, cap;
  lode__arena arena;
  lode_str key;
} counts;

/* Numbers that are equal are one value, written as an integer where they are one. */
static lode__value normal(lode__value v) {
  if (v.type == LODE__VALUE_DOUBLE && v.d >= -0x1p63 && v.d < 0x1p63 && v.d == (double)(int64_t)v.d)
    return (lode__value){.type = LODE__VALUE_INT, .i = (int64_t)v.d};
  return v;
}

static lode_status add(counts *t, const lode__value *value, uint64_t n, lode_error *err) {
  if (!lode__grow(&t->v, &t->cap, t->n + 1, sizeof *t->v)) return lode__fail_nomem(err);
  count *c = &t->v[t->n];
  *c = (count){normal(*value), n};
  if (value->type == LODE__VALUE_STRING) {
    c->value.s.data = lode__arena_copy(&t->arena, value->s.data, value->s.len);
    if (!c->value.s.data) return lode__fail_nomem(err);
  }
  t->n++;
  return LODE_OK;
}

static int by_value(const void *a, const void *b) { return lode__value_cmp(&((const count *)a)->value, &((const count *)b)->value); }

static int by_count(const void *a, const void *b) {
  const count *x = a, *y = b;
  if (x->n != y->n) return x->n > y->n ? -1 : 1;
  return lode__value_cmp(&x->value, &y->value);
}

/* Adds up equal values; the first form of a value stays. */
static void add_up(counts *t) {
  size_t n = 0;
  if (t->n) qsort(t->v, t->n, sizeof *t->v, by_value);
  for (size_t i = 0; i < t->n; i++) {
    if (n && lode__value_cmp(&t->v[n - 1].value, &t->v[i].value) == 0) t->v[n - 1].n += t->v[i].n;
    else t->v[n++] = t->v[i];
  }
  t->n = n;
}

/* ---- By the records ---- */

static lode_status count_value(void *ctx, lode_str key, const lode__value *v, lode_error *err) {
  counts *t = ctx;
  return lode__str_eq(key, t->key) ? add(t, v, 1, err) : LODE_OK;
}

static lode_status count_records(counts *t, lode__remote_select *select, const lode__remote_kind *kind, lode_error *err) {
  lode__scroll scroll;
  lode__json json = {0};
  lode_status st;
  size_t since = 0;
  LODE__TRY(lode__remote_select_plan(select, kind, err));
  lode__scroll_init(&scroll, select, kind, LODE_METADATA);
  for (;;) {
    lode__point p;
    bool more;
    LODE__GOTO(lode__scroll_next(&scroll, &p, &more, err));
    if (!more) break;
    if (!p.metadata.data) continue;
    LODE__GOTO(lode__meta_parse_stored(&json, p.metadata, err));
    LODE__GOTO(lode__meta_values(&json, count_value, t, err));
    if (t->n - since > 65536) {
      add_up(t);
      since = t->n;
    }
  }
  add_up(t);
done:
  lode__scroll_release(&scroll);
  lode__json_release(&json);
  return st;
}

/* ---- By Qdrant ---- */

/* *whole: the answer has all values, each as it is. */
static lode_status count_words(counts *t, lode_collection *c, const lode__remote_kind *kind, bool *whole, lode_error *err) {
  char field[LODE__FIELD_TEXT_BYTES];
  lode__call call = {0};
  lode__buf text = {0};
  lode__json value = {0};
  lode_status st;
  *whole = false;
  lode__point_field('f', t->key, field);
  LODE__GOTO(lode__remote_index(c, kind, field, "keyword", err));
  lode__remote_path(&call, c->store, kind, "/facet");
  lode__buf_addf(&call.body, "{\"key\":\"%s\",\"limit\":%d,\"exact\":true}", field, MOST_FACETS);
  st = lode__call_send(c->store, "POST", &call, err);
  if (st != LODE_OK) goto done;
  uint32_t list = call.answer.nodes[call.result].type == LODE__JSON_OBJECT
                      ? lode__json_get(&call.answer, call.result, LODE__LIT("hits")) : 0;
  if (!list || call.answer.nodes[list].type != LODE__JSON_ARRAY || call.answer.nodes[list].u.count >= MOST_FACETS) goto done;
  for (uint32_t at = list + 1; at < call.answer.nodes[list].next; at = call.answer.nodes[at].next) {
    uint32_t word = lode__json_get(&call.answer, at, LODE__LIT("value")), n = lode__json_get(&call.answer, at, LODE__LIT("count"));
    lode__value v;
    if (!word || !n || call.answer.nodes[word].type != LODE__JSON_STRING || call.answer.nodes[n].type != LODE__JSON_INT) goto done;
    if (call.answer.nodes[n].u.i <= 0) continue;
    text.len = 0;
    if (!lode__point_unword(call.answer.nodes[word].u.s, &text)) goto done;
    LODE__GOTO(lode__json_parse(&value, (lode_str){text.data, text.len}, NULL, err));
    if (!lode__value_of(&value, 0, &v)) goto done;
    LODE__GOTO(add(t, &v, (uint64_t)call.answer.nodes[n].u.i, err));
  }
  *whole = true;
done:
  lode__call_release(&call);
  lode__buf_release(&text);
  lode__json_release(&value);
  return st;
}

/* ---- The public functions ---- */

static lode_status make_list(counts *t, size_t limit, lode_facet_list **out, lode_error *err) {
  lode_facet_list *list = lode__alloc_zero(1, sizeof *list);
  size_t n = limit && limit < t->n ? limit : t->n;
  lode__buf buf = {0};
  lode_status st = LODE_OK;
  if (!list) return lode__fail_nomem(err);
  lode__arena_init(&list->arena, 0);
  if (t->n) qsort(t->v, t->n, sizeof *t->v, by_count);
  list->facets = lode__alloc_zero(n, sizeof *list->facets);
  if (!list->facets) st = lode__fail_nomem(err);
  for (size_t i = 0; i < n && st == LODE_OK; i++) {
    buf.len = 0;
    lode__value_put(&buf, &t->v[i].value);
    char *text = buf.failed ? NULL : lode__arena_copy(&list->arena, buf.data, buf.len);
    if (!text) st = lode__fail_nomem(err);
    list->facets[list->n++] = (lode_facet){{text, buf.len}, t->v[i].n};
  }
  lode__buf_release(&buf);
  if (st == LODE_OK) *out = list;
  else lode_facet_list_free(list);
  return st;
}

static lode_status facets(lode_collection *c, bool fresh, lode__remote_select *select, counts *t, lode__arena *arena, lode_error *err) {
  lode__remote_kind kind;
  bool whole = false;
  LODE__TRY(lode__remote_kind_of(c, fresh, arena, &kind, err));
  t->n = 0;
  if (!select->has_filter && !c->store->options->read_only) LODE__TRY(count_words(t, c, &kind, &whole, err));
  if (whole) return LODE_OK;
  t->n = 0;
  return count_records(t, select, &kind, err);
}

lode_status lode__remote_facets(lode_collection *c, lode_str key, lode_str where, size_t limit, lode_facet_list **list, lode_error *err) {
  lode_selection what = {.where = where};
  lode__remote_select select = {0};
  counts t = {.key = key};
  lode__arena arena;
  lode_status st;
  lode__error_clear(err);
  *list = NULL;
  lode__arena_init(&t.arena, 0);
  lode__arena_init(&arena, 0);
  if (!key.data) {
    st = lode__fail(err, LODE_INVALID, "name the metadata key whose values are to be counted");
    goto done;
  }
  LODE__GOTO(lode__remote_select_init(&select, c, &what, err));
  st = facets(c, false, &select, &t, &arena, err);
  if (st == LODE_NOT_FOUND) st = facets(c, true, &select, &t, &arena, err);
  if (st == LODE_OK) {
    lode__error_clear(err);
    st = make_list(&t, limit, list, err);
  }
done:
  lode__remote_select_release(&select);
  lode__free(t.v);
  lode__arena_release(&t.arena);
  lode__arena_release(&arena);
  return st;
}

/* Is the key among those declared? An absent key lists them. */
lode_status lode__remote_counters(lode_collection *c, lode_str key, lode_facet_list **list, lode_error *err) {
  lode__remote_kind kind;
  lode__arena arena;
  lode__json json = {0};
  counts t = {0};
  lode_status st;
  bool declared = false;
  lode__error_clear(err);
  *list = NULL;
  lode__arena_init(&arena, 0);
  lode__arena_init(&t.arena, 0);
  LODE__GOTO(lode__remote_kind_of(c, false, &arena, &kind, err));
  if (kind.counters.data) LODE__GOTO(lode__json_parse(&json, kind.counters, NULL, err));
  for (uint32_t at = 1; json.count && at < json.nodes[0].next; at = json.nodes[at].next) {
    lode__value v = {.type = LODE__VALUE_STRING, .s = json.nodes[at].u.s};
    if (json.nodes[0].type != LODE__JSON_ARRAY || json.nodes[at].type != LODE__JSON_STRING) break; /* by no lode */
    declared = declared || (key.data && lode__str_eq(key, v.s));
    if (key.data) continue;
    lode_facet_list *values;
    LODE__GOTO(lode__remote_facets(c, v.s, (lode_str){0}, 0, &values, err));
    size_t n = lode_facet_list_count(values);
    lode_facet_list_free(values);
    LODE__GOTO(add(&t, &v, n, err));
  }
  if (!key.data) {
    st = make_list(&t, 0, list, err);
  } else if (!declared) {
    char quoted[256];
    st = lode__fail(err, LODE_NOT_FOUND, "%s was not declared as a counter when the collection was made: use facets",
                    lode__quote(key, quoted, sizeof quoted));
  } else {
    st = lode__remote_facets(c, key, (lode_str){0}, 0, list, err);
  }
done:
  lode__json_release(&json);
  lode__free(t.v);
  lode__arena_release(&t.arena);
  lode__arena_release(&arena);
  return st;
}
