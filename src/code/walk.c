/* walk.c - the walk; see walk.h.
 *
 * A stack of open folders, each read as a stream. `path` is the path of the current entry from the top of the git
 * repository (whose rules need it), `base` bytes of it lie above the root. Names that come from readdir are opened and
 * asked about relative to the descriptor of their folder, so that nothing that is moved or replaced meanwhile can lead
 * elsewhere.
 */
#include "base/os.h"
#include "code/judge.h"
#include "code/root.h"

#include <dirent.h>
#include <fcntl.h>

typedef struct frame {
  os_dir *folder;
  size_t path_len; /* of walker->path, this folder */
  uint64_t device, inode;
} frame;

struct lode__walker {
  const lode__root *root;
  lode__ignore *rules;
  frame *frames;
  size_t depth, frames_cap;
  char path[2 * LODE__PATH_BYTES];
  size_t path_len, base;
  lode__entry single; /* what the walk was opened for, when that is no folder to enter */
  bool has_single;
  uint64_t counts[LODE__SKIP_COUNT];
};

static lode_str current(const lode__walker *w) {
  if (w->path_len < w->base) return STR_LIT(""); /* the root itself */
  return (lode_str){w->path + w->base, w->path_len - w->base};
}

/* The path of `name` in the folder of the given length; false when it is too long. */
static bool set_path(lode__walker *w, size_t folder_len, const char *name) {
  size_t n = strlen(name), at = folder_len;
  if (at > 0 && w->path[at - 1] != '/') w->path[at++] = '/';
  if (at + n + 1 > sizeof w->path || at + n - w->base >= LODE__PATH_BYTES) {
    w->path_len = folder_len;
    w->path[folder_len] = '\0';
    return false;
  }
  memcpy(w->path + at, name, n + 1);
  w->path_len = at + n;
  return true;
}

/* ---- Judging one entry ---- */

static int kind_of_mode(mode_t mode) {
  return S_ISDIR(mode) ? DT_DIR : S_ISREG(mode) ? DT_REG : S_ISLNK(mode) ? DT_LNK : DT_CHR;
}

static lode__skip judge_by_rules(const lode__walker *w, lode_str name, bool is_folder) {
  const lode__walk_options *o = &w->root->options;
  lode__ignore_source by = LODE__IGNORE_GLOBAL;
  lode__ignore_verdict v = lode__ignore_match(w->rules, (lode_str){w->path, w->path_len}, is_folder, &by);
  if (v == LODE__IGNORE_YES) return LODE__SKIP_IGNORED;
  bool wanted = v == LODE__IGNORE_NO && by == LODE__IGNORE_LODE; /* a ! of .lodeignore brings back what we would leave out */
  if (wanted) return LODE__SKIP_NONE;
  if (is_folder && !o->generated && lode__judge_dependencies(name)) return LODE__SKIP_DEPENDENCIES;
  if (!o->hidden && name.data[0] == '.') return LODE__SKIP_HIDDEN;
  if (is_folder) return LODE__SKIP_NONE;
  lode__skip skip = lode__judge_name(current(w));
  if (skip == LODE__SKIP_SECRET && o->secrets == LODE__SECRETS_INDEX) return LODE__SKIP_NONE;
  return o->generated && (skip == LODE__SKIP_GENERATED || skip == LODE__SKIP_MINIFIED) ? LODE__SKIP_NONE : skip;
}

static lode__skip judge_kind(int kind) {
  return kind == DT_LNK ? LODE__SKIP_LINK : kind == DT_DIR || kind == DT_REG ? LODE__SKIP_NONE : LODE__SKIP_SPECIAL;
}

/* Fills entry for a name in an open folder whose path is already current. A folder to enter has skip NONE and is_folder. */
static void judge(lode__walker *w, int folder_fd, const char *name, int kind, lode__entry *entry) {
  const lode__walk_options *o = &w->root->options;
  lode_str file = str_of(name);
  struct stat s;
  bool have_stat = false;
  *entry = (lode__entry){.path = current(w), .skip = LODE__SKIP_UNREADABLE, .language = &lode__languages[0]};
  if (kind == DT_UNKNOWN) {
    if (OS_RETRY(os_api->lstat_at(folder_fd, name, &s)) < 0) return;
    have_stat = true;
    kind = kind_of_mode(s.st_mode);
  }
  entry->is_folder = kind == DT_DIR;
  entry->skip = LODE__SKIP_HIDDEN;
  if (strcmp(name, ".git") == 0 || strcmp(name, ".lode") == 0) return;
  entry->skip = judge_kind(kind);
  if (entry->skip != LODE__SKIP_NONE) return;
  if (kind == DT_REG && file.data[0] == '.' && o->secrets != LODE__SECRETS_INDEX && lode__judge_name(entry->path) == LODE__SKIP_SECRET) {
    entry->skip = LODE__SKIP_SECRET;
    return;
  }
  entry->skip = judge_by_rules(w, file, kind == DT_DIR);
  if (entry->skip != LODE__SKIP_NONE || kind == DT_DIR) return;
  if (!have_stat && OS_RETRY(os_api->lstat_at(folder_fd, name, &s)) < 0) {
    entry->skip = LODE__SKIP_UNREADABLE;
    return;
  }
  lode__entry_stat(entry, &s);
  entry->skip = judge_kind(kind_of_mode(s.st_mode)); /* it may have been replaced since */
  if (entry->skip == LODE__SKIP_NONE && S_ISDIR(s.st_mode)) entry->skip = LODE__SKIP_UNREADABLE;
  else if (entry->skip == LODE__SKIP_NONE && s.st_size == 0) entry->skip = LODE__SKIP_EMPTY;
  else if (entry->skip == LODE__SKIP_NONE && entry->size > o->max_bytes) entry->skip = LODE__SKIP_TOO_LARGE;
  if (entry->skip != LODE__SKIP_NONE) return;
  entry->language = lode__language_of(entry->path, (lode_str){0});
  entry->marks = lode__path_marks(entry->path);
}

