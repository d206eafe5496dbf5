/* SPDX-License-Identifier: Apache-2.0 */
/* docs.c - see docs.h. */
#include "docs/docs.h"

static bool docs_same_letters(const char *a, lode_str b) {
  if (strlen(a) != b.len) return false;
  for (size_t i = 0; i < b.len; i++) {
    char x = a[i], y = b.data[i];
    if (x >= 'A' && x <= 'Z') x = (char)(x - 'A' + 'a');
    if (y >= 'A' && y <= 'Z') y = (char)(y - 'A' + 'a');
    if (x != y) return false;
  }
  return true;
}

const docs_page *docs_find(lode_str name) {
  if (name.len > 5 && docs_same_letters("docs/", (lode_str){name.data, 5}))
    name = (lode_str){name.data + 5, name.len - 5};
  if (name.len > 3 && docs_same_letters(".md", (lode_str){name.data + name.len - 3, 3})) name.len -= 3;
  for (const docs_page *page = docs_pages; page->name; page++)
    if (docs_same_letters(page->name, name)) return page;
  return NULL;
}
