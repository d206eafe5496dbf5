/* SPDX-License-Identifier: Apache-2.0 */
/* test_rescue.c - Chroma directories of each era, sound and damaged, against what Chroma itself said they hold. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "rescue/hnsw.h"
#include "support/rescue_help.h"
#include "support/test.h"

/* Whatever was damaged: no record that nobody expected, and no wrong vector that was not reported. */
static void check_honest(const rescue_outcome *o) {
  CHECKF(o->wrong_untold == 0, "%llu wrong vectors that were not reported", (unsigned long long)o->wrong_untold);
  CHECK(o->total.missing == 0 || o->told > 0);
}

TEST_SLOW(every_era_comes_over_whole, 180) {
  lode_error err;
  for (size_t i = 0; rescue_fixtures[i]; i++) {
    rescue_outcome o;
    OK(rescue_run(rescue_unpack(rescue_fixtures[i]), NULL, &o, &err));
    rescue_check_whole(&o);
    CHECK(o.compared >= 100 && o.collections >= 6 && o.told == 0);
    CHECK(o.total.written == o.compared);
  }
}

static lode_status ignore_collection(void *ctx, const rescue_counts *n, lode_error *err) {
  (void)err;
  rescue_counts *t = ctx;
  t->records += n->records;
  t->written += n->written;
  t->unchanged += n->unchanged;
  t->exact += n->exact;
  t->from_log += n->from_log;
  return LODE_OK;
}

TEST(a_second_run_finds_all_in_place_and_a_dry_run_says_the_same) {
  lode_error err;
  char from[300];
  lode_open_options how = {.create = true, .no_background = true};
  lode_store *store = NULL;
  rescue_counts first = {0}, second = {0}, dry = {0};
  snprintf(from, sizeof from, "%s/chroma", rescue_unpack("1.5.9"));
  OK(lode_open(test_folder(), &how, &store, &err));
  rescue_request q = {.from = from, .to = store, .collection = ignore_collection, .ctx = &first};
  OK(rescue_from_chroma(&q, &err));
  q.ctx = &second;
  OK(rescue_from_chroma(&q, &err));
  CHECK(first.written == first.records && first.unchanged == 0);
  CHECK(second.written == 0 && second.unchanged == first.records);
  q.to = NULL;
  q.ctx = &dry;
  OK(rescue_from_chroma(&q, &err));
  CHECK(dry.records == first.records && dry.exact == first.exact && dry.from_log == first.from_log && dry.written == 0);
  /* a record that somebody changed in the store becomes what it was */
  lode_collection *c = NULL;
  lode_record changed = {.id = {"r001", 4}, .document = {"other", 5}, .metadata = {"{\"new\":1}", 9}};
  OK(lode_collection_open(store, STR_LIT("by-l2"), &(lode_collection_options){0}, &c, &err));
  OK(lode_upsert(c, NULL, &changed, 1, NULL, &err));
  lode_collection_close(c);
  rescue_counts third = {0};
  q.to = store;
  q.ctx = &third;
  OK(rescue_from_chroma(&q, &err));
  CHECK(third.written == 1 && third.unchanged == first.records - 1);
  lode_close(store);
}

/* ---- Damage to the index ---- */

static const char *const spaces[] = {"by-l2", "by-cosine", "by-ip"};
static const char *const eras[] = {"0.6.3",
                                   "1.5.9"}; /* both purge their queues, so that most vectors are in the index alone */

static void path_in(char *path, size_t size, const char *folder, const char *collection, const char *file) {
  char segment[300];
  rescue_segment(folder, collection, segment, sizeof segment);
  snprintf(path, size, "%s/%s", segment, file);
}

static void cut(const char *path, double part) {
  struct stat sb;
  CHECK(stat(path, &sb) == 0 && truncate(path, (off_t)((double)sb.st_size * part)) == 0);
}

/* What Chroma dies of costs nothing: the graph is never read. */
TEST_SLOW(links_header_and_graph_may_be_lost, 120) {
  lode_error err;
  for (size_t e = 0; e < 2; e++) {
    const char *folder = rescue_unpack(eras[e]);
    for (size_t i = 0; i < 3; i++) {
      rescue_outcome o;
      char path[400];
      path_in(path, sizeof path, folder, spaces[i], "link_lists.bin");
      CHECK(unlink(path) == 0);
      path_in(path, sizeof path, folder, spaces[i], "header.bin");
      if (i == 0)
        test_write_file(path, "corrupted", 9);
      else if (i == 1)
        cut(path, 0.5);
      else
        CHECK(unlink(path) == 0);
      OK(rescue_run(folder, spaces[i], &o, &err));
      rescue_check_whole(&o);
    }
  }
}

