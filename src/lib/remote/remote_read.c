/* SPDX-License-Identifier: Apache-2.0 */
/* remote_read.c - get, count, export. */
#include "remote/remote.h"

enum { REMOTE_FIND_BATCH = 500, REMOTE_EXPORT_FLUSH_BYTES = 1 << 20 };

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

/* Finds the records of one batch of sorted ids. */
static lode_status remote_find_batch(lode_collection *c, const remote_entry *k, const remote_wanted_id *list, size_t n,
                                     unsigned include, bool payload, remote_call *call, strbuf *vector,
                                     remote_point_fn *fn, void *ctx, lode_error *err) {
  remote_generation_path(call, c->store, k, "/points");
  strbuf_addstr(&call->body, "{\"ids\":[");
  for (size_t i = 0; i < n; i++) {
    char uuid[REMOTE_UUID_BYTES];
    remote_point_uuid(list[i].id, uuid);
    strbuf_addf(&call->body, i ? ",\"%s\"" : "\"%s\"", uuid);
  }
  strbuf_addstr(&call->body, "],");
  if (payload)
    remote_point_put_wanted(&call->body, include, (include & LODE_DOCUMENT) != 0, k->metric, k->spec.dim != 0);
  else
    strbuf_addstr(&call->body, "\"with_payload\":[\"id\",\"n\"],\"with_vector\":false");
  strbuf_addch(&call->body, '}');
  TRY(remote_call_send(c->store, "POST", call, err));
  const json_doc *j = &call->answer;
  if (j->nodes[call->result].type != JSON_NODE_ARRAY)
    return err_set(err, LODE_CORRUPT, "the cluster's answer is not one of Qdrant's");
  for (uint32_t at = call->result + 1; at < j->nodes[call->result].next; at = j->nodes[at].next) {
    remote_point p;
    TRY(remote_point_decode(j, at, k->metric, include & LODE_VECTOR ? vector : NULL, &p, err));
    remote_wanted_id key = {p.id, 0};
    const remote_wanted_id *first = list, *end = list + n;
    while (first < end && str_cmp(first->id, key.id) < 0) { /* binary search for the first entry with this id */
      const remote_wanted_id *middle = first + (end - first) / 2;
      if (str_cmp(middle->id, key.id) < 0)
        first = middle + 1;
      else
        end = middle;
    }
    for (; first < list + n && str_eq(first->id, p.id); first++) TRY(fn(ctx, first->i, &p, err));
  }
  return LODE_OK;
}

lode_status remote_find(lode_collection *c, const remote_entry *k, const lode_str *ids, size_t n, unsigned include,
                        bool payload, remote_point_fn *fn, void *ctx, lode_error *err) {
  remote_call call = {0};
  strbuf vector = {0};
  lode_status st = LODE_OK;
  remote_wanted_id *list = mem_calloc(n, sizeof *list);
  if (!list) return err_nomem(err);
  for (size_t i = 0; i < n; i++) list[i] = (remote_wanted_id){ids[i], i};
  if (n) qsort(list, n, sizeof *list, remote_compare_wanted);
  for (size_t at = 0, end; at < n && st == LODE_OK; at = end) {
    end = n - at < REMOTE_FIND_BATCH ? n : at + REMOTE_FIND_BATCH;
    while (end < n && str_eq(list[end].id, list[end - 1].id)) end++; /* repeated ids stay in one batch */
    st = remote_find_batch(c, k, list + at, end - at, include, payload, &call, &vector, fn, ctx, err);
  }
  mem_free(list);
  remote_call_release(&call);
  strbuf_release(&vector);
  return st;
}

/* ---- Get ---- */

typedef struct remote_get_job {
  lode_collection *c;
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
    TRY_GOTO(remote_find(g->c, &g->entry, what->ids + at, n, include, true, remote_get_keep_row, &b, err));
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
      break;
    }
    TRY_GOTO(remote_result_add(g->result, &p, g->request->include, &row, err));
    position = remote_scroll_position(&scroll, &p);
    g->left--;
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

