/* SPDX-License-Identifier: Apache-2.0 */
/* vocab.c - the words of a model, counted in pairs.
 *
 *   vocab SIZE <pairs.tsv >vocab.tsv
 *
 * Words, components and whole names as token.h gives them, ranked by how many packages have them (a package that says
 * a word a thousand times counts once), then by how many pairs. One line each: word, packages, pairs, and how
 * often it stood alone (not as part of a longer name's list).
 */
#include "base/token.h"
#include "pairs.h"

#include <stdlib.h>

enum { WORD_MAX = 40, MIN_PACKAGES = 4 };

typedef struct entry {
  uint32_t text, len; /* in the pool */
  uint32_t packages, pairs, parts;
  uint32_t last_package, last_pair;
} entry;

typedef struct counter {
  entry *entries;
  uint32_t n, cap;
  uint32_t *slots; /* entry + 1 */
  uint32_t n_slots;
  char *pool;
  size_t pool_len, pool_cap;
  uint32_t package, pair;
} counter;

static void *need(void *p) {
  if (p) return p;
  fprintf(stderr, "vocab: out of memory\n");
  exit(1);
}

static void rehash(counter *c) {
  c->n_slots = c->n_slots ? c->n_slots * 2 : 1 << 20;
  mem_free(c->slots);
  c->slots = need(mem_calloc(c->n_slots, sizeof *c->slots));
  for (uint32_t i = 0; i < c->n; i++) {
    uint32_t at = (uint32_t)hash_text(c->pool + c->entries[i].text, c->entries[i].len) & (c->n_slots - 1);
    while (c->slots[at]) at = (at + 1) & (c->n_slots - 1);
    c->slots[at] = i + 1;
  }
}

static entry *entry_of(counter *c, const char *word, size_t len) {
  if (c->n * 2 >= c->n_slots) rehash(c);
  uint32_t at = (uint32_t)hash_text(word, len) & (c->n_slots - 1);
  for (; c->slots[at]; at = (at + 1) & (c->n_slots - 1)) {
    entry *e = &c->entries[c->slots[at] - 1];
    if (e->len == len && memcmp(c->pool + e->text, word, len) == 0) return e;
  }
  size_t cap = c->cap;
  if (!mem_grow(&c->entries, &cap, (size_t)c->n + 1, sizeof *c->entries)) need(NULL);
  c->cap = (uint32_t)cap;
  if (!mem_grow(&c->pool, &c->pool_cap, c->pool_len + len, 1)) need(NULL);
  memcpy(c->pool + c->pool_len, word, len);
  c->entries[c->n] =
      (entry){.text = (uint32_t)c->pool_len, .len = (uint32_t)len, .last_package = UINT32_MAX, .last_pair = UINT32_MAX};
  c->pool_len += len;
  c->slots[at] = ++c->n;
  return &c->entries[c->n - 1];
}

/* "stack.append" is rarely more than its components. */
static bool is_joined(const token_item *t) {
  for (size_t i = 0; i < t->len; i++) {
    if (strchr("./\\-:", t->text[i])) return true;
  }
  return false;
}

/* Numbers say something up to three digits ("404", "32"), single ones hardly. */
static bool is_number(const token_item *t) {
  size_t digits = 0;
  for (size_t i = 0; i < t->len; i++) digits += t->text[i] >= '0' && t->text[i] <= '9';
  return digits == t->len ? t->len == 1 || t->len > 3 : digits * 2 > t->len;
}

static int count(void *ctx, const token_item *t) {
  counter *c = ctx;
  if (t->len > WORD_MAX || is_number(t) || (!t->part && is_joined(t))) return 0;
  entry *e = entry_of(c, t->text, t->len);
  if (e->last_package != c->package) e->packages++, e->last_package = c->package;
  if (e->last_pair != c->pair) e->pairs++, e->last_pair = c->pair;
  if (t->part) e->parts++;
  return 0;
}

/* What is mostly a longer name has its parts' rows too: it needs twice the packages. */
static uint64_t rank_of(const entry *e) {
  uint32_t packages = e->parts * 2 < e->pairs ? e->packages / 2 : e->packages;
  return (uint64_t)packages << 32 | e->pairs;
}

static int by_rank(const void *a, const void *b) {
  const entry *x = a, *y = b;
  uint64_t p = rank_of(x), q = rank_of(y);
  if (p != q) return p < q ? 1 : -1;
  return x->text < y->text ? -1 : 1;
}

int main(int argc, char **argv) {
  uint32_t size = argc == 2 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
  if (size < 1000 || size > 65535) {
    fprintf(stderr, "usage: vocab SIZE <pairs.tsv >vocab.tsv (SIZE from 1000 to 65535)\n");
    return 2;
  }
  counter c = {.package = 0};
  pair_reader reader = {.in = stdin};
  pair p;
  uint64_t package = 0;
  while (pair_next(&reader, &p)) {
    if (is_held_out(p.package) || is_left_out(p.package)) continue;
    uint64_t h = hash_text(p.package.data, p.package.len);
    if (h != package) c.package++, package = h;
    c.pair++;
    const text *texts[] = {&p.doc, &p.code, &p.path};
    for (size_t i = 0; i < 3; i++) (void)token_split(texts[i]->data, texts[i]->len, count, &c);
  }
  pair_release(&reader);
  qsort(c.entries, c.n, sizeof *c.entries, by_rank);
  for (uint32_t i = 0; i < c.n && i < size && c.entries[i].packages >= MIN_PACKAGES; i++) {
    const entry *e = &c.entries[i];
    printf("%.*s\t%u\t%u\t%u\n", (int)e->len, c.pool + e->text, e->packages, e->pairs, e->parts);
  }
  fprintf(stderr, "vocab: %u pairs, %u packages, %u different words\n", c.pair, c.package, c.n);
  return 0;
}
