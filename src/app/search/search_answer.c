/* SPDX-License-Identifier: Apache-2.0 */
/* search_answer.c - hits from the best candidates; see search_internal.h. */
#include "search/search_internal.h"

/* Lines `from` to `to` (from 1) of a text. */
static lode_str hits_lines_of(lode_str text, uint32_t from, uint32_t to) {
  size_t at = 0, start = text.len;
  for (uint32_t line = 1; at < text.len; line++) {
    if (line == from) start = at;
    const char *end = memchr(text.data + at, '\n', text.len - at);
    at = end ? (size_t)(end - text.data) + 1 : text.len;
    if (line == to) break;
  }
  return start < at ? (lode_str){text.data + start, at - start} : (lode_str){"", 0};
}

/* Replaces the snippet by lines of the file, with context, if the file is the one that was indexed. The whole file is
 * masked, because a key may begin outside of these lines. */
static lode_status hits_add_context(search_ctx *s, search_file_reader *reader, search_hit *hit, lode_error *err) {
  uint32_t n = s->request->context, from = hit->first > n ? hit->first - n : 1, to = hit->last + n;
  bool found;
  TRY(search_file_reader_read(reader, s->files, hit->path, &found, err));
  if (!found) return LODE_OK;
  lode_str text = {reader->text.data ? reader->text.data : "", reader->text.len};
  if (text.len) indexer_mask_for_display(s->showing, reader->text.data, text.len);
  lode_str part = hits_lines_of(text, from, to);
  if (!part.len || !utf8_valid(part.data, part.len)) return LODE_OK;
  if (!search_copy(s, &part)) return err_nomem(err);
  hit->snippet = part;
  hit->snippet_line = from;
  return LODE_OK;
}

static lode_status hits_add_snippets(search_ctx *s, search_file_reader *reader, const rank_hit *ranked,
                                     lode_error *err) {
  size_t n = s->result->n;
  lode_str *ids = mem_calloc(n, sizeof *ids);
  lode_result *rows = NULL;
  lode_status st = LODE_OK;
  if (!ids) return err_nomem(err);
  for (size_t i = 0; i < n; i++) ids[i] = ranked[i].chunk->id;
  lode_get_request get = {.select = {.ids = ids, .n_ids = n}, .include = LODE_DOCUMENT | LODE_METADATA};
  TRY_GOTO(lode_get(s->code, &get, &rows, err));
  search_note_snapshot(s, rows);
  size_t at = 0;
  for (size_t i = 0; i < n; i++) {
    const lode_row *row = lode_result_at(rows, at);
    search_hit *hit = &s->result->hits[i];
    indexer_chunk_view view;
    if (!row || !str_eq(row->id, ids[i])) continue; /* deleted meanwhile */
    at++;
    if (indexer_chunk_view_parse(row->metadata, &s->json, &view, NULL) != LODE_OK || view.offset > row->document.len)
      continue;
    hit->snippet = (lode_str){row->document.data + view.offset, row->document.len - view.offset};
    while (hit->snippet.len && (unsigned char)hit->snippet.data[hit->snippet.len - 1] <= ' ') hit->snippet.len--;
    if (!search_copy(s, &hit->snippet)) TRY_GOTO(err_nomem(err));
    indexer_mask_for_display(s->showing, (char *)hit->snippet.data, hit->snippet.len); /* owned by the arena */
    if (s->request->context) TRY_GOTO(hits_add_context(s, reader, hit, err));
  }
done:
  lode_result_free(rows);
  mem_free(ids);
  return st;
}

/* Checks which files of the answer have changed: a few files cost nothing. */
static lode_status hits_check_files(search_ctx *s, search_file_reader *reader, lode_error *err) {
  size_t n = s->result->n;
  lode_str *paths = mem_calloc(n, sizeof *paths);
  search_freshness *fresh = mem_calloc(n, sizeof *fresh);
  lode_status st = paths && fresh ? LODE_OK : err_nomem(err);
  for (size_t i = 0; i < n && st == LODE_OK; i++) paths[i] = s->result->hits[i].path;
  if (st == LODE_OK) st = search_file_reader_check(reader, s->files, paths, n, fresh, err);
  for (size_t i = 0; i < n && st == LODE_OK; i++) {
    s->result->hits[i].freshness = fresh[i];
    s->result->stale += fresh[i] != SEARCH_FILE_FRESH;
  }
  mem_free(paths);
  mem_free(fresh);
  return st;
}

