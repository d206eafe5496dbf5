/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h - what pthreads leave to each system: clocks of condition variables, fairness of locks, signals. */
#ifndef LODE_PLATFORM_THREAD_H
#define LODE_PLATFORM_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Starts a thread of the library inside somebody else's program: it blocks signals, which are for the program's
 * threads, except those of a fault, which go to the thread that causes it and must reach a handler. Returns 0 or an
 * errno. */
int os_thread_create(pthread_t *thread, void *(*body)(void *arg), void *arg);
/* A condition variable that waits by the monotonic clock, as os_deadline() does, so that setting the wall clock neither
 * ends a wait nor prolongs it. Returns 0 or an errno. */
__attribute__((warn_unused_result)) int os_cond_init(pthread_cond_t *cond);
/* For invariants of what is called under a lock: does a thread hold it? */
bool os_mutex_is_locked(pthread_mutex_t *mutex);
/* The time ms milliseconds from now, for os_cond_wait_until(). */
struct timespec os_deadline(uint64_t ms);
/* pthread_cond_timedwait() for a condition variable of os_cond_init(). */
int os_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *deadline);
/* Processors that are online; at least 1. */
unsigned os_cpu_count(void);
/* CPU time of the process. */
uint64_t os_cpu_time_ns(void);

#endif
