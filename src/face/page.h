/* page.h - the web page that `lode serve` answers at / and /ui: HTML, style and script of web/ in one text, put together and made
 * an array of bytes by tools/page.sh when Lode is built.
 *
 * Its Content-Security-Policy allows nothing but the one script and the one style that are in it, by their digests, and
 * requests to the server that it came from. The page holds no data and needs no token; what it asks for does.
 */
#ifndef LODE_FACE_PAGE_H
#define LODE_FACE_PAGE_H

#include "base/base.h"

extern const unsigned char lode__page_bytes[]; /* the generated file's */
extern const size_t lode__page_size;

typedef struct lode__page_head {
  char etag[40];    /* with its quotes */
  char policy[600]; /* Content-Security-Policy */
} lode__page_head;

/* Of any page: with one <style> and one <script> element, both without attributes. */
void lode__page_head_of(lode_str html, lode__page_head *head);
/* Of the page; made once. */
const lode__page_head *lode__page_head_get(void);

#endif
