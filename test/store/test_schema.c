/* SPDX-License-Identifier: Apache-2.0 */
/* test_schema.c - the schema of a store is compared, never trusted: whatever SQL somebody planted in it, with right
 * page checksums, no command runs it. Each answers with a status that names what is foreign, and salvage brings the
 * records over. */
#include "support/scene.h"
#include "store/text_index.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})

typedef struct ground {
  char root[400], base[420], work[420], file[440], backup[440], to[440];
  uint64_t content;
} ground;

static void prepare(ground *g, uint32_t page_bytes) {
  snprintf(g->root, sizeof g->root, "%s", test_folder());
  snprintf(g->base, sizeof g->base, "%s/base", g->root);
  snprintf(g->work, sizeof g->work, "%s/work", g->root);
  snprintf(g->file, sizeof g->file, "%s/lode.db", g->work);
  snprintf(g->backup, sizeof g->backup, "%s/backup", g->root);
  snprintf(g->to, sizeof g->to, "%s/to", g->root);
  scene_make(g->base, page_bytes);
  g->content = scene_content(g->base);
}

static void begin(ground *g) {
  test_remove_tree(g->work);
  test_remove_tree(g->to);
  test_copy_tree(g->base, g->work);
}

/* ---- What everything must answer ---- */

static void refused(const char *what, const char *word, const char *who, lode_status st, const char *text) {
  CHECKF(st == LODE_CORRUPT || st == LODE_TOO_NEW, "%s, %s: %s %s", what, who, lode_status_name(st), text);
  CHECKF(!word || strstr(text, word), "%s, %s: \"%s\" is not named: %s", what, who, word, text);
  CHECKF(st == LODE_TOO_NEW || strstr(text, "lode db "), "%s, %s: says not what to do: %s", what, who, text);
}

static void copy_file(const char *from, const char *to) {
  size_t len;
  char *bytes = test_read_file(from, &len);
  test_write_file(to, bytes, len);
  free(bytes);
}

static void not_restored(ground *g, const char *what, const char *word) {
  lode_error err = {0};
  copy_file(g->file, g->backup);
  refused(what, word, "restore", lode_restore(g->backup, g->to, (lode_progress){0}, &err), err.text);
  CHECKF(access(g->to, F_OK) != 0 || rmdir(g->to) == 0 || access(g->file, F_OK) == 0, "%s: something was restored",
         what);
  test_remove_tree(g->to);
}

typedef struct losses {
  size_t n;
  char first[400];
} losses;

static void on_loss(void *ctx, const lode_damage *d) {
  losses *l = ctx;
  if (l->n++ == 0) snprintf(l->first, sizeof l->first, "%s: %s", d->what, d->detail);
}

/* All records come over, and what is foreign is reported. */
static void salvaged(ground *g, const char *what) {
  lode_error err = {0};
  lode_salvage_report report;
  losses l = {0};
  OK(lode_salvage(g->work, g->to, on_loss, &l, (lode_progress){0}, &report, &err));
  CHECKF(l.n > 0 && strncmp(l.first, "schema: ", 8) == 0, "%s: %zu losses, first %s", what, l.n, l.first);
  CHECKF(report.lost == 0, "%s: %llu lost", what, (unsigned long long)report.lost);
  CHECKF(scene_content(g->to) == g->content, "%s: what was salvaged differs", what);
  scene_verify(g->to, what);
  test_remove_tree(g->to);
}

/* Nothing reads, nothing writes, and the file stays as it is. */
static void all_refuse(ground *g, const char *what, const char *word) {
  size_t len, after_len;
  char *bytes = test_read_file(g->file, &len);
  for (int q = 0; q < SCENE_QUESTIONS; q += 1 + (int)test_below(3)) {
    outcome o = scene_open_and_ask(g->work, q, q % 2);
    refused(what, word, scene_question(q), o.status, o.text);
  }
  for (int i = 0; i < scene_n_acts; i += 1 + (int)test_below(4)) {
    outcome o = scene_acts[i].play(g->work);
    if (o.status == LODE_OK || o.status == LODE_INVALID) continue; /* makes a store of its own, or needs another one */
    refused(what, word, scene_acts[i].name, o.status, o.text);
  }
  char *after = test_read_file(g->file, &after_len);
  CHECKF(len == after_len && memcmp(bytes, after, len) == 0, "%s: the file was changed", what);
  free(bytes);
  free(after);
}

