/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_chunk.c - any text as a document or as lines: chunks are a partition; any bytes as a list from a worker: refused
 * or a partition. The first byte says which, and how long chunks may be. */
#include "chunk/chunk.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth) {
  if (!truth) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const languages[] = {"text", "markdown", "rst"};
  chunk_list list = {0}, copy = {0};
  strbuf bytes = {0};
  lode_error err;
  if (size == 0) return 0;
  unsigned how = data[0] % 4;
  lode_str text = {(const char *)data + 1, size - 1};
  if (how < 3) {
    chunk_options o = {.max_bytes = 256 + data[0]};
    require(chunk_plain(lang_find(str_of(languages[how])), text, &o, &list, &err) == LODE_OK);
    require(chunk_list_problem(&list, text.len) == NULL);
    chunk_list_encode(&list, &bytes);
    require(chunk_list_decode((lode_str){bytes.data, bytes.len}, text.len, &copy, &err) == LODE_OK && copy.n == list.n);
    (void)lang_detect(text, text);
  } else {
    size_t claimed = size > 3 ? (size_t)data[1] << 8 | data[2] : 0;
    if (chunk_list_decode(text, claimed, &list, &err) == LODE_OK) require(chunk_list_problem(&list, claimed) == NULL);
  }
  strbuf_release(&bytes);
  chunk_list_release(&list);
  chunk_list_release(&copy);
  return 0;
}
