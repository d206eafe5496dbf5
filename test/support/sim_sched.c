/* SPDX-License-Identifier: Apache-2.0 */
/* sim_sched.c - the scheduler and its table of system calls; see sim.h.
 *
 * Everybody waits for a semaphore of their own; whoever runs holds the turn, and hands it on in sim_step(). The parent
 * gets it when something must be done that a process cannot do itself: reap one that was killed, cut the power, start
 * processes, end. All shared state is written by the holder of the turn only.
 */
#include "base/crc32c.h"
#include "support/sim.h"
#include "support/sim_heap.h"
#include "support/simdisk.h"
#include "support/test.h"

#include <semaphore.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_NS UINT64_C(1700000000000000000) /* since 1970 */
enum { EVENTS = 40, PARENT = SIM_PROCS, QUIET_STEPS = 400000, EXIT_KILLED = 97 };

typedef enum request { WANT_NOTHING, WANT_REAP, WANT_CUT, WANT_QUIET } request;

typedef struct event {
  uint64_t step;
  int process;
  oscall_kind call;
  char name[40];
  uint64_t off, len;
  const char *what; /* a fault; NULL: none */
} event;

typedef struct process {
  pid_t pid;
  bool alive;
  uint64_t wake_ns, errors;
} process;

typedef struct scheduler {
  sim_machine machine;
  sem_t turn[SIM_PROCS + 1];
  process p[SIM_PROCS];
  request request;
  int by;          /* who requested */
  uint64_t starts; /* of processes */
  event events[EVENTS];
} scheduler;

static scheduler *all;
sim_machine *sim;
int sim_me = -1;

/* ---- Random numbers ---- */

