/* SPDX-License-Identifier: Apache-2.0 */
/* test_verify.c - a whole store passes in every state; each kind of damage is found, called by its name and ascribed to
 * its record; and nothing is reported because others write meanwhile. */
#include "support/fault.h"
#include "support/scene.h"
#include "repair/repair_internal.h"
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})
#define PAGE 512

typedef struct findings {
  struct {
    char what[20], collection[20], id[40], detail[300];
  } all[300];
  size_t n, total;
} findings;

static void on_found(void *ctx, const lode_damage *d) {
  findings *f = ctx;
  f->total++;
  if (f->n == 300) return;
  snprintf(f->all[f->n].what, 20, "%s", d->what);
  snprintf(f->all[f->n].collection, 20, "%.*s", (int)d->collection.len, d->collection.data ? d->collection.data : "");
  snprintf(f->all[f->n].id, 40, "%.*s", (int)d->id.len, d->id.data ? d->id.data : "");
  snprintf(f->all[f->n].detail, 300, "%s", d->detail);
  f->n++;
}

static bool has(const findings *f, const char *what, const char *id) {
  for (size_t i = 0; i < f->n; i++)
    if (strcmp(f->all[i].what, what) == 0 && (!id || strcmp(f->all[i].id, id) == 0)) return true;
  return false;
}

static lode_status verify(const char *folder, bool read_only, findings *f, lode_error *err) {
  lode_store *store;
  memset(f, 0, sizeof *f);
  lode_status st = lode_open(folder, &(lode_open_options){.no_background = true, .read_only = read_only}, &store, err);
  if (st != LODE_OK) return st;
  st = lode_verify(store, on_found, f, (lode_progress){0}, err);
  lode_close(store);
  CHECKF((st == LODE_CORRUPT) == (f->total > 0), "%s %s; %zu findings, first %s %s", lode_status_name(st), err->text,
         f->total, f->all[0].what, f->all[0].detail);
  return st;
}

static void passes(const char *folder, const char *state) {
  findings f;
  lode_error err = {0};
  for (int read_only = 0; read_only < 2; read_only++) {
    lode_status st = verify(folder, read_only, &f, &err);
    CHECKF(st == LODE_OK, "%s: %s %s; first: %s %s %s %s", state, lode_status_name(st), err.text, f.all[0].what,
           f.all[0].collection, f.all[0].id, f.all[0].detail);
  }
}

/* ---- Whole stores ---- */