/* ---- Entering folders ---- */

static bool is_ancestor(const lode__walker *w, const struct stat *s) {
  for (size_t i = 0; i < w->depth; i++)
    if (w->frames[i].inode == (uint64_t)s->st_ino && w->frames[i].device == (uint64_t)s->st_dev) return true;
  return false;
}

static bool is_cache(int fd) {
  static const char *const signs[] = {"CACHEDIR.TAG", "pyvenv.cfg"};
  struct stat s;
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
    if (os_api->lstat_at(fd, signs[i], &s) == 0 && S_ISREG(s.st_mode)) return true;
  return false;
}

/* Why the open folder is not entered. */
static lode__skip judge_folder(const lode__walker *w, int fd, struct stat *s) {
  if (OS_RETRY(os_api->fstat(fd, s)) < 0) return LODE__SKIP_UNREADABLE;
  if (w->root->options.one_device && (uint64_t)s->st_dev != w->root->device) return LODE__SKIP_OTHER_DEVICE;
  if (is_ancestor(w, s)) return LODE__SKIP_LINK; /* mounted into itself */
  if (w->depth > 0 && !w->root->options.generated && is_cache(fd)) return LODE__SKIP_DEPENDENCIES;
  return LODE__SKIP_NONE;
}

/* Opens the folder `name` of an open folder and makes it the current one. *skip says why it was not entered. */
static lode_status enter(lode__walker *w, int folder_fd, const char *name, lode__skip *skip, lode_error *err) {
  struct stat s;
  *skip = LODE__SKIP_TOO_DEEP;
  if (w->depth >= LODE__WALK_DEPTH) return LODE_OK;
  int fd = OS_RETRY(os_api->open_below(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0));
  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) return err_errno(err, errno, "opening a folder");
    *skip = errno == ELOOP ? LODE__SKIP_LINK : LODE__SKIP_UNREADABLE;
    return LODE_OK;
  }
  *skip = judge_folder(w, fd, &s);
  if (*skip != LODE__SKIP_NONE) {
    os_api->close(fd);
    return LODE_OK;
  }
  lode_status st = LODE_OK;
  lode_str path = {w->path, w->path_len};
  if (!mem_grow(&w->frames, &w->frames_cap, w->depth + 1, sizeof *w->frames)) st = err_nomem(err);
  if (st == LODE_OK && !w->root->options.no_ignore) st = lode__root_read_rules(w->rules, fd, path, err);
  if (st != LODE_OK) {
    os_api->close(fd);
    return st;
  }
  os_dir *folder = os_dir_from_fd(fd);
  if (!folder) {
    *skip = LODE__SKIP_UNREADABLE;
    return errno == ENOMEM ? err_nomem(err) : LODE_OK;
  }
  w->frames[w->depth++] = (frame){folder, w->path_len, (uint64_t)s.st_dev, (uint64_t)s.st_ino};
  return LODE_OK;
}

static void leave(lode__walker *w) {
  os_dir_close(w->frames[--w->depth].folder);
  if (w->depth > 0) lode__ignore_leave(w->rules, (lode_str){w->path, w->frames[w->depth - 1].path_len});
}

/* ---- Opening ---- */

static lode_status walker_new(const lode__root *root, lode__walker **out, lode_error *err) {
  lode__walker *w = mem_calloc(1, sizeof *w);
  lode_str prefix = lode__root_prefix(root);
  *out = w;
  if (!w) return err_nomem(err);
  w->root = root;
  if (prefix.len >= LODE__PATH_BYTES) return err_set(err, LODE_LIMIT, "the path of the root is too long");
  memcpy(w->path, prefix.data, prefix.len);
  w->path_len = prefix.len;
  w->base = prefix.len ? prefix.len + 1 : 0;
  return lode__root_rules(root, &w->rules, err);
}

static lode_status enter_root(lode__walker *w, lode_error *err) {
  lode__skip skip;
  size_t len = w->path_len;
  TRY(enter(w, w->root->fd, ".", &skip, err));
  w->path_len = len;
  if (skip == LODE__SKIP_NONE) return LODE_OK;
  return err_set(err, LODE_IO, "the folder %.400s cannot be read: %s", w->root->path, lode__skip_text(skip));
}

