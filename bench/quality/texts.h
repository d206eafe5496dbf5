/* SPDX-License-Identifier: Apache-2.0 */
/* texts.h - what is searched: the chunks of a tree of files, the functions of CoSQA, pairs of held-out packages. */
#ifndef QUALITY_TEXTS_H
#define QUALITY_TEXTS_H

#include "tasks.h"

typedef struct texts {
  lode_str *all;
  place *places; /* trees only */
  size_t n, cap, places_cap;
  mem_arena memory; /* what the strings point into */
} texts;

/* The chunks of all source files under folder/root: whole lines, about 1,200 bytes, ended at a blank line where there
 * is one. Their text begins with the path, if so wished. Paths are from `folder` on. */
void texts_of_tree(texts *t, const char *folder, lode_str root, bool with_path);
void texts_add(texts *t, lode_str text);
void texts_release(texts *t);

#endif
