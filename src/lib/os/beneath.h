/* beneath.h - the files of a folder that anybody may have filled: a store, and the .lode of a project.
 *
 * Each function takes the path of the folder and a name below it: "lode.db", or "segments/ID.seg". The parents of the folder may be
 * links; the folder itself must not be one (a link that the user named is resolved once, by beneath_resolve), and no link is
 * followed from there on. Everything is reached through a descriptor of the folder, which is opened for each call: the folder
 * at that path may be replaced by another one while a store is open.
 *
 * The contracts are those of the table in os.h: -1 and errno. ELOOP: a link. EISDIR, ENXIO: not a regular file.
 */
#ifndef LODE_OS_BENEATH_H
#define LODE_OS_BENEATH_H

#include "os/os.h"

/* For a folder or file that the user named: its absolute path, that of the target if it is a link. Freed by the caller. */
lode_status beneath_resolve(const char *path, char **resolved, lode_error *err);

/* Regular files only. Nothing else is opened, not even for a moment: see os_open_regular. */
int beneath_open(const char *folder, const char *name, int flags, unsigned mode);
int beneath_lstat(const char *folder, const char *name, struct stat *st);
int beneath_unlink(const char *folder, const char *name); /* regular files only, too: anything else stays */
/* Renames it, whatever it is, to NAME.quarantine-TIME beside it (milliseconds since 1970), a name that nothing has. The caller
 * holds a lock that keeps others from doing the same. */
#define STOREFILE_QUARANTINE_INFIX ".quarantine-"
int beneath_set_aside(const char *folder, const char *name);
/* Both names in the same folder below `folder`. */
int beneath_rename(const char *folder, const char *from, const char *to);
int beneath_mkdir(const char *folder, const char *name, unsigned mode);
/* The folders between `folder` and the last part of the name, which has neither empty parts nor "..". What exists stays. */
int beneath_mkdir_parents(const char *folder, const char *name, unsigned mode);
/* Makes durable what was made, renamed or removed beside `name`. */
lode_status beneath_sync_dir(const char *folder, const char *name, lode_error *err);
/* The folder itself, ("."), or one below it, for os_dir_next; NULL and errno. */
os_dir *beneath_list(const char *folder, const char *name);
/* A descriptor of the folder, for the calls of the table that take one. */
int beneath_open_dir(const char *folder);

/* "FOLDER/NAME" taken apart; false when it is too long or has no slash. */
bool beneath_split(const char *path, char *folder, size_t folder_size, const char **name);

#endif
