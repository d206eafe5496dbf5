/* SPDX-License-Identifier: Apache-2.0 */
/* remote_read.c - get, count, export. */
#include "remote/remote_select.h"

enum { REMOTE_FIND_BATCH = 500 };

lode_status remote_result_add(lode_result *result, const remote_point *p, unsigned include, lode_row **out,
                              lode_error *err) {
  lode_row *row;
  TRY(iface_result_row(result, &row, err));
  row->cursor = p->seq;
  row->position = p->n;
  TRY(iface_result_copy(result, p->id, &row->id, err));
  if (include & LODE_METADATA) TRY(iface_result_copy(result, p->metadata, &row->metadata, err));
  if (include & LODE_DOCUMENT) TRY(iface_result_copy(result, p->document, &row->document, err));
  if ((include & LODE_VECTOR) && p->vector) {
    void *v;
    TRY(iface_result_alloc(result, (size_t)p->dim * sizeof(float), &v, err));
    memcpy(v, p->vector, (size_t)p->dim * sizeof(float));
    row->vector = v;
    row->dimension = p->dim;
  }
  iface_result_keep(result);
  *out = row;
  return LODE_OK;
}

/* ---- By id ---- */

typedef struct remote_wanted_id {
  lode_str id;
  size_t i;
} remote_wanted_id;

static int remote_compare_wanted(const void *a, const void *b) {
  const remote_wanted_id *x = a, *y = b;
  int c = str_cmp(x->id, y->id);
  return c ? c : (x->i > y->i) - (x->i < y->i);
}

/* A batch of sorted ids, and what the batches share. */
typedef struct remote_find_batch {
  const remote_find_request *request;
  const remote_wanted_id *ids;
  size_t n;
  remote_call call;
  strbuf vector; /* of the point that is being decoded */
} remote_find_batch;

static lode_status remote_find_send(remote_find_batch *b, lode_error *err) {
  const remote_find_request *r = b->request;
  const remote_entry *k = r->entry;
  strbuf *body = &b->call.body;
  remote_generation_path(&b->call, r->c->store, k, "/points");
  strbuf_addstr(body, "{\"ids\":[");
  for (size_t i = 0; i < b->n; i++) {
    char uuid[REMOTE_UUID_BYTES];
    remote_point_uuid(b->ids[i].id, uuid);
    strbuf_addf(body, i ? ",\"%s\"" : "\"%s\"", uuid);
  }
  strbuf_addstr(body, "],");
  if (r->with_payload)
    remote_point_put_wanted(body, r->include, (r->include & LODE_DOCUMENT) != 0, k->metric, k->spec.dim != 0);
  else
    strbuf_addstr(body, "\"with_payload\":[\"id\",\"n\"],\"with_vector\":false");
  strbuf_addch(body, '}');
  return remote_call_send(r->c->store, "POST", &b->call, err);
}

/* Passes the point on, for each time that its id is in the batch. */
static lode_status remote_find_pass_on(const remote_find_batch *b, const remote_point *p, lode_error *err) {
  size_t at = 0;
  SORT_LOWER_BOUND(at, b->n, str_cmp(b->ids[at].id, p->id) < 0);
  for (; at < b->n && str_eq(b->ids[at].id, p->id); at++) TRY(b->request->fn(b->request->ctx, b->ids[at].i, p, err));
  return LODE_OK;
}

static lode_status remote_find_some(remote_find_batch *b, lode_error *err) {
  const remote_find_request *r = b->request;
  TRY(remote_find_send(b, err));
  const json_doc *j = &b->call.answer;
  const json_node *points = &j->nodes[b->call.result];
  if (points->type != JSON_NODE_ARRAY) return err_set(err, LODE_CORRUPT, "the cluster's answer is not one of Qdrant's");
  for (uint32_t at = b->call.result + 1; at < points->next; at = j->nodes[at].next) {
    remote_point p;
    TRY(remote_point_decode(j, at, r->entry->metric, r->include & LODE_VECTOR ? &b->vector : NULL, &p, err));
    TRY(remote_find_pass_on(b, &p, err));
  }
  return LODE_OK;
}

lode_status remote_find(const remote_find_request *r, lode_error *err) {
  remote_find_batch b = {.request = r};
  lode_status st = LODE_OK;
  remote_wanted_id *list = mem_calloc(r->n, sizeof *list);
  if (!list) return err_nomem(err);
  for (size_t i = 0; i < r->n; i++) list[i] = (remote_wanted_id){r->ids[i], i};
  if (r->n) qsort(list, r->n, sizeof *list, remote_compare_wanted);
  for (size_t at = 0, end; at < r->n && st == LODE_OK; at = end) {
    end = r->n - at < REMOTE_FIND_BATCH ? r->n : at + REMOTE_FIND_BATCH;
    while (end < r->n && str_eq(list[end].id, list[end - 1].id)) end++; /* repeated ids stay in one batch */
    b.ids = list + at;
    b.n = end - at;
    st = remote_find_some(&b, err);
  }
  mem_free(list);
  remote_call_release(&b.call);
  strbuf_release(&b.vector);
  return st;
}

