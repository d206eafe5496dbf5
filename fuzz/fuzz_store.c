/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_store.c - any bytes as a store: opened for reading, asked, verified and salvaged. Each answers or gives a
 * status; what was salvaged is a whole store.
 *
 * Input: one byte of flags (1: all pages get a valid checksum, so that what comes after that check is reached; 2: and
 * page 1 the root that fits them, where it has one; without, page 1 gets none), four bytes with the length of the
 * journal (little-endian), then the database file, then the journal.
 */
#include "base/byteorder.h"
#include "vfs/vfs_pages.h"
#include "store/store.h"

#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char work[300], copy[300];

/* The page size that the header claims, or 512. */
static void seal(uint8_t *bytes, size_t len, bool keep_root) {
  size_t page = len >= 20 ? (size_t)bytes[16] << 8 | (size_t)bytes[17] << 16 : 0;
  uint64_t root = 0, sum = 0;
  uint32_t number = 0;
  if (page < 512 || page > 65536 || (page & (page - 1))) page = 512;
  if (len < page) return;
  if (keep_root) journal_get_root(bytes, &root, &number);
  for (size_t at = page; at + page <= len; at += page) {
    uint32_t n = (uint32_t)(at / page) + 1;
    const uint8_t *end = bytes + at + page - VFS_SEAL_BYTES;
    vfs_seal_page(n, bytes + at, page, number ? num_le32(end + 4) : 0);
    if (n <= num_be32(bytes + 28)) sum += vfs_map_hash(n, vfs_seal_version(end));
  }
  journal_put_root(bytes, number ? sum : 0, number);
  vfs_seal_page(1, bytes, page, 0);
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
  if (!scratch[0]) {
    scratch_begin();
    scratch_store(work, sizeof work);
    snprintf(copy, sizeof copy, "%s/copy", scratch);
  }
  size_t journal = num_le32(data + 1);
  size_t len = size - 5;
  if (journal > len) journal = 0;
  len -= journal;
  uint8_t *bytes = malloc(len + 1);
  if (!bytes) abort();
  memcpy(bytes, data + 5, len);
  if (data[0] & 1) seal(bytes, len, data[0] & 2);
  scratch_clear();
  scratch_remove("copy");
  scratch_put("lode.db", bytes, len);
  if (journal) scratch_put("lode.db-journal", data + 5 + len, journal);
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
