/* SPDX-License-Identifier: Apache-2.0 */
/* code_search.c - see code_search.h. */
#include "search/search_internal.h"
#include "search/search_glossary.h"

#include <stdio.h>

/* ---- Notes ---- */

void search_note(search_ctx *s, const char *what, const lode_error *why) {
  size_t len = strlen(s->result->note);
  snprintf(s->result->note + len, sizeof s->result->note - len, "%s%s: %.200s", len ? "; " : "", what, why->text);
}

void search_note_snapshot(search_ctx *s, const lode_result *rows) {
  uint64_t moment = lode_result_moment(rows);
  if (!moment) return; /* no answer, or a store without snapshots */
  if (!s->moment) s->moment = moment;
  s->mixed = s->mixed || s->moment != moment;
}

/* ---- Opening ---- */

static lode_status search_open_colls(search_ctx *s, lode_error *err) {
  lode_collection_list *list = NULL;
  lode_collection_options plain = {0};
  lode_status st = LODE_OK;
  bool code = false, files = false, quality = false;
  indexer_stamp stamp = {0};
  TRY(lode_collections(s->store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (str_eq(info->name, STR_LIT(INDEXER_COLL_CODE))) {
      code = true;
      s->result->pending = info->pending;
      if (info->embedder.data && info->records > info->pending)
        snprintf(s->embedder, sizeof s->embedder, "%.*s", (int)info->embedder.len, info->embedder.data);
    } else if (str_eq(info->name, STR_LIT(INDEXER_COLL_FILES))) {
      files = true;
      indexer_stamp_parse(info->metadata, &stamp);
    } else if (str_eq(info->name, STR_LIT(INDEXER_COLL_QUALITY)) && info->records > info->pending) {
      quality = true;
      if (info->embedder.data)
        snprintf(s->quality_embedder, sizeof s->quality_embedder, "%.*s", (int)info->embedder.len, info->embedder.data);
    }
  }
  lode_collection_list_free(list);
  s->unmarked = stamp.revision < INDEXER_REVISION_HEADS;
  s->versioned = files && stamp.versions;
  s->showing = indexer_stamp_display(&stamp, &s->project->config);
  s->result->doubted = s->showing == INDEXER_DISPLAY_UNSURE;
  if (!code)
    return err_set(err, LODE_NOT_FOUND, "%.300s is not indexed yet: run `lode index`",
                   project_display_name(s->project));
  TRY_GOTO(lode_collection_open(s->store, STR_LIT(INDEXER_COLL_CODE), &plain, &s->code, err));
  if (files) TRY_GOTO(lode_collection_open(s->store, STR_LIT(INDEXER_COLL_FILES), &plain, &s->files, err));
  if (quality) TRY_GOTO(lode_collection_open(s->store, STR_LIT(INDEXER_COLL_QUALITY), &plain, &s->quality, err));
done:
  return st;
}

static void search_close_all(search_ctx *s) {
  search_text_join(s);
  lode_result_free(s->words.rows);
  if (s->code) lode_collection_close(s->code);
  if (s->files) lode_collection_close(s->files);
  if (s->quality) lode_collection_close(s->quality);
  if (s->own_model) lode_embedder_close(s->model);
  lode_embedder_close(s->second);
  mem_free(s->vector);
  mem_free(s->vector2);
  mem_free(s->v);
  for (size_t i = 0; i < s->n_batches; i++) mem_free(s->batches[i]);
  mem_free(s->table);
  search_versions_release(&s->seen);
  strbuf_release(&s->where);
  strbuf_release(&s->where_document);
  json_release(&s->json);
}

/* ---- Similar chunks ---- */

static lode_status search_chunks_of(search_ctx *s, lode_str path, lode_result **rows, lode_error *err) {
  strbuf where = {0};
  strbuf_addstr(&where, "{\"path\":");
  json_put_string(&where, path);
  strbuf_addch(&where, '}');
  lode_get_request get = {.select = {.where = {where.data, where.len}}, .include = LODE_ALL};
  lode_status st = where.failed ? err_nomem(err) : lode_get(s->code, &get, rows, err);
  if (st == LODE_OK && s->versioned) st = search_versions_load_rows(&s->seen, s->files, *rows, err);
  strbuf_release(&where);
  return st;
}

/* The chunks of the file that the question names. Unless a file is called so, PATH:NAME names a definition in it. */
static lode_status search_similar_chunks(search_ctx *s, lode_str *name, lode_result **rows, lode_error *err) {
  lode_str *path = &s->own.similar;
  TRY(search_chunks_of(s, *path, rows, err));
  size_t colon = path->len;
  while (colon && path->data[colon - 1] != ':') colon--;
  if (lode_result_count(*rows) || s->own.similar_line || colon < 2 || colon == path->len) return LODE_OK;
  *name = (lode_str){path->data + colon, path->len - colon};
  path->len = colon - 1;
  lode_result_free(*rows);
  *rows = NULL;
  return search_chunks_of(s, *path, rows, err);
}

/* Makes the chunk around a line of a file, or with a name, the question: its vector, or its words. */
static lode_status search_take_similar(search_ctx *s, lode_error *err) {
  const search_request *r = s->request;
  lode_result *rows = NULL;
  lode_status st;
  const lode_row *best = NULL;
  lode_str name = {0};
  char quoted[256];
  TRY_GOTO(search_similar_chunks(s, &name, &rows, err));
  search_note_snapshot(s, rows);
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    const lode_row *row = lode_result_at(rows, i);
    indexer_chunk_view view;
    bool settled = true;
    if (s->versioned && search_versions_judge(&s->seen, s->before, row->id, &settled) == SEARCH_VERSION_OTHER) {
      s->mixed = s->mixed || !settled;
      continue;
    }
    if (indexer_chunk_view_parse(row->metadata, &s->json, &view, NULL) != LODE_OK) continue;
    bool here = !name.len || str_eq(view.name, name);
    if (name.len && here && !r->similar_line) s->own.similar_line = view.first;
    here = here && (!r->similar_line || (view.first <= r->similar_line && r->similar_line <= view.last));
    /* a whole file is represented by its largest chunk */
    if (here && (!best || (!r->similar_line && row->document.len > best->document.len))) best = row;
  }
  str_quote(r->similar, quoted, sizeof quoted);
  if (!best)
    TRY_GOTO(err_set(err, LODE_NOT_FOUND, "%s%s is not in the index; `lode index` brings it up to date", quoted,
                     r->similar_line ? " at that line"
                     : name.len      ? " with that name"
                                     : ""));
  s->text = (lode_str){mem_arena_copy(s->arena, best->document.data ? best->document.data : "", best->document.len),
                       best->document.len};
  if (!s->text.data) TRY_GOTO(err_nomem(err));
  if (best->vector) {
    s->dim = best->dimension;
    s->vector = mem_calloc(s->dim, sizeof *s->vector);
    if (!s->vector) TRY_GOTO(err_nomem(err));
    memcpy(s->vector, best->vector, s->dim * sizeof *s->vector);
  }
  search_question_parse(s->text.len > 400 ? (lode_str){s->text.data, 400} : s->text, &s->result->question);
  s->result->question.is_name = false;
  s->result->question.n_names = 0;
done:
  lode_result_free(rows);
  return st;
}

