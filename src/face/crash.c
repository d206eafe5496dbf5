/* crash.c - see crash.h. The upper half of this file runs in a signal handler: no locks, no allocation, no stdio. */
#include "crash.h"

#include "base/os.h"
#include "stream.h"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FRAMES = 64, HANDLER_STACK = 64 << 10, MOST_REPORT = 64 << 10 };

/* ---- In the worker ---- */

lode__crash_state lode__crash;

static int crash_fd = -1;
static _Thread_local const char *doing;
static _Thread_local void *handler_stack;

static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGABRT};

static void put(const char *text) {
  /* Nobody is left to be told when this fails */
  if (write(crash_fd, text, strlen(text)) < 0) return;
}

static void put_number(const char *label, unsigned long long n, unsigned base) {
  char digits[32];
  size_t at = sizeof digits - 1;
  digits[at] = '\0';
  do {
    digits[--at] = "0123456789abcdef"[n % base];
    n /= base;
  } while (n);
  put(label);
  put(base == 16 ? "0x" : "");
  put(digits + at);
  put("\n");
}

static void on_crash(int number, siginfo_t *info, void *context) {
  static atomic_flag once = ATOMIC_FLAG_INIT;
  void *frames[MOST_FRAMES];
  (void)context;
  if (!atomic_flag_test_and_set(&once)) {
    put_number("signal      ", (unsigned long long)number, 10);
    if (number != SIGABRT) put_number("address     ", (unsigned long long)(uintptr_t)info->si_addr, 16);
    put("operation   ");
    put(doing ? doing : "none (a thread of the library)");
    put("\n");
    put_number("calls       ", atomic_load(&lode__crash.calls), 10);
    put(atomic_load(&lode__crash.open) ? "store       open\n" : "store       not open\n");
    put_number("commits     ", atomic_load(&lode__crash.commits), 10);
    put_number("in a write  ", atomic_load(&lode__crash.committing), 10);
    put("backtrace\n");
    backtrace_symbols_fd(frames, backtrace(frames, MOST_FRAMES), crash_fd);
  }
  /* SA_RESETHAND: returning from a fault or raising again now ends the process by the same signal */
  raise(number);
}

lode_status lode__crash_catch(int fd, lode_error *err) {
  struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = (int)(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND)};
  void *frames[4];
  crash_fd = fd;
  /* The first backtrace loads a library, which the handler must not do */
  (void)backtrace(frames, 4);
  for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
    if (sigaction(caught[i], &action, NULL) < 0) return err_errno(err, errno, "sigaction");
  return lode__crash_thread_begin(err);
}

lode_status lode__crash_thread_begin(lode_error *err) {
  handler_stack = mem_alloc(HANDLER_STACK);
  if (!handler_stack) return err_nomem(err);
  stack_t stack = {.ss_sp = handler_stack, .ss_size = HANDLER_STACK};
  return sigaltstack(&stack, NULL) < 0 ? err_errno(err, errno, "sigaltstack") : LODE_OK;
}

void lode__crash_thread_end(void) {
  stack_t none = {.ss_flags = SS_DISABLE};
  if (sigaltstack(&none, NULL) == 0) mem_free(handler_stack);
  handler_stack = NULL;
}

void lode__crash_doing(const char *name) { doing = name; }

/* ---- In the supervisor ---- */

void lode__crash_end(const proc_exit *end, char *text, size_t size) {
  char name[32];
  if (end->signal) snprintf(text, size, "%s", proc_signal_name(end->signal, name, sizeof name));
  else snprintf(text, size, "exit status %d", end->code);
}

static void put_files(strbuf *out, const char *folder) {
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

static void put_workers_half(strbuf *out, int fd) {
  size_t got = 0;
  char *room = strbuf_reserve(out, MOST_REPORT);
  if (room && os_read_full(fd, room, MOST_REPORT, 0, &got, NULL) == LODE_OK) out->len += got;
  if (got == 0) strbuf_addstr(out, "nothing: the process was ended before it could say anything (SIGKILL, out of memory)\n");
}

static void put_report(strbuf *out, const lode__crash_facts *facts, const struct tm *now) {
  char how[64];
  lode__crash_end(&facts->end, how, sizeof how);
  strbuf_addf(out, "lode %s: the worker process died\n\n", lode_version());
  strbuf_addf(out, "time        %04d-%02d-%02dT%02d:%02d:%02dZ\n", now->tm_year + 1900, now->tm_mon + 1, now->tm_mday,
                 now->tm_hour, now->tm_min, now->tm_sec);
  strbuf_addf(out, "end         %s\nprocess     %d, lived %llu ms, answered %llu calls\n\n", how, (int)facts->pid,
                 (unsigned long long)facts->lived_ms, (unsigned long long)facts->answered);
  strbuf_addf(out, "calls in flight: %zu\n", facts->n_calls);
  for (size_t i = 0; i < facts->n_calls; i++)
    strbuf_addf(out, "  %s, for %llu ms\n", facts->calls[i].name, (unsigned long long)facts->calls[i].ms);
  strbuf_addstr(out, "\nfrom the process itself\n");
  put_workers_half(out, facts->fd);
  strbuf_addf(out, "\nstore %s\n", facts->store);
  put_files(out, facts->store);
}

/* Names sort by time: the oldest is the smallest. */
static void remove_oldest(const char *folder) {
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
    if (n <= LODE__CRASH_KEPT) return;
    strbuf_addf(&path, "%s/%s", folder, oldest);
    strbuf_addch(&path, '\0');
    bool gone = !path.failed && os_api->unlink(path.data) == 0;
    strbuf_release(&path);
    if (!gone) return;
  }
}

lode_status lode__crash_write(const lode__crash_facts *facts, strbuf *path, lode_error *err) {
  static atomic_uint serial;
  strbuf text = {0};
  lode__out_file file = {.fd = -1};
  struct tm now;
  uint64_t ms = os_wall_ms();
  time_t seconds = (time_t)(ms / 1000);
  lode_status st = LODE_OK;
  gmtime_r(&seconds, &now);
  if (os_api->mkdir(facts->folder, 0700) < 0 && errno != EEXIST) return err_errno(err, errno, facts->folder);
  path->len = 0;
  strbuf_addf(path, "%s/crash-%04d%02d%02dT%02d%02d%02d.%03u-%d-%u.txt", facts->folder, now.tm_year + 1900,
                 now.tm_mon + 1, now.tm_mday, now.tm_hour, now.tm_min, now.tm_sec, (unsigned)(ms % 1000),
                 (int)facts->pid, atomic_fetch_add(&serial, 1));
  strbuf_addch(path, '\0');
  put_report(&text, facts, &now);
  if (text.failed || path->failed) TRY_GOTO(err_nomem(err));
  TRY_GOTO(lode__out_file_open(&file, path->data, err));
  if (lode__out_file_write(&file, text.data, text.len) < 0) TRY_GOTO(err_errno(err, file.errnum, path->data));
  TRY_GOTO(lode__out_file_commit(&file, err));
  remove_oldest(facts->folder);
done:
  if (file.path) lode__out_file_close(&file);
  strbuf_release(&text);
  return st;
}
