/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - see wire.h. */
#include "worker/wire.h"

bool wire_frame_valid(const proc_frame *frame) {
  return frame->type >= WIRE_CALL && frame->type <= WIRE_DONE && frame->words <= WIRE_MAX_WORDS;
}

bool wire_split_words(const proc_frame *frame, const char *payload, lode_str *words, lode_str *body) {
  const char *p = payload, *end = payload + frame->bytes;
  for (size_t i = 0; i < frame->words; i++) {
    const char *nul = memchr(p, '\0', (size_t)(end - p));
    if (!nul) return false;
    words[i] = (lode_str){p, (size_t)(nul - p)};
    p = nul + 1;
  }
  *body = (lode_str){p, (size_t)(end - p)};
  return true;
}
