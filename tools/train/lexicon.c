/* SPDX-License-Identifier: Apache-2.0 */
/* lexicon.c - see lexicon.h. */
#include "lexicon.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void *must_alloc(size_t count, size_t size) {
  void *p = mem_calloc(count ? count : 1, size);
  if (p) return p;
  fprintf(stderr, "out of memory\n");
  exit(1);
}

static bool is_piece(const char *word, size_t len) {
  if (len < 2 || len > EMBED_WORDS_MAX_PIECE) return false;
  for (size_t i = 0; i < len; i++) {
    if (word[i] < 'a' || word[i] > 'z') return false;
  }
  return true;
}

/* Eighths of a bit that the word costs, by its frequency. */
static uint8_t cost_of(const char *word, size_t len, uint32_t pairs, double total) {
  if (!is_piece(word, len)) return 255;
  double bits = log2(total / (pairs ? pairs : 1));
  double cost = 8 * bits + (len == 2 ? 24 : 0);
  return cost > 254 ? 254 : cost < 1 ? 1 : (uint8_t)cost;
}

void lexicon_load(lexicon *lex, const char *path) {
  FILE *in = fopen(path, "r");
  char *line = NULL;
  size_t cap = 0, bytes_cap = 0, n_bytes = 0, n = 0;
  char *bytes = NULL;
  *lex = (lexicon){.n_pairs = 0};
  if (!in) {
    perror(path);
    exit(1);
  }
  uint32_t *starts = must_alloc(EMBED_WORDS_MAX + 1, sizeof *starts);
  lex->pairs = must_alloc(EMBED_WORDS_MAX, sizeof *lex->pairs);
  while (n < EMBED_WORDS_MAX && getline(&line, &cap, in) > 0) {
    char *tab = strchr(line, '\t');
    unsigned packages, pairs;
    if (!tab || sscanf(tab, "\t%u\t%u", &packages, &pairs) != 2) {
      fprintf(stderr, "%s: line %zu is not a word\n", path, n + 1);
      exit(1);
    }
    size_t len = (size_t)(tab - line);
    if (!mem_grow(&bytes, &bytes_cap, n_bytes + len, 1)) exit(1);
    memcpy(bytes + n_bytes, line, len);
    n_bytes += len;
    lex->pairs[n++] = pairs;
    starts[n] = (uint32_t)n_bytes;
    if (pairs > lex->n_pairs) lex->n_pairs = pairs;
  }
  fclose(in);
  free(line);
  double total = 0;
  for (size_t i = 0; i < n; i++) total += lex->pairs[i];
  uint8_t *costs = must_alloc(n, 1);
  for (size_t i = 0; i < n; i++) costs[i] = cost_of(bytes + starts[i], starts[i + 1] - starts[i], lex->pairs[i], total);
  uint32_t n_slots = 1 << 17;
  uint16_t *slots = must_alloc(n_slots, sizeof *slots);
  lex->words = (embed_words){.count = (uint32_t)n,
                             .n_slots = n_slots,
                             .starts = starts,
                             .bytes = bytes,
                             .n_bytes = n_bytes,
                             .costs = costs,
                             .slots = slots};
  embed_words_fill(&lex->words, slots);
  lode_error err;
  if (embed_words_check(&lex->words, &err) != LODE_OK) {
    fprintf(stderr, "%s: %s\n", path, err.text);
    exit(1);
  }
  lex->memory[0] = starts;
  lex->memory[1] = bytes;
  lex->memory[2] = costs;
  lex->memory[3] = slots;
  lex->memory[4] = lex->pairs;
}

void lexicon_release(lexicon *lex) {
  for (size_t i = 0; i < sizeof lex->memory / sizeof lex->memory[0]; i++) mem_free(lex->memory[i]);
  *lex = (lexicon){.n_pairs = 0};
}

float word_weight(const lexicon *lex, uint32_t row) {
  float p = (float)lex->pairs[row] / (float)lex->n_pairs;
  return 1e-2f / (1e-2f + p) * 0.9f + 0.1f;
}

typedef struct collector {
  uint16_t *rows;
  size_t n, max;
} collector;

static int collect(void *ctx, uint32_t row) {
  collector *c = ctx;
  if (c->n == c->max) return 1;
  c->rows[c->n++] = (uint16_t)row;
  return 0;
}

size_t lexicon_rows(const lexicon *lex, const char *text, size_t len, uint16_t *rows, size_t max) {
  collector c = {.rows = rows, .max = max};
  (void)embed_words_split(&lex->words, text, len, collect, &c);
  return c.n;
}
