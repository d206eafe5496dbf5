/* page.h - the web page that `lode serve` answers at / and /ui: HTML, style and script of web/ in one text, put together and made
 * an array of bytes by tools/page.sh when Lode is built.
 *
 * Its Content-Security-Policy allows nothing but the one script and the one style that are in it, by their digests, and
 * requests to the server that it came from. The page holds no data and needs no token; what it asks for does.
 */
#ifndef LODE_SERVER_PAGE_H
#define LODE_SERVER_PAGE_H

#include "base/base.h"

extern const unsigned char server_page_bytes[]; /* the generated file's */
extern const size_t server_page_size;

typedef struct server_page_headers {
  char etag[40];    /* with its quotes */
  char policy[600]; /* Content-Security-Policy */
} server_page_headers;

/* Of any page: with one <style> and one <script> element, both without attributes. */
void server_page_headers_of(lode_str html, server_page_headers *head);
/* Of the page; made once. */
const server_page_headers *server_page_headers_get(void);

#endif
