/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - checks a whole store while others use it. Nothing is written, and no finding stops the check.
 *
 *   1. Every page is read from the file and must have a valid checksum (free pages may hold anything), and be of the
 *      version that the newest commit left.
 *   2. Every row must have a valid checksum, and references between rows must be right (verify_rows.c).
 *   3. Counts and indexes are compared with the records (verify_sums.c).
 *   4. SQLite checks its b-trees, its free list and its own indexes.
 * The first two read in transactions of at most 50 ms and check each row within one of them, so commits in between do
 * no harm. The last two need a consistent view: they read in one transaction, which ends as soon as somebody waits
 * for a lock. After VERIFY_ATTEMPTS such interruptions they run on a private copy of the store. A store that is both
 * damaged and being written to cannot be copied: then only the first two are done, and the log says so.
 */
#include "repair/verify.h"

#include <unistd.h>

#define VERIFY_ATTEMPTS 3
#define VERIFY_TICK_OPS 2000 /* SQLite instructions between two calls of verify_on_tick() */

static const lode_str verify_no_str = {NULL, 0};

void verify_report(verify_job *v, const char *what, lode_str collection, lode_str id, const char *format, ...) {
  char detail[512];
  va_list args;
  v->n_found++;
  if (!v->found) return;
  va_start(args, format);
  vsnprintf(detail, sizeof detail, format, args);
  va_end(args);
  lode_damage damage = {.what = what, .collection = collection, .id = id, .detail = detail};
  v->found(v->ctx, &damage);
}

/* ---- Pages ---- */

typedef struct verify_page_walk {
  uint32_t next, last;
  vfs_pages pages; /* as the current transaction sees them */
  unsigned char *page;
} verify_page_walk;

static lode_status verify_pages_slice(verify_job *v, store_tx *tx, verify_page_walk *s, lode_error *err) {
  TRY(store_tx_pages(tx, &s->pages, err));
  uint32_t there = s->pages.src.pages;
  s->last = s->pages.declared;
  if (s->next == 1 && there < s->last)
    verify_report(v, "file", verify_no_str, verify_no_str, "the file is cut short: %u of %u pages are there", there,
                  s->last);
  for (; s->next <= s->last && s->next <= there; s->next++) {
    if (s->next % 16 == 0 && store_tx_is_old(tx)) return LODE_OK;
    if (s->next == sqf_lock_page(s->pages.src.page_bytes)) continue;
    lode_status st = store_tx_read_page(tx, &s->pages, s->next, s->page, err);
    if (st == LODE_CORRUPT) {
      v->damaged_pages++;
      verify_report(v, "page", verify_no_str, verify_no_str,
                    vfs_pages_damage(&s->pages) == VFS_DAMAGE_OLD ? "page %u of %u is an older version of itself"
                                                                  : "page %u of %u fails its checksum",
                    s->next, s->last);
      err_clear(err);
    } else if (st != LODE_OK) {
      return st;
    }
  }
  s->next = s->last + 1;
  return LODE_OK;
}

/* Used if not even a transaction can begin; nobody else can write then, unless a handle was open before. */
static lode_status verify_pages_without_sqlite(verify_job *v, const char *path, lode_error *err) {
  vfs_pages p;
  lode_status st = LODE_OK;
  TRY(vfs_pages_open(path, &p, err));
  unsigned char *page = mem_alloc(p.src.page_bytes);
  if (!page) st = err_nomem(err);
  for (uint32_t n = 1; n <= p.src.pages && st == LODE_OK; n++) {
    sqf_page_use use = vfs_pages_use_of(&p, n);
    if (n % 64 == 1) st = err_progress(v->progress, "checking pages", n, p.src.pages, err);
    if (use == SQF_PAGE_LOCK || use == SQF_PAGE_FREE) continue;
    bool sound = vfs_pages_read(&p, n, page);
    if (sound && !vfs_pages_is_old(&p, n, page)) continue;
    v->damaged_pages++;
    verify_report(v, "page", verify_no_str, verify_no_str,
                  sound ? "page %u of %u is of another moment" : "page %u of %u fails its checksum", n, p.src.pages);
  }
  mem_free(page);
  vfs_pages_close(&p);
  return st;
}

