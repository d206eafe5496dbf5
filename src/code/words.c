/* words.c - see words.h. */
#include "words.h"

#include "base/token.h"

#include <stdlib.h>

#define PREFIX_LIKENESS 0.7
enum { LEAST_PREFIX = 3, LEAST_STEM = 3 };

/* ---- Stems ---- */

static bool ends(const lode__word *w, const char *suffix, size_t *len) {
  size_t n = strlen(suffix);
  if (*len < n + LEAST_STEM || memcmp(w->text + *len - n, suffix, n) != 0) return false;
  *len -= n;
  return true;
}

/* English endings, the longest first, at most one plural and one other. What is left is compared, never shown. */
static uint8_t stem_of(const lode__word *w) {
  static const char *const endings[] = {"ation", "ition", "ments", "ment", "ness", "ings", "ing", "ions", "ion",
                                        "able", "ible", "ized", "izer", "ize", "ers", "ors", "er", "or", "ed", "ly", "al"};
  size_t len = w->len;
  if (ends(w, "ies", &len)) return (uint8_t)len;
  if (len > LEAST_STEM && w->text[len - 1] == 's' && w->text[len - 2] != 's' && w->text[len - 2] != 'u') len--;
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    if (!ends(w, endings[i], &len)) continue;
    /* "running", "logger": the doubled letter goes as well */
    if (len > LEAST_STEM && w->text[len - 1] == w->text[len - 2] && !strchr("aeiousl", w->text[len - 1])) len--;
    break;
  }
  if (len > LEAST_STEM && (w->text[len - 1] == 'e' || w->text[len - 1] == 'y' || w->text[len - 1] == 'i')) len--;
  return (uint8_t)len;
}

/* ---- Splitting ---- */

typedef struct splitting {
  lode__words *words;
  lode__word last; /* at the present position: the part comes behind the component and the whole */
  bool open;
} splitting;

static void keep(splitting *s) {
  lode__words *words = s->words;
  if (!s->open || words->n == LODE__WORDS_MOST) return;
  s->last.stem = stem_of(&s->last);
  for (size_t i = 0; i < words->n; i++)
    if (words->v[i].len == s->last.len && memcmp(words->v[i].text, s->last.text, s->last.len) == 0) return;
  words->v[words->n++] = s->last;
}

static int on_token(void *ctx, const token_item *t) {
  splitting *s = ctx;
  size_t len = t->len < LODE__WORD_BYTES ? t->len : LODE__WORD_BYTES - 1;
  if (!t->same_place) keep(s);
  memset(&s->last, 0, sizeof s->last);
  memcpy(s->last.text, t->text, len);
  s->last.len = (uint8_t)len;
  s->open = true;
  return s->words->n == LODE__WORDS_MOST;
}

void lode__words_of(lode_str text, lode__words *words) {
  splitting s = {.words = words};
  words->n = 0;
  if (text.len) (void)token_split(text.data, text.len, on_token, &s);
  keep(&s);
}

/* ---- Comparing ---- */

double lode__word_alike(const lode__word *a, const lode__word *b) {
  if (a->stem == b->stem && memcmp(a->text, b->text, a->stem) == 0) return 1;
  const lode__word *shorter = a->stem < b->stem ? a : b, *longer = a->stem < b->stem ? b : a;
  if (shorter->stem < LEAST_PREFIX || memcmp(shorter->text, longer->text, shorter->stem) != 0) return 0;
  return PREFIX_LIKENESS * (0.5 + 0.5 * shorter->stem / longer->stem);
}

bool lode__word_joins(const lode__word *a, const lode__word *b, const lode__word *whole) {
  if (a->len < 2 || whole->len < a->len + 2u || memcmp(whole->text, a->text, a->len) != 0) return false;
  lode__word rest = {.len = (uint8_t)(whole->len - a->len)};
  memcpy(rest.text, whole->text + a->len, rest.len);
  rest.stem = stem_of(&rest);
  return rest.stem == b->stem && memcmp(rest.text, b->text, b->stem) == 0;
}

double lode__word_among(const lode__word *word, const lode__words *words) {
  double best = 0;
  for (size_t i = 0; i < words->n && best < 1; i++) {
    double alike = lode__word_alike(word, &words->v[i]);
    if (alike > best) best = alike;
  }
  return best;
}

static int by_text(const void *key, const void *entry) { return strcmp(key, *(const char *const *)entry); }

bool lode__word_is_stop(const lode__word *word) {
  static const char *const stops[] = {
      "a",    "about", "all",  "an",   "and",  "any",  "are",  "as",    "at",   "be",    "between", "by",   "can",
      "code", "do",    "does", "each", "find", "for",  "from", "get",   "gets", "given", "has",     "have", "how",
      "i",    "in",    "into", "is",   "it",   "its",  "me",   "of",    "on",   "or",    "show",    "so",   "that",
      "the",  "their", "them", "then", "this", "to",   "used", "using", "via",  "was",   "what",    "when", "where",
      "which", "while", "who", "why",  "will", "with", "within"};
  return bsearch(word->text, stops, sizeof stops / sizeof *stops, sizeof *stops, by_text) != NULL;
}
