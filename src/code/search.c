/* search.c - see search.h. */
#include "search.h"

#include "code/fs.h"
#include "code/ignore.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WANT_TEXT = 200, WANT_VECTOR = 200, WANT_OUTLINES = 40, WANT_NAMES = 64, OUTLINE_FILES = 12, OUTLINE_CHUNKS = 3, MOST_WANT = 1 << 20, MOST_BEHIND = 20000 };
#define MOST_FILE_BYTES (64u << 20)

typedef struct searching {
  const lode__project *project;
  lode_store *store;
  const lode__search_request *request;
  lode__search_result *result;
  lode__arena *arena;         /* the result's */
  lode_collection *code, *files, *quality;
  lode_embedder *model, *second;
  bool own_model;
  char embedder[400], quality_embedder[400];
  float *vector, *vector2;    /* of the question */
  uint32_t dim, dim2;
  lode__buf where;            /* filter as JSON; empty: none */
  lode_str text;              /* what is looked for by words */
  lode__candidate *v;
  size_t n, cap;
  size_t table_size;
  uint32_t *table;            /* of candidates by id */
  lode__json json;
  bool cut;                   /* a source gave as many as it was asked for: more may match */
  size_t want_more;           /* factor on what is asked for, when the glob leaves too few */
} searching;

/* ---- Notes ---- */

static void note(searching *s, const char *what, const lode_error *why) {
  size_t len = strlen(s->result->note);
  snprintf(s->result->note + len, sizeof s->result->note - len, "%s%s: %.200s", len ? "; " : "", what, why->text);
}

/* ---- Filters ---- */

static void begin_clause(searching *s) { lode__buf_adds(&s->where, s->where.len ? "," : "{\"$and\":["); }

static void put_in(lode__buf *out, const char *key, const lode__kind *kinds, size_t n) {
  lode__buf_addf(out, "{\"%s\":{\"$in\":[", key);
  for (size_t i = 0; i < n; i++) lode__buf_addf(out, "%s\"%s\"", i ? "," : "", lode__kind_name(kinds[i]));
  lode__buf_adds(out, "]}}");
}

static lode_status kind_clause(searching *s, lode_str kind, lode_error *err) {
  static const lode__kind functions[] = {LODE__KIND_FUNCTION, LODE__KIND_METHOD, LODE__KIND_CONSTRUCTOR};
  static const lode__kind classes[] = {LODE__KIND_CLASS, LODE__KIND_STRUCT, LODE__KIND_UNION, LODE__KIND_ENUM, LODE__KIND_INTERFACE,
                                       LODE__KIND_TRAIT, LODE__KIND_TYPE, LODE__KIND_IMPL};
  lode__kind one = lode__kind_find(kind);
  char quoted[256];
  lode__buf names = {0};
  if (one == LODE__KIND_COUNT) {
    for (int i = 0; i < LODE__KIND_COUNT; i++) lode__buf_addf(&names, "%s%s", i ? ", " : "", lode__kind_name((lode__kind)i));
    lode_status st = lode__fail(err, LODE_INVALID, "there is no type %s; types are %.*s", lode__quote(kind, quoted, sizeof quoted),
                                (int)names.len, names.data ? names.data : "");
    lode__buf_release(&names);
    return st;
  }
  begin_clause(s);
  if (one == LODE__KIND_FUNCTION) put_in(&s->where, "kind", functions, 3);
  else if (one == LODE__KIND_CLASS) put_in(&s->where, "kind", classes, 8);
  else put_in(&s->where, "kind", &one, 1);
  return LODE_OK;
}

static void text_clause(searching *s, const char *key, lode_str value) {
  begin_clause(s);
  lode__buf_addf(&s->where, "{\"%s\":", key);
  lode__json_put_string(&s->where, value);
  lode__buf_addc(&s->where, '}');
}

/* A glob with a slash in it begins at the root: what stands before its first wildcard is a range of paths, which the index answers. The
 * glob itself is applied to what comes back. */
static void path_clause(searching *s, lode_str glob) {
  size_t fixed = 0, start = glob.len && glob.data[0] == '/' ? 1 : 0;
  while (fixed < glob.len && !strchr("*?[\\", glob.data[fixed])) fixed++;
  const char *slash = glob.len > 1 ? memchr(glob.data, '/', glob.len - 1) : NULL;
  if (!slash || fixed <= start) return;
  lode_str prefix = {glob.data + start, fixed - start};
  unsigned char last = (unsigned char)prefix.data[prefix.len - 1];
  if (last >= 0x7f) return;
  begin_clause(s);
  lode__buf_adds(&s->where, "{\"path\":{\"$gte\":");
  lode__json_put_string(&s->where, prefix);
  lode__buf_adds(&s->where, ",\"$lt\":");
  lode__buf next = {0};
  lode__buf_add(&next, prefix.data, prefix.len - 1);
  lode__buf_addc(&next, (char)(last + 1));
  lode__json_put_string(&s->where, (lode_str){next.data, next.len});
  s->where.failed = s->where.failed || next.failed;
  lode__buf_release(&next);
  lode__buf_adds(&s->where, "}}");
}

