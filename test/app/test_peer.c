/* SPDX-License-Identifier: Apache-2.0 */
/* test_peer.c - whose connection is it? Both ways of asking the kernel, every state that a connection can be in, and a
 * port that changes hands. */
#include "platform/platform.h"
#include "platform/socket.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef bool uid_fn(int fd, uid_t *uid);
static uid_fn *const ways[] = {os_peer_uid, os_peer_uid_by_diag, os_peer_uid_by_table};
enum { WAYS = sizeof ways / sizeof *ways, OTHER = 54321 };

typedef struct pair {
  int listener, ours, accepted;
  struct sockaddr_storage at;
  socklen_t size;
} pair;

static void listen_at(pair *p, int family, const char *address) {
  *p = (pair){.ours = -1, .accepted = -1, .size = sizeof p->at};
  struct sockaddr_in four = {.sin_family = AF_INET};
  struct sockaddr_in6 six = {.sin6_family = AF_INET6};
  int off = 0;
  p->listener = socket(family, SOCK_STREAM, 0);
  CHECK(p->listener >= 0);
  if (family == AF_INET) {
    inet_pton(AF_INET, address, &four.sin_addr);
    memcpy(&p->at, &four, p->size = sizeof four);
  } else {
    inet_pton(AF_INET6, address, &six.sin6_addr);
    memcpy(&p->at, &six, p->size = sizeof six);
    CHECK(setsockopt(p->listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0);
  }
  CHECK(bind(p->listener, (struct sockaddr *)&p->at, p->size) == 0 && listen(p->listener, 8) == 0);
  CHECK(getsockname(p->listener, (struct sockaddr *)&p->at, &p->size) == 0);
}

static void connect_pair(pair *p) {
  p->ours = socket(p->at.ss_family, SOCK_STREAM, 0);
  CHECK(p->ours >= 0 && connect(p->ours, (struct sockaddr *)&p->at, p->size) == 0);
  p->accepted = accept(p->listener, NULL, NULL);
  CHECK(p->accepted >= 0);
}

static void close_pair(pair *p) {
  close(p->listener);
  if (p->ours >= 0) close(p->ours);
  if (p->accepted >= 0) close(p->accepted);
}

static void check_owner(int fd, bool known) {
  for (size_t i = 0; i < WAYS; i++) {
    uid_t uid = OTHER;
    bool found = ways[i](fd, &uid);
    CHECKF(found == known && (!known || uid == geteuid()), "way %zu: %d, user %u", i, found, (unsigned)uid);
  }
}

static void close_by_reset(int fd) {
  struct linger now = {.l_onoff = 1};
  CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now) == 0);
  close(fd);
}

/* Until the other end's going has arrived here. */
static void await_end(int fd) {
  struct pollfd p = {.fd = fd, .events = POLLRDHUP};
  CHECK(poll(&p, 1, 30000) == 1);
}

static void skip_where_unknown(void) {
  if (OS_LINUX) return;
  CHECK(!os_peer_supported());
  test_skip("this platform does not tell whose a connection is");
}

TEST(own_connections_are_known) {
  static const struct {
    int family;
    const char *address;
  } places[] = {{AF_INET, "127.0.0.1"}, {AF_INET, "127.1.2.3"}, {AF_INET6, "::1"}};
  skip_where_unknown();
  CHECK(os_peer_supported() == (geteuid() != 65534));
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    pair p;
    if (places[i].family == AF_INET6) {
      int six = socket(AF_INET6, SOCK_STREAM, 0);
      struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
      bool there = six >= 0 && bind(six, (struct sockaddr *)&any, sizeof any) == 0;
      if (six >= 0) close(six);
      if (!there) continue; /* a machine without IPv6 */
    }
    listen_at(&p, places[i].family, places[i].address);
    connect_pair(&p);
    check_owner(p.accepted, true);
    check_owner(p.ours, true); /* seen from the other side: the server's user */
    close_pair(&p);
  }
}

/* A server of IPv6 sees clients of IPv4 by mapped addresses, and such a client may itself be a socket of IPv6. */
TEST(mapped_addresses_are_known) {
  pair p;
  skip_where_unknown();
  int six = socket(AF_INET6, SOCK_STREAM, 0);
  if (six < 0) return;
  listen_at(&p, AF_INET6, "::");
  struct sockaddr_in four = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = ((struct sockaddr_in6 *)&p.at)->sin6_port};
  p.ours = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(connect(p.ours, (struct sockaddr *)&four, sizeof four) == 0);
  p.accepted = accept(p.listener, NULL, NULL);
  check_owner(p.accepted, true);
  close(p.accepted);
  struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = four.sin_port};
  inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr);
  CHECK(connect(six, (struct sockaddr *)&mapped, sizeof mapped) == 0);
  p.accepted = accept(p.listener, NULL, NULL);
  check_owner(p.accepted, true);
  close(six);
  close_pair(&p);
}