/* *usable = false: SQLite cannot begin a transaction, so nothing else can be checked. */
static lode_status verify_pages(verify_job *v, bool *usable, lode_error *err) {
  store_tx *tx;
  verify_page_walk s = {.next = 1, .last = UINT32_MAX - 1, .pages = VFS_PAGES_NONE, .page = mem_alloc(SQF_PAGE_MAX)};
  lode_status st = s.page ? LODE_OK : err_nomem(err);
  *usable = true;
  while (st == LODE_OK && s.next <= s.last) {
    st = err_progress(v->progress, "checking pages", s.next - 1, s.last == UINT32_MAX - 1 ? 0 : s.last, err);
    if (st == LODE_OK) st = store_tx_begin(v->db, STORE_TX_READ, &tx, err);
    if (st == LODE_CORRUPT) {
      *usable = false;
      verify_report(v, "file", verify_no_str, verify_no_str, "%s", err ? err->text : "the store cannot be read");
      st = verify_pages_without_sqlite(v, v->db->path, err);
      break;
    }
    if (st != LODE_OK) break;
    st = verify_pages_slice(v, tx, &s, err);
    store_tx_rollback(tx);
  }
  vfs_pages_close(&s.pages);
  mem_free(s.page);
  return st;
}

/* ---- Long reads that yield ---- */

static int verify_on_tick(void *ctx) {
  verify_watch *w = ctx;
  uint64_t now = os_api->now_ns();
  if (!w->is_private && store_db_has_waiters(w->db)) w->interrupted = true;
  if (now - w->reported_ns > UINT64_C(100000000)) {
    w->reported_ns = now;
    w->cancelled = !err_go_on(w->v->progress, w->phase, 0, 0);
  }
  return w->interrupted || w->cancelled;
}

void verify_watch_begin(verify_watch *w, sqlite3 *sql) {
  sqlite3_progress_handler(sql, VERIFY_TICK_OPS, verify_on_tick, w);
}
void verify_watch_end(sqlite3 *sql) { sqlite3_progress_handler(sql, 0, NULL, NULL); }

/* ---- SQLite's own check ---- */

/* Appends the faults in the text of a row, each with its NUL. */
static void verify_add_faults(strbuf *faults, const char *text) {
  while (*text) {
    size_t len = strcspn(text, "\n");
    if (len > 0 && text[0] != '*' && strncmp(text, "ok", len) != 0) {
      strbuf_add(faults, text, len);
      strbuf_addch(faults, 0);
    }
    text += len + (text[len] != 0);
  }
}

static int verify_integrity_once(sqlite3 *sql, strbuf *faults) {
  sqlite3_stmt *s = NULL;
  faults->len = 0;
  int rc = sqlite3_prepare_v2(sql, STORE_SQL_INTEGRITY_CHECK, -1, &s, NULL);
  if (rc == SQLITE_OK)
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
      const char *text = (const char *)sqlite3_column_text(s, 0);
      if (text)
        verify_add_faults(faults, text);
      else
        faults->failed = true;
    }
  int end = sqlite3_finalize(s);
  return rc == SQLITE_DONE ? SQLITE_OK : rc == SQLITE_OK ? end : rc;
}

static uint64_t verify_failed_calls(sqlite3 *sql) {
  vfs_file_state vs = {0};
  (void)sqlite3_file_control(sql, "main", VFS_FCNTL_STATE, &vs);
  return vs.failed_calls;
}

/* SQLite reports pages that it could not load as damaged, whatever the reason. So if there are faults, the check is
 * repeated and only its second result counts, which rules out a shortage of memory; if system calls failed meanwhile,
 * the faults prove nothing. */
int repair_integrity_check(sqlite3 *sql, repair_integrity_fn *line, void *ctx) {
  strbuf faults = {0};
  int rc = verify_integrity_once(sql, &faults);
  uint64_t failed = verify_failed_calls(sql);
  if (rc == SQLITE_OK && faults.len) rc = verify_integrity_once(sql, &faults);
  if (rc == SQLITE_OK && faults.len && verify_failed_calls(sql) != failed) rc = SQLITE_IOERR_READ;
  if (faults.failed) rc = SQLITE_NOMEM;
  for (size_t at = 0; rc == SQLITE_OK && at < faults.len; at += strlen(faults.data + at) + 1)
    line(ctx, faults.data + at);
  strbuf_release(&faults);
  return rc;
}

static void verify_on_fault(void *ctx, const char *line) {
  verify_report(ctx, "structure", verify_no_str, verify_no_str, "%s", line);
}

static lode_status verify_structure(verify_job *v, verify_watch *w, lode_error *err) {
  store_tx *tx;
  lode_status st = LODE_OK;
  TRY(store_tx_begin(w->db, STORE_TX_READ, &tx, err));
  verify_watch_begin(w, tx->conn->sql);
  int rc = repair_integrity_check(tx->conn->sql, verify_on_fault, v);
  verify_watch_end(tx->conn->sql);
  if (rc != SQLITE_OK) {
    tx->failed = true;
    st = store_err_sql(tx->conn, rc, err);
  }
  if (st == LODE_CORRUPT) {
    verify_on_fault(v, err->text);
    err_clear(err);
    st = LODE_OK;
  }
  store_tx_rollback(tx);
  return st;
}

