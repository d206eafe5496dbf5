/* SPDX-License-Identifier: Apache-2.0 */
/* pager.c - long output on a terminal goes through a pager, as with git: $LODE_PAGER, else $PAGER, else less -FRX. An
 * empty value, or "cat", means none. If the pager cannot be started, the output is written directly. */
#include "cli/cli_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static bool pager_needed(const cli_writer *w) {
  struct winsize size;
  size_t lines = 0;
  if (!isatty(w->fd) || ioctl(w->fd, TIOCGWINSZ, &size) != 0 || size.ws_row < 3) return false;
  for (size_t i = 0; i < w->out.len; i++) lines += w->out.data[i] == '\n';
  return lines + 1 > size.ws_row;
}

void cli_page_output(cli_writer *w) {
  const char *pager = getenv("LODE_PAGER");
  int ends[2];
  if (!pager) pager = getenv("PAGER");
  if (!pager) pager = "less -FRX";
  if (!*pager || strcmp(pager, "cat") == 0 || w->out.failed || w->closed || !pager_needed(w)) return;
  if (pipe2(ends, O_CLOEXEC) < 0) return;
  pid_t pid = fork();
  if (pid == 0) {
    if (dup2(ends[0], STDIN_FILENO) < 0) _exit(127);
    setenv("LESS", "FRX", 0);
    execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
    _exit(127);
  }
  close(ends[0]);
  if (pid < 0) {
    close(ends[1]);
    return;
  }
  /* a reader that quits early has seen enough */
  (void)!op_write_fd(ends[1], w->out.data, w->out.len);
  close(ends[1]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status) && WEXITSTATUS(status) != 127) w->out.len = 0;
}
