/* SPDX-License-Identifier: Apache-2.0 */
/* peer.h - which user of this machine is at the other end of a TCP connection. All that depends on the system is in
 * peer.c. */
#ifndef LODE_SERVER_PEER_H
#define LODE_SERVER_PEER_H

#include <stdbool.h>
#include <sys/types.h>

/* The user who opened the other end of the connected socket `fd`. False: it is on another machine, in another
 * network namespace or gone, or the system does not say. Constant time if the kernel can be asked about one
 * connection, else bounded; never blocks. */
bool server_peer_uid(int fd, uid_t *uid);
/* Does that work here? Tries it on a connection to itself; false also if users cannot be distinguished. */
bool server_peer_supported(void);

/* The two methods, for tests: both return the same as server_peer_uid(). */
bool server_peer_uid_by_diag(int fd, uid_t *uid);
bool server_peer_uid_by_table(int fd, uid_t *uid);
/* How many times this process has read a table. */
unsigned long server_peer_tables_read(void);

#endif
