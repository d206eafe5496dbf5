/* SPDX-License-Identifier: Apache-2.0 */
/* git.c - finding repositories and their exclude files; see git.h. */
#include "scan/git.h"

#include "os/os.h"
#include "scan/files.h"

#include <ctype.h>
#include <fcntl.h>

/* Reads at most `max` bytes of a file, NUL-terminated; false when it cannot be read. */
static bool git_read_small(const char *path, size_t max, strbuf *out) {
  lode_error err;
  struct stat st;
  size_t got = 0;
  bool ok = false;
  out->len = 0;
  int fd = os_open_regular(path);
  if (fd < 0) return false;
  if (OS_RETRY(os_api->fstat(fd, &st)) == 0) {
    size_t want = st.st_size < 0 ? 0 : (uint64_t)st.st_size > max ? max : (size_t)st.st_size;
    char *buf = strbuf_reserve(out, want + 1);
    if (buf && os_read_full(fd, buf, want, 0, &got, &err) == LODE_OK) {
      buf[got] = '\0';
      out->len = got;
      ok = true;
    }
  }
  os_api->close(fd);
  return ok;
}

static void git_set_path(strbuf *out, const char *folder, size_t len, const char *name) {
  out->len = 0;
  if (name[0] == '/') len = 0;
  strbuf_add(out, folder, len);
  if (len && folder[len - 1] != '/') strbuf_addch(out, '/');
  strbuf_add(out, name, strlen(name) + 1);
  if (!out->failed) out->len--;
}

