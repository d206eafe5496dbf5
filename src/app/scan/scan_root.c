/* SPDX-License-Identifier: Apache-2.0 */
/* scan_root.c - opening a root, and reading files below it; see scan.h. */
#include "scan/scan_root.h"

#include "os/os.h"
#include "scan/git.h"
#include "scan/scan_classify.h"

#include <fcntl.h>
#include <limits.h>

enum { SCAN_READ_TRIES = 3 };

/* A root that its repository ignores is a separate project: the repository's rules do not apply to it. */
static lode_status scan_root_drop_foreign(scan_root *root, lode_error *err) {
  lode_status st = LODE_OK;
  ignore_rules *rules = NULL;
  lode_str prefix = scan_root_prefix(root);
  if (prefix.len == 0) return LODE_OK;
  TRY_GOTO(scan_root_rules(root, &rules, err));
  if (ignore_match_path(rules, prefix, true)) {
    root->top = 0;
    root->git[0] = '\0';
  }
done:
  ignore_free(rules);
  return st;
}

/* Patterns with commas between them as lines. */
static lode_str scan_split_patterns(char *text) {
  char *to = text;
  for (const char *from = text; *from; from++) {
    bool comma = *from == ',';
    *to++ = comma ? '\n' : *from;
    if (comma) from += strspn(from + 1, " ");
  }
  *to = '\0';
  return str_of(text);
}

lode_status scan_root_open(const char *path, const scan_options *options, scan_root **out, lode_error *err) {
  lode_status st = LODE_OK;
  scan_root *root = mem_calloc(1, sizeof *root);
  strbuf git = {0};
  struct stat s;
  char real[PATH_MAX];
  *out = NULL;
  if (!root) return err_nomem(err);
  root->fd = -1;
  if (options) root->options = *options;
  if (root->options.max_bytes == 0) root->options.max_bytes = 1u << 20;
  if (root->options.max_bytes > LANG_MAX_TEXT) root->options.max_bytes = LANG_MAX_TEXT;
  if (!realpath(path, real)) {
    if (errno == ENOENT) TRY_GOTO(err_set(err, LODE_NOT_FOUND, "there is no folder %.400s", path));
    TRY_GOTO(err_errno(err, errno, path));
  }
  root->path = str_dup(real, strlen(real));
  root->exclude = str_dup(root->options.exclude.data, root->options.exclude.len);
  root->extensions = str_dup(root->options.extensions.data, root->options.extensions.len);
  if (!root->path || !root->exclude || !root->extensions) TRY_GOTO(err_nomem(err));
  root->options.exclude = scan_split_patterns(root->exclude);
  root->options.extensions = str_of(root->extensions);
  root->fd = OS_RETRY(os_api->open(root->path, O_RDONLY | O_DIRECTORY, 0));
  if (root->fd < 0 && errno == ENOTDIR) TRY_GOTO(err_set(err, LODE_INVALID, "%.400s is not a folder", root->path));
  if (root->fd < 0 || OS_RETRY(os_api->fstat(root->fd, &s)) < 0) TRY_GOTO(err_errno(err, errno, root->path));
  root->device = (uint64_t)s.st_dev;
  if (!git_find_repo(root->path, &root->top, &git)) git.len = 0;
  root->git = str_dup(git.data, git.len);
  if (!root->git || git.failed) TRY_GOTO(err_nomem(err));
  TRY_GOTO(scan_root_drop_foreign(root, err));
  *out = root;
  root = NULL;
done:
  scan_root_close(root);
  strbuf_release(&git);
  return st;
}

void scan_root_close(scan_root *root) {
  if (!root) return;
  if (root->fd >= 0) os_api->close(root->fd);
  mem_free(root->path);
  mem_free(root->git);
  mem_free(root->exclude);
  mem_free(root->extensions);
  mem_free(root);
}

const char *scan_root_path(const scan_root *root) { return root->path; }

/* ---- Rules of the folders above ---- */

