/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c - see fault.h. Each wrapper asks hit() whether it is its turn, and otherwise passes the call on. */
#include "support/fault.h"

#include "support/test.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_MUTE = 3, EXIT_FAILED = 4 }; /* of children */

static const os_calls *under;
static struct {
  fault_call call;
  uint64_t at; /* 0: none */
  bool for_good;
  fault_effect effect;
  bool disk_full_next; /* half a write was done: the next one fails */
} plan;
static uint64_t counts[FAULT_ANY + 1], sync_count, hits;

static const char *const names[] = {"open",      "close", "pread",     "pwrite",   "ftruncate", "fsync",
                                    "fdatasync", "fstat", "stat",      "unlink",   "rename",    "mkdir",
                                    "rmdir",     "lock",  "lock_held", "any call", "sync"};

const char *fault_call_name(fault_call call) { return names[call]; }

static bool moves_bytes(fault_call call) { return call == FAULT_PREAD || call == FAULT_PWRITE; }

/* Counts the call and says whether it is to fail, with errno set where the effect is an errno. */
static bool hit(fault_call call) {
  bool is_sync = call == FAULT_FSYNC || call == FAULT_FDATASYNC;
  counts[call]++;
  counts[FAULT_ANY]++;
  sync_count += is_sync;
  if (plan.at == 0) return false;
  bool concerned = plan.call == FAULT_ANY || plan.call == call || (plan.call == FAULT_SYNC && is_sync);
  uint64_t now = fault_count(plan.call);
  if (!concerned || (plan.for_good ? now < plan.at : now != plan.at)) return false;
  if (plan.effect == FAULT_SHORT && !moves_bytes(call)) return false;
  hits++;
  if (plan.effect == FAULT_EXIT) _exit(FAULT_EXIT_STATUS);
  errno = plan.effect == FAULT_ENOSPC ? ENOSPC : plan.effect == FAULT_EINTR ? EINTR : EIO;
  return true;
}

static int fault_open(const char *path, int flags, unsigned mode) {
  return hit(FAULT_OPEN) ? -1 : under->open(path, flags, mode);
}

static int fault_close(int fd) {
  bool fails = hit(FAULT_CLOSE);
  int saved = errno, rc = under->close(fd);
  if (!fails) return rc;
  errno = saved;
  return -1;
}

static ssize_t fault_pread(int fd, void *buf, size_t n, off_t off) {
  if (!hit(FAULT_PREAD)) return under->pread(fd, buf, n, off);
  return plan.effect == FAULT_SHORT ? under->pread(fd, buf, n > 1 ? n / 2 : n, off) : -1;
}

static ssize_t fault_pwrite(int fd, const void *buf, size_t n, off_t off) {
  bool fails = hit(FAULT_PWRITE);
  if (plan.disk_full_next) {
    plan.disk_full_next = false;
    errno = ENOSPC;
    return -1;
  }
  if (!fails) return under->pwrite(fd, buf, n, off);
  if (plan.effect == FAULT_ENOSPC && n > 1)
    plan.disk_full_next = true;
  else if (plan.effect != FAULT_SHORT)
    return -1;
  return under->pwrite(fd, buf, n > 1 ? n / 2 : n, off);
}

static int fault_ftruncate(int fd, off_t size) { return hit(FAULT_FTRUNCATE) ? -1 : under->ftruncate(fd, size); }
static int fault_fsync(int fd) { return hit(FAULT_FSYNC) ? -1 : under->fsync(fd); }
static int fault_fdatasync(int fd) { return hit(FAULT_FDATASYNC) ? -1 : under->fdatasync(fd); }
static int fault_fstat(int fd, struct stat *st) { return hit(FAULT_FSTAT) ? -1 : under->fstat(fd, st); }
static int fault_stat(const char *path, struct stat *st) { return hit(FAULT_STAT) ? -1 : under->stat(path, st); }
static int fault_open_below(int folder, const char *path, int flags, unsigned mode) {
  return hit(FAULT_OPEN) ? -1 : under->open_below(folder, path, flags, mode);
}
static int fault_lstat_at(int folder, const char *name, struct stat *st) {
  return hit(FAULT_STAT) ? -1 : under->lstat_at(folder, name, st);
}
static int fault_unlink_at(int folder, const char *name) {
  return hit(FAULT_UNLINK) ? -1 : under->unlink_at(folder, name);
}
static int fault_rename_at(int from_folder, const char *from, int to_folder, const char *to) {
  return hit(FAULT_RENAME) ? -1 : under->rename_at(from_folder, from, to_folder, to);
}
static int fault_mkdir_at(int folder, const char *name, unsigned mode) {
  return hit(FAULT_MKDIR) ? -1 : under->mkdir_at(folder, name, mode);
}
static int fault_rmdir_at(int folder, const char *name) {
  return hit(FAULT_RMDIR) ? -1 : under->rmdir_at(folder, name);
}
static int fault_unlink(const char *path) { return hit(FAULT_UNLINK) ? -1 : under->unlink(path); }
static int fault_rename(const char *from, const char *to) { return hit(FAULT_RENAME) ? -1 : under->rename(from, to); }
static int fault_mkdir(const char *path, unsigned mode) { return hit(FAULT_MKDIR) ? -1 : under->mkdir(path, mode); }
static int fault_rmdir(const char *path) { return hit(FAULT_RMDIR) ? -1 : under->rmdir(path); }

