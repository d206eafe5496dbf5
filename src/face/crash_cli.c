/* crash_cli.c - see crash_cli.h. The handler runs on a stack of its own, so that an overflow is told of too, and uses only calls that are
 * allowed in a handler. All texts and paths are made beforehand; the file itself is made when it is needed. A report holds the signal, the
 * command's name, the version and a backtrace: no argument, no query, no text of a file. */
#include "crash_cli.h"

#include "base/base.h"
#include "base/os.h"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FRAMES = 64, STACK_BYTES = 64 << 10, PATH_BYTES = 600 };

static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGABRT};
static const char *const caught_names[] = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS", "SIGABRT"};

static char folders[4][PATH_BYTES]; /* made in the handler, from the outside in */
static char report[PATH_BYTES];     /* empty: there is no place for one */
static const char *doing = "";
static char handler_stack[STACK_BYTES];

static void put(int fd, const char *text) {
  /* Nobody is left to be told when this fails */
  if (write(fd, text, strlen(text)) < 0) return;
}

static const char *name_of(int number) {
  for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
    if (caught[i] == number) return caught_names[i];
  return "a signal";
}

static bool write_report(int number, void *const *frames, int n) {
  if (!report[0]) return false;
  for (size_t i = 0; i < 4; i++) (void)mkdir(folders[i], 0700);
  int fd = open(report, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  put(fd, "lode " LODE_VERSION_TEXT "\nsignal      ");
  put(fd, name_of(number));
  put(fd, "\noperation   ");
  put(fd, doing);
  put(fd, "\nbacktrace\n");
  backtrace_symbols_fd(frames, n, fd);
  close(fd);
  return true;
}

static void on_crash(int number) {
  static atomic_flag once = ATOMIC_FLAG_INIT;
  void *frames[MOST_FRAMES];
  if (!atomic_flag_test_and_set(&once)) {
    int n = backtrace(frames, MOST_FRAMES);
    put(STDERR_FILENO, "\nlode: crashed (");
    put(STDERR_FILENO, name_of(number));
    put(STDERR_FILENO, ") while doing `lode ");
    put(STDERR_FILENO, doing);
    put(STDERR_FILENO, "`. What was committed is safe.\n");
    if (write_report(number, frames, n)) {
      put(STDERR_FILENO, "lode: the report is ");
      put(STDERR_FILENO, report);
      put(STDERR_FILENO, "; please send it in\n");
    } else {
      backtrace_symbols_fd(frames, n, STDERR_FILENO);
    }
    put(STDERR_FILENO, "lode: run `lode doctor` to check the index, `lode db verify` for another store\n");
  }
  /* SA_RESETHAND: this ends the process by the same signal, so that its exit status tells the truth */
  raise(number);
}

/* BASE/lode/crashes; from the user's state folder. */
static void choose_place(void) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  char base[PATH_BYTES - 200];
  int n = 0;
  if (state && state[0] == '/') n = snprintf(base, sizeof base, "%s", state);
  else if (home && home[0] == '/') n = snprintf(base, sizeof base, "%s/.local/state", home);
  if (n <= 0 || (size_t)n >= sizeof base) return;
  snprintf(folders[0], sizeof folders[0], "%.*s", (int)(strrchr(base, '/') - base), base);
  snprintf(folders[1], sizeof folders[1], "%s", base);
  snprintf(folders[2], sizeof folders[2], "%s/lode", base);
  snprintf(folders[3], sizeof folders[3], "%s/lode/crashes", base);
  snprintf(report, sizeof report, "%s/lode/crashes/crash-%lld-%d.txt", base, (long long)time(NULL), (int)getpid());
}

void lode__crash_cli_catch(const char *command) {
  struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)(SA_ONSTACK | SA_RESETHAND | SA_NODEFER)};
  stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof handler_stack};
  void *frames[4];
  doing = command;
  choose_place();
  /* The first backtrace loads a library, which the handler must not do */
  (void)backtrace(frames, 4);
  if (sigaltstack(&stack, NULL) < 0) action.sa_flags &= ~SA_ONSTACK;
  for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) (void)sigaction(caught[i], &action, NULL);
}
