/* read.c - get, count, export. */
#include "remote.h"

enum { FIND_BATCH = 500, FLUSH_BYTES = 1 << 20 };

lode_status lode__remote_add_row(lode_result *result, const lode__point *p, unsigned include, lode_row **out, lode_error *err) {
  lode_row *row;
  TRY(lode__result_row(result, &row, err));
  row->cursor = p->seq;
  row->position = p->n;
  TRY(lode__result_copy(result, p->id, &row->id, err));
  if (include & LODE_METADATA) TRY(lode__result_copy(result, p->metadata, &row->metadata, err));
  if (include & LODE_DOCUMENT) TRY(lode__result_copy(result, p->document, &row->document, err));
  if ((include & LODE_VECTOR) && p->vector) {
    void *v;
    TRY(lode__result_bytes(result, (size_t)p->dim * sizeof(float), &v, err));
    memcpy(v, p->vector, (size_t)p->dim * sizeof(float));
    row->vector = v;
    row->dimension = p->dim;
  }
  lode__result_keep(result);
  *out = row;
  return LODE_OK;
}

/* ---- By id ---- */

typedef struct wanted {
  lode_str id;
  size_t i;
} wanted;

static int by_id(const void *a, const void *b) {
  const wanted *x = a, *y = b;
  int c = str_cmp(x->id, y->id);
  return c ? c : (x->i > y->i) - (x->i < y->i);
}

/* Those of a batch, each id once. */
static lode_status find_batch(lode_collection *c, const lode__remote_kind *k, const wanted *list, size_t n, unsigned include,
                              bool payload, lode__call *call, strbuf *vector, lode__found_fn *fn, void *ctx, lode_error *err) {
  lode__remote_path(call, c->store, k, "/points");
  strbuf_addstr(&call->body, "{\"ids\":[");
  for (size_t i = 0; i < n; i++) {
    char uuid[LODE__UUID_TEXT];
    lode__point_uuid(list[i].id, uuid);
    strbuf_addf(&call->body, i ? ",\"%s\"" : "\"%s\"", uuid);
  }
  strbuf_addstr(&call->body, "],");
  if (payload) lode__point_want(&call->body, include, (include & LODE_DOCUMENT) != 0, k->metric, k->fit.dim != 0);
  else strbuf_addstr(&call->body, "\"with_payload\":[\"id\",\"n\"],\"with_vector\":false");
  strbuf_addch(&call->body, '}');
  TRY(lode__call_send(c->store, "POST", call, err));
  const json_doc *j = &call->answer;
  if (j->nodes[call->result].type != JSON_NODE_ARRAY) return err_set(err, LODE_CORRUPT, "the cluster's answer is not one of Qdrant's");
  for (uint32_t at = call->result + 1; at < j->nodes[call->result].next; at = j->nodes[at].next) {
    lode__point p;
    TRY(lode__point_take(j, at, k->metric, include & LODE_VECTOR ? vector : NULL, &p, err));
    wanted key = {p.id, 0};
    const wanted *first = list, *end = list + n;
    while (first < end && str_cmp(first->id, key.id) < 0) { /* binary search for the first of that id */
      const wanted *middle = first + (end - first) / 2;
      if (str_cmp(middle->id, key.id) < 0) first = middle + 1;
      else end = middle;
    }
    for (; first < list + n && str_eq(first->id, p.id); first++) TRY(fn(ctx, first->i, &p, err));
  }
  return LODE_OK;
}

lode_status lode__remote_find(lode_collection *c, const lode__remote_kind *k, const lode_str *ids, size_t n, unsigned include,
                              bool payload, lode__found_fn *fn, void *ctx, lode_error *err) {
  lode__call call = {0};
  strbuf vector = {0};
  lode_status st = LODE_OK;
  wanted *list = mem_calloc(n, sizeof *list);
  if (!list) return err_nomem(err);
  for (size_t i = 0; i < n; i++) list[i] = (wanted){ids[i], i};
  if (n) qsort(list, n, sizeof *list, by_id);
  for (size_t at = 0, end; at < n && st == LODE_OK; at = end) {
    end = n - at < FIND_BATCH ? n : at + FIND_BATCH;
    while (end < n && str_eq(list[end].id, list[end - 1].id)) end++; /* repetitions stay together */
    st = find_batch(c, k, list + at, end - at, include, payload, &call, &vector, fn, ctx, err);
  }
  mem_free(list);
  lode__call_release(&call);
  strbuf_release(&vector);
  return st;
}

