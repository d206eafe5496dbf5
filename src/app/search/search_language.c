/* SPDX-License-Identifier: Apache-2.0 */
/* search_language.c - which language is a question in? See search_glossary.h.
 *
 * Only words that connect others are counted, and of them only those that neither English nor code has: "die", "was",
 * "comment" and "son" say nothing for either side. */
#include "search/search_glossary.h"

#include "search/search_words.h"

const char *search_language_name(search_language language) {
  static const char *const names[] = {"German", "Spanish", "French", "Japanese", "Chinese", "English"};
  return names[language];
}

typedef struct language_counts {
  unsigned of[SEARCH_LANGUAGES], english;
} language_counts;

static bool language_has(const char *const *list, lode_str word) {
  for (size_t i = 0; list[i]; i++)
    if (str_eq(word, str_of(list[i]))) return true;
  return false;
}

/* Counts a word in lower case. */
static void language_count_word(language_counts *n, lode_str word) {
  static const char *const german[] = {
      "auf",   "aus",   "bei",    "beim", "das",  "dem",  "den",   "der",  "durch", "ein",      "eine", "einem",
      "einen", "einer", "eines",  "ist",  "mit",  "nach", "nicht", "oder", "sich",  "sind",     "und",  "vom",
      "von",   "wenn",  "werden", "wie",  "wird", "wo",   "zu",    "zum",  "zur",   "zwischen", NULL};
  static const char *const spanish[] = {"al",    "como", "con", "cuando", "de",  "del", "desde",
                                        "donde", "el",   "en",  "entre",  "las", "los", "para",
                                        "por",   "que",  "se",  "sin",    "un",  "una", NULL};
  static const char *const french[] = {"au",    "aux",  "avec", "dans", "de",  "depuis", "des", "du",   "en",
                                       "entre", "est",  "et",   "le",   "les", "ou",     "par", "pour", "quand",
                                       "que",   "sans", "sont", "sous", "sur", "un",     "une", NULL};
  static const char *const shared[] = {"a", "an", "do", "in", "me", "on", "so", "was", "will", NULL};
  static const char *const *const lists[] = {german, spanish, french};
  search_word key = {.len = 0};
  for (int i = SEARCH_GERMAN; i <= SEARCH_FRENCH; i++) n->of[i] += language_has(lists[i], word);
  if (word.len >= SEARCH_WORD_BYTES || language_has(shared, word)) return;
  memcpy(key.text, word.data, word.len);
  n->english += search_word_is_stop(&key);
}

/* A letter that English does not have. */
static void language_count_letter(language_counts *n, const char *at, size_t width) {
  static const char *const letters[] = {"äöüßÄÖÜ", "ñáíóúéÑÁÍÓÚÉ¿¡", "àâçèéêëîïôùûœÀÂÇÈÉÊËÎÏÔÙÛŒ"};
  uint32_t c = utf8_decode(at, width);
  for (int i = SEARCH_GERMAN; i <= SEARCH_FRENCH && width == 2; i++) {
    const char *found = letters[i];
    while (*found && memcmp(found, at, 2) != 0) found += 2;
    n->of[i] += *found != 0;
  }
  n->of[SEARCH_JAPANESE] += c >= 0x3041 && c <= 0x30FF;
  n->of[SEARCH_CHINESE] += c >= 0x3400 && c <= 0x9FFF;
}

/* What ends the word is at i: l'objet and d'une are elided, it's and don't are English; a word with é is in no list. */
static void language_end_word(language_counts *n, lode_str word, lode_str question, size_t i) {
  lode_str rest = {question.data + i, i < question.len ? question.len - i : 0};
  bool apostrophe = (rest.len && rest.data[0] == '\'') || (rest.len > 2 && memcmp(rest.data, "’", 3) == 0);
  if (apostrophe && word.len == 1 && strchr("cdjlmnst", word.data[0]))
    n->of[SEARCH_FRENCH]++;
  else if (!rest.len || (unsigned char)rest.data[0] < 0x80)
    language_count_word(n, word);
}

static void language_count(lode_str question, language_counts *n) {
  char word[SEARCH_WORD_BYTES];
  size_t len = 0, upper = 0;
  for (size_t i = 0; i <= question.len;) {
    unsigned char c = i < question.len ? (unsigned char)question.data[i] : ' ';
    if (c < 0x80 && search_is_name_byte(c) && len + 1 < sizeof word) {
      upper += c >= 'A' && c <= 'Z';
      word[len++] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    } else if (len) {
      if (len == 1 || upper < len) language_end_word(n, (lode_str){word, len}, question, i); /* no MIT licence */
      len = upper = 0;
    }
    size_t width = c < 0x80 ? 1 : utf8_width(question.data + i, question.len - i);
    if (c >= 0x80 && width) language_count_letter(n, question.data + i, width);
    i += width ? width : 1;
  }
}

search_language search_language_of(lode_str question) {
  language_counts n = {.english = 0};
  language_count(question, &n);
  if (n.of[SEARCH_JAPANESE]) return SEARCH_JAPANESE;
  if (n.of[SEARCH_CHINESE]) return SEARCH_CHINESE;
  search_language best = SEARCH_GERMAN;
  for (search_language i = SEARCH_SPANISH; i <= SEARCH_FRENCH; i++)
    if (n.of[i] > n.of[best]) best = i;
  bool sentence = memchr(question.data, ' ', question.len) != NULL; /* a name in other letters is a name */
  return sentence && n.of[best] > n.english ? best : SEARCH_ENGLISH;
}
