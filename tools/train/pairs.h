/* SPDX-License-Identifier: Apache-2.0 */
/* pairs.h - the miner's lines, read back. */
#ifndef TRAIN_PAIRS_H
#define TRAIN_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct text {
  char *data; /* with a NUL after it */
  size_t len;
} text;

typedef struct pair {
  text lang, package, path, kind, name, doc, code;
} pair;

typedef struct pair_reader {
  FILE *in;
  char *line;
  size_t cap;
} pair_reader;

/* The next whole pair; lines that are none are stepped over. Valid until the next call. */
bool pair_next(pair_reader *reader, pair *p);
void pair_release(pair_reader *reader);

/* Whether a package is kept out of training, for evaluation: one in 50 by the hash of its name. */
bool is_held_out(text package);
/* Whether a package holds the code of a repository that docs/MODELS.md evaluates on: in neither set. */
bool is_left_out(text package);

uint64_t hash_text(const char *data, size_t len); /* stable: FNV-1a, 64 bits */
/* The same over letters and digits only, without case: equal for texts that differ in layout. */
uint64_t hash_words(const char *data, size_t len);
/* Bytes of the first sentence. */
size_t first_sentence(text doc);

#endif
