/* SPDX-License-Identifier: Apache-2.0 */
/* test_record_ids.c - ids in two tables, tombstones that are runs, and what is left when nearly all is dead.
 *
 * `fresh` is made as small as it can be or as large, so that names move at every commit, now and then, or never.
 */
#include "lode.h"
#include "store/record_ids.h"
#include "store/tombstones.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S(text) ((lode_str){(text), sizeof(text) - 1})
enum { IDS = 300 };

static lode_error err;

typedef struct world {
  lode_store *store;
  lode_collection *c;
  unsigned version[IDS]; /* 0: not there */
} world;

static void open_world(world *w, const char *folder) {
  lode_open_options o = {.create = true, .page_bytes = 512, .no_background = true};
  OK(lode_open(folder, &o, &w->store, &err));
  OK(lode_collection_open(w->store, S("c"), &(lode_collection_options){.create = true}, &w->c, &err));
}

static void close_world(world *w) {
  lode_collection_close(w->c);
  lode_close(w->store);
}

static lode_str id_of(char out[16], unsigned i) {
  int n = snprintf(out, 16, "%u-%u", i * 7919u % 1000u, i); /* in no order */
  return (lode_str){out, (size_t)n};
}

static void show(void *ctx, const lode_damage *d) {
  (void)ctx;
  fprintf(stderr, "%s: %s\n", d->what, d->detail);
}

static void check(world *w) {
  uint64_t count, wanted = 0;
  char id[16], text[32];
  for (unsigned i = 0; i < IDS; i++) {
    lode_str one = id_of(id, i);
    lode_result *r;
    OK(lode_get(w->c, &(lode_get_request){.select = {.ids = &one, .n_ids = 1}, .include = LODE_DOCUMENT}, &r, &err));
    CHECKF(lode_result_count(r) == (w->version[i] > 0), "%.*s: version %u", (int)one.len, one.data, w->version[i]);
    snprintf(text, sizeof text, "version %u", w->version[i]);
    if (w->version[i])
      CHECK(lode_result_at(r, 0)->document.len == strlen(text) &&
            memcmp(lode_result_at(r, 0)->document.data, text, strlen(text)) == 0);
    wanted += w->version[i] > 0;
    lode_result_free(r);
  }
  OK(lode_count(w->c, &count, &err));
  CHECK(count == wanted);
  OK(lode_verify(w->store, show, NULL, (lode_progress){0}, &err));
}

static void write_some(world *w, unsigned version) {
  static char ids[IDS][16], texts[IDS][32];
  lode_record r[IDS];
  unsigned n = 0;
  unsigned share = 1 + (unsigned)test_below(20);
  for (unsigned i = 0; i < IDS; i++) {
    if (test_below(share)) continue;
    snprintf(texts[n], sizeof texts[n], "version %u", version);
    r[n] = (lode_record){.id = id_of(ids[n], i), .document = {texts[n], strlen(texts[n])}};
    w->version[i] = version;
    n++;
  }
  OK(lode_upsert(w->c, NULL, r, n, NULL, &err));
}

static void delete_some(world *w, lode_txn *txn, bool undone) {
  static char ids[2 * IDS][16];
  lode_str list[2 * IDS];
  unsigned n = 0;
  unsigned share = 1 + (unsigned)test_below(20);
  size_t wanted = 0, deleted;
  for (unsigned i = 0; i < IDS; i++) {
    if (test_below(share)) continue;
    bool twice = test_below(5) == 0;
    for (int k = 0; k <= twice; k++, n++) list[n] = id_of(ids[n], i);
    wanted += w->version[i] > 0;
    if (!undone) w->version[i] = 0;
  }
  OK(lode_delete(w->c, txn, &(lode_selection){.ids = list, .n_ids = n}, &deleted, &err));
  CHECK(deleted == wanted);
}

/* A transaction of which one call fails: what came before it stays. */
static void delete_in_txn(world *w) {
  lode_txn *txn;
  char id[16];
  lode_record bad = {.id = id_of(id, 1), .metadata = S("{\"a\":1}"), .vector = (float[]){1, 2}, .dimension = 2};
  OK(lode_begin(w->store, &txn, &err));
  delete_some(w, txn, false);
  lode_record dup[2] = {bad, bad};
  FAILS(LODE_REFUSED, lode_upsert(w->c, txn, dup, 2, NULL, &err));
  if (test_below(2)) {
    OK(lode_commit(txn, &err));
    return;
  }
  lode_rollback(txn);
  for (unsigned i = 0; i < IDS; i++) { /* ask what is there again */
    lode_str one = id_of(id, i);
    lode_result *r;
    OK(lode_get(w->c, &(lode_get_request){.select = {.ids = &one, .n_ids = 1}, .include = LODE_DOCUMENT}, &r, &err));
    w->version[i] = 0;
    if (lode_result_count(r)) w->version[i] = (unsigned)strtoul(lode_result_at(r, 0)->document.data + 8, NULL, 10);
    lode_result_free(r);
  }
}

