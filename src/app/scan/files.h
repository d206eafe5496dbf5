/* files.h - whole files in and out, through the one door to the OS: by path, or inside a folder that others may have filled
 * (os/beneath.h). */
#ifndef LODE_SCAN_FILES_H
#define LODE_SCAN_FILES_H

#include "os/beneath.h"

/* All of a file of at most `max` bytes (LODE_LIMIT), NUL behind; LODE_NOT_FOUND when there is none. */
lode_status files_read(const char *path, size_t max, strbuf *out, lode_error *err);
/* The file is there whole or as it was: written beside it, synced, renamed. Keeps the mode of a file that existed. */
lode_status files_write(const char *path, lode_str data, lode_error *err);
/* Where a chain of links at the end of a path leads, NUL-terminated: the path itself when it is not a link. The file need not exist.
 * LODE_REFUSED: the links form a loop. */
lode_status files_resolve_links(const char *path, strbuf *out, lode_error *err);
/* The same for a name in such a folder: no link is followed. */
lode_status files_read_beneath(const char *folder, const char *name, size_t max, strbuf *out, lode_error *err);
lode_status files_write_beneath(const char *folder, const char *name, lode_str data, lode_error *err);
/* "folder/name", NUL behind; out is cleared first. */
lode_status files_join(strbuf *out, const char *folder, const char *name, lode_error *err);
/* Makes the folders above path. */
lode_status files_make_parents(const char *path, lode_error *err);
bool files_is_dir(const char *path);
bool files_exists(const char *path);

#endif
