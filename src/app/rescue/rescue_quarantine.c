/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_quarantine.c - quarantines stale indexes of a Chroma directory and fixes sequence ids, by renaming, never by
 * deleting; see rescue.h.
 *
 * Sequence ids: 0.6 wrote eight big-endian bytes as a blob; 1.x expects integers, and its upgrade leaves old rows as
 * they are. In SQLite's format an integer of eight bytes is the same eight bytes. Only the column's type, one byte in
 * the row's header, differs: 28 (a blob of eight bytes) becomes 6 (an integer of eight bytes). No index has the
 * column. So the file is copied, those bytes are changed in the copy, the copy is read back and compared, and
 * replaces the original, which is kept under another name.
 */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>

#include "os/os.h"
#include "sqlite/sqlite_format.h"
#include "rescue/rescue.h"
#include "rescue/chroma_tables.h"

enum { QUARANTINE_COPY_BYTES = 1 << 20, QUARANTINE_BLOB_8 = 28, QUARANTINE_INTEGER_8 = 6 };

typedef struct quarantine_state {
  const rescue_quarantine_request *q;
  rescue_quarantine_report *r;
  rescue_dir c;
  strbuf db; /* path of the database */
  char stamp[32];
  struct stat sb;    /* of the database, when it was read */
  uint64_t *offsets; /* bytes to change */
  size_t n, cap;
  lode_str *stale; /* names of segments */
  size_t n_stale, cap_stale;
  mem_arena arena;
} quarantine_state;

static lode_status quarantine_path_of(strbuf *out, const char *folder, const char *name, const char *suffix,
                                      lode_error *err) {
  out->len = 0;
  strbuf_addf(out, "%s/%s%s", folder, name, suffix);
  strbuf_addch(out, 0);
  return out->failed ? err_nomem(err) : LODE_OK;
}

/* ---- Finding what to do ---- */

static lode_status quarantine_find_stale(quarantine_state *w, lode_error *err) {
  strbuf path = {0};
  lode_status st = LODE_OK;
  for (size_t i = 0; i < w->c.n_colls; i++) {
    uint32_t name = w->c.colls[i].vector_segment;
    struct stat sb;
    if (name == RESCUE_NO_NAME || memchr(w->c.names[name].text.data, '/', w->c.names[name].text.len)) continue;
    TRY_GOTO(quarantine_path_of(&path, w->q->from, w->c.names[name].text.data, "/data_level0.bin", err));
    if (OS_RETRY(os_api->stat(path.data, &sb)) != 0) continue;
    int64_t age = (int64_t)w->sb.st_mtime - (int64_t)sb.st_mtime;
    if (age < 0 || (uint64_t)age < w->q->stale_seconds) {
      w->r->kept++;
      continue;
    }
    if (!mem_grow(&w->stale, &w->cap_stale, w->n_stale + 1, sizeof *w->stale)) {
      st = err_nomem(err);
      goto done;
    }
    lode_str text = w->c.names[name].text;
    w->stale[w->n_stale++] = (lode_str){mem_arena_copy(&w->arena, text.data, text.len), text.len};
  }
done:
  strbuf_release(&path);
  return st;
}

static lode_status quarantine_note_offset(void *ctx, uint64_t offset, lode_error *err) {
  quarantine_state *w = ctx;
  if (!mem_grow(&w->offsets, &w->cap, w->n + 1, sizeof *w->offsets)) return err_nomem(err);
  w->offsets[w->n++] = offset;
  return LODE_OK;
}

static lode_status quarantine_find_blobs(quarantine_state *w, lode_error *err) {
  sqf_info info;
  sqf_get_info(w->c.file, &info);
  if (!w->q->fix_seq_ids || w->c.blob_seqs == 0) return LODE_OK;
  if (!w->c.seq_integer)
    return err_set(err, LODE_REFUSED,
                   "this database is of chromadb 0.6 or older, which wants its sequence ids as they "
                   "are; open it with 1.x first");
  if (w->c.damaged)
    return err_set(err, LODE_CORRUPT,
                   "chroma.sqlite3 is damaged: its sequence ids are left as they are; the rescued "
                   "store has all that can be read");
  if (info.journal_pages || info.wal_pages)
    return err_set(err, LODE_BUSY,
                   "chroma.sqlite3 has a transaction that did not finish; let the program that uses it "
                   "end it, then run again");
  return rescue_each_blob_seq(&w->c, quarantine_note_offset, w, err);
}

