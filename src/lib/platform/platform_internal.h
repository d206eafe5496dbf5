/* SPDX-License-Identifier: Apache-2.0 */
/* platform_internal.h - what the sources of this room share: the calls that each platform has in its own way
 * (os_sys_*: linux.c, darwin.c, posix.c), and their portable versions (os_portable_*: portable.c, locks_table.c). */
#ifndef LODE_PLATFORM_PLATFORM_INTERNAL_H
#define LODE_PLATFORM_PLATFORM_INTERNAL_H

#include "platform/platform.h"

/* ---- One for each platform ---- */

int os_sys_open_below(int dir, const char *path, int flags, unsigned mode);
int os_sys_close(int fd);
int os_sys_fsync(int fd);
int os_sys_fdatasync(int fd);
int os_sys_lock(int fd, short type, off_t start, off_t len);
int os_sys_lock_held(int fd, short type, off_t start, off_t len);
int os_sys_birth(const char *path, os_birth *out);
/* A file that has no name: memory, if the platform has such files. */
int os_sys_nameless_file(void);
/* Both ends CLOEXEC. */
int os_sys_pipe(int ends[2]);
int os_sys_socket_pair(int ends[2]);
int os_sys_socket(int family, int type);
/* Closes all descriptors from `first` on. Called between fork and exec. */
void os_sys_close_from(int first);
/* This process and its children get no privileges from programs that they execute. False: the platform cannot. */
bool os_sys_no_new_privs(void);

/* Linux: the kind by the number of the file system, the release of the kernel, and the real path. */
os_fs_kind os_linux_fs_kind(uint32_t magic, const char *release, const char *path, const char **name);

/* ---- Portable ---- */

int os_portable_open_below(int dir, const char *path, int flags, unsigned mode);
int os_portable_close(int fd);
int os_portable_lock(int fd, short type, off_t start, off_t len);
int os_portable_lock_held(int fd, short type, off_t start, off_t len);
int os_portable_fsync(int fd);
int os_portable_fdatasync(int fd);
int os_portable_random(void *buf, size_t n, bool now);
int os_portable_nameless_file(void);
int os_portable_pipe(int ends[2]);
int os_portable_socket_pair(int ends[2]);
int os_portable_socket(int family, int type);
void os_portable_close_from(int first);

/* ---- Shared ---- */

int os_shared_dir_next(os_dir *dir, const char **name, os_kind *kind);
pid_t os_shared_spawn(const struct os_spawn_options *options, int *fd, bool *refused);
pid_t os_shared_start(char *const *argv, int in, int out);

/* Moves a descriptor above standard error; the original is closed. A program without standard input, output or error
 * still prints to 1 and 2: no file may have those descriptors. */
int os_above_stdio(int fd);
/* Closes a descriptor and keeps errno. */
void os_close_quietly(int fd);
/* For a link where a directory is expected the kernel returns ENOTDIR: convert it to ELOOP, as elsewhere. */
int os_loop_errno(int fd, int dir, const char *path);
uint64_t os_clock_ns(int clock);

#endif