/* ---- Planted SQL ---- */

#define EDIT "PRAGMA writable_schema=ON; "
#define ENDLESS "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM t) SELECT count(*) FROM t"

static const struct {
  const char *sql, *word;
} planted[] = {
    {"CREATE TRIGGER evil AFTER DELETE ON name BEGIN DELETE FROM record; END", "trigger \"evil\""},
    {"CREATE TRIGGER \"a\nb\" INSTEAD OF INSERT ON v BEGIN SELECT 1; END", NULL},
    {"CREATE VIEW evil AS SELECT 1", "view \"evil\""},
    {"DROP TABLE dead; CREATE VIEW dead(vid,rid) AS " ENDLESS " AS vid, 1 AS rid", NULL},
    {"DROP TABLE collection; CREATE VIEW collection AS " ENDLESS, "view \"collection\""},
    {"DROP TABLE state; CREATE VIEW state(k,v) AS SELECT 3,(" ENDLESS ")", "view \"state\""},
    {"CREATE INDEX evil ON record(seq)", "index \"evil\""},
    {"CREATE INDEX evil ON record(abs(seq))", "index \"evil\""},
    {"CREATE UNIQUE INDEX evil ON document(crc) WHERE length(text)>3", "index \"evil\""},
    {"DROP INDEX pending; CREATE INDEX pending ON record(vid) WHERE vid=1", "index \"pending\""},
    {"DROP INDEX pending", "index \"pending\""},
    {"CREATE TABLE evil(a CHECK(a IN (SELECT 1)))", NULL},
    {"CREATE TABLE evil(a CHECK(a > 0))", "table \"evil\""},
    {"CREATE TABLE evil(a, b AS (abs(a)) STORED)", "table \"evil\""},
    {"CREATE TABLE evil(a INTEGER PRIMARY KEY AUTOINCREMENT)", NULL},
    {"CREATE VIRTUAL TABLE evil USING fts5(x)", "evil"},
    {"CREATE VIRTUAL TABLE evil USING fts5(x, content='record')", "evil"},
    {"CREATE VIRTUAL TABLE evil USING rtree(a,b,c)", "evil"},
    {"DROP TABLE text; CREATE VIRTUAL TABLE text USING fts5(body, content='', columnsize=0, tokenize='ascii')",
     "table \"text\""},
    {"DROP TABLE size; CREATE TABLE size(codes BLOB NOT NULL, block INTEGER PRIMARY KEY)", "table \"size\""},
    {"DROP TABLE size; CREATE TABLE size(block INTEGER PRIMARY KEY, codes BLOB NOT NULL COLLATE nocase)",
     "table \"size\""},
    {"DROP TABLE size; CREATE TABLE size(block INTEGER PRIMARY KEY, codes BLOB NOT NULL CHECK(length(codes)=0))",
     "table \"size\""},
    {"DROP TABLE size; CREATE TABLE size(block INTEGER PRIMARY KEY, codes BLOB NOT NULL DEFAULT (randomblob(9)))",
     "table \"size\""},
    {"DROP TABLE counter", "table \"counter\" is missing"},
    {"DROP TABLE dead", "table \"dead\" is missing"},
    {"DROP TABLE segment", "table \"segment\" is missing"},
    {"DROP TABLE size", "table \"size\" is missing"},
    {SCENE_FORMAT_1 "DROP TABLE size", "table \"size\" is missing"}, /* no released Lode made a store without */
    {"DROP TABLE text", "table \"text\" is missing"},
    {"ALTER TABLE dead ADD COLUMN extra", "table \"dead\""},
    {"ALTER TABLE dead RENAME TO gone", "table \"gone\""},
    {"ANALYZE", "sqlite_stat1"},
    {EDIT "UPDATE sqlite_schema SET sql=sql||' ' WHERE name='record'", "table \"record\""},
    {EDIT "UPDATE sqlite_schema SET sql=upper(sql) WHERE name='record'", "table \"record\""},
    {EDIT "UPDATE sqlite_schema SET sql=CAST(sql AS BLOB) WHERE name='record'", "table \"record\""},
    {EDIT "UPDATE sqlite_schema SET sql=NULL WHERE name='record'", "table \"record\""},
    {EDIT "UPDATE sqlite_schema SET sql=sql||'/*'||hex(zeroblob(4000000))||'*/' WHERE name='record'", "record"},
    {EDIT "UPDATE sqlite_schema SET name='vector' WHERE name='record'", "vector"},
    {EDIT "UPDATE sqlite_schema SET tbl_name='vector' WHERE name='record'", "record"},
    {EDIT "UPDATE sqlite_schema SET type='view' WHERE name='record'", "record"},
    {EDIT "INSERT INTO sqlite_schema SELECT * FROM sqlite_schema WHERE name='record'", "record"},
    {EDIT "INSERT INTO sqlite_schema VALUES('table','sqlite_evil','sqlite_evil',0,'CREATE VIRTUAL TABLE sqlite_evil "
          "USING fts5(x)')",
     "sqlite_evil"},
    {EDIT "INSERT INTO sqlite_schema VALUES(NULL,NULL,NULL,NULL,'CREATE TRIGGER x')", NULL},
    {EDIT "INSERT INTO sqlite_schema VALUES(1,2,3,4,5)", NULL},
    {EDIT "DELETE FROM sqlite_schema WHERE name='sqlite_autoindex_metakey_1'", "sqlite_autoindex_metakey_1"},
    {EDIT "DELETE FROM sqlite_schema", NULL},
    {EDIT "UPDATE sqlite_schema SET rootpage=(SELECT rootpage FROM sqlite_schema WHERE name='name') WHERE name='fresh'",
     NULL},
    {EDIT "UPDATE sqlite_schema SET rootpage=1 WHERE name='fresh'", "fresh"},
    {EDIT "UPDATE sqlite_schema SET rootpage=999999999 WHERE name='fresh'", "fresh"},
    {EDIT "UPDATE sqlite_schema SET rootpage=-1 WHERE name='fresh'", "fresh"},
    {EDIT "UPDATE sqlite_schema SET rootpage=4 WHERE name='text'", NULL},
    {EDIT "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<20000) INSERT INTO sqlite_schema "
          "SELECT 'table','t'||x,'t'||x,0,'CREATE TABLE t'||x||'(a)' FROM n",
     NULL},
};

