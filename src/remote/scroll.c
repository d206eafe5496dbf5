/* scroll.c - the points of a collection in the order of insertion: by n, then by id.
 *
 * Qdrant gives a page by n from a place on. Several processes may have given out the same n: the points with the last n of a
 * full page are left to the next one, which begins there, so that no page ends between two of them. A place in the order is
 * n << 11 | how many with that n were seen.
 */
#include "remote.h"

enum { PAGE = 256, MOST_PAGE = 65536, PLACE_BITS = 11 };

void lode__scroll_init(lode__scroll *s, lode__remote_select *select, const lode__remote_kind *kind, unsigned include) {
  *s = (lode__scroll){.select = select, .kind = kind, .include = include, .page = include ? PAGE : PAGE * 4};
}

void lode__scroll_release(lode__scroll *s) {
  lode__call_release(&s->call);
  mem_free(s->nodes);
  mem_free(s->ns);
  strbuf_release(&s->vector);
  *s = (lode__scroll){0};
}

void lode__scroll_from(lode__scroll *s, uint64_t place) {
  s->start = place >> PLACE_BITS;
  s->skip = place & ((1u << PLACE_BITS) - 1);
}

bool lode__scroll_is_place(uint64_t place) { return place >> PLACE_BITS < ((uint64_t)1 << 53) - 1; }

uint64_t lode__scroll_place(const lode__scroll *s, const lode__point *p) {
  uint64_t before = 0;
  for (size_t i = s->at; i > 0 && s->ns[i - 1] == p->n; i--) before++;
  return p->n << PLACE_BITS | (before < (1u << PLACE_BITS) ? before : (1u << PLACE_BITS) - 1);
}

static lode_str id_of(const json_doc *j, uint32_t node) {
  uint32_t payload = json_get(j, node, STR_LIT("payload"));
  uint32_t id = payload ? json_get(j, payload, STR_LIT("id")) : 0;
  return id && j->nodes[id].type == JSON_NODE_STRING ? j->nodes[id].u.s : (lode_str){"", 0};
}

static int by_id(const void *a, const void *b, void *ctx) {
  const json_doc *j = ctx;
  return str_cmp(id_of(j, *(const uint32_t *)a), id_of(j, *(const uint32_t *)b));
}

static lode_status ask(lode__scroll *s, lode_error *err) {
  strbuf *body = &s->call.body;
  const lode__remote_kind *k = s->kind;
  lode__remote_path(&s->call, s->select->c->store, k, "/points/scroll");
  strbuf_addf(body, "{\"limit\":%zu,", s->page);
  lode__point_want(body, s->include, lode__remote_needs_document(s->select), k->metric, k->fit.dim != 0);
  lode__remote_put_filter(body, s->select, (lode_str){0});
  strbuf_addstr(body, ",\"order_by\":{\"key\":\"n\",\"direction\":\"asc\"");
  if (s->start) strbuf_addf(body, ",\"start_from\":%llu", (unsigned long long)s->start);
  strbuf_addstr(body, "}}");
  return lode__call_send(s->select->c->store, "POST", &s->call, err);
}

/* Nodes and numbers of the page, in order. */
static lode_status list(lode__scroll *s, lode_error *err) {
  const json_doc *j = &s->call.answer;
  uint32_t points = j->nodes[s->call.result].type == JSON_NODE_OBJECT ? json_get(j, s->call.result, STR_LIT("points")) : 0;
  s->count = s->at = 0;
  if (!points || j->nodes[points].type != JSON_NODE_ARRAY)
    return err_set(err, LODE_CORRUPT, "the cluster's answer is not one of Qdrant's (no points)");
  size_t n = j->nodes[points].u.count;
  if (!mem_grow(&s->nodes, &s->cap_nodes, n, sizeof *s->nodes) || !mem_grow(&s->ns, &s->cap_ns, n, sizeof *s->ns))
    return err_nomem(err);
  for (uint32_t at = points + 1; at < j->nodes[points].next; at = j->nodes[at].next) {
    lode__point p;
    TRY(lode__point_take(j, at, s->kind->metric, NULL, &p, err));
    if (p.n < s->start || (s->count && p.n < s->ns[s->count - 1]))
      return err_set(err, LODE_CORRUPT, "the cluster's answer is not in the order that was asked for");
    s->nodes[s->count] = at;
    s->ns[s->count++] = p.n;
  }
  for (size_t from = 0, to; from < s->count; from = to) {
    for (to = from + 1; to < s->count && s->ns[to] == s->ns[from]; to++) {}
    if (to - from > 1) qsort_r(s->nodes + from, to - from, sizeof *s->nodes, by_id, (void *)(uintptr_t)j);
  }
  return LODE_OK;
}

static lode_status turn_page(lode__scroll *s, lode_error *err) {
  for (;;) {
    TRY(ask(s, err));
    TRY(list(s, err));
    s->last = s->count < s->page;
    if (s->last || s->ns[0] != s->ns[s->count - 1]) break;
    if (s->page >= MOST_PAGE) return err_set(err, LODE_LIMIT, "the collection has more than %d records of one moment", MOST_PAGE);
    s->page *= 2; /* all of one n: more of them at once */
  }
  while (s->at < s->count && s->ns[s->at] == s->start && s->at < s->skip) s->at++;
  if (s->last) return LODE_OK;
  uint64_t end = s->ns[s->count - 1];
  while (s->ns[s->count - 1] == end) s->count--;
  return LODE_OK;
}

lode_status lode__scroll_next(lode__scroll *s, lode__point *p, bool *more, lode_error *err) {
  *more = false;
  for (;;) {
    while (s->at >= s->count) {
      if (s->last) return LODE_OK;
      if (s->count) { /* the next page begins with the n that this one left out */
        s->start = s->ns[s->count];
        s->skip = 0;
      }
      TRY(turn_page(s, err));
    }
    TRY(lode__point_take(&s->call.answer, s->nodes[s->at++], s->kind->metric,
                               s->include & LODE_VECTOR ? &s->vector : NULL, p, err));
    TRY(lode__remote_select_match(s->select, p, more, err));
    if (*more) return LODE_OK;
  }
}
