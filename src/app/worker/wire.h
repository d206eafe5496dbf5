/* wire.h - messages between a face and its worker, over a stream socket.
 *
 * A frame is a head and a payload. Both ends are the same program on the same machine, so numbers are in its byte order.
 *
 *   face -> worker   CALL      words, each ended by NUL, then the body; `code` holds the WIRE_CALL_ flags
 *                    CANCEL    nothing; the call is asked to stop, and still answers DONE
 *   worker -> face   READY     a sentence: what the worker runs under
 *                    LOG       a line for the log
 *                    ROW       one row of a call's answer (calls with WIRE_CALL_ROWS)
 *                    PROGRESS  a wire_progress, then the name of the phase (calls with WIRE_CALL_PROGRESS)
 *                    DONE      the answer; `code` is its status: a lode_status, or one of HTTP
 *
 * Frames of one call keep their order. The face closing its end means: finish what you have and exit.
 */
#ifndef LODE_WORKER_WIRE_H
#define LODE_WORKER_WIRE_H

#include "base/base.h"

#include <sys/types.h>
#include <sys/uio.h>

#define WIRE_MAGIC 0x4d46444cu /* out of step: the stream is not to be trusted any more */
#define WIRE_MAX_WORDS 8

typedef enum wire_kind {
  WIRE_CALL = 1, WIRE_CANCEL, WIRE_READY, WIRE_LOG, WIRE_ROW, WIRE_PROGRESS,
  WIRE_DONE,
} wire_kind;

/* How a call wants to be run and answered. */
enum {
  WIRE_CALL_ROWS = 1,     /* send each row when it is there, instead of all of them in the answer */
  WIRE_CALL_PROGRESS = 2, /* tell how far it is */
  WIRE_CALL_LONG = 4,     /* may take minutes: runs beside the short ones, never instead of them */
  WIRE_CALL_LARGE = 8,    /* reads much: a few of these run at a time, so that short ones find a thread */
};

typedef struct wire_header {
  uint32_t magic;
  uint8_t kind;
  uint8_t words;  /* CALL: how many */
  uint16_t code;
  uint64_t id;    /* of the call */
  uint64_t client; /* CALL: whose it is; a number that means nothing */
  uint64_t size;  /* of the payload */
} wire_header;

typedef struct wire_progress {
  uint64_t done, total;
} wire_progress;

/* Blocking transfers of whole frames. 0, or errno; EPIPE also for the end of the stream, EPROTO for nonsense. The payload
 * is allocated, NUL behind it; more than `max` bytes are nonsense. */
int wire_send(int fd, const wire_header *head, const struct iovec *parts, size_t n_parts);
int wire_receive(int fd, wire_header *head, char **payload, size_t max);
bool wire_header_valid(const wire_header *head, size_t max);

/* Takes a CALL's payload apart: words point into it. False when it does not hold that many. */
bool wire_split_words(const wire_header *head, const char *payload, lode_str *words, lode_str *body);

#endif
