/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.h - "did you mean?": the nearest of some words by edit distance (insert, delete, change, swap). */
#ifndef LODE_OPS_SUGGEST_H
#define LODE_OPS_SUGGEST_H

#include "base/base.h"

typedef struct op_suggest {
  lode_str word;
  size_t best;
  bool found;
  char text[64];
} op_suggest;

void op_suggest_init(op_suggest *s, lode_str word);
void op_suggest_try(op_suggest *s, lode_str candidate);

#endif
