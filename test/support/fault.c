/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c - see fault.h. The layer asks hit() whether it is the call's turn, and otherwise passes it on. */
#include "support/fault.h"

#include "support/test.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_MUTE = 3, EXIT_FAILED = 4 }; /* of children */

static struct {
  fault_call call;
  uint64_t at; /* 0: none */
  bool for_good;
  fault_effect effect;
  bool disk_full_next; /* half a write was done: the next one fails */
} plan;
static atomic_ullong counts[FAULT_ANY + 1]; /* also of calls from several threads, if none is to fail */
static uint64_t sync_count, hits;
static int64_t clock_ms;

const char *fault_call_name(fault_call call) {
  return call == FAULT_ANY ? "any call" : call == FAULT_SYNC ? "sync" : oscall_kind_name((oscall_kind)call);
}

static bool moves_bytes(fault_call call) { return call == FAULT_PREAD || call == FAULT_PWRITE; }

/* Counts the call and says whether it is to fail, with errno set where the effect is an errno. */
static bool hit(fault_call call) {
  bool is_sync = call == FAULT_FSYNC || call == FAULT_FDATASYNC;
  counts[call]++;
  counts[FAULT_ANY]++;
  if (is_sync) sync_count++;
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

static int64_t half(oscall *c) {
  if (c->n > 1) c->n /= 2;
  return oscall_pass(c);
}

/* close does what it should also when it says that it failed. */
static int64_t failing(oscall *c) {
  int saved = errno;
  if (plan.effect == FAULT_SHORT) return half(c);
  if (c->kind == OSCALL_CLOSE) (void)oscall_pass(c);
  if (c->kind == OSCALL_PWRITE && plan.effect == FAULT_ENOSPC && c->n > 1) {
    plan.disk_full_next = true;
    return half(c);
  }
  errno = saved;
  return -1;
}

static int64_t fault_layer(oscall *c) {
  if (c->kind == OSCALL_WALL) return oscall_pass(c) + clock_ms;
  if (c->kind == OSCALL_NOW || c->kind == OSCALL_SLEEP) return oscall_pass(c);
  bool fails = hit((fault_call)c->kind);
  if (c->kind == OSCALL_PWRITE && plan.disk_full_next) {
    plan.disk_full_next = false;
    errno = ENOSPC;
    return -1;
  }
  return fails ? failing(c) : oscall_pass(c);
}

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

void fault_clock_set(int64_t ms) { clock_ms = ms; }

void fault_install(const os_calls *under) {
  clock_ms = 0;
  oscall_push(fault_layer, under);
  fault_set(FAULT_ANY, 0, false, FAULT_EIO);
}

void fault_uninstall(void) { oscall_pop(fault_layer); }

void fault_set(fault_call call, uint64_t at, bool for_good, fault_effect effect) {
  plan.call = call;
  plan.at = at;
  plan.for_good = for_good && effect != FAULT_EINTR;
  plan.effect = effect;
  plan.disk_full_next = false;
  for (size_t i = 0; i <= FAULT_ANY; i++) atomic_store(&counts[i], 0);
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
