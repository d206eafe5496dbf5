/* SPDX-License-Identifier: Apache-2.0 */
/* sim_world.c - what else a simulated process sees of the system, decided by the seed; see sim.h.
 *
 * Random numbers, process ids and temporary folders are not asked of os_api. The linker redirects those calls to here
 * (-Wl,--wrap in mk/test.mk, for test_simulator alone).
 */
#include "support/sim.h"
#include "support/test.h"

#include <dirent.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { LISTINGS = 4, ENTRIES = 500, FIRST_PID = 10000 };

/* ---- Functions replaced ---- */

/* Absent from programs that are linked without --wrap. */
extern int __real_os_random(void *buf, size_t n, bool now) __attribute__((weak));
extern pid_t __real_getpid(void) __attribute__((weak));
extern char *__real_mkdtemp(char *path) __attribute__((weak));
int __wrap_os_random(void *buf, size_t n, bool now);
pid_t __wrap_getpid(void);
char *__wrap_mkdtemp(char *path);

static pid_t pid;

int __wrap_os_random(void *buf, size_t n, bool now) {
  if (sim_me < 0) return __real_os_random(buf, n, now);
  for (size_t i = 0; i < n; i++) ((unsigned char *)buf)[i] = (unsigned char)sim_random();
  return 0;
}

pid_t __wrap_getpid(void) { return sim_me < 0 ? __real_getpid() : pid; }

char *__wrap_mkdtemp(char *path) {
  if (sim_me < 0) return __real_mkdtemp(path);
  char *end = path + strlen(path) - 6;
  for (int i = 0; i < 6; i++) end[i] = (char)('a' + sim_below(26));
  return os_api->mkdir(path, 0700) == 0 ? path : NULL;
}

/* ---- A process begins ---- */

void sim_world_enter(uint64_t starts) {
  char tmp[sizeof sim->folder + 8];
  snprintf(tmp, sizeof tmp, "%s/tmp", sim->folder);
  CHECK(setenv("TMPDIR", tmp, 1) == 0);
  pid = FIRST_PID + (pid_t)starts;
  CHECK(sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, (int)(sim_random() | 1), NULL) == SQLITE_OK);
}

/* ---- Folders are listed in the order of names ---- */

typedef struct entry {
  char name[256];
  os_kind kind;
} entry;

typedef struct listing {
  const os_dir *dir;
  entry e[ENTRIES];
  size_t n, at;
} listing;

static int by_name(const void *a, const void *b) { return strcmp(((const entry *)a)->name, ((const entry *)b)->name); }

/* A stream that stands at its beginning is a new one, maybe with the address of one that was closed. */
static bool is_new(os_dir *dir) { return telldir((DIR *)dir) == 0; }

static listing *listing_of(os_dir *dir) {
  static listing all[LISTINGS];
  static unsigned next;
  for (int i = 0; i < LISTINGS; i++)
    if (all[i].dir == dir) return &all[i];
  listing *l = &all[next++ % LISTINGS];
  l->dir = dir;
  return l;
}

static int64_t list_all(listing *l, oscall *c) {
  int64_t rc;
  l->n = l->at = 0;
  while ((rc = oscall_pass(c)) > 0) {
    CHECK(l->n < ENTRIES);
    snprintf(l->e[l->n].name, sizeof l->e[0].name, "%s", *c->name);
    l->e[l->n++].kind = *c->what;
  }
  qsort(l->e, l->n, sizeof l->e[0], by_name);
  return rc;
}

int64_t sim_world_list(oscall *c) {
  bool fresh = is_new(c->list);
  listing *l = listing_of(c->list);
  if (fresh && list_all(l, c) < 0) return -1;
  if (l->at == l->n) return 0;
  *c->name = l->e[l->at].name;
  *c->what = l->e[l->at].kind;
  l->at++;
  return 1;
}
