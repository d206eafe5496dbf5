/* vocab.h - a WordPiece vocabulary and its settings from tokenizer.json or vocab.txt, and from the bytes of a pack.
 *
 * In a pack (little-endian): u32 count, flags (1 clean, 2 chinese, 4 strip, 8 lower), unknown, first, last, max_word_chars,
 * n_specials; n_specials x u32; count x u8 length; the texts.
 */
#ifndef LODE_VOCAB_H
#define LODE_VOCAB_H

#include "embed/wordpiece.h"

enum { LODE__TOKENIZER_MAX_BYTES = 64u << 20 };

typedef struct lode__vocab {
  lode__wordpiece_settings settings;
  lode_str *tokens;  /* by id; they point into the source bytes or the json */
  size_t count;
  uint32_t specials[LODE__SPECIALS_MAX];
  size_t n_specials;
  void *owned;       /* what the tokens point to, when it is not the source */
} lode__vocab;

/* `text` must outlive the vocabulary. LODE_CORRUPT for what is no tokenizer, LODE_UNSUPPORTED for another kind of it. */
lode_status lode__vocab_from_json(lode__vocab *vocab, lode_str text, lode_error *err);
lode_status lode__vocab_from_lines(lode__vocab *vocab, lode_str text, bool lowercase, lode_error *err);
lode_status lode__vocab_from_pack(lode__vocab *vocab, lode_str bytes, lode_error *err);
void lode__vocab_put(const lode__vocab *vocab, strbuf *out);
void lode__vocab_release(lode__vocab *vocab);

#endif