/* ---- Get ---- */

typedef struct remote_get_job {
  remote_collection *c;
  const lode_get_request *request;
  remote_select select;
  remote_entry entry;
  lode_result *result;
  size_t skip; /* rows still to skip */
  size_t left; /* rows still to return */
} remote_get_job;

/* Rows of a batch of ids, in the order of the request. */
typedef struct remote_get_batch {
  remote_get_job *g;
  lode_row *rows;
  bool *have;
} remote_get_batch;

static lode_status remote_get_keep_row(void *ctx, size_t i, const remote_point *p, lode_error *err) {
  remote_get_batch *b = ctx;
  lode_row *row;
  bool match;
  TRY(remote_select_match(&b->g->select, p, &match, err));
  if (!match) return LODE_OK;
  TRY(remote_result_add(b->g->result, p, b->g->request->include, &row, err));
  b->rows[i] = *row;
  b->have[i] = true;
  b->g->result->n--; /* remote_get_by_ids() adds it in the right order */
  return LODE_OK;
}

static lode_status remote_get_by_ids(remote_get_job *g, lode_error *err) {
  const lode_selection *what = g->select.what;
  unsigned include = g->request->include | (remote_select_needs_doc(&g->select) ? LODE_DOCUMENT : 0u);
  lode_status st = LODE_OK;
  remote_get_batch b = {.g = g,
                        .rows = mem_calloc(REMOTE_FIND_BATCH, sizeof *b.rows),
                        .have = mem_calloc(REMOTE_FIND_BATCH, sizeof *b.have)};
  if (!b.rows || !b.have) {
    st = err_nomem(err);
    goto done;
  }
  for (size_t at = g->request->after; at < what->n_ids && g->left; at += REMOTE_FIND_BATCH) {
    size_t n = what->n_ids - at < REMOTE_FIND_BATCH ? what->n_ids - at : REMOTE_FIND_BATCH;
    memset(b.have, 0, REMOTE_FIND_BATCH * sizeof *b.have);
    remote_find_request find = {.c = g->c,
                                .entry = &g->entry,
                                .ids = what->ids + at,
                                .n = n,
                                .include = include,
                                .with_payload = true,
                                .fn = remote_get_keep_row,
                                .ctx = &b};
    TRY_GOTO(remote_find(&find, err));
    for (size_t i = 0; i < n && g->left; i++) {
      lode_row *row;
      if (!b.have[i]) continue;
      if (g->skip) {
        g->skip--;
        continue;
      }
      TRY_GOTO(iface_result_row(g->result, &row, err));
      *row = b.rows[i];
      iface_result_keep(g->result);
      if (--g->left == 0 && at + i + 1 < what->n_ids) g->result->next = at + i + 1;
    }
  }
done:
  mem_free(b.rows);
  mem_free(b.have);
  return st;
}

static lode_status remote_get_in_order(remote_get_job *g, lode_error *err) {
  remote_scroll scroll;
  lode_status st;
  bool more;
  uint64_t position = 0;
  TRY(remote_select_plan(&g->select, &g->entry, err));
  remote_scroll_init(&scroll, &g->select, &g->entry, g->request->include);
  remote_scroll_resume(&scroll, g->request->after);
  scroll.call.progress = g->request->progress;
  for (;;) {
    remote_point p;
    lode_row *row;
    TRY_GOTO(remote_scroll_next(&scroll, &p, &more, err));
    if (!more) break;
    if (g->skip) {
      g->skip--;
      continue;
    }
    if (!g->left) { /* there is at least one more record */
      g->result->next = position;
      if (!position)
        st = err_set(err, LODE_LIMIT,
                     "more than %d records have one place in the order: ask for all records at once, or by id",
                     REMOTE_MAX_SAME_PLACE);
      break;
    }
    TRY_GOTO(remote_result_add(g->result, &p, g->request->include, &row, err));
    if (--g->left == 0) position = remote_scroll_position(&scroll, &p);
  }
done:
  remote_scroll_release(&scroll);
  return st;
}

static lode_status remote_get_run(remote_get_job *g, bool fresh, mem_arena *arena, lode_error *err) {
  TRY(remote_entry_of(g->c, fresh, arena, &g->entry, err));
  g->skip = g->request->offset;
  g->left = g->request->limit ? g->request->limit : SIZE_MAX;
  return g->select.what->ids ? remote_get_by_ids(g, err) : remote_get_in_order(g, err);
}

static lode_status remote_get_check_request(const lode_get_request *r, lode_error *err) {
  TRY(iface_check_include(r->include, err));
  if (r->select.ids ? r->after <= r->select.n_ids : remote_scroll_is_position(r->after)) return LODE_OK;
  return err_set(err, LODE_INVALID,
                 "after is %llu, which no page of this request has returned: pass lode_result_next()",
                 (unsigned long long)r->after);
}

