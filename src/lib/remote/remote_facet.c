/* SPDX-License-Identifier: Apache-2.0 */
/* remote_facet.c - facets: counted by Qdrant where that is exact, otherwise by reading the records.
 *
 * Qdrant counts the words of a key (remote_point.c). With a filter, on a read-only handle (which cannot create the
 * index that Qdrant needs), or if a long string is stored as its hash, the records are read and counted here.
 */
#include "remote/remote_select.h"
#include "iface/iface_facets.h"

enum { REMOTE_MAX_FACETS = 100000 };

typedef struct remote_facet_counts {
  iface_facets totals;
  lode_str key;
} remote_facet_counts;

/* ---- By the records ---- */

static lode_status remote_facet_count_value(void *ctx, lode_str key, const meta_value *v, lode_error *err) {
  remote_facet_counts *t = ctx;
  return str_eq(key, t->key) ? iface_facets_add(&t->totals, v, 1, err) : LODE_OK;
}

static lode_status remote_facet_count_recs(remote_facet_counts *t, remote_select *select, const remote_entry *entry,
                                           lode_error *err) {
  remote_scroll scroll;
  json_doc json = {0};
  lode_status st;
  TRY(remote_select_plan(select, entry, err));
  remote_scroll_init(&scroll, select, entry, LODE_METADATA);
  for (;;) {
    remote_point p;
    bool more;
    TRY_GOTO(remote_scroll_next(&scroll, &p, &more, err));
    if (!more) break;
    if (!p.metadata.data) continue;
    TRY_GOTO(meta_parse_stored(&json, p.metadata, err));
    TRY_GOTO(meta_each_value(&json, remote_facet_count_value, t, err));
  }
done:
  remote_scroll_release(&scroll);
  json_release(&json);
  return st;
}

/* ---- By Qdrant ---- */

/* *complete: the response has all values, and none as a hash. */
static lode_status remote_facet_count_words(remote_facet_counts *t, remote_collection *c, const remote_entry *entry,
                                            bool *complete, lode_error *err) {
  char field[REMOTE_FIELD_BYTES];
  remote_call call = {0};
  strbuf text = {0};
  json_doc value = {0};
  lode_status st;
  *complete = false;
  remote_point_field('f', t->key, field);
  TRY_GOTO(remote_index_field(c, entry, field, "keyword", err));
  remote_generation_path(&call, c->store, entry, "/facet");
  strbuf_addf(&call.body, "{\"key\":\"%s\",\"limit\":%d,\"exact\":true}", field, REMOTE_MAX_FACETS);
  st = remote_call_send(c->store, "POST", &call, err);
  if (st != LODE_OK) goto done;
  uint32_t list = call.answer.nodes[call.result].type == JSON_NODE_OBJECT
                      ? json_get(&call.answer, call.result, STR_LIT("hits"))
                      : 0;
  if (!list || call.answer.nodes[list].type != JSON_NODE_ARRAY || call.answer.nodes[list].u.count >= REMOTE_MAX_FACETS)
    goto done;
  for (uint32_t at = list + 1; at < call.answer.nodes[list].next; at = call.answer.nodes[at].next) {
    uint32_t word = json_get(&call.answer, at, STR_LIT("value")), n = json_get(&call.answer, at, STR_LIT("count"));
    meta_value v;
    if (!word || !n || call.answer.nodes[word].type != JSON_NODE_STRING || call.answer.nodes[n].type != JSON_NODE_INT)
      goto done;
    if (call.answer.nodes[n].u.i <= 0) continue;
    text.len = 0;
    if (!remote_value_from_word(call.answer.nodes[word].u.s, &text)) goto done;
    TRY_GOTO(json_parse(&value, (lode_str){text.data, text.len}, NULL, err));
    if (!meta_value_of(&value, 0, &v)) goto done;
    TRY_GOTO(iface_facets_add(&t->totals, &v, (uint64_t)call.answer.nodes[n].u.i, err));
  }
  *complete = true;
done:
  remote_call_release(&call);
  strbuf_release(&text);
  json_release(&value);
  return st;
}

