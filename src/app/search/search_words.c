/* SPDX-License-Identifier: Apache-2.0 */
/* search_words.c - see search_words.h. */
#include "search/search_words.h"

#include "base/token.h"

#include <stdlib.h>

/* ---- Stems ---- */

static bool search_words_strip_ending(const search_word *w, const char *suffix, size_t *len) {
  size_t n = strlen(suffix);
  if (*len < n + SEARCH_MIN_STEM || memcmp(w->text + *len - n, suffix, n) != 0) return false;
  *len -= n;
  return true;
}

/* Removes English endings, longest first: at most one plural and one other. Stems are compared, never displayed. */
static uint8_t search_words_stem_of(const search_word *w) {
  static const char *const endings[] = {"ation", "ition", "ments", "ment", "ness", "ings", "ing",
                                        "ions",  "ion",   "able",  "ible", "ized", "izer", "ize",
                                        "ers",   "ors",   "er",    "or",   "ed",   "ly",   "al"};
  size_t len = w->len;
  if (search_words_strip_ending(w, "ies", &len)) return (uint8_t)len;
  if (len > SEARCH_MIN_STEM && w->text[len - 1] == 's' && w->text[len - 2] != 's' && w->text[len - 2] != 'u') len--;
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    if (!search_words_strip_ending(w, endings[i], &len)) continue;
    /* "running", "logger": drop the doubled letter too */
    if (len > SEARCH_MIN_STEM && w->text[len - 1] == w->text[len - 2] && !strchr("aeiousl", w->text[len - 1])) len--;
    break;
  }
  if (len > SEARCH_MIN_STEM && (w->text[len - 1] == 'e' || w->text[len - 1] == 'y' || w->text[len - 1] == 'i')) len--;
  return (uint8_t)len;
}

/* ---- Splitting ---- */

typedef struct search_words_splitter {
  search_words *words;
  search_word last; /* of the current position: the last token there is the smallest part */
  bool open;
} search_words_splitter;

static void search_words_add_last(search_words_splitter *s) {
  search_words *words = s->words;
  if (!s->open || words->n == SEARCH_MAX_WORDS) return;
  s->last.stem = search_words_stem_of(&s->last);
  for (size_t i = 0; i < words->n; i++)
    if (words->v[i].len == s->last.len && memcmp(words->v[i].text, s->last.text, s->last.len) == 0) return;
  words->v[words->n++] = s->last;
}

static int search_words_on_token(void *ctx, const token_item *t) {
  search_words_splitter *s = ctx;
  size_t len = t->len < SEARCH_WORD_BYTES ? t->len : SEARCH_WORD_BYTES - 1;
  if (!t->same_place) search_words_add_last(s);
  memset(&s->last, 0, sizeof s->last);
  memcpy(s->last.text, t->text, len);
  s->last.len = (uint8_t)len;
  s->open = true;
  return s->words->n == SEARCH_MAX_WORDS;
}

void search_words_split(lode_str text, search_words *words) {
  search_words_splitter s = {.words = words};
  words->n = 0;
  if (text.len) (void)token_split(text.data, text.len, search_words_on_token, &s);
  search_words_add_last(&s);
}

/* ---- Comparing ---- */

double search_word_similarity(const search_word *a, const search_word *b) {
  if (a->stem == b->stem && memcmp(a->text, b->text, a->stem) == 0) return 1;
  const search_word *shorter = a->stem < b->stem ? a : b, *longer = a->stem < b->stem ? b : a;
  if (shorter->stem < SEARCH_MIN_PREFIX || memcmp(shorter->text, longer->text, shorter->stem) != 0) return 0;
  return SEARCH_PREFIX_SIMILARITY * (0.5 + 0.5 * shorter->stem / longer->stem);
}

bool search_word_is_compound(const search_word *a, const search_word *b, const search_word *whole) {
  if (a->len < 2 || whole->len < a->len + 2u || memcmp(whole->text, a->text, a->len) != 0) return false;
  search_word rest = {.len = (uint8_t)(whole->len - a->len)};
  memcpy(rest.text, whole->text + a->len, rest.len);
  rest.stem = search_words_stem_of(&rest);
  return rest.stem == b->stem && memcmp(rest.text, b->text, b->stem) == 0;
}

double search_word_best(const search_word *word, const search_words *words) {
  double best = 0;
  for (size_t i = 0; i < words->n && best < 1; i++) {
    double similarity = search_word_similarity(word, &words->v[i]);
    if (similarity > best) best = similarity;
  }
  return best;
}

static int search_words_compare(const void *key, const void *entry) { return strcmp(key, *(const char *const *)entry); }

bool search_word_is_stop(const search_word *word) {
  static const char *const stops[] = {
      "a",    "about", "all",  "an",    "and",   "any",   "are",  "as",   "at",   "be",   "between", "by",
      "can",  "code",  "do",   "does",  "each",  "find",  "for",  "from", "get",  "gets", "given",   "has",
      "have", "how",   "i",    "in",    "into",  "is",    "it",   "its",  "me",   "of",   "on",      "or",
      "show", "so",    "that", "the",   "their", "them",  "then", "this", "to",   "used", "using",   "via",
      "was",  "what",  "when", "where", "which", "while", "who",  "why",  "will", "with", "within"};
  return bsearch(word->text, stops, sizeof stops / sizeof *stops, sizeof *stops, search_words_compare) != NULL;
}
