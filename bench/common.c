/* SPDX-License-Identifier: Apache-2.0 */
/* common.c - see common.h. */
#include "common.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- Rows ---- */

uint32_t random_next(uint32_t *state) {
  uint32_t t = *state += 0x6D2B79F5u;
  t = (t ^ (t >> 15)) * (t | 1u);
  t ^= t + (t ^ (t >> 7)) * (t | 61u);
  return t ^ (t >> 14);
}

static uint32_t seed_of(uint32_t i, uint32_t stream) { return i * 2654435761u + stream * 40503u; }

size_t row_id(char *out, size_t size, uint32_t i) {
  uint32_t state = seed_of(i, 1);
  /* Random at the front: ids arrive in no order, as hashes and UUIDs do */
  return (size_t)snprintf(out, size, "%08" PRIx32 "-%" PRIu32, random_next(&state), i);
}

size_t row_path(char *out, size_t size, uint32_t file) {
  return (size_t)snprintf(out, size, "src/module_%03" PRIu32 "/part_%02" PRIu32 "/source_file_%06" PRIu32 ".c",
                          file % 977, file % 31, file);
}

void row_vector(float *out, uint32_t i) {
  uint32_t state = seed_of(i, 2);
  for (size_t d = 0; d < DIM; d++) out[d] = (float)(int32_t)random_next(&state) / 2147483648.0f;
}

/* Word number w of the vocabulary: one to three syllables, some in snake_case. */
static size_t word(char *out, uint32_t w) {
  static const char *const syllables[32] = {"ba",  "con", "de", "fi",  "gra", "ho",  "in", "ja",  "ker", "lo",  "ma",
                                            "net", "or",  "pa", "qui", "re",  "sto", "ta", "un",  "ver", "wal", "xi",
                                            "yo",  "zen", "ad", "buf", "cur", "dex", "el", "fet", "get", "set"};
  size_t n = 0;
  for (uint32_t v = w + 1; v > 0; v /= 32) {
    const char *s = syllables[v % 32];
    if (n > 0 && w % 5 == 0) out[n++] = '_';
    while (*s) out[n++] = *s++;
  }
  return n;
}

static void fill_document(char *out, uint32_t i) {
  uint32_t state = seed_of(i, 3);
  size_t n = 0;
  while (n < DOCUMENT_BYTES) {
    char text[32];
    uint32_t least = UINT32_MAX;
    /* The least of three: few words are frequent, most are rare */
    for (int k = 0; k < 3; k++) {
      uint32_t w = random_next(&state) >> 18;
      if (w < least) least = w;
    }
    size_t len = word(text, least);
    text[len++] = least % 7 == 0 ? '\n' : ' ';
    if (len > DOCUMENT_BYTES - n) len = DOCUMENT_BYTES - n;
    memcpy(out + n, text, len);
    n += len;
  }
  out[n] = '\0';
}

static void fill_metadata(row *r, uint32_t i) {
  static const char *const languages[4] = {"c", "python", "rust", "go"};
  uint32_t state = seed_of(i, 4), file = i / ROWS_PER_FILE;
  (void)row_path(r->path, sizeof r->path, file);
  (void)snprintf(r->metadata, sizeof r->metadata,
                 "{\"path\":\"%s\",\"language\":\"%s\",\"line\":%" PRIu32 ",\"score\":%.10f,\"generated\":%s}", r->path,
                 languages[file % 4], i % ROWS_PER_FILE * 40 + 1, (double)(random_next(&state) & 1023) / 1024.0,
                 file % 10 == 0 ? "true" : "false");
}

batch *batch_new(void) { return room(sizeof(batch)); }

void batch_fill(batch *b, uint32_t first, size_t n) {
  for (size_t k = 0; k < n; k++) {
    row *r = &b->rows[k];
    uint32_t i = first + (uint32_t)k;
    size_t id_len = row_id(r->id, sizeof r->id, i);
    fill_document(r->document, i);
    fill_metadata(r, i);
    row_vector(r->vector, i);
    b->records[k] = (lode_record){.id = {r->id, id_len},
                                  .document = {r->document, DOCUMENT_BYTES},
                                  .metadata = {r->metadata, strlen(r->metadata)},
                                  .vector = r->vector,
                                  .dimension = DIM};
  }
}

static uint32_t fnv(uint32_t sum, const void *data, size_t n) {
  const unsigned char *p = data;
  for (size_t i = 0; i < n; i++) sum = (sum ^ p[i]) * 16777619u;
  return sum;
}

uint32_t data_sum(void) {
  batch *b = batch_new();
  uint32_t sum = 2166136261u;
  batch_fill(b, 0, BATCH);
  for (size_t k = 0; k < BATCH; k++) {
    const row *r = &b->rows[k];
    sum = fnv(sum, r->id, strlen(r->id));
    sum = fnv(sum, r->document, DOCUMENT_BYTES);
    sum = fnv(sum, r->path, strlen(r->path));
    sum = fnv(sum, r->vector, sizeof r->vector);
  }
  free(b);
  return sum;
}

