/* SPDX-License-Identifier: Apache-2.0 */
/* search_answer.c - hits from the best candidates; see search_internal.h. */
#include "search/search_internal.h"

#include <stdlib.h>

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
    if (!row || !str_eq(row->id, ids[i])) { /* deleted meanwhile: its file has another version, if there are versions */
      s->mixed = s->mixed || s->versioned;
      continue;
    }
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

/* ---- Brief chunks ---- */

/* For a question, the head of a class or a getter alone says little. */
static bool hits_is_brief(const search_ctx *s, const search_hit *hit) {
  return !s->result->question.is_name && !s->verbatim && !s->request->similar.data && !s->request->context &&
         hit->snippet.len && hit->last - hit->first < SEARCH_BRIEF_LINES;
}

/* Does one of the first n hits show the line? Later ones do not matter: how many are asked for changes nothing. */
static bool hits_are_shown(const search_result *r, size_t n, lode_str path, uint32_t line) {
  for (size_t i = 0; i < n; i++)
    if (str_eq(r->hits[i].path, path) && r->hits[i].first <= line && line <= r->hits[i].last) return true;
  return false;
}

/* Appends the first lines of the chunk that follows, unless they are shown already. */
static lode_status hits_append_chunk(search_ctx *s, size_t which, const lode_row *row, lode_error *err) {
  search_hit *hit = &s->result->hits[which];
  indexer_chunk_view view;
  strbuf text = {0};
  if (indexer_chunk_view_parse(row->metadata, &s->json, &view, NULL) != LODE_OK || view.offset > row->document.len)
    return LODE_OK;
  if (view.first <= hit->last || view.first - hit->last > SEARCH_BRIEF_GAP ||
      hits_are_shown(s->result, which, hit->path, view.first))
    return LODE_OK;
  lode_str next = {row->document.data + view.offset, row->document.len - view.offset};
  uint32_t line = hit->first, room = hit->first + SEARCH_SHOWN_LINES - view.first;
  next = hits_lines_of(next, 1, room);
  while (next.len && (unsigned char)next.data[next.len - 1] <= ' ') next.len--;
  strbuf_add(&text, hit->snippet.data, hit->snippet.len);
  for (size_t i = 0; i < hit->snippet.len; i++) line += hit->snippet.data[i] == '\n';
  for (; line < view.first; line++) strbuf_addch(&text, '\n');
  strbuf_add(&text, next.data, next.len);
  for (size_t i = 0; i < next.len; i++) line += next.data[i] == '\n';
  lode_str whole = {text.data ? text.data : "", text.len};
  bool kept = !text.failed && search_copy(s, &whole);
  strbuf_release(&text);
  if (!kept) return err_nomem(err);
  indexer_mask_for_display(s->showing, (char *)whole.data, whole.len); /* owned by the arena */
  hit->snippet = whole;
  hit->last = line;
  return LODE_OK;
}

/* The id of the chunk that follows, in the arena; empty if there is none. */
static lode_status hits_next_id(search_ctx *s, const rank_candidate *c, lode_str *id, lode_error *err) {
  strbuf text = {0};
  *id = (lode_str){"", 0};
  lode_status st = LODE_OK;
  if (indexer_chunk_id_beside(&text, c->id, 1)) {
    *id = (lode_str){text.data, text.len};
    if (!search_copy(s, id)) st = err_nomem(err);
  } else if (text.failed) {
    st = err_nomem(err);
  }
  strbuf_release(&text);
  return st;
}

/* Shows what follows brief chunks. */
static lode_status hits_lengthen(search_ctx *s, const rank_hit *ranked, lode_error *err) {
  search_result *r = s->result;
  lode_str *ids = mem_calloc(r->n, sizeof *ids);
  size_t *owner = mem_calloc(r->n, sizeof *owner), n = 0;
  lode_result *rows = NULL;
  lode_status st = ids && owner ? LODE_OK : err_nomem(err);
  for (size_t i = 0; i < r->n && st == LODE_OK; i++) {
    if (!hits_is_brief(s, &r->hits[i])) continue;
    st = hits_next_id(s, ranked[i].chunk, &ids[n], err);
    owner[n] = i;
    n += ids[n].len != 0;
  }
  lode_get_request get = {.select = {.ids = ids, .n_ids = n}, .include = LODE_DOCUMENT | LODE_METADATA};
  if (st == LODE_OK && n) st = lode_get(s->code, &get, &rows, err);
  search_note_snapshot(s, rows);
  for (size_t i = 0, at = 0; i < n && st == LODE_OK; i++) {
    const lode_row *row = lode_result_at(rows, at);
    if (!row || !str_eq(row->id, ids[i])) continue; /* the last one of its file */
    at++;
    st = hits_append_chunk(s, owner[i], row, err);
  }
  lode_result_free(rows);
  mem_free(owner);
  mem_free(ids);
  return st;
}

/* Later results of a question show the part of a long chunk that has its words: more of them are read at a glance, and
 * by an agent for its tokens. */
