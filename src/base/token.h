/* token.h - words of text and code, for the text index and for everything that must split names the same way.
 *
 * A name (letters, digits, _ and the joiners . / \ - : between them) gives the whole, case-folded, and its parts:
 * split at joiners, at _, at lower-to-upper and letter-digit borders ("HTTPServer2" is http, server, 2). Whole
 * and parts have the same place: parts follow at successive positions, the whole sits at the first part's.
 * Folding is Unicode's (NFKC case folding, marks removed). Any bytes are allowed: invalid UTF-8 separates words.
 * CJK characters are words of one character each. Tokens longer than 128 bytes are cut at a character.
 */
#ifndef LODE_TOKEN_H
#define LODE_TOKEN_H

#include "base.h"

typedef struct lode__token {
  const char *text;   /* folded; valid only during the call */
  size_t len;
  size_t start, end;  /* bytes of the source */
  bool same_place;    /* shares the position of the token before it */
} lode__token;

/* Return non-zero to stop; that value is returned. */
typedef int lode__token_fn(void *ctx, const lode__token *token);
int lode__tokenize(const char *text, size_t len, lode__token_fn *fn, void *ctx);

#endif
