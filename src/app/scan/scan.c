/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - the walk; see scan.h.
 *
 * A stack of open folders (scan_listing.h). `path` is the path of the current entry from the top of the git
 * repository, as its rules need it; the first `base` bytes are above the root. Names from readdir are opened and
 * examined relative to the descriptor of their folder, so that files moved or replaced meanwhile cannot lead
 * elsewhere.
 */
#include "os/os.h"
#include "scan/scan_classify.h"
#include "scan/scan_listing.h"
#include "scan/scan_root.h"

#include <fcntl.h>

typedef struct scan_walker_frame {
  scan_listing folder;
  size_t path_len; /* length of walker->path for this folder */
  uint64_t device, inode;
} scan_walker_frame;

struct scan_walker {
  const scan_root *root;
  ignore_rules *rules;
  scan_walker_frame *frames;
  size_t depth, frames_cap;
  char path[2 * SCAN_MAX_PATH];
  size_t path_len, base;
  scan_entry single; /* the entry that the walk was opened for, when it is not a folder to enter */
  bool has_single;
  uint64_t counts[SCAN_SKIP_COUNT];
};

static lode_str scan_walker_path(const scan_walker *w) {
  if (w->path_len < w->base) return STR_LIT(""); /* the root itself */
  return (lode_str){w->path + w->base, w->path_len - w->base};
}

/* Sets the path to `name` in the folder whose path has the given length; false when it is too long. */
static bool scan_walker_set_path(scan_walker *w, size_t folder_len, const char *name) {
  size_t n = strlen(name), at = folder_len;
  if (at > 0 && w->path[at - 1] != '/') w->path[at++] = '/';
  if (at + n + 1 > sizeof w->path || at + n - w->base >= SCAN_MAX_PATH) {
    w->path_len = folder_len;
    w->path[folder_len] = '\0';
    return false;
  }
  memcpy(w->path + at, name, n + 1);
  w->path_len = at + n;
  return true;
}

/* ---- Classifying one entry ---- */

static os_kind scan_walker_dirent_type(mode_t mode) {
  return S_ISDIR(mode) ? OS_KIND_DIR : S_ISREG(mode) ? OS_KIND_FILE : S_ISLNK(mode) ? OS_KIND_LINK : OS_KIND_OTHER;
}

/* Is the file one of those that the settings want, by its ending? */
static bool scan_has_extension(lode_str list, lode_str name) {
  bool any = false;
  for (size_t at = 0; at < list.len;) {
    size_t from = at + strspn(list.data + at, " ,*.\n");
    size_t len = strcspn(list.data + from, " ,\n");
    at = from + len;
    any = any || len > 0;
    if (len && name.len > len && name.data[name.len - len - 1] == '.' &&
        memcmp(name.data + name.len - len, list.data + from, len) == 0)
      return true;
  }
  return !any;
}

static scan_skip scan_walker_apply_rules(const scan_walker *w, lode_str name, bool is_folder) {
  const scan_options *o = &w->root->options;
  ignore_source by = IGNORE_GLOBAL;
  ignore_verdict v = ignore_match(w->rules, (lode_str){w->path, w->path_len}, is_folder, &by);
  if (v == IGNORE_YES) return SCAN_SKIP_IGNORED;
  bool wanted = v == IGNORE_NO && by == IGNORE_LODE; /* a ! in .lodeignore re-includes what we would skip */
  if (wanted) return SCAN_SKIP_NONE;
  if (is_folder && !o->generated && scan_is_dependency_dir(name)) return SCAN_SKIP_DEPENDENCIES;
  if (!o->hidden && name.data[0] == '.') return SCAN_SKIP_HIDDEN;
  if (is_folder) return SCAN_SKIP_NONE;
  if (!scan_has_extension(o->extensions, name)) return SCAN_SKIP_IGNORED;
  scan_skip skip = scan_classify_name(scan_walker_path(w));
  if (skip == SCAN_SKIP_SECRET && o->secrets == MASK_POLICY_INDEX) return SCAN_SKIP_NONE;
  return o->generated && (skip == SCAN_SKIP_GENERATED || skip == SCAN_SKIP_MINIFIED) ? SCAN_SKIP_NONE : skip;
}