/* An index as 1.x writes it: labels in no order, neighbours anywhere. */
static void write_level0(const char *folder, unsigned n, unsigned dimension, unsigned m) {
  char path[400];
  strbuf elements = {0}, lengths = {0};
  for (unsigned i = 0; i < n; i++) {
    uint32_t links = 2 * m, zero = 0;
    uint64_t label = 1 + (uint64_t)i * 7919 % n;
    float value = 1.5f;
    strbuf_add(&elements, &links, sizeof links);
    for (unsigned k = 0; k < links; k++) {
      uint32_t neighbour = (uint32_t)test_below(n);
      strbuf_add(&elements, &neighbour, sizeof neighbour);
    }
    for (unsigned k = 0; k < dimension; k++) strbuf_add(&elements, &value, sizeof value);
    strbuf_add(&elements, &label, sizeof label);
    strbuf_add(&lengths, &zero, sizeof zero);
  }
  snprintf(path, sizeof path, "%s/data_level0.bin", folder);
  test_write_file(path, elements.data, elements.len);
  snprintf(path, sizeof path, "%s/length.bin", folder);
  test_write_file(path, lengths.data, lengths.len);
  strbuf_release(&elements);
  strbuf_release(&lengths);
}

TEST(the_shape_is_found_without_header_whatever_the_order_of_labels) {
  static const unsigned ms[] = {5, 16, 48};
  for (size_t i = 0; i < sizeof ms / sizeof *ms; i++)
    for (int without_lengths = 0; without_lengths < 2; without_lengths++) {
      const char *folder = test_folder();
      char path[400];
      rescue_hnsw x;
      lode_error err;
      write_level0(folder, 1500, 8, ms[i]);
      snprintf(path, sizeof path, "%s/length.bin", folder);
      if (without_lengths) CHECK(unlink(path) == 0);
      OK(rescue_hnsw_open(folder, 8, 0, &x, &err));
      CHECKF(x.header_bad && x.shape.max_m0 == 2 * ms[i] && x.n == 1500, "M %u: %u neighbours, %zu elements", ms[i],
             x.shape.max_m0, x.n);
      rescue_hnsw_close(&x);
    }
}

TEST_SLOW(neighbours_of_0xff_are_not_followed, 120) {
  lode_error err;
  for (size_t e = 0; e < 2; e++) {
    const char *folder = rescue_unpack(eras[e]);
    rescue_outcome o;
    char path[400];
    size_t len;
    path_in(path, sizeof path, folder, "by-l2", "data_level0.bin");
    char *bytes = test_read_file(path, &len);
    for (size_t at = 0; at + 156 <= len; at += 156) memset(bytes + at + 4, 0xff, 128); /* dimension 4, 32 neighbours */
    test_write_file(path, bytes, len);
    free(bytes);
    OK(rescue_run(folder, "by-l2", &o, &err));
    rescue_check_whole(&o);
  }
}

/* One collection of a directory that has lost a file. */
static rescue_outcome rescue_without(const char *version, const char *space, const char *file) {
  const char *folder = rescue_unpack(version);
  lode_error err;
  rescue_outcome o;
  char path[400];
  path_in(path, sizeof path, folder, space, file);
  CHECK(unlink(path) == 0);
  OK(rescue_run(folder, space, &o, &err));
  return o;
}

TEST_SLOW(a_lost_pickle_is_made_up_for_by_order, 120) {
  static const char *const versions[] = {"1.0.21", "1.5.9"};
  for (size_t e = 0; e < 2; e++)
    for (size_t i = 0; i < 3; i++) {
      rescue_outcome o = rescue_without(versions[e], spaces[i], "index_metadata.pickle");
      rescue_check_whole(&o);
      CHECK(o.total.by_order > 0);
    }
}

/* Before 1.0 the labels of a batch are in no order: nothing may be guessed. */
TEST_SLOW(a_lost_pickle_of_older_ones_gives_no_wrong_vector, 120) {
  static const char *const versions[] = {"0.5.23", "0.6.3", "0.6.3-1.5.9"};
  for (size_t e = 0; e < 3; e++)
    for (size_t i = 0; i < 3; i++) {
      rescue_outcome o = rescue_without(versions[e], spaces[i], "index_metadata.pickle");
      check_honest(&o);
      CHECK(o.absent == 0 && o.extra == 0 && o.wrong_text == 0 && o.wrong_vector == 0 && o.no_vector > 0 &&
            o.told >= o.no_vector);
    }
}

