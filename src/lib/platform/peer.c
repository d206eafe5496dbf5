/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - see socket.h. Linux: asks the kernel for the socket at the other end, by the exact addresses and ports of
 * the connection: over netlink (sock_diag) or, if that is missing, by reading /proc/net/tcp and tcp6.
 *
 * A row of these tables is accepted only if it cannot be anybody but our peer:
 *   - it belongs to an open socket (it has an inode) that is connected, perhaps with its sending side shut. A closed
 *     socket is reported with user 0 until it is gone;
 *   - after the row was read, our own end is still connected. A peer that resets the connection leaves its bytes to us
 *     and its port to others, who may connect from there; but not while our end is connected, so the row was not
 *     theirs.
 */
#include "platform/socket.h"

#include "platform/platform_internal.h"

#if OS_LINUX

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PEER_TABLE_BYTES = 16 << 20, PEER_READ_BYTES = 16 << 10, PEER_LINE_BYTES = 320, PEER_OVERFLOW_UID = 65534 };

/* A connection as the other end sees it: `from` is the peer's own address. IPv4 mapped to IPv6 is stored as IPv4. */
typedef struct peer_ends {
  bool six;
  struct in6_addr from, to;     /* IPv4: the first four bytes */
  in_port_t from_port, to_port; /* network byte order */
} peer_ends;

typedef struct peer_row {
  unsigned state;
  uid_t uid;
  uint64_t inode;
} peer_row;

/* Result of a query. */
typedef enum peer_verdict {
  PEER_FOUND,
  PEER_NOBODY,    /* there is no such socket */
  PEER_NO_ANSWER, /* this method does not work here */
} peer_verdict;

static bool peer_address_of(const struct sockaddr_storage *a, bool *six, struct in6_addr *address, in_port_t *port) {
  memset(address, 0, sizeof *address);
  if (a->ss_family == AF_INET) {
    const struct sockaddr_in *four = (const struct sockaddr_in *)a;
    memcpy(address, &four->sin_addr, 4);
    *port = four->sin_port;
    *six = false;
    return true;
  }
  if (a->ss_family != AF_INET6) return false;
  const struct sockaddr_in6 *given = (const struct sockaddr_in6 *)a;
  *port = given->sin6_port;
  *six = !IN6_IS_ADDR_V4MAPPED(&given->sin6_addr);
  if (*six)
    *address = given->sin6_addr;
  else
    memcpy(address, &given->sin6_addr.s6_addr[12], 4);
  return true;
}

static bool peer_find_ends(int fd, peer_ends *e) {
  struct sockaddr_storage peer, own;
  socklen_t peer_size = sizeof peer, own_size = sizeof own;
  bool six;
  if (getpeername(fd, (struct sockaddr *)&peer, &peer_size) < 0 ||
      getsockname(fd, (struct sockaddr *)&own, &own_size) < 0)
    return false;
  return peer_address_of(&peer, &e->six, &e->from, &e->from_port) && peer_address_of(&own, &six, &e->to, &e->to_port) &&
         six == e->six;
}

/* ---- Netlink ---- */