static lode_status build_filter(searching *s, lode_error *err) {
  const lode__search_request *r = s->request;
  if (r->language.data) {
    const lode__language *language = lode__language_find(r->language);
    char quoted[256];
    if (!language) return lode__fail(err, LODE_INVALID, "there is no language %s; `lode status` shows those of the index",
                                     lode__quote(r->language, quoted, sizeof quoted));
    text_clause(s, "language", lode__str(language->name));
  }
  if (r->kind.data) LODE__TRY(kind_clause(s, r->kind, err));
  if (r->name.data) text_clause(s, "name", r->name);
  if (r->path.data) path_clause(s, r->path);
  if (s->where.len) lode__buf_adds(&s->where, "]}");
  return s->where.failed ? lode__fail_nomem(err) : LODE_OK;
}

static lode_selection selection(const searching *s) {
  return (lode_selection){.where = s->where.len ? (lode_str){s->where.data, s->where.len} : (lode_str){0}};
}

/* ---- Opening ---- */

static lode_status open_collections(searching *s, lode_error *err) {
  lode_collection_list *list = NULL;
  lode_collection_options plain = {0};
  lode_status st = LODE_OK;
  bool code = false, files = false, quality = false;
  LODE__TRY(lode_collections(s->store, &list, err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (lode__str_eq(info->name, LODE__LIT(LODE__CODE))) {
      code = true;
      s->result->pending = info->pending;
      if (info->embedder.data && info->records > info->pending)
        snprintf(s->embedder, sizeof s->embedder, "%.*s", (int)info->embedder.len, info->embedder.data);
    } else if (lode__str_eq(info->name, LODE__LIT(LODE__CODE_FILES))) {
      files = true;
    } else if (lode__str_eq(info->name, LODE__LIT(LODE__CODE_QUALITY)) && info->records > info->pending) {
      quality = true;
      if (info->embedder.data)
        snprintf(s->quality_embedder, sizeof s->quality_embedder, "%.*s", (int)info->embedder.len, info->embedder.data);
    }
  }
  lode_collection_list_free(list);
  if (!code) return lode__fail(err, LODE_NOT_FOUND, "%.300s is not indexed yet: run `lode index`", s->project->root);
  LODE__GOTO(lode_collection_open(s->store, LODE__LIT(LODE__CODE), &plain, &s->code, err));
  if (files) LODE__GOTO(lode_collection_open(s->store, LODE__LIT(LODE__CODE_FILES), &plain, &s->files, err));
  if (quality) LODE__GOTO(lode_collection_open(s->store, LODE__LIT(LODE__CODE_QUALITY), &plain, &s->quality, err));
done:
  return st;
}

static void close_all(searching *s) {
  if (s->code) lode_collection_close(s->code);
  if (s->files) lode_collection_close(s->files);
  if (s->quality) lode_collection_close(s->quality);
  if (s->own_model) lode_embedder_close(s->model);
  lode_embedder_close(s->second);
  lode__free(s->vector);
  lode__free(s->vector2);
  lode__free(s->v);
  lode__free(s->table);
  lode__buf_release(&s->where);
  lode__json_release(&s->json);
}

/* ---- Candidates ---- */

static size_t slot_of(const searching *s, lode_str id) {
  size_t at = (size_t)lode__hash(id.data, id.len) & (s->table_size - 1);
  while (s->table[at] && !lode__str_eq(s->v[s->table[at] - 1].id, id)) at = (at + 1) & (s->table_size - 1);
  return at;
}

static lode_status grow(searching *s, lode_error *err) {
  if (!lode__grow(&s->v, &s->cap, s->n + 1, sizeof *s->v)) return lode__fail_nomem(err);
  if (s->n + 1 <= s->table_size / 2) return LODE_OK;
  size_t size = s->table_size ? s->table_size * 2 : 1024;
  uint32_t *table = lode__alloc_zero(size, sizeof *table);
  if (!table) return lode__fail_nomem(err);
  lode__free(s->table);
  s->table = table;
  s->table_size = size;
  for (size_t i = 0; i < s->n; i++) s->table[slot_of(s, s->v[i].id)] = (uint32_t)i + 1;
  return LODE_OK;
}

static bool copy(searching *s, lode_str *text) {
  char *p = lode__arena_copy(s->arena, text->data ? text->data : "", text->len);
  text->data = p;
  return p != NULL;
}

/* The candidate of a row, new or known; NULL without an error when the glob leaves it out. */
static lode_status candidate(searching *s, const lode_row *row, lode__candidate **out, lode_error *err) {
  lode__chunk_view view;
  *out = NULL;
  LODE__TRY(grow(s, err));
  size_t slot = slot_of(s, row->id);
  if (s->table[slot]) {
    *out = &s->v[s->table[slot] - 1];
    return LODE_OK;
  }
  /* A record that somebody else put there is no chunk */
  lode_status st = lode__chunk_view_of(row->metadata, &s->json, &view, err);
  if (st == LODE_NOMEM) return st;
  if (st != LODE_OK) return LODE_OK;
  if (s->request->path.data && !lode__glob_path(s->request->path, view.path)) return LODE_OK;
  lode__candidate c = {.id = row->id, .path = view.path, .language = view.language, .kind = view.kind, .name = view.name,
                       .parents = view.parents, .first = view.first, .last = view.last, .cosine = NAN, .cosine2 = NAN};
  lode_str hash = view.hash;
  if (!copy(s, &c.id) || !copy(s, &c.path) || !copy(s, &c.language) || !copy(s, &c.kind) || !copy(s, &c.name) ||
      !copy(s, &c.parents) || !copy(s, &hash))
    return lode__fail_nomem(err);
  c.hash = hash.data;
  s->v[s->n] = c;
  *out = &s->v[s->n++];
  s->table[slot] = (uint32_t)s->n;
  return LODE_OK;
}

static size_t want(const searching *s, size_t least) {
  size_t n = s->request->limit > least / 5 ? s->request->limit * 5 : least;
  if (s->want_more > MOST_WANT / n) return MOST_WANT;
  return n * s->want_more;
}

/* ---- By words ---- */

static lode_status by_words(searching *s, lode_error *err) {
  lode_result *rows = NULL;
  lode_query_request q = {.mode = LODE_BY_TEXT, .texts = &s->text, .n = 1, .k = want(s, WANT_TEXT), .select = selection(s),
                          .include = LODE_METADATA};
  lode_status st = lode_query(s->code, &q, &rows, err);
  s->cut = s->cut || lode_result_count(rows) >= q.k;
  for (size_t i = 0; i < lode_result_count(rows) && st == LODE_OK; i++) {
    lode__candidate *c;
    st = candidate(s, lode_result_at(rows, i), &c, err);
    if (c) c->bm25 = lode_result_at(rows, i)->score;
  }
  lode_result_free(rows);
  return st;
}

/* Definitions of names that the query holds, wherever their words rank. */
static lode_status by_names(searching *s, lode_error *err) {
  const lode__question *q = &s->result->question;
  lode__buf where = {0};
  lode_result *rows = NULL;
  lode_status st = LODE_OK;
  if (q->n_names == 0) return LODE_OK;
  lode__buf_adds(&where, "{\"$and\":[{\"name\":{\"$in\":[");
  for (size_t i = 0; i < q->n_names; i++) {
    if (i) lode__buf_addc(&where, ',');
    lode__json_put_string(&where, q->names[i]);
  }
  lode__buf_adds(&where, "]}}");
  if (s->where.len) {
    lode__buf_addc(&where, ',');
    lode__buf_add(&where, s->where.data, s->where.len);
  }
  lode__buf_adds(&where, "]}");
  if (where.failed) LODE__GOTO(lode__fail_nomem(err));
  lode_get_request get = {.select = {.where = {where.data, where.len}}, .limit = WANT_NAMES, .include = LODE_METADATA};
  LODE__GOTO(lode_get(s->code, &get, &rows, err));
  for (size_t i = 0; i < lode_result_count(rows) && st == LODE_OK; i++) {
    lode__candidate *c;
    st = candidate(s, lode_result_at(rows, i), &c, err);
  }
done:
  lode_result_free(rows);
  lode__buf_release(&where);
  return st;
}

/* ---- By outlines ---- */

static bool has_path(const searching *s, lode_str path) {
  for (size_t i = 0; i < s->n; i++)
    if (lode__str_eq(s->v[i].path, path)) return true;
  return false;
}

/* The first chunks of files whose outline says more than their chunks do. */
static lode_status add_files(searching *s, const lode_result *rows, lode_error *err) {
  lode_str ids[OUTLINE_FILES * OUTLINE_CHUNKS];
  lode__buf id = {0};
  lode_result *chunks = NULL;
  size_t n = 0;
  lode_status st = LODE_OK;
  for (size_t i = 0; i < lode_result_count(rows) && i < OUTLINE_FILES; i++) {
    lode_str path = lode_result_at(rows, i)->id;
    if (has_path(s, path)) continue;
    for (size_t k = 0; k < OUTLINE_CHUNKS; k++) {
      LODE__GOTO(lode__chunk_id(&id, path, k, err));
      char *p = lode__arena_copy(s->arena, id.data, id.len - 1);
      if (!p) LODE__GOTO(lode__fail_nomem(err));
      ids[n++] = (lode_str){p, id.len - 1};
    }
  }
  if (n == 0) goto done;
  lode_get_request get = {.select = selection(s), .include = LODE_METADATA};
  get.select.ids = ids;
  get.select.n_ids = n;
  LODE__GOTO(lode_get(s->code, &get, &chunks, err));
  for (size_t i = 0; i < lode_result_count(chunks) && st == LODE_OK; i++) {
    lode__candidate *c;
    st = candidate(s, lode_result_at(chunks, i), &c, err);
  }
done:
  lode_result_free(chunks);
  lode__buf_release(&id);
  return st;
}

static lode_status by_outlines(searching *s, lode_error *err) {
  lode_result *rows = NULL;
  lode_query_request q = {.mode = LODE_BY_TEXT, .texts = &s->text, .n = 1, .k = want(s, WANT_OUTLINES)};
  if (!s->files) return LODE_OK;
  lode_status st = lode_query(s->files, &q, &rows, err);
  if (st == LODE_OK) st = add_files(s, rows, err);
  for (size_t i = 0; i < lode_result_count(rows) && st == LODE_OK; i++)
    for (size_t k = 0; k < s->n; k++)
      if (lode__str_eq(s->v[k].path, lode_result_at(rows, i)->id)) s->v[k].outline = lode_result_at(rows, i)->score;
  lode_result_free(rows);
  return st;
}

/* ---- By vectors ---- */

static lode_status embed_question(lode_embedder *model, lode_str text, float **vector, uint32_t *dim, lode_error *err) {
  *dim = lode_embedder_info_of(model)->dimension;
  *vector = lode__alloc_zero(*dim ? *dim : 1, sizeof **vector);
  if (!*vector) return lode__fail_nomem(err);
  return lode_embed(model, &text, 1, *vector, err);
}

static double cosine_of(const float *a, const float *b, uint32_t dim) {
  double dot = 0, aa = 0, bb = 0;
  for (uint32_t i = 0; i < dim; i++) {
    dot += (double)a[i] * b[i];
    aa += (double)a[i] * a[i];
    bb += (double)b[i] * b[i];
  }
  return aa > 0 && bb > 0 ? dot / sqrt(aa * bb) : 0;
}

/* Cosines of candidates that came from elsewhere. */
static lode_status measure(searching *s, lode_collection *c, const float *vector, uint32_t dim, bool second, lode_error *err) {
  lode_str *ids = lode__alloc_zero(s->n, sizeof *ids);
  lode_result *rows = NULL;
  size_t n = 0;
  lode_status st = LODE_OK;
  if (!ids) return lode__fail_nomem(err);
  for (size_t i = 0; i < s->n; i++)
    if (isnan(second ? s->v[i].cosine2 : s->v[i].cosine)) ids[n++] = s->v[i].id;
  lode_get_request get = {.select = {.ids = ids, .n_ids = n}, .include = LODE_VECTOR};
  if (n) LODE__GOTO(lode_get(c, &get, &rows, err));
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    const lode_row *row = lode_result_at(rows, i);
    size_t slot = slot_of(s, row->id);
    if (!row->vector || row->dimension != dim || !s->table[slot]) continue;
    double cosine = cosine_of(vector, row->vector, dim);
    if (second) s->v[s->table[slot] - 1].cosine2 = cosine;
    else s->v[s->table[slot] - 1].cosine = cosine;
  }
done:
  lode_result_free(rows);
  lode__free(ids);
  return st;
}

