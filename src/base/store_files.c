/* store_files.c - see store_files.h. */
#include "store_files.h"

#include <stdlib.h>

#define SEGMENTS LODE__SEGMENTS_FOLDER "/"

/* @: 16 hexadecimal digits, %: one or more, #: one or more decimal ones. The order is that of removal: the journal goes before the truth,
 * which opens without one (whoever removes has seen to it that it is empty), while a new truth must not meet an old journal;
 * and the lock file before the truth, because one without a truth says that the truth was lost. */
static const struct {
  const char *pattern;
  unsigned kind;
} table[] = {
    {SEGMENTS "@.seg", LODE__FILES_DATA},
    {SEGMENTS "@.tmp", LODE__FILES_DATA},
    {SEGMENTS "@.seg" LODE__ASIDE "#", LODE__FILES_DATA},
    {LODE__JOURNAL_FILE LODE__ASIDE "#", LODE__FILES_DATA},
    {LODE__NEW_JOURNAL_FILE, LODE__FILES_DATA},
    {LODE__NEW_FILE, LODE__FILES_DATA},
    {LODE__RESTORE_FILE, LODE__FILES_DATA},
    {LODE__JOURNAL_FILE, LODE__FILES_DATA},
    {LODE__LOCK_FILE, LODE__FILES_DATA},
    {LODE__TRUTH_FILE, LODE__FILES_DATA},
    {LODE__CONFIG_FILE, LODE__FILES_PROJECT},
    {LODE__CONFIG_FILE ".%.tmp", LODE__FILES_PROJECT},
    {".gitignore", LODE__FILES_PROJECT},
    {".gitignore.%.tmp", LODE__FILES_PROJECT},
    {LODE__WATCH_LOCK_FILE, LODE__FILES_PROJECT},
    {LODE__INDEX_LOCK_FILE, LODE__FILES_PROJECT},
    {LODE__IN_USE_FILE, LODE__FILES_PRIVATE}, /* last: as long as it is there, others can tell that the folder is in use */
};
enum { TABLE_ROWS = sizeof table / sizeof *table };

/* ---- Names ---- */

static bool matches(const char *pattern, const char *name) {
  static const char hex[] = "0123456789abcdef", decimal[] = "0123456789";
  for (; *pattern; pattern++) {
    size_t n = 1;
    if (*pattern == '@') n = strspn(name, hex) == 16 ? 16 : 0;
    else if (*pattern == '%') n = strspn(name, hex);
    else if (*pattern == '#') n = strspn(name, decimal);
    else if (*pattern != *name) n = 0;
    if (n == 0) return false;
    name += n;
  }
  return *name == '\0';
}

static size_t row_of(const char *name) {
  size_t i = 0;
  while (i < TABLE_ROWS && !matches(table[i].pattern, name)) i++;
  return i;
}

unsigned lode__store_files_kind(const char *name) {
  size_t row = row_of(name);
  return row < TABLE_ROWS ? table[row].kind : 0;
}

bool lode__store_files_is_aside(const char *name) { return strstr(name, LODE__ASIDE) && lode__store_files_kind(name); }

bool lode__store_files_segment(const char *name, uint64_t *id, const char **ending) {
  if (!matches("@.seg", name) && !matches("@.tmp", name)) return false;
  *id = strtoull(name, NULL, 16);
  *ending = name + 16;
  return true;
}

/* ---- Removing and moving ---- */

typedef struct entry {
  size_t row;
  char name[];
} entry;

typedef struct clearing {
  const char *folder;
  unsigned kinds;
  int to; /* -1: removed */
  lode__buf *foreign;
  entry **list;
  size_t n, cap;
} clearing;

static lode_status note_foreign(clearing *c, const char *within, const char *name, lode_error *err) {
  if (!c->foreign) return LODE_OK;
  if (c->foreign->len) lode__buf_adds(c->foreign, ", ");
  lode__buf_addf(c->foreign, "%s%s", within, name);
  return c->foreign->failed ? lode__fail_nomem(err) : LODE_OK;
}

static lode_status add_entry(clearing *c, size_t row, const char *within, const char *name, lode_error *err) {
  size_t a = strlen(within), b = strlen(name);
  entry *e = lode__grow(&c->list, &c->cap, c->n + 1, sizeof *c->list) ? lode__alloc(sizeof *e + a + b + 1) : NULL;
  if (!e) return lode__fail_nomem(err);
  e->row = row;
  memcpy(e->name, within, a);
  memcpy(e->name + a, name, b + 1);
  c->list[c->n++] = e;
  return LODE_OK;
}