lode_status scan_read_rules(ignore_rules *rules, int folder_fd, const scan_listing *names, lode_str folder,
                            lode_error *err) {
  static const struct {
    const char *name;
    ignore_source source;
  } files[] = {{".gitignore", IGNORE_GIT}, {".lodeignore", IGNORE_LODE}};
  lode_status st = LODE_OK;
  strbuf text = {0};
  for (size_t i = 0; i < 2; i++) {
    struct stat s;
    size_t got;
    if (!scan_listing_may_have(names, files[i].name)) continue;
    /* opening a device may act on it */
    if (os_api->lstat_at(folder_fd, files[i].name, &s) < 0 || !S_ISREG(s.st_mode)) continue;
    int fd = OS_RETRY(os_api->open_below(folder_fd, files[i].name, O_RDONLY | O_NONBLOCK, 0));
    if (fd < 0) continue; /* perhaps a link by now, which git does not follow here either */
    char *buf = NULL;
    if (OS_RETRY(os_api->fstat(fd, &s)) == 0 && S_ISREG(s.st_mode)) {
      size_t want = (uint64_t)s.st_size > IGNORE_MAX_FILE_BYTES ? IGNORE_MAX_FILE_BYTES : (size_t)s.st_size;
      text.len = 0;
      buf = strbuf_reserve(&text, want);
      if (!buf)
        st = err_nomem(err);
      else if (os_read_full(fd, buf, want, 0, &got, NULL) == LODE_OK)
        st = ignore_add(rules, files[i].source, folder, (lode_str){buf, got}, err);
    }
    os_api->close(fd);
    if (st != LODE_OK) break;
  }
  strbuf_release(&text);
  return st;
}

/* Reads the ignore files from the top of the repository down to the folder above the root. */
static lode_status scan_root_rules_above(const scan_root *root, ignore_rules *rules, lode_error *err) {
  lode_str prefix = scan_root_prefix(root);
  char folder[PATH_MAX];
  for (size_t end = 0; prefix.len && end <= prefix.len; end++) {
    if (end != 0 && (end == prefix.len || prefix.data[end] != '/')) continue;
    size_t len = end == 0 ? root->top : (size_t)(prefix.data - root->path) + end;
    if (len >= sizeof folder) break;
    memcpy(folder, root->path, len);
    folder[len] = '\0';
    int fd = OS_RETRY(os_api->open(folder, O_RDONLY | O_DIRECTORY, 0));
    if (fd < 0) continue;
    lode_status st = scan_read_rules(rules, fd, NULL, (lode_str){prefix.data, end}, err);
    os_api->close(fd);
    TRY(st);
  }
  return LODE_OK;
}

lode_status scan_root_rules(const scan_root *root, ignore_rules **out, lode_error *err) {
  lode_status st = LODE_OK;
  ignore_rules *rules = NULL;
  *out = NULL;
  TRY_GOTO(ignore_new(&rules, err));
  if (!root->options.no_ignore) {
    TRY_GOTO(git_add_excludes(rules, root->git, err));
    TRY_GOTO(scan_root_rules_above(root, rules, err));
  }
  TRY_GOTO(ignore_add(rules, IGNORE_LODE, scan_root_prefix(root), root->options.exclude, err));
  *out = rules;
  return LODE_OK;
done:
  ignore_free(rules);
  return st;
}

/* ---- Reading ---- */

void scan_entry_set_stat(scan_entry *entry, const struct stat *s) {
  entry->size = s->st_size < 0 ? 0 : (uint64_t)s->st_size;
  entry->mtime_ns = os_mtime_ns(s);
  entry->ctime_ns = os_ctime_ns(s);
  entry->inode = (uint64_t)s->st_ino;
  entry->device = (uint64_t)s->st_dev;
}

static bool scan_root_same_stat(const struct stat *a, const struct stat *b) {
  return a->st_size == b->st_size && os_mtime_ns(a) == os_mtime_ns(b) && os_ctime_ns(a) == os_ctime_ns(b);
}