static lode_status by_vector(searching *s, lode_error *err) {
  lode_result *rows = NULL;
  lode_query_request q = {.mode = LODE_BY_VECTOR, .vectors = s->vector, .dimension = s->dim, .n = 1, .k = want(s, WANT_VECTOR),
                          .select = selection(s), .include = LODE_METADATA};
  lode_status st = lode_query(s->code, &q, &rows, err);
  s->cut = s->cut || lode_result_count(rows) >= q.k;
  for (size_t i = 0; i < lode_result_count(rows) && st == LODE_OK; i++) {
    const lode_row *row = lode_result_at(rows, i);
    lode__candidate *c;
    st = candidate(s, row, &c, err);
    if (c && !isnan(row->distance)) c->cosine = 1 - row->distance;
  }
  lode_result_free(rows);
  return st;
}

/* The second vectors have ids only: the chunks themselves are read from the first collection. */
static lode_status by_second(searching *s, lode_error *err) {
  lode_query_request q = {.mode = LODE_BY_VECTOR, .vectors = s->vector2, .dimension = s->dim2, .n = 1, .k = want(s, WANT_VECTOR)};
  lode_result *near = NULL, *rows = NULL;
  lode_str *ids = NULL;
  lode_status st;
  LODE__GOTO(lode_query(s->quality, &q, &near, err));
  size_t n = lode_result_count(near);
  s->cut = s->cut || n >= q.k;
  ids = lode__alloc_zero(n, sizeof *ids);
  if (!ids) LODE__GOTO(lode__fail_nomem(err));
  for (size_t i = 0; i < n; i++) ids[i] = lode_result_at(near, i)->id;
  lode_get_request get = {.select = selection(s), .include = LODE_METADATA};
  get.select.ids = ids;
  get.select.n_ids = n;
  if (n) LODE__GOTO(lode_get(s->code, &get, &rows, err));
  for (size_t i = 0; i < lode_result_count(rows) && st == LODE_OK; i++) {
    lode__candidate *c;
    st = candidate(s, lode_result_at(rows, i), &c, err);
  }
done:
  lode__free(ids);
  lode_result_free(near);
  lode_result_free(rows);
  return st;
}