TEST_SLOW(names_move_and_come_back, 300) {
  static const int64_t least[] = {0, 3, 50, 100000};
  for (size_t k = 0; k < sizeof least / sizeof *least; k++) {
    world w = {0};
    const char *folder = test_folder();
    store_fresh_min_rows = least[k];
    open_world(&w, folder);
    for (unsigned round = 1; round <= 24; round++) {
      switch (test_below(6)) {
        case 0: delete_some(&w, NULL, false); break;
        case 1: delete_in_txn(&w); break;
        case 2: OK(lode_optimize(w.store, (lode_progress){0}, &err)); break;
        case 3:
          close_world(&w);
          open_world(&w, folder);
          break;
        default: write_some(&w, round);
      }
      if (round % 4 == 0) check(&w);
    }
    OK(lode_compact(w.store, (lode_progress){0}, &err));
    check(&w);
    close_world(&w);
  }
}

/* ---- Tombstones ---- */

TEST(impossible_tombstones_are_refused) {
  store_tombstone g;
  int64_t gid = store_key_make(3, 1000);
  CHECK(store_tombstone_decode(gid, (lode_str){"\x05\x01\x80\x01", 4}, 0, &g));
  CHECK(g.n == 3 && g.rids[0] == store_key_make(3, 5) && g.rids[1] == store_key_make(3, 6) &&
        g.rids[2] == store_key_make(3, 134));
  CHECK(store_tombstone_decode(gid, (lode_str){"", 0}, store_key_make(3, 7), &g) && g.n == 0 &&
        g.vid == store_key_make(3, 7));
  CHECK(!store_tombstone_decode(gid, (lode_str){"", 0}, 0, &g));                             /* nobody */
  CHECK(!store_tombstone_decode(gid, (lode_str){"\x05", 1}, store_key_make(3, 7), &g));      /* both kinds */
  CHECK(!store_tombstone_decode(gid, (lode_str){"", 0}, store_key_make(4, 7), &g));          /* of another collection */
  CHECK(!store_tombstone_decode(gid, (lode_str){"\x05\x00", 2}, 0, &g));                     /* twice the same */
  CHECK(!store_tombstone_decode(gid, (lode_str){"\x05\x81", 2}, 0, &g));                     /* cut */
  CHECK(!store_tombstone_decode(gid, (lode_str){"\xff\xff\xff\xff\xff\x7f", 6}, 0, &g));     /* past the last key */
  CHECK(!store_tombstone_decode(gid, (lode_str){"\xff\xff\xff\xff\xff\xff\xff", 7}, 0, &g)); /* no end */
  CHECK(
      !store_tombstone_decode(store_key_make(3, 2), (lode_str){"\x01\x01\x01", 3}, 0, &g)); /* more dead than numbers */
  char many[STORE_TOMBSTONE_MAX_RIDS + 1];
  memset(many, 1, sizeof many);
  CHECK(store_tombstone_decode(gid, (lode_str){many, STORE_TOMBSTONE_MAX_RIDS}, 0, &g) &&
        g.n == STORE_TOMBSTONE_MAX_RIDS);
  CHECK(!store_tombstone_decode(gid, (lode_str){many, STORE_TOMBSTONE_MAX_RIDS + 1}, 0, &g));
}

typedef struct seen {
  int64_t gid, rids[1000];
  size_t n;
} seen;

static lode_status see(void *ctx, int64_t gid, int64_t rid, int64_t vid, lode_error *e) {
  seen *s = ctx;
  (void)e;
  CHECK(gid > s->gid && !vid && s->n < 1000);
  s->gid = gid;
  s->rids[s->n++] = rid;
  return LODE_OK;
}

/* A reader that stops anywhere in a run goes on there. */
TEST(tombstones_are_read_from_any_position) {
  world w = {0};
  const char *folder = test_folder();
  lode_str list[IDS];
  static char ids[IDS][16];
  open_world(&w, folder);
  for (unsigned i = 0; i < IDS; i++) {
    list[i] = id_of(ids[i], i);
    OK(lode_add(w.c, NULL, &(lode_record){.id = list[i]}, 1, LODE_FAIL_EXISTING, NULL, &err));
  }
  OK(lode_delete(w.c, NULL, &(lode_selection){.ids = list, .n_ids = IDS}, NULL, &err));
  close_world(&w);
  store_db *db;
  store_tx *tx;
  OK(store_db_open(folder, NULL, &db, &err));
  OK(store_tx_begin(db, STORE_TX_READ, &tx, &err));
  static seen all;
  OK(store_tombstone_each(tx, 1, 0, see, &all, &err));
  CHECK(all.n == IDS);
  for (int64_t after = all.gid - IDS; after <= all.gid; after++) {
    static seen rest;
    memset(&rest, 0, sizeof rest);
    OK(store_tombstone_each(tx, 1, after, see, &rest, &err));
    CHECK(rest.n == (size_t)(all.gid - after));
    CHECK(rest.n == 0 || memcmp(rest.rids, all.rids + (IDS - rest.n), rest.n * sizeof *rest.rids) == 0);
  }
  store_tx_rollback(tx);
  store_db_close(db);
}

