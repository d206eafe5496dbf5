/* SPDX-License-Identifier: Apache-2.0 */
/* search_sources.c - candidates from text, vectors, names and outlines; see search_internal.h. */
#include "search/search_internal.h"

#include "os/os.h"
#include "base/vector.h"

#include <math.h>

/* ---- Candidates ---- */

static size_t source_slot(const search_ctx *s, lode_str id) {
  size_t at = (size_t)hash_bytes(id.data, id.len) & (s->table_size - 1);
  while (s->table[at] && !str_eq(s->v[s->table[at] - 1].id, id)) at = (at + 1) & (s->table_size - 1);
  return at;
}

static lode_status source_grow_table(search_ctx *s, lode_error *err) {
  if (!mem_grow(&s->v, &s->cap, s->n + 1, sizeof *s->v)) return err_nomem(err);
  if (s->n + 1 <= s->table_size / 2) return LODE_OK;
  size_t size = s->table_size ? s->table_size * 2 : 1024;
  uint32_t *table = mem_calloc(size, sizeof *table);
  if (!table) return err_nomem(err);
  mem_free(s->table);
  s->table = table;
  s->table_size = size;
  for (size_t i = 0; i < s->n; i++) s->table[source_slot(s, s->v[i].id)] = (uint32_t)i + 1;
  return LODE_OK;
}

bool search_copy(search_ctx *s, lode_str *text) {
  char *p = mem_arena_copy(s->arena, text->data ? text->data : "", text->len);
  text->data = p;
  return p != NULL;
}

/* Copies the definitions that share the chunk. */
static lode_status source_copy_defs(search_ctx *s, const indexer_chunk_view *view, rank_candidate *c, lode_error *err) {
  const char *at = NULL;
  size_t n = view->defs ? s->json.nodes[view->defs].u.count : 0;
  if (!n) return LODE_OK;
  indexer_def *defs = mem_arena_alloc(s->arena, n * sizeof *defs);
  if (!defs) return err_nomem(err);
  while (c->n_defs < n && indexer_chunk_view_def(view, &s->json, c->n_defs, &at, &defs[c->n_defs])) {
    indexer_def *def = &defs[c->n_defs++];
    if (!search_copy(s, &def->name) || !search_copy(s, &def->kind)) return err_nomem(err);
  }
  c->defs = defs;
  return LODE_OK;
}

static bool source_defines(const rank_candidate *c, lode_str name) {
  if (c->head && !c->declared && str_eq(c->name, name)) return true;
  for (size_t i = 0; i < c->n_defs; i++)
    if (str_eq(c->defs[i].name, name)) return true;
  return false;
}

/* Adds the definition of the name that is asked for, if the text has it and the index does not know. */
static lode_status source_find_def(search_ctx *s, rank_candidate *c, lode_error *err) {
  const search_question *q = &s->result->question;
  lode_str name = q->is_name && q->n_names ? q->names[q->n_names - 1] : (lode_str){0};
  indexer_def def;
  if (!name.len || source_defines(c, name) || !search_find_definition(c, name, &def)) return LODE_OK;
  indexer_def *defs = mem_arena_alloc(s->arena, (c->n_defs + 1) * sizeof *defs);
  if (!defs) return err_nomem(err);
  if (c->n_defs) memcpy(defs, c->defs, c->n_defs * sizeof *defs);
  defs[c->n_defs++] = def;
  c->defs = defs;
  return LODE_OK;
}

/* The candidate of a row, created if needed; NULL without an error when the glob excludes it or it is not a chunk. */
static lode_status source_candidate(search_ctx *s, const lode_row *row, rank_candidate **out, lode_error *err) {
  indexer_chunk_view view;
  *out = NULL;
  TRY(source_grow_table(s, err));
  size_t slot = source_slot(s, row->id);
  if (s->table[slot]) {
    *out = &s->v[s->table[slot] - 1];
    return LODE_OK;
  }
  /* A record that does not parse was not written by the indexer: skip it */
  lode_status st = indexer_chunk_view_parse(row->metadata, &s->json, &view, err);
  if (st == LODE_NOMEM) return st;
  if (st != LODE_OK) return LODE_OK;
  if (s->request->path.data && !search_path_matches(s->request->path, view.path)) return LODE_OK;
  rank_candidate c = {.id = row->id,
                      .path = view.path,
                      .language = view.language,
                      .kind = view.kind,
                      .name = view.name,
                      .parents = view.parents,
                      .first = view.first,
                      .last = view.last,
                      .line = view.line,
                      .head = view.head.len != 0 || s->unmarked,
                      .declared = str_eq(view.head, STR_LIT("declared")),
                      .cosine = NAN,
                      .cosine2 = NAN};
  lode_str hash = view.hash;
  if (row->document.len > view.offset)
    c.text = (lode_str){row->document.data + view.offset, row->document.len - view.offset};
  lode_str *texts[] = {&c.id, &c.path, &c.language, &c.kind, &c.name, &c.parents, &c.text, &hash};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (!search_copy(s, texts[i])) return err_nomem(err);
  c.hash = hash.data;
  TRY(source_copy_defs(s, &view, &c, err));
  TRY(source_find_def(s, &c, err));
  s->v[s->n] = c;
  *out = &s->v[s->n++];
  s->table[slot] = (uint32_t)s->n;
  return LODE_OK;
}

