/* SPDX-License-Identifier: Apache-2.0 */
/* http_kit.c - see http_kit.h. */
#include "support/http_kit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/test.h"

enum { MOST_BYTES = 16 << 20 };

static int listener;
static http_kit_fn *handler;

/* Where the body begins, and its length; false: the connection has ended. */
static bool read_request(int fd, char *buf, size_t *body, size_t *len) {
  size_t n = 0;
  *body = 0;
  for (;;) {
    ssize_t got = read(fd, buf + n, MOST_BYTES - 1 - n);
    if (got <= 0) return false;
    n += (size_t)got;
    buf[n] = '\0';
    if (!*body) {
      const char *end = strstr(buf, "\r\n\r\n"), *length = strcasestr(buf, "content-length:");
      if (!end) continue;
      *body = (size_t)(end + 4 - buf);
      *len = length && length < end ? (size_t)strtoul(length + 15, NULL, 10) : 0;
      if (strcasestr(buf, "expect: 100-continue")) (void)!write(fd, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    }
    if (n >= *body + *len) return true;
  }
}

void http_kit_answer(int fd, const char *status, const char *headers, const char *body) {
  char head[300];
  int n = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n",
                   status, strlen(body), headers);
  if (write(fd, head, (size_t)n) < 0 || write(fd, body, strlen(body)) < 0) return;
}

static void *serve_connection(void *arg) {
  int fd = *(int *)arg;
  char *buf = malloc(MOST_BYTES);
  size_t body, len;
  free(arg);
  while (buf && read_request(fd, buf, &body, &len) && handler(fd, buf, buf + body, len)) {}
  free(buf);
  close(fd);
  return NULL;
}

static void *serve(void *unused) {
  (void)unused;
  for (;;) {
    pthread_t thread;
    int *fd = malloc(sizeof *fd);
    if (!fd || (*fd = accept(listener, NULL, NULL)) < 0 || pthread_create(&thread, NULL, serve_connection, fd) != 0) {
      free(fd);
      return NULL;
    }
    pthread_detach(thread);
  }
}

unsigned http_kit_serve(http_kit_fn *fn) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t len = sizeof address;
  pthread_t thread;
  static unsigned port;
  handler = fn;
  if (port) return port;
  listener = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 16) == 0);
  CHECK(getsockname(listener, (struct sockaddr *)&address, &len) == 0);
  CHECK(pthread_create(&thread, NULL, serve, NULL) == 0);
  pthread_detach(thread);
  return port = ntohs(address.sin_port);
}
