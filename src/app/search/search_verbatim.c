/* SPDX-License-Identifier: Apache-2.0 */
/* search_verbatim.c - searches for text as it stands: --exact, --regex and "quoted phrases"; see search_internal.h.
 *
 * A filter on documents decides. The text index proposes: every chunk that holds the text holds each word that lies
 * whole inside of it. If there is no such word, all chunks are read.
 */
#include "search/search_internal.h"

#include <stdio.h>

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

static void verbatim_put_contains(strbuf *out, lode_str text) {
  strbuf_addstr(out, "{\"$contains\":");
  json_put_string(out, text);
  strbuf_addch(out, '}');
}

/* The pattern must match in the chunk's own text: after the head of the document, which ends with an empty line. */
static void verbatim_put_regex(strbuf *out, lode_str pattern) {
  strbuf whole = {0};
  strbuf_addstr(&whole, "(?m)\\A(?>(?:.+\\n)+\\n)[\\s\\S]*?(?:");
  strbuf_add(&whole, pattern.data, pattern.len);
  strbuf_addch(&whole, ')');
  strbuf_addstr(out, "{\"$regex\":");
  json_put_string(out, (lode_str){whole.data ? whole.data : "", whole.len});
  strbuf_addch(out, '}');
  out->failed = out->failed || whole.failed;
  strbuf_release(&whole);
}

/* ---- Words that every match has ---- */

typedef struct verbatim_run { /* of bytes of names, in a text or a pattern */
  size_t start, len;
  bool open; /* what stands before or after it may continue the word */
} verbatim_run;

static void verbatim_keep_longest(const verbatim_run *run, verbatim_run *best) {
  if (run->len > best->len && !run->open) *best = *run;
}

/* The longest word of a text that has a byte of no name on both sides. */
static lode_str verbatim_word_of_text(lode_str text) {
  verbatim_run best = {0};
  for (size_t i = 0; i < text.len; i++) {
    verbatim_run run = {.start = i};
    while (i < text.len && search_is_name_byte((unsigned char)text.data[i])) i++;
    run.len = i - run.start;
    run.open = run.start == 0 || i == text.len;
    verbatim_keep_longest(&run, &best);
  }
  return (lode_str){text.data + best.start, best.len};
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

/* The longest word that every match of a pattern has, as far as that is plain to see: alternatives and groups have
 * none. */
static lode_str verbatim_word_of_pattern(lode_str p) {
  verbatim_run best = {0}, run = {0};
  verbatim_item before = VERBATIM_ANY;
  size_t next;
  for (size_t i = 0; i < p.len; i += p.data[i] == '\\' ? 2 : 1)
    if (strchr("|([", p.data[i])) return (lode_str){"", 0};
  for (size_t i = 0; i < p.len; i = next) {
    verbatim_item item = verbatim_item_at(p, i, &next);
    if (item == VERBATIM_NAME && !run.len) run = (verbatim_run){.start = i, .open = before != VERBATIM_END};
    if (item == VERBATIM_NAME) {
      run.len++;
    } else {
      run.open = run.open || item != VERBATIM_END;
      verbatim_keep_longest(&run, &best);
      run.len = 0;
    }
    before = item;
  }
  return (lode_str){p.data + best.start, best.len};
}

/* ---- Entry points ---- */

lode_status search_make_verbatim(search_ctx *s, lode_error *err) {
  const search_request *r = s->request;
  strbuf *out = &s->where_document;
  lode_str rest = r->query, phrase, word = {"", 0};
  if (r->regex) {
    verbatim_put_regex(out, r->query);
    word = verbatim_word_of_pattern(r->query);
  } else if (r->exact) {
    verbatim_put_contains(out, r->query);
    word = verbatim_word_of_text(r->query);
  } else {
    strbuf_addstr(out, "{\"$and\":[");
    for (size_t n = 0; verbatim_next_quoted(&rest, &phrase); n++) {
      if (n) strbuf_addch(out, ',');
      verbatim_put_contains(out, phrase);
      if (verbatim_word_of_text(phrase).len > word.len) word = verbatim_word_of_text(phrase);
    }
    strbuf_addstr(out, "]}");
  }
  s->text = word;
  return out->failed || !search_copy(s, &s->text) ? err_nomem(err) : LODE_OK;
}

/* Does the chunk's own text hold it? The filter saw the head of its document, too. */
static bool verbatim_holds(const search_request *r, lode_str text) {
  lode_str rest = r->query, phrase;
  if (r->regex) return true; /* the pattern says where */
  if (r->exact) return text.len && memmem(text.data, text.len, r->query.data, r->query.len);
  while (verbatim_next_quoted(&rest, &phrase))
    if (!text.len || !memmem(text.data, text.len, phrase.data, phrase.len)) return false;
  return true;
}

void search_drop_unverified(search_ctx *s) {
  for (size_t i = 0; i < s->n;)
    if (verbatim_holds(s->request, s->v[i].text))
      i++;
    else
      s->v[i] = s->v[--s->n];
}

void search_explain_regex(lode_str pattern, lode_error *err) {
  char quoted[256], reason[200] = "";
  const char *colon = err ? strrchr(err->text, ':') : NULL;
  if (!err) return;
  snprintf(reason, sizeof reason, "%s", colon ? colon + 1 : "");
  (void)err_set(err, LODE_INVALID, "the regular expression %s is wrong:%s", str_quote(pattern, quoted, sizeof quoted),
                reason);
}
