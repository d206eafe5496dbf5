/* SPDX-License-Identifier: Apache-2.0 */
/* dirwatch_poll.c - see dirwatch.h: for systems without inotify. All watched directories are listed once in a while and
 * compared with what they had before. The pause is twenty times as long as the last look took, at least half a second,
 * so that looking takes at most 5 % of a core. */
#include "platform/dirwatch.h"

#include "platform/platform_internal.h"

#if !OS_LINUX

#include <dirent.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIRWATCH_PAUSE_MS = 500, DIRWATCH_PAUSE_TIMES = 20, DIRWATCH_MAX_NAMES = 2000000 };

typedef struct watched_name {
  char *name;
  uint64_t ino;
  int64_t mtime_ns, ctime_ns, size;
  bool is_dir;
} watched_name;

typedef struct watched_dir {
  char *path; /* NULL: no longer watched */
  watched_name *names;
  size_t n;
} watched_dir;

typedef struct watch_news { /* an event that waits to be taken */
  int dir;
  char *name;
  unsigned what;
} watch_news;

struct os_dirwatch {
  watched_dir *dirs;
  size_t n_dirs, cap_dirs, total; /* total: names in all directories */
  watch_news *news;
  size_t n_news, cap_news, taken;
  uint64_t next_ns; /* when to look again */
};

/* ---- Memory ---- */

static bool dirwatch_grow(void *list, size_t *cap, size_t need, size_t size) {
  void *old, *now;
  if (need <= *cap) return true;
  size_t want = *cap ? *cap * 2 : 16;
  memcpy(&old, list, sizeof old);
  now = realloc(old, want * size);
  if (!now) return false;
  memcpy(list, &now, sizeof now);
  *cap = want;
  return true;
}

static void names_free(watched_name *names, size_t n) {
  for (size_t i = 0; i < n; i++) free(names[i].name);
  free(names);
}

static void dirwatch_report(os_dirwatch *w, size_t dir, const char *name, unsigned what) {
  char *copy = strdup(name);
  if (!copy || !dirwatch_grow(&w->news, &w->cap_news, w->n_news + 1, sizeof *w->news)) {
    free(copy);
    return; /* seen again when it changes again; the caller's own look at the tree finds it before */
  }
  w->news[w->n_news++] = (watch_news){(int)dir, copy, what};
}

/* ---- Looking ---- */

static int names_compare(const void *a, const void *b) {
  return strcmp(((const watched_name *)a)->name, ((const watched_name *)b)->name);
}

/* The names of a directory in order; false and errno. A name that goes away meanwhile is left out. */
static bool names_list(const char *path, watched_name **names, size_t *n) {
  size_t cap = 0;
  struct dirent *e;
  struct stat st;
  int fd = OS_RETRY(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  DIR *list = fd < 0 ? NULL : fdopendir(fd);
  *names = NULL;
  *n = 0;
  if (!list) {
    os_close_quietly(fd);
    return false;
  }
  while ((e = readdir(list)) != NULL) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    char *name = dirwatch_grow(names, &cap, *n + 1, sizeof **names) ? strdup(e->d_name) : NULL;
    if (!name) {
      closedir(list);
      names_free(*names, *n);
      errno = ENOMEM;
      return false;
    }
    (*names)[(*n)++] = (watched_name){
        name, (uint64_t)st.st_ino, os_mtime_ns(&st), os_ctime_ns(&st), (int64_t)st.st_size, S_ISDIR(st.st_mode) != 0};
  }
  closedir(list);
  if (*n) qsort(*names, *n, sizeof **names, names_compare);
  return true;
}

/* A directory's own times change with its names, which are watched themselves. */
static void names_report_change(os_dirwatch *w, size_t dir, const watched_name *was, const watched_name *now) {
  unsigned kind = now->is_dir ? OS_DIRWATCH_DIR : 0;
  if (was->is_dir != now->is_dir || was->ino != now->ino)
    dirwatch_report(w, dir, now->name, kind | OS_DIRWATCH_NEW);
  else if (now->is_dir)
    return;
  else if (was->mtime_ns != now->mtime_ns || was->size != now->size)
    dirwatch_report(w, dir, now->name, 0);
  else if (was->ctime_ns != now->ctime_ns)
    dirwatch_report(w, dir, now->name, OS_DIRWATCH_ATTRIB);
}