/* ---- Like a chunk ---- */

/* The chunk around a line of a file becomes the question: its vector, or its words. */
static lode_status take_similar(searching *s, lode_error *err) {
  const lode__search_request *r = s->request;
  lode__buf where = {0};
  lode_result *rows = NULL;
  lode_status st;
  const lode_row *best = NULL;
  char quoted[256];
  lode__buf_adds(&where, "{\"path\":");
  lode__json_put_string(&where, r->similar);
  lode__buf_addc(&where, '}');
  if (where.failed) LODE__GOTO(lode__fail_nomem(err));
  lode_get_request get = {.select = {.where = {where.data, where.len}}, .include = LODE_ALL};
  LODE__GOTO(lode_get(s->code, &get, &rows, err));
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    const lode_row *row = lode_result_at(rows, i);
    lode__chunk_view view;
    if (lode__chunk_view_of(row->metadata, &s->json, &view, NULL) != LODE_OK) continue;
    bool here = r->similar_line ? view.first <= r->similar_line && r->similar_line <= view.last : true;
    /* Of a whole file, its largest chunk speaks for it */
    if (here && (!best || (!r->similar_line && row->document.len > best->document.len))) best = row;
  }
  lode__quote(r->similar, quoted, sizeof quoted);
  if (!best) LODE__GOTO(lode__fail(err, LODE_NOT_FOUND, "%s%s is not in the index; `lode index` brings it up to date", quoted,
                                   r->similar_line ? " at that line" : ""));
  s->text = (lode_str){lode__arena_copy(s->arena, best->document.data ? best->document.data : "", best->document.len), best->document.len};
  if (!s->text.data) LODE__GOTO(lode__fail_nomem(err));
  if (best->vector) {
    s->dim = best->dimension;
    s->vector = lode__alloc_zero(s->dim, sizeof *s->vector);
    if (!s->vector) LODE__GOTO(lode__fail_nomem(err));
    memcpy(s->vector, best->vector, s->dim * sizeof *s->vector);
  }
  lode__question_read(s->text.len > 400 ? (lode_str){s->text.data, 400} : s->text, &s->result->question);
  s->result->question.is_name = false;
  s->result->question.n_names = 0;
