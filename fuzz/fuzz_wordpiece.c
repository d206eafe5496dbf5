/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_wordpiece.c - any bytes as text for BERT's tokenizer: ids are of the vocabulary, their number within bounds, and
 * a shorter limit gives a prefix of a longer one. */
#include <stdlib.h>

#include "embed/wordpiece.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth) {
  if (!truth) abort();
}

static const lode_str vocabulary[] = {
    STR_LIT("[PAD]"),        STR_LIT("[UNK]"),      STR_LIT("[CLS]"), STR_LIT("[SEP]"), STR_LIT("a"), STR_LIT("b"),
    STR_LIT("##a"),          STR_LIT("##b"),        STR_LIT("ab"),    STR_LIT("##aba"), STR_LIT("."), STR_LIT("#"),
    STR_LIT("\xE4\xB8\xAD"), STR_LIT("##\xCC\x84"), STR_LIT("e"),     STR_LIT("1")};
enum { COUNT = sizeof vocabulary / sizeof *vocabulary, MOST = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static embed_wordpiece wp;
  static const uint32_t specials[] = {0, 1, 2, 3};
  lode_str text = {(const char *)data, size};
  uint32_t ids[MOST], fewer[MOST];
  if (!wp.count) {
    embed_wordpiece_settings s = {true, true, true, true, 1, 2, 3, 100};
    require(embed_wordpiece_init(&wp, &s, vocabulary, COUNT, specials, 4, NULL) == LODE_OK);
  }
  size_t n = embed_wordpiece_encode(&wp, text, ids, MOST);
  require(n >= 2 && n <= MOST && ids[0] == 2 && ids[n - 1] == 3);
  for (size_t i = 0; i < n; i++) require(ids[i] < COUNT);
  size_t limit = 2 + (size ? data[0] % (MOST - 2) : 0), m = embed_wordpiece_encode(&wp, text, fewer, limit);
  require(m == (n < limit ? n : limit) && memcmp(ids, fewer, (m - 1) * sizeof *ids) == 0 && fewer[m - 1] == 3);
  return 0;
}