static void names_compare_lists(os_dirwatch *w, size_t dir, const watched_name *now, size_t n) {
  const watched_dir *d = &w->dirs[dir];
  size_t a = 0, b = 0;
  while (a < d->n || b < n) {
    int c = a == d->n ? 1 : b == n ? -1 : strcmp(d->names[a].name, now[b].name);
    if (c == 0) names_report_change(w, dir, &d->names[a++], &now[b++]);
    if (c < 0) dirwatch_report(w, dir, d->names[a].name, d->names[a].is_dir ? OS_DIRWATCH_DIR : 0), a++;
    if (c > 0) dirwatch_report(w, dir, now[b].name, OS_DIRWATCH_NEW | (now[b].is_dir ? OS_DIRWATCH_DIR : 0)), b++;
  }
}

static void dirwatch_look_at(os_dirwatch *w, size_t dir) {
  watched_dir *d = &w->dirs[dir];
  watched_name *now;
  size_t n;
  if (!d->path) return;
  bool listed = names_list(d->path, &now, &n);
  if (!listed && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) return; /* try again the next time */
  names_compare_lists(w, dir, now, n);
  names_free(d->names, d->n);
  w->total += n - d->n;
  d->names = now;
  d->n = n;
  if (listed) return;
  free(d->path);
  d->path = NULL;
  dirwatch_report(w, dir, "", OS_DIRWATCH_END);
}

static void dirwatch_look(os_dirwatch *w) {
  uint64_t start = os_api->now_ns();
  if (start < w->next_ns || w->taken < w->n_news) return;
  for (size_t i = 0; i < w->n_dirs; i++) dirwatch_look_at(w, i);
  uint64_t end = os_api->now_ns(), pause = (end - start) * DIRWATCH_PAUSE_TIMES;
  w->next_ns = end + (pause > DIRWATCH_PAUSE_MS * 1000000u ? pause : DIRWATCH_PAUSE_MS * 1000000u);
}

/* ---- The interface ---- */

os_dirwatch *os_dirwatch_open(void) { return calloc(1, sizeof(os_dirwatch)); }

static void dirwatch_forget_news(os_dirwatch *w) {
  for (size_t i = 0; i < w->n_news; i++) free(w->news[i].name);
  w->n_news = w->taken = 0;
}

void os_dirwatch_close(os_dirwatch *w) {
  if (!w) return;
  dirwatch_forget_news(w);
  for (size_t i = 0; i < w->n_dirs; i++) {
    names_free(w->dirs[i].names, w->dirs[i].n);
    free(w->dirs[i].path);
  }
  free(w->dirs);
  free(w->news);
  free(w);
}

int os_dirwatch_add(os_dirwatch *w, const char *path) {
  watched_dir d = {0};
  size_t at = 0;
  while (at < w->n_dirs && !(w->dirs[at].path && strcmp(w->dirs[at].path, path) == 0)) at++;
  if (at < w->n_dirs) return (int)at;
  if (!names_list(path, &d.names, &d.n)) return -1;
  d.path = strdup(path);
  bool fits = w->total + d.n <= DIRWATCH_MAX_NAMES;
  if (!d.path || !fits || !dirwatch_grow(&w->dirs, &w->cap_dirs, w->n_dirs + 1, sizeof *w->dirs)) {
    names_free(d.names, d.n);
    free(d.path);
    errno = fits ? ENOMEM : ENOSPC;
    return -1;
  }
  w->dirs[w->n_dirs] = d;
  w->total += d.n;
  return (int)w->n_dirs++;
}

int os_dirwatch_next(os_dirwatch *w, os_dirwatch_event *event) {
  if (w->taken == w->n_news) dirwatch_forget_news(w);
  dirwatch_look(w);
  if (w->taken == w->n_news) return 0;
  const watch_news *n = &w->news[w->taken++];
  *event = (os_dirwatch_event){.dir = n->dir, .name = n->name, .what = n->what};
  return 1;
}

int os_dirwatch_wait(os_dirwatch *w, int wait_ms) {
  uint64_t until = os_api->now_ns() + (uint64_t)(wait_ms < 0 ? 0 : wait_ms) * 1000000u;
  for (;;) {
    if (w->taken == w->n_news) dirwatch_forget_news(w);
    dirwatch_look(w);
    uint64_t now = os_api->now_ns(), wake = w->next_ns;
    if (w->n_news > w->taken) return 1;
    if (wait_ms >= 0 && now >= until) return 0;
    if (wait_ms >= 0 && wake > until) wake = until;
    if (wake > now && poll(NULL, 0, (int)((wake - now) / 1000000u) + 1) < 0) return -1;
  }
}

#endif