uint64_t sim_random(void) {
  uint64_t x = sim->rng += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t sim_below(uint64_t n) { return (uint64_t)(((unsigned __int128)sim_random() * n) >> 64); }
bool sim_one_in(uint64_t n) { return n && sim_below(n) == 0; }

/* ---- Turns ---- */

uint64_t sim_errors(void) { return all->p[sim_me].errors; }
bool sim_is_quiet(void) { return sim->quiet_from != 0; }

static void wait_for_turn(int who) {
  while (sem_wait(&all->turn[who]) < 0) continue;
}

static void to_parent(request what) {
  all->request = what;
  all->by = sim_me;
  sem_post(&all->turn[PARENT]);
}

/* Any process that does not sleep; when all do, the clock goes on to the first that wakes. */
static int choose(void) {
  int awake[SIM_PROCS], n = 0, first = -1;
  for (int p = 0; p < SIM_PROCS; p++) {
    if (!all->p[p].alive) continue;
    if (all->p[p].wake_ns <= sim->clock_ns) awake[n++] = p;
    if (first < 0 || all->p[p].wake_ns < all->p[first].wake_ns) first = p;
  }
  if (n) return awake[sim_below((uint64_t)n)];
  if (first >= 0) sim->clock_ns = all->p[first].wake_ns;
  return first;
}

static void hand_on(void) {
  int next = choose();
  if (next == sim_me) return;
  sim->n.switches++;
  sem_post(&all->turn[next]);
  wait_for_turn(sim_me);
}

/* ---- The trace ---- */

static void mix(uint64_t value) { sim->n.trace = (sim->n.trace ^ value) * 0x9E3779B97F4A7C15u ^ (sim->n.trace >> 29); }

static void mix_bytes(const void *data, size_t n) { mix((uint64_t)n << 32 | crc32c_update(0, data, n)); }

/* Numbers of descriptors mean nothing, and folders are not the simulated disk's. */
static void mix_result(const oscall *c, int64_t rc) {
  mix(c->kind == OSCALL_OPEN ? rc >= 0 : (uint64_t)rc);
  if (c->kind == OSCALL_PREAD && rc > 0) mix_bytes(c->into, (size_t)rc);
  if (c->kind == OSCALL_PWRITE && rc > 0) mix_bytes(c->from, (size_t)rc);
  if (rc < 0 || !c->st || !S_ISREG(c->st->st_mode)) return;
  mix((uint64_t)c->st->st_size);
  mix((uint64_t)c->st->st_ino);
  mix((uint64_t)c->st->st_mtim.tv_sec * 1000000000 + (uint64_t)c->st->st_mtim.tv_nsec);
}

static event *record_event(oscall_kind what, const char *name, uint64_t off, uint64_t len) {
  event *e = &all->events[sim->n.steps % EVENTS];
  *e = (event){.step = sim->n.steps, .process = sim_me, .call = what, .off = off, .len = len};
  snprintf(e->name, sizeof e->name, "%s", name);
  mix((uint64_t)sim_me << 8 | what);
  mix(off);
  mix(len);
  mix_bytes(name, strlen(name));
  return e;
}

static void print_event(const event *e) {
  fprintf(stderr, "  %8llu  process %d  %-8s %-24s %8llu %6llu  %s\n", (unsigned long long)e->step, e->process,
          oscall_kind_name(e->call), e->name, (unsigned long long)e->off, (unsigned long long)e->len,
          e->what ? e->what : "");
}

/* With LODE_TEST_TRACE=1 every step is printed: for who looks into a failure. */
static void trace_event(const event *e) {
  static int wanted = -1;
  if (wanted < 0) wanted = getenv("LODE_TEST_TRACE") != NULL;
  if (wanted) print_event(e);
}

static _Noreturn void die(event *e) {
  e->what = "killed";
  trace_event(e);
  sim->n.kills++;
  sim_model_doubt(sim_me);
  to_parent(WANT_REAP);
  _exit(EXIT_KILLED);
}

static void cut_power(event *e) {
  e->what = "power cut";
  trace_event(e);
  sim->n.cuts++;
  to_parent(WANT_CUT);
  for (;;) pause();
}

/* Closing always succeeds, and so does unlocking lode.lock, as they do on local file systems. */
static int error_of(oscall_kind what, event *e) {
  bool grows = what == OSCALL_PWRITE || what == OSCALL_MKDIR;
  if (what == OSCALL_CLOSE || what == OSCALL_SLEEP) return 0;
  if (what == OSCALL_LOCK && e->len == F_UNLCK && strstr(e->name, "lode.lock")) return 0;
  if (sim_one_in(sim->short_in)) {
    e->what = "EINTR";
    return EINTR;
  }
  if (grows && sim->n.steps < sim->full_until) {
    e->what = "ENOSPC";
  } else if (sim_one_in(sim->error_in)) {
    e->what = grows && sim_one_in(2) ? "ENOSPC" : "EIO";
    if (e->what[1] == 'N' && sim_one_in(4)) sim->full_until = sim->n.steps + sim_below(300);
  } else {
    return 0;
  }
  sim->n.errors++;
  all->p[sim_me].errors++;
  return e->what[1] == 'N' ? ENOSPC : EIO;
}

/* One step: returns the errno with which the call fails, or 0. */
static int sim_step(oscall_kind what, const char *name, uint64_t off, uint64_t len) {
  sim->n.steps++;
  sim->clock_ns += sim->tick_ns;
  event *e = record_event(what, name, off, len);
  int error = 0;
  if (sim->quiet_from) {
    CHECKF(sim->n.steps < sim->quiet_from + QUIET_STEPS, "not done %d steps after the last fault", QUIET_STEPS);
  } else if (sim->n.steps >= sim->limit) {
    to_parent(WANT_QUIET);
    wait_for_turn(sim_me);
  } else if (sim_one_in(sim->kill_in)) {
    die(e);
  } else if (sim_one_in(sim->cut_in)) {
    cut_power(e);
  } else {
    error = error_of(what, e);
  }
  trace_event(e);
  if (what == OSCALL_SLEEP || sim_one_in(sim->switch_in)) hand_on();
  if (error) errno = error;
  return error;
}

/* ---- The layer of calls ---- */

/* The part of a path below the folder of the disk, which is "." itself. NULL: it is elsewhere. */
static const char *name_in_disk(const char *path) {
  size_t n = strlen(sim->folder);
  if (strncmp(path, sim->folder, n) != 0) return NULL;
  return path[n] == '/' ? path + n + 1 : path[n] == '\0' ? "." : NULL;
}

static int64_t sleep_for(oscall *c) {
  all->p[sim_me].wake_ns = sim->clock_ns + c->us * 1000;
  (void)sim_step(OSCALL_SLEEP, "", c->us, 0);
  return 0;
}

/* Calls that are not about the disk are no steps: what they find, and how many they are, differs in a replay. */
static int64_t sched_layer(oscall *c) {
  char path[OSCALL_PATH];
  if (c->kind == OSCALL_NOW) return (int64_t)(sim->clock_ns += 100);
  if (c->kind == OSCALL_WALL) return (int64_t)(sim->clock_ns / 1000000);
  if (c->kind == OSCALL_SLEEP) return sleep_for(c);
  if (c->kind == OSCALL_DIR_NEXT) return sim_world_list(c);
  oscall_path(c, path);
  const char *name = name_in_disk(path);
  if (!name) return oscall_pass(c);
  bool moves = c->kind == OSCALL_PREAD || c->kind == OSCALL_PWRITE;
  uint64_t len = c->kind == OSCALL_LOCK || c->kind == OSCALL_LOCK_HELD ? (uint64_t)c->lock : c->n;
  if (sim_step(c->kind, name, (uint64_t)c->off, len)) return -1;
  if (moves && c->n > 1 && !sim->quiet_from && sim_one_in(sim->short_in)) c->n /= 2;
  int64_t rc = oscall_pass(c);
  if (rc >= 0 && c->kind != OSCALL_CLOSE) errno = SIM_STALE_ERRNO; /* closing keeps it, as systems do */
  mix_result(c, rc);
  return rc;
}

/* Some file systems have coarse times. */
static uint64_t file_time_ns(void) { return sim->clock_ns / sim->mtime_ns * sim->mtime_ns; }

/* ---- The parent ---- */

static void print_events(void) {
  fprintf(stderr, "seed %llu, step %llu, trace 0x%016llx, SQLite %s; the last steps:\n", (unsigned long long)sim->seed,
          (unsigned long long)sim->n.steps, (unsigned long long)sim->n.trace, sqlite3_libversion());
  uint64_t from = sim->n.steps > EVENTS ? sim->n.steps - EVENTS + 1 : 1;
  for (uint64_t s = from; s <= sim->n.steps; s++) print_event(&all->events[s % EVENTS]);
  sim_lies_print();
  fprintf(stderr,
          "replay with this commit and this SQLite: LODE_TEST_SEED=%llu build/asan/test/test_simulator one_episode\n",
          (unsigned long long)sim->seed);
}

/* With LODE_TEST_KEEP=folder the disk is copied there. */
static void child_failed(int p) {
  int status = 0;
  const char *keep = getenv("LODE_TEST_KEEP");
  print_events();
  if (keep) test_copy_tree(sim->folder, keep);
  for (int i = 0; i < SIM_PROCS; i++)
    if (all->p[i].alive && i != p) kill(all->p[i].pid, SIGKILL);
  (void)waitpid(all->p[p].pid, &status, 0);
  if (WIFSIGNALED(status)) test_failed(__FILE__, __LINE__, "process %d died of signal %d", p, WTERMSIG(status));
  test_failed(__FILE__, __LINE__, "process %d ended with status %d", p, WEXITSTATUS(status));
}

static void start_process(int p, void (*body)(int p)) {
  pid_t parent = getpid();
  all->p[p] = (process){.alive = true};
  uint64_t number = all->starts++;
  fflush(NULL);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    sim_me = p;
    wait_for_turn(p);
    sim_world_enter(number);
    body(p);
    all->p[p].alive = false;
    to_parent(WANT_REAP);
    _exit(0);
  }
  all->p[p].pid = pid;
}