/* Goes down from the root to `below`, judging each name on the way. Ends in the folder (entered, *entry.is_folder and NONE),
 * or before what is no folder or is skipped (*entry). */
static lode_status descend(lode__walker *w, lode_str below, lode__entry *entry, lode_error *err) {
  char name[256];
  TRY(enter_root(w, err));
  *entry = (lode__entry){.path = below, .is_folder = true, .language = &lode__languages[0]};
  for (size_t at = 0; at < below.len;) {
    const char *slash = memchr(below.data + at, '/', below.len - at);
    size_t n = slash ? (size_t)(slash - below.data) - at : below.len - at;
    if (n == 0 || n >= sizeof name || memchr(below.data + at, '\0', n) || (n == 2 && memcmp(below.data + at, "..", 2) == 0))
      return err_set(err, LODE_NOT_FOUND, "there is no such file below the root");
    memcpy(name, below.data + at, n);
    name[n] = '\0';
    at += n + (slash != NULL);
    if (n == 1 && name[0] == '.') continue;
    frame *f = &w->frames[w->depth - 1];
    int fd = os_dir_fd(f->folder);
    struct stat s;
    if (!set_path(w, f->path_len, name)) return err_set(err, LODE_LIMIT, "the path is too long");
    if (OS_RETRY(os_api->lstat_at(fd, name, &s)) < 0)
      return err_set(err, LODE_NOT_FOUND, "there is no such file below the root");
    judge(w, fd, name, kind_of_mode(s.st_mode), entry);
    if (entry->skip != LODE__SKIP_NONE) return LODE_OK;
    if (!entry->is_folder) {
      if (at < below.len) return err_set(err, LODE_NOT_FOUND, "there is no such file below the root");
      return LODE_OK;
    }
    TRY(enter(w, fd, name, &entry->skip, err));
    if (entry->skip != LODE__SKIP_NONE) return LODE_OK;
  }
  return LODE_OK;
}

lode_status lode__walker_open(const lode__root *root, lode_str below, lode__walker **out, lode_error *err) {
  lode_status st = LODE_OK;
  lode__walker *w = NULL;
  *out = NULL;
  TRY_GOTO(walker_new(root, &w, err));
  TRY_GOTO(descend(w, below, &w->single, err));
  w->has_single = !w->single.is_folder || w->single.skip != LODE__SKIP_NONE;
  /* of the folders on the way only the last one is walked */
  while (!w->has_single && w->depth > 1) {
    os_dir_close(w->frames[0].folder);
    memmove(w->frames, w->frames + 1, --w->depth * sizeof *w->frames);
  }
  *out = w;
  return LODE_OK;
done:
  lode__walker_close(w);
  return st;
}

lode_status lode__root_judge(const lode__root *root, lode_str path, lode__entry *entry, lode_error *err) {
  lode__walker *w = NULL;
  lode_status st = walker_new(root, &w, err);
  if (st == LODE_OK) st = descend(w, path, entry, err);
  lode__walker_close(w);
  entry->path = path;
  return st;
}

/* ---- Walking ---- */

lode_status lode__walker_next(lode__walker *w, lode__entry *entry, bool *more, lode_error *err) {
  *more = true;
  if (w->has_single) {
    *entry = w->single;
    w->has_single = false;
    while (w->depth > 0) leave(w);
    w->counts[entry->skip]++;
    return LODE_OK;
  }
  while (w->depth > 0) {
    frame *f = &w->frames[w->depth - 1];
    int kind, errnum, fd = os_dir_fd(f->folder);
    const char *name = os_dir_next_kind(f->folder, &kind, &errnum);
    if (!name && errnum == 0) {
      leave(w);
      continue;
    }
    if (!name) { /* the rest of the folder cannot be read */
      w->path_len = f->path_len;
      w->path[w->path_len] = '\0';
      *entry = (lode__entry){.path = current(w), .skip = LODE__SKIP_UNREADABLE, .is_folder = true, .language = &lode__languages[0]};
      leave(w);
    } else if (!set_path(w, f->path_len, name)) {
      *entry = (lode__entry){.path = current(w), .skip = LODE__SKIP_TOO_DEEP, .language = &lode__languages[0]};
    } else {
      judge(w, fd, name, kind, entry);
      if (entry->is_folder && entry->skip == LODE__SKIP_NONE) {
        TRY(enter(w, fd, name, &entry->skip, err));
        if (entry->skip == LODE__SKIP_NONE) continue;
      }
    }
    w->counts[entry->skip]++;
    return LODE_OK;
  }
  *entry = (lode__entry){.path = STR_LIT(""), .language = &lode__languages[0]};
  *more = false;
  return LODE_OK;
}

const uint64_t *lode__walker_counts(const lode__walker *walker) { return walker->counts; }

void lode__walker_close(lode__walker *w) {
  if (!w) return;
  while (w->depth > 0) leave(w);
  lode__ignore_free(w->rules);
  mem_free(w->frames);
  mem_free(w);
}
