/* stream.h - bytes in and out of files, pipes and standard input and output.
 *
 * Sources and targets may be pipes, so they are read and written from first byte to last, never by position.
 * A file that is written appears under its name only when it is whole: it is written beside it, synced and renamed.
 */
#ifndef LODE_FACE_STREAM_H
#define LODE_FACE_STREAM_H

#include "base/base.h"

#include <signal.h>

/* Raised by a signal handler: reads and long work stop. */
extern volatile sig_atomic_t lode__interrupted;

typedef struct lode__stream {
  int fd;
  bool own;         /* fd is closed by lode__stream_close */
  uint64_t size;    /* bytes in all, 0 when not known */
  uint64_t pos;
  int errnum;       /* of a failed read */
} lode__stream;

/* "-" is standard input. */
lode_status lode__stream_open(lode__stream *stream, const char *path, lode_error *err);
/* A lode_read_fn; ctx is the stream. */
int64_t lode__stream_read(void *stream, void *buffer, size_t size);
void lode__stream_close(lode__stream *stream);
/* All of a file or of standard input, at most max bytes. */
lode_status lode__read_all(const char *path, size_t max, strbuf *out, lode_error *err);

/* The lines of a stream, some at a time. Empty lines are none; a CR before the end of a line is dropped. */
typedef struct lode__lines {
  lode__stream *stream;
  strbuf buf;
  size_t used;      /* bytes of buf that were handed out */
  lode_str *list;   /* the present ones; they point into buf */
  size_t n, cap;
  bool ended;
} lode__lines;
/* The next lines, about `bytes` of them, at least one unless the stream has ended. */
lode_status lode__lines_next(lode__lines *lines, size_t bytes, lode_error *err);
void lode__lines_release(lode__lines *lines);

typedef struct lode__out_file {
  int fd;
  bool direct;       /* not a plain file (a pipe, a device): written in place */
  const char *path;
  strbuf tmp;     /* name beside it */
  int errnum;
} lode__out_file;

lode_status lode__out_file_open(lode__out_file *file, const char *path, lode_error *err);
/* A lode_write_fn; ctx is the file. */
int64_t lode__out_file_write(void *file, const void *data, size_t size);
/* Makes it appear. */
lode_status lode__out_file_commit(lode__out_file *file, lode_error *err);
/* Closes, and removes what was not committed. */
void lode__out_file_close(lode__out_file *file);

/* All bytes to a descriptor: 0, or errno. */
int lode__write_fd(int fd, const void *data, size_t size);

#endif
