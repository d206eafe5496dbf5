/* SPDX-License-Identifier: Apache-2.0 */
/* lexicon.h - vocab.tsv in memory, as the words of src/lib/embed/embed_words.h. */
#ifndef TRAIN_LEXICON_H
#define TRAIN_LEXICON_H

#include "embed/embed_words.h"

typedef struct lexicon {
  embed_words words;
  uint32_t *pairs;  /* how many pairs have the word */
  uint32_t n_pairs; /* an estimate of all: that of the commonest word */
  void *memory[6];  /* what `words` points into */
} lexicon;

/* Exits with a message when the file is not what vocab.c writes. */
void lexicon_load(lexicon *lex, const char *path);
void lexicon_release(lexicon *lex);

/* Rows of a text, at most `max`; returns how many. */
size_t lexicon_rows(const lexicon *lex, const char *text, size_t len, uint16_t *rows, size_t max);

/* What a word's row weighs before training: frequent words less. */
float word_weight(const lexicon *lex, uint32_t row);

/* malloc() or exit. */
void *must_alloc(size_t count, size_t size);

#endif