/* Statements that this SQLite refuses by itself plant nothing. */
static bool plant(const char *folder, const char *sql) {
  char path[600];
  sqlite3 *db = NULL;
  snprintf(path, sizeof path, "%s/lode.db", folder);
  CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, VFS_NAME) == SQLITE_OK);
  CHECK(store_text_register(db) == SQLITE_OK);
  bool done = sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
  sqlite3_close(db);
  return done;
}

static void all_planted(uint32_t page_bytes) {
  ground g;
  int done = 0;
  test_srand(test_seed());
  prepare(&g, page_bytes);
  for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
    const char *sql = planted[i].sql;
    begin(&g);
    if (!plant(g.work, sql)) continue;
    done++;
    all_refuse(&g, sql, planted[i].word);
    not_restored(&g, sql, planted[i].word);
    /* rows of what was dropped are gone, and so is what distinguishes deleted from living */
    if (!strstr(sql, "DROP TABLE c") && !strstr(sql, "DELETE FROM record")) salvaged(&g, sql);
  }
  CHECKF(done > 40, "only %d were planted", done);
}

TEST_SLOW(nothing_planted_is_run, 300) { all_planted(512); }
TEST_SLOW(nothing_planted_is_run_in_large_pages, 300) { all_planted(16384); }

/* "1 added", and the record was gone. */
TEST(a_trigger_on_any_table_is_refused) {
  static const char *const tables[] = {"state",  "collection", "name",      "fresh",    "record",     "document",
                                       "vector", "grave",      "metakey",   "term",     "counter",    "segment",
                                       "dead",   "size",       "text_data", "text_idx", "text_config"};
  ground g;
  char sql[300];
  test_srand(test_seed());
  prepare(&g, 512);
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    begin(&g);
    snprintf(sql, sizeof sql, "CREATE TRIGGER keep_out BEFORE INSERT ON %s BEGIN SELECT RAISE(IGNORE); END", tables[i]);
    scene_sql(g.work, sql);
    all_refuse(&g, sql, "trigger \"keep_out\"");
    if (i % 8 == 0) salvaged(&g, sql);
  }
}

