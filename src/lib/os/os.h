/* SPDX-License-Identifier: Apache-2.0 */
/* os.h - helpers for files, made of the calls of the table os_api (platform/platform.h): complete reads and writes,
 * files of unknown type, syncing directories.
 */
#ifndef LODE_OS_OS_H
#define LODE_OS_OS_H

#include "base/base.h"
#include "platform/dirlist.h"
#include "platform/library.h"
#include "platform/platform.h"
#include "platform/thread.h"

/* Opens a file of unknown type for reading. Only regular files are opened (otherwise ENXIO or EISDIR): opening a FIFO
 * waits for its other end, and opening a device may act on it. The path may lead through links. */
int os_open_regular(const char *path);
/* Its two steps: 0, or the errno for a file type; and a descriptor, closed (-1 and errno) unless it is a regular file.
 * */
int os_not_regular(const struct stat *st);
int os_keep_regular(int fd);

/* Complete reads and writes, despite EINTR and short counts. *got < n only at the end of the file. */
LODE_MUST lode_status os_read_full(int fd, void *buf, size_t n, uint64_t off, size_t *got, lode_error *err);
LODE_MUST lode_status os_write_full(int fd, const void *buf, size_t n, uint64_t off, lode_error *err);
/* Gives a file or directory that was just made the mode that it was asked for, whatever the umask; `made` is its stat.
 * As far as the file system has modes. */
void os_set_mode(int fd, const struct stat *made, unsigned mode);
/* Syncs the directory of a path: makes creations, renames and removals in it durable. */
LODE_MUST lode_status os_sync_parent_dir(const char *path, lode_error *err);
/* The same for a descriptor that was just opened (if -1, with errno set); closes it. */
LODE_MUST lode_status os_sync_dir(int fd, const char *what, lode_error *err);

#endif
