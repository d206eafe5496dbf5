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

/* Takes the descriptor, or the errno of why there is none. */
static lode_status read_whole(int fd, const char *path, size_t max, lode__buf *out, lode_error *err) {
  lode_status st = LODE_OK;
  out->len = 0;
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return lode__fail(err, LODE_NOT_FOUND, "there is no file %.400s", path);
  if (fd < 0) return lode__fail_errno(err, errno, path);
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

lode_status lode__fs_read(const char *path, size_t max, lode__buf *out, lode_error *err) {
  return read_whole(lode__os_open_regular(path), path, max, out, err);
}

lode_status lode__fs_read_inside(const char *folder, const char *name, size_t max, lode__buf *out, lode_error *err) {
  lode__buf path = {0};
  LODE__TRY(lode__fs_join(&path, folder, name, err));
  lode_status st = read_whole(lode__inside_open(folder, name, O_RDONLY, 0), path.data, max, out, err);
  lode__buf_release(&path);
  return st;
}

lode_status lode__fs_write_inside(const char *folder, const char *name, lode_str data, lode_error *err) {
  struct stat old;
  char beside[PATH_MAX];
  lode_status st;
  bool is_old = lode__inside_lstat(folder, name, &old) == 0 && S_ISREG(old.st_mode);
  unsigned mode = is_old ? old.st_mode & 07777 : 0644;
  int n = snprintf(beside, sizeof beside, "%s.%llx.tmp", name, (unsigned long long)lode__random());
  if (n < 0 || (size_t)n >= sizeof beside) return lode__fail_errno(err, ENAMETOOLONG, name);
  int fd = lode__inside_open(folder, beside, O_WRONLY | O_CREAT | O_EXCL, mode);
  if (fd < 0) return lode__fail_errno(err, errno, folder);
  if (is_old) (void)fchmod(fd, mode); /* what the umask took; a file system without modes is as good */
  st = lode__os_write_full(fd, data.data, data.len, 0, err);
  if (st == LODE_OK && LODE__RETRY(lode__os->fsync(fd)) < 0) st = lode__fail_errno(err, errno, name);
  lode__os->close(fd);
  if (st == LODE_OK && lode__inside_rename(folder, beside, name) < 0) st = lode__fail_errno(err, errno, name);
  if (st != LODE_OK) (void)lode__inside_unlink(folder, beside);
  else st = lode__inside_sync(folder, name, err);
  return st;
}

lode_status lode__fs_write(const char *path, lode_str data, lode_error *err) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  lode__buf named = {0};
  char *folder = NULL;
  lode_status st;
  lode__buf_add(&named, slash ? path : ".", slash ? (size_t)(slash - path) + (slash == path) : 1);
  lode__buf_addc(&named, '\0');
  if (named.failed) LODE__GOTO(lode__fail_nomem(err));
  LODE__GOTO(lode__inside_resolve(named.data, &folder, err));
  LODE__GOTO(lode__fs_write_inside(folder, name, data, err));
done:
  lode__buf_release(&named);
  lode__free(folder);
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
