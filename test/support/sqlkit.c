/* SPDX-License-Identifier: Apache-2.0 */
/* sqlkit.c - see sqlkit.h. */
#include "support/sqlkit.h"

#include "base/byteorder.h"
#include "base/crc32c.h"
#include "support/test.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void sql_blob(sqlite3_context *ctx, int n, sqlite3_value **args) {
  (void)n;
  uint64_t x = (uint64_t)sqlite3_value_int64(args[0]) * 1000003u + (uint64_t)sqlite3_value_int64(args[1]);
  int size = sqlite3_value_int(args[2]);
  unsigned char *out = sqlite3_malloc(size + 1);
  if (!out) {
    sqlite3_result_error_nomem(ctx);
    return;
  }
  for (int i = 0; i < size; i++) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    out[i] = (unsigned char)(x >> 56);
  }
  sqlite3_result_blob(ctx, out, size, sqlite3_free);
}

int kit_exec(sqlite3 *db, const char *sql) {
  int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  return rc == SQLITE_OK ? rc : sqlite3_extended_errcode(db);
}

int kit_try_open(const char *path, unsigned page_bytes, sqlite3 **db) {
  lode_error err = {0};
  char sql[300];
  int reserve = VFS_SEAL_BYTES;
  struct stat st;
  bool is_new = stat(path, &st) < 0 || st.st_size == 0;
  *db = NULL;
  if (vfs_register(&err) != LODE_OK) return SQLITE_NOMEM;
  int rc = sqlite3_open_v2(path, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, VFS_NAME);
  if (rc == SQLITE_OK) rc = sqlite3_extended_result_codes(*db, 1);
  if (rc == SQLITE_OK) rc = sqlite3_file_control(*db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserve);
  if (rc == SQLITE_OK) rc = sqlite3_create_function(*db, "blob", 3, SQLITE_UTF8, NULL, sql_blob, NULL, NULL);
  if (rc != SQLITE_OK) return rc;
  /* the second of these writes, also where it changes nothing */
  snprintf(sql, sizeof sql,
           "PRAGMA page_size=%u; %s PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0;"
           "PRAGMA cache_spill=OFF; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON; PRAGMA journal_mode=TRUNCATE;",
           page_bytes, is_new ? "PRAGMA auto_vacuum=INCREMENTAL;" : "");
  return kit_exec(*db, sql);
}

sqlite3 *kit_open(const char *path, unsigned page_bytes) {
  sqlite3 *db = NULL;
  int rc = kit_try_open(path, page_bytes, &db);
  if (rc != SQLITE_OK) test_failed(__FILE__, __LINE__, "%s: %s (%d)", path, db ? sqlite3_errmsg(db) : "", rc);
  return db;
}

/* Adds up the rows of a query, column by column. */
static int sum_query(sqlite3 *db, const char *sql, uint64_t *sum) {
  sqlite3_stmt *stmt = NULL;
  uint32_t crc = 0, rows = 0;
  int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
  while (rc == SQLITE_OK || rc == SQLITE_ROW) {
    rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW) break;
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
      const void *data = sqlite3_column_blob(stmt, i);
      uint32_t len = (uint32_t)sqlite3_column_bytes(stmt, i);
      if (len && !data)
        rc = SQLITE_NOMEM;
      else
        crc = crc32c_update(crc32c_update_u32(crc, len), data ? data : "", len);
    }
    rows++;
  }
  sqlite3_finalize(stmt);
  *sum = *sum * 31 + ((uint64_t)rows << 32 | crc);
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int kit_sum(sqlite3 *db, uint64_t *sum) {
  *sum = 1;
  int rc = kit_exec(db, "BEGIN");
  if (rc != SQLITE_OK) return rc;
  rc = sum_query(db, "SELECT id, k, v FROM t NOT INDEXED ORDER BY id", sum);
  if (rc == SQLITE_OK) rc = sum_query(db, "SELECT k, id FROM t INDEXED BY tk ORDER BY k", sum);
  if (rc == SQLITE_OK)
    rc = kit_exec(db, "COMMIT");
  else
    kit_exec(db, "ROLLBACK");
  if (rc == SQLITE_OK && *sum == 0) *sum = 1;
  return rc;
}