done:
  lode_result_free(rows);
  lode__buf_release(&where);
  return st;
}

/* ---- The question ---- */

/* Without words that say nothing: they would only bring every chunk in. */
static lode_status take_text(searching *s, lode_error *err) {
  lode_str all = s->result->question.text;
  lode__buf out = {0};
  lode_status st = LODE_OK;
  for (size_t i = 0; i < all.len;) {
    size_t start = i;
    while (i < all.len && (unsigned char)all.data[i] > ' ') i++;
    lode__words words;
    lode__words_of((lode_str){all.data + start, i - start}, &words);
    if (words.n != 1 || !lode__word_is_stop(&words.v[0])) {
      lode__buf_add(&out, all.data + start, i - start);
      lode__buf_addc(&out, ' ');
    }
    while (i < all.len && (unsigned char)all.data[i] <= ' ') i++;
  }
  s->text = out.len ? (lode_str){out.data, out.len} : all;
  if (out.failed || !copy(s, &s->text)) st = lode__fail_nomem(err);
  lode__buf_release(&out);
  return st;
}

static lode_status open_models(searching *s, lode_error *err) {
  lode_error why = {.record = LODE_NO_RECORD};
  const lode__search_request *r = s->request;
  lode_status st = LODE_OK;
  if (r->mode == LODE_BY_TEXT) return LODE_OK;
  if (!s->vector && s->embedder[0]) {
    s->model = r->embedder;
    if (!s->model) {
      st = lode_embedder_open(lode__str(s->embedder), NULL, &s->model, &why);
      s->own_model = st == LODE_OK;
    }
    if (st == LODE_OK) st = embed_question(s->model, r->query, &s->vector, &s->dim, &why);
    if (st == LODE_NOMEM) return lode__fail_nomem(err);
    if (st != LODE_OK) {
      note(s, "by words alone", &why);
      lode__free(s->vector);
      s->vector = NULL;
    }
  }
  if (s->quality && s->quality_embedder[0] && !r->similar.data) {
    st = lode_embedder_open(lode__str(s->quality_embedder), NULL, &s->second, &why);
    if (st == LODE_OK) st = embed_question(s->second, r->query, &s->vector2, &s->dim2, &why);
    if (st == LODE_NOMEM) return lode__fail_nomem(err);
    if (st != LODE_OK) {
      note(s, "without the second vectors", &why);
      lode__free(s->vector2);
      s->vector2 = NULL;
    }
  }
  if (r->mode == LODE_BY_VECTOR && !s->vector && !s->vector2)
    return lode__fail(err, LODE_UNSUPPORTED, "there are no vectors to search by%s%.300s; `lode search --mode text` goes by words",
                      why.text[0] ? ": " : "", why.text);
  return LODE_OK;
}

