/* SPDX-License-Identifier: Apache-2.0 */
/* cli_locate.c - finds the store's folder. See cli_locate.h. */
#include "cli/cli_locate.h"

#include "os/os.h"
#include "project/project.h"

#include <stdlib.h>
#include <unistd.h>

/* The nearest .lode from the working directory upward, as for projects. `absent`: else where that of the nearest folder
 * with a .git would be. */
static lode_status locate_upward(strbuf *path, bool absent, bool *found, char *passed, size_t size, lode_error *err) {
  size_t store = 0, git = 0;
  char *cwd = getcwd(NULL, 0);
  *found = false;
  if (!cwd) return LODE_OK;
  lode_status st = project_find(str_of(cwd), &store, &git, passed, size, err);
  if (!store && absent) store = git;
  if (st == LODE_OK && store) {
    strbuf_addf(path, "%.*s%s" PROJECT_DIR_NAME, (int)store, cwd, store == 1 ? "" : "/");
    *found = true;
  }
  free(cwd);
  return st;
}

lode_status cli_locate_store(const char *given, bool absent, strbuf *path, cli_store_location *located,
                             lode_error *err) {
  const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
  memset(located, 0, sizeof *located);
  path->len = 0;
  if (given)
    strbuf_addstr(path, given);
  else
    TRY(locate_upward(path, absent, &located->found, located->passed, sizeof located->passed, err));
  if (!given && !located->found) {
    if (data && data[0] == '/')
      strbuf_addf(path, "%s/lode", data);
    else if (home && home[0])
      strbuf_addf(path, "%s/.local/share/lode", home);
    else
      return err_set(err, LODE_INVALID, "neither HOME nor XDG_DATA_HOME is set: name the store with --store DIR");
  }
  strbuf_addch(path, '\0');
  return path->failed ? err_nomem(err) : LODE_OK;
}

lode_status cli_store_of_project(const char *place, bool absent, strbuf *path, cli_store_location *located,
                                 lode_error *err) {
  project_info project;
  memset(located, 0, sizeof *located);
  path->len = 0;
  TRY(project_locate(&project, place, NULL, err));
  lode_status st = absent || project_has_store(&project)
                       ? LODE_OK
                       : err_set(err, LODE_NOT_FOUND, "%.300s is not indexed yet: run `lode index` there",
                                 project_display_name(&project));
  located->found = true;
  memcpy(located->passed, project.passed, sizeof located->passed);
  strbuf_addstr(path, project.folder);
  strbuf_addch(path, '\0');
  project_release(&project);
  return st == LODE_OK && path->failed ? err_nomem(err) : st;
}
