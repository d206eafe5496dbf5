/* SPDX-License-Identifier: Apache-2.0 */
/* crash.c - see crash.h. The first part of this file runs in a signal handler: no locks, no allocation, no stdio. */
#include "worker/crash.h"

#include "os/os.h"
#include "platform/library.h"
#include "scan/files.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { CRASH_MAX_FRAMES = 64, CRASH_STACK_BYTES = 64 << 10, CRASH_MAX_REPORT_BYTES = 64 << 10 };

/* ---- In the worker ---- */

crash_stats crash_live_stats;

static int crash_fd = -1;
static _Thread_local const char *crash_activity;
static _Thread_local void *crash_stack;

static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGABRT};

static void crash_put(const char *text) {
  /* a failure cannot be reported to anybody */
  if (write(crash_fd, text, strlen(text)) < 0) return;
}

static void crash_put_number(const char *label, unsigned long long n, unsigned base) {
  char digits[32];
  size_t at = sizeof digits - 1;
  digits[at] = '\0';
  do {
    digits[--at] = "0123456789abcdef"[n % base];
    n /= base;
  } while (n);
  crash_put(label);
  crash_put(base == 16 ? "0x" : "");
  crash_put(digits + at);
  crash_put("\n");
}

static void crash_handler(int number, siginfo_t *info, void *context) {
  static atomic_flag once = ATOMIC_FLAG_INIT;
  void *frames[CRASH_MAX_FRAMES];
  if (!atomic_flag_test_and_set(&once)) {
    crash_put_number("signal      ", (unsigned long long)number, 10);
    if (number != SIGABRT) crash_put_number("address     ", (unsigned long long)(uintptr_t)info->si_addr, 16);
    crash_put("operation   ");
    crash_put(crash_activity ? crash_activity : "none (a thread of the library)");
    crash_put("\n");
    crash_put_number("calls       ", atomic_load(&crash_live_stats.calls), 10);
    crash_put(atomic_load(&crash_live_stats.open) ? "store       open\n" : "store       not open\n");
    crash_put_number("commits     ", atomic_load(&crash_live_stats.commits), 10);
    crash_put_number("in a write  ", atomic_load(&crash_live_stats.committing), 10);
    crash_put("backtrace\n");
    os_trace_put(frames, os_trace_take(context, frames, CRASH_MAX_FRAMES), crash_fd);
  }
  /* SA_RESETHAND: returning from a fault, or raising the signal again, now ends the process by the same signal */
  raise(number);
}

lode_status crash_install(int fd, lode_error *err) {
  struct sigaction action = {.sa_sigaction = crash_handler, .sa_flags = (int)(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND)};
  crash_fd = fd;
  os_trace_prepare();
  for (size_t i = 0; i < sizeof crash_signals / sizeof *crash_signals; i++)
    if (sigaction(crash_signals[i], &action, NULL) < 0) return err_errno(err, errno, "sigaction");
  return crash_thread_begin(err);
}

lode_status crash_thread_begin(lode_error *err) {
  crash_stack = mem_alloc(CRASH_STACK_BYTES);
  if (!crash_stack) return err_nomem(err);
  stack_t stack = {.ss_sp = crash_stack, .ss_size = CRASH_STACK_BYTES};
  return sigaltstack(&stack, NULL) < 0 ? err_errno(err, errno, "sigaltstack") : LODE_OK;
}

void crash_thread_end(void) {
  stack_t none = {.ss_flags = SS_DISABLE};
  if (sigaltstack(&none, NULL) == 0) mem_free(crash_stack);
  crash_stack = NULL;
}

void crash_set_activity(const char *name) { crash_activity = name; }

/* ---- In the supervisor ---- */

void crash_describe_end(const proc_exit *end, char *text, size_t size) {
  char name[32];
  if (end->signal)
    snprintf(text, size, "%s", proc_signal_name(end->signal, name, sizeof name));
  else
    snprintf(text, size, "exit status %d", end->code);
}

