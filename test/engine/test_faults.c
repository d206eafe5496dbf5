/* SPDX-License-Identifier: Apache-2.0 */
/* test_faults.c - memory and the operating system fail at call 1..N, in every act of scene.c. Whatever happens: no
 * signal, no leak, and afterwards the store holds what it held before or after the act, never something between; an act
 * that says LODE_OK has done its work, and an answer is the right one. A sample of the calls is tried unless
 * test_full(). */
#include "support/fault.h"
#include "support/scene.h"
#include "support/simdisk.h"
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct play {
  const act *act;
  char base[500], work[600];
  uint64_t before, after, answer;
} play;

/* The act without any fault: what it should come to. */
static void rehearse(play *p, int i) {
  p->act = &scene_acts[i];
  snprintf(p->base, sizeof p->base, "%s/base", test_folder());
  snprintf(p->work, sizeof p->work, "%s/work", test_folder());
  if (access(p->base, F_OK) != 0) scene_make(p->base, 512);
  test_remove_tree(p->work);
  test_copy_tree(p->base, p->work);
  p->before = scene_content(p->base);
  outcome o = p->act->play(p->work);
  CHECKF(o.status == LODE_OK, "%s: %s", p->act->name, o.text);
  p->answer = o.answer;
  p->after = scene_content(p->work);
  scene_verify(p->work, p->act->name);
}

static void reset_stage(play *p) {
  test_remove_tree(p->work);
  test_copy_tree(p->base, p->work);
}

static void check_outcome(play *p, const outcome *o, const char *fault, uint64_t n) {
  char what[200];
  snprintf(what, sizeof what, "%s, %s at call %llu", p->act->name, fault, (unsigned long long)n);
  if (o->status != LODE_OK) CHECKF(o->text[0], "%s: no text for %s", what, lode_status_name(o->status));
  CHECKF(o->status != LODE_INTERNAL && o->status != LODE_CORRUPT, "%s: %s %s", what, lode_status_name(o->status),
         o->text);
  uint64_t content = scene_content(p->work);
  CHECKF(content == p->after || (content == p->before && o->status != LODE_OK),
         "%s: the store is neither before nor after (%s)", what, lode_status_name(o->status));
  if (o->status == LODE_OK) CHECKF(o->answer == p->answer, "%s: another answer", what);
  scene_verify(p->work, what);
}

/* The next call to try: all of the first few, then a sample of about `tries`. */
static uint64_t next_call(uint64_t n, uint64_t total, uint64_t tries) {
  if (test_full() || n < 8 || total <= tries) return n + 1;
  return n + 1 + test_below(2 * total / tries);
}

static void fail_memory(int i, bool for_good) {
  play p = {0};
  fault_alloc_install();
  test_srand(test_seed() + (uint64_t)i);
  rehearse(&p, i);
  reset_stage(&p);
  fault_alloc_set(0, false);
  (void)p.act->play(p.work);
  uint64_t total = fault_alloc_count();
  for (uint64_t n = 1; n <= total; n = next_call(n, total, 40)) {
    reset_stage(&p);
    fault_alloc_set(n, for_good);
    outcome o = p.act->play(p.work);
    fault_alloc_set(0, false);
    check_outcome(&p, &o, for_good ? "no memory any more" : "no memory once", n);
  }
}

static void fail_io(int i, fault_call call, fault_effect effect, bool for_good, const char *name, uint64_t tries) {
  play p = {0};
  test_srand(test_seed() + (uint64_t)i);
  rehearse(&p, i);
  reset_stage(&p);
  fault_install(&os_real);
  fault_set(call, 0, false, effect);
  (void)p.act->play(p.work);
  uint64_t total = fault_count(call);
  fault_uninstall();
  for (uint64_t n = 1; n <= total; n = next_call(n, total, tries)) {
    reset_stage(&p);
    fault_install(&os_real);
    fault_set(call, n, for_good, effect);
    outcome o = p.act->play(p.work);
    bool hit = fault_hits() > 0;
    fault_uninstall();
    if (effect == FAULT_EINTR)
      CHECKF(o.status == LODE_OK, "%s: EINTR at call %llu: %s", p.act->name, (unsigned long long)n, o.text);
    if (effect == FAULT_SHORT)
      CHECKF(o.status == LODE_OK, "%s: short transfer at call %llu: %s", p.act->name, (unsigned long long)n, o.text);
    check_outcome(&p, &o, name, n);
    if (!hit && !test_full()) break;
  }
}