TEST(a_client_that_sends_no_more_is_known) {
  pair p;
  skip_where_unknown();
  listen_at(&p, AF_INET, "127.0.0.1");
  connect_pair(&p);
  CHECK(write(p.ours, "x", 1) == 1 && shutdown(p.ours, SHUT_WR) == 0);
  await_end(p.accepted);
  check_owner(p.accepted, true);
  close_pair(&p);
}

TEST(a_client_that_is_gone_is_nobody) {
  for (int reset = 0; reset < 2; reset++) {
    pair p;
    listen_at(&p, AF_INET, "127.0.0.1");
    connect_pair(&p);
    CHECK(write(p.ours, "x", 1) == 1);
    if (reset)
      close_by_reset(p.ours);
    else
      close(p.ours);
    p.ours = -1;
    await_end(p.accepted);
    check_owner(p.accepted, false);
    close_pair(&p);
  }
}

/* The tables of /proc are long on a busy machine: clients that close early cost no reading of them, where the kernel
 * answers otherwise. */
TEST(a_client_that_is_gone_costs_no_table) {
  pair p;
  uid_t uid;
  listen_at(&p, AF_INET, "127.0.0.1");
  connect_pair(&p);
  if (!os_peer_uid_by_diag(p.accepted, &uid)) { /* a kernel without it */
    close_pair(&p);
    return;
  }
  unsigned long before = os_peer_tables_read();
  CHECK(os_peer_uid(p.accepted, &uid));
  close(p.ours);
  p.ours = -1;
  await_end(p.accepted);
  CHECK(!os_peer_uid(p.accepted, &uid));
  close(p.accepted);
  connect_pair(&p);
  close_by_reset(p.ours);
  p.ours = -1;
  await_end(p.accepted);
  CHECK(!os_peer_uid(p.accepted, &uid));
  CHECK(os_peer_tables_read() == before);
  close(p.accepted);
  connect_pair(&p);
  CHECK(os_peer_uid_by_table(p.accepted, &uid) && os_peer_tables_read() > before); /* the count is alive */
  close_pair(&p);
}

TEST(what_is_no_connection_is_nobody) {
  pair p;
  int ends[2];
  listen_at(&p, AF_INET, "127.0.0.1");
  check_owner(p.listener, false);
  check_owner(-1, false);
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  check_owner(ends[0], false);
  close(ends[0]);
  close(ends[1]);
  close_pair(&p);
}

/* In a process of another user: connects from `port` (0: any), sends a byte, and goes as it is told. */
static pid_t other_user(const pair *p, in_port_t port, bool reset) {
  pid_t child = fork();
  if (child) return child;
  struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = port};
  int one = 1, fd;
  char byte;
  if (setgid(OTHER) != 0 || setuid(OTHER) != 0) _exit(2);
  fd = socket(AF_INET, SOCK_STREAM, 0);
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
      bind(fd, (struct sockaddr *)&from, sizeof from) != 0 ||
      connect(fd, (const struct sockaddr *)&p->at, p->size) != 0 || write(fd, "x", 1) != 1)
    _exit(3);
  if (reset)
    close_by_reset(fd);
  else
    (void)!read(fd, &byte, 1); /* until the test has looked, and closed it */
  _exit(0);
}

static void await_child(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
}

TEST(another_user_is_another) {
  pair p;
  skip_where_unknown();
  if (geteuid() != 0) test_skip("this is not run by root");
  listen_at(&p, AF_INET, "127.0.0.1");
  pid_t child = other_user(&p, 0, false);
  CHECK(child > 0);
  p.accepted = accept(p.listener, NULL, NULL);
  for (size_t i = 0; i < WAYS; i++) {
    uid_t uid = 0;
    CHECKF(ways[i](p.accepted, &uid) && uid == OTHER, "way %zu: user %u", i, (unsigned)uid);
  }
  close_pair(&p);
  await_child(child);
}

/* Another user leaves a request behind and resets the connection; the owner then connects from the same port. The table
 * now has a row with these addresses and ports that is the owner's, but the request is not. */
TEST(a_port_that_changes_hands_is_not_believed) {
  pair p;
  struct sockaddr_in from = {.sin_family = AF_INET};
  socklen_t size = sizeof from;
  int one = 1;
  char byte = 0;
  skip_where_unknown();
  if (geteuid() != 0) test_skip("this is not run by root");
  listen_at(&p, AF_INET, "127.0.0.1");
  pid_t child = other_user(&p, 0, true);
  CHECK(child > 0);
  await_child(child);
  p.accepted = accept(p.listener, (struct sockaddr *)&from, &size);
  CHECK(p.accepted >= 0);
  p.ours = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(setsockopt(p.ours, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
  CHECK(bind(p.ours, (struct sockaddr *)&from, size) == 0 && connect(p.ours, (struct sockaddr *)&p.at, p.size) == 0);
  CHECKF(recv(p.accepted, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 1, "%d", byte); /* its byte may still be there */
  check_owner(p.accepted, false);
  int second = accept(p.listener, NULL, NULL);
  check_owner(second, true);
  close(second);
  close_pair(&p);
}
