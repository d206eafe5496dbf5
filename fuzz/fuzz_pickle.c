/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_pickle.c - any bytes as index_metadata.pickle: strings lie inside of the input, a cut pickle hands out no more
 * than the whole one. */
#include "rescue/pickle.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct seen {
  const char *from, *to;
  size_t pairs;
} seen;

static bool pair(void *ctx, rescue_pickle_part part, lode_str id, int64_t number) {
  seen *s = ctx;
  (void)part;
  (void)number;
  if (id.data < s->from || id.data > s->to || id.len > (size_t)(s->to - id.data)) abort();
  s->pairs++;
  return true;
}

static void number(void *ctx, lode_str name, int64_t n) {
  const seen *s = ctx;
  (void)n;
  if (name.data < s->from || name.len > (size_t)(s->to - name.data)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = size ? (const char *)data : "";
  seen whole = {text, text + size, 0}, half = {text, text + size / 2, 0};
  rescue_pickle_sink a = {pair, number, &whole}, b = {pair, number, &half};
  lode_status st = rescue_pickle_read((lode_str){text, size}, &a, NULL);
  if (st != LODE_OK && st != LODE_CORRUPT && st != LODE_NOMEM) abort();
  if (rescue_pickle_read((lode_str){text, size / 2}, &b, NULL) == LODE_OK && half.pairs != whole.pairs)
    abort(); /* it ended there */
  if (half.pairs > whole.pairs) abort();
  return 0;
}