TEST(whole_stores) {
  char folder[400];
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  OK(lode_open(folder, &(lode_open_options){.create = true, .page_bytes = PAGE}, &store, &err));
  lode_close(store);
  passes(folder, "empty");
  test_remove_tree(folder);
  scene_make(folder, PAGE);
  passes(folder, "partly indexed, with tombstones");
  OK(lode_open(folder, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_optimize(store, (lode_progress){0}, &err));
  lode_close(store);
  passes(folder, "optimized");
  OK(lode_open(folder, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_collection_drop(store, S("alpha"), &err));
  lode_close(store);
  passes(folder, "dropped");

  /* values that an index could mistake for one another: equal numbers, cut strings, booleans, empty arrays and texts */
  lode_str counters[2] = {S("a"), S("b")};
  lode_collection_options o = {.create = true, .counters = counters, .n_counters = 2};
  char longs[600], twice[100];
  memset(twice, 'x', 90);
  twice[90] = 0;
  snprintf(longs, sizeof longs, "{\"a\":[\"%s1\",\"%s2\",\"%s\"],\"b\":\"%s\"}", twice, twice, twice, twice);
  lode_record r[] = {
      {.id = S("\001"), .metadata = S("{\"a\":1,\"b\":true}"), .document = S("one One ONE fooBar foo_bar")},
      {.id = S("two"), .metadata = S("{\"a\":1.0,\"b\":[1,1.0,2]}"), .document = S("")},
      {.id = S("three"),
       .metadata = S("{\"a\":-0.0,\"b\":false,\"c\":9007199254740993}"),
       .document = S("src/a.c src/a.c")},
      {.id = S("four"), .metadata = {longs, strlen(longs)}},
      {.id = S("five"), .metadata = S("{\"a\":[],\"b\":9223372036854775807,\"c\":1e300}"), .document = S("...")},
  };
  OK(lode_open(folder, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_collection_open(store, S("odd"), &o, &c, &err));
  OK(lode_add(c, NULL, r, sizeof r / sizeof *r, LODE_FAIL_EXISTING, NULL, &err));
  passes(folder, "odd values");
  OK(lode_optimize(store, (lode_progress){0}, &err));
  passes(folder, "odd values, indexed");
  lode_record again = {.id = S("two"), .metadata = S("{\"a\":2,\"b\":[3.0]}"), .document = S("another text")};
  OK(lode_update(c, NULL, &again, 1, NULL, NULL, &err));
  lode_str gone = S("four");
  OK(lode_delete(c, NULL, &(lode_selection){.ids = &gone, .n_ids = 1}, NULL, &err));
  passes(folder, "odd values, changed");
  OK(lode_optimize(store, (lode_progress){0}, &err));
  passes(folder, "odd values, erased");
  lode_collection_close(c);
  lode_close(store);
}

/* ---- Damage that carries valid checksums of pages ---- */

#define OF(id) "(SELECT rid FROM record WHERE id=CAST('" id "' AS BLOB))"
#define VECTOR_OF(id) "(SELECT vid FROM record WHERE rid=" OF(id) ")"
/* `name` holds those of the records that the scene made first, `fresh` those that came last */

TEST_SLOW(logical_damage, 300) {
  static const struct {
    const char *sql, *what, *id;
  } cases[] = {
      {"UPDATE record SET meta='{}' WHERE rid=" OF("item-001"), "record", "item-001"},
      {"UPDATE record SET seq=seq+1 WHERE rid=" OF("item-002"), "record", "item-002"},
      {"DELETE FROM record WHERE rid=" OF("item-004"), "name", "item-004"},
      {"UPDATE document SET text='other' WHERE rid=" OF("item-006"), "document", "item-006"},
      {"UPDATE document SET crc=crc+1 WHERE rid=" OF("item-006"), "document", "item-006"},
      {"DELETE FROM document WHERE rid=" OF("item-007"), "document", "item-007"},
      {"INSERT INTO document(rid,text,crc) VALUES(" OF("item-011") ",'x',1)", "document", "item-011"},
      {"UPDATE vector SET data=zeroblob(32) WHERE vid=" VECTOR_OF("item-012"), "vector", "item-012"},
      {"UPDATE vector SET rid=rid+1 WHERE vid=" VECTOR_OF("item-013"), "vector", "item-013"},
      {"DELETE FROM vector WHERE vid=" VECTOR_OF("item-014"), "vector", "item-014"},
      {"INSERT INTO vector(vid,rid,data,crc) SELECT vid+900000,rid,data,crc FROM vector LIMIT 1", "vector", ""},
      {"DELETE FROM name WHERE id=CAST('item-015' AS BLOB)", "name", "item-015"},
      {"UPDATE name SET rid=rid+1 WHERE id=CAST('item-016' AS BLOB)", "name", "item-016"},
      {"INSERT INTO name(cid,id,rid,len) VALUES(1,CAST('nobody' AS BLOB),(1<<40)+5,0)", "name", "nobody"},
      {"UPDATE name SET len=len+1 WHERE id=CAST('item-020' AS BLOB)", "name", "item-020"},
      {"UPDATE name SET len=9 WHERE id=CAST('item-011' AS BLOB)", "name", "item-011"},
      {"DELETE FROM fresh WHERE id=CAST('item-040' AS BLOB)", "name", "item-040"},
      {"UPDATE fresh SET rid=rid+1 WHERE id=CAST('item-040' AS BLOB)", "name", "item-040"},
      {"INSERT INTO fresh(cid,id,rid,len) VALUES(1,CAST('nobody' AS BLOB),(1<<40)+5,0)", "name", "nobody"},
      {"INSERT INTO fresh(cid,id,rid,len) SELECT cid,id,rid+1,len FROM name LIMIT 1", "name", "item-000"},
      {"UPDATE state SET v=v+1 WHERE k=6", "counter", ""},
      {"DELETE FROM grave WHERE gid=(SELECT min(gid) FROM grave WHERE vid=0)", "counter", ""},
      {"UPDATE grave SET rids=CAST('x' AS BLOB) WHERE vid=0", "structure", ""},
      {"UPDATE grave SET crc=crc+1", "structure", ""},
      {"INSERT INTO grave VALUES((1<<40)+99999,x'01',0,1)", "structure", ""},
      {"UPDATE collection SET records=records+1 WHERE name='alpha'", "counter", ""},
      {"UPDATE collection SET pending=pending-1 WHERE name='alpha'", "counter", ""},
      {"UPDATE collection SET documents=documents+1 WHERE name='beta'", "counter", ""},
      {"UPDATE collection SET document_bytes=0 WHERE name='beta'", "counter", ""},
      {"UPDATE collection SET graves=0 WHERE name='alpha'", "counter", ""},
      {"UPDATE collection SET untexted=0 WHERE name='alpha'", "counter", ""},
      {"UPDATE collection SET unindexed=99 WHERE name='beta'", "counter", ""},
      {"UPDATE collection SET text_cursor=text_cursor+1000 WHERE name='alpha'", "text index", ""},
      {"UPDATE collection SET term_cursor=term_cursor+1000 WHERE name='alpha'", "metadata index", ""},
      {"UPDATE collection SET dim=9 WHERE name='alpha'", "structure", ""},
      {"DELETE FROM collection WHERE name='beta'", "structure", ""},
      {"UPDATE counter SET n=n+1 WHERE value=(SELECT min(value) FROM counter)", "counter", ""},
      {"UPDATE counter SET value='elsewhere' WHERE value=(SELECT min(value) FROM counter)", "counter", ""},
      {"DELETE FROM term WHERE rid=" OF("item-017") " AND value=17", "metadata index", ""},
      {"UPDATE term SET value=18 WHERE rid=" OF("item-017") " AND value=17", "metadata index", ""},
      {"INSERT INTO term VALUES(1,'stray',(9<<40)+5)", "metadata index", ""},
      {"INSERT INTO text(rowid,body) VALUES(" OF("item-018") ",'more')", "text index", ""},
      {"INSERT INTO text(text,rowid,body) VALUES('delete'," OF("item-019") ",'document')", "text index", ""},
      {"UPDATE size SET codes=CAST(printf('%.2048c','z') AS BLOB)", "text index", ""},
      {"DELETE FROM text_data WHERE id=(SELECT max(id) FROM text_data)", "text index", ""},
  };
  char base[400], work[420];
  findings f;
  lode_error err = {0};
  snprintf(base, sizeof base, "%s/base", test_folder());
  snprintf(work, sizeof work, "%s-work", base);
  scene_make(base, PAGE);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *sql = cases[i].sql;
    test_copy_tree(base, work);
    scene_sql(work, sql);
    lode_status st = verify(work, i % 2, &f, &err);
    CHECKF(st == LODE_CORRUPT, "%s: %s", sql, lode_status_name(st));
    CHECKF(has(&f, cases[i].what, cases[i].id), "%s: no \"%s\" of %s, but %s of %s: %s", sql, cases[i].what,
           cases[i].id, f.all[0].what, f.all[0].id, f.all[0].detail);
    test_remove_tree(work);
  }
}

/* ---- Damaged pages ---- */

typedef struct ground {
  char base[400], work[420], file[500];
  char *bytes;
  size_t len;
} ground;

static void prepare(ground *g) {
  test_srand(test_seed());
  snprintf(g->base, sizeof g->base, "%s/base", test_folder());
  snprintf(g->work, sizeof g->work, "%s-work", g->base);
  snprintf(g->file, sizeof g->file, "%s/lode.db", g->work);
  scene_make(g->base, PAGE);
  test_copy_tree(g->base, g->work);
  g->bytes = test_read_file(g->file, &g->len);
}

/* Ids of the records whose rows begin on a page. */
static size_t ids_on(ground *g, uint32_t page, char ids[32][40]) {
  vfs_pages p;
  sqf_view view;
  sqf_cell row;
  store_rec rec;
  strbuf payload = {0};
  lode_error err = {0};
  unsigned char bytes[PAGE];
  size_t n = 0;
  test_write_file(g->file, g->bytes, g->len);
  OK(vfs_pages_open(g->file, &p, &err));
  sqf_page_use use = vfs_pages_use_of(&p, page);
  if ((use == SQF_PAGE_TREE || use == SQF_PAGE_ROOT) && vfs_pages_read(&p, page, bytes) &&
      sqf_view_page(&p.src, page, bytes, &view))
    for (uint32_t i = 0; i < view.cells; i++) {
      if (!sqf_cell_parse_row(&p.src, &view, sqf_view_cell(&p.src, &view, i), &row) ||
          repair_row_kind_of(&row, &view) != REPAIR_ROW_RECORD)
        continue;
      OK(repair_row_load(&p, &row, &payload, &err));
      CHECK(repair_row_to_rec(&row, &payload, &rec) && n < 32);
      /* deleted ones have no name to be reported by */
      if (str_eq(rec.id, S("item-003")) || str_eq(rec.id, S("item-010"))) continue;
      snprintf(ids[n++], 40, "%.*s", (int)rec.id.len, rec.id.data);
    }
  vfs_pages_close(&p);
  strbuf_release(&payload);
  return n;
}

/* The handle is open when the page goes bad, so that verify gets to run whatever page it is. */
TEST_SLOW(damaged_pages, 300) {
  ground g;
  findings f;
  lode_error err = {0};
  size_t named = 0;
  prepare(&g);
  uint32_t pages = (uint32_t)(g.len / PAGE);
  for (uint32_t page = 1; page <= pages; page += test_full() ? 1 : 1 + (uint32_t)test_below(3)) {
    char ids[32][40];
    size_t n = ids_on(&g, page, ids);
    lode_store *store;
    memset(&f, 0, sizeof f);
    test_write_file(g.file, g.bytes, g.len);
    OK(lode_open(g.work, &(lode_open_options){.no_background = true}, &store, &err));
    int fd = open(g.file, O_WRONLY);
    char b = (char)(g.bytes[(size_t)page * PAGE - 40] ^ 4);
    CHECK(pwrite(fd, &b, 1, (off_t)page * PAGE - 40) == 1 && close(fd) == 0);
    lode_status st = lode_verify(store, on_found, &f, (lode_progress){0}, &err);
    CHECKF(st == LODE_CORRUPT || st == LODE_OK, "page %u: %s %s", page, lode_status_name(st), err.text);
    if (st == LODE_OK) {
      /* without content, it reads as zeros whatever is there */
      bool empty = vfs_seal_version((const unsigned char *)g.bytes + (size_t)page * PAGE - VFS_SEAL_BYTES) == 0;
      CHECKF(empty, "page %u: its damage was not found", page);
    } else {
      CHECKF(has(&f, "page", NULL), "page %u: it is not reported; first: %s %s", page, f.all[0].what, f.all[0].detail);
    }
    for (size_t i = 0; i < n; i++) {
      CHECKF(has(&f, "record", ids[i]), "page %u: %s is not named", page, ids[i]);
      named++;
    }
    lode_close(store);
  }
  CHECK(named > 3);
  free(g.bytes);
}

/* A byte changed under a valid checksum: whatever a reader then gets that is not the truth, verify has found it. */
TEST_SLOW(resealed_bytes, 300) {
  ground g;
  findings f;
  lode_error err = {0};
  prepare(&g);
  uint64_t right[SCENE_QUESTIONS];
  for (int q = 0; q < SCENE_QUESTIONS; q++) right[q] = scene_open_and_ask(g.work, q, true).answer;
  size_t changed = 0, tries = test_full() ? g.len : 60;
  for (size_t i = 0; i < tries; i++) {
    size_t at = test_full() ? i : test_below(g.len);
    unsigned char *copy = malloc(g.len);
    memcpy(copy, g.bytes, g.len);
    copy[at] ^= (unsigned char)(1u << test_below(8));
    scene_reseal(copy, g.len, PAGE);
    test_write_file(g.file, copy, g.len);
    lode_status st = verify(g.work, true, &f, &err);
    CHECKF(st != LODE_INTERNAL, "byte %zu: %s", at, err.text);
    for (int q = 0; q < SCENE_QUESTIONS && st == LODE_OK; q++) {
      outcome o = scene_open_and_ask(g.work, q, true);
      CHECKF(o.status == LODE_OK && o.answer == right[q], "byte %zu: verify finds nothing, and %s gets a wrong answer",
             at, scene_question(q));
    }
    changed += st != LODE_OK;
    free(copy);
  }
  CHECK(changed > tries / 20);
  free(g.bytes);
}

/* ---- Others at work ---- */

static void write_all_the_time(const char *folder) {
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  if (lode_open(folder, &(lode_open_options){0}, &store, &err) != LODE_OK) _exit(1);
  if (lode_collection_open(store, S("alpha"), NULL, &c, &err) != LODE_OK) _exit(2);
  for (unsigned i = 0;; i++) {
    char id[24], doc[100], meta[60];
    float v[8] = {(float)i, 1};
    snprintf(id, sizeof id, "item-%03u", i % 300);
    snprintf(doc, sizeof doc, "written by another process, number %u", i);
    snprintf(meta, sizeof meta, "{\"n\":%u,\"path\":\"p%u\"}", i, i % 5);
    lode_record r = {.id = {id, strlen(id)},
                     .document = {doc, strlen(doc)},
                     .metadata = {meta, strlen(meta)},
                     .vector = v,
                     .dimension = 8};
    if (lode_upsert(c, NULL, &r, 1, NULL, &err) != LODE_OK) _exit(3);
    lode_str one = {id, strlen(id)};
    if (i % 3 == 0 && lode_delete(c, NULL, &(lode_selection){.ids = &one, .n_ids = 1}, NULL, &err) != LODE_OK) _exit(4);
  }
}

static void wait_for_writes(lode_store *store) {
  lode_stats first, now;
  lode_error err = {0};
  OK(lode_store_stats(store, &first, &err));
  for (unsigned i = 0; i < 2000 * test_patience(); i++) {
    OK(lode_store_stats(store, &now, &err));
    if (now.cursor > first.cursor) return;
    usleep(10000);
  }
  CHECKF(false, "the writer stands still");
}

TEST_SLOW(while_others_write, 120) {
  char folder[400];
  findings f;
  lode_error err = {0};
  lode_store *store;
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  scene_make(folder, PAGE);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) write_all_the_time(folder);
  OK(lode_open(folder, &(lode_open_options){.no_background = true}, &store, &err));
  wait_for_writes(store);
  for (int i = 0; i < 5; i++) {
    memset(&f, 0, sizeof f);
    lode_status st = lode_verify(store, on_found, &f, (lode_progress){0}, &err);
    CHECKF(st == LODE_OK, "%s; first of %zu: %s %s %s %s", err.text, f.total, f.all[0].what, f.all[0].collection,
           f.all[0].id, f.all[0].detail);
    wait_for_writes(store); /* it was not thrown out */
  }
  lode_close(store);
  int status;
  CHECK(waitpid(child, &status, WNOHANG) == 0);
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  passes(folder, "after the writer was killed");
}

static void count_copies(void *ctx, const char *line) { *(int *)ctx += strstr(line, "private copy") != NULL; }

/* Somebody waits for the lock all the time: the checks that need one moment move to a copy, and find what they must
 * find. */
TEST(on_a_private_copy) {
  char folder[400], lock[420];
  findings f;
  lode_error err = {0};
  int copies = 0;
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  snprintf(lock, sizeof lock, "%s/lode.lock", folder);
  scene_make(folder, PAGE);
  for (int damaged = 0; damaged < 2; damaged++) {
    lode_store *store;
    lode_open_options o = {.no_background = true, .log = count_copies, .log_ctx = &copies};
    if (damaged)
      scene_sql(folder, "UPDATE collection SET records=records+1 WHERE name='alpha'; DELETE FROM term WHERE value=17");
    int fd = open(lock, O_RDWR);
    CHECK(fd >= 0 && os_real.lock(fd, F_RDLCK, STORE_LOCK_WAIT, 1) == 0);
    OK(lode_open(folder, &o, &store, &err));
    memset(&f, 0, sizeof f);
    lode_status st = lode_verify(store, on_found, &f, (lode_progress){0}, &err);
    CHECKF(st == (damaged ? LODE_CORRUPT : LODE_OK), "%s %s", lode_status_name(st), err.text);
    CHECK(f.total == (damaged ? 2u : 0u) && (!damaged || (has(&f, "counter", "") && has(&f, "metadata index", ""))));
    lode_close(store);
    close(fd);
    CHECK(copies == damaged + 1);
  }
}

/* $TMPDIR is full, from each of its writes on: the check says where room is wanted, leaves nothing there, and the store
 * is as it was. */
TEST(no_room_for_a_private_copy) {
  char base[400], folder[440], lock[460], tmp[440];
  findings f;
  lode_error err = {0};
  lode_store *store;
  snprintf(base, sizeof base, "%s", test_folder());
  snprintf(folder, sizeof folder, "%s/s", base);
  snprintf(lock, sizeof lock, "%s/lode.lock", folder);
  snprintf(tmp, sizeof tmp, "%s/tmp", base);
  CHECK(mkdir(tmp, 0700) == 0 && setenv("TMPDIR", tmp, 1) == 0);
  scene_make(folder, PAGE);
  uint64_t content = scene_content(folder), hits = 1;
  int fd = open(lock, O_RDWR), full = 0;
  CHECK(fd >= 0 && os_real.lock(fd, F_RDLCK, STORE_LOCK_WAIT, 1) == 0);
  for (uint64_t n = 1; hits && n < 10000; n += test_full() ? 1 : 1 + test_below(20)) {
    OK(lode_open(folder, &(lode_open_options){.no_background = true}, &store, &err));
    memset(&f, 0, sizeof f);
    fault_install(&os_real);
    fault_set(FAULT_PWRITE, n, true, FAULT_ENOSPC);
    lode_status st = lode_verify(store, on_found, &f, (lode_progress){0}, &err);
    hits = fault_hits();
    fault_uninstall();
    lode_close(store);
    CHECKF(st == (hits ? LODE_FULL : LODE_OK), "write %llu: %s %s", (unsigned long long)n, lode_status_name(st),
           err.text);
    CHECKF(!hits || strstr(err.text, tmp), "write %llu: %s", (unsigned long long)n, err.text);
    full += hits > 0;
    CHECKF(rmdir(tmp) == 0, "write %llu left something in TMPDIR", (unsigned long long)n);
    CHECK(mkdir(tmp, 0700) == 0);
  }
  close(fd);
  CHECK(full > 0 && !hits);
  CHECK(scene_content(folder) == content);
}

static bool stop_at(void *ctx, const char *phase, uint64_t at, uint64_t total) {
  int *left = ctx;
  (void)phase, (void)at, (void)total;
  return --*left > 0;
}

TEST(cancelled) {
  char folder[400];
  lode_store *store;
  lode_error err = {0};
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  scene_make(folder, PAGE);
  OK(lode_open(folder, &(lode_open_options){.no_background = true}, &store, &err));
  int steps = 0;
  for (int at = 1; at < 100; at++) {
    int left = at;
    lode_status st = lode_verify(store, NULL, NULL, (lode_progress){stop_at, &left}, &err);
    if (st == LODE_OK) break;
    CHECKF(st == LODE_CANCELLED, "%s", err.text);
    steps++;
  }
  CHECK(steps >= 8);
  lode_close(store);
}

/* ---- Under the lock ---- */

static ino_t truth_ino, journal_ino;
static int asking = -1; /* a descriptor of the database file that holds no lock */
static uint64_t truth_reads, journal_reads, unlocked_reads;

static ssize_t asking_pread(int fd, void *buf, size_t n, off_t off) {
  struct stat sb;
  bool hint = off == 0 && n == 100; /* of SQLite, when it opens a file: it relies on none of it */
  bool truth = fstat(fd, &sb) == 0 && sb.st_ino == truth_ino, journal = sb.st_ino == journal_ino;
  truth_reads += truth;
  journal_reads += journal;
  if ((truth || journal) && !hint)
    unlocked_reads += os_real.lock_held(asking, F_WRLCK, SQF_SHARED_FIRST, SQF_SHARED_SIZE) != 1;
  return os_real.pread(fd, buf, n, off);
}

/* Adds a record in a process that dies before its journal is emptied. */
static void crash_while_adding(const char *folder) {
  int status;
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    lode_store *store;
    lode_collection *c;
    lode_error err = {0};
    lode_record r = {.id = S("unfinished"), .document = S("never to be seen")};
    OK(lode_open(folder, &(lode_open_options){.no_background = true}, &store, &err));
    OK(lode_collection_open(store, S("alpha"), NULL, &c, &err));
    fault_install(&os_real);
    fault_set(FAULT_FTRUNCATE, 1, false, FAULT_EXIT);
    OK(lode_add(c, NULL, &r, 1, LODE_FAIL_EXISTING, NULL, &err));
    _exit(0);
  }
  CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == FAULT_EXIT_STATUS);
}

