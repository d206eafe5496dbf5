/* wordpiece.h - BERT's tokenizer: any bytes to token ids, the same ids as the reference ("tokenizers") gives.
 *
 * Special tokens are found in the raw text first. Then, character by character: control characters and bytes that are
 * not UTF-8 vanish, white space separates, CJK ideographs stand alone; canonical decomposition, non-spacing marks
 * vanish, lower case; punctuation stands alone. A word is cut into the longest pieces that the vocabulary has; one that
 * cannot be, or is longer than max_word_chars, is the unknown token. Time is linear, and reading ends where the ids do.
 */
#ifndef LODE_WORDPIECE_H
#define LODE_WORDPIECE_H

#include "base/base.h"

enum {
  LODE__VOCAB_MAX = 4u << 20,       /* tokens of a vocabulary */
  LODE__VOCAB_TOKEN_BYTES = 255,    /* of one */
  LODE__SPECIALS_MAX = 64,
  LODE__WORD_CHARS_MAX = 1000,      /* the most that max_word_chars may be */
};

typedef struct lode__wordpiece_settings {
  bool clean_text, chinese_chars, strip_accents, lowercase;
  uint32_t unknown, first, last; /* [UNK], [CLS], [SEP] */
  uint32_t max_word_chars;       /* 100 */
} lode__wordpiece_settings;

typedef struct lode__wordpiece {
  lode__wordpiece_settings settings;
  char *bytes;          /* all tokens, one after the other, without the ## of a continuation */
  uint32_t *starts;     /* count + 1 */
  unsigned char *kinds; /* of each token: continuation or not */
  uint32_t count;
  uint32_t longest;     /* bytes */
  uint32_t *slots;      /* id + 1, open addressing */
  uint32_t mask;
  uint32_t specials[LODE__SPECIALS_MAX]; /* ids whose text is found in raw text */
  size_t n_specials;
} lode__wordpiece;

/* Tokens by id, as the vocabulary writes them ("##ing"). They are copied. A text that stands twice: the last id counts,
 * as in the reference. LODE_CORRUPT for what is no vocabulary. */
lode_status lode__wordpiece_init(lode__wordpiece *wp, const lode__wordpiece_settings *settings, const lode_str *tokens,
                                 size_t count, const uint32_t *specials, size_t n_specials, lode_error *err);
void lode__wordpiece_release(lode__wordpiece *wp);

/* [CLS] ... [SEP], at most max_ids (>= 2) ids; returns how many. */
size_t lode__wordpiece_encode(const lode__wordpiece *wp, lode_str text, uint32_t *ids, size_t max_ids);

#endif
