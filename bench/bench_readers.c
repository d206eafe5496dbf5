/* SPDX-License-Identifier: Apache-2.0 */
/* bench_readers.c - how long a reader waits beside a writer that commits without pause, in processes of their own.
 *
 *   bench_readers NAME FOLDER ROWS SECONDS COMMIT     fills a store with ROWS; the writer adds COMMIT rows a commit
 *
 * A read is one lode_get() of 10 records by id with documents and metadata; it must bring all 10. COMMIT 0: no writer,
 * for comparison. The writer runs from before the first read until after the last, and reports its commits by a pipe.
 */
#include "common.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IDS = 10, MOST_READS = 4000000 };

typedef struct report {
  uint64_t commits;
  double seconds;
} report;

static volatile sig_atomic_t stopped;
static void on_term(int sig) {
  (void)sig;
  stopped = 1;
}

/* Writes a byte after its first commit and a report when told to stop. */
static void writer(const char *folder, uint32_t first, uint32_t commit, int out) {
  lode_open_options options = {.busy_ms = 60000};
  lode_error err;
  report r = {0};
  batch *b = batch_new();
  opened o = open_store(folder, &options);
  double start = now_s();
  while (!stopped) {
    batch_fill(b, first, commit);
    need(lode_add(o.collection, NULL, b->records, commit, LODE_FAIL_EXISTING, NULL, &err), &err, "add");
    first += commit;
    if (r.commits++ == 0 && write(out, "!", 1) != 1) fail("the pipe is gone");
  }
  r.seconds = now_s() - start;
  if (write(out, &r, sizeof r) != (ssize_t)sizeof r) fail("the pipe is gone");
  close_store(&o);
  free(b);
}

static pid_t start_writer(const char *folder, uint32_t rows, uint32_t commit, int ends[2]) {
  char byte;
  if (pipe(ends) < 0) fail("no pipe: %s", strerror(errno));
  pid_t pid = fork();
  if (pid < 0) fail("no process can be started: %s", strerror(errno));
  if (pid == 0) {
    struct sigaction act = {.sa_handler = on_term};
    (void)sigaction(SIGTERM, &act, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)close(ends[0]);
    writer(folder, rows, commit, ends[1]);
    exit(0);
  }
  (void)close(ends[1]);
  if (read(ends[0], &byte, 1) != 1) fail("the writer did not start");
  return pid;
}

static report stop_writer(pid_t pid, int end) {
  report r = {0};
  int status = 0;
  (void)kill(pid, SIGTERM);
  if (read(end, &r, sizeof r) != (ssize_t)sizeof r) fail("the writer ended without a report");
  if (waitpid(pid, &status, 0) != pid || status != 0) fail("the writer failed");
  (void)close(end);
  return r;
}

static double read_ten(opened *o, uint32_t rows, uint32_t *state) {
  char text[IDS][32];
  lode_str ids[IDS];
  lode_error err;
  lode_result *result = NULL;
  for (size_t i = 0; i < IDS; i++)
    ids[i] = (lode_str){text[i], row_id(text[i], sizeof text[i], random_next(state) % rows)};
  lode_get_request request = {.select = {.ids = ids, .n_ids = IDS}, .include = LODE_DOCUMENT | LODE_METADATA};
  double start = now_s();
  need(lode_get(o->collection, &request, &result, &err), &err, "get");
  double took = now_s() - start;
  if (lode_result_count(result) != IDS) fail("a read brought %zu of %d records", lode_result_count(result), IDS);
  lode_result_free(result);
  return took;
}

int main(int argc, char **argv) {
  if (argc != 6) fail("usage: bench_readers NAME FOLDER ROWS SECONDS COMMIT");
  const char *name = argv[1], *folder = argv[2];
  uint32_t rows = number(argv[3], IDS, 10000000, "ROWS"), seconds = number(argv[4], 1, 3600, "SECONDS");
  uint32_t commit = number(argv[5], 0, BATCH, "COMMIT"), state = 7;
  double *took = room(MOST_READS * sizeof *took), slowest = 0;
  size_t n = 0;
  int ends[2] = {-1, -1};
  report r = {0};
  make_store(folder, rows);
  pid_t pid = commit ? start_writer(folder, rows, commit, ends) : 0;
  lode_open_options options = {.read_only = true, .busy_ms = 60000};
  opened o = open_store(folder, &options);
  (void)read_ten(&o, rows, &state);
  for (double end = now_s() + seconds; now_s() < end && n < MOST_READS; n++) {
    took[n] = read_ten(&o, rows, &state);
    if (took[n] > slowest) slowest = took[n];
  }
  close_store(&o);
  if (pid) r = stop_writer(pid, ends[0]);
  say(name, "reads", (double)n);
  say(name, "p50_ms", percentile(took, n, 0.5) * 1e3);
  say(name, "p99_ms", percentile(took, n, 0.99) * 1e3);
  say(name, "worst_ms", slowest * 1e3);
  if (pid) say(name, "commits_per_s", (double)r.commits / r.seconds);
  free(took);
  return 0;
}