static void cut_power(int i) {
  play p = {0};
  char left[700];
  test_srand(test_seed() + (uint64_t)i);
  rehearse(&p, i);
  snprintf(left, sizeof left, "%s/left", test_folder());
  for (uint64_t n = 1;; n++) {
    reset_stage(&p);
    simdisk_start(p.work);
    simdisk_cut_at(n);
    outcome o = p.act->play(p.work);
    bool cut = simdisk_is_cut();
    for (int k = 0; k < (test_full() ? 20 : 3); k++) {
      uint64_t seed = test_rand();
      test_remove_tree(left);
      simdisk_cut(seed, left);
      const os_calls *disk = os_api;
      os_api = &os_real;
      char what[200];
      snprintf(what, sizeof what, "%s, power cut at sync %llu, disk seed %llu", p.act->name, (unsigned long long)n,
               (unsigned long long)seed);
      uint64_t content = scene_content(left);
      CHECKF(content == p.after || (content == p.before && o.status != LODE_OK) ||
                 (content == p.before && cut && !p.act->writes),
             "%s: neither before nor after (%s %s)", what, lode_status_name(o.status), o.text);
      scene_verify(left, what);
      os_api = disk;
    }
    simdisk_stop();
    if (!cut) break;
  }
}

#define EACH_ACT(run)                                                                                                  \
  for (int i = 0; i < scene_n_acts; i++) {                                                                             \
    run;                                                                                                               \
  }

/* Memory faults need a process that has not used SQLite yet, and each act must not see the last one's: one child for
 * each. */
#include <sys/wait.h>
static void in_child(void (*fn)(int, bool), int i, bool flag) {
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    fn(i, flag);
    _exit(0);
  }
  int status;
  CHECK(waitpid(pid, &status, 0) == pid);
  CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 0, "act %s ended with status %x", scene_acts[i].name,
         (unsigned)status);
}

TEST_SLOW(no_memory_once, 900){EACH_ACT(in_child(fail_memory, i, false))} TEST_SLOW(no_memory_any_more, 900){
    EACH_ACT(in_child(fail_memory, i, true))} TEST_SLOW(io_error_once, 900){
    EACH_ACT(fail_io(i, FAULT_ANY, FAULT_EIO, false, "EIO once", 25))} TEST_SLOW(io_error_for_good, 900){
    EACH_ACT(fail_io(i, FAULT_ANY, FAULT_EIO, true, "EIO for good", 20))} TEST_SLOW(disk_full, 900){
    EACH_ACT(fail_io(i, FAULT_PWRITE, FAULT_ENOSPC, true, "disk full", 20))} TEST_SLOW(disk_full_for_every_call, 900){
    EACH_ACT(fail_io(i, FAULT_ANY, FAULT_ENOSPC, true, "ENOSPC from every call", 20))} TEST_SLOW(disk_full_for_one_call,
                                                                                                 900){
    EACH_ACT(fail_io(i, FAULT_ANY, FAULT_ENOSPC, false, "ENOSPC from one call", 20))} TEST_SLOW(interrupted_calls, 900){
    EACH_ACT(fail_io(i, FAULT_ANY, FAULT_EINTR, false, "EINTR", 15))} TEST_SLOW(short_reads, 900){
    EACH_ACT(fail_io(i, FAULT_PREAD, FAULT_SHORT, false, "short read", 15))} TEST_SLOW(short_writes, 900){
    EACH_ACT(fail_io(i, FAULT_PWRITE, FAULT_SHORT, false, "short write", 15))} TEST_SLOW(sync_error, 900){
    EACH_ACT(fail_io(i, FAULT_SYNC, FAULT_EIO, false, "fsync error", 30))} TEST_SLOW(power_cut, 900) {
  EACH_ACT(cut_power(i))
}