TEST_SLOW(a_pickle_cut_anywhere_gives_no_wrong_vector, 240) {
  lode_error err;
  for (size_t e = 0; e < 2; e++) {
    const char *folder = rescue_unpack(eras[e]);
    char path[400];
    size_t len;
    path_in(path, sizeof path, folder, "by-cosine", "index_metadata.pickle");
    char *bytes = test_read_file(path, &len);
    for (size_t n = 0; n < len; n += test_full() ? 1 : 1 + test_below(len / 6)) {
      rescue_outcome o;
      test_write_file(path, bytes, n);
      OK(rescue_run(folder, "by-cosine", &o, &err));
      check_honest(&o);
      CHECK(o.absent == 0 && o.extra == 0 && o.wrong_text == 0 && o.wrong_vector == 0);
    }
    free(bytes);
  }
}

TEST_SLOW(lost_lengths_leave_directions_and_say_so, 60) {
  rescue_outcome o = rescue_without("1.5.9", "by-cosine", "length.bin");
  CHECK(o.no_vector == 0 && o.wrong_vector > 0 && o.wrong_untold == 0);
}

TEST_SLOW(an_index_cut_in_half_keeps_its_first_half, 60) {
  lode_error err;
  const char *folder = rescue_unpack("0.5.23");
  rescue_outcome o;
  char path[400];
  path_in(path, sizeof path, folder, "by-l2", "data_level0.bin");
  CHECK(truncate(path, 156 * 12) == 0);
  OK(rescue_run(folder, "by-l2", &o, &err));
  CHECK(o.no_vector > 0 && o.no_vector < o.compared && o.wrong_vector == 0 && o.absent == 0 && o.wrong_text == 0);
  CHECK(o.told == o.no_vector);
}

/* The folder that a "quarantine" renamed still holds the vectors that Chroma lost by it. */
TEST_SLOW(an_index_that_was_set_aside_is_found, 60) {
  lode_error err;
  const char *folder = rescue_unpack("1.5.9");
  rescue_outcome o;
  char path[400], aside[460];
  rescue_segment(folder, "by-ip", path, sizeof path);
  snprintf(aside, sizeof aside, "%s.drift-20260418-180405", path);
  CHECK(rename(path, aside) == 0);
  OK(rescue_run(folder, "by-ip", &o, &err));
  CHECK(o.no_vector == 0 && o.wrong_vector == 0 && o.told > 0);
}

TEST_SLOW(flipped_bits_in_the_index_bring_no_crash, 240) {
  lode_error err;
  static const char *const files[] = {"header.bin", "data_level0.bin", "length.bin", "index_metadata.pickle"};
  const char *folder = rescue_unpack("1.5.9");
  for (int round = 0; round < (test_full() ? 400 : 24); round++) {
    rescue_outcome o;
    char path[400];
    size_t len;
    path_in(path, sizeof path, folder, "by-cosine", files[round % 4]);
    char *bytes = test_read_file(path, &len), *copy = malloc(len);
    memcpy(copy, bytes, len);
    for (int k = 0; k < 20; k++) copy[test_below(len)] ^= (char)(1 << test_below(8));
    test_write_file(path, copy, len);
    OK(rescue_run(folder, "by-cosine", &o, &err));
    CHECK(o.absent == 0 && o.wrong_text == 0);
    test_write_file(path, bytes, len);
    free(bytes);
    free(copy);
  }
}

/* ---- Damage to the database ---- */

static size_t page_bytes_of(const char *db) {
  return (size_t)(unsigned char)db[16] << 8 | (size_t)(unsigned char)db[17] << 16;
}