/* ---- Gathering ---- */

/* One source after the other; what fails for damage or a mismatch is left out and noted. *used when it could be used. */
static lode_status source(searching *s, const char *what, lode_status (*run)(searching *, lode_error *), bool *used, lode_error *err) {
  lode_error why = {.record = LODE_NO_RECORD};
  lode_status st = run(s, &why);
  if (st == LODE_OK) {
    *used = true;
    return LODE_OK;
  }
  if (st == LODE_CORRUPT || st == LODE_MISMATCH || st == LODE_LIMIT) {
    note(s, what, &why);
    if (err) *err = why;
    return LODE_OK;
  }
  if (err) *err = why;
  return st;
}

/* While a large tree is being indexed for the first time, its words wait for their index, and to read them all would take minutes: then
 * vectors answer alone. */
static bool words_are_behind(searching *s, bool have_vectors) {
  lode_stats stats;
  if (!have_vectors || lode_collection_stats(s->code, &stats, NULL) != LODE_OK) return false;
  if (stats.untexted <= MOST_BEHIND && stats.unindexed <= MOST_BEHIND) return false;
  lode_error why = {.record = LODE_NO_RECORD};
  (void)lode__fail(&why, LODE_BUSY, "the text index is behind by %llu chunks; `lode index` brings it up to date",
                   (unsigned long long)(stats.untexted > stats.unindexed ? stats.untexted : stats.unindexed));
  note(s, "by vectors alone", &why);
  return true;
}

static lode_status gather(searching *s, bool *used, lode_error *err) {
  lode_mode mode = s->request->mode;
  if (mode == LODE_HYBRID && words_are_behind(s, s->vector || s->vector2)) mode = LODE_BY_VECTOR;
  if (mode != LODE_BY_VECTOR) LODE__TRY(source(s, "without words", by_words, used, err));
  if (s->vector) LODE__TRY(source(s, "without vectors", by_vector, used, err));
  if (s->vector2) LODE__TRY(source(s, "without the second vectors", by_second, used, err));
  if (mode != LODE_BY_VECTOR && !s->request->similar.data) {
    bool unused;
    LODE__TRY(source(s, "without names", by_names, &unused, err));
    LODE__TRY(source(s, "without outlines", by_outlines, &unused, err));
  }
  return LODE_OK;
}

static lode_status measure_all(searching *s, lode_error *err) {
  lode_error why = {.record = LODE_NO_RECORD};
  lode_status st = LODE_OK;
  if (s->vector) st = measure(s, s->code, s->vector, s->dim, false, &why);
  if (st == LODE_OK && s->vector2) st = measure(s, s->quality, s->vector2, s->dim2, true, &why);
  if (st == LODE_OK || st == LODE_CORRUPT) return LODE_OK;
  if (err) *err = why;
  return st;
}