static int fault_lock(int fd, short type, off_t start, off_t len) {
  return hit(FAULT_LOCK) ? -1 : under->lock(fd, type, start, len);
}

static int fault_lock_held(int fd, short type, off_t start, off_t len) {
  return hit(FAULT_LOCK_HELD) ? -1 : under->lock_held(fd, type, start, len);
}

static uint64_t fault_now_ns(void) { return under->now_ns(); }
static void fault_sleep_us(uint64_t us) { under->sleep_us(us); }

static const os_calls table = {
    .open = fault_open,
    .close = fault_close,
    .pread = fault_pread,
    .pwrite = fault_pwrite,
    .ftruncate = fault_ftruncate,
    .fsync = fault_fsync,
    .fdatasync = fault_fdatasync,
    .fstat = fault_fstat,
    .stat = fault_stat,
    .open_below = fault_open_below,
    .lstat_at = fault_lstat_at,
    .unlink_at = fault_unlink_at,
    .rename_at = fault_rename_at,
    .mkdir_at = fault_mkdir_at,
    .rmdir_at = fault_rmdir_at,
    .unlink = fault_unlink,
    .rename = fault_rename,
    .mkdir = fault_mkdir,
    .rmdir = fault_rmdir,
    .lock = fault_lock,
    .lock_held = fault_lock_held,
    .now_ns = fault_now_ns,
    .sleep_us = fault_sleep_us,
};

static int no_sync(int fd) {
  (void)fd;
  return 0;
}

void fault_no_sync(void) {
  static os_calls unsynced;
  unsynced = os_real;
  unsynced.fsync = unsynced.fdatasync = no_sync;
  os_api = &unsynced;
}

void fault_install(const os_calls *below) {
  under = below;
  os_api = &table;
  fault_set(FAULT_ANY, 0, false, FAULT_EIO);
}

void fault_uninstall(void) {
  if (os_api == &table) os_api = under;
}

void fault_set(fault_call call, uint64_t at, bool for_good, fault_effect effect) {
  plan.call = call;
  plan.at = at;
  plan.for_good = for_good && effect != FAULT_EINTR;
  plan.effect = effect;
  plan.disk_full_next = false;
  memset(counts, 0, sizeof counts);
  sync_count = hits = 0;
}

void fault_clear(void) {
  plan.at = 0;
  plan.disk_full_next = false;
}

uint64_t fault_count(fault_call call) { return call == FAULT_SYNC ? sync_count : counts[call]; }
uint64_t fault_hits(void) { return hits; }

/* ---- A child ---- */

static int work_in_child(fault_work *work, void *ctx, fault_call call, fault_effect effect, int to) {
  lode_error err = {0};
  lode_status st = work(ctx, &err);
  uint64_t calls = fault_count(call);
  fault_uninstall();
  if (st == LODE_FULL && effect == FAULT_ENOSPC) return 0;
  if (st != LODE_OK) fprintf(stderr, "%s\n", err.text);
  if (st != LODE_OK) return EXIT_FAILED;
  return write(to, &calls, sizeof calls) == sizeof calls ? 0 : EXIT_MUTE;
}

uint64_t fault_in_child(fault_work *work, void *ctx, fault_call call, uint64_t n, fault_effect effect) {
  int ends[2], status;
  uint64_t calls = 0;
  CHECK(pipe(ends) == 0);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    fault_install(&os_real);
    fault_set(call, n, true, effect);
    _exit(work_in_child(work, ctx, call, effect, ends[1]));
  }
  close(ends[1]);
  if (read(ends[0], &calls, sizeof calls) != sizeof calls) calls = 0;
  close(ends[0]);
  CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
  CHECKF(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == FAULT_EXIT_STATUS,
         "call %llu: it failed of something else (status %d)", (unsigned long long)n, WEXITSTATUS(status));
  return calls;
}

/* ---- Memory ---- */

static sqlite3_mem_methods sqlite_mem;
static atomic_ullong alloc_count, alloc_hits, alloc_at;
static atomic_bool alloc_for_good;

static bool alloc_allowed(void) {
  uint64_t now = atomic_fetch_add(&alloc_count, 1) + 1, at = atomic_load(&alloc_at);
  bool fails = at != 0 && (atomic_load(&alloc_for_good) ? now >= at : now == at);
  if (fails) atomic_fetch_add(&alloc_hits, 1);
  return !fails;
}

static void *sqlite_mem_malloc(int n) { return alloc_allowed() ? sqlite_mem.xMalloc(n) : NULL; }
static void *sqlite_mem_realloc(void *p, int n) { return alloc_allowed() ? sqlite_mem.xRealloc(p, n) : NULL; }

void fault_alloc_install(void) {
  if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_mem) != SQLITE_OK) abort();
  sqlite3_mem_methods ours = sqlite_mem;
  ours.xMalloc = sqlite_mem_malloc;
  ours.xRealloc = sqlite_mem_realloc;
  if (sqlite3_config(SQLITE_CONFIG_MALLOC, &ours) != SQLITE_OK) abort(); /* SQLite was in use already */
  mem_alloc_hook = alloc_allowed;
}

void fault_alloc_set(uint64_t at, bool for_good) {
  atomic_store(&alloc_at, at);
  atomic_store(&alloc_for_good, for_good);
  atomic_store(&alloc_count, 0);
  atomic_store(&alloc_hits, 0);
}

uint64_t fault_alloc_count(void) { return atomic_load(&alloc_count); }
uint64_t fault_alloc_hits(void) { return atomic_load(&alloc_hits); }
