/* fs.c - see fs.h. */
#include "fs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { READ_STEP = 64 * 1024, MOST_LINKS = 40 };

bool lode__fs_is_folder(const char *path) {
  struct stat info;
  return LODE__RETRY(lode__os->stat(path, &info)) == 0 && S_ISDIR(info.st_mode);
}

bool lode__fs_exists(const char *path) {
  struct stat info;
  return LODE__RETRY(lode__os->stat(path, &info)) == 0;
}

lode_status lode__fs_join(lode__buf *out, const char *folder, const char *name, lode_error *err) {
  out->len = 0;
  lode__buf_adds(out, folder);
  if (out->len == 0 || out->data[out->len - 1] != '/') lode__buf_addc(out, '/');
  lode__buf_adds(out, name);
  lode__buf_addc(out, '\0');
  return out->failed ? lode__fail_nomem(err) : LODE_OK;
}

/* One link: `out` becomes what it names. *more = false when it is not a link. */
static lode_status follow_link(lode__buf *out, bool *more, lode_error *err) {
  char to[PATH_MAX];
  ssize_t n = readlink(out->data, to, sizeof to - 1);
  *more = n >= 0;
  if (n < 0) return errno == EINVAL || errno == ENOENT || errno == ENOTDIR ? LODE_OK : lode__fail_errno(err, errno, out->data);
  const char *slash = strrchr(out->data, '/');
  out->len = to[0] == '/' || !slash ? 0 : (size_t)(slash + 1 - out->data);
  lode__buf_add(out, to, (size_t)n);
  lode__buf_addc(out, '\0');
  return out->failed ? lode__fail_nomem(err) : LODE_OK;
}

lode_status lode__fs_resolve(const char *path, lode__buf *out, lode_error *err) {
  bool more = true;
  out->len = 0;
  lode__buf_adds(out, path);
  lode__buf_addc(out, '\0');
  if (out->failed) return lode__fail_nomem(err);
  for (int i = 0; i < MOST_LINKS; i++) {
    LODE__TRY(follow_link(out, &more, err));
    if (!more) return LODE_OK;
  }
  return lode__fail(err, LODE_REFUSED, "%.400s is a link that leads to itself: mend or remove it", path);
}

lode_status lode__fs_read(const char *path, size_t max, lode__buf *out, lode_error *err) {
  lode_status st = LODE_OK;
  struct stat info;
  out->len = 0;
  int fd = LODE__RETRY(lode__os->open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0)); /* a pipe does not wait for a writer */
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return lode__fail(err, LODE_NOT_FOUND, "there is no file %.400s", path);
  if (fd < 0) return lode__fail_errno(err, errno, path);
  if (LODE__RETRY(lode__os->fstat(fd, &info)) < 0) LODE__GOTO(lode__fail_errno(err, errno, path));
  if (!S_ISREG(info.st_mode)) LODE__GOTO(lode__fail(err, LODE_INVALID, "%.400s is not a regular file", path));
  for (;;) {
    size_t got = 0, room = READ_STEP;
    char *to = lode__buf_room(out, room + 1);
    if (!to) LODE__GOTO(lode__fail_nomem(err));
    LODE__GOTO(lode__os_read_full(fd, to, room, out->len, &got, err));
    out->len += got;
    if (out->len > max) LODE__GOTO(lode__fail(err, LODE_LIMIT, "%.400s is longer than %zu bytes", path, max));
    if (got < room) break;
  }
  out->data[out->len] = '\0';
done:
  lode__os->close(fd);
  return st;
}

lode_status lode__fs_write(const char *path, lode_str data, lode_error *err) {
  struct stat old;
  lode__buf beside = {0};
  lode_status st = LODE_OK;
  bool is_old = LODE__RETRY(lode__os->stat(path, &old)) == 0;
  unsigned mode = is_old ? old.st_mode & 07777 : 0644;
  int fd = -1;
  lode__buf_addf(&beside, "%s.%llx.tmp", path, (unsigned long long)lode__random());
  if (beside.failed) LODE__GOTO(lode__fail_nomem(err));
  fd = LODE__RETRY(lode__os->open(beside.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (fd < 0) LODE__GOTO(lode__fail_errno(err, errno, path));
  if (is_old) (void)fchmod(fd, mode); /* what the umask took; a file system without modes is as good */
  st = lode__os_write_full(fd, data.data, data.len, 0, err);
  if (st == LODE_OK && LODE__RETRY(lode__os->fsync(fd)) < 0) st = lode__fail_errno(err, errno, path);
  lode__os->close(fd);
  if (st == LODE_OK && LODE__RETRY(lode__os->rename(beside.data, path)) < 0) st = lode__fail_errno(err, errno, path);
  if (st != LODE_OK) lode__os->unlink(beside.data);
  else st = lode__os_sync_folder_of(path, err);
done:
  lode__buf_release(&beside);
  return st;
}

lode_status lode__fs_make_parents(const char *path, lode_error *err) {
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
    int errnum = LODE__RETRY(lode__os->mkdir(part.data, 0700)) < 0 ? errno : 0;
    if (errnum && !lode__fs_is_folder(part.data)) {
      st = errnum == EEXIST ? lode__fail(err, LODE_INVALID, "%.400s is a file: a store is a folder, name another one", part.data)
                            : lode__fail_errno(err, errnum, part.data);
      break;
    }
  }
  lode__buf_release(&part);
  return st;
}

/* Goes down to a folder without folders, removes it, and begins anew at the top: no stack, and folders are few. */
static lode_status remove_deepest(const char *top, lode__buf *path, bool *gone, lode_error *err) {
  lode_status st = LODE_OK;
  path->len = 0;
  lode__buf_adds(path, top);
  lode__buf_addc(path, '\0');
  for (;;) {
    if (path->failed) return lode__fail_nomem(err);
    lode__os_folder *folder = lode__os_folder_open(path->data);
    size_t base = path->len - 1;
    bool deeper = false;
    const char *name;
    if (!folder) return lode__fail_errno(err, errno, path->data);
    while (!deeper && st == LODE_OK && (name = lode__os_folder_next(folder)) != NULL) {
      path->len = base;
      lode__buf_addf(path, "/%s", name);
      lode__buf_addc(path, '\0');
      if (path->failed) st = lode__fail_nomem(err);
      else if (unlink(path->data) == 0 || errno == ENOENT) continue;
      else if (errno == EISDIR || errno == EPERM) deeper = true;
      else st = lode__fail_errno(err, errno, path->data);
    }
    lode__os_folder_close(folder);
    if (st != LODE_OK) return st;
    if (deeper) continue;
    path->len = base;
    lode__buf_addc(path, '\0');
    if (lode__os->rmdir(path->data) < 0 && errno != ENOENT) return lode__fail_errno(err, errno, path->data);
    *gone = base == strlen(top);
    return LODE_OK;
  }
}

lode_status lode__fs_remove_tree(const char *path, lode_error *err) {
  lode__buf work = {0};
  lode_status st = LODE_OK;
  bool gone = !lode__fs_exists(path);
  while (!gone && st == LODE_OK) st = remove_deepest(path, &work, &gone, err);
  lode__buf_release(&work);
  return st;
}
