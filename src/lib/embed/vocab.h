/* SPDX-License-Identifier: Apache-2.0 */
/* vocab.h - a WordPiece vocabulary and its settings from tokenizer.json or vocab.txt, and from the bytes of a pack.
 *
 * In a pack (little-endian): u32 count, flags (1 clean, 2 chinese, 4 strip, 8 lower), unknown, first, last,
 * max_word_chars, n_specials; n_specials x u32; count x u8 length; the texts.
 */
#ifndef LODE_EMBED_VOCAB_H
#define LODE_EMBED_VOCAB_H

#include "embed/wordpiece.h"

enum { EMBED_TOKENIZER_MAX_BYTES = 64u << 20 };

typedef struct embed_vocab {
  embed_wordpiece_settings settings;
  lode_str *tokens; /* by id; they point into the source bytes or the JSON */
  size_t count;
  uint32_t specials[EMBED_VOCAB_MAX_SPECIALS];
  size_t n_specials;
  void *owned; /* what the tokens point into, if not the source */
} embed_vocab;

/* `text` must outlive the vocabulary. LODE_CORRUPT: not a tokenizer; LODE_UNSUPPORTED: another kind of tokenizer. */
LODE_MUST lode_status embed_vocab_from_json(embed_vocab *vocab, lode_str text, lode_error *err);
LODE_MUST lode_status embed_vocab_from_lines(embed_vocab *vocab, lode_str text, bool lowercase, lode_error *err);
LODE_MUST lode_status embed_vocab_from_pack(embed_vocab *vocab, lode_str bytes, lode_error *err);
void embed_vocab_put(const embed_vocab *vocab, strbuf *out);
void embed_vocab_release(embed_vocab *vocab);

#endif
