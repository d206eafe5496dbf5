/* vfs_through.c - the journal as a connection sees it that may only read.
 *
 * An interrupted transaction leaves a journal with the pages as they were. A connection that may write rolls it back.
 * One that may only read takes those pages from the journal and all others from the database, and SQLite is told that
 * there is no journal. What a writer would set aside, or use again, it leaves alone.
 *
 * SQLite looks for a journal once it holds a SHARED lock and has seen that nobody holds the RESERVED lock. As long as the
 * SHARED lock is held, a hot journal stays as it is, and so does the database: whoever wants to write must roll back first,
 * which takes the EXCLUSIVE lock. But a writer may have begun since SQLite looked, may have filled in a journal of its own,
 * and may roll back and empty it without having touched the database. So a journal counts as hot when it was proven, then
 * nobody held the RESERVED lock, and then it still was the same one. If somebody holds that lock, the journal is the
 * writer's, and the database is read as it is.
 *
 * To judge a journal may take reading all of it. The verdict is kept for the connection's next transactions, for as long as
 * nothing that it rests on has changed: the journal (which file it is, its length, its times, its header) and the
 * database's header, which holds the commit id.
 */
#include "vfs_internal.h"

#include <fcntl.h>

enum { ATTEMPTS = 3 };

struct lode__through {
  lode__vfs_file journal;
  struct stat seen;    /* of the journal, before it was judged */
  lode__judged findings;
  bool in_use;         /* the verdict is that of the transaction at hand */
};

static bool reads_through(const lode__through *t) { return t && t->in_use && t->findings.verdict == LODE__JOURNAL_HOT; }

void lode__through_drop(lode__vfs_file *db) {
  lode__through *t = db->view;
  if (!t) return;
  lode__vfs_close(&t->journal);
  lode__judged_release(&t->findings);
  mem_free(t);
  db->view = NULL;
  db->state.journal_pages = 0;
}

void lode__through_pause(lode__vfs_file *db) {
  if (!db->view) return;
  if (!db->view->in_use) lode__through_drop(db); /* a whole transaction without that journal */
  else db->view->in_use = false;
  db->state.journal_pages = 0;
}