/* Also where rows are taken from damaged tables page by page, and through a hot journal: nothing is evaluated without
 * the lock, for a writer may be at work. */
TEST(nothing_is_read_without_the_lock) {
  ground g;
  findings f, beside;
  lode_error err = {0};
  struct stat sb;
  char journal[600];
  static os_calls table;
  prepare(&g);
  snprintf(journal, sizeof journal, "%s-journal", g.file);
  uint32_t page = 0;
  char ids[32][40];
  for (uint32_t i = (uint32_t)(g.len / PAGE); i > 1 && !page; i--)
    if (ids_on(&g, i, ids) > 1) page = i;
  CHECK(page > 1);
  for (int hot = 0; hot < 2; hot++) {
    if (hot) crash_while_adding(g.work);
    int fd = open(g.file, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && pwrite(fd, "damage", 6, (off_t)page * PAGE - 40) == 6 && close(fd) == 0);
    asking = open(g.file, O_RDWR | O_CLOEXEC);
    CHECK(fstat(asking, &sb) == 0);
    truth_ino = sb.st_ino;
    CHECK(stat(journal, &sb) == 0 && (sb.st_size > 0) == hot);
    journal_ino = sb.st_ino;
    truth_reads = journal_reads = unlocked_reads = 0;
    table = os_real;
    table.pread = asking_pread;
    os_api = &table;
    CHECK(verify(g.work, true, hot ? &beside : &f, &err) == LODE_CORRUPT);
    os_api = &os_real;
    CHECK(truth_reads > 100 && (journal_reads > 0) == hot);
    CHECKF(unlocked_reads == 0, "%llu of %llu reads%s", (unsigned long long)unlocked_reads,
           (unsigned long long)(truth_reads + journal_reads), hot ? ", beside a hot journal" : "");
    close(asking);
    if (!hot) test_write_file(g.file, g.bytes, g.len);
  }
  CHECK(has(&f, "page", NULL) && f.total == beside.total);
  for (size_t i = 0; i < f.n; i++)
    CHECKF(has(&beside, f.all[i].what, f.all[i].id), "beside a hot journal no %s of \"%s\"", f.all[i].what,
           f.all[i].id);
  free(g.bytes);
}

