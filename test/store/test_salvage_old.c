/* SPDX-License-Identifier: Apache-2.0 */
/* test_salvage_old.c - salvage of stores whose pages are not of one moment: the newest version that is found of each
 * record comes over, and an old page is never worse than a damaged one. What stats says about the newest commit. */
#include "support/test.h"

#include "lode.h"
#include "os/os.h"
#include "vfs/vfs_seal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})
enum { PAGE = 512, RECORDS = 60, ROUNDS = 4, DIM = 4 };

typedef struct ground {
  char work[400], db[420], map[420], to[420];
  char *now, *was, *first, *map_now, *map_was; /* after the last round, the one before, the one before that */
  size_t now_len, was_len, first_len, map_len, map_was_len;
} ground;

/* A record of round r has it in its metadata and its document; a third of the records is of an earlier round. */
static lode_status put(lode_collection *c, int i, int round, lode_error *err) {
  char id[24], meta[40], doc[120];
  float v[DIM] = {(float)i, (float)round, 1, 2};
  snprintf(id, sizeof id, "r%02d", i);
  snprintf(meta, sizeof meta, "{\"round\":%d}", round);
  snprintf(doc, sizeof doc, "document %d of round %d, %.*s", i, round, (i + round) % 60,
           "and some more words that make the rows move between pages");
  lode_record r = {.id = {id, strlen(id)},
                   .metadata = {meta, strlen(meta)},
                   .document = {doc, strlen(doc)},
                   .vector = v,
                   .dimension = DIM};
  return lode_upsert(c, NULL, &r, 1, NULL, err);
}

static void ground_make(ground *g) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  memset(g, 0, sizeof *g);
  test_srand(test_seed());
  snprintf(g->work, sizeof g->work, "%s/s", test_folder());
  snprintf(g->db, sizeof g->db, "%s/lode.db", g->work);
  snprintf(g->map, sizeof g->map, "%s/lode.pages", g->work);
  snprintf(g->to, sizeof g->to, "%s-salvaged", g->work);
  OK(lode_open(g->work, &(lode_open_options){.create = true, .page_bytes = PAGE, .no_background = true}, &store, &err));
  OK(lode_collection_open(store, S("c"), &(lode_collection_options){.create = true}, &c, &err));
  for (int round = 1; round <= ROUNDS; round++) {
    for (int i = 0; i < RECORDS; i++)
      if (round == 1 || (i + round) % 3) OK(put(c, i, round, &err));
    if (round == ROUNDS - 2) g->first = test_read_file(g->db, &g->first_len);
    if (round != ROUNDS - 1) continue;
    g->was = test_read_file(g->db, &g->was_len);
    g->map_was = test_read_file(g->map, &g->map_was_len);
  }
  lode_collection_close(c);
  lode_close(store);
  g->now = test_read_file(g->db, &g->now_len);
  g->map_now = test_read_file(g->map, &g->map_len);
}

static void ground_release(ground *g) {
  free(g->now);
  free(g->was);
  free(g->first);
  free(g->map_now);
  free(g->map_was);
}

static int newest_round(int i) {
  int newest = 1;
  for (int round = 2; round <= ROUNDS; round++)
    if ((i + round) % 3) newest = round;
  return newest;
}

typedef struct salvaged {
  int round[RECORDS]; /* 0: not there */
  bool whole[RECORDS];
  lode_salvage_report report;
  uint64_t losses;
} salvaged;

static void on_loss(void *ctx, const lode_damage *d) {
  (void)d;
  ((salvaged *)ctx)->losses++;
}

