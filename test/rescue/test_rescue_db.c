/* SPDX-License-Identifier: Apache-2.0 */
/* test_rescue_db.c - chroma.sqlite3 as SQLite leaves it: journals, logs, live writers, read-only folders, drift; check
 * and quarantine. */
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/os.h"
#include "rescue/chroma_dir.h"
#include "support/rescue_help.h"
#include "support/test.h"

/* ---- Side files ---- */

/* A child that dies in the middle of a transaction whose pages have reached the file. */
static void die_writing(const char *folder, const char *pragmas, const char *text) {
  int status;
  pid_t pid = fork();
  if (pid == 0) {
    char path[400];
    sqlite3 *db = NULL;
    snprintf(path, sizeof path, "%s/chroma/chroma.sqlite3", folder);
    if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_exec(db, pragmas, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
      _exit(1);
    _exit(0); /* without closing */
  }
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static bool there(const char *folder, const char *name) {
  char path[400];
  struct stat sb;
  snprintf(path, sizeof path, "%s/chroma/%s", folder, name);
  return stat(path, &sb) == 0 && sb.st_size > 0;
}

TEST(a_hot_journal_is_rolled_back_in_memory) {
  lode_error err;
  rescue_outcome o;
  const char *folder = rescue_unpack("1.5.9");
  char path[400];
  size_t before, after;
  /* a cache of few pages spills changed pages into the file before any commit */
  die_writing(folder, "pragma cache_size=1; pragma cache_spill=1",
              "begin; delete from embedding_metadata; update embeddings set embedding_id = embedding_id || 'x'; "
              "delete from embeddings_queue; update collections set name = name || 'x'");
  CHECK(there(folder, "chroma.sqlite3-journal"));
  snprintf(path, sizeof path, "%s/chroma/chroma.sqlite3-journal", folder);
  char *journal = test_read_file(path, &before);
  OK(rescue_run(folder, NULL, &o, &err));
  rescue_check_whole(&o);
  char *again = test_read_file(path, &after); /* nothing was written: it is still there, as it was */
  CHECK(before == after && memcmp(journal, again, before) == 0);
  free(journal);
  free(again);
}

TEST(a_write_ahead_log_counts_up_to_its_last_commit) {
  lode_error err;
  rescue_outcome o;
  const char *folder = rescue_unpack("1.5.9");
  die_writing(folder, "pragma journal_mode=wal; pragma wal_autocheckpoint=0; pragma cache_size=1",
              "update embeddings set created_at = '2026-01-01'; begin; delete from embedding_metadata; delete from "
              "embeddings_queue; "
              "update embeddings set embedding_id = embedding_id || 'x'");
  CHECK(there(folder, "chroma.sqlite3-wal"));
  OK(rescue_run(folder, NULL, &o, &err));
  rescue_check_whole(&o);
  /* and what is committed in it is seen */
  folder = rescue_unpack("1.5.9");
  die_writing(folder, "pragma journal_mode=wal; pragma wal_autocheckpoint=0",
              "delete from embeddings where embedding_id = 'r001'");
  OK(rescue_run(folder, NULL, &o, &err));
  CHECK(o.absent == 4 && o.wrong_text == 0 && o.wrong_vector == 0);
}

/* ---- In use, read-only ---- */

TEST_SLOW(a_directory_in_use_is_read_between_commits, 120) {
  lode_error err;
  const char *folder = rescue_unpack("1.5.9");
  char path[400];
  snprintf(path, sizeof path, "%s/chroma/chroma.sqlite3", folder);
  pid_t pid = fork();
  if (pid == 0) { /* commits without pause, never changing what is expected */
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK) _exit(1);
    sqlite3_busy_timeout(db, 60000);
    for (;;)
      if (sqlite3_exec(db,
                       "begin immediate; update embeddings set created_at = datetime('now'); update embeddings_queue "
                       "set encoding = encoding; commit",
                       NULL, NULL, NULL) != SQLITE_OK)
        sqlite3_exec(db, "rollback", NULL, NULL, NULL);
  }
  CHECK(pid > 0);
  int good = 0;
  for (int i = 0; i < 6; i++) {
    rescue_outcome o;
    lode_status st = rescue_run(folder, NULL, &o, &err);
    CHECKF(st == LODE_OK || st == LODE_BUSY, "%s: %s", lode_status_name(st), err.text);
    if (st != LODE_OK) continue;
    rescue_check_whole(&o);
    good++;
  }
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  CHECKF(good > 0, "never between two commits");
}

static int refuse_writes(const char *path, int flags, unsigned mode) {
  if ((flags & O_ACCMODE) != O_RDONLY && strstr(path, "/chroma/")) {
    errno = EROFS;
    return -1;
  }
  return os_real.open(path, flags, mode);
}
static int refuse_rename(const char *from, const char *to) {
  if (!strstr(from, "/chroma/")) return os_real.rename(from, to);
  errno = EROFS;
  return -1;
}
static int no_locks(int fd, short type, off_t start, off_t len) {
  char link[64], path[400];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  path[n > 0 ? n : 0] = 0;
  if (!strstr(path, "/chroma/")) return os_real.lock(fd, type, start, len);
  errno = ENOLCK;
  return -1;
}

TEST(a_read_only_folder_without_locks_is_enough) {
  static os_calls table;
  lode_error err;
  rescue_outcome o;
  const char *folder = rescue_unpack("0.6.3");
  table = os_real;
  table.open = refuse_writes;
  table.rename = refuse_rename;
  table.lock = no_locks;
  os_api = &table;
  OK(rescue_run(folder, NULL, &o, &err));
  rescue_check_whole(&o);
}

/* Every read fails in turn: an error or a smaller harvest that says so, never a crash. */
static int fail_at, reads;
static ssize_t failing_pread(int fd, void *buf, size_t n, off_t off) {
  if (++reads == fail_at) {
    errno = EIO;
    return -1;
  }
  return os_real.pread(fd, buf, n, off);
}
static bool failing_alloc(void) { return ++reads != fail_at; }

static lode_status count_records(void *ctx, const rescue_counts *n, lode_error *err) {
  (void)err;
  *(uint64_t *)ctx += n->records;
  return LODE_OK;
}

TEST_SLOW(reads_and_allocations_may_fail_at_any_call, 240) {
  static os_calls table;
  lode_error err;
  char from[400];
  uint64_t records = 0;
  snprintf(from, sizeof from, "%s/chroma", rescue_unpack("1.5.9"));
  rescue_request q = {.from = from, .collection = count_records, .ctx = &records};
  table = os_real;
  table.pread = failing_pread;
  os_api = &table;
  for (int kind = 0; kind < 2; kind++) {
    fail_at = 0;
    reads = 0;
    if (kind) os_api = &os_real, mem_alloc_hook = failing_alloc;
    OK(rescue_from_chroma(&q, &err));
    int all = reads;
    CHECK(all > 100);
    for (fail_at = 1; fail_at <= all; fail_at += test_full() ? 1 : 1 + (int)test_below((uint64_t)all / 60 + 1)) {
      reads = 0;
      lode_status st = rescue_from_chroma(&q, &err);
      if (kind)
        CHECKF(st == LODE_OK || st == LODE_NOMEM, "call %d: %s", fail_at, lode_status_name(st));
      else
        CHECKF(st == LODE_OK || st == LODE_CORRUPT || st == LODE_BUSY || st == LODE_IO, "call %d: %s", fail_at,
               lode_status_name(st));
    }
  }
  mem_alloc_hook = NULL;
}

/* ---- Drift ---- */

typedef struct findings {
  char text[8000];
  int damages;
} findings;

static lode_status found(void *ctx, const char *what, bool damage, lode_str collection, const char *detail,
                         lode_error *err) {
  findings *f = ctx;
  size_t n = strlen(f->text);
  (void)err;
  f->damages += damage;
  snprintf(f->text + n, sizeof f->text - n, "%s|%.*s|%s\n", what, (int)collection.len,
           collection.data ? collection.data : "", detail);
  return LODE_OK;
}

static void check(const char *folder, findings *f, rescue_check_report *r) {
  char from[400];
  lode_error err;
  snprintf(from, sizeof from, "%s/chroma", folder);
  *f = (findings){0};
  rescue_check_request q = {.from = from, .found = found, .ctx = f};
  OK(rescue_check(&q, r, &err));
}

static void put_le(FILE *f, uint64_t v, int bytes) {
  for (int i = 0; i < bytes; i++) fputc((int)(v >> (8 * i) & 0xff), f);
}
static void put_key(FILE *f, const char *text) {
  fputc('X', f);
  put_le(f, strlen(text), 4);
  fputs(text, f);
}

/* An index of `n` elements as 1.x writes it: dimension 4, M 16, labels 1, 2, ... of ids d0, d1, ... */
static void write_index(const char *segment, int n) {
  char path[500], id[32];
  CHECK(mkdir(segment, 0700) == 0);
  snprintf(path, sizeof path, "%s/header.bin", segment);
  FILE *f = fopen(path, "w");
  CHECK(f);
  uint64_t fields[] = {0, (uint64_t)n, (uint64_t)n, 156, 148, 132};
  put_le(f, 1, 4);
  for (int i = 0; i < 6; i++) put_le(f, fields[i], 8);
  put_le(f, 0, 4);
  put_le(f, 0, 4);
  put_le(f, 16, 8), put_le(f, 32, 8), put_le(f, 16, 8), put_le(f, 0, 8), put_le(f, 100, 8);
  fclose(f);
  snprintf(path, sizeof path, "%s/data_level0.bin", segment);
  CHECK((f = fopen(path, "w")));
  for (int i = 0; i < n; i++) {
    float v[4] = {(float)i, 1, 2, 3};
    for (int k = 0; k < 132; k++) fputc(k < 4 ? 0 : 0xee, f);
    fwrite(v, sizeof v, 1, f);
    put_le(f, (uint64_t)i + 1, 8);
  }
  fclose(f);
  snprintf(path, sizeof path, "%s/index_metadata.pickle", segment);
  CHECK((f = fopen(path, "w")));
  fputs("\x80\x03}(", f);
  put_key(f, "id_to_label");
  fputs("}(", f);
  for (int i = 0; i < n; i++) {
    snprintf(id, sizeof id, "d%d", i);
    put_key(f, id);
    fputc('J', f);
    put_le(f, (uint64_t)i + 1, 4);
  }
  fputs("u", f);
  put_key(f, "label_to_id");
  fputs("}(", f);
  for (int i = 0; i < n; i++) {
    snprintf(id, sizeof id, "d%d", i);
    fputc('J', f);
    put_le(f, (uint64_t)i + 1, 4);
    put_key(f, id);
  }
  fputs("uu.", f);
  fclose(f);
}

/* The report that began it: an index that claims 2,349 more elements than SQLite has rows. Made by hand after the
 * formats. */
TEST_SLOW(drift_of_2349_is_named_and_costs_nothing, 60) {
  enum { ROWS = 3000, DRIFT = 2349 };
  const char *folder = rescue_unpack("1.5.9");
  char segment[400], from[400], text[600];
  findings f;
  rescue_check_report r;
  lode_error err;
  snprintf(segment, sizeof segment, "%s/chroma/aaaaaaaa-0000-0000-0000-000000000001", folder);
  write_index(segment, ROWS + DRIFT);
  rescue_sql(folder, "insert into collections(id,name,dimension,database_id,config_json_str) "
                     "values('cccccccc-0000-0000-0000-000000000001','palace',4,"
                     "'00000000-0000-0000-0000-000000000000','{\"hnsw\":{\"space\":\"l2\"}}');"
                     "insert into segments "
                     "values('aaaaaaaa-0000-0000-0000-000000000001','urn:chroma:segment/vector/"
                     "hnsw-local-persisted','VECTOR','cccccccc-0000-0000-0000-000000000001');"
                     "insert into segments "
                     "values('bbbbbbbb-0000-0000-0000-000000000001','urn:chroma:segment/metadata/"
                     "sqlite','METADATA','cccccccc-0000-0000-0000-000000000001')");
  snprintf(text, sizeof text,
           "with recursive n(i) as (select 0 union all select i+1 from n where i < %d) insert into "
           "embeddings(segment_id,embedding_id,seq_id) "
           "select 'bbbbbbbb-0000-0000-0000-000000000001', 'd' || i, 1000000 + i from n",
           ROWS - 1);
  rescue_sql(folder, text);
  check(folder, &f, &r);
  CHECKF(strstr(f.text, "drift|palace|the index claims 2349 ids that the database does not have"), "%s", f.text);
  CHECK(r.records == 102 + ROWS && r.missing == 0);
  snprintf(from, sizeof from, "%s/chroma", folder);
  lode_store *store = NULL;
  uint64_t records = 0, n = 0;
  OK(lode_open(test_folder(), &(lode_open_options){.create = true, .no_background = true}, &store, &err));
  rescue_request q = {.from = from, .to = store, .collection = count_records, .ctx = &records};
  OK(rescue_from_chroma(&q, &err));
  lode_collection *c = NULL;
  OK(lode_collection_open(store, STR_LIT("palace"), &(lode_collection_options){0}, &c, &err));
  OK(lode_count(c, &n, &err));
  CHECK(n == ROWS && records == 102 + ROWS);
  float want[4] = {2999, 1, 2, 3};
  lode_result *rows = NULL;
  lode_query_request nearest = {.vectors = want, .dimension = 4, .n = 1, .k = 1};
  OK(lode_query(c, &nearest, &rows, &err));
  CHECK(lode_result_count(rows) == 1 && lode_result_at(rows, 0)->distance == 0 &&
        str_eq(lode_result_at(rows, 0)->id, STR_LIT("d2999")));
  lode_result_free(rows);
  lode_collection_close(c);
  lode_close(store);
}

/* ---- Check ---- */

TEST(sound_directories_have_nothing_wrong) {
  findings f;
  rescue_check_report r;
  for (size_t i = 0; rescue_fixtures[i]; i++) {
    check(rescue_unpack(rescue_fixtures[i]), &f, &r);
    CHECKF(f.damages == 0 && r.missing == 0 && r.records >= 102, "%s: %s", rescue_fixtures[i], f.text);
  }
}

/* As a server leaves it that was ended between two writes of its index: the rows are gone, the index does not know yet.
 */
TEST(deletions_on_their_way_are_no_drift) {
  findings f;
  rescue_check_report r;
  const char *folder = rescue_unpack("1.5.9");
  rescue_sql(folder, "insert into embeddings_queue(operation, topic, id) select 3, 'persistent://default/default/' || "
                     "id, 'r010' from collections where name = 'by-l2';"
                     "delete from embeddings where embedding_id = 'r010' and segment_id in (select s.id from segments "
                     "s join collections c on s.collection = c.id where c.name = 'by-l2');"
                     "update max_seq_id set seq_id = (select max(seq_id) from embeddings_queue) where segment_id in"
                     " (select s.id from segments s join collections c on s.collection = c.id where c.name = 'by-l2' "
                     "and s.scope = 'METADATA')");
  check(folder, &f, &r);
  CHECKF(f.damages == 0, "%s", f.text);
  rescue_sql(folder, "delete from embeddings_queue where id = 'r010' and operation = 3");
  check(folder, &f, &r);
  CHECKF(f.damages && strstr(f.text, "drift|by-l2|the index claims 1 ids"), "%s", f.text);
}

TEST(check_names_what_is_damaged) {
  findings f;
  rescue_check_report r;
  char path[400], segment[300];
  const char *folder = rescue_unpack("1.5.9");
  rescue_segment(folder, "by-ip", segment, sizeof segment);
  snprintf(path, sizeof path, "%s/index_metadata.pickle", segment);
  test_write_file(path, "corrupted", 9);
  snprintf(path, sizeof path, "%s/header.bin", segment);
  test_write_file(path, "", 0);
  rescue_segment(folder, "by-cosine", segment, sizeof segment);
  snprintf(path, sizeof path, "%s/length.bin", segment);
  CHECK(unlink(path) == 0);
  rescue_sql(folder, "update max_seq_id set seq_id = 1229822654365970487 where segment_id = (select s.id from segments "
                     "s join collections c on c.id = s.collection "
                     "where c.name = 'by-l2' and s.scope = 'METADATA')");
  check(folder, &f, &r);
  CHECKF(strstr(f.text, "index|by-ip|header.bin is damaged") &&
             strstr(f.text, "pickle|by-ip|index_metadata.pickle is damaged") &&
             strstr(f.text, "index|by-cosine|length.bin is damaged") &&
             strstr(f.text, "sequence ids|by-l2|max_seq_id is past anything"),
         "%s", f.text);
  CHECK(r.missing == 0);
}

/* Chroma goes on with such an index and finds less; the queue of 0.4 still holds every vector. */
TEST(overwritten_elements_are_named_even_where_nothing_is_lost) {
  findings f;
  rescue_check_report r;
  char path[400], segment[300];
  size_t len;
  const char *folder = rescue_unpack("0.4.24");
  rescue_segment(folder, "by-l2", segment, sizeof segment);
  snprintf(path, sizeof path, "%s/data_level0.bin", segment);
  char *bytes = test_read_file(path, &len);
  memset(bytes, 0, 156 * 3); /* dimension 4, M 16 */
  test_write_file(path, bytes, len);
  free(bytes);
  check(folder, &f, &r);
  CHECKF(strstr(f.text, "index|by-l2|3 elements of data_level0.bin have no label"), "%s", f.text);
  CHECK(r.missing == 0);
}

/* A poisoned position hides what came after it from Chroma; it does not from a rescue. */
TEST(a_poisoned_position_hides_nothing) {
  lode_error err;
  rescue_outcome o;
  const char *folder = rescue_unpack("1.5.9");
  rescue_sql(folder, "update max_seq_id set seq_id = 1229822654365970487");
  OK(rescue_run(folder, NULL, &o, &err));
  rescue_check_whole(&o);
}

/* ---- Quarantine ---- */

static int steps;
static lode_status step_done(void *ctx, const char *what, const char *path, const char *became, lode_error *err) {
  (void)ctx, (void)err;
  CHECK(what && path && became);
  steps++;
  return LODE_OK;
}

static int count_of(const char *folder, const char *query) {
  char path[400];
  sqlite3 *db = NULL;
  sqlite3_stmt *s = NULL;
  snprintf(path, sizeof path, "%s/chroma/chroma.sqlite3", folder);
  CHECK(sqlite3_open(path, &db) == SQLITE_OK && sqlite3_prepare_v2(db, query, -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW);
  int n = sqlite3_column_int(s, 0);
  sqlite3_finalize(s);
  sqlite3_close(db);
  return n;
}

TEST(blobs_become_integers_and_the_old_database_stays) {
  lode_error err;
  rescue_outcome o;
  rescue_quarantine_report r;
  const char *folder = rescue_unpack("0.6.3-1.5.9");
  char from[400], path[700];
  size_t len, len_now;
  snprintf(from, sizeof from, "%s/chroma", folder);
  snprintf(path, sizeof path, "%s/chroma/chroma.sqlite3", folder);
  char *before = test_read_file(path, &len);
  CHECK(count_of(folder, "select count(*) from embeddings where typeof(seq_id) = 'blob'") > 50);
  rescue_quarantine_request q = {
      .from = from, .stale_seconds = 1u << 30, .fix_seq_ids = true, .dry_run = true, .done = step_done};
  OK(rescue_quarantine(&q, &r, &err));
  CHECK(r.seq_ids > 50 && steps == 1);
  char *now = test_read_file(path, &len_now);
  CHECK(len == len_now && memcmp(before, now, len) == 0);
  free(now);
  q.dry_run = false;
  OK(rescue_quarantine(&q, &r, &err));
  CHECK(count_of(folder, "select count(*) from embeddings where typeof(seq_id) <> 'integer'") == 0);
  CHECK(count_of(folder, "select count(*) from pragma_integrity_check where integrity_check = 'ok'") == 1);
  CHECK(count_of(folder, "select min(seq_id) from embeddings") > 0 &&
        count_of(folder, "select max(seq_id) from embeddings") < 1000);
  int kept = 0;
  os_dir *all = os_dir_open(from);
  for (const char *name; all && (name = os_dir_next(all));)
    if (strncmp(name, "chroma.sqlite3.before-", 22) == 0) {
      snprintf(path, sizeof path, "%s/%s", from, name);
      now = test_read_file(path, &len_now);
      kept += len == len_now && memcmp(before, now, len) == 0;
      free(now);
    }
  if (all) os_dir_close(all);
  CHECK(kept == 1);
  OK(rescue_run(folder, NULL, &o, &err));
  rescue_check_whole(&o);
  OK(rescue_quarantine(&q, &r, &err)); /* once more: nothing to do */
  CHECK(r.seq_ids == 0);
  free(before);
  const char *old = rescue_unpack("0.6.3"); /* of its own era: it wants them as they are */
  snprintf(from, sizeof from, "%s/chroma", old);
  FAILS(LODE_REFUSED, rescue_quarantine(&q, &r, &err));
}

TEST(stale_indexes_are_renamed_and_nothing_is_lost) {
  lode_error err;
  rescue_outcome o;
  rescue_quarantine_report r;
  const char *folder = rescue_unpack("1.5.9");
  char from[400], segment[300], path[400];
  snprintf(from, sizeof from, "%s/chroma", folder);
  rescue_segment(folder, "by-l2", segment, sizeof segment);
  snprintf(path, sizeof path, "%s/data_level0.bin", segment);
  struct timespec old[2] = {{1600000000, 0}, {1600000000, 0}};
  CHECK(utimensat(AT_FDCWD, path, old, 0) == 0);
  rescue_quarantine_request q = {.from = from, .stale_seconds = 3600, .done = step_done};
  OK(rescue_quarantine(&q, &r, &err));
  CHECK(r.set_aside == 1 && r.kept >= 2 && access(segment, F_OK) != 0);
  OK(rescue_run(folder, NULL, &o, &err));
  CHECK(o.no_vector == 0 && o.wrong_vector == 0 && o.absent == 0 && o.told > 0);
}

TEST(a_database_in_use_is_not_touched) {
  lode_error err;
  rescue_quarantine_report r;
  const char *folder = rescue_unpack("0.6.3-1.5.9");
  char from[400], path[400];
  int ready[2];
  snprintf(from, sizeof from, "%s/chroma", folder);
  snprintf(path, sizeof path, "%s/chroma/chroma.sqlite3", folder);
  CHECK(pipe(ready) == 0);
  pid_t pid = fork();
  if (pid == 0) {
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db, "begin; select count(*) from embeddings", NULL, NULL, NULL) != SQLITE_OK)
      _exit(1);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char c;
  CHECK(pid > 0 && read(ready[0], &c, 1) == 1);
  rescue_quarantine_request q = {.from = from, .fix_seq_ids = true, .stale_seconds = 0, .done = step_done};
  lode_status st = rescue_quarantine(&q, &r, &err);
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  CHECKF(st == LODE_BUSY, "%s", lode_status_name(st));
  CHECK(steps == 0);
}
