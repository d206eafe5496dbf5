/* locate.c - which folder is the store. See cli.h. */
#include "cli.h"

#include "base/os.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_folder(const char *path) {
  struct stat info;
  return lode__os->stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The nearest .lode from the working directory upward. */
static bool find_upward(lode__buf *path) {
  char *cwd = getcwd(NULL, 0);
  if (!cwd) return false;
  size_t len = strlen(cwd);
  bool found = false;
  for (;;) {
    path->len = 0;
    lode__buf_add(path, cwd, len);
    if (len == 0 || cwd[len - 1] != '/') lode__buf_addc(path, '/');
    lode__buf_adds(path, ".lode");
    lode__buf_addc(path, '\0');
    found = !path->failed && is_folder(path->data);
    if (found || len <= 1 || path->failed) break;
    while (len > 1 && cwd[len - 1] != '/') len--;
    if (len > 1) len--;
  }
  free(cwd);
  return found;
}

lode_status lode__store_locate(const char *given, lode__buf *path, lode_error *err) {
  const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
  path->len = 0;
  if (given) {
    lode__buf_adds(path, given);
  } else if (find_upward(path)) {
    struct stat info;
    if (lode__os->lstat_at(AT_FDCWD, path->data, &info) < 0 || !S_ISLNK(info.st_mode)) return LODE_OK;
    return lode__fail(err, LODE_REFUSED, "%.300s is a symbolic link, and could lead to anybody's files: remove it, or name the folder that it "
                                         "leads to with --store DIR", path->data);
  } else {
    path->len = 0;
    if (data && data[0] == '/') lode__buf_addf(path, "%s/lode", data);
    else if (home && home[0]) lode__buf_addf(path, "%s/.local/share/lode", home);
    else return lode__fail(err, LODE_INVALID, "neither HOME nor XDG_DATA_HOME is set: name the store with --store DIR");
  }
  lode__buf_addc(path, '\0');
  return path->failed ? lode__fail_nomem(err) : LODE_OK;
}

bool lode__is_address(const char *store) { return strstr(store, "://") != NULL; }

lode_status lode__make_parents(const char *path, lode_error *err) {
  lode__buf part = {0};
  lode_status st = LODE_OK;
  for (const char *p = path + (path[0] == '/'); (p = strchr(p, '/')) != NULL; p++) {
    part.len = 0;
    lode__buf_add(&part, path, (size_t)(p - path));
    lode__buf_addc(&part, '\0');
    if (part.failed) {
      st = lode__fail_nomem(err);
      break;
    }
    int errnum = lode__os->mkdir(part.data, 0700) < 0 ? errno : 0;
    if (errnum && !is_folder(part.data)) {
      st = errnum == EEXIST ? lode__fail(err, LODE_INVALID, "%.400s is a file: a store is a folder, name another one", part.data)
                            : lode__fail_errno(err, errnum, part.data);
      break;
    }
  }
  lode__buf_release(&part);
  return st;
}
