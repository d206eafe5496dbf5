/* SPDX-License-Identifier: Apache-2.0 */
/* op_stream.c - see op_stream.h. Data goes through read(2) and write(2), which also work on pipes. */
#include "ops/op_stream.h"

#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

volatile sig_atomic_t op_interrupted;

int op_write_fd(int fd, const void *data, size_t size) {
  const char *p = data;
  while (size) {
    ssize_t n = write(fd, p, size);
    if (n < 0) {
      if (errno == EINTR && !op_interrupted) continue;
      return errno;
    }
    p += n;
    size -= (size_t)n;
  }
  return 0;
}

/* ---- In ---- */

lode_status op_stream_open(op_stream *stream, const char *path, lode_error *err) {
  struct stat info;
  memset(stream, 0, sizeof *stream);
  stream->own = strcmp(path, "-") != 0;
  stream->fd = stream->own ? os_api->open(path, O_RDONLY | O_CLOEXEC, 0) : STDIN_FILENO;
  if (stream->fd < 0) {
    char quoted[256];
    int errnum = errno;
    str_quote(str_of(path), quoted, sizeof quoted);
    if (errnum == ENOENT) return err_set(err, LODE_NOT_FOUND, "there is no file %s", quoted);
    return err_errno(err, errnum, quoted);
  }
  if (os_api->fstat(stream->fd, &info) == 0) {
    if (S_ISDIR(info.st_mode)) {
      op_stream_close(stream);
      return err_set(err, LODE_INVALID, "%.400s is a folder: give a file", path);
    }
    if (S_ISREG(info.st_mode)) stream->size = (uint64_t)info.st_size;
  }
  return LODE_OK;
}

int64_t op_stream_read(void *stream, void *buffer, size_t size) {
  op_stream *s = stream;
  for (;;) {
    ssize_t n = op_interrupted ? -1 : read(s->fd, buffer, size);
    if (n >= 0) {
      s->pos += (uint64_t)n;
      return n;
    }
    if (op_interrupted || errno != EINTR) {
      s->errnum = op_interrupted ? EINTR : errno;
      return -1;
    }
  }
}

void op_stream_close(op_stream *stream) {
  if (stream->own && stream->fd >= 0) os_api->close(stream->fd);
  memset(stream, 0, sizeof *stream);
  stream->fd = -1;
}

lode_status op_read_file(const char *path, size_t max, strbuf *out, lode_error *err) {
  op_stream stream;
  lode_status st = op_stream_open(&stream, path, err);
  if (st != LODE_OK) return st;
  for (;;) {
    size_t chunk = out->len == 0 && stream.size > 0 && stream.size < max ? (size_t)stream.size + 1 : 65536;
    char *space = strbuf_reserve(out, chunk);
    if (!space) {
      st = err_nomem(err);
      break;
    }
    int64_t n = op_stream_read(&stream, space, chunk);
    if (n <= 0) {
      if (n < 0) st = err_errno(err, stream.errnum, path);
      break;
    }
    out->len += (size_t)n;
    if (out->len > max) {
      st = err_set(err, LODE_LIMIT, "%.300s is larger than %zu bytes", path, max);
      break;
    }
  }
  op_stream_close(&stream);
  return st;
}

/* ---- Lines ---- */

enum { STREAM_READ_BYTES = 1 << 20 };

static lode_status lines_fill(op_lines *l, size_t bytes, lode_error *err) {
  while (!l->ended && l->buf.len < bytes) {
    size_t some = bytes - l->buf.len < STREAM_READ_BYTES ? bytes - l->buf.len : STREAM_READ_BYTES;
    char *space = strbuf_reserve(&l->buf, some);
    if (!space) return err_nomem(err);
    int64_t n = op_stream_read(l->stream, space, some);
    if (n < 0) return err_errno(err, l->stream->errnum, "the lines cannot be read");
    l->ended = n == 0;
    l->buf.len += (size_t)n;
  }
  return LODE_OK;
}

/* Splits the buffer up to the last end of line, or up to the end of the stream. */
static lode_status lines_split(op_lines *l, lode_error *err) {
  while (l->used < l->buf.len) {
    const char *line = l->buf.data + l->used;
    const char *end = memchr(line, '\n', l->buf.len - l->used);
    if (!end && !l->ended) break;
    size_t len = end ? (size_t)(end - line) : l->buf.len - l->used;
    l->used += end ? len + 1 : len;
    if (len && line[len - 1] == '\r') len--;
    if (!len) continue;
    if (!mem_grow(&l->list, &l->cap, l->n + 1, sizeof *l->list)) return err_nomem(err);
    l->list[l->n++] = (lode_str){line, len};
  }
  return LODE_OK;
}

lode_status op_lines_next(op_lines *l, size_t bytes, lode_error *err) {
  if (l->used) memmove(l->buf.data, l->buf.data + l->used, l->buf.len - l->used);
  l->buf.len -= l->used;
  l->used = l->n = 0;
  do {
    TRY(lines_fill(l, bytes, err));
    TRY(lines_split(l, err));
    if (l->n == 0 && l->used == 0 && !l->ended)
      return err_set(err, LODE_LIMIT, "a line is longer than %zu bytes", bytes);
    if (l->n == 0 && l->used) { /* only empty lines */
      memmove(l->buf.data, l->buf.data + l->used, l->buf.len - l->used);
      l->buf.len -= l->used;
      l->used = 0;
    }
  } while (l->n == 0 && !l->ended);
  return LODE_OK;
}

void op_lines_release(op_lines *l) {
  strbuf_release(&l->buf);
  mem_free(l->list);
  *l = (op_lines){0};
}

/* ---- Out ---- */

lode_status op_out_file_open(op_out_file *file, const char *path, lode_error *err) {
  struct stat info;
  *file = (op_out_file){.out.fd = -1, .path = path};
  if (os_api->stat(path, &info) != 0 || S_ISREG(info.st_mode)) return files_out_open_path(&file->out, path, 0666, err);
  if (S_ISDIR(info.st_mode)) return err_set(err, LODE_INVALID, "%.400s is a folder: give a file", path);
  file->out.committed = true;
  file->out.fd = os_api->open(path, O_WRONLY | O_CLOEXEC, 0);
  return file->out.fd < 0 ? err_errno(err, errno, path) : LODE_OK;
}

int64_t op_out_file_write(void *file, const void *data, size_t size) {
  op_out_file *f = file;
  f->errnum = op_write_fd(f->out.fd, data, size);
  return f->errnum ? -1 : (int64_t)size;
}

lode_status op_out_file_commit(op_out_file *file, lode_error *err) {
  return file->out.committed ? LODE_OK : files_out_commit(&file->out, err);
}

void op_out_file_close(op_out_file *file) { files_out_close(&file->out); }
