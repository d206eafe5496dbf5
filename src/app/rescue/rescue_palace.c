/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_palace.c - the files of a MemPalace palace that are not Chroma's: its knowledge graph, settings and whatever
 * else lies there, copied into another folder. See rescue.h.
 *
 * The palace is only read, and no link is followed. The files of one folder are copied together under names of their
 * own and get their right names when none of them has changed meanwhile: a database and its log must be of one moment.
 * Each is read again for that, after all were copied: two writes within a tick of the clock leave size and times alone.
 * A file that is there already is never replaced, because the new palace may be in use; only the log of a database
 * that is not there yet is, which an interrupted run has left.
 */
#include "rescue/rescue.h"

#include "base/sha256.h"
#include "os/beneath.h"
#include "os/os.h"

enum {
  PALACE_MAX_FILES = 1000000,
  PALACE_MAX_PATH = 4096,
  PALACE_ATTEMPTS = 5, /* while somebody writes */
  PALACE_COPY_BYTES = 1 << 16,
};
#define PALACE_PART ".lode-part"

typedef struct palace_file {
  const char *path; /* relative to the palace */
  struct stat before;
  uint8_t digest[SHA256_BYTES]; /* of what was copied */
  bool copied;
} palace_file;

typedef struct palace_copy {
  const rescue_palace_request *request;
  rescue_palace_report *report;
  mem_arena arena;
  const char **folders; /* still to be copied */
  size_t n_folders, cap_folders;
  palace_file *files; /* of the current folder */
  size_t n_files, cap_files;
} palace_copy;

static bool palace_ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

/* A segment of Chroma's index: the name is a UUID, perhaps with something after it. */
static bool palace_is_segment(const char *name) {
  for (size_t i = 0; i < 36; i++) {
    bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (!name[i] || (dash ? name[i] != '-' : !strchr("0123456789abcdefABCDEF", name[i]))) return false;
  }
  return true;
}

static const char palace_of_chroma[] = "Chroma's, brought over record by record";

/* Why a name is not copied; NULL: it is. */
static const char *palace_left_out(const char *folder, const char *name, os_kind kind) {
  bool top = strcmp(folder, ".") == 0;
  if (top && (strncmp(name, "chroma.sqlite3", 14) == 0 || palace_is_segment(name))) return palace_of_chroma;
  if (top && strcmp(name, "lode") == 0) return "the place of the new store";
  if (palace_ends_with(name, "-shm")) return "made again by SQLite";
  if (palace_ends_with(name, PALACE_PART)) return "left by an interrupted copy";
  return kind == OS_KIND_FILE || kind == OS_KIND_DIR ? NULL : "neither a file nor a folder";
}

/* Not all file systems say the kind with the name. */
static os_kind palace_kind(const palace_copy *c, const char *path, os_kind kind) {
  struct stat st;
  if (kind != OS_KIND_UNKNOWN) return kind;
  if (beneath_lstat(c->request->from, path, &st) != 0) return OS_KIND_OTHER;
  return S_ISREG(st.st_mode) ? OS_KIND_FILE : S_ISDIR(st.st_mode) ? OS_KIND_DIR : OS_KIND_OTHER;
}

static lode_status palace_tell(palace_copy *c, const char *path, const char *what, lode_error *err) {
  return c->request->file ? c->request->file(c->request->ctx, path, what, err) : LODE_OK;
}

static lode_status palace_err(lode_error *err, const char *dir, const char *path) {
  char what[PALACE_MAX_PATH + 512];
  snprintf(what, sizeof what, "%.500s/%s", dir, path);
  return err_errno(err, errno, what);
}

/* ---- One folder ---- */