static size_t source_want(const search_ctx *s, size_t n) {
  return s->want_factor > SEARCH_MAX_WANT / n ? SEARCH_MAX_WANT : n * s->want_factor;
}

/* Texts are used for ranking; very many are not worth reading. */
static unsigned source_include_flags(const search_ctx *s, size_t k) {
  return k <= SEARCH_MAX_TEXTS || s->verbatim ? LODE_METADATA | LODE_DOCUMENT : LODE_METADATA;
}

/* ---- By text ---- */

static void source_query(lode_collection *c, const lode_query_request *request, search_reply *to) {
  lode_result_free(to->rows);
  *to = (search_reply){.err = {.record = LODE_NO_RECORD}};
  to->st = lode_query(c, request, &to->rows, &to->err);
}

/* Makes candidates of rows; in a search for a text as it stands, of those that hold it. */
static lode_status source_take_rows(search_ctx *s, const lode_result *rows, lode_error *err) {
  size_t n = lode_result_count(rows);
  bool *holds = s->verbatim ? mem_calloc(n ? n : 1, sizeof *holds) : NULL;
  lode_status st = s->verbatim && !holds ? err_nomem(err) : LODE_OK;
  search_note_snapshot(s, rows);
  if (st == LODE_OK && holds) st = search_verify(s, rows, holds, err);
  for (size_t i = 0; i < n && st == LODE_OK; i++) {
    rank_candidate *c = NULL;
    if (!holds || holds[i]) st = source_candidate(s, lode_result_at(rows, i), &c, err);
    if (c && lode_result_at(rows, i)->score > 0) c->bm25 = lode_result_at(rows, i)->score;
  }
  mem_free(holds);
  return st;
}

/* No index knows which chunks hold the text, or which of them the glob leaves: every chunk is read, page by page. */
static bool source_must_scan(const search_ctx *s) {
  return s->verbatim && (!s->text.len || (s->n_batches && (s->partial || s->request->path.data)));
}

static lode_status source_scan_text(search_ctx *s, lode_error *err) {
  lode_get_request get = {.select = search_selection(s),
                          .limit = SEARCH_SCAN_PAGE,
                          .include = LODE_METADATA | LODE_DOCUMENT,
                          .progress = s->request->progress};
  lode_status st;
  do {
    lode_result *rows = NULL;
    TRY(lode_get(s->code, &get, &rows, err));
    st = source_take_rows(s, rows, err);
    get.after = lode_result_count(rows) == SEARCH_SCAN_PAGE ? lode_result_next(rows) : 0;
    lode_result_free(rows);
  } while (st == LODE_OK && get.after && s->n < SEARCH_SCAN_MATCHES);
  if (st == LODE_OK && get.after) {
    lode_error why = {.record = LODE_NO_RECORD};
    (void)err_set(&why, LODE_LIMIT, "more than %d chunks match; a longer text, --path or --lang narrows it",
                  SEARCH_SCAN_MATCHES);
    search_note(s, "among the first matches", &why);
  }
  return st;
}

/* On a thread of its own it runs without the caller's progress callback, which belongs to the caller's thread: its time
 * is bounded. That of a filter on documents is not. */
static void source_query_text(search_ctx *s) {
  lode_query_request q = {.mode = LODE_BY_TEXT,
                          .texts = &s->text,
                          .n = 1,
                          .k = source_want(s, SEARCH_WANT_TEXT),
                          .select = search_selection(s),
                          .include = source_include_flags(s, source_want(s, SEARCH_WANT_TEXT)),
                          .most_unindexed = SEARCH_MAX_UNINDEXED};
  if (s->verbatim) q.progress = s->request->progress;
  source_query(s->code, &q, &s->words);
}