static bool git_path_is_dir(const char *path) {
  struct stat st;
  return os_api->stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void git_trim_line(char *text) {
  size_t n = strcspn(text, "\r\n");
  while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t')) n--;
  text[n] = '\0';
}

/* A .git file contains "gitdir: PATH", the folder of a worktree or submodule (*own). That folder may have a file
 * commondir, which names the shared folder; `git` becomes that. */
static bool git_follow_gitdir(const char *path, size_t top, strbuf *git, strbuf *own) {
  strbuf text = {0};
  bool found = false;
  if (git_read_small(git->data, 4096, &text) && text.len > 8 && memcmp(text.data, "gitdir: ", 8) == 0) {
    git_trim_line(text.data);
    git_set_path(own, path, top, text.data + 8);
    if (!own->failed && git_path_is_dir(own->data)) {
      found = true;
      git_set_path(git, own->data, own->len, "commondir");
      if (!git->failed && git_read_small(git->data, 4096, &text)) {
        git_trim_line(text.data);
        git_set_path(git, own->data, own->len, text.data);
      } else {
        git_set_path(git, "", 0, own->data);
      }
    }
  }
  found = found && !git->failed;
  strbuf_release(&text);
  return found;
}

static bool git_is_foreign(const char *git) {
  struct stat st;
  return os_api->lstat_at(AT_FDCWD, git, &st) == 0 && files_is_stranger(&st);
}

bool git_find_repo(const char *path, size_t *top, strbuf *git) {
  strbuf own = {0};
  size_t len = strlen(path);
  while (len > 1 && path[len - 1] == '/') len--;
  for (;;) {
    git_set_path(git, path, len, ".git");
    if (git->failed || git_is_foreign(git->data)) break;
    bool found = git_path_is_dir(git->data) || git_follow_gitdir(path, len, git, &own);
    strbuf_release(&own);
    if (found) {
      *top = len;
      return true;
    }
    if (len <= 1) break;
    while (len > 0 && path[len - 1] != '/') len--;
    if (len > 1) len--;
  }
  git->len = 0;
  *top = 0;
  return false;
}

/* ---- Configuration ---- */

static bool git_config_word_at(const char *p, const char *end, const char *word) {
  size_t n = strlen(word);
  return (size_t)(end - p) >= n && strncasecmp(p, word, n) == 0;
}

/* The value after a =, with git's quotes and escapes, up to the end of its line or a comment. */
static void git_config_put_value(const char *p, const char *end, strbuf *value) {
  bool quoted = false;
  size_t keep = 0;
  value->len = 0;
  while (p < end && (*p == ' ' || *p == '\t')) p++;
  for (; p < end && *p != '\n'; p++) {
    if (*p == '"') {
      quoted = !quoted;
      continue;
    }
    if (!quoted && (*p == '#' || *p == ';')) break;
    char c = *p;
    if (c == '\\' && p + 1 < end) {
      p++;
      c = *p == 'n' ? '\n' : *p == 't' ? '\t' : *p;
      if (*p == '\n') continue;
    }
    strbuf_addch(value, c);
    if (quoted || !isspace((unsigned char)c)) keep = value->len;
  }
  value->len = keep;
}

/* The last value of a key in a section, which is given as "[core]". */
static bool git_config_find_value(lode_str config, const char *section, const char *key, strbuf *value) {
  const char *p = config.data, *end = p + config.len;
  bool inside = false, found = false;
  while (p && p < end) {
    const char *eol = memchr(p, '\n', (size_t)(end - p));
    if (!eol) eol = end;
    while (p < eol && isspace((unsigned char)*p)) p++;
    if (p < eol && *p == '[') {
      inside = git_config_word_at(p, eol, section);
      p = memchr(p, ']', (size_t)(eol - p));
      if (!p)
        p = eol;
      else
        p++;
      while (p < eol && isspace((unsigned char)*p)) p++;
    }
    if (inside && git_config_word_at(p, eol, key)) {
      p += strlen(key);
      while (p < eol && (*p == ' ' || *p == '\t')) p++;
      if (p < eol && *p == '=') {
        git_config_put_value(p + 1, end, value);
        found = true;
      }
    }
    p = eol + 1;
  }
  return found;
}

bool git_config_excludes_file(lode_str config, strbuf *value) {
  return git_config_find_value(config, "[core]", "excludesfile", value);
}

static void git_put_home(strbuf *out, const char *rest) {
  const char *home = getenv("HOME");
  out->len = 0;
  if (home && *home) git_set_path(out, home, strlen(home), rest);
}

static void git_put_config_home(strbuf *out, const char *rest) {
  const char *xdg = getenv("XDG_CONFIG_HOME");
  out->len = 0;
  if (xdg && *xdg) {
    git_set_path(out, xdg, strlen(xdg), rest);
    return;
  }
  const char *home = getenv("HOME");
  if (!home || !*home) return;
  strbuf base = {0};
  git_set_path(&base, home, strlen(home), ".config");
  if (!base.failed) git_set_path(out, base.data, base.len, rest);
  strbuf_release(&base);
}

/* Path of the user's excludes file. Configuration files are read from the least to the most specific; the last one that
 * sets it wins. */
static void git_locate_excludes(const char *git, strbuf *path) {
  strbuf file = {0}, text = {0}, value = {0};
  bool said = false;
  for (int i = 0; i < 4; i++) {
    if (i == 0)
      git_set_path(&file, "", 0, "/etc/gitconfig");
    else if (i == 1)
      git_put_config_home(&file, "git/config");
    else if (i == 2)
      git_put_home(&file, ".gitconfig");
    else if (*git)
      git_set_path(&file, git, strlen(git), "config");
    else
      file.len = 0;
    if (file.failed || file.len == 0 || !git_read_small(file.data, 1u << 20, &text)) continue;
    if (!git_config_excludes_file((lode_str){text.data, text.len}, &value)) continue;
    said = true;
    strbuf_addch(&value, '\0');
    if (value.failed) break;
    if (value.data[0] == '~' && value.data[1] == '/')
      git_put_home(path, value.data + 2);
    else
      git_set_path(path, "", 0, value.data);
  }
  if (!said) git_put_config_home(path, "git/ignore");
  strbuf_release(&file);
  strbuf_release(&text);
  strbuf_release(&value);
}

/* ---- Where a repository keeps its index ---- */

static bool git_path_exists(const char *path) {
  struct stat st;
  return os_api->lstat_at(AT_FDCWD, path, &st) == 0;
}

static bool git_uses_sha256(const char *common) {
  strbuf path = {0}, text = {0}, value = {0};
  git_set_path(&path, common, strlen(common), "config");
  bool said = !path.failed && git_read_small(path.data, 1u << 20, &text) &&
              git_config_find_value((lode_str){text.data, text.len}, "[extensions]", "objectformat", &value);
  bool is = said && value.len == 6 && strncasecmp(value.data, "sha256", 6) == 0;
  strbuf_release(&path);
  strbuf_release(&text);
  strbuf_release(&value);
  return is;
}

git_repo_found git_repo_find(const char *path, size_t len, git_repo *repo) {
  strbuf common = {0};
  git_repo_found found = GIT_REPO_NONE;
  while (found == GIT_REPO_NONE) {
    git_set_path(&common, path, len, ".git");
    if (common.failed || git_is_foreign(common.data)) break;
    if (git_path_is_dir(common.data)) {
      git_set_path(&repo->own, "", 0, common.data);
      found = GIT_REPO_FOUND;
    } else if (git_path_exists(common.data)) {
      found = git_follow_gitdir(path, len, &common, &repo->own) ? GIT_REPO_FOUND : GIT_REPO_BROKEN;
    }
    repo->top = len;
    if (len <= 1) break;
    while (len > 0 && path[len - 1] != '/') len--;
    if (len > 1) len--;
  }
  if (common.failed || repo->own.failed) found = GIT_REPO_BROKEN;
  if (found == GIT_REPO_FOUND) repo->sha256 = git_uses_sha256(common.data);
  strbuf_release(&common);
  return found;
}

void git_repo_release(git_repo *repo) { strbuf_release(&repo->own); }

lode_status git_add_excludes(ignore_rules *ignore, const char *git, lode_error *err) {
  lode_status st = LODE_OK;
  strbuf path = {0}, text = {0};
  git_locate_excludes(git, &path);
  if (path.len && !path.failed && git_read_small(path.data, IGNORE_MAX_FILE_BYTES, &text))
    TRY_GOTO(ignore_add(ignore, IGNORE_GLOBAL, STR_LIT(""), (lode_str){text.data, text.len}, err));
  if (*git) {
    git_set_path(&path, git, strlen(git), "info/exclude");
    if (!path.failed && git_read_small(path.data, IGNORE_MAX_FILE_BYTES, &text))
      TRY_GOTO(ignore_add(ignore, IGNORE_EXCLUDE, STR_LIT(""), (lode_str){text.data, text.len}, err));
  }
  if (path.failed || text.failed) st = err_nomem(err);
done:
  strbuf_release(&path);
  strbuf_release(&text);
  return st;
}