static void on_found(void *ctx, const lode_damage *d) {
  char *text = ctx;
  if (!*text) snprintf(text, 300, "%s", d->detail);
}

/* A handle that was open before learns of it, in whichever way it looks next. */
TEST(planted_under_an_open_handle) {
  ground g;
  lode_store *store;
  lode_error err = {0};
  char found[300] = "";
  prepare(&g, 512);
  begin(&g);
  OK(lode_open(g.work, &(lode_open_options){.no_background = true}, &store, &err));
  for (int q = 0; q < SCENE_QUESTIONS; q++) CHECK(scene_ask(store, q).status == LODE_OK);
  scene_sql(g.work, "CREATE TRIGGER keep_out BEFORE INSERT ON record BEGIN SELECT RAISE(IGNORE); END");
  for (int q = 0; q < SCENE_QUESTIONS; q++) {
    outcome o = scene_ask(store, q);
    refused("open handle", "keep_out", scene_question(q), o.status, o.text);
  }
  lode_collection *c = NULL;
  lode_collection_options o = {.create = true};
  refused("open handle", "keep_out", "create", lode_collection_open(store, S("new"), &o, &c, &err), err.text);
  refused("open handle", "keep_out", "optimize", lode_optimize(store, (lode_progress){0}, &err), err.text);
  CHECK(lode_verify(store, on_found, found, (lode_progress){0}, &err) == LODE_CORRUPT);
  CHECKF(strstr(found, "keep_out"), "%s", found);
  scene_sql(g.work, "DROP TRIGGER keep_out"); /* and goes on when it is whole again */
  for (int q = 0; q < SCENE_QUESTIONS; q++) CHECK(scene_ask(store, q).status == LODE_OK);
  lode_close(store);
  CHECK(scene_content(g.work) == g.content);
}

