/* search.c - see search.h. */
#include "searching.h"

#include <stdio.h>

enum { ATTEMPTS = 4 };

/* ---- Notes ---- */

void lode__searching_note(searching *s, const char *what, const lode_error *why) {
  size_t len = strlen(s->result->note);
  snprintf(s->result->note + len, sizeof s->result->note - len, "%s%s: %.200s", len ? "; " : "", what, why->text);
}

void lode__searching_saw(searching *s, const lode_result *rows) {
  uint64_t moment = lode_result_moment(rows);
  if (!moment) return; /* not asked, or a store that has no such order */
  if (!s->moment) s->moment = moment;
  s->mixed = s->mixed || s->moment != moment;
}

/* ---- Opening ---- */

static lode_status open_collections(searching *s, lode_error *err) {
  lode_collection_list *list = NULL;
  lode_collection_options plain = {0};
  lode_status st = LODE_OK;
  bool code = false, files = false, quality = false;
  lode__stamp stamp = {0};
  TRY(lode_collections(s->store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (str_eq(info->name, STR_LIT(LODE__CODE))) {
      code = true;
      s->result->pending = info->pending;
      if (info->embedder.data && info->records > info->pending)
        snprintf(s->embedder, sizeof s->embedder, "%.*s", (int)info->embedder.len, info->embedder.data);
    } else if (str_eq(info->name, STR_LIT(LODE__CODE_FILES))) {
      files = true;
      lode__stamp_parse(info->metadata, &stamp);
    } else if (str_eq(info->name, STR_LIT(LODE__CODE_QUALITY)) && info->records > info->pending) {
      quality = true;
      if (info->embedder.data)
        snprintf(s->quality_embedder, sizeof s->quality_embedder, "%.*s", (int)info->embedder.len, info->embedder.data);
    }
  }
  lode_collection_list_free(list);
  s->showing = lode__stamp_showing(&stamp, &s->project->config);
  s->result->doubted = s->showing == LODE__SHOW_DOUBTED;
  if (!code) return err_set(err, LODE_NOT_FOUND, "%.300s is not indexed yet: run `lode index`", lode__project_name(s->project));
  TRY_GOTO(lode_collection_open(s->store, STR_LIT(LODE__CODE), &plain, &s->code, err));
  if (files) TRY_GOTO(lode_collection_open(s->store, STR_LIT(LODE__CODE_FILES), &plain, &s->files, err));
  if (quality) TRY_GOTO(lode_collection_open(s->store, STR_LIT(LODE__CODE_QUALITY), &plain, &s->quality, err));
done:
  return st;
}

static void close_all(searching *s) {
  lode__searching_end_words(s);
  lode_result_free(s->words.rows);
  if (s->code) lode_collection_close(s->code);
  if (s->files) lode_collection_close(s->files);
  if (s->quality) lode_collection_close(s->quality);
  if (s->own_model) lode_embedder_close(s->model);
  lode_embedder_close(s->second);
  mem_free(s->vector);
  mem_free(s->vector2);
  mem_free(s->v);
  mem_free(s->table);
  strbuf_release(&s->where);
  json_release(&s->json);
}

/* ---- Like a chunk ---- */

/* The chunk around a line of a file becomes the question: its vector, or its words. */
static lode_status take_similar(searching *s, lode_error *err) {
  const lode__search_request *r = s->request;
  strbuf where = {0};
  lode_result *rows = NULL;
  lode_status st;
  const lode_row *best = NULL;
  char quoted[256];
  strbuf_addstr(&where, "{\"path\":");
  json_put_string(&where, r->similar);
  strbuf_addch(&where, '}');
  if (where.failed) TRY_GOTO(err_nomem(err));
  lode_get_request get = {.select = {.where = {where.data, where.len}}, .include = LODE_ALL};
  TRY_GOTO(lode_get(s->code, &get, &rows, err));
  lode__searching_saw(s, rows);
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    const lode_row *row = lode_result_at(rows, i);
    lode__chunk_view view;
    if (lode__chunk_view_of(row->metadata, &s->json, &view, NULL) != LODE_OK) continue;
    bool here = r->similar_line ? view.first <= r->similar_line && r->similar_line <= view.last : true;
    /* Of a whole file, its largest chunk speaks for it */
    if (here && (!best || (!r->similar_line && row->document.len > best->document.len))) best = row;
  }
  str_quote(r->similar, quoted, sizeof quoted);
  if (!best) TRY_GOTO(err_set(err, LODE_NOT_FOUND, "%s%s is not in the index; `lode index` brings it up to date", quoted,
                                   r->similar_line ? " at that line" : ""));
  s->text = (lode_str){mem_arena_copy(s->arena, best->document.data ? best->document.data : "", best->document.len), best->document.len};
  if (!s->text.data) TRY_GOTO(err_nomem(err));
  if (best->vector) {
    s->dim = best->dimension;
    s->vector = mem_calloc(s->dim, sizeof *s->vector);
    if (!s->vector) TRY_GOTO(err_nomem(err));
    memcpy(s->vector, best->vector, s->dim * sizeof *s->vector);
  }
  lode__question_read(s->text.len > 400 ? (lode_str){s->text.data, 400} : s->text, &s->result->question);
  s->result->question.is_name = false;
  s->result->question.n_names = 0;
done:
  lode_result_free(rows);
  strbuf_release(&where);
  return st;
}

