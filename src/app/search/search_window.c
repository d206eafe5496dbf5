/* SPDX-License-Identifier: Apache-2.0 */
/* search_window.c - the lines of a long chunk that have most of the question's words. */
#include "search/search_internal.h"

/* Which of the question's words a line has: bit i for word i. */
static uint64_t window_words_of(const search_question *q, lode_str line) {
  search_words words;
  uint64_t bits = 0;
  search_words_split(line, &words);
  for (size_t i = 0; i < q->words.n; i++)
    if (search_word_best(&q->words.v[i], &words) > 0) bits |= (uint64_t)1 << i;
  return bits;
}

static lode_str window_next_line(lode_str text, size_t at) {
  const char *end = memchr(text.data + at, '\n', text.len - at);
  return (lode_str){text.data + at, end ? (size_t)(end - (text.data + at)) + 1 : text.len - at};
}

/* A word that many lines of the chunk have says little about which of them is meant. */
static double window_value(const size_t *lines_with, size_t n, uint64_t bits) {
  double value = 0;
  for (size_t i = 0; i < n; i++)
    if (bits >> i & 1) value += 1 / (double)lines_with[i];
  return value;
}

lode_str search_window(const search_question *q, lode_str text, size_t most, uint32_t *skipped) {
  size_t lines_with[SEARCH_MAX_WORDS] = {0}, from = 0, best_from = 0, best_to = 0;
  uint32_t line = 0; /* the number of the one at `from` */
  double value = 0, best = -1;
  *skipped = 0;
  if (text.len <= most) return text;
  for (size_t at = 0; at < text.len;) {
    lode_str next = window_next_line(text, at);
    uint64_t bits = window_words_of(q, next);
    for (size_t i = 0; i < q->words.n; i++) lines_with[i] += bits >> i & 1;
    at += next.len;
  }
  for (size_t to = 0; to < text.len;) {
    lode_str next = window_next_line(text, to);
    value += window_value(lines_with, q->words.n, window_words_of(q, next));
    to += next.len;
    while (to - from > most && from + next.len < to) { /* a line that is too long stays whole */
      lode_str gone = window_next_line(text, from);
      value -= window_value(lines_with, q->words.n, window_words_of(q, gone));
      from += gone.len;
      line++;
    }
    if (value <= best + SEARCH_WINDOW_MARGIN && from != best_from) continue;
    best = value;
    best_from = from;
    best_to = to;
    *skipped = line;
  }
  return (lode_str){text.data + best_from, best_to - best_from};
}