/* ---- The question ---- */

static bool search_has_words(lode_str text) {
  for (size_t i = 0; i < text.len; i++)
    if (search_is_name_byte((unsigned char)text.data[i])) return true;
  return false;
}

/* A question in another language is asked in the English words that the table has for it. Without the table it is asked
 * as it is. */
static lode_status search_to_english(search_ctx *s, lode_error *err) {
  lode_error why = {.record = LODE_NO_RECORD};
  search_glossary *glossary = NULL;
  strbuf out = {0};
  lode_str english;
  search_language language = search_language_of(s->own.query);
  if (language == SEARCH_ENGLISH || s->verbatim || s->own.similar.data) return LODE_OK;
  lode_status st = search_glossary_open(NULL, &glossary, &why);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK) {
    search_note(s, "without a table of words of other languages", &why);
    return LODE_OK;
  }
  search_glossary_translate(glossary, language, s->own.query, &out);
  search_glossary_close(glossary);
  english = (lode_str){out.data, out.len};
  if (out.failed || (out.len && !search_copy(s, &english))) {
    st = err_nomem(err);
  } else if (search_has_words(english)) {
    s->asked = s->own.query;
    s->own.query = english;
    snprintf(s->result->note, sizeof s->result->note, "%s: asked in the English words %.*s",
             search_language_name(language), english.len > 200 ? 200 : (int)english.len, english.data);
  }
  strbuf_release(&out);
  return st;
}

