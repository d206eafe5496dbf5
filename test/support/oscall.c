/* SPDX-License-Identifier: Apache-2.0 */
/* oscall.c - see oscall.h. The table at the end makes a value of each call; oscall_do() makes a call of it again. */
#include "support/oscall.h"

#include <stdio.h>
#include <string.h>

enum { MAX_LAYERS = 8, MAX_FDS = 4096 };

static oscall_layer *layers[MAX_LAYERS];
static int n_layers;
static const os_calls *bottom;
static const os_calls table;
static char fd_paths[MAX_FDS][OSCALL_PATH];

static const char *const kind_names[] = {"open",  "close", "read",   "write",  "truncate", "fsync", "sync", "fstat",
                                         "chmod", "stat",  "unlink", "rename", "mkdir",    "rmdir", "lock", "locked",
                                         "list",  "birth", "spawn",  "wall",   "now",      "sleep"};

const char *oscall_kind_name(oscall_kind kind) { return kind_names[kind]; }

/* ---- Paths ---- */

static const char *path_of_fd(int fd) { return fd >= 0 && fd < MAX_FDS ? fd_paths[fd] : ""; }

static void join(const oscall *c, int dir, const char *name, char path[OSCALL_PATH]) {
  const char *folder = c->in_dir && dir != AT_FDCWD ? path_of_fd(dir) : NULL;
  int n = !folder                  ? snprintf(path, OSCALL_PATH, "%s", name)
          : !*folder               ? snprintf(path, OSCALL_PATH, "%s", "")
          : strcmp(name, ".") == 0 ? snprintf(path, OSCALL_PATH, "%s", folder)
                                   : snprintf(path, OSCALL_PATH, "%s/%s", folder, name);
  if (n >= OSCALL_PATH) path[0] = '\0';
}

void oscall_path(const oscall *c, char path[OSCALL_PATH]) {
  if (c->path)
    join(c, c->dir, c->path, path);
  else
    snprintf(path, OSCALL_PATH, "%s", path_of_fd(c->fd));
}

void oscall_to_path(const oscall *c, char path[OSCALL_PATH]) { join(c, c->to_dir, c->to, path); }

/* ---- Layers ---- */

void oscall_push(oscall_layer *layer, const os_calls *under) {
  if (under != &table) {
    bottom = under;
    n_layers = 0;
  }
  if (n_layers < MAX_LAYERS) layers[n_layers++] = layer;
  os_api = &table;
}

void oscall_pop(oscall_layer *layer) {
  int at = n_layers;
  while (at > 0 && layers[at - 1] != layer) at--;
  if (at == 0) return;
  n_layers = at - 1;
  if (n_layers == 0 && os_api == &table) os_api = bottom;
}

static int64_t do_named(const os_calls *os, const oscall *c) {
  switch (c->kind) {
    case OSCALL_OPEN:
      return c->in_dir ? os->open_below(c->dir, c->path, c->flags, c->mode) : os->open(c->path, c->flags, c->mode);
    case OSCALL_STAT: return c->in_dir ? os->lstat_at(c->dir, c->path, c->st) : os->stat(c->path, c->st);
    case OSCALL_UNLINK: return c->in_dir ? os->unlink_at(c->dir, c->path) : os->unlink(c->path);
    case OSCALL_RENAME:
      return c->in_dir ? os->rename_at(c->dir, c->path, c->to_dir, c->to) : os->rename(c->path, c->to);
    case OSCALL_MKDIR: return c->in_dir ? os->mkdir_at(c->dir, c->path, c->mode) : os->mkdir(c->path, c->mode);
    default: return c->in_dir ? os->rmdir_at(c->dir, c->path) : os->rmdir(c->path);
  }
}

