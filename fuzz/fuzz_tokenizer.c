/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tokenizer.c - any bytes as a tokenizer.json: a status, or a tokenizer that works and survives its own pack. */
#include <stdlib.h>

#include "embed/vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth) {
  if (!truth) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  embed_vocab vocab, back;
  embed_wordpiece wp;
  strbuf packed = {0};
  uint32_t ids[16];
  if (embed_vocab_from_pack(&back, (lode_str){(const char *)data, size}, NULL) == LODE_OK) embed_vocab_release(&back);
  if (embed_vocab_from_json(&vocab, (lode_str){(const char *)data, size}, NULL) != LODE_OK) return 0;
  if (embed_wordpiece_init(&wp, &vocab.settings, vocab.tokens, vocab.count, vocab.specials, vocab.n_specials, NULL) ==
      LODE_OK) {
    size_t n = embed_wordpiece_encode(&wp, (lode_str){(const char *)data, size}, ids, 16);
    for (size_t i = 0; i < n; i++) require(ids[i] < vocab.count);
    embed_vocab_put(&vocab, &packed);
    require(!packed.failed && embed_vocab_from_pack(&back, (lode_str){packed.data, packed.len}, NULL) == LODE_OK);
    require(back.count == vocab.count);
    for (size_t i = 0; i < back.count; i++) require(str_eq(back.tokens[i], vocab.tokens[i]));
    embed_vocab_release(&back);
    strbuf_release(&packed);
    embed_wordpiece_release(&wp);
  }
  embed_vocab_release(&vocab);
  return 0;
}
