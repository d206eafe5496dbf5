/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - see files.h. */
#include "scan/files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILES_READ_STEP = 64 * 1024, FILES_MAX_LINKS = 40 };

bool files_is_dir(const char *path) {
  struct stat info;
  return OS_RETRY(os_api->stat(path, &info)) == 0 && S_ISDIR(info.st_mode);
}

bool files_exists(const char *path) {
  struct stat info;
  return OS_RETRY(os_api->stat(path, &info)) == 0;
}

lode_status files_join(strbuf *out, const char *folder, const char *name, lode_error *err) {
  out->len = 0;
  strbuf_addstr(out, folder);
  if (out->len == 0 || out->data[out->len - 1] != '/') strbuf_addch(out, '/');
  strbuf_addstr(out, name);
  strbuf_addch(out, '\0');
  return out->failed ? err_nomem(err) : LODE_OK;
}

/* One link: `out` becomes what it names. *more = false when it is not a link. */
static lode_status files_follow_link(strbuf *out, bool *more, lode_error *err) {
  char to[PATH_MAX];
  ssize_t n = readlink(out->data, to, sizeof to - 1);
  *more = n >= 0;
  if (n < 0) return errno == EINVAL || errno == ENOENT || errno == ENOTDIR ? LODE_OK : err_errno(err, errno, out->data);
  const char *slash = strrchr(out->data, '/');
  out->len = to[0] == '/' || !slash ? 0 : (size_t)(slash + 1 - out->data);
  strbuf_add(out, to, (size_t)n);
  strbuf_addch(out, '\0');
  return out->failed ? err_nomem(err) : LODE_OK;
}

lode_status files_resolve_links(const char *path, strbuf *out, lode_error *err) {
  bool more = true;
  out->len = 0;
  strbuf_addstr(out, path);
  strbuf_addch(out, '\0');
  if (out->failed) return err_nomem(err);
  for (int i = 0; i < FILES_MAX_LINKS; i++) {
    TRY(files_follow_link(out, &more, err));
    if (!more) return LODE_OK;
  }
  return err_set(err, LODE_REFUSED, "%.400s is a link that leads to itself: correct or remove it", path);
}

lode_status files_check_link_owners(const char *path, lode_error *err) {
  strbuf at = {0};
  struct stat info;
  lode_status st = LODE_OK;
  bool more = true;
  strbuf_add(&at, path, strlen(path) + 1);
  if (at.failed) st = err_nomem(err);
  for (int i = 0; st == LODE_OK && more && i < FILES_MAX_LINKS; i++) {
    if (OS_RETRY(os_api->lstat_at(AT_FDCWD, at.data, &info)) < 0 || !S_ISLNK(info.st_mode)) break;
    st = files_is_own_uid(info.st_uid) ? files_follow_link(&at, &more, err)
                                       : err_set(err, LODE_REFUSED, "the link %.400s belongs to another user", at.data);
  }
  strbuf_release(&at);
  return st == LODE_REFUSED || st == LODE_NOMEM ? st : LODE_OK;
}

/* Closes fd. fd < 0: opening failed, and errno says why. */
static lode_status files_read_fd(int fd, const char *path, size_t max, strbuf *out, lode_error *err) {
  lode_status st = LODE_OK;
  out->len = 0;
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
    return err_set(err, LODE_NOT_FOUND, "there is no file %.400s", path);
  if (fd < 0) return err_errno(err, errno, path);
  for (;;) {
    size_t got = 0, step = FILES_READ_STEP;
    char *to = strbuf_reserve(out, step + 1);
    if (!to) TRY_GOTO(err_nomem(err));
    TRY_GOTO(os_read_full(fd, to, step, out->len, &got, err));
    out->len += got;
    if (out->len > max) TRY_GOTO(err_set(err, LODE_LIMIT, "%.400s is longer than %zu bytes", path, max));
    if (got < step) break;
  }
  out->data[out->len] = '\0';
done:
  os_api->close(fd);
  return st;
}

lode_status files_read(const char *path, size_t max, strbuf *out, lode_error *err) {
  return files_read_fd(os_open_regular(path), path, max, out, err);
}

lode_status files_read_beneath(const char *folder, const char *name, size_t max, strbuf *out, lode_error *err) {
  strbuf path = {0};
  TRY(files_join(&path, folder, name, err));
  lode_status st = files_read_fd(beneath_open(folder, name, O_RDONLY, 0), path.data, max, out, err);
  strbuf_release(&path);
  return st;
}

/* ---- Writing ---- */

static lode_status files_out_open_in(files_out *f, const char *folder, const char *name, unsigned mode,
                                     lode_error *err) {
  struct stat old;
  *f = (files_out){.fd = -1};
  bool is_old = beneath_lstat(folder, name, &old) == 0 && S_ISREG(old.st_mode);
  if (is_old) mode = old.st_mode & 07777;
  strbuf_addf(&f->folder, "%s%c", folder, 0);
  strbuf_addf(&f->name, "%s%c", name, 0);
  strbuf_addf(&f->tmp, "%s.%llx.tmp%c", name, (unsigned long long)rand_u64(), 0);
  lode_status st = f->folder.failed || f->name.failed || f->tmp.failed ? err_nomem(err) : LODE_OK;
  if (st == LODE_OK) f->fd = beneath_open(folder, f->tmp.data, O_WRONLY | O_CREAT | O_EXCL, mode);
  if (st == LODE_OK && f->fd < 0) st = err_errno(err, errno, folder);
  if (st != LODE_OK) {
    files_out_close(f);
    return st;
  }
  if (is_old) (void)fchmod(f->fd, mode); /* undo the umask; may fail on file systems without modes */
  return LODE_OK;
}

