/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.c - see suggest.h. Only short words are compared: names of verbs, flags and collections. */
#include "ops/suggest.h"

#define SUGGEST_MAX_WORD 63

static size_t suggest_min(size_t a, size_t b) { return a < b ? a : b; }

static size_t suggest_distance(lode_str a, lode_str b) {
  size_t rows[3][SUGGEST_MAX_WORD + 1];
  size_t *before = rows[0], *last = rows[1], *row = rows[2];
  for (size_t j = 0; j <= b.len; j++) last[j] = j;
  memset(before, 0, sizeof rows[0]);
  for (size_t i = 1; i <= a.len; i++) {
    row[0] = i;
    for (size_t j = 1; j <= b.len; j++) {
      size_t change = last[j - 1] + (a.data[i - 1] != b.data[j - 1]);
      row[j] = suggest_min(change, 1 + suggest_min(last[j], row[j - 1]));
      if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] && a.data[i - 2] == b.data[j - 1])
        row[j] = suggest_min(row[j], before[j - 2] + 1);
    }
    size_t *spare = before;
    before = last;
    last = row;
    row = spare;
  }
  return last[b.len];
}

void op_suggest_init(op_suggest *s, lode_str word) {
  memset(s, 0, sizeof *s);
  s->word = word;
  s->best = word.len <= 3 ? 2 : 1 + word.len / 3 + 1;
}

void op_suggest_try(op_suggest *s, lode_str candidate) {
  if (s->word.len == 0 || s->word.len > SUGGEST_MAX_WORD || candidate.len == 0 || candidate.len > SUGGEST_MAX_WORD)
    return;
  size_t d = suggest_distance(s->word, candidate);
  /* a prefix of the candidate counts as distance 1: "coll" for "collections" */
  if (s->word.len >= 3 && candidate.len > s->word.len && memcmp(s->word.data, candidate.data, s->word.len) == 0) d = 1;
  if (d >= s->best) return;
  s->best = d;
  s->found = true;
  memcpy(s->text, candidate.data, candidate.len);
  s->text[candidate.len] = '\0';
}