static scan_skip scan_walker_classify_type(os_kind kind) {
  return kind == OS_KIND_LINK                          ? SCAN_SKIP_LINK
         : kind == OS_KIND_DIR || kind == OS_KIND_FILE ? SCAN_SKIP_NONE
                                                       : SCAN_SKIP_SPECIAL;
}

/* Fills entry for a name in an open folder; w->path is already set. A folder to enter has skip NONE and is_folder. */
static void scan_walker_classify(scan_walker *w, int folder_fd, const char *name, os_kind kind, scan_entry *entry) {
  const scan_options *o = &w->root->options;
  lode_str file = str_of(name);
  struct stat s;
  bool have_stat = false;
  *entry = (scan_entry){.path = scan_walker_path(w), .skip = SCAN_SKIP_UNREADABLE, .language = &lang_table[0]};
  if (kind == OS_KIND_UNKNOWN) {
    if (OS_RETRY(os_api->lstat_at(folder_fd, name, &s)) < 0) return;
    have_stat = true;
    kind = scan_walker_dirent_type(s.st_mode);
  }
  entry->is_folder = kind == OS_KIND_DIR;
  entry->skip = SCAN_SKIP_HIDDEN;
  if (strcmp(name, ".git") == 0 || strcmp(name, ".lode") == 0) return;
  entry->skip = scan_walker_classify_type(kind);
  if (entry->skip != SCAN_SKIP_NONE) return;
  if (kind == OS_KIND_FILE && file.data[0] == '.' && o->secrets != MASK_POLICY_INDEX &&
      scan_classify_name(entry->path) == SCAN_SKIP_SECRET) {
    entry->skip = SCAN_SKIP_SECRET;
    return;
  }
  entry->skip = scan_walker_apply_rules(w, file, kind == OS_KIND_DIR);
  if (entry->skip != SCAN_SKIP_NONE || kind == OS_KIND_DIR) return;
  if (!have_stat && OS_RETRY(os_api->lstat_at(folder_fd, name, &s)) < 0) {
    entry->skip = SCAN_SKIP_UNREADABLE;
    return;
  }
  scan_entry_set_stat(entry, &s);
  entry->skip = scan_walker_classify_type(scan_walker_dirent_type(s.st_mode)); /* it may have been replaced since */
  if (entry->skip == SCAN_SKIP_NONE && S_ISDIR(s.st_mode))
    entry->skip = SCAN_SKIP_UNREADABLE;
  else if (entry->skip == SCAN_SKIP_NONE && s.st_size == 0)
    entry->skip = SCAN_SKIP_EMPTY;
  else if (entry->skip == SCAN_SKIP_NONE && entry->size > o->max_bytes)
    entry->skip = SCAN_SKIP_TOO_LARGE;
  if (entry->skip != SCAN_SKIP_NONE) return;
  entry->language = lang_detect(entry->path, (lode_str){0});
  entry->flags = scan_path_flags(entry->path);
}

/* ---- Entering folders ---- */

static bool scan_walker_is_ancestor(const scan_walker *w, const struct stat *s) {
  for (size_t i = 0; i < w->depth; i++)
    if (w->frames[i].inode == (uint64_t)s->st_ino && w->frames[i].device == (uint64_t)s->st_dev) return true;
  return false;
}

static bool scan_walker_is_cache_dir(const scan_listing *folder) {
  static const char *const signs[] = {"CACHEDIR.TAG", "pyvenv.cfg"};
  struct stat s;
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
    if (scan_listing_may_have(folder, signs[i]) && os_api->lstat_at(scan_listing_fd(folder), signs[i], &s) == 0 &&
        S_ISREG(s.st_mode))
      return true;
  return false;
}

/* Why the open folder must not be entered; NONE: enter it. */
static scan_skip scan_walker_classify_dir(const scan_walker *w, int fd, struct stat *s) {
  if (OS_RETRY(os_api->fstat(fd, s)) < 0) return SCAN_SKIP_UNREADABLE;
  if (w->root->options.one_device && (uint64_t)s->st_dev != w->root->device) return SCAN_SKIP_OTHER_DEVICE;
  if (scan_walker_is_ancestor(w, s)) return SCAN_SKIP_LINK; /* mounted into itself */
  return SCAN_SKIP_NONE;
}

