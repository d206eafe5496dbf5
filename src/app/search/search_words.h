/* SPDX-License-Identifier: Apache-2.0 */
/* search_words.h - names and questions as words, for ranking: folded, split as the text index does, and compared by
 * stem.
 *
 * "parseHTTPHeaders" and "src/http_parser.c" become parse, http, headers and src, http, parser, c. Two words are
 * similar when their stems are equal or, a little less, when the shorter stem (of three letters or more) is a prefix
 * of the longer. */
#ifndef LODE_SEARCH_SEARCH_WORDS_H
#define LODE_SEARCH_SEARCH_WORDS_H

#include "base/base.h"
#include "search/search_tuning.h"

typedef struct search_word {
  char text[SEARCH_WORD_BYTES]; /* longer ones are truncated */
  uint8_t len, stem;            /* stem: length of the prefix that is the stem */
} search_word;

typedef struct search_words {
  search_word v[SEARCH_MAX_WORDS];
  size_t n;
} search_words;

/* Letters, digits and _: the characters of names in nearly every language. */
static inline bool search_is_name_byte(unsigned char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
}
/* The words of all names in the text, in order, without duplicates, at most SEARCH_MAX_WORDS. */
void search_words_split(lode_str text, search_words *words);
/* 0: not similar; 1: equal stems; between: one stem is a prefix of the other. */
double search_word_similarity(const search_word *a, const search_word *b);
/* Is the third word the first two joined? "thread", "pool": threadpool. */
bool search_word_is_compound(const search_word *a, const search_word *b, const search_word *whole);
/* The greatest similarity of a word to one of several. */
double search_word_best(const search_word *word, const search_words *words);
/* Words that say nothing about code: the, how, where, does, ... */
bool search_word_is_stop(const search_word *word);

#endif