lode_status remote_get(lode_collection *c, const lode_get_request *request, lode_result **out, lode_error *err) {
  remote_get_job g = {.c = c, .request = request};
  mem_arena arena;
  lode_status st;
  err_clear(err);
  *out = NULL;
  mem_arena_init(&arena, 0);
  TRY_GOTO(remote_get_check_request(request, err));
  TRY_GOTO(remote_select_init(&g.select, c, &request->select, err));
  g.select.pending_only = request->pending_only;
  TRY_GOTO(iface_result_new(c->store->options->memory_bytes, &g.result, err));
  st = remote_get_run(&g, false, &arena, err);
  if (st == LODE_NOT_FOUND) { /* the generation has changed, or the collection was dropped */
    lode_result_free(g.result);
    g.result = NULL;
    TRY_GOTO(iface_result_new(c->store->options->memory_bytes, &g.result, err));
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

lode_status remote_count(lode_collection *c, uint64_t *count, lode_error *err) {
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

static void remote_export_put_line(strbuf *out, const lode_row *row) {
  strbuf_addstr(out, "{\"id\":");
  json_put_string(out, row->id);
  if (row->document.data) {
    strbuf_addstr(out, ",\"document\":");
    json_put_string(out, row->document);
  }
  if (row->metadata.data) {
    strbuf_addstr(out, ",\"metadata\":");
    strbuf_add(out, row->metadata.data, row->metadata.len);
  }
  if (row->vector) {
    strbuf_addstr(out, ",\"embedding\":");
    json_put_vector(out, row->vector, row->dimension);
  }
  strbuf_addstr(out, "}\n");
}

static lode_status remote_export_flush(strbuf *lines, lode_write_fn *write, void *ctx, lode_error *err) {
  if (lines->failed) return err_nomem(err);
  for (size_t at = 0; at < lines->len;) {
    int64_t n = write(ctx, lines->data + at, lines->len - at);
    if (n <= 0 || (uint64_t)n > lines->len - at)
      return err_set(err, LODE_IO, "writing the export failed: is the disk full, or the reader of the pipe gone?");
    at += (size_t)n;
  }
  lines->len = 0;
  return LODE_OK;
}

static int remote_compare_positions(const void *a, const void *b) {
  const lode_row *x = *(const lode_row *const *)a, *y = *(const lode_row *const *)b;
  if (x->position != y->position) return x->position < y->position ? -1 : 1;
  return str_cmp(x->id, y->id);
}

/* Replaces the ids of the selection by those that match, each once, in the order of insertion. *found owns the
 * strings. */
static lode_status remote_order_ids(lode_collection *c, lode_selection *select, lode_result **found, lode_str **ids,
                                    lode_error *err) {
  lode_get_request request = {.select = *select};
  size_t kept = 0;
  TRY(remote_get(c, &request, found, err));
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

lode_status remote_export(lode_collection *c, const lode_selection *selection, unsigned include, lode_write_fn *write,
                          void *ctx, lode_progress progress, uint64_t *written, lode_error *err) {
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
    TRY_GOTO(remote_count(c, &total, err));
  TRY_GOTO(iface_check_include(include, err));
  if (request.select.ids) TRY_GOTO(remote_order_ids(c, &request.select, &found, &ids, err));
  do {
    TRY_GOTO(remote_get(c, &request, &page, err));
    for (size_t i = 0; i < lode_result_count(page); i++, n++) {
      remote_export_put_line(&lines, lode_result_at(page, i));
      if (lines.len >= REMOTE_EXPORT_FLUSH_BYTES) TRY_GOTO(remote_export_flush(&lines, write, ctx, err));
    }
    request.after = lode_result_next(page);
    lode_result_free(page);
    page = NULL;
    if (progress.step && !progress.step(progress.ctx, "export", n, n > total && total ? n : total)) {
      st = err_set(err, LODE_CANCELLED, "cancelled after %llu records", (unsigned long long)n);
      goto done;
    }
  } while (request.after);
  TRY_GOTO(remote_export_flush(&lines, write, ctx, err));
  if (written) *written = n;
done:
  lode_result_free(page);
  lode_result_free(found);
  mem_free(ids);
  strbuf_release(&lines);
  return st;
}