/* ---- The question ---- */

/* Without words that say nothing: they would only bring every chunk in. */
static lode_status take_text(searching *s, lode_error *err) {
  lode_str all = s->result->question.text;
  strbuf out = {0};
  lode_status st = LODE_OK;
  for (size_t i = 0; i < all.len;) {
    size_t start = i;
    while (i < all.len && (unsigned char)all.data[i] > ' ') i++;
    lode__words words;
    lode__words_of((lode_str){all.data + start, i - start}, &words);
    if (words.n != 1 || !lode__word_is_stop(&words.v[0])) {
      strbuf_add(&out, all.data + start, i - start);
      strbuf_addch(&out, ' ');
    }
    while (i < all.len && (unsigned char)all.data[i] <= ' ') i++;
  }
  s->text = out.len ? (lode_str){out.data, out.len} : all;
  if (out.failed || !lode__searching_copy(s, &s->text)) st = err_nomem(err);
  strbuf_release(&out);
  return st;
}

static lode_status embed_question(lode_embedder *model, lode_str text, float **vector, uint32_t *dim, lode_error *err) {
  *dim = lode_embedder_info_of(model)->dimension;
  *vector = mem_calloc(*dim ? *dim : 1, sizeof **vector);
  if (!*vector) return err_nomem(err);
  return lode_embed(model, &text, 1, *vector, err);
}

static lode_status open_models(searching *s, lode_error *err) {
  lode_error why = {.record = LODE_NO_RECORD};
  const lode__search_request *r = s->request;
  lode_status st = LODE_OK;
  if (r->mode == LODE_BY_TEXT) return LODE_OK;
  if (!s->vector && s->embedder[0]) {
    s->model = r->embedder;
    if (!s->model) {
      st = lode__project_open_model(s->project, str_of(s->embedder), NULL, &s->model, &why);
      s->own_model = st == LODE_OK;
    }
    if (st == LODE_OK) st = embed_question(s->model, r->query, &s->vector, &s->dim, &why);
    if (st == LODE_NOMEM) return err_nomem(err);
    if (st != LODE_OK) {
      lode__searching_note(s, "by words alone", &why);
      mem_free(s->vector);
      s->vector = NULL;
    }
  }
  if (s->quality && s->quality_embedder[0] && !r->similar.data) {
    st = lode__project_open_model(s->project, str_of(s->quality_embedder), NULL, &s->second, &why);
    if (st == LODE_OK) st = embed_question(s->second, r->query, &s->vector2, &s->dim2, &why);
    if (st == LODE_NOMEM) return err_nomem(err);
    if (st != LODE_OK) {
      lode__searching_note(s, "without the second vectors", &why);
      mem_free(s->vector2);
      s->vector2 = NULL;
    }
  }
  if (r->mode == LODE_BY_VECTOR && !s->vector && !s->vector2)
    return err_set(err, LODE_UNSUPPORTED, "there are no vectors to search by%s%.300s; `lode search --mode text` goes by words",
                      why.text[0] ? ": " : "", why.text);
  return LODE_OK;
}

