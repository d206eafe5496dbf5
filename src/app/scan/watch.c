/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - see watch.h. */
#include "scan/watch.h"

#include "os/os.h"
#include "platform/dirwatch.h"
#include "scan/files.h"

enum { WATCH_MAX_PENDING = 20000, WATCH_MAX_DEBOUNCES = 10 };

typedef struct watch_dir {
  char *path; /* from the root; NULL: unused */
} watch_dir;

typedef struct watch_pending { /* a path that changed */
  char *path;
  uint64_t first_ms, last_ms;
} watch_pending;

struct watch_monitor {
  const scan_root *root;
  uint32_t debounce_ms;
  os_dirwatch *system;
  watch_dir *folders; /* by their numbers in `system` */
  size_t n_folders, cap_folders, live;
  watch_pending *due;
  size_t n, cap;
  bool everything, incomplete;
  lode_str *given; /* paths returned by the last watch_wait() */
  size_t n_given, cap_given;
};

static uint64_t watch_now_ms(void) { return os_api->now_ns() / 1000000; }

/* ---- Folders ---- */

static lode_status watch_add_dir(watch_monitor *w, const char *path, lode_error *err) {
  strbuf full = {0};
  lode_status st = LODE_OK;
  TRY_GOTO(files_join(&full, scan_root_path(w->root), path, err));
  int wd = os_dirwatch_add(w->system, full.data);
  if (wd < 0) {
    /* Gone again, or not a folder: harmless. Out of watches: the caller must scan the tree now and then. */
    if (errno == ENOSPC || errno == ENOMEM) w->incomplete = true;
    goto done;
  }
  size_t need = (size_t)wd + 1;
  if (!mem_grow(&w->folders, &w->cap_folders, need, sizeof *w->folders)) TRY_GOTO(err_nomem(err));
  for (; w->n_folders < need; w->n_folders++) w->folders[w->n_folders].path = NULL;
  char *copy = str_dup(path, strlen(path));
  if (!copy) TRY_GOTO(err_nomem(err));
  if (!w->folders[wd].path) w->live++;
  mem_free(w->folders[wd].path);
  w->folders[wd].path = copy;
done:
  strbuf_release(&full);
  return st;
}

/* Watches every folder at or below `path` that a walk would enter, including empty ones. */
static lode_status watch_add_tree(watch_monitor *w, const char *path, lode_error *err) {
  strbuf stack = {0}, full = {0}, child = {0};
  lode_status st = LODE_OK;
  strbuf_addstr(&stack, path);
  strbuf_addch(&stack, '\0');
  while (stack.len && st == LODE_OK) {
    /* pop the last path */
    size_t start = stack.len - 1;
    while (start && stack.data[start - 1]) start--;
    char *here = str_dup(stack.data + start, strlen(stack.data + start));
    stack.len = start;
    if (!here) TRY_GOTO(err_nomem(err));
    st = watch_add_dir(w, here, err);
    if (st == LODE_OK) st = files_join(&full, scan_root_path(w->root), here, err);
    os_dir *names = st == LODE_OK ? os_dir_open(full.data) : NULL;
    const char *name;
    while (names && st == LODE_OK && (name = os_dir_next(names)) != NULL) {
      scan_entry entry;
      struct stat info;
      child.len = 0;
      if (*here) strbuf_addf(&child, "%s/", here);
      strbuf_addstr(&child, name);
      strbuf_addch(&child, '\0');
      if (child.failed) {
        st = err_nomem(err);
        break;
      }
      st = files_join(&full, scan_root_path(w->root), child.data, err);
      if (st != LODE_OK || os_api->lstat_at(AT_FDCWD, full.data, &info) < 0 || !S_ISDIR(info.st_mode)) continue;
      lode_status classified = scan_root_classify(w->root, (lode_str){child.data, child.len - 1}, &entry, err);
      if (classified == LODE_NOMEM) st = classified;
      if (classified == LODE_OK && entry.skip == SCAN_SKIP_NONE) strbuf_add(&stack, child.data, child.len);
    }
    os_dir_close(names);
    mem_free(here);
    if (stack.failed && st == LODE_OK) st = err_nomem(err);
  }
done:
  strbuf_release(&stack);
  strbuf_release(&full);
  strbuf_release(&child);
  if (st == LODE_OK) err_clear(err);
  return st;
}

/* ---- Events ---- */

static lode_status watch_path_changed(watch_monitor *w, const char *path, lode_error *err) {
  uint64_t now = watch_now_ms();
  for (size_t i = 0; i < w->n; i++)
    if (strcmp(w->due[i].path, path) == 0) {
      w->due[i].last_ms = now;
      return LODE_OK;
    }
  if (w->n >= WATCH_MAX_PENDING) {
    w->everything = true;
    return LODE_OK;
  }
  char *copy = str_dup(path, strlen(path));
  if (!copy || !mem_grow(&w->due, &w->cap, w->n + 1, sizeof *w->due)) {
    mem_free(copy);
    return err_nomem(err);
  }
  w->due[w->n++] = (watch_pending){copy, now, now};
  return LODE_OK;
}

static bool watch_is_rules_file(const char *name) {
  return strcmp(name, ".gitignore") == 0 || strcmp(name, ".lodeignore") == 0;
}

