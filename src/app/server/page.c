/* SPDX-License-Identifier: Apache-2.0 */
/* page.c - digests of the web page. See page.h. */
#include "server/page.h"

#include "base/sha256.h"

#include <pthread.h>
#include <stdio.h>

enum { PAGE_DIGEST_BYTES = 45 }; /* 32 bytes in base64, and a NUL */

static void page_digest_text(lode_str part, char out[PAGE_DIGEST_BYTES]) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  uint8_t d[SHA256_BYTES + 1] = {0};
  size_t n = 0;
  sha256_of(part.data, part.len, d);
  for (size_t i = 0; i < SHA256_BYTES; i += 3) {
    uint32_t three = (uint32_t)d[i] << 16 | (uint32_t)d[i + 1] << 8 | (i + 2 < SHA256_BYTES ? d[i + 2] : 0u);
    for (int shift = 18; shift >= 0; shift -= 6) out[n++] = letters[three >> shift & 63];
  }
  out[n - 1] = '='; /* 32 bytes are one short of a multiple of three */
  out[n] = '\0';
}

/* The text between the first `open` and the next `close`; empty if they are missing. */
static lode_str page_between(lode_str html, const char *open, const char *close) {
  const char *from = memmem(html.data, html.len, open, strlen(open)), *end = html.data + html.len;
  if (!from) return (lode_str){html.data, 0};
  from += strlen(open);
  const char *to = memmem(from, (size_t)(end - from), close, strlen(close));
  return (lode_str){from, to ? (size_t)(to - from) : 0};
}

void server_page_headers_of(lode_str html, server_page_headers *head) {
  char whole[PAGE_DIGEST_BYTES], script[PAGE_DIGEST_BYTES], style[PAGE_DIGEST_BYTES];
  page_digest_text(html, whole);
  page_digest_text(page_between(html, "<script>", "</script>"), script);
  page_digest_text(page_between(html, "<style>", "</style>"), style);
  snprintf(head->etag, sizeof head->etag, "\"%.32s\"", whole);
  snprintf(head->policy, sizeof head->policy,
           "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; connect-src 'self'; img-src data:; "
           "base-uri 'none'; "
           "form-action 'none'; frame-ancestors 'none'",
           script, style);
}

static server_page_headers page_headers;
static void page_make_headers(void) {
  server_page_headers_of((lode_str){(const char *)server_page_bytes, server_page_size}, &page_headers);
}

const server_page_headers *server_page_headers_get(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, page_make_headers);
  return &page_headers;
}