static peer_verdict peer_query_diag(const peer_ends *e, peer_row *found) {
  struct {
    struct nlmsghdr head;
    struct inet_diag_req_v2 request;
  } ask = {
      .head = {.nlmsg_len = sizeof ask, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
      .request = {.sdiag_family = e->six ? AF_INET6 : AF_INET,
                  .sdiag_protocol = IPPROTO_TCP,
                  .idiag_states = ~0u,
                  .id = {.idiag_sport = e->from_port,
                         .idiag_dport = e->to_port,
                         .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
  };
  union {
    struct nlmsghdr head;
    char bytes[4096];
  } answer;
  struct sockaddr_nl sender = {0};
  socklen_t sender_size = sizeof sender;
  ssize_t got = -1;
  memcpy(ask.request.id.idiag_src, &e->from, sizeof e->from);
  memcpy(ask.request.id.idiag_dst, &e->to, sizeof e->to);
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (fd < 0) return PEER_NO_ANSWER;
  /* the kernel replies within the call, so there is nothing to wait for */
  if (send(fd, &ask, sizeof ask, MSG_DONTWAIT) == (ssize_t)sizeof ask)
    got = recvfrom(fd, &answer, sizeof answer, MSG_DONTWAIT, (struct sockaddr *)&sender, &sender_size);
  close(fd);
  if (got < (ssize_t)NLMSG_HDRLEN || sender.nl_pid != 0) return PEER_NO_ANSWER;
  if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || answer.head.nlmsg_len > (size_t)got ||
      answer.head.nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
    return PEER_NOBODY;
  struct inet_diag_msg socket_row;
  memcpy(&socket_row, answer.bytes + NLMSG_HDRLEN, sizeof socket_row);
  /* if no socket has both addresses and ports, the kernel may return a listening one */
  if (socket_row.id.idiag_sport != e->from_port || socket_row.id.idiag_dport != e->to_port) return PEER_NOBODY;
  *found = (peer_row){socket_row.idiag_state, socket_row.idiag_uid, socket_row.idiag_inode};
  return PEER_FOUND;
}

/* A kernel without the TCP module replies as if there were no such socket; a query for our own end tells the
 * difference. */
static peer_verdict peer_ask_diag(const peer_ends *e, peer_row *found) {
  peer_ends own = {.six = e->six, .from = e->to, .to = e->from, .from_port = e->to_port, .to_port = e->from_port};
  peer_row unused;
  peer_verdict v = peer_query_diag(e, found);
  return v == PEER_NOBODY && peer_query_diag(&own, &unused) != PEER_FOUND ? PEER_NO_ANSWER : v;
}

/* ---- /proc/net/tcp ---- */

/* Formats an address as in the tables: 32-bit words in native byte order. */
static size_t peer_put_address(char *out, size_t size, const struct in6_addr *address, size_t words, in_port_t port) {
  size_t len = 0;
  for (size_t i = 0; i < words; i++) {
    uint32_t word;
    memcpy(&word, address->s6_addr + 4 * i, 4);
    len += (size_t)snprintf(out + len, size - len, "%08X", word);
  }
  return len + (size_t)snprintf(out + len, size - len, ":%04X", ntohs(port));
}

/* "   0: LOCAL REMOTE ST TX:RX TR:WHEN RETRANSMIT UID TIMEOUT INODE ..." */
static bool peer_parse_line(char *line, const char *wanted, peer_row *found) {
  char *at = strchr(line, ':');
  unsigned state;
  unsigned long long inode;
  unsigned uid;
  if (!at || strncmp(at + 2, wanted, strlen(wanted)) != 0) return false;
  if (sscanf(at + 2 + strlen(wanted), " %x %*s %*s %*s %u %*s %llu", &state, &uid, &inode) != 3) return false;
  *found = (peer_row){state, uid, inode};
  return true;
}

static atomic_ulong peer_tables_read;

unsigned long os_peer_tables_read(void) { return atomic_load(&peer_tables_read); }

static bool peer_search_table(const char *path, const char *wanted, peer_row *found) {
  char buffer[PEER_READ_BYTES + PEER_LINE_BYTES + 1];
  size_t kept = 0, total = 0;
  bool match = false;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  atomic_fetch_add(&peer_tables_read, 1);
  while (!match && total < PEER_TABLE_BYTES) {
    ssize_t got = read(fd, buffer + kept, PEER_READ_BYTES);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    total += (size_t)got;
    kept += (size_t)got;
    buffer[kept] = '\0';
    char *line = buffer, *end;
    while (!match && (end = strchr(line, '\n')) != NULL) {
      *end = '\0';
      match = peer_parse_line(line, wanted, found);
      line = end + 1;
    }
    kept -= (size_t)(line - buffer);
    if (kept > PEER_LINE_BYTES) break; /* not a line of such a table */
    memmove(buffer, line, kept);
  }
  close(fd);
  return match;
}

static bool peer_find_in_tables(const peer_ends *e, peer_row *found) {
  char wanted[120];
  size_t words = e->six ? 4 : 1, len = peer_put_address(wanted, sizeof wanted, &e->from, words, e->from_port);
  wanted[len++] = ' ';
  peer_put_address(wanted + len, sizeof wanted - len, &e->to, words, e->to_port);
  if (e->six) return peer_search_table("/proc/net/tcp6", wanted, found);
  if (peer_search_table("/proc/net/tcp", wanted, found)) return true;
  /* an IPv6 socket that talks IPv4 */
  struct in6_addr from = {.s6_addr = {[10] = 0xff, [11] = 0xff}}, to = from;
  memcpy(from.s6_addr + 12, &e->from, 4);
  memcpy(to.s6_addr + 12, &e->to, 4);
  len = peer_put_address(wanted, sizeof wanted, &from, 4, e->from_port);
  wanted[len++] = ' ';
  peer_put_address(wanted + len, sizeof wanted - len, &to, 4, e->to_port);
  return peer_search_table("/proc/net/tcp6", wanted, found);
}

static peer_verdict peer_ask_table(const peer_ends *e, peer_row *found) {
  return peer_find_in_tables(e, found) ? PEER_FOUND : PEER_NOBODY;
}

/* ---- Both methods ---- */

static bool peer_is_connected(int fd) {
  struct tcp_info info;
  socklen_t size = sizeof info;
  memset(&info, 0, sizeof info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0) return false;
  return info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT;
}

static peer_verdict peer_find_uid(int fd, peer_verdict ask(const peer_ends *, peer_row *), uid_t *uid) {
  peer_ends e;
  peer_row found;
  if (!peer_find_ends(fd, &e)) return PEER_NOBODY;
  peer_verdict v = ask(&e, &found);
  if (v != PEER_FOUND) return v;
  if (found.inode == 0 ||
      (found.state != TCP_ESTABLISHED && found.state != TCP_FIN_WAIT1 && found.state != TCP_FIN_WAIT2))
    return PEER_NOBODY;
  if (!peer_is_connected(fd)) return PEER_NOBODY;
  *uid = found.uid;
  return PEER_FOUND;
}

bool os_peer_uid_by_diag(int fd, uid_t *uid) { return peer_find_uid(fd, peer_ask_diag, uid) == PEER_FOUND; }
bool os_peer_uid_by_table(int fd, uid_t *uid) { return peer_find_uid(fd, peer_ask_table, uid) == PEER_FOUND; }

/* The tables are long on a busy machine, and a client that closes early must not make us read them. */
bool os_peer_uid(int fd, uid_t *uid) {
  peer_verdict v = peer_find_uid(fd, peer_ask_diag, uid);
  return v == PEER_NO_ANSWER && peer_is_connected(fd) ? os_peer_uid_by_table(fd, uid) : v == PEER_FOUND;
}

/* In a user namespace all users that are not mapped appear with this uid, so it identifies nobody. */
static bool peer_is_user(uid_t uid) { return uid != (uid_t)-1 && uid != PEER_OVERFLOW_UID; }

bool os_peer_supported(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  uid_t uid = (uid_t)-1;
  bool works = false;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ours = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
      accepted = -1;
  if (listener >= 0 && ours >= 0 && bind(listener, (struct sockaddr *)&at, sizeof at) == 0 &&
      listen(listener, 1) == 0 && getsockname(listener, (struct sockaddr *)&at, &size) == 0 &&
      connect(ours, (struct sockaddr *)&at, sizeof at) == 0)
    accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  if (accepted >= 0) works = os_peer_uid(accepted, &uid) && uid == geteuid() && peer_is_user(uid);
  if (listener >= 0) close(listener);
  if (ours >= 0) close(ours);
  if (accepted >= 0) close(accepted);
  return works;
}

#else /* POSIX has no way to ask */

bool os_peer_uid(int fd, uid_t *uid) {
  (void)fd, (void)uid;
  return false;
}
bool os_peer_supported(void) { return false; }
bool os_peer_uid_by_diag(int fd, uid_t *uid) { return os_peer_uid(fd, uid); }
bool os_peer_uid_by_table(int fd, uid_t *uid) { return os_peer_uid(fd, uid); }
unsigned long os_peer_tables_read(void) { return 0; }

#endif