/* ---- Get ---- */

typedef struct getting {
  lode_collection *c;
  const lode_get_request *request;
  lode__remote_select select;
  lode__remote_kind kind;
  lode_result *result;
  size_t skip, left;  /* rows to pass over, rows to give */
} getting;

/* Rows of a batch of ids, at the places where they were asked for. */
typedef struct batch {
  getting *g;
  lode_row *rows;
  bool *have;
} batch;

static lode_status keep_row(void *ctx, size_t i, const lode__point *p, lode_error *err) {
  batch *b = ctx;
  lode_row *row;
  bool match;
  TRY(lode__remote_select_match(&b->g->select, p, &match, err));
  if (!match) return LODE_OK;
  TRY(lode__remote_add_row(b->g->result, p, b->g->request->include, &row, err));
  b->rows[i] = *row;
  b->have[i] = true;
  b->g->result->n--; /* it comes in its place below */
  return LODE_OK;
}

static lode_status get_by_ids(getting *g, lode_error *err) {
  const lode_selection *what = g->select.what;
  unsigned include = g->request->include | (lode__remote_needs_document(&g->select) ? LODE_DOCUMENT : 0u);
  lode_status st = LODE_OK;
  batch b = {.g = g, .rows = mem_calloc(FIND_BATCH, sizeof *b.rows), .have = mem_calloc(FIND_BATCH, sizeof *b.have)};
  if (!b.rows || !b.have) {
    st = err_nomem(err);
    goto done;
  }
  for (size_t at = g->request->after; at < what->n_ids && g->left; at += FIND_BATCH) {
    size_t n = what->n_ids - at < FIND_BATCH ? what->n_ids - at : FIND_BATCH;
    memset(b.have, 0, FIND_BATCH * sizeof *b.have);
    TRY_GOTO(lode__remote_find(g->c, &g->kind, what->ids + at, n, include, true, keep_row, &b, err));
    for (size_t i = 0; i < n && g->left; i++) {
      lode_row *row;
      if (!b.have[i]) continue;
      if (g->skip) {
        g->skip--;
        continue;
      }
      TRY_GOTO(lode__result_row(g->result, &row, err));
      *row = b.rows[i];
      lode__result_keep(g->result);
      if (--g->left == 0 && at + i + 1 < what->n_ids) g->result->next = at + i + 1;
    }
  }
done:
  mem_free(b.rows);
  mem_free(b.have);
  return st;
}

static lode_status get_in_order(getting *g, lode_error *err) {
  lode__scroll scroll;
  lode_status st;
  bool more;
  uint64_t place = 0;
  TRY(lode__remote_select_plan(&g->select, &g->kind, err));
  lode__scroll_init(&scroll, &g->select, &g->kind, g->request->include);
  lode__scroll_from(&scroll, g->request->after);
  scroll.call.progress = g->request->progress;
  for (;;) {
    lode__point p;
    lode_row *row;
    TRY_GOTO(lode__scroll_next(&scroll, &p, &more, err));
    if (!more) break;
    if (g->skip) {
      g->skip--;
      continue;
    }
    if (!g->left) { /* there is one more */
      g->result->next = place;
      break;
    }
    TRY_GOTO(lode__remote_add_row(g->result, &p, g->request->include, &row, err));
    place = lode__scroll_place(&scroll, &p);
    g->left--;
  }
done:
  lode__scroll_release(&scroll);
  return st;
}

static lode_status get(getting *g, bool fresh, mem_arena *arena, lode_error *err) {
  TRY(lode__remote_kind_of(g->c, fresh, arena, &g->kind, err));
  g->skip = g->request->offset;
  g->left = g->request->limit ? g->request->limit : SIZE_MAX;
  return g->select.what->ids ? get_by_ids(g, err) : get_in_order(g, err);
}

static lode_status check_request(const lode_get_request *r, lode_error *err) {
  TRY(lode__check_include(r->include, err));
  if (r->select.ids ? r->after <= r->select.n_ids : lode__scroll_is_place(r->after)) return LODE_OK;
  return err_set(err, LODE_INVALID, "after is %llu, which no page of this request has returned: pass lode_result_next()",
                    (unsigned long long)r->after);
}

