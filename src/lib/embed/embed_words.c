/* SPDX-License-Identifier: Apache-2.0 */
/* embed_words.c - see embed_words.h. */
#include "embed/embed_words.h"

#include "base/token.h"

enum {
  UNKNOWN_LETTER_COST = 400, /* of a letter that no word covers */
  PIECE_COST = 40,           /* of each piece, in addition to the word's own */
  COST_NEVER = 255,          /* a word that is never a piece */
};

/* FNV-1a, finished so that the low bits depend on all. The slots in files depend on it: it must never change. */
static uint32_t embed_words_hash(const char *text, size_t len) {
  uint32_t h = 2166136261u;
  for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)text[i]) * 16777619u;
  h ^= h >> 15;
  h *= 0x85EBCA6Bu;
  return h ^ h >> 13;
}

static bool embed_words_is_word(const embed_words *w, uint32_t row, const char *text, size_t len) {
  uint32_t from = w->starts[row];
  return w->starts[row + 1] - from == len && memcmp(w->bytes + from, text, len) == 0;
}

static uint32_t embed_words_find(const embed_words *w, const char *text, size_t len) {
  uint32_t mask = w->n_slots - 1;
  for (uint32_t at = embed_words_hash(text, len) & mask; w->slots[at]; at = (at + 1) & mask) {
    if (embed_words_is_word(w, w->slots[at] - 1u, text, len)) return w->slots[at] - 1u;
  }
  return EMBED_WORDS_NONE;
}

void embed_words_fill(const embed_words *w, uint16_t *slots) {
  uint32_t mask = w->n_slots - 1;
  for (uint32_t row = 0; row < w->count; row++) {
    uint32_t at = embed_words_hash(w->bytes + w->starts[row], w->starts[row + 1] - w->starts[row]) & mask;
    while (slots[at]) at = (at + 1) & mask;
    slots[at] = (uint16_t)(row + 1);
  }
}

lode_status embed_words_check(const embed_words *w, lode_error *err) {
  if (w->count == 0 || w->count > EMBED_WORDS_MAX)
    return err_set(err, LODE_CORRUPT, "the vocabulary has %u words", w->count);
  if (w->n_slots <= w->count || (w->n_slots & (w->n_slots - 1)))
    return err_set(err, LODE_CORRUPT, "the vocabulary has %u slots", w->n_slots);
  if (w->starts[0] != 0 || w->starts[w->count] != w->n_bytes)
    return err_set(err, LODE_CORRUPT, "the vocabulary's words do not fill their place");
  for (uint32_t i = 0; i < w->count; i++) {
    if (w->starts[i + 1] <= w->starts[i] || w->starts[i + 1] > w->n_bytes)
      return err_set(err, LODE_CORRUPT, "word %u of the vocabulary lies outside of it", i);
  }
  uint32_t used = 0;
  for (uint32_t i = 0; i < w->n_slots; i++) {
    if (w->slots[i] > w->count) return err_set(err, LODE_CORRUPT, "slot %u of the vocabulary names no word", i);
    used += w->slots[i] != 0;
  }
  if (used != w->count) return err_set(err, LODE_CORRUPT, "the vocabulary has %u words in %u slots", w->count, used);
  return LODE_OK;
}

/* ---- Splitting ---- */

typedef struct embed_words_splitter {
  const embed_words *words;
  embed_words_fn *fn;
  void *ctx;
} embed_words_splitter;

static bool is_letters(const char *text, size_t len) {
  for (size_t i = 0; i < len; i++) {
    if ((unsigned char)(text[i] - 'a') >= 26) return false;
  }
  return true;
}

/* The cheapest split up to each position, then backwards along it. A letter that no word covers is skipped, at a high
 * cost. */
static int embed_words_cut(const embed_words_splitter *s, const char *text, size_t len) {
  uint32_t best[EMBED_WORDS_MAX_PART + 1], row[EMBED_WORDS_MAX_PART + 1];
  uint8_t width[EMBED_WORDS_MAX_PART + 1];
  best[0] = 0;
  for (size_t end = 1; end <= len; end++) {
    best[end] = best[end - 1] + UNKNOWN_LETTER_COST;
    row[end] = EMBED_WORDS_NONE;
    width[end] = 1;
    for (size_t n = 2; n <= end && n <= EMBED_WORDS_MAX_PIECE; n++) {
      uint32_t found = embed_words_find(s->words, text + end - n, n);
      if (found == EMBED_WORDS_NONE || s->words->costs[found] == COST_NEVER) continue;
      uint32_t cost = best[end - n] + PIECE_COST + s->words->costs[found];
      if (cost >= best[end]) continue;
      best[end] = cost;
      row[end] = found;
      width[end] = (uint8_t)n;
    }
  }
  uint32_t pieces[EMBED_WORDS_MAX_PART];
  size_t n = 0;
  for (size_t at = len; at > 0; at -= width[at]) {
    if (row[at] != EMBED_WORDS_NONE) pieces[n++] = row[at];
  }
  int stop = 0;
  while (n && !stop) stop = s->fn(s->ctx, pieces[--n]);
  return stop;
}

static int embed_words_on_token(void *ctx, const token_item *token) {
  const embed_words_splitter *s = ctx;
  uint32_t row = embed_words_find(s->words, token->text, token->len);
  if (row != EMBED_WORDS_NONE) return s->fn(s->ctx, row);
  if (!token->part || token->len < 3 || token->len > EMBED_WORDS_MAX_PART || !is_letters(token->text, token->len))
    return 0;
  return embed_words_cut(s, token->text, token->len);
}

int embed_words_split(const embed_words *words, const char *text, size_t len, embed_words_fn *fn, void *ctx) {
  embed_words_splitter s = {.words = words, .fn = fn, .ctx = ctx};
  return token_split(text, len, embed_words_on_token, &s);
}
