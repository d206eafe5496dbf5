/* SPDX-License-Identifier: Apache-2.0 */
/* wordpiece.h - BERT's tokenizer: any bytes to token ids, the same ids as the reference ("tokenizers") gives.
 *
 * Special tokens are found in the raw text first. Then, character by character: control characters and bytes that are
 * not UTF-8 are dropped, white space separates, CJK ideographs are words of their own; canonical decomposition,
 * non-spacing marks are dropped, lower case; punctuation characters are words of their own. A word is split into the
 * longest pieces that the vocabulary has; if that fails, or it is longer than max_word_chars, it becomes the unknown
 * token. Time is linear, and reading stops when there are enough ids.
 */
#ifndef LODE_EMBED_WORDPIECE_H
#define LODE_EMBED_WORDPIECE_H

#include "base/base.h"

enum {
  EMBED_VOCAB_MAX = 4u << 20,    /* tokens of a vocabulary */
  EMBED_VOCAB_TOKEN_BYTES = 255, /* bytes of a token */
  EMBED_VOCAB_MAX_SPECIALS = 64, /* special tokens of a vocabulary */
  EMBED_MAX_WORD_CHARS = 1000,   /* greatest max_word_chars */
};

typedef struct embed_wordpiece_settings {
  bool clean_text, chinese_chars, strip_accents, lowercase;
  uint32_t unknown, first, last; /* [UNK], [CLS], [SEP] */
  uint32_t max_word_chars;       /* 100 */
} embed_wordpiece_settings;

typedef struct embed_wordpiece {
  embed_wordpiece_settings settings;
  char *bytes;          /* all tokens, concatenated, without the ## of a continuation */
  uint32_t *starts;     /* count + 1 */
  unsigned char *kinds; /* of each token: continuation or not */
  uint32_t count;
  uint32_t longest; /* bytes */
  uint32_t *slots;  /* id + 1, open addressing */
  uint32_t mask;
  uint32_t specials[EMBED_VOCAB_MAX_SPECIALS]; /* ids of tokens that are found in raw text */
  size_t n_specials;
} embed_wordpiece;

/* Tokens by id, as the vocabulary writes them ("##ing"). They are copied. If a text occurs twice, the last id counts,
 * as in the reference. LODE_CORRUPT: not a vocabulary. */
LODE_MUST lode_status embed_wordpiece_init(embed_wordpiece *wp, const embed_wordpiece_settings *settings,
                                           const lode_str *tokens, size_t count, const uint32_t *specials,
                                           size_t n_specials, lode_error *err);
void embed_wordpiece_release(embed_wordpiece *wp);

/* Writes [CLS] ... [SEP], at most max_ids (>= 2) ids; returns how many. */
size_t embed_wordpiece_encode(const embed_wordpiece *wp, lode_str text, uint32_t *ids, size_t max_ids);

#endif
