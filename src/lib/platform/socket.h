/* SPDX-License-Identifier: Apache-2.0 */
/* socket.h - sockets: between processes of this program, and those of a server. Sending never raises SIGPIPE. Functions
 * return -1 and errno. */
#ifndef LODE_PLATFORM_SOCKET_H
#define LODE_PLATFORM_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* ---- Streams ---- */

/* `wait` false: EAGAIN instead of waiting. */
ssize_t os_socket_send(int fd, struct iovec *parts, size_t n, bool wait);
ssize_t os_socket_receive(int fd, void *buf, size_t n, bool wait);
/* A descriptor to the process at the other end of a socket pair, with one byte. */
int os_socket_send_fd(int fd, int passed);
int os_socket_receive_fd(int fd); /* CLOEXEC */
/* The other end reads the end of the stream; both: we do, too. */
void os_socket_shut(int fd, bool both);

/* ---- TCP ---- */

/* A listening, non-blocking socket; port 0: any, and *port is set. If the host has no address, *why says so and errno
 * is 0. */
int os_socket_listen(const char *host, uint16_t *port, const char **why);
void os_socket_no_delay(int fd);
/* The address of the other end, as 16 bytes; zeros if it is unknown. */
void os_socket_peer(int fd, unsigned char address[16]);
/* Bytes that were sent and not yet taken by the other end; false: the system does not tell. */
bool os_socket_unsent(int fd, int *bytes);
/* Has the other end closed the connection, or its sending half? */
bool os_socket_hung_up(int fd);

/* ---- The user at the other end ---- */

/* The user who opened the other end of the connected socket `fd`. False: it is on another machine, in another
 * network namespace or gone, or the system does not say. Constant time if the kernel can be asked about one
 * connection, else bounded; never blocks. */
bool os_peer_uid(int fd, uid_t *uid);
/* Does that work here? Tries it on a connection to itself; false also if users cannot be distinguished. */
bool os_peer_supported(void);
/* The two methods of Linux, for tests: both return the same as os_peer_uid(). */
bool os_peer_uid_by_diag(int fd, uid_t *uid);
bool os_peer_uid_by_table(int fd, uid_t *uid);
/* How many times this process has read a table. */
unsigned long os_peer_tables_read(void);

/* ---- The service manager ---- */

/* sd_notify(), if started by systemd. */
void os_notify_service(const char *state);

#endif