static int64_t oscall_do(const os_calls *os, const oscall *c) {
  switch (c->kind) {
    case OSCALL_CLOSE: return os->close(c->fd);
    case OSCALL_PREAD: return os->pread(c->fd, c->into, c->n, c->off);
    case OSCALL_PWRITE: return os->pwrite(c->fd, c->from, c->n, c->off);
    case OSCALL_FTRUNCATE: return os->ftruncate(c->fd, c->off);
    case OSCALL_FSYNC: return os->fsync(c->fd);
    case OSCALL_FDATASYNC: return os->fdatasync(c->fd);
    case OSCALL_FSTAT: return os->fstat(c->fd, c->st);
    case OSCALL_FCHMOD: return os->fchmod(c->fd, c->mode);
    case OSCALL_LOCK: return os->lock(c->fd, c->lock, c->off, c->len);
    case OSCALL_LOCK_HELD: return os->lock_held(c->fd, c->lock, c->off, c->len);
    case OSCALL_DIR_NEXT: return os->dir_next(c->list, c->name, c->what);
    case OSCALL_BIRTH: return os->birth(c->path, c->birth);
    case OSCALL_SPAWN:
      return c->options ? os->spawn(c->options, c->fd_out, c->refused) : os->start(c->argv, c->in, c->out);
    case OSCALL_WALL: return (int64_t)os->wall_ms();
    case OSCALL_NOW: return (int64_t)os->now_ns();
    case OSCALL_SLEEP: os->sleep_us(c->us); return 0;
    default: return do_named(os, c);
  }
}

int64_t oscall_pass(oscall *c) {
  if (c->level == 0) return oscall_do(bottom, c);
  c->level--;
  int64_t rc = layers[c->level](c);
  c->level++;
  return rc;
}

static int64_t from_top(oscall c) {
  c.level = n_layers;
  return oscall_pass(&c);
}

/* Under its path until a later file has the number: a folder may be closed by closedir. */
static int opened(oscall c) {
  char path[OSCALL_PATH];
  oscall_path(&c, path);
  int64_t fd = from_top(c);
  if (fd >= 0 && fd < MAX_FDS) memcpy(fd_paths[fd], path, strlen(path) + 1);
  return (int)fd;
}

/* ---- The table ---- */

#define CALL(...) from_top((oscall){__VA_ARGS__})

