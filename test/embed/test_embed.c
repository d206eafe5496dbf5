/* SPDX-License-Identifier: Apache-2.0 */
/* test_embed.c - embedders by name, and a host's own. */
#include "base/base.h"
#include "support/test.h"

#include <math.h>

static lode_error err;

static lode_status lengths(void *ctx, const lode_str *texts, size_t n, float *vectors, lode_error *e) {
  (void)e;
  for (size_t i = 0; i < n; i++) {
    vectors[2 * i] = (float)texts[i].len;
    vectors[2 * i + 1] = *(float *)ctx;
  }
  return LODE_OK;
}

TEST(a_host_brings_its_own_embedder) {
  float second = 7;
  lode_embedder *e;
  OK(lode_embedder_open_custom(STR_LIT("lengths@1/2/float"), 2, lengths, &second, &e, &err));
  const lode_embedder_info *info = lode_embedder_info_of(e);
  CHECK(info->dimension == 2 && str_eq(info->identity, STR_LIT("lengths@1/2/float")));
  lode_str texts[] = {STR_LIT("a"), STR_LIT("abc"), {NULL, 0}};
  float v[6];
  OK(lode_embed(e, texts, 3, v, &err));
  CHECK(v[0] == 1 && v[1] == 7 && v[2] == 3 && v[4] == 0);
  OK(lode_embed(e, texts, 0, v, &err));
  second = NAN;
  FAILS(LODE_REFUSED, lode_embed(e, texts, 1, v, &err));
  CHECK(v[0] == 0 && err.record == 0);
  lode_embedder_close(e);
}

TEST(a_hosts_embedder_needs_a_name_a_dimension_and_a_function) {
  lode_embedder *e;
  FAILS(LODE_INVALID, lode_embedder_open_custom((lode_str){0}, 2, lengths, NULL, &e, &err));
  FAILS(LODE_INVALID, lode_embedder_open_custom(STR_LIT("a\0b"), 2, lengths, NULL, &e, &err));
  FAILS(LODE_INVALID, lode_embedder_open_custom(STR_LIT("a"), 0, lengths, NULL, &e, &err));
  FAILS(LODE_INVALID, lode_embedder_open_custom(STR_LIT("a"), LODE_MAX_DIMENSION + 1, lengths, NULL, &e, &err));
  FAILS(LODE_INVALID, lode_embedder_open_custom(STR_LIT("a"), 2, NULL, NULL, &e, &err));
  CHECK(!e);
}

TEST(unknown_names_say_what_there_is) {
  lode_embedder *e;
  FAILS(LODE_NOT_FOUND, lode_embedder_open(STR_LIT("nonsense"), NULL, &e, &err));
  CHECK(strstr(err.text, "minilm") && strstr(err.text, "openai:"));
  FAILS(LODE_NOT_FOUND, lode_embedder_open(STR_LIT("nonsense@1/2/float"), NULL, &e, &err));
  CHECK(strstr(err.text, "\"nonsense\""));
  FAILS(LODE_INVALID, lode_embedder_open(STR_LIT("mini\0lm"), NULL, &e, &err));
  FAILS(LODE_INVALID, lode_embedder_open(STR_LIT("minilm"), &(lode_embedder_options){.threads = 1000}, &e, &err));
}

TEST(what_is_not_installed_says_how_to_install_it) {
  lode_embedder *e;
  lode_embedder_options options = {.folder = test_folder()};
  FAILS(LODE_NOT_FOUND, lode_embedder_open(STR_LIT("minilm"), &options, &e, &err));
  CHECK(strstr(err.text, "lode model install minilm"));
  lode_model_list *list;
  OK(lode_models(&options, &list, &err));
  CHECK(lode_model_list_count(list) == 2 && !lode_model_list_at(list, 2));
  const lode_model_info *info = lode_model_list_at(list, 0);
  CHECK(strcmp(info->name, "minilm") == 0 && !info->installed && info->dimension == 384);
  lode_model_list_free(list);
  FAILS(LODE_NOT_FOUND, lode_model_verify(STR_LIT("minilm"), &options, &err));
  FAILS(LODE_NOT_FOUND, lode_model_install(STR_LIT("minilm"), options.folder, &options, (lode_progress){0}, &err));
}