/* What the folder holds, or the one of segments in it: ours to the list, the rest is foreign. */
static lode_status look_into(clearing *c, const char *within, lode_error *err) {
  lode__buf path = {0};
  struct stat st;
  const char *name;
  lode_status status = LODE_OK;
  lode__os_folder *names = lode__inside_list(c->folder, *within ? LODE__SEGMENTS_FOLDER : ".");
  if (!names) return lode__fail_errno(err, errno, c->folder);
  while (status == LODE_OK && (name = lode__os_folder_next(names)) != NULL) {
    path.len = 0;
    lode__buf_addf(&path, "%s%s", within, name);
    lode__buf_addc(&path, '\0');
    if (path.failed) {
      status = lode__fail_nomem(err);
      break;
    }
    if (LODE__RETRY(lode__os->lstat_at(lode__os_folder_fd(names), name, &st)) != 0) continue; /* gone meanwhile */
    size_t row = row_of(path.data);
    if (!*within && strcmp(name, LODE__SEGMENTS_FOLDER) == 0 && S_ISDIR(st.st_mode)) status = look_into(c, SEGMENTS, err);
    else if (row == TABLE_ROWS || !S_ISREG(st.st_mode)) status = note_foreign(c, within, name, err);
    else if (table[row].kind & c->kinds) status = add_entry(c, row, within, name, err);
  }
  lode__os_folder_close(names);
  lode__buf_release(&path);
  return status;
}

static int by_row(const void *a, const void *b) {
  size_t x = (*(entry *const *)a)->row, y = (*(entry *const *)b)->row;
  return x < y ? -1 : x > y;
}

static int put_away(const clearing *c, int from, const char *name) {
  return c->to < 0 ? LODE__RETRY(lode__os->unlink_at(from, name)) : LODE__RETRY(lode__os->rename_at(from, name, c->to, name));
}

/* From the folder of segments; the same one, in the target, is made when it is needed. */
static int put_segment_away(const clearing *c, int folder, const char *name) {
  int from = LODE__RETRY(lode__os->open_below(folder, LODE__SEGMENTS_FOLDER, LODE__OPEN_FOLDER, 0)), rc = -1;
  clearing there = *c;
  if (from < 0) return -1;
  if (c->to >= 0) {
    (void)LODE__RETRY(lode__os->mkdir_at(c->to, LODE__SEGMENTS_FOLDER, 0700));
    there.to = LODE__RETRY(lode__os->open_below(c->to, LODE__SEGMENTS_FOLDER, LODE__OPEN_FOLDER, 0));
  }
  if (c->to < 0 || there.to >= 0) rc = put_away(&there, from, name);
  int errnum = errno;
  (void)lode__os->close(from);
  if (there.to >= 0) (void)lode__os->close(there.to);
  errno = errnum;
  return rc;
}

static lode_status put_all_away(const clearing *c, int folder, lode_error *err) {
  const size_t within = sizeof SEGMENTS - 1;
  for (size_t i = 0; i < c->n; i++) {
    const char *name = c->list[i]->name;
    int rc = strncmp(name, SEGMENTS, within) == 0 ? put_segment_away(c, folder, name + within) : put_away(c, folder, name);
    if (rc < 0 && errno != ENOENT) {
      int errnum = errno;
      lode__buf path = {0};
      lode__buf_addf(&path, "%s/%s", c->folder, name);
      lode__buf_addc(&path, '\0');
      lode_status st = lode__fail_errno(err, errnum, path.failed ? name : path.data);
      lode__buf_release(&path);
      return st;
    }
  }
  /* fails when something foreign is in it, or when it is a link: then it stays */
  if (c->kinds & LODE__FILES_DATA) (void)LODE__RETRY(lode__os->rmdir_at(folder, LODE__SEGMENTS_FOLDER));
  return LODE_OK;
}

lode_status lode__store_files_clear(const char *folder, unsigned kinds, const char *to, lode__buf *foreign, lode_error *err) {
  clearing c = {.folder = folder, .kinds = kinds, .to = -1, .foreign = foreign};
  lode_status st;
  int fd = lode__inside_enter(folder);
  if (fd < 0) return lode__fail_errno(err, errno, folder);
  if (to) {
    c.to = lode__inside_enter(to);
    if (c.to < 0) LODE__GOTO(lode__fail_errno(err, errno, to));
  }
  LODE__GOTO(look_into(&c, "", err));
  if (c.n) qsort(c.list, c.n, sizeof *c.list, by_row);
  LODE__GOTO(put_all_away(&c, fd, err));
done:
  for (size_t i = 0; i < c.n; i++) lode__free(c.list[i]);
  lode__free(c.list);
  if (c.to >= 0) (void)lode__os->close(c.to);
  (void)lode__os->close(fd);
  return st;
}
