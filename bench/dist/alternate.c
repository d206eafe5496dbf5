/* SPDX-License-Identifier: Apache-2.0 */
/* alternate.c - alternate ROUNDS COMMAND... [-- COMMAND...]: starts the commands in turn, ROUNDS times, and prints a
 * line for each: the median of the time from its start to its end and of its CPU time (user and system), in
 * microseconds. In turn, so that what else the machine does meets all of them alike. Their output is thrown away; one
 * that fails ends the run. */
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_COMMANDS = 8, MAX_ROUNDS = 10000 };

extern char **environ;
static uint64_t wall_us[MAX_COMMANDS][MAX_ROUNDS], cpu_us[MAX_COMMANDS][MAX_ROUNDS];

static uint64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t tv_us(struct timeval t) { return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec; }

static int compare(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void run(char **command, const posix_spawn_file_actions_t *quiet, uint64_t *wall, uint64_t *cpu) {
  struct rusage use;
  pid_t pid;
  int status;
  uint64_t start = now_us();
  if (posix_spawn(&pid, command[0], quiet, NULL, command, environ) != 0 || wait4(pid, &status, 0, &use) != pid ||
      status != 0) {
    fprintf(stderr, "alternate: %s failed\n", command[0]);
    exit(1);
  }
  *wall = now_us() - start;
  *cpu = tv_us(use.ru_utime) + tv_us(use.ru_stime);
}

int main(int argc, char **argv) {
  char **commands[MAX_COMMANDS];
  int n = 0;
  long rounds = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
  if (rounds < 1 || rounds > MAX_ROUNDS) {
    fprintf(stderr, "usage: alternate ROUNDS COMMAND... [-- COMMAND...]\n");
    return 2;
  }
  commands[n++] = argv + 2;
  for (int i = 2; i < argc - 1 && n < MAX_COMMANDS; i++)
    if (strcmp(argv[i], "--") == 0) {
      argv[i] = NULL;
      commands[n++] = argv + i + 1;
      i++;
    }
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
  for (int r = 0; r < rounds; r++)
    for (int c = 0; c < n; c++) run(commands[c], &quiet, &wall_us[c][r], &cpu_us[c][r]);
  for (int c = 0; c < n; c++) {
    qsort(wall_us[c], (size_t)rounds, sizeof wall_us[c][0], compare);
    qsort(cpu_us[c], (size_t)rounds, sizeof cpu_us[c][0], compare);
    printf("%llu %llu\n", (unsigned long long)wall_us[c][rounds / 2], (unsigned long long)cpu_us[c][rounds / 2]);
  }
  return 0;
}