static void *source_text_thread(void *ctx) {
  source_query_text(ctx);
  return NULL;
}

void search_text_start(search_ctx *s) {
  s->asking =
      s->request->mode != LODE_BY_VECTOR && !s->verbatim && os_thread_create(&s->thread, source_text_thread, s) == 0;
}

void search_text_join(search_ctx *s) {
  if (s->asking) (void)pthread_join(s->thread, NULL);
  s->asking = false;
}

static lode_status source_take_text(search_ctx *s, lode_error *err) {
  lode_status st;
  if (source_must_scan(s)) {
    st = source_scan_text(s, err);
  } else {
    if (s->asking)
      search_text_join(s);
    else
      source_query_text(s);
    st = s->words.st;
    if (st != LODE_OK && err) *err = s->words.err;
    if (st == LODE_OK) st = source_take_rows(s, s->words.rows, err);
    s->cut = s->cut || s->partial || lode_result_count(s->words.rows) >= source_want(s, SEARCH_WANT_TEXT);
  }
  if (st != LODE_OK && s->request->regex) search_explain_regex(err);
  return st;
}

static lode_status source_take_named(search_ctx *s, lode_str name, lode_error *err) {
  strbuf where = {0};
  lode_result *rows = NULL;
  lode_status st;
  strbuf_addstr(&where, "{\"$and\":[{\"$or\":[");
  search_put_name_clause(&where, name);
  strbuf_addstr(&where, "]}");
  if (s->where.len) {
    strbuf_addch(&where, ',');
    strbuf_add(&where, s->where.data, s->where.len);
  }
  strbuf_addstr(&where, "]}");
  if (where.failed) TRY_GOTO(err_nomem(err));
  lode_get_request get = {.select = search_selection(s), .limit = SEARCH_WANT_NAMES, .include = LODE_METADATA};
  get.select.where = (lode_str){where.data, where.len};
  if (s->verbatim) get.include |= LODE_DOCUMENT;
  TRY_GOTO(lode_get(s->code, &get, &rows, err));
  st = source_take_rows(s, rows, err);
done:
  lode_result_free(rows);
  strbuf_release(&where);
  return st;
}

/* Definitions of names in the query, wherever their words rank. */
static lode_status source_take_names(search_ctx *s, lode_error *err) {
  const search_question *q = &s->result->question;
  for (size_t i = 0; i < q->n_names; i++) TRY(source_take_named(s, q->names[i], err));
  return LODE_OK;
}

/* ---- By outlines ---- */

static bool source_has_path(const search_ctx *s, lode_str path) {
  for (size_t i = 0; i < s->n; i++)
    if (str_eq(s->v[i].path, path)) return true;
  return false;
}

/* Adds the first chunks of files that match by outline and have no candidate yet. */
static lode_status source_add_files(search_ctx *s, const lode_result *rows, lode_error *err) {
  lode_str ids[SEARCH_OUTLINE_FILES * SEARCH_OUTLINE_CHUNKS];
  strbuf id = {0};
  lode_result *chunks = NULL;
  size_t n = 0;
  lode_status st = LODE_OK;
  for (size_t i = 0; i < lode_result_count(rows) && i < SEARCH_OUTLINE_FILES; i++) {
    lode_str path = lode_result_at(rows, i)->id;
    indexer_file_state file = {0};
    if (source_has_path(s, path)) continue;
    if (s->versioned && !indexer_file_state_parse(lode_result_at(rows, i)->metadata, &s->json, &file)) continue;
    for (size_t k = 0; k < SEARCH_OUTLINE_CHUNKS; k++) {
      TRY_GOTO(indexer_chunk_id(&id, path, &file.version, k, err));
      char *p = mem_arena_copy(s->arena, id.data, id.len - 1);
      if (!p) TRY_GOTO(err_nomem(err));
      ids[n++] = (lode_str){p, id.len - 1};
    }
  }
  if (n == 0) goto done;
  lode_get_request get = {.select = search_selection(s), .include = LODE_METADATA};
  get.select.ids = ids;
  get.select.n_ids = n;
  TRY_GOTO(lode_get(s->code, &get, &chunks, err));
  st = source_take_rows(s, chunks, err);
done:
  lode_result_free(chunks);
  strbuf_release(&id);
  return st;
}

