/* static.c - the static model for code: a table of token vectors, pooled.
 */
#include "embed/embed.h"

lode_status lode__static_open(const lode__embed_setup *setup, lode__embed_model *model, lode_error *err) {
  (void)setup;
  (void)model;
  return lode__fail(err, LODE_NOT_FOUND, "the static code model is not part of this build; use the model minilm");
}