/* ---- The answer ---- */

/* Lines `from` to `to` (from 1) of a text. */
static lode_str lines_of(lode_str text, uint32_t from, uint32_t to) {
  size_t at = 0, start = text.len;
  for (uint32_t line = 1; at < text.len; line++) {
    if (line == from) start = at;
    const char *end = memchr(text.data + at, '\n', text.len - at);
    at = end ? (size_t)(end - text.data) + 1 : text.len;
    if (line == to) break;
  }
  return start < at ? (lode_str){text.data + start, at - start} : (lode_str){"", 0};
}

/* With lines around it, from the file as it is now. */
static lode_status widen(searching *s, lode__search_hit *hit, lode_error *err) {
  uint32_t n = s->request->context, from = hit->first > n ? hit->first - n : 1, to = hit->last + n;
  lode__buf raw = {0}, path = {0}, text = {0}, clean = {0};
  lode_status st = LODE_OK;
  lode__path_bytes(&raw, hit->path);
  lode__buf_addc(&raw, '\0');
  if (raw.failed) LODE__GOTO(lode__fail_nomem(err));
  LODE__GOTO(lode__fs_join(&path, s->project->root, raw.data, err));
  if (lode__fs_read(path.data, MOST_FILE_BYTES, &text, NULL) == LODE_OK) {
    lode_str part = lines_of((lode_str){text.data, text.len}, from, to);
    if (part.len && lode__utf8_valid(part.data, part.len)) {
      if (!copy(s, &part)) LODE__GOTO(lode__fail_nomem(err));
      hit->snippet = part;
      hit->snippet_line = from;
    }
  }
done:
  lode__buf_release(&raw);
  lode__buf_release(&path);
  lode__buf_release(&text);
  lode__buf_release(&clean);
  return st;
}

static lode_status add_snippets(searching *s, const lode__ranked_hit *ranked, lode_error *err) {
  size_t n = s->result->n;
  lode_str *ids = lode__alloc_zero(n, sizeof *ids);
  lode_result *rows = NULL;
  lode_status st = LODE_OK;
  if (!ids) return lode__fail_nomem(err);
  for (size_t i = 0; i < n; i++) ids[i] = ranked[i].chunk->id;
  lode_get_request get = {.select = {.ids = ids, .n_ids = n}, .include = LODE_DOCUMENT | LODE_METADATA};
  LODE__GOTO(lode_get(s->code, &get, &rows, err));
  size_t at = 0;
  for (size_t i = 0; i < n; i++) {
    const lode_row *row = lode_result_at(rows, at);
    lode__search_hit *hit = &s->result->hits[i];
    lode__chunk_view view;
    if (!row || !lode__str_eq(row->id, ids[i])) continue; /* gone meanwhile */
    at++;
    if (lode__chunk_view_of(row->metadata, &s->json, &view, NULL) != LODE_OK || view.offset > row->document.len) continue;
    hit->snippet = (lode_str){row->document.data + view.offset, row->document.len - view.offset};
    while (hit->snippet.len && (unsigned char)hit->snippet.data[hit->snippet.len - 1] <= ' ') hit->snippet.len--;
    if (!copy(s, &hit->snippet)) LODE__GOTO(lode__fail_nomem(err));
    hit->line = view.line;
    if (s->request->context) LODE__GOTO(widen(s, hit, err));
  }
done:
  lode_result_free(rows);
  lode__free(ids);
  return st;
}

/* Files of the answer that are not as they were: a look at ten files costs nothing. */
static lode_status count_stale(searching *s, lode_error *err) {
  lode_str *ids = lode__alloc_zero(s->result->n, sizeof *ids);
  lode_result *rows = NULL;
  lode__buf raw = {0}, path = {0};
  lode_status st = LODE_OK;
  if (!ids) return lode__fail_nomem(err);
  for (size_t i = 0; i < s->result->n; i++) ids[i] = s->result->hits[i].path;
  lode_get_request get = {.select = {.ids = ids, .n_ids = s->result->n}, .include = LODE_METADATA};
  if (!s->files || lode_get(s->files, &get, &rows, NULL) != LODE_OK) goto done;
  for (size_t i = 0; i < lode_result_count(rows); i++) {
    lode__file_state state;
    struct stat now;
    raw.len = 0;
    lode__path_bytes(&raw, lode_result_at(rows, i)->id);
    lode__buf_addc(&raw, '\0');
    if (raw.failed) LODE__GOTO(lode__fail_nomem(err));
    LODE__GOTO(lode__fs_join(&path, s->project->root, raw.data, err));
    if (!lode__file_state_of(lode_result_at(rows, i)->metadata, &s->json, &state)) continue;
    int64_t mtime = lode__os->stat(path.data, &now) == 0 ? (int64_t)now.st_mtim.tv_sec * 1000000000 + now.st_mtim.tv_nsec : -1;
    s->result->stale += mtime != state.mtime_ns || (uint64_t)now.st_size != state.size;
  }
done:
  lode__buf_release(&raw);
  lode__buf_release(&path);
  lode_result_free(rows);
  lode__free(ids);
  return st;
}