/* Changed without a new schema number: those who have read it go on with what they read, all others refuse. */
TEST(planted_without_a_new_number) {
  ground g;
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  uint64_t before, after;
  prepare(&g, 4096);
  begin(&g);
  OK(lode_open(g.work, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_collection_open(store, S("alpha"), NULL, &c, &err));
  OK(lode_count(c, &before, &err));
  scene_sql(g.work, EDIT "INSERT INTO sqlite_schema VALUES('trigger','keep_out','record',0,"
                         "'CREATE TRIGGER keep_out BEFORE INSERT ON record BEGIN SELECT RAISE(IGNORE); END')");
  lode_record r = {.id = S("new"), .document = S("new")};
  lode_status st = lode_add(c, NULL, &r, 1, LODE_FAIL_EXISTING, NULL, &err);
  OK(lode_count(c, &after, &err));
  CHECKF(after == before + (st == LODE_OK), "%s: %llu, then %llu", lode_status_name(st), (unsigned long long)before,
         (unsigned long long)after);
  lode_collection_close(c);
  lode_close(store);
  all_refuse(&g, "without a new number", "keep_out");
}

/* Between a look at the schema and SQLite's first parse of it there is no moment without the lock: what is planted as
 * soon as the lock is given back, without a new schema number, was not parsed. */
static const char *plant_in;
static int planting_lock(int fd, short type, off_t start, off_t len) {
  int rc = os_real.lock(fd, type, start, len);
  const char *work = plant_in;
  if (rc == 0 && type == F_UNLCK && start == 0 && len == 0 && work) {
    plant_in = NULL;
    scene_sql(work,
              EDIT "UPDATE sqlite_schema SET sql=replace(sql,'meta TEXT','meta TEXT CHECK(0)') WHERE name='record'");
  }
  return rc;
}

TEST(planted_while_a_store_is_opened) {
  ground g;
  lode_store *store;
  lode_collection *c;
  lode_error err = {0};
  static os_calls table;
  prepare(&g, 4096);
  begin(&g);
  table = os_real;
  table.lock = planting_lock;
  os_api = &table;
  plant_in = g.work;
  OK(lode_open(g.work, &(lode_open_options){.no_background = true}, &store, &err));
  CHECK(!plant_in);
  OK(lode_collection_open(store, S("alpha"), NULL, &c, &err));
  lode_record r = {.id = S("new"), .document = S("new"), .metadata = S("{\"a\":1}")};
  OK(lode_add(c, NULL, &r, 1, LODE_FAIL_EXISTING, NULL, &err));
  lode_collection_close(c);
  lode_close(store);
  os_api = &os_real;
  all_refuse(&g, "planted while it was opened", "record");
}

/* ---- The tree that the schema is in ---- */

/* Trees that are rings, lie about their pages or hold nothing. Page 1 of a store of small pages is an inner page. */
TEST(a_schema_that_is_no_tree) {
  static const struct {
    int at;
    unsigned char value[4];
    const char *what;
  } edits[] = {
      {108, {0, 0, 0, 1}, "its own child"},
      {108, {0, 0, 0, 0}, "child 0"},
      {108, {0xff, 0xff, 0xff, 0xff}, "child far away"},
      {108, {0, 0, 0, 2}, "a map as child"},
      {100, {0x0d, 0, 0, 0}, "no cells"},
      {100, {0x05, 0, 0, 0xff}, "too many cells"},
      {100, {0x0a, 0, 0, 0}, "an index"},
      {100, {0xff, 0, 0, 0}, "no such page"},
      {56, {0, 0, 0, 2}, "UTF-16"},
      {44, {0, 0, 0, 1}, "an old encoding"},
  };
  ground g;
  test_srand(test_seed());
  prepare(&g, 512);
  for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
    size_t len;
    begin(&g);
    char *bytes = test_read_file(g.file, &len);
    CHECK(bytes[100] == 0x05);
    memcpy(bytes + edits[i].at, edits[i].value, 4);
    vfs_seal_page(1, (unsigned char *)bytes, 512, 0);
    test_write_file(g.file, bytes, len);
    free(bytes);
    all_refuse(&g, edits[i].what, NULL);
    not_restored(&g, edits[i].what, NULL);
    salvaged(&g, edits[i].what);
  }
}

/* In large pages the rows of the schema are in page 1, beside the format. */
static void leave_newer_alone(uint32_t page_bytes) {
  ground g;
  lode_error err = {0};
  test_srand(test_seed());
  prepare(&g, page_bytes);
  begin(&g);
  scene_sql(g.work, "CREATE TABLE later(a)");
  scene_set_format(g.file, 99);
  for (int q = 0; q < SCENE_QUESTIONS; q++) {
    outcome o = scene_open_and_ask(g.work, q, q % 2);
    CHECKF(o.status == LODE_TOO_NEW && strstr(o.text, "newer Lode"), "%s %s", lode_status_name(o.status), o.text);
  }
  copy_file(g.file, g.backup);
  FAILS(LODE_TOO_NEW, lode_restore(g.backup, g.to, (lode_progress){0}, &err));
  scene_set_format(g.file, 0);
  all_refuse(&g, "format 0", "format");
}

TEST(a_newer_format_is_left_alone) { leave_newer_alone(512); }
TEST(a_newer_format_is_left_alone_in_large_pages) { leave_newer_alone(16384); }

/* Each format, as opened by this SQLite, whatever made it. */
TEST(known_schemas_pass) {
  static const uint32_t sizes[] = {512, 1024, 16384, 65536};
  static const char *const formats[] = {"SELECT 1", SCENE_FORMAT_1};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
      ground g;
      lode_error err = {0};
      prepare(&g, sizes[i]);
      begin(&g);
      scene_sql(g.work, formats[k]);
      copy_file(g.file, g.backup);
      OK(lode_restore(g.backup, g.to, (lode_progress){0}, &err));
      CHECK(scene_content(g.to) == g.content);
      CHECK(scene_content(g.work) == g.content);
    }
}