/* One attempt; *again when the file changed meanwhile. */
static lode_status scan_root_read_once(const scan_root *root, int fd, strbuf *text, scan_entry *entry, bool *again,
                                       lode_error *err) {
  struct stat before, after;
  size_t got = 0;
  *again = false;
  entry->skip = SCAN_SKIP_UNREADABLE;
  if (OS_RETRY(os_api->fstat(fd, &before)) < 0) return LODE_OK;
  scan_entry_set_stat(entry, &before);
  if (!S_ISREG(before.st_mode))
    entry->skip = S_ISDIR(before.st_mode) ? SCAN_SKIP_UNREADABLE : SCAN_SKIP_SPECIAL;
  else if ((uint64_t)before.st_size > root->options.max_bytes)
    entry->skip = SCAN_SKIP_TOO_LARGE;
  else
    entry->skip = SCAN_SKIP_NONE;
  if (entry->skip != SCAN_SKIP_NONE) return LODE_OK;
  text->len = 0;
  char *buf = strbuf_reserve(text, (size_t)before.st_size + 1);
  if (!buf) return err_nomem(err);
  entry->skip = SCAN_SKIP_UNREADABLE;
  if (os_read_full(fd, buf, (size_t)before.st_size + 1, 0, &got, NULL) != LODE_OK) return LODE_OK;
  if (OS_RETRY(os_api->fstat(fd, &after)) < 0) return LODE_OK;
  if (got != (size_t)before.st_size || !scan_root_same_stat(&before, &after)) {
    *again = true;
    return LODE_OK;
  }
  text->len = got;
  entry->skip = SCAN_SKIP_NONE;
  return LODE_OK;
}

bool scan_root_may_read(const scan_root *root, lode_str path) {
  int fd = OS_RETRY(os_api->open_below(root->fd, path.data, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0));
  if (fd < 0) return errno != EACCES && errno != EPERM && errno != EIO;
  os_api->close(fd);
  return true;
}

lode_status scan_root_read(const scan_root *root, lode_str path, strbuf *text, scan_entry *entry, lode_error *err) {
  char name[SCAN_MAX_PATH];
  bool again = true;
  *entry = (scan_entry){.path = path,
                        .skip = SCAN_SKIP_TOO_DEEP,
                        .language = lang_detect(path, (lode_str){0}),
                        .flags = scan_path_flags(path)};
  text->len = 0;
  if (path.len >= sizeof name || memchr(path.data, '\0', path.len)) return LODE_OK;
  memcpy(name, path.data, path.len);
  name[path.len] = '\0';
  struct stat before;
  if (OS_RETRY(os_api->lstat_at(root->fd, name, &before)) == 0 && os_not_regular(&before) == ENXIO) {
    scan_entry_set_stat(entry, &before);
    entry->skip = SCAN_SKIP_SPECIAL; /* opening a device may act on it */
    return LODE_OK;
  }
  entry->skip = SCAN_SKIP_UNREADABLE;
  int fd = OS_RETRY(os_api->open_below(root->fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0));
  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) return err_errno(err, errno, "opening a file");
    if (errno == ELOOP || errno == EXDEV) entry->skip = SCAN_SKIP_LINK;
    return LODE_OK;
  }
  lode_status st = LODE_OK;
  for (int i = 0; st == LODE_OK && again && i < SCAN_READ_TRIES; i++)
    st = scan_root_read_once(root, fd, text, entry, &again, err);
  os_api->close(fd);
  return st;
}

scan_skip scan_root_mask(const scan_root *root, char *text, size_t len, uint32_t *masked) {
  size_t n = root->options.secrets == MASK_POLICY_INDEX ? 0 : mask_secrets(text, len);
  bool skip = n && root->options.secrets == MASK_POLICY_SKIP;
  *masked = skip ? 0 : n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
  return skip ? SCAN_SKIP_SECRET : SCAN_SKIP_NONE;
}

scan_skip scan_classify_text(const scan_root *root, lode_str path, const lang_info *language, lode_str text) {
  (void)path;
  return scan_classify_content(language, text, &root->options);
}
