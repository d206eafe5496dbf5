/* stream.c - see stream.h. Data goes through read(2) and write(2), which work on pipes too; names (open, rename,
 * unlink) and syncs go through the door to the operating system. */
#include "stream.h"

#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

volatile sig_atomic_t lode__interrupted;

int lode__write_fd(int fd, const void *data, size_t size) {
  const char *p = data;
  while (size) {
    ssize_t n = write(fd, p, size);
    if (n < 0) {
      if (errno == EINTR && !lode__interrupted) continue;
      return errno;
    }
    p += n;
    size -= (size_t)n;
  }
  return 0;
}

/* ---- In ---- */

lode_status lode__stream_open(lode__stream *stream, const char *path, lode_error *err) {
  struct stat info;
  memset(stream, 0, sizeof *stream);
  stream->own = strcmp(path, "-") != 0;
  stream->fd = stream->own ? lode__os->open(path, O_RDONLY | O_CLOEXEC, 0) : STDIN_FILENO;
  if (stream->fd < 0) {
    char quoted[256];
    int errnum = errno;
    lode__quote(lode__str(path), quoted, sizeof quoted);
    if (errnum == ENOENT) return lode__fail(err, LODE_NOT_FOUND, "there is no file %s", quoted);
    return lode__fail_errno(err, errnum, quoted);
  }
  if (lode__os->fstat(stream->fd, &info) == 0) {
    if (S_ISDIR(info.st_mode)) {
      lode__stream_close(stream);
      return lode__fail(err, LODE_INVALID, "%.400s is a folder: give a file", path);
    }
    if (S_ISREG(info.st_mode)) stream->size = (uint64_t)info.st_size;
  }
  return LODE_OK;
}

int64_t lode__stream_read(void *stream, void *buffer, size_t size) {
  lode__stream *s = stream;
  for (;;) {
    ssize_t n = lode__interrupted ? -1 : read(s->fd, buffer, size);
    if (n >= 0) {
      s->pos += (uint64_t)n;
      return n;
    }
    if (lode__interrupted || errno != EINTR) {
      s->errnum = lode__interrupted ? EINTR : errno;
      return -1;
    }
  }
}

void lode__stream_close(lode__stream *stream) {
  if (stream->own && stream->fd >= 0) lode__os->close(stream->fd);
  memset(stream, 0, sizeof *stream);
  stream->fd = -1;
}

lode_status lode__read_all(const char *path, size_t max, lode__buf *out, lode_error *err) {
  lode__stream stream;
  lode_status st = lode__stream_open(&stream, path, err);
  if (st != LODE_OK) return st;
  for (;;) {
    size_t chunk = out->len == 0 && stream.size > 0 && stream.size < max ? (size_t)stream.size + 1 : 65536;
    char *room = lode__buf_room(out, chunk);
    if (!room) {
      st = lode__fail_nomem(err);
      break;
    }
    int64_t n = lode__stream_read(&stream, room, chunk);
    if (n <= 0) {
      if (n < 0) st = lode__fail_errno(err, stream.errnum, path);
      break;
    }
    out->len += (size_t)n;
    if (out->len > max) {
      st = lode__fail(err, LODE_LIMIT, "%.300s is larger than %zu bytes", path, max);
      break;
    }
  }
  lode__stream_close(&stream);
  return st;
}

/* ---- Out ---- */

lode_status lode__out_file_open(lode__out_file *file, const char *path, lode_error *err) {
  struct stat info;
  memset(file, 0, sizeof *file);
  file->fd = -1;
  file->path = path;
  if (lode__os->stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
    if (S_ISDIR(info.st_mode)) return lode__fail(err, LODE_INVALID, "%.400s is a folder: give a file", path);
    file->direct = true;
    file->fd = lode__os->open(path, O_WRONLY | O_CLOEXEC, 0);
  } else {
    lode__buf_addf(&file->tmp, "%s.tmp-%016llx", path, (unsigned long long)lode__random());
    lode__buf_addc(&file->tmp, '\0');
    if (file->tmp.failed) return lode__fail_nomem(err);
    file->fd = lode__os->open(file->tmp.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  }
  if (file->fd < 0) {
    int errnum = errno;
    lode__buf_release(&file->tmp);
    return lode__fail_errno(err, errnum, path);
  }
  return LODE_OK;
}

int64_t lode__out_file_write(void *file, const void *data, size_t size) {
  lode__out_file *f = file;
  int errnum = lode__write_fd(f->fd, data, size);
  if (errnum) {
    f->errnum = errnum;
    return -1;
  }
  return (int64_t)size;
}

lode_status lode__out_file_commit(lode__out_file *file, lode_error *err) {
  if (file->direct) return LODE_OK;
  if (lode__os->fsync(file->fd) < 0) return lode__fail_errno(err, errno, file->path);
  if (lode__os->rename(file->tmp.data, file->path) < 0) return lode__fail_errno(err, errno, file->path);
  lode__buf_release(&file->tmp);
  return lode__os_sync_folder_of(file->path, err);
}

void lode__out_file_close(lode__out_file *file) {
  if (file->fd >= 0) lode__os->close(file->fd);
  if (file->tmp.data) lode__os->unlink(file->tmp.data);
  lode__buf_release(&file->tmp);
  file->fd = -1;
}