lode_status lode__remote_get(lode_collection *c, const lode_get_request *request, lode_result **out, lode_error *err) {
  getting g = {.c = c, .request = request};
  mem_arena arena;
  lode_status st;
  err_clear(err);
  *out = NULL;
  mem_arena_init(&arena, 0);
  TRY_GOTO(check_request(request, err));
  TRY_GOTO(lode__remote_select_init(&g.select, c, &request->select, err));
  g.select.pending_only = request->pending_only;
  TRY_GOTO(lode__result_new(c->store->options->memory_bytes, &g.result, err));
  st = get(&g, false, &arena, err);
  if (st == LODE_NOT_FOUND) { /* its place in the cluster has changed, or it is gone */
    lode_result_free(g.result);
    g.result = NULL;
    TRY_GOTO(lode__result_new(c->store->options->memory_bytes, &g.result, err));
    st = get(&g, true, &arena, err);
  }
  if (st == LODE_OK) {
    err_clear(err);
    *out = g.result;
    g.result = NULL;
  }
done:
  lode_result_free(g.result);
  lode__remote_select_release(&g.select);
  mem_arena_release(&arena);
  return st;
}

lode_status lode__remote_count(lode_collection *c, uint64_t *count, lode_error *err) {
  lode__remote_kind k;
  mem_arena arena;
  err_clear(err);
  *count = 0;
  mem_arena_init(&arena, 0);
  lode_status st = lode__remote_kind_of(c, false, &arena, &k, err);
  if (st == LODE_OK) st = lode__remote_counts(c->store, &k, count, NULL, err);
  if (st == LODE_NOT_FOUND) {
    st = lode__remote_kind_of(c, true, &arena, &k, err);
    if (st == LODE_OK) st = lode__remote_counts(c->store, &k, count, NULL, err);
    if (st == LODE_OK) err_clear(err);
  }
  mem_arena_release(&arena);
  return st;
}

/* ---- Export ---- */

static void put_line(strbuf *out, const lode_row *row) {
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

static lode_status flush(strbuf *lines, lode_write_fn *write, void *ctx, lode_error *err) {
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

static int by_position(const void *a, const void *b) {
  const lode_row *x = *(const lode_row *const *)a, *y = *(const lode_row *const *)b;
  if (x->position != y->position) return x->position < y->position ? -1 : 1;
  return str_cmp(x->id, y->id);
}

/* Those that are there, each once, in the order of insertion. *found owns them. */
static lode_status order_ids(lode_collection *c, lode_selection *select, lode_result **found, lode_str **ids, lode_error *err) {
  lode_get_request request = {.select = *select};
  size_t kept = 0;
  TRY(lode__remote_get(c, &request, found, err));
  size_t n = lode_result_count(*found);
  const lode_row **rows = mem_calloc(n, sizeof *rows);
  *ids = mem_calloc(n, sizeof **ids);
  if (!rows || !*ids) {
    mem_free(rows);
    return err_nomem(err);
  }
  for (size_t i = 0; i < n; i++) rows[i] = lode_result_at(*found, i);
  if (n) qsort(rows, n, sizeof *rows, by_position);
  for (size_t i = 0; i < n; i++)
    if (kept == 0 || !str_eq((*ids)[kept - 1], rows[i]->id)) (*ids)[kept++] = rows[i]->id;
  mem_free(rows);
  select->ids = *ids;
  select->n_ids = kept;
  return LODE_OK;
}

lode_status lode__remote_export(lode_collection *c, const lode_selection *selection, unsigned include, lode_write_fn *write,
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
    TRY_GOTO(lode__remote_count(c, &total, err));
  TRY_GOTO(lode__check_include(include, err));
  if (request.select.ids) TRY_GOTO(order_ids(c, &request.select, &found, &ids, err));
  do {
    TRY_GOTO(lode__remote_get(c, &request, &page, err));
    for (size_t i = 0; i < lode_result_count(page); i++, n++) {
      put_line(&lines, lode_result_at(page, i));
      if (lines.len >= FLUSH_BYTES) TRY_GOTO(flush(&lines, write, ctx, err));
    }
    request.after = lode_result_next(page);
    lode_result_free(page);
    page = NULL;
    if (progress.step && !progress.step(progress.ctx, "export", n, n > total && total ? n : total)) {
      st = err_set(err, LODE_CANCELLED, "cancelled after %llu records", (unsigned long long)n);
      goto done;
    }
  } while (request.after);
  TRY_GOTO(flush(&lines, write, ctx, err));
  if (written) *written = n;
done:
  lode_result_free(page);
  lode_result_free(found);
  mem_free(ids);
  strbuf_release(&lines);
  return st;
}