/* ---- A search ---- */

/* The chunk that was asked about. */
static bool is_itself(const lode__search_request *r, const lode__candidate *c) {
  return r->similar.data && str_eq(c->path, r->similar) && (!r->similar_line || (c->first <= r->similar_line && r->similar_line <= c->last));
}

/* Drops the chunk that was asked about, and records whose paths lead out of the project: no file of it can have given those. */
static void drop_others(searching *s) {
  for (size_t i = 0; i < s->n;) {
    bool outside = !lode__place_inside(s->v[i].path);
    s->result->outside += outside;
    if (outside || is_itself(s->request, &s->v[i])) s->v[i] = s->v[--s->n];
    else i++;
  }
}

/* Everything up to the ranking. */
static lode_status find_candidates(searching *s, lode_error *err) {
  const lode__search_request *request = s->request;
  lode__question *question = &s->result->question;
  bool used;
  TRY(open_collections(s, err));
  TRY(lode__searching_filter(s, err));
  if (request->similar.data) {
    TRY(take_similar(s, err));
  } else {
    lode__question_read(request->query, question);
    if (question->words.n == 0 && request->mode != LODE_BY_VECTOR)
      return err_set(err, LODE_INVALID, "the query has no words: ask with a question, a name or a piece of code");
    TRY(take_text(s, err));
  }
  lode__searching_begin_words(s);
  TRY(open_models(s, err));
  TRY(lode__searching_gather(s, &used, err));
  if (!used) return err && err->status != LODE_OK ? err->status : LODE_CORRUPT;
  TRY(lode__searching_measure(s, err));
  drop_others(s);
  return LODE_OK;
}

static void begin(searching *s, const lode__project *project, lode_store *store, const lode__search_request *request,
                  lode__search_result *result) {
  memset(result, 0, sizeof *result);
  mem_arena_init(&result->arena, 0);
  *s = (searching){.project = project, .store = store, .request = request, .result = result, .arena = &result->arena,
                   .want_more = 1};
}

/* A search asks the store several times. When something was committed in between, it is made again; beside an index run
 * that commits faster than that, the answer is of several moments in the end. */
lode_status lode__search_run(const lode__project *project, lode_store *store, const lode__search_request *request,
                             lode__search_result *result, lode_error *err) {
  for (int attempt = 1;; attempt++) {
    searching s;
    begin(&s, project, store, request, result);
    lode_status st = find_candidates(&s, err);
    if (st == LODE_OK) st = lode__searching_answer(&s, err);
    close_all(&s);
    bool again = st == LODE_OK && s.mixed && attempt < ATTEMPTS;
    if (st != LODE_OK || again) lode__search_release(result);
    if (!again) return st;
  }
}

lode_status lode__search_candidates(const lode__project *project, lode_store *store, const lode__search_request *request,
                                    lode__search_result *result, lode__candidate **candidates, size_t *n, lode_error *err) {
  searching s;
  begin(&s, project, store, request, result);
  lode_status st = find_candidates(&s, err);
  *candidates = NULL;
  *n = 0;
  if (st == LODE_OK) {
    *candidates = s.v;
    *n = s.n;
    s.v = NULL;
  }
  close_all(&s);
  if (st != LODE_OK) lode__search_release(result);
  return st;
}

void lode__search_release(lode__search_result *result) {
  mem_arena_release(&result->arena);
  result->hits = NULL;
  result->n = 0;
}