static bool note_phase(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  (void)done;
  (void)total;
  if (!fault_hits()) snprintf(ctx, 40, "%s", phase);
  return true;
}

/* ---- Pages that cannot be read while SQLite checks its structures, which takes them for damage ---- */

static struct {
  lode_collection *writer;
  uint64_t page; /* cannot be read; 0: all can */
  bool begun;
  unsigned hits;
} bad_sector;

static ssize_t read_around_bad_sector(int fd, void *buf, size_t n, off_t off) {
  if (bad_sector.begun && n == PAGE && (uint64_t)off / PAGE + 1 == bad_sector.page) {
    bad_sector.hits++;
    errno = EIO;
    return -1;
  }
  return os_real.pread(fd, buf, n, off);
}

static bool enter_structure(void *ctx, const char *phase, uint64_t done, uint64_t total) {
  lode_error err = {0};
  (void)ctx;
  (void)done;
  (void)total;
  if (bad_sector.begun || strcmp(phase, "checking structure") != 0) return true;
  /* another commit, so that no page is in a cache */
  OK(lode_upsert(bad_sector.writer, NULL, &(lode_record){.id = S("new"), .document = S("text")}, 1, NULL, &err));
  bad_sector.begun = true;
  return true;
}

TEST_SLOW(a_page_that_cannot_be_read_is_no_damage, 120) {
  char folder[400], file[440];
  lode_error err = {0};
  unsigned met = 0;
  size_t len;
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  snprintf(file, sizeof file, "%s/lode.db", folder);
  scene_make(folder, PAGE);
  free(test_read_file(file, &len));
  os_calls table = os_real;
  table.pread = read_around_bad_sector;
  os_api = &table;
  for (uint64_t page = 2; page <= len / PAGE; page += test_full() ? 1 : 1 + test_below(8)) {
    lode_store *store, *other;
    findings f = {0};
    OK(lode_open(folder, &(lode_open_options){.no_background = true}, &other, &err));
    OK(lode_open(folder, &(lode_open_options){.no_background = true}, &store, &err));
    memset(&bad_sector, 0, sizeof bad_sector);
    OK(lode_collection_open(other, S("alpha"), NULL, &bad_sector.writer, &err));
    bad_sector.page = page;
    lode_status st = lode_verify(store, on_found, &f, (lode_progress){.step = enter_structure}, &err);
    bad_sector.page = 0;
    met += bad_sector.hits > 0;
    CHECKF(st == (bad_sector.hits ? LODE_IO : LODE_OK) && f.total == 0, "page %llu: %s %s; %zu findings: %s",
           (unsigned long long)page, lode_status_name(st), err.text, f.total, f.all[0].detail);
    lode_collection_close(bad_sector.writer);
    lode_close(other);
    lode_close(store);
  }
  os_api = &os_real;
  CHECKF(met > 5, "%u", met);
  passes(folder, "after reads that failed");
}

