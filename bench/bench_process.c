/* SPDX-License-Identifier: Apache-2.0 */
/* bench_process.c - a command as a user meets it: from starting the process to its end.
 *
 *   bench_process NAME RUNS EXPECTED PROGRAM [ARGUMENT...]
 *   bench_process --ids N                                      prints the ids of rows 0 .. N, one a line
 *
 * Timed is posix_spawn + waiting for the end of its output + wait4. EXPECTED is what the command must print (without
 * the last newline; "-": anything). Prints best and median time, and the largest resident memory of any of the runs;
 * this program stays small because the kernel counts the parent's memory at the start of a child, too.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct run {
  double took, peak_mib;
  char output[4096];
} run;

static void read_all(int fd, char *out, size_t size) {
  char rest[4096];
  size_t n = 0;
  for (;;) {
    bool keep = n + 1 < size;
    ssize_t got = read(fd, keep ? out + n : rest, keep ? size - 1 - n : sizeof rest);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (keep) n += (size_t)got;
  }
  while (n > 0 && out[n - 1] == '\n') n--;
  out[n] = '\0';
}

static void run_once(char **argv, run *r) {
  int ends[2], status = 0;
  pid_t pid;
  struct rusage used;
  posix_spawn_file_actions_t actions;
  if (pipe2(ends, O_CLOEXEC) < 0) fail("no pipe: %s", strerror(errno));
  (void)posix_spawn_file_actions_init(&actions);
  (void)posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  double start = now_s();
  int rc = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
  if (rc != 0) fail("%s cannot be started: %s", argv[0], strerror(rc));
  (void)close(ends[1]);
  read_all(ends[0], r->output, sizeof r->output);
  while (wait4(pid, &status, 0, &used) < 0)
    if (errno != EINTR) fail("wait4: %s", strerror(errno));
  r->took = now_s() - start;
  r->peak_mib = (double)used.ru_maxrss / 1024;
  (void)close(ends[0]);
  (void)posix_spawn_file_actions_destroy(&actions);
  if (status != 0)
    fail("%s ended with status %d", argv[0], WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static int print_ids(uint32_t n) {
  char id[32];
  for (uint32_t i = 0; i < n; i++) {
    (void)row_id(id, sizeof id, i);
    if (puts(id) < 0) fail("the ids cannot be written");
  }
  return fflush(stdout) == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "--ids") == 0) return print_ids(number(argv[2], 0, 100000000, "N"));
  if (argc < 5) fail("usage: bench_process NAME RUNS EXPECTED PROGRAM [ARGUMENT...] | --ids N");
  const char *name = argv[1], *expected = argv[3];
  uint32_t runs = number(argv[2], 1, 100000, "RUNS");
  double *took = room(runs * sizeof *took), peak = 0;
  for (uint32_t i = 0; i < runs; i++) {
    run r;
    run_once(argv + 4, &r);
    if (strcmp(expected, "-") != 0 && strcmp(expected, r.output) != 0)
      fail("%s printed \"%s\" where \"%s\" was expected", argv[4], r.output, expected);
    took[i] = r.took;
    if (r.peak_mib > peak) peak = r.peak_mib;
  }
  say(name, "runs", runs);
  say(name, "median_ms", percentile(took, runs, 0.5) * 1e3);
  say(name, "best_ms", took[0] * 1e3);
  say(name, "worst_ms", took[runs - 1] * 1e3);
  say(name, "peak_mib", peak);
  free(took);
  return 0;
}
