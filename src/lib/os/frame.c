/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - see frame.h. */
#include "os/frame.h"

#include "base/byteorder.h"
#include "base/crc32c.h"
#include "os/os.h"
#include "platform/event.h"
#include "platform/socket.h"

enum { FRAME_STEP_BYTES = 1 << 20 }; /* memory for a body is allocated as it arrives, not as it is announced */

/* Waits until the descriptor is ready, or the deadline passes. */
static lode_status frame_wait(int fd, short events, uint64_t deadline_ns, lode_error *err) {
  for (;;) {
    struct pollfd p = {.fd = fd, .events = events};
    int wait_ms = -1;
    if (deadline_ns) {
      uint64_t now = os_api->now_ns();
      if (now >= deadline_ns) return err_set(err, LODE_BUSY, "the other process took too long");
      uint64_t left = (deadline_ns - now + 999999u) / 1000000u;
      wait_ms = left > 1000000 ? 1000000 : (int)left;
    }
    int rc = os_poll(&p, 1, wait_ms);
    if (rc > 0) return LODE_OK;
    if (rc < 0 && errno != EINTR) return err_errno(err, errno, "waiting for a process");
  }
}

/* ---- Sending ---- */

void proc_frame_encode(const proc_frame *frame, unsigned char head[PROC_FRAME_HEAD_BYTES]) {
  memcpy(head, "LFRM", 4);
  num_put_le32(head + 8, (uint32_t)frame->words << 16 | frame->type);
  num_put_le32(head + 12, frame->code);
  num_put_le64(head + 16, frame->id);
  num_put_le64(head + 24, frame->client);
  num_put_le64(head + 32, frame->bytes);
  num_put_le32(head + 4, crc32c_update(0, head + 8, PROC_FRAME_HEAD_BYTES - 8));
}

static lode_status frame_send_all(int fd, struct iovec *iov, size_t n, uint64_t deadline_ns, lode_error *err) {
  while (n > 0) {
    ssize_t sent = os_socket_send(fd, iov, n, deadline_ns == 0);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      TRY(frame_wait(fd, POLLOUT, deadline_ns, err));
    } else if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) {
      return err_set(err, LODE_GONE, "the other process is gone");
    } else if (sent < 0 && errno != EINTR) {
      return err_errno(err, errno, "sending to a process");
    }
    if (sent < 0) continue;
    for (; n > 0 && (size_t)sent >= iov->iov_len; n--) sent -= (ssize_t)iov++->iov_len;
    if (n == 0) break;
    iov->iov_base = (char *)iov->iov_base + sent;
    iov->iov_len -= (size_t)sent;
  }
  return LODE_OK;
}

lode_status proc_frame_send(int fd, proc_frame frame, const lode_str *parts, size_t n, uint64_t deadline_ns,
                            lode_error *err) {
  unsigned char head[PROC_FRAME_HEAD_BYTES];
  struct iovec iov[1 + PROC_FRAME_MAX_PARTS];
  ENSURE(n <= PROC_FRAME_MAX_PARTS, err);
  frame.bytes = 0;
  iov[0] = (struct iovec){head, sizeof head};
  for (size_t i = 0; i < n; i++) {
    iov[1 + i] = (struct iovec){(void *)(uintptr_t)parts[i].data, parts[i].len};
    frame.bytes += parts[i].len;
  }
  proc_frame_encode(&frame, head);
  return frame_send_all(fd, iov, 1 + n, deadline_ns, err);
}

/* ---- Receiving ---- */

static size_t inbox_step(const proc_inbox *in) {
  uint64_t left = in->frame.bytes - in->body.len;
  return left < FRAME_STEP_BYTES ? (size_t)left : FRAME_STEP_BYTES;
}

static lode_status inbox_decode_head(proc_inbox *in, uint64_t max_bytes, lode_error *err) {
  const unsigned char *head = in->head;
  if (memcmp(head, "LFRM", 4) != 0 || num_le32(head + 4) != crc32c_update(0, head + 8, PROC_FRAME_HEAD_BYTES - 8))
    return err_set(err, LODE_CORRUPT, "a message from a process is damaged");
  in->frame = (proc_frame){.type = num_le16(head + 8),
                           .words = num_le16(head + 10),
                           .code = num_le32(head + 12),
                           .id = num_le64(head + 16),
                           .client = num_le64(head + 24),
                           .bytes = num_le64(head + 32)};
  if (in->frame.bytes > max_bytes)
    return err_set(err, LODE_CORRUPT, "a message from a process has %llu bytes, the limit is %llu",
                   (unsigned long long)in->frame.bytes, (unsigned long long)max_bytes);
  char *space = strbuf_reserve(&in->body, inbox_step(in) + 1);
  if (!space) return err_nomem(err);
  *space = '\0';
  return LODE_OK;
}

/* Receives once. *arrived is false if that would have had to wait. */
static lode_status inbox_receive_some(proc_inbox *in, int fd, uint64_t max_bytes, bool wait, bool *arrived,
                                      lode_error *err) {
  bool heading = in->head_bytes < PROC_FRAME_HEAD_BYTES;
  size_t want = PROC_FRAME_HEAD_BYTES - in->head_bytes;
  char *space = (char *)in->head + in->head_bytes;
  if (!heading) {
    want = inbox_step(in);
    space = strbuf_reserve(&in->body, want + 1);
    if (!space) return err_nomem(err);
  }
  ssize_t got = os_socket_receive(fd, space, want, wait);
  *arrived = got >= 0;
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return LODE_OK;
  if (got < 0 && errno != ECONNRESET) return err_errno(err, errno, "receiving from a process");
  if (got <= 0)
    return in->head_bytes ? err_set(err, LODE_CORRUPT, "a message from a process was cut short")
                          : err_set(err, LODE_GONE, "the other process is gone");
  if (!heading) {
    in->body.len += (size_t)got;
    in->body.data[in->body.len] = '\0';
    return LODE_OK;
  }
  in->head_bytes += (size_t)got;
  return in->head_bytes == PROC_FRAME_HEAD_BYTES ? inbox_decode_head(in, max_bytes, err) : LODE_OK;
}

static bool inbox_is_complete(const proc_inbox *in) {
  return in->head_bytes == PROC_FRAME_HEAD_BYTES && in->body.len == in->frame.bytes;
}

lode_status proc_inbox_receive(proc_inbox *in, int fd, uint64_t max_bytes, bool *complete, lode_error *err) {
  bool arrived = true;
  *complete = false;
  while (arrived && !*complete) {
    TRY(inbox_receive_some(in, fd, max_bytes, false, &arrived, err));
    *complete = inbox_is_complete(in);
  }
  return LODE_OK;
}

void proc_inbox_clear(proc_inbox *in) {
  strbuf_release(&in->body);
  *in = (proc_inbox){0};
}

lode_status proc_frame_receive(int fd, uint64_t max_bytes, uint64_t deadline_ns, proc_frame *frame, strbuf *body,
                               lode_error *err) {
  proc_inbox in = {.body = *body};
  lode_status st = LODE_OK;
  in.body.len = 0;
  while (st == LODE_OK && !inbox_is_complete(&in)) {
    bool arrived;
    st = inbox_receive_some(&in, fd, max_bytes, deadline_ns == 0, &arrived, err);
    if (st == LODE_OK && !arrived) st = frame_wait(fd, POLLIN, deadline_ns, err);
  }
  *body = in.body;
  *frame = st == LODE_OK ? in.frame : (proc_frame){0};
  return st;
}
