/* wordpiece.h - BERT's tokenizer: any bytes to token ids, the same ids as the reference ("tokenizers") gives.
 *
 * Special tokens are found in the raw text first. Then, character by character: control characters and bytes that are
 * not UTF-8 vanish, white space separates, CJK ideographs stand alone; canonical decomposition, non-spacing marks
 * vanish, lower case; punctuation stands alone. A word is cut into the longest pieces that the vocabulary has; one that
 * cannot be, or is longer than max_word_chars, is the unknown token. Time is linear, and reading ends where the ids do.
 */
#ifndef LODE_EMBED_WORDPIECE_H
#define LODE_EMBED_WORDPIECE_H

#include "base/base.h"

enum {
  EMBED_VOCAB_MAX = 4u << 20,       /* tokens of a vocabulary */
  EMBED_VOCAB_TOKEN_BYTES = 255,    /* of one */
  EMBED_VOCAB_MAX_SPECIALS = 64,
  EMBED_MAX_WORD_CHARS = 1000,      /* the most that max_word_chars may be */
};

typedef struct embed_wordpiece_settings {
  bool clean_text, chinese_chars, strip_accents, lowercase;
  uint32_t unknown, first, last; /* [UNK], [CLS], [SEP] */
  uint32_t max_word_chars;       /* 100 */
} embed_wordpiece_settings;

typedef struct embed_wordpiece {
  embed_wordpiece_settings settings;
  char *bytes;          /* all tokens, one after the other, without the ## of a continuation */
  uint32_t *starts;     /* count + 1 */
  unsigned char *kinds; /* of each token: continuation or not */
  uint32_t count;
  uint32_t longest;     /* bytes */
  uint32_t *slots;      /* id + 1, open addressing */
  uint32_t mask;
  uint32_t specials[EMBED_VOCAB_MAX_SPECIALS]; /* ids whose text is found in raw text */
  size_t n_specials;
} embed_wordpiece;

/* Tokens by id, as the vocabulary writes them ("##ing"). They are copied. A text that stands twice: the last id counts,
 * as in the reference. LODE_CORRUPT for what is no vocabulary. */
lode_status embed_wordpiece_init(embed_wordpiece *wp, const embed_wordpiece_settings *settings, const lode_str *tokens,
                                 size_t count, const uint32_t *specials, size_t n_specials, lode_error *err);
void embed_wordpiece_release(embed_wordpiece *wp);

/* [CLS] ... [SEP], at most max_ids (>= 2) ids; returns how many. */
size_t embed_wordpiece_encode(const embed_wordpiece *wp, lode_str text, uint32_t *ids, size_t max_ids);

#endif
