/* SPDX-License-Identifier: Apache-2.0 */
/* store_files.c - see store_files.h. */
#include "os/store_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define SEGMENTS_PREFIX STOREFILE_SEGMENTS_DIR "/"

/* @: 16 hexadecimal digits, %: one or more, #: one or more decimal ones. The order is that of removal. The journal goes
 * before the database: the database opens without one (the caller has made sure that it is empty), while a new database
 * must not find an old journal. The lock file goes before the database, because a lock file without a database means
 * that the database was lost. */
static const struct {
  const char *pattern;
  unsigned kind;
} storefile_table[] = {
    {SEGMENTS_PREFIX "@.seg", STOREFILE_DATA},
    {SEGMENTS_PREFIX "@.tmp", STOREFILE_DATA},
    {SEGMENTS_PREFIX "@.seg" STOREFILE_QUARANTINE_INFIX "#", STOREFILE_DATA},
    {STOREFILE_JOURNAL STOREFILE_QUARANTINE_INFIX "#", STOREFILE_DATA},
    {STOREFILE_NEW_JOURNAL, STOREFILE_DATA},
    {STOREFILE_NEW, STOREFILE_DATA},
    {STOREFILE_RESTORE, STOREFILE_DATA},
    {STOREFILE_PAGES_NEW, STOREFILE_DATA},
    {STOREFILE_PAGES, STOREFILE_DATA},
    {STOREFILE_MAP, STOREFILE_DATA},
    {STOREFILE_MAP ".%.tmp", STOREFILE_DATA},
    {STOREFILE_JOURNAL, STOREFILE_DATA},
    {STOREFILE_LOCK, STOREFILE_DATA},
    {STOREFILE_DB, STOREFILE_DATA},
    {STOREFILE_CONFIG, STOREFILE_PROJECT},
    {STOREFILE_CONFIG ".%.tmp", STOREFILE_PROJECT},
    {".gitignore", STOREFILE_PROJECT},
    {".gitignore.%.tmp", STOREFILE_PROJECT},
    {STOREFILE_WATCH_LOCK, STOREFILE_PROJECT},
    {STOREFILE_INDEX_LOCK, STOREFILE_PROJECT},
    {STOREFILE_IN_USE, STOREFILE_PRIVATE}, /* last: while it exists, others can see that the directory is in use */
};
enum { STOREFILE_TABLE_ROWS = sizeof storefile_table / sizeof *storefile_table };

/* ---- Names ---- */

static bool storefile_matches(const char *pattern, const char *name) {
  static const char hex[] = "0123456789abcdef", decimal[] = "0123456789";
  for (; *pattern; pattern++) {
    size_t n = 1;
    if (*pattern == '@')
      n = strspn(name, hex) == 16 ? 16 : 0;
    else if (*pattern == '%')
      n = strspn(name, hex);
    else if (*pattern == '#')
      n = strspn(name, decimal);
    else if (*pattern != *name)
      n = 0;
    if (n == 0) return false;
    name += n;
  }
  return *name == '\0';
}

static size_t storefile_row_of(const char *name) {
  size_t i = 0;
  while (i < STOREFILE_TABLE_ROWS && !storefile_matches(storefile_table[i].pattern, name)) i++;
  return i;
}

unsigned storefile_kind_of(const char *name) {
  size_t row = storefile_row_of(name);
  return row < STOREFILE_TABLE_ROWS ? storefile_table[row].kind : 0;
}

bool storefile_is_set_aside(const char *name) {
  return strstr(name, STOREFILE_QUARANTINE_INFIX) && storefile_kind_of(name);
}

bool storefile_parse_segment(const char *name, uint64_t *id, const char **ending) {
  if (!storefile_matches("@.seg", name) && !storefile_matches("@.tmp", name)) return false;
  *id = strtoull(name, NULL, 16);
  *ending = name + 16;
  return true;
}

/* ---- Removing and moving ---- */

typedef struct storefile_entry {
  size_t row;
  char name[];
} storefile_entry;

