/* SPDX-License-Identifier: Apache-2.0 */
/* test_compact.c - a store never grows by being compacted, whatever was done to it before, and nothing of it changes.
 */
#include "segments/segment_build.h"
#include "support/scene.h"
#include "support/test.h"

#define S(text) ((lode_str){text, sizeof(text) - 1})
enum { DIM = 6, MOST = 400 };

/* Without the page map, which gets a record with every commit. */
static uint64_t bytes_of(lode_store *store, const char *folder) {
  char map[500];
  struct stat sb;
  lode_stats stats;
  lode_error err = {0};
  OK(lode_store_stats(store, &stats, &err));
  snprintf(map, sizeof map, "%s/lode.pages", folder);
  return stats.bytes - (stat(map, &sb) == 0 ? (uint64_t)sb.st_size : 0);
}

static void put(lode_collection *c, size_t from, size_t n, size_t words) {
  static const char *const word[] = {"alpha", "beta", "gamma", "delta", "getUserName", "snake_case", "file.c"};
  lode_error err = {0};
  for (size_t i = 0; i < n; i++) {
    char id[32], meta[64], text[4000];
    float v[DIM];
    size_t len = 0;
    snprintf(id, sizeof id, "r%06zu", (from + i) % MOST);
    snprintf(meta, sizeof meta, "{\"n\":%zu,\"k\":\"v%d\"}", from + i, (int)test_below(20));
    for (size_t w = 0; w < words; w++)
      len += (size_t)snprintf(text + len, sizeof text - len, "%s%d ", word[test_below(7)], (int)test_below(300));
    for (int d = 0; d < DIM; d++) v[d] = (float)test_below(1000);
    lode_record r = {.id = {id, strlen(id)},
                     .document = {text, len},
                     .metadata = {meta, strlen(meta)},
                     .vector = v,
                     .dimension = DIM};
    OK(lode_upsert(c, NULL, &r, 1, NULL, &err));
  }
}

static void drop_some(lode_collection *c) {
  char where[80];
  lode_error err = {0};
  snprintf(where, sizeof where, "{\"k\":{\"$in\":[\"v%d\",\"v%d\",\"v%d\"]}}", (int)test_below(20), (int)test_below(20),
           (int)test_below(20));
  OK(lode_delete(c, NULL, &(lode_selection){.where = {where, strlen(where)}}, NULL, &err));
}

/* Words of deleted documents leave the text index by a merge. In pages as small as its own blobs (some 4,000 bytes),
 * what it then is may be rounded up to a page more than what it was; in those of the default size it is not. */
static void compact(lode_store *store, const char *folder, const char *when) {
  lode_error err = {0};
  uint64_t content = scene_content(folder), before = bytes_of(store, folder);
  OK(lode_compact(store, (lode_progress){0}, &err));
  uint64_t after = bytes_of(store, folder);
  lode_stats stats;
  OK(lode_store_stats(store, &stats, &err));
  uint64_t rounding = stats.page_bytes < 16384 ? stats.page_bytes : 0;
  CHECKF(after <= before + rounding, "%s: %llu bytes, then %llu", when, (unsigned long long)before,
         (unsigned long long)after);
  /* the page map is as long as the store was when it was made, and records of at most a 16th of that, or 64 KiB */
  uint64_t map = stats.bytes - after, most = before / stats.page_bytes * 9 + 160000;
  CHECKF(map <= most, "%s: a map of %llu bytes", when, (unsigned long long)map);
  CHECKF(scene_content(folder) == content, "%s: the content has changed", when);
}

static void play(uint32_t page_bytes, bool segments, int rounds) {
  char folder[400];
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  if (segments) segments_limits = (segments_build_limits){.tail_rows = 40, .graph_rows = 100, .dead_percent = 50};
  OK(lode_open(folder, &(lode_open_options){.create = true, .no_background = true, .page_bytes = page_bytes}, &store,
               &err));
  OK(lode_collection_open(store, S("c"), &(lode_collection_options){.create = true}, &c, &err));
  compact(store, folder, "empty");
  for (int round = 0; round < rounds; round++) {
    put(c, test_below(MOST), 1 + test_below(round % 3 ? 60 : 200), test_below(60));
    if (test_below(2)) OK(lode_optimize(store, (lode_progress){0}, &err));
    if (test_below(2)) drop_some(c);
    compact(store, folder, "after a round");
    if (test_below(3) == 0) compact(store, folder, "once more");
  }
  scene_verify(folder, "compacted");
  lode_collection_close(c);
  lode_close(store);
}

TEST_SLOW(a_store_never_grows, 300) {
  static const uint32_t sizes[] = {512, 4096, 16384};
  test_srand(test_seed());
  for (size_t i = 0; i < 3; i++) play(sizes[i], false, test_full() ? 60 : 7);
}

TEST_SLOW(a_store_with_segments_never_grows, 300) {
  test_srand(test_seed());
  play(512, true, test_full() ? 60 : 7);
  play(4096, true, test_full() ? 60 : 7);
}

/* What was only appended fills its pages already. */
TEST(full_pages_stay_full) {
  char folder[400];
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  test_srand(test_seed());
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  OK(lode_open(folder, &(lode_open_options){.create = true, .no_background = true, .page_bytes = 4096}, &store, &err));
  OK(lode_collection_open(store, S("c"), &(lode_collection_options){.create = true}, &c, &err));
  put(c, 0, MOST, 200);
  compact(store, folder, "not indexed");
  OK(lode_optimize(store, (lode_progress){0}, &err));
  for (int i = 0; i < 3; i++) compact(store, folder, "indexed");
  lode_collection_close(c);
  lode_close(store);
}
