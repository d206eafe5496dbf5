/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_token.c - any bytes as text: tokens are within their bounds, and a space separates: the tokens of "a b" are
 * those of "a" and then those of "b". */
#include "base/token.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth) {
  if (!truth) abort();
}

typedef struct digest {
  size_t len, place, tokens;
  uint64_t sum;
} digest;

static int note(void *ctx, const token_item *t) {
  digest *d = ctx;
  require(t->len > 0 && t->len <= TOKEN_MAX_BYTES && utf8_valid(t->text, t->len));
  require(t->start < t->end && t->end <= d->len);
  require(d->tokens == 0 ? !t->same_place : t->start >= d->place);
  if (!t->same_place) d->place = t->start;
  d->tokens++;
  d->sum = (d->sum ^ hash_bytes(t->text, t->len)) * 1099511628211u + t->same_place;
  return 0;
}

static void tokenize(const char *text, size_t len, digest *d) {
  d->len = len;
  d->place = 0;
  d->tokens = 0; /* a text begins with a new place */
  require(token_split(text, len, note, d) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data;
  const char *space = size ? memchr(text, ' ', size) : NULL;
  digest whole = {0}, parts = {0};
  tokenize(size ? text : "", size, &whole);
  if (!space) return 0;
  size_t before = (size_t)(space - text);
  tokenize(text, before, &parts);
  tokenize(space + 1, size - before - 1, &parts);
  require(whole.sum == parts.sum);
  return 0;
}
