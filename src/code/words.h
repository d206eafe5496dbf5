/* words.h - names and questions as words, for ranking: folded, split as the text index splits them, and compared by their stems.
 *
 * "parseHTTPHeaders" and "src/http_parser.c" become parse, http, headers and src, http, parser, c. Two words are alike when their
 * stems are equal, or, a little less, when the shorter one (of three letters or more) begins the longer one. */
#ifndef LODE_CODE_WORDS_H
#define LODE_CODE_WORDS_H

#include "base/base.h"

enum { LODE__WORDS_MOST = 48, LODE__WORD_BYTES = 32 };

typedef struct lode__word {
  char text[LODE__WORD_BYTES]; /* longer ones are cut */
  uint8_t len, stem;           /* the stem is the first so many bytes */
} lode__word;

typedef struct lode__words {
  lode__word v[LODE__WORDS_MOST];
  size_t n;
} lode__words;

/* Letters, digits and _ : what names are made of in nearly every language. */
static inline bool lode__is_name_byte(unsigned char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80;
}
/* The parts of all names in the text, in order, the first LODE__WORDS_MOST of them, repetitions left out. */
void lode__words_of(lode_str text, lode__words *words);
/* 0: not alike; 1: equal stems; between: one begins the other. */
double lode__word_alike(const lode__word *a, const lode__word *b);
/* Is the third word the first two written together? "thread", "pool": threadpool. */
bool lode__word_joins(const lode__word *a, const lode__word *b, const lode__word *whole);
/* The best likeness of a word to one of several. */
double lode__word_among(const lode__word *word, const lode__words *words);
/* Words that say nothing about code: the, how, where, does, ... */
bool lode__word_is_stop(const lode__word *word);

#endif