/* Sets the text query, without stop words: they would match every chunk. What was asked in another language is asked
 * as it is, too: comments and texts may be in it. */
static lode_status search_take_text(search_ctx *s, lode_error *err) {
  lode_str all = s->result->question.text;
  strbuf out = {0};
  lode_status st = LODE_OK;
  if (s->asked.len) {
    strbuf_add(&out, s->asked.data, s->asked.len);
    strbuf_addch(&out, ' ');
  }
  for (size_t i = 0; i < all.len;) {
    size_t start = i;
    while (i < all.len && (unsigned char)all.data[i] > ' ') i++;
    search_words words;
    search_words_split((lode_str){all.data + start, i - start}, &words);
    if (words.n != 1 || !search_word_is_stop(&words.v[0])) {
      strbuf_add(&out, all.data + start, i - start);
      strbuf_addch(&out, ' ');
    }
    while (i < all.len && (unsigned char)all.data[i] <= ' ') i++;
  }
  s->text = out.len ? (lode_str){out.data, out.len} : all;
  if (out.failed || !search_copy(s, &s->text)) st = err_nomem(err);
  strbuf_release(&out);
  return st;
}

static lode_status search_embed_question(lode_embedder *model, lode_str text, float **vector, uint32_t *dim,
                                         lode_error *err) {
  *dim = lode_embedder_info_of(model)->dimension;
  *vector = mem_calloc(*dim ? *dim : 1, sizeof **vector);
  if (!*vector) return err_nomem(err);
  return lode_embed(model, &text, 1, *vector, err);
}

static lode_status search_open_models(search_ctx *s, lode_error *err) {
  lode_error why = {.record = LODE_NO_RECORD};
  const search_request *r = s->request;
  lode_status st = LODE_OK;
  if (r->mode == LODE_BY_TEXT) return LODE_OK;
  if (!s->vector && s->embedder[0]) {
    s->model = r->embedder;
    if (!s->model) {
      st = project_open_model(s->project, str_of(s->embedder), NULL, &s->model, &why);
      s->own_model = st == LODE_OK;
    }
    if (st == LODE_OK) st = search_embed_question(s->model, r->query, &s->vector, &s->dim, &why);
    if (st == LODE_NOMEM) return err_nomem(err);
    if (st != LODE_OK) {
      search_note(s, "by words alone", &why);
      mem_free(s->vector);
      s->vector = NULL;
    }
  }
  if (s->quality && s->quality_embedder[0] && !r->similar.data) {
    st = project_open_model(s->project, str_of(s->quality_embedder), NULL, &s->second, &why);
    if (st == LODE_OK) st = search_embed_question(s->second, r->query, &s->vector2, &s->dim2, &why);
    if (st == LODE_NOMEM) return err_nomem(err);
    if (st != LODE_OK) {
      search_note(s, "without the second vectors", &why);
      mem_free(s->vector2);
      s->vector2 = NULL;
    }
  }
  if (r->mode == LODE_BY_VECTOR && !s->vector && !s->vector2)
    return err_set(err, LODE_UNSUPPORTED,
                   "there are no vectors to search by%s%.300s; `lode search --mode text` goes by words",
                   why.text[0] ? ": " : "", why.text);
  return LODE_OK;
}

/* ---- A search ---- */