static void hits_shorten(search_ctx *s) {
  if (s->result->question.is_name || s->verbatim || s->request->similar.data || s->request->context) return;
  for (size_t i = SEARCH_WHOLE_HITS; i < s->result->n; i++) {
    search_hit *hit = &s->result->hits[i];
    uint32_t skipped, lines = 0;
    if (hit->snippet.len <= SEARCH_WINDOW_BYTES) continue;
    hit->snippet = search_window(&s->result->question, hit->snippet, SEARCH_WINDOW_BYTES, &skipped);
    while (hit->snippet.len && hit->snippet.data[hit->snippet.len - 1] == '\n') hit->snippet.len--;
    for (size_t k = 0; k < hit->snippet.len; k++) lines += hit->snippet.data[k] == '\n';
    hit->first += skipped;
    hit->snippet_line = hit->first;
    hit->last = hit->first + lines;
  }
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

/* ---- Ranked candidates ---- */

typedef struct hits_list {
  rank_hit *v;
  size_t n, limit;
} hits_list;

/* An earlier hit that stands for this one, too: its text is the same, or only files are asked for and it is of the same
 * one. */
static rank_hit *hits_find_same(const search_request *r, const hits_list *list, const rank_candidate *c) {
  for (size_t i = 0; i < list->n; i++) {
    const rank_candidate *other = list->v[i].chunk;
    if (c->hash && other->hash && strcmp(c->hash, other->hash) == 0) return &list->v[i];
    if (r->files_only && str_eq(c->path, other->path)) return &list->v[i];
  }
  return NULL;
}

/* Appends the hits of a batch. Of at most `limit` of them, as many may be folded into earlier ones as there are, so
 * that the rest fills the list. */
static void hits_append(const search_request *r, hits_list *list, const rank_hit *batch, size_t n) {
  for (size_t i = 0; i < n; i++) {
    rank_hit *same = hits_find_same(r, list, batch[i].chunk);
    if (same && !str_eq(same->chunk->path, batch[i].chunk->path)) same->copies += 1 + batch[i].copies;
    if (same || list->n == list->limit) continue;
    list->v[list->n] = batch[i];
    rank_hit *last = &list->v[list->n++];
    /* scores are relative to the other candidates of the batch */
    if (list->n > 1 && last->score > last[-1].score) last->score = last[-1].score;
  }
}

static lode_status hits_rank_batch(search_ctx *s, rank_hit *scratch, hits_list *list, lode_error *err) {
  const search_request *r = s->request;
  rank_weights weights = r->weights ? *r->weights : rank_default_weights;
  size_t n = 0;
  if (r->files_only) /* further chunks of a file come after all files */
    for (size_t row = RANK_WORDS; row <= RANK_NAMES; row++) weights.again[row] = weights.again_file[row] = 0;
  TRY(rank_run(&s->result->question, s->v, s->n, &weights, list->limit, scratch, &n, err));
  hits_append(r, list, scratch, n);
  return LODE_OK;
}

/* Ranks the candidates. While they give too few hits and there are more, those are ranked and come after: each batch is
 * the same whatever the limit, so an answer begins with every shorter one. */
static lode_status hits_rank(search_ctx *s, hits_list *list, lode_error *err) {
  rank_hit *scratch = mem_calloc(list->limit, sizeof *scratch);
  lode_status st = scratch ? hits_rank_batch(s, scratch, list, err) : err_nomem(err);
  s->result->weak = st == LODE_OK && list->n > 0 && search_is_weak(s);
  while (st == LODE_OK && list->n < list->limit && s->cut && s->n_batches < SEARCH_BATCHES &&
         s->want_factor < SEARCH_MAX_WANT) {
    st = search_find_more(s, err);
    if (st == LODE_OK) st = hits_rank_batch(s, scratch, list, err);
  }
  mem_free(scratch);
  return st;
}

static void hits_fill(const search_request *r, const rank_hit *ranked, search_hit *hit) {
  const rank_candidate *c = ranked->chunk;
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
                      .score = ranked->score,
                      .bm25 = c->bm25,
                      .cosine = c->cosine,
                      .cosine2 = c->cosine2,
                      .more = ranked->more,
                      .copies = ranked->copies};
  const indexer_def *def = hits_def_of(r, c);
  if (def) {
    hit->name = def->name;
    hit->kind = def->kind;
    hit->line = def->line;
  }
  memcpy(hit->features, c->features, sizeof hit->features);
}

lode_status search_make_hits(search_ctx *s, lode_error *err) {
  hits_list list = {.limit = s->request->limit ? s->request->limit : 10};
  search_file_reader reader;
  lode_status st = LODE_OK;
  list.v = mem_calloc(list.limit, sizeof *list.v);
  if (!list.v) return err_nomem(err);
  search_file_reader_open(&reader, s->project->root);
  TRY_GOTO(hits_rank(s, &list, err));
  s->result->hits = mem_arena_alloc(s->arena, (list.n ? list.n : 1) * sizeof *s->result->hits);
  if (!s->result->hits) TRY_GOTO(err_nomem(err));
  s->result->n = list.n;
  for (size_t i = 0; i < list.n; i++) hits_fill(s->request, &list.v[i], &s->result->hits[i]);
  if (list.n && !s->request->files_only) {
    TRY_GOTO(hits_add_snippets(s, &reader, list.v, err));
    TRY_GOTO(hits_lengthen(s, list.v, err));
    hits_shorten(s);
  }
  if (list.n) TRY_GOTO(hits_check_files(s, &reader, err));
done:
  search_file_reader_close(&reader);
  mem_free(list.v);
  return st;
}