static void read_salvaged(const char *folder, salvaged *s) {
  lode_store *store;
  lode_collection *c;
  lode_result *rows;
  lode_error err = {0};
  OK(lode_open(folder, &(lode_open_options){.no_background = true, .read_only = true}, &store, &err));
  if (lode_collection_open(store, S("c"), NULL, &c, &err) != LODE_OK)
    OK(lode_collection_open(store, S("recovered-1"), NULL, &c, &err)); /* its description was on the page */
  OK(lode_get(c, &(lode_get_request){.include = LODE_ALL}, &rows, &err));
  for (size_t k = 0; k < lode_result_count(rows); k++) {
    const lode_row *r = lode_result_at(rows, k);
    char wanted[40];
    int i = (int)strtol(r->id.data + 1, NULL, 10);
    CHECK(i >= 0 && i < RECORDS && s->round[i] == 0);
    s->round[i] = (int)strtol(r->metadata.data + strlen("{\"round\":"), NULL, 10);
    int len = snprintf(wanted, sizeof wanted, "document %d of round %d,", i, s->round[i]);
    CHECKF(!r->document.data || strncmp(r->document.data, wanted, (size_t)len) == 0, "%s of round %d: %.*s", wanted,
           s->round[i], (int)r->document.len, r->document.data);
    CHECK(!r->vector || r->vector[0] == (float)i);
    s->whole[i] = r->document.data && r->vector;
  }
  lode_result_free(rows);
  lode_collection_close(c);
  lode_close(store);
}

static salvaged salvage(ground *g, const char *bytes, const char *map, size_t map_len) {
  salvaged s = {.losses = 0};
  lode_error err = {0};
  test_remove_tree(g->to);
  test_write_file(g->db, bytes, g->now_len);
  if (map)
    test_write_file(g->map, map, map_len);
  else
    unlink(g->map);
  OK(lode_salvage(g->work, g->to, on_loss, &s, (lode_progress){0}, &s.report, &err));
  read_salvaged(g->to, &s);
  return s;
}

static void check_choice(const ground *g, size_t page, const salvaged *old, const salvaged *bad) {
  for (int i = 0; i < RECORDS; i++) {
    int newest = newest_round(i);
    CHECKF(bad->round[i] != newest || old->round[i] == newest, "page %zu of %zu: record %d is of round %d, not %d",
           page, g->now_len / PAGE, i, old->round[i], newest);
    CHECKF(!bad->whole[i] || old->round[i] != bad->round[i] || old->whole[i], "page %zu: record %d lost a part", page,
           i);
    CHECKF(old->round[i] == newest || old->round[i] == 0 || old->report.damaged_pages > 0,
           "page %zu: record %d is old, and nothing is said", page, i);
  }
}

TEST_SLOW(an_old_page_is_never_worse_than_a_damaged_one, 600) {
  ground g;
  size_t tried = 0, older = 0;
  ground_make(&g);
  char *bytes = malloc(g.now_len);
  for (size_t page = 2; page <= g.now_len / PAGE && page * PAGE <= g.was_len; page++) {
    size_t at = (page - 1) * PAGE;
    if (memcmp(g.now + at, g.was + at, PAGE) == 0 || (!test_full() && test_below(3))) continue;
    memcpy(bytes, g.now, g.now_len);
    memset(bytes + at, 0xa5, PAGE);
    salvaged bad = salvage(&g, bytes, g.map_now, g.map_len);
    memcpy(bytes + at, g.was + at, PAGE);
    salvaged old = salvage(&g, bytes, g.map_now, g.map_len);
    bool has_content = vfs_seal_version((unsigned char *)g.now + at + PAGE - VFS_SEAL_BYTES) != 0;
    CHECKF(!has_content || old.report.damaged_pages == 1, "page %zu: %llu damaged pages", page,
           (unsigned long long)old.report.damaged_pages);
    check_choice(&g, page, &old, &bad);
    for (int i = 0; i < RECORDS; i++) older += old.round[i] && old.round[i] != newest_round(i);
    tried++;
  }
  CHECKF(tried > 3 && (older > 0 || !test_full()), "%zu pages, %zu older records", tried, older);
  free(bytes);
  ground_release(&g);
}

