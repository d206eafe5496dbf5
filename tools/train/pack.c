/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - pairs to numbers of words, without repetitions; held-out pairs to a file of their own.
 *
 *   pack VOCAB.tsv OUT.pack HELD-OUT.tsv <pairs.tsv
 *
 * Of equal code one pair is kept, of equal descriptions two ("Returns the name" says little). A description that begins
 * with the name of what it describes (Go's way) loses it: nobody asks so.
 */
#include "lexicon.h"
#include "pack.h"
#include "pairs.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

/* ---- How often a hash was seen ---- */

typedef struct seen {
  uint64_t *slots; /* hash; its low 2 bits are the count - 1 */
  size_t n, n_slots;
} seen;

static unsigned seen_add(seen *s, uint64_t h) {
  h |= 4;
  if (s->n * 2 >= s->n_slots) {
    seen bigger = {.n_slots = s->n_slots ? s->n_slots * 2 : 1 << 20, .n = s->n};
    bigger.slots = must_alloc(bigger.n_slots, sizeof *bigger.slots);
    for (size_t i = 0; i < s->n_slots; i++) {
      if (!s->slots[i]) continue;
      size_t to = (size_t)(s->slots[i] >> 2) & (bigger.n_slots - 1);
      while (bigger.slots[to]) to = (to + 1) & (bigger.n_slots - 1);
      bigger.slots[to] = s->slots[i];
    }
    mem_free(s->slots);
    *s = bigger;
  }
  size_t at = (size_t)(h >> 2) & (s->n_slots - 1);
  for (; s->slots[at]; at = (at + 1) & (s->n_slots - 1)) {
    if (s->slots[at] >> 2 != h >> 2) continue;
    unsigned count = (unsigned)(s->slots[at] & 3);
    if (count < 3) s->slots[at]++;
    return count + 1;
  }
  s->slots[at] = h & ~(uint64_t)3;
  s->n++;
  return 0;
}

/* ---- Pairs ---- */

static uint8_t kind_of(text kind) {
  static const char *const names[] = {"func", "type", "decl", "inline", "module", "section"};
  for (uint8_t i = 0; i < 6; i++) {
    if (strcmp(kind.data, names[i]) == 0) return i;
  }
  return KIND_DECL;
}

static void drop_name(const pair *p, text *doc) {
  if (p->name.len == 0 || doc->len <= p->name.len || strncasecmp(doc->data, p->name.data, p->name.len) != 0) return;
  size_t skip = p->name.len;
  if (isalnum((unsigned char)doc->data[skip])) return;
  while (skip < doc->len && !isalnum((unsigned char)doc->data[skip])) skip++;
  doc->data += skip;
  doc->len -= skip;
}

static void put(FILE *out, const void *data, size_t size, size_t n) {
  if (fwrite(data, size, n, out) == n) return;
  perror("pack");
  exit(1);
}

static void put_line(FILE *out, const pair *p) {
  const text *fields[] = {&p->lang, &p->package, &p->path, &p->kind, &p->name, &p->doc, &p->code};
  for (size_t i = 0; i < 7; i++) {
    if (i) putc('\t', out);
    for (size_t j = 0; j < fields[i]->len; j++) {
      char c = fields[i]->data[j];
      if (c == '\n')
        fputs("\\n", out);
      else if (c == '\t')
        fputs("\\t", out);
      else if (c == '\\')
        fputs("\\\\", out);
      else
        putc(c, out);
    }
  }
  putc('\n', out);
}

static bool put_record(FILE *out, const lexicon *lex, const pair *p) {
  static uint16_t rows[SENTENCE_ROWS + REST_ROWS + PATH_ROWS + NAME_ROWS + CODE_ROWS];
  static const size_t room[SEGMENTS] = {SENTENCE_ROWS, REST_ROWS, PATH_ROWS, NAME_ROWS, CODE_ROWS};
  text doc = p->doc;
  drop_name(p, &doc);
  size_t sentence = first_sentence(doc);
  const text segments[SEGMENTS] = {
      {doc.data, sentence}, {doc.data + sentence, doc.len - sentence}, p->path, p->name, p->code};
  uint64_t file = hash_text(p->package.data, p->package.len) * 31 + hash_text(p->path.data, p->path.len);
  pack_record r = {.file = (uint32_t)(file ^ file >> 32),
                   .doc = (uint32_t)hash_words(doc.data, doc.len),
                   .kind = kind_of(p->kind),
                   .lang = (uint8_t)hash_text(p->lang.data, p->lang.len)};
  size_t n = 0;
  for (int i = 0; i < SEGMENTS; i++) {
    r.rows[i] = (uint16_t)lexicon_rows(lex, segments[i].data, segments[i].len, rows + n, room[i]);
    n += r.rows[i];
  }
  if (r.rows[SENTENCE] < 2 || r.rows[CODE] < 4) return false;
  put(out, &r, sizeof r, 1);
  put(out, rows, sizeof *rows, n);
  return true;
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: pack VOCAB.tsv OUT.pack HELD-OUT.tsv <pairs.tsv\n");
    return 2;
  }
  lexicon lex;
  lexicon_load(&lex, argv[1]);
  FILE *out = fopen(argv[2], "wb"), *held = fopen(argv[3], "w");
  if (!out || !held) {
    perror("pack");
    return 1;
  }
  put(out, PACK_MAGIC, 1, 8);
  seen codes = {.n = 0}, docs = {.n = 0};
  pair_reader reader = {.in = stdin};
  pair p;
  size_t read = 0, written = 0, kept = 0;
  while (pair_next(&reader, &p)) {
    read++;
    if (is_left_out(p.package)) continue;
    if (seen_add(&codes, hash_words(p.code.data, p.code.len)) ||
        seen_add(&docs, hash_words(p.doc.data, p.doc.len)) >= 2)
      continue;
    if (is_held_out(p.package)) {
      put_line(held, &p);
      kept++;
    } else if (put_record(out, &lex, &p)) {
      written++;
    }
  }
  pair_release(&reader);
  fprintf(stderr, "pack: %zu pairs read, %zu packed, %zu held out\n", read, written, kept);
  mem_free(codes.slots);
  mem_free(docs.slots);
  lexicon_release(&lex);
  return fclose(out) || fclose(held) ? 1 : 0;
}