/* ---- Doing it ---- */

static lode_status quarantine_move(quarantine_state *w, const char *what, const char *from, const char *to,
                                   lode_error *err) {
  if (!w->q->dry_run && OS_RETRY(os_api->rename(from, to)) != 0) return err_errno(err, errno, from);
  return w->q->done(w->q->ctx, what, from, to, err);
}

static lode_status quarantine_set_aside(quarantine_state *w, lode_error *err) {
  strbuf from = {0}, to = {0};
  char suffix[64];
  lode_status st = LODE_OK;
  snprintf(suffix, sizeof suffix, ".drift-%s", w->stamp);
  for (size_t i = 0; i < w->n_stale; i++) {
    TRY_GOTO(quarantine_path_of(&from, w->q->from, w->stale[i].data, "", err));
    TRY_GOTO(quarantine_path_of(&to, w->q->from, w->stale[i].data, suffix, err));
    TRY_GOTO(quarantine_move(w, "index set aside", from.data, to.data, err));
    w->r->set_aside++;
  }
  if (w->n_stale && !w->q->dry_run) st = os_sync_parent_dir(from.data, err);
done:
  strbuf_release(&from);
  strbuf_release(&to);
  return st;
}

static lode_status quarantine_copy_file(int from, int to, uint64_t bytes, lode_error *err) {
  char *chunk = mem_alloc(QUARANTINE_COPY_BYTES);
  lode_status st = chunk ? LODE_OK : err_nomem(err);
  for (uint64_t at = 0; at < bytes && st == LODE_OK; at += QUARANTINE_COPY_BYTES) {
    size_t n = bytes - at < QUARANTINE_COPY_BYTES ? (size_t)(bytes - at) : QUARANTINE_COPY_BYTES, got = 0;
    st = os_read_full(from, chunk, n, at, &got, err);
    if (st == LODE_OK && got < n) st = err_set(err, LODE_BUSY, "chroma.sqlite3 became shorter while it was read");
    if (st == LODE_OK) st = os_write_full(to, chunk, n, at, err);
  }
  mem_free(chunk);
  return st;
}

static lode_status quarantine_change_bytes(const quarantine_state *w, int fd, lode_error *err) {
  for (size_t i = 0; i < w->n; i++) {
    unsigned char type = 0;
    size_t got;
    TRY(os_read_full(fd, &type, 1, w->offsets[i], &got, err));
    if (type != QUARANTINE_BLOB_8)
      return err_set(err, LODE_BUSY, "chroma.sqlite3 changed while it was read; nothing was done");
    type = QUARANTINE_INTEGER_8;
    TRY(os_write_full(fd, &type, 1, w->offsets[i], err));
  }
  if (OS_RETRY(os_api->fsync(fd)) != 0) return err_errno(err, errno, "the repaired copy");
  return LODE_OK;
}

/* The copy must have the same content, without blobs. It is chroma.sqlite3 in `folder`. */
static lode_status quarantine_compare_copy(quarantine_state *w, const char *folder, lode_error *err) {
  rescue_dir m;
  TRY(rescue_dir_open(folder, (lode_progress){0}, &m, err));
  bool same =
      m.blob_seqs == 0 && !m.damaged && m.n_rows == w->c.n_rows && m.n_logs == w->c.n_logs && m.n_metas == w->c.n_metas;
  for (size_t i = 0; same && i < m.n_rows; i++)
    same =
        m.rows[i].key == w->c.rows[i].key && m.rows[i].seq == w->c.rows[i].seq && str_eq(m.rows[i].id, w->c.rows[i].id);
  rescue_dir_close(&m);
  return same ? LODE_OK
              : err_internal(err, "the repaired copy of chroma.sqlite3 has other content, and nothing was changed");
}

