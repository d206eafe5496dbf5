/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - messages between a front end and its worker, over a stream socket.
 *
 * A frame is a header and a payload. Both ends are the same program on the same machine, so numbers are in native byte
 * order.
 *
 *   front end -> worker   CALL      words, each NUL-terminated, then the body; `code` holds the WIRE_CALL_ flags
 *                         CANCEL    empty; asks the call to stop, which is still answered with DONE
 *   worker -> front end   READY     a sentence: the worker's sandbox
 *                         LOG       a line for the log
 *                         ROW       one row of a call's reply (calls with WIRE_CALL_ROWS)
 *                         PROGRESS  a wire_progress, then the name of the phase (calls with WIRE_CALL_PROGRESS)
 *                         DONE      the reply; `code` is its status: a lode_status, or one of HTTP
 *
 * Frames of one call keep their order. When the front end closes its end, the worker finishes its calls and exits.
 */
#ifndef LODE_WORKER_WIRE_H
#define LODE_WORKER_WIRE_H

#include "base/base.h"

#include <sys/types.h>
#include <sys/uio.h>

#define WIRE_MAGIC 0x4d46444cu /* anything else: the stream is out of step and unusable */
#define WIRE_MAX_WORDS 8

typedef enum wire_kind {
  WIRE_CALL = 1,
  WIRE_CANCEL,
  WIRE_READY,
  WIRE_LOG,
  WIRE_ROW,
  WIRE_PROGRESS,
  WIRE_DONE,
} wire_kind;

/* How a call is run and answered. */
enum {
  WIRE_CALL_ROWS = 1,     /* send each row as it comes, instead of all in the reply */
  WIRE_CALL_PROGRESS = 2, /* send progress */
  WIRE_CALL_LONG = 4,     /* may take minutes: must not keep short calls waiting */
  WIRE_CALL_LARGE = 8,    /* reads much: only a few of these run at a time, so that short calls find a thread */
};

typedef struct wire_header {
  uint32_t magic;
  uint8_t kind;
  uint8_t words; /* CALL: number of words */
  uint16_t code;
  uint64_t id;     /* id of the call */
  uint64_t client; /* CALL: identifies the caller, for fairness */
  uint64_t size;   /* size of the payload */
} wire_header;

typedef struct wire_progress {
  uint64_t done, total;
} wire_progress;

/* Blocking transfer of a complete frame. Returns 0 or errno; EPIPE also at the end of the stream, EPROTO for an
 * invalid header or a payload larger than `max`. The payload is allocated and NUL-terminated. */
int wire_send(int fd, const wire_header *head, const struct iovec *parts, size_t n_parts);
int wire_receive(int fd, wire_header *head, char **payload, size_t max);
bool wire_header_valid(const wire_header *head, size_t max);

/* Splits a CALL's payload; words and body point into it. False if it has fewer words. */
bool wire_split_words(const wire_header *head, const char *payload, lode_str *words, lode_str *body);

#endif
