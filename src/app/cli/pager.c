/* SPDX-License-Identifier: Apache-2.0 */
/* pager.c - long output on a terminal goes through a pager, as with git: $LODE_PAGER, else $PAGER, else less -FRX. An
 * empty value, or "cat", means none. If the pager cannot be started, the output is written directly. */
#include "cli/cli_writer.h"

#include "platform/process.h"

#include <stdlib.h>
#include <unistd.h>

static bool pager_needed(const cli_writer *w) {
  unsigned rows, columns;
  size_t lines = 0;
  if (!isatty(w->fd) || !os_terminal_size(w->fd, &rows, &columns) || rows < 3) return false;
  for (size_t i = 0; i < w->out.len; i++) lines += w->out.data[i] == '\n';
  return lines + 1 > rows;
}

void cli_page_output(cli_writer *w) {
  const char *pager = getenv("LODE_PAGER");
  int ends[2];
  if (!pager) pager = getenv("PAGER");
  if (!pager) pager = "less -FRX";
  if (!*pager || strcmp(pager, "cat") == 0 || w->out.failed || w->closed || !pager_needed(w)) return;
  if (os_pipe(ends) < 0) return;
  (void)setenv("LESS", "FRX", 0);
  char *argv[] = {"/bin/sh", "-c", (char *)(uintptr_t)pager, NULL};
  pid_t pid = os_start(argv, ends[0], -1);
  os_exit end;
  close(ends[0]);
  /* a reader that quits early has seen enough */
  if (pid > 0) (void)!op_write_fd(ends[1], w->out.data, w->out.len);
  close(ends[1]);
  if (pid > 0 && os_wait(pid, true, &end) == 1 && end.signal == 0 && end.code != 127) w->out.len = 0;
}
