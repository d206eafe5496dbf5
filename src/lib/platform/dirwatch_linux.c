/* SPDX-License-Identifier: Apache-2.0 */
/* dirwatch_linux.c - see dirwatch.h: inotify. */
#include "platform/dirwatch.h"

#include "platform/platform_internal.h"

#if OS_LINUX

#include <poll.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { DIRWATCH_BYTES = 64 * 1024 };
#define DIRWATCH_MASK                                                                                                  \
  (IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR | IN_DONT_FOLLOW |    \
   IN_EXCL_UNLINK)

struct os_dirwatch {
  _Alignas(struct inotify_event) char events[DIRWATCH_BYTES];
  size_t at, len;
  int fd;
};

os_dirwatch *os_dirwatch_open(void) {
  os_dirwatch *w = malloc(sizeof *w);
  if (!w) return NULL;
  w->at = w->len = 0;
  w->fd = os_above_stdio(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (w->fd >= 0) return w;
  free(w);
  return NULL;
}

void os_dirwatch_close(os_dirwatch *w) {
  if (!w) return;
  close(w->fd);
  free(w);
}

int os_dirwatch_add(os_dirwatch *w, const char *path) { return inotify_add_watch(w->fd, path, DIRWATCH_MASK); }

static os_dirwatch_event dirwatch_translate(const struct inotify_event *e) {
  os_dirwatch_event event = {.dir = e->wd, .name = e->len ? e->name : "", .what = 0};
  if (e->mask & (IN_CREATE | IN_MOVED_TO)) event.what |= OS_DIRWATCH_NEW;
  if (e->mask & IN_ISDIR) event.what |= OS_DIRWATCH_DIR;
  if (e->mask & IN_ATTRIB) event.what |= OS_DIRWATCH_ATTRIB;
  if (e->mask & IN_IGNORED) event.what |= OS_DIRWATCH_END;
  if (e->mask & IN_Q_OVERFLOW) event.what |= OS_DIRWATCH_LOST;
  return event;
}

int os_dirwatch_next(os_dirwatch *w, os_dirwatch_event *event) {
  if (w->at + sizeof(struct inotify_event) > w->len) {
    ssize_t got = OS_RETRY(read(w->fd, w->events, sizeof w->events));
    w->at = w->len = 0;
    if (got <= 0) return got < 0 && errno != EAGAIN ? -1 : 0;
    w->len = (size_t)got;
  }
  const struct inotify_event *e = (const struct inotify_event *)(const void *)(w->events + w->at);
  w->at += sizeof *e + e->len;
  *event = dirwatch_translate(e);
  return 1;
}

int os_dirwatch_wait(os_dirwatch *w, int wait_ms) {
  struct pollfd fd = {.fd = w->fd, .events = POLLIN};
  return w->at < w->len ? 1 : poll(&fd, 1, wait_ms);
}

#endif