/* Opens folder `name` in an open folder and pushes it on the stack. *skip says why it was not entered. */
static lode_status scan_walker_enter(scan_walker *w, int folder_fd, const char *name, scan_skip *skip,
                                     lode_error *err) {
  struct stat s;
  *skip = SCAN_SKIP_TOO_DEEP;
  if (w->depth >= SCAN_MAX_DEPTH) return LODE_OK;
  int fd = OS_RETRY(os_api->open_below(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0));
  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) return err_errno(err, errno, "opening a folder");
    *skip = errno == ELOOP ? SCAN_SKIP_LINK : SCAN_SKIP_UNREADABLE;
    return LODE_OK;
  }
  *skip = scan_walker_classify_dir(w, fd, &s);
  if (*skip != SCAN_SKIP_NONE) {
    os_api->close(fd);
    return LODE_OK;
  }
  scan_listing folder;
  lode_status st = LODE_OK;
  TRY(scan_listing_open(&folder, fd, err));
  if (!folder.folder) {
    *skip = SCAN_SKIP_UNREADABLE;
    return LODE_OK;
  }
  if (w->depth > 0 && !w->root->options.generated && scan_walker_is_cache_dir(&folder)) {
    scan_listing_close(&folder);
    *skip = SCAN_SKIP_DEPENDENCIES;
    return LODE_OK;
  }
  if (!mem_grow(&w->frames, &w->frames_cap, w->depth + 1, sizeof *w->frames)) st = err_nomem(err);
  if (st == LODE_OK && !w->root->options.no_ignore)
    st = scan_read_rules(w->rules, scan_listing_fd(&folder), &folder, (lode_str){w->path, w->path_len}, err);
  if (st != LODE_OK) {
    scan_listing_close(&folder);
    return st;
  }
  w->frames[w->depth++] = (scan_walker_frame){folder, w->path_len, (uint64_t)s.st_dev, (uint64_t)s.st_ino};
  return LODE_OK;
}

static void scan_walker_leave(scan_walker *w) {
  scan_listing_close(&w->frames[--w->depth].folder);
  if (w->depth > 0) ignore_leave(w->rules, (lode_str){w->path, w->frames[w->depth - 1].path_len});
}

/* ---- Opening ---- */

static lode_status scan_walker_new(const scan_root *root, scan_walker **out, lode_error *err) {
  scan_walker *w = mem_calloc(1, sizeof *w);
  lode_str prefix = scan_root_prefix(root);
  *out = w;
  if (!w) return err_nomem(err);
  w->root = root;
  if (prefix.len >= SCAN_MAX_PATH) return err_set(err, LODE_LIMIT, "the path of the root is too long");
  memcpy(w->path, prefix.data, prefix.len);
  w->path_len = prefix.len;
  w->base = prefix.len ? prefix.len + 1 : 0;
  return scan_root_rules(root, &w->rules, err);
}

static lode_status scan_walker_enter_root(scan_walker *w, lode_error *err) {
  scan_skip skip;
  size_t len = w->path_len;
  TRY(scan_walker_enter(w, w->root->fd, ".", &skip, err));
  w->path_len = len;
  if (skip == SCAN_SKIP_NONE) return LODE_OK;
  return err_set(err, LODE_IO, "the folder %.400s cannot be read: %s", w->root->path, scan_skip_text(skip));
}

static lode_status scan_walker_absent(lode_str below, lode_error *err) {
  char quoted[256];
  return err_set(err, LODE_NOT_FOUND, "there is no such file below the root: %s",
                 str_quote(below, quoted, sizeof quoted));
}

/* Descends from the root to `below`, classifying each name on the way. Ends in the folder (entered; *entry has
 * is_folder and NONE), or at the first name that is skipped or not a folder (*entry). */