/* ---- The public functions ---- */

static lode_status remote_facet_collect(remote_collection *c, bool fresh, remote_select *select, remote_facet_counts *t,
                                        mem_arena *arena, lode_error *err) {
  remote_entry entry;
  bool complete = false;
  TRY(remote_entry_of(c, fresh, arena, &entry, err));
  iface_facets_clear(&t->totals);
  if (!select->has_filter && !c->store->head.options->read_only)
    TRY(remote_facet_count_words(t, c, &entry, &complete, err));
  if (complete) return LODE_OK;
  iface_facets_clear(&t->totals);
  return remote_facet_count_recs(t, select, &entry, err);
}

lode_status remote_facets(lode_collection *head, lode_str key, lode_str where, size_t limit, lode_facet_list **list,
                          lode_error *err) {
  remote_collection *c = remote_collection_of(head);
  lode_selection what = {.where = where};
  remote_select select = {0};
  remote_facet_counts t = {.key = key};
  mem_arena arena;
  lode_status st;
  err_clear(err);
  *list = NULL;
  iface_facets_init(&t.totals, c->store->head.options->memory_bytes);
  mem_arena_init(&arena, 0);
  if (!key.data) {
    st = err_set(err, LODE_INVALID, "name the metadata key whose values are to be counted");
    goto done;
  }
  TRY_GOTO(remote_select_init(&select, c, &what, err));
  st = remote_facet_collect(c, false, &select, &t, &arena, err);
  if (st == LODE_NOT_FOUND) st = remote_facet_collect(c, true, &select, &t, &arena, err);
  if (st == LODE_OK) {
    err_clear(err);
    st = iface_facets_list(&t.totals, limit, list, err);
  }
done:
  remote_select_release(&select);
  iface_facets_release(&t.totals);
  mem_arena_release(&arena);
  return st;
}

/* The values of a declared counter; without a key, the declared counters with their numbers of values. */
lode_status remote_counters(lode_collection *head, lode_str key, lode_facet_list **list, lode_error *err) {
  remote_collection *c = remote_collection_of(head);
  remote_entry entry;
  mem_arena arena;
  json_doc json = {0};
  iface_facets counters;
  lode_status st;
  bool declared = false;
  err_clear(err);
  *list = NULL;
  mem_arena_init(&arena, 0);
  iface_facets_init(&counters, c->store->head.options->memory_bytes);
  TRY_GOTO(remote_entry_of(c, false, &arena, &entry, err));
  if (entry.counters.data) TRY_GOTO(json_parse(&json, entry.counters, NULL, err));
  for (uint32_t at = 1; json.count && at < json.nodes[0].next; at = json.nodes[at].next) {
    meta_value v = {.type = META_STRING, .s = json.nodes[at].u.s};
    if (json.nodes[0].type != JSON_NODE_ARRAY || json.nodes[at].type != JSON_NODE_STRING) break; /* not ours */
    declared = declared || (key.data && str_eq(key, v.s));
    if (key.data) continue;
    lode_facet_list *values;
    TRY_GOTO(remote_facets(head, v.s, (lode_str){0}, 0, &values, err));
    size_t n = lode_facet_list_count(values);
    lode_facet_list_free(values);
    TRY_GOTO(iface_facets_add(&counters, &v, n, err));
  }
  if (!key.data) {
    st = iface_facets_list(&counters, 0, list, err);
  } else if (!declared) {
    char quoted[256];
    st = err_set(err, LODE_NOT_FOUND, "%s was not declared as a counter when the collection was made: use facets",
                 str_quote(key, quoted, sizeof quoted));
  } else {
    st = remote_facets(head, key, (lode_str){0}, 0, list, err);
  }
done:
  json_release(&json);
  iface_facets_release(&counters);
  mem_arena_release(&arena);
  return st;
}