static bool is_same_time(struct timespec a, struct timespec b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

static bool is_same_file(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
         is_same_time(a->st_mtim, b->st_mtim) && is_same_time(a->st_ctim, b->st_ctim);
}

/* The first bytes of a file, with zeros after its end. */
static int read_head(lode__vfs_file *f, unsigned char *head, size_t n) {
  size_t got = 0;
  int rc = lode__vfs_pread(f, head, n, 0, &got);
  memset(head + got, 0, n - got);
  return rc;
}

/* Are the file under the journal's name and the database still those that were judged? */
static int is_same(lode__vfs_file *db, bool *same) {
  lode__through *t = db->view;
  unsigned char head[LODE__HEADER_FULL], db_head[LODE__DB_HEAD];
  struct stat st;
  bool exists = false;
  *same = false;
  int rc = lode__vfs_stat(t->journal.path, &st, &exists);
  if (rc != SQLITE_OK) return lode__vfs_errno(db, rc);
  if (!exists || !is_same_file(&st, &t->seen)) return SQLITE_OK;
  rc = read_head(&t->journal, head, sizeof head);
  if (rc == SQLITE_OK) rc = read_head(db, db_head, sizeof db_head);
  if (rc != SQLITE_OK) return rc;
  if (t->findings.head_torn) memcpy(head, lode__journal_magic, sizeof lode__journal_magic);
  *same = memcmp(head, t->findings.head, sizeof head) == 0 && memcmp(db_head, t->findings.db_head, sizeof db_head) == 0;
  return SQLITE_OK;
}

/* *found = false: there is no journal, or it is nothing that SQLite could have made. */
static int open_journal(lode__vfs_file *db, bool *found) {
  lode__name_holds holds;
  lode__through *t = mem_calloc(1, sizeof *t);
  if (!t) return SQLITE_IOERR_NOMEM;
  t->journal = (lode__vfs_file){.kind = LODE__VFS_JOURNAL, .db = db, .fd = -1};
  t->journal.path = sqlite3_filename_journal(db->path);
  db->view = t;
  int rc = lode__vfs_open(&t->journal, O_RDONLY, 0);
  *found = rc == SQLITE_OK;
  if (*found && OS_RETRY(os_api->fstat(t->journal.fd, &t->seen)) != 0) rc = lode__vfs_errno(db, SQLITE_IOERR_FSTAT);
  if (rc != SQLITE_CANTOPEN) return rc;
  rc = lode__journal_look_at_name(&t->journal, &holds);
  return rc == SQLITE_OK && holds == LODE__NAME_FILE ? SQLITE_IOERR_ACCESS : rc;
}

/* One look. *settled = false: it changed meanwhile. */
static int look_once(lode__vfs_file *db, bool *settled) {
  bool found = false, same = false;
  int rc = open_journal(db, &found);
  *settled = true;
  if (rc != SQLITE_OK || !found) return rc;
  lode__through *t = db->view;
  rc = lode__journal_judge_file(&t->journal, LODE__JUDGE_IMAGES, &t->findings);
  if (rc != SQLITE_OK) return rc;
  if (t->findings.verdict == LODE__JOURNAL_NONE || t->findings.verdict == LODE__JOURNAL_STRAY) {
    t->in_use = true;
    return SQLITE_OK;
  }
  int held = OS_RETRY(os_api->lock_held(db->fd, F_WRLCK, SQF_RESERVED_BYTE, 1));
  if (held < 0) return lode__vfs_errno(db, SQLITE_IOERR_CHECKRESERVEDLOCK);
  if (held) return SQLITE_OK;
  rc = is_same(db, &same);
  *settled = same;
  if (rc != SQLITE_OK || !same) return rc;
  if (t->findings.verdict == LODE__JOURNAL_DAMAGED)
    return lode__journal_damaged(&t->journal, t->findings.why, t->findings.at);
  t->in_use = true;
  return SQLITE_OK;
}

int lode__through_look(lode__vfs_file *db) {
  int rc = SQLITE_OK;
  bool settled = false;
  if (db->view) {
    rc = is_same(db, &settled);
    if (rc == SQLITE_OK && settled) db->view->in_use = true;
  }
  for (int i = 0; i < ATTEMPTS && !settled && rc == SQLITE_OK; i++) {
    lode__through_drop(db);
    rc = look_once(db, &settled);
  }
  if (rc == SQLITE_OK && !settled) rc = SQLITE_BUSY;
  if (rc != SQLITE_OK || !db->view->in_use) lode__through_drop(db);
  else if (reads_through(db->view)) db->state.journal_pages = (uint32_t)db->view->findings.n_images;
  return rc;
}

bool lode__through_size(const lode__vfs_file *db, uint64_t *bytes) {
  const lode__through *t = db->view;
  if (!reads_through(t)) return false;
  *bytes = (uint64_t)t->findings.first_pages * t->findings.page_bytes;
  return true;
}

int lode__through_pread(lode__vfs_file *db, void *buf, size_t n, uint64_t off, size_t *got) {
  const lode__through *t = db->view;
  uint64_t size;
  if (!lode__through_size(db, &size)) return lode__vfs_pread(db, buf, n, off, got);
  *got = 0;
  if (off >= size) return SQLITE_OK;
  if (off > 0 && n != t->findings.page_bytes) return SQLITE_IOERR_READ; /* nothing that SQLite asks for */
  const lode__page_image *image = lode__image_find(t->findings.images, t->findings.n_images, (uint32_t)(off / n + 1));
  if (image) return lode__vfs_pread(&db->view->journal, buf, n, image->offset, got);
  return lode__vfs_pread(db, buf, n, off, got);
}