static void reap(int p, int *status) {
  while (waitpid(all->p[p].pid, status, 0) < 0) CHECK(errno == EINTR);
  all->p[p].alive = false;
}

/* Until a process asks for something; one that failed asks for nothing. */
static request wait_for_request(void) {
  for (;;) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    if (sem_timedwait(&all->turn[PARENT], &until) == 0) return all->request;
    for (int p = 0; p < SIM_PROCS; p++) {
      siginfo_t end = {0};
      if (!all->p[p].alive || waitid(P_PID, (id_t)all->p[p].pid, &end, WEXITED | WNOHANG | WNOWAIT) < 0) continue;
      if (end.si_pid && !(end.si_code == CLD_EXITED && end.si_status == EXIT_KILLED)) child_failed(p);
    }
  }
}

static void start_disk(void) {
  simdisk_start(sim->folder);
  simdisk_set_clock(file_time_ns);
  oscall_push(sim_lies_layer, os_api);
  oscall_push(sim_bugs_layer, os_api);
  oscall_push(sched_layer, os_api);
}

/* All are dead, and the disk holds one of the states that the cut may leave. */
static void power_cut(void (*body)(int p)) {
  char after[400];
  int status;
  for (int p = 0; p < SIM_PROCS; p++) {
    if (!all->p[p].alive) continue;
    kill(all->p[p].pid, SIGKILL);
    reap(p, &status);
  }
  sim_model_cut();
  sim_lies_cut();
  for (int p = 0; p < SIM_PROCS; p++) CHECK(sem_init(&all->turn[p], 1, 0) == 0);
  snprintf(after, sizeof after, "%s-after", sim->folder);
  simdisk_cut(sim_random(), after);
  simdisk_stop();
  test_remove_tree(sim->folder);
  CHECK(rename(after, sim->folder) == 0);
  start_disk();
  for (int p = 0; p < SIM_PROCS; p++) start_process(p, body);
}

