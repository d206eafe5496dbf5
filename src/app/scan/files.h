/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - reading and writing files through os/os.h: by path, or beneath a directory that others may have filled
 * (os/beneath.h). A file appears under its name only when it is complete: it is written under a temporary name beside
 * it, synced and renamed. */
#ifndef LODE_SCAN_FILES_H
#define LODE_SCAN_FILES_H

#include "os/beneath.h"

/* Reads the whole file, NUL-terminated. LODE_LIMIT: longer than `max` bytes. LODE_NOT_FOUND: there is no such file. */
LODE_MUST lode_status files_read(const char *path, size_t max, strbuf *out, lode_error *err);
/* Keeps the mode of an existing file. */
LODE_MUST lode_status files_write(const char *path, lode_str data, lode_error *err);
/* Follows the chain of links that the last name of a path may be; out is NUL-terminated, and is the path itself when
 * that is not a link. The file need not exist. LODE_REFUSED: the links form a loop. */
LODE_MUST lode_status files_resolve_links(const char *path, strbuf *out, lode_error *err);
/* LODE_REFUSED when a link of that chain belongs to another user. A chain that cannot be followed is LODE_OK: opening
 * the file fails as well. */
LODE_MUST lode_status files_check_link_owners(const char *path, lode_error *err);
/* As files_read() and files_write(), for a name beneath `folder`: no link is followed. */
LODE_MUST lode_status files_read_beneath(const char *folder, const char *name, size_t max, strbuf *out,
                                         lode_error *err);
LODE_MUST lode_status files_write_beneath(const char *folder, const char *name, lode_str data, lode_error *err);
/* The same in pieces, which are written to `fd`. `mode` is that of a new file. */
typedef struct files_out {
  int fd;
  bool committed;
  strbuf folder, name, tmp; /* NUL-terminated; tmp is the temporary name */
} files_out;
LODE_MUST lode_status files_out_open_path(files_out *out, const char *path, unsigned mode, lode_error *err);
LODE_MUST lode_status files_out_commit(files_out *out, lode_error *err);
/* Removes the file unless it was committed. Does nothing after an open that failed. */
void files_out_close(files_out *out);
/* "folder/name", NUL-terminated; out is cleared first. */
LODE_MUST lode_status files_join(strbuf *out, const char *folder, const char *name, lode_error *err);
/* Creates the missing folders above path. */
LODE_MUST lode_status files_make_parents(const char *path, lode_error *err);
bool files_is_dir(const char *path);
bool files_exists(const char *path);

/* ---- Owners ---- */

/* Is it the user's own id? As in git, someone who became root by sudo keeps their own files. */
bool files_is_own_uid(uid_t owner);
/* LODE_TRUST=1: the user trusts the files of every user. */
bool files_trusts_everybody(void);
/* Does it belong to another user, who is not trusted? */
bool files_is_stranger(const struct stat *st);

/* ---- Paths as text ---- */

/* Writes bytes that are not UTF-8, control characters, and backslashes that begin \xHH, as \xHH. Appends. */
void files_path_escape(strbuf *out, lode_str path);
/* The reverse of files_path_escape(). Appends. */
void files_path_unescape(strbuf *out, lode_str shown);
/* Value of a lower-case hexadecimal digit; -1 for anything else. */
int files_hex_value(char c);

#endif