/* ---- Clock, memory, figures ---- */

double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double percentile(double *values, size_t n, double part) {
  qsort(values, n, sizeof *values, by_value);
  size_t at = (size_t)(part * (double)n);
  return n == 0 ? 0 : values[at < n ? at : n - 1];
}

static double status_mib(const char *key) {
  char line[256];
  double kib = 0;
  FILE *f = fopen("/proc/self/status", "re");
  if (!f) fail("/proc/self/status cannot be read: memory is measured there");
  while (fgets(line, sizeof line, f))
    if (strncmp(line, key, strlen(key)) == 0) kib = strtod(line + strlen(key), NULL);
  (void)fclose(f);
  return kib / 1024;
}

double memory_now_mib(void) { return status_mib("VmRSS:"); }
double memory_peak_mib(void) { return status_mib("VmHWM:"); }

void memory_reset_peak(void) {
  FILE *f = fopen("/proc/self/clear_refs", "we");
  if (!f) return;
  (void)fputs("5", f);
  (void)fclose(f);
}

void say(const char *name, const char *what, double value) {
  printf("%s.%s %.6g\n", name, what, value);
  (void)fflush(stdout);
}

void fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  (void)fputs("bench: ", stderr);
  (void)vfprintf(stderr, format, args);
  (void)fputc('\n', stderr);
  va_end(args);
  exit(1);
}

void need(lode_status status, const lode_error *err, const char *doing) {
  if (status != LODE_OK) fail("%s: %s: %s", doing, lode_status_name(status), err->text);
}

void *room(size_t bytes) {
  void *p = calloc(1, bytes);
  if (!p) fail("out of memory: %zu bytes", bytes);
  return p;
}

uint32_t number(const char *text, uint32_t least, uint32_t most, const char *what) {
  char *end = NULL;
  unsigned long long v = strtoull(text, &end, 10);
  if (end == text || *end || v < least || v > most)
    fail("%s: a whole number from %" PRIu32 " to %" PRIu32 " is needed, not %s", what, least, most, text);
  return (uint32_t)v;
}

/* ---- Stores ---- */

opened open_store(const char *folder, const lode_open_options *options) {
  lode_error err;
  opened o = {0};
  lode_collection_options how = {.create = !options->read_only, .metric = LODE_L2};
  need(lode_open(folder, options, &o.store, &err), &err, "open");
  need(lode_collection_open(o.store, (lode_str){COLLECTION, strlen(COLLECTION)}, &how, &o.collection, &err), &err,
       "open the collection");
  return o;
}

void close_store(opened *o) {
  lode_collection_close(o->collection);
  lode_close(o->store);
  *o = (opened){0};
}

void optimize(opened *o) {
  lode_error err;
  need(lode_optimize(o->store, (lode_progress){0}, &err), &err, "optimize");
}

void fill_store(const char *folder, uint32_t n, bool indexed) {
  lode_error err;
  lode_open_options options = {.create = true, .no_background = !indexed};
  batch *b = batch_new();
  opened o = open_store(folder, &options);
  for (uint32_t at = 0; at < n; at += BATCH) {
    size_t count = n - at < BATCH ? n - at : BATCH;
    batch_fill(b, at, count);
    need(lode_add(o.collection, NULL, b->records, count, LODE_FAIL_EXISTING, NULL, &err), &err, "add");
  }
  if (indexed) optimize(&o);
  close_store(&o);
  free(b);
}

void make_store(const char *folder, uint32_t n) {
  int status = 0;
  pid_t pid = fork();
  if (pid < 0) fail("no process can be started: %s", strerror(errno));
  if (pid == 0) {
    fill_store(folder, n, true);
    exit(0);
  }
  if (waitpid(pid, &status, 0) != pid || status != 0) fail("the store could not be filled");
}

static void add_files(const char *folder, double *files, double *bytes) {
  DIR *dir = opendir(folder);
  if (!dir) return;
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    struct stat info;
    if (fstatat(dirfd(dir), e->d_name, &info, 0) < 0 || !S_ISREG(info.st_mode)) continue;
    *files += 1;
    *bytes += (double)info.st_size;
  }
  (void)closedir(dir);
}

void folder_size(const char *folder, double *files, double *bytes) {
  char segments[4096];
  struct stat info;
  if (stat(folder, &info) < 0) fail("%s cannot be listed", folder);
  if (snprintf(segments, sizeof segments, "%s/segments", folder) >= (int)sizeof segments) fail("FOLDER is too long");
  *files = *bytes = 0;
  add_files(folder, files, bytes);
  add_files(segments, files, bytes);
}
