/* SPDX-License-Identifier: Apache-2.0 */
/* test_simulator.c - several processes on a disk that fails, under one scheduler; support/sim.h says how.
 * LODE_TEST_SEED=n begins with the episode of that seed, which a failure names. */
#include "support/sim.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 20000, STRESS_STEPS = 5000 };

static void add_counts(sim_counts *sum, const sim_counts *one) {
  const uint64_t *from = (const uint64_t *)one;
  uint64_t *to = (uint64_t *)sum;
  for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) to[i] += from[i];
}

TEST_SLOW(everything_at_once, 3600) {
  const char *steps = getenv("LODE_TEST_STEPS");
  uint64_t total = steps ? strtoull(steps, NULL, 10) : test_full() ? 10000000 : 400000;
  sim_counts sum = {0}, one;
  for (uint64_t seed = test_seed(); sum.steps < total; seed++) {
    sim_run(&(sim_options){.seed = seed, .steps = STEPS}, &one);
    add_counts(&sum, &one);
  }
  CHECK(sum.kills && sum.cuts && sum.errors && sum.writes && sum.reads && sum.answers > sum.unplaced);
  CHECK(sum.indexed && sum.verified && sum.backups && sum.copies);
  CHECK(sum.lies && sum.retried);
  if (!test_full()) return;
  CHECK(sum.damaged && sum.torn && sum.salvages && sum.salvaged > sum.expected / 2 && sum.elsewhere > sum.tried / 2);
#define SHOW(what) printf("%llu %s, ", (unsigned long long)sum.what, #what)
  SHOW(steps), SHOW(switches), SHOW(kills), SHOW(cuts), SHOW(errors), SHOW(writes), SHOW(reads), SHOW(answers);
  SHOW(unplaced), SHOW(busy), SHOW(failed), SHOW(indexed), SHOW(verified), SHOW(backups), SHOW(copies), SHOW(torn);
  SHOW(retried), SHOW(lies), SHOW(damaged), SHOW(salvages), SHOW(expected), SHOW(salvaged), SHOW(tried),
      SHOW(elsewhere);
  printf("done\n");
}

/* What a failure of the others is replayed with; LODE_TEST_STRESS is a number of sim_stress. */
TEST_SLOW(one_episode, 600) {
  sim_counts n;
  const char *stress = getenv("LODE_TEST_STRESS");
  sim_options o = {.seed = test_seed(), .steps = stress ? STRESS_STEPS : STEPS};
  if (stress) o.stress = (sim_stress)strtoul(stress, NULL, 10);
  sim_run(&o, &n);
  printf("seed %llu: %llu steps, trace 0x%016llx\n", (unsigned long long)o.seed, (unsigned long long)n.steps,
         (unsigned long long)n.trace);
}

/* A folder further down, for temporary files too, with what a killed process has left in it. */
static const char *another_folder(void) {
  static const char *const below[] = {"/a", "/b", "/lode-private-x"};
  static char folder[300];
  char path[340];
  snprintf(folder, sizeof folder, "%s", test_folder());
  for (size_t i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "%s%s", folder, below[i]);
    CHECK(mkdir(path, 0700) == 0);
    if (i < 2) snprintf(folder, sizeof folder, "%.299s", path);
  }
  CHECK(setenv("TMPDIR", folder, 1) == 0);
  return folder;
}

/* Wherever it is run, whatever the processes are called, and whatever else is there. */
TEST(a_seed_replays) {
  for (uint64_t seed = test_seed(), end = seed + 3; seed < end; seed++) {
    sim_options o = {.seed = seed, .steps = 5000};
    sim_counts a, b;
    sim_run(&o, &a);
    o.folder = another_folder();
    sim_run(&o, &b);
    CHECKF(a.steps == b.steps && a.trace == b.trace, "seed %llu: %llu steps and trace 0x%llx, then %llu and 0x%llx",
           (unsigned long long)seed, (unsigned long long)a.steps, (unsigned long long)a.trace,
           (unsigned long long)b.steps, (unsigned long long)b.trace);
  }
}

static bool fails(const sim_options *options) {
  int status;
  fflush(NULL);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    sim_counts n;
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0) _exit(0);
    sim_run(options, &n);
    _exit(0);
  }
  CHECK(waitpid(pid, &status, 0) == pid);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

/* In an episode that is clean without it. */
static void find_bug(sim_bug bug) {
  uint64_t first = test_seed(), tried = 0;
  sim_options o = {.seed = first, .steps = STRESS_STEPS, .stress = sim_bug_stress(bug), .bug = bug};
  while (++tried < 200 && !fails(&o)) o.seed++;
  CHECKF(tried < 200, "%s: not found", sim_bug_name(bug));
  o.bug = SIM_NO_BUG;
  CHECKF(!fails(&o), "%s: seed %llu fails without it", sim_bug_name(bug), (unsigned long long)o.seed);
  if (test_full()) printf("%s: found in episode %llu\n", sim_bug_name(bug), (unsigned long long)tried);
}

/* All of them in a full run, otherwise two that the seed picks. */
TEST_SLOW(planted_bugs_are_found, 1200) {
  for (int i = 0; i < SIM_BUGS - 1; i++)
    if (test_full() || i < 2) find_bug((sim_bug)(1 + (test_seed() + (uint64_t)i) % (SIM_BUGS - 1)));
}