/* A read that fails while rows are taken page by page says nothing about the page. */
TEST_SLOW(reads_fail_page_by_page, 120) {
  ground g;
  findings whole, f = {0};
  lode_error err = {0};
  uint64_t met = 0, seals = 0;
  prepare(&g);
  char ids[32][40];
  uint32_t page = (uint32_t)(g.len / PAGE);
  while (page > 1 && ids_on(&g, page, ids) < 2) page--;
  memcpy(g.bytes + (size_t)page * PAGE - 40, "damage", 6);
  test_write_file(g.file, g.bytes, g.len);
  CHECK(verify(g.work, true, &whole, &err) == LODE_CORRUPT);
  fault_install(&os_real);
  for (uint64_t at = 1, hit = 1; hit; at += test_full() ? 1 : 1 + test_below(40)) {
    lode_store *store;
    memset(&f, 0, sizeof f);
    OK(lode_open(g.work, &(lode_open_options){.no_background = true, .read_only = true}, &store, &err));
    fault_set(FAULT_PREAD, at, false, FAULT_EIO);
    char phase[40] = "";
    lode_status st = lode_verify(store, on_found, &f, (lode_progress){.step = note_phase, .ctx = phase}, &err);
    hit = fault_hits();
    fault_clear();
    lode_close(store);
    bool early = hit && (strcmp(phase, "checking pages") == 0 || strcmp(phase, "checking records") == 0);
    bool by_seals =
        st == LODE_CORRUPT && f.total == whole.total; /* the page map could not be read, and was made again */
    CHECKF(st == LODE_IO || by_seals || (st == LODE_CORRUPT && !early), "call %llu (%s): %s %s", (unsigned long long)at,
           phase, lode_status_name(st), err.text);
    for (size_t i = 0; i < f.n; i++)
      CHECKF(has(&whole, f.all[i].what, f.all[i].id), "call %llu: %s of \"%s\": %s", (unsigned long long)at,
             f.all[i].what, f.all[i].id, f.all[i].detail);
    met += early;
    seals += hit && early && by_seals;
  }
  fault_uninstall();
  CHECKF(met > 5 && seals <= met / 4, "%llu, %llu of them by the seals", (unsigned long long)met,
         (unsigned long long)seals);
  free(g.bytes);
}

