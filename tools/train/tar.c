/* SPDX-License-Identifier: Apache-2.0 */
/* tar.c - see tar.h. */
#include "tar.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, LONG_NAME_MAX = 1 << 16 };

static bool skip(FILE *in, uint64_t n) {
  char sink[8192];
  while (n) {
    size_t want = n < sizeof sink ? (size_t)n : sizeof sink;
    if (fread(sink, 1, want, in) != want) return false;
    n -= want;
  }
  return true;
}

static uint64_t padded(uint64_t n) { return (n + BLOCK - 1) / BLOCK * BLOCK; }

static uint64_t octal(const unsigned char *field, size_t n) {
  uint64_t v = 0;
  if (field[0] & 0x80) { /* GNU: base 256 */
    for (size_t i = 1; i < n; i++) v = v << 8 | field[i];
    return v;
  }
  for (size_t i = 0; i < n && field[i]; i++) {
    if (field[i] >= '0' && field[i] <= '7') v = v << 3 | (uint64_t)(field[i] - '0');
  }
  return v;
}

/* The data of a header of n bytes, with a NUL after it; NULL at the end of the stream. */
static char *read_data(FILE *in, uint64_t n) {
  char *data = malloc((size_t)n + 1);
  if (!data) return NULL;
  if (fread(data, 1, (size_t)n, in) != n || !skip(in, padded(n) - n)) {
    free(data);
    return NULL;
  }
  data[n] = 0;
  return data;
}

/* "path=" of a pax header: records of "LENGTH key=value\n". */
static void pax_path(const char *data, size_t n, char *path, size_t size) {
  size_t at = 0;
  while (at < n) {
    char *end;
    unsigned long len = strtoul(data + at, &end, 10);
    if (len == 0 || len > n - at || *end != ' ') return;
    const char *key = end + 1, *stop = data + at + len - 1;
    if (stop > key + 5 && memcmp(key, "path=", 5) == 0 && (size_t)(stop - key - 5) < size) {
      memcpy(path, key + 5, (size_t)(stop - key - 5));
      path[stop - key - 5] = 0;
    }
    at += len;
  }
}

static void header_path(const unsigned char *h, char *path, size_t size) {
  bool ustar = memcmp(h + 257, "ustar\0", 6) == 0 && h[345];
  if (ustar)
    snprintf(path, size, "%.155s/%.100s", (const char *)h + 345, (const char *)h);
  else
    snprintf(path, size, "%.100s", (const char *)h);
}

bool tar_next(FILE *in, size_t max_bytes, bool (*wanted)(const char *path), tar_file *file) {
  unsigned char h[BLOCK];
  char given[sizeof file->path] = "";
  tar_release(file);
  while (fread(h, 1, BLOCK, in) == BLOCK) {
    if (!h[0]) continue;
    uint64_t n = octal(h + 124, 12);
    char type = (char)h[156];
    if (type == 'x' || type == 'L') {
      if (n > LONG_NAME_MAX) return false;
      char *data = read_data(in, n);
      if (!data) return false;
      if (type == 'x')
        pax_path(data, (size_t)n, given, sizeof given);
      else
        snprintf(given, sizeof given, "%s", data);
      free(data);
      continue;
    }
    if (given[0])
      memcpy(file->path, given, sizeof given);
    else
      header_path(h, file->path, sizeof file->path);
    given[0] = 0;
    if ((type == '0' || type == 0) && n && n <= max_bytes && wanted(file->path)) {
      file->data = read_data(in, n);
      file->len = (size_t)n;
      return file->data != NULL;
    }
    if (type != '1' && type != '2' && !skip(in, padded(n))) return false;
  }
  return false;
}

void tar_release(tar_file *file) {
  free(file->data);
  file->data = NULL;
  file->len = 0;
}