static lode_status palace_add_name(palace_copy *c, const char *folder, const char *name, os_kind kind,
                                   lode_error *err) {
  char path[PALACE_MAX_PATH];
  const char *only = c->request->only;
  if (only && strncmp(name, only, strlen(only)) != 0) return LODE_OK;
  int len = strcmp(folder, ".") ? snprintf(path, sizeof path, "%s/%s", folder, name)
                                : snprintf(path, sizeof path, "%s", name);
  if (len < 0 || (size_t)len >= sizeof path || c->n_files + c->n_folders >= PALACE_MAX_FILES)
    return err_set(err, LODE_LIMIT, "%.200s has too many files, or their paths are too long", c->request->from);
  kind = palace_kind(c, path, kind);
  const char *why = palace_left_out(folder, name, kind);
  if (why == palace_of_chroma) return LODE_OK;
  if (why) {
    c->report->left_out++;
    return palace_tell(c, path, why, err);
  }
  const char *copy = mem_arena_copy(&c->arena, path, (size_t)len);
  bool is_dir = kind == OS_KIND_DIR;
  if (!copy || !(is_dir ? mem_grow(&c->folders, &c->cap_folders, c->n_folders + 1, sizeof *c->folders)
                        : mem_grow(&c->files, &c->cap_files, c->n_files + 1, sizeof *c->files)))
    return err_nomem(err);
  if (is_dir && !only)
    c->folders[c->n_folders++] = copy;
  else if (!is_dir)
    c->files[c->n_files++] = (palace_file){.path = copy};
  return LODE_OK;
}

static lode_status palace_list(palace_copy *c, const char *folder, lode_error *err) {
  os_dir *dir = beneath_list(c->request->from, folder);
  lode_status st = LODE_OK;
  const char *name;
  os_kind kind;
  int errnum = 0;
  c->n_files = 0;
  if (!dir) return palace_err(err, c->request->from, folder);
  while (st == LODE_OK && (name = os_dir_next_kind(dir, &kind, &errnum)) != NULL)
    st = palace_add_name(c, folder, name, kind, err);
  os_dir_close(dir);
  if (st != LODE_OK || !errnum) return st;
  errno = errnum;
  return palace_err(err, c->request->from, folder);
}

/* Is there a file in its place that is to stay? */
static bool palace_is_there(const palace_copy *c, const char *path) {
  static const char *const logs[] = {"-wal", "-journal"};
  struct stat st;
  char database[PALACE_MAX_PATH];
  if (beneath_lstat(c->request->to, path, &st) != 0) return false;
  for (size_t i = 0; i < 2; i++)
    if (palace_ends_with(path, logs[i])) {
      snprintf(database, sizeof database, "%.*s", (int)(strlen(path) - strlen(logs[i])), path);
      return beneath_lstat(c->request->to, database, &st) == 0;
    }
  return true;
}

/* Reads a file to its end; `out` is -1 for a mere look at it. */
static lode_status palace_read(int in, int out, uint8_t digest[SHA256_BYTES], uint64_t *bytes, lode_error *err) {
  char buffer[PALACE_COPY_BYTES];
  sha256_ctx sha;
  size_t got;
  sha256_init(&sha);
  *bytes = 0;
  do {
    TRY(os_read_full(in, buffer, sizeof buffer, *bytes, &got, err));
    if (out >= 0) TRY(os_write_full(out, buffer, got, *bytes, err));
    sha256_update(&sha, buffer, got);
    *bytes += got;
  } while (got == sizeof buffer);
  sha256_final(&sha, digest);
  return LODE_OK;
}

static int palace_open(const palace_copy *c, const char *path) {
  return os_keep_regular(beneath_open(c->request->from, path, O_RDONLY | O_NONBLOCK, 0));
}

static lode_status palace_copy_part(palace_copy *c, palace_file *f, uint64_t *bytes, lode_error *err) {
  const rescue_palace_request *q = c->request;
  char part[PALACE_MAX_PATH + sizeof PALACE_PART];
  lode_status st;
  snprintf(part, sizeof part, "%s" PALACE_PART, f->path);
  int in = palace_open(c, f->path), out = -1;
  if (in < 0) return palace_err(err, q->from, f->path);
  (void)beneath_unlink(q->to, part);
  if (os_api->fstat(in, &f->before) != 0 ||
      (out = beneath_open(q->to, part, O_WRONLY | O_CREAT | O_EXCL, f->before.st_mode & 0700)) < 0)
    st = palace_err(err, q->to, part);
  else
    st = palace_read(in, out, f->digest, bytes, err);
  if (st == LODE_OK && OS_RETRY(os_api->fsync(out)) != 0) st = err_errno(err, errno, "a copied file");
  f->copied = out >= 0;
  (void)os_api->close(in);
  if (out >= 0) (void)os_api->close(out);
  return st;
}

