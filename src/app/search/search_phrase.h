/* SPDX-License-Identifier: Apache-2.0 */
/* search_phrase.h - text as it stands: does a chunk hold a text that was copied from code, a log or an error message?
 *
 * The bytes of the query decide first. If they are not there, because values were filled in or lines were joined, the
 * longest run of its words that follow each other in the chunk counts, if it is most of the query.
 */
#ifndef LODE_SEARCH_SEARCH_PHRASE_H
#define LODE_SEARCH_SEARCH_PHRASE_H

#include "search/search_words.h"

typedef struct search_phrase {
  lode_str text;                      /* as it was given, without white space at its ends */
  uint64_t hash[SEARCH_PHRASE_WORDS]; /* of each word, ignoring case */
  uint32_t length[SEARCH_PHRASE_WORDS];
  size_t n;         /* words; more are ignored */
  size_t bytes;     /* of all words */
  lode_str longest; /* of the words */
  bool plain;       /* nothing but words: perhaps a question */
  bool cased;       /* a capital letter that does not begin the text: a name, or copied */
} search_phrase;

void search_phrase_parse(lode_str text, search_phrase *phrase);
/* 0: the text does not hold it, to 1: it does, and that says much. */
double search_phrase_match(const search_phrase *phrase, lode_str text);

#endif