/* A copy whose second half is older, with the map of the newest state, of the older one, and with none. */
TEST(a_torn_copy_comes_over_in_its_newest_whole_parts) {
  ground g;
  ground_make(&g);
  char *bytes = malloc(g.now_len);
  memcpy(bytes, g.now, g.now_len);
  size_t half = g.was_len / PAGE / 2 * PAGE;
  memcpy(bytes + half, g.was + half, g.was_len - half);
  salvaged with = salvage(&g, bytes, g.map_now, g.map_len), without = salvage(&g, bytes, NULL, 0);
  int newest = 0, found = 0;
  for (int i = 0; i < RECORDS; i++) {
    newest += with.round[i] == newest_round(i);
    found += without.round[i] != 0;
  }
  CHECKF(with.report.damaged_pages > 3 && newest > 0 && found > RECORDS / 2, "%llu damaged pages, %d newest, %d found",
         (unsigned long long)with.report.damaged_pages, newest, found);
  free(bytes);
  ground_release(&g);
}

/* The map is of an earlier commit: what is older than that is known to be old. Without a map, that is not known. */
TEST(an_older_map_tells_what_is_older_than_itself) {
  ground g;
  size_t tried = 0, known = 0;
  ground_make(&g);
  char *bytes = malloc(g.now_len);
  for (size_t page = 2; page * PAGE <= g.first_len && page * PAGE <= g.now_len && tried < 12; page++) {
    size_t at = (page - 1) * PAGE;
    bool same = memcmp(g.now + at, g.was + at, PAGE) == 0;
    if (memcmp(g.was + at, g.first + at, PAGE) == 0) continue;
    if (vfs_seal_version((unsigned char *)g.was + at + PAGE - VFS_SEAL_BYTES) == 0) continue;
    memcpy(bytes, g.now, g.now_len);
    memcpy(bytes + at, g.first + at, PAGE);
    salvaged with = salvage(&g, bytes, g.map_was, g.map_was_len), without = salvage(&g, bytes, NULL, 0);
    CHECKF(with.report.damaged_pages == 1, "page %zu, which has %schanged since: %llu damaged pages", page,
           same ? "not " : "", (unsigned long long)with.report.damaged_pages);
    known += without.report.damaged_pages > 0;
    tried++;
  }
  CHECKF(tried > 3 && known == 0, "%zu pages, %zu known without a map", tried, known);
  memcpy(bytes, g.now, g.now_len);
  memcpy(bytes, g.was, PAGE);
  CHECK(salvage(&g, bytes, g.map_now, g.map_len).report.damaged_pages > 0); /* page 1 is older than the map */
  free(bytes);
  ground_release(&g);
}

/* ---- Stats ---- */

static lode_stats stats_of(const char *folder, bool read_only) {
  lode_store *store;
  lode_stats stats;
  lode_error err = {0};
  OK(lode_open(folder, &(lode_open_options){.no_background = true, .read_only = read_only}, &store, &err));
  OK(lode_store_stats(store, &stats, &err));
  lode_close(store);
  return stats;
}

TEST(stats_tell_an_older_copy_from_a_newer_one) {
  ground g;
  uint64_t begun = os_wall_ms();
  ground_make(&g);
  lode_stats now = stats_of(g.work, true);
  CHECK(now.commit_number > ROUNDS * RECORDS / 2);
  CHECK(now.committed_ms >= begun && now.committed_ms <= os_wall_ms());
  lode_stats again = stats_of(g.work, false); /* opening is no commit */
  CHECK(again.commit_number == now.commit_number && again.committed_ms == now.committed_ms);
  test_write_file(g.db, g.was, g.was_len); /* an older copy of the whole store is a backup */
  lode_stats was = stats_of(g.work, true);
  CHECK(was.commit_number < now.commit_number && was.committed_ms <= now.committed_ms && was.committed_ms >= begun);
  ground_release(&g);
}
