/* verify.c - checking a whole store while others use it. Nothing is written, and no finding stops the search.
 *
 *   1. Every page is read from the file and must carry its checksum (free pages hold nothing and may be anything).
 *   2. Every row is proven, and so is what rows say of each other (verify_rows.c).
 *   3. What was counted and indexed is compared with the records (verify_sums.c).
 *   4. SQLite checks its b-trees, its free list and its own indexes.
 * The first two read in transactions of at most 50 ms, and judge each row within one of them: commits in between are no
 * damage. The last two need one moment. They read in one transaction, which gives way as soon as somebody waits for a lock; when that
 * has happened VERIFY_ATTEMPTS times they are done on a private copy of the store instead. A store that is both damaged
 * and being written to cannot be copied: then only the first two are done, and the log says so.
 */
#include "verify.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define ATTEMPTS 3
#define TICK_OPS 2000

static const lode_str none = {NULL, 0};

void lode__verify_found(lode__verify *v, const char *what, lode_str collection, lode_str id, const char *format, ...) {
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

typedef struct sweep {
  uint32_t next;
  uint32_t pages;
  unsigned char *page;
} sweep;

static lode_status sweep_slice(lode__verify *v, lode__tx *tx, sweep *s, lode_error *err) {
  lode__truth t;
  TRY(lode__truth_look(tx, &t, err));
  s->pages = t.pages;
  if (s->next == 1 && t.file_pages < t.pages)
    lode__verify_found(v, "file", none, none, "the file is cut short: %u of %u pages are there", t.file_pages, t.pages);
  for (; s->next <= t.pages && s->next <= t.file_pages; s->next++) {
    if (s->next % 16 == 0 && lode__tx_is_old(tx)) return LODE_OK;
    if (s->next == sqf_lock_page(t.page_bytes)) continue;
    lode_status st = lode__truth_read(tx, &t, s->next, s->page, err);
    if (st == LODE_CORRUPT) {
      v->damaged_pages++;
      lode__verify_found(v, "page", none, none, "page %u of %u fails its checksum", s->next, t.pages);
      err_clear(err);
    } else if (st != LODE_OK) {
      return st;
    }
  }
  s->next = t.pages + 1;
  return LODE_OK;
}

/* What is left to do when not even a transaction can begin: nobody else can write then, either. */
static lode_status sweep_without_sqlite(lode__verify *v, lode_error *err) {
  lode__pages p;
  lode_status st = LODE_OK;
  TRY(lode__pages_open(v->db->path, &p, err));
  unsigned char *page = mem_alloc(p.page_bytes);
  if (!page) st = err_nomem(err);
  for (uint32_t n = 1; n <= p.count && st == LODE_OK; n++) {
    lode__page_use use = lode__pages_use(&p, n);
    if (n % 64 == 1) st = lode__progress(v->progress, "pages", n, p.count, err);
    if (use == LODE__USE_LOCK || use == LODE__USE_FREE || lode__pages_read(&p, n, page)) continue;
    v->damaged_pages++;
    lode__verify_found(v, "page", none, none, "page %u of %u fails its checksum", n, p.count);
  }
  mem_free(page);
  lode__pages_close(&p);
  return st;
}

/* *usable = false: SQLite cannot begin a transaction, so there is nothing more to check. */
static lode_status check_pages(lode__verify *v, bool *usable, lode_error *err) {
  lode__tx *tx;
  sweep s = {.next = 1, .pages = UINT32_MAX - 1, .page = mem_alloc(65536)};
  lode_status st = s.page ? LODE_OK : err_nomem(err);
  *usable = true;
  while (st == LODE_OK && s.next <= s.pages) {
    st = lode__progress(v->progress, "pages", s.next - 1, s.pages == UINT32_MAX - 1 ? 0 : s.pages, err);
    if (st == LODE_OK) st = lode__tx_begin(v->db, LODE__READ, &tx, err);
    if (st == LODE_CORRUPT) {
      *usable = false;
      lode__verify_found(v, "file", none, none, "%s", err ? err->text : "the store cannot be read");
      st = sweep_without_sqlite(v, err);
      break;
    }
    if (st != LODE_OK) break;
    st = sweep_slice(v, tx, &s, err);
    lode__tx_rollback(tx);
  }
  mem_free(s.page);
  return st;
}

/* ---- Long reads that give way ---- */

static int on_tick(void *ctx) {
  lode__watch *w = ctx;
  uint64_t now = os_api->now_ns();
  if (!w->is_private && lode__db_others_wait(w->db)) w->interrupted = true;
  if (now - w->told_ns > UINT64_C(100000000)) {
    w->told_ns = now;
    w->cancelled = w->v->progress.step && !w->v->progress.step(w->v->progress.ctx, w->phase, 0, 0);
  }
  return w->interrupted || w->cancelled;
}

void lode__watch_begin(lode__watch *w, sqlite3 *sql) { sqlite3_progress_handler(sql, TICK_OPS, on_tick, w); }
void lode__watch_end(sqlite3 *sql) { sqlite3_progress_handler(sql, 0, NULL, NULL); }

/* ---- SQLite's own check ---- */

/* One fault a string, each with its NUL. */
static void add_faults(strbuf *faults, const char *text) {
  while (*text) {
    size_t len = strcspn(text, "\n");
    if (len > 0 && text[0] != '*' && strncmp(text, "ok", len) != 0) {
      strbuf_add(faults, text, len);
      strbuf_addch(faults, 0);
    }
    text += len + (text[len] != 0);
  }
}

static int integrity_once(sqlite3 *sql, strbuf *faults) {
  sqlite3_stmt *s = NULL;
  faults->len = 0;
  int rc = sqlite3_prepare_v2(sql, "PRAGMA integrity_check(100)", -1, &s, NULL);
  if (rc == SQLITE_OK)
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
      const char *text = (const char *)sqlite3_column_text(s, 0);
      if (text) add_faults(faults, text);
      else faults->failed = true;
    }
  int end = sqlite3_finalize(s);
  return rc == SQLITE_DONE ? SQLITE_OK : rc == SQLITE_OK ? end : rc;
}

