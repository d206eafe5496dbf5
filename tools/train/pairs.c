/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_pairs.c - see pairs.h. */
#include "pairs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void unescape(text *t) {
  size_t to = 0;
  for (size_t i = 0; i < t->len; i++) {
    char c = t->data[i];
    if (c == '\\' && i + 1 < t->len) {
      c = t->data[++i];
      if (c == 'n')
        c = '\n';
      else if (c == 't')
        c = '\t';
    }
    t->data[to++] = c;
  }
  t->data[to] = 0;
  t->len = to;
}

bool pair_next(pair_reader *r, pair *p) {
  ssize_t n;
  while ((n = getline(&r->line, &r->cap, r->in)) > 0) {
    if (r->line[n - 1] == '\n') r->line[--n] = 0;
    text *fields[] = {&p->lang, &p->package, &p->path, &p->kind, &p->name, &p->doc, &p->code};
    char *at = r->line;
    size_t i = 0;
    for (; i < 7 && at; i++) {
      char *tab = strchr(at, '\t');
      *fields[i] = (text){at, tab ? (size_t)(tab - at) : strlen(at)};
      at = tab ? tab + 1 : NULL;
    }
    if (i < 7 || at) continue;
    for (i = 0; i < 7; i++) unescape(fields[i]);
    return true;
  }
  return false;
}

void pair_release(pair_reader *r) {
  free(r->line);
  *r = (pair_reader){0};
}

uint64_t hash_text(const char *data, size_t len) {
  uint64_t h = 0xCBF29CE484222325u;
  for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)data[i]) * 0x100000001B3u;
  return h ^ h >> 29;
}

uint64_t hash_words(const char *data, size_t len) {
  uint64_t h = 0xCBF29CE484222325u;
  for (size_t i = 0; i < len; i++) {
    if (isalnum((unsigned char)data[i])) h = (h ^ (unsigned char)tolower((unsigned char)data[i])) * 0x100000001B3u;
  }
  return h ^ h >> 29;
}

bool is_held_out(text package) { return hash_text(package.data, package.len) % 50 == 7; }

bool is_left_out(text package) {
  static const char *const names[] = {
      "go-chi-chi",   "python3-aiohttp",
      "librust-axum", "node-express",
      "fmtlib",       "libgoogle-gson-java",
      "google-gson",  "libuv1",
      "ruby-sinatra", "zod",
      "express",      "messagepack-csharp",
      "exposed",      "cats",
  };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    size_t n = strlen(names[i]);
    const char *at = strstr(package.data, names[i]);
    if (!at) continue;
    bool starts = at == package.data || at[-1] == '-', ends = at[n] == 0 || at[n] == '-';
    if (starts && ends && (n > 5 || package.len == n)) return true;
  }
  return false;
}

size_t first_sentence(text doc) {
  for (size_t i = 0; i < doc.len; i++) {
    bool stop = doc.data[i] == '.' || doc.data[i] == ';' || doc.data[i] == ':';
    if (stop && i > 12 && (i + 1 == doc.len || doc.data[i + 1] == ' ')) return i;
  }
  return doc.len;
}
