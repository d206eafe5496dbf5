/* SPDX-License-Identifier: Apache-2.0 */
/* vfs_rollback_view.c - how a read-only connection sees a database with a hot journal.
 *
 * An interrupted transaction leaves a journal with the original pages. A connection that may write rolls it back. A
 * read-only one takes those pages from the journal and all others from the database, and SQLite sees no journal. It
 * leaves alone what a writer would quarantine or reuse.
 *
 * SQLite looks for a journal once it holds a SHARED lock and has seen that nobody holds the RESERVED lock. While the
 * SHARED lock is held, neither a hot journal nor the database changes: whoever wants to write must roll back first,
 * which takes the EXCLUSIVE lock. But a writer may have started since SQLite looked, may have completed a journal of
 * its own, and may roll back and truncate it without having modified the database. So a journal counts as hot if it was
 * proven, then nobody held the RESERVED lock, and then it was still the same journal. If somebody holds that lock, the
 * journal is the writer's, and the database is read as it is.
 *
 * Checking a journal may require reading all of it. The verdict is kept for the connection's next transactions, as long
 * as nothing it depends on has changed: the journal (file, length, times, header) and the database's header, which
 * holds the commit id.
 */
#include "vfs/vfs_internal.h"

#include <fcntl.h>

enum { VFS_VIEW_ATTEMPTS = 3 };

struct vfs_rollback_view {
  vfs_file journal;
  struct stat seen; /* of the journal, before it was checked */
  journal_findings findings;
  bool in_use; /* the verdict applies to the current transaction */
};

static bool reads_through(const vfs_rollback_view *t) { return t && t->in_use && t->findings.verdict == JOURNAL_HOT; }

void vfs_view_drop(vfs_file *db) {
  vfs_rollback_view *t = db->view;
  if (!t) return;
  vfs_file_close(&t->journal);
  journal_findings_release(&t->findings);
  mem_free(t);
  db->view = NULL;
  db->state.journal_pages = 0;
}

void vfs_view_pause(vfs_file *db) {
  if (!db->view) return;
  if (!db->view->in_use)
    vfs_view_drop(db); /* a whole transaction did not use that journal */
  else
    db->view->in_use = false;
  db->state.journal_pages = 0;
}

static bool is_same_file(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
         os_mtime_ns(a) == os_mtime_ns(b) && os_ctime_ns(a) == os_ctime_ns(b);
}

/* Reads the first bytes of a file, padded with zeros. */
static int read_head(vfs_file *f, unsigned char *head, size_t n) {
  size_t got = 0;
  int rc = vfs_file_pread(f, head, n, 0, &got);
  memset(head + got, 0, n - got);
  return rc;
}

/* Are the file under the journal's name and the database still those that were checked? */
static int vfs_view_is_same_journal(vfs_file *db, bool *same) {
  vfs_rollback_view *t = db->view;
  unsigned char head[JOURNAL_HEADER_FULL], db_head[JOURNAL_DB_HEADER_BYTES];
  struct stat st;
  bool exists = false;
  *same = false;
  int rc = vfs_stat_path(t->journal.path, &st, &exists);
  if (rc != SQLITE_OK) return vfs_file_note_errno(db, rc);
  if (!exists || !is_same_file(&st, &t->seen)) return SQLITE_OK;
  rc = read_head(&t->journal, head, sizeof head);
  if (rc == SQLITE_OK) rc = read_head(db, db_head, sizeof db_head);
  if (rc != SQLITE_OK) return rc;
  if (t->findings.head_torn) memcpy(head, sqf_journal_magic, sizeof sqf_journal_magic);
  *same = memcmp(head, t->findings.head, sizeof head) == 0 && memcmp(db_head, t->findings.db_head, sizeof db_head) == 0;
  return SQLITE_OK;
}