/* Is a file no longer what was copied? One that is gone by now, or cannot be read, is not. */
static bool palace_has_changed(const palace_copy *c, const palace_file *f) {
  struct stat now;
  uint8_t digest[SHA256_BYTES];
  uint64_t bytes;
  int in = palace_open(c, f->path);
  if (in < 0) return true;
  bool same = os_api->fstat(in, &now) == 0 && now.st_size == f->before.st_size && now.st_ino == f->before.st_ino &&
              os_mtime_ns(&now) == os_mtime_ns(&f->before) && palace_read(in, -1, digest, &bytes, NULL) == LODE_OK &&
              memcmp(digest, f->digest, sizeof digest) == 0;
  (void)os_api->close(in);
  return !same;
}

/* Logs come before their databases, so that none is left over beside a database of another moment. */
static lode_status palace_name_parts(palace_copy *c, lode_error *err) {
  for (int logs = 1; logs >= 0; logs--)
    for (size_t i = 0; i < c->n_files; i++) {
      const char *path = c->files[i].path;
      char part[PALACE_MAX_PATH + sizeof PALACE_PART];
      bool log = palace_ends_with(path, "-wal") || palace_ends_with(path, "-journal");
      if (!c->files[i].copied || log != logs) continue;
      snprintf(part, sizeof part, "%s" PALACE_PART, path);
      if (beneath_rename(c->request->to, part, path) != 0) return palace_err(err, c->request->to, path);
      c->files[i].copied = false;
      TRY(palace_tell(c, path, "copied", err));
    }
  return LODE_OK;
}

static void palace_drop_parts(palace_copy *c) {
  for (size_t i = 0; i < c->n_files; i++) {
    char part[PALACE_MAX_PATH + sizeof PALACE_PART];
    if (!c->files[i].copied) continue;
    snprintf(part, sizeof part, "%s" PALACE_PART, c->files[i].path);
    (void)beneath_unlink(c->request->to, part);
    c->files[i].copied = false;
  }
}

/* *changed: somebody wrote meanwhile. */
static lode_status palace_try_folder(palace_copy *c, bool *changed, lode_error *err) {
  uint64_t files = 0, bytes = 0, one;
  *changed = false;
  for (size_t i = 0; i < c->n_files; i++) {
    if (palace_is_there(c, c->files[i].path)) continue;
    TRY(palace_copy_part(c, &c->files[i], &one, err));
    files++;
    bytes += one;
  }
  for (size_t i = 0; i < c->n_files && !*changed; i++)
    *changed = c->files[i].copied && palace_has_changed(c, &c->files[i]);
  if (*changed) return LODE_OK;
  TRY(palace_name_parts(c, err));
  c->report->files += files;
  c->report->bytes += bytes;
  c->report->kept += c->n_files - files;
  return LODE_OK;
}

static lode_status palace_copy_folder(palace_copy *c, const char *folder, lode_error *err) {
  bool changed = true;
  TRY(palace_list(c, folder, err));
  if (c->request->dry_run) {
    c->report->files += c->n_files;
    return LODE_OK;
  }
  if (strcmp(folder, ".") != 0 && beneath_mkdir(c->request->to, folder, 0700) != 0 && errno != EEXIST)
    return palace_err(err, c->request->to, folder);
  for (unsigned i = 0; i < PALACE_ATTEMPTS && changed; i++) {
    lode_status st = palace_try_folder(c, &changed, err);
    palace_drop_parts(c);
    TRY(st);
  }
  if (changed)
    return err_set(err, LODE_BUSY, "files of %.300s are being written: stop MemPalace, then start again",
                   c->request->from);
  return beneath_sync_dir(c->request->to, folder, err);
}

lode_status rescue_palace_files(const rescue_palace_request *request, rescue_palace_report *report, lode_error *err) {
  palace_copy c = {.request = request, .report = report};
  lode_status st = LODE_OK;
  mem_arena_init(&c.arena, 0);
  if (!mem_grow(&c.folders, &c.cap_folders, 1, sizeof *c.folders)) st = err_nomem(err);
  if (st == LODE_OK) c.folders[c.n_folders++] = ".";
  while (st == LODE_OK && c.n_folders) st = palace_copy_folder(&c, c.folders[--c.n_folders], err);
  mem_free(c.folders);
  mem_free(c.files);
  mem_arena_release(&c.arena);
  return st;
}
