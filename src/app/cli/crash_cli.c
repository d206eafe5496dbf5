/* SPDX-License-Identifier: Apache-2.0 */
/* crash_cli.c - see crash_cli.h. The handler runs on an alternate stack, so that stack overflows are reported too, and
 * uses async-signal-safe calls only. All texts and paths are prepared in advance; the file is created when needed. A
 * report holds the signal, the command's name, the version and a backtrace: no argument, no query, no text of a
 * file. */
#include "cli/crash_cli.h"
#include "cli/browse.h"

#include "base/base.h"
#include "os/os.h"
#include "platform/library.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { CLI_CRASH_MAX_FRAMES = 64, CLI_CRASH_STACK_BYTES = 64 << 10, CLI_CRASH_PATH_BYTES = 600 };

static const int cli_crash_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGABRT};
static const char *const cli_crash_signal_names[] = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS", "SIGABRT"};

static char cli_crash_folders[4][CLI_CRASH_PATH_BYTES]; /* created in the handler, outermost first */
static char cli_crash_report[CLI_CRASH_PATH_BYTES];     /* empty: no place for a report */
static const char *cli_crash_activity = "";
static char cli_crash_stack[CLI_CRASH_STACK_BYTES];

static void cli_crash_put(int fd, const char *text) {
  /* a failure cannot be reported to anybody */
  if (write(fd, text, strlen(text)) < 0) return;
}

static const char *cli_crash_signal_name(int number) {
  for (size_t i = 0; i < sizeof cli_crash_signals / sizeof *cli_crash_signals; i++)
    if (cli_crash_signals[i] == number) return cli_crash_signal_names[i];
  return "a signal";
}

static bool cli_crash_write_report(int number, void *const *frames, int n) {
  if (!cli_crash_report[0]) return false;
  for (size_t i = 0; i < 4; i++) (void)os_real.mkdir(cli_crash_folders[i], 0700);
  int fd = os_real.open(cli_crash_report, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (fd < 0) return false;
  cli_crash_put(fd, "lode " LODE_VERSION_TEXT "\nsignal      ");
  cli_crash_put(fd, cli_crash_signal_name(number));
  cli_crash_put(fd, "\noperation   ");
  cli_crash_put(fd, cli_crash_activity);
  cli_crash_put(fd, "\nbacktrace\n");
  os_trace_put(frames, n, fd);
  close(fd);
  return true;
}

static void cli_crash_handler(int number, siginfo_t *info, void *context) {
  static atomic_flag once = ATOMIC_FLAG_INIT;
  void *frames[CLI_CRASH_MAX_FRAMES];
  (void)info;
  if (!atomic_flag_test_and_set(&once)) {
    cli_browse_restore();
    int n = os_trace_take(context, frames, CLI_CRASH_MAX_FRAMES);
    cli_crash_put(STDERR_FILENO, "\nlode: crashed (");
    cli_crash_put(STDERR_FILENO, cli_crash_signal_name(number));
    cli_crash_put(STDERR_FILENO, ") while doing `lode ");
    cli_crash_put(STDERR_FILENO, cli_crash_activity);
    cli_crash_put(STDERR_FILENO, "`. What was committed is safe.\n");
    if (cli_crash_write_report(number, frames, n)) {
      cli_crash_put(STDERR_FILENO, "lode: the report is ");
      cli_crash_put(STDERR_FILENO, cli_crash_report);
      cli_crash_put(STDERR_FILENO, "; `lode help bugs` says where to send it\n");
    } else {
      os_trace_put(frames, n, STDERR_FILENO);
    }
    cli_crash_put(STDERR_FILENO, "lode: run `lode doctor` to check the index, `lode db verify` for another store\n");
  }
  /* SA_RESETHAND: this ends the process by the same signal, so that its exit status is right */
  raise(number);
}

/* BASE/lode/crashes; BASE is the user's state folder. */
static void cli_crash_choose_folder(void) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  char base[CLI_CRASH_PATH_BYTES - 200];
  int n = 0;
  if (state && state[0] == '/')
    n = snprintf(base, sizeof base, "%s", state);
  else if (home && home[0] == '/')
    n = snprintf(base, sizeof base, "%s/.local/state", home);
  if (n <= 0 || (size_t)n >= sizeof base) return;
  snprintf(cli_crash_folders[0], sizeof cli_crash_folders[0], "%.*s", (int)(strrchr(base, '/') - base), base);
  snprintf(cli_crash_folders[1], sizeof cli_crash_folders[1], "%s", base);
  snprintf(cli_crash_folders[2], sizeof cli_crash_folders[2], "%s/lode", base);
  snprintf(cli_crash_folders[3], sizeof cli_crash_folders[3], "%s/lode/crashes", base);
  snprintf(cli_crash_report, sizeof cli_crash_report, "%s/lode/crashes/crash-%lld-%d.txt", base, (long long)time(NULL),
           (int)getpid());
}

void cli_crash_install(const char *command) {
  struct sigaction action = {.sa_sigaction = cli_crash_handler,
                             .sa_flags = (int)(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER)};
  stack_t stack = {.ss_sp = cli_crash_stack, .ss_size = sizeof cli_crash_stack};
  cli_crash_activity = command;
  cli_crash_choose_folder();
  os_trace_prepare();
  if (sigaltstack(&stack, NULL) < 0) action.sa_flags &= ~SA_ONSTACK;
  for (size_t i = 0; i < sizeof cli_crash_signals / sizeof *cli_crash_signals; i++)
    (void)sigaction(cli_crash_signals[i], &action, NULL);
}