lode_status files_out_open_path(files_out *f, const char *path, unsigned mode, lode_error *err) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  strbuf named = {0};
  char *folder = NULL;
  lode_status st;
  *f = (files_out){.fd = -1};
  strbuf_add(&named, slash ? path : ".", slash ? (size_t)(slash - path) + (slash == path) : 1);
  strbuf_addch(&named, '\0');
  if (named.failed) TRY_GOTO(err_nomem(err));
  TRY_GOTO(beneath_resolve(named.data, &folder, err));
  TRY_GOTO(files_out_open_in(f, folder, name, mode, err));
done:
  strbuf_release(&named);
  mem_free(folder);
  return st;
}

lode_status files_out_commit(files_out *f, lode_error *err) {
  if (OS_RETRY(os_api->fsync(f->fd)) < 0) return err_errno(err, errno, f->name.data);
  if (beneath_rename(f->folder.data, f->tmp.data, f->name.data) < 0) return err_errno(err, errno, f->name.data);
  f->committed = true;
  return beneath_sync_dir(f->folder.data, f->name.data, err);
}

void files_out_close(files_out *f) {
  if (f->fd >= 0) os_api->close(f->fd);
  if (f->fd >= 0 && !f->committed) (void)beneath_unlink(f->folder.data, f->tmp.data);
  strbuf_release(&f->folder);
  strbuf_release(&f->name);
  strbuf_release(&f->tmp);
  *f = (files_out){.fd = -1};
}

static lode_status files_out_finish(files_out *f, lode_status st, lode_str data, lode_error *err) {
  if (st == LODE_OK) st = os_write_full(f->fd, data.data, data.len, 0, err);
  if (st == LODE_OK) st = files_out_commit(f, err);
  files_out_close(f);
  return st;
}

lode_status files_write_beneath(const char *folder, const char *name, lode_str data, lode_error *err) {
  files_out out;
  lode_status st = files_out_open_in(&out, folder, name, 0644, err);
  return files_out_finish(&out, st, data, err);
}

lode_status files_write(const char *path, lode_str data, lode_error *err) {
  files_out out;
  lode_status st = files_out_open_path(&out, path, 0644, err);
  return files_out_finish(&out, st, data, err);
}

lode_status files_make_parents(const char *path, lode_error *err) {
  strbuf part = {0};
  lode_status st = LODE_OK;
  for (const char *p = path + (path[0] == '/'); (p = strchr(p, '/')) != NULL; p++) {
    part.len = 0;
    strbuf_add(&part, path, (size_t)(p - path));
    strbuf_addch(&part, '\0');
    if (part.failed) {
      st = err_nomem(err);
      break;
    }
    int errnum = OS_RETRY(os_api->mkdir(part.data, 0700)) < 0 ? errno : 0;
    if (errnum && !files_is_dir(part.data)) {
      st = errnum == EEXIST
               ? err_set(err, LODE_INVALID, "%.400s is a file: a store is a folder, name another one", part.data)
               : err_errno(err, errnum, part.data);
      break;
    }
  }
  strbuf_release(&part);
  return st;
}

/* ---- Owners ---- */

bool files_is_own_uid(uid_t owner) {
  uid_t me = geteuid();
  const char *sudo = me == 0 ? getenv("SUDO_UID") : NULL;
  char *end = NULL;
  if (owner == me) return true;
  if (!sudo || *sudo < '0' || *sudo > '9') return false;
  errno = 0;
  unsigned long uid = strtoul(sudo, &end, 10);
  return errno == 0 && *end == '\0' && (unsigned long)owner == uid;
}

bool files_trusts_everybody(void) {
  const char *all = getenv("LODE_TRUST");
  return all && strcmp(all, "1") == 0;
}

bool files_is_stranger(const struct stat *st) { return !files_is_own_uid(st->st_uid) && !files_trusts_everybody(); }

/* ---- Paths as text ---- */

static const char files_hex_digits[] = "0123456789abcdef";

int files_hex_value(char c) {
  const char *p = c ? strchr(files_hex_digits, c) : NULL;
  return p ? (int)(p - files_hex_digits) : -1;
}

static bool files_is_escape(const char *p, size_t left) {
  return left >= 4 && p[0] == '\\' && p[1] == 'x' && files_hex_value(p[2]) >= 0 && files_hex_value(p[3]) >= 0;
}

void files_path_escape(strbuf *out, lode_str path) {
  for (size_t i = 0; i < path.len;) {
    size_t n = utf8_width(path.data + i, path.len - i);
    unsigned char c = (unsigned char)path.data[i];
    bool plain = n > 0 && c >= 0x20 && c != 0x7f && !files_is_escape(path.data + i, path.len - i);
    if (plain) {
      strbuf_add(out, path.data + i, n);
      i += n;
    } else {
      char text[4] = {'\\', 'x', files_hex_digits[c >> 4], files_hex_digits[c & 15]};
      strbuf_add(out, text, sizeof text);
      i++;
    }
  }
}

void files_path_unescape(strbuf *out, lode_str shown) {
  for (size_t i = 0; i < shown.len;) {
    if (files_is_escape(shown.data + i, shown.len - i)) {
      strbuf_addch(out, (char)(files_hex_value(shown.data[i + 2]) * 16 + files_hex_value(shown.data[i + 3])));
      i += 4;
    } else {
      strbuf_addch(out, shown.data[i++]);
    }
  }
}
