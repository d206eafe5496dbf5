/* suggest.h - did you mean? The nearest of some words by edits (insert, delete, change, swap). */
#ifndef LODE_FACE_SUGGEST_H
#define LODE_FACE_SUGGEST_H

#include "base/base.h"

typedef struct lode__suggest {
  lode_str word;
  size_t best;
  bool found;
  char text[64];
} lode__suggest;

void lode__suggest_init(lode__suggest *s, lode_str word);
void lode__suggest_try(lode__suggest *s, lode_str candidate);

#endif
