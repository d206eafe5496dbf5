/* SPDX-License-Identifier: Apache-2.0 */
/* browser.c - see browser.h. */
#include "server/browser.h"

#include "os/os.h"

#include <stdlib.h>
#include <unistd.h>

/* Finds the program in PATH; the path is NUL-terminated. */
static bool browser_find_program(const char *name, strbuf *path) {
  for (const char *at = getenv("PATH"); at && *at; at += *at == ':') {
    size_t len = strcspn(at, ":");
    path->len = 0;
    strbuf_add(path, at, len);
    strbuf_addf(path, "/%s%c", name, 0);
    if (len && !path->failed && access(path->data, X_OK) == 0) return true;
    at += len;
  }
  return false;
}

bool server_browser_open(const char *url, proc_child *proc) {
  const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
  lode_error err = {.record = LODE_NO_RECORD};
  strbuf path = {0};
  bool opened = false;
  *proc = PROC_NONE;
  if (((x && *x) || (wayland && *wayland)) && browser_find_program("xdg-open", &path)) {
    const char *const argv[] = {"xdg-open", url, NULL};
    proc_options options = {.path = path.data, .argv = argv, .quiet = true};
    opened = proc_spawn(&options, proc, &err) == LODE_OK;
  }
  strbuf_release(&path);
  return opened;
}

void server_browser_detach(proc_child *proc) {
  if (!proc->pid) return;
  (void)proc_poll(proc); /* reaps it if it has exited; else it goes on, as a child of init */
  if (proc->fd >= 0) close(proc->fd);
  *proc = PROC_NONE;
}