/* *found is false if there is no journal, or if it is something that SQLite could not have made. */
static int vfs_view_open_journal(vfs_file *db, bool *found) {
  vfs_name_kind holds;
  vfs_rollback_view *t = mem_calloc(1, sizeof *t);
  if (!t) return SQLITE_IOERR_NOMEM;
  t->journal = (vfs_file){.kind = VFS_FILE_JOURNAL, .db = db, .fd = -1};
  t->journal.path = sqlite3_filename_journal(db->path);
  db->view = t;
  int rc = vfs_file_open(&t->journal, O_RDONLY, 0);
  *found = rc == SQLITE_OK;
  if (*found && OS_RETRY(os_api->fstat(t->journal.fd, &t->seen)) != 0) rc = vfs_file_note_errno(db, SQLITE_IOERR_FSTAT);
  if (rc != SQLITE_CANTOPEN) return rc;
  rc = vfs_journal_lstat(&t->journal, &holds);
  return rc == SQLITE_OK && holds == VFS_NAME_FILE ? SQLITE_IOERR_ACCESS : rc;
}

/* One attempt. *settled is false if the journal changed in the meantime. */
static int vfs_view_try_open(vfs_file *db, bool *settled) {
  bool found = false, same = false;
  int rc = vfs_view_open_journal(db, &found);
  *settled = true;
  if (rc != SQLITE_OK || !found) return rc;
  vfs_rollback_view *t = db->view;
  rc = vfs_journal_check(&t->journal, JOURNAL_CHECK_IMAGES, &t->findings);
  if (rc != SQLITE_OK) return rc;
  if (t->findings.verdict == JOURNAL_NONE || t->findings.verdict == JOURNAL_STRAY) {
    t->in_use = true;
    return SQLITE_OK;
  }
  int held = OS_RETRY(os_api->lock_held(db->fd, F_WRLCK, SQF_RESERVED_BYTE, 1));
  if (held < 0) return vfs_file_note_errno(db, SQLITE_IOERR_CHECKRESERVEDLOCK);
  if (held) return SQLITE_OK;
  rc = vfs_view_is_same_journal(db, &same);
  *settled = same;
  if (rc != SQLITE_OK || !same) return rc;
  if (t->findings.verdict == JOURNAL_DAMAGED) return vfs_journal_damaged(&t->journal, t->findings.why, t->findings.at);
  t->in_use = true;
  return SQLITE_OK;
}

int vfs_view_open(vfs_file *db) {
  int rc = SQLITE_OK;
  bool settled = false;
  if (db->view) {
    rc = vfs_view_is_same_journal(db, &settled);
    if (rc == SQLITE_OK && settled) db->view->in_use = true;
  }
  for (int i = 0; i < VFS_VIEW_ATTEMPTS && !settled && rc == SQLITE_OK; i++) {
    vfs_view_drop(db);
    rc = vfs_view_try_open(db, &settled);
  }
  if (rc == SQLITE_OK && !settled) rc = SQLITE_BUSY;
  if (rc != SQLITE_OK || !db->view->in_use)
    vfs_view_drop(db);
  else if (reads_through(db->view))
    db->state.journal_pages = (uint32_t)db->view->findings.images.n;
  return rc;
}

bool vfs_view_size(const vfs_file *db, uint64_t *bytes) {
  const vfs_rollback_view *t = db->view;
  if (!reads_through(t)) return false;
  *bytes = (uint64_t)t->findings.first_pages * t->findings.page_bytes;
  return true;
}

int vfs_view_pread(vfs_file *db, void *buf, size_t n, uint64_t off, size_t *got) {
  const vfs_rollback_view *t = db->view;
  uint64_t size;
  if (!vfs_view_size(db, &size)) return vfs_file_pread(db, buf, n, off, got);
  *got = 0;
  if (off >= size) return SQLITE_OK;
  if (off > 0 && n != t->findings.page_bytes) return SQLITE_IOERR_READ; /* SQLite never asks for that */
  const sqf_image *image = sqf_images_find(&t->findings.images, (uint32_t)(off / n + 1));
  if (image) return vfs_file_pread(&db->view->journal, buf, n, image->offset, got);
  return vfs_file_pread(db, buf, n, off, got);
}

int vfs_view_pread_seal(vfs_file *db, uint32_t page_number, unsigned char *seal, size_t *got) {
  const vfs_rollback_view *t = db->view;
  uint64_t within = db->page_bytes - VFS_SEAL_BYTES;
  const sqf_image *image = reads_through(t) ? sqf_images_find(&t->findings.images, page_number) : NULL;
  if (image) return vfs_file_pread(&db->view->journal, seal, VFS_SEAL_BYTES, image->offset + within, got);
  return vfs_file_pread(db, seal, VFS_SEAL_BYTES, (uint64_t)(page_number - 1) * db->page_bytes + within, got);
}
