/* SPDX-License-Identifier: Apache-2.0 */
/* embed_words.h - the vocabulary of a static model: which rows of its table a text consists of.
 *
 * A text is split as in token.h. The parts of a name are looked up one by one; a component or a whole name
 * ("read_file", "std::move") also counts if the vocabulary has it. An unknown part is split into known words, in the
 * most likely way by the words' costs ("getaddrinfo" is get, addr, info); unknown numbers, long parts and other scripts
 * are left out. Pure: no files, no memory of its own; the struct points into the caller's memory, and
 * embed_words_check() must have accepted it before anything else is called.
 */
#ifndef LODE_EMBED_EMBED_WORDS_H
#define LODE_EMBED_EMBED_WORDS_H

#include "base/base.h"

enum {
  EMBED_WORDS_MAX = 65535,    /* rows; a row's number fits in 16 bits */
  EMBED_WORDS_MAX_PIECE = 24, /* bytes of the longest word that an unknown part is split into */
  EMBED_WORDS_MAX_PART = 48,  /* bytes of the longest unknown part that is split */
};

typedef struct embed_words {
  uint32_t count;
  uint32_t n_slots;       /* a power of two, larger than count */
  const uint32_t *starts; /* count + 1 offsets in `bytes`, the first 0, ascending */
  const char *bytes;
  size_t n_bytes;
  const uint8_t *costs;  /* count: cost of the word as a piece; 255: never a piece */
  const uint16_t *slots; /* n_slots: row + 1 by hash, linear probing; 0: empty */
} embed_words;

/* Checks every offset, slot and length; LODE_CORRUPT if one is invalid. */
LODE_MUST lode_status embed_words_check(const embed_words *words, lode_error *err);
/* Fills n_slots empty slots; the other fields must be set. For writing a model. */
void embed_words_fill(const embed_words *words, uint16_t *slots);

#define EMBED_WORDS_NONE UINT32_MAX

/* Called with each row of a text, in order; rows repeat as words do. Non-zero stops. */
typedef int embed_words_fn(void *ctx, uint32_t row);
int embed_words_split(const embed_words *words, const char *text, size_t len, embed_words_fn *fn, void *ctx);

#endif