static lode_status quarantine_fix_seq_ids(quarantine_state *w, int db, lode_error *err) {
  strbuf folder = {0}, copy = {0}, before = {0};
  char suffix[64];
  int fd = -1;
  lode_status st;
  TRY_GOTO(quarantine_path_of(&folder, w->q->from, "chroma-mending-", w->stamp, err));
  TRY_GOTO(quarantine_path_of(&copy, folder.data, "chroma.sqlite3", "", err));
  snprintf(suffix, sizeof suffix, ".before-%s", w->stamp);
  TRY_GOTO(quarantine_path_of(&before, w->q->from, "chroma.sqlite3", suffix, err));
  w->r->seq_ids = w->n;
  if (w->q->dry_run) {
    st = w->q->done(w->q->ctx, "sequence ids repaired, the database from before kept", w->db.data, before.data, err);
    goto done;
  }
  if (OS_RETRY(os_api->mkdir(folder.data, 0700)) != 0) {
    st = err_errno(err, errno, folder.data);
    goto done;
  }
  fd = OS_RETRY(os_api->open(copy.data, O_RDWR | O_CREAT | O_EXCL, w->sb.st_mode & 0777));
  if (fd < 0) {
    st = err_errno(err, errno, copy.data);
    goto done;
  }
  TRY_GOTO(quarantine_copy_file(db, fd, (uint64_t)w->sb.st_size, err));
  TRY_GOTO(quarantine_change_bytes(w, fd, err));
  TRY_GOTO(quarantine_compare_copy(w, folder.data, err));
  TRY_GOTO(quarantine_move(w, "sequence ids repaired, the database from before kept", w->db.data, before.data, err));
  if (OS_RETRY(os_api->rename(copy.data, w->db.data)) != 0) {
    st = err_errno(err, errno, copy.data);
    (void)os_api->rename(before.data, w->db.data);
    goto done;
  }
  st = os_sync_parent_dir(w->db.data, err);
done:
  if (fd >= 0) (void)os_api->close(fd);
  if (st != LODE_OK && copy.data) (void)os_api->unlink(copy.data); /* our own copy, not in place yet */
  if (folder.data) (void)os_api->rmdir(folder.data);
  strbuf_release(&folder);
  strbuf_release(&copy);
  strbuf_release(&before);
  return st;
}

/* Takes the locks that SQLite takes for writing: nobody else reads or writes. */
static lode_status quarantine_lock_db(const quarantine_state *w, int fd, lode_error *err) {
  struct stat sb;
  if (OS_RETRY(os_api->lock(fd, F_WRLCK, SQF_PENDING_BYTE, 2 + SQF_SHARED_SIZE)) != 0)
    return err_set(err, LODE_BUSY, "chroma.sqlite3 is in use; stop the program that uses it, then run again");
  if (OS_RETRY(os_api->fstat(fd, &sb)) != 0 || sb.st_size != w->sb.st_size || os_mtime_ns(&sb) != os_mtime_ns(&w->sb))
    return err_set(err, LODE_BUSY,
                   "chroma.sqlite3 was written to meanwhile; stop the program that uses it, then run "
                   "again");
  return LODE_OK;
}

lode_status rescue_quarantine(const rescue_quarantine_request *q, rescue_quarantine_report *r, lode_error *err) {
  quarantine_state w = {.q = q, .r = r};
  time_t now = (time_t)(os_wall_ms() / 1000);
  struct tm tm;
  int fd = -1;
  lode_status st;
  *r = (rescue_quarantine_report){0};
  err_clear(err);
  mem_arena_init(&w.arena, 0);
  gmtime_r(&now, &tm);
  strftime(w.stamp, sizeof w.stamp, "%Y%m%d-%H%M%S", &tm);
  TRY_GOTO(quarantine_path_of(&w.db, q->from, "chroma.sqlite3", "", err));
  TRY_GOTO(rescue_dir_open(q->from, (lode_progress){0}, &w.c, err));
  if (OS_RETRY(os_api->stat(w.db.data, &w.sb)) != 0) {
    st = err_errno(err, errno, w.db.data);
    goto done;
  }
  TRY_GOTO(quarantine_find_stale(&w, err));
  TRY_GOTO(quarantine_find_blobs(&w, err));
  TRY_GOTO(sqf_check_unchanged(w.c.file, err));
  sqf_close(w.c.file); /* releases the shared lock; what was read stays in memory */
  w.c.file = NULL;
  if (!q->dry_run && w.n_stale + w.n > 0) {
    fd = OS_RETRY(os_api->open(w.db.data, O_RDWR, 0));
    if (fd < 0) {
      st = err_errno(err, errno, w.db.data);
      goto done;
    }
    TRY_GOTO(quarantine_lock_db(&w, fd, err));
  }
  TRY_GOTO(quarantine_set_aside(&w, err));
  if (w.n) st = quarantine_fix_seq_ids(&w, fd, err);
done:
  if (fd >= 0) (void)os_api->close(fd);
  rescue_dir_close(&w.c);
  strbuf_release(&w.db);
  mem_arena_release(&w.arena);
  mem_free(w.offsets);
  mem_free(w.stale);
  return st;
}