/* Is a definition of the kind and the name that the request asks for? */
static bool hits_def_fits(const search_request *r, lode_str kind, lode_str name) {
  return (!r->kind.data || search_kind_fits(r->kind, kind)) && (!r->name.data || str_eq(r->name, name));
}

/* Which of the chunk's definitions a hit is about: the one that was asked for by name, else the chunk's own, unless it
 * is not what the options ask for and another one is. */
static const indexer_def *hits_def_of(const search_request *r, const rank_candidate *c) {
  if (c->shown) return &c->defs[c->shown - 1];
  if (hits_def_fits(r, c->kind, c->name)) return NULL;
  for (size_t i = 0; i < c->n_defs; i++)
    if (hits_def_fits(r, c->defs[i].kind, c->defs[i].name)) return &c->defs[i];
  return NULL;
}

/* Ranks the candidates. While they give too few hits and there are more, those are ranked and come after: each batch is
 * the same whatever the limit, so an answer begins with every shorter one. */
static lode_status hits_rank(search_ctx *s, rank_hit *ranked, size_t limit, size_t *n, lode_error *err) {
  const search_question *q = &s->result->question;
  TRY(rank_run(q, s->v, s->n, s->request->weights, limit, ranked, n, err));
  s->result->weak = *n > 0 && search_is_weak(s);
  while (*n < limit && s->cut && s->n_batches < SEARCH_BATCHES && s->want_factor < SEARCH_MAX_WANT) {
    size_t more = 0, before = *n;
    TRY(search_find_more(s, err));
    TRY(rank_run(q, s->v, s->n, s->request->weights, limit - before, ranked + before, &more, err));
    *n += more;
    for (size_t i = before ? before : 1; i < *n; i++) /* scores are relative to the other candidates */
      if (ranked[i].score > ranked[i - 1].score) ranked[i].score = ranked[i - 1].score;
  }
  return LODE_OK;
}

lode_status search_make_hits(search_ctx *s, lode_error *err) {
  size_t limit = s->request->limit ? s->request->limit : 10, n = 0;
  rank_hit *ranked = mem_calloc(limit, sizeof *ranked);
  search_file_reader reader;
  lode_status st = LODE_OK;
  if (!ranked) return err_nomem(err);
  search_file_reader_open(&reader, s->project->root);
  TRY_GOTO(hits_rank(s, ranked, limit, &n, err));
  s->result->hits = mem_arena_alloc(s->arena, (n ? n : 1) * sizeof *s->result->hits);
  if (!s->result->hits) TRY_GOTO(err_nomem(err));
  s->result->n = n;
  for (size_t i = 0; i < n; i++) {
    const rank_candidate *c = ranked[i].chunk;
    search_hit *hit = &s->result->hits[i];
    *hit = (search_hit){.path = c->path,
                        .language = c->language,
                        .kind = c->kind,
                        .name = c->name,
                        .parents = c->parents,
                        .snippet = {"", 0},
                        .first = c->first,
                        .last = c->last,
                        .line = c->line,
                        .snippet_line = c->first,
                        .score = ranked[i].score,
                        .bm25 = c->bm25,
                        .cosine = c->cosine,
                        .cosine2 = c->cosine2,
                        .more = ranked[i].more,
                        .copies = ranked[i].copies};
    const indexer_def *def = hits_def_of(s->request, c);
    if (def) {
      hit->name = def->name;
      hit->kind = def->kind;
      hit->line = def->line;
    }
    memcpy(hit->features, c->features, sizeof hit->features);
  }
  if (n && !s->request->files_only) TRY_GOTO(hits_add_snippets(s, &reader, ranked, err));
  if (n) TRY_GOTO(hits_check_files(s, &reader, err));
done:
  search_file_reader_close(&reader);
  mem_free(ranked);
  return st;
}
