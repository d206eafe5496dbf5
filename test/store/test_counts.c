/* SPDX-License-Identifier: Apache-2.0 */
/* test_counts.c - a scan, an export or a backup that meets another number of records than the database says there are
 * is an error, not a short answer: rows that are gone, counts that lie, old pages put back, all with right checksums.
 */
#include "support/scene.h"
#include "repair/repair_internal.h"
#include "support/test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define S(text) ((lode_str){text, sizeof(text) - 1})
#define OF(id) "(SELECT rid FROM record WHERE id=CAST('" id "' AS BLOB))"

typedef struct ground {
  char base[420], work[420], file[440], backup[440];
} ground;

static void prepare(ground *g, uint32_t page_bytes) {
  const char *root = test_folder();
  snprintf(g->base, sizeof g->base, "%s/base", root);
  snprintf(g->work, sizeof g->work, "%s/work", root);
  snprintf(g->file, sizeof g->file, "%s/lode.db", g->work);
  snprintf(g->backup, sizeof g->backup, "%s/backup", root);
  scene_make(g->base, page_bytes);
}

static int64_t swallow(void *ctx, const void *data, size_t len) {
  (void)ctx, (void)data;
  return (int64_t)len;
}

enum { BY_GET, BY_PENDING, BY_EXPORT, BY_FACETS, BY_FILTER, BY_VECTOR, BY_BACKUP, WAYS };
static const char *const ways[WAYS] = {"get", "get pending", "export", "facets", "filter", "vector query", "backup"};

static lode_status ask(const ground *g, lode_store *store, lode_collection *c, int way, lode_error *err) {
  lode_result *rows = NULL;
  lode_facet_list *facets = NULL;
  float v[8] = {0.5f, 1};
  lode_status st = LODE_OK;
  uint64_t n;
  unlink(g->backup);
  switch (way) {
    case BY_GET: st = lode_get(c, &(lode_get_request){.include = LODE_ALL}, &rows, err); break;
    case BY_PENDING: st = lode_get(c, &(lode_get_request){.pending_only = true}, &rows, err); break;
    case BY_EXPORT: st = lode_export(c, NULL, LODE_ALL, swallow, NULL, (lode_progress){0}, &n, err); break;
    case BY_FACETS: st = lode_facets(c, S("tags"), (lode_str){0}, 0, &facets, err); break;
    case BY_FILTER:
      st = lode_get(c, &(lode_get_request){.select.where_document = S("{\"$contains\":\"e\"}")}, &rows, err);
      break;
    case BY_VECTOR:
      st = lode_query(c, &(lode_query_request){.vectors = v, .dimension = 8, .n = 1, .k = 3}, &rows, err);
      break;
    default: st = lode_backup(store, g->backup, (lode_progress){0}, err); break;
  }
  lode_result_free(rows);
  lode_facet_list_free(facets);
  return st;
}

/* Those of `wanted` say CORRUPT, the others are content. */
static void check_ways(const ground *g, const char *what, unsigned wanted) {
  for (int way = 0; way < WAYS; way++) {
    lode_store *store;
    lode_collection *c;
    lode_error err = {0};
    OK(lode_open(g->work, &(lode_open_options){.no_background = true, .read_only = way % 2}, &store, &err));
    OK(lode_collection_open(store, S("alpha"), NULL, &c, &err));
    lode_status st = ask(g, store, c, way, &err);
    CHECKF(st == (wanted & 1u << way ? LODE_CORRUPT : LODE_OK), "%s, %s: %s %s", what, ways[way], lode_status_name(st),
           err.text);
    CHECKF(st == LODE_OK || strstr(err.text, "lode db verify"), "%s, %s: %s", what, ways[way], err.text);
    CHECKF(way != BY_BACKUP || (access(g->backup, F_OK) == 0) == (st == LODE_OK), "%s: a backup was left", what);
    lode_collection_close(c);
    lode_close(store);
  }
}

#define SCANS (1u << BY_GET | 1u << BY_EXPORT | 1u << BY_FILTER | 1u << BY_BACKUP)

TEST(another_number_of_records_is_an_error) {
  static const struct {
    const char *sql;
    unsigned wanted;
  } cases[] = {
      {"SELECT 1", 0},
      {"UPDATE collection SET records=records+1 WHERE name='alpha'", SCANS | 1u << BY_VECTOR},
      {"UPDATE collection SET records=records-1 WHERE name='alpha'", SCANS},
      {"UPDATE collection SET pending=pending-1 WHERE name='alpha'", 1u << BY_PENDING | 1u << BY_VECTOR},
      {"UPDATE collection SET pending=pending+1 WHERE name='alpha'", 1u << BY_PENDING},
      {"DELETE FROM record WHERE rid=" OF("item-041"), SCANS},
      {"DELETE FROM vector WHERE vid=(SELECT vid FROM record WHERE rid=" OF("item-001") ")",
       1u << BY_VECTOR | 1u << BY_GET | 1u << BY_EXPORT},
      {"UPDATE collection SET records=records+1 WHERE name='beta'", 1u << BY_BACKUP},
  };
  static const uint32_t sizes[] = {512, 16384};
  for (size_t k = 0; k < 2; k++) {
    ground g;
    prepare(&g, sizes[k]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      test_remove_tree(g.work);
      test_copy_tree(g.base, g.work);
      scene_sql(g.work, cases[i].sql);
      check_ways(&g, cases[i].sql, cases[i].wanted);
    }
  }
}

