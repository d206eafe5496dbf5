/* vfs_through.c - reading through a hot journal.
 *
 * An interrupted transaction leaves a journal with the pages as they were. A connection that may write rolls it back.
 * One that may only read takes those pages from the journal and all others from the database, and SQLite is told that
 * there is no journal.
 *
 * The reader holds a SHARED lock. Under it a hot journal stays as it is, and so does the database: rolling back needs
 * the EXCLUSIVE lock, and whoever wants to write must roll back first. But a journal that looks hot may belong to a
 * live writer, who has filled it in, waits for this reader to leave, and may give up and empty it. Then the database
 * is untouched, and is read as it is. So a journal counts as hot when it was proven, then nobody held the RESERVED
 * lock, and then it still was the same one.
 *
 * Proving a journal means reading all of it. The result is kept for the connection's next transactions, for as long as
 * the journal has the same length and the same header, which holds numbers that no other transaction has.
 */
#include "vfs_internal.h"

#include <fcntl.h>

enum { ATTEMPTS = 3 };

struct lode__through {
  lode__vfs_file journal;
  lode__judged judged;
  bool active;
};

void lode__through_drop(lode__vfs_file *db) {
  lode__through *t = db->through;
  if (!t) return;
  lode__vfs_close(&t->journal);
  lode__judged_release(&t->judged);
  lode__free(t);
  db->through = NULL;
  db->state.journal_pages = 0;
}

void lode__through_pause(lode__vfs_file *db) {
  if (!db->through) return;
  if (!db->through->active) lode__through_drop(db);
  else db->through->active = false;
  db->state.journal_pages = 0;
}

/* Is the file under the journal's name still the one that was judged? */
static int is_same(lode__vfs_file *db, bool *same) {
  lode__through *t = db->through;
  unsigned char head[LODE__HEADER_FULL];
  struct stat st;
  size_t got = 0;
  bool exists = false;
  *same = false;
  int rc = lode__vfs_stat(t->journal.path, &st, &exists);
  if (rc != SQLITE_OK) return lode__vfs_errno(db, rc);
  if (!exists || st.st_dev != t->journal.dev || st.st_ino != t->journal.ino) return SQLITE_OK;
  if ((uint64_t)st.st_size != t->judged.size) return SQLITE_OK;
  rc = lode__vfs_pread(&t->journal, head, sizeof head, 0, &got);
  memset(head + got, 0, sizeof head - got);
  if (t->judged.head_torn) memcpy(head, lode__journal_magic, sizeof lode__journal_magic);
  *same = memcmp(head, t->judged.head, sizeof head) == 0;
  return rc;
}

/* *found = false: there is no journal, or it is nothing that SQLite could have made. */
static int open_journal(lode__vfs_file *db, bool *found) {
  lode__through *t = lode__alloc_zero(1, sizeof *t);
  if (!t) return SQLITE_IOERR_NOMEM;
  t->journal = (lode__vfs_file){.kind = LODE__VFS_JOURNAL, .db = db, .fd = -1};
  t->journal.path = sqlite3_filename_journal(db->path);
  db->through = t;
  int rc = lode__vfs_open(&t->journal, O_RDONLY, 0);
  *found = rc == SQLITE_OK;
  if (rc == SQLITE_CANTOPEN && (errno == ENOENT || lode__journal_is_no_file(errno))) return SQLITE_OK;
  return rc == SQLITE_CANTOPEN ? SQLITE_IOERR_ACCESS : rc;
}

/* One look. *settled = false: it changed meanwhile. */
static int look_once(lode__vfs_file *db, bool *settled) {
  bool found = false, same = false;
  int rc = open_journal(db, &found);
  *settled = true;
  if (rc != SQLITE_OK || !found) return rc;
  lode__through *t = db->through;
  rc = lode__journal_judge_file(&t->journal, LODE__JUDGE_IMAGES, &t->judged);
  if (rc != SQLITE_OK || t->judged.verdict == LODE__JOURNAL_NONE || t->judged.verdict == LODE__JOURNAL_STRAY) return rc;
  int held = LODE__RETRY(lode__os->lock_held(db->fd, F_WRLCK, LODE__SQ_RESERVED_BYTE, 1));
  if (held < 0) return lode__vfs_errno(db, SQLITE_IOERR_CHECKRESERVEDLOCK);
  if (held) return SQLITE_OK;
  rc = is_same(db, &same);
  *settled = same;
  if (rc != SQLITE_OK || !same) return rc;
  if (t->judged.verdict == LODE__JOURNAL_DAMAGED)
    return lode__journal_damaged(&t->journal, t->judged.why, t->judged.at);
  t->active = true;
  return SQLITE_OK;
}

int lode__through_look(lode__vfs_file *db) {
  int rc = SQLITE_OK;
  bool settled = false;
  if (db->through) {
    rc = is_same(db, &settled);
    if (rc == SQLITE_OK && settled) db->through->active = true;
  }
  for (int i = 0; i < ATTEMPTS && !settled && rc == SQLITE_OK; i++) {
    lode__through_drop(db);
    rc = look_once(db, &settled);
  }
  if (rc == SQLITE_OK && !settled) rc = SQLITE_BUSY;
  if (rc == SQLITE_OK && db->through->active) db->state.journal_pages = (uint32_t)db->through->judged.n_images;
  else lode__through_drop(db);
  return rc;
}

bool lode__through_size(const lode__vfs_file *db, uint64_t *bytes) {
  const lode__through *t = db->through;
  if (!t || !t->active) return false;
  *bytes = (uint64_t)t->judged.first_pages * t->judged.page_bytes;
  return true;
}

int lode__through_pread(lode__vfs_file *db, void *buf, size_t n, uint64_t off, size_t *got) {
  const lode__through *t = db->through;
  uint64_t size;
  if (!lode__through_size(db, &size)) return lode__vfs_pread(db, buf, n, off, got);
  *got = 0;
  if (off >= size) return SQLITE_OK;
  if (off > 0 && n != t->judged.page_bytes) return SQLITE_IOERR_READ; /* nothing that SQLite asks for */
  const lode__page_image *image = lode__image_find(t->judged.images, t->judged.n_images, (uint32_t)(off / n + 1));
  if (image) return lode__vfs_pread(&db->through->journal, buf, n, image->offset, got);
  return lode__vfs_pread(db, buf, n, off, got);
}
