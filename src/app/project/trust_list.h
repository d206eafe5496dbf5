/* trust_list.h - the folders of stores that this user has made, adopted or trusted: DATA/lode/trusted, where DATA is $XDG_DATA_HOME or
 * ~/.local/share. It may be a symbolic link of this user's, which is followed, and stays.
 *
 * A text file: "lode-trusted 1 CRC\n", where CRC is the CRC-32C of all that follows in hexadecimal, then one JSON object a line, the
 * oldest first. Whoever changes it holds a lock on DATA/lode/trusted.lock and replaces the file whole. A file that is damaged, belongs to
 * somebody else or can be written by others is an empty list with a note, and is kept aside by the next change. At most
 * TRUST_MAX_ENTRIES entries: beyond that those whose folders are gone leave first, then the oldest.
 */
#ifndef LODE_PROJECT_TRUST_LIST_H
#define LODE_PROJECT_TRUST_LIST_H

#include "base/json.h"

#define TRUST_MAX_ENTRIES 1000
enum { TRUST_ID_CHARS = 20, TRUST_FILE_CHARS = 80 };

typedef enum trust_level {
  TRUST_LEVEL_ADOPTED, /* found, not tracked by git, taken over */
  TRUST_LEVEL_MADE,    /* by this user */
  TRUST_LEVEL_TRUSTED, /* the user said so */
} trust_level;
const char *trust_level_name(trust_level level);

typedef struct trust_entry {
  strbuf path;       /* of the store's folder, absolute and without links, NUL behind */
  trust_level level;
  char id[TRUST_ID_CHARS];     /* of the store, in hexadecimal; "": not known yet */
  char file[TRUST_FILE_CHARS]; /* lode.db as the file system knows it; "": not known yet, or no longer */
  bool tracked;         /* git tracked files of it when the user trusted it */
  strbuf settings;   /* {"model":"openai:x"}: values that may reach beyond the folder; empty: none */
} trust_entry;
void trust_entry_release(trust_entry *entry);

typedef struct trust_list {
  strbuf text;       /* the lines, without the first */
  char note[400];       /* why the list is empty though there may be a file; "": all is well */
  bool damaged;         /* what is there is not to be used, and may be set aside */
} trust_list;

/* Never fails: what cannot be read is an empty list with a note. */
void trust_list_read(trust_list *list);
void trust_list_release(trust_list *list);
/* The entry of a path; that whose `file` is the given one; the next one from *at on. False when there is none (or no memory). The entry
 * is zeroed or of an earlier call. */
bool trust_list_find(const trust_list *list, const char *path, trust_entry *entry);
bool trust_list_find_file(const trust_list *list, const char *file, trust_entry *entry);
bool trust_list_next(const trust_list *list, size_t *at, trust_entry *entry);

/* Replaces the entry of its path, or adds it. */
LODE_MUST lode_status trust_list_put(const trust_entry *entry, lode_error *err);
LODE_MUST lode_status trust_list_remove(const char *path, bool *was_there, lode_error *err);

#define TRUST_WRITABLE_TEXT "can be written by other users"
struct stat;
/* "" unless the owner and the mode of a file or folder let others change it: then what to say about it. */
const char *trust_owner_problem(const struct stat *st);

#endif