static int call_open(const char *path, int flags, unsigned mode) {
  return opened((oscall){OSCALL_OPEN, .path = path, .flags = flags, .mode = mode});
}
static int call_open_below(int dir, const char *path, int flags, unsigned mode) {
  return opened((oscall){OSCALL_OPEN, .in_dir = true, .dir = dir, .path = path, .flags = flags, .mode = mode});
}
static int call_close(int fd) { return (int)CALL(OSCALL_CLOSE, .fd = fd); }
static ssize_t call_pread(int fd, void *buf, size_t n, off_t off) {
  return (ssize_t)CALL(OSCALL_PREAD, .fd = fd, .into = buf, .n = n, .off = off);
}
static ssize_t call_pwrite(int fd, const void *buf, size_t n, off_t off) {
  return (ssize_t)CALL(OSCALL_PWRITE, .fd = fd, .from = buf, .n = n, .off = off);
}
static int call_ftruncate(int fd, off_t size) { return (int)CALL(OSCALL_FTRUNCATE, .fd = fd, .off = size); }
static int call_fsync(int fd) { return (int)CALL(OSCALL_FSYNC, .fd = fd); }
static int call_fdatasync(int fd) { return (int)CALL(OSCALL_FDATASYNC, .fd = fd); }
static int call_fstat(int fd, struct stat *st) { return (int)CALL(OSCALL_FSTAT, .fd = fd, .st = st); }
static int call_fchmod(int fd, unsigned mode) { return (int)CALL(OSCALL_FCHMOD, .fd = fd, .mode = mode); }
static int call_stat(const char *path, struct stat *st) { return (int)CALL(OSCALL_STAT, .path = path, .st = st); }
static int call_lstat_at(int dir, const char *name, struct stat *st) {
  return (int)CALL(OSCALL_STAT, .in_dir = true, .dir = dir, .path = name, .st = st);
}
static int call_unlink(const char *path) { return (int)CALL(OSCALL_UNLINK, .path = path); }
static int call_unlink_at(int dir, const char *name) {
  return (int)CALL(OSCALL_UNLINK, .in_dir = true, .dir = dir, .path = name);
}
static int call_rename(const char *from, const char *to) { return (int)CALL(OSCALL_RENAME, .path = from, .to = to); }
static int call_rename_at(int from_dir, const char *from, int to_dir, const char *to) {
  return (int)CALL(OSCALL_RENAME, .in_dir = true, .dir = from_dir, .path = from, .to_dir = to_dir, .to = to);
}
static int call_mkdir(const char *path, unsigned mode) { return (int)CALL(OSCALL_MKDIR, .path = path, .mode = mode); }
static int call_mkdir_at(int dir, const char *name, unsigned mode) {
  return (int)CALL(OSCALL_MKDIR, .in_dir = true, .dir = dir, .path = name, .mode = mode);
}
static int call_rmdir(const char *path) { return (int)CALL(OSCALL_RMDIR, .path = path); }
static int call_rmdir_at(int dir, const char *name) {
  return (int)CALL(OSCALL_RMDIR, .in_dir = true, .dir = dir, .path = name);
}
static int call_lock(int fd, short type, off_t start, off_t len) {
  return (int)CALL(OSCALL_LOCK, .fd = fd, .lock = type, .off = start, .len = len);
}
static int call_lock_held(int fd, short type, off_t start, off_t len) {
  return (int)CALL(OSCALL_LOCK_HELD, .fd = fd, .lock = type, .off = start, .len = len);
}
static int call_dir_next(os_dir *dir, const char **name, os_kind *kind) {
  return (int)CALL(OSCALL_DIR_NEXT, .list = dir, .name = name, .what = kind);
}
static int call_birth(const char *path, os_birth *out) { return (int)CALL(OSCALL_BIRTH, .path = path, .birth = out); }
static pid_t call_spawn(const os_spawn_options *options, int *fd, bool *refused) {
  *fd = -1;
  *refused = false;
  return (pid_t)CALL(OSCALL_SPAWN, .options = options, .fd_out = fd, .refused = refused);
}
static pid_t call_start(char *const *argv, int in, int out) {
  return (pid_t)CALL(OSCALL_SPAWN, .argv = argv, .in = in, .out = out);
}
static uint64_t call_wall_ms(void) { return (uint64_t)CALL(.kind = OSCALL_WALL); }
static uint64_t call_now_ns(void) { return (uint64_t)CALL(.kind = OSCALL_NOW); }
static void call_sleep_us(uint64_t us) { (void)CALL(OSCALL_SLEEP, .us = us); }

static const os_calls table = {
    .open = call_open,
    .close = call_close,
    .pread = call_pread,
    .pwrite = call_pwrite,
    .ftruncate = call_ftruncate,
    .fsync = call_fsync,
    .fdatasync = call_fdatasync,
    .fstat = call_fstat,
    .fchmod = call_fchmod,
    .stat = call_stat,
    .open_below = call_open_below,
    .lstat_at = call_lstat_at,
    .unlink_at = call_unlink_at,
    .rename_at = call_rename_at,
    .mkdir_at = call_mkdir_at,
    .rmdir_at = call_rmdir_at,
    .unlink = call_unlink,
    .rename = call_rename,
    .mkdir = call_mkdir,
    .rmdir = call_rmdir,
    .lock = call_lock,
    .lock_held = call_lock_held,
    .dir_next = call_dir_next,
    .birth = call_birth,
    .spawn = call_spawn,
    .start = call_start,
    .wall_ms = call_wall_ms,
    .now_ns = call_now_ns,
    .sleep_us = call_sleep_us,
};
