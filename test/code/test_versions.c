/* SPDX-License-Identifier: Apache-2.0 */
/* test_versions.c - versions of files: ids, ages, and which chunks a reader takes for a file's. */
#include "support/test.h"

#include "indexer/indexer_tuning.h"
#include "os/os.h"
#include "search/search_versions.h"

static lode_error err;

TEST(an_id_names_its_file_its_version_and_its_place) {
  static const struct {
    const char *id, *path, *version; /* path NULL: no id of a chunk */
  } cases[] = {
      {"a.c#0", "a.c", ""},
      {"a#b.c#12", "a#b.c", ""},
      {"a.c@0199c2a4b7e-1f0e93aa#3", "a.c", "0199c2a4b7e-1f0e93aa"},
      {"a.c@0199C2A4B7E-1f0e93aa#3", "a.c@0199C2A4B7E-1f0e93aa", ""},
      {"a.c@0199c2a4b7e_1f0e93aa#3", "a.c@0199c2a4b7e_1f0e93aa", ""},
      {"@0199c2a4b7e-1f0e93aa#3", "@0199c2a4b7e-1f0e93aa", ""},
      {"me@home.c#1", "me@home.c", ""},
      {"a.c", NULL, ""},
      {"a.c#", NULL, ""},
      {"#1", NULL, ""},
      {"", NULL, ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    indexer_version version;
    lode_str path;
    bool is = indexer_chunk_id_parse(str_of(cases[i].id), &path, &version);
    CHECKF(is == (cases[i].path != NULL), "%s", cases[i].id);
    if (!is) continue;
    CHECKF(str_eq(path, str_of(cases[i].path)) && strcmp(version.text, cases[i].version) == 0, "%s: %.*s, %s",
           cases[i].id, (int)path.len, path.data, version.text);
    strbuf back = {0};
    OK(indexer_chunk_id(&back, path, &version, 7, &err));
    indexer_version again;
    CHECK(indexer_chunk_id_parse(str_of(back.data), &path, &again) && indexer_version_eq(&version, &again));
    strbuf_release(&back);
  }
  strbuf beside = {0};
  CHECK(indexer_chunk_id_beside(&beside, STR_LIT("a.c@0199c2a4b7e-1f0e93aa#9"), 1));
  CHECK(str_eq((lode_str){beside.data, beside.len}, STR_LIT("a.c@0199c2a4b7e-1f0e93aa#10")));
  CHECK(!indexer_chunk_id_beside(&beside, STR_LIT("a.c#0"), -1));
  CHECK(!indexer_chunk_id_beside(&beside, STR_LIT("a.c#99999999999999999999"), 1));
  strbuf_release(&beside);
}

TEST(no_version_is_made_twice_and_each_has_an_age) {
  indexer_version a, b, none, ahead;
  OK(indexer_version_make(&a, &err));
  OK(indexer_version_make(&b, &err));
  CHECK(!indexer_version_eq(&a, &b));
  CHECK(indexer_version_age_ms(&a) < INDEXER_VERSION_YOUNG_MS);
  indexer_version_parse(&none, STR_LIT("none"));
  CHECK(!none.text[0] && indexer_version_age_ms(&none) == UINT64_MAX);
  indexer_version_parse(&ahead, STR_LIT("fffffffffff-00000000"));
  CHECK(ahead.text[0] && indexer_version_age_ms(&ahead) == 0);
}

static void put_file(lode_collection *files, const char *path, const indexer_version *version) {
  indexer_file_state state = {.version = *version, .chunks = 1};
  strbuf text = {0};
  indexer_file_state_put(&text, &state, "c");
  lode_record record = {.id = str_of(path), .metadata = {text.data, text.len}};
  OK(lode_upsert(files, NULL, &record, 1, NULL, &err));
  strbuf_release(&text);
}

static void id_of(strbuf *id, const char *path, const indexer_version *version) {
  OK(indexer_chunk_id(id, str_of(path), version, 0, &err));
  id->len--;
}

TEST(only_chunks_of_the_version_in_the_record_are_a_files) {
  lode_open_options options = {.create = true};
  lode_collection_options create = {.create = true};
  lode_store *store;
  lode_collection *files;
  indexer_version old, other, young, none = {{0}};
  search_versions first, second;
  strbuf ids[5] = {{0}};
  lode_str all[5];
  bool settled;
  indexer_version_parse(&old, STR_LIT("00000000001-00000001"));
  indexer_version_parse(&other, STR_LIT("00000000002-00000002"));
  OK(indexer_version_make(&young, &err));
  OK(lode_open(test_folder(), &options, &store, &err));
  OK(lode_collection_open(store, STR_LIT("files"), &create, &files, &err));
  put_file(files, "old.c", &old);
  put_file(files, "young.c", &young);
  put_file(files, "plain.c", &none);
  id_of(&ids[0], "old.c", &old);
  id_of(&ids[1], "old.c", &other);
  id_of(&ids[2], "young.c", &young);
  id_of(&ids[3], "plain.c", &none);
  id_of(&ids[4], "gone.c", &old);
  for (size_t i = 0; i < 5; i++) all[i] = (lode_str){ids[i].data, ids[i].len};
  search_versions_init(&first);
  search_versions_init(&second);
  OK(search_versions_load(&first, files, all, 5, &err));
  static const search_version_fit wanted[] = {SEARCH_VERSION_FITS, SEARCH_VERSION_OTHER, SEARCH_VERSION_UNSURE,
                                              SEARCH_VERSION_FITS, SEARCH_VERSION_OTHER};
  for (size_t i = 0; i < 5; i++) {
    settled = true;
    CHECKF(search_versions_judge(&first, NULL, all[i], &settled) == wanted[i], "chunk %zu", i);
    CHECKF(settled == (i != 2), "chunk %zu", i);
  }
  /* the same version twice: its chunks were there the second time */
  OK(search_versions_load(&second, files, all, 5, &err));
  settled = true;
  CHECK(search_versions_judge(&second, &first, all[2], &settled) == SEARCH_VERSION_FITS && settled);
  /* another one in between */
  search_versions_release(&second);
  search_versions_init(&second);
  indexer_version younger;
  OK(indexer_version_make(&younger, &err));
  put_file(files, "young.c", &younger);
  OK(search_versions_load(&second, files, all, 5, &err));
  CHECK(search_versions_judge(&second, &first, all[2], &settled) == SEARCH_VERSION_OTHER && !settled);
  search_versions_release(&first);
  search_versions_release(&second);
  for (size_t i = 0; i < 5; i++) strbuf_release(&ids[i]);
  lode_collection_close(files);
  lode_close(store);
}
