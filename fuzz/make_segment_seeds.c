/* SPDX-License-Identifier: Apache-2.0 */
/* make_segment_seeds.c - writes small real segments of both kinds to fuzz/seeds/segment, in the form that
 * fuzz_segment.c reads.
 *
 *   gcc -std=c11 -D_GNU_SOURCE -Iinclude -Isrc/lib -Isrc/app -o /tmp/seeds fuzz/make_segment_seeds.c
 * build/release/inside/lib.a \
 *     $(pkg-config --libs sqlite3 libpcre2-8 libutf8proc) -lpthread -lm && /tmp/seeds fuzz/seeds/segment
 */
#include <stdio.h>

#define LODE_FUZZ_MAIN
#define main replayed_main
int replayed_main(int argc, char **argv);
#include "fuzz_segment.c"
#undef main

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    unsigned char flags;
    index_segment_kind kind;
  } seeds[] = {
      {"flat", 5, INDEX_FLAT},
      {"graph", 1, INDEX_GRAPH},
      {"graph_filtered", 3, INDEX_GRAPH},
      {"graph_as_it_is", 0, INDEX_GRAPH},
  };
  if (argc != 2) return 2;
  for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
    char path[4096];
    bytes seed = {0};
    make_seed(&seed, seeds[i].kind);
    seed.data[0] = seeds[i].flags;
    snprintf(path, sizeof path, "%s/%s", argv[1], seeds[i].name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(seed.data, 1, seed.n, f) != seed.n || fclose(f) != 0) return 1;
    printf("%s: %zu bytes\n", path, seed.n);
    free(seed.data);
  }
  return 0;
}
