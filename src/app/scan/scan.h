/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h - the files below a root that are worth indexing, and why the others are not.
 *
 * A walk returns every file once: with its stat data and language, or as skipped with the reason. A skipped folder is
 * returned once and not entered. The order is the file system's. Symbolic links are never followed and folders are
 * opened relative to their parents: a walk does not leave its root and cannot loop. Memory is bounded by the depth of
 * the tree and the size of its ignore files, not by the number of files.
 *
 * The walk decides what name and stat can decide; scan_classify_text() decides what needs the text. Any thread may call
 * scan_classify_text() and scan_root_*(); a scan_walker belongs to one thread.
 *
 * Paths are bytes, relative to the root, with / between names; they need not be UTF-8.
 */
#ifndef LODE_SCAN_SCAN_H
#define LODE_SCAN_SCAN_H

#include "scan/language.h"
#include "scan/mask.h"

/* X(enum, name in the index and in output, text for people) */
#define SCAN_SKIPS(X)                                                                                                  \
  X(NONE, "none", "is indexed")                                                                                        \
  X(IGNORED, "ignored", "left out by .gitignore, .lodeignore or the settings")                                         \
  X(HIDDEN, "hidden", "its name begins with a dot")                                                                    \
  X(LINK, "link", "a symbolic link")                                                                                   \
  X(SPECIAL, "special", "no regular file: a device, socket or pipe")                                                   \
  X(UNREADABLE, "unreadable", "no permission, or an error of reading")                                                 \
  X(TOO_LARGE, "too_large", "larger than the limit")                                                                   \
  X(TOO_DEEP, "too_deep", "nested too deep, or its path is too long")                                                  \
  X(DEPENDENCIES, "dependencies", "installed packages or a cache")                                                     \
  X(SECRET, "secret", "looks like a key or a password")                                                                \
  X(BINARY, "binary", "no text")                                                                                       \
  X(MINIFIED, "minified", "made smaller by a program, not written by people")                                          \
  X(GENERATED, "generated", "made by a program: says so, or a lock file")                                              \
  X(EMPTY, "empty", "has no text")                                                                                     \
  X(OTHER_DEVICE, "other_device", "on another file system")

typedef enum scan_skip {
#define SCAN_SKIP_ENUM(id, name, text) SCAN_SKIP_##id,
  SCAN_SKIPS(SCAN_SKIP_ENUM)
#undef SCAN_SKIP_ENUM
      SCAN_SKIP_COUNT
} scan_skip;

const char *scan_skip_name(scan_skip skip);
const char *scan_skip_text(scan_skip skip);
/* By name; NONE when there is no such reason. */
scan_skip scan_skip_parse(lode_str name);

enum { /* hints for ranking, from the path alone */
       SCAN_PATH_TEST = 1,
       SCAN_PATH_VENDORED = 2,
       SCAN_PATH_EXAMPLE = 4,
       SCAN_PATH_DOC = 8,
       SCAN_PATH_LEGACY = 16,   /* kept for compatibility: legacy, deprecated */
       SCAN_PATH_OTHER_OS = 32, /* for another operating system */
       SCAN_PATH_STUB = 64,     /* declarations only: .d.ts, .pyi */
       SCAN_PATH_THIS_OS = 128, /* for this operating system */
};
unsigned scan_path_flags(lode_str path);
/* Is the word the name of another operating system: windows, darwin, freebsd? */
bool scan_is_other_os(lode_str word);

typedef struct scan_options {
  bool hidden;         /* include names that begin with a dot (never .git and .lode) */
  bool no_ignore;      /* disregard ignore files */
  bool generated;      /* include generated and minified files, and dependencies */
  mask_policy secrets; /* INDEX: names and texts that look like secrets are not skipped */
  bool one_device;     /* stay on the root's file system */
  uint64_t max_bytes;  /* larger files are skipped; 0: 1 MiB; at most LANG_MAX_TEXT */
  /* From the configuration, separated by commas: */
  lode_str exclude;    /* further patterns as in .lodeignore, relative to the root */
  lode_str extensions; /* only files that end so: "py, js"; empty: all */
} scan_options;

typedef struct scan_entry {
  lode_str path;  /* NUL-terminated; valid until the next call */
  scan_skip skip; /* NONE: a file to index */
  bool is_folder; /* only when skipped */
  unsigned flags; /* SCAN_PATH_* */
  uint64_t size;
  int64_t mtime_ns, ctime_ns;
  uint64_t inode, device;
  const lang_info *language; /* from the name alone; "text" may turn out to be a script: lang_detect() with the head */
} scan_entry;

/* ---- The root: opened once, used by any thread ---- */

typedef struct scan_root scan_root;
/* LODE_NOT_FOUND, LODE_INVALID (not a folder), LODE_IO. Finds the git repository around it and its excludes. */
LODE_MUST lode_status scan_root_open(const char *path, const scan_options *options, scan_root **root, lode_error *err);
void scan_root_close(scan_root *root);
const char *scan_root_path(const scan_root *root); /* absolute, without links */

/* Replaces text with the whole file, which must be regular and below the root with no link on the way. *entry gets
 * the stat data, which is the same before and after the read: else the file is read again, and is UNREADABLE if it
 * keeps changing. A file that cannot be read is not an error: entry->skip says why (also TOO_LARGE; UNREADABLE when
 * gone). */
LODE_MUST lode_status scan_root_read(const scan_root *root, lode_str path, strbuf *text, scan_entry *entry,
                                     lode_error *err);
/* Can the file be opened? Also true of one that is gone. */
bool scan_root_may_read(const scan_root *root, lode_str path); /* NUL-terminated */
/* Classifies one path by the rules of the walk, reading ignore files again: for watchers. LODE_NOT_FOUND: no such
 * path. */
LODE_MUST lode_status scan_root_classify(const scan_root *root, lode_str path, scan_entry *entry, lode_error *err);
/* EMPTY, BINARY, SECRET, MINIFIED, GENERATED or NONE, from the text and the options. */
scan_skip scan_classify_text(const scan_root *root, lode_str path, const lang_info *language, lode_str text);

/* Masks the secrets inside the text according to the options. SECRET: the file is to be skipped because of them. */
scan_skip scan_root_mask(const scan_root *root, char *text, size_t len, uint32_t *masked);

/* ---- The walk ---- */

typedef struct scan_walker scan_walker;
/* `below`: a folder or file to walk, from the root ("" for all). The rules of the folders above it apply. */
LODE_MUST lode_status scan_walker_open(const scan_root *root, lode_str below, scan_walker **walker, lode_error *err);
/* *more = false at the end. Folders that cannot be read are returned as UNREADABLE; that is not an error. */
LODE_MUST lode_status scan_walker_next(scan_walker *walker, scan_entry *entry, bool *more, lode_error *err);
/* Counts so far, by reason: skipped files and folders, each once; [NONE] counts the files to index. */
const uint64_t *scan_walker_counts(const scan_walker *walker);
void scan_walker_close(scan_walker *walker);

#endif