typedef struct storefile_clearing {
  const char *dir;
  unsigned kinds;
  int to; /* -1: remove the files */
  strbuf *foreign;
  storefile_entry **list;
  size_t n, cap;
} storefile_clearing;

static lode_status storefile_note_foreign(storefile_clearing *c, const char *within, const char *name,
                                          lode_error *err) {
  if (!c->foreign) return LODE_OK;
  if (c->foreign->len) strbuf_addstr(c->foreign, ", ");
  strbuf_addf(c->foreign, "%s%s", within, name);
  return c->foreign->failed ? err_nomem(err) : LODE_OK;
}

static lode_status storefile_add_entry(storefile_clearing *c, size_t row, const char *within, const char *name,
                                       lode_error *err) {
  size_t a = strlen(within), b = strlen(name);
  storefile_entry *e = mem_grow(&c->list, &c->cap, c->n + 1, sizeof *c->list) ? mem_alloc(sizeof *e + a + b + 1) : NULL;
  if (!e) return err_nomem(err);
  e->row = row;
  memcpy(e->name, within, a);
  memcpy(e->name + a, name, b + 1);
  c->list[c->n++] = e;
  return LODE_OK;
}

/* Lists the directory, or its segments directory: our files are added to the list, the others are foreign. */
static lode_status storefile_list_dir(storefile_clearing *c, const char *within, lode_error *err) {
  strbuf path = {0};
  struct stat st;
  const char *name;
  os_kind kind;
  int errnum = 0;
  lode_status status = LODE_OK;
  os_dir *names = beneath_list(c->dir, *within ? STOREFILE_SEGMENTS_DIR : ".");
  if (!names) return err_errno(err, errno, c->dir);
  while (status == LODE_OK && (name = os_dir_next_kind(names, &kind, &errnum)) != NULL) {
    path.len = 0;
    strbuf_addf(&path, "%s%s", within, name);
    strbuf_addch(&path, '\0');
    if (path.failed) {
      status = err_nomem(err);
      break;
    }
    if (OS_RETRY(os_api->lstat_at(os_dir_fd(names), name, &st)) != 0) {
      if (errno != ENOENT) status = err_errno(err, errno, path.data);
      continue; /* removed in the meantime */
    }
    size_t row = storefile_row_of(path.data);
    if (!*within && strcmp(name, STOREFILE_SEGMENTS_DIR) == 0 && S_ISDIR(st.st_mode))
      status = storefile_list_dir(c, SEGMENTS_PREFIX, err);
    else if (row == STOREFILE_TABLE_ROWS || !S_ISREG(st.st_mode))
      status = storefile_note_foreign(c, within, name, err);
    else if (storefile_table[row].kind & c->kinds)
      status = storefile_add_entry(c, row, within, name, err);
  }
  if (errnum) status = err_errno(err, errnum, c->dir); /* what was not seen may be somebody else's */
  os_dir_close(names);
  strbuf_release(&path);
  return status;
}

/* ---- Making ---- */

int storefile_create(const char *dir, const char *name) {
  struct stat db, made;
  unsigned mode = beneath_lstat(dir, STOREFILE_DB, &db) == 0 ? db.st_mode & 0777 : 0600;
  int fd = beneath_open(dir, name, O_RDWR | O_CREAT | O_EXCL, mode);
  if (fd >= 0 && OS_RETRY(os_api->fstat(fd, &made)) == 0) os_set_mode(fd, &made, mode);
  return fd;
}

int storefile_open_or_create(const char *dir, const char *name) {
  int fd = beneath_open(dir, name, O_RDWR, 0);
  if (fd < 0 && errno == ENOENT) fd = storefile_create(dir, name);
  if (fd < 0 && errno == EEXIST) fd = beneath_open(dir, name, O_RDWR, 0); /* somebody else has made it */
  return fd;
}

