/* SPDX-License-Identifier: Apache-2.0 */
/* trust_list.h - the folders of stores that this user has made, adopted or trusted: DATA/lode/trusted, where DATA is
 * $XDG_DATA_HOME or ~/.local/share. It may be a symbolic link, which is followed and kept if every link
 * of the chain is this user's.
 *
 * A text file: "lode-trusted 1 CRC\n", where CRC is the hexadecimal CRC-32C of all that follows, then one JSON object
 * per line, oldest first. Writers hold a lock on DATA/lode/trusted.lock and replace the whole file. A file that is
 * damaged, belongs to another user or is writable by others counts as an empty list with a note, and is renamed by
 * the next change. There are at most TRUST_MAX_ENTRIES entries: beyond that, entries whose folders are gone are
 * dropped first, then the oldest.
 */
#ifndef LODE_PROJECT_TRUST_LIST_H
#define LODE_PROJECT_TRUST_LIST_H

#include "base/json.h"

#define TRUST_MAX_ENTRIES 1000
enum { TRUST_ID_CHARS = 20, TRUST_FILE_CHARS = 80 };

typedef enum trust_level {
  TRUST_LEVEL_ADOPTED, /* found, not tracked by git, and used since */
  TRUST_LEVEL_MADE,    /* by this user */
  TRUST_LEVEL_TRUSTED, /* the user said so */
} trust_level;
const char *trust_level_name(trust_level level);

typedef struct trust_entry {
  strbuf path; /* the store's folder, absolute, without links, NUL-terminated */
  trust_level level;
  char id[TRUST_ID_CHARS];     /* of the store, in hexadecimal; "": not known yet */
  char file[TRUST_FILE_CHARS]; /* identity of lode.db in the file system; "": not known yet, or no longer */
  bool tracked;                /* git tracked files of it when the user trusted it */
  strbuf settings;             /* {"model":"openai:x"}: values that may reach beyond the folder; empty: none */
} trust_entry;
void trust_entry_release(trust_entry *entry);

typedef struct trust_list {
  strbuf text;    /* the lines, without the first */
  char note[400]; /* why the list is empty although there may be a file; "": no problem */
  bool damaged;   /* the file must not be used, and may be quarantined */
} trust_list;

/* Never fails: what cannot be read is an empty list with a note. */
void trust_list_read(trust_list *list);
void trust_list_release(trust_list *list);
/* The entry of a path; the entry whose `file` matches; the next entry from *at on. False when there is none (or no
 * memory). The entry must be zero or come from an earlier call. */
bool trust_list_find(const trust_list *list, const char *path, trust_entry *entry);
bool trust_list_find_file(const trust_list *list, const char *file, trust_entry *entry);
bool trust_list_next(const trust_list *list, size_t *at, trust_entry *entry);

/* Replaces the entry of its path, or adds one. A store that another process has listed as made or trusted meanwhile is
 * not listed as adopted. */
LODE_MUST lode_status trust_list_put(const trust_entry *entry, lode_error *err);
LODE_MUST lode_status trust_list_remove(const char *path, bool *was_there, lode_error *err);

#define TRUST_WRITABLE_TEXT "can be written by other users"
struct stat;
/* "" when only this user may change a file or folder, by its owner and mode; else a text that says why not. */
const char *trust_owner_problem(const struct stat *st);

#endif
