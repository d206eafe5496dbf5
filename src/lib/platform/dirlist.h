/* SPDX-License-Identifier: Apache-2.0 */
/* dirlist.h - lists the names in a directory, without . and .. */
#ifndef LODE_PLATFORM_DIRLIST_H
#define LODE_PLATFORM_DIRLIST_H

typedef struct os_dir os_dir;

typedef enum os_kind { OS_KIND_UNKNOWN, OS_KIND_FILE, OS_KIND_DIR, OS_KIND_LINK, OS_KIND_OTHER } os_kind;

os_dir *os_dir_open(const char *path); /* NULL and errno */
/* The same for an open descriptor, which it takes over (also on failure). */
os_dir *os_dir_from_fd(int fd);
/* NULL at the end, and on failure. */
const char *os_dir_next(os_dir *dir);
/* With the kind that the file system reports, which may be unknown. *errnum is 0 at the end of the list. */
const char *os_dir_next_kind(os_dir *dir, os_kind *kind, int *errnum);
int os_dir_fd(const os_dir *dir);
void os_dir_close(os_dir *dir);

#endif
