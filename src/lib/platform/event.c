/* SPDX-License-Identifier: Apache-2.0 */
/* event.c - see event.h. */
#include "platform/event.h"

#include "platform/platform_internal.h"

#include <unistd.h>
#if OS_LINUX
#include <sys/eventfd.h>
#endif

static bool event_set_nonblocking(int fd) {
  int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

static int event_open_pipe(os_event *event) {
  int ends[2];
  if (os_sys_pipe(ends) != 0) return -1;
  event->in = os_above_stdio(ends[0]);
  event->out = os_above_stdio(ends[1]);
  if (event->in >= 0 && event->out >= 0 && event_set_nonblocking(event->in) && event_set_nonblocking(event->out))
    return 0;
  os_close_quietly(event->in);
  os_close_quietly(event->out);
  return -1;
}

int os_event_open(os_event *event) {
  *event = OS_EVENT_NONE;
#if OS_LINUX
  event->in = event->out = os_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  (void)event_open_pipe;
  return event->in < 0 ? -1 : 0;
#else
  int rc = event_open_pipe(event);
  if (rc < 0) *event = OS_EVENT_NONE;
  return rc;
#endif
}

void os_event_set(os_event event) {
  uint64_t one = 1;
  int errnum = errno;
  ssize_t put = write(event.out, &one, sizeof one);
  (void)put; /* full: the flag is set */
  errno = errnum;
}

void os_event_clear(os_event event) {
  uint64_t drained[64];
  int errnum = errno;
  /* an eventfd is cleared by one read of eight bytes; a pipe has at most as much as it holds */
  while (read(event.in, drained, sizeof drained) == (ssize_t)sizeof drained) continue;
  errno = errnum;
}

void os_event_close(os_event *event) {
  os_close_quietly(event->in);
  if (event->out != event->in) os_close_quietly(event->out);
  *event = OS_EVENT_NONE;
}

int os_poll(struct pollfd *fds, size_t n, int wait_ms) { return poll(fds, (nfds_t)n, wait_ms); }

int os_nameless_file(void) { return os_sys_nameless_file(); }
