/* SPDX-License-Identifier: Apache-2.0 */
/* rescue_reembed.c - see rescue_reembed.h. */
#include "rescue/rescue_reembed.h"

#include "base/vector.h"

#include <stdio.h>

enum { REEMBED_SAMPLE = 8 };

/* The model that a name of a Chroma embedding function stands for; NULL when it is not one of ours. */
static const char *reembed_model_of(lode_str name) {
  static const char *const minilm[] = {"default", "onnx_mini_lm_l6_v2", "ONNXMiniLM_L6_V2", "all-MiniLM-L6-v2",
                                       "minilm"};
  for (size_t i = 0; i < sizeof minilm / sizeof *minilm; i++)
    if (name.data && str_eq(name, str_of(minilm[i]))) return LODE_MODEL_MINILM;
  return NULL;
}

/* Does the model give the vectors that are still there? *tried gets the number of documents that could be compared. */
static lode_status reembed_model_agrees(lode_embedder *embedder, rescue_plan *p, size_t *tried, bool *same,
                                        lode_error *err) {
  rescue_record_builder builder = {.plan = p};
  mem_arena arena;
  lode_status st = LODE_OK;
  uint32_t dim = p->dimension;
  size_t step = p->n / REEMBED_SAMPLE + 1;
  mem_arena_init(&arena, 0);
  float *mine = mem_alloc(2 * (size_t)dim * sizeof *mine), *theirs = mine ? mine + dim : NULL;
  *tried = 0;
  *same = true;
  if (!mine) return err_nomem(err);
  for (size_t i = 0; i < p->n && *tried < REEMBED_SAMPLE; i += step) {
    rescue_record made;
    TRY_GOTO(rescue_record_build(&builder, &p->recs[i], &arena, theirs, &made, err));
    if (!made.has_vector || !made.document.data || made.document.len == 0 || made.doubt) continue;
    TRY_GOTO(lode_embed(embedder, &made.document, 1, mine, err));
    *same &= vec_cosine(mine, theirs, dim) > 0.98;
    ++*tried;
  }
done:
  mem_free(mine);
  mem_arena_release(&arena);
  rescue_record_builder_release(&builder);
  return st;
}

lode_status rescue_reembed_begin(rescue_reembed *re, rescue_plan *p, lode_str model, lode_error *err) {
  const char *named = reembed_model_of(p->coll->embedder);
  lode_error why = {0};
  size_t tried;
  bool same;
  *re = (rescue_reembed){0};
  if (p->missing == 0) return LODE_OK;
  if (!model.data && named) model = str_of(named);
  if (!model.data) {
    snprintf(re->why, sizeof re->why, "the directory does not say which model made its vectors; --model names it");
    return LODE_OK;
  }
  lode_status st = lode_embedder_open(model, NULL, &re->embedder, &why);
  if (st == LODE_NOMEM) return err_nomem(err);
  if (st != LODE_OK) {
    snprintf(re->why, sizeof re->why, "%.290s", why.text);
    return LODE_OK;
  }
  uint32_t dim = lode_embedder_info_of(re->embedder)->dimension;
  if (!p->dimension) p->dimension = dim;
  if (dim != p->dimension) {
    snprintf(re->why, sizeof re->why, "the model makes vectors of %u numbers, and the collection's have %u", dim,
             p->dimension);
    rescue_reembed_end(re);
    return LODE_OK;
  }
  st = reembed_model_agrees(re->embedder, p, &tried, &same, err);
  if (st != LODE_OK) {
    rescue_reembed_end(re);
    return st;
  }
  if (!same) {
    snprintf(re->why, sizeof re->why,
             "the model does not give the vectors that are still there: another one made them");
    rescue_reembed_end(re);
  }
  return LODE_OK;
}

void rescue_reembed_end(rescue_reembed *re) {
  lode_embedder_close(re->embedder);
  re->embedder = NULL;
}
