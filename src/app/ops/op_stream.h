/* SPDX-License-Identifier: Apache-2.0 */
/* op_stream.h - bytes in and out of files, pipes and standard input and output.
 *
 * Sources and targets may be pipes, so they are read and written sequentially, never by position. A plain file is
 * written as scan/files.h says: it appears under its name only when it is complete. Pipes and devices are written in
 * place.
 */
#ifndef LODE_OPS_OP_STREAM_H
#define LODE_OPS_OP_STREAM_H

#include "scan/files.h"

#include <signal.h>

/* Set by a signal handler: reads and long operations stop. */
extern volatile sig_atomic_t op_interrupted;

typedef struct op_stream {
  int fd;
  bool own;      /* op_stream_close closes fd */
  uint64_t size; /* total bytes, 0 if unknown */
  uint64_t pos;
  int errnum; /* of a failed read */
} op_stream;

/* "-" is standard input. */
LODE_MUST lode_status op_stream_open(op_stream *stream, const char *path, lode_error *err);
/* A lode_read_fn; ctx is the stream. */
LODE_MUST int64_t op_stream_read(void *stream, void *buffer, size_t size);
void op_stream_close(op_stream *stream);
/* All of a file or of standard input, at most max bytes. */
LODE_MUST lode_status op_read_file(const char *path, size_t max, strbuf *out, lode_error *err);

/* The lines of a stream, some at a time. Empty lines are skipped, a CR at the end of a line is dropped. */
typedef struct op_lines {
  op_stream *stream;
  strbuf buf;
  size_t used;    /* bytes of buf that were returned as lines */
  lode_str *list; /* the current lines; they point into buf */
  size_t n, cap;
  bool ended;
} op_lines;
/* Reads the next lines, about `bytes` bytes; at least one line unless the stream has ended. */
LODE_MUST lode_status op_lines_next(op_lines *lines, size_t bytes, lode_error *err);
void op_lines_release(op_lines *lines);

typedef struct op_out_file {
  files_out out; /* of a pipe or a device: committed from the start */
  const char *path;
  int errnum; /* of a failed write */
} op_out_file;

LODE_MUST lode_status op_out_file_open(op_out_file *file, const char *path, lode_error *err);
/* A lode_write_fn; ctx is the file. */
LODE_MUST int64_t op_out_file_write(void *file, const void *data, size_t size);
/* Syncs the file and renames it to its name. */
LODE_MUST lode_status op_out_file_commit(op_out_file *file, lode_error *err);
/* Closes the file, and removes it if it was not committed. */
void op_out_file_close(op_out_file *file);

/* Writes all bytes to a descriptor: 0, or errno. */
LODE_MUST int op_write_fd(int fd, const void *data, size_t size);

#endif
