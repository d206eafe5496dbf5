/* read.c - get, count, export. */
#include "remote.h"

enum { FIND_BATCH = 500, FLUSH_BYTES = 1 << 20 };

lode_status lode__remote_add_row(lode_result *result, const lode__point *p, unsigned include, lode_row **out, lode_error *err) {
  lode_row *row;
  LODE__TRY(lode__result_row(result, &row, err));
  row->cursor = p->seq;
  row->position = p->n;
  LODE__TRY(lode__result_copy(result, p->id, &row->id, err));
  if (include & LODE_METADATA) LODE__TRY(lode__result_copy(result, p->metadata, &row->metadata, err));
  if (include & LODE_DOCUMENT) LODE__TRY(lode__result_copy(result, p->document, &row->document, err));
  if ((include & LODE_VECTOR) && p->vector) {
    void *v;
    LODE__TRY(lode__result_bytes(result, (size_t)p->dim * sizeof(float), &v, err));
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
  int c = lode__str_cmp(x->id, y->id);
  return c ? c : (x->i > y->i) - (x->i < y->i);
}

/* Those of a batch, each id once. */
static lode_status find_batch(lode_collection *c, const lode__remote_kind *k, const wanted *list, size_t n, unsigned include,
                              bool payload, lode__call *call, lode__buf *vector, lode__found_fn *fn, void *ctx, lode_error *err) {
  lode__remote_path(call, c->store, k, "/points");
  lode__buf_adds(&call->body, "{\"ids\":[");
  for (size_t i = 0; i < n; i++) {
    char uuid[LODE__UUID_TEXT];
    lode__point_uuid(list[i].id, uuid);
    lode__buf_addf(&call->body, i ? ",\"%s\"" : "\"%s\"", uuid);
  }
  lode__buf_adds(&call->body, "],");
  if (payload) lode__point_want(&call->body, include, (include & LODE_DOCUMENT) != 0, k->metric, k->fit.dim != 0);
  else lode__buf_adds(&call->body, "\"with_payload\":[\"id\",\"n\"],\"with_vector\":false");
  lode__buf_addc(&call->body, '}');
  LODE__TRY(lode__call_send(c->store, "POST", call, err));
  const lode__json *j = &call->answer;
  if (j->nodes[call->result].type != LODE__JSON_ARRAY) return lode__fail(err, LODE_CORRUPT, "the cluster's answer is not one of Qdrant's");
  for (uint32_t at = call->result + 1; at < j->nodes[call->result].next; at = j->nodes[at].next) {
    lode__point p;
    LODE__TRY(lode__point_take(j, at, k->metric, include & LODE_VECTOR ? vector : NULL, &p, err));
    wanted key = {p.id, 0};
    const wanted *first = list, *end = list + n;
    while (first < end && lode__str_cmp(first->id, key.id) < 0) { /* binary search for the first of that id */
      const wanted *middle = first + (end - first) / 2;
      if (lode__str_cmp(middle->id, key.id) < 0) first = middle + 1;
      else end = middle;
    }
    for (; first < list + n && lode__str_eq(first->id, p.id); first++) LODE__TRY(fn(ctx, first->i, &p, err));
  }
  return LODE_OK;
}

lode_status lode__remote_find(lode_collection *c, const lode__remote_kind *k, const lode_str *ids, size_t n, unsigned include,
                              bool payload, lode__found_fn *fn, void *ctx, lode_error *err) {
  lode__call call = {0};
  lode__buf vector = {0};
  lode_status st = LODE_OK;
  wanted *list = lode__alloc_zero(n, sizeof *list);
  if (!list) return lode__fail_nomem(err);
  for (size_t i = 0; i < n; i++) list[i] = (wanted){ids[i], i};
  if (n) qsort(list, n, sizeof *list, by_id);
  for (size_t at = 0, end; at < n && st == LODE_OK; at = end) {
    end = n - at < FIND_BATCH ? n : at + FIND_BATCH;
    while (end < n && lode__str_eq(list[end].id, list[end - 1].id)) end++; /* repetitions stay together */
    st = find_batch(c, k, list + at, end - at, include, payload, &call, &vector, fn, ctx, err);
  }
  lode__free(list);
  lode__call_release(&call);
  lode__buf_release(&vector);
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
  LODE__TRY(lode__remote_select_match(&b->g->select, p, &match, err));
  if (!match) return LODE_OK;
  LODE__TRY(lode__remote_add_row(b->g->result, p, b->g->request->include, &row, err));
  b->rows[i] = *row;
  b->have[i] = true;
  b->g->result->n--; /* it comes in its place below */
  return LODE_OK;
}

static lode_status get_by_ids(getting *g, lode_error *err) {
  const lode_selection *what = g->select.what;
  unsigned include = g->request->include | (lode__remote_needs_document(&g->select) ? LODE_DOCUMENT : 0u);
  lode_status st = LODE_OK;
  batch b = {.g = g, .rows = lode__alloc_zero(FIND_BATCH, sizeof *b.rows), .have = lode__alloc_zero(FIND_BATCH, sizeof *b.have)};
  if (!b.rows || !b.have) {
    st = lode__fail_nomem(err);
    goto done;
  }
  for (size_t at = g->request->after; at < what->n_ids && g->left; at += FIND_BATCH) {
    size_t n = what->n_ids - at < FIND_BATCH ? what->n_ids - at : FIND_BATCH;
    memset(b.have, 0, FIND_BATCH * sizeof *b.have);
    LODE__GOTO(lode__remote_find(g->c, &g->kind, what->ids + at, n, include, true, keep_row, &b, err));
    for (size_t i = 0; i < n && g->left; i++) {
      lode_row *row;
      if (!b.have[i]) continue;
      if (g->skip) {
        g->skip--;
        continue;
      }
      LODE__GOTO(lode__result_row(g->result, &row, err));
      *row = b.rows[i];
      lode__result_keep(g->result);
      if (--g->left == 0 && at + i + 1 < what->n_ids) g->result->next = at + i + 1;
    }
  }
done:
  lode__free(b.rows);
  lode__free(b.have);
  return st;
}

static lode_status get_in_order(getting *g, lode_error *err) {
  lode__scroll scroll;
  lode_status st;
  bool more;
  uint64_t place = 0;
  LODE__TRY(lode__remote_select_plan(&g->select, &g->kind, err));
  lode__scroll_init(&scroll, &g->select, &g->kind, g->request->include);
  lode__scroll_from(&scroll, g->request->after);
  scroll.call.progress = g->request->progress;
  for (;;) {
    lode__point p;
    lode_row *row;
    LODE__GOTO(lode__scroll_next(&scroll, &p, &more, err));
    if (!more) break;
    if (g->skip) {
      g->skip--;
      continue;
    }
    if (!g->left) { /* there is one more */
      g->result->next = place;
      break;
    }
    LODE__GOTO(lode__remote_add_row(g->result, &p, g->request->include, &row, err));
    place = lode__scroll_place(&scroll, &p);
    g->left--;
  }
done:
  lode__scroll_release(&scroll);
  return st;
}

static lode_status get(getting *g, bool fresh, lode__arena *arena, lode_error *err) {
  LODE__TRY(lode__remote_kind_of(g->c, fresh, arena, &g->kind, err));
  g->skip = g->request->offset;
  g->left = g->request->limit ? g->request->limit : SIZE_MAX;
  return g->select.what->ids ? get_by_ids(g, err) : get_in_order(g, err);
}

static lode_status check_request(const lode_get_request *r, lode_error *err) {
  LODE__TRY(lode__check_include(r->include, err));
  if (r->select.ids ? r->after <= r->select.n_ids : lode__scroll_is_place(r->after)) return LODE_OK;
  return lode__fail(err, LODE_INVALID, "after is %llu, which no page of this request has returned: pass lode_result_next()",
                    (unsigned long long)r->after);
}

lode_status lode__remote_get(lode_collection *c, const lode_get_request *request, lode_result **out, lode_error *err) {
  getting g = {.c = c, .request = request};
  lode__arena arena;
  lode_status st;
  lode__error_clear(err);
  *out = NULL;
  lode__arena_init(&arena, 0);
  LODE__GOTO(check_request(request, err));
  LODE__GOTO(lode__remote_select_init(&g.select, c, &request->select, err));
  g.select.pending_only = request->pending_only;
  LODE__GOTO(lode__result_new(c->store->options->memory_bytes, &g.result, err));
  st = get(&g, false, &arena, err);
  if (st == LODE_NOT_FOUND) { /* its place in the cluster has changed, or it is gone */
    lode_result_free(g.result);
    g.result = NULL;
    LODE__GOTO(lode__result_new(c->store->options->memory_bytes, &g.result, err));
    st = get(&g, true, &arena, err);
  }
  if (st == LODE_OK) {
    lode__error_clear(err);
    *out = g.result;
    g.result = NULL;
  }
done:
  lode_result_free(g.result);
  lode__remote_select_release(&g.select);
  lode__arena_release(&arena);
  return st;
}

lode_status lode__remote_count(lode_collection *c, uint64_t *count, lode_error *err) {
  lode__remote_kind k;
  lode__arena arena;
  lode__error_clear(err);
  *count = 0;
  lode__arena_init(&arena, 0);
  lode_status st = lode__remote_kind_of(c, false, &arena, &k, err);
  if (st == LODE_OK) st = lode__remote_counts(c->store, &k, count, NULL, err);
  if (st == LODE_NOT_FOUND) {
    st = lode__remote_kind_of(c, true, &arena, &k, err);
    if (st == LODE_OK) st = lode__remote_counts(c->store, &k, count, NULL, err);
    if (st == LODE_OK) lode__error_clear(err);
  }
  lode__arena_release(&arena);
  return st;
}

/* ---- Export ---- */

static void put_line(lode__buf *out, const lode_row *row) {
  lode__buf_adds(out, "{\"id\":");
  lode__json_put_string(out, row->id);
  if (row->document.data) {
    lode__buf_adds(out, ",\"document\":");
    lode__json_put_string(out, row->document);
  }
  if (row->metadata.data) {
    lode__buf_adds(out, ",\"metadata\":");
    lode__buf_add(out, row->metadata.data, row->metadata.len);
  }
  if (row->vector) {
    lode__buf_adds(out, ",\"embedding\":");
    lode__json_put_vector(out, row->vector, row->dimension);
  }
  lode__buf_adds(out, "}\n");
}

static lode_status flush(lode__buf *lines, lode_write_fn *write, void *ctx, lode_error *err) {
  if (lines->failed) return lode__fail_nomem(err);
  for (size_t at = 0; at < lines->len;) {
    int64_t n = write(ctx, lines->data + at, lines->len - at);
    if (n <= 0 || (uint64_t)n > lines->len - at)
      return lode__fail(err, LODE_IO, "writing the export failed: is the disk full, or the reader of the pipe gone?");
    at += (size_t)n;
  }
  lines->len = 0;
  return LODE_OK;
}

static int by_position(const void *a, const void *b) {
  const lode_row *x = *(const lode_row *const *)a, *y = *(const lode_row *const *)b;
  if (x->position != y->position) return x->position < y->position ? -1 : 1;
  return lode__str_cmp(x->id, y->id);
}

/* Those that are there, each once, in the order of insertion. *found owns them. */
static lode_status order_ids(lode_collection *c, lode_selection *select, lode_result **found, lode_str **ids, lode_error *err) {
  lode_get_request request = {.select = *select};
  size_t kept = 0;
  LODE__TRY(lode__remote_get(c, &request, found, err));
  size_t n = lode_result_count(*found);
  const lode_row **rows = lode__alloc_zero(n, sizeof *rows);
  *ids = lode__alloc_zero(n, sizeof **ids);
  if (!rows || !*ids) {
    lode__free(rows);
    return lode__fail_nomem(err);
  }
  for (size_t i = 0; i < n; i++) rows[i] = lode_result_at(*found, i);
  if (n) qsort(rows, n, sizeof *rows, by_position);
  for (size_t i = 0; i < n; i++)
    if (kept == 0 || !lode__str_eq((*ids)[kept - 1], rows[i]->id)) (*ids)[kept++] = rows[i]->id;
  lode__free(rows);
  select->ids = *ids;
  select->n_ids = kept;
  return LODE_OK;
}

lode_status lode__remote_export(lode_collection *c, const lode_selection *selection, unsigned include, lode_write_fn *write,
                                void *ctx, lode_progress progress, uint64_t *written, lode_error *err) {
  lode_get_request request = {.limit = 500, .include = include};
  lode__buf lines = {0};
  lode_result *page = NULL, *found = NULL;
  lode_str *ids = NULL;
  uint64_t n = 0, total = 0;
  lode_status st;
  lode__error_clear(err);
  if (written) *written = 0;
  if (selection) request.select = *selection;
  if (!selection || (!selection->ids && !selection->where.data && !selection->where_document.data))
    LODE__GOTO(lode__remote_count(c, &total, err));
  LODE__GOTO(lode__check_include(include, err));
  if (request.select.ids) LODE__GOTO(order_ids(c, &request.select, &found, &ids, err));
  do {
    LODE__GOTO(lode__remote_get(c, &request, &page, err));
    for (size_t i = 0; i < lode_result_count(page); i++, n++) {
      put_line(&lines, lode_result_at(page, i));
      if (lines.len >= FLUSH_BYTES) LODE__GOTO(flush(&lines, write, ctx, err));
    }
    request.after = lode_result_next(page);
    lode_result_free(page);
    page = NULL;
    if (progress.step && !progress.step(progress.ctx, "export", n, n > total && total ? n : total)) {
      st = lode__fail(err, LODE_CANCELLED, "cancelled after %llu records", (unsigned long long)n);
      goto done;
    }
  } while (request.after);
  LODE__GOTO(flush(&lines, write, ctx, err));
  if (written) *written = n;
done:
  lode_result_free(page);
  lode_result_free(found);
  lode__free(ids);
  lode__buf_release(&lines);
  return st;
}