/* ---- A disk that stays full until something is given back ---- */

static char disk[600];
static off_t disk_bytes;

static off_t size_of(const char *name) {
  struct stat st;
  char path[700];
  snprintf(path, sizeof path, "%s/%s", disk, name);
  return os_real.stat(path, &st) == 0 ? st.st_size : 0;
}

static ssize_t bounded_pwrite(int fd, const void *buf, size_t n, off_t off) {
  struct stat st;
  if (disk_bytes && os_real.fstat(fd, &st) == 0 && off + (off_t)n > st.st_size &&
      size_of("lode.db") + size_of("lode.db-journal") + off + (off_t)n - st.st_size > disk_bytes)
    return errno = ENOSPC, -1;
  return os_real.pwrite(fd, buf, n, off);
}

/* Erasing needs a journal; with steps as large as time allows there would never be room for it again. */
TEST(deleting_makes_room_on_a_full_disk) {
  static os_calls table;
  lode_error err;
  lode_store *store;
  lode_collection *c, *waits;
  lode_stats stats;
  table = os_real;
  table.pwrite = bounded_pwrite;
  os_api = &table;
  snprintf(disk, sizeof disk, "%s/s", test_folder());
  OK(lode_open(disk, &(lode_open_options){.create = true, .no_background = true, .page_bytes = 1024}, &store, &err));
  OK(lode_collection_open(store, (lode_str){"waits", 5}, &(lode_collection_options){.create = true}, &waits, &err));
  OK(lode_collection_open(store, (lode_str){"c", 1}, &(lode_collection_options){.create = true}, &c, &err));
  for (int i = 0; i < 2000; i += 100) {
    static char ids[100][20], texts[100][300];
    static lode_record records[100];
    for (int k = 0; k < 100; k++) {
      records[k].id = (lode_str){ids[k], (size_t)snprintf(ids[k], sizeof ids[k], "%d", i + k)};
      records[k].document =
          (lode_str){texts[k], (size_t)snprintf(texts[k], sizeof texts[k], "word%d %0200d", i + k, i + k)};
    }
    OK(lode_add(c, NULL, records, 100, LODE_FAIL_EXISTING, NULL, &err));
  }
  OK(lode_optimize(store, (lode_progress){0}, &err));
  /* Of this one the words are still to be taken in, and there is no room for them yet */
  static char text[60000];
  for (size_t i = 0; i < sizeof text; i++) text[i] = i % 6 ? (char)('a' + test_below(26)) : ' ';
  OK(lode_add(waits, NULL, &(lode_record){.id = {"w", 1}, .document = {text, sizeof text}}, 1, LODE_FAIL_EXISTING, NULL,
              &err));
  off_t full = size_of("lode.db");
  disk_bytes = full + 64 * 1024;
  OK(lode_delete(c, NULL, &(lode_selection){.where = {"{}", 2}}, NULL, &err));
  OK(lode_compact(store, (lode_progress){0}, &err));
  OK(lode_store_stats(store, &stats, &err));
  CHECKF(stats.unerased == 0 && size_of("lode.db") < full / 2, "%llu unerased, %lld bytes of %lld",
         (unsigned long long)stats.unerased, (long long)size_of("lode.db"), (long long)full);
  /* and there is room for the words again */
  OK(lode_optimize(store, (lode_progress){0}, &err));
  OK(lode_store_stats(store, &stats, &err));
  CHECK(stats.untexted == 0);
  lode_collection_close(c);
  lode_collection_close(waits);
  lode_close(store);
  scene_verify(disk, "a full disk");
}
