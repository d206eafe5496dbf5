/* SPDX-License-Identifier: Apache-2.0 */
/* parity.c - lode beside the reference: parity FOLDER TOKENIZER MODEL. FOLDER is what reference.mjs wrote, TOKENIZER a
 * tokenizer.json, MODEL the folder of the same model as safetensors. Ends with "N passed, N failed". */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embed/vocab.h"
#include "lode.h"

enum { TEXTS = 1000, SOME = 100, DIM = 384, MOST = 256, NEAR = 10 };

static int passed, failed;
static lode_error err;

__attribute__((format(printf, 2, 3))) static void check(bool good, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs(good ? "ok   " : "FAIL ", stdout);
  vprintf(format, args);
  putchar('\n');
  va_end(args);
  good ? passed++ : failed++;
}

static char *whole(const char *folder, const char *name, size_t *len) {
  char path[4096];
  snprintf(path, sizeof path, "%s%s%s", folder, *name ? "/" : "", name);
  FILE *f = fopen(path, "rb");
  if (!f || fseek(f, 0, SEEK_END) != 0) exit((perror(path), 1));
  *len = (size_t)ftell(f);
  rewind(f);
  char *data = malloc(*len + 1);
  if (!data || fread(data, 1, *len, f) != *len) exit((perror(path), 1));
  fclose(f);
  return data;
}

static uint32_t number(const char **at) {
  uint32_t n;
  memcpy(&n, *at, sizeof n);
  *at += sizeof n;
  return n;
}

static void compare_ids(const lode_str *texts, const char *ids, const char *tokenizer) {
  embed_vocab vocab = {0};
  embed_wordpiece wp = {0};
  size_t len, wrong = 0;
  char *json = whole(tokenizer, "", &len);
  if (embed_vocab_from_json(&vocab, (lode_str){json, len}, &err) != LODE_OK ||
      embed_wordpiece_init(&wp, &vocab.settings, vocab.tokens, vocab.count, vocab.specials, vocab.n_specials, &err) !=
          LODE_OK) {
    check(false, "the tokenizer: %s", err.text);
    return;
  }
  for (size_t i = 0; i < TEXTS; i++) {
    uint32_t ours[MOST], n = number(&ids);
    size_t count = embed_wordpiece_encode(&wp, texts[i], ours, MOST);
    bool same = count == n && memcmp(ours, ids, n * sizeof *ours) == 0;
    if (!same && wrong++ < 5) printf("text %zu: %zu ids, the reference has %u: %.80s\n", i, count, n, texts[i].data);
    ids += n * sizeof *ours;
  }
  check(wrong == 0, "the token ids of %d texts are those of the reference (%zu are not)", TEXTS, wrong);
  embed_wordpiece_release(&wp);
  embed_vocab_release(&vocab);
  free(json);
}

static float *embed(lode_str model, lode_precision precision, const lode_str *texts, size_t n) {
  lode_embedder *e;
  float *v = calloc(n, DIM * sizeof *v);
  lode_embedder_options options = {.precision = precision, .max_tokens = MOST, .threads = 2};
  if (!v || lode_embedder_open(model, &options, &e, &err) != LODE_OK || lode_embed(e, texts, n, v, &err) != LODE_OK)
    exit((printf("FAIL %.*s: %s\n0 passed, 1 failed\n", (int)model.len, model.data, err.text), 1));
  lode_embedder_close(e);
  return v;
}

static double dot(const float *a, const float *b) {
  double sum = 0;
  for (int d = 0; d < DIM; d++) sum += (double)a[d] * b[d];
  return sum;
}

static void compare(const char *what, const float *a, const float *b, size_t n, double least_wanted,
                    double mean_wanted) {
  double least = 1, mean = 0;
  for (size_t i = 0; i < n; i++) {
    double c = dot(a + i * DIM, b + i * DIM);
    least = c < least ? c : least;
    mean += c / (double)n;
  }
  check(least >= least_wanted && mean >= mean_wanted, "%s: cosine at least %.6f (%g wanted), mean %.6f (%g wanted)",
        what, least, least_wanted, mean, mean_wanted);
}

/* The NEAR nearest others of text i. */
static void nearest(const float *v, size_t i, size_t out[NEAR]) {
  double best[NEAR];
  size_t n = 0;
  for (size_t j = 0; j < TEXTS; j++) {
    if (j == i) continue;
    double c = dot(v + i * DIM, v + j * DIM);
    if (n == NEAR && c <= best[NEAR - 1]) continue;
    size_t at = n < NEAR ? n++ : NEAR - 1;
    for (; at > 0 && best[at - 1] < c; at--) {
      best[at] = best[at - 1];
      out[at] = out[at - 1];
    }
    best[at] = c;
    out[at] = j;
  }
}

static double recall(const float *a, const float *b) {
  size_t found = 0;
  for (size_t i = 0; i < TEXTS; i++) {
    size_t x[NEAR], y[NEAR];
    nearest(a, i, x);
    nearest(b, i, y);
    for (size_t p = 0; p < NEAR; p++)
      for (size_t q = 0; q < NEAR; q++) found += x[p] == y[q];
  }
  return (double)found / (TEXTS * NEAR);
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  size_t len;
  static lode_str texts[TEXTS];
  char *bytes = whole(argv[1], "texts", &len), *ids = whole(argv[1], "ids", &len),
       *vectors = whole(argv[1], "vectors", &len);
  if (len != TEXTS * DIM * sizeof(float)) return 2;
  const char *at = bytes;
  for (size_t i = 0; i < TEXTS; i++) {
    texts[i].len = number(&at);
    texts[i].data = at;
    at += texts[i].len;
  }
  float *reference = (float *)(void *)vectors;
  compare_ids(texts, ids, argv[2]);
  float *full = embed((lode_str){"minilm", 6}, LODE_PRECISION_FULL, texts, TEXTS),
        *narrow = embed((lode_str){"minilm", 6}, LODE_PRECISION_INT8, texts, TEXTS);
  float *folder = embed((lode_str){argv[3], strlen(argv[3])}, LODE_PRECISION_FULL, texts, SOME);
  compare("full against the reference", full, reference, TEXTS, 0.9999, 0.9999);
  compare("int8 against the reference", narrow, reference, TEXTS, 0.99, 0.995);
  compare("the folder against the pack", folder, full, SOME, 0.99999, 0.99999);
  double r = recall(full, narrow);
  check(r >= 0.97, "recall@%d of int8 against full: %.4f (0.97 wanted)", NEAR, r);
  printf("%d passed, %d failed\n", passed, failed);
  free(full), free(narrow), free(folder), free(bytes), free(ids), free(vectors);
  return failed != 0;
}
