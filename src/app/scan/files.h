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

/* ---- Owners ---- */

/* As git does: whoever became root by sudo is still oneself. */
bool files_is_own_uid(uid_t owner);
/* LODE_TRUST=1: the user trusts everybody whose files are found. */
bool files_trusts_everybody(void);
/* A file of another user, who is not trusted. */
bool files_is_stranger(const struct stat *st);

/* ---- Paths as text ---- */

/* Bytes that are not UTF-8, and control characters and backslashes before xHH, as \xHH. Appends. */
void files_path_escape(strbuf *out, lode_str path);
/* Back to bytes. Appends. */
void files_path_unescape(strbuf *out, lode_str shown);
/* Of a hexadecimal digit in lower case; -1 for anything else. */
int files_hex_value(char c);

#endif
