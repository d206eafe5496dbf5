/* SPDX-License-Identifier: Apache-2.0 */
/* beneath.h - the files of a directory that anybody may have filled: a store, and the .lode of a project.
 *
 * Each function takes the path of the directory and a name below it: "lode.db", or "segments/ID.seg". The parents of
 * the directory may be links; the directory itself must not be one (a link that the user named is resolved once, by
 * beneath_resolve()), and no link is followed from there on. Everything is reached through a descriptor of the
 * directory, which is opened for each call, because the directory at that path may be replaced while a store is open.
 *
 * Functions return -1 and errno, like those of os_calls. ELOOP: a link. EISDIR, ENXIO: not a regular file.
 */
#ifndef LODE_OS_BENEATH_H
#define LODE_OS_BENEATH_H

#include "os/os.h"

/* The absolute path of a directory or file that the user named; if it is a link, that of its target. The caller frees
 * it. */
LODE_MUST lode_status beneath_resolve(const char *path, char **resolved, lode_error *err);

/* Regular files only. Nothing else is opened, not even briefly: see os_open_regular(). */
int beneath_open(const char *dir, const char *name, int flags, unsigned mode);
int beneath_lstat(const char *dir, const char *name, struct stat *st);
int beneath_unlink(const char *dir, const char *name); /* regular files only: anything else stays */
/* Renames it, whatever it is, to NAME.quarantine-TIME in the same directory (milliseconds since 1970), an unused name.
 * The caller holds a lock that keeps others from doing the same. */
#define STOREFILE_QUARANTINE_INFIX ".quarantine-"
int beneath_set_aside(const char *dir, const char *name);
/* Both names must be in the same directory below `dir`. */
int beneath_rename(const char *dir, const char *from, const char *to);
int beneath_mkdir(const char *dir, const char *name, unsigned mode);
/* Creates the directories between `dir` and the last component of the name, which must have neither empty components
 * nor "..". Existing ones are kept. */
int beneath_mkdir_parents(const char *dir, const char *name, unsigned mode);
/* Makes creations, renames and removals in the directory of `name` durable. */
LODE_MUST lode_status beneath_sync_dir(const char *dir, const char *name, lode_error *err);
/* Opens the directory itself (".") or one below it, for os_dir_next(); NULL and errno on failure. */
os_dir *beneath_list(const char *dir, const char *name);
/* A descriptor of the directory, for the functions of os_calls that take one. */
int beneath_open_dir(const char *dir);

/* Splits "DIR/NAME"; false if it is too long or has no slash. */
LODE_MUST bool beneath_split(const char *path, char *dir, size_t dir_size, const char **name);

#endif
