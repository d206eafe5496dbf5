/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_store.c - any bytes as a store: opened for reading, asked, verified and salvaged. Each answers or gives a
 * status; what was salvaged is a whole store.
 *
 * Input: one byte of flags (1: all pages get a valid checksum, so that what lies behind it is reached), four bytes with
 * the length of the journal (little-endian), then the truth file, then the journal.
 */
#include "store/truth_pages.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[200], work[220], copy[220];

static void in_folder(char *path, size_t bytes, const char *in, const char *name) {
  snprintf(path, bytes, "%s/%s", in, name);
}

static void clear(const char *in) {
  static const char *const names[] = {"lode.db", "lode.db-journal", "lode.lock"};
  char path[300];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    in_folder(path, sizeof path, in, names[i]);
    unlink(path);
  }
  rmdir(in);
}

static void clean_up(void) {
  clear(copy);
  clear(work);
  rmdir(folder);
}

static int no_sync(int fd) {
  (void)fd;
  return 0;
}

static void prepare(void) {
  static os_calls table;
  const char *tmp = getenv("TMPDIR");
  if (folder[0]) return;
  table = os_real;
  table.fsync = table.fdatasync = no_sync;
  os_api = &table;
  snprintf(folder, sizeof folder, "%.150s/lode-fuzz-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!mkdtemp(folder)) abort();
  in_folder(work, sizeof work, folder, "work");
  in_folder(copy, sizeof copy, folder, "copy");
  atexit(clean_up);
}

static void write_file(const char *name, const void *bytes, size_t len) {
  char path[300];
  in_folder(path, sizeof path, work, name);
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(bytes, 1, len, f) != len || fclose(f) != 0) abort();
}

/* The page size that the header claims, or 512. */
static void seal(uint8_t *bytes, size_t len) {
  size_t page = len >= 20 ? (size_t)bytes[16] << 8 | (size_t)bytes[17] << 16 : 0;
  if (page < 512 || page > 65536 || (page & (page - 1))) page = 512;
  for (size_t at = 0; at + page <= len; at += page) vfs_page_seal((uint32_t)(at / page) + 1, bytes + at, page);
}

static void on_damage(void *ctx, const lode_damage *d) {
  size_t *bytes = ctx;
  *bytes += strlen(d->what) + strlen(d->detail) + d->id.len + d->collection.len; /* all of it can be read */
}

static void ask(lode_store *store) {
  lode_collection_list *list = NULL;
  lode_error err;
  if (lode_collections(store, &list, &err) != LODE_OK) return;
  for (size_t i = 0; i < lode_collection_list_count(list) && i < 4; i++) {
    lode_collection *c = NULL;
    lode_result *rows = NULL;
    uint64_t n;
    if (lode_collection_open(store, lode_collection_list_at(list, i)->name, NULL, &c, &err) != LODE_OK) continue;
    (void)!lode_count(c, &n, &err);
    if (lode_get(c, &(lode_get_request){.include = LODE_ALL, .limit = 50}, &rows, &err) == LODE_OK)
      lode_result_free(rows);
    lode_str text = STR_LIT("document");
    lode_query_request q = {.mode = LODE_BY_TEXT, .texts = &text, .n = 1, .k = 5};
    if (lode_query(c, &q, &rows, &err) == LODE_OK) lode_result_free(rows);
    lode_collection_close(c);
  }
  lode_collection_list_free(list);
}

static void check_salvaged(void) {
  lode_store *store = NULL;
  lode_error err = {0};
  size_t bytes = 0;
  if (lode_open(copy, &(lode_open_options){.no_background = true, .read_only = true}, &store, &err) != LODE_OK) abort();
  if (lode_verify(store, on_damage, &bytes, (lode_progress){0}, &err) != LODE_OK) abort();
  lode_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lode_store *store = NULL;
  lode_error err = {0};
  lode_salvage_report report;
  size_t seen = 0;
  if (size < 5) return 0;
  prepare();
  size_t journal = (size_t)data[1] | (size_t)data[2] << 8 | (size_t)data[3] << 16 | (size_t)data[4] << 24;
  size_t len = size - 5;
  if (journal > len) journal = 0;
  len -= journal;
  uint8_t *bytes = malloc(len + 1);
  if (!bytes) abort();
  memcpy(bytes, data + 5, len);
  if (data[0] & 1) seal(bytes, len);
  clear(work);
  clear(copy);
  if (os_api->mkdir(work, 0700) != 0) abort();
  write_file("lode.db", bytes, len);
  if (journal) write_file("lode.db-journal", data + 5 + len, journal);
  free(bytes);
  lode_open_options o = {.read_only = true, .no_background = true, .memory_bytes = 16u << 20, .busy_ms = 10};
  if (lode_open(work, &o, &store, &err) == LODE_OK) {
    ask(store);
    (void)!lode_verify(store, on_damage, &seen, (lode_progress){0}, &err);
    lode_close(store);
  }
  if (lode_salvage(work, copy, on_damage, &seen, (lode_progress){0}, &report, &err) == LODE_OK) check_salvaged();
  return 0;
}
