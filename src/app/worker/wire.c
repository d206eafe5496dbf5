/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - see wire.h. */
#include "worker/wire.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WIRE_MAX_PARTS = 4 };

bool wire_header_valid(const wire_header *head, size_t max) {
  return head->magic == WIRE_MAGIC && head->kind >= WIRE_CALL && head->kind <= WIRE_DONE &&
         head->words <= WIRE_MAX_WORDS && head->size <= max;
}

int wire_send(int fd, const wire_header *head, const struct iovec *parts, size_t n_parts) {
  struct iovec iov[1 + WIRE_MAX_PARTS];
  size_t at = 0, n = 1;
  if (n_parts > WIRE_MAX_PARTS) return EINVAL;
  iov[0] = (struct iovec){(void *)(uintptr_t)head, sizeof *head};
  for (size_t i = 0; i < n_parts; i++)
    if (parts[i].iov_len) iov[n++] = parts[i];
  while (at < n) {
    struct msghdr message = {.msg_iov = iov + at, .msg_iovlen = n - at};
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno;
    for (; at < n && (size_t)sent >= iov[at].iov_len; at++) sent -= (ssize_t)iov[at].iov_len;
    if (at < n) {
      iov[at].iov_base = (char *)iov[at].iov_base + sent;
      iov[at].iov_len -= (size_t)sent;
    }
  }
  return 0;
}

static int wire_read_all(int fd, void *buffer, size_t size) {
  char *p = buffer;
  while (size) {
    ssize_t n = recv(fd, p, size, MSG_WAITALL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EPIPE;
    p += n;
    size -= (size_t)n;
  }
  return 0;
}

int wire_receive(int fd, wire_header *head, char **payload, size_t max) {
  *payload = NULL;
  int errnum = wire_read_all(fd, head, sizeof *head);
  if (errnum) return errnum;
  if (!wire_header_valid(head, max)) return EPROTO;
  *payload = mem_alloc((size_t)head->size + 1);
  if (!*payload) return ENOMEM;
  errnum = wire_read_all(fd, *payload, (size_t)head->size);
  if (errnum) {
    mem_free(*payload);
    *payload = NULL;
    return errnum;
  }
  (*payload)[head->size] = '\0';
  return 0;
}

bool wire_split_words(const wire_header *head, const char *payload, lode_str *words, lode_str *body) {
  const char *p = payload, *end = payload + head->size;
  for (size_t i = 0; i < head->words; i++) {
    const char *nul = memchr(p, '\0', (size_t)(end - p));
    if (!nul) return false;
    words[i] = (lode_str){p, (size_t)(nul - p)};
    p = nul + 1;
  }
  *body = (lode_str){p, (size_t)(end - p)};
  return true;
}
