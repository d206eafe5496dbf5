/* token.h - words of text and code, for the text index and for everything that must split names the same way.
 *
 * A name is a run of letters, digits and _, joined by single . / \ - : or by :: where a letter, digit or _ stands on
 * both sides ("src/lib/vfs/vfs.c" is one name; the dot that ends a sentence, "->" and "a..b" join nothing). It is
 * given on three levels:
 *   the whole         std::vector.push_back
 *   its components    std  vector  push_back        split at joiners
 *   its parts         std  vector  push  back       split at _, where upper case follows lower, before the last upper
 *                                                   case of a run that lower case follows, between letter and digit
 *                                                   ("HTTPServer2" is http, server, 2)
 * Parts stand at successive positions, so that a phrase of parts is found however its words were joined. A component
 * stands at its first part's position, the whole at the name's first part's, in the order whole, component, part;
 * what would be the same text twice at one position is given once. Wholes and components of more than
 * TOKEN_MAX_BYTES are left out; a longer part is cut at a character. A name without a letter or digit gives nothing.
 *
 * Folding is by character: Unicode's compatibility decomposition and case folding, without accents, points (combining
 * class 10 and up: a voicing or vowel mark makes another letter, and stays) and enclosing marks. Thus text in NFC, NFD,
 * NFKC or NFKD gives the same words. Scripts without spaces (CJK, kana, Thai, Lao, Burmese, Khmer) give words of one
 * character with its marks. Any bytes are allowed: invalid UTF-8 separates words. No memory is allocated; the time is
 * linear.
 */
#ifndef LODE_BASE_TOKEN_H
#define LODE_BASE_TOKEN_H

#include "base/base.h"

#define TOKEN_MAX_BYTES 128 /* no token is longer */

typedef struct token_item {
  const char *text;   /* folded; valid only during the call */
  size_t len;         /* never 0 */
  size_t start, end;  /* bytes of the source */
  bool same_place;    /* shares the position of the token before it */
  bool part;          /* of the finest level: has no parts of its own */
} token_item;

/* Return non-zero to stop; that value is returned. */
typedef int token_fn(void *ctx, const token_item *token);
int token_split(const char *text, size_t len, token_fn *fn, void *ctx);
/* What a query asks for: the same without the single letters and digits of longer words. The 4 of tcp_v4_rcv is in every other document, and
 * tells nothing that the word itself and its longer parts do not. */
int token_split_query(const char *text, size_t len, token_fn *fn, void *ctx);

#endif
