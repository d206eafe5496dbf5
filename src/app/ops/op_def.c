/* SPDX-License-Identifier: Apache-2.0 */
/* op_def.c - lookups in parameters and choices. */
#include "ops/op_def.h"

const op_param *op_param_find(const op_param *params, lode_str name) {
  for (; params->name; params++)
    if (str_eq(str_of(params->name), name)) return params;
  return NULL;
}

void op_choices_each(const char *choices, bool (*fn)(void *ctx, size_t i, lode_str choice), void *ctx) {
  for (size_t i = 0;; i++) {
    const char *end = strchr(choices, '|');
    size_t len = end ? (size_t)(end - choices) : strlen(choices);
    if (!fn(ctx, i, (lode_str){choices, len}) || !end) return;
    choices = end + 1;
  }
}

struct choice_search {
  lode_str text;
  int index;
};

static bool choice_match(void *ctx, size_t i, lode_str choice) {
  struct choice_search *search = ctx;
  if (str_eq(choice, search->text)) search->index = (int)i;
  return search->index < 0;
}

int op_choice_index(const char *choices, lode_str text) {
  struct choice_search search = {text, -1};
  op_choices_each(choices, choice_match, &search);
  return search.index;
}
