/* peer.h - which user of this machine is at the other end of a TCP connection. What differs between systems is in peer.c alone. */
#ifndef LODE_SERVER_PEER_H
#define LODE_SERVER_PEER_H

#include <stdbool.h>
#include <sys/types.h>

/* The user who opened the other end of the connected socket `fd`. False: it is on another machine, in another network namespace or
 * gone, or the system does not say. Constant time where the kernel answers for one connection, else bounded; never waits. */
bool server_peer_uid(int fd, uid_t *uid);
/* Does that work here? Tries it on a connection to itself; false also where users cannot be told apart. */
bool server_peer_supported(void);

/* The two ways to ask the kernel, for tests: either finds what server_peer_uid() does. */
bool server_peer_uid_by_diag(int fd, uid_t *uid);
bool server_peer_uid_by_table(int fd, uid_t *uid);
/* How often a table was read by this process. */
unsigned long server_peer_tables_read(void);

#endif
