/* SPDX-License-Identifier: Apache-2.0 */
/* project.c - finding a project's root and its store; see project.h. */
#include "project/project.h"

#include "scan/files.h"
#include "scan/git.h"
#include "project/trust_list.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The folder of `start`, absolute and without links; the folder that contains it when it is a file. */
static lode_status project_start_dir(const char *start, strbuf *out, bool *is_file, lode_error *err) {
  char *real = realpath(start ? start : ".", NULL);
  if (!real && errno == ENOENT)
    return err_set(err, LODE_NOT_FOUND, "there is no file or folder %.400s",
                   start ? start : "(the working directory was removed)");
  if (!real) return err_errno(err, errno, start ? start : "the working directory");
  size_t len = strlen(real);
  *is_file = start && !files_is_dir(real); /* the user may not be allowed to stat the working directory */
  if (*is_file)
    while (len > 1 && real[--len] != '/') {}
  out->len = 0;
  strbuf_add(out, real, len ? len : 1);
  free(real);
  return out->failed ? err_nomem(err) : LODE_OK;
}

/* Sets path to "folder/name", for the folder from[0..len). */
static bool project_put_name(strbuf *path, lode_str from, size_t len, const char *name) {
  path->len = 0;
  strbuf_add(path, from.data, len);
  if (len == 0 || from.data[len - 1] != '/') strbuf_addch(path, '/');
  strbuf_add(path, name, strlen(name) + 1);
  return !path->failed;
}

/* True also for a .git that leads nowhere. *own = false: another user's. */
static bool project_path_exists(const char *path, bool *own) {
  struct stat st;
  bool there = os_api->lstat_at(AT_FDCWD, path, &st) == 0;
  *own = there && !files_is_stranger(&st);
  return there;
}

static bool project_is_link(const char *path) {
  struct stat st;
  return os_api->lstat_at(AT_FDCWD, path, &st) == 0 && S_ISLNK(st.st_mode);
}

lode_status project_find(lode_str from, size_t *store, size_t *git, char *passed, size_t size, lode_error *err) {
  strbuf path = {0};
  size_t at = from.len;
  lode_status st = LODE_OK;
  *store = *git = 0;
  passed[0] = '\0';
  for (;;) {
    if (!project_put_name(&path, from, at, PROJECT_DIR_NAME)) TRY_GOTO(err_nomem(err));
    if (files_is_dir(path.data)) {
      const char *why = project_is_link(path.data) ? "is a symbolic link" : trust_foreign_reason(path.data);
      if (!*why)
        *store = at ? at : 1;
      else if (!passed[0])
        snprintf(passed, size, "%.300s %s: it is passed over", path.data, why);
    }
    if (!project_put_name(&path, from, at, ".git")) TRY_GOTO(err_nomem(err));
    bool own, ends = project_path_exists(path.data, &own);
    if (own)
      *git = at ? at : 1;
    else if (ends && !*store && !passed[0])
      snprintf(passed, size,
               "%.300s belongs to another user: its folder is not taken for the project "
               "(LODE_TRUST=1 trusts every folder)",
               path.data);
    if (*store || ends || at <= 1) break;
    while (at > 1 && from.data[at - 1] != '/') at--;
    if (at > 1) at--;
  }
done:
  strbuf_release(&path);
  return st;
}

/* A store ROOT/.lode belongs to the project ROOT: *root is the length of ROOT in path; 0 for other stores. */
static lode_status project_root_of_store(const char *store, strbuf *path, size_t *root, lode_error *err) {
  char *real = realpath(store, NULL), *slash = real ? strrchr(real, '/') : NULL;
  *root = 0;
  if (slash && strcmp(slash + 1, PROJECT_DIR_NAME) == 0) {
    *root = slash == real ? 1 : (size_t)(slash - real);
    path->len = 0;
    strbuf_add(path, real, *root);
  }
  free(real);
  return path->failed ? err_nomem(err) : LODE_OK;
}

/* A link that the user named is followed; one that was found could lead anywhere and is refused. */
static lode_status project_check_link(const project_info *p, const char *store, char **target, lode_error *err) {
  *target = NULL;
  if (!project_is_link(p->folder)) return LODE_OK;
  if (store) return beneath_resolve(store, target, err);
  return err_set(err, LODE_REFUSED,
                 "%.300s is a symbolic link, and could lead to anybody's files: remove it, or name "
                 "the folder that it leads to with --store DIR",
                 p->folder);
}

static bool project_is_address(const char *store) { return store && strstr(store, "://") != NULL; }

/* Keeps the address of a cluster, and goes on as if no store had been named. */
static lode_status project_take_address(project_info *p, const char **store, lode_error *err) {
  if (!project_is_address(*store)) return LODE_OK;
  p->address = str_dup(*store, strlen(*store));
  *store = NULL;
  return p->address ? LODE_OK : err_nomem(err);
}

