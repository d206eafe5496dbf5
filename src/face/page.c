/* page.c - digests of the web page. See page.h. */
#include "page.h"

#include "base/sha256.h"

#include <pthread.h>
#include <stdio.h>

enum { DIGEST_TEXT = 45 }; /* 32 bytes in base64, and a NUL */

static void digest_text(lode_str part, char out[DIGEST_TEXT]) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  uint8_t d[SHA256_BYTES + 1] = {0};
  size_t n = 0;
  sha256_of(part.data, part.len, d);
  for (size_t i = 0; i < SHA256_BYTES; i += 3) {
    uint32_t three = (uint32_t)d[i] << 16 | (uint32_t)d[i + 1] << 8 | (i + 2 < SHA256_BYTES ? d[i + 2] : 0u);
    for (int shift = 18; shift >= 0; shift -= 6) out[n++] = letters[three >> shift & 63];
  }
  out[n - 1] = '='; /* 32 bytes are two short of a multiple of three by one */
  out[n] = '\0';
}

/* What is between the first `open` and the first `close` behind it; empty when they are not there. */
static lode_str inside(lode_str html, const char *open, const char *close) {
  const char *from = memmem(html.data, html.len, open, strlen(open)), *end = html.data + html.len;
  if (!from) return (lode_str){html.data, 0};
  from += strlen(open);
  const char *to = memmem(from, (size_t)(end - from), close, strlen(close));
  return (lode_str){from, to ? (size_t)(to - from) : 0};
}

void lode__page_head_of(lode_str html, lode__page_head *head) {
  char whole[DIGEST_TEXT], script[DIGEST_TEXT], style[DIGEST_TEXT];
  digest_text(html, whole);
  digest_text(inside(html, "<script>", "</script>"), script);
  digest_text(inside(html, "<style>", "</style>"), style);
  snprintf(head->etag, sizeof head->etag, "\"%.32s\"", whole);
  snprintf(head->policy, sizeof head->policy,
           "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; connect-src 'self'; img-src data:; base-uri 'none'; "
           "form-action 'none'; frame-ancestors 'none'",
           script, style);
}

static lode__page_head the_head;
static void make_head(void) { lode__page_head_of((lode_str){(const char *)lode__page_bytes, lode__page_size}, &the_head); }

const lode__page_head *lode__page_head_get(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_head);
  return &the_head;
}
