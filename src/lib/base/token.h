/* SPDX-License-Identifier: Apache-2.0 */
/* token.h - splits text and code into words, for the text index and everything that must split names the same way.
 *
 * A name is a run of letters, digits and _, joined by single . / \ - : or by :: that have a letter, digit or _ on both
 * sides ("src/lib/vfs/vfs.c" is one name; the period that ends a sentence, "->" and "a..b" join nothing). It is emitted
 * on three levels:
 *   the whole         std::vector.push_back
 *   its components    std  vector  push_back        split at joiners
 *   its parts         std  vector  push  back       split at _, where upper case follows lower, before the last upper
 *                                                   case of a run that lower case follows, between letter and digit
 *                                                   ("HTTPServer2" is http, server, 2)
 * Parts have consecutive positions, so that a phrase of parts is found however its words were joined. A component has
 * the position of its first part, the whole that of the name's first part, in the order whole, component, part;
 * identical text at one position is emitted once. Wholes and components of more than TOKEN_MAX_BYTES are omitted; a
 * longer part is truncated at a character. A name without a letter or digit emits nothing.
 *
 * Folding is by character: Unicode's compatibility decomposition and case folding, without accents, points (combining
 * class 10 and up: a voicing or vowel mark makes a different letter, and stays) and enclosing marks. Thus text in NFC,
 * NFD, NFKC or NFKD yields the same words. Scripts without spaces (CJK, kana, Thai, Lao, Burmese, Khmer) yield words of
 * one character with its marks. Any bytes are allowed: invalid UTF-8 separates words. No memory is allocated; the time
 * is linear.
 */
#ifndef LODE_BASE_TOKEN_H
#define LODE_BASE_TOKEN_H

#include "base/base.h"

#define TOKEN_MAX_BYTES 128 /* of a token */

typedef struct token_item {
  const char *text;  /* folded; valid only during the call */
  size_t len;        /* never 0 */
  size_t start, end; /* bytes of the source */
  bool same_place;   /* shares the position of the previous token */
  bool part;         /* of the finest level: has no parts of its own */
} token_item;

/* Return nonzero to stop; that value is returned. */
typedef int token_fn(void *ctx, const token_item *token);
int token_split(const char *text, size_t len, token_fn *fn, void *ctx);
/* For queries: the same without the single letters and digits of longer words. The 4 of tcp_v4_rcv occurs in every
 * other document, and adds nothing to the word itself and its longer parts. */
int token_split_query(const char *text, size_t len, token_fn *fn, void *ctx);

#endif