static lode_status scan_walker_descend(scan_walker *w, lode_str below, scan_entry *entry, lode_error *err) {
  char name[256];
  TRY(scan_walker_enter_root(w, err));
  *entry = (scan_entry){.path = below, .is_folder = true, .language = &lang_table[0]};
  for (size_t at = 0; at < below.len;) {
    const char *slash = memchr(below.data + at, '/', below.len - at);
    size_t n = slash ? (size_t)(slash - below.data) - at : below.len - at;
    if (n == 0 || n >= sizeof name || memchr(below.data + at, '\0', n) ||
        (n == 2 && memcmp(below.data + at, "..", 2) == 0))
      return scan_walker_absent(below, err);
    memcpy(name, below.data + at, n);
    name[n] = '\0';
    at += n + (slash != NULL);
    if (n == 1 && name[0] == '.') continue;
    scan_walker_frame *f = &w->frames[w->depth - 1];
    int fd = scan_listing_fd(&f->folder);
    struct stat s;
    if (!scan_walker_set_path(w, f->path_len, name)) return err_set(err, LODE_LIMIT, "the path is too long");
    if (OS_RETRY(os_api->lstat_at(fd, name, &s)) < 0) return scan_walker_absent(below, err);
    scan_walker_classify(w, fd, name, scan_walker_dirent_type(s.st_mode), entry);
    if (entry->skip != SCAN_SKIP_NONE) return LODE_OK;
    if (!entry->is_folder) {
      if (at < below.len) return scan_walker_absent(below, err);
      return LODE_OK;
    }
    TRY(scan_walker_enter(w, fd, name, &entry->skip, err));
    if (entry->skip != SCAN_SKIP_NONE) return LODE_OK;
  }
  return LODE_OK;
}

lode_status scan_walker_open(const scan_root *root, lode_str below, scan_walker **out, lode_error *err) {
  lode_status st = LODE_OK;
  scan_walker *w = NULL;
  *out = NULL;
  TRY_GOTO(scan_walker_new(root, &w, err));
  TRY_GOTO(scan_walker_descend(w, below, &w->single, err));
  w->has_single = !w->single.is_folder || w->single.skip != SCAN_SKIP_NONE;
  /* only the last of the folders on the way is walked */
  while (!w->has_single && w->depth > 1) {
    scan_listing_close(&w->frames[0].folder);
    memmove(w->frames, w->frames + 1, --w->depth * sizeof *w->frames);
  }
  *out = w;
  return LODE_OK;
done:
  scan_walker_close(w);
  return st;
}

lode_status scan_root_classify(const scan_root *root, lode_str path, scan_entry *entry, lode_error *err) {
  scan_walker *w = NULL;
  lode_status st = scan_walker_new(root, &w, err);
  if (st == LODE_OK) st = scan_walker_descend(w, path, entry, err);
  scan_walker_close(w);
  entry->path = path;
  return st;
}

/* ---- Walking ---- */

lode_status scan_walker_next(scan_walker *w, scan_entry *entry, bool *more, lode_error *err) {
  *more = true;
  if (w->has_single) {
    *entry = w->single;
    w->has_single = false;
    while (w->depth > 0) scan_walker_leave(w);
    w->counts[entry->skip]++;
    return LODE_OK;
  }
  while (w->depth > 0) {
    scan_walker_frame *f = &w->frames[w->depth - 1];
    os_kind kind;
    int errnum, fd = scan_listing_fd(&f->folder);
    const char *name = scan_listing_next(&f->folder, &kind, &errnum);
    if (!name && errnum == 0) {
      scan_walker_leave(w);
      continue;
    }
    if (!name) { /* the rest of the folder cannot be read */
      w->path_len = f->path_len;
      w->path[w->path_len] = '\0';
      *entry = (scan_entry){
          .path = scan_walker_path(w), .skip = SCAN_SKIP_UNREADABLE, .is_folder = true, .language = &lang_table[0]};
      scan_walker_leave(w);
    } else if (!scan_walker_set_path(w, f->path_len, name)) {
      *entry = (scan_entry){.path = scan_walker_path(w), .skip = SCAN_SKIP_TOO_DEEP, .language = &lang_table[0]};
    } else {
      scan_walker_classify(w, fd, name, kind, entry);
      if (entry->is_folder && entry->skip == SCAN_SKIP_NONE) {
        TRY(scan_walker_enter(w, fd, name, &entry->skip, err));
        if (entry->skip == SCAN_SKIP_NONE) continue;
      }
    }
    w->counts[entry->skip]++;
    return LODE_OK;
  }
  *entry = (scan_entry){.path = STR_LIT(""), .language = &lang_table[0]};
  *more = false;
  return LODE_OK;
}

const uint64_t *scan_walker_counts(const scan_walker *walker) { return walker->counts; }

void scan_walker_close(scan_walker *w) {
  if (!w) return;
  while (w->depth > 0) scan_walker_leave(w);
  ignore_free(w->rules);
  mem_free(w->frames);
  mem_free(w);
}
