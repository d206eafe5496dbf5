/* SPDX-License-Identifier: Apache-2.0 */
/* socket.c - see socket.h; peer.c has the user at the other end. */
#include "platform/socket.h"

#include "platform/platform_internal.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- Streams ---- */

ssize_t os_socket_send(int fd, struct iovec *parts, size_t n, bool wait) {
  struct msghdr message = {.msg_iov = parts};
  message.msg_iovlen = (__typeof__(message.msg_iovlen))n;
  return sendmsg(fd, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
}

ssize_t os_socket_receive(int fd, void *buf, size_t n, bool wait) { return recv(fd, buf, n, wait ? 0 : MSG_DONTWAIT); }

void os_socket_shut(int fd, bool both) { (void)shutdown(fd, both ? SHUT_RDWR : SHUT_WR); }

typedef union socket_control {
  char bytes[CMSG_SPACE(sizeof(int))];
  struct cmsghdr align;
} socket_control;

int os_socket_send_fd(int fd, int passed) {
  socket_control control = {{0}};
  char byte = 0;
  struct iovec iov = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  struct cmsghdr *c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(c), &passed, sizeof passed);
  return OS_RETRY(sendmsg(fd, &message, MSG_NOSIGNAL)) < 0 ? -1 : 0;
}

int os_socket_receive_fd(int fd) {
  socket_control control;
  char byte;
  struct iovec iov = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  int got = -1, flags = 0;
#if OS_LINUX
  flags = MSG_CMSG_CLOEXEC;
#endif
  if (OS_RETRY(recvmsg(fd, &message, flags)) != 1) return -1;
  struct cmsghdr *c = CMSG_FIRSTHDR(&message);
  if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) memcpy(&got, CMSG_DATA(c), sizeof got);
  if (got >= 0 && !flags) (void)fcntl(got, F_SETFD, FD_CLOEXEC);
  return got;
}

/* ---- TCP ---- */

static int socket_bind(const struct addrinfo *a, uint16_t *port) {
  struct sockaddr_storage bound;
  socklen_t len = sizeof bound;
  int one = 1, fd = os_above_stdio(os_sys_socket(a->ai_family, SOCK_STREAM));
  if (fd < 0) return -1;
  (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, 1024) < 0 ||
      getsockname(fd, (struct sockaddr *)&bound, &len) < 0) {
    os_close_quietly(fd);
    return -1;
  }
  *port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                            : ((struct sockaddr_in *)&bound)->sin_port);
  return fd;
}

int os_socket_listen(const char *host, uint16_t *port, const char **why) {
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
  struct addrinfo *found = NULL;
  char number[8];
  *why = NULL;
  snprintf(number, sizeof number, "%u", *port);
  int code = getaddrinfo(host, number, &hints, &found);
  if (code != 0) {
    *why = gai_strerror(code);
    errno = 0;
    return -1;
  }
  int fd = socket_bind(found, port), errnum = errno;
  freeaddrinfo(found);
  errno = errnum;
  return fd;
}

void os_socket_no_delay(int fd) {
  int one = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

void os_socket_peer(int fd, unsigned char address[16]) {
  struct sockaddr_storage peer;
  socklen_t size = sizeof peer;
  memset(address, 0, 16);
  if (fd < 0 || getpeername(fd, (struct sockaddr *)&peer, &size) != 0) return;
  if (peer.ss_family == AF_INET) memcpy(address, &((struct sockaddr_in *)&peer)->sin_addr, 4);
  if (peer.ss_family == AF_INET6) memcpy(address, &((struct sockaddr_in6 *)&peer)->sin6_addr, 16);
}

bool os_socket_unsent(int fd, int *bytes) {
#if OS_LINUX
  return ioctl(fd, TIOCOUTQ, bytes) == 0;
#elif OS_DARWIN
  socklen_t size = sizeof *bytes;
  return getsockopt(fd, SOL_SOCKET, SO_NWRITE, bytes, &size) == 0;
#else
  (void)fd;
  *bytes = 0;
  return false;
#endif
}

bool os_socket_hung_up(int fd) {
#if OS_LINUX
  struct pollfd p = {.fd = fd, .events = POLLRDHUP};
  return poll(&p, 1, 0) > 0;
#else
  /* The end of the stream can be seen only if nothing is unread before it. */
  struct pollfd p = {.fd = fd, .events = POLLIN};
  char byte;
  if (poll(&p, 1, 0) <= 0) return false;
  if (p.revents & (POLLHUP | POLLERR | POLLNVAL)) return true;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
#endif
}

/* ---- The service manager ---- */

void os_notify_service(const char *state) {
  const char *path = getenv("NOTIFY_SOCKET");
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  if (!path || strlen(path) >= sizeof to.sun_path) return;
  memcpy(to.sun_path, path, strlen(path) + 1);
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  int fd = os_sys_socket(AF_UNIX, SOCK_DGRAM);
  if (fd < 0) return;
  ssize_t sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
                        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
  (void)sent; /* only news for the manager */
  close(fd);
}
