/* SPDX-License-Identifier: Apache-2.0 */
/* dirwatch.h - which names of directories change: inotify on Linux, elsewhere by looking again and again. */
#ifndef LODE_PLATFORM_DIRWATCH_H
#define LODE_PLATFORM_DIRWATCH_H

#include <stdbool.h>
#include <stddef.h>

typedef struct os_dirwatch os_dirwatch;

enum {
  OS_DIRWATCH_NEW = 1,    /* the name is new in its directory */
  OS_DIRWATCH_DIR = 2,    /* it is a directory */
  OS_DIRWATCH_ATTRIB = 4, /* only its owner, mode or times changed */
  OS_DIRWATCH_END = 8,    /* no name: the directory is gone and no longer watched */
  OS_DIRWATCH_LOST = 16,  /* no directory: anything may have changed */
};

typedef struct os_dirwatch_event {
  int dir;          /* as os_dirwatch_add() returned it */
  const char *name; /* valid until the next call */
  unsigned what;
} os_dirwatch_event;

os_dirwatch *os_dirwatch_open(void); /* NULL and errno */
void os_dirwatch_close(os_dirwatch *watch);
/* Watches one directory, not through a link: a small number, the same if it is watched already. -1 and errno: ENOSPC or
 * ENOMEM if no more can be watched. */
int os_dirwatch_add(os_dirwatch *watch, const char *path);
/* 1: an event; 0: there is none now; -1 and errno. Never waits. */
int os_dirwatch_next(os_dirwatch *watch, os_dirwatch_event *event);
/* Waits until there are events, at most wait_ms: 1, 0, or -1 and EINTR. */
int os_dirwatch_wait(os_dirwatch *watch, int wait_ms);

#endif
