/* scan.h - the files below a root that are worth indexing, and why the others are not.
 *
 * A walk gives every file once, with what stat says and its language, or as skipped with the reason; a skipped folder
 * is given once and not entered. Order is that of the file system. Symbolic links are never followed, folders are
 * opened relative to their parents without following links: a walk does not leave its root and cannot loop. Memory is
 * bounded by the depth of the tree and the size of its ignore files, not by the number of files.
 *
 * What can be told from name and stat is told by the walk; what needs the text by scan_classify_text, which any thread may
 * call. scan_root_* may be called by any thread; a scan_walker belongs to one.
 *
 * Paths are bytes, relative to the root, with / between names; they need not be UTF-8.
 */
#ifndef LODE_SCAN_SCAN_H
#define LODE_SCAN_SCAN_H

#include "scan/language.h"
#include "scan/mask.h"

/* X(enum, name as stored and shown, text for people) */
#define SCAN_SKIPS(X)                                                             \
  X(NONE, "none", "is indexed")                                                    \
  X(IGNORED, "ignored", "left out by .gitignore or .lodeignore")                   \
  X(HIDDEN, "hidden", "its name begins with a dot")                                \
  X(LINK, "link", "a symbolic link")                                               \
  X(SPECIAL, "special", "no regular file: a device, socket or pipe")               \
  X(UNREADABLE, "unreadable", "no permission, or an error of reading")             \
  X(TOO_LARGE, "too_large", "larger than the limit")                               \
  X(TOO_DEEP, "too_deep", "nested too deep, or its path is too long")              \
  X(DEPENDENCIES, "dependencies", "installed packages or a cache")                 \
  X(SECRET, "secret", "looks like a key or a password")                            \
  X(BINARY, "binary", "no text")                                                   \
  X(MINIFIED, "minified", "made smaller by a program, not written by people")      \
  X(GENERATED, "generated", "made by a program: says so, or a lock file")          \
  X(EMPTY, "empty", "has no text")                                                 \
  X(OTHER_DEVICE, "other_device", "on another file system")

typedef enum scan_skip {
#define SCAN_SKIP_ENUM(id, name, text) SCAN_SKIP_##id,
  SCAN_SKIPS(SCAN_SKIP_ENUM)
#undef SCAN_SKIP_ENUM
  SCAN_SKIP_COUNT
} scan_skip;

const char *scan_skip_name(scan_skip skip);
const char *scan_skip_text(scan_skip skip);
/* By its name; NONE when there is no such reason. */
scan_skip scan_skip_parse(lode_str name);

enum { /* marks: what ranking may want to know; told from the path alone */
  SCAN_PATH_TEST = 1,
  SCAN_PATH_VENDORED = 2,
  SCAN_PATH_EXAMPLE = 4,
  SCAN_PATH_DOC = 8,
  SCAN_PATH_LEGACY = 16,      /* kept for those who used it before: legacy, deprecated */
  SCAN_PATH_OTHER_OS = 32,  /* for another system than this one */
  SCAN_PATH_STUB = 64,     /* declarations of what is written elsewhere: .d.ts, .pyi */
  SCAN_PATH_THIS_OS = 128,  /* for this system */
};
unsigned scan_path_flags(lode_str path);
/* Is the word the name of another system than this one: windows, darwin, freebsd? */
bool scan_is_other_os(lode_str word);

typedef struct scan_options {
  bool hidden;         /* also what begins with a dot (never .git and .lode) */
  bool no_ignore;      /* ignore files do not count */
  bool generated;      /* also generated and minified files, and dependencies */
  mask_policy secrets; /* INDEX: names and texts that look like secrets are as good as others */
  bool one_device;     /* stays on the root's file system */
  uint64_t max_bytes;  /* larger files are skipped; 0 = 1 MiB, the most is LANG_MAX_TEXT */
  lode_str exclude;    /* more lines of .lodeignore, of the configuration; they lie at the root */
} scan_options;

typedef struct scan_entry {
  lode_str path;       /* NUL-terminated; valid until the next call */
  scan_skip skip;     /* NONE: a file to index */
  bool is_folder;      /* only when skipped */
  unsigned marks;
  uint64_t size;
  int64_t mtime_ns, ctime_ns;
  uint64_t inode, device;
  const lang_info *language; /* by name alone; "text" may turn out to be a script: lang_detect with the head */
} scan_entry;

/* ---- The root: opened once, read from by any thread ---- */

typedef struct scan_root scan_root;
/* LODE_NOT_FOUND, LODE_INVALID (no folder), LODE_IO. Finds the git repository around it and its excludes. */
LODE_MUST lode_status scan_root_open(const char *path, const scan_options *options, scan_root **root, lode_error *err);
void scan_root_close(scan_root *root);
const char *scan_root_path(const scan_root *root); /* absolute, without links */

/* The whole file, checked to be regular and below the root with no link on the way; *entry gets what fstat said after the
 * reading, if that is what it said before (else it is read again; a file that keeps changing is UNREADABLE). Replaces
 * what is in text. A file that cannot be had is no error: entry->skip says why (also too large, gone: UNREADABLE). */
LODE_MUST lode_status scan_root_read(const scan_root *root, lode_str path, strbuf *text, scan_entry *entry,
                                      lode_error *err);
/* One path, by the rules of the walk (ignore files are read anew): for watchers. NOT_FOUND when it does not exist. */
LODE_MUST lode_status scan_root_classify(const scan_root *root, lode_str path, scan_entry *entry, lode_error *err);
/* Is the text binary, minified, generated, a secret? */
scan_skip scan_classify_text(const scan_root *root, lode_str path, const lang_info *language, lode_str text);

/* Masks the secrets inside the text, as the options want it: SECRET when the file is to be left out because of them. */
scan_skip scan_root_mask(const scan_root *root, char *text, size_t len, uint32_t *masked);

/* ---- The walk ---- */

typedef struct scan_walker scan_walker;
/* `below`: only this folder or file of the root ("" for all). The rules of the folders above it hold. */
LODE_MUST lode_status scan_walker_open(const scan_root *root, lode_str below, scan_walker **walker, lode_error *err);
/* *more = false at the end. Folders that cannot be read are given as UNREADABLE and are no error. */
LODE_MUST lode_status scan_walker_next(scan_walker *walker, scan_entry *entry, bool *more, lode_error *err);
/* So far: skipped files (and folders, once each) by reason; [NONE] counts the files given. */
const uint64_t *scan_walker_counts(const scan_walker *walker);
void scan_walker_close(scan_walker *walker);

#endif
