/* SPDX-License-Identifier: Apache-2.0 */
/* bench_embed.c - tokens a second of lode: bench_embed TEXTS full|int8|code THREADS BATCH SECONDS [VECTORS]. A line of
 * TEXTS is a text of as many tokens of MiniLM as it has words, and two; `code` is the static model, whose texts are
 * counted in the same tokens. SECONDS may be "kernel": prints which one would run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lode.h"

enum { MOST = 64 };

/* BENCH_CLOCK=cpu: of this process's CPU time, for machines that do other things too. */
static double now(void) {
  const char *which = getenv("BENCH_CLOCK");
  struct timespec t;
  clock_gettime(which && strcmp(which, "cpu") == 0 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int fail(const char *what, const lode_error *err) {
  fprintf(stderr, "bench_embed: %s: %s\n", what, err->text);
  return 1;
}

int main(int argc, char **argv) {
  static char lines[MOST][1 << 14];
  lode_str texts[2 * MOST];
  size_t tokens[2 * MOST], n = 0;
  lode_error err;
  lode_embedder *e;
  if (argc < 6) return 2;
  FILE *f = fopen(argv[1], "r");
  while (f && n < MOST && fgets(lines[n], sizeof lines[n], f)) {
    size_t len = strcspn(lines[n], "\n"), words = 1;
    for (size_t i = 0; i < len; i++) words += lines[n][i] == ' ';
    tokens[n] = words + 2;
    texts[n++] = (lode_str){lines[n], len};
  }
  if (!f || n == 0) return 2;
  fclose(f);
  for (size_t i = 0; i < n; i++) texts[i] = (lode_str){lines[i], strcspn(lines[i], "\n")};
  lode_embedder_options options = {.precision =
                                       strcmp(argv[2], "full") == 0 ? LODE_PRECISION_FULL : LODE_PRECISION_INT8,
                                   .threads = (uint32_t)strtoul(argv[3], NULL, 10)};
  lode_str model =
      strcmp(argv[2], "code") == 0 ? (lode_str){LODE_MODEL_CODE, strlen(LODE_MODEL_CODE)} : (lode_str){"minilm", 6};
  if (lode_embedder_open(model, &options, &e, &err) != LODE_OK) return fail("open", &err);
  if (strcmp(argv[5], "kernel") == 0) return puts(lode_embedder_info_of(e)->kernel) < 0;
  float *v = malloc(MOST * 384 * sizeof *v);
  if (!v) return 2;
  if (argc > 6) {
    FILE *out = fopen(argv[6], "wb");
    if (lode_embed(e, texts, n, v, &err) != LODE_OK) return fail("embed", &err);
    if (!out || fwrite(v, 384 * sizeof *v, n, out) != n || fclose(out) != 0) return 2;
    return 0;
  }
  size_t batch = strtoul(argv[4], NULL, 10), at = 0, done = 0;
  double seconds = strtod(argv[5], NULL);
  if (batch == 0 || batch > n || lode_embed(e, texts, 2, v, &err) != LODE_OK) return fail("embed", &err);
  double begin = now();
  do {
    lode_str some[MOST];
    for (size_t i = 0; i < batch; i++, at = (at + 1) % n) {
      some[i] = texts[at];
      done += tokens[at];
    }
    if (lode_embed(e, some, batch, v, &err) != LODE_OK) return fail("embed", &err);
  } while (now() - begin < seconds);
  printf("%.0f\n", (double)done / (now() - begin));
  lode_embedder_close(e);
  return 0;
}
