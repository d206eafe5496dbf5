/* SPDX-License-Identifier: Apache-2.0 */
/* api_embed.c - the functions of lode.h about embedders and models that take structs which may grow. */
#include "api/sized.h"
#include "embed/embed.h"

lode_status lode_embedder_open_sized(lode_str model, const lode_embedder_options *options, size_t options_size,
                                     lode_embedder **embedder, lode_error *err) {
  lode_embedder_options own;
  err_clear(err);
  API_REQUIRE(embedder, err);
  *embedder = NULL;
  TRY(API_TAKE(&own, options, options_size, lode_embedder_options, err));
  return embed_open(model, &own, embedder, err);
}

lode_status lode_embed_records_sized(lode_embedder *embedder, lode_record *records, size_t record_size, size_t n,
                                     float **vectors, lode_error *err) {
  void *copy;
  err_clear(err);
  API_REQUIRE(vectors, err);
  *vectors = NULL;
  API_REQUIRE(embedder, err);
  TRY(API_TAKE_ARRAY(&copy, records, record_size, n, lode_record, err));
  lode_status st = embed_records(embedder, copy ? copy : records, n, vectors, err);
  for (size_t i = 0; copy && st == LODE_OK && i < n; i++)
    api_give((char *)records + i * record_size, record_size, (lode_record *)copy + i, sizeof(lode_record));
  mem_free(copy);
  return st;
}

lode_status lode_models_sized(const lode_embedder_options *options, size_t options_size, lode_model_list **list,
                              lode_error *err) {
  lode_embedder_options own;
  err_clear(err);
  API_REQUIRE(list, err);
  *list = NULL;
  TRY(API_TAKE(&own, options, options_size, lode_embedder_options, err));
  return embed_list_models(own.folder, list, err);
}

lode_status lode_model_install_sized(lode_str model, const char *from, const lode_embedder_options *options,
                                     size_t options_size, lode_progress progress, lode_error *err) {
  lode_embedder_options own;
  err_clear(err);
  API_REQUIRE(from, err);
  TRY(API_TAKE(&own, options, options_size, lode_embedder_options, err));
  return embed_install_model(model, from, own.folder, progress, err);
}

lode_status lode_model_verify_sized(lode_str model, const lode_embedder_options *options, size_t options_size,
                                    lode_error *err) {
  lode_embedder_options own;
  err_clear(err);
  TRY(API_TAKE(&own, options, options_size, lode_embedder_options, err));
  return embed_verify_model(model, own.folder, err);
}
