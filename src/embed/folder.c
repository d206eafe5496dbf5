/* folder.c - not there yet. */
#include "embed/embed.h"

lode_status lode__folder_open(const lode__embed_setup *setup, lode__embed_model *model, lode_error *err) {
  (void)setup;
  (void)model;
  return lode__fail(err, LODE_UNSUPPORTED, "this build has no BERT folder models");
}
