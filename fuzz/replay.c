/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - runs a fuzz target as a plain test: over its seeds, and over seeded mutations of them.
 * Usage: replay_NAME SEED_FOLDER; LODE_TEST_SEED replays a run, LODE_TEST_FULL=1 does a hundred times more. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_BYTES (1u << 18)
static uint64_t state;

static uint64_t next(void) {
  uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static size_t mutate(uint8_t *data, size_t size) {
  for (unsigned n = 1 + (unsigned)(next() % 4); n > 0; n--) {
    size_t at = size ? next() % size : 0;
    switch (next() % 5) {
      case 0:
        if (size) data[at] ^= (uint8_t)(1u << (next() % 8));
        break;
      case 1:
        if (size) data[at] = (uint8_t)next();
        break;
      case 2: size = at; break;
      case 3:
        if (size && size < INPUT_BYTES) {
          memmove(data + at + 1, data + at, size - at);
          data[at] = (uint8_t)next();
          size++;
        }
        break;
      default: {
        size_t len = size ? next() % (size - at) : 0, to = size ? next() % size : 0;
        if (len > 64) len = 64;
        if (to + len <= size) memmove(data + to, data + at, len);
      }
    }
  }
  return size;
}

static int run_file(const char *path, unsigned rounds) {
  static uint8_t seed[INPUT_BYTES], input[INPUT_BYTES + 1];
  FILE *f = fopen(path, "rb");
  if (!f) return -1;
  size_t size = fread(seed, 1, sizeof seed, f);
  fclose(f);
  LLVMFuzzerTestOneInput(seed, size);
  for (unsigned i = 0; i < rounds; i++) {
    memcpy(input, seed, size);
    size_t n = mutate(input, size);
    /* a copy of just that size, so that a read past the end is seen */
    uint8_t *exact = malloc(n ? n : 1);
    if (!exact) return -1;
    memcpy(exact, input, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
  }
  return 0;
}

int main(int argc, char **argv) {
  const char *env = getenv("LODE_TEST_SEED");
  unsigned files = 0, rounds = getenv("LODE_TEST_FULL") ? 20000 : 200;
  state = env ? strtoull(env, NULL, 10) : (uint64_t)time(NULL);
  DIR *dir = argc > 1 ? opendir(argv[1]) : NULL;
  if (!dir) {
    fprintf(stderr, "no folder of seeds\n0 passed, 1 failed\n");
    return 1;
  }
  printf("seed %llu\n", (unsigned long long)state);
  fflush(stdout);
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    char path[4096];
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
    if (run_file(path, rounds) == 0) files++;
  }
  closedir(dir);
  printf("%u passed, %u failed\n", files, files == 0);
  return files == 0;
}
