/* SPDX-License-Identifier: Apache-2.0 */
/* bench_chunk.c - walks a folder, reads, classifies, parses and chunks every file, and prints what it cost.
 * Usage: bench_chunk FOLDER [THREADS]. Prints reasons of skipping, languages, outcomes, and CPU time. */
#include "os/os.h"
#include "chunk/parser_pool.h"
#include "scan/scan.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>

static struct {
  scan_root *root;
  scan_walker *walker;
  parser_pool *pool;
  pthread_mutex_t lock; /* guards the walker and all counts */
  uint64_t files, bytes, chunks, broken, outcomes[PARSER_POOL_COUNT], skips[SCAN_SKIP_COUNT];
} b = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The next file's path; false at the end. */
static bool next_file(strbuf *path) {
  lode_error err;
  scan_entry e;
  bool more = true;
  pthread_mutex_lock(&b.lock);
  do {
    if (scan_walker_next(b.walker, &e, &more, &err) != LODE_OK) more = false;
  } while (more && e.skip != SCAN_SKIP_NONE);
  path->len = 0;
  if (more) strbuf_add(path, e.path.data, e.path.len);
  pthread_mutex_unlock(&b.lock);
  return more && !path->failed;
}

static void *run(void *unused) {
  strbuf path = {0}, text = {0};
  parser_pool_result r = {0};
  lode_error err;
  (void)unused;
  while (next_file(&path)) {
    lode_str name = {path.data, path.len};
    scan_entry e;
    if (scan_root_read(b.root, name, &text, &e, &err) != LODE_OK) break;
    lode_str t = {text.data, text.len};
    const lang_info *language = lang_detect(name, t);
    scan_skip skip = e.skip ? e.skip : scan_classify_text(b.root, name, language, t);
    if (!skip && parser_pool_chunk(b.pool, language, t, &r, &err) != LODE_OK) break;
    if (!skip && r.outcome >= PARSER_POOL_CRASHED)
      printf("%.*s: %s %s\n", (int)name.len, name.data, parser_pool_outcome_text(r.outcome), r.detail);
    pthread_mutex_lock(&b.lock);
    if (skip) {
      b.skips[skip]++;
    } else {
      b.files++;
      b.bytes += t.len;
      b.chunks += r.chunks.n;
      b.broken += r.broken;
      b.outcomes[r.outcome]++;
    }
    pthread_mutex_unlock(&b.lock);
  }
  strbuf_release(&path);
  strbuf_release(&text);
  parser_pool_result_release(&r);
  return NULL;
}

static double cpu_seconds(int who) {
  struct rusage u;
  getrusage(who, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void report(double seconds) {
  const uint64_t *walked = scan_walker_counts(b.walker);
  for (int i = 1; i < SCAN_SKIP_COUNT; i++)
    if (walked[i] + b.skips[i])
      printf("skipped  %-14s %llu\n", scan_skip_name((scan_skip)i), (unsigned long long)(walked[i] + b.skips[i]));
  for (int i = 0; i < PARSER_POOL_COUNT; i++)
    if (b.outcomes[i])
      printf("chunked  %s: %llu\n", parser_pool_outcome_text((parser_pool_outcome)i),
             (unsigned long long)b.outcomes[i]);
  parser_pool_close(b.pool); /* workers count as children once they are gone */
  double self = cpu_seconds(RUSAGE_SELF), children = cpu_seconds(RUSAGE_CHILDREN);
  printf("%llu files, %.1f MB, %llu chunks, %llu with errors of syntax; %.1f s, CPU %.1f s here and %.1f s in workers: "
         "%.0f files/s of 2 cores\n",
         (unsigned long long)b.files, (double)b.bytes / 1e6, (unsigned long long)b.chunks, (unsigned long long)b.broken,
         seconds, self, children, (double)b.files / ((self + children) / 2));
}

int main(int argc, char **argv) {
  pthread_t threads[16];
  lode_error err;
  long n = argc > 2 ? strtol(argv[2], NULL, 10) : 2;
  if (argc < 2 || n < 1 || n > 16) {
    fprintf(stderr, "usage: bench_chunk FOLDER [THREADS]\n");
    return 2;
  }
  if (scan_root_open(argv[1], NULL, &b.root, &err) != LODE_OK ||
      scan_walker_open(b.root, STR_LIT(""), &b.walker, &err) != LODE_OK ||
      parser_pool_open(&(parser_pool_options){.workers = (uint32_t)n}, &b.pool, &err) != LODE_OK) {
    fprintf(stderr, "bench_chunk: %s\n", err.text);
    return 1;
  }
  uint64_t from = os_api->now_ns();
  for (long i = 0; i < n; i++)
    if (pthread_create(&threads[i], NULL, run, NULL) != 0) return 1;
  for (long i = 0; i < n; i++) pthread_join(threads[i], NULL);
  report((double)(os_api->now_ns() - from) / 1e9);
  scan_walker_close(b.walker);
  scan_root_close(b.root);
  return 0;
}
