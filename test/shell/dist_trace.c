/* SPDX-License-Identifier: Apache-2.0 */
/* dist_trace.c - crashes in the way that its argument names, and prints what backtrace_from() tells its signal handler.
 * dist_trace.sh compares the names of the functions. */
#include "execinfo.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char stack[64 << 10];
static char *volatile nowhere;
static void (*volatile no_function)(void);
static volatile int depth;

static void handler(int number, siginfo_t *info, void *context) {
  void *frames[32];
  (void)number;
  (void)info;
  backtrace_symbols_fd(frames, backtrace_from(context, frames, 32), STDOUT_FILENO);
  _exit(0);
}

__attribute__((noinline)) static int compare(const void *a, const void *b) { return *nowhere + (a < b); }
__attribute__((noinline)) static void by_reading(void) { depth += *nowhere; }
__attribute__((noinline)) static void by_copying(void) {
  depth += *(char *)memcpy(nowhere, stack, (size_t)depth + 4000);
}
__attribute__((noinline)) static void by_calling(void) { no_function(), depth++; }
__attribute__((noinline)) static void by_aborting(void) { depth ? (void)0 : abort(), depth++; }
__attribute__((noinline)) static void by_waiting(void) { alarm(1), pause(), depth++; }
__attribute__((noinline)) static void by_sorting(void) {
  qsort(stack, 100, 1, compare);
  depth++;
}
__attribute__((noinline)) static int by_recursing(int n) {
  volatile char room[1000];
  room[0] = (char)n;
  return by_recursing(n + 1) + room[0];
}

__attribute__((noinline)) static void crash(const char *way) {
  if (strcmp(way, "reading") == 0) by_reading();
  if (strcmp(way, "copying") == 0) by_copying();
  if (strcmp(way, "calling") == 0) by_calling();
  if (strcmp(way, "aborting") == 0) by_aborting();
  if (strcmp(way, "waiting") == 0) by_waiting();
  if (strcmp(way, "sorting") == 0) by_sorting();
  if (strcmp(way, "recursing") == 0) depth = by_recursing(0);
  depth++;
}

int main(int argc, char **argv) {
  static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGALRM, SIGILL};
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
  void *frames[4];
  if (argc != 2 || sigaltstack(&other, NULL) != 0) return 2;
  (void)backtrace_from(NULL, frames, 4);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, NULL);
  crash(argv[1]);
  return 1;
}
