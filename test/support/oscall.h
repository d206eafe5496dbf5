/* SPDX-License-Identifier: Apache-2.0 */
/* oscall.h - every call of os_api as one value, for tests that stand between the library and the system.
 *
 * oscall_push() puts a layer in use. A layer is a function that gets each call, may look at it, change it, make it fail
 * (-1 and errno) or do it itself, and else hands it to the layer below with oscall_pass(). Below the last layer is a
 * table of calls: os_real, or what a test has put in its place. fault.h, simdisk.h and the simulator (sim.h) are
 * layers; this is the only place that lists the calls.
 *
 * Layers are pushed and popped while nobody else makes calls; calls themselves may come from any number of threads.
 */
#ifndef LODE_OSCALL_H
#define LODE_OSCALL_H

#include "os/os.h"
#include "platform/process.h"

typedef enum oscall_kind {
  OSCALL_OPEN, /* open, open_below */
  OSCALL_CLOSE,
  OSCALL_PREAD,
  OSCALL_PWRITE,
  OSCALL_FTRUNCATE,
  OSCALL_FSYNC,
  OSCALL_FDATASYNC,
  OSCALL_FSTAT,
  OSCALL_FCHMOD,
  OSCALL_STAT, /* stat, lstat_at */
  OSCALL_UNLINK,
  OSCALL_RENAME,
  OSCALL_MKDIR,
  OSCALL_RMDIR,
  OSCALL_LOCK,
  OSCALL_LOCK_HELD,
  OSCALL_DIR_NEXT,
  OSCALL_BIRTH,
  OSCALL_SPAWN, /* spawn, start */
  OSCALL_WALL,
  OSCALL_NOW,
  OSCALL_SLEEP,
  OSCALL_KINDS
} oscall_kind;

typedef struct oscall {
  oscall_kind kind;
  int fd;          /* of calls on a descriptor */
  bool in_dir;     /* names are relative to dir and to_dir: open_below, *_at */
  int dir, to_dir; /* may be AT_FDCWD */
  const char *path, *to;
  int flags; /* of open */
  unsigned mode;
  void *into;       /* of pread */
  const void *from; /* of pwrite */
  size_t n;
  off_t off, len; /* position, new size, or range of a lock */
  short lock;
  struct stat *st;
  uint64_t us;  /* of sleep_us */
  os_dir *list; /* of dir_next, with name and what */
  const char **name;
  os_kind *what;
  os_birth *birth;
  const os_spawn_options *options; /* of spawn, with refused; fd_out is the socket */
  int *fd_out;
  bool *refused;
  char *const *argv; /* of start, with in and out */
  int in, out;
  int level; /* for oscall_pass() */
} oscall;

typedef int64_t oscall_layer(oscall *c);

/* `under` is os_api, or a table that replaces it and all layers. */
void oscall_push(oscall_layer *layer, const os_calls *under);
/* Takes the layer and those above it away; nothing happens if it is not in use. */
void oscall_pop(oscall_layer *layer);
/* To be called by layers only. */
int64_t oscall_pass(oscall *c);

const char *oscall_kind_name(oscall_kind kind);
/* The file that a call is about, as an absolute path if it was opened by one; "" if it is not known. */
enum { OSCALL_PATH = 1024 };
void oscall_path(const oscall *c, char path[OSCALL_PATH]);
void oscall_to_path(const oscall *c, char path[OSCALL_PATH]); /* the new name of a rename */

#endif
