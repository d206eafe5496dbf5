/* copy.c - the private copy: what a read-only handle reads when it meets an interrupted transaction.
 *
 * Undoing that transaction would mean writing to the store, which a reader must not do. So truth and journal are copied to a
 * temporary folder, where SQLite may roll back. The copy is dropped as soon as somebody has repaired the original.
 */
#include "db.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void lode__copy_drop(lode__db *db) {
  if (!db->copy_folder) return;
  static const char *const names[] = {LODE__TRUTH_FILE, LODE__TRUTH_FILE "-journal"};
  bool mine = db->copy_generation == lode__vfs_generation(); /* a forked child leaves its parent's alone */
  for (size_t i = 0; mine && i < 2; i++) {
    char *p = lode__path_join(db->copy_folder, names[i]);
    if (p) (void)LODE__RETRY(lode__os->unlink(p));
    lode__free(p);
  }
  if (mine) (void)LODE__RETRY(lode__os->rmdir(db->copy_folder));
  lode__free(db->copy_folder);
  db->copy_folder = NULL;
}

static lode_status copy_file(const char *from, const char *to, lode_error *err) {
  lode_status st = LODE_OK;
  size_t size = 1 << 20, got = 0;
  char *buf = lode__alloc(size);
  int in = LODE__RETRY(lode__os->open(from, O_RDONLY, 0)), out = -1;
  if (!buf) {
    st = lode__fail_nomem(err);
    goto done;
  }
  if (in >= 0) out = LODE__RETRY(lode__os->open(to, O_RDWR | O_CREAT | O_EXCL, 0600));
  if (in < 0 || out < 0) {
    st = lode__fail_errno(err, errno, in < 0 ? from : to);
    goto done;
  }
  for (uint64_t off = 0;; off += got) {
    LODE__GOTO(lode__os_read_full(in, buf, size, off, &got, err));
    if (got == 0) break;
    LODE__GOTO(lode__os_write_full(out, buf, got, off, err));
  }
done:
  if (in >= 0) (void)lode__os->close(in);
  if (out >= 0) (void)lode__os->close(out);
  lode__free(buf);
  return st;
}

static bool same_file(const struct stat *a, const struct stat *b) {
  return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
         a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Whoever repairs the original empties the journal, but may have begun to fill it again: so the truth file is asked too. */
bool lode__copy_is_stale(const lode__db *db, const struct stat *truth) {
  struct stat js;
  if (!same_file(&db->copy_of, truth)) return true;
  char *journal = lode__path_join(db->folder, LODE__TRUTH_FILE "-journal");
  bool stale = journal && (LODE__RETRY(lode__os->stat(journal, &js)) != 0 || js.st_size == 0);
  lode__free(journal);
  return stale;
}

/* Copies truth and journal; again if somebody changed them meanwhile. The copy is rolled back when it is opened. */
lode_status lode__copy_make(lode__db *db, lode_error *err) {
  lode_status st = LODE_OK;
  char *from[2] = {lode__path_join(db->folder, LODE__TRUTH_FILE), lode__path_join(db->folder, LODE__TRUTH_FILE "-journal")};
  const char *tmp = getenv("TMPDIR");
  char *folder = lode__path_join(tmp && *tmp ? tmp : "/tmp", "lode-copy-XXXXXX");
  if (!from[0] || !from[1] || !folder) {
    st = lode__fail_nomem(err);
    goto done;
  }
  for (int tries = 0;; tries++) {
    struct stat before[2], after[2];
    if (!mkdtemp(folder)) {
      st = lode__fail_errno(err, errno, folder);
      goto done;
    }
    db->copy_folder = folder;
    db->copy_generation = lode__vfs_generation();
    for (int i = 0; i < 2 && st == LODE_OK; i++) {
      char *to = lode__path_join(folder, i ? LODE__TRUTH_FILE "-journal" : LODE__TRUTH_FILE);
      if (!to)
        st = lode__fail_nomem(err);
      else if (LODE__RETRY(lode__os->stat(from[i], &before[i])) != 0)
        st = lode__fail_errno(err, errno, from[i]);
      else
        st = copy_file(from[i], to, err);
      lode__free(to);
    }
    folder = NULL;
    if (st != LODE_OK) break;
    if (LODE__RETRY(lode__os->stat(from[0], &after[0])) == 0 && LODE__RETRY(lode__os->stat(from[1], &after[1])) == 0 &&
        same_file(&before[0], &after[0]) && same_file(&before[1], &after[1])) {
      db->copy_of = after[0];
      break;
    }
    lode__copy_drop(db);
    if (tries == 5) {
      st = lode__fail(err, LODE_BUSY, "%s is being repaired by another process; try again", db->path);
      break;
    }
    folder = lode__path_join(tmp && *tmp ? tmp : "/tmp", "lode-copy-XXXXXX");
    if (!folder) {
      st = lode__fail_nomem(err);
      break;
    }
  }
  if (st != LODE_OK) lode__copy_drop(db);
  else lode__db_log(db, "%s holds an interrupted transaction: reading from a private copy in which it is undone", db->path);
done:
  lode__free(from[0]);
  lode__free(from[1]);
  lode__free(folder);
  return st;
}
