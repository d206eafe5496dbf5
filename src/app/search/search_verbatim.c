/* SPDX-License-Identifier: Apache-2.0 */
/* search_verbatim.c - searches for text as it stands: --exact, --regex and "quoted phrases"; see search_internal.h.
 *
 * A filter on documents decides, asked about the whole document by the store and about the chunk's own text here: a
 * document begins with a head, which is not text of the file. The text index proposes: every chunk that holds the text
 * holds each word that lies whole inside of it. If there is no such word, the chunks that have its parts as words come
 * first, and if those are too few, all chunks are read.
 */
#include "search/search_internal.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Quotes ---- */

/* "a phrase" between white space or the ends of the query. A quote inside of code, as in log("x"), is not one. */
static bool verbatim_next_quoted(lode_str *rest, lode_str *phrase) {
  const char *start = rest->data, *end = start + rest->len;
  for (const char *p = start; p < end; p++) {
    if (*p != '"' || (p > start && (unsigned char)p[-1] > ' ')) continue;
    const char *close = memchr(p + 1, '"', (size_t)(end - p - 1));
    while (close && close + 1 < end && (unsigned char)close[1] > ' ')
      close = memchr(close + 1, '"', (size_t)(end - close - 1));
    if (!close) return false;
    *phrase = (lode_str){p + 1, (size_t)(close - p - 1)};
    *rest = (lode_str){close + 1, (size_t)(end - close - 1)};
    if (phrase->len) return true;
    p = start = close; /* "" */
  }
  return false;
}

bool search_is_verbatim(const search_request *r) {
  lode_str rest = r->query, phrase;
  return r->exact || r->regex || (r->query.data && !r->similar.data && verbatim_next_quoted(&rest, &phrase));
}

/* ---- Filters ---- */

/* ^ and $ are ends of lines, as in every tool that looks for lines; otherwise the pattern is as the user wrote it. */
#define VERBATIM_MULTILINE "(?m)"

static void verbatim_put_contains(strbuf *out, lode_str text) {
  strbuf_addstr(out, "{\"$contains\":");
  json_put_string(out, text);
  strbuf_addch(out, '}');
}

static void verbatim_put_regex(strbuf *out, lode_str pattern) {
  strbuf whole = {0};
  strbuf_addstr(&whole, VERBATIM_MULTILINE);
  strbuf_add(&whole, pattern.data, pattern.len);
  strbuf_addstr(out, "{\"$regex\":");
  json_put_string(out, (lode_str){whole.data ? whole.data : "", whole.len});
  strbuf_addch(out, '}');
  out->failed = out->failed || whole.failed;
  strbuf_release(&whole);
}

/* ---- Words that matches have ---- */

typedef struct verbatim_run { /* of bytes of names, in a text or a pattern */
  size_t start, len;
  bool open; /* what stands before or after it may continue the word */
} verbatim_run;

typedef struct verbatim_words {
  lode_str every; /* the longest word that every match has; empty: none is known */
  strbuf some;    /* words that matches may have */
} verbatim_words;

static void verbatim_keep_run(const verbatim_run *run, lode_str in, verbatim_words *words) {
  lode_str word = {in.data + run->start, run->len};
  if (!run->open && word.len > words->every.len) words->every = word;
  if (word.len < SEARCH_MIN_PREFIX) return;
  if (words->some.len) strbuf_addch(&words->some, ' ');
  strbuf_add(&words->some, word.data, word.len);
}

/* A word is whole if it has a byte of no name on both sides. */
static void verbatim_words_of_text(lode_str text, verbatim_words *words) {
  for (size_t i = 0; i < text.len; i++) {
    verbatim_run run = {.start = i};
    while (i < text.len && search_is_name_byte((unsigned char)text.data[i])) i++;
    run.len = i - run.start;
    run.open = run.start == 0 || i == text.len;
    if (run.len) verbatim_keep_run(&run, text, words);
  }
}

/* What a pattern has at `i`: a byte of a name, another byte or place that ends a name, or anything. *next: where the
 * next item begins. */
typedef enum verbatim_item { VERBATIM_NAME, VERBATIM_END, VERBATIM_ANY } verbatim_item;

