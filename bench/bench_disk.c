/* SPDX-License-Identifier: Apache-2.0 */
/* bench_disk.c - what the disk itself takes to make bytes durable, for context.
 *
 *   bench_disk NAME FOLDER ROUNDS      append 4 KiB / 2 MiB to a file and fdatasync it, ROUNDS times each
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void append_synced(const char *name, const char *what, int fd, size_t bytes, uint32_t rounds) {
  char *block = room(bytes);
  double *took = room(rounds * sizeof *took);
  memset(block, 'x', bytes);
  for (uint32_t i = 0; i < rounds; i++) {
    double start = now_s();
    if (write(fd, block, bytes) != (ssize_t)bytes) fail("write: %s", strerror(errno));
    if (fdatasync(fd) < 0) fail("fdatasync: %s", strerror(errno));
    took[i] = now_s() - start;
  }
  say(name, what, percentile(took, rounds, 0.5) * 1e3);
  free(took);
  free(block);
}

int main(int argc, char **argv) {
  if (argc != 4) fail("usage: bench_disk NAME FOLDER ROUNDS");
  uint32_t rounds = number(argv[3], 1, 100000, "ROUNDS");
  char path[4096];
  if (snprintf(path, sizeof path, "%s/bench_disk.tmp", argv[2]) >= (int)sizeof path) fail("FOLDER is too long");
  int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) fail("%s: %s", path, strerror(errno));
  append_synced(argv[1], "sync_4k_ms", fd, 4096, rounds);
  append_synced(argv[1], "sync_2m_ms", fd, 2u << 20, rounds < 50 ? rounds : 50);
  (void)close(fd);
  (void)unlink(path);
  return 0;
}