typedef struct named_pages {
  bool named[4000];
  unsigned n;
} named_pages;

static void note_page(void *ctx, const lode_damage *d) {
  named_pages *p = ctx;
  unsigned page;
  if (strcmp(d->what, "page") == 0 && sscanf(d->detail, "page %u of", &page) == 1 && page < 4000) p->named[page] = true;
  p->n++;
}

/* Without the page map, and with a page that SQLite needs first among those that are damaged: nothing can be opened. */
TEST(every_damaged_page_of_a_store_that_cannot_be_opened_is_named) {
  char folder[400], path[420], map[420];
  lode_error err = {0};
  lode_store *store;
  size_t len;
  named_pages found = {0};
  snprintf(folder, sizeof folder, "%s/s", test_folder());
  snprintf(path, sizeof path, "%s/lode.db", folder);
  snprintf(map, sizeof map, "%s/lode.pages", folder);
  scene_make(folder, 512);
  OK(lode_verify_folder(folder, note_page, &found, (lode_progress){0}, &err));
  CHECK(found.n == 0);
  char *bytes = test_read_file(path, &len);
  static const unsigned hit[] = {3, 5, 6, 9};
  for (size_t i = 0; i < sizeof hit / sizeof *hit; i++) bytes[(hit[i] - 1) * 512 + 40] ^= 1;
  test_write_file(path, bytes, len);
  unlink(map);
  FAILS(LODE_CORRUPT, lode_open(folder, &(lode_open_options){.no_background = true}, &store, &err));
  FAILS(LODE_CORRUPT, lode_verify_folder(folder, note_page, &found, (lode_progress){0}, &err));
  for (size_t i = 0; i < sizeof hit / sizeof *hit; i++) CHECKF(found.named[hit[i]], "page %u", hit[i]);
  CHECKF(found.n == sizeof hit / sizeof *hit, "%u pages", found.n);
  FAILS(LODE_UNSUPPORTED, lode_verify_folder("qdrant://localhost", NULL, NULL, (lode_progress){0}, &err));
  FAILS(LODE_NOT_FOUND, lode_verify_folder("/nowhere", NULL, NULL, (lode_progress){0}, &err));
  free(bytes);
}
