/* project.c - finding a project's root and its store. See project.h. */
#include "project.h"

#include "fs.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static char *copy_text(const char *text, size_t len) {
  char *copy = lode__alloc(len + 1);
  if (!copy) return NULL;
  memcpy(copy, text, len);
  copy[len] = '\0';
  return copy;
}

/* The absolute folder of `start`, without links; the folder around it when it is a file. */
static lode_status folder_of(const char *start, lode__buf *out, bool *is_file, lode_error *err) {
  char *real = realpath(start ? start : ".", NULL);
  if (!real && errno == ENOENT)
    return lode__fail(err, LODE_NOT_FOUND, "there is no file or folder %.400s", start ? start : "(the working directory was removed)");
  if (!real) return lode__fail_errno(err, errno, start ? start : "the working directory");
  size_t len = strlen(real);
  *is_file = !lode__fs_is_folder(real);
  if (*is_file)
    while (len > 1 && real[--len] != '/') {}
  out->len = 0;
  lode__buf_add(out, real, len ? len : 1);
  free(real);
  return out->failed ? lode__fail_nomem(err) : LODE_OK;
}

/* The nearest folder at or above path[0..len) that holds `name`; 0 when there is none. */
static lode_status find_upward(lode_str from, const char *name, bool folder_only, size_t *len, lode_error *err) {
  lode__buf path = {0};
  size_t at = from.len;
  *len = 0;
  for (;;) {
    path.len = 0;
    lode__buf_add(&path, from.data, at);
    if (at == 0 || from.data[at - 1] != '/') lode__buf_addc(&path, '/');
    lode__buf_adds(&path, name);
    lode__buf_addc(&path, '\0');
    if (path.failed) return lode__fail_nomem(err);
    if (folder_only ? lode__fs_is_folder(path.data) : lode__fs_exists(path.data)) {
      *len = at ? at : 1;
      break;
    }
    if (at <= 1) break;
    while (at > 1 && from.data[at - 1] != '/') at--;
    if (at > 1) at--;
  }
  lode__buf_release(&path);
  return LODE_OK;
}

/* A store that lies in a project's root belongs to that project: *root is its path's length, 0 for other stores. */
static lode_status root_of_store(const char *store, lode__buf *path, size_t *root, lode_error *err) {
  char *real = realpath(store, NULL), *slash = real ? strrchr(real, '/') : NULL;
  *root = 0;
  if (slash && strcmp(slash + 1, LODE__PROJECT_FOLDER) == 0) {
    *root = slash == real ? 1 : (size_t)(slash - real);
    path->len = 0;
    lode__buf_add(path, real, *root);
  }
  free(real);
  return path->failed ? lode__fail_nomem(err) : LODE_OK;
}

/* The user may name a link; one that was found in a folder may lead anywhere. */
static lode_status check_link(const lode__project *p, const char *store, char **target, lode_error *err) {
  struct stat info;
  *target = NULL;
  if (lode__os->lstat_at(AT_FDCWD, p->folder, &info) < 0 || !S_ISLNK(info.st_mode)) return LODE_OK;
  if (store) return lode__inside_resolve(store, target, err);
  return lode__fail(err, LODE_REFUSED, "%.300s is a symbolic link, and could lead to anybody's files: remove it, or name the folder that it leads "
                                       "to with --store DIR", p->folder);
}

lode_status lode__project_locate(lode__project *p, const char *start, const char *store, lode_error *err) {
  lode__buf at = {0}, folder = {0};
  lode_status st;
  size_t len = 0;
  bool is_file = false;
  char *target = NULL;
  memset(p, 0, sizeof *p);
  LODE__GOTO(folder_of(start, &at, &is_file, err));
  if (store && !start) LODE__GOTO(root_of_store(store, &at, &len, err));
  if (!store) LODE__GOTO(find_upward((lode_str){at.data, at.len}, LODE__PROJECT_FOLDER, true, &len, err));
  if (!len) LODE__GOTO(find_upward((lode_str){at.data, at.len}, ".git", false, &len, err));
  /* A file stands for its project, but not for whatever else lies in its folder */
  if (!len && is_file)
    LODE__GOTO(lode__fail(err, LODE_INVALID, "%.300s is a file that belongs to no project (there is neither .lode nor .git above it): name a folder", start));
  p->root = copy_text(at.data, len ? len : at.len);
  if (!p->root) LODE__GOTO(lode__fail_nomem(err));
  if (store) lode__buf_adds(&folder, store);
  else LODE__GOTO(lode__fs_join(&folder, p->root, LODE__PROJECT_FOLDER, err));
  p->folder = folder.failed ? NULL : copy_text(folder.data ? folder.data : "", store ? folder.len : folder.len - 1);
  if (!p->folder) LODE__GOTO(lode__fail_nomem(err));
  LODE__GOTO(check_link(p, store, &target, err));
  if (target) {
    lode__free(p->folder);
    p->folder = target;
  }
done:
  lode__buf_release(&at);
  lode__buf_release(&folder);
  if (st != LODE_OK) lode__project_release(p);
  return st;
}

lode_status lode__project_open(lode__project *p, const char *start, const char *store, lode_error *err) {
  LODE__TRY(lode__project_locate(p, start, store, err));
  lode_status st = lode__config_load(&p->config, p->folder, err);
  if (st != LODE_OK) lode__project_release(p);
  return st;
}

void lode__project_release(lode__project *p) {
  lode__config_release(&p->config);
  lode__free(p->root);
  lode__free(p->folder);
  memset(p, 0, sizeof *p);
}

bool lode__project_has_store(const lode__project *p) {
  struct stat info;
  return lode__inside_lstat(p->folder, LODE__TRUTH_FILE, &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

lode_status lode__project_prepare(const lode__project *p, lode_error *err) {
  static const char ignore[] = "# made by lode: the index of this project, which can be made again\n*\n";
  struct stat info;
  if (lode__os->mkdir(p->folder, 0700) < 0 && errno != EEXIST) {
    if (errno == ENOENT) return lode__fail(err, LODE_GONE, "the folder of %.400s was removed", p->folder);
    return lode__fail(err, errno == EROFS || errno == EACCES ? LODE_READONLY : LODE_IO,
                      "the index cannot be made in %.300s: %.100s; name another place with --store DIR", p->folder, strerror(errno));
  }
  if (lode__inside_lstat(p->folder, ".gitignore", &info) == 0) return LODE_OK;
  return lode__fs_write_inside(p->folder, ".gitignore", (lode_str){ignore, sizeof ignore - 1}, err);
}