/* Is it the chunk that was asked about? */
static bool search_is_subject(const search_request *r, const rank_candidate *c) {
  return r->similar.data && str_eq(c->path, r->similar) &&
         (!r->similar_line || (c->first <= r->similar_line && r->similar_line <= c->last));
}

/* Drops the chunk that was asked about, and records whose paths lead out of the project: no file of it is their
 * source. */
static void search_drop_outside(search_ctx *s) {
  for (size_t i = 0; i < s->n;) {
    bool outside = !search_path_is_inside(s->v[i].path);
    s->result->outside += outside;
    if (outside || search_is_subject(s->request, &s->v[i]))
      s->v[i] = s->v[--s->n];
    else
      i++;
  }
}

/* Keeps the candidates that are their files' chunks, whole files of them. */
static lode_status search_drop_other_versions(search_ctx *s, lode_error *err) {
  size_t kept = 0, moving = 0;
  bool settled = true;
  if (!s->versioned) return LODE_OK;
  lode_str *ids = mem_calloc(s->n ? s->n : 1, sizeof *ids);
  if (!ids) return err_nomem(err);
  for (size_t i = 0; i < s->n; i++) ids[i] = s->v[i].id;
  lode_status st = search_versions_load(&s->seen, s->files, ids, s->n, err);
  mem_free(ids);
  for (size_t i = 0; i < s->n && st == LODE_OK; i++) {
    search_version_fit fit = search_versions_judge(&s->seen, s->before, s->v[i].id, &settled);
    moving += fit == SEARCH_VERSION_UNSURE;
    if (fit == SEARCH_VERSION_FITS || (fit == SEARCH_VERSION_UNSURE && !s->last)) s->v[kept++] = s->v[i];
  }
  s->n = st == LODE_OK ? kept : 0;
  s->mixed = s->mixed || !settled;
  if (moving && s->last) {
    lode_error why = {.record = LODE_NO_RECORD};
    (void)err_set(&why, LODE_BUSY, "they are being indexed right now: ask again");
    search_note(s, "without some files", &why);
  }
  return st;
}

/* Everything before the ranking. */
static lode_status search_find_candidates(search_ctx *s, lode_error *err) {
  const search_request *request = s->request;
  search_question *question = &s->result->question;
  bool used;
  TRY(search_open_colls(s, err));
  TRY(search_make_filter(s, err));
  if (request->similar.data) {
    TRY(search_take_similar(s, err));
  } else {
    TRY(search_to_english(s, err));
    search_question_parse(request->query, question);
    if (s->asked.len) search_phrase_parse(s->asked, &question->phrase);
    if (question->words.n == 0 && request->mode != LODE_BY_VECTOR && !s->verbatim)
      return err_set(err, LODE_INVALID, "the query has no words: ask with a question, a name or a piece of code");
    TRY(s->verbatim ? search_make_verbatim(s, err) : search_take_text(s, err));
  }
  search_text_start(s);
  TRY(search_open_models(s, err));
  TRY(search_gather(s, &used, err));
  if (!used) return err && err->status != LODE_OK ? err->status : LODE_CORRUPT;
  TRY(search_add_cosines(s, err));
  TRY(search_drop_other_versions(s, err));
  search_drop_outside(s);
  return LODE_OK;
}

static int search_compare_ids(const void *a, const void *b) {
  return str_cmp(*(const lode_str *)a, *(const lode_str *)b);
}

/* Drops the candidates that earlier batches have. */
static lode_status search_drop_known(search_ctx *s, lode_error *err) {
  size_t n = 0, kept = 0;
  for (size_t b = 0; b < s->n_batches; b++) n += s->batch_n[b];
  lode_str *ids = mem_calloc(n ? n : 1, sizeof *ids);
  if (!ids) return err_nomem(err);
  n = 0;
  for (size_t b = 0; b < s->n_batches; b++)
    for (size_t k = 0; k < s->batch_n[b]; k++) ids[n++] = s->batches[b][k].id;
  qsort(ids, n, sizeof *ids, search_compare_ids);
  for (size_t i = 0; i < s->n; i++)
    if (!bsearch(&s->v[i].id, ids, n, sizeof *ids, search_compare_ids)) s->v[kept++] = s->v[i];
  s->n = kept;
  mem_free(ids);
  return LODE_OK;
}