lode_status project_locate(project_info *p, const char *start, const char *store, lode_error *err) {
  strbuf at = {0}, folder = {0};
  lode_status st;
  git_repo repo = {0};
  size_t len = 0, found, git;
  bool is_file = false;
  char *target = NULL;
  memset(p, 0, sizeof *p);
  TRY_GOTO(project_take_address(p, &store, err));
  TRY_GOTO(project_start_dir(start, &at, &is_file, err));
  if (store && !start) TRY_GOTO(project_root_of_store(store, &at, &len, err));
  if (!store) {
    TRY_GOTO(project_find((lode_str){at.data, at.len}, &found, &git, p->passed, sizeof p->passed, err));
    len = found ? found : git;
  } else if (!len && git_repo_find(at.data, at.len, &repo) != GIT_REPO_NONE) {
    len = repo.top;
  }
  /* A file stands for its project, but not for whatever else is in its folder */
  if (!len && is_file)
    TRY_GOTO(err_set(err, LODE_INVALID,
                     "%.300s is a file that belongs to no project (there is neither .lode nor .git "
                     "above it): name a folder",
                     start));
  p->root = str_dup(at.data, len ? len : at.len);
  if (!p->root) TRY_GOTO(err_nomem(err));
  if (store)
    strbuf_addstr(&folder, store);
  else
    TRY_GOTO(files_join(&folder, p->root, PROJECT_DIR_NAME, err));
  p->folder = folder.failed ? NULL : str_dup(folder.data ? folder.data : "", store ? folder.len : folder.len - 1);
  if (!p->folder) TRY_GOTO(err_nomem(err));
  TRY_GOTO(project_check_link(p, store, &target, err));
  size_t n = strlen(p->folder);
  /* not passed over, but refused */
  if (!store && strncmp(p->passed, p->folder, n) == 0 && p->passed[n] == ' ') p->passed[0] = '\0';
  if (target) {
    mem_free(p->folder);
    p->folder = target;
  }
done:
  git_repo_release(&repo);
  strbuf_release(&at);
  strbuf_release(&folder);
  if (st != LODE_OK) project_release(p);
  return st;
}

lode_status project_of_store(project_info *p, const char *store, lode_error *err) {
  strbuf root = {0};
  char *target = NULL;
  size_t len;
  lode_status st;
  memset(p, 0, sizeof *p);
  TRY_GOTO(project_root_of_store(store, &root, &len, err));
  p->root = str_dup(len ? root.data : "", len);
  p->folder = str_dup(store, strlen(store));
  if (project_is_address(store)) p->address = str_dup(store, strlen(store));
  if (!p->root || !p->folder || (project_is_address(store) && !p->address)) TRY_GOTO(err_nomem(err));
  TRY_GOTO(project_check_link(p, store, &target, err));
  if (target) {
    mem_free(p->folder);
    p->folder = target;
  }
done:
  strbuf_release(&root);
  if (st != LODE_OK) project_release(p);
  return st;
}

lode_status project_open(project_info *p, const char *start, const char *store, lode_error *err) {
  TRY(project_locate(p, start, store, err));
  lode_status st = config_load(&p->config, p->folder, err);
  if (st != LODE_OK) project_release(p);
  return st;
}

void project_release(project_info *p) {
  config_release(&p->config);
  trust_release(&p->trust);
  mem_free(p->root);
  mem_free(p->folder);
  mem_free(p->address);
  memset(p, 0, sizeof *p);
}

lode_status project_open_model(const project_info *p, lode_str name, const lode_embedder_options *options,
                               lode_embedder **model, lode_error *err) {
  char quoted[256];
  *model = NULL;
  if (trust_allows_model(&p->trust, name)) return lode_embedder_open(name, options, model, err);
  return err_set(err, LODE_REFUSED, "the index names the model %s, and was not made by you: `lode trust` allows it",
                 str_quote(name, quoted, sizeof quoted));
}

const char *project_display_name(const project_info *p) { return p->root[0] ? p->root : p->folder; }

const char *project_store(const project_info *p) { return p->address ? p->address : p->folder; }

bool project_has_store(const project_info *p) {
  struct stat info;
  if (p->address) return true;
  return beneath_lstat(p->folder, STOREFILE_DB, &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

lode_status project_write_gitignore(const char *folder, lode_error *err) {
  static const char ignore[] = "# made by lode: the index of this project, which can be made again\n*\n";
  struct stat info;
  if (beneath_lstat(folder, ".gitignore", &info) == 0) return LODE_OK;
  return files_write_beneath(folder, ".gitignore", (lode_str){ignore, sizeof ignore - 1}, err);
}

lode_status project_need_folder(const project_info *p, const char *what, lode_error *err) {
  if (!p->address) return LODE_OK;
  return err_set(err, LODE_UNSUPPORTED, "%s is about a store in a folder, and this one is on a cluster (%.200s)", what,
                 p->address);
}

lode_status project_prepare(const project_info *p, lode_error *err) {
  if (os_api->mkdir(p->folder, 0700) < 0 && errno != EEXIST) {
    if (errno == ENOENT) return err_set(err, LODE_GONE, "the folder of %.400s was removed", p->folder);
    return err_set(err, errno == EROFS || errno == EACCES ? LODE_READONLY : LODE_IO,
                   "the index cannot be made in %.300s: %.100s; name another place with --store DIR", p->folder,
                   strerror(errno));
  }
  return project_write_gitignore(p->folder, err);
}