static lode_status answer(searching *s, lode_error *err) {
  size_t limit = s->request->limit ? s->request->limit : 10, n = 0;
  lode__ranked_hit *ranked = lode__alloc_zero(limit, sizeof *ranked);
  lode_status st = LODE_OK;
  if (!ranked) return lode__fail_nomem(err);
  LODE__GOTO(lode__rank(&s->result->question, s->v, s->n, s->request->weights, limit, ranked, &n, err));
  s->result->hits = lode__arena_alloc(s->arena, (n ? n : 1) * sizeof *s->result->hits);
  if (!s->result->hits) LODE__GOTO(lode__fail_nomem(err));
  s->result->n = n;
  for (size_t i = 0; i < n; i++) {
    const lode__candidate *c = ranked[i].chunk;
    lode__search_hit *hit = &s->result->hits[i];
    *hit = (lode__search_hit){.path = c->path, .language = c->language, .kind = c->kind, .name = c->name, .parents = c->parents,
                              .snippet = {"", 0}, .first = c->first, .last = c->last, .line = c->first, .snippet_line = c->first,
                              .score = ranked[i].score, .bm25 = c->bm25, .cosine = c->cosine, .cosine2 = c->cosine2,
                              .more = ranked[i].more, .copies = ranked[i].copies};
    memcpy(hit->features, c->features, sizeof hit->features);
  }
  if (n && !s->request->files_only) LODE__GOTO(add_snippets(s, ranked, err));
  if (n) LODE__GOTO(count_stale(s, err));
done:
  lode__free(ranked);
  return st;
}

/* The chunk that was asked about is no answer. */
static void drop_itself(searching *s) {
  const lode__search_request *r = s->request;
  if (!r->similar.data) return;
  for (size_t i = 0; i < s->n;) {
    const lode__candidate *c = &s->v[i];
    bool itself = lode__str_eq(c->path, r->similar) && (!r->similar_line || (c->first <= r->similar_line && r->similar_line <= c->last));
    if (itself) s->v[i] = s->v[--s->n];
    else i++;
  }
}

/* Everything up to the ranking. */
static lode_status find_candidates(searching *s, lode_error *err) {
  const lode__search_request *request = s->request;
  lode__question *question = &s->result->question;
  bool used = false;
  LODE__TRY(open_collections(s, err));
  LODE__TRY(build_filter(s, err));
  if (request->similar.data) {
    LODE__TRY(take_similar(s, err));
  } else {
    lode__question_read(request->query, question);
    if (question->words.n == 0 && request->mode != LODE_BY_VECTOR)
      return lode__fail(err, LODE_INVALID, "the query has no words: ask with a question, a name or a piece of code");
    LODE__TRY(take_text(s, err));
  }
  LODE__TRY(open_models(s, err));
  for (s->want_more = 1;; s->want_more *= 16) {
    s->cut = false;
    LODE__TRY(gather(s, &used, err));
    if (s->n >= request->limit || !s->cut || !request->path.data || s->want_more >= MOST_WANT) break; /* else the glob left too few */
  }
  if (!used) return err && err->status != LODE_OK ? err->status : LODE_CORRUPT;
  LODE__TRY(measure_all(s, err));
  drop_itself(s);
  return LODE_OK;
}

static void begin(searching *s, const lode__project *project, lode_store *store, const lode__search_request *request,
                  lode__search_result *result) {
  memset(result, 0, sizeof *result);
  lode__arena_init(&result->arena, 0);
  *s = (searching){.project = project, .store = store, .request = request, .result = result, .arena = &result->arena};
}

lode_status lode__search_run(const lode__project *project, lode_store *store, const lode__search_request *request,
                             lode__search_result *result, lode_error *err) {
  searching s;
  begin(&s, project, store, request, result);
  lode_status st = find_candidates(&s, err);
  if (st == LODE_OK) st = answer(&s, err);
  close_all(&s);
  if (st != LODE_OK) lode__search_release(result);
  return st;
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
  lode__arena_release(&result->arena);
  result->hits = NULL;
  result->n = 0;
}
