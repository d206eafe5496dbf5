/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - messages between a front end and its worker, over a stream socket.
 *
 * They are frames of os/frame.h: `type` is a wire_kind, `id` the call's.
 *
 *   front end -> worker   CALL      `words` words, each NUL-terminated, then the body; `code` holds the
 *                                   WIRE_CALL_ flags, `client` identifies the caller, for fairness
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

#include "os/frame.h"

#define WIRE_MAX_BODY (SIZE_MAX / 2)
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

typedef struct wire_progress {
  uint64_t done, total;
} wire_progress;

/* Is it one of these messages? */
LODE_MUST bool wire_frame_valid(const proc_frame *frame);

/* Splits a CALL's payload; words and body point into it. False if it has fewer words. */
LODE_MUST bool wire_split_words(const proc_frame *frame, const char *payload, lode_str *words, lode_str *body);

#endif