static void source_query_outlines(const search_ctx *s, search_reply *to) {
  lode_query_request q = {.mode = LODE_BY_TEXT,
                          .texts = &s->text,
                          .n = 1,
                          .k = source_want(s, SEARCH_WANT_OUTLINES),
                          .include = s->versioned ? LODE_METADATA : 0,
                          .most_unindexed = SEARCH_MAX_UNINDEXED,
                          .progress = s->request->progress};
  if (s->files) source_query(s->files, &q, to);
}

static lode_status source_take_outlines(search_ctx *s, const search_reply *from, lode_error *err) {
  lode_status st = from->st;
  search_note_snapshot(s, from->rows);
  if (st != LODE_OK && err) *err = from->err;
  if (st == LODE_OK) st = source_add_files(s, from->rows, err);
  for (size_t i = 0; i < lode_result_count(from->rows) && st == LODE_OK; i++)
    for (size_t k = 0; k < s->n; k++)
      if (str_eq(s->v[k].path, lode_result_at(from->rows, i)->id))
        s->v[k].outline = lode_result_at(from->rows, i)->score;
  return st;
}

/* ---- By vectors ---- */

/* Computes the cosines of candidates from other sources. */
static lode_status source_cosines(search_ctx *s, lode_collection *c, const float *vector, uint32_t dim, bool second,
                                  lode_error *err) {
  lode_str *ids = mem_calloc(s->n, sizeof *ids);
  lode_result *rows = NULL;
  size_t n = 0;
  lode_status st = LODE_OK;
  if (!ids) return err_nomem(err);
  for (size_t i = 0; i < s->n; i++)
    if (isnan(second ? s->v[i].cosine2 : s->v[i].cosine)) ids[n++] = s->v[i].id;
  lode_get_request get = {.select = {.ids = ids, .n_ids = n}, .include = LODE_VECTOR};
  if (n) TRY_GOTO(lode_get(c, &get, &rows, err));
  search_note_snapshot(s, rows);
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    const lode_row *row = lode_result_at(rows, i);
    size_t slot = source_slot(s, row->id);
    if (!row->vector || row->dimension != dim || !s->table[slot]) continue;
    double cosine = vec_cosine(vector, row->vector, dim);
    if (second)
      s->v[s->table[slot] - 1].cosine2 = cosine;
    else
      s->v[s->table[slot] - 1].cosine = cosine;
  }
done:
  lode_result_free(rows);
  mem_free(ids);
  return st;
}

static void source_query_vector(const search_ctx *s, search_reply *to) {
  lode_query_request q = {.mode = LODE_BY_VECTOR,
                          .vectors = s->vector,
                          .dimension = s->dim,
                          .n = 1,
                          .k = source_want(s, SEARCH_WANT_VECTOR),
                          .select = search_selection(s),
                          .include = source_include_flags(s, source_want(s, SEARCH_WANT_VECTOR)),
                          .progress = s->request->progress};
  if (s->vector) source_query(s->code, &q, to);
}

static lode_status source_take_vector(search_ctx *s, const search_reply *from, lode_error *err) {
  lode_status st = from->st;
  search_note_snapshot(s, from->rows);
  if (st != LODE_OK && err) *err = from->err;
  s->cut = s->cut || lode_result_count(from->rows) >= source_want(s, SEARCH_WANT_VECTOR);
  for (size_t i = 0; i < lode_result_count(from->rows) && st == LODE_OK; i++) {
    const lode_row *row = lode_result_at(from->rows, i);
    rank_candidate *c;
    st = source_candidate(s, row, &c, err);
    if (c && !isnan(row->distance)) c->cosine = 1 - row->distance;
  }
  return st;
}

/* The collection of second vectors has only ids: the chunks are read from "code". */
static lode_status source_take_second(search_ctx *s, lode_error *err) {
  lode_query_request q = {.mode = LODE_BY_VECTOR,
                          .vectors = s->vector2,
                          .dimension = s->dim2,
                          .n = 1,
                          .k = source_want(s, SEARCH_WANT_VECTOR)};
  lode_result *near = NULL, *rows = NULL;
  lode_str *ids = NULL;
  lode_status st;
  TRY_GOTO(lode_query(s->quality, &q, &near, err));
  search_note_snapshot(s, near);
  size_t n = lode_result_count(near);
  s->cut = s->cut || n >= q.k;
  ids = mem_calloc(n, sizeof *ids);
  if (!ids) TRY_GOTO(err_nomem(err));
  for (size_t i = 0; i < n; i++) ids[i] = lode_result_at(near, i)->id;
  lode_get_request get = {.select = search_selection(s), .include = LODE_METADATA};
  get.select.ids = ids;
  get.select.n_ids = n;
  if (n) TRY_GOTO(lode_get(s->code, &get, &rows, err));
  if (rows) st = source_take_rows(s, rows, err);
done:
  mem_free(ids);
  lode_result_free(near);
  lode_result_free(rows);
  return st;
}