lode_status storefile_make_segments_dir(const char *dir, lode_error *err) {
  struct stat own, made;
  if (OS_RETRY(os_api->stat(dir, &own)) != 0) return err_errno(err, errno, dir);
  if (beneath_mkdir(dir, STOREFILE_SEGMENTS_DIR, own.st_mode & 0777) != 0)
    return errno == EEXIST ? LODE_OK : err_errno(err, errno, STOREFILE_SEGMENTS_DIR);
  os_dir *segments = beneath_list(dir, STOREFILE_SEGMENTS_DIR);
  if (segments && OS_RETRY(os_api->fstat(os_dir_fd(segments), &made)) == 0)
    os_set_mode(os_dir_fd(segments), &made, own.st_mode & 0777);
  if (segments) os_dir_close(segments);
  return beneath_sync_dir(dir, STOREFILE_SEGMENTS_DIR, err);
}

/* ---- Removing ---- */

static int storefile_by_row(const void *a, const void *b) {
  size_t x = (*(storefile_entry *const *)a)->row, y = (*(storefile_entry *const *)b)->row;
  return x < y ? -1 : x > y;
}

static int storefile_clear_one(const storefile_clearing *c, int from, const char *name) {
  return c->to < 0 ? OS_RETRY(os_api->unlink_at(from, name)) : OS_RETRY(os_api->rename_at(from, name, c->to, name));
}

/* For a file in the segments directory; the target's segments directory is created if needed. */
static int storefile_clear_segment(const storefile_clearing *c, int dir, const char *name) {
  int from = OS_RETRY(os_api->open_below(dir, STOREFILE_SEGMENTS_DIR, OS_OPEN_DIR, 0)), rc = -1;
  storefile_clearing target = *c;
  if (from < 0) return -1;
  if (c->to >= 0) {
    (void)OS_RETRY(os_api->mkdir_at(c->to, STOREFILE_SEGMENTS_DIR, 0700));
    target.to = OS_RETRY(os_api->open_below(c->to, STOREFILE_SEGMENTS_DIR, OS_OPEN_DIR, 0));
  }
  if (c->to < 0 || target.to >= 0) rc = storefile_clear_one(&target, from, name);
  int errnum = errno;
  (void)os_api->close(from);
  if (target.to >= 0) (void)os_api->close(target.to);
  errno = errnum;
  return rc;
}

static lode_status storefile_clear_all(const storefile_clearing *c, int dir, lode_error *err) {
  const size_t within = sizeof SEGMENTS_PREFIX - 1;
  for (size_t i = 0; i < c->n; i++) {
    const char *name = c->list[i]->name;
    int rc = strncmp(name, SEGMENTS_PREFIX, within) == 0 ? storefile_clear_segment(c, dir, name + within)
                                                         : storefile_clear_one(c, dir, name);
    if (rc < 0 && errno != ENOENT) {
      int errnum = errno;
      strbuf path = {0};
      strbuf_addf(&path, "%s/%s", c->dir, name);
      strbuf_addch(&path, '\0');
      lode_status st = err_errno(err, errnum, path.failed ? name : path.data);
      strbuf_release(&path);
      return st;
    }
  }
  /* fails if it has foreign files in it, or is a link: then it stays */
  if (c->kinds & STOREFILE_DATA) (void)OS_RETRY(os_api->rmdir_at(dir, STOREFILE_SEGMENTS_DIR));
  return LODE_OK;
}

lode_status storefile_clear(const char *dir, unsigned kinds, const char *to, strbuf *foreign, lode_error *err) {
  storefile_clearing c = {.dir = dir, .kinds = kinds, .to = -1, .foreign = foreign};
  lode_status st;
  int fd = beneath_open_dir(dir);
  if (fd < 0) return err_errno(err, errno, dir);
  if (to) {
    c.to = beneath_open_dir(to);
    if (c.to < 0) TRY_GOTO(err_errno(err, errno, to));
  }
  TRY_GOTO(storefile_list_dir(&c, "", err));
  if (c.n) qsort(c.list, c.n, sizeof *c.list, storefile_by_row);
  TRY_GOTO(storefile_clear_all(&c, fd, err));
done:
  for (size_t i = 0; i < c.n; i++) mem_free(c.list[i]);
  mem_free(c.list);
  if (c.to >= 0) (void)os_api->close(c.to);
  (void)os_api->close(fd);
  return st;
}
