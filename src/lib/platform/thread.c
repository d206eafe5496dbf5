/* SPDX-License-Identifier: Apache-2.0 */
/* thread.c - see thread.h. */
#include "platform/thread.h"

#include "platform/platform_internal.h"

#include <signal.h>
#include <unistd.h>

int os_thread_create(pthread_t *thread, void *(*body)(void *arg), void *arg) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP, SIGABRT};
  sigset_t others, before;
  sigfillset(&others);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&others, faults[i]);
  pthread_sigmask(SIG_BLOCK, &others, &before); /* a thread inherits the mask of its creator */
  int errnum = pthread_create(thread, NULL, body, arg);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return errnum;
}

bool os_mutex_is_locked(pthread_mutex_t *mutex) {
  if (pthread_mutex_trylock(mutex) != 0) return true;
  pthread_mutex_unlock(mutex);
  return false;
}

struct timespec os_deadline(uint64_t ms) {
  uint64_t ns = os_clock_ns(CLOCK_MONOTONIC) + ms * 1000000u;
  return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
}

#ifdef __APPLE__

int os_cond_init(pthread_cond_t *cond) { return pthread_cond_init(cond, NULL); }

/* A condition variable knows the wall clock only; a relative wait is not affected by it. */
int os_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline) {
  int64_t left = os_timespec_ns(*deadline) - (int64_t)os_clock_ns(CLOCK_MONOTONIC);
  if (left < 0) left = 0;
  struct timespec wait = {.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
  return pthread_cond_timedwait_relative_np(cond, mutex, &wait);
}

#else

int os_cond_init(pthread_cond_t *cond) {
  pthread_condattr_t attr;
  int errnum = pthread_condattr_init(&attr);
  if (errnum) return errnum;
  errnum = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  if (!errnum) errnum = pthread_cond_init(cond, &attr);
  pthread_condattr_destroy(&attr);
  return errnum;
}

int os_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline) {
  return pthread_cond_timedwait(cond, mutex, deadline);
}

#endif

unsigned os_cpu_count(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : (unsigned)n;
}

uint64_t os_cpu_time_ns(void) { return os_clock_ns(CLOCK_PROCESS_CPUTIME_ID); }