lode_status remote_get(lode_collection *head, const lode_get_request *request, lode_result **out, lode_error *err) {
  remote_collection *c = remote_collection_of(head);
  remote_get_job g = {.c = c, .request = request};
  mem_arena arena;
  lode_status st;
  err_clear(err);
  *out = NULL;
  mem_arena_init(&arena, 0);
  TRY_GOTO(remote_get_check_request(request, err));
  TRY_GOTO(remote_select_init(&g.select, c, &request->select, err));
  g.select.pending_only = request->pending_only;
  TRY_GOTO(iface_result_new(c->store->head.options->memory_bytes, &g.result, err));
  st = remote_get_run(&g, false, &arena, err);
  if (st == LODE_NOT_FOUND) { /* the generation has changed, or the collection was dropped */
    lode_result_free(g.result);
    g.result = NULL;
    TRY_GOTO(iface_result_new(c->store->head.options->memory_bytes, &g.result, err));
    st = remote_get_run(&g, true, &arena, err);
  }
  if (st == LODE_OK) {
    err_clear(err);
    *out = g.result;
    g.result = NULL;
  }
done:
  lode_result_free(g.result);
  remote_select_release(&g.select);
  mem_arena_release(&arena);
  return st;
}

lode_status remote_count(lode_collection *head, uint64_t *count, lode_error *err) {
  remote_collection *c = remote_collection_of(head);
  remote_entry k;
  mem_arena arena;
  err_clear(err);
  *count = 0;
  mem_arena_init(&arena, 0);
  lode_status st = remote_entry_of(c, false, &arena, &k, err);
  if (st == LODE_OK) st = remote_count_points(c->store, &k, count, NULL, err);
  if (st == LODE_NOT_FOUND) {
    st = remote_entry_of(c, true, &arena, &k, err);
    if (st == LODE_OK) st = remote_count_points(c->store, &k, count, NULL, err);
    if (st == LODE_OK) err_clear(err);
  }
  mem_arena_release(&arena);
  return st;
}

/* ---- Export ---- */

static int remote_compare_positions(const void *a, const void *b) {
  const lode_row *x = *(const lode_row *const *)a, *y = *(const lode_row *const *)b;
  if (x->position != y->position) return x->position < y->position ? -1 : 1;
  return str_cmp(x->id, y->id);
}

/* Replaces the ids of the selection by those that match, each once, in the order of insertion. *found owns the
 * strings. */
static lode_status remote_order_ids(lode_collection *head, lode_selection *select, lode_result **found, lode_str **ids,
                                    lode_error *err) {
  lode_get_request request = {.select = *select};
  size_t kept = 0;
  TRY(remote_get(head, &request, found, err));
  size_t n = lode_result_count(*found);
  const lode_row **rows = mem_calloc(n, sizeof *rows);
  *ids = mem_calloc(n, sizeof **ids);
  if (!rows || !*ids) {
    mem_free(rows);
    return err_nomem(err);
  }
  for (size_t i = 0; i < n; i++) rows[i] = lode_result_at(*found, i);
  if (n) qsort(rows, n, sizeof *rows, remote_compare_positions);
  for (size_t i = 0; i < n; i++)
    if (kept == 0 || !str_eq((*ids)[kept - 1], rows[i]->id)) (*ids)[kept++] = rows[i]->id;
  mem_free(rows);
  select->ids = *ids;
  select->n_ids = kept;
  return LODE_OK;
}

lode_status remote_export(lode_collection *head, const lode_selection *selection, unsigned include,
                          lode_write_fn *write, void *ctx, lode_progress progress, uint64_t *written, lode_error *err) {
  lode_get_request request = {.limit = 500, .include = include};
  strbuf lines = {0};
  lode_result *page = NULL, *found = NULL;
  lode_str *ids = NULL;
  uint64_t n = 0, total = 0;
  lode_status st;
  err_clear(err);
  if (written) *written = 0;
  if (selection) request.select = *selection;
  if (!selection || (!selection->ids && !selection->where.data && !selection->where_document.data))
    TRY_GOTO(remote_count(head, &total, err));
  TRY_GOTO(iface_check_include(include, err));
  if (request.select.ids) TRY_GOTO(remote_order_ids(head, &request.select, &found, &ids, err));
  do {
    TRY_GOTO(remote_get(head, &request, &page, err));
    for (size_t i = 0; i < lode_result_count(page); i++, n++) {
      iface_export_put(&lines, lode_result_at(page, i));
      if (lines.len >= IFACE_EXPORT_FLUSH_BYTES) TRY_GOTO(iface_export_flush(&lines, write, ctx, err));
    }
    request.after = lode_result_next(page);
    lode_result_free(page);
    page = NULL;
    if (!err_go_on(progress, "exporting", n, n > total && total ? n : total)) {
      st = err_set(err, LODE_CANCELLED, "cancelled after %llu records", (unsigned long long)n);
      goto done;
    }
  } while (request.after);
  TRY_GOTO(iface_export_flush(&lines, write, ctx, err));
  if (written) *written = n;
done:
  lode_result_free(page);
  lode_result_free(found);
  mem_free(ids);
  strbuf_release(&lines);
  return st;
}