/* ---- The private copy ---- */

typedef struct verify_copy {
  repair_tmpdir at;
  store_db *db;
} verify_copy;

static void verify_copy_remove(verify_copy *c) {
  store_db_close(c->db);
  repair_tmpdir_remove(&c->at);
  *c = (verify_copy){0};
}

static lode_status verify_copy_create(verify_job *v, verify_copy *c, lode_error *err) {
  lode_open_options options = {.read_only = true, .memory_bytes = v->db->opt.memory_bytes};
  TRY(repair_tmpdir_create(&c->at, err));
  char *file = store_path_join(c->at.folder, STOREFILE_DB);
  if (!file) return err_nomem(err);
  store_db_log(v->db, "%s is in use: what needs one moment is checked on a private copy in %s", v->db->path,
               c->at.folder);
  lode_status st = repair_tmpdir_explain(backup_copy(v->db, file, v->progress, err), err);
  mem_free(file);
  TRY(st);
  return store_db_open(c->at.folder, &options, &c->db, err);
}

/* ---- Checks that need a consistent view ---- */

typedef lode_status verify_check_fn(verify_job *v, verify_watch *w, lode_error *err);

static lode_status verify_run_check(verify_job *v, verify_check_fn *fn, const char *phase, verify_copy *copy,
                                    bool *done, lode_error *err) {
  lode_status st = LODE_OK;
  *done = false;
  for (int i = 0; i < (copy->db ? 1 : VERIFY_ATTEMPTS) && !*done; i++) {
    verify_watch w = {.v = v, .db = copy->db ? copy->db : v->db, .phase = phase, .is_private = copy->db != NULL};
    TRY(err_progress(v->progress, phase, 0, 0, err));
    if (i) os_api->sleep_us(20000);
    st = fn(v, &w, err);
    if (w.cancelled) return err_set(err, LODE_CANCELLED, "cancelled by the caller");
    *done = !w.interrupted;
    if (*done) TRY(st);
  }
  if (!*done) err_clear(err);
  return LODE_OK;
}

static lode_status verify_run_checks(verify_job *v, lode_error *err) {
  static const struct {
    verify_check_fn *fn;
    const char *phase;
  } checks[] = {{verify_sums, "checking counts and indexes"}, {verify_structure, "checking structure"}};
  lode_status st = LODE_OK;
  verify_copy copy = {0};
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
    bool done;
    TRY_GOTO(verify_run_check(v, checks[i].fn, checks[i].phase, &copy, &done, err));
    if (done) continue;
    st = verify_copy_create(v, &copy, err);
    if (st == LODE_CORRUPT && v->n_found) {
      store_db_log(v->db, "%s is damaged and being written to: its counts, indexes and b-trees were not checked",
                   v->db->path);
      err_clear(err);
      st = LODE_OK;
      goto done;
    }
    if (st != LODE_OK) goto done;
    TRY_GOTO(verify_run_check(v, checks[i].fn, checks[i].phase, &copy, &done, err));
  }
done:
  verify_copy_remove(&copy);
  return st;
}

/* LODE_CORRUPT if there is damage. */
static lode_status verify_end(const verify_job *v, const char *path, lode_error *err) {
  if (!v->n_found) return LODE_OK;
  return err_set(err, LODE_CORRUPT, "%s is damaged in %llu places; `lode db salvage` brings over what is whole", path,
                 (unsigned long long)v->n_found);
}

lode_status verify_folder(const char *folder, lode_damage_fn *found, void *ctx, lode_progress progress,
                          lode_error *err) {
  verify_job v = {.found = found, .ctx = ctx, .progress = progress};
  char *resolved = NULL;
  TRY(beneath_resolve(folder, &resolved, err));
  char *path = store_path_join(resolved, STOREFILE_DB);
  lode_status st = path ? verify_pages_without_sqlite(&v, path, err) : err_nomem(err);
  if (st == LODE_OK) st = verify_end(&v, path, err);
  mem_free(path);
  mem_free(resolved);
  return st;
}

lode_status verify_store(store_db *db, lode_damage_fn *found, void *ctx, lode_progress progress, lode_error *err) {
  verify_job v = {.db = db, .found = found, .ctx = ctx, .progress = progress};
  lode_error own;
  bool usable;
  if (!err) err = &own; /* findings quote its text */
  TRY(verify_pages(&v, &usable, err));
  if (usable) TRY(verify_rows(&v, err));
  if (usable) TRY(verify_run_checks(&v, err));
  return verify_end(&v, db->path, err);
}
