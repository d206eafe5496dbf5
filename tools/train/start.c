/* SPDX-License-Identifier: Apache-2.0 */
/* start.c - a table to begin with: every word as MiniLM sees it, in 256 dimensions.
 *
 *   start VOCAB.tsv TABLE
 *
 * Each word is embedded by the model "minilm" (`lode model install minilm`), the mean is taken off, and the vectors are
 * turned into their first 256 principal components. Frequent words are made short, as they say little. MiniLM's vectors
 * are kept beside the table (TABLE.minilm), so that a second start does not need them again.
 */
#include "lexicon.h"
#include "table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDE = 384, BATCH = 64, SWEEPS = 30 };

/* ---- MiniLM's vectors ---- */

static float *load_vectors(const char *path, uint32_t rows) {
  FILE *in = fopen(path, "rb");
  if (!in) return NULL;
  size_t n = (size_t)rows * WIDE;
  float *v = must_alloc(n, sizeof *v);
  bool whole = fread(v, sizeof *v, n, in) == n && fgetc(in) == EOF;
  fclose(in);
  if (whole) return v;
  mem_free(v);
  return NULL;
}

static float *embed_lexicon(const lexicon *lex, const char *path) {
  lode_embedder *minilm;
  lode_error err;
  lode_embedder_options options = {.precision = LODE_PRECISION_FULL, .threads = 2};
  if (lode_embedder_open(STR_LIT(LODE_MODEL_MINILM), &options, &minilm, &err) != LODE_OK) {
    fprintf(stderr, "start: %s\n", err.text);
    exit(1);
  }
  uint32_t n = lex->words.count;
  float *v = must_alloc((size_t)n * WIDE, sizeof *v);
  for (uint32_t from = 0; from < n; from += BATCH) {
    char words[BATCH][64];
    lode_str texts[BATCH];
    uint32_t count = n - from < BATCH ? n - from : BATCH;
    for (uint32_t i = 0; i < count; i++) {
      uint32_t at = lex->words.starts[from + i], len = lex->words.starts[from + i + 1] - at;
      if (len > 63) len = 63;
      memcpy(words[i], lex->words.bytes + at, len);
      for (uint32_t k = 0; k < len; k++) {
        if (words[i][k] == '_') words[i][k] = ' ';
      }
      texts[i] = (lode_str){words[i], len};
    }
    if (lode_embed(minilm, texts, count, v + (size_t)from * WIDE, &err) != LODE_OK) {
      fprintf(stderr, "start: %s\n", err.text);
      exit(1);
    }
  }
  lode_embedder_close(minilm);
  FILE *out = fopen(path, "wb");
  if (!out || fwrite(v, sizeof *v, (size_t)n * WIDE, out) != (size_t)n * WIDE || fclose(out) != 0) perror(path);
  return v;
}

/* ---- Principal components ---- */

static double turned[WIDE][WIDE], axes[WIDE][WIDE];

/* Jacobi's rotations: `turned` (symmetric) becomes diagonal, the rows of `axes` its eigenvectors. */
static void diagonalize(void) {
  for (int i = 0; i < WIDE; i++) axes[i][i] = 1;
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    double off = 0, all = 0;
    for (int p = 0; p < WIDE; p++) {
      for (int q = 0; q < WIDE; q++) {
        all += turned[p][q] * turned[p][q];
        if (p != q) off += turned[p][q] * turned[p][q];
      }
    }
    if (off < 1e-18 * all) return;
    for (int p = 0; p < WIDE; p++) {
      for (int q = p + 1; q < WIDE; q++) {
        if (turned[p][q] == 0) continue;
        double theta = (turned[q][q] - turned[p][p]) / (2 * turned[p][q]);
        double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1)), c = 1 / sqrt(t * t + 1), s = t * c;
        for (int k = 0; k < WIDE; k++) {
          double x = turned[p][k], y = turned[q][k];
          turned[p][k] = c * x - s * y;
          turned[q][k] = s * x + c * y;
        }
        for (int k = 0; k < WIDE; k++) {
          double x = turned[k][p], y = turned[k][q], u = axes[p][k], w = axes[q][k];
          turned[k][p] = c * x - s * y;
          turned[k][q] = s * x + c * y;
          axes[p][k] = c * u - s * w;
          axes[q][k] = s * u + c * w;
        }
      }
    }
  }
}

static int by_size(const void *a, const void *b) {
  double x = turned[*(const int *)a][*(const int *)a], y = turned[*(const int *)b][*(const int *)b];
  return x < y ? 1 : x > y ? -1 : 0;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: start VOCAB.tsv TABLE\n");
    return 2;
  }
  char kept[4096];
  lexicon lex;
  table t;
  lexicon_load(&lex, argv[1]);
  snprintf(kept, sizeof kept, "%s.minilm", argv[2]);
  uint32_t n = lex.words.count;
  float *v = load_vectors(kept, n);
  if (!v) v = embed_lexicon(&lex, kept);
  static double mean[WIDE];
  for (uint32_t r = 0; r < n; r++) {
    for (int d = 0; d < WIDE; d++) mean[d] += v[(size_t)r * WIDE + d] / n;
  }
  for (uint32_t r = 0; r < n; r++) {
    float *x = v + (size_t)r * WIDE;
    for (int d = 0; d < WIDE; d++) x[d] -= (float)mean[d];
    for (int i = 0; i < WIDE; i++) {
      for (int j = 0; j <= i; j++) turned[i][j] += (double)(x[i] * x[j]);
    }
  }
  for (int i = 0; i < WIDE; i++) {
    for (int j = 0; j < i; j++) turned[j][i] = turned[i][j];
  }
  diagonalize();
  int order[WIDE];
  for (int i = 0; i < WIDE; i++) order[i] = i;
  qsort(order, WIDE, sizeof *order, by_size);
  table_init(&t, n, 1);
  for (uint32_t r = 0; r < n; r++) {
    float *row = t.values + (size_t)r * DIM, square = 1e-12f;
    for (int k = 0; k < DIM; k++) {
      double sum = 0;
      for (int d = 0; d < WIDE; d++) sum += axes[order[k]][d] * v[(size_t)r * WIDE + d];
      row[k] = (float)sum;
      square += row[k] * row[k];
    }
    float weight = word_weight(&lex, r) / sqrtf(square);
    for (int k = 0; k < DIM; k++) row[k] *= weight;
  }
  table_save(&t, argv[2]);
  fprintf(stderr, "start: %u words in %d of %d dimensions\n", n, DIM, WIDE);
  mem_free(v);
  table_release(&t);
  lexicon_release(&lex);
  return 0;
}