TEST_SLOW(pages_of_the_database_may_be_lost, 300) {
  lode_error err;
  static const char *const versions[] = {"1.5.9", "0.6.3", "0.4.24"};
  for (size_t e = 0; e < 3; e++) {
    const char *folder = rescue_unpack(versions[e]);
    char path[400];
    size_t len;
    uint64_t lost_records = 0, pages = 0;
    snprintf(path, sizeof path, "%s/chroma/chroma.sqlite3", folder);
    char *bytes = test_read_file(path, &len), *copy = malloc(len);
    size_t size = page_bytes_of(bytes);
    for (size_t page = test_full() ? 0 : test_below(8); page < len / size;
         page += test_full() ? 1 : 1 + test_below(14)) {
      rescue_outcome o;
      memcpy(copy, bytes, len);
      memset(copy + page * size, page % 2 ? 0 : 0xff, size);
      test_write_file(path, copy, len);
      OK(rescue_run(folder, NULL, &o, &err));
      if (getenv("LODE_TEST_SHOW"))
        printf(
            "%s page %zu: absent %llu extra %llu text %llu vector wrong %llu none %llu untold %llu text untold %llu\n",
            versions[e], page + 1, (unsigned long long)o.absent, (unsigned long long)o.extra,
            (unsigned long long)o.wrong_text, (unsigned long long)o.wrong_vector, (unsigned long long)o.no_vector,
            (unsigned long long)o.wrong_untold, (unsigned long long)o.text_untold);
      CHECKF(o.wrong_untold == 0, "page %zu: %llu wrong vectors that were not reported", page + 1,
             (unsigned long long)o.wrong_untold);
      CHECKF(o.text_untold == 0 && o.extra == 0, "page %zu: %llu documents or metadata differ unreported", page + 1,
             (unsigned long long)o.text_untold);
      lost_records += o.absent;
      pages++;
    }
    /* rows have second copies in the indexes: none is lost with any one page */
    CHECKF(lost_records == 0, "%llu records lost with %llu pages", (unsigned long long)lost_records,
           (unsigned long long)pages);
    test_write_file(path, bytes, len);
    free(bytes);
    free(copy);
  }
}

/* Rows that are gone from a sound database were deleted; from a damaged one they are lost, and whoever knows them says
 * so. */
TEST(records_that_a_damaged_database_has_lost_are_named) {
  const char *folder = rescue_unpack("1.5.9");
  char path[400];
  lode_error err;
  rescue_outcome o;
  size_t len;
  rescue_sql(folder, "pragma secure_delete = on; delete from embeddings where embedding_id in ('r001', 'r002')");
  OK(rescue_run(folder, "by-l2", &o, &err));
  CHECK(o.absent == 2 && o.total.lost == 0);
  snprintf(path, sizeof path, "%s/chroma/chroma.sqlite3", folder);
  char *bytes = test_read_file(path, &len);
  memset(bytes, 0, 100);
  test_write_file(path, bytes, len);
  free(bytes);
  OK(rescue_run(folder, "by-l2", &o, &err));
  CHECKF(o.absent == 2 && o.total.lost >= 2 && o.told >= 2, "%llu absent, %llu lost, %llu reported",
         (unsigned long long)o.absent, (unsigned long long)o.total.lost, (unsigned long long)o.told);
}

TEST_SLOW(a_database_cut_anywhere_gives_what_is_left, 240) {
  lode_error err;
  const char *folder = rescue_unpack("1.5.9");
  char path[400];
  size_t len;
  snprintf(path, sizeof path, "%s/chroma/chroma.sqlite3", folder);
  char *bytes = test_read_file(path, &len);
  for (size_t n = 0; n < len; n += test_full() ? 512 : 1 + test_below(len / 8)) {
    rescue_outcome o;
    test_write_file(path, bytes, n);
    lode_status st = rescue_run(folder, NULL, &o, &err);
    CHECKF(st == LODE_OK || st == LODE_CORRUPT, "%s: %s", lode_status_name(st), err.text);
    CHECK(st == LODE_CORRUPT || o.wrong_untold == 0);
  }
  free(bytes);
}

TEST_SLOW(flipped_bits_in_the_database_bring_no_crash, 240) {
  lode_error err;
  const char *folder = rescue_unpack("0.6.3");
  char path[400];
  size_t len;
  snprintf(path, sizeof path, "%s/chroma/chroma.sqlite3", folder);
  char *bytes = test_read_file(path, &len), *copy = malloc(len);
  for (int round = 0; round < (test_full() ? 300 : 16); round++) {
    rescue_outcome o;
    memcpy(copy, bytes, len);
    for (int k = 0; k < 200; k++)
      copy[round % 2 ? test_below(len) : test_below(len / 20)] ^= (char)(1 << test_below(8));
    test_write_file(path, copy, len);
    lode_status st = rescue_run(folder, NULL, &o, &err);
    CHECKF(st == LODE_OK || st == LODE_CORRUPT || st == LODE_MISMATCH, "%s: %s", lode_status_name(st), err.text);
  }
  free(bytes);
  free(copy);
}
