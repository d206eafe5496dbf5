/* SPDX-License-Identifier: Apache-2.0 */
/* search_phrase.c - see search_phrase.h. */
#include "search/search_phrase.h"

/* Takes the next word: its hash ignoring case, and its length; false at the end. */
static bool phrase_next_word(lode_str *rest, uint64_t *hash, uint32_t *length) {
  const char *p = rest->data, *end = p + rest->len;
  while (p < end && !search_is_name_byte((unsigned char)*p)) p++;
  const char *start = p;
  uint64_t h = 0xcbf29ce484222325u;
  for (; p < end && search_is_name_byte((unsigned char)*p); p++) {
    unsigned char c = (unsigned char)*p;
    h = (h ^ (c >= 'A' && c <= 'Z' ? c + 32u : c)) * 0x100000001b3u;
  }
  *hash = h;
  *length = (uint32_t)(p - start);
  *rest = (lode_str){p, (size_t)(end - p)};
  return p > start;
}

static bool phrase_is_plain(lode_str text) {
  for (size_t i = 0; i < text.len; i++) {
    unsigned char c = (unsigned char)text.data[i];
    if (c != ' ' && c != '-' && c != '\'' && c != '?' && c != '.' && c != ',' && !(search_is_name_byte(c) && c != '_'))
      return false;
  }
  return true;
}

void search_phrase_parse(lode_str text, search_phrase *p) {
  lode_str rest = text;
  memset(p, 0, sizeof *p);
  p->text = text;
  p->plain = phrase_is_plain(text);
  for (size_t i = 1; i < text.len; i++) p->cased = p->cased || (text.data[i] >= 'A' && text.data[i] <= 'Z');
  while (p->n < SEARCH_PHRASE_WORDS && phrase_next_word(&rest, &p->hash[p->n], &p->length[p->n]))
    p->bytes += p->length[p->n++];
}

/* Bytes of the longest run of words that the query and the text share; *words gets how many they are. */
static size_t phrase_longest_run(const search_phrase *p, lode_str text, size_t *words) {
  uint32_t run[SEARCH_PHRASE_WORDS + 1] = {0}; /* words that end at query word i - 1 and at the current one */
  size_t best = 0;
  uint64_t hash;
  uint32_t length;
  *words = 0;
  while (phrase_next_word(&text, &hash, &length))
    for (size_t i = p->n; i > 0; i--) {
      run[i] = p->hash[i - 1] == hash && p->length[i - 1] == length ? run[i - 1] + 1 : 0;
      if (run[i] < *words || run[i] == 0) continue;
      size_t bytes = 0;
      for (size_t k = 0; k < run[i]; k++) bytes += p->length[i - 1 - k];
      if (bytes <= best) continue;
      best = bytes;
      *words = run[i];
    }
  return best;
}

/* How much it says that a text holds the whole query: little if that is a few plain words, as a question may be. */
static double phrase_value(const search_phrase *p) {
  static const double plain[] = RANK_PHRASE_PLAIN;
  return p->plain && !p->cased && p->n < sizeof plain / sizeof *plain ? plain[p->n] : 1;
}

double search_phrase_match(const search_phrase *p, lode_str text) {
  size_t words;
  if (!p->n || !text.len || p->length[0] == p->text.len) return 0; /* a name: its definition decides */
  if (text.len >= p->text.len && memmem(text.data, text.len, p->text.data, p->text.len)) return phrase_value(p);
  if (p->n < 3) return 0;
  double share = (double)phrase_longest_run(p, text, &words) / (double)p->bytes;
  bool enough = words >= 3 && share >= (p->plain ? 1 : RANK_PHRASE_SHARE);
  return enough ? RANK_PHRASE_RUN * phrase_value(p) * share : 0;
}