static bool run_on(void (*body)(int p)) {
  int next = choose(), status;
  if (next < 0) return false;
  sem_post(&all->turn[next]);
  switch (wait_for_request()) {
    case WANT_REAP:
      reap(all->by, &status);
      if (WEXITSTATUS(status) == EXIT_KILLED) start_process(all->by, body);
      break;
    case WANT_CUT: power_cut(body); break;
    case WANT_QUIET: sim->quiet_from = sim->n.steps; break;
    default: test_failed(__FILE__, __LINE__, "nothing was asked for");
  }
  return true;
}

static uint32_t pick(const uint32_t *of, size_t n) { return of[sim_below(n)]; }
#define PICK(...) pick((const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Half of all disks do not lie, some about what is derived, some once about the database, and some as they like. */
static void draw_lies(void) {
  uint64_t r = sim_below(8);
  if (r < 4) return;
  sim->lie_parts = r == 4 ? SIM_MAP | SIM_SEGMENT | SIM_LOCKS : r < 7 ? SIM_TRUTH | SIM_JOURNAL : 31;
  sim->truth_lies = r == 4 ? 0 : r < 7 ? 1 : 1000;
}

/* What kind of episode this is. */
static void draw_machine(const sim_options *options) {
  *sim = (sim_machine){.seed = options->seed, .rng = options->seed, .limit = options->steps, .bug = options->bug};
  sim->clock_ns = START_NS;
  sim->tick_ns = PICK(2000, 20000, 200000, 1000000);
  sim->switch_in = PICK(2, 8, 8, 30, 200);
  sim->kill_in = PICK(0, 600, 2000, 5000);
  sim->cut_in = PICK(0, 2000, 4000, 10000);
  sim->error_in = PICK(0, 0, 100, 1000, 5000);
  sim->short_in = PICK(0, 50, 500);
  sim->mtime_ns = PICK(1, 4000000);
  sim->page_bytes = PICK(512, 512, 1024, 4096);
  sim->tail_rows = PICK(4, 12, 30);
  sim->graph_rows = PICK(10, 1000);
  sim->metric = (lode_metric)sim_below(3);
  draw_lies();
}

static void apply_stress(sim_stress stress) {
  if (stress == SIM_MIXED) return;
  sim->lie_parts = stress == SIM_DAMAGE ? SIM_TRUTH : 0;
  sim->truth_lies = stress == SIM_DAMAGE ? 1 : 0;
  sim->cut_in = stress == SIM_CUTS ? 500 : 0;
  sim->kill_in = stress == SIM_CUTS ? 300 : 0;
  sim->error_in = 0;
  sim->switch_in = stress == SIM_RACES ? 2 : 8;
}

void sim_run(const sim_options *options, sim_counts *counts) {
  static scheduler *shared;
  char tmp[sizeof sim->folder + 8];
  if (!shared) shared = sim_heap_map(sizeof *shared);
  all = shared;
  memset(all, 0, sizeof *all);
  sim = &all->machine;
  draw_machine(options);
  apply_stress(options->stress);
  snprintf(sim->folder, sizeof sim->folder, "%s/disk", options->folder ? options->folder : test_folder());
  snprintf(sim->store, sizeof sim->store, "%s/store", sim->folder);
  snprintf(tmp, sizeof tmp, "%s/tmp", sim->folder);
  CHECK(mkdir(sim->folder, 0700) == 0 && mkdir(tmp, 0700) == 0);
  for (int p = 0; p <= PARENT; p++) CHECK(sem_init(&all->turn[p], 1, 0) == 0);
  sim_model_start();
  sim_lies_start();
  start_disk();
  for (int p = 0; p < SIM_PROCS; p++) start_process(p, sim_load_main);
  while (run_on(sim_load_main)) continue;
  sim->quiet_from = sim->n.steps;
  start_process(0, sim_load_final);
  while (run_on(sim_load_final)) continue;
  simdisk_stop();
  test_remove_tree(sim->folder);
  *counts = sim->n;
}
