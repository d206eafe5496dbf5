/* wire.h - messages between a face and its worker, over a stream socket.
 *
 * A frame is a head and a payload. Both ends are the same program on the same machine, so numbers are in its byte order.
 *
 *   face -> worker   CALL      words, each ended by NUL, then the body; `code` holds the LODE__CALL_ flags
 *                    CANCEL    nothing; the call is asked to stop, and still answers DONE
 *   worker -> face   READY     a sentence: what the worker runs under
 *                    LOG       a line for the log
 *                    ROW       one row of a call's answer (calls with LODE__CALL_ROWS)
 *                    PROGRESS  a lode__wire_progress, then the name of the phase (calls with LODE__CALL_PROGRESS)
 *                    DONE      the answer; `code` is its status: a lode_status, or one of HTTP
 *
 * Frames of one call keep their order. The face closing its end means: finish what you have and exit.
 */
#ifndef LODE_FACE_WIRE_H
#define LODE_FACE_WIRE_H

#include "base/base.h"

#include <sys/types.h>
#include <sys/uio.h>

#define LODE__WIRE_MAGIC 0x4d46444cu /* out of step: the stream is not to be trusted any more */
#define LODE__WIRE_WORDS 8

typedef enum lode__wire_kind {
  LODE__WIRE_CALL = 1, LODE__WIRE_CANCEL, LODE__WIRE_READY, LODE__WIRE_LOG, LODE__WIRE_ROW, LODE__WIRE_PROGRESS,
  LODE__WIRE_DONE,
} lode__wire_kind;

/* How a call wants to be run and answered. */
enum {
  LODE__CALL_ROWS = 1,     /* send each row when it is there, instead of all of them in the answer */
  LODE__CALL_PROGRESS = 2, /* tell how far it is */
  LODE__CALL_LONG = 4,     /* may take minutes: runs beside the short ones, never instead of them */
  LODE__CALL_LARGE = 8,    /* reads much: a few of these run at a time, so that short ones find a thread */
};

typedef struct lode__wire {
  uint32_t magic;
  uint8_t kind;
  uint8_t words;  /* CALL: how many */
  uint16_t code;
  uint64_t id;    /* of the call */
  uint64_t client; /* CALL: whose it is; a number that means nothing */
  uint64_t size;  /* of the payload */
} lode__wire;

typedef struct lode__wire_progress {
  uint64_t done, total;
} lode__wire_progress;

/* Blocking transfers of whole frames. 0, or errno; EPIPE also for the end of the stream, EPROTO for nonsense. The payload
 * is allocated, NUL behind it; more than `max` bytes are nonsense. */
int lode__wire_send(int fd, const lode__wire *head, const struct iovec *parts, size_t n_parts);
int lode__wire_receive(int fd, lode__wire *head, char **payload, size_t max);
bool lode__wire_valid(const lode__wire *head, size_t max);

/* Takes a CALL's payload apart: words point into it. False when it does not hold that many. */
bool lode__wire_words(const lode__wire *head, const char *payload, lode_str *words, lode_str *body);

#endif
