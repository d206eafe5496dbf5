/* SPDX-License-Identifier: Apache-2.0 */
/* remote_scroll.c - the points of a collection in the order of insertion: by n, then by id.
 *
 * Qdrant returns pages ordered by n, from a given n on. Several processes may have used the same n, so the points
 * with the last n of a full page are left to the next page, which begins with that n: points with equal n are always
 * on one page. A position in the order is n << 11 | number of points with this n that were returned.
 */
#include "remote/remote_select.h"
#include "platform/platform.h"

enum { SCROLL_PAGE = 256, SCROLL_MAX_PAGE = 65536, SCROLL_POSITION_BITS = 11 };
_Static_assert(REMOTE_MAX_SAME_PLACE == (1 << SCROLL_POSITION_BITS) - 1, "the lower bits of a position");

void remote_scroll_init(remote_scroll *s, remote_select *select, const remote_entry *entry, unsigned include) {
  *s = (remote_scroll){
      .select = select, .entry = entry, .include = include, .page = include ? SCROLL_PAGE : SCROLL_PAGE * 4};
}

void remote_scroll_release(remote_scroll *s) {
  remote_call_release(&s->call);
  mem_free(s->nodes);
  mem_free(s->ns);
  strbuf_release(&s->vector);
  *s = (remote_scroll){0};
}

void remote_scroll_resume(remote_scroll *s, uint64_t position) {
  s->start = position >> SCROLL_POSITION_BITS;
  s->skip = position & ((1u << SCROLL_POSITION_BITS) - 1);
}

bool remote_scroll_is_position(uint64_t position) { return position >> SCROLL_POSITION_BITS < ((uint64_t)1 << 53) - 1; }

uint64_t remote_scroll_position(const remote_scroll *s, const remote_point *p) {
  uint64_t before = 0;
  for (size_t i = s->at; i > 0 && s->ns[i - 1] == p->n; i--) before++;
  return before <= REMOTE_MAX_SAME_PLACE ? p->n << SCROLL_POSITION_BITS | before : 0;
}

static lode_str scroll_id_of(const json_doc *j, uint32_t node) {
  uint32_t payload = json_get(j, node, STR_LIT("payload"));
  uint32_t id = payload ? json_get(j, payload, STR_LIT("id")) : 0;
  return id && j->nodes[id].type == JSON_NODE_STRING ? j->nodes[id].u.s : (lode_str){"", 0};
}

static int scroll_compare_ids(const void *a, const void *b, void *ctx) {
  const json_doc *j = ctx;
  return str_cmp(scroll_id_of(j, *(const uint32_t *)a), scroll_id_of(j, *(const uint32_t *)b));
}

static lode_status scroll_fetch(remote_scroll *s, lode_error *err) {
  strbuf *body = &s->call.body;
  const remote_entry *k = s->entry;
  remote_generation_path(&s->call, s->select->c->store, k, "/points/scroll");
  strbuf_addf(body, "{\"limit\":%zu,", s->page);
  remote_point_put_wanted(body, s->include, remote_select_needs_doc(s->select), k->metric, k->spec.dim != 0);
  remote_select_put_filter(body, s->select, (lode_str){0});
  strbuf_addstr(body, ",\"order_by\":{\"key\":\"n\",\"direction\":\"asc\"");
  if (s->start) strbuf_addf(body, ",\"start_from\":%llu", (unsigned long long)s->start);
  strbuf_addstr(body, "}}");
  return remote_call_send(s->select->c->store, "POST", &s->call, err);
}

/* Lists the points of the page, sorted by (n, id). */
static lode_status scroll_list_page(remote_scroll *s, lode_error *err) {
  const json_doc *j = &s->call.answer;
  uint32_t points =
      j->nodes[s->call.result].type == JSON_NODE_OBJECT ? json_get(j, s->call.result, STR_LIT("points")) : 0;
  s->count = s->at = 0;
  if (!points || j->nodes[points].type != JSON_NODE_ARRAY)
    return err_set(err, LODE_CORRUPT, "the cluster's answer is not one of Qdrant's (no points)");
  size_t n = j->nodes[points].u.count;
  if (!mem_grow(&s->nodes, &s->cap_nodes, n, sizeof *s->nodes) || !mem_grow(&s->ns, &s->cap_ns, n, sizeof *s->ns))
    return err_nomem(err);
  for (uint32_t at = points + 1; at < j->nodes[points].next; at = j->nodes[at].next) {
    remote_point p;
    TRY(remote_point_decode(j, at, s->entry->metric, NULL, &p, err));
    if (p.n < s->start || (s->count && p.n < s->ns[s->count - 1]))
      return err_set(err, LODE_CORRUPT, "the cluster's answer is not in the order that was asked for");
    s->nodes[s->count] = at;
    s->ns[s->count++] = p.n;
  }
  for (size_t from = 0, to; from < s->count; from = to) {
    for (to = from + 1; to < s->count && s->ns[to] == s->ns[from]; to++) {}
    if (to - from > 1) os_sort(s->nodes + from, to - from, sizeof *s->nodes, scroll_compare_ids, (void *)(uintptr_t)j);
  }
  return LODE_OK;
}

static lode_status scroll_next_page(remote_scroll *s, lode_error *err) {
  for (;;) {
    TRY(scroll_fetch(s, err));
    TRY(scroll_list_page(s, err));
    s->last = s->count < s->page;
    if (s->last || s->ns[0] != s->ns[s->count - 1]) break;
    if (s->page >= SCROLL_MAX_PAGE)
      return err_set(err, LODE_LIMIT, "the collection has more than %d records of one moment", SCROLL_MAX_PAGE);
    s->page *= 2; /* the whole page has one n: it must be larger */
  }
  while (s->at < s->count && s->ns[s->at] == s->start && s->at < s->skip) s->at++;
  if (s->last) return LODE_OK;
  uint64_t end = s->ns[s->count - 1];
  while (s->ns[s->count - 1] == end) s->count--;
  return LODE_OK;
}

lode_status remote_scroll_next(remote_scroll *s, remote_point *p, bool *more, lode_error *err) {
  *more = false;
  for (;;) {
    while (s->at >= s->count) {
      if (s->last) return LODE_OK;
      if (s->count) { /* the next page begins with the n that this one left to it */
        s->start = s->ns[s->count];
        s->skip = 0;
      }
      TRY(scroll_next_page(s, err));
    }
    TRY(remote_point_decode(&s->call.answer, s->nodes[s->at++], s->entry->metric,
                            s->include & LODE_VECTOR ? &s->vector : NULL, p, err));
    TRY(remote_select_match(s->select, p, more, err));
    if (*more) return LODE_OK;
  }
}
