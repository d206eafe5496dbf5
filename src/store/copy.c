/* copy.c - the private copy: what a read-only handle reads when it meets an interrupted transaction.
 *
 * Undoing that transaction would mean writing to the store, which a reader must not do. So truth and journal are copied to a
 * temporary folder, where SQLite may roll back. The copy is dropped as soon as somebody has repaired the original.
 */
#include "db.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

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

static lode_status copy_both(lode__db *db, char *const from[2], struct stat before[2], lode_error *err) {
  lode_status st = LODE_OK;
  for (int i = 0; i < 2 && st == LODE_OK; i++) {
    char *to = lode__path_join(db->copy.folder, i ? LODE__TRUTH_FILE "-journal" : LODE__TRUTH_FILE);
    if (!to)
      st = lode__fail_nomem(err);
    else if (LODE__RETRY(lode__os->stat(from[i], &before[i])) != 0)
      st = lode__fail_errno(err, errno, from[i]);
    else
      st = lode__private_failed(copy_file(from[i], to, err), err);
    lode__free(to);
  }
  return st;
}

static bool are_unchanged(char *const from[2], const struct stat before[2]) {
  struct stat now;
  for (int i = 0; i < 2; i++)
    if (LODE__RETRY(lode__os->stat(from[i], &now)) != 0 || !same_file(&before[i], &now)) return false;
  return true;
}

/* Copies truth and journal; again if somebody changed them meanwhile. The copy is rolled back when it is opened. */
lode_status lode__copy_make(lode__db *db, lode_error *err) {
  lode_status st = LODE_OK;
  struct stat before[2];
  char *from[2] = {lode__path_join(db->folder, LODE__TRUTH_FILE), lode__path_join(db->folder, LODE__TRUTH_FILE "-journal")};
  if (!from[0] || !from[1]) {
    st = lode__fail_nomem(err);
    goto done;
  }
  for (int tries = 0;; tries++) {
    LODE__GOTO(lode__private_make(&db->copy, err));
    LODE__GOTO(copy_both(db, from, before, err));
    if (are_unchanged(from, before)) break;
    lode__private_drop(&db->copy);
    if (tries == 5) {
      st = lode__fail(err, LODE_BUSY, "%s is being repaired by another process; try again", db->path);
      goto done;
    }
  }
  db->copy_of = before[0];
  lode__db_log(db, "%s holds an interrupted transaction: reading from a private copy in which it is undone", db->path);
done:
  if (st != LODE_OK) lode__private_drop(&db->copy);
  lode__free(from[0]);
  lode__free(from[1]);
  return st;
}