int kit_sum_file(const char *path, uint64_t *sum) {
  sqlite3 *db = NULL;
  int rc = kit_try_open(path, 512, &db);
  if (rc == SQLITE_OK) rc = kit_sum(db, sum);
  sqlite3_close(db);
  return rc;
}

int kit_sum_read_only(const char *path, uint64_t *sum) {
  sqlite3 *db = NULL;
  lode_error err = {0};
  if (vfs_register(&err) != LODE_OK) return SQLITE_NOMEM;
  int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, VFS_NAME);
  if (rc == SQLITE_OK) rc = kit_sum(db, sum);
  sqlite3_close(db);
  return rc;
}

static int copy_all(sqlite3 *db) {
  sqlite3 *memory = NULL;
  int rc = sqlite3_open(":memory:", &memory);
  if (rc == SQLITE_OK) {
    sqlite3_backup *copy = sqlite3_backup_init(memory, "main", db, "main");
    if (copy) sqlite3_backup_step(copy, -1);
    rc = copy ? sqlite3_backup_finish(copy) : sqlite3_errcode(memory);
  }
  sqlite3_close(memory);
  return rc;
}

void kit_check_sound(sqlite3 *db) {
  sqlite3_stmt *stmt = NULL;
  CHECKF(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &stmt, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
  CHECKF(sqlite3_step(stmt) == SQLITE_ROW, "%s", sqlite3_errmsg(db));
  const char *text = (const char *)sqlite3_column_text(stmt, 0);
  CHECKF(text && strcmp(text, "ok") == 0, "integrity_check: %s", text);
  sqlite3_finalize(stmt);
  int rc = copy_all(db);
  CHECKF(rc == SQLITE_OK, "copying every page: %d, page %u", rc, kit_state(db).damaged_page);
}

/* A connection of its own, which adds up the seals of all pages if there is no map. */
static void check_moment(const char *path) {
  sqlite3 *db = NULL;
  CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, VFS_NAME) == SQLITE_OK);
  kit_check_sound(db);
  CHECK(sqlite3_close(db) == SQLITE_OK);
}

void kit_check_pages(const char *path) {
  size_t len = 0;
  unsigned char *data = (unsigned char *)test_read_file(path, &len);
  CHECK(len >= 512);
  size_t n = (size_t)data[16] << 8 | (size_t)data[17] << 16;
  CHECK(n >= 512 && len % n == 0 && data[20] == VFS_SEAL_BYTES);
  for (size_t i = 0; i < len / n; i++) {
    const unsigned char *page = data + i * n, *tail = page + n - VFS_SEAL_BYTES;
    uint32_t crc = crc32c_update(crc32c_update_u32(0, (uint32_t)i + 1), page, n - VFS_SEAL_BYTES);
    uint32_t number = num_le32(tail + 4);
    if (i > 0) crc = crc32c_update_u32(crc, number);
    CHECKF(num_le32(tail) == crc, "page %zu of %zu", i + 1, len / n);
    CHECK((number == 0) == (i == 0));
  }
  free(data);
  check_moment(path);
}

vfs_file_state kit_state(sqlite3 *db) {
  vfs_file_state state = {0};
  int rc = sqlite3_file_control(db, "main", VFS_FCNTL_STATE, &state);
  CHECKF(rc == SQLITE_OK, "VFS_FCNTL_STATE: %d", rc);
  return state;
}

bool kit_run_and_die(const char *path, unsigned page_bytes, const char *setup, const char *sql, fault_call call,
                     uint64_t at) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    sqlite3 *db = kit_open(path, page_bytes);
    KIT_OK(db, setup);
    fault_install(&os_real);
    fault_set(call, at, false, FAULT_EXIT);
    KIT_OK(db, sql);
    _exit(0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
  CHECKF(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == FAULT_EXIT_STATUS, "status %d", WEXITSTATUS(status));
  return WEXITSTATUS(status) == 0;
}