static void crash_put_files(strbuf *out, const char *folder) {
  os_dir *list = os_dir_open(folder);
  strbuf path = {0};
  struct stat info;
  const char *name;
  while (list && (name = os_dir_next(list)) != NULL) {
    path.len = 0;
    strbuf_addf(&path, "%s/%s", folder, name);
    strbuf_addch(&path, '\0');
    if (path.failed || os_api->stat(path.data, &info) != 0 || !S_ISREG(info.st_mode)) continue;
    strbuf_addf(out, "  %s  %lld bytes\n", name, (long long)info.st_size);
  }
  os_dir_close(list);
  strbuf_release(&path);
}

static void crash_put_worker_part(strbuf *out, int fd) {
  size_t got = 0;
  char *space = strbuf_reserve(out, CRASH_MAX_REPORT_BYTES);
  if (space && os_read_full(fd, space, CRASH_MAX_REPORT_BYTES, 0, &got, NULL) == LODE_OK) out->len += got;
  if (got == 0)
    strbuf_addstr(out, "nothing: the process was ended before it could say anything (SIGKILL, out of memory)\n");
}

static void crash_put_report(strbuf *out, const crash_facts *facts, const struct tm *now) {
  char how[64];
  crash_describe_end(&facts->end, how, sizeof how);
  strbuf_addf(out, "lode %s: the worker process died\n\n", lode_version());
  strbuf_addf(out, "time        %04d-%02d-%02dT%02d:%02d:%02dZ\n", now->tm_year + 1900, now->tm_mon + 1, now->tm_mday,
              now->tm_hour, now->tm_min, now->tm_sec);
  strbuf_addf(out, "end         %s\nprocess     %d, lived %llu ms, answered %llu calls\n\n", how, (int)facts->pid,
              (unsigned long long)facts->lived_ms, (unsigned long long)facts->answered);
  strbuf_addf(out, "calls in flight: %zu\n", facts->n_calls);
  for (size_t i = 0; i < facts->n_calls; i++)
    strbuf_addf(out, "  %s, for %llu ms\n", facts->calls[i].name, (unsigned long long)facts->calls[i].ms);
  strbuf_addstr(out, "\nfrom the process itself\n");
  crash_put_worker_part(out, facts->fd);
  strbuf_addf(out, "\nstore %s\n", facts->store);
  crash_put_files(out, facts->store);
}

/* Names sort by time: the oldest sorts first. */
static void crash_remove_oldest(const char *folder) {
  for (;;) {
    os_dir *list = os_dir_open(folder);
    char oldest[256] = "";
    const char *name;
    size_t n = 0;
    strbuf path = {0};
    while (list && (name = os_dir_next(list)) != NULL) {
      if (strncmp(name, "crash-", 6) != 0 || strlen(name) >= sizeof oldest) continue;
      n++;
      if (!oldest[0] || strcmp(name, oldest) < 0) memcpy(oldest, name, strlen(name) + 1);
    }
    os_dir_close(list);
    if (n <= CRASH_MAX_REPORTS) return;
    strbuf_addf(&path, "%s/%s", folder, oldest);
    strbuf_addch(&path, '\0');
    bool gone = !path.failed && os_api->unlink(path.data) == 0;
    strbuf_release(&path);
    if (!gone) return;
  }
}

lode_status crash_write_report(const crash_facts *facts, strbuf *path, lode_error *err) {
  static atomic_uint serial;
  strbuf text = {0};
  struct tm now;
  uint64_t ms = os_wall_ms();
  time_t seconds = (time_t)(ms / 1000);
  lode_status st = LODE_OK;
  gmtime_r(&seconds, &now);
  if (os_api->mkdir(facts->folder, 0700) < 0 && errno != EEXIST) return err_errno(err, errno, facts->folder);
  path->len = 0;
  strbuf_addf(path, "%s/crash-%04d%02d%02dT%02d%02d%02d.%03u-%d-%u.txt", facts->folder, now.tm_year + 1900,
              now.tm_mon + 1, now.tm_mday, now.tm_hour, now.tm_min, now.tm_sec, (unsigned)(ms % 1000), (int)facts->pid,
              atomic_fetch_add(&serial, 1));
  strbuf_addch(path, '\0');
  crash_put_report(&text, facts, &now);
  if (text.failed || path->failed) TRY_GOTO(err_nomem(err));
  TRY_GOTO(files_write(path->data, (lode_str){text.data, text.len}, err));
  crash_remove_oldest(facts->folder);
done:
  strbuf_release(&text);
  return st;
}