/* ---- All sources ---- */

/* A source that fails for damage, a mismatch or a limit is left out and noted. *used when it could be used. */
static lode_status source_tolerate(search_ctx *s, const char *what, lode_status st, const lode_error *why, bool *used,
                                   lode_error *err) {
  if (st == LODE_OK) {
    *used = true;
    return LODE_OK;
  }
  if (err) *err = *why;
  if (st != LODE_CORRUPT && st != LODE_MISMATCH && st != LODE_LIMIT) return st;
  search_note(s, what, why);
  return LODE_OK;
}

/* While a large tree is indexed, the indexes may lag: chunks that no index has are read one by one, only as many as
 * take some tenths of a second, and a note says how far the text index is behind. */
static void source_check_backlog(search_ctx *s) {
  lode_stats stats;
  if (s->request->mode == LODE_BY_VECTOR || lode_collection_stats(s->code, &stats, NULL) != LODE_OK) return;
  s->names_backlog = stats.unindexed > SEARCH_MAX_UNINDEXED;
  if (stats.untexted <= SEARCH_MAX_UNINDEXED) return;
  lode_error why = {.record = LODE_NO_RECORD};
  (void)err_set(&why, LODE_BUSY, "the text index is behind by %llu chunks; `lode index` brings it up to date",
                (unsigned long long)stats.untexted);
  search_note(s, s->vector || s->vector2 ? "by vectors and some of the words" : "by some of the words", &why);
}

/* Takes candidates in a fixed order, whichever query finished first. */
static lode_status source_take_all(search_ctx *s, const search_reply *vector, const search_reply *outlines, bool *used,
                                   lode_error *err) {
  lode_error why = {.record = LODE_NO_RECORD};
  bool words = s->request->mode != LODE_BY_VECTOR, unused;
  if (words) TRY(source_tolerate(s, "without words", source_take_text(s, &why), &why, used, err));
  if (s->vector) TRY(source_tolerate(s, "without vectors", source_take_vector(s, vector, &why), &why, used, err));
  if (s->vector2) TRY(source_tolerate(s, "without the second vectors", source_take_second(s, &why), &why, used, err));
  if (!words || s->request->similar.data) return LODE_OK;
  if (!s->names_backlog && !source_must_scan(s))
    TRY(source_tolerate(s, "without names", source_take_names(s, &why), &why, &unused, err));
  if (s->verbatim) return LODE_OK;
  return source_tolerate(s, "without outlines", source_take_outlines(s, outlines, &why), &why, &unused, err);
}

static lode_status source_gather_once(search_ctx *s, bool *used, lode_error *err) {
  search_reply vector = {0}, outlines = {0};
  source_query_vector(s, &vector);
  if (s->request->mode != LODE_BY_VECTOR && !s->request->similar.data && !s->verbatim)
    source_query_outlines(s, &outlines);
  lode_status st = source_take_all(s, &vector, &outlines, used, err);
  lode_result_free(vector.rows);
  lode_result_free(outlines.rows);
  return st;
}

lode_status search_gather(search_ctx *s, bool *used, lode_error *err) {
  *used = false;
  source_check_backlog(s);
  for (;; s->want_factor *= 16) {
    s->cut = false;
    TRY(source_gather_once(s, used, err));
    /* if too few are left, they may have been excluded by the glob: ask for more. How many are asked for does not
     * depend on the limit, so that an answer begins with every shorter one. */
    if (s->verbatim || s->n >= SEARCH_ENOUGH || !s->cut || !s->request->path.data || s->want_factor >= SEARCH_MAX_WANT)
      return LODE_OK;
  }
}

lode_status search_add_cosines(search_ctx *s, lode_error *err) {
  lode_error why = {.record = LODE_NO_RECORD};
  lode_status st = LODE_OK;
  if (s->vector) st = source_cosines(s, s->code, s->vector, s->dim, false, &why);
  if (st == LODE_OK && s->vector2) st = source_cosines(s, s->quality, s->vector2, s->dim2, true, &why);
  if (st == LODE_OK || st == LODE_CORRUPT) return LODE_OK;
  if (err) *err = why;
  return st;
}
