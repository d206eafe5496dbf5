/* watch.c - see watch.h. */
#include "watch.h"

#include "base/os.h"
#include "code/fs.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { EVENT_BYTES = 64 * 1024, MOST_WAITING = 20000, PATIENCE = 10 };
#define EVENTS (IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK)

typedef struct folder {
  char *path;        /* from the root; NULL: not in use */
} folder;

typedef struct waiting { /* a path that changed */
  char *path;
  uint64_t first_ms, last_ms;
} waiting;

struct lode__watch {
  const lode__root *root;
  uint32_t debounce_ms;
  int fd;
  folder *folders;   /* by watch descriptor */
  size_t n_folders, cap_folders, live;
  waiting *due;
  size_t n, cap;
  bool everything, incomplete;
  lode_str *given;   /* the answer of the last call */
  size_t n_given, cap_given;
  char *events;
};

static uint64_t now_ms(void) { return os_api->now_ns() / 1000000; }

/* ---- Folders ---- */

static lode_status watch_folder(lode__watch *w, const char *path, lode_error *err) {
  strbuf full = {0};
  lode_status st = LODE_OK;
  TRY_GOTO(lode__fs_join(&full, lode__root_path(w->root), path, err));
  int wd = inotify_add_watch(w->fd, full.data, EVENTS);
  if (wd < 0) {
    /* Gone again, or no folder: no matter. No more watches: the tree is looked at from time to time */
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

/* Every folder at or below `path` that the walk would enter. The walk gives files: a folder is known by what is in it, and an empty one
 * by its own event. */
static lode_status watch_tree(lode__watch *w, const char *path, lode_error *err) {
  strbuf stack = {0}, full = {0}, child = {0};
  lode_status st = LODE_OK;
  strbuf_addstr(&stack, path);
  strbuf_addch(&stack, '\0');
  while (stack.len && st == LODE_OK) {
    /* The last path of the stack */
    size_t start = stack.len - 1;
    while (start && stack.data[start - 1]) start--;
    char *here = str_dup(stack.data + start, strlen(stack.data + start));
    stack.len = start;
    if (!here) TRY_GOTO(err_nomem(err));
    st = watch_folder(w, here, err);
    if (st == LODE_OK) st = lode__fs_join(&full, lode__root_path(w->root), here, err);
    os_dir *names = st == LODE_OK ? os_dir_open(full.data) : NULL;
    const char *name;
    while (names && st == LODE_OK && (name = os_dir_next(names)) != NULL) {
      lode__entry entry;
      struct stat info;
      child.len = 0;
      if (*here) strbuf_addf(&child, "%s/", here);
      strbuf_addstr(&child, name);
      strbuf_addch(&child, '\0');
      if (child.failed) {
        st = err_nomem(err);
        break;
      }
      st = lode__fs_join(&full, lode__root_path(w->root), child.data, err);
      if (st != LODE_OK || lstat(full.data, &info) < 0 || !S_ISDIR(info.st_mode)) continue;
      lode_status judged = lode__root_judge(w->root, (lode_str){child.data, child.len - 1}, &entry, err);
      if (judged == LODE_NOMEM) st = judged;
      if (judged == LODE_OK && entry.skip == LODE__SKIP_NONE) strbuf_add(&stack, child.data, child.len);
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

static lode_status changed(lode__watch *w, const char *path, lode_error *err) {
  uint64_t now = now_ms();
  for (size_t i = 0; i < w->n; i++)
    if (strcmp(w->due[i].path, path) == 0) {
      w->due[i].last_ms = now;
      return LODE_OK;
    }
  if (w->n >= MOST_WAITING) {
    w->everything = true;
    return LODE_OK;
  }
  char *copy = str_dup(path, strlen(path));
  if (!copy || !mem_grow(&w->due, &w->cap, w->n + 1, sizeof *w->due)) {
    mem_free(copy);
    return err_nomem(err);
  }
  w->due[w->n++] = (waiting){copy, now, now};
  return LODE_OK;
}

static bool is_rules(const char *name) { return strcmp(name, ".gitignore") == 0 || strcmp(name, ".lodeignore") == 0; }

static lode_status on_event(lode__watch *w, const struct inotify_event *e, lode_error *err) {
  strbuf path = {0};
  lode_status st = LODE_OK;
  if (e->mask & IN_Q_OVERFLOW) {
    w->everything = true;
    return LODE_OK;
  }
  if (e->wd < 0 || (size_t)e->wd >= w->n_folders || !w->folders[e->wd].path) return LODE_OK;
  folder *f = &w->folders[e->wd];
  if (e->mask & IN_IGNORED) {
    mem_free(f->path);
    f->path = NULL;
    w->live--;
    return LODE_OK;
  }
  if (!e->len || !e->name[0]) return LODE_OK;
  if (!*f->path && strcmp(e->name, ".lode") == 0) return LODE_OK;
  if (*f->path) strbuf_addf(&path, "%s/", f->path);
  strbuf_addstr(&path, e->name);
  strbuf_addch(&path, '\0');
  if (path.failed) TRY_GOTO(err_nomem(err));
  /* Other rules may let files in and out anywhere below */
  if (is_rules(e->name)) {
    TRY_GOTO(changed(w, f->path, err));
    goto done;
  }
  if (e->mask & IN_ISDIR) {
    lode__entry entry;
    if (e->mask & IN_ATTRIB) goto done;
    st = lode__root_judge(w->root, (lode_str){path.data, path.len - 1}, &entry, err);
    if (st == LODE_NOMEM) goto done;
    bool enter = st == LODE_OK && entry.skip == LODE__SKIP_NONE;
    bool gone = st != LODE_OK;
    st = LODE_OK;
    err_clear(err);
    if (enter && (e->mask & (IN_CREATE | IN_MOVED_TO))) TRY_GOTO(watch_tree(w, path.data, err));
    if (!enter && !gone) goto done;
  }
  TRY_GOTO(changed(w, path.data, err));
done:
  strbuf_release(&path);
  return st;
}

static lode_status read_events(lode__watch *w, lode_error *err) {
  for (;;) {
    ssize_t n = read(w->fd, w->events, EVENT_BYTES);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 && errno != EAGAIN ? err_errno(err, errno, "inotify") : LODE_OK;
    for (size_t at = 0; at + sizeof(struct inotify_event) <= (size_t)n;) {
      const struct inotify_event *e = (const struct inotify_event *)(const void *)(w->events + at);
      at += sizeof *e + e->len;
      TRY(on_event(w, e, err));
    }
  }
}

/* ---- Life ---- */

lode_status lode__watch_open(const lode__root *root, uint32_t debounce_ms, lode__watch **out, lode_error *err) {
  lode__watch *w = mem_calloc(1, sizeof *w);
  lode_status st;
  *out = NULL;
  if (!w) return err_nomem(err);
  w->root = root;
  w->debounce_ms = debounce_ms;
  w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  w->events = mem_alloc_aligned(16, EVENT_BYTES);
  if (!w->events) TRY_GOTO(err_nomem(err));
  if (w->fd < 0)
    TRY_GOTO(err_set(err, LODE_LIMIT, "the kernel gives no watch (%.80s): raise fs.inotify.max_user_instances", strerror(errno)));
  TRY_GOTO(watch_tree(w, "", err));
  *out = w;
done:
  if (st != LODE_OK) lode__watch_close(w);
  return st;
}

static void forget_given(lode__watch *w) {
  for (size_t i = 0; i < w->n_given; i++) mem_free((char *)(uintptr_t)w->given[i].data);
  w->n_given = 0;
}

void lode__watch_close(lode__watch *w) {
  if (!w) return;
  forget_given(w);
  for (size_t i = 0; i < w->n; i++) mem_free(w->due[i].path);
  for (size_t i = 0; i < w->n_folders; i++) mem_free(w->folders[i].path);
  mem_free(w->due);
  mem_free(w->given);
  mem_free(w->folders);
  mem_free(w->events);
  if (w->fd >= 0) close(w->fd);
  mem_free(w);
}

size_t lode__watch_folders(const lode__watch *w, bool *incomplete) {
  *incomplete = w->incomplete;
  return w->live;
}

/* ---- Waiting ---- */

/* Takes out what was quiet long enough; *next is when the next one is due. */
static lode_status collect(lode__watch *w, uint64_t *next, lode_error *err) {
  uint64_t now = now_ms();
  *next = UINT64_MAX;
  for (size_t i = 0; i < w->n;) {
    waiting *d = &w->due[i];
    uint64_t at = d->last_ms + w->debounce_ms, latest = d->first_ms + (uint64_t)w->debounce_ms * PATIENCE;
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

bool lode__watch_has_news(const lode__watch *w) {
  struct pollfd fd = {.fd = w->fd, .events = POLLIN};
  return w->n || w->everything || poll(&fd, 1, 0) > 0;
}

lode_status lode__watch_wait(lode__watch *w, uint32_t wait_ms, lode__watch_changes *changes, lode_error *err) {
  uint64_t until = now_ms() + wait_ms, next;
  memset(changes, 0, sizeof *changes);
  forget_given(w);
  for (;;) {
    TRY(read_events(w, err));
    TRY(collect(w, &next, err));
    uint64_t now = now_ms();
    if (w->n_given || w->everything || now >= until) break;
    uint64_t wake = next < until ? next : until;
    struct pollfd fd = {.fd = w->fd, .events = POLLIN};
    if (poll(&fd, 1, (int)(wake - now)) < 0 && errno == EINTR) break; /* a signal: the caller looks */
  }
  if (!lode__fs_is_folder(lode__root_path(w->root)))
    return err_set(err, LODE_GONE, "%.400s was removed", lode__root_path(w->root));
  changes->everything = w->everything;
  w->everything = false;
  changes->paths = w->given;
  changes->n = w->n_given;
  return LODE_OK;
}
