/* search_answer.c - what is shown of the best candidates. See searching.h. */
#include "searching.h"

#include "code/fs.h"

#define MOST_FILE_BYTES (64u << 20)

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
      if (!lode__searching_copy(s, &part)) LODE__GOTO(lode__fail_nomem(err));
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
    if (!lode__searching_copy(s, &hit->snippet)) LODE__GOTO(lode__fail_nomem(err));
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

lode_status lode__searching_answer(searching *s, lode_error *err) {
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
