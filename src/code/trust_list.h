/* trust_list.h - the folders of stores that this user has made, adopted or trusted: DATA/lode/trusted, where DATA is $XDG_DATA_HOME or
 * ~/.local/share. It may be a symbolic link of this user's, which is followed, and stays.
 *
 * A text file: "lode-trusted 1 CRC\n", where CRC is the CRC-32C of all that follows in hexadecimal, then one JSON object a line, the
 * oldest first. Whoever changes it holds a lock on DATA/lode/trusted.lock and replaces the file whole. A file that is damaged, belongs to
 * somebody else or can be written by others is an empty list with a note, and is kept aside by the next change. At most
 * LODE__TRUST_MOST entries: beyond that those whose folders are gone leave first, then the oldest.
 */
#ifndef LODE_CODE_TRUST_LIST_H
#define LODE_CODE_TRUST_LIST_H

#include "base/json.h"

#define LODE__TRUST_MOST 1000
enum { LODE__TRUST_ID_CHARS = 20, LODE__TRUST_FILE_CHARS = 80 };

typedef enum lode__trust_level {
  LODE__TRUST_LEVEL_ADOPTED, /* found, not tracked by git, taken over */
  LODE__TRUST_LEVEL_MADE,    /* by this user */
  LODE__TRUST_LEVEL_TRUSTED, /* the user said so */
} lode__trust_level;
const char *lode__trust_level_name(lode__trust_level level);

typedef struct lode__trust_entry {
  strbuf path;       /* of the store's folder, absolute and without links, NUL behind */
  lode__trust_level level;
  char id[LODE__TRUST_ID_CHARS];     /* of the store, in hexadecimal; "": not known yet */
  char file[LODE__TRUST_FILE_CHARS]; /* lode.db as the file system knows it; "": not known yet, or no longer */
  bool tracked;         /* git tracked files of it when the user trusted it */
  strbuf settings;   /* {"model":"openai:x"}: values that may reach beyond the folder; empty: none */
} lode__trust_entry;
void lode__trust_entry_release(lode__trust_entry *entry);

typedef struct lode__trust_list {
  strbuf text;       /* the lines, without the first */
  char note[400];       /* why the list is empty though there may be a file; "": all is well */
  bool damaged;         /* what is there is not to be used, and may be set aside */
} lode__trust_list;

/* Never fails: what cannot be read is an empty list with a note. */
void lode__trust_list_read(lode__trust_list *list);
void lode__trust_list_release(lode__trust_list *list);
/* The entry of a path; that whose `file` is the given one; the next one from *at on. False when there is none (or no memory). The entry
 * is zeroed or of an earlier call. */
bool lode__trust_list_find(const lode__trust_list *list, const char *path, lode__trust_entry *entry);
bool lode__trust_list_find_file(const lode__trust_list *list, const char *file, lode__trust_entry *entry);
bool lode__trust_list_next(const lode__trust_list *list, size_t *at, lode__trust_entry *entry);

/* Replaces the entry of its path, or adds it. */
LODE_MUST lode_status lode__trust_list_put(const lode__trust_entry *entry, lode_error *err);
LODE_MUST lode_status lode__trust_list_forget(const char *path, bool *was_there, lode_error *err);

/* LODE_TRUST=1: the user trusts everybody whose files are found. */
bool lode__trust_all(void);
/* A file of another user, who is not trusted. */
struct stat;
bool lode__trust_stranger(const struct stat *st);
#define LODE__TRUST_WRITABLE "can be written by other users"
/* "" unless the owner and the mode of a file or folder let others change it: then what to say about it. */
const char *lode__trust_owner(const struct stat *st);

#endif
