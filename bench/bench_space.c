/* SPDX-License-Identifier: Apache-2.0 */
/* bench_space.c - where the bytes of a store are: by table of the database file, and by section of its segments.
 *
 *   bench_space FOLDER
 *
 * For each table and index: pages, bytes, the bytes of its rows, and the free ones on its pages (dbstat, which SQLite
 * must have been built with). For all segments together: bytes of each section. The store is only read; nobody should
 * write to it meanwhile.
 */
#include <dirent.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/segment.h"

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void fail(const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  vfprintf(stderr, format, ap);
  va_end(ap);
  fputc('\n', stderr);
  exit(1);
}

static void print_row(const char *part, const char *name, double bytes, double used, double all) {
  printf("%-9s %-26s %12.0f %12.0f %6.2f %%\n", part, name, bytes, used, all > 0 ? 100 * bytes / all : 0);
}

/* ---- The database file ---- */

static double scalar(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = NULL;
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK || sqlite3_step(s) != SQLITE_ROW)
    fail("%s: %s", sql, sqlite3_errmsg(db));
  double value = sqlite3_column_double(s, 0);
  (void)sqlite3_finalize(s);
  return value;
}

static void print_tables(sqlite3 *db, double all) {
  sqlite3_stmt *s = NULL;
  const char *sql = "SELECT name, sum(pgsize), sum(payload) FROM dbstat GROUP BY name ORDER BY 2 DESC";
  double sum = 0, page = scalar(db, "PRAGMA page_size");
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
    fail("%s (this SQLite was built without SQLITE_ENABLE_DBSTAT_VTAB)", sqlite3_errmsg(db));
  while (sqlite3_step(s) == SQLITE_ROW) {
    sum += sqlite3_column_double(s, 1);
    print_row("lode.db", (const char *)sqlite3_column_text(s, 0), sqlite3_column_double(s, 1),
              sqlite3_column_double(s, 2), all);
  }
  (void)sqlite3_finalize(s);
  double unused = scalar(db, "PRAGMA freelist_count") * page;
  print_row("lode.db", "(free pages)", unused, 0, all);
  print_row("lode.db", "(other pages)", scalar(db, "PRAGMA page_count") * page - sum - unused, 0, all);
}

/* ---- Segments ---- */

typedef struct sections {
  uint64_t bytes[INDEX_SEG_SECTIONS];
  uint64_t rows, total;
} sections;

static void add_segment(const char *path, sections *sum) {
  unsigned char header[INDEX_PAGE_BYTES];
  index_segment_info info;
  index_segment_layout layout;
  lode_error err;
  FILE *f = fopen(path, "rb");
  if (!f || fread(header, sizeof header, 1, f) != 1 || fseek(f, 0, SEEK_END) != 0) fail("%s cannot be read", path);
  if (index_segment_get_header(header, (uint64_t)ftell(f), &info, &err) != LODE_OK) fail("%s: %s", path, err.text);
  (void)fclose(f);
  if (!index_segment_layout_of(&info, &layout)) fail("%s: layout", path);
  for (size_t i = 0; i < INDEX_SEG_SECTIONS; i++) sum->bytes[i] += layout.bytes[i];
  sum->rows += info.n;
  sum->total += layout.total;
}

static void sum_segments(const char *folder, sections *sum) {
  char name[4096], path[4096];
  if (snprintf(name, sizeof name, "%s/segments", folder) >= (int)sizeof name) fail("FOLDER is too long");
  DIR *dir = opendir(name);
  for (const struct dirent *e; dir && (e = readdir(dir));) {
    const char *dot = strrchr(e->d_name, '.');
    if (!dot || strcmp(dot, ".seg") != 0) continue;
    if (snprintf(path, sizeof path, "%s/%s", name, e->d_name) >= (int)sizeof path) fail("FOLDER is too long");
    add_segment(path, sum);
  }
  if (dir) (void)closedir(dir);
}

int main(int argc, char **argv) {
  static const char *const names[INDEX_SEG_SECTIONS] = {"vectors", "mean",     "codes",   "low bits",
                                                        "links",   "ordinals", "records", "checksums"};
  char path[4096];
  sqlite3 *db = NULL;
  sections sum = {0};
  if (argc != 2) fail("usage: bench_space FOLDER");
  if (snprintf(path, sizeof path, "%s/lode.db", argv[1]) >= (int)sizeof path) fail("FOLDER is too long");
  if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) fail("%s: %s", path, sqlite3_errmsg(db));
  sum_segments(argv[1], &sum);
  double file = scalar(db, "PRAGMA page_count") * scalar(db, "PRAGMA page_size"), all = file + (double)sum.total;
  printf("%-9s %-26s %12s %12s %8s\n", "file", "part", "bytes", "of rows", "share");
  print_tables(db, all);
  for (size_t i = 0; i < INDEX_SEG_SECTIONS; i++)
    print_row("segments", names[i], (double)sum.bytes[i], (double)sum.bytes[i], all);
  print_row("all", "", all, 0, all);
  printf("%" PRIu64 " rows in segments\n", sum.rows);
  (void)sqlite3_close(db);
  return 0;
}
