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
  while (p->n < SEARCH_PHRASE_WORDS && phrase_next_word(&rest, &p->hash[p->n], &p->length[p->n])) {
    uint32_t length = p->length[p->n++];
    p->bytes += length;
    if (length > p->longest.len) p->longest = (lode_str){rest.data - length, length};
  }
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

static unsigned char phrase_lower(char c) { return (unsigned char)(c >= 'A' && c <= 'Z' ? c + 32 : c); }

/* Which byte of a word is rare in texts? */
static size_t phrase_rare_byte(lode_str word) {
  static const char common[] = "zqjxkvbywgpfmucdlhrsnioate";
  size_t best = 0, least = sizeof common;
  for (size_t i = 0; i < word.len; i++) {
    const char *at = memchr(common, phrase_lower(word.data[i]), sizeof common - 1);
    size_t rank = at ? (size_t)(at - common) : 0;
    if (rank < least) least = rank, best = i;
  }
  return best;
}

/* Is the word somewhere in the text, ignoring case? Reads a text much faster than word by word. */
static bool phrase_holds(lode_str text, lode_str word) {
  if (text.len < word.len) return false;
  size_t rare = phrase_rare_byte(word);
  char lower = (char)phrase_lower(word.data[rare]), upper = (char)(lower >= 'a' && lower <= 'z' ? lower - 32 : lower);
  const char *from = text.data + rare, *end = text.data + text.len - (word.len - rare - 1);
  for (int k = 0; k < (lower == upper ? 1 : 2); k++)
    for (const char *p = from; p < end && (p = memchr(p, k ? upper : lower, (size_t)(end - p))); p++) {
      size_t i = 0;
      while (i < word.len && phrase_lower((p - rare)[i]) == phrase_lower(word.data[i])) i++;
      if (i == word.len) return true;
    }
  return false;
}

double search_phrase_match(const search_phrase *p, lode_str text) {
  size_t words;
  if (!p->n || !text.len || p->length[0] == p->text.len) return 0; /* a name: its definition decides */
  if (text.len >= p->text.len && memmem(text.data, text.len, p->text.data, p->text.len)) return phrase_value(p);
  if (p->n < 3 || (p->plain && !phrase_holds(text, p->longest))) return 0; /* of plain words, all must be there */
  double share = (double)phrase_longest_run(p, text, &words) / (double)p->bytes;
  bool enough = words >= 3 && share >= (p->plain ? 1 : RANK_PHRASE_SHARE);
  return enough ? RANK_PHRASE_RUN * phrase_value(p) * share : 0;
}
