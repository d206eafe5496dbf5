/* SPDX-License-Identifier: Apache-2.0 */
/* event.h - waking a thread that waits for descriptors, and waiting for them. */
#ifndef LODE_PLATFORM_EVENT_H
#define LODE_PLATFORM_EVENT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

/* A flag that can be waited for: POLLIN on `in`. An eventfd, or a pipe. */
typedef struct os_event {
  int in, out;
} os_event;
#define OS_EVENT_NONE ((os_event){-1, -1})

int os_event_open(os_event *event); /* -1 and errno; then it is OS_EVENT_NONE */
void os_event_set(os_event event);  /* from any thread, and in a signal handler; keeps errno */
void os_event_clear(os_event event);
void os_event_close(os_event *event);

/* poll(). */
int os_poll(struct pollfd *fds, size_t n, int wait_ms);
/* A file without a name, for bytes that outlive the process that writes them; memory, if the system has such files. */
int os_nameless_file(void);

#endif