lode_status search_find_more(search_ctx *s, lode_error *err) {
  bool used;
  s->batch_n[s->n_batches] = s->n;
  s->batches[s->n_batches++] = s->v;
  s->v = NULL;
  s->n = s->cap = 0;
  mem_free(s->table);
  s->table = NULL;
  s->table_size = 0;
  s->want_factor *= SEARCH_BATCH_FACTOR;
  s->result->outside = 0;
  TRY(search_gather(s, &used, err));
  TRY(search_add_cosines(s, err));
  TRY(search_drop_other_versions(s, err));
  search_drop_outside(s);
  return search_drop_known(s, err);
}

static void search_begin(search_ctx *s, const project_info *project, lode_store *store, const search_request *request,
                         search_result *result) {
  memset(result, 0, sizeof *result);
  mem_arena_init(&result->arena, 0);
  *s = (search_ctx){.project = project,
                    .store = store,
                    .own = *request,
                    .result = result,
                    .arena = &result->arena,
                    .want_factor = 1,
                    .verbatim = search_is_verbatim(request)};
  search_versions_init(&s->seen);
  s->request = &s->own;
  s->asked_mode = request->mode;
  if (s->verbatim) s->own.mode = LODE_BY_TEXT;
}

static void search_drop_quotes(search_ctx *s) {
  lode_error why = {.record = LODE_NO_RECORD};
  (void)err_set(&why, LODE_NOT_FOUND, "nothing has the words in quotes as they stand");
  search_note(s, "without the quotes", &why);
  s->verbatim = false;
  s->own.mode = s->asked_mode;
}

/* A search queries the store several times. If something was committed in between, the search is repeated; during an
 * index run that commits faster than that, the answer may in the end be of several snapshots. */
lode_status search_run(const project_info *project, lode_store *store, const search_request *request,
                       search_result *result, lode_error *err) {
  search_versions before;
  search_versions_init(&before);
  bool quotes = true; /* false: no text has what is in quotes, so its words are asked for */
  for (int attempt = 1;; attempt++) {
    search_ctx s;
    search_begin(&s, project, store, request, result);
    if (!quotes) search_drop_quotes(&s);
    s.before = attempt > 1 ? &before : NULL;
    s.last = attempt >= SEARCH_ATTEMPTS;
    lode_status st = search_find_candidates(&s, err);
    if (st == LODE_OK) st = search_make_hits(&s, err);
    search_versions_release(&before);
    before = s.seen;
    search_versions_init(&s.seen);
    search_close_all(&s);
    bool unquoted = st == LODE_OK && quotes && s.verbatim && !request->exact && !request->regex && result->n == 0 &&
                    result->question.words.n > 0;
    bool again = (st == LODE_OK || (st == LODE_NOT_FOUND && s.versioned)) &&
                 ((s.mixed && attempt < SEARCH_ATTEMPTS) || unquoted);
    quotes = quotes && !unquoted;
    if (st != LODE_OK || again) search_result_release(result);
    if (again) continue;
    search_versions_release(&before);
    return st;
  }
}

lode_status search_candidates(const project_info *project, lode_store *store, const search_request *request,
                              search_result *result, rank_candidate **candidates, size_t *n, lode_error *err) {
  search_ctx s;
  search_begin(&s, project, store, request, result);
  lode_status st = search_find_candidates(&s, err);
  *candidates = NULL;
  *n = 0;
  if (st == LODE_OK) {
    *candidates = s.v;
    *n = s.n;
    s.v = NULL;
  }
  search_close_all(&s);
  if (st != LODE_OK) search_result_release(result);
  return st;
}

void search_result_release(search_result *result) {
  mem_arena_release(&result->arena);
  result->hits = NULL;
  result->n = 0;
}
