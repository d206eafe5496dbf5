/* SPDX-License-Identifier: Apache-2.0 */
/* test_rescue_target.c - where a rescue writes: configuration, tenants and databases as `lode serve` keeps them; a
 * rescue that is killed or finds the disk full is gone on with by the next one. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "support/fault.h"
#include "rescue/chroma_layout.h"
#include "support/rescue_help.h"
#include "support/test.h"

/* The collection of that name; ends the test when there is none. */
static void info_of(const char *to, const char *name, char *metadata, size_t size, lode_metric *metric) {
  lode_error err;
  lode_store *store;
  lode_collection_list *list;
  bool found = false;
  OK(lode_open(to, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_collections(store, &list, &err));
  for (size_t i = 0; i < lode_collection_list_count(list); i++) {
    const lode_collection_info *info = lode_collection_list_at(list, i);
    if (!str_eq(info->name, str_of(name))) continue;
    found = true;
    *metric = info->metric;
    snprintf(metadata, size, "%.*s", (int)info->metadata.len, info->metadata.data);
  }
  lode_collection_list_free(list);
  lode_close(store);
  CHECKF(found, "there is no collection %s", name);
}

/* ---- Configuration ---- */

/* Each era says its metric and figures in a place of its own; where that is the only one, it must do. */
TEST(each_era_says_its_configuration_elsewhere) {
  static const struct {
    const char *version, *change;
  } eras[] = {
      {"0.4.24", "delete from segment_metadata"},
      {"0.5.23", "delete from segment_metadata"},
      {"1.0.21", "delete from segment_metadata; delete from collection_metadata"},
      {"1.0.21", "delete from segment_metadata; delete from collection_metadata; update collections set "
                 "config_json_str = json_extract(config_json_str, '$.vector_index')"},
      {"1.5.9", "delete from segment_metadata; delete from collection_metadata"},
  };
  for (size_t i = 0; i < sizeof eras / sizeof *eras; i++) {
    const char *folder = rescue_unpack(eras[i].version), *to = test_folder();
    lode_error err;
    rescue_outcome o;
    char metadata[8000];
    lode_metric metric;
    rescue_sql(folder, eras[i].change);
    OK(rescue_into(folder, to, NULL, &o, &err));
    rescue_check_whole(&o); /* the vectors of by-cosine are not what they were when it is taken for l2 */
    info_of(to, "by-cosine", metadata, sizeof metadata, &metric);
    CHECKF(metric == LODE_COSINE &&
               strstr(metadata, "\"" RESCUE_LAYOUT_KEY "\":{\"configuration\":{\"hnsw\":{\"space\":\"cosine\""),
           "%s: %s", eras[i].version, metadata);
    CHECKF(strstr(metadata, "\"sync_threshold\":8"), "%s: %s", eras[i].version, metadata);
    info_of(to, "by-ip", metadata, sizeof metadata, &metric);
    CHECKF(metric == LODE_IP && strstr(metadata, "\"max_neighbors\":5"), "%s: %s", eras[i].version, metadata);
  }
}

/* The figures that the directory was made with are needed where header.bin is lost. */
TEST(a_lost_header_is_made_up_for_by_the_configuration) {
  const char *folder = rescue_unpack("1.0.21");
  char path[500], file[540];
  lode_error err;
  rescue_outcome o;
  rescue_sql(folder, "delete from segment_metadata; delete from collection_metadata");
  rescue_segment(folder, "by-ip", path, sizeof path);
  snprintf(file, sizeof file, "%s/header.bin", path);
  CHECK(unlink(file) == 0);
  OK(rescue_run(folder, NULL, &o, &err));
  rescue_check_whole(&o);
}

/* ---- Tenants and databases ---- */

static bool registered(const char *to, const char *name, char *metadata, size_t size) {
  lode_error err;
  lode_store *store;
  lode_collection *c = NULL;
  lode_result *rows = NULL;
  lode_str id = str_of(name);
  lode_get_request get = {.select = {.ids = &id, .n_ids = 1}, .include = LODE_METADATA};
  OK(lode_open(to, &(lode_open_options){.no_background = true}, &store, &err));
  OK(lode_collection_open(store, STR_LIT(RESCUE_LAYOUT_REGISTRY), NULL, &c, &err));
  OK(lode_get(c, &get, &rows, &err));
  bool there = lode_result_count(rows) == 1;
  if (there)
    snprintf(metadata, size, "%.*s", (int)lode_result_at(rows, 0)->metadata.len,
             lode_result_at(rows, 0)->metadata.data);
  lode_result_free(rows);
  lode_collection_close(c);
  lode_close(store);
  return there;
}

TEST(tenants_and_databases_come_over) {
  const char *folder = rescue_unpack("1.5.9"), *to = test_folder();
  lode_error err;
  rescue_outcome o;
  char metadata[8000];
  lode_metric metric;
  rescue_sql(folder,
             "insert into tenants(id) values ('acme'), ('50% off'), ('nobody');"
             "insert into databases(id, name, tenant_id) values ('11111111-1111-4111-8111-111111111111', 'main', "
             "'acme'), ('22222222-2222-4222-8222-222222222222', 'a/b', '50% off'),"
             " ('33333333-3333-4333-8333-333333333333', 'archive', 'default_tenant'), "
             "('44444444-4444-4444-8444-444444444444', 'empty', 'acme');"
             "update collections set database_id = '11111111-1111-4111-8111-111111111111' where name = 'by-l2';"
             "update collections set database_id = '22222222-2222-4222-8222-222222222222' where name = 'by-ip';"
             "update collections set database_id = '33333333-3333-4333-8333-333333333333' where name = 'by-cosine'");
  for (int again = 0; again < 2; again++) {
    OK(rescue_into(folder, to, "tail", &o, &err));
    rescue_check_whole(&o);
    CHECK(again ? o.total.written == 0 && o.total.unchanged > 100 : o.total.written > 100);
  }
  info_of(to, "acme/main/by-l2", metadata, sizeof metadata, &metric);
  info_of(to, "50%25 off/a%2Fb/by-ip", metadata, sizeof metadata, &metric);
  CHECK(metric == LODE_IP);
  info_of(to, "default_tenant/archive/by-cosine", metadata, sizeof metadata, &metric);
  static const char *const ids[] = {"t:acme",      "t:50%25 off",       "t:nobody",
                                    "d:acme/main", "d:50%25 off/a%2Fb", "d:default_tenant/archive",
                                    "d:acme/empty"};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
    CHECKF(registered(to, ids[i], metadata, sizeof metadata), "%s", ids[i]);
  CHECK(registered(to, "d:50%25 off/a%2Fb", metadata, sizeof metadata) && strstr(metadata, "\"tenant\":\"50% off\"") &&
        strstr(metadata, "\"name\":\"a/b\"") && strstr(metadata, "22222222-2222-4222-8222-222222222222"));
  CHECK(!registered(to, "t:default_tenant", metadata, sizeof metadata) &&
        !registered(to, "d:default_tenant/default_database", metadata, sizeof metadata));
}

/* ---- Killed, or without room ---- */

typedef struct attempt {
  const char *folder, *to;
} attempt;

static lode_status attempt_rescue(void *ctx, lode_error *err) {
  const attempt *a = ctx;
  rescue_outcome o;
  return rescue_into(a->folder, a->to, NULL, &o, err);
}

static uint64_t try_rescue(const char *folder, const char *to, fault_effect effect, uint64_t n) {
  return fault_in_child(attempt_rescue, &(attempt){folder, to}, effect == FAULT_ENOSPC ? FAULT_PWRITE : FAULT_ANY, n,
                        effect);
}

static void interrupted(fault_effect effect) {
  const char *folder = rescue_unpack("1.5.9");
  char to[400];
  lode_error err;
  snprintf(to, sizeof to, "%s/store", test_folder());
  uint64_t total = try_rescue(folder, to, effect, 0), tries = test_full() ? 200 : 25;
  CHECK(total > 30);
  for (uint64_t n = 1 + test_below(total / tries + 1); n <= total; n += 1 + test_below(2 * total / tries)) {
    rescue_outcome o;
    test_remove_tree(to);
    (void)try_rescue(folder, to, effect, n);
    if (test_below(2)) (void)try_rescue(folder, to, effect, 1 + test_below(n)); /* and once more */
    OK(rescue_into(folder, to, NULL, &o, &err));
    rescue_check_whole(&o);
    CHECKF(o.total.written + o.total.unchanged == o.total.records, "call %llu: doubled or lost", (unsigned long long)n);
    OK(rescue_into(folder, to, NULL, &o, &err));
    CHECK(o.total.written == 0 && o.total.unchanged == o.total.records);
  }
}

TEST_SLOW(a_rescue_that_is_killed_is_gone_on_with, 240) { interrupted(FAULT_EXIT); }
TEST_SLOW(a_full_disk_is_reported_and_the_next_run_goes_on, 240) { interrupted(FAULT_ENOSPC); }