/* ---- Nearly all is dead ---- */

static size_t found(lode_collection *c, const char *word) {
  lode_result *r;
  lode_str text = {word, strlen(word)};
  OK(lode_query(c, &(lode_query_request){.mode = LODE_BY_TEXT, .texts = &text, .n = 1, .k = 10000}, &r, &err));
  size_t n = lode_result_count(r);
  lode_result_free(r);
  return n;
}

TEST_SLOW(the_text_index_is_rebuilt_when_nearly_all_is_dead, 120) {
  enum { MANY = 4000 };
  world w = {0};
  lode_collection *d;
  const char *folder = test_folder();
  lode_open_options o = {.create = true, .no_background = true};
  OK(lode_open(folder, &o, &w.store, &err));
  OK(lode_collection_open(w.store, S("c"), &(lode_collection_options){.create = true}, &w.c, &err));
  OK(lode_collection_open(w.store, S("d"), &(lode_collection_options){.create = true}, &d, &err));
  static char ids[MANY][16];
  static lode_record r[MANY];
  static lode_str gone[MANY];
  for (unsigned i = 0; i < MANY; i++)
    r[i] = (lode_record){.id = gone[i] = id_of(ids[i], i), .document = i % 2 ? S("odd word") : S("even word")};
  OK(lode_add(w.c, NULL, r, MANY, LODE_FAIL_EXISTING, NULL, &err));
  OK(lode_add(d, NULL, r, 50, LODE_FAIL_EXISTING, NULL, &err));
  OK(lode_optimize(w.store, (lode_progress){0}, &err));
  OK(lode_delete(w.c, NULL, &(lode_selection){.ids = gone + 100, .n_ids = MANY - 100}, NULL, &err));
  bool more = true;
  store_db *db;
  OK(store_db_open(folder, NULL, &db, &err));
  while (more) { /* right at every step */
    OK(store_maintain_step(db, &more, &err));
    CHECK(found(w.c, "odd") == 50 && found(w.c, "word") == 100 && found(d, "even") == 25);
    OK(lode_verify(w.store, show, NULL, (lode_progress){0}, &err));
  }
  store_db_close(db);
  lode_stats stats;
  OK(lode_store_stats(w.store, &stats, &err));
  CHECK(stats.unerased == 0 && stats.untexted == 0 && stats.records == 150);
  lode_collection_close(d);
  close_world(&w);
}

/* In a load metadata waits until many records need it, or nothing else is left to do, and then comes in one step. */
TEST(a_load_indexes_metadata_in_large_batches) {
  enum { FEW = 60, LOAD = 200 };
  const char *folder = test_folder();
  world w = {0};
  store_db *db;
  lode_stats stats;
  bool more, much;
  char ids[LOAD][16];
  lode_record r[LOAD];
  open_world(&w, folder);
  for (unsigned i = 0; i < LOAD; i++)
    r[i] = (lode_record){.id = id_of(ids[i], i), .document = S("word"), .metadata = S("{\"k\":1,\"l\":\"x\"}")};
  store_load_batch = 100;
  OK(store_db_open(folder, &(lode_open_options){.bulk_load = true}, &db, &err));
  OK(lode_add(w.c, NULL, r, FEW, LODE_FAIL_EXISTING, NULL, &err));
  OK(store_maintain_fills_step(db, &much, &err));
  CHECK(!much);
  OK(store_maintain_step(db, &more, &err));
  OK(lode_store_stats(w.store, &stats, &err));
  CHECK(stats.untexted == 0 && stats.unindexed == FEW);
  OK(lode_add(w.c, NULL, r + FEW, LOAD - FEW, LODE_FAIL_EXISTING, NULL, &err));
  OK(store_maintain_fills_step(db, &much, &err));
  CHECK(much);
  OK(store_maintain_step(db, &more, &err));
  OK(lode_store_stats(w.store, &stats, &err));
  CHECK(stats.untexted == LOAD - FEW && stats.unindexed == 0);
  OK(lode_upsert(w.c, NULL, r, FEW, NULL, &err));
  for (more = true; more;) OK(store_maintain_step(db, &more, &err));
  OK(lode_store_stats(w.store, &stats, &err));
  CHECK(stats.untexted == 0 && stats.unindexed == 0);
  OK(lode_verify(w.store, show, NULL, (lode_progress){0}, &err));
  store_db_close(db);
  close_world(&w);
}