/* Is it a leaf that holds rows of records? */
static bool holds_records(vfs_pages *p, uint32_t number, unsigned char *page) {
  sqf_view view;
  sqf_cell row;
  if (vfs_pages_use_of(p, number) == SQF_PAGE_FREE || !vfs_pages_read(p, number, page)) return false;
  if (!sqf_view_page(&p->src, number, page, &view) || !sqf_view_has_rows(&view) || view.cells == 0) return false;
  return sqf_cell_parse_row(&p->src, &view, sqf_view_cell(&p->src, &view, 0), &row) &&
         repair_row_kind_of(&row, &view) == REPAIR_ROW_RECORD;
}

/* A leaf of the records as it was before more were added. */
TEST(an_old_page_put_back_is_found_by_its_number_of_records) {
  ground g;
  vfs_pages p;
  lode_error err = {0};
  unsigned char page[512];
  size_t len, old_len;
  int tried = 0;
  prepare(&g, 512);
  test_copy_tree(g.base, g.work);
  char *old = test_read_file(g.file, &old_len);
  for (int i = 0; i < scene_n_acts; i++)
    if (strcmp(scene_acts[i].name, "add") == 0) CHECK(scene_acts[i].play(g.work).status == LODE_OK);
  char *bytes = test_read_file(g.file, &len);
  OK(vfs_pages_open(g.file, &p, &err));
  for (uint32_t n = 2; n <= old_len / 512; n++) {
    if (!holds_records(&p, n, page) || memcmp(old + (n - 1) * 512, bytes + (n - 1) * 512, 512) == 0) continue;
    char *mixed = malloc(len);
    memcpy(mixed, bytes, len);
    memcpy(mixed + (n - 1) * 512, old + (n - 1) * 512, 512);
    test_write_file(g.file, mixed, len);
    free(mixed);
    lode_store *store;
    lode_collection *c;
    OK(lode_open(g.work, &(lode_open_options){.no_background = true}, &store, &err));
    OK(lode_collection_open(store, S("alpha"), NULL, &c, &err));
    for (int way = 0; way < WAYS; way++) {
      if (!(SCANS & 1u << way)) continue;
      lode_status st = ask(&g, store, c, way, &err);
      CHECKF(st == LODE_CORRUPT, "page %u, %s: %s", n, ways[way], lode_status_name(st));
    }
    lode_collection_close(c);
    lode_close(store);
    test_write_file(g.file, bytes, len);
    tried++;
  }
  vfs_pages_close(&p);
  CHECK(tried > 0);
  free(old);
  free(bytes);
}

/* Through a link, and by a relative path. */
TEST(a_backup_into_a_linked_folder) {
  ground g;
  lode_store *store;
  lode_error err = {0};
  char folder[440], link[460], file[480];
  prepare(&g, 4096);
  snprintf(folder, sizeof folder, "%.400s/there", test_folder());
  snprintf(link, sizeof link, "%s-link", folder);
  snprintf(file, sizeof file, "%s/backup", link);
  CHECK(mkdir(folder, 0700) == 0 && symlink(folder, link) == 0);
  OK(lode_open(g.base, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_backup(store, file, (lode_progress){0}, &err));
  CHECK(chdir(link) == 0);
  OK(lode_backup(store, "another", (lode_progress){0}, &err));
  lode_close(store);
  OK(lode_restore("another", "restored", (lode_progress){0}, &err));
  CHECK(scene_content("restored") == scene_content(g.base));
}

/* A backup that does not hold what it says is not restored. */
TEST(a_backup_that_lacks_records_is_refused) {
  ground g;
  lode_error err = {0};
  size_t len;
  prepare(&g, 4096);
  test_copy_tree(g.base, g.work);
  scene_sql(g.work, "UPDATE collection SET records=records+1 WHERE name='alpha'");
  char *bytes = test_read_file(g.file, &len);
  test_write_file(g.backup, bytes, len);
  free(bytes);
  test_remove_tree(g.work);
  FAILS(LODE_CORRUPT, lode_restore(g.backup, g.work, (lode_progress){0}, &err));
  CHECK(access(g.file, F_OK) != 0);
}

/* A deletion through two ids of one record would write a tombstone that nobody can read. */
TEST(two_ids_of_one_record) {
  ground g;
  lode_store *store;
  lode_error err = {0};
  lode_collection *c;
  size_t deleted = 0;
  lode_str ids[] = {S("item-005"), S("zz-twice")};
  prepare(&g, 512);
  scene_sql(g.base,
            "INSERT INTO name(cid,id,rid,len) SELECT cid,CAST('zz-twice' AS BLOB),rid,len FROM (SELECT * FROM name"
            " UNION ALL SELECT * FROM fresh) WHERE id=CAST('item-005' AS BLOB) ORDER BY cid LIMIT 1");
  OK(lode_open(g.base, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_collection_open(store, S("alpha"), NULL, &c, &err));
  CHECK(lode_delete(c, NULL, &(lode_selection){.ids = ids, .n_ids = 2}, &deleted, &err) == LODE_CORRUPT);
  CHECKF(strstr(err.text, "two ids"), "%s", err.text);
  OK(lode_delete(c, NULL, &(lode_selection){.ids = ids, .n_ids = 1}, &deleted, &err)); /* tombstones can be read */
  CHECK(deleted == 1);
  lode_collection_close(c);
  lode_close(store);
}
