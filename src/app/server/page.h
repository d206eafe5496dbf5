/* SPDX-License-Identifier: Apache-2.0 */
/* page.h - the web page that `lode serve` sends at / and /ui: HTML, style and script of web/ in one text, which
 * tools/page.sh converts to a byte array at build time.
 *
 * Its Content-Security-Policy allows only the script and the style that it contains, by their digests, and requests to
 * its own server. The page contains no data and needs no token; its requests do.
 */
#ifndef LODE_SERVER_PAGE_H
#define LODE_SERVER_PAGE_H

#include "base/base.h"

extern const unsigned char server_page_bytes[]; /* generated */
extern const size_t server_page_size;

typedef struct server_page_headers {
  char etag[40];    /* with quotes */
  char policy[600]; /* Content-Security-Policy */
} server_page_headers;

/* For any page with one <style> and one <script> element, both without attributes. */
void server_page_headers_of(lode_str html, server_page_headers *head);
/* For the built-in page; computed once. */
const server_page_headers *server_page_headers_get(void);

#endif
