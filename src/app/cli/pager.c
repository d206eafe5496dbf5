/* SPDX-License-Identifier: Apache-2.0 */
/* pager.c - long output on a terminal goes through a pager, as with git: $LODE_PAGER, else $PAGER, else less -FRX. An
 * empty value, or "cat", means none. If the pager cannot be started, the output is written directly. */
#include "cli/cli_writer.h"

#include "platform/process.h"

#include <stdlib.h>
#include <unistd.h>

static bool pager_needed(const strbuf *text, int fd) {
  unsigned rows, columns;
  size_t lines = 0;
  if (!isatty(fd) || !os_terminal_size(fd, &rows, &columns) || rows < 3) return false;
  for (size_t i = 0; i < text->len; i++) lines += text->data[i] == '\n';
  return lines + 1 > rows;
}

void cli_page_text(strbuf *text, int fd) {
  const char *pager = getenv("LODE_PAGER");
  int ends[2];
  if (!pager) pager = getenv("PAGER");
  if (!pager) pager = "less -FRX";
  if (!*pager || strcmp(pager, "cat") == 0 || text->failed || !pager_needed(text, fd)) return;
  if (os_pipe(ends) < 0) return;
  (void)setenv("LESS", "FRX", 0);
  char *argv[] = {"/bin/sh", "-c", (char *)(uintptr_t)pager, NULL};
  pid_t pid = os_start(argv, ends[0], -1);
  os_exit end;
  close(ends[0]);
  /* a reader that quits early has seen enough */
  if (pid > 0) (void)!op_write_fd(ends[1], text->data, text->len);
  close(ends[1]);
  if (pid > 0 && os_wait(pid, true, &end) == 1 && end.signal == 0 && end.code != 127) text->len = 0;
}

void cli_page_output(cli_writer *w) {
  if (!w->closed) cli_page_text(&w->out, w->fd);
}
