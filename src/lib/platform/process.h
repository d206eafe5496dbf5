/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - starting programs, limits, and waiting for them. os/proc.h is what the rest of the code uses for children
 * that do dangerous work. Functions return -1 and errno. */
#ifndef LODE_PLATFORM_PROCESS_H
#define LODE_PLATFORM_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OS_SPAWN_FD 3 /* the child's end of the socket pair */

typedef struct os_spawn_options {
  const char *path;        /* the program; PATH is not searched */
  const char *const *argv; /* with argv[0]; ends with NULL */
  uint64_t memory_bytes;   /* RLIMIT_AS; 0: unchanged */
  uint32_t cpu_seconds;    /* RLIMIT_CPU of the whole process; 0: unchanged */
  bool no_core;            /* RLIMIT_CORE 0 */
  bool no_new_privs;       /* where the system can */
  bool quiet;              /* standard error is /dev/null too */
} os_spawn_options;

/* Starts a program with one end of a socket pair as descriptor 3, /dev/null as standard input and output, and no other
 * descriptor of ours except standard error, which is /dev/null if we have none. *fd is our end, CLOEXEC and above 2.
 * Returns the pid. A program that cannot be executed is an error here (*refused is set), not a child that dies. */
pid_t os_spawn(const os_spawn_options *options, int *fd, bool *refused);
/* Starts a program that is searched in PATH and runs beside us, with our standard streams except those given: `in` is
 * its standard input, `out` its standard output and error; -1: ours; OS_NULL: /dev/null. Returns the pid. */
#define OS_NULL (-2)
pid_t os_start(char *const *argv, int in, int out);

typedef struct os_exit {
  int signal; /* the signal that ended it, or 0 */
  int code;   /* its exit code if no signal did */
} os_exit;
/* 1: it has ended, and is reaped; 0: not yet (`wait` false only); -1: there is no such child. */
int os_wait(pid_t pid, bool wait, os_exit *end);
/* Both ends CLOEXEC. */
int os_pipe(int ends[2]);

/* Opens /dev/null for standard streams that the caller closed, so that their numbers are not reused; using them stays
 * an error. To be called first in main(). */
void os_reserve_stdio(void);

/* Limits of this process. */
void os_limit_memory(uint64_t bytes);
void os_raise_fd_limit(void);
/* SIGPROF after this much CPU time of the process; 0: never. */
void os_cpu_alarm(uint32_t ms);

/* The size of the terminal; false: it is none. */
bool os_terminal_size(int fd, unsigned *rows, unsigned *columns);
/* Keys as they are typed: not shown, not gathered to lines, no signals made of them. The state before is remembered, at
 * the first call alone; os_keys_end() gives it back, from a signal handler too. */
bool os_keys_begin(int fd);
void os_keys_end(int fd);
/* 1: there is input, or its end; 0: none within `timeout_ms` (-1: wait) or before a signal; -1: it cannot be waited
 * for. */
int os_wait_input(int fd, int timeout_ms);
/* Bytes that the user may still write on the file system at path; false: unknown. */
bool os_disk_free(const char *path, uint64_t *bytes);

#endif