static lode_status watch_on_event(watch_monitor *w, const os_dirwatch_event *e, lode_error *err) {
  strbuf path = {0};
  lode_status st = LODE_OK;
  if (e->what & OS_DIRWATCH_LOST) {
    w->everything = true;
    return LODE_OK;
  }
  if (e->dir < 0 || (size_t)e->dir >= w->n_folders || !w->folders[e->dir].path) return LODE_OK;
  watch_dir *f = &w->folders[e->dir];
  if (e->what & OS_DIRWATCH_END) {
    mem_free(f->path);
    f->path = NULL;
    w->live--;
    return LODE_OK;
  }
  if (!e->name[0]) return LODE_OK;
  if (!*f->path && strcmp(e->name, ".lode") == 0) return LODE_OK;
  if (*f->path) strbuf_addf(&path, "%s/", f->path);
  strbuf_addstr(&path, e->name);
  strbuf_addch(&path, '\0');
  if (path.failed) TRY_GOTO(err_nomem(err));
  /* a change of rules affects everything below */
  if (watch_is_rules_file(e->name)) {
    TRY_GOTO(watch_path_changed(w, f->path, err));
    goto done;
  }
  if (e->what & OS_DIRWATCH_DIR) {
    scan_entry entry;
    if (e->what & OS_DIRWATCH_ATTRIB) goto done;
    st = scan_root_classify(w->root, (lode_str){path.data, path.len - 1}, &entry, err);
    if (st == LODE_NOMEM) goto done;
    bool enter = st == LODE_OK && entry.skip == SCAN_SKIP_NONE;
    bool gone = st != LODE_OK;
    st = LODE_OK;
    err_clear(err);
    if (enter && (e->what & OS_DIRWATCH_NEW)) TRY_GOTO(watch_add_tree(w, path.data, err));
    if (!enter && !gone) goto done;
  }
  TRY_GOTO(watch_path_changed(w, path.data, err));
done:
  strbuf_release(&path);
  return st;
}

static lode_status watch_read_events(watch_monitor *w, lode_error *err) {
  os_dirwatch_event e;
  int got;
  while ((got = os_dirwatch_next(w->system, &e)) > 0) TRY(watch_on_event(w, &e, err));
  return got < 0 ? err_errno(err, errno, "watching folders") : LODE_OK;
}

/* ---- Opening and closing ---- */

lode_status watch_open(const scan_root *root, uint32_t debounce_ms, watch_monitor **out, lode_error *err) {
  watch_monitor *w = mem_calloc(1, sizeof *w);
  lode_status st;
  *out = NULL;
  if (!w) return err_nomem(err);
  w->root = root;
  w->debounce_ms = debounce_ms;
  w->system = os_dirwatch_open();
  if (!w->system && errno == ENOMEM) TRY_GOTO(err_nomem(err));
  if (!w->system)
    TRY_GOTO(err_set(err, LODE_LIMIT, "the kernel gives no watch (%.80s): raise fs.inotify.max_user_instances",
                     strerror(errno)));
  TRY_GOTO(watch_add_tree(w, "", err));
  *out = w;
done:
  if (st != LODE_OK) watch_close(w);
  return st;
}

static void watch_forget_given(watch_monitor *w) {
  for (size_t i = 0; i < w->n_given; i++) mem_free((char *)(uintptr_t)w->given[i].data);
  w->n_given = 0;
}

void watch_close(watch_monitor *w) {
  if (!w) return;
  watch_forget_given(w);
  for (size_t i = 0; i < w->n; i++) mem_free(w->due[i].path);
  for (size_t i = 0; i < w->n_folders; i++) mem_free(w->folders[i].path);
  mem_free(w->due);
  mem_free(w->given);
  mem_free(w->folders);
  os_dirwatch_close(w->system);
  mem_free(w);
}

size_t watch_dir_count(const watch_monitor *w, bool *incomplete) {
  *incomplete = w->incomplete;
  return w->live;
}

/* ---- Waiting ---- */

/* Moves paths that were quiet long enough to w->given; *next is when the next one is due. */
static lode_status watch_take_due(watch_monitor *w, uint64_t *next, lode_error *err) {
  uint64_t now = watch_now_ms();
  *next = UINT64_MAX;
  for (size_t i = 0; i < w->n;) {
    watch_pending *d = &w->due[i];
    uint64_t at = d->last_ms + w->debounce_ms, latest = d->first_ms + (uint64_t)w->debounce_ms * WATCH_MAX_DEBOUNCES;
    if (at > latest) at = latest;
    if (at > now) {
      if (at < *next) *next = at;
      i++;
      continue;
    }
    if (!mem_grow(&w->given, &w->cap_given, w->n_given + 1, sizeof *w->given)) return err_nomem(err);
    w->given[w->n_given++] = (lode_str){d->path, strlen(d->path)};
    w->due[i] = w->due[--w->n];
  }
  return LODE_OK;
}

bool watch_has_changes(const watch_monitor *w) { return w->n || w->everything || os_dirwatch_wait(w->system, 0) > 0; }

lode_status watch_wait(watch_monitor *w, uint32_t wait_ms, watch_changes *changes, lode_error *err) {
  uint64_t until = watch_now_ms() + wait_ms, next;
  memset(changes, 0, sizeof *changes);
  watch_forget_given(w);
  for (;;) {
    TRY(watch_read_events(w, err));
    TRY(watch_take_due(w, &next, err));
    uint64_t now = watch_now_ms();
    if (w->n_given || w->everything || now >= until) break;
    uint64_t wake = next < until ? next : until;
    if (os_dirwatch_wait(w->system, (int)(wake - now)) < 0 && errno == EINTR)
      break; /* a signal: return to the caller */
  }
  if (!files_is_dir(scan_root_path(w->root)))
    return err_set(err, LODE_GONE, "%.400s was removed", scan_root_path(w->root));
  changes->everything = w->everything;
  w->everything = false;
  changes->paths = w->given;
  changes->n = w->n_given;
  return LODE_OK;
}