static verbatim_item verbatim_item_at(lode_str p, size_t i, size_t *next) {
  unsigned char c = (unsigned char)p.data[i];
  verbatim_item item = search_is_name_byte(c) ? VERBATIM_NAME : strchr(".[](){}*+?|", c) ? VERBATIM_ANY : VERBATIM_END;
  *next = i + 1;
  if (c == '\\' && i + 1 < p.len) {
    unsigned char escaped = (unsigned char)p.data[i + 1];
    *next = i + 2;
    item = escaped == 'b' || !search_is_name_byte(escaped) ? VERBATIM_END : VERBATIM_ANY;
  }
  /* a repeated item may be absent */
  if (*next < p.len && strchr("*+?{", p.data[*next])) item = VERBATIM_ANY;
  return item;
}

/* As far as it is plain to see: of alternatives and groups, no word is in every match. */
static void verbatim_words_of_pattern(lode_str p, verbatim_words *words) {
  verbatim_run run = {0};
  verbatim_item before = VERBATIM_ANY;
  size_t next;
  for (size_t i = 0; i <= p.len; i = next) {
    verbatim_item item = VERBATIM_ANY;
    next = i + 1;
    if (i < p.len) item = verbatim_item_at(p, i, &next);
    if (item == VERBATIM_NAME && !run.len) run = (verbatim_run){.start = i, .open = before != VERBATIM_END};
    if (item == VERBATIM_NAME) {
      run.len++;
    } else if (run.len) {
      run.open = run.open || item != VERBATIM_END;
      verbatim_keep_run(&run, p, words);
      run.len = 0;
    }
    before = item;
  }
  for (size_t i = 0; i < p.len; i += p.data[i] == '\\' ? 2 : 1)
    if (strchr("|([", p.data[i])) words->every.len = 0;
}

/* ---- Entry points ---- */

lode_status search_make_verbatim(search_ctx *s, lode_error *err) {
  const search_request *r = s->request;
  strbuf *out = &s->where_document;
  lode_str rest = r->query, phrase;
  verbatim_words words = {.every = {"", 0}};
  if (r->regex) {
    verbatim_put_regex(out, r->query);
    verbatim_words_of_pattern(r->query, &words);
  } else if (r->exact) {
    verbatim_put_contains(out, r->query);
    verbatim_words_of_text(r->query, &words);
  } else {
    strbuf_addstr(out, "{\"$and\":[");
    for (size_t n = 0; verbatim_next_quoted(&rest, &phrase); n++) {
      if (n) strbuf_addch(out, ',');
      verbatim_put_contains(out, phrase);
      verbatim_words_of_text(phrase, &words);
    }
    strbuf_addstr(out, "]}");
  }
  s->partial = words.every.len == 0;
  s->text = s->partial && words.some.data ? (lode_str){words.some.data, words.some.len} : words.every;
  lode_status st = out->failed || words.some.failed || !search_copy(s, &s->text) ? err_nomem(err) : LODE_OK;
  strbuf_release(&words.some);
  return st;
}

lode_status search_verify(search_ctx *s, const lode_result *rows, bool *holds, lode_error *err) {
  const strbuf *filter = &s->where_document;
  size_t n = lode_result_count(rows);
  lode_str *texts = mem_calloc(n ? n : 1, sizeof *texts);
  lode_status st = texts ? LODE_OK : err_nomem(err);
  for (size_t i = 0; i < n && st == LODE_OK; i++) {
    const lode_row *row = lode_result_at(rows, i);
    indexer_chunk_view view;
    st = indexer_chunk_view_parse(row->metadata, &s->json, &view, err);
    if (st == LODE_OK && view.offset < row->document.len)
      texts[i] = (lode_str){row->document.data + view.offset, row->document.len - view.offset};
    if (st != LODE_NOMEM) st = LODE_OK; /* not a chunk: it holds nothing */
  }
  if (st == LODE_OK) st = lode_match_texts((lode_str){filter->data, filter->len}, texts, n, holds, err);
  mem_free(texts);
  return st;
}

void search_explain_regex(lode_error *err) {
  char *prefix = err ? strstr(err->text, VERBATIM_MULTILINE) : NULL, *at;
  size_t len = sizeof VERBATIM_MULTILINE - 1;
  unsigned long byte;
  if (!prefix) return;
  memmove(prefix, prefix + len, strlen(prefix + len) + 1);
  at = strstr(err->text, "is wrong at byte ");
  if (!at) return;
  at += strlen("is wrong at byte ");
  byte = strtoul(at, &prefix, 10);
  char rest[sizeof err->text];
  snprintf(rest, sizeof rest, "%s", prefix);
  snprintf(at, sizeof err->text - (size_t)(at - err->text), "%lu%s", byte >= len ? byte - len : 0, rest);
}