/* In want of memory, SQLite reports pages that it could not load as missing: a fault counts when it is seen again. */
int lode__integrity_each(sqlite3 *sql, lode__integrity_fn *line, void *ctx) {
  strbuf faults = {0};
  int rc = integrity_once(sql, &faults);
  if (rc == SQLITE_OK && faults.len) rc = integrity_once(sql, &faults);
  if (faults.failed) rc = SQLITE_NOMEM;
  for (size_t at = 0; rc == SQLITE_OK && at < faults.len; at += strlen(faults.data + at) + 1) line(ctx, faults.data + at);
  strbuf_release(&faults);
  return rc;
}

static void on_fault(void *ctx, const char *line) { lode__verify_found(ctx, "structure", none, none, "%s", line); }

static lode_status check_structure(lode__verify *v, lode__watch *w, lode_error *err) {
  lode__tx *tx;
  lode_status st = LODE_OK;
  TRY(lode__tx_begin(w->db, LODE__READ, &tx, err));
  lode__watch_begin(w, tx->conn->sql);
  int rc = lode__integrity_each(tx->conn->sql, on_fault, v);
  lode__watch_end(tx->conn->sql);
  if (rc != SQLITE_OK) {
    tx->failed = true;
    st = lode__sql_fail(tx->conn, rc, err);
  }
  if (st == LODE_CORRUPT) {
    on_fault(v, err->text);
    err_clear(err);
    st = LODE_OK;
  }
  lode__tx_rollback(tx);
  return st;
}

/* ---- The private copy ---- */

typedef struct private_copy {
  lode__private at;
  lode__db *db;
} private_copy;

static void drop_copy(private_copy *c) {
  lode__db_close(c->db);
  lode__private_drop(&c->at);
  *c = (private_copy){0};
}

static lode_status make_copy(lode__verify *v, private_copy *c, lode_error *err) {
  lode_open_options options = {.read_only = true, .memory_bytes = v->db->opt.memory_bytes};
  TRY(lode__private_make(&c->at, err));
  char *file = lode__path_join(c->at.folder, STOREFILE_DB);
  if (!file) return err_nomem(err);
  lode__db_log(v->db, "%s is in use: what needs one moment is checked on a private copy in %s", v->db->path, c->at.folder);
  lode_status st = lode__private_failed(lode__db_copy(v->db, file, v->progress, err), err);
  mem_free(file);
  TRY(st);
  return lode__db_open(c->at.folder, &options, &c->db, err);
}

/* ---- One moment ---- */

typedef lode_status moment_fn(lode__verify *v, lode__watch *w, lode_error *err);

static lode_status run_moment(lode__verify *v, moment_fn *fn, const char *phase, private_copy *copy, bool *done, lode_error *err) {
  lode_status st = LODE_OK;
  *done = false;
  for (int i = 0; i < (copy->db ? 1 : ATTEMPTS) && !*done; i++) {
    lode__watch w = {.v = v, .db = copy->db ? copy->db : v->db, .phase = phase, .is_private = copy->db != NULL};
    TRY(lode__progress(v->progress, phase, 0, 0, err));
    if (i) os_api->sleep_us(20000);
    st = fn(v, &w, err);
    if (w.cancelled) return err_set(err, LODE_CANCELLED, "cancelled by the caller");
    *done = !w.interrupted;
    if (*done) TRY(st);
  }
  if (!*done) err_clear(err);
  return LODE_OK;
}

static lode_status check_moment(lode__verify *v, lode_error *err) {
  static const struct {
    moment_fn *fn;
    const char *phase;
  } checks[] = {{lode__verify_sums, "counts and indexes"}, {check_structure, "structure"}};
  lode_status st = LODE_OK;
  private_copy copy = {0};
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
    bool done;
    TRY_GOTO(run_moment(v, checks[i].fn, checks[i].phase, &copy, &done, err));
    if (done) continue;
    st = make_copy(v, &copy, err);
    if (st == LODE_CORRUPT && v->n_found) {
      lode__db_log(v->db, "%s is damaged and being written to: its counts, indexes and b-trees were not checked", v->db->path);
      err_clear(err);
      st = LODE_OK;
      goto done;
    }
    if (st != LODE_OK) goto done;
    TRY_GOTO(run_moment(v, checks[i].fn, checks[i].phase, &copy, &done, err));
  }
done:
  drop_copy(&copy);
  return st;
}

lode_status lode__db_verify(lode__db *db, lode_damage_fn *found, void *ctx, lode_progress progress, lode_error *err) {
  lode__verify v = {.db = db, .found = found, .ctx = ctx, .progress = progress};
  lode_error own;
  bool usable;
  if (!err) err = &own; /* findings quote it */
  TRY(check_pages(&v, &usable, err));
  if (usable) TRY(lode__verify_rows(&v, err));
  if (usable) TRY(check_moment(&v, err));
  if (!v.n_found) return LODE_OK;
  return err_set(err, LODE_CORRUPT, "%llu damages were found in %s; `lode db salvage` brings over what is whole",
                    (unsigned long long)v.n_found, db->path);
}
