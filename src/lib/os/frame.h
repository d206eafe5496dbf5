/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h - messages between processes of this program, over a stream socket.
 *
 * A frame is a head of 40 bytes and a body. The head, little-endian: magic "LFRM", CRC-32C of the following 32 bytes,
 * type (u16), words (u16), code (u32), id (u64), client (u64), length of the body (u64). What type, words, code, id
 * and client mean is for the protocol to say: chunk/parser_wire.h, worker/wire.h.
 *
 * Receivers set the maximum length of a body; a longer one, a wrong magic or a wrong checksum is LODE_CORRUPT, the end
 * of the stream between frames LODE_GONE, within one LODE_CORRUPT. A deadline that passes is LODE_BUSY. After any error
 * the stream is unusable. Sending never raises SIGPIPE.
 *
 * Threads: a stream has one sender and one receiver at a time.
 */
#ifndef LODE_OS_FRAME_H
#define LODE_OS_FRAME_H

#include "base/base.h"

enum { PROC_FRAME_HEAD_BYTES = 40, PROC_FRAME_MAX_PARTS = 4 };

typedef struct proc_frame {
  uint16_t type, words;
  uint32_t code;
  uint64_t id, client;
  uint64_t bytes; /* of the body; set by proc_frame_send() */
} proc_frame;

/* Blocking transfer of one frame. deadline_ns is on the clock of os_api->now_ns; 0: none. The body is the concatenated
 * parts, at most PROC_FRAME_MAX_PARTS. */
LODE_MUST lode_status proc_frame_send(int fd, proc_frame frame, const lode_str *parts, size_t n, uint64_t deadline_ns,
                                      lode_error *err);
/* The body replaces the content of `body`; a NUL that is not counted follows it. */
LODE_MUST lode_status proc_frame_receive(int fd, uint64_t max_bytes, uint64_t deadline_ns, proc_frame *frame,
                                         strbuf *body, lode_error *err);

/* ---- For those who must not block ---- */

void proc_frame_encode(const proc_frame *frame, unsigned char head[PROC_FRAME_HEAD_BYTES]);

/* The frame being received. All zeros: none. */
typedef struct proc_inbox {
  unsigned char head[PROC_FRAME_HEAD_BYTES];
  size_t head_bytes;
  proc_frame frame;
  strbuf body;
} proc_inbox;

/* Receives what has arrived of the next frame. When it is complete, *complete is set; proc_inbox_clear() makes room for
 * the one after it. */
LODE_MUST lode_status proc_inbox_receive(proc_inbox *in, int fd, uint64_t max_bytes, bool *complete, lode_error *err);
void proc_inbox_clear(proc_inbox *in);

#endif
